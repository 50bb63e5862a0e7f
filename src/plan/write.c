/* write.c: writes a plan as JSON: the same plan always gives the same text.
 *
 * A version is the hash of this text, and the text must stay readable for ever. So a new field is written only
 * if it is not the default, and at a fixed place: then old plans keep their text.
 *
 * Recursive; a plan has at most RV__PLAN_MAX_DEPTH levels. */
#include "plan/write.h"

#include "base/json.h"
#include "plan/kinds.h"

void rv__write_key(struct rv__writer *w, const char *key)
{
    if (w->out->len > 0 && w->out->text[w->out->len - 1] != '{')
        rv__buf_char(w->out, ',');
    rv__buf_char(w->out, '"');
    rv__buf_text(w->out, key); /* a key of ours needs no escapes */
    rv__buf_text(w->out, "\":");
}

void rv__write_text(struct rv__writer *w, const char *key, struct rv__str text)
{
    if (rv__str_none(text))
        return;
    rv__write_key(w, key);
    rv__buf_json_str(w->out, text);
}

void rv__write_raw(struct rv__writer *w, const char *key, struct rv__str json)
{
    if (rv__str_none(json))
        return;
    rv__write_key(w, key);
    rv__buf_str(w->out, json);
}

void rv__write_int(struct rv__writer *w, const char *key, int64_t n, int64_t unless)
{
    if (n == unless)
        return;
    rv__write_key(w, key);
    rv__buf_int(w->out, n);
}

void rv__write_expr(struct rv__writer *w, const char *key, const struct rv__expr *expr)
{
    if (expr->kind == EXPR_NONE)
        return;
    rv__write_key(w, key);
    if (expr->kind == EXPR_JSON) {
        rv__buf_str(w->out, expr->text);
        return;
    }
    rv__buf_text(w->out, "{\"fn\":");
    rv__buf_json_str(w->out, expr->text);
    rv__buf_char(w->out, '}');
}

void rv__write_nodes(struct rv__writer *w, const char *key, const struct rv__body *body)
{
    rv__write_key(w, key);
    rv__buf_char(w->out, '[');
    for (uint32_t i = 0; i < body->count; i++) {
        if (i > 0)
            rv__buf_char(w->out, ',');
        rv__write_node(w, body->nodes[i]);
    }
    rv__buf_char(w->out, ']');
}

/* Write a handler under its key, onError or finally. */
static void write_handler(struct rv__writer *w, const struct rv__node *handler)
{
    if (handler == NULL)
        return;
    if (handler->kind == NODE_SEQUENCE) {
        rv__write_nodes(w, handler->alias.at, &handler->bodies[0]);
        return;
    }
    rv__write_key(w, handler->alias.at);
    rv__write_node(w, handler);
}

/* Where functions run is not part of the version, so it is left out of the text that is hashed. */
static void write_hosted(struct rv__writer *w, const struct rv__wrap *wrap)
{
    if (!wrap->hosted || w->shallow)
        return;
    rv__write_key(w, "hosted");
    rv__buf_text(w->out, "true");
}

void rv__write_names(struct rv__writer *w, const char *key, const struct rv__str *needs,
                     uint32_t count)
{
    if (count == 0)
        return;
    rv__write_key(w, key);
    for (uint32_t i = 0; i < count; i++) {
        rv__buf_char(w->out, i == 0 ? '[' : ',');
        rv__buf_json_str(w->out, needs[i]);
    }
    rv__buf_char(w->out, ']');
}

void rv__write_nested(struct rv__writer *w, const struct rv__body *body)
{
    const struct rv__wrap *wrap = body->wrap;
    rv__write_text(w, "name", wrap->name);
    rv__write_expr(w, "input", &wrap->input);
    rv__write_text(w, "version", wrap->version);
    if (w->shallow)
        return;
    rv__write_text(w, "workflowDescription", wrap->description);
    rv__write_raw(w, "inputSchema", wrap->schema);
    rv__write_names(w, "workflowNeeds", wrap->needs, wrap->needs_count);
    rv__write_names(w, "secrets", wrap->secrets, wrap->secrets_count);
    rv__write_manifest(w, wrap);
    rv__write_budget(w, &wrap->budget);
    write_hosted(w, wrap);
    rv__write_nodes(w, "steps", body);
    write_handler(w, wrap->on_error);
    write_handler(w, wrap->finally);
}

void rv__write_run(struct rv__writer *w, const char *key, const struct rv__body *body)
{
    if (body->wrap == NULL) {
        rv__write_nodes(w, key, body);
        return;
    }
    rv__write_key(w, key);
    rv__buf_text(w->out, "{\"type\":\"workflow\"");
    rv__write_nested(w, body);
    rv__buf_char(w->out, '}');
}

void rv__write_node(struct rv__writer *w, const struct rv__node *node)
{
    rv__buf_char(w->out, '{');
    rv__write_text(w, "type", rv__str(rv__node_kind_name(node->kind)));
    if (!node->is_handler)
        rv__write_text(w, "alias", node->alias);
    rv__write_expr(w, "when", &node->when);
    rv__write_expr(w, "description", &node->description);
    rv__kind_of(node->kind)->write(w, node);
    write_handler(w, node->on_error);
    rv__buf_char(w->out, '}');
}

static void write_definition(struct rv__writer *w, const struct rv__body *body)
{
    rv__write_text(w, "name", body->wrap->name);
    rv__write_text(w, "description", body->wrap->description);
    rv__write_raw(w, "input", body->wrap->schema);
    rv__write_names(w, "needs", body->wrap->needs, body->wrap->needs_count);
    rv__write_names(w, "secrets", body->wrap->secrets, body->wrap->secrets_count);
    rv__write_manifest(w, body->wrap);
    rv__write_budget(w, &body->wrap->budget);
    write_hosted(w, body->wrap);
    rv__write_nodes(w, "steps", body);
    write_handler(w, body->wrap->on_error);
    write_handler(w, body->wrap->finally);
}

void rv__definition_write(const struct rv__body *body, bool shallow, struct rv__buf *out)
{
    struct rv__writer w = { out, shallow };
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
    struct rv__writer w = { out, false };
    rv__buf_char(out, '{');
    rv__write_text(&w, "type", rv__str(rv__node_kind_name(NODE_WORKFLOW)));
    rv__write_text(&w, "alias", plan->body.wrap->name);
    write_definition(&w, &plan->body);
    rv__buf_char(out, '}');
    return written(out, before, err);
}
