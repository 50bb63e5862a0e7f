/* dispatch.c: places for work that waits, and the effects of facts that are on disk.
 *
 * Runs that want a place in a lane stand in a ring for it, and places go round: one to each, so that a
 * run with a hundred thousand items does not keep the others waiting. A place is a value: a grant gives it
 * to an actor, the effect carries it to the work, and whoever ends the work gives it back.
 *
 * Suspects (steps that were in flight in two deaths of this program) have one place more to wait for, of
 * which there is one: so one suspect is in flight at a time, beside any other work, and should the program
 * die again, it is known who did it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"
#include "engine/metrics.h"

enum { UNPAID_AT_ONCE = 64 }; /* on the stack, as there is no memory */

/* ------------------------------------------------------------------------------- wanting --- */

/* Who is known to kill is tried first: the sooner it is found out, the sooner the others are safe. */
static bool goes_first(const struct rv__run *run, int lane)
{
    return lane == LANE_SUSPECT && rv__cell_blamed(run->cell);
}

static void queue_add(rv_engine *e, struct rv__run *run, int lane)
{
    run->lane[lane].queued = true;
    run->lane[lane].since_ns = rv__mono_ns(e->clock);
    run->lane[lane].next = run->lane[lane].prev = NULL;
    struct rv__run **first = &e->want_first[lane], **last = &e->want_last[lane];
    if (*first == NULL) {
        *first = *last = run;
    } else if (goes_first(run, lane) || RV__BUG(48)) {
        run->lane[lane].next = *first;
        (*first)->lane[lane].prev = run;
        *first = run;
    } else {
        run->lane[lane].prev = *last;
        (*last)->lane[lane].next = run;
        *last = run;
    }
}

static void queue_remove(rv_engine *e, struct rv__run *run, int lane)
{
    struct rv__run *prev = run->lane[lane].prev, *next = run->lane[lane].next;
    if (prev != NULL)
        prev->lane[lane].next = next;
    else
        e->want_first[lane] = next;
    if (next != NULL)
        next->lane[lane].prev = prev;
    else
        e->want_last[lane] = prev;
    run->lane[lane].queued = false;
}

/* Something was registered since it was last asked who does its work. */
static void ask_lanes(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__cell_opts opts = rv__plan_ref_opts(e, run->plan);
    if (rv__cell_lanes(run->cell, opts.lane, opts.arg) == RV_OK)
        run->lanes_of = e->generation;
    else
        e->starved = true;
}

void rv__run_queue_wants(struct rv__run *run)
{
    if (run->cell != NULL && run->lanes_of != run->engine->generation)
        ask_lanes(run);
    for (int lane = LANE_NONE + 1; lane < LANES; lane++) {
        bool wants = lane != LANE_NOBODY && run->cell != NULL &&
                     rv__cell_wants(run->cell, (enum rv__lane)lane);
        if (wants && !run->lane[lane].queued)
            queue_add(run->engine, run, lane);
        else if (!wants && run->lane[lane].queued)
            queue_remove(run->engine, run, lane);
    }
}

void rv__run_unqueue(struct rv__run *run)
{
    for (int lane = LANE_NONE + 1; lane < LANES; lane++)
        if (run->lane[lane].queued && !RV__BUG(44))
            queue_remove(run->engine, run, lane);
}

/* May a place in this lane be given now? */
static bool has_place(const rv_engine *e, int lane)
{
    if (lane == LANE_SUSPECT)
        return (e->free_places[LANE_SUSPECT] > 0 || RV__BUG(41)) &&
               e->free_places[LANE_FUNCTION] > 0;
    return e->free_places[lane] > 0 || RV__BUG(39);
}

static void take_place(rv_engine *e, int lane)
{
    e->free_places[lane]--;
    if (lane == LANE_SUSPECT)
        e->free_places[LANE_FUNCTION]--;
}

static void give_place(rv_engine *e, int lane)
{
    if (lane == LANE_NONE)
        return;
    e->free_places[lane]++;
    if (lane == LANE_SUSPECT)
        e->free_places[LANE_FUNCTION]++;
}

int64_t rv__places_taken(const rv_engine *e)
{
    return e->places[LANE_FUNCTION] - e->free_places[LANE_FUNCTION];
}

