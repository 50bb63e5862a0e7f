/* flow.h: the state machine of a run. It decides what happens next.
 *
 * A run's state is a *cell*: a tree of actors, one for each active node and body. The caller sends
 * messages; flow returns *facts*, outcomes in the past tense, and applies them to the cell. Facts are
 * written to disk: applying them to an empty cell restores the cell.
 *
 * No I/O, no clock, no thread: time and randomness come with the message. Same messages, same facts.
 *
 * A turn is: rv__flow_send() for each message, rv__flow_grant() for each free place, then
 * rv__flow_pump() until nothing is left to do (or there are enough facts for this turn). Then the
 * facts are made durable, and after that the effects are carried out (rv__cell_effect).
 *
 *   message ──▶ decide ──▶ fact ──▶ evolve ──▶ cell ──▶ effects, wants
 *                                     ▲
 *                     journal ────────┘  (recovery: the same evolve)
 *
 * Every fact leaves the cell consistent, and the next step can be derived from the cell alone. So a
 * turn may be cut after any fact (out of memory, enough facts, a crash): the next pump continues. */
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
    RV__TURN_FACTS = 256,     /* a pump stops after this many, so that no run holds the loop */
    RV__TURN_BYTES = 8 << 20, /* or after this many bytes of facts and rows */
    RV__MAX_CRASHES = 3,      /* default: a step to blame for more crashes suspends its run */
    /* work in flight in this many deaths of a shared process is a suspect */
    RV__SUSPECT_DEATHS = 2,
    /* of the result (or error) of a state whose agent gives no description, as its description */
    RV__SUMMARY_BYTES = 2000,
};

/* A longer text leaves the cell and goes to the store: a *value*. A text up to this length is written with
 * each fact, snapshot and row that has it; a longer one only once. The simulator uses a smaller limit. */
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
    EVAL_INPUT, /* of a nested workflow; of a step: what a function makes of its parameters */
    EVAL_DESCRIPTION, /* of a completed node; the attempt of a step evaluates its own, unless it is a function */
    EVALS,
};
const char *rv__eval_name(enum rv__eval eval);

/* Where work is done, and which pool of places it uses. Neither plans nor snapshots name lanes. */
enum rv__lane {
    LANE_NONE,     /* needs no place: a delay, a signal, an empty body */
    LANE_FUNCTION, /* functions on threads of this process */
    LANE_HOST,     /* functions in host processes */
    LANE_IO,       /* command */
    LANE_EVAL,     /* expressions */
    LANE_HTTP,     /* http, turns of a chat: limited by file descriptors */
    LANE_SUSPECT, /* functions that may have killed the engine: one at a time, besides all others */
    LANE_NOBODY,  /* functions that no process offers now: they wait, and get no place */
    LANE_WORKER, /* functions of workers: the first of RV__WORKER_LANES, one for each set of workers */
    LANE_LIMIT = LANE_WORKER +
                 8, /* turns of a chat whose provider has limits: the first of RV__LIMIT_LANES */
    LANES = LANE_LIMIT + 4,
};
enum { RV__WORKER_LANES = LANE_LIMIT - LANE_WORKER, RV__LIMIT_LANES = LANES - LANE_LIMIT };

static inline bool rv__lane_is_worker(enum rv__lane lane)
{
    return lane >= LANE_WORKER && lane < LANE_LIMIT;
}
static inline bool rv__lane_is_limit(enum rv__lane lane)
{
    return lane >= LANE_LIMIT;
}

/* ------------------------------------------------------------------------------ messages --- */

enum rv__msg_kind {
    MSG_DONE,   /* work is done: result, state, skipped; an evaluation: its value is `result` */
    MSG_FAILED, /* work failed: error, state, behavior … */
    MSG_PARK,   /* an attempt is pending: handle; or it waits: until due, or for signal `name` */
    MSG_NOTE, /* an attempt has ended and leaves `note` for the next one, which has the same number: at once, or
                    once the signal `name` has come, which it gets as its answer */
    MSG_TIMER, /* the timer of the actor fell due: an attempt's time-out, a retry, a wait */
    MSG_LOST,  /* work was not done: it never began, or (crash) its process died. blame: it was
                    alone in that process, and error says how that died; shared: it was not alone */
    MSG_GIVEN, /* input of an attempt that is still running, in `given` */
    MSG_READ, /* work in flight has read `name` through `by`. RV_ENOTFOUND: it is no longer in flight */
    MSG_ANSWER, /* the handle `name` was completed: as MSG_DONE, or with `error` as MSG_FAILED */
    MSG_SIGNAL, /* a signal `name` with `result` as its payload */
    MSG_CANCEL,
    MSG_SUSPEND, /* suspend the run as a whole: `error` says why. Ignored if it has ended or is suspended so */
    MSG_RESUME, /* a decision about a suspension: `name` is its path (none: all suspensions); `error`
                    (may be NULL) is the reason, recorded with the reason of the suspension as its
                    "cause" */
    MSG_ABORT,  /* the same; the run fails with that error */
    MSG_SKIP,   /* the same for a state: it has failed, and its stage goes on */
    MSG_RESTART, /* the same for a state: its stage starts again */
    MSG_KINDS,
};
const char *rv__msg_kind_name(enum rv__msg_kind kind);

