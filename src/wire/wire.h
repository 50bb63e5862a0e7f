/* wire.h: frames: what an engine says to its hosts, its workers and the programs beside it, and they to
 * it (docs/worker-protocol.md, docs/reference/control-socket.md). Four bytes of length, then a JSON object. */
#ifndef RV_WIRE_WIRE_H
#define RV_WIRE_WIRE_H

#include <rival/base.h>

#include "base/str.h"

enum { RV__FRAME_MAX = 64 << 20 }; /* bytes of one: as much as one JSON text may have */

enum rv__frame_type {
    FRAME_HELLO,    /* worker: who it is */
    FRAME_REGISTER, /* worker: what it offers */
    FRAME_INVOKE,   /* engine: run this step */
    FRAME_GET,      /* worker: show me this part of what the step sees */
    FRAME_VALUE,    /* engine: this is it */
    FRAME_LOG,      /* worker: a line */
    FRAME_STATE,    /* worker: a key of the step's state */
    FRAME_RESULT,   /* worker: it is done */
    FRAME_ERROR,    /* worker: it failed */
    FRAME_CANCEL,   /* engine: stop it */
    FRAME_PING,     /* either: are you there? */
    FRAME_PONG,
    FRAME_DYING, /* worker: a signal has come from which it will not return */
    FRAME_CALL,  /* on a control socket: do this (docs/reference/control-socket.md) */
    FRAME_TYPES,
};
const char *rv__frame_type_name(enum rv__frame_type type);

/* Append a frame: begin, members, end. Failures stay in `out`. */
size_t rv__wire_begin(struct rv__buf *out, enum rv__frame_type type);
void rv__wire_text(struct rv__buf *out, const char *key, struct rv__str text);
void rv__wire_json(struct rv__buf *out, const char *key, struct rv__str json);
void rv__wire_int(struct rv__buf *out, const char *key, int64_t n);
void rv__wire_end(struct rv__buf *out, size_t start);

/* A stream of them as it comes in. */
struct rv__frames {
    struct rv__buf in;
    size_t at; /* what was read before it */
};
struct rv__frame {
    enum rv__frame_type type;
    struct rv__str json; /* the object, checked; valid until more is read */
};
void rv__frames_init(struct rv__frames *frames);
void rv__frames_done(struct rv__frames *frames);
int rv__frames_feed(struct rv__frames *frames, struct rv__str bytes); /* RV_ENOMEM, RV_ETOOBIG */
/* 1: a frame; 0: the rest of it has not come yet; RV_EPARSE: these are no frames. */
int rv__frames_next(struct rv__frames *frames, struct rv__frame *ret, rv_error *err);
/* The members of these names, in one walk; "none" where there is none. */
void rv__frame_members(const struct rv__frame *frame, const char *const *keys,
                       struct rv__str *values, size_t count);
/* From and to a socket. Read what is there: 1: something was; 0: nothing; RV_ECLOSED; RV_ENOMEM. */
int rv__frames_read(struct rv__frames *frames, int fd);
int rv__frames_send(int fd, const struct rv__buf *out); /* all of it; RV_ECLOSED */

#endif
