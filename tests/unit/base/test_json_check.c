/* test_json_check.c: what is JSON, and where it is not. For src/base/json_check.c. */
#include "unit/base/json_test.h"

static const char *const good_texts[] = {
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "10",
    "1.5",
    "0.5",
    "-0.0",
    "1e400",
    "1E5",
    "1e+5",
    "1e-5",
    "0e0",
    "123456789012345678901234567890",
    "\"\"",
    "\"a\"",
    " \t\r\n1 \t\r\n",
    "[]",
    "{}",
    "[ ]",
    "{ }",
    "[1]",
    "[1,2]",
    "[ 1 , 2 ]",
    "{\"a\":1}",
    "{ \"a\" : 1 , \"b\" : [ ] }",
    "{\"a\":1,\"a\":2}",
    "{\"\":0}",
    "[[],[[]],{}]",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0000\"",
    "\"\\u00e9\\u00E9\"",
    "\"\\uD83D\\uDE00\"",
    "\"\\ud7ff\\ue000\\uffff\"",
    "\"\x7F\"",
    "\"\xC3\xA9\"",
    "\"\xE2\x82\xAC\xF0\x9F\x98\x80 and more\"",
    "\"12345678\\\"\"",
    "\"]}[{,:\"",
    "[\"\\\\\",\"\\\\\\\"\"]",
};

static const struct {
    const char *text, *message;
} bad_texts[] = {
    { "", "line 1, column 1: expected a value, found the end of the text" },
    { "  \n ", "line 2, column 2: expected a value, found the end of the text" },
    { "nul", "line 1, column 1: expected a value, found 'n'" },
    { "nulll", "line 1, column 5: expected the end of the text, found 'l'" },
    { "True", "line 1, column 1: expected a value, found 'T'" },
    { "NaN", "line 1, column 1: expected a value, found 'N'" },
    { "01", "line 1, column 2: expected the end of the text, found '1'" },
    { "-01", "line 1, column 3: expected the end of the text, found '1'" },
    { "[01]", "line 1, column 3: expected ',' or ']', found '1'" },
    { "1.", "line 1, column 3: expected a digit, found the end of the text" },
    { ".5", "line 1, column 1: expected a value, found '.'" },
    { "+1", "line 1, column 1: expected a value, found '+'" },
    { "-", "line 1, column 2: expected a digit, found the end of the text" },
    { "-a", "line 1, column 2: expected a digit, found 'a'" },
    { "1e", "line 1, column 3: expected a digit, found the end of the text" },
    { "1e+", "line 1, column 4: expected a digit, found the end of the text" },
    { "1.e5", "line 1, column 3: expected a digit, found 'e'" },
    { "0x10", "line 1, column 2: expected the end of the text, found 'x'" },
    { "1 2", "line 1, column 3: expected the end of the text, found '2'" },
    { "[1", "line 1, column 3: expected ',' or ']', found the end of the text" },
    { "[1,", "line 1, column 4: expected a value, found the end of the text" },
    { "[1,]", "line 1, column 4: expected a value, found ']'" },
    { "[,1]", "line 1, column 2: expected a value, found ','" },
    { "[1 2]", "line 1, column 4: expected ',' or ']', found '2'" },
    { "[1}", "line 1, column 3: expected ',' or ']', found '}'" },
    { "[}", "line 1, column 2: expected a value, found '}'" },
    { "]", "line 1, column 1: expected a value, found ']'" },
    { "{", "line 1, column 2: expected a key in quotes, found the end of the text" },
    { "{]", "line 1, column 2: expected a key in quotes, found ']'" },
    { "{a:1}", "line 1, column 2: expected a key in quotes, found 'a'" },
    { "{1:1}", "line 1, column 2: expected a key in quotes, found '1'" },
    { "{\"a\"}", "line 1, column 5: expected ':', found '}'" },
    { "{\"a\":}", "line 1, column 6: expected a value, found '}'" },
    { "{\"a\":1,}", "line 1, column 8: expected a key in quotes, found '}'" },
    { "{\"a\":1]", "line 1, column 7: expected ',' or '}', found ']'" },
    { "{\n  \"a\": 1\n  \"b\": 2\n}", "line 3, column 3: expected ',' or '}', found '\"'" },
    { "\"a", "line 1, column 1: this string has no end" },
    { "\"abcdefgh\\", "line 1, column 11: expected one of \"\\/bfnrtu after the backslash, found "
                      "the end of the text" },
    { "\"\\x\"", "line 1, column 3: expected one of \"\\/bfnrtu after the backslash, found 'x'" },
    { "'a'", "line 1, column 1: expected a value, found '''" },
    { "\"a\nb\"", "line 1, column 3: a control character must be escaped in a string" },
    { "\"12345678\t\"", "line 1, column 10: a control character must be escaped in a string" },
    { "\"\\u12g4\"", "line 1, column 2: expected four hexadecimal digits after \\u" },
    { "\"\\u12", "line 1, column 2: expected four hexadecimal digits after \\u" },
    { "\"\\ud800\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\\udc00\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\\udc00\\udc00\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\\ud800\\ud800\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\\ud800\\n\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\\udc00\\ud800\"", "line 1, column 2: this is half of a surrogate pair" },
    { "\"\xC3\xA9\xFF\"", "line 1, column 3: this is not UTF-8" },
    { "\"\xE2\x82\"", "line 1, column 2: this is not UTF-8" },
    { "\"\xED\xA0\x80\"", "line 1, column 2: this is not UTF-8" },
    { "\"\xF0\x9F\x98\x80\xC3\xA9\x80\"", "line 1, column 4: this is not UTF-8" },
    { "\xEF\xBB\xBF{}", "line 1, column 1: expected a value, found byte 0xef" },
    { "[1,\xC2\xA0 2]", "line 1, column 4: expected a value, found byte 0xc2" },
    { "// no\n1", "line 1, column 1: expected a value, found '/'" },
};

