/* wire.h: frames, and the connections that carry them: between an engine and its hosts, its workers and the
 * local programs that send it requests (docs/worker-protocol.md). A frame is four bytes of length and a JSON object. */
#ifndef RV_WIRE_WIRE_H
#define RV_WIRE_WIRE_H

#include <rival/base.h>

#include "base/queue.h"
#include "base/str.h"

enum { RV__FRAME_MAX = 64 << 20 }; /* bytes of a frame: the limit of one JSON text */

/* Which side sends what, with which members: docs/worker-protocol.md. */
enum rv__frame_type {
    FRAME_HELLO,      /* both: the first frame */
    FRAME_REGISTER,   /* worker: what it offers */
    FRAME_CREDITS,    /* worker: how many invocations it accepts at once */
    FRAME_INVOKE,     /* engine: run this step */
    FRAME_GET,        /* worker: requests a value that the step may read */
    FRAME_VALUE,      /* engine: that value */
    FRAME_ENTRY,      /* engine: a node of the scope, for the worker to keep */
    FRAME_FORGET,     /* engine: the worker must drop all kept values and entries */
    FRAME_LOG,        /* worker: a line */
    FRAME_STATE,      /* worker: a key of the step's state */
    FRAME_RESULT,     /* worker: the step is done; engine: the answer to a call */
    FRAME_ERROR,      /* worker: the step failed; engine: a call failed, or the connection ends */
    FRAME_TAKEN,      /* engine: these answers have arrived */
    FRAME_CANCEL,     /* engine: the step should stop */
    FRAME_VALIDATE,   /* engine: is this input valid? */
    FRAME_VALID,      /* worker: yes */
    FRAME_VIOLATIONS, /* worker: no */
    FRAME_CALL,       /* client: a request (docs/reference/control-socket.md) */
    FRAME_BEGUN,      /* engine: a call has begun; its answer comes at its end */
    FRAME_PING,       /* both: are you there? */
    FRAME_PONG,
    FRAME_BYE,     /* both: the connection ends, on purpose */
    FRAME_DYING,   /* worker: a signal is ending its process */
    FRAME_MEMBERS, /* engine: the members of its store have changed */
    FRAME_TYPES,
};
enum { RV__PROTOCOL = 2 };
const char *rv__frame_type_name(enum rv__frame_type type);

/* Append a frame: begin, members, end. A failure is remembered in `out`. */
size_t rv__wire_begin(struct rv__buf *out, enum rv__frame_type type);
void rv__wire_text(struct rv__buf *out, const char *key, struct rv__str text);
void rv__wire_json(struct rv__buf *out, const char *key, struct rv__str json);
void rv__wire_int(struct rv__buf *out, const char *key, int64_t n);
void rv__wire_end(struct rv__buf *out, size_t start);

/* An incoming stream of frames. */
struct rv__frames {
    struct rv__buf in;
    size_t at;   /* the bytes before it were read */
    size_t most; /* longest frame allowed, in bytes; 0 = RV__FRAME_MAX */
};
struct rv__frame {
    enum rv__frame_type type;
    struct rv__str json; /* the object, checked; valid until more is read */
};
void rv__frames_init(struct rv__frames *frames);
void rv__frames_done(struct rv__frames *frames);
int rv__frames_feed(struct rv__frames *frames, struct rv__str bytes); /* RV_ENOMEM, RV_ETOOBIG */
/* 1: a frame; 0: it is incomplete; RV_EPARSE: these bytes are not frames. */
int rv__frames_next(struct rv__frames *frames, struct rv__frame *ret, rv_error *err);
/* The members with these names, in one pass; "none" for a missing one. */
void rv__frame_members(const struct rv__frame *frame, const char *const *keys,
                       struct rv__str *values, size_t count);
/* From and to a socket. Read what has arrived: 1: something; 0: nothing; RV_ECLOSED; RV_ENOMEM. */
int rv__frames_read(struct rv__frames *frames, int fd);
int rv__frames_send(int fd, const struct rv__buf *out); /* all of it; RV_ECLOSED */

