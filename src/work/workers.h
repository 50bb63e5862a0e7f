/* workers.h: processes that connect to offer functions. A *session* is one such process, over all its connections.
 * The loop of connections talks to it (workers.c); for the engine's loop it is a worker with credits
 * (engine/workers.c). */
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
    RV__WORKER_GRACE_MS = 5000, /* how long a lost worker may take to come back */
    RV__WORKER_HEARTBEAT_MS =
        10000, /* after so much silence it is sent a ping; after three times that it counts as lost */
};

/* An executor of functions that workers offer. `begun` is called when the request was sent to the worker. It has no
 * credits of its own: each piece of work has its session (rv_ctx.session). */
int rv__workers_new(struct rv__services *services, const struct rv__executor *head,
                    struct rv__executor **ret, rv_error *err);
/* End all sessions. Work in progress is lost, and no new work begins. Thread: any but the loops'. */
void rv__workers_close(struct rv__executor *executor);

/* Set the members of the engine's store that have an address for workers, a JSON array of {id, workers}, and the id
 * of this engine. Every later hello is answered with it, and sessions that follow the members are told now. False:
 * nobody can connect yet, or no memory. Thread: any. */
bool rv__workers_members(struct rv__executor *executor, int64_t self, struct rv__str members);

/* Make workers on other machines say hello again. Thread: any but the loops'. */
void rv__workers_recall(struct rv__executor *executor);

/* Somebody has said hello as a worker. `local`: it is a process on this machine. Calls that it makes, if it may make
 * any, go through `calls`. Thread: that of connections. */
struct rv__calls {
    void *(*begin)(void *arg, struct rv__conn *conn); /* NULL: no memory */
    void (*heard)(void *caller, const struct rv__frame *call);
    void (*ended)(void *caller);
    void *arg;
};
void rv__workers_greet(struct rv__executor *executor, struct rv__conn *conn,
                       const struct rv__frame *hello, bool local, const struct rv__calls *calls);

/* Take a process that this engine has started, and that has said hello as a worker, on the connection `fd`, which is
 * taken. It reads the parts in `sees`, a JSON array. *ret is for rv__session_unref(). Errors: RV_ECLOSED, RV_EBUSY,
 * RV_ENOMEM. Thread: any but that of connections. */
int rv__workers_adopt(struct rv__executor *executor, int fd, int64_t pid,
                      const struct rv__frame *hello, struct rv__str sees, struct rv__session **ret,
                      rv_error *err);
bool rv__session_is_lost(struct rv__session *session); /* its connection has ended. Thread: any */

/* A message from a session to the engine, which gives it back with rv__news_done(). */
struct rv__news {
    struct rv__letter letter; /* first */
    struct rv__session *session;
    struct rv__offered *offered; /* what it registers; NULL: only its state has changed */
};
/* What a session registers. The engine fills in the answer. */
struct rv__offered {
    struct rv__news news; /* first */
    struct rv__wire_task task;
    struct rv__offered_workflow {
        rv_workflow *workflow;
        bool validates;
        const char *version; /* filled in; belongs to the plan */
    } * workflows;
    size_t count;
    rv_workflow *library; /* functions that belong to no workflow; NULL: none */
    uint64_t module;
    struct rv__buf id;     /* of the frame, as JSON; empty: none */
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
/* validate.c: ask a worker to validate the input of a new run, and wait for the answer, at most ten seconds. RV_OK:
 * *ret is the input of the run, referenced; NULL: the input as given. RV_EINVAL: `bad` and *err say why it is
 * refused. RV_ECLOSED: nobody has answered, and *err is unchanged. RV_ENOMEM. Thread: any but the loops'. */
struct rv__violations;
struct rv__judged {
    const char *workflow, *version;
    struct rv__str input; /* "none": the run has no input */
};
int rv__session_validate(struct rv__session *session, const struct rv__judged *about,
                         rv_cancel *closing, struct rv__violations *bad, struct rv__blob **ret,
                         rv_error *err);

struct rv__session_about {
    char name[101]; /* "": it has none */
    bool local;
};
struct rv__session_about rv__session_about(struct rv__session *session); /* Thread: any */
struct rv__session *rv__session_ref(struct rv__session *session);        /* Thread: any */
void rv__session_unref(struct rv__session *session); /* NULL is allowed. Thread: any */

#endif
