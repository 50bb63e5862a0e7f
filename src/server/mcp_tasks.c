/* mcp_tasks.c: runs as tasks.
 *
 * A task is a run: its id is the run's, so every run of the store is a task, and a task outlives every process that
 * used it. No state is needed here:
 *
 *   run                          task
 *   queued, running              working
 *   waits for a signal           input_required: an elicitation, answered by tasks/update → the signal
 *   suspended                    input_required: an elicitation, answered by tasks/update → the decision
 *   completed, failed            completed; a failed run is a result with isError
 *   cancelled                    cancelled
 *
 * ("failed" is for errors of the protocol, which we report at once.) Each request for input has a unique key in its
 * run: the node's path, and since when it waits. If a call asks for input and is repeated with the answers
 * (mcp_wait.c), the key of a signal is its name. */
#include "server/mcp.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/id.h"

enum { KEY_BYTES = 1 << 16, PATH_BYTES = 1 << 20, BODY_BYTES = 64 << 20, MESSAGE_BYTES = 300 };
enum { INPUTS_MAX = 64 }; /* asked for at once */

static const struct rv__str none = { NULL, 0 };

/* The task in the params. NULL: the call was answered. */
static const char *task_id(struct rv__mcp_call *call)
{
    const char *id = rv__mcp_text(call, call->params, "taskId");
    if (id == NULL || !rv__id_valid(rv__str(id))) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`taskId` is not the id of a task");
        return NULL;
    }
    return id;
}

static void refuse_task(struct rv__mcp_call *call, const char *id, const struct rv__mcp_doc *doc)
{
    if (doc->status == 404)
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "there is no task '%s'", id);
    else
        rv__mcp_refused(call, doc);
}

/* ----------------------------------------------------------------------------------- inputs --- */

/* One request for input of a run. */
struct input {
    bool decides;         /* else a signal */
    struct rv__str path;  /* JSON; none: the whole run */
    struct rv__str name;  /* of the signal: JSON */
    struct rv__str since; /* a number */
    struct rv__str says, actions;
    struct rv__str
        asks; /* of a signal: what a tool asks for, {message, schema}; none: it is a step's own */
};

static void put_key(struct rv__mcp_call *call, const struct input *input, struct rv__buf *out)
{
    struct rv__str path = none;
    if (!rv__str_none(input->path))
        (void)rv__json_string(input->path, &call->arena, &path);
    if (!call->tasks && !input->decides && /* in a call: unique among its own requests is enough */
        rv__json_string(input->name, &call->arena, &path) == RV_OK) {
        rv__buf_str(out, path);
        return;
    }
    rv__buf_text(out, input->decides ? "decide:" : "signal:");
    rv__buf_str(out, path);
    rv__buf_char(out, '@');
    rv__buf_str(out, rv__str_none(input->since) ? rv__str("0") : input->since);
}

/* The plan's schema for payloads of this signal; none: anything is valid. */
static struct rv__str find_schema(struct rv__str plan, struct rv__str name, int depth)
{
    struct rv__json_iter it;
    struct rv__str kind, with, said, schema, value;
    if (depth == 0)
        return none;
    if (rv__json_get(plan, "kind", &kind) && rv__json_string_is(kind, rv__str("signal")) &&
        rv__json_get(plan, "with", &with) && rv__json_get(with, "name", &said) &&
        rv__str_eq(said, name))
        return rv__json_get(with, "schema", &schema) ? schema : none;
    rv__json_iter_init(&it, plan);
    while (rv__json_next(&it, NULL, &value)) {
        struct rv__str found = find_schema(value, name, depth - 1);
        if (!rv__str_none(found))
            return found;
    }
    return none;
}

/* The schema of what a tool asks for, which is the content of the answer. */
static struct rv__str asked_schema(struct rv__str asks)
{
    struct rv__str value = asks;
    static const char *const path[] = { "schema", "properties", "content" };
    for (size_t i = 0; i < sizeof path / sizeof *path; i++)
        if (!rv__json_get(value, path[i], &value))
            return none;
    return value;
}

/* Can a form ask for it? Only an object of plain values. */
static bool is_form(struct rv__str schema)
{
    static const char *const plain[] = { "string", "number", "integer", "boolean" };
    struct rv__str type, properties, property;
    struct rv__json_iter it;
    if (rv__str_none(schema) || !rv__json_get(schema, "type", &type) ||
        !rv__json_string_is(type, rv__str("object")) ||
        !rv__json_get(schema, "properties", &properties) || rv__json_count(properties) == 0)
        return false;
    rv__json_iter_init(&it, properties);
    while (rv__json_next(&it, NULL, &property)) {
        bool good = false;
        if (!rv__json_get(property, "type", &type))
            return false;
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
            good |= rv__json_string_is(type, rv__str(plain[i]));
        if (!good)
            return false;
    }
    return true;
}

