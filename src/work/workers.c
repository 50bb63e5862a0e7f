/* workers.c: sessions of workers, on the loop of connections.
 *
 *   here ──its connection ends──▶ away ──says hello with its session──▶ here
 *     │                             │
 *     └──bye, its process is dead, a wrong frame─────────▶ gone ◀──the grace is over
 *
 * A session keeps its work while it is away: it may come back and answer. When it is gone, its work is lost. If a
 * process on this machine died with one piece of work, that one is to blame; with several, each is told that they shared
 * the process. Nothing else is ever blamed.
 *
 * session.c has what becomes of the work. Thread: that of connections, unless stated otherwise. */
#include "work/workers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/random.h"
#include "work/invoked.h"
#include "work/session.h"
#include "work/work.h"

enum {
    TICK_MS = 250,
};

/* ------------------------------------------------------------------------------- sessions --- */

struct rv__session_state rv__session_state(const struct rv__news *news)
{
    struct rv__session *s = news->session;
    pthread_mutex_lock(&s->lock);
    struct rv__session_state state = s->state;
    if (news == &s->news)
        s->news_sent = false;
    pthread_mutex_unlock(&s->lock);
    return state;
}

struct rv__session_about rv__session_about(struct rv__session *s)
{
    pthread_mutex_lock(&s->lock);
    struct rv__session_about about = s->about;
    pthread_mutex_unlock(&s->lock);
    return about;
}

/* Send the state of the session to the engine, if it has changed. */
static void tell_change(struct rv__session *s, int64_t credits, bool away, bool gone)
{
    struct rv__services *services = s->workers->services;
    pthread_mutex_lock(&s->lock);
    s->state = (struct rv__session_state){ credits, away, gone };
    bool send = !s->news_sent;
    s->news_sent = true;
    pthread_mutex_unlock(&s->lock);
    if (!send)
        return;
    (void)rv__session_ref(s); /* for the news: rv__news_done() gives it back */
    if (!services->worker_says(services->owner, &s->news))
        rv__session_unref(s);
}

static void session_frees_tick(uv_handle_t *handle)
{
    rv__free(handle);
}

static void look_at_all(uv_timer_t *timer);

static void start_tick(struct rv__workers *w)
{
    if (w->tick != NULL || (w->tick = rv__zalloc(1, sizeof *w->tick)) == NULL)
        return; /* no memory: with the next one; until then nobody is asked whether it lives */
    uv_timer_init(rv__wires_loop(w->services->wires), w->tick);
    w->tick->data = w;
    uv_timer_start(w->tick, look_at_all, TICK_MS, TICK_MS);
}

static void stop_tick(struct rv__workers *w)
{
    if (w->tick != NULL)
        uv_close((uv_handle_t *)w->tick, session_frees_tick);
    w->tick = NULL;
}

/* ---------------------------------------------------------------------------------- work --- */

/* Send all work that one turn of the engine has begun. */
static void work_arrives(struct rv__wire_task *task)
{
    struct rv_ctx *ctx = RV__CONTAINER(task, struct rv_ctx, invoked.begin);
    for (struct rv_ctx *next; ctx != NULL; ctx = next) {
        next = ctx->invoked.next; /* it may be gone afterwards */
        rv__session_begin(ctx->session, ctx);
    }
}

static size_t workers_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct rv__workers *w = (struct rv__workers *)self;
    struct rv_ctx *first = rv__invoked_chain(works, count, rv__invoked_complete);
    if (first != NULL) {
        first->invoked.begin.run = work_arrives;
        rv__wires_post(w->services->wires, &first->invoked.begin);
    }
    return count;
}

/* -------------------------------------------------------------------------------- leaving --- */

static void nobody_hears(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    (void)arg;
    (void)conn;
    (void)frame;
}

static void ignore_end(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)arg;
    (void)conn;
    (void)why;
}

/* Separate the session from its connection. */
static void detach(struct rv__session *s, const rv_error *why)
{
    static const struct rv__conn_user nobody = { .heard = nobody_hears, .ended = ignore_end };
    struct rv__conn *conn = s->conn;
    if (conn == NULL)
        return;
    s->conn = NULL;
    rv__session_drop_questions(s);
    rv__buf_reset(&s->taken);
    if (s->caller != NULL)
        s->calls->ended(s->caller);
    s->caller = NULL;
    rv__conn_use(conn, &nobody, NULL);
    if (why != NULL)
        rv__conn_refuse(conn, why);
    else
        rv__conn_end(conn, NULL);
}

