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
    LANE_IO,       /* command, chat, tool */
    LANE_EVAL,     /* expressions */
    LANE_HTTP,     /* as many as there are descriptors for */
    LANE_SUSPECT,  /* functions that may have killed the engine: one at a time, beside all others */
    LANE_NOBODY,   /* functions that nobody offers now: they wait, and get no place here */
    LANES,
};

/* ------------------------------------------------------------------------------ messages --- */

enum rv__msg_kind {
    MSG_DONE,   /* work is done: result, state, skipped; of an evaluation: its value in `result` */
    MSG_FAILED, /* work failed: error, state, behavior … */
    MSG_PARK,   /* an attempt says "pending": handle; or it wants to wait: due; or signal `name` */
    MSG_TIMER,  /* the timer of the actor fell due: an attempt's time-out, a retry, a wait */
    MSG_LOST,   /* it is not done: it never began, or (crash) its process died. blame: it had that
                    process to itself, and error says how it died; shared: with others */
    MSG_ANSWER, /* somebody completes the handle `name`: as MSG_DONE, or with `error` MSG_FAILED */
    MSG_SIGNAL, /* a signal `name` with `result` as its payload */
    MSG_CANCEL,
    MSG_SUSPEND, /* the run as a whole stops for a decision: `error` says why. Not if it is over or has */
    MSG_RESUME, /* a decision about a suspended run */
    MSG_ABORT,  /* the other decision: `error` says why */
    MSG_KINDS,
};
const char *rv__msg_kind_name(enum rv__msg_kind kind);

enum rv__behavior { BEHAVIOR_PLAIN, BEHAVIOR_STOP, BEHAVIOR_CONTINUE, BEHAVIOR_RETRY };

/* Blobs are borrowed; each is exactly one JSON value that passed rv__json_check(), without white space
 * around it. The fields a kind does not use stay zero. */
struct rv__msg {
    enum rv__msg_kind kind;
    int64_t now_ms;
    uint64_t actor;          /* addressee, for what concerns one piece of work; and */
    uint64_t token;          /* its token at the time it was sent out: a stale one is dropped */
    struct rv__blob *result; /* JSON; NULL = null */
    struct rv__blob *state;  /* a JSON object; NULL = {} */
    struct rv__blob *error;  /* a JSON object with at least "message" */
    struct rv__str name;     /* of a handle, a signal */
    bool skipped;
    enum rv__behavior behavior;
    int max_attempts;          /* of a retry step error; 0 = not said */
    int backoff;               /* of a step error: 1 + enum rv__backoff; 0 = not said */
    int64_t wait_ms;           /* MSG_FAILED: a retry waits for at least so long */
    double chance;             /* [0,1), for jitter */
    int64_t due_ms;            /* MSG_PARK: until when; 0 = its time-out, if it has one */
    bool crash, blame, shared; /* MSG_LOST; a clean end takes work back without any */
};

/* --------------------------------------------------------------------------------- facts --- */

enum rv__fact_kind {
    FACT_RUN_STARTED,
    FACT_RUN_COMPLETED,
    FACT_RUN_FAILED,
    FACT_RUN_CANCELLED, /* everything alive is cancelled with it */
    FACT_RUN_SUSPENDED, /* for an actor's sake, or (0) as a whole */
    FACT_RUN_RESUMED,
    FACT_RUN_ABORTED, /* its sequence fails; run.failed follows, after the handler */
    FACT_EVAL_STARTED,
    FACT_EVAL_COMPLETED,
    FACT_EVAL_FAILED,  /* of an input or a description; elsewhere the node fails with it */
    FACT_NODE_STARTED, /* a supervisor begins */
    FACT_NODE_COMPLETED,
    FACT_NODE_FAILED,  /* what is alive below it is cancelled with it; so with completed (join) */
    FACT_NODE_SKIPPED, /* its `when` was false */
    FACT_BODY_STARTED, /* an iteration, a child, a branch's path, a workflow's sequence */
    FACT_BODY_ENDED,
    FACT_STEP_STARTED, /* an attempt; for a delay or a signal: the wait */
    FACT_STEP_COMPLETED,
    FACT_STEP_SKIPPED,
    FACT_STEP_FAILED,
    FACT_STEP_RETRYING,
    FACT_STEP_PARKED,
    FACT_STEP_LOST,
    FACT_TIMER_FIRED, /* of a retry: it waits for a place now */
    FACT_SIGNAL_RECEIVED,
    FACT_DETACHED_ENDED,     /* a detached block has nothing left to do */
    FACT_DETACHED_CANCELLED, /* all of them, after the run's end */
    FACT_KINDS,
};
const char *rv__fact_kind_name(enum rv__fact_kind kind); /* "step.completed", … */

