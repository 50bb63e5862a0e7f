/* test_index.c: for src/base/index.c. */
#include "unit/test.h"

#include "base/index.h"

enum { THINGS = 10000 };

struct thing {
    struct rv__index_entry entry; /* first */
    int number;
};

static uint64_t hash_of(int number)
{
    return rv__str_hash(RV__HASH_START, (struct rv__str){ (const char *)&number, sizeof number });
}

static struct thing *find(const struct rv__index *index, uint64_t hash, int number)
{
    struct rv__index_entry *e = rv__index_first(index, hash);
    while (e != NULL && ((struct thing *)e)->number != number)
        e = rv__index_next(e);
    return (struct thing *)e;
}

static void what_was_added_is_found_and_nothing_else(void **state)
{
    static struct thing things[THINGS];
    struct rv__index index = { .size = 0 };
    (void)state;
    assert_null(rv__index_first(&index, hash_of(0)));
    for (int i = 0; i < THINGS; i++) {
        things[i].number = i;
        assert_int_equal(rv__index_add(&index, &things[i].entry, hash_of(i)), RV_OK);
        assert_ptr_equal(find(&index, hash_of(i / 2), i / 2), &things[i / 2]);
        assert_null(find(&index, hash_of(i + 1), i + 1));
    }
    for (int i = 0; i < THINGS; i++)
        assert_ptr_equal(find(&index, hash_of(i), i), &things[i]);
    size_t longest = 0;
    for (size_t i = 0; i < index.size; i++) {
        size_t length = 0;
        for (const struct rv__index_entry *e = index.buckets[i]; e != NULL; e = e->next)
            length++;
        longest = length > longest ? length : longest;
    }
    assert_in_range(longest, 1, 16);
    rv__index_done(&index);
    assert_null(rv__index_first(&index, hash_of(0)));
}

static void all_of_one_hash_are_found(void **state)
{
    static struct thing things[1000];
    struct rv__index index = { .size = 0 };
    (void)state;
    for (int i = 0; i < 1000; i++) {
        things[i].number = i;
        assert_int_equal(rv__index_add(&index, &things[i].entry, 5), RV_OK);
    }
    for (int i = 0; i < 1000; i++)
        assert_ptr_equal(find(&index, 5, i), &things[i]);
    assert_null(find(&index, 5, 1000));
    rv__index_done(&index);
}

static void without_memory_it_stays_as_it_is(void **state)
{
    static struct thing things[1000];
    struct rv__index index = { .size = 0 };
    (void)state;
    for (int i = 0; i < 1000; i++) {
        int rc;
        things[i].number = i;
        TORTURE(rc, rv__index_add(&index, &things[i].entry, hash_of(i)),
                assert_null(find(&index, hash_of(i), i)));
        assert_int_equal(rc, RV_OK);
        assert_ptr_equal(find(&index, hash_of(0), 0), &things[0]);
    }
    rv__index_done(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_and_nothing_else),
        cmocka_unit_test(all_of_one_hash_are_found),
        cmocka_unit_test(without_memory_it_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