/* The session is gone: its work is lost. */
static void end_session(struct rv__session *s, const char *why)
{
    struct rv__workers *w = s->workers;
    size_t sent = 0;
    if (s->state.gone)
        return;
    tell_change(s, 0, true, true);
    for (size_t i = 0; i < s->slot_count; i++)
        sent += s->slots[i].ctx != NULL && s->slots[i].ctx->invoked.sent;
    enum rv__lost how = !s->dead ? RV__LOST_BLAMELESS : sent > 1 ? RV__LOST_SHARED : RV__LOST_ALONE;
    for (size_t i = 0; i < s->slot_count; i++)
        if (s->slots[i].ctx != NULL)
            rv__session_lose(s, s->slots[i].ctx,
                             s->slots[i].ctx->invoked.sent ? how : RV__LOST_BLAMELESS, why);
    detach(s, NULL);
    rv__pid_watch_free(s->watch);
    s->watch = NULL;
    rv__kept_forget(&s->kept);
    *s->link = s->next;
    if (s->next != NULL)
        s->next->link = s->link;
    if (--w->count == 0)
        stop_tick(w);
    rv__session_unref(s);
}

static void process_died(void *arg)
{
    struct rv__session *s = arg;
    struct rv__conn *conn = s->conn;
    rv__session_ref(s);
    if (conn != NULL)
        rv__conn_drain(conn); /* its last frames count */
    s->dead = true;
    end_session(s, "the worker's process died");
    rv__session_unref(s);
}

static void conn_ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    struct rv__session *s = arg;
    (void)why;
    if (s->conn != conn)
        return;
    s->conn = NULL;
    rv__session_drop_questions(s);
    rv__buf_reset(&s->taken);
    rv__kept_forget(&s->kept);
    if (s->caller != NULL)
        s->calls->ended(s->caller);
    s->caller = NULL;
    s->away_ms = rv__wires_now_ms(s->workers->services->wires);
    tell_change(s, s->state.credits, true, false);
}

static void look_at_all(uv_timer_t *timer)
{
    struct rv__workers *w = timer->data;
    int64_t now_ms = rv__wires_now_ms(w->services->wires);
    for (struct rv__session *s = w->sessions, *next; s != NULL; s = next) {
        next = s->next;
        if (s->conn == NULL) {
            if (now_ms - s->away_ms >= w->grace_ms)
                end_session(s, "the worker was lost, and did not come back in time");
            continue;
        }
        rv__conn_beat(s->conn, w->heartbeat_ms);
    }
}

/* --------------------------------------------------------------------------------- hearing --- */

/* Confirm answers that have arrived. */
static void say_taken(void *arg, struct rv__conn *conn)
{
    struct rv__session *s = arg;
    if (s->conn != conn || s->taken.len == 0)
        return;
    struct rv__buf *out = rv__conn_out(conn);
    size_t start = rv__wire_begin(out, FRAME_TAKEN);
    rv__buf_text(out, ",\"ids\":[");
    rv__buf_str(out, rv__buf_view(&s->taken));
    rv__buf_char(out, ']');
    rv__wire_end(out, start);
    rv__buf_cut(&s->taken, 0);
}

static void note_taken(struct rv__session *s, struct rv__str id)
{
    if (rv__str_none(id))
        return;
    if (s->taken.len > 0)
        rv__buf_char(&s->taken, ',');
    rv__buf_str(&s->taken, id);
    (void)rv__conn_out(s->conn); /* said at the end of this turn */
}

static void violates(struct rv__session *s, const rv_error *err)
{
    detach(s, err);
    end_session(s, "the worker said something that it may not");
}

static void hear_about_work(struct rv__session *s, const struct rv__frame *frame)
{
    struct rv__str id;
    rv_error err;
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    struct rv_ctx *ctx = rv__session_find(s, id);
    if (frame->type == FRAME_RESULT || frame->type == FRAME_ERROR)
        note_taken(s, id);
    if (ctx != NULL && rv__session_hear(s, ctx, frame, &err) < 0) /* NULL: it has ended already */
        violates(s, &err);
}

static void hear_credits(struct rv__session *s, const struct rv__frame *frame)
{
    struct rv__str value;
    rv_error err;
    int64_t credits = -1;
    rv__frame_members(frame, (const char *[]){ "credits" }, &value, 1);
    if (rv__str_none(value) || rv__json_int(value, &credits) < 0 || credits < 0 ||
        credits > RV__CREDITS_MOST) {
        (void)rv__fail(&err, RV_EINVAL, "'credits' is not a number from 0 to %d", RV__CREDITS_MOST);
        violates(s, &err);
        return;
    }
    tell_change(s, credits, false, false);
}

