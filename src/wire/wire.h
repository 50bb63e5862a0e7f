/* wire.h: frames, and the connections they go over: what an engine says to its hosts, its workers and the
 * programs beside it, and they to it (docs/worker-protocol.md). Four bytes of length, then a JSON object. */
#ifndef RV_WIRE_WIRE_H
#define RV_WIRE_WIRE_H

#include <rival/base.h>

#include "base/queue.h"
#include "base/str.h"

enum { RV__FRAME_MAX = 64 << 20 }; /* bytes of one: as much as one JSON text may have */

/* Who says what, with which members: docs/worker-protocol.md. */
enum rv__frame_type {
    FRAME_HELLO,      /* both: the first frame */
    FRAME_REGISTER,   /* worker: what it offers */
    FRAME_CREDITS,    /* worker: how many invocations it takes at once */
    FRAME_INVOKE,     /* engine: run this step */
    FRAME_GET,        /* worker: show me this part of what the step sees */
    FRAME_VALUE,      /* engine: this is it */
    FRAME_ENTRY,      /* engine: a node of the scope, to be kept */
    FRAME_FORGET,     /* engine: nothing is kept any more */
    FRAME_LOG,        /* worker: a line */
    FRAME_STATE,      /* worker: a key of the step's state */
    FRAME_RESULT,     /* worker: it is done; engine: the answer to a call */
    FRAME_ERROR,      /* worker: it failed; engine: a call did, or the connection ends */
    FRAME_TAKEN,      /* engine: these answers have arrived */
    FRAME_CANCEL,     /* engine: stop it */
    FRAME_VALIDATE,   /* engine: is this a good input? */
    FRAME_VALID,      /* worker: yes */
    FRAME_VIOLATIONS, /* worker: no */
    FRAME_CALL,       /* client: do this (docs/reference/control-socket.md) */
    FRAME_BEGUN,      /* engine: a call has begun; its answer comes at its end */
    FRAME_PING,       /* both: are you there? */
    FRAME_PONG,
    FRAME_BYE,   /* both: the connection ends, on purpose */
    FRAME_DYING, /* worker: a signal has come from which it will not return */
    FRAME_TYPES,
};
enum { RV__PROTOCOL = 2 };
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
    size_t at;   /* what was read before it */
    size_t most; /* bytes of a frame; 0 = RV__FRAME_MAX */
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
 * Connections: many conversations on one thread (wires.c, conn.c)
 *
 * That thread has a libuv loop and every signal blocked. Callbacks come on it and do not block. What others want
 * done there they post. */

struct uv_loop_s;
struct rv__wires;
struct rv__conn;

/* A piece of somebody else's struct: run once, on the loop's thread, in the order of posting. */
struct rv__wire_task {
    struct rv__queue_node node; /* first */
    void (*run)(struct rv__wire_task *task);
};
/* What may wait for the disk: `run` on a thread of libuv's pool, then `done` on the loop's. */
struct rv__wire_job {
    void (*run)(struct rv__wire_job *job);
    void (*done)(struct rv__wire_job *job);
};

/* A libuv loop; not on the descriptors 0 to 2, where libuv aborts. As uv_loop_init(). */
int rv__uv_loop_init(struct uv_loop_s *loop);

/* Errors: RV_ENOMEM, RV_ESYS. Thread: any. */
int rv__wires_new(struct rv__wires **ret, rv_error *err);
/* Connections that are left end; jobs are waited for. NULL is allowed. Thread: any but the loop's, the last. */
void rv__wires_free(struct rv__wires *wires);
void rv__wires_post(struct rv__wires *wires, struct rv__wire_task *task); /* Thread: any */
/* The same, and wait until it has run. Thread: any but the loop's. */
void rv__wires_run(struct rv__wires *wires, void (*run)(void *arg), void *arg);

/* The rest: Thread: the loop's. */
void rv__wires_job(struct rv__wires *wires, struct rv__wire_job *job);
int64_t rv__wires_now_ms(const struct rv__wires *wires); /* monotonic, of this turn of the loop */
struct uv_loop_s *rv__wires_loop(struct rv__wires *wires);

/* Who speaks on a connection. `ended` is the last word: the connection is gone then. `why` NULL: the other
 * side has hung up, or it was ended here without a reason. */