/* A form for the schema; or one for a text. */
static void put_form(struct rv__buf *out, struct rv__str schema)
{
    struct rv__str value;
    rv__buf_text(out, "{\"type\":\"object\",\"properties\":");
    if (is_form(schema)) {
        (void)rv__json_get(schema, "properties", &value);
        rv__buf_str(out, value);
        if (rv__json_get(schema, "required", &value)) {
            rv__buf_text(out, ",\"required\":");
            rv__buf_str(out, value);
        }
    } else {
        rv__buf_text(out, "{\"payload\":{\"type\":\"string\",\"title\":\"Message\",\"description\":"
                          "\"The message as JSON, or as plain text\"}}");
    }
    rv__buf_char(out, '}');
}

static void put_input(struct rv__mcp_call *call, const struct input *input, struct rv__str plan,
                      struct rv__buf *out)
{
    struct rv__buf key;
    rv__buf_init(&key, KEY_BYTES);
    put_key(call, input, &key);
    rv__buf_json_str(out, rv__buf_view(&key));
    rv__buf_done(&key);
    rv__buf_text(out, ":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\","
                      "\"message\":");
    rv__buf_str(out, rv__str_none(input->says) ? rv__str("\"the run waits for an answer\"")
                                               : input->says);
    rv__buf_text(out, ",\"requestedSchema\":");
    if (input->decides) {
        rv__buf_text(out, "{\"type\":\"object\",\"properties\":{\"action\":{\"type\":\"string\","
                          "\"enum\":");
        rv__buf_str(out, rv__str_none(input->actions) ? rv__str("[\"resume\",\"abort\"]")
                                                      : input->actions);
        rv__buf_text(out, "},\"reason\":{\"type\":\"string\"}},\"required\":[\"action\"]}");
    } else {
        put_form(out, rv__str_none(input->asks) ? find_schema(plan, input->name, RV__MCP_PLAN_DEPTH)
                                                : asked_schema(input->asks));
    }
    rv__buf_text(out, "}}");
}

/* Call `then` for each request for input, from `why` and the run itself. */
typedef void input_fn(struct rv__mcp_call *call, const struct input *input, void *arg);

static void each_signal(struct rv__mcp_call *call, struct rv__str why, input_fn *then, void *arg)
{
    struct rv__str waits, group, nodes, node, reason;
    struct rv__json_iter groups, it;
    if (!rv__json_get(why, "waits", &waits))
        return;
    rv__json_iter_init(&groups, waits);
    while (rv__json_next(&groups, NULL, &group)) {
        if (!rv__json_get(group, "reason", &reason) ||
            !rv__json_string_is(reason, rv__str("signal")) || !rv__json_get(group, "nodes", &nodes))
            continue;
        rv__json_iter_init(&it, nodes);
        while (rv__json_next(&it, NULL, &node)) {
            struct input input = { .decides = false };
            (void)rv__json_get(group, "name", &input.name);
            (void)rv__json_get(group, "message", &input.says);
            (void)rv__json_get(node, "path", &input.path);
            (void)rv__json_get(node, "name", &input.name);
            (void)rv__json_get(node, "since", &input.since);
            if (rv__json_get(node, "asks", &input.asks))
                (void)rv__json_get(input.asks, "message", &input.says);
            if (!rv__str_none(input.name))
                then(call, &input, arg);
        }
    }
}

static void each_decision(struct rv__mcp_call *call, struct rv__str run, input_fn *then, void *arg)
{
    struct rv__str list, one, reason;
    struct rv__json_iter it;
    if (!rv__json_get(run, "suspensions", &list))
        return;
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &one)) {
        struct input input = { .decides = true };
        (void)rv__json_get(one, "path", &input.path);
        (void)rv__json_get(one, "since", &input.since);
        (void)rv__json_get(one, "actions", &input.actions);
        if (rv__json_get(one, "reason", &reason)) {
            if (rv__json_type(reason) == RV__JSON_OBJECT)
                (void)rv__json_get(reason, "message", &input.says);
            else
                input.says = reason;
        }
        if (!rv__str_none(input.says) && rv__json_type(input.says) != RV__JSON_STRING)
            input.says = none;
        then(call, &input, arg);
    }
}

