/* kit.c: engines for tests: virtual time, replaced steps, crashes on command (SPEC: testing kit). */
#include "engine/kit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/member.h"
#include "read/read.h"

#define START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z: any fixed time will do */

enum {
    HOSTS = 4,       /* credits of the executor of hosts */
    OFFICE_MS = 500, /* as often as member.c looks without being called */
};

/* --------------------------------------------------------------------------------- desks --- */

/* Choose at random how the next commit ends. */
static void roll(struct rv__kit *kit)
{
    if (kit->other != NULL) {
        kit->other->before_commit(kit->other);
        return;
    }
    if (kit->crash_one_in == 0 || rv__random_below(&kit->random, kit->crash_one_in) != 0)
        return;
    kit->fate = rv__random_below(&kit->random, 2) ? SIM_STORE_DIES_BEFORE : SIM_STORE_DIES_AFTER;
    kit->disk.fate = kit->fate;
}

static bool was_refused(const struct rv__batch *b, const struct rv__run *run)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->of[i] == run && b->writes[i].outcome == STORE_REFUSED)
            return true;
    return false;
}

/* The commit failed: check whether the simulated process died in it. If it died after the commit, its calls are
 * answered first, as by a process that died a moment later. If it died before, the calls are made again in the next
 * life. */
static void look_if_dead(rv_engine *e, const struct rv__job *job)
{
    struct rv__kit *kit = e->kit;
    enum rv__kit_death death = KIT_LIVES;
    if (kit->other != NULL)
        death = kit->other->failed(kit->other);
    else if (kit->disk.dead)
        death = kit->fate == SIM_STORE_DIES_AFTER ? KIT_DIED_AFTER : KIT_DIED_BEFORE;
    for (size_t i = 0; i < RV__BATCHES && death == KIT_DIED_AFTER; i++) {
        const struct rv__batch *b = &e->commit.batches[i];
        for (struct rv__run *run = &b->job == job ? b->runs : NULL; run != NULL; run = run->next_in)
            if (!was_refused(b, run))
                rv__run_answer_calls(run);
    }
    rv__calls_wake(e);
    kit->dead = death != KIT_LIVES;
}

static int64_t do_job(struct rv__hand_desk *desk, struct rv__job *job)
{
    if (desk->writes)
        roll(desk->engine->kit);
    int64_t again_ms = job->run(job);
    if (again_ms > 0 && desk->writes)
        look_if_dead(desk->engine, job);
    return again_ms;
}

static int desk_give(struct rv__desk *self, struct rv__job *job)
{
    struct rv__hand_desk *desk = (struct rv__hand_desk *)self;
    job->next = NULL;
    *desk->last = job;
    desk->last = &job->next;
    return RV_OK;
}

static int64_t desk_now(struct rv__desk *self, struct rv__job *job)
{
    return do_job((struct rv__hand_desk *)self, job);
}

static bool desk_pays(struct rv__desk *self, size_t runs, int64_t in_flight)
{
    struct rv__kit *kit = ((struct rv__hand_desk *)self)->engine->kit;
    (void)runs;
    (void)in_flight;
    return kit->beside_one_in > 0 && rv__random_below(&kit->random, kit->beside_one_in) == 0;
}

static void desk_drop_all(struct rv__hand_desk *desk)
{
    while (desk->first != NULL) {
        struct rv__job *job = desk->first;
        desk->first = job->next;
        job->drop(job);
    }
    desk->last = &desk->first;
}

static void desk_free(struct rv__desk *self)
{
    desk_drop_all((struct rv__hand_desk *)self); /* the desk itself belongs to the kit */
}

/* Run the first job at the desk. A job that must run again stays the first. */
static bool desk_run(struct rv__hand_desk *desk)
{
    struct rv__job *job = desk->first;
    if (job == NULL)
        return false;
    if (do_job(desk, job) > 0)
        return true;
    desk->first = job->next;
    if (desk->first == NULL)
        desk->last = &desk->first;
    if (rv__engine_post(desk->engine, &job->letter) < 0)
        job->drop(job);
    return true;
}

static void desk_init(struct rv__hand_desk *desk, rv_engine *e, bool writes)
{
    *desk = (struct rv__hand_desk){ .desk = { desk_give, desk_now, desk_pays, desk_free },
                                    .engine = e,
                                    .writes = writes,
                                    .last = &desk->first };
}

/* --------------------------------------------------------------------------------- executors --- */

