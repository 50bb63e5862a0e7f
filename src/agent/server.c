/* server.c: the actor of one MCP server: see server.h. Everything here is the I/O loop's thread's, but for the two
 * calls at the end. */
#include "agent/server.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    GREETING_MS = 120000, /* from its start to its list of tools: some install themselves first */
    PROBE_MS = 10000, /* for an answer to `server/discover`; then it is greeted the old way, too */
    FIRST_REST_MS = 250,  /* before a server that died is begun again; doubled each time, */
    MOST_REST_MS = 30000, /* up to this */
    FRESH_MS = 60000,     /* how long a list is good, of a server that does not tell of changes */
    PAGES_MAX = 100,      /* of a list of tools */
    WORDS = 400,          /* bytes of what a server says that goes into an error */
};

#define STATELESS "2026-07-28"
/* What else we speak, newest first. The older two differ in nothing that a client of tools would notice. */
static const char *const handshakes[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };
enum { HANDSHAKES = sizeof handshakes / sizeof *handshakes };

static const struct rv__str none = { NULL, 0 };

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* ------------------------------------------------------------------------------------ calls --- */

static void finish(struct rv__tool_server *s, struct rv__tool_call *call,
                   struct rv__tool_result *result)
{
    struct rv__buf hidden;
    rv__buf_init(&hidden, SIZE_MAX / 2); /* about as long as what came */
    rv__io_take_back(s->io, &call->own.cancel);
    if (s->mask != NULL && !rv__str_none(result->json)) {
        rv__mask_json(s->mask, result->json, &hidden);
        result->json = hidden.rc == RV_OK ? rv__buf_view(&hidden)
                                          : rv__str("\"" RV__MASK_TEXT "\"");
    } else if (s->mask != NULL) {
        rv__mask_text(s->mask, rv__str(result->error), true, &hidden);
        snprintf(result->error, sizeof result->error, "%s",
                 hidden.rc == RV_OK && hidden.text != NULL ? hidden.text : RV__MASK_TEXT);
    }
    call->done(call, result); /* from here on it may be gone */
    rv__buf_done(&hidden);
}

static void finish_badly(struct rv__tool_server *s, struct rv__tool_call *call,
                         enum rv__tool_end end, const char *why)
{
    struct rv__tool_result result = { .end = end };
    switch (end) {
    case TOOL_CANCELLED:
    case TOOL_CLOSED: snprintf(result.error, sizeof result.error, "it was cancelled"); break;
    case TOOL_LATE:
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' did not answer within %" PRId64 " ms", s->name,
                 call->timeout_ms);
        break;
    case TOOL_LOST:
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' was lost before it answered: %s", s->name, why);
        break;
    case TOOL_DOWN:
    case TOOL_ANSWERED:
    case TOOL_REFUSED:
        snprintf(result.error, sizeof result.error, "the MCP server '%s' cannot be used: %s",
                 s->name, why);
        break;
    }
    finish(s, call, &result);
}

static struct rv__tool_call *first_waiting(struct rv__tool_server *s)
{
    struct rv__link *first = s->waiting.first;
    return first != NULL ? RV__CONTAINER(first, struct rv__tool_call, own.listed) : NULL;
}

static void fail_waiting(struct rv__tool_server *s, enum rv__tool_end end, const char *why)
{
    struct rv__chain failed;
    rv__chain_init(&failed); /* those that come meanwhile wait for the next time */
    rv__chain_move(&failed, &s->waiting);
    while (failed.first != NULL) {
        struct rv__tool_call *call = RV__CONTAINER(failed.first, struct rv__tool_call, own.listed);
        rv__chain_remove(&failed, &call->own.listed);
        finish_badly(s, call, end, why);
    }
}

/* --------------------------------------------------------------------------------- requests --- */

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
    rv__arena_done(&r->arena);
    rv__sse_done(&r->sse);
    rv__free(r);
}

/* Nothing more is expected of it. By HTTP it stays until its connection has ended. */
static void settle(struct rv__tool_request *r)
{
    struct rv__tool_server *s = r->server;
    if (r->over)
        return;
    r->over = true;
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

static struct rv__tool_request *find_ask(const struct rv__tool_server *s, enum rv__tool_ask ask)
{
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if (r->ask == ask && !r->over)
            return r;
    }
    return NULL;
}

