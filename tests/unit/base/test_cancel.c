/* test_cancel.c: for src/base/cancel.c. */
#include "unit/test.h"

#include <pthread.h>
#include <assert.h>

#include "base/cancel.h"

struct counting_watch {
    struct rv__cancel_watch watch;
    int told;
};

static void count(struct rv__cancel_watch *watch)
{
    ((struct counting_watch *)watch)->told++;
}

static void a_token_fires_once_and_the_first_cause_stays(void **state)
{
    (void)state;
    rv_error why = { .code = 77 };
    rv_cancel *c = rv_cancel_new(NULL);
    assert_false(rv_cancel_fired(c));
    assert_int_equal(rv_cancel_cause(c, &why), 0);
    assert_int_equal(why.code, 77); /* untouched */

    rv_cancel_fire(c, 0, NULL);
    rv_cancel_fire(c, RV_EBUSY, "later");
    assert_true(rv_cancel_fired(c));
    assert_int_equal(rv_cancel_cause(c, &why), RV_ECANCELED);
    assert_int_equal(rv_cancel_cause(c, NULL), RV_ECANCELED);
    assert_string_equal(why.message, "cancelled");
    rv_cancel_free(c);
}

static void firing_goes_down_and_not_up(void **state)
{
    (void)state;
    rv_error why;
    rv_cancel *top = rv_cancel_new(NULL);
    rv_cancel *mid = rv_cancel_new(top), *other = rv_cancel_new(top);
    rv_cancel *low1 = rv_cancel_new(mid), *low2 = rv_cancel_new(mid);

    rv_cancel_fire(low1, RV_EFAILED, "one");
    assert_false(rv_cancel_fired(mid) || rv_cancel_fired(low2));
    rv_cancel_fire(mid, RV_EBUSY, "two");
    assert_true(rv_cancel_fired(mid) && rv_cancel_fired(low2));
    assert_false(rv_cancel_fired(top) || rv_cancel_fired(other));
    rv_cancel_fire(top, RV_ETIMEDOUT, "three");

    rv_cancel_cause(low1, &why);
    assert_string_equal(why.message, "one");
    rv_cancel_cause(low2, &why);
    assert_string_equal(why.message, "two");
    rv_cancel_cause(other, &why);
    assert_string_equal(why.message, "three");
    rv_cancel *late = rv_cancel_new(mid); /* born fired */
    assert_int_equal(rv_cancel_cause(late, &why), RV_EBUSY);

    rv_cancel *all[] = { top, mid, other, low1, low2, late };
    for (size_t i = 0; i < 6; i++)
        rv_cancel_free(all[i]);
}

static void children_of_a_freed_token_are_reached_by_the_grandparent(void **state)
{
    (void)state;
    rv_cancel *top = rv_cancel_new(NULL), *mid = rv_cancel_new(top);
    rv_cancel *a = rv_cancel_new(mid), *b = rv_cancel_new(mid), *c = rv_cancel_new(mid);
    rv_cancel_free(b); /* from the middle of the siblings */
    rv_cancel_free(mid);
    rv_cancel_fire(top, 0, NULL);
    assert_true(rv_cancel_fired(a) && rv_cancel_fired(c));
    rv_cancel_free(top); /* before its children */
    rv_cancel_free(a);
    rv_cancel_free(c);

    top = rv_cancel_new(NULL);
    a = rv_cancel_new(top);
    rv_cancel_free(top);
    rv_cancel_fire(a, 0, NULL); /* a root now */
    rv_cancel_free(a);
}

static void a_watch_is_told_once(void **state)
{
    (void)state;
    rv_cancel *top = rv_cancel_new(NULL), *c = rv_cancel_new(top);
    struct counting_watch w[4] = { 0 };
    for (size_t i = 0; i < 4; i++)
        w[i].watch.fired = count;
    assert_true(rv__cancel_watch(c, &w[0].watch));
    assert_true(rv__cancel_watch(c, &w[1].watch));
    assert_true(rv__cancel_watch(c, &w[2].watch));
    rv__cancel_unwatch(c, &w[1].watch);
    rv__cancel_unwatch(c, &w[1].watch); /* again: nothing */
    rv_cancel_fire(top, 0, NULL);
    rv_cancel_fire(top, 0, NULL);
    assert_false(rv__cancel_watch(c, &w[3].watch));
    rv__cancel_unwatch(c, &w[0].watch);
    rv__cancel_unwatch(c, &w[3].watch);
    assert_int_equal(w[0].told, 1);
    assert_int_equal(w[1].told, 0);
    assert_int_equal(w[2].told, 1);
    assert_int_equal(w[3].told, 0);
    rv_cancel_free(c);
    rv_cancel_free(top);
}

