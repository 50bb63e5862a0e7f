/* test_table.c: the table of a workflow file as a plan document. For src/define/table.c. */
#include "unit/test.h"

#include "define/define.h"

static int nothing(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int other(rv_ctx *c)
{
    (void)c;
    return 1;
}

#define TABLE(steps_, ...)                                       \
    (&(const rv_workflow_def){ .abi = RV_FILE_ABI,               \
                               .size = sizeof(rv_workflow_def),  \
                               .node_size = sizeof(rv_node_def), \
                               .name = "w",                      \
                               .steps = (steps_),                \
                               __VA_ARGS__ })

static void each_kind_has_its_words(void **state)
{
    const struct {
        const rv_node_def *node;
        const char *json;
    } rows[] = {
        { RV_STEP(nothing), "{\"type\":\"step\",\"name\":\"nothing\"}" },
        { RV_STEP(nothing, .alias = "a", .timeout_ms = 5, .on_timeout = RV_RETRY, .max_attempts = 3,
                  .backoff = RV_EXPONENTIAL, .backoff_base_ms = 10, .max_backoff_ms = 20,
                  .jitter = 0.5, .retry_on = "[ 75 ]", .no_retry_on = "[\"dns\"]",
                  .continue_on_error = true, .hide_input = true, .needs = RV_NEEDS("x", "y"),
                  .when = other, .on_error = other),
          "{\"type\":\"step\",\"alias\":\"a\",\"when\":{\"fn\":\"a.when\"},\"name\":\"nothing\","
          "\"timeout\":5,\"onTimeout\":\"retry\",\"maxAttempts\":3,\"backoff\":\"exponential\","
          "\"backoffBaseMs\":10,\"maxBackoffMs\":20,\"jitter\":0.5,\"retryOn\":[ 75 ],"
          "\"noRetryOn\":[\"dns\"],\"continueOnError\":true,\"recordInput\":false,\"needs\":[\"x\","
          "\"y\"],"
          "\"onError\":{\"name\":\"a.onError\"}}" },
        { RV_STEP(nothing, .when_expr = "${ .input.x }", .description = "d ${ .result }"),
          "{\"type\":\"step\",\"when\":\"${ .input.x }\",\"description\":\"d ${ .result }\","
          "\"name\":\"nothing\"}" },
        { RV_HTTP("http://x/${ .input.id }", .alias = "h", .max_attempts = 2),
          "{\"type\":\"step\",\"alias\":\"h\",\"kind\":\"http\",\"with\":{\"url\":"
          "\"http://x/${ .input.id }\"},\"maxAttempts\":2}" },
        { RV_HTTP(
              RV_JSON({ "url" : "http://x", "timeout" : "1m", "body" : { "a" : [ 1, true ] } })),
          "{\"type\":\"step\",\"kind\":\"http\",\"with\":{\"url\":\"http://x\",\"timeout\":60000,"
          "\"body\":{\"a\":[1,true]}}}" },
        { RV_COMMAND(RV_JSON([ "./saw", "${ .loop.item }", 5 ]), .on_error = other, .alias = "c"),
          "{\"type\":\"step\",\"alias\":\"c\",\"kind\":\"command\",\"with\":{\"argv\":[\"./saw\","
          "\"${ .loop.item }\",5]},\"onError\":{\"name\":\"c.onError\"}}" },
        { RV_COMMAND(RV_JSON({ "argv" : ["ls"], "stdin" : "none", "output" : "text" })),
          "{\"type\":\"step\",\"kind\":\"command\",\"with\":{\"argv\":[\"ls\"],\"stdin\":\"none\","
          "\"output\":\"text\"}}" },
        { RV_VALUE("${ .input.id }"),
          "{\"type\":\"step\",\"kind\":\"value\",\"with\":\"${ .input.id }\"}" },
        { RV_VALUE("5"), "{\"type\":\"step\",\"kind\":\"value\",\"with\":5}" },
        { RV_VALUE("five"), "{\"type\":\"step\",\"kind\":\"value\",\"with\":\"five\"}" },
        { RV_CALL("charge", .timeout_ms = 9),
          "{\"type\":\"step\",\"kind\":\"call\",\"name\":\"charge\",\"timeout\":9}" },
        { RV_SIGNAL(RV_JSON({ "name" : "go", "timeout" : "1m", "default" : [true] }), .alias = "g"),
          "{\"type\":\"step\",\"alias\":\"g\",\"kind\":\"signal\",\"with\":{\"name\":\"go\","
          "\"timeout\":60000,\"default\":[true]}}" },
        { RV_DELAY("1h30m"), "{\"type\":\"step\",\"kind\":\"delay\",\"with\":5400000}" },
        { RV_DELAY("${ .input.ms }"),
          "{\"type\":\"step\",\"kind\":\"delay\",\"with\":\"${ .input.ms }\"}" },
        { RV_NESTED("inner", .input = "${ .steps.a.result }"),
          "{\"type\":\"workflow\",\"name\":\"inner\",\"input\":\"${ .steps.a.result }\"}" },
        { RV_BRANCH("${ .input.x > 3 }", .then = RV_STEPS(RV_DELAY(1))),
          "{\"type\":\"branch\",\"if\":\"${ .input.x > 3 }\",\"then\":[{\"type\":\"step\",\"kind\":"
          "\"delay\",\"with\":1}]}" },
        { RV_UNTIL("${ .steps.x.result }", .body = RV_STEPS(RV_DELAY(1))),
          "{\"type\":\"loop\",\"until\":\"${ .steps.x.result }\","
          "\"body\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}" },
        { RV_FOREACH("[1,\"a\"]", .body = RV_STEPS(RV_DELAY(1))),
          "{\"type\":\"forEach\",\"items\":[1,\"a\"],"
          "\"run\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}" },
        { RV_DELAY(50), "{\"type\":\"step\",\"kind\":\"delay\",\"with\":50}" },
        { RV_SIGNAL("go", .timeout_ms = 5, .default_json = " [1] "),
          "{\"type\":\"step\",\"kind\":\"signal\",\"with\":{\"name\":\"go\",\"timeout\":5,"
          "\"default\":[1]}}" },
        { RV_NESTED("inner", .alias = "n"),
          "{\"type\":\"workflow\",\"alias\":\"n\",\"name\":\"inner\"}" },
        { RV_BRANCH(nothing, .then = RV_STEPS(RV_DELAY(1)), .otherwise = RV_STEPS(RV_DELAY(2))),
          "{\"type\":\"branch\",\"if\":{\"fn\":\"nothing\"},\"then\":[{\"type\":\"step\",\"kind\":"
          "\"delay\",\"with\":1}],\"else\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":2}]}" },
        { RV_WHILE(nothing, .body = RV_STEPS(RV_DELAY(1)), .max_iterations = 7,
                   .keep = RV_KEEP_NONE),
          "{\"type\":\"loop\",\"while\":{\"fn\":\"nothing\"},\"maxIterations\":7,\"keep\":\"none\","
          "\"body\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}" },
        { RV_UNTIL(nothing, .body = RV_STEPS(RV_DELAY(1))),
          "{\"type\":\"loop\",\"until\":{\"fn\":\"nothing\"},"
          "\"body\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}" },
        { RV_FOREACH(nothing, .body = RV_STEPS(RV_DELAY(1)), .parallel = true, .concurrency = 4,
                     .collect = true, .label = "no ${ .loop.index }"),
          "{\"type\":\"forEach\",\"items\":{\"fn\":\"nothing\"},"
          "\"label\":\"no ${ .loop.index }\",\"parallel\":true,\"concurrency\":"
          "4,\"onFailure\":\"collect\","
          "\"run\":[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}" },
        { RV_CONCURRENT(.detached = true, .collect = true,
                        .body = RV_STEPS(RV_STEP(nothing),
                                         RV_NODES("b", .body = RV_STEPS(RV_DELAY(1))))),
          "{\"type\":\"concurrent\",\"continueOn\":\"detached\",\"onFailure\":\"collect\","
          "\"steps\":"
          "[{\"type\":\"step\",\"name\":\"nothing\"},{\"alias\":\"b\",\"nodes\":"
          "[{\"type\":\"step\",\"kind\":\"delay\",\"with\":1}]}]}" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rv_node_def *steps[] = { rows[i].node, NULL };
        struct rv__table table;
        struct rv__draft *draft = NULL;
        rv_error err;
        char expected[1024];
        if (rv__table_read(TABLE(steps, .rv_end = 0), &table, &err) < 0)
            fail_msg("row %zu: %s", i, err.message);
        snprintf(expected, sizeof expected, "{\"name\":\"w\",\"steps\":[%s]}", rows[i].json);
        assert_str(rv__buf_view(&table.plan), expected);
        assert_int_equal(rv__draft_read(rv__buf_view(&table.plan), &draft, &err), RV_OK);
        rv__draft_free(draft);
        rv__table_done(&table);
    }
}

