/* flow.h: the state machine of a run: what happens next, given what is known.
 *
 * A run's state is a *cell*: a tree of actors, one for each node and each body that is alive. The
 * outside sends messages; flow answers with *facts*, outcomes in the past tense, and applies them to
 * the cell. Facts are what goes to disk: evolving an empty cell over them gives the cell again.
 *
 * No I/O, no clock, no thread: time and chance come with the message. Same messages, same facts.
 *
 * A turn is: rv__flow_send() for each message that came, rv__flow_grant() for each free place, then
 * rv__flow_pump() until it says there is no more (or the facts are enough for this turn). Then the
 * facts are made durable, and after that the effects (rv__cell_effect) are released.
 *
 *   message ──▶ decide ──▶ fact ──▶ evolve ──▶ cell ──▶ effects, wants
 *                                     ▲
 *                     journal ────────┘  (recovery: the same evolve)
 *
 * Every fact leaves the cell consistent, and what is to follow can be told from the cell alone. So a
 * turn may be cut after any fact (out of memory, enough facts, a crash): the next pump goes on. */
#ifndef RV_FLOW_FLOW_H
#define RV_FLOW_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/str.h"
#include "plan/plan.h"

struct rv__cell;
struct rv__items;
struct rv__row_source;

enum {
    RV__TURN_FACTS = 256,     /* a pump stops after so many, so that no run holds the loop; */
    RV__TURN_BYTES = 8 << 20, /* or after so many bytes of facts and rows */
    RV__MAX_CRASHES = 3,      /* default: a step to blame for more suspends its run */
    RV__SUSPECT_DEATHS =
        2, /* of a shared process, with the same work in flight: that is a suspect */
};

/* A text that is longer leaves the cell for the store: a *value*. One this long is written with a fact,
 * a snapshot and a row each; a longer one once. The simulator asks for it sooner. */
#ifndef RV__VALUE_INLINE
#define RV__VALUE_INLINE ((size_t)16384)
#endif

/* ------------------------------------------------------------------------------ statuses --- */

enum rv__status { /* of a step or any other node */
                  STATUS_PENDING,
                  STATUS_RUNNING,
                  STATUS_WAITING_RETRY,
                  STATUS_COMPLETED,
                  STATUS_FAILED,
                  STATUS_SKIPPED,
                  STATUS_CANCELLED,
                  STATUSES,
};
const char *rv__status_name(enum rv__status status);

enum rv__run_status {
    RUN_RUNNING,
    RUN_SUSPENDED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_CANCELLED,
    RUN_STATUSES,
};
const char *rv__run_status_name(enum rv__run_status status);

static inline bool rv__run_terminal(enum rv__run_status status)
{
    return status >= RUN_COMPLETED;
}

/* What an evaluation is for. */
enum rv__eval {
    EVAL_WHEN,
    EVAL_IF,
    EVAL_WHILE,
    EVAL_UNTIL,
    EVAL_ITEMS,
    EVAL_INPUT,
    EVAL_DESCRIPTION, /* of a node that has completed; a step's attempt makes its own */
    EVALS,
};
const char *rv__eval_name(enum rv__eval eval);

/* Where work is done, and who gives the places for it. Neither plans nor snapshots name lanes. */
enum rv__lane {
    LANE_NONE,     /* needs no place: a delay, a signal, an empty body */
    LANE_FUNCTION, /* functions on threads of this process */
    LANE_HOST,     /* functions in host processes */
    LANE_IO,       /* command */
    LANE_EVAL,     /* expressions */
    LANE_HTTP,     /* http, turns of a chat: as many as there are descriptors for */
    LANE_SUSPECT,  /* functions that may have killed the engine: one at a time, beside all others */
    LANE_NOBODY,   /* functions that nobody offers now: they wait, and get no place here */
    LANE_WORKER, /* functions of workers: the first of RV__WORKER_LANES, for different sets of workers */
    LANES = LANE_WORKER + 8,
};
enum { RV__WORKER_LANES = LANES - LANE_WORKER };

static inline bool rv__lane_is_worker(enum rv__lane lane)
{
    return lane >= LANE_WORKER;
}

/* ------------------------------------------------------------------------------ messages --- */