static struct rv__tool_request *find_id(const struct rv__tool_server *s, int64_t id)
{
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if (r->id == id && !r->over)
            return r;
    }
    return NULL;
}

/* ------------------------------------------------------------------------ what we have to say --- */

static void put_who(struct rv__buf *out)
{
    rv__buf_text(out, "{\"name\":\"rival\",\"version\":\"" RV_VERSION "\"}");
}

static void put_capabilities(struct rv__buf *out)
{
    rv__buf_text(out, "{}");
}

/* "_meta":{…}: of every request, since 2026-07-28; before that for its progress. */
static void put_meta(struct rv__tool_request *r)
{
    struct rv__buf *out = &r->text;
    const char *comma = "";
    rv__buf_text(out, "\"_meta\":{");
    if (r->server->era != ERA_HANDSHAKE) {
        rv__buf_text(out, "\"io.modelcontextprotocol/protocolVersion\":\"" STATELESS "\","
                          "\"io.modelcontextprotocol/clientInfo\":");
        put_who(out);
        rv__buf_text(out, ",\"io.modelcontextprotocol/clientCapabilities\":");
        put_capabilities(out);
        comma = ",";
    }
    if (r->ask == ASK_CALL) {
        rv__buf_fmt(out, "%s\"progressToken\":%" PRId64, comma, r->id);
    }
    rv__buf_char(out, '}');
}

