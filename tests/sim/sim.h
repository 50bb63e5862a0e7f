/* sim.h: the simulator's parts and what they share. One thread, one seed, same seed same run.
 *
 *   gen ──▶ plan ──▶ world ◀── oracle (what each piece of work will do)
 *                    │  ▲ └─── faults (when things go wrong)
 *              facts ▼  │
 *                  record ──▶ judge ◀── reference (what should have come out)
 *
 * Whatever orders things here is an index or a number that was given in order: never an address. */
#ifndef RV_TESTS_SIM_SIM_H
#define RV_TESTS_SIM_SIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/blob.h"
#include "base/random.h"
#include "base/str.h"
#include "base/timers.h"
#include "base/bugs.h"
#include "flow/flow.h"
#include "plan/plan.h"
#include "store/simulated/simulated.h"

/* Memory of the simulator itself, outside of what tests can make fail. Never NULL: it aborts. */
void *sim_alloc(size_t size);
void *sim_grow(void *old, size_t size);
struct rv__blob *sim_blob(struct rv__str text);
char *sim_copy(struct rv__str text); /* with a NUL behind it; for free() */

/* Scramble two numbers into one: how everything that is "random but fixed" is derived. */
uint64_t mix(uint64_t a, uint64_t b);

/* ------------------------------------------------------------------------------- choices --- */

struct chance { /* a stream of random choices */
    struct rv__random random;
};
void chance_init(struct chance *c, uint64_t seed);
bool one_in(struct chance *c, uint64_t n);                      /* true once in n times */
int64_t between(struct chance *c, int64_t least, int64_t most); /* both included */
/* Mostly small, now and then large: least..most, each power of two as likely as the next. */
int64_t skewed(struct chance *c, int64_t least, int64_t most);

/* What is switched off, to find the smallest thing that still fails. */
struct cut {
    const unsigned char *dropped; /* by ordinal of a piece of the plan; NULL = nothing is */
    size_t count;
    unsigned faults; /* bits: 1 << enum fault */
    int runs;        /* at most so many; 0 = as the seed says */
};

/* ---------------------------------------------------------------------------------- gen --- */

struct gen_body;

enum {
    SIM_PROVIDERS = 6
}; /* of models, by name: p0, p1 …; more than there are lanes for their limits */

struct gen_node {
    struct gen_node *next;
    uint32_t ordinal; /* of its pieces, for shrinking: the node, then its parts */
    enum rv__node_kind kind;
    char alias[24];
    bool has_when, by_function; /* by_function: its expressions are functions */
    bool has_description;
    bool describes; /* a function makes the description, of whatever it is */
    bool has_input; /* a function makes the parameters of the step */
    bool has_handler;
    struct gen_body *on_error; /* its handler as a list of nodes; NULL: it is a step */
    enum rv__step_kind step, handler;
    int64_t delay_ms;
    int signal; /* which */
    int64_t signal_timeout_ms;
    bool signal_default;
    struct rv__step_config config;
    bool is_while;
    int64_t max_iterations;
    enum rv__keep keep;
    bool parallel;
    int64_t concurrency;
    bool detached, collect;
    int64_t join;
    struct rv__chat_opts chat;
    struct gen_body *bodies;
    struct gen_node *earlier; /* of a stage: another one before it in its sequence; NULL: none */
};

struct gen_state { /* how a body of a stage is scheduled; states by their number */
    struct rv__state_opts opts;
    int on_failure;           /* -1: none */
    uint64_t depends;         /* bits: on these of its own stage, */
    uint64_t depends_earlier; /* and on these of the earlier one */
    bool by_description;
};

struct gen_body {
    struct gen_body *next;
    uint32_t ordinal;
    char alias[24];
    bool bare;
    bool wrap, wrap_input, wrap_handler; /* it is a workflow's */
    bool wrap_function;                  /* a function makes its input */
    bool wrap_when, wrap_describes;      /* of a child of a concurrent: it has a node of its own */
    char wrap_name[24];
    struct gen_node *first;
    struct gen_body *on_error, *finally; /* of a workflow's: lists of nodes; NULL: none */
    bool finally_step;                   /* it is a step, and no list */
    struct gen_state state;              /* of a stage's */
    struct rv__budget budget;            /* of a workflow's */
};

