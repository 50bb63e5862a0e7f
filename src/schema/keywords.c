/* keywords.c: the table of a schema's keywords.
 *
 * A row names the function that reads the keyword's value, and where the value is stored. A wrong value is
 * reported and left out, so that all errors are reported at once; only a failed allocation ends the work
 * early. A keyword that is not in the table is an annotation, as the specification says. */
#include "schema/sub.h"

#include <stddef.h>

enum group { SELF, NUMBERS, STRINGS, ARRAYS, OBJECTS, LOGIC, GROUPS };

struct keyword {
    const char *name;
    /* Read `v` into `field` of `sub`. RV_OK, whatever is wrong with it, or RV_ENOMEM. */
    int (*read)(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field);
    enum group group;
    size_t offset;
};

/* ------------------------------------------------------------------------------------------
 * What keywords can have as values */

static int read_bool(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)sub;
    if (v->type != RV__JSON_TRUE && v->type != RV__JSON_FALSE)
        rv__complain(k, v, "must be true or false");
    *(bool *)field = v->type == RV__JSON_TRUE;
    return RV_OK;
}

static int read_size(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__number number;
    (void)sub;
    if (v->type == RV__JSON_NUMBER) {
        rv__number_read(rv__value_text(v), &number);
        if (rv__number_size(&number, field))
            return RV_OK;
    }
    rv__complain(k, v, "must be an integer that is not negative");
    return RV_OK;
}

static int read_bound(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__bound *bound = field;
    (void)sub;
    if (v->type != RV__JSON_NUMBER) {
        rv__complain(k, v, "must be a number");
        return RV_OK;
    }
    bound->value = v;
    rv__number_read(rv__value_text(v), &bound->number);
    return RV_OK;
}

static int read_multiple(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                         void *field)
{
    struct rv__number number = { .digits = NULL };
    (void)field;
    if (v->type == RV__JSON_NUMBER)
        rv__number_read(rv__value_text(v), &number);
    int rc = rv__divisor_read(&number, &sub->numbers->divisor);
    if (rc == RV_OK)
        sub->numbers->multiple = v;
    else if (rc == RV_ETOOBIG)
        rv__complain(k, v, "has more than 18 significant digits");
    else
        rv__complain(k, v, "must be a number above 0");
    return RV_OK;
}

static int read_names(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__names *names = field;
    (void)sub;
    if (v->type != RV__JSON_ARRAY) {
        rv__complain(k, v, "must be an array of strings");
        return RV_OK;
    }
    names->items = rv__arena_zalloc(k->arena, v->count ? v->count : 1, sizeof *names->items);
    if (names->items == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->kids[i].type == RV__JSON_STRING)
            names->items[names->count++] = v->kids[i].text;
        else
            rv__complain(k, &v->kids[i], "must be a string");
    }
    return RV_OK;
}

