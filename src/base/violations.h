/* violations.h: everything that is wrong with something, told at once, each with its place. */
#ifndef RV_BASE_VIOLATIONS_H
#define RV_BASE_VIOLATIONS_H

#include "base/str.h"

struct rv__violation {
    struct rv__str path;    /* where: a node's path, a JSON pointer */
    struct rv__str message; /* what and why, one sentence */
};

enum { RV__VIOLATIONS_MAX = 1000 }; /* more than a person reads; the rest is only counted */

/* Owns its texts. `rc` remembers that memory ran out while it was filled. */
struct rv__violations {
    struct rv__arena *arena;
    struct rv__violation *items;
    size_t count, cap;
    size_t dropped; /* found beyond RV__VIOLATIONS_MAX */
    int rc;
};

/* The texts live in `arena`, which must outlive the list. Needs no `done`. */
void rv__violations_init(struct rv__violations *list, struct rv__arena *arena);
void rv__violations_add(struct rv__violations *list, struct rv__str path, const char *fmt, ...)
    RV_PRINTF(3, 4);

/* RV_OK if there are none; RV_ENOMEM if memory ran out; else RV_EINVAL, *err telling the first and
 * how many more there are. */
int rv__violations_err(const struct rv__violations *list, rv_error *err);

#endif
