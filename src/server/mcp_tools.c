/* mcp_tools.c: tools: one for each workflow, and those about runs.
 *
 * A tool about runs is a row of a table: its request to the API, and where each argument goes. A workflow's tool
 * starts a run, which is a task for clients that support tasks; for others the call waits. */
#include "server/mcp.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/id.h"

enum {
    ARGS_MAX = 8,
    PATH_BYTES = 1 << 20,
    BODY_BYTES = 64 << 20,
    MESSAGE_BYTES = 300,
    HASH_DIGITS = 16
};

static const struct rv__str none = { NULL, 0 };

/* -------------------------------------------------------------------------------- the table --- */

enum place { IN_PATH, IN_QUERY, IN_BODY, IN_SPECIAL };
struct arg {
    const char *name; /* NULL: the end */
    enum place place;
    const char *schema;
    bool required;
};

struct tool {
    const char *name, *title, *description;
    const char *method, *path; /* {runId} is replaced by an argument */
    const char *annotations;
    struct arg args[ARGS_MAX + 1];
};

#define READS                                                                                     \
    "{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,\"openWorldHint\":" \
    "false}"
#define TEXT(says)           "{\"type\":\"string\",\"description\":\"" says "\"}"
#define INTEGER(range, says) "{\"type\":\"integer\"," range ",\"description\":\"" says "\"}"
#define RUN_ID                                                                                  \
    {                                                                                           \
        "runId", IN_PATH, TEXT("The id of the run, as a call or rival_list returned it."), true \
    }