static int read_needs(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__object_rules *rules = sub->objects;
    (void)field;
    if (v->type != RV__JSON_OBJECT) {
        rv__complain(k, v, "must be an object of arrays of strings");
        return RV_OK;
    }
    rules->needs = rv__arena_zalloc(k->arena, v->named ? v->named : 1, sizeof *rules->needs);
    if (rules->needs == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->named; i++) {
        struct rv__needs *needs = &rules->needs[rules->needs_count++];
        needs->key = v->keys[rv__value_order(v)[i]];
        if (read_names(k, sub, &v->kids[rv__value_order(v)[i]], &needs->names) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

static int read_sub(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    return rv__compile_sub(k, v, sub->resource, field);
}

static int read_subs(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__subs *subs = field;
    if (v->type != RV__JSON_ARRAY || v->count == 0) {
        rv__complain(k, v, "must be an array with at least one schema");
        return RV_OK;
    }
    subs->items = rv__arena_zalloc(k->arena, v->count, sizeof *subs->items);
    if (subs->items == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++)
        if (rv__compile_sub(k, &v->kids[i], sub->resource, &subs->items[i]) < 0)
            return RV_ENOMEM;
    subs->count = v->count;
    return RV_OK;
}

/* Read in the order of the text, so that errors come in that order; then sorted by name. */
static int read_map(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__map *map = field;
    if (v->type != RV__JSON_OBJECT) {
        rv__complain(k, v, "must be an object of schemas");
        return RV_OK;
    }
    const struct rv__sub *ignored;
    map->items = rv__arena_zalloc(k->arena, v->named ? v->named : 1, sizeof *map->items);
    if (map->items == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++)
        if (rv__value_counts(v, i) && rv__compile_sub(k, &v->kids[i], sub->resource, &ignored) < 0)
            return RV_ENOMEM;
    for (uint32_t i = 0; i < v->named; i++)
        map->items[i] = (struct rv__entry){ v->keys[rv__value_order(v)[i]],
                                            v->kids[rv__value_order(v)[i]].sub };
    map->count = v->named;
    return RV_OK;
}

static int read_defs(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    struct rv__map ignored = { .items = NULL };
    (void)field;
    return read_map(k, sub, v, &ignored);
}

/* `at` is the position for messages: a name has none of its own. */
static int new_pattern(struct rv__compiler *k, struct rv__str source, const struct rv__value *at,
                       const struct rv__pattern **ret)
{
    struct rv__pattern *pattern = NULL;
    struct rv__buf why;
    rv__buf_init(&why, 512);
    int rc = rv__pattern_new(source, k->arena, &why, &pattern);
    if (rc == RV_OK) {
        pattern->next = k->schema->patterns;
        k->schema->patterns = pattern;
        *ret = pattern;
    } else if (rc == RV_EINVAL) {
        char quoted[RV__QUOTED];
        rv__complain(k, at, "the pattern '%s' is not a regular expression: %.*s",
                     rv__quote(source, quoted), RV__ARG(rv__buf_view(&why)));
        rc = RV_OK;
    }
    rv__buf_done(&why);
    return rc;
}

static int read_pattern(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                        void *field)
{
    (void)sub;
    if (v->type == RV__JSON_STRING)
        return new_pattern(k, v->text, v, field);
    rv__complain(k, v, "must be a string");
    return RV_OK;
}

static int read_patterns(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                         void *field)
{
    struct rv__object_rules *rules = sub->objects;
    (void)field;
    if (v->type != RV__JSON_OBJECT) {
        rv__complain(k, v, "must be an object of schemas");
        return RV_OK;
    }
    rules->patterns = rv__arena_zalloc(k->arena, v->named ? v->named : 1, sizeof *rules->patterns);
    if (rules->patterns == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++) {
        if (!rv__value_counts(v, i))
            continue;
        struct rv__guarded *guarded = &rules->patterns[rules->pattern_count];
        if (new_pattern(k, v->keys[i], &v->kids[i], &guarded->pattern) < 0 ||
            rv__compile_sub(k, &v->kids[i], sub->resource, &guarded->sub) < 0)
            return RV_ENOMEM;
        rules->pattern_count += guarded->pattern != NULL;
    }
    return RV_OK;
}

static int read_format(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                       void *field)
{
    (void)field;
    if (v->type == RV__JSON_STRING)
        sub->strings->format = rv__format_find(v->text);
    else
        rv__complain(k, v, "must be a string");
    return RV_OK;
}

/* ------------------------------------------------------------------------------------------
 * Keywords for any value */

static void read_type_name(struct rv__compiler *k, struct rv__sub *sub, const struct rv__value *v)
{
    static const char *const names[RV__TYPES] = { "null",   "boolean", "integer", "number",
                                                  "string", "array",   "object" };
    for (unsigned i = 0; i < RV__TYPES && v->type == RV__JSON_STRING; i++) {
        if (rv__str_is(v->text, names[i])) {
            sub->types |= 1u << i;
            return;
        }
    }
    rv__complain(k, v,
                 "must be one of null, boolean, integer, number, string, array, object (or an "
                 "array of them)");
}

static int read_type(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)field;
    if (v->type != RV__JSON_ARRAY || v->count == 0)
        read_type_name(k, sub, v);
    else
        for (uint32_t i = 0; i < v->count; i++)
            read_type_name(k, sub, &v->kids[i]);
    return RV_OK;
}

static int read_enum(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)field;
    if (v->type != RV__JSON_ARRAY) {
        rv__complain(k, v, "must be an array");
        return RV_OK;
    }
    size_t room = v->count ? v->count : 1;
    sub->sorted_choices = rv__arena_zalloc(k->arena, room, sizeof *sub->sorted_choices);
    struct rv__ranked *scratch = rv__arena_zalloc(k->arena, room, sizeof *scratch);
    if (sub->sorted_choices == NULL || scratch == NULL)
        return RV_ENOMEM;
    for (uint32_t i = 0; i < v->count; i++)
        sub->sorted_choices[i] = rv__value_rank(&v->kids[i]);
    rv__ranked_sort(sub->sorted_choices, scratch, v->count);
    sub->choices = v;
    return RV_OK;
}

static int read_any(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)k;
    (void)sub;
    *(const struct rv__value **)field = v;
    return RV_OK;
}

