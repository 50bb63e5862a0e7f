/* manager.h: the state of a task group, and the only code that changes it.
 *
 * No threads and no locks: a manager is a plain struct, and every function below is one step. group.c makes sure
 * that one thread at a time is inside (ADR 0001). */
#ifndef RV_GROUP_MANAGER_H
#define RV_GROUP_MANAGER_H

#include <pthread.h>
#include <rival/group.h>

/* A task from acceptance to delivery: first what to run, then its result. 32 bytes, from slabs, so a million queued
 * tasks cost 32 MB and a few allocations. */
struct rv__group_task {
    struct rv__group_task *next;
    union {
        rv_task_fn fn;
        void *value;
    };
    union {
        void *arg;
        rv_error *err; /* its message; NULL: only the code, with its general text */
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
    struct rv__group_list results; /* finished, not delivered; in order of completion */
    size_t running;
    rv_error first_error; /* code 0: none yet */
    uint64_t accepted, finished, taken;

    /* threads */
    size_t threads; /* running or being created */
    size_t idle;
    size_t coming; /* created or woken, but not looking for work yet: at most one */

    struct rv__group_task *spare;
    struct rv__group_slab *slabs;
#ifdef RV_DEBUG_CHECKS
    pthread_t owner; /* the thread that is inside */
    bool owned;
#endif
};

/* What a change needs next. At most one thread is woken or created at a time; that one then gets the next. */
enum rv__group_need { NEED_NOBODY, NEED_IDLE, NEED_NEW };

void rv__manager_init(struct rv__manager *m, size_t max_threads, size_t max_queued);
void rv__manager_done(struct rv__manager *m); /* all results must have been taken */

/* A thread enters and leaves the manager. Checked in debug builds only. */
void rv__manager_enter(struct rv__manager *m);
void rv__manager_leave(struct rv__manager *m);

/* Accept a task. RV_ECLOSED, RV_EBUSY, RV_ENOMEM: not accepted. */
int rv__manager_accept(struct rv__manager *m, rv_task_fn fn, void *arg);
/* Undo the last accept, which must have just happened. */
void rv__manager_unaccept(struct rv__manager *m);

/* The next task to run, or NULL. */
struct rv__group_task *rv__manager_start(struct rv__manager *m);
/* A task has failed, and will finish as soon as the others are cancelled: store its error, if it is the first. */
void rv__manager_failed(struct rv__manager *m, const rv_error *err);
/* A task has finished. `err`: its error, copied, or NULL. */
void rv__manager_finish(struct rv__manager *m, struct rv__group_task *task, void *value,
                        const rv_error *err);

/* Move the oldest result to *out. False: none. */
bool rv__manager_take(struct rv__manager *m, rv_group_result *out);

/* Drop the newest result: it was already delivered. */
void rv__manager_discard(struct rv__manager *m);

void rv__manager_close(struct rv__manager *m);

/* Must a thread be woken or created for the waiting tasks? Marks one as coming; that thread calls
 * rv__manager_arrived(), or, if it could not be created, its creator calls rv__manager_not_made(). */
enum rv__group_need rv__manager_need(struct rv__manager *m);
void rv__manager_arrived(struct rv__manager *m);
void rv__manager_not_made(struct rv__manager *m);
void rv__manager_idle(struct rv__manager *m);   /* a thread found no work */
void rv__manager_leaves(struct rv__manager *m); /* an idle thread ends */

static inline size_t rv__manager_inflight(const struct rv__manager *m)
{
    return m->queue.count + m->running;
}

static inline bool rv__manager_drained(const struct rv__manager *m)
{
    return m->closed && rv__manager_inflight(m) == 0 && m->results.count == 0;
}

#endif
