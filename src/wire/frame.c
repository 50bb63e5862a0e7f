/* frame.c: frames: four bytes of length, most significant first, then that many bytes of JSON, an object
 * with a "type". Both ends of a worker's connection speak in them (docs/worker-protocol.md).
 *
 * The other end may be anything: a length beyond the bound, text that is not JSON, a type that nobody
 * knows end the conversation, and nothing is allocated for a length before its bytes are there. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "wire/wire.h"

enum {
    HEADER = 4,
    READ_AT_ONCE = 64 << 10,
    KEEP_BYTES = 1 << 20, /* a buffer that held more is given back */
    IN_BYTES = HEADER + RV__FRAME_MAX + READ_AT_ONCE,
};

static const char *const names[FRAME_TYPES] = {
    [FRAME_HELLO] = "hello",
    [FRAME_REGISTER] = "register",
    [FRAME_CREDITS] = "credits",
    [FRAME_INVOKE] = "invoke",
    [FRAME_GET] = "get",
    [FRAME_VALUE] = "value",
    [FRAME_ENTRY] = "entry",
    [FRAME_FORGET] = "forget",
    [FRAME_LOG] = "log",
    [FRAME_STATE] = "state",
    [FRAME_RESULT] = "result",
    [FRAME_ERROR] = "error",
    [FRAME_TAKEN] = "taken",
    [FRAME_CANCEL] = "cancel",
    [FRAME_VALIDATE] = "validate",
    [FRAME_VALID] = "valid",
    [FRAME_VIOLATIONS] = "violations",
    [FRAME_CALL] = "call",
    [FRAME_BEGUN] = "begun",
    [FRAME_PING] = "ping",
    [FRAME_PONG] = "pong",
    [FRAME_BYE] = "bye",
    [FRAME_DYING] = "dying",
    [FRAME_MEMBERS] = "members",
};

const char *rv__frame_type_name(enum rv__frame_type type)
{
    return names[type];
}

/* -------------------------------------------------------------------------------- writing --- */

size_t rv__wire_begin(struct rv__buf *out, enum rv__frame_type type)
{
    size_t start = out->len;
    rv__buf_add(out, "\0\0\0\0", HEADER);
    rv__buf_text(out, "{\"type\":\"");
    rv__buf_text(out, names[type]);
    rv__buf_char(out, '"');
    return start;
}

void rv__wire_end(struct rv__buf *out, size_t start)
{
    rv__buf_char(out, '}');
    if (out->rc != RV_OK)
        return;
    size_t len = out->len - start - HEADER;
    if (len > RV__FRAME_MAX) {
        rv__buf_cut(out, start);
        out->rc = RV_ETOOBIG;
        return;
    }
    for (int i = 0; i < HEADER; i++)
        out->text[start + (size_t)i] = (char)(len >> (8 * (HEADER - 1 - i)));
}

static void put_key(struct rv__buf *out, const char *key)
{
    rv__buf_text(out, ",\"");
    rv__buf_text(out, key);
    rv__buf_text(out, "\":");
}

void rv__wire_text(struct rv__buf *out, const char *key, struct rv__str text)
{
    put_key(out, key);
    rv__buf_json_str(out, text);
}

void rv__wire_json(struct rv__buf *out, const char *key, struct rv__str json)
{
    put_key(out, key);
    rv__buf_str(out, json);
}

void rv__wire_int(struct rv__buf *out, const char *key, int64_t n)
{
    put_key(out, key);
    rv__buf_int(out, n);
}

void rv__wire_error(struct rv__buf *out, const rv_error *err)
{
    size_t start = rv__wire_begin(out, FRAME_ERROR);
    rv__wire_int(out, "code", err->code);
    rv__wire_text(out, "message", rv__str(err->message));
    rv__wire_end(out, start);
}

/* -------------------------------------------------------------------------------- reading --- */

void rv__frames_init(struct rv__frames *frames)
{
    *frames = (struct rv__frames){ .at = 0 };
    rv__buf_init(&frames->in, IN_BYTES);
}

void rv__frames_done(struct rv__frames *frames)
{
    rv__buf_done(&frames->in);
}

int rv__frames_feed(struct rv__frames *frames, struct rv__str bytes)
{
    rv__buf_str(&frames->in, bytes);
    return frames->in.rc;
}

static enum rv__frame_type type_of(struct rv__str json)
{
    struct rv__str type = { NULL, 0 };
    if (!rv__json_get(json, "type", &type))
        return FRAME_TYPES;
    for (int i = 0; i < FRAME_TYPES; i++)
        if (rv__json_string_is(type, rv__str(names[i])))
            return (enum rv__frame_type)i;
    return FRAME_TYPES;
}

/* What was read is not needed any more. */
static void make_room(struct rv__frames *frames)
{
    struct rv__buf *in = &frames->in;
    if (frames->at == 0)
        return;
    size_t rest = in->len - frames->at;
    if (rest > 0)
        memmove(in->text, in->text + frames->at, rest);
    frames->at = 0;
    if (rest == 0 && in->cap > KEEP_BYTES)
        rv__buf_done(in), rv__buf_init(in, IN_BYTES);
    else
        rv__buf_cut(in, rest);
}

int rv__frames_next(struct rv__frames *frames, struct rv__frame *ret, rv_error *err)
{
    const struct rv__buf *in = &frames->in;
    if (in->len - frames->at < HEADER) {
        make_room(frames);
        return 0;
    }
    const unsigned char *head = (const unsigned char *)in->text + frames->at;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (len > (frames->most ? frames->most : RV__FRAME_MAX) || len < 2)
        return rv__fail(err, RV_EPARSE, "not a frame: a length of %zu bytes", len);
    if (in->len - frames->at - HEADER < len) {
        make_room(frames);
        return 0;
    }
    rv_error why;
    struct rv__str json = { in->text + frames->at + HEADER, len };
    frames->at += HEADER + len;
    if (rv__json_check(json, RV__JSON_MAX_DEPTH, &json, &why) < 0)
        return rv__fail(err, RV_EPARSE, "not a frame: %s", why.message);
    enum rv__frame_type type = rv__json_type(json) == RV__JSON_OBJECT ? type_of(json) : FRAME_TYPES;
    if (type == FRAME_TYPES)
        return rv__fail(err, RV_EPARSE, "not a frame: its type is unknown");
    *ret = (struct rv__frame){ .type = type, .json = json };
    return 1;
}

void rv__frame_members(const struct rv__frame *frame, const char *const *keys,
                       struct rv__str *values, size_t count)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    for (size_t i = 0; i < count; i++)
        values[i] = (struct rv__str){ NULL, 0 };
    rv__json_iter_init(&it, frame->json);
    while (rv__json_next(&it, &key, &value))
        for (size_t i = 0; i < count; i++)
            if (rv__json_string_is(key, rv__str(keys[i])))
                values[i] = value;
}

/* ---------------------------------------------------------------------------- connections --- */

int rv__frames_read(struct rv__frames *frames, int fd)
{
    char bytes[READ_AT_ONCE];
    ssize_t n;
    do
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return rv__frames_feed(frames, (struct rv__str){ bytes, (size_t)n }) < 0 ? RV_ENOMEM : 1;
    if (n == 0)
        return RV_ECLOSED;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : RV_ECLOSED;
}

int rv__frames_send(int fd, const struct rv__buf *out)
{
    size_t done = 0;
    while (done < out->len) {
        ssize_t n = send(fd, out->text + done, out->len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return RV_ECLOSED;
        done += (size_t)n;
    }
    return RV_OK;
}