static int read_default(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                        void *field)
{
    k->schema->has_defaults = true;
    return read_any(k, sub, v, field);
}

/* ------------------------------------------------------------------------------------------
 * References and what is refused */

/* Noted here; resolved when all ids are known. */
static int read_ref(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    if (v->type != RV__JSON_STRING) {
        rv__complain(k, v, "must be a string");
        return RV_OK;
    }
    struct rv__pending *pending = rv__arena_zalloc(k->arena, 1, sizeof *pending);
    if (pending == NULL)
        return RV_ENOMEM;
    *pending = (struct rv__pending){ k->pending, v, sub, field };
    k->pending = pending;
    return RV_OK;
}

static int refuse_dynamic(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v,
                          void *field)
{
    (void)sub;
    (void)field;
    rv__complain(k, v, "dynamic references are not supported; use $ref and $anchor");
    return RV_OK;
}

static int read_draft(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)sub;
    (void)field;
    if (v->type != RV__JSON_STRING ||
        (!rv__str_is(v->text, "https://json-schema.org/draft/2020-12/schema") &&
         !rv__str_is(v->text, "https://json-schema.org/draft/2020-12/schema#")))
        rv__complain(k, v,
                     "must be https://json-schema.org/draft/2020-12/schema: no other draft and no "
                     "vocabulary of one's own is supported");
    return RV_OK;
}

static int refuse(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)sub;
    (void)field;
    rv__complain(k, v, "this keyword is not supported");
    return RV_OK;
}

static int skip(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v, void *field)
{
    (void)k;
    (void)sub;
    (void)v;
    (void)field;
    return RV_OK;
}

#define SELF_AT(f)   SELF, offsetof(struct rv__sub, f)
#define NUMBER_AT(f) NUMBERS, offsetof(struct rv__number_rules, f)
#define STRING_AT(f) STRINGS, offsetof(struct rv__string_rules, f)
#define ARRAY_AT(f)  ARRAYS, offsetof(struct rv__array_rules, f)
#define OBJECT_AT(f) OBJECTS, offsetof(struct rv__object_rules, f)
#define LOGIC_AT(f)  LOGIC, offsetof(struct rv__logic, f)

