/* conn.c: one connection on the loop: frames in, frames out, its end.
 *
 *   open ──rv__conn_end, hung up, said what is no frame──▶ ending ──▶ closed: `ended`, and it is gone
 *
 * Frames are appended to `out` and sent at the end of the loop's turn. What the socket does not take waits there
 * for it to become writable. */
#include "wire/conn.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "wire/tls.h"

enum {
    RECORD_BYTES = 16384, /* as much as a record of TLS has */
    READS_A_TURN = 16,    /* pieces of 64 KiB, then the others have their turn */
    KEEP_BYTES = 1 << 20, /* a buffer that held more is given back */
};

struct rv__conn {
    uv_poll_t poll; /* first */
    struct rv__wires *wires;
    struct rv__conn *next, **link; /* among all */
    struct rv__conn
        *unsent_next; /* among those that have something to send at the end of this turn; */
    bool in_unsent;   /* it is one of them */
    bool writable;    /* the loop says when more can be sent */
    bool ending, has_why;
    int fd;
    struct rv__tls *tls; /* NULL: it speaks without */
    bool shaking;        /* and the two do not know each other yet: nothing is heard or sent */
    bool shake_writes;   /* … until it can be written to */
    const struct rv__conn_user *user;
    void *arg;
    struct rv__frames frames;
    struct rv__buf out; /* from `sent` on */
    size_t sent;
    uint64_t bytes;
    int64_t heard_ms; /* when bytes came last */
    int64_t
        asked_ms; /* when it was asked whether it is there, and has not said anything since; 0: it was not */
    rv_error why;
};

static void on_ready(uv_poll_t *poll, int status, int events);

struct rv__conn *rv__conn_next(const struct rv__conn *conn)
{
    return conn->next;
}

bool rv__conn_ending(const struct rv__conn *conn)
{
    return conn->ending;
}

uint64_t rv__conn_bytes(const struct rv__conn *conn)
{
    return conn->bytes;
}

int64_t rv__conn_pid(const struct rv__conn *conn)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.pid : 0;
}

int64_t rv__conn_uid(const struct rv__conn *conn)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? (int64_t)who.uid : -1;
}

void rv__conn_from(const struct rv__conn *conn, char ret[RV__FROM_SIZE])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } from;
    socklen_t len = sizeof from;
    char host[INET6_ADDRSTRLEN] = "";
    ret[0] = '\0';
    memset(&from, 0, sizeof from);
    if (getpeername(conn->fd, &from.any, &len) != 0)
        return;
    if (from.any.sa_family == AF_INET &&
        inet_ntop(AF_INET, &from.v4.sin_addr, host, sizeof host) != NULL)
        snprintf(ret, RV__FROM_SIZE, "%s:%u", host, ntohs(from.v4.sin_port));
    else if (from.any.sa_family == AF_INET6 &&
             inet_ntop(AF_INET6, &from.v6.sin6_addr, host, sizeof host) != NULL)
        snprintf(ret, RV__FROM_SIZE, "[%s]:%u", host, ntohs(from.v6.sin6_port));
}

/* ---------------------------------------------------------------------------------- end --- */

static void on_closed(uv_handle_t *handle)
{
    struct rv__conn *conn = (struct rv__conn *)handle;
    struct rv__wires *wires = conn->wires;
    (void)close(conn->fd); /* what could be sent was */
    *conn->link = conn->next;
    if (conn->next != NULL)
        conn->next->link = conn->link;
    wires->count--;
    conn->user->ended(conn->arg, conn, conn->has_why ? &conn->why : NULL);
    rv__frames_done(&conn->frames);
    rv__buf_done(&conn->out);
    rv__free(conn);
    rv__wires_look(wires);
}

static void take_out(struct rv__conn *conn)
{
    struct rv__conn **at = &conn->wires->unsent;
    while (conn->in_unsent && *at != conn)
        at = &(*at)->unsent_next;
    if (conn->in_unsent)
        *at = conn->unsent_next;
    conn->in_unsent = false;
}

static void send_out(struct rv__conn *conn);

void rv__conn_end(struct rv__conn *conn, const rv_error *why)
{
    if (conn->ending)
        return;
    if (why != NULL)
        conn->why = *why;
    conn->has_why = why != NULL;
    conn->ending = true;
    take_out(conn);
    send_out(conn);
    rv__tls_free(conn->tls);
    conn->tls = NULL;
    uv_close((uv_handle_t *)&conn->poll, on_closed);
}

void rv__conn_refuse(struct rv__conn *conn, const rv_error *err)
{
    if (conn->ending)
        return;
    rv__wire_error(rv__conn_out(conn), err);
    rv__conn_end(conn, err);
}

/* ------------------------------------------------------------------------------- sending --- */

