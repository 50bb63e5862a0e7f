/* session.h: the fields of a session, for the files that talk to workers. Inside work/ only. Thread: that of
 * connections, unless stated otherwise. */
#ifndef RV_WORK_SESSION_H
#define RV_WORK_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "work/work.h"

struct rv__workers {
    struct rv__executor executor; /* first */
    struct rv__services *services;
    struct rv__session *sessions;
    size_t count;
    uint64_t next_session;
    int64_t heartbeat_ms, grace_ms; /* the limits in use; tests set others */
    uv_timer_t *tick;               /* NULL: there is no session */
    int64_t member;         /* the id of the engine as a member of its store; 0: it is none */
    struct rv__buf members; /* the addresses for workers of all members: a JSON array */
    bool closing;
};

struct rv__session {
    atomic_size_t refs; /* held by the list, the engine, and news that are being delivered */
    struct rv__workers *workers; /* NULL: it is a host's */
    struct rv__hosted *host;     /* NULL: it is a worker's */
    struct rv__session *next, **link;
    char key[33]; /* identifies the session when the worker comes back */
    uint64_t number;
    struct rv__conn *conn; /* NULL: the connection is lost, or the session has ended */
    const struct rv__calls *calls;
    void *caller;
    struct rv__pid_watch *watch;
    bool dead;
    int64_t away_ms; /* since when it is not connected; monotonic clock */
    unsigned sees;
    bool follows; /* it wants to be told which members there are */
    struct rv__kept kept;
    struct rv__buf taken; /* ids of answers that arrived in this turn, to be confirmed: "a","b" */
    struct {
        struct rv_ctx *ctx; /* NULL: free */
        uint64_t count;     /* pieces of work that had this slot */
        size_t
            next_free; /* of a free slot: 1 + the index of the next free one; 0: it is the last */
    } * slots;
    size_t slot_count, in_flight, first_free; /* first_free: 1 + its index */
    struct rv__question *questions;           /* inputs that it is asked to validate */
    uint64_t questions_posed;

    pthread_mutex_t lock; /* protects the rest: */
    struct rv__session_state state;
    struct rv__session_about about;
    struct rv__news news; /* its next message to the engine; */
    bool news_sent;       /* it is being delivered */
};

/* session.c */
struct rv__session *rv__session_new(uint64_t number); /* NULL: no memory */
/* Prepare works that begin together, as a chain by invoked.next; NULL: there are none. `complete` is called when one has ended, on the
 * loop of connections; rv__invoked_complete() says so to its owner, which may free it. Thread: any. */
struct rv_ctx *rv__invoked_chain(struct rv__work *const *works, size_t count,
                                 void (*complete)(struct rv_ctx *ctx));
void rv__invoked_complete(struct rv_ctx *ctx);
/* Call `complete` if it has ended, no job reads for it, and no cancel is on its way. It may be freed after this. */
void rv__invoked_settle(struct rv_ctx *ctx);
/* Begin one; it is sent as soon as there is a connection. It may be freed after this. */
void rv__session_begin(struct rv__session *session, struct rv_ctx *ctx);
void rv__session_say_invoke(struct rv__session *session, struct rv_ctx *ctx);
void rv__session_say_cancel(struct rv__session *session, const struct rv_ctx *ctx);
struct rv_ctx *rv__session_find(const struct rv__session *session,
                                struct rv__str id);                 /* NULL: no such */
struct rv_ctx *rv__session_only(const struct rv__session *session); /* of a host; NULL: none */
/* A frame about an invocation. RV_EPARSE: it is wrong. The work may be freed after this. */
bool rv__frame_is_about_work(enum rv__frame_type type);
int rv__session_hear(struct rv__session *session, struct rv_ctx *ctx, const struct rv__frame *frame,
                     rv_error *err);
/* It has ended: remove it from its session. It may be freed after this. */
void rv__session_finish(struct rv__session *session, struct rv_ctx *ctx);
void rv__session_lose(struct rv__session *session, struct rv_ctx *ctx, enum rv__lost how,
                      const char *why);

/* hosted.c */
/* The work of a host has ended; is_ready: its process waits for more. It was told to stop. */
void rv__hosted_finished(struct rv__hosted *host, bool is_ready);
void rv__hosted_told(struct rv__hosted *host);

/* showing.c */
/* Append the values that are sent with the request, because the worker said that it reads them: frames before the
 * `invoke`, and members of it. False: no memory. */
bool rv__session_put_along(struct rv__session *session, struct rv_ctx *ctx, struct rv__buf *out,
                           struct rv__buf *members);
void rv__session_put_item(struct rv__session *session, struct rv_ctx *ctx, struct rv__buf *members);
/* Answer a `get`. RV_OK: it is answered, or will be; RV_EPARSE: it may not ask for that. */
int rv__session_show(struct rv__session *session, struct rv_ctx *ctx, const struct rv__frame *frame,
                     rv_error *err);

/* validate.c */
/* Take a `valid` or `violations`. RV_EPARSE: it is not allowed. */
int rv__session_verdict(struct rv__session *session, const struct rv__frame *frame, rv_error *err);
void rv__session_drop_questions(struct rv__session *session); /* for a session that has ended */

/* offered.c */
void rv__session_register(struct rv__session *session, const struct rv__frame *frame);
int rv__session_sees(struct rv__session *session, struct rv__str list, rv_error *err);

#endif
