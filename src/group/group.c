/* group.c: the task group of rival/group.h: threads around a manager.
 *
 * The manager (manager.c) owns all state. Instead of a thread with a mailbox, the thread that holds `lock` acts as
 * the manager for the few dozen nanoseconds of one step: a single owner and one order of steps, without two thread
 * switches for each task. ADR 0001 has the reasons and the measurements.
 *
 * A worker reports a finished task and takes the next under one lock, so a task locks twice: once when it is
 * submitted, once when it is run.
 *
 * Lock order: a token's lock, then `lock` (tokens call us under theirs). So no token function is called while
 * `lock` is held. User code (tasks, drop) runs without any lock. */
#include <rival/group.h>

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "group/group.h"
#include "group/manager.h"
#include "group/panic.h"

/* A thread of a group. */
struct worker {
    rv_group *group;
    pthread_t thread;
    pthread_cond_t wake;          /* used while it is on the idle stack */
    bool called;                  /* removed from the idle stack, to work or to end */
    struct worker *below, *above; /* in the stack of idle threads: last in, first out */
    struct worker *next;          /* in the list of ended threads that must be joined */
};

/* A caller that waits in next; on its stack. Each has its own condition: a result then wakes one caller, the one
 * that has waited longest, and a token wakes its own caller. (One condition for all can also lose a wake-up in
 * glibc before 2.41: its bug 25847.) */
struct waiter {
    struct rv__cancel_watch watch; /* first: next_given_up() finds the rest from here */
    rv_group *group;
    pthread_cond_t wake;
    struct waiter *next, **link; /* link NULL: not in the queue */
};

struct rv_group {
    pthread_mutex_t lock;
    struct rv__manager manager;
    struct waiter *first_waiter, **last_waiter; /* callers in next, longest wait first */
    pthread_cond_t settled; /* nothing is in flight, or no caller is inside: for wait and free */
    struct worker *idle;    /* top of the stack */
    struct worker *ended;
    size_t callers; /* inside next or wait */
    bool ending;    /* free has begun: idle threads end */

    rv_cancel *token;
    bool keep_going;
    bool panic_aborts;
    void (*drop)(void *value);
    void (*on_done)(void *arg, const rv_error *err); /* NULL: results are queued for next */
};

static void enter(rv_group *g)
{
    pthread_mutex_lock(&g->lock);
    rv__manager_enter(&g->manager);
}

static void leave(rv_group *g)
{
    rv__manager_leave(&g->manager);
    pthread_mutex_unlock(&g->lock);
}

/* Sleep, and leave the manager meanwhile. False: the time has passed. */
static bool leave_until(rv_group *g, pthread_cond_t *cond, int64_t deadline_ns)
{
    rv__manager_leave(&g->manager);
    bool in_time = rv__cond_wait_until(cond, &g->lock, deadline_ns);
    rv__manager_enter(&g->manager);
    return in_time;
}

/* ------------------------------------------------------------------------------- waiters --- */

static void waiter_push(rv_group *g, struct waiter *w)
{
    if (g->first_waiter == NULL)
        g->last_waiter = &g->first_waiter;
    w->next = NULL;
    w->link = g->last_waiter;
    *g->last_waiter = w;
    g->last_waiter = &w->next;
}

static void waiter_remove(rv_group *g, struct waiter *w)
{
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    else
        g->last_waiter = w->link;
    w->link = NULL;
}

/* A result is for the caller that has waited longest. */
static void wake_one(rv_group *g)
{
    struct waiter *w = g->first_waiter;
    if (w == NULL)
        return;
    waiter_remove(g, w);
    pthread_cond_signal(&w->wake);
}

/* No more results will come. */
static void wake_all(rv_group *g)
{
    while (g->first_waiter != NULL)
        wake_one(g);
}

/* ------------------------------------------------------------------------------- threads --- */

static void *worker_main(void *arg);

static void idle_push(rv_group *g, struct worker *w)
{
    w->called = false;
    w->above = NULL;
    w->below = g->idle;
    if (w->below != NULL)
        w->below->above = w;
    g->idle = w;
}

static void idle_remove(rv_group *g, struct worker *w)
{
    if (w->above != NULL)
        w->above->below = w->below;
    else
        g->idle = w->below;
    if (w->below != NULL)
        w->below->above = w->above;
}

