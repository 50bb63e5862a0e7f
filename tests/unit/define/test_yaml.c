/* test_yaml.c: YAML and JSON as values with places, for src/define/{yaml,scalar,tree}.c. */
#include "define_test.h"

#define VALUE(text) "name: w\nsteps:\n  - a:\n      value: " text "\n"
#define PLAN(json)                                                                      \
    "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"kind\":\"value\"," \
    "\"with\":" json "}]}"

static void plain_scalars_follow_the_core_schema(void **state)
{
    static const struct {
        const char *yaml, *json;
    } rows[] = {
        { VALUE("[yes, no, on, off, y, n]"), PLAN("[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\"]") },
        { VALUE("[true, True, FALSE, tRUE]"), PLAN("[true,true,false,\"tRUE\"]") },
        { VALUE("[null, ~, Null, nULL]"), PLAN("[null,null,null,\"nULL\"]") },
        { VALUE("[0o17, 0x1F, 017, 0o8, 0b1]"), PLAN("[15,31,17,\"0o8\",\"0b1\"]") },
        { VALUE("[+12, -0, 1e3, .5, 5., -.5E-2]"), PLAN("[12,-0,1e3,0.5,5.0,-0.5e-2]") },
        { VALUE("[12345678901234567890, 1_000, 1.2.3]"),
          PLAN("[12345678901234567890,\"1_000\",\"1.2.3\"]") },
        { VALUE("[2024-01-01, 12:30:00, -e, e3]"),
          PLAN("[\"2024-01-01\",\"12:30:00\",\"-e\",\"e3\"]") },
        { VALUE("['1', \"true\", !!str 5, ! 6]"), PLAN("[\"1\",\"true\",\"5\",\"6\"]") },
        { VALUE("[!!int 5, !!float 5, !!bool true, !!null ~]"), PLAN("[5,5,true,null]") },
        { VALUE("\"a\\tb\\u00e9\\n\""), PLAN("\"a\\tbé\\n\"") },
        { VALUE("|\n        two\n        lines"), PLAN("\"two\\nlines\\n\"") },
        { VALUE(">-\n        two\n        lines"), PLAN("\"two lines\"") },
        { VALUE("{ 1: a, true: b, ~: c }"), PLAN("{\"1\":\"a\",\"true\":\"b\",\"~\":\"c\"}") },
        { VALUE("[&x { k: 1 }, *x, *x]"), PLAN("[{\"k\":1},{\"k\":1},{\"k\":1}]") },
        { VALUE("0xFFFFFFFFFFFFFFFFFF"), PLAN("\"0xFFFFFFFFFFFFFFFFFF\"") },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_plan(rows[i].yaml, rows[i].yaml, rows[i].json);
}

static void what_is_no_yaml_is_told_at_its_place(void **state)
{
    (void)state;
    expect_problems("infinity", VALUE(".inf"),
                    "4:14: JSON has no number '.inf'; write \".inf\" if it is a text\n");
    expect_problems("not a number", VALUE("[1, .NaN]"),
                    "4:18: JSON has no number '.NaN'; write \".NaN\" if it is a text\n");
    expect_problems("a tag of its own", VALUE("!mine 5"),
                    "4:20: unknown tag: only YAML's core tags are known (!!str, !!int, …)\n");
    expect_problems("a tag that does not fit", VALUE("!!int x"), "4:20: 'x' is not a !!int\n");
    expect_problems("a bracket that never closes", VALUE("[1, 2"),
                    "4:14: flow sequence without a closing bracket\n");
    expect_problems("a key twice", VALUE("{ a: 1, b: 2, a: 3 }"),
                    "4:28: the key 'a' is given twice: first in line 4\n");
    expect_problems("a list as a key", VALUE("{ [1]: 2 }"),
                    "4:16: a key must be a text, not a list\n");
    expect_problems("merge keys", VALUE("{ <<: { a: 1 } }"),
                    "4:16: merge keys (<<) are not part of YAML 1.2; repeat the keys\n");
    expect_problems("an alias of nothing", VALUE("*x"),
                    "4:15: there is no anchor '&x' before this\n");
    expect_problems("an alias inside of itself", VALUE("&x [*x]"),
                    "4:19: '*x' refers to a value that contains it\n");
    expect_problems("two documents", "name: w\n---\nname: v\n",
                    "2:1: a second document: a file holds one workflow\n");
    expect_problems("nothing", "", "0:0: the file is empty\n");
    expect_problems("only a comment", "# nothing\n", "0:0: the file is empty\n");
    expect_problems("a list", "- a\n",
                    "1:1: a workflow must be a mapping with 'name' and 'steps'; this is a list\n");
    expect_problems("bytes that are no UTF-8", "name: w\nx: \xff\n", "2:4: this is not UTF-8\n");
    expect_problems("control characters", "name: w\nx: \x01\n",
                    "2:4: a control character (0x01)\n");
}

static void json_is_told_at_its_place(void **state)
{
    (void)state;
    expect_problems_in("w.json", "a comma too many", "{\n  \"name\": \"w\",\n}", "3:1: expected …");
    expect_problems_in("w.json", "a key twice", "{\"name\":\"w\",\n\"name\":\"v\"}",
                       "1:1: a workflow needs 'steps' with at least one node\n"
                       "2:2: the key 'name' is given twice: first in line 1\n");
    expect_problems_in("w.json", "an unknown key",
                       "{\"name\":\"w\",\n \"steps\":[{\"a\":{\"value\":1,\n  \"wen\":2}}]}",
                       "3:4: unknown key 'wen' of a node with 'value'; did you mean 'when'?\n");
    expect_problems_in("w.json", "a good one",
                       "{\"name\":\"w\",\"steps\":[{\"a\":{\"value\":\"\\u00e9\"}}]}", "");
}

/* Ten aliases of ten aliases … are refused by count, at once. */
static void laughter_is_bounded(void **state)
{
    struct rv__buf text;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "name: w\nsteps:\n  - a:\n      value:\n        - &l0 [x]\n");
    for (int i = 1; i < 60; i++) {
        rv__buf_fmt(&text, "        - &l%d [", i);
        for (int k = 0; k < 10; k++)
            rv__buf_fmt(&text, "%s*l%d", k ? ", " : "", i - 1);
        rv__buf_text(&text, "]\n");
    }
    expect_problems("sixty levels of ten", text.text,
                    "10:62: the file has more than 200000 values, counting each use of an alias\n");
    rv__buf_done(&text);
}

