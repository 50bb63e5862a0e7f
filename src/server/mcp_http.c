/* mcp_http.c: MCP by HTTP: POST /mcp takes a message and answers it; DELETE ends a session.
 *
 * A call that is answered at once is a whole answer. A call that waits is a stream without a thread: while there is
 * nothing to send, its connection is suspended, and it is a waiter of the hub, like a client that waits for a run
 * (http.c). It has one owner at a time:
 *
 *   the connection's thread ──nothing to send: suspend──▶ a worker ──still nothing──▶ the hub
 *            ▲───────────────────something: resume───────────┘   ▲───ended, or time to look───┘
 *
 * The stream is Server-Sent Events with progress messages, or, for a client that accepts only JSON, the answer
 * alone. If the client disconnects, the call ends; its run continues, since runs are durable (ADR 0046). */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "server/exchange.h"

enum {
    STREAM_ROOM = 64 << 10, /* reserved for a call that waits */
    SMALL_BYTES = 4 << 10,  /* an answer that needs no reservation */
    PIECE_BYTES = 64 << 20, /* of output: a message, and what is around it */
};

struct rv__mcp_stream {
    struct rv__exchange *x; /* while its connection is suspended */
    struct rv__hub *hub;
    struct rv__room *room;
    struct MHD_Connection *connection;
    struct rv__mcp_request request;
    struct rv__mcp_call *call;
    bool sse;
    bool done; /* nothing comes after `piece` */
    struct rv__buf piece;
    size_t at; /* bytes of it sent */
    int64_t sent_ms, beat_ms;
    struct rv__waiter waiter;
    struct rv__job job;
};

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* --------------------------------------------------------------------------------- sessions --- */

static uint64_t hash_of(const char *session)
{
    uint64_t hash = rv__str_hash(RV__HASH_START, rv__str(session));
    return hash != 0 ? hash : 1;
}

static bool has_ended(struct rv__mcp_ended *ended, const char *session)
{
    uint64_t hash = hash_of(session);
    bool found = false;
    pthread_mutex_lock(&ended->lock);
    size_t count = ended->count < RV__MCP_ENDED ? ended->count : RV__MCP_ENDED;
    for (size_t i = 0; i < count && !found; i++)
        found = ended->at[i] == hash;
    pthread_mutex_unlock(&ended->lock);
    return found;
}

static bool is_known(struct rv__exchange *x)
{
    const char *session = x->headers.mcp_session;
    return rv__mcp_session_valid(session) && !has_ended(&x->server->mcp_ended, session);
}

static enum MHD_Result end_session(struct rv__exchange *x)
{
    struct rv__mcp_ended *ended = &x->server->mcp_ended;
    if (x->headers.mcp_session == NULL)
        return rv__respond_problem(x, MHD_HTTP_BAD_REQUEST,
                                   "which session? The header Mcp-Session-Id is missing");
    if (!is_known(x))
        return rv__respond_problem(x, MHD_HTTP_NOT_FOUND, "there is no such session");
    pthread_mutex_lock(&ended->lock);
    ended->at[ended->count++ % RV__MCP_ENDED] = hash_of(x->headers.mcp_session);
    pthread_mutex_unlock(&ended->lock);
    x->answer.status = MHD_HTTP_NO_CONTENT;
    return rv__respond_whole(x);
}

/* ---------------------------------------------------------------------------------- streams --- */

static void ask(void *arg, const struct rv__api_request *request, struct rv__api_answer *ret)
{
    rv__api_handle(arg, request, ret);
}

/* Move the call's output to the piece, in the client's format. */
static void take_out(struct rv__mcp_stream *s)
{
    struct rv__buf *out = rv__mcp_out(s->call);
    for (size_t at = 0, len; at < out->len; at += len + 1) {
        const char *line = out->text + at, *end = memchr(line, '\n', out->len - at);
        len = end != NULL ? (size_t)(end - line) : out->len - at;
        rv__buf_text(&s->piece, s->sse ? "event: message\ndata: " : "");
        rv__buf_add(&s->piece, line, len);
        rv__buf_text(&s->piece, s->sse ? "\n\n" : "\n");
    }
    if (out->len > SMALL_BYTES)
        rv__buf_done(out);
    rv__buf_reset(out);
    const char *run_id;
    int64_t until_ms;
    s->done = !rv__mcp_waits(s->call, &run_id, &until_ms);
    if (s->piece.rc < 0) { /* no memory: the connection is cut */
        rv__buf_reset(&s->piece);
        s->done = true;
    }
    if (s->piece.len > 0)
        s->sent_ms = rv__now_ms();
}