struct gen {
    struct rv__arena arena;
    struct gen_body root;
    bool has_handler;
    uint32_t ordinals; /* pieces that can be dropped */
    uint32_t nodes;
    const char *name; /* of the workflow */
    char letter;      /* with which the names of those in it begin */
};

/* `which`: of a world's plans, whose names are not to meet. `functions`: only of what an engine can
 * run without evaluating expressions. */
void gen_init(struct gen *gen, uint64_t seed, int64_t budget, int which, bool functions,
              bool stages); /* stages: many supervisors are such */
void gen_done(struct gen *gen);
struct gen_drafts { /* the whole first, then the workflows in it */
    struct rv__draft **drafts;
    size_t count;
};
void gen_emit(const struct gen *gen, const struct cut *cut, struct gen_drafts *ret);
void gen_drafts_done(struct gen_drafts *drafts);
int gen_compile(const struct gen *gen, const struct cut *cut, struct rv__plan **ret, rv_error *err);

/* A plan, and a number for each node that says where it is, but not how many siblings it has. */
struct sim_plan {
    struct rv__plan *plan;
    uint64_t *keys; /* by node id */
    char *json;     /* as it was written */
    size_t json_len;
};
uint64_t plan_body_key(const struct sim_plan *p, const struct rv__body *body);
struct world;
/* plans.c: make world->plans[which]; a plan that is refused, or changes when read, fails the world. */
void plan_make(struct world *world, int which, uint64_t seed, int64_t budget);
void plan_done(struct sim_plan *p);

/* ------------------------------------------------------------------------------- oracle --- */

/* What each piece of work does: a pure function of the seed, where it is, and which try it is. */
struct oracle {
    uint64_t seed;
    int fail_per_mille,
        soft_per_mille; /* how often attempts fail; of these, how often with a say */
    int eval_fail_per_mille;
    bool real_exprs; /* what is no function is evaluated by an engine: it does not fail */
    int crash_per_mille;
    int64_t slow_ms; /* the longest an attempt takes */
};
void oracle_init(struct oracle *oracle, uint64_t seed);

/* Where: a node's key and the iterations around it. */
struct spot {
    uint64_t key;
    const int64_t *vector;
    size_t depth;
};

enum fate { FATE_DONE, FATE_SKIPPED, FATE_FAILED, FATE_PARKED, FATE_HANGS };
struct outcome {
    enum fate fate;
    int64_t duration_ms; /* of the attempt; less than its time-out unless it hangs */
    enum rv__behavior behavior;
    int max_attempts, backoff; /* as in rv__msg */
    int64_t answer_ms;         /* PARKED: after so long; -1 = not before its time-out */
    bool answer_fails;
};
void oracle_attempt(const struct oracle *o, struct spot at, const struct rv__node *node,
                    int attempt, struct outcome *ret);
/* JSON texts of it. `answer`: of the answer to a handle. */
void oracle_result(const struct oracle *o, struct spot at, int attempt, bool answer,
                   struct rv__buf *out);
void oracle_state(const struct oracle *o, struct spot at, int attempt, struct rv__buf *out);
/* Of a turn of a chat: with the calls and tokens of its answer. */
void oracle_answer(const struct oracle *o, struct spot at, const struct rv__node *node, int attempt,
                   struct rv__buf *out);
void oracle_error(const struct oracle *o, struct spot at, int attempt, bool answer,
                  struct rv__buf *out);
/* What retryOn and noRetryOn say about an error (none: it has no codes); `unless` they say nothing. */
bool lists_say_retry(const struct rv__step_config *config, struct rv__str error, bool unless);
/* An attempt that fails plainly in an engine: by a panic? */
bool oracle_panics(const struct oracle *o, struct spot at, int attempt);
/* The first so many starts of this step kill the process. */
int oracle_crashes(const struct oracle *o, struct spot at, const struct rv__node *node);
/* The value of an evaluation (false: it fails, `out` is the error). `test`: of a loop, which. */
bool oracle_eval(const struct oracle *o, struct spot at, const struct rv__node *node, int eval,
                 int64_t test, struct rv__buf *out);
