/* peer.h: the other end of an engine's socket, as a test plays it: frames as text. */
#ifndef RV_TEST_PEER_H
#define RV_TEST_PEER_H

#include "unit/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/wire.h"

enum { PEER_SOON_MS = 20000 };

struct peer {
    int fd; /* -1: none */
    struct rv__frames frames;
    char text[65536]; /* the last frame */
};

static inline void peer_init(struct peer *peer)
{
    peer->fd = -1;
    rv__frames_init(&peer->frames);
}

static inline void peer_hang_up(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    rv__frames_done(&peer->frames);
    peer_init(peer);
}

static inline void peer_dial(struct peer *peer, const char *store)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    peer_hang_up(peer);
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s.sock", store);
    if (connect(peer->fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail_msg("cannot connect: %m");
}

static inline void peer_send(struct peer *peer, const char *json)
{
    size_t len = strlen(json);
    char head[4] = { (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len };
    assert_int_equal(send(peer->fd, head, 4, MSG_NOSIGNAL), 4);
    assert_int_equal(send(peer->fd, json, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* The next frame within so long; "" when the other end has hung up; NULL: none came. */
static inline const char *peer_next(struct peer *peer, int within_ms)
{
    struct rv__frame frame;
    rv_error err;
    int rc;
    while ((rc = rv__frames_next(&peer->frames, &frame, &err)) == 0) {
        struct pollfd in = { peer->fd, POLLIN, 0 };
        if (poll(&in, 1, within_ms) == 0)
            return NULL;
        if (rv__frames_read(&peer->frames, peer->fd) < 0)
            return "";
    }
    assert_int_equal(rc, 1);
    snprintf(peer->text, sizeof peer->text, "%.*s", RV__ARG(frame.json));
    return peer->text;
}

/* The next frame has this in it. Frames of the type `besides` are passed over. */
static inline const char *peer_expect_besides(struct peer *peer, const char *besides,
                                              const char *part)
{
    const char *got;
    do
        got = peer_next(peer, PEER_SOON_MS);
    while (got != NULL && (strstr(got, "\"ping\"") != NULL || /* of a slow machine */
                           (besides != NULL && strstr(got, besides) != NULL)));
    if (got == NULL || strstr(got, part) == NULL)
        fail_msg("got '%s', expected '%s' in it", got != NULL ? got : "nothing", part);
    return got;
}

static inline const char *peer_expect(struct peer *peer, const char *part)
{
    return peer_expect_besides(peer, NULL, part);
}

/* A text member of the last frame; "" where it is not there. */
static inline const char *peer_member(const struct peer *peer, const char *key, char *room,
                                      size_t size)
{
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    const char *at = strstr(peer->text, pattern);
    size_t n = 0;
    for (at = at != NULL ? at + strlen(pattern) : ""; *at != '\0' && *at != '"' && n + 1 < size;)
        room[n++] = *at++;
    room[n] = '\0';
    return room;
}

#endif
