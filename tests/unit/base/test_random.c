/* test_random.c: for src/base/random.c. */
#include "unit/test.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"

/* Stands before libc's, so that a test can have it fail. */
static int interruptions; /* so many calls end with EINTR first */
static int final_error;   /* then with this, if not 0 */
static ssize_t final_size = -1;
ssize_t getrandom(void *mem, size_t size, unsigned flags)
{
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    if (final_error != 0) {
        errno = final_error;
        return -1;
    }
    return final_size >= 0 ? final_size : syscall(SYS_getrandom, mem, size, flags);
}

static int teardown(void **state)
{
    (void)state;
    interruptions = final_error = 0;
    final_size = -1;
    return 0;
}

static void the_sequence_is_the_published_one(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        11520,
        0,
        1509978240,
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
    };
    struct rv__random random = { { 1, 2, 3, 4 } };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(rv__random_u64(&random) == expected[i]);
}

static void a_seed_fixes_the_sequence_for_ever(void **state)
{
    (void)state;
    struct rv__random random;
    rv__random_init(&random, 0);
    assert_true(random.s[0] == UINT64_C(0xe220a8397b1dcdaf)); /* splitmix64, as published */
    assert_true(random.s[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(random.s[2] == UINT64_C(0x06c45d188009454f));
    assert_true(random.s[3] == UINT64_C(0xf88bb8a8724c81ec));
    assert_true(rv__random_u64(&random) == UINT64_C(0x99ec5f36cb75f2b4));
    assert_true(rv__random_u64(&random) == UINT64_C(0xbf6e1f784956452a));

    struct rv__random again, other;
    rv__random_init(&random, 42);
    rv__random_init(&again, 42);
    rv__random_init(&other, 43);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rv__random_u64(&random);
        assert_true(x == rv__random_u64(&again));
        assert_true(x != rv__random_u64(&other));
    }
}

static void below_stays_below_and_favours_nobody(void **state)
{
    (void)state;
    struct rv__random random;
    int hits[7] = { 0 }, upper = 0;
    rv__random_init(&random, 1);
    for (int i = 0; i < 70000; i++)
        hits[rv__random_below(&random, 7)]++;
    for (int i = 0; i < 7; i++)
        if (hits[i] < 9600 || hits[i] > 10400) /* four standard deviations */
            fail_msg("%d came %d times", i, hits[i]);
    for (int i = 0; i < 100; i++)
        assert_true(rv__random_below(&random, 1) == 0);

    /* With n = 3/4 of 2^64, a plain modulo would give the lower third twice as often. */
    const uint64_t n = UINT64_C(3) << 62;
    for (int i = 0; i < 30000; i++)
        upper += rv__random_below(&random, n) >= n / 3;
    if (upper < 19600 || upper > 20400)
        fail_msg("the upper two thirds came %d times", upper);
}

static void doubles_fill_the_unit_interval_but_not_its_end(void **state)
{
    (void)state;
    struct rv__random random;
    double sum = 0, least = 1, most = 0;
    rv__random_init(&random, 7);
    for (int i = 0; i < 100000; i++) {
        double x = rv__random_double(&random);
        assert_true(x >= 0 && x < 1);
        sum += x;
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    assert_true(sum > 49500 && sum < 50500 && least < 0.001 && most > 0.999);

    struct rv__random extreme = { { 0, UINT64_C(0x4fc71c71c71c71c7), 0, 0 } }, same = extreme;
    assert_true(rv__random_u64(&same) == UINT64_MAX);
    assert_true(rv__random_double(&extreme) == 1 - 0x1.0p-53);
}

static void the_system_gives_a_different_seed_each_time(void **state)
{
    (void)state;
    uint64_t a = 0, b = 0;
    interruptions = 2;
    assert_int_equal(rv__random_seed_system(&a, NULL), RV_OK);
    assert_int_equal(interruptions, 0);
    assert_int_equal(rv__random_seed_system(&b, NULL), RV_OK);
    assert_true(a != b);
}

static void a_system_without_chance_is_an_error(void **state)
{
    (void)state;
    rv_error err = { 0 };
    uint64_t seed = 5;
    final_error = ENOSYS;
    assert_int_equal(rv__random_seed_system(&seed, &err), RV_ESYS);
    assert_int_equal(err.code, RV_ESYS);
    assert_string_equal(err.message, "no random seed from the system: it has no getrandom()");
    final_error = EIO;
    assert_int_equal(rv__random_seed_system(&seed, NULL), RV_ESYS);
    final_error = 0;
    final_size = 4;
    assert_int_equal(rv__random_seed_system(&seed, &err), RV_ESYS);
    assert_string_equal(err.message, "no random seed from the system: getrandom() failed");
    assert_true(seed == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_the_published_one),
        cmocka_unit_test(a_seed_fixes_the_sequence_for_ever),
        cmocka_unit_test(below_stays_below_and_favours_nobody),
        cmocka_unit_test(doubles_fill_the_unit_interval_but_not_its_end),
        cmocka_unit_test_teardown(the_system_gives_a_different_seed_each_time, teardown),
        cmocka_unit_test_teardown(a_system_without_chance_is_an_error, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
