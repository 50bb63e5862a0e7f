/* loop.c: the turn: take what came, decide, make it durable, and only then act. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/context.h"
#include "engine/engine.h"
#include "engine/kit.h"
#include "engine/metrics.h"
#include "engine/reading.h"

enum {
    TIMERS_A_TURN = 4096,    /* that fall due at once: the rest at the next turn */
    RETRY_STORE_MS = 100,    /* after the store did not answer: it may heal */
    SLEEP_AT_LEAST_MS = 500, /* a run with a nearer timer stays in memory */
    RETRY_MEMORY_MS = 10,    /* somebody may give some back */
};

int rv__engine_post(rv_engine *e, struct rv__letter *letter)
{
    return rv__queue_push(&e->inbox, &letter->node);
}

/* -------------------------------------------------------------------------------- taking --- */

/* Letters to runs whose facts are on their way to disk wait, in order. */
static bool is_held(rv_engine *e, struct rv__letter *letter)
{
    if (!e->commit.away || letter->kind == LETTER_LANDED || letter->kind == LETTER_BEGUN)
        return false;
    return letter->kind == LETTER_WORK
               ? RV__CONTAINER(letter, struct rv_ctx, letter)->run->locked
               : rv__call_waits(e, RV__CONTAINER(letter, struct rv__call, letter));
}

static void hold(rv_engine *e, struct rv__letter *letter)
{
    letter->node.next = NULL;
    *e->last_held = &letter->node;
    e->last_held = &letter->node.next;
}

void rv__engine_take_again(rv_engine *e, struct rv__letter *letter)
{
    hold(e, letter);
    e->starved = true;
}

static void take(rv_engine *e, struct rv__letter *letter)
{
    if (is_held(e, letter)) {
        hold(e, letter);
        return;
    }
    switch (letter->kind) {
    case LETTER_WORK: rv__work_done(e, RV__CONTAINER(letter, struct rv_ctx, letter)); break;
    case LETTER_BEGUN: rv__work_begun(e, RV__CONTAINER(letter, struct rv_ctx, begun)); break;
    case LETTER_CALL: rv__call_take(e, RV__CONTAINER(letter, struct rv__call, letter)); break;
    case LETTER_LANDED: e->commit.landed = true; break;
    }
}

