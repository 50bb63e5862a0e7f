/* desk.h: jobs beside the loop, one after the other and in order: writing to the store, reading from it.
 *
 * A job is somebody else's struct that begins with rv__job. The loop gives it to a desk and goes on. When it
 * has run, it comes back to the loop as a letter, and the loop calls `landed`. A desk has a thread of its
 * own; in a simulation it runs a job when the seed says so.
 *
 * Thread: all calls from the loop's, but for what says otherwise. */
#ifndef RV_ENGINE_DESK_H
#define RV_ENGINE_DESK_H

#include <stdbool.h>
#include <stdint.h>

#include <rival/rival.h>

#include "base/queue.h"

/* What arrives in the loop's inbox. */
enum rv__letter_kind {
    LETTER_ANSWER, /* an attempt has ended */
    LETTER_BEGINS, /* an executor has begun one that has a time-out */
    LETTER_CALL,   /* of the public API */
    LETTER_TIMER,  /* of a run that could not take it when it fell due */
    LETTER_JOB,    /* a desk is done with it */
    LETTER_WORKER, /* a worker has something to say */
};

struct rv__job {
    struct rv__letter letter; /* first */
    struct rv__job *next;     /* at its desk */
    bool writes;              /* it is at the writing desk; rv__write_job() */
    /* Do it. 0: done; else it is to be run again after so many milliseconds. Thread: the desk's. */
    int64_t (*run)(struct rv__job *job);
    void (*landed)(rv_engine *engine, struct rv__job *job); /* it was done */
    void (*drop)(struct rv__job *job); /* it was not, or nobody asks any more: free what it holds */
};

struct rv__desk {
    /* Queue a job. RV_ENOMEM, RV_ESYS: there is nobody to do it, and it is still the caller's. */
    int (*give)(struct rv__desk *desk, struct rv__job *job);
    /* Run it on the loop's own thread, now. As rv__job.run. Only while the desk has no other. */
    int64_t (*now)(struct rv__desk *desk, struct rv__job *job);
    /* Is it worth a hand-over, with so many runs in the batch and so much work in flight? */
    bool (*pays)(struct rv__desk *desk, size_t runs, int64_t in_flight);
    /* No job is run any more, and none again: those that are left are dropped. Waits for the one that runs. */
    void (*free)(struct rv__desk *desk);
};

/* A desk with a thread, which is made with the first job. Jobs that are done go to `inbox`. */
int rv__desk_new(struct rv__queue *inbox, struct rv__desk **ret, rv_error *err);

static inline void rv__desk_free(struct rv__desk *desk) /* NULL is allowed */
{
    if (desk != NULL)
        desk->free(desk);
}

#endif
