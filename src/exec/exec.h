/* exec.h: executors: they do the work that the engine hands out, and say when it is done.
 *
 * A piece of work is somebody else's struct that begins with rv__work. An executor runs it once, on a
 * thread of its own, and calls `done` exactly once, from any thread: with an error if the work
 * panicked or could not be begun. It never touches the work after that. */
#ifndef RV_EXEC_EXEC_H
#define RV_EXEC_EXEC_H

#include <rival/base.h>

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

#endif