enum rv__behavior {
    BEHAVIOR_PLAIN,
    BEHAVIOR_STOP,
    BEHAVIOR_CONTINUE,
    BEHAVIOR_RETRY,
    BEHAVIOR_FINAL, /* as plain, but retried only if the step's retryOn lists it */
    BEHAVIOR_LATER, /* not possible now: retry after wait_ms, without using up an attempt */
};

/* Blobs are borrowed; each is exactly one JSON value that passed rv__json_check(), without surrounding
 * white space. Fields that a kind does not use are zero. */
struct rv__msg {
    enum rv__msg_kind kind;
    int64_t now_ms;
    uint64_t actor;          /* addressee, for messages about one piece of work; and */
    uint64_t token;          /* its token when the work was sent out; a stale one is dropped */
    struct rv__blob *result; /* JSON; NULL = null */
    struct rv__blob *state;  /* a JSON object; NULL = {} */
    struct rv__blob *error; /* a JSON object with at least "message"; flow adds where it happened */
    /* The input of an attempt, a JSON object, without the parts sent with MSG_GIVEN before. It is recorded
     * for people and changes nothing. NULL: nothing. */
    struct rv__blob *given;
    struct rv__blob *
        note; /* MSG_NOTE: a JSON object; {"ask": {"message"?, "schema"?}} is what the signal is for */
    /* of a handle or a signal; for a decision: the path of the suspension; MSG_READ: what was read */
    struct rv__str name;
    bool skipped;
    enum rv__behavior behavior;
    int max_attempts; /* of a retry step error; 0 = not set */
    int backoff;      /* of a step error: 1 + enum rv__backoff; 0 = not set */
    int64_t wait_ms;  /* MSG_FAILED: a retry waits at least this long; LATER: exactly this long */
    double chance;    /* [0,1), for jitter */
    int64_t due_ms;   /* MSG_PARK: until when; 0 = its time-out, if it has one */
    bool crash, blame, shared; /* MSG_LOST; a clean shutdown takes work back with none of these */
    int64_t down_ms;   /* MSG_LOST: when the engine's process was last seen alive; 0: unknown */
    bool force;        /* MSG_SIGNAL: keep it even if no step of the plan waits for that name */
    struct rv__str by; /* who sent it, for people: recorded with the facts. None: no name */
};

/* --------------------------------------------------------------------------------- facts --- */

enum rv__fact_kind {
    FACT_RUN_STARTED,
    FACT_RUN_COMPLETED,
    FACT_RUN_FAILED,
    FACT_RUN_CANCELLING, /* everything active is cancelled, and its `finally` runs next. During `finally` this
                            changes nothing, but the next cancel ends it */
    FACT_RUN_CANCELLED, /* everything active is cancelled with it */
    FACT_RUN_SUSPENDED, /* because of an actor, or of a state of a stage; or (0) as a whole */
    FACT_RUN_RESUMED, /* one suspension was decided; others may be left. (0): that of the whole run, or its
                         reason no longer exists */
    FACT_RUN_ABORTED, /* its sequence fails; run.failed follows, after the handler */
    FACT_EVAL_STARTED,
    FACT_EVAL_COMPLETED,
    FACT_EVAL_FAILED,  /* of an input or a description; elsewhere the node fails with it */
    FACT_NODE_STARTED, /* a supervisor begins */
    FACT_NODE_COMPLETED,
    FACT_NODE_FAILED,   /* everything active below it is cancelled; also with completed (join) */
    FACT_NODE_SKIPPED,  /* its `when` was false; a stage after the final one: it never starts */
    FACT_NODE_RETRYING, /* a chat: its conversation is abandoned; a new one starts when it is due */
    FACT_BODY_STARTED,  /* an iteration, a child, a branch's path, a workflow's sequence */
    FACT_BODY_ENDED,
    FACT_STEP_STARTED, /* an attempt; for a delay or a signal: the wait */
    FACT_STEP_COMPLETED,
    FACT_STEP_SKIPPED,
    FACT_STEP_FAILED,
    FACT_STEP_RETRYING,
    FACT_STEP_PARKED,
    FACT_STEP_NOTED, /* its attempt left a note for the next one; or (taken) the signal that it waited for is there */
    FACT_STEP_LOST,
    FACT_STEP_GIVEN,  /* input of an attempt that still runs; the fact of its end has the rest */
    FACT_STEP_READ,   /* work in flight has read `name` of its run, through `by` */
    FACT_TIMER_FIRED, /* of a retry: it now waits for a place, or its chat starts again */
    FACT_SIGNAL_RECEIVED,
    FACT_DETACHED_ENDED,     /* a detached block has nothing left to do */
    FACT_DETACHED_CANCELLED, /* all of them, after the run's end */
    FACT_KINDS,
};
const char *rv__fact_kind_name(enum rv__fact_kind kind); /* "step.completed", … */

