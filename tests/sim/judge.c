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

static struct rv__str next_fact(struct rv__str text, size_t *at)
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
        struct rv__str one = next_fact(text, &at);
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

/* ------------------------------------------------------------------------------- messages --- */

static void expect(struct expectation *e, enum rv__fact_kind kind)
{
    e->kinds[e->kind_count++] = kind;
}

/* What an attempt's failure leads to (SPEC: errors, config of a step). */
static void expect_failure(struct expectation *e, const struct rec_inst *inst,
                           const struct rv__node *node, const struct rv__msg *msg,
                           enum rv__behavior behavior)
{
    const struct rv__step_config *config = &node->step.config;
    if (behavior == BEHAVIOR_LATER) { /* it uses up nothing */
        expect(e, FACT_STEP_RETRYING);
        e->due_low = e->due_high = msg->now_ms + msg->wait_ms;
        return;
    }
    if (node->step.kind ==
        STEP_CHAT) { /* it fails; whether its chat begins anew, the model knows */
        expect(e, FACT_STEP_FAILED);
        e->hard = 1;
        return;
    }
    int max = config->max_attempts > 0 ? config->max_attempts : 1;
    bool said = behavior == BEHAVIOR_RETRY && msg->max_attempts > 0;
    if (said && (config->max_attempts == 0 || msg->max_attempts < config->max_attempts))
        max = msg->max_attempts;
    bool may = behavior == BEHAVIOR_RETRY;
    if (behavior == BEHAVIOR_PLAIN || behavior == BEHAVIOR_FINAL)
        may = lists_say_retry(config, rv__blob_str(msg->error), behavior == BEHAVIOR_PLAIN);
    if (!may || node->is_handler || inst->attempt >= max) {
        expect(e, FACT_STEP_FAILED);
        e->hard = behavior != BEHAVIOR_CONTINUE && !node->is_handler &&
                  (behavior == BEHAVIOR_STOP || !config->continue_on_error);
        return;
    }
    expect(e, FACT_STEP_RETRYING);
    bool exponential = msg->backoff != 0 ? msg->backoff == 1 + BACKOFF_EXPONENTIAL
                                         : config->backoff == BACKOFF_EXPONENTIAL;
    double wait = (double)config->backoff_base_ms;
    if (exponential)
        for (int i = 1; i < inst->attempt; i++)
            wait *= 2;
    else
        wait *= inst->attempt;
    if (wait > (double)config->max_backoff_ms)
        wait = (double)config->max_backoff_ms;
    wait *= 1 - config->jitter * msg->chance;
    e->due_low = msg->now_ms + (int64_t)wait - 1;
    e->due_high = msg->now_ms + (int64_t)wait + 1;
}

/* A turn has failed: does another conversation follow, and when? As if the chat were a step. */
static void expect_anew(struct expectation *e, const struct run *run, const struct rec_inst *turn,
                        const struct rv__msg *msg, enum rv__behavior behavior)
{
    const struct rv__node *chat = run->plan->plan->nodes[turn->node]->body->owner;
    const struct rec_inst *of = record_find(&run->rec, chat->id, turn->vector, turn->depth - 1);
    struct rv__node step = { .kind = NODE_STEP, .step.config = chat->chat.config };
    struct rec_inst tried = { .attempt = of->chat.attempt };
    struct expectation as = { .hard = -1 };
    if (e->kind_count != 1 || e->kinds[0] != FACT_STEP_FAILED)
        return;
    expect_failure(&as, &tried, &step, msg, behavior);
    bool again = as.kinds[0] == FACT_STEP_RETRYING;
    e->anew = true;
    e->due_low = again ? as.due_low : 0;
    e->due_high = again ? as.due_high : 0;
}

static void expect_done(struct expectation *e, const struct rv__msg *msg)
{
    expect(e, msg->skipped ? FACT_STEP_SKIPPED : FACT_STEP_COMPLETED);
    e->check_result = true;
    e->result = msg->skipped ? NULL : msg->result;
    e->state = msg->state;
}

