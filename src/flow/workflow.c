/* workflow.c: the supervisor of a nested workflow: one body, with an input of its own. */
#include "flow/write.h"

static struct rv__first first_work(const struct rv__node *node)
{
    return rv__first_of_body(&node->bodies[0]);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING; /* its input is the body's to evaluate */
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

/* Its last node's result is all that is told of it: what is in flight leaves nothing. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    return rv__inner_of_body(sup->child, rv__entry_ref(sup->child->frame.scope), 0);
}

/* ------------------------------------------------------------------------------ results --- */

/* That of its last node. */
static const struct rv__entry *result_from(const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    if (inner == NULL || entry->status != STATUS_COMPLETED ||
        inner->children[0].scope == inner->base)
        return NULL;
    return inner->children[0].scope;
}

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    (void)entry;
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
