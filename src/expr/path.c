/* path.c: plain paths: looked up in the texts of the scope, whose bytes stay as they are; also read and
 * followed on their own, for the accessors of C steps.
 *
 * The value is the one jq would give: what does not exist is null, and an index of the wrong type is an
 * error with jq's message. */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "expr/eval.h"

enum { MEMO_BYTES = 1024 }; /* a path into a shorter text is not remembered */

static const struct rv__str none = { NULL, 0 };

/* Write an object of several texts, {"result":…,"state":…}, as jq would see it. */
static int write_parts(struct rv__eval_state *e, struct rv__str root, struct rv__str name,
                       const struct rv__str *parts, size_t count, struct rv__buf *out)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        struct rv__scope_text text = { 0 };
        struct rv__blob *own = NULL;
        struct rv__kept *kept;
        struct rv__str json;
        int rc = rv__str_none(name) ? e->scope->find(e->scope, root, parts[i], none, &text)
                                    : e->scope->find(e->scope, root, name, parts[i], &text);
        if (rc == RV_OK)
            rc = rv__text_of(e->texts, e->scope, &text, &json, &kept, &own, e->err);
        else if (rc != RV_ENOTFOUND)
            return rv__expr_failed(e->expr, rc, e->err, "the scope cannot be read");
        if (rc == RV_ENOTFOUND)
            continue;
        if (rc < 0)
            return rc;
        rv__buf_char(out, any ? ',' : '{');
        rv__buf_json_str(out, parts[i]);
        rv__buf_char(out, ':');
        rv__buf_str(out, json);
        rv__blob_unref(own);
        any = true;
    }
    rv__buf_text(out, any ? "}" : "null");
    return rv__buf_err(out, e->err);
}

static int write_steps(struct rv__eval_state *e, struct rv__buf *out)
{
    struct rv__str alias;
    int rc = RV_OK, more;
    rv__buf_char(out, '{');
    for (size_t i = 0; rc == RV_OK && (more = e->scope->alias(e->scope, i, &alias)) != 0; i++) {
        if (more < 0)
            return rv__expr_failed(e->expr, more, e->err, "the scope cannot be read");
        if (i > 0)
            rv__buf_char(out, ',');
        rv__buf_json_str(out, alias);
        rv__buf_char(out, ':');
        rc = write_parts(e, rv__str("steps"), alias, rv__step_fields, RV__STEP_FIELDS, out);
    }
    rv__buf_char(out, '}');
    return rc == RV_OK ? rv__buf_err(out, e->err) : rc;
}

/* Follow one step of a path. RV_ENOTFOUND: it is null; RV_EINVAL: the index has the wrong type. */
static int walk_step(const struct rv__expr_step *step, struct rv__str *json, rv_error *err)
{
    enum rv__json_type type = rv__json_type(*json);
    static const char *const names[] = { "null",   "boolean", "boolean", "number",
                                         "string", "array",   "object" };
    if (type == RV__JSON_NULL)
        return RV_ENOTFOUND;
    if (!rv__str_none(step->key) && type == RV__JSON_OBJECT) {
        struct rv__json_iter it;
        struct rv__str key, value, found = none;
        rv__json_iter_init(&it, *json);
        while (rv__json_next(&it, &key, &value))
            if (rv__json_string_is(key, step->key))
                found = value; /* of equal keys the last one counts */
        if (rv__str_none(found))
            return RV_ENOTFOUND;
        *json = found;
        return RV_OK;
    }
    if (rv__str_none(step->key) && type == RV__JSON_ARRAY) {
        struct rv__json_iter it;
        struct rv__str value = none;
        int64_t left = step->index;
        if (left < 0)
            left += (int64_t)rv__json_count(*json);
        rv__json_iter_init(&it, *json);
        while (left >= 0 && rv__json_next(&it, NULL, &value))
            if (left-- == 0) {
                *json = value;
                return RV_OK;
            }
        return RV_ENOTFOUND;
    }
    if (rv__str_none(step->key))
        return rv__fail(err, RV_EINVAL, "Cannot index %s with number", names[type]);
    return rv__fail(err, RV_EINVAL, "Cannot index %s with \"%.*s\"", names[type],
                    (int)(step->key.len < 40 ? step->key.len : 40), step->key.at);
}

int rv__path_walk(const struct rv__expr_step *path, size_t count, struct rv__str *json,
                  rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        rc = walk_step(&path[i], json, err);
    return rc;
}