/* A fact in memory. The blobs are held by it (rv__fact_done). `result` and `state` may be references:
 * such a text is not in the fact, but a value of the run. */
struct rv__fact {
    enum rv__fact_kind kind;
    uint64_t actor; /* whom it concerns; a new one: the next id of the cell */
    uint64_t owner; /* whom the new one belongs to; 0: it exists already */
    uint32_t node;  /* its plan node; of a body: its owner's; RV__NO_NODE: the outermost */
    int64_t index;  /* body: which iteration or child; run.started: unused */
    int64_t at_ms;
    int64_t due_ms;
    int attempt;         /* step.started; of an end only when it was read, 0: none said */
    int eval;            /* enum rv__eval */
    int status;          /* body.ended: enum rv__status */
    bool hard;           /* step.failed: it fails its sequence */
    bool suspect, blame; /* step.lost: from now on it is one; it is to blame for this death */
    bool crash;          /* the same: with its process */
    int deaths;    /* the same: of processes that it shared, while it was in flight; 0: not said */
    bool taken;    /* step.completed: it took a signal */
    bool hosted;   /* step.started: in a process of its own */
    bool cut;      /* step.started, step.parked: a delay whose time-out is due before its end */
    bool describe; /* step.completed, node.completed: its description is evaluated next */
    struct rv__blob *result, *state, *error, *name;
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
    struct rv__unheard *unheard; /* failures that only the log tells */
    size_t unheard_count, unheard_cap;
    uint32_t said[FACT_KINDS]; /* how many of each kind */
};

/* A failure that changes nothing, so that nobody would hear of it: of a handler, or of a detached child. */
struct rv__unheard {
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
                            values stand in it as references: see scope.c */
};

/* A long text that left the cell with a fact. The work that sees it starts after the commit. */
struct rv__value {
    uint64_t number; /* unique in the run, from 1 */
    struct rv__blob *json;
};

void rv__facts_init(struct rv__facts *facts);
void rv__facts_reset(struct rv__facts *facts); /* for the next turn; keeps memory */
void rv__facts_done(struct rv__facts *facts);
/* The unheard ones but the first `from` are told, or were not said after all. */
void rv__facts_heard(struct rv__facts *facts, size_t from);

/* Read one fact of a journal row. Checked for form here, and against the cell in rv__cell_replay. */
int rv__fact_read(struct rv__str json, struct rv__fact *ret, rv_error *err);

/* --------------------------------------------------------------------------------- cells --- */

struct rv__cell_opts {
    const struct rv__plan *plan; /* borrowed; must outlive the cell */
    int max_crashes;             /* 0 = RV__MAX_CRASHES */
    size_t value_inline; /* 0 = RV__VALUE_INLINE; at least 8. Replay does not depend on it */
    int turn_facts;      /* 0 = RV__TURN_FACTS: a pump stops after so many */
    /* Who does this function: LANE_FUNCTION, LANE_HOST, or LANE_NOBODY while it is not there? Of a command:
     * LANE_NOBODY while the file of its workflow is not there; anything else: it is. Asked
     * when something begins to wait for its place. `eval`: enum rv__eval; -1: the step's attempt. That an
     * attempt began in a host is on record, for who asks after a crash what was in the process that died.
     * NULL: LANE_FUNCTION for all. */
    enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval);
    void *arg;
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
 * changed: send it again. MSG_ANSWER: RV_ENOTFOUND if the handle is not waited for; MSG_SIGNAL:
 * RV_ESTATE if nothing of the run is alive; MSG_RESUME, MSG_ABORT: RV_ESTATE if it is not suspended. */
