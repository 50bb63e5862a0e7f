/* loop.c: the turn: take what came, decide, make it durable, and only then act. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/context.h"
#include "engine/engine.h"
#include "engine/kit.h"
#include "base/bugs.h"

enum {
    TIMERS_A_TURN = 4096,       /* that fall due at once: the rest at the next turn */
    RETRY_COMMIT_MS = 100,      /* after a commit that failed: the disk may heal */
    SLEEP_AT_LEAST_MS = 500,    /* a run with a nearer timer stays in memory */
    SNAPSHOT_BYTES = 16 * 1024, /* of journal below which a replay is quicker than a snapshot */
};

int rv__engine_post(rv_engine *e, struct rv__letter *letter)
{
    return rv__queue_push(&e->inbox, &letter->node);
}

/* -------------------------------------------------------------------------------- taking --- */

static void take_letters(rv_engine *e)
{
    struct rv__queue_node *node = rv__queue_take(&e->inbox);
    while (node != NULL) {
        struct rv__queue_node *next = node->next;
        struct rv__letter *letter = (struct rv__letter *)node; /* its first member */
        if (letter->kind == LETTER_WORK)
            rv__work_done(e, RV__CONTAINER(letter, struct rv_ctx, letter));
        else
            rv__call_take(e, RV__CONTAINER(letter, struct rv__call, letter));
        node = next;
    }
}

static void fire(rv_engine *e, struct rv__timers *timers, int64_t now)
{
    struct rv__timer *timer;
    for (int i = 0; i < TIMERS_A_TURN && (timer = rv__timers_pop_due(timers, now)) != NULL; i++) {
        struct rv__owed *owed = RV__CONTAINER(timer, struct rv__owed, timer);
        struct rv__msg msg = { .kind = MSG_TIMER,
                               .actor = owed->actor,
                               .token = owed->token,
                               .chance = rv__random_double(&e->random) };
        if (rv__run_send(owed->run, &msg, NULL) < 0)
            (void)rv__timers_arm(timers, timer, now + 1); /* no memory: again, soon */
    }
}

static void take_timers(rv_engine *e)
{
    int64_t now_ms = rv__wall_ms(e->clock);
    fire(e, &e->timeouts, rv__mono_ms(e->clock));
    fire(e, &e->waits, now_ms);
    struct rv__timer *late;
    while (e->kit != NULL &&
           (late = rv__timers_pop_due(&e->kit->slow, rv__mono_ms(e->clock))) != NULL)
        rv__work_done(e, RV__CONTAINER(late, struct rv_ctx, answer));
    if (e->store_wake_ms == 0 || e->store_wake_ms > now_ms ||
        rv__mono_ms(e->clock) < e->wake_retry_ms)
        return;
    rv_error err;
    int rc = rv__wake_due(e, now_ms);
    fire(e, &e->waits, now_ms);
    if (rc == RV_OK)
        rc = rv__store_next_wake(e->store, INT64_MIN, &e->store_wake_ms, &err);
    if (rc < 0 || (e->store_wake_ms != 0 && e->store_wake_ms <= now_ms))
        e->wake_retry_ms = rv__mono_ms(e->clock) + (rc < 0 ? RETRY_COMMIT_MS : 0);
}

/* --------------------------------------------------------------------------------- commit --- */

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
    size_t last = run->snapshot_bytes > SNAPSHOT_BYTES ? run->snapshot_bytes : SNAPSHOT_BYTES;
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

/* Plans that this batch's new runs are the first to use. */
static void fill_definitions(rv_engine *e, struct batch *b, struct rv__arena *arena)
{
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (run->cell == NULL || run->plan->stored)
            continue;
        struct rv__buf json;
        struct rv__str copy;
        rv__buf_init(&json, RV__PLAN_MAX_BYTES);
        int rc = rv__plan_write(run->plan->plan, &json, NULL);
        if (rc == RV_OK)
            rc = rv__str_copy(arena, rv__buf_view(&json), &copy);
        rv__buf_done(&json);
        if (rc < 0)
            continue; /* no memory: the commit fails for want of it, and is tried again */
        b->definitions[b->definition_count++] = (struct rv__store_definition){
            .hash = rv__str(run->plan->plan->version), .json = copy
        };
        run->plan->stored = true;
    }
}

