/* server.h: one MCP server and the requests that are sent to it. Inside agent/ only. All but the configuration belongs
 * to the I/O loop's thread.
 *
 *   down ──a call──▶ greeting ──▶ up ──────┐
 *    ▲ ▲               │ it cannot be       │ it died, hung up, or its session ended
 *    │ └───────────────┴────────────────────┘
 *    └─ a call that comes, or waits, starts it again: at once, or when the pause after a failure is over
 *
 * Calls wait until it is `up`; a list of tools that has changed makes it `greeting` again, while requests that were
 * sent stay under way. */
#ifndef RV_AGENT_SERVER_H
#define RV_AGENT_SERVER_H

#include "agent/rpc.h"
#include "agent/tools.h"
#include "base/mask.h"

#define RV__TOOL_STATELESS "2026-07-28" /* the revision without a handshake */
/* The others that we speak, newest first. */
extern const char *const rv__tool_handshakes[];
enum {
    RV__TOOL_LIST_MS = 60000
}; /* that a list is good if its server does not notify of changes */

enum rv__tool_state { SERVER_DOWN, SERVER_GREETING, SERVER_UP };
/* What is known of its revision; it stays known when it is started again. */
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
    bool notifies_changes;      /* of its list of tools */
    bool has_tasks;             /* 2025-11-25: its tools may be called as tasks */
    struct rv__command command; /* runs unless `state` is DOWN */
    bool runs, ending, closing;
    struct rv__errand close;
    bool asked_again;    /* in this greeting, which revision it speaks */
    bool listens;        /* a request of its own waits for changes of its tools */
    bool no_stream;      /* HTTP, revisions of 2025: it has no stream of its own */
    bool opens_stream;   /* greeting: it is waited for */
    bool renewed;        /* its session ended, and it has not been up since */
    struct rv__buf line; /* that has not ended */
    char *session;       /* of HTTP; NULL: none */
    int session_number;
    struct rv__chain waiting, requests;
    struct rv__chain polling; /* calls that wait before they ask for their task again */
    int64_t last_id;
    struct rv__alarm restart; /* when it may be started again, */
    bool restart_pending;     /* if this is set */
    struct rv__alarm greeting_limit;
    int failures;            /* in a row */
    struct rv__buf tools;    /* a JSON array */
    bool list_stale;         /* it has to be read again before the next call, */
    int64_t list_expires_ms; /* or (not 0) from then on: by the loop's clock */
    bool changed_in_reading; /* the last time it was read */
    struct rv__buf pages;    /* of a new list that is being read */
    int page, tool_count;
};

enum rv__tool_ask {
    ASK_DISCOVER,
    ASK_INITIALIZE,
    ASK_LIST,
    ASK_CALL,
    ASK_TASK_GET,
    ASK_TASK_RESULT, /* 2025-11-25 */
    ASK_TASK_UPDATE, /* 2026-07-28: answers for a task */
    ASK_TASK_CANCEL,
    ASK_LISTEN, /* 2026-07-28: for changes of its tools */
    ASK_STREAM, /* HTTP, revisions of 2025: the same, by GET */
    ASK_NOTICE  /* HTTP: a notification or an answer of ours */
};

/* A message that was sent and may be answered. */
struct rv__tool_request {
    struct rv__link listed;
    struct rv__tool_server *server;
    enum rv__tool_ask ask;
    int64_t id;
    struct rv__tool_call *call; /* that waits for the answer; NULL: none */
    /* While its step asks a person (question.c): */
    char *key;               /* of the step; NULL: the request is not kept */
    struct rv__buf question; /* the id of the server's question: JSON */
    struct rv__buf answer;   /* the server's answer, if it came meanwhile; empty: none */
    struct rv__buf text;     /* the message */
    struct rv__alarm alarm; /* DISCOVER by pipes: stop waiting; by HTTP: when to ask for the rest */
    struct rv__alarm late;  /* of requests with a call */
    /* by HTTP */
    struct rv__fetch fetch;
    struct rv__arena arena;
    struct rv__sse sse;
    struct rv__buf body;
    bool fetching, typed, streams, ended, resumes;
    int session_number; /* of the server, when it was sent */
    bool greets;        /* NOTICE: its tools are asked for when the server has it */
};

/* ------------------------------------------------------------------------------- request.c --- */

/* Send a request. NULL: it could not be. `cursor`: of ASK_LIST, none for the first page. */
struct rv__tool_request *rv__tool_request_send(struct rv__tool_server *server,
                                               enum rv__tool_ask what, struct rv__tool_call *call,
                                               struct rv__str cursor);
/* Nothing more is expected of it. It is freed; by HTTP when its connection has ended. */
void rv__tool_request_end(struct rv__tool_request *request);
void rv__tool_request_free(struct rv__tool_request *request);
struct rv__tool_request *rv__tool_request_of_kind(const struct rv__tool_server *server,
                                                  enum rv__tool_ask ask); /* the oldest one */
struct rv__tool_request *rv__tool_request_of_id(const struct rv__tool_server *server, int64_t id);
/* Send a message that is not answered. By HTTP it is a request whose delivery can be awaited; NULL by pipes, or if it
 * could not be sent (a program that does not read is about to end). */
struct rv__tool_request *rv__tool_notify(struct rv__tool_server *server, struct rv__str message);
void rv__tool_notify_cancelled(struct rv__tool_request *request);
/* Answer a request of the server; `id` is JSON, `result` an object. */
void rv__tool_reply(struct rv__tool_server *server, struct rv__str id, struct rv__str result);
/* The schema of a tool's arguments; none: it is not in the list. */
struct rv__str rv__tool_schema(const struct rv__tool_server *server, struct rv__str tool);

/* ---------------------------------------------------------------------------------- call.c --- */

