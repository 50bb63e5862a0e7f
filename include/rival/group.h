/* group.h: a task group. It runs functions on pooled threads and returns results as they finish.
 *
 *     rv_group *g = rv_group_new(NULL);           fail-fast, panics become errors, no limit
 *     for (int i = 0; i < n; i++)
 *         rv_group_go(g, work, &items[i]);        never blocks
 *     rv_group_close(g);                          no more tasks
 *     while (rv_group_next(g, -1, NULL, &res) == 1)
 *         use(res.value);                         in the order in which they finished
 *     rv_group_free(g);
 *
 * One manager owns the state of a group; the threads only run tasks and report. These invariants
 * always hold (debug builds assert them):
 *
 *   1. Every accepted task is counted once, before it is dispatched, and finishes exactly once.
 *   2. A result is handed to exactly one caller of rv_group_next(), or to `drop`.
 *   3. The first error observed, and the first cause of cancellation, never change.
 *   4. A caller that gave up in rv_group_next() never takes a result that arrives later.
 *   5. The group is drained when it is closed, nothing is in flight and no result is queued.
 *
 * Cancellation is cooperative: tasks poll rv_task_cancelled(), or pass rv_task_token() on. */
#ifndef RIVAL_GROUP_H
#define RIVAL_GROUP_H

#include <rival/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rv_group rv_group; /* opaque; see rv_group_new() */
typedef struct rv_task rv_task;   /* the running task, as its function sees it */

/* One finished task. The receiver owns `value`. */
typedef struct rv_group_result {
    void *value;  /* what the task stored in *value; NULL if nothing */
    rv_error err; /* code 0: it succeeded */
} rv_group_result;

/* A task: `arg` comes from rv_group_go(). Return 0 on success, any other code on failure;
 * `return rv_task_fail(task, code, "…")` adds a message. *value is NULL at the start. What the task
 * stores there reaches the receiver of the result, also after a failure or a panic.
 *
 * Runs on a thread of the group. It may call go, close, next and cancel on its own group, but it must
 * not wait for its own group to finish (see rv_group_wait, rv_group_free). */
typedef int (*rv_task_fn)(rv_task *task, void *arg, void **value);

/* How a group behaves. All zero: fail-fast, panics become errors, no limit. No size field: this
 * struct is fixed. */
typedef struct rv_group_opts {
    int max_concurrency; /* tasks running at once; 0 = up to RV_GROUP_POOL_CAP */
    bool keep_going;     /* turns fail-fast off: an error does not cancel the other tasks */
    bool panic_aborts;   /* a panic calls abort() instead of becoming the task's error */
    rv_cancel *parent;   /* cancels the group when fired; may be freed before the group */
    size_t max_queued;   /* tasks accepted but not yet started; 0 = no limit */
    void (*drop)(
        void *value); /* gets the non-NULL values of results that were not taken, at free */
} rv_group_opts;

/* Threads are made on demand, up to max_concurrency or, if that is 0, up to this many. They are
 * reused, and end after RV_GROUP_IDLE_MS without work. */
#define RV_GROUP_POOL_CAP 64
#define RV_GROUP_IDLE_MS  2000

/* Make a group. Starts no thread. Keeps no reference to `opts`; NULL means all defaults.
 *
 * Returns a group for rv_group_free(), or NULL if max_concurrency is negative or there is no memory.
 * Thread: any. */
RV_API rv_group *rv_group_new(const rv_group_opts *opts);

/* Accept a task. Never blocks: tasks start in the order of acceptance, as soon as a thread is free and
 * the limit allows. Tasks are accepted after cancel too; they see that they are cancelled.
 *
 * Returns 0; RV_EINVAL: no group or no function; RV_ECLOSED: after close; RV_EBUSY: max_queued
 * tasks are waiting already, or the group has no thread and the system cannot make one; RV_ENOMEM.
 * Unless it returns 0, the task was not accepted and `arg` stays the caller's. Thread: any. */
RV_API int rv_group_go(rv_group *g, rv_task_fn fn, void *arg);

/* Close the group: no more tasks are accepted; accepted tasks still run. Idempotent. Wakes every
 * caller of next if nothing is left. NULL is allowed. Thread: any. */
RV_API void rv_group_close(rv_group *g);

/* Take the next finished task, in completion order. Many threads may call it together; each
 * result goes to exactly one of them.
 *
 * Waits up to `timeout_ms` (negative: no limit, 0: does not wait), or until `by` (may be NULL) fires.
 * If a result is queued, it is returned even if the token has fired or the time is over.
 *
 * Returns 1 and writes *out; 0: drained (closed, none in flight, none queued), and 0 on every
 * later call; RV_ETIMEDOUT or RV_ECANCELED: the caller gave up, and *out is untouched;
 * RV_EINVAL: no group or no `out`; RV_ENOMEM. Thread: any. */
RV_API int rv_group_next(rv_group *g, int64_t timeout_ms, rv_cancel *by, rv_group_result *out);

/* Wait until no task is in flight. Takes no results: rv_group_next() still returns them. Does not close.
 *
 * Returns the code of the first task error observed, else the cause of the cancellation, else 0;
 * writes *err (if not NULL) when it is not 0. RV_EDEADLK: called from a task of this group, which
 * would wait for itself. RV_EINVAL: no group. Thread: any. */
RV_API int rv_group_wait(rv_group *g, rv_error *err);

/* Ask all tasks to stop: rv_task_cancelled() becomes true for running and for later tasks.
 * Tasks not yet started still run, and see it. `cause` 0 means RV_ECANCELED; `why` is copied,
 * NULL means the code's text. The first cause is kept. NULL is allowed. Thread: any. */
RV_API void rv_group_cancel(rv_group *g, int cause, const char *why);

/* Free the group: close it, wait for every accepted task, pass the values of results that were not
 * taken to `drop`, and end its threads. It does not cancel: call rv_group_cancel() first to be quick.
 *
 * Callers that are inside rv_group_next() or rv_group_wait() at that time are safe: they return as
 * the group drains, and this waits for them. No call may begin after this one. Called from a task of
 * this group, it panics. NULL is allowed. Thread: any. */
RV_API void rv_group_free(rv_group *g);

/* Should this task stop? A single atomic load. Thread: the task's, or one that it passed `task` to
 * while it runs. */
RV_API bool rv_task_cancelled(rv_task *task);

/* The group's cancel token, for child groups and for waits. It belongs to the group: do not free
 * it, and do not use it after the task has ended. Firing it cancels the group. */
RV_API rv_cancel *rv_task_token(rv_task *task);

/* Set the message of this task's error, and return `code` (0 becomes RV_EFAILED) for the task
 * function to return. The last message is used. Thread: the task's. */
RV_API int rv_task_fail(rv_task *task, int code, const char *fmt, ...) RV_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