static void what_rfc_8259_allows_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY(good_texts); i++) {
        struct rv__str value, text = exact(rv__str(good_texts[i]));
        rv_error err = { 0 };
        if (rv__json_check(text, RV__JSON_MAX_DEPTH, &value, &err) != RV_OK)
            fail_msg("%s: %s", good_texts[i], err.message);
        assert_int_equal(rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, NULL), RV_OK);
        assert_null(memchr(" \t\r\n", value.at[0], 4));
        assert_null(memchr(" \t\r\n", value.at[value.len - 1], 4));
    }
}

static void what_it_does_not_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY(bad_texts); i++) {
        struct rv__str value = { NULL, 0 }, text = exact(rv__str(bad_texts[i].text));
        rv_error err = { 0 };
        int rc = rv__json_check(text, RV__JSON_MAX_DEPTH, &value, &err);
        if (rc != RV_EPARSE || strcmp(err.message, bad_texts[i].message) != 0)
            fail_msg("%s: %d, %s", bad_texts[i].text, rc, err.message);
        assert_null(value.at);
        assert_int_equal(rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, NULL), RV_EPARSE);
    }
    struct rv__str nul = { "[1\0]", 4 }, nul_inside = { "\"a\0\"", 4 };
    assert_int_equal(rv__json_check(nul, RV__JSON_MAX_DEPTH, NULL, NULL), RV_EPARSE);
    assert_int_equal(rv__json_check(nul_inside, RV__JSON_MAX_DEPTH, NULL, NULL), RV_EPARSE);
    assert_int_equal(rv__json_check(rv__str(NULL), RV__JSON_MAX_DEPTH, NULL, NULL), RV_EPARSE);
}

/* Strings are looked at eight bytes at a time: a special byte counts wherever it stands. */
static void no_place_in_a_string_is_overlooked(void **state)
{
    (void)state;
    for (size_t i = 1; i <= 24; i++) {
        char text[] = "\"abcdefghABCDEFGH01234567\"";
        text[i] = '\x1F';
        assert_int_equal(rv__json_check(exact(rv__str(text)), 0, NULL, NULL), RV_EPARSE);
        text[i] = '\x80';
        assert_int_equal(rv__json_check(exact(rv__str(text)), 0, NULL, NULL), RV_EPARSE);
        text[i] = '"';
        assert_int_equal(rv__json_check(exact(rv__str(text)), 0, NULL, NULL), RV_EPARSE);
        text[i] = '\\';
        text[i + 1] = text[i + 1] == '"' ? '"' : '!';
        assert_int_equal(rv__json_check(exact(rv__str(text)), 0, NULL, NULL), RV_EPARSE);
        text[i] = '\x7F';
        assert_int_equal(rv__json_check(exact(rv__str(text)), 0, NULL, NULL), RV_OK);
    }
}

