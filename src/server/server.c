/* server.c: the server as a whole: start, time limits, drain and end.
 *
 * The order of the end matters. New requests are refused; the hub wakes everything that waits for events; the lanes
 * finish their jobs, so that every suspended connection is resumed; only then libmicrohttpd may be stopped, and
 * what its callbacks use is freed last. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "server/transport.h"

enum {
    HOST_NAMES_MAX = 64,
    SWEEP_MS = 1000,     /* precision of time limits */
    REFUSED_MS = 10000,  /* in this time … */
    REFUSED_LINES = 20,  /* … this many refusals of a kind are logged */
    STUCK_MIN_MS = 1000, /* libmicrohttpd counts seconds */
};

void rv__server_refused(struct rv__server *server, enum rv__refusal kind,
                        const struct rv__visit *visit, const char *why)
{
    static const char *const messages[] = {
        [RV__REFUSED_REQUEST] = "request refused",
        [RV__REFUSED_CONNECTION] = "connection refused",
        [RV__CUT_OFF] = "connections cut off",
    };
    char from[46] = "";
    uint32_t unsaid = 0;
    int64_t now = rv__now_ms();
    pthread_mutex_lock(&server->lock);
    struct rv__refused *r = &server->refused[kind];
    if (r->count == 0 || now - r->since_ms >= REFUSED_MS) {
        unsaid = r->unsaid;
        *r = (struct rv__refused){ .since_ms = now };
    }
    bool say = r->count++ < REFUSED_LINES;
    if (!say)
        r->unsaid++;
    pthread_mutex_unlock(&server->lock);
    if (unsaid > 0)
        rv__log(server->log, RV__LOG_WARN, "more was refused", RV__LOG_STR("what", messages[kind]),
                RV__LOG_INT("times", unsaid));
    if (visit != NULL)
        rv__visit_text(visit, from);
    if (say)
        rv__log(server->log, RV__LOG_WARN, messages[kind], RV__LOG_STR("from", from),
                RV__LOG_STR("why", why));
}

/* ------------------------------------------------------------------------------------ options --- */

static void fill_limits(struct rv__server_limits *limits)
{
    static const struct rv__server_limits usual = {
        .connections = 1024,
        .connections_per_address = 512,
        .requests_per_s = 10000,
        .sessions = 1024,
        .body_bytes = 8 << 20,
        .sessions_per_token = 64,
        .memory_bytes = 256 << 20,
        .disk_bytes = 1 << 30,
        .ring_bytes = 8 << 20,
        .header_ms = 10000,
        .body_ms = 30000,
        .idle_ms = 60000,
        .send_ms = 120000,
        .stuck_ms = 30000,
        .heartbeat_ms = 15000,
    };
#define FILL(field) limits->field = limits->field != 0 ? limits->field : usual.field
    FILL(connections);
    FILL(connections_per_address);
    FILL(requests_per_s);
    FILL(sessions);
    FILL(body_bytes);
    FILL(sessions_per_token);
    FILL(memory_bytes);
    FILL(disk_bytes);
    FILL(ring_bytes);
    FILL(header_ms);
    FILL(body_ms);
    FILL(idle_ms);
    FILL(send_ms);
    FILL(stuck_ms);
    FILL(heartbeat_ms);
#undef FILL
    if (limits->stuck_ms < STUCK_MIN_MS)
        limits->stuck_ms = STUCK_MIN_MS;
}

static int add_name(struct rv__server *server, size_t *count, const char *name, rv_error *err)
{
    size_t size = strlen(name) + 1;
    if (size == 1)
        return RV_OK;
    if (*count == HOST_NAMES_MAX)
        return rv__fail(err, RV_EINVAL, "there are more than %d host names", HOST_NAMES_MAX);
    server->names[*count] = rv__alloc(size);
    if (server->names[*count] == NULL)
        return rv__nomem(err);
    memcpy(server->names[*count], name, size);
    ++*count;
    return RV_OK;
}

/* Host names of this server: those allowed by options, the listening address, and this machine's. */
static int collect_names(struct rv__server *server, const char *const *allowed, rv_error *err)
{
    size_t count = 0;
    char own[256] = "";
    server->names = rv__zalloc(HOST_NAMES_MAX + 1, sizeof(char *));
    if (server->names == NULL)
        return rv__nomem(err);
    int rc = add_name(server, &count, server->at.host, err);
    if (rc == RV_OK && gethostname(own, sizeof own - 1) == 0)
        rc = add_name(server, &count, own, err);
    for (; rc == RV_OK && allowed != NULL && *allowed != NULL; allowed++)
        rc = add_name(server, &count, *allowed, err);
    return rc;
}