bool rv__may_grant(const rv_engine *e)
{
    for (int lane = LANE_NONE + 1; lane < LANES && !e->closed && !e->idle; lane++)
        if (e->want_first[lane] != NULL && has_place(e, lane))
            return true;
    return false;
}

void rv__grant_all(rv_engine *e, int64_t now_ms)
{
    if (e->closed || e->idle)
        return;
    for (int lane = LANES - 1; lane > LANE_NONE; lane--) {
        while (e->want_first[lane] != NULL && has_place(e, lane)) {
            struct rv__run *run = e->want_first[lane];
            int rc = rv__flow_grant(run->cell, (enum rv__lane)lane, now_ms, &run->facts, NULL);
            rv__run_touch(run);
            if (rc < 0) { /* no memory: at the next turn */
                e->starved = true;
                return;
            }
            if (rc == 1) {
                take_place(e, lane);
                run->waited_ns = rv__mono_ns(e->clock) - run->lane[lane].since_ns;
            }
            (void)rv__flow_pump(run->cell, now_ms, &run->facts, NULL); /* the rest: next turn */
            queue_remove(e, run, lane);
            rv__run_queue_wants(run); /* to the end of the ring, if it wants more */
            if (rc == 0 && run->lane[lane].queued)
                break; /* it wanted, and did not take: not twice in one turn */
        }
    }
}

/* ---------------------------------------------------------------------------------- owed --- */

static struct rv__owed **owed_bucket(rv_engine *e, const struct rv__run *run, uint64_t actor)
{
    uint64_t h = ((uint64_t)(uintptr_t)run >> 4) * UINT64_C(0x9E3779B97F4A7C15) + actor;
    h *= UINT64_C(0xff51afd7ed558ccd);
    return &e->owed[(h >> 32) & (e->owed_size - 1)];
}

static bool owed_grow(rv_engine *e)
{
    size_t old_size = e->owed_size, size = old_size ? old_size * 2 : OWED_BUCKETS_FIRST;
    struct rv__owed **old = e->owed, **table = rv__zalloc(size, sizeof *table);
    if (table == NULL)
        return false;
    e->owed = table;
    e->owed_size = size;
    for (size_t i = 0; i < old_size; i++)
        while (old[i] != NULL) {
            struct rv__owed *owed = old[i];
            old[i] = owed->next;
            struct rv__owed **at = owed_bucket(e, owed->run, owed->actor);
            owed->next = *at;
            *at = owed;
        }
    rv__free(old);
    return true;
}

static struct rv__owed **owed_find(rv_engine *e, const struct rv__run *run, uint64_t actor)
{
    struct rv__owed **at = owed_bucket(e, run, actor);
    while (*at != NULL && ((*at)->run != run || (*at)->actor != actor))
        at = &(*at)->next;
    return at;
}

static void disarm(rv_engine *e, struct rv__owed *owed)
{
    rv__timers_disarm(owed->is_timeout ? &e->timeouts : &e->waits, &owed->timer);
}

/* A new one, in its bucket and in its run's list. NULL: no memory. */
static struct rv__owed *owed_new(struct rv__run *run, const struct rv__effect *effect)
{
    rv_engine *e = run->engine;
    struct rv__owed *owed = rv__zalloc(1, sizeof *owed);
    if (owed == NULL)
        return NULL;
    struct rv__owed **at = owed_find(e, run, effect->actor);
    *owed = (struct rv__owed){ .run = run,
                               .actor = effect->actor,
                               .token = effect->token,
                               .next = *at,
                               .run_next = run->owed,
                               .link = &run->owed };
    *at = owed;
    if (run->owed != NULL)
        run->owed->link = &owed->run_next;
    run->owed = owed;
    e->owed_count++;
    return owed;
}

static void owed_free(rv_engine *e, struct rv__owed **at)
{
    struct rv__owed *owed = *at;
    *at = owed->next;
    *owed->link = owed->run_next;
    if (owed->run_next != NULL)
        owed->run_next->link = owed->link;
    e->owed_count--;
    owed->cleared = true;
    if (!owed->mailed) /* else it goes when its letter is taken */
        rv__free(owed);
}

