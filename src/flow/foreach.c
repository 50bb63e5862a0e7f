/* foreach.c: the supervisor of a forEach: a body for each item of an array.
 *
 *   to_eval ──▶ eval ──array──▶ running ──▶ completed | failed
 *                 └──no array──▶ evaluated ──▶ failed
 *
 * The iterations that wait are a range, `next` to `count`, and a cursor into the text of the items;
 * those that have ended are rows in the store and a number here. So a million items cost nothing
 * beyond their text and the iterations that run. */
#include "base/bugs.h"
#include "flow/cell.h"

#include "base/error.h"
#include "base/json.h"

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    *eval = EVAL_ITEMS;
    return PHASE_TO_EVAL;
}

/* May another iteration begin? After a hard failure no new one does; but without a `concurrency` all
 * of a parallel forEach count as begun. */
static bool may_start(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    if (sup->sup.next >= sup->sup.count)
        return false;
    if (node->foreach.parallel && node->foreach.concurrency == 0)
        return true;
    int64_t limit = node->foreach.parallel ? node->foreach.concurrency : 1;
    return sup->sup.bad == 0 && sup->sup.active < limit + RV__BUG(10);
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (may_start(sup)) {
        *first = rv__first_of_body(&sup->node->bodies[0]);
        return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
    }
    return sup->sup.active > 0 ? PLACE_NOWHERE : PLACE_TODO;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->phase == PHASE_EVALUATED) /* with an array, it would be running */
        return rv__node_fail(turn, sup, "the items of a forEach must return an array", err);
    if (may_start(sup))
        return rv__body_start(turn, sup, sup->sup.next, err);
    if (sup->sup.bad > 0)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    (void)frame;
    sup->sup.active--;
    sup->sup.ended++;
    if (fact->status == STATUS_FAILED && sup->sup.bad++ == 0)
        sup->sup.error = rv__blob_ref(fact->error);
    return RV_OK;
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    struct rv__inner *all = rv__inner_new(0);
    if (all != NULL) {
        all->iterations = sup->sup.ended + sup->sup.active;
        all->key = rv__blob_ref(sup->sup.key);
    }
    return all;
}

const struct rv__kind rv__foreach_kind = { first_phase, place, advance, body_ended, inner };
