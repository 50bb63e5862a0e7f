/* write.c: a plan as JSON text, the same text for the same plan.
 *
 * This text is what versions are made of, and stays readable for ever. So: a new field is written
 * only where it is not the default, and at a fixed place; then old plans keep their text.
 *
 * Recursion follows the plan, which is at most RV__PLAN_MAX_DEPTH deep. */
#include "plan/write.h"

#include <inttypes.h>

#include "base/json.h"

struct writer {
    struct rv__buf *out;
    bool shallow; /* nested workflows as name and version only */
};

static void write_node(struct writer *w, const struct rv__node *node);

static void write_key(struct writer *w, const char *key)
{
    if (w->out->len > 0 && w->out->text[w->out->len - 1] != '{')
        rv__buf_char(w->out, ',');
    rv__buf_char(w->out, '"');
    rv__buf_text(w->out, key); /* ours, and plain */
    rv__buf_text(w->out, "\":");
}

static void write_text(struct writer *w, const char *key, struct rv__str text)
{
    if (rv__str_none(text))
        return;
    write_key(w, key);
    rv__buf_json_str(w->out, text);
}

static void write_raw(struct writer *w, const char *key, struct rv__str json)
{
    if (rv__str_none(json))
        return;
    write_key(w, key);
    rv__buf_str(w->out, json);
}

static void write_int(struct writer *w, const char *key, int64_t n, int64_t unless)
{
    if (n == unless)
        return;
    write_key(w, key);
    rv__buf_int(w->out, n);
}

static void write_expr(struct writer *w, const char *key, const struct rv__expr *expr)
{
    if (expr->kind == EXPR_NONE)
        return;
    write_key(w, key);
    if (expr->kind == EXPR_JSON) {
        rv__buf_str(w->out, expr->text);
        return;
    }
    rv__buf_text(w->out, "{\"fn\":");
    rv__buf_json_str(w->out, expr->text);
    rv__buf_char(w->out, '}');
}

static void write_nodes(struct writer *w, const char *key, const struct rv__body *body)
{
    write_key(w, key);
    rv__buf_char(w->out, '[');
    for (uint32_t i = 0; i < body->count; i++) {
        if (i > 0)
            rv__buf_char(w->out, ',');
        write_node(w, body->nodes[i]);
    }
    rv__buf_char(w->out, ']');
}

static void write_handler(struct writer *w, const struct rv__node *handler)
{
    if (handler == NULL)
        return;
    write_key(w, "onError");
    write_node(w, handler);
}

/* Where functions run is no part of what the workflow is: left out of what its version is made from. */
static void write_hosted(struct writer *w, const struct rv__wrap *wrap)
{
    if (!wrap->hosted || w->shallow)
        return;
    write_key(w, "hosted");
    rv__buf_text(w->out, "true");
}

static void write_needs(struct writer *w, const char *key, const struct rv__str *needs,
                        uint32_t count)
{
    if (count == 0)
        return;
    write_key(w, key);
    for (uint32_t i = 0; i < count; i++) {
        rv__buf_char(w->out, i == 0 ? '[' : ',');
        rv__buf_json_str(w->out, needs[i]);
    }
    rv__buf_char(w->out, ']');
}

/* What a workflow in its place has: as members of a node, or of an object that stands for a body. */
static void write_nested(struct writer *w, const struct rv__body *body)
{
    const struct rv__wrap *wrap = body->wrap;
    write_text(w, "name", wrap->name);
    write_expr(w, "input", &wrap->input);
    write_text(w, "version", wrap->version);
    if (w->shallow)
        return;
    write_text(w, "workflowDescription", wrap->description);
    write_raw(w, "inputSchema", wrap->schema);
    write_needs(w, "workflowNeeds", wrap->needs, wrap->needs_count);
    write_hosted(w, wrap);
    write_nodes(w, "steps", body);
    write_handler(w, wrap->on_error);
}

/* The run of a forEach, the body of a loop: nodes, or the workflow that it is. */
static void write_run(struct writer *w, const char *key, const struct rv__body *body)
{
    if (body->wrap == NULL) {
        write_nodes(w, key, body);
        return;
    }
    write_key(w, key);
    rv__buf_text(w->out, "{\"type\":\"workflow\"");
    write_nested(w, body);
    rv__buf_char(w->out, '}');
}

static void write_step(struct writer *w, const struct rv__node *node)
{
    static const char *const on_timeouts[] = { NULL, "retry" };
    static const char *const backoffs[] = { NULL, "exponential" };
    const struct rv__step_config *config = &node->step.config;

    write_text(w, "kind", rv__str(rv__step_kind_name(node->step.kind)));
    write_text(w, "name", node->step.name);
    write_raw(w, "with", node->step.with);
    if (node->is_handler) /* has no config of its own */
        return;
    write_int(w, "timeout", config->timeout_ms, 0);
    write_text(w, "onTimeout", rv__str(on_timeouts[config->on_timeout]));
    write_int(w, "maxAttempts", config->max_attempts, 0);
    write_text(w, "backoff", rv__str(backoffs[config->backoff]));
    write_int(w, "backoffBaseMs", config->backoff_base_ms, RV__DEFAULT_BACKOFF_BASE_MS);
    write_int(w, "maxBackoffMs", config->max_backoff_ms, RV__DEFAULT_MAX_BACKOFF_MS);
    if (config->jitter != 0) {
        write_key(w, "jitter");
        rv__buf_json_double(w->out, config->jitter);
    }
    write_needs(w, "needs", node->step.needs, node->step.needs_count);
}