/* The same on every machine. */
static int make_executor(rv_engine *e, const struct rv__executor *head, struct rv__executor **ret,
                         rv_error *err)
{
    struct rv__executor own = *head;
    if (own.lane == LANE_HOST)
        own.credits = HOSTS;
    else if (own.lane == LANE_HTTP)
        own.credits = RV__FETCH_CONNECTIONS;
    return rv__manual_executor(e->kit->hand, &own, ret, err);
}

/* Report that it has begun, before its answer. */
static void say_begins(struct rv__attempt *a)
{
    if (a->late_begins.at == 0)
        return;
    rv__timers_disarm(&a->ctx.engine->kit->unsaid, &a->late_begins);
    rv__attempt_post_begins(a);
}

static void begins(struct rv__attempt *a)
{
    struct rv__kit *kit = a->ctx.engine->kit;
    bool late = kit->unsaid_one_in > 0 && rv__random_below(&kit->random, kit->unsaid_one_in) == 0;
    int64_t now_ms = rv__mono_ms(a->ctx.engine->clock);
    if (!late || rv__timers_arm(&kit->unsaid, &a->late_begins,
                                now_ms + 1 + (int64_t)rv__random_below(&kit->random, 20)) < 0)
        rv__attempt_post_begins(a);
}

/* Deliver its answer at the time that the step says. */
static void answer(struct rv__attempt *a)
{
    struct rv__kit *kit = a->ctx.engine->kit;
    int64_t now_ms = rv__mono_ms(a->ctx.engine->clock);
    if (a->takes_ms > 0 &&
        rv__timers_arm(&kit->slow, &a->late_answer, now_ms + a->takes_ms) == RV_OK)
        return;
    say_begins(a);
    rv__attempt_post_answer(a);
}

static rv_step_fn instead(rv_engine *e, struct rv__str alias)
{
    for (struct rv__replaced *r = e->kit->replaced; r != NULL; r = r->next)
        if (rv__str_is(alias, r->alias))
            return r->fn;
    return NULL;
}

static int open_store(rv_engine *e, const rv_engine_opts *opts, rv_error *err)
{
    (void)opts; /* always the kit's disk */
    return rv__kit_open_store(e, err);
}

int rv__kit_around(rv_engine *e, rv_error *err)
{
    struct rv__kit *kit = e->kit;
    (void)err;
    desk_init(&kit->writer, e, true);
    desk_init(&kit->reader, e, false);
    e->around = (struct rv__around){ .clock = &kit->clock.clock,
                                     .open = open_store,
                                     .writer = &kit->writer.desk,
                                     .reader = &kit->reader.desk,
                                     .executor = make_executor,
                                     .answer = answer,
                                     .begins = begins,
                                     .instead = instead,
                                     .await = rv__kit_drive };
    return RV_OK;
}

/* ------------------------------------------------------------------------------- driving --- */

int rv__kit_open_store(rv_engine *e, rv_error *err)
{
    struct rv__kit *kit = e->kit;
    bool member = kit->other != NULL && kit->other->lease_ms > 0;
    rv__member_close(e);
    rv__store_close(e->step_reader);
    rv__store_close(e->loader);
    rv__store_close(e->reader);
    e->step_reader = e->loader = e->reader = NULL;
    if (kit->other != NULL) { /* a store in memory stays, and so do its followers */
        rv__reading_free(e->reading);
        e->reading = NULL;
    }
    e->store = &kit->disk.store;
    int rc = RV_OK;
    if (kit->other != NULL)
        rc = kit->other->open(kit->other, &e->store, err);
    else
        rv__sim_store_restart(&kit->disk);
    if (rc == RV_OK)
        rc = rv__store_reader(e->store, &e->reader, err);
    if (member)
        e->member.lease_ms = kit->other->lease_ms;
    if (rc == RV_OK)
        rc = member ? rv__member_open(e, err) : rv__store_reader(e->store, &e->loader, err);
    if (rc == RV_OK)
        rc = rv__store_reader(e->store, &e->step_reader, err);
    if (rc == RV_OK && e->reading == NULL)
        rc = rv__reading_new(e->store, &e->reading, err);
    return rc;
}

/* Letters to the loop are lost with the process, except for calls: their callers are not in that process. */
static void forget_letters(rv_engine *e)
{
    struct rv__queue_node *node = rv__queue_take(&e->inbox);
    while (node != NULL) {
        struct rv__letter *letter = (struct rv__letter *)node;
        node = node->next;
        if (letter->kind == LETTER_CALL)
            (void)!rv__engine_post(e, letter); /* it is open */
        else if (letter->kind == LETTER_ANSWER)
            rv__attempt_drop(RV__CONTAINER(letter, struct rv__attempt, answer));
        else if (letter->kind == LETTER_JOB)
            ((struct rv__job *)letter)->drop((struct rv__job *)letter);
    }
}

