/* hub.c: one reader of the feed for all who follow it: streams of events, and clients that wait for a
 * run's end.
 *
 * Two hundred clients must not be two hundred readers of the store. The follower thread reads the feed
 * of all runs once, makes the text of each event once, and keeps the last of them in a ring. A stream
 * is a number of a record in it: memory of its own it needs for what is halfway out only. One whose
 * number has left the ring is *behind*: a worker reads a piece for it from the store, where everything
 * is, and so on until there is no more; then it joins the ring again. So a slow reader costs a buffer
 * of bounded size, and the time of those who are not slow is not its business.
 *
 *   in the ring ──its record leaves──▶ behind ──a piece──▶ behind ──nothing left──▶ in the ring
 *
 * Joining misses nothing: the ring's end is looked up before the store is read to its end, so all that
 * comes before it has been read from the store; and what the stream has seen already (its position) is
 * passed over. Nobody follows: there is no feed, and the engine does no work for us.
 *
 * Everything here is under one lock but the feed, which is the follower's while it is open, and what a
 * worker reads for a stream that is behind. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <microhttpd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/transport.h"

enum {
    RECORDS = 16384,        /* at most in the ring, whatever their size */
    EVENT_BYTES = 1 << 20,  /* of one event's text; the engine leaves long values out */
    PIECE_BYTES = 64 << 10, /* read for a stream that is behind, at a time */
    PACE_MS = 10,     /* streams are woken so often at most: what comes meanwhile goes together */
    BATCH = 512,      /* or when so many events came */
    LINGER_MS = 5000, /* the feed stays open so long without followers: a page is reloaded */
    LOOK_MS = 1000,   /* how often clients are looked at that may have gone */
    RETRY_MS = 100,   /* after the store has failed */
    BUCKETS = 256,    /* of waiters, by run */
    CLIENT_RETRY_MS = 2000, /* for a browser that lost us */
};

struct record {
    unsigned refs; /* the ring's, and those of streams that are halfway through */
    bool is_log;
    uint64_t seq, index, run_hash;
    size_t run_len, len;
    char bytes[]; /* the run's id, then the text */
};

struct rv__stream {
    struct rv__stream *next, **link;
    struct rv__hub *hub;
    struct MHD_Connection *connection;
    int fd;
    struct rv__str run; /* "none": of all */
    char run_id[RV_RUN_ID_SIZE];
    uint64_t run_hash;
    bool no_logs;

    uint64_t cursor;     /* of the next record; means nothing while it is behind */
    uint64_t seq, index; /* it has passed all up to here */
    bool behind;
    bool catching;    /* a worker reads for it */
    bool orphan;      /* freed, as soon as that has ended */
    bool suspended;   /* its connection */
    bool beat;        /* say something */
    const char *last; /* words at the end; NULL: it has not come */
    int64_t sent_ms;
    struct rv__job job;
    struct rv__buf piece; /* on its way out, from piece_at on */
    size_t piece_at;
    struct record *record; /* the same */
    size_t record_at;
};

struct rv__hub {
    rv_engine *engine;
    struct rv__lanes *lanes;
    struct rv__server_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* the follower's: there is a feed to follow; or the end */
    rv_cancel *stop;
    pthread_t follower;
    bool runs, closing;
    void (*hurry)(void *arg);
    void *hurry_arg;

    rv_feed *feed;       /* NULL: nobody follows */
    uint64_t seq, index; /* read up to here */
    struct record **ring;
    uint64_t head, tail; /* numbers: of the next record; of the oldest that is there */
    size_t bytes;
    size_t news; /* records that streams were not woken for */
    int64_t woken_ms, unwanted_ms;

    size_t followers; /* streams and waiters */
    struct rv__stream *streams;
    struct rv__waiter *waiters[BUCKETS];
    struct rv__timers timers;
};

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

static bool is_before(uint64_t seq, uint64_t index, uint64_t than_seq, uint64_t than_index)
{
    return seq < than_seq || (seq == than_seq && index < than_index);
}

/* --------------------------------------------------------------------------------- the ring --- */

