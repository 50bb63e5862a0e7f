/* shell_judge.c: what must hold of an engine, between calls, when a step begins, and at the end. What
 * has happened is what the journal says: it is read as any other process would read it. */
#include "shell.h"

#include <stdlib.h>

#include "base/json.h"

enum { SMALL = 60 }; /* actors of a cell that is compared whole */

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
    return judge_journal(&w->shell->world, w->run, facts) ? RV_OK : RV_ECANCELED;
}

void shell_watch(struct shell *s, struct run *run)
{
    struct watching w = { s, run };
    struct world *world = &s->world;
    rv_error err = { .message = "" };
    if (world->failed)
        return;
    world->disk = s->engine->step_reader;
    world->mono_ms = shell_ms(s);
    if (rv__store_journal(world->disk, rv__str(run->id), run->seq, see_row, &w, &err) < 0)
        judge_fail(world, run, "journal", "the journal cannot be read: %s", err.message);
}

/* ------------------------------------------------------------------------- a step begins --- */

static void check_places(struct shell *s, struct run *run, const rv_ctx *ctx)
{
    int64_t functions = 0, suspects = 0;
    rv_engine *e = s->engine;
    for (const struct rv_ctx *c = e->in_flight; c != NULL; c = c->all_next) {
        functions += c->life == e->life && (c->lane == LANE_FUNCTION || c->lane == LANE_SUSPECT);
        suspects += c->life == e->life && c->lane == LANE_SUSPECT;
    }
    if (functions > s->workers)
        judge_fail(&s->world, run, "places", "%lld pieces of work have begun, in %d places",
                   (long long)functions, s->workers);
    if (suspects > 1)
        judge_fail(&s->world, run, "suspect", "%lld suspects are in flight", (long long)suspects);
    if (ctx == NULL && functions != e->functions_in_flight)
        judge_fail(&s->world, NULL, "places", "%lld functions are counted in flight, %lld are",
                   (long long)e->functions_in_flight, (long long)functions);
    if (ctx == NULL && e->free_places[LANE_FUNCTION] + e->functions_in_flight != s->workers)
        judge_fail(&s->world, NULL, "places", "%lld places are free and %lld taken, of %d",
                   (long long)e->free_places[LANE_FUNCTION], (long long)e->functions_in_flight,
                   s->workers);
}

void shell_begins(struct shell *s, struct run *run, rv_ctx *ctx)
{
    struct world *world = &s->world;
    const struct rec_actor *actor = record_actor(&run->rec, ctx->view.actor);
    const char *path = rv_ctx_path(ctx);
    tell(s, "%s begins %s%s%s, attempt %d, token %llu", run->id, path, ctx->eval >= 0 ? " " : "",
         ctx->eval >= 0 ? rv__eval_name((enum rv__eval)ctx->eval) : "", ctx->view.attempt,
         (unsigned long long)ctx->view.token);
    tally.works++;
    if (ctx->life != s->engine->life)
        judge_fail(world, run, "life", "%s begins after its process has died", path);
    if (actor == NULL || actor->inst == NULL) {
        judge_fail(world, run, "durable", "%s begins, and nothing on disk says so", path);
        return;
    }
    const struct rec_inst *inst = actor->inst;
    if (rv_ctx_cancelled(ctx))
        return; /* ended meanwhile, and told so: it may do what it likes */
    if (ctx->eval >= 0 && inst->eval_running != ctx->eval)
        judge_fail(world, run, "durable", "%s evaluates, and nothing on disk says so", path);
    if (ctx->eval < 0 && (inst->attempt != ctx->view.attempt || inst->status != STATUS_RUNNING))
        judge_fail(world, run, inst->ended >= 0 ? "again" : "durable",
                   "%s begins attempt %d; on disk it is %s, attempt %d", path, ctx->view.attempt,
                   rv__status_name((enum rv__status)inst->status), inst->attempt);
    check_places(s, run, ctx);
    if (world->failed)
        return;
    /* The engine's plan is another copy of ours. */
    struct rv__view view = ctx->view;
    view.node = run->plan->plan->nodes[ctx->view.node->id];
    struct rv__effect effect = { .kind = EFFECT_START,
                                 .actor = view.actor,
                                 .token = view.token,
                                 .node = view.node,
                                 .eval = ctx->eval };
    judge_start(world, run, &effect, &view);
}

/* ----------------------------------------------------------------------- before a commit --- */

