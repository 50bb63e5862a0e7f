/* check.c: checks a value against a subschema.
 *
 * A violation is reported where one keyword alone decides (LOUD). While alternatives are tried, nothing is
 * reported (QUIET). If all fail, each is tried again to report the first thing that is wrong with it
 * (CAPTURE); alternatives within alternatives are not tried again, so this at most doubles the work,
 * however deep they nest. */
#include "schema/check.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"

/* ------------------------------------------------------------------------------------------
 * Members and items that a keyword has evaluated (for unevaluated…) */

static size_t words_of(const struct rv__value *v)
{
    return (v->count + 63) / 64;
}

void rv__seen_mark(struct rv__check *c, struct rv__seen *seen, const struct rv__value *v,
                   uint32_t i)
{
    if (seen == NULL || seen->all)
        return;
    if (seen->bits == NULL) {
        seen->bits = rv__zalloc(words_of(v), sizeof *seen->bits);
        if (seen->bits == NULL) {
            rv__stop(c, RV_ENOMEM, "out of memory");
            return;
        }
    }
    seen->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

void rv__seen_done(struct rv__seen *seen)
{
    rv__free(seen->bits);
    *seen = (struct rv__seen){ .bits = NULL };
}

void rv__seen_merge(struct rv__seen *into, struct rv__seen *from, const struct rv__value *v)
{
    if (into == NULL || into->all) {
        rv__seen_done(from);
    } else if (into->bits == NULL || from->all) {
        rv__free(into->bits);
        *into = *from;
        *from = (struct rv__seen){ .bits = NULL };
    } else {
        for (size_t i = 0; from->bits != NULL && i < words_of(v); i++)
            into->bits[i] |= from->bits[i];
        rv__seen_done(from);
    }
}

/* ------------------------------------------------------------------------------------------ */

static bool check_by_type(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                          struct rv__seen *seen)
{
    switch (v->type) {
    case RV__JSON_NULL:
    case RV__JSON_FALSE:
    case RV__JSON_TRUE: return true;
    case RV__JSON_NUMBER: return sub->numbers == NULL || rv__check_number(c, sub->numbers, v);
    case RV__JSON_STRING: return sub->strings == NULL || rv__check_string(c, sub->strings, v);
    case RV__JSON_ARRAY: return sub->arrays == NULL || rv__check_array(c, sub->arrays, v, seen);
    case RV__JSON_OBJECT: return sub->objects == NULL || rv__check_object(c, sub->objects, v, seen);
    }
    return true;
}

static const struct rv__sub *rest_of(const struct rv__sub *sub, const struct rv__value *v)
{
    return v->type == RV__JSON_ARRAY    ? sub->rest_items
           : v->type == RV__JSON_OBJECT ? sub->rest_members
                                        : NULL;
}

/* Check the members or items that no other keyword has evaluated. */
static bool check_rest(struct rv__check *c, const struct rv__sub *rest, const struct rv__value *v,
                       struct rv__seen *seen)
{
    bool ok = true;
    for (uint32_t i = 0; i < v->count; i++) {
        if (rv__seen_has(seen, i) || (v->type == RV__JSON_OBJECT && !rv__value_counts(v, i)))
            continue;
        ok &= rv__eval(c, rest, &v->kids[i], NULL);
        if (!ok && rv__enough(c))
            return false;
    }
    rv__free(seen->bits);
    *seen = (struct rv__seen){ .all = true };
    return ok;
}

static bool eval_rules(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                       struct rv__seen *seen)
{
    bool ok = check_by_type(c, sub, v, seen);
    if (!ok && rv__enough(c))
        return false;
    return (sub->logic == NULL || rv__check_logic(c, sub->logic, v, seen)) && ok;
}

/* Alternatives that failed have marked nothing, so after a failure the rest is not known. */
static bool knows_rest(const struct rv__check *c, const struct rv__sub *sub, bool ok)
{
    const struct rv__logic *l = sub->logic;
    return ok || (!rv__enough(c) && (l == NULL || (l->any.count == 0 && l->one.count == 0)));
}

static bool eval(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                 struct rv__seen *seen)
{
    const struct rv__sub *rest = rest_of(sub, v);
    struct rv__seen own = { .bits = NULL };
    /* With a wrong type or value, further messages would only repeat that. */
    if ((sub->types != 0 && !rv__check_type(c, sub->types, v)) || !rv__check_choice(c, sub, v))
        return false;
    if (rest == NULL)
        return eval_rules(c, sub, v, seen);

    bool ok = eval_rules(c, sub, v, &own);
    if (knows_rest(c, sub, ok))
        ok &= check_rest(c, rest, v, &own);
    rv__seen_merge(seen, &own, v);
    return ok;
}

bool rv__eval(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
              struct rv__seen *seen)
{
    if (sub->kind == RV__SUB_TRUE)
        return true;
    if (sub->kind == RV__SUB_FALSE)
        return rv__check_say(c, v, "is not allowed");
    if (c->rc < 0 || !rv__step(c))
        return false;
    if (c->nesting == RV__SCHEMA_MAX_NESTING)
        return rv__stop(c, RV_ETOOBIG, "schema and value nest deeper than %d together",
                        RV__SCHEMA_MAX_NESTING);
    c->nesting++;
    bool ok = eval(c, sub, v, seen);
    c->nesting--;
    return ok;
}

bool rv__eval_quiet(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                    struct rv__seen *seen)
{
    int mode = (int)c->mode;
    c->mode = RV__CHECK_QUIET;
    bool ok = rv__eval(c, sub, v, seen);
    c->mode = mode;
    return ok;
}

int rv__schema_check(const struct rv__schema *schema, struct rv__str instance,
                     struct rv__violations *bad, rv_error *err)
{
    struct rv__check c = { .mode = RV__CHECK_LOUD, .err = err };
    struct rv__arena words;
    struct rv__violations own;
    size_t values;
    int rc;

    rv__arena_init(&c.arena, RV__INSTANCE_ARENA);
    rv__arena_init(&words, RV__INSTANCE_ARENA);
    rv__violations_init(&own, &words);
    rv__matcher_init(&c.matcher);
    c.bad = bad ? bad : &own;

    rc = rv__value_read(instance, &c.arena, &c.instance, &values, err);
    if (rc < 0)
        goto out;

    c.steps_left = RV__SCHEMA_STEPS + (uint64_t)RV__SCHEMA_VALUE_STEPS * values;
    bool ok = rv__eval(&c, schema->root, &c.instance, NULL);
    rc = c.rc < 0 ? c.rc : rv__violations_err(c.bad, err);
    assert(c.rc < 0 || ok == (rc == RV_OK));
    (void)ok;
out:
    rv__matcher_done(&c.matcher);
    rv__arena_done(&words);
    rv__arena_done(&c.arena);
    return rc;
}
