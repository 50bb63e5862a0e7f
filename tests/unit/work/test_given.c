/* test_given.c: what attempts were given, as people see it afterwards. For src/work/given.c, and the way of it
 * through facts, journal and readers. */
#include <jansson.h>

#include "engine/engine.h"
#include "unit/engine/rig.h"

static atomic_bool held; /* steps wait while it is set */

/* The attempt's input; NULL: it has none. A static room. */
static const char *input_of(struct rig *rig, const char *run_id, const char *path, size_t attempt)
{
    static char text[65536];
    rv_node_detail *node = NULL;
    if (rv_node_get(rig->engine, run_id, path, &node, &rig->err) < 0)
        fail_msg("%s: %s", path, rig->err.message);
    bool there = attempt < node->attempt_count && *node->attempts[attempt].input != '\0';
    snprintf(text, sizeof text, "%s", there ? node->attempts[attempt].input : "");
    rv_node_detail_free(node);
    return there ? text : NULL;
}

static void expect_input(struct rig *rig, const char *run_id, const char *path, const char *json)
{
    const char *input = input_of(rig, run_id, path, 0);
    if (input == NULL || strcmp(input, json) != 0)
        fail_msg("%s was given %s, not %s", path, input != NULL ? input : "nothing", json);
}

static void expect_nothing(struct rig *rig, const char *run_id, const char *path)
{
    const char *input = input_of(rig, run_id, path, 0);
    if (input != NULL)
        fail_msg("%s was given %s", path, input);
}

static void run_to_end(struct rig *rig, const char *run_id, const char *input)
{
    rv_outcome_free(rig_outcome(rig, run_id, input));
}

static void a_command_shows_its_words_and_its_input(void **state)
{
    struct rig *rig = *state;
    rig_define(rig,
               "  - words: { command: [echo, \"${ .input.word }\", 5], env: { X: \"y\" } }\n"
               "  - said: { command: [cat], stdin: \"${ {a: .input.word} }\" }\n"
               "  - none: { command: [\"true\"], stdin: none }\n"
               "  - each:\n"
               "      forEach: [10, 20]\n"
               "      run: [ { one: { command: [echo, \"${ .loop.index }\"] } } ]\n"
               "  - away: { command: [\"/not/there\"], stdin: none, continueOnError: true }\n");
    run_to_end(rig, "a", "{\"word\":\"two words\"}");
    expect_input(rig, "a", "words",
                 "{\"argv\":[\"echo\",\"two words\",5],\"env\":{\"X\":\"y\"},"
                 "\".input\":{\"word\":\"two words\"}}");
    expect_input(rig, "a", "said", "{\"argv\":[\"cat\"],\"stdin\":{\"a\":\"two words\"}}");
    expect_input(rig, "a", "none", "{\"argv\":[\"true\"]}");
    expect_input(rig, "a", "each:iter1:node0:one",
                 "{\".loop.item\":20,\"argv\":[\"echo\",1],\".input\":{\"word\":\"two words\"},"
                 "\".lastStep.result\":null}");
    expect_input(rig, "a", "away", "{\"argv\":[\"/not/there\"]}");
}

static void expressions_and_requests_show_what_they_see(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - sum: { value: \"${ .input.a + .input.b }\" }\n"
                    "  - twice: { value: \"${ .steps.sum.result * 2 }\" }\n"
                    "  - wrong: { value: \"${ .input.a | keys }\", continueOnError: true }\n"
                    "  - wait: { delay: \"${ .input.b }ms\" }\n"
                    "  - ask: { http: { url: \"http://127.0.0.1:1/${ .input.a }\", method: POST,"
                    " body: { n: \"${ .input.a }\" } }, continueOnError: true }\n");
    run_to_end(rig, "a", "{\"a\":4,\"b\":3}");
    expect_input(rig, "a", "sum", "{\".input\":{\"a\":4,\"b\":3}}");
    expect_input(rig, "a", "twice", "{\".steps.sum.result\":7}");
    expect_input(rig, "a", "wrong", "{\".input\":{\"a\":4,\"b\":3}}");
    expect_input(rig, "a", "wait", "{\"delay\":\"3ms\"}");
    expect_input(rig, "a", "ask",
                 "{\"method\":\"POST\",\"url\":\"http://127.0.0.1:1/4\",\"body\":{\"n\":4}}");
}

static int reads(rv_ctx *ctx)
{
    for (int i = 0; i < 1000; i++)
        (void)rv_str(ctx, ".input.word");
    (void)rv_json(ctx, ".input.nothing");
    (void)rv_int(ctx, ".input.n", 0);
    while (atomic_load(&held) && !rv_ctx_cancelled(ctx))
        rv_cancel_wait(NULL, 2);
    (void)rv_json(ctx, ".input.last");
    return 0;
}