struct owing {
    const struct rv__owed *owed;
    bool found;
};

static void see_owed(void *arg, const struct rv__effect *effect)
{
    struct owing *o = arg;
    o->found |= effect->actor == o->owed->actor && effect->token == o->owed->token;
}

void shell_before(struct shell *s)
{
    char name[200];
    if (s->engine == NULL)
        return; /* it is being opened, and has done nothing yet */
    for (struct run *run = s->world.runs; run != NULL && !s->world.failed; run = run->next) {
        const struct rv__run *r = rv__run_find(s->engine, run->id);
        if (r == NULL || r->owed == NULL || run->over)
            continue;
        shell_watch(s, run);
        for (const struct rv__owed *w = r->owed; w != NULL && !s->world.failed; w = w->run_next) {
            struct owing o = { .owed = w };
            rv__cell_outstanding(run->shadow, see_owed, &o);
            if (!o.found)
                judge_fail(&s->world, run, "durable", "%s is acted on, and it is not on disk",
                           work_name(run, w->actor, name, sizeof name));
        }
    }
}

/* ------------------------------------------------------------------------- between calls --- */

struct outstanding {
    struct shell *shell;
    struct run *run;
    const struct rv__run *in_memory; /* NULL: what is owed is only looked at */
    bool held;                       /* its cell is in memory */
    size_t count;
    bool work;
    int64_t due_ms;
    const char *wrong;
    uint64_t actor;
};

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
    const struct rv__owed *owed = o->in_memory->owed;
    while (owed != NULL && owed->actor != effect->actor)
        owed = owed->run_next;
    o->actor = effect->actor;
    if (owed == NULL || owed->token != effect->token)
        o->wrong = "it is owed, and the engine does not do it";
    else if (effect->kind == EFFECT_START && owed->work == NULL)
        o->wrong = "its work is owed, and nobody does it";
    else if (effect->kind == EFFECT_WAIT && owed->timer.at == 0)
        o->wrong = "it waits, and no timer is armed";
    else if (effect->kind == EFFECT_START && effect->timeout_ms > 0 && owed->timer.at == 0)
        o->wrong = "it has a time-out, and no timer is armed";
}