static void each_input(struct rv__mcp_call *call, const char *run_id, input_fn *then, void *arg)
{
    struct rv__mcp_doc run, why;
    rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status == 200 && !rv__str_none(run.body) && !rv__mcp_has_ended(run.body)) {
        each_decision(call, run.body, then, arg);
        rv__mcp_ask_run(call, run_id, "/why", RV__MCP_READ_BYTES, &why);
        if (why.status == 200 && !rv__str_none(why.body))
            each_signal(call, why.body, then, arg);
        rv__mcp_doc_done(&why);
    }
    rv__mcp_doc_done(&run);
}

struct put_inputs {
    struct rv__buf *out;
    struct rv__str plan;
    uint64_t keys[INPUTS_MAX]; /* hashes */
    size_t count;
};

static void put_one(struct rv__mcp_call *call, const struct input *input, void *arg)
{
    struct put_inputs *put = arg;
    struct rv__buf key;
    rv__buf_init(&key, KEY_BYTES);
    put_key(call, input, &key);
    uint64_t hash = rv__str_hash(RV__HASH_START, rv__buf_view(&key));
    rv__buf_done(&key);
    for (size_t i = 0; i < put->count; i++)
        if (put->keys[i] == hash) /* two nodes wait for the same signal: one answer at a time */
            return;
    if (put->count == INPUTS_MAX) /* the others follow when these are answered */
        return;
    put->keys[put->count] = hash;
    if (put->count++ > 0)
        rv__buf_char(put->out, ',');
    put_input(call, input, put->plan, put->out);
}

size_t rv__mcp_put_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__buf *out)
{
    struct put_inputs put = { .out = out };
    struct rv__mcp_doc plan;
    rv__mcp_ask_run(call, run_id, "/plan", RV__MCP_READ_BYTES, &plan);
    put.plan = plan.status == 200 && !rv__str_none(plan.body) ? plan.body
                                                              : (struct rv__str)RV__STR("{}");
    rv__buf_text(out, ",\"inputRequests\":{");
    each_input(call, run_id, put_one, &put);
    rv__buf_char(out, '}');
    rv__mcp_doc_done(&plan);
    return put.count;
}

/* ----------------------------------------------------------------------------------- answers --- */

struct take_inputs {
    const char *run_id;
    struct rv__str responses;
    bool refused; /* the call was answered */
};

/* The payload of a signal: the form's content, or its text. */
static void put_payload(struct rv__mcp_call *call, struct rv__str content, struct rv__buf *body)
{
    struct rv__str payload, text;
    if (rv__str_none(content) || rv__json_count(content) == 0) {
        rv__buf_text(body, "null");
    } else if (rv__json_count(content) == 1 && rv__json_get(content, "payload", &payload) &&
               rv__json_string(payload, &call->arena, &text) == RV_OK) {
        if (rv__json_check(text, RV__JSON_VALUE_DEPTH, NULL, NULL) == RV_OK)
            rv__buf_str(body, text);
        else
            rv__buf_json_str(body, text);
    } else {
        rv__buf_str(body, content);
    }
}

static void put_decision(const struct input *input, struct rv__str content, struct rv__buf *body)
{
    struct rv__str value;
    rv__buf_text(body, "{\"action\":");
    rv__buf_str(body, rv__json_get(content, "action", &value) ? value : rv__str("null"));
    if (rv__json_get(content, "reason", &value)) {
        rv__buf_text(body, ",\"reason\":");
        rv__buf_str(body, value);
    }
    if (!rv__str_none(input->path)) {
        rv__buf_text(body, ",\"path\":");
        rv__buf_str(body, input->path);
    }
    rv__buf_char(body, '}');
}

static void send_answer(struct rv__mcp_call *call, struct take_inputs *take,
                        const struct input *input, struct rv__str content)
{
    struct rv__buf path, body;
    struct rv__mcp_doc doc;
    struct rv__str name;
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_init(&body, BODY_BYTES);
    rv__buf_fmt(&path, "/api/v1/runs/%s/%s", take->run_id, input->decides ? "decide" : "signals/");
    if (input->decides) {
        put_decision(input, content, &body);
    } else {
        if (rv__json_string(input->name, &call->arena, &name) == RV_OK)
            rv__mcp_put_encoded(&path, name);
        bool asked = !rv__str_none(input->asks);
        rv__buf_text(&body, asked ? "{\"action\":\"accept\",\"content\":" : "");
        put_payload(call, content, &body);
        rv__buf_text(&body, asked ? "}" : "");
    }
    rv__mcp_ask(call, "POST", &path, rv__buf_view(&body), RV__MCP_READ_BYTES, &doc);
    if (doc.status != 200) {
        rv__mcp_refused(call, &doc);
        take->refused = true;
    }
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
    rv__buf_done(&body);
}

