/* listen.c: a socket beside a store, on the side of the process that drives it.
 *
 * One thread listens, reads what comes and watches for those who hang up. A request that is whole is
 * handed to `begin`, to be answered on another thread, since an answer may take as long as a commit or as
 * a run; the connection is not read meanwhile.
 *
 * Who may ask: processes of the same user, and root. The socket's mode says so (0600, from its birth: the
 * mode of the unbound socket is what bind() makes the file with, so that no umask, which is the whole
 * process's, need be touched), and the kernel says who is at the other end.
 *
 * The socket is made under another name and renamed: at no moment is there a name without a listener. One
 * of a process that died stays behind and refuses; the next driver, who has the store's lock, replaces it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "wire/place.h"

enum {
    CONNECTIONS = 256,
    REQUEST_MS = 10000,
    BACKLOG = 128,
    SEND_MS = 10000, /* for an answer to be taken */
    DEAF_MS = 100,   /* after a connection could not be taken */
    POLLS_OURS = 2,  /* what wakes us, and the socket; before those of the connections */
};

/* A connection; while it is being answered, its request. */
struct rv__request {
    struct rv__listener *listener;
    struct rv__request *next;
    int fd;
    struct rv__frames frames;
    struct rv__frame frame; /* while it is being answered */
    rv_cancel *gone;        /* fires when the other end hangs up */
    int64_t until_ms;       /* it is to have said something by then (monotonic) */
    atomic_bool busy;       /* somebody answers it */
    bool over;              /* to be closed */
};

struct rv__listener {
    struct rv__listen_opts opts;
    int folder, socket, awake;
    char name[NAME_MAX + 1]; /* in that folder; "" = not there */
    pthread_t thread;
    bool has_thread;
    atomic_bool stopping;
    struct rv__request *peers;
    size_t count;
    int64_t deaf_until_ms; /* nobody is let in before: there were no descriptors (monotonic) */
    struct pollfd polls[POLLS_OURS + CONNECTIONS];
};

/* ------------------------------------------------------------------------------- answering --- */

static void wake(struct rv__listener *listener)
{
    uint64_t one = 1;
    (void)!write(listener->awake, &one, sizeof one); /* full: it is awake */
}

const struct rv__frame *rv__request_frame(const struct rv__request *request)
{
    return &request->frame;
}

rv_cancel *rv__request_gone(const struct rv__request *request)
{
    return request->gone;
}

void rv__request_answer(struct rv__request *request, const struct rv__buf *answer)
{
    struct rv__listener *listener = request->listener;
    request->over = answer == NULL || answer->rc < 0 || rv__frames_send(request->fd, answer) < 0;
    atomic_store(&request->busy, false); /* from here on it is the listener's */
    wake(listener);
}

/* ------------------------------------------------------------------------------- listening --- */

static void peer_free(struct rv__request *peer)
{
    (void)close(peer->fd); /* nothing of ours is in it any more */
    rv__frames_done(&peer->frames);
    rv_cancel_free(peer->gone);
    rv__free(peer);
}

