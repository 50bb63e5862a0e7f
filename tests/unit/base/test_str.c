/* test_str.c: for src/base/str.c. */
#include "unit/test.h"

#include "base/arena.h"

static void slices_compare_by_bytes(void **state)
{
    (void)state;
    assert_true(rv__str_cmp(rv__str("a"), rv__str("b")) < 0);
    assert_true(rv__str_cmp(rv__str("ab"), rv__str("a")) > 0);
    assert_true(rv__str_cmp(rv__str("a"), rv__str("ab")) < 0);
    assert_true(rv__str_cmp(rv__str("\xC3\xA9"), rv__str("z")) > 0); /* unsigned bytes */
    assert_int_equal(rv__str_cmp(rv__str(""), rv__str(NULL)), 0);
    assert_true(rv__str_eq(rv__str("abc"), (struct rv__str){ "abcd", 3 }));
    assert_false(rv__str_is(rv__str("abc"), "abd"));
    assert_true(rv__str_none(rv__str(NULL)));
    assert_false(rv__str_none(rv__str("")));
}

static void utf8_is_told_from_what_only_looks_like_it(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct { const char *bytes; bool good; } rows[] = {
        { "", true }, { "plain", true }, { "\xC3\xA9", true }, { "\xE2\x82\xAC", true },
        { "\xF0\x9F\x98\x80", true }, { "\xF4\x8F\xBF\xBF", true }, { "\xED\x9F\xBF", true },
        { "\xC0\x80", false }, { "\xC1\xBF", false }, { "\xE0\x80\x80", false },
        { "\xED\xA0\x80", false }, { "\xF0\x80\x80\x80", false }, { "\xF4\x90\x80\x80", false },
        { "\xF5\x80\x80\x80", false }, { "\x80", false }, { "\xC3", false }, { "\xE2\x82", false },
        { "\xC3(", false }, { "a\xFF", false },
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rv__str_utf8(rv__str(rows[i].bytes)) != rows[i].good)
            fail_msg("row %zu", i);
}

static void different_texts_hash_differently(void **state)
{
    (void)state;
    uint64_t a = rv__str_hash(RV__HASH_START, rv__str("chargeItem"));
    assert_true(a == rv__str_hash(RV__HASH_START, rv__str("chargeItem")));
    assert_true(a != rv__str_hash(RV__HASH_START, rv__str("chargeItems")));
    assert_true(a != rv__str_hash(a, rv__str("chargeItem")));
}

static void a_buffer_grows_and_shrinks(void **state)
{
    (void)state;
    struct rv__buf buf;
    rv__buf_init(&buf, 1000000);
    assert_str(rv__buf_view(&buf), "");
    rv__buf_text(&buf, "ab");
    rv__buf_char(&buf, 'c');
    rv__buf_str(&buf, rv__str("de"));
    rv__buf_fmt(&buf, "[%d|%s]", 5, "six");
    rv__buf_add(&buf, NULL, 0);
    assert_str(rv__buf_view(&buf), "abcde[5|six]");
    assert_int_equal(buf.text[buf.len], 0);
    rv__buf_cut(&buf, 5);
    assert_str(rv__buf_view(&buf), "abcde");
    for (int i = 0; i < 100000; i++)
        rv__buf_char(&buf, 'x');
    assert_int_equal(buf.len, 100005);
    assert_int_equal(rv__buf_err(&buf, NULL), RV_OK);
    rv__buf_reset(&buf);
    assert_str(rv__buf_view(&buf), "");
    rv__buf_done(&buf);
    rv__buf_reset(&buf);
    rv__buf_cut(&buf, 0);
    assert_str(rv__buf_view(&buf), "");
}

static void numbers_are_written_without_printf(void **state)
{
    (void)state;
    static const int64_t rows[] = { 0, 7, -1, 10, -12345, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__buf buf;
        char expected[32];
        snprintf(expected, sizeof expected, "%lld", (long long)rows[i]);
        rv__buf_init(&buf, 100);
        rv__buf_int(&buf, rows[i]);
        assert_str(rv__buf_view(&buf), expected);
        rv__buf_done(&buf);
    }
}

static void the_bound_is_exact_and_sticks(void **state)
{
    (void)state;
    struct rv__buf buf;
    rv_error err;
    rv__buf_init(&buf, 5);
    rv__buf_text(&buf, "abcde");
    assert_int_equal(rv__buf_err(&buf, &err), RV_OK);
    rv__buf_text(&buf, "f");
    rv__buf_fmt(&buf, "%s", "g");
    assert_int_equal(rv__buf_err(&buf, &err), RV_ETOOBIG);
    assert_string_equal(err.message, "text would be longer than 5 bytes");
    assert_str(rv__buf_view(&buf), "abcde");
    assert_null(rv__buf_take(&buf));
    rv__buf_reset(&buf);
    rv__buf_text(&buf, "new");
    char *text = rv__buf_take(&buf);
    assert_string_equal(text, "new");
    rv__free(text);
    assert_str(rv__buf_view(&buf), "");
    text = rv__buf_take(&buf);
    assert_string_equal(text, "");
    rv__free(text);
    rv__buf_done(&buf);
}

