/* violations.c: a list in an arena that remembers its failure, like a buffer. */
#include "base/violations.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"

void rv__violations_init(struct rv__violations *list, struct rv__arena *arena)
{
    *list = (struct rv__violations){ .arena = arena };
}

static bool grow(struct rv__violations *list)
{
    size_t cap = list->cap ? list->cap * 2 : 8;
    struct rv__violation *items = rv__arena_zalloc(list->arena, cap, sizeof *items);
    if (items == NULL)
        return false;
    if (list->count > 0)
        memcpy(items, list->items, list->count * sizeof *items);
    list->items = items;
    list->cap = cap;
    return true;
}

void rv__violations_add(struct rv__violations *list, struct rv__str path, const char *fmt, ...)
{
    if (list->rc != RV_OK)
        return;
    if (list->count == RV__VIOLATIONS_MAX) {
        list->dropped++;
        return;
    }

    char text[512]; /* longer messages are cut */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    struct rv__violation item;
    if ((list->count == list->cap && !grow(list)) ||
        rv__str_copy(list->arena, path, &item.path) < 0 ||
        rv__str_copy(list->arena, (struct rv__str){ text, len }, &item.message) < 0) {
        list->rc = RV_ENOMEM;
        return;
    }
    list->items[list->count++] = item;
}

int rv__violations_err(const struct rv__violations *list, rv_error *err)
{
    if (list->rc != RV_OK)
        return rv__nomem(err);
    if (list->count == 0)
        return RV_OK;

    const struct rv__violation *first = &list->items[0];
    const char *colon = first->path.len > 0 ? ": "
                                            : ""; /* the path of the whole document is empty */
    size_t more = list->count + list->dropped - 1;
    if (more == 0)
        return rv__fail(err, RV_EINVAL, "%.*s%s%.*s", RV__ARG(first->path), colon,
                        RV__ARG(first->message));
    return rv__fail(err, RV_EINVAL, "%.*s%s%.*s (and %zu more)", RV__ARG(first->path), colon,
                    RV__ARG(first->message), more);
}
