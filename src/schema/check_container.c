/* check_container.c: arrays and objects. Each keyword visits each member or item once. */
#include "schema/check.h"

#include "base/alloc.h"
#include "base/suggest.h"

enum {
    SUGGEST_FROM = 100,  /* names that a misspelled one is compared with */
    SUGGEST_TIMES = 100, /* suggestions in one check */
};

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static bool check_count(struct rv__check *c, size_t min, size_t max, size_t count, const char *noun,
                        const struct rv__value *v)
{
    if (count < min)
        return rv__check_say(c, v, "must have at least %zu %s%s, has %zu", min, noun, plural(min),
                             count);
    return count <= max || rv__check_say(c, v, "must have at most %zu %s%s, has %zu", max, noun,
                                         plural(max), count);
}

/* ------------------------------------------------------------------------------------------
 * Arrays */

static bool check_unique(struct rv__check *c, const struct rv__value *v)
{
    bool ok = true;
    if (v->count < 2)
        return true;
    struct rv__ranked *items = rv__zalloc(2 * (size_t)v->count, sizeof *items);
    if (items == NULL)
        return rv__stop(c, RV_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < v->count; i++)
        items[i] = rv__value_rank(&v->kids[i]);
    rv__ranked_sort(items, items + v->count, v->count);
    for (uint32_t i = 1; i < v->count && (ok || !rv__enough(c)); i++)
        if (rv__ranked_cmp(&items[i - 1], &items[i]) == 0)
            ok = rv__check_say(c, items[i].value,
                               "must differ from all others, is the same as item %zu",
                               (size_t)(items[i - 1].value - v->kids));
    rv__free(items);
    return ok;
}

static bool check_contains(struct rv__check *c, const struct rv__array_rules *r,
                           const struct rv__value *v, struct rv__seen *seen)
{
    size_t found = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        if (seen == NULL && found >= r->min_contains && r->max_contains == SIZE_MAX)
            break; /* the answer is known */
        if (rv__eval_quiet(c, r->contains, &v->kids[i], NULL)) {
            rv__seen_mark(c, seen, v, i);
            found++;
        }
        if (c->rc < 0)
            return false;
    }
    if (found < r->min_contains)
        return rv__check_say(c, v,
                             "must contain at least %zu item%s of the kind asked for, contains %zu",
                             r->min_contains, plural(r->min_contains), found);
    return found <= r->max_contains ||
           rv__check_say(c, v,
                         "must contain at most %zu item%s of the kind asked for, contains %zu",
                         r->max_contains, plural(r->max_contains), found);
}

static bool check_items(struct rv__check *c, const struct rv__array_rules *r,
                        const struct rv__value *v, struct rv__seen *seen)
{
    bool ok = true;
    for (uint32_t i = 0; i < v->count; i++) {
        const struct rv__sub *sub = i < r->prefix.count ? r->prefix.items[i] : r->items;
        if (sub == NULL)
            break;
        ok &= rv__eval(c, sub, &v->kids[i], NULL);
        rv__seen_mark(c, seen, v, i);
        if ((!ok && rv__enough(c)) || c->rc < 0)
            return false;
    }
    return ok;
}

bool rv__check_array(struct rv__check *c, const struct rv__array_rules *r,
                     const struct rv__value *v, struct rv__seen *seen)
{
    bool ok = check_count(c, r->min, r->max, v->count, "item", v);
    if ((ok || !rv__enough(c)) && (r->items != NULL || r->prefix.count > 0))
        ok &= check_items(c, r, v, seen);
    if ((ok || !rv__enough(c)) && r->contains != NULL)
        ok &= check_contains(c, r, v, seen);
    if ((ok || !rv__enough(c)) && r->unique)
        ok &= check_unique(c, v);
    return ok;
}

/* ------------------------------------------------------------------------------------------
 * Objects */

static bool check_required(struct rv__check *c, const struct rv__object_rules *r,
                           const struct rv__value *v)
{
    char quoted[RV__QUOTED], message[RV__QUOTED + 40];
    bool ok = true;
    for (uint32_t i = 0; i < r->required.count && (ok || !rv__enough(c)); i++)
        if (rv__value_get(v, r->required.items[i]) == NULL)
            ok = rv__say_missing(c, v, r->required.items[i], "is required");
    for (uint32_t i = 0; i < r->needs_count && (ok || !rv__enough(c)); i++) {
        const struct rv__needs *needs = &r->needs[i];
        if (rv__value_get(v, needs->key) == NULL)
            continue;
        for (uint32_t j = 0; j < needs->names.count && (ok || !rv__enough(c)); j++) {
            if (rv__value_get(v, needs->names.items[j]) != NULL)
                continue;
            snprintf(message, sizeof message, "is required where '%s' is there",
                     rv__quote(needs->key, quoted));
            ok = rv__say_missing(c, v, needs->names.items[j], message);
        }
    }
    return ok;
}