static int compose(struct rv__buf *buf)
{
    rv__buf_reset(buf);
    for (int i = 0; i < 50; i++)
        rv__buf_fmt(buf, "line %d\n", i);
    return rv__buf_err(buf, NULL);
}

static void no_memory_is_remembered(void **state)
{
    (void)state;
    struct rv__buf buf;
    int rc;
    rv__buf_init(&buf, 10000);
    TORTURE(rc, compose(&buf), rv__buf_done(&buf));
    assert_int_equal(rc, RV_OK);
    assert_int_equal(buf.len, 10 * 7 + 40 * 8);
    rv__buf_done(&buf);
}

static void a_message_keeps_its_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        const char *kept;
    } rows[] = {
        { "", 4, "" },     { "abcd", 4, "abcd" }, { "abcde", 4, "…e" }, { "abcdef", 5, "…ef" },
        { "aé", 3, "aé" }, { "abécd", 5, "…cd" }, { "abcé", 4, "…" },   { "abcdé", 5, "…é" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__buf buf;
        rv__buf_init(&buf, 100);
        rv__buf_message(&buf, rv__str(rows[i].text), rows[i].max);
        if (!rv__str_is(rv__buf_view(&buf), rows[i].kept))
            fail_msg("row %zu: %s", i, buf.text);
        rv__buf_done(&buf);
    }
    struct rv__str none = { NULL, 0 };
    assert_int_equal(rv__str_end(none, 3).len, 0);
    assert_int_equal(rv__str_end(rv__str("\x80\x80\x80"), 2).len, 0);
}

static void a_beginning_cuts_no_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        const char *kept;
    } rows[] = {
        { "", 4, "" },      { "abcd", 4, "abcd" }, { "abcde", 4, "abcd" }, { "aé", 2, "a" },
        { "aéb", 3, "aé" }, { "a😀b", 4, "a" },     { "a😀b", 5, "a😀" },     { "é", 1, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!rv__str_is(rv__str_begin(rv__str(rows[i].text), rows[i].max), rows[i].kept))
            fail_msg("row %zu", i);
    assert_true(rv__str_none(rv__str_begin((struct rv__str){ NULL, 0 }, 3)));
}

static void base64_comes_back(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes; /* NULL: it is none */
    } rows[] = {
        { "", "" },
        { "YQ==", "a" },
        { "YWI=", "ab" },
        { "YWJj", "abc" },
        { "YW\nJj\r\n", "abc" },
        { "//+/", "\xff\xff\xbf" },
        { "YWJjZA==", "abcd" },
        { "YQ", NULL },
        { "YQ=", NULL },
        { "Y===", NULL },
        { "====", NULL },
        { "YQ==YQ==", NULL },
        { "YW-_", NULL },
        { "Y W=", NULL },
        { "YQ==\n=", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__buf buf;
        rv__buf_init(&buf, 100);
        bool good = rv__buf_from_base64(&buf, rv__str(rows[i].text));
        if (good != (rows[i].bytes != NULL) ||
            (good && !rv__str_is(rv__buf_view(&buf), rows[i].bytes)))
            fail_msg("'%s'", rows[i].text);
        rv__buf_done(&buf);
    }
}

static void a_copy_lives_in_the_arena(void **state)
{
    (void)state;
    struct rv__arena arena;
    struct rv__str copy = { NULL, 0 };
    int rc;
    rv__arena_init(&arena, 10000);
    TORTURE(rc, rv__str_copy(&arena, (struct rv__str){ "abcdef", 3 }, &copy), assert_null(copy.at));
    assert_str(copy, "abc");
    assert_int_equal(copy.at[3], 0);
    rv__arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_compare_by_bytes),
        cmocka_unit_test(utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(different_texts_hash_differently),
        cmocka_unit_test(a_buffer_grows_and_shrinks),
        cmocka_unit_test(numbers_are_written_without_printf),
        cmocka_unit_test(the_bound_is_exact_and_sticks),
        cmocka_unit_test(no_memory_is_remembered),
        cmocka_unit_test(a_message_keeps_its_end),
        cmocka_unit_test(a_beginning_cuts_no_character),
        cmocka_unit_test(base64_comes_back),
        cmocka_unit_test(a_copy_lives_in_the_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
