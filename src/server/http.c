/* http.c: reads requests from connections, and passes them on to be answered.
 *
 * An exchange is one request and its answer. It is created with the first line of the request, and freed when the
 * answer was sent or the connection is closed:
 *
 *   HEAD ──let in──▶ BODY ──all here──▶ WORKING ──a worker has answered──▶ ANSWERED
 *     └──refused─────────└──a file, a log-in───────────────────────────────────▲
 *
 * While it is WORKING, its connection is suspended: libmicrohttpd does not touch either, and they belong to the
 * worker. There is one thread for all sockets; nothing here waits. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "server/exchange.h"

enum {
    URI_BYTES = 8 << 10,
    HEAD_BYTES = 24 << 10,       /* of all headers */
    CONNECTION_BYTES = 40 << 10, /* of a connection: request headers, and pieces of its answer */
    HEADER_EXTRA = 4,            /* ": " and the end of the line */
    DISCARD_FACTOR = 4, /* a body that is too long is read up to this many times the limit */
};

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

/* ------------------------------------------------------------------------------- workers --- */

void rv__exchange_worked(struct rv__exchange *x)
{
    MHD_resume_connection(x->connection);
}

/* The type of the body. `curl -d` says that it is a form although JSON is meant; a page that posts a form has an
 * Origin. */
static const char *type_of(const struct rv__headers *h)
{
    static const char form[] = "application/x-www-form-urlencoded";
    bool mute = h->content_type == NULL || strcasecmp(h->content_type, form) == 0;
    return h->origin == NULL && mute ? NULL : h->content_type;
}

static struct rv__api_request request_of(const struct rv__exchange *x)
{
    return (struct rv__api_request){
        .method = is(x->method, "HEAD") ? "GET" : x->method,
        .path = x->path,
        .query = x->query,
        .content_type = type_of(&x->headers),
        .body = x->body.len > 0 ? x->body.text : NULL,
        .body_length = x->body.len,
        .role = x->who.role,
        .by = x->who.name,
        .pass = x->who.pass,
        .local = rv__visit_local(x->visit),
        .room = &x->server->room,
    };
}

