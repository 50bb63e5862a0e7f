/* hub.c: one reader of the feed for all followers: streams of events, and clients that wait for the end of a run.
 *
 * Two hundred clients must not be two hundred readers of the store. The follower thread reads the feed of all runs
 * once, makes the text of each event once, and keeps the latest in a ring. A stream is a position in the ring; it
 * needs its own memory only for what it is sending. A stream whose position has left the ring is *behind*: a worker
 * reads one piece after the other for it from the store, until nothing is left; then it joins the ring again
 * (stream.c). So a slow client costs a buffer of limited size, and does not slow down others.
 *
 *   in the ring ──its record leaves──▶ behind ──a piece──▶ behind ──nothing left──▶ in the ring
 *
 * Joining misses nothing: the end of the ring is noted before the store is read to its end, so everything before it
 * was read from the store; events that the stream has already seen (by its position) are skipped. Without followers
 * there is no feed, and the engine does no work for us.
 *
 * Everything is under one lock, except the feed, which the follower uses while it is open, and what a worker reads
 * for a stream that is behind. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <microhttpd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/hub.h"

enum {
    PACE_MS = 10,     /* streams are woken at most this often */
    BATCH = 512,      /* or after this many events */
    LINGER_MS = 5000, /* the feed stays open this long without followers: a page may be reloaded */
    LOOK_MS = 1000,   /* how often to look for clients that have gone, or have lost access */
    RETRY_MS = 100,   /* after an error of the store */
    REST_MS = 1000,   /* to read what is on disk, at the end */
};

/* --------------------------------------------------------------------------------- the ring --- */

static struct rv__record *record_new(const rv_event *event)
{
    struct rv__buf text;
    struct rv__str run = rv__str(event->run_id);
    struct rv__record *r = NULL;
    rv__buf_init(&text, RV__EVENT_BYTES);
    rv__sse_event(&text, event);
    if (rv__buf_err(&text, NULL) == RV_OK)
        r = rv__alloc(sizeof *r + run.len + text.len);
    if (r != NULL) {
        *r = (struct rv__record){ .refs = 1, .seq = event->seq, .index = event->index };
        r->is_log = strcmp(event->kind, "log") == 0;
        r->run_hash = rv__str_hash(RV__HASH_START, run);
        r->run_len = run.len;
        r->len = text.len;
        memcpy(r->bytes, run.at, run.len);
        memcpy(r->bytes + run.len, text.text, text.len);
    }
    rv__buf_done(&text);
    return r;
}

void rv__record_unref(struct rv__record *r)
{
    if (r != NULL && --r->refs == 0)
        rv__free(r);
}

static void drop_oldest(struct rv__hub *hub)
{
    struct rv__record *r = hub->ring[hub->tail++ % RV__RING_RECORDS];
    hub->bytes -= r->len;
    rv__record_unref(r);
}

/* The next record does not follow the last one: all streams are behind. */
static void break_ring(struct rv__hub *hub)
{
    while (hub->tail < hub->head)
        drop_oldest(hub);
    hub->tail = ++hub->head;
}

static void add_record(struct rv__hub *hub, struct rv__record *r)
{
    while (hub->tail < hub->head && (hub->head - hub->tail >= RV__RING_RECORDS ||
                                     hub->bytes + r->len > hub->limits.ring_bytes))
        drop_oldest(hub);
    hub->ring[hub->head++ % RV__RING_RECORDS] = r;
    hub->bytes += r->len;
}

/* ----------------------------------------------------------------------------------- waking --- */

void rv__stream_wake(struct rv__stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    MHD_resume_connection(s->connection);
}

static void wake_streams(struct rv__hub *hub)
{
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        rv__stream_wake(s);
    hub->news = 0;
    hub->woken_ms = rv__now_ms();
}

void rv__hub_leave(struct rv__hub *hub)
{
    if (--hub->followers == 0)
        hub->unwanted_ms = rv__now_ms();
}

static void waiter_remove(struct rv__hub *hub, struct rv__waiter *w)
{
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    w->link = NULL;
    rv__timers_disarm(&hub->timers, &w->timer);
    rv__hub_leave(hub);
}

static void waiter_fire(struct rv__hub *hub, struct rv__waiter *w)
{
    waiter_remove(hub, w);
    w->fired = true;
    if (!w->held)
        (void)rv__lanes_push(hub->lanes, RV__LANE_READ, &w->job, true); /* lanes close after us */
}

