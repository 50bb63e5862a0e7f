/* listen.c: accepts connections on the loop of connections. A client that may connect sends a hello and is then passed
 * to the code that handles its role.
 *
 * At a TCP address that may be anyone. Until a client has sent its hello, it has tighter limits: a frame of the size of a
 * hello, and a share of all connections, so that strangers cannot keep others out.
 *
 * Beside a store: processes of the same user, and root. The socket's mode ensures that (0600 from its creation: bind()
 * makes the file with the mode of the unbound socket, so the umask of the whole process is not touched), and the kernel
 * says who is at the other end.
 *
 * The socket is created under another name and renamed: at no moment is there a name without a listener. The socket of
 * a process that died stays behind and refuses connections; the next driver, which has the store's lock, replaces it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/listen.h"
#include "wire/conn.h"
#include "wire/place.h"

enum {
    CONNECTIONS = 512,
    HELLO_MS = 10000,
    HELLO_BYTES = 1 << 20, /* of the first frame: a worker that reconnects lists its invocations */
    BACKLOG = 128,
    ACCEPT_PAUSE_MS = 100, /* pause after a connection could not be accepted */
};

/* A client that was accepted and has not sent its hello. */
struct guest {
    uv_timer_t timer; /* first */
    struct rv__listener *listener;
    struct guest *next, **link;
    struct rv__conn *conn; /* NULL: it ended, or was passed on */
};

struct rv__listener {
    struct rv__listen_opts opts;
    int folder, socket;
    char name[NAME_MAX + 1]; /* in that folder; "" = not there */
    uint16_t port;           /* of a TCP address; 0: it is a Unix socket */
    size_t guest_count;
    uv_poll_t poll;
    uv_timer_t accept_pause; /* nothing is accepted meanwhile: there were no descriptors */
    struct guest *guests;
    size_t handles; /* of libuv that are open */
    bool closing;
    pthread_mutex_t lock; /* of `closed`: */
    pthread_cond_t is_closed;
    bool closed;
};

/* ---------------------------------------------------------------------------------- hello --- */

static void report_if_closed(struct rv__listener *listener)
{
    if (!listener->closing || listener->handles > 0 || listener->guests != NULL)
        return;
    pthread_mutex_lock(&listener->lock);
    listener->closed = true;
    pthread_cond_signal(&listener->is_closed); /* under the lock: after it, it may be closed */
    pthread_mutex_unlock(&listener->lock);
}

static void guest_closed(uv_handle_t *handle)
{
    struct guest *guest = (struct guest *)handle;
    struct rv__listener *listener = guest->listener;
    *guest->link = guest->next;
    if (guest->next != NULL)
        guest->next->link = guest->link;
    listener->guest_count--;
    rv__free(guest);
    report_if_closed(listener);
}

/* It was passed on, or has ended. */
static void guest_end(struct guest *guest)
{
    guest->conn = NULL;
    if (!uv_is_closing((uv_handle_t *)&guest->timer))
        uv_close((uv_handle_t *)&guest->timer, guest_closed);
}

static void on_hello(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    struct guest *guest = arg;
    struct rv__listener *listener = guest->listener;
    struct rv__str value;
    rv_error err;
    int64_t protocol = 0;
    rv__frame_members(frame, (const char *[]){ "protocol" }, &value, 1);
    bool hello = frame->type == FRAME_HELLO;
    if (hello && !rv__str_none(value))
        (void)rv__json_int(value, &protocol); /* not one: another protocol */
    if (!hello || protocol != RV__PROTOCOL) {
        (void)rv__fail(&err, RV_EINVAL,
                       "the first frame has to be a hello of protocol %d (docs/worker-protocol.md)",
                       RV__PROTOCOL);
        rv__conn_refuse(conn, &err);
        return;
    }
    guest_end(guest);
    rv__conn_bound(conn, RV__FRAME_MAX);
    listener->opts.greeted(listener->opts.arg, conn, frame);
}

static void guest_ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)conn;
    (void)why;
    guest_end(arg);
}

static const struct rv__conn_user greeter = { .heard = on_hello, .ended = guest_ended };

static void on_hello_timeout(uv_timer_t *timer)
{
    struct guest *guest = (struct guest *)timer;
    rv_error err;
    (void)rv__fail(&err, RV_ETIMEDOUT, "no hello came within %lld ms",
                   (long long)guest->listener->opts.hello_ms);
    if (guest->conn != NULL)
        rv__conn_refuse(guest->conn, &err);
}

/* ------------------------------------------------------------------------------- listening --- */

static bool is_allowed(const struct rv__listener *listener, int fd)
{
    struct ucred who;
    if (listener->port != 0)
        return true; /* its hello says more */
    socklen_t len = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           (who.uid == geteuid() || who.uid == 0);
}

