/* server.h: the face of server/: Rival over HTTP.
 *
 * Two halves. The API (api.c and a file per noun) knows routes, parameters, roles and documents, and
 * nothing of connections: a request in, an answer out. The transport carries them. The command line
 * prints the same documents, and reads them back when it asks a server. */
#ifndef RV_SERVER_SERVER_H
#define RV_SERVER_SERVER_H

#include <stdatomic.h>

#include <rival/rival.h>

#include "base/str.h"

/* What a caller may do; each may do all that those before it may. */
enum rv__role {
    RV__ROLE_NONE,     /* is it alive: /healthz, /readyz */
    RV__ROLE_WORKER,   /* nothing here: it is for connections of workers */
    RV__ROLE_VIEWER,   /* look */
    RV__ROLE_OPERATOR, /* start, cancel, decide, signal */
    RV__ROLE_ADMIN,
};
const char *rv__role_name(enum rv__role role);

/* Memory and disk for what waits to be read; room.c. Shared by all requests of a server. */
enum rv__room_kind { RV__ROOM_MEMORY, RV__ROOM_DISK, RV__ROOM_KINDS };
struct rv__room {
    atomic_size_t used[RV__ROOM_KINDS];
    size_t most[RV__ROOM_KINDS];
};
void rv__room_init(struct rv__room *room, size_t memory_bytes, size_t disk_bytes);
/* Reserve so many bytes. False: there is no room for them, and nothing was taken. Thread: any. */
bool rv__room_take(struct rv__room *room, enum rv__room_kind kind, size_t bytes);
void rv__room_give(struct rv__room *room, enum rv__room_kind kind, size_t bytes);

/* A request, transport taken off. Texts are the caller's. */
struct rv__api_request {
    const char *method;       /* "GET", … */
    const char *path;         /* as it came, still percent-encoded, without the query */
    const char *query;        /* behind the '?'; NULL or "" = none */
    const char *content_type; /* as its header has it; NULL = none, which will do without a body */
    const char *body;         /* not yet looked at; NULL = none */
    size_t body_length;
    enum rv__role role;
    const char *by; /* what the caller's token is called; NULL or "": not known */
    const char
        *pass;  /* the token of an execution, which reads through its scope; NULL or "": none */
    bool local; /* the caller is on this machine */
    struct rv__room *room; /* for the answer; NULL: it is as long as it is, and in memory */
};

enum rv__answer_kind {
    RV__ANSWER_WHOLE,  /* status, type, body */
    RV__ANSWER_EVENTS, /* a stream: rv_feed_open() with run_id and no_logs, each event as it comes */
    RV__ANSWER_WAIT, /* not yet: ask rv__api_waited() when the run has ended, or after timeout_ms */
    RV__ANSWER_LOGIN,   /* let the caller stay, if `body` is a token; then as SESSION */
    RV__ANSWER_LOGOUT,  /* or no longer */
    RV__ANSWER_SESSION, /* ask rv__api_session() */
};

struct rv__api_answer {
    enum rv__answer_kind kind;
    int status;
    const char *type; /* static */
    char *body;       /* NUL behind `length`; rv__api_answer_done() frees it */
    size_t length;
    bool in_file;          /* the body is not in `body`, but in … */
    int file;              /* … this one, from its beginning; rv__api_answer_done() closes it */
    struct rv__room *room; /* that these bytes are given back to; NULL: to nobody */
    size_t held[RV__ROOM_KINDS];
    const char *allow;           /* 405: the methods there are; static; else NULL */
    char run_id[RV_RUN_ID_SIZE]; /* EVENTS: "" = of all runs; WAIT */
    bool from_oldest;   /* EVENTS: without a Last-Event-ID, from the oldest event; else from now */
    bool no_logs;       /* EVENTS */
    int64_t timeout_ms; /* WAIT */
};

/* Answer a request. Takes as long as the engine does, and never waits for a run. There is always an
 * answer (without memory: a 500). *ret is for rv__api_answer_done(). Thread: any. */
void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret);

/* The whole answer behind RV__ANSWER_WAIT: the outcome, or 408 and how the run is doing. Thread: any. */
void rv__api_waited(rv_engine *engine, const char *run_id, int64_t waited_ms, struct rv__room *room,
                    struct rv__api_answer *ret);

/* The whole answer behind RV__ANSWER_SESSION: what the caller may do, what its token is called ("": nothing),
 * and whether tokens are needed here. Thread: any. */
void rv__api_session(enum rv__role role, const char *name, bool auth_required,
                     struct rv__api_answer *ret);

/* Is this an address that needs no token, and no worker? */
bool rv__api_is_open(const char *path);