static void forget_all(rv_engine *e)
{
    struct rv__work *work;
    struct rv__timer *late;
    e->life++;
    forget_letters(e);
    desk_drop_all(&e->kit->writer);
    desk_drop_all(&e->kit->reader);
    while (rv__timers_pop_due(&e->kit->unsaid, INT64_MAX) != NULL)
        ; /* it is lost */
    while ((work = rv__manual_take(e->kit->hand)) != NULL)
        rv__attempt_drop((struct rv__attempt *)work);
    while ((late = rv__timers_pop_due(&e->kit->slow, INT64_MAX)) != NULL)
        rv__attempt_drop(RV__CONTAINER(late, struct rv__attempt, late_answer));
    rv__engine_forget_runs(e);
    rv__workers_forget(e);
}

static void reopen(rv_engine *e)
{
    rv_error err;
    e->kit->dead = false;
    forget_all(e);
    while (rv__kit_open_store(e, &err) < 0)
        ; /* fails only without memory: the disk of a kit always opens */
    rv__recover(e);
}

static void crash(rv_engine *e)
{
    e->kit->crashes++;
    reopen(e);
}

static void post_slow(rv_engine *e)
{
    struct rv__timer *late;
    int64_t now_ms = rv__mono_ms(e->clock);
    while ((late = rv__timers_pop_due(&e->kit->unsaid, now_ms)) != NULL)
        rv__attempt_post_begins(RV__CONTAINER(late, struct rv__attempt, late_begins));
    while ((late = rv__timers_pop_due(&e->kit->slow, now_ms)) != NULL) {
        struct rv__attempt *a = RV__CONTAINER(late, struct rv__attempt, late_answer);
        say_begins(a);
        rv__attempt_post_answer(a);
    }
}

static int64_t sooner_ns(int64_t until_ns, const struct rv__timers *timers)
{
    const struct rv__timer *late = rv__timers_first(timers);
    return late != NULL && late->due * 1000000 < until_ns ? late->due * 1000000 : until_ns;
}

/* Do what the thread does that answers other members. */
static void serve(rv_engine *e)
{
    struct rv__kit *kit = e->kit;
    if (!e->member.on || kit->serves || kit->dead || e->closed ||
        rv__mono_ms(e->clock) < kit->office_ms)
        return;
    kit->serves = true;
    kit->office_ms = rv__mono_ms(e->clock) + OFFICE_MS;
    (void)rv__member_serve(e); /* if the store does not answer, it is tried again */
    kit->serves = false;
}

static int64_t sooner_office_ns(const rv_engine *e, int64_t until_ns)
{
    int64_t at_ns = e->kit->office_ms * 1000000;
    return e->member.on && !e->kit->serves && at_ns < until_ns ? at_ns : until_ns;
}

/* Run a turn, which may end in a crash. Returns the monotonic ns at which something is due. */
static int64_t turn(rv_engine *e)
{
    post_slow(e);
    serve(e);
    int64_t until_ns = e->kit->dead ? 0 : rv__engine_turn(e);
    if (e->kit->dead) {
        crash(e);
        return 0;
    }
    if (until_ns == 0)
        return 0;
    return sooner_office_ns(e, sooner_ns(sooner_ns(until_ns, &e->kit->slow), &e->kit->unsaid));
}

int64_t rv__kit_own_due(rv_engine *e)
{
    return sooner_ns(sooner_ns(rv__engine_own_due(e), &e->kit->slow), &e->kit->unsaid);
}

static bool happens(struct rv__kit *kit, unsigned one_in)
{
    return one_in > 0 && rv__random_below(&kit->random, one_in) == 0;
}

/* Choose one of the pieces of work at random. */
static bool pick_work(rv_engine *e)
{
    static const rv_error died = { .code = RV_EFAILED, .message = "the host process died" };
    struct rv__kit *kit = e->kit;
    if (happens(kit, kit->lose_one_in) &&
        rv__manual_lose(e->lanes[LANE_HOST].executor, &kit->random, &died))
        return true;
    if (happens(kit, kit->begin_one_in) && rv__manual_begin(kit->hand, &kit->random))
        return true;
    return rv__manual_run(kit->hand, &kit->random);
}

/* Run it, and take its answer and its log as soon as those of a step on a thread. */
static bool run_work(rv_engine *e)
{
    if (!pick_work(e))
        return false;
    int64_t tick_ms = rv__mono_ms(e->clock) + RV__LOG_TICK_MS;
    if (e->log_tick_ms > tick_ms)
        e->log_tick_ms = tick_ms;
    return true;
}

