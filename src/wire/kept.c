/* kept.c: what the other end of a connection keeps, as this end believes: values by slot, nodes of scopes by
 * number. Both ends forget all of it at once, so neither has to ask. */
#include "base/alloc.h"
#include "wire/wire.h"

enum { ENTRIES_FIRST = 64 };

static void release(struct rv__kept_slot *slot)
{
    if (slot->value.identity != NULL && slot->value.release != NULL)
        slot->value.release((void *)(uintptr_t)slot->value.identity);
}

void rv__kept_forget(struct rv__kept *kept)
{
    for (size_t i = 0; i < RV__KEPT_SLOTS; i++)
        release(&kept->slots[i]);
    rv__free(kept->entries);
    *kept = (struct rv__kept){ .bytes = 0 };
}

static uint64_t mix(uint64_t number)
{
    return number * UINT64_C(0x9E3779B97F4A7C15);
}

static unsigned slot_of(const void *identity)
{
    return (unsigned)(mix((uint64_t)(uintptr_t)identity) >> 40) % RV__KEPT_SLOTS;
}

bool rv__kept_has(const struct rv__kept *kept, const void *identity, unsigned *slot)
{
    *slot = slot_of(identity);
    return kept->slots[*slot].value.identity == identity;
}

unsigned rv__kept_add(struct rv__kept *kept, struct rv__shared value, size_t bytes, bool *forget)
{
    unsigned at = slot_of(value.identity);
    struct rv__kept_slot *slot = &kept->slots[at];
    *forget = kept->bytes - slot->bytes + bytes > RV__KEPT_BYTES;
    if (*forget)
        rv__kept_forget(kept);
    release(slot);
    kept->bytes += bytes - slot->bytes;
    *slot = (struct rv__kept_slot){ .value = value, .bytes = bytes };
    return at;
}

/* ------------------------------------------------------------------------------- entries --- */

/* Where it is, or the empty place where it would be. The table is never more than half full. */
static struct rv__kept_entry *find(const struct rv__kept *kept, uint64_t serial)
{
    size_t at = (size_t)(mix(serial) >> 20) & (kept->entries_size - 1);
    while (kept->entries[at].serial != 0 && kept->entries[at].serial != serial)
        at = (at + 1) & (kept->entries_size - 1);
    return &kept->entries[at];
}

uint32_t rv__kept_entry(const struct rv__kept *kept, uint64_t serial)
{
    return kept->entries_size > 0 ? find(kept, serial)->number : 0; /* 0 of an empty place */
}

bool rv__kept_room(struct rv__kept *kept, size_t count, size_t bytes, bool *no_memory)
{
    *no_memory = false;
    if (kept->count > 0 &&
        (kept->bytes + bytes > RV__KEPT_BYTES || kept->count + count > RV__KEPT_ENTRIES))
        return false;
    size_t size = kept->entries_size > 0 ? kept->entries_size : ENTRIES_FIRST;
    while (size < 2 * (kept->count + count))
        size *= 2;
    if (size == kept->entries_size)
        return true;
    struct rv__kept grown = *kept;
    grown.entries = rv__zalloc(size, sizeof *grown.entries);
    *no_memory = grown.entries == NULL;
    if (grown.entries == NULL)
        return false;
    grown.entries_size = size;
    for (size_t i = 0; i < kept->entries_size; i++)
        if (kept->entries[i].serial != 0)
            *find(&grown, kept->entries[i].serial) = kept->entries[i];
    rv__free(kept->entries);
    kept->entries = grown.entries;
    kept->entries_size = size;
    return true;
}

uint32_t rv__kept_add_entry(struct rv__kept *kept, uint64_t serial, size_t bytes)
{
    struct rv__kept_entry *entry = find(kept, serial);
    *entry = (struct rv__kept_entry){ .serial = serial, .number = ++kept->count };
    kept->bytes += bytes;
    return entry->number;
}
