/* session.h: the inside of a session, for the files that speak with workers. Inside work/ only.
 * Thread: of connections, but for what says otherwise. */
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
    int64_t heartbeat_ms, grace_ms; /* as limits are; tests have others */
    uv_timer_t *tick;               /* NULL: none, as there is no session */
    bool closing;
};

struct rv__session {
    atomic_size_t refs; /* the list, the engine, news on their way */
    struct rv__workers *workers;
    struct rv__session *next, **link;
    char key[33]; /* what it says to be taken for the same again */
    uint64_t number;
    struct rv__conn *conn; /* NULL: away, or gone */
    const struct rv__calls *calls;
    void *caller;
    struct rv__pid_watch *watch;
    bool dead;
    int64_t away_ms; /* since when; monotonic */
    unsigned sees;
    struct rv__kept kept;
    struct rv__buf taken; /* ids of answers that came in this turn: "a","b" */
    struct {
        struct rv_ctx *ctx; /* NULL: free */
        uint64_t count;     /* of those that it had */
        size_t next_free;   /* of a free one: the next, + 1; 0: it is the last */
    } * slots;
    size_t slot_count, in_flight, first_free; /* the same */
    struct rv__question *questions;           /* inputs that it is to judge */
    uint64_t questions_posed;

    pthread_mutex_t lock; /* of the rest: */
    struct rv__session_state state;
    struct rv__session_about about;
    struct rv__news news; /* that it has changed; */
    bool news_sent;       /* and is on its way */
};

/* workers.c */
/* It has ended: out of its session with it. It may be gone afterwards. */
void rv__session_finish(struct rv__session *session, struct rv_ctx *ctx);
void rv__session_say_cancel(struct rv__session *session, const struct rv_ctx *ctx);
/* It is told that it has ended, if it has, and nobody reads for it or is about to stop it. It may be gone then. */
void rv__invoked_settle(struct rv_ctx *ctx);

/* showing.c */
/* What comes along, because the worker said that it sees it: frames before the `invoke`, and members of it. False:
 * no memory. */
bool rv__session_put_along(struct rv__session *session, struct rv_ctx *ctx, struct rv__buf *out,
                           struct rv__buf *members);
void rv__session_put_item(struct rv__session *session, struct rv_ctx *ctx, struct rv__buf *members);
/* A `get`. 0: it is, or will be, answered; RV_EPARSE: it may not ask that. */
int rv__session_show(struct rv__session *session, struct rv_ctx *ctx, const struct rv__frame *frame,
                     rv_error *err);

/* validate.c */
/* A `valid` or `violations`. RV_EPARSE: it may not say that. */
int rv__session_verdict(struct rv__session *session, const struct rv__frame *frame, rv_error *err);
void rv__session_drop_questions(struct rv__session *session); /* nobody will answer them */

/* offered.c */
void rv__session_register(struct rv__session *session, const struct rv__frame *frame);
int rv__session_sees(struct rv__session *session, struct rv__str list, rv_error *err);

#endif