static void expect_timer(struct expectation *e, const struct rec_inst *inst,
                         const struct rv__node *node, const struct rv__msg *msg,
                         const struct rv__effect *owed)
{
    if (node->kind == NODE_CHAT) { /* its time is up, or it may begin anew */
        const struct rv__step_config *config = &node->chat.config;
        bool again = config->on_timeout == ON_TIMEOUT_RETRY &&
                     inst->chat.attempt < config->max_attempts;
        expect(e, inst->status == STATUS_WAITING_RETRY ? FACT_TIMER_FIRED
                  : again                              ? FACT_NODE_RETRYING
                                                       : FACT_NODE_FAILED);
        return;
    }
    enum rv__behavior behavior = node->step.config.on_timeout == ON_TIMEOUT_RETRY ? BEHAVIOR_RETRY
                                                                                  : BEHAVIOR_FINAL;
    struct rv__msg failure = { .now_ms = msg->now_ms, .chance = msg->chance };
    if (owed->kind == EFFECT_START || inst->parked) {
        expect_failure(e, inst, node, &failure, behavior);
    } else if (inst->status == STATUS_WAITING_RETRY) {
        expect(e, FACT_TIMER_FIRED);
    } else if (node->step.kind == STEP_SIGNAL && rv__str_none(node->step.signal_default)) {
        expect_failure(e, inst, node, &failure, behavior);
    } else if (node->step.kind == STEP_DELAY && node->step.config.timeout_ms > 0 &&
               node->step.delay_ms > node->step.config.timeout_ms) {
        expect_failure(e, inst, node, &failure, behavior);
    } else {
        expect(e, FACT_STEP_COMPLETED);
    }
}

/* To work that is owed, with the right token. */
static void expect_of_work(struct world *world, struct run *run, const struct rv__msg *msg,
                           const struct rv__effect *owed, struct expectation *e)
{
    const struct rec_actor *actor = record_actor(&run->rec, msg->actor);
    if (actor == NULL)
        return;
    const struct rec_inst *inst = actor->inst;
    const struct rv__node *node = owed->node;
    bool eval = owed->eval >= 0;
    e->actor = msg->actor;
    if (actor->body >= 0 && !eval) { /* an attempt of a state, which took too long */
        if (msg->kind == MSG_TIMER && owed->kind == EFFECT_WAIT)
            expect(e, FACT_BODY_ENDED);
        return;
    }
    switch (msg->kind) {
    case MSG_DONE:
        if (eval)
            expect(e, FACT_EVAL_COMPLETED);
        else if (owed->kind == EFFECT_START || inst->parked)
            expect_done(e, msg);
        break;
    case MSG_FAILED:
        if (eval)
            expect(e, actor->body != -1         ? FACT_EVAL_FAILED
                      : node->kind == NODE_STEP ? FACT_STEP_FAILED
                                                : FACT_NODE_FAILED);
        else if (owed->kind == EFFECT_START || inst->parked)
            expect_failure(e, inst, node, msg, msg->behavior);
        if (!eval && node->kind == NODE_STEP && node->step.kind == STEP_CHAT)
            expect_anew(e, run, inst, msg, msg->behavior);
        e->error = msg->error;
        break;
    case MSG_PARK:
        if (!eval && owed->kind == EFFECT_START)
            expect(e, FACT_STEP_PARKED);
        break;
    case MSG_TIMER:
        if (!eval && (owed->kind == EFFECT_WAIT || owed->timeout_ms > 0))
            expect_timer(e, inst, node, msg, owed);
        break;
    case MSG_GIVEN:
        if (!eval && owed->kind == EFFECT_START)
            expect(e, FACT_STEP_GIVEN);
        break;
    case MSG_READ:
        if (owed->kind == EFFECT_START)
            expect(e, FACT_STEP_READ);
        else
            e->rc = RV_ENOTFOUND;
        break;
    case MSG_LOST:
        if (owed->kind == EFFECT_START)
            expect(e, FACT_STEP_LOST);
        break;
    case MSG_ANSWER:
    case MSG_SIGNAL:
    case MSG_CANCEL:
    case MSG_SUSPEND:
    case MSG_RESUME:
    case MSG_ABORT:
    case MSG_SKIP:
    case MSG_RESTART:
    case MSG_KINDS: judge_fail(world, run, "message", "that is none for work");
    }
}

