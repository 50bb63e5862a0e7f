/* hosted.c: the host processes of an engine, which run the functions of C files, one at a time in each.
 *
 *   busy ◀──────▶ idle ──too long, or its place is needed──▶ ended
 *     └──died, killed, sent something wrong──────────────────▲
 *
 * A host runs the functions of one file, one at a time. So if it dies, the attempt in it is to blame, and no other is
 * affected. Each has a session (session.c), as a worker has; all of them are on the loop of connections.
 *
 * Nothing waits for a host: the executor has as many credits as there may be processes, so that whoever has a credit finds an idle
 * host, or room for one more, or an idle host of another file that can be ended.
 *
 * Everything that a host sends is checked; a wrong frame ends the host. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/session.h"
#include "work/work.h"

enum {
    LEAST_HOSTS = 4,
    IDLE_MS = 30000, /* a host without work ends after this */
    DEFAULT_TERM_MS = 1000,
    DEFAULT_KILL_MS = 2000,
};

/* What a file has is asked of a fresh host; on the stack of the thread that waits. */
struct describing {
    struct rv__wire_task task; /* first */
    struct rv__hosts *hosts;
    const char *module;
    struct rv__buf text; /* the frame `register` */
    pthread_cond_t answered;
    bool done;
    int rc;
    rv_error err;
};

struct rv__hosted {
    struct rv__hosted *next, **link; /* among all */
    struct rv__hosted *next_idle;
    struct rv__hosts *hosts;
    struct rv__host *process;
    struct rv__session *session;
    struct describing *describing; /* NULL: it has work, or is idle */
    bool counted;                  /* among those that count for the limit */
    bool broken;                   /* it says that it cannot work any more */
    char module[];                 /* its path */
};

struct rv__hosts {
    struct rv__host_opts opts;
    struct rv__wires *own_wires; /* NULL: they are the engine's */
    int limit;
    char *program;
    /* of the loop: */
    struct rv__hosted *all, *idle; /* idle: the last used first */
    int count;
    uint64_t numbered;
    /* under the lock: */
    pthread_mutex_t lock;
    pthread_cond_t quiet;
    size_t working, processes; /* pieces of work; hosts that have not ended */
};

/* -------------------------------------------------------------------------------- counting --- */

static void count_one(struct rv__hosts *hosts, size_t *of, bool more)
{
    pthread_mutex_lock(&hosts->lock);
    *of += more ? 1 : (size_t)-1;
    if (*of == 0)
        pthread_cond_broadcast(&hosts->quiet); /* under the lock: who waits may free all */
    pthread_mutex_unlock(&hosts->lock);
}

static void await_none(struct rv__hosts *hosts, const size_t *of)
{
    pthread_mutex_lock(&hosts->lock);
    while (*of > 0)
        pthread_cond_wait(&hosts->quiet, &hosts->lock);
    pthread_mutex_unlock(&hosts->lock);
}

/* -------------------------------------------------------------------------------- one host --- */

/* It counts no more for the limit: it is about to end. */
static void uncount(struct rv__hosted *host)
{
    host->hosts->count -= host->counted;
    host->counted = false;
}

static void answer(struct describing *d, int rc)
{
    struct rv__hosts *hosts = d->hosts;
    pthread_mutex_lock(&hosts->lock);
    d->rc = rc;
    d->done = true;
    pthread_cond_signal(&d->answered); /* under the lock: after it, it may be gone */
    pthread_mutex_unlock(&hosts->lock);
}

static void rest(struct rv__hosted *host)
{
    host->next_idle = host->hosts->idle;
    host->hosts->idle = host;
    rv__host_rest(host->process, IDLE_MS);
}

void rv__hosted_finished(struct rv__hosted *host, bool is_ready)
{
    if (is_ready && !host->broken && rv__host_usable(host->process)) {
        rest(host);
        return;
    }
    uncount(host);
    rv__host_kill(host->process); /* does nothing if it has died */
}

void rv__hosted_told(struct rv__hosted *host)
{
    rv__host_stop(host->process);
}

static void host_started(void *arg)
{
    struct rv__hosted *host = arg;
    struct rv__session *s = host->session;
    struct rv_ctx *ctx = rv__session_only(s);
    s->conn = rv__host_conn(host->process);
    if (ctx != NULL)
        rv__session_say_invoke(s, ctx);
}