/* Do one of the things that can happen without time passing, chosen at random. */
static bool run_something(rv_engine *e, bool steps)
{
    struct rv__kit *kit = e->kit;
    switch (rv__random_below(&kit->random, 3)) {
    case 0: return desk_run(&kit->writer) || desk_run(&kit->reader) || (steps && run_work(e));
    case 1: return desk_run(&kit->reader) || desk_run(&kit->writer) || (steps && run_work(e));
    default: return (steps && run_work(e)) || desk_run(&kit->writer) || desk_run(&kit->reader);
    }
}

/* Whether something can be done now. */
static bool can_act(const struct rv__kit *kit, bool steps)
{
    return kit->writer.first != NULL || kit->reader.first != NULL ||
           (steps && rv__manual_lies(kit->hand));
}

void rv__kit_drive(rv_engine *e, const bool *done, rv_cancel *by, int64_t until_ms)
{
    struct rv__kit *kit = e->kit;
    for (;;) {
        int64_t next_ns = turn(e);
        if ((done != NULL && *done) || (by != NULL && rv_cancel_fired(by)))
            return;
        if (next_ns == 0 || rv__queue_wait(&e->inbox, 0))
            continue;
        if (until_ms == INT64_MIN) {
            if (!run_something(e, false)) /* no memory, or the store refuses: again later */
                rv__virtual_clock_advance(&kit->clock, 1);
            continue;
        }
        int64_t now_ns = rv__mono_ns(e->clock);
        bool in_time = until_ms == INT64_MAX || now_ns < until_ms * 1000000;
        if (can_act(kit, true) && in_time && happens(kit, kit->late_one_in)) {
            rv__virtual_clock_advance(&kit->clock, 1 + (int64_t)rv__random_below(&kit->random, 20));
            continue;
        }
        if (run_something(e, true))
            continue;
        if (until_ms == INT64_MAX ? next_ns == RV__NEVER : !in_time)
            return;
        if (until_ms != INT64_MAX && next_ns > until_ms * 1000000)
            next_ns = until_ms * 1000000;
        int64_t ms = (next_ns - now_ns + 999999) / 1000000;
        rv__virtual_clock_advance(&kit->clock, ms > 0 ? ms : 1);
    }
}

bool rv__kit_once(rv_engine *e, bool steps, int64_t *ret_ns)
{
    bool did = run_something(e, steps), more;
    do {
        *ret_ns = turn(e);
        more = *ret_ns == 0 || rv__queue_wait(&e->inbox, 0);
        did |= more;
    } while (more);
    return did || can_act(e->kit, steps);
}

/* Run turns until everything decided is on disk and acted upon, or the process has died. */
static void settle(rv_engine *e)
{
    while (!e->kit->dead)
        if (rv__engine_turn(e) != 0 && !rv__queue_wait(&e->inbox, 0) &&
            !(e->kit->dead || desk_run(&e->kit->writer) || desk_run(&e->kit->reader)))
            return;
}

/* Close as rv__engine_main() does, and open as rv_engine_new() does. */
void rv__kit_restart(rv_engine *e, int64_t grace_ms)
{
    rv_cancel *closing = rv_cancel_new(NULL);
    if (closing == NULL)
        return; /* no memory: it can be tried again */
    e->grace_ms = grace_ms;
    rv__engine_begin_close(e);
    int64_t until_ms = rv__mono_ms(e->clock) + grace_ms;
    bool crashed = e->kit->dead;
    int64_t crashes = e->kit->crashes;
    while (e->in_flight != NULL && rv__mono_ms(e->clock) < until_ms && !crashed) {
        int64_t before_ms = rv__mono_ms(e->clock);
        rv__kit_drive(e, NULL, NULL, before_ms + 1);
        crashed = e->kit->crashes != crashes;
    }
    if (!crashed) {
        settle(e);
        if (!e->kit->dead && !e->member.fenced)
            rv__hand_back(e);
        settle(e);
    }
    if (!e->kit->dead)
        rv__member_part(e);
    e->kit->crashes += e->kit->dead;
    e->closed = false;
    rv_cancel *old = e->closing;
    e->closing = closing;
    reopen(e);
    rv_cancel_free(old);
}