static void a_very_deep_chain_fires_without_recursion(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    rv_cancel **chain = malloc(DEEP * sizeof *chain);
    assert_non_null(chain);
    for (int i = 0; i < DEEP; i++)
        chain[i] = rv_cancel_new(i ? chain[i - 1] : NULL);
    rv_cancel_fire(chain[0], 0, NULL);
    assert_true(rv_cancel_fired(chain[DEEP - 1]));
    for (int i = 0; i < DEEP; i++)
        rv_cancel_free(chain[i]);
    free(chain);
}

static void nothing_is_allowed(void **state)
{
    (void)state;
    rv_cancel_fire(NULL, 0, NULL);
    rv_cancel_free(NULL);
    assert_false(rv_cancel_fired(NULL));
    assert_int_equal(rv_cancel_cause(NULL, NULL), 0);
}

static void no_memory_gives_null(void **state)
{
    (void)state;
    for (long n = 0; n < 2; n++) {
        rv__test_fail_alloc_after(n);
        assert_null(rv_cancel_new(NULL));
        rv__test_fail_alloc_after(-1);
    }
    rv_cancel *c = rv_cancel_new(NULL);
    rv__test_fail_alloc_after(0);
    assert_null(rv_cancel_new(c));
    rv__test_fail_alloc_after(-1);
    rv_cancel_free(c);
}

/* Threads make, watch, fire and free tokens below one parent that fires in the middle. */
static void *churn(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        rv_cancel *c = rv_cancel_new(arg);
        struct counting_watch w = { .watch.fired = count };
        bool watching = rv__cancel_watch(c, &w.watch);
        if (i % 3 == 0)
            rv_cancel_fire(c, 0, "own");
        if (watching)
            rv__cancel_unwatch(c, &w.watch);
        assert(w.told <= 1);
        rv_cancel_free(c);
    }
    return NULL;
}

static void threads_may_do_all_of_it_at_once(void **state)
{
    (void)state;
    rv_cancel *top = rv_cancel_new(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, top), 0);
    rv_cancel_fire(top, 0, "all");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    rv_cancel_free(top);
}

static void *fire_it(void *arg)
{
    rv_cancel_fire(arg, RV_ECLOSED, "over");
    return NULL;
}

static void a_wait_ends_when_the_token_fires_or_the_time_is_up(void **state)
{
    pthread_t thread;
    (void)state;
    rv_cancel *parent = rv_cancel_new(NULL), *c = rv_cancel_new(parent);
    assert_false(rv_cancel_wait(c, 0));
    assert_false(rv_cancel_wait(c, 1));
    assert_false(rv_cancel_wait(NULL, 1));
    assert_int_equal(pthread_create(&thread, NULL, fire_it, parent), 0);
    assert_true(rv_cancel_wait(c, -1));
    pthread_join(thread, NULL);
    assert_true(rv_cancel_wait(c, 0)); /* and stays so */
    rv_cancel_free(c);
    rv_cancel_free(parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_when_the_token_fires_or_the_time_is_up),
        cmocka_unit_test(a_token_fires_once_and_the_first_cause_stays),
        cmocka_unit_test(firing_goes_down_and_not_up),
        cmocka_unit_test(children_of_a_freed_token_are_reached_by_the_grandparent),
        cmocka_unit_test(a_watch_is_told_once),
        cmocka_unit_test(a_very_deep_chain_fires_without_recursion),
        cmocka_unit_test(nothing_is_allowed),
        cmocka_unit_test(no_memory_gives_null),
        cmocka_unit_test(threads_may_do_all_of_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
