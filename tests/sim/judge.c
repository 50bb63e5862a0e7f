/* judge.c: what must hold, checked on every message, fact and turn, and at the end.
 *
 * The judge reads the text of the facts (record.c), evolves a cell of its own over it (the shadow),
 * folds the effects, and asks reference.c what each piece of work may see and what should have come
 * out. ARCHITECTURE: durability rules; SPEC: steps, attempts, runs, control flow. */
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

enum {
    SMALL = 10000,  /* bytes of a cell that is compared whole on every turn */
    ENOUGH = 60000, /* facts read again after deaths of a world's process */
};

void judge_fail(struct world *world, const struct run *run, const char *check, const char *fmt, ...)
{
    va_list args;
    if (world->failed)
        return; /* the first one counts */
    rv__test_fail_alloc_after(-1);
    world->failed = true;
    world->check = check;
    int n = snprintf(world->why, sizeof world->why, "%s%s", run != NULL ? run->id : "",
                     run != NULL ? ": " : "");
    va_start(args, fmt);
    vsnprintf(world->why + n, sizeof world->why - (size_t)n, fmt, args);
    va_end(args);
    trace(world, "FAILS the check '%s': %s", check, world->why);
}

/* ------------------------------------------------------------------------------ comparing --- */

bool same_blob(const struct rv__blob *a, const struct rv__blob *b, const char *none)
{
    struct rv__str x = rv__blob_str(a), y = rv__blob_str(b);
    return rv__str_eq(rv__str_none(x) ? rv__str(none) : x, rv__str_none(y) ? rv__str(none) : y);
}

void judge_difference(struct world *world, struct run *run, const char *check, const char *what,
                      struct rv__str a, struct rv__str b)
{
    size_t at = 0;
    while (at < a.len && at < b.len && a.at[at] == b.at[at])
        at++;
    size_t from = at > 60 ? at - 60 : 0;
    judge_fail(world, run, check, "%s:\n    …%.*s\n    …%.*s", what,
               (int)(a.len - from > 300 ? 300 : a.len - from), a.at + from,
               (int)(b.len - from > 300 ? 300 : b.len - from), b.at + from);
}

json_t *judge_parse(struct world *world, struct run *run, const struct rv__buf *text)
{
    json_t *value = NULL;
    rv_error err;
    if (rv__json_load(rv__buf_view(text), &value, &err) < 0)
        judge_fail(world, run, "json", "%s in %.200s", err.message, text->text);
    return value;
}

void judge_compare(struct world *world, struct run *run, const char *check, const char *what,
                   json_t *expected, const struct rv__buf *actual)
{
    json_t *got = judge_parse(world, run, actual);
    if (got != NULL && !json_agrees(expected, got)) {
        char *a = json_dumps(expected, JSON_SORT_KEYS | JSON_COMPACT);
        char *b = json_dumps(got, JSON_SORT_KEYS | JSON_COMPACT);
        judge_difference(world, run, check, what, rv__str(a), rv__str(b));
        if (world->trace)
            trace(world, "expected %s\n             got      %s", a, b);
        free(a);
        free(b);
    }
    json_decref(got);
    json_decref(expected);
}

/* ---------------------------------------------------------------------------- what is owed --- */

const struct rv__effect *judge_owed(const struct run *run, uint64_t actor)
{
    if (actor >= run->owed_at_cap || run->owed_at[actor] == 0)
        return NULL;
    return &run->owed[run->owed_at[actor] - 1];
}

void judge_owe(struct run *run, const struct rv__effect *effect)
{
    uint64_t actor = effect->actor;
    if (actor >= run->owed_at_cap) {
        size_t cap = run->owed_at_cap > 0 ? run->owed_at_cap : 64;
        while (cap <= actor)
            cap *= 2;
        run->owed_at = sim_grow(run->owed_at, cap * sizeof *run->owed_at);
        memset(run->owed_at + run->owed_at_cap, 0, (cap - run->owed_at_cap) * sizeof *run->owed_at);
        run->owed_at_cap = cap;
    }
    uint32_t at = run->owed_at[actor];
    if (effect->kind == EFFECT_STOP) {
        if (at == 0)
            return;
        run->owed[at - 1] = run->owed[--run->owed_count];
        run->owed_at[run->owed[at - 1].actor] = at;
        run->owed_at[actor] = 0;
        return;
    }
    if (at == 0) {
        if (run->owed_count == run->owed_cap) {
            run->owed_cap = run->owed_cap > 0 ? run->owed_cap * 2 : 16;
            run->owed = sim_grow(run->owed, run->owed_cap * sizeof *run->owed);
        }
        at = (uint32_t)++run->owed_count;
        run->owed_at[actor] = at;
    }
    run->owed[at - 1] = *effect;
}