static void clear(rv_engine *e, struct rv__owed **at, bool tell)
{
    struct rv__owed *owed = *at;
    disarm(e, owed);
    if (owed->work != NULL && tell &&
        !RV__BUG(45)) /* still running: told to stop; its answer will be stale */
        rv_cancel_fire(owed->work->token, RV_ECANCELED, "no longer wanted");
    owed_free(e, at);
}

void rv__owed_clear(struct rv__run *run, uint64_t actor)
{
    rv_engine *e = run->engine;
    struct rv__owed **at = e->owed_size > 0 ? owed_find(e, run, actor) : NULL;
    if (at != NULL && *at != NULL)
        clear(e, at, true);
}

void rv__owed_clear_all(struct rv__run *run, bool tell)
{
    while (run->owed != NULL)
        clear(run->engine, owed_find(run->engine, run, run->owed->actor), tell);
}

/* Its time has come: it is told to the run, or waits in its mail. */
void rv__owed_due(rv_engine *e, struct rv__owed *owed)
{
    struct rv__run *run = owed->run;
    if (!rv__run_takes(run, false)) {
        if (RV__BUG(56))
            return;
        owed->mailed = true;
        owed->letter.kind = LETTER_TIMER;
        rv__mail_put(&run->mail, &owed->letter);
        return;
    }
    struct rv__msg msg = { .kind = MSG_TIMER,
                           .actor = owed->actor,
                           .token = owed->token,
                           .chance = rv__random_double(&e->random) };
    if (rv__run_send(run, &msg, NULL) == RV_OK)
        return;
    struct rv__timers *timers = owed->is_timeout ? &e->timeouts : &e->waits;
    if (rv__timers_arm(timers, &owed->timer, owed->timer.due) < 0) /* it had its room there */
        run->owes_again = true;
    e->starved = true;
}

void rv__owed_unmail(struct rv__owed *owed)
{
    owed->mailed = false;
    if (owed->cleared)
        rv__free(owed);
}

void rv__owed_mailed(rv_engine *e, struct rv__owed *owed)
{
    bool cleared = owed->cleared;
    rv__owed_unmail(owed);
    if (!cleared)
        rv__owed_due(e, owed);
}

/* ---------------------------------------------------------------------------------- work --- */

void rv__work_post(struct rv_ctx *ctx)
{
    ctx->letter.kind = LETTER_WORK;
    ctx->engine->around.answer(ctx);
}

void rv__work_answer(struct rv_ctx *ctx)
{
    /* Closed: it was handed back meanwhile, and is dropped with its run. */
    (void)!rv__engine_post(ctx->engine, &ctx->letter);
}

void rv__work_tell_begun(struct rv_ctx *ctx)
{
    ctx->begun.kind = LETTER_BEGUN;
    (void)!rv__engine_post(ctx->engine, &ctx->begun); /* closed: nobody counts its time */
}

static void work_finished(struct rv__work *work, const rv_error *err) /* Thread: the step's */
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    if (err != NULL)
        rv__ctx_failed(ctx, err);
    rv__work_finish(ctx);
}

static struct rv_ctx *work_new(struct rv__run *run, const struct rv__effect *effect, rv_step_fn fn)
{
    rv_engine *e = run->engine;
    struct rv_ctx *ctx = rv__zalloc(1, sizeof *ctx);
    if (ctx == NULL)
        return NULL;
    ctx->token = rv_cancel_new(e->closing);
    if (ctx->token == NULL) {
        rv__free(ctx);
        return NULL;
    }
    int rc = rv__cell_view(run->cell, effect->actor, effect->token, &ctx->view);
    assert(rc == RV_OK); /* it is owed: the cell has just said so */
    (void)rc;
    ctx->source = &rv__engine_source;
    ctx->attempt = ctx->view.attempt > 0 ? ctx->view.attempt : 1;
    ctx->loop_index = ctx->view.loop_index;
    ctx->of_step = ctx->view.node != NULL && ctx->view.node->handler_of != NULL;
    ctx->work.run = rv__ctx_run;
    ctx->work.done = work_finished;
    ctx->shop = &e->shop;
    ctx->engine = e;
    ctx->run = run;
    ctx->run_id = run->id;
    ctx->pieces = &run->pieces;
    ctx->plan = run->plan->plan;
    ctx->exprs = &run->plan->exprs;
    rv__run_ref(run);
    ctx->fn = fn;
    ctx->eval = effect->eval;
    ctx->outcome = MSG_DONE;
    ctx->life = e->life;
    rv__arena_init(&ctx->arena, SIZE_MAX); /* bounded by the results that a step asks for */
    rv__buf_init(&ctx->state_members, RV__STATE_MAX_BYTES);
    ctx->next = run->work;
    ctx->link = &run->work;
    if (run->work != NULL)
        run->work->link = &ctx->next;
    run->work = ctx;
    ctx->all_next = e->in_flight;
    ctx->all_link = &e->in_flight;
    if (e->in_flight != NULL)
        e->in_flight->all_link = &ctx->all_next;
    e->in_flight = ctx;
    return ctx;
}

