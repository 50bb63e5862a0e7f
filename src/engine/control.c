/* control.c: the control socket of the engine that drives a store. Clients and workers connect to it. The calls of
 * both are answered here; workers are otherwise handled by work/workers.c.
 *
 * Calls are answered by a pool of threads, since an answer may take as long as a commit, or (`wait`) as a run. For the
 * engine's loop they are ordinary public calls. Frames are sent and received by the loop of connections (wire/);
 * answer.c makes the answers. */
#include "engine/control.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/user.h"

enum {
    THREADS = 1024,      /* calls that are being answered at once */
    WAITERS = 960,       /* of them that wait for a run */
    CALLS_AT_ONCE = 512, /* calls of one client or worker */
};

struct rv__control {
    rv_engine *engine;
    struct rv__executor *threads;
    struct rv__listener *listener;
    char user[RV__USER_NAME_SIZE]; /* owner of this process, and so of nearly all callers */
    struct rv__socket_place place;
    atomic_int waiters;
    int most_waiters;
    int64_t threads_most;
    struct rv__calls calls; /* of workers */
    /* used by the loop of connections only: */
    struct rv__caller *callers;
    int64_t answering;
    bool closed;
    pthread_mutex_t lock; /* for `empty`: no caller is left, and none will come */
    pthread_cond_t over;
    bool empty;
};

/* A client or worker that makes calls. */
struct rv__caller {
    struct rv__control *control;
    struct rv__caller *next, **link;
    struct rv__conn *conn; /* NULL: it has disconnected */
    rv_cancel *gone;
    int64_t uid;  /* its user; -1: not known */
    size_t calls; /* calls in progress, which keep this struct alive */
    bool client;  /* a client, not a worker */
};

struct answering {
    struct rv__work work;      /* first */
    struct rv__wire_task task; /* its answer, on its way to the loop of connections */
    struct rv__caller *caller;
    struct rv__frame frame; /* a copy */
    struct rv__buf text;    /* of it */
    struct rv__buf answer;
};

/* A frame that is sent before the answer. */
struct said {
    struct rv__wire_task task; /* first */
    struct rv__caller *caller;
    struct rv__buf frame;
};

/* ----------------------------------------------------------------------------- answering --- */

/* On the loop of connections. */
static void look_if_empty(struct rv__control *control)
{
    if (!control->closed || control->callers != NULL)
        return;
    pthread_mutex_lock(&control->lock);
    control->empty = true;
    pthread_cond_signal(&control->over); /* under the lock: `control` may be freed */
    pthread_mutex_unlock(&control->lock);
}

static void caller_free(struct rv__caller *caller)
{
    struct rv__control *control = caller->control;
    *caller->link = caller->next;
    if (caller->next != NULL)
        caller->next->link = caller->link;
    rv_cancel_free(caller->gone);
    rv__free(caller);
    look_if_empty(control);
}

static void look_if_over(struct rv__caller *caller)
{
    if (caller->conn == NULL && caller->calls == 0)
        caller_free(caller);
}

static void send_reply(struct rv__wire_task *task)
{
    struct said *said = (struct said *)task;
    if (said->caller->conn != NULL)
        rv__buf_str(rv__conn_out(said->caller->conn), rv__buf_view(&said->frame));
    rv__buf_done(&said->frame);
    rv__free(said);
}

int rv__asker_tell(const struct rv__asker *asker, struct rv__buf *frame)
{
    struct said *said = frame->rc == RV_OK ? rv__zalloc(1, sizeof *said) : NULL;
    if (said == NULL || rv_cancel_fired(asker->gone)) {
        rv__free(said);
        return said == NULL ? RV_ENOMEM : RV_ECLOSED;
    }
    said->task.run = send_reply;
    said->caller = asker->caller; /* it is held by the call */
    said->frame = *frame;
    rv__buf_init(frame, frame->max_bytes);
    rv__wires_post(asker->caller->control->engine->services.wires, &said->task);
    return RV_OK;
}

/* The user name of the caller. Only the owner and root can open the socket. NULL: it did not come by the socket. */
static const char *user_of(const struct rv__caller *caller)
{
    if (caller->uid == (int64_t)geteuid())
        return caller->control->user;
    return caller->uid == 0 ? "root" : NULL;
}

/* On a thread of the pool. */
static void answer_call(struct rv__work *work)
{
    struct answering *a = (struct answering *)work;
    struct rv__control *control = a->caller->control;
    const struct rv__asker asker = { .gone = a->caller->gone,
                                     .waiters = &control->waiters,
                                     .most = control->most_waiters,
                                     .caller = a->caller,
                                     .by = user_of(a->caller) };
    rv__control_answer(control->engine, &a->frame, &asker, &a->answer);
}

