/* json_overlay.c: one object over another, member by member. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"

struct keys {
    struct rv__arena arena;
    struct rv__str *slots;
    size_t size;
};

static struct rv__str *find_key(const struct keys *keys, struct rv__str key)
{
    size_t at = (size_t)rv__str_hash(RV__HASH_START, key) & (keys->size - 1);
    while (!rv__str_none(keys->slots[at]) && !rv__str_eq(keys->slots[at], key))
        at = (at + 1) & (keys->size - 1);
    return &keys->slots[at];
}

static int keys_init(struct keys *keys, struct rv__str object)
{
    struct rv__json_iter it;
    struct rv__str raw, key;
    size_t count = rv__json_count(object);
    keys->size = 8;
    while (keys->size < 2 * count)
        keys->size *= 2;
    rv__arena_init(&keys->arena, SIZE_MAX); /* the object bounds it */
    keys->slots = rv__zalloc(keys->size, sizeof *keys->slots);
    if (keys->slots == NULL)
        return RV_ENOMEM;
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &raw, NULL)) {
        if (rv__json_string(raw, &keys->arena, &key) < 0)
            return RV_ENOMEM;
        *find_key(keys, key) = key;
    }
    return RV_OK;
}

static void keys_done(struct keys *keys)
{
    rv__free(keys->slots);
    rv__arena_done(&keys->arena);
}

static void put_member(struct rv__buf *out, struct rv__str key, struct rv__str value, bool *first)
{
    if (!*first)
        rv__buf_char(out, ',');
    *first = false;
    rv__buf_str(out, key);
    rv__buf_char(out, ':');
    rv__buf_str(out, value);
}

int rv__json_overlay(struct rv__str under, struct rv__str over, struct rv__buf *out, rv_error *err)
{
    struct keys keys;
    struct rv__json_iter it;
    struct rv__str raw, key, value;
    bool first = true;
    int rc = keys_init(&keys, over);
    rv__buf_char(out, '{');
    if (rc == RV_OK)
        rv__json_iter_init(&it, under);
    while (rc == RV_OK && rv__json_next(&it, &raw, &value)) {
        if (rv__json_string(raw, &keys.arena, &key) < 0)
            rc = RV_ENOMEM;
        else if (rv__str_none(*find_key(&keys, key)))
            put_member(out, raw, value, &first);
    }
    if (rc == RV_OK)
        rv__json_iter_init(&it, over);
    while (rc == RV_OK && rv__json_next(&it, &raw, &value))
        put_member(out, raw, value, &first);
    rv__buf_char(out, '}');
    keys_done(&keys);
    return rc < 0 ? rv__nomem(err) : rv__buf_err(out, err);
}