int64_t oracle_eval_ms(const struct oracle *o, struct spot at, int eval, int64_t test);

/* ------------------------------------------------------------------------------- record --- */

/* What a run's facts say has happened, kept by node and iterations around it; read from their text,
 * and kept apart from flow's own state. `t` is the number of the fact: the only time that counts. */
struct rec_value {
    int64_t t; /* -1: not yet */
    bool failed;
    struct rv__blob *value; /* or the error */
};

/* What the model (stages.c) knows of a state. */
struct rec_state {
    enum { REC_BLOCKED, REC_QUEUED, REC_RUNNING, REC_REDIRECTED, REC_STUCK, REC_SETTLED } phase;
    bool ever_settled;
    int failures;       /* since its last fresh count */
    int attempts;       /* since the stage began, or began anew */
    int64_t generation; /* the last attempt, over all */
    int64_t outcome;    /* whose outcome counts; 0: none */
    enum rv__status outcome_status;
    struct rv__blob *error;
};

struct rec_stage {
    struct rec_state *states; /* NULL: it has not begun */
    bool drained;
    int64_t running, ends;
};

struct rec_body {
    int64_t index;
    int64_t generation; /* of a state's; 0 elsewhere */
    int64_t due_ms;     /* the same */
    int64_t *outcomes;  /* the same: of what it depends on, whose counted when it began; 0: none */
    int64_t started, ended; /* t; -1 */
    int status;             /* as body.ended says */
    struct rv__blob *error;
    struct rec_value input;
    char *attachment; /* of a state's: the name of what it leaves */
};

struct rec_chat {                /* a conversation, so far */
    int attempt, turn, answered; /* attempt 0: it has not begun */
    bool in_turn;                /* one runs */
    bool broken;                 /* it failed, */
    bool gave_up;                /* and no other conversation follows */
    bool waits;                  /* for its time to begin anew */
    int calls, open;             /* of the last turn; those that run */
    uint32_t tools[128];         /* the body of each; 0: there is no such tool */
    bool begun[128];
    int64_t in, out; /* tokens */
    int64_t cost;
    json_t *model, *finish;
    struct rv__blob *result; /* of the last answer */
};

struct rec_inst {           /* a node, in given iterations */
    struct rec_inst *chain; /* in its bucket */
    uint32_t node;
    uint32_t depth;
    int64_t *vector;
    uint64_t actor;
    /* steps */
    int64_t started;      /* t of the first attempt; of a supervisor: of its beginning; -1 */
    int64_t ended;        /* t of its end */
    int64_t last_started; /* of the last attempt */
    int status;           /* enum rv__status, so far */
    bool hard;
    bool parked;
    bool waits; /* in the list of those that wait for a signal or a handle: */
    struct rec_inst *wait_prev, *wait_next;
    int attempt, next_attempt;
    bool noted; /* a step: an attempt left a note, and none has failed since */
    int64_t due_ms;
    struct rv__blob *result, *state, *error, *name;
    /* evaluations: the last of each kind; how many there were */
    struct rec_value evals[EVALS];
    int64_t eval_counts[EVALS];
    int eval_running; /* which; -1: none */
    /* supervisors */
    struct rec_body *bodies;
    size_t body_count, body_cap;
    size_t bodies_ended, bodies_failed;
    bool detached_over;
    bool aborted;  /* it was what the run was in when somebody decided so */
    bool left_out; /* a stage after a final state */
    struct rec_stage stage;
    struct rec_chat chat;
};

struct rec_actor {
    struct rec_inst *inst; /* its node; of a body: its owner's; NULL: of the outermost body */
    int64_t body;   /* of a body: place in inst->bodies; -1: a node; -2: none; -3: the outermost */
    uint64_t owner; /* of a node */
    int64_t eval_started; /* t of the last evaluation */
    struct rec_inst
        *describes; /* of a body: the node in it whose description is made; NULL: none */
    int blames;     /* deaths it is to blame for, since somebody decided about it */
    int deaths;     /* of the process, while it was in flight in it, in a row */
    bool suspect;   /* it may have killed the process: no other suspect beside it */
    const struct rv__body *plan_body; /* of a body */
    uint32_t depth;                   /* of a body: with its own iteration */
    int64_t *vector;
};

