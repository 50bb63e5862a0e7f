/* worker_link.c: see worker_link.h.
 *
 *   away ──connected, hello──▶ here ──its connection ends──▶ away      (until it is stopped)
 *
 * The connection is on a loop of its own (wire/), functions are on threads, and the link's own thread connects and waits. An
 * invocation is a *job*: it belongs to its thread while its function runs, then to the loop, which keeps its
 * answer until the engine says that it was taken, over as many connections as that takes. A job whose session the engine
 * has forgotten is told to stop, and its answer is dropped. */
#include "work/worker_link.h"

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
#include "base/random.h"

enum {
    CONNECT_MS = 10000,
    FIRST_PAUSE_MS = 100, /* before it connects again, then longer, */
    LAST_PAUSE_MS = 5000, /* up to that */
    HEARTBEAT_MS = 10000, /* until the engine says another */
    TICK_MS = 500,
    GRACE_MS = 10000, /* for functions to end, when it is to stop */
    ADDRESS_BYTES = 320,
};

struct job {
    struct rv__remote_ctx remote; /* first */
    struct rv__worker_link *of;
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
    struct rv__worker_link *of;
    struct rv__buf frame;
};

struct rv__worker_link {
    const struct rv__worker_link_owner *owner;
    char address[ADDRESS_BYTES]; /* as it was given, and its parts: */
    const char *path;            /* NULL: host and port */
    char host[256], port[6];
    bool secure;
    bool first; /* a refusal is the end */
    pthread_t thread;
    struct rv__random random;
    struct rv__wires *wires;
    struct rv__executor *threads;
    rv_cancel *stop;
    /* The loop's: */
    struct rv__conn *conn; /* NULL: away */
    bool welcome;          /* the engine has said hello on it */
    uv_timer_t *tick;
    int64_t heartbeat_ms;
    char session[64];
    struct rv__slots slots;
    struct rv__index by_id;
    struct job *jobs;
    int64_t said_credits; /* to the engine, on this connection */
    bool leaving;         /* no more work is taken, */
    bool over;            /* and nobody will be asked any more */
    pthread_mutex_t lock; /* of the rest: */
    pthread_cond_t changed;
    int64_t credits;
    struct rv__buf members; /* of the engine's store, a JSON array; empty: it did not say */
    int64_t member;         /* which of them it is; 0: it did not say */
    bool connected;         /* there is a connection */
    bool greeted;           /* and the engine said hello, since it was asked last */
    bool ended;             /* its thread has nothing more to do */
    size_t running;         /* functions */
    rv_error refused;       /* what it registers is; code 0: it is not */
    rv_error last;          /* why there was no connection, or it ended */
};

/* ------------------------------------------------------------------------------------ jobs --- */

