/* shell_judge.c: what must hold of an engine, between calls, when a step begins, and at the end. What
 * has happened is what the journal says: it is read as any other process would read it. */
#include "shell.h"

#include <stdlib.h>

#include "base/json.h"

enum {
    SMALL = 60,  /* actors of a cell that is compared whole */
    LARGE = 300, /* of one that is not looked at at every commit, among members */
};

/* --------------------------------------------------------------------------------- on disk --- */

struct watching {
    struct shell *shell;
    struct run *run;
};

static int see_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct watching *w = arg;
    w->shell->print = rv__str_hash(w->shell->print, facts);
    w->run->seq = seq;
    if (w->shell->crowd != NULL) {
        bool good = judge_journal(&w->shell->world, w->run, facts);
        crowd_row(w->shell, w->run, seq, facts);
        return good && !w->shell->world.failed ? RV_OK : RV_ECANCELED;
    }
    return judge_journal(&w->shell->world, w->run, facts) ? RV_OK : RV_ECANCELED;
}

/* Where the judge reads. */
static struct rv__store *disk_seen(struct shell *s)
{
    return s->crowd != NULL ? &s->world.store.store : s->engine->step_reader;
}

void shell_watch(struct shell *s, struct run *run)
{
    struct watching w = { s, run };
    struct world *world = &s->world;
    if (world->failed)
        return;
    world->disk = disk_seen(s);
    world->mono_ms = shell_ms(s);
    if (journal_rows(world, run, run->seq, see_row, &w) < 0)
        judge_fail(world, run, "journal", "the journal cannot be read");
}

/* ------------------------------------------------------------------------- a step begins --- */