enum rv__msg_kind {
    MSG_DONE,   /* work is done: result, state, skipped; of an evaluation: its value in `result` */
    MSG_FAILED, /* work failed: error, state, behavior … */
    MSG_PARK,   /* an attempt says "pending": handle; or it wants to wait: due; or signal `name` */
    MSG_TIMER,  /* the timer of the actor fell due: an attempt's time-out, a retry, a wait */
    MSG_LOST,   /* it is not done: it never began, or (crash) its process died. blame: it had that
                    process to itself, and error says how it died; shared: with others */
    MSG_GIVEN,  /* an attempt that goes on: what it was given so far, in `given` */
    MSG_READ, /* work in flight has read `name` through `by`. RV_ENOTFOUND: it is not in flight any more */
    MSG_ANSWER, /* somebody completes the handle `name`: as MSG_DONE, or with `error` MSG_FAILED */
    MSG_SIGNAL, /* a signal `name` with `result` as its payload */
    MSG_CANCEL,
    MSG_SUSPEND, /* the run as a whole stops for a decision: `error` says why. Not if it is over or has */
    MSG_RESUME, /* a decision about what is suspended: `name` is its path (none: all there is); `error`
                    (may be NULL) says why, and is recorded with the reason for which it was suspended
                    as its "cause" */
    MSG_ABORT,   /* another one: the same, and that is what the run fails with */
    MSG_SKIP,    /* of a state: it has failed, and its stage goes on */
    MSG_RESTART, /* of a state: its stage begins anew */
    MSG_KINDS,
};
const char *rv__msg_kind_name(enum rv__msg_kind kind);

enum rv__behavior {
    BEHAVIOR_PLAIN,
    BEHAVIOR_STOP,
    BEHAVIOR_CONTINUE,
    BEHAVIOR_RETRY,
    BEHAVIOR_FINAL, /* as plain, but not tried again unless the step's retryOn lists it */
    BEHAVIOR_LATER, /* it could not be done now: again after wait_ms, which uses up no attempt */
};

/* Blobs are borrowed; each is exactly one JSON value that passed rv__json_check(), without white space
 * around it. The fields a kind does not use stay zero. */
struct rv__msg {
    enum rv__msg_kind kind;
    int64_t now_ms;
    uint64_t actor;          /* addressee, for what concerns one piece of work; and */
    uint64_t token;          /* its token at the time it was sent out: a stale one is dropped */
    struct rv__blob *result; /* JSON; NULL = null */
    struct rv__blob *state;  /* a JSON object; NULL = {} */
    struct rv__blob *error;  /* a JSON object with at least "message"; where it happened is added */
    /* Of an attempt: what it was given, a JSON object, or what of that was not sent with MSG_GIVEN before.
     * It is recorded for people and changes nothing. NULL: nothing. */
    struct rv__blob *given;
    struct rv__str
        name; /* of a handle, a signal; of a decision: the path it is about; of MSG_READ: what */
    bool skipped;
    enum rv__behavior behavior;
    int max_attempts; /* of a retry step error; 0 = not said */
    int backoff;      /* of a step error: 1 + enum rv__backoff; 0 = not said */
    int64_t wait_ms;  /* MSG_FAILED: a retry waits for at least so long; LATER: just that */
    double chance;    /* [0,1), for jitter */
    int64_t due_ms;   /* MSG_PARK: until when; 0 = its time-out, if it has one */
    bool crash, blame, shared; /* MSG_LOST; a clean end takes work back without any */
    int64_t
        down_ms; /* MSG_LOST with the engine's process: that was last heard of then; 0: not known */
    bool force;  /* MSG_SIGNAL: it is kept though no step of the plan waits for that name */
    struct rv__str
        by; /* who sent it, for people: recorded with what it does. None: nobody is named */
};

/* --------------------------------------------------------------------------------- facts --- */