void rv__work_drop(struct rv_ctx *ctx)
{
    struct rv__run *run = ctx->run;
    *ctx->all_link = ctx->all_next;
    if (ctx->all_next != NULL)
        ctx->all_next->all_link = ctx->all_link;
    *ctx->link = ctx->next;
    if (ctx->next != NULL)
        ctx->next->link = ctx->link;
    rv__ctx_done(ctx);
    rv__free(ctx);
    rv__run_unref(run);
}

/* A function of this program: it shares its process. */
bool rv__effect_in_process(const struct rv__effect *effect)
{
    const struct rv__node *node = effect->node;
    if (node == NULL || effect->hosted)
        return false;
    if (effect->eval >= 0)
        return rv__plan_ref_fn_name(node, effect->eval).len > 0;
    return node->step.kind == STEP_FUNCTION || node->step.kind == STEP_CALL;
}

/* Something that it is owed could not be begun or armed, for want of memory: its state still says so,
 * and it is looked for there in the next turn. */
static void starve(struct rv__run *run)
{
    run->owes_again = true;
    run->engine->starved = true;
    rv__run_touch(run);
}

/* It cannot begin: told to the run as a message, and it waits for a place again. */
static void cannot_begin(struct rv__run *run, uint64_t actor, uint64_t token, enum rv__lane place)
{
    struct rv__msg msg = { .kind = MSG_LOST, .actor = actor, .token = token };
    give_place(run->engine, place);
    if (rv__run_send(run, &msg, NULL) < 0)
        starve(run);
}

/* Room for one more among those to be begun this turn. */
static bool has_room(rv_engine *e)
{
    if (e->starting_count < e->starting_cap)
        return true;
    size_t cap = e->starting_cap ? e->starting_cap * 2 : 64;
    struct rv_ctx **starting = rv__realloc(e->starting, cap * sizeof *starting);
    if (starting == NULL)
        return false;
    e->starting = starting;
    e->starting_cap = cap;
    return true;
}

static bool arm_timeout(rv_engine *e, struct rv__owed *owed, int64_t timeout_ms)
{
    if (timeout_ms <= 0)
        return true;
    owed->is_timeout = true;
    return rv__timers_arm(&e->timeouts, &owed->timer, rv__mono_ms(e->clock) + timeout_ms) == RV_OK;
}

static void start_work(struct rv__run *run, const struct rv__effect *effect)
{
    rv_engine *e = run->engine;
    bool builtin = rv__builtin(&run->plan->exprs, effect);
    const struct rv__function *function = builtin ? NULL
                                                  : rv__plan_ref_fn(run->plan, effect->node,
                                                                    effect->eval);
    rv_step_fn fn = function != NULL ? function->fn : NULL;
    const char *module = function != NULL ? function->module : NULL;
    rv_step_fn instead = e->around.instead != NULL && effect->eval < 0
                             ? e->around.instead(e, effect->node->alias)
                             : NULL;
    if (instead != NULL) {
        fn = instead;
        builtin = false;
        module = NULL;
    }
    bool known = fn != NULL || module != NULL || builtin;
    struct rv_ctx *ctx = known && has_room(e) ? work_new(run, effect, fn) : NULL;
    struct rv__owed *owed = ctx != NULL ? owed_new(run, effect) : NULL;
    if (owed != NULL && module == NULL && !arm_timeout(e, owed, effect->timeout_ms)) {
        rv__owed_clear(run, effect->actor);
        owed = NULL;
    }
    if (owed == NULL) { /* no memory; or nobody offers its function any more */
        if (ctx != NULL)
            rv__work_drop(ctx);
        e->starved |= known;
        cannot_begin(run, effect->actor, effect->token, effect->place);
        return;
    }
    ctx->place = effect->place;
    ctx->begun_ns = rv__mono_ns(e->clock);
    ctx->queued_ns = run->waited_ns;
    owed->work = ctx;
    ctx->timeout_ms = effect->timeout_ms;
    if (module != NULL) {
        ctx->function = function->name;
        ctx->module = module;
        ctx->work.run = rv__hosted_run;
    }
    e->starting[e->starting_count++] = ctx; /* room was made above */
}

