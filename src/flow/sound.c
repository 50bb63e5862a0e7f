/* sound.c: is an actor that was read from a snapshot possible? Everything that decide and evolve rely on is checked
 * here, so that a damaged snapshot cannot crash us. */
#include "base/json.h"
#include "flow/cell.h"

/* Does the chain of entries from `scope` lead down to `base`? */
bool rv__scope_below(const struct rv__entry *scope, const struct rv__entry *base)
{
    while (scope != base && scope != NULL)
        scope = scope->outer;
    return scope == base;
}

const char *rv__children_fit(const struct rv__node *node, const struct rv__inner *inner)
{
    if (inner->child_count != node->body_count)
        return "ch";
    for (uint32_t i = 0; i < inner->child_count; i++)
        if (inner->children[i].scope != NULL &&
            !rv__scope_below(inner->children[i].scope, inner->base))
            return "ch";
    return NULL;
}

const char *rv__inner_linked(const struct rv__inner *inner)
{
    for (uint32_t i = 0; i < inner->child_count; i++)
        if (!rv__scope_below(inner->children[i].scope, inner->base))
            return "ch";
    return NULL;
}

const char *rv__inner_one(const struct rv__inner *inner)
{
    return inner->child_count == 1 ? rv__inner_linked(inner) : "ch";
}

static bool eval_fits(const struct rv__actor *a)
{
    switch ((enum rv__eval)a->eval) {
    case EVAL_WHEN:
    case EVAL_IF:
    case EVAL_WHILE:
    case EVAL_UNTIL:
    case EVAL_ITEMS: return !a->is_frame && rv__eval_expr(a->node, a->eval) != NULL;
    case EVAL_INPUT:
        return a->is_frame ? rv__body_needs_input(a->frame.body)
                           : rv__input_expr(a->node, NULL) != NULL && a->step.made == NULL;
    case EVAL_DESCRIPTION: { /* of the node that ended last in it */
        const struct rv__entry *ended = a->is_frame ? a->frame.scope : NULL;
        return ended != NULL && ended != a->frame.base && ended == a->frame.last &&
               ended->status == STATUS_COMPLETED && a->frame.at > 0 && ended->description == NULL &&
               rv__describes(ended->node, ended->state);
    }
    case EVALS: break;
    }
    return false;
}

