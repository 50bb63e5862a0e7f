/* ask.c: writes the request that asks an evaluator process for the expressions of a template, with the
 * part of the scope that they use.
 *
 * One scope is sent for all expressions of a template: the roots and steps that any of them uses. If one of
 * them uses the whole scope (`keys`), all of it is sent; that changes nothing for the others. Each entry of
 * the scope is a path and a value: either the slot of a value that the process already has, or the text
 * itself in brackets. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "expr/eval.h"
#include "expr/peer.h"

enum { MOST_BYTES = 63 << 20 }; /* of a value: a frame with it stays below RV__JSON_MAX_BYTES */

struct asking {
    struct rv__expr_texts *texts;
    struct rv__expr_peer *peer;
    struct rv__scope *scope;
    const struct rv__template *tpl;
    struct rv__buf *out;
    bool quickly;
    bool more; /* an entry was written */
    rv_error *err;
};

static const struct rv__str none = { NULL, 0 };
static const char *const known[] = { "input", "steps", "lastStep", "loop", "run", "env", NULL };

/* --------------------------------------------------------------------------------- entries --- */

static void put_path(struct asking *a, struct rv__str root, struct rv__str name,
                     struct rv__str field)
{
    const struct rv__str path[] = { root, name, field };
    rv__buf_text(a->out, a->more ? ",[" : "[");
    a->more = true;
    for (size_t i = 0; i < 3 && !rv__str_none(path[i]); i++) {
        struct rv__str rest = path[i];
        const char *dot;
        while (i == 0 &&
               !rv__str_none(name) && /* loop.parent; a root without a name stays as it is */
               (dot = memchr(rest.at, '.', rest.len)) != NULL) {
            rv__buf_json_str(a->out, (struct rv__str){ rest.at, (size_t)(dot - rest.at) });
            rv__buf_char(a->out, ',');
            rest = (struct rv__str){ dot + 1, rest.len - (size_t)(dot + 1 - rest.at) };
        }
        rv__buf_json_str(a->out, rest);
        rv__buf_char(a->out, ',');
    }
}

static void put_inline(struct asking *a, struct rv__str root, struct rv__str name,
                       struct rv__str field, struct rv__str json)
{
    put_path(a, root, name, field);
    rv__buf_char(a->out, '[');
    rv__buf_str(a->out, json);
    rv__buf_text(a->out, "]]");
}

static void put_slot(struct asking *a, struct rv__str root, struct rv__str name,
                     struct rv__str field, unsigned slot)
{
    put_path(a, root, name, field);
    rv__buf_int(a->out, slot);
    rv__buf_char(a->out, ']');
}

/* Write one text of the scope. Returns 1 if it exists, 0 if not. */
static int put_text(struct asking *a, struct rv__str root, struct rv__str name,
                    struct rv__str field)
{
    struct rv__scope_text text = { 0 };
    struct rv__kept *kept;
    struct rv__blob *own = NULL;
    struct rv__str json;
    unsigned slot = 0;
    int rc = a->scope->find(a->scope, root, name, field, &text);
    if (rc == RV_ENOTFOUND)
        return 0;
    if (rc == RV_EBUSY && a->quickly)
        return rc;
    if (rc < 0)
        return rv__expr_failed(a->tpl->exprs[0], rc, a->err, "the scope cannot be read");
    bool lasts = rv__text_lasts(&text);
    if (lasts && rv__peer_has(a->peer, &text, &slot)) {
        put_slot(a, root, name, field, slot);
        return 1;
    }
    if (a->quickly && (lasts || rv__str_none(text.json)))
        return RV_EBUSY;
    rc = rv__text_of(a->texts, a->scope, &text, &json, &kept, &own, a->err);
    if (rc < 0)
        return rc;
    if (json.len > MOST_BYTES) {
        rc = rv__fail(a->err, RV_ETOOBIG, "'%.*s' is larger than the %d MB that jq accepts",
                      RV__ARG(root), MOST_BYTES >> 20);
        rv__blob_unref(own);
        return rc;
    }
    if (lasts && slot < RV__PEER_VALUES) {
        rv__peer_sent(a->peer, slot, &text, json);
        put_slot(a, root, name, field, slot);
    } else {
        put_inline(a, root, name, field, json);
    }
    rv__blob_unref(own);
    return 1;
}

/* Write several texts: the fields of a step (`name`), of lastStep or of loop. Returns 1 if any exists. */
static int put_parts(struct asking *a, struct rv__str root, struct rv__str name,
                     const struct rv__str *parts, size_t count)
{
    int any = 0;
    for (size_t i = 0; i < count; i++) {
        int rc = rv__str_none(name) ? put_text(a, root, parts[i], none)
                                    : put_text(a, root, name, parts[i]);
        if (rc < 0)
            return rc;
        any |= rc;
    }
    return any;
}