/* The frame `error`: {code, message}. */
void rv__wire_error(struct rv__buf *out, const rv_error *err);

/* ------------------------------------------------------------------------------------------
 * Connections: many conversations on one thread (wires.c, conn.c)
 *
 * That thread runs a libuv loop and has all signals blocked. Callbacks run on it and must not block. Other threads
 * post tasks to it. */

struct uv_loop_s;
struct rv__wires;
struct rv__conn;

/* A member of the caller's struct: run once, on the loop's thread, in the order of posting. */
struct rv__wire_task {
    struct rv__queue_node node; /* first */
    void (*run)(struct rv__wire_task *task);
};
/* Work that may wait for the disk: `run` is called on a thread of libuv's pool, then `done` on the loop's thread. */
struct rv__wire_job {
    void (*run)(struct rv__wire_job *job);
    void (*done)(struct rv__wire_job *job);
};

/* Make a libuv loop whose descriptors are above 2: libuv aborts on 0 to 2. Returns what uv_loop_init() does. */
int rv__uv_loop_init(struct uv_loop_s *loop);

/* Errors: RV_ENOMEM, RV_ESYS. Thread: any. */
int rv__wires_new(struct rv__wires **ret, rv_error *err);
/* End the remaining connections and wait for jobs. NULL is allowed. Thread: any except the loop's, as the last call. */
void rv__wires_free(struct rv__wires *wires);
void rv__wires_post(struct rv__wires *wires, struct rv__wire_task *task); /* Thread: any */
/* The same, and wait until it has run. Thread: any except the loop's. */
void rv__wires_run(struct rv__wires *wires, void (*run)(void *arg), void *arg);

/* Thread of everything below: the loop's. */
void rv__wires_job(struct rv__wires *wires, struct rv__wire_job *job);
int64_t rv__wires_now_ms(const struct rv__wires *wires); /* monotonic, of this turn of the loop */
struct uv_loop_s *rv__wires_loop(struct rv__wires *wires);

/* The user of a connection. `ended` is the last call; the connection no longer exists after it. `why` is NULL if the
 * other side disconnected, or if the connection was ended here without a reason. */
struct rv__conn_user {
    void (*heard)(void *arg, struct rv__conn *conn, const struct rv__frame *frame);
    void (*ended)(void *arg, struct rv__conn *conn, const rv_error *why);
    void (*flushing)(void *arg, struct rv__conn *conn); /* before output is sent; may be NULL */
};
enum {
    RV__CONN_UNSENT = 256 << 20
}; /* bytes waiting to be sent; beyond that the other side does not read, and the connection ends */

/* TLS (tls.c): the certificate of a server, or the certificates that a client trusts. Reference-counted. Thread: any.
 * Server: two PEM files; the key's must not be readable by others. Client: `trusted`, a PEM file of certificates;
 * NULL: those that the system trusts. Errors: RV_EINVAL, RV_ENOMEM, RV_ESYS. */
struct rv__tls_keys;
int rv__tls_server(const char *cert, const char *key, struct rv__tls_keys **ret, rv_error *err);
int rv__tls_client(const char *trusted, struct rv__tls_keys **ret, rv_error *err);
struct rv__tls_keys *rv__tls_keys_ref(struct rv__tls_keys *keys); /* NULL is allowed */
void rv__tls_keys_unref(struct rv__tls_keys *keys);               /* NULL is allowed */

/* Takes the descriptor, a connected socket. NULL: no memory; the descriptor stays the caller's. */
struct rv__conn *rv__conn_new(struct rv__wires *wires, int fd, const struct rv__conn_user *user,
                              void *arg);
/* Use TLS from the first byte. `host`: the name of the server it connected to; NULL: this side is the server. False:
 * no memory. */
