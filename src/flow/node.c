/* node.c: what all nodes share: beginning, evaluations, starting a body, and ending. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

struct rv__blob *rv__error_blob(const char *code, const char *fmt, ...)
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
    if (code != NULL) {
        rv__buf_text(&buf, ",\"code\":");
        rv__buf_json_str(&buf, rv__str(code));
    }
    rv__buf_char(&buf, '}');
    struct rv__blob *blob = NULL;
    if (rv__buf_err(&buf, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return blob;
}

struct rv__blob *rv__error_because(const char *code, const struct rv__blob *of, const char *fmt,
                                   ...)
{
    struct rv__str error = rv__blob_str(of), json, message = { "", 0 };
    struct rv__arena arena;
    struct rv__blob *blob = NULL;
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the message */
    if (rv__str_none(error) || rv__json_type(error) != RV__JSON_OBJECT ||
        !rv__json_get(error, "message", &json) ||
        rv__json_string(json, &arena, &message) != RV_ENOMEM)
        blob = rv__error_blob(code, "%s%s%.*s", text, message.len > 0 ? ": " : "",
                              RV__ARG(message));
    rv__arena_done(&arena);
    return blob;
}

struct rv__blob *rv__error_at(const struct rv__blob *error, const struct rv__node *node,
                              const struct rv__body *body, const int64_t *vector)
{
    struct rv__str text = rv__blob_str(error), key, value;
    struct rv__json_iter it;
    struct rv__buf buf;
    struct rv__blob *blob = NULL;
    bool has = !rv__str_none(text) && rv__json_type(text) == RV__JSON_OBJECT;
    rv__buf_init(&buf, SIZE_MAX / 8); /* bounded by the error and a path */
    rv__buf_char(&buf, '{');
    rv__json_iter_init(&it, has ? text : rv__str("{\"message\":\"failed\"}"));
    while (rv__json_next(&it, &key, &value)) {
        if (rv__json_string_is(key, rv__str("path")))
            continue;
        rv__buf_str(&buf, key);
        rv__buf_char(&buf, ':');
        rv__buf_str(&buf, value);
        rv__buf_char(&buf, ',');
    }
    rv__buf_text(&buf, "\"path\":\""); /* no character of a path needs an escape */
    assert(node != NULL || body != NULL);
    if (node != NULL)
        rv__node_path(node, vector, &buf);
    else
        rv__body_path(body, vector, &buf);
    rv__buf_text(&buf, "\"}");
    if (rv__buf_err(&buf, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return blob;
}

struct rv__blob *rv__error_of(const struct rv__blob *error, const struct rv__actor *actor)
{
    int64_t vector[RV__PLAN_MAX_DEPTH];
    size_t count = rv__actor_vector(actor, vector);
    if (count > 0 && RV__BUG(66) && vector[count - 1] > 0)
        vector[count - 1]--;
    return actor->is_frame ? rv__error_at(error, NULL, actor->frame.body, vector)
                           : rv__error_at(error, actor->node, NULL, vector);
}

struct rv__str rv__error_path(struct rv__str error)
{
    struct rv__str path;
    if (error.len == 0 || rv__json_type(error) != RV__JSON_OBJECT ||
        !rv__json_get(error, "path", &path) || rv__json_type(path) != RV__JSON_STRING ||
        memchr(path.at, '\\', path.len) != NULL)
        return (struct rv__str){ NULL, 0 };
    return (struct rv__str){ path.at + 1, path.len - 2 };
}

const struct rv__expr *rv__eval_expr(const struct rv__node *node, enum rv__eval eval)
{
    static const enum rv__use uses[EVALS] = {
        [EVAL_WHEN] = USE_WHEN,   [EVAL_IF] = USE_IF,       [EVAL_WHILE] = USE_WHILE,
        [EVAL_UNTIL] = USE_UNTIL, [EVAL_ITEMS] = USE_ITEMS, [EVAL_DESCRIPTION] = USE_DESCRIPTION,
    };
    assert(eval != EVAL_INPUT); /* rv__input_expr() */
    return rv__node_expr(node, uses[eval]);
}

const struct rv__expr *rv__actor_expr(const struct rv__actor *actor)
{
    if (actor->eval != EVAL_INPUT)
        return rv__eval_expr(rv__actor_about(actor), (enum rv__eval)actor->eval);
    return rv__input_expr(actor->node, rv__actor_input_body(actor));
}

const struct rv__body *rv__actor_input_body(const struct rv__actor *actor)
{
    return actor->is_frame && actor->eval == EVAL_INPUT ? actor->frame.body : NULL;
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
    return node->description.kind != EXPR_NONE && !node->is_handler &&
           (state == NULL || rv__blob_is_reference(state) || /* checked when the state arrived */
            !rv__json_get(rv__blob_str(state), "description", &has));
}

bool rv__begins_evaluating(const struct rv__node *node, enum rv__eval *eval)
{
    *eval = node->when.kind != EXPR_NONE ? EVAL_WHEN : EVAL_INPUT;
    return node->when.kind != EXPR_NONE || rv__input_expr(node, NULL) != NULL;
}

/* Begin a node: `actor`, if it exists already (its `when` was true), else a new one of `owner`. */
int rv__node_begin(struct rv__turn *turn, struct rv__actor *owner, struct rv__actor *actor,
                   const struct rv__node *node, rv_error *err)
{
    enum rv__eval eval;
    if (actor == NULL && rv__begins_evaluating(node, &eval)) {
        struct rv__fact fact = { .kind = FACT_EVAL_STARTED,
                                 .actor = turn->cell->next_id,
                                 .owner = owner->id,
                                 .node = node->id,
                                 .eval = eval };
        return rv__say(turn, &fact, err);
    }
    if (rv__is_step(node))
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
    const struct rv__flow_kind *of = rv__flow_kind(sup->node);
    fact.describe = kind == FACT_NODE_COMPLETED && !sup->detached && rv__describes(sup->node, NULL);
    if (of->state != NULL && of->has_begun(sup)) {
        fact.state = of->state(sup);
        if (fact.state == NULL)
            return rv__nomem(err);
    }
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(fact.state);
    return rc;
}

/* As above, with an error made here. */
int rv__node_fail(struct rv__turn *turn, struct rv__actor *sup, const char *code,
                  const char *message, rv_error *err)
{
    struct rv__blob *why = rv__error_blob(code, "%.*s: %s", RV__ARG(sup->node->alias), message);
    struct rv__blob *error = why != NULL ? rv__error_of(why, sup) : NULL;
    rv__blob_unref(why);
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

/* Its evaluation is done: say what follows. */
int rv__node_evaluated(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    if (actor->eval != EVAL_WHEN)
        return rv__flow_kind(actor->node)->advance(turn, actor, err);
    struct rv__fact fact = { .kind = FACT_NODE_SKIPPED,
                             .actor = actor->id,
                             .node = actor->node->id };
    return rv__say(turn, &fact, err);
}
