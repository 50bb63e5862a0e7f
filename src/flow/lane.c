/* lane.c: the lane of something that waits: what its first work is, and which executor does that.
 *
 * Neither a plan nor a snapshot says which executor runs a function, because both outlive the process in which that
 * was true. So the engine is asked whenever something is put into the list of a lane, and again for everything that
 * waits when its answers have changed (rv__cell_lanes). Other work has a fixed lane by its kind. */
#include "base/bugs.h"
#include "flow/cell.h"

static struct rv__first evaluation(const struct rv__node *node, enum rv__eval eval,
                                   const struct rv__expr *expr)
{
    return (struct rv__first){ .node = node, .expr = expr, .eval = eval };
}

struct rv__first rv__first_of_expr(const struct rv__node *node, enum rv__eval eval)
{
    return evaluation(node, eval, rv__eval_expr(node, eval));
}

struct rv__first rv__first_of_step(const struct rv__node *step)
{
    return (struct rv__first){ .node = step->step.parks ? NULL : step, .eval = -1 };
}

struct rv__first rv__first_of_node(const struct rv__node *node)
{
    return node->when.kind != EXPR_NONE ? rv__first_of_expr(node, EVAL_WHEN)
                                        : rv__first_after_when(node);
}

struct rv__first rv__first_after_when(const struct rv__node *node)
{
    return rv__flow_kind(node)->first_work(node);
}

/* Goes down first nodes only: no deeper than RV__PLAN_MAX_DEPTH. */
struct rv__first rv__first_of_body(const struct rv__body *body)
{
    if (rv__body_needs_input(
            body)) { /* an input without an expression is only checked by its schema */
        struct rv__first first = evaluation(body->owner, EVAL_INPUT,
                                            rv__input_expr(body->owner, body));
        first.body = body;
        return first;
    }
    return body->count > 0 ? rv__first_of_node(body->nodes[0]) : (struct rv__first){ .eval = -1 };
}

struct rv__first rv__first_of_eval(const struct rv__actor *actor)
{
    struct rv__first first = evaluation(rv__actor_about(actor), (enum rv__eval)actor->eval,
                                        rv__actor_expr(actor));
    first.body = rv__actor_input_body(actor);
    return first;
}

struct rv__str rv__first_function(const struct rv__first *first)
{
    if (first->node == NULL)
        return (struct rv__str){ NULL, 0 };
    if (first->eval < 0)
        return first->node->step.name;
    return first->expr != NULL && first->expr->kind == EXPR_FUNCTION ? first->expr->text
                                                                     : (struct rv__str){ NULL, 0 };
}

enum rv__lane rv__first_lane(const struct rv__cell *cell, const struct rv__first *first)
{
    static const enum rv__lane lanes[STEP_KINDS] = {
        [STEP_HTTP] = LANE_HTTP,   [STEP_COMMAND] = LANE_IO, [STEP_CHAT] = LANE_HTTP,
        [STEP_TOOL] = LANE_HTTP,   [STEP_VALUE] = LANE_EVAL, [STEP_DELAY] = LANE_EVAL,
        [STEP_SIGNAL] = LANE_EVAL, /* of these two, one whose parameters have to be evaluated */
    };
    if (first->node == NULL)
        return LANE_NONE;
    bool function = rv__first_function(first).len > 0;
    bool command = first->eval < 0 && first->node->step.kind == STEP_COMMAND;
    bool turn = first->eval < 0 && first->node->step.kind == STEP_CHAT;
    enum rv__lane lane = function           ? LANE_FUNCTION
                         : first->eval >= 0 ? LANE_EVAL
                                            : lanes[first->node->step.kind];
    if ((!function && !command && !turn) || cell->lane == NULL)
        return lane;
    enum rv__lane said = cell->lane(cell->lane_arg, first->node, first->eval, first->body);
    return function || (command && said == LANE_NOBODY) || rv__lane_is_limit(said) ? said : lane;
}

/* ------------------------------------------------------------------------ order of arrival --- */

/* In the lane of suspects, those that were blamed come first, so it counts as two lists here. */
void rv__arrivals_init(struct rv__arrivals *it, const struct rv__cell *cell, int place)
{
    const struct rv__list *lists = place == PLACE_READY ? cell->ready : cell->range;
    struct rv__actor *suspect = lists[LANE_SUSPECT].first;
    for (int lane = 0; lane < LANES; lane++)
        it->at[lane] = lists[lane].first;
    if (suspect != NULL && suspect->crashes == 0)
        it->at[LANE_SUSPECT] = NULL;
    while (suspect != NULL && suspect->crashes > 0)
        suspect = suspect->place_next;
    it->at[LANES] = suspect;
}

struct rv__actor *rv__arrivals_next(struct rv__arrivals *it)
{
    int from = -1;
    for (int i = 0; i <= LANES; i++)
        if (it->at[i] != NULL && (from < 0 || it->at[i]->arrival < it->at[from]->arrival))
            from = i;
    if (from < 0)
        return NULL;
    struct rv__actor *actor = it->at[from], *next = actor->place_next;
    it->at[from] = from == LANE_SUSPECT && next != NULL && next->crashes == 0 ? NULL : next;
    return actor;
}

/* Cannot fail. Removed actors are chained by place_next, which the cursors no longer need. */
static void place_again(struct rv__cell *cell, int place)
{
    struct rv__list *lists = place == PLACE_READY ? cell->ready : cell->range;
    struct rv__actor *first = NULL, **last = &first;
    struct rv__arrivals it;
    rv__arrivals_init(&it, cell, place);
    for (struct rv__actor *actor; (actor = rv__arrivals_next(&it)) != NULL;) {
        *last = actor;
        last = &actor->place_next;
    }
    *last = NULL;
    for (int lane = 0; lane < LANES; lane++)
        lists[lane] = (struct rv__list){ .first = NULL };
    for (struct rv__actor *actor = first, *next; actor != NULL; actor = next) {
        next = actor->place_next;
        rv__actor_lane(cell, actor);
    }
}

int rv__cell_lanes(struct rv__cell *cell,
                   enum rv__lane (*lane)(void *arg, const struct rv__node *node, int eval,
                                         const struct rv__body *body),
                   void *arg)
{
    cell->lane = lane;
    cell->lane_arg = arg;
    place_again(cell, PLACE_READY);
    if (!RV__BUG(23))
        place_again(cell, PLACE_RANGE);
    return RV_OK;
}
