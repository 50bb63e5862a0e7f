/* loop.c: the turn: take letters and due timers, decide, commit, and only then act.
 *
 *   letters ──┐                                                      ┌──▶ work begins
 *   landed  ──┼─▶ messages to runs ─▶ pump, grant ─▶ commit ─ ─ ─▶ act ──▶ timers, answers, feed
 *   due     ──┘        (deciding)                  (committing)  (acting)
 *
 * Due timers are handled in every turn. The timer of a run that is deciding or idle is in the next batch; that of a
 * run that is committing waits in its mail and is in the batch after that. So a due timer is taken within two
 * commits. next_due() alone says when the next thing is due.
 *
 * Under load the disk does not wait for the loop: the next batch waits at the desk when one lands, or leaves before
 * the effects of that one are performed. Before a batch leaves, its runs are pumped and free places are granted, so the
 * result of a step and the start of the next are one journal row. Starting work and waking callers comes last. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/engine.h"
#include "engine/member.h"
#include "engine/metrics.h"
#include "read/read.h"

enum {
    TIMERS_A_TURN = 4096,  /* due timers that one turn takes */
    RETRY_MEMORY_MS = 10,  /* until memory may be free again */
    FAILING_LOOK_MS = 100, /* while commits fail: answer readers from disk this often */
    /* The answer of a quick step comes within this time: the loop polls for it before it sleeps. To sleep and be woken
     * costs 20 to 30 us, twice for each step of a run that is alone. */
    WATCH_NS = 50000,
    SOON_NS = 2 * WATCH_NS, /* if a letter came so soon, the next one may, too */
};

int rv__engine_post(rv_engine *e, struct rv__letter *letter)
{
    return rv__queue_push(&e->inbox, &letter->node);
}

/* ---------------------------------------------------------------------------------- desks --- */

void rv__write_job(rv_engine *e, struct rv__job *job)
{
    struct rv__desk *desk = e->around.writer;
    job->letter.kind = LETTER_JOB;
    job->writes = true;
    e->writing++;
    if (desk->give(desk, job) == RV_OK)
        return;
    int64_t again_ms; /* without a disk thread the loop itself waits for the disk */
    while ((again_ms = desk->now(desk, job)) > 0)
        rv__clock_sleep_ms(again_ms);
    e->writing--;
    job->landed(e, job);
}

void rv__read_job(rv_engine *e, struct rv__job *job)
{
    struct rv__desk *desk = e->around.reader;
    job->letter.kind = LETTER_JOB;
    job->writes = false;
    if (desk->give(desk, job) == RV_OK)
        return;
    (void)desk->now(desk, job); /* a reading job is never run again */
    if (rv__engine_post(e, &job->letter) < 0)
        job->drop(job);
}

/* --------------------------------------------------------------------------------- taking --- */

void rv__engine_take_again(rv_engine *e, struct rv__letter *letter)
{
    rv__mail_put(&e->retry, letter);
    e->starved = true;
}

static void take_job(rv_engine *e, struct rv__job *job)
{
    e->writing -= job->writes;
    job->landed(e, job);
}

void rv__letter_take(rv_engine *e, struct rv__letter *letter)
{
    switch ((enum rv__letter_kind)letter->kind) {
    case LETTER_ANSWER:
        rv__attempt_answered(e, RV__CONTAINER(letter, struct rv__attempt, answer));
        break;
    case LETTER_BEGINS:
        rv__attempt_begins(e, RV__CONTAINER(letter, struct rv__attempt, begins));
        break;
    case LETTER_CALL: rv__call_take(e, RV__CONTAINER(letter, struct rv__call, letter)); break;
    case LETTER_TIMER: rv__owed_mailed(e, RV__CONTAINER(letter, struct rv__owed, letter)); break;
    case LETTER_JOB: take_job(e, (struct rv__job *)letter); break;
    case LETTER_WORKER: rv__workers_take(e, (struct rv__news *)letter); break;
    }
}