static void take_all(rv_engine *e, struct rv__queue_node *node)
{
    uint64_t before = e->metrics->letters;
    while (node != NULL) {
        struct rv__queue_node *next = node->next;
        take(e, (struct rv__letter *)node); /* its first member */
        node = next;
        e->metrics->letters++;
    }
    e->metrics->letters_last = e->metrics->letters - before;
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
        rc = rv__next_wake(e, &err);
    if (rc < 0 || (e->store_wake_ms != 0 && e->store_wake_ms <= now_ms))
        e->wake_retry_ms = rv__mono_ms(e->clock) + (rc < 0 ? RETRY_STORE_MS : 0);
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
    if (run->facts.count > 0 || run->log_count > 0)
        rv__feed_mark(e->reading, run->id);
    rv__metrics_facts(e, &run->facts);
    rv__facts_reset(&run->facts);
    rv__buf_reset(&run->logs);
    run->log_count = 0;
    rv__release_effects(run);
    if (run->starved)
        rv__owe_again(run);
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

/* What these runs decided is on disk: now it may be acted upon. */
static void settle_all(rv_engine *e, struct rv__run *run)
{
    while (run != NULL) {
        struct rv__run *next = run->next_dirty;
        run->dirty = false; /* it may become so again, from here on */
        if (run->touched) { /* while it was locked */
            run->touched = false;
            rv__run_touch(run);
        }
        if (run->cell != NULL)
            settle(run);
        run = next;
    }
    rv__feed_flush(e->reading);
    rv__start_all(e);
}

/* A batch has landed: the next one leaves at once, with all that was decided meanwhile, and only then is
 * acted upon what has landed, so that the disk does not wait for us. */
static void land(rv_engine *e)
{
    struct rv__run *landed = rv__commit_landed(e);
    if (rv__commit_pays(e))
        (void)rv__commit(e); /* it is away, or (no thread) done: the turn's own commit settles it */
    settle_all(e, landed);
}

/* The runs of a batch that has landed go on before the letters that were held for them. */
static void take_letters(rv_engine *e)
{
    take_all(e, rv__queue_take(&e->inbox));
    if (e->commit.landed)
        land(e);
    else if (e->commit.away)
        return;
    struct rv__queue_node *held = e->held;
    e->held = NULL;
    e->last_held = &e->held;
    take_all(e, held);
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

/* What may touch any run, or asks the store on the loop: not while a batch is on its way. */
static void look_around(rv_engine *e)
{
    take_timers(e);
    if (e->look_for_missing && !RV__BUG(42))
        rv__runs_relane(e);
    e->look_for_missing = false;
}

/* An engine that only reads: calls that look at a run load it, and it goes again, since another process
 * may be writing to it. */
static int64_t read_only_turn(rv_engine *e)
{
    e->now_ms = rv__wall_ms(e->clock);
    take_letters(e);
    rv__calls_late(e);
    struct rv__run *run = rv__take_dirty(e);
    while (run != NULL) {
        struct rv__run *next = run->next_dirty;
        rv__run_drop(run);
        run = next;
    }
    return e->closed ? e->close_by_ns : RV__NEVER;
}

int64_t rv__engine_turn(rv_engine *e)
{
    if (e->read_only)
        return read_only_turn(e);
    if (e->starved && e->kit == NULL)
        rv__clock_sleep_ms(RETRY_MEMORY_MS);
    e->starved = false;
    int64_t now_ms = e->now_ms = rv__wall_ms(e->clock);
    take_letters(e);
    if (!e->commit.away)
        look_around(e);
    rv__fetch_logs(e);
    pump_dirty(e, now_ms);
    rv__grant_all(e, now_ms);
    for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty) {
        if (RV__BUG(31) && run->cell != NULL)
            rv__release_effects(run);
        if (RV__BUG(34) && run->cell != NULL)
            rv__run_answer_calls(run);
    }
    if (!e->commit.away) {
        enum rv__commit_outcome outcome = rv__commit(e);
        if (outcome == COMMIT_DIED)
            return 0;
        if (outcome == COMMIT_DONE)
            settle_all(e, rv__take_dirty(e));
    }
    if (!e->commit.away)
        rv__retain_tick(e);
    rv__calls_late(e);

    if (e->commit.away) { /* until it lands, or something comes; or it fails: somebody waits */
        bool look = e->late != NULL || e->closed;
        return look ? rv__mono_ns(e->clock) + RETRY_STORE_MS * INT64_C(1000000) : RV__NEVER;
    }
    if (e->starved || more_to_do(e))
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
    if (e->in_flight != NULL && e->log_tick_ms * 1000000 < until_ns)
        until_ns = e->log_tick_ms * 1000000;
    struct rv__timer *late = e->kit != NULL ? rv__timers_first(&e->kit->slow) : NULL;
    if (late != NULL && late->due * 1000000 < until_ns)
        until_ns = late->due * 1000000;
    if (e->closed && e->close_by_ns < until_ns)
        until_ns = e->close_by_ns;
    if (e->tell_by_ns != 0 && e->tell_by_ns < until_ns)
        until_ns = e->tell_by_ns;
    return rv__retain_until_ns(e, until_ns);
}

void *rv__engine_main(void *arg)
{
    rv_engine *e = arg;
    int64_t until_ns = 0;
    bool handed_back = false;
    for (;;) {
        if (until_ns != 0)
            (void)rv__queue_wait(&e->inbox, until_ns); /* time or a letter: looked at either way */
        until_ns = rv__engine_turn(e);
        rv__engine_tell_close(e);
        bool late = e->closed && rv__mono_ns(e->clock) >= e->close_by_ns;
        if (late && rv__commit_failing(e)) { /* as after a crash, then */
            rv__commit_give_up(e);
            return NULL;
        }
        if (!e->closed || until_ns == 0 || e->commit.away)
            continue;
        if (e->in_flight == NULL || handed_back)
            return NULL;
        if (late) {
            rv__hand_back(e);
            handed_back = true;
            until_ns = 0;
        }
    }
}