int rv__flow_send(struct rv__cell *cell, const struct rv__msg *msg, struct rv__facts *facts,
                  rv_error *err);

/* A place is free in `lane`: start one piece of work that waits for it. 1: started, and the place is
 * taken: an effect of its actor carries it; 0: none waits (in LANE_NOBODY nothing ever starts);
 * RV_ENOMEM. */
int rv__flow_grant(struct rv__cell *cell, enum rv__lane lane, int64_t now_ms,
                   struct rv__facts *facts, rv_error *err);

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
    bool hosted;                 /* START: it began in a process of its own */
    enum rv__lane place; /* START: the place it was given. WAIT, STOP: one that it was given and
                                    does not need: to be given back. LANE_NONE: none. Each is carried once */
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
/* Is the first that waits in LANE_SUSPECT to blame for a death already? Those come first. */
bool rv__cell_blamed(const struct rv__cell *cell);
/* How many pieces of work are in flight: what EFFECT_START asked for, and was not answered. */
size_t rv__cell_working(const struct rv__cell *cell);
/* Would rv__flow_pump() do something? */
bool rv__cell_more(const struct rv__cell *cell);
/* Is anything alive in it? Detached children outlive the run's end. */
bool rv__cell_active(const struct rv__cell *cell);

/* ------------------------------------------------------------------------------- reading --- */

enum rv__run_status rv__cell_status(const struct rv__cell *cell);
const struct rv__plan *rv__cell_plan(const struct rv__cell *cell);
struct rv__str rv__cell_error(const struct rv__cell *cell);       /* raw JSON; none if none */
struct rv__str rv__cell_failed_step(const struct rv__cell *cell); /* an alias; none if none */
struct rv__str rv__cell_suspension(const struct rv__cell *cell);  /* why: raw JSON; none */
size_t rv__cell_actors(const struct rv__cell *cell);              /* alive */
uint64_t rv__cell_stale(const struct rv__cell *cell);             /* messages dropped */
size_t rv__cell_bytes(const struct rv__cell *cell);               /* memory of the cell, about */
uint64_t rv__cell_values(const struct rv__cell *cell);            /* numbers given: 1 to this */

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

/* {alias: {result, state, status}} of the nodes reached so far at the top level, nested ones inside
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
    struct rv__entry *last;
    struct rv__entry *ended; /* whose description is evaluated; NULL for everything else */
    struct rv__blob *items;  /* of the forEach, if that is the innermost iteration around it; */
    struct rv__str item;     /* a slice of items */
    struct rv__items
        *pieces;        /* instead of these two: the items are values. rv__view_item() has both */
    int64_t loop_index; /* of the innermost forEach or loop; -1: none */
    int attempt;
    uint64_t actor, token;
    int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__blob *error;             /* handlers: the error, */
    const struct rv__node *failed_node; /* the node that failed with it, */
    struct rv__blob *failed_state;      /* and the state that node left */
};
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

/* Its parts as JSON. `rows` may be NULL: then an iteration list or a value in them is RV_ENOTFOUND. */
int rv__view_steps(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err);
int rv__view_last(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                  rv_error *err);

/* One entry of it: the newest of that alias, or NULL; its parts. */
const struct rv__entry *rv__view_find(const struct rv__view *view, struct rv__str alias);
struct rv__entry *rv__entry_ref(struct rv__entry *entry); /* counted; immutable. NULL is allowed */
void rv__entry_unref(struct rv__entry *entry);            /* NULL is allowed. Thread: any */
struct rv__str rv__entry_alias(const struct rv__entry *entry);
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
uint64_t rv__entry_serial(
    const struct rv__entry *entry); /* no other entry of this process has it */
/* The entry that was there before it, in its sequence or around it; NULL: none. */
const struct rv__entry *rv__entry_before(const struct rv__entry *entry);

#endif
