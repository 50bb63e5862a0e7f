/* routes.c: the whole API: every path, its role, its parameters and its answer.
 *
 * api.c and given.c check requests by these tables, openapi.c documents them. A new path needs a row here, a
 * function, and, for a new document, a schema in openapi.c. */
#include <assert.h>

#include "server/api.h"

#define JSON_INT_MOST (INT64_C(1) << 53) /* larger numbers would be rounded in JavaScript */

/* clang-format off */
#define FILTERS \
    { "workflow", PARAM_TEXT, "Runs of this workflow." }, \
    { "status", PARAM_CHOICE, "Runs in this status.", .choices = rv__status_names }, \
    { "waiting", PARAM_CHOICE, "Runs that wait for somebody: for a signal or a decision.", \
      .choices = rv__waiting_names }, \
    { "rerunOf", PARAM_TEXT, "Runs that repeat this run." }, \
    { "since", PARAM_INT, "Created at or after, in milliseconds since 1970.", .max = JSON_INT_MOST }, \
    { "until", PARAM_INT, "Created before, in milliseconds since 1970.", .max = JSON_INT_MOST }, \
    { "q", PARAM_TEXT, "Text in the run's id, workflow, error or input." }
/* clang-format on */
static const struct rv__param runs_params[] = {
    FILTERS,
    { "limit", PARAM_INT, "Runs in one answer.", .min = 1, .max = 1000, .fallback = 50 },
    { "cursor", PARAM_TEXT, "nextCursor of the previous page." },
    { NULL },
};
static const struct rv__param bulk_params[] = {
    FILTERS,
    { "all", PARAM_FLAG, "1: all runs; required without a filter." },
    { "limit", PARAM_INT, "Runs in one batch.", .min = 1, .max = 1000, .fallback = 100 },
    { "cursor", PARAM_TEXT, "nextCursor of the previous batch." },
    { NULL },
};
/* A call can hold the parameters of any route. */
static_assert(sizeof runs_params / sizeof *runs_params - 1 <= RV__API_PARAMS &&
                  sizeof bulk_params / sizeof *bulk_params - 1 <= RV__API_PARAMS,
              "RV__API_PARAMS");
