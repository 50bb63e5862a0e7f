/* timers.h: which of many timers is due first. Intrusive: a timer sits in what it is for.
 *
 * `due` is in whatever unit and on whatever clock the owner compares it with; a heap uses one.
 * A heap and its timers belong to one thread. Arming, disarming and popping take O(log n). */
#ifndef RV_BASE_TIMERS_H
#define RV_BASE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

/* All zero: not armed. May not move in memory, nor be freed, while armed. */
struct rv__timer {
    int64_t due;
    size_t at;      /* position in the heap, from 1; 0 = not armed */
    uint64_t order; /* when it was armed: breaks ties */
};

struct rv__timers_slot;

struct rv__timers {
    struct rv__timers_slot *array;
    size_t count;
    size_t cap;
    uint64_t order; /* given to the timer armed last */
};

void rv__timers_init(struct rv__timers *timers);
void rv__timers_done(struct rv__timers *timers); /* forgets timers still armed; as after init */

/* Arm the timer for `due`; one that is armed gets the new time and a place behind others of it.
 * Errors: RV_ENOMEM, only for a timer that was not armed, and it stays so. */
int rv__timers_arm(struct rv__timers *timers, struct rv__timer *timer, int64_t due);

void rv__timers_disarm(struct rv__timers *timers, struct rv__timer *timer); /* armed or not */

/* The timer to fire next: the earliest due, of several the one armed first. NULL: none. */
struct rv__timer *rv__timers_first(const struct rv__timers *timers);

/* Disarm and give back the first timer if it is due at or before `now`, else NULL. */
struct rv__timer *rv__timers_pop_due(struct rv__timers *timers, int64_t now);

#endif