static struct job *find_job(const struct rv__worker_link *l, struct rv__str id)
{
    struct rv__arena arena;
    struct rv__str text;
    struct job *found = NULL;
    if (rv__str_none(id) || rv__json_type(id) != RV__JSON_STRING)
        return NULL;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (rv__json_string(id, &arena, &text) == RV_OK)
        for (struct rv__index_entry *e =
                 rv__index_first(&l->by_id, rv__str_hash(RV__HASH_START, text));
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
        rv__index_remove(&job->of->by_id, &job->by_id);
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

static void say(struct rv__worker_link *l, const struct rv__buf *frame)
{
    if (l->conn != NULL && l->welcome && frame->rc == RV_OK)
        rv__buf_str(rv__conn_out(l->conn), rv__buf_view(frame));
}

/* On the loop: the function has ended. */
static void job_answers(struct rv__wire_task *task)
{
    struct job *job = RV__CONTAINER(task, struct job, task);
    job->answered = true;
    if (job->orphan)
        job_leaves(job);
    else
        say(job->of, &job->answer);
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
    struct rv__worker_link *l = job->of;
    if (err != NULL) { /* it could not be begun */
        rv__ctx_failed(&job->remote.ctx, err);
        rv__remote_ctx_put_answer(&job->remote, &job->answer);
    }
    job->task.run = job_answers;
    rv__wires_post(l->wires, &job->task);
    const struct rv__worker_link_owner *owner = l->owner;
    pthread_mutex_lock(&l->lock);
    bool last = --l->running == 0 && l->ended;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (last)
        owner->changed(owner->arg); /* the link can be freed now */
}

/* ----------------------------------------------------------------------------- what it sees --- */

/* On the loop. Away: it is asked when the engine knows us again. */
static void ask(struct rv__wire_task *task)
{
    struct job *job = RV__CONTAINER(task, struct job, ask);
    struct rv__worker_link *l = job->of;
    job->waiting = true;
    if (job->orphan || l->over) {
        give(job, RV_ECLOSED); /* nobody will answer it */
        return;
    }
    if (l->conn == NULL || !l->welcome)
        return;
    job->asked = true;
    rv__remote_ctx_put_get(&job->remote, job->wanted, rv__conn_out(l->conn));
}

static int fetch(struct rv__remote_ctx *remote, struct rv__shown *shown)
{
    struct job *job = (struct job *)remote;
    pthread_mutex_lock(&job->lock);
    job->wanted = shown;
    job->got = RV_OK;
    job->ask.run = ask;
    rv__wires_post(job->of->wires, &job->ask);
    while (job->wanted != NULL)
        pthread_cond_wait(&job->changed, &job->lock);
    int rc = job->got;
    pthread_mutex_unlock(&job->lock);
    return rc;
}

static void say_line(struct rv__wire_task *task)
{
    struct line *line = (struct line *)task;
    say(line->of, &line->frame); /* away: the line is lost */
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
    line->of = job->of;
    rv__buf_init(&line->frame, RV__FRAME_MAX);
    rv__remote_ctx_put_log(&job->remote, level, message, metadata, &line->frame);
    rv__wires_post(job->of->wires, &line->task);
}

static const struct rv__source worker_source = { .see = rv__remote_ctx_see,
                                                 .who = rv__remote_ctx_who,
                                                 .log = worker_log };

/* -------------------------------------------------------------------------------- hearing --- */

static void note(struct rv__worker_link *l, rv_error *at, const rv_error *why)
{
    pthread_mutex_lock(&l->lock);
    *at = *why;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    l->owner->changed(l->owner->arg);
}

static void hear_invoke(struct rv__worker_link *l, const struct rv__frame *frame)
{
    struct job *job = rv__zalloc(1, sizeof *job);
    rv_error err;
    int rc = RV_ENOMEM;
    if (job != NULL) {
        pthread_mutex_init(&job->lock, NULL); /* on Linux these two cannot fail */
        pthread_cond_init(&job->changed, NULL);
        rv__buf_init(&job->answer, RV__FRAME_MAX + 4);
        rc = rv__remote_ctx_take(&job->remote, frame, &l->slots, &worker_source);
    }
    if (rc == RV_OK)
        rc = rv__index_add(&l->by_id, &job->by_id,
                           rv__str_hash(RV__HASH_START, rv__str(job->remote.id)));
    if (rc < 0) { /* the engine learns that it is lost */
        if (job != NULL)
            job_free(job);
        (void)rv__fail(&err, rc, "an invocation could not be taken: %s", rv_strerror(rc));
        note(l, &l->last, &err);
        rv__conn_end(l->conn, NULL);
        return;
    }
    job->of = l;
    job->next = l->jobs;
    job->link = &l->jobs;
    if (l->jobs != NULL)
        l->jobs->link = &job->next;
    l->jobs = job;
    job->remote.fetch = fetch;
    /* cppcheck-suppress AssignmentIntegerToAddress ; find() returns a function */
    job->remote.ctx.fn = l->owner->find(l->owner->arg, job->remote.workflow, job->remote.function);
    job->remote.ctx.work.run = job_run;
    job->remote.ctx.work.done = job_done;
    pthread_mutex_lock(&l->lock);
    l->running++;
    pthread_mutex_unlock(&l->lock);
    struct rv__work *work = &job->remote.ctx.work;
    if (l->threads->start(l->threads, &work, 1) == 1)
        return;
    (void)rv__fail(&err, RV_EBUSY, "no thread could be made for it");
    job_done(work, &err);
}

static void hear_value(struct rv__worker_link *l, const struct rv__frame *frame)
{
    struct rv__str id;
    struct rv__shown unwanted = { .next = NULL };
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    struct job *job = find_job(l, id);
    if (job != NULL && job->asked) { /* its thread waits, and touches nothing */
        job->asked = false;
        give(job, rv__remote_ctx_value(&job->remote, frame, &l->slots, job->wanted));
        return;
    }
    struct rv__str has[2]; /* nobody's, but it may be kept */
    rv__frame_members(frame, (const char *[]){ "json", "slot" }, has, 2);
    (void)rv__slots_text(&l->slots, has[0], has[1],
                         &unwanted.json); /* no memory: as if it was not sent */
    rv__blob_unref(unwanted.json);
}

static void hear_taken(struct rv__worker_link *l, const struct rv__frame *frame)
{
    struct rv__json_iter it;
    struct rv__str ids, id;
    rv__frame_members(frame, (const char *[]){ "ids" }, &ids, 1);
    if (rv__str_none(ids) || rv__json_type(ids) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, ids);
    while (rv__json_next(&it, NULL, &id)) {
        struct job *job = find_job(l, id);
        if (job != NULL && job->answered)
            job_leaves(job);
    }
}

/* The engine does not know us any more: what runs is for nobody. */
static void forget_session(struct rv__worker_link *l)
{
    for (struct job *job = l->jobs, *next; job != NULL; job = next) {
        next = job->next;
        rv_cancel_fire(job->remote.ctx.work.token, RV_ECANCELED,
                       "the engine has given it to another");
        if (job->waiting)
            give(job, RV_ECLOSED);
        if (job->answered) {
            job_leaves(job);
        } else if (!job->orphan) { /* the next engine may call another by the same id */
            rv__index_remove(&l->by_id, &job->by_id);
            job->orphan = true;
        }
    }
}

/* In a hello, or when they have changed. */
static void hear_members(struct rv__worker_link *l, const struct rv__frame *frame)
{
    enum { MEMBER, MEMBERS, KEYS };
    struct rv__str has[KEYS];
    int64_t self = 0;
    rv__frame_members(frame, (const char *[]){ "member", "members" }, has, KEYS);
    if (!l->owner->follows || rv__str_none(has[MEMBERS]) ||
        rv__json_type(has[MEMBERS]) != RV__JSON_ARRAY)
        return;
    if (!rv__str_none(has[MEMBER]))
        (void)rv__json_int(has[MEMBER], &self); /* not a number: it did not say */
    pthread_mutex_lock(&l->lock);
    l->member = self;
    rv__buf_reset(&l->members);
    rv__buf_str(&l->members, has[MEMBERS]);
    if (l->members.rc < 0) /* no memory: until the next time */
        rv__buf_reset(&l->members);
    pthread_mutex_unlock(&l->lock);
    l->owner->changed(l->owner->arg);
}

static void hear_hello(struct rv__worker_link *l, const struct rv__frame *frame)
{
    enum { SESSION, RESUMED, HEARTBEAT, KEYS };
    struct rv__str has[KEYS], text;
    struct rv__arena arena;
    rv__frame_members(frame, (const char *[]){ "session", "resumed", "heartbeatMs" }, has, KEYS);
    if (!rv__str_is(has[RESUMED], "true"))
        forget_session(l);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__str_none(has[SESSION]) && rv__json_type(has[SESSION]) == RV__JSON_STRING &&
        rv__json_string(has[SESSION], &arena, &text) == RV_OK && text.len < sizeof l->session)
        snprintf(l->session, sizeof l->session, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    if (rv__str_none(has[HEARTBEAT]) || rv__json_int(has[HEARTBEAT], &l->heartbeat_ms) < 0 ||
        l->heartbeat_ms <= 0)
        l->heartbeat_ms = HEARTBEAT_MS;
    l->welcome = true;
    rv__buf_str(rv__conn_out(l->conn), l->owner->registration);
    pthread_mutex_lock(&l->lock);
    l->member = 0;
    rv__buf_reset(&l->members); /* it may not have any now */
    pthread_mutex_unlock(&l->lock);
    hear_members(l, frame);
    for (struct job *job = l->jobs; job != NULL; job = job->next)
        if (job->answered)
            say(l, &job->answer);
        else if (job->waiting) /* it was asked for on a connection that is gone, or not yet */
            ask(&job->ask);
    pthread_mutex_lock(&l->lock);
    l->greeted = true;
    pthread_mutex_unlock(&l->lock);
    l->owner->changed(l->owner->arg);
}

/* Said before a hello: it does not want us, and will not the next time. */
static bool is_final(int code)
{
    return code == RV_EINVAL || code == RV_EPARSE;
}

static void hear_error(struct rv__worker_link *l, const struct rv__frame *frame)
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
    bool registering = !rv__str_none(has[ID]) &&
                       rv__json_string_is(has[ID], rv__str(RV__WORKER_REGISTER));
    bool unwelcome = rv__str_none(has[ID]) && !l->welcome && is_final((int)code);
    note(l, registering || unwelcome ? &l->refused : &l->last, &err);
}

static void hear(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    struct rv__worker_link *l = arg;
    struct rv__str id;
    switch (frame->type) {
    case FRAME_HELLO: hear_hello(l, frame); return;
    case FRAME_INVOKE: hear_invoke(l, frame); return;
    case FRAME_VALUE: hear_value(l, frame); return;
    case FRAME_TAKEN: hear_taken(l, frame); return;
    case FRAME_FORGET: rv__slots_forget(&l->slots); return;
    case FRAME_MEMBERS: hear_members(l, frame); return;
    case FRAME_ERROR: hear_error(l, frame); return;
    case FRAME_PING: rv__conn_say(conn, FRAME_PONG); return;
    case FRAME_BYE: rv__conn_end(conn, NULL); return;
    case FRAME_CANCEL: {
        rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
        struct job *job = find_job(l, id);
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
    struct rv__worker_link *l = arg;
    bool was_welcome = l->welcome;
    (void)conn;
    l->conn = NULL;
    l->welcome = false;
    rv__slots_forget(&l->slots);
    for (struct job *job = l->jobs; job != NULL; job = job->next)
        job->asked = false;
    pthread_mutex_lock(&l->lock);
    l->connected = false;
    if (why != NULL)
        l->last = *why;
    if (why != NULL && !was_welcome && is_final(why->code) && l->refused.code == 0)
        l->refused = *why;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    l->owner->changed(l->owner->arg);
}

static void on_tick(uv_timer_t *timer)
{
    struct rv__worker_link *l = timer->data;
    if (l->conn != NULL) /* before its hello, too: it may hang */
        rv__conn_beat(l->conn, l->heartbeat_ms);
}

/* ----------------------------------------------------------------------------- connecting --- */

/* Within CONNECT_MS, or until it is to stop. */
static int wait_connected(struct rv__worker_link *l, int fd)
{
    for (int waited = 0; waited < CONNECT_MS && !rv_cancel_fired(l->stop); waited += 100) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        int error = 0;
        socklen_t len = sizeof error;
        if (poll(&p, 1, 100) <= 0)
            continue;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
    }
    return ETIMEDOUT;
}

static int dial(struct rv__worker_link *l, const struct sockaddr *address, socklen_t len,
                const char *where, rv_error *err)
{
    int yes = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rv__fail(err, RV_ESYS, "cannot make a socket: %s", strerrordesc_np(errno));
    int failed = connect(fd, address, len) == 0 ? 0 : errno;
    if (failed == EINPROGRESS)
        failed = wait_connected(l, fd);
    if (failed != 0) {
        (void)close(fd);
        return rv__fail(err, RV_ECLOSED, "cannot connect to '%.150s': %s", where,
                        strerrordesc_np(failed));
    }
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* else slower */
    return fd;
}

static int dial_host(struct rv__worker_link *l, rv_error *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int fd = RV_ECLOSED, rc = getaddrinfo(l->host, l->port, &hints, &found);
    if (rc != 0)
        return rv__fail(err, RV_ECLOSED, "cannot find '%.150s': %s", l->host, gai_strerror(rc));
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = dial(l, at->ai_addr, at->ai_addrlen, l->host, err);
    freeaddrinfo(found);
    return fd;
}

static int dial_path(struct rv__worker_link *l, rv_error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", l->path); /* its length was checked */
    return dial(l, (const struct sockaddr *)&address, sizeof address, l->path, err);
}

struct connecting {
    struct rv__worker_link *link;
    int fd;
};

static int64_t credits_of(struct rv__worker_link *l)
{
    pthread_mutex_lock(&l->lock);
    int64_t credits = l->credits;
    pthread_mutex_unlock(&l->lock);
    return credits;
}

static void say_hello(struct rv__worker_link *l)
{
    struct rv__buf *out = rv__conn_out(l->conn);
    const char *comma = "";
    size_t start = rv__wire_begin(out, FRAME_HELLO);
    rv__wire_int(out, "protocol", RV__PROTOCOL);
    rv__wire_text(out, "role", rv__str("worker"));
    l->said_credits = l->leaving ? 0 : credits_of(l);
    rv__wire_int(out, "credits", l->said_credits);
    rv__wire_int(out, "pid", getpid());
    if (l->owner->name != NULL)
        rv__wire_text(out, "name", rv__str(l->owner->name));
    if (l->owner->token != NULL)
        rv__wire_text(out, "token", rv__str(l->owner->token));
    if (l->owner->follows)
        rv__wire_json(out, "follows", rv__str("true"));
    if (l->session[0] != '\0') {
        rv__wire_text(out, "session", rv__str(l->session));
        rv__buf_text(out, ",\"has\":[");
        for (const struct job *job = l->jobs; job != NULL; job = job->next) {
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
    struct rv__worker_link *l = c->link;
    l->conn = rv__conn_new(l->wires, c->fd, &user, l);
    if (l->conn == NULL) {
        (void)close(c->fd);
        return;
    }
    pthread_mutex_lock(&l->lock);
    l->connected = true;
    pthread_mutex_unlock(&l->lock);
    say_hello(l);
    if (l->secure && !rv__conn_secure(l->conn, l->owner->keys, l->host))
        rv__conn_end(l->conn, NULL);
}

/* ---------------------------------------------------------------------------------- running --- */

static void start_loop(void *arg)
{
    struct rv__worker_link *l = arg;
    l->tick = rv__zalloc(1, sizeof *l->tick);
    if (l->tick == NULL)
        return;
    uv_timer_init(rv__wires_loop(l->wires), l->tick); /* cannot fail, nor can its start */
    l->tick->data = l;
    uv_timer_start(l->tick, on_tick, TICK_MS, TICK_MS);
}

static void tick_closed(uv_handle_t *handle)
{
    rv__free(handle);
}

/* If the engine knows another number; before a hello it hears of it there. */
static void say_credits(void *arg)
{
    struct rv__worker_link *l = arg;
    int64_t credits = l->leaving ? 0 : credits_of(l);
    if (l->conn == NULL || !l->welcome || l->said_credits == credits)
        return;
    l->said_credits = credits;
    struct rv__buf *out = rv__conn_out(l->conn);
    size_t start = rv__wire_begin(out, FRAME_CREDITS);
    rv__wire_int(out, "credits", credits);
    rv__wire_end(out, start);
}

/* No more work. */
static void begin_leaving(void *arg)
{
    struct rv__worker_link *l = arg;
    l->leaving = true;
    say_credits(l);
}

static void end_connection(void *arg)
{
    struct rv__worker_link *l = arg;
    if (l->conn != NULL)
        rv__conn_end(l->conn, NULL);
}

static void tell_jobs(void *arg)
{
    struct rv__worker_link *l = arg;
    for (struct job *job = l->jobs; job != NULL; job = job->next) {
        rv_cancel_fire(job->remote.ctx.work.token, RV_ECANCELED, "the worker is to stop");
    }
}

static void end_loop(void *arg)
{
    struct rv__worker_link *l = arg;
    l->over = true;
    if (l->conn != NULL && l->welcome)
        rv__conn_say(l->conn, FRAME_BYE);
    if (l->conn != NULL)
        rv__conn_end(l->conn, NULL);
    for (struct job *job = l->jobs; job != NULL; job = job->next)
        if (job->waiting)
            give(job, RV_ECLOSED);
    if (l->tick != NULL)
        uv_close((uv_handle_t *)l->tick, tick_closed);
    l->tick = NULL;
}

static bool is_refused(struct rv__worker_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool refused = l->refused.code != 0;
    pthread_mutex_unlock(&l->lock);
    return refused;
}

/* One connection, from its beginning to its end. True: the engine said hello. */
static bool serve_once(struct rv__worker_link *l)
{
    struct connecting c = { .link = l };
    rv_error err = { .code = 0 };
    c.fd = l->path != NULL ? dial_path(l, &err) : dial_host(l, &err);
    if (c.fd < 0) {
        note(l, &l->last, &err);
        return false;
    }
    pthread_mutex_lock(&l->lock);
    l->greeted = false;
    pthread_mutex_unlock(&l->lock);
    rv__wires_run(l->wires, begin_connection, &c);
    pthread_mutex_lock(&l->lock);
    while (l->connected && !rv_cancel_fired(l->stop) && l->refused.code == 0)
        pthread_cond_wait(&l->changed, &l->lock);
    bool greeted = l->greeted;
    pthread_mutex_unlock(&l->lock);
    return greeted;
}

/* Another member than the first one may have reasons of its own, which pass: what it offers is of another file there, or the
 * token is not known yet. */
static void forget_refusal(struct rv__worker_link *l)
{
    rv__wires_run(l->wires, end_connection, l);
    pthread_mutex_lock(&l->lock);
    while (l->connected)
        pthread_cond_wait(&l->changed, &l->lock);
    l->last = l->refused;
    l->refused = (rv_error){ .code = 0 };
    pthread_mutex_unlock(&l->lock);
}

/* In good order: what runs may end, and is told after a while. */
static void leave(struct rv__worker_link *l, int64_t grace_ms)
{
    rv__wires_run(l->wires, begin_leaving, l);
    int64_t until_ns = rv__deadline_ns(grace_ms);
    pthread_mutex_lock(&l->lock);
    while (l->running > 0 && l->connected && rv__cond_wait_until(&l->changed, &l->lock, until_ns))
        ;
    pthread_mutex_unlock(&l->lock);
    rv__wires_run(l->wires, tell_jobs, l);
    pthread_mutex_lock(&l->lock);
    until_ns = rv__deadline_ns(grace_ms);
    while (l->running > 0 && l->connected && rv__cond_wait_until(&l->changed, &l->lock, until_ns))
        ;
    pthread_mutex_unlock(&l->lock);
    rv__wires_run(l->wires, end_loop, l);
}

static void *link_main(void *arg)
{
    struct rv__worker_link *l = arg;
    rv__wires_run(l->wires, start_loop, l);
    for (int64_t pause_ms = FIRST_PAUSE_MS; !rv_cancel_fired(l->stop);) {
        if (serve_once(l))
            pause_ms = FIRST_PAUSE_MS;
        if (is_refused(l) && l->first)
            break;
        if (is_refused(l)) {
            forget_refusal(l);
            pause_ms = LAST_PAUSE_MS;
        }
        (void)rv_cancel_wait(
            l->stop, pause_ms / 2 + (int64_t)rv__random_below(&l->random, (uint64_t)pause_ms));
        pause_ms = pause_ms * 2 < LAST_PAUSE_MS ? pause_ms * 2 : LAST_PAUSE_MS;
    }
    leave(l, GRACE_MS);
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    pthread_mutex_unlock(&l->lock);
    l->owner->changed(l->owner->arg);
    return NULL;
}

/* -------------------------------------------------------------------------------- life time --- */

static int take_address(struct rv__worker_link *l, const char *address, rv_error *err)
{
    static const char tcp[] = "tcp://", tls[] = "tls://";
    struct sockaddr_un room;
    int rc = RV_OK;
    l->secure = strncmp(address, tls, sizeof tls - 1) == 0;
    if (l->secure || strncmp(address, tcp, sizeof tcp - 1) == 0) {
        rc = rv__address_split(address + sizeof tcp - 1, l->host, l->port, err);
        if (rc == RV_OK && l->host[0] == '\0')
            rc = rv__fail(err, RV_EINVAL, "'%.100s' names no host", address);
    } else if (strlen(address) >= sizeof room.sun_path) {
        rc = rv__fail(err, RV_EINVAL, "the path of the socket is too long: '%.100s…'", address);
    } else {
        l->path = l->address;
    }
    if (rc == RV_OK && strlen(address) >= sizeof l->address)
        rc = rv__fail(err, RV_EINVAL, "the address is too long: '%.100s…'", address);
    if (rc == RV_OK)
        snprintf(l->address, sizeof l->address, "%s", address);
    return rc;
}

int rv__worker_link_check(const char *address, rv_error *err)
{
    struct rv__worker_link unused = { .path = NULL };
    return take_address(&unused, address, err);
}

/* Its thread has ended, or was never begun. */
static void link_done(struct rv__worker_link *l)
{
    rv__executor_free(l->threads); /* waits for functions */
    rv__wires_free(l->wires);
    while (l->jobs != NULL)
        job_leaves(l->jobs);
    rv__index_done(&l->by_id);
    rv__slots_forget(&l->slots);
    rv__buf_done(&l->members);
    rv_cancel_free(l->stop);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    rv__free(l);
}

int rv__worker_link_new(const struct rv__worker_link_owner *owner, const char *address, bool first,
                        int64_t credits, struct rv__worker_link **ret, rv_error *err)
{
    uint64_t seed = 0;
    const struct rv__executor head = { .name = "thread", .credits = owner->credits };
    struct rv__worker_link *l = rv__zalloc(1, sizeof *l);
    if (l == NULL)
        return rv__nomem(err);
    pthread_mutex_init(&l->lock, NULL); /* on Linux it cannot fail */
    if (rv__cond_init(&l->changed) < 0) {
        pthread_mutex_destroy(&l->lock);
        rv__free(l);
        return rv__nomem(err);
    }
    rv__buf_init(&l->members, RV__FRAME_MAX);
    l->owner = owner;
    l->first = first;
    l->credits = credits;
    l->heartbeat_ms = HEARTBEAT_MS;
    int rc = take_address(l, address, err);
    if (rc == RV_OK && (l->stop = rv_cancel_new(NULL)) == NULL)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__random_seed_system(&seed, err);
    rv__random_init(&l->random, seed);
    if (rc == RV_OK)
        rc = rv__wires_new(&l->wires, err);
    if (rc == RV_OK)
        rc = rv__threads_new(&head, (int)owner->credits, &l->threads, err);
    if (rc == RV_OK && pthread_create(&l->thread, NULL, link_main, l) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread could be made for a connection");
    if (rc < 0)
        link_done(l);
    else
        *ret = l;
    return rc;
}

void rv__worker_link_stop(struct rv__worker_link *l)
{
    rv_cancel_fire(l->stop, RV_ECANCELED, NULL);
    pthread_mutex_lock(&l->lock);
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

void rv__worker_link_free(struct rv__worker_link *l)
{
    if (l == NULL)
        return;
    rv__worker_link_stop(l);
    pthread_join(l->thread, NULL);
    link_done(l);
}

/* ----------------------------------------------------------------------------- for its owner --- */

void rv__worker_link_credits(struct rv__worker_link *l, int64_t credits)
{
    pthread_mutex_lock(&l->lock);
    bool changes = l->credits != credits && !l->ended;
    l->credits = credits;
    pthread_mutex_unlock(&l->lock);
    if (changes)
        rv__wires_run(l->wires, say_credits, l);
}

bool rv__worker_link_is_up(struct rv__worker_link *l, rv_error *ret_why)
{
    pthread_mutex_lock(&l->lock);
    bool up = l->connected && l->greeted;
    if (ret_why != NULL)
        *ret_why = l->last;
    pthread_mutex_unlock(&l->lock);
    return up;
}

bool rv__worker_link_members(struct rv__worker_link *l, struct rv__buf *out, int64_t *ret_self)
{
    pthread_mutex_lock(&l->lock);
    bool told = l->connected && l->greeted && l->members.len > 0;
    if (told) {
        rv__buf_str(out, rv__buf_view(&l->members));
        *ret_self = l->member;
    }
    pthread_mutex_unlock(&l->lock);
    return told;
}

bool rv__worker_link_is_over(struct rv__worker_link *l)
{
    pthread_mutex_lock(&l->lock);
    bool over = l->ended && l->running == 0;
    pthread_mutex_unlock(&l->lock);
    return over;
}

bool rv__worker_link_is_leaving(const struct rv__worker_link *l)
{
    return rv_cancel_fired(l->stop);
}

bool rv__worker_link_refused(struct rv__worker_link *l, rv_error *ret_why)
{
    pthread_mutex_lock(&l->lock);
    bool refused = l->first && l->refused.code != 0;
    if (refused)
        *ret_why = l->refused;
    pthread_mutex_unlock(&l->lock);
    return refused;
}

const char *rv__worker_link_address(const struct rv__worker_link *l)
{
    return l->address;
}
