/* greeting.c: what a server is asked before the first call: which revision it speaks, and its list of tools.
 *
 *   server/discover ──it speaks 2026-07-28────────────────────────────▶ its stream ──▶ tools/list, page by page ──▶ up
 *          └─refused, or by pipes no answer in time──▶ initialize ──▶ notifications/initialized ──┘
 *
 * The order of the last three matters: ADR 0072. */
#include <stdio.h>

#include "agent/server.h"
#include "base/alloc.h"
#include "base/clock.h"

enum {
    GREETING_MS = 120000, /* from its start to its list of tools: some install themselves first */
    PROBE_MS =
        10000, /* for an answer to `server/discover` by pipes; then `initialize` is sent, too */
    STREAM_MS = 10000, /* for its stream to open; then the rest is asked without */
    PAGES_MAX = 100,   /* of a list of tools */
};

/* The older two differ in nothing that a client of tools would notice. */
const char *const rv__tool_handshakes[] = { "2025-11-25", "2025-06-18", "2025-03-26",
                                            "2024-11-05" };
enum { HANDSHAKES = sizeof rv__tool_handshakes / sizeof *rv__tool_handshakes };

static const struct rv__str none = { NULL, 0 };

static bool has_revision(struct rv__str array, const char *revision)
{
    struct rv__json_iter it;
    struct rv__str item;
    if (rv__str_none(array))
        return false;
    rv__json_iter_init(&it, array);
    while (rv__json_next(&it, NULL, &item))
        if (rv__json_type(item) == RV__JSON_STRING && rv__json_string_is(item, rv__str(revision)))
            return true;
    return false;
}

static bool has_handshake_revision(struct rv__str array)
{
    for (size_t i = 0; i < HANDSHAKES; i++)
        if (has_revision(array, rv__tool_handshakes[i]))
            return true;
    return false;
}

static void read_capabilities(struct rv__tool_server *s, struct rv__str result)
{
    struct rv__str tools = rv__rpc_member(rv__rpc_member(result, "capabilities", RV__JSON_OBJECT),
                                          "tools", RV__JSON_OBJECT);
    s->notifies_changes = !rv__str_none(rv__rpc_member(tools, "listChanged", RV__JSON_TRUE));
    struct rv__str tasks = rv__rpc_member(rv__rpc_member(result, "capabilities", RV__JSON_OBJECT),
                                          "tasks", RV__JSON_OBJECT);
    tasks = rv__rpc_member(rv__rpc_member(tasks, "requests", RV__JSON_OBJECT), "tools",
                           RV__JSON_OBJECT);
    s->has_tasks = !rv__str_none(rv__rpc_member(tasks, "call", RV__JSON_OBJECT));
}

static void greeting_timed_out(struct rv__alarm *alarm)
{
    rv__tool_server_lost(RV__CONTAINER(alarm, struct rv__tool_server, greeting_limit),
                         "it did not say in two minutes what it speaks and which tools it has");
}

void rv__tool_greeting_enter(struct rv__tool_server *s)
{
    s->state = SERVER_GREETING;
    s->greeting_limit.ring = greeting_timed_out;
    (void)rv__io_alarm(s->io, &s->greeting_limit,
                       GREETING_MS); /* without it a silent server is waited for */
}

void rv__tool_greeting_initialize(struct rv__tool_server *s)
{
    s->era = ERA_HANDSHAKE;
    s->revision[0] = '\0';
    if (rv__tool_request_send(s, ASK_INITIALIZE, NULL, none) == NULL)
        rv__tool_server_lost(s, "it could not be asked to initialize");
}

/* It has not answered `server/discover`: one of the old ones may never do so. */
static void probe_timed_out(struct rv__alarm *alarm)
{
    struct rv__tool_request *r = RV__CONTAINER(alarm, struct rv__tool_request, alarm);
    rv__tool_greeting_initialize(r->server);
}

void rv__tool_greeting_begin(struct rv__tool_server *s)
{
    if (s->era == ERA_HANDSHAKE) {
        rv__tool_greeting_initialize(s);
        return;
    }
    snprintf(s->revision, sizeof s->revision, "%s", RV__TOOL_STATELESS);
    struct rv__tool_request *r = rv__tool_request_send(s, ASK_DISCOVER, NULL, none);
    if (r == NULL) {
        rv__tool_server_lost(s, "it could not be asked what it speaks");
        return;
    }
    r->alarm.ring = probe_timed_out;
    if (s->url == NULL)
        (void)rv__io_alarm(s->io, &r->alarm,
                           PROBE_MS); /* without it a silent server is waited for */
}

