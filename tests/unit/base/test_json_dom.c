/* test_json_dom.c: trees. For src/base/json_dom.c. */
#include "unit/base/json_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(trees_load_and_dump),
        TEST(what_no_tree_can_hold_is_refused),
        TEST(a_tree_that_contains_itself_is_too_big),
        TEST(trees_without_memory_are_not_half_made),
    };
    return cmocka_run_group_tests_name("json_dom", tests, NULL, NULL);
}