static const struct tool tools[] = {
    { "rival_list",
      "List runs",
      "List runs, newest first: their ids, workflows, statuses and errors.",
      "GET",
      "/api/v1/runs",
      READS,
      { { "workflow", IN_QUERY, TEXT("Only runs of this workflow."), false },
        { "status", IN_QUERY,
          "{\"enum\":[\"running\",\"suspended\",\"completed\",\"failed\",\"cancelled\"],"
          "\"type\":\"string\",\"description\":\"Only runs in this status.\"}",
          false },
        { "waiting", IN_QUERY,
          "{\"enum\":[\"somebody\"],\"type\":\"string\",\"description\":\"somebody: only runs that "
          "wait for a signal or a decision.\"}",
          false },
        { "q", IN_QUERY, TEXT("Only runs with this text in their id, workflow, error or input."),
          false },
        { "since", IN_QUERY,
          INTEGER("\"minimum\":0", "Only runs created at or after this time (ms since 1970)."),
          false },
        { "until", IN_QUERY,
          INTEGER("\"minimum\":0", "Only runs created before this time (ms since 1970)."), false },
        { "limit", IN_QUERY,
          INTEGER("\"minimum\":1,\"maximum\":1000,\"default\":50", "Runs in one answer."), false },
        { "cursor", IN_QUERY, TEXT("nextCursor of the previous answer."), false } } },
    { "rival_launch",
      "Start a run",
      "Start a run of a workflow and return its id at once, without waiting for it. The same "
      "runId, workflow and input start nothing, and return the existing run.",
      "POST",
      "/api/v1/workflows/{workflow}/runs",
      "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":false,"
      "\"openWorldHint\":true}",
      { { "workflow", IN_PATH, TEXT("The name of the workflow."), true },
        { "input", IN_BODY,
          "{\"description\":\"The input; checked against the workflow's schema.\"}", false },
        { "runId", IN_BODY, TEXT("The id of the run; by default one is generated."), false } } },
    { "rival_wait",
      "Wait for a run",
      "Wait until a run has ended, and return its outcome. Returns its status if it has not ended "
      "in time.",
      "GET",
      "/api/v1/runs/{runId}/wait?timeoutMs=0",
      READS,
      { RUN_ID,
        { "timeoutMs", IN_SPECIAL,
          INTEGER("\"minimum\":0,\"maximum\":3600000,\"default\":50000", "How long to wait."),
          false } } },
    { "rival_cancel",
      "Cancel a run",
      "Cancel a run and everything that is active in it. A run that has ended is not changed.",
      "POST",
      "/api/v1/runs/{runId}/cancel",
      "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":true,"
      "\"openWorldHint\":false}",
      { RUN_ID } },
    { "rival_decide",
      "Decide about a run",
      "Answer what a run waits for (rival_why says what): with `action`, decide about a suspended "
      "run; with `signal`, send it the signal that it waits for, with `payload`.",
      "POST",
      "/api/v1/runs/{runId}/decide",
      "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":false,"
      "\"openWorldHint\":true}",
      { RUN_ID,
        { "action", IN_BODY,
          "{\"enum\":[\"resume\",\"abort\",\"skip\",\"restart_stage\"],\"type\":\"string\","
          "\"description\":\"What to do about the suspension.\"}",
          false },
        { "path", IN_BODY, TEXT("Which suspension is meant; required if there are several."),
          false },
        { "reason", IN_BODY, TEXT("Why; it is recorded."), false },
        { "signal", IN_SPECIAL, TEXT("The name of the signal."), false },
        { "payload", IN_SPECIAL, "{\"description\":\"The signal's payload; null if left out.\"}",
          false } } },
    { "rival_why",
      "Why a run waits",
      "Say what a run is doing or waiting for, with the reason for each part of it.",
      "GET",
      "/api/v1/runs/{runId}/why",
      READS,
      { RUN_ID } },
    { "rival_logs",
      "Read a run's log",
      "Read the log of a run's steps, in order.",
      "GET",
      "/api/v1/runs/{runId}/logs",
      READS,
      { RUN_ID,
        { "step", IN_QUERY, TEXT("Only lines of the step with this alias."), false },
        { "path", IN_QUERY, TEXT("Only lines of the node at this path and of all nodes in it."),
          false },
        { "level", IN_QUERY,
          "{\"enum\":[\"debug\",\"info\",\"warn\",\"error\"],\"type\":\"string\",\"description\":"
          "\"Only lines of this level and above.\"}",
          false },
        { "q", IN_QUERY, TEXT("Only lines with this text in their message."), false },
        { "after", IN_QUERY, INTEGER("\"minimum\":0", "`next` of the previous answer."), false },
        { "limit", IN_QUERY,
          INTEGER("\"minimum\":1,\"maximum\":1000,\"default\":100", "Lines in one answer."),
          false } } },
    { "rival_attachments",
      "Read a run's attachments",
      "List the records of the states of a run's stages, one for each attempt; with `id`, read one "
      "of them, with its result or error.",
      "GET",
      "/api/v1/runs/{runId}/attachments",
      READS,
      { RUN_ID,
        { "id", IN_SPECIAL, TEXT("The id of one attachment."), false },
        { "stage", IN_QUERY, TEXT("Only those of this stage."), false },
        { "state", IN_QUERY, TEXT("Only those of this state."), false },
        { "status", IN_QUERY, TEXT("Only those in this status."), false },
        { "last", IN_QUERY,
          INTEGER("\"minimum\":1", "The last N that have ended and are not superseded."),
          false } } },
};
enum { TOOLS = sizeof tools / sizeof *tools };