/* No limit is exceeded, and what was taken of it comes back. */
static void check_limits(struct shell *s, struct run *run, bool still)
{
    rv_engine *e = s->engine;
    for (size_t i = 0; i < e->limits.count; i++) {
        const struct rv__limit *l = &e->limits.at[i];
        int64_t used = 0;
        for (const struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
            used += a->life == e->life && rv__lane_is_limit(a->place) && a->ticket == i + 1;
        if ((l->at_once > 0 && used > l->at_once) ||
            (l->per_minute > 0 && l->starts.sum > l->per_minute))
            judge_fail(&s->world, run, "limit",
                       "%lld at once and %lld in a minute are too many for %s", (long long)used,
                       (long long)l->starts.sum, l->name);
        if (l->taken < used || (still && l->taken != used))
            judge_fail(&s->world, run, "limit", "%lld places of %s are taken, and %lld are used",
                       (long long)l->taken, l->name, (long long)used);
        /* Who got a burst of places meanwhile waits for the next turn of the loop: no time passes. */
        bool idle = s->crowd == NULL && l->first != NULL && still && l->taken == 0 &&
                    l->per_minute == 0 && l->amount_per_minute == 0 && rv__place_free(e, LANE_HTTP);
        int64_t *since_ms = &s->idle_limit_ms[i % LIMITS_SEEN];
        if (!idle || *since_ms == 0)
            *since_ms = idle ? shell_ms(s) : 0;
        else if (shell_ms(s) > *since_ms)
            judge_fail(&s->world, run, "progress", "nobody has %s, and somebody waits for it",
                       l->name);
    }
}

/* What the places are used for: work in flight that has one, and grants that are on their way to disk. No
 * executor has more than its credits; and each that it has given comes back. */
static void check_places(struct shell *s, struct run *run)
{
    int64_t used[LANES] = { 0 }, suspects = 0;
    rv_engine *e = s->engine;
    bool still = e->deciding == NULL && e->commit.away == 0;
    for (const struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next)
        if (a->life == e->life && a->place != LANE_NONE)
            used[a->place]++, suspects += a->place == LANE_SUSPECT && a->ticket == 0;
    for (int lane = 0; lane < LANES; lane++)
        still &= e->lanes[lane].starting_count == 0;
    if (used[LANE_SUSPECT] > 1 || e->lanes[LANE_SUSPECT].taken > 1)
        judge_fail(&s->world, run, "suspect", "two suspects are in flight");
    used[LANE_FUNCTION] += suspects;
    for (int lane = LANE_LIMIT; lane < LANES; lane++)
        used[LANE_HTTP] += used[lane];
    check_limits(s, run, still);
    crew_check(s, run);
    for (int lane = LANE_NONE + 1; lane < LANE_WORKER && !s->world.failed; lane++) {
        const struct rv__lane_places *l = &e->lanes[lane];
        const char *name = l->executor != NULL ? l->executor->name : "of suspects";
        int64_t most = l->executor != NULL ? l->executor->credits : lane == LANE_SUSPECT;
        if (used[lane] > most || l->taken > most)
            judge_fail(&s->world, run, "places",
                       "%lld pieces of work are at the executor %s, which takes %lld",
                       (long long)used[lane], name, (long long)most);
        if (l->taken < used[lane] || (still && l->taken != used[lane]))
            judge_fail(&s->world, run, "places",
                       "%lld places of the executor %s are taken, and %lld are used",
                       (long long)l->taken, name, (long long)used[lane]);
    }
}

/* Places go round, a burst to each: nobody who could use one waits while others get many. */
static void check_fair(struct shell *s, struct run *run)
{
    if (s->crowd != NULL)
        return; /* it may be another's next */
    int64_t bound = (3 + s->burst) * (s->world.run_count + s->workers) + 8;
    for (struct run *other = s->world.runs; other != NULL; other = other->next) {
        const struct rv__run *r = rv__run_find(s->engine, other->id);
        bool wants = other != run && r != NULL && r->lane[LANE_FUNCTION].queued;
        other->passed_over = wants ? other->passed_over + 1 : 0;
        if (other->passed_over > bound)
            judge_fail(&s->world, other, "fair", "it wants a place, and others have got %lld since",
                       (long long)other->passed_over);
    }
}

/* The same within a limit: those that wait for it are in the ring of the one that got it. */
static void check_fair_limit(struct shell *s, struct run *run, const struct rv__attempt *a)
{
    const struct rv__run *own = rv__run_find(s->engine, run->id);
    int64_t bound = (3 + s->burst) * (s->world.run_count + 3) + 8;
    for (struct run *other = s->world.runs; other != NULL; other = other->next) {
        const struct rv__run *r = rv__run_find(s->engine, other->id);
        bool wants = r != NULL && r != own && r->lane[a->place].queued &&
                     r->lane[a->place].ring + 1 == (int)a->ticket;
        other->passed_limit[a->place] = wants ? other->passed_limit[a->place] + 1 : 0;
        if (other->passed_limit[a->place] > bound)
            judge_fail(&s->world, other, "fair",
                       "it waits for a limit, and others got it %lld times",
                       (long long)other->passed_limit[a->place]);
    }
}

void shell_begins(struct shell *s, struct run *run, rv_ctx *ctx)
{
    struct world *world = &s->world;
    const struct rv__attempt *attempt = (const struct rv__attempt *)ctx;
    const struct rec_actor *actor = record_actor(&run->rec, ctx->view.actor);
    const char *path = rv_ctx_path(ctx);
    tell(s, "%s begins %s%s%s, attempt %d, token %llu", run->id, path, ctx->eval >= 0 ? " " : "",
         ctx->eval >= 0 ? rv__eval_name((enum rv__eval)ctx->eval) : "", ctx->view.attempt,
         (unsigned long long)ctx->view.token);
    tally.works++;
    if (attempt->life != s->engine->life && !(s->crowd != NULL && rv_ctx_cancelled(ctx)))
        judge_fail(world, run, "life", "%s begins after its process has died", path);
    if (crowd_is_stale(s) && (actor == NULL || actor->inst == NULL))
        return;
    if (actor == NULL || actor->inst == NULL) {
        judge_fail(world, run, "durable", "%s begins, and nothing on disk says so", path);
        return;
    }
    const struct rec_inst *inst = actor->inst;
    if (rv_ctx_cancelled(ctx))
        return; /* ended meanwhile, and told so: it may do what it likes */
    if (crowd_is_stale(s))
        return; /* others have its run, and it does not know it yet */
    if (!crowd_wrote(s, run, ctx->eval >= 0 ? actor->eval_started : inst->last_started))
        judge_fail(world, run, "theirs", "%s begins here, and another member wrote so", path);
    if (ctx->eval >= 0 && inst->eval_running != ctx->eval)
        judge_fail(world, run, "durable", "%s evaluates, and nothing on disk says so", path);
    if (ctx->eval < 0 && (inst->attempt != ctx->view.attempt || inst->status != STATUS_RUNNING))
        judge_fail(world, run, inst->ended >= 0 ? "again" : "durable",
                   "%s begins attempt %d; on disk it is %s, attempt %d", path, ctx->view.attempt,
                   rv__status_name((enum rv__status)inst->status), inst->attempt);
    check_places(s, run);
    if (attempt->place == LANE_FUNCTION)
        check_fair(s, run);
    if (rv__lane_is_limit(attempt->place))
        check_fair_limit(s, run, attempt);
    if (world->failed)
        return;
    /* The engine's plan is another copy of ours. */
    struct rv__view view = ctx->view;
    if (run->nonce == 0)
        run->nonce = view.nonce;
    view.node = run->plan->plan->nodes[ctx->view.node->id];
    if (view.handler != NULL)
        view.handler = run->plan->plan->nodes[view.handler->id];
    struct rv__effect effect = { .kind = EFFECT_START,
                                 .actor = view.actor,
                                 .token = view.token,
                                 .node = view.node,
                                 .eval = ctx->eval };
    judge_start(world, run, &effect, &view);
}

/* ----------------------------------------------------------------------- before a commit --- */

/* What the engine does for a run, by actor. */
struct owing {
    struct owing_one {
        const struct rv__owed *owed;
        bool found; /* on disk, too */
    } * all;
    size_t count;
};

static int by_actor(const void *a, const void *b)
{
    uint64_t one = ((const struct owing_one *)a)->owed->actor;
    uint64_t other = ((const struct owing_one *)b)->owed->actor;
    return (one > other) - (one < other);
}

static struct owing owing_of(const struct rv__run *run)
{
    struct owing o = { .count = 0 };
    for (const struct rv__owed *w = run->owed; w != NULL; w = w->run_next)
        o.count++;
    o.all = sim_alloc((o.count + 1) * sizeof *o.all);
    o.count = 0;
    for (const struct rv__owed *w = run->owed; w != NULL; w = w->run_next)
        o.all[o.count++] = (struct owing_one){ .owed = w };
    qsort(o.all, o.count, sizeof *o.all, by_actor);
    return o;
}

static struct owing_one *owing_find(const struct owing *o, uint64_t actor)
{
    struct rv__owed wanted = { .actor = actor };
    return bsearch(&(struct owing_one){ .owed = &wanted }, o->all, o->count, sizeof *o->all,
                   by_actor);
}

static void see_owed(void *arg, const struct rv__effect *effect)
{
    struct owing_one *one = owing_find(arg, effect->actor);
    if (one != NULL)
        one->found |= effect->token == one->owed->token;
}

/* ------------------------------------------------------------------------------ in time --- */

enum { LATE_COMMITS = 2 }; /* what is due is taken within so many */

static struct late *late_of(struct shell *s, const struct run *run, const struct rv__owed *owed)
{
    for (size_t i = 0; i < s->late_count; i++)
        if (s->late[i].run == run && s->late[i].actor == owed->actor &&
            s->late[i].token == owed->token && s->late[i].engine == s->engine)
            return &s->late[i];
    if (s->late_count == sizeof s->late / sizeof *s->late)
        return NULL; /* so many at once: these are enough */
    s->late[s->late_count] = (struct late){ .run = run,
                                            .engine = s->engine,
                                            .actor = owed->actor,
                                            .token = owed->token,
                                            .since = s->engine->commits };
    return &s->late[s->late_count++];
}

/* A commit begins: what was due at one before must be in it, or at the latest in the next. */
static void check_late(struct shell *s)
{
    rv_engine *e = s->engine;
    size_t kept = 0;
    char name[200];
    int64_t wall_ms = rv__wall_ms(e->clock), mono_ms = rv__mono_ms(e->clock);
    for (struct run *run = s->world.runs; run != NULL; run = run->next) {
        const struct rv__run *r = rv__run_find(e, run->id);
        for (const struct rv__owed *w = r != NULL ? r->owed : NULL; w != NULL; w = w->run_next) {
            bool due = w->timer.at != 0 && w->timer.due <= (w->is_timeout ? mono_ms : wall_ms);
            struct late *late = due || w->mailed ? late_of(s, run, w) : NULL;
            if (late == NULL)
                continue;
            late->seen = true;
            if (e->commits - late->since > LATE_COMMITS)
                judge_fail(&s->world, run, "late",
                           "the timer of %s is due, and not taken in %d commits",
                           work_name(run, w->actor, name, sizeof name), LATE_COMMITS);
        }
    }
    for (size_t i = 0; i < s->late_count; i++) {
        struct late late = s->late[i];
        if (!late.seen && late.engine == e)
            continue;
        late.seen = false;
        s->late[kept++] = late;
    }
    s->late_count = kept;
}

/* It is on disk, and not acted for yet: what it was owed before that may be over. */
static bool has_landed(const rv_engine *e, const struct rv__run *r)
{
    for (size_t i = 0; i < RV__BATCHES; i++)
        for (const struct rv__run *b = e->commit.batches[i].runs; b != NULL; b = b->next_in)
            if (b == r)
                return false;
    return r->phase == RV__COMMITTING;
}

void shell_before(struct shell *s)
{
    char name[200];
    if (s->engine == NULL || crowd_is_stale(s) || disk_unheard(s->disk))
        return; /* it is being opened, and has done nothing yet; or what it does goes nowhere */
    check_late(s);
    for (struct run *run = s->world.runs; run != NULL && !s->world.failed; run = run->next) {
        const struct rv__run *r = rv__run_find(s->engine, run->id);
        if (r == NULL || r->owed == NULL || run->over || has_landed(s->engine, r) ||
            !crowd_owns(s, run) || (s->crowd != NULL && run->rec.insts > LARGE))
            continue;
        shell_watch(s, run);
        struct owing o = owing_of(r);
        rv__cell_outstanding(run->shadow, see_owed, &o);
        for (size_t i = 0; i < o.count && !s->world.failed; i++)
            if (!o.all[i].found)
                judge_fail(&s->world, run, "durable", "%s is acted on, and it is not on disk",
                           work_name(run, o.all[i].owed->actor, name, sizeof name));
        free(o.all);
    }
}

/* ------------------------------------------------------------------------- between calls --- */

struct outstanding {
    struct shell *shell;
    struct run *run;
    const struct owing *in_memory; /* NULL: what is owed is only looked at */
    bool held;                     /* its cell is in memory */
    size_t count;
    bool work;
    int64_t due_ms;
    const char *wrong;
    uint64_t actor;
};

/* A time-out counts from when its executor began, whenever the loop heard of that; and not before. */
static const char *wrong_timeout(const struct rv__owed *owed)
{
    const struct rv__attempt *a = owed->work;
    int64_t due_ms = a->begun_ns / 1000000 + a->ctx.timeout_ms;
    bool unsaid = a->late_begins.at != 0, counts = owed->timer.due != RV__NOT_BEGUN_MS;
    if (owed->mailed)
        return NULL; /* it is over */
    if (owed->timer.at == 0)
        return "it has a time-out, and no timer is armed";
    if (counts && (a->phase == ATTEMPT_STARTED || unsaid))
        return "its time counts before it has begun";
    if (counts && owed->timer.due != due_ms)
        return "its time does not count from its beginning";
    if (!counts && a->phase == ATTEMPT_BEGUN && !unsaid)
        return "it has begun, and its time does not count";
    return NULL;
}

static void see_effect(void *arg, const struct rv__effect *effect)
{
    struct outstanding *o = arg;
    o->count++;
    if (effect->kind == EFFECT_START)
        o->work = true;
    else if (o->due_ms == 0 || effect->due_ms < o->due_ms)
        o->due_ms = effect->due_ms;
    if (o->in_memory == NULL || o->wrong != NULL)
        return;
    const struct owing_one *one = owing_find(o->in_memory, effect->actor);
    const struct rv__owed *owed = one != NULL ? one->owed : NULL;
    o->actor = effect->actor;
    if (owed == NULL || owed->token != effect->token)
        o->wrong = "it is owed, and the engine does not do it";
    else if (effect->kind == EFFECT_START && owed->work == NULL)
        o->wrong = "its work is owed, and nobody does it";
    else if (effect->kind == EFFECT_WAIT && owed->timer.at == 0)
        o->wrong = "it waits, and no timer is armed";
    else if (effect->kind == EFFECT_START && effect->timeout_ms > 0)
        o->wrong = wrong_timeout(owed);
}

static void check_memory(struct shell *s, struct run *run, const struct rv__run *r)
{
    char name[200];
    if (r->phase != RV__IDLE || r->owes_again)
        return; /* it is on its way: the next turns go on with it */
    struct owing owing = owing_of(r);
    struct outstanding o = { .shell = s, .run = run, .in_memory = &owing };
    rv__cell_outstanding(r->cell, see_effect, &o);
    if (o.wrong != NULL)
        judge_fail(&s->world, run, "performed", "%s: %s",
                   work_name(run, o.actor, name, sizeof name), o.wrong);
    else if (owing.count != o.count)
        judge_fail(&s->world, run, "owed", "%zu things are owed, the engine does %zu", o.count,
                   owing.count);
    free(owing.all);
    if (r->calls != NULL)
        judge_fail(&s->world, run, "calls", "a call is not answered, though nothing is left to do");
    if (run->rec.insts > SMALL || s->world.failed)
        return;
    struct rv__buf ours, disk;
    rv__buf_init(&ours, SIZE_MAX);
    rv__buf_init(&disk, SIZE_MAX);
    if (rv__cell_save(r->cell, &ours, NULL) < 0 || rv__cell_save(run->shadow, &disk, NULL) < 0)
        judge_fail(&s->world, run, "save", "a cell cannot be saved");
    else if (!rv__str_eq(rv__buf_view(&ours), rv__buf_view(&disk)))
        judge_fail(&s->world, run, "evolve", "in memory it is %s\n  and on disk %s", ours.text,
                   disk.text);
    rv__buf_done(&ours);
    rv__buf_done(&disk);
}

/* Would a process that knows only the disk find all that is to be done? */
static int see_run(void *arg, const struct rv__store_run *row)
{
    struct outstanding *o = arg;
    struct world *world = &o->shell->world;
    struct rv__cell *cell = o->run->shadow;
    enum rv__run_status status = rv__cell_status(cell);
    bool wants = rv__cell_more(cell) || rv__cell_working(cell) > 0;
    for (int lane = 1; lane < LANES; lane++)
        wants |= rv__cell_wants(cell, (enum rv__lane)lane);
    rv__cell_outstanding(cell, see_effect, o);
    if (!rv__str_is(row->status, rv__run_status_name(status)))
        judge_fail(world, o->run, "row", "its row says it is %.*s, the journal %s",
                   RV__ARG(row->status), rv__run_status_name(status));
    else if (!row->active && (wants || o->work))
        judge_fail(world, o->run, "row", "its row says it is at rest, and it is not");
    else if (!row->active && row->wake_at_ms != o->due_ms)
        judge_fail(world, o->run, "row", "it sleeps until %lld, and something is due at %lld",
                   (long long)row->wake_at_ms, (long long)o->due_ms);
    else if (row->active && crowd_given(o->shell, o->run) && row->wake_at_ms != o->due_ms)
        judge_fail(world, o->run, "row", "it was given until %lld, and something is due at %lld",
                   (long long)row->wake_at_ms, (long long)o->due_ms);
    else if (row->active && row->wake_at_ms != 0 && !crowd_given(o->shell, o->run))
        judge_fail(world, o->run, "row", "it is active, and yet sleeps");
    else if (o->shell->crowd == NULL && row->wake_at_ms != 0 && !o->held &&
             !o->shell->engine->load.scanning && o->shell->engine->load.due_place.number == 0 &&
             (o->shell->engine->load.wake_ms == 0 ||
              o->shell->engine->load.wake_ms > row->wake_at_ms))
        judge_fail(world, o->run, "wake", "it sleeps until %lld, and the engine until %lld",
                   (long long)row->wake_at_ms, (long long)o->shell->engine->load.wake_ms);
    else if (o->shell->crowd == NULL && row->active && !o->held &&
             !o->shell->engine->load.scanning && !o->shell->engine->load.more_active)
        judge_fail(world, o->run, "lost", "its row says it is active, and nobody has it");
    else if (!rv__str_eq(row->error, rv__cell_error(cell)) ||
             !rv__str_eq(row->failed_step, rv__cell_failed_step(cell)))
        judge_fail(world, o->run, "row", "its error is '%.*s' of '%.*s', in its row '%.*s'",
                   RV__ARG(rv__cell_error(cell)), RV__ARG(rv__cell_failed_step(cell)),
                   RV__ARG(row->error));
    else if (rv__run_terminal(status) != (row->completed_ms != 0))
        judge_fail(world, o->run, "row", "it is %s, and its end is %lld",
                   rv__run_status_name(status), (long long)row->completed_ms);
    return RV_OK;
}

static void check_row(struct shell *s, struct run *run, const struct rv__run *r)
{
    struct outstanding o = { .shell = s, .run = run, .held = r != NULL && r->cell != NULL };
    rv_error err = { .message = "" };
    if (r != NULL && r->phase != RV__IDLE && r->phase != RV__ABSENT)
        return;
    if (s->crowd != NULL && crowd_busy(s, run))
        return;
    int rc = rv__store_run(s->world.disk, rv__str(run->id), see_run, &o, &err);
    if (rc < 0)
        judge_fail(&s->world, run, "row", "its row cannot be read: %s", err.message);
}

/* Work that nobody asks for any more knows it. */
static void check_told(struct shell *s)
{
    rv_engine *e = s->engine;
    for (const struct rv__attempt *c = e->in_flight; c != NULL && !s->world.failed;
         c = c->all_next) {
        const struct rv__owed *owed = c->run->owed;
        while (owed != NULL && owed->work != c)
            owed = owed->run_next;
        if (owed == NULL && c->life == e->life && c->run->phase == RV__IDLE &&
            c->place != LANE_NONE && !rv_cancel_fired(c->ctx.work.token))
            judge_fail(&s->world, shell_find(s, c->run->id), "told",
                       "work goes on that nobody asks for, and is not told");
    }
}

static void maybe_over(struct shell *s, struct run *run)
{
    struct world *world = &s->world;
    enum rv__run_status status = rv__cell_status(run->shadow);
    if (world->failed || !rv__run_terminal(status) || rv__cell_active(run->shadow))
        return;
    run->cell = run->shadow;
    judge_over(world, run);
    run->cell = NULL;
    run->over = true;
}

static void check_one(struct shell *s)
{
    rv_engine *e = s->engine;
    size_t found = 0, owed = 0;
    s->world.disk = disk_seen(s);
    for (const struct answer *a = s->answers; a != NULL; a = a->next)
        a->run->untimely |= a->due_ms < shell_ms(s); /* a wait or a close has made it late */
    for (struct run *run = s->world.runs; run != NULL && !s->world.failed; run = run->next) {
        struct rv__run *r = rv__run_find(e, run->id);
        found += r != NULL;
        for (const struct rv__owed *w = r != NULL ? r->owed : NULL; w != NULL; w = w->run_next)
            owed++;
        if (!run->began)
            continue;
        if (!run->over)
            shell_watch(s, run);
        if (r != NULL && !s->world.failed)
            check_memory(s, run, r);
        if (r != NULL && !s->world.failed && s->crowd != NULL)
            crowd_holds(s, run, r);
        if (!s->world.failed)
            check_row(s, run, r);
        if (!run->over)
            maybe_over(s, run);
    }
    if (s->world.failed)
        return;
    if (found != e->run_count)
        judge_fail(&s->world, NULL, "runs", "%zu runs are in memory, %zu are ours", e->run_count,
                   found);
    if (owed != e->owed_count)
        judge_fail(&s->world, NULL, "owed", "%zu things are owed, of our runs %zu", e->owed_count,
                   owed);
    check_places(s, NULL);
    check_told(s);
}

void shell_check(struct shell *s)
{
    if (s->crowd != NULL)
        crowd_each(s, false, check_one);
    else
        check_one(s);
}

/* Nothing is under way anywhere. */
void shell_quiet(struct shell *s, struct run *run)
{
    run->cell = run->shadow;
    judge_quiet(&s->world, run);
    run->cell = NULL;
    const struct rv__run *r = rv__run_find(s->engine, run->id);
    if (r != NULL && r->cell != NULL && rv__cell_wants(r->cell, LANE_NOBODY))
        judge_fail(&s->world, run, "missing", "what was missing is there, and it does not go on");
}

/* Those of steps: what the engine itself has to say of a failure is an error. */
static int count_line(void *arg, const struct rv__store_log *line)
{
    struct shell *s = arg;
    s->stored += line->level == STORE_INFO;
    return RV_OK;
}

/* All runs are over: nothing of them is left in memory. */
void shell_over(struct shell *s)
{
    rv_engine *e = s->engine;
    struct world *world = &s->world;
    bool wanted = false;
    for (int lane = 1; lane < LANES; lane++)
        wanted |= e->lanes[lane].first != NULL || e->lanes[lane].taken != 0;
    for (size_t i = 0; i < e->workers.class_count; i++)
        wanted |= e->workers.classes[i].first != NULL;
    for (size_t i = 0; i < e->limits.count; i++)
        wanted |= e->limits.at[i].first != NULL || e->limits.at[i].taken != 0;
    if (e->run_count > 0 || e->owed_count > 0 || e->in_flight != NULL || e->deciding != NULL ||
        e->commit.away > 0 || e->writing > 0 || e->load.cell_bytes > 0 || e->load.waiting > 0 ||
        e->load.under_way > 0 || wanted || (e->load.wake_ms != 0 && s->crowd == NULL) ||
        rv__timers_first(&e->waits) != NULL || rv__timers_first(&e->timeouts) != NULL ||
        rv__timers_first(&e->kit->slow) != NULL)
        judge_fail(world, NULL, "left",
                   "all is over; left are %zu runs, %zu things owed, %s in flight, %s wanted, a "
                   "wake at %lld, %s",
                   e->run_count, e->owed_count, e->in_flight != NULL ? "something" : "nothing",
                   wanted ? "something" : "nothing", (long long)e->load.wake_ms,
                   rv__timers_first(&e->waits) != NULL ? "timers" : "no timers");
    /* Each line that a step said, once; where processes died, some may be gone. */
    struct rv__store_log_query query = { .limit = SIZE_MAX / 2 };
    bool died = s->crowd != NULL || s->lives > 1 || e->kit->crashes > 0 ||
                world->faults.happened[FAULT_SHUTDOWN] > 0;
    s->stored = 0;
    world->disk = disk_seen(s);
    (void)rv__store_logs(world->disk, &query, count_line, s, NULL);
    if (s->stored > s->lines || (!died && s->stored < s->lines))
        judge_fail(world, NULL, "logs", "%llu lines were said, %llu are on disk",
                   (unsigned long long)s->lines, (unsigned long long)s->stored);
}

/* ------------------------------------------------------------------------------- answers --- */

static bool same_json(const char *a, struct rv__str b)
{
    json_t *left = NULL, *right = NULL;
    bool same = rv__json_load(rv__str(a), &left, NULL) == RV_OK &&
                rv__json_load(b, &right, NULL) == RV_OK && json_equal(left, right);
    json_decref(left);
    json_decref(right);
    return same;
}

/* A status as users have it: by its name, for the numbers differ. */
static bool is_status(int told, const struct rv__cell *cell)
{
    const char *name = rv_status_name(told);
    return name != NULL && strcmp(name, rv__run_status_name(rv__cell_status(cell))) == 0;
}

/* What somebody was told of a run. */
struct answered {
    struct shell *shell;
    struct run *run;
    const char *who;
    int status;
    const char *error, *failed_step, *failed_path, *results;
    char wrong[700]; /* what does not fit; "": all does */
};

static void compare_answer(struct answered *a)
{
    struct shell *s = a->shell;
    struct rv__cell *cell = a->run->shadow;
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    store_rows_init(&rows, &s->world, a->run);
    rv__buf_init(&text, SIZE_MAX);
    a->wrong[0] = '\0';
    if (!is_status(a->status, cell))
        snprintf(a->wrong, sizeof a->wrong, "it is %s; on disk it is %s", rv_status_name(a->status),
                 rv__run_status_name(rv__cell_status(cell)));
    else if (!rv__str_is(rv__cell_error(cell), a->error) &&
             (rv__cell_error(cell).len > 0 || *a->error))
        snprintf(a->wrong, sizeof a->wrong, "its error is '%.300s'", a->error);
    else if (!rv__str_is(rv__cell_failed_step(cell), a->failed_step) &&
             (rv__cell_failed_step(cell).len > 0 || *a->failed_step))
        snprintf(a->wrong, sizeof a->wrong, "'%s' failed", a->failed_step);
    else if (!rv__str_is(rv__cell_failed_path(cell), a->failed_path) &&
             (rv__cell_failed_path(cell).len > 0 || *a->failed_path))
        snprintf(a->wrong, sizeof a->wrong, "it failed at '%.300s'", a->failed_path);
    else if (rv__cell_results(cell, &rows.source, &text, NULL, &err) < 0)
        judge_fail(&s->world, a->run, "results", "the results cannot be read: %s", err.message);
    else if (!same_json(a->results, rv__buf_view(&text)))
        snprintf(a->wrong, sizeof a->wrong, "the results are %.300s\n  on disk %.300s", a->results,
                 text.text);
    rv__buf_done(&text);
}

/* The next row of a journal, kept: nobody may ask the store while it shows one. */
struct next_row {
    uint64_t seq;
    char *facts;
};

static int take_next_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct next_row *row = arg;
    if (row->facts != NULL)
        return 1; /* one at a time */
    *row = (struct next_row){ seq, sim_copy(facts) };
    return RV_OK;
}

