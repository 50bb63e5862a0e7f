/* server.h: one MCP server and what goes on with it. Inside agent/ only. All but the configuration belongs to the
 * I/O loop's thread.
 *
 *   down ──a call──▶ greeting ──▶ up ──────┐
 *    ▲ ▲               │ it cannot be       │ it died, hung up, or its session ended
 *    │ └───────────────┴────────────────────┘
 *    └─ a call that comes, or waits, begins it again: at once, or when the alarm rings
 *
 * `greeting` finds out the revision and reads the list of tools. By pipes: `server/discover` is answered, or
 * refused, or not answered for a while; then `initialize`. By HTTP the same with the status of the answer.
 * Calls wait until it is `up`; a list that has changed makes it `greeting` again, with what was called under way. */
#ifndef RV_AGENT_SERVER_H
#define RV_AGENT_SERVER_H

#include "agent/rpc.h"
#include "agent/tools.h"
#include "base/mask.h"

enum rv__tool_state { SERVER_DOWN, SERVER_GREETING, SERVER_UP };
/* What is known of its revision; it stays known when it is begun again. */
enum rv__tool_era { ERA_UNKNOWN, ERA_HANDSHAKE, ERA_STATELESS };

struct rv__tool_server {
    struct rv__tool_server *next;
    char *name;
    const char **argv, **env; /* a program; argv NULL: none */
    const char *cwd;
    char *url;            /* or an address; */
    const char **headers; /* ends with NULL */
    char *unusable;       /* why it cannot be used: a sentence; NULL: it can */
    struct rv__mask *mask;

    struct rv__io *io; /* NULL: it was never needed */
    enum rv__tool_state state;
    enum rv__tool_era era;
    char revision[16];
    bool tells_changes;         /* of its tools */
    struct rv__command command; /* runs unless `state` is DOWN */
    bool runs, ending, closing;
    struct rv__errand close;
    bool asked_again;    /* in this greeting, which revision it speaks */
    bool listens;        /* for changes: a request of its own waits for them */
    struct rv__buf line; /* that has not ended */
    char *session;       /* of HTTP; NULL: none */
    struct rv__chain waiting, requests;
    int64_t last_id;
    struct rv__alarm again; /* it may be begun again then */
    struct rv__alarm slow;  /* GREETING: it has had time enough */
    bool resting;           /* it is set */
    int failures;           /* in a row */
    struct rv__buf tools;   /* a JSON array */
    bool stale;             /* it is to be read again, */
    int64_t fresh_ms;       /* or (not 0) from then on: by the loop's clock */
    struct rv__buf pages;   /* what was read of a new one */
    int page, tool_count;
};

enum rv__tool_ask {
    ASK_DISCOVER,
    ASK_INITIALIZE,
    ASK_LIST,
    ASK_CALL,
    ASK_LISTEN,
    ASK_STREAM,
    ASK_NOTICE
};

/* A message that was sent, and what is to come for it. */
struct rv__tool_request {
    struct rv__link listed;
    struct rv__tool_server *server;
    enum rv__tool_ask ask;
    int64_t id;
    struct rv__tool_call *call; /* of ASK_CALL; NULL: nobody waits for it any more */
    struct rv__buf text;        /* the message */
    struct rv__alarm
        alarm; /* DISCOVER, by pipes: that is long enough; by HTTP: when to ask for the rest */
    struct rv__alarm late; /* of ASK_CALL */
    /* by HTTP */
    struct rv__fetch fetch;
    struct rv__arena arena;
    struct rv__sse sse;
    struct rv__buf body;
    bool fetching, typed, streams, over, resumes;
    bool greets; /* NOTICE: its tools are asked for when the server has it */
};

/* server.c, for the two transports: a message has come, on behalf of that request (NULL: by pipes, of any). */
void rv__tool_heard(struct rv__tool_server *server, struct rv__tool_request *request,
                    struct rv__str text);
/* Nothing more will come for this request, and it was not answered. It is freed. */
void rv__tool_unanswered(struct rv__tool_request *request, bool was_sent, const char *why);
/* By HTTP it was answered, and not well. False: that says nothing that a server of MCP would say. Else it is
 * freed. */
bool rv__tool_refused(struct rv__tool_request *request, const struct rv__fetch_result *result);
/* The server knows that the handshake is over. */
void rv__tool_initialized(struct rv__tool_server *server);
/* The program runs. */
void rv__tool_greet(struct rv__tool_server *server);
/* The server has gone, or cannot be spoken with: what was sent is lost, what waits fails. */
void rv__tool_gone(struct rv__tool_server *server, const char *why);
void rv__tool_request_free(struct rv__tool_request *request);
/* The schema of a tool's arguments; none: it is not in the list. */
struct rv__str rv__tool_schema(const struct rv__tool_server *server, struct rv__str tool);

/* by_pipe.c */
int rv__by_pipe_begin(struct rv__tool_server *server);
int rv__by_pipe_send(struct rv__tool_server *server, struct rv__str message);
void rv__by_pipe_end(struct rv__tool_server *server);

/* by_http.c */
/* Send its message; or (ASK_STREAM) open a stream. Errors: RV_ENOMEM, RV_ECLOSED. */
int rv__by_http_send(struct rv__tool_request *request);

#endif