static const struct tool *find_tool(const char *name)
{
    for (size_t i = 0; i < TOOLS; i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------- list --- */

static void put_tool(struct rv__buf *out, const struct tool *tool)
{
    const char *comma = "";
    rv__buf_text(out, "{\"name\":");
    rv__buf_json_str(out, rv__str(tool->name));
    rv__put_text(out, "title", tool->title);
    rv__put_text(out, "description", tool->description);
    rv__buf_text(out, ",\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false,"
                      "\"properties\":{");
    for (const struct arg *arg = tool->args; arg->name != NULL; arg++) {
        rv__buf_fmt(out, "%s\"%s\":%s", comma, arg->name, arg->schema);
        comma = ",";
    }
    rv__buf_text(out, "},\"required\":[");
    comma = "";
    for (const struct arg *arg = tool->args; arg->name != NULL; arg++)
        if (arg->required) {
            rv__buf_fmt(out, "%s\"%s\"", comma, arg->name);
            comma = ",";
        }
    rv__buf_text(out, "]}");
    rv__put_json(out, "annotations", tool->annotations);
    rv__buf_char(out, '}');
}

/* How a workflow's input becomes arguments, which are always an object. */
enum shape {
    SHAPE_OPEN,    /* no schema, or one without a type: any object */
    SHAPE_OBJECT,  /* the schema is used for the tool */
    SHAPE_WRAPPED, /* another type: {"input": …} */
};

static enum shape shape_of(struct rv__str schema)
{
    struct rv__str type, one;
    struct rv__json_iter it;
    if (rv__str_none(schema) || rv__json_type(schema) != RV__JSON_OBJECT ||
        !rv__json_get(schema, "type", &type))
        return SHAPE_OPEN;
    if (rv__json_string_is(type, rv__str("object")))
        return SHAPE_OBJECT;
    rv__json_iter_init(&it, type);
    while (rv__json_next(&it, NULL, &one))
        if (rv__json_string_is(one, rv__str("object")))
            return SHAPE_OPEN;
    return SHAPE_WRAPPED;
}

/* The schema, with its type replaced by "object". */
static void put_as_object(struct rv__buf *out, struct rv__str schema)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    rv__buf_text(out, "{\"type\":\"object\"");
    if (!rv__str_none(schema)) {
        rv__json_iter_init(&it, schema);
        while (rv__json_next(&it, &key, &value))
            if (!rv__json_string_is(key, rv__str("type"))) {
                rv__buf_char(out, ',');
                rv__buf_str(out, key);
                rv__buf_char(out, ':');
                rv__buf_str(out, value);
            }
    }
    rv__buf_char(out, '}');
}

static void put_input_schema(struct rv__buf *out, struct rv__str schema)
{
    struct rv__str id;
    rv__buf_text(out, ",\"inputSchema\":");
    switch (shape_of(schema)) {
    case SHAPE_OBJECT: rv__buf_str(out, schema); break;
    case SHAPE_OPEN: put_as_object(out, schema); break;
    case SHAPE_WRAPPED: /* with an $id its references stay valid */
        rv__buf_text(out, "{\"type\":\"object\",\"additionalProperties\":false,\"required\":"
                          "[\"input\"],\"properties\":{\"input\":{");
        if (!rv__json_get(schema, "$id", &id))
            rv__buf_text(out, "\"$id\":\"rival:input\",");
        rv__buf_add(out, schema.at + 1, schema.len - 1);
        rv__buf_text(out, "}}");
        break;
    }
}

static void put_workflow(struct rv__mcp_call *call, struct rv__str workflow)
{
    struct rv__buf *out = &call->out;
    struct rv__str name, description, schema = none;
    if (!rv__json_get(workflow, "name", &name))
        return;
    rv__buf_text(out, "{\"name\":");
    rv__buf_str(out, name);
    if (rv__json_get(workflow, "description", &description) && description.len > 2) {
        rv__buf_text(out, ",\"description\":");
        rv__buf_str(out, description);
    } else {
        rv__buf_text(out, ",\"description\":\"A durable workflow.\"");
    }
    (void)rv__json_get(workflow, "inputSchema", &schema);
    put_input_schema(out, schema);
    rv__buf_text(out, ",\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":true,"
                      "\"idempotentHint\":false,\"openWorldHint\":true}");
    if (call->revision == RV__MCP_2025_11_25)
        rv__buf_text(out, ",\"execution\":{\"taskSupport\":\"optional\"}");
    rv__buf_char(out, '}');
}

static void ask_workflows(struct rv__mcp_call *call, struct rv__mcp_doc *ret)
{
    struct rv__buf path;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/workflows");
    rv__mcp_ask(call, "GET", &path, none, RV__MCP_READ_BYTES, ret);
    rv__buf_done(&path);
}

/* Is its name one of our own tools? Then the workflow is available by rival_launch only. */
static bool is_taken(struct rv__str workflow)
{
    struct rv__str name;
    if (!rv__json_get(workflow, "name", &name))
        return true;
    for (size_t i = 0; i < TOOLS; i++)
        if (rv__json_string_is(name, rv__str(tools[i].name)))
            return true;
    return false;
}

void rv__mcp_tools_list(struct rv__mcp_call *call)
{
    struct rv__mcp_doc doc;
    struct rv__str list, workflow;
    struct rv__json_iter it;
    size_t offset, at = 0;
    bool more = false;
    if (!rv__mcp_offset(call, &offset))
        return;
    ask_workflows(call, &doc);
    if (doc.status != 200 || rv__str_none(doc.body) ||
        !rv__json_get(doc.body, "workflows", &list)) {
        rv__mcp_refused(call, &doc);
        rv__mcp_doc_done(&doc);
        return;
    }
    rv__mcp_result(call, "complete");
    rv__buf_text(&call->out, ",\"tools\":[");
    for (; at < TOOLS; at++)
        if (at >= offset) {
            rv__buf_text(&call->out, at > offset ? "," : "");
            put_tool(&call->out, &tools[at]);
        }
    rv__json_iter_init(&it, list);
    while (!more && rv__json_next(&it, NULL, &workflow)) {
        if (is_taken(workflow))
            continue;
        more = at >= offset + RV__MCP_PAGE;
        if (at >= offset && !more) {
            rv__buf_text(&call->out, at > offset ? "," : "");
            put_workflow(call, workflow);
        }
        at++;
    }
    rv__buf_char(&call->out, ']');
    if (more)
        rv__buf_fmt(&call->out, ",\"nextCursor\":\"%zu\"", offset + RV__MCP_PAGE);
    rv__mcp_put_cache(call);
    rv__mcp_result_end(call);
    rv__mcp_doc_done(&doc);
}

/* ---------------------------------------------------------------------------------- results --- */

void rv__mcp_put_tool_result(struct rv__buf *out, const struct rv__mcp_doc *doc, const char *run_id,
                             bool is_error)
{
    struct rv__buf brief;
    struct rv__str text = doc->body;
    rv__buf_init(&brief, 1u << 16);
    if (rv__str_none(text)) {
        rv__buf_fmt(&brief, "{\"runId\":\"%s\",\"tooLarge\":%zu}", run_id, doc->length);
        text = rv__buf_view(&brief);
    }
    rv__buf_text(out, ",\"content\":[{\"type\":\"text\",\"text\":");
    rv__buf_json_str(out, text);
    rv__buf_char(out, '}');
    if (rv__str_none(doc->body) && *run_id != '\0')
        rv__buf_fmt(out,
                    ",{\"type\":\"resource_link\",\"uri\":\"rival://runs/%s\",\"name\":\"%s\","
                    "\"mimeType\":\"application/json\"}",
                    run_id, run_id);
    rv__buf_text(out, "],\"structuredContent\":");
    rv__buf_str(out, text);
    rv__buf_fmt(out, ",\"isError\":%s", is_error ? "true" : "false");
    rv__buf_done(&brief);
}

/* An outcome that is too long: without its results. */
static void put_long_outcome(struct rv__mcp_call *call, const char *run_id, size_t length)
{
    struct rv__mcp_doc run, brief = { .status = 200 };
    struct rv__str status = RV__STR("\"completed\""), error = none;
    struct rv__buf text;
    rv__buf_init(&text, RV__MCP_RESULT_BYTES);
    rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status == 200 && !rv__str_none(run.body)) {
        (void)rv__json_get(run.body, "status", &status);
        (void)rv__json_get(run.body, "error", &error);
    }
    rv__buf_fmt(&text, "{\"runId\":\"%s\",\"status\":%.*s,\"resultsTooLarge\":%zu", run_id,
                RV__ARG(status), length);
    if (!rv__str_none(error) && error.len < RV__MCP_RESULT_BYTES / 2) {
        rv__buf_text(&text, ",\"error\":");
        rv__buf_str(&text, error);
    }
    rv__buf_char(&text, '}');
    brief.body = rv__buf_view(&text);
    rv__mcp_put_tool_result(&call->out, &brief, run_id,
                            !rv__json_string_is(status, rv__str("completed")));
    rv__buf_done(&text);
    rv__mcp_doc_done(&run);
}

