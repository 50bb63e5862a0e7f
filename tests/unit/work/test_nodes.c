/* test_nodes.c: nodes that C says in the words of YAML, run by a real engine: in files, and in the builder.
 * For src/define/table.c, src/define/builder.c. */
#include "unit/test.h"

#include <jansson.h>
#include <unistd.h>

#include <rival/rival.h>

struct fixture {
    char cache[64];
    rv_engine *engine;
    rv_workflow *workflow;
    char run_id[RV_RUN_ID_SIZE]; /* of the last run */
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    snprintf(fx->cache, sizeof fx->cache, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(fx->cache) == NULL || setenv("XDG_CACHE_HOME", fx->cache, 1) < 0)
        return -1;
    return rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .hosts = 2), &fx->engine, &fx->err);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv_workflow_free(fx->workflow);
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->cache);
    int rc = system(command);
    free(fx);
    return rc;
}

static void put_file(struct fixture *fx, const char *name, bool in_process)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/unit/work/files/%s", TESTS, name);
    if (rv_register_file(fx->engine, path, RV_FILE_OPTS(.in_process = in_process), &fx->err) < 0)
        fail_msg("cannot register: %s", fx->err.message);
}

/* The labels of the iterations of a node, one after the other. */
static void labels_of(struct fixture *fx, const char *run, const char *parent, char ret[200])
{
    rv_node_list *list = NULL;
    if (rv_nodes(fx->engine, run, RV_NODE_QUERY(.parent = parent), &list, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    ret[0] = '\0';
    for (size_t i = 0, used = 0; i < list->count && used < 200; i++)
        used += (size_t)snprintf(ret + used, 200 - used, "%s|", list->nodes[i].label);
    rv_node_list_free(list);
}

/* The results of a run that is to complete. */
static json_t *results_of(struct fixture *fx, const char *workflow, const char *input)
{
    rv_outcome *outcome = NULL;
    rv_run_info info;
    if (rv_run(fx->engine, workflow, input, NULL, &info, &fx->err) < 0 ||
        rv_wait(fx->engine, NULL, info.run_id, RV_WAIT_OPTS(.timeout_ms = 60000), &outcome,
                &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    if (outcome->status != RV_COMPLETED)
        fail_msg("%s: %s", outcome->failed_step, outcome->error);
    json_t *results = json_loads(outcome->results, 0, NULL);
    snprintf(fx->run_id, sizeof fx->run_id, "%s", info.run_id);
    rv_outcome_free(outcome);
    return results;
}

/* One result, as JSON. */
static void expect(json_t *results, const char *alias, const char *json)
{
    char *text = json_dumps(json_object_get(json_object_get(results, alias), "result"),
                            JSON_ENCODE_ANY | JSON_COMPACT);
    if (text == NULL || strcmp(text, json) != 0)
        fail_msg("%s: %s", alias, text);
    free(text);
}

static void check_words(struct fixture *fx, bool in_process)
{
    char labels[200];
    put_file(fx, "words.c", in_process);
    json_t *results = results_of(fx, "words", "{\"kind\":\"ash\"}");
    labels_of(fx, fx->run_id, "planks", labels);
    assert_string_equal(labels, "branch a|branch b|");
    expect(results, "read", "\"a line beside the file\"");
    expect(results, "tree", "{\"branches\":[\"a\",\"b\"],\"of\":\"ash\",\"n\":3}");
    expect(results, "never", "null");
    expect(results, "planks",
           "{\"iterations\":["
           "{\"item\":\"a\",\"index\":0,\"results\":{\"plank\":{\"result\":{\"from\":\"a\"},"
           "\"state\":{},\"status\":\"completed\"}}},"
           "{\"item\":\"b\",\"index\":1,\"results\":{\"plank\":{\"result\":{\"from\":\"b\"},"
           "\"state\":{},\"status\":\"completed\"}}}]}");
    expect(json_object_get(json_object_get(json_object_get(results, "size"), "result"), "results"),
           "big", "\"big\"");
    assert_int_equal(
        json_array_size(json_object_get(
            json_object_get(json_object_get(results, "twice"), "result"), "iterations")),
        2);
    expect(results, "pay", "7");
    const char *said = json_string_value(
        json_object_get(json_object_get(json_object_get(results, "read"), "state"), "description"));
    assert_string_equal(said, "read a line beside the file");
    json_decref(results);
}

static void a_file_in_c_says_what_yaml_says(void **state)
{
    check_words(*state, false);
}

static void so_it_does_in_process(void **state)
{
    check_words(*state, true);
}

static int greet(rv_ctx *c)
{
    return rv_return(c, "{s:s}", "to", rv_str(c, ".steps.who.result"));
}

static int is_ada(rv_ctx *c)
{
    return rv_return_bool(c, strcmp(rv_str(c, ".input.name"), "Ada") == 0);
}

static void the_builder_takes_every_node(void **state)
{
    struct fixture *fx = *state;
    fx->workflow = rv_workflow_new("built");
    rv_body *body = rv_workflow_body(fx->workflow);
    rv_add(body, RV_VALUE("${ .input.name }", .alias = "who", .description = "it is ${ .result }"));
    rv_add(body, RV_STEP(greet, .when = is_ada));
    rv_add_step(body, "shout", greet,
                RV_STEP_OPTS(.name = "greet", .when_expr = "${ .input.loud }",
                             .description = "shouted at ${ .result.to }"));
    rv_add(body,
           RV_COMMAND(
               RV_JSON({ "argv" : [ "echo", "${ .steps.greet.result.to }" ], "output" : "text" }),
               .alias = "echo", .max_attempts = 2));
    rv_add(body, RV_CONCURRENT(.alias = "both", .body = RV_STEPS(RV_VALUE("1", .alias = "one"),
                                                                 RV_STEP(greet, .alias = "two"))));
    if (rv_register(fx->engine, fx->workflow, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    json_t *results = results_of(fx, "built", "{\"name\":\"Ada\",\"loud\":true}");
    expect(results, "who", "\"Ada\"");
    expect(results, "greet", "{\"to\":\"Ada\"}");
    expect(results, "shout", "{\"to\":\"Ada\"}");
    expect(results, "echo", "\"Ada\"");
    expect(json_object_get(json_object_get(results, "both"), "result"), "one", "1");
    expect(json_object_get(json_object_get(results, "both"), "result"), "two", "{\"to\":\"Ada\"}");
    json_decref(results);
    results = results_of(fx, "built", "{\"name\":\"Bob\",\"loud\":false}");
    expect(results, "greet", "null");
    expect(results, "shout", "null");
    json_decref(results);
}

static int two_orders(rv_ctx *c)
{
    return rv_return(c, "[{s:i}, {s:i}]", "id", 17, "id", 18);
}

/* Whoever makes the items, their labels are made behind them: paths alone, and with jq; one that cannot be made is
 * left out. */
static void items_of_functions_have_labels(void **state)
{
    struct fixture *fx = *state;
    char labels[200];
    fx->workflow = rv_workflow_new("labelled");
    rv_body *body = rv_workflow_body(fx->workflow);
    rv_add_step(rv_add_foreach(body, "plain", two_orders,
                               RV_FOREACH_OPTS(.label = "order ${ .loop.item.id }")),
                "in", two_orders, NULL);
    rv_add(body,
           RV_FOREACH(two_orders, .alias = "jq",
                      .label = "${ if .loop.index == 0 then error(\"no\") else .loop.item.id + 1 "
                               "end }",
                      .body = RV_STEPS(RV_STEP(two_orders, .alias = "in2"))));
    if (rv_register(fx->engine, fx->workflow, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    json_decref(results_of(fx, "labelled", NULL));
    labels_of(fx, fx->run_id, "plain", labels);
    assert_string_equal(labels, "order 17|order 18|");
    labels_of(fx, fx->run_id, "jq", labels);
    assert_string_equal(labels, "|19|");
}

static void the_builder_sends_secrets(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(setenv("RV_TEST_NODES", "eight bytes or more", 1), 0);
    for (int declared = 1; declared >= 0; declared--) {
        rv_workflow_free(fx->workflow);
        fx->workflow = rv_workflow_new(declared ? "sends" : "hides");
        if (declared)
            rv_workflow_secrets(fx->workflow, RV_SECRETS("RV_TEST_NODES"));
        rv_add(rv_workflow_body(fx->workflow),
               RV_COMMAND(RV_JSON([ "expr", "length", "${ .secrets.RV_TEST_NODES }" ]),
                          .alias = "count"));
        int rc = rv_register(fx->engine, fx->workflow, &fx->err);
        if (rc != (declared ? RV_OK : RV_EINVAL))
            fail_msg("declared %d: %d %s", declared, rc, fx->err.message);
    }
    assert_non_null(strstr(fx->err.message, "is not declared"));
    json_t *results = results_of(fx, "sends", NULL);
    expect(results, "count", "19");
    json_decref(results);
}

static const struct {
    const rv_node_def *node;
    const char *why;
} refused[] = {
    { NULL, "no node given" },
    { RV_HTTP("nowhere", .alias = "h"), "the node 'h': invalid url 'nowhere'" },
    { RV_VALUE("${ .steps.nobody.result }"), "there is no node 'nobody'" },
    { RV_VALUE("${ .inptu }"), "did you mean '.input'?" },
    { RV_VALUE("${ (", .alias = "v"), "bracket" },
    { RV_BRANCH("yes", .then = RV_STEPS(RV_VALUE("1"))), "if" },
    { RV_STEP(greet, .alias = "other", .timeout_ms = -1), "invalid timeout" },
    { RV_STEP(is_ada, .alias = "a b"), "alias" },
    { RV_STEP(is_ada, .label = "x"), ".label, which does not apply" },
};

static void the_builder_tells_what_is_wrong(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        rv_workflow_free(fx->workflow);
        fx->workflow = rv_workflow_new("refused");
        rv_add_step(rv_workflow_body(fx->workflow), "greet", greet, NULL);
        rv_add(rv_workflow_body(fx->workflow), refused[i].node);
        fx->err.message[0] = '\0';
        if (rv_register(fx->engine, fx->workflow, &fx->err) != RV_EINVAL ||
            strstr(fx->err.message, refused[i].why) == NULL)
            fail_msg("row %zu: %s", i, fx->err.message);
    }
}

/* ---------------------------------------------------------------------------- RV_FUNCTIONS --- */

static void write_file(struct fixture *fx, const char *name, const char *text, char path[200])
{
    snprintf(path, 200, "%s/%s", fx->cache, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        fail_msg("cannot write %s", path);
}

static void call_library(struct fixture *fx, bool in_process)
{
    char path[200];
    put_file(fx, "library.c", in_process);
    write_file(fx, "loan.yaml",
               "name: loan\nsteps:\n  - lend\n  - back: { call: library/take_back }\n", path);
    if (rv_register_file(fx->engine, path, NULL, &fx->err) != 1)
        fail_msg("%s", fx->err.message);
    json_t *results = results_of(fx, "loan", "{\"book\":\"Emma\"}");
    expect(results, "lend", "{\"book\":\"Emma\"}");
    expect(results, "back", "{\"back\":\"Emma\"}");
    json_decref(results);
    put_file(fx, "lib2/other.c", in_process); /* a workflow with functions for others, too */
    results = results_of(fx, "reading", "{\"book\":\"Emma\"}");
    expect(results, "take_back", "{\"back\":\"Emma\"}");
    json_decref(results);
    write_file(fx, "which.yaml", "name: which\nsteps:\n  - lend\n", path);
    if (rv_register_file(fx->engine, path, NULL, &fx->err) != RV_EINVAL ||
        strstr(fx->err.message, "library.c'") == NULL ||
        strstr(fx->err.message, "'reading'") == NULL)
        fail_msg("two of that name: %s", fx->err.message);
}

static void functions_of_a_library_are_called_by_name(void **state)
{
    call_library(*state, false);
}

static void functions_of_a_library_are_called_in_process(void **state)
{
    call_library(*state, true);
}

static void a_library_is_no_workflow(void **state)
{
    struct fixture *fx = *state;
    rv_workflow_list *list = NULL;
    rv_report *report = NULL;
    char path[4096];
    const char *paths[] = { path };
    snprintf(path, sizeof path, "%s/unit/work/files/library.c", TESTS);
    assert_int_equal(rv_register_file(fx->engine, path, NULL, &fx->err), 0);
    assert_int_equal(rv_workflows(fx->engine, &list, &fx->err), RV_OK);
    assert_int_equal(list->count, 0);
    rv_workflow_list_free(list);
    for (int depth = RV_C_FILES_NAMED; depth <= RV_C_FILES_LOADED; depth++) {
        assert_int_equal(
            rv_check_files(paths, 1, RV_CHECK_OPTS(.c_files = depth), &report, &fx->err), RV_OK);
        assert_int_equal(report->problem_count, 0);
        assert_int_equal(report->workflow_count, 0);
        rv_report_free(report);
    }
    fx->workflow = rv_workflow_new("nests");
    rv_add(rv_workflow_body(fx->workflow), RV_NESTED(path, .alias = "n"));
    if (rv_register(fx->engine, fx->workflow, &fx->err) != RV_EINVAL)
        fail_msg("a library can be nested");
}

static const struct {
    const char *text, *why;
    int line;
} broken[] = {
    { "#include <rival/rival.h>\n\nRV_FUNCTIONS(nobody)\n", "nobody", 3 },
    { "#include <rival/rival.h>\n\nRV_WORKFLOW(\"w\",\n  .steps = RV_STEPS(RV_STEP(nobody)))\n",
      "nobody", 4 },
    { "#include <rival/rival.h>\nstatic int f(rv_ctx *c) { (void)c; return 0; }\n"
      "#define g(x) f\nRV_FUNCTIONS(f, g(1))\n",
      "RV_FUNCTIONS takes names of functions", 0 },
};

static void a_function_that_is_not_there_is_an_error_at_its_line(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char path[200];
        const char *paths[] = { path };
        rv_report *report = NULL;
        write_file(fx, "broken.c", broken[i].text, path);
        assert_int_equal(rv_check_files(paths, 1, RV_CHECK_OPTS(.c_files = RV_C_FILES_LOADED),
                                        &report, &fx->err),
                         RV_OK);
        if (report->problem_count == 0 ||
            (broken[i].line > 0 && report->problems[0].line != broken[i].line) ||
            strstr(report->problems[0].message, broken[i].why) == NULL)
            fail_msg("row %zu: %zu problems, %s", i, report->problem_count,
                     report->problem_count > 0 ? report->problems[0].message : "");
        rv_report_free(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_in_c_says_what_yaml_says, setup, teardown),
        cmocka_unit_test_setup_teardown(so_it_does_in_process, setup, teardown),
        cmocka_unit_test_setup_teardown(the_builder_takes_every_node, setup, teardown),
        cmocka_unit_test_setup_teardown(items_of_functions_have_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(the_builder_sends_secrets, setup, teardown),
        cmocka_unit_test_setup_teardown(the_builder_tells_what_is_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(functions_of_a_library_are_called_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(functions_of_a_library_are_called_in_process, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_library_is_no_workflow, setup, teardown),
        cmocka_unit_test_setup_teardown(a_function_that_is_not_there_is_an_error_at_its_line, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
