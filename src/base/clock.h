/* clock.h: time, as something that is handed in, and waiting for it.
 *
 * clock.c is the only file of the tree that asks the system for the time (random.c: for chance).
 * Whoever needs either gets it from outside, so that a test or the simulator can own it.
 *
 * Two hands: the wall clock says what is due and may jump either way; the monotonic one measures
 * and waits, and never goes back. Nothing relates the two. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rv__clock {
    int64_t (*wall_ms)(struct rv__clock *clock); /* since 1970-01-01 UTC */
    int64_t (*mono_ns)(struct rv__clock *clock); /* since a point that means nothing */
};

/* The system's clock. Shared, without state, never freed. Thread: any. */
struct rv__clock *rv__clock_real(void);

/* A clock that moves when told. Thread: one at a time. */
struct rv__virtual_clock {
    struct rv__clock clock; /* first: the functions get from here to the rest */
    int64_t wall_ms;
    int64_t mono_ns;
};

void rv__virtual_clock_init(struct rv__virtual_clock *virtual_clock, int64_t wall_ms);

/* Time passes: both hands move. `ms` is not negative. Both saturate at INT64_MAX. */
void rv__virtual_clock_advance(struct rv__virtual_clock *virtual_clock, int64_t ms);

/* The wall clock alone moves, also backwards: NTP, a suspend, an admin. */
void rv__virtual_clock_jump(struct rv__virtual_clock *virtual_clock, int64_t ms);

static inline int64_t rv__wall_ms(struct rv__clock *clock)
{
    return clock->wall_ms(clock);
}

static inline int64_t rv__mono_ns(struct rv__clock *clock)
{
    return clock->mono_ns(clock);
}

static inline int64_t rv__mono_ms(struct rv__clock *clock)
{
    return rv__mono_ns(clock) / 1000000;
}

/* Make a condition for rv__cond_wait_until(); give it to pthread_cond_destroy().
 * Errors: RV_ENOMEM, RV_ESYS. */
int rv__cond_init(pthread_cond_t *cond);

/* The real monotonic time `timeout_ms` from now; RV__NEVER for a negative one and for one too long
 * to count. */
#define RV__NEVER INT64_MAX
int64_t rv__deadline_ns(int64_t timeout_ms);

/* Wait, with `mutex` held, for a signal or until the deadline. False: the time has passed. True is
 * no promise that anything happened: ask again. `cond` comes from rv__cond_init(). Thread: any. */
bool rv__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns);

/* RFC 3339 in UTC with milliseconds and a NUL: "2026-11-15T19:15:08.123Z". A time outside of the
 * years 0 to 9999, which the format cannot say, becomes the nearest one inside. */
enum { RV__TIME_TEXT_SIZE = 25 };
void rv__time_text(int64_t wall_ms, char ret[RV__TIME_TEXT_SIZE]);

/* Wait for so long, whatever happens: for a device that may heal. */
void rv__clock_sleep_ms(int64_t ms);

#endif