static void put_params(struct rv__tool_request *r, struct rv__str cursor)
{
    struct rv__buf *out = &r->text;
    switch (r->ask) {
    case ASK_DISCOVER: put_meta(r); break;
    case ASK_INITIALIZE:
        rv__buf_fmt(out, "\"protocolVersion\":\"%s\",\"clientInfo\":", handshakes[0]);
        put_who(out);
        rv__buf_text(out, ",\"capabilities\":");
        put_capabilities(out);
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

/* Send a request. NULL: it could not be. */
static struct rv__tool_request *ask(struct rv__tool_server *s, enum rv__tool_ask what,
                                    struct rv__tool_call *call, struct rv__str cursor)
{
    static const char *const methods[] = { [ASK_DISCOVER] = "server/discover",
                                           [ASK_INITIALIZE] = "initialize",
                                           [ASK_LIST] = "tools/list",
                                           [ASK_CALL] = "tools/call",
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

/* Something that is not answered. NULL: it is said already, or cannot be: by pipes a server that does not read it is
 * about to end. */
static struct rv__tool_request *notify(struct rv__tool_server *s, struct rv__str message)
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

static void say_cancelled(struct rv__tool_request *r)
{
    char text[160];
    if (r->server->url != NULL && r->server->era == ERA_STATELESS)
        return; /* that the stream is closed says it */
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
             "\"requestId\":%" PRId64 ",\"reason\":\"not wanted any more\"}}",
             r->id);
    (void)notify(r->server, rv__str(text));
}

/* --------------------------------------------------------------------------------- its life --- */

static void begin(struct rv__tool_server *s);

/* Something waits: is there anything to do for it now? */
static void wake(struct rv__tool_server *s)
{
    if (s->waiting.first != NULL && s->state == SERVER_DOWN && !s->resting && !s->runs &&
        !s->closing)
        begin(s);
}

static void rested(struct rv__alarm *alarm)
{
    struct rv__tool_server *s = RV__CONTAINER(alarm, struct rv__tool_server, again);
    s->resting = false;
    wake(s);
}

static void rest(struct rv__tool_server *s)
{
    int64_t wait = FIRST_REST_MS;
    for (int i = 0; i < s->failures && wait < MOST_REST_MS; i++)
        wait *= 2;
    s->failures++;
    s->again.ring = rested;
    s->resting = rv__io_alarm(s->io, &s->again, wait < MOST_REST_MS ? wait : MOST_REST_MS) == RV_OK;
}

void rv__tool_gone(struct rv__tool_server *s, const char *why)
{
    enum rv__tool_state was = s->state;
    bool probed = find_ask(s, ASK_DISCOVER) != NULL && s->url == NULL && s->era == ERA_UNKNOWN;
    s->state = SERVER_DOWN;
    rv__io_alarm_off(s->io, &s->slow);
    rv__free(s->session);
    s->session = NULL;
    for (struct rv__link *at = s->requests.first, *next; at != NULL; at = next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        struct rv__tool_call *call = r->call;
        next = at->next;
        settle(r);
        if (call != NULL)
            finish_badly(s, call, TOOL_LOST, why);
    }
    if (s->runs)
        rv__by_pipe_end(s);
    if (was == SERVER_DOWN) { /* its process has ended at last */
        wake(s);
        return;
    }
    if (probed && !s->runs) { /* it may not have borne the question: the old way, then, at once */
        s->era = ERA_HANDSHAKE;
        wake(s);
        return;
    }
    if (was == SERVER_GREETING)
        s->era = ERA_UNKNOWN;
    rest(s);
    fail_waiting(s, TOOL_DOWN, why);
}

static void initialize(struct rv__tool_server *s)
{
    s->era = ERA_HANDSHAKE;
    s->revision[0] = '\0';
    if (ask(s, ASK_INITIALIZE, NULL, none) == NULL)
        rv__tool_gone(s, "it could not be asked to initialize");
}

/* It has not answered `server/discover`: one of the old ones may never do so. */
static void probed_long_enough(struct rv__alarm *alarm)
{
    struct rv__tool_request *r = RV__CONTAINER(alarm, struct rv__tool_request, alarm);
    initialize(r->server);
}

void rv__tool_greet(struct rv__tool_server *s)
{
    if (s->era == ERA_HANDSHAKE) {
        initialize(s);
        return;
    }
    snprintf(s->revision, sizeof s->revision, "%s", STATELESS);
    struct rv__tool_request *r = ask(s, ASK_DISCOVER, NULL, none);
    if (r == NULL) {
        rv__tool_gone(s, "it could not be asked what it speaks");
        return;
    }
    r->alarm.ring = probed_long_enough;
    if (s->url == NULL)
        (void)rv__io_alarm(s->io, &r->alarm,
                           PROBE_MS); /* without it a silent server is waited for */
}

static void too_slow(struct rv__alarm *alarm)
{
    rv__tool_gone(RV__CONTAINER(alarm, struct rv__tool_server, slow),
                  "it did not say in two minutes what it speaks and which tools it has");
}

/* It is asked about itself, which ends with `come_up` or `gone`. */
static void enter_greeting(struct rv__tool_server *s)
{
    s->state = SERVER_GREETING;
    s->slow.ring = too_slow;
    (void)rv__io_alarm(s->io, &s->slow, GREETING_MS); /* without it a silent server is waited for */
}

static void begin(struct rv__tool_server *s)
{
    enter_greeting(s);
    s->asked_again = false;
    s->stale = true;
    if (s->url != NULL) {
        rv__tool_greet(s);
        return;
    }
    int rc = rv__by_pipe_begin(s);
    if (rc < 0)
        rv__tool_gone(s, rv_strerror(rc));
}

static void read_list(struct rv__tool_server *s)
{
    enter_greeting(s);
    s->page = s->tool_count = 0;
    rv__buf_reset(&s->pages);
    rv__buf_char(&s->pages, '[');
    if (ask(s, ASK_LIST, NULL, none) == NULL)
        rv__tool_gone(s, "it could not be asked for its tools");
}

static bool is_stale(const struct rv__tool_server *s)
{
    return s->stale || (s->fresh_ms != 0 && now_ms() >= s->fresh_ms);
}

static void too_late(struct rv__alarm *alarm)
{
    struct rv__tool_request *r = RV__CONTAINER(alarm, struct rv__tool_request, late);
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    say_cancelled(r);
    settle(r);
    finish_badly(s, call, TOOL_LATE, "");
}

static void sent(struct rv__tool_call *call)
{
    struct rv__tool_request *r = call->own.request;
    r->late.ring = too_late;
    if (call->timeout_ms > 0)
        (void)rv__io_alarm(r->server->io, &r->late, call->timeout_ms); /* else it has no limit */
    if (call->begun != NULL && !call->own.again)
        call->begun(call);
}

/* All that waits is sent. */
static void flush(struct rv__tool_server *s)
{
    struct rv__tool_call *call;
    if (is_stale(s) && s->waiting.first != NULL) {
        read_list(s);
        return;
    }
    while (s->state == SERVER_UP && (call = first_waiting(s)) != NULL) {
        rv__chain_remove(&s->waiting, &call->own.listed);
        if (rv__str_none(call->name)) {
            struct rv__tool_result result = { .end = TOOL_ANSWERED,
                                              .json = rv__buf_view(&s->tools) };
            finish(s, call, &result);
            continue;
        }
        call->own.request = ask(s, ASK_CALL, call, none);
        if (call->own.request == NULL)
            finish_badly(s, call, TOOL_DOWN, "the call could not be sent to it");
        else
            sent(call);
    }
}

/* From now on it is told when its tools change. Without: the list is read again now and then. */
static void listen(struct rv__tool_server *s)
{
    bool by_stream = s->url != NULL && s->era == ERA_HANDSHAKE;
    if (!s->tells_changes || s->listens || (s->url == NULL && s->era == ERA_HANDSHAKE))
        return;
    s->listens = ask(s, by_stream ? ASK_STREAM : ASK_LISTEN, NULL, none) != NULL;
}

static void come_up(struct rv__tool_server *s, int64_t ttl_ms)
{
    rv__buf_char(&s->pages, ']');
    if (s->pages.rc != RV_OK) {
        rv__tool_gone(s, "its list of tools is too long");
        return;
    }
    rv__buf_reset(&s->tools);
    rv__buf_str(&s->tools, rv__buf_view(&s->pages));
    rv__buf_reset(&s->pages);
    if (s->tools.rc != RV_OK) {
        rv__tool_gone(s, "there is no memory for its list of tools");
        return;
    }
    s->state = SERVER_UP;
    rv__io_alarm_off(s->io, &s->slow);
    s->failures = 0;
    s->stale = false;
    s->fresh_ms = s->tells_changes ? 0 : now_ms() + (ttl_ms > FRESH_MS ? ttl_ms : FRESH_MS);
    listen(s);
    flush(s);
}

/* ---------------------------------------------------------------------------------- answers --- */

static bool lists(struct rv__str array, const char *revision)
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

static bool lists_handshake(struct rv__str array)
{
    for (size_t i = 0; i < HANDSHAKES; i++)
        if (lists(array, handshakes[i]))
            return true;
    return false;
}

static void take_capabilities(struct rv__tool_server *s, struct rv__str result)
{
    struct rv__str tools = rv__rpc_member(rv__rpc_member(result, "capabilities", RV__JSON_OBJECT),
                                          "tools", RV__JSON_OBJECT);
    s->tells_changes = !rv__str_none(rv__rpc_member(tools, "listChanged", RV__JSON_TRUE));
}

/* What the server said, as a sentence. */
static void words_of(const struct rv__rpc *rpc, char *text, size_t room)
{
    struct rv__str message = rpc->message;
    if (message.len >= 2) /* without its quotes; escapes stay */
        message = (struct rv__str){ message.at + 1, message.len - 2 };
    else
        message = rv__str("no reason given");
    snprintf(text, room, "%.*s (code %" PRId64 ")",
             (int)(message.len < WORDS ? message.len : WORDS), message.at, rpc->code);
}

static void take_discovered(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    struct rv__tool_request *other = find_ask(s, ASK_INITIALIZE);
    struct rv__str supported = rpc->kind == RPC_RESULT
                                   ? rv__rpc_member(rpc->result, "supportedVersions",
                                                    RV__JSON_ARRAY)
                                   : rv__rpc_member(rpc->data, "supported", RV__JSON_ARRAY);
    if (rpc->kind == RPC_RESULT && lists(supported, STATELESS)) {
        if (other != NULL) /* it was late */
            settle(other);
        s->era = ERA_STATELESS;
        snprintf(s->revision, sizeof s->revision, "%s", STATELESS);
        take_capabilities(s, rpc->result);
        read_list(s);
    } else if (other != NULL) {
        return; /* the old way is being tried already */
    } else if (rpc->kind == RPC_ERROR && rpc->code == RV__RPC_VERSION &&
               lists(supported, STATELESS) && !s->asked_again) {
        s->asked_again = true; /* it refuses what it says that it supports: once more */
        rv__tool_greet(s);
    } else if (rpc->kind == RPC_ERROR && rpc->code == RV__RPC_VERSION &&
               !lists_handshake(supported)) {
        rv__tool_gone(s, "it speaks no revision of MCP that is spoken here");
    } else {
        initialize(s);
    }
}

static void take_initialized(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    char why[WORDS + 100], words[WORDS + 40];
    struct rv__tool_request *other = find_ask(s, ASK_DISCOVER);
    struct rv__str version = rv__rpc_member(rpc->result, "protocolVersion", RV__JSON_STRING);
    size_t i = 0;
    if (rpc->kind == RPC_ERROR) {
        words_of(rpc, words, sizeof words);
        snprintf(why, sizeof why, "it refused to initialize: %s", words);
        rv__tool_gone(s, why);
        return;
    }
    while (i < HANDSHAKES && !rv__str_none(version) &&
           !rv__json_string_is(version, rv__str(handshakes[i])))
        i++;
    if (i == HANDSHAKES || rv__str_none(version)) {
        rv__tool_gone(s, "it speaks no revision of MCP that is spoken here");
        return;
    }
    if (other != NULL)
        settle(other);
    snprintf(s->revision, sizeof s->revision, "%s", handshakes[i]);
    take_capabilities(s, rpc->result);
    struct rv__tool_request *notice = notify(
        s, rv__str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
    if (notice != NULL)
        notice->greets = true;
    else
        read_list(s);
}

void rv__tool_initialized(struct rv__tool_server *s)
{
    if (s->state == SERVER_GREETING)
        read_list(s);
}

/* One of the list, as it came; those that nobody could call are left out. */
static void take_tool(struct rv__tool_server *s, struct rv__str tool)
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

static void take_list(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    char why[WORDS + 100], words[WORDS + 40];
    struct rv__json_iter it;
    struct rv__str tool, ttl, cursor;
    int64_t ttl_ms = 0;
    if (rpc->kind == RPC_ERROR && rpc->code != RV__RPC_NO_METHOD) {
        words_of(rpc, words, sizeof words);
        snprintf(why, sizeof why, "it does not tell its tools: %s", words);
        rv__tool_gone(s, why);
        return;
    }
    struct rv__str list = rv__rpc_member(rpc->result, "tools", RV__JSON_ARRAY);
    if (!rv__str_none(list)) {
        rv__json_iter_init(&it, list);
        while (rv__json_next(&it, NULL, &tool))
            if (rv__json_type(tool) == RV__JSON_OBJECT)
                take_tool(s, tool);
    }
    cursor = rv__rpc_member(rpc->result, "nextCursor", RV__JSON_STRING);
    if (!rv__str_none(cursor) && ++s->page < PAGES_MAX) {
        if (ask(s, ASK_LIST, NULL, cursor) == NULL)
            rv__tool_gone(s, "it could not be asked for more of its tools");
        return;
    }
    ttl = rv__rpc_member(rpc->result, "ttlMs", RV__JSON_NUMBER);
    if (!rv__str_none(ttl) && (rv__json_int(ttl, &ttl_ms) < 0 || ttl_ms > INT32_MAX))
        ttl_ms = 0;
    come_up(s, ttl_ms);
}

static void take_called(struct rv__tool_server *s, struct rv__tool_call *call,
                        const struct rv__rpc *rpc)
{
    struct rv__tool_result result = { .end = TOOL_ANSWERED, .json = rpc->result };
    struct rv__str type = rv__rpc_member(rpc->result, "resultType", RV__JSON_STRING);
    if (rpc->kind == RPC_ERROR) {
        char words[WORDS + 40];
        words_of(rpc, words, sizeof words);
        result = (struct rv__tool_result){ .end = TOOL_REFUSED, .code = rpc->code };
        snprintf(result.error, sizeof result.error, "the MCP server '%s' refused the call: %s",
                 s->name, words);
    } else if (!rv__str_none(type) && !rv__json_string_is(type, rv__str("complete"))) {
        result = (struct rv__tool_result){ .end = TOOL_REFUSED, .code = RV__RPC_CAPABILITY };
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' answered with %.*s, which it was not asked for", s->name,
                 (int)(type.len < 60 ? type.len : 60), type.at);
    }
    finish(s, call, &result);
}

static void answered(struct rv__tool_request *r, const struct rv__rpc *rpc)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    enum rv__tool_ask what = r->ask;
    settle(r);
    switch (what) {
    case ASK_DISCOVER: take_discovered(s, rpc); break;
    case ASK_INITIALIZE: take_initialized(s, rpc); break;
    case ASK_LIST: take_list(s, rpc); break;
    case ASK_CALL:
        if (call != NULL)
            take_called(s, call, rpc);
        break;
    case ASK_LISTEN: /* it does not, or not any more */
    case ASK_STREAM: s->stale = true; break;
    case ASK_NOTICE: break;
    }
}

/* ------------------------------------------------------------------- what they have to say --- */

static void take_notification(struct rv__tool_server *s, struct rv__tool_request *of,
                              const struct rv__rpc *rpc)
{
    int64_t id = -1;
    if (rv__json_string_is(rpc->method, rv__str("notifications/tools/list_changed"))) {
        s->stale = true;
    } else if (rv__json_string_is(rpc->method, rv__str("notifications/progress"))) {
        struct rv__str token = rv__rpc_member(rpc->params, "progressToken", RV__JSON_NUMBER);
        if (!rv__str_none(token) && rv__json_int(token, &id) == RV_OK)
            of = find_id(s, id);
        if (id >= 0 && of != NULL && of->call != NULL && of->call->said != NULL)
            of->call->said(of->call, rpc->params);
    } else if (rv__json_string_is(rpc->method, rv__str("notifications/message"))) {
        /* By pipes nobody knows which call it is about, unless there is one only. */
        struct rv__tool_request *only = of != NULL ? of : find_ask(s, ASK_CALL);
        if (only != NULL && only->call != NULL && only->call->said != NULL)
            only->call->said(only->call, rpc->params);
    }
}

static void take_request(struct rv__tool_server *s, const struct rv__rpc *rpc)
{
    struct rv__buf text;
    rv__buf_init(&text, RV__RPC_BYTES);
    rv__buf_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    rv__buf_str(&text, rpc->id);
    if (rv__json_string_is(rpc->method, rv__str("ping")))
        rv__buf_text(&text, ",\"result\":{}}");
    else
        rv__buf_fmt(&text, ",\"error\":{\"code\":%d,\"message\":\"this client does not do that\"}}",
                    RV__RPC_NO_METHOD);
    if (text.rc == RV_OK)
        (void)notify(s, rv__buf_view(&text));
    rv__buf_done(&text);
}

void rv__tool_heard(struct rv__tool_server *s, struct rv__tool_request *r, struct rv__str text)
{
    struct rv__rpc rpc;
    if (rv__rpc_read(text, &rpc, NULL) < 0)
        return; /* what is no message says nothing; who waits for one goes on waiting */
    switch (rpc.kind) {
    case RPC_RESULT:
    case RPC_ERROR:
        if (r == NULL)
            r = find_id(s, rpc.number);
        else if (rpc.number != r->id && !(rpc.kind == RPC_ERROR && rpc.number < 0))
            r = NULL;
        if (r != NULL && !r->over)
            answered(r, &rpc);
        break;
    case RPC_REQUEST: take_request(s, &rpc); break;
    case RPC_NOTIFICATION: take_notification(s, r, &rpc); break;
    }
}

void rv__tool_unanswered(struct rv__tool_request *r, bool was_sent, const char *why)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    enum rv__tool_ask what = r->ask;
    settle(r);
    switch (what) {
    case ASK_DISCOVER:
    case ASK_INITIALIZE:
    case ASK_LIST: rv__tool_gone(s, why); break;
    case ASK_CALL:
        if (call != NULL)
            finish_badly(s, call, was_sent ? TOOL_LOST : TOOL_DOWN, why);
        break;
    case ASK_LISTEN:
    case ASK_STREAM: s->stale = true; break;
    case ASK_NOTICE: break;
    }
}

/* Its session has ended: a new one, and what was called is called once more, for it has not been done. */
static void renew_session(struct rv__tool_request *r)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    bool again = call != NULL && !call->own.again;
    rv__free(s->session);
    s->session = NULL;
    settle(r);
    if (again) {
        call->own.again = true;
        rv__chain_add(&s->waiting, &call->own.listed);
    } else if (call != NULL) {
        finish_badly(s, call, TOOL_DOWN, "its session has ended, twice");
    }
    if (s->state == SERVER_UP)
        s->state = SERVER_DOWN;
    wake(s);
}