enum rv__fact_kind {
    FACT_RUN_STARTED,
    FACT_RUN_COMPLETED,
    FACT_RUN_FAILED,
    FACT_RUN_CANCELLING, /* everything alive is cancelled with it, and its `finally` comes; while that runs:
                            nothing changes, but the next one ends it */
    FACT_RUN_CANCELLED, /* everything alive is cancelled with it */
    FACT_RUN_SUSPENDED, /* for an actor's sake, of a stage for one of its states; or (0) as a whole */
    FACT_RUN_RESUMED, /* one of the suspensions was decided; others may be left. (0) as a whole, or what it
                         waited for is gone */
    FACT_RUN_ABORTED, /* its sequence fails; run.failed follows, after the handler */
    FACT_EVAL_STARTED,
    FACT_EVAL_COMPLETED,
    FACT_EVAL_FAILED,  /* of an input or a description; elsewhere the node fails with it */
    FACT_NODE_STARTED, /* a supervisor begins */
    FACT_NODE_COMPLETED,
    FACT_NODE_FAILED,   /* what is alive below it is cancelled with it; so with completed (join) */
    FACT_NODE_SKIPPED,  /* its `when` was false; a stage after the final one: it never begins */
    FACT_NODE_RETRYING, /* a chat: its conversation is given up, a new one begins when it is due */
    FACT_BODY_STARTED,  /* an iteration, a child, a branch's path, a workflow's sequence */
    FACT_BODY_ENDED,
    FACT_STEP_STARTED, /* an attempt; for a delay or a signal: the wait */
    FACT_STEP_COMPLETED,
    FACT_STEP_SKIPPED,
    FACT_STEP_FAILED,
    FACT_STEP_RETRYING,
    FACT_STEP_PARKED,
    FACT_STEP_LOST,
    FACT_STEP_GIVEN,  /* what an attempt that goes on was given; of one that ends its end says it */
    FACT_STEP_READ,   /* what work in flight has read of its run: `name`, through `by` */
    FACT_TIMER_FIRED, /* of a retry: it waits for a place now, or its chat begins anew */
    FACT_SIGNAL_RECEIVED,
    FACT_DETACHED_ENDED,     /* a detached block has nothing left to do */
    FACT_DETACHED_CANCELLED, /* all of them, after the run's end */
    FACT_KINDS,
};
const char *rv__fact_kind_name(enum rv__fact_kind kind); /* "step.completed", … */

/* What becomes of a state when an attempt of it has ended. */
enum rv__next {
    NEXT_NONE,     /* it is no state */
    NEXT_DONE,     /* it has completed */
    NEXT_FINAL,    /* the same, and nothing new begins after it */
    NEXT_RETRY,    /* it is queued again */
    NEXT_REDIRECT, /* the same, after another state has run */
    NEXT_ERRORED,  /* it has failed, and its stage goes on */
    NEXT_SUSPEND,  /* it was critical: somebody has to decide */
    NEXTS,
};
const char *rv__next_name(enum rv__next next);

enum rv__decision { DECISION_RESUME, DECISION_SKIP, DECISION_RESTART, DECISION_ABORT, DECISIONS };
const char *rv__decision_name(enum rv__decision decision); /* "resume", …, "restart_stage" */

/* A fact in memory. The blobs are held by it (rv__fact_done). `result`, `state` and `given` may be references:
 * such a text is not in the fact, but a value of the run. */
struct rv__fact {
    enum rv__fact_kind kind;
    uint64_t actor; /* whom it concerns; a new one: the next id of the cell */
    uint64_t owner; /* whom the new one belongs to; 0: it exists already */
    uint32_t node;  /* its plan node; of a body: its owner's; RV__NO_NODE: the outermost */
    int64_t index;  /* body: which iteration or child; run.started: unused */
    int64_t at_ms;
    int64_t due_ms;
    int attempt; /* step.started, node.retrying, and of a state or turn body.started: from 1; of an end only when it was
                            read, 0: none said */
    int64_t
        generation; /* body.started of a state: its attempts over all, from 1; of a turn or call its
                       rv__chat_number; 0: it is none */
    uint32_t which; /* run.suspended, run.resumed: the state + 1; 0: none */
    uint32_t to;    /* body.ended with NEXT_REDIRECT: the state + 1 */
    int next;       /* body.ended: enum rv__next */
    int decision;   /* run.resumed: enum rv__decision */
    int64_t left;   /* the same: so many suspensions are left */
    int64_t limit;  /* of a run that starts: attempts at once in a stage; 0: as the plan says */
    int eval;       /* enum rv__eval */
    int status;     /* body.ended: enum rv__status */
    bool hard;      /* step.failed: it fails its sequence */
    bool suspect, blame; /* step.lost: from now on it is one; it is to blame for this death */
    bool crash;          /* the same: with its process */
    int64_t
        down_ms; /* the same: since when nothing is known of its process; for readers. 0: not said */
    int deaths;  /* the same: of processes that it shared, while it was in flight; 0: not said */
    bool taken;  /* step.completed: it took a signal */
    bool hosted;     /* step.started: in a process of its own */
    bool cut;        /* step.started, step.parked: a delay whose time-out is due before its end */
    bool describe;   /* step.completed, node.completed: its description is evaluated next */
    uint64_t nonce;  /* run.started: see rv__cell_opts */
    uint64_t module; /* step.started: the same; 0: none */
    struct rv__blob *result, *state, *error, *name;
    struct rv__blob *given; /* of an attempt: for readers. The cell does not keep it */
    struct rv__str by;      /* who caused it: for readers too. Only while it is said */
    struct rv__blob *turn;  /* step.completed, of a turn: what it means for its chat */
    struct rv__items
        *items; /* eval.completed: a long array of items, in pieces; then no `result` */
    struct rv__blob
        *description; /* of a state that is a reference: for readers, who would have to fetch
                                     it for that */
};
#define RV__NO_NODE UINT32_MAX

