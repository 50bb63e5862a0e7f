/* test_json.c: for src/base/json_*.c. */
#include "unit/test.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"

#define MANY(array) (sizeof(array) / sizeof *(array))

static struct rv__arena arena;
static struct rv__buf out, more;

static int setup(void **state)
{
    (void)state;
    rv__arena_init(&arena, SIZE_MAX); /* a test may use what it likes */
    rv__buf_init(&out, SIZE_MAX);
    rv__buf_init(&more, SIZE_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv__test_fail_alloc_after(-1);
    rv__arena_done(&arena);
    rv__buf_done(&out);
    rv__buf_done(&more);
    return 0;
}

/* Text in memory of exactly its size, so that AddressSanitizer sees any step past its end. */
static struct rv__str exact(struct rv__str text)
{
    static char *last;
    free(last);
    last = malloc(text.len ? text.len : 1);
    assert_non_null(last);
    memcpy(last, text.at, text.len);
    return (struct rv__str){ last, text.len };
}

static struct rv__str checked(const char *text)
{
    struct rv__str value;
    rv_error err = { 0 };
    if (rv__json_check(rv__str(text), RV__JSON_MAX_DEPTH, &value, &err) != RV_OK)
        fail_msg("%s: %s", text, err.message);
    return value;
}

/* ------------------------------------------------------------------------------------------
 * The check */

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
    { "\"\\ud800\"", "line 1, column 2: this half of a surrogate pair stands alone" },
    { "\"\\udc00\"", "line 1, column 2: this half of a surrogate pair stands alone" },
    { "\"\\udc00\\udc00\"", "line 1, column 2: this half of a surrogate pair stands alone" },
    { "\"\\ud800\\ud800\"", "line 1, column 2: this half of a surrogate pair stands alone" },
    { "\"\\ud800\\n\"", "line 1, column 2: this half of a surrogate pair stands alone" },
    { "\"\\udc00\\ud800\"", "line 1, column 2: this half of a surrogate pair stands alone" },
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

static void nest(size_t depth, const char *open, const char *inner, const char *close)
{
    rv__buf_reset(&out);
    for (size_t i = 0; i < depth; i++)
        rv__buf_text(&out, open);
    rv__buf_text(&out, inner);
    for (size_t i = 0; i < depth; i++)
        rv__buf_text(&out, close);
    assert_int_equal(rv__buf_err(&out, NULL), RV_OK);
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
 * In place */

static void types_are_told_by_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rv__json_type type;
    } rows[] = {
        { "null", RV__JSON_NULL }, { "false", RV__JSON_FALSE }, { "true", RV__JSON_TRUE },
        { "0", RV__JSON_NUMBER },  { "-1", RV__JSON_NUMBER },   { "\"0\"", RV__JSON_STRING },
        { "[]", RV__JSON_ARRAY },  { " {} ", RV__JSON_OBJECT },
    };
    for (size_t i = 0; i < MANY(rows); i++)
        assert_int_equal(rv__json_type(rv__str(rows[i].text)), rows[i].type);
}

static void members_come_in_order_and_as_they_stand(void **state)
{
    (void)state;
    struct rv__json_iter it;
    struct rv__str key, value;
    struct rv__str text = exact(rv__str(" { \"a\\\"\" : 1 , \"b\":[{\"]\":\"}\"}, 2] ,"
                                        "\"\":\"x\\\\\", \"a\\\"\":null } "));
    static const struct {
        const char *key, *value;
    } rows[] = {
        { "\"a\\\"\"", "1" },
        { "\"b\"", "[{\"]\":\"}\"}, 2]" },
        { "\"\"", "\"x\\\\\"" },
        { "\"a\\\"\"", "null" },
    };
    assert_int_equal(rv__json_check(text, 8, NULL, NULL), RV_OK);
    rv__json_iter_init(&it, text);
    for (size_t i = 0; i < MANY(rows); i++) {
        assert_true(rv__json_next(&it, &key, &value));
        assert_str(key, rows[i].key);
        assert_str(value, rows[i].value);
    }
    assert_false(rv__json_next(&it, &key, &value));
    assert_false(rv__json_next(&it, &key, &value));

    rv__json_iter_init(&it, rv__str("[true,-1.5e3 , \"s\",[],{}]"));
    static const char *const elements[] = { "true", "-1.5e3", "\"s\"", "[]", "{}" };
    for (size_t i = 0; i < MANY(elements); i++) {
        assert_true(rv__json_next(&it, &key, &value));
        assert_true(rv__str_none(key));
        assert_str(value, elements[i]);
    }
    assert_false(rv__json_next(&it, NULL, NULL));
}

static void what_is_empty_has_no_members(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
    } rows[] = {
        { "[]", 0 },      { "{}", 0 },
        { "[ \n ]", 0 },  { " { } ", 0 },
        { "null", 0 },    { "12", 0 },
        { "\"ab\"", 0 },  { "[[]]", 1 },
        { "[1,2,3]", 3 }, { "{\"a\":{\"b\":1},\"a\":2}", 2 },
    };
    for (size_t i = 0; i < MANY(rows); i++)
        assert_int_equal(rv__json_count(exact(rv__str(rows[i].text))), rows[i].count);
}

