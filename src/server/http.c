/* http.c: from a connection to a request, and from an answer back. The only user, with hub.c, of
 * libmicrohttpd.
 *
 * An exchange is one request and its answer. It is made when the first line has come, and freed when
 * the answer is out or the connection gone:
 *
 *   HEAD ──let in──▶ BODY ──all here──▶ WORKING ──a worker has answered──▶ ANSWERED
 *     └──refused─────────└──a file, a log-in───────────────────────────────────▲
 *
 * While it is WORKING its connection is suspended, so libmicrohttpd leaves both alone, and they are the
 * worker's. There is one thread for all sockets; nothing here waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "server/transport.h"

enum {
    URI_BYTES = 8 << 10,
    CONNECTION_BYTES = 32 << 10, /* of a connection: its request's head, and pieces of its answer */
    STREAM_BLOCK = 16 << 10,
    METHOD_BYTES = 16,
    LOGIN_BYTES = 64 << 10, /* of memory to read a log-in */
    DISCARD_FACTOR = 4,     /* a body that is too long is read on for so many times the limit */
};

#define COOKIE "rival_session"
#define JSON   "application/json"

/* Nothing from elsewhere, no script or style in a page's text, no frame around us. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";

enum phase { HEAD, BODY, WORKING, ANSWERED };

struct headers { /* of the request; NULL where there is none. They live as long as the exchange */
    const char *host, *origin, *fetch_site, *fetch_mode, *authorization, *content_type;
    const char *content_length, *transfer_encoding, *accept, *accept_encoding, *if_none_match;
    const char *last_event_id;
    unsigned hosts, lengths;
};

struct exchange {
    struct rv__server *server;
    struct MHD_Connection *connection;
    struct rv__visit *visit;
    enum phase phase;
    char *path;        /* owned; the query is cut off it */
    const char *query; /* in there; "" = none */
    size_t uri_len;    /* of both; more than URI_BYTES: cut there */
    char method[METHOD_BYTES];
    struct headers headers;
    enum rv__role role;
    struct rv__buf body;
    size_t body_seen; /* more than is in `body`: it is too long */
    size_t held;      /* of the server's held_bytes */
    int64_t begun_ms, wait_until_ms;
    struct rv__job job;
    struct rv__waiter waiter;
    struct rv__api_answer answer;
    struct rv__stream *stream;
    const struct rv__asset *asset;
    char session[RV__SESSION_SIZE]; /* one that begins; "" = none; "-" = one that ends */
};

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

static struct rv__str str(const char *text)
{
    return rv__str(text);
}

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* ----------------------------------------------------------------------------- answering --- */