bool rv__tool_refused(struct rv__tool_request *r, const struct rv__fetch_result *result)
{
    struct rv__tool_server *s = r->server;
    struct rv__rpc rpc;
    bool says = rv__rpc_read(result->body, &rpc, NULL) == RV_OK && rpc.kind == RPC_ERROR;
    bool client = result->status >= 400 && result->status < 500 && result->status != 401 &&
                  result->status != 403 && result->status != 408 && result->status != 429;
    if (r->ask == ASK_STREAM && client) {
        s->tells_changes = false; /* it has no such stream */
        s->fresh_ms = now_ms() + FRESH_MS;
        settle(r);
        return true;
    }
    if (result->status == 404 && s->session != NULL && r->ask != ASK_INITIALIZE) {
        renew_session(r);
        return true;
    }
    if (r->ask == ASK_DISCOVER && client &&
        !(says && rpc.code <= RV__RPC_HEADERS && rpc.code >= RV__RPC_VERSION)) {
        settle(r);
        initialize(s);
        return true;
    }
    if (says)
        answered(r, &rpc);
    return says;
}

struct rv__str rv__tool_schema(const struct rv__tool_server *s, struct rv__str tool)
{
    struct rv__json_iter it;
    struct rv__str item, name;
    rv__json_iter_init(&it, s->tools.len > 0 ? rv__buf_view(&s->tools) : rv__str("[]"));
    while (rv__json_next(&it, NULL, &item)) {
        name = rv__rpc_member(item, "name", RV__JSON_STRING);
        if (!rv__str_none(name) && rv__json_string_is(name, tool))
            return rv__rpc_member(item, "inputSchema", RV__JSON_OBJECT);
    }
    return none;
}

