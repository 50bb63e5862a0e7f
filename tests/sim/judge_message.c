/* judge_message.c: the fact that must follow a message, derived from the record before the message is
 * sent, and compared with the fact that flow/ decided (SPEC: steps, attempts, runs, decisions). */
#include "sim.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"

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
    case MSG_NOTE:
        if (!eval && owed->kind == EFFECT_START)
            expect(e, FACT_STEP_NOTED);
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
    case MSG_NOTE:
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

static void check_fact(struct world *world, struct run *run, const struct rv__msg *msg,
                       const struct expectation *e)
{
    struct rv__fact fact;
    size_t at = run->judged;
    struct rv__str text = judge_next_fact(rv__buf_view(&run->facts.json), &at);
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
        (void)judge_next_fact(text, &at);
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
