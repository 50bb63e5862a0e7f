/* control.c: the control socket, on the side of the process that drives the store.
 *
 * One thread listens, reads what comes and watches for those who hang up; a request that is whole is
 * answered on a thread of a pool, since an answer may take as long as a commit, or (`wait`) as a run. The
 * engine's loop knows nothing of it: requests are public calls like any other's.
 *
 * Who may ask: processes of the same user, and root. The socket's mode says so (0600, from its birth: the
 * mode of the unbound socket is what bind() makes the file with, so that no umask, which is the whole
 * process's, need be touched), and the kernel says who is at the other end.
 *
 * The socket is made under another name and renamed: at no moment is there a name without a listener. One
 * of a process that died stays behind and refuses; the next driver, who has the store's lock, replaces it. */
#include "engine/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

enum {
    WAITERS = 192,
    REQUEST_MS = 10000,
    BACKLOG = 128,
    SEND_MS = 10000, /* for an answer to be taken */
    DEAF_MS = 100,   /* after a connection could not be taken */
    POLLS_OURS = 2,  /* what wakes us, and the socket; before those of the connections */
};

struct peer {
    struct rv__work work; /* first */
    struct rv__control *control;
    struct peer *next;
    int fd;
    struct rv__frames frames;
    struct rv__frame request; /* while it is being answered */
    rv_cancel *gone;          /* fires when the other end hangs up */
    int64_t until_ms;         /* it is to have said something by then (monotonic) */
    atomic_bool busy;         /* a thread of the pool has it */
    bool over;                /* to be closed */
};

struct rv__control {
    rv_engine *engine;
    int folder, listener, awake;
    char name[NAME_MAX + 1]; /* in that folder; "" = not there */
    pthread_t thread;
    bool has_thread;
    atomic_bool stopping;
    struct rv__control_limits limits;
    atomic_int waiters;
    struct rv__executor *threads;
    struct peer *peers;
    size_t count;
    int64_t deaf_until_ms; /* nobody is let in before: there were no descriptors (monotonic) */
    struct pollfd polls[POLLS_OURS + RV__CONTROL_CONNECTIONS];
};

/* ---------------------------------------------------------------------------------- places --- */

int rv__control_place(const char *store, struct rv__control_place *ret, rv_error *err)
{
    char *real = realpath(store, NULL);
    if (real == NULL)
        return rv__fail(err, RV_ESTORE, "the store '%.100s' has no socket: %s", store,
                        strerrordesc_np(errno));
    int len = snprintf(ret->path, sizeof ret->path, "%s.sock", real);
    free(real);
    const char *slash = strrchr(ret->path, '/');
    ret->name_at = slash != NULL ? (size_t)(slash - ret->path) + 1 : 0;
    if (len < 0 || (size_t)len >= sizeof ret->path || (size_t)len - ret->name_at > NAME_MAX)
        return rv__fail(err, RV_EINVAL, "the name of the store '%.60s…' is too long for a socket",
                        store);
    return RV_OK;
}

bool rv__control_address(const struct rv__control_place *place, int folder, const char *name,
                         struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int len = snprintf(ret->sun_path, sizeof ret->sun_path, "%.*s%s", (int)place->name_at,
                       place->path, name);
    if (len >= 0 && (size_t)len < sizeof ret->sun_path)
        return true;
    len = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", folder, name);
    return len >= 0 && (size_t)len < sizeof ret->sun_path;
}

/* ------------------------------------------------------------------------------- answering --- */

static void wake(struct rv__control *control)
{
    uint64_t one = 1;
    (void)!write(control->awake, &one, sizeof one); /* full: it is awake */
}

/* On a thread of the pool. */
static void run_request(struct rv__work *work)
{
    struct peer *peer = (struct peer *)work;
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by the frame's own limit */
    struct rv__asker asker = { peer->gone, &peer->control->waiters, peer->control->limits.waiters };
    rv__control_answer(peer->control->engine, &peer->request, &asker, &out);
    peer->over = out.rc < 0 || rv__frames_send(peer->fd, &out) < 0;
    rv__buf_done(&out);
}

static void request_done(struct rv__work *work, const rv_error *err)
{
    struct peer *peer = (struct peer *)work;
    struct rv__control *control = peer->control;
    peer->over = peer->over || err != NULL;
    atomic_store(&peer->busy, false); /* from here on it is the listener's */
    wake(control);
}

/* ------------------------------------------------------------------------------- listening --- */

static void peer_free(struct peer *peer)
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
    rv__control_error(&out, &err, NULL);
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

