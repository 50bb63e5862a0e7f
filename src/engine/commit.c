/* commit.c: the facts of a turn, in one transaction: in the loop when it has nothing else to do, on a
 * thread of its own under load.
 *
 * Inline is quicker for one run at a time: handing over to a thread and back costs more than it wins.
 * Under load, the loop goes on while a batch is on its way to disk: it takes letters and decides for
 * the runs that are not in the batch; their facts make the next one. A run in the batch is *locked*:
 * nothing is decided for it, and letters to it are held until the batch has landed. So a run's facts
 * and effects always belong to one batch, and nothing needs to be told apart afterwards.
 *
 * A batch that the store refuses (full disk, locked file) is tried again, unchanged, until it is taken;
 * on the thread, so that the loop can answer meanwhile, from what is on disk. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/kit.h"
#include "engine/metrics.h"

/* Of journal, below which a replay is quicker than a snapshot. The simulator asks for them sooner. */
#ifndef RV__SNAPSHOT_BYTES
#define RV__SNAPSHOT_BYTES ((size_t)16384)
#endif

enum {
    RETRY_COMMIT_MS = 100, /* after a commit that failed */
    THREAD_FROM = 8,       /* runs in a batch, with others at work: from here on the thread pays */
};

struct batch {
    struct rv__store_write *writes;
    struct rv__store_run *rows;
    struct rv__store_touch *touches;
    struct rv__store_definition *definitions;
    struct rv__buf *plan_texts; /* one for each definition */
    size_t definition_count;
    struct rv__store_result *results;
    struct rv__store_log *logs;
};

static struct rv__str text_of(const struct rv__blob *blob)
{
    return rv__blob_str(blob);
}

static void fill_logs(struct rv__run *run, struct rv__store_log *logs)
{
    const char *at = run->logs.text;
    for (size_t i = 0; i < run->log_count; i++) {
        struct rv__kept_line head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        logs[i] = (struct rv__store_log){ .at_ms = head.at_ms,
                                          .level = (enum rv__store_level)head.level,
                                          .attempt = head.attempt };
        logs[i].path = (struct rv__str){ at, head.path };
        at += head.path;
        logs[i].step = (struct rv__str){ at, head.step };
        at += head.step;
        logs[i].message = (struct rv__str){ at, head.message };
        at += head.message;
        if (head.metadata > 0)
            logs[i].metadata = (struct rv__str){ at, head.metadata };
        at += head.metadata;
    }
}

/* A snapshot when the journal since the last has outgrown it: amortised, a constant a fact. */
static void maybe_snapshot(struct rv__run *run)
{
    size_t grown = run->journal_bytes + run->facts.json.len;
    size_t last = run->snapshot_bytes > RV__SNAPSHOT_BYTES ? run->snapshot_bytes
                                                           : RV__SNAPSHOT_BYTES;
    rv__buf_reset(&run->snapshot);
    if (grown <= last || rv__run_terminal(rv__cell_status(run->cell)))
        return;
    if (rv__cell_save(run->cell, &run->snapshot, NULL) < 0)
        rv__buf_reset(&run->snapshot); /* no memory: another time */
}