/* steps: those that are named, or all. */
static int put_steps(struct asking *a)
{
    struct rv__str root = rv__str("steps"), alias;
    int rc = 0, more;
    put_inline(a, root, none, none, rv__str("{}"));
    for (size_t i = 0;
         a->tpl->all_steps && rc >= 0 && (more = a->scope->alias(a->scope, i, &alias)) != 0; i++)
        rc = more < 0 ? rv__expr_failed(a->tpl->exprs[0], more, a->err, "the scope cannot be read")
                      : put_parts(a, root, alias, rv__step_fields, RV__STEP_FIELDS);
    for (size_t i = 0; !a->tpl->all_steps && rc >= 0 && i < a->tpl->need_count; i++)
        if (rv__str_is(a->tpl->needs[i]->root, "steps"))
            rc = put_parts(a, root, a->tpl->needs[i]->name, rv__step_fields, RV__STEP_FIELDS);
    return rc;
}

/* secrets: only those that are named, never all. Their values are sent with each request and not cached. */
static int put_secrets(struct asking *a)
{
    struct rv__str root = rv__str("secrets");
    int rc = 0;
    put_inline(a, root, none, none, rv__str("{}"));
    for (size_t i = 0; rc >= 0 && i < a->tpl->need_count; i++)
        if (rv__str_is(a->tpl->needs[i]->root, "secrets") && !rv__str_none(a->tpl->needs[i]->name))
            rc = put_text(a, root, a->tpl->needs[i]->name, none);
    return rc;
}

/* The iteration, and the enclosing ones if an expression may use them. */
static int put_loop(struct asking *a)
{
    int any = put_parts(a, rv__loop_root(0), none, rv__loop_names, RV__LOOP_NAMES), rc = any;
    for (size_t level = 1; a->tpl->outer_loops && rc > 0; level++) {
        struct rv__str root = rv__loop_root(level);
        rc = rv__str_none(root) ? 0 : put_parts(a, root, none, rv__loop_names, RV__LOOP_NAMES);
    }
    return rc < 0 ? rc : any;
}

/* Outside of an iteration there is no `loop`; every other root exists, at least as null. */
static int put_root(struct asking *a, struct rv__str root)
{
    bool loop = rv__str_is(root, "loop");
    if (rv__str_is(root, "steps"))
        return put_steps(a);
    if (rv__str_is(root, "secrets"))
        return put_secrets(a);
    int rc = loop ? put_loop(a)
             : rv__str_is(root, "lastStep")
                 ? put_parts(a, root, none, rv__last_names, RV__LAST_NAMES)
                 : put_text(a, root, none, none);
    if (rc == 0 && !loop)
        put_inline(a, root, none, none, rv__str("null"));
    return rc;
}

/* Is this use the first of its root? */
static bool first_of_root(const struct rv__template *tpl, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (rv__str_eq(tpl->needs[k]->root, tpl->needs[i]->root))
            return false;
    return !rv__str_none(tpl->needs[i]->root);
}

static int put_scope(struct asking *a)
{
    const struct rv__template *tpl = a->tpl;
    int rc = 0;
    for (size_t i = 0; i < tpl->need_count && rc >= 0 && !tpl->whole; i++)
        if (first_of_root(tpl, i))
            rc = put_root(a, tpl->needs[i]->root);
    for (size_t i = 0; tpl->whole && rc >= 0 && known[i] != NULL; i++)
        rc = put_root(a, rv__str(known[i]));
    for (size_t i = 0;
         tpl->whole && rc >= 0 && a->scope->roots != NULL && a->scope->roots[i] != NULL; i++)
        rc = put_root(a, rv__str(a->scope->roots[i]));
    if (tpl->whole && tpl->secrets && rc >= 0)
        rc = put_secrets(a);
    return rc < 0 ? rc : RV_OK;
}

int rv__exprs_ask(struct rv__exprs *set, uint32_t number, struct rv__expr_texts *texts,
                  struct rv__expr_peer *peer, struct rv__scope *scope, bool quickly,
                  struct rv__buf *out, rv_error *err)
{
    struct asking a = { .texts = texts,
                        .peer = peer,
                        .scope = scope,
                        .tpl = &set->templates[number],
                        .out = out,
                        .quickly = quickly,
                        .err = err };
    int rc = RV_OK;
    bool first = true;
    rv__peer_begin(peer);
    rv__buf_text(out, ",\"run\":[");
    for (size_t i = 0; i < a.tpl->expr_count && rc == RV_OK; i++) {
        const struct rv__expr *expr = a.tpl->exprs[i];
        unsigned slot = 0;
        if (expr->path != NULL)
            continue;
        rc = rv__peer_program(peer, set, expr->program, quickly, &slot, err);
        rv__buf_text(out, first ? "" : ",");
        rv__buf_int(out, slot);
        rv__buf_char(out, ',');
        rv__buf_int(out, expr->choice);
        first = false;
    }
    rv__buf_text(out, "],\"scope\":[");
    if (rc == RV_OK) {
        scope->at_hand = quickly;
        rc = put_scope(&a);
        scope->at_hand = false;
    }
    rv__buf_char(out, ']');
    return rc < 0 ? rc : rv__buf_err(out, err);
}
