/* dispatch.c: gives places to work that waits, and performs the effects of facts that are on disk.
 *
 * Runs that want a place in a lane stand in a ring, and each gets one place in turn, so that a run with a hundred
 * thousand items does not keep the others waiting. A run whose last work ended quickly gets several places at once:
 * what it starts together is one journal row, and what ends together is another. With 200 parallel forEach that gives
 * twice as many items per second. The others do not wait long, since such work soon gives its places back.
 * A place is a value: a grant gives it to an actor, the effect carries it to the work, and the end of the work gives
 * it back.
 *
 * Suspects (steps that were in flight in two deaths of this process) need one more place, of which there is only one.
 * So one suspect is in flight at a time, beside any other work, and if the process dies again, the suspect is to
 * blame. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "engine/attempt.h"
#include "engine/engine.h"

enum { UNPAID_AT_ONCE = 64 }; /* on the stack, as there is no memory */

/* ------------------------------------------------------------------------------- wanting --- */

/* Steps that were blamed come first: the sooner they are found out, the sooner the others are safe. */
static bool goes_first(const struct rv__run *run, int lane)
{
    return lane == LANE_SUSPECT && rv__cell_blamed(run->cell);
}

/* The class, or the limit, of the first work in a lane of workers. -1: it has none any more. */
static int class_of_first(const rv_engine *e, const struct rv__run *run, enum rv__lane lane)
{
    const struct rv__node *node;
    const struct rv__body *body;
    enum rv__lane plain;
    int eval;
    if (!rv__cell_first(run->cell, lane, &node, &eval, &body, &plain))
        return -1;
    if (rv__lane_is_limit(plain))
        return rv__limits_of(e, node, eval);
    if (!rv__lane_is_worker(plain))
        return -1;
    const struct rv__function *function = rv__plan_ref_fn(run->plan, node, eval, body);
    return function != NULL ? rv__workers_class(e, function, node) : -1;
}

/* The ring of the runs that want what this one wants. */
static void ring_of(rv_engine *e, const struct rv__run *run, int lane, struct rv__run ***first,
                    struct rv__run ***last)
{
    int ring = run->lane[lane].ring;
    if (rv__lane_is_worker((enum rv__lane)lane)) {
        *first = &e->workers.classes[ring].first;
        *last = &e->workers.classes[ring].last;
    } else if (rv__lane_is_limit((enum rv__lane)lane)) {
        *first = &e->limits.at[ring].first;
        *last = &e->limits.at[ring].last;
    } else {
        *first = &e->lanes[lane].first;
        *last = &e->lanes[lane].last;
    }
}

static void queue_add(rv_engine *e, struct rv__run *run, int lane)
{
    struct rv__run **first, **last;
    run->lane[lane].queued = true;
    run->lane[lane].left = run->burst > 0 ? run->burst : 1;
    run->lane[lane].since_ns = rv__mono_ns(e->clock);
    run->lane[lane].next = run->lane[lane].prev = NULL;
    ring_of(e, run, lane, &first, &last);
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
    struct rv__run *prev = run->lane[lane].prev, *next = run->lane[lane].next, **first, **last;
    ring_of(e, run, lane, &first, &last);
    if (prev != NULL)
        prev->lane[lane].next = next;
    else
        *first = next;
    if (next != NULL)
        next->lane[lane].prev = prev;
    else
        *last = prev;
    run->lane[lane].queued = false;
}

/* Something was registered since its lanes were computed: do that again. */
static void ask_lanes(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__cell_opts opts = rv__plan_ref_opts(e, run->plan);
    if (rv__cell_lanes(run->cell, opts.lane, opts.arg) == RV_OK)
        run->lanes_of = run->plan->registry->generation;
    else
        e->starved = true;
}