static void keys_are_found_however_they_are_escaped(void **state)
{
    (void)state;
    struct rv__str value = { NULL, 0 };
    struct rv__str text = checked(
        "{\"plain\":1,\"\\u0070l\\u00e4in\":2,\"a\\/b\":3,\"\\ud83d\\ude00\":"
        "4,\"tab\\t\":5,\"\":6,\"twice\":7,\"inner\":{\"deep\":8},"
        "\"t\\u0077ice\":9,\"nul\\u0000\":10}");
    static const struct {
        const char *key, *value;
    } rows[] = {
        { "plain", "1" }, { "pl\xC3\xA4in", "2" },
        { "a/b", "3" },   { "\xF0\x9F\x98\x80", "4" },
        { "tab\t", "5" }, { "", "6" },
        { "twice", "9" }, { "inner", "{\"deep\":8}" },
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        assert_true(rv__json_get(text, rows[i].key, &value));
        assert_str(value, rows[i].value);
    }
    value = rv__str("kept");
    static const char *const absent[] = { "deep", "plai", "plain1", "\\u0070", "Plain", "nul" };
    for (size_t i = 0; i < MANY(absent); i++)
        assert_false(rv__json_get(text, absent[i], &value));
    assert_false(rv__json_get(rv__str("[\"plain\"]"), "plain", &value));
    assert_false(rv__json_get(rv__str("\"plain\""), "plain", &value));
    assert_false(rv__json_get(rv__str("{}"), "", &value));
    assert_str(value, "kept");
}

static void integers_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
    } rows[] = {
        { "0", 0 },
        { "-0", 0 },
        { "-1", -1 },
        { " 42 ", 42 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
    };
    static const char *const none[] = {
        "1.0",
        "1e3",
        "1E3",
        "-1.5",
        "9223372036854775808",
        "-9223372036854775809",
        "\"1\"",
        "true",
        "null",
        "[1]",
        "{}",
        "99999999999999999999999999",
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        int64_t number = 1234;
        assert_int_equal(rv__json_int(exact(rv__str(rows[i].text)), &number), RV_OK);
        assert_true(number == rows[i].number);
    }
    for (size_t i = 0; i < MANY(none); i++) {
        int64_t number = 1234;
        if (rv__json_int(exact(rv__str(none[i])), &number) != RV_EINVAL || number != 1234)
            fail_msg("%s", none[i]);
    }
}

static void doubles_are_rounded_correctly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } rows[] = {
        { "0", 0.0 },
        { "1", 1.0 },
        { "-1.5", -1.5 },
        { "0.1", 0.1 },
        { "1e3", 1000.0 },
        { "1E+3", 1000.0 },
        { "1e-3", 0.001 },
        { "0.00001e5", 1.0 },
        { "100000e-5", 1.0 },
        { "1.7976931348623157e308", DBL_MAX },
        { "5e-324", 4.9406564584124654e-324 },
        { "1e-400", 0.0 },
        { "0e999999999999999999999", 0.0 },
        { "1e-99999999999999999999", 0.0 },
        { "9007199254740993", 9007199254740992.0 }, /* in the middle: to even */
        { "9007199254740993.00000000000000000000000000000000000000000000000000001",
          9007199254740994.0 },
        { "123456789012345678901234567890", 123456789012345678901234567890.0 },
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        double number = -7;
        if (rv__json_double(exact(rv__str(rows[i].text)), &number) != RV_OK ||
            number != rows[i].number)
            fail_msg("%s: %.17g", rows[i].text, number);
    }
    static const char *const none[] = { "1e309", "-1e400", "\"1\"", "null", "[]" };
    for (size_t i = 0; i < MANY(none); i++) {
        double number = -7;
        if (rv__json_double(exact(rv__str(none[i])), &number) != RV_EINVAL || number != -7)
            fail_msg("%s", none[i]);
    }
}

static void a_number_of_any_length_is_a_number(void **state)
{
    (void)state;
    double number;
    rv__buf_text(&out, "1"); /* 10^3000 * 10^-3000 */
    for (int i = 0; i < 3000; i++)
        rv__buf_char(&out, '0');
    rv__buf_text(&out, "e-3000");
    assert_int_equal(rv__json_double(rv__buf_view(&out), &number), RV_OK);
    assert_true(number == 1.0);

    rv__buf_reset(&out);
    rv__buf_text(&out, "-0.");
    for (int i = 0; i < 3000; i++)
        rv__buf_char(&out, '0');
    rv__buf_text(&out, "25e3001");
    assert_int_equal(rv__json_double(rv__buf_view(&out), &number), RV_OK);
    assert_true(number == -2.5);

    rv__buf_reset(&out); /* 2^53 + 1, and far behind it the digit that decides */
    rv__buf_text(&out, "9007199254740993.");
    for (int i = 0; i < 3000; i++)
        rv__buf_char(&out, '0');
    assert_int_equal(rv__json_double(rv__buf_view(&out), &number), RV_OK);
    assert_true(number == 9007199254740992.0);
    rv__buf_char(&out, '1');
    assert_int_equal(rv__json_double(rv__buf_view(&out), &number), RV_OK);
    assert_true(number == 9007199254740994.0);
}

