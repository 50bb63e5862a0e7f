/* test_timers.c: for src/base/timers.c. */
#include "unit/test.h"

#include <time.h>

#include "base/random.h"
#include "base/timers.h"

static void the_earliest_fires_first_and_not_too_early(void **state)
{
    (void)state;
    struct rv__timers timers;
    struct rv__timer a = { 0 }, b = { 0 }, c = { 0 };
    rv__timers_init(&timers);
    assert_null(rv__timers_first(&timers));
    assert_null(rv__timers_pop_due(&timers, INT64_MAX));
    assert_int_equal(rv__timers_arm(&timers, &a, 30), RV_OK);
    assert_int_equal(rv__timers_arm(&timers, &b, -10), RV_OK);
    assert_int_equal(rv__timers_arm(&timers, &c, 20), RV_OK);
    assert_ptr_equal(rv__timers_first(&timers), &b);
    assert_null(rv__timers_pop_due(&timers, -11));
    assert_ptr_equal(rv__timers_pop_due(&timers, 20), &b);
    assert_int_equal(b.at, 0);
    assert_ptr_equal(rv__timers_pop_due(&timers, 20), &c);
    assert_null(rv__timers_pop_due(&timers, 29));
    assert_ptr_equal(rv__timers_pop_due(&timers, 30), &a);
    assert_null(rv__timers_first(&timers));
    rv__timers_done(&timers);
}

static void timers_of_one_moment_fire_in_the_order_armed(void **state)
{
    (void)state;
    enum { MANY = 300 };
    struct rv__timers timers;
    struct rv__timer timer[MANY] = { 0 };
    rv__timers_init(&timers);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rv__timers_arm(&timers, &timer[i], 7), RV_OK);
    assert_int_equal(rv__timers_arm(&timers, &timer[0], 7), RV_OK); /* goes to the back */
    for (int i = 1; i < MANY; i++)
        assert_ptr_equal(rv__timers_pop_due(&timers, 7), &timer[i]);
    assert_ptr_equal(rv__timers_pop_due(&timers, 7), &timer[0]);
    rv__timers_done(&timers);
}

static void disarming_what_is_not_armed_does_nothing(void **state)
{
    (void)state;
    struct rv__timers timers;
    struct rv__timer a = { 0 }, b = { 0 };
    rv__timers_init(&timers);
    rv__timers_disarm(&timers, &a);
    assert_int_equal(rv__timers_arm(&timers, &a, 1), RV_OK);
    rv__timers_disarm(&timers, &b);
    assert_int_equal(timers.count, 1);
    rv__timers_disarm(&timers, &a);
    rv__timers_disarm(&timers, &a);
    assert_int_equal(timers.count, 0);
    rv__timers_done(&timers);
}

/* The model: an array of what is armed, searched from end to end. */
enum { MODEL_TIMERS = 200 };

static struct rv__timer *model_first(struct rv__timer *timer, const bool *armed)
{
    struct rv__timer *first = NULL;
    for (int i = 0; i < MODEL_TIMERS; i++) {
        struct rv__timer *t = &timer[i];
        if (armed[i] && (first == NULL || t->due < first->due ||
                         (t->due == first->due && t->order < first->order)))
            first = t;
    }
    return first;
}

static void random_operations_agree_with_a_naive_model(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct rv__timers timers;
        struct rv__timer timer[MODEL_TIMERS] = { 0 };
        bool armed[MODEL_TIMERS] = { false };
        uint64_t order = 0;
        struct rv__random random;
        rv__random_init(&random, seed);
        rv__timers_init(&timers);
        for (int n = 0; n < 5000; n++) {
            size_t i = rv__random_below(&random, MODEL_TIMERS);
            int64_t due = (int64_t)rv__random_below(&random, seed % 2 ? 20 : 100000) - 10;
            switch (rv__random_below(&random, 4)) {
            case 0:
            case 1:
                assert_int_equal(rv__timers_arm(&timers, &timer[i], due), RV_OK);
                assert_true(timer[i].due == due && timer[i].order > order);
                order = timer[i].order;
                armed[i] = true;
                break;
            case 2:
                rv__timers_disarm(&timers, &timer[i]);
                armed[i] = false;
                break;
            case 3: {
                struct rv__timer *want = model_first(timer, armed);
                want = want != NULL && want->due <= due ? want : NULL;
                assert_ptr_equal(rv__timers_pop_due(&timers, due), want);
                if (want != NULL)
                    armed[want - timer] = false;
                break;
            }
            }
            if (rv__timers_first(&timers) != model_first(timer, armed))
                fail_msg("seed %d, operation %d", (int)seed, n);
            assert_int_equal(timer[i].at != 0, armed[i]);
        }
        rv__timers_done(&timers);
    }
}