/* It is what was on disk when it was said, which is between what was seen of it last and now. */
static void check_answer(struct answered *a)
{
    struct shell *s = a->shell;
    struct watching w = { s, a->run };
    if (s->world.failed)
        return;
    s->world.disk = disk_seen(s);
    s->world.mono_ms = shell_ms(s);
    compare_answer(a);
    while (a->wrong[0] != '\0' && !s->world.failed) {
        struct next_row row = { 0, NULL };
        rv_error err = { .message = "" };
        if (rv__store_journal(s->world.disk, rv__str(a->run->id), a->run->seq, take_next_row, &row,
                              &err) < 0)
            judge_fail(&s->world, a->run, "journal", "it cannot be read: %s", err.message);
        if (row.facts == NULL)
            break;
        if (see_row(&w, row.seq, rv__str(row.facts)) == RV_OK)
            compare_answer(a);
        free(row.facts);
    }
    if (a->wrong[0] != '\0' && !s->world.failed)
        judge_fail(&s->world, a->run, "answer", "%s says %s", a->who, a->wrong);
    shell_watch(s, a->run);
}

void shell_outcome(struct shell *s, struct run *run, const rv_outcome *outcome)
{
    if (outcome->status < RV_COMPLETED)
        judge_fail(&s->world, run, "answer", "a wait ends, and the run is %s",
                   rv_status_name(outcome->status));
    check_answer(&(struct answered){ s, run, "rv_wait", outcome->status, outcome->error,
                                     outcome->failed_step, outcome->failed_path,
                                     outcome->results });
}