void rv__mcp_put_outcome(struct rv__mcp_call *call, const char *run_id,
                         const struct rv__mcp_doc *outcome)
{
    struct rv__str status;
    if (rv__str_none(outcome->body)) {
        put_long_outcome(call, run_id, outcome->length);
        return;
    }
    bool completed = rv__json_get(outcome->body, "status", &status) &&
                     rv__json_string_is(status, rv__str("completed"));
    rv__mcp_put_tool_result(&call->out, outcome, run_id, !completed);
}

/* Answer with the API's document, also if it is an error. But a missing permission is an error of the call. */
static void answer_doc(struct rv__mcp_call *call, const struct rv__mcp_doc *doc, const char *run_id)
{
    if (doc->status == 401 || doc->status == 403) {
        rv__mcp_refused(call, doc);
        return;
    }
    rv__mcp_result(call, "complete");
    rv__mcp_put_tool_result(&call->out, doc, run_id, doc->status >= 300);
    rv__mcp_result_end(call);
}

/* Answer with an error of the tool. */
static void answer_error(struct rv__mcp_call *call, const char *fmt, ...) RV_PRINTF(2, 3);
static void answer_error(struct rv__mcp_call *call, const char *fmt, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args); /* a longer one is cut */
    va_end(args);
    rv__mcp_result(call, "complete");
    rv__buf_text(&call->out, ",\"content\":[{\"type\":\"text\",\"text\":");
    rv__buf_json_str(&call->out, rv__str(text));
    rv__buf_text(&call->out, "}],\"isError\":true");
    rv__mcp_result_end(call);
}

