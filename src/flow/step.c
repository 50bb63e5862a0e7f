/* step.c: the actor of one step.
 *
 *            ┌────────────── lost ──────────────┐
 *            ▼                                  │
 *   begin ▶ ready ──place──▶ running ──done──────────────▶ completed | skipped
 *   (when,   ▲                 │ │ └──────failed, none left──▶ failed [──handler──▶] gone
 *   input)   │ timer    failed,│ │ pending
 *            │    attempts left▼ ▼
 *            └────────────  retry  parked ──answer, signal, timer──▶ completed | failed | retry
 *
 * An attempt may leave a note for the next one (step.noted): running → ready, or parked until the signal that it asks
 * for has come, then ready. That uses up no attempt.
 *
 * A delay and a signal are parked when they begin; a delay that is longer than its time-out is parked until that.
 * When a step has ended, its actor is gone: its sequence has the outcome, the journal the rest. Only a failed step
 * with a handler stays until that has run. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

/* ------------------------------------------------------------------------------- decide --- */

/* Never 0, which would mean "not due". */
int64_t rv__due_at(int64_t now_ms, int64_t wait_ms)
{
    int64_t due;
    if (__builtin_add_overflow(now_ms, wait_ms, &due) || due > RV__MAX_NUMBER)
        return RV__MAX_NUMBER;
    return due > 0 ? due : 1;
}

/* Is this longer than the step's time-out? */
static bool is_cut(const struct rv__node *node, int64_t wait_ms)
{
    return node->step.config.timeout_ms > 0 && wait_ms > node->step.config.timeout_ms;
}

static struct rv__fact fact_of(const struct rv__actor *step, enum rv__fact_kind kind)
{
    return (struct rv__fact){ .kind = kind, .actor = step->id, .node = step->node->id };
}

int rv__step_begin(struct rv__turn *turn, struct rv__actor *owner, struct rv__actor *step,
                   const struct rv__node *node, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_STEP_STARTED, .node = node->id, .attempt = 1 };
    fact.actor = step != NULL ? step->id : turn->cell->next_id;
    fact.owner = step != NULL ? 0 : owner->id;
    fact.hosted = turn->cell->place == LANE_HOST ||
                  (turn->cell->ticket > 0 && !rv__lane_is_limit(turn->cell->place));
    if (turn->cell->module != NULL)
        fact.module = turn->cell->module(turn->cell->lane_arg, node);
    if (step != NULL && step->step.next_attempt > 0)
        fact.attempt = step->step.next_attempt;
    if (node->step.kind == STEP_DELAY && node->step.parks) {
        fact.cut = is_cut(node, node->step.delay_ms);
        fact.due_ms = rv__due_at(turn->now_ms,
                                 fact.cut ? node->step.config.timeout_ms : node->step.delay_ms);
    }
    if (node->step.kind == STEP_SIGNAL && node->step.signal_timeout_ms > 0)
        fact.due_ms = rv__due_at(turn->now_ms, node->step.signal_timeout_ms);
    return rv__say(turn, &fact, err);
}

static int effective_max(const struct rv__step_config *config, const struct rv__msg *msg)
{
    int configured = config->max_attempts;
    if (msg->behavior != BEHAVIOR_RETRY || msg->max_attempts == 0)
        return configured > 0 ? configured : 1;
    return configured > 0 && configured < msg->max_attempts && !RV__BUG(8) ? configured
                                                                           : msg->max_attempts;
}

/* min(base × attempt or base × 2^(attempt−1), max) × (1 − jitter × chance) */
static int64_t backoff_ms(const struct rv__step_config *config, int attempt,
                          const struct rv__msg *msg)
{
    bool exponential = msg->backoff != 0 ? msg->backoff - 1 == BACKOFF_EXPONENTIAL
                                         : config->backoff == BACKOFF_EXPONENTIAL;
    double times = exponential ? ldexp(1, attempt - 1) : attempt - RV__BUG(17);
    double wait = (double)config->backoff_base_ms * times;
    if (wait > (double)config->max_backoff_ms)
        wait = (double)config->max_backoff_ms;
    return (int64_t)(wait * (1 - config->jitter * msg->chance));
}

static bool error_has(struct rv__str error, const char *key, struct rv__str value)
{
    struct rv__str has;
    return rv__json_get(error, key, &has) && rv__str_eq(has, value);
}