static void hear(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    struct rv__session *s = arg;
    rv_error err;
    enum rv__frame_type type = frame->type;
    if (rv__frame_is_about_work(type)) {
        hear_about_work(s, frame);
    } else if (type == FRAME_VALID || type == FRAME_VIOLATIONS) {
        if (rv__session_verdict(s, frame, &err) < 0)
            violates(s, &err);
    } else if (type == FRAME_REGISTER) {
        rv__session_register(s, frame);
    } else if (type == FRAME_CREDITS) {
        hear_credits(s, frame);
    } else if (type == FRAME_CALL && s->caller != NULL) {
        s->calls->heard(s->caller, frame);
    } else if (type == FRAME_PING) {
        rv__conn_say(conn, FRAME_PONG);
    } else if (type == FRAME_BYE) {
        end_session(s, "the worker has left");
    } else if (type != FRAME_PONG && type != FRAME_DYING) {
        (void)rv__fail(&err, RV_EINVAL, "a worker may not say '%s'%s", rv__frame_type_name(type),
                       type == FRAME_CALL ? " here" : "");
        violates(s, &err);
    }
}

/* ---------------------------------------------------------------------------------- coming --- */

static const struct rv__conn_user worker_user = { .heard = hear,
                                                  .ended = conn_ended,
                                                  .flushing = say_taken };

/* Members of a frame. */
static void put_members(const struct rv__workers *w, struct rv__buf *out)
{
    if (w->member == 0)
        return;
    rv__wire_int(out, "member", w->member);
    rv__wire_json(out, "members", rv__buf_view(&w->members));
}

static void say_hello(struct rv__session *s, bool resumed)
{
    struct rv__buf *out = rv__conn_out(s->conn);
    size_t start = rv__wire_begin(out, FRAME_HELLO);
    rv__wire_int(out, "protocol", RV__PROTOCOL);
    rv__wire_text(out, "version", rv__str(rv_version()));
    rv__wire_int(out, "pid", getpid());
    rv__wire_text(out, "session", rv__str(s->key));
    if (resumed)
        rv__wire_json(out, "resumed", rv__str("true"));
    rv__wire_int(out, "graceMs", s->workers->grace_ms);
    rv__wire_int(out, "heartbeatMs", s->workers->heartbeat_ms);
    put_members(s->workers, out);
    rv__wire_end(out, start);
}

/* On its way to the loop of connections. */
struct membership {
    struct rv__wire_task task; /* first */
    struct rv__workers *workers;
    int64_t self;
    struct rv__buf members;
};

static void take_members(struct rv__wire_task *task)
{
    struct membership *m = (struct membership *)task;
    struct rv__workers *w = m->workers;
    rv__buf_done(&w->members);
    w->members = m->members;
    w->member = m->self;
    rv__free(m);
    for (const struct rv__session *s = w->sessions; s != NULL; s = s->next) {
        if (!s->follows || s->conn == NULL)
            continue;
        struct rv__buf *out = rv__conn_out(s->conn);
        size_t start = rv__wire_begin(out, FRAME_MEMBERS);
        put_members(w, out);
        rv__wire_end(out, start);
    }
}

bool rv__workers_members(struct rv__executor *executor, int64_t self, struct rv__str members)
{
    struct rv__workers *w = (struct rv__workers *)executor;
    struct membership *m = rv__zalloc(1, sizeof *m);
    if (m == NULL)
        return false;
    m->task.run = take_members;
    m->workers = w;
    m->self = self;
    rv__buf_init(&m->members, RV__FRAME_MAX);
    rv__buf_str(&m->members, members);
    pthread_mutex_lock(&w->services->hosts_lock);
    struct rv__wires *wires = w->services->wires; /* once it is there, it stays */
    pthread_mutex_unlock(&w->services->hosts_lock);
    bool good = wires != NULL && m->members.rc == RV_OK;
    if (good) {
        rv__wires_post(wires, &m->task);
    } else {
        rv__buf_done(&m->members);
        rv__free(m);
    }
    return good;
}

static int session_new(struct rv__workers *w, struct rv__session **ret, rv_error *err)
{
    uint64_t key[2];
    struct rv__session *s = rv__session_new(w->next_session + 1);
    if (s == NULL)
        return rv__nomem(err);
    int rc = rv__random_seed_system(&key[0], err);
    if (rc == RV_OK)
        rc = rv__random_seed_system(&key[1], err);
    if (rc < 0) {
        rv__session_unref(s);
        return rc;
    }
    w->next_session++;
    snprintf(s->key, sizeof s->key, "%016" PRIx64 "%016" PRIx64, key[0], key[1]);
    s->workers = w;
    s->news.session =
        s; /* never written again: the engine reads it while the next news are on their way */
    s->next = w->sessions;
    s->link = &w->sessions;
    if (w->sessions != NULL)
        w->sessions->link = &s->next;
    w->sessions = s;
    w->count++;
    start_tick(w);
    *ret = s;
    return RV_OK;
}

