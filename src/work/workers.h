/* workers.h: processes that came to offer functions. A *session* is one of them, over all its connections: on the loop
 * of connections it is spoken with (workers.c), on the engine's loop it is somebody with credits (engine/workers.c). */
#ifndef RV_WORK_WORKERS_H
#define RV_WORK_WORKERS_H

#include "base/queue.h"
#include "define/define.h"
#include "exec/exec.h"

struct rv__services;
struct rv__session;

enum {
    RV__SESSIONS_MOST = 256,
    RV__CREDITS_MOST = 10000,
    RV__WORKER_GRACE_MS = 5000, /* for a worker that was lost to come back */
    RV__WORKER_HEARTBEAT_MS =
        10000, /* of silence, then it is asked; three times that: it is lost */
};

/* An executor of functions that workers offer; begun: the worker was told. It has no credits of its own: each piece of
 * work says whose it is (rv_ctx.session). */
int rv__workers_new(struct rv__services *services, const struct rv__executor *head,
                    struct rv__executor **ret, rv_error *err);
/* All sessions end, and no work is begun any more: what there is, is lost. Thread: any but the loops'. */
void rv__workers_close(struct rv__executor *executor);

/* Workers of other machines are to say hello again. Thread: any but the loops'. */
void rv__workers_recall(struct rv__executor *executor);

/* Somebody has said hello as a worker. `local`: it is a process of this machine. What it calls, if it may, goes
 * through `calls`. Thread: of connections. */
struct rv__calls {
    void *(*begin)(void *arg, struct rv__conn *conn); /* NULL: no memory */
    void (*heard)(void *caller, const struct rv__frame *call);
    void (*ended)(void *caller);
    void *arg;
};
void rv__workers_greet(struct rv__executor *executor, struct rv__conn *conn,
                       const struct rv__frame *hello, bool local, const struct rv__calls *calls);

/* A process of our own that has said hello as a worker, on a connection that is ours to give: `fd` is taken. It `sees` those parts, a JSON
 * array. *ret is for rv__session_unref(). Errors: RV_ECLOSED, RV_EBUSY, RV_ENOMEM. Thread: any but that of connections. */
int rv__workers_adopt(struct rv__executor *executor, int fd, int64_t pid,
                      const struct rv__frame *hello, struct rv__str sees, struct rv__session **ret,
                      rv_error *err);
bool rv__session_is_lost(struct rv__session *session); /* its connection has ended. Thread: any */

/* What a session says to the engine, which gives it back by rv__news_done(). */
struct rv__news {
    struct rv__letter letter; /* first */
    struct rv__session *session;
    struct rv__offered *offered; /* what it registers; NULL: only its state has changed */
};
/* What it registers. The engine fills in what came of it. */
struct rv__offered {
    struct rv__news news; /* first */
    struct rv__wire_task task;
    struct rv__offered_workflow {
        rv_workflow *workflow;
        bool validates;
        const char *version; /* filled in; lives with the plan */
    } * workflows;
    size_t count;
    rv_workflow *library; /* functions that are in no workflow; NULL: none are */
    uint64_t module;
    struct rv__buf id;     /* of the frame, as JSON; empty: it had none */
    struct rv__buf answer; /* members of the frame `result` */
    int rc;
    rv_error err;
};

struct rv__session_state {
    int64_t credits;
    bool away, gone;
};
struct rv__session_state rv__session_state(const struct rv__news *news); /* Thread: any */
void rv__news_done(struct rv__news *news);                               /* Thread: any */
/* validate.c: have a worker judge the input of a run that is to be started. Waits for it, ten seconds at most.
 * RV_OK: *ret is what the run gets, held; NULL: what was given. RV_EINVAL: `bad` says why, and *err. RV_ECLOSED: nobody
 * has judged it, and *err is as it was. RV_ENOMEM. Thread: any but the loops'. */
struct rv__violations;
struct rv__judged {
    const char *workflow, *version;
    struct rv__str input; /* "none": there is none */
};
int rv__session_validate(struct rv__session *session, const struct rv__judged *about,
                         rv_cancel *closing, struct rv__violations *bad, struct rv__blob **ret,
                         rv_error *err);

struct rv__session_about {
    char name[101]; /* "": it gave none */
    bool local;
};
struct rv__session_about rv__session_about(struct rv__session *session); /* Thread: any */
struct rv__session *rv__session_ref(struct rv__session *session);        /* Thread: any */
void rv__session_unref(struct rv__session *session); /* NULL is allowed. Thread: any */

#endif
