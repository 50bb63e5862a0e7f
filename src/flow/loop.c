/* loop.c: the supervisor of a loop: a body again and again, while or until a condition holds.
 *
 *   while:  to_eval ──▶ evaluated ──true──▶ running (an iteration) ──▶ to_eval …
 *                            └─────false──▶ completed
 *   until:  running (an iteration) ──▶ to_eval ──▶ evaluated ──false──▶ running …
 *                                                      └───────true───▶ completed
 *
 * After max_iterations, a condition that still asks for more fails the node. An iteration sees the
 * results of the one before; of those that came earlier nothing is left in memory. */
#include "flow/cell.h"

#include <stdio.h>

#include "base/error.h"

static bool by_while(const struct rv__node *node)
{
    return node->loop.while_.kind != EXPR_NONE;
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    *eval = by_while(node) ? EVAL_WHILE : EVAL_UNTIL;
    return by_while(node) ? PHASE_TO_EVAL : PHASE_RUNNING;
}

/* RUNNING without a body: the first iteration of an until; or an iteration failed. */
static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (sup->child != NULL)
        return PLACE_NOWHERE;
    if (sup->sup.bad > 0)
        return PLACE_TODO;
    *first = rv__first_of_body(&sup->node->bodies[0]);
    return first->node == NULL ? PLACE_TODO : PLACE_READY;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->sup.bad > 0)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    if (sup->phase == PHASE_EVALUATED) {
        bool truth = rv__truth(sup->value);
        if (truth != by_while(sup->node))
            return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
        if (sup->sup.ended >= sup->node->loop.max_iterations) {
            char text[128];
            snprintf(text, sizeof text,
                     "the condition of '%s' is still %strue after %lld iteration%s",
                     by_while(sup->node) ? "while" : "until", by_while(sup->node) ? "" : "not ",
                     (long long)sup->sup.ended, sup->sup.ended == 1 ? "" : "s");
            return rv__node_fail(turn, sup, text, err);
        }
    }
    return rv__body_start(turn, sup, sup->sup.ended, err);
}

/* The entries of the iteration, without those of the one before it: copies on the loop's own scope.
 * Linear in the body, as running it was. */
static int keep_entries(const struct rv__actor *frame, struct rv__entry *on, struct rv__entry **ret)
{
    struct rv__entry *newest = NULL, *oldest = NULL;
    for (struct rv__entry *e = frame->frame.scope; e != frame->frame.base; e = e->outer) {
        struct rv__entry *copy = rv__entry_copy(e);
        if (copy == NULL) {
            rv__entry_unref(newest);
            return RV_ENOMEM;
        }
        if (oldest != NULL)
            oldest->outer = copy;
        else
            newest = copy;
        oldest = copy;
    }
    if (oldest != NULL)
        oldest->outer = rv__entry_ref(on);
    *ret = newest != NULL ? newest : rv__entry_ref(on);
    return RV_OK;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    struct rv__entry *base = rv__actor_frame(sup)->frame.scope;
    struct rv__entry *kept = NULL;
    struct rv__inner *inner = rv__inner_new(1);
    if (inner == NULL)
        return RV_ENOMEM;
    if (keep_entries(frame, base, &kept) < 0) {
        rv__inner_unref(inner);
        return RV_ENOMEM;
    }
    inner->base = rv__entry_ref(base);
    inner->index = frame->frame.iteration;
    inner->children[0].status = (uint8_t)fact->status;
    inner->children[0].scope = kept;
    rv__inner_unref(sup->sup.inner);
    sup->sup.inner = inner;
    sup->sup.ended++;
    if (fact->status == STATUS_FAILED) {
        sup->sup.bad++;
        sup->sup.error = rv__blob_ref(fact->error);
        sup->phase = PHASE_RUNNING;
    } else {
        sup->phase = PHASE_TO_EVAL;
    }
    return RV_OK;
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    bool more = sup->child != NULL && rv__frame_leaves(sup->child); /* ended in an iteration */
    struct rv__inner *all;
    if (sup->node->loop.keep == KEEP_LAST && more) {
        struct rv__entry *scope;
        if (rv__frame_left(sup->child, &scope) < 0)
            return NULL;
        return rv__inner_of_body(sup->child, scope, sup->child->frame.iteration);
    }
    if (sup->node->loop.keep == KEEP_LAST && sup->sup.inner != NULL)
        return rv__inner_ref(sup->sup.inner);
    all = rv__inner_new(0);
    if (all != NULL && sup->node->loop.keep == KEEP_ALL) {
        all->iterations = sup->sup.ended + more;
        all->key = rv__blob_ref(sup->sup.key);
    }
    return all;
}

const struct rv__kind rv__loop_kind = { first_phase, place, advance, body_ended, inner };
