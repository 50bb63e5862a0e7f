/* value.h: a JSON text as a tree, for who asks it many questions: members by name, equality, order.
 *
 * Numbers stay text and are compared exactly (number.h). Strings are unescaped, members are found in
 * O(log n) whatever their names are: by order, not by a hash that could be made to collide. */
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
    struct rv__sub *sub; /* in a schema's tree: what was compiled from here, else NULL */
};

static inline struct rv__str rv__value_text(const struct rv__value *v)
{
    return (struct rv__str){ v->at, v->len };
}

/* Of an object, `named` indices: the last member of each name, by rv__key_cmp(). Behind the keys. */
static inline uint32_t *rv__value_order(const struct rv__value *v)
{
    return (uint32_t *)(v->keys + v->count);
}

/* Shorter names first: the order in which members are looked up. */
int rv__key_cmp(struct rv__str a, struct rv__str b);

/* The tree of `text`, which must outlive it, in the arena. *values, unless NULL: how many there are.
 * Checks the text first. Errors: those of rv__json_check(), RV_ENOMEM. */
int rv__value_read(struct rv__str text, struct rv__arena *arena, struct rv__value *ret,
                   size_t *values, rv_error *err);

/* The member of that name (the last, if it is there twice), NULL if there is none. */
const struct rv__value *rv__value_get(const struct rv__value *object, struct rv__str key);

/* Is the i-th member the one that its name means? False: a later one has the same name. */
bool rv__value_counts(const struct rv__value *object, uint32_t i);

/* A total order in which exactly the values that JSON Schema calls equal are equal. */
int rv__value_cmp(const struct rv__value *a, const struct rv__value *b);

/* For finding equal ones among many: by a hash first, so that most comparisons touch no text, and by
 * rv__value_cmp() where hashes are equal, so that colliding ones cost a logarithm and no more. */
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