/* What happens to a state after an attempt has ended. */
enum rv__next {
    NEXT_NONE,     /* it is not a state */
    NEXT_DONE,     /* it has completed */
    NEXT_FINAL,    /* the same, and nothing new starts after it */
    NEXT_RETRY,    /* it is queued again */
    NEXT_REDIRECT, /* the same, after another state has run */
    NEXT_ERRORED,  /* it has failed, and its stage goes on */
    NEXT_SUSPEND,  /* it was critical: a decision is needed */
    NEXTS,
};
const char *rv__next_name(enum rv__next next);

enum rv__decision { DECISION_RESUME, DECISION_SKIP, DECISION_RESTART, DECISION_ABORT, DECISIONS };
const char *rv__decision_name(enum rv__decision decision); /* "resume", …, "restart_stage" */

/* A fact in memory. It holds its blobs (rv__fact_done). `result`, `state` and `given` may be references: such a
 * text is not in the fact; it is a value of the run. */
struct rv__fact {
    enum rv__fact_kind kind;
    uint64_t actor; /* the actor it is about; for a new one: the next id of the cell */
    uint64_t owner; /* the owner of the new actor; 0: the actor exists already */
    uint32_t node;  /* its plan node; of a body: its owner's; RV__NO_NODE: the outermost */
    int64_t index;  /* body: which iteration or child; run.started: unused */
    int64_t at_ms;
    int64_t due_ms;
    int attempt; /* step.started, node.retrying, and of a state or turn body.started: from 1; of an end only when it was
                            read, 0: none said */
    int64_t
        generation; /* body.started of a state: the number of this attempt over all starts of the stage, from
                           1; of a turn or call its rv__chat_number; 0: neither */
    uint32_t which;      /* run.suspended, run.resumed: the state + 1; 0: none */
    uint32_t to;         /* body.ended with NEXT_REDIRECT: the state + 1 */
    int next;            /* body.ended: enum rv__next */
    int decision;        /* run.resumed: enum rv__decision */
    int64_t left;        /* run.resumed: how many suspensions are left */
    int64_t limit;       /* run.started: attempts at once in a stage; 0: as in the plan */
    int eval;            /* enum rv__eval */
    int status;          /* body.ended: enum rv__status */
    bool hard;           /* step.failed: it fails its sequence */
    bool suspect, blame; /* step.lost: it is a suspect from now on; it is to blame for this death */
    bool crash;          /* step.lost: with its process */
    int64_t down_ms; /* step.lost: when its process was last seen alive; for readers. 0: unknown */
    int deaths;      /* step.lost: deaths of shared processes while it was in flight; 0: unknown */
    bool taken;      /* step.completed, step.noted: it took a signal */
    bool hosted;     /* step.started: in a process other than the engine's */
    bool cut;        /* step.started, step.parked: a delay whose time-out is due before its end */
    bool describe;   /* step.completed, node.completed: its description is evaluated next */
    uint64_t nonce;  /* run.started: see rv__cell_opts */
    uint64_t module; /* step.started: see rv__cell_opts; 0: none */
    struct rv__blob *result, *state, *error, *name;
    struct rv__blob *given; /* input of an attempt, for readers. The cell does not keep it */
    struct rv__str by;      /* who caused it, for readers. Set only while the fact is written */
    struct rv__blob *turn;  /* step.completed, of a turn: what it means for its chat */
    struct rv__blob *note;  /* step.noted: see struct rv__msg */
    struct rv__items
        *items; /* eval.completed: a long array of items, in pieces; then no `result` */
    /* of a state that is a reference: for readers, which need not fetch the state then */
    struct rv__blob *description;
};
#define RV__NO_NODE UINT32_MAX