void rv__fact_done(struct rv__fact *fact);

/* The facts of a turn, as they go to disk: a JSON array without its brackets. */
struct rv__facts {
    struct rv__buf json;
    size_t count;
    /* What else belongs into the same transaction: iterations, finished or cut short (SPEC: results). */
    struct rv__row *rows;
    size_t row_count, row_cap, row_bytes;
    struct rv__value *values;
    size_t value_count, value_cap;
    struct rv__logged_failure *logged_failures; /* failures that only the log tells */
    size_t logged_failure_count, logged_failure_cap;
    uint32_t said[FACT_KINDS]; /* how many of each kind */
};

/* A failure that changes nothing, so that only the log tells of it: of a handler, or of a detached child. */
struct rv__logged_failure {
    const struct rv__node *node; /* what failed; */
    const struct rv__body *body; /* in which detached child; NULL: it is a handler */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    int attempt;
    struct rv__blob *error; /* held */
};

/* An iteration of a forEach or a loop that keeps all: it left the cell for here when it ended, or was
 * ended from outside with something finished in it. */
struct rv__row {
    uint32_t node;
    struct rv__str key; /* node and vector as text: "4/3.0", unique in the run; see rv__row_key */
    int64_t index;
    struct rv__str json; /* {"item":…,"index":…,"results":{…}}; nested iterations are not in it, and
                            values stand in it as references: see write.c */
};

/* The rows of attachments stand under a key of their own, by the number of their attempt's actor; and what
 * begins a stage anew is a row too: those of that stage (`o`) with a smaller number than `n` are superseded. */
#define RV__ATTACHMENT_KEY "attachments"
#define RV__ANEW_KEY       "stages anew"

enum rv__attachment_status {
    ATTACHMENT_INIT, /* its attempt has begun, and no agent runs yet: of these two there is no row */
    ATTACHMENT_RUNNING, /* its agent runs */
    ATTACHMENT_FINISHED,
    ATTACHMENT_ERRORED,
    ATTACHMENT_SKIPPED, /* its agent said so */
};
const char *rv__attachment_status_name(enum rv__attachment_status status);

/* What is in a row of an attachment, which passed rv__json_check(): its result, appended as JSON, nothing if it
 * has none; the description that its agent gave, or null. RV_ESTORE: it does not fit the plan. */
int rv__attachment_result(const struct rv__plan *plan, struct rv__str row,
                          struct rv__row_source *rows, struct rv__buf *out, rv_error *err);
int rv__attachment_description(struct rv__str row, struct rv__row_source *rows, struct rv__buf *out,
                               rv_error *err);

/* A long text that left the cell with a fact. The work that sees it starts after the commit. */
struct rv__value {
    uint64_t number; /* unique in the run, from 1 */
    struct rv__blob *json;
};

void rv__facts_init(struct rv__facts *facts);
void rv__facts_reset(struct rv__facts *facts); /* for the next turn; keeps memory */
void rv__facts_done(struct rv__facts *facts);
/* Forget the failures to log from this one on: they are logged, or their facts were taken back. */
void rv__facts_drop_failures(struct rv__facts *facts, size_t from);

/* A nonce or hash as JSON text, sixteen digits in quotes, and back. RV_EINVAL: it is none. */
void rv__hash_text_write(uint64_t number, struct rv__buf *out);
int rv__hash_text_read(struct rv__str json, uint64_t *ret);

/* Read one fact of a journal row. Checked for form here, and against the cell in rv__cell_replay. */
int rv__fact_read(struct rv__str json, struct rv__fact *ret, rv_error *err);

/* --------------------------------------------------------------------------------- cells --- */