static bool write_all(rv_engine *e, struct rv__store_write *writes, size_t count)
{
    rv_error err;
    if (e->kit != NULL)
        rv__kit_roll(e);
    while (rv__store_commit(e->store, writes, count, &err) < 0) {
        if (e->kit != NULL && rv__kit_died(e))
            return false;
        if (RV__BUG(37))
            break;
        if (e->kit == NULL)                      /* there the disk heals when it says so */
            rv__clock_sleep_ms(RETRY_COMMIT_MS); /* nothing is dropped, or goes on meanwhile */
    }
    e->commits++;
    return true;
}

/* The facts of all runs of this turn, in one transaction. It is tried until it works: what was decided
 * stays decided, and nobody has seen it. False: the process died in it, as a kit arranged. */
static bool commit(rv_engine *e)
{
    size_t runs = 0, results = 0, logs = 0, count = 0;
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        runs++;
        results += run->facts.row_count;
        logs += run->log_count;
    }
    if (runs == 0)
        return true;

    struct rv__arena arena;
    struct batch b = { .writes = NULL };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the turn */
    for (;;) {                        /* memory, too, is waited for */
        b.writes = rv__arena_zalloc(&arena, runs, sizeof *b.writes);
        b.rows = rv__arena_zalloc(&arena, runs, sizeof *b.rows);
        b.touches = rv__arena_zalloc(&arena, runs, sizeof *b.touches);
        b.definitions = rv__arena_zalloc(&arena, runs, sizeof *b.definitions);
        b.results = rv__arena_zalloc(&arena, results + 1, sizeof *b.results);
        b.logs = rv__arena_zalloc(&arena, logs + 1, sizeof *b.logs);
        if (b.writes != NULL && b.rows != NULL && b.touches != NULL && b.definitions != NULL &&
            b.results != NULL && b.logs != NULL)
            break;
        rv__clock_sleep_ms(RETRY_COMMIT_MS);
    }
    fill_definitions(e, &b, &arena);
    results = logs = 0;
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (run->cell == NULL)
            continue;
        fill_write(run, &b, count, &results, &logs);
        if (has_something(&b.writes[count]))
            count++;
    }
    if (count > 0 && b.definition_count > 0) {
        b.writes[0].definitions = b.definitions;
        b.writes[0].definition_count = b.definition_count;
    }
    bool alive = count == 0 || write_all(e, b.writes, count);
    rv__arena_done(&arena);
    return alive;
}

/* ------------------------------------------------------------------------------ after it --- */

static void settle(struct rv__run *run)
{
    rv_engine *e = run->engine;
    if (run->snapshot.len > 0) {
        run->snapshot_bytes = run->snapshot.len;
        run->journal_bytes = 0;
    } else {
        run->journal_bytes += run->facts.json.len;
    }
    run->is_new = false;
    rv__facts_reset(&run->facts);
    rv__buf_reset(&run->logs);
    run->log_count = 0;
    rv__release_effects(run);
    rv__run_answer_calls(run);
    if (rv__run_terminal(rv__cell_status(run->cell)))
        rv__run_answer_waiters(run);
    rv__run_queue_wants(run);
    if (rv__cell_more(run->cell)) /* its pump was cut short: it is part of the next turn */
        rv__run_touch(run);

    /* Out of memory, if it has nothing to do for a while: its row says when it is wanted. */
    bool asleep = !run->row_active && rv__run_idle(run) && !run->dirty && run->facts.count == 0;
    int64_t wake_ms = run->row_wake_ms;
    if (!asleep || (wake_ms != 0 && wake_ms < e->now_ms + SLEEP_AT_LEAST_MS))
        return;
    if (wake_ms != 0 && (e->store_wake_ms == 0 || wake_ms < e->store_wake_ms))
        e->store_wake_ms = wake_ms;
    if (run->waiters != NULL) { /* waited for: the struct stays, the cell goes */
        if (!RV__BUG(33))
            rv__owed_clear_all(run);
        if (RV__BUG(35))
            run->waiters = NULL;
        rv__cell_free(run->cell);
        run->cell = NULL;
        return;
    }
    rv__run_drop(run);
}