void shell_state(struct shell *s, struct run *run)
{
    rv_run_state *state = NULL;
    rv_error err = { .message = "" };
    shell_watch(s, run);
    uint64_t seq = run->seq;
    bool stale = crowd_is_stale(s) || crowd_is_behind(s, run);
    int rc = rv_state(s->engine, run->id, &state, &err);
    if (crowd_excuses(s, rc))
        return;
    if (rc < 0) {
        judge_fail(&s->world, run, "answer", "rv_state fails: %s", err.message);
        return;
    }
    /* Else the member stood still while it answered, or before, and others went on: it knows what was. */
    if (run->seq == seq && !stale && !crowd_is_stale(s))
        check_answer(&(struct answered){ s, run, "rv_state", state->status, state->error,
                                         state->failed_step, state->failed_path, state->results });
    rv_run_state_free(state);
}

void shell_list(struct shell *s)
{
    rv_run_list *list = NULL;
    rv_error err = { .message = "" };
    size_t begun = 0;
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        begun += run->began;
    if (rv_list(s->engine, RV_QUERY(.limit = 1000), &list, &err) < 0) {
        judge_fail(&s->world, NULL, "answer", "rv_list fails: %s", err.message);
        return;
    }
    /* Of members: one that begins may be there before its caller hears of it. */
    if (list->count < begun ||
        list->count > (s->crowd != NULL ? (size_t)s->world.run_count : begun))
        judge_fail(&s->world, NULL, "answer", "%zu runs are listed, of %zu", list->count, begun);
    for (size_t i = 0; i < list->count && !s->world.failed; i++) {
        struct run *run = shell_find(s, list->runs[i].run_id);
        if (run == NULL) {
            judge_fail(&s->world, NULL, "answer", "a run is listed that nobody started");
            break;
        }
        shell_watch(s, run);
        if (!s->world.failed && !is_status(list->runs[i].status, run->shadow))
            judge_fail(&s->world, run, "answer", "it is listed as %s; on disk it is %s",
                       rv_status_name(list->runs[i].status),
                       rv__run_status_name(rv__cell_status(run->shadow)));
    }
    rv_run_list_free(list);
}