static void functions_are_found_by_name(void **state)
{
    struct rv__table table;
    (void)state;
    assert_int_equal(rv__table_read(TABLE(RV_STEPS(RV_STEP(nothing, .when = other)),
                                          .description = "d", .input = " {\"type\":\"object\"}",
                                          .on_error = other, .secrets = RV_SECRETS("A", "B")),
                                    &table, NULL),
                     RV_OK);
    assert_true(rv__table_find(&table, rv__str("nothing")) == nothing);
    assert_true(rv__table_find(&table, rv__str("nothing.when")) == other);
    assert_true(rv__table_find(&table, rv__str("onError")) == other);
    assert_null(rv__table_find(&table, rv__str("nobody")));
    assert_int_equal(table.function_count, 3);
    assert_str(rv__buf_view(&table.plan),
               "{\"name\":\"w\",\"description\":\"d\",\"input\":{\"type\":\"object\"},\"secrets\":["
               "\"A\",\"B\"],\"steps\":"
               "[{\"type\":\"step\",\"when\":{\"fn\":\"nothing.when\"},\"name\":\"nothing\"}],"
               "\"onError\":{\"name\":\"onError\"}}");
    rv__table_done(&table);
}

static void mistakes_are_told(void **state)
{
    const struct {
        const rv_node_def *node;
        const char *says;
    } rows[] = {
        { RV_DELAY(5, .max_attempts = 2), "a field that only steps have" },
        { RV_STEP(nothing, .parallel = true), ".parallel" },
        { RV_STEP(nothing, .body = RV_STEPS(RV_DELAY(1))), ".body" },
        { RV_STEP(nothing, .backoff = 7), ".backoff cannot be 7" },
        { RV_SIGNAL("s", .default_json = "{"), "not JSON" },
        { RV_BRANCH(nothing, .then = RV_STEPS(RV_STEP(nothing, .when = nothing),
                                              RV_STEP(nothing, .when = other))),
          "two functions would have the name 'nothing.when'" },
        { &(const rv_node_def){ .kind = RV_NODE_STEP, .name = "f" }, "is NULL" },
        { RV_HTTP(NULL, .alias = "h"), "the node 'h' does not say what to do" },
        { RV_HTTP("ftp://x"), "must be an address that begins with http:// or https://" },
        { RV_HTTP(RV_JSON({ "method" : "GET" })), "http needs a 'url'" },
        { RV_HTTP(RV_JSON({ "url" : "http://x", "metod" : "GET" })), "did you mean 'method'?" },
        { RV_HTTP("{\"url\":"), "line 1, column 8" },
        { RV_COMMAND("ls"), "a command must be a list" },
        { RV_COMMAND(RV_JSON({ "argv" : ["ls"], "stdin" : 5 })), "must be context, none" },
        { RV_SIGNAL(RV_JSON({ "nam" : "go" })), "did you mean 'name'?" },
        { RV_SIGNAL("{\"name\":\"go\"}", .timeout_ms = 5),
          "takes its timeout and default in the JSON" },
        { RV_DELAY("soon"), "must be a duration" },
        { RV_VALUE("[1,"), ".with is not JSON" },
        { RV_NESTED("w", .input = "{"), ".input is not JSON" },
        { RV_STEP(nothing, .when = other, .when_expr = "${ true }"), ".when besides .when_expr" },
        { RV_STEP(nothing, .with = "x"), ".with" },
        { RV_CALL("f", .with = "x"), ".with" },
        { RV_NODES("n", .description = "x"), ".description" },
        { &(const rv_node_def){ .kind = 99 }, "make nodes with RV_STEP" },
    };
    rv_error err;
    struct rv__table table;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rv_node_def *steps[] = { rows[i].node, NULL };
        assert_int_equal(rv__table_read(TABLE(steps, .rv_end = 0), &table, &err), RV_EINVAL);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
    rv_workflow_def old = *TABLE(RV_STEPS(RV_DELAY(1)), .rv_end = 0);
    old.abi = 0;
    assert_int_equal(rv__table_read(&old, &table, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "compile it again"));
}

/* A table can only be a loop by intent, and still must not hang us. */
static void a_table_without_end_is_refused(void **state)
{
    rv_error err;
    struct rv__table table;
    rv_node_def loop = { .kind = RV_NODE_WHILE, .name = "c", .fn = nothing };
    const rv_node_def *const body[] = { &loop, NULL };
    (void)state;
    loop.body = body;
    assert_int_equal(rv__table_read(TABLE(body, .rv_end = 0), &table, &err), RV_ETOOBIG);
}

static int read_one(void)
{
    struct rv__table table;
    int rc = rv__table_read(TABLE(RV_STEPS(RV_STEP(nothing, .when = other)), .rv_end = 0), &table,
                            NULL);
    if (rc == RV_OK)
        rv__table_done(&table);
    return rc;
}

static void no_memory_is_told(void **state)
{
    int rc;
    (void)state;
    TORTURE(rc, read_one(), (void)0);
    assert_int_equal(rc, RV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_words), cmocka_unit_test(functions_are_found_by_name),
        cmocka_unit_test(mistakes_are_told),       cmocka_unit_test(a_table_without_end_is_refused),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