/* Each of these calls `done`, once; the call may be gone afterwards. */
void rv__tool_call_finish(struct rv__tool_server *server, struct rv__tool_call *call,
                          struct rv__tool_result *result);
void rv__tool_call_fail(struct rv__tool_server *server, struct rv__tool_call *call,
                        enum rv__tool_end end, const char *why);
void rv__tool_call_finish_noted(struct rv__tool_server *server, struct rv__tool_call *call,
                                struct rv__buf *note); /* takes what is in the note */
/* All calls of this list fail; with TOOL_DOWN those of tasks are polled again later instead. */
void rv__tool_calls_fail(struct rv__tool_server *server, struct rv__chain *calls,
                         enum rv__tool_end end, const char *why);
/* Send the call, or the request by which it continues after its note. */
void rv__tool_call_send(struct rv__tool_server *server, struct rv__tool_call *call);
/* Its request was sent: the time limits of the wait for its answer; `begun` is called the first time. */
void rv__tool_call_limit_wait(struct rv__tool_call *call);
void rv__tool_call_sent(struct rv__tool_call *call);
/* The answer to the call, or the end of its task. */
void rv__tool_call_answered(struct rv__tool_server *server, struct rv__tool_call *call,
                            const struct rv__rpc *rpc);
/* An answer, or a task, that wants input first (2026-07-28): it ends with a note. */
void rv__tool_call_input_required(struct rv__tool_server *server, struct rv__tool_call *call,
                                  struct rv__str asked);

/* ---------------------------------------------------------------------------------- task.c --- */

/* The server has made a task of the call: it ends with a note. False: `task` has no id, or nobody takes notes. */
bool rv__tool_task_created(struct rv__tool_server *server, struct rv__tool_call *call,
                           struct rv__str task);
void rv__tool_task_ask(struct rv__tool_server *server, struct rv__tool_call *call,
                       enum rv__tool_ask what);
void rv__tool_task_status(struct rv__tool_server *server, struct rv__tool_call *call,
                          const struct rv__rpc *rpc);
/* Its server could not be asked: poll again later. False: it is no task, or the server was away for too long. */
bool rv__tool_task_retry(struct rv__tool_server *server, struct rv__tool_call *call);

/* ------------------------------------------------------------------------------ question.c --- */

/* The request that is kept for the step of this key; NULL: there is none. */
struct rv__tool_request *rv__tool_question_find(const struct rv__tool_server *server,
                                                struct rv__str key);
/* The person has answered, and the server still waits: `call` continues with the kept request. */
void rv__tool_question_answer(struct rv__tool_server *server, struct rv__tool_request *request,
                              struct rv__tool_call *call);
/* The server asks something; `of`: the request by whose stream it came, NULL by pipes. */
void rv__tool_question_received(struct rv__tool_server *server, struct rv__tool_request *of,
                                const struct rv__rpc *rpc);
/* Is this request kept, and was it answered meanwhile? */
bool rv__tool_question_has_result(const struct rv__tool_request *request);

/* ------------------------------------------------------------------------------ greeting.c --- */

/* Ask which revision it speaks, in the state `greeting`. */
void rv__tool_greeting_begin(struct rv__tool_server *server);
void rv__tool_greeting_initialize(struct rv__tool_server *server);
void rv__tool_greeting_enter(struct rv__tool_server *server);
void rv__tool_greeting_read_list(struct rv__tool_server *server);
/* Answers to that. */
void rv__tool_greeting_discovered(struct rv__tool_server *server, const struct rv__rpc *rpc);
void rv__tool_greeting_initialized(struct rv__tool_server *server, const struct rv__rpc *rpc);
void rv__tool_greeting_listed(struct rv__tool_server *server, const struct rv__rpc *rpc);
/* The stream by which the server speaks by itself is open, or will not be. */
void rv__tool_greeting_streams(struct rv__tool_server *server);
/* By HTTP: the server has `notifications/initialized`. */
void rv__tool_greeting_acknowledged(struct rv__tool_server *server);

/* -------------------------------------------------------------------------------- server.c --- */

/* A message has come, on behalf of that request (NULL: by pipes, of any). */
void rv__tool_received(struct rv__tool_server *server, struct rv__tool_request *request,
                       struct rv__str text);
/* The answer to a request. It is freed. */
void rv__tool_request_answered(struct rv__tool_request *request, const struct rv__rpc *rpc);
/* Nothing more will come for this request, and it was not answered. It is freed. */
void rv__tool_unanswered(struct rv__tool_request *request, bool was_sent, const char *why);
/* By HTTP it was answered, and not well. False: that says nothing that a server of MCP would say. Else it is
 * freed. */
bool rv__tool_refused(struct rv__tool_request *request, const struct rv__fetch_result *result);
/* The server has gone, or cannot be spoken with: what was sent is lost, what waits fails. */
void rv__tool_server_lost(struct rv__tool_server *server, const char *why);
/* Start it if a call waits for it and it may be started now. */
void rv__tool_server_wake(struct rv__tool_server *server);
/* The loop ends: everything fails. */
void rv__tool_server_close(struct rv__errand *errand);
/* It is up: send all that waits, after the list of tools was read again if it has to be. */
void rv__tool_server_flush(struct rv__tool_server *server);

/* ------------------------------------------------------------------------------ transports --- */

/* by_pipe.c */
int rv__by_pipe_begin(struct rv__tool_server *server);
int rv__by_pipe_send(struct rv__tool_server *server, struct rv__str message);
void rv__by_pipe_end(struct rv__tool_server *server);

/* by_http.c */
/* Send its message; or (ASK_STREAM) open a stream. Errors: RV_ENOMEM, RV_ECLOSED. */
int rv__by_http_send(struct rv__tool_request *request);

#endif