void judge_forget(struct run *run)
{
    run->owed_count = 0;
    if (run->owed_at_cap > 0)
        memset(run->owed_at, 0, run->owed_at_cap * sizeof *run->owed_at);
}

struct tallying {
    const struct run *run;
    size_t count;
    const char *wrong;
    uint64_t actor;
};

static void compare_owed(void *arg, const struct rv__effect *effect)
{
    struct tallying *t = arg;
    const struct rv__effect *folded = judge_owed(t->run, effect->actor);
    t->count++;
    if (t->wrong != NULL)
        return;
    t->actor = effect->actor;
    if (folded == NULL)
        t->wrong = "it is owed by the state, and no effect said so";
    else if (folded->kind != effect->kind || folded->token != effect->token ||
             folded->node != effect->node || folded->eval != effect->eval ||
             folded->due_ms != effect->due_ms || folded->timeout_ms != effect->timeout_ms)
        t->wrong = "the state owes something else than the effect said";
}

static void check_outstanding(struct world *world, struct run *run)
{
    struct tallying t = { .run = run };
    char name[200];
    rv__cell_outstanding(run->cell, compare_owed, &t);
    if (t.wrong == NULL && t.count != run->owed_count)
        judge_fail(world, run, "outstanding", "effects owe %zu things, the state %zu",
                   run->owed_count, t.count);
    else if (t.wrong != NULL)
        judge_fail(world, run, "outstanding", "%s: %s", work_name(run, t.actor, name, sizeof name),
                   t.wrong);
}

/* ----------------------------------------------------------------------------------- facts --- */

struct rv__str judge_next_fact(struct rv__str text, size_t *at)
{
    if (*at < text.len && text.at[*at] == ',')
        ++*at;
    const char *from = text.at + *at;
    const char *to = rv__json_skip(from, text.at + text.len);
    *at = (size_t)(to - text.at);
    return (struct rv__str){ from, (size_t)(to - from) };
}

enum origin { DECIDED, ON_DISK, READ_AGAIN };

static bool read_facts(struct world *world, struct run *run, struct rv__str text, size_t at,
                       enum origin origin)
{
    bool is_new = origin == DECIDED;
    while (at < text.len && !world->failed) {
        struct rv__str one = judge_next_fact(text, &at);
        struct rv__fact fact;
        rv_error err;
        const char *why;
        if (rv__json_check(one, RV__JSON_MAX_DEPTH, NULL, &err) < 0 ||
            rv__fact_read(one, &fact, &err) < 0) {
            judge_fail(world, run, "fact", "%s: %.*s", err.message, RV__ARG(one));
            return false;
        }
        values_of_fact(world, run, one, &fact);
        if (origin != READ_AGAIN)
            trace(world, "  %s  %.*s", run->id, RV__ARG(one));
        if (is_new && fact.at_ms != wall_ms(world))
            judge_fail(world, run, "fact", "it has another time than now: %.*s", RV__ARG(one));
        if (!record_fact(&run->rec, &fact, &why))
            judge_fail(world, run, "fact", "%s: %.*s", why, RV__ARG(one));
        else if (fact.kind == FACT_RUN_SUSPENDED && is_new && fact.actor != 0 && fact.which == 0 &&
                 run->rec.actors[fact.actor].blames <= run->rec.max_crashes)
            judge_fail(world, run, "fact", "a run is suspended without need: %.*s", RV__ARG(one));
        rv__fact_done(&fact);
    }
    return !world->failed;
}