struct rv__cell_opts {
    const struct rv__plan *plan; /* borrowed; must outlive the cell */
    int max_crashes;             /* 0 = RV__MAX_CRASHES */
    size_t value_inline; /* 0 = RV__VALUE_INLINE; at least 8. Replay does not depend on it */
    int turn_facts;      /* 0 = RV__TURN_FACTS: a pump stops after so many */
    /* Who does this function: LANE_FUNCTION, LANE_HOST, a lane of workers, or LANE_NOBODY while it is not there? Of a command:
     * LANE_NOBODY while the file of its workflow is not there; anything else: it is. Asked
     * when something begins to wait for its place. `eval`: enum rv__eval; -1: the step's attempt. That an
     * attempt began in a host is on record, for who asks after a crash what was in the process that died.
     * NULL: LANE_FUNCTION for all. */
    enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval);
    void *arg;
    /* Of a run that begins: chance. It is recorded with it, and is part of its steps' idempotency keys: a
     * later run that is given the same id has other keys. */
    uint64_t nonce;
    int64_t limit; /* of a run that begins: attempts at once in each stage; 0 = as its plan says */
    struct rv__str by; /* of a run that begins: who started it. None: nobody is named */
    /* The hash of the module that has the step's function now: recorded with each attempt, for who asks later
     * which code it was. 0: none has. NULL: the same for all. Asked with `arg`, as `lane` is. */
    uint64_t (*module)(void *arg, const struct rv__node *node);
};

/* A run that begins. The first fact is run.started. `input` is borrowed (NULL = null). */
int rv__cell_start(const struct rv__cell_opts *opts, struct rv__blob *input, int64_t now_ms,
                   struct rv__facts *facts, struct rv__cell **ret, rv_error *err);

/* A run from its journal: an empty cell, then rv__cell_replay() for each fact. Facts that do not fit
 * are RV_ESTORE with what and where; the cell is then as before that fact. No effects are noted. */
int rv__cell_empty(const struct rv__cell_opts *opts, struct rv__cell **ret, rv_error *err);
int rv__cell_replay(struct rv__cell *cell, const struct rv__fact *fact, rv_error *err);
int rv__cell_replay_json(struct rv__cell *cell, struct rv__str facts_json /* comma-separated */,
                         rv_error *err);
/* The same, and the rows of iterations that end in it are added to `rows`, as they were when the facts
 * were said: for who has the facts only. */
int rv__cell_replay_rows(struct rv__cell *cell, struct rv__str facts_json, struct rv__facts *rows,
                         rv_error *err);

/* From now on this is asked, and whatever waits is put into its lane anew, in order of arrival: who
 * loaded it may not have known, and functions come and go. RV_OK: it takes no memory. */
int rv__cell_lanes(struct rv__cell *cell,
                   enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval),
                   void *arg);

/* The whole state as JSON text, and back. Two cells with the same text are the same, and go on alike if
 * they get the same messages and places, whatever their `lane` says. */
int rv__cell_save(struct rv__cell *cell, struct rv__buf *out, rv_error *err);
int rv__cell_load(const struct rv__cell_opts *opts, struct rv__str json, struct rv__cell **ret,
                  rv_error *err);

void rv__cell_free(struct rv__cell *cell); /* NULL is allowed */

/* Deliver a message. RV_OK: it was taken (or was stale: then no fact). RV_ENOMEM: not taken, nothing
 * changed: send it again. MSG_READ: RV_ENOTFOUND if the work is not in flight; MSG_ANSWER: RV_ENOTFOUND if the handle is not waited for; MSG_SIGNAL:
 * RV_ESTATE if nothing of the run is alive, RV_EUNWANTED if no step of the plan waits for that name (the
 * error lists those there are); a decision: RV_ESTATE if it is not suspended, if several nodes are and none
 * is named, if the named one is not, or cannot be decided so. */
int rv__flow_send(struct rv__cell *cell, const struct rv__msg *msg, struct rv__facts *facts,
                  rv_error *err);

/* A place is free in `lane`: start one piece of work that waits for it. 1: started, and the place is
 * taken: an effect of its actor carries it; 0: none waits (in LANE_NOBODY nothing ever starts);
 * RV_ENOMEM. */
int rv__flow_grant(struct rv__cell *cell, enum rv__lane lane, int64_t now_ms,
                   struct rv__facts *facts, rv_error *err);
/* The same for a place that is a certain worker's: the effect carries its number, the ticket (0: of none). */
int rv__flow_grant_ticket(struct rv__cell *cell, enum rv__lane lane, uint32_t ticket,
                          int64_t now_ms, struct rv__facts *facts, rv_error *err);