struct record {
    const struct rv__plan *plan;
    struct rv__arena arena;
    int64_t t;                 /* the facts so far */
    struct rec_inst **buckets; /* by what they are: a number, so the order is the same each time */
    size_t bucket_count;
    struct rec_actor *actors;
    size_t actor_cap;
    size_t insts;
    enum rv__run_status status;
    bool started;
    int64_t run_ended; /* t */
    int64_t ended_ms;  /* the same by the wall, as the fact says */
    struct rv__blob *error;
    uint32_t failed_node;
    struct rec_value root_input;
    uint64_t counts[FACT_KINDS];
    struct rec_signal {
        struct rv__blob *name, *payload;
        bool taken;
    } * signals;
    size_t signal_count, signal_cap;
    int64_t detached_cancelled; /* t; -1 */
    int64_t cut;                /* t, when it was cancelled and only `finally` was left; -1 */
    bool asked;                 /* to be cancelled: the next time ends its `finally`, too */
    char **names;               /* of attachments: the bodies' */
    size_t name_count, name_cap;
    int64_t last_second;      /* in one of them */
    size_t anew;              /* stages that were begun anew */
    bool past_handler;        /* it was aborted behind the end: its onError has no say */
    struct rv__blob *aborted; /* why, if that was behind the last node */
    bool aborted_at_state;    /* it was decided about a state, and the error says where that was */
    int max_crashes;
    struct rec_suspension {
        uint64_t actor; /* 0: the run as a whole */
        uint32_t which; /* of a stage: the state + 1 */
    } suspended[256];
    size_t suspended_count;
    struct rec_answer { /* of a model */
        const struct rec_inst *turn;
        struct rv__budget used;
    } * answers;
    size_t answer_count, answer_cap;
    struct rec_inst *first_wait, *last_wait; /* longest first; some were cancelled meanwhile */
};
void record_init(struct record *rec, const struct rv__plan *plan, int max_crashes);
void record_done(struct record *rec);
/* Take in one fact. False, with *why: it cannot have happened, given the others. */
bool record_fact(struct record *rec, const struct rv__fact *fact, const char **why);
struct rec_inst *record_find(const struct record *rec, uint32_t node, const int64_t *vector,
                             size_t depth);
struct rec_actor *record_actor(const struct record *rec, uint64_t id); /* NULL: unknown */
struct rec_body *record_body(const struct rec_inst *inst, int64_t index);
struct rec_body *record_attempt(const struct rec_inst *inst, int64_t state, int64_t generation);
/* The path of what is suspended; "": the run as a whole. */
void record_suspension_path(const struct record *rec, const struct rec_suspension *one,
                            struct rv__buf *out);

/* attachments.c: an attempt of a state begins: is its name as it should be? *ret is for free(). At the end:
 * each attempt has left one, with its result. */
const char *attachment_begins(struct record *rec, const struct rv__node *node,
                              const struct rv__fact *fact, char **ret);

/* stages.c: the model. A fact that cannot be gives a sentence. */
void stage_begins(struct rec_stage *stage, const struct rv__node *node);
void stage_done(struct rec_stage *stage, const struct rv__node *node);
const char *stage_starts(struct rec_stage *stage, const struct rv__node *node,
                         const struct rv__fact *fact);
const char *stage_ends(struct rec_stage *stage, const struct rv__node *node,
                       const struct rv__fact *fact, enum rv__status status);
const char *stage_decided(struct rec_stage *stage, const struct rv__node *node, uint32_t state,
                          enum rv__decision decision);
bool stage_over(const struct rec_stage *stage, const struct rv__node *node);
/* The state that may begin now; RV__NO_STATE: none. */
uint32_t stage_next(const struct rec_stage *stage, const struct rv__node *node);

/* chats.c: the same of chats. */
void chat_begins(struct rec_chat *chat);
/* `around`: a budget around it is used up. */
const char *chat_starts(struct rec_chat *chat, const struct rv__node *node,
                        const struct rv__fact *fact, bool around);
struct rv__budget chat_answered(struct rec_chat *chat, const struct rv__node *node,
                                const struct rv__fact *fact); /* what the answer used */