static const struct rv__param run_params[] = {
    { "results", PARAM_FLAG, "0 leaves out the results, which can be large.", .fallback = 1 },
    { NULL },
};
static const struct rv__param nodes_params[] = {
    { "parent", PARAM_TEXT,
      "The path of the node whose children are listed; default: the top level." },
    { "status", PARAM_CHOICE, "Children in this status; `total` and `offset` count only these.",
      .choices = rv__node_status_names },
    { "offset", PARAM_INT, "Children to skip.", .max = INT32_MAX },
    { "limit", PARAM_INT, "Children in one answer.", .min = 1, .max = 1000, .fallback = 100 },
    { NULL },
};
static const struct rv__param node_params[] = {
    { "path", PARAM_TEXT, "The path of the node.", .required = true },
    { "results", PARAM_FLAG, "0 leaves out its values (result, state, input), which can be large.",
      .fallback = 1 },
    { NULL },
};
static const struct rv__param wait_params[] = {
    { "timeoutMs", PARAM_INT, "How long to wait.", .max = 3600000, .fallback = 300000 },
    { NULL },
};
static const struct rv__param logs_params[] = {
    { "step", PARAM_TEXT, "Lines of the step with this alias." },
    { "path", PARAM_TEXT, "Lines of the node at this path and of all nodes and iterations in it." },
    { "level", PARAM_CHOICE, "Lines of this level and above.", .choices = rv__level_names },
    { "q", PARAM_TEXT, "Text in the message." },
    { "attempt", PARAM_INT, "Lines of this attempt, from 1; for an agent: of its state.",
      .max = INT32_MAX },
    { "after", PARAM_INT, "`next` of the previous page.", .max = JSON_INT_MOST },
    { "limit", PARAM_INT, "Lines in one answer.", .min = 1, .max = 1000, .fallback = 100 },
    { NULL },
};
static const struct rv__param attachments_params[] = {
    { "stage", PARAM_TEXT, "Those of this stage." },
    { "state", PARAM_TEXT, "Those of this state." },
    { "status", PARAM_CHOICE, "Those in this status.", .choices = rv__attachment_status_names },
    { "latest", PARAM_FLAG, "1: only the last one of each state that is not superseded." },
    { "last", PARAM_INT, "The last N that have ended and are not superseded.", .max = INT32_MAX },
    { "incomplete", PARAM_FLAG, "1: only those that have not ended." },
    { "olderThanMs", PARAM_INT, "Those that began at least this many milliseconds ago.",
      .max = JSON_INT_MOST },
    { "offset", PARAM_INT, "Attachments to skip.", .max = INT32_MAX },
    { "limit", PARAM_INT, "Attachments in one answer.", .min = 1, .max = 1000, .fallback = 100 },
    { NULL },
};
static const char *const from_names[] = { "oldest", "now", NULL };
static const struct rv__param events_params[] = {
    { "logs", PARAM_FLAG, "0 leaves `log` events out.", .fallback = 1 },
    { "from", PARAM_CHOICE,
      "Where to start without Last-Event-ID; default: oldest for one run, now for all runs.",
      .choices = from_names },
    { NULL },
};
static const struct rv__param history_params[] = {
    { "after", PARAM_TEXT, "`next` of the previous page." },
    { "logs", PARAM_FLAG, "1: with `log` events." },
    { "by", PARAM_FLAG, "1: only what somebody did: events with `by`." },
    { "limit", PARAM_INT, "Events read for one answer.", .min = 1, .max = 10000, .fallback = 1000 },
    { NULL },
};
static const struct rv__param signal_params[] = {
    { "force", PARAM_FLAG, "1 keeps the signal even if no step of the run waits for its name." },
    { NULL },
};
static const struct rv__param start_members[] = {
    { "input", PARAM_JSON, "The input; checked against the workflow's schema." },
    { "runId", PARAM_TEXT,
      "The id of the run; by default one is generated. Starting it again changes nothing." },
    { "rerunOf", PARAM_TEXT, "The id of the run that this one repeats: they are linked." },
    { "maxConcurrency", PARAM_INT,
      "Attempts at once in each stage of a manifest; overrides the file.", .min = 1,
      .max = INT32_MAX },
    { NULL },
};
static const struct rv__param decide_members[] = {
    { "action", PARAM_CHOICE, "What to do with the suspended run.", .choices = rv__action_names,
      .required = true },
    { "path", PARAM_TEXT, "Which suspension; required if there are several." },
    { "reason", PARAM_TEXT, "The reason; with abort it is the run's error." },
    { NULL },
};
static const struct rv__param complete_members[] = {
    { "result", PARAM_JSON, "The step's result (null)." },
    { "error", PARAM_TEXT, "The step fails with this message." },
    { NULL },
};
static const struct rv__param login_members[] = {
    { "token", PARAM_TEXT, "A token of the server's token file.", .required = true },
    { NULL },
};

