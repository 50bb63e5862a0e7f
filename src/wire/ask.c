/* ask.c: one question to the process that drives a store: connect, send, wait for the answer.
 *
 * Who waits can be told to give up, by the caller's token or by the engine's close: both end a poll
 * through an event descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/json.h"
#include "base/clock.h"
#include "wire/place.h"

enum {
    SEND_MS = 10000,
    POLL_MOST_MS = 60000,
    SHORT_ANSWER = 1024, /* bytes: any but a list, a reason, or many violations */
};

/* --------------------------------------------------------------------------------- waiting --- */

/* Tokens that end a poll. */
struct waker {
    int fd;
    struct ring {
        struct rv__cancel_watch watch; /* first */
        rv_cancel *token;
        int fd;
    } rings[2];
};

static void ring(struct rv__cancel_watch *watch)
{
    uint64_t one = 1;
    (void)!write(((struct ring *)watch)->fd, &one, sizeof one); /* full: it is awake */
}

static int waker_init(struct waker *w, rv_cancel *by, rv_cancel *closing, rv_error *err)
{
    rv_cancel *tokens[2] = { by, closing };
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0)
        return rv__fail(err, RV_ESYS, "cannot wait for an answer: %s", strerrordesc_np(errno));
    for (int i = 0; i < 2; i++) {
        w->rings[i] = (struct ring){ .watch.fired = ring, .token = tokens[i], .fd = w->fd };
        if (tokens[i] != NULL && !rv__cancel_watch(tokens[i], &w->rings[i].watch))
            ring(&w->rings[i].watch);
    }
    return RV_OK;
}

static void waker_done(struct waker *w)
{
    for (int i = 0; i < 2; i++)
        if (w->rings[i].token != NULL)
            rv__cancel_unwatch(w->rings[i].token, &w->rings[i].watch);
    (void)close(w->fd); /* nothing is in it */
}

