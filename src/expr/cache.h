/* cache.h: texts of the scope, cached by identity, and the targets of plain paths in large texts. Thread: the
 * evaluating one.
 *
 * Limited in bytes; the least recently used text is dropped first. The newest stays even if it alone exceeds the
 * limit: otherwise a large text would be built again by every expression that uses it. */
#ifndef RV_EXPR_CACHE_H
#define RV_EXPR_CACHE_H

#include "expr/expr.h"

enum { RV__KEPT_SLOTS = 4096, RV__FOUND_SLOTS = 1024 };

/* A cached text of the scope. */
struct rv__kept {
    uintptr_t key[2]; /* blob and json.at, or the scope's key, if `keyed` */
    bool keyed;
    struct rv__blob *holder; /* the blob that is its identity; NULL: keyed */
    struct rv__blob *blob;   /* holds `json`, if that is not in `holder` */
    struct rv__str json;     /* "none": not built yet, or too long to cache */
    size_t bytes;
    uint64_t serial;                /* unique */
    struct rv__kept *next, **link;  /* in its slot */
    struct rv__kept *newer, *older; /* by last use */
};

struct rv__expr_texts {
    struct rv__kept *slots[RV__KEPT_SLOTS];
    struct rv__kept *newest, *oldest;
    size_t bytes, max_bytes;
    uint64_t serials;
    /* Targets of plain paths in large texts: (text, path) -> a slice. Entries may be overwritten at any time. */
    struct {
        uint64_t kept, expr;
        struct rv__str json;
        bool null;
    } found[RV__FOUND_SLOTS];
};

/* Does this text have an identity, and is it worth caching? */
bool rv__text_lasts(const struct rv__scope_text *text);

/* The text of a piece of the scope. *ret is valid until the next call. *kept: its cache entry; NULL: not cached.
 * *own, if not NULL afterwards, must be unref'd by the caller. */
int rv__text_of(struct rv__expr_texts *texts, struct rv__scope *scope,
                const struct rv__scope_text *text, struct rv__str *ret, struct rv__kept **kept,
                struct rv__blob **own, rv_error *err);

#endif