/* An RFC 9457 problem. `title` NULL: the usual words for the status. Thread: any. */
void rv__api_problem(int status, const char *title, const char *detail, struct rv__api_answer *ret);

/* Free what the answer owns; it may be used again. */
void rv__api_answer_done(struct rv__api_answer *answer);

/* ------------------------------------------------------------------------------------------
 * Documents, as the API sends them and --json prints them. What may be continued has no closing brace:
 * run, node, workflow. */

struct rv__buf;
/* ,"key":"text"   ,"key":number   ,"key":json, unless that is "" */
void rv__put_text(struct rv__buf *out, const char *key, const char *text);
void rv__put_int(struct rv__buf *out, const char *key, int64_t value);
void rv__put_json(struct rv__buf *out, const char *key, const char *json);

void rv__put_run(struct rv__buf *out, const rv_run_state *run);
void rv__put_node(struct rv__buf *out, const rv_node *node);
void rv__put_workflow(struct rv__buf *out, const rv_workflow_info *workflow);
void rv__put_log_line(struct rv__buf *out, const char *run_id, const rv_log_line *line);
/* Without its last brace: of one that is shown alone, its result or error follows. */
void rv__put_attachment(struct rv__buf *out, const rv_attachment *one);
/* ,"results":…, or {} there and their bytes as "resultsTooLarge". */
void rv__put_results(struct rv__buf *out, const rv_run_state *run);
void rv__put_outcome(struct rv__buf *out, const rv_run_state *ended);
/* The same in parts, for who writes the results: `_head`, ,"results":…, `_tail`. Results longer than an
 * outcome may have are not in it: then `_head` says how long they are, and they are not to be written. */
bool rv__put_outcome_head(struct rv__buf *out, const rv_run_state *ended); /* false: too long */
void rv__put_outcome_tail(struct rv__buf *out, const rv_run_state *ended);

/* ------------------------------------------------------------------------------------------
 * MCP (mcp.c): a message in, messages out, whoever carries them. */

/* Who answers the requests that a call makes of the API: rv__api_handle() does, for an engine. What it writes is for
 * rv__api_answer_done(). Thread: any, several at once. */
struct rv__mcp_via {
    void (*ask)(void *arg, const struct rv__api_request *request, struct rv__api_answer *ret);
    void *arg;
};

/* A message. Everything is the caller's, and stays as long as the call. */
struct rv__mcp_request {
    const char *body;
    size_t length;
    enum rv__role role;
    const char *by; /* these three as of a request of the API */
    bool local;
    struct rv__room *room;
    bool http; /* these are its headers, NULL where there is none: */
    const char *version, *method, *name, *session;
    const char *revision; /* not HTTP: that was agreed upon; NULL = nothing was */
    bool silent;          /* nothing but the answer may be sent: no progress */
};

struct rv__mcp_call;
enum { RV__MCP_SESSION_SIZE = 44 }; /* its name, and a NUL */

/* Do what the message asks. There is always an answer, or none is wanted; what takes longer than the engine
 * does waits (rv__mcp_waits). For rv__mcp_free(). NULL: no memory. Thread: any; a call has one at a time. */
struct rv__mcp_call *rv__mcp_begin(const struct rv__mcp_via *via,
                                   const struct rv__mcp_request *request);
void rv__mcp_free(struct rv__mcp_call *call);                  /* NULL is allowed */
int rv__mcp_status(const struct rv__mcp_call *call);           /* of HTTP */
const char *rv__mcp_session(const struct rv__mcp_call *call);  /* that begins; "" = none */
const char *rv__mcp_revision(const struct rv__mcp_call *call); /* that it speaks */
struct rv__buf *rv__mcp_out(struct rv__mcp_call *call); /* lines to send; the caller empties it */
bool rv__mcp_session_valid(const char *session);        /* could it be the name of one? */

/* Does it wait? Then for this run ("" = for none), and rv__mcp_look() is wanted when that has ended, or at the time
 * at the latest (monotonic ms). */
bool rv__mcp_waits(const struct rv__mcp_call *call, const char **run_id, int64_t *until_ms);
/* Look again: there may be something in `out` then. False: that was the end of it. */
bool rv__mcp_look(struct rv__mcp_call *call);
void rv__mcp_give_up(struct rv__mcp_call *call, const char *why); /* answer that, now */

/* What a message is about, without doing it: JSON, or none. False: it is no message. */
struct rv__mcp_peek {
    struct rv__str id, method;
    struct rv__str cancels; /* of notifications/cancelled: an id */
};
bool rv__mcp_message(struct rv__str body, struct rv__mcp_peek *ret);

