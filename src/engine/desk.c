/* desk.c: a desk with a thread of its own: see desk.h. */
#include "engine/desk.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

/* Handing a batch to the thread and back costs about 20 us: worth it from so many runs on, with as much work in
 * flight. */
enum { PAYS_FROM = 8 };

struct threaded {
    struct rv__desk desk; /* first */
    struct rv__queue *inbox;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    struct rv__job *first, **last;
    bool stop;
};

/* Drop the jobs that are left at the end. */
static void drop_all(struct rv__job *job)
{
    while (job != NULL) {
        struct rv__job *next = job->next;
        job->drop(job);
        job = next;
    }
}

static void *desk_main(void *arg)
{
    struct threaded *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        struct rv__job *job = t->first;
        if (job == NULL) {
            (void)rv__cond_wait_until(&t->wake, &t->lock, RV__NEVER);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        int64_t again_ms = job->run(job);
        pthread_mutex_lock(&t->lock);
        if (again_ms > 0) { /* it stays the first job; the others wait */
            int64_t until_ns = rv__deadline_ns(again_ms);
            while (!t->stop && rv__cond_wait_until(&t->wake, &t->lock, until_ns))
                ;
            continue;
        }
        t->first = job->next;
        if (t->first == NULL)
            t->last = &t->first;
        if (rv__queue_push(t->inbox, &job->letter.node) < 0)
            job->drop(job); /* the loop has ended */
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int give(struct rv__desk *desk, struct rv__job *job)
{
    struct threaded *t = (struct threaded *)desk;
    if (!t->has_thread)
        t->has_thread = pthread_create(&t->thread, NULL, desk_main, t) == 0;
    if (!t->has_thread)
        return RV_ESYS;
    job->next = NULL;
    job->letter.kind = LETTER_JOB;
    pthread_mutex_lock(&t->lock);
    *t->last = job;
    t->last = &job->next;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    return RV_OK;
}

static int64_t now(struct rv__desk *desk, struct rv__job *job)
{
    (void)desk;
    return job->run(job);
}

static bool pays(struct rv__desk *desk, size_t runs, int64_t in_flight)
{
    (void)desk;
    return runs >= PAYS_FROM && in_flight >= PAYS_FROM;
}

static void desk_free(struct rv__desk *desk)
{
    struct threaded *t = (struct threaded *)desk;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread)
        pthread_join(t->thread, NULL);
    drop_all(t->first);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    rv__free(t);
}

int rv__desk_new(struct rv__queue *inbox, struct rv__desk **ret, rv_error *err)
{
    struct threaded *t = rv__zalloc(1, sizeof *t);
    if (t == NULL || rv__cond_init(&t->wake) < 0) {
        rv__free(t);
        return rv__nomem(err);
    }
    pthread_mutex_init(&t->lock, NULL); /* on Linux it cannot fail */
    t->inbox = inbox;
    t->last = &t->first;
    t->desk = (struct rv__desk){ give, now, pays, desk_free };
    *ret = &t->desk;
    return RV_OK;
}