/* The host's message about what is wrong with the file. */
static int tell(struct rv__str json, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (rv__json_type(json) == RV__JSON_STRING)
        (void)rv__json_string(json, &arena, &text); /* no memory: as it came, then */
    int rc = rv__fail(err, RV_EINVAL, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    return rc;
}

/* A frame of a host that describes its file. */
static void take_description(struct rv__hosted *host, const struct rv__frame *frame)
{
    struct describing *d = host->describing;
    struct rv__hosts *hosts = host->hosts;
    struct rv__str error, message;
    if (frame->type == FRAME_HELLO)
        return;
    host->describing = NULL;
    rv__frame_members(frame, (const char *[]){ "error" }, &error, 1);
    if (frame->type == FRAME_REGISTER) {
        rv__buf_str(&d->text, frame->json);
        answer(d, rv__buf_err(&d->text, &d->err));
    } else if (frame->type == FRAME_ERROR && !rv__str_none(error) &&
               rv__json_get(error, "message", &message)) {
        answer(d, tell(message, &d->err));
    } else {
        answer(d, rv__fail(&d->err, RV_EINVAL, "it sent '%s' before any request",
                           rv__frame_type_name(frame->type)));
    }
    host->counted = frame->type == FRAME_REGISTER && hosts->count < hosts->limit;
    hosts->count += host->counted;
    rv__hosted_finished(host, host->counted); /* most probably it is needed soon */
}

static void host_heard(void *arg, const struct rv__frame *frame)
{
    struct rv__hosted *host = arg;
    struct rv__session *s = host->session;
    enum rv__frame_type type = frame->type;
    struct rv__str id;
    rv_error err;
    int rc = RV_OK;
    if (host->describing != NULL) {
        take_description(host, frame);
    } else if (rv__frame_is_about_work(type)) {
        rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
        host->broken |= type == FRAME_ERROR &&
                        rv__str_none(id); /* it cannot load its file, and exits */
        struct rv_ctx *ctx = rv__str_none(id) ? rv__session_only(s) : rv__session_find(s, id);
        /* NULL: a thread that an earlier step left over; nobody is answered who was killed while it started */
        if (ctx != NULL && (type != FRAME_GET || s->conn != NULL))
            rc = rv__session_hear(s, ctx, frame, &err);
    } else if (type == FRAME_PING) {
        if (s->conn != NULL)
            rv__conn_say(s->conn, FRAME_PONG);
    } else if (type != FRAME_HELLO && type != FRAME_REGISTER && type != FRAME_PONG) {
        rc = rv__fail(&err, RV_EPARSE, "it may not send '%s'", rv__frame_type_name(type));
    }
    if (rc < 0)
        rv__host_refuse(host->process, &err);
}

/* Its output goes to the log of its step. */
static void host_printed(void *arg, struct rv__str line)
{
    const struct rv__hosted *host = arg;
    struct rv_ctx *ctx = rv__session_only(host->session);
    if (ctx != NULL)
        rv_log_info(ctx, "%.*s", RV__ARG(line));
}

static void host_cut(void *arg)
{
    struct rv__hosted *host = arg;
    host->session->conn = NULL;
}

static void remove_idle(struct rv__hosted *host)
{
    struct rv__hosted **at = &host->hosts->idle;
    while (*at != NULL && *at != host)
        at = &(*at)->next_idle;
    if (*at != NULL)
        *at = host->next_idle;
}

static void host_ended(void *arg, bool died, const rv_error *why)
{
    struct rv__hosted *host = arg;
    struct rv__hosts *hosts = host->hosts;
    struct rv__session *s = host->session;
    struct rv_ctx *ctx = rv__session_only(s);
    s->conn = NULL;
    s->host = NULL;
    s->state.gone = true;
    if (host->describing != NULL) {
        host->describing->err = *why;
        answer(host->describing, died ? RV_EINVAL : why->code);
    }
    if (ctx != NULL && died) {
        rv__session_lose(s, ctx, RV__LOST_ALONE, why->message);
    } else if (ctx != NULL) {
        ctx->invoked.why = *why;
        rv__session_finish(s, ctx);
    }
    remove_idle(host);
    uncount(host);
    *host->link = host->next;
    if (host->next != NULL)
        host->next->link = host->link;
    rv__kept_forget(&s->kept);
    rv__session_unref(s); /* a job may still read for its work */
    rv__free(host);
    count_one(hosts, &hosts->processes, false);
}

/* NULL: no memory. */
static struct rv__hosted *host_new(struct rv__hosts *hosts, const char *module)
{
    static const struct rv__host_user user = { .started = host_started,
                                               .heard = host_heard,
                                               .printed = host_printed,
                                               .cut = host_cut,
                                               .ended = host_ended };
    size_t len = strlen(module) + 1;
    struct rv__hosted *host = rv__zalloc(1, sizeof *host + len);
    if (host == NULL)
        return NULL;
    memcpy(host->module, module, len);
    host->hosts = hosts;
    host->session = rv__session_new(++hosts->numbered);
    if (host->session != NULL)
        host->process = rv__host_new(&hosts->opts, host->module, &user, host);
    if (host->session == NULL || host->process == NULL) {
        rv__session_unref(host->session);
        rv__free(host);
        return NULL;
    }
    host->session->host = host;
    host->next = hosts->all;
    host->link = &hosts->all;
    if (hosts->all != NULL)
        hosts->all->link = &host->next;
    hosts->all = host;
    count_one(hosts, &hosts->processes, true);
    return host;
}

/* ------------------------------------------------------------------------------- their work --- */

/* An idle host: of that file, or (module NULL) the one that has been idle longest. */
static struct rv__hosted *take_idle(struct rv__hosts *hosts, const char *module)
{
    struct rv__hosted **at = &hosts->idle, **found = NULL;
    for (; *at != NULL; at = &(*at)->next_idle) {
        if (module != NULL && strcmp((*at)->module, module) != 0)
            continue;
        found = at;
        if (module != NULL)
            break;
    }
    if (found == NULL)
        return NULL;
    struct rv__hosted *host = *found;
    *found = host->next_idle;
    return host;
}

/* A host for a piece of work. NULL: no memory. */
static struct rv__hosted *find_host(struct rv__hosts *hosts, const char *module)
{
    struct rv__hosted *host;
    while ((host = take_idle(hosts, module)) != NULL && !rv__host_usable(host->process))
        uncount(host); /* it is about to end */
    if (host != NULL) {
        rv__host_work(host->process);
        return host;
    }
    struct rv__hosted *other = hosts->count >= hosts->limit ? take_idle(hosts, NULL) : NULL;
    if (other != NULL) {
        uncount(other);
        rv__host_kill(other->process);
    }
    host = host_new(hosts, module);
    if (host == NULL)
        return NULL;
    host->counted = true;
    hosts->count++;
    return host;
}

static void work_arrives(struct rv__wire_task *task)
{
    struct rv_ctx *ctx = RV__CONTAINER(task, struct rv_ctx, invoked.begin);
    for (struct rv_ctx *next; ctx != NULL; ctx = next) {
        next = ctx->invoked.next; /* it may be gone afterwards */
        struct rv__hosted *host = find_host(ctx->services->hosts, ctx->module);
        if (host != NULL) {
            rv__session_begin(host->session, ctx);
        } else {
            (void)rv__nomem(&ctx->invoked.why);
            ctx->invoked.over = true;
            rv__invoked_settle(ctx);
        }
    }
}

static void complete(struct rv_ctx *ctx)
{
    struct rv__hosts *hosts = ctx->services->hosts;
    rv__invoked_complete(ctx);
    count_one(hosts, &hosts->working, false);
}

/* By hand: whoever runs it waits. */
struct by_hand {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
};

static void complete_by_hand(struct rv_ctx *ctx)
{
    struct by_hand *hand = ctx->invoked.arg;
    pthread_mutex_lock(&hand->lock);
    hand->done = true;
    pthread_cond_signal(&hand->over); /* under the lock: after it, it may be gone */
    pthread_mutex_unlock(&hand->lock);
}

void rv__hosted_run(struct rv__work *work)
{
    struct by_hand hand = { .lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER };
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    struct rv__hosts *hosts = NULL;
    rv_error err;
    if (rv__services_hosts(ctx->services, &hosts, &err) < 0) {
        rv__ctx_failed(ctx, &err);
        return;
    }
    (void)rv__invoked_chain(&work, 1, complete_by_hand);
    ctx->invoked.begin.run = work_arrives;
    ctx->invoked.begun = true;
    ctx->invoked.arg = &hand;
    rv__wires_post(hosts->opts.wires, &ctx->invoked.begin);
    pthread_mutex_lock(&hand.lock);
    while (!hand.done)
        pthread_cond_wait(&hand.over, &hand.lock);
    pthread_mutex_unlock(&hand.lock);
    pthread_mutex_destroy(&hand.lock);
    pthread_cond_destroy(&hand.over);
    err = ctx->invoked.why;
    if (ctx->invoked.is_lost)
        rv__ctx_lost(ctx, ctx->lost, &err);
    else if (err.code != 0)
        rv__ctx_failed(ctx, &err);
}

/* -------------------------------------------------------------------------------- executor --- */

struct hosting {
    struct rv__executor executor; /* first */
    struct rv__services *services;
};

static size_t hosting_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    struct rv__hosts *hosts = NULL;
    rv_error err;
    if (rv__services_hosts(((struct hosting *)self)->services, &hosts, &err) < 0) {
        for (size_t i = 0; i < count; i++)
            works[i]->done(works[i], &err);
        return count;
    }
    struct rv_ctx *first = rv__invoked_chain(works, count, complete);
    if (first == NULL)
        return 0;
    pthread_mutex_lock(&hosts->lock);
    hosts->working += count;
    pthread_mutex_unlock(&hosts->lock);
    first->invoked.begin.run = work_arrives;
    rv__wires_post(hosts->opts.wires, &first->invoked.begin);
    return count;
}

