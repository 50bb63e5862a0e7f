/* check_logic.c: keywords that try other subschemas on the same value. */
#include "schema/check.h"

enum { ALTERNATIVES_TOLD = 4 }; /* alternatives in a message, if all fail */

/* Write into `out` the first thing that is wrong with each alternative. */
static void explain(struct rv__check *c, const struct rv__subs *subs, const struct rv__value *v,
                    char *out, size_t room)
{
    size_t len = 0;
    c->mode = RV__CHECK_CAPTURE;
    c->captured_from = v;
    for (uint32_t i = 0; i < subs->count && i < ALTERNATIVES_TOLD && c->rc == RV_OK; i++) {
        c->captured[0] = '\0';
        (void)rv__eval(c, subs->items[i], v, NULL);
        int n = snprintf(out + len, room - len, "%s(%u) %s", i ? "; " : "", i + 1, c->captured);
        len = n > 0 && (size_t)n < room - len ? len + (size_t)n : room - 1;
    }
    if (subs->count > ALTERNATIVES_TOLD && len + 8 < room)
        snprintf(out + len, room - len, "; …");
    c->captured[0] = '\0';
    c->mode = RV__CHECK_LOUD;
}

static bool say_none(struct rv__check *c, const struct rv__subs *subs, const struct rv__value *v)
{
    char why[400] = "";
    if (c->mode != RV__CHECK_LOUD || c->rc < 0)
        return rv__check_say(c, v, "matches none of %u alternatives", subs->count);
    explain(c, subs, v, why, sizeof why);
    return c->rc == RV_OK && rv__check_say(c, v, "matches none of %u alternative%s: %s",
                                           subs->count, subs->count == 1 ? "" : "s", why);
}

/* Keeps the marks of an alternative only if it succeeded. */
static bool try_one(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                    struct rv__seen *seen)
{
    struct rv__seen own = { .bits = NULL };
    bool ok = rv__eval_quiet(c, sub, v, seen ? &own : NULL);
    if (ok)
        rv__seen_merge(seen, &own, v);
    rv__seen_done(&own);
    return ok;
}

static bool check_any(struct rv__check *c, const struct rv__subs *subs, const struct rv__value *v,
                      struct rv__seen *seen)
{
    bool found = false;
    for (uint32_t i = 0; i < subs->count && (seen != NULL || !found) && c->rc == RV_OK; i++)
        found |= try_one(c, subs->items[i], v, seen);
    return found || say_none(c, subs, v);
}

static bool check_one(struct rv__check *c, const struct rv__subs *subs, const struct rv__value *v,
                      struct rv__seen *seen)
{
    uint32_t first = 0, second = 0; /* from 1 */
    for (uint32_t i = 0; i < subs->count && second == 0 && c->rc == RV_OK; i++) {
        if (!try_one(c, subs->items[i], v, seen))
            continue;
        if (first == 0)
            first = i + 1;
        else
            second = i + 1;
    }
    if (first == 0)
        return say_none(c, subs, v);
    return second == 0 ||
           rv__check_say(c, v, "must match exactly one of %u alternatives, matches (%u) and (%u)",
                         subs->count, first, second);
}

static bool check_condition(struct rv__check *c, const struct rv__logic *l,
                            const struct rv__value *v, struct rv__seen *seen)
{
    if (l->condition == NULL || (l->then == NULL && l->otherwise == NULL && seen == NULL))
        return true;
    bool holds = try_one(c, l->condition, v, seen);
    const struct rv__sub *next = holds ? l->then : l->otherwise;
    return next == NULL || rv__eval(c, next, v, seen);
}

bool rv__check_logic(struct rv__check *c, const struct rv__logic *l, const struct rv__value *v,
                     struct rv__seen *seen)
{
    bool ok = l->ref == NULL || rv__eval(c, l->ref, v, seen);
    for (uint32_t i = 0; i < l->all.count && (ok || !rv__enough(c)); i++)
        ok &= rv__eval(c, l->all.items[i], v, seen);
    if (l->any.count > 0 && (ok || !rv__enough(c)))
        ok &= check_any(c, &l->any, v, seen);
    if (l->one.count > 0 && (ok || !rv__enough(c)))
        ok &= check_one(c, &l->one, v, seen);
    if (l->not != NULL && (ok || !rv__enough(c)) && rv__eval_quiet(c, l->not, v, NULL))
        ok = rv__check_say(c, v, "must not match the schema of 'not'");
    if (ok || !rv__enough(c))
        ok &= check_condition(c, l, v, seen);
    return ok;
}
