/* server.c: the life of one MCP server, and where its messages go: see server.h. */
#include "agent/server.h"

#include "base/alloc.h"
#include "base/clock.h"

enum {
    FIRST_PAUSE_MS = 250,  /* before a server that failed is started again; doubled each time, */
    MOST_PAUSE_MS = 30000, /* up to this */
};

static void start_server(struct rv__tool_server *server);

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

void rv__tool_server_wake(struct rv__tool_server *s)
{
    if (s->waiting.first != NULL && s->state == SERVER_DOWN && !s->restart_pending && !s->runs &&
        !s->closing)
        start_server(s);
}

static void restart_due(struct rv__alarm *alarm)
{
    struct rv__tool_server *s = RV__CONTAINER(alarm, struct rv__tool_server, restart);
    s->restart_pending = false;
    rv__tool_server_wake(s);
}

static void schedule_restart(struct rv__tool_server *s)
{
    int64_t wait = FIRST_PAUSE_MS;
    for (int i = 0; i < s->failures && wait < MOST_PAUSE_MS; i++)
        wait *= 2;
    s->failures++;
    s->restart.ring = restart_due;
    s->restart_pending = rv__io_alarm(s->io, &s->restart,
                                      wait < MOST_PAUSE_MS ? wait : MOST_PAUSE_MS) == RV_OK;
}

void rv__tool_server_lost(struct rv__tool_server *s, const char *why)
{
    enum rv__tool_state was = s->state;
    bool probed = rv__tool_request_of_kind(s, ASK_DISCOVER) != NULL && s->url == NULL &&
                  s->era == ERA_UNKNOWN;
    s->state = SERVER_DOWN;
    rv__io_alarm_off(s->io, &s->greeting_limit);
    rv__free(s->session);
    s->session = NULL;
    s->renewed = false;
    for (struct rv__link *at = s->requests.first, *next; at != NULL; at = next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        struct rv__tool_call *call = r->call;
        next = at->next;
        rv__tool_request_end(r);
        if (call != NULL && !rv__tool_task_retry(s, call))
            rv__tool_call_fail(s, call, TOOL_LOST, why);
    }
    if (s->runs)
        rv__by_pipe_end(s);
    if (was == SERVER_DOWN) { /* its process has ended at last */
        rv__tool_server_wake(s);
        return;
    }
    if (probed &&
        !s->runs) { /* `server/discover` may have ended it: `initialize` instead, at once */
        s->era = ERA_HANDSHAKE;
        rv__tool_server_wake(s);
        return;
    }
    if (was == SERVER_GREETING)
        s->era = ERA_UNKNOWN;
    schedule_restart(s);
    rv__tool_calls_fail(s, &s->waiting, TOOL_DOWN, why);
}

static void start_server(struct rv__tool_server *s)
{
    rv__tool_greeting_enter(s);
    s->asked_again = false;
    s->list_stale = true;
    if (s->url != NULL) {
        rv__tool_greeting_begin(s);
        return;
    }
    int rc = rv__by_pipe_begin(s);
    if (rc < 0)
        rv__tool_server_lost(s, rv_strerror(rc));
}

static bool is_stale(const struct rv__tool_server *s)
{
    return s->list_stale || (s->list_expires_ms != 0 && now_ms() >= s->list_expires_ms);
}

static struct rv__tool_call *first_waiting(struct rv__tool_server *s)
{
    struct rv__link *first = s->waiting.first;
    return first != NULL ? RV__CONTAINER(first, struct rv__tool_call, own.listed) : NULL;
}

void rv__tool_server_flush(struct rv__tool_server *s)
{
    struct rv__tool_call *call;
    if (is_stale(s) && s->waiting.first != NULL) {
        rv__tool_greeting_read_list(s);
        return;
    }
    while (s->state == SERVER_UP && (call = first_waiting(s)) != NULL) {
        rv__chain_remove(&s->waiting, &call->own.listed);
        if (rv__str_none(call->name)) {
            struct rv__tool_result result = { .end = TOOL_ANSWERED,
                                              .json = rv__buf_view(&s->tools) };
            rv__tool_call_finish(s, call, &result);
            continue;
        }
        rv__tool_call_send(s, call);
    }
}

