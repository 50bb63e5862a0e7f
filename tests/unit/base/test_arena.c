/* test_arena.c: for src/base/arena.c. */
#include "unit/test.h"

#include <stdalign.h>

#include "base/arena.h"

static int setup(void **state)
{
    static struct rv__arena arena;
    rv__arena_init(&arena, 8 * 1024 * 1024);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    rv__test_fail_alloc_after(-1);
    rv__arena_done(*state);
    return 0;
}

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    struct rv__arena *arena = *state;
    unsigned char *pieces[500];
    for (size_t i = 0; i < 500; i++) {
        pieces[i] = rv__arena_alloc(arena, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)(i & 0xFF), i);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_equal(pieces[i][k], i & 0xFF);
}

static void a_piece_larger_than_a_chunk_is_given(void **state)
{
    struct rv__arena *arena = *state;
    char *small = rv__arena_alloc(arena, 10);
    char *large = rv__arena_zalloc(arena, 3, 1024 * 1024);
    char *next = rv__arena_alloc(arena, 10);
    assert_non_null(large);
    assert_int_equal(large[3 * 1024 * 1024 - 1], 0);
    assert_true(next - small < 4096); /* the current chunk goes on being filled */
}

static void the_bound_holds(void **state)
{
    struct rv__arena *arena = *state;
    size_t given = 0;
    while (rv__arena_alloc(arena, 100 * 1000) != NULL)
        given += 100 * 1000;
    assert_true(arena->bytes <= arena->max_bytes);
    assert_true(given > arena->max_bytes * 9 / 10);
    assert_null(rv__arena_alloc(arena, SIZE_MAX));
    assert_null(rv__arena_alloc(arena, SIZE_MAX - 100));
    assert_null(rv__arena_zalloc(arena, SIZE_MAX / 2, 3));
    assert_null(rv__arena_dup(arena, "", SIZE_MAX));
}

static void near_the_bound_a_small_chunk_still_fits(void **state)
{
    struct rv__arena *arena = *state;
    arena->max_bytes = 600;
    assert_non_null(rv__arena_alloc(arena, 100));
    assert_null(rv__arena_alloc(arena, 600));
}

static void reset_keeps_one_chunk_only(void **state)
{
    struct rv__arena *arena = *state;
    for (int i = 0; i < 10000; i++)
        assert_non_null(rv__arena_alloc(arena, 100));
    rv__arena_reset(arena);
    size_t kept = arena->bytes;
    assert_true(kept > 0 && kept <= 1024 * 1024);
    for (int round = 0; round < 100; round++) {
        assert_non_null(rv__arena_alloc(arena, 1000));
        rv__arena_reset(arena);
    }
    assert_int_equal(arena->bytes, kept);
}

static void reset_gives_back_an_oversized_first_chunk(void **state)
{
    struct rv__arena *arena = *state;
    rv__arena_reset(arena); /* of an empty one: nothing */
    assert_non_null(rv__arena_alloc(arena, 2 * 1024 * 1024));
    rv__arena_reset(arena);
    assert_int_equal(arena->bytes, 0);
    assert_non_null(rv__arena_alloc(arena, 10));
}

static void dup_adds_a_nul(void **state)
{
    struct rv__arena *arena = *state;
    assert_string_equal(rv__arena_dup(arena, "abcdef", 3), "abc");
    assert_string_equal(rv__arena_dup(arena, NULL, 0), "");
}

static void no_memory_gives_null_and_changes_nothing(void **state)
{
    struct rv__arena *arena = *state;
    rv__test_fail_alloc_after(0);
    assert_null(rv__arena_alloc(arena, 10));
    assert_null(rv__arena_zalloc(arena, 1, 10));
    assert_null(rv__arena_dup(arena, "x", 1));
    rv__test_fail_alloc_after(-1);
    assert_int_equal(arena->bytes, 0);
    assert_non_null(rv__arena_alloc(arena, 10));
    rv__test_fail_alloc_after(0);
    assert_null(rv__arena_alloc(arena, 1024 * 1024)); /* one of its own, which is not to be had */
    assert_non_null(rv__arena_alloc(arena, 10));      /* from the chunk that is there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_are_aligned_and_do_not_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(a_piece_larger_than_a_chunk_is_given, setup, teardown),
        cmocka_unit_test_setup_teardown(the_bound_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(near_the_bound_a_small_chunk_still_fits, setup, teardown),
        cmocka_unit_test_setup_teardown(reset_keeps_one_chunk_only, setup, teardown),
        cmocka_unit_test_setup_teardown(reset_gives_back_an_oversized_first_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(dup_adds_a_nul, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_gives_null_and_changes_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