int rv__path_read(struct rv__arena *arena, struct rv__str text, struct rv__expr_step **path,
                  size_t *count, rv_error *err)
{
    struct rv__expr expr = { .text = text, .string = text };
    struct rv__lexer lexer;
    struct rv__tok tok;
    const char *what;
    if (text.len > RV__EXPR_MAX_BYTES)
        return rv__fail(err, RV_ETOOBIG, "it has %zu bytes: at most %d are allowed", text.len,
                        RV__EXPR_MAX_BYTES);
    /* A token has at least one byte. */
    expr.toks = rv__arena_alloc(arena, (text.len + 1) * sizeof *expr.toks);
    if (expr.toks == NULL)
        return rv__nomem(err);
    rv__lexer_init(&lexer, text);
    while ((what = rv__lexer_next(&lexer, &tok)) == NULL && tok.kind != TOK_END)
        expr.toks[expr.tok_count++] = tok;
    if (what != NULL)
        return rv__fail(err, RV_EPARSE, "at character %zu: %s", rv__expr_character(&expr, lexer.at),
                        what);
    if (rv__expr_find_path(arena, &expr) < 0)
        return rv__nomem(err);
    if (expr.path == NULL || expr.path_count == 0 || lexer.at != text.at + text.len)
        return rv__fail(err, RV_EPARSE,
                        "it is not a plain path, such as .steps.find.result.list[0] or "
                        ".steps[\"find-tree\"].result");
    *path = expr.path;
    *count = expr.path_count;
    return RV_OK;
}

static int walk_path(struct rv__eval_state *e, size_t from, struct rv__str *json)
{
    rv_error why;
    int rc = rv__path_walk(e->expr->path + from, e->expr->path_count - from, json, &why);
    return rc == RV_EINVAL ? rv__expr_failed(e->expr, rc, e->err, why.message) : rc;
}

/* The same, but remembers the result for a long text. */
static int walk_known(struct rv__eval_state *e, size_t from, const struct rv__kept *kept,
                      struct rv__str *json)
{
    struct rv__expr_texts *texts = e->texts;
    if (kept == NULL || json->len < MEMO_BYTES || from == e->expr->path_count ||
        rv__str_none(kept->json))
        return walk_path(e, from, json);
    uint64_t hash = kept->serial * UINT64_C(0x9E3779B97F4A7C15) ^ e->expr->serial;
    typeof(&texts->found[0]) slot = &texts->found[hash % RV__FOUND_SLOTS];
    int rc;
    if (slot->kept == kept->serial && slot->expr == e->expr->serial) {
        if (!slot->null)
            *json = slot->json;
        return slot->null ? RV_ENOTFOUND : RV_OK;
    }
    rc = walk_path(e, from, json);
    if (rc == RV_OK || rc == RV_ENOTFOUND) {
        slot->kept = kept->serial;
        slot->expr = e->expr->serial;
        slot->json = *json;
        slot->null = rc == RV_ENOTFOUND;
    }
    return rc;
}

/* Does such a part exist at all? The scope is asked only for those. */
static bool part_exists(const struct rv__expr *expr, size_t depth)
{
    bool loop = rv__str_is(expr->path[0].key, "loop");
    const struct rv__str *parts = loop         ? rv__loop_names
                                  : depth == 3 ? rv__step_fields
                                               : rv__last_names;
    size_t count = loop ? RV__LOOP_NAMES : depth == 3 ? RV__STEP_FIELDS : RV__LAST_NAMES;
    if (rv__str_is(expr->path[0].key, "secrets"))
        return true;
    for (size_t i = 0; i < count && depth > 1; i++)
        if (rv__str_eq(expr->path[depth - 1].key, parts[i]))
            return true;
    return depth <= 1;
}

/* How many times does `.loop.parent.parent` go up? */
static size_t loop_level(const struct rv__expr *expr)
{
    size_t level = 0;
    while (rv__str_is(expr->path[0].key, "loop") && level + 1 < expr->path_count &&
           rv__str_is(expr->path[level + 1].key, "parent"))
        level++;
    return level;
}