void chat_ends(struct rec_chat *chat, const struct rv__fact *fact);
void chat_anew(struct rec_chat *chat);
void chat_done(struct rec_chat *chat);
const char *chat_bound(const struct rec_chat *chat, const struct rv__node *node, bool around);
enum rv__status chat_outcome(const struct rec_chat *chat, const struct rv__node *node, bool around,
                             const char **code);
/* Has a workflow around the chat a budget? And is one of them used up, by all that was answered in it? */
bool chat_may_be_bounded(const struct rv__node *chat);
bool chat_is_bounded(const struct record *rec, const struct rv__node *chat, const int64_t *vector);
json_t *chat_state(const struct rec_chat *chat);

/* Has it a number in the vector, of an attempt or of a turn? */
static inline bool generates(const struct rv__node *node)
{
    return node->kind == NODE_STAGE || node->kind == NODE_CHAT;
}
/* Has it a number in the vector? */
static inline bool numbers(const struct rv__node *node)
{
    return node->kind == NODE_LOOP || node->kind == NODE_FOREACH || generates(node);
}
/* Is it begun, and neither ended nor cancelled with something around it? */
bool record_alive(const struct record *rec, const struct rec_inst *inst);
/* The step that waits for this handle; or longest for this signal. NULL: none. */
struct rec_inst *record_waiter(const struct record *rec, struct rv__str name, bool handle);

/* ---------------------------------------------------------------------------- reference --- */

/* A naive interpreter of plans, straight from the specification. It asks for the outcome of leaves:
 * of the record (then it says exactly what follows from them), or of the oracle alone (then it says
 * beforehand what must come out, with "$any" where that depends on timing). */
struct reference {
    const struct sim_plan *plan;
    const struct record *rec; /* NULL: by the oracle */
    const struct oracle *oracle;
    bool by_engine;               /* through rv_ctx: some things are said otherwise there */
    bool unsure;                  /* by the oracle: not even the status can be told */
    const struct rec_inst *asked; /* by reference_overdue(): */
    bool overdue;                 /* it has all it waited for, and has not ended */
};
struct ref_outcome {
    enum rv__run_status status;
    json_t *results;
    json_t *error;           /* with the path of the deepest node that failed; NULL: none */
    const char *failed_step; /* not NUL-terminated: see failed_len */
    size_t failed_len;
};
void reference_run(struct reference *ref, struct ref_outcome *ret);
/* Should this node have ended? By the record only. */
bool reference_overdue(struct reference *ref, const struct rec_inst *inst);
/* What a piece of work may see: {alias: …}, and lastStep. By the record only. `body`: of an input. */
json_t *reference_steps(struct reference *ref, const struct rv__node *node,
                        const struct rv__body *body, int eval, const int64_t *vector, size_t depth);
/* What a state gets of those it depends on. `body`: the state; vector and depth: with its attempt. */
json_t *reference_inputs(struct reference *ref, const struct rv__body *body, const int64_t *vector,
                         size_t depth);
/* The result of its agent. The same. */
json_t *reference_attempt(struct reference *ref, const struct rv__body *body, const int64_t *vector,
                          size_t depth);
json_t *reference_last(struct reference *ref, const struct rv__node *node,
                       const struct rv__body *body, int eval, const int64_t *vector, size_t depth);
/* Does `actual` agree with `expected`, where "$any" stands for anything? */
bool json_agrees(const json_t *expected, const json_t *actual);

static inline bool is_function(const struct rv__node *node)
{
    return node->kind == NODE_STEP &&
           (node->step.kind == STEP_FUNCTION || node->step.kind == STEP_CALL);
}

/* -------------------------------------------------------------------------------- faults --- */