void rv__work_begun(rv_engine *e, struct rv_ctx *ctx)
{
    struct rv__owed **at = owed_find(e, ctx->run, ctx->view.actor);
    if (*at == NULL || (*at)->work != ctx || ctx->timeout_ms <= 0 || ctx->life != e->life)
        return;
    (void)arm_timeout(e, *at, ctx->timeout_ms); /* no memory: this attempt goes without it */
}

/* Its run is committing again: what it is owed and nobody does is found when that is over. */
static void abandon(struct rv__run *run, enum rv__lane place)
{
    give_place(run->engine, place);
    run->owes_again = true;
    rv__run_touch(run);
}

/* It could not be begun after all. */
static void take_back(rv_engine *e, struct rv_ctx *ctx)
{
    struct rv__run *run = ctx->run;
    uint64_t actor = ctx->view.actor, token = ctx->view.token;
    enum rv__lane place = ctx->place;
    struct rv__owed **at = owed_find(e, run, actor);
    if (*at != NULL && (*at)->work == ctx) {
        (*at)->work = NULL;
        rv__owed_clear(run, actor);
    }
    rv__work_drop(ctx);
    if (run->phase == RV__IDLE || run->phase == RV__DECIDING)
        cannot_begin(run, actor, token, place);
    else
        abandon(run, place); /* looked for again when it is acted for */
}

static void begin_builtins(rv_engine *e);

void rv__start_all(rv_engine *e)
{
    begin_builtins(e);
    size_t count = e->starting_count;
    e->starting_count = 0;
    if (count == 0)
        return;
    /* A rv_ctx begins with its rv__work: the array serves as one of those. */
    size_t begun = e->executor->start(e->executor, (struct rv__work *const *)(void *)e->starting,
                                      count);
    for (size_t i = begun; i < count; i++)
        take_back(e, e->starting[i]);
}

/* Not while effects are released: with a kit it may be answered on the spot. */
static void begin_builtins(rv_engine *e)
{
    size_t functions = 0;
    for (size_t i = 0; i < e->starting_count; i++) {
        if (e->starting[i]->fn != NULL || e->starting[i]->module != NULL)
            e->starting[functions++] = e->starting[i];
        else
            rv__builtin_begin(e->starting[i]);
    }
    e->starting_count = functions;
}

/* A wait: its timer. */
void rv__owe(struct rv__run *run, const struct rv__effect *effect)
{
    rv_engine *e = run->engine;
    if (e->owed_count >= e->owed_size)
        (void)owed_grow(e); /* longer chains, if it cannot */
    rv__owed_clear(run, effect->actor);
    struct rv__owed *owed = owed_new(run, effect);
    if (owed != NULL && rv__timers_arm(&e->waits, &owed->timer, effect->due_ms) == RV_OK)
        return;
    rv__owed_clear(run, effect->actor);
    starve(run);
}

struct unpaid {
    struct rv__run *run;
    struct rv__effect effects[UNPAID_AT_ONCE];
    size_t count;
};

static void note_unpaid(void *arg, const struct rv__effect *effect)
{
    struct unpaid *unpaid = arg;
    const struct rv__owed *owed = *owed_find(unpaid->run->engine, unpaid->run, effect->actor);
    if (unpaid->count < UNPAID_AT_ONCE && (owed == NULL || owed->token != effect->token))
        unpaid->effects[unpaid->count++] = *effect;
}

