/* cache.c: names and runs that the writer has met lately; see struct rv__sqlite_slot. */
#include "store/sqlite/sqlite.h"

#include <assert.h>

#include "base/alloc.h"

int rv__sqlite_cache_init(struct rv__sqlite_cache *cache, size_t count)
{
    assert((count & (count - 1)) == 0);
    cache->slots = rv__zalloc(count, sizeof *cache->slots);
    if (cache->slots == NULL)
        return RV_ENOMEM;
    cache->count = count;
    return RV_OK;
}

void rv__sqlite_cache_done(struct rv__sqlite_cache *cache)
{
    rv__free(cache->slots);
    *cache = (struct rv__sqlite_cache){ NULL, 0 };
}

void rv__sqlite_cache_clear(struct rv__sqlite_cache *cache)
{
    memset(cache->slots, 0, cache->count * sizeof *cache->slots);
}

static struct rv__sqlite_slot *slot_of(struct rv__sqlite_cache *cache, struct rv__str text)
{
    return &cache->slots[rv__str_hash(RV__HASH_START, text) & (cache->count - 1)];
}

struct rv__sqlite_slot *rv__sqlite_cache_find(struct rv__sqlite_cache *cache, struct rv__str text)
{
    struct rv__sqlite_slot *slot = slot_of(cache, text);
    bool same = slot->len > 0 && slot->len == text.len &&
                memcmp(slot->text, text.at, text.len) == 0;
    return same ? slot : NULL;
}

struct rv__sqlite_slot *rv__sqlite_cache_put(struct rv__sqlite_cache *cache, struct rv__str text)
{
    if (text.len == 0 || text.len > sizeof((struct rv__sqlite_slot *)0)->text)
        return NULL;
    struct rv__sqlite_slot *slot = slot_of(cache, text);
    *slot = (struct rv__sqlite_slot){ .len = (uint16_t)text.len };
    memcpy(slot->text, text.at, text.len);
    return slot;
}

void rv__sqlite_cache_drop(struct rv__sqlite_cache *cache, struct rv__str text)
{
    struct rv__sqlite_slot *slot = rv__sqlite_cache_find(cache, text);
    if (slot != NULL)
        slot->len = 0;
}