static void hold(struct exchange *x, size_t bytes)
{
    x->held += bytes;
    atomic_fetch_add(&x->server->held_bytes, bytes);
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_common(struct exchange *x, struct MHD_Response *r)
{
    bool ok = add(r, "Content-Security-Policy", policy) &&
              add(r, "X-Content-Type-Options", "nosniff") && add(r, "X-Frame-Options", "DENY") &&
              add(r, "Referrer-Policy", "no-referrer") &&
              add(r, "Cross-Origin-Opener-Policy", "same-origin") &&
              add(r, "Cross-Origin-Resource-Policy", "same-origin");
    if (ok && x->server->tls)
        ok = add(r, "Strict-Transport-Security", "max-age=31536000");
    if (ok && atomic_load(&x->server->draining))
        ok = add(r, MHD_HTTP_HEADER_CONNECTION, "close");
    return ok;
}

static bool add_session(struct exchange *x, struct MHD_Response *r)
{
    char cookie[256];
    bool ends = is(x->session, "-");
    if (x->session[0] == '\0')
        return true;
    snprintf(cookie, sizeof cookie, COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s",
             ends ? "" : x->session, (long long)(ends ? 0 : rv__session_seconds()),
             x->server->tls ? "; Secure" : "");
    return add(r, MHD_HTTP_HEADER_SET_COOKIE, cookie);
}

static enum MHD_Result queue(struct exchange *x, int status, struct MHD_Response *r, bool complete)
{
    enum MHD_Result ok = MHD_NO;
    x->phase = ANSWERED;
    x->answer.status = status;
    if (r != NULL && complete && add_common(x, r)) {
        rv__visit_phase(&x->server->visits, x->visit,
                        x->stream != NULL ? RV__VISIT_STREAM : RV__VISIT_SENDING);
        ok = MHD_queue_response(x->connection, (unsigned)status, r);
    }
    if (r != NULL)
        MHD_destroy_response(r);
    return ok; /* NO: the connection is closed, which says enough */
}

static enum MHD_Result send_whole(struct exchange *x)
{
    struct rv__api_answer *a = &x->answer;
    char *body = a->body != NULL ? a->body : NULL;
    struct MHD_Response *r;
    if (body == NULL)
        r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    else
        r = MHD_create_response_from_buffer_with_free_callback(a->length, body, rv__free);
    if (r != NULL) {
        a->body = NULL; /* the response's now */
        hold(x, a->length);
    }
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") && add_session(x, r);
    if (ok && a->type != NULL)
        ok = add(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    if (ok && a->allow != NULL)
        ok = add(r, MHD_HTTP_HEADER_ALLOW, a->allow);
    if (ok && a->status == MHD_HTTP_UNAUTHORIZED)
        ok = add(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"rival\"");
    if (ok &&
        (a->status == MHD_HTTP_TOO_MANY_REQUESTS || a->status == MHD_HTTP_SERVICE_UNAVAILABLE))
        ok = add(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    return queue(x, a->status, r, ok);
}

static ssize_t read_stream(void *arg, uint64_t at, char *ret, size_t max)
{
    (void)at;
    ssize_t n = rv__stream_read(arg, ret, max);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void free_stream(void *arg)
{
    rv__stream_free(arg);
}

static enum MHD_Result send_stream(struct exchange *x)
{
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                               read_stream, x->stream, free_stream);
    rv__stream_attach(x->stream, x->connection, x->visit->fd);
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream") &&
              add(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
              add(r, "X-Accel-Buffering", "no");
    enum MHD_Result result = queue(x, MHD_HTTP_OK, r, ok);
    if (r != NULL)
        x->stream = NULL; /* the response's, and gone with it */
    return result;
}

static bool accepts_gzip(const char *accept_encoding)
{
    const char *at = accept_encoding != NULL ? strstr(accept_encoding, "gzip") : NULL;
    if (at == NULL)
        return false;
    at += strlen("gzip");
    at += strspn(at, " ");
    if (*at != ';')
        return true;
    at += strspn(at, "; q=0."); /* no digit but 0: not at all */
    return *at >= '1' && *at <= '9';
}

static enum MHD_Result send_asset(struct exchange *x)
{
    const struct rv__asset *a = x->asset;
    bool same = x->headers.if_none_match != NULL &&
                strstr(x->headers.if_none_match, a->etag) != NULL;
    bool gzip = a->gzip != NULL && accepts_gzip(x->headers.accept_encoding);
    const unsigned char *bytes = gzip ? a->gzip : a->plain;
    struct MHD_Response *r = MHD_create_response_from_buffer(same   ? 0
                                                             : gzip ? a->gzip_len
                                                                    : a->plain_len,
                                                             (void *)(uintptr_t)bytes,
                                                             MHD_RESPMEM_PERSISTENT);
    bool ok = r != NULL && add(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type) &&
              add(r, MHD_HTTP_HEADER_ETAG, a->etag) &&
              add(r, MHD_HTTP_HEADER_VARY, "Accept-Encoding") &&
              add(r, MHD_HTTP_HEADER_CACHE_CONTROL,
                  a->immutable ? "public, max-age=31536000, immutable" : "no-cache");
    if (ok && gzip && !same)
        ok = add(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return queue(x, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, ok);
}

static enum MHD_Result problem(struct exchange *x, int status, const char *detail)
{
    rv__api_answer_done(&x->answer);
    rv__api_problem(status, NULL, detail, &x->answer);
    return send_whole(x);
}

/* A problem that somebody may have made on purpose: logged. */
static enum MHD_Result refuse(struct exchange *x, int status, const char *detail)
{
    rv__server_refused(x->server, "request refused", x->visit, detail);
    return problem(x, status, detail);
}

static enum MHD_Result send_answer(struct exchange *x)
{
    if (x->stream != NULL)
        return send_stream(x);
    return send_whole(x);
}

/* ------------------------------------------------------------------------------- workers --- */

/* The worker's last touch: the connection's thread goes on with it. */
static void worked(struct exchange *x)
{
    MHD_resume_connection(x->connection);
}

static struct rv__api_request request_of(const struct exchange *x)
{
    return (struct rv__api_request){
        .method = is(x->method, "HEAD") ? "GET" : x->method,
        .path = x->path,
        .query = x->query,
        .content_type = x->headers.content_type,
        .body = x->body.len > 0 ? x->body.text : NULL,
        .body_length = x->body.len,
        .role = x->role,
    };
}

static int status_of(int rc)
{
    return rc == RV_ENOTFOUND ? MHD_HTTP_GONE
           : rc == RV_EINVAL  ? MHD_HTTP_BAD_REQUEST
           : rc == RV_ENOMEM  ? MHD_HTTP_INTERNAL_SERVER_ERROR
                              : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static void open_stream(struct exchange *x)
{
    rv_error err;
    int rc = rv__stream_new(x->server->hub, x->answer.run_id, x->answer.no_logs,
                            x->headers.last_event_id, &x->stream, &err);
    if (rc < 0)
        rv__api_problem(status_of(rc), NULL, err.message, &x->answer);
}

static void wait_is_over(struct exchange *x)
{
    char run_id[RV_RUN_ID_SIZE];
    memcpy(run_id, x->waiter.run_id, sizeof run_id);
    rv__api_answer_done(&x->answer);
    rv__api_waited(x->server->engine, run_id, now_ms() - x->begun_ms, &x->answer);
}

/* Wait for the run. True: not at all, there is an answer; else the waiter's job has the exchange. */
static bool begin_wait(struct exchange *x)
{
    struct rv__api_request request = request_of(x);
    struct rv__api_answer again;
    rv_error err;
    if (rv__hub_wait(x->server->hub, &x->waiter, x->wait_until_ms, &err) < 0) {
        wait_is_over(x);
        return true;
    }
    rv__api_handle(x->server->engine, &request, &again); /* it may have ended before we listened */
    if (again.kind != RV__ANSWER_WAIT) {
        rv__hub_unwait(x->server->hub, &x->waiter);
        rv__api_answer_done(&x->answer);
        x->answer = again;
        return true;
    }
    rv__api_answer_done(&again);
    rv__hub_sleep(x->server->hub, &x->waiter); /* x may be gone behind this */
    return false;
}

static void run_waiter(struct rv__job *job)
{
    struct exchange *x = RV__CONTAINER(job, struct exchange, waiter.job);
    struct rv__api_request request = request_of(x);
    bool over = now_ms() >= x->wait_until_ms || x->waiter.gone || atomic_load(&x->server->draining);
    if (!over) {
        rv__api_answer_done(&x->answer);
        rv__api_handle(x->server->engine, &request, &x->answer);
        if (x->answer.kind == RV__ANSWER_WAIT && !begin_wait(x))
            return;
    } else {
        wait_is_over(x);
    }
    worked(x);
}

static void run_request(struct rv__job *job)
{
    struct exchange *x = RV__CONTAINER(job, struct exchange, job);
    struct rv__api_request request = request_of(x);
    rv__api_handle(x->server->engine, &request, &x->answer);
    switch (x->answer.kind) {
    case RV__ANSWER_WHOLE: break;
    case RV__ANSWER_EVENTS:
        if (is(x->method, "HEAD"))
            rv__api_problem(MHD_HTTP_METHOD_NOT_ALLOWED, NULL, "a stream has no end: GET it",
                            &x->answer);
        else
            open_stream(x);
        break;
    case RV__ANSWER_WAIT:
        memcpy(x->waiter.run_id, x->answer.run_id, sizeof x->waiter.run_id);
        x->waiter.fd = x->visit->fd;
        x->waiter.job.run = run_waiter;
        x->wait_until_ms = now_ms() + (x->answer.timeout_ms > 0 ? x->answer.timeout_ms : 0);
        if (!begin_wait(x))
            return;
        break;
    }
    worked(x);
}

static enum MHD_Result hand_over(struct exchange *x)
{
    bool reads = is(x->method, "GET") || is(x->method, "HEAD");
    x->job.run = run_request;
    x->phase = WORKING;
    rv__visit_phase(&x->server->visits, x->visit, RV__VISIT_WORKING);
    MHD_suspend_connection(x->connection);
    int rc = rv__lanes_push(x->server->lanes, reads ? RV__LANE_READ : RV__LANE_WRITE, &x->job,
                            false);
    if (rc < 0) {
        rv__api_problem(MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                        rc == RV_ECLOSED ? "the server is shutting down"
                                         : "too many requests are waiting: come again",
                        &x->answer);
        MHD_resume_connection(x->connection);
    }
    return MHD_YES;
}

/* ----------------------------------------------------------------------- who is it, sessions --- */

static enum MHD_Result answer_session(struct exchange *x)
{
    struct rv__buf out;
    rv__buf_init(&out, 256);
    rv__buf_fmt(&out, "{\"role\":\"%s\",\"authRequired\":%s}", rv__role_name(x->role),
                x->server->auth ? "true" : "false");
    x->answer = (struct rv__api_answer){ .status = MHD_HTTP_OK, .type = JSON, .length = out.len };
    x->answer.body = rv__buf_take(&out);
    rv__buf_done(&out);
    if (x->answer.body == NULL)
        return problem(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    return send_whole(x);
}

static enum MHD_Result answer_login(struct exchange *x)
{
    struct rv__server *server = x->server;
    struct rv__str body, value, token = { NULL, 0 };
    struct rv__arena arena;
    rv_error err;
    if (x->headers.content_type == NULL ||
        strncasecmp(x->headers.content_type, JSON, sizeof JSON - 1) != 0)
        return problem(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "Content-Type must be " JSON);
    if (!rv__visit_may_guess(&server->visits, x->visit))
        return refuse(x, MHD_HTTP_TOO_MANY_REQUESTS,
                      "too many wrong tokens came from this address: wait a minute");
    rv__arena_init(&arena, LOGIN_BYTES);
    if (rv__json_check(rv__buf_view(&x->body), RV__JSON_VALUE_DEPTH, &body, &err) == RV_OK &&
        rv__json_get(body, "token", &value))
        (void)rv__json_string(value, &arena, &token); /* else it stays none */
    bool bad = rv__str_none(token);
    x->role = !server->auth ? RV__ROLE_ADMIN
              : bad         ? RV__ROLE_NONE
                            : rv__tokens_role(&server->tokens, token);
    rv__arena_done(&arena);
    if (bad)
        return problem(x, MHD_HTTP_UNPROCESSABLE_CONTENT, "the body is {\"token\": TEXT}");
    if (x->role == RV__ROLE_NONE) {
        rv__visit_guessed_wrong(&server->visits, x->visit);
        return refuse(x, MHD_HTTP_UNAUTHORIZED, "there is no such token");
    }
    if (server->auth &&
        rv__session_begin(&server->sessions, x->role, now_ms(), x->session, &err) < 0)
        return problem(x, MHD_HTTP_SERVICE_UNAVAILABLE, err.message);
    return answer_session(x);
}

static enum MHD_Result answer_logout(struct exchange *x)
{
    const char *name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, COOKIE);
    if (name != NULL)
        rv__session_end(&x->server->sessions, str(name), now_ms());
    memcpy(x->session, "-", 2);
    x->role = x->server->auth ? RV__ROLE_NONE : RV__ROLE_ADMIN;
    return answer_session(x);
}

/* Who asks? 0: known, or nobody; else the status of the refusal. */
static int identify(struct exchange *x, const char **why)
{
    static const char bearer[] = "Bearer ";
    struct rv__server *server = x->server;
    const char *name;
    if (!server->auth) {
        x->role = RV__ROLE_ADMIN;
        return 0;
    }
    if (x->headers.authorization != NULL) {
        if (!rv__visit_may_guess(&server->visits, x->visit)) {
            *why = "too many wrong tokens came from this address: wait a minute";
            return MHD_HTTP_TOO_MANY_REQUESTS;
        }
        if (strncasecmp(x->headers.authorization, bearer, sizeof bearer - 1) == 0)
            x->role = rv__tokens_role(&server->tokens,
                                      str(x->headers.authorization + sizeof bearer - 1));
        if (x->role != RV__ROLE_NONE)
            return 0;
        rv__visit_guessed_wrong(&server->visits, x->visit);
        *why = "there is no such token (header Authorization: Bearer TOKEN)";
        return MHD_HTTP_UNAUTHORIZED;
    }
    name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, COOKIE);
    if (name != NULL)
        x->role = rv__session_role(&server->sessions, str(name), now_ms());
    return 0;
}

/* --------------------------------------------------------------------------------- requests --- */

static enum MHD_Result take_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct headers *h = arg;
    const struct {
        const char *name;
        const char **to;
    } known[] = {
        { "Host", &h->host },
        { "Origin", &h->origin },
        { "Sec-Fetch-Site", &h->fetch_site },
        { "Sec-Fetch-Mode", &h->fetch_mode },
        { "Authorization", &h->authorization },
        { "Content-Type", &h->content_type },
        { "Content-Length", &h->content_length },
        { "Transfer-Encoding", &h->transfer_encoding },
        { "Accept", &h->accept },
        { "Accept-Encoding", &h->accept_encoding },
        { "If-None-Match", &h->if_none_match },
        { "Last-Event-ID", &h->last_event_id },
    };
    (void)kind;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, known[i].name) == 0) {
            *known[i].to = value != NULL ? value : "";
            h->hosts += known[i].to == &h->host;
            h->lengths += known[i].to == &h->content_length;
        }
    return MHD_YES;
}

static bool is_api(const char *path)
{
    static const char *const others[] = { "/healthz", "/readyz", "/metrics", "/openapi.json",
                                          "/mcp" };
    if (strncmp(path, "/api/", 5) == 0 || is(path, "/api"))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(path, others[i]))
            return true;
    return false;
}

/* The engine is not asked for these: they are answered also when it cannot answer. */
static bool is_probe(const char *path)
{
    return is(path, "/healthz") || is(path, "/readyz");
}

static bool is_session_call(const struct exchange *x)
{
    return is(x->path, "/api/v1/login") || is(x->path, "/api/v1/logout") ||
           is(x->path, "/api/v1/session");
}

/* What HTTP itself leaves open, and proxies read one way and we might another. 0: nothing. */
static int odd(const struct exchange *x, const char **why)
{
    const struct headers *h = &x->headers;
    if (x->uri_len > URI_BYTES) {
        *why = "the request's target is too long";
        return MHD_HTTP_URI_TOO_LONG;
    }
    if (x->path[0] != '/')
        *why = "the request's target is a path";
    else if (h->hosts != 1)
        *why = "a request has one Host header";
    else if (h->lengths > 1 || (h->lengths == 1 && h->transfer_encoding != NULL))
        *why = "a request says once how long its body is";
    else if (h->transfer_encoding != NULL && strcasecmp(h->transfer_encoding, "chunked") != 0)
        *why = "Transfer-Encoding can only be chunked";
    else
        return 0;
    return MHD_HTTP_BAD_REQUEST;
}

static int too_much(const struct exchange *x, const char **why)
{
    const struct rv__server_limits *limits = &x->server->limits;
    const char *length = x->headers.content_length;
    if (length != NULL && strtoull(length, NULL, 10) > limits->body_bytes) {
        *why = "the body is too long: docs/reference/server.md says how much is taken";
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    if (atomic_load(&x->server->held_bytes) > limits->total_bytes) {
        *why = "too much is under way: come again";
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    return 0;
}

/* The head is here. 0: let the rest come; else the status of the refusal. */
static int let_in(struct exchange *x, const char **why)
{
    bool reads = is(x->method, "GET") || is(x->method, "HEAD");
    bool api = is_api(x->path);
    struct rv__guard guard = { .host = str(x->headers.host),
                               .origin = str(x->headers.origin),
                               .fetch_site = str(x->headers.fetch_site),
                               .fetch_mode = str(x->headers.fetch_mode),
                               .changes = !reads,
                               .api = api };
    int status = odd(x, why);
    if (status != 0)
        return status;
    if (!rv__visit_request(&x->server->visits, x->visit)) {
        *why = "too many requests came from this address: come again";
        return MHD_HTTP_TOO_MANY_REQUESTS;
    }
    *why = rv__guard_judge(&guard, (const char *const *)x->server->names);
    if (*why != NULL)
        return MHD_HTTP_FORBIDDEN;
    status = too_much(x, why);
    if (status != 0 || !api)
        return status;
    status = identify(x, why);
    if (status == 0 && x->role == RV__ROLE_NONE && !is_probe(x->path) && !is_session_call(x)) {
        *why = "this needs a token: Authorization: Bearer TOKEN, or log in";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return status;
}

static enum MHD_Result method_not_allowed(struct exchange *x, const char *allow)
{
    rv__api_problem(MHD_HTTP_METHOD_NOT_ALLOWED, NULL, "this address does not take that method",
                    &x->answer);
    x->answer.allow = allow;
    return send_whole(x);
}

static enum MHD_Result begin(struct exchange *x, const char *method)
{
    const char *why = NULL;
    size_t len = strlen(method);
    x->phase = BODY;
    rv__visit_phase(&x->server->visits, x->visit, RV__VISIT_BODY);
    if (len >= sizeof x->method)
        return refuse(x, MHD_HTTP_BAD_REQUEST, "there is no such method");
    memcpy(x->method, method, len + 1);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, take_header, &x->headers);
    if (atomic_load(&x->server->draining))
        return problem(x, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is shutting down");
    int status = let_in(x, &why);
    if (status == MHD_HTTP_UNAUTHORIZED && x->headers.authorization == NULL)
        return problem(x, status, why); /* not logged in yet: nothing to warn of */
    if (status != 0)
        return refuse(x, status, why);
    return MHD_YES; /* an answer before the body would close the connection */
}

static enum MHD_Result answer_file(struct exchange *x)
{
    if (!is(x->method, "GET") && !is(x->method, "HEAD"))
        return method_not_allowed(x, "GET, HEAD");
    x->asset = rv__asset_find(x->path, x->headers.accept != NULL &&
                                           strstr(x->headers.accept, "text/html") != NULL);
    if (x->asset == NULL)
        return problem(x, MHD_HTTP_NOT_FOUND, "there is no such file");
    return send_asset(x);
}

static enum MHD_Result take_body(struct exchange *x, const char *data, size_t *len)
{
    const struct rv__server_limits *limits = &x->server->limits;
    x->body_seen += *len;
    if (x->body_seen > DISCARD_FACTOR * limits->body_bytes)
        return MHD_NO;
    if (x->body_seen <= limits->body_bytes) {
        rv__buf_add(&x->body, data, *len);
        hold(x, *len);
    } else {
        rv__buf_done(&x->body);
    }
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result all_here(struct exchange *x)
{
    bool reads = is(x->method, "GET") || is(x->method, "HEAD");
    bool posts = is(x->method, "POST");
    if (x->body_seen > x->server->limits.body_bytes)
        return refuse(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long");
    if (rv__buf_err(&x->body, NULL) < 0)
        return problem(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    if (!is_api(x->path))
        return answer_file(x);
    if (is(x->path, "/api/v1/session"))
        return reads ? answer_session(x) : method_not_allowed(x, "GET, HEAD");
    if (is(x->path, "/api/v1/login"))
        return posts ? answer_login(x) : method_not_allowed(x, "POST");
    if (is(x->path, "/api/v1/logout"))
        return posts ? answer_logout(x) : method_not_allowed(x, "POST");
    if (is_probe(x->path)) {
        struct rv__api_request request = request_of(x);
        rv__api_handle(x->server->engine, &request, &x->answer);
        return send_whole(x);
    }
    return hand_over(x);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **context)
{
    struct exchange *x = *context;
    (void)arg;
    (void)connection;
    (void)url;
    (void)version;
    if (x == NULL)
        return MHD_NO;
    switch (x->phase) {
    case HEAD: return begin(x, method);
    case BODY: return *len > 0 ? take_body(x, data, len) : all_here(x);
    case WORKING: return send_answer(x);
    case ANSWERED: break;
    }
    *len = 0; /* the rest of a body that was refused */
    return MHD_YES;
}

/* ------------------------------------------------------------------------ life of an exchange --- */

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *connection)
{
    struct rv__server *server = arg;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    size_t len = strnlen(uri, URI_BYTES + 1); /* one byte too many: refused by that */
    struct exchange *x;
    if (info == NULL || info->socket_context == NULL)
        return NULL;
    x = rv__zalloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->path = rv__alloc(len + 1);
    if (x->path == NULL) {
        rv__free(x);
        return NULL;
    }
    memcpy(x->path, uri, len);
    x->path[len] = '\0';
    x->uri_len = len;
    char *mark = strchr(x->path, '?');
    x->query = mark != NULL ? mark + 1 : "";
    if (mark != NULL)
        *mark = '\0';
    x->server = server;
    x->connection = connection;
    x->visit = info->socket_context;
    x->begun_ms = now_ms();
    rv__buf_init(&x->body, server->limits.body_bytes);
    pthread_mutex_lock(&server->lock);
    server->exchanges++;
    pthread_mutex_unlock(&server->lock);
    return x;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode how)
{
    struct rv__server *server = arg;
    struct exchange *x = *context;
    (void)connection;
    if (x == NULL)
        return;
    *context = NULL;
    rv__log(server->log, RV__LOG_DEBUG, "request", RV__LOG_STR("method", x->method),
            RV__LOG_STR("path", x->path), RV__LOG_INT("status", x->answer.status),
            RV__LOG_INT("ms", now_ms() - x->begun_ms),
            RV__LOG_BOOL("whole", how == MHD_REQUEST_TERMINATED_COMPLETED_OK));
    rv__visit_phase(&server->visits, x->visit, RV__VISIT_IDLE);
    rv__stream_free(x->stream);
    rv__api_answer_done(&x->answer);
    rv__buf_done(&x->body);
    atomic_fetch_sub(&server->held_bytes, x->held);
    rv__free(x->path);
    rv__free(x);
    pthread_mutex_lock(&server->lock);
    server->exchanges--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static enum MHD_Result on_accept(void *arg, const struct sockaddr *from, socklen_t len)
{
    struct rv__server *server = arg;
    (void)len;
    const char *why = rv__visits_refuse(&server->visits, from);
    if (why == NULL)
        return MHD_YES;
    rv__server_refused(server, "connection refused", NULL, why);
    return MHD_NO;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct rv__server *server = arg;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context != NULL)
            rv__visit_end(&server->visits, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *from = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct sockaddr *address = from != NULL ? from->client_addr : NULL;
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(connection,
                                                                 MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = rv__visit_begin(&server->visits, address, fd != NULL ? fd->connect_fd : -1);
    pthread_mutex_lock(&server->lock);
    server->hurry = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void on_message(void *arg, const char *fmt, va_list args) RV_PRINTF(2, 0);
static void on_message(void *arg, const char *fmt, va_list args)
{
    struct rv__server *server = arg;
    char text[256];
    if (!rv__log_on(server->log, RV__LOG_DEBUG))
        return;
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\r\n")] = '\0';
    rv__log(server->log, RV__LOG_DEBUG, "http", RV__LOG_STR("what", text));
}

/* ------------------------------------------------------------------------------------ start --- */

int rv__http_start(struct rv__server *server, rv_error *err)
{
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, server->cert.text },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, server->key.text },
        { MHD_OPTION_HTTPS_PRIORITIES, 0,
          (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
    if (server->at.v6)
        flags |= MHD_USE_IPv6;
    if (server->tls)
        flags |= MHD_USE_TLS;
    server->daemon = MHD_start_daemon(
        flags, 0, on_accept, server, on_request,
        server, /* the logger first: it tells of the rest */
        MHD_OPTION_EXTERNAL_LOGGER, on_message, server, MHD_OPTION_LISTEN_SOCKET,
        (MHD_socket)server->at.fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->limits.connections + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((server->limits.stuck_ms + 999) / 1000), MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
        server->tls ? tls : none, MHD_OPTION_END);
    if (server->daemon == NULL)
        return rv__fail(
            err, server->tls ? RV_EINVAL : RV_ESYS,
            server->tls
                ? "the HTTP server did not start: do --tls-cert and --tls-key belong together?"
                : "the HTTP server did not start");
    server->at.fd = -1; /* libmicrohttpd's */
    return RV_OK;
}

void rv__http_quiesce(struct rv__server *server)
{
    MHD_socket fd = MHD_quiesce_daemon(server->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
}

void rv__http_stop(struct rv__server *server)
{
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
}
