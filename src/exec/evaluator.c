/* evaluator.c: the one thread on which expressions are evaluated, and the one that watches it.
 *
 *   start ──queue──▶ evaluator: begin ─ rv__exprs_eval ─ end ─ done ──▶ next
 *                                 │ current, deadline (under the lock)
 *                    watcher: every TICK_MS, while anything goes on: late? too large? ──halt──▶
 *
 * The watcher is not woken for each evaluation (that costs more than most of them take): it is woken
 * when work begins after a pause, looks every tick as long as work goes on, and then sleeps.
 *
 * libjq gives no account of its memory, so the watcher compares what the process holds (its resident
 * set) with what it held when it first saw this run of jq. Others of the process may grow meanwhile;
 * the bound is large and evaluations are short, so that a step's memory is rarely taken for ours.
 *
 * The evaluator's stack is large, and costs only what is used: libjq frees nested values by recursion,
 * and an expression may nest as deep as its memory allows before the watcher sees it. */
#include "exec/exec.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum { TICK_MS = 10 };
#define STACK_BYTES ((size_t)512 << 20) /* frees what RV__EVAL_MEMORY_BYTES can nest: 64 of 80 */
#define STACK_LEAST ((size_t)8 << 20)   /* where less is allowed: as a process begins with */

struct rv__evaluator {
    struct rv__queue queue;
    struct rv__expr_machine *machine;
    pthread_t thread, watcher;
    int statm; /* /proc/self/statm; -1: not there, memory is not watched */

    pthread_mutex_t lock;
    pthread_cond_t wake; /* the watcher: work begins, or all ends */
    /* Under the lock. */
    bool parked;  /* the watcher sleeps until woken */
    bool busy;    /* work goes on, or did since the watcher looked last */
    bool current; /* an evaluation goes on, */
    bool closing, ended;
    int64_t deadline_ns; /* which is late from here on, */
    char late[64];       /* and ends with this. Written by the evaluator's thread, between two */
};

/* -------------------------------------------------------------------------------- watching --- */

