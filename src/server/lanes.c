/* lanes.c: threads that call the engine, so that the thread with the sockets never waits.
 *
 * Concurrent writes share commits, so their lane has the most threads. If the store refuses writes, they wait in
 * their own lane, and reads continue.
 *
 * Each idle thread sleeps on its own condition: with several on one, glibc before 2.41 can lose a wake-up (its bug
 * 25847), and a request would wait for the next one. The thread that fell asleep last is woken first: its stack is
 * still in the cache. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "server/transport.h"

enum { WAITING_MAX = 1024 }; /* in one lane; further requests are refused */

static const struct {
    const char *name; /* of its threads */
    int threads;
} lane_kinds[RV__LANES] = {
    [RV__LANE_READ] = { "rival-read", 4 },
    [RV__LANE_WRITE] = { "rival-write", 12 },
    [RV__LANE_CATCH_UP] = { "rival-catchup", 2 },
};
enum { THREADS_MAX = 12 };

struct sleeper {
    pthread_cond_t wake;
    bool woken;
    struct sleeper *next;
};

struct lane {
    struct rv__lanes *lanes;
    const char *name;
    struct sleeper *sleepers; /* the last to fall asleep first */
    struct rv__job *first, **last;
    size_t waiting;
    pthread_t threads[THREADS_MAX];
    int running;
};

struct rv__lanes {
    pthread_mutex_t lock;
    bool closed;
    struct lane lanes[RV__LANES];
};

/* Wake one thread. Called with the lock. */
static void wake(struct lane *lane)
{
    struct sleeper *s = lane->sleepers;
    if (s == NULL)
        return;
    lane->sleepers = s->next;
    s->woken = true;
    pthread_cond_signal(&s->wake);
}

/* Called with the lock, which is released meanwhile. */
static void sleep_in(struct lane *lane, struct sleeper *s)
{
    s->woken = false;
    s->next = lane->sleepers;
    lane->sleepers = s;
    while (!s->woken)
        pthread_cond_wait(&s->wake, &lane->lanes->lock);
}

static void *work(void *arg)
{
    struct lane *lane = arg;
    struct sleeper self = { .wake = PTHREAD_COND_INITIALIZER };
    pthread_setname_np(pthread_self(), lane->name);
    pthread_mutex_lock(&lane->lanes->lock);
    for (;;) {
        struct rv__job *job = lane->first;
        if (job != NULL) {
            lane->first = job->next;
            if (lane->first == NULL)
                lane->last = &lane->first;
            lane->waiting--;
            pthread_mutex_unlock(&lane->lanes->lock);
            job->run(job);
            pthread_mutex_lock(&lane->lanes->lock);
        } else if (lane->lanes->closed) {
            break;
        } else {
            sleep_in(lane, &self);
        }
    }
    pthread_mutex_unlock(&lane->lanes->lock);
    pthread_cond_destroy(&self.wake);
    return NULL;
}

static int lane_start(struct rv__lanes *lanes, enum rv__lane which, rv_error *err)
{
    struct lane *lane = &lanes->lanes[which];
    lane->lanes = lanes;
    lane->name = lane_kinds[which].name;
    lane->last = &lane->first;
    for (int i = 0; i < lane_kinds[which].threads; i++) {
        int e = pthread_create(&lane->threads[i], NULL, work, lane);
        if (e != 0)
            return rv__fail(err, RV_ESYS, "cannot start a thread for requests (error %d)", e);
        lane->running++;
    }
    return RV_OK;
}

int rv__lanes_new(struct rv__lanes **ret, rv_error *err)
{
    int rc = RV_OK;
    struct rv__lanes *lanes = rv__zalloc(1, sizeof *lanes);
    if (lanes == NULL)
        return rv__nomem(err);
    if (pthread_mutex_init(&lanes->lock, NULL) != 0) {
        rv__free(lanes);
        return rv__fail(err, RV_ESYS, "cannot make a lock: %m");
    }
    for (int i = 0; rc == RV_OK && i < RV__LANES; i++)
        rc = lane_start(lanes, (enum rv__lane)i, err);
    if (rc < 0) {
        rv__lanes_free(lanes);
        return rc;
    }
    *ret = lanes;
    return RV_OK;
}

int rv__lanes_push(struct rv__lanes *lanes, enum rv__lane which, struct rv__job *job, bool must)
{
    struct lane *lane = &lanes->lanes[which];
    int rc = RV_OK;
    pthread_mutex_lock(&lanes->lock);
    if (lanes->closed) {
        rc = RV_ECLOSED;
    } else if (!must && lane->waiting >= WAITING_MAX) {
        rc = RV_EBUSY;
    } else {
        job->next = NULL;
        *lane->last = job;
        lane->last = &job->next;
        lane->waiting++;
        wake(lane);
    }
    pthread_mutex_unlock(&lanes->lock);
    return rc;
}

void rv__lanes_close(struct rv__lanes *lanes)
{
    if (lanes == NULL)
        return;
    pthread_mutex_lock(&lanes->lock);
    lanes->closed = true;
    for (int i = 0; i < RV__LANES; i++)
        while (lanes->lanes[i].sleepers != NULL)
            wake(&lanes->lanes[i]);
    pthread_mutex_unlock(&lanes->lock);
    for (int i = 0; i < RV__LANES; i++)
        while (lanes->lanes[i].running > 0)
            pthread_join(lanes->lanes[i].threads[--lanes->lanes[i].running], NULL);
}

void rv__lanes_free(struct rv__lanes *lanes)
{
    if (lanes == NULL)
        return;
    rv__lanes_close(lanes);
    pthread_mutex_destroy(&lanes->lock);
    rv__free(lanes);
}
