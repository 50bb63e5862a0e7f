/* transport.h: what the files of the transport share. Inside server/ only.
 *
 * Threads: libmicrohttpd's one handles all sockets and never waits for anything else; the lanes' workers call the
 * engine; the hub's follows the feed; the keeper's checks time limits.
 * Locks, in the order in which they may be taken: visits; hub; lanes; those of libmicrohttpd; auth. */
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

/* Time for limits and waits: monotonic. */
static inline int64_t rv__now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* -------------------------------------------------------------------------------- guard.c --- */

struct rv__guard { /* empty: no such header */
    struct rv__str host, origin, fetch_site, fetch_mode;
    bool changes; /* neither GET nor HEAD */
    bool api;     /* not a file of the web UI */
};

/* NULL: allowed. Else the reason, for people. `names`: allowed host names besides addresses and localhost. */
const char *rv__guard_judge(const struct rv__guard *request, const char *const *names);
bool rv__guard_host(struct rv__str host, const char *const *names);
bool rv__guard_same_origin(struct rv__str origin, struct rv__str host);

/* ------------------------------------------------------------------------------- tokens.c --- */

enum { RV__TOKEN_NAME_SIZE = 65 }; /* the owner's name, and a NUL */
struct rv__token {
    enum rv__role role;
    char hash[RV__SHA256_HEX];
    char name[RV__TOKEN_NAME_SIZE]; /* "": not given */
};
struct rv__tokens {
    struct rv__token *at;
    size_t count;
    rv_error
        weak; /* why they are easy to guess; code 0: they are not. Allowed on this machine only */
};

/* Errors: RV_EINVAL (with file:line, never with a token), RV_ENOMEM, RV_ESYS. */
int rv__tokens_load(const char *path, struct rv__tokens *ret, rv_error *err);
void rv__tokens_done(struct rv__tokens *tokens);
bool rv__token_hash(struct rv__str token, char ret[RV__SHA256_HEX]); /* false: it is no token */
/* NULL: no such token. Valid until the tokens change. */
const struct rv__token *rv__tokens_find(const struct rv__tokens *tokens,
                                        const char hash[RV__SHA256_HEX]);
/* Are they equal? Compares in constant time. */
bool rv__same_hash(const char *a, const char *b);
/* Read a file of some kilobytes. A secret file must not be readable by others; free its text with
 * rv__secret_done(). Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS; `out` is then empty. */
int rv__small_file(const char *path, bool secret, struct rv__buf *out, rv_error *err);

/* --------------------------------------------------------------------------------- auth.c --- */

enum { RV__PASS_BYTES = 128 }; /* of an execution's token; a longer one is not valid */

/* The caller and its rights. */
struct rv__who {
    enum rv__role role;
    char token[RV__SHA256_HEX];     /* its hash; "": no tokens are used */
    uint64_t session;               /* the session; 0: the request had the token itself */
    char name[RV__TOKEN_NAME_SIZE]; /* of the token's owner; "": unknown */
    char pass[RV__PASS_BYTES];      /* the token of an execution; "": the caller is none */
};

struct rv__session;
struct rv__auth { /* sessions and tokens. Thread: any. Its lock is taken last */
    pthread_mutex_t lock;
    struct rv__tokens tokens;
    struct rv__session *at;
    size_t max, per_token;
    uint64_t begun; /* sessions ever begun; a counter */
};

enum { RV__SESSION_SIZE = 65 }; /* the session's name, and a NUL */
int rv__auth_init(struct rv__auth *auth, size_t sessions, size_t per_token, rv_error *err);
void rv__auth_done(struct rv__auth *auth);
/* Replace the tokens; the old ones are then in *tokens. Sessions of removed tokens end. Returns how many. */
size_t rv__auth_change(struct rv__auth *auth, struct rv__tokens *tokens);
/* Find the owner of a token. False: not found, and `ret` is unchanged. */
bool rv__auth_token(struct rv__auth *auth, struct rv__str token, struct rv__who *ret);
bool rv__auth_session(struct rv__auth *auth, struct rv__str name, int64_t now_ms,
                      struct rv__who *ret);
/* Begin a session. If its token has too many sessions, the oldest of these ends; if there are too many in all, the
 * oldest of all. Errors: RV_ESYS. */
int rv__auth_begin(struct rv__auth *auth, const struct rv__who *by, int64_t now_ms,
                   char ret[RV__SESSION_SIZE], rv_error *err);
void rv__auth_end(struct rv__auth *auth, struct rv__str name, int64_t now_ms);
/* Are its token and session still valid? */
bool rv__auth_holds(struct rv__auth *auth, const struct rv__who *who, int64_t now_ms);
int64_t rv__session_seconds(void); /* lifetime of a session */

