/* exec.h: executors: they do the work that the engine hands out, and say when it is done.
 *
 * A piece of work is somebody else's struct that begins with rv__work. An executor runs it once, on a
 * thread of its own, and calls `done` exactly once, from any thread: with an error if the work
 * panicked or could not be begun. It never touches the work after that. */
#ifndef RV_EXEC_EXEC_H
#define RV_EXEC_EXEC_H

#include <rival/base.h>

#include "base/queue.h"
#include "expr/expr.h"

struct rv__work {
    void (*run)(struct rv__work *work);
    void (*done)(struct rv__work *work, const rv_error *err); /* err NULL: `run` returned */
};

/* Threads: up to `limit` pieces of work at once, threads made on demand. */
struct rv__threads;
int rv__threads_new(int limit, struct rv__threads **ret, rv_error *err);
/* Waits for the work that was begun. NULL is allowed. */
void rv__threads_free(struct rv__threads *threads);
/* Begin all of these. Returns how many, from the first on: there may be no thread or memory for the
 * rest, and their `done` is not called. */
size_t rv__threads_start(struct rv__threads *threads, struct rv__work *const *works, size_t count);
/* Is this one of its threads, at work? */
bool rv__threads_inside(const struct rv__threads *threads);

/* ------------------------------------------------------------------------- the evaluator --- */

/* Expressions, one after the other, on one thread: jq's values are not thread-safe, and sharing them
 * is what makes evaluations cheap. A second thread watches the first: what takes too long or too much
 * memory is halted. */
struct rv__evaluator;

enum { RV__EVAL_TIMEOUT_MS = 1000 }; /* default: of one template; most take microseconds */
#define RV__EVAL_MEMORY_BYTES ((size_t)512 << 20) /* what the process may grow by in a run of jq */

/* One evaluation: somebody else's struct, begun with these fields filled in. */
struct rv__evaluation {
    struct rv__exprs *set;   /* borrowed until `done` */
    uint32_t number;         /* of the template in it */
    struct rv__scope *scope; /* asked on the evaluator's thread, until `done` */
    size_t max_bytes;        /* of the result; 0 = RV__EXPR_OUTPUT_BYTES */
    int64_t timeout_ms;      /* 0 = RV__EVAL_TIMEOUT_MS; from when it begins, waiting not counted */
    /* Called once, on the evaluator's thread, which waits for it: hand over, do not work. `json` is
     * the value, valid during the call; err NULL means there is one. Errors: those of
     * rv__exprs_eval(); RV_ECLOSED: the evaluator ended first. The evaluation may be freed in here. */
    void (*done)(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err);
    struct rv__queue_node queued; /* the evaluator's own */
};

int rv__evaluator_new(struct rv__evaluator **ret, rv_error *err);
/* Halts what is being evaluated; what waits is answered with RV_ECLOSED. NULL is allowed. */
void rv__evaluator_free(struct rv__evaluator *evaluator);
/* Queue it. The queue's length is bounded by the places that the engine gives. Thread: any, but none
 * may be under way when the evaluator is freed. */
void rv__evaluator_start(struct rv__evaluator *evaluator, struct rv__evaluation *evaluation);

#endif