/* ------------------------------------------------------------------------------ about runs --- */

static const struct arg *find_arg(const struct tool *tool, struct rv__str key)
{
    for (const struct arg *arg = tool->args; arg->name != NULL; arg++)
        if (rv__json_string_is(key, rv__str(arg->name)))
            return arg;
    return NULL;
}

/* A text as it is, anything else as JSON. */
static void put_value(struct rv__mcp_call *call, struct rv__buf *path, struct rv__str value)
{
    struct rv__str text;
    if (rv__json_string(value, &call->arena, &text) < 0)
        text = value;
    rv__mcp_put_encoded(path, text);
}

/* Build the path: names in braces are arguments. False: one is missing, and the call is answered. */
static bool put_path(struct rv__mcp_call *call, const char *form, struct rv__str args,
                     struct rv__buf *path)
{
    for (const char *at = form; *at != '\0'; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        char name[32];
        if (end == NULL) {
            rv__buf_char(path, *at);
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
        const char *value = rv__mcp_text(call, args, name);
        if (value == NULL || *value == '\0') {
            answer_error(call, "`%s` is missing: a text", name);
            return false;
        }
        rv__mcp_put_encoded(path, rv__str(value));
        at = end;
    }
    return true;
}

/* Add the arguments of the query and of the body. */
static bool put_rest(struct rv__mcp_call *call, const struct tool *tool, struct rv__str args,
                     struct rv__buf *path, struct rv__buf *body)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool marked = strchr(tool->path, '?') != NULL;
    rv__json_iter_init(&it, args);
    while (rv__json_next(&it, &key, &value)) {
        const struct arg *arg = find_arg(tool, key);
        if (arg == NULL) {
            answer_error(call, "there is no argument %.*s", (int)(key.len < 100 ? key.len : 100),
                         key.at);
            return false;
        }
        if (arg->place == IN_QUERY) {
            rv__buf_fmt(path, "%c%s=", marked ? '&' : '?', arg->name);
            put_value(call, path, value);
            marked = true;
        } else if (arg->place == IN_BODY) {
            rv__buf_fmt(body, "%c\"%s\":", body->len == 0 ? '{' : ',', arg->name);
            rv__buf_str(body, value);
        }
    }
    if (body->len > 0)
        rv__buf_char(body, '}');
    return true;
}

/* rival_decide with a signal: use that request instead. */
static bool put_signal(struct rv__mcp_call *call, struct rv__str args, struct rv__buf *path,
                       struct rv__buf *body)
{
    struct rv__str other, payload = RV__STR("null");
    if (rv__json_get(args, "action", &other)) {
        answer_error(call, "give `action` or `signal`, not both");
        return false;
    }
    rv__buf_reset(path);
    rv__buf_reset(body);
    if (!put_path(call, "/api/v1/runs/{runId}/signals/{signal}", args, path))
        return false;
    (void)rv__json_get(args, "payload", &payload);
    rv__buf_str(body, payload);
    return true;
}

