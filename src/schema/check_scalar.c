/* check_scalar.c: type, enum and const; numbers and strings. */
#include "schema/check.h"

static const char *const type_names[RV__TYPES] = { "null",     "a boolean", "an integer",
                                                   "a number", "a string",  "an array",
                                                   "an object" };

static const char *name_of(const struct rv__value *v)
{
    switch (v->type) {
    case RV__JSON_NULL: return "null";
    case RV__JSON_FALSE:
    case RV__JSON_TRUE: return "a boolean";
    case RV__JSON_NUMBER: return "a number";
    case RV__JSON_STRING: return "a string";
    case RV__JSON_ARRAY: return "an array";
    case RV__JSON_OBJECT: return "an object";
    }
    return "";
}

static bool is_integer(const struct rv__value *v)
{
    struct rv__number number;
    rv__number_read(rv__value_text(v), &number);
    return rv__number_is_integer(&number);
}

static bool has_type(unsigned types, const struct rv__value *v)
{
    switch (v->type) {
    case RV__JSON_NULL: return types & RV__TYPE_NULL;
    case RV__JSON_FALSE:
    case RV__JSON_TRUE: return types & RV__TYPE_BOOLEAN;
    case RV__JSON_NUMBER:
        return types & RV__TYPE_NUMBER || (types & RV__TYPE_INTEGER && is_integer(v));
    case RV__JSON_STRING: return types & RV__TYPE_STRING;
    case RV__JSON_ARRAY: return types & RV__TYPE_ARRAY;
    case RV__JSON_OBJECT: return types & RV__TYPE_OBJECT;
    }
    return false;
}

bool rv__check_type(struct rv__check *c, unsigned types, const struct rv__value *v)
{
    char expected[120] = "", quoted[RV__QUOTED];
    size_t len = 0;
    if (has_type(types, v))
        return true;
    if (c->mode == RV__CHECK_QUIET)
        return false;
    for (unsigned i = 0; i < RV__TYPES; i++) {
        if (!(types & 1u << i))
            continue;
        const char *comma = len == 0 ? "" : types >> (i + 1) ? ", " : " or ";
        len += (size_t)snprintf(expected + len, sizeof expected - len, "%s%s", comma,
                                type_names[i]);
    }
    if (v->type == RV__JSON_NUMBER && types & RV__TYPE_INTEGER)
        return rv__check_say(c, v, "must be %s, is %s", expected,
                             rv__quote(rv__value_text(v), quoted));
    return rv__check_say(c, v, "must be %s, is %s", expected, name_of(v));
}

static bool is_choice(const struct rv__sub *sub, const struct rv__value *v)
{
    const struct rv__ranked wanted = rv__value_rank(v);
    size_t low = 0, high = sub->choices->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int cmp = rv__ranked_cmp(&sub->sorted_choices[middle], &wanted);
        if (cmp == 0)
            return true;
        if (cmp < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool say_choices(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v)
{
    char list[300] = "", quoted[RV__QUOTED];
    size_t len = 0;
    const struct rv__value *choices = sub->choices;
    if (c->mode == RV__CHECK_QUIET)
        return false;
    if (choices->count == 0)
        return rv__check_say(c, v, "cannot have any value: its 'enum' is empty");
    for (uint32_t i = 0; i < choices->count; i++) {
        rv__quote(rv__value_text(&choices->kids[i]), quoted);
        if (len + strlen(quoted) + 8 > sizeof list) {
            snprintf(list + len, sizeof list - len, ", …");
            break;
        }
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", quoted);
    }
    return rv__check_say(c, v, choices->count == 1 ? "must be %s" : "must be one of %s", list);
}

bool rv__check_choice(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v)
{
    char quoted[RV__QUOTED];
    if (sub->constant != NULL && rv__value_cmp(sub->constant, v) != 0)
        return rv__check_say(c, v, "must be %s", rv__quote(rv__value_text(sub->constant), quoted));
    return sub->choices == NULL || is_choice(sub, v) || say_choices(c, sub, v);
}

/* ------------------------------------------------------------------------------------------ */

/* Is the number on the right side of the bound? `sign`: 1 for a minimum, -1 for a maximum. */
static bool check_bound(struct rv__check *c, const struct rv__bound *bound, int sign, bool equal,
                        const char *words, const struct rv__value *v, const struct rv__number *n)
{
    char quoted[RV__QUOTED], is[RV__QUOTED];
    if (bound->value == NULL)
        return true;
    int cmp = sign * rv__number_cmp(n, &bound->number);
    if (cmp > 0 || (equal && cmp == 0))
        return true;
    if (c->mode == RV__CHECK_QUIET)
        return false;
    return rv__check_say(c, v, "must be %s %s, is %s", words,
                         rv__quote(rv__value_text(bound->value), quoted),
                         rv__quote(rv__value_text(v), is));
}

bool rv__check_number(struct rv__check *c, const struct rv__number_rules *r,
                      const struct rv__value *v)
{
    char quoted[RV__QUOTED], is[RV__QUOTED];
    struct rv__number n;
    rv__number_read(rv__value_text(v), &n);
    bool ok = check_bound(c, &r->minimum, 1, true, "at least", v, &n);
    ok &= check_bound(c, &r->maximum, -1, true, "at most", v, &n);
    ok &= check_bound(c, &r->above, 1, false, "more than", v, &n);
    ok &= check_bound(c, &r->below, -1, false, "less than", v, &n);
    if (r->multiple != NULL && !rv__number_is_multiple(&n, &r->divisor))
        return rv__check_say(c, v, "must be a multiple of %s, is %s",
                             rv__quote(rv__value_text(r->multiple), quoted),
                             rv__quote(rv__value_text(v), is));
    return ok;
}

static size_t characters(struct rv__str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((unsigned char)s.at[i] & 0xC0) != 0x80;
    return count;
}

static bool check_length(struct rv__check *c, const struct rv__string_rules *r,
                         const struct rv__value *v)
{
    if (r->min == 0 && v->text.len <= r->max) /* no more characters than bytes */
        return true;
    size_t count = characters(v->text);
    if (count < r->min)
        return r->min == 1 ? rv__check_say(c, v, "may not be empty")
                           : rv__check_say(c, v, "must have at least %zu characters, has %zu",
                                           r->min, count);
    return count <= r->max || rv__check_say(c, v, "must have at most %zu character%s, has %zu",
                                            r->max, r->max == 1 ? "" : "s", count);
}

bool rv__check_string(struct rv__check *c, const struct rv__string_rules *r,
                      const struct rv__value *v)
{
    char quoted[RV__QUOTED];
    bool ok = check_length(c, r, v);
    if (r->pattern != NULL && !rv__matches(c, r->pattern, v->text))
        ok = rv__check_say(c, v, "must match the pattern '%s'",
                           rv__quote(r->pattern->source, quoted));
    if (r->format != NULL) {
        int rc = rv__format_matches(r->format, v->text);
        if (rc < 0)
            return rv__stop(c, rc, "out of memory");
        if (rc == 0)
            ok = rv__check_say(c, v, "must be %s", r->format->noun);
    }
    return ok;
}
