/* by_http.c: an MCP server at an address: a message is a request, and its answer a message or a stream of them.
 *
 * In the revisions of 2025 a stream may end before its answer has come, and say where it was: then the rest is asked
 * for with GET. A stream of a server's own notices (ASK_STREAM) is asked for so from the beginning. */
#include <stdio.h>
#include <strings.h>

#include "agent/server.h"
#include "base/alloc.h"

enum {
    HEADERS = 16,            /* of ours */
    MOST_RESUMES_MS = 60000, /* the longest that a server may make us wait for the rest */
    RESUME_MS = 1000,        /* where it does not say */
    SESSION_BYTES = 1024,
};

/* The value of a header; none: it is not there. */
static struct rv__str header_of(struct rv__str head, const char *name)
{
    size_t len = strlen(name);
    while (head.len > 0) {
        const char *end = memchr(head.at, '\n', head.len);
        size_t line = end != NULL ? (size_t)(end - head.at) + 1 : head.len;
        if (line > len && strncasecmp(head.at, name, len) == 0 && head.at[len] == ':') {
            struct rv__str value = { head.at + len + 1, line - len - 1 };
            while (value.len > 0 && strchr(" \t\r\n", value.at[value.len - 1]) != NULL)
                value.len--;
            while (value.len > 0 && strchr(" \t", *value.at) != NULL)
                value = (struct rv__str){ value.at + 1, value.len - 1 };
            return value;
        }
        head = (struct rv__str){ head.at + line, head.len - line };
    }
    return (struct rv__str){ NULL, 0 };
}

static bool is_stream(struct rv__str head)
{
    static const char type[] = "text/event-stream";
    struct rv__str value = header_of(head, "Content-Type");
    return value.len >= sizeof type - 1 && strncasecmp(value.at, type, sizeof type - 1) == 0;
}

/* --------------------------------------------------------------------------------- received --- */

static void take_event(void *arg, struct rv__str data)
{
    struct rv__tool_request *r = arg;
    rv__tool_received(r->server, r, data);
}

/* A session begins with the answer to `initialize`. */
static void keep_session(struct rv__tool_server *s, struct rv__str head)
{
    struct rv__str id = header_of(head, "Mcp-Session-Id");
    bool good = id.len > 0 && id.len < SESSION_BYTES;
    for (size_t i = 0; good && i < id.len; i++)
        good = id.at[i] > ' ' && id.at[i] <= '~';
    rv__free(s->session);
    s->session = good ? rv__alloc(id.len + 1) : NULL;
    if (s->session != NULL)
        snprintf(s->session, id.len + 1, "%.*s", RV__ARG(id));
}

static bool received(struct rv__fetch *fetch, struct rv__str head, struct rv__str bytes)
{
    struct rv__tool_request *r = RV__CONTAINER(fetch, struct rv__tool_request, fetch);
    if (bytes.len == 0) { /* the head */
        if ((r->ask == ASK_STREAM || r->ask == ASK_LISTEN) && !r->ended)
            rv__tool_greeting_streams(r->server);
        return !r->ended;
    }
    if (!r->typed) {
        r->typed = true;
        r->streams = is_stream(head);
        if (r->ask == ASK_INITIALIZE && !r->ended)
            keep_session(r->server, head);
    }
    if (r->ended) /* it is answered, or nobody waits for it */
        return false;
    if (r->streams)
        return rv__sse_add(&r->sse, bytes, take_event, r) == RV_OK && !r->ended;
    rv__buf_str(&r->body, bytes);
    return r->body.rc == RV_OK;
}

static void resume(struct rv__alarm *alarm)
{
    struct rv__tool_request *r = RV__CONTAINER(alarm, struct rv__tool_request, alarm);
    if (rv__by_http_send(r) < 0)
        rv__tool_unanswered(r, true, "its answer could not be asked for");
}

/* The stream has ended, and its answer has not come: is there a way to come back to it? */
static bool may_resume(const struct rv__tool_request *r)
{
    return r->server->era == ERA_HANDSHAKE && r->streams && r->sse.id.len > 0;
}

static void schedule_resume(struct rv__tool_request *r)
{
    int64_t wait = r->sse.retry_ms >= 0 ? r->sse.retry_ms : RESUME_MS;
    r->resumes = true;
    r->alarm.ring = resume;
    if (rv__io_alarm(r->server->io, &r->alarm, wait < MOST_RESUMES_MS ? wait : MOST_RESUMES_MS) < 0)
        rv__tool_unanswered(r, true, "out of memory");
}