/* rival_wait for a run that has not ended. */
static bool begin_wait(struct rv__mcp_call *call, struct rv__str args, const char *run_id)
{
    struct rv__str timeout;
    int64_t ms = RV__MCP_WAIT_MS;
    if (rv__json_get(args, "timeoutMs", &timeout) &&
        (rv__json_int(timeout, &ms) < 0 || ms < 0 || ms > RV__MCP_WAIT_MOST_MS)) {
        answer_error(call, "`timeoutMs` must be an integer from 0 to %d",
                     (int)RV__MCP_WAIT_MOST_MS);
        return true;
    }
    if (ms == 0)
        return false;
    rv__mcp_wait(call, RV__MCP_WAITS_RUN, run_id, ms);
    return true;
}

static void call_tool(struct rv__mcp_call *call, const struct tool *tool, struct rv__str args)
{
    struct rv__buf path, body;
    struct rv__str given;
    struct rv__mcp_doc doc = { .status = 500 };
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_init(&body, BODY_BYTES);
    bool good = put_path(call, tool->path, args, &path) && put_rest(call, tool, args, &path, &body);
    if (good && strcmp(tool->name, "rival_decide") == 0 && rv__json_get(args, "signal", &given))
        good = put_signal(call, args, &path, &body);
    if (good && strcmp(tool->name, "rival_attachments") == 0 && rv__json_get(args, "id", &given)) {
        rv__buf_reset(&path);
        good = put_path(call, "/api/v1/runs/{runId}/attachments/{id}", args, &path);
    }
    if (good && strcmp(tool->method, "POST") == 0 && body.len == 0)
        rv__buf_text(&body, "{}");
    if (good) {
        const char *run_id = rv__mcp_text(call, args, "runId");
        rv__mcp_ask(call, tool->method, &path, rv__buf_view(&body), RV__MCP_RESULT_BYTES, &doc);
        if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
            run_id = "";
        bool waits = strcmp(tool->name, "rival_wait") == 0;
        if (waits && doc.status == 200) {
            rv__mcp_result(call, "complete");
            rv__mcp_put_outcome(call, run_id, &doc);
            rv__mcp_result_end(call);
        } else if (!waits || doc.status != 408 || !begin_wait(call, args, run_id)) {
            answer_doc(call, &doc, run_id);
        }
    }
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
    rv__buf_done(&body);
}

/* -------------------------------------------------------------------------------- workflows --- */

/* The same from the list: an engine that uses another process has no plan of a workflow. */
static int find_in_list(struct rv__mcp_call *call, const char *name)
{
    struct rv__mcp_doc doc;
    struct rv__str list, workflow, said, schema = none;
    struct rv__json_iter it;
    int shape = -1;
    ask_workflows(call, &doc);
    if (doc.status == 200 && !rv__str_none(doc.body) &&
        rv__json_get(doc.body, "workflows", &list)) {
        rv__json_iter_init(&it, list);
        while (shape < 0 && rv__json_next(&it, NULL, &workflow))
            if (rv__json_get(workflow, "name", &said) && rv__json_string_is(said, rv__str(name))) {
                (void)rv__json_get(workflow, "inputSchema", &schema);
                shape = (int)shape_of(schema);
            }
    }
    rv__mcp_doc_done(&doc);
    return shape;
}

/* The shape of its arguments. -1: no such workflow, or an error, and the call is answered. */
static int find_workflow(struct rv__mcp_call *call, const char *name)
{
    struct rv__mcp_doc doc;
    struct rv__buf path;
    struct rv__str schema = none;
    int shape = -1;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_text(&path, "/api/v1/workflows/");
    rv__mcp_put_encoded(&path, rv__str(name));
    rv__mcp_ask(call, "GET", &path, none, RV__MCP_READ_BYTES, &doc);
    if (doc.status == 200 && !rv__str_none(doc.body)) {
        (void)rv__json_get(doc.body, "inputSchema", &schema);
        shape = (int)shape_of(schema);
    } else if (doc.status != 401 && doc.status != 403) {
        shape = find_in_list(call, name);
        if (shape < 0)
            rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "there is no tool '%.100s'", name);
    } else {
        rv__mcp_refused(call, &doc);
    }
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
    return shape;
}