static void hosting_free(struct rv__executor *self)
{
    struct rv__hosts *hosts = ((struct hosting *)self)->services->hosts;
    if (hosts != NULL)
        await_none(hosts, &hosts->working);
    rv__free(self);
}

int rv__hosted_new(struct rv__services *services, const struct rv__executor *head,
                   struct rv__executor **ret, rv_error *err)
{
    struct hosting *hosting = rv__zalloc(1, sizeof *hosting);
    if (hosting == NULL)
        return rv__nomem(err);
    hosting->services = services;
    hosting->executor = *head;
    hosting->executor.start = hosting_start;
    hosting->executor.cancel = rv__executor_fire;
    hosting->executor.inside = rv__executor_outside;
    hosting->executor.free = hosting_free;
    *ret = &hosting->executor;
    return RV_OK;
}

/* -------------------------------------------------------------------------------- life time --- */

int rv__hosts_limit(const struct rv__hosts_opts *opts)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (opts->limit > 0)
        return opts->limit;
    return processors * 2 > LEAST_HOSTS ? (int)processors * 2 : LEAST_HOSTS;
}

int rv__hosts_new(const struct rv__hosts_opts *opts, struct rv__wires *wires,
                  struct rv__hosts **ret, rv_error *err)
{
    struct rv__buf program;
    struct rv__hosts *hosts = rv__zalloc(1, sizeof *hosts);
    if (hosts == NULL)
        return rv__nomem(err);
    pthread_mutex_init(&hosts->lock, NULL); /* on Linux these two cannot fail */
    pthread_cond_init(&hosts->quiet, NULL);
    hosts->limit = rv__hosts_limit(opts);
    rv__buf_init(&program, 8192);
    int rc = rv__hosts_program(&program, err);
    if (rc == RV_OK && wires == NULL)
        rc = rv__wires_new(&hosts->own_wires, err);
    if (rc == RV_OK)
        hosts->program = rv__buf_take(&program);
    rv__buf_done(&program);
    hosts->opts = (struct rv__host_opts){
        .wires = wires != NULL ? wires : hosts->own_wires,
        .program = hosts->program,
        .term_ms = opts->term_ms > 0 ? opts->term_ms : DEFAULT_TERM_MS,
        .kill_ms = opts->kill_ms > 0 ? opts->kill_ms : DEFAULT_KILL_MS,
        .memory_bytes = opts->memory_bytes,
    };
    if (rc < 0) {
        rv__hosts_free(hosts);
        return rc;
    }
    *ret = hosts;
    return RV_OK;
}

