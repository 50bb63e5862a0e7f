/* timers.c: a 4-ary heap.
 *
 * Invariants
 * 1. array[0..count) holds the armed timers, each once, and array[i].timer->at == i + 1.
 * 2. array[i].due == array[i].timer->due.
 * 3. No slot comes before its parent, array[(i - 1) / 4].
 *
 * The due time is kept beside the pointer, so that a comparison reads the timer itself only on a tie.
 * The four children of a slot are 64 bytes in a row: half the levels of a binary heap, with one or
 * two cache lines each. */
#include "base/timers.h"

#include <assert.h>
#include <stdbool.h>

#include <rival/base.h>

#include "base/alloc.h"

enum { ARITY = 4, FIRST_CAPACITY = 64 };

struct rv__timers_slot {
    int64_t due;
    struct rv__timer *timer;
};

void rv__timers_init(struct rv__timers *timers)
{
    *timers = (struct rv__timers){ 0 };
}

void rv__timers_done(struct rv__timers *timers)
{
    rv__free(timers->array);
    rv__timers_init(timers);
}

static bool before(struct rv__timers_slot a, struct rv__timers_slot b)
{
    return a.due != b.due ? a.due < b.due : a.timer->order < b.timer->order;
}

static void put(struct rv__timers *timers, size_t i, struct rv__timers_slot slot)
{
    timers->array[i] = slot;
    slot.timer->at = i + 1;
}

/* Put `slot` into the hole at `i`, or move it up or down from there until invariant 3 holds. */
static void settle(struct rv__timers *timers, size_t i, struct rv__timers_slot slot)
{
    struct rv__timers_slot *array = timers->array;

    while (i > 0 && before(slot, array[(i - 1) / ARITY])) {
        put(timers, i, array[(i - 1) / ARITY]);
        i = (i - 1) / ARITY;
    }
    for (;;) {
        size_t child = i * ARITY + 1;
        size_t end = child + ARITY < timers->count ? child + ARITY : timers->count;
        size_t least = child;
        for (size_t c = child + 1; c < end; c++)
            if (before(array[c], array[least]))
                least = c;
        if (child >= end || !before(array[least], slot))
            break;
        put(timers, i, array[least]);
        i = least;
    }
    put(timers, i, slot);
}

static int grow(struct rv__timers *timers)
{
    size_t cap = timers->cap ? timers->cap * 2 : FIRST_CAPACITY;
    size_t bytes;
    if (__builtin_mul_overflow(cap, sizeof *timers->array, &bytes))
        return RV_ENOMEM;

    struct rv__timers_slot *array = rv__realloc(timers->array, bytes);
    if (array == NULL)
        return RV_ENOMEM;
    timers->array = array;
    timers->cap = cap;
    return RV_OK;
}

int rv__timers_arm(struct rv__timers *timers, struct rv__timer *timer, int64_t due)
{
    if (timer->at == 0) {
        if (timers->count == timers->cap) {
            int rc = grow(timers);
            if (rc < 0)
                return rc;
        }
        timer->at = ++timers->count;
    }
    timer->due = due;
    timer->order = ++timers->order;
    settle(timers, timer->at - 1, (struct rv__timers_slot){ due, timer });
    return RV_OK;
}

void rv__timers_disarm(struct rv__timers *timers, struct rv__timer *timer)
{
    if (timer->at == 0)
        return;

    size_t hole = timer->at - 1;
    assert(hole < timers->count &&
           timers->array[hole].timer == timer); /* else it is in another heap */
    timer->at = 0;
    struct rv__timers_slot last = timers->array[--timers->count];
    if (last.timer != timer)
        settle(timers, hole, last);
}

struct rv__timer *rv__timers_first(const struct rv__timers *timers)
{
    return timers->count ? timers->array[0].timer : NULL;
}

struct rv__timer *rv__timers_pop_due(struct rv__timers *timers, int64_t now)
{
    if (timers->count == 0 || timers->array[0].due > now)
        return NULL;
    struct rv__timer *timer = timers->array[0].timer;
    rv__timers_disarm(timers, timer);
    return timer;
}
