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

/* The frame `error`: {code, message}. */
void rv__wire_error(struct rv__buf *out, const rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Sockets beside a store: one process listens, others ask (docs/reference/control-socket.md) */

struct rv__clock;

/* The socket of a store: NAME.sock beside the real file, as its lock is. */
struct rv__socket_place {
    char path[RV__PATH_ROOM];
    size_t name_at; /* where in it the name begins; the folder is before */
};
/* The store exists. Errors: RV_EINVAL (in memory, or a name that is too long), RV_ESTORE. */
int rv__socket_place(const char *store, struct rv__socket_place *ret, rv_error *err);

struct rv__listener;
struct rv__request;

/* A zero means the default named beside it. */
struct rv__listen_opts {
    struct rv__clock *clock;
    size_t connections; /* at once, 256 at most; one more is told to come again: 256 */
    int64_t
        request_ms; /* for a request to come whole: 10000 from the connection or the answer before */
    /* Have it answered, on another thread, by rv__request_answer(). False: that cannot be just now, and
     * the caller is told so. Thread: the listener's. */
    bool (*begin)(void *arg, struct rv__request *request);
    void *arg;
};

/* Listen. Whoever does has the store's lock: a socket that is there is a dead process's, and gives way.
 * Errors: RV_EINVAL, RV_ESTORE, RV_ESYS, RV_ENOMEM. */
int rv__listen(const char *store, const struct rv__listen_opts *opts, struct rv__listener **ret,
               rv_error *err);
/* The socket goes; what is being answered is told so (rv__request_gone), and waited for. */
void rv__listener_close(struct rv__listener *listener);
/* Closes it first. No thread may be on its way out of rv__request_answer(). NULL is allowed, of both. */
void rv__listener_free(struct rv__listener *listener);

const struct rv__frame *rv__request_frame(const struct rv__request *request); /* until the answer */
rv_cancel *rv__request_gone(const struct rv__request *request); /* the asker has hung up */
/* Exactly once. NULL, or one whose writing failed: the connection ends. Thread: any. */
void rv__request_answer(struct rv__request *request, const struct rv__buf *answer);

/* Whom to ask: `pid` is for messages. */
struct rv__asked {
    const struct rv__socket_place *place;
    int64_t pid;
};
struct rv__reply {
    struct rv__frames frames;
    struct rv__frame frame; /* valid as long as the reply */
};
/* Ask, and wait for the answer: *reply is to be given back in any case, and has a result when this returns
 * RV_OK. `request` is a whole frame. Errors: those of the other side; RV_ECLOSED: nobody listens, or
 * nothing was done; RV_EFAILED: nobody knows; RV_ETIMEDOUT (timeout_ms negative: never); RV_ECANCELED
 * (`by` fired), RV_ECLOSED (`closing` did). Both tokens may be NULL. */
int rv__ask(const struct rv__asked *asked, const struct rv__buf *request, int64_t timeout_ms,
            rv_cancel *by, rv_cancel *closing, struct rv__reply *reply, rv_error *err);
void rv__reply_done(struct rv__reply *reply);
int rv__ask_pause(int64_t ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err); /* 0: it has passed */

#endif