#define FAULTS(X)                                                             \
    X(CRASH, "crashes")                   /* between turns */                 \
    X(CRASH_COMMIT, "crashes in commits") /* before or after it is on disk */ \
    X(CRASH_RELEASE, "crashes in the release of effects")                     \
    X(KILLER, "crashes by a step")                                            \
    X(STORE, "store errors")                                                  \
    X(DUPLICATE, "duplicate completions")                                     \
    X(LATE, "late completions")                                               \
    X(LOST, "lost completions")                                               \
    X(CLOCK, "clock jumps")                                                   \
    X(CANCEL, "cancels")                                                      \
    X(SIGNAL, "signals")                                                      \
    X(STRAY, "messages that fit nothing")                                     \
    X(DECIDE, "decisions")                                                    \
    X(SUSPEND, "suspensions from outside")                                    \
    X(MISSING, "missing functions")                                           \
    X(UPGRADE, "upgrades")                                                    \
    X(CUT, "turns cut short")                                                 \
    X(SNAPSHOT, "snapshots")                                                  \
    X(SHUTDOWN, "clean shutdowns")                                            \
    X(MEMORY, "failed allocations")                                           \
    X(SLEEP, "runs out of memory and back")                                   \
    X(REFUSED, "writes refused for good")
enum fault {
#define FAULT_ENUM(name, text) FAULT_##name,
    FAULTS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_KINDS
};
const char *fault_name(enum fault fault);

/* How often each happens in this world: once in so many chances; 0 = never. */
struct faults {
    uint32_t one_in[FAULT_KINDS];
    uint64_t happened[FAULT_KINDS];
    bool calm; /* the end is near: no more of it */
};
void faults_init(struct faults *faults, struct chance *chance, const struct cut *cut);
bool strikes(struct faults *faults, struct chance *chance, enum fault fault);

/* --------------------------------------------------------------------------------- world --- */

/* A piece of work that an executor does. How it ends is decided as it begins: a letter is on its way. */
struct work {
    struct work *next;
    struct run *run;
    uint64_t actor, token;
    enum rv__lane lane;
};

/* A timer that a cell wants (wall clock). */
struct wait {
    struct rv__timer timer;
    struct wait *next, **link;
    struct run *run;
    uint64_t actor, token;
    int64_t due_ms;
};

/* A message on its way (monotonic clock). */
struct letter {
    struct rv__timer timer;
    struct letter *next, **link; /* among all: what points to it */
    struct run *run;
    struct rv__msg msg;
    char *name;   /* of a handle, a signal, or a path; NULL: none */
    bool kills;   /* it is no message: the work that would send it takes the process with it */
    bool outside; /* comes from elsewhere: a death of the process does not take it along */
    /* MSG_PARK: the answer that will come */
    int64_t answer_ms;
    struct rv__blob *answer, *answer_state;
    bool answer_fails;
};

struct effect_note {
    struct run *run;
    struct rv__effect effect;
};

struct run {
    struct run *next;
    struct world *world;
    int index;
    char id[24];
    uint64_t nonce; /* with an engine: that which the first work saw; 0: none has begun */
    struct sim_plan *plan;
    struct rv__blob *input;
    struct rv__cell *cell;   /* NULL: not in memory */
    struct rv__cell *shadow; /* the judge's: evolved over the text of the facts */
    struct rv__facts facts;  /* decided, and in no commit yet */
    size_t judged;           /* bytes of facts.json that are in the record */
    struct record rec;       /* of everything decided, on disk or not */
    /* what is on its way to the disk */
    char *pending;
    size_t pending_len;
    struct rv__row *pending_rows;
    size_t pending_row_count;
    struct rv__value *pending_values;
    size_t pending_value_count;
    char *pending_snapshot;
    size_t pending_snapshot_len;
    bool pending_over; /* with it the run has come to its end */
    /* the judge's fold of effects */
    struct rv__effect *owed;
    size_t owed_count, owed_cap;
    uint32_t *owed_at; /* by actor: its place in `owed` from 1; 0: none */
    size_t owed_at_cap;
    int given[LANES];             /* places that no effect has carried yet */
    size_t shadowed;              /* bytes of facts.json that are in the shadow */
    int64_t durable_t, pending_t; /* so many facts are on disk; will be */
    bool cancelled;               /* somebody did that to it */
    int cancels;                  /* how often, with an effect */
    bool marked;
    bool began;         /* its start is on disk */
    bool over;          /* it has ended, with all in it, on disk, and was judged */
    size_t saved_bytes; /* its state as text, when that was last made */
    int resumes, signals;
    int64_t passed_over;         /* places that others have got while it wanted one */
    int64_t passed_limit[LANES]; /* the same of places within a limit, by lane */
    bool untimely;               /* something happened that the oracle alone cannot foresee */
    uint64_t seq;                /* with an engine: of the last journal row that was read */
    int64_t
        orphan_ms; /* with members: since when nobody has it, though it is active; 0: somebody has */
    int64_t
        lacks_ms; /* the same: since when it is given up, and somebody could go on; 0: nobody could */
    uint64_t lacks_seq; /* the same: the last row of the journal then */
    int64_t due_ms;     /* the same: since when it is time to wake it; 0: it is not */
    int64_t gift_ms;    /* the same: since when it is somebody's who has not found it yet */
    struct wrote {      /* the same: who wrote the facts before `t` that are not older ones' */
        int64_t t, by;
    } * wrote;
    size_t wrote_count, wrote_cap;
};

