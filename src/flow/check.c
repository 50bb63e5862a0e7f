/* check.c: is a fact possible in this cell? Facts from disk may be damaged, so everything that evolve relies on is
 * checked here first. A table has the kinds of actor and phases in which a fact is possible. */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

#define PHASE(x) (1u << PHASE_##x)
enum who { NOBODY, FRAME, NODE, STEP, SUP, WORKER /* a step, a supervisor or a frame at work */ };

static const struct {
    uint8_t who;
    uint16_t phases;
} fits[FACT_KINDS] = {
    [FACT_RUN_SUSPENDED] = { WORKER,
                             PHASE(READY) |
                                 PHASE(TO_EVAL) }, /* unless the run as a whole is suspended */
    [FACT_EVAL_STARTED] = { WORKER, PHASE(TO_EVAL) },
    [FACT_EVAL_COMPLETED] = { WORKER, PHASE(EVAL) },
    [FACT_EVAL_FAILED] = { FRAME, PHASE(EVAL) | PHASE(TO_EVAL) },
    [FACT_NODE_STARTED] = { SUP, PHASE(BEGIN) },
    [FACT_NODE_COMPLETED] = { SUP, PHASE(RUNNING) | PHASE(EVALUATED) },
    [FACT_NODE_FAILED] = { SUP, PHASE(RUNNING) | PHASE(EVALUATED) | PHASE(EVAL) | PHASE(TO_EVAL) },
    [FACT_NODE_SKIPPED] = { NODE, PHASE(EVALUATED) }, /* or a new one, after a final state */
    [FACT_NODE_RETRYING] = { SUP, PHASE(RUNNING) },
    [FACT_BODY_STARTED] = { SUP, PHASE(RUNNING) | PHASE(EVALUATED) }, /* of its owner */
    [FACT_BODY_ENDED] = { FRAME, PHASE(RUNNING) },
    [FACT_STEP_STARTED] = { STEP, PHASE(READY) | PHASE(BEGIN) },
    [FACT_STEP_COMPLETED] = { STEP, PHASE(RUNNING) | PHASE(PARKED) },
    [FACT_STEP_SKIPPED] = { STEP, PHASE(RUNNING) | PHASE(PARKED) },
    [FACT_STEP_FAILED] = { STEP, PHASE(RUNNING) | PHASE(PARKED) | PHASE(EVAL) | PHASE(READY) |
                                     PHASE(TO_EVAL) },
    [FACT_STEP_RETRYING] = { STEP, PHASE(RUNNING) | PHASE(PARKED) },
    [FACT_STEP_PARKED] = { STEP, PHASE(RUNNING) },
    [FACT_STEP_NOTED] = { STEP, PHASE(RUNNING) | PHASE(PARKED) },
    [FACT_STEP_LOST] = { WORKER, PHASE(RUNNING) | PHASE(EVAL) },
    [FACT_STEP_GIVEN] = { STEP, PHASE(RUNNING) },
    [FACT_STEP_READ] = { WORKER, PHASE(RUNNING) | PHASE(EVAL) },
    [FACT_TIMER_FIRED] = { NODE, PHASE(RETRY) },
    [FACT_DETACHED_ENDED] = { FRAME, PHASE(RUNNING) },
};

static int misfit(const struct rv__fact *fact, const char *why, rv_error *err)
{
    return rv__fail(err, RV_ESTORE, "fact %s (actor %llu, node %lld) does not fit the run: %s",
                    rv__fact_kind_name(fact->kind), (unsigned long long)fact->actor,
                    fact->node == RV__NO_NODE ? -1LL : (long long)fact->node, why);
}

static bool is(const struct rv__actor *actor, enum who who)
{
    bool step = rv__actor_is_step(actor);
    switch (who) {
    case NOBODY: return false;
    case FRAME: return actor->is_frame;
    case NODE: return !actor->is_frame;
    case STEP: return step;
    case SUP: return !actor->is_frame && !step;
    case WORKER: return true;
    }
    return false;
}

/* May this node begin below this owner now? */
static bool may_begin(const struct rv__actor *owner, const struct rv__node *node)
{
    if (owner->child != NULL)
        return false;
    if (!owner->is_frame)
        return owner->phase == PHASE_FAILED && owner->node->on_error == node;
    bool begins = owner->phase == PHASE_FAILED || owner->phase == PHASE_RUNNING;
    return begins && owner->frame.prefix == NULL && rv__frame_next(owner) == node;
}

