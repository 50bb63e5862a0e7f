/* test_command.c: command steps on a real engine, with real programs. For src/work/command.c. */
#include "unit/engine/rig.h"

static void a_command_gets_its_words_and_gives_its_output(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - text: { command: [echo, \"${ .input.word }\", 5, { a: 1 }] }\n"
                    "  - json: { command: [echo, \"{\\\"n\\\": 12345678901234567890}\"] }\n"
                    "  - nothing: { command: [\"true\"] }\n"
                    "  - forced: { command: [echo, \"5\"], output: text }\n");
    rig_gives(rig, "a", "{\"word\":\"two words\"}",
              "\"text\":{\"result\":\"two words 5 {\\\"a\\\":1}\"");
    rig_gives(rig, "b", "{\"word\":1}", "\"json\":{\"result\":{\"n\": 12345678901234567890}");
    rig_gives(rig, "c", "{\"word\":1}", "\"nothing\":{\"result\":null");
    rig_gives(rig, "d", "{\"word\":1}", "\"forced\":{\"result\":\"5\"");
}

static void exit_codes_say_what_is_tried_again(void **state)
{
    struct rig *rig = *state;
    rig_define(rig,
               "  - busy: { command: [sh, -c, 'echo x >> n; test $(wc -l < n) -ge 3 || exit 75'],"
               " maxAttempts: 5, backoffBaseMs: 1, retryOn: [75] }\n"
               "  - wrong: { command: [sh, -c, 'echo x >> m; exit 2'], maxAttempts: 5,"
               " noRetryOn: [2], continueOnError: true }\n"
               "  - count: { command: [sh, -c, 'cat n m | wc -l'] }\n");
    rig_gives(rig, "a", NULL, "\"count\":{\"result\":4");
    rig_define(rig, "  - a: { command: [sh, -c, 'exit 7'] }\n");
    rig_gives(rig, "b", NULL, "\"exitCode\":7");
}

static void bytes_are_refused_or_kept_as_base64(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - a: { command: [printf, '\\377'] }\n");
    rig_gives(rig, "a", NULL, "`output: base64` keeps them");
    rig_define(rig, "  - a: { command: [printf, '\\377'], output: base64 }\n");
    rig_gives(rig, "b", NULL, "\"result\":\"/w==\"");
    rig_define(rig, "  - a: { command: [printf, '\\377'], output: none }\n");
    rig_gives(rig, "c", NULL, "\"result\":null,\"state\":{},\"status\":\"completed\"");
}

static void it_knows_who_it_is_and_what_was_before(void **state)
{
    struct rig *rig = *state;
    rig_define(rig,
               "  - env: { command: [sh, -c, 'echo \"$RIVAL_RUN_ID $RIVAL_WORKFLOW $RIVAL_STEP "
               "$RIVAL_PATH $RIVAL_ATTEMPT $X\"'], env: { X: \"${ 1 + 1 }\" } }\n"
               "  - stdin: { command: [cat] }\n"
               "  - none: { command: [cat], stdin: none }\n"
               "  - here: { command: [ls, w.yaml] }\n");
    rig_gives(rig, "a", NULL, "\"env\":{\"result\":\"a w env env 1 2\"");
    rig_gives(rig, "b", "[1]",
              "\"stdin\":{\"result\":{\"input\":[1],\"lastStep\":{\"result\":\"b w env env 1 2\",");
    rig_gives(rig, "c", NULL, "\"none\":{\"result\":null");
    rig_gives(rig, "d", NULL, "\"here\":{\"result\":\"w.yaml\"");
}

static void it_says_more_by_the_control_file(void **state)
{
    struct rig *rig = *state;
    rig_define(
        rig,
        "  - said: { command: [sh, -c, 'echo \"{\\\"description\\\": \\\"did it\\\", "
        "\\\"state\\\": "
        "{\\\"k\\\": 1}}\" > $RIVAL_CONTROL; echo 7'] }\n"
        "  - skips: { command: [sh, -c, 'echo \"{\\\"skipped\\\": true}\" > $RIVAL_CONTROL'] }\n"
        "  - goes_on: { command: [sh, -c, 'echo \"{\\\"error\\\": {\\\"message\\\": \\\"never "
        "mind\\\", "
        "\\\"behavior\\\": \\\"continue\\\"}}\" > $RIVAL_CONTROL; exit 1'], maxAttempts: 5 }\n"
        "  - after: { command: [echo, ok] }\n");
    rig_gives(rig, "a", NULL,
              "\"said\":{\"result\":7,\"state\":{\"k\":1,\"description\":\"did it\"}");
    rig_gives(rig, "b", NULL,
              "\"skips\":{\"result\":null,\"state\":{\"skipped\":true},\"status\":\"skipped\"}");
    rig_gives(rig, "c", NULL,
              "\"goes_on\":{\"result\":null,\"state\":{},\"status\":\"failed\",\"error\":{"
              "\"message\":\"never mind\",\"exitCode\":1,\"path\":\"goes_on\"}}");
    rig_gives(rig, "d", NULL, "\"after\":{\"result\":\"ok\"");
}

/* What it says counts, whatever its exit code. */
static void a_command_that_says_an_error_and_exits_with_0_has_failed(void **state)
{
    struct rig *rig = *state;
    rv_node_detail *again = NULL;
    rig_define(
        rig,
        "  - goes_on: { command: [sh, -c, 'echo \"{\\\"error\\\": {\\\"behavior\\\": "
        "\\\"continue\\\"}}\" > $RIVAL_CONTROL; echo 7'] }\n"
        "  - again: { command: [sh, -c, 'echo \"{\\\"error\\\": {\\\"message\\\": \\\"dry\\\", "
        "\\\"behavior\\\": \\\"retry\\\", \\\"maxAttempts\\\": 2, \\\"backoff\\\": "
        "\\\"linear\\\"}}\" > $RIVAL_CONTROL; echo 7'], backoffBaseMs: 1 }\n");
    rig_gives(rig, "a", NULL, "{\"message\":\"dry\",\"path\":\"again\"}");
    rig_gives(rig, "b", NULL,
              "\"goes_on\":{\"result\":null,\"state\":{},\"status\":\"failed\",\"error\":{");
    rig_gives(rig, "c", NULL,
              "\"again\":{\"result\":null,\"state\":{},\"status\":\"failed\",\"error\":{");
    if (rv_node_get(rig->engine, "a", "again", &again, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    assert_int_equal(again->attempt_count, 2);
    rv_node_detail_free(again);
}

static void a_failure_has_the_tail_of_stderr_and_the_log_all_of_it(void **state)
{
    struct rig *rig = *state;
    rv_log_list *page = NULL;
    rig_define(
        rig,
        "  - bad: { command: [sh, -c, 'echo first >&2; echo last >&2; exit 3'], maxAttempts: 2, "
        "backoffBaseMs: 1 }\n");
    rig_gives(rig, "a", NULL, "last");
    if (rv_logs(rig->engine, "a", NULL, &page, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    assert_int_equal(page->count, 4); /* two lines of two attempts */
    assert_string_equal(page->lines[0].message, "first");
    assert_int_equal(page->lines[3].attempt, 2);
    rv_log_list_free(page);
    rig_define(rig, "  - no: { command: [./not-there] }\n");
    rig_gives(rig, "b", NULL, "not-there");
}

static void a_command_that_is_cancelled_or_too_slow_is_ended(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    rig_define(rig, "  - slow: { command: [sleep, \"1000\"], timeout: 100ms }\n");
    rig_gives(rig, "a", NULL,
              "\"slow\":{\"result\":null,\"state\":{},\"status\":\"failed\",\"error\":{");
    rig_define(rig, "  - slow: { command: [sleep, \"1000\"] }\n");
    assert_int_equal(rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "b"), NULL, &rig->err),
                     0);
    assert_int_equal(rv_cancel_run(rig->engine, "b", &rig->err), 0);
    assert_int_equal(rv_wait(rig->engine, NULL, "b", NULL, &outcome, &rig->err), 0);
    assert_int_equal(outcome->status, RV_CANCELLED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_engine_close(rig->engine), 0); /* nobody is left at work */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_command_gets_its_words_and_gives_its_output),
        RIG_TEST(exit_codes_say_what_is_tried_again),
        RIG_TEST(bytes_are_refused_or_kept_as_base64),
        RIG_TEST(it_knows_who_it_is_and_what_was_before),
        RIG_TEST(it_says_more_by_the_control_file),
        RIG_TEST(a_command_that_says_an_error_and_exits_with_0_has_failed),
        RIG_TEST(a_failure_has_the_tail_of_stderr_and_the_log_all_of_it),
        RIG_TEST(a_command_that_is_cancelled_or_too_slow_is_ended),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
