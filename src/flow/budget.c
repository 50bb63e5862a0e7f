/* budget.c: what the chats of a run have used up, and whether that is all they may.
 *
 * Tokens and cost are counted where a budget may bound them: in the cell for the run, and in the frame of each nested
 * workflow that has a budget of its own. (A detached block does not belong to such a frame: only the run's budget
 * bounds it.) They only grow, so a budget is used up once. In that moment everything that waits to ask a model is moved
 * to `todo`: it needs no place any more, and the chat that it leads to fails there (chat.c). What was asked before is
 * still answered, and counted. */
#include "base/bugs.h"
#include "flow/cell.h"

static int64_t sum(int64_t a, int64_t b)
{
    return a + b < RV__MAX_NUMBER ? a + b : RV__MAX_NUMBER;
}

void rv__budget_add(struct rv__budget *used, const struct rv__budget *more)
{
    used->tokens = sum(used->tokens, more->tokens);
    used->cost = sum(used->cost, more->cost);
}

bool rv__budget_used_up(const struct rv__budget *budget, const struct rv__budget *used)
{
    return (budget->tokens > 0 && used->tokens >= budget->tokens) ||
           (budget->cost > 0 && used->cost >= budget->cost);
}

/* The next actor outwards that may count; NULL: none. A detached block is on its own. */
static struct rv__actor *outwards(const struct rv__actor *actor)
{
    return !actor->is_frame && rv__detaches(actor->node) ? NULL : actor->owner;
}

/* The budget that this actor counts for in `frame.used`. NULL: for none. */
static const struct rv__budget *budget_of(const struct rv__actor *actor)
{
    if (!actor->is_frame || actor->owner == NULL || actor->frame.body->wrap == NULL)
        return NULL; /* neither the outermost frame nor a detached scope has an owner */
    const struct rv__budget *budget = &actor->frame.body->wrap->budget;
    return budget->tokens > 0 || budget->cost > 0 ? budget : NULL;
}

const struct rv__wrap *rv__budget_bounds(const struct rv__cell *cell, const struct rv__actor *actor,
                                         struct rv__budget *used)
{
    const struct rv__wrap *run = cell->plan->body.wrap;
    for (; actor != NULL; actor = outwards(actor)) {
        const struct rv__budget *budget = budget_of(actor);
        if (budget != NULL && rv__budget_used_up(budget, &actor->frame.used)) {
            *used = actor->frame.used;
            return actor->frame.body->wrap;
        }
    }
    *used = cell->used;
    return rv__budget_used_up(&run->budget, &cell->used) && !RV__BUG(412) ? run : NULL;
}

/* Who waits for a place to ask needs none now. In order of arrival, which is part of the state. */
static void place_again(struct rv__cell *cell, int place)
{
    struct rv__arrivals it;
    rv__arrivals_init(&it, cell, place);
    for (struct rv__actor *actor; (actor = rv__arrivals_next(&it)) != NULL;)
        if (!rv__actor_placed(cell, actor))
            rv__actor_place(cell, actor);
}

/* Is it used up by this, and was not before? */
static bool charge(const struct rv__budget *budget, struct rv__budget *used,
                   const struct rv__budget *more)
{
    bool before = rv__budget_used_up(budget, used);
    rv__budget_add(used, more);
    return !before && rv__budget_used_up(budget, used);
}

void rv__budget_charge(struct rv__cell *cell, struct rv__actor *chat, const struct rv__budget *more)
{
    const struct rv__budget *budget = &cell->plan->body.wrap->budget;
    bool crossed = charge(budget, &cell->used, more);
    for (struct rv__actor *a = chat; a != NULL; a = outwards(a)) {
        budget = budget_of(a);
        if (budget != NULL && !RV__BUG(415))
            crossed |= charge(budget, &a->frame.used, more);
    }
    if (!crossed || RV__BUG(413))
        return;
    place_again(cell, PLACE_READY);
    place_again(cell, PLACE_RANGE);
}