static void fill_write(struct rv__run *run, struct batch *b, size_t i, size_t *results,
                       size_t *logs)
{
    struct rv__store_write *w = &b->writes[i];
    enum rv__run_status status = rv__cell_status(run->cell);
    bool idle = rv__run_idle(run) && rv__run_may_walk(run);
    bool active = !idle;
    int64_t wake_ms = idle && rv__cell_active(run->cell) ? rv__run_wake_ms(run) : 0;
    if (rv__run_terminal(status) && run->completed_ms == 0)
        run->completed_ms = run->engine->now_ms;

    *w = (struct rv__store_write){ .run = rv__str(run->id) };
    if (run->facts.count > 0)
        w->facts = rv__buf_view(&run->facts.json);
    w->results = &b->results[*results];
    w->result_count = run->facts.row_count;
    for (size_t k = 0; k < run->facts.row_count; k++)
        b->results[(*results)++] = (struct rv__store_result){ .key = run->facts.rows[k].key,
                                                              .index = run->facts.rows[k].index,
                                                              .json = run->facts.rows[k].json };
    w->logs = &b->logs[*logs];
    w->log_count = run->log_count;
    fill_logs(run, &b->logs[*logs]);
    *logs += run->log_count;
    maybe_snapshot(run);
    if (run->snapshot.len > 0)
        w->snapshot = rv__buf_view(&run->snapshot);

    struct rv__str failed_step = rv__cell_failed_step(run->cell);
    if (run->is_new) {
        b->rows[i] = (struct rv__store_run){
            .id = w->run,
            .workflow = run->plan->plan->body.wrap->name,
            .version = rv__str(run->plan->plan->version),
            .status = rv__str(rv__run_status_name(status)),
            .input = text_of(run->input),
            .input_key = rv__str(run->input_key),
            .error = rv__cell_error(run->cell),
            .failed_step = failed_step,
            .suspension = rv__cell_suspension(run->cell),
            .created_ms = run->created_ms,
            .started_ms = run->started_ms,
            .completed_ms = run->completed_ms,
            .active = active,
            .wake_at_ms = wake_ms,
        };
        w->row = &b->rows[i];
    } else if (status != run->row_status || active != run->row_active ||
               wake_ms != run->row_wake_ms) {
        b->touches[i] = (struct rv__store_touch){
            .status = rv__str(rv__run_status_name(status)),
            .active = active,
            .wake_at_ms = wake_ms,
            .completed_ms = run->completed_ms,
            .error = rv__cell_error(run->cell),
            .failed_step = failed_step,
            .suspension = rv__cell_suspension(run->cell),
        };
        w->touch = &b->touches[i];
    }
    if (RV__BUG(36) && w->touch != NULL)
        b->touches[i].active = false;
    run->row_status = status;
    run->row_active = active;
    run->row_wake_ms = wake_ms;
}

static bool has_something(const struct rv__store_write *w)
{
    return w->facts.len > 0 || w->row != NULL || w->touch != NULL || w->log_count > 0 ||
           w->snapshot.len > 0 || w->result_count > 0;
}

static int plan_text(const struct rv__plan *plan, struct rv__arena *arena, struct rv__str *ret)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    int rc = rv__plan_write(plan, &json, NULL);
    if (rc == RV_OK)
        rc = rv__str_copy(arena, rv__buf_view(&json), ret);
    rv__buf_done(&json);
    return rc;
}

/* The disk may heal, memory may be given back. A kit's time does not pass meanwhile. */
static void wait_a_moment(const rv_engine *e)
{
    if (e->kit == NULL)
        rv__clock_sleep_ms(RETRY_COMMIT_MS);
}

/* Plans that this batch's new runs are the first to use. */
static void fill_definitions(rv_engine *e, struct batch *b, struct rv__arena *arena)
{
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (run->cell == NULL || run->plan->stored)
            continue;
        struct rv__str copy;
        while (plan_text(run->plan->plan, arena, &copy) < 0)
            wait_a_moment(e); /* a run without its definition could not be read again */
        b->definitions[b->definition_count++] = (struct rv__store_definition){
            .hash = rv__str(run->plan->plan->version), .json = copy
        };
        run->plan->stored = true;
    }
}

static void note_health(rv_engine *e, const rv_error *why)
{
    struct rv__commits *c = &e->commit;
    if (why == NULL && !atomic_load(&c->failing))
        return;
    pthread_mutex_lock(&c->lock);
    if (why == NULL)
        c->health = (rv_health){ .stuck = false };
    else if (!c->health.stuck)
        c->health = (rv_health){ .stuck = true, .since = rv__wall_ms(e->clock) };
    if (why != NULL) {
        c->health.attempts++;
        c->health.why = *why;
    }
    atomic_store(&c->failing, why != NULL);
    pthread_mutex_unlock(&c->lock);
}