/* Is a code of this error in the list? Codes have no escapes: plan/ refuses them. */
static bool lists(struct rv__str codes, const struct rv__blob *error)
{
    struct rv__json_iter it;
    struct rv__str code, own, text = rv__blob_str(error);
    if (rv__str_none(codes) || rv__str_none(text))
        return false;
    bool named = rv__json_get(text, "code", &own);
    rv__json_iter_init(&it, codes);
    while (rv__json_next(&it, NULL, &code)) {
        if (rv__json_type(code) != RV__JSON_STRING
                ? error_has(text, "exitCode", code) || error_has(text, "status", code)
                : named && rv__json_string_is(own, (struct rv__str){ code.at + 1, code.len - 2 }))
            return true;
    }
    return false;
}

/* May it be retried, if attempts are left? What the step's function says has priority. */
static bool may_retry(const struct rv__step_config *config, const struct rv__msg *msg)
{
    switch (msg->behavior) {
    case BEHAVIOR_RETRY: return true;
    case BEHAVIOR_STOP:
    case BEHAVIOR_CONTINUE:
    case BEHAVIOR_LATER: return false;
    case BEHAVIOR_PLAIN:
    case BEHAVIOR_FINAL: break;
    }
    if (lists(config->no_retry_on, msg->error))
        return false;
    if (!rv__str_none(config->retry_on))
        return lists(config->retry_on, msg->error);
    return msg->behavior == BEHAVIOR_PLAIN;
}

/* When it finally fails, does its sequence fail, too? */
static bool is_hard(const struct rv__node *node, enum rv__behavior behavior)
{
    bool goes_on = behavior == BEHAVIOR_CONTINUE ||
                   (node->step.config.continue_on_error && behavior != BEHAVIOR_STOP);
    return (!goes_on || node->step.kind == STEP_CHAT) && !node->is_handler;
}

int64_t rv__retry_at(const struct rv__step_config *config, int attempt, const struct rv__msg *msg,
                     int64_t now_ms)
{
    if (!may_retry(config, msg) || attempt >= effective_max(config, msg))
        return 0;
    int64_t wait_ms = backoff_ms(config, attempt, msg);
    return rv__due_at(now_ms, wait_ms > msg->wait_ms ? wait_ms : msg->wait_ms);
}

/* The chat that it is a turn of; NULL: none. */
static struct rv__actor *chat_of(const struct rv__actor *step)
{
    return step->node->step.kind == STEP_CHAT ? step->owner->owner : NULL;
}

/* An attempt has failed: retry, or fail. A turn has one attempt: its chat decides about a new conversation. */
static int say_failed(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                      rv_error *err)
{
    const struct rv__actor *chat = chat_of(step);
    bool later = msg->behavior == BEHAVIOR_LATER && !RV__BUG(266);
    int64_t due = later ? rv__due_at(turn->now_ms, msg->wait_ms)
                  : chat != NULL || step->node->is_handler
                      ? 0
                      : rv__retry_at(&step->node->step.config, step->step.attempt, msg,
                                     turn->now_ms);
    if (due != 0) {
        struct rv__fact fact = fact_of(step, FACT_STEP_RETRYING);
        fact.error = msg->error;
        fact.given = msg->given;
        fact.due_ms = due;
        return rv__say(turn, &fact, err);
    }
    struct rv__fact fact = fact_of(step, FACT_STEP_FAILED);
    fact.error = rv__error_of(msg->error, step);
    if (fact.error == NULL)
        return rv__nomem(err);
    fact.state = msg->state;
    fact.given = msg->given;
    fact.hard = is_hard(step->node, msg->behavior);
    if (chat != NULL)
        fact.due_ms = rv__flow_kind(chat->node)->retry_at(chat, msg, turn->now_ms);
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(fact.error);
    return rc;
}

/* The attempt, or what it waited for, took too long. */
static int say_timed_out(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                         rv_error *err)
{
    const struct rv__step_config *config = &step->node->step.config;
    struct rv__msg failed = { .kind = MSG_FAILED, .chance = msg->chance };
    failed.behavior = config->on_timeout == ON_TIMEOUT_STOP ? BEHAVIOR_FINAL : BEHAVIOR_RETRY;
    if (step->phase == PHASE_PARKED && step->park == PARK_SIGNAL)
        failed.error = rv__error_blob(
            "timeout", "step '%.*s' timed out waiting for the signal '%.*s'",
            RV__ARG(step->node->alias), RV__ARG(step->step.channel->name));
    else
        failed.error = rv__error_blob("timeout", "step '%.*s' timed out after %lld ms",
                                      RV__ARG(step->node->alias), (long long)config->timeout_ms);
    if (failed.error == NULL)
        return rv__nomem(err);
    int rc = say_failed(turn, step, &failed, err);
    rv__blob_unref(failed.error);
    return rc;
}