static void request_list(struct rv__tool_server *s)
{
    s->list_stale = false; /* a change from now on is one of the list that is being read */
    s->page = s->tool_count = 0;
    rv__buf_reset(&s->pages);
    rv__buf_char(&s->pages, '[');
    if (rv__tool_request_send(s, ASK_LIST, NULL, none) == NULL)
        rv__tool_server_lost(s, "it could not be asked for its tools");
}

void rv__tool_greeting_streams(struct rv__tool_server *s)
{
    if (s->state != SERVER_GREETING || !s->opens_stream)
        return;
    s->opens_stream = false;
    request_list(s);
}

static void stream_timed_out(struct rv__alarm *alarm)
{
    rv__tool_greeting_streams(RV__CONTAINER(alarm, struct rv__tool_request, alarm)->server);
}

/* By pipes the servers of 2025 notify without being asked to. */
static bool notifies_unasked(const struct rv__tool_server *s)
{
    return s->url == NULL && s->era == ERA_HANDSHAKE;
}

/* Ask to be notified when its tools change. In the revisions of 2025 questions may come by the same stream. By HTTP
 * nothing else is asked until the stream is open: what a server sends before that is lost. */
static void listen_for_changes(struct rv__tool_server *s)
{
    bool by_stream = s->url != NULL && s->era == ERA_HANDSHAKE;
    if ((!s->notifies_changes && (!by_stream || s->no_stream)) || s->listens || notifies_unasked(s))
        return;
    struct rv__tool_request *r = rv__tool_request_send(s, by_stream ? ASK_STREAM : ASK_LISTEN, NULL,
                                                       none);
    s->listens = r != NULL;
    if (r == NULL || s->url == NULL)
        return;
    r->alarm.ring = stream_timed_out;
    s->opens_stream = rv__io_alarm(s->io, &r->alarm, STREAM_MS) == RV_OK;
}

void rv__tool_greeting_read_list(struct rv__tool_server *s)
{
    rv__tool_greeting_enter(s);
    s->opens_stream = false;
    listen_for_changes(s); /* first: a change after the list was read must be heard of */
    if (!s->opens_stream)
        request_list(s);
}

static void become_ready(struct rv__tool_server *s, int64_t ttl_ms)
{
    rv__buf_char(&s->pages, ']');
    if (s->pages.rc != RV_OK) {
        rv__tool_server_lost(s, "its list of tools is too long");
        return;
    }
    rv__buf_reset(&s->tools);
    rv__buf_str(&s->tools, rv__buf_view(&s->pages));
    rv__buf_reset(&s->pages);
    if (s->tools.rc != RV_OK) {
        rv__tool_server_lost(s, "there is no memory for its list of tools");
        return;
    }
    /* One that changes whenever it is read is read again later, not for ever. */
    bool restless = s->list_stale && s->changed_in_reading;
    bool notifies = s->notifies_changes && (s->listens || notifies_unasked(s)) && !restless;
    s->changed_in_reading = s->list_stale && !restless;
    s->list_stale = s->changed_in_reading;
    s->list_expires_ms = notifies ? 0
                                  : rv__mono_ms(rv__clock_real()) +
                                        (ttl_ms > RV__TOOL_LIST_MS ? ttl_ms : RV__TOOL_LIST_MS);
    s->state = SERVER_UP;
    rv__io_alarm_off(s->io, &s->greeting_limit);
    s->failures = 0;
    s->renewed = false;
    rv__tool_server_flush(s);
}

void rv__tool_greeting_discovered(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    struct rv__tool_request *other = rv__tool_request_of_kind(s, ASK_INITIALIZE);
    struct rv__str supported = rpc->kind == RPC_RESULT
                                   ? rv__rpc_member(rpc->result, "supportedVersions",
                                                    RV__JSON_ARRAY)
                                   : rv__rpc_member(rpc->data, "supported", RV__JSON_ARRAY);
    if (rpc->kind == RPC_RESULT && has_revision(supported, RV__TOOL_STATELESS)) {
        if (other != NULL) /* sent because this answer came late */
            rv__tool_request_end(other);
        s->era = ERA_STATELESS;
        snprintf(s->revision, sizeof s->revision, "%s", RV__TOOL_STATELESS);
        read_capabilities(s, rpc->result);
        rv__tool_greeting_read_list(s);
    } else if (other != NULL) {
        return; /* `initialize` was sent already */
    } else if (rpc->kind == RPC_ERROR && rpc->code == RV__RPC_VERSION &&
               has_revision(supported, RV__TOOL_STATELESS) && !s->asked_again) {
        s->asked_again = true; /* it refuses what it says that it supports: once more */
        rv__tool_greeting_begin(s);
    } else if (rpc->kind == RPC_ERROR && rpc->code == RV__RPC_VERSION &&
               !has_handshake_revision(supported)) {
        rv__tool_server_lost(s, "it speaks no revision of MCP that is spoken here");
    } else {
        rv__tool_greeting_initialize(s);
    }
}

