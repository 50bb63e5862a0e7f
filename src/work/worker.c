/* worker.c: a worker, as the program that is one sees it: rv_worker_…. The engine's side is workers.c.
 *
 *   away ──connected, hello──▶ here ──its connection ends──▶ away      (until the program's token fires)
 *
 * Connections are on a loop of their own (wire/), functions on threads, and the thread inside rv_worker_run() connects and
 * waits. An invocation is a *job*: it belongs to its thread while its function runs, then to the loop, which keeps its
 * answer until the engine says that it was taken, over as many connections as that takes. A job whose session the engine
 * has forgotten is told to stop, and what it answers is dropped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/index.h"
#include "base/json.h"
#include "base/listen.h"
#include "base/opts.h"
#include "base/random.h"
#include "define/define.h"
#include "work/remote_ctx.h"

enum {
    CREDITS = 16,
    CONNECT_MS = 10000,
    FIRST_PAUSE_MS = 100, /* before it connects again, then longer, */
    LAST_PAUSE_MS = 5000, /* up to that */
    HEARTBEAT_MS = 10000, /* until the engine says another */
    TICK_MS = 500,
    GRACE_MS = 10000, /* for functions to end, when it is to stop */
};

/* A workflow that it offers, and all functions that its runs may need. */
struct offer {
    struct offer *next;
    const rv_workflow *workflow; /* NULL: functions for files that call them */
    struct rv__buf plan;
    struct rv__buf functions; /* names, as JSON, comma-separated */
};

struct fn {
    struct fn *next;
    struct rv__str workflow, name; /* workflow "": for files that call it */
    rv_step_fn fn;
};

struct job {
    struct rv__remote_ctx remote; /* first */
    rv_worker *worker;
    struct rv__index_entry by_id;
    struct job *next, **link; /* among all */
    struct rv__wire_task task;
    bool orphan;   /* the engine has forgotten it: it is in no index, and its answer is nobody's */
    bool answered; /* its function has ended: `answer` is to be delivered */
    bool waiting;  /* its thread waits for a value, `wanted`, */
    bool asked;    /* and the engine was asked for it on this connection */
    struct rv__buf answer; /* the frame */
    /* Of its thread, that waits for a value: */
    pthread_mutex_t lock; /* of these: */
    pthread_cond_t changed;
    struct rv__shown *wanted; /* NULL: nothing, or it has come */
    int got;
    struct rv__wire_task ask;
};

/* A line of a log on its way. */
struct line {
    struct rv__wire_task task; /* first */
    rv_worker *worker;
    struct rv__buf frame;
};

struct rv_worker {
    struct rv__arena arena;
    const char *path, *host, *token, *name; /* path NULL: host and port */
    char port[6];
    bool secure;
    struct rv__tls_keys *keys;
    int64_t credits;
    struct offer *offers, **last_offer;
    struct fn *functions;
    struct rv__wires *wires; /* while it runs, as is what follows */
    struct rv__executor *threads;
    /* The loop's: */
    struct rv__conn *conn; /* NULL: away */
    bool welcome;          /* the engine has said hello on it */
    uv_timer_t *tick;
    int64_t heartbeat_ms;
    char session[64];
    struct rv__slots slots;
    struct rv__index by_id;
    struct job *jobs;
    bool leaving;         /* no more work is taken, */
    bool over;            /* and nobody will be asked any more */
    pthread_mutex_t lock; /* of the rest: */
    pthread_cond_t changed;
    bool connected;   /* there is a connection */
    bool greeted;     /* and the engine said hello, since it was asked last */
    size_t running;   /* functions */
    rv_error refused; /* what it registers is: it cannot go on; code 0: it is not */
    rv_error last;    /* why there was no connection, or it ended */
    rv_cancel *stop;
};

/* ------------------------------------------------------------------------------------ jobs --- */

static struct job *find_job(const rv_worker *w, struct rv__str id)
{
    struct rv__arena arena;
    struct rv__str text;
    struct job *found = NULL;
    if (rv__str_none(id) || rv__json_type(id) != RV__JSON_STRING)
        return NULL;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (rv__json_string(id, &arena, &text) == RV_OK)
        for (struct rv__index_entry *e =
                 rv__index_first(&w->by_id, rv__str_hash(RV__HASH_START, text));
             e != NULL && found == NULL; e = rv__index_next(e)) {
            struct job *job = RV__CONTAINER(e, struct job, by_id);
            found = rv__str_is(text, job->remote.id) ? job : NULL;
        }
    rv__arena_done(&arena);
    return found;
}