/* One attempt. Thread: the loop's or the commits'. */
static int write_once(rv_engine *e, struct rv__store_write *writes, size_t count)
{
    rv_error err;
    int rc = rv__store_commit(e->store, writes, count, &err);
    note_health(e, rc < 0 ? &err : NULL);
    return rc;
}

/* It is tried until it works: what was decided stays decided, and nobody has seen it. False: the
 * process died in it, as a kit arranged. Thread: the loop's. */
static bool write_all(rv_engine *e, struct rv__store_write *writes, size_t count)
{
    if (e->kit != NULL)
        rv__kit_roll(e);
    while (write_once(e, writes, count) < 0) {
        if (e->kit != NULL && rv__kit_died(e))
            return false;
        if (RV__BUG(37))
            break;
        wait_a_moment(e); /* nothing is dropped, nothing goes on meanwhile */
    }
    return true;
}

/* Room for the writes of all dirty runs. Memory, too, is waited for. */
static void make_room(rv_engine *e, struct batch *b, struct rv__arena *arena)
{
    size_t runs = 0, results = 0, logs = 0;
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        runs++;
        results += run->facts.row_count;
        logs += run->log_count;
    }
    for (;;) {
        b->writes = rv__arena_zalloc(arena, runs, sizeof *b->writes);
        b->rows = rv__arena_zalloc(arena, runs, sizeof *b->rows);
        b->touches = rv__arena_zalloc(arena, runs, sizeof *b->touches);
        b->definitions = rv__arena_zalloc(arena, runs, sizeof *b->definitions);
        b->results = rv__arena_zalloc(arena, results + 1, sizeof *b->results);
        b->logs = rv__arena_zalloc(arena, logs + 1, sizeof *b->logs);
        if (b->writes != NULL && b->rows != NULL && b->touches != NULL && b->definitions != NULL &&
            b->results != NULL && b->logs != NULL)
            return;
        wait_a_moment(e);
    }
}

/* What the dirty runs have to write. */
static size_t gather(rv_engine *e, struct batch *b, struct rv__arena *arena)
{
    size_t results = 0, logs = 0, count = 0;
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty)
        while (rv__keep_unheard(run) < 0)
            wait_a_moment(e);
    make_room(e, b, arena);
    fill_definitions(e, b, arena);
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (run->cell == NULL)
            continue;
        fill_write(run, b, count, &results, &logs);
        if (has_something(&b->writes[count]))
            count++;
    }
    if (count > 0 && b->definition_count > 0) {
        b->writes[0].definitions = b->definitions;
        b->writes[0].definition_count = b->definition_count;
    }
    return count;
}

/* ------------------------------------------------------------------------------- the thread --- */

static void *commit_main(void *arg)
{
    rv_engine *e = arg;
    struct rv__commits *c = &e->commit;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->writes == NULL && !c->stop)
            (void)rv__cond_wait_until(&c->wake, &c->lock, RV__NEVER);
        if (c->writes == NULL)
            break;
        struct rv__store_write *writes = c->writes;
        size_t count = c->count;
        pthread_mutex_unlock(&c->lock);
        int rc = write_once(e, writes, count);
        pthread_mutex_lock(&c->lock);
        if (rc < 0 && !c->stop) { /* nothing is dropped, nothing of it is seen meanwhile */
            (void)rv__cond_wait_until(&c->wake, &c->lock,
                                      rv__mono_ns(e->clock) + RETRY_COMMIT_MS * INT64_C(1000000));
            continue;
        }
        c->writes = NULL;
        (void)!rv__engine_post(e, &c->letter); /* closed: it was given up */
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int rv__commits_init(rv_engine *e, rv_error *err)
{
    struct rv__commits *c = &e->commit;
    c->letter.kind = LETTER_LANDED;
    rv__arena_init(&c->arena, SIZE_MAX); /* bounded by the turn */
    pthread_mutex_init(&c->lock, NULL);  /* on Linux it cannot fail */
    return rv__cond_init(&c->wake) < 0 ? rv__nomem(err) : RV_OK;
}