static const char *check_new(const struct rv__cell *cell, const struct rv__fact *fact)
{
    const struct rv__actor *owner = rv__cell_find(cell, fact->owner);
    const struct rv__node *node = cell->plan->nodes[fact->node];
    if (owner == NULL)
        return "its owner is not there";
    if (fact->actor != cell->next_id)
        return "its number is not the next";
    if (fact->kind == FACT_NODE_SKIPPED)
        return may_begin(owner, node) && owner->is_frame && rv__frame_leaves_out(owner, node)
                   ? NULL
                   : "its node is not left out";
    if (fact->kind != FACT_BODY_STARTED)
        return may_begin(owner, node) && !(owner->is_frame && rv__frame_leaves_out(owner, node))
                   ? NULL
                   : "its node cannot begin now";

    if (owner->is_frame || owner->node != node || rv__is_step(node))
        return "it is no body of its owner";
    if (!(fits[fact->kind].phases & (1u << owner->phase)))
        return "its owner is not in a state to begin one";
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    if (owner->phase == PHASE_RUNNING ? !kind->starts_running
                                      : !kind->starts_evaluated || owner->eval == EVAL_WHEN)
        return "its owner is not in a state to begin one";
    const char *why = kind->body_fits(owner, fact->index);
    if (why != NULL)
        return why;
    if (kind->fact_fits != NULL)
        return kind->fact_fits(owner, NULL, fact);
    return fact->generation == 0 && fact->attempt == 0 && fact->due_ms == 0 && fact->name == NULL
               ? NULL
               : "only a state has attempts";
}

/* A note is left by an attempt, an answer comes while it waits for one. */
static const char *check_note(const struct rv__actor *step, const struct rv__fact *fact)
{
    if (fact->kind != FACT_STEP_NOTED)
        return fact->note == NULL ? NULL : "only an attempt that goes on leaves a note";
    if (fact->taken)
        return step->step.note != NULL && fact->note == NULL && fact->name == NULL
                   ? NULL
                   : "it asked for nothing";
    return step->phase == PHASE_RUNNING && fact->note != NULL && fact->result == NULL &&
                   rv__json_type(rv__blob_str(fact->note)) == RV__JSON_OBJECT
               ? NULL
               : "it leaves no note";
}

static const char *check_step(const struct rv__actor *step, const struct rv__fact *fact)
{
    bool parks = step->node->step.parks;
    const char *bad_note = check_note(step, fact);
    if (bad_note != NULL)
        return bad_note;
    if (fact->taken && (fact->kind == FACT_STEP_COMPLETED || fact->kind == FACT_STEP_NOTED) &&
        (step->step.channel == NULL || step->step.channel->first_signal == NULL ||
         step->phase != PHASE_PARKED))
        return "there is no signal to take";
    if (fact->cut && step->node->step.kind != STEP_DELAY)
        return "only a delay is cut";
    if (fact->kind == FACT_STEP_STARTED && step->step.made == NULL &&
        rv__input_expr(step->node, NULL) != NULL)
        return "its input was not evaluated";
    if (fact->kind == FACT_STEP_PARKED && parks)
        return "it is parked as it begins";
    if (fact->kind == FACT_STEP_STARTED && fact->attempt < 1)
        return "attempts count from 1";
    if (step->node->step.kind != STEP_CHAT
            ? fact->turn != NULL || (fact->kind == FACT_STEP_FAILED && fact->due_ms != 0)
            : fact->kind == FACT_STEP_COMPLETED) {
        if (step->node->step.kind != STEP_CHAT)
            return "only a turn has a chat";
        const struct rv__actor *chat = step->owner->owner;
        const char *why = rv__flow_kind(chat->node)->fact_fits(chat, NULL, fact);
        if (why != NULL)
            return why;
    }
    if (fact->kind == FACT_STEP_GIVEN && fact->given == NULL)
        return "it does not say what";
    if (fact->kind != FACT_STEP_STARTED && fact->attempt != 0 &&
        fact->attempt != step->step.attempt)
        return "it is of another attempt";
    return NULL;
}

