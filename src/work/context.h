/* context.h: a piece of work in flight, from the grant to the answer: what its function sees through
 * rv_ctx, and what it says. Made by dispatch.c, filled by the step's thread, read by the loop. */
#ifndef RV_WORK_CONTEXT_H
#define RV_WORK_CONTEXT_H

#include <rival/rival.h>

#include "base/arena.h"
#include "base/cancel.h"
#include "base/queue.h"
#include "base/timers.h"
#include "exec/exec.h"
#include "flow/flow.h"
#include "work/sight.h"

struct rv__plan_exprs;
struct rv__run;
struct rv__workshop;

/* What is sent to the engine: the head of whatever it is. */
struct rv__letter {
    struct rv__queue_node node; /* first */
    int kind;                   /* the engine's: enum rv__letter_kind */
};

enum {
    RV__STATE_MAX_BYTES =
        1 << 20, /* of a state, which is small by nature; a longer one fails its step */
    RV__ERROR_MAX_BYTES = 64 << 10, /* of an error; of a longer one the message is kept, cut */
    RV__LOG_LINES = 10000,          /* of one attempt; what comes after is counted and marked */
    RV__LOG_BYTES = 4095,           /* of one line; a longer one is cut */
    RV__LOG_TICK_MS = 150, /* a line is on disk after 200 ms at the latest: this, and a commit */
    RV__PATH_BYTES = (RV__PLAN_MAX_NAME + 40) * (RV__PLAN_MAX_DEPTH + 1), /* no path is longer */
};

struct rv__log_line {
    struct rv__log_line *next;
    int64_t at_ms;
    int level;
    struct rv__str message, metadata;
};

/* A part of what a step sees. */
enum rv__part {
    PART_INPUT,
    PART_STEP,  /* the newest node of that alias in scope: its result */
    PART_STEPS, /* all of them: {alias: {result, state, status}} */
    PART_LAST,  /* the node before: its result */
    PART_ITEM,  /* of the innermost forEach */
    PART_ITEMS,
    PART_ERROR,  /* handlers: what happened, */
    PART_FAILED, /* and the node it happened to: {result, state, alias, stepName, status} */
    PARTS,
};

/* It, as text, in what the step holds or in the `room` that was given. Only PART_STEP and PART_LAST
 * have the last three; a state that is "none" is {}. */
struct rv__seen {
    struct rv__str json;
    struct rv__str state, alias;
    const char *status;
};

extern const char *const rv__part_names[PARTS]; /* as frames have them */

enum rv__who { WHO_RUN, WHO_WORKFLOW, WHO_STEP, WHO_PATH, WHO_EXECUTION, WHO_KEY };

/* Where a step is: in the engine's process (source.c), or in another, that of a host (host.c). What
 * rv_ctx sees comes through this, and what it says at once goes through it; its answer stays in the
 * rv_ctx for the one who runs it. Thread: the step's. */
struct rv__source {
    /* RV_ENOTFOUND: there is no such thing. `alias`: of PART_STEP. `room` NULL: of PART_STEP and
     * PART_LAST all but the result, of the others what is at hand: else RV_ETOOBIG. */
    int (*see)(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
               struct rv__seen *ret);
    const char *(*who)(rv_ctx *ctx, enum rv__who who); /* never NULL */
    void (*log)(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata);
    /* Has word come that it should stop? Then its token is fired. `keep`: from now on as it comes, for
     * the token was handed on. NULL: the token is fired by whoever wants it stopped. */
    void (*listen)(rv_ctx *ctx, bool keep);
};
extern const struct rv__source rv__engine_source;