/* Use the answer to this request, if it is positive. If the user declines, the run keeps waiting. */
static void take_one(struct rv__mcp_call *call, const struct input *input, void *arg)
{
    struct take_inputs *take = arg;
    struct rv__json_iter it;
    struct rv__str key, value, action, content;
    struct rv__buf wanted;
    if (take->refused)
        return;
    rv__buf_init(&wanted, KEY_BYTES);
    put_key(call, input, &wanted);
    rv__json_iter_init(&it, take->responses);
    while (rv__json_next(&it, &key, &value)) {
        if (!rv__json_string_is(key, rv__buf_view(&wanted)))
            continue;
        if (!rv__json_get(value, "action", &action) ||
            !rv__json_string_is(action, rv__str("accept")))
            break;
        if (!rv__json_get(value, "content", &content))
            content = (struct rv__str)RV__STR("{}");
        send_answer(call, take, input, content);
        break;
    }
    rv__buf_done(&wanted);
}

bool rv__mcp_take_inputs(struct rv__mcp_call *call, const char *run_id, struct rv__str responses)
{
    struct take_inputs take = { .run_id = run_id, .responses = responses };
    if (rv__json_type(responses) != RV__JSON_OBJECT) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`inputResponses` must be an object");
        return false;
    }
    if (rv__json_count(responses) > 0)
        each_input(call, run_id, take_one, &take);
    return !take.refused;
}

/* --------------------------------------------------------------------------------- documents --- */

static void put_time(struct rv__buf *out, const char *key, struct rv__str run, const char *of,
                     const char *or_of)
{
    char text[RV__TIME_TEXT_SIZE];
    struct rv__str value;
    int64_t ms = 0;
    if ((!rv__json_get(run, of, &value) || rv__json_int(value, &ms) < 0) &&
        (!rv__json_get(run, or_of, &value) || rv__json_int(value, &ms) < 0))
        ms = 0;
    rv__time_text(ms, text);
    rv__put_text(out, key, text);
}

static const char *status_of(struct rv__str run)
{
    struct rv__str status, waiting;
    if (rv__json_get(run, "status", &status)) {
        if (rv__json_string_is(status, rv__str("cancelled")))
            return "cancelled";
        if (rv__mcp_has_ended(run))
            return "completed";
    }
    return rv__json_get(run, "waiting", &waiting) ? "input_required" : "working";
}

static void put_task(struct rv__mcp_call *call, const char *run_id, struct rv__str run,
                     const char *status)
{
    struct rv__buf *out = &call->out;
    char message[MESSAGE_BYTES];
    rv__put_text(out, "taskId", run_id);
    rv__put_text(out, "status", status);
    const char *name = rv__mcp_text(call, run, "workflow"),
               *word = rv__mcp_text(call, run, "status");
    (void)snprintf(message, sizeof message, "the run of %.100s is %.20s%s",
                   name != NULL ? name : "a workflow", word != NULL ? word : "running",
                   strcmp(status, "input_required") == 0
                       ? ": it waits for an answer (rival_why says to what, rival_decide gives it)"
                       : "");
    rv__put_text(out, "statusMessage", message);
    put_time(out, "createdAt", run, "createdAt", "startedAt");
    put_time(out, "lastUpdatedAt", run, "completedAt", "startedAt");
    rv__buf_fmt(out,
                call->modern ? ",\"ttlMs\":null,\"pollIntervalMs\":%d"
                             : ",\"ttl\":null,\"pollInterval\":%d",
                (int)RV__MCP_POLL_MS);
}

/* ,"result":{…} of a run that has ended. */
static void put_result(struct rv__mcp_call *call, const char *run_id)
{
    struct rv__mcp_doc outcome;
    rv__mcp_ask_outcome(call, run_id, &outcome);
    rv__buf_text(&call->out, ",\"result\":{\"_meta\":{},\"resultType\":\"complete\"");
    rv__mcp_put_outcome(call, run_id, &outcome);
    rv__buf_char(&call->out, '}');
    rv__mcp_doc_done(&outcome);
}