void rv__tool_greeting_initialized(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    char why[RV__RPC_ERROR_TEXT + 60], words[RV__RPC_ERROR_TEXT];
    struct rv__tool_request *other = rv__tool_request_of_kind(s, ASK_DISCOVER);
    struct rv__str version = rv__rpc_member(rpc->result, "protocolVersion", RV__JSON_STRING);
    size_t i = 0;
    if (rpc->kind == RPC_ERROR) {
        rv__rpc_error_text(rpc, words, sizeof words);
        snprintf(why, sizeof why, "it refused to initialize: %s", words);
        rv__tool_server_lost(s, why);
        return;
    }
    while (i < HANDSHAKES && !rv__str_none(version) &&
           !rv__json_string_is(version, rv__str(rv__tool_handshakes[i])))
        i++;
    if (i == HANDSHAKES || rv__str_none(version)) {
        rv__tool_server_lost(s, "it speaks no revision of MCP that is spoken here");
        return;
    }
    if (other != NULL)
        rv__tool_request_end(other);
    snprintf(s->revision, sizeof s->revision, "%s", rv__tool_handshakes[i]);
    read_capabilities(s, rpc->result);
    struct rv__tool_request *notice = rv__tool_notify(
        s, rv__str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
    if (notice != NULL)
        notice->greets = true;
    else
        rv__tool_greeting_read_list(s);
}

void rv__tool_greeting_acknowledged(struct rv__tool_server *s)
{
    if (s->state == SERVER_GREETING)
        rv__tool_greeting_read_list(s);
}

/* One of the list, as it came; those that nobody could call are left out. */
static void add_tool(struct rv__tool_server *s, struct rv__str tool)
{
    struct rv__str name = rv__rpc_member(tool, "name", RV__JSON_STRING);
    struct rv__str schema = rv__rpc_member(tool, "inputSchema", RV__JSON_OBJECT);
    if (rv__str_none(name) || name.len > RV__TOOL_NAME || s->tool_count == RV__TOOLS_MAX)
        return;
    if (s->url != NULL && s->era == ERA_STATELESS && !rv__str_none(schema) &&
        rv__rpc_bad_headers(schema) != NULL)
        return;
    rv__buf_text(&s->pages, s->tool_count++ > 0 ? "," : "");
    rv__buf_str(&s->pages, tool);
}

void rv__tool_greeting_listed(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    char why[RV__RPC_ERROR_TEXT + 60], words[RV__RPC_ERROR_TEXT];
    struct rv__json_iter it;
    struct rv__str tool, ttl, cursor;
    int64_t ttl_ms = 0;
    if (rpc->kind == RPC_ERROR && rpc->code != RV__RPC_NO_METHOD) {
        rv__rpc_error_text(rpc, words, sizeof words);
        snprintf(why, sizeof why, "it does not tell its tools: %s", words);
        rv__tool_server_lost(s, why);
        return;
    }
    struct rv__str list = rv__rpc_member(rpc->result, "tools", RV__JSON_ARRAY);
    if (!rv__str_none(list)) {
        rv__json_iter_init(&it, list);
        while (rv__json_next(&it, NULL, &tool))
            if (rv__json_type(tool) == RV__JSON_OBJECT)
                add_tool(s, tool);
    }
    cursor = rv__rpc_member(rpc->result, "nextCursor", RV__JSON_STRING);
    if (!rv__str_none(cursor) && ++s->page < PAGES_MAX) {
        if (rv__tool_request_send(s, ASK_LIST, NULL, cursor) == NULL)
            rv__tool_server_lost(s, "it could not be asked for more of its tools");
        return;
    }
    ttl = rv__rpc_member(rpc->result, "ttlMs", RV__JSON_NUMBER);
    if (!rv__str_none(ttl) && (rv__json_int(ttl, &ttl_ms) < 0 || ttl_ms > INT32_MAX))
        ttl_ms = 0;
    become_ready(s, ttl_ms);
}