/* All effects were released: what the state says is owed, and is not, was lost for want of memory. */
void rv__owe_again(struct rv__run *run)
{
    struct unpaid unpaid = { .run = run };
    run->owes_again = false;
    rv__cell_outstanding(run->cell, note_unpaid, &unpaid);
    for (size_t i = 0; i < unpaid.count; i++) {
        const struct rv__effect *effect = &unpaid.effects[i];
        struct rv__msg msg = { .kind = MSG_LOST, .actor = effect->actor, .token = effect->token };
        if (effect->kind == EFFECT_WAIT)
            rv__owe(run, effect);
        else if (rv__run_send(run, &msg, NULL) < 0)
            starve(run);
    }
    if (unpaid.count == UNPAID_AT_ONCE)
        starve(run); /* there may be more */
}

/* After the commit: what the facts of this turn ask for. */
void rv__release_effects(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__effect effect;
    while (rv__cell_effect(run->cell, &effect)) {
        if (e->owed_count >= e->owed_size)
            (void)owed_grow(e); /* longer chains, if it cannot */
        rv__owed_clear(run, effect.actor);
        bool begins = effect.kind == EFFECT_START && !(RV__BUG(49) && e->commit.beside % 2 == 1);
        if (begins)
            start_work(run, &effect);
        else if (!RV__BUG(46))
            give_place(e, effect.place); /* it was ended in the turn that gave it one */
        if (effect.kind == EFFECT_WAIT)
            rv__owe(run, &effect);
    }
}

void rv__effects_drop(struct rv__run *run)
{
    struct rv__effect effect;
    while (run->cell != NULL && rv__cell_effect(run->cell, &effect))
        give_place(run->engine, effect.place);
}

static int state_of(struct rv_ctx *ctx, struct rv__blob **ret)
{
    struct rv__buf json;
    *ret = NULL;
    if (ctx->state_members.len == 0)
        return RV_OK;
    rv__buf_init(&json, RV__STATE_MAX_BYTES + 2);
    rv__buf_char(&json, '{');
    rv__buf_str(&json, rv__buf_view(&ctx->state_members));
    rv__buf_char(&json, '}');
    if (rv__buf_err(&json, NULL) == RV_OK)
        *ret = rv__blob_new(rv__buf_view(&json));
    rv__buf_done(&json);
    return *ret != NULL ? RV_OK : RV_ENOMEM;
}

static int keep_logs(struct rv__run *run, struct rv_ctx *ctx, bool ended);

/* RV_ENOMEM: the run has not taken it. */
static int answer(rv_engine *e, struct rv_ctx *ctx)
{
    struct rv__run *run = ctx->run;
    struct rv__blob *state = NULL;
    int rc = state_of(ctx, &state);
    if (rc == RV_OK)
        rc = RV__BUG(43) ? RV_OK : keep_logs(run, ctx, true);
    if (rc < 0) {
        rv__blob_unref(state);
        return rc;
    }
    struct rv__msg msg = { .kind = ctx->outcome,
                           .actor = ctx->view.actor,
                           .token = ctx->view.token,
                           .result = ctx->result,
                           .state = state,
                           .error = ctx->error,
                           .name = ctx->handle,
                           .due_ms = ctx->due_ms,
                           .skipped = ctx->skipped,
                           .behavior = ctx->behavior,
                           .max_attempts = ctx->max_attempts,
                           .backoff = ctx->backoff,
                           .wait_ms = ctx->wait_ms,
                           .chance = rv__random_double(&e->random) };
    msg.blame = msg.crash = ctx->outcome == MSG_LOST; /* its host died, and it was alone in it */
    if (ctx->given_up || (e->closed && rv_cancel_fired(ctx->token) &&
                          (ctx->outcome == MSG_FAILED || ctx->outcome == MSG_LOST)))
        msg = (struct rv__msg){
            .kind = MSG_LOST, .actor = msg.actor, .token = msg.token, .state = msg.state
        }; /* it stopped because we close */
    rc = rv__run_send(run, &msg, NULL);
    rv__blob_unref(state);
    return rc;
}