/* A run with a `finally` is cancelled after it, unless it is asked to a second time. */
static void expect_cancel(const struct run *run, struct expectation *e)
{
    const struct record *rec = &run->rec;
    const struct rv__node *finally = run->plan->plan->body.wrap->finally;
    const struct rec_inst *inst = finally != NULL ? record_find(rec, finally->id, NULL, 0) : NULL;
    bool runs = inst != NULL && inst->ended < 0;
    if (finally == NULL) {
        expect(e, FACT_RUN_CANCELLED);
    } else if (!rec->asked && !(inst != NULL && !runs) && !(runs && rec->status == RUN_SUSPENDED)) {
        expect(e, FACT_RUN_CANCELLING);
    } else if (runs && rec->status == RUN_RUNNING) {
        expect(e, finally->kind == NODE_STEP ? FACT_STEP_FAILED : FACT_NODE_FAILED);
        e->hard = 0;
    } else {
        expect(e, FACT_RUN_COMPLETED);
        expect(e, FACT_RUN_FAILED);
        expect(e, FACT_RUN_CANCELLED);
    }
}

bool judge_wants_signal(const struct run *run, struct rv__str name)
{
    const struct rv__plan *plan = run->plan->plan;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        if (node->kind == NODE_STEP && node->step.kind == STEP_SIGNAL &&
            (rv__str_none(node->step.signal) || rv__str_eq(node->step.signal, name)))
            return true;
    }
    return false;
}

/* By its path, which may be left out as long as there is one; skip and restart are for states. */
static void expect_decision(const struct run *run, const struct rv__msg *msg, struct expectation *e)
{
    const struct record *rec = &run->rec;
    const struct rec_suspension *about = NULL;
    e->rc = RV_ESTATE;
    if (rec->status != RUN_SUSPENDED)
        return;
    if (msg->name.len == 0 && rec->suspended_count == 1)
        about = &rec->suspended[0];
    for (size_t i = 0; i < rec->suspended_count && msg->name.len > 0 && about == NULL; i++) {
        struct rv__buf path;
        rv__buf_init(&path, SIZE_MAX);
        record_suspension_path(rec, &rec->suspended[i], &path);
        if (rv__str_eq(rv__buf_view(&path), msg->name))
            about = &rec->suspended[i];
        rv__buf_done(&path);
    }
    bool states_only = msg->kind == MSG_SKIP || msg->kind == MSG_RESTART;
    if (about == NULL || (states_only && about->which == 0))
        return;
    e->rc = RV_OK;
    expect(e, msg->kind == MSG_ABORT ? FACT_RUN_ABORTED : FACT_RUN_RESUMED);
    e->actor = msg->kind == MSG_ABORT ? 0 : about->actor;
}

void judge_before(struct world *world, struct run *run, const struct rv__msg *msg,
                  struct expectation *ret)
{
    bool over = rv__run_terminal(run->rec.status);
    *ret = (struct expectation){ .hard = -1, .due_low = INT64_MIN, .due_high = INT64_MAX };
    switch (msg->kind) {
    case MSG_DONE:
    case MSG_FAILED:
    case MSG_PARK:
    case MSG_TIMER:
    case MSG_GIVEN:
    case MSG_READ:
    case MSG_LOST: {
        const struct rv__effect *owed = judge_owed(run, msg->actor);
        if (owed != NULL && owed->token == msg->token)
            expect_of_work(world, run, msg, owed, ret);
        else if (msg->kind == MSG_READ)
            ret->rc = RV_ENOTFOUND;
        break;
    }
    case MSG_ANSWER: {
        const struct rec_inst *inst = record_waiter(&run->rec, msg->name, true);
        if (inst == NULL) {
            ret->rc = RV_ENOTFOUND;
            break;
        }
        ret->actor = inst->actor;
        if (msg->error == NULL)
            expect_done(ret, msg);
        else
            expect_failure(ret, inst, run->plan->plan->nodes[inst->node], msg, msg->behavior);
        break;
    }
    case MSG_SIGNAL:
        if (over && !rv__cell_active(run->cell))
            ret->rc = RV_ESTATE;
        else if (!msg->force && !judge_wants_signal(run, msg->name))
            ret->rc = RV_EUNWANTED;
        else
            expect(ret, FACT_SIGNAL_RECEIVED);
        break;
    case MSG_CANCEL:
        if (!over)
            expect_cancel(run, ret);
        else if (rv__cell_active(run->cell))
            expect(ret, FACT_DETACHED_CANCELLED);
        break;
    case MSG_SUSPEND:
        if (run->rec.status == RUN_RUNNING)
            expect(ret, FACT_RUN_SUSPENDED);
        ret->error = msg->error;
        break;
    case MSG_RESUME:
    case MSG_ABORT:
    case MSG_SKIP:
    case MSG_RESTART: expect_decision(run, msg, ret); break;
    case MSG_KINDS: break;
    }
}