static int arm_all(struct rv__timers *timers, struct rv__timer *timer, int count)
{
    for (int i = 0; i < count; i++) {
        int rc = rv__timers_arm(timers, &timer[i], count - i);
        if (rc < 0) {
            assert_int_equal(timer[i].at, 0);
            return rc;
        }
    }
    return RV_OK;
}

static void no_memory_leaves_the_timer_unarmed_and_the_rest_alone(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct rv__timers timers;
    struct rv__timer timer[MANY] = { 0 };
    int rc;
    rv__timers_init(&timers);
    TORTURE(rc, arm_all(&timers, timer, MANY), {
        for (size_t left = timers.count, i = left; left > 0; left--)
            assert_ptr_equal(rv__timers_pop_due(&timers, MANY), &timer[--i]);
        assert_null(rv__timers_first(&timers));
        rv__timers_done(&timers);
    });
    assert_int_equal(rc, RV_OK);
    assert_int_equal(timers.count, MANY);

    rv__test_fail_alloc_after(0); /* re-arming needs no memory, however full the heap */
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rv__timers_arm(&timers, &timer[i], i), RV_OK);
    rv__test_fail_alloc_after(-1);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(rv__timers_pop_due(&timers, MANY), &timer[i]);
    rv__timers_done(&timers);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What half a million operations cost on a heap of `size`. */
static double cost_at(size_t size)
{
    struct rv__timers timers;
    struct rv__random random;
    struct rv__timer *timer = rv__zalloc(size, sizeof *timer);
    assert_non_null(timer);
    rv__timers_init(&timers);
    rv__random_init(&random, 1);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(rv__timers_arm(&timers, &timer[i], (int64_t)rv__random_u64(&random)),
                         RV_OK);

    double start = cpu_seconds();
    for (int n = 0; n < 125000; n++) {
        struct rv__timer *first = rv__timers_pop_due(&timers, INT64_MAX);
        struct rv__timer *any = &timer[rv__random_below(&random, size)];
        rv__timers_disarm(&timers, any);
        (void)rv__timers_arm(&timers, first, (int64_t)rv__random_u64(&random)); /* has room */
        (void)rv__timers_arm(&timers, any, (int64_t)rv__random_u64(&random));
    }
    double cost = cpu_seconds() - start;
    assert_int_equal(timers.count, size);
    rv__timers_done(&timers);
    rv__free(timer);
    return cost;
}

/* 100 times the timers: twice the levels, and more of them out of the cache. A list would take 100
 * times as long. */
static void a_million_timers_cost_little_more_than_ten_thousand(void **state)
{
    (void)state;
    double small = cost_at(10000), large = cost_at(1000000);
    printf("# 500k operations: %.0f ms at 10k timers, %.0f ms at 1M\n", small * 1e3, large * 1e3);
    if (large > small * 25)
        fail_msg("%.3f s at 10k, %.3f s at 1M", small, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_fires_first_and_not_too_early),
        cmocka_unit_test(timers_of_one_moment_fire_in_the_order_armed),
        cmocka_unit_test(disarming_what_is_not_armed_does_nothing),
        cmocka_unit_test(random_operations_agree_with_a_naive_model),
        cmocka_unit_test(no_memory_leaves_the_timer_unarmed_and_the_rest_alone),
        cmocka_unit_test(a_million_timers_cost_little_more_than_ten_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