int rv__mcp_put_task(struct rv__mcp_call *call, const char *run_id, bool detailed)
{
    struct rv__mcp_doc run;
    rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    int http = run.status == 200 && rv__str_none(run.body) ? 500 : run.status;
    if (http == 200) {
        const char *status = status_of(run.body);
        put_task(call, run_id, run.body, status);
        if (detailed && strcmp(status, "completed") == 0)
            put_result(call, run_id);
        else if (detailed && strcmp(status, "input_required") == 0 && call->elicits)
            (void)rv__mcp_put_inputs(call, run_id, &call->out);
        else if (detailed && strcmp(status, "input_required") == 0)
            rv__buf_text(&call->out, ",\"inputRequests\":{}"); /* the client cannot ask its user */
    }
    rv__mcp_doc_done(&run);
    return http;
}

/* ----------------------------------------------------------------------------------- methods --- */

/* Answer with the task, or with an error. */
static void answer_task(struct rv__mcp_call *call, const char *run_id, const char *type,
                        bool detailed)
{
    size_t begin = call->out.len;
    rv__mcp_result(call, type);
    int status = rv__mcp_put_task(call, run_id, detailed);
    if (status == 200) {
        rv__mcp_result_end(call);
        return;
    }
    rv__buf_cut(&call->out, begin);
    struct rv__mcp_doc doc = { .status = status };
    refuse_task(call, run_id, &doc);
}

void rv__mcp_task_created(struct rv__mcp_call *call, const char *run_id)
{
    struct rv__mcp_doc run;
    if (call->modern) {
        answer_task(call, run_id, "task", false);
        return;
    }
    rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status != 200 || rv__str_none(run.body)) {
        refuse_task(call, run_id, &run);
    } else {
        rv__mcp_result(call, "task");
        rv__buf_text(&call->out, ",\"task\":{\"_meta\":{}");
        put_task(call, run_id, run.body, status_of(run.body));
        rv__buf_char(&call->out, '}');
        rv__mcp_result_end(call);
    }
    rv__mcp_doc_done(&run);
}

void rv__mcp_tasks_get(struct rv__mcp_call *call)
{
    const char *id = task_id(call);
    if (id != NULL)
        answer_task(call, id, "complete", call->modern);
}

void rv__mcp_tasks_update(struct rv__mcp_call *call)
{
    const char *id = task_id(call);
    struct rv__str responses;
    struct rv__mcp_doc run;
    if (id == NULL)
        return;
    if (!rv__json_get(call->params, "inputResponses", &responses)) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`inputResponses` is missing: an object");
        return;
    }
    rv__mcp_ask_run(call, id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status != 200) {
        refuse_task(call, id, &run);
    } else if (rv__mcp_take_inputs(call, id, responses)) {
        rv__mcp_result(call, "complete");
        rv__mcp_result_end(call);
    }
    rv__mcp_doc_done(&run);
}

void rv__mcp_tasks_cancel(struct rv__mcp_call *call)
{
    const char *id = task_id(call);
    struct rv__buf path;
    struct rv__mcp_doc run, doc;
    if (id == NULL)
        return;
    rv__mcp_ask_run(call, id, "?results=0", RV__MCP_READ_BYTES, &run);
    bool over = run.status == 200 && !rv__str_none(run.body) && rv__mcp_has_ended(run.body);
    rv__mcp_doc_done(&run);
    if (over && !call->modern) { /* since 2026-07-28 this is no error */
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "the task '%s' has ended", id);
        return;
    }
    rv__buf_init(&path, PATH_BYTES);
    rv__buf_fmt(&path, "/api/v1/runs/%s/cancel", id);
    rv__mcp_ask(call, "POST", &path, (struct rv__str)RV__STR("{}"), RV__MCP_READ_BYTES, &doc);
    if (doc.status != 200) {
        refuse_task(call, id, &doc);
    } else if (call->modern) {
        rv__mcp_result(call, "complete");
        rv__mcp_result_end(call);
    } else {
        answer_task(call, id, "complete", false);
    }
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
}

static void put_listed(struct rv__mcp_call *call, struct rv__str run, const char *run_id)
{
    rv__buf_text(&call->out, "{\"_meta\":{}");
    put_task(call, run_id, run, status_of(run));
    rv__buf_char(&call->out, '}');
}

void rv__mcp_tasks_list(struct rv__mcp_call *call)
{
    rv__mcp_list_runs(call, "tasks", put_listed);
}

void rv__mcp_tasks_result(struct rv__mcp_call *call)
{
    const char *id = task_id(call);
    struct rv__mcp_doc run;
    if (id == NULL)
        return;
    rv__mcp_ask_run(call, id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status != 200)
        refuse_task(call, id, &run);
    else
        rv__mcp_wait(call, RV__MCP_WAITS_TASK, id, RV__MCP_WAIT_MOST_MS);
    rv__mcp_doc_done(&run);
}
