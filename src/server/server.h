/* server.h: the interface of server/: Rival over HTTP.
 *
 * Two halves. The API (api.c and a file per noun) knows routes, parameters, roles and documents, and nothing about
 * connections: a request in, an answer out. The transport carries them. The command line prints the same documents,
 * and reads them back when it uses a server. */
#ifndef RV_SERVER_SERVER_H
#define RV_SERVER_SERVER_H

#include <stdatomic.h>

#include <rival/rival.h>

#include "base/str.h"

/* What a caller may do; each role includes those before it. */
enum rv__role {
    RV__ROLE_NONE,     /* health only: /healthz, /readyz */
    RV__ROLE_WORKER,   /* no more here: it is for connections of workers */
    RV__ROLE_VIEWER,   /* read */
    RV__ROLE_OPERATOR, /* start, cancel, decide, signal */
    RV__ROLE_ADMIN,
};
const char *rv__role_name(enum rv__role role);

/* Limits on memory and disk for bodies and answers under way; room.c. Shared by all requests of a server. */
enum rv__room_kind { RV__ROOM_MEMORY, RV__ROOM_DISK, RV__ROOM_KINDS };
struct rv__room {
    atomic_size_t used[RV__ROOM_KINDS];
    size_t most[RV__ROOM_KINDS];
};
void rv__room_init(struct rv__room *room, size_t memory_bytes, size_t disk_bytes);
/* Reserve bytes. False: no room, and nothing was reserved. Thread: any. */
bool rv__room_take(struct rv__room *room, enum rv__room_kind kind, size_t bytes);
void rv__room_give(struct rv__room *room, enum rv__room_kind kind, size_t bytes);

/* A request without its transport. The caller owns the texts. */
struct rv__api_request {
    const char *method;       /* "GET", … */
    const char *path;         /* still percent-encoded, without the query */
    const char *query;        /* after the '?'; NULL or "" = none */
    const char *content_type; /* value of the header; NULL = none, allowed without a body */
    const char *body;         /* not checked yet; NULL = none */
    size_t body_length;
    enum rv__role role;
    const char *by;   /* name of the caller's token; NULL or "": unknown */
    const char *pass; /* the token of an execution, which may read its own run; NULL or "": none */
    bool local;       /* the caller is on this machine */
    struct rv__room *room; /* for the answer; NULL: no limit, and in memory */
};

enum rv__answer_kind {
    RV__ANSWER_WHOLE,   /* status, type, body */
    RV__ANSWER_EVENTS,  /* a stream: rv_feed_open() with run_id and no_logs */
    RV__ANSWER_WAIT,    /* call rv__api_waited() when the run has ended, or after timeout_ms */
    RV__ANSWER_LOGIN,   /* begin a session, if `body` is a token; then as SESSION */
    RV__ANSWER_LOGOUT,  /* end the session */
    RV__ANSWER_SESSION, /* call rv__api_session() */
};

struct rv__api_answer {
    enum rv__answer_kind kind;
    int status;
    const char *type; /* static */
    char *body;       /* NUL-terminated; freed by rv__api_answer_done() */
    size_t length;
    bool in_file;          /* the body is not in `body`, but in … */
    int file;              /* … this file, from its beginning; closed by rv__api_answer_done() */
    struct rv__room *room; /* where the held bytes are released; NULL: nowhere */
    size_t held[RV__ROOM_KINDS];
    const char *allow;           /* 405: the allowed methods; static; else NULL */
    char run_id[RV_RUN_ID_SIZE]; /* EVENTS: "" = all runs; WAIT */
    bool from_oldest;   /* EVENTS: without Last-Event-ID, start at the oldest event; else now */
    bool no_logs;       /* EVENTS */
    int64_t timeout_ms; /* WAIT */
};

/* Answer a request. Never waits for a run. There is always an answer (without memory: a 500). Free *ret with
 * rv__api_answer_done(). Thread: any. */
void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret);