/* Put the run into the ring of the class or limit that it waits for now. */
static void queue_in_ring(rv_engine *e, struct rv__run *run, int lane)
{
    int ring = class_of_first(e, run, (enum rv__lane)lane);
    if (run->lane[lane].queued && run->lane[lane].ring == ring)
        return;
    if (run->lane[lane].queued)
        queue_remove(e, run, lane);
    run->lane[lane].ring = ring;
    if (ring >= 0)
        queue_add(e, run, lane);
}

void rv__run_queue_wants(struct rv__run *run)
{
    rv_engine *e = run->engine;
    if (run->cell != NULL && run->lanes_of != run->plan->registry->generation)
        ask_lanes(run);
    int end = e->limits.count > 0          ? LANES
              : e->workers.class_count > 0 ? LANE_LIMIT
                                           : LANE_WORKER; /* usually there are none */
    for (int lane = LANE_NONE + 1; lane < end; lane++) {
        bool wants = lane != LANE_NOBODY && run->cell != NULL && !run->parked &&
                     rv__cell_wants(run->cell, (enum rv__lane)lane);
        if (wants && lane >= LANE_WORKER)
            queue_in_ring(e, run, lane);
        else if (wants && !run->lane[lane].queued)
            queue_add(e, run, lane);
        else if (!wants && run->lane[lane].queued)
            queue_remove(e, run, lane);
    }
}

void rv__ring_clear(rv_engine *e, struct rv__class *ring)
{
    while (ring->first != NULL) {
        struct rv__run *run = ring->first;
        for (int lane = LANE_WORKER; lane < LANE_LIMIT; lane++)
            if (run->lane[lane].queued && &e->workers.classes[run->lane[lane].ring] == ring) {
                queue_remove(e, run, lane);
                break;
            }
    }
}

void rv__run_unqueue(struct rv__run *run)
{
    for (int lane = LANE_NONE + 1; lane < LANES; lane++)
        if (run->lane[lane].queued && !RV__BUG(44))
            queue_remove(run->engine, run, lane);
}

/* The executor whose credits are the places of a lane. A suspect takes one like any function, plus the place of
 * suspects. Work that needs a limit is a request. */
static struct rv__executor *executor_of(const rv_engine *e, int lane, uint32_t ticket)
{
    if (rv__lane_is_limit((enum rv__lane)lane))
        return e->lanes[LANE_HTTP].executor;
    if (ticket > 0)
        return e->lanes[LANE_WORKER].executor;
    return e->lanes[lane == LANE_SUSPECT ? LANE_FUNCTION : lane].executor;
}

/* Is a place in this lane free? Not for the lanes of workers. */
bool rv__place_free(const rv_engine *e, enum rv__lane lane)
{
    const struct rv__lane_places *l = &e->lanes[lane];
    return l->executor != NULL && (l->taken < l->executor->credits || RV__BUG(39));
}

/* May the first suspect have a place? *ticket: of the worker that runs its function; 0: this process does. */
static bool suspect_free(const rv_engine *e, uint32_t *ticket)
{
    const struct rv__run *run = e->lanes[LANE_SUSPECT].first;
    if (run == NULL || (e->lanes[LANE_SUSPECT].taken > 0 && !RV__BUG(41)))
        return false;
    int ring = class_of_first(e, run, LANE_SUSPECT);
    *ticket = ring >= 0 ? rv__workers_pick(e, ring) : 0;
    return ring >= 0 ? *ticket > 0 : rv__place_free(e, LANE_FUNCTION);
}

void rv__place_take(rv_engine *e, enum rv__lane lane, uint32_t ticket)
{
    e->lanes[lane].taken++;
    if (rv__lane_is_limit(lane)) {
        e->lanes[LANE_HTTP].taken++;
        rv__limit_take(&e->limits.at[ticket - 1], rv__mono_ms(e->clock));
    } else if (ticket > 0)
        rv__workers_count(e, ticket, 1);
    else if (lane == LANE_SUSPECT)
        e->lanes[LANE_FUNCTION].taken++;
}