/* What the process holds in memory; 0: nobody knows. */
static size_t resident_bytes(int statm)
{
    char text[128];
    char *end;
    ssize_t n = statm >= 0 ? pread(statm, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return 0;
    text[n] = '\0';
    (void)strtoull(text, &end, 10); /* the size; what counts is the second field */
    return (size_t)strtoull(end, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

struct watch {
    uint64_t run;    /* of jq, that was seen last */
    size_t resident; /* when it was first seen */
};

/* Has this run of jq taken more memory than it may? */
static bool too_large(const struct rv__evaluator *ev, struct watch *watch)
{
    uint64_t run = rv__expr_machine_running(ev->machine);
    if (run == 0)
        return false;
    size_t resident = resident_bytes(ev->statm);
    if (run != watch->run)
        *watch = (struct watch){ run, resident };
    return resident > watch->resident && resident - watch->resident > RV__EVAL_MEMORY_BYTES;
}

/* One look, under the lock. */
static void look(struct rv__evaluator *ev, struct watch *watch)
{
    if (!ev->current)
        return;
    if (ev->closing)
        rv__expr_machine_halt(ev->machine, "the evaluator is closing");
    else if (rv__mono_ns(rv__clock_real()) >= ev->deadline_ns)
        rv__expr_machine_halt(ev->machine, ev->late);
    else if (too_large(ev, watch))
        rv__expr_machine_halt(ev->machine, "it took more memory than it may");
}

static void *watch_main(void *arg)
{
    struct rv__evaluator *ev = arg;
    struct watch watch = { 0 };
    pthread_mutex_lock(&ev->lock);
    while (!ev->ended) {
        look(ev, &watch);
        ev->parked = !ev->busy;
        ev->busy = ev->current;
        (void)rv__cond_wait_until(&ev->wake, &ev->lock,
                                  ev->parked ? RV__NEVER : rv__deadline_ns(TICK_MS));
    }
    pthread_mutex_unlock(&ev->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------ evaluating --- */

static void begin(struct rv__evaluator *ev, int64_t timeout_ms)
{
    pthread_mutex_lock(&ev->lock);
    rv__expr_machine_begin(ev->machine);
    ev->current = ev->busy = true;
    snprintf(ev->late, sizeof ev->late, "it took longer than the %lld ms it may",
             (long long)timeout_ms);
    ev->deadline_ns = rv__deadline_ns(timeout_ms);
    bool wake = ev->parked;
    ev->parked = false;
    pthread_mutex_unlock(&ev->lock);
    if (wake)
        pthread_cond_signal(&ev->wake);
}

static void end(struct rv__evaluator *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->current = false;
    pthread_mutex_unlock(&ev->lock);
}

static bool closing(struct rv__evaluator *ev)
{
    pthread_mutex_lock(&ev->lock);
    bool yes = ev->closing;
    pthread_mutex_unlock(&ev->lock);
    return yes;
}

/* Evaluate into `out`. Compiling is not timed: it happens once for a set, and ends. */
static int evaluate(struct rv__evaluator *ev, const struct rv__evaluation *job, struct rv__buf *out,
                    rv_error *err)
{
    int rc = rv__exprs_check(job->set, NULL, NULL, err);
    if (rc < 0)
        return rc;
    begin(ev, job->timeout_ms > 0 ? job->timeout_ms : RV__EVAL_TIMEOUT_MS);
    rc = rv__exprs_eval(job->set, job->number, ev->machine, job->scope, out, err);
    end(ev);
    return rc;
}

static void run(struct rv__evaluator *ev, struct rv__evaluation *job)
{
    struct rv__buf out;
    rv_error err = { 0 };
    int rc;
    rv__buf_init(&out, job->max_bytes > 0 ? job->max_bytes : RV__EXPR_OUTPUT_BYTES);
    if (closing(ev))
        rc = rv__fail(&err, RV_ECLOSED, "the evaluator is closing");
    else
        rc = evaluate(ev, job, &out, &err);
    job->done(job, rv__buf_view(&out), rc < 0 ? &err : NULL); /* it may be gone now */
    rv__buf_done(&out);
}

static void *evaluator_main(void *arg)
{
    struct rv__evaluator *ev = arg;
    struct rv__queue_node *node, *next;
    while (rv__queue_wait(&ev->queue, RV__NEVER))
        for (node = rv__queue_take(&ev->queue); node != NULL; node = next) {
            next = node->next;
            run(ev, RV__CONTAINER(node, struct rv__evaluation, queued));
        }
    rv__expr_machine_free(ev->machine); /* values are freed on this stack, which is large */
    ev->machine = NULL;
    return NULL;
}

void rv__evaluator_start(struct rv__evaluator *evaluator, struct rv__evaluation *evaluation)
{
    rv_error err;
    if (rv__queue_push(&evaluator->queue, &evaluation->queued) == RV_OK)
        return;
    (void)rv__fail(&err, RV_ECLOSED, "the evaluator is closing");
    evaluation->done(evaluation, (struct rv__str){ "", 0 }, &err);
}

/* ------------------------------------------------------------------------- begin and end --- */

static int start_thread(struct rv__evaluator *ev)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    for (size_t stack = STACK_BYTES; stack >= STACK_LEAST; stack /= 2) {
        rc = pthread_attr_setstacksize(&attr, stack);
        if (rc == 0)
            rc = pthread_create(&ev->thread, &attr, evaluator_main, ev);
        if (rc == 0)
            break;
    }
    pthread_attr_destroy(&attr);
    return rc;
}

/* No thread runs any more, or none was made. */
static void dispose(struct rv__evaluator *ev)
{
    rv__expr_machine_free(ev->machine);
    if (ev->statm >= 0)
        close(ev->statm);
    rv__queue_done(&ev->queue);
    pthread_cond_destroy(&ev->wake);
    pthread_mutex_destroy(&ev->lock);
    rv__free(ev);
}

/* The queue, the lock, the machine: all but the threads. */
static int prepare(struct rv__evaluator *ev, rv_error *err)
{
    int rc = rv__queue_init(&ev->queue, NULL, NULL, err);
    if (rc < 0)
        return rc;
    if (pthread_mutex_init(&ev->lock, NULL) != 0) {
        rv__queue_done(&ev->queue);
        return rv__nomem(err);
    }
    if (rv__cond_init(&ev->wake) != 0) {
        pthread_mutex_destroy(&ev->lock);
        rv__queue_done(&ev->queue);
        return rv__nomem(err);
    }
    return RV_OK;
}

static void join_watcher(struct rv__evaluator *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->ended = true;
    pthread_mutex_unlock(&ev->lock);
    pthread_cond_signal(&ev->wake);
    pthread_join(ev->watcher, NULL);
}

int rv__evaluator_new(struct rv__evaluator **ret, rv_error *err)
{
    struct rv__evaluator *ev = rv__zalloc(1, sizeof *ev);
    int rc;
    if (ev == NULL)
        return rv__nomem(err);
    rc = prepare(ev, err);
    if (rc < 0) {
        rv__free(ev);
        return rc;
    }
    ev->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    rc = rv__expr_machine_new(0, &ev->machine, err);
    if (rc < 0)
        goto out;
    if (pthread_create(&ev->watcher, NULL, watch_main, ev) != 0) {
        rc = rv__fail(err, RV_ESYS, "the evaluator got no thread");
        goto out;
    }
    if (start_thread(ev) != 0) {
        join_watcher(ev);
        rc = rv__fail(err, RV_ESYS, "the evaluator got no thread");
        goto out;
    }
    *ret = ev;
out:
    if (rc < 0)
        dispose(ev);
    return rc;
}

void rv__evaluator_close(struct rv__evaluator *evaluator)
{
    if (evaluator == NULL || evaluator->closing)
        return;
    pthread_mutex_lock(&evaluator->lock);
    evaluator->closing = true;
    pthread_mutex_unlock(&evaluator->lock);
    pthread_cond_signal(&evaluator->wake); /* it halts what goes on */
    rv__queue_close(&evaluator->queue);
    pthread_join(evaluator->thread, NULL);
    join_watcher(evaluator);
}

void rv__evaluator_free(struct rv__evaluator *evaluator)
{
    if (evaluator == NULL)
        return;
    rv__evaluator_close(evaluator);
    dispose(evaluator);
}