static void idle_call(rv_group *g)
{
    struct worker *w = g->idle;
    idle_remove(g, w);
    w->called = true;
    pthread_cond_signal(&w->wake);
}

/* Signals belong to the host program: its handlers must not run on our threads. Faults are not blocked: they are
 * raised on the thread that causes them. */
static int attr_init(pthread_attr_t *attr)
{
    static const int faults[] = {
        SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF
    };
    sigset_t blocked;
    if (pthread_attr_init(attr) != 0)
        return RV_ESYS;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_attr_setsigmask_np(attr, &blocked);
    return RV_OK;
}

/* Start a thread that the manager has already counted. With or without the lock. */
static int worker_new(rv_group *g)
{
    pthread_attr_t attr;
    int rc = RV_ENOMEM;

    struct worker *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        goto out;
    w->group = g;

    rc = rv__cond_init(&w->wake);
    if (rc < 0)
        goto out;

    rc = attr_init(&attr);
    if (rc < 0)
        goto out;

    rc = pthread_create(&w->thread, &attr, worker_main, w) == 0 ? RV_OK : RV_ESYS;
    pthread_attr_destroy(&attr);
out:
    if (rc < 0)
        rv__free(w); /* on Linux a condition variable needs no destroy */
    return rc;
}

/* Join the threads in the list; they have ended or will soon. Without the lock. */
static void join_all(struct worker *w)
{
    while (w != NULL) {
        struct worker *next = w->next;
        pthread_join(w->thread, NULL);
        pthread_cond_destroy(&w->wake);
        rv__free(w);
        w = next;
    }
}

/* Start another thread, and join those that have ended. */
static void add_thread(rv_group *g)
{
    struct worker *ended = g->ended;
    g->ended = NULL;
    leave(g);
    int rc = worker_new(g);
    join_all(ended);
    enter(g);
    if (rc != RV_OK) /* the existing threads do the work */
        rv__manager_not_made(&g->manager);
}

/* Start the first thread, under the lock. Without it the waiting task cannot be accepted. */
static int add_first_thread(rv_group *g)
{
    enum rv__group_need need = rv__manager_need(&g->manager);
    assert(need == NEED_NEW);
    (void)need;
    if (worker_new(g) == RV_OK)
        return RV_OK;
    rv__manager_not_made(&g->manager);
    rv__manager_unaccept(&g->manager);
    return RV_EBUSY;
}

/* Wake or start a thread for the waiting tasks, if one is needed and possible. Called with the lock, which is
 * released while a thread is started, because that takes long. */
static void fetch_thread(rv_group *g)
{
    switch (rv__manager_need(&g->manager)) {
    case NEED_NOBODY: break;
    case NEED_IDLE: idle_call(g); break;
    case NEED_NEW: add_thread(g); break;
    }
}

/* Wait for work. False: none for a long time, or the group ends; the thread is no longer counted. */
static bool stay_idle(rv_group *g, struct worker *w)
{
    int64_t deadline_ns = rv__deadline_ns(RV_GROUP_IDLE_MS);
    bool in_time = true;

    rv__manager_idle(&g->manager);
    idle_push(g, w);
    while (!w->called && !g->ending && in_time)
        in_time = leave_until(g, &w->wake, deadline_ns);
    if (w->called) {
        rv__manager_arrived(&g->manager);
        return true;
    }
    idle_remove(g, w);
    rv__manager_leaves(&g->manager);
    return false;
}

static void run(rv_group *g, struct rv__group_task *task, rv_task *ret)
{
    ret->group = g;
    ret->token = g->token;
    ret->value = NULL;
    ret->has_message = false;
    ret->panic_aborts = g->panic_aborts;
    int code = rv__task_run(ret, task->fn, task->arg);
    if (code == 0)
        ret->err.code = 0;
    else if (!ret->has_message && rv_errname(code) != NULL)
        rv__fail(&ret->err, code, "%s", rv_strerror(code));
    else if (!ret->has_message)
        rv__fail(&ret->err, code, "the task failed with code %d", code);
    else
        ret->err.code = code; /* the returned code counts if they differ */

    /* The token fires before the result is visible: a caller that has seen the error finds the group cancelled. The
     * error is stored before the token fires: a task that stops because of it is not the first error. */
    if (code != 0 && !g->keep_going && !rv_cancel_fired(g->token)) {
        enter(g);
        rv__manager_failed(&g->manager, &ret->err);
        leave(g);
        rv_cancel_fire(g->token, code, ret->err.message);
    }
    if (g->on_done != NULL)
        g->on_done(task->arg, code != 0 ? &ret->err : NULL);
}

