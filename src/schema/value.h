/* value.h: a JSON text as a tree, for repeated access: members by name, equality, order.
 *
 * Numbers stay text and are compared exactly (number.h). Strings are unescaped. Members are found in O(log n)
 * whatever their names: by order, not by a hash that could be made to collide. */
#ifndef RV_SCHEMA_VALUE_H
#define RV_SCHEMA_VALUE_H

#include "base/arena.h"
#include "base/json.h"

struct rv__sub;

struct rv__value {
    const char *at; /* its text */
    uint32_t len;
    uint32_t count; /* of kids */
    uint32_t named; /* object: distinct names among its members */
    enum rv__json_type type;
    union {
        struct rv__str text; /* string: unescaped */
        struct {
            struct rv__value *kids; /* array, object: in the order of the text */
            struct rv__str *keys;   /* object: their names, unescaped */
        };
    };
    struct rv__sub *sub; /* in a schema's tree: the compiled subschema, else NULL */
};

static inline struct rv__str rv__value_text(const struct rv__value *v)
{
    return (struct rv__str){ v->at, v->len };
}

/* Of an object: `named` indices, the last member of each name, sorted by rv__key_cmp(). Stored after the keys. */
static inline uint32_t *rv__value_order(const struct rv__value *v)
{
    return (uint32_t *)(v->keys + v->count);
}

/* The order for looking up members: shorter names first. */
int rv__key_cmp(struct rv__str a, struct rv__str b);

/* Parse `text`, which must outlive the tree, into the arena. *values, unless NULL: the number of values. Checks the
 * text first. Errors: those of rv__json_check(), RV_ENOMEM. */
int rv__value_read(struct rv__str text, struct rv__arena *arena, struct rv__value *ret,
                   size_t *values, rv_error *err);

/* The member with this name (the last, if repeated); NULL: none. */
const struct rv__value *rv__value_get(const struct rv__value *object, struct rv__str key);

/* Is the i-th member the last one with its name? */
bool rv__value_counts(const struct rv__value *object, uint32_t i);

/* A total order; values are equal exactly if JSON Schema calls them equal. */
int rv__value_cmp(const struct rv__value *a, const struct rv__value *b);

/* For finding equal values among many: compares a hash first, so that most comparisons read no text; with equal
 * hashes rv__value_cmp(), so that collisions cost only a logarithm. */
struct rv__ranked {
    uint64_t hash;
    const struct rv__value *value;
};
struct rv__ranked rv__value_rank(const struct rv__value *v);
int rv__ranked_cmp(const struct rv__ranked *a, const struct rv__ranked *b);
/* `scratch` is as large as `items`. Stable. */
void rv__ranked_sort(struct rv__ranked *items, struct rv__ranked *scratch, size_t count);

/* Append the JSON pointer from `root` to the value whose text begins at `at`. */
void rv__value_pointer(const struct rv__value *root, const char *at, struct rv__buf *out);

#endif
