/* request.c: the messages that we send to an MCP server, and the list of those that wait for an answer.
 *
 * A request is in its server's list from when it is sent until it ends. By HTTP it ends when its connection has,
 * which may be later than its answer: `ended` says that nothing more is expected of it. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/server.h"
#include "base/alloc.h"

static const struct rv__str none = { NULL, 0 };

static struct rv__tool_request *request_new(struct rv__tool_server *s, enum rv__tool_ask ask)
{
    struct rv__tool_request *r = rv__zalloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->server = s;
    r->ask = ask;
    r->id = ++s->last_id;
    rv__buf_init(&r->text, RV__RPC_BYTES);
    rv__buf_init(&r->body, RV__RPC_BYTES);
    rv__buf_init(&r->question, RV__RPC_BYTES);
    rv__buf_init(&r->answer, RV__RPC_BYTES);
    rv__arena_init(&r->arena, RV__RPC_BYTES);
    rv__sse_init(&r->sse);
    rv__chain_add(&s->requests, &r->listed);
    return r;
}

void rv__tool_request_free(struct rv__tool_request *r)
{
    rv__chain_remove(&r->server->requests, &r->listed);
    rv__buf_done(&r->text);
    rv__buf_done(&r->body);
    rv__buf_done(&r->question);
    rv__buf_done(&r->answer);
    rv__free(r->key);
    rv__arena_done(&r->arena);
    rv__sse_done(&r->sse);
    rv__free(r);
}

void rv__tool_request_end(struct rv__tool_request *r)
{
    struct rv__tool_server *s = r->server;
    if (r->ended)
        return;
    r->ended = true;
    if (r->call != NULL)
        r->call->own.request = NULL;
    r->call = NULL;
    if (r->ask == ASK_LISTEN || r->ask == ASK_STREAM)
        s->listens = false;
    rv__io_alarm_off(s->io, &r->alarm);
    rv__io_alarm_off(s->io, &r->late);
    if (r->fetching)
        rv__fetch_cancel(s->io, &r->fetch);
    else
        rv__tool_request_free(r);
}

struct rv__tool_request *rv__tool_request_of_kind(const struct rv__tool_server *s,
                                                  enum rv__tool_ask ask)
{
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if (r->ask == ask && !r->ended)
            return r;
    }
    return NULL;
}

struct rv__tool_request *rv__tool_request_of_id(const struct rv__tool_server *s, int64_t id)
{
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if (r->id == id && !r->ended)
            return r;
    }
    return NULL;
}

static void put_client_info(struct rv__buf *out)
{
    rv__buf_text(out, "{\"name\":\"rival\",\"version\":\"" RV_VERSION "\"}");
}

static void put_capabilities(struct rv__buf *out, bool stateless)
{
    rv__buf_text(out, "{\"elicitation\":{\"form\":{},\"url\":{}}");
    if (stateless)
        rv__buf_text(out, ",\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    rv__buf_char(out, '}');
}

/* "_meta":{…}: of every request, since 2026-07-28; before that for its progress. */
static void put_meta(struct rv__tool_request *r)
{
    struct rv__buf *out = &r->text;
    const char *comma = "";
    rv__buf_text(out, "\"_meta\":{");
    if (r->server->era != ERA_HANDSHAKE) {
        rv__buf_text(out, "\"io.modelcontextprotocol/protocolVersion\":\"" RV__TOOL_STATELESS "\","
                          "\"io.modelcontextprotocol/clientInfo\":");
        put_client_info(out);
        rv__buf_text(out, ",\"io.modelcontextprotocol/clientCapabilities\":");
        put_capabilities(out, true);
        comma = ",";
    }
    if (r->ask == ASK_CALL)
        rv__buf_fmt(out, "%s\"progressToken\":%" PRId64, comma, r->id);
    rv__buf_char(out, '}');
}

/* One of its tools; none: it is not in the list. */
static struct rv__str find_tool(const struct rv__tool_server *s, struct rv__str tool)
{
    struct rv__json_iter it;
    struct rv__str item, name;
    rv__json_iter_init(&it, s->tools.len > 0 ? rv__buf_view(&s->tools) : rv__str("[]"));
    while (rv__json_next(&it, NULL, &item)) {
        name = rv__rpc_member(item, "name", RV__JSON_STRING);
        if (!rv__str_none(name) && rv__json_string_is(name, tool))
            return item;
    }
    return none;
}

/* May this tool be called as a task? In 2025-11-25 the client says that it wants one. */
static bool may_be_task(const struct rv__tool_server *s, struct rv__str tool)
{
    struct rv__str execution = rv__rpc_member(find_tool(s, tool), "execution", RV__JSON_OBJECT);
    struct rv__str support = rv__rpc_member(execution, "taskSupport", RV__JSON_STRING);
    return s->has_tasks && s->era == ERA_HANDSHAKE && !rv__str_none(support) &&
           (rv__json_string_is(support, rv__str("optional")) ||
            rv__json_string_is(support, rv__str("required")));
}

struct rv__str rv__tool_schema(const struct rv__tool_server *s, struct rv__str tool)
{
    return rv__rpc_member(find_tool(s, tool), "inputSchema", RV__JSON_OBJECT);
}