void rv__fact_done(struct rv__fact *fact);

/* The facts of a turn, as they are written to disk: a JSON array without its brackets. */
struct rv__facts {
    struct rv__buf json;
    size_t count;
    /* Other data of the same transaction: iterations, finished or ended early. */
    struct rv__row *rows;
    size_t row_count, row_cap, row_bytes;
    int64_t next_attachment; /* number of the next one that the current fact leaves */
    struct rv__value *values;
    size_t value_count, value_cap;
    struct rv__logged_failure *logged_failures; /* failures that appear only in the log */
    size_t logged_failure_count, logged_failure_cap;
    uint32_t said[FACT_KINDS]; /* how many of each kind */
};

/* A failure that appears only in the log, because it changes nothing: of a handler, or of a detached child; or a
 * redirect that starts nothing, because its target is running. */
struct rv__logged_failure {
    const struct rv__node *node; /* what failed; */
    const struct rv__body
        *body; /* in which detached child, or which state; NULL: it is a handler */
    const struct rv__body *target; /* of a redirect; else NULL */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    int attempt;
    struct rv__blob *error; /* held */
};

/* An iteration of a forEach or of a loop that keeps all. It leaves the cell when it has ended, or when it is
 * ended from outside and has finished nodes. */
struct rv__row {
    uint32_t node;
    struct rv__str key; /* node and vector as text: "4/3.0", unique in the run; see rv__row_key */
    int64_t index;
    struct rv__str json; /* {"item":…,"index":…,"results":{…}}; nested iterations are not in it, and
                            values stand in it as references: see write.c */
};

/* Rows of attachments have a key of their own, and are numbered from 1 in the order in which attempts ended. Starting a
 * stage again is a row too: attachments of that stage (`o`) whose attempt's actor (`a`) is below `n` are superseded. */
#define RV__ATTACHMENT_KEY "attachments"
#define RV__ANEW_KEY       "stages anew"

enum rv__attachment_status {
    ATTACHMENT_INIT, /* its attempt has started, but no agent runs yet; this and the next have no row */
    ATTACHMENT_RUNNING, /* its agent runs */
    ATTACHMENT_FINISHED,
    ATTACHMENT_ERRORED,
    ATTACHMENT_SKIPPED, /* its agent skipped it */
};
const char *rv__attachment_status_name(enum rv__attachment_status status);

/* The contents of a row of an attachment, which passed rv__json_check(): its result, appended as JSON, nothing if
 * it has none; its description: what its agent said, else the beginning of its result or error, else null.
 * RV_ESTORE: it does not fit the plan. */
int rv__attachment_result(const struct rv__plan *plan, struct rv__str row,
                          struct rv__row_source *rows, struct rv__buf *out, rv_error *err);
int rv__attachment_description(const struct rv__plan *plan, struct rv__str row,
                               struct rv__row_source *rows, struct rv__buf *out, rv_error *err);

/* A long text that left the cell with a fact. Work that reads it starts after the commit. */
struct rv__value {
    uint64_t number; /* unique in the run, from 1 */
    struct rv__blob *json;
};

void rv__facts_init(struct rv__facts *facts);
void rv__facts_reset(struct rv__facts *facts); /* for the next turn; keeps memory */
void rv__facts_done(struct rv__facts *facts);
/* Drop the failures to log, from this index on: they were logged, or their facts were taken back. */
void rv__facts_drop_failures(struct rv__facts *facts, size_t from);

/* A nonce or hash as JSON text, sixteen digits in quotes, and back. RV_EINVAL: it is not one. */
void rv__hash_text_write(uint64_t number, struct rv__buf *out);
int rv__hash_text_read(struct rv__str json, uint64_t *ret);

/* Read one fact of a journal row. Its form is checked here; rv__cell_replay checks it against the cell. */
int rv__fact_read(struct rv__str json, struct rv__fact *ret, rv_error *err);

/* --------------------------------------------------------------------------------- cells --- */