/* The task has finished: wake the callers that wait for it. */
static void report(rv_group *g, struct rv__group_task *task, const rv_task *done)
{
    rv__manager_finish(&g->manager, task, done->value, done->err.code ? &done->err : NULL);
    if (g->on_done != NULL)
        rv__manager_discard(&g->manager);
    else
        wake_one(g);
    if (rv__manager_inflight(&g->manager) == 0)
        pthread_cond_broadcast(&g->settled);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    rv_group *g = w->group;
    rv_task done;

    enter(g);
    rv__manager_arrived(&g->manager);
    for (;;) {
        struct rv__group_task *task = rv__manager_start(&g->manager);
        if (task == NULL && !stay_idle(g, w))
            break;
        if (task == NULL)
            continue;
        fetch_thread(g); /* for the tasks after this one */
        leave(g);
        run(g, task, &done);
        enter(g);
        report(g, task, &done);
    }
    w->next = g->ended;
    g->ended = w;
    pthread_cond_broadcast(&g->settled);
    leave(g);
    return NULL;
}

/* -------------------------------------------------------------------------------- public --- */

rv_group *rv_group_new(const rv_group_opts *opts)
{
    static const rv_group_opts defaults;
    if (opts == NULL)
        opts = &defaults;
    if (opts->max_concurrency < 0)
        return NULL;

    rv_group *g = rv__zalloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->keep_going = opts->keep_going;
    g->panic_aborts = opts->panic_aborts;
    g->drop = opts->drop;
    rv__manager_init(&g->manager,
                     opts->max_concurrency ? (size_t)opts->max_concurrency : RV_GROUP_POOL_CAP,
                     opts->max_queued ? opts->max_queued : SIZE_MAX);

    g->token = rv_cancel_new(opts->parent);
    if (g->token == NULL || rv__cond_init(&g->settled) < 0 ||
        pthread_mutex_init(&g->lock, NULL) != 0) {
        rv_cancel_free(g->token);
        rv__free(g); /* on Linux, conditions and locks need no destroy */
        return NULL;
    }
    return g;
}

void rv__group_on_done(rv_group *g, void (*done)(void *arg, const rv_error *err))
{
    g->on_done = done;
}

int rv_group_go(rv_group *g, rv_task_fn fn, void *arg)
{
    if (g == NULL || fn == NULL)
        return RV_EINVAL;

    enter(g);
    int rc = rv__manager_accept(&g->manager, fn, arg);
    if (rc == RV_OK && g->manager.threads == 0)
        rc = add_first_thread(g);
    else if (rc == RV_OK)
        fetch_thread(g);
    leave(g);
    return rc;
}

size_t rv__group_go_all(rv_group *g, rv_task_fn fn, void *const *args, size_t count)
{
    size_t accepted = 0;
    enter(g);
    while (accepted < count && rv__manager_accept(&g->manager, fn, args[accepted]) == RV_OK) {
        if (g->manager.threads == 0 && add_first_thread(g) != RV_OK)
            break;
        accepted++;
    }
    if (accepted > 0)
        fetch_thread(g); /* it wakes the next, while there is more */
    leave(g);
    return accepted;
}

void rv_group_close(rv_group *g)
{
    if (g == NULL)
        return;
    enter(g);
    rv__manager_close(&g->manager);
    if (rv__manager_drained(&g->manager))
        wake_all(g);
    leave(g);
}

void rv_group_cancel(rv_group *g, int cause, const char *why)
{
    if (g != NULL)
        rv_cancel_fire(g->token, cause, why);
}

/* The token of a waiting caller has fired. */
static void next_given_up(struct rv__cancel_watch *watch)
{
    struct waiter *w = (struct waiter *)watch;
    rv_group *g = w->group;
    pthread_mutex_lock(&g->lock);
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&g->lock);
}

