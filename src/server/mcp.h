/* mcp.h: inside the MCP server: a call, and what its files share. Its interface is in server.h. */
#ifndef RV_SERVER_MCP_H
#define RV_SERVER_MCP_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "server/server.h"

enum {
    RV__MCP_ARENA_BYTES = 1 << 20,  /* for decoded names */
    RV__MCP_OUT_BYTES = 48 << 20,   /* of one message: a result, twice, escaped */
    RV__MCP_RESULT_BYTES = 1 << 20, /* of a document in a result; a longer one is left out */
    RV__MCP_READ_BYTES = 16 << 20,  /* of a document for our own use */
    RV__MCP_WAIT_MS = 50000, /* how long a call waits for its run; clients give up after 60 s */
    RV__MCP_WAIT_MOST_MS = 3600000, /* limit of rival_wait */
    RV__MCP_LOOK_FIRST_MS = 100,    /* between looks at a run that is waited for: at first, … */
    RV__MCP_LOOK_MOST_MS = 1000,    /* … doubled each time up to this */
    RV__MCP_BEAT_MS = 5000,         /* at most this time between progress messages */
    RV__MCP_POLL_MS = 500,          /* how often clients are asked to poll a task */
    RV__MCP_PAGE = 250,             /* tools, resources or tasks in one answer */
    RV__MCP_LISTENED = 64,          /* tasks in one subscription */
    RV__MCP_LISTEN_MS = 3600000,    /* then a subscription ends */
    RV__MCP_PLAN_DEPTH = 256,       /* of a plan, when a signal is searched in it */
};

/* Error codes: those of JSON-RPC and MCP. For other refusals of the API the code is the HTTP status. */
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

/* Oldest first. */
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
    RV__MCP_WAITS_CHANGE, /* subscriptions/listen: for a change that it subscribed to */
};

struct rv__mcp_listened {
    char run_id[RV_RUN_ID_SIZE];
    uint64_t seen; /* hash of the state last sent */
};

struct rv__mcp_call {
    struct rv__mcp_via via;
    const struct rv__mcp_request *request; /* its body is valid as long as the call */
    enum rv__mcp_revision revision;
    bool modern; /* 2026-07-28: without sessions */
    bool tasks;  /* the client supports the extension */
    bool elicits;
    struct rv__str id, method, params; /* JSON, in the body; empty: absent */
    struct rv__str progress;           /* the token; empty: send no progress */
    struct rv__arena arena;

    int status;                         /* HTTP status */
    struct rv__buf out;                 /* messages to send, one per line */
    size_t result_at;                   /* where the members of the last result or params begin */
    char session[RV__MCP_SESSION_SIZE]; /* a session that begins with this answer; "" = none */

    enum rv__mcp_waiting waits;
    char run_id[RV_RUN_ID_SIZE];
    int64_t begun_ms, until_ms, told_ms;
    int64_t look_ms;           /* until the next look */
    size_t ended_nodes, beats; /* as last sent */
    bool told;
    bool answered; /* the answers in the call were used */
    struct rv__mcp_listened *listened;
    size_t listened_count;
    uint64_t tools_seen; /* hash of the workflows */
    bool hears_tools;
};

/* A document of the API. */
struct rv__mcp_doc {
    int status;          /* of HTTP */
    struct rv__str body; /* JSON; empty: longer than max_bytes */
    size_t length;       /* of the whole document */
    struct rv__api_answer answer;
    char *read; /* the text, if it was read from a file */
};

/* ----------------------------------------------------------------------------------- mcp.c --- */

/* Ask the API with the caller's rights. `path` includes the query. Free *ret with rv__mcp_doc_done(). */
void rv__mcp_ask(struct rv__mcp_call *call, const char *method, const struct rv__buf *path,
                 struct rv__str body, size_t max_bytes, struct rv__mcp_doc *ret);
void rv__mcp_doc_done(struct rv__mcp_doc *doc);
/* GET /api/v1/runs/ID and `what` after it: "", "/why". */
void rv__mcp_ask_run(struct rv__mcp_call *call, const char *run_id, const char *what,
                     size_t max_bytes, struct rv__mcp_doc *ret);
/* The outcome of the run; status 408 if it has not ended. */
void rv__mcp_ask_outcome(struct rv__mcp_call *call, const char *run_id, struct rv__mcp_doc *ret);
void rv__mcp_put_encoded(struct rv__buf *path, struct rv__str text); /* percent-encoded */
/* "detail" of a problem; else a general message. In the arena. */
const char *rv__mcp_detail(struct rv__mcp_call *call, const struct rv__mcp_doc *doc);

/* Answer the call with an error; `data` NULL or JSON. */
void rv__mcp_error(struct rv__mcp_call *call, int http, int code, const char *data, const char *fmt,
                   ...) RV_PRINTF(5, 6);
void rv__mcp_refused(struct rv__mcp_call *call, const struct rv__mcp_doc *doc); /* with its error */
/* Answer with a result: _result writes the common members; append members, each with a comma before it; then call
 * _end. */
void rv__mcp_result(struct rv__mcp_call *call, const char *type);
void rv__mcp_result_end(struct rv__mcp_call *call);
void rv__mcp_notify(struct rv__mcp_call *call, const char *method); /* then members of params */
void rv__mcp_notify_end(struct rv__mcp_call *call);
void rv__mcp_put_cache(struct rv__mcp_call *call); /* how long a list may be cached */

/* A text in the params; NULL: absent, not a text, or with a NUL. In the arena. */
const char *rv__mcp_text(struct rv__mcp_call *call, struct rv__str object, const char *key);
/* Where a list continues: `cursor` of the params as a number. False: invalid, and the call is answered. */
bool rv__mcp_offset(struct rv__mcp_call *call, size_t *ret);
bool rv__mcp_has_ended(struct rv__str run); /* by its "status" */
/* Answer with a page of runs, in a list called `member`; `put` writes each. */
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
/* Answer with the task of a run that has begun. */
void rv__mcp_task_created(struct rv__mcp_call *call, const char *run_id);
/* Write ,"taskId":… and the rest of a task, with its result or its requests for input. RV_OK, or the API's status. */
int rv__mcp_put_task(struct rv__mcp_call *call, const char *run_id, bool detailed);
/* Write ,"inputRequests":{…} of a run. Returns how many there are. */
size_t rv__mcp_put_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__buf *out);
/* Use the responses that the run still waits for. False: the call was answered with an error. */
bool rv__mcp_take_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__str responses);

/* ------------------------------------------------------------------------- mcp_resources.c --- */

void rv__mcp_resources_list(struct rv__mcp_call *call);
void rv__mcp_templates_list(struct rv__mcp_call *call);
void rv__mcp_resources_read(struct rv__mcp_call *call);

/* ------------------------------------------------------------------------------ mcp_wait.c --- */

/* The call waits from now on: until the run has ended, at most timeout_ms. */
void rv__mcp_wait(struct rv__mcp_call *call, enum rv__mcp_waiting what, const char *run_id,
                  int64_t timeout_ms);
void rv__mcp_listen(struct rv__mcp_call *call);

#endif