static void put_readers(struct rig *rig, const rv_step_opts *opts)
{
    rv_workflow *workflow = rv_workflow_new("readers");
    rv_body *body = rv_workflow_body(workflow);
    rv_add_step(body, "reads", reads, opts);
    rig_put(rig, workflow);
}

static const char READ[] = "{\".input.word\":\"x\",\".input.n\":7,\".input.last\":true}";
static const char INPUT[] = "{\"word\":\"x\",\"n\":7,\"last\":true}";

static void a_function_shows_what_it_read_once(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    put_readers(rig, NULL);
    rig_run(rig, "readers", "a", INPUT);
    (void)rig_wait(rig, "a");
    expect_input(rig, "a", "reads", READ);
}

static void what_is_not_to_be_recorded_is_not(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - quiet: { command: [echo, hidden-word], recordInput: false }\n"
                    "  - loud: { command: [echo, shown-word], stdin: none, recordInput: true }\n");
    run_to_end(rig, "a", NULL);
    expect_nothing(rig, "a", "quiet");
    expect_input(rig, "a", "loud", "{\"argv\":[\"echo\",\"shown-word\"]}");
    put_readers(rig, RV_STEP_OPTS(.hide_input = true));
    rig_run(rig, "readers", "b", INPUT);
    (void)rig_wait(rig, "b");
    expect_nothing(rig, "b", "reads");
}

static void long_values_are_cut_and_stay_json(void **state)
{
    struct rig *rig = *state;
    rig_define(rig,
               "  - shared: { value: \"${ .input.word | length }\" }\n"
               "  - text: { command: [\"true\"], stdin: \"${ .input.word * 3000 }\" }\n"
               "  - value: { command: [\"true\"], stdin: \"${ [range(20000)] }\" }\n"
               "  - many: { command: [\"true\", \"${ .input.word * 1000 }\", b], cwd: \"/tmp\","
               " stdin: \"${ .input.word * 1000 }\" }\n");
    char *word = malloc(4001), *input = malloc(5000);
    memset(word, 'w', 4000);
    memcpy(word, "\\\"\\u00e9é", 10); /* escapes and more bytes than characters */
    word[4000] = '\0';
    snprintf(input, 5000, "{\"word\":\"%s\"}", "\\\"é\\\\xyz");
    run_to_end(rig, "a", input);
    snprintf(input, 5000, "{\"word\":\"%s\"}", word);
    run_to_end(rig, "b", input);
    static const char *const rows[][2] = { { "a", "text" }, { "a", "value" }, { "a", "many" },
                                           { "b", "text" }, { "b", "many" },  { "b", "shared" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *given = input_of(rig, rows[i][0], rows[i][1], 0);
        json_error_t why;
        json_t *json = given != NULL ? json_loads(given, 0, &why) : NULL;
        if (json == NULL)
            fail_msg("%s %s: %s", rows[i][0], rows[i][1], given != NULL ? why.text : "nothing");
        if (strlen(given) > RV_GIVEN_BYTES || strstr(given, "… (") == NULL)
            fail_msg("%s %s: %zu bytes: %.200s", rows[i][0], rows[i][1], strlen(given), given);
        bool shared = strcmp(rows[i][1], "shared") == 0;
        if (shared ? strlen(given) > 1200 : strlen(given) < RV_GIVEN_BYTES - 400)
            fail_msg("%s %s: %zu bytes", rows[i][0], rows[i][1], strlen(given));
        json_decref(json);
    }
    free(word);
    free(input);
}

static void secrets_are_masked_before_anything_is_cut(void **state)
{
    struct rig *rig = *state;
    char path[200];
    setenv("RV_TEST_KEY", "hunter2-\"secret\"", 1);
    rig_open(rig, NULL);
    snprintf(path, sizeof path, "%s/w.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: w\nsecrets: [RV_TEST_KEY]\nsteps:\n"
                  "  - words: { command: [\"true\", '${ .secrets.RV_TEST_KEY }'], env: { K: '${ "
                  ".secrets.RV_TEST_KEY | @base64 }' } }\n"
                  "  - cut: { command: [cat], output: none, stdin: '${ (\"x\" * 16250) + "
                  ".secrets.RV_TEST_KEY + (\"y\" * 1000) }' }\n"
                  "  - ask: { http: { url: 'http://127.0.0.1:1/', headers: { A: 'Bearer ${ "
                  ".secrets.RV_TEST_KEY }' } }, continueOnError: true }\n");
    assert_int_equal(fclose(file), 0);
    assert_true(rv_register_file(rig->engine, path, NULL, &rig->err) >= 0);
    rig_run(rig, "w", "a", NULL);
    (void)rig_wait(rig, "a");
    unsetenv("RV_TEST_KEY");
    static const char *const paths[] = { "words", "cut", "ask" };
    for (size_t i = 0; i < 3; i++) {
        const char *given = input_of(rig, "a", paths[i], 0);
        if (given == NULL || strstr(given, "hunter") != NULL || strstr(given, "aHVudGVy") != NULL)
            fail_msg("%s: %s", paths[i], given);
        if (strcmp(paths[i], "cut") != 0 && strstr(given, "***") == NULL)
            fail_msg("%s: %s", paths[i], given);
    }
}

/* A crash of the process leaves what was on disk: that is the same as reading it while it runs. */
static void what_runs_shows_it_within_a_moment(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    put_readers(rig, NULL);
    atomic_store(&held, true);
    rig_run(rig, "readers", "a", INPUT);
    static const char both[] = "{\".input.word\":\"x\",\".input.n\":7}";
    const char *input = NULL;
    for (int i = 0; i < 4000 && (input == NULL || strcmp(input, both) != 0); i++) {
        rv_cancel_wait(NULL, 5);
        input = input_of(rig, "a", "reads", 0);
    }
    if (input == NULL || strcmp(input, both) != 0)
        fail_msg("while it runs: %s", input);
    atomic_store(&held, false);
    (void)rig_wait(rig, "a");
    expect_input(rig, "a", "reads", READ); /* the rest came with its end, once */
}

static void each_attempt_has_its_own_however_it_ends(void **state)
{
    struct rig *rig = *state;
    rig_define(rig,
               "  - again: { command: [sh, -c, 'exit 1', \"${ .run.attempt }\"], stdin: none,"
               " maxAttempts: 3, backoffBaseMs: 1, continueOnError: true }\n"
               "  - slow: { command: [sleep, '30'], stdin: none, timeout: 20ms, onTimeout: retry,"
               " maxAttempts: 2, backoffBaseMs: 1, continueOnError: true }\n"
               "  - ends: { command: [sleep, '31'], stdin: none }\n");
    rig_run(rig, "w", "a", NULL);
    rv_node_list *list = NULL;
    for (bool runs = false; !runs; rv_cancel_wait(NULL, 2)) {
        assert_int_equal(rv_nodes(rig->engine, "a", NULL, &list, &rig->err), RV_OK);
        runs = strcmp(list->nodes[2].status, "running") == 0;
        rv_node_list_free(list);
    }
    rv_cancel_wait(NULL, 300);
    assert_int_equal(rv_cancel_run(rig->engine, "a", &rig->err), RV_OK);
    for (size_t i = 0; i < 3; i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "{\"argv\":[\"sh\",\"-c\",\"exit 1\",%zu]}", i + 1);
        assert_string_equal(input_of(rig, "a", "again", i), expected);
    }
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(input_of(rig, "a", "slow", i), "{\"argv\":[\"sleep\",\"30\"]}");
    expect_input(rig, "a", "ends", "{\"argv\":[\"sleep\",\"31\"]}");
}

