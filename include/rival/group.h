/* group.h: a task group. Runs functions on pooled threads, hands out results as they finish.
 *
 *     rv_group *g = rv_group_new(NULL);           fail-fast, panics become errors, no limit
 *     for (int i = 0; i < n; i++)
 *         rv_group_go(g, work, &items[i]);        never blocks
 *     rv_group_close(g);                          no more to come
 *     while (rv_group_next(g, -1, NULL, &res) == 1)
 *         use(res.value);                         in the order in which they finished
 *     rv_group_free(g);
 *
 * A group has one owner of its state, its manager; the threads only run tasks and report. What
 * holds at every moment (and is asserted in debug builds):
 *
 *   1. Every accepted task is counted once, before it is dispatched, and finishes exactly once.
 *   2. A result is handed to exactly one caller of rv_group_next(), or to `drop`.
 *   3. The first error observed, and the first cause of cancellation, never change.
 *   4. A caller that gave up in rv_group_next() never takes a later result with it.
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

/* A task: `arg` is what rv_group_go() was given. Return 0 when it went well, else any other code;
 * `return rv_task_fail(task, code, "…")` adds a message. *value is NULL at the start; what is
 * stored there reaches the receiver of the result, also after a failure or a panic.
 *
 * Runs on a thread of the group. It may call go, close, next and cancel on its own group; waiting
 * for its own group to finish would be waiting for itself (see rv_group_wait, rv_group_free). */
typedef int (*rv_task_fn)(rv_task *task, void *arg, void **value);

/* How a group behaves. All zero: fail-fast, panics become errors, no limit. No size field: this
 * struct is fixed. */
typedef struct rv_group_opts {
    int max_concurrency; /* tasks at once; 0 = no limit of its own (but see RV_GROUP_POOL_CAP) */
    bool keep_going;     /* turns fail-fast off: an error does not cancel the others */
    bool panic_aborts;   /* a panic calls abort() instead of becoming the task's error */
    rv_cancel *parent;   /* cancels the group when fired; may be freed before the group */
    size_t max_queued;   /* accepted and not yet started; 0 = no limit */
    void (*drop)(void *value); /* gets the non-NULL values of results nobody took, at free */
} rv_group_opts;

/* Threads are made on demand, up to max_concurrency or, where that is 0, up to this many. They are
 * used again, and given back after RV_GROUP_IDLE_MS without work. */
#define RV_GROUP_POOL_CAP 64
#define RV_GROUP_IDLE_MS  2000

/* Make a group. Starts no thread. Keeps no reference to `opts`; NULL means all defaults.
 *
 * Returns a group to give to rv_group_free(), or NULL: negative max_concurrency, or no memory.
 * Thread: any. */
RV_API rv_group *rv_group_new(const rv_group_opts *opts);

/* Accept a task. Never blocks: it runs as soon as a thread and the limit allow, in the order of
 * acceptance. Accepted after cancel too; the task then sees that it is cancelled.
 *
 * Returns 0; RV_EINVAL: no group or no function; RV_ECLOSED: after close; RV_EBUSY: max_queued
 * tasks wait already, or the system has no thread left and the group has none; RV_ENOMEM. Unless
 * it returns 0, the task was not accepted and `arg` is the caller's. Thread: any. */
RV_API int rv_group_go(rv_group *g, rv_task_fn fn, void *arg);

/* Seal the group: nothing more is accepted; what was accepted goes on. Idempotent. Wakes every
 * caller of next if nothing is left. NULL is allowed. Thread: any. */
RV_API void rv_group_close(rv_group *g);

/* Take the next finished task, in completion order. Many threads may call it together; each
 * result goes to exactly one of them.
 *
 * Waits up to `timeout_ms` (negative: for ever, 0: not at all), or until `by` (may be NULL) fires.
 * A queued result wins over a fired token or a passed time.
 *
 * Returns 1 and writes *out; 0: drained (closed, none in flight, none queued), and again 0 on each
 * call after that; RV_ETIMEDOUT or RV_ECANCELED: the caller gave up, and *out is untouched;
 * RV_EINVAL: no group or no `out`; RV_ENOMEM. Thread: any. */
RV_API int rv_group_next(rv_group *g, int64_t timeout_ms, rv_cancel *by, rv_group_result *out);

/* Wait until nothing is in flight. Takes no result: they stay for next. Does not close.
 *
 * Returns the code of the first task error observed, else the cause of the cancellation, else 0;
 * writes *err (if not NULL) when it is not 0. RV_EDEADLK: called from a task of this group, which
 * would wait for itself. RV_EINVAL: no group. Thread: any. */
RV_API int rv_group_wait(rv_group *g, rv_error *err);

/* Ask all tasks to stop: rv_task_cancelled() turns true for those that run and those that come.
 * Tasks not yet started still run, and see it. `cause` 0 means RV_ECANCELED; `why` is copied,
 * NULL means the code's text. The first cause stays. NULL is allowed. Thread: any. */
RV_API void rv_group_cancel(rv_group *g, int cause, const char *why);

/* End the group: closes it, waits for every accepted task, gives the values that nobody took to
 * `drop`, ends its threads, and leaks nothing. It does not cancel: do that first to be quick.
 *
 * Callers that are inside rv_group_next() or rv_group_wait() at that time are safe: they return as
 * the group drains, and are waited for. Calls that begin after this one are not allowed. From a
 * task of this group it cannot work, and panics. NULL is allowed. Thread: any. */
RV_API void rv_group_free(rv_group *g);

/* Should this task stop? A single atomic load. Thread: the task's, or one it handed `task` to
 * while it runs. */
RV_API bool rv_task_cancelled(rv_task *task);

/* The group's cancel token, for child groups and for waits. It belongs to the group: do not free
 * it, do not keep it after the task's end. Firing it cancels the group. */
RV_API rv_cancel *rv_task_token(rv_task *task);

/* Keep a message for this task's error, and return `code` (0 becomes RV_EFAILED) for the task
 * function to return. The message of the last call counts. Thread: the task's. */
RV_API int rv_task_fail(rv_task *task, int code, const char *fmt, ...) RV_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