/* The worker is done with it: the connection's thread continues. */
static void give_back(struct rv__mcp_stream *s)
{
    MHD_resume_connection(s->connection);
}

static void give_up(struct rv__mcp_stream *s, const char *why)
{
    rv__mcp_give_up(s->call, why);
    take_out(s);
    s->done = true;
    give_back(s);
}

/* Look for output; if there is none, wait and look again. */
static void run_look(struct rv__job *job)
{
    struct rv__mcp_stream *s = RV__CONTAINER(job, struct rv__mcp_stream, job);
    const char *run_id;
    int64_t until_ms;
    rv_error err;
    if (!rv__auth_holds(&s->x->server->auth, &s->x->who, rv__now_ms())) {
        give_up(s, "the session has ended, or the token was withdrawn");
        return;
    }
    if (!rv__mcp_waits(s->call, &run_id, &until_ms)) {
        s->done = true;
        give_back(s);
        return;
    }
    (void)snprintf(s->waiter.run_id, sizeof s->waiter.run_id, "%s", run_id);
    int rc = rv__hub_wait(s->hub, &s->waiter, until_ms, &err);
    if (rc < 0) {
        give_up(s, rc == RV_ECLOSED ? "the server is shutting down"
                                    : "this call cannot be waited for");
        return;
    }
    (void)rv__mcp_look(s->call);
    if (rv__now_ms() - s->sent_ms >= s->beat_ms && s->sse)
        rv__buf_text(&s->piece, ":\n\n"); /* a comment: a heartbeat */
    take_out(s);
    if (s->piece.len > 0 || s->done) {
        rv__hub_unwait(s->hub, &s->waiter);
        give_back(s);
        return;
    }
    rv__hub_sleep(s->hub, &s->waiter); /* s may be freed after this */
}

static void run_woken(struct rv__job *job)
{
    struct rv__mcp_stream *s = RV__CONTAINER(job, struct rv__mcp_stream, waiter.job);
    if (s->waiter.gone) {
        s->done = true;
        give_back(s);
    } else {
        run_look(&s->job);
    }
}

const char *rv__mcp_stream_type(const struct rv__mcp_stream *s)
{
    return s->sse ? "text/event-stream" : "application/json";
}

ssize_t rv__mcp_stream_read(struct rv__mcp_stream *s, char *ret, size_t max)
{
    if (s->at < s->piece.len) {
        size_t n = s->piece.len - s->at < max ? s->piece.len - s->at : max;
        memcpy(ret, s->piece.text + s->at, n);
        s->at += n;
        return (ssize_t)n;
    }
    if (s->done)
        return -1;
    rv__buf_reset(&s->piece);
    s->at = 0;
    MHD_suspend_connection(s->connection);
    if (rv__lanes_push(s->x->server->lanes, RV__LANE_READ, &s->job, true) < 0)
        give_up(s, "the server is shutting down");
    return 0;
}

void rv__mcp_stream_free(struct rv__mcp_stream *s)
{
    if (s == NULL)
        return;
    rv__room_give(s->room, RV__ROOM_MEMORY, STREAM_ROOM);
    rv__mcp_free(s->call);
    rv__buf_done(&s->piece);
    rv__free(s);
}

/* --------------------------------------------------------------------------------- requests --- */