static int say_done(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                    rv_error *err)
{
    struct rv__fact fact = fact_of(step, msg->skipped ? FACT_STEP_SKIPPED : FACT_STEP_COMPLETED);
    fact.result = msg->skipped ? NULL : msg->result;
    fact.state = msg->state;
    fact.given = msg->given;
    /* An attempt makes the description itself, unless a function does; a parked step has no attempt. */
    fact.describe = (step->phase == PHASE_PARKED ||
                     step->node->description.kind == EXPR_FUNCTION) &&
                    !msg->skipped && rv__describes(step->node, msg->state);
    const struct rv__actor *chat = chat_of(step);
    if (chat != NULL && fact.kind == FACT_STEP_COMPLETED) {
        fact.turn = rv__flow_kind(chat->node)->answer(chat, msg);
        if (fact.turn == NULL)
            return rv__nomem(err);
    }
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(fact.turn);
    return rc;
}

static int say_waited(struct rv__turn *turn, struct rv__actor *step, struct rv__str result,
                      rv_error *err)
{
    struct rv__fact fact = fact_of(step, FACT_STEP_COMPLETED);
    fact.describe = rv__describes(step->node, NULL);
    fact.result = rv__blob_new(result);
    if (fact.result == NULL)
        return rv__nomem(err);
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(fact.result);
    return rc;
}

/* {delayedMs, startedAt, endedAt} */
static int say_delayed(struct rv__turn *turn, struct rv__actor *step, rv_error *err)
{
    char text[128];
    int n = snprintf(text, sizeof text, "{\"delayedMs\":%lld,\"startedAt\":%lld,\"endedAt\":%lld}",
                     (long long)(turn->now_ms - step->step.started_ms),
                     (long long)step->step.started_ms, (long long)turn->now_ms);
    return say_waited(turn, step, (struct rv__str){ text, (size_t)n }, err);
}

static int parked_timer(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                        rv_error *err)
{
    switch ((enum rv__park)step->park) {
    case PARK_DELAY: return say_delayed(turn, step, err);
    case PARK_SIGNAL:
        if (!rv__str_none(step->node->step.signal_default))
            return say_waited(turn, step, step->node->step.signal_default, err);
        return say_timed_out(turn, step, msg, err);
    case PARK_HANDLE:
    case PARK_CUT: return say_timed_out(turn, step, msg, err);
    }
    return RV_OK;
}

/* With the name of what it waits for; empty: nothing that has one. */
static int say_named(struct rv__turn *turn, struct rv__fact *fact, struct rv__str name,
                     rv_error *err)
{
    if (name.len > 0) {
        fact->name = rv__blob_new(name);
        if (fact->name == NULL)
            return rv__nomem(err);
    }
    int rc = rv__say(turn, fact, err);
    rv__blob_unref(fact->name);
    return rc;
}

static int say_parked(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                      rv_error *err)
{
    struct rv__fact fact = fact_of(step, FACT_STEP_PARKED);
    const struct rv__node *node = step->node;
    fact.due_ms = msg->due_ms;
    fact.given = msg->given;
    fact.taken = node->step.kind == STEP_SIGNAL; /* it waits for a signal, else for its handle */
    fact.cut = node->step.kind == STEP_DELAY && is_cut(node, msg->due_ms - turn->now_ms);
    if (fact.cut)
        fact.due_ms = rv__due_at(step->step.started_ms, node->step.config.timeout_ms);
    if (fact.due_ms == 0 && fact.taken && node->step.signal_timeout_ms > 0)
        fact.due_ms = rv__due_at(turn->now_ms, node->step.signal_timeout_ms);
    if (fact.due_ms == 0 && !fact.taken && node->step.config.timeout_ms > 0)
        fact.due_ms = rv__due_at(step->step.started_ms, node->step.config.timeout_ms);
    return say_named(turn, &fact, msg->name, err);
}

static int say_noted(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                     rv_error *err)
{
    struct rv__fact fact = fact_of(step, FACT_STEP_NOTED);
    fact.note = msg->note;
    fact.given = msg->given;
    if (msg->name.len > 0 && step->node->step.config.timeout_ms > 0)
        fact.due_ms = rv__due_at(turn->now_ms, step->node->step.config.timeout_ms);
    return say_named(turn, &fact, msg->name, err);
}

