/* workflow.c: the supervisor of a nested workflow: one body, with an input of its own. */
#include "flow/cell.h"

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

/* Its last node's result is all that is told of it: what is in flight leaves nothing. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    return rv__inner_of_body(sup->child, rv__entry_ref(sup->child->frame.scope), 0);
}

const struct rv__kind rv__workflow_kind = { first_phase, place, advance, NULL, inner };