/* 1: `fd` has something; 0: the time has passed; negative: a token fired. `fd` -1: a pause. */
static int waker_wait(const struct waker *w, int fd, int64_t deadline_ns, rv_error *err)
{
    for (;;) {
        struct pollfd polls[2] = { { w->fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
        int64_t left_ns = deadline_ns - rv__mono_ns(rv__clock_real());
        int64_t left_ms = left_ns <= 0 ? 0 : left_ns / 1000000 + 1;
        int n = poll(polls, 2, left_ms < POLL_MOST_MS ? (int)left_ms : POLL_MOST_MS);
        if (n < 0 && errno != EINTR)
            return rv__fail(err, RV_ESYS, "cannot wait for an answer: %s", strerrordesc_np(errno));
        if (n > 0 && polls[0].revents != 0)
            return rv_cancel_fired(w->rings[1].token)
                       ? rv__fail(err, RV_ECLOSED, "the engine is closing")
                       : rv__fail(err, RV_ECANCELED, "waiting was cancelled");
        if (n > 0)
            return 1;
        if (left_ms == 0)
            return 0;
    }
}

/* ---------------------------------------------------------------------------------- asking --- */

/* RV_ECLOSED: nobody listens. */
static int dial(const struct rv__socket_place *place, int *ret, rv_error *err)
{
    struct timeval limit = { .tv_sec = SEND_MS / 1000 };
    struct sockaddr_un address;
    struct ucred who;
    socklen_t len = sizeof who;
    char folder[RV__PATH_ROOM];
    int rc = RV_ESYS, fd = -1, at = -1;

    snprintf(folder, sizeof folder, "%.*s", (int)place->name_at, place->path);
    at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (at < 0 || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0) {
        rc = rv__fail(err, RV_ESYS, "cannot ask at '%.150s': %s", place->path,
                      strerrordesc_np(errno));
        goto out;
    }
    if (!rv__socket_address(place, at, place->path + place->name_at, &address)) {
        rc = rv__fail(err, RV_ECLOSED, "no address fits the control socket '%.150s'", place->path);
        goto out;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        bool nobody = errno == ECONNREFUSED || errno == ENOENT;
        rc = rv__fail(err, nobody ? RV_ECLOSED : RV_ESYS, "cannot ask at '%.150s': %s", place->path,
                      nobody ? "nobody listens" : strerrordesc_np(errno));
        goto out;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
        (who.uid != geteuid() && who.uid != 0 && geteuid() != 0)) {
        rc = rv__fail(err, RV_ESYS, "'%.150s' belongs to another user: it is not used",
                      place->path);
        goto out;
    }
    *ret = fd;
    fd = -1;
    rc = RV_OK;
out:
    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
    if (at >= 0)
        (void)close(at);
    return rc;
}

/* The next frame that is an answer. */
static int next_frame(struct rv__line *line, rv_error *err)
{
    struct rv__reply *reply = &line->reply;
    int rc;
    do
        rc = rv__frames_next(&reply->frames, &reply->frame, err);
    while (rc == 1 && reply->frame.type == FRAME_HELLO);
    return rc;
}

static int take_frame(struct rv__line *line, const struct waker *waker, int64_t timeout_ms,
                      rv_error *err)
{
    struct rv__reply *reply = &line->reply;
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    int rc;
    while ((rc = next_frame(line, err)) == 0) {
        rc = waker_wait(waker, line->fd, deadline_ns, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return rv__fail(err, RV_ETIMEDOUT,
                            "process %lld, which drives the store, has not answered for %lld ms",
                            (long long)line->pid, (long long)timeout_ms);
        rc = rv__frames_read(&reply->frames, line->fd);
        if (rc == RV_ENOMEM)
            return rv__nomem(err);
        if (rc < 0 && !line->sent)
            return rv__fail(err, RV_ECLOSED, "the process that drove the store is ending");
        if (rc < 0)
            return rv__fail(err, RV_EFAILED,
                            "the process that drove the store ended before it answered: `rival "
                            "show` shows the result");
    }
    return rc < 0 ? rc : RV_OK;
}

int rv__reply_error(const struct rv__reply *reply, rv_error *err)
{
    struct rv__str value, message;
    struct rv__arena arena;
    int64_t code = RV_EFAILED;
    if (!rv__json_get(reply->frame.json, "code", &value) || rv__json_int(value, &code) < 0 ||
        code >= 0 || code < INT32_MIN)
        code = RV_EFAILED;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__json_get(reply->frame.json, "message", &value) ||
        rv__json_string(value, &arena, &message) < 0)
        message = rv__str(rv_strerror((int)code));
    (void)rv__fail(err, (int)code, "%.*s", RV__ARG(message));
    rv__arena_done(&arena);
    return (int)code;
}

void rv__reply_done(struct rv__reply *reply)
{
    rv__frames_done(&reply->frames);
}

int rv__line_open(const struct rv__asked *asked, const struct rv__buf *request,
                  struct rv__line *line, rv_error *err)
{
    static const char room[SHORT_ANSWER];
    struct rv__buf *in = &line->reply.frames.in, out;
    *line = (struct rv__line){ .fd = -1, .pid = asked->pid };
    line->reply.frame = (struct rv__frame){ .type = FRAME_TYPES };
    rv__frames_init(&line->reply.frames);
    rv__buf_add(in, room, sizeof room); /* first: what was done is to be told */
    int rc = rv__buf_err(in, err);
    rv__buf_cut(in, 0);
    if (rc == RV_OK)
        rc = rv__buf_err(request, err);
    rv__buf_init(&out, SIZE_MAX / 2); /* bounded by the frame */
    size_t start = rv__wire_begin(&out, FRAME_HELLO);
    rv__wire_int(&out, "protocol", RV__PROTOCOL);
    rv__wire_text(&out, "role", rv__str("client"));
    rv__wire_end(&out, start);
    rv__buf_str(&out, rv__buf_view(request));
    if (rc == RV_OK)
        rc = rv__buf_err(&out, err);
    if (rc == RV_OK)
        rc = dial(asked->place, &line->fd, err);
    if (rc == RV_OK)
        line->sent = rv__frames_send(line->fd, &out) == RV_OK; /* if not, it may say why */
    rv__buf_done(&out);
    return rc;
}

int rv__line_take(struct rv__line *line, int64_t timeout_ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err)
{
    struct waker waker = { .fd = -1 };
    int rc = waker_init(&waker, by, closing, err);
    if (rc < 0)
        return rc;
    rc = take_frame(line, &waker, timeout_ms, err);
    waker_done(&waker);
    return rc == RV_OK && line->reply.frame.type == FRAME_ERROR ? rv__reply_error(&line->reply, err)
                                                                : rc;
}

bool rv__line_ended(const struct rv__line *line)
{
    struct pollfd look = { line->fd, POLLIN | POLLRDHUP, 0 };
    return line->fd < 0 || poll(&look, 1, 0) > 0;
}

void rv__line_close(struct rv__line *line)
{
    if (line->fd >= 0)
        (void)close(line->fd); /* nothing of ours is in it */
    line->fd = -1;
    rv__reply_done(&line->reply);
    rv__frames_init(&line->reply.frames);
}

int rv__ask(const struct rv__asked *asked, const struct rv__buf *request, int64_t timeout_ms,
            rv_cancel *by, rv_cancel *closing, struct rv__reply *reply, rv_error *err)
{
    struct rv__line line;
    int rc = rv__line_open(asked, request, &line, err);
    if (rc == RV_OK)
        rc = rv__line_take(&line, timeout_ms, by, closing, err);
    *reply = line.reply; /* the caller's from here on */
    rv__frames_init(&line.reply.frames);
    rv__line_close(&line);
    if (rc == RV_OK && reply->frame.type != FRAME_RESULT)
        return rv__fail(err, RV_EPARSE, "'%.100s' answers with '%s': it is not Rival's",
                        asked->place->path, rv__frame_type_name(reply->frame.type));
    return rc;
}

int rv__ask_pause(int64_t ms, rv_cancel *by, rv_cancel *closing, rv_error *err)
{
    struct waker waker = { .fd = -1 };
    int rc = waker_init(&waker, by, closing, err);
    if (rc == RV_OK) {
        rc = waker_wait(&waker, -1, rv__deadline_ns(ms), err);
        waker_done(&waker);
    }
    return rc;
}
