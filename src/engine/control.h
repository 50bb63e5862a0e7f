/* control.h: the control socket: one process drives a store, and others ask it.
 *
 * The driver listens beside the store ("NAME.sock", control.c). An engine that is attached (attach.c) reads
 * the store by itself, and sends what it wants done, or cannot know, over there. Each question is a
 * connection of its own: a frame `call` with a method, and a frame `result` or `error` back
 * (docs/reference/control-socket.md). ADR 0011 says why. */
#ifndef RV_ENGINE_CONTROL_H
#define RV_ENGINE_CONTROL_H

#include "base/str.h"
#include "engine/engine.h"
#include "wire/wire.h"

enum { RV__CONTROL_PROTOCOL = 1 };

/* ------------------------------------------------------------------------------ listening --- */

struct rv__control;

/* What a control socket bears. A zero means the default named beside it. */
struct rv__control_limits {
    size_t connections; /* at once: 256, which is the most */
    int waiters;        /* of them that wait for a run: 192, so that there is room for others */
    int64_t request_ms; /* for a request to come whole: 10000 */
};

/* Listen. The engine is open, and its store held by it: a socket that is there is a dead process's, and
 * gives way. NULL limits: the defaults. Errors: RV_EINVAL, RV_ESYS, RV_ENOMEM. */
int rv__control_new(rv_engine *engine, const char *store, const struct rv__control_limits *limits,
                    struct rv__control **ret, rv_error *err);
/* The socket goes; who is being answered is waited for: the engine's loop has ended. NULL is allowed. */
void rv__control_free(struct rv__control *control);

/* answer.c. Answer one request: the frame `result` or `error` goes to `out`. `gone` ends a wait; `waiters` counts
 * those that wait, up to `most`. Thread: any but the loop's. */
struct rv__asker {
    rv_cancel *gone;
    atomic_int *waiters;
    int most;
};
void rv__control_answer(rv_engine *engine, const struct rv__frame *request,
                        const struct rv__asker *asker, struct rv__buf *out);

/* ------------------------------------------------------------------------------- attached --- */

struct rv__attached {
    struct rv__socket_place place;
    bool looks_only; /* its engine was asked for to read: it tells nobody to change anything */
    rv_driver driver;
};

/* rv_engine_new() with `attach`. */
int rv__engine_attach(const rv_engine_opts *opts, rv_engine **ret, rv_error *err);
void rv__attached_free(struct rv__attached *attached); /* NULL is allowed */

/* Are calls that change something for the driver to answer? */
static inline bool rv__attached_tells(const rv_engine *engine)
{
    return engine != NULL && engine->attached != NULL && !engine->attached->looks_only;
}

/* As the public calls of these names, answered by the driver. Errors besides: RV_ECLOSED: nobody listens
 * (any more), and nothing was done; RV_EFAILED: nobody knows whether it was; RV_EBUSY: it drives another
 * run. */
int rv__attached_run(rv_engine *engine, const char *workflow, const char *input,
                     const rv_run_opts *opts, rv_run_info *ret, rv_error *err);
int rv__attached_cancel(rv_engine *engine, const char *run_id, rv_error *err);
int rv__attached_signal(rv_engine *engine, const char *run_id, const char *name,
                        const char *payload, rv_error *err);
int rv__attached_complete(rv_engine *engine, const char *run_id, const char *handle,
                          const char *result, const char *error, rv_error *err);
int rv__attached_decide(rv_engine *engine, const char *run_id, int decision, const char *reason,
                        rv_error *err);
int rv__attached_why(rv_engine *engine, const char *run_id, char **ret, rv_error *err);
/* Each workflow as six texts with a NUL behind each: name, description, schema, version, source, steps. */
int rv__attached_workflows(rv_engine *engine, struct rv__buf *ret, rv_error *err);
/* Until the run has ended on disk: told by whoever drives it, or, where nobody does, looked at now and
 * then. RV_OK: it has. */
int rv__attached_wait(rv_engine *engine, const char *workflow, const char *run_id,
                      int64_t timeout_ms, rv_cancel *by, rv_error *err);

#endif
