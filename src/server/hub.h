/* hub.h: shared by hub.c and stream.c: the ring of events, and its readers. Everything is under hub->lock unless
 * noted. */
#ifndef RV_SERVER_HUB_H
#define RV_SERVER_HUB_H

#include "server/transport.h"

enum {
    RV__RING_RECORDS = 16384,    /* in the ring, whatever their size */
    RV__EVENT_BYTES = 1 << 20,   /* of one event's text; the engine omits long values */
    RV__STREAM_PIECE = 32 << 10, /* read at a time for a stream that is behind */
    RV__STREAM_ROOM = 96 << 10, /* reserved for a stream: its piece, and its connection's buffers */
    RV__WAITER_BUCKETS = 256,   /* for waiters, by run */
};

struct rv__record {
    unsigned refs; /* the ring's, and those of streams that are sending it */
    bool is_log;
    uint64_t seq, index, run_hash;
    size_t run_len, len;
    char bytes[]; /* the run's id, then the text */
};

struct rv__stream {
    struct rv__stream *next, **link;
    struct rv__hub *hub;
    struct rv__who who;
    struct MHD_Connection *connection;
    int fd;
    struct rv__str run; /* empty: all runs */
    char run_id[RV_RUN_ID_SIZE];
    uint64_t run_hash;
    bool no_logs;

    uint64_t cursor;     /* number of the next record; unused while the stream is behind */
    uint64_t seq, index; /* position of the last event sent or skipped */
    bool behind;
    bool catching;    /* a worker is reading older events for it */
    bool orphan;      /* free it when that worker has ended */
    bool suspended;   /* its connection is suspended */
    bool beat;        /* send a heartbeat */
    const char *last; /* the last words to send; NULL: it continues */
    bool rest;        /* send the records of the ring before them */
    int64_t sent_ms;
    struct rv__job job;
    struct rv__buf piece; /* being sent, from piece_at on */
    size_t piece_at;
    struct rv__record *record; /* being sent, from record_at on */
    size_t record_at;
};

struct rv__hub {
    rv_engine *engine;
    struct rv__lanes *lanes;
    struct rv__auth *auth;
    struct rv__room *room;
    struct rv__server_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* for the follower: there is a feed to follow, or it must end */
    rv_cancel *stop;
    pthread_t follower;
    bool runs, closing;
    void (*hurry)(void *arg);
    void *hurry_arg;

    rv_feed *feed;       /* NULL: no followers */
    uint64_t seq, index; /* the feed was read up to here */
    struct rv__record **ring;
    uint64_t head, tail; /* numbers of the next and of the oldest record */
    size_t bytes;
    size_t news; /* records since streams were last woken */
    int64_t woken_ms, unwanted_ms;

    size_t followers; /* streams and waiters */
    struct rv__stream *streams;
    struct rv__waiter *waiters[RV__WAITER_BUCKETS];
    struct rv__timers timers;
};

/* Does the first position come before the second? */
static inline bool rv__is_before(uint64_t seq, uint64_t index, uint64_t than_seq,
                                 uint64_t than_index)
{
    return seq < than_seq || (seq == than_seq && index < than_index);
}

/* Open the feed, unless it is open. Errors: RV_ECLOSED, and those of rv_feed_open(). */
int rv__hub_open(struct rv__hub *hub, rv_error *err);
void rv__hub_leave(struct rv__hub *hub);          /* one follower less */
void rv__record_unref(struct rv__record *record); /* NULL is allowed */
void rv__stream_wake(struct rv__stream *stream);

#endif