/* Do what follows from the facts so far, as far as it needs nobody. 0: nothing is left to do; 1: more
 * is, but these are facts enough; RV_ENOMEM: the same, for want of memory. */
int rv__flow_pump(struct rv__cell *cell, int64_t now_ms, struct rv__facts *facts, rv_error *err);

/* --------------------------------------------------------------- what the outside owes it --- */

/* An actor is owed at most one thing at a time: an effect replaces the actor's one before it, which
 * is then to be aborted if it still goes on. */
enum rv__effect_kind {
    EFFECT_START, /* do this work: a step's attempt, or an evaluation */
    EFFECT_WAIT,  /* arm a timer: MSG_TIMER at due_ms */
    EFFECT_STOP,  /* nothing any more */
};

struct rv__effect {
    enum rv__effect_kind kind;
    uint64_t actor, token;
    const struct rv__node *node; /* NULL: the input of the outermost or a wrapped body */
    int eval;                    /* START: -1 = an attempt; else enum rv__eval */
    int64_t due_ms;              /* WAIT */
    int64_t timeout_ms;          /* START: of the attempt, from when an executor begins; 0 = none */
    bool hosted;                 /* START: it began in a process that is not the engine's */
    enum rv__lane place; /* START: the place it was given. WAIT, STOP: one that it was given and
                                    does not need: to be given back. LANE_NONE: none. Each is carried once */
    uint32_t ticket;     /* of that place */
};

/* The next effect of the facts since the last call; false: no more. Release them after the commit: all of
 * them before the cell is freed, for they carry places. Until then a message to the actor is stale. */
bool rv__cell_effect(struct rv__cell *cell, struct rv__effect *ret);

/* Everything that is owed now, from the state alone: for recovery. Calls back for each; no STOPs, and no
 * places: those were of a process that has died. */
void rv__cell_outstanding(const struct rv__cell *cell,
                          void (*owed)(void *arg, const struct rv__effect *effect), void *arg);

bool rv__cell_idle(const struct rv__cell *cell); /* nothing in it could be done now */
/* Its earliest timer; 0 = none, or there is work. Walks over its actors. */
int64_t rv__cell_wake_ms(const struct rv__cell *cell);
/* The work that it is owed. Give the effects to rv__free(). */
struct rv__started {
    struct rv__effect *effects;
    size_t count, cap;
    bool no_memory; /* these are not all */
};
struct rv__started rv__cell_started(const struct rv__cell *cell);

/* Why it does not go on: what is alive and has nothing alive below it, and what has not begun for want
 * of room, each with the one thing that it waits for. */
enum rv__wait_kind {
    WAIT_WORK,     /* its work, which is in flight: an attempt, or an evaluation (`eval`) */
    WAIT_PLACE,    /* a place in `lane`; in LANE_NOBODY: somebody who has the function `name` */
    WAIT_LIMIT,    /* the `limit` of its forEach: `count` more iterations */
    WAIT_TIMER,    /* its time: `due_ms` */
    WAIT_RETRY,    /* the same, for its next `attempt` */
    WAIT_SIGNAL,   /* a signal `name`, until `due_ms` if that is not 0 */
    WAIT_HANDLE,   /* somebody who completes `name`; the same */
    WAIT_DECISION, /* the run is suspended */
    WAIT_TURN,     /* nobody: it goes on with the next pump */
};

struct rv__wait {
    enum rv__wait_kind kind;
    uint64_t actor;
    const struct rv__node *node; /* NULL: the outermost sequence */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    enum rv__lane lane;
    int eval; /* -1: none */
    int attempt;
    int64_t due_ms, count, limit;
    struct rv__str name;
};
void rv__cell_waits(const struct rv__cell *cell,
                    void (*waits)(void *arg, const struct rv__wait *wait), void *arg);

/* Does work wait for a place in this lane? (No, while the run is suspended.) */
bool rv__cell_wants(const struct rv__cell *cell, enum rv__lane lane);
/* The work that the next place in this lane is for, and its lane if nobody suspected it. False: none waits. */
bool rv__cell_first(const struct rv__cell *cell, enum rv__lane lane, const struct rv__node **node,
                    int *eval, enum rv__lane *plain);
