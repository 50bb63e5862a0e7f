/* test_limit.c: how much room a named limit has, beside a naive list of all that happened. For src/engine/limit.c. */
#include "base/clock.h"
#include "base/random.h"
#include "engine/limit.h"
#include "unit/test.h"

static void places_at_once_come_back(void **state)
{
    struct rv__limit l = { .name = "x", .at_once = 2 };
    (void)state;
    rv__limit_take(&l, 5);
    assert_int_equal(rv__limit_free_ms(&l, 5), 0);
    rv__limit_take(&l, 5);
    assert_true(rv__limit_free_ms(&l, 100000) == RV__NEVER);
    rv__limit_give(&l);
    assert_int_equal(rv__limit_free_ms(&l, 5), 0);
}

static void one_alone_may_need_more_than_the_whole_limit(void **state)
{
    struct rv__limit l = { .name = "x", .amount_at_once = 10, .amount_per_minute = 10 };
    (void)state;
    assert_int_equal(rv__limit_free_ms(&l, 0), 0);
    rv__limit_take(&l, 0);
    assert_true(rv__limit_free_ms(&l, 0) == RV__NEVER);
    rv__limit_used(&l, 500, 1000);
    rv__limit_give(&l);
    assert_int_equal(rv__limit_free_ms(&l, 1000), 62000); /* when that is over a minute ago */
    assert_int_equal(rv__limit_free_ms(&l, 62000), 0);
}

static void what_is_under_way_counts_as_the_average(void **state)
{
    struct rv__limit l = { .name = "x", .amount_at_once = 100 };
    (void)state;
    rv__limit_take(&l, 0);
    assert_true(rv__limit_free_ms(&l, 0) == RV__NEVER); /* it may take all of it */
    rv__limit_used(&l, 30, 0);
    assert_int_equal(l.average, 30);
    assert_int_equal(rv__limit_free_ms(&l, 0), 0);
    rv__limit_take(&l, 0);
    rv__limit_take(&l, 0);
    assert_true(rv__limit_free_ms(&l, 0) == RV__NEVER); /* four times 30 are too much */
}

/* In no minute more than the limit, and when it says a time, there is room then. */
static void no_minute_has_more_than_its_limit(void **state)
{
    enum { TAKEN = 2000, PER_MINUTE = 7 };
    static int64_t taken[TAKEN];
    struct rv__random random;
    (void)state;
    rv__random_init(&random, 17);
    struct rv__limit l = { .name = "x", .per_minute = PER_MINUTE };
    int64_t now_ms = 123456;
    for (size_t n = 0; n < TAKEN;) {
        int64_t free_ms = rv__limit_free_ms(&l, now_ms);
        assert_true(free_ms != RV__NEVER && free_ms - now_ms <= 61000);
        if (free_ms > now_ms) {
            size_t recent = 0;
            for (size_t i = 0; i < n; i++)
                recent += taken[i] > now_ms - 61000;
            assert_true(recent >= PER_MINUTE); /* it does not wait for nothing */
            now_ms = rv__random_below(&random, 2) == 0 ? free_ms : now_ms + 400;
            continue;
        }
        rv__limit_take(&l, now_ms);
        rv__limit_give(&l);
        taken[n++] = now_ms;
        if (n > PER_MINUTE)
            assert_true(now_ms - taken[n - 1 - PER_MINUTE] >= 60000);
        now_ms += (int64_t)rv__random_below(&random, 9000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_at_once_come_back),
        cmocka_unit_test(one_alone_may_need_more_than_the_whole_limit),
        cmocka_unit_test(what_is_under_way_counts_as_the_average),
        cmocka_unit_test(no_minute_has_more_than_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