static int read_tls(struct rv__server *server, const struct rv__server_opts *opts, rv_error *err)
{
    if ((opts->tls_cert == NULL) != (opts->tls_key == NULL))
        return rv__fail(err, RV_EINVAL, "TLS needs both a certificate and its key");
    if (opts->tls_cert == NULL)
        return RV_OK;
    int rc = rv__small_file(opts->tls_cert, false, &server->cert, err);
    if (rc == RV_OK)
        rc = rv__small_file(opts->tls_key, true, &server->key, err);
    server->tls = rc == RV_OK;
    return rc;
}

/* Replace the tokens by those of this file. Returns how many sessions ended; negative: an error, and nothing has
 * changed. */
static int change_tokens(struct rv__server *server, const char *path, rv_error *err)
{
    struct rv__tokens tokens;
    int rc = rv__tokens_load(path, &tokens, err);
    if (rc < 0)
        return rc;
    if (tokens.weak.code != 0 && !server->at.loopback && !server->insecure)
        rc = rv__fail(err, RV_EINVAL, "others can reach this server, and %s", tokens.weak.message);
    else if (tokens.weak.code != 0)
        rv__log(server->log, RV__LOG_WARN, tokens.weak.message);
    if (rc == RV_OK)
        rc = (int)rv__auth_change(&server->auth, &tokens);
    rv__tokens_done(&tokens);
    return rc;
}

/* Read the tokens, and check that they are safe for the address. */
static int read_tokens(struct rv__server *server, const struct rv__server_opts *opts, rv_error *err)
{
    server->insecure = opts->insecure;
    server->has_tokens = opts->token_file != NULL;
    if (server->has_tokens && !server->at.loopback && !server->tls)
        rv__log(server->log, RV__LOG_WARN,
                "tokens cross the network in clear text: use --tls-cert and --tls-key, or a proxy "
                "with TLS and --listen on the loopback",
                RV__LOG_STR("listen", opts->listen));
    if (server->has_tokens)
        return change_tokens(server, opts->token_file, err);
    if (server->at.loopback)
        return RV_OK;
    if (!opts->insecure)
        return rv__fail(err, RV_EINVAL,
                        "others can reach %s, so a token is needed: --token-file FILE; or "
                        "--insecure, if everyone who can reach it may run everything",
                        opts->listen);
    rv__log(server->log, RV__LOG_WARN,
            "INSECURE: everyone who can reach this address may run, cancel and read everything",
            RV__LOG_STR("listen", opts->listen));
    return RV_OK;
}

static void make_url(struct rv__server *server)
{
    const char *host = server->at.host;
    bool brackets = strchr(host, ':') != NULL;
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
        host = "localhost";
        brackets = false;
    }
    snprintf(server->url, sizeof server->url, "%s://%s%s%s:%u", server->tls ? "https" : "http",
             brackets ? "[" : "", host, brackets ? "]" : "", server->at.port);
}

/* ------------------------------------------------------------------------------------- keeper --- */