static const char *check_known(const struct rv__fact *fact, const struct rv__actor *actor)
{
    if (fact->kind == FACT_BODY_STARTED)
        return "it has no owner";
    if (fact->items != NULL && fact->kind != FACT_EVAL_COMPLETED)
        return "it has no items";
    const struct rv__node *about = rv__actor_about(actor);
    if (about == NULL) /* the outermost frame has nothing else to evaluate */
        return "the actor is not in a state for it";
    if (!is(actor, (enum who)fits[fact->kind].who) ||
        !(fits[fact->kind].phases & (1u << actor->phase)))
        return "the actor is not in a state for it";
    if (about->id != fact->node)
        return "the actor is of another node";
    if (fact->describe && (!rv__describes(about, fact->state) || actor->detached))
        return "it has no description";
    bool working = rv__actor_working(actor);
    if (fact->kind == FACT_EVAL_COMPLETED && (fact->result == NULL) == (fact->items == NULL))
        return "it has no value, or two";
    if (fact->items != NULL && (actor->is_frame || fact->eval != EVAL_ITEMS))
        return "it has no items";
    bool needs_work = fact->kind == FACT_EVAL_COMPLETED || fact->kind == FACT_STEP_LOST ||
                      fact->kind == FACT_STEP_READ;
    if (fact->kind == FACT_STEP_READ && fact->name == NULL)
        return "it does not say what";
    if (needs_work && !working)
        return "no work is in flight";
    if ((fact->kind == FACT_EVAL_STARTED || fact->kind == FACT_EVAL_COMPLETED ||
         fact->kind == FACT_EVAL_FAILED) &&
        fact->eval != actor->eval)
        return "another evaluation was wanted";
    bool timed_out = fact->kind == FACT_BODY_ENDED && rv__actor_waiting(actor);
    if (fact->kind == FACT_BODY_ENDED &&
        (actor->owner == NULL || (actor->child != NULL && !timed_out) ||
         actor->frame.prefix != NULL || rv__flow_kind(actor->node)->body_ended == NULL ||
         (fact->status != STATUS_COMPLETED && fact->status != STATUS_FAILED)))
        return "it has not ended";
    if (fact->kind == FACT_BODY_ENDED) {
        const struct rv__flow_kind *kind = rv__flow_kind(actor->node);
        if (kind->fact_fits != NULL)
            return kind->fact_fits(actor->owner, actor, fact);
        return fact->next == NEXT_NONE && fact->to == 0 && fact->attempt == 0
                   ? NULL
                   : "only a state goes on so";
    }
    if (fact->kind == FACT_DETACHED_ENDED && (actor->frame.prefix == NULL || actor->child != NULL))
        return "it has not ended";
    bool ends = fact->kind == FACT_NODE_COMPLETED || fact->kind == FACT_NODE_FAILED;
    if (ends && actor->phase == PHASE_RUNNING && actor->child == NULL &&
        rv__flow_kind(actor->node)->body_ended == NULL)
        return "it has not run";
    if (actor->phase == PHASE_EVALUATED &&
        (fact->kind == FACT_NODE_SKIPPED) != (actor->eval == EVAL_WHEN))
        return "another evaluation was wanted";
    if (fact->kind == FACT_NODE_COMPLETED && actor->phase == PHASE_EVALUATED &&
        !rv__flow_kind(actor->node)->ends_evaluated)
        return "it has not run";
    if (fact->kind == FACT_NODE_RETRYING)
        return rv__flow_kind(actor->node)->retried != NULL
                   ? rv__flow_kind(actor->node)->fact_fits(actor, NULL, fact)
                   : "only a chat begins anew";
    if (rv__actor_is_step(actor))
        return check_step(actor, fact);
    return NULL;
}

static const char *check_resumed(const struct rv__cell *cell, const struct rv__fact *fact)
{
    const struct rv__actor *actor = rv__cell_find(cell, fact->actor);
    if (cell->status != RUN_SUSPENDED || (actor == NULL && fact->actor != 0))
        return "it is not suspended";
    if (rv__suspension_find(cell, actor, fact->which) == NULL &&
        !(actor == NULL && fact->which == 0 && cell->suspended == NULL))
        return "it is not suspended for that";
    if (actor != NULL ? rv__actor_about(actor)->id != fact->node : fact->node != RV__NO_NODE)
        return "the actor is of another node";
    if (fact->which == 0)
        return fact->decision == DECISION_RESUME ? NULL : "only a state is decided about so";
    assert(actor != NULL); /* only states have a `which`, and this one was found */
    return rv__flow_kind(actor->node)->fact_fits(actor, NULL, fact);
}

/* A suspension because of an actor: a step that crashes, or a state of a stage. */
static const char *check_suspended(const struct rv__cell *cell, const struct rv__fact *fact,
                                   const struct rv__actor *actor)
{
    if (rv__cell_stopped(cell))
        return "it is suspended as a whole";
    if (rv__suspension_find(cell, actor, fact->which) != NULL)
        return "it is suspended for that already";
    if (fact->which == 0)
        return NULL;
    const struct rv__flow_kind *kind = actor->is_frame ? NULL : rv__flow_kind(actor->node);
    return kind != NULL && kind->fact_fits != NULL ? kind->fact_fits(actor, NULL, fact)
                                                   : "it has no states";
}