void rv__kit_free(struct rv__kit *kit)
{
    if (kit == NULL)
        return;
    while (kit->replaced != NULL) {
        struct rv__replaced *next = kit->replaced->next;
        rv__free(kit->replaced);
        kit->replaced = next;
    }
    rv__manual_free(kit->hand);
    rv__timers_done(&kit->slow);
    rv__timers_done(&kit->unsaid);
    rv__expr_texts_free(kit->texts);
    rv__sim_store_done(&kit->disk);
    rv__free(kit);
}

/* -------------------------------------------------------------------------------- public --- */

int rv_test_engine_new(const rv_test_opts *opts, rv_engine **ret, rv_error *err)
{
    return rv__kit_open(opts, NULL, ret, err);
}

int rv__kit_open(const rv_test_opts *opts, struct rv__kit_disk *other, rv_engine **ret,
                 rv_error *err)
{
    rv_test_opts known = { .size = sizeof known };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    opts = &known;
    if (opts->size == 0 || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_test_engine_new: %s",
                        ret == NULL ? "nowhere to put the engine"
                                    : "options without a size: make them with RV_TEST_OPTS");
    struct rv__kit *kit = rv__zalloc(1, sizeof *kit);
    if (kit == NULL)
        return rv__nomem(err);
    rv__virtual_clock_init(&kit->clock, opts->start_ms ? opts->start_ms : START_MS);
    kit->clock.mono_ns = 1000000; /* not 0: a turn that returns 0 has more to do */
    rv__sim_store_init(&kit->disk);
    rv__random_init(&kit->random, opts->seed);
    rv__timers_init(&kit->slow);
    rv__timers_init(&kit->unsaid);
    kit->crash_one_in = opts->crash_one_in;
    int rc = rv__expr_texts_new(0, &kit->texts, err);
    if (rc == RV_OK)
        rc = rv__manual_new(&kit->hand, err);
    if (rc < 0) {
        rv__kit_free(kit);
        return rc;
    }
    kit->other = other;
    uint32_t max_crashes = opts->max_crashes ? opts->max_crashes : INT32_MAX;
    return rv__engine_make(RV_ENGINE_OPTS(.workers = opts->workers, .max_crashes = max_crashes),
                           kit, opts->seed, ret, err);
}

static int check_kit(const rv_engine *e, const char *who, rv_error *err)
{
    if (e != NULL && e->kit != NULL)
        return RV_OK;
    return rv__fail(err, RV_EINVAL, "%s: %s", who,
                    e == NULL ? "no engine given" : "the engine is not from rv_test_engine_new()");
}

int rv_test_advance(rv_engine *e, int64_t ms, rv_error *err)
{
    int rc = check_kit(e, "rv_test_advance", err);
    if (rc < 0)
        return rc;
    if (ms < 0)
        return rv__fail(err, RV_EINVAL, "rv_test_advance: time does not go back");
    rv__kit_drive(e, NULL, NULL, rv__mono_ms(e->clock) + ms);
    return RV_OK;
}

int64_t rv_test_now(rv_engine *e)
{
    return check_kit(e, "rv_test_now", NULL) == RV_OK ? rv__wall_ms(e->clock) : 0;
}

int rv_test_replace(rv_engine *e, const char *alias, rv_step_fn fn, rv_error *err)
{
    int rc = check_kit(e, "rv_test_replace", err);
    if (rc < 0)
        return rc;
    if (alias == NULL)
        return rv__fail(err, RV_EINVAL, "rv_test_replace: no alias given");
    for (struct rv__replaced *r = e->kit->replaced; r != NULL; r = r->next)
        if (strcmp(r->alias, alias) == 0) {
            r->fn = fn;
            return RV_OK;
        }
    size_t len = strlen(alias);
    struct rv__replaced *r = rv__zalloc(1, sizeof *r + len + 1);
    if (r == NULL)
        return rv__nomem(err);
    memcpy(r->alias, alias, len);
    r->fn = fn;
    r->next = e->kit->replaced;
    e->kit->replaced = r;
    return RV_OK;
}

int rv_test_crash(rv_engine *e, rv_error *err)
{
    int rc = check_kit(e, "rv_test_crash", err);
    if (rc == RV_OK)
        crash(e);
    return rc;
}

int64_t rv_test_crashes(rv_engine *e)
{
    return check_kit(e, "rv_test_crashes", NULL) == RV_OK ? e->kit->crashes : 0;
}

void rv_test_takes(rv_ctx *ctx, int64_t ms)
{
    if (ctx->engine != NULL && ctx->engine->kit != NULL)
        ((struct rv__attempt *)ctx)->takes_ms = ms;
}

void rv_test_opts_init(rv_test_opts *opts)
{
    *opts = (rv_test_opts){ .size = sizeof *opts };
}
