/* stream.c: one client's stream of events: from the ring, or, when it is behind, from the store. hub.c explains
 * this. The connection's thread reads it; a worker fetches its pieces; the hub wakes it. */
#include <stdio.h>
#include <string.h>

#include <microhttpd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/hub.h"

enum {
    RETRY_MS = 100,         /* after an error of the store */
    CLIENT_RETRY_MS = 2000, /* for a browser that lost its connection */
};

static void stream_destroy(struct rv__stream *s)
{
    rv__room_give(s->hub->room, RV__ROOM_MEMORY, RV__STREAM_ROOM);
    rv__buf_done(&s->piece);
    rv__free(s);
}

/* Read a piece from the store. Without the lock; `catching` is set, so the piece is ours. */
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
    while (rc == RV_OK && s->piece.len < RV__STREAM_PIECE) {
        rc = rv_feed_next(feed, 0, NULL, &event, err);
        if (rc == RV_OK) {
            rv__sse_event(&s->piece, &event);
            seq = event.seq;
            index = event.index;
        }
    }
    rv_feed_close(feed);
    if (rv__buf_err(&s->piece, err) < 0) { /* drop an incomplete event: the client connects again */
        rv__buf_reset(&s->piece);
        return RV_ENOMEM;
    }

    pthread_mutex_lock(&hub->lock);
    s->seq = seq;
    s->index = index;
    if (rc == RV_ETIMEDOUT && joins && join >= hub->tail) {
        s->behind = false;
        s->cursor = join;
        if (rv__is_before(seq, index, join_seq, join_index)) {
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
    if (rc == RV_ESTORE || rc == RV_ENOMEM) /* may be temporary */
        rv__clock_sleep_ms(RETRY_MS);
    pthread_mutex_lock(&hub->lock);
    s->catching = false;
    if (rc == RV_ENOTFOUND && s->last == NULL)
        s->last = "events after this are no longer kept";
    else if (rc < 0 && rc != RV_ESTORE && rc != RV_ENOMEM && s->last == NULL)
        s->last = "the engine has closed";
    bool orphan = s->orphan;
    if (!orphan)
        rv__stream_wake(s);
    pthread_mutex_unlock(&hub->lock);
    if (orphan)
        stream_destroy(s);
}

static bool in_ring(const struct rv__hub *hub, uint64_t seq, uint64_t index)
{
    if (hub->tail == hub->head)
        return seq == hub->seq && index == hub->index;
    const struct rv__record *oldest = hub->ring[hub->tail % RV__RING_RECORDS];
    return !rv__is_before(seq, index, oldest->seq, oldest->index) &&
           !rv__is_before(hub->seq, hub->index, seq, index);
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
    int rc = rv__hub_open(hub, err);
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
    /* Read the first piece now: this shows whether the position still exists. */
    rc = catch_up(s, err);
    pthread_mutex_lock(&hub->lock);
    s->catching = false;
    pthread_mutex_unlock(&hub->lock);
    return rc;
}

int rv__stream_new(struct rv__hub *hub, const struct rv__who *who, const char *run_id, bool no_logs,
                   const char *last_id, struct rv__stream **ret, rv_error *err)
{
    if (!rv__room_take(hub->room, RV__ROOM_MEMORY, RV__STREAM_ROOM))
        return rv__fail(err, RV_EBUSY,
                        "no memory for another stream: too many answers wait to be read");
    struct rv__stream *s = rv__zalloc(1, sizeof *s);
    if (s == NULL) {
        rv__room_give(hub->room, RV__ROOM_MEMORY, RV__STREAM_ROOM);
        return rv__nomem(err);
    }
    s->hub = hub;
    s->who = *who;
    s->no_logs = no_logs;
    s->sent_ms = rv__now_ms();
    s->job.run = run_catch_up;
    rv__buf_init(&s->piece, RV__STREAM_PIECE + RV__EVENT_BYTES);
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
        rv__hub_leave(s->hub);
    }
    s->orphan = s->catching;
    bool now = !s->orphan;
    rv__record_unref(s->record);
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

/* Copy pending bytes, as many as fit. */
static size_t copy_pending(struct rv__stream *s, char *to, size_t max)
{
    size_t n = 0;
    if (!s->catching && s->piece_at < s->piece.len) {
        n = copy_rest(s->piece.text, s->piece.len, &s->piece_at, to, max);
        if (s->piece_at == s->piece.len) {
            if (s->piece.cap >
                (size_t)2 * RV__STREAM_PIECE) /* after a long event: free the large buffer */
                rv__buf_done(&s->piece);
            rv__buf_reset(&s->piece);
            s->piece_at = 0;
        }
    } else if (s->record != NULL) {
        n = copy_rest(s->record->bytes + s->record->run_len, s->record->len, &s->record_at, to,
                      max);
        if (s->record_at == s->record->len) {
            rv__record_unref(s->record);
            s->record = NULL;
        }
    }
    return n;
}

static bool wants(const struct rv__stream *s, const struct rv__record *r)
{
    return rv__is_before(s->seq, s->index, r->seq, r->index) && !(s->no_logs && r->is_log) &&
           (rv__str_none(s->run) || (s->run_hash == r->run_hash &&
                                     rv__str_eq(s->run, (struct rv__str){ r->bytes, r->run_len })));
}

/* Take the next record that the stream wants, if there is one. */
static bool next_record(struct rv__stream *s)
{
    struct rv__hub *hub = s->hub;
    while (s->cursor < hub->head) {
        struct rv__record *r = hub->ring[s->cursor++ % RV__RING_RECORDS];
        bool wanted = wants(s, r);
        if (rv__is_before(s->seq, s->index, r->seq, r->index)) {
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
        if (s->catching || (s->last != NULL && !s->rest))
            break;
        if (!s->behind && s->cursor < hub->tail)
            s->behind = true;
        if (s->behind && s->last != NULL) /* called again for the rest */
            break;
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
        s->sent_ms = rv__now_ms();
    }
    s->beat = false;
    pthread_mutex_unlock(&hub->lock);
    return n;
}