struct world {
    uint64_t seed;
    struct cut cut;
    bool trace;
    bool engine; /* there is a real one in it: shell.c */
    bool stages; /* its plans are full of them */
    struct chance chance;
    struct oracle oracle;
    struct faults faults;
    struct rv__sim_store store;
    struct rv__store *disk; /* what is on disk is read from here: &store.store, but for engines */
    int64_t mono_ms, wall_offset_ms;
    struct rv__timers mono, wall;
    struct gen gens[2];
    struct sim_plan plans[2];
    int plan_count;
    struct run *runs, **last_run;
    int run_count, run_goal;
    struct work *works;
    struct wait *waits;
    struct letter *letters;
    int places[LANES], taken[LANES];
    struct effect_note *notes; /* effects not released yet */
    size_t note_count, note_cap;
    size_t notes_pending; /* the first so many are of the commit on its way */
    bool committing;
    int64_t commit_due, meddle_due, start_due, wake_due; /* monotonic; -1: not */
    bool dead, clean; /* clean: it was shut down, and did not die */
    int max_crashes;
    uint64_t missing;    /* which functions nobody has now; 0: all are there */
    size_t value_inline; /* of its cells: often so little that most texts are values */
    uint64_t turns, rebuilt;
    uint64_t next_run; /* whose turn it is for places */
    uint64_t handles;
    struct execs *execs;
    int quiets; /* how often nothing was left to do but what the world owes */
    /* the verdict */
    bool failed;
    const char *check;
    char why[3000];
};

extern bool sim_stages; /* all worlds have them; else few */
void world_init(struct world *world, uint64_t seed, const struct cut *cut, bool trace);
void world_run(struct world *world);
void world_done(struct world *world);

static inline int64_t wall_ms(const struct world *world)
{
    return world->mono_ms + world->wall_offset_ms;
}

/* world_life.c: how its cell is made, and from what is on disk (`text`). Who does a function, as a cell is
 * told. */
struct rv__cell_opts world_opts(const struct run *run);
int world_load(struct world *world, struct run *run, struct rv__str text, rv_error *err);
enum rv__lane world_lane(void *run, const struct rv__node *node, int eval,
                         const struct rv__body *body);
void world_functions(struct world *world,
                     uint64_t missing); /* some are missing from now on; 0: none */
void world_crash(struct world *world, const char *how, bool clean);
struct letter *world_send(struct world *world, struct run *run, const struct rv__msg *msg,
                          int64_t in_ms); /* takes over the blobs */
void world_meddle(struct world *world);   /* faults.c: somebody does something */
/* Somebody decides about what is suspended, or tries to; `enough`: and has had enough of it. */
void world_decide(struct world *world, struct run *run, bool enough);
const char *work_name(const struct run *run, uint64_t actor, char *room, size_t size);

/* --------------------------------------------------------------------------------- judge --- */

void judge_fail(struct world *world, const struct run *run, const char *check, const char *fmt, ...)
    RV_PRINTF(4, 5);

/* judge.c: what the files of the judge share. */
struct rv__str judge_next_fact(struct rv__str text, size_t *at); /* *at: where it begins; moved */
/* Are two texts the same, if `none` stands for NULL? */
bool same_blob(const struct rv__blob *a, const struct rv__blob *b, const char *none);
/* Fail the world, and print two texts from where they differ. */
void judge_difference(struct world *world, struct run *run, const char *check, const char *what,
                      struct rv__str a, struct rv__str b);