/* Is the first that waits in LANE_SUSPECT to blame for a death already? Those come first. */
bool rv__cell_blamed(const struct rv__cell *cell);
/* How many pieces of work are in flight: what EFFECT_START asked for, and was not answered. */
size_t rv__cell_working(const struct rv__cell *cell);
/* Would rv__flow_pump() do something? */
bool rv__cell_more(const struct rv__cell *cell);
/* Does it wait for somebody: is it suspended, or does a step of it wait for a signal? */
bool rv__cell_waits_for_somebody(const struct rv__cell *cell);
/* Is anything alive in it? Detached children outlive the run's end. */
bool rv__cell_active(const struct rv__cell *cell);

/* ------------------------------------------------------------------------------- reading --- */

enum rv__run_status rv__cell_status(const struct rv__cell *cell);
const struct rv__plan *rv__cell_plan(const struct rv__cell *cell);
struct rv__str rv__cell_error(const struct rv__cell *cell);       /* raw JSON; none if none */
struct rv__str rv__cell_failed_step(const struct rv__cell *cell); /* an alias; none if none */
/* The deepest node that failed the run: its path, which is in the error; none if none. The second: of
 * an error of a node or a run, wherever it is kept. */
struct rv__str rv__cell_failed_path(const struct rv__cell *cell);
struct rv__str rv__error_path(struct rv__str error);
/* Why it is suspended, the first of the reasons: raw JSON; none. All of them, as
 * [{"path"?, "reason", "since", "actions"}], oldest first; nothing is appended if there are none. RV_ENOMEM. */
struct rv__str rv__cell_suspension(const struct rv__cell *cell);
int rv__cell_suspensions(const struct rv__cell *cell, struct rv__buf *out, rv_error *err);
size_t rv__cell_actors(const struct rv__cell *cell);   /* alive */
uint64_t rv__cell_stale(const struct rv__cell *cell);  /* messages dropped */
size_t rv__cell_bytes(const struct rv__cell *cell);    /* memory of the cell, about */
uint64_t rv__cell_values(const struct rv__cell *cell); /* numbers given: 1 to this */

/* What has left the cell for the store. Both functions give what rv__facts gave to be written, as JSON
 * that passed rv__json_check(). */
struct rv__row_source {
    /* Finished iterations under `key` with an index above `after` (-1: all), in order of index: as many
     * as are handy at once, and at least one, if there is any. Appends their JSON, comma-separated; *last
     * is the index of the last. 1: there may be more behind it; 0: there are no more. */
    int (*rows)(struct rv__row_source *self, struct rv__str key, int64_t after, struct rv__buf *out,
                int64_t *last, rv_error *err);
    /* The text of a value; the caller holds it once. */
    int (*value)(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                 rv_error *err);
};

/* {alias: {result, state, status, error?}} of the nodes reached so far at the top level, nested ones inside
 * their node's result, iterations and values fetched from `rows`. The one that the run is in has no
 * result yet.
 *
 * RV_ETOOBIG: it is longer than the bound of `out`, which then holds what it held before; *bytes (unless
 * NULL) says how long it is. No more than `out` and a page of rows is ever in memory. */
int rv__cell_results(const struct rv__cell *cell, struct rv__row_source *rows, struct rv__buf *out,
                     uint64_t *bytes, rv_error *err);

/* What a piece of work sees (SPEC: steps). Holds what it shows; give it to rv__view_done(). May be
 * read on another thread than the cell's. */
struct rv__view {
    const struct rv__node *node;
    const struct rv__body *body; /* whose input is evaluated; NULL for everything else */
    struct rv__blob *input;
    struct rv__entry *scope; /* newest first */
    const struct rv__body
        *fence; /* of that, and of `last`, only what is in this state; NULL: all of it */
    struct rv__entry *last;
    struct rv__entry *ended; /* whose description is evaluated; NULL for everything else */
    struct rv__blob *items;  /* of the forEach, if that is the innermost iteration around it; */
    struct rv__str item;     /* a slice of items */
    struct rv__items
        *pieces;        /* instead of these two: the items are values. rv__view_item() has both */
    int64_t loop_index; /* of the innermost forEach or loop; -1: none */
    struct rv__view *
        parent; /* the iteration around that one: only the four above, and its parent. NULL: none */
    int attempt;
    uint64_t actor, token;
    uint64_t nonce; /* of the run */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    const struct rv__node *handler;     /* the handler it is, or is in; NULL: none */
    enum rv__run_status outcome;        /* of what that is about: running, if it is a step */
    struct rv__blob *error;             /* the error; NULL: finally, and there was none */
    const struct rv__node *failed_node; /* the node that failed with it, */
    struct rv__blob *failed_state;      /* and the state that node left */
    const struct rv__body
        *state;               /* the state of a stage that it is the agent of, or is in; NULL: none,
                                     or it was detached, and outlives it */
    int state_attempt;        /* of it, from 1 */
    struct rv__inner *inputs; /* what that depends on, as it was when the attempt began */
    int64_t chat_number; /* of the turn that it is, or the call whose input it makes; 0: neither */
    struct rv__entry
        *talk; /* of its chat: the turns and calls that have ended, newest first, as long
                               as rv__entry_number() is not 0; NULL: none */
};
/* Errors: RV_ENOTFOUND: it is not owed any more; RV_ENOMEM. */
int rv__cell_view(const struct rv__cell *cell, uint64_t actor, uint64_t token,
                  struct rv__view *ret);