struct rv__conn_user {
    void (*heard)(void *arg, struct rv__conn *conn, const struct rv__frame *frame);
    void (*ended)(void *arg, struct rv__conn *conn, const rv_error *why);
    void (*flushing)(void *arg,
                     struct rv__conn *conn); /* the last moment to say something; or NULL */
};
enum {
    RV__CONN_UNSENT = 256 << 20
}; /* bytes that wait to be sent: who does not read them is gone */

/* TLS (tls.c): what one end knows: its certificate, or whom it trusts. Counted. Thread: any.
 * A server's: two PEM files, of which others may not read the key's. A client's: `trusted`, a PEM file of
 * certificates; NULL: those that the system trusts. Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS. */
struct rv__tls_keys;
int rv__tls_server(const char *cert, const char *key, struct rv__tls_keys **ret, rv_error *err);
int rv__tls_client(const char *trusted, struct rv__tls_keys **ret, rv_error *err);
struct rv__tls_keys *rv__tls_keys_ref(struct rv__tls_keys *keys); /* NULL is allowed */
void rv__tls_keys_unref(struct rv__tls_keys *keys);               /* NULL is allowed */

/* Takes the descriptor, a connected socket. NULL: no memory, and it is still the caller's. */
struct rv__conn *rv__conn_new(struct rv__wires *wires, int fd, const struct rv__conn_user *user,
                              void *arg);
/* It speaks TLS, from its first byte on. `host`: whom it connected to; NULL: it was connected to. False: no memory. */
bool rv__conn_secure(struct rv__conn *conn, struct rv__tls_keys *keys, const char *host);
void rv__conn_bound(struct rv__conn *conn, size_t most); /* bytes of a frame that may come */
/* Where it comes from, for messages: "192.0.2.7:40123"; of a Unix socket "". */
enum { RV__FROM_SIZE = 64 };
void rv__conn_from(const struct rv__conn *conn, char ret[RV__FROM_SIZE]);
void rv__conn_use(struct rv__conn *conn, const struct rv__conn_user *user, void *arg);
/* Frames are appended here, and all of a turn are sent at its end. A frame that is too long for any is cut off,
 * and said in `rc`, which is the caller's to look at and clear; no memory ends the connection. */
struct rv__buf *rv__conn_out(struct rv__conn *conn);
/* What was appended is sent as far as the socket takes it at once. `ended` is called later; nothing is heard
 * any more. Twice does nothing. */
void rv__conn_end(struct rv__conn *conn, const rv_error *why);
bool rv__conn_ending(const struct rv__conn *conn);
void rv__conn_say(struct rv__conn *conn, enum rv__frame_type type); /* a frame without members */
/* A frame `error`, then the end. */
void rv__conn_refuse(struct rv__conn *conn, const rv_error *err);
/* Frames that came and were not heard yet: now, for its process has died. */
void rv__conn_drain(struct rv__conn *conn);
/* To be called now and then: who has been silent for a heartbeat is asked (`ping`), who has not answered for two more is
 * taken for gone, and the connection ends. Nobody is without having been asked: it may be us who slept. */
void rv__conn_beat(struct rv__conn *conn, int64_t heartbeat_ms);
uint64_t rv__conn_bytes(const struct rv__conn *conn); /* sent so far */
/* The process at the other end of a Unix socket; 0: not known. */
int64_t rv__conn_pid(const struct rv__conn *conn);
int64_t rv__conn_uid(const struct rv__conn *conn); /* of its user; -1: not known */

/* Told once when a process has ended, if it is one of this machine. NULL: it cannot be watched, or has ended. */
struct rv__pid_watch;
struct rv__pid_watch *rv__pid_watch_new(struct rv__wires *wires, int64_t pid,
                                        void (*died)(void *arg), void *arg);
void rv__pid_watch_free(struct rv__pid_watch *watch); /* NULL is allowed */

/* ------------------------------------------------------------------------------------------
 * Values that the other end keeps: what many invocations see crosses the wire once (kept.c). A value goes by
 * its identity, an address that stays its own as long as it is held. */

enum {
    RV__KEPT_SLOTS = 256,        /* values kept, */
    RV__KEPT_BYTES = 16 << 20,   /* bytes of all of them and of all entries, */
    RV__KEPT_SMALL = 512,        /* shorter ones are not worth it */
    RV__KEPT_ENTRIES = 64 << 10, /* nodes of scopes */
};
struct rv__shared {
    const void *identity;
    void (*release)(void *identity);
};
struct rv__kept {
    size_t bytes;
    struct rv__kept_slot {
        struct rv__shared value; /* identity NULL: empty */
        size_t bytes;
    } slots[RV__KEPT_SLOTS];
    struct rv__kept_entry {
        uint64_t serial; /* 0: empty */
        uint32_t number;
    } * entries; /* a table of entries_size */
    size_t entries_size;
    uint32_t count; /* of entries: the last number */
};
void rv__kept_forget(struct rv__kept *kept); /* all zero is a new one; and this, before it goes */
/* True: the other end has it, under *slot. */
bool rv__kept_has(const struct rv__kept *kept, const void *identity, unsigned *slot);
/* It is to be sent with this slot's number, and kept; it is held already, and given back by `release`.
 * *forget: the other end is to drop all it has first. */
