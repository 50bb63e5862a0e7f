/* exchange.h: one request and its answer, shared by http.c, respond.c and login.c. */
#ifndef RV_SERVER_EXCHANGE_H
#define RV_SERVER_EXCHANGE_H

#include <microhttpd.h>

#include "server/transport.h"

#define RV__COOKIE "rival_session"

enum { RV__METHOD_BYTES = 16 };

/* See http.c. */
enum rv__phase {
    RV__EXCHANGE_HEAD,
    RV__EXCHANGE_BODY,
    RV__EXCHANGE_WORKING,
    RV__EXCHANGE_ANSWERED,
};

/* Headers of the request; NULL: absent. Valid as long as the exchange. */
struct rv__headers {
    const char *host, *origin, *fetch_site, *fetch_mode, *authorization, *content_type;
    const char *content_length, *transfer_encoding, *accept, *accept_encoding, *if_none_match;
    const char *last_event_id;
    const char *mcp_version, *mcp_method, *mcp_name, *mcp_session;
    unsigned hosts, lengths;
    size_t bytes;          /* of all headers */
    bool bad_header_names; /* some name is invalid */
};

struct rv__exchange {
    struct rv__server *server;
    struct MHD_Connection *connection;
    struct rv__visit *visit;
    enum rv__phase phase;
    char *path;        /* owned; without the query */
    const char *query; /* in the same memory; "" = none */
    size_t uri_len;    /* of path and query; more than URI_BYTES: it was cut */
    char method[RV__METHOD_BYTES];
    struct rv__headers headers;
    struct rv__who who;
    struct rv__buf body;
    size_t body_seen; /* more than the length of `body`: it is too long */
    size_t held;      /* bytes reserved in the server's room for the body */
    bool no_room;     /* no room for the body: it is read and dropped */
    int64_t begun_ms, wait_until_ms;
    struct rv__job job;
    struct rv__waiter waiter;
    struct rv__api_answer answer;
    struct rv__stream *stream;
    struct rv__mcp_stream *mcp;
    char mcp_session[RV__MCP_SESSION_SIZE]; /* a session that begins; "" = none */
    const struct rv__asset *asset;
    char session[RV__SESSION_SIZE]; /* a session that begins; "" = none; "-" = the session ends */
};

/* ------------------------------------------------------------------------------------ http.c --- */

/* Give it to a worker: `run` answers it, and must call rv__exchange_worked() last. */
enum MHD_Result rv__exchange_hand_over(struct rv__exchange *x, void (*run)(struct rv__job *job),
                                       enum rv__lane lane);
/* The worker is done with it: the connection's thread continues. */
void rv__exchange_worked(struct rv__exchange *x);

/* -------------------------------------------------------------------------------- mcp_http.c --- */

enum MHD_Result rv__mcp_answer(struct rv__exchange *x); /* a whole request to /mcp */

/* --------------------------------------------------------------------------------- respond.c --- */

/* Each queues the response; the result is for libmicrohttpd. */
enum MHD_Result rv__respond_whole(struct rv__exchange *x);  /* x->answer */
enum MHD_Result rv__respond_stream(struct rv__exchange *x); /* x->stream */
enum MHD_Result rv__respond_mcp(struct rv__exchange *x);    /* x->mcp */
enum MHD_Result rv__respond_asset(struct rv__exchange *x);  /* x->asset */
enum MHD_Result rv__respond_problem(struct rv__exchange *x, int status, const char *detail);
/* A problem that may be an attack: also logged. */
enum MHD_Result rv__respond_refused(struct rv__exchange *x, int status, const char *detail);

/* ----------------------------------------------------------------------------------- login.c --- */

/* Identify the caller. 0: known, or anonymous; else the status of the refusal, and why. */
int rv__login_identify(struct rv__exchange *x, const char **why);
enum MHD_Result rv__login_answer(struct rv__exchange *x); /* x->answer: LOGIN, LOGOUT or SESSION */

#endif