static struct peer *peer_new(struct rv__control *control, int fd)
{
    struct timeval limit = { .tv_sec = SEND_MS / 1000 };
    struct peer *peer = rv__zalloc(1, sizeof *peer);
    if (peer == NULL)
        return NULL;
    *peer = (struct peer){ .work = { run_request, request_done }, .control = control, .fd = fd };
    peer->gone = rv_cancel_new(NULL);
    if (peer->gone == NULL || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
        rv_cancel_free(peer->gone);
        rv__free(peer);
        return NULL;
    }
    rv__frames_init(&peer->frames);
    peer->until_ms = rv__mono_ms(control->engine->clock) + control->limits.request_ms;
    return peer;
}

static void take_connection(struct rv__control *control)
{
    int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC);
    struct peer *peer = NULL;
    if (fd < 0) { /* it has gone again; or no descriptors: then it stays in line for a while */
        if (errno != EAGAIN && errno != ECONNABORTED)
            control->deaf_until_ms = rv__mono_ms(control->engine->clock) + DEAF_MS;
        return;
    }
    if (!may_ask(fd))
        refuse(fd, RV_EINVAL, "this socket is for its own user");
    else if (control->count >= control->limits.connections)
        refuse(fd, RV_EBUSY, "too many connections: try again");
    else if ((peer = peer_new(control, fd)) == NULL)
        refuse(fd, RV_ENOMEM, rv_strerror(RV_ENOMEM));
    if (peer == NULL) {
        (void)close(fd); /* it was told */
        return;
    }
    peer->next = control->peers;
    control->peers = peer;
    control->count++;
}

/* The next request that is whole, if there is one, goes to the pool. */
static void begin_request(struct peer *peer)
{
    struct rv__work *work = &peer->work;
    rv_error err;
    int rc = rv__frames_next(&peer->frames, &peer->request, &err);
    if (rc == 0)
        return;
    if (rc > 0) {
        atomic_store(&peer->busy, true);
        if (peer->control->threads->start(peer->control->threads, &work, 1) == 1)
            return;
        atomic_store(&peer->busy, false);
        (void)rv__fail(&err, RV_EBUSY, "no thread could be made to answer: try again");
    }
    refuse(peer->fd, err.code, err.message);
    peer->over = true;
}

static void take_bytes(struct peer *peer)
{
    int rc = rv__frames_read(&peer->frames, peer->fd);
    if (rc < 0)
        peer->over = true;
    else
        begin_request(peer);
}

/* What its descriptor says, or that a thread is done with it. */
static void look_at(struct peer *peer, short events, int64_t now_ms)
{
    bool busy = atomic_load(&peer->busy);
    if (busy && (events & (POLLRDHUP | POLLHUP | POLLERR)))
        rv_cancel_fire(peer->gone, RV_ECANCELED, "the caller has gone");
    if (busy || peer->over)
        return;
    if (peer->request.json.at != NULL) { /* it was answered: the next one, if it is there */
        peer->request = (struct rv__frame){ .type = FRAME_TYPES };
        peer->until_ms = now_ms + peer->control->limits.request_ms;
        begin_request(peer);
    } else if (events != 0) {
        take_bytes(peer);
    }
    if (!atomic_load(&peer->busy) && now_ms >= peer->until_ms)
        peer->over = true;
}

