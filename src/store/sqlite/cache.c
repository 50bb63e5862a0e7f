/* cache.c: recently used runs and names of the writer; see struct rv__sqlite_known and _slot. */
#include "store/sqlite/sqlite.h"

#include <assert.h>

#include "base/alloc.h"

int rv__sqlite_runs_init(struct rv__sqlite_runs *runs, size_t count)
{
    assert((count & (count - 1)) == 0);
    runs->of = rv__zalloc(count, sizeof *runs->of);
    if (runs->of == NULL)
        return RV_ENOMEM;
    runs->count = count;
    return RV_OK;
}

void rv__sqlite_runs_done(struct rv__sqlite_runs *runs)
{
    rv__free(runs->of);
    *runs = (struct rv__sqlite_runs){ NULL, 0 };
}

void rv__sqlite_runs_clear(struct rv__sqlite_runs *runs)
{
    memset(runs->of, 0, runs->count * sizeof *runs->of);
}

static struct rv__sqlite_known *run_place(const struct rv__sqlite_runs *runs, int64_t key)
{
    return &runs->of[(size_t)key & (runs->count - 1)];
}

const struct rv__sqlite_known *rv__sqlite_runs_find(const struct rv__sqlite_runs *runs, int64_t key)
{
    const struct rv__sqlite_known *known = run_place(runs, key);
    return known->key == key && key != 0 ? known : NULL;
}

void rv__sqlite_runs_put(struct rv__sqlite_runs *runs, const struct rv__sqlite_known *known)
{
    *run_place(runs, known->key) = *known;
}

void rv__sqlite_runs_drop(struct rv__sqlite_runs *runs, int64_t key)
{
    struct rv__sqlite_known *known = run_place(runs, key);
    if (known->key == key)
        *known = (struct rv__sqlite_known){ 0 };
}

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