static void fetched(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    struct rv__tool_request *r = RV__CONTAINER(fetch, struct rv__tool_request, fetch);
    struct rv__tool_server *s = r->server;
    bool good = result->end == RV__FETCH_ANSWERED && result->status >= 200 && result->status < 300;
    char why[500];
    if (good && !r->ended && !r->streams && r->body.len > 0)
        rv__tool_received(s, r, rv__buf_view(&r->body));
    r->fetching = false; /* until here it may be over, but is there */
    if (r->ended || r->ask == ASK_NOTICE) {
        bool greets = r->greets && !r->ended;
        rv__tool_request_free(r);
        if (greets)
            rv__tool_greeting_acknowledged(s);
        return;
    }
    if (rv__tool_question_has_result(r))
        return; /* it stays until its step comes for it */
    if (result->end == RV__FETCH_ANSWERED && !good && rv__tool_refused(r, result))
        return;
    if ((good || (r->streams && result->end == RV__FETCH_DROPPED)) && may_resume(r)) {
        schedule_resume(r);
        return;
    }
    if (result->end != RV__FETCH_ANSWERED)
        snprintf(why, sizeof why, "%.400s", result->error);
    else if (!good)
        snprintf(why, sizeof why, "it answered with status %d: %.*s", result->status,
                 (int)(result->body.len < 200 ? result->body.len : 200), result->body.at);
    else
        snprintf(why, sizeof why, "its answer has no message for the request in it");
    bool sent = good || result->end == RV__FETCH_DROPPED || result->end == RV__FETCH_TIMEOUT ||
                result->end == RV__FETCH_TOO_LARGE || result->end == RV__FETCH_BAD_ANSWER ||
                result->status >= 500;
    if (result->end == RV__FETCH_CANCELLED)
        snprintf(why, sizeof why, "the engine closes");
    rv__tool_unanswered(r, sent, why);
}

/* ------------------------------------------------------------------------------------- send --- */

static bool add(struct rv__tool_request *r, const char **lines, size_t *count, const char *name,
                struct rv__str value)
{
    lines[*count] = rv__rpc_header(&r->arena, name, value);
    return lines[(*count)++] != NULL;
}

/* What the message says of itself in headers. Its text is ours: it is checked. */
static bool add_message(struct rv__tool_request *r, const char **lines, size_t *count)
{
    struct rv__str text = rv__buf_view(&r->text), value, params = { NULL, 0 }, word;
    const char *const named[] = { "name", "taskId" };
    bool good = true;
    if (r->server->era == ERA_HANDSHAKE)
        return true;
    (void)rv__json_get(text, "params", &params);
    if (rv__json_get(text, "method", &value) && rv__json_string(value, &r->arena, &word) == RV_OK)
        good = add(r, lines, count, "Mcp-Method", word);
    for (size_t i = 0; good && i < 2; i++)
        if (!rv__str_none(params) && rv__json_get(params, named[i], &value) &&
            rv__json_string(value, &r->arena, &word) == RV_OK)
            good = add(r, lines, count, "Mcp-Name", word);
    return good;
}

static int take_headers(struct rv__tool_request *r)
{
    struct rv__tool_server *s = r->server;
    size_t own = 0, count = 0;
    bool gets = r->ask == ASK_STREAM || r->resumes, good = true;
    while (s->headers[own] != NULL)
        own++;
    const char **lines = rv__arena_zalloc(&r->arena, own + HEADERS + RV__RPC_PARAM_HEADERS,
                                          sizeof *lines);
    if (lines == NULL)
        return RV_ENOMEM;
    for (; count < own; count++)
        lines[count] = s->headers[count];
    lines[count++] = gets ? "Accept: text/event-stream"
                          : "Accept: application/json, text/event-stream";
    if (!gets)
        lines[count++] = "Content-Type: application/json";
    if (s->revision[0] != '\0')
        good = add(r, lines, &count, "MCP-Protocol-Version", rv__str(s->revision));
    if (good && s->session != NULL)
        good = add(r, lines, &count, "Mcp-Session-Id", rv__str(s->session));
    if (good && gets && r->sse.id.len > 0)
        good = add(r, lines, &count, "Last-Event-ID", rv__buf_view(&r->sse.id));
    if (good && !gets)
        good = add_message(r, lines, &count);
    if (good && r->ask == ASK_CALL && r->call != NULL && s->era == ERA_STATELESS) {
        int more = rv__rpc_param_headers(rv__tool_schema(s, r->call->name), r->call->arguments,
                                         &r->arena, lines + count, NULL);
        good = more >= 0;
    }
    r->fetch.headers = lines;
    return good ? RV_OK : RV_ENOMEM;
}

int rv__by_http_send(struct rv__tool_request *r)
{
    bool gets = r->ask == ASK_STREAM || r->resumes;
    rv__arena_reset(&r->arena);
    r->typed = r->streams = false;
    if (!r->resumes)
        r->session_number = r->server->session_number;
    r->fetch = (struct rv__fetch){ .url = r->server->url,
                                   .method = gets ? "GET" : "POST",
                                   .body = gets ? (struct rv__str){ NULL, 0 }
                                                : rv__buf_view(&r->text),
                                   .trusted = true,
                                   .received = received,
                                   .done = fetched };
    int rc = take_headers(r);
    if (rc == RV_OK)
        rc = rv__fetch_start(r->server->io, &r->fetch);
    r->fetching = rc == RV_OK;
    return rc;
}