static void truth_is_true_or_false(void **state)
{
    (void)state;
    bool truth = false;
    assert_int_equal(rv__json_bool(rv__str("true"), &truth), RV_OK);
    assert_true(truth);
    assert_int_equal(rv__json_bool(rv__str(" false"), &truth), RV_OK);
    assert_false(truth);
    truth = true;
    assert_int_equal(rv__json_bool(rv__str("0"), &truth), RV_EINVAL);
    assert_int_equal(rv__json_bool(rv__str("null"), &truth), RV_EINVAL);
    assert_int_equal(rv__json_bool(rv__str("\"false\""), &truth), RV_EINVAL);
    assert_true(truth);
}

static const struct {
    const char *literal;
    struct rv__str text;
} string_rows[] = {
    { "\"\"", RV__STR("") },
    { "\"plain\"", RV__STR("plain") },
    { " \"plain\" ", RV__STR("plain") },
    { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", RV__STR("\"\\/\b\f\n\r\t") },
    { "\"a\\u0041\\u00e9\\u20AC\\uD83D\\uDE00z\"",
      RV__STR("aA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z") },
    { "\"\\u0000x\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
      RV__STR("\0x\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF") },
    { "\"\\udbff\\udfff\\ud800\\udc00\"", RV__STR("\xF4\x8F\xBF\xBF\xF0\x90\x80\x80") },
    { "\"\\\\u0041\"", RV__STR("\\u0041") },
};

static void strings_are_unescaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY(string_rows); i++) {
        struct rv__str text, literal = exact(rv__str(string_rows[i].literal));
        assert_int_equal(rv__json_check(literal, 0, NULL, NULL), RV_OK);
        assert_int_equal(rv__json_string(literal, &arena, &text), RV_OK);
        if (!rv__str_eq(text, string_rows[i].text))
            fail_msg("%s", string_rows[i].literal);
        assert_true(rv__json_string_is(literal, string_rows[i].text));
        assert_false(rv__json_string_is(literal, rv__str("plai")));
        assert_false(rv__json_string_is(literal, rv__str("other")));
    }
    struct rv__str text = rv__str("kept");
    assert_int_equal(rv__json_string(rv__str("1"), &arena, &text), RV_EINVAL);
    assert_int_equal(rv__json_string(rv__str("[\"a\"]"), &arena, &text), RV_EINVAL);
    assert_false(rv__json_string_is(rv__str("1"), rv__str("1")));
    assert_str(text, "kept");
}

static void a_string_without_escapes_is_not_copied(void **state)
{
    (void)state;
    struct rv__str text, literal = rv__str("\"as it stands\"");
    assert_int_equal(rv__json_string(literal, NULL, &text), RV_OK);
    assert_ptr_equal(text.at, literal.at + 1);

    int rc;
    text = rv__str(NULL);
    TORTURE(rc, rv__json_string(rv__str("\"not\\nso\""), &arena, &text), assert_null(text.at));
    assert_str(text, "not\nso");
}

/* ------------------------------------------------------------------------------------------
 * Pointers */

static const char pointer_doc[] =
    " {\"foo\":[\"bar\",\"baz\",[10,20]],\"\":0,\"a/"
    "b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
    "\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9,\"0\":{\"x\":11},\"\\u00e9\":12,\"two\":1,\"two\":2} ";
static const struct {
    const char *pointer;
    int rc;
    const char *value;
} pointer_rows[] = {
    { "/foo", RV_OK, "[\"bar\",\"baz\",[10,20]]" }, /* RFC 6901, section 5 */
    { "/foo/0", RV_OK, "\"bar\"" },
    { "/", RV_OK, "0" },
    { "/a~1b", RV_OK, "1" },
    { "/c%d", RV_OK, "2" },
    { "/e^f", RV_OK, "3" },
    { "/g|h", RV_OK, "4" },
    { "/i\\j", RV_OK, "5" },
    { "/k\"l", RV_OK, "6" },
    { "/ ", RV_OK, "7" },
    { "/m~0n", RV_OK, "8" },
    { "/~01", RV_OK, "9" },
    { "/foo/2/1", RV_OK, "20" },
    { "/0/x", RV_OK, "11" },
    { "/\xC3\xA9", RV_OK, "12" },
    { "/two", RV_OK, "2" },
    { "/foo/3", RV_ENOTFOUND, NULL },
    { "/foo/-", RV_ENOTFOUND, NULL },
    { "/foo/00", RV_ENOTFOUND, NULL },
    { "/foo/01", RV_ENOTFOUND, NULL },
    { "/foo/", RV_ENOTFOUND, NULL },
    { "/foo/+1", RV_ENOTFOUND, NULL },
    { "/foo/1 ", RV_ENOTFOUND, NULL },
    { "/foo/18446744073709551616", RV_ENOTFOUND, NULL },
    { "/foo/0/0", RV_ENOTFOUND, NULL },
    { "/nope", RV_ENOTFOUND, NULL },
    { "/foo/bar", RV_ENOTFOUND, NULL },
    { "//", RV_ENOTFOUND, NULL },
    { "/m~0", RV_ENOTFOUND, NULL },
    { "/m~0no", RV_ENOTFOUND, NULL },
    { "foo", RV_EINVAL, NULL },
    { "/a~b", RV_EINVAL, NULL },
    { "/a~", RV_EINVAL, NULL },
    { "/~2", RV_EINVAL, NULL },
    { "#/foo", RV_EINVAL, NULL },
};