struct rv__cell_opts {
    const struct rv__plan *plan; /* borrowed; must outlive the cell */
    int max_crashes;             /* 0 = RV__MAX_CRASHES */
    size_t value_inline; /* 0 = RV__VALUE_INLINE; at least 8. Replay does not depend on it */
    int turn_facts;      /* 0 = RV__TURN_FACTS: a pump stops after so many */
    /* The lane of a function: LANE_FUNCTION, LANE_HOST, a lane of workers, or LANE_NOBODY while no process has it. For
     * a command: LANE_NOBODY while the file of its workflow is missing; any other lane if it is not. For the turn of a
     * chat: a lane of limits while its provider has any; any other lane if not. Called when
     * something starts to wait for its place. `eval`: enum rv__eval; -1: the attempt of the step. `body`: whose
     * input is evaluated; NULL: no body's. The journal records that an attempt began in a host, so that after a
     * crash one can find what was in the process that died. NULL: LANE_FUNCTION for all. */
    enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval,
                          const struct rv__body *body);
    void *arg;
    /* For a new run: a random number. It is recorded, and is part of the idempotency keys of its steps: a
     * later run with the same id has other keys. */
    uint64_t nonce;
    int64_t limit;     /* for a new run: attempts at once in each stage; 0 = as in its plan */
    struct rv__str by; /* for a new run: who started it. None: no name */
    /* The hash of the module that has the step's function now. It is recorded with each attempt, to know later
     * which code ran. 0: none. NULL: 0 for all. Called with `arg`, like `lane`. */
    uint64_t (*module)(void *arg, const struct rv__node *node);
};

/* Start a new run. The first fact is run.started. `input` is borrowed (NULL = null). */
int rv__cell_start(const struct rv__cell_opts *opts, struct rv__blob *input, int64_t now_ms,
                   struct rv__facts *facts, struct rv__cell **ret, rv_error *err);

/* Restore a run from its journal: an empty cell, then rv__cell_replay() for each fact. A fact that does not
 * fit is RV_ESTORE, and the error says why; the cell is then as before that fact. No effects are produced. */
int rv__cell_empty(const struct rv__cell_opts *opts, struct rv__cell **ret, rv_error *err);
int rv__cell_replay(struct rv__cell *cell, const struct rv__fact *fact, rv_error *err);
int rv__cell_replay_json(struct rv__cell *cell, struct rv__str facts_json /* comma-separated */,
                         rv_error *err);
/* The same, and add the rows of iterations that end in it to `rows`, as they were when the facts were
 * written: for callers that have only the facts. */
int rv__cell_replay_rows(struct rv__cell *cell, struct rv__str facts_json, struct rv__facts *rows,
                         rv_error *err);

/* Use this function for lanes from now on, and put everything that waits into its lane again, in order of
 * arrival: lanes may have been unknown when the cell was loaded, and functions come and go. RV_OK: it needs
 * no memory. */
int rv__cell_lanes(struct rv__cell *cell,
                   enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval,
                                         const struct rv__body *body),
                   void *arg);

/* The whole state as JSON text, and back. Two cells with the same text are equal, and behave alike if
 * they get the same messages and places, whatever `lane` returns. */
int rv__cell_save(struct rv__cell *cell, struct rv__buf *out, rv_error *err);
int rv__cell_load(const struct rv__cell_opts *opts, struct rv__str json, struct rv__cell **ret,
                  rv_error *err);

void rv__cell_free(struct rv__cell *cell); /* NULL is allowed */

/* Deliver a message. RV_OK: it was taken (or it was stale: then there is no fact). RV_ENOMEM: not taken, nothing
 * changed: send it again. MSG_READ: RV_ENOTFOUND if the work is not in flight. MSG_ANSWER: RV_ENOTFOUND if no step
 * waits for the handle. MSG_SIGNAL: RV_ESTATE if nothing of the run is active, RV_EUNWANTED if no step of the plan
 * waits for that name (the error lists the names). A decision: RV_ESTATE if the run is not suspended, if there are
 * several suspensions and none is named, if there is none at the path, or if this decision is not possible there. */
int rv__flow_send(struct rv__cell *cell, const struct rv__msg *msg, struct rv__facts *facts,
                  rv_error *err);

/* A place is free in `lane`: start one piece of work that waits for it. 1: started, and the place is
 * taken: an effect of its actor carries it; 0: nothing waits (in LANE_NOBODY nothing ever starts);
 * RV_ENOMEM. */
int rv__flow_grant(struct rv__cell *cell, enum rv__lane lane, int64_t now_ms,
                   struct rv__facts *facts, rv_error *err);
/* The same for a place of a particular worker, or within a particular limit: the effect carries its number, the ticket
 * (0: none). */
int rv__flow_grant_ticket(struct rv__cell *cell, enum rv__lane lane, uint32_t ticket,
                          int64_t now_ms, struct rv__facts *facts, rv_error *err);

/* Do everything that follows from the facts so far and needs no message. 0: nothing is left to do; 1: there
 * is more, but these are enough facts; RV_ENOMEM: there is more, but no memory. */
