/* test_json_canon.c: what is written, and canonical text. For src/base/json_canon.c. */
#include "unit/base/json_test.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

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
 * Cost */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_bytes_become_a_json_string),
        TEST(no_memory_for_a_string_is_remembered),
        TEST(doubles_are_written_as_short_as_can_be),
        TEST(the_locale_changes_nothing),
        TEST(canonical_text_is_as_described),
        TEST(what_differs_in_meaning_differs_in_canonical_text),
        TEST(depth_costs_canonical_text_no_stack),
        TEST(canonical_text_without_memory_leaves_all_as_it_was),
        TEST(a_hundred_thousand_keys_are_sorted_well_under_a_second),
        TEST(depth_is_no_factor_in_the_cost_of_canonical_text),
    };
    return cmocka_run_group_tests_name("json_canon", tests, NULL, NULL);
}