/* Where texts are values as soon as they have nine bytes, readers find the same. */
static void it_may_be_a_value(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    rig->engine->commit.value_inline = 8;
    put_readers(rig, NULL);
    atomic_store(&held, true);
    rig_run(rig, "readers", "a", INPUT);
    while (input_of(rig, "a", "reads", 0) == NULL)
        rv_cancel_wait(NULL, 5);
    atomic_store(&held, false);
    (void)rig_wait(rig, "a");
    expect_input(rig, "a", "reads", READ);
}

static void it_goes_with_the_run(void **state)
{
    struct rig *rig = *state;
    char path[200];
    rv_run_info info;
    rig_define(rig, "  - said: { command: [cat], stdin: \"${ .input }\" }\n");
    run_to_end(rig, "a", "[1,2]");
    snprintf(path, sizeof path, "%s/a.run", rig->folder);
    assert_int_equal(rv_export(rig->engine, "a", RV_EXPORT_OPTS(.path = path), &rig->err), RV_OK);
    rig_close(rig);
    snprintf(rig->store, sizeof rig->store, "%s/other.db", rig->folder);
    rig_open(rig, NULL);
    assert_int_equal(rv_import(rig->engine, RV_IMPORT_OPTS(.path = path), &info, &rig->err), RV_OK);
    expect_input(rig, "a", "said", "{\"argv\":[\"cat\"],\"stdin\":[1,2]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_command_shows_its_words_and_its_input),
        RIG_TEST(expressions_and_requests_show_what_they_see),
        RIG_TEST(a_function_shows_what_it_read_once),
        RIG_TEST(what_is_not_to_be_recorded_is_not),
        RIG_TEST(long_values_are_cut_and_stay_json),
        RIG_TEST(secrets_are_masked_before_anything_is_cut),
        RIG_TEST(what_runs_shows_it_within_a_moment),
        RIG_TEST(each_attempt_has_its_own_however_it_ends),
        RIG_TEST(it_may_be_a_value),
        RIG_TEST(it_goes_with_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