/* ------------------------------------------------------------------------------- visits.c --- */

/* The state of a connection. Each has a time limit. */
enum rv__visit_phase {
    RV__VISIT_FIRST,   /* waiting for its first request */
    RV__VISIT_BODY,    /* the headers have arrived */
    RV__VISIT_WORKING, /* we prepare the answer: no limit */
    RV__VISIT_SENDING, /* the answer is being sent */
    RV__VISIT_STREAM,  /* an endless answer is being sent */
    RV__VISIT_IDLE,    /* waiting for the next request */
};

struct rv__address;
struct rv__visit { /* a connection */
    struct rv__visit *next, **link;
    struct rv__address *address;
    int fd;
    enum rv__visit_phase phase;
    int64_t until_ms; /* monotonic; 0 = no limit */
    bool cut;         /* already shut down */
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

/* May another connection from this address be opened? NULL: yes; else the limit that forbids it. */
const char *rv__visits_refuse(struct rv__visits *visits, const struct sockaddr *from);
/* NULL: no memory. */
struct rv__visit *rv__visit_begin(struct rv__visits *visits, const struct sockaddr *from, int fd);
void rv__visit_end(struct rv__visits *visits, struct rv__visit *visit);
void rv__visit_phase(struct rv__visits *visits, struct rv__visit *visit,
                     enum rv__visit_phase phase);
bool rv__visit_request(struct rv__visits *visits, struct rv__visit *visit); /* false: too many */
/* Count a wrong token. False: too many came from this address. A valid token is never refused. */
bool rv__visit_wrong_token(struct rv__visits *visits, struct rv__visit *visit);
void rv__visit_text(const struct rv__visit *visit, char ret[46]); /* its address */
bool rv__visit_local(const struct rv__visit *visit);              /* on this machine */
/* Cut off connections whose time is over. Returns how many. */
size_t rv__visits_sweep(struct rv__visits *visits);

/* -------------------------------------------------------------------------------- lanes.c --- */

/* Work that may wait for the engine or the disk. There are several lanes, so that one kind cannot block another. */
enum rv__lane { RV__LANE_READ, RV__LANE_WRITE, RV__LANE_CATCH_UP, RV__LANES };

struct rv__job {
    struct rv__job *next;
    void (*run)(struct rv__job *job); /* may free it */
};

struct rv__lanes;
int rv__lanes_new(struct rv__lanes **ret, rv_error *err);
/* RV_EBUSY: too many jobs wait (never if `must`); RV_ECLOSED. On error the caller still owns the job. */
int rv__lanes_push(struct rv__lanes *lanes, enum rv__lane lane, struct rv__job *job, bool must);
void rv__lanes_close(struct rv__lanes *lanes); /* runs waiting jobs, and joins; NULL is allowed */
void rv__lanes_free(struct rv__lanes *lanes);  /* closes first; NULL is allowed */

/* ---------------------------------------------------------------------------------- hub.c, stream.c --- */

struct rv__hub;
struct rv__stream;

/* `hurry` is called, from any thread, when rv__hub_tick() must be called sooner than it said. */
int rv__hub_new(rv_engine *engine, struct rv__lanes *lanes, struct rv__auth *auth,
                struct rv__room *room, const struct rv__server_limits *limits,
                void (*hurry)(void *arg), void *arg, struct rv__hub **ret, rv_error *err);
void rv__hub_drain(struct rv__hub *hub); /* ends every stream, wakes every waiter; no new ones */
void rv__hub_free(struct rv__hub *hub);  /* drained; no streams or waiters left; NULL is allowed */

/* Waits for the end of a run. It is woken once: when the run has ended, its time is over, its client has gone, or
 * its token is no longer valid; or without a reason. */
struct rv__waiter {
    const struct rv__who *who;
    char run_id[RV_RUN_ID_SIZE];
    struct rv__waiter *next, **link; /* link NULL: not waiting */
    struct rv__timer timer;
    int fd;
    bool gone;          /* the client has gone: do not look again */
    bool held, fired;   /* between rv__hub_wait() and the next call; woken in that time */
    struct rv__job job; /* run in the read lane when it is woken */
};
/* Start to wait. From here on no end is missed, but the job does not run yet: check now whether the run has already
 * ended, then call one of the other two. Errors: RV_ECLOSED, RV_ENOMEM, and those of rv_feed_open(). */
int rv__hub_wait(struct rv__hub *hub, struct rv__waiter *waiter, int64_t until_ms, rv_error *err);
void rv__hub_unwait(struct rv__hub *hub, struct rv__waiter *waiter); /* no need to wait */
void rv__hub_sleep(struct rv__hub *hub,
                   struct rv__waiter *waiter); /* its job may run from now on */

/* A stream of events as SSE text. `last_id`: the last event the client saw, or NULL. Attach it to its connection,
 * whose thread reads it; free it with rv__stream_free().
 * Errors: RV_ENOTFOUND (retention has removed the events after last_id), RV_EINVAL (last_id is malformed), RV_EBUSY
 * (too many streams), RV_ECLOSED, RV_ENOMEM, RV_ESTORE. */
int rv__stream_new(struct rv__hub *hub, const struct rv__who *who, const char *run_id, bool no_logs,
                   const char *last_id, struct rv__stream **ret, rv_error *err);
void rv__stream_attach(struct rv__stream *stream, struct MHD_Connection *connection, int fd);
/* Returns the number of bytes; -1: the stream has ended; 0: none yet. The connection is then suspended, and resumed
 * when there are some. */
ssize_t rv__stream_read(struct rv__stream *stream, char *ret, size_t max);
void rv__stream_free(struct rv__stream *stream); /* NULL is allowed */

/* Check the timers. Returns when to call again at the latest (monotonic ms). */
int64_t rv__hub_tick(struct rv__hub *hub);

/* ----------------------------------------------------------------------------- mcp_http.c --- */

/* The messages of an MCP call that waits. Read by the thread of its connection. */
struct rv__mcp_stream;
const char *rv__mcp_stream_type(const struct rv__mcp_stream *stream);
ssize_t rv__mcp_stream_read(struct rv__mcp_stream *stream, char *ret,
                            size_t max);                 /* as that of a stream */
void rv__mcp_stream_free(struct rv__mcp_stream *stream); /* NULL is allowed */

/* Sessions that clients have ended. A valid session is nothing but its name, so only the ended ones are stored. */
enum { RV__MCP_ENDED = 1024 }; /* the latest ones */
struct rv__mcp_ended {
    pthread_mutex_t lock;
    uint64_t at[RV__MCP_ENDED]; /* hashes of their names; 0 = free */
    size_t count;               /* ever added */
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
    const char *etag;                  /* with quotes */
    bool immutable;                    /* its name changes with its content */
    const unsigned char *plain, *gzip; /* gzip NULL: it would not be smaller */
    size_t plain_len, gzip_len;
};
/* Made by scripts/pack-ui from ui/dist, sorted by path. Without a UI: one page that says how to build it. */
extern const struct rv__asset rv__assets[];
extern const size_t rv__assets_count;

/* The file at this path. For other paths outside /assets/: index.html, if `page` (a browser shows it) or the path
 * has no extension. NULL: not found. */
const struct rv__asset *rv__asset_find(const char *path, bool page);

/* ------------------------------------------------------------------------- server.c, http.c --- */

/* Kinds are counted separately, so that many of one do not hide another. */
enum rv__refusal { RV__REFUSED_REQUEST, RV__REFUSED_CONNECTION, RV__CUT_OFF, RV__REFUSALS };
struct rv__refused {
    int64_t since_ms;
    uint32_t count, unsaid; /* since then; how many of them were not logged */
};

struct rv__server {
    rv_engine *engine;
    struct rv__log *log;
    struct rv__server_limits limits;
    struct rv__listen at;
    char url[320];
    bool tls;
    bool has_tokens; /* there is a token file */
    bool insecure;
    struct rv__auth auth;
    char **names;             /* allowed host names, ends in NULL */
    struct rv__buf cert, key; /* PEM */
    struct rv__visits visits;
    struct rv__lanes *lanes;
    struct rv__hub *hub;
    struct MHD_Daemon *daemon;
    struct rv__mcp_ended mcp_ended;

    pthread_mutex_t lock; /* of the following members */
    pthread_cond_t changed;
    size_t exchanges; /* requests under way */
    bool stopping;    /* the keeper must end */
    bool hurry;       /* the keeper must call rv__hub_tick() now */
    struct rv__refused refused[RV__REFUSALS];

    atomic_bool draining;
    struct rv__room room;
    pthread_t keeper;
    bool keeper_runs;
};

int rv__http_start(struct rv__server *server, rv_error *err); /* takes server->at.fd */
void rv__http_quiesce(struct rv__server *server);             /* no more connections */
void rv__http_stop(struct rv__server *server);

/* Log a warning that a request or connection was refused; the number of messages is limited. */
void rv__server_refused(struct rv__server *server, enum rv__refusal kind,
                        const struct rv__visit *visit, const char *why);

#endif
