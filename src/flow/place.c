/* place.c: the lists of a cell, and which of them an actor belongs to by its state. Nothing is decided here. */
#include "base/bugs.h"
#include "flow/cell.h"

/* -------------------------------------------------------------------------------- lists --- */

static void list_add(struct rv__list *list, struct rv__actor *actor)
{
    actor->place_next = NULL;
    actor->place_prev = list->last;
    if (list->last != NULL)
        list->last->place_next = actor;
    else
        list->first = actor;
    list->last = actor;
    list->count++;
}

static void list_remove(struct rv__list *list, struct rv__actor *actor)
{
    if (actor->place_prev != NULL)
        actor->place_prev->place_next = actor->place_next;
    else
        list->first = actor->place_next;
    if (actor->place_next != NULL)
        actor->place_next->place_prev = actor->place_prev;
    else
        list->last = actor->place_prev;
    actor->place_prev = actor->place_next = NULL;
    list->count--;
}

/* Is `a` before `b` in the list of their lane? Suspects that were blamed come first. */
static bool is_before(const struct rv__actor *a, const struct rv__actor *b)
{
    if (a->lane == LANE_SUSPECT && (a->crashes > 0) != (b->crashes > 0))
        return a->crashes > 0;
    return a->arrival < b->arrival;
}

/* In order of arrival: at the end, unless it changes lanes. */
static void list_insert(struct rv__list *list, struct rv__actor *actor)
{
    struct rv__actor *after = list->last;
    while (after != NULL && is_before(actor, after))
        after = after->place_prev;
    if (after == list->last) {
        list_add(list, actor);
        return;
    }
    actor->place_prev = after;
    actor->place_next = after != NULL ? after->place_next : list->first;
    actor->place_next->place_prev = actor;
    if (after != NULL)
        after->place_next = actor;
    else
        list->first = actor;
    list->count++;
}

static struct rv__list *list_of(struct rv__cell *cell, const struct rv__actor *actor)
{
    switch (actor->place) {
    case PLACE_TODO: return &cell->todo;
    case PLACE_ENDS: return &cell->ends;
    case PLACE_READY: return &cell->ready[actor->lane];
    case PLACE_RANGE: return &cell->range[actor->lane];
    default: return NULL;
    }
}

void rv__actor_put(struct rv__cell *cell, struct rv__actor *actor, int place, enum rv__lane lane)
{
    struct rv__list *from = list_of(cell, actor);
    if (from != NULL)
        list_remove(from, actor);
    actor->place = (uint8_t)place;
    actor->lane = (uint8_t)lane;
    if (place == PLACE_TODO || place == PLACE_ENDS) {
        list_add(list_of(cell, actor), actor);
    } else if (place != PLACE_NOWHERE) {
        actor->arrival = cell->arrivals++;
        list_insert(list_of(cell, actor), actor);
    }
}

/* -------------------------------------------------------------------------------- places --- */

/* It waits for a place, or for the pump if it needs none. */
static int place_in(struct rv__first work, struct rv__first *first)
{
    *first = work;
    return work.node == NULL ? PLACE_TODO : PLACE_READY;
}

static int frame_place(const struct rv__actor *f, struct rv__first *first)
{
    if (f->frame.prefix != NULL) /* a detached scope ends with its block */
        return f->child != NULL ? PLACE_NOWHERE : PLACE_TODO;
    switch ((enum rv__phase)f->phase) {
    case PHASE_TO_EVAL: return place_in(rv__first_of_eval(f), first);
    case PHASE_FAILED:
    case PHASE_RUNNING: {
        const struct rv__node *next = f->child == NULL ? rv__frame_next(f) : NULL;
        if (f->child != NULL)
            return PLACE_NOWHERE;
        if (next != NULL && rv__frame_leaves_out(f, next))
            return PLACE_TODO;
        if (next != NULL)
            return place_in(rv__first_of_node(next), first);
        return f->owner != NULL ? PLACE_ENDS : PLACE_TODO; /* the outermost ends the run */
    }
    case PHASE_BEGIN:
    case PHASE_EVAL:
    case PHASE_EVALUATED:
    case PHASE_READY:
    case PHASE_RETRY:
    case PHASE_PARKED:
    case PHASES: break;
    }
    return PLACE_NOWHERE;
}