static struct rv__waiter **waiters_of(struct rv__hub *hub, uint64_t run_hash)
{
    return &hub->waiters[run_hash % RV__WAITER_BUCKETS];
}

static void fire_waiters_of(struct rv__hub *hub, const struct rv__record *r)
{
    struct rv__waiter *next;
    for (struct rv__waiter *w = *waiters_of(hub, r->run_hash); w != NULL; w = next) {
        next = w->next;
        if (rv__str_eq(rv__str(w->run_id), (struct rv__str){ r->bytes, r->run_len }))
            waiter_fire(hub, w);
    }
}

static void fire_all_waiters(struct rv__hub *hub)
{
    for (size_t i = 0; i < RV__WAITER_BUCKETS; i++)
        while (hub->waiters[i] != NULL)
            waiter_fire(hub, hub->waiters[i]);
}

static void end_all(struct rv__hub *hub, const char *words)
{
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->last == NULL) {
            s->last = words;
            s->rest = true;
        }
    wake_streams(hub);
    fire_all_waiters(hub);
}

/* -------------------------------------------------------------------------------- the feed --- */

int rv__hub_open(struct rv__hub *hub, rv_error *err)
{
    int rc;
    if (hub->closing)
        return rv__fail(err, RV_ECLOSED, "the server is shutting down");
    if (hub->feed != NULL)
        return RV_OK;
    rc = rv_feed_open(hub->engine, NULL, &hub->feed, err);
    if (rc < 0)
        return rc;
    rv_feed_position(hub->feed, &hub->seq, &hub->index);
    pthread_cond_signal(&hub->wanted);
    return RV_OK;
}

/* Called with the lock, which is released meanwhile: closing takes a moment. */
static void close_feed(struct rv__hub *hub)
{
    rv_feed *feed = hub->feed;
    hub->feed = NULL;
    break_ring(hub);
    pthread_mutex_unlock(&hub->lock);
    rv_feed_close(feed);
    pthread_mutex_lock(&hub->lock);
}

static bool ends_run(const char *kind)
{
    return strcmp(kind, "run.completed") == 0 || strcmp(kind, "run.failed") == 0 ||
           strcmp(kind, "run.cancelled") == 0;
}

static void take_event(struct rv__hub *hub, const rv_event *event, struct rv__record *r)
{
    hub->seq = event->seq;
    hub->index = event->index;
    if (r == NULL) { /* no memory: it is still on disk */
        break_ring(hub);
        fire_all_waiters(hub);
    } else {
        add_record(hub, r);
        if (ends_run(event->kind))
            fire_waiters_of(hub, r);
    }
    if (++hub->news >= BATCH && rv__now_ms() - hub->woken_ms >= PACE_MS)
        wake_streams(hub);
}

static void pause_until(struct rv__hub *hub, int64_t until_ms)
{
    if (!hub->closing)
        (void)rv__cond_wait_until(&hub->wanted, &hub->lock, until_ms * 1000000);
}

static void no_event(struct rv__hub *hub, int rc)
{
    rv_error err;
    if (rc == RV_ETIMEDOUT && hub->news > 0) {
        int64_t due = hub->woken_ms + PACE_MS;
        if (rv__now_ms() < due)
            pause_until(hub, due);
        else
            wake_streams(hub);
    } else if (rc == RV_ENOTFOUND) { /* retention deleted events before they were read */
        close_feed(hub);
        fire_all_waiters(hub);
        wake_streams(hub);
        if (rv__hub_open(hub, &err) < 0)
            pause_until(hub, rv__now_ms() + RETRY_MS);
    } else if (rc == RV_ECLOSED) {
        hub->closing = true;
        end_all(hub, "the server is shutting down");
    } else if (rc != RV_ETIMEDOUT && rc != RV_ECANCELED) {
        pause_until(hub, rv__now_ms() + RETRY_MS);
    }
}

/* At the end, read what is already on disk, so that streams send it too. Called with the lock, which is released
 * meanwhile. */