static void end_all(void *arg)
{
    const struct rv__hosts *hosts = arg;
    for (struct rv__hosted *host = hosts->all, *next; host != NULL; host = next) {
        next = host->next; /* it may be gone afterwards */
        rv__host_kill(host->process);
    }
}

void rv__hosts_free(struct rv__hosts *hosts)
{
    if (hosts == NULL)
        return;
    if (hosts->opts.wires != NULL)
        rv__wires_run(hosts->opts.wires, end_all, hosts);
    await_none(hosts, &hosts->processes);
    rv__wires_free(hosts->own_wires);
    pthread_mutex_destroy(&hosts->lock);
    pthread_cond_destroy(&hosts->quiet);
    rv__free(hosts->program);
    rv__free(hosts);
}

int rv__services_wires(struct rv__services *services, struct rv__wires **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&services->hosts_lock);
    if (services->wires == NULL)
        rc = rv__wires_new(&services->wires, err);
    *ret = services->wires;
    pthread_mutex_unlock(&services->hosts_lock);
    return rc;
}

int rv__services_hosts(struct rv__services *services, struct rv__hosts **ret, rv_error *err)
{
    struct rv__wires *wires = NULL;
    int rc = rv__services_wires(services, &wires, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&services->hosts_lock);
    if (services->hosts == NULL)
        rc = rv__hosts_new(&services->hosts_opts, wires, &services->hosts, err);
    *ret = services->hosts;
    pthread_mutex_unlock(&services->hosts_lock);
    return rc;
}

