/* remote.c: workers on other machines: rv_workers_listen(); and the list of workers: rv_workers().
 *
 * It listens on a TCP address to which anybody may connect. The hello frame says that it is a worker and has a token,
 * which the program that opened the address checks. Beyond this machine TLS is required, since a token in clear text
 * can be read by others. After that it is a worker like any other (work/workers.c), except that it may not make calls
 * and is never blamed for a death. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/listen.h"
#include "base/opts.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/member.h"

enum {
    GUESTS = 64,        /* connections that have not sent their hello yet */
    TOKEN_BYTES = 4096, /* of the longest token */
};

struct rv__remote {
    rv_engine *engine;
    struct rv__listener *listener;
    bool (*admits)(void *arg, const char *token, const char *from);
    void *arg;
    char host[256];
    bool tls;
};

/* ---------------------------------------------------------------------------------- coming --- */

static void nobody_hears(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    (void)arg;
    (void)conn;
    (void)frame;
}

static void ignore_end(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)arg;
    (void)conn;
    (void)why;
}

/* Is it admitted? The copy of the token is wiped; the frame itself is freed with the connection's buffer. */
static bool admit(const struct rv__remote *remote, const struct rv__conn *conn,
                  struct rv__str value, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str text = { "", 0 };
    char from[RV__FROM_SIZE], token[TOKEN_BYTES] = "";
    if (remote->admits == NULL)
        return true;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__str_none(value) && rv__json_type(value) == RV__JSON_STRING &&
        rv__json_string(value, &arena, &text) == RV_OK && text.len < sizeof token)
        memcpy(token, text.at, text.len);
    rv__conn_from(conn, from);
    bool good = remote->admits(remote->arg, token, from);
    explicit_bzero(token, sizeof token);
    rv__arena_done(&arena);
    if (!good)
        (void)rv__fail(err, RV_EINVAL, "%s",
                       rv__str_none(value)
                           ? "the hello has no 'token': a token of role worker is needed here"
                           : "there is no such token of role worker");
    return good;
}

static void greeted(void *arg, struct rv__conn *conn, const struct rv__frame *hello)
{
    static const struct rv__conn_user nobody = { .heard = nobody_hears, .ended = ignore_end };
    enum { ROLE, TOKEN, KEYS };
    struct rv__remote *remote = arg;
    struct rv__str has[KEYS];
    rv_error err = { .code = 0 };
    rv__conn_use(conn, &nobody, NULL); /* should it be refused */
    rv__frame_members(hello, (const char *[]){ "role", "token" }, has, KEYS);
    if (!rv__str_is(has[ROLE], "\"worker\""))
        (void)rv__fail(&err, RV_EINVAL,
                       "this address is for workers: their hello has the 'role' worker; "
                       "use the HTTP API for calls");
    else if (admit(remote, conn, has[TOKEN], &err))
        rv__workers_greet(remote->engine->services.workers, conn, hello, false, NULL);
    if (err.code != 0)
        rv__conn_refuse(conn, &err);
}

/* ------------------------------------------------------------------------------- listening --- */

/* Whether a text is UTF-8 without spaces and control characters. */
static bool is_printable(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return false;
    return rv__str_utf8(rv__str(text));
}

static int check(const rv_engine *e, const rv_workers_opts *o, rv_error *err)
{
    if (o->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_WORKERS_OPTS");
    if (o->listen == NULL)
        return rv__fail(err, RV_EINVAL, "rv_workers_listen: no address");
    if (e->kit != NULL || e->attached != NULL || e->read_only || e->idle ||
        e->services.workers == NULL)
        return rv__fail(err, RV_ESTATE, "this engine runs no steps, so it takes no workers");
    if (e->remote != NULL)
        return rv__fail(err, RV_EEXIST, "this engine listens for workers already");
    if ((o->tls_cert == NULL) != (o->tls_key == NULL))
        return rv__fail(err, RV_EINVAL, "TLS needs both a certificate and its key");
    if (e->stopped || rv_cancel_fired(e->closing))
        return rv__fail(err, RV_ECLOSED, "the engine is closed");
    char host[256], port[6];
    if (o->url != NULL && !is_printable(o->url))
        return rv__fail(err, RV_EINVAL,
                        "the address for workers of other members must be UTF-8 without spaces or "
                        "control characters: tls://HOST:PORT or tcp://HOST:PORT");
    if (o->url != NULL &&
        ((strncmp(o->url, "tcp://", 6) != 0 && strncmp(o->url, "tls://", 6) != 0) ||
         rv__address_split(o->url + 6, host, port, NULL) < 0 || host[0] == '\0'))
        return rv__fail(
            err, RV_EINVAL,
            "'%.100s' is not an address for workers: tls://HOST:PORT or tcp://HOST:PORT", o->url);
    int rc = rv__address_split(o->listen, host, port, err);
    if (rc < 0 || rv__listens_on_loopback(o->listen))
        return rc;
    if (o->tls_cert == NULL)
        return rv__fail(err, RV_EINVAL,
                        "others can reach %.100s, so workers need TLS there: a certificate and its "
                        "key (--tls-cert, --tls-key)",
                        o->listen);
    if (o->admits == NULL)
        return rv__fail(err, RV_EINVAL,
                        "others can reach %.100s, so workers need a token there (--token-file with "
                        "a line `worker TOKEN`)",
                        o->listen);
    return RV_OK;
}

/* Workers of other members are to come here, too. Nobody else's loopback address is ours, so that is only told if the
 * program says so. */
static int tell_members(rv_engine *e, const rv_workers_opts *o, rv_error *err)
{
    char address[RV__STORE_ADDRESS_SIZE], host[256], port[6];
    const char *given = o->url != NULL ? o->url + sizeof "tls://" - 1 : o->listen;
    bool tls = o->url != NULL ? strncmp(o->url, "tls", 3) == 0 : e->remote->tls;
    if (o->url == NULL && rv__listens_on_loopback(o->listen))
        return RV_OK;
    int rc = rv__address_split(given, host, port, err);
    if (rc < 0)
        return rc;
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
        if (gethostname(host, sizeof host - 1) < 0)
            return RV_OK; /* it has no name to tell */
        host[sizeof host - 1] = '\0';
    }
    bool v6 = strchr(host, ':') != NULL;
    if (strcmp(port, "0") == 0)
        snprintf(port, sizeof port, "%u", rv__listener_port(e->remote->listener));
    snprintf(address, sizeof address, "%s://%s%s%s:%s", tls ? "tls" : "tcp", v6 ? "[" : "", host,
             v6 ? "]" : "", port);
    return rv__member_reached_at(e, address, err);
}