static void read_rest(struct rv__hub *hub)
{
    int64_t until_ms = rv__now_ms() + REST_MS;
    rv_event event;
    while (hub->feed != NULL && rv__now_ms() < until_ms) {
        pthread_mutex_unlock(&hub->lock);
        int rc = rv_feed_next(hub->feed, 0, NULL, &event, NULL);
        struct rv__record *r = rc == RV_OK ? record_new(&event) : NULL;
        pthread_mutex_lock(&hub->lock);
        if (rc != RV_OK)
            return;
        take_event(hub, &event, r);
    }
}

static void *follow(void *arg)
{
    struct rv__hub *hub = arg;
    rv_event event;
    rv_error err;
    pthread_setname_np(pthread_self(), "rival-hub");
    pthread_mutex_lock(&hub->lock);
    while (!hub->closing) {
        rv_feed *feed = hub->feed;
        if (feed == NULL) {
            if (hub->followers > 0) { /* it could not be opened again */
                if (rv__hub_open(hub, &err) < 0)
                    pause_until(hub, rv__now_ms() + RETRY_MS);
            } else {
                pthread_cond_wait(&hub->wanted, &hub->lock);
            }
            continue;
        }
        if (hub->followers == 0 && rv__now_ms() - hub->unwanted_ms >= LINGER_MS) {
            close_feed(hub);
            continue;
        }
        int64_t timeout_ms = hub->news > 0 ? 0 : LOOK_MS;
        pthread_mutex_unlock(&hub->lock);
        int rc = rv_feed_next(feed, timeout_ms, hub->stop, &event, &err);
        struct rv__record *r = rc == RV_OK ? record_new(&event) : NULL;
        pthread_mutex_lock(&hub->lock);
        if (rc == RV_OK)
            take_event(hub, &event, r);
        else
            no_event(hub, rc);
    }
    read_rest(hub);
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

/* ---------------------------------------------------------------------------------- waiters --- */

int rv__hub_wait(struct rv__hub *hub, struct rv__waiter *w, int64_t until_ms, rv_error *err)
{
    pthread_mutex_lock(&hub->lock);
    int rc = rv__hub_open(hub, err);
    if (rc == RV_OK)
        rc = rv__timers_arm(&hub->timers, &w->timer, until_ms);
    if (rc == RV_OK) {
        struct rv__waiter **bucket = waiters_of(hub,
                                                rv__str_hash(RV__HASH_START, rv__str(w->run_id)));
        w->link = bucket;
        w->next = *bucket;
        if (w->next != NULL)
            w->next->link = &w->next;
        *bucket = w;
        w->held = true;
        w->fired = false;
        hub->followers++;
    }
    pthread_mutex_unlock(&hub->lock);
    if (rc == RV_OK)
        hub->hurry(hub->hurry_arg);
    return rc;
}

void rv__hub_unwait(struct rv__hub *hub, struct rv__waiter *w)
{
    pthread_mutex_lock(&hub->lock);
    if (!w->fired)
        waiter_remove(hub, w);
    pthread_mutex_unlock(&hub->lock);
}

void rv__hub_sleep(struct rv__hub *hub, struct rv__waiter *w)
{
    pthread_mutex_lock(&hub->lock);
    bool fired = w->fired;
    w->held = false;
    pthread_mutex_unlock(&hub->lock);
    if (fired) /* no other thread knows it now; this is a worker's thread too */
        w->job.run(&w->job);
}

/* ------------------------------------------------------------------------------------- time --- */

/* Clients that have gone are found by their sockets; nothing else looks at a suspended connection. */
static void look_for_gone(struct rv__hub *hub)
{
    size_t count = 0, i = 0;
    struct pollfd *fds = rv__zalloc(hub->followers + 1, sizeof *fds);
    struct rv__waiter *next;
    if (fds == NULL)
        return; /* try again next time */
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->suspended)
            fds[count++] = (struct pollfd){ .fd = s->fd, .events = POLLRDHUP };
    for (size_t b = 0; b < RV__WAITER_BUCKETS; b++)
        for (struct rv__waiter *w = hub->waiters[b]; w != NULL; w = w->next)
            fds[count++] = (struct pollfd){ .fd = w->fd, .events = POLLRDHUP };
    if (poll(fds, count, 0) > 0) {
        for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
            if (s->suspended && fds[i++].revents != 0) {
                s->last = "";
                rv__stream_wake(s);
            }
        for (size_t b = 0; b < RV__WAITER_BUCKETS; b++)
            for (struct rv__waiter *w = hub->waiters[b]; w != NULL; w = next) {
                next = w->next;
                if (fds[i++].revents == 0)
                    continue;
                w->gone = true;
                waiter_fire(hub, w);
            }
    }
    rv__free(fds);
}