/* A word to somebody who is sent away: as much of it as there is room for. */
static void refuse(int fd, int code, const char *message)
{
    rv_error err;
    struct rv__buf out;
    (void)rv__fail(&err, code, "%s", message);
    rv__buf_init(&out, sizeof err + 256);
    rv__wire_error(&out, &err);
    if (out.rc == RV_OK)
        (void)!send(fd, out.text, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    rv__buf_done(&out);
}

static bool may_ask(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           (who.uid == geteuid() || who.uid == 0);
}

static struct rv__request *peer_new(struct rv__listener *listener, int fd)
{
    struct timeval limit = { .tv_sec = SEND_MS / 1000 };
    struct rv__request *peer = rv__zalloc(1, sizeof *peer);
    if (peer == NULL)
        return NULL;
    *peer = (struct rv__request){ .listener = listener, .fd = fd };
    peer->gone = rv_cancel_new(NULL);
    if (peer->gone == NULL || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
        rv_cancel_free(peer->gone);
        rv__free(peer);
        return NULL;
    }
    rv__frames_init(&peer->frames);
    peer->until_ms = rv__mono_ms(listener->opts.clock) + listener->opts.request_ms;
    return peer;
}

static void take_connection(struct rv__listener *listener)
{
    int fd = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
    struct rv__request *peer = NULL;
    if (fd < 0) { /* it has gone again; or no descriptors: then it stays in line for a while */
        if (errno != EAGAIN && errno != ECONNABORTED)
            listener->deaf_until_ms = rv__mono_ms(listener->opts.clock) + DEAF_MS;
        return;
    }
    if (!may_ask(fd))
        refuse(fd, RV_EINVAL, "this socket is for its own user");
    else if (listener->count >= listener->opts.connections)
        refuse(fd, RV_EBUSY, "too many connections: try again");
    else if ((peer = peer_new(listener, fd)) == NULL)
        refuse(fd, RV_ENOMEM, rv_strerror(RV_ENOMEM));
    if (peer == NULL) {
        (void)close(fd); /* it was told */
        return;
    }
    peer->next = listener->peers;
    listener->peers = peer;
    listener->count++;
}

/* The next request that is whole, if there is one, goes to who answers. */
static void begin_request(struct rv__request *peer)
{
    struct rv__listener *listener = peer->listener;
    rv_error err;
    int rc = rv__frames_next(&peer->frames, &peer->frame, &err);
    if (rc == 0)
        return;
    if (rc > 0) {
        atomic_store(&peer->busy, true);
        if (listener->opts.begin(listener->opts.arg, peer))
            return;
        atomic_store(&peer->busy, false);
        (void)rv__fail(&err, RV_EBUSY, "no thread could be made to answer: try again");
    }
    refuse(peer->fd, err.code, err.message);
    peer->over = true;
}

static void take_bytes(struct rv__request *peer)
{
    int rc = rv__frames_read(&peer->frames, peer->fd);
    if (rc < 0)
        peer->over = true;
    else
        begin_request(peer);
}

/* What its descriptor says, or that a thread is done with it. */
static void look_at(struct rv__request *peer, short events, int64_t now_ms)
{
    bool busy = atomic_load(&peer->busy);
    if (busy && (events & (POLLRDHUP | POLLHUP | POLLERR)))
        rv_cancel_fire(peer->gone, RV_ECANCELED, "the caller has gone");
    if (busy || peer->over)
        return;
    if (peer->frame.json.at != NULL) { /* it was answered: the next one, if it is there */
        peer->frame = (struct rv__frame){ .type = FRAME_TYPES };
        peer->until_ms = now_ms + peer->listener->opts.request_ms;
        begin_request(peer);
    } else if (events != 0) {
        take_bytes(peer);
    }
    if (!atomic_load(&peer->busy) && now_ms >= peer->until_ms)
        peer->over = true;
}

/* Those that are over go; the others are to be polled. Returns how long that may take. */
static int prepare(struct rv__listener *listener, nfds_t *count)
{
    int64_t now_ms = rv__mono_ms(listener->opts.clock), next_ms = -1;
    bool stopping = atomic_load(&listener->stopping);
    *count = POLLS_OURS;
    for (struct rv__request **at = &listener->peers; *at != NULL;) {
        struct rv__request *peer = *at;
        bool busy = atomic_load(&peer->busy);
        if (!busy && (peer->over || stopping)) {
            *at = peer->next;
            listener->count--;
            peer_free(peer);
            continue;
        }
        if (busy && stopping)
            rv_cancel_fire(peer->gone, RV_ECLOSED, "the engine has closed");
        bool gone = busy && rv_cancel_fired(peer->gone); /* that is known, and need not be told */
        listener->polls[(*count)++] = (struct pollfd){ gone ? -1 : peer->fd,
                                                       busy ? POLLRDHUP : POLLIN, 0 };
        if (!busy && (next_ms < 0 || peer->until_ms < next_ms))
            next_ms = peer->until_ms;
        at = &peer->next;
    }
    if (listener->deaf_until_ms > now_ms && (next_ms < 0 || listener->deaf_until_ms < next_ms))
        next_ms = listener->deaf_until_ms;
    bool deaf = stopping || listener->deaf_until_ms > now_ms;
    listener->polls[0] = (struct pollfd){ listener->awake, POLLIN, 0 };
    listener->polls[1] = (struct pollfd){ deaf ? -1 : listener->socket, POLLIN, 0 };
    if (next_ms < 0)
        return -1;
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

static void *listen_main(void *arg)
{
    struct rv__listener *listener = arg;
    struct pollfd *polls = listener->polls;
    uint64_t drained;
    nfds_t count;
    pthread_setname_np(pthread_self(), "rival-control");
    for (;;) {
        int timeout_ms = prepare(listener, &count);
        if (listener->count == 0 && atomic_load(&listener->stopping))
            return NULL;
        if (poll(polls, count, timeout_ms) < 0)
            continue; /* EINTR cannot be, with every signal blocked; no memory: again */
        if (polls[0].revents != 0)
            (void)!read(listener->awake, &drained, sizeof drained);
        int64_t now_ms = rv__mono_ms(listener->opts.clock);
        struct rv__request *peer = listener->peers;
        for (nfds_t i = POLLS_OURS; i < count; i++, peer = peer->next)
            look_at(peer, polls[i].revents, now_ms);
        if (polls[1].revents != 0)
            take_connection(listener);
    }
}

/* --------------------------------------------------------------------------------- opening --- */

/* Bound under a name of its own, then put in the place of whatever is there. */
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
    (void)unlinkat(listener->folder, first, 0); /* of a dead process that had our number */
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
    listener->awake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->folder < 0 || listener->awake < 0 || listener->socket < 0)
        return rv__fail(err, RV_ESYS, "cannot make the control socket '%.150s': %s", place->path,
                        strerrordesc_np(errno));
    return bind_at(listener, place, err);
}