/* A worker comes back: work that it has continues; work that it never got is lost. */
static void resume(struct rv__session *s, struct rv__str has)
{
    struct rv__json_iter it;
    struct rv__str id;
    for (size_t i = 0; i < s->slot_count; i++)
        if (s->slots[i].ctx != NULL)
            s->slots[i].ctx->invoked.here = false;
    if (!rv__str_none(has) && rv__json_type(has) == RV__JSON_ARRAY) {
        rv__json_iter_init(&it, has);
        while (rv__json_next(&it, NULL, &id)) {
            struct rv_ctx *ctx = rv__session_find(s, id);
            if (ctx != NULL)
                ctx->invoked.here = true;
        }
    }
    for (size_t i = 0; i < s->slot_count; i++) {
        struct rv_ctx *ctx = s->slots[i].ctx;
        if (ctx == NULL)
            continue;
        if (!ctx->invoked.sent)
            rv__session_say_invoke(s, ctx);
        else if (!ctx->invoked.here)
            rv__session_lose(s, ctx, RV__LOST_BLAMELESS, "the worker came back without it");
        else if (ctx->invoked.told_worker)
            rv__session_say_cancel(s, ctx);
    }
}

static struct rv__session *find_session(const struct rv__workers *w, struct rv__str key)
{
    struct rv__session *s = rv__str_none(key) ? NULL : w->sessions;
    while (s != NULL && !rv__json_string_is(key, rv__str(s->key)))
        s = s->next;
    return s;
}