/* End streams and waits of sessions that have ended and of removed tokens. */
static void turn_out(struct rv__hub *hub, int64_t now_ms)
{
    struct rv__waiter *next;
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->last == NULL && !rv__auth_holds(hub->auth, &s->who, now_ms)) {
            s->last = "the session has ended, or the token was withdrawn";
            rv__stream_wake(s);
        }
    for (size_t b = 0; b < RV__WAITER_BUCKETS; b++)
        for (struct rv__waiter *w = hub->waiters[b]; w != NULL; w = next) {
            next = w->next;
            if (!rv__auth_holds(hub->auth, w->who, now_ms))
                waiter_fire(hub, w);
        }
}

int64_t rv__hub_tick(struct rv__hub *hub)
{
    struct rv__timer *due;
    pthread_mutex_lock(&hub->lock);
    int64_t now = rv__now_ms();
    while ((due = rv__timers_pop_due(&hub->timers, now)) != NULL)
        waiter_fire(hub, RV__CONTAINER(due, struct rv__waiter, timer));
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->suspended && now - s->sent_ms >= hub->limits.heartbeat_ms) {
            s->beat = true;
            rv__stream_wake(s);
        }
    turn_out(hub, now);
    look_for_gone(hub);
    struct rv__timer *first = rv__timers_first(&hub->timers);
    int64_t again = hub->followers > 0 ? now + LOOK_MS : INT64_MAX;
    if (first != NULL && first->due < again)
        again = first->due;
    pthread_mutex_unlock(&hub->lock);
    return again;
}

/* ------------------------------------------------------------------------------- life, death --- */

int rv__hub_new(rv_engine *engine, struct rv__lanes *lanes, struct rv__auth *auth,
                struct rv__room *room, const struct rv__server_limits *limits,
                void (*hurry)(void *arg), void *arg, struct rv__hub **ret, rv_error *err)
{
    struct rv__hub *hub = rv__zalloc(1, sizeof *hub);
    int e;
    if (hub == NULL)
        return rv__nomem(err);
    *hub = (struct rv__hub){
        .engine = engine, .lanes = lanes, .auth = auth, .room = room, .limits = *limits
    };
    hub->hurry = hurry;
    hub->hurry_arg = arg;
    rv__timers_init(&hub->timers);
    hub->ring = rv__zalloc(RV__RING_RECORDS, sizeof(struct rv__record *));
    hub->stop = rv_cancel_new(NULL);
    if (hub->ring == NULL || hub->stop == NULL || rv__cond_init(&hub->wanted) < 0) {
        rv_cancel_free(hub->stop);
        rv__free(hub->ring);
        rv__free(hub);
        return rv__nomem(err);
    }
    pthread_mutex_init(&hub->lock, NULL);
    e = pthread_create(&hub->follower, NULL, follow, hub);
    if (e != 0) {
        rv__hub_free(hub);
        return rv__fail(err, RV_ESYS, "cannot start a thread for events (error %d)", e);
    }
    hub->runs = true;
    *ret = hub;
    return RV_OK;
}

void rv__hub_drain(struct rv__hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->closing = true;
    pthread_cond_broadcast(&hub->wanted);
    pthread_mutex_unlock(&hub->lock);
    rv_cancel_fire(hub->stop, 0, NULL);
    if (hub->runs)
        pthread_join(hub->follower, NULL);
    hub->runs = false;
    pthread_mutex_lock(&hub->lock);
    end_all(hub, "the server is shutting down");
    pthread_mutex_unlock(&hub->lock);
}

void rv__hub_free(struct rv__hub *hub)
{
    if (hub == NULL)
        return;
    if (hub->runs)
        rv__hub_drain(hub);
    rv_feed_close(hub->feed);
    while (hub->tail < hub->head)
        drop_oldest(hub);
    rv__timers_done(&hub->timers);
    pthread_cond_destroy(&hub->wanted);
    pthread_mutex_destroy(&hub->lock);
    rv_cancel_free(hub->stop);
    rv__free(hub->ring);
    rv__free(hub);
}