static int status_of(int rc)
{
    return rc == RV_ENOTFOUND ? MHD_HTTP_GONE
           : rc == RV_EINVAL  ? MHD_HTTP_BAD_REQUEST
           : rc == RV_ENOMEM  ? MHD_HTTP_INTERNAL_SERVER_ERROR
                              : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static void open_stream(struct rv__exchange *x)
{
    rv_error err;
    const char *after = x->headers.last_event_id;
    if (after != NULL && *after == '\0') /* no event seen yet */
        after = NULL;
    if (after == NULL && x->answer.from_oldest)
        after = "0.0"; /* before every event */
    int rc = rv__stream_new(x->server->hub, &x->who, x->answer.run_id, x->answer.no_logs, after,
                            &x->stream, &err);
    if (rc < 0)
        rv__api_problem(status_of(rc), NULL, err.message, &x->answer);
}

/* This server will not see the run's end: the client must ask the next one. */
static void wait_elsewhere(struct rv__exchange *x)
{
    rv__api_answer_done(&x->answer);
    rv__api_problem(MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                    "the server is shutting down: wait at the next server", &x->answer);
}

static void wait_is_over(struct rv__exchange *x)
{
    char run_id[RV_RUN_ID_SIZE];
    memcpy(run_id, x->waiter.run_id, sizeof run_id);
    rv__api_answer_done(&x->answer);
    rv__api_waited(x->server->engine, run_id, rv__now_ms() - x->begun_ms, &x->server->room,
                   &x->answer);
}

/* Wait for the run. True: there is an answer already; else the waiter's job owns the exchange. */
static bool begin_wait(struct rv__exchange *x)
{
    struct rv__api_request request = request_of(x);
    struct rv__api_answer again;
    rv_error err;
    int rc = rv__hub_wait(x->server->hub, &x->waiter, x->wait_until_ms, &err);
    if (rc < 0) {
        if (rc == RV_ECLOSED)
            wait_elsewhere(x);
        else
            wait_is_over(x);
        return true;
    }
    rv__api_handle(x->server->engine, &request, &again); /* the run may have ended before */
    if (again.kind != RV__ANSWER_WAIT) {
        rv__hub_unwait(x->server->hub, &x->waiter);
        rv__api_answer_done(&x->answer);
        x->answer = again;
        return true;
    }
    rv__api_answer_done(&again);
    rv__hub_sleep(x->server->hub, &x->waiter); /* x may be freed after this */
    return false;
}

static void run_waiter(struct rv__job *job)
{
    struct rv__exchange *x = RV__CONTAINER(job, struct rv__exchange, waiter.job);
    struct rv__api_request request = request_of(x);
    bool over = rv__now_ms() >= x->wait_until_ms || x->waiter.gone;
    if (!rv__auth_holds(&x->server->auth, &x->who, rv__now_ms())) {
        rv__api_answer_done(&x->answer);
        rv__api_problem(MHD_HTTP_UNAUTHORIZED, NULL,
                        "the session has ended, or the token was withdrawn", &x->answer);
    } else if (!over) {
        rv__api_answer_done(&x->answer);
        rv__api_handle(x->server->engine, &request, &x->answer);
        if (x->answer.kind == RV__ANSWER_WAIT && !begin_wait(x))
            return;
    } else {
        wait_is_over(x);
    }
    rv__exchange_worked(x);
}

static void run_request(struct rv__job *job)
{
    struct rv__exchange *x = RV__CONTAINER(job, struct rv__exchange, job);
    struct rv__api_request request = request_of(x);
    rv__api_handle(x->server->engine, &request, &x->answer);
    switch (x->answer.kind) {
    case RV__ANSWER_WHOLE:
    case RV__ANSWER_LOGIN:
    case RV__ANSWER_LOGOUT:
    case RV__ANSWER_SESSION: break; /* the last three do not get here: their paths need no worker */
    case RV__ANSWER_EVENTS:
        if (is(x->method, "HEAD"))
            rv__api_problem(MHD_HTTP_METHOD_NOT_ALLOWED, NULL,
                            "a stream cannot be read with HEAD: use GET", &x->answer);
        else
            open_stream(x);
        break;
    case RV__ANSWER_WAIT:
        memcpy(x->waiter.run_id, x->answer.run_id, sizeof x->waiter.run_id);
        x->waiter.fd = x->visit->fd;
        x->waiter.who = &x->who;
        x->waiter.job.run = run_waiter;
        x->wait_until_ms = rv__now_ms() + (x->answer.timeout_ms > 0 ? x->answer.timeout_ms : 0);
        if (!begin_wait(x))
            return;
        break;
    }
    rv__exchange_worked(x);
}

enum MHD_Result rv__exchange_hand_over(struct rv__exchange *x, void (*run)(struct rv__job *job),
                                       enum rv__lane lane)
{
    x->job.run = run;
    x->phase = RV__EXCHANGE_WORKING;
    rv__visit_phase(&x->server->visits, x->visit, RV__VISIT_WORKING);
    MHD_suspend_connection(x->connection);
    int rc = rv__lanes_push(x->server->lanes, lane, &x->job, false);
    if (rc < 0) {
        rv__api_problem(MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                        rc == RV_ECLOSED ? "the server is shutting down"
                                         : "too many requests are waiting: try again later",
                        &x->answer);
        MHD_resume_connection(x->connection);
    }
    return MHD_YES;
}

/* --------------------------------------------------------------------------------- requests --- */

/* Is it an HTTP token? A name with a space after it would be read differently by proxies. */
static bool is_name(const char *name)
{
    return *name != '\0' && name[strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static enum MHD_Result take_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct rv__headers *h = arg;
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
        { "MCP-Protocol-Version", &h->mcp_version },
        { "Mcp-Method", &h->mcp_method },
        { "Mcp-Name", &h->mcp_name },
        { "Mcp-Session-Id", &h->mcp_session },
    };
    (void)kind;
    h->bytes += strlen(name) + (value != NULL ? strlen(value) : 0) + HEADER_EXTRA;
    h->bad_header_names |= !is_name(name);
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

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

/* Requests that HTTP leaves ambiguous, so that proxies might read them differently. 0: fine. */
static int malformed(const struct rv__exchange *x, const char **why)
{
    const struct rv__headers *h = &x->headers;
    if (x->uri_len > URI_BYTES) {
        *why = "the request target is too long";
        return MHD_HTTP_URI_TOO_LONG;
    }
    if (h->bytes > HEAD_BYTES) {
        *why = "the request's headers are too long";
        return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
    }
    if (x->path[0] != '/')
        *why = "the request target must be a path";
    else if (!is_visible(x->path) || !is_visible(x->query))
        *why = "the request target may not contain spaces: write %20";
    else if (h->bad_header_names)
        *why = "a header name may only have letters, digits and -";
    else if (h->hosts != 1)
        *why = "a request must have exactly one Host header";
    else if (h->lengths > 1 || (h->lengths == 1 && h->transfer_encoding != NULL))
        *why = "a request must state the length of its body exactly once";
    else if (h->transfer_encoding != NULL && strcasecmp(h->transfer_encoding, "chunked") != 0)
        *why = "Transfer-Encoding can only be chunked";
    else
        return 0;
    return MHD_HTTP_BAD_REQUEST;
}

static int too_much(const struct rv__exchange *x, const char **why)
{
    const struct rv__server_limits *limits = &x->server->limits;
    const char *length = x->headers.content_length;
    if (length != NULL && strtoull(length, NULL, 10) > limits->body_bytes) {
        *why = "the body is too long: docs/reference/server.md has the limits";
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return 0;
}

/* Check the headers. 0: read the body; else the status of the refusal. */
static int let_in(struct rv__exchange *x, const char **why)
{
    bool reads = is(x->method, "GET") || is(x->method, "HEAD");
    bool api = is_api(x->path);
    struct rv__guard guard = { .host = rv__str(x->headers.host),
                               .origin = rv__str(x->headers.origin),
                               .fetch_site = rv__str(x->headers.fetch_site),
                               .fetch_mode = rv__str(x->headers.fetch_mode),
                               .changes = !reads,
                               .api = api };
    int status = malformed(x, why);
    if (status != 0)
        return status;
    if (!rv__visit_request(&x->server->visits, x->visit)) {
        *why = "too many requests came from this address: try again later";
        return MHD_HTTP_TOO_MANY_REQUESTS;
    }
    *why = rv__guard_judge(&guard, (const char *const *)x->server->names);
    if (*why != NULL)
        return MHD_HTTP_FORBIDDEN;
    status = too_much(x, why);
    if (status != 0 || !api)
        return status;
    status = rv__login_identify(x, why);
    if (status == 0 && x->who.role == RV__ROLE_NONE && !rv__api_is_open(x->path)) {
        *why = "this needs a token: Authorization: Bearer TOKEN, or log in";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return status;
}

static enum MHD_Result begin(struct rv__exchange *x, const char *method)
{
    const char *why = NULL;
    size_t len = strlen(method);
    x->phase = RV__EXCHANGE_BODY;
    rv__visit_phase(&x->server->visits, x->visit, RV__VISIT_BODY);
    if (len >= sizeof x->method)
        return rv__respond_refused(x, MHD_HTTP_BAD_REQUEST, "there is no such method");
    memcpy(x->method, method, len + 1);
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, take_header, &x->headers);
    if (atomic_load(&x->server->draining))
        return rv__respond_problem(x, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is shutting down");
    int status = let_in(x, &why);
    if (status == MHD_HTTP_UNAUTHORIZED && x->headers.authorization == NULL)
        return rv__respond_problem(x, status, why); /* not logged in yet: no warning */
    if (status != 0)
        return rv__respond_refused(x, status, why);
    return MHD_YES; /* an answer before the body would close the connection */
}

static enum MHD_Result answer_file(struct rv__exchange *x)
{
    if (!is(x->method, "GET") && !is(x->method, "HEAD")) {
        rv__api_problem(MHD_HTTP_METHOD_NOT_ALLOWED, NULL, "a file can only be read", &x->answer);
        x->answer.allow = "GET, HEAD";
        return rv__respond_whole(x);
    }
    x->asset = rv__asset_find(x->path, x->headers.accept != NULL &&
                                           strstr(x->headers.accept, "text/html") != NULL);
    if (x->asset == NULL)
        return rv__respond_problem(x, MHD_HTTP_NOT_FOUND, "there is no such file");
    return rv__respond_asset(x);
}

/* Answered on this thread: health and log-in work even when all workers are busy. */
static enum MHD_Result answer_open(struct rv__exchange *x)
{
    struct rv__api_request request = request_of(x);
    rv__api_handle(x->server->engine, &request, &x->answer);
    return x->answer.kind == RV__ANSWER_WHOLE ? rv__respond_whole(x) : rv__login_answer(x);
}

static void drop_body(struct rv__exchange *x)
{
    rv__buf_done(&x->body);
    rv__room_give(&x->server->room, RV__ROOM_MEMORY, x->held);
    x->held = 0;
}

static enum MHD_Result take_body(struct rv__exchange *x, const char *data, size_t *len)
{
    const struct rv__server_limits *limits = &x->server->limits;
    x->body_seen += *len;
    if (x->body_seen > DISCARD_FACTOR * limits->body_bytes)
        return MHD_NO;
    bool fits = x->body_seen <= limits->body_bytes;
    if (fits && !x->no_room && rv__room_take(&x->server->room, RV__ROOM_MEMORY, *len)) {
        x->held += *len;
        rv__buf_add(&x->body, data, *len);
    } else {
        x->no_room = x->no_room || fits;
        drop_body(x);
    }
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result all_here(struct rv__exchange *x)
{
    if (x->body_seen > x->server->limits.body_bytes)
        return rv__respond_refused(x, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long");
    if (x->no_room)
        return rv__respond_refused(x, MHD_HTTP_SERVICE_UNAVAILABLE,
                                   "no memory for the request: too many requests and answers are "
                                   "under way; try again later");
    if (rv__buf_err(&x->body, NULL) < 0)
        return rv__respond_problem(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    if (!is_api(x->path))
        return answer_file(x);
    if (is(x->path, "/mcp"))
        return rv__mcp_answer(x);
    bool reads = is(x->method, "GET") || is(x->method, "HEAD");
    return rv__api_is_open(x->path)
               ? answer_open(x)
               : rv__exchange_hand_over(x, run_request, reads ? RV__LANE_READ : RV__LANE_WRITE);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **context)
{
    struct rv__exchange *x = *context;
    (void)arg;
    (void)connection;
    (void)url;
    (void)version;
    if (x == NULL)
        return MHD_NO;
    switch (x->phase) {
    case RV__EXCHANGE_HEAD: return begin(x, method);
    case RV__EXCHANGE_BODY: return *len > 0 ? take_body(x, data, len) : all_here(x);
    case RV__EXCHANGE_WORKING:
        return x->stream != NULL ? rv__respond_stream(x)
               : x->mcp != NULL  ? rv__respond_mcp(x)
                                 : rv__respond_whole(x);
    case RV__EXCHANGE_ANSWERED: break;
    }
    *len = 0; /* ignore the rest of a refused body */
    return MHD_YES;
}

/* ------------------------------------------------------------------------ life of an exchange --- */

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *connection)
{
    struct rv__server *server = arg;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    size_t len = strnlen(uri, URI_BYTES + 1); /* one byte more than allowed: then it is refused */
    struct rv__exchange *x;
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
    x->begun_ms = rv__now_ms();
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
    struct rv__exchange *x = *context;
    (void)connection;
    if (x == NULL)
        return;
    *context = NULL;
    rv__log(server->log, RV__LOG_DEBUG, "request", RV__LOG_STR("method", x->method),
            RV__LOG_STR("path", x->path), RV__LOG_INT("status", x->answer.status),
            RV__LOG_INT("ms", rv__now_ms() - x->begun_ms),
            RV__LOG_BOOL("whole", how == MHD_REQUEST_TERMINATED_COMPLETED_OK));
    rv__visit_phase(&server->visits, x->visit, RV__VISIT_IDLE);
    rv__stream_free(x->stream);
    rv__mcp_stream_free(x->mcp);
    rv__api_answer_done(&x->answer);
    drop_body(x);
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
    rv__server_refused(server, RV__REFUSED_CONNECTION, NULL, why);
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
    /* Not strict: malformed() refuses the same requests (no Host, spaces in the target), but with a problem
     * document instead of the library's own page. The library's own answers cannot be changed:
     * docs/reference/server.md lists those that remain. */
    const int strict = 0;
    if (server->at.v6)
        flags |= MHD_USE_IPv6;
    if (server->tls)
        flags |= MHD_USE_TLS;
    server->daemon = MHD_start_daemon(
        flags, 0, on_accept, server, on_request,
        server, /* the logger first: it reports errors of the rest */
        MHD_OPTION_EXTERNAL_LOGGER, on_message, server, MHD_OPTION_LISTEN_SOCKET,
        (MHD_socket)server->at.fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->limits.connections + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((server->limits.stuck_ms + 999) / 1000), MHD_OPTION_STRICT_FOR_CLIENT, strict,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_ARRAY,
        server->tls ? tls : none, MHD_OPTION_END);
    if (server->daemon == NULL)
        return rv__fail(
            err, server->tls ? RV_EINVAL : RV_ESYS,
            server->tls
                ? "the HTTP server did not start: do --tls-cert and --tls-key belong together?"
                : "the HTTP server did not start");
    server->at.fd = -1; /* libmicrohttpd owns it now */
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