/* Violations of a schema are reported in this order. */
static const struct keyword keywords[] = {
    { "$schema", read_draft, SELF, 0 },
    { "$vocabulary", refuse, SELF, 0 },
    { "$recursiveRef", refuse, SELF, 0 },
    { "$recursiveAnchor", refuse, SELF, 0 },
    { "$dynamicRef", refuse_dynamic, SELF, 0 },
    { "$dynamicAnchor", refuse_dynamic, SELF, 0 },
    { "$id", skip, SELF, 0 }, /* these two before all others: see below */
    { "$anchor", skip, SELF, 0 },
    { "$ref", read_ref, LOGIC_AT(ref) },
    { "$defs", read_defs, SELF, 0 },
    { "definitions", read_defs, SELF, 0 }, /* its old name, which the meta-schema knows too */
    { "type", read_type, SELF, 0 },
    { "enum", read_enum, SELF, 0 },
    { "const", read_any, SELF_AT(constant) },
    { "default", read_default, SELF_AT(fallback) },
    { "minimum", read_bound, NUMBER_AT(minimum) },
    { "maximum", read_bound, NUMBER_AT(maximum) },
    { "exclusiveMinimum", read_bound, NUMBER_AT(above) },
    { "exclusiveMaximum", read_bound, NUMBER_AT(below) },
    { "multipleOf", read_multiple, NUMBER_AT(multiple) },
    { "minLength", read_size, STRING_AT(min) },
    { "maxLength", read_size, STRING_AT(max) },
    { "pattern", read_pattern, STRING_AT(pattern) },
    { "format", read_format, STRING_AT(format) },
    { "minItems", read_size, ARRAY_AT(min) },
    { "maxItems", read_size, ARRAY_AT(max) },
    { "uniqueItems", read_bool, ARRAY_AT(unique) },
    { "prefixItems", read_subs, ARRAY_AT(prefix) },
    { "items", read_sub, ARRAY_AT(items) },
    { "contains", read_sub, ARRAY_AT(contains) },
    { "minContains", read_size, ARRAY_AT(min_contains) },
    { "maxContains", read_size, ARRAY_AT(max_contains) },
    { "unevaluatedItems", read_sub, SELF_AT(rest_items) },
    { "minProperties", read_size, OBJECT_AT(min) },
    { "maxProperties", read_size, OBJECT_AT(max) },
    { "required", read_names, OBJECT_AT(required) },
    { "properties", read_map, OBJECT_AT(properties) },
    { "patternProperties", read_patterns, OBJECT_AT(patterns) },
    { "additionalProperties", read_sub, OBJECT_AT(additional) },
    { "propertyNames", read_sub, OBJECT_AT(names) },
    { "dependentRequired", read_needs, OBJECT_AT(needs) },
    { "dependentSchemas", read_map, OBJECT_AT(dependent) },
    { "unevaluatedProperties", read_sub, SELF_AT(rest_members) },
    { "allOf", read_subs, LOGIC_AT(all) },
    { "anyOf", read_subs, LOGIC_AT(any) },
    { "oneOf", read_subs, LOGIC_AT(one) },
    { "not", read_sub, LOGIC_AT(not ) },
    { "if", read_sub, LOGIC_AT(condition) },
    { "then", read_sub, LOGIC_AT(then) },
    { "else", read_sub, LOGIC_AT(otherwise) },
};

/* ------------------------------------------------------------------------------------------ */

static void *group_of(struct rv__compiler *k, struct rv__sub *sub, enum group group)
{
    switch (group) {
    case SELF: return sub;
    case NUMBERS:
        if (sub->numbers == NULL)
            sub->numbers = rv__arena_zalloc(k->arena, 1, sizeof *sub->numbers);
        return sub->numbers;
    case STRINGS:
        if (sub->strings == NULL &&
            (sub->strings = rv__arena_zalloc(k->arena, 1, sizeof *sub->strings)) != NULL)
            sub->strings->max = SIZE_MAX;
        return sub->strings;
    case ARRAYS:
        if (sub->arrays == NULL &&
            (sub->arrays = rv__arena_zalloc(k->arena, 1, sizeof *sub->arrays)) != NULL) {
            sub->arrays->max = sub->arrays->max_contains = SIZE_MAX;
            sub->arrays->min_contains = 1;
        }
        return sub->arrays;
    case OBJECTS:
        if (sub->objects == NULL &&
            (sub->objects = rv__arena_zalloc(k->arena, 1, sizeof *sub->objects)) != NULL)
            sub->objects->max = SIZE_MAX;
        return sub->objects;
    case LOGIC:
        if (sub->logic == NULL)
            sub->logic = rv__arena_zalloc(k->arena, 1, sizeof *sub->logic);
        return sub->logic;
    case GROUPS: break;
    }
    return NULL;
}

/* Not const: a value keeps a pointer to what was compiled from it. */
static struct rv__value *member(struct rv__value *v, const char *name)
{
    const struct rv__value *found = rv__value_get(v, rv__str(name));
    return found ? &v->kids[found - v->kids] : NULL;
}

int rv__compile_keywords(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v)
{
    const struct rv__value *id = member(v, "$id"), *anchor = member(v, "$anchor");
    if ((id != NULL && rv__compile_id(k, sub, id) < 0) ||
        (anchor != NULL && rv__compile_anchor(k, sub, anchor) < 0))
        return RV_ENOMEM;

    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        struct rv__value *value = member(v, keywords[i].name);
        if (value == NULL)
            continue;
        char *group = group_of(k, sub, keywords[i].group);
        if (group == NULL || keywords[i].read(k, sub, value, group + keywords[i].offset) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}