void rv__tool_request_answered(struct rv__tool_request *r, const struct rv__rpc *rpc)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    enum rv__tool_ask what = r->ask;
    rv__tool_request_end(r);
    switch (what) {
    case ASK_DISCOVER: rv__tool_greeting_discovered(s, rpc); break;
    case ASK_INITIALIZE: rv__tool_greeting_initialized(s, rpc); break;
    case ASK_LIST: rv__tool_greeting_listed(s, rpc); break;
    case ASK_CALL:
    case ASK_TASK_RESULT:
        if (call != NULL)
            rv__tool_call_answered(s, call, rpc);
        break;
    case ASK_TASK_GET:
        if (call != NULL)
            rv__tool_task_status(s, call, rpc);
        break;
    case ASK_TASK_UPDATE:
        if (call != NULL)
            call->own.task_updated = true;
        if (call != NULL && rpc->kind == RPC_ERROR)
            rv__tool_call_answered(s, call, rpc);
        else if (call != NULL)
            rv__tool_task_ask(s, call, ASK_TASK_GET);
        break;
    case ASK_TASK_CANCEL:
        if (call != NULL)
            rv__tool_call_finish(
                s, call, &(struct rv__tool_result){ .end = TOOL_ANSWERED, .json = rv__str("{}") });
        break;
    case ASK_LISTEN: /* it does not notify, or not any more */
    case ASK_STREAM:
        s->list_stale = s->list_stale || s->notifies_changes;
        rv__tool_greeting_streams(s);
        break;
    case ASK_NOTICE: break;
    }
}

static void notification_received(struct rv__tool_server *s, struct rv__tool_request *of,
                                  const struct rv__rpc *rpc)
{
    int64_t id = -1;
    if (rv__json_string_is(rpc->method, rv__str("notifications/tools/list_changed"))) {
        s->list_stale = true;
    } else if (rv__json_string_is(rpc->method, rv__str("notifications/progress"))) {
        struct rv__str token = rv__rpc_member(rpc->params, "progressToken", RV__JSON_NUMBER);
        if (!rv__str_none(token) && rv__json_int(token, &id) == RV_OK)
            of = rv__tool_request_of_id(s, id);
        if (id >= 0 && of != NULL && of->call != NULL && of->call->said != NULL)
            of->call->said(of->call, rpc->params);
    } else if (rv__json_string_is(rpc->method, rv__str("notifications/message"))) {
        /* By pipes nothing says which call it is about: the oldest one gets it. */
        struct rv__tool_request *only = of != NULL ? of : rv__tool_request_of_kind(s, ASK_CALL);
        if (only != NULL && only->call != NULL && only->call->said != NULL)
            only->call->said(only->call, rpc->params);
    }
}

static void request_received(struct rv__tool_server *s, struct rv__tool_request *of,
                             const struct rv__rpc *rpc)
{
    struct rv__buf text;
    if (rv__json_string_is(rpc->method, rv__str("elicitation/create")) && s->era == ERA_HANDSHAKE) {
        rv__tool_question_received(s, of, rpc);
        return;
    }
    rv__buf_init(&text, RV__RPC_BYTES);
    rv__buf_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    rv__buf_str(&text, rpc->id);
    if (rv__json_string_is(rpc->method, rv__str("ping")))
        rv__buf_text(&text, ",\"result\":{}}");
    else
        rv__buf_fmt(&text, ",\"error\":{\"code\":%d,\"message\":\"this client does not do that\"}}",
                    RV__RPC_NO_METHOD);
    if (text.rc == RV_OK)
        (void)rv__tool_notify(s, rv__buf_view(&text));
    rv__buf_done(&text);
}

void rv__tool_received(struct rv__tool_server *s, struct rv__tool_request *r, struct rv__str text)
{
    struct rv__rpc rpc;
    if (rv__rpc_read(text, &rpc, NULL) < 0)
        return; /* not a message: whoever waits for one goes on waiting */
    switch (rpc.kind) {
    case RPC_RESULT:
    case RPC_ERROR:
        if (r == NULL || r->ask == ASK_STREAM) /* answers belong to no stream of their own there */
            r = rv__tool_request_of_id(s, rpc.number);
        else if (rpc.number != r->id && !(rpc.kind == RPC_ERROR && rpc.number < 0))
            r = NULL;
        if (r != NULL && !r->ended && r->key != NULL) { /* kept, see question.c */
            rv__buf_reset(&r->answer);
            rv__buf_str(&r->answer, text);
        } else if (r != NULL && !r->ended) {
            rv__tool_request_answered(r, &rpc);
        }
        break;
    case RPC_REQUEST: request_received(s, r, &rpc); break;
    case RPC_NOTIFICATION: notification_received(s, r, &rpc); break;
    }
}

