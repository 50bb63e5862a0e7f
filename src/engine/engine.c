/* engine.c: opening and closing an engine; lists and instances. */
#include "engine/engine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/store_name.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/kit.h"
#include "engine/listen.h"
#include "engine/member.h"
#include "engine/metrics.h"
#include "read/read.h"

enum {
    DEFAULT_WORKERS = 256, /* most threads for steps; they are made on demand */
    MOST_WORKERS = 100000,
    DEFAULT_GRACE_MS = 10000,
    DEFAULT_LEASE_MS = 10000,
    LEAST_LEASE_MS = 1000,
};

static void engine_destroy(rv_engine *e)
{
    rv__listeners_free(e);
    rv__notify_free(e);
    rv__remote_free(e->remote);
    rv__control_free(e->control);
    rv__script_hosts_free(e->services.scripts); /* their threads call the engine */
    rv__attached_free(e->attached);
    rv__desk_free(e->around.writer);
    rv__desk_free(e->around.reader);
    rv__evaluator_close(
        e->services
            .evaluator); /* its threads start work on those of the others, and the others on its: */
    rv__io_free(e->services.io);
    rv__workers_drain(e);
    rv__executors_free(e);                     /* waits for steps that were given back */
    rv__evaluator_free(e->services.evaluator); /* so it is freed when no other thread is left */
    rv__hosts_free(e->services.hosts);
    rv__providers_free(e->services.providers);
    rv__tool_servers_free(e->services.tool_servers);
    rv__wires_free(e->services.wires);
    pthread_mutex_destroy(&e->services.hosts_lock);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        while (e->runs[b] != NULL)
            rv__run_forget(e->runs[b]);
    while (e->in_flight != NULL)
        rv__attempt_drop(e->in_flight);
    rv__workers_forget(e);
    rv__limits_free(e); /* runs were in its rings */
    rv__commits_done(e);
    rv__guests_free(e);
    rv__registry_free(e);
    rv__timers_done(&e->waits);
    rv__timers_done(&e->timeouts);
    if (e->metrics != NULL)
        rv__metrics_done(e->metrics);
    rv__free(e->metrics);
    rv__free(e->owed);
    rv__free(e->store_name);
    rv__free(e->url);
    rv__reading_free(e->reading);
    rv__member_close(e);
    rv__store_close(e->step_reader);
    rv__store_close(e->loader);
    rv__store_close(e->reader);
    if (e->around.close != NULL)
        e->around.close(e);
    rv__kit_free(e->kit);
    rv__queue_done(&e->inbox);
    rv_cancel_free(e->closing);
    rv_cancel_free(e->over);
    pthread_cond_destroy(&e->left);
    pthread_mutex_destroy(&e->callers_lock);
    pthread_mutex_destroy(&e->step_reader_lock);
    rv__free(e);
}