/* 2026-07-28: the answers of people, and the state that the server wants back. */
static void put_answers(struct rv__buf *out, const struct rv__tool_call *call)
{
    if (call->own.answers.len > 0 && !rv__str_none(call->own.note.at)) {
        rv__buf_text(out, "\"inputResponses\":{");
        rv__buf_str(out, rv__buf_view(&call->own.answers));
        rv__buf_text(out, "},");
    }
    if (!rv__str_none(call->own.note.state)) {
        rv__buf_text(out, "\"requestState\":");
        rv__buf_str(out, call->own.note.state);
        rv__buf_char(out, ',');
    }
}

static void put_params(struct rv__tool_request *r, struct rv__str cursor)
{
    struct rv__buf *out = &r->text;
    switch (r->ask) {
    case ASK_DISCOVER: put_meta(r); break;
    case ASK_INITIALIZE:
        rv__buf_fmt(out, "\"protocolVersion\":\"%s\",\"clientInfo\":", rv__tool_handshakes[0]);
        put_client_info(out);
        rv__buf_text(out, ",\"capabilities\":");
        put_capabilities(out, false);
        break;
    case ASK_LIST:
        put_meta(r);
        if (!rv__str_none(cursor)) {
            rv__buf_text(out, ",\"cursor\":");
            rv__buf_str(out, cursor);
        }
        break;
    case ASK_CALL:
        rv__buf_text(out, "\"name\":");
        rv__buf_json_str(out, r->call->name);
        rv__buf_text(out, ",\"arguments\":");
        rv__buf_str(out, r->call->arguments);
        rv__buf_char(out, ',');
        if (!rv__str_none(r->call->key) && may_be_task(r->server, r->call->name))
            rv__buf_text(out, "\"task\":{},");
        put_answers(out, r->call);
        put_meta(r);
        break;
    case ASK_TASK_GET:
    case ASK_TASK_RESULT:
    case ASK_TASK_UPDATE:
    case ASK_TASK_CANCEL:
        rv__buf_text(out, "\"taskId\":");
        rv__buf_str(out, r->call->own.note.task);
        rv__buf_char(out, ',');
        if (r->ask == ASK_TASK_UPDATE)
            put_answers(out, r->call);
        put_meta(r);
        break;
    case ASK_LISTEN:
        rv__buf_text(out, "\"notifications\":{\"toolsListChanged\":true},");
        put_meta(r);
        break;
    case ASK_STREAM:
    case ASK_NOTICE: break;
    }
}

static int transmit(struct rv__tool_request *r)
{
    int rc = rv__buf_err(&r->text, NULL);
    if (rc < 0)
        return rc;
    return r->server->url != NULL ? rv__by_http_send(r)
                                  : rv__by_pipe_send(r->server, rv__buf_view(&r->text));
}

struct rv__tool_request *rv__tool_request_send(struct rv__tool_server *s, enum rv__tool_ask what,
                                               struct rv__tool_call *call, struct rv__str cursor)
{
    static const char *const methods[] = { [ASK_DISCOVER] = "server/discover",
                                           [ASK_INITIALIZE] = "initialize",
                                           [ASK_LIST] = "tools/list",
                                           [ASK_CALL] = "tools/call",
                                           [ASK_TASK_GET] = "tasks/get",
                                           [ASK_TASK_RESULT] = "tasks/result",
                                           [ASK_TASK_UPDATE] = "tasks/update",
                                           [ASK_TASK_CANCEL] = "tasks/cancel",
                                           [ASK_LISTEN] = "subscriptions/listen",
                                           [ASK_STREAM] = "",
                                           [ASK_NOTICE] = "" };
    struct rv__tool_request *r = request_new(s, what);
    if (r == NULL)
        return NULL;
    r->call = call;
    rv__buf_fmt(&r->text, "{\"jsonrpc\":\"2.0\",\"id\":%" PRId64 ",\"method\":\"%s\",\"params\":{",
                r->id, methods[what]);
    put_params(r, cursor);
    rv__buf_text(&r->text, "}}");
    if (transmit(r) < 0) {
        rv__tool_request_free(r);
        return NULL;
    }
    return r;
}

struct rv__tool_request *rv__tool_notify(struct rv__tool_server *s, struct rv__str message)
{
    if (s->url == NULL) {
        (void)rv__by_pipe_send(s, message);
        return NULL;
    }
    struct rv__tool_request *r = request_new(s, ASK_NOTICE);
    if (r == NULL)
        return NULL;
    rv__buf_str(&r->text, message);
    if (transmit(r) == RV_OK)
        return r;
    rv__tool_request_free(r);
    return NULL;
}

void rv__tool_reply(struct rv__tool_server *s, struct rv__str id, struct rv__str result)
{
    struct rv__buf text;
    rv__buf_init(&text, RV__RPC_BYTES);
    rv__buf_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    rv__buf_str(&text, id);
    rv__buf_text(&text, ",\"result\":");
    rv__buf_str(&text, result);
    rv__buf_char(&text, '}');
    if (text.rc == RV_OK)
        (void)rv__tool_notify(s, rv__buf_view(&text));
    rv__buf_done(&text);
}

void rv__tool_notify_cancelled(struct rv__tool_request *r)
{
    char text[160];
    if (r->server->url != NULL && r->server->era == ERA_STATELESS)
        return; /* closing the stream says it */
    if (r->ask != ASK_CALL)
        return; /* a task is cancelled by a request of its own */
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
             "\"requestId\":%" PRId64 ",\"reason\":\"not wanted any more\"}}",
             r->id);
    (void)rv__tool_notify(r->server, rv__str(text));
}