static int stale(struct rv__turn *turn)
{
    turn->cell->stale++;
    return RV_OK;
}

/* A message with the right token. One that does not fit the phase is stale. */
int rv__step_send(struct rv__turn *turn, struct rv__actor *step, const struct rv__msg *msg,
                  rv_error *err)
{
    bool running = step->phase == PHASE_RUNNING;
    bool answered = step->phase == PHASE_PARKED && step->park == PARK_HANDLE;
    switch (msg->kind) {
    case MSG_DONE: return running || answered ? say_done(turn, step, msg, err) : stale(turn);
    case MSG_FAILED: return running || answered ? say_failed(turn, step, msg, err) : stale(turn);
    case MSG_PARK: return running ? say_parked(turn, step, msg, err) : stale(turn);
    case MSG_NOTE:
        return running && msg->note != NULL ? say_noted(turn, step, msg, err) : stale(turn);
    case MSG_GIVEN: {
        struct rv__fact fact = fact_of(step, FACT_STEP_GIVEN);
        fact.given = msg->given;
        return running && msg->given != NULL ? rv__say(turn, &fact, err) : stale(turn);
    }
    case MSG_TIMER:
        if (running && step->node->step.config.timeout_ms > 0)
            return say_timed_out(turn, step, msg, err);
        if (step->phase == PHASE_RETRY) {
            struct rv__fact fact = fact_of(step, FACT_TIMER_FIRED);
            return rv__say(turn, &fact, err);
        }
        return step->phase == PHASE_PARKED ? parked_timer(turn, step, msg, err) : stale(turn);
    case MSG_LOST: /* coordinator.c: the same for evaluations */
    case MSG_READ:
    case MSG_ANSWER:
    case MSG_SIGNAL:
    case MSG_CANCEL:
    case MSG_SUSPEND:
    case MSG_RESUME:
    case MSG_ABORT:
    case MSG_SKIP:
    case MSG_RESTART:
    case MSG_KINDS: break;
    }
    return stale(turn);
}

int rv__step_advance(struct rv__turn *turn, struct rv__actor *step, rv_error *err)
{
    switch ((enum rv__phase)step->phase) {
    case PHASE_EVALUATED: return rv__node_evaluated(turn, step, err);
    case PHASE_BEGIN:
    case PHASE_READY: return rv__step_begin(turn, step->owner, step, step->node, err);
    case PHASE_FAILED: return rv__node_begin(turn, step, NULL, step->node->on_error, err);
    case PHASE_PARKED: { /* its signal is there */
        bool asked = step->step.note != NULL;
        struct rv__fact fact = fact_of(step, asked ? FACT_STEP_NOTED : FACT_STEP_COMPLETED);
        fact.taken = true;
        fact.describe = !asked && rv__describes(step->node, NULL);
        fact.result = step->step.channel->first_signal->payload;
        return rv__say(turn, &fact, err);
    }
    case PHASE_TO_EVAL: return rv__eval_start(turn, step, err);
    case PHASE_EVAL:
    case PHASE_RUNNING:
    case PHASE_RETRY:
    case PHASES: break;
    }
    assert(!"nothing follows for this step");
    return RV_ESTATE;
}

/* ------------------------------------------------------------------------------- evolve --- */

/* A handler has ended, in whatever way: what it handled continues. */
int rv__handler_ended(struct rv__cell *cell, struct rv__actor *handler)
{
    struct rv__actor *owner = handler->owner;
    if (owner->is_frame) {
        bool finally = handler->node == owner->frame.body->wrap->finally;
        rv__actor_end(cell, handler);
        *(finally ? &owner->frame.finished : &owner->frame.handled) = true;
        owner->phase = PHASE_RUNNING;
        rv__actor_place(cell, owner);
        return RV_OK;
    }
    struct rv__actor *frame = owner->owner;
    struct rv__entry *entry = rv__step_failed_entry(owner);
    if (entry == NULL)
        return RV_ENOMEM;
    struct rv__blob *error = rv__blob_ref(owner->value);
    bool hard = owner->hard;
    rv__actor_end(cell, owner); /* and the handler with it */
    rv__frame_evolve_child(cell, frame, entry, hard, error);
    rv__blob_unref(error);
    return RV_OK;
}

