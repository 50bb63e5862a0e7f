/* timers.h: a heap of timers. Intrusive: a timer is part of its owner's struct.
 *
 * `due` has the unit and clock of the owner; one for each heap. A heap and its timers belong to one thread. Arming,
 * disarming and popping take O(log n). */
#ifndef RV_BASE_TIMERS_H
#define RV_BASE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

/* All zero: not armed. May not move in memory, nor be freed, while armed. */
struct rv__timer {
    int64_t due;
    size_t at;      /* position in the heap, from 1; 0 = not armed */
    uint64_t order; /* the order of arming, for equal times */
};

struct rv__timers_slot;

struct rv__timers {
    struct rv__timers_slot *array;
    size_t count;
    size_t cap;
    uint64_t order; /* of the timer armed last */
};

void rv__timers_init(struct rv__timers *timers);
void rv__timers_done(struct rv__timers *timers); /* forgets armed timers; can be used again */

/* Arm the timer for `due`; an armed timer gets the new time, after others with the same time. Errors: RV_ENOMEM,
 * only for a timer that was not armed; it stays so. */
int rv__timers_arm(struct rv__timers *timers, struct rv__timer *timer, int64_t due);

void rv__timers_disarm(struct rv__timers *timers, struct rv__timer *timer); /* armed or not */

/* The next timer: the earliest, and of equal ones the first armed. NULL: none. */
struct rv__timer *rv__timers_first(const struct rv__timers *timers);

/* Disarm and return the first timer if it is due at or before `now`, else NULL. */
struct rv__timer *rv__timers_pop_due(struct rv__timers *timers, int64_t now);

#endif