unsigned rv__kept_add(struct rv__kept *kept, struct rv__shared value, size_t bytes, bool *forget);
/* The number of an entry; 0: the other end has it not. */
uint32_t rv__kept_entry(const struct rv__kept *kept, uint64_t serial);
/* There is room for `count` more entries of so many bytes. False: forget first, or there is no memory (*no_memory). */
bool rv__kept_room(struct rv__kept *kept, size_t count, size_t bytes, bool *no_memory);
uint32_t rv__kept_add_entry(struct rv__kept *kept, uint64_t serial, size_t bytes); /* its number */

/* ------------------------------------------------------------------------------------------
 * Sockets beside a store, and TCP addresses: one process listens, others come (listen.c, ask.c) */

struct rv__clock;

/* The socket of a store: NAME.sock beside the real file, as its lock is; of one in PostgreSQL, in a folder of the
 * user's own (base/store_name.h). */
struct rv__socket_place {
    char path[RV__PATH_ROOM];
    size_t name_at; /* where in it the name begins; the folder is before */
};
/* The store exists. Errors: RV_EINVAL (in memory, or a name that is too long), RV_ESTORE. */
int rv__socket_place(const char *store, struct rv__socket_place *ret, rv_error *err);

struct rv__listener;

/* A zero means the default named beside it. */
struct rv__listen_opts {
    struct rv__wires *wires;
    struct rv__tls_keys *tls; /* at an address: they speak TLS; NULL: they do not */
    size_t connections;       /* at once; one more is told to come again: 512 */
    size_t guests;    /* of them that have not said hello, at this listener: `connections` */
    int64_t hello_ms; /* for a hello to come whole: 10000 from the connection */
    /* A hello of this protocol has come: rv__conn_use() it, or refuse it. Thread: the loop's. */
    void (*greeted)(void *arg, struct rv__conn *conn, const struct rv__frame *hello);
    void *arg;
};

/* Listen beside a store. Whoever does has the store's lock: a socket that is there is a dead process's, and gives
 * way. Errors: RV_EINVAL, RV_ESTORE, RV_ESYS, RV_ENOMEM. Thread: any but the loop's. */
int rv__listen(const char *store, const struct rv__listen_opts *opts, struct rv__listener **ret,
               rv_error *err);
/* Listen at a TCP address, HOST:PORT (base/listen.h). Who comes may be anybody: `greeted` is to ask for a token.
 * Errors: RV_EINVAL, RV_EBUSY, RV_ESYS, RV_ENOMEM. Thread: any but the loop's. */
int rv__listen_tcp(const char *address, const struct rv__listen_opts *opts,
                   struct rv__listener **ret, rv_error *err);
uint16_t rv__listener_port(const struct rv__listener *listener); /* 0: it is a Unix socket */
/* The socket goes, and nobody is let in any more; who is in stays. NULL is allowed. Thread: any but the loop's. */
void rv__listener_free(struct rv__listener *listener);

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

/* A question that is held on to: the other side says what it has to say as it comes, and each of the two learns
 * when the other has gone. All zero but `fd` -1: none. */
struct rv__line {
    int fd; /* -1: closed */
    int64_t pid;
    bool sent;
    struct rv__reply reply; /* what came last */
};
/* Ask. *line is to be closed in any case. Errors: RV_ECLOSED: nobody listens; RV_ESYS, RV_ENOMEM. */
int rv__line_open(const struct rv__asked *asked, const struct rv__buf *request,
                  struct rv__line *line, rv_error *err);
/* The next frame that comes, in line->reply. Errors: as rv__ask(). */
int rv__line_take(struct rv__line *line, int64_t timeout_ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err);
bool rv__line_ended(const struct rv__line *line); /* the other has gone, or has something to say */
void rv__line_close(struct rv__line *line);

int rv__ask_pause(int64_t ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err); /* 0: it has passed */

#endif