/* A step's thread is done with it: its place is free, and its answer goes to the run, if that still asks. */
void rv__work_done(rv_engine *e, struct rv_ctx *ctx)
{
    struct rv__run *run = ctx->run;
    if (ctx->life != e->life) { /* begun by a process that has died since */
        rv__work_drop(ctx);
        return;
    }
    give_place(e, ctx->place);
    if (!RV__BUG(57))
        ctx->place = LANE_NONE;
    if (run->phase != RV__ABSENT && !rv__run_takes(run, false)) {
        rv__mail_put(&run->mail, &ctx->letter);
        return;
    }
    if (run->cell != NULL && answer(e, ctx) == RV_ENOMEM) {
        rv__engine_take_again(e, &ctx->letter);
        return;
    }
    struct rv__owed **at = owed_find(e, run, ctx->view.actor);
    rv__metrics_attempt(e, ctx);
    if (*at != NULL && (*at)->work == ctx)
        (*at)->work = NULL; /* nobody to be told to stop any more */
    rv__work_drop(ctx);
    if (e->early != NULL)
        rv__calls_early(e, run);
}

/* The engine closes, and these have not ended: the next engine attempts them again. Nobody died, so
 * nobody is to blame. */
void rv__hand_back(rv_engine *e)
{
    for (struct rv_ctx *ctx = e->in_flight; ctx != NULL; ctx = ctx->all_next) {
        struct rv__msg msg = { .kind = MSG_LOST,
                               .actor = ctx->view.actor,
                               .token = ctx->view.token };
        if (!rv__run_takes(ctx->run, false))
            continue;
        (void)keep_logs(ctx->run, ctx, false);    /* no memory: without them, then */
        (void)rv__run_send(ctx->run, &msg, NULL); /* and as after a crash */
    }
}

/* ----------------------------------------------------------------------------------- logs --- */

/* Whose lines they are. */
struct speaker {
    struct rv__str path, step;
    int attempt;
};

/* RV_ENOMEM: it is not there. */
static int keep_line(struct rv__run *run, const struct speaker *speaker,
                     const struct rv__log_line *line)
{
    struct rv__kept_line head = { .at_ms = line->at_ms,
                                  .level = line->level,
                                  .attempt = speaker->attempt,
                                  .path = (uint32_t)speaker->path.len,
                                  .step = (uint32_t)speaker->step.len,
                                  .message = (uint32_t)line->message.len,
                                  .metadata = (uint32_t)line->metadata.len };
    size_t before = run->logs.len;
    rv__buf_add(&run->logs, (const char *)&head, sizeof head);
    rv__buf_str(&run->logs, speaker->path);
    rv__buf_str(&run->logs, speaker->step);
    rv__buf_str(&run->logs, line->message);
    rv__buf_str(&run->logs, line->metadata);
    if (rv__buf_err(&run->logs, NULL) < 0) {
        rv__buf_cut(&run->logs, before);
        run->logs.rc = RV_OK; /* those before it are whole */
        return RV_ENOMEM;
    }
    run->log_count++;
    return RV_OK;
}