int rv_workers_listen(rv_engine *e, const rv_workers_opts *opts, uint16_t *ret_port, rv_error *err)
{
    rv_workers_opts o = { .size = sizeof o };
    struct rv__wires *wires = NULL;
    struct rv__tls_keys *keys = NULL;
    char port[6];
    if (e == NULL || opts == NULL)
        return rv__fail(err, RV_EINVAL, "rv_workers_listen: no engine, or no options");
    rv__opts_take(&o, sizeof o, opts, opts->size);
    rv__engine_enter(e);
    struct rv__remote *remote = NULL;
    int rc = check(e, &o, err);
    if (rc == RV_OK && (remote = rv__zalloc(1, sizeof *remote)) == NULL)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__address_split(o.listen, remote->host, port, err);
    if (rc == RV_OK && o.tls_cert != NULL)
        rc = rv__tls_server(o.tls_cert, o.tls_key, &keys, err);
    if (rc == RV_OK)
        rc = rv__services_wires(&e->services, &wires, err);
    if (rc == RV_OK) {
        assert(remote != NULL);
        remote->engine = e;
        remote->admits = o.admits;
        remote->arg = o.arg;
        remote->tls = keys != NULL;
        const struct rv__listen_opts listen = {
            .wires = wires, .tls = keys, .guests = GUESTS, .greeted = greeted, .arg = remote
        };
        rc = rv__listen_tcp(o.listen, &listen, &remote->listener, err);
    }
    rv__tls_keys_unref(keys); /* the listener has its own reference */
    if (rc == RV_OK) {
        e->remote = remote;
        rc = tell_members(e, &o, err);
        if (rc == RV_OK && ret_port != NULL)
            *ret_port = rv__listener_port(remote->listener);
    }
    if (rc < 0) {
        if (e->remote == remote)
            e->remote = NULL;
        rv__remote_free(remote);
    }
    rv__engine_leave(e);
    return rc;
}

void rv_workers_opts_init(rv_workers_opts *opts)
{
    *opts = *RV_WORKERS_OPTS();
}

int rv_workers_again(rv_engine *e, rv_error *err)
{
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "rv_workers_again: no engine");
    rv__engine_enter(e);
    if (e->remote != NULL)
        rv__workers_recall(e->services.workers);
    rv__engine_leave(e);
    return RV_OK;
}

void rv__remote_free(struct rv__remote *remote)
{
    if (remote == NULL)
        return;
    rv__listener_free(remote->listener);
    rv__free(remote);
}

/* ---------------------------------------------------------------------------- who is there --- */

/* On the loop's thread. */
static int list_workers(struct rv__call *call)
{
    struct rv__buf *out = call->arg;
    const rv_engine *e = call->engine;
    size_t count = 0;
    for (uint32_t n = 1; n <= RV__WORKERS_MOST; n++) {
        int64_t credits, taken;
        if (!rv__worker_load(e, n, &credits, &taken))
            continue;
        struct rv__session_about about = rv__session_about(rv__workers_session(e, n));
        rv__buf_text(out, count++ > 0 ? ",{\"name\":" : "{\"name\":");
        rv__buf_json_str(out, rv__str(about.name));
        rv__wire_int(out, "credits", credits);
        rv__wire_int(out, "busy", taken);
        rv__wire_json(out, "local", rv__str(about.local ? "true" : "false"));
        rv__buf_char(out, '}');
    }
    return RV_OK;
}

int rv_workers(rv_engine *e, char **ret, rv_error *err)
{
    struct rv__buf out;
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_workers: no engine, or nowhere to put the answer");
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the number of workers */
    rv__buf_fmt(&out, "{\"protocol\":%d,\"listen\":", RV__PROTOCOL);
    rv__engine_enter(e);
    if (e->remote != NULL) {
        rv__buf_text(&out, "{\"host\":");
        rv__buf_json_str(&out, rv__str(e->remote->host[0] ? e->remote->host : "*"));
        rv__wire_int(&out, "port", rv__listener_port(e->remote->listener));
        rv__wire_json(&out, "tls", rv__str(e->remote->tls ? "true}" : "false}"));
    } else {
        rv__buf_text(&out, "null");
    }
    rv__buf_text(&out, ",\"socket\":");
    if (e->control != NULL)
        rv__buf_json_str(&out, rv__str(rv__control_socket(e->control)));
    else
        rv__buf_text(&out, "null");
    rv__buf_text(&out, ",\"connections\":[");
    int rc = e->kit == NULL ? rv__call_ask(e, list_workers, &out, err) : RV_OK;
    rv__engine_leave(e);
    rv__buf_text(&out, "]}");
    if (rc == RV_OK)
        rc = rv__buf_err(&out, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&out);
    rv__buf_done(&out);
    return rc;
}