static struct record *record_new(const rv_event *event)
{
    struct rv__buf text;
    struct rv__str run = rv__str(event->run_id);
    struct record *r = NULL;
    rv__buf_init(&text, EVENT_BYTES);
    rv__sse_event(&text, event);
    if (rv__buf_err(&text, NULL) == RV_OK)
        r = rv__alloc(sizeof *r + run.len + text.len);
    if (r != NULL) {
        *r = (struct record){ .refs = 1, .seq = event->seq, .index = event->index };
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

static void record_unref(struct record *r)
{
    if (r != NULL && --r->refs == 0)
        rv__free(r);
}

static void drop_oldest(struct rv__hub *hub)
{
    struct record *r = hub->ring[hub->tail++ % RECORDS];
    hub->bytes -= r->len;
    record_unref(r);
}

/* What comes next does not follow what was there: everybody is behind. */
static void break_ring(struct rv__hub *hub)
{
    while (hub->tail < hub->head)
        drop_oldest(hub);
    hub->tail = ++hub->head;
}

static void add_record(struct rv__hub *hub, struct record *r)
{
    while (hub->tail < hub->head &&
           (hub->head - hub->tail >= RECORDS || hub->bytes + r->len > hub->limits.ring_bytes))
        drop_oldest(hub);
    hub->ring[hub->head++ % RECORDS] = r;
    hub->bytes += r->len;
}

/* ----------------------------------------------------------------------------------- waking --- */

static void stream_wake(struct rv__stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    MHD_resume_connection(s->connection);
}

static void wake_streams(struct rv__hub *hub)
{
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        stream_wake(s);
    hub->news = 0;
    hub->woken_ms = now_ms();
}

static void leave(struct rv__hub *hub)
{
    if (--hub->followers == 0)
        hub->unwanted_ms = now_ms();
}

static void waiter_remove(struct rv__hub *hub, struct rv__waiter *w)
{
    *w->link = w->next;
    if (w->next != NULL)
        w->next->link = w->link;
    w->link = NULL;
    rv__timers_disarm(&hub->timers, &w->timer);
    leave(hub);
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
    return &hub->waiters[run_hash % BUCKETS];
}

static void fire_waiters_of(struct rv__hub *hub, const struct record *r)
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
    for (size_t i = 0; i < BUCKETS; i++)
        while (hub->waiters[i] != NULL)
            waiter_fire(hub, hub->waiters[i]);
}

static void end_all(struct rv__hub *hub, const char *words)
{
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->last == NULL)
            s->last = words;
    wake_streams(hub);
    fire_all_waiters(hub);
}

/* -------------------------------------------------------------------------------- the feed --- */

static int open_feed(struct rv__hub *hub, rv_error *err)
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

/* With the lock, which is given back meanwhile: closing takes a moment. */
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

static void take_event(struct rv__hub *hub, const rv_event *event, struct record *r)
{
    hub->seq = event->seq;
    hub->index = event->index;
    if (r == NULL) { /* no memory for it: it is on disk */
        break_ring(hub);
        fire_all_waiters(hub);
    } else {
        add_record(hub, r);
        if (ends_run(event->kind))
            fire_waiters_of(hub, r);
    }
    if (++hub->news >= BATCH && now_ms() - hub->woken_ms >= PACE_MS)
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
        if (now_ms() < due)
            pause_until(hub, due);
        else
            wake_streams(hub);
    } else if (rc == RV_ENOTFOUND) { /* retention took what had not been read */
        close_feed(hub);
        fire_all_waiters(hub);
        wake_streams(hub);
        if (open_feed(hub, &err) < 0)
            pause_until(hub, now_ms() + RETRY_MS);
    } else if (rc == RV_ECLOSED) {
        hub->closing = true;
        end_all(hub, "the engine has closed");
    } else if (rc != RV_ETIMEDOUT && rc != RV_ECANCELED) {
        pause_until(hub, now_ms() + RETRY_MS);
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
                if (open_feed(hub, &err) < 0)
                    pause_until(hub, now_ms() + RETRY_MS);
            } else {
                pthread_cond_wait(&hub->wanted, &hub->lock);
            }
            continue;
        }
        if (hub->followers == 0 && now_ms() - hub->unwanted_ms >= LINGER_MS) {
            close_feed(hub);
            continue;
        }
        int64_t timeout_ms = hub->news > 0 ? 0 : LOOK_MS;
        pthread_mutex_unlock(&hub->lock);
        int rc = rv_feed_next(feed, timeout_ms, hub->stop, &event, &err);
        struct record *r = rc == RV_OK ? record_new(&event) : NULL;
        pthread_mutex_lock(&hub->lock);
        if (rc == RV_OK)
            take_event(hub, &event, r);
        else
            no_event(hub, rc);
    }
    pthread_mutex_unlock(&hub->lock);
    return NULL;
}

