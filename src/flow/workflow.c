/* workflow.c: the supervisor of a nested workflow: one body, with its own input.
 *
 * Its result is that of its last node. As a child of a concurrent, its result is the map of its nodes, as for any
 * child that is more than a step. */
#include "base/bugs.h"
#include "flow/write.h"

bool rv__shows_nodes(const struct rv__node *node)
{
    return node->kind == NODE_WORKFLOW && node->body != NULL && node->body->bare &&
           node->body->owner->kind == NODE_CONCURRENT && !RV__BUG(430);
}

static struct rv__first first_work(const struct rv__node *node)
{
    return rv__first_of_body(&node->bodies[0]);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING; /* the body evaluates its input */
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (sup->child != NULL)
        return PLACE_NOWHERE;
    *first = rv__first_of_body(&sup->node->bodies[0]);
    return first->node == NULL ? PLACE_TODO : PLACE_READY;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    return rv__body_start(turn, sup, 0, err);
}

static bool has_begun(const struct rv__actor *sup)
{
    return sup->child != NULL;
}

/* If only the result of the last node counts, work in flight leaves nothing behind. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    struct rv__entry *scope;
    if (!rv__shows_nodes(sup->node))
        scope = rv__entry_ref(sup->child->frame.scope);
    else if (rv__frame_left(sup->child, &scope) < 0)
        return NULL;
    return rv__inner_of_body(sup->child, scope, 0);
}

/* ------------------------------------------------------------------------------ results --- */

static const struct rv__entry *result_from(const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    if (inner == NULL || entry->status != STATUS_COMPLETED || rv__shows_nodes(entry->node) ||
        inner->children[0].scope == inner->base)
        return NULL;
    return inner->children[0].scope;
}

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    if (rv__shows_nodes(entry->node) && inner != NULL)
        rv__entries_write(w, inner->children[0].scope, inner->base);
    else
        rv__writer_put(w, "null"); /* it did not complete, or is empty */
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    const struct rv__body *body = &node->bodies[0];
    rv__node_expand(w, body->nodes[body->count - 1], result, vector);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    return index == 0 && sup->child == NULL ? NULL : "there is one body";
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    (void)sup;
    return frames <= 1;
}

static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    (void)node;
    return rv__inner_one(inner);
}

const struct rv__flow_kind rv__workflow_kind = {
    .first_work = first_work,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .has_begun = has_begun,
    .inner = inner,
    .result_from = result_from,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_running = true,
    .body_fits = body_fits,
    .sound = sound,
    .inner_fits = inner_fits,
};
