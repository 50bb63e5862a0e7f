/* mcp.h: inside the MCP server: a call, and what its files share. The face is in server.h. */
#ifndef RV_SERVER_MCP_H
#define RV_SERVER_MCP_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "server/server.h"

enum {
    RV__MCP_ARENA_BYTES = 1 << 20,  /* of names, decoded */
    RV__MCP_OUT_BYTES = 48 << 20,   /* of what is said at a time: a result, twice, escaped */
    RV__MCP_RESULT_BYTES = 1 << 20, /* of a document in a result: a longer one is left out */
    RV__MCP_READ_BYTES = 16 << 20,  /* of a document that only we read */
    RV__MCP_WAIT_MS = 50000, /* a call waits so long for its run; clients give up after 60 s */
    RV__MCP_WAIT_MOST_MS = 3600000, /* and rival_wait at most */
    RV__MCP_LOOK_FIRST_MS = 100,    /* a run that is waited for is looked at after this time, … */
    RV__MCP_LOOK_MOST_MS = 1000,    /* … doubled each time up to this */
    RV__MCP_BEAT_MS = 5000,         /* progress is told so often at least */
    RV__MCP_POLL_MS = 500,          /* clients that poll a task are asked to wait so long */
    RV__MCP_PAGE = 250,             /* tools, resources or tasks in one answer */
    RV__MCP_LISTENED = 64,          /* tasks in one subscription */
    RV__MCP_LISTEN_MS = 3600000,    /* a subscription ends then */
    RV__MCP_PLAN_DEPTH = 256,       /* of a plan that is searched for a signal */
};

/* Codes of errors: those of JSON-RPC and MCP. What the API refuses otherwise has its HTTP status as code. */
enum {
    RV__MCP_PARSE = -32700,
    RV__MCP_REQUEST = -32600,
    RV__MCP_METHOD = -32601,
    RV__MCP_PARAMS = -32602,
    RV__MCP_INTERNAL = -32603,
    RV__MCP_NO_RESOURCE = -32002, /* before 2026-07-28 */
    RV__MCP_HEADERS = -32020,
    RV__MCP_CAPABILITY = -32021,
    RV__MCP_VERSION = -32022,
};

#define RV__MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"

/* In the order in which they came. */
enum rv__mcp_revision {
    RV__MCP_2025_06_18,
    RV__MCP_2025_11_25,
    RV__MCP_2026_07_28,
    RV__MCP_REVISIONS
};
extern const char *const rv__mcp_revisions[]; /* their names; ends in NULL */

enum rv__mcp_waiting {
    RV__MCP_WAITS_NOT,
    RV__MCP_WAITS_CALL,   /* a workflow's tool: for its run */
    RV__MCP_WAITS_RUN,    /* rival_wait */
    RV__MCP_WAITS_TASK,   /* tasks/result */
    RV__MCP_WAITS_CHANGE, /* subscriptions/listen: for what it was asked for */
};

struct rv__mcp_listened {
    char run_id[RV_RUN_ID_SIZE];
    uint64_t seen; /* hash of what was told last */
};

struct rv__mcp_call {
    struct rv__mcp_via via;
    const struct rv__mcp_request *request; /* its body lives as long as the call */
    enum rv__mcp_revision revision;
    bool modern; /* 2026-07-28: without sessions */
    bool tasks;  /* the client knows the extension */
    bool elicits;
    struct rv__str id, method, params; /* JSON, in the body; none where there is none */
    struct rv__str progress;           /* the token; none: nothing is to be told */
    struct rv__arena arena;

    int status;                         /* of HTTP */
    struct rv__buf out;                 /* messages, a line each, that are to be sent */
    size_t result_at;                   /* where the members of its last result or params begin */
    char session[RV__MCP_SESSION_SIZE]; /* that begins with this answer; "" = none */

    enum rv__mcp_waiting waits;
    char run_id[RV_RUN_ID_SIZE];
    int64_t begun_ms, until_ms, told_ms;
    int64_t look_ms;           /* until the next look */
    size_t ended_nodes, beats; /* as told last */
    bool told;
    bool answered; /* the answers that came with the call were used */
    struct rv__mcp_listened *listened;
    size_t listened_count;
    uint64_t tools_seen; /* hash of the workflows */
    bool hears_tools;
};

/* A document of the API. */
struct rv__mcp_doc {
    int status;          /* of HTTP */
    struct rv__str body; /* JSON; none: it is longer than was asked for */
    size_t length;       /* of all of it */
    struct rv__api_answer answer;
    char *read; /* out of a file */
};

/* ----------------------------------------------------------------------------------- mcp.c --- */