/* As far as the socket takes it. It has hung up: reading tells. */
static void send_out(struct rv__conn *conn)
{
    struct rv__buf *out = &conn->out;
    while (conn->sent < out->len && !conn->shaking) {
        const char *from = out->text + conn->sent;
        size_t rest = out->len - conn->sent;
        ssize_t n = conn->tls != NULL ? rv__tls_write(conn->tls, from, rest)
                                      : send(conn->fd, from, rest, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && conn->tls == NULL && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        conn->sent += (size_t)n;
        conn->bytes += (size_t)n;
    }
    size_t rest = out->len - conn->sent;
    if (rest == 0 && out->cap > KEEP_BYTES)
        rv__buf_done(out), rv__buf_init(out, SIZE_MAX / 2);
    else if (rest == 0)
        rv__buf_cut(out, 0);
    else if (conn->sent < KEEP_BYTES || conn->sent < rest)
        return;
    else { /* moved once for as many bytes as were sent */
        memmove(out->text, out->text + conn->sent, rest);
        rv__buf_cut(out, rest);
    }
    conn->sent = 0;
}

/* Be told when it can be written to, if there is something to write. */
static void watch_socket(struct rv__conn *conn)
{
    bool more = conn->shaking ? conn->shake_writes : conn->sent < conn->out.len;
    if (more == conn->writable || conn->ending)
        return;
    conn->writable = more;
    uv_poll_start(&conn->poll, UV_READABLE | (more ? UV_WRITABLE : 0), on_ready);
}

static void flush(struct rv__conn *conn)
{
    rv_error err;
    if (conn->user->flushing != NULL)
        conn->user->flushing(conn->arg, conn);
    if (conn->out.rc != RV_OK) { /* what would follow is not what was meant */
        (void)rv__fail(&err, conn->out.rc, "no memory for a frame");
        rv__conn_end(conn, &err);
        return;
    }
    send_out(conn);
    if (conn->out.len - conn->sent > RV__CONN_UNSENT) {
        (void)rv__fail(&err, RV_ETOOBIG, "%d MiB wait to be read: the other side is not reading",
                       RV__CONN_UNSENT >> 20);
        rv__conn_end(conn, &err);
    } else {
        watch_socket(conn);
    }
}

void rv__conns_flush(struct rv__wires *wires)
{
    while (wires->unsent != NULL) {
        struct rv__conn *conn = wires->unsent;
        wires->unsent = conn->unsent_next;
        conn->in_unsent = false;
        flush(conn);
    }
}

struct rv__buf *rv__conn_out(struct rv__conn *conn)
{
    if (!conn->in_unsent && !conn->ending) {
        conn->unsent_next = conn->wires->unsent;
        conn->wires->unsent = conn;
        conn->in_unsent = true;
    }
    return &conn->out;
}

void rv__conn_say(struct rv__conn *conn, enum rv__frame_type type)
{
    struct rv__buf *out = rv__conn_out(conn);
    rv__wire_end(out, rv__wire_begin(out, type));
}

/* ------------------------------------------------------------------------------- hearing --- */

/* Every whole frame that is there. */
static void hear(struct rv__conn *conn)
{
    struct rv__frame frame;
    rv_error err;
    int rc = 0;
    while (!conn->ending && (rc = rv__frames_next(&conn->frames, &frame, &err)) == 1)
        conn->user->heard(conn->arg, conn, &frame);
    if (!conn->ending && rc < 0)
        rv__conn_refuse(conn, &err);
}

/* The beginning of TLS goes on. False: it is not over, or has failed. */
static bool shake(struct rv__conn *conn)
{
    rv_error err;
    int rc = rv__tls_shake(conn->tls, &conn->shake_writes, &err);
    if (rc == 1) {
        conn->shaking = false;
        if (conn->out.len > 0)
            (void)rv__conn_out(conn); /* what was said meanwhile is sent at the end of this turn */
    } else if (rc == RV_EPARSE) {     /* it is told so in plain frames */
        conn->shaking = false;
        rv__tls_free(conn->tls);
        conn->tls = NULL;
        rv__conn_refuse(conn, &err);
    } else if (rc < 0) {
        rv__conn_end(conn, &err);
    }
    watch_socket(conn);
    return rc == 1;
}

/* As rv__frames_read(), and a record is read whole: nothing is left where the loop would not see it. */
static int read_record(struct rv__conn *conn)
{
    char bytes[RECORD_BYTES];
    ssize_t n = rv__tls_read(conn->tls, bytes, sizeof bytes);
    if (n <= 0)
        return (int)n;
    return rv__frames_feed(&conn->frames, (struct rv__str){ bytes, (size_t)n }) < 0 ? RV_ENOMEM : 1;
}

static void read_some(struct rv__conn *conn, int most)
{
    if (conn->shaking && !shake(conn))
        return;
    for (int i = 0; i < most && !conn->ending; i++) {
        int rc = conn->tls != NULL ? read_record(conn) : rv__frames_read(&conn->frames, conn->fd);
        if (rc == 0)
            return;
        rv_error err;
        if (rc == RV_ENOMEM) {
            (void)rv__nomem(&err);
            rv__conn_end(conn, &err);
        } else if (rc < 0) {
            rv__conn_end(conn, NULL);
        } else {
            conn->heard_ms = rv__wires_now_ms(conn->wires);
            conn->asked_ms = 0;
            hear(conn);
        }
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct rv__conn *conn = (struct rv__conn *)poll;
    if (conn->ending)
        return;
    if (status == 0 && (events & UV_WRITABLE))
        (void)rv__conn_out(conn);  /* goes on at the end of this turn */
    read_some(conn, READS_A_TURN); /* an error of the socket is told there, too */
}

void rv__conn_drain(struct rv__conn *conn)
{
    read_some(conn, INT32_MAX); /* nobody writes to it any more: it ends */
}

void rv__conn_use(struct rv__conn *conn, const struct rv__conn_user *user, void *arg)
{
    conn->user = user;
    conn->arg = arg;
}

struct rv__conn *rv__conn_new(struct rv__wires *wires, int fd, const struct rv__conn_user *user,
                              void *arg)
{
    struct rv__conn *conn = rv__zalloc(1, sizeof *conn);
    if (conn == NULL || uv_poll_init(&wires->loop, &conn->poll, fd) < 0) {
        rv__free(conn);
        return NULL;
    }
    conn->wires = wires;
    conn->fd = fd;
    conn->user = user;
    conn->arg = arg;
    rv__frames_init(&conn->frames);
    rv__buf_init(&conn->out, SIZE_MAX / 2); /* bounded where it is sent */
    conn->heard_ms = rv__wires_now_ms(wires);
    conn->next = wires->conns;
    conn->link = &wires->conns;
    if (wires->conns != NULL)
        wires->conns->link = &conn->next;
    wires->conns = conn;
    wires->count++;
    uv_poll_start(&conn->poll, UV_READABLE, on_ready);
    return conn;
}

bool rv__conn_secure(struct rv__conn *conn, struct rv__tls_keys *keys, const char *host)
{
    conn->tls = rv__tls_new(keys, conn->fd, host);
    conn->shaking = conn->tls != NULL;
    if (conn->shaking && host != NULL) { /* the one who connects speaks first */
        conn->shake_writes = true;
        watch_socket(conn);
    }
    return conn->shaking;
}

void rv__conn_beat(struct rv__conn *conn, int64_t heartbeat_ms)
{
    int64_t now_ms = rv__wires_now_ms(conn->wires);
    rv_error err;
    if (conn->ending || now_ms - conn->heard_ms < heartbeat_ms)
        return;
    if (conn->asked_ms == 0) {
        conn->asked_ms = now_ms;
        rv__conn_say(conn, FRAME_PING);
    } else if (now_ms - conn->asked_ms >= 2 * heartbeat_ms) {
        (void)rv__fail(&err, RV_ETIMEDOUT, "nothing was received for %lld ms",
                       (long long)(now_ms - conn->heard_ms));
        rv__conn_end(conn, &err);
    }
}

void rv__conn_bound(struct rv__conn *conn, size_t most)
{
    conn->frames.most = most;
}

/* ------------------------------------------------------------------------------ processes --- */

struct rv__pid_watch {
    uv_poll_t poll; /* first */
    struct rv__wires *wires;
    int fd;
    void (*died)(void *arg);
    void *arg;
};

static void on_died(uv_poll_t *poll, int status, int events)
{
    struct rv__pid_watch *watch = (struct rv__pid_watch *)poll;
    (void)status;
    (void)events;
    uv_poll_stop(poll);
    watch->died(watch->arg);
}

static void watch_closed(uv_handle_t *handle)
{
    struct rv__pid_watch *watch = (struct rv__pid_watch *)handle;
    struct rv__wires *wires = watch->wires;
    (void)close(watch->fd); /* nothing is in it */
    wires->watches--;
    rv__free(watch);
    rv__wires_look(wires);
}

struct rv__pid_watch *rv__pid_watch_new(struct rv__wires *wires, int64_t pid,
                                        void (*died)(void *arg), void *arg)
{
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
    struct rv__pid_watch *watch = fd >= 0 ? rv__zalloc(1, sizeof *watch) : NULL;
    if (watch == NULL || uv_poll_init(&wires->loop, &watch->poll, fd) < 0) {
        if (fd >= 0)
            (void)close(fd);
        rv__free(watch);
        return NULL;
    }
    watch->wires = wires;
    watch->fd = fd;
    watch->died = died;
    watch->arg = arg;
    wires->watches++;
    uv_poll_start(&watch->poll, UV_READABLE, on_died);
    return watch;
}

void rv__pid_watch_free(struct rv__pid_watch *watch)
{
    if (watch != NULL && !uv_is_closing((uv_handle_t *)&watch->poll))
        uv_close((uv_handle_t *)&watch->poll, watch_closed);
}