static void job_free(struct job *job)
{
    rv__remote_ctx_done(&job->remote);
    rv__buf_done(&job->answer);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    rv__free(job);
}

/* It is over, and its answer with the engine, or of no use to anybody. */
static void job_leaves(struct job *job)
{
    if (!job->orphan)
        rv__index_remove(&job->worker->by_id, &job->by_id);
    *job->link = job->next;
    if (job->next != NULL)
        job->next->link = job->link;
    job_free(job);
}

/* Its thread need not wait any longer. */
static void give(struct job *job, int rc)
{
    job->waiting = job->asked = false;
    pthread_mutex_lock(&job->lock);
    job->wanted = NULL;
    job->got = rc;
    pthread_cond_signal(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static void say(rv_worker *w, const struct rv__buf *frame)
{
    if (w->conn != NULL && w->welcome && frame->rc == RV_OK)
        rv__buf_str(rv__conn_out(w->conn), rv__buf_view(frame));
}

/* On the loop: the function has ended. */
static void job_answers(struct rv__wire_task *task)
{
    struct job *job = RV__CONTAINER(task, struct job, task);
    job->answered = true;
    if (job->orphan)
        job_leaves(job);
    else
        say(job->worker, &job->answer);
}

static void job_run(struct rv__work *work)
{
    struct job *job = (struct job *)work;
    rv__remote_ctx_run(&job->remote);
    rv__remote_ctx_put_answer(&job->remote, &job->answer);
}

static void job_done(struct rv__work *work, const rv_error *err)
{
    struct job *job = (struct job *)work;
    rv_worker *w = job->worker;
    if (err != NULL) { /* it could not be begun */
        rv__ctx_failed(&job->remote.ctx, err);
        rv__remote_ctx_put_answer(&job->remote, &job->answer);
    }
    job->task.run = job_answers;
    rv__wires_post(w->wires, &job->task);
    pthread_mutex_lock(&w->lock);
    w->running--;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* ----------------------------------------------------------------------------- what it sees --- */

/* On the loop. Away: it is asked when the engine knows us again. */
static void ask(struct rv__wire_task *task)
{
    struct job *job = RV__CONTAINER(task, struct job, ask);
    rv_worker *w = job->worker;
    job->waiting = true;
    if (job->orphan || w->over) {
        give(job, RV_ECLOSED); /* nobody will answer it */
        return;
    }
    if (w->conn == NULL || !w->welcome)
        return;
    job->asked = true;
    rv__remote_ctx_put_get(&job->remote, job->wanted, rv__conn_out(w->conn));
}

static int fetch(struct rv__remote_ctx *remote, struct rv__shown *shown)
{
    struct job *job = (struct job *)remote;
    pthread_mutex_lock(&job->lock);
    job->wanted = shown;
    job->got = RV_OK;
    job->ask.run = ask;
    rv__wires_post(job->worker->wires, &job->ask);
    while (job->wanted != NULL)
        pthread_cond_wait(&job->changed, &job->lock);
    int rc = job->got;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

static void say_line(struct rv__wire_task *task)
{
    struct line *line = (struct line *)task;
    say(line->worker, &line->frame); /* away: the line is lost */
    rv__buf_done(&line->frame);
    rv__free(line);
}

static void worker_log(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata)
{
    struct job *job = (struct job *)ctx;
    struct line *line = rv__zalloc(1, sizeof *line);
    if (line == NULL)
        return; /* no memory for it */
    line->task.run = say_line;
    line->worker = job->worker;
    rv__buf_init(&line->frame, RV__FRAME_MAX);
    rv__remote_ctx_put_log(&job->remote, level, message, metadata, &line->frame);
    rv__wires_post(job->worker->wires, &line->task);
}

static const struct rv__source worker_source = { .see = rv__remote_ctx_see,
                                                 .who = rv__remote_ctx_who,
                                                 .log = worker_log };

/* -------------------------------------------------------------------------------- hearing --- */

static void note(rv_worker *w, rv_error *at, const rv_error *why)
{
    pthread_mutex_lock(&w->lock);
    *at = *why;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static rv_step_fn find_fn(const rv_worker *w, struct rv__str workflow, struct rv__str name)
{
    rv_step_fn other = NULL;
    for (const struct fn *f = w->functions; f != NULL; f = f->next) {
        if (!rv__str_eq(f->name, name))
            continue;
        if (rv__str_eq(f->workflow, workflow))
            return f->fn;
        other = f->fn;
    }
    return other;
}

static void hear_invoke(rv_worker *w, const struct rv__frame *frame)
{
    struct job *job = rv__zalloc(1, sizeof *job);
    rv_error err;
    int rc = RV_ENOMEM;
    if (job != NULL) {
        pthread_mutex_init(&job->lock, NULL); /* on Linux these two cannot fail */
        pthread_cond_init(&job->changed, NULL);
        rv__buf_init(&job->answer, RV__FRAME_MAX + 4);
        rc = rv__remote_ctx_take(&job->remote, frame, &w->slots, &worker_source);
    }
    if (rc == RV_OK)
        rc = rv__index_add(&w->by_id, &job->by_id,
                           rv__str_hash(RV__HASH_START, rv__str(job->remote.id)));
    if (rc < 0) { /* the engine learns that it is lost */
        if (job != NULL)
            job_free(job);
        (void)rv__fail(&err, rc, "an invocation could not be taken: %s", rv_strerror(rc));
        note(w, &w->last, &err);
        rv__conn_end(w->conn, NULL);
        return;
    }
    job->worker = w;
    job->next = w->jobs;
    job->link = &w->jobs;
    if (w->jobs != NULL)
        w->jobs->link = &job->next;
    w->jobs = job;
    job->remote.fetch = fetch;
    job->remote.ctx.fn = find_fn(w, job->remote.workflow, job->remote.function);
    job->remote.ctx.work.run = job_run;
    job->remote.ctx.work.done = job_done;
    pthread_mutex_lock(&w->lock);
    w->running++;
    pthread_mutex_unlock(&w->lock);
    struct rv__work *work = &job->remote.ctx.work;
    if (w->threads->start(w->threads, &work, 1) == 1)
        return;
    (void)rv__fail(&err, RV_EBUSY, "no thread could be made for it");
    job_done(work, &err);
}

static void hear_value(rv_worker *w, const struct rv__frame *frame)
{
    struct rv__str id;
    struct rv__shown unwanted = { .next = NULL };
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    struct job *job = find_job(w, id);
    if (job != NULL && job->asked) { /* its thread waits, and touches nothing */
        job->asked = false;
        give(job, rv__remote_ctx_value(&job->remote, frame, &w->slots, job->wanted));
        return;
    }
    struct rv__str has[2]; /* nobody's, but it may be kept */
    rv__frame_members(frame, (const char *[]){ "json", "slot" }, has, 2);
    (void)rv__slots_text(&w->slots, has[0], has[1],
                         &unwanted.json); /* no memory: as if it was not sent */
    rv__blob_unref(unwanted.json);
}

static void hear_taken(rv_worker *w, const struct rv__frame *frame)
{
    struct rv__json_iter it;
    struct rv__str ids, id;
    rv__frame_members(frame, (const char *[]){ "ids" }, &ids, 1);
    if (rv__str_none(ids) || rv__json_type(ids) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, ids);
    while (rv__json_next(&it, NULL, &id)) {
        struct job *job = find_job(w, id);
        if (job != NULL && job->answered)
            job_leaves(job);
    }
}

static void say_register(rv_worker *w)
{
    struct rv__buf *out = rv__conn_out(w->conn);
    const char *comma = "";
    size_t start = rv__wire_begin(out, FRAME_REGISTER);
    rv__wire_text(out, "id", rv__str("register"));
    rv__buf_text(out, ",\"workflows\":[");
    for (const struct offer *o = w->offers; o != NULL; o = o->next) {
        if (o->workflow == NULL)
            continue;
        rv__buf_text(out, comma);
        rv__buf_text(out, "{\"plan\":");
        rv__buf_str(out, rv__buf_view(&o->plan));
        rv__buf_text(out, ",\"functions\":[");
        rv__buf_str(out, rv__buf_view(&o->functions));
        rv__buf_text(out, "]}");
        comma = ",";
    }
    rv__buf_char(out, ']');
    for (const struct offer *o = w->offers; o != NULL; o = o->next)
        if (o->workflow == NULL) {
            rv__buf_text(out, ",\"functions\":[");
            rv__buf_str(out, rv__buf_view(&o->functions));
            rv__buf_char(out, ']');
        }
    rv__wire_end(out, start);
}

/* The engine does not know us any more: what runs is for nobody. */
static void forget_session(rv_worker *w)
{
    for (struct job *job = w->jobs, *next; job != NULL; job = next) {
        next = job->next;
        rv_cancel_fire(job->remote.ctx.work.token, RV_ECANCELED,
                       "the engine has given it to another");
        if (job->waiting)
            give(job, RV_ECLOSED);
        if (job->answered) {
            job_leaves(job);
        } else if (!job->orphan) { /* the next engine may call another by the same id */
            rv__index_remove(&w->by_id, &job->by_id);
            job->orphan = true;
        }
    }
}

static void hear_hello(rv_worker *w, const struct rv__frame *frame)
{
    enum { SESSION, RESUMED, HEARTBEAT, KEYS };
    struct rv__str has[KEYS], text;
    struct rv__arena arena;
    rv__frame_members(frame, (const char *[]){ "session", "resumed", "heartbeatMs" }, has, KEYS);
    if (!rv__str_is(has[RESUMED], "true"))
        forget_session(w);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__str_none(has[SESSION]) && rv__json_type(has[SESSION]) == RV__JSON_STRING &&
        rv__json_string(has[SESSION], &arena, &text) == RV_OK && text.len < sizeof w->session)
        snprintf(w->session, sizeof w->session, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    if (rv__str_none(has[HEARTBEAT]) || rv__json_int(has[HEARTBEAT], &w->heartbeat_ms) < 0 ||
        w->heartbeat_ms <= 0)
        w->heartbeat_ms = HEARTBEAT_MS;
    w->welcome = true;
    say_register(w);
    for (struct job *job = w->jobs; job != NULL; job = job->next)
        if (job->answered)
            say(w, &job->answer);
        else if (job->waiting) /* it was asked for on a connection that is gone, or not yet */
            ask(&job->ask);
    pthread_mutex_lock(&w->lock);
    w->greeted = true;
    pthread_mutex_unlock(&w->lock);
}

/* Said before a hello: it does not want us, and will not the next time. */
static bool is_final(int code)
{
    return code == RV_EINVAL || code == RV_EPARSE;
}

static void hear_error(rv_worker *w, const struct rv__frame *frame)
{
    enum { ID, CODE, MESSAGE, KEYS };
    struct rv__str has[KEYS], text = { "the engine has refused", 22 };
    struct rv__arena arena;
    rv_error err;
    int64_t code = RV_EFAILED;
    rv__frame_members(frame, (const char *[]){ "id", "code", "message" }, has, KEYS);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__str_none(has[MESSAGE]) && rv__json_type(has[MESSAGE]) == RV__JSON_STRING)
        (void)rv__json_string(has[MESSAGE], &arena, &text);
    if (rv__str_none(has[CODE]) || rv__json_int(has[CODE], &code) < 0 || code >= 0 ||
        rv_errname((int)code) == NULL)
        code = RV_EFAILED;
    (void)rv__fail(&err, (int)code, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    bool registering = !rv__str_none(has[ID]) && rv__json_string_is(has[ID], rv__str("register"));
    bool unwelcome = rv__str_none(has[ID]) && !w->welcome && is_final((int)code);
    note(w, registering || unwelcome ? &w->refused : &w->last, &err);
}

static void hear(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    rv_worker *w = arg;
    struct rv__str id;
    switch (frame->type) {
    case FRAME_HELLO: hear_hello(w, frame); return;
    case FRAME_INVOKE: hear_invoke(w, frame); return;
    case FRAME_VALUE: hear_value(w, frame); return;
    case FRAME_TAKEN: hear_taken(w, frame); return;
    case FRAME_FORGET: rv__slots_forget(&w->slots); return;
    case FRAME_ERROR: hear_error(w, frame); return;
    case FRAME_PING: rv__conn_say(conn, FRAME_PONG); return;
    case FRAME_BYE: rv__conn_end(conn, NULL); return;
    case FRAME_CANCEL: {
        rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
        struct job *job = find_job(w, id);
        if (job != NULL && !job->answered)
            rv_cancel_fire(job->remote.ctx.work.token, RV_ECANCELED, "the engine asked it to stop");
        return;
    }
    case FRAME_REGISTER:
    case FRAME_CREDITS:
    case FRAME_GET:
    case FRAME_ENTRY:
    case FRAME_LOG:
    case FRAME_STATE:
    case FRAME_RESULT: /* to a register */
    case FRAME_VALIDATE:
    case FRAME_VALID:
    case FRAME_VIOLATIONS:
    case FRAME_CALL:
    case FRAME_BEGUN:
    case FRAME_PONG:
    case FRAME_DYING:
    case FRAME_TYPES: return; /* nothing that was asked for */
    }
}

static void ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    rv_worker *w = arg;
    bool was_welcome = w->welcome;
    (void)conn;
    w->conn = NULL;
    w->welcome = false;
    rv__slots_forget(&w->slots);
    for (struct job *job = w->jobs; job != NULL; job = job->next)
        job->asked = false;
    pthread_mutex_lock(&w->lock);
    w->connected = false;
    if (why != NULL)
        w->last = *why;
    if (why != NULL && !was_welcome && is_final(why->code) && w->refused.code == 0)
        w->refused = *why;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void on_tick(uv_timer_t *timer)
{
    rv_worker *w = timer->data;
    if (w->conn != NULL) /* before its hello, too: it may hang */
        rv__conn_beat(w->conn, w->heartbeat_ms);
}

/* ----------------------------------------------------------------------------- connecting --- */

/* Within CONNECT_MS, or until it is to stop. */
static int wait_connected(rv_worker *w, int fd)
{
    for (int waited = 0; waited < CONNECT_MS && !rv_cancel_fired(w->stop); waited += 100) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        int error = 0;
        socklen_t len = sizeof error;
        if (poll(&p, 1, 100) <= 0)
            continue;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
    }
    return ETIMEDOUT;
}

static int dial(rv_worker *w, const struct sockaddr *address, socklen_t len, const char *where,
                rv_error *err)
{
    int yes = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "cannot make a socket: %s", strerrordesc_np(errno));
    int failed = connect(fd, address, len) == 0 ? 0 : errno;
    if (failed == EINPROGRESS)
        failed = wait_connected(w, fd);
    if (failed != 0) {
        (void)close(fd);
        return rv__fail(err, RV_ECLOSED, "cannot connect to '%.150s': %s", where,
                        strerrordesc_np(failed));
    }
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* else slower */
    return fd;
}

static int dial_host(rv_worker *w, rv_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int fd = RV_ECLOSED, rc = getaddrinfo(w->host, w->port, &hints, &found);
    if (rc != 0)
        return rv__fail(err, RV_ECLOSED, "cannot find '%.150s': %s", w->host, gai_strerror(rc));
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = dial(w, at->ai_addr, at->ai_addrlen, w->host, err);
    freeaddrinfo(found);
    return fd;
}

static int dial_path(rv_worker *w, rv_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path); /* its length was checked */
    return dial(w, (const struct sockaddr *)&address, sizeof address, w->path, err);
}

struct connecting {
    rv_worker *worker;
    int fd;
};

static void say_hello(rv_worker *w)
{
    struct rv__buf *out = rv__conn_out(w->conn);
    const char *comma = "";
    size_t start = rv__wire_begin(out, FRAME_HELLO);
    rv__wire_int(out, "protocol", RV__PROTOCOL);
    rv__wire_text(out, "role", rv__str("worker"));
    rv__wire_int(out, "credits", w->leaving ? 0 : w->credits);
    rv__wire_int(out, "pid", getpid());
    if (w->name != NULL)
        rv__wire_text(out, "name", rv__str(w->name));
    if (w->token != NULL)
        rv__wire_text(out, "token", rv__str(w->token));
    if (w->session[0] != '\0') {
        rv__wire_text(out, "session", rv__str(w->session));
        rv__buf_text(out, ",\"has\":[");
        for (const struct job *job = w->jobs; job != NULL; job = job->next) {
            if (job->orphan)
                continue;
            rv__buf_text(out, comma);
            rv__buf_json_str(out, rv__str(job->remote.id));
            comma = ",";
        }
        rv__buf_char(out, ']');
    }
    rv__wire_end(out, start);
}

/* On the loop. */
static void begin_connection(void *arg)
{
    static const struct rv__conn_user user = { .heard = hear, .ended = ended };
    struct connecting *c = arg;
    rv_worker *w = c->worker;
    w->conn = rv__conn_new(w->wires, c->fd, &user, w);
    if (w->conn == NULL) {
        (void)close(c->fd);
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->connected = true;
    pthread_mutex_unlock(&w->lock);
    say_hello(w);
    if (w->secure && !rv__conn_secure(w->conn, w->keys, w->host))
        rv__conn_end(w->conn, NULL);
}

/* ---------------------------------------------------------------------------------- running --- */

static void start_loop(void *arg)
{
    rv_worker *w = arg;
    w->tick = rv__zalloc(1, sizeof *w->tick);
    if (w->tick == NULL)
        return;
    uv_timer_init(rv__wires_loop(w->wires), w->tick); /* cannot fail, nor can its start */
    w->tick->data = w;
    uv_timer_start(w->tick, on_tick, TICK_MS, TICK_MS);
}

static void tick_closed(uv_handle_t *handle)
{
    rv__free(handle);
}

/* No more work. */
static void begin_leaving(void *arg)
{
    rv_worker *w = arg;
    w->leaving = true;
    if (w->conn == NULL || !w->welcome)
        return;
    struct rv__buf *out = rv__conn_out(w->conn);
    size_t start = rv__wire_begin(out, FRAME_CREDITS);
    rv__wire_int(out, "credits", 0);
    rv__wire_end(out, start);
}

static void tell_jobs(void *arg)
{
    rv_worker *w = arg;
    for (struct job *job = w->jobs; job != NULL; job = job->next) {
        rv_cancel_fire(job->remote.ctx.work.token, RV_ECANCELED, "the worker is to stop");
    }
}

static void end_loop(void *arg)
{
    rv_worker *w = arg;
    w->over = true;
    if (w->conn != NULL && w->welcome)
        rv__conn_say(w->conn, FRAME_BYE);
    if (w->conn != NULL)
        rv__conn_end(w->conn, NULL);
    for (struct job *job = w->jobs; job != NULL; job = job->next)
        if (job->waiting)
            give(job, RV_ECLOSED);
    if (w->tick != NULL)
        uv_close((uv_handle_t *)w->tick, tick_closed);
    w->tick = NULL;
}

struct watching {
    struct rv__cancel_watch watch; /* first */
    rv_worker *worker;
};

static void fired(struct rv__cancel_watch *watch)
{
    rv_worker *w = ((struct watching *)watch)->worker;
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool is_refused(rv_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool refused = w->refused.code != 0;
    pthread_mutex_unlock(&w->lock);
    return refused;
}

/* One connection, from its beginning to its end. True: the engine said hello. */
static bool serve_once(rv_worker *w)
{
    struct connecting c = { .worker = w };
    rv_error err = { .code = 0 };
    c.fd = w->path != NULL ? dial_path(w, &err) : dial_host(w, &err);
    if (c.fd < 0) {
        note(w, &w->last, &err);
        return false;
    }
    pthread_mutex_lock(&w->lock);
    w->greeted = false;
    pthread_mutex_unlock(&w->lock);
    rv__wires_run(w->wires, begin_connection, &c);
    pthread_mutex_lock(&w->lock);
    while (w->connected && !rv_cancel_fired(w->stop) && w->refused.code == 0)
        pthread_cond_wait(&w->changed, &w->lock);
    bool greeted = w->greeted;
    pthread_mutex_unlock(&w->lock);
    return greeted;
}

/* In good order: what runs may end, and is told after a while. */
static void leave(rv_worker *w, int64_t grace_ms)
{
    rv__wires_run(w->wires, begin_leaving, w);
    int64_t until_ns = rv__deadline_ns(grace_ms);
    pthread_mutex_lock(&w->lock);
    while (w->running > 0 && w->connected && rv__cond_wait_until(&w->changed, &w->lock, until_ns))
        ;
    pthread_mutex_unlock(&w->lock);
    rv__wires_run(w->wires, tell_jobs, w);
    pthread_mutex_lock(&w->lock);
    until_ns = rv__deadline_ns(grace_ms);
    while (w->running > 0 && w->connected && rv__cond_wait_until(&w->changed, &w->lock, until_ns))
        ;
    pthread_mutex_unlock(&w->lock);
    rv__wires_run(w->wires, end_loop, w);
}

static void give_back(rv_worker *w)
{
    rv__executor_free(w->threads); /* waits for functions */
    rv__wires_free(w->wires);
    while (w->jobs != NULL)
        job_leaves(w->jobs);
    rv__index_done(&w->by_id);
    rv__slots_forget(&w->slots);
    w->threads = NULL;
    w->wires = NULL;
    w->session[0] = '\0';
    w->leaving = w->over = false;
}

int rv_worker_run(rv_worker *w, rv_cancel *stop, rv_error *err)
{
    struct watching watching = { .watch = { .fired = fired }, .worker = w };
    struct rv__random random;
    uint64_t seed;
    if (w == NULL || stop == NULL)
        return rv__fail(err, RV_EINVAL, "rv_worker_run: no worker, or no token to stop it by");
    if (w->offers == NULL)
        return rv__fail(err, RV_EINVAL, "the worker offers nothing: rv_worker_offer() first");
    const struct rv__executor head = { .name = "thread", .credits = w->credits };
    int rc = rv__random_seed_system(&seed, err);
    if (rc == RV_OK)
        rc = rv__wires_new(&w->wires, err);
    if (rc == RV_OK)
        rc = rv__threads_new(&head, (int)w->credits, &w->threads, err);
    if (rc < 0) {
        give_back(w);
        return rc;
    }
    rv__random_init(&random, seed);
    w->stop = stop;
    w->refused = w->last = (rv_error){ .code = 0 };
    w->heartbeat_ms = HEARTBEAT_MS;
    rv__wires_run(w->wires, start_loop, w);
    bool watched = rv__cancel_watch(stop, &watching.watch);
    for (int64_t pause_ms = FIRST_PAUSE_MS; !rv_cancel_fired(stop) && !is_refused(w);) {
        if (serve_once(w))
            pause_ms = FIRST_PAUSE_MS;
        if (!is_refused(w))
            (void)rv_cancel_wait(stop, pause_ms / 2 +
                                           (int64_t)rv__random_below(&random, (uint64_t)pause_ms));
        pause_ms = pause_ms * 2 < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS;
    }
    if (watched)
        rv__cancel_unwatch(stop, &watching.watch);
    leave(w, GRACE_MS);
    give_back(w);
    return w->refused.code != 0 ? rv__fail(err, w->refused.code, "%s", w->refused.message) : RV_OK;
}

int rv_worker_state(rv_worker *w, rv_error *ret_why)
{
    if (w == NULL)
        return 0;
    pthread_mutex_lock(&w->lock);
    int here = w->connected && w->greeted;
    if (ret_why != NULL)
        *ret_why = w->last;
    pthread_mutex_unlock(&w->lock);
    return here;
}

/* -------------------------------------------------------------------------------- offering --- */

struct finder {
    struct rv__resolver resolver; /* first */
    const rv_worker *worker;
    struct offer *offer;
};

static void put_function(struct offer *offer, struct rv__str name)
{
    if (offer->functions.len > 0)
        rv__buf_char(&offer->functions, ',');
    rv__buf_json_str(&offer->functions, name);
}

/* One that is nested, and was offered before: its functions are needed, too. */
static int find_draft(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct finder *finder = (struct finder *)self;
    for (struct offer *o = finder->worker->offers; o != NULL; o = o->next) {
        if (o->workflow == NULL || !rv__str_eq(rv__draft_name(o->workflow->draft), name))
            continue;
        if (o->functions.len > 0) {
            if (finder->offer->functions.len > 0)
                rv__buf_char(&finder->offer->functions, ',');
            rv__buf_str(&finder->offer->functions, rv__buf_view(&o->functions));
        }
        *ret = o->workflow->draft;
        return RV_OK;
    }
    return RV_ENOTFOUND;
}

static int add_fn(rv_worker *w, struct rv__str workflow, struct rv__str name, rv_step_fn fn,
                  rv_error *err)
{
    struct fn *added = rv__arena_zalloc(&w->arena, 1, sizeof *added);
    if (added == NULL || rv__str_copy(&w->arena, workflow, &added->workflow) < 0 ||
        rv__str_copy(&w->arena, name, &added->name) < 0)
        return rv__nomem(err);
    added->fn = fn;
    added->next = w->functions;
    w->functions = added;
    return RV_OK;
}

static struct offer *new_offer(rv_worker *w)
{
    struct offer *offer = rv__arena_zalloc(&w->arena, 1, sizeof *offer);
    if (offer == NULL)
        return NULL;
    rv__buf_init(&offer->plan, RV__FRAME_MAX);
    rv__buf_init(&offer->functions, RV__FRAME_MAX);
    return offer;
}

static void keep_offer(rv_worker *w, struct offer *offer)
{
    *w->last_offer = offer;
    w->last_offer = &offer->next;
}

int rv_worker_offer(rv_worker *w, const rv_workflow *workflow, rv_error *err)
{
    struct rv__plan *plan = NULL;
    if (w == NULL || workflow == NULL || w->wires != NULL)
        return rv__fail(err, RV_EINVAL,
                        "rv_worker_offer: no worker, no workflow, or it runs already");
    if (workflow->rc != RV_OK)
        return rv__fail(err, workflow->rc, "%s",
                        workflow->rc == RV_ENOMEM ? rv_strerror(RV_ENOMEM) : workflow->why);
    struct offer *offer = new_offer(w);
    if (offer == NULL)
        return rv__nomem(err);
    struct finder finder = { .resolver = { find_draft }, .worker = w, .offer = offer };
    offer->workflow = workflow;
    struct rv__str name = rv__draft_name(workflow->draft);
    int rc = rv__plan_compile(workflow->draft, &finder.resolver, NULL, &plan, err);
    if (rc == RV_OK)
        rc = rv__plan_write(plan, &offer->plan, err);
    for (const struct rv__named_fn *f = workflow->functions; f != NULL && rc == RV_OK;
         f = f->next) {
        put_function(offer, f->name);
        rc = add_fn(w, name, f->name, f->fn, err);
    }
    if (rc == RV_OK)
        rc = rv__buf_err(&offer->functions, err);
    rv__plan_free(plan);
    if (rc < 0) {
        rv__buf_done(&offer->plan);
        rv__buf_done(&offer->functions);
        return rc;
    }
    keep_offer(w, offer);
    return RV_OK;
}

int rv_worker_function(rv_worker *w, const char *name, rv_step_fn fn, rv_error *err)
{
    if (w == NULL || name == NULL || name[0] == '\0' || fn == NULL || w->wires != NULL)
        return rv__fail(err, RV_EINVAL,
                        "rv_worker_function: no worker, name or function, or it runs already");
    struct offer *offer = w->offers;
    while (offer != NULL && offer->workflow != NULL)
        offer = offer->next;
    if (offer == NULL) {
        offer = new_offer(w);
        if (offer == NULL)
            return rv__nomem(err);
        keep_offer(w, offer);
    }
    put_function(offer, rv__str(name));
    int rc = rv__buf_err(&offer->functions, err);
    return rc == RV_OK ? add_fn(w, rv__str(""), rv__str(name), fn, err) : rc;
}

/* ------------------------------------------------------------------------------- life time --- */

static const char *copy(rv_worker *w, const char *text)
{
    return text != NULL ? rv__arena_dup(&w->arena, text, strlen(text)) : NULL;
}

static int take_address(rv_worker *w, const char *address, rv_error *err)
{
    static const char tcp[] = "tcp://", tls[] = "tls://";
    w->secure = strncmp(address, tls, sizeof tls - 1) == 0;
    if (w->secure || strncmp(address, tcp, sizeof tcp - 1) == 0) {
        char host[256];
        int rc = rv__address_split(address + sizeof tcp - 1, host, w->port, err);
        if (rc == RV_OK && host[0] == '\0')
            rc = rv__fail(err, RV_EINVAL, "'%.100s' names no host", address);
        w->host = copy(w, host);
        return rc == RV_OK && w->host == NULL ? rv__nomem(err) : rc;
    }
    struct sockaddr_un room;
    if (strlen(address) >= sizeof room.sun_path)
        return rv__fail(err, RV_EINVAL, "the path of the socket is too long: '%.100s…'", address);
    w->path = copy(w, address);
    return w->path != NULL ? RV_OK : rv__nomem(err);
}

void rv_worker_opts_init(rv_worker_opts *opts)
{
    *opts = *RV_WORKER_OPTS();
}

int rv_worker_new(const rv_worker_opts *opts, rv_worker **ret, rv_error *err)
{
    rv_worker_opts o = { .size = sizeof o };
    if (opts == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_worker_new: no options, or nowhere to put the worker");
    rv__opts_take(&o, sizeof o, opts, opts->size);
    if (o.size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_WORKER_OPTS");
    if (o.address == NULL || o.address[0] == '\0')
        return rv__fail(err, RV_EINVAL, "rv_worker_new: no address");
    if (o.credits > RV__CREDITS_MOST)
        return rv__fail(err, RV_EINVAL, "%u steps at once are more than the %d of a worker",
                        o.credits, RV__CREDITS_MOST);
    rv_worker *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return rv__nomem(err);
    rv__arena_init(&w->arena, SIZE_MAX); /* bounded by what it offers */
    pthread_mutex_init(&w->lock, NULL);  /* on Linux it cannot fail */
    int rc = rv__cond_init(&w->changed) < 0 ? rv__nomem(err) : RV_OK;
    w->last_offer = &w->offers;
    w->credits = o.credits ? o.credits : CREDITS;
    if (rc == RV_OK)
        rc = take_address(w, o.address, err);
    if (rc == RV_OK && ((o.token != NULL && (w->token = copy(w, o.token)) == NULL) ||
                        (o.name != NULL && (w->name = copy(w, o.name)) == NULL)))
        rc = rv__nomem(err);
    if (rc == RV_OK && w->secure)
        rc = rv__tls_client(o.trusted, &w->keys, err);
    if (rc < 0) {
        rv_worker_free(w);
        return rc;
    }
    *ret = w;
    return RV_OK;
}

void rv_worker_free(rv_worker *w)
{
    if (w == NULL)
        return;
    for (struct offer *o = w->offers; o != NULL; o = o->next) {
        rv__buf_done(&o->plan);
        rv__buf_done(&o->functions);
    }
    rv__tls_keys_unref(w->keys);
    rv__arena_done(&w->arena);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    rv__free(w);
}
