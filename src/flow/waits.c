/* waits.c: why a run does not go on: what each thing that is alive in it waits for. Reads, decides
 * nothing. */
#include "flow/cell.h"

/* The function that it waits for, if nobody has it; of a command: the workflow, whose file nobody has. */
static struct rv__str unoffered(const struct rv__cell *cell, const struct rv__actor *a)
{
    bool waits = a->place == PLACE_READY || a->place == PLACE_RANGE;
    if (!waits || a->lane != LANE_NOBODY)
        return (struct rv__str){ NULL, 0 };
    struct rv__first first = rv__actor_first(cell, a);
    struct rv__str function = rv__first_function(&first);
    return function.len > 0 ? function : cell->plan->body.wrap->name;
}

/* The iterations to come of one that runs several at once. Those of a sequential one wait for nothing of
 * their own, no more than the later nodes of a sequence do. */
static bool foreach_rest(const struct rv__cell *cell, const struct rv__actor *sup,
                         struct rv__wait *wait)
{
    if (sup->node->kind != NODE_FOREACH || sup->phase != PHASE_RUNNING || sup->sup.bad > 0 ||
        sup->sup.next >= sup->sup.count || !sup->node->foreach.parallel)
        return false;
    wait->count = sup->sup.count - sup->sup.next;
    wait->limit = sup->node->foreach.concurrency;
    wait->kind = sup->place == PLACE_RANGE  ? WAIT_PLACE
                 : sup->place == PLACE_TODO ? WAIT_TURN
                                            : WAIT_LIMIT;
    wait->lane = (enum rv__lane)sup->lane;
    wait->name = unoffered(cell, sup);
    return true;
}

/* Children that a supervisor has not begun yet: they are no actors, but they wait. */
static bool rest_of(const struct rv__cell *cell, const struct rv__actor *a, struct rv__wait *wait)
{
    if (a->is_frame || a->node->kind == NODE_STEP)
        return false;
    if (foreach_rest(cell, a, wait))
        return true;
    if (a->node->kind != NODE_CONCURRENT || a->place != PLACE_RANGE)
        return false;
    wait->kind = WAIT_PLACE;
    wait->lane = (enum rv__lane)a->lane;
    wait->name = unoffered(cell, a);
    wait->count = a->node->body_count - a->sup.next;
    return true;
}

static void parked(const struct rv__actor *step, struct rv__wait *wait)
{
    static const enum rv__wait_kind kinds[] = { [PARK_DELAY] = WAIT_TIMER,
                                                [PARK_SIGNAL] = WAIT_SIGNAL,
                                                [PARK_HANDLE] = WAIT_HANDLE,
                                                [PARK_CUT] = WAIT_TIMER };
    wait->kind = kinds[step->park];
    wait->due_ms = step->due_ms;
    wait->attempt = step->step.attempt;
    if (step->step.channel != NULL)
        wait->name = step->step.channel->name;
}

/* The lane whose place its work has; of a function, by what is on record of it. */
static enum rv__lane work_lane(const struct rv__cell *cell, const struct rv__actor *a)
{
    struct rv__first work = a->phase == PHASE_EVAL ? rv__first_of_eval(a)
                                                   : rv__first_of_step(a->node);
    if (rv__first_function(&work).len == 0)
        return rv__first_lane(cell, &work);
    if (work.eval < 0 && a->hosted)
        return LANE_HOST;
    return a->suspect ? LANE_SUSPECT : LANE_FUNCTION;
}

static void leaf(const struct rv__cell *cell, const struct rv__actor *a, struct rv__wait *wait)
{
    bool step = !a->is_frame && a->node->kind == NODE_STEP;
    wait->lane = (enum rv__lane)a->lane;
    wait->kind = a->place == PLACE_READY || a->place == PLACE_RANGE ? WAIT_PLACE : WAIT_TURN;
    if (rv__actor_working(a)) {
        wait->kind = WAIT_WORK;
        wait->lane = work_lane(cell, a);
        wait->eval = a->phase == PHASE_EVAL ? a->eval : -1;
        wait->attempt = step && a->phase != PHASE_EVAL ? a->step.attempt : 0;
    } else if (step && a->phase == PHASE_RETRY) {
        wait->kind = WAIT_RETRY;
        wait->due_ms = a->due_ms;
        wait->attempt = a->step.next_attempt;
    } else if (step && a->phase == PHASE_PARKED && a->place == PLACE_NOWHERE) {
        parked(a, wait);
    } else if (wait->kind == WAIT_PLACE) {
        wait->name = unoffered(cell, a);
        wait->eval = a->phase == PHASE_TO_EVAL ? a->eval : -1;
        wait->attempt = step && a->phase == PHASE_READY ? a->step.next_attempt : 0;
        /* A sequence waits for the sake of its next node, what failed for its handler. */
        if (a->is_frame && a->phase == PHASE_RUNNING && a->frame.at < a->frame.body->count)
            wait->node = a->frame.body->nodes[a->frame.at];
        else if (a->phase == PHASE_FAILED)
            wait->node = a->is_frame ? a->frame.body->wrap->on_error : a->node->on_error;
    }
}

void rv__cell_waits(const struct rv__cell *cell,
                    void (*waits)(void *arg, const struct rv__wait *wait), void *arg)
{
    bool suspended = cell->status == RUN_SUSPENDED;
    for (const struct rv__actor *a = rv__cell_walk(cell, NULL); a != NULL;
         a = rv__cell_walk(cell, a)) {
        struct rv__wait wait = {
            .actor = a->id, .node = rv__actor_about(a), .eval = -1, .count = 1
        };
        if (a->child == NULL && !rest_of(cell, a, &wait))
            leaf(cell, a, &wait);
        else if (a->child != NULL && !rest_of(cell, a, &wait))
            continue; /* its children say why */
        if (suspended &&
            (wait.kind == WAIT_PLACE || wait.kind == WAIT_TURN || cell->suspended_by == a->id))
            wait.kind = WAIT_DECISION; /* nothing begins before that */
        if (wait.node != NULL)         /* an empty outermost sequence ends with this turn */
            (void)rv__actor_vector(a, wait.vector);
        waits(arg, &wait);
    }
}