/* ---------------------------------------------------------------------------------- waiters --- */

int rv__hub_wait(struct rv__hub *hub, struct rv__waiter *w, int64_t until_ms, rv_error *err)
{
    pthread_mutex_lock(&hub->lock);
    int rc = open_feed(hub, err);
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
    if (fired) /* nobody else knows it any more; this is a worker's thread too */
        w->job.run(&w->job);
}

/* ---------------------------------------------------------------------------------- streams --- */

static void stream_destroy(struct rv__stream *s)
{
    rv__buf_done(&s->piece);
    rv__free(s);
}

/* Read a piece from the store. Without the lock; the stream is `catching`, so its piece is ours. */
static int catch_up(struct rv__stream *s, rv_error *err)
{
    struct rv__hub *hub = s->hub;
    rv_feed *feed = NULL;
    rv_event event;
    uint64_t seq = s->seq, index = s->index;

    pthread_mutex_lock(&hub->lock);
    uint64_t join = hub->head, join_seq = hub->seq, join_index = hub->index;
    bool joins = hub->feed != NULL;
    pthread_mutex_unlock(&hub->lock);

    int rc = rv_feed_open(hub->engine,
                          RV_FEED_OPTS(.run_id = s->run.at, .no_logs = s->no_logs, .seq = seq,
                                       .index = index,
                                       .from = seq == 0 ? RV_FROM_OLDEST : RV_FROM_POSITION),
                          &feed, err);
    while (rc == RV_OK && s->piece.len < PIECE_BYTES) {
        rc = rv_feed_next(feed, 0, NULL, &event, err);
        if (rc == RV_OK) {
            rv__sse_event(&s->piece, &event);
            seq = event.seq;
            index = event.index;
        }
    }
    rv_feed_close(feed);
    if (rv__buf_err(&s->piece, err) < 0) { /* half an event is none: the client comes again */
        rv__buf_reset(&s->piece);
        return RV_ENOMEM;
    }

    pthread_mutex_lock(&hub->lock);
    s->seq = seq;
    s->index = index;
    if (rc == RV_ETIMEDOUT && joins && join >= hub->tail) {
        s->behind = false;
        s->cursor = join;
        if (is_before(seq, index, join_seq, join_index)) {
            s->seq = join_seq;
            s->index = join_index;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return rc == RV_ETIMEDOUT ? RV_OK : rc;
}

static void run_catch_up(struct rv__job *job)
{
    struct rv__stream *s = RV__CONTAINER(job, struct rv__stream, job);
    struct rv__hub *hub = s->hub;
    rv_error err;
    int rc = catch_up(s, &err);
    if (rc == RV_ESTORE || rc == RV_ENOMEM) /* may pass */
        rv__clock_sleep_ms(RETRY_MS);
    pthread_mutex_lock(&hub->lock);
    s->catching = false;
    if (rc == RV_ENOTFOUND && s->last == NULL)
        s->last = "events behind this are no longer kept";
    else if (rc < 0 && rc != RV_ESTORE && rc != RV_ENOMEM && s->last == NULL)
        s->last = "the engine has closed";
    bool orphan = s->orphan;
    if (!orphan)
        stream_wake(s);
    pthread_mutex_unlock(&hub->lock);
    if (orphan)
        stream_destroy(s);
}

static bool in_ring(const struct rv__hub *hub, uint64_t seq, uint64_t index)
{
    if (hub->tail == hub->head)
        return seq == hub->seq && index == hub->index;
    const struct record *oldest = hub->ring[hub->tail % RECORDS];
    return !is_before(seq, index, oldest->seq, oldest->index) &&
           !is_before(hub->seq, hub->index, seq, index);
}

static void stream_link(struct rv__hub *hub, struct rv__stream *s)
{
    s->link = &hub->streams;
    s->next = hub->streams;
    if (s->next != NULL)
        s->next->link = &s->next;
    hub->streams = s;
    hub->followers++;
}

static int stream_place(struct rv__stream *s, const char *last_id, rv_error *err)
{
    struct rv__hub *hub = s->hub;
    pthread_mutex_lock(&hub->lock);
    int rc = open_feed(hub, err);
    if (rc == RV_OK) {
        stream_link(hub, s);
        s->cursor = hub->head;
        if (last_id == NULL) {
            s->seq = hub->seq;
            s->index = hub->index;
        } else if (in_ring(hub, s->seq, s->index)) {
            s->cursor = hub->tail;
        } else {
            s->behind = s->catching = true;
        }
        rv__buf_fmt(&s->piece, "retry: %d\nid: %llu.%llu\n\n", CLIENT_RETRY_MS,
                    (unsigned long long)s->seq, (unsigned long long)s->index);
    }
    pthread_mutex_unlock(&hub->lock);
    if (rc < 0 || !s->behind)
        return rc;
    /* The first piece here and now: it tells whether the position is still known. */
    rc = catch_up(s, err);
    pthread_mutex_lock(&hub->lock);
    s->catching = false;
    pthread_mutex_unlock(&hub->lock);
    return rc;
}

int rv__stream_new(struct rv__hub *hub, const char *run_id, bool no_logs, const char *last_id,
                   struct rv__stream **ret, rv_error *err)
{
    struct rv__stream *s = rv__zalloc(1, sizeof *s);
    if (s == NULL)
        return rv__nomem(err);
    s->hub = hub;
    s->no_logs = no_logs;
    s->sent_ms = now_ms();
    s->job.run = run_catch_up;
    rv__buf_init(&s->piece, PIECE_BYTES + EVENT_BYTES);
    if (run_id[0] != '\0') {
        snprintf(s->run_id, sizeof s->run_id, "%s", run_id);
        s->run = rv__str(s->run_id);
        s->run_hash = rv__str_hash(RV__HASH_START, s->run);
    }
    int rc = RV_OK;
    if (last_id != NULL && !rv__sse_position(last_id, &s->seq, &s->index))
        rc = rv__fail(err, RV_EINVAL, "Last-Event-ID is the id of an event: SEQ.INDEX");
    if (rc == RV_OK)
        rc = stream_place(s, last_id, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&s->piece, err);
    if (rc < 0) {
        rv__stream_free(s);
        return rc;
    }
    *ret = s;
    return RV_OK;
}

void rv__stream_attach(struct rv__stream *s, struct MHD_Connection *connection, int fd)
{
    s->connection = connection;
    s->fd = fd;
}

void rv__stream_free(struct rv__stream *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->hub->lock);
    if (s->link != NULL) {
        *s->link = s->next;
        if (s->next != NULL)
            s->next->link = s->link;
        leave(s->hub);
    }
    s->orphan = s->catching;
    bool now = !s->orphan;
    record_unref(s->record);
    pthread_mutex_unlock(&s->hub->lock);
    if (now)
        stream_destroy(s);
}

static size_t copy_rest(const char *from, size_t len, size_t *at, char *to, size_t max)
{
    size_t n = len - *at < max ? len - *at : max;
    memcpy(to, from + *at, n);
    *at += n;
    return n;
}

/* Is there something in a buffer on its way out? Then as much of it as there is room for. */
static size_t copy_pending(struct rv__stream *s, char *to, size_t max)
{
    size_t n = 0;
    if (!s->catching && s->piece_at < s->piece.len) {
        n = copy_rest(s->piece.text, s->piece.len, &s->piece_at, to, max);
        if (s->piece_at == s->piece.len) {
            rv__buf_reset(&s->piece);
            s->piece_at = 0;
        }
    } else if (s->record != NULL) {
        n = copy_rest(s->record->bytes + s->record->run_len, s->record->len, &s->record_at, to,
                      max);
        if (s->record_at == s->record->len) {
            record_unref(s->record);
            s->record = NULL;
        }
    }
    return n;
}

static bool wants(const struct rv__stream *s, const struct record *r)
{
    return is_before(s->seq, s->index, r->seq, r->index) && !(s->no_logs && r->is_log) &&
           (rv__str_none(s->run) || (s->run_hash == r->run_hash &&
                                     rv__str_eq(s->run, (struct rv__str){ r->bytes, r->run_len })));
}

/* The next record that it wants, if it is there. */
static bool next_record(struct rv__stream *s)
{
    struct rv__hub *hub = s->hub;
    while (s->cursor < hub->head) {
        struct record *r = hub->ring[s->cursor++ % RECORDS];
        bool wanted = wants(s, r);
        if (is_before(s->seq, s->index, r->seq, r->index)) {
            s->seq = r->seq;
            s->index = r->index;
        }
        if (wanted) {
            r->refs++;
            s->record = r;
            s->record_at = 0;
            return true;
        }
    }
    return false;
}

static size_t fill(struct rv__stream *s, char *to, size_t max)
{
    struct rv__hub *hub = s->hub;
    size_t n = 0;
    while (n < max) {
        size_t more = copy_pending(s, to + n, max - n);
        n += more;
        if (more > 0)
            continue;
        if (s->last != NULL || s->catching)
            break;
        if (!s->behind && s->cursor < hub->tail)
            s->behind = true;
        if (s->behind) {
            s->catching = true;
            if (rv__lanes_push(hub->lanes, RV__LANE_CATCH_UP, &s->job, true) < 0) {
                s->catching = false;
                s->last = "the server is shutting down";
            }
            break;
        }
        if (!next_record(s))
            break;
    }
    return n;
}

ssize_t rv__stream_read(struct rv__stream *s, char *ret, size_t max)
{
    static const char beat[] = { ':', '\n', '\n' }; /* a comment */
    struct rv__hub *hub = s->hub;
    pthread_mutex_lock(&hub->lock);
    ssize_t n = (ssize_t)fill(s, ret, max);
    if (n == 0 && s->beat && max >= sizeof beat) {
        memcpy(ret, beat, sizeof beat);
        n = sizeof beat;
    }
    if (n == 0 && s->last != NULL && !s->catching) {
        n = s->last[0] != '\0' && strlen(s->last) + 4 <= max
                ? snprintf(ret, max, ": %s\n\n", s->last)
                : -1;
        s->last = "";
    }
    if (n == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
    } else {
        s->sent_ms = now_ms();
    }
    s->beat = false;
    pthread_mutex_unlock(&hub->lock);
    return n;
}

/* ------------------------------------------------------------------------------------- time --- */

/* Who does not answer any more is known by its socket; while a connection is suspended nobody else
 * looks at it. */
static void look_for_gone(struct rv__hub *hub)
{
    size_t count = 0, i = 0;
    struct pollfd *fds = rv__zalloc(hub->followers + 1, sizeof *fds);
    struct rv__waiter *next;
    if (fds == NULL)
        return; /* next time */
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->suspended)
            fds[count++] = (struct pollfd){ .fd = s->fd, .events = POLLRDHUP };
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct rv__waiter *w = hub->waiters[b]; w != NULL; w = w->next)
            fds[count++] = (struct pollfd){ .fd = w->fd, .events = POLLRDHUP };
    if (poll(fds, count, 0) > 0) {
        for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
            if (s->suspended && fds[i++].revents != 0) {
                s->last = "";
                stream_wake(s);
            }
        for (size_t b = 0; b < BUCKETS; b++)
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

int64_t rv__hub_tick(struct rv__hub *hub)
{
    struct rv__timer *due;
    pthread_mutex_lock(&hub->lock);
    int64_t now = now_ms();
    while ((due = rv__timers_pop_due(&hub->timers, now)) != NULL)
        waiter_fire(hub, RV__CONTAINER(due, struct rv__waiter, timer));
    for (struct rv__stream *s = hub->streams; s != NULL; s = s->next)
        if (s->suspended && now - s->sent_ms >= hub->limits.heartbeat_ms) {
            s->beat = true;
            stream_wake(s);
        }
    look_for_gone(hub);
    struct rv__timer *first = rv__timers_first(&hub->timers);
    int64_t again = hub->followers > 0 ? now + LOOK_MS : INT64_MAX;
    if (first != NULL && first->due < again)
        again = first->due;
    pthread_mutex_unlock(&hub->lock);
    return again;
}

/* ------------------------------------------------------------------------------- life, death --- */

int rv__hub_new(rv_engine *engine, struct rv__lanes *lanes, const struct rv__server_limits *limits,
                void (*hurry)(void *arg), void *arg, struct rv__hub **ret, rv_error *err)
{
    struct rv__hub *hub = rv__zalloc(1, sizeof *hub);
    int e;
    if (hub == NULL)
        return rv__nomem(err);
    *hub = (struct rv__hub){ .engine = engine, .lanes = lanes, .limits = *limits };
    hub->hurry = hurry;
    hub->hurry_arg = arg;
    rv__timers_init(&hub->timers);
    hub->ring = rv__zalloc(RECORDS, sizeof(struct record *));
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
    end_all(hub, "the server is shutting down");
    pthread_cond_broadcast(&hub->wanted);
    pthread_mutex_unlock(&hub->lock);
    rv_cancel_fire(hub->stop, 0, NULL);
    if (hub->runs)
        pthread_join(hub->follower, NULL);
    hub->runs = false;
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
