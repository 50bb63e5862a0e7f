/* transport.h: what the files of the transport share. Not for outside of server/.
 *
 * Threads: one of libmicrohttpd does all that has to do with sockets and never waits for anything else;
 * lanes of workers call the engine; the hub's one follows the feed; the keeper's looks at the clock.
 * Locks, in the order in which they may be taken: visits; hub; lanes; those of libmicrohttpd; door. */
#ifndef RV_SERVER_TRANSPORT_H
#define RV_SERVER_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/listen.h"
#include "base/str.h"
#include "base/timers.h"
#include "server/server.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

/* Time, for limits and waiting: monotonic. */
static inline int64_t rv__now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* -------------------------------------------------------------------------------- guard.c --- */

struct rv__guard { /* "none" where there is no such header */
    struct rv__str host, origin, fetch_site, fetch_mode;
    bool changes; /* neither GET nor HEAD */
    bool api;     /* not a file of the UI */
};

/* NULL: let it in. Else why not, for people. `names`: of hosts, besides addresses and localhost. */
const char *rv__guard_judge(const struct rv__guard *request, const char *const *names);
bool rv__guard_host(struct rv__str host, const char *const *names);
bool rv__guard_same_origin(struct rv__str origin, struct rv__str host);

/* ------------------------------------------------------------------------------- tokens.c --- */

enum { RV__TOKEN_NAME_SIZE = 65 }; /* of its owner, and a NUL */
struct rv__token {
    enum rv__role role;
    char hash[RV__SHA256_HEX];
    char name[RV__TOKEN_NAME_SIZE]; /* "": none was given */
};
struct rv__tokens {
    struct rv__token *at;
    size_t count;
    rv_error
        weak; /* what makes them easy to find out; code 0: nothing. Good enough on this machine */
};

/* Errors: RV_EINVAL (with file:line, and never a token), RV_ENOMEM, RV_ESYS. */
int rv__tokens_load(const char *path, struct rv__tokens *ret, rv_error *err);
void rv__tokens_done(struct rv__tokens *tokens);
bool rv__token_hash(struct rv__str token, char ret[RV__SHA256_HEX]); /* false: it cannot be one */
/* NULL: nobody has it. Good until the tokens change. */
const struct rv__token *rv__tokens_find(const struct rv__tokens *tokens,
                                        const char hash[RV__SHA256_HEX]);
/* Equal? Looks at every digit, whatever it finds. */
bool rv__same_hash(const char *a, const char *b);
/* A file of some kilobytes. A secret one must not be readable by others; the text of one is for
 * rv__secret_done(). Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS; there is nothing in `out` then. */
int rv__small_file(const char *path, bool secret, struct rv__buf *out, rv_error *err);

/* --------------------------------------------------------------------------------- door.c --- */

enum { RV__PASS_BYTES = 128 }; /* of the token of an execution: longer ones are nobody's */

/* Who asks, and by what right. */
struct rv__who {
    enum rv__role role;
    char token[RV__SHA256_HEX];     /* its hash; "": there are no tokens here */
    uint64_t session;               /* that began with it; 0: the token came with the request */
    char name[RV__TOKEN_NAME_SIZE]; /* of the token's owner; "": not known */
    char pass[RV__PASS_BYTES];      /* the token of an execution, as it came; "": it is none */
};

struct rv__session;
struct rv__door { /* Thread: any. Its lock is taken last */
    pthread_mutex_t lock;
    struct rv__tokens tokens;
    struct rv__session *at;
    size_t max, per_token;
    uint64_t begun; /* sessions, ever */
};

enum { RV__SESSION_SIZE = 65 }; /* the name of a session, and a NUL */
int rv__door_init(struct rv__door *door, size_t sessions, size_t per_token, rv_error *err);
void rv__door_done(struct rv__door *door);
/* These tokens from now on; the old ones are in *tokens then. Sessions of those that are gone end: how
 * many. */
size_t rv__door_change(struct rv__door *door, struct rv__tokens *tokens);
/* Who has it? False: nobody, and `ret` is as it was. */
bool rv__door_token(struct rv__door *door, struct rv__str token, struct rv__who *ret);
bool rv__door_session(struct rv__door *door, struct rv__str name, int64_t now_ms,
                      struct rv__who *ret);
/* If there are too many of this token, the oldest of these ends; if there are too many in all, the oldest.
 * Errors: RV_ESYS. */
int rv__door_begin(struct rv__door *door, const struct rv__who *by, int64_t now_ms,
                   char ret[RV__SESSION_SIZE], rv_error *err);
void rv__door_end(struct rv__door *door, struct rv__str name, int64_t now_ms);
/* Might it still come in? */
bool rv__door_holds(struct rv__door *door, const struct rv__who *who, int64_t now_ms);
int64_t rv__session_seconds(void); /* how long one lasts */

