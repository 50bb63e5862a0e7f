/* clock.c: the real clock, a virtual one, waiting on a condition, a time as text.
 *
 * Waiting uses CLOCK_MONOTONIC: on pthread's default, the wall clock, an admin who sets the time
 * back an hour adds an hour to every timeout. */
#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include <rival/base.h>

enum { MS_PER_DAY = 86400000, DAYS_PER_ERA = 146097 /* 400 years: the calendar repeats */ };

static const int64_t NS_PER_S = 1000000000;

/* Both clocks exist on every system we run on, so reading them cannot fail. */
static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    assert(rc == 0);
    (void)rc;
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t real_wall_ms(struct rv__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_REALTIME) / 1000000;
}

static int64_t real_mono_ns(struct rv__clock *clock)
{
    (void)clock;
    return read_ns(CLOCK_MONOTONIC);
}

struct rv__clock *rv__clock_real(void)
{
    static struct rv__clock real = { real_wall_ms, real_mono_ns }; /* nobody writes it */
    return &real;
}

static int64_t virtual_wall_ms(struct rv__clock *clock)
{
    return ((struct rv__virtual_clock *)clock)->wall_ms;
}

static int64_t virtual_mono_ns(struct rv__clock *clock)
{
    return ((struct rv__virtual_clock *)clock)->mono_ns;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t ms_to_ns_saturating(int64_t ms)
{
    int64_t ns;
    if (__builtin_mul_overflow(ms, INT64_C(1000000), &ns))
        return ms < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

void rv__virtual_clock_init(struct rv__virtual_clock *virtual_clock, int64_t wall_ms)
{
    *virtual_clock = (struct rv__virtual_clock){
        .clock = { virtual_wall_ms, virtual_mono_ns },
        .wall_ms = wall_ms,
    };
}

void rv__virtual_clock_advance(struct rv__virtual_clock *virtual_clock, int64_t ms)
{
    assert(ms >= 0);
    virtual_clock->wall_ms = add_saturating(virtual_clock->wall_ms, ms);
    virtual_clock->mono_ns = add_saturating(virtual_clock->mono_ns, ms_to_ns_saturating(ms));
}

void rv__virtual_clock_jump(struct rv__virtual_clock *virtual_clock, int64_t ms)
{
    virtual_clock->wall_ms = add_saturating(virtual_clock->wall_ms, ms);
}

int rv__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    if (rc != 0)
        return rc == ENOMEM ? RV_ENOMEM : RV_ESYS;

    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return rc == 0 ? RV_OK : rc == ENOMEM ? RV_ENOMEM : RV_ESYS;
}

int64_t rv__deadline_ns(int64_t timeout_ms)
{
    if (timeout_ms < 0)
        return RV__NEVER;
    return add_saturating(read_ns(CLOCK_MONOTONIC), ms_to_ns_saturating(timeout_ms));
}

bool rv__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns)
{
    int rc;
    if (deadline_ns == RV__NEVER) {
        rc = pthread_cond_wait(cond, mutex);
    } else {
        int64_t ns = deadline_ns < 0 ? 0 : deadline_ns; /* a timespec cannot be negative */
        struct timespec until = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
        rc = pthread_cond_timedwait(cond, mutex, &until);
    }
    assert(rc == 0 || rc == ETIMEDOUT); /* else: not our condition, or not our mutex */
    return rc != ETIMEDOUT;
}

static char *put_digits(char *at, int64_t n, int width, char end)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + n % 10);
        n /= 10;
    }
    at[width] = end;
    return at + width + 1;
}

/* Not by gmtime_r(), which takes libc's time zone lock, and every log line has a time. Years are counted
 * from March, so that the leap day is the last of its year (H. Hinnant's method). */
void rv__time_text(int64_t wall_ms, char ret[RV__TIME_TEXT_SIZE])
{
    static const int64_t first_ms = INT64_C(-62167219200000); /* 0000-01-01T00:00:00.000Z */
    static const int64_t last_ms = INT64_C(253402300799999);  /* 9999-12-31T23:59:59.999Z */
    enum { DAYS_0000_03_01_TO_1970 = 719468 };

    int64_t since_ms = (wall_ms < first_ms ? first_ms : wall_ms > last_ms ? last_ms : wall_ms);
    since_ms += DAYS_0000_03_01_TO_1970 * (int64_t)MS_PER_DAY;
    since_ms += DAYS_PER_ERA *
                (int64_t)MS_PER_DAY; /* one more era, so that January of year 0 is not negative */
    int64_t ms = since_ms % MS_PER_DAY;
    int64_t days = since_ms / MS_PER_DAY;

    int64_t era = days / DAYS_PER_ERA;
    int64_t day_of_era = days % DAYS_PER_ERA;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
                           day_of_era / 146096) /
                          365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    int64_t year = (era - 1) * 400 + year_of_era + (month <= 2);

    char *at = put_digits(ret, year, 4, '-');
    at = put_digits(at, month, 2, '-');
    at = put_digits(at, day, 2, 'T');
    at = put_digits(at, ms / 3600000, 2, ':');
    at = put_digits(at, ms / 60000 % 60, 2, ':');
    at = put_digits(at, ms / 1000 % 60, 2, '.');
    at = put_digits(at, ms % 1000, 3, 'Z');
    *at = '\0';
}

void rv__clock_sleep_ms(int64_t ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}