static int step_place(const struct rv__actor *step, struct rv__first *first)
{
    switch ((enum rv__phase)step->phase) {
    case PHASE_READY:
    case PHASE_BEGIN: return place_in(rv__first_of_step(step->node), first);
    case PHASE_TO_EVAL: return place_in(rv__first_of_eval(step), first);
    case PHASE_EVALUATED: return PLACE_TODO;
    case PHASE_PARKED: {
        const struct rv__channel *channel = step->step.channel;
        bool ready = channel != NULL && channel->first_signal != NULL &&
                     channel->first_waiter == step;
        return ready ? PLACE_TODO : PLACE_NOWHERE;
    }
    case PHASE_FAILED:
        return step->child != NULL ? PLACE_NOWHERE
                                   : place_in(rv__first_of_node(step->node->on_error), first);
    case PHASE_EVAL:
    case PHASE_RUNNING:
    case PHASE_RETRY:
    case PHASES: break;
    }
    return PLACE_NOWHERE;
}

static int supervisor_place(const struct rv__actor *sup, struct rv__first *first)
{
    switch ((enum rv__phase)sup->phase) {
    case PHASE_BEGIN: return place_in(rv__first_after_when(sup->node), first);
    case PHASE_TO_EVAL: return place_in(rv__first_of_eval(sup), first);
    case PHASE_EVALUATED: return PLACE_TODO;
    case PHASE_RUNNING: return rv__flow_kind(sup->node)->place(sup, first);
    case PHASE_EVAL:
    case PHASE_READY:
    case PHASE_RETRY:
    case PHASE_PARKED:
    case PHASE_FAILED:
    case PHASES: break;
    }
    return PLACE_NOWHERE;
}

/* It waits to ask a model that will not be asked: the budget is used up. (A turn that has begun is asked.) */
static bool is_bounded(const struct rv__cell *cell, const struct rv__actor *actor,
                       const struct rv__first *first)
{
    const struct rv__node *asks = first->node;
    struct rv__budget used;
    bool begun = asks != NULL &&
                 (actor->is_frame ? actor->frame.body == asks->body : actor->node == asks);
    return asks != NULL && first->eval < 0 && asks->step.kind == STEP_CHAT && !begun &&
           rv__budget_bounds(cell, actor, &used) != NULL;
}

static int kind_place(const struct rv__actor *actor, struct rv__first *first)
{
    if (actor->is_frame)
        return frame_place(actor, first);
    if (rv__is_step(actor->node))
        return step_place(actor, first);
    return supervisor_place(actor, first);
}

static int place_of(const struct rv__cell *cell, const struct rv__actor *actor,
                    struct rv__first *first)
{
    *first = (struct rv__first){ .eval = -1 };
    if (actor->crashes > cell->max_crashes &&
        !RV__BUG(15) && /* to be suspended, unless it is already */
        (actor->phase == PHASE_READY || actor->phase == PHASE_TO_EVAL))
        return actor->suspensions != NULL ? PLACE_NOWHERE : PLACE_ENDS;
    int place = kind_place(actor, first);
    if ((place != PLACE_READY && place != PLACE_RANGE) || !is_bounded(cell, actor, first))
        return place;
    *first = (struct rv__first){ .eval = -1 };
    return PLACE_TODO;
}

static enum rv__lane lane_of(const struct rv__cell *cell, const struct rv__actor *actor,
                             const struct rv__first *first)
{
    enum rv__lane lane = rv__first_lane(cell, first);
    bool own = actor->phase == PHASE_READY || actor->phase == PHASE_TO_EVAL;
    bool shared = lane == LANE_FUNCTION || rv__lane_is_worker(lane);
    return shared && own && actor->suspect ? LANE_SUSPECT : lane;
}

struct rv__first rv__actor_first(const struct rv__cell *cell, const struct rv__actor *actor)
{
    struct rv__first first;
    (void)place_of(cell, actor, &first);
    return first;
}

bool rv__actor_placed(const struct rv__cell *cell, const struct rv__actor *actor)
{
    struct rv__first first;
    return place_of(cell, actor, &first) == actor->place;
}

void rv__actor_lane(struct rv__cell *cell, struct rv__actor *actor)
{
    struct rv__first first = rv__actor_first(cell, actor);
    actor->lane = (uint8_t)lane_of(cell, actor, &first);
    list_insert(list_of(cell, actor), actor);
}

void rv__actor_place(struct rv__cell *cell, struct rv__actor *actor)
{
    struct rv__first first;
    int place = place_of(cell, actor, &first);
    bool waits = place == PLACE_READY || place == PLACE_RANGE;
    enum rv__lane lane = waits ? lane_of(cell, actor, &first) : LANE_NONE;
    if (place != actor->place || place == PLACE_RANGE) {
        rv__actor_put(cell, actor, place, lane); /* a range goes to the end of the list each time */
    } else if (lane !=
               actor->lane) { /* only the lane changes: the arrival depends on facts alone */
        list_remove(list_of(cell, actor), actor);
        actor->lane = (uint8_t)lane;
        list_insert(list_of(cell, actor), actor);
    }
}