/* How many steps of the path it takes to name one text of the scope; 0: the path ends before. */
static size_t text_depth(const struct rv__expr *expr)
{
    struct rv__str root = expr->path[0].key;
    size_t depth = rv__str_is(root, "steps")  ? 3
                   : rv__str_is(root, "loop") ? 2 + loop_level(expr)
                   : rv__str_is(root, "lastStep") || rv__str_is(root, "secrets") ? 2
                                                                                 : 1;
    return expr->path_count >= depth ? depth : 0;
}

/* Write an iteration with all enclosing ones: {item, index, items, parent: {…}}. */
static int write_loop(struct rv__eval_state *e, size_t level, struct rv__buf *out)
{
    size_t open = 0;
    int rc = RV_OK;
    for (;; level++) {
        struct rv__str root = rv__loop_root(level);
        size_t before = out->len;
        rc = rv__str_none(root) ? RV_OK
                                : write_parts(e, root, none, rv__loop_names, RV__LOOP_NAMES, out);
        if (rc < 0)
            return rc;
        bool there = out->len > before && out->text[out->len - 1] == '}';
        if (!there)
            rv__buf_cut(out, before);
        if (!there)
            break;
        rv__buf_cut(out, out->len - 1); /* its bracket closes after its parent */
        rv__buf_text(out, ",\"parent\":");
        open++;
    }
    rv__buf_cut(out, out->len - (open > 0 ? sizeof ",\"parent\":" - 1 : 0));
    if (open == 0)
        rv__buf_text(out, "null");
    while (open-- > 0)
        rv__buf_char(out, '}');
    return rv__buf_err(out, e->err);
}

/* The path ends at an object of several texts. RV_ENOTFOUND: it is null. */
static int path_of_parts(struct rv__eval_state *e, struct rv__str *ret)
{
    const struct rv__expr *expr = e->expr;
    struct rv__buf *work = e->work;
    struct rv__str root = expr->path[0].key;
    int rc;
    rv__buf_reset(work);
    if (rv__str_is(root, "secrets"))
        return RV_ENOTFOUND; /* secrets are never given all at once */
    if (rv__str_is(root, "steps") && expr->path_count == 1)
        rc = write_steps(e, work);
    else if (rv__str_is(root, "steps"))
        rc = write_parts(e, root, expr->path[1].key, rv__step_fields, RV__STEP_FIELDS, work);
    else if (rv__str_is(root, "loop"))
        rc = write_loop(e, loop_level(expr), work);
    else
        rc = write_parts(e, root, none, rv__last_names, RV__LAST_NAMES, work);
    *ret = rv__buf_view(work);
    return rc;
}

/* .steps["a"] and .loop.item name texts; .steps[0] and .steps.a[0] are jq's errors. */
static int keys_only(struct rv__eval_state *e, size_t depth)
{
    static const char why[] = "Cannot index object with number";
    for (size_t i = 0; i < depth && i < e->expr->path_count; i++)
        if (rv__str_none(e->expr->path[i].key))
            return rv__expr_failed(e->expr, RV_EINVAL, e->err, why);
    return RV_OK;
}

/* The text that a plain path leads to; RV_ENOTFOUND: null. The caller unrefs *own after use. */
int rv__path_text(struct rv__eval_state *e, struct rv__str *ret, struct rv__blob **own)
{
    const struct rv__expr *expr = e->expr;
    struct rv__scope_text text = { 0 };
    struct rv__kept *kept;
    size_t depth = text_depth(expr);
    int rc = keys_only(e, depth > 0 ? depth : expr->path_count);
    if (rc < 0)
        return rc;
    if (depth == 0)
        return path_of_parts(e, ret);
    if (!part_exists(expr, depth))
        return RV_ENOTFOUND;
    if (rv__str_is(expr->path[0].key, "loop")) {
        struct rv__str root = rv__loop_root(depth - 2);
        rc = rv__str_none(root)
                 ? RV_ENOTFOUND
                 : e->scope->find(e->scope, root, expr->path[depth - 1].key, none, &text);
    } else {
        rc = e->scope->find(e->scope, expr->path[0].key, depth > 1 ? expr->path[1].key : none,
                            depth > 2 ? expr->path[2].key : none, &text);
    }
    if (rc == RV_ENOTFOUND)
        return rc;
    if (rc < 0)
        return rv__expr_failed(expr, rc, e->err, "the scope cannot be read");
    rc = rv__text_of(e->texts, e->scope, &text, ret, &kept, own, e->err);
    return rc < 0 ? rc : walk_known(e, depth, kept, ret);
}
