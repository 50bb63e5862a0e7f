/* room.c: limits the memory and disk used by answers and streams until clients have read them.
 *
 * A client that does not read makes us keep its answer. So space for it is reserved when it is made; if there is
 * none, the answer is a short 503. A long answer is in a file without a name, and costs memory only while a piece
 * of it is sent (ADR 0025). */
#include "server/server.h"

void rv__room_init(struct rv__room *room, size_t memory_bytes, size_t disk_bytes)
{
    atomic_init(&room->used[RV__ROOM_MEMORY], 0);
    atomic_init(&room->used[RV__ROOM_DISK], 0);
    room->most[RV__ROOM_MEMORY] = memory_bytes;
    room->most[RV__ROOM_DISK] = disk_bytes;
}

bool rv__room_take(struct rv__room *room, enum rv__room_kind kind, size_t bytes)
{
    size_t used = atomic_load(&room->used[kind]);
    do {
        if (bytes > room->most[kind] || used > room->most[kind] - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&room->used[kind], &used, used + bytes));
    return true;
}

void rv__room_give(struct rv__room *room, enum rv__room_kind kind, size_t bytes)
{
    atomic_fetch_sub(&room->used[kind], bytes);
}