/* What ends with an error says where that was; the rest is as it came. */
static bool is_placed(const struct rv__fact *fact, const struct rv__blob *came)
{
    static const char where[] = ",\"path\":\"";
    bool fails = fact->kind == FACT_STEP_FAILED || fact->kind == FACT_NODE_FAILED ||
                 fact->kind == FACT_RUN_ABORTED ||
                 (fact->kind == FACT_EVAL_FAILED && fact->eval == EVAL_INPUT);
    if (!fails || fact->error == NULL || fact->error->len < came->len + sizeof where)
        return false;
    return memcmp(fact->error->text, came->text, came->len - 1) == 0 &&
           memcmp(fact->error->text + came->len - 1, where, sizeof where - 1) == 0;
}

static bool same_blob(const struct rv__blob *a, const struct rv__blob *b, const char *none)
{
    struct rv__str x = rv__blob_str(a), y = rv__blob_str(b);
    return rv__str_eq(rv__str_none(x) ? rv__str(none) : x, rv__str_none(y) ? rv__str(none) : y);
}

static void check_fact(struct world *world, struct run *run, const struct rv__msg *msg,
                       const struct expectation *e)
{
    struct rv__fact fact;
    size_t at = run->judged;
    struct rv__str text = next_fact(rv__buf_view(&run->facts.json), &at);
    const char *wrong = NULL;
    if (rv__fact_read(text, &fact, NULL) < 0)
        return; /* judge_facts() will tell */
    values_of_fact(world, run, text, &fact);
    bool fits = false;
    for (int i = 0; i < e->kind_count; i++)
        fits |= e->kinds[i] == fact.kind;
    if (!fits)
        wrong = e->kind_count > 0 ? rv__fact_kind_name(e->kinds[0]) : "nothing";
    else if (e->actor != 0 && fact.actor != e->actor)
        wrong = "a fact about its addressee";
    else if (e->hard >= 0 && fact.kind == FACT_STEP_FAILED && fact.hard != e->hard)
        wrong = e->hard ? "a hard failure" : "a soft failure";
    else if ((fact.kind == FACT_STEP_RETRYING || e->anew) &&
             (fact.due_ms < e->due_low || fact.due_ms > e->due_high))
        wrong = "another time for the next attempt";
    else if (e->check_result &&
             (!same_blob(fact.result, e->result, "null") || !same_blob(fact.state, e->state, "{}")))
        wrong = "the result and state that came";
    else if (e->error != NULL && fact.kind != FACT_STEP_PARKED &&
             !same_blob(fact.error, e->error, "") && !is_placed(&fact, e->error))
        wrong = "the error that came";
    else if (msg->kind == MSG_LOST &&
             (fact.crash != msg->crash || (fact.deaths > 0) != msg->shared ||
              (!msg->shared && fact.blame != msg->blame)))
        wrong = "the death that was told";
    if (wrong != NULL)
        judge_fail(world, run, "message", "after '%s' there should be %s, and is %.*s",
                   rv__msg_kind_name(msg->kind), wrong, RV__ARG(text));
    rv__fact_done(&fact);
}