static void pointers_lead_to_the_same_in_text_and_tree(void **state)
{
    (void)state;
    json_t *tree = NULL;
    struct rv__str doc = checked(pointer_doc);
    assert_int_equal(rv__json_load(doc, &tree, NULL), RV_OK);
    for (size_t i = 0; i < MANY(pointer_rows); i++) {
        struct rv__str pointer = exact(rv__str(pointer_rows[i].pointer));
        struct rv__str value = rv__str("kept");
        int rc = rv__json_pointer(doc, pointer, &value, NULL);
        json_t *node = rv__json_at(tree, pointer);
        if (rc != pointer_rows[i].rc || (node != NULL) != (rc == RV_OK))
            fail_msg("%s: %d, %p", pointer_rows[i].pointer, rc, (void *)node);
        assert_str(value, rc == RV_OK ? pointer_rows[i].value : "kept");
        if (rc == RV_OK) {
            rv__buf_reset(&out);
            assert_int_equal(rv__json_dump(node, &out), RV_OK);
            assert_str(rv__buf_view(&out), pointer_rows[i].value);
        }
    }
    assert_ptr_equal(rv__json_at(tree, rv__str("")), tree);
    assert_null(rv__json_at(NULL, rv__str("/a")));
    json_decref(tree);

    struct rv__str whole;
    assert_int_equal(rv__json_pointer(rv__str(" [1] "), rv__str(""), &whole, NULL), RV_OK);
    assert_str(whole, "[1]");
}

static void a_pointer_that_fails_says_where(void **state)
{
    (void)state;
    struct rv__str value;
    rv_error err;
    rv__json_pointer(checked(pointer_doc), rv__str("/foo/7/x/y"), &value, &err);
    assert_string_equal(err.message, "there is nothing at '/foo/7'");
    rv__json_pointer(checked(pointer_doc), rv__str("foo"), &value, &err);
    assert_string_equal(err.message, "'foo' is not a JSON Pointer: each part begins with '/', and "
                                     "'~' is written '~0'");
}

static void a_written_pointer_leads_back(void **state)
{
    (void)state;
    struct rv__str value;
    rv__buf_json_pointer(&out, rv__str("a/b~c"));
    rv__buf_json_pointer(&out, rv__str(""));
    rv__buf_json_pointer(&out, rv__str("1"));
    assert_str(rv__buf_view(&out), "/a~1b~0c//1");
    struct rv__str doc = checked("{\"a/b~c\":{\"\":[1,\"here\"]}}");
    assert_int_equal(rv__json_pointer(doc, rv__buf_view(&out), &value, NULL), RV_OK);
    assert_str(value, "\"here\"");
}

/* ------------------------------------------------------------------------------------------
 * Writing */