static void take_about(struct rv__session *s, struct rv__str value, bool local)
{
    struct rv__session_about about = { .local = local };
    struct rv__arena arena;
    struct rv__str text;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (!rv__str_none(value) && rv__json_type(value) == RV__JSON_STRING &&
        rv__json_string(value, &arena, &text) == RV_OK && text.len < sizeof about.name)
        snprintf(about.name, sizeof about.name, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    pthread_mutex_lock(&s->lock);
    s->about = about;
    pthread_mutex_unlock(&s->lock);
}

void rv__workers_greet(struct rv__executor *executor, struct rv__conn *conn,
                       const struct rv__frame *hello, bool local, const struct rv__calls *calls)
{
    enum { CREDITS, NAME, SESSION, HAS, FOLLOWS, KEYS };
    struct rv__workers *w = (struct rv__workers *)executor;
    struct rv__str has[KEYS];
    rv_error err;
    int64_t credits = 1;
    int rc = RV_OK;
    rv__frame_members(hello, (const char *[]){ "credits", "name", "session", "has", "follows" },
                      has, KEYS);
    if (!rv__str_none(has[CREDITS]) &&
        (rv__json_int(has[CREDITS], &credits) < 0 || credits < 0 || credits > RV__CREDITS_MOST))
        rc = rv__fail(&err, RV_EINVAL, "'credits' is not a number from 0 to %d", RV__CREDITS_MOST);
    struct rv__session *s = find_session(w, has[SESSION]);
    bool resumed = s != NULL;
    if (rc == RV_OK && w->closing)
        rc = rv__fail(&err, RV_ECLOSED, "the engine is closing");
    if (rc == RV_OK && !resumed && w->count >= RV__SESSIONS_MOST)
        rc = rv__fail(&err, RV_EBUSY, "there are %d workers already: try again", RV__SESSIONS_MOST);
    if (rc == RV_OK && !resumed)
        rc = session_new(w, &s, &err);
    if (rc < 0) {
        rv__conn_refuse(conn, &err);
        return;
    }
    assert(s != NULL);
    detach(s, NULL); /* its old connection, if its end was not noticed yet */
    rv__kept_forget(&s->kept);
    s->conn = conn;
    rv__conn_use(conn, &worker_user, s);
    if (calls != NULL)
        s->caller = calls->begin(calls->arg, conn);
    s->calls = calls;
    s->follows = rv__str_is(has[FOLLOWS], "true");
    take_about(s, has[NAME], local);
    rv__pid_watch_free(s->watch);
    s->watch = local ? rv__pid_watch_new(w->services->wires, rv__conn_pid(conn), process_died, s)
                     : NULL;
    say_hello(s, resumed);
    if (resumed)
        resume(s, has[HAS]);
    tell_change(s, credits, false, false);
}

bool rv__session_is_lost(struct rv__session *s)
{
    pthread_mutex_lock(&s->lock);
    bool lost = s->state.away || s->state.gone;
    pthread_mutex_unlock(&s->lock);
    return lost;
}

/* A worker process that we have started ourselves. */
struct adoption {
    struct rv__workers *workers;
    int fd;
    int64_t pid;
    const struct rv__frame *hello;
    struct rv__str sees;
    struct rv__session *session;
    int rc;
    rv_error err;
};

static void adopt(void *arg)
{
    static const struct rv__conn_user nobody = { .heard = nobody_hears, .ended = ignore_end };
    struct adoption *a = arg;
    struct rv__workers *w = a->workers;
    struct rv__conn *conn = rv__conn_new(w->services->wires, a->fd, &nobody, NULL);
    if (conn == NULL) {
        (void)close(a->fd);
        a->rc = rv__nomem(&a->err);
        return;
    }
    rv__workers_greet(&w->executor, conn, a->hello, true, NULL);
    struct rv__session *s = w->sessions;
    while (s != NULL && s->conn != conn)
        s = s->next;
    if (s == NULL) {
        a->rc = rv__fail(&a->err, w->closing ? RV_ECLOSED : RV_EBUSY, "%s",
                         w->closing ? "the engine is closing" : "there are too many workers");
        return;
    }
    /* For the kernel, the peer of a socket pair is the process that made it: so the child is known by its pid. */
    rv__pid_watch_free(s->watch);
    s->watch = rv__pid_watch_new(w->services->wires, a->pid, process_died, s);
    if (!rv__str_none(a->sees))
        (void)rv__session_sees(s, a->sees, NULL); /* on failure it asks for everything */
    a->session = rv__session_ref(s);
}

int rv__workers_adopt(struct rv__executor *executor, int fd, int64_t pid,
                      const struct rv__frame *hello, struct rv__str sees, struct rv__session **ret,
                      rv_error *err)
{
    struct adoption a = { .workers = (struct rv__workers *)executor,
                          .fd = fd,
                          .pid = pid,
                          .hello = hello,
                          .sees = sees };
    rv__wires_run(a.workers->services->wires, adopt, &a);
    if (a.rc < 0 && err != NULL)
        *err = a.err;
    if (a.rc == RV_OK)
        *ret = a.session;
    return a.rc;
}

/* ------------------------------------------------------------------------------- executor --- */

static void close_all(void *arg)
{
    struct rv__workers *w = arg;
    w->closing = true;
    while (w->sessions != NULL) {
        if (w->sessions->conn != NULL)
            rv__conn_say(w->sessions->conn, FRAME_BYE);
        end_session(w->sessions, "the engine has closed");
    }
}

void rv__workers_close(struct rv__executor *executor)
{
    struct rv__workers *w = (struct rv__workers *)executor;
    if (w != NULL && w->services->wires != NULL)
        rv__wires_run(w->services->wires, close_all, w);
}

static void recall_all(void *arg)
{
    struct rv__workers *w = arg;
    for (struct rv__session *s = w->sessions; s != NULL; s = s->next)
        if (!s->about.local && s->conn != NULL) /* only this thread writes it */
            rv__conn_end(s->conn, NULL);
}

void rv__workers_recall(struct rv__executor *executor)
{
    struct rv__workers *w = (struct rv__workers *)executor;
    if (w->services->wires != NULL)
        rv__wires_run(w->services->wires, recall_all, w);
}

static void workers_free(struct rv__executor *self)
{
    struct rv__workers *w = (struct rv__workers *)self;
    rv__workers_close(self);
    w->services->workers = NULL;
    rv__buf_done(&w->members);
    rv__free(w);
}

int rv__workers_new(struct rv__services *services, const struct rv__executor *head,
                    struct rv__executor **ret, rv_error *err)
{
    struct rv__workers *w = rv__zalloc(1, sizeof *w);
    if (w == NULL)
        return rv__nomem(err);
    w->services = services;
    w->heartbeat_ms = RV__WORKER_HEARTBEAT_MS;
    w->grace_ms = RV__WORKER_GRACE_MS;
    w->executor = *head;
    w->executor.start = workers_start;
    w->executor.cancel = rv__executor_fire;
    w->executor.inside = rv__executor_outside;
    w->executor.free = workers_free;
    services->workers = &w->executor;
    *ret = &w->executor;
    return RV_OK;
}