bool rv__conn_secure(struct rv__conn *conn, struct rv__tls_keys *keys, const char *host);
void rv__conn_bound(struct rv__conn *conn, size_t most); /* longest incoming frame, in bytes */
/* The address of the other side, for messages: "192.0.2.7:40123"; for a Unix socket "". */
enum { RV__FROM_SIZE = 64 };
void rv__conn_from(const struct rv__conn *conn, char ret[RV__FROM_SIZE]);
void rv__conn_use(struct rv__conn *conn, const struct rv__conn_user *user, void *arg);
/* Append frames here; they are sent at the end of the loop's turn. A frame that is too long is cut off, and `rc` says
 * so; the caller must check and clear it. Running out of memory ends the connection. */
struct rv__buf *rv__conn_out(struct rv__conn *conn);
/* End the connection. Appended frames are sent as far as the socket takes them at once. `ended` is called later; no
 * more frames are received. A second call does nothing. */
void rv__conn_end(struct rv__conn *conn, const rv_error *why);
bool rv__conn_ending(const struct rv__conn *conn);
void rv__conn_say(struct rv__conn *conn, enum rv__frame_type type); /* a frame without members */
/* Send a frame `error`, then end the connection. */
void rv__conn_refuse(struct rv__conn *conn, const rv_error *err);
/* Handle frames that arrived but were not read yet: now, because the process at the other end has died. */
void rv__conn_drain(struct rv__conn *conn);
/* Call this from time to time. After a heartbeat without a frame, it sends a `ping`; after two more, it ends the
 * connection. It always pings first: the silence may be our own, after the machine slept. */
void rv__conn_beat(struct rv__conn *conn, int64_t heartbeat_ms);
uint64_t rv__conn_bytes(const struct rv__conn *conn); /* sent so far */
/* The process at the other end of a Unix socket; 0: unknown. */
int64_t rv__conn_pid(const struct rv__conn *conn);
int64_t rv__conn_uid(const struct rv__conn *conn); /* the user of that process; -1: unknown */

/* Call `died` once when a process of this machine has ended. NULL: it cannot be watched, or has ended already. */
struct rv__pid_watch;
struct rv__pid_watch *rv__pid_watch_new(struct rv__wires *wires, int64_t pid,
                                        void (*died)(void *arg), void *arg);
void rv__pid_watch_free(struct rv__pid_watch *watch); /* NULL is allowed */

/* ------------------------------------------------------------------------------------------
 * Values that the other end keeps: a value that many invocations read is sent once (kept.c). A value is identified by
 * an address, which must stay valid and unique as long as the value is held. */