/* The whole answer after RV__ANSWER_WAIT: the outcome, or 408 with the run's status. Thread: any. */
void rv__api_waited(rv_engine *engine, const char *run_id, int64_t waited_ms, struct rv__room *room,
                    struct rv__api_answer *ret);

/* The whole answer after RV__ANSWER_SESSION: the caller's role, the name of its token ("": none), and whether
 * tokens are needed here. Thread: any. */
void rv__api_session(enum rv__role role, const char *name, bool auth_required,
                     struct rv__api_answer *ret);

/* May this path be read without a token, and without a worker thread? */
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
/* Without the last brace: where one is shown alone, its result or error follows. */
void rv__put_attachment(struct rv__buf *out, const rv_attachment *one);
/* ,"results":…; if they are too long, {} instead, and their size as "resultsTooLarge". */
void rv__put_results(struct rv__buf *out, const rv_run_state *run);
void rv__put_outcome(struct rv__buf *out, const rv_run_state *ended);
/* The same in parts, for a caller that writes the results: `_head`, ,"results":…, `_tail`. If the results are too
 * long for an outcome, `_head` writes their size, and the caller must not write them. */
bool rv__put_outcome_head(struct rv__buf *out, const rv_run_state *ended); /* false: too long */
void rv__put_outcome_tail(struct rv__buf *out, const rv_run_state *ended);
extern const char *const rv__level_names[]; /* as enum rv_log_level; ends in NULL */

/* ------------------------------------------------------------------------------------------
 * What the documents consist of (documents.c): /openapi.json is made from it, and the command line reads answers
 * by it. */

/* What the value of a member is in the struct. */
enum rv__member_kind {
    RV__MEMBER_UNREAD, /* nothing: it is in the document only */
    RV__MEMBER_TEXT,   /* const char *; "" = none */
    RV__MEMBER_NAME,   /* the same; printed unchanged, so a reader replaces control characters */
    RV__MEMBER_JSON,   /* the same, as it is in the document */
    RV__MEMBER_INT,
    RV__MEMBER_INT64,
    RV__MEMBER_SIZE,
    RV__MEMBER_UINT64,
    RV__MEMBER_BOOL,
    RV__MEMBER_RUN_ID, /* char[RV_RUN_ID_SIZE] */
    RV__MEMBER_MODULE, /* char[RV_MODULE_SIZE] */
    RV__MEMBER_STATUS, /* int: enum rv_status */
    RV__MEMBER_LEVEL,  /* int: enum rv_log_level */
    RV__MEMBER_STRUCT, /* the struct of the document `of` */
    RV__MEMBER_LIST,   /* a pointer to such structs; a size_t at `count_at` is their number */
};

struct rv__document;
struct rv__member {
    const char *key;    /* NULL: the end of the list */
    const char *schema; /* with ' for "; NULL: as usual for the kind */
    enum rv__member_kind kind;
    bool required;
    size_t at, count_at;
    const struct rv__document *of;
};

enum { RV__DOCUMENT_PARTS = 2 };
struct rv__document {
    const char *name, *says;                            /* `says` NULL: nothing */
    size_t size;                                        /* of its struct */
    const struct rv__member *parts[RV__DOCUMENT_PARTS]; /* NULL: no such part */
    const struct rv__member *lacks; /* other members of the struct; NULL: none */
};

/* Structs of documents that the library has none for. */
struct rv__run_ref {
    rv_run_info info; /* without schema_only */
    const char *validated;
};
struct rv__problem {
    rv_violations violations; /* first: rv_violations_free() frees the whole */
    const char *in, *code;
};
struct rv__waiting_node {
    const char *path, *name;
};
struct rv__wait_told {
    const char *reason, *message, *name, *function, *secret, *cause;
    int64_t count, since, due_at;
    size_t node_count; /* those that are listed */
    const struct rv__waiting_node *nodes;
};
struct rv__why_told {
    const char *status;
    int64_t others; /* waits that are in none of these */
    size_t count;
    const struct rv__wait_told *waits;
};
struct rv__store_member {
    const char *id, *process, *version;
    int64_t runs, since, lease_until;
};
struct rv__store_members {
    size_t count;
    const struct rv__store_member *items;
};

