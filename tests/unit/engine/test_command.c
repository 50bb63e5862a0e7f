/* test_command.c: command steps on a real engine, with real programs. For src/engine/command.c. */
#include "unit/test.h"

#include <unistd.h>

#include <rival/rival.h>

struct fixture {
    char folder[64];
    rv_engine *engine;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    char store[96];
    if (fx == NULL)
        return -1;
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    *state = fx;
    if (mkdtemp(fx->folder) == NULL)
        return -1;
    snprintf(store, sizeof store, "%s/rival.db", fx->folder);
    return rv_engine_new(RV_ENGINE_OPTS(.store = store), &fx->engine, &fx->err);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->folder);
    int rc = system(command);
    free(fx);
    return rc;
}

/* A file with one workflow "w" of these steps. */
static void define(struct fixture *fx, const char *steps)
{
    char path[200];
    snprintf(path, sizeof path, "%s/w.yaml", fx->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: w\nsteps:\n%s", steps);
    assert_int_equal(fclose(file), 0);
    if (rv_register_file(fx->engine, path, RV_FILE_OPTS(.replace = true), &fx->err) != 1)
        fail_msg("%s", fx->err.message);
}

static rv_outcome *run(struct fixture *fx, const char *run_id, const char *input)
{
    rv_outcome *outcome = NULL;
    if (rv_run(fx->engine, "w", input, RV_RUN_OPTS(.run_id = run_id), NULL, &fx->err) < 0 ||
        rv_wait(fx->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 20000), &outcome, &fx->err) <
            0)
        fail_msg("%s", fx->err.message);
    return outcome;
}

static void expect(struct fixture *fx, const char *run_id, const char *input, const char *part)
{
    rv_outcome *outcome = run(fx, run_id, input);
    if (strstr(outcome->results, part) == NULL && strstr(outcome->error, part) == NULL)
        fail_msg("%s\n%s %s", part, outcome->results, outcome->error);
    rv_outcome_free(outcome);
}

static void a_command_gets_its_words_and_gives_its_output(void **state)
{
    struct fixture *fx = *state;
    define(fx, "  - text: { command: [echo, \"${ .input.word }\", 5, { a: 1 }] }\n"
               "  - json: { command: [echo, \"{\\\"n\\\": 12345678901234567890}\"] }\n"
               "  - nothing: { command: [\"true\"] }\n"
               "  - forced: { command: [echo, \"5\"], output: text }\n");
    expect(fx, "a", "{\"word\":\"two words\"}",
           "\"text\":{\"result\":\"two words 5 {\\\"a\\\":1}\"");
    expect(fx, "b", "{\"word\":1}", "\"json\":{\"result\":{\"n\": 12345678901234567890}");
    expect(fx, "c", "{\"word\":1}", "\"nothing\":{\"result\":null");
    expect(fx, "d", "{\"word\":1}", "\"forced\":{\"result\":\"5\"");
}

static void it_knows_who_it_is_and_what_was_before(void **state)
{
    struct fixture *fx = *state;
    define(fx, "  - env: { command: [sh, -c, 'echo \"$RIVAL_RUN_ID $RIVAL_WORKFLOW $RIVAL_STEP "
               "$RIVAL_PATH $RIVAL_ATTEMPT $X\"'], env: { X: \"${ 1 + 1 }\" } }\n"
               "  - stdin: { command: [cat] }\n"
               "  - none: { command: [cat], stdin: none }\n"
               "  - here: { command: [ls, w.yaml] }\n");
    expect(fx, "a", NULL, "\"env\":{\"result\":\"a w env env 1 2\"");
    expect(fx, "b", "[1]",
           "\"stdin\":{\"result\":{\"input\":[1],\"lastStep\":{\"result\":\"b w env env 1 2\",");
    expect(fx, "c", NULL, "\"none\":{\"result\":null");
    expect(fx, "d", NULL, "\"here\":{\"result\":\"w.yaml\"");
}

static void it_says_more_by_the_control_file(void **state)
{
    struct fixture *fx = *state;
    define(fx,
           "  - said: { command: [sh, -c, 'echo \"{\\\"description\\\": \\\"did it\\\", "
           "\\\"state\\\": "
           "{\\\"k\\\": 1}}\" > $RIVAL_CONTROL; echo 7'] }\n"
           "  - skips: { command: [sh, -c, 'echo \"{\\\"skipped\\\": true}\" > $RIVAL_CONTROL'] }\n"
           "  - goes_on: { command: [sh, -c, 'echo \"{\\\"error\\\": {\\\"message\\\": \\\"never "
           "mind\\\", "
           "\\\"behavior\\\": \\\"continue\\\"}}\" > $RIVAL_CONTROL; exit 1'], maxAttempts: 5 }\n"
           "  - after: { command: [echo, ok] }\n");
    expect(fx, "a", NULL, "\"said\":{\"result\":7,\"state\":{\"k\":1,\"description\":\"did it\"}");
    expect(fx, "b", NULL,
           "\"skips\":{\"result\":null,\"state\":{\"skipped\":true},\"status\":\"skipped\"}");
    expect(fx, "c", NULL, "\"goes_on\":{\"result\":null,\"state\":{},\"status\":\"failed\"}");
    expect(fx, "d", NULL, "\"after\":{\"result\":\"ok\"");
}

static void a_failure_has_the_tail_of_stderr_and_the_log_all_of_it(void **state)
{
    struct fixture *fx = *state;
    rv_log_list *page = NULL;
    define(fx,
           "  - bad: { command: [sh, -c, 'echo first >&2; echo last >&2; exit 3'], maxAttempts: 2, "
           "backoffBaseMs: 1 }\n");
    expect(fx, "a", NULL, "last");
    if (rv_logs(fx->engine, "a", NULL, &page, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    assert_int_equal(page->count, 4); /* two lines of two attempts */
    assert_string_equal(page->lines[0].message, "first");
    assert_int_equal(page->lines[3].attempt, 2);
    rv_log_list_free(page);
    define(fx, "  - no: { command: [./not-there] }\n");
    expect(fx, "b", NULL, "not-there");
}

static void a_command_that_is_cancelled_or_too_slow_is_ended(void **state)
{
    struct fixture *fx = *state;
    rv_outcome *outcome = NULL;
    define(fx, "  - slow: { command: [sleep, \"1000\"], timeout: 100ms }\n");
    expect(fx, "a", NULL, "\"slow\":{\"result\":null,\"state\":{},\"status\":\"failed\"}");
    define(fx, "  - slow: { command: [sleep, \"1000\"] }\n");
    assert_int_equal(rv_run(fx->engine, "w", NULL, RV_RUN_OPTS(.run_id = "b"), NULL, &fx->err), 0);
    assert_int_equal(rv_cancel_run(fx->engine, "b", &fx->err), 0);
    assert_int_equal(rv_wait(fx->engine, NULL, "b", NULL, &outcome, &fx->err), 0);
    assert_int_equal(outcome->status, RV_CANCELLED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_engine_close(fx->engine), 0); /* nobody is left at work */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_gets_its_words_and_gives_its_output, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(it_knows_who_it_is_and_what_was_before, setup, teardown),
        cmocka_unit_test_setup_teardown(it_says_more_by_the_control_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_has_the_tail_of_stderr_and_the_log_all_of_it,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_command_that_is_cancelled_or_too_slow_is_ended, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
