/* test_alloc.c: for src/base/alloc.c. */
#include "unit/test.h"

static void the_nth_allocation_fails_and_all_after_it(void **state)
{
    (void)state;
    void *mem = NULL;
    rv__test_fail_alloc_after(2);
    for (int i = 0; i < 2; i++) {
        mem = rv__alloc(8);
        assert_non_null(mem);
        rv__free(mem);
    }
    assert_false(rv__test_alloc_failed());
    assert_null(rv__alloc(8));
    assert_null(rv__zalloc(1, 8));
    assert_null(rv__realloc(NULL, 8));
    assert_true(rv__test_alloc_failed());

    rv__test_fail_alloc_after(-1);
    assert_false(rv__test_alloc_failed());
    mem = rv__zalloc(4, 2);
    assert_non_null(mem);
    assert_memory_equal(mem, "\0\0\0\0\0\0\0\0", 8);
    rv__free(mem);
}

static void memory_may_come_back(void **state)
{
    (void)state;
    rv__test_fail_allocs(1, 2);
    for (int i = 0; i < 6; i++) {
        void *mem = rv__alloc(8);
        assert_int_equal(mem == NULL, i == 1 || i == 2);
        rv__free(mem);
    }
    assert_true(rv__test_alloc_failed());
}

static void one_in_so_many_fails_by_seed(void **state)
{
    (void)state;
    int failed[2] = { 0, 0 };
    for (int round = 0; round < 2; round++) {
        rv__test_fail_one_alloc_in(4, 7);
        for (int i = 0; i < 1000; i++) {
            void *mem = rv__alloc(8);
            failed[round] = failed[round] * (i < 20 ? 2 : 1) + (mem == NULL);
            rv__free(mem);
        }
        rv__test_fail_one_alloc_in(0, 0);
    }
    assert_true(failed[0] > 150);
    assert_int_equal(failed[0], failed[1]);
    void *mem = rv__alloc(8);
    assert_non_null(mem);
    rv__free(mem);
}

static void nothing_is_still_something(void **state)
{
    (void)state;
    void *a = rv__alloc(0), *b = rv__zalloc(0, 0), *c = rv__realloc(NULL, 0);
    assert_true(a && b && c);
    c = rv__realloc(c, 100);
    assert_non_null(c);
    rv__free(a);
    rv__free(b);
    rv__free(c);
    rv__free(NULL);
}

static void an_overflowing_count_is_refused(void **state)
{
    (void)state;
    volatile size_t huge = SIZE_MAX / 2; /* volatile: gcc would warn about the constant */
    assert_null(rv__zalloc(huge, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_and_all_after_it),
        cmocka_unit_test(memory_may_come_back),
        cmocka_unit_test(one_in_so_many_fails_by_seed),
        cmocka_unit_test(nothing_is_still_something),
        cmocka_unit_test(an_overflowing_count_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
