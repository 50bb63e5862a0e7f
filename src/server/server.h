/* server.h: the face of server/: Rival over HTTP.
 *
 * Two halves. The API (api.c and a file per noun) knows routes, parameters, roles and documents, and
 * nothing of connections: a request in, an answer out. The transport carries them. The command line
 * uses the first half alone, on a store that it opened itself, and so shows the documents that a
 * server would send. */
#ifndef RV_SERVER_SERVER_H
#define RV_SERVER_SERVER_H

#include <rival/rival.h>

/* What a caller may do; each may do all that those before it may. */
enum rv__role {
    RV__ROLE_NONE,     /* is it alive: /healthz, /readyz */
    RV__ROLE_VIEWER,   /* look */
    RV__ROLE_OPERATOR, /* start, cancel, decide, signal */
    RV__ROLE_ADMIN,
};

/* A request, transport taken off. Texts are the caller's. */
struct rv__api_request {
    const char *method;       /* "GET", … */
    const char *path;         /* as it came, still percent-encoded, without the query */
    const char *query;        /* behind the '?'; NULL or "" = none */
    const char *content_type; /* as its header has it; NULL = none, which will do without a body */
    const char *body;         /* not yet looked at; NULL = none */
    size_t body_length;
    enum rv__role role;
};

enum rv__answer_kind {
    RV__ANSWER_WHOLE,  /* status, type, body */
    RV__ANSWER_EVENTS, /* a stream: rv_feed_open() with run_id and no_logs, each event as it comes */
    RV__ANSWER_WAIT, /* not yet: ask rv__api_waited() when the run has ended, or after timeout_ms */
};

struct rv__api_answer {
    enum rv__answer_kind kind;
    int status;
    const char *type; /* static */
    char *body;       /* NUL behind `length`; rv__api_answer_done() frees it */
    size_t length;
    const char *allow;           /* 405: the methods there are; static; else NULL */
    char run_id[RV_RUN_ID_SIZE]; /* EVENTS: "" = of all runs; WAIT */
    bool no_logs;                /* EVENTS */
    int64_t timeout_ms;          /* WAIT */
};

/* Answer a request. Takes as long as the engine does, and never waits for a run. There is always an
 * answer (without memory: a 500). *ret is for rv__api_answer_done(). Thread: any. */
void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret);

/* The whole answer behind RV__ANSWER_WAIT: the outcome, or 408 and how the run is doing. Thread: any. */
void rv__api_waited(rv_engine *engine, const char *run_id, int64_t waited_ms,
                    struct rv__api_answer *ret);

/* An RFC 9457 problem. `title` NULL: the usual words for the status. Thread: any. */
void rv__api_problem(int status, const char *title, const char *detail, struct rv__api_answer *ret);

/* Free what the answer owns; it may be used again. */
void rv__api_answer_done(struct rv__api_answer *answer);

#endif