static void take_signal(struct rv__cell *cell, struct rv__channel *channel)
{
    struct rv__signal *signal = channel->first_signal;
    if (RV__BUG(6))
        return;
    channel->first_signal = signal->next;
    if (channel->first_signal == NULL)
        channel->last_signal = NULL;
    cell->signals--;
    cell->bytes -= sizeof *signal;
    rv__blob_unref(signal->payload);
    rv__free(signal);
}

/* An attempt has taken it up. */
static void use_note(struct rv__actor *step)
{
    rv__blob_unref(step->step.note);
    rv__blob_unref(step->step.answer);
    step->step.note = step->step.answer = NULL;
}

/* It has ended, with this status. */
static int end_handler(struct rv__cell *cell, struct rv__actor *step, enum rv__status status)
{
    struct rv__blob *used = status != STATUS_FAILED ? step->step.note : NULL;
    if (used != NULL)
        step->step.note = NULL;
    int rc = rv__handler_ended(cell, step);
    if (rc < 0 && used != NULL)
        step->step.note = used;
    else
        rv__blob_unref(used);
    return rc;
}

static int end_step(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact,
                    enum rv__status status)
{
    if (step->node->is_handler)
        return end_handler(cell, step, status);

    struct rv__entry *entry = rv__entry_new(step->node, status);
    if (entry == NULL)
        return RV_ENOMEM;
    struct rv__actor *frame = step->owner;
    entry->result = rv__blob_ref(fact->result);
    entry->state = rv__blob_ref(fact->state);
    entry->error = rv__blob_ref(fact->error); /* only a failure has one */
    if (fact->taken)
        take_signal(cell, step->step.channel);
    if (status != STATUS_FAILED)
        use_note(step);
    struct rv__actor *chat = chat_of(step);
    if (chat != NULL && status == STATUS_COMPLETED)
        rv__flow_kind(chat->node)->answered(cell, chat, fact);
    if (chat != NULL && status == STATUS_FAILED)
        rv__flow_kind(chat->node)->gave_up(chat, fact);
    rv__actor_end(cell, step);
    rv__frame_evolve_child(cell, frame, entry, fact->hard, fact->error);
    if (fact->describe)
        rv__frame_evolve_describe(cell, frame);
    return RV_OK;
}

static int evolve_started(struct rv__cell *cell, struct rv__actor *step,
                          const struct rv__fact *fact)
{
    const struct rv__node *node = cell->plan->nodes[fact->node];
    bool parks = node->step.parks;
    struct rv__channel *channel = NULL;
    if (parks && node->step.kind == STEP_SIGNAL) {
        channel = rv__channel_get(cell, node->step.signal, false, true);
        if (channel == NULL)
            return RV_ENOMEM;
    }
    if (step == NULL) {
        step = rv__actor_new(cell);
        if (step == NULL) {
            if (channel != NULL)
                rv__channel_drop_if_empty(cell, channel);
            return RV_ENOMEM;
        }
        step->node = node;
        struct rv__actor *owner = rv__cell_find(cell, fact->owner);
        rv__actor_link(cell, step, owner);
        rv__actor_place(cell, owner);
    }
    rv__blob_unref(step->value); /* of its `when` */
    step->value = NULL;
    step->phase = parks ? PHASE_PARKED : PHASE_RUNNING;
    step->due_ms = fact->due_ms;
    step->hosted = fact->hosted;
    step->step.attempt = fact->attempt;
    step->step.next_attempt = fact->attempt + 1;
    step->step.started_ms = fact->at_ms;
    if (parks)
        step->park = channel != NULL ? PARK_SIGNAL : fact->cut ? PARK_CUT : PARK_DELAY;
    if (channel != NULL)
        rv__channel_join(cell, channel, step);
    rv__actor_owe(cell, step);
    rv__actor_place(cell, step);
    return RV_OK;
}

static int evolve_parked(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact)
{
    struct rv__channel *channel = NULL;
    if (fact->name != NULL) {
        channel = rv__channel_get(cell, rv__blob_str(fact->name), !fact->taken, true);
        if (channel == NULL)
            return RV_ENOMEM;
    }
    use_note(step);
    step->phase = PHASE_PARKED;
    step->due_ms = fact->due_ms;
    if (channel != NULL)
        step->park = fact->taken ? PARK_SIGNAL : PARK_HANDLE;
    else
        step->park = fact->cut ? PARK_CUT : PARK_DELAY;
    if (channel != NULL)
        rv__channel_join(cell, channel, step);
    rv__actor_owe(cell, step);
    rv__actor_place(cell, step);
    return RV_OK;
}

