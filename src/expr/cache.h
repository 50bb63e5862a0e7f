/* cache.h: the parsed values of texts, kept under the text's identity. For the thread that evaluates.
 *
 * Bounded in bytes, the one used longest ago goes first; the newest stays even if it alone is above
 * the bound, for else a large value would be parsed again by every expression that uses it. */
#ifndef RV_EXPR_CACHE_H
#define RV_EXPR_CACHE_H

#include <jq.h>

#include "base/arena.h"
#include "expr/expr.h"

enum { RV__KEPT_SLOTS = 4096, RV__FOUND_SLOTS = 1024 };

/* A text of the scope that is worth keeping. */
struct rv__kept {
    uintptr_t key[2]; /* blob and json.at, or the scope's key; `keyed` tells them apart */
    bool keyed;
    struct rv__blob *holder; /* whose identity it is; NULL: keyed */
    struct rv__blob
        *blob; /* holds `json`, if that is not in `holder`; NULL: only the value is kept */
    struct rv__str json; /* "none": not kept */
    jv value;            /* invalid: not parsed yet */
    size_t bytes;
    uint64_t serial;                /* unlike any before it */
    struct rv__kept *next, **link;  /* of its slot */
    struct rv__kept *newer, *older; /* by use */
};

struct rv__cache {
    struct rv__kept *slots[RV__KEPT_SLOTS];
    struct rv__kept *newest, *oldest;
    size_t bytes, max_bytes;
    uint64_t serials;
    struct rv__arena scratch;
    /* Where plain paths led, for large texts: (text, path) -> a slice. Overwritten freely. */
    struct {
        uint64_t kept, expr;
        struct rv__str json;
        bool null;
    } found[RV__FOUND_SLOTS];
};

void rv__cache_init(struct rv__cache *cache, size_t max_bytes);
void rv__cache_done(struct rv__cache *cache);

/* What the scope found, as a value; it is the caller's to free. */
int rv__cache_value(struct rv__cache *cache, struct rv__scope *scope,
                    const struct rv__scope_text *text, jv *ret, rv_error *err);

/* The same as text. *ret is valid until the next call; *kept is NULL if it is not kept, else who
 * remembers where paths lead in it. *own, if not NULL afterwards, is the caller's to unref. */
int rv__cache_text(struct rv__cache *cache, struct rv__scope *scope,
                   const struct rv__scope_text *text, struct rv__str *ret, struct rv__kept **kept,
                   struct rv__blob **own, rv_error *err);

#endif