/* Start the run. Its id is in call->run_id; false: the call was answered. */
static bool start_run(struct rv__mcp_call *call, const char *name, int shape, struct rv__str args)
{
    struct rv__buf path, body;
    struct rv__mcp_doc doc;
    struct rv__str input = args;
    bool started = false;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_init(&body, BODY_BYTES);
    rv__buf_text(&path, "/api/v1/workflows/");
    rv__mcp_put_encoded(&path, rv__str(name));
    rv__buf_text(&path, "/runs");
    if (shape == SHAPE_WRAPPED)
        input = rv__json_get(args, "input", &input) ? input : (struct rv__str)RV__STR("null");
    rv__buf_text(&body, "{\"input\":");
    rv__buf_str(&body, input);
    rv__buf_char(&body, '}');
    rv__mcp_ask(call, "POST", &path, rv__buf_view(&body), RV__MCP_READ_BYTES, &doc);
    const char *run_id = doc.status == 202 && !rv__str_none(doc.body)
                             ? rv__mcp_text(call, doc.body, "runId")
                             : NULL;
    if (run_id != NULL && rv__id_valid(rv__str(run_id))) {
        (void)snprintf(call->run_id, sizeof call->run_id, "%s", run_id);
        started = true;
    } else {
        answer_doc(call, &doc, "");
    }
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
    rv__buf_done(&body);
    return started;
}

/* The run in a state that this server made: ID/HASH. NULL: not valid. */
static const char *run_of_state(struct rv__mcp_call *call, const char *state)
{
    const char *slash = strchr(state, '/');
    size_t len = slash != NULL ? (size_t)(slash - state) : 0;
    if (slash == NULL || !rv__id_valid((struct rv__str){ state, len }) ||
        strlen(slash + 1) != HASH_DIGITS || strspn(slash + 1, "0123456789abcdef") != HASH_DIGITS)
        return NULL;
    return rv__arena_dup(&call->arena, state, len);
}

/* A repeated call, after it asked for input: requestState names its run. The state gives no rights: a caller that
 * may start runs may also signal any run. True: it was one. */
static bool is_continued(struct rv__mcp_call *call, const char *name)
{
    const char *state = call->modern ? rv__mcp_text(call, call->params, "requestState") : NULL;
    const char *workflow = NULL;
    struct rv__mcp_doc doc;
    if (state == NULL)
        return false;
    const char *run_id = run_of_state(call, state);
    if (run_id != NULL) {
        rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_READ_BYTES, &doc);
        if (doc.status == 200 && !rv__str_none(doc.body))
            workflow = rv__mcp_text(call, doc.body, "workflow");
        rv__mcp_doc_done(&doc);
    }
    if (workflow == NULL || strcmp(workflow, name) != 0)
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL,
                      "`requestState` does not belong to a call of this tool");
    else
        rv__mcp_wait(call, RV__MCP_WAITS_CALL, run_id, RV__MCP_WAIT_MS);
    return true;
}

static void call_workflow(struct rv__mcp_call *call, const char *name, struct rv__str args)
{
    struct rv__str task;
    bool wants_task = call->revision == RV__MCP_2025_11_25 &&
                      rv__json_get(call->params, "task", &task);
    if (is_continued(call, name))
        return;
    int shape = find_workflow(call, name);
    if (shape < 0 || !start_run(call, name, shape, args))
        return;
    if (call->tasks || wants_task)
        rv__mcp_task_created(call, call->run_id);
    else
        rv__mcp_wait(call, RV__MCP_WAITS_CALL, call->run_id, RV__MCP_WAIT_MS);
}

void rv__mcp_tools_call(struct rv__mcp_call *call)
{
    const char *name = rv__mcp_text(call, call->params, "name");
    struct rv__str args = RV__STR("{}");
    if (name == NULL) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`name` is missing: which tool?");
        return;
    }
    (void)rv__json_get(call->params, "arguments", &args);
    if (rv__json_type(args) != RV__JSON_OBJECT) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`arguments` must be an object");
        return;
    }
    const struct tool *tool = find_tool(name);
    if (tool != NULL)
        call_tool(call, tool, args);
    else
        call_workflow(call, name, args);
}
