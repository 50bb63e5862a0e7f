/* index.h: a hash table by name. Intrusive: an entry is part of the indexed struct.
 *
 * The caller compares the names: different ones may have the same hash.
 *
 *     for (e = rv__index_first(&index, hash); e != NULL; e = rv__index_next(e))
 *         if (rv__str_eq(RV__CONTAINER(e, struct thing, entry)->name, name)) …
 *
 * An index and its entries belong to one thread, or to a lock. */
#ifndef RV_BASE_INDEX_H
#define RV_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* May not move in memory, nor be freed, while the index is used. */
struct rv__index_entry {
    struct rv__index_entry *next; /* in its bucket */
    uint64_t hash;
};

/* All zero: empty. */
struct rv__index {
    struct rv__index_entry **buckets;
    size_t size, count;
};

void rv__index_done(struct rv__index *index); /* does not free the entries; all zero afterwards */

/* Add an entry by the hash of its name, rv__str_hash(). RV_ENOMEM: not added. */
int rv__index_add(struct rv__index *index, struct rv__index_entry *entry, uint64_t hash);

void rv__index_remove(struct rv__index *index,
                      struct rv__index_entry *entry); /* it must be in it */

/* The entries with this hash. NULL: none, or no more. */
struct rv__index_entry *rv__index_first(const struct rv__index *index, uint64_t hash);
struct rv__index_entry *rv__index_next(const struct rv__index_entry *entry);

#endif
