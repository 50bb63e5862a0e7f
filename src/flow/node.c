/* node.c: what all nodes share: how they begin, are evaluated for, start a body, and end. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

struct rv__blob *rv__error_blob(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    struct rv__buf buf;
    rv__buf_init(&buf, 8 * sizeof text);
    rv__buf_text(&buf, "{\"message\":");
    rv__buf_json_str(&buf, (struct rv__str){ text, len });
    rv__buf_char(&buf, '}');
    struct rv__blob *blob = NULL;
    if (rv__buf_err(&buf, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return blob;
}

const struct rv__expr *rv__actor_expr(const struct rv__actor *actor)
{
    const struct rv__node *node = actor->node;
    switch ((enum rv__eval)actor->eval) {
    case EVAL_WHEN: return &node->when;
    case EVAL_IF: return &node->branch.condition;
    case EVAL_WHILE: return &node->loop.while_;
    case EVAL_UNTIL: return &node->loop.until;
    case EVAL_ITEMS: return &node->foreach.items;
    case EVAL_INPUT:
        return actor->frame.body->wrap->input.kind != EXPR_NONE ? &actor->frame.body->wrap->input
                                                                : NULL;
    case EVAL_DESCRIPTION: return &rv__actor_about(actor)->description;
    case EVALS: break;
    }
    return NULL;
}

const struct rv__node *rv__actor_about(const struct rv__actor *actor)
{
    bool evaluates = actor->phase == PHASE_TO_EVAL || actor->phase == PHASE_EVAL;
    return actor->is_frame && evaluates && actor->eval == EVAL_DESCRIPTION
               ? actor->frame.scope->node
               : actor->node;
}

bool rv__describes(const struct rv__node *node, const struct rv__blob *state)
{
    struct rv__str has;
    return node->description.kind == EXPR_JSON && !node->is_handler &&
           (state == NULL || rv__blob_is_reference(state) || /* it was asked when it was said */
            !rv__json_get(rv__blob_str(state), "description", &has));
}

/* A node begins: `actor` if it is there already (its `when` was true), else a new one of `owner`. */
int rv__node_begin(struct rv__turn *turn, struct rv__actor *owner, struct rv__actor *actor,
                   const struct rv__node *node, rv_error *err)
{
    if (actor == NULL && node->when.kind != EXPR_NONE) {
        struct rv__fact fact = { .kind = FACT_EVAL_STARTED,
                                 .actor = turn->cell->next_id,
                                 .owner = owner->id,
                                 .node = node->id,
                                 .eval = EVAL_WHEN };
        return rv__say(turn, &fact, err);
    }
    if (node->kind == NODE_STEP)
        return rv__step_begin(turn, owner, actor, node, err);
    struct rv__fact fact = { .kind = FACT_NODE_STARTED, .node = node->id };
    fact.actor = actor != NULL ? actor->id : turn->cell->next_id;
    fact.owner = actor != NULL ? 0 : owner->id;
    return rv__say(turn, &fact, err);
}

int rv__eval_start(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_EVAL_STARTED, .actor = actor->id, .eval = actor->eval };
    fact.node = rv__actor_about(actor)->id;
    return rv__say(turn, &fact, err);
}

int rv__body_start(struct rv__turn *turn, struct rv__actor *sup, int64_t index, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_BODY_STARTED,
                             .actor = turn->cell->next_id,
                             .owner = sup->id,
                             .node = sup->node->id,
                             .index = index };
    return rv__say(turn, &fact, err);
}

int rv__node_end(struct rv__turn *turn, struct rv__actor *sup, enum rv__fact_kind kind,
                 struct rv__blob *error, rv_error *err)
{
    struct rv__fact fact = {
        .kind = kind, .actor = sup->id, .node = sup->node->id, .error = error
    };
    fact.describe = kind == FACT_NODE_COMPLETED && !sup->detached && rv__describes(sup->node, NULL);
    return rv__say(turn, &fact, err);
}

/* As above, with an error of our own making. */
int rv__node_fail(struct rv__turn *turn, struct rv__actor *sup, const char *message, rv_error *err)
{
    struct rv__blob *error = rv__error_blob("%.*s: %s", RV__ARG(sup->node->alias), message);
    if (error == NULL)
        return rv__nomem(err);
    int rc = rv__node_end(turn, sup, FACT_NODE_FAILED, error, err);
    rv__blob_unref(error);
    return rc;
}

/* The key of a node's rows, "node/vector"; see rv__row. NULL: no memory. */
struct rv__blob *rv__row_key(const struct rv__actor *owner, const struct rv__node *node)
{
    int64_t vector[RV__PLAN_MAX_DEPTH];
    size_t count = rv__actor_vector(owner, vector);
    struct rv__buf buf;
    rv__buf_init(&buf, (size_t)32 * (RV__PLAN_MAX_DEPTH + 1));
    rv__buf_int(&buf, node->id);
    rv__buf_char(&buf, '/');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rv__buf_char(&buf, '.');
        rv__buf_int(&buf, vector[i]);
    }
    struct rv__blob *key = NULL;
    if (rv__buf_err(&buf, NULL) == RV_OK)
        key = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return key;
}

/* Its evaluation is done: what follows. */
int rv__node_evaluated(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    if (actor->eval != EVAL_WHEN)
        return rv__kinds[actor->node->kind]->advance(turn, actor, err);
    struct rv__fact fact = { .kind = FACT_NODE_SKIPPED,
                             .actor = actor->id,
                             .node = actor->node->id };
    return rv__say(turn, &fact, err);
}