static void hurry(void *arg)
{
    struct rv__server *server = arg;
    pthread_mutex_lock(&server->lock);
    server->hurry = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void *keep_time(void *arg)
{
    struct rv__server *server = arg;
    int64_t sweep_ms = 0;
    pthread_setname_np(pthread_self(), "rival-keeper");
    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        server->hurry = false;
        pthread_mutex_unlock(&server->lock);
        int64_t again = rv__hub_tick(server->hub);
        int64_t now = rv__now_ms();
        if (now >= sweep_ms) {
            size_t cut = rv__visits_sweep(&server->visits);
            if (cut > 0)
                rv__server_refused(server, RV__CUT_OFF, NULL,
                                   "a request, or reading its answer, took too long");
            sweep_ms = now + SWEEP_MS;
        }
        pthread_mutex_lock(&server->visits.lock);
        if (server->visits.count > 0 && again > sweep_ms)
            again = sweep_ms;
        pthread_mutex_unlock(&server->visits.lock);
        pthread_mutex_lock(&server->lock);
        while (!server->stopping && !server->hurry && rv__now_ms() < again)
            (void)rv__cond_wait_until(&server->changed, &server->lock,
                                      again == INT64_MAX ? RV__NEVER : again * 1000000);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------- life, death --- */

static int start(struct rv__server *server, const struct rv__server_opts *opts, rv_error *err)
{
    int rc = read_tls(server, opts, err);
    if (rc == RV_OK)
        rc = rv__auth_init(&server->auth, server->limits.sessions,
                           server->limits.sessions_per_token, err);
    if (rc == RV_OK)
        rc = rv__listen_open(opts->listen, &server->at, err);
    if (rc == RV_OK)
        rc = read_tokens(server, opts, err);
    if (rc == RV_OK)
        rc = collect_names(server, opts->allow_hosts, err);
    if (rc == RV_OK)
        rc = rv__visits_init(&server->visits, &server->limits, err);
    if (rc == RV_OK)
        rc = rv__lanes_new(&server->lanes, err);
    if (rc == RV_OK)
        rc = rv__hub_new(server->engine, server->lanes, &server->auth, &server->room,
                         &server->limits, hurry, server, &server->hub, err);
    if (rc < 0)
        return rc;
    make_url(server);
    int e = pthread_create(&server->keeper, NULL, keep_time, server);
    if (e != 0)
        return rv__fail(err, RV_ESYS, "cannot start a thread for the server (error %d)", e);
    server->keeper_runs = true;
    return rv__http_start(server, err);
}

int rv__server_new(rv_engine *engine, const struct rv__server_opts *opts, struct rv__server **ret,
                   rv_error *err)
{
    static const struct rv__server_opts defaults;
    struct rv__server_opts o = opts != NULL ? *opts : defaults;
    struct rv__server *server = rv__zalloc(1, sizeof *server);
    if (server == NULL)
        return rv__nomem(err);
    if (o.listen == NULL)
        o.listen = "127.0.0.1:7400";
    server->engine = engine;
    server->log = o.log;
    server->limits = o.limits;
    server->at.fd = -1;
    fill_limits(&server->limits);
    rv__room_init(&server->room, server->limits.memory_bytes, server->limits.disk_bytes);
    int rc = rv__cond_init(&server->changed);
    if (rc < 0) {
        rv__free(server);
        return rv__fail(err, rc, "cannot make a condition");
    }
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->mcp_ended.lock, NULL);
    rc = start(server, &o, err);
    if (rc < 0) {
        rv__server_free(server);
        return rc;
    }
    *ret = server;
    return RV_OK;
}

const char *rv__server_url(const struct rv__server *server)
{
    return server->url;
}

int rv__server_tokens(struct rv__server *server, const char *token_file, rv_error *err)
{
    if (!server->has_tokens)
        return rv__fail(err, RV_ESTATE, "the server was started without a token file");
    return change_tokens(server, token_file, err);
}

void rv__server_drain(struct rv__server *server, int64_t grace_ms)
{
    int64_t until_ns = rv__deadline_ns(grace_ms);
    if (atomic_exchange(&server->draining, true))
        return;
    if (server->daemon != NULL)
        rv__http_quiesce(server);
    if (server->hub != NULL)
        rv__hub_drain(server->hub);
    pthread_mutex_lock(&server->lock);
    while (server->exchanges > 0 && rv__cond_wait_until(&server->changed, &server->lock, until_ns))
        ;
    pthread_mutex_unlock(&server->lock);
}

void rv__server_free(struct rv__server *server)
{
    if (server == NULL)
        return;
    rv__server_drain(server, 0);
    rv__lanes_close(server->lanes);
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    if (server->keeper_runs)
        pthread_join(server->keeper, NULL);
    rv__http_stop(server);
    rv__hub_free(server->hub);
    rv__lanes_free(server->lanes);
    if (server->at.fd >= 0)
        close(server->at.fd);
    rv__visits_done(&server->visits);
    rv__auth_done(&server->auth);
    for (size_t i = 0; server->names != NULL && server->names[i] != NULL; i++)
        rv__free(server->names[i]);
    rv__free(server->names);
    rv__buf_done(&server->cert);
    rv__secret_done(&server->key);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->mcp_ended.lock);
    pthread_mutex_destroy(&server->lock);
    rv__free(server);
}