void rv__commits_done(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    if (c->has_thread) {
        rv__commit_give_up(e);
        pthread_join(c->thread, NULL);
    }
    rv__arena_done(&c->arena);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
}

/* The thread is made when it is first wanted: an engine that is never under load never has it. */
static bool has_thread(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    if (!c->has_thread && e->kit == NULL)
        c->has_thread = pthread_create(&c->thread, NULL, commit_main, e) == 0;
    return c->has_thread;
}

bool rv__commit_failing(const rv_engine *e)
{
    return e->commit.away && atomic_load(&e->commit.failing);
}

void rv__commit_give_up(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

bool rv__commit_pays(rv_engine *e)
{
    size_t runs = 0;
    for (struct rv__run *run = e->dirty; run != NULL && runs < THREAD_FROM; run = run->next_dirty)
        runs++;
    if (runs < THREAD_FROM || e->functions_in_flight < THREAD_FROM || e->kit != NULL)
        return false;
    return has_thread(e);
}

struct rv__run *rv__take_dirty(rv_engine *e)
{
    struct rv__run *runs = e->dirty;
    e->dirty = NULL;
    e->last_dirty = &e->dirty;
    return runs;
}

static void hand_over(rv_engine *e, struct rv__store_write *writes, size_t count)
{
    struct rv__commits *c = &e->commit;
    c->runs = rv__take_dirty(e);
    for (struct rv__run *run = c->runs; run != NULL; run = run->next_dirty) {
        run->dirty = false;
        run->locked = true;
        rv__run_unqueue(run);
    }
    c->away = true;
    c->landed = false;
    pthread_mutex_lock(&c->lock);
    c->writes = writes;
    c->count = count;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

static void note_commit(rv_engine *e, size_t count)
{
    struct rv__store_stats stats;
    e->commits++;
    rv__store_stats(e->store, &stats);
    rv__metrics_commit(e, stats.last_commit_ns, count);
}

struct rv__run *rv__commit_landed(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    struct rv__run *runs = c->runs;
    assert(c->away && c->landed);
    c->away = c->landed = false;
    c->runs = NULL;
    note_commit(e, c->count);
    rv__arena_reset(&c->arena);
    for (struct rv__run *run = runs; run != NULL; run = run->next_dirty)
        run->locked = false;
    return runs;
}

enum rv__commit_outcome rv__commit(rv_engine *e)
{
    struct rv__commits *c = &e->commit;
    struct batch b = { .writes = NULL };
    assert(!c->away);
    if (e->dirty == NULL)
        return COMMIT_DONE;
    bool pays = rv__commit_pays(e);
    size_t count = gather(e, &b, &c->arena);
    if (pays && count > 0) {
        hand_over(e, b.writes, count);
        return COMMIT_AWAY;
    }
    bool refused = count > 0 && e->kit == NULL && write_once(e, b.writes, count) < 0;
    if (refused && has_thread(e)) {
        hand_over(e, b.writes, count);
        return COMMIT_AWAY;
    }
    bool alive = count == 0 || (e->kit == NULL && !refused) || write_all(e, b.writes, count);
    if (alive && count > 0)
        note_commit(e, count);
    rv__arena_reset(&c->arena);
    return alive ? COMMIT_DONE : COMMIT_DIED;
}

int rv_engine_health(rv_engine *e, rv_health *ret, rv_error *err)
{
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_engine_health: %s",
                        e == NULL ? "no engine given" : "nowhere to put it");
    pthread_mutex_lock(&e->commit.lock);
    *ret = e->commit.health;
    pthread_mutex_unlock(&e->commit.lock);
    return RV_OK;
}
