/* control.c: the control socket, on the side of the engine that drives the store: what comes is answered on
 * a thread of a pool of its own, since an answer may take as long as a commit, or (`wait`) as a run. The
 * engine's loop knows nothing of it: requests are public calls like any other's. wire/listen.c has the
 * socket, answer.c the answers. */
#include "engine/control.h"

#include "base/alloc.h"
#include "base/error.h"

enum { CONNECTIONS = 256, WAITERS = 192 };

struct rv__control {
    rv_engine *engine;
    struct rv__executor *threads;
    struct rv__listener *listener;
    atomic_int waiters;
    int most_waiters;
};

struct answering {
    struct rv__work work; /* first */
    struct rv__control *control;
    struct rv__request *request;
    struct rv__buf answer;
};

static void answer_request(struct rv__work *work)
{
    struct answering *a = (struct answering *)work;
    struct rv__control *control = a->control;
    struct rv__asker asker = { rv__request_gone(a->request), &control->waiters,
                               control->most_waiters };
    rv__control_answer(control->engine, rv__request_frame(a->request), &asker, &a->answer);
}

static void request_answered(struct rv__work *work, const rv_error *err)
{
    struct answering *a = (struct answering *)work;
    rv__request_answer(a->request, err == NULL ? &a->answer : NULL);
    rv__buf_done(&a->answer);
    rv__free(a);
}

static bool begin_request(void *arg, struct rv__request *request)
{
    struct rv__control *control = arg;
    struct answering *a = rv__zalloc(1, sizeof *a);
    if (a == NULL)
        return false;
    *a = (struct answering){ .work = { answer_request, request_answered },
                             .control = control,
                             .request = request };
    rv__buf_init(&a->answer, SIZE_MAX / 8); /* bounded by the frame's own limit */
    struct rv__work *work = &a->work;
    if (control->threads->start(control->threads, &work, 1) == 1)
        return true;
    rv__free(a);
    return false;
}

int rv__control_new(rv_engine *engine, const char *store, const struct rv__control_limits *limits,
                    struct rv__control **ret, rv_error *err)
{
    static const struct rv__control_limits none;
    struct rv__control *control = rv__zalloc(1, sizeof *control);
    if (control == NULL)
        return rv__nomem(err);
    if (limits == NULL)
        limits = &none;
    control->engine = engine;
    control->most_waiters = limits->waiters ? limits->waiters : WAITERS;
    const struct rv__listen_opts opts = { .clock = engine->clock,
                                          .connections = limits->connections,
                                          .request_ms = limits->request_ms,
                                          .begin = begin_request,
                                          .arg = control };
    int most = limits->connections ? (int)limits->connections : CONNECTIONS;
    int rc = rv__threads_new(most, &control->threads, err);
    if (rc == RV_OK)
        rc = rv__listen(store, &opts, &control->listener, err);
    if (rc < 0) {
        rv__control_free(control);
        return rc;
    }
    *ret = control;
    return RV_OK;
}

void rv__control_free(struct rv__control *control)
{
    if (control == NULL)
        return;
    rv__listener_close(control->listener);
    rv__executor_free(control->threads); /* a last answer may still be on its way out */
    rv__listener_free(control->listener);
    rv__free(control);
}
