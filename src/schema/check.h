/* check.h: the check of one instance. One owner. */
#ifndef RV_SCHEMA_CHECK_H
#define RV_SCHEMA_CHECK_H

#include "schema/sub.h"

struct rv__check {
    struct rv__value instance;
    struct rv__arena arena; /* for the tree */
    struct rv__violations *bad;
    enum {
        RV__CHECK_LOUD,    /* add every violation to `bad` */
        RV__CHECK_CAPTURE, /* copy only the first one to `captured` */
        RV__CHECK_QUIET,   /* only find out whether there is one */
    } mode;
    char captured[160];
    const struct rv__value *captured_from; /* positions in it are relative to this */
    struct rv__matcher matcher;
    uint64_t steps_left;
    unsigned nesting;
    int rc; /* negative: could not be decided, and *err says why */
    rv_error *err;
};

/* Members or items of one value that some keyword has evaluated, for unevaluated*. */
struct rv__seen {
    uint64_t *bits; /* NULL: none, or all */
    bool all;
};

/* Does the value conform? False also if c->rc < 0. Evaluated members are marked in `seen`. */
bool rv__eval(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
              struct rv__seen *seen);
/* The same, without reporting. */
bool rv__eval_quiet(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                    struct rv__seen *seen);

/* Its parts, each for values of one type that has such rules. */
bool rv__check_number(struct rv__check *c, const struct rv__number_rules *r,
                      const struct rv__value *v);
bool rv__check_string(struct rv__check *c, const struct rv__string_rules *r,
                      const struct rv__value *v);
bool rv__check_array(struct rv__check *c, const struct rv__array_rules *r,
                     const struct rv__value *v, struct rv__seen *seen);
bool rv__check_object(struct rv__check *c, const struct rv__object_rules *r,
                      const struct rv__value *v, struct rv__seen *seen);
bool rv__check_logic(struct rv__check *c, const struct rv__logic *l, const struct rv__value *v,
                     struct rv__seen *seen);
bool rv__check_type(struct rv__check *c, unsigned types, const struct rv__value *v);
bool rv__check_choice(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v);

/* After a violation: is there no reason to look further? */
static inline bool rv__enough(const struct rv__check *c)
{
    return c->mode != RV__CHECK_LOUD || c->rc < 0;
}

/* Report a violation of `v`. Returns false, so that a check can return it. */
bool rv__check_say(struct rv__check *c, const struct rv__value *v, const char *fmt, ...)
    RV_PRINTF(3, 4);
/* Report that the member `key` of `v` is missing. */
bool rv__say_missing(struct rv__check *c, const struct rv__value *v, struct rv__str key,
                     const char *why);
/* Stop: it cannot be decided. Returns false. */
bool rv__stop(struct rv__check *c, int rc, const char *fmt, ...) RV_PRINTF(3, 4);
/* Count one step; false: none left. */
bool rv__step(struct rv__check *c);
/* Is the pattern in the text? False also when c->rc < 0. */
bool rv__matches(struct rv__check *c, const struct rv__pattern *pattern, struct rv__str text);

static inline bool rv__seen_has(const struct rv__seen *seen, uint32_t i)
{
    return seen->all || (seen->bits != NULL && (seen->bits[i / 64] >> (i % 64) & 1));
}
/* Mark the i-th of `v`; `seen` may be NULL. Without memory c->rc < 0. */
void rv__seen_mark(struct rv__check *c, struct rv__seen *seen, const struct rv__value *v,
                   uint32_t i);
/* Add `from` to `into`, and empty `from`. `into` may be NULL. */
void rv__seen_merge(struct rv__seen *into, struct rv__seen *from, const struct rv__value *v);
void rv__seen_done(struct rv__seen *seen);

#endif
