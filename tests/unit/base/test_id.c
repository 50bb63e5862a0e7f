/* test_id.c: for src/base/id.c. */
#include "unit/test.h"

#include "base/id.h"

static void an_id_shows_its_time_and_26_characters(void **state)
{
    (void)state;
    struct rv__ids ids;
    char id[RV__ID_SIZE];
    rv__ids_init(&ids, 1);
    rv__ids_next(&ids, INT64_C(1469918176385), id);
    assert_int_equal(strlen(id), 26);
    assert_memory_equal(id, "01aryz6s41", 10); /* the example of the ULID specification */
    assert_true(rv__id_valid(rv__str(id)));
    for (int i = 0; i < 26; i++)
        assert_non_null(strchr("0123456789abcdefghjkmnpqrstvwxyz", id[i]));
}

static void the_number_is_written_digit_by_digit(void **state)
{
    (void)state;
    struct rv__ids ids;
    char id[RV__ID_SIZE];
    rv__ids_init(&ids, 1);
    ids.high = ids.low = UINT64_MAX;
    ids.low--; /* the time is as late as can be, so the next counts up */
    rv__ids_next(&ids, 0, id);
    assert_string_equal(id, "7zzzzzzzzzzzzzzzzzzzzzzzzz");
    ids.high = 0;
    ids.low = 31;
    rv__ids_next(&ids, 0, id);
    assert_string_equal(id, "00000000000000000000000010");
    ids.high = UINT64_C(5) << 16;
    ids.low = UINT64_C(1) << 63;
    rv__ids_next(&ids, 0, id);
    assert_string_equal(id, "00000000050008000000000001");
}

static void the_same_seed_and_times_give_the_same_ids(void **state)
{
    (void)state;
    struct rv__ids a, b, c;
    char id_a[RV__ID_SIZE], id_b[RV__ID_SIZE], id_c[RV__ID_SIZE];
    rv__ids_init(&a, 9);
    rv__ids_init(&b, 9);
    rv__ids_init(&c, 10);
    for (int i = 0; i < 100; i++) {
        rv__ids_next(&a, 1000 + i / 2, id_a);
        rv__ids_next(&b, 1000 + i / 2, id_b);
        rv__ids_next(&c, 1000 + i / 2, id_c);
        assert_string_equal(id_a, id_b);
        assert_string_not_equal(id_a, id_c);
    }
}

/* Whatever the clock does: still, forth, back, before 1970, past what 48 bits can say. */
static void ids_grow_whatever_the_clock_does(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rv__ids ids;
        struct rv__random random;
        char id[RV__ID_SIZE], last[RV__ID_SIZE] = "";
        int64_t now = INT64_C(1794770108123);
        rv__ids_init(&ids, seed);
        rv__random_init(&random, seed);
        for (int i = 0; i < 20000; i++) {
            switch (rv__random_below(&random, 50)) {
            case 0: now -= (int64_t)rv__random_below(&random, 3600000); break;
            case 1: now += (int64_t)rv__random_below(&random, 3600000); break;
            case 2: now += 1; break;
            }
            if (i == 15000)
                now = INT64_MIN + INT64_C(100000000000000);
            if (i == 15010)
                now = INT64_MAX - INT64_C(100000000000000);
            rv__ids_next(&ids, now, id);
            if (strcmp(id, last) <= 0)
                fail_msg("seed %d: %s does not come after %s", (int)seed, id, last);
            memcpy(last, id, sizeof last);
        }
    }
}

static void a_full_random_part_carries_into_the_time(void **state)
{
    (void)state;
    struct rv__ids ids;
    char id[RV__ID_SIZE], next[RV__ID_SIZE];
    rv__ids_init(&ids, 1);
    ids.high = INT64_C(1000) << 16 | 0xFFFF;
    ids.low = UINT64_MAX;
    rv__ids_next(&ids, 1000, id);
    assert_true(ids.high == INT64_C(1001) << 16 && ids.low == 0);
    rv__ids_next(&ids, 1001, next); /* the clock arrives where the carry is already */
    assert_true(strcmp(next, id) > 0);
    assert_true(ids.low == 1);
    rv__ids_next(&ids, 1002, id);
    assert_true(strcmp(id, next) > 0);
    assert_true(ids.high >> 16 == 1002 && ids.low > 1);
}

static void only_the_pattern_of_the_specification_is_valid(void **state)
{
    (void)state;
    char text[130];
    for (int c = 0; c < 256; c++) {
        bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c != 0 && strchr("._:-", c) != NULL);
        memcpy(text, "aXb", 3);
        text[1] = (char)c;
        if (rv__id_valid((struct rv__str){ text, 3 }) != good)
            fail_msg("character %d", c);
    }
    memset(text, 'x', sizeof text);
    assert_false(rv__id_valid((struct rv__str){ text, 0 }));
    assert_false(rv__id_valid(rv__str(NULL)));
    assert_true(rv__id_valid((struct rv__str){ text, 1 }));
    assert_true(rv__id_valid((struct rv__str){ text, 128 }));
    assert_false(rv__id_valid((struct rv__str){ text, 129 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_shows_its_time_and_26_characters),
        cmocka_unit_test(the_number_is_written_digit_by_digit),
        cmocka_unit_test(the_same_seed_and_times_give_the_same_ids),
        cmocka_unit_test(ids_grow_whatever_the_clock_does),
        cmocka_unit_test(a_full_random_part_carries_into_the_time),
        cmocka_unit_test(only_the_pattern_of_the_specification_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
