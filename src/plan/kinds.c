/* kinds.c: the tables of kinds. A new kind of node or step is a row here. */
#include "plan/kinds.h"

#include <assert.h>

static const struct rv__kind *const node_kinds[NODE_KINDS] = {
    [NODE_STEP] = &rv__kind_step,         [NODE_WORKFLOW] = &rv__kind_workflow,
    [NODE_BRANCH] = &rv__kind_branch,     [NODE_LOOP] = &rv__kind_loop,
    [NODE_FOREACH] = &rv__kind_foreach,   [NODE_CONCURRENT] = &rv__kind_concurrent,
    [NODE_STAGE] = &rv__kind_stage,       [NODE_CHAT] = &rv__kind_chat,
    [NODE_SEQUENCE] = &rv__kind_sequence,
};

static const struct {
    const char *name;
    const char *alias; /* implied if there is no name */
} step_kinds[STEP_KINDS] = {
    [STEP_FUNCTION] = { "function", "function" },
    [STEP_CALL] = { "call", "call" },
    [STEP_HTTP] = { "http", "httpRequest" },
    [STEP_COMMAND] = { "command", "command" },
    [STEP_VALUE] = { "value", "value" },
    [STEP_DELAY] = { "delay", "delay" },
    [STEP_SIGNAL] = { "signal", "signal" },
    [STEP_CHAT] = { "chat", "chat" },
    [STEP_TOOL] = { "tool", "tool" },
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

const struct rv__node *rv__node_handler(const struct rv__node *node)
{
    while (node != NULL && !node->is_handler)
        node = node->body->owner;
    return node;
}

const struct rv__body *rv__node_around(const struct rv__node *node)
{
    if (!node->is_handler)
        return node->body;
    return node->handler_of != NULL ? node->handler_of->body : node->handler_in;
}

int64_t rv__node_timeout_ms(const struct rv__node *node)
{
    bool waits = node->kind == NODE_STEP && /* has its own time-out */
                 (node->step.kind == STEP_DELAY || node->step.kind == STEP_SIGNAL);
    const struct rv__state *state = rv__node_state(node);
    if (state != NULL && state->timeout_ms > 0)
        return state->timeout_ms;
    return rv__node_handler(node) != NULL && !waits ? RV__HANDLER_TIMEOUT_MS : 0;
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

bool rv__body_is_tool(const struct rv__body *body)
{
    return body->owner != NULL && body->owner->kind == NODE_CHAT && body->index > 0;
}

const struct rv__step_config *rv__node_config(const struct rv__node *node)
{
    if (node->kind == NODE_CHAT)
        return &node->chat.config;
    return node->kind == NODE_STEP ? &node->step.config : NULL;
}

bool rv__body_needs_input(const struct rv__body *body)
{
    if (rv__body_is_tool(body))
        return true;
    const struct rv__wrap *wrap = body->owner != NULL ? body->wrap : NULL;
    return wrap != NULL && (wrap->input.kind != EXPR_NONE || !rv__str_none(wrap->schema) ||
                            !rv__str_none(wrap->parameters));
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
