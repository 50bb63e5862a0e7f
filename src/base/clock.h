/* clock.h: time, passed in as a parameter, and waiting.
 *
 * clock.c is the only file that asks the system for the time (random.c: for random numbers). All other code gets
 * both from its caller, so that a test or the simulator can control them.
 *
 * There are two times. The wall clock decides what is due, and may jump in either direction; the monotonic clock is
 * for measuring and waiting, and never goes back. They are unrelated. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct rv__clock {
    int64_t (*wall_ms)(struct rv__clock *clock); /* since 1970-01-01 UTC */
    int64_t (*mono_ns)(struct rv__clock *clock); /* since an arbitrary point */
};

/* The system's clock. Shared, without state, never freed. Thread: any. */
struct rv__clock *rv__clock_real(void);

/* A clock that moves only when it is told to. Thread: one at a time. */
struct rv__virtual_clock {
    struct rv__clock clock; /* first, so that the functions find the rest */
    int64_t wall_ms;
    int64_t mono_ns;
};

void rv__virtual_clock_init(struct rv__virtual_clock *virtual_clock, int64_t wall_ms);

/* Both times move forward. `ms` is not negative. Both saturate at INT64_MAX. */
void rv__virtual_clock_advance(struct rv__virtual_clock *virtual_clock, int64_t ms);

/* Only the wall clock moves, also backwards: NTP, a suspend, an administrator. */
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

/* Make a condition for rv__cond_wait_until(); destroy it with pthread_cond_destroy().
 * Errors: RV_ENOMEM, RV_ESYS. */
int rv__cond_init(pthread_cond_t *cond);

/* The monotonic time `timeout_ms` from now; RV__NEVER if that is negative or too long to represent. */
#define RV__NEVER INT64_MAX
int64_t rv__deadline_ns(int64_t timeout_ms);

/* Wait, with `mutex` held, for a signal or until the deadline. False: the deadline has passed. True may be
 * spurious: check the condition again. `cond` comes from rv__cond_init(). Thread: any. */
bool rv__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns);

/* RFC 3339 in UTC with milliseconds and a NUL: "2026-11-15T19:15:08.123Z". Times outside the years 0 to 9999 are
 * replaced by the nearest one inside. */
enum { RV__TIME_TEXT_SIZE = 25 };
void rv__time_text(int64_t wall_ms, char ret[RV__TIME_TEXT_SIZE]);

/* Sleep; cannot be interrupted. For retries of a device that may recover. */
void rv__clock_sleep_ms(int64_t ms);

#endif