static struct rv__mcp_stream *stream_new(struct rv__exchange *x)
{
    struct rv__server *server = x->server;
    const char *accept = x->headers.accept;
    if (!rv__room_take(&server->room, RV__ROOM_MEMORY, STREAM_ROOM))
        return NULL;
    struct rv__mcp_stream *s = rv__zalloc(1, sizeof *s);
    if (s == NULL) {
        rv__room_give(&server->room, RV__ROOM_MEMORY, STREAM_ROOM);
        return NULL;
    }
    s->x = x;
    s->hub = server->hub;
    s->room = &server->room;
    s->connection = x->connection;
    s->sse = accept != NULL && strstr(accept, "text/event-stream") != NULL;
    s->sent_ms = rv__now_ms();
    s->beat_ms = server->limits.heartbeat_ms;
    s->waiter.fd = x->visit->fd;
    s->waiter.who = &x->who;
    s->waiter.job.run = run_woken;
    s->job.run = run_look;
    rv__buf_init(&s->piece, PIECE_BYTES);
    s->request = (struct rv__mcp_request){ .body = x->body.len > 0 ? x->body.text : NULL,
                                           .length = x->body.len,
                                           .role = x->who.role,
                                           .by = x->who.name,
                                           .local = rv__visit_local(x->visit),
                                           .room = &server->room,
                                           .http = true,
                                           .version = x->headers.mcp_version,
                                           .method = x->headers.mcp_method,
                                           .name = x->headers.mcp_name,
                                           .session = x->headers.mcp_session,
                                           .silent = !s->sse };
    return s;
}

/* The call is answered: make it the response. */
static void answer_whole(struct rv__exchange *x, struct rv__mcp_call *call)
{
    struct rv__buf *out = rv__mcp_out(call);
    struct rv__room *room = &x->server->room;
    x->answer = (struct rv__api_answer){ .status = rv__mcp_status(call) };
    (void)snprintf(x->mcp_session, sizeof x->mcp_session, "%s", rv__mcp_session(call));
    if (out->len == 0)
        return;
    size_t held = out->len > SMALL_BYTES ? out->len : 0;
    if (held > 0 && !rv__room_take(room, RV__ROOM_MEMORY, held)) {
        rv__api_problem(
            503, NULL,
            "no memory for the answer: too many answers wait to be read; try again later",
            &x->answer);
        return;
    }
    x->answer.type = "application/json";
    x->answer.length = out->len;
    x->answer.body = rv__buf_take(out);
    x->answer.room = room;
    x->answer.held[RV__ROOM_MEMORY] = held;
}

static void run_call(struct rv__job *job)
{
    struct rv__exchange *x = RV__CONTAINER(job, struct rv__exchange, job);
    const struct rv__mcp_via via = { ask, x->server->engine };
    struct rv__mcp_stream *s = stream_new(x);
    const char *run_id;
    int64_t until_ms;
    if (s != NULL)
        s->call = rv__mcp_begin(&via, &s->request);
    if (s == NULL || s->call == NULL) {
        rv__api_problem(503, NULL, "no memory for the call: try again later", &x->answer);
        rv__mcp_stream_free(s);
    } else if (rv__mcp_waits(s->call, &run_id, &until_ms)) {
        take_out(s);
        x->mcp = s;
    } else {
        answer_whole(x, s->call);
        rv__mcp_stream_free(s);
    }
    rv__exchange_worked(x);
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t len = sizeof json - 1;
    return type == NULL || (strncasecmp(type, json, len) == 0 &&
                            (type[len] == '\0' || type[len] == ';' || type[len] == ' '));
}

/* The lane: possible changes go to the write lane. Guessed from the text, which is enough. */
static enum rv__lane lane_of(const struct rv__exchange *x)
{
    static const char *const changes[] = { "tools/call", "tasks/cancel", "tasks/update" };
    for (size_t i = 0; x->body.len > 0 && i < sizeof changes / sizeof *changes; i++)
        if (memmem(x->body.text, x->body.len, changes[i], strlen(changes[i])) != NULL)
            return RV__LANE_WRITE;
    return RV__LANE_READ;
}

enum MHD_Result rv__mcp_answer(struct rv__exchange *x)
{
    const char *version = x->headers.mcp_version;
    if (is(x->method, "DELETE"))
        return end_session(x);
    if (!is(x->method, "POST")) {
        rv__api_problem(MHD_HTTP_METHOD_NOT_ALLOWED, NULL,
                        "this address takes POST, and DELETE to end a session; nothing is sent but "
                        "in answer to a POST",
                        &x->answer);
        x->answer.allow = "POST, DELETE";
        return rv__respond_whole(x);
    }
    if (!is_json(x->headers.content_type))
        return rv__respond_refused(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                   "a message is application/json");
    bool sessions = version == NULL || !is(version, "2026-07-28");
    if (sessions && x->headers.mcp_session != NULL && !is_known(x))
        return rv__respond_problem(x, MHD_HTTP_NOT_FOUND,
                                   "there is no such session: initialize another");
    return rv__exchange_hand_over(x, run_call, lane_of(x));
}