const struct rv__route rv__routes[] = {
    { "GET", "/api/v1/workflows", RV__ROLE_VIEWER, rv__api_workflows, "listWorkflows", "workflows",
      "What can be run", .status = 200, .schema = "WorkflowList" },
    { "GET", "/api/v1/workflows/{name}", RV__ROLE_VIEWER, rv__api_workflow, "getWorkflow",
      "workflows", "A workflow with its plan", .status = 200, .schema = "WorkflowDetail",
      .problems = { 404 } },
    { "GET", "/api/v1/workflows/{name}/source", RV__ROLE_VIEWER, rv__api_source, "getSource",
      "workflows", "The present text of the file that defines the workflow", .status = 200,
      .schema = "Source", .problems = { 404, 422 } },
    { "POST", "/api/v1/workflows/{name}/runs", RV__ROLE_OPERATOR, rv__api_start, "startRun",
      "workflows", "Begin a run", .body = BODY_OBJECT, .members = start_members, .status = 202,
      .schema = "RunRef", .problems = { 404, 409, 413, 415, 422, 503 } },
    { "GET", "/api/v1/runs", RV__ROLE_VIEWER, rv__api_runs, "listRuns", "runs",
      "Runs, newest first", .params = runs_params, .status = 200, .schema = "RunList" },
    { "GET", "/api/v1/counts", RV__ROLE_VIEWER, rv__api_counts, "countRuns", "runs",
      "How many runs there are in each status", .status = 200, .schema = "RunCounts" },
    { "GET", "/api/v1/overview", RV__ROLE_VIEWER, rv__api_overview, "getOverview", "runs",
      "The runs of the last day, those that wait longest, and the state of the store",
      .status = 200, .schema = "Overview" },
    { "GET", "/api/v1/members", RV__ROLE_VIEWER, rv__api_members, "getMembers", "system",
      "The processes that share the store", .status = 200, .schema = "Members" },
    { "POST", "/api/v1/bulk/cancel", RV__ROLE_OPERATOR, rv__api_bulk_cancel, "cancelRuns", "runs",
      "Cancel the runs of a list, one batch", .params = bulk_params, .status = 200,
      .schema = "Bulk", .problems = { 415, 422, 503 } },
    { "POST", "/api/v1/bulk/again", RV__ROLE_OPERATOR, rv__api_bulk_again, "startRunsAgain", "runs",
      "Run the ended runs of a list again, with their input: one batch", .params = bulk_params,
      .status = 200, .schema = "BulkAgain", .problems = { 415, 422, 503 } },
    { "GET", "/api/v1/runs/{id}", RV__ROLE_VIEWER, rv__api_run_get, "getRun", "runs",
      "A run with its input, results and top-level nodes", .params = run_params,
      .reads = RV_READ_RUN, .status = 200, .schema = "RunDetail", .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/plan", RV__ROLE_VIEWER, rv__api_plan, "getRunPlan", "runs",
      "The plan that the run was started with", .reads = RV_READ_RUN, .status = 200,
      .schema = "Plan", .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/nodes", RV__ROLE_VIEWER, rv__api_nodes, "listNodes", "nodes",
      "A window of the children of a node", .params = nodes_params, .reads = RV_READ_RUN,
      .status = 200, .schema = "NodeList", .problems = { 404, 422 } },
    { "GET", "/api/v1/runs/{id}/node", RV__ROLE_VIEWER, rv__api_node, "getNode", "nodes",
      "One node with its values and attempts", .params = node_params, .reads = RV_READ_RUN,
      .status = 200, .schema = "NodeDetail", .problems = { 404, 422 } },
    { "GET", "/api/v1/runs/{id}/why", RV__ROLE_VIEWER, rv__api_why, "whyRun", "runs",
      "What the run waits for", .reads = RV_READ_RUN, .status = 200, .schema = "Why",
      .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/wait", RV__ROLE_VIEWER, rv__api_wait, "waitForRun", "runs",
      "Wait until the run has ended", .params = wait_params, .status = 200, .schema = "Outcome",
      .problems = { 404, 408, 503 } },
    { "POST", "/api/v1/runs/{id}/cancel", RV__ROLE_OPERATOR, rv__api_cancel, "cancelRun", "runs",
      "Cancel the run and everything that is active in it", .status = 200, .schema = "RunRef",
      .problems = { 404, 415, 422, 503 } },
    { "POST", "/api/v1/runs/{id}/decide", RV__ROLE_OPERATOR, rv__api_decide, "decideRun", "runs",
      "Decide about a suspended run", .body = BODY_OBJECT, .members = decide_members, .status = 200,
      .schema = "RunRef", .problems = { 404, 409, 415, 422, 503 } },
    { "POST", "/api/v1/runs/{id}/signals/{name}", RV__ROLE_OPERATOR, rv__api_signal, "signalRun",
      "runs", "Send a signal; the body is its payload", .params = signal_params, .body = BODY_ANY,
      .status = 200, .schema = "RunRef", .problems = { 404, 409, 413, 415, 422, 429, 503 } },
    { "POST", "/api/v1/runs/{id}/handles/{handle}", RV__ROLE_OPERATOR, rv__api_complete,
      "completeHandle", "runs", "Complete a step that waits for its result from outside",
      .body = BODY_OBJECT, .members = complete_members, .status = 200, .schema = "RunRef",
      .problems = { 404, 409, 413, 415, 422, 503 } },
    { "GET", "/api/v1/runs/{id}/logs", RV__ROLE_VIEWER, rv__api_logs, "listLogs", "logs",
      "The log of the run's steps, in order", .params = logs_params, .reads = RV_READ_LOGS,
      .status = 200, .schema = "LogList", .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/attachments", RV__ROLE_VIEWER, rv__api_attachments,
      "listAttachments", "attachments", "The records of the attempts of the run's states",
      .params = attachments_params, .reads = RV_READ_ATTACHMENTS, .status = 200,
      .schema = "AttachmentList", .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/attachments/{aid}", RV__ROLE_VIEWER, rv__api_attachment,
      "getAttachment", "attachments", "One of them, with its result or error",
      .reads = RV_READ_ATTACHMENT, .status = 200, .schema = "AttachmentDetail",
      .problems = { 404 } },
    { "GET", "/api/v1/runs/{id}/events", RV__ROLE_VIEWER, rv__api_events, "runEvents", "events",
      "The events of the run, live", .params = events_params, .status = 200,
      .type = "text/event-stream", .problems = { 404, 410 } },
    { "GET", "/api/v1/runs/{id}/history", RV__ROLE_VIEWER, rv__api_history, "getHistory", "events",
      "The past events of the run, one page", .params = history_params, .reads = RV_READ_RUN,
      .status = 200, .schema = "History", .problems = { 404, 410 } },
    { "GET", "/api/v1/events", RV__ROLE_VIEWER, rv__api_events, "allEvents", "events",
      "The events of all runs, live", .params = events_params, .status = 200,
      .type = "text/event-stream", .problems = { 410 } },
    { "POST", "/api/v1/login", RV__ROLE_NONE, rv__api_login, "login", "session",
      "Start a session: a cookie replaces the token", .body = BODY_OBJECT, .members = login_members,
      .status = 200, .schema = "Session", .problems = { 401, 403, 413, 415, 422, 429, 503 } },
    { "POST", "/api/v1/logout", RV__ROLE_NONE, rv__api_logout, "logout", "session",
      "End the session of the cookie", .status = 200, .schema = "Session",
      .problems = { 403, 415, 422 } },
    { "GET", "/api/v1/session", RV__ROLE_NONE, rv__api_session_get, "getSession", "session",
      "What the caller may do; role none: log in", .status = 200, .schema = "Session" },
    { "GET", "/healthz", RV__ROLE_NONE, rv__api_healthz, "healthz", "system", "It lives",
      .status = 200, .schema = "Health" },
    { "GET", "/readyz", RV__ROLE_NONE, rv__api_readyz, "readyz", "system",
      "Ready: the store can be written, and the server is not shutting down", .status = 200,
      .schema = "Health", .problems = { 503 } },
    { "GET", "/metrics", RV__ROLE_VIEWER, rv__api_metrics, "metrics", "system",
      "Figures for Prometheus", .status = 200, .type = "text/plain; version=0.0.4; charset=utf-8" },
    { "GET", "/api/v1/workers", RV__ROLE_WORKER, rv__api_workers, "listWorkers", "system",
      "Where workers connect, and which are connected", .status = 200, .schema = "Workers" },
    { "GET", "/openapi.json", RV__ROLE_VIEWER, rv__api_openapi, "openapi", "system",
      "This document", .status = 200, .schema = "Any" },
};
const size_t rv__route_count = sizeof rv__routes / sizeof *rv__routes;
