/* manager.h: the state of a task group, and the only code that changes it.
 *
 * No threads and no locks in here: a manager is a plain struct, and every function below is one
 * step of it. group.c sees to it that one thread at a time is inside (ADR 0001). */
#ifndef RV_GROUP_MANAGER_H
#define RV_GROUP_MANAGER_H

#include <pthread.h>
#include <rival/group.h>

/* A task from acceptance to hand-over: first what to run, then what came of it. 32 bytes, from
 * slabs, so a million queued tasks cost 32 MB and a few allocations. */
struct rv__group_task {
    struct rv__group_task *next;
    union {
        rv_task_fn fn;
        void *value;
    };
    union {
        void *arg;
        rv_error *err; /* its message; NULL: only the code, whose general text then serves */
    };
    int code; /* 0: succeeded */
};

struct rv__group_list {
    struct rv__group_task *first, **last;
    size_t count;
};

struct rv__group_slab;

struct rv__manager {
    /* given at the start */
    size_t max_threads;
    size_t max_queued; /* SIZE_MAX: no limit */

    /* tasks */
    bool closed;
    struct rv__group_list queue;   /* accepted, not started; in order of acceptance */
    struct rv__group_list results; /* finished, not handed over; in order of completion */
    size_t running;
    rv_error first_error; /* code 0: none yet */
    uint64_t accepted, finished, taken;

    /* threads */
    size_t threads; /* that run, or are being made */
    size_t idle;
    size_t coming; /* made or woken, and not yet looking for work: at most one at a time */

    struct rv__group_task *spare;
    struct rv__group_slab *slabs;
#ifdef RV_DEBUG_CHECKS
    pthread_t owner; /* who is the manager now */
    bool owned;
#endif
};

/* Whom a change needs next: at most one thread is fetched at a time, and fetches the next. */
enum rv__group_need { NEED_NOBODY, NEED_IDLE, NEED_NEW };

void rv__manager_init(struct rv__manager *m, size_t max_threads, size_t max_queued);
void rv__manager_done(struct rv__manager *m); /* the results left must have been taken */

/* One thread becomes the manager, and stops being it. Checked in debug builds only. */
void rv__manager_enter(struct rv__manager *m);
void rv__manager_leave(struct rv__manager *m);

/* Accept a task. RV_ECLOSED, RV_EBUSY, RV_ENOMEM: not accepted. */
int rv__manager_accept(struct rv__manager *m, rv_task_fn fn, void *arg);
/* Take back the task accepted just now, and only that. */
void rv__manager_unaccept(struct rv__manager *m);

/* The next task to run, or NULL. */
struct rv__group_task *rv__manager_start(struct rv__manager *m);
/* A task failed, and will finish as soon as the others are told: the first error, if none came
 * before. */
void rv__manager_failed(struct rv__manager *m, const rv_error *err);
/* That task is over. `err` is NULL, or what went wrong; it is copied. */
void rv__manager_finish(struct rv__manager *m, struct rv__group_task *task, void *value,
                        const rv_error *err);

/* Move the oldest result into *out. False: there is none. */
bool rv__manager_take(struct rv__manager *m, rv_group_result *out);

/* The newest result was given away already: it is not kept. */
void rv__manager_discard(struct rv__manager *m);

void rv__manager_close(struct rv__manager *m);

/* Is a thread to be fetched for the tasks that wait? Notes that it is on its way; the thread says
 * rv__manager_arrived() when it is there, or whoever failed to make it rv__manager_not_made(). */
enum rv__group_need rv__manager_need(struct rv__manager *m);
void rv__manager_arrived(struct rv__manager *m);
void rv__manager_not_made(struct rv__manager *m);
void rv__manager_idle(struct rv__manager *m);   /* a thread found nothing to do */
void rv__manager_leaves(struct rv__manager *m); /* an idle thread is given back */

static inline size_t rv__manager_inflight(const struct rv__manager *m)
{
    return m->queue.count + m->running;
}

static inline bool rv__manager_drained(const struct rv__manager *m)
{
    return m->closed && rv__manager_inflight(m) == 0 && m->results.count == 0;
}

#endif