void rv__place_give(rv_engine *e, enum rv__lane lane, uint32_t ticket)
{
    if (lane == LANE_NONE)
        return;
    e->lanes[lane].taken--;
    if (rv__lane_is_limit(lane)) {
        e->lanes[LANE_HTTP].taken--;
        if (!RV__BUG(272))
            rv__limit_give(&e->limits.at[ticket - 1]);
    } else if (ticket > 0)
        rv__workers_count(e, ticket, -1);
    else if (lane == LANE_SUSPECT)
        e->lanes[LANE_FUNCTION].taken--;
}

int64_t rv__places_taken(const rv_engine *e)
{
    return e->lanes[LANE_FUNCTION].taken;
}

/* Can the first in this lane or class have a place? */
static bool lane_gives(const rv_engine *e, int lane, uint32_t *ticket)
{
    *ticket = 0;
    if (e->lanes[lane].first == NULL)
        return false;
    return lane == LANE_SUSPECT ? suspect_free(e, ticket) : rv__place_free(e, (enum rv__lane)lane);
}

static bool class_gives(const rv_engine *e, size_t number, uint32_t *ticket)
{
    *ticket = e->workers.classes[number].first != NULL ? rv__workers_pick(e, (int)number) : 0;
    return *ticket > 0;
}

/* Take both the connection and the limit, or neither. */
static bool limit_gives(const rv_engine *e, size_t number)
{
    return e->limits.at[number].first != NULL && rv__place_free(e, LANE_HTTP) &&
           rv__limits_give(e, number);
}

bool rv__may_grant(const rv_engine *e)
{
    uint32_t ticket;
    if (e->closed || e->idle)
        return false;
    for (int lane = LANE_NONE + 1; lane < LANE_WORKER; lane++)
        if (lane_gives(e, lane, &ticket))
            return true;
    for (size_t i = 0; i < e->workers.class_count; i++)
        if (class_gives(e, i, &ticket))
            return true;
    for (size_t i = 0; i < e->limits.count; i++)
        if (limit_gives(e, i))
            return true;
    return false;
}

/* Give one place to the first run of a ring. False: it did not take it (not twice in one turn), or there is no
 * memory. */
static bool grant(rv_engine *e, struct rv__run *run, int lane, uint32_t ticket, int64_t now_ms)
{
    e->workers.granting = rv__lane_is_limit((enum rv__lane)lane) ? 0 : ticket;
    int rc = rv__flow_grant_ticket(run->cell, (enum rv__lane)lane, ticket, now_ms, &run->facts,
                                   NULL);
    e->workers.granting = 0;
    rv__run_touch(run);
    if (rc < 0) { /* at the next turn */
        e->starved = true;
        return false;
    }
    if (rc == 1) {
        rv__place_take(e, (enum rv__lane)lane, ticket);
        run->waited_ns = rv__mono_ns(e->clock) - run->lane[lane].since_ns;
    }
    (void)rv__flow_pump(run->cell, now_ms, &run->facts, NULL); /* the rest: next turn */
    if (rc == 0 || --run->lane[lane].left <= 0)
        queue_remove(e, run, lane);
    rv__run_queue_wants(run); /* to the end of the ring, if it wants more */
    return rc != 0 || !run->lane[lane].queued;
}

/* The lane for which the first run stands in this ring: one of so many from `lanes` on. */
static int lane_in_ring(const struct rv__run *run, int lanes, int count, size_t number)
{
    int lane = lanes + (int)(number % (size_t)count);
    assert(run->lane[lane].queued && (size_t)run->lane[lane].ring == number);
    return lane;
}