int rv__listen(const char *store, const struct rv__listen_opts *opts, struct rv__listener **ret,
               rv_error *err)
{
    struct rv__listener *listener = rv__zalloc(1, sizeof *listener);
    struct rv__socket_place place = { .name_at = 0 };
    sigset_t all, before;
    int rc;

    if (listener == NULL)
        return rv__nomem(err);
    listener->opts = *opts;
    if (opts->connections == 0 || opts->connections > CONNECTIONS)
        listener->opts.connections = CONNECTIONS;
    if (opts->request_ms == 0)
        listener->opts.request_ms = REQUEST_MS;
    listener->folder = listener->socket = listener->awake = -1;
    rc = rv__socket_place(store, &place, err);
    if (rc == RV_OK)
        rc = socket_open(listener, &place, err);
    if (rc < 0)
        goto out;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a guest's thread takes nobody's signals */
    int failed = pthread_create(&listener->thread, NULL, listen_main, listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        rc = rv__fail(err, RV_ESYS, "no thread could be made for the control socket: %s",
                      strerrordesc_np(failed));
        goto out;
    }
    listener->has_thread = true;
    *ret = listener;
    listener = NULL;
out:
    rv__listener_free(listener);
    return rc;
}

void rv__listener_close(struct rv__listener *listener)
{
    if (listener == NULL)
        return;
    if (listener->name[0] != '\0') /* nobody else has replaced it: we have the store's lock */
        (void)unlinkat(listener->folder, listener->name, 0);
    listener->name[0] = '\0';
    if (listener->has_thread) {
        atomic_store(&listener->stopping, true);
        wake(listener);
        pthread_join(listener->thread, NULL);
        listener->has_thread = false;
    }
}

void rv__listener_free(struct rv__listener *listener)
{
    if (listener == NULL)
        return;
    rv__listener_close(listener);
    const int files[] = { listener->folder, listener->socket, listener->awake };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            (void)close(files[i]); /* nothing is in them */
    rv__free(listener);
}
