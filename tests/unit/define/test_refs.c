/* test_refs.c: who may read whose result, for src/define/refs.c. */
#include "define_test.h"

#define W(nodes) "name: w\nsteps:\n" nodes

static void references_are_checked(void **state)
{
    static const struct {
        const char *says, *yaml, *problems;
    } rows[] = {
        { "a node before", W("- a: { value: 1 }\n- b: { value: '${ .steps.a.result }' }\n"), "" },
        { "a node after", W("- a: { value: '${ .steps.b.result }' }\n- b: { value: 1 }\n"),
          "3:19: 'b' comes later: only nodes before this one have a result\n" },
        { "nobody", W("- a: { value: 1 }\n- b: { value: { x: ['${ .steps.c }'] } }\n"),
          "4:25: there is no node 'c'\n" },
        { "a slip", W("- fetch: { value: 1 }\n- b: { value: 'got ${ .steps.fecth.result }' }\n"),
          "4:23: there is no node 'fecth'; did you mean 'fetch'?\n" },
        { "with brackets", W("- a: { value: '${ .steps[\"x y\"].result }' }\n"),
          "3:19: there is no node 'x y'\n" },
        { "itself", W("- a: { value: '${ .steps.a.result }' }\n"),
          "3:19: 'a' is this node itself, which has no result yet\n" },
        { "its own result in its description",
          W("- a: { value: 1, description: 'got ${ .result }' }\n"), "" },
        { "its own result elsewhere", W("- a: { value: '${ .result }' }\n"),
          "3:19: an expression sees input, steps, lastStep, loop, run and env, and no "
          "'.result'\n" },
        { "its own alias in its description",
          W("- a: { value: 1, description: '${ .steps.a.result }' }\n"),
          "3:35: 'a' is this node itself, which has no result yet; in its description, its own "
          "result "
          "is .result\n" },
        { "a root that is none", W("- a: { value: '${ .inptu.x }' }\n"),
          "3:19: an expression sees input, steps, lastStep, loop, run and env, and no '.inptu'; "
          "did "
          "you mean '.input'?\n" },
        { "keys inside of a pipe are no roots",
          W("- a: { value: '${ .input.items | map(.price) | add }' }\n"), "" },
        { "an enclosing sequence",
          W("- a: { value: 1 }\n- e: { forEach: [1], run: [ { b: { value: '${ .steps.a }' } } ] "
            "}\n"),
          "" },
        { "later in an enclosing sequence",
          W("- e: { forEach: [1], run: [ { b: { value: '${ .steps.z }' } } ] }\n- z: { value: 1 "
            "}\n"),
          "3:47: 'z' comes later: only nodes before this one have a result\n" },
        { "what is around",
          W("- e: { forEach: [1], run: [ { b: { value: '${ .steps.e }' } } ] }\n"),
          "3:47: 'e' contains this node, and has no result before it ends\n" },
        { "inside of another node",
          W("- e: { forEach: [1], run: [ { b: { value: 1 } } ] }\n- z: { value: '${ .steps.b }' "
            "}\n"),
          "4:19: 'b' is inside 'e' and cannot be read from here; its result is in that node's "
          "result\n" },
        { "children do not see each other",
          W("- c: { concurrent: { x: { value: 1 }, y: { value: '${ .steps.x }' } } }\n"),
          "3:55: 'x' is inside 'c' and cannot be read from here; its result is in that node's "
          "result\n" },
        { "else does not see then",
          W("- d: { if: '${ 1 }', then: [ { x: { value: 1 } } ], else: [ { y: { value: '${ "
            ".steps.x "
            "}' } } ] }\n"),
          "3:79: 'x' is inside 'd' and cannot be read from here; its result is in that node's "
          "result\n" },
        { "a loop sees the iteration before",
          W("- l: { loop: [ { x: { value: '${ .steps.y }' } }, { y: { value: 1 } } ],\n"
            "       until: '${ .steps.y.result }' }\n"),
          "" },
        { "and so do nodes deeper in it",
          W("- l:\n    loop:\n      - e: { forEach: [1], run: [ { b: { value: '${ .steps.z }' } } "
            "] }\n"
            "      - z: { value: 1 }\n    while: '${ .steps.z.result | not }'\n"),
          "" },
        { "until does not see what comes later",
          W("- l: { loop: [ { x: { value: 1 } } ], until: '${ .steps.q.result }' }\n- q: { value: "
            "1 "
            "}\n"),
          "3:50: 'q' comes later: only nodes before this one have a result\n" },
        { "when, if, items, input, description",
          W("- a: { value: 1, when: '${ .steps.n1 }', description: '${ .steps.n2 }' }\n"
            "- b: { if: '${ .steps.n3 }', then: [ { c: { value: 1 } } ] }\n"
            "- d: { forEach: '${ .steps.n4 }', run: { value: 1 } }\n"),
          "3:28: there is no node 'n1'\n3:59: there is no node 'n2'\n4:16: there is no node 'n3'\n"
          "5:21: there is no node 'n4'\n" },
        { "argv, url, env",
          W("- a: { command: [x, '${ .steps.n1 }'], env: { A: '${ .steps.n2 }' } }\n"
            "- b: { http: { url: 'http://x/${ .steps.n3 }' } }\n- c: { http: 'http://x${ .steps.n4 "
            "}' "
            "}\n"),
          "3:25: there is no node 'n1'\n3:54: there is no node 'n2'\n4:34: there is no node 'n3'\n"
          "5:26: there is no node 'n4'\n" },
        { "a handler is given what there is",
          W("- a: { value: 1, onError: { value: '${ .workflowState.steps.b.result }' } }\n"), "" },
        { "a condition that is none", W("- a: { value: 1, when: yes }\n"),
          "3:24: invalid 'when': …" },
        { "a condition that is a bool", W("- a: { value: 1, when: true }\n"),
          "3:24: invalid 'when': …" },
        { "items that are none", W("- a: { forEach: 5, run: { value: 1 } }\n"),
          "3:17: invalid items: must be a list, or an expression ${ … } that yields one\n" },
        { "a template that does not close", W("- a: { value: 'x ${ .input' }\n"),
          "3:18: invalid expression in 'value': …" },
        { "jq that is none", W("- a: { value: 'x ${ .input | | 1 }' }\n"),
          "3:30: invalid expression in 'value': …" },
        { "in a block of text the line is right",
          W("- a:\n    value: |\n      one\n      two ${ .steps.nobody.result }\n"),
          "6:14: there is no node 'nobody'\n" },
        { "with escapes before it", W("- a: { value: \"\\t\\t${ .steps.nobody }\" }\n"),
          "3:23: there is no node 'nobody'\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_problems(rows[i].says, rows[i].yaml, rows[i].problems);
}

#define SECRET                                                                                  \
    "a secret may only be in what is sent out (argv, env and stdin of a command; url, headers " \
    "and "                                                                                      \
    "body of http), since everything else is recorded\n"

/* They go out with an attempt, and nowhere else. */
static void secrets_are_only_where_something_is_sent(void **state)
{
#define S(nodes) "name: w\nsecrets: [KEY]\nsteps:\n" nodes
    static const struct {
        const char *says, *yaml, *problems;
    } rows[] = {
        { "what is sent",
          S("- a: { command: [x, '${ .secrets.KEY }', { b: '${ .secrets.KEY }' }], env: { K: '${ "
            ".secrets.KEY | @base64 }' }, stdin: 'k=${ .secrets.KEY }' }\n"
            "- b: { http: { url: 'http://x/${ .secrets.KEY }', headers: { A: '${ .secrets.KEY }' "
            "}, "
            "body: [{ a: '${ .secrets[\"KEY\"] }' }] } }\n"
            "- c: { http: 'http://x/${ .secrets.KEY }' }\n"
            "- d: { command: { argv: [x, '${ .secrets.KEY }'] }, onError: { command: [x, '${ "
            ".secrets.KEY }'] } }\n"),
          "" },
        { "other parameters",
          S("- a: { command: [x], cwd: '/${ .secrets.KEY }', output: '${ .secrets.KEY }' }\n"
            "- b: { http: { url: 'http://x', method: '${ .secrets.KEY }', timeout: '${ "
            ".secrets.KEY "
            "}' } }\n"),
          "4:32: " SECRET "4:61: " SECRET "5:45: " SECRET "5:75: " SECRET },
        { "value, delay, signal",
          S("- a: { value: { x: ['${ .secrets.KEY }'] } }\n- b: { delay: '${ .secrets.KEY }' }\n"
            "- c: { signal: { name: '${ .secrets.KEY }' } }\n"),
          "4:25: " SECRET "5:19: " SECRET "6:28: " SECRET },
        { "conditions, items, descriptions, inputs",
          S("- a: { command: [x], when: '${ .secrets.KEY }', description: '${ .secrets.KEY }' }\n"
            "- b: { if: '${ .secrets.KEY }', then: [ { c: { value: 1 } } ] }\n"
            "- d: { forEach: '${ [.secrets.KEY] }', run: { value: 1 } }\n"
            "- e: { loop: [ { f: { value: 1 } } ], until: '${ .secrets.KEY }' }\n"),
          "4:32: " SECRET "4:66: " SECRET "5:16: " SECRET "6:22: " SECRET "7:50: " SECRET },
        { "handlers", S("- a: { command: [x], onError: { value: '${ .secrets.KEY }' } }\n"),
          "4:44: " SECRET },
        { "not declared", S("- a: { command: [x, '${ .secrets.KYE }'] }\n"),
          "4:25: the secret 'KYE' is not declared: the workflow needs 'secrets: [KYE]'; did you "
          "mean 'KEY'?\n" },
        { "none declared", W("- a: { command: [x, '${ .secrets.KEY }'] }\n"),
          "3:25: the secret 'KEY' is not declared: the workflow needs 'secrets: [KEY]'\n" },
        { "all of them", S("- a: { command: [x, '${ .secrets }', '${ .secrets | keys }'] }\n"),
          "4:25: secrets are read one by one, by name: .secrets.NAME\n"
          "4:42: secrets are read one by one, by name: .secrets.NAME\n" },
        { "what is called so elsewhere", S("- a: { value: '${ .input.secrets.KEY }' }\n"), "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_problems(rows[i].says, rows[i].yaml, rows[i].problems);
}

static void schemas_of_signals_are_checked(void **state)
{
    static const struct {
        const char *says, *yaml, *problems;
    } rows[] = {
        { "a good one, twice",
          W("- a: { signal: { name: x, schema: { type: object } } }\n"
            "- b: { signal: { name: x, schema: { type: object }, timeout: 1s, default: 5 } }\n"
            "- c: { signal: { name: x } }\n"),
          "" },
        { "bad ones",
          W("- a: { signal: { name: x, schema: { type: objct, properties: { a: 5 } } } }\n"),
          "3:43: invalid schema of a signal: /type: must be one of null, boolean, integer, number, "
          "string, array, object (or an array of them)\n"
          "3:67: invalid schema of a signal: /properties/a: a schema is an object, true or "
          "false\n" },
        { "two of one name",
          W("- a: { signal: { name: x, schema: { type: object } } }\n"
            "- b: { signal: { name: x, schema: { type: array } } }\n"),
          "4:35: the signal 'x' has another schema at 'a': a signal has one schema in a "
          "workflow\n" },
        { "a name that is not known before",
          W("- a: { signal: { name: '${ .input }', schema: { type: object } } }\n"),
          "3:8: the name of a signal with a schema cannot have expressions: a payload is checked "
          "when it arrives, which may be before the step is reached\n" },
        { "expressions, and what is none",
          W("- a: { signal: { name: x, default: '${ .input }', schema: 5 } }\n"),
          "3:8: invalid schema 5 of a signal: a JSON Schema is an object, true or false\n"
          "3:8: the default of a signal cannot have expressions ${ … }\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_problems(rows[i].says, rows[i].yaml, rows[i].problems);
}

/* The same for a plan that no file made. */
static void a_plan_of_any_origin_can_be_checked(void **state)
{
    struct rv__plan *plan = NULL;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err;
    (void)state;
    rv__arena_init(&arena, SIZE_MAX);
    rv__violations_init(&bad, &arena);
    assert_int_equal(
        rv__plan_read(rv__str("{\"name\":\"w\",\"steps\":[{\"type\":\"branch\",\"alias\":\"b\","
                              "\"if\":\"${ .steps.x }\",\"then\":[{\"type\":\"step\",\"kind\":"
                              "\"value\",\"alias\":\"v\",\"with\":\"${ .steps.y }\"}]}]}"),
                      &plan, &err),
        RV_OK);
    assert_int_equal(rv__define_check_refs(plan, &define_compiler, &bad, &err), RV_EINVAL);
    assert_int_equal(bad.count, 2);
    assert_str(bad.items[0].path, "b");
    assert_str(bad.items[0].message, "there is no node 'x'");
    assert_str(bad.items[1].path, "b:then:node0:v");
    rv__plan_free(plan);
    rv__arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_checked),
        cmocka_unit_test(secrets_are_only_where_something_is_sent),
        cmocka_unit_test(schemas_of_signals_are_checked),
        cmocka_unit_test(a_plan_of_any_origin_can_be_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