static const char *check_run(const struct rv__cell *cell, const struct rv__fact *fact)
{
    bool over = rv__run_terminal(cell->status);
    switch ((int)fact->kind) {
    case FACT_RUN_STARTED:
        return !cell->started && fact->actor == cell->next_id ? NULL : "it has started already";
    case FACT_RUN_COMPLETED:
    case FACT_RUN_FAILED:
    case FACT_RUN_CANCELLED: return cell->root != NULL && !over ? NULL : "it has ended already";
    case FACT_RUN_CANCELLING:
        if (cell->root == NULL || over || cell->root->frame.asked)
            return "it has ended already";
        return cell->plan->body.wrap->finally != NULL && !cell->root->frame.finished
                   ? NULL
                   : "there is nothing to run after it";
    case FACT_RUN_RESUMED: return check_resumed(cell, fact);
    case FACT_RUN_ABORTED:
        return cell->status == RUN_SUSPENDED && cell->root != NULL ? NULL : "it is not suspended";
    case FACT_SIGNAL_RECEIVED:
        if (fact->name == NULL || fact->result == NULL)
            return "it has no name or no payload";
        return rv__cell_active(cell) ? NULL : "it has ended already";
    case FACT_DETACHED_CANCELLED: return NULL;
    default: break;
    }
    return "no such fact";
}

int rv__fact_check(const struct rv__cell *cell, const struct rv__fact *fact, rv_error *err)
{
    if (fact->kind != FACT_RUN_STARTED && !cell->started)
        return misfit(fact, "it has not started", err);
    if (fact->node != RV__NO_NODE && fact->node >= cell->plan->node_count)
        return misfit(fact, "its plan has no such node", err);

    const char *why = NULL;
    bool whole = fact->kind == FACT_RUN_SUSPENDED && fact->actor == 0;
    bool runs = cell->status == RUN_RUNNING || (cell->status == RUN_SUSPENDED && !whole);
    if (fact->kind == FACT_RUN_SUSPENDED && (!runs || fact->error == NULL)) {
        why = "it is not running, or nobody says why";
    } else if (whole) {
        why = fact->node == RV__NO_NODE && fact->which == 0 ? NULL
                                                            : "it names a node, and nobody in it";
    } else if (fits[fact->kind].who == NOBODY) {
        why = fact->items != NULL ? "it has no items" : check_run(cell, fact);
    } else if (fact->node == RV__NO_NODE) {
        why = "it names no node";
    } else if (fact->owner != 0) {
        enum rv__eval eval;
        bool evaluates = rv__begins_evaluating(cell->plan->nodes[fact->node], &eval);
        bool makes = fact->kind == FACT_EVAL_STARTED || fact->kind == FACT_NODE_STARTED ||
                     fact->kind == FACT_STEP_STARTED || fact->kind == FACT_BODY_STARTED ||
                     fact->kind == FACT_NODE_SKIPPED;
        bool is_step = rv__is_step(cell->plan->nodes[fact->node]);
        if (!makes || (fact->kind == FACT_STEP_STARTED && !is_step) ||
            (fact->kind == FACT_NODE_STARTED && is_step) ||
            (fact->kind == FACT_EVAL_STARTED && fact->eval != (int)eval))
            why = "it begins nothing";
        else if (fact->kind == FACT_STEP_STARTED && fact->attempt < 1)
            why = "attempts count from 1";
        else if (fact->cut && cell->plan->nodes[fact->node]->step.kind != STEP_DELAY)
            why = "only a delay is cut";
        else if (fact->kind != FACT_BODY_STARTED && fact->kind != FACT_NODE_SKIPPED &&
                 (fact->kind == FACT_EVAL_STARTED) != evaluates)
            why = "it does not begin with its condition";
        else
            why = check_new(cell, fact);
    } else {
        const struct rv__actor *actor = rv__cell_find(cell, fact->actor);
        why = actor == NULL ? "the actor is not there" : NULL;
        bool state = why == NULL && fact->kind == FACT_RUN_SUSPENDED && fact->which != 0;
        if (why == NULL && fact->kind == FACT_RUN_SUSPENDED)
            why = check_suspended(cell, fact, actor);
        if (why == NULL && !state)
            why = check_known(fact, actor);
        if (why == NULL && state && actor->node->id != fact->node)
            why = "the actor is of another node";
    }
    return why == NULL ? RV_OK : misfit(fact, why, err);
}