void judge_facts(struct world *world, struct run *run)
{
    if (run->judged < run->facts.json.len)
        read_facts(world, run, rv__buf_view(&run->facts.json), run->judged, DECIDED);
    run->judged = run->facts.json.len;
}

/* Every place that was given is carried by an effect, once; and no work starts without one. */
static void check_place(struct world *world, struct run *run, const struct rv__effect *effect)
{
    const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
    bool starts = effect->kind == EFFECT_START;
    if (effect->place != LANE_NONE && run->given[effect->place]-- == 0)
        judge_fail(world, run, "grant", "an effect carries a place that was not given");
    if (starts && effect->place == LANE_NONE)
        judge_fail(world, run, "grant", "work starts without a place");
    if (starts && actor != NULL && actor->suspect != (effect->place == LANE_SUSPECT))
        judge_fail(world, run, "suspect", "a suspect needs a place of theirs, and nobody else");
}

void judge_effects(struct world *world, struct run *run)
{
    struct rv__effect effect;
    while (rv__cell_effect(run->cell, &effect)) {
        judge_owe(run, &effect);
        check_place(world, run, &effect);
        if (world->note_count == world->note_cap) {
            world->note_cap = world->note_cap > 0 ? world->note_cap * 2 : 64;
            world->notes = sim_grow(world->notes, world->note_cap * sizeof *world->notes);
        }
        world->notes[world->note_count++] = (struct effect_note){ run, effect };
    }
    for (int lane = 0; lane < LANES; lane++)
        if (run->given[lane] > 0)
            judge_fail(world, run, "grant", "a place was given, and no effect carries it");
}

/* What is taken is in use, or carried by an effect that is on its way. */
void judge_places(struct world *world)
{
    int used[LANES] = { 0 };
    for (const struct work *w = world->works; w != NULL; w = w->next)
        used[w->lane]++;
    for (size_t i = 0; i < world->note_count; i++)
        used[world->notes[i].effect.place]++;
    for (int lane = LANE_FUNCTION; lane < LANES; lane++) {
        if (used[lane] != world->taken[lane])
            judge_fail(world, NULL, "places", "%d places are taken and %d in use",
                       world->taken[lane], used[lane]);
        int all = used[lane] + (lane == LANE_FUNCTION ? used[LANE_SUSPECT] : 0);
        if (all > world->places[lane])
            judge_fail(world, NULL, "places", "%d of %d places are in use", all,
                       world->places[lane]);
    }
}

/* ----------------------------------------------------------------------------------- turns --- */

static bool save(struct world *world, struct run *run, struct rv__cell *cell, struct rv__buf *out)
{
    rv_error err;
    rv__buf_init(out, SIZE_MAX);
    if (rv__cell_save(cell, out, &err) < 0) {
        judge_fail(world, run, "save", "a cell cannot be saved: %s", err.message);
        return false;
    }
    return true;
}

static void check_state(struct world *world, struct run *run)
{
    struct rv__buf one, two;
    struct rv__cell_opts opts = { .plan = run->plan->plan,
                                  .max_crashes = world->max_crashes,
                                  .value_inline = world->value_inline };
    struct rv__cell *loaded = NULL;
    rv_error err;
    if (!save(world, run, run->cell, &one)) {
        rv__buf_done(&one);
        return;
    }
    run->saved_bytes = one.len;
    if (save(world, run, run->shadow, &two) && !rv__str_eq(rv__buf_view(&one), rv__buf_view(&two)))
        judge_difference(world, run, "evolve", "the facts do not give the state again",
                         rv__buf_view(&one), rv__buf_view(&two));
    rv__buf_done(&two);
    if (!world->failed && one_in(&world->chance, 8)) {
        if (rv__cell_load(&opts, rv__buf_view(&one), &loaded, &err) < 0) {
            judge_fail(world, run, "load", "a saved cell cannot be read: %s", err.message);
        } else {
            if (save(world, run, loaded, &two) &&
                !rv__str_eq(rv__buf_view(&one), rv__buf_view(&two)))
                judge_difference(world, run, "load", "a saved state is not the same when read",
                                 rv__buf_view(&one), rv__buf_view(&two));
            rv__buf_done(&two);
            if (!world->failed && one_in(&world->chance, 4)) {
                rv__cell_free(run->shadow); /* from now on the one that was read must keep up */
                run->shadow = loaded;
                loaded = NULL;
            }
        }
        rv__cell_free(loaded);
    }
    rv__buf_done(&one);
}