void rv__tool_unanswered(struct rv__tool_request *r, bool was_sent, const char *why)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    enum rv__tool_ask what = r->ask;
    rv__tool_request_end(r);
    switch (what) {
    case ASK_DISCOVER:
    case ASK_INITIALIZE:
    case ASK_LIST: rv__tool_server_lost(s, why); break;
    case ASK_CALL:
    case ASK_TASK_GET:
    case ASK_TASK_RESULT:
    case ASK_TASK_UPDATE:
    case ASK_TASK_CANCEL:
        if (call != NULL && !rv__tool_task_retry(s, call))
            rv__tool_call_fail(s, call, was_sent ? TOOL_LOST : TOOL_DOWN, why);
        break;
    case ASK_LISTEN:
    case ASK_STREAM:
        s->list_stale = s->list_stale || s->notifies_changes;
        rv__tool_greeting_streams(s);
        break;
    case ASK_NOTICE: break;
    }
}

static void end_request(struct rv__tool_server *s, enum rv__tool_ask ask)
{
    struct rv__tool_request *r = rv__tool_request_of_kind(s, ask);
    if (r != NULL)
        rv__tool_request_end(r);
}

/* Its session has ended. A call that was refused for that is made once more, in a new session; one whose answer had begun
 * may have been done, and is lost. Several requests may hear of it; the first one makes the new session. */
static void renew_session(struct rv__tool_request *r)
{
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    bool is_current = r->session_number == s->session_number;
    bool begun = r->resumes && r->ask == ASK_CALL;
    bool again = call != NULL && !call->own.resent && !begun;
    rv__tool_request_end(r);
    if (again) {
        call->own.resent = true;
        rv__chain_add(&s->waiting, &call->own.listed);
    } else if (call != NULL && begun) {
        rv__tool_call_fail(s, call, TOOL_LOST, "its session ended while it was answered");
    } else if (call != NULL) {
        rv__tool_call_fail(s, call, TOOL_DOWN, "its session has ended, twice");
    }
    if (!is_current) {
        if (s->state == SERVER_UP)
            rv__tool_server_flush(s);
        else
            rv__tool_server_wake(s);
        return;
    }
    rv__free(s->session);
    s->session = NULL;
    s->session_number++;
    end_request(s, ASK_LIST);
    end_request(s, ASK_STREAM);
    if (s->renewed) {
        rv__tool_server_lost(s, "its sessions end before they can be used");
        return;
    }
    s->renewed = true;
    s->state = SERVER_DOWN;
    rv__io_alarm_off(s->io, &s->greeting_limit);
    rv__tool_server_wake(s);
}

bool rv__tool_refused(struct rv__tool_request *r, const struct rv__fetch_result *result)
{
    struct rv__tool_server *s = r->server;
    struct rv__rpc rpc;
    bool says = rv__rpc_read(result->body, &rpc, NULL) == RV_OK && rpc.kind == RPC_ERROR;
    bool client = result->status >= 400 && result->status < 500 && result->status != 401 &&
                  result->status != 403 && result->status != 408 && result->status != 429;
    bool no_session = result->status == 404 ||
                      (result->status == 400 && says && rpc.code == RV__RPC_BAD_SESSION);
    if (r->ask == ASK_STREAM && r->resumes && no_session) { /* the next call makes a new session */
        s->list_stale = true;
        rv__tool_request_end(r);
        return true;
    }
    if (r->ask == ASK_STREAM && client) {
        s->notifies_changes = false; /* it has no such stream */
        s->no_stream = true;
        s->list_expires_ms = now_ms() + RV__TOOL_LIST_MS;
        rv__tool_request_end(r);
        rv__tool_greeting_streams(s);
        return true;
    }
    bool had_session = s->session != NULL || r->session_number != s->session_number;
    if (no_session && had_session && r->ask != ASK_INITIALIZE) {
        renew_session(r);
        return true;
    }
    if (r->ask == ASK_DISCOVER && client &&
        !(says && rpc.code <= RV__RPC_HEADERS && rpc.code >= RV__RPC_VERSION)) {
        rv__tool_request_end(r);
        rv__tool_greeting_initialize(s);
        return true;
    }
    if (says)
        rv__tool_request_answered(r, &rpc);
    return says;
}

void rv__tool_server_close(struct rv__errand *errand)
{
    struct rv__tool_server *s = RV__CONTAINER(errand, struct rv__tool_server, close);
    s->closing = true;
    for (struct rv__link *at = s->requests.first, *next; at != NULL; at = next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        struct rv__tool_call *call = r->call;
        next = at->next;
        rv__tool_request_end(r);
        if (call != NULL)
            rv__tool_call_fail(s, call, TOOL_CLOSED, "");
    }
    rv__tool_calls_fail(s, &s->waiting, TOOL_CLOSED, "");
    rv__tool_calls_fail(s, &s->polling, TOOL_CLOSED, "");
}
