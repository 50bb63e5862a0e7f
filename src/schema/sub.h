/* sub.h: a compiled schema: a graph of subschemas, immutable once rv__schema_new() returns. */
#ifndef RV_SCHEMA_SUB_H
#define RV_SCHEMA_SUB_H

#include "base/arena.h"
#include "base/violations.h"
#include "schema/format.h"
#include "schema/number.h"
#include "schema/pattern.h"
#include "schema/schema.h"
#include "schema/value.h"

enum {
    RV__SCHEMA_MAX_IDS = 1000,  /* $id, and as many anchors: they are searched linearly */
    RV__SCHEMA_MAX_CHAIN = 100, /* nested subschemas that apply to the same value */
    RV__SCHEMA_MAX_NESTING =
        2048,                     /* of subschemas while checking: our stack, some 500 bytes each */
    RV__SCHEMA_STEPS = 10000000,  /* subschemas and patterns tried in one check: half a second */
    RV__SCHEMA_VALUE_STEPS = 200, /* and this many more for each value of the instance */
    RV__SCHEMA_QUOTE = 60,        /* bytes of a value quoted in a message */
    RV__QUOTED = RV__SCHEMA_QUOTE + 4, /* with "…" and a NUL */
};
#define RV__SCHEMA_ARENA   ((size_t)1 << 29) /* a tree takes up to 60 bytes for each byte of text */
#define RV__INSTANCE_ARENA ((size_t)1 << 30)

/* For `types`; an integer is also a number, but not the other way round. */
enum {
    RV__TYPE_NULL = 1 << 0,
    RV__TYPE_BOOLEAN = 1 << 1,
    RV__TYPE_INTEGER = 1 << 2,
    RV__TYPE_NUMBER = 1 << 3,
    RV__TYPE_STRING = 1 << 4,
    RV__TYPE_ARRAY = 1 << 5,
    RV__TYPE_OBJECT = 1 << 6,
    RV__TYPES = 7,
};

struct rv__subs {
    const struct rv__sub **items;
    uint32_t count;
};

struct rv__map { /* sorted by rv__key_cmp() */
    struct rv__entry {
        struct rv__str key;
        const struct rv__sub *sub;
    } * items;
    uint32_t count;
};

struct rv__names {
    struct rv__str *items;
    uint32_t count;
};

struct rv__bound { /* value NULL: none */
    const struct rv__value *value;
    struct rv__number number;
};

struct rv__number_rules {
    struct rv__bound minimum, maximum, above, below;
    const struct rv__value *multiple; /* NULL: none */
    struct rv__divisor divisor;
};

struct rv__string_rules {
    size_t min, max; /* in characters; SIZE_MAX: no maximum, here and below */
    const struct rv__pattern *pattern;
    const struct rv__format *format;
};

struct rv__array_rules {
    size_t min, max;
    bool unique;
    struct rv__subs prefix;
    const struct rv__sub *items, *contains;
    size_t min_contains, max_contains;
};

struct rv__object_rules {
    size_t min, max;
    struct rv__map properties, dependent;
    struct rv__guarded {
        const struct rv__pattern *pattern;
        const struct rv__sub *sub;
    } * patterns;
    uint32_t pattern_count;
    const struct rv__sub *additional, *names;
    struct rv__names required;
    struct rv__needs {
        struct rv__str key;
        struct rv__names names;
    } * needs; /* dependentRequired */
    uint32_t needs_count;
};

/* Subschemas that apply to the same value. */
struct rv__logic {
    const struct rv__sub *ref, *not, *condition, *then, *otherwise;
    struct rv__subs all, any, one;
};

struct rv__sub {
    struct rv__sub *next; /* in the list of all */
    const struct rv__value *at;
    const struct rv__resource *resource; /* the base of its references */
    enum { RV__SUB_RULES, RV__SUB_TRUE, RV__SUB_FALSE } kind;
    unsigned types; /* 0: any */
    const struct rv__value *constant, *fallback, *choices;
    struct rv__ranked *sorted_choices; /* choices->count, by rv__ranked_cmp() */
    struct rv__number_rules *numbers;  /* each NULL if there are none */
    struct rv__string_rules *strings;
    struct rv__array_rules *arrays;
    struct rv__object_rules *objects;
    struct rv__logic *logic;
    const struct rv__sub *rest_items, *rest_members; /* unevaluatedItems, unevaluatedProperties */
    uint32_t chain;                                  /* while compiling: see resolve.c */
};

struct rv__schema {
    struct rv__arena arena;
    struct rv__value text; /* the schema itself, as a tree */
    const struct rv__sub *root;
    struct rv__pattern *patterns;
    bool has_defaults;
};

const struct rv__sub *rv__map_get(const struct rv__map *map, struct rv__str key);

/* say.c: the beginning of a text, for a message. */
const char *rv__quote(struct rv__str text, char out[RV__QUOTED]);
/* After snprintf() into `room` bytes: remove a character that was cut in two. */
void rv__cut(char *text, size_t room);

/* ------------------------------------------------------------------------------------------
 * While it is compiled */

struct rv__resource { /* a schema with an $id, or the whole */
    struct rv__resource *next;
    struct rv__str uri;
    const struct rv__value *root;
};

struct rv__anchor {
    struct rv__anchor *next;
    const struct rv__resource *resource;
    struct rv__str name;
    struct rv__value *at;
};

struct rv__pending { /* a reference that waits until all ids are known */
    struct rv__pending *next;
    const struct rv__value *at;
    struct rv__sub *from;
    const struct rv__sub **field;
};

struct rv__compiler {
    struct rv__schema *schema;
    struct rv__arena *arena;
    struct rv__violations *bad;
    struct rv__resource *resources;
    struct rv__anchor *anchors;
    struct rv__pending *pending;
    struct rv__sub *subs;
    size_t ids, anchor_count;
};

/* Report an error in the schema, at `at`. */
void rv__complain(struct rv__compiler *k, const struct rv__value *at, const char *fmt, ...)
    RV_PRINTF(3, 4);

/* The subschema at `v`, compiled unless it already is; its references are resolved later. RV_ENOMEM. */
int rv__compile_sub(struct rv__compiler *k, struct rv__value *v,
                    const struct rv__resource *resource, const struct rv__sub **ret);

/* keywords.c: compile all keywords of the object `v` into `sub`. RV_ENOMEM. */
int rv__compile_keywords(struct rv__compiler *k, struct rv__sub *sub, struct rv__value *v);

/* resolve.c */
int rv__compile_id(struct rv__compiler *k, struct rv__sub *sub, const struct rv__value *id);
int rv__compile_anchor(struct rv__compiler *k, struct rv__sub *sub, const struct rv__value *name);
int rv__resolve_references(struct rv__compiler *k);
void rv__refuse_circles(struct rv__compiler *k);

#endif