static void check_memory(struct shell *s, struct run *run, const struct rv__run *r)
{
    struct outstanding o = { .shell = s, .run = run, .in_memory = r };
    size_t owed = 0;
    char name[200];
    if (r->cell == NULL || r->dirty || r->facts.count > 0)
        return; /* the next turn goes on with it */
    rv__cell_outstanding(r->cell, see_effect, &o);
    for (const struct rv__owed *w = r->owed; w != NULL; w = w->run_next)
        owed++;
    if (o.wrong != NULL)
        judge_fail(&s->world, run, "performed", "%s: %s",
                   work_name(run, o.actor, name, sizeof name), o.wrong);
    else if (owed != o.count)
        judge_fail(&s->world, run, "owed", "%zu things are owed, the engine does %zu", o.count,
                   owed);
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
    else if (row->active && row->wake_at_ms != 0)
        judge_fail(world, o->run, "row", "it is active, and yet sleeps");
    else if (row->wake_at_ms != 0 && !o->held &&
             (o->shell->engine->store_wake_ms == 0 ||
              o->shell->engine->store_wake_ms > row->wake_at_ms))
        judge_fail(world, o->run, "wake", "it sleeps until %lld, and the engine until %lld",
                   (long long)row->wake_at_ms, (long long)o->shell->engine->store_wake_ms);
    else if (row->active && !o->held)
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
    if (r != NULL && (r->dirty || r->facts.count > 0))
        return;
    int rc = rv__store_run(s->world.disk, rv__str(run->id), see_run, &o, &err);
    if (rc < 0)
        judge_fail(&s->world, run, "row", "its row cannot be read: %s", err.message);
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

void shell_check(struct shell *s)
{
    rv_engine *e = s->engine;
    size_t found = 0, owed = 0;
    s->world.disk = e->step_reader;
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
    check_places(s, NULL, NULL);
    bool wanted = e->want_first[LANE_FUNCTION] != NULL ||
                  (e->want_first[LANE_SUSPECT] != NULL && !e->suspect_in_flight);
    if (wanted && e->free_places[LANE_FUNCTION] > 0 && e->dirty == NULL && !e->closed)
        judge_fail(&s->world, NULL, "progress", "a place is free and wanted, and nobody gives it");
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
        wanted |= e->want_first[lane] != NULL;
    if (e->run_count > 0 || e->owed_count > 0 || e->in_flight != NULL || e->dirty != NULL ||
        e->late != NULL || wanted || e->store_wake_ms != 0 || e->suspect_in_flight ||
        rv__timers_first(&e->waits) != NULL || rv__timers_first(&e->timeouts) != NULL ||
        rv__timers_first(&e->kit->slow) != NULL)
        judge_fail(world, NULL, "left",
                   "all is over; left are %zu runs, %zu things owed, %s in flight, %s wanted, a "
                   "wake at %lld, %s",
                   e->run_count, e->owed_count, e->in_flight != NULL ? "something" : "nothing",
                   wanted ? "something" : "nothing", (long long)e->store_wake_ms,
                   rv__timers_first(&e->waits) != NULL ? "timers" : "no timers");
    /* Each line that a step said, once; where processes died, some may be gone. */
    struct rv__store_log_query query = { .limit = SIZE_MAX / 2 };
    bool died = s->lives > 1 || e->kit->crashes > 0 || world->faults.happened[FAULT_SHUTDOWN] > 0;
    s->stored = 0;
    world->disk = e->step_reader;
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

static void check_answer(struct shell *s, struct run *run, const char *who, int status,
                         const char *error, const char *failed_step, const char *results)
{
    struct rv__cell *cell = run->shadow;
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    if (s->world.failed)
        return;
    s->world.disk = s->engine->step_reader;
    store_rows_init(&rows, &s->world, run);
    rv__buf_init(&text, SIZE_MAX);
    if (status != (int)rv__cell_status(cell))
        judge_fail(&s->world, run, "answer", "%s says it is %s; on disk it is %s", who,
                   rv_status_name(status), rv__run_status_name(rv__cell_status(cell)));
    else if (!rv__str_is(rv__cell_error(cell), error) && (rv__cell_error(cell).len > 0 || *error))
        judge_fail(&s->world, run, "answer", "%s says its error is '%s'", who, error);
    else if (!rv__str_is(rv__cell_failed_step(cell), failed_step) &&
             (rv__cell_failed_step(cell).len > 0 || *failed_step))
        judge_fail(&s->world, run, "answer", "%s says '%s' failed", who, failed_step);
    else if (rv__cell_results(cell, &rows.source, &text, &err) < 0)
        judge_fail(&s->world, run, "results", "the results cannot be read: %s", err.message);
    else if (!same_json(results, rv__buf_view(&text)))
        judge_fail(&s->world, run, "answer", "%s says the results are %.300s\n  on disk %.300s",
                   who, results, text.text);
    rv__buf_done(&text);
}

void shell_outcome(struct shell *s, struct run *run, const rv_outcome *outcome)
{
    shell_watch(s, run);
    if (!rv__run_terminal((enum rv__run_status)outcome->status))
        judge_fail(&s->world, run, "answer", "a wait ends, and the run is %s",
                   rv_status_name(outcome->status));
    check_answer(s, run, "rv_wait", outcome->status, outcome->error, outcome->failed_step,
                 outcome->results);
}

void shell_state(struct shell *s, struct run *run)
{
    rv_run_state *state = NULL;
    rv_error err = { .message = "" };
    if (rv_state(s->engine, run->id, &state, &err) < 0) {
        judge_fail(&s->world, run, "answer", "rv_state fails: %s", err.message);
        return;
    }
    shell_watch(s, run);
    check_answer(s, run, "rv_state", state->status, state->error, state->failed_step,
                 state->results);
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
    if (list->count != begun)
        judge_fail(&s->world, NULL, "answer", "%zu runs are listed, of %zu", list->count, begun);
    for (size_t i = 0; i < list->count && !s->world.failed; i++) {
        struct run *run = shell_find(s, list->runs[i].run_id);
        if (run == NULL) {
            judge_fail(&s->world, NULL, "answer", "a run is listed that nobody started");
            break;
        }
        shell_watch(s, run);
        if (!s->world.failed && list->runs[i].status != (int)rv__cell_status(run->shadow))
            judge_fail(&s->world, run, "answer", "it is listed as %s; on disk it is %s",
                       rv_status_name(list->runs[i].status),
                       rv__run_status_name(rv__cell_status(run->shadow)));
    }
    rv_run_list_free(list);
}