/* Tell a refused client why: as much as the socket takes. Not with TLS: that would take a while. */
static void refuse(const struct rv__listener *listener, int fd, int code, const char *message)
{
    rv_error err;
    struct rv__buf out;
    if (listener->opts.tls != NULL) {
        (void)close(fd); /* it will try again */
        return;
    }
    (void)rv__fail(&err, code, "%s", message);
    rv__buf_init(&out, sizeof err + 256);
    rv__wire_error(&out, &err);
    if (out.rc == RV_OK)
        (void)!send(fd, out.text, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    rv__buf_done(&out);
    (void)close(fd); /* it knows why */
}

static void accept_guest(struct rv__listener *listener, int fd)
{
    struct rv__wires *wires = listener->opts.wires;
    struct guest *guest = rv__zalloc(1, sizeof *guest);
    if (guest != NULL)
        guest->conn = rv__conn_new(wires, fd, &greeter, guest);
    if (guest == NULL || guest->conn == NULL) {
        rv__free(guest);
        refuse(listener, fd, RV_ENOMEM, rv_strerror(RV_ENOMEM));
        return;
    }
    rv__conn_bound(guest->conn, HELLO_BYTES);
    guest->listener = listener;
    guest->next = listener->guests;
    guest->link = &listener->guests;
    if (listener->guests != NULL)
        listener->guests->link = &guest->next;
    listener->guests = guest;
    listener->guest_count++;
    uv_timer_init(&wires->loop, &guest->timer); /* cannot fail, nor can its start */
    uv_timer_start(&guest->timer, on_hello_timeout, (uint64_t)listener->opts.hello_ms, 0);
    if (listener->opts.tls != NULL && !rv__conn_secure(guest->conn, listener->opts.tls, NULL))
        rv__conn_end(guest->conn, NULL);
}

static void resume_accepting(uv_timer_t *timer);

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct rv__listener *listener = poll->data;
    (void)status;
    (void)events;
    int fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
    if (fd <
        0) { /* it has disconnected; or no descriptors: then it stays in the queue for a while */
        if (errno != EAGAIN && errno != ECONNABORTED) {
            uv_poll_stop(&listener->poll);
            uv_timer_start(&listener->accept_pause, resume_accepting, ACCEPT_PAUSE_MS, 0);
        }
        return;
    }
    int yes = 1;
    if (listener->port != 0) /* we collect frames ourselves; a failure only costs speed */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (!is_allowed(listener, fd))
        refuse(listener, fd, RV_EINVAL, "this socket is for its own user");
    else if (listener->opts.wires->count >= listener->opts.connections ||
             listener->guest_count >= listener->opts.guests)
        refuse(listener, fd, RV_EBUSY, "too many connections: try again");
    else
        accept_guest(listener, fd);
}

static void resume_accepting(uv_timer_t *timer)
{
    struct rv__listener *listener = timer->data;
    uv_poll_start(&listener->poll, UV_READABLE, on_connection);
}

/* --------------------------------------------------------------------------------- opening --- */

/* Bind under a temporary name, then replace whatever has the real name. */
static int bind_at(struct rv__listener *listener, const struct rv__socket_place *place,
                   rv_error *err)
{
    struct sockaddr_un address;
    char first[64];
    const char *doing = "make";
    snprintf(first, sizeof first, ".rival-%ld-%d.sock", (long)getpid(), listener->socket);
    if (!rv__socket_address(place, listener->folder, first, &address))
        return rv__fail(err, RV_EINVAL, "no address fits the control socket '%.150s'", place->path);
    bool bound = false;
    if (fchmod(listener->socket, S_IRUSR | S_IWUSR) < 0)
        goto failed;
    (void)unlinkat(listener->folder, first, 0); /* left by a dead process with our pid */
    if (bind(listener->socket, (const struct sockaddr *)&address, sizeof address) < 0)
        goto failed;
    bound = true;
    doing = "listen at";
    if (listen(listener->socket, BACKLOG) < 0)
        goto failed;
    doing = "put in place";
    if (renameat(listener->folder, first, listener->folder, place->path + place->name_at) < 0)
        goto failed;
    snprintf(listener->name, sizeof listener->name, "%s", place->path + place->name_at);
    return RV_OK;
failed:
    rv__fail(err, RV_ESYS, "cannot %s the control socket '%.150s': %s", doing, place->path,
             strerrordesc_np(errno));
    if (bound)
        (void)unlinkat(listener->folder, first, 0);
    return RV_ESYS;
}