void judge_after(struct world *world, struct run *run, const struct rv__msg *msg, int rc,
                 const struct expectation *e)
{
    char name[200];
    struct rv__str text = rv__buf_view(&run->facts.json);
    size_t facts = 0;
    for (size_t at = run->judged; at < text.len; facts++)
        (void)next_fact(text, &at);
    if (rc != e->rc)
        judge_fail(world, run, "message", "'%s' is answered %s instead of %s",
                   rv__msg_kind_name(msg->kind), rc == 0 ? "ok" : rv_errname(rc),
                   e->rc == 0 ? "ok" : rv_errname(e->rc));
    else if (facts != (e->kind_count > 0))
        judge_fail(world, run, "message", "'%s' for %s makes %zu facts instead of %d: %.*s",
                   rv__msg_kind_name(msg->kind), work_name(run, msg->actor, name, sizeof name),
                   facts, e->kind_count > 0, (int)(text.len - run->judged), text.at + run->judged);
    else if (facts > 0)
        check_fact(world, run, msg, e);
    if (facts == 0 && rc == RV_OK)
        tally.stale++;
    if (rc == RV_OK &&
        (msg->kind == MSG_ABORT || msg->kind == MSG_SKIP || msg->kind == MSG_RESTART))
        run->untimely = true;
    if (facts > 0 && msg->kind == MSG_CANCEL)
        run->cancelled = run->untimely = true;
    run->cancels += facts > 0 && msg->kind == MSG_CANCEL;
    if (!world->failed)
        judge_facts(world, run);
    if (!world->failed)
        judge_effects(world, run);
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

/* Where two texts part. */
static void tell_difference(struct world *world, struct run *run, const char *check,
                            const char *what, struct rv__str a, struct rv__str b)
{
    size_t at = 0;
    while (at < a.len && at < b.len && a.at[at] == b.at[at])
        at++;
    size_t from = at > 60 ? at - 60 : 0;
    judge_fail(world, run, check, "%s:\n    …%.*s\n    …%.*s", what,
               (int)(a.len - from > 300 ? 300 : a.len - from), a.at + from,
               (int)(b.len - from > 300 ? 300 : b.len - from), b.at + from);
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
        tell_difference(world, run, "evolve", "the facts do not give the state again",
                        rv__buf_view(&one), rv__buf_view(&two));
    rv__buf_done(&two);
    if (!world->failed && one_in(&world->chance, 8)) {
        if (rv__cell_load(&opts, rv__buf_view(&one), &loaded, &err) < 0) {
            judge_fail(world, run, "load", "a saved cell cannot be read: %s", err.message);
        } else {
            if (save(world, run, loaded, &two) &&
                !rv__str_eq(rv__buf_view(&one), rv__buf_view(&two)))
                tell_difference(world, run, "load", "a saved state is not the same when read",
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

/* ---------------------------------------------------------------------------- what is seen --- */

enum { ROWS_A_PAGE = 4 }; /* so that there are several */

struct row_page {
    struct rv__buf *out;
    int64_t last;
    int count;
};

static int append_row(void *arg, int64_t index, struct rv__str json)
{
    struct row_page *page = arg;
    if (page->count == ROWS_A_PAGE)
        return 1;
    if (page->count++ > 0)
        rv__buf_char(page->out, ',');
    rv__buf_str(page->out, json);
    page->last = index;
    return RV_OK;
}

static int rows_of(struct rv__row_source *self, struct rv__str key, int64_t after,
                   struct rv__buf *out, int64_t *last, rv_error *err)
{
    struct store_rows *rows = (struct store_rows *)self;
    struct row_page page = { .out = out, .last = after };
    int rc = rv__store_results(rows->world->disk, rv__str(rows->run->id), key, after + 1, SIZE_MAX,
                               append_row, &page, err);
    *last = page.last;
    return rc;
}

static int value_of(struct rv__row_source *self, uint64_t number, struct rv__blob **ret,
                    rv_error *err)
{
    struct store_rows *rows = (struct store_rows *)self;
    *ret = value_on_disk(rows->world, rows->run, number);
    return *ret != NULL
               ? RV_OK
               : rv__fail(err, RV_ESTORE, "value %llu is not on disk", (unsigned long long)number);
}

void store_rows_init(struct store_rows *rows, struct world *world, struct run *run)
{
    *rows = (struct store_rows){ .source = { rows_of, value_of }, .world = world, .run = run };
}

static json_t *parse(struct world *world, struct run *run, const struct rv__buf *text)
{
    json_t *value = NULL;
    rv_error err;
    if (rv__json_load(rv__buf_view(text), &value, &err) < 0)
        judge_fail(world, run, "json", "%s in %.200s", err.message, text->text);
    return value;
}

/* Takes `expected`. */
static void compare(struct world *world, struct run *run, const char *check, const char *what,
                    json_t *expected, const struct rv__buf *actual)
{
    json_t *got = parse(world, run, actual);
    if (got != NULL && !json_agrees(expected, got)) {
        char *a = json_dumps(expected, JSON_SORT_KEYS | JSON_COMPACT);
        char *b = json_dumps(got, JSON_SORT_KEYS | JSON_COMPACT);
        tell_difference(world, run, check, what, rv__str(a), rv__str(b));
        if (world->trace)
            trace(world, "expected %s\n             got      %s", a, b);
        free(a);
        free(b);
    }
    json_decref(got);
    json_decref(expected);
}

/* Are the steps in order of execution? The reference goes from the nearest outwards. */
static void check_order(struct world *world, struct run *run, const char *what, json_t *nearest,
                        const struct rv__buf *actual)
{
    json_t *got = parse(world, run, actual);
    size_t count = json_object_size(nearest), at = 0;
    const char **names = sim_alloc((count + 1) * sizeof *names), *key;
    json_t *value;
    json_object_foreach (nearest, key, value)
        names[count - ++at] = key;
    at = 0;
    json_object_foreach (got, key, value) {
        if (!world->failed && at < count && strcmp(names[at], key) != 0)
            judge_fail(world, run, "scope", "%s: '%s' comes where '%s' should", what, key,
                       names[at]);
        at++;
    }
    free(names);
    json_decref(got);
}

static void check_scope(struct world *world, struct run *run, const struct rv__effect *effect,
                        const struct rec_actor *actor, const struct rv__view *view)
{
    struct reference ref = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    char name[200], what[300];
    work_name(run, effect->actor, name, sizeof name);
    store_rows_init(&rows, world, run);
    rv__buf_init(&text, SIZE_MAX);
    tally.views++;

    const struct rv__node *node = effect->node;
    const struct rv__body *body = NULL;
    if (actor->body != -1 && effect->eval != EVAL_DESCRIPTION) { /* it makes its input */
        body = actor->plan_body;
        node = NULL;
    } else if (node->is_handler && node->handler_of == NULL) {
        body = run->rec.actors[actor->owner].plan_body;
    }
    if (rv__view_steps(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: its steps cannot be read: %s", name, err.message);
    snprintf(what, sizeof what, "the steps that %s sees", name);
    if (!world->failed) {
        json_t *steps = reference_steps(&ref, node, body, effect->eval, actor->vector,
                                        actor->depth);
        check_order(world, run, what, steps, &text);
        compare(world, run, "scope", what, steps, &text);
    }
    rv__buf_reset(&text);
    if (!world->failed && rv__view_last(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: lastStep cannot be read: %s", name, err.message);
    snprintf(what, sizeof what, "the lastStep that %s sees", name);
    if (!world->failed)
        compare(world, run, "scope", what,
                reference_last(&ref, node, body, effect->eval, actor->vector, actor->depth), &text);
    rv__buf_done(&text);
}

/* The input that is seen there: of the nearest workflow that has one of its own. */
static const struct rv__blob *input_at(const struct run *run, const struct rec_actor *actor,
                                       int eval)
{
    const struct rv__body *body = actor->plan_body;
    uint32_t depth = actor->depth;
    if (actor->body == -1) {
        const struct rv__node *node = run->plan->plan->nodes[actor->inst->node];
        body = rv__node_around(node);
    } else if (body->owner != NULL &&
               eval != EVAL_DESCRIPTION) { /* its own is being made: what is around it */
        depth -= numbers(body->owner);
        body = rv__node_around(body->owner);
    }
    while (body->owner != NULL) {
        const struct rv__node *owner = body->owner;
        bool iterates = numbers(owner) && !generates(owner);
        int64_t number = numbers(owner) ? actor->vector[depth - 1] : 0;
        int64_t index = iterates ? number : (int64_t)body->index;
        depth -= numbers(owner);
        if (body->wrap != NULL && body->wrap->input.kind != EXPR_NONE) {
            const struct rec_inst *inst = record_find(&run->rec, owner->id, actor->vector, depth);
            return record_body(inst, index)->input.value;
        }
        if (rv__body_is_tool(body)) {
            const struct rec_inst *inst = record_find(&run->rec, owner->id, actor->vector, depth);
            return record_attempt(inst, body->index, number)->input.value;
        }
        body = rv__node_around(owner);
    }
    return run->input;
}

/* The node whose iteration it is in: the innermost around it that has any. NULL: none. *depth: of the
 * vector of that iteration. */
static const struct rv__node *around(const struct run *run, const struct rec_actor *actor,
                                     uint32_t *depth)
{
    const struct rv__body *body = actor->plan_body;
    *depth = actor->depth;
    if (actor->body == -1) {
        body = rv__node_around(run->plan->plan->nodes[actor->inst->node]);
    }
    while (body->owner != NULL && body->owner->kind != NODE_FOREACH &&
           body->owner->kind != NODE_LOOP) {
        *depth -= generates(body->owner);
        body = rv__node_around(body->owner);
    }
    return body->owner;
}

/* Of a forEach, the item is the one of its number, and there are as many as came. */
static void check_item(struct world *world, struct run *run, const struct rec_actor *actor,
                       const struct rv__view *view, const char *name)
{
    uint32_t depth;
    const struct rv__node *node = around(run, actor, &depth);
    struct store_rows rows;
    struct rv__blob *hold = NULL;
    struct rv__str item = { NULL, 0 }, should = { NULL, 0 };
    struct rv__json_iter it;
    rv_error err = { .message = "" };
    store_rows_init(&rows, world, run);
    int rc = rv__view_item(view, &rows.source, &hold, &item, &err);
    if (node == NULL || node->kind != NODE_FOREACH || depth == 0) {
        rv__blob_unref(hold);
        return;
    }
    const struct rec_inst *inst = record_find(&run->rec, node->id, actor->vector, depth - 1);
    if (inst != NULL && inst->evals[EVAL_ITEMS].value != NULL) {
        rv__json_iter_init(&it, rv__blob_str(inst->evals[EVAL_ITEMS].value));
        for (int64_t i = 0; i <= actor->vector[depth - 1]; i++)
            if (!rv__json_next(&it, NULL, &should))
                should = (struct rv__str){ NULL, 0 };
    }
    if (rc < 0 || !rv__str_eq(item, should))
        judge_fail(world, run, "item", "%s sees the item %.*s, which is %.*s: %s", name,
                   RV__ARG(item), RV__ARG(should), err.message);
    rv__blob_unref(hold);
}

/* What is in a handler knows what that is about. */
static void check_handler(struct world *world, struct run *run, const struct rv__effect *effect,
                          const struct rv__view *view, const char *name)
{
    const struct rv__node *node = effect->node;
    const struct rv__node *handler = node != NULL ? rv__node_handler(node) : NULL;
    const struct rv__body *body = &run->plan->plan->body;
    if (view->handler != handler) {
        judge_fail(world, run, "view", "%s sees itself in another handler", name);
        return;
    }
    if (handler == NULL)
        return;
    bool on_error = handler->handler_of != NULL || handler == handler->handler_in->wrap->on_error;
    if (on_error && view->error == NULL)
        judge_fail(world, run, "view", "%s sees no error", name);
    if (handler != body->wrap->finally)
        return;
    bool failed = run->rec.aborted != NULL;
    for (uint32_t i = 0; i < body->count && !failed; i++) {
        const struct rec_inst *inst = record_find(&run->rec, body->nodes[i]->id, NULL, 0);
        failed = inst != NULL && inst->hard && inst->status == STATUS_FAILED;
    }
    enum rv__run_status outcome = run->rec.cut >= 0 ? RUN_CANCELLED
                                  : failed          ? RUN_FAILED
                                                    : RUN_COMPLETED;
    if (view->outcome != outcome)
        judge_fail(world, run, "view", "%s sees that the run is %s, and it is %s", name,
                   rv__run_status_name(view->outcome), rv__run_status_name(outcome));
}

/* What its state depends on: as it was when the attempt began. */
static void check_inputs(struct world *world, struct run *run, const struct rec_actor *actor,
                         const struct rv__view *view, const char *name)
{
    const struct rv__body *body = actor->plan_body;
    size_t depth = actor->depth;
    if (actor->body == -1)
        body = rv__node_around(run->plan->plan->nodes[actor->inst->node]);
    bool detached = false; /* it outlives its state, and sees nothing of it */
    while (body->owner != NULL && body->owner->kind != NODE_STAGE) {
        depth -= numbers(body->owner);
        detached |= body->owner->kind == NODE_CONCURRENT && body->owner->concurrent.detached;
        body = rv__node_around(body->owner);
    }
    if (world->engine) /* what rv_ctx shows is no view, and has no inputs yet */
        return;
    if (view->state != (body->owner != NULL && !detached ? body : NULL)) {
        judge_fail(world, run, "view", "%s sees itself in another state", name);
        return;
    }
    if (world->failed || body->owner == NULL || actor->body >= 0 || detached)
        return; /* a frame's own work has no inputs to show */
    struct reference ref = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    store_rows_init(&rows, world, run);
    rv__buf_init(&text, SIZE_MAX);
    if (rv__view_inputs(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: its inputs cannot be read: %s", name, err.message);
    else
        compare(world, run, "inputs", "the inputs of a state",
                reference_inputs(&ref, body, actor->vector, depth), &text);
    rv__buf_done(&text);
}

void judge_start(struct world *world, struct run *run, const struct rv__effect *effect,
                 const struct rv__view *view)
{
    char name[200];
    work_name(run, effect->actor, name, sizeof name);
    const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
    if (actor == NULL) {
        judge_fail(world, run, "start", "work begins for an actor without a fact");
        return;
    }
    const struct rec_inst *inst = actor->inst;
    int64_t t = effect->eval >= 0 ? actor->eval_started : inst->last_started;
    if (t >= run->durable_t)
        judge_fail(world, run, "durable", "%s begins before the fact of it is on disk", name);
    if (effect->eval < 0 && inst->ended >= 0)
        judge_fail(world, run, "again", "%s has ended, and runs again", name);
    if (view->nonce != run->nonce)
        judge_fail(world, run, "view", "%s has another nonce than its run began with", name);
    if (view->node != effect->node)
        judge_fail(world, run, "view", "%s sees itself as another node", name);
    if (effect->eval < 0 && view->attempt != inst->attempt)
        judge_fail(world, run, "view", "%s sees attempt %d, and it is %d", name, view->attempt,
                   inst->attempt);
    struct rv__blob *made = value_text(world, run, view->made);
    const struct rv__blob *recorded = effect->eval < 0 ? inst->evals[EVAL_INPUT].value : NULL;
    if (!world->failed && !same_blob(made, recorded, ""))
        judge_fail(world, run, "view", "%s sees other parameters than its function made: %.*s",
                   name, RV__ARG(rv__blob_str(made)));
    rv__blob_unref(made);
    for (uint32_t i = 0; i < actor->depth; i++)
        if (view->vector[i] != actor->vector[i])
            judge_fail(world, run, "view", "%s sees itself in another iteration", name);
    uint32_t loop_depth;
    const struct rv__node *loop = around(run, actor, &loop_depth);
    int64_t index = loop != NULL ? actor->vector[loop_depth - 1] : -1;
    if (effect->eval == EVAL_WHILE) /* of the iteration to come, */
        index = (int64_t)inst->bodies_ended;
    else if (effect->eval == EVAL_UNTIL) /* or of the one that ended */
        index = (int64_t)inst->bodies_ended - 1;
    if (view->loop_index != index)
        judge_fail(world, run, "view", "%s sees loop index %lld", name,
                   (long long)view->loop_index);
    check_handler(world, run, effect, view, name);
    check_inputs(world, run, actor, view, name);
    struct rv__blob *input = value_text(world, run, view->input);
    if (!world->failed && !same_blob(input, input_at(run, actor, effect->eval), "null"))
        judge_fail(world, run, "view", "%s sees another input: %.*s", name,
                   RV__ARG(rv__blob_str(input)));
    rv__blob_unref(input);
    if (!world->failed && effect->eval != EVAL_WHILE && effect->eval != EVAL_UNTIL)
        check_item(world, run, actor, view, name);
    size_t insts = run->rec.insts;
    if (!world->failed && (insts < 60 || one_in(&world->chance, insts / 20)))
        check_scope(world, run, effect, actor, view);
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
        compare(world, run, check, "the results", json_incref(should.results), results);
    json_decref(should.results);
    if (!world->failed && status == RUN_FAILED && !outside) {
        struct rv__buf text;
        rv__buf_init(&text, SIZE_MAX);
        rv__buf_str(&text, rv__cell_error(cell));
        if (should.error != NULL && text.len > 0)
            compare(world, run, check, "the error", json_incref(should.error), &text);
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