static void after_commit(rv_engine *e)
{
    struct rv__run *run = e->dirty;
    e->dirty = NULL;
    e->last_dirty = &e->dirty;
    while (run != NULL) {
        struct rv__run *next = run->next_dirty;
        run->dirty = false; /* it may become so again, from here on */
        if (run->cell != NULL)
            settle(run);
        run = next;
    }
    rv__start_all(e);
    rv__calls_late(e);
}

/* Who waited for its workflow has waited long enough: on its first step it will say what is missing. */
static void stop_waiting_for_registration(rv_engine *e)
{
    if (e->register_until_ns == 0 || rv__mono_ns(e->clock) < e->register_until_ns)
        return;
    e->register_until_ns = 0;
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next)
            if (run->cell != NULL)
                rv__run_touch(run);
}

static void pump_dirty(rv_engine *e, int64_t now_ms)
{
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (run->cell == NULL)
            continue;
        (void)rv__flow_pump(run->cell, now_ms, &run->facts, NULL); /* more: below, or next turn */
        rv__run_queue_wants(run);
    }
}

static bool more_to_do(const rv_engine *e)
{
    for (const struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty)
        if (run->cell != NULL)
            return true;
    return false;
}

int64_t rv__engine_turn(rv_engine *e)
{
    int64_t now_ms = e->now_ms = rv__wall_ms(e->clock);
    take_letters(e);
    take_timers(e);
    stop_waiting_for_registration(e);
    if (e->look_for_missing)
        e->look_for_missing = !RV__BUG(42) && rv__resume_missing(e) < 0; /* no answer: again */
    rv__fetch_logs(e);
    pump_dirty(e, now_ms);
    rv__grant_all(e, now_ms);
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (RV__BUG(31) && run->cell != NULL)
            rv__release_effects(run);
        if (RV__BUG(34) && run->cell != NULL)
            rv__run_answer_calls(run);
    }
    if (!commit(e))
        return 0;
    after_commit(e);

    if (more_to_do(e))
        return 0;
    int64_t until_ns = RV__NEVER, mono_ns = rv__mono_ns(e->clock);
    int64_t wall_ms = rv__wall_ms(e->clock), next_ms = -1;
    struct rv__timer *wait = rv__timers_first(&e->waits), *timeout = rv__timers_first(&e->timeouts);
    if (wait != NULL)
        next_ms = wait->due > wall_ms ? wait->due - wall_ms : 0;
    if (e->store_wake_ms != 0) {
        int64_t in_ms = e->store_wake_ms > wall_ms ? e->store_wake_ms - wall_ms : 0;
        next_ms = next_ms < 0 || in_ms < next_ms ? in_ms : next_ms;
    }
    if (timeout != NULL) {
        int64_t in_ms = timeout->due - mono_ns / 1000000;
        in_ms = in_ms > 0 ? in_ms : 0;
        next_ms = next_ms < 0 || in_ms < next_ms ? in_ms : next_ms;
    }
    if (next_ms >= 0) /* at most a minute: a wall clock may jump while we wait by the other */
        until_ns = mono_ns + (next_ms < 60000 ? next_ms : 60000) * 1000000;
    if (e->register_until_ns != 0 && e->register_until_ns < until_ns)
        until_ns = e->register_until_ns;
    if (e->in_flight != NULL && e->log_tick_ms * 1000000 < until_ns)
        until_ns = e->log_tick_ms * 1000000;
    struct rv__timer *late = e->kit != NULL ? rv__timers_first(&e->kit->slow) : NULL;
    if (late != NULL && late->due * 1000000 < until_ns)
        until_ns = late->due * 1000000;
    if (e->closed && e->close_by_ns < until_ns)
        until_ns = e->close_by_ns;
    return until_ns;
}

void *rv__engine_main(void *arg)
{
    rv_engine *e = arg;
    int64_t until_ns = 0;
    for (;;) {
        if (until_ns != 0)
            (void)rv__queue_wait(&e->inbox, until_ns); /* time or a letter: looked at either way */
        until_ns = rv__engine_turn(e);
        if (!e->closed || until_ns == 0)
            continue;
        if (e->in_flight != NULL && rv__mono_ns(e->clock) >= e->close_by_ns) {
            rv__hand_back(e);
            while (rv__engine_turn(e) == 0)
                ;
            return NULL;
        }
        if (e->in_flight == NULL)
            return NULL;
    }
}