json_t *judge_parse(struct world *world, struct run *run, const struct rv__buf *text);
/* Fail the world if `actual` does not agree with `expected`, which it takes over. */
void judge_compare(struct world *world, struct run *run, const char *check, const char *what,
                   json_t *expected, const struct rv__buf *actual);

/* What must come of a message: the kinds of fact of which exactly one follows; none: nothing. */
struct expectation {
    enum rv__fact_kind kinds[3];
    int kind_count;
    uint64_t actor; /* of the fact; 0: any */
    int rc;         /* of the send; 1: any of RV_OK and RV_ESTATE */
    int hard;       /* -1: any */
    bool anew;      /* it is a turn's: due says when its chat begins anew, 0: not at all */
    int64_t due_low, due_high;
    const struct rv__blob *result, *state, *error;
    bool check_result;
};
/* judge_message.c: does a step of its plan wait for a signal of this name? */
bool judge_wants_signal(const struct run *run, struct rv__str name);
void judge_before(struct world *world, struct run *run, const struct rv__msg *msg,
                  struct expectation *ret);
void judge_after(struct world *world, struct run *run, const struct rv__msg *msg, int rc,
                 const struct expectation *expected);
/* Facts that were read from the disk go into the record and the shadow. */
bool judge_journal(struct world *world, struct run *run, struct rv__str facts);
/* Read the facts that were added into the record; take the effects for release, with the places that they
 * carry; and hold the places that were given against those that are in use. */
void judge_facts(struct world *world, struct run *run);
void judge_effects(struct world *world, struct run *run);
void judge_places(struct world *world);
void judge_turn(struct world *world, struct run *run);
/* judge_view.c */
void judge_start(struct world *world, struct run *run, const struct rv__effect *effect,
                 const struct rv__view *view);
void judge_rebuild(struct world *world, struct run *run); /* record and shadow, from the disk */
void judge_over(struct world *world, struct run *run);
struct reference;
void judge_attachments(struct world *world, struct run *run, struct reference *ref);
void judge_quiet(struct world *world, struct run *run);
void judge_owe(struct run *run, const struct rv__effect *effect); /* add, replace or remove */
void judge_forget(struct run *run);                               /* what is owed */
const struct rv__effect *judge_owed(const struct run *run, uint64_t actor);

/* values.c: the text of what may be a reference, held once more; of all that a fact refers to, which then
 * has it as if it had never left; what the disk has (NULL: nothing). */
struct rv__blob *value_text(struct world *world, const struct run *run, struct rv__blob *blob);
void values_of_fact(struct world *world, const struct run *run, struct rv__str text,
                    struct rv__fact *fact);
/* The run's journal on disk. Who is shown it may ask the store, unlike with rv__store_journal(). */
int journal_rows(struct world *world, const struct run *run, uint64_t after,
                 rv__store_visit_row *visit, void *arg);
struct rv__blob *value_on_disk(struct world *world, const struct run *run, uint64_t number);
/* Finished iterations and values, as the store has them. */
struct store_rows {
    struct rv__row_source source;
    struct world *world;
    struct run *run;
};
void store_rows_init(struct store_rows *rows, struct world *world, struct run *run);

/* What was executed, over all deaths of the process. */
struct exec {
    struct exec *chain;
    uint64_t hash;
    int starts;
};
struct execs {
    struct exec *buckets[1024];
};
struct exec *execs_get(struct execs *execs, const struct run *run, uint64_t key,
                       const int64_t *vector, size_t depth);

/* --------------------------------------------------------------------------------- trace --- */

void trace(const struct world *world, const char *fmt, ...) RV_PRINTF(2, 3);

/* -------------------------------------------------------------------------------- shrink --- */

/* Run the seed with less and less while the same check fails; prints what is left. */
int shrink(uint64_t seed);

struct tally { /* plain numbers: they are added over processes */
    uint64_t seeds, failed, virtual_ms, turns, commits, runs, ended[RUN_STATUSES], nodes, works,
        replays, views, exact, foreseen, facts[FACT_KINDS], faults[FAULT_KINDS], stale;
};
extern struct tally tally; /* of this process */

#endif