/* On the loop of connections. */
static void give_answer(struct rv__wire_task *task)
{
    struct answering *a = RV__CONTAINER(task, struct answering, task);
    struct rv__caller *caller = a->caller;
    if (caller->conn != NULL && a->answer.rc == RV_OK)
        rv__buf_str(rv__conn_out(caller->conn), rv__buf_view(&a->answer));
    else if (caller->conn != NULL)
        rv__conn_end(caller->conn, NULL);
    caller->calls--;
    caller->control->answering--;
    rv__buf_done(&a->answer);
    rv__buf_done(&a->text);
    rv__free(a);
    look_if_over(caller);
}

static void call_answered(struct rv__work *work, const rv_error *err)
{
    struct answering *a = (struct answering *)work;
    if (err != NULL)
        a->answer.rc = RV_EFAILED;
    a->task.run = give_answer;
    rv__wires_post(a->caller->control->engine->services.wires, &a->task);
}

static void refuse_call(struct rv__caller *caller, const struct rv__frame *frame, int code,
                        const char *message)
{
    struct rv__buf *out = rv__conn_out(caller->conn);
    struct rv__str id;
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    size_t start = rv__wire_begin(out, FRAME_ERROR);
    if (!rv__str_none(id))
        rv__wire_json(out, "id", id);
    rv__wire_int(out, "code", code);
    rv__wire_text(out, "message", rv__str(message));
    rv__wire_end(out, start);
}

void rv__caller_heard(struct rv__caller *caller, const struct rv__frame *frame)
{
    struct rv__control *control = caller->control;
    struct answering *a = NULL;
    if (!control->closed && caller->calls < CALLS_AT_ONCE &&
        control->answering < control->threads_most)
        a = rv__zalloc(1, sizeof *a);
    if (a == NULL) {
        refuse_call(caller, frame, control->closed ? RV_ECLOSED : RV_EBUSY,
                    control->closed ? "the engine has closed"
                                    : "too many calls at once: try again");
        return;
    }
    *a = (struct answering){ .work = { .run = answer_call, .done = call_answered },
                             .caller = caller };
    rv__buf_init(&a->answer, SIZE_MAX / 8); /* bounded by the frame's own limit */
    rv__buf_init(&a->text, SIZE_MAX / 8);
    rv__buf_str(&a->text, frame->json);
    a->frame = (struct rv__frame){ .type = frame->type, .json = rv__buf_view(&a->text) };
    struct rv__work *work = &a->work;
    caller->calls++;
    control->answering++;
    if (a->text.rc == RV_OK && control->threads->start(control->threads, &work, 1) == 1)
        return;
    caller->calls--;
    control->answering--;
    rv__buf_done(&a->text);
    rv__free(a);
    refuse_call(caller, frame, RV_EBUSY, "no thread could be made to answer: try again");
}

struct rv__caller *rv__caller_new(void *arg, struct rv__conn *conn)
{
    struct rv__control *control = arg;
    struct rv__caller *caller = rv__zalloc(1, sizeof *caller);
    rv_cancel *gone = caller != NULL ? rv_cancel_new(NULL) : NULL;
    if (gone == NULL) {
        rv__free(caller);
        return NULL;
    }
    *caller = (struct rv__caller){ .control = control,
                                   .conn = conn,
                                   .gone = gone,
                                   .uid = rv__conn_uid(conn),
                                   .next = control->callers,
                                   .link = &control->callers };
    if (control->callers != NULL)
        control->callers->link = &caller->next;
    control->callers = caller;
    return caller;
}

void rv__caller_ended(struct rv__caller *caller)
{
    if (caller == NULL)
        return;
    caller->conn = NULL;
    rv_cancel_fire(caller->gone, RV_ECANCELED, "the caller has disconnected");
    look_if_over(caller);
}

/* -------------------------------------------------------------------------------- clients --- */

static void heard(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    rv_error err;
    if (frame->type == FRAME_CALL) {
        rv__caller_heard(arg, frame);
    } else if (frame->type == FRAME_PING) {
        rv__conn_say(conn, FRAME_PONG);
    } else if (frame->type == FRAME_BYE) {
        rv__conn_end(conn, NULL);
    } else if (frame->type != FRAME_PONG) {
        (void)rv__fail(&err, RV_EINVAL, "a client may not send '%s'",
                       rv__frame_type_name(frame->type));
        rv__conn_refuse(conn, &err);
    }
}

static void ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)conn;
    (void)why;
    rv__caller_ended(arg); /* NULL: it was refused */
}

static void say_hello(struct rv__conn *conn)
{
    struct rv__buf *out = rv__conn_out(conn);
    size_t start = rv__wire_begin(out, FRAME_HELLO);
    rv__wire_int(out, "protocol", RV__PROTOCOL);
    rv__wire_text(out, "version", rv__str(rv_version()));
    rv__wire_int(out, "pid", getpid());
    rv__wire_end(out, start);
}