static bool waits_for_someone(const struct run *run)
{
    for (const struct rec_inst *i = run->rec.first_wait; i != NULL; i = i->wait_next)
        if (record_alive(&run->rec, i))
            return true;
    return false;
}

/* A state that may begin wants a place, if it does not begin at once. */
static void check_stages(struct world *world, struct run *run)
{
    char name[200];
    for (size_t b = 0; b < run->rec.bucket_count; b++)
        for (const struct rec_inst *i = run->rec.buckets[b]; i != NULL; i = i->chain) {
            const struct rv__node *node = run->plan->plan->nodes[i->node];
            if (node->kind == NODE_STAGE && i->stage.states != NULL && i->ended < 0 &&
                stage_next(&i->stage, node) != RV__NO_STATE && record_alive(&run->rec, i))
                judge_fail(world, run, "progress", "a state of %s may begin, and does not",
                           work_name(run, i->actor, name, sizeof name));
        }
}

static void check_progress(struct world *world, struct run *run)
{
    const struct rv__cell *cell = run->cell;
    enum rv__run_status status = rv__cell_status(cell);
    bool wants = false;
    for (int lane = LANE_FUNCTION; lane < LANES; lane++)
        wants |= rv__cell_wants(cell, (enum rv__lane)lane);
    if (!run->world->missing && rv__cell_wants(cell, LANE_NOBODY))
        judge_fail(world, run, "lanes", "it waits for nobody, and all functions are there");
    if (status != run->rec.status)
        judge_fail(world, run, "status", "it is %s, and its facts say %s",
                   rv__run_status_name(status), rv__run_status_name(run->rec.status));
    if (!wants && !rv__cell_more(cell) && status != RUN_SUSPENDED)
        check_stages(world, run);
    if (wants || rv__cell_more(cell) || run->owed_count > 0 || status == RUN_SUSPENDED ||
        !rv__cell_active(cell))
        return;
    if (!waits_for_someone(run))
        judge_fail(world, run, "progress",
                   "it is alive, and nothing is owed, wanted, to do, or waited for");
}

/* Whatever follows from what is known has happened: nothing that has all it waited for is open. */
static void check_overdue(struct world *world, struct run *run)
{
    struct reference ref = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    char name[200];
    for (size_t b = 0; b < run->rec.bucket_count; b++)
        for (const struct rec_inst *i = run->rec.buckets[b]; i != NULL; i = i->chain)
            if (i->ended < 0 && run->plan->plan->nodes[i->node]->kind != NODE_STEP &&
                record_alive(&run->rec, i) && reference_overdue(&ref, i))
                judge_fail(world, run, "overdue", "%s has all it waited for, and has not ended",
                           work_name(run, i->actor, name, sizeof name));
}

void judge_turn(struct world *world, struct run *run)
{
    rv_error err;
    struct rv__str text = rv__buf_view(&run->facts.json);
    size_t at = run->shadowed;
    judge_effects(world, run);
    if (at < text.len && text.at[at] == ',')
        at++;
    if (at < text.len &&
        rv__cell_replay_json(run->shadow, (struct rv__str){ text.at + at, text.len - at }, &err) <
            0) {
        judge_fail(world, run, "replay", "the facts cannot be replayed: %s", err.message);
        return;
    }
    run->shadowed = text.len;
    size_t bytes = run->saved_bytes;
    if (bytes > SMALL && !one_in(&world->chance, bytes / (SMALL / 4)))
        return;
    check_state(world, run);
    if (world->failed || run->facts.count == 0)
        return; /* it was just loaded: what is owed is not known yet */
    check_progress(world, run);
    check_outstanding(world, run);
    if (!world->failed && run->rec.insts < 60 && one_in(&world->chance, 4) &&
        !rv__cell_more(run->cell) && rv__cell_status(run->cell) != RUN_SUSPENDED)
        check_overdue(world, run);
}