/* By the struct: rv_run_list, rv_run_state, struct rv__run_ref, rv_node_list, … */
extern const struct rv__document rv__doc_run_list, rv__doc_run_detail, rv__doc_run_ref,
    rv__doc_node_list, rv__doc_log_list, rv__doc_workflow_list, rv__doc_attachment_list,
    rv__doc_attachment_detail, rv__doc_why, rv__doc_members, rv__doc_problem;

/* ------------------------------------------------------------------------------------------
 * MCP (mcp.c): a message in, messages out, whoever carries them. */

/* How a call asks the API: for an engine, rv__api_handle(). Answers are freed with rv__api_answer_done(). Thread:
 * any, several at once. */
struct rv__mcp_via {
    void (*ask)(void *arg, const struct rv__api_request *request, struct rv__api_answer *ret);
    void *arg;
};

/* A message. The caller owns everything, and keeps it as long as the call. */
struct rv__mcp_request {
    const char *body;
    size_t length;
    enum rv__role role;
    const char *by; /* by, local, room: as in struct rv__api_request */
    bool local;
    struct rv__room *room;
    bool http; /* the next four are its headers; NULL: absent */
    const char *version, *method, *name, *session;
    const char *revision; /* not HTTP: the revision agreed upon; NULL = none yet */
    bool silent;          /* send only the answer: no progress */
};

struct rv__mcp_call;
enum { RV__MCP_SESSION_SIZE = 44 }; /* the session's name, and a NUL */

/* Handle a message. A call that must wait for a run does not block: see rv__mcp_waits(). Free with rv__mcp_free().
 * NULL: no memory. Thread: any; one at a time for a call. */
struct rv__mcp_call *rv__mcp_begin(const struct rv__mcp_via *via,
                                   const struct rv__mcp_request *request);
void rv__mcp_free(struct rv__mcp_call *call);                  /* NULL is allowed */
int rv__mcp_status(const struct rv__mcp_call *call);           /* HTTP status */
const char *rv__mcp_session(const struct rv__mcp_call *call);  /* one that begins; "" = none */
const char *rv__mcp_revision(const struct rv__mcp_call *call); /* of this call */
struct rv__buf *rv__mcp_out(struct rv__mcp_call *call); /* lines to send; the caller empties it */
bool rv__mcp_session_valid(const char *session);        /* is it a well-formed name? */

/* Does the call wait? Then rv__mcp_look() must be called when this run ("" = none) has ended, or at this time
 * (monotonic ms) at the latest. */
bool rv__mcp_waits(const struct rv__mcp_call *call, const char **run_id, int64_t *until_ms);
/* Look again; this may add to `out`. False: the call is finished. */
bool rv__mcp_look(struct rv__mcp_call *call);
void rv__mcp_give_up(struct rv__mcp_call *call, const char *why); /* answer with this error now */

/* The id and method of a message, without handling it: JSON, or empty. False: not a message. */
struct rv__mcp_peek {
    struct rv__str id, method;
    struct rv__str cancels; /* notifications/cancelled: the id */
};
bool rv__mcp_message(struct rv__str body, struct rv__mcp_peek *ret);

/* ------------------------------------------------------------------------------------------
 * The transport: connections, limits, who may come in, streams, the web UI */

struct rv__server;
struct rv__log;

/* Limits for clients. A zero field means the default named beside it; docs/reference/server.md says what is
 * answered beyond each. */
