/* sound.c: is an actor that was read from a snapshot one that could be? What decide and evolve rely on
 * is asked here: a disk may lie, we may not crash. */
#include "base/json.h"
#include "flow/cell.h"

/* Does the chain of entries from `scope` lead down to `base`? */
bool rv__scope_below(const struct rv__entry *scope, const struct rv__entry *base)
{
    while (scope != base && scope != NULL)
        scope = scope->outer;
    return scope == base;
}

static bool eval_fits(const struct rv__actor *a)
{
    switch ((enum rv__eval)a->eval) {
    case EVAL_WHEN: return !a->is_frame && a->node->when.kind != EXPR_NONE;
    case EVAL_IF: return !a->is_frame && a->node->kind == NODE_BRANCH;
    case EVAL_WHILE:
        return !a->is_frame && a->node->kind == NODE_LOOP && a->node->loop.while_.kind != EXPR_NONE;
    case EVAL_UNTIL:
        return !a->is_frame && a->node->kind == NODE_LOOP && a->node->loop.until.kind != EXPR_NONE;
    case EVAL_ITEMS: return !a->is_frame && a->node->kind == NODE_FOREACH;
    case EVAL_INPUT: return a->is_frame && rv__body_needs_input(a->frame.body);
    case EVAL_DESCRIPTION: { /* of the node that has ended last in it */
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
    bool shade = f->frame.prefix != NULL;
    if (f == cell->root) {
        if (f->node != NULL || shade || f->owner != NULL || f->frame.iteration >= 0)
            return false;
    } else if (f->node == NULL || (f->owner == NULL) != shade) {
        return false;
    } else if (shade) {
        if (f->node->kind != NODE_CONCURRENT || !f->node->concurrent.detached)
            return false;
    } else {
        bool iterates = f->node->kind == NODE_FOREACH || f->node->kind == NODE_LOOP;
        if (f->owner->is_frame || f->owner->node != f->node || f->node->kind == NODE_STEP ||
            (f->frame.iteration >= 0) != iterates)
            return false;
    }
    if (!rv__scope_below(f->frame.scope, f->frame.base) ||
        (f->child != NULL && f->child->next != NULL))
        return false;
    if (shade && f->phase != PHASE_RUNNING)
        return false;
    if (!shade && f->frame.items != NULL)
        return false;
    if (shade) { /* the vector, and the item that its steps see */
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
    switch ((enum rv__phase)f->phase) {
    case PHASE_TO_EVAL:
    case PHASE_EVAL: /* what is to be its input is not there yet */
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
    switch ((enum rv__phase)step->phase) {
    case PHASE_BEGIN:
    case PHASE_TO_EVAL:
    case PHASE_EVAL: return step->node->when.kind != EXPR_NONE && step->eval == EVAL_WHEN;
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

/* The iterations that run, of items in pieces. */
static bool pieces_sound(const struct rv__actor *sup)
{
    int64_t above = 0;
    for (const struct rv__actor *frame = sup->child; frame != NULL; frame = frame->next) {
        if (frame->frame.iteration < above || frame->frame.iteration >= sup->sup.next)
            return false;
        above = frame->frame.iteration + 1;
    }
    return sup->value == NULL && sup->sup.count == sup->sup.items->count &&
           sup->sup.next <= sup->sup.count;
}

/* The items, the cursor, and the item of each iteration that runs, in one walk. */
static bool items_sound(const struct rv__actor *sup)
{
    if (rv__blob_is_reference(sup->value))
        return false;
    struct rv__str items = rv__blob_str(sup->value), item = { NULL, 0 };
    struct rv__json_iter it;
    const struct rv__actor *frame = sup->child;
    size_t cursor = 0;
    int64_t index = 0;
    if (items.len == 0 || rv__json_type(items) != RV__JSON_ARRAY)
        return false;
    rv__json_iter_init(&it, items);
    for (; rv__json_next(&it, NULL, &item); index++) {
        if (frame != NULL && frame->frame.iteration == index) {
            if (frame->frame.item_at != (size_t)(item.at - items.at) ||
                frame->frame.item_len != item.len)
                return false;
            frame = frame->next;
        }
        if (index + 1 == sup->sup.next)
            cursor = (size_t)(it.at - items.at);
    }
    return frame == NULL && index == sup->sup.count && cursor == sup->sup.cursor;
}

static bool supervisor_sound(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    int64_t children = 0;
    for (const struct rv__actor *c = sup->child; c != NULL; c = c->next)
        children++;
    bool many = node->kind == NODE_FOREACH || node->kind == NODE_CONCURRENT;
    bool begun = sup->phase == PHASE_RUNNING || sup->eval != EVAL_WHEN;
    if (many ? children != sup->sup.active : children > 1)
        return false;
    if (begun &&
        ((node->kind == NODE_CONCURRENT && sup->sup.inner == NULL) ||
         ((node->kind == NODE_FOREACH || node->kind == NODE_LOOP) && sup->sup.key == NULL)))
        return false;
    if (node->kind == NODE_LOOP && sup->sup.inner != NULL && sup->sup.inner->child_count != 1)
        return false;
    if (node->kind == NODE_CONCURRENT && sup->sup.next > node->body_count)
        return false;
    switch ((enum rv__phase)sup->phase) {
    case PHASE_BEGIN: return node->when.kind != EXPR_NONE && children == 0;
    case PHASE_TO_EVAL:
    case PHASE_EVAL: return eval_fits(sup) && children == 0;
    case PHASE_EVALUATED: return eval_fits(sup) && sup->value != NULL && children == 0;
    case PHASE_RUNNING:
        if (node->kind == NODE_BRANCH)
            return children == 1;
        if (node->kind != NODE_FOREACH)
            return true;
        return sup->sup.items != NULL ? pieces_sound(sup) : items_sound(sup);
    case PHASE_READY:
    case PHASE_RETRY:
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
        const struct rv__node *handler = owner->is_frame && owner->frame.body->wrap != NULL
                                             ? owner->frame.body->wrap->on_error
                                         : owner->is_frame ? NULL
                                                           : owner->node->on_error;
        if (owner->phase != PHASE_FAILED || handler != a->node)
            return false;
    } else if (!owner->is_frame || owner->frame.at >= owner->frame.body->count ||
               owner->frame.body->nodes[owner->frame.at] != a->node ||
               (owner->frame.prefix != NULL) != a->detached) {
        /* A detached block stands below its shade, at the place where it was. */
        if (!owner->is_frame || owner->frame.prefix == NULL || owner->node != a->node ||
            !a->detached)
            return false;
    }
    return a->node->kind == NODE_STEP ? step_sound(a) : supervisor_sound(a);
}

bool rv__actor_sound(const struct rv__cell *cell, const struct rv__actor *actor)
{
    return actor->is_frame ? frame_sound(cell, actor) : node_sound(actor);
}
