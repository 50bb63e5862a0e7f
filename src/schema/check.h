/* check.h: one check of one instance, under way. One owner. */
#ifndef RV_SCHEMA_CHECK_H
#define RV_SCHEMA_CHECK_H

#include "schema/sub.h"

struct rv__check {
    struct rv__value instance;
    struct rv__arena arena; /* of the tree */
    struct rv__violations *bad;
    enum {
        RV__CHECK_LOUD,    /* everything that is wrong goes to `bad` */
        RV__CHECK_CAPTURE, /* what is wrong first goes to `captured` */
        RV__CHECK_QUIET,   /* only whether something is wrong */
    } mode;
    char captured[160];
    const struct rv__value *captured_from; /* places in it are relative to this */
    struct rv__matcher matcher;
    uint64_t steps_left;
    unsigned nesting;
    int rc; /* negative: could not be decided, and *err says why */
    rv_error *err;
};

/* Members or items of one value that some keyword looked at, for unevaluated*. */
struct rv__seen {
    uint64_t *bits; /* NULL: none, or all */
    bool all;
};

/* Does the value conform? False also when c->rc < 0. With `seen`, what was looked at is noted. */
bool rv__eval(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
              struct rv__seen *seen);
/* The same, saying nothing. */
bool rv__eval_quiet(struct rv__check *c, const struct rv__sub *sub, const struct rv__value *v,
                    struct rv__seen *seen);

/* Parts of it; each for a value of its type that has such rules. */
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

/* After something is wrong: is there no point in looking further? */
static inline bool rv__enough(const struct rv__check *c)
{
    return c->mode != RV__CHECK_LOUD || c->rc < 0;
}

/* Something is wrong with `v`. Returns false, so that a check may end in it. */
bool rv__check_say(struct rv__check *c, const struct rv__value *v, const char *fmt, ...)
    RV_PRINTF(3, 4);
/* The member `key` of `v` is not there, but should be. */
bool rv__say_missing(struct rv__check *c, const struct rv__value *v, struct rv__str key,
                     const char *why);
/* It cannot be decided. Returns false. */
bool rv__stop(struct rv__check *c, int rc, const char *fmt, ...) RV_PRINTF(3, 4);
/* Count one step; false when there are none left. */
bool rv__step(struct rv__check *c);
/* Is the pattern in the text? False also when c->rc < 0. */
bool rv__matches(struct rv__check *c, const struct rv__pattern *pattern, struct rv__str text);

static inline bool rv__seen_has(const struct rv__seen *seen, uint32_t i)
{
    return seen->all || (seen->bits != NULL && (seen->bits[i / 64] >> (i % 64) & 1));
}
/* Note the i-th of `v`; `seen` may be NULL. Without memory c->rc < 0. */
void rv__seen_mark(struct rv__check *c, struct rv__seen *seen, const struct rv__value *v,
                   uint32_t i);
/* What `from` saw, `into` saw; empties `from`. `into` may be NULL. */
void rv__seen_merge(struct rv__seen *into, struct rv__seen *from, const struct rv__value *v);
void rv__seen_done(struct rv__seen *seen);

#endif
