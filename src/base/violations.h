/* violations.h: a list of everything that is wrong with something, each with its position. */
#ifndef RV_BASE_VIOLATIONS_H
#define RV_BASE_VIOLATIONS_H

#include "base/str.h"

struct rv__violation {
    struct rv__str path;    /* a node's path, or a JSON pointer */
    struct rv__str message; /* what is wrong and why, one sentence */
};

enum { RV__VIOLATIONS_MAX = 1000 }; /* more than a person reads; the rest is only counted */

/* Owns its texts. `rc`: memory ran out. */
struct rv__violations {
    struct rv__arena *arena;
    struct rv__violation *items;
    size_t count, cap;
    size_t dropped; /* found beyond RV__VIOLATIONS_MAX */
    int rc;
};

/* The texts are in `arena`, which must outlive the list. Needs no `done`. */
void rv__violations_init(struct rv__violations *list, struct rv__arena *arena);
void rv__violations_add(struct rv__violations *list, struct rv__str path, const char *fmt, ...)
    RV_PRINTF(3, 4);

/* RV_OK: the list is empty; RV_ENOMEM: memory ran out; else RV_EINVAL, and *err has the first violation and how
 * many more there are. */
int rv__violations_err(const struct rv__violations *list, rv_error *err);

#endif