struct rv_ctx {
    struct rv__work work; /* first: the executor knows only this */
    const struct rv__source *source;
    struct rv__workshop *shop; /* what it may use; NULL in a host */
    rv_engine *engine;         /* for rv_ctx_engine() */
    const char *run_id;        /* of its run, as is what follows: held */
    struct rv__pieces *pieces;
    const struct rv__plan *plan;
    const struct rv__plan_exprs *exprs;
    struct rv__letter letter; /* to the engine, when it is done */
    struct rv__run *run;      /* the engine's own; held */
    uint64_t life;
    struct rv_ctx *next, **link;         /* among the work of its run */
    struct rv_ctx *all_next, **all_link; /* among all work in flight */
    rv_step_fn fn; /* NULL, and no module: the engine does it by itself (builtin.c) */
    struct rv__evaluation evaluation;
    struct rv__sight sight;
    bool describing; /* what is evaluated is its description */
    union {          /* of a step that the I/O loop runs, */
        struct rv__command command;
        struct {
            struct rv__fetch fetch;
            bool any_status;
        };
    };
    enum rv__output_as output_as;
    pthread_mutex_t gate;          /* held while it is started, */
    struct rv__cancel_watch watch; /* and how to stop it */
    void (*stop)(struct rv_ctx *ctx);
    const char *directory;   /* of its workflow's file, in the arena; NULL: none */
    struct rv__str function; /* in a host process, instead of fn: this one */
    const char *module;      /* of this file; NULL: fn, here */
    struct rv__letter begun; /* to the engine: a host has it */
    int64_t timeout_ms;      /* of the attempt, from then on; 0 = none */
    enum rv__lane place;     /* that it has; LANE_NONE: none, or it was given back */
    int64_t begun_ns,
        queued_ns; /* when it was sent out, by the monotonic clock; and for how long it
                                    had waited for its place */
    int eval;      /* -1: an attempt of a step */
    rv_cancel *token;
    struct rv__view view;
    int attempt;            /* from 1 */
    int64_t loop_index;     /* -1: in no iteration */
    bool of_step;           /* a handler: of a step, not of the workflow */
    struct rv__arena arena; /* of what its function was given */
    char *path, *key;       /* in the arena, made when asked for */

    /* what it said */
    enum rv__msg_kind outcome; /* MSG_DONE, MSG_FAILED, MSG_PARK; MSG_LOST: its process died */
    struct rv__blob *result, *state, *error;
    struct rv__buf state_members; /* of its state: "key":json, comma-separated */
    size_t state_over;            /* bytes of a state that was too long; 0: none was */
    struct rv__str handle;
    int64_t due_ms; /* MSG_PARK: until when; 0 = as its step says */
    bool skipped;
    bool described; /* it said so itself */
    bool given_up;  /* the engine closes: it was not done, and did not fail */
    enum rv__behavior behavior;
    int max_attempts, backoff;
    int64_t wait_ms; /* MSG_FAILED: not again before that; 0 = as its step says */
    _Atomic(struct rv__log_line *) logs; /* newest first; the loop takes them now and then */
    struct rv__log_line *unkept; /* oldest first; taken, but there was no memory: the loop's */
    size_t log_count;
    int64_t takes_ms;        /* rv_test_takes(): its answer comes so much later */
    struct rv__timer answer; /* in the kit, until then */
};

/* Run its function and note the outcome. On the step's thread. */
void rv__ctx_run(struct rv__work *work);
/* A line of its log, for the loop to fetch. `at_ms` by the wall. */
void rv__ctx_keep_log(struct rv_ctx *ctx, int64_t at_ms, int level, struct rv__str message,
                      struct rv__str metadata);
/* What it is to say as its own result or state, if that is JSON: as rv_return_json, rv_set_state. */
int rv__ctx_result(struct rv_ctx *ctx, struct rv__str json);
int rv__ctx_state(struct rv_ctx *ctx, struct rv__str key, struct rv__str json);
/* What it said last: a state that was too long fails it. */
void rv__ctx_check_state(struct rv_ctx *ctx);
/* It failed with this error, {"message":…, …}. No memory: with the one it has. */
void rv__ctx_error(struct rv_ctx *ctx, struct rv__str json);
/* It could not be run, or it panicked: that is the outcome. */
void rv__ctx_failed(struct rv_ctx *ctx, const rv_error *err);
/* Parts of its context, as JSON: {"runId":…}; and of a handler's {"error":…,"failedStep":…,
 * "workflowState":…}. */
void rv__ctx_put_run(struct rv_ctx *ctx, struct rv__buf *out);
const char *rv__ctx_brief_json(
    struct rv_ctx *ctx); /* {input, lastStep, loop: {item, index}, run} */
int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out);
void rv__ctx_done(struct rv_ctx *ctx); /* gives back all it holds but itself and its run */

#endif