int rv__flow_pump(struct rv__cell *cell, int64_t now_ms, struct rv__facts *facts, rv_error *err);

/* --------------------------------------------------------------- what the outside owes it --- */

/* The outside owes an actor at most one thing at a time: an effect replaces the actor's previous one, which
 * must be aborted if it is still under way. */
enum rv__effect_kind {
    EFFECT_START, /* do this work: a step's attempt, or an evaluation */
    EFFECT_WAIT,  /* arm a timer: MSG_TIMER at due_ms */
    EFFECT_STOP,  /* nothing is owed any more */
};

struct rv__effect {
    enum rv__effect_kind kind;
    uint64_t actor, token;
    const struct rv__node *node; /* NULL: the input of the outermost or a wrapped body */
    int eval;                    /* START: -1 = an attempt; else enum rv__eval */
    const struct rv__body *body; /* START: whose input is evaluated; NULL: no body's */
    int64_t due_ms;              /* WAIT */
    int64_t timeout_ms; /* START: of the attempt, from when an executor starts it; 0 = none */
    bool hosted;        /* START: in a process other than the engine's */
    enum rv__lane
        place; /* START: the place it was given. WAIT, STOP: a place that it was given and does
                                    not need: return it. LANE_NONE: none. Each is carried once */
    uint32_t ticket; /* of that place */
    /* The note of an attempt that no other attempt takes up any more, or NULL: what it tells of is to be given up.
     * Valid until the next call. A crash may lose it. */
    const struct rv__blob *unused_note;
};

/* The next effect of the facts since the last call; false: no more. Take them after the commit, and all of
 * them before the cell is freed, because they carry places. Until then a message to the actor is stale. */
bool rv__cell_effect(struct rv__cell *cell, struct rv__effect *ret);

/* Everything that is owed now, derived from the state: for recovery. Calls `owed` for each; no STOPs, and no
 * places: those belonged to a process that has died. */
void rv__cell_outstanding(const struct rv__cell *cell,
                          void (*owed)(void *arg, const struct rv__effect *effect), void *arg);

bool rv__cell_idle(const struct rv__cell *cell); /* nothing in it can be done now */
/* Its earliest timer; 0 = none, or it has work. Visits all its actors. */
int64_t rv__cell_wake_ms(const struct rv__cell *cell);
/* The work that is owed to it. Free the effects with rv__free(). */
struct rv__started {
    struct rv__effect *effects;
    size_t count, cap;
    bool no_memory; /* the list is incomplete */
};
struct rv__started rv__cell_started(const struct rv__cell *cell);

/* Why it makes no progress: each active actor with nothing active below it, and everything that has not started
 * because of a limit, each with the one thing it waits for. */
enum rv__wait_kind {
    WAIT_WORK, /* its work, which is in flight: an attempt, or an evaluation (`eval`) */
    WAIT_PLACE, /* a place in `lane` for `work`; in LANE_NOBODY: a process that has the function `name` */
    WAIT_LIMIT,    /* the `limit` of its forEach: `count` more iterations */
    WAIT_TIMER,    /* its time: `due_ms` */
    WAIT_RETRY,    /* the same, for its next `attempt` */
    WAIT_SIGNAL,   /* a signal `name`, until `due_ms` if that is not 0 */
    WAIT_HANDLE,   /* the completion of `name`; the same */
    WAIT_DECISION, /* the run is suspended */
    WAIT_TURN,     /* nothing: it continues with the next pump */
};

struct rv__wait {
    enum rv__wait_kind kind;
    uint64_t actor;
    const struct rv__node *node; /* NULL: the outermost sequence */
    const struct rv__node *work; /* PLACE: the step that its first work is of, or an evaluation */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    enum rv__lane lane;
    int eval; /* -1: none */
    int attempt;
    int64_t due_ms, count, limit;
    struct rv__str name;
    bool
        needs_file; /* PLACE, in LANE_NOBODY: `name` is a workflow whose file is missing, no function */
    struct rv__str
        note; /* SIGNAL: of the attempt that asked for it; none: it is a signal of the plan */
    struct rv__str cause; /* DECISION: the reason of the suspension, and since when it waits */
    int64_t since_ms;
};
void rv__cell_waits(const struct rv__cell *cell,
                    void (*waits)(void *arg, const struct rv__wait *wait), void *arg);

/* Does work wait for a place in this lane? (False while the run is suspended.) */
bool rv__cell_wants(const struct rv__cell *cell, enum rv__lane lane);
/* The work that gets the next place in this lane, and the lane it would have if it were not a suspect. False:
 * nothing waits. */