void rv__view_done(struct rv__view *view);

/* A text that may be a reference: itself, or what the source has. *ret is held once more. NULL gives NULL. */
int rv__blob_get(struct rv__blob *blob, struct rv__row_source *rows, struct rv__blob **ret,
                 rv_error *err);

/* The item of the iteration it is in: *ret lies in *hold, to be given to rv__blob_unref(), or in the view
 * (NULL). All items, as an array. RV_ENOTFOUND: it is in no forEach. */
int rv__view_item(const struct rv__view *view, struct rv__row_source *rows, struct rv__blob **hold,
                  struct rv__str *ret, rv_error *err);
int rv__view_items(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err);
/* A name for items in pieces: as rv__entry_serial(), and no entry has it. */
uint64_t rv__view_items_serial(const struct rv__view *view);

/* What its state depends on, {name: value}, by its access: `explicit` and `all`. An errored dependency is
 * {"error": {"message"}}, one that never ran null. {} where there is no state. */
int rv__view_inputs(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err);

/* Is that the attachment of something that its state depends on, as it was when the attempt began? */
bool rv__view_given(const struct rv__view *view, struct rv__str attachment);

/* Its parts as JSON; the steps in order of execution, each alias once. `rows` may be NULL: then an
 * iteration list or a value in them is RV_ENOTFOUND. */
int rv__view_steps(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err);
int rv__view_last(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                  rv_error *err);

/* One entry of it: the newest of that alias, or NULL; its parts. */
const struct rv__entry *rv__view_find(const struct rv__view *view, struct rv__str alias);
struct rv__entry *rv__entry_ref(struct rv__entry *entry); /* counted; immutable. NULL is allowed */
void rv__entry_unref(struct rv__entry *entry);            /* NULL is allowed. Thread: any */
const struct rv__entry *rv__entry_before(const struct rv__entry *entry); /* in its scope; or NULL */
/* The same, of an entry of the view's scope; NULL: the view shows no more. */
const struct rv__entry *rv__view_before(const struct rv__view *view, const struct rv__entry *entry);
struct rv__str rv__entry_alias(const struct rv__entry *entry);
int64_t rv__entry_number(const struct rv__entry *entry); /* of a turn or call of a chat; 0: none */
const struct rv__node *rv__entry_node(const struct rv__entry *entry);
enum rv__status rv__entry_status(const struct rv__entry *entry);
int rv__entry_state(const struct rv__entry *entry, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err);
/* The state if it is at hand: its text, "none" for {}. False: it is to be assembled by the one above. */
bool rv__entry_state_here(const struct rv__entry *entry, struct rv__str *ret);
int rv__entry_result(const struct rv__entry *entry, struct rv__row_source *rows,
                     struct rv__buf *out, rv_error *err);
/* A step's result as it is kept, borrowed, perhaps a reference; NULL is null. A supervisor's is
 * assembled each time. */
struct rv__blob *rv__entry_blob(const struct rv__entry *entry);
bool rv__entry_assembled(const struct rv__entry *entry);
/* Why it failed: {message, code?, exitCode?, path, …}, borrowed and never a reference; NULL: it did not. */
struct rv__blob *rv__entry_error(const struct rv__entry *entry);
uint64_t rv__entry_serial(
    const struct rv__entry *entry); /* no other entry of this process has it */
/* The entries of it that no newer one of their name hides, in order of execution: an array of *count
 * for rv__free(). NULL: no memory. Linear. */
const struct rv__entry **rv__view_entries(const struct rv__view *view, size_t *count);

#endif