/* ------------------------------------------------------------------------------ any thread --- */

static void closing(struct rv__errand *errand)
{
    struct rv__tool_server *s = RV__CONTAINER(errand, struct rv__tool_server, close);
    s->closing = true;
    for (struct rv__link *at = s->requests.first, *next; at != NULL; at = next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        struct rv__tool_call *call = r->call;
        next = at->next;
        settle(r);
        if (call != NULL)
            finish_badly(s, call, TOOL_CLOSED, "");
    }
    fail_waiting(s, TOOL_CLOSED, "");
}

static void start(struct rv__errand *errand)
{
    struct rv__tool_call *call = RV__CONTAINER(errand, struct rv__tool_call, own.start);
    struct rv__tool_server *s = call->server;
    if (s->io == NULL) {
        s->io = call->own.io;
        s->close.run = closing;
        rv__io_at_close(s->io, &s->close);
    }
    if (s->unusable != NULL) {
        finish_badly(s, call, TOOL_DOWN, s->unusable);
        return;
    }
    if (s->closing) {
        finish_badly(s, call, TOOL_CLOSED, "");
        return;
    }
    rv__chain_add(&s->waiting, &call->own.listed);
    if (s->state == SERVER_UP)
        flush(s);
    else
        wake(s);
}

static void cancel(struct rv__errand *errand)
{
    struct rv__tool_call *call = RV__CONTAINER(errand, struct rv__tool_call, own.cancel);
    struct rv__tool_server *s = call->server;
    struct rv__tool_request *r = call->own.request;
    if (r != NULL) {
        say_cancelled(r);
        settle(r);
    } else {
        rv__chain_remove(&s->waiting, &call->own.listed);
    }
    finish_badly(s, call, TOOL_CANCELLED, "");
}

int rv__tool_call_start(struct rv__io *io, struct rv__tool_call *call)
{
    memset(&call->own, 0, sizeof call->own);
    call->own.start.run = start;
    call->own.cancel.run = cancel;
    call->own.io = io;
    return rv__io_post(io, &call->own.start);
}

void rv__tool_call_cancel(struct rv__io *io, struct rv__tool_call *call)
{
    (void)rv__io_post(io, &call->own.cancel); /* the loop ends: it will be told */
}