static void take_letters(rv_engine *e)
{
    struct rv__mail retry = { .first = e->retry.first, .last = &retry.first };
    struct rv__letter *letter;
    struct rv__queue_node *node = rv__queue_take(&e->inbox);
    uint64_t before = e->metrics->letters;
    e->retry = (struct rv__mail){ NULL, &e->retry.first };
    while ((letter = rv__mail_take(&retry)) != NULL)
        rv__letter_take(e, letter);
    while (node != NULL) {
        struct rv__queue_node *next = node->next;
        rv__letter_take(e, (struct rv__letter *)node);
        node = next;
        e->metrics->letters++;
    }
    e->metrics->letters_last = e->metrics->letters - before;
}

/* ------------------------------------------------------------------------------------ due --- */

static void fire(rv_engine *e, struct rv__timers *timers, int64_t now)
{
    struct rv__timer *timer;
    for (int i = 0; i < TIMERS_A_TURN && (timer = rv__timers_pop_due(timers, now)) != NULL; i++)
        rv__owed_due(e, RV__CONTAINER(timer, struct rv__owed, timer));
}

/* Something was registered: what waits for a function may find it now. */
static void touch_all(rv_engine *e)
{
    e->relane = false;
    if (e->run_count == 0) /* thousands of files may be registered before the first run */
        return;
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next)
            rv__run_touch(run);
}

static void take_due(rv_engine *e)
{
    rv__workers_tick(e);
    if (e->relane && !RV__BUG(42))
        touch_all(e);
    fire(e, &e->timeouts, rv__mono_ms(e->clock));
    fire(e, &e->waits,
         e->now_ms - (RV__BUG(47) ? 1000 : 0)); /* with the time that the facts will have */
    rv__member_tick(e);
    if (!e->member.fenced)
        rv__load_tick(e);
    rv__fetch_logs(e);
    rv__retain_tick(e);
    if (rv__commit_failing(e) && !e->commit.gone)
        rv__calls_from_disk(e);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t rv__engine_own_due(rv_engine *e)
{
    int64_t mono_ns = rv__mono_ns(e->clock), until_ns = RV__NEVER;
    if (e->starved)
        return mono_ns + RETRY_MEMORY_MS * INT64_C(1000000);
    if (rv__calls_may_return(e))
        return 0;
    if (e->commit.gone) /* the store is gone: calls are refused, nothing else happens */
        return e->closed ? e->close_by_ns : RV__NEVER;
    if (((e->deciding != NULL && e->commit.away == 0) || rv__may_grant(e)) && !e->member.fenced)
        return 0;
    const struct rv__timer *wait = rv__timers_first(&e->waits);
    const struct rv__timer *timeout = rv__timers_first(&e->timeouts);
    if (wait != NULL) {
        int64_t in_ms = wait->due - rv__wall_ms(e->clock);
        if (in_ms > RV__LONGEST_SLEEP_MS(e))
            in_ms = RV__LONGEST_SLEEP_MS(e);
        until_ns = in_ms > 0 ? mono_ns + in_ms * 1000000 : mono_ns;
    }
    if (timeout != NULL && timeout->due != RV__NOT_BEGUN_MS)
        until_ns = sooner(until_ns, timeout->due * 1000000);
    if (!e->member.fenced)
        until_ns = rv__limits_until_ns(e, rv__load_until_ns(e, until_ns));
    until_ns = rv__retain_until_ns(e, until_ns);
    until_ns = rv__guests_until_ns(e, until_ns);
    if (e->in_flight != NULL)
        until_ns = sooner(until_ns, e->log_tick_ms * 1000000);
    if (e->commit.away > 0)
        until_ns = sooner(until_ns, mono_ns + FAILING_LOOK_MS * INT64_C(1000000));
    if (e->closed)
        until_ns = sooner(until_ns, e->close_by_ns);
    if (e->tell_by_ns != 0)
        until_ns = sooner(until_ns, e->tell_by_ns);
    return until_ns > 0 ? until_ns : 1; /* 0 means "at once" */
}

/* When is the next thing due, if no letter comes? Monotonic ns; 0: at once. */
static int64_t next_due(rv_engine *e)
{
    int64_t until_ns = rv__engine_own_due(e);
    return until_ns == 0 ? 0 : rv__member_until_ns(e, until_ns);
}

/* ----------------------------------------------------------------------------------- turn --- */

static void pump(rv_engine *e, int64_t now_ms)
{
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in) {
        (void)rv__flow_pump(run->cell, now_ms, &run->facts,
                            NULL); /* if there is more to do, the next turn does it */
        rv__run_queue_wants(run);
    }
}