struct rebuild {
    struct world *world;
    struct run *run;
};

static int rebuild_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct rebuild *r = arg;
    rv_error err;
    (void)seq;
    if (!read_facts(r->world, r->run, facts, 0, READ_AGAIN))
        return RV_ECANCELED;
    if (rv__cell_replay_json(r->run->shadow, facts, &err) < 0) {
        judge_fail(r->world, r->run, "replay", "the journal cannot be replayed: %s", err.message);
        return RV_ECANCELED;
    }
    return RV_OK;
}

bool judge_journal(struct world *world, struct run *run, struct rv__str facts)
{
    rv_error err;
    if (!read_facts(world, run, facts, 0, ON_DISK))
        return false;
    if (rv__cell_replay_json(run->shadow, facts, &err) < 0)
        judge_fail(world, run, "replay", "the journal cannot be replayed: %s", err.message);
    run->durable_t = run->rec.t;
    return !world->failed;
}

void judge_rebuild(struct world *world, struct run *run)
{
    struct rebuild r = { world, run };
    struct rv__cell_opts opts = { run->plan->plan, world->max_crashes, world->value_inline };
    record_done(&run->rec);
    record_init(&run->rec, run->plan->plan, world->max_crashes);
    if (rv__cell_empty(&opts, &run->shadow, NULL) < 0)
        abort();
    (void)journal_rows(world, run, 0, rebuild_row, &r);
    run->durable_t = run->rec.t;
    world->rebuilt += (uint64_t)run->rec.t;
    if (world->rebuilt > ENOUGH) { /* a long run that dies all the time teaches nothing more */
        static const enum fault deaths[] = { FAULT_CRASH, FAULT_CRASH_COMMIT, FAULT_CRASH_RELEASE,
                                             FAULT_KILLER, FAULT_SHUTDOWN };
        for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
            world->faults.one_in[deaths[i]] = 0;
    }
    if (!run->rec.started) {
        rv__cell_free(run->shadow);
        run->shadow = NULL;
    }
}

/* ------------------------------------------------------------------------------------ ends --- */

static void compare_text(struct world *world, struct run *run, const char *check, const char *what,
                         const char *expected, size_t expected_len, struct rv__str got)
{
    if (!rv__str_eq((struct rv__str){ expected, expected_len }, got))
        judge_fail(world, run, check, "%s is '%.*s' and should be '%.*s'", what, RV__ARG(got),
                   (int)expected_len, expected);
}

static void compare_outcome(struct world *world, struct run *run, const char *check,
                            struct reference *ref, const struct rv__buf *results)
{
    struct ref_outcome should;
    struct rv__cell *cell = run->cell;
    enum rv__run_status status = rv__cell_status(cell);
    reference_run(ref, &should);
    /* Ended from outside, perhaps when all it waited for was there already. */
    bool outside = ref->rec != NULL && run->cancelled && status == RUN_CANCELLED;
    if (ref->unsure) {
        json_decref(should.results);
        json_decref(should.error);
        return;
    }
    if (ref->rec == NULL)
        tally.foreseen++;
    else
        tally.exact++;
    if (!outside && status != should.status)
        judge_fail(world, run, check, "it is %s and should be %s", rv__run_status_name(status),
                   rv__run_status_name(should.status));
    if (!world->failed)
        judge_compare(world, run, check, "the results", json_incref(should.results), results);
    json_decref(should.results);
    if (!world->failed && status == RUN_FAILED && !outside) {
        struct rv__buf text;
        rv__buf_init(&text, SIZE_MAX);
        rv__buf_str(&text, rv__cell_error(cell));
        if (should.error != NULL && text.len > 0)
            judge_compare(world, run, check, "the error", json_incref(should.error), &text);
        else
            judge_fail(world, run, check, "it failed without an error");
        rv__buf_done(&text);
        const char *path = json_string_value(json_object_get(should.error, "path"));
        if (path != NULL) /* else it is not known */
            compare_text(world, run, check, "failedPath", path, strlen(path),
                         rv__cell_failed_path(cell));
        compare_text(world, run, check, "failedStep", should.failed_step, should.failed_len,
                     rv__cell_failed_step(cell));
    }
    json_decref(should.error);
}