bool rv__cell_first(const struct rv__cell *cell, enum rv__lane lane, const struct rv__node **node,
                    int *eval, const struct rv__body **body, enum rv__lane *plain);
/* Is the first one that waits in LANE_SUSPECT already to blame for a death? Those come first. */
bool rv__cell_blamed(const struct rv__cell *cell);
/* How many pieces of work are in flight: started by EFFECT_START and not answered. */
size_t rv__cell_working(const struct rv__cell *cell);
/* Would rv__flow_pump() do something? */
bool rv__cell_more(const struct rv__cell *cell);
/* The note of the attempt that waits for the signal `name`; none: no attempt does. */
struct rv__str rv__cell_asked(const struct rv__cell *cell, struct rv__str name);
/* Does it wait for a person: is it suspended, or does one of its steps wait for a signal? */
bool rv__cell_waits_for_somebody(const struct rv__cell *cell);
/* Is anything active in it? Detached children outlive the run's end. */
bool rv__cell_active(const struct rv__cell *cell);

/* ------------------------------------------------------------------------------- reading --- */

enum rv__run_status rv__cell_status(const struct rv__cell *cell);
const struct rv__plan *rv__cell_plan(const struct rv__cell *cell);
struct rv__str rv__cell_error(const struct rv__cell *cell);       /* raw JSON; none if none */
struct rv__str rv__cell_failed_step(const struct rv__cell *cell); /* an alias; none if none */
/* The path of the deepest node that failed the run, from the error; none if none. The second function: from
 * any error of a node or a run. */
struct rv__str rv__cell_failed_path(const struct rv__cell *cell);
struct rv__str rv__error_path(struct rv__str error);
/* Why it is suspended, the first reason: raw JSON; none. The oldest suspensions, `most` of them, as
 * [{"path"?, "reason", "since", "actions"}], oldest first; nothing is appended if there are none. RV_ENOMEM. */
struct rv__str rv__cell_suspension(const struct rv__cell *cell);
int rv__cell_suspensions(const struct rv__cell *cell, size_t most, struct rv__buf *out,
                         rv_error *err);
size_t rv__cell_actors(const struct rv__cell *cell);   /* active ones */
uint64_t rv__cell_stale(const struct rv__cell *cell);  /* messages dropped */
size_t rv__cell_bytes(const struct rv__cell *cell);    /* approximate memory of the cell */
uint64_t rv__cell_values(const struct rv__cell *cell); /* the last number used for a value */

/* Data that has left the cell for the store. Both functions return what rv__facts had to be written, as JSON
 * that passed rv__json_check(). */
struct rv__row_source {
    /* Finished iterations under `key` with an index above `after` (-1: all), by index: as many as are convenient
     * at once, and at least one, if there is any. Appends their JSON, comma-separated; *last is the index of
     * the last one. 1: there may be more; 0: there are no more. */
    int (*rows)(struct rv__row_source *self, struct rv__str key, int64_t after, struct rv__buf *out,
                int64_t *last, rv_error *err);
    /* The text of a value; the caller gets one reference. */
    int (*value)(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                 rv_error *err);
};

/* {alias: {result, state, status, error?}} of the top-level nodes reached so far, nested ones inside
 * their node's result, iterations and values fetched from `rows`. The node that is running has no
 * result yet.
 *
 * RV_ETOOBIG: it is longer than the limit of `out`, which is then unchanged; *bytes (unless NULL) is its
 * length. No more than `out` and a page of rows is ever in memory. */
int rv__cell_results(const struct rv__cell *cell, struct rv__row_source *rows, struct rv__buf *out,
                     uint64_t *bytes, rv_error *err);

/* What a piece of work can read. Holds references to it; free with rv__view_done(). May be read on another
 * thread than the cell's. */
