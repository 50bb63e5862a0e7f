/* kit.c: engines for tests: skipped time, replaced steps, deaths on command (SPEC: testing kit). */
#include "engine/kit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/call.h"
#include "engine/context.h"
#include "engine/reading.h"

#define START_MS \
    INT64_C(1767225600000) /* 2026-01-01T00:00:00Z: any time will do, as long as it stays */

/* ------------------------------------------------------------------------------- driving --- */

int rv__kit_open_store(rv_engine *e, rv_error *err)
{
    struct rv__kit *kit = e->kit;
    rv__store_close(e->step_reader);
    rv__store_close(e->reader);
    e->step_reader = e->reader = NULL;
    if (kit->other != NULL) { /* in memory the disk stays, and who follows it goes on */
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
    if (rc == RV_OK)
        rc = rv__store_reader(e->store, &e->step_reader, err);
    if (rc == RV_OK && e->reading == NULL)
        rc = rv__reading_new(e->store, &e->reading, err);
    return rc;
}

static void reopen(rv_engine *e)
{
    rv_error err;
    e->kit->dead = false;
    rv__engine_forget_runs(e);
    /* Only memory can be short: a kit's disk opens. */
    while (rv__kit_open_store(e, &err) < 0 || rv__recover(e, &err) < 0)
        rv__engine_forget_runs(e);
    e->register_until_ns = 0; /* the program is the same: all that it registers is registered */
}

static void crash(rv_engine *e)
{
    e->kit->crashes++;
    reopen(e);
}

/* A turn, and the death it may end in. Returns the monotonic ns at which something is due. */
static int64_t turn(rv_engine *e)
{
    int64_t until_ns = rv__engine_turn(e);
    if (e->kit->dead) {
        crash(e);
        return 0;
    }
    return until_ns;
}

void rv__kit_answer(rv_engine *e, const bool *done)
{
    while (!*done)
        (void)turn(e);
}

void rv__kit_drive(rv_engine *e, const bool *done, rv_cancel *by, int64_t until_ms)
{
    for (;;) {
        int64_t next_ns = turn(e);
        if ((done != NULL && *done) || (by != NULL && rv_cancel_fired(by)))
            return;
        if (next_ns == 0 || rv__queue_wait(&e->inbox, 0))
            continue;
        if (rv__hand_run(e->executor, &e->kit->random))
            continue;
        int64_t now_ns = rv__mono_ns(e->clock);
        if (until_ms == INT64_MAX ? next_ns == RV__NEVER : now_ns >= until_ms * 1000000)
            return;
        if (until_ms != INT64_MAX && next_ns > until_ms * 1000000)
            next_ns = until_ms * 1000000;
        int64_t ms = (next_ns - now_ns + 999999) / 1000000;
        rv__virtual_clock_advance(&e->kit->clock, ms > 0 ? ms : 1);
    }
}

/* As rv__engine_main() ends, and rv_engine_new() begins. */
void rv__kit_restart(rv_engine *e, int64_t grace_ms)
{
    rv_cancel *closing = rv_cancel_new(NULL);
    if (closing == NULL)
        return; /* no memory: another time */
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
        rv__hand_back(e);
        while (!e->kit->dead && rv__engine_turn(e) == 0)
            ;
    }
    e->kit->crashes += e->kit->dead;
    e->closed = false;
    rv_cancel *old = e->closing;
    e->closing = closing;
    reopen(e);
    rv_cancel_free(old);
}

void rv__kit_roll(rv_engine *e)
{
    struct rv__kit *kit = e->kit;
    if (kit->other != NULL) {
        kit->other->before_commit(kit->other);
        return;
    }
    if (kit->crash_one_in == 0 || rv__random_below(&kit->random, kit->crash_one_in) != 0)
        return;
    kit->fate = rv__random_below(&kit->random, 2) ? SIM_STORE_DIES_BEFORE : SIM_STORE_DIES_AFTER;
    kit->disk.fate = kit->fate;
}

/* Died after the commit: whoever asked for something in it is answered first, as by a process that
 * died a moment later. Died before it: they ask again, of the next life. */
bool rv__kit_died(rv_engine *e)
{
    struct rv__kit *kit = e->kit;
    enum rv__kit_death death = KIT_LIVES;
    if (kit->other != NULL)
        death = kit->other->failed(kit->other);
    else if (kit->disk.dead)
        death = kit->fate == SIM_STORE_DIES_AFTER ? KIT_DIED_AFTER : KIT_DIED_BEFORE;
    if (death == KIT_LIVES)
        return false;
    if (death == KIT_DIED_AFTER)
        for (struct rv__run *run = e->dirty; run != NULL; run = run->next_dirty)
            if (run->cell != NULL)
                rv__run_answer_calls(run);
    kit->dead = true;
    return true;
}

rv_step_fn rv__kit_instead(rv_engine *e, struct rv__str alias)
{
    for (struct rv__replaced *r = e->kit->replaced; r != NULL; r = r->next)
        if (rv__str_is(alias, r->alias))
            return r->fn;
    return NULL;
}

bool rv__kit_delays(struct rv_ctx *ctx)
{
    rv_engine *e = ctx->engine;
    if (ctx->takes_ms <= 0)
        return false;
    return rv__timers_arm(&e->kit->slow, &ctx->answer, rv__mono_ms(e->clock) + ctx->takes_ms) ==
           RV_OK;
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
    rv__timers_done(&kit->slow);
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
    kit->clock.mono_ns = 1000000; /* a turn that ends in 0 has more to do */
    rv__sim_store_init(&kit->disk);
    rv__random_init(&kit->random, opts->seed);
    rv__timers_init(&kit->slow);
    kit->crash_one_in = opts->crash_one_in;
    int rc = rv__expr_texts_new(0, &kit->texts, err);
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
        ctx->takes_ms = ms;
}

void rv_test_opts_init(rv_test_opts *opts)
{
    *opts = (rv_test_opts){ .size = sizeof *opts };
}