static void write_loop(struct writer *w, const struct rv__node *node)
{
    static const char *const keeps[] = { NULL, "last", "none" };
    write_run(w, "body", &node->bodies[0]);
    write_expr(w, "while", &node->loop.while_);
    write_expr(w, "until", &node->loop.until);
    write_int(w, "maxIterations", node->loop.max_iterations, RV__DEFAULT_MAX_ITERATIONS);
    write_text(w, "keep", rv__str(keeps[node->loop.keep]));
}

static void write_foreach(struct writer *w, const struct rv__node *node)
{
    write_expr(w, "items", &node->foreach.items);
    write_run(w, "run", &node->bodies[0]);
    if (node->foreach.parallel)
        write_raw(w, "parallel", rv__str("true"));
    write_int(w, "concurrency", node->foreach.concurrency, 0);
}

static void write_concurrent(struct writer *w, const struct rv__node *node)
{
    write_key(w, "steps");
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__body *child = &node->bodies[i];
        rv__buf_char(w->out, i == 0 ? '[' : ',');
        if (child->bare) {
            write_node(w, child->nodes[0]);
            continue;
        }
        rv__buf_char(w->out, '{');
        if (child->wrap != NULL)
            write_text(w, "type", rv__str(rv__node_kind_name(NODE_WORKFLOW)));
        write_text(w, "alias", child->alias);
        if (child->wrap != NULL)
            write_nested(w, child);
        else
            write_nodes(w, "nodes", child);
        rv__buf_char(w->out, '}');
    }
    rv__buf_char(w->out, ']');

    if (node->concurrent.detached)
        write_text(w, "continueOn", rv__str("detached"));
    if (node->concurrent.collect)
        write_text(w, "onFailure", rv__str("collect"));
    if (node->concurrent.join == 1)
        write_text(w, "join", rv__str("first"));
    else
        write_int(w, "join", node->concurrent.join, RV__JOIN_ALL);
}

static void write_node(struct writer *w, const struct rv__node *node)
{
    rv__buf_char(w->out, '{');
    write_text(w, "type", rv__str(rv__node_kind_name(node->kind)));
    if (!node->is_handler)
        write_text(w, "alias", node->alias);
    write_expr(w, "when", &node->when);
    write_expr(w, "description", &node->description);
    switch (node->kind) {
    case NODE_STEP: write_step(w, node); break;
    case NODE_WORKFLOW: write_nested(w, &node->bodies[0]); break;
    case NODE_BRANCH:
        write_expr(w, "if", &node->branch.condition);
        write_nodes(w, "then", &node->bodies[0]);
        if (node->bodies[1].count > 0)
            write_nodes(w, "else", &node->bodies[1]);
        break;
    case NODE_LOOP: write_loop(w, node); break;
    case NODE_FOREACH: write_foreach(w, node); break;
    case NODE_CONCURRENT: write_concurrent(w, node); break;
    case NODE_KINDS: break;
    }
    write_handler(w, node->on_error);
    rv__buf_char(w->out, '}');
}

static void write_definition(struct writer *w, const struct rv__body *body)
{
    write_text(w, "name", body->wrap->name);
    write_text(w, "description", body->wrap->description);
    write_raw(w, "input", body->wrap->schema);
    write_needs(w, "needs", body->wrap->needs, body->wrap->needs_count);
    write_hosted(w, body->wrap);
    write_nodes(w, "steps", body);
    write_handler(w, body->wrap->on_error);
}

void rv__definition_write(const struct rv__body *body, bool shallow, struct rv__buf *out)
{
    struct writer w = { out, shallow };
    rv__buf_char(out, '{');
    write_definition(&w, body);
    rv__buf_char(out, '}');
}

static int written(struct rv__buf *out, size_t before, rv_error *err)
{
    int rc = rv__buf_err(out, err);
    if (rc < 0)
        rv__buf_cut(out, before);
    return rc;
}

int rv__plan_write(const struct rv__plan *plan, struct rv__buf *out, rv_error *err)
{
    size_t before = out->len;
    rv__definition_write(&plan->body, false, out);
    return written(out, before, err);
}

int rv__plan_show(const struct rv__plan *plan, struct rv__buf *out, rv_error *err)
{
    size_t before = out->len;
    struct writer w = { out, false };
    rv__buf_char(out, '{');
    write_text(&w, "type", rv__str(rv__node_kind_name(NODE_WORKFLOW)));
    write_text(&w, "alias", plan->body.wrap->name);
    write_definition(&w, &plan->body);
    rv__buf_char(out, '}');
    return written(out, before, err);
}
