/* test_clock.c: for src/base/clock.c. */
#include "unit/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"

/* Stands before libc's, so that a test can have it fail. */
static int condattr_error;
int pthread_condattr_init(pthread_condattr_t *attr)
{
    int (*real)(pthread_condattr_t *);
    if (condattr_error != 0)
        return condattr_error;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_condattr_init");
    return real(attr);
}

static void the_real_clock_tells_the_time_and_never_goes_back(void **state)
{
    (void)state;
    struct rv__clock *clock = rv__clock_real();
    assert_ptr_equal(clock, rv__clock_real());
    int64_t distance_ms = rv__wall_ms(clock) - (int64_t)time(NULL) * 1000;
    assert_true(distance_ms > -2000 && distance_ms < 60000);

    int64_t last = rv__mono_ns(clock);
    for (int i = 0; i < 1000; i++) {
        int64_t now = rv__mono_ns(clock);
        assert_true(now >= last);
        last = now;
    }
    int64_t ms = rv__mono_ms(clock);
    assert_true(ms >= last / 1000000 && ms - last / 1000000 < 60000);
}

static void a_virtual_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct rv__virtual_clock v;
    rv__virtual_clock_init(&v, 5000);
    assert_int_equal(rv__wall_ms(&v.clock), 5000);
    assert_int_equal(rv__mono_ns(&v.clock), 0);

    rv__virtual_clock_advance(&v, 70);
    assert_int_equal(rv__wall_ms(&v.clock), 5070);
    assert_int_equal(rv__mono_ns(&v.clock), 70000000);
    assert_int_equal(rv__mono_ms(&v.clock), 70);
}

static void a_jump_moves_the_wall_clock_alone(void **state)
{
    (void)state;
    struct rv__virtual_clock v;
    rv__virtual_clock_init(&v, 5000);
    rv__virtual_clock_jump(&v, -6000);
    assert_int_equal(rv__wall_ms(&v.clock), -1000);
    rv__virtual_clock_jump(&v, 3000);
    assert_int_equal(rv__wall_ms(&v.clock), 2000);
    assert_int_equal(rv__mono_ns(&v.clock), 0);
}

static void a_virtual_clock_stops_at_the_end_of_time(void **state)
{
    (void)state;
    struct rv__virtual_clock v;
    rv__virtual_clock_init(&v, 1);
    rv__virtual_clock_advance(&v, INT64_MAX / 2); /* too much for the nanoseconds only */
    assert_true(v.wall_ms == INT64_MAX / 2 + 1);
    assert_true(v.mono_ns == INT64_MAX);
    rv__virtual_clock_advance(&v, INT64_MAX);
    assert_true(v.wall_ms == INT64_MAX && v.mono_ns == INT64_MAX);
    rv__virtual_clock_init(&v, -1);
    rv__virtual_clock_jump(&v, INT64_MIN);
    assert_true(v.wall_ms == INT64_MIN);
}

static void a_deadline_lies_in_the_future_or_never_comes(void **state)
{
    (void)state;
    int64_t before = rv__mono_ns(rv__clock_real());
    int64_t deadline = rv__deadline_ns(1000);
    int64_t after = rv__mono_ns(rv__clock_real());
    assert_true(deadline >= before + 1000000000 && deadline <= after + 1000000000);
    assert_true(rv__deadline_ns(-1) == RV__NEVER);
    assert_true(rv__deadline_ns(INT64_MIN) == RV__NEVER);
    assert_true(rv__deadline_ns(INT64_MAX) == RV__NEVER);
    assert_true(rv__deadline_ns(INT64_MAX / 1000000) == RV__NEVER); /* the sum overflows */
}

struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool here;
};

static int setup_meeting(void **state)
{
    static struct meeting meeting;
    meeting.here = false;
    *state = &meeting;
    return rv__cond_init(&meeting.cond) < 0 || pthread_mutex_init(&meeting.mutex, NULL) != 0;
}

static int teardown_meeting(void **state)
{
    struct meeting *meeting = *state;
    condattr_error = 0;
    pthread_cond_destroy(&meeting->cond);
    pthread_mutex_destroy(&meeting->mutex);
    return 0;
}

