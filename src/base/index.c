/* index.c: a hash table with chains, doubled when it has as many entries as buckets. */
#include "base/index.h"

#include "base/alloc.h"
#include "base/error.h"

enum { FIRST_BUCKETS = 64 }; /* a power of two, as all sizes are */

static struct rv__index_entry **bucket(const struct rv__index *index, uint64_t hash)
{
    return &index->buckets[(hash ^ hash >> 32) & (index->size - 1)];
}

static void put(struct rv__index *index, struct rv__index_entry *entry)
{
    struct rv__index_entry **at = bucket(index, entry->hash);
    entry->next = *at;
    *at = entry;
}

static int grow(struct rv__index *index)
{
    struct rv__index old = *index;
    size_t size = old.size > 0 ? 2 * old.size : FIRST_BUCKETS;
    struct rv__index_entry **buckets = rv__zalloc(size, sizeof(struct rv__index_entry *));
    if (buckets == NULL)
        return RV_ENOMEM;
    index->buckets = buckets;
    index->size = size;
    for (size_t i = 0; i < old.size; i++)
        for (struct rv__index_entry *e = old.buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            put(index, e);
        }
    rv__free(old.buckets);
    return RV_OK;
}

void rv__index_done(struct rv__index *index)
{
    rv__free(index->buckets);
    *index = (struct rv__index){ .size = 0 };
}

int rv__index_add(struct rv__index *index, struct rv__index_entry *entry, uint64_t hash)
{
    if (index->count >= index->size && grow(index) < 0)
        return RV_ENOMEM;
    entry->hash = hash;
    put(index, entry);
    index->count++;
    return RV_OK;
}

void rv__index_remove(struct rv__index *index, struct rv__index_entry *entry)
{
    struct rv__index_entry **at = bucket(index, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    index->count--;
}

static struct rv__index_entry *next_with_hash(struct rv__index_entry *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash)
        entry = entry->next;
    return entry;
}

struct rv__index_entry *rv__index_first(const struct rv__index *index, uint64_t hash)
{
    return index->size > 0 ? next_with_hash(*bucket(index, hash), hash) : NULL;
}

struct rv__index_entry *rv__index_next(const struct rv__index_entry *entry)
{
    return next_with_hash(entry->next, entry->hash);
}