/* A text cut anywhere is never read past the cut. */
static void every_beginning_of_a_text_is_refused_in_bounds(void **state)
{
    (void)state;
    const char *text = "{\"a\\u00e9\\ud83d\\ude00\xE2\x82\xAC\":[-1.5e+3,true,null,\"\\n\\\"\"],"
                       "\"b\":{}}";
    for (size_t len = 0; len < strlen(text); len++)
        assert_int_equal(
            rv__json_check(exact((struct rv__str){ text, len }), RV__JSON_MAX_DEPTH, NULL, NULL),
            RV_EPARSE);
}

static void depth_is_bounded_exactly(void **state)
{
    (void)state;
    static const struct {
        size_t depth, max;
        int rc;
    } rows[] = {
        { 511, 512, RV_OK },    { 512, 512, RV_OK },  { 513, 512, RV_ETOOBIG },
        { 1, 1, RV_OK },        { 1, 0, RV_ETOOBIG }, { 64, 64, RV_OK },
        { 65, 64, RV_ETOOBIG }, { 65, 65, RV_OK },    { 100000, 512, RV_ETOOBIG },
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        rv_error err = { 0 };
        nest(rows[i].depth, "[", "", "]");
        assert_int_equal(rv__json_check(rv__buf_view(&out), rows[i].max, NULL, &err), rows[i].rc);
        nest(rows[i].depth, "{\"a\":[", "1", "]}");
        assert_int_equal(rv__json_check(rv__buf_view(&out), rows[i].max, NULL, &err),
                         rows[i].max >= 2 * rows[i].depth ? RV_OK : RV_ETOOBIG);
    }
    rv_error err;
    nest(3, "[", "", "]");
    assert_int_equal(rv__json_check(rv__buf_view(&out), 2, NULL, &err), RV_ETOOBIG);
    assert_string_equal(err.message, "line 1, column 3: nested deeper than 2");
    assert_int_equal(rv__json_check(rv__str("1"), 0, NULL, &err), RV_OK);
    nest(256, "[{\"k\":", "0", "}]"); /* each level remembers what it is */
    assert_int_equal(rv__json_check(rv__buf_view(&out), 512, NULL, &err), RV_OK);
    out.text[out.len - 1] = '}';
    assert_int_equal(rv__json_check(rv__buf_view(&out), 512, NULL, &err), RV_EPARSE);
}

static void size_is_bounded_exactly(void **state)
{
    (void)state;
    size_t len = RV__JSON_MAX_BYTES + 1;
    char *text = malloc(len);
    rv_error err;
    assert_non_null(text);
    memset(text, 'x', len);
    text[0] = text[len - 2] = text[len - 1] = '"';
    int at_bound = rv__json_check((struct rv__str){ text, len - 1 }, 1, NULL, &err);
    text[len - 2] = 'x';
    int above = rv__json_check((struct rv__str){ text, len }, 1, NULL, &err);
    free(text);
    assert_int_equal(at_bound, RV_OK);
    assert_int_equal(above, RV_ETOOBIG);
    assert_string_equal(err.message, "a JSON text of 67108865 bytes: at most 67108864 are allowed");
}

/* ------------------------------------------------------------------------------------------
 * Cost */

/* The best of three, because others use the machine too. */
static double check_seconds(struct rv__str text)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        double start = seconds();
        assert_int_equal(rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, NULL), RV_OK);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    return best;
}

static void checking_ten_times_the_text_takes_about_ten_times_as_long(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "{\"key\":[1,2.5,\"some text\",null]}",
        "\"\\n\\u00e9\\\\\"",
        "\"\xC3\xA9\xE2\x82\xAC\"",
        "[]",
    };
    for (size_t i = 0; i < MANY(pieces); i++) {
        double took[2];
        for (size_t k = 0; k < 2; k++) {
            rv__buf_reset(&out);
            rv__buf_char(&out, '[');
            while (out.len < (k == 0 ? 500000 : 5000000)) {
                rv__buf_text(&out, pieces[i]);
                rv__buf_char(&out, ',');
            }
            rv__buf_text(&out, "0]");
            took[k] = check_seconds(rv__buf_view(&out));
        }
        if (took[1] > 40 * took[0] + 0.01)
            fail_msg("%s: %g s, then %g s", pieces[i], took[0], took[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_rfc_8259_allows_is_allowed),
        TEST(what_it_does_not_is_refused_with_its_place),
        TEST(no_place_in_a_string_is_overlooked),
        TEST(every_beginning_of_a_text_is_refused_in_bounds),
        TEST(depth_is_bounded_exactly),
        TEST(size_is_bounded_exactly),
        TEST(checking_ten_times_the_text_takes_about_ten_times_as_long),
    };
    return cmocka_run_group_tests_name("json_check", tests, NULL, NULL);
}