/* Its lines, oldest first, behind those there was no memory for. */
static void take_lines(struct rv_ctx *ctx)
{
    struct rv__log_line *newest = atomic_exchange_explicit(&ctx->logs, NULL, memory_order_acquire);
    struct rv__log_line *oldest = NULL, **end = &ctx->unkept;
    while (newest != NULL) {
        struct rv__log_line *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
}

/* What it has said since it was last asked, for the next commit; at its end also how much more it said
 * than is kept. Its step may still run: nothing of it is touched but the lines. RV_ENOMEM: not all of
 * them; the rest waits. */
static int keep_logs(struct rv__run *run, struct rv_ctx *ctx, bool ended)
{
    bool too_many = ended && ctx->log_count > RV__LOG_LINES;
    take_lines(ctx);
    if (ctx->unkept == NULL && !too_many)
        return RV_OK;
    struct rv__buf path;
    rv__buf_init(&path, RV__PATH_BYTES);
    rv__node_path(ctx->view.node, ctx->view.vector, &path);
    int rc = rv__buf_err(&path, NULL);
    struct speaker speaker = { rv__buf_view(&path), ctx->view.node->alias, rv_ctx_attempt(ctx) };
    while (rc == RV_OK && ctx->unkept != NULL) {
        rc = keep_line(run, &speaker, ctx->unkept);
        if (rc == RV_OK)
            ctx->unkept = ctx->unkept->next;
    }
    if (rc == RV_OK && too_many) {
        char text[80];
        snprintf(text, sizeof text, "%zu more lines of this attempt were not kept",
                 ctx->log_count - RV__LOG_LINES);
        rc = keep_line(run, &speaker,
                       &(struct rv__log_line){ .at_ms = run->engine->now_ms,
                                               .level = RV_WARN,
                                               .message = rv__str(text) });
        if (rc == RV_OK)
            ctx->log_count = RV__LOG_LINES; /* it is said */
    }
    rv__buf_done(&path);
    return rc;
}

/* "the handler failed: …", in `out`. */
static void say_unheard(const struct rv__unheard *unheard, struct rv__buf *out)
{
    struct rv__str json, message = rv__str("(it does not say why)");
    struct rv__arena arena;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the error */
    if (unheard->error != NULL && rv__json_get(rv__blob_str(unheard->error), "message", &json) &&
        rv__json_string(json, &arena, &message) == RV_ENOMEM)
        out->rc = RV_ENOMEM;
    if (unheard->body == NULL)
        rv__buf_text(out, "the handler failed: ");
    else
        rv__buf_fmt(out, "the detached child '%.*s' failed: ", RV__ARG(unheard->body->alias));
    size_t room = RV__LOG_BYTES - out->len;
    rv__buf_str(out, (struct rv__str){ message.at, message.len < room ? message.len : room });
    rv__arena_done(&arena);
}

/* RV_ENOMEM: it is not in the log. */
static int keep_unheard(struct rv__run *run, const struct rv__unheard *unheard)
{
    const struct rv__body *body = unheard->body;
    bool own = body != NULL && unheard->node == body->owner; /* its input was refused */
    struct rv__buf path, text;
    rv__buf_init(&path, RV__PATH_BYTES);
    rv__buf_init(&text, RV__LOG_BYTES);
    if (own)
        rv__body_path(body, unheard->vector, &path);
    else
        rv__node_path(unheard->node, unheard->vector, &path);
    say_unheard(unheard, &text);
    int rc = rv__buf_err(&path, NULL);
    if (rc == RV_OK)
        rc = rv__buf_err(&text, NULL);
    struct speaker speaker = { rv__buf_view(&path), own ? body->alias : unheard->node->alias,
                               unheard->attempt };
    if (rc == RV_OK)
        rc = keep_line(run, &speaker,
                       &(struct rv__log_line){ .at_ms = run->engine->now_ms,
                                               .level = RV_ERROR,
                                               .message = rv__buf_view(&text) });
    rv__buf_done(&path);
    rv__buf_done(&text);
    return rc;
}

int rv__keep_unheard(struct rv__run *run)
{
    size_t before = run->logs.len, count = run->log_count;
    for (size_t i = 0; i < run->facts.unheard_count; i++)
        if (keep_unheard(run, &run->facts.unheard[i]) < 0) {
            rv__buf_cut(&run->logs, before);
            run->log_count = count;
            return RV_ENOMEM;
        }
    rv__facts_heard(&run->facts, 0);
    return RV_OK;
}

void rv__fetch_logs(rv_engine *e)
{
    int64_t now_ms = rv__mono_ms(e->clock);
    if (e->in_flight == NULL || now_ms < e->log_tick_ms)
        return;
    e->log_tick_ms = now_ms + RV__LOG_TICK_MS;
    if (e->early != NULL)
        rv__calls_early(e, NULL);
    for (struct rv_ctx *ctx = e->in_flight; ctx != NULL; ctx = ctx->all_next) {
        bool busy = !rv__run_takes(ctx->run, false) && !RV__BUG(58);
        if (busy || ctx->run->cell == NULL || ctx->life != e->life ||
            (atomic_load_explicit(&ctx->logs, memory_order_relaxed) == NULL && ctx->unkept == NULL))
            continue;
        (void)keep_logs(ctx->run, ctx, false); /* no memory: the next time */
        rv__run_touch(ctx->run);
    }
}