static bool frame_sound(const struct rv__cell *cell, const struct rv__actor *f)
{
    const struct rv__wrap *wrap = f->frame.body->wrap;
    bool detached_scope = f->frame.prefix != NULL;
    if (f == cell->root) {
        if (f->node != NULL || detached_scope || f->owner != NULL || f->frame.iteration >= 0)
            return false;
    } else if (f->node == NULL || (f->owner == NULL) != detached_scope) {
        return false;
    } else if (detached_scope) {
        if (!rv__detaches(f->node))
            return false;
    } else {
        if (f->owner->is_frame || f->owner->node != f->node || rv__is_step(f->node) ||
            (f->frame.iteration >= 0) != rv__node_numbers(f->node))
            return false;
    }
    if (!rv__scope_below(f->frame.scope, f->frame.base) ||
        (f->child != NULL && f->child->next != NULL))
        return false;
    if (detached_scope && f->phase != PHASE_RUNNING)
        return false;
    bool state = !detached_scope && f->node != NULL && rv__flow_kind(f->node)->inputs != NULL;
    if (f->due_ms != 0 && !(state && f->phase == PHASE_RUNNING && f->frame.scope == f->frame.base))
        return false;
    if ((!state && f->frame.inputs != NULL) || state != (f->frame.attachment != NULL))
        return false;
    uint32_t inputs = state ? f->node->stage.states[f->frame.body->index].depends_count : 0;
    if ((f->frame.inputs != NULL ? f->frame.inputs->child_count : 0) != inputs)
        return false;
    if (!detached_scope && f->frame.items != NULL)
        return false;
    if (detached_scope) { /* it has the vector, and the item that its steps see */
        if (rv__blob_is_reference(f->value) || rv__blob_is_reference(f->frame.prefix))
            return false;
        struct rv__str items = rv__blob_str(f->value), prefix = rv__blob_str(f->frame.prefix),
                       number;
        struct rv__json_iter it;
        int64_t n;
        if (f->frame.items != NULL &&
            (f->frame.iteration < 0 || f->frame.iteration >= f->frame.items->count))
            return false;
        if (rv__json_type(prefix) != RV__JSON_ARRAY || f->frame.item_at > items.len ||
            f->frame.item_len > items.len - f->frame.item_at)
            return false;
        rv__json_iter_init(&it, prefix);
        while (rv__json_next(&it, NULL, &number))
            if (rv__json_int(number, &n) < 0 || n < 0)
                return false;
        return f->frame.item_len == 0 ||
               rv__json_check((struct rv__str){ items.at + f->frame.item_at, f->frame.item_len },
                              RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK;
    }
    if ((f->frame.finished && (wrap == NULL || wrap->finally == NULL)) ||
        ((f->frame.cancelled || f->frame.asked) && (f != cell->root || wrap->finally == NULL)) ||
        (f->frame.cancelled && (!f->frame.asked || f->phase != PHASE_RUNNING)))
        return false;
    /* A frame that failed before it began names no node and has nothing left to run. */
    bool named = f->frame.failed_node != RV__NO_NODE && f->frame.scope != f->frame.base;
    if (f->frame.failed && !named && f->phase == PHASE_RUNNING &&
        (f->child != NULL || rv__frame_next(f) != NULL))
        return false;
    switch ((enum rv__phase)f->phase) {
    case PHASE_TO_EVAL:
    case PHASE_EVAL: /* its input does not exist yet */
        return eval_fits(f) && f->child == NULL && !f->frame.failed &&
               (f->eval != EVAL_INPUT || f->frame.input == NULL);
    case PHASE_RUNNING: return true;
    case PHASE_FAILED:
        return f->frame.failed && f->frame.failed_node != RV__NO_NODE &&
               f->frame.scope != f->frame.base && wrap != NULL && wrap->on_error != NULL;
    case PHASE_BEGIN:
    case PHASE_EVALUATED:
    case PHASE_READY:
    case PHASE_RETRY:
    case PHASE_PARKED:
    case PHASES: break;
    }
    return false;
}

static bool step_sound(const struct rv__actor *step)
{
    bool parks = step->node->step.parks;
    bool input = rv__input_expr(step->node, NULL) != NULL;
    bool tried = step->phase == PHASE_RUNNING || step->phase == PHASE_READY ||
                 step->phase == PHASE_RETRY || step->phase == PHASE_PARKED;
    if ((step->step.made != NULL && !input) || (step->step.made == NULL && input && tried))
        return false;
    if (step->step.note != NULL &&
        (rv__json_type(rv__blob_str(step->step.note)) != RV__JSON_OBJECT || !tried ||
         step->phase == PHASE_RETRY || (step->phase == PHASE_PARKED && step->park != PARK_SIGNAL)))
        return false;
    if (step->step.answer != NULL && (step->step.note == NULL || step->phase == PHASE_PARKED))
        return false;
    switch ((enum rv__phase)step->phase) {
    case PHASE_BEGIN: /* what comes before is done */
        return input ? step->step.made != NULL
                     : step->node->when.kind != EXPR_NONE && step->eval == EVAL_WHEN;
    case PHASE_TO_EVAL:
    case PHASE_EVAL:
        return (step->eval == EVAL_WHEN || step->eval == EVAL_INPUT) && eval_fits(step);
    case PHASE_EVALUATED:
        return step->node->when.kind != EXPR_NONE && step->eval == EVAL_WHEN && step->value != NULL;
    case PHASE_RUNNING: return !parks && step->step.attempt > 0;
    case PHASE_READY:
    case PHASE_RETRY: return step->step.attempt > 0;
    case PHASE_PARKED:
        if (step->park == PARK_CUT)
            return step->node->step.kind == STEP_DELAY && step->step.attempt > 0;
        return !parks || step->park != PARK_HANDLE;
    case PHASE_FAILED: return step->node->on_error != NULL;
    case PHASES: break;
    }
    return false;
}

static bool supervisor_sound(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    int64_t frames = 0;
    for (const struct rv__actor *c = sup->child; c != NULL; c = c->next)
        frames++;
    bool begun = sup->phase == PHASE_RUNNING || sup->eval != EVAL_WHEN;
    if (begun && ((kind->outcomes != NULL && sup->sup.inner == NULL) ||
                  (rv__iterates(node) && sup->sup.key == NULL)))
        return false;
    if (begun && kind->schedule != NULL && sup->sup.schedule == NULL)
        return false;
    if (sup->due_ms != 0 && kind->timer == NULL)
        return false;
    if (sup->sup.error != NULL && sup->sup.bad == 0 && kind->answer == NULL)
        return false; /* the error is that of the first failure */
    if (!kind->sound(sup, frames))
        return false;
    switch ((enum rv__phase)sup->phase) {
    case PHASE_BEGIN: return node->when.kind != EXPR_NONE && frames == 0;
    case PHASE_TO_EVAL:
    case PHASE_EVAL: return eval_fits(sup) && frames == 0;
    case PHASE_EVALUATED: return eval_fits(sup) && sup->value != NULL && frames == 0;
    case PHASE_RUNNING: return true;
    case PHASE_RETRY:
        return kind->retried != NULL && frames == 0 && sup->due_ms != 0 &&
               sup->sup.schedule != NULL;
    case PHASE_READY:
    case PHASE_PARKED:
    case PHASE_FAILED:
    case PHASES: break;
    }
    return false;
}

static bool node_sound(const struct rv__actor *a)
{
    const struct rv__actor *owner = a->owner;
    if (a->node->is_handler) {
        bool begins = owner->phase == PHASE_FAILED ||
                      (owner->is_frame && owner->phase == PHASE_RUNNING &&
                       owner->frame.prefix == NULL);
        const struct rv__node *handler = !begins           ? NULL
                                         : owner->is_frame ? rv__frame_next(owner)
                                                           : owner->node->on_error;
        if (handler != a->node)
            return false;
    } else if (!owner->is_frame || owner->frame.at >= owner->frame.body->count ||
               owner->frame.body->nodes[owner->frame.at] != a->node ||
               (owner->frame.prefix != NULL) != a->detached) {
        /* A detached block is below its detached scope, at its place in the plan. */
        if (!owner->is_frame || owner->frame.prefix == NULL || owner->node != a->node ||
            !a->detached)
            return false;
    }
    return rv__is_step(a->node) ? step_sound(a) : supervisor_sound(a);
}

bool rv__actor_sound(const struct rv__cell *cell, const struct rv__actor *actor)
{
    return actor->is_frame ? frame_sound(cell, actor) : node_sound(actor);
}
