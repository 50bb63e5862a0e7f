/* test_json_scan.c: text that is looked at in place, and pointers into it. For src/base/json_scan.c. */
#include "unit/base/json_test.h"

#include <float.h>

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
 * Cost */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        TEST(a_string_of_ten_megabytes_is_no_trouble),
    };
    return cmocka_run_group_tests_name("json_scan", tests, NULL, NULL);
}
