/* concurrent.c: the supervisor of a concurrent block: several bodies at once, each its own child.
 *
 *   running ──▶ completed | failed      detached: the node is completed as it begins, and goes on
 *                                       under a shade until its last child has ended
 *
 * Children that wait are a range, `next` to the last. Whatever is alive when the node ends is
 * cancelled with it. */
#include "base/bugs.h"
#include "flow/cell.h"

#include <assert.h>

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING;
}

/* What the outcomes so far mean: 0 go on, 1 completed, -1 failed. A detached one just goes on. */
static int verdict(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    int64_t children = node->body_count;
    if (sup->detached)
        return sup->sup.ended + RV__BUG(7) >= children;
    if (node->concurrent.join != RV__JOIN_ALL) {
        if (sup->sup.good >= node->concurrent.join)
            return 1;
        return children - (sup->sup.ended - sup->sup.good) < node->concurrent.join ? -1 : 0;
    }
    if (sup->sup.bad > 0 && !node->concurrent.collect &&
        (!RV__BUG(11) || sup->sup.ended == children))
        return -1;
    return sup->sup.ended == children;
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if ((sup->node->concurrent.detached && !sup->detached) || verdict(sup) != 0)
        return PLACE_TODO;
    if (sup->sup.next >= sup->node->body_count)
        return PLACE_NOWHERE;
    *first = rv__first_of_body(&sup->node->bodies[sup->sup.next]);
    return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->node->concurrent.detached && !sup->detached)
        return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    switch (verdict(sup)) {
    case 0: return rv__body_start(turn, sup, sup->sup.next, err);
    case 1: return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    default: break;
    }
    if (sup->sup.error != NULL)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    return rv__node_fail(turn, sup, "fewer children completed than `join` asks for", err);
}

/* Completed, for `join`: a bare step that failed softly, or was skipped, has not. */
static bool is_good(const struct rv__actor *frame, enum rv__status status)
{
    const struct rv__entry *newest = frame->frame.scope;
    if (status != STATUS_COMPLETED)
        return false;
    return !frame->frame.body->bare || frame->frame.body->wrap != NULL ||
           newest == frame->frame.base || newest->status == STATUS_COMPLETED;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    struct rv__child *child = &sup->sup.inner->children[frame->frame.body->index];
    child->status = (uint8_t)fact->status;
    rv__entry_unref(child->scope); /* none, unless a disk lied */
    child->scope = rv__entry_ref(frame->frame.scope);
    sup->sup.active--;
    sup->sup.ended++;
    sup->sup.good += is_good(frame, (enum rv__status)fact->status);
    if (fact->status == STATUS_FAILED && sup->sup.bad++ == 0)
        sup->sup.error = rv__blob_ref(fact->error);
    return RV_OK;
}

/* The outcomes as they stand; who has none yet is cancelled (so the array was made), with what had
 * ended in it. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    const struct rv__inner *ended = sup->sup.inner;
    if (sup->child == NULL)
        return rv__inner_ref(sup->sup.inner);
    struct rv__inner *all = rv__inner_new(ended->child_count);
    if (all == NULL)
        return NULL;
    all->base = rv__entry_ref(ended->base);
    for (uint32_t i = 0; i < ended->child_count; i++) {
        all->children[i].status = ended->children[i].status;
        all->children[i].scope = rv__entry_ref(ended->children[i].scope);
    }
    for (const struct rv__actor *frame = sup->child; frame != NULL; frame = frame->next) {
        struct rv__child *child = &all->children[frame->frame.body->index];
        struct rv__entry *scope;
        if (rv__frame_left(frame, &scope) < 0) {
            rv__inner_unref(all);
            return NULL;
        }
        rv__entry_unref(child->scope); /* none, unless a disk lied */
        child->scope = scope;
    }
    return all;
}

const struct rv__kind rv__concurrent_kind = { first_phase, place, advance, body_ended, inner };