/* ------------------------------------------------------------------------------- visits.c --- */

/* Where a connection is, and so how long it may stay there. */
enum rv__visit_phase {
    RV__VISIT_FIRST,   /* its first request is awaited */
    RV__VISIT_BODY,    /* the head is here */
    RV__VISIT_WORKING, /* ours to answer: no limit here */
    RV__VISIT_SENDING, /* the answer is on its way */
    RV__VISIT_STREAM,  /* the same, without an end */
    RV__VISIT_IDLE,    /* the next request is awaited */
};

struct rv__address;
struct rv__visit { /* a connection */
    struct rv__visit *next, **link;
    struct rv__address *address;
    int fd;
    enum rv__visit_phase phase;
    int64_t until_ms; /* monotonic; 0 = no limit */
    bool cut;         /* it was shut down */
};

struct rv__visits {
    pthread_mutex_t lock;
    struct rv__visit *all;
    size_t count;
    struct rv__address **buckets;
    size_t addresses;
    struct rv__server_limits limits;
};

int rv__visits_init(struct rv__visits *visits, const struct rv__server_limits *limits,
                    rv_error *err);
void rv__visits_done(struct rv__visits *visits); /* no connection is left */

/* May there be another connection, from there? NULL: yes; else which limit is in the way. */
const char *rv__visits_refuse(struct rv__visits *visits, const struct sockaddr *from);
/* NULL: no memory. */
struct rv__visit *rv__visit_begin(struct rv__visits *visits, const struct sockaddr *from, int fd);
void rv__visit_end(struct rv__visits *visits, struct rv__visit *visit);
void rv__visit_phase(struct rv__visits *visits, struct rv__visit *visit,
                     enum rv__visit_phase phase);
bool rv__visit_request(struct rv__visits *visits, struct rv__visit *visit); /* false: too many */
/* A wrong token came. False: too many did, from there. The right one is never refused. */
bool rv__visit_wrong_token(struct rv__visits *visits, struct rv__visit *visit);
void rv__visit_text(const struct rv__visit *visit, char ret[46]); /* its address */
bool rv__visit_local(const struct rv__visit *visit);              /* it is this machine's */
/* Cut off those whose time is over; how many. */
size_t rv__visits_sweep(struct rv__visits *visits);

/* -------------------------------------------------------------------------------- lanes.c --- */

/* Work that may wait for the engine or the disk. Lanes, so that one kind cannot hold up another. */
enum rv__lane { RV__LANE_READ, RV__LANE_WRITE, RV__LANE_CATCH_UP, RV__LANES };

struct rv__job {
    struct rv__job *next;
    void (*run)(struct rv__job *job); /* may free it */
};

struct rv__lanes;
int rv__lanes_new(struct rv__lanes **ret, rv_error *err);
/* RV_EBUSY: too much is waiting already (never for a job that `must`); RV_ECLOSED. The job is then
 * still the caller's. */
int rv__lanes_push(struct rv__lanes *lanes, enum rv__lane lane, struct rv__job *job, bool must);
void rv__lanes_close(struct rv__lanes *lanes); /* run what is there, and join; NULL is allowed */
void rv__lanes_free(struct rv__lanes *lanes);  /* closes first; NULL is allowed */

/* ---------------------------------------------------------------------------------- hub.c, stream.c --- */

struct rv__hub;
struct rv__stream;

/* `hurry` is called, from any thread, when rv__hub_tick() is wanted sooner than it said. */
int rv__hub_new(rv_engine *engine, struct rv__lanes *lanes, struct rv__door *door,
                struct rv__room *room, const struct rv__server_limits *limits,
                void (*hurry)(void *arg), void *arg, struct rv__hub **ret, rv_error *err);
void rv__hub_drain(struct rv__hub *hub); /* every stream ends, every waiter is woken; no new ones */
void rv__hub_free(struct rv__hub *hub);  /* drained; no stream or waiter is left; NULL is allowed */

/* A waiter: woken once, when its run has ended, its time is over, its client is gone or may not wait any
 * longer, or for no reason. */
struct rv__waiter {
    const struct rv__who *who;
    char run_id[RV_RUN_ID_SIZE];
    struct rv__waiter *next, **link; /* link NULL: not waiting */
    struct rv__timer timer;
    int fd;
    bool gone;          /* its client is: no need to look again */
    bool held, fired;   /* it is still being looked whether to wait; woken meanwhile */
    struct rv__job job; /* what wakes it, in the read lane */
};
/* From here on nothing is missed, and its job does not run yet: look now whether there is need to wait.
 * Then one of the other two. Errors: RV_ECLOSED, RV_ENOMEM, and those of rv_feed_open(). */