static void waiting_ends_at_the_deadline_and_not_before(void **state)
{
    struct meeting *meeting = *state;
    int64_t deadline = rv__deadline_ns(20);
    pthread_mutex_lock(&meeting->mutex);
    while (rv__cond_wait_until(&meeting->cond, &meeting->mutex, deadline))
        ;
    assert_true(rv__mono_ns(rv__clock_real()) >= deadline);
    assert_false(rv__cond_wait_until(&meeting->cond, &meeting->mutex, 0));
    assert_false(rv__cond_wait_until(&meeting->cond, &meeting->mutex, INT64_MIN));
    pthread_mutex_unlock(&meeting->mutex);
}

static void *arrive(void *arg)
{
    struct meeting *meeting = arg;
    pthread_mutex_lock(&meeting->mutex);
    meeting->here = true;
    pthread_mutex_unlock(&meeting->mutex);
    pthread_cond_signal(&meeting->cond);
    return NULL;
}

static void a_signal_ends_a_wait_with_or_without_a_deadline(void **state)
{
    struct meeting *meeting = *state;
    const int64_t deadlines[] = { RV__NEVER, rv__deadline_ns(60000) };
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        bool in_time = true;
        meeting->here = false;
        assert_int_equal(pthread_create(&thread, NULL, arrive, meeting), 0);
        pthread_mutex_lock(&meeting->mutex);
        while (!meeting->here && in_time)
            in_time = rv__cond_wait_until(&meeting->cond, &meeting->mutex, deadlines[i]);
        pthread_mutex_unlock(&meeting->mutex);
        pthread_join(thread, NULL);
        assert_true(in_time);
    }
}

static void a_condition_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    pthread_cond_t cond;
    condattr_error = ENOMEM;
    assert_int_equal(rv__cond_init(&cond), RV_ENOMEM);
    condattr_error = EAGAIN;
    assert_int_equal(rv__cond_init(&cond), RV_ESYS);
}

static void a_time_is_written_as_rfc_3339(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { INT64_C(1794770108123), "2026-11-15T19:15:08.123Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { INT64_C(951782400000), "2000-02-29T00:00:00.000Z" },
        { INT64_C(4107542400000), "2100-03-01T00:00:00.000Z" }, /* no leap day in 2100 */
        { INT64_C(4107542399999), "2100-02-28T23:59:59.999Z" },
        { INT64_C(253402300799999), "9999-12-31T23:59:59.999Z" },
        { INT64_C(253402300800000), "9999-12-31T23:59:59.999Z" },
        { INT64_MAX, "9999-12-31T23:59:59.999Z" },
        { INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z" },
        { INT64_C(-62167219200001), "0000-01-01T00:00:00.000Z" },
        { INT64_MIN, "0000-01-01T00:00:00.000Z" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[RV__TIME_TEXT_SIZE];
        rv__time_text(rows[i].ms, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void every_day_of_ten_thousand_years_is_as_libc_has_it(void **state)
{
    (void)state;
    for (int64_t day = -719528; day <= 2932896; day++) {
        time_t seconds = day * 86400 + 3723;
        struct tm tm;
        char text[RV__TIME_TEXT_SIZE], expected[80];
        gmtime_r(&seconds, &tm);
        snprintf(expected, sizeof expected, "%04d-%02d-%02dT01:02:03.007Z", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday);
        rv__time_text((int64_t)seconds * 1000 + 7, text);
        if (strcmp(text, expected) != 0)
            fail_msg("got %s, expected %s", text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_real_clock_tells_the_time_and_never_goes_back),
        cmocka_unit_test(a_virtual_clock_moves_only_when_told),
        cmocka_unit_test(a_jump_moves_the_wall_clock_alone),
        cmocka_unit_test(a_virtual_clock_stops_at_the_end_of_time),
        cmocka_unit_test(a_deadline_lies_in_the_future_or_never_comes),
        cmocka_unit_test_setup_teardown(waiting_ends_at_the_deadline_and_not_before, setup_meeting,
                                        teardown_meeting),
        cmocka_unit_test_setup_teardown(a_signal_ends_a_wait_with_or_without_a_deadline,
                                        setup_meeting, teardown_meeting),
        cmocka_unit_test_setup_teardown(a_condition_that_cannot_be_made_is_an_error, setup_meeting,
                                        teardown_meeting),
        cmocka_unit_test(a_time_is_written_as_rfc_3339),
        cmocka_unit_test(every_day_of_ten_thousand_years_is_as_libc_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
