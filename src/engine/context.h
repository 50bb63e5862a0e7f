/* context.h: a piece of work in flight, from the grant to the answer: what its function sees through
 * rv_ctx, and what it says. Made by dispatch.c, filled by the step's thread, read by the loop. */
#ifndef RV_ENGINE_CONTEXT_H
#define RV_ENGINE_CONTEXT_H

#include <rival/rival.h>

#include "base/arena.h"
#include "base/cancel.h"
#include "engine/engine.h"
#include "engine/sight.h"

enum {
    RV__LOG_LINES = 10000, /* of one attempt; what comes after is counted and marked */
    RV__LOG_TICK_MS = 150, /* a line is on disk after 200 ms at the latest: this, and a commit */
    RV__PATH_BYTES = (RV__PLAN_MAX_NAME + 40) * (RV__PLAN_MAX_DEPTH + 1), /* no path is longer */
};

struct rv__log_line {
    struct rv__log_line *next;
    int64_t at_ms;
    int level;
    struct rv__str message, metadata;
};

struct rv_ctx {
    struct rv__work work;     /* first: the executor knows only this */
    struct rv__letter letter; /* to the engine, when it is done */
    rv_engine *engine;
    struct rv__run *run; /* held */
    uint64_t life;
    struct rv_ctx *next, **link;         /* among the work of its run */
    struct rv_ctx *all_next, **all_link; /* among all work in flight */
    rv_step_fn fn;                       /* NULL: the engine does it by itself (builtin.c) */
    struct rv__evaluation evaluation;
    struct rv__sight sight;
    bool describing;            /* what is evaluated is its description */
    struct rv__command command; /* of a command step, */
    pthread_mutex_t gate;       /* held while it is started, */
    struct rv__cancel_watch watch;
    enum rv__output_as output_as;
    const char *directory; /* of its workflow's file, in the arena; NULL: none */
    enum rv__lane lane;
    int64_t begun_ns,
        queued_ns; /* when it was sent out, by the monotonic clock; and for how long it
                                    had waited for its place */
    int eval;      /* -1: an attempt of a step */
    rv_cancel *token;
    struct rv__view view;
    struct rv__arena arena; /* of what its function was given */
    char *path, *key;       /* in the arena, made when asked for */

    /* what it said */
    enum rv__msg_kind outcome; /* MSG_DONE, MSG_FAILED, MSG_PARK */
    struct rv__blob *result, *state, *error;
    struct rv__buf state_members; /* of its state: "key":json, comma-separated */
    struct rv__str handle;
    int64_t due_ms; /* MSG_PARK: until when; 0 = as its step says */
    bool skipped;
    bool described; /* it said so itself */
    bool given_up;  /* the engine closes: it was not done, and did not fail */
    enum rv__behavior behavior;
    int max_attempts, backoff;
    _Atomic(struct rv__log_line *) logs; /* newest first; the loop takes them now and then */
    struct rv__log_line *unkept; /* oldest first; taken, but there was no memory: the loop's */
    size_t log_count;
    int64_t takes_ms;        /* rv_test_takes(): its answer comes so much later */
    struct rv__timer answer; /* in the kit, until then */
};

/* Run its function and note the outcome. On the step's thread. */
void rv__ctx_run(struct rv__work *work);
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
