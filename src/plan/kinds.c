/* kinds.c: the tables by kind. A new kind of node or step is a row here. */
#include "plan/kinds.h"

#include <assert.h>

static const struct rv__kind *const node_kinds[NODE_KINDS] = {
    [NODE_STEP] = &rv__kind_step,       [NODE_WORKFLOW] = &rv__kind_workflow,
    [NODE_BRANCH] = &rv__kind_branch,   [NODE_LOOP] = &rv__kind_loop,
    [NODE_FOREACH] = &rv__kind_foreach, [NODE_CONCURRENT] = &rv__kind_concurrent,
};

/* The lane is that of an attempt whose parameters are constants; see rv__step_kind_lane(). */
static const struct {
    const char *name;
    const char *alias; /* implied where there is no name to take */
    enum rv__lane lane;
} step_kinds[STEP_KINDS] = {
    [STEP_FUNCTION] = { "function", "function", LANE_FUNCTION },
    [STEP_CALL] = { "call", "call", LANE_FUNCTION },
    [STEP_HTTP] = { "http", "httpRequest", LANE_HTTP },
    [STEP_COMMAND] = { "command", "command", LANE_IO },
    [STEP_VALUE] = { "value", "value", LANE_EVAL },
    [STEP_DELAY] = { "delay", "delay", LANE_NONE },
    [STEP_SIGNAL] = { "signal", "signal", LANE_NONE },
    [STEP_CHAT] = { "chat", "chat", LANE_IO },
    [STEP_TOOL] = { "tool", "tool", LANE_IO },
};

const struct rv__kind *rv__kind_of(enum rv__node_kind kind)
{
    assert((unsigned)kind < NODE_KINDS);
    return node_kinds[kind];
}

const char *rv__node_kind_phrase(enum rv__node_kind kind)
{
    return rv__kind_of(kind)->phrase;
}

enum rv__bodies rv__node_bodies(const struct rv__node *node)
{
    return rv__kind_of(node->kind)->bodies;
}

const struct rv__expr *rv__node_expr(const struct rv__node *node, enum rv__use use)
{
    const struct rv__kind *kind = rv__kind_of(node->kind);
    const struct rv__expr *expr = use == USE_WHEN          ? &node->when
                                  : use == USE_DESCRIPTION ? &node->description
                                  : kind->expr != NULL     ? kind->expr(node, use)
                                                           : NULL;
    return expr != NULL && expr->kind != EXPR_NONE ? expr : NULL;
}

const char *rv__node_kind_name(enum rv__node_kind kind)
{
    return rv__node_kind_phrase(kind) + strlen("a ");
}

const char *rv__step_kind_name(enum rv__step_kind kind)
{
    assert((unsigned)kind < STEP_KINDS);
    return step_kinds[kind].name;
}

const char *rv__step_kind_alias(enum rv__step_kind kind)
{
    assert((unsigned)kind < STEP_KINDS);
    return step_kinds[kind].alias;
}

enum rv__lane rv__step_kind_lane(enum rv__step_kind kind)
{
    assert((unsigned)kind < STEP_KINDS);
    return step_kinds[kind].lane;
}

static enum rv__lane expr_lane(const struct rv__expr *expr)
{
    return expr->kind == EXPR_FUNCTION ? LANE_FUNCTION : LANE_EVAL;
}

enum rv__lane rv__node_start_lane(const struct rv__node *node) /* NOLINT(misc-no-recursion) */
{
    return node->when.kind != EXPR_NONE ? expr_lane(&node->when) : rv__node_lane(node);
}

enum rv__lane rv__node_lane(const struct rv__node *node) /* NOLINT(misc-no-recursion) */
{
    switch (node->kind) {
    case NODE_STEP: return node->step.lane;
    case NODE_WORKFLOW: return rv__body_start_lane(&node->bodies[0]);
    case NODE_BRANCH: return expr_lane(&node->branch.condition);
    case NODE_LOOP:
        if (node->loop.while_.kind != EXPR_NONE)
            return expr_lane(&node->loop.while_);
        return rv__body_start_lane(&node->bodies[0]);
    case NODE_FOREACH: return expr_lane(&node->foreach.items);
    case NODE_CONCURRENT: /* detached: the node itself ends at once, without work */
        if (node->concurrent.detached || node->body_count == 0)
            return LANE_NONE;
        return rv__body_start_lane(&node->bodies[0]);
    case NODE_KINDS: break;
    }
    return LANE_NONE;
}

bool rv__body_needs_input(const struct rv__body *body)
{
    const struct rv__wrap *wrap = body->owner != NULL ? body->wrap : NULL;
    return wrap != NULL && (wrap->input.kind != EXPR_NONE || !rv__str_none(wrap->schema));
}

/* Goes down first nodes only: no deeper than RV__PLAN_MAX_DEPTH. */
enum rv__lane rv__body_start_lane(const struct rv__body *body) /* NOLINT(misc-no-recursion) */
{
    if (rv__body_needs_input(body)) /* an input without an expression is only held to its schema */
        return expr_lane(&body->wrap->input);
    return body->count > 0 ? rv__node_start_lane(body->nodes[0]) : LANE_NONE;
}

const struct rv__node *rv__body_find(const struct rv__body *body, struct rv__str alias)
{
    uint32_t from = 0, to = body->count; /* what may be it: by_alias[from..to) */
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        int order = rv__str_cmp(alias, body->by_alias[middle]->alias);
        if (order == 0)
            return body->by_alias[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}