void rv__grant_all(rv_engine *e, int64_t now_ms)
{
    uint32_t ticket;
    if (e->closed || e->idle)
        return;
    for (size_t i = 0; i < e->workers.class_count; i++)
        while (class_gives(e, i, &ticket)) {
            struct rv__run *run = e->workers.classes[i].first;
            if (!grant(e, run, lane_in_ring(run, LANE_WORKER, RV__WORKER_LANES, i), ticket, now_ms))
                break;
        }
    for (size_t i = 0; i < e->limits.count; i++)
        while (limit_gives(e, i)) {
            struct rv__run *run = e->limits.at[i].first;
            if (!grant(e, run, lane_in_ring(run, LANE_LIMIT, RV__LIMIT_LANES, i), (uint32_t)i + 1,
                       now_ms))
                break;
        }
    for (int lane = LANE_WORKER - 1; lane > LANE_NONE; lane--)
        while (lane_gives(e, lane, &ticket))
            if (!grant(e, e->lanes[lane].first, lane, ticket, now_ms))
                break;
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

/* Add a new one to its bucket and to its run's list. NULL: no memory. */
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
    if (!owed->mailed) /* else it is freed when its letter is handled */
        rv__free(owed);
}

static void clear(rv_engine *e, struct rv__owed **at, bool tell)
{
    struct rv__owed *owed = *at;
    disarm(e, owed);
    if (owed->work != NULL && tell &&
        !RV__BUG(45)) /* still running: tell it to stop; its answer will be stale */
        rv__attempt_cancel(owed->work);
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

/* A timer is due: send it to the run, or put it into the run's mail. */
void rv__owed_due(rv_engine *e, struct rv__owed *owed)
{
    struct rv__run *run = owed->run;
    if (!rv__run_takes(run, false)) {
        if (RV__BUG(56))
            return;
        owed->mailed = true;
        e->timers_mailed++;
        owed->letter.kind = LETTER_TIMER;
        rv__mail_put(&run->mail, &owed->letter);
        return;
    }
    struct rv__msg msg = { .kind = MSG_TIMER,
                           .actor = owed->actor,
                           .token = owed->token,
                           .chance = rv__random_double(&e->random) };
    if (owed->work != NULL)
        rv__attempt_tell_given(owed->work);
    if (rv__run_send(run, &msg, NULL) == RV_OK)
        return;
    struct rv__timers *timers = owed->is_timeout ? &e->timeouts : &e->waits;
    if (rv__timers_arm(timers, &owed->timer, owed->timer.due) < 0) /* its slot is reserved */
        run->owes_again = true;
    e->starved = true;
}

void rv__owed_unmail(struct rv__owed *owed)
{
    owed->mailed = false;
    owed->run->engine->timers_mailed--;
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

/* -------------------------------------------------------------------------------- effects --- */

/* Does the work run in this process? */
bool rv__effect_in_process(const struct rv__effect *effect)
{
    const struct rv__node *node = effect->node;
    if (node == NULL || effect->hosted)
        return false;
    if (effect->eval >= 0)
        return rv__plan_ref_fn_name(node, effect->eval, effect->body).len > 0;
    return node->step.kind == STEP_FUNCTION || node->step.kind == STEP_CALL;
}

/* An effect could not be performed for lack of memory: it is still in the run's state, where the next turn finds
 * it. */
static void starve(struct rv__run *run)
{
    run->owes_again = true;
    run->engine->starved = true;
    rv__run_touch(run);
}

/* The work cannot begin: tell the run, and it waits for a place again. */
static void cannot_begin(struct rv__run *run, uint64_t actor, uint64_t token, enum rv__lane place,
                         uint32_t ticket)
{
    struct rv__msg msg = { .kind = MSG_LOST, .actor = actor, .token = token };
    rv__place_give(run->engine, place, ticket);
    if (rv__run_send(run, &msg, NULL) < 0)
        starve(run);
}

/* Room for one more among those to be started this turn. */
static bool has_room(struct rv__lane_places *lane)
{
    if (lane->starting_count < lane->starting_cap)
        return true;
    size_t cap = lane->starting_cap ? lane->starting_cap * 2 : 64;
    struct rv__work **starting = rv__realloc(lane->starting, cap * sizeof *starting);
    if (starting == NULL)
        return false;
    lane->starting = starting;
    lane->starting_cap = cap;
    return true;
}

/* How the executor that gave the place runs it. False: nobody offers its function any more, or another executor does:
 * then it waits for a place there. */
static bool find_how(struct rv__run *run, const struct rv__effect *effect,
                     const struct rv__executor *executor, struct rv__attempt_how *ret)
{
    rv_engine *e = run->engine;
    rv_step_fn instead = e->around.instead != NULL && effect->eval < 0
                             ? e->around.instead(e, effect->node->alias)
                             : NULL;
    if (rv__lane_is_limit(effect->place) &&
        rv__limits_of(e, effect->node, effect->eval) + 1 != (int)effect->ticket)
        return false; /* the limit is gone */
    if (instead != NULL) {
        *ret = (struct rv__attempt_how){ .run = rv__ctx_run, .fn = instead };
        return true;
    }
    if (rv__builtin(&run->plan->exprs, effect)) {
        *ret = (struct rv__attempt_how){ .run = rv__builtin_run };
        return true;
    }
    const struct rv__function *function = rv__plan_ref_fn(run->plan, effect->node, effect->eval,
                                                          effect->body);
    if (function == NULL)
        return false;
    if (effect->ticket > 0 && !rv__workers_offers(e, effect->ticket, function))
        return false; /* the worker has registered again or is gone */
    if (effect->ticket == 0 && function->executor != executor)
        return false;
    *ret = (struct rv__attempt_how){ function->run, function->fn, function, NULL };
    if (effect->ticket > 0)
        ret->session = rv__workers_session(e, effect->ticket);
    return true;
}

/* Reserve a timer for its time-out, which counts from when its executor says that the work has begun. */
static bool reserve_timeout(rv_engine *e, struct rv__owed *owed, int64_t timeout_ms)
{
    if (timeout_ms <= 0)
        return true;
    owed->is_timeout = true;
    int64_t due_ms = RV__BUG(60) ? rv__mono_ms(e->clock) + timeout_ms : RV__NOT_BEGUN_MS;
    return rv__timers_arm(&e->timeouts, &owed->timer, due_ms) == RV_OK;
}

void rv__owed_count_time(struct rv__attempt *a)
{
    rv_engine *e = a->run->engine;
    struct rv__owed *owed = *owed_find(e, a->run, a->ctx.view.actor);
    if (owed == NULL || owed->work != a)
        return; /* the run no longer wants it */
    int rc = rv__timers_arm(&e->timeouts, &owed->timer, a->begun_ns / 1000000 + a->ctx.timeout_ms);
    assert(rc == RV_OK); /* it has its room */
    (void)rc;
}

void rv__owed_answered(struct rv__attempt *a)
{
    struct rv__owed *owed = *owed_find(a->run->engine, a->run, a->ctx.view.actor);
    if (owed != NULL && owed->work == a)
        owed->work = NULL; /* nobody to be told to stop any more */
}

static void start_work(struct rv__run *run, const struct rv__effect *effect)
{
    rv_engine *e = run->engine;
    struct rv__executor *executor = executor_of(e, effect->place, effect->ticket);
    struct rv__attempt_how how;
    bool known = executor != NULL && find_how(run, effect, executor, &how);
    struct rv__lane_places *lane = known ? &e->lanes[executor->lane] : NULL;
    struct rv__attempt *a = known && has_room(lane) ? rv__attempt_new(run, effect, executor, &how)
                                                    : NULL;
    struct rv__owed *owed = a != NULL ? owed_new(run, effect) : NULL;
    if (owed != NULL && !reserve_timeout(e, owed, effect->timeout_ms)) {
        rv__owed_clear(run, effect->actor);
        owed = NULL;
    }
    if (owed == NULL) { /* no memory; or nobody offers its function any more */
        if (a != NULL)
            rv__attempt_drop(a);
        e->starved |= known;
        cannot_begin(run, effect->actor, effect->token, effect->place, effect->ticket);
        return;
    }
    owed->work = a;
    lane->starting[lane->starting_count++] = &a->ctx.work; /* room was made above */
}

/* Its run is committing again: effects that were not performed are found after that. */
static void abandon(struct rv__run *run, enum rv__lane place, uint32_t ticket)
{
    rv__place_give(run->engine, place, ticket);
    run->owes_again = true;
    rv__run_touch(run);
}

/* It could not be begun after all. */
static void take_back(rv_engine *e, struct rv__attempt *a)
{
    struct rv__run *run = a->run;
    uint64_t actor = a->ctx.view.actor, token = a->ctx.view.token;
    enum rv__lane place = a->place;
    uint32_t ticket = a->ticket;
    struct rv__owed **at = owed_find(e, run, actor);
    if (*at != NULL && (*at)->work == a) {
        (*at)->work = NULL;
        rv__owed_clear(run, actor);
    }
    rv__attempt_drop(a);
    if (run->phase == RV__IDLE || run->phase == RV__DECIDING)
        cannot_begin(run, actor, token, place, ticket);
    else
        abandon(run, place, ticket); /* found again after the next commit */
}

/* Not while effects are released: an executor may answer on the spot. */
void rv__start_all(rv_engine *e)
{
    for (int i = 0; i < LANES; i++) {
        struct rv__lane_places *lane = &e->lanes[i];
        size_t count = lane->starting_count;
        if (count == 0)
            continue;
        lane->starting_count = 0;
        size_t started = lane->executor->start(lane->executor, lane->starting, count);
        for (; started < count; started++)
            take_back(e, (struct rv__attempt *)lane->starting[started]);
    }
}

/* Arm the timer of a wait. */
void rv__owe(struct rv__run *run, const struct rv__effect *effect)
{
    rv_engine *e = run->engine;
    if (e->owed_count >= e->owed_size)
        (void)owed_grow(e); /* on failure the chains are longer */
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

static void collect_owed(void *arg, const struct rv__effect *effect)
{
    struct unpaid *unpaid = arg;
    const struct rv__owed *owed = *owed_find(unpaid->run->engine, unpaid->run, effect->actor);
    if (unpaid->count < UNPAID_AT_ONCE && (owed == NULL || owed->token != effect->token))
        unpaid->effects[unpaid->count++] = *effect;
}

/* All effects were released: those of the state that were not performed, for lack of memory, are performed now. */
void rv__owe_again(struct rv__run *run)
{
    struct unpaid unpaid = { .run = run };
    run->owes_again = false;
    rv__cell_outstanding(run->cell, collect_owed, &unpaid);
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

/* After the commit: perform the effects of this turn's facts. */
void rv__release_effects(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__effect effect;
    while (rv__cell_effect(run->cell, &effect)) {
        if (e->owed_count >= e->owed_size)
            (void)owed_grow(e); /* on failure the chains are longer */
        rv__owed_clear(run, effect.actor);
        if (effect.unused_note != NULL)
            rv__tool_give_up(&e->services, rv__blob_str(effect.unused_note));
        bool begins = effect.kind == EFFECT_START && !(RV__BUG(49) && e->commit.beside % 2 == 1);
        if (begins)
            start_work(run, &effect);
        else if (!RV__BUG(46))
            rv__place_give(e, effect.place,
                           effect.ticket); /* it ended in the turn that gave it a place */
        if (effect.kind == EFFECT_WAIT)
            rv__owe(run, &effect);
    }
}

void rv__effects_drop(struct rv__run *run)
{
    struct rv__effect effect;
    while (run->cell != NULL && rv__cell_effect(run->cell, &effect))
        rv__place_give(run->engine, effect.place, effect.ticket);
}