/* ------------------------------------------------------------------------------ what it has --- */

/* {plan?, functions: [name]} as a workflow, or a library. */
static int read_register(struct rv__str json, const char *module, rv_workflow **ret, rv_error *err)
{
    struct rv__str has[2], value, name;
    struct rv__json_iter it;
    const struct rv__frame frame = { FRAME_REGISTER, json };
    rv__frame_members(&frame, (const char *[]){ "plan", "functions" }, has, 2);
    if (rv__str_none(has[1]) || (!rv__str_none(has[0]) && rv__json_type(has[0]) != RV__JSON_OBJECT))
        return rv__fail(err, RV_EPARSE, "it registers no functions, or an invalid plan");
    int rc = RV_OK;
    if (!rv__str_none(has[0]))
        rc = rv__workflow_read(has[0], ret, err);
    else if ((*ret = rv__workflow_library()) == NULL)
        rc = rv__nomem(err);
    if (rc < 0)
        return rc;
    assert(*ret != NULL); /* read or made, just now */
    if (!(*ret)->library)
        rv__draft_hosted((*ret)->draft);
    rv__json_iter_init(&it, has[1]);
    while (rv__json_next(&it, NULL, &value)) {
        if (rv__json_type(value) != RV__JSON_STRING ||
            rv__json_string(value, &(*ret)->arena, &name) < 0)
            return rv__fail(err, RV_EPARSE, "a function without a name");
        rv__workflow_hosted(*ret, name, module);
    }
    return RV_OK;
}

static void describe(struct rv__wire_task *task)
{
    struct describing *d = (struct describing *)task;
    struct rv__hosted *host = host_new(d->hosts, d->module);
    if (host != NULL)
        host->describing = d;
    else
        answer(d, rv__nomem(&d->err));
}

int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err)
{
    struct describing d = { .task.run = describe, .hosts = hosts, .module = module };
    rv_workflow *workflow = NULL;
    pthread_cond_init(&d.answered, NULL); /* on Linux it cannot fail */
    rv__buf_init(&d.text, RV__FRAME_MAX);
    rv__wires_post(hosts->opts.wires, &d.task);
    pthread_mutex_lock(&hosts->lock);
    while (!d.done)
        pthread_cond_wait(&d.answered, &hosts->lock);
    pthread_mutex_unlock(&hosts->lock);
    pthread_cond_destroy(&d.answered);
    int rc = d.rc < 0 ? rv__fail(err, d.rc, "%s", d.err.message)
                      : read_register(rv__buf_view(&d.text), module, &workflow, err);
    rv__buf_done(&d.text);
    if (rc == RV_OK) {
        *ret = workflow;
        return RV_OK;
    }
    rv_workflow_free(workflow);
    if (rc == RV_EPARSE)
        rc = RV_EINVAL; /* of the file, not of a frame */
    if (err != NULL)
        err->code = rc;
    return rc;
}
