/* exec.h: executors: they do the work that the engine hands out, and say when it is done.
 *
 * A piece of work is somebody else's struct that begins with rv__work. An executor runs it once, on a
 * thread of its own, and calls `done` exactly once, from any thread: with an error if the work
 * panicked or could not be begun. It never touches the work after that. */
#ifndef RV_EXEC_EXEC_H
#define RV_EXEC_EXEC_H

#include <rival/base.h>

struct rv__random;

struct rv__work {
    void (*run)(struct rv__work *work);
    void (*done)(struct rv__work *work, const rv_error *err); /* err NULL: `run` returned */
};

/* The head of every executor: its own struct begins with this. */
struct rv__executor {
    /* Begin all of these. Returns how many, from the first on: there may be no thread or memory for
     * the rest, and their `done` is not called. */
    size_t (*start)(struct rv__executor *self, struct rv__work *const *works, size_t count);
    /* Is this one of its threads, at work? */
    bool (*inside)(const struct rv__executor *self);
    /* Waits for the work that runs. */
    void (*free)(struct rv__executor *self);
};

static inline void rv__executor_free(struct rv__executor *executor) /* NULL is allowed */
{
    if (executor != NULL)
        executor->free(executor);
}

/* Threads: up to `limit` pieces of work at once, threads made on demand. */
int rv__threads_new(int limit, struct rv__executor **ret, rv_error *err);

/* By hand: work that was started lies there until somebody says "run one", and that call returns
 * when it has run. For tests and the simulator: the order of things is theirs.
 *
 * rv__hand_run(): one of those that lie there, by chance; false: none does. `done` has been called.
 * rv__hand_take(): the same, but it is not run, and `done` is not called: its process died. NULL: none.
 * Thread: one at a time; a piece of work that runs may call these too. */
int rv__hand_new(struct rv__executor **ret, rv_error *err);
bool rv__hand_run(struct rv__executor *hand, struct rv__random *random);
struct rv__work *rv__hand_take(struct rv__executor *hand);

#endif
