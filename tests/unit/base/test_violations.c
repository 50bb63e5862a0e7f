/* test_violations.c: for src/base/violations.c and blob.c. */
#include "unit/test.h"

#include "base/arena.h"
#include "base/blob.h"
#include "base/violations.h"

static void everything_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err = { 0 };
    rv__arena_init(&arena, 1 << 20);
    rv__violations_init(&bad, &arena);
    assert_int_equal(rv__violations_err(&bad, &err), RV_OK);
    rv__violations_add(&bad, rv__str("a"), "must be %d", 1);
    assert_int_equal(rv__violations_err(&bad, &err), RV_EINVAL);
    assert_string_equal(err.message, "a: must be 1");
    for (int i = 0; i < 20; i++)
        rv__violations_add(&bad, rv__str("b"), "number %d", i);
    assert_int_equal(rv__violations_err(&bad, &err), RV_EINVAL);
    assert_string_equal(err.message, "a: must be 1 (and 20 more)");
    assert_str(bad.items[20].message, "number 19");
    rv__arena_done(&arena);
}

static void beyond_a_thousand_they_are_counted(void **state)
{
    (void)state;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err = { 0 };
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    rv__arena_init(&arena, 8 << 20);
    rv__violations_init(&bad, &arena);
    for (int i = 0; i < RV__VIOLATIONS_MAX + 7; i++)
        rv__violations_add(&bad, rv__str("p"), "%s", long_text);
    assert_int_equal(bad.count, RV__VIOLATIONS_MAX);
    assert_int_equal(bad.dropped, 7);
    assert_int_equal(bad.items[0].message.len, 511);
    assert_int_equal(rv__violations_err(&bad, &err), RV_EINVAL);
    rv__arena_done(&arena);
}

static int fill(struct rv__arena *arena, struct rv__violations *bad)
{
    rv__arena_done(arena);
    rv__violations_init(bad, arena);
    for (int i = 0; i < 40; i++)
        rv__violations_add(bad, rv__str("path"), "%0400d", i);
    int rc = rv__violations_err(bad, NULL);
    return rc == RV_EINVAL ? RV_OK : rc;
}

static void no_memory_is_remembered(void **state)
{
    (void)state;
    struct rv__arena arena;
    struct rv__violations bad;
    int rc;
    rv__arena_init(&arena, 1 << 20);
    TORTURE(rc, fill(&arena, &bad), (void)0);
    assert_int_equal(rc, RV_OK);
    assert_int_equal(bad.count, 40);
    rv__arena_done(&arena);
}

static void a_blob_is_counted(void **state)
{
    (void)state;
    struct rv__blob *blob = rv__blob_new((struct rv__str){ "abcdef", 3 });
    assert_str(rv__blob_str(blob), "abc");
    assert_int_equal(blob->text[3], 0);
    assert_ptr_equal(rv__blob_ref(blob), blob);
    rv__blob_unref(blob);
    assert_str(rv__blob_str(blob), "abc"); /* still held once */
    rv__blob_unref(blob);
    rv__blob_unref(NULL);
    assert_null(rv__blob_ref(NULL));
    assert_true(rv__str_none(rv__blob_str(NULL)));
    assert_null(rv__blob_new((struct rv__str){ "x", SIZE_MAX }));
    rv__test_fail_alloc_after(0);
    assert_null(rv__blob_new(rv__str("x")));
    rv__test_fail_alloc_after(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_wrong_is_told_with_its_place),
        cmocka_unit_test(beyond_a_thousand_they_are_counted),
        cmocka_unit_test(no_memory_is_remembered),
        cmocka_unit_test(a_blob_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