struct rv__view {
    const struct rv__node *node;
    const struct rv__body *body; /* the body whose input is evaluated; else NULL */
    struct rv__blob *input;
    struct rv__blob *made; /* an attempt's: what the function of its `input` has made; else NULL */
    struct rv__blob *note; /* an attempt's: what the one before it left; else NULL; */
    struct rv__blob *answer; /* and the payload of the signal that it asked for; NULL: none */
    struct rv__entry *scope; /* newest first */
    const struct rv__body
        *fence; /* only entries inside this state may be read, also for `last`; NULL: all of them */
    struct rv__entry *last;
    /* the node whose description a template makes; else NULL. A function sees it as the last step */
    struct rv__entry *ended;
    struct rv__blob *items; /* of the forEach, if that is the innermost iteration */
    struct rv__str item;    /* a slice of items */
    struct rv__items
        *pieces;        /* instead of these two, if the items are values; see rv__view_item() */
    int64_t loop_index; /* of the innermost forEach or loop; -1: none */
    /* the next iteration outwards: only the four members above, and its parent. NULL: none */
    struct rv__view *parent;
    int attempt;
    uint64_t actor, token;
    uint64_t nonce; /* of the run */
    int64_t vector[RV__PLAN_MAX_DEPTH];
    const struct rv__node *handler;     /* the handler that it is or is in; NULL: none */
    enum rv__run_status outcome;        /* of the run it handles; running, if it handles a step */
    struct rv__blob *error;             /* the error; NULL: a finally without an error */
    const struct rv__node *failed_node; /* the node that failed with it */
    struct rv__blob *failed_state;      /* and its state */
    /* the state of a stage whose agent it is, or is in; NULL: none, or it was detached and outlives it */
    const struct rv__body *state;
    int state_attempt;            /* of that state, from 1 */
    struct rv__inner *inputs;     /* the dependencies of that state when the attempt began */
    struct rv__blob *state_error; /* how that state failed before; NULL: it did not */
    int64_t
        chat_number; /* of the turn that it is, or of the call whose input it evaluates; 0: neither */
    /* of its chat: the turns and calls that have ended, newest first, while rv__entry_number() is not 0;
     * NULL: none */
    struct rv__entry *talk;
};
/* Errors: RV_ENOTFOUND: this work is not owed any more; RV_ENOMEM. */
int rv__cell_view(const struct rv__cell *cell, uint64_t actor, uint64_t token,
                  struct rv__view *ret);
void rv__view_done(struct rv__view *view);

/* Resolve a text that may be a reference, from the source if needed. The caller gets a reference to *ret. NULL gives
 * NULL. */
int rv__blob_get(struct rv__blob *blob, struct rv__row_source *rows, struct rv__blob **ret,
                 rv_error *err);

/* The item of its iteration: *ret points into *hold, to be given to rv__blob_unref(), or into the view
 * (NULL). All items, as an array. RV_ENOTFOUND: it is not in a forEach. */
int rv__view_item(const struct rv__view *view, struct rv__row_source *rows, struct rv__blob **hold,
                  struct rv__str *ret, rv_error *err);
int rv__view_items(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err);
/* An identity for items in pieces: like rv__entry_serial(), and different from every entry's. */
uint64_t rv__view_items_serial(const struct rv__view *view);

/* The dependencies of its state, {name: value}, if its access is `explicit` or `all`. A dependency that errored is
 * {"error": {"message"}}, one that never ran null. {} if there is no state. */
int rv__view_inputs(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err);
/* The same with the description of each (never null, unless its result is), whatever it gets of them. */
int rv__view_descriptions(const struct rv__view *view, struct rv__row_source *rows,
                          struct rv__buf *out, rv_error *err);

/* Was this attachment one of the inputs of its state when the attempt began? */
bool rv__view_given(const struct rv__view *view, struct rv__str attachment);

/* Its parts as JSON; the steps in order of execution, each alias once. `rows` may be NULL: then a list of
 * iterations or a value in them is RV_ENOTFOUND. */
int rv__view_steps(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err);
int rv__view_last(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                  rv_error *err);

/* One entry: the newest with this alias, or NULL; its parts. */
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
/* The state if it is in memory: its text, "none" for {}. False: use rv__entry_state(). */
bool rv__entry_state_here(const struct rv__entry *entry, struct rv__str *ret);
int rv__entry_result(const struct rv__entry *entry, struct rv__row_source *rows,
                     struct rv__buf *out, rv_error *err);
/* A step's result as it is stored, borrowed, possibly a reference; NULL is null. The result of a supervisor is
 * assembled each time. */
struct rv__blob *rv__entry_blob(const struct rv__entry *entry);
bool rv__entry_assembled(const struct rv__entry *entry);
/* Why it failed: {message, code?, exitCode?, path, …}, borrowed and never a reference; NULL: it did not. */
struct rv__blob *rv__entry_error(const struct rv__entry *entry);
uint64_t rv__entry_serial(
    const struct rv__entry *entry); /* no other entry of this process has it */
/* The entries that no newer one with the same name hides, in order of execution: an array of *count
 * for rv__free(). NULL: no memory. Linear. */
const struct rv__entry **rv__view_entries(const struct rv__view *view, size_t *count);

#endif