static int socket_open(struct rv__listener *listener, const struct rv__socket_place *place,
                       rv_error *err)
{
    char folder[RV__PATH_ROOM];
    snprintf(folder, sizeof folder, "%.*s", (int)place->name_at, place->path);
    listener->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    listener->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->folder < 0 || listener->socket < 0)
        return rv__fail(err, RV_ESYS, "cannot make the control socket '%.150s': %s", place->path,
                        strerrordesc_np(errno));
    return bind_at(listener, place, err);
}

static void begin(void *arg)
{
    struct rv__listener *listener = arg;
    uv_loop_t *loop = &listener->opts.wires->loop;
    uv_timer_init(loop, &listener->accept_pause);
    listener->handles = 1;
    listener->accept_pause.data = listener->poll.data = listener;
    if (uv_poll_init(loop, &listener->poll, listener->socket) < 0)
        return;
    listener->handles = 2;
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_connection);
}

static struct rv__listener *listener_new(const struct rv__listen_opts *opts, rv_error *err)
{
    struct rv__listener *listener = rv__zalloc(1, sizeof *listener);
    if (listener == NULL) {
        (void)rv__nomem(err);
        return NULL;
    }
    listener->opts = *opts;
    if (opts->connections == 0)
        listener->opts.connections = CONNECTIONS;
    if (opts->guests == 0)
        listener->opts.guests = listener->opts.connections;
    if (opts->hello_ms == 0)
        listener->opts.hello_ms = HELLO_MS;
    (void)rv__tls_keys_ref(opts->tls);
    listener->folder = listener->socket = -1;
    pthread_mutex_init(&listener->lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&listener->is_closed, NULL);
    return listener;
}

/* The socket exists: accept connections. Frees the listener if that fails. */
static int listener_begin(struct rv__listener *listener, int rc, const char *where,
                          struct rv__listener **ret, rv_error *err)
{
    if (rc == RV_OK)
        rv__wires_run(listener->opts.wires, begin, listener);
    if (rc == RV_OK && listener->handles < 2)
        rc = rv__fail(err, RV_ESYS, "cannot wait at the socket '%.150s'", where);
    if (rc < 0)
        rv__listener_free(listener);
    else
        *ret = listener;
    return rc;
}

int rv__listen(const char *store, const struct rv__listen_opts *opts, struct rv__listener **ret,
               rv_error *err)
{
    struct rv__listener *listener = listener_new(opts, err);
    struct rv__socket_place place = { .name_at = 0 };
    if (listener == NULL)
        return RV_ENOMEM;
    int rc = rv__socket_place(store, &place, err);
    if (rc == RV_OK)
        rc = socket_open(listener, &place, err);
    return listener_begin(listener, rc, place.path, ret, err);
}

int rv__listen_tcp(const char *address, const struct rv__listen_opts *opts,
                   struct rv__listener **ret, rv_error *err)
{
    struct rv__listener *listener = listener_new(opts, err);
    struct rv__listen at;
    if (listener == NULL)
        return RV_ENOMEM;
    int rc = rv__listen_open(address, &at, err);
    if (rc == RV_OK) {
        listener->socket = at.fd;
        listener->port = at.port;
    }
    return listener_begin(listener, rc, address, ret, err);
}

uint16_t rv__listener_port(const struct rv__listener *listener)
{
    return listener->port;
}

static void handle_closed(uv_handle_t *handle)
{
    struct rv__listener *listener = handle->data;
    listener->handles--;
    report_if_closed(listener);
}

static void begin_close(void *arg)
{
    struct rv__listener *listener = arg;
    listener->closing = true;
    for (struct guest *guest = listener->guests; guest != NULL; guest = guest->next)
        if (guest->conn != NULL)
            rv__conn_end(guest->conn, NULL);
    if (listener->handles > 1)
        uv_close((uv_handle_t *)&listener->poll, handle_closed);
    if (listener->handles > 0)
        uv_close((uv_handle_t *)&listener->accept_pause, handle_closed);
    report_if_closed(listener);
}

void rv__listener_free(struct rv__listener *listener)
{
    if (listener == NULL)
        return;
    if (listener->name[0] != '\0') /* no other process has replaced it: we have the store's lock */
        (void)unlinkat(listener->folder, listener->name, 0);
    rv__wires_run(listener->opts.wires, begin_close, listener);
    pthread_mutex_lock(&listener->lock);
    while (!listener->closed)
        pthread_cond_wait(&listener->is_closed, &listener->lock);
    pthread_mutex_unlock(&listener->lock);
    if (listener->folder >= 0)
        (void)close(listener->folder);
    if (listener->socket >= 0)
        (void)close(listener->socket);
    rv__tls_keys_unref(listener->opts.tls);
    pthread_cond_destroy(&listener->is_closed);
    pthread_mutex_destroy(&listener->lock);
    rv__free(listener);
}