struct rv__server_limits {
    uint32_t connections;             /* in all; 0 = 1024 */
    uint32_t connections_per_address; /* 0 = 512; an IPv6 /64 counts as one address */
    uint32_t requests_per_s;          /* of one address; 0 = 10000; bursts of twice that */
    uint32_t sessions;                /* logged in by cookie; 0 = 1024 */
    size_t body_bytes;                /* of one request; 0 = 8 MiB */
    uint32_t sessions_per_token;      /* 0 = 64; beyond that the token's oldest session ends */
    size_t memory_bytes;  /* for bodies, answers and streams under way, in all; 0 = 256 MiB */
    size_t disk_bytes;    /* for long answers that wait to be sent, in all; 0 = 1 GiB */
    size_t ring_bytes;    /* of events kept for streams; 0 = 8 MiB */
    int64_t header_ms;    /* for the first request of a connection; 0 = 10 s */
    int64_t body_ms;      /* for all of a body; 0 = 30 s */
    int64_t idle_ms;      /* from one request to the end of the next one's headers; 0 = 60 s */
    int64_t send_ms;      /* for the client to read an answer; 0 = 120 s */
    int64_t stuck_ms;     /* a connection without any progress is closed; 0 = 30 s */
    int64_t heartbeat_ms; /* of a stream without events; 0 = 15 s */
};

struct rv__server_opts {
    const char *listen;     /* HOST:PORT; NULL = "127.0.0.1:7400"; port 0 = a free one */
    const char *token_file; /* lines `role token [name]`; NULL = all callers are admin */
    bool insecure;          /* allow an address that others can reach without a token file */
    const char *tls_cert, *tls_key; /* PEM files; both or neither */
    const char *const
        *allow_hosts;    /* more host names that clients may use; ends in NULL; NULL = none */
    struct rv__log *log; /* the caller's; must outlive the server; NULL = none */
    struct rv__server_limits limits;
};

/* Listen, and answer on threads of its own. The engine must outlive the server. Keeps no reference to `opts`. Free
 * *ret with rv__server_free().
 * Errors: RV_EINVAL (a bad address, token file or certificate), RV_EBUSY (the address is in use), RV_ESYS,
 * RV_ENOMEM. */
int rv__server_new(rv_engine *engine, const struct rv__server_opts *opts, struct rv__server **ret,
                   rv_error *err);

/* Its address, with the actual port: "http://127.0.0.1:7400". Valid as long as the server. */
const char *rv__server_url(const struct rv__server *server);

/* Replace the tokens by those of this file. Sessions of removed tokens end at once; their streams and waiting calls
 * end within seconds. Returns how many sessions ended. Thread: any, one at a time.
 * Errors: those of a token file at the start, and RV_ESTATE: the server has no token file. After an error nothing
 * has changed. */
int rv__server_tokens(struct rv__server *server, const char *token_file, rv_error *err);

/* Stop: take no more connections and requests, end the streams, answer the waiting calls, and give answers under
 * way `grace_ms` to be sent. rv__server_free() cuts off the rest. Thread: any, once.
 *
 * The engine may be closed or closing: requests that only read the store are still answered; others get a 503. */
void rv__server_drain(struct rv__server *server, int64_t grace_ms);

/* Drain without grace time, and free. Waits for calls of the engine under way: if they might not end (a store that
 * refuses writes), close the engine before, and free it after. NULL is allowed. */
void rv__server_free(struct rv__server *server);

/* The tokens in a token file with role worker or admin. Free *ret with rv__worker_tokens_free(). `exposed`: others
 * can reach the address, so tokens that can be guessed are refused. Errors: as for a server's token file;
 * RV_EINVAL: no such token. */
struct rv__worker_tokens;
int rv__worker_tokens_load(const char *path, bool exposed, struct rv__worker_tokens **ret,
                           rv_error *err);
bool rv__worker_tokens_have(const struct rv__worker_tokens *tokens, const char *token);
void rv__worker_tokens_free(struct rv__worker_tokens *tokens); /* NULL is allowed */

/* The first token in a token file that may be used for requests, as a client sends it. Free *ret with
 * rv__secret_done(). Errors: as for a server's token file. Thread: any. */
int rv__token_file_first(const char *path, struct rv__buf *ret, rv_error *err);
void rv__secret_done(struct rv__buf *secret); /* overwritten first */

#endif