/* No attempt takes up the note any more. Whoever gets the next effect ends what it tells of. */
void rv__step_forget_note(struct rv__cell *cell, struct rv__actor *step)
{
    if (step->step.note != NULL && !cell->quiet) {
        rv__blob_unref(step->unused_note);
        step->unused_note = step->step.note;
    } else {
        rv__blob_unref(step->step.note);
    }
    rv__blob_unref(step->step.answer);
    step->step.note = step->step.answer = NULL;
}

static int evolve_noted(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact)
{
    struct rv__channel *channel = NULL;
    if (fact->name != NULL) {
        channel = rv__channel_get(cell, rv__blob_str(fact->name), false, true);
        if (channel == NULL)
            return RV_ENOMEM;
    }
    if (fact->taken) {
        step->step.answer = rv__blob_ref(fact->result);
        take_signal(cell, step->step.channel);
        rv__channel_leave(cell, step);
    } else {
        use_note(step);
        step->step.note = rv__blob_ref(fact->note);
    }
    step->phase = channel != NULL ? PHASE_PARKED : PHASE_READY;
    step->park = PARK_SIGNAL;
    step->due_ms = fact->due_ms;
    step->step.next_attempt = step->step.attempt;
    if (channel != NULL)
        rv__channel_join(cell, channel, step);
    rv__actor_absolve(step);
    rv__actor_owe(cell, step);
    rv__actor_place(cell, step);
    return RV_OK;
}

static int evolve_failed(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact)
{
    if (step->node->on_error == NULL || (RV__BUG(9) && !fact->hard))
        return end_step(cell, step, fact, STATUS_FAILED);
    if (step->step.channel != NULL)
        rv__channel_leave(cell, step);
    rv__step_forget_note(cell, step);
    rv__blob_unref(step->value);
    step->value = rv__blob_ref(fact->error);
    step->step.state = rv__blob_ref(fact->state);
    step->hard = fact->hard;
    step->phase = PHASE_FAILED;
    rv__actor_absolve(step);
    rv__actor_owe(cell, step);
    rv__actor_place(cell, step);
    return RV_OK;
}

static void evolve_waits(struct rv__cell *cell, struct rv__actor *step, enum rv__phase phase,
                         int64_t due_ms)
{
    if (step->step.channel != NULL)
        rv__channel_leave(cell, step);
    rv__step_forget_note(cell, step); /* the next attempt begins anew */
    step->phase = (uint8_t)phase;
    step->due_ms = due_ms;
    rv__actor_absolve(step); /* a normal failure: it is not a suspect */
    rv__actor_owe(cell, step);
    rv__actor_place(cell, step);
}

/* `step` is NULL for a step.started that makes it. RV_ENOMEM: nothing changed. */
int rv__step_evolve(struct rv__cell *cell, struct rv__actor *step, const struct rv__fact *fact)
{
    switch ((int)fact->kind) {
    case FACT_STEP_STARTED: return evolve_started(cell, step, fact);
    case FACT_STEP_COMPLETED: return end_step(cell, step, fact, STATUS_COMPLETED);
    case FACT_STEP_SKIPPED: return end_step(cell, step, fact, STATUS_SKIPPED);
    case FACT_STEP_FAILED: return evolve_failed(cell, step, fact);
    case FACT_STEP_PARKED: return evolve_parked(cell, step, fact);
    case FACT_STEP_NOTED: return evolve_noted(cell, step, fact);
    case FACT_STEP_RETRYING: evolve_waits(cell, step, PHASE_RETRY, fact->due_ms); return RV_OK;
    case FACT_TIMER_FIRED: evolve_waits(cell, step, PHASE_READY, 0); return RV_OK;
    default: break;
    }
    assert(!"not a fact of a step");
    return RV_ESTATE;
}

/* --------------------------------------------------------------------------------- kind --- */

/* Only for damaged snapshots: a step has nothing inside. */
static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    (void)node;
    return rv__inner_linked(inner);
}

/* The function that makes its parameters is called first. */
static struct rv__first first_work(const struct rv__node *step)
{
    const struct rv__expr *input = rv__input_expr(step, NULL);
    return input != NULL ? (struct rv__first){ .node = step, .expr = input, .eval = EVAL_INPUT }
                         : rv__first_of_step(step);
}

const struct rv__flow_kind rv__step_kind = { .first_work = first_work, .inner_fits = inner_fits };