static void act_too_early(rv_engine *e)
{
    for (struct rv__run *run = e->deciding; run != NULL; run = run->next_in) {
        if (RV__BUG(31))
            rv__release_effects(run);
        if (RV__BUG(34))
            rv__run_answer_calls(run);
    }
}

void rv__engine_decide(rv_engine *e)
{
    pump(e, e->now_ms);
    rv__grant_all(e, e->now_ms);
    act_too_early(e);
    rv__commit(e);
}

int64_t rv__engine_turn(rv_engine *e)
{
    e->starved = false;
    e->now_ms = rv__wall_ms(e->clock);
    take_letters(e);
    take_due(e);
    rv__calls_return(e);
    if (!e->read_only && !e->commit.gone && !e->member.fenced) {
        rv__engine_decide(e);
        rv__start_all(e);
        rv__guests_tick(e); /* a guest may have waited for what was just committed */
    }
    rv__calls_wake(e);
    return next_due(e);
}

/* Cancel the work in flight: its outcome will not be recorded. */
void rv__engine_gone(rv_engine *e)
{
    rv_health health;
    e->commit.gone = true;
    (void)rv_engine_health(e, &health, NULL); /* cannot fail: there is an engine */
    rv__calls_refuse(e, &health.why);
    rv_cancel_fire(e->closing, RV_EGONE, health.why.message);
}

/* Is only one piece of work in flight? With more, the processors are needed for the work, not for polling. */
static bool waits_for_one(const rv_engine *e)
{
    return e->several_cpus && e->in_flight != NULL && e->in_flight->all_next == NULL &&
           e->writing == 0;
}

/* Wait until a letter comes, or until until_ns. If the last letter came soon, poll before sleeping. */
static void wait_for_letters(rv_engine *e, int64_t until_ns, bool *soon)
{
    int64_t from_ns = rv__mono_ns(e->clock);
    if (*soon && waits_for_one(e) && rv__queue_watch(&e->inbox, WATCH_NS))
        return;
    *soon = rv__queue_wait(&e->inbox, until_ns) && rv__mono_ns(e->clock) - from_ns < SOON_NS;
}

static void run_loop(rv_engine *e)
{
    int64_t until_ns = 0;
    bool handed_back = false, soon = false;
    for (;;) {
        if (until_ns != 0)
            wait_for_letters(
                e, until_ns,
                &soon); /* whether it was the time or a letter, the next turn looks at both */
        until_ns = rv__engine_turn(e);
        rv__engine_tell_close(e);
        bool late = e->closed && rv__mono_ns(e->clock) >= e->close_by_ns;
        if (e->closed && (e->commit.gone || e->member.fenced) && (late || e->in_flight == NULL) &&
            (e->commit.gone || e->writing == 0))
            return;
        if (late && rv__commit_failing(e)) /* continue as after a crash */
            return;
        if (!e->closed || e->deciding != NULL || e->writing > 0)
            continue;
        if (e->in_flight == NULL || handed_back)
            return;
        if (late) {
            rv__hand_back(e);
            handed_back = true;
            until_ns = 0;
        }
    }
}

void *rv__engine_main(void *arg)
{
    rv_engine *e = arg;
    run_loop(e);
    if (e->drains) { /* it is not closed, but nobody takes letters any more */
        rv__queue_close(&e->inbox);
        rv__calls_close(e);
    }
    rv_cancel_fire(e->over, RV_ECLOSED, "the engine has closed");
    return NULL;
}