/* When a file was last written, in ms since 1970; 0: there is none. */
static int64_t written_ms(const char *store, const char *ending)
{
    char path[4096];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s%s", store, ending);
    if (n < 0 || (size_t)n >= sizeof path || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* When the previous driver of the store last wrote something: shows how long nobody was driving. */
static int64_t last_written_ms(const char *store)
{
    int64_t file_ms = written_ms(store, ""), wal_ms = written_ms(store, "-wal");
    return file_ms > wal_ms ? file_ms : wal_ms;
}

static int open_store(rv_engine *e, const rv_engine_opts *opts, rv_error *err)
{
    struct rv__store_opts store = { .path = opts->store != NULL ? opts->store : RV__STORE_DEFAULT,
                                    .read_only = opts->read_only,
                                    .member = opts->member,
                                    .lease_ms = opts->lease_ms };
    e->member.lease_ms = opts->lease_ms > 0 ? opts->lease_ms : DEFAULT_LEASE_MS;
    e->down_ms = last_written_ms(store.path); /* before this process writes to it */
    int rc = rv__store_open(&store, &e->store, err);
    if (rc == RV_OK)
        rc = rv__store_reader(e->store, &e->reader, err);
    if (rc == RV_OK)
        rc = opts->member ? rv__member_open(e, err) : rv__store_reader(e->store, &e->loader, err);
    if (rc == RV_OK)
        rc = rv__store_reader(e->store, &e->step_reader, err);
    if (rc == RV_OK)
        rc = rv__reading_new(e->store, &e->reading, err);
    return rc;
}

static void close_store(rv_engine *e)
{
    rv__store_close(e->store);
}

int rv__engine_reader(rv_engine *e, struct rv__store **ret, rv_error *err)
{
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = rv__store_reader(e->step_reader, ret, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    return rc;
}

/* The environment variables that expressions may read: only those that the owner of the engine names. */
static int fill_env(struct rv__buf *env, const rv_engine_opts *opts, rv_error *err)
{
    rv__buf_char(env, '{');
    for (const char *const *name = opts->allow_env; name != NULL && *name != NULL; name++) {
        const char *value = getenv(*name);
        if (value == NULL)
            continue;
        if (env->len > 1)
            rv__buf_char(env, ',');
        rv__buf_json_str(env, rv__str(*name));
        rv__buf_char(env, ':');
        rv__buf_json_str(env, rv__str(value));
    }
    rv__buf_char(env, '}');
    return rv__buf_err(env, err);
}

/* NULL: no memory. */
static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = rv__alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

/* The name of the store for processes in other folders. *ret is NULL if there is none. A password is left out. */
static int name_for_others(const rv_engine_opts *opts, char **ret, rv_error *err)
{
    const char *name = opts->store != NULL ? opts->store : RV__STORE_DEFAULT;
    struct rv__buf shown;
    *ret = NULL;
    if (opts->read_only)
        return RV_OK;
    if (!rv__store_name_is_address(name)) {
        char *real = realpath(name, NULL); /* NULL for ":memory:" */
        *ret = real != NULL ? copy_text(real) : NULL;
        bool lost = real != NULL && *ret == NULL;
        free(real);
        return lost ? rv__nomem(err) : RV_OK;
    }
    rv__buf_init(&shown, SIZE_MAX / 8);
    rv__store_name_shown(name, &shown);
    int rc = rv__buf_err(&shown, err);
    if (rc == RV_OK && rv__str_is(rv__buf_view(&shown), name))
        *ret = rv__buf_take(&shown);
    rv__buf_done(&shown);
    return rc;
}

int rv_engine_set_url(rv_engine *e, const char *url, rv_error *err)
{
    if (e == NULL || url == NULL || *url == '\0')
        return rv__fail(err, RV_EINVAL, "rv_engine_set_url: no engine, or no URL given");
    rv__engine_enter(e);
    char *copy = copy_text(url);
    const char *none = NULL;
    int rc = copy == NULL ? rv__nomem(err) : RV_OK;
    if (rc == RV_OK && !atomic_compare_exchange_strong(&e->services.url, &none, copy)) {
        rc = rv__fail(err, RV_ESTATE, "rv_engine_set_url: it has one already");
        rv__free(copy);
    } else if (rc == RV_OK) {
        e->url = copy; /* freed with the engine */
    }
    rv__engine_leave(e);
    return rc;
}

/* Fill in what attempts use. The rest is made when it is first needed. */
static void fill_services(rv_engine *e)
{
    struct rv__services *services = &e->services;
    services->clock = e->clock;
    services->reader_lock = &e->step_reader_lock;
    services->reader = &e->step_reader;
    services->by_hand = !e->around.threads;
    if (e->kit != NULL)
        services->texts = e->kit->texts;
    services->stopped = &e->stopped;
    services->post = rv__attempt_post;
    services->worker_says = rv__workers_post;
    services->owner = e;
    services->script_owner = rv__script_owner;
    services->script_owner.owner = e;
}

static int engine_init(rv_engine *e, const rv_engine_opts *opts, uint64_t seed, rv_error *err)
{
    int workers = opts->workers ? (int)opts->workers : DEFAULT_WORKERS;
    e->grace_ms = opts->grace_ms ? opts->grace_ms : DEFAULT_GRACE_MS;
    e->drain_ms = opts->read_only ? 0 : opts->drain_ms;
    e->services.http_deny_private = opts->http_deny_private;
    e->metrics = rv__zalloc(1, sizeof *e->metrics);
    if (e->metrics == NULL || rv__metrics_init(e->metrics, err) < 0)
        return rv__nomem(err);
    if (opts->only_run != NULL)
        snprintf(e->only_run, sizeof e->only_run, "%s", opts->only_run);
    e->idle = opts->idle;
    e->read_only = opts->read_only;
    e->now_ms = rv__wall_ms(e->clock);
    e->last_deciding = &e->deciding;
    e->last_answered = &e->answered;
    e->burst = RV__BURST;
    e->retry.last = &e->retry.first;
    rv__load_init(e);
    e->services.hosts_opts = (struct rv__hosts_opts){ .limit = (int)opts->hosts,
                                                      .term_ms = opts->host_grace_ms,
                                                      .kill_ms = 2 * opts->host_grace_ms,
                                                      .memory_bytes = opts->host_memory };
    if (opts->by != NULL) {
        if (strlen(opts->by) > RV_BY_BYTES || !rv__str_utf8(rv__str(opts->by)))
            return rv__fail(err, RV_EINVAL, "`by` is a text of at most %d bytes of UTF-8",
                            RV_BY_BYTES);
        memcpy(e->by, opts->by, strlen(opts->by) + 1);
    }
    e->max_crashes = opts->max_crashes ? (int)opts->max_crashes : RV__MAX_CRASHES;
    e->retain.limits = (struct rv__retain_limits){ opts->retain_age_ms, opts->retain_runs,
                                                   opts->retain_bytes };
    rv__timers_init(&e->waits);
    rv__timers_init(&e->timeouts);

    rv__random_init(&e->random, seed);
    rv__random_init(&e->nonces, ~seed);
    rv__ids_init(&e->ids, rv__random_u64(&e->random));
    e->closing = rv_cancel_new(NULL);
    e->over = rv_cancel_new(NULL);
    e->owed = rv__zalloc(OWED_BUCKETS_FIRST, sizeof *e->owed);
    if (e->closing == NULL || e->over == NULL || e->owed == NULL)
        return rv__nomem(err);
    e->owed_size = OWED_BUCKETS_FIRST;
    int rc = rv__commits_init(e, err);
    if (rc == RV_OK && e->around.threads)
        rc = rv__evaluator_new(&(struct rv__evaluator_opts){ .cpu_ms = opts->eval_cpu_ms,
                                                             .memory_bytes = opts->eval_memory },
                               &e->services.evaluator, err);
    if (rc == RV_OK)
        rc = fill_env(&e->registry->env, opts, err);
    if (rc == RV_OK)
        rc = rv__secret_source_new(opts->secrets_file, NULL, &e->registry->secret_source, err);
    if (rc == RV_OK)
        rc = rv__config_take(e, opts, err);
    if (rc == RV_OK && rv__limits_take(e) < 0)
        rc = rv__nomem(err);
    if (rc < 0)
        return rc;
    rc = rv__executors_new(e, workers, err);
    if (rc == RV_OK)
        fill_services(e);
    if (rc == RV_OK)
        rc = e->around.open(e, opts, err);
    if (rc == RV_OK)
        e->services.reading = e->reading;
    if (rc == RV_OK)
        rc = name_for_others(opts, &e->store_name, err); /* now the file exists */
    if (rc == RV_OK && opts->control)
        e->services.store_name = e->store_name;
    if (rc == RV_OK && !e->read_only)
        rv__recover(e);
    return rc;
}

void rv__engine_forget_runs(rv_engine *e)
{
    rv__calls_again(e);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        while (e->runs[b] != NULL)
            rv__run_forget(e->runs[b]);
    e->deciding = NULL;
    e->last_deciding = &e->deciding;
    e->deciding_count = 0;
    rv__commits_forget(e);
    e->writing = 0;
    e->retain.under_way = false;
    rv__load_init(e);
    rv__places_reset(e);
    rv__plans_forgotten(e);
}

static int make_executor(rv_engine *e, const struct rv__executor *head, struct rv__executor **ret,
                         rv_error *err)
{
    switch ((enum rv__lane)head->lane) {
    case LANE_FUNCTION:
        return rv__threads_new(head, MOST_WORKERS, ret, err); /* credits limit their number */
    case LANE_HOST: return rv__hosted_new(&e->services, head, ret, err);
    case LANE_WORKER: return rv__workers_new(&e->services, head, ret, err);
    case LANE_IO:
    case LANE_EVAL:
    case LANE_HTTP:
    case LANE_SUSPECT:
    case LANE_NOBODY:
    case LANE_LIMIT:
    case LANE_NONE:
    case LANES: break;
    }
    return rv__builtins_new(head, ret, err);
}

static int make_around(rv_engine *e, rv_error *err)
{
    if (e->kit != NULL)
        return rv__kit_around(e, err);
    e->around = (struct rv__around){ .clock = rv__clock_real(),
                                     .threads = true,
                                     .open = open_store,
                                     .close = close_store,
                                     .executor = make_executor,
                                     .answer = rv__attempt_post_answer,
                                     .begins = rv__attempt_post_begins };
    int rc = rv__desk_new(&e->inbox, &e->around.writer, err);
    if (rc == RV_OK)
        rc = rv__desk_new(&e->inbox, &e->around.reader, err);
    return rc;
}

/* Whether this process may use several processors: a container may have only one of many. */
static bool several_cpus(void)
{
    cpu_set_t set; /* too small for all processors: an error, and then there are several */
    return sched_getaffinity(0, sizeof set, &set) < 0 || CPU_COUNT(&set) > 1;
}

int rv__engine_make(const rv_engine_opts *opts, struct rv__kit *kit, uint64_t seed, rv_engine **ret,
                    rv_error *err)
{
    rv_engine *e = rv__zalloc(1, sizeof *e);
    if (e == NULL) {
        rv__kit_free(kit);
        return rv__nomem(err);
    }
    int rc = rv__queue_init(&e->inbox, NULL, NULL, err);
    if (rc == RV_OK && rv__cond_init(&e->left) < 0)
        rc = rv__nomem(err);
    if (rc < 0) {
        rv__kit_free(kit);
        rv__free(e);
        return rc;
    }
    e->kit = kit;
    e->several_cpus = several_cpus();
    pthread_mutex_init(&e->callers_lock, NULL); /* on Linux these two cannot fail */
    pthread_mutex_init(&e->step_reader_lock, NULL);
    pthread_mutex_init(&e->services.hosts_lock, NULL);
    pthread_mutex_init(&e->plans.lock, NULL);
    pthread_mutex_init(&e->guests.lock, NULL);
    rc = make_around(e, err);
    e->clock = e->around.clock;
    e->registry = rv__registry_new(e);
    if (rc == RV_OK && e->registry == NULL)
        rc = rv__nomem(err);
    if (rc == RV_OK && e->around.threads) /* otherwise the caller gives the seed */
        rc = rv__random_seed_system(&seed, err);
    if (rc == RV_OK)
        rc = engine_init(e, opts, seed, err);
    if (rc == RV_OK && e->around.threads &&
        pthread_create(&e->thread, NULL, rv__engine_main, e) != 0)
        rc = rv__fail(err, RV_ESYS, "no thread could be made for the engine");
    if (rc < 0) {
        engine_destroy(e);
        return rc;
    }
    e->running_thread = e->around.threads;
    rc = rv__member_start(e, err);
    if (rc == RV_OK && opts->control)
        rc = rv__control_new(e, opts->store != NULL ? opts->store : RV__STORE_DEFAULT, NULL,
                             &e->control, err);
    if (rc == RV_OK)
        rc = rv__notify_reopen(e, err);
    if (rc < 0) {
        rv_engine_free(e);
        return rc;
    }
    *ret = e;
    return rc;
}

int rv_engine_new(const rv_engine_opts *opts, rv_engine **ret, rv_error *err)
{
    rv_engine_opts known = {
        .size = sizeof known
    }; /* a program that was built earlier gives fewer fields */
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_ENGINE_OPTS");
    if (opts != NULL)
        memcpy(&known, opts, opts->size < sizeof known ? opts->size : sizeof known);
    if (known.workers > MOST_WORKERS)
        return rv__fail(err, RV_EINVAL, "%u workers are too many", known.workers);
    if (known.retain_age_ms < 0)
        return rv__fail(err, RV_EINVAL, "retain_age_ms is negative: 0 is for ever");
    if (known.only_run != NULL && !rv__id_valid(rv__str(known.only_run)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", known.only_run);
    if (known.member && (known.only_run != NULL || known.read_only || known.attach || known.idle))
        return rv__fail(err, RV_EINVAL,
                        "a member shares all runs: not with only_run, read_only, "
                        "attach or idle");
    if (known.lease_ms < 0 || (known.lease_ms > 0 && known.lease_ms < LEAST_LEASE_MS))
        return rv__fail(err, RV_EINVAL, "lease_ms must be %d or more; 0 is the default, %d",
                        (int)LEAST_LEASE_MS, (int)DEFAULT_LEASE_MS);
    if (known.drain_ms < 0)
        return rv__fail(err, RV_EINVAL, "drain_ms is negative: 0 is not at all");
    if (known.eval_cpu_ms < 0)
        return rv__fail(err, RV_EINVAL, "eval_cpu_ms is negative: 0 is the default, 1000");
    if (ret == NULL)
        return rv__fail(err, RV_EINVAL, "nowhere to put the engine");
    if (known.control && known.read_only && !known.attach)
        return rv__fail(err, RV_EINVAL, "an engine with read_only cannot have control");
    if ((known.control || known.attach) && rv__store_name_in_memory(known.store))
        return rv__fail(err, RV_EINVAL,
                        "no other process can use a store in memory: no control, no attach");
    if (known.attach)
        return rv__engine_attach(&known, ret, err);
    return rv__engine_make(&known, NULL, 0, ret, err);
}

/* How many steps had not ended when the engine was closed. */
static int still_running(const rv_engine *e)
{
    int left = 0;
    for (const struct rv__attempt *a = e->in_flight; a != NULL && e->running_thread;
         a = a->all_next)
        left++;
    return left;
}

int rv_engine_close(rv_engine *e)
{
    struct rv__call call = { .kind = CALL_CLOSE,
                             .engine = e,
                             .letter.kind = LETTER_CALL,
                             .answered = PTHREAD_COND_INITIALIZER }; /* nobody waits on it */
    if (e == NULL)
        return 0;
    int handed = rv__attached_close(e);
    if (e->stopped)
        return handed + still_running(e);
    if (rv__executors_inside(e) != NULL)
        rv_panic("the engine is closed from one of its own steps, which would wait for itself");

    if (e->running_thread) {
        (void)!rv__engine_post(
            e,
            &call.letter); /* fails if the queue is closed: a drained engine has ended by itself */
        pthread_join(e->thread,
                     NULL); /* ends when the last step has ended and everything is on disk */
    }
    e->stopped = true;
    rv__queue_close(&e->inbox);
    rv__calls_close(e);
    rv__feeds_close(e->reading);
    rv__listeners_close(e);
    rv__notify_close(e);
    pthread_mutex_lock(&e->callers_lock);
    while (e->callers > 0)
        pthread_cond_wait(&e->left, &e->callers_lock);
    pthread_mutex_unlock(&e->callers_lock);
    rv__member_stop(e);
    rv__remote_free(e->remote);
    e->remote = NULL;
    rv__script_hosts_stop(e->services.scripts);
    if (e->kit == NULL)
        rv__workers_close(e->lanes[LANE_WORKER].executor);
    rv__control_free(e->control); /* until now it has told others that the engine closes */
    e->control = NULL;
    return handed + still_running(e);
}

void rv_engine_free(rv_engine *e)
{
    if (e == NULL)
        return;
    (void)rv_engine_close(e); /* engine_destroy() waits for what is still running */
    engine_destroy(e);
}

/* ---------------------------------------------------------------------------------- lists --- */

struct listing {
    struct rv__buf texts;
    struct {
        rv_run_state state;
        size_t workflow, version, error, failed_step, failed_path, suspension, suspensions,
            rerun_of, input;
    } * rows;
    size_t count, cap;
    bool no_memory;
};

static size_t keep(struct rv__buf *texts, struct rv__str text)
{
    size_t at = texts->len;
    rv__buf_str(texts, text);
    rv__buf_char(texts, '\0');
    return at;
}

static int status_of(struct rv__str name)
{
    for (int i = 0; i < RUN_STATUSES; i++)
        if (rv__str_is(name, rv__run_status_name((enum rv__run_status)i)))
            return rv__public_status((enum rv__run_status)i);
    return RV_FAILED;
}

static int take_listed(void *arg, const struct rv__store_run *row)
{
    struct listing *l = arg;
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        void *rows = rv__realloc(l->rows, cap * sizeof *l->rows);
        if (rows == NULL)
            return RV_ENOMEM;
        l->rows = rows;
        l->cap = cap;
    }
    memset(&l->rows[l->count], 0, sizeof l->rows[0]);
    rv_run_state *state = &l->rows[l->count].state;
    snprintf(state->run_id, sizeof state->run_id, "%.*s", RV__ARG(row->id));
    state->status = status_of(row->status);
    state->created_at = row->created_ms;
    state->started_at = row->started_ms;
    state->completed_at = row->completed_ms;
    state->duration_ms = row->completed_ms ? row->completed_ms - row->started_ms : 0;
    l->rows[l->count].workflow = keep(&l->texts, row->workflow);
    l->rows[l->count].version = keep(&l->texts, row->version);
    l->rows[l->count].error = keep(&l->texts, row->error);
    l->rows[l->count].failed_step = keep(&l->texts, row->failed_step);
    l->rows[l->count].failed_path = keep(&l->texts, rv__error_path(row->error));
    l->rows[l->count].suspension = keep(&l->texts, rv__first_reason(row->suspension));
    l->rows[l->count].suspensions = keep(&l->texts, row->suspension);
    l->rows[l->count].rerun_of = keep(&l->texts, row->rerun_of);
    state->waiting = row->waiting ? "somebody" : "";
    l->rows[l->count].input = keep(&l->texts, row->input);
    l->count++;
    return RV_OK;
}

static int make_list(const struct listing *l, const struct rv__buf *cursor, rv_run_list **ret,
                     rv_error *err)
{
    size_t runs_at = sizeof(rv_run_list), texts_at = runs_at + l->count * sizeof(rv_run_state);
    size_t cursor_at = texts_at + l->texts.len;
    char *mem = rv__zalloc(1, cursor_at + cursor->len + 1);
    if (mem == NULL)
        return rv__nomem(err);
    rv_run_list *list = (rv_run_list *)(void *)mem;
    rv_run_state *runs = (rv_run_state *)(void *)(mem + runs_at);
    const char *texts = mem + texts_at;
    if (l->texts.len > 0)
        memcpy(mem + texts_at, l->texts.text, l->texts.len);
    if (cursor->len > 0)
        memcpy(mem + cursor_at, cursor->text, cursor->len);
    for (size_t i = 0; i < l->count; i++) {
        runs[i] = l->rows[i].state;
        runs[i].workflow = texts + l->rows[i].workflow;
        runs[i].version = texts + l->rows[i].version;
        runs[i].error = texts + l->rows[i].error;
        runs[i].failed_step = texts + l->rows[i].failed_step;
        runs[i].failed_path = texts + l->rows[i].failed_path;
        runs[i].suspension = texts + l->rows[i].suspension;
        runs[i].rerun_of = texts + l->rows[i].rerun_of;
        runs[i].suspensions = texts + l->rows[i].suspensions;
        runs[i].input = texts + l->rows[i].input;
        runs[i].results = "";
    }
    list->count = l->count;
    list->runs = runs;
    list->next = mem + cursor_at;
    *ret = list;
    return RV_OK;
}

int rv_list(rv_engine *e, const rv_query *query, rv_run_list **ret, rv_error *err)
{
    rv_query known = { .size = sizeof known };
    struct listing l = { .count = 0 };
    struct rv__buf cursor;
    if (query != NULL)
        rv__opts_take(&known, sizeof known, query, query->size);
    query = &known;
    if (e == NULL || ret == NULL || query->size == 0 || query->status < 0 ||
        query->status > RV_CANCELLED)
        return rv__fail(err, RV_EINVAL, "rv_list: %s",
                        e == NULL          ? "no engine given"
                        : ret == NULL      ? "nowhere to put the list"
                        : query->size == 0 ? "make the query with RV_QUERY"
                                           : "there is no such status");
    struct rv__store_query store = {
        .workflow = rv__str(query->workflow),
        .waiting = query->waiting,
        .rerun_of = rv__str(query->rerun_of),
        .since_ms = query->since,
        .until_ms = query->until,
        .text = rv__str(query->text),
        .cursor = rv__str(query->cursor != NULL && *query->cursor != '\0' ? query->cursor : NULL),
        .limit = query->limit ? query->limit : 50,
        .input_bytes = RV_LIST_INPUT_BYTES,
    };
    if (query->status > 0)
        store.status = rv__str(rv_status_name(query->status));
    rv__buf_init(&l.texts, SIZE_MAX / 8);
    rv__buf_init(&cursor, 4096);
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = query->run_id == NULL
                 ? rv__store_list(e->step_reader, &store, take_listed, &l, &cursor, err)
                 : rv__store_run(e->step_reader, rv__str(query->run_id), take_listed, &l, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    if (rc == RV_ENOTFOUND && query->run_id != NULL)
        rc = RV_OK;
    if (rc == RV_OK)
        rc = rv__buf_err(&l.texts, err);
    if (rc == RV_OK)
        rc = make_list(&l, &cursor, ret, err);
    else if (rc == RV_ENOMEM)
        rc = rv__nomem(err);
    rv__free(l.rows);
    rv__buf_done(&l.texts);
    rv__buf_done(&cursor);
    return rc;
}

void rv_run_list_free(rv_run_list *list)
{
    rv__free(list);
}

static int take_count(void *arg, struct rv__str status, uint64_t runs)
{
    rv_run_counts *counts = arg;
    uint64_t *of[RUN_STATUSES] = { [RUN_RUNNING] = &counts->running,
                                   [RUN_SUSPENDED] = &counts->suspended,
                                   [RUN_COMPLETED] = &counts->completed,
                                   [RUN_FAILED] = &counts->failed,
                                   [RUN_CANCELLED] = &counts->cancelled };
    for (int i = 0; i < RUN_STATUSES; i++)
        if (rv__str_is(status, rv__run_status_name((enum rv__run_status)i)))
            *of[i] = runs;
    return RV_OK;
}

int rv_count_runs(rv_engine *e, rv_run_counts *ret, rv_error *err)
{
    struct rv__store_usage usage = { 0 };
    rv_run_counts counts = { 0 };
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_count_runs: %s",
                        e == NULL ? "no engine given" : "nowhere to put it");
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = rv__store_counts(e->step_reader, take_count, &counts, err);
    if (rc == RV_OK)
        rc = rv__store_usage(e->step_reader, &usage, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    if (rc < 0)
        return rc;
    counts.waiting = usage.waiting;
    *ret = counts;
    return RV_OK;
}

/* ------------------------------------------------------------------------------ instances --- */

struct rv_instance {
    rv_engine *engine;
    char run_id[RV_RUN_ID_SIZE];
    char workflow[RV__PLAN_MAX_NAME + 1];
};

rv_instance *rv_instance_new(rv_engine *engine, const char *workflow, const char *run_id)
{
    if (engine == NULL || workflow == NULL || strlen(workflow) > RV__PLAN_MAX_NAME ||
        run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return NULL;
    rv_instance *instance = rv__zalloc(1, sizeof *instance);
    if (instance == NULL)
        return NULL;
    instance->engine = engine;
    snprintf(instance->run_id, sizeof instance->run_id, "%s", run_id);
    snprintf(instance->workflow, sizeof instance->workflow, "%s", workflow);
    return instance;
}

void rv_instance_free(rv_instance *instance)
{
    rv__free(instance);
}

static int no_instance(rv_error *err)
{
    return rv__fail(err, RV_EINVAL, "no instance given");
}

int rv_instance_run(rv_instance *instance, const char *input, rv_run_info *ret, rv_error *err)
{
    if (instance == NULL)
        return no_instance(err);
    return rv_run(instance->engine, instance->workflow, input,
                  RV_RUN_OPTS(.run_id = instance->run_id), ret, err);
}

int rv_instance_wait(rv_instance *instance, const rv_wait_opts *opts, rv_outcome **ret,
                     rv_error *err)
{
    if (instance == NULL)
        return no_instance(err);
    return rv_wait(instance->engine, instance->workflow, instance->run_id, opts, ret, err);
}

int rv_instance_cancel(rv_instance *instance, rv_error *err)
{
    if (instance == NULL)
        return no_instance(err);
    return rv_cancel_run(instance->engine, instance->run_id, err);
}

int rv_instance_state(rv_instance *instance, rv_run_state **ret, rv_error *err)
{
    if (instance == NULL)
        return no_instance(err);
    return rv_state(instance->engine, instance->run_id, ret, err);
}