/* The result of next right now; RV_EBUSY: nothing yet, wait. */
static int next_now(rv_group *g, rv_cancel *by, bool in_time, rv_group_result *out)
{
    if (rv__manager_take(&g->manager, out)) {
        if (rv__manager_drained(&g->manager)) /* the last one: wake the other callers */
            wake_all(g);
        return 1;
    }
    if (rv__manager_drained(&g->manager))
        return 0;
    if (rv_cancel_fired(by))
        return RV_ECANCELED;
    return in_time ? RV_EBUSY : RV_ETIMEDOUT;
}

/* Wait for a result. Called with the lock. */
static int next_wait(rv_group *g, int64_t timeout_ms, rv_cancel *by, rv_group_result *out)
{
    struct waiter w = { .watch.fired = next_given_up, .group = g };
    bool watching = false, in_time = true;
    int rc = rv__cond_init(&w.wake);
    if (rc < 0)
        return rc;

    g->callers++;
    if (by != NULL) { /* not under our lock; changes in between are seen below */
        leave(g);
        watching = rv__cancel_watch(by, &w.watch);
        enter(g);
    }
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    while ((rc = next_now(g, by, in_time, out)) == RV_EBUSY) {
        if (w.link == NULL) /* again, if another caller took the result */
            waiter_push(g, &w);
        in_time = leave_until(g, &w.wake, deadline_ns);
    }
    if (w.link != NULL)
        waiter_remove(g, &w);
    if (watching) { /* still counted as a caller, so the group exists */
        leave(g);
        rv__cancel_unwatch(by, &w.watch);
        enter(g);
    }
    pthread_cond_destroy(&w.wake);
    if (--g->callers == 0)
        pthread_cond_broadcast(&g->settled);
    return rc;
}

int rv_group_next(rv_group *g, int64_t timeout_ms, rv_cancel *by, rv_group_result *out)
{
    if (g == NULL || out == NULL)
        return RV_EINVAL;

    enter(g);
    int rc = next_now(g, by, timeout_ms != 0, out);
    if (rc == RV_EBUSY) /* often there is no need to wait */
        rc = next_wait(g, timeout_ms, by, out);
    leave(g);
    return rc;
}

bool rv__group_inside(const rv_group *g)
{
    const rv_task *task = rv__task_current();
    return task != NULL && task->group == g;
}

int rv_group_wait(rv_group *g, rv_error *err)
{
    if (g == NULL)
        return rv__fail(err, RV_EINVAL, "rv_group_wait: no group given");
    if (rv__group_inside(g))
        return rv__fail(err, RV_EDEADLK,
                        "rv_group_wait: called from a task of the same group, which would wait "
                        "for itself; wait from outside, or use a group of its own");

    rv_error cause = { .code = 0 };
    enter(g);
    g->callers++;
    while (rv__manager_inflight(&g->manager) > 0)
        leave_until(g, &g->settled, INT64_MAX);
    rv_error first = g->manager.first_error;
    if (first.code == 0) { /* still counted as a caller, so the group exists */
        leave(g);
        (void)rv_cancel_cause(g->token, &cause); /* not fired: stays 0 */
        first = cause;
        enter(g);
    }
    if (--g->callers == 0)
        pthread_cond_broadcast(&g->settled);
    leave(g);

    if (err != NULL && first.code != 0)
        *err = first;
    return first.code;
}

static void drop_results(rv_group *g)
{
    rv_group_result left;
    for (;;) {
        enter(g);
        bool taken = rv__manager_take(&g->manager, &left);
        leave(g);
        if (!taken)
            return;
        if (left.value != NULL && g->drop != NULL)
            g->drop(left.value);
    }
}

void rv_group_free(rv_group *g)
{
    if (g == NULL)
        return;
    if (rv__group_inside(g))
        rv_panic("rv_group_free: called from a task of the same group, which would wait for "
                 "itself");

    rv_group_close(g);
    enter(g);
    while (rv__manager_inflight(&g->manager) > 0 || g->callers > 0)
        leave_until(g, &g->settled, INT64_MAX);
    g->ending = true;
    for (struct worker *w = g->idle; w != NULL; w = w->below)
        pthread_cond_signal(&w->wake);
    while (g->manager.threads > 0)
        leave_until(g, &g->settled, INT64_MAX);
    struct worker *ended = g->ended;
    leave(g);

    join_all(ended);
    drop_results(g);
    rv__manager_done(&g->manager);
    rv_cancel_free(g->token);
    pthread_cond_destroy(&g->settled);
    pthread_mutex_destroy(&g->lock);
    rv__free(g);
}