static void any_bytes_become_a_json_string(void **state)
{
    (void)state;
    static const struct {
        struct rv__str bytes;
        const char *json;
    } rows[] = {
        { RV__STR(""), "\"\"" },
        { { NULL, 0 }, "\"\"" },
        { RV__STR("plain /"), "\"plain /\"" },
        { RV__STR("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
        { RV__STR("\0\x1F\x7F"), "\"\\u0000\\u001f\x7F\"" },
        { RV__STR("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"" },
        { RV__STR("a\xFFz"), "\"a\xEF\xBF\xBDz\"" },
        { RV__STR("\xC3"), "\"\xEF\xBF\xBD\"" },
        { RV__STR("\xE2\x82!"), "\"\xEF\xBF\xBD\xEF\xBF\xBD!\"" },
        { RV__STR("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        rv__buf_reset(&out);
        rv__buf_json_str(&out, rows[i].bytes);
        assert_str(rv__buf_view(&out), rows[i].json);
        assert_int_equal(rv__json_check(rv__buf_view(&out), 0, NULL, NULL), RV_OK);
    }
}

static void no_memory_for_a_string_is_remembered(void **state)
{
    (void)state;
    int rc;
    char bytes[500];
    memset(bytes, '\n', sizeof bytes);
    TORTURE(rc,
            (rv__buf_done(&out), rv__buf_json_str(&out, (struct rv__str){ bytes, sizeof bytes }),
             rv__buf_err(&out, NULL)),
            (void)0);
    assert_int_equal(out.len, 1002);
}

static const struct {
    double number;
    const char *text;
} double_rows[] = {
    { 0.0, "0" },
    { -0.0, "0" },
    { 1.0, "1" },
    { -1.0, "-1" },
    { 1000.0, "1000" },
    { 1.5, "1.5" },
    { 0.1, "0.1" },
    { -0.1, "-0.1" },
    { 1.0 / 3, "0.3333333333333333" },
    { 100.0 / 3, "33.333333333333336" },
    { 1e-6, "0.000001" },
    { 1.5e-6, "0.0000015" },
    { 1e-7, "1e-7" },
    { 1.25e-7, "1.25e-7" },
    { 123456.789, "123456.789" },
    { 9007199254740991.0, "9007199254740991" },
    { 9007199254740992.0, "9.007199254740992e+15" },
    { -9007199254740991.0, "-9007199254740991" },
    { 4503599627370495.5, "4503599627370495.5" },
    { 1e22, "1e+22" },
    { 1.7976931348623157e308, "1.7976931348623157e+308" },
    { 5e-324, "5e-324" },
    { 2.2250738585072014e-308, "2.2250738585072014e-308" },
    { 2.225073858507201e-308, "2.225073858507201e-308" },
    { HUGE_VAL, "1e999" },
    { -HUGE_VAL, "-1e999" },
    { NAN, "null" },
    { 5e-5, "0.00005" },
    { 0.30000000000000004, "0.30000000000000004" },
};

static void doubles_are_written_as_short_as_can_be(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY(double_rows); i++) {
        double back;
        rv__buf_reset(&out);
        rv__buf_json_double(&out, double_rows[i].number);
        assert_str(rv__buf_view(&out), double_rows[i].text);
        if (rv__json_double(rv__buf_view(&out), &back) == RV_OK)
            assert_true(back == double_rows[i].number);
        else
            assert_false(isfinite(double_rows[i].number));
    }
    uint64_t bits = 88172645463325252u; /* and any double comes back: xorshift, the same each run */
    for (int i = 0; i < 20000; i++) {
        double number, back;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        rv__buf_reset(&out);
        rv__buf_json_double(&out, number);
        assert_int_equal(rv__json_double(rv__buf_view(&out), &back), RV_OK);
        assert_true(back == number);
    }
}

/* Only where such a locale is installed can this fail; everywhere it must pass. */
static void the_locale_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                         "ps_AF.UTF-8" };
    bool comma = false;
    for (size_t i = 0; i < MANY(names) && !comma; i++)
        comma = setlocale(LC_ALL, names[i]) != NULL;
    double number = 0;
    int rc = rv__json_double(rv__str("-12.5e-1"), &number);
    rv__buf_json_double(&out, 1.25);
    setlocale(LC_ALL, "C");
    assert_int_equal(rc, RV_OK);
    assert_true(number == -1.25);
    assert_str(rv__buf_view(&out), "1.25");
}

/* ------------------------------------------------------------------------------------------
 * Canonical text */

static const struct {
    const char *text, *canonical;
} canonical_rows[] = {
    { " null ", "null" },
    { "true", "true" },
    { "[ ]", "[]" },
    { "{ }", "{}" },
    { "0", "0" },
    { "-0", "0" },
    { "-0.0", "0" },
    { "0e5", "0" },
    { "1.0", "1" },
    { "1e3", "1000" },
    { "1E+3", "1000" },
    { "0.5e1", "5" },
    { "10e-1", "1" },
    { "1.50", "1.5" },
    { "-12", "-12" },
    { "123456789012345678901234567890", "123456789012345678901234567890" },
    { "1e22", "1e+22" },
    { "1e400", "1e999" },
    { "-1e400", "-1e999" },
    { "1e-400", "0" },
    { "1152921504606846976.0", "1.152921504606847e+18" },
    { "\"a\\u0062\\/\"", "\"ab/\"" },
    { "\"\\u00E9\"", "\"\xC3\xA9\"" },
    { "\"\\u000A\\u0001\\u0000\"", "\"\\n\\u0001\\u0000\"" },
    { "\"\\\"\\\\\"", "\"\\\"\\\\\"" },
    { "[ 1 , [ 2 , { } ] , 3 ]", "[1,[2,{}],3]" },
    { "{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}" },
    { "{\"b\":{\"d\":[1,{\"z\":0,\"y\":0}],\"c\":{}},\"a\":[[],[[{\"k\":1}]]]}",
      "{\"a\":[[],[[{\"k\":1}]]],\"b\":{\"c\":{},\"d\":[1,{\"y\":0,\"z\":0}]}}" },
    { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
    { "{\"a\":{\"x\":[{}]},\"b\":0,\"\\u0061\":[{\"q\":[]}],\"c\":[{}]}",
      "{\"a\":[{\"q\":[]}],\"b\":0,\"c\":[{}]}" },
    { "{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}" },
    { "{\"\xC3\xA9\":1,\"z\":2,\"\\ud83d\\ude00\":3,\"\\uffff\":4}",
      "{\"z\":2,\"\xC3\xA9\":1,\"\xEF\xBF\xBF\":4,\"\xF0\x9F\x98\x80\":3}" },
    { "{\"[\":\"]\",\"{\":[\"}\",\"{\"],\"\\\"\":\"\\\"[\"}",
      "{\"\\\"\":\"\\\"[\",\"[\":\"]\",\"{\":[\"}\",\"{\"]}" },
    { "{\"k\\n\":1,\"k\\t\":2}", "{\"k\\t\":2,\"k\\n\":1}" },
    { "{\"c\":3,\"b\":2,\"a\":1,\"c\":4,\"b\":5,\"c\":6}", "{\"a\":1,\"b\":5,\"c\":6}" },
};

static void canonical_text_is_as_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY(canonical_rows); i++) {
        struct rv__str text = exact(rv__str(canonical_rows[i].text));
        rv__buf_reset(&out);
        assert_int_equal(rv__json_check(text, 16, NULL, NULL), RV_OK);
        assert_int_equal(rv__json_canonical(text, &out, NULL), RV_OK);
        assert_str(rv__buf_view(&out), canonical_rows[i].canonical);
        rv__buf_reset(&more); /* and it is its own canonical text */
        assert_int_equal(rv__json_canonical(rv__buf_view(&out), &more, NULL), RV_OK);
        assert_str(rv__buf_view(&more), canonical_rows[i].canonical);
    }
    rv__buf_reset(&out);
    rv__buf_text(&out, "before[");
    assert_int_equal(rv__json_canonical(rv__str("[1,2]"), &out, NULL), RV_OK);
    assert_str(rv__buf_view(&out), "before[[1,2]");
}

static void what_differs_in_meaning_differs_in_canonical_text(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
    } rows[] = {
        { "1", "\"1\"" },
        { "null", "\"null\"" },
        { "[]", "{}" },
        { "[1,2]", "[2,1]" },
        { "[1]", "1" },
        { "[[1],2]", "[[1,2]]" },
        { "true", "false" },
        { "1", "-1" },
        { "9007199254740992", "9007199254740993" },
        { "0.1", "0.10000000000000002" },
        { "1152921504606846976.0", "1152921504606847000" }, /* equal in JavaScript's writing */
        { "{\"a\":1}", "{\"a\":2}" },
        { "{\"a\":1}", "{\"A\":1}" },
        { "{\"a\":1,\"b\":2}", "{\"a\":1}" },
        { "{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}" },
        { "\"\\u0000\"", "\"\"" },
        { "\"\\\\n\"", "\"\\n\"" },
        { "{\"a\":{\"b\":1}}", "{\"a\":1,\"b\":1}" },
        { "\"e\\u0301\"", "\"\\u00e9\"" }, /* no Unicode normalisation */
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        rv__buf_reset(&out);
        rv__buf_reset(&more);
        assert_int_equal(rv__json_canonical(checked(rows[i].a), &out, NULL), RV_OK);
        assert_int_equal(rv__json_canonical(checked(rows[i].b), &more, NULL), RV_OK);
        if (rv__str_eq(rv__buf_view(&out), rv__buf_view(&more)))
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

static void depth_costs_canonical_text_no_stack(void **state)
{
    (void)state;
    nest(256, "[{\"b\":0,\"a\":", "1", "},2]");
    assert_int_equal(rv__json_check(rv__buf_view(&out), RV__JSON_MAX_DEPTH, NULL, NULL), RV_OK);
    assert_int_equal(rv__json_canonical(rv__buf_view(&out), &more, NULL), RV_OK);
    struct rv__str canonical = rv__buf_view(&more);
    nest(256, "[{\"a\":", "1", ",\"b\":0},2]");
    assert_true(rv__str_eq(rv__buf_view(&out), canonical));
}

static int canonical_of(const char *text)
{
    rv__buf_done(&out);
    rv__buf_text(&out, "kept");
    if (out.rc != RV_OK)
        return out.rc;
    int rc = rv__json_canonical(rv__str(text), &out, NULL);
    if (rc < 0)
        assert_str(rv__buf_view(&out), "kept");
    return rc;
}

static void canonical_text_without_memory_leaves_all_as_it_was(void **state)
{
    (void)state;
    int rc;
    rv_error err;
    TORTURE(rc, canonical_of("{\"b\\n\":[\"x\\ty\",{\"d\":1,\"c\":[]}],\"a\":{},\"\":0}"), (void)0);
    assert_str(rv__buf_view(&out), "kept{\"\":0,\"a\":{},\"b\\n\":[\"x\\ty\",{\"c\":[],\"d\":1}]}");

    TORTURE(rc, (rv__buf_reset(&out), rv__json_canonical(rv__str("{\"b\":1,\"a\":2}"), &out, NULL)),
            (void)0); /* with room in `out`, the memory for sorting is the last to be asked for */
    assert_str(rv__buf_view(&out), "{\"a\":2,\"b\":1}");

    struct rv__buf small;
    rv__buf_init(&small, 5);
    assert_int_equal(rv__json_canonical(rv__str("[1,2,3]"), &small, &err), RV_ETOOBIG);
    assert_int_equal(small.len, 0);
    rv__buf_done(&small);
}

/* ------------------------------------------------------------------------------------------
 * Trees */

static void trees_load_and_dump(void **state)
{
    (void)state;
    static const struct {
        const char *text, *dumped;
    } rows[] = {
        { " null ", "null" },
        { "[true,false]", "[true,false]" },
        { "-5", "-5" },
        { "9223372036854775807", "9223372036854775807" },
        { "0.1", "0.1" },
        { "1.0", "1.0" },
        { "1e22", "1e+22" },
        { "\"\\u0000a\\n\"", "\"\\u0000a\\n\"" },
        { "{\"b\":1,\"a\":[{}, []]}", "{\"b\":1,\"a\":[{},[]]}" },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
        { "{\"a\\t\":\"\\n\",\"\\u00e9\":[]}", "{\"a\\t\":\"\\n\",\"\xC3\xA9\":[]}" },
        { "9223372036854775808", "9.223372036854776e+18" },
        { "[1,-123456789012345678901234567890,\"99999999999999999999\",{\"99999999999999999999\":"
          "18446744073709551616,\"r\":2.5,\"e\":1E2}]",
          "[1,-1.2345678901234568e+29,\"99999999999999999999\",{\"99999999999999999999\":"
          "1.8446744073709552e+19,\"r\":2.5,\"e\":100.0}]" },
    };
    for (size_t i = 0; i < MANY(rows); i++) {
        json_t *tree = NULL, *again = NULL;
        rv_error err = { 0 };
        if (rv__json_load(exact(rv__str(rows[i].text)), &tree, &err) != RV_OK)
            fail_msg("%s: %s", rows[i].text, err.message);
        rv__buf_reset(&out);
        assert_int_equal(rv__json_dump(tree, &out), RV_OK);
        assert_str(rv__buf_view(&out), rows[i].dumped);
        assert_int_equal(rv__json_load(rv__buf_view(&out), &again, NULL), RV_OK);
        assert_true(json_equal(tree, again));
        json_decref(tree);
        json_decref(again);
    }
}

static void what_no_tree_can_hold_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        { "[1,\n 2 3]", "line 2, column 4: expected ',' or ']', found '3'" },
        { "[1,\n 1e400]", "line 2, column 2: this number is beyond the range of a double" },
        { "\n[{\"a\":1, \"b\\u0000\":1}]",
          "line 2, column 10: a tree cannot hold a key with a NUL character" },
    };
    json_t *tree = NULL;
    for (size_t i = 0; i < MANY(rows); i++) {
        rv_error err = { 0 };
        assert_int_equal(rv__json_load(rv__str(rows[i].text), &tree, &err), RV_EPARSE);
        assert_string_equal(err.message, rows[i].message);
        assert_null(tree);
    }
    nest(513, "[", "", "]");
    assert_int_equal(rv__json_load(rv__buf_view(&out), &tree, NULL), RV_ETOOBIG);
    nest(512, "[", "1", "]");
    assert_int_equal(rv__json_load(rv__buf_view(&out), &tree, NULL), RV_OK);
    assert_int_equal(rv__json_dump(tree, &more), RV_OK);
    assert_true(rv__str_eq(rv__buf_view(&out), rv__buf_view(&more)));
    json_t *deeper = json_pack("[o]", tree);
    assert_int_equal(rv__json_dump(deeper, &more), RV_ETOOBIG);
    json_decref(deeper);
}

static void a_tree_that_contains_itself_is_too_big(void **state)
{
    (void)state;
    json_t *a = json_array(), *b = json_array();
    json_array_append(a, b);
    json_array_append(b, a);
    rv__buf_text(&out, "kept");
    assert_int_equal(rv__json_dump(a, &out), RV_ETOOBIG);
    assert_str(rv__buf_view(&out), "kept");
    json_array_clear(b);
    json_decref(a);
    json_decref(b);
}

static int load_again(const char *text, json_t **tree)
{
    json_decref(*tree);
    *tree = NULL;
    return rv__json_load(rv__str(text), tree, NULL);
}

static void trees_without_memory_are_not_half_made(void **state)
{
    (void)state;
    int rc;
    json_t *tree = NULL;
    const char *text = "{\"a\":[1,99999999999999999999,\"x\\ny\",2.5,null],\"b\":{\"c\":true}}";
    json_set_alloc_funcs(rv__alloc, rv__free);
    TORTURE(rc, load_again(text, &tree), assert_null(tree));
    rv__test_fail_alloc_after(-1);
    TORTURE(rc, (rv__buf_done(&out), rv__json_dump(tree, &out)), assert_int_equal(out.len, 0));
    json_decref(tree);
    json_set_alloc_funcs(malloc, free);
    assert_str(rv__buf_view(&out), "{\"a\":[1,1e+20,\"x\\ny\",2.5,null],\"b\":{\"c\":true}}");
}

/* ------------------------------------------------------------------------------------------
 * Cost. The bounds are wide: they tell n from n², not one machine from another. */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

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

static void a_string_of_ten_megabytes_is_no_trouble(void **state)
{
    (void)state;
    struct rv__str text;
    double start = seconds();
    rv__buf_char(&out, '"');
    for (int i = 0; i < 1000000; i++)
        rv__buf_text(&out, i % 10 ? "0123456789" : "01234\\\\\\\"9");
    rv__buf_char(&out, '"');
    assert_int_equal(rv__json_check(rv__buf_view(&out), 0, NULL, NULL), RV_OK);
    assert_ptr_equal(rv__json_skip(out.text, out.text + out.len), out.text + out.len);
    assert_int_equal(rv__json_string(rv__buf_view(&out), &arena, &text), RV_OK);
    assert_int_equal(text.len, 10000000 - 200000);
    assert_true(rv__json_string_is(rv__buf_view(&out), text));
    assert_int_equal(rv__json_canonical(rv__buf_view(&out), &more, NULL), RV_OK);
    assert_true(rv__str_eq(rv__buf_view(&out), rv__buf_view(&more)));
    assert_true(seconds() - start < 5);
}

static void a_hundred_thousand_keys_are_sorted_well_under_a_second(void **state)
{
    (void)state;
    struct rv__json_iter it;
    struct rv__str key, before = rv__str("\"");
    size_t count = 0;
    rv__buf_char(&out, '{');
    for (uint32_t i = 0; i < 100000; i++)
        rv__buf_fmt(&out, "%s\"key %08" PRIx32 "\":{\"n\":%u}", i ? "," : "",
                    i * UINT32_C(2654435761), i);
    rv__buf_char(&out, '}');

    double start = seconds();
    assert_int_equal(rv__json_canonical(rv__buf_view(&out), &more, NULL), RV_OK);
    double took = seconds() - start;
    if (took > 1) /* a few hundredths; sanitizers are slower */
        fail_msg("%g s", took);
    assert_int_equal(out.len, more.len);
    rv__json_iter_init(&it, rv__buf_view(&more));
    while (rv__json_next(&it, &key, NULL)) {
        assert_true(rv__str_cmp(before, key) < 0);
        before = key;
        count++;
    }
    assert_int_equal(count, 100000);
}

/* Nested objects out of order: a level must not cost the length of all that is below it. */
static void depth_is_no_factor_in_the_cost_of_canonical_text(void **state)
{
    (void)state;
    rv__buf_reset(&more);
    rv__buf_char(&more, '[');
    for (int i = 0; i < 500000; i++)
        rv__buf_text(&more, "[],");
    rv__buf_text(&more, "0]");
    char *inner = rv__buf_take(&more);
    double took[2];
    for (size_t k = 0; k < 2; k++) {
        nest(k == 0 ? 1 : 500, "{\"z\":0,\"a\":", inner, "}");
        double start = seconds();
        assert_int_equal(rv__json_canonical(rv__buf_view(&out), &more, NULL), RV_OK);
        took[k] = seconds() - start;
        rv__buf_reset(&more);
    }
    rv__free(inner);
    if (took[1] > 20 * took[0] + 0.01)
        fail_msg("%g s, then %g s", took[0], took[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_rfc_8259_allows_is_allowed),
        TEST(what_it_does_not_is_refused_with_its_place),
        TEST(no_place_in_a_string_is_overlooked),
        TEST(every_beginning_of_a_text_is_refused_in_bounds),
        TEST(depth_is_bounded_exactly),
        TEST(size_is_bounded_exactly),
        TEST(types_are_told_by_the_text),
        TEST(members_come_in_order_and_as_they_stand),
        TEST(what_is_empty_has_no_members),
        TEST(keys_are_found_however_they_are_escaped),
        TEST(integers_are_exact_or_refused),
        TEST(doubles_are_rounded_correctly),
        TEST(a_number_of_any_length_is_a_number),
        TEST(truth_is_true_or_false),
        TEST(strings_are_unescaped),
        TEST(a_string_without_escapes_is_not_copied),
        TEST(pointers_lead_to_the_same_in_text_and_tree),
        TEST(a_pointer_that_fails_says_where),
        TEST(a_written_pointer_leads_back),
        TEST(any_bytes_become_a_json_string),
        TEST(no_memory_for_a_string_is_remembered),
        TEST(doubles_are_written_as_short_as_can_be),
        TEST(the_locale_changes_nothing),
        TEST(canonical_text_is_as_described),
        TEST(what_differs_in_meaning_differs_in_canonical_text),
        TEST(depth_costs_canonical_text_no_stack),
        TEST(canonical_text_without_memory_leaves_all_as_it_was),
        TEST(trees_load_and_dump),
        TEST(what_no_tree_can_hold_is_refused),
        TEST(a_tree_that_contains_itself_is_too_big),
        TEST(trees_without_memory_are_not_half_made),
        TEST(checking_ten_times_the_text_takes_about_ten_times_as_long),
        TEST(a_string_of_ten_megabytes_is_no_trouble),
        TEST(a_hundred_thousand_keys_are_sorted_well_under_a_second),
        TEST(depth_is_no_factor_in_the_cost_of_canonical_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