static void depth_is_bounded(void **state)
{
    struct rv__buf text;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "name: w\nsteps:\n  - a: { value: ");
    for (int i = 0; i < 5000; i++)
        rv__buf_char(&text, '[');
    struct rv__definitions *found = define("w.yaml", text.text);
    assert_int_equal(found->problem_count, 1);
    assert_str(found->problems[0].message, "nested deeper than 420 levels");
    rv__definitions_free(found);
    rv__buf_reset(&text);
    for (int i = 0; i < 100000; i++)
        rv__buf_char(&text, '[');
    found = define("w.json", text.text);
    assert_int_equal(found->problem_count, 1);
    rv__definitions_free(found);
    rv__buf_done(&text);
}

static void size_is_bounded(void **state)
{
    (void)state;
    size_t len = (4 << 20) + 1;
    char *text = malloc(len + 1);
    memset(text, ' ', len);
    text[len] = '\0';
    expect_problems("too many bytes", text, "0:0: the file has more than 4194304 bytes\n");
    free(text);
}

static void a_problem_shows_its_line(void **state)
{
    (void)state;
    struct rv__definitions *found = define("w.yaml", VALUE("{ \"é\": 1, x: .inf }"));
    assert_int_equal(found->problem_count, 1);
    assert_str(found->problems[0].excerpt, "      value: { \"é\": 1, x: .inf }");
    assert_int_equal(found->problems[0].column, 27);
    assert_int_equal(found->problems[0].caret, 26);
    rv__definitions_free(found);
}

static void a_line_that_is_cut_says_so(void **state)
{
    (void)state;
    struct rv__definitions *found = define(
        "w.yaml", VALUE("[.inf, \"0123456789012345678901234567890123456789012345678901234567\"]"));
    assert_int_equal(found->problem_count, 1);
    assert_str(found->problems[0].excerpt,
               "      value: [.inf, \"01234567890123456789012345678901234567890123456789012…");
    rv__definitions_free(found);
}

static int define_something(struct rv__definitions **ret)
{
    return rv__define_text(
        "w.yaml",
        rv__str("name: w\ninput: { type: object }\nsteps:\n"
                "  - a: { value: &x [1, 0x1F, 'q'], timeout: 5s }\n"
                "  - b: { value: *x, wrong: 1, when: '${ .steps.a.result }' }\n"),
        NULL, &define_compiler, ret, NULL);
}

static void no_memory_is_told(void **state)
{
    struct rv__definitions *found = NULL;
    int rc;
    (void)state;
    TORTURE(rc, define_something(&found), assert_null(found));
    assert_int_equal(rc, RV_OK);
    assert_int_equal(found->problem_count, 1);
    rv__definitions_free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_follow_the_core_schema),
        cmocka_unit_test(what_is_no_yaml_is_told_at_its_place),
        cmocka_unit_test(json_is_told_at_its_place),
        cmocka_unit_test(laughter_is_bounded),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(a_problem_shows_its_line),
        cmocka_unit_test(a_line_that_is_cut_says_so),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