enum {
    RV__KEPT_SLOTS = 256,        /* values kept at once */
    RV__KEPT_BYTES = 16 << 20,   /* bytes of all kept values and entries */
    RV__KEPT_SMALL = 512,        /* shorter values are sent each time */
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
void rv__kept_forget(
    struct rv__kept *kept); /* a zeroed struct is a new one; call this to free it */
/* True: the other end has it, under *slot. */
bool rv__kept_has(const struct rv__kept *kept, const void *identity, unsigned *slot);
/* Returns the slot to send a value with; the other end then keeps it. The caller holds the value already; `release`
 * gives it back. *forget: the other end must drop everything it keeps first. */
unsigned rv__kept_add(struct rv__kept *kept, struct rv__shared value, size_t bytes, bool *forget);
/* The number of an entry; 0: the other end does not have it. */
uint32_t rv__kept_entry(const struct rv__kept *kept, uint64_t serial);
/* Make room for `count` more entries with this many bytes. False: forget first, or there is no memory (*no_memory). */
bool rv__kept_room(struct rv__kept *kept, size_t count, size_t bytes, bool *no_memory);
uint32_t rv__kept_add_entry(struct rv__kept *kept, uint64_t serial, size_t bytes); /* its number */

/* ------------------------------------------------------------------------------------------
 * Sockets beside a store, and TCP addresses: one process listens, others connect (listen.c, ask.c) */

struct rv__clock;

/* The socket of a store: NAME.sock beside the real file, like its lock; for a store in PostgreSQL, in a folder of
 * the user (base/store_name.h). */
struct rv__socket_place {
    char path[RV__PATH_ROOM];
    size_t name_at; /* where the name begins; the folder is before it */
};
/* The store must exist. Errors: RV_EINVAL (it is in memory, or its name is too long), RV_ESTORE. */
int rv__socket_place(const char *store, struct rv__socket_place *ret, rv_error *err);

struct rv__listener;

/* A zero means the default named beside it. */
struct rv__listen_opts {
    struct rv__wires *wires;
    struct rv__tls_keys *tls; /* TCP: use TLS; NULL: do not */
    size_t connections;       /* at once; one more is refused with RV_EBUSY: 512 */
    size_t guests;            /* of these, without a hello yet, at this listener: `connections` */
    int64_t hello_ms;         /* time for a complete hello: 10000 after the connection */
    /* A hello of this protocol has arrived: call rv__conn_use(), or refuse it. Thread: the loop's. */
    void (*greeted)(void *arg, struct rv__conn *conn, const struct rv__frame *hello);
    void *arg;
};

/* Listen beside a store. The caller has the store's lock, so an existing socket belongs to a dead process, and is
 * replaced. Errors: RV_EINVAL, RV_ESTORE, RV_ESYS, RV_ENOMEM. Thread: any except the loop's. */
int rv__listen(const char *store, const struct rv__listen_opts *opts, struct rv__listener **ret,
               rv_error *err);
/* Listen at a TCP address, HOST:PORT (base/listen.h). Anyone may connect: `greeted` must check a token.
 * Errors: RV_EINVAL, RV_EBUSY, RV_ESYS, RV_ENOMEM. Thread: any except the loop's. */
int rv__listen_tcp(const char *address, const struct rv__listen_opts *opts,
                   struct rv__listener **ret, rv_error *err);
uint16_t rv__listener_port(const struct rv__listener *listener); /* 0: it is a Unix socket */
/* Remove the socket and accept no more connections; existing ones stay. NULL is allowed. Thread: any except the
 * loop's. */
void rv__listener_free(struct rv__listener *listener);

/* The process to ask; `pid` is for messages. */
struct rv__asked {
    const struct rv__socket_place *place;
    int64_t pid;
};
struct rv__reply {
    struct rv__frames frames;
    struct rv__frame frame; /* valid as long as the reply */
};
/* Send a request and wait for the answer. Free *reply in any case; it has a result if this returns RV_OK. `request` is
 * a whole frame. Errors: those of the other side; RV_ECLOSED: no process listens, or nothing was done; RV_EFAILED: it
 * is unknown whether it was done; RV_ETIMEDOUT (timeout_ms negative: never); RV_ECANCELED (`by` fired), RV_ECLOSED
 * (`closing` fired). Both tokens may be NULL. */
int rv__ask(const struct rv__asked *asked, const struct rv__buf *request, int64_t timeout_ms,
            rv_cancel *by, rv_cancel *closing, struct rv__reply *reply, rv_error *err);
void rv__reply_done(struct rv__reply *reply);
/* It is a frame `error`: what the other side says, as our own error. */
int rv__reply_error(const struct rv__reply *reply, rv_error *err);

/* A request whose connection stays open: the other side sends frames when it has some, and each side notices when
 * the other ends. All zero except `fd` -1: none. */
struct rv__line {
    int fd; /* -1: closed */
    int64_t pid;
    bool sent;
    struct rv__reply reply; /* the last frame */
};
/* Send the request. Close *line in any case. Errors: RV_ECLOSED: no process listens; RV_ESYS, RV_ENOMEM. */
int rv__line_open(const struct rv__asked *asked, const struct rv__buf *request,
                  struct rv__line *line, rv_error *err);
/* Wait for the next frame, in line->reply. Errors: as rv__ask(). */
int rv__line_take(struct rv__line *line, int64_t timeout_ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err);
bool rv__line_ended(const struct rv__line *line); /* the other side ended, or sent something */
void rv__line_close(struct rv__line *line);

int rv__ask_pause(int64_t ms, rv_cancel *by, rv_cancel *closing,
                  rv_error *err); /* 0: the time is over */

#endif
