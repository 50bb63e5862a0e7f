/* branch.c: the supervisor of a branch: a condition, then one of two bodies.
 *
 *   to_eval ──▶ eval ──▶ evaluated ──▶ running (then | else) ──▶ ended with its body */
#include "flow/cell.h"

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    *eval = EVAL_IF;
    return PHASE_TO_EVAL;
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    (void)sup;
    (void)first;
    return PLACE_NOWHERE; /* it has its body, or is ended with it in the same step */
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    return rv__body_start(turn, sup, rv__truth(sup->value) ? 0 : 1, err);
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    struct rv__entry *scope;
    if (rv__frame_left(sup->child, &scope) < 0)
        return NULL;
    return rv__inner_of_body(sup->child, scope, sup->child->frame.body->index);
}

const struct rv__kind rv__branch_kind = { first_phase, place, advance, NULL, inner };