/* Those that are over go; the others are to be polled. Returns how long that may take. */
static int prepare(struct rv__control *control, nfds_t *count)
{
    int64_t now_ms = rv__mono_ms(control->engine->clock), next_ms = -1;
    bool stopping = atomic_load(&control->stopping);
    *count = POLLS_OURS;
    for (struct peer **at = &control->peers; *at != NULL;) {
        struct peer *peer = *at;
        bool busy = atomic_load(&peer->busy);
        if (!busy && (peer->over || stopping)) {
            *at = peer->next;
            control->count--;
            peer_free(peer);
            continue;
        }
        if (busy && stopping)
            rv_cancel_fire(peer->gone, RV_ECLOSED, "the engine has closed");
        bool gone = busy && rv_cancel_fired(peer->gone); /* that is known, and need not be told */
        control->polls[(*count)++] = (struct pollfd){ gone ? -1 : peer->fd,
                                                      busy ? POLLRDHUP : POLLIN, 0 };
        if (!busy && (next_ms < 0 || peer->until_ms < next_ms))
            next_ms = peer->until_ms;
        at = &peer->next;
    }
    if (control->deaf_until_ms > now_ms && (next_ms < 0 || control->deaf_until_ms < next_ms))
        next_ms = control->deaf_until_ms;
    bool deaf = stopping || control->deaf_until_ms > now_ms;
    control->polls[0] = (struct pollfd){ control->awake, POLLIN, 0 };
    control->polls[1] = (struct pollfd){ deaf ? -1 : control->listener, POLLIN, 0 };
    if (next_ms < 0)
        return -1;
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

static void *control_main(void *arg)
{
    struct rv__control *control = arg;
    struct pollfd *polls = control->polls;
    uint64_t drained;
    nfds_t count;
    pthread_setname_np(pthread_self(), "rival-control");
    for (;;) {
        int timeout_ms = prepare(control, &count);
        if (control->count == 0 && atomic_load(&control->stopping))
            return NULL;
        if (poll(polls, count, timeout_ms) < 0)
            continue; /* EINTR cannot be, with every signal blocked; no memory: again */
        if (polls[0].revents != 0)
            (void)!read(control->awake, &drained, sizeof drained);
        int64_t now_ms = rv__mono_ms(control->engine->clock);
        struct peer *peer = control->peers;
        for (nfds_t i = POLLS_OURS; i < count; i++, peer = peer->next)
            look_at(peer, polls[i].revents, now_ms);
        if (polls[1].revents != 0)
            take_connection(control);
    }
}

/* --------------------------------------------------------------------------------- opening --- */

/* Bound under a name of its own, then put in the place of whatever is there. */
static int bind_at(struct rv__control *control, const struct rv__control_place *place,
                   rv_error *err)
{
    struct sockaddr_un address;
    char first[64];
    const char *doing = "make";
    snprintf(first, sizeof first, ".rival-%ld-%d.sock", (long)getpid(), control->listener);
    if (!rv__control_address(place, control->folder, first, &address))
        return rv__fail(err, RV_EINVAL, "no address fits the control socket '%.150s'", place->path);
    bool bound = false;
    if (fchmod(control->listener, S_IRUSR | S_IWUSR) < 0)
        goto failed;
    (void)unlinkat(control->folder, first, 0); /* of a dead process that had our number */
    if (bind(control->listener, (const struct sockaddr *)&address, sizeof address) < 0)
        goto failed;
    bound = true;
    doing = "listen at";
    if (listen(control->listener, BACKLOG) < 0)
        goto failed;
    doing = "put in place";
    if (renameat(control->folder, first, control->folder, place->path + place->name_at) < 0)
        goto failed;
    snprintf(control->name, sizeof control->name, "%s", place->path + place->name_at);
    return RV_OK;
failed:
    rv__fail(err, RV_ESYS, "cannot %s the control socket '%.150s': %s", doing, place->path,
             strerrordesc_np(errno));
    if (bound)
        (void)unlinkat(control->folder, first, 0);
    return RV_ESYS;
}

static int control_open(struct rv__control *control, const struct rv__control_place *place,
                        rv_error *err)
{
    char folder[RV__PATH_ROOM];
    snprintf(folder, sizeof folder, "%.*s", (int)place->name_at, place->path);
    control->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    control->awake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->folder < 0 || control->awake < 0 || control->listener < 0)
        return rv__fail(err, RV_ESYS, "cannot make the control socket '%.150s': %s", place->path,
                        strerrordesc_np(errno));
    return bind_at(control, place, err);
}

int rv__control_new(rv_engine *engine, const char *store, const struct rv__control_limits *limits,
                    struct rv__control **ret, rv_error *err)
{
    static const struct rv__control_limits none;
    struct rv__control *control = rv__zalloc(1, sizeof *control);
    struct rv__control_place place = { .name_at = 0 };
    sigset_t all, before;
    int rc;

    if (control == NULL)
        return rv__nomem(err);
    if (limits == NULL)
        limits = &none;
    control->engine = engine;
    control->limits = (struct rv__control_limits){
        .connections = limits->connections ? limits->connections : RV__CONTROL_CONNECTIONS,
        .waiters = limits->waiters ? limits->waiters : WAITERS,
        .request_ms = limits->request_ms ? limits->request_ms : REQUEST_MS,
    };
    control->folder = control->listener = control->awake = -1;
    rc = rv__control_place(store, &place, err);
    if (rc == RV_OK)
        rc = rv__threads_new((int)control->limits.connections, &control->threads, err);
    if (rc == RV_OK)
        rc = control_open(control, &place, err);
    if (rc < 0)
        goto out;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a guest's thread takes nobody's signals */
    int failed = pthread_create(&control->thread, NULL, control_main, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        rc = rv__fail(err, RV_ESYS, "no thread could be made for the control socket: %s",
                      strerrordesc_np(failed));
        goto out;
    }
    control->has_thread = true;
    *ret = control;
    control = NULL;
out:
    rv__control_free(control);
    return rc;
}

void rv__control_free(struct rv__control *control)
{
    if (control == NULL)
        return;
    if (control->name[0] != '\0') /* nobody else has replaced it: we have the store's lock */
        (void)unlinkat(control->folder, control->name, 0);
    if (control->has_thread) {
        atomic_store(&control->stopping, true);
        wake(control);
        pthread_join(control->thread, NULL);
    }
    rv__executor_free(control->threads); /* a last `done` may still be on its way */
    const int files[] = { control->folder, control->listener, control->awake };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            (void)close(files[i]); /* nothing is in them */
    rv__free(control);
}
