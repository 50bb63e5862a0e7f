/* waits.c: why a run does not continue: what each actor in it waits for. Only reads. */
#include "flow/cell.h"

/* The missing function that it waits for; for a command: the workflow whose file is missing. */
static void take_unoffered(const struct rv__cell *cell, const struct rv__actor *a,
                           struct rv__wait *wait)
{
    bool waits = a->place == PLACE_READY || a->place == PLACE_RANGE;
    if (!waits || a->lane != LANE_NOBODY)
        return;
    struct rv__first first = rv__actor_first(cell, a);
    wait->name = rv__first_function(&first);
    wait->needs_file = wait->name.len == 0;
    if (wait->needs_file)
        wait->name = cell->plan->body.wrap->name;
}

/* Bodies that a supervisor has not begun: they wait, although they are no actors. */
static bool rest_of(const struct rv__cell *cell, const struct rv__actor *a, struct rv__wait *wait)
{
    const struct rv__flow_kind *kind = a->is_frame ? NULL : rv__flow_kind(a->node);
    if (kind == NULL || kind->rest == NULL || !kind->rest(a, wait))
        return false;
    wait->lane = (enum rv__lane)a->lane;
    wait->work = rv__actor_first(cell, a).node;
    take_unoffered(cell, a, wait);
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
    if (step->park == PARK_SIGNAL)
        wait->note = rv__blob_str(step->step.note);
}

/* The lane whose place its work has taken; for a function, as recorded when it began. */
static enum rv__lane work_lane(const struct rv__cell *cell, const struct rv__actor *a)
{
    struct rv__first work = a->phase == PHASE_EVAL ? rv__first_of_eval(a)
                                                   : rv__first_of_step(a->node);
    if (rv__first_function(&work).len == 0)
        return rv__first_lane(cell, &work);
    if (work.eval < 0 && a->hosted) {
        enum rv__lane now = rv__first_lane(cell, &work);
        return rv__lane_is_worker(now) ? now : LANE_HOST;
    }
    return a->suspect ? LANE_SUSPECT : LANE_FUNCTION;
}

static void leaf(const struct rv__cell *cell, const struct rv__actor *a, struct rv__wait *wait)
{
    bool step = rv__actor_is_step(a);
    wait->lane = (enum rv__lane)a->lane;
    wait->kind = a->place == PLACE_READY || a->place == PLACE_RANGE ? WAIT_PLACE : WAIT_TURN;
    if (rv__actor_working(a)) {
        wait->kind = WAIT_WORK;
        wait->lane = work_lane(cell, a);
        wait->eval = a->phase == PHASE_EVAL ? a->eval : -1;
        wait->attempt = step && a->phase != PHASE_EVAL ? a->step.attempt : 0;
    } else if (a->phase == PHASE_RETRY) {
        wait->kind = WAIT_RETRY;
        wait->due_ms = a->due_ms;
        wait->attempt = step ? a->step.next_attempt : 0;
    } else if (step && a->phase == PHASE_PARKED && a->place == PLACE_NOWHERE) {
        parked(a, wait);
    } else if (wait->kind == WAIT_PLACE) {
        wait->work = rv__actor_first(cell, a).node;
        take_unoffered(cell, a, wait);
        wait->eval = a->phase == PHASE_TO_EVAL ? a->eval : -1;
        wait->attempt = step && a->phase == PHASE_READY ? a->step.next_attempt : 0;
        /* A sequence waits for its next node, something failed for its handler. */
        if (a->is_frame && a->phase != PHASE_TO_EVAL)
            wait->node = rv__frame_next(a);
        else if (a->phase == PHASE_FAILED)
            wait->node = a->node->on_error;
    }
}

static void undecided(const struct rv__suspension *one, struct rv__wait *wait)
{
    wait->kind = WAIT_DECISION;
    wait->cause = rv__blob_str(one->why);
    wait->since_ms = one->since_ms;
}

/* Each of what is to be decided about it. */
static void decisions_of(const struct rv__actor *a,
                         void (*waits)(void *arg, const struct rv__wait *wait), void *arg)
{
    for (const struct rv__suspension *one = a->suspensions; one != NULL; one = one->same_next) {
        struct rv__wait wait = {
            .actor = a->id, .node = rv__actor_about(a), .eval = -1, .count = 1
        };
        undecided(one, &wait);
        (void)rv__actor_vector(a, wait.vector);
        if (one->which != 0) /* a state: told as its agent, whose path it has */
            wait.node = a->node->bodies[one->which - 1].nodes[0];
        waits(arg, &wait);
    }
}

void rv__cell_waits(const struct rv__cell *cell,
                    void (*waits)(void *arg, const struct rv__wait *wait), void *arg)
{
    for (const struct rv__actor *a = rv__cell_walk(cell, NULL); a != NULL;
         a = rv__cell_walk(cell, a)) {
        struct rv__wait wait = {
            .actor = a->id, .node = rv__actor_about(a), .eval = -1, .count = 1
        };
        decisions_of(a, waits, arg);
        if (a->child == NULL && a->suspensions != NULL)
            continue; /* that was told */
        if (a->child == NULL && !rest_of(cell, a, &wait))
            leaf(cell, a, &wait);
        else if (a->child != NULL && !rest_of(cell, a, &wait))
            continue; /* its children say why */
        if (cell->suspended != NULL && (wait.kind == WAIT_PLACE || wait.kind == WAIT_TURN))
            undecided(cell->suspended, &wait); /* nothing begins before that */
        if (wait.node != NULL)                 /* an empty outermost sequence ends with this turn */
            (void)rv__actor_vector(a, wait.vector);
        waits(arg, &wait);
    }
}