/* "… did you mean 'name'?" */
static bool say_unknown(struct rv__check *c, const struct rv__object_rules *r,
                        const struct rv__value *v, struct rv__str key)
{
    const char *names[SUGGEST_FROM], *near = NULL;
    char quoted[RV__QUOTED];
    size_t count = 0;
    if (c->mode == RV__CHECK_QUIET)
        return false;
    for (uint32_t i = 0; c->bad->count < SUGGEST_TIMES && i < r->properties.count; i++) {
        struct rv__str name = r->properties.items[i].key;
        if (count == SUGGEST_FROM || name.len > RV__SCHEMA_QUOTE ||
            memchr(name.at, '\0', name.len) != NULL)
            continue;
        names[count] = rv__arena_dup(&c->arena, name.at, name.len);
        count += names[count] != NULL;
    }
    if (count > 0 && key.len <= RV__SCHEMA_QUOTE)
        near = rv__suggest(key, names, count);
    if (near == NULL)
        return rv__check_say(c, v, "is not allowed here");
    return rv__check_say(c, v, "is not allowed here; did you mean '%s'?",
                         rv__quote(rv__str(near), quoted));
}

static bool check_name(struct rv__check *c, const struct rv__sub *names, const struct rv__value *v,
                       struct rv__str key)
{
    /* The name as a string value, with the position of the member for messages. */
    struct rv__value name = { .at = v->at, .len = v->len, .type = RV__JSON_STRING, .text = key };
    char before[sizeof c->captured], quoted[RV__QUOTED];
    if (rv__eval_quiet(c, names, &name, NULL))
        return true;
    if (c->mode != RV__CHECK_LOUD || c->rc < 0)
        return rv__check_say(c, v, "has a name that is not allowed");
    memcpy(before, c->captured, sizeof before);
    c->captured[0] = '\0';
    c->captured_from = v;
    c->mode = RV__CHECK_CAPTURE;
    (void)rv__eval(c, names, &name, NULL);
    c->mode = RV__CHECK_LOUD;
    rv__check_say(c, v, "has the name '%s', which %s", rv__quote(key, quoted), c->captured);
    memcpy(c->captured, before, sizeof before);
    return false;
}

static bool check_member(struct rv__check *c, const struct rv__object_rules *r,
                         const struct rv__value *v, uint32_t i, struct rv__seen *seen)
{
    const struct rv__value *member = &v->kids[i];
    const struct rv__sub *sub = rv__map_get(&r->properties, v->keys[i]);
    bool ok = true, known = sub != NULL;

    if (r->names != NULL)
        ok = check_name(c, r->names, member, v->keys[i]);
    if (sub != NULL && (ok || !rv__enough(c)))
        ok &= rv__eval(c, sub, member, NULL);
    for (uint32_t p = 0; p < r->pattern_count && (ok || !rv__enough(c)); p++) {
        if (!rv__matches(c, r->patterns[p].pattern, v->keys[i]))
            continue;
        known = true;
        ok &= rv__eval(c, r->patterns[p].sub, member, NULL);
    }
    if (!known && r->additional != NULL && (ok || !rv__enough(c))) {
        known = true;
        if (r->additional->kind == RV__SUB_FALSE)
            ok = say_unknown(c, r, member, v->keys[i]);
        else
            ok &= rv__eval(c, r->additional, member, NULL);
    }
    if (known)
        rv__seen_mark(c, seen, v, i);
    return ok;
}

bool rv__check_object(struct rv__check *c, const struct rv__object_rules *r,
                      const struct rv__value *v, struct rv__seen *seen)
{
    bool ok = check_count(c, r->min, r->max, v->named, "member", v);
    if (ok || !rv__enough(c))
        ok &= check_required(c, r, v);
    bool members = r->properties.count > 0 || r->pattern_count > 0 || r->additional || r->names;
    for (uint32_t i = 0; members && i < v->count; i++) {
        if ((!ok && rv__enough(c)) || c->rc < 0)
            return false;
        if (rv__value_counts(v, i))
            ok &= check_member(c, r, v, i, seen);
    }
    for (uint32_t i = 0; i < r->dependent.count && (ok || !rv__enough(c)); i++)
        if (rv__value_get(v, r->dependent.items[i].key) != NULL)
            ok &= rv__eval(c, r->dependent.items[i].sub, v, seen);
    return ok;
}