/* Ask the API as the caller. `path` has its query behind a '?'. *ret is for rv__mcp_doc_done(). */
void rv__mcp_ask(struct rv__mcp_call *call, const char *method, const struct rv__buf *path,
                 struct rv__str body, size_t max_bytes, struct rv__mcp_doc *ret);
void rv__mcp_doc_done(struct rv__mcp_doc *doc);
/* GET /api/v1/runs/ID and what follows it: "", "/why". */
void rv__mcp_ask_run(struct rv__mcp_call *call, const char *run_id, const char *what,
                     size_t max_bytes, struct rv__mcp_doc *ret);
/* How it ended: a 408 if it has not. */
void rv__mcp_ask_outcome(struct rv__mcp_call *call, const char *run_id, struct rv__mcp_doc *ret);
void rv__mcp_put_encoded(struct rv__buf *path, struct rv__str text); /* percent-encoded */
/* "detail" of a problem; else some words. In the arena. */
const char *rv__mcp_detail(struct rv__mcp_call *call, const struct rv__mcp_doc *doc);

/* The call's answer: an error; `data` NULL or JSON. */
void rv__mcp_error(struct rv__mcp_call *call, int http, int code, const char *data, const char *fmt,
                   ...) RV_PRINTF(5, 6);
void rv__mcp_refused(struct rv__mcp_call *call, const struct rv__mcp_doc *doc); /* as the API did */
/* Its result: what each has, then members with a comma before each, then _end. */
void rv__mcp_result(struct rv__mcp_call *call, const char *type);
void rv__mcp_result_end(struct rv__mcp_call *call);
void rv__mcp_notify(struct rv__mcp_call *call, const char *method); /* then members of params */
void rv__mcp_notify_end(struct rv__mcp_call *call);
void rv__mcp_put_cache(struct rv__mcp_call *call); /* how long a list is good for */

/* A text of the params; NULL: there is none, or it is no text or has a NUL. In the arena. */
const char *rv__mcp_text(struct rv__mcp_call *call, struct rv__str object, const char *key);
/* Where a list goes on: `cursor` of the params as a number. False: it is none of ours, as was answered. */
bool rv__mcp_offset(struct rv__mcp_call *call, size_t *ret);
bool rv__mcp_has_ended(struct rv__str run); /* by its "status" */
/* A page of runs, as the call's result: each as `put` writes it, in a list called `member`. */
void rv__mcp_list_runs(struct rv__mcp_call *call, const char *member,
                       void (*put)(struct rv__mcp_call *call, struct rv__str run,
                                   const char *run_id));

/* ----------------------------------------------------------------------------- mcp_tools.c --- */

void rv__mcp_tools_list(struct rv__mcp_call *call);
void rv__mcp_tools_call(struct rv__mcp_call *call);
/* ,"content":[…],"structuredContent":…,"isError":… of a document. */
void rv__mcp_put_tool_result(struct rv__buf *out, const struct rv__mcp_doc *doc, const char *run_id,
                             bool is_error);
/* The same of a run that has ended, by its outcome. */
void rv__mcp_put_outcome(struct rv__mcp_call *call, const char *run_id,
                         const struct rv__mcp_doc *outcome);

/* ----------------------------------------------------------------------------- mcp_tasks.c --- */

void rv__mcp_tasks_get(struct rv__mcp_call *call);
void rv__mcp_tasks_update(struct rv__mcp_call *call);
void rv__mcp_tasks_cancel(struct rv__mcp_call *call);
void rv__mcp_tasks_list(struct rv__mcp_call *call);   /* 2025-11-25 */
void rv__mcp_tasks_result(struct rv__mcp_call *call); /* 2025-11-25 */
/* The run has begun: its task, as the result of the call. */
void rv__mcp_task_created(struct rv__mcp_call *call, const char *run_id);
/* ,"taskId":…: all of a task, with its result or what it asks for. RV_OK, or the API's status. */
int rv__mcp_put_task(struct rv__mcp_call *call, const char *run_id, bool detailed);
/* ,"inputRequests":{…} of a run; how many there are. */
size_t rv__mcp_put_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__buf *out);
/* Answer those of the inputs that are still asked for. False: the call has an answer, an error. */
bool rv__mcp_take_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__str responses);

/* ------------------------------------------------------------------------- mcp_resources.c --- */

void rv__mcp_resources_list(struct rv__mcp_call *call);
void rv__mcp_templates_list(struct rv__mcp_call *call);
void rv__mcp_resources_read(struct rv__mcp_call *call);

/* ------------------------------------------------------------------------------ mcp_wait.c --- */

/* From now on the call waits: for the run's end, timeout_ms at most. */
void rv__mcp_wait(struct rv__mcp_call *call, enum rv__mcp_waiting what, const char *run_id,
                  int64_t timeout_ms);
void rv__mcp_listen(struct rv__mcp_call *call);

#endif