/* ------------------------------------------------------------------------------------------
 * The transport: connections, limits, who may come in, streams, the web UI */

struct rv__server;
struct rv__log;

/* What a stranger can make it hold or do. A zero field means the default named beside it; docs/reference/
 * server.md says what is answered beyond each. */
struct rv__server_limits {
    uint32_t connections;             /* in all; 0 = 1024 */
    uint32_t connections_per_address; /* 0 = 512; an IPv6 /64 is one address */
    uint32_t requests_per_s;          /* of one address; 0 = 10000; twice as many at once */
    uint32_t sessions;                /* logged in with a cookie; 0 = 1024 */
    size_t body_bytes;                /* of one request; 0 = 8 MiB */
    uint32_t sessions_per_token;      /* 0 = 64; then the oldest of that token ends */
    size_t memory_bytes;  /* for bodies, answers and streams under way, in all; 0 = 256 MiB */
    size_t disk_bytes;    /* for long answers that wait to be read, in all; 0 = 1 GiB */
    size_t ring_bytes;    /* of events kept for streams; 0 = 8 MiB */
    int64_t header_ms;    /* for the first request of a connection; 0 = 10 s */
    int64_t body_ms;      /* for all of a body; 0 = 30 s */
    int64_t idle_ms;      /* from one request to the end of the next one's head; 0 = 60 s */
    int64_t send_ms;      /* for an answer to be taken; 0 = 120 s */
    int64_t stuck_ms;     /* a connection that moves no byte is closed; 0 = 30 s */
    int64_t heartbeat_ms; /* of a stream on which nothing happens; 0 = 15 s */
};

struct rv__server_opts {
    const char *listen;     /* HOST:PORT; NULL = "127.0.0.1:7400"; port 0 = a free one */
    const char *token_file; /* lines `role token [name]`; NULL = everybody is admin */
    bool insecure;          /* an address that others can reach may go without a token file */
    const char *tls_cert, *tls_key; /* PEM files; both or neither */
    const char *const *allow_hosts; /* names by which clients may call it, besides those of this
                                             machine; ends in NULL; NULL = none */
    struct rv__log *log;            /* the caller's, for longer than the server; NULL = none */
    struct rv__server_limits limits;
};

/* Listen, and answer from threads of its own. The engine has to outlive it. Keeps no reference to
 * `opts`. *ret is for rv__server_free().
 * Errors: RV_EINVAL (an address, a token file, a certificate that will not do), RV_EBUSY (the address is
 * in use), RV_ESYS, RV_ENOMEM. */
int rv__server_new(rv_engine *engine, const struct rv__server_opts *opts, struct rv__server **ret,
                   rv_error *err);

/* Where it is, with the port that it got: "http://127.0.0.1:7400". Lives as long as the server. */
const char *rv__server_url(const struct rv__server *server);

/* Let in by the tokens of this file from now on. Who came with one that is not in it is out: sessions
 * end, and within seconds so do streams and waiting. How many sessions. Thread: any, one at a time.
 * Errors: those of a token file at the start, and RV_ESTATE: there was none. All is as it was then. */
int rv__server_tokens(struct rv__server *server, const char *token_file, rv_error *err);

/* The engine may have closed before, or be closing: what only reads the store is answered meanwhile, and
 * the rest is a 503.
 *
 * Take no more connections and requests, end the streams, answer who waits, and let answers under way
 * out, for so long. Whoever still has none is cut off by rv__server_free(). Thread: any, once. */
void rv__server_drain(struct rv__server *server, int64_t grace_ms);

/* Drain for no time, and free. Waits for calls of the engine under way: close the engine before if they
 * might not end (a store that refuses), and free it after. NULL is allowed. */
void rv__server_free(struct rv__server *server);

/* Tokens of role worker, or admin, of a token file. *ret is for rv__worker_tokens_free(). `exposed`: others can reach
 * the address, so tokens that can be guessed will not do. Errors: as of a server's token file; RV_EINVAL: it has none. */
struct rv__worker_tokens;
int rv__worker_tokens_load(const char *path, bool exposed, struct rv__worker_tokens **ret,
                           rv_error *err);
bool rv__worker_tokens_have(const struct rv__worker_tokens *tokens, const char *token);
void rv__worker_tokens_free(struct rv__worker_tokens *tokens); /* NULL is allowed */

/* The first token of a token file that is good for requests: the text that a client sends. *ret is for
 * rv__secret_done(). Errors: as of a server's token file. Thread: any. */
int rv__token_file_first(const char *path, struct rv__buf *ret, rv_error *err);
void rv__secret_done(struct rv__buf *secret); /* wipes it first */

#endif