static void *begin_calls(void *arg, struct rv__conn *conn)
{
    return rv__caller_new(arg, conn);
}

static void hear_call(void *caller, const struct rv__frame *call)
{
    rv__caller_heard(caller, call);
}

static void end_calls(void *caller)
{
    rv__caller_ended(caller);
}

/* A new connection has introduced itself: is it a client or a worker? */
static void greeted(void *arg, struct rv__conn *conn, const struct rv__frame *hello)
{
    static const struct rv__conn_user client = { .heard = heard, .ended = ended };
    struct rv__control *control = arg;
    struct rv__str role;
    rv_error err;
    rv__conn_use(conn, &client, NULL); /* should it be refused */
    rv__frame_members(hello, (const char *[]){ "role" }, &role, 1);
    if (control->closed) {
        (void)rv__fail(&err, RV_ECLOSED, "the engine is closing");
        rv__conn_refuse(conn, &err);
        return;
    }
    if (rv__str_is(role, "\"client\"")) {
        struct rv__caller *caller = rv__caller_new(control, conn);
        if (caller == NULL) {
            (void)rv__nomem(&err);
            rv__conn_refuse(conn, &err);
            return;
        }
        caller->client = true;
        rv__conn_use(conn, &client, caller);
        say_hello(conn);
        return;
    }
    if (rv__str_is(role, "\"worker\"") && control->engine->services.workers != NULL) {
        rv__workers_greet(control->engine->services.workers, conn, hello, true, &control->calls);
        return;
    }
    (void)rv__fail(&err, RV_EINVAL, "a hello needs a 'role': worker or client");
    rv__conn_refuse(conn, &err);
}

/* ------------------------------------------------------------------------------ life time --- */

int rv__control_new(rv_engine *engine, const char *store, const struct rv__control_limits *limits,
                    struct rv__control **ret, rv_error *err)
{
    static const struct rv__control_limits none;
    struct rv__wires *wires = NULL;
    struct rv__control *control = rv__zalloc(1, sizeof *control);
    if (control == NULL)
        return rv__nomem(err);
    if (limits == NULL)
        limits = &none;
    control->engine = engine;
    rv__user_name(geteuid(), control->user);
    control->calls = (struct rv__calls){ begin_calls, hear_call, end_calls, control };
    control->most_waiters = limits->waiters ? limits->waiters : WAITERS;
    control->threads_most = limits->threads ? limits->threads : THREADS;
    pthread_mutex_init(&control->lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&control->over, NULL);
    const struct rv__executor head = { .name = "control", .credits = control->threads_most };
    int rc = rv__services_wires(&engine->services, &wires, err);
    if (rc == RV_OK)
        rc = rv__threads_new(&head, (int)head.credits, &control->threads, err);
    const struct rv__listen_opts opts = { .wires = wires,
                                          .connections = limits->connections,
                                          .hello_ms = limits->hello_ms,
                                          .greeted = greeted,
                                          .arg = control };
    if (rc == RV_OK)
        rc = rv__listen(store, &opts, &control->listener, err);
    if (rc == RV_OK)
        rc = rv__socket_place(store, &control->place, err);
    if (rc < 0) {
        rv__control_free(control);
        return rc;
    }
    *ret = control;
    return RV_OK;
}

const char *rv__control_socket(const struct rv__control *control)
{
    return control->place.path;
}

static void tell_closed(void *arg)
{
    struct rv__control *control = arg;
    control->closed = true;
    for (struct rv__caller *caller = control->callers; caller != NULL; caller = caller->next)
        rv_cancel_fire(caller->gone, RV_ECLOSED, "the engine has closed");
}

/* Wait until all calls are answered. */
static void end_clients(void *arg)
{
    struct rv__control *control = arg;
    for (struct rv__caller *caller = control->callers; caller != NULL; caller = caller->next)
        if (caller->client && caller->conn != NULL)
            rv__conn_end(caller->conn, NULL);
    look_if_empty(control);
}

void rv__control_free(struct rv__control *control)
{
    if (control == NULL)
        return;
    struct rv__wires *wires = control->engine->services.wires;
    rv__listener_free(control->listener);
    if (wires != NULL && control->threads != NULL) {
        rv__wires_run(wires, tell_closed, control);
        rv__executor_free(control->threads); /* waits for the answers */
        rv__wires_run(wires, end_clients, control);
        pthread_mutex_lock(&control->lock);
        while (!control->empty)
            pthread_cond_wait(&control->over, &control->lock);
        pthread_mutex_unlock(&control->lock);
    }
    pthread_cond_destroy(&control->over);
    pthread_mutex_destroy(&control->lock);
    rv__free(control);
}