int rv__hub_wait(struct rv__hub *hub, struct rv__waiter *waiter, int64_t until_ms, rv_error *err);
void rv__hub_unwait(struct rv__hub *hub, struct rv__waiter *waiter); /* there is none */
void rv__hub_sleep(struct rv__hub *hub,
                   struct rv__waiter *waiter); /* its job has it, any time now */

/* A stream of events as SSE text. `last_id`: what the client saw last, or NULL. To be attached to its
 * connection, read by the thread of that, and given to rv__stream_free().
 * Errors: RV_ENOTFOUND (retention has removed what comes behind last_id), RV_EINVAL (last_id is not
 * one of ours), RV_EBUSY (no room for another), RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
int rv__stream_new(struct rv__hub *hub, const struct rv__who *who, const char *run_id, bool no_logs,
                   const char *last_id, struct rv__stream **ret, rv_error *err);
void rv__stream_attach(struct rv__stream *stream, struct MHD_Connection *connection, int fd);
/* How many bytes there are; -1: it has ended; 0: none yet, and its connection was suspended, to be
 * resumed when there are. */
ssize_t rv__stream_read(struct rv__stream *stream, char *ret, size_t max);
void rv__stream_free(struct rv__stream *stream); /* NULL is allowed */

/* Time passes. When to call again (monotonic ms), at the latest. */
int64_t rv__hub_tick(struct rv__hub *hub);

/* ----------------------------------------------------------------------------- mcp_http.c --- */

/* An MCP call that waits: its messages, as they come. Read by the thread of its connection. */
struct rv__mcp_stream;
const char *rv__mcp_stream_type(const struct rv__mcp_stream *stream);
ssize_t rv__mcp_stream_read(struct rv__mcp_stream *stream, char *ret, size_t max); /* as a stream */
void rv__mcp_stream_free(struct rv__mcp_stream *stream); /* NULL is allowed */

/* Sessions that were ended by their clients. A session is a name and nothing else: only these are kept. */
enum { RV__MCP_ENDED = 1024 }; /* the last ones */
struct rv__mcp_ended {
    pthread_mutex_t lock;
    uint64_t at[RV__MCP_ENDED]; /* hashes of their names; 0 = a free place */
    size_t count;               /* ever */
};

/* ---------------------------------------------------------------------------------- sse.c --- */

/* Append an event as SSE text: id, event, data. */
void rv__sse_event(struct rv__buf *out, const rv_event *event);
/* SEQ or SEQ.INDEX. */
bool rv__sse_position(const char *id, uint64_t *seq, uint64_t *index);

/* ------------------------------------------------------------------------------- assets.c --- */

struct rv__asset {
    const char *path; /* "/index.html" */
    const char *type;
    const char *etag;                  /* with its quotes */
    bool immutable;                    /* its name changes with its content */
    const unsigned char *plain, *gzip; /* gzip NULL: not worth it */
    size_t plain_len, gzip_len;
};
/* Made by scripts/pack-ui from ui/dist: sorted by path; without one, a page that says how to build it. */
extern const struct rv__asset rv__assets[];
extern const size_t rv__assets_count;

/* The file for a path, as it came; a page of the UI's own for other paths, `page` saying that a person
 * looks at it. NULL: there is none. */
const struct rv__asset *rv__asset_find(const char *path, bool page);

/* ------------------------------------------------------------------------- server.c, http.c --- */

/* Kinds, so that many of one do not hide another. */
enum rv__refusal { RV__REFUSED_REQUEST, RV__REFUSED_CONNECTION, RV__CUT_OFF, RV__REFUSALS };
struct rv__refused {
    int64_t since_ms;
    uint32_t count, unsaid; /* since then; of these not logged */
};

struct rv__server {
    rv_engine *engine;
    struct rv__log *log;
    struct rv__server_limits limits;
    struct rv__listen at;
    char url[320];
    bool tls;
    bool auth; /* there is a token file */
    bool insecure;
    struct rv__door door;
    char **names;             /* hosts, ends in NULL */
    struct rv__buf cert, key; /* PEM */
    struct rv__visits visits;
    struct rv__lanes *lanes;
    struct rv__hub *hub;
    struct MHD_Daemon *daemon;
    struct rv__mcp_ended mcp_ended;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    size_t exchanges; /* requests that are not over */
    bool stopping;    /* the keeper ends */
    bool hurry;       /* and looks again */
    struct rv__refused refused[RV__REFUSALS];

    atomic_bool draining;
    struct rv__room room;
    pthread_t keeper;
    bool keeper_runs;
};

int rv__http_start(struct rv__server *server, rv_error *err); /* takes server->at.fd */
void rv__http_quiesce(struct rv__server *server);             /* no more connections */
void rv__http_stop(struct rv__server *server);

/* Log at warn that a request or connection was refused, but not more often than one can read. */
void rv__server_refused(struct rv__server *server, enum rv__refusal kind,
                        const struct rv__visit *visit, const char *why);

#endif
