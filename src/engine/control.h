/* control.h: the control socket: one process drives a store, and others ask it.
 *
 * The driver listens beside the store ("NAME.sock", control.c) for clients and workers. An engine that is attached
 * (attach.c) reads the store by itself, and sends what it wants done, or cannot know, over there: a frame `call`
 * with a method, and a frame `result` or `error` back (docs/reference/control-socket.md). ADR 0011 says why. */
#ifndef RV_ENGINE_CONTROL_H
#define RV_ENGINE_CONTROL_H

#include "base/str.h"
#include "engine/engine.h"
#include "wire/wire.h"

/* ------------------------------------------------------------------------------ listening --- */

struct rv__control;

/* What a control socket bears. A zero means the default named beside it. */
struct rv__control_limits {
    size_t connections; /* at once: 512 */
    int threads;        /* calls that are answered at once: 1024 */
    int waiters;        /* of them that wait for a run: 960, so that there is room for others */
    int64_t hello_ms;   /* for a hello to come whole: 10000 */
};

/* Listen. The engine is open, and its store held by it: a socket that is there is a dead process's, and
 * gives way. NULL limits: the defaults. Errors: RV_EINVAL, RV_ESYS, RV_ENOMEM. */
int rv__control_new(rv_engine *engine, const char *store, const struct rv__control_limits *limits,
                    struct rv__control **ret, rv_error *err);
/* The socket goes; who is being answered is waited for: the engine's loop has ended. NULL is allowed. */
void rv__control_free(struct rv__control *control);

const char *rv__control_socket(const struct rv__control *control); /* of the socket */

/* remote.c. No worker comes any more; who is in stays. NULL is allowed. */
void rv__remote_free(struct rv__remote *remote);

/* The other end of a connection, as far as it calls: of a client, or of a worker. `arg`: the control. NULL: no memory.
 * It is not used after rv__caller_ended(), which the end of the connection is. Thread: of connections. */
struct rv__caller *rv__caller_new(void *arg, struct rv__conn *conn);
void rv__caller_heard(struct rv__caller *caller, const struct rv__frame *call);
void rv__caller_ended(struct rv__caller *caller); /* NULL is allowed */

/* answer.c. Answer one call: the frame `result` or `error` goes to `out`. `gone` ends a wait; `waiters` counts
 * those that wait, up to `most`; `caller` (NULL: none) is for what is said before the answer.
 * Thread: any but the loops'. */
struct rv__asker {
    rv_cancel *gone;
    atomic_int *waiters;
    int most;
    struct rv__caller *caller;
    const char *by; /* the user of the other end */
};
/* A frame before the answer; it is taken. RV_ECLOSED: nobody is there any more; RV_ENOMEM. */
int rv__asker_tell(const struct rv__asker *asker, struct rv__buf *frame);
void rv__control_answer(rv_engine *engine, const struct rv__frame *request,
                        const struct rv__asker *asker, struct rv__buf *out);

/* ------------------------------------------------------------------------------- attached --- */

struct rv__attached {
    struct rv__socket_place place;
    bool looks_only; /* its engine was asked for to read: it tells nobody to change anything */
    rv_driver driver;
    struct rv__buf guests; /* runs that others handed to it, when it was asked: a JSON array */
    struct rv__line line;  /* held as long as it drives what was handed over */
    char handed[RV_RUN_ID_SIZE]; /* that run; "": none */
    bool followed;               /* it had it before: it stays there */
    int64_t drain_ms, grace_ms;  /* for its steps, when it is handed back */
    int left;                    /* steps of it that had not ended when it was handed back */
};

/* rv_engine_new() with `attach`. */
int rv__engine_attach(const rv_engine_opts *opts, rv_engine **ret, rv_error *err);
void rv__attached_free(struct rv__attached *attached); /* NULL is allowed */

/* rv_engine_close(): what was handed over is handed back. Returns how many of its steps had not ended. */
int rv__attached_close(rv_engine *engine);

/* Are calls that change something for the driver to answer? */
static inline bool rv__attached_asks_driver(const rv_engine *engine)
{
    return engine != NULL && engine->attached != NULL && !engine->attached->looks_only;
}

/* Another member, who is told instead of the driver, and in whose name; NULL: the driver. */
struct rv__addressee {
    int64_t member;
    const char *by; /* NULL: nobody is named */
};

/* As the public calls of these names, answered by the driver. Errors besides: RV_ECLOSED: nobody listens
 * (any more), and nothing was done; RV_EFAILED: nobody knows whether it was; RV_EBUSY: it drives another
 * run. */
int rv__attached_run(rv_engine *engine, const char *workflow, const char *input,
                     const rv_run_opts *opts, rv_run_info *ret, rv_error *err);
int rv__attached_cancel(rv_engine *engine, const struct rv__addressee *told, const char *run_id,
                        rv_error *err);
int rv__attached_read(rv_engine *engine, const struct rv__addressee *told, const char *token,
                      const rv_read *read, rv_error *err);
int rv__attached_signal(rv_engine *engine, const struct rv__addressee *told, const char *run_id,
                        const char *name, const char *payload, bool force, rv_error *err);
int rv__attached_complete(rv_engine *engine, const struct rv__addressee *told, const char *run_id,
                          const char *handle, const char *result, const char *error, rv_error *err);
extern const char *const rv__decisions[4]; /* by enum rv_decision: "resume", … */
int rv__attached_decide(rv_engine *engine, const struct rv__addressee *told, const char *run_id,
                        int decision, const rv_decide_opts *opts, rv_error *err);
int rv__attached_why(rv_engine *engine, const struct rv__addressee *told, const char *run_id,
                     char **ret, rv_error *err);
/* Each workflow as six texts with a NUL behind each: name, description, schema, version, source, steps. */
int rv__attached_workflows(rv_engine *engine, struct rv__buf *ret, rv_error *err);
/* As its row has it: 1, 0, or RV_ENOTFOUND (there is none, or it is of another workflow; NULL = any), RV_ESTORE. */
int rv__run_has_ended(rv_engine *engine, const char *workflow, const char *run_id, rv_error *err);
/* Until the run has ended on disk: told by whoever drives it, or, where nobody does, looked at now and
 * then. RV_OK: it has. */
int rv__attached_wait(rv_engine *engine, const char *workflow, const char *run_id,
                      int64_t timeout_ms, rv_cancel *by, rv_error *err);

#endif