/* Whatever ended the run, its `finally` has run; once, for the record takes no second one. */
static void check_finally(struct world *world, struct run *run)
{
    const struct rv__node *finally = run->plan->plan->body.wrap->finally;
    if (finally == NULL)
        return;
    const struct rec_inst *inst = record_find(&run->rec, finally->id, NULL, 0);
    bool ran = inst != NULL && inst->ended >= 0;
    bool ended = run->cancels >= (inst != NULL ? 1 : 2); /* by who cancelled it again */
    if (!ran && !ended)
        judge_fail(world, run, "finally", "the run has ended, and its finally %s",
                   inst != NULL ? "has not" : "never began");
}

void judge_over(struct world *world, struct run *run)
{
    struct store_rows rows;
    struct rv__buf results;
    rv_error err = { .message = "" };
    char name[200];
    store_rows_init(&rows, world, run);
    rv__buf_init(&results, SIZE_MAX);
    tally.ended[rv__cell_status(run->cell)]++;
    trace(world, "%s is over: %s", run->id, rv__run_status_name(rv__cell_status(run->cell)));
    if (rv__cell_results(run->cell, &rows.source, &results, NULL, &err) < 0)
        judge_fail(world, run, "results", "the results cannot be read: %s", err.message);
    struct reference exact = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    struct reference foresight = { .plan = run->plan,
                                   .oracle = &world->oracle,
                                   .by_engine = world->engine };
    if (!world->failed)
        compare_outcome(world, run, "outcome", &exact, &results);
    if (!world->failed && !run->untimely)
        compare_outcome(world, run, "foreseen", &foresight, &results);
    if (!world->failed)
        judge_attachments(world, run, &exact);
    rv__buf_done(&results);
    for (size_t b = 0; b < run->rec.bucket_count && !world->failed; b++)
        for (const struct rec_inst *i = run->rec.buckets[b]; i != NULL; i = i->chain)
            if (record_alive(&run->rec, i))
                judge_fail(world, run, "over", "all is over, but %s never ended",
                           work_name(run, i->actor, name, sizeof name));
    if (!world->failed)
        check_finally(world, run);
    if (!world->failed && run->owed_count > 0)
        judge_fail(world, run, "over", "all is over, and %zu things are owed", run->owed_count);
}

static void never_done(void *arg, const struct rv__effect *effect)
{
    struct tallying *t = arg;
    t->count++;
    t->actor = effect->actor;
}

/* Nothing is under way anywhere. */
void judge_quiet(struct world *world, struct run *run)
{
    struct tallying t = { .run = run };
    char name[200];
    rv__cell_outstanding(run->cell, never_done, &t);
    if (t.count > 0)
        judge_fail(world, run, "performed", "%zu effects are owed and were never performed: %s",
                   t.count, work_name(run, t.actor, name, sizeof name));
    for (size_t i = 0; i < run->rec.signal_count && !world->failed; i++) {
        const struct rec_signal *signal = &run->rec.signals[i];
        if (!signal->taken && rv__cell_status(run->cell) != RUN_SUSPENDED &&
            record_waiter(&run->rec, rv__blob_str(signal->name), false) != NULL)
            judge_fail(world, run, "signal", "a signal '%.*s' is there, and so is one who waits",
                       RV__ARG(rv__blob_str(signal->name)));
    }
}

struct exec *execs_get(struct execs *execs, const struct run *run, uint64_t key,
                       const int64_t *vector, size_t depth)
{
    uint64_t hash = mix(mix(key, (uint64_t)run->index), depth);
    for (size_t i = 0; i < depth; i++)
        hash = mix(hash, (uint64_t)vector[i]);
    struct exec **at = &execs->buckets[hash % 1024];
    while (*at != NULL && (*at)->hash != hash)
        at = &(*at)->chain;
    if (*at == NULL) {
        *at = sim_alloc(sizeof **at);
        (*at)->hash = hash;
    }
    return *at;
}
