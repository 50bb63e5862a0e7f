/* test_flow.c: runs, by hand: SPEC 2 to 5, one behaviour a test. For src/flow. */
#include "unit/flow/rig.h"

#define S(alias)            "{\"type\":\"step\",\"alias\":\"" alias "\",\"name\":\"" alias "\"}"
#define PLAN(steps)         "{\"name\":\"t\",\"steps\":[" steps "]}"
#define OUT(result, status) "{\"result\":" result ",\"state\":{},\"status\":\"" status "\"}"

static void steps_run_one_after_the_other(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," S("b")), "{\"x\":1}");
    rig_expect_in_flight(rig, "a");
    assert_string_equal(rig_steps(rig, "a"), "{}");
    assert_string_equal(rig_last(rig, "a"), "{\"state\":{},\"alias\":null,\"stepName\":null}");
    rig_done_state(rig, "a", "{\"tree\":3}", "{\"description\":\"found\"}", false);
    rig_expect_in_flight(rig, "b");
    assert_string_equal(rig_last(rig, "b"), "{\"result\":{\"tree\":3},\"state\":{\"description\":"
                                            "\"found\"},\"alias\":\"a\",\"stepName\":\"a\"}");
    rig_done(rig, "b", NULL);
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":{\"result\":{\"tree\":3},\"state\":{\"description\":\"found\"},\"status\":"
               "\"completed\"},\"b\":" OUT("null", "completed") "}");
    rig_free(rig);
}

static void a_skipped_step_has_no_result(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," S("b")), NULL);
    rig_done_state(rig, "a", "5", "{\"skipped\":true}", true);
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":{\"result\":null,\"state\":{\"skipped\":true},\"status\":\"skipped\"},"
               "\"b\":" OUT("1", "completed") "}");
    rig_free(rig);
}

static void a_plain_failure_stops_the_run(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," S("b")), NULL);
    rig_fail(rig, "a", "no");
    rig_expect(rig, RUN_FAILED, "{\"a\":" OUT("null", "failed") "}");
    assert_str(rv__cell_failed_step(rig->cell), "a");
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"no\",\"path\":\"a\"}");
    rig_free(rig);
}

static void continue_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," S("b")), NULL);
    rig_fail_as(rig, "a", "no", BEHAVIOR_CONTINUE, 0);
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":" OUT("null", "failed") ",\"b\":" OUT("1", "completed") "}");
    rig_free(rig);
}

#define RETRY_STEP(more) "{\"type\":\"step\",\"alias\":\"a\",\"name\":\"f\"" more "}"

static void retries_wait_and_are_counted(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(RETRY_STEP(",\"maxAttempts\":3,\"backoff\":\"exponential\"")),
                              NULL);
    rig_fail(rig, "a", "one");
    assert_int_equal(rig_at(rig, "a")->effect.kind, EFFECT_WAIT);
    assert_int_equal(rig_at(rig, "a")->effect.due_ms, 1100);
    rig_timer(rig, "a");
    rig_fail(rig, "a", "two");
    assert_int_equal(rig_at(rig, "a")->effect.due_ms, 1100 + 200);
    rig_timer(rig, "a");
    rig_fail(rig, "a", "three");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"three\",\"path\":\"a\"}");
    rig_free(rig);
}

static void the_error_may_lower_the_attempts_never_raise_them(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        enum rv__behavior behavior;
        int said, attempts;
    } rows[] = {
        { "", BEHAVIOR_PLAIN, 0, 1 },
        { "", BEHAVIOR_RETRY, 0, 1 },
        { "", BEHAVIOR_RETRY, 4, 4 },
        { ",\"maxAttempts\":3", BEHAVIOR_PLAIN, 0, 3 },
        { ",\"maxAttempts\":3", BEHAVIOR_RETRY, 0, 3 },
        { ",\"maxAttempts\":3", BEHAVIOR_RETRY, 2, 2 },
        { ",\"maxAttempts\":3", BEHAVIOR_RETRY, 9, 3 },
        { ",\"maxAttempts\":3", BEHAVIOR_STOP, 9, 1 },
        { ",\"maxAttempts\":3", BEHAVIOR_CONTINUE, 9, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[300];
        snprintf(plan, sizeof plan,
                 "{\"name\":\"t\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":"
                 "\"f\"%s}]}",
                 rows[i].config);
        struct rig *rig = rig_new(plan, NULL);
        int attempts = 0;
        while (rv__cell_status(rig->cell) == RUN_RUNNING) {
            attempts++;
            rig_fail_as(rig, "a", "no", rows[i].behavior, rows[i].said);
            if (rig_try(rig, "a") != NULL)
                rig_timer(rig, "a");
        }
        if (attempts != rows[i].attempts)
            fail_msg("row %zu: %d attempts", i, attempts);
        rig_free(rig);
    }
}

static void lists_of_codes_say_what_is_tried_again(void **state)
{
    (void)state;
    static const struct {
        const char *config, *error;
        enum rv__behavior behavior;
        bool again;
    } rows[] = {
        { "\"retryOn\":[75]", "{\"message\":\"x\",\"exitCode\":75}", BEHAVIOR_PLAIN, true },
        { "\"retryOn\":[75]", "{\"message\":\"x\",\"exitCode\":7}", BEHAVIOR_PLAIN, false },
        { "\"retryOn\":[75]", "{\"message\":\"x\"}", BEHAVIOR_PLAIN, false },
        { "\"retryOn\":[404,\"dns\"]", "{\"code\":\"status\",\"status\":404}", BEHAVIOR_FINAL,
          true },
        { "\"retryOn\":[404,\"dns\"]", "{\"code\":\"d\\u006es\"}", BEHAVIOR_PLAIN, true },
        { "\"retryOn\":[404,\"dns\"]", "{\"code\":404}", BEHAVIOR_PLAIN, false },
        { "\"jitter\":0", "{\"code\":\"status\",\"status\":404}", BEHAVIOR_FINAL, false },
        { "\"noRetryOn\":[2]", "{\"exitCode\":2}", BEHAVIOR_PLAIN, false },
        { "\"noRetryOn\":[2]", "{\"exitCode\":3}", BEHAVIOR_PLAIN, true },
        { "\"noRetryOn\":[2]", "{\"status\":404}", BEHAVIOR_FINAL, false },
        { "\"retryOn\":[2,3],\"noRetryOn\":[2]", "{\"exitCode\":2}", BEHAVIOR_PLAIN, false },
        { "\"retryOn\":[2,3],\"noRetryOn\":[2]", "{\"exitCode\":3}", BEHAVIOR_PLAIN, true },
        /* What the step itself says comes first. */
        { "\"noRetryOn\":[2]", "{\"exitCode\":2}", BEHAVIOR_RETRY, true },
        { "\"retryOn\":[2]", "{\"exitCode\":2}", BEHAVIOR_STOP, false },
        { "\"retryOn\":[2]", "{\"exitCode\":2}", BEHAVIOR_CONTINUE, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[300];
        snprintf(plan, sizeof plan,
                 "{\"name\":\"t\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"f\","
                 "\"maxAttempts\":2,%s}]}",
                 rows[i].config);
        struct rig *rig = rig_new(plan, NULL);
        struct rig_work *work = rig_at(rig, "a");
        rig_send(rig, (struct rv__msg){ .kind = MSG_FAILED,
                                        .actor = work->effect.actor,
                                        .token = work->effect.token,
                                        .error = rv__blob_new(rv__str(rows[i].error)),
                                        .behavior = rows[i].behavior });
        bool again = rig_try(rig, "a") != NULL;
        if (again != rows[i].again)
            fail_msg("row %zu: it is %stried again", i, again ? "" : "not ");
        rig_free(rig);
    }
}

static void after_its_attempts_a_step_may_let_the_run_go_on(void **state)
{
    (void)state;
    const char *plan = PLAN(
        RETRY_STEP(",\"maxAttempts\":2,\"continueOnError\":true,\"timeout\":500") "," S("b"));
    const char *after = "{\"a\":" OUT("null", "failed") ",\"b\":" OUT("1", "completed") "}";
    struct rig *rig = rig_new(plan, NULL);
    rig_fail(rig, "a", "one");
    rig_timer(rig, "a");
    rig_fail(rig, "a", "two");
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED, after);
    rig_free(rig);

    rig = rig_new(plan, NULL); /* a time-out is a failure like any other */
    rig_timer(rig, "a");
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED, after);
    rig_free(rig);

    rig = rig_new(plan, NULL); /* the step itself knows better */
    rig_fail_as(rig, "a", "no", BEHAVIOR_STOP, 0);
    rig_expect(rig, RUN_FAILED, "{\"a\":" OUT("null", "failed") "}");
    rig_free(rig);
}

static void a_forEach_that_collects_runs_all_and_completes(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        PLAN("{\"type\":\"forEach\",\"alias\":\"e\",\"items\":\"${ .input }\","
             "\"run\":[" S("s") "],\"onFailure\":\"collect\"}"),
        "[1,2]");
    rig_done(rig, "e?items", "[1,2]");
    rig_fail(rig, "e:iter0:node0:s", "no");
    rig_done(rig, "e:iter1:node0:s", "2");
    rig_expect(
        rig, RUN_COMPLETED,
        "{\"e\":" OUT(
            "{\"iterations\":[{\"item\":1,\"index\":0,\"results\":{\"s\":" OUT(
                "null",
                "failed") "}},{\"item\":2,\"index\":1,\"results\":{\"s\":" OUT("2",
                                                                               "completed") "}}]}",
            "completed") "}");
    rig_free(rig);
}

#define HANDLED(handlers, steps) "{\"name\":\"t\"," handlers ",\"steps\":[" steps "]}"
#define FINALLY_S(alias)         "\"finally\":[" S(alias) "]"

static void a_handler_may_be_a_list_with_retries(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        HANDLED("\"onError\":[{\"type\":\"step\",\"alias\":\"tell\",\"name\":\"f\",\"maxAttempts\":"
                "2}," S("log") "]",
                "{\"type\":\"step\",\"alias\":\"a\",\"name\":\"f\",\"onError\":[" S("undo") "]}"),
        NULL);
    rig_fail(rig, "a", "no");
    rig_expect_in_flight(rig, "a:onError:node0:undo");
    assert_int_equal(rig_at(rig, "a:onError:node0:undo")->effect.timeout_ms, 30000);
    rig_done(rig, "a:onError:node0:undo", "1");
    rig_fail(rig, "onError:node0:tell", "busy");
    rig_timer(rig, "onError:node0:tell");
    rig_done(rig, "onError:node0:tell", "1");
    assert_string_equal(
        rig_steps(rig, "onError:node1:log"),
        "{\"a\":{\"result\":null,\"state\":{},\"status\":\"failed\",\"error\":{\"message\":\"no\","
        "\"path\":\"a\"}},\"tell\":" OUT("1", "completed") "}");
    rig_fail(rig, "onError:node1:log", "what a handler does changes nothing");
    rig_expect(rig, RUN_FAILED, "{\"a\":" OUT("null", "failed") "}");
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"no\",\"path\":\"a\"}");
    rig_free(rig);
}

static void finally_runs_however_the_run_ended(void **state)
{
    (void)state;
    struct rig *rig = rig_new(HANDLED(FINALLY_S("f"), S("a") "," S("b")), NULL);
    rig_done(rig, "a", "1");
    rig_done(rig, "b", "2");
    rig_expect_in_flight(rig, "finally:node0:f");
    assert_int_equal(rv__cell_status(rig->cell), RUN_RUNNING);
    rig_done(rig, "finally:node0:f", "3");
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":" OUT("1", "completed") ",\"b\":" OUT("2", "completed") "}");
    rig_free(rig);

    rig = rig_new(HANDLED("\"onError\":{\"name\":\"h\"}," FINALLY_S("f"), S("a") "," S("b")), NULL);
    rig_fail(rig, "a", "no");
    rig_expect_in_flight(rig, "onError"); /* that comes first */
    rig_done(rig, "onError", NULL);
    rig_fail(rig, "finally:node0:f", "changes nothing");
    rig_expect(rig, RUN_FAILED, "{\"a\":" OUT("null", "failed") "}");
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"no\",\"path\":\"a\"}");
    rig_free(rig);

    rig = rig_new(HANDLED("\"onError\":{\"name\":\"h\"}," FINALLY_S("f"), S("a") "," S("b")), NULL);
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    assert_int_equal(rv__cell_status(rig->cell), RUN_RUNNING);
    rig_expect_in_flight(rig, "finally:node0:f"); /* and no onError */
    assert_string_equal(rig_steps(rig, "finally:node0:f"), "{\"a\":" OUT("null", "cancelled") "}");
    rig_done(rig, "finally:node0:f", NULL);
    rig_expect(rig, RUN_CANCELLED, "{\"a\":" OUT("null", "cancelled") "}");
    rig_free(rig);
}

static void a_second_cancel_ends_finally(void **state)
{
    (void)state;
    const char *plan = HANDLED(FINALLY_S("f"), S("a"));
    struct rig *rig = rig_new(plan, NULL);
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    rig_expect(rig, RUN_CANCELLED, "{\"a\":" OUT("null", "cancelled") "}");
    rig_free(rig);

    rig = rig_new(plan, NULL); /* what has completed stays so */
    rig_done(rig, "a", "1");
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    rig_expect_in_flight(rig, "finally:node0:f");
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    rig_expect(rig, RUN_COMPLETED, "{\"a\":" OUT("1", "completed") "}");
    rig_free(rig);
}

static void a_nested_workflow_has_its_own_finally(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        PLAN("{\"type\":\"workflow\",\"alias\":\"w\",\"name\":\"w\",\"steps\":[" S(
            "s") "],\"finally\":[" S("f") "]}," S("b")),
        NULL);
    rig_done(rig, "w:node0:s", "1");
    rig_done(rig, "w:finally:node0:f", "2");
    rig_done(rig, "b", "3");
    rig_expect(rig, RUN_COMPLETED,
               "{\"w\":" OUT("1", "completed") ",\"b\":" OUT("3", "completed") "}");
    rig_free(rig);
}

static void time_outs_stop_or_retry(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(RETRY_STEP(",\"timeout\":500,\"maxAttempts\":2")), NULL);
    assert_int_equal(rig_at(rig, "a")->effect.timeout_ms, 500);
    rig_timer(rig, "a");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"step 'a' timed out after 500 ms\","
                                          "\"code\":\"timeout\",\"path\":\"a\"}");
    rig_free(rig);

    rig = rig_new(PLAN(RETRY_STEP(",\"timeout\":500,\"maxAttempts\":2,\"onTimeout\":\"retry\"")),
                  NULL);
    struct rig_work late = *rig_at(rig, "a");
    rig_timer(rig, "a");
    rig_timer(rig, "a"); /* of the retry */
    struct rv__msg msg = { .kind = MSG_DONE,
                           .actor = late.effect.actor,
                           .token = late.effect.token };
    rig_turn(rig, &msg); /* the first attempt answers after all: too late */
    assert_int_equal(rv__cell_stale(rig->cell), 1);
    rig_done(rig, "a", "2");
    rig_expect(rig, RUN_COMPLETED, "{\"a\":" OUT("2", "completed") "}");
    rig_free(rig);
}

static void a_delay_is_a_timer(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        PLAN("{\"type\":\"step\",\"alias\":\"d\",\"kind\":\"delay\",\"with\":250}"), NULL);
    assert_int_equal(rig_at(rig, "d")->effect.kind, EFFECT_WAIT);
    rig_crash(rig, false);
    rig_timer(rig, "d");
    rig_expect(
        rig, RUN_COMPLETED,
        "{\"d\":" OUT("{\"delayedMs\":250,\"startedAt\":1000,\"endedAt\":1250}", "completed") "}");
    rig_free(rig);
}

#define SIGNAL(alias, more)                 \
    "{\"type\":\"step\",\"alias\":\"" alias \
    "\",\"kind\":\"signal\",\"with\":{\"name\":\"go\"" more "}}"

static void signals_wake_one_waiter_each_in_order(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN("{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[" SIGNAL(
                                  "x", "") "," SIGNAL("y", "") "]}," SIGNAL("z", "")),
                              NULL);
    rig_send(rig, (struct rv__msg){ .kind = MSG_SIGNAL, .name = rv__str("other"), .result = NULL });
    rig_send(rig, (struct rv__msg){ .kind = MSG_SIGNAL,
                                    .name = rv__str("go"),
                                    .result = rv__blob_new(rv__str("1")) });
    rig_crash(rig, true);
    rig_send(rig, (struct rv__msg){ .kind = MSG_SIGNAL,
                                    .name = rv__str("go"),
                                    .result = rv__blob_new(rv__str("2")) });
    rig_send(rig, (struct rv__msg){ .kind = MSG_SIGNAL,
                                    .name = rv__str("go"),
                                    .result = rv__blob_new(rv__str("3")) });
    rig_expect(rig, RUN_COMPLETED,
               "{\"c\":" OUT("{\"x\":" OUT("1", "completed") ",\"y\":" OUT("2", "completed") "}",
                             "completed") ",\"z\":" OUT("3", "completed") "}");
    struct rv__msg late = { .kind = MSG_SIGNAL, .name = rv__str("go") };
    assert_int_equal(rig_turn(rig, &late), RV_ESTATE);
    rig_free(rig);
}

static void a_signal_times_out_with_its_default_or_fails(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(SIGNAL("x", ",\"timeout\":100,\"default\":{\"no\":1}")), NULL);
    rig_timer(rig, "x");
    rig_expect(rig, RUN_COMPLETED, "{\"x\":" OUT("{\"no\":1}", "completed") "}");
    rig_free(rig);
    rig = rig_new(PLAN(SIGNAL("x", ",\"timeout\":100")), NULL);
    rig_timer(rig, "x");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void a_parked_step_ends_by_its_handle(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a")), NULL);
    struct rig_work *work = rig_at(rig, "a");
    struct rv__msg park = { .kind = MSG_PARK,
                            .actor = work->effect.actor,
                            .token = work->effect.token,
                            .name = rv__str("job-7") };
    rig_turn(rig, &park);
    rig_crash(rig, false);
    rig_expect_in_flight(rig, ""); /* not run again */
    struct rv__msg wrong = { .kind = MSG_ANSWER, .name = rv__str("job-8") };
    assert_int_equal(rig_turn(rig, &wrong), RV_ENOTFOUND);
    rig_send(rig, (struct rv__msg){ .kind = MSG_ANSWER,
                                    .name = rv__str("job-7"),
                                    .result = rv__blob_new(rv__str("\"done\"")) });
    rig_expect(rig, RUN_COMPLETED, "{\"a\":" OUT("\"done\"", "completed") "}");
    rig_free(rig);
}

#define BRANCH                                                                          \
    "{\"type\":\"branch\",\"alias\":\"br\",\"if\":\"${ .x }\",\"then\":[" S("p") "," S( \
        "q") "],\"else\":[" S("r") "]}"

static void a_branch_takes_one_path(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," BRANCH "," S("z")), NULL);
    rig_done(rig, "a", "1");
    rig_done(rig, "br?if", "true");
    assert_string_equal(rig_last(rig, "br:then:node0:p"),
                        "{\"result\":1,\"state\":{},\"alias\":\"a\",\"stepName\":\"a\"}");
    rig_done(rig, "br:then:node0:p", "2");
    rig_done(rig, "br:then:node1:q", "3");
    rig_done(rig, "z", "4");
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":" OUT("1", "completed") ",\"br\":" OUT(
                   "{\"taken\":\"then\",\"results\":{\"p\":" OUT("2", "completed") ",\"q\":" OUT(
                       "3", "completed") ",\"r\":" OUT("null", "skipped") "}}",
                   "completed") ",\"z\":" OUT("4", "completed") "}");
    rig_free(rig);

    rig = rig_new(PLAN(BRANCH), NULL);
    rig_done(rig, "br?if", "null");
    rig_fail(rig, "br:else:node0:r", "no");
    rig_expect(rig, RUN_FAILED,
               "{\"br\":" OUT(
                   "{\"taken\":\"else\",\"results\":{\"r\":" OUT("null", "failed") ",\"p\":" OUT(
                       "null", "skipped") ",\"q\":" OUT("null", "skipped") "}}",
                   "failed") "}");
    assert_str(rv__cell_failed_step(rig->cell), "br");
    rig_free(rig);
}

#define EACH(more) \
    "{\"type\":\"forEach\",\"alias\":\"each\",\"items\":\"${ .x }\",\"run\":[" S("s") "]" more "}"

static void for_each_runs_in_order(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(EACH("")), NULL);
    rig_done(rig, "each?items", "[10, {\"k\":[1,2]} ,\"c\"]");
    rig_expect_in_flight(rig, "each:iter0:node0:s");
    rig_done(rig, "each:iter0:node0:s", "0");
    rig_crash(rig, true);
    rig_done(rig, "each:iter1:node0:s", "1");
    rig_done(rig, "each:iter2:node0:s", "2");
    rig_expect(rig, RUN_COMPLETED,
               "{\"each\":" OUT(
                   "{\"iterations\":[{\"item\":10,\"index\":0,\"results\":{\"s\":" OUT(
                       "0", "completed") "}},{\"item\":{\"k\":[1,2]},\"index\":1,\"results\":{"
                                         "\"s\":" OUT("1", "completed") "}},{\"item\":\"c\","
                                                                        "\"index\":2,\"results\":{"
                                                                        "\"s\":" OUT("2", "complete"
                                                                                          "d") "}}]"
                                                                                               "}",
                   "completed") "}");
    rig_free(rig);
}

static void for_each_over_nothing_completes(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(EACH("")), NULL);
    rig_done(rig, "each?items", "[]");
    rig_expect(rig, RUN_COMPLETED, "{\"each\":" OUT("{\"iterations\":[]}", "completed") "}");
    rig_free(rig);
    rig = rig_new(PLAN(EACH("")), NULL);
    rig_done(rig, "each?items", "{}");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_true(rig_has_fact(rig, "must return an array"));
    rig_free(rig);
    rig = rig_new(PLAN(EACH("")), NULL);
    rig_fail(rig, "each?items", "jq says no");
    rig_expect(rig, RUN_FAILED, "{\"each\":" OUT("null", "failed") "}");
    rig_free(rig);
}

static void a_sequential_for_each_stops_at_a_hard_failure(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(EACH("")), NULL);
    rig_done(rig, "each?items", "[1,2,3]");
    rig_fail_as(rig, "each:iter0:node0:s", "soft", BEHAVIOR_CONTINUE, 0);
    rig_fail(rig, "each:iter1:node0:s", "hard");
    rig_expect(
        rig, RUN_FAILED,
        "{\"each\":" OUT(
            "{\"iterations\":[{\"item\":1,\"index\":0,\"results\":{\"s\":" OUT(
                "null",
                "failed") "}},{\"item\":2,\"index\":1,\"results\":{\"s\":" OUT("null",
                                                                               "failed") "}}]}",
            "failed") "}");
    rig_free(rig);
}

static void a_parallel_for_each_lets_the_started_settle(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(EACH(",\"parallel\":true,\"concurrency\":2")), NULL);
    rig_done(rig, "each?items", "[1,2,3,4]");
    rig_expect_in_flight(rig, "each:iter0:node0:s each:iter1:node0:s");
    rig_fail(rig, "each:iter0:node0:s", "hard");
    rig_expect_in_flight(rig, "each:iter1:node0:s");
    rig_done(rig, "each:iter1:node0:s", "1");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);

    rig = rig_new(PLAN(EACH(",\"parallel\":true")), NULL);
    rig->grants[LANE_FUNCTION] = false;
    rig_done(rig, "each?items", "[1,2,3]");
    rv_error err;
    assert_int_equal(rv__flow_grant(rig->cell, LANE_FUNCTION, 1, &rig->facts, &err), 1);
    rig_turn(rig, NULL);
    rig_fail(rig, "each:iter0:node0:s", "hard");
    rig->grants[LANE_FUNCTION] = true; /* all count as started: the others still run */
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "each:iter1:node0:s each:iter2:node0:s");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

#define LOOP(how, more)                                                           \
    "{\"type\":\"loop\",\"alias\":\"lo\",\"body\":[" S("p") "," S("q") "],\"" how \
                                                                       "\":\"${ .x }\"" more "}"

static void a_loop_runs_until(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(LOOP("until", "")), NULL);
    rig_done(rig, "lo:iter0:node0:p", "1");
    rig_done(rig, "lo:iter0:node1:q", "2");
    assert_string_equal(rig_steps(rig, "lo?until"),
                        "{\"p\":" OUT("1", "completed") ",\"q\":" OUT("2", "completed") "}");
    rig_done(rig, "lo?until", "false");
    assert_string_equal(rig_steps(rig, "lo:iter1:node0:p"),
                        "{\"p\":" OUT("1", "completed") ",\"q\":" OUT("2", "completed") "}");
    rig_done(rig, "lo:iter1:node0:p", "3");
    assert_string_equal(rig_steps(rig, "lo:iter1:node1:q"),
                        "{\"q\":" OUT("2", "completed") ",\"p\":" OUT("3", "completed") "}");
    rig_crash(rig, true);
    rig_done(rig, "lo:iter1:node1:q", "4");
    rig_done(rig, "lo?until", "1");
    rig_expect(
        rig, RUN_COMPLETED,
        "{\"lo\":" OUT(
            "{\"iterations\":[{\"index\":0,\"results\":{\"p\":" OUT("1", "completed") ",\"q\":" OUT(
                "2", "completed") "}},{\"index\":1,\"results\":{"
                                  "\"p\":" OUT("3", "completed") ",\"q\""
                                                                 ":" OUT("4", "com"
                                                                              "ple"
                                                                              "te"
                                                                              "d") "}}]}",
            "completed") "}");
    rig_free(rig);
}

static void a_loop_keeps_the_last_or_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(LOOP("while", ",\"keep\":\"last\"")), NULL);
    for (int i = 0; i < 3; i++) {
        char path[64];
        rig_done(rig, "lo?while", "true");
        snprintf(path, sizeof path, "lo:iter%d:node0:p", i);
        rig_done(rig, path, "1");
        snprintf(path, sizeof path, "lo:iter%d:node1:q", i);
        rig_done(rig, path, "2");
    }
    rig_done(rig, "lo?while", "false");
    rig_expect(rig, RUN_COMPLETED,
               "{\"lo\":" OUT("{\"iterations\":[{\"index\":2,\"results\":{\"p\":" OUT(
                                  "1", "completed") ",\"q\":" OUT("2", "completed") "}}]}",
                              "completed") "}");
    rig_free(rig);
    rig = rig_new(PLAN(LOOP("while", ",\"keep\":\"none\"")), NULL);
    rig_done(rig, "lo?while", "false");
    rig_expect(rig, RUN_COMPLETED, "{\"lo\":" OUT("{\"iterations\":[]}", "completed") "}");
    rig_free(rig);
}

static void a_loop_fails_after_its_maximum(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(LOOP("until", ",\"maxIterations\":2,\"keep\":\"none\"")), NULL);
    rig_finish(rig, "false");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_true(rig_has_fact(rig, "'until' is still not true after 2 iterations"));
    rig_free(rig);
    rig = rig_new(PLAN(LOOP("until", "")), NULL);
    rig_fail(rig, "lo:iter0:node0:p", "no");
    rig_expect(rig, RUN_FAILED,
               "{\"lo\":" OUT(
                   "{\"iterations\":[{\"index\":0,\"results\":{\"p\":" OUT("null", "failed") "}}]}",
                   "failed") "}");
    rig_free(rig);
}

#define CONC(more) \
    "{\"type\":\"concurrent\",\"alias\":\"c\",\"steps\":[" S("x") "," S("y") "," S("z") "]" more "}"

static void concurrent_children_run_together(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(CONC("")), NULL);
    rig_expect_in_flight(rig, "c:x c:y c:z");
    rig_done(rig, "c:z", "3");
    rig_fail_as(rig, "c:x", "soft", BEHAVIOR_CONTINUE, 0);
    rig_done(rig, "c:y", "2");
    rig_expect(rig, RUN_COMPLETED,
               "{\"c\":" OUT("{\"x\":" OUT("null", "failed") ",\"y\":" OUT(
                                 "2", "completed") ",\"z\":" OUT("3", "completed") "}",
                             "completed") "}");
    rig_free(rig);
}

static void the_first_failure_cancels_the_siblings(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(CONC("")), NULL);
    rig_done(rig, "c:x", "1");
    rig_fail(rig, "c:y", "hard");
    rig_expect_in_flight(rig, "");
    rig_expect(rig, RUN_FAILED,
               "{\"c\":" OUT("{\"x\":" OUT("1", "completed") ",\"y\":" OUT(
                                 "null", "failed") ",\"z\":" OUT("null", "cancelled") "}",
                             "failed") "}");
    rig_free(rig);

    rig = rig_new(PLAN(CONC(",\"onFailure\":\"collect\"")), NULL);
    rig_fail(rig, "c:y", "hard");
    rig_done(rig, "c:x", "1");
    rig_done(rig, "c:z", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void join_needs_so_many(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(CONC(",\"join\":\"first\"")), NULL);
    rig_fail(rig, "c:x", "hard");
    rig_done(rig, "c:y", "1");
    rig_expect(rig, RUN_COMPLETED,
               "{\"c\":" OUT("{\"x\":" OUT("null", "failed") ",\"y\":" OUT(
                                 "1", "completed") ",\"z\":" OUT("null", "cancelled") "}",
                             "completed") "}");
    rig_free(rig);
    rig = rig_new(PLAN(CONC(",\"join\":2")), NULL);
    rig_fail(rig, "c:x", "hard");
    rig_expect(rig, RUN_RUNNING, NULL);
    rig_fail(rig, "c:y", "hard");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void detached_children_outlive_the_run(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," CONC(",\"continueOn\":\"detached\"") "," S("b")),
                              NULL);
    rig_done(rig, "a", "7");
    rig_expect_in_flight(rig, "b c:x c:y c:z");
    rig_done(rig, "b", "1");
    rig_expect(
        rig, RUN_COMPLETED,
        "{\"a\":" OUT(
            "7", "completed") ",\"c\":{\"result\":null,\"state\":{\"detached\":true},\"status\":"
                              "\"completed\"},\"b\":" OUT("1", "completed") "}");
    assert_true(rv__cell_active(rig->cell));
    rig_crash(rig, true);
    rig_expect_in_flight(rig, "c:x c:y c:z");
    assert_string_equal(rig_steps(rig, "c:x"), "{\"a\":" OUT("7", "completed") "}");
    rig_fail(rig, "c:x", "only logged");
    rig_done(rig, "c:y", "1");
    rig_crash(rig, false);
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    assert_false(rv__cell_active(rig->cell));
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void handlers_run_before_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        "{\"name\":\"t\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"a\",\"onError\":"
        "{\"name\":\"tell\"}}],\"onError\":{\"name\":\"team\"}}",
        NULL);
    rig_fail(rig, "a", "no");
    rig_expect_in_flight(rig, "a:onError");
    rig_expect(rig, RUN_RUNNING, NULL);
    assert_int_equal(rig_at(rig, "a:onError")->effect.timeout_ms, 30000);
    rig_crash(rig, true);
    rig_done(rig, "a:onError", NULL);
    rig_expect_in_flight(rig, "onError");
    rig_fail(rig, "onError", "changes nothing");
    rig_expect(rig, RUN_FAILED, "{\"a\":" OUT("null", "failed") "}");
    assert_str(rv__cell_error(rig->cell), "{\"message\":\"no\",\"path\":\"a\"}");
    rig_free(rig);

    rig = rig_new(
        "{\"name\":\"t\",\"steps\":[{\"type\":\"step\",\"alias\":\"a\",\"name\":\"a\",\"onError\":"
        "{\"name\":\"tell\"}}],\"onError\":{\"name\":\"team\"}}",
        NULL);
    rig_fail_as(rig, "a", "no", BEHAVIOR_CONTINUE, 0);
    rig_done(rig, "a:onError", NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

#define NESTED                                                                                     \
    "{\"type\":\"workflow\",\"alias\":\"pay\",\"name\":\"payment\",\"steps\":[" S("charge") "," S( \
        "mail") "]}"

static void a_nested_workflow_gives_its_last_result(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a") "," NESTED), "{\"in\":1}");
    rig_done(rig, "a", "1");
    assert_string_equal(rig_steps(rig, "pay:node0:charge"), "{\"a\":" OUT("1", "completed") "}");
    rig_done(rig, "pay:node0:charge", "2");
    rig_done(rig, "pay:node1:mail", "3");
    rig_expect(rig, RUN_COMPLETED,
               "{\"a\":" OUT("1", "completed") ",\"pay\":" OUT("3", "completed") "}");
    rig_free(rig);
}

static void when_false_skips(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        PLAN("{\"type\":\"step\",\"alias\":\"a\",\"name\":\"a\",\"when\":\"${ .x }\"},"
             "{\"type\":\"branch\",\"alias\":\"br\",\"when\":\"${ .y }\",\"if\":\"${ .z "
             "}\",\"then\":[" S("p") "]}"),
        NULL);
    rig_done(rig, "a?when", "false");
    rig_done(rig, "br?when", "true");
    rig_done(rig, "br?if", "true");
    rig_done(rig, "br:then:node0:p", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void cancel_is_one_fact(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(EACH(",\"parallel\":true")), NULL);
    rig_done(rig, "each?items", "[1,2,3,4,5,6,7,8]");
    assert_int_equal(rig->work_count, 8);
    size_t before = rig->journal.len;
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    assert_true(rig->journal.len - before < 60);
    rig_expect_in_flight(rig, "");
    /* An iteration that has only begun tells nothing. */
    rig_expect(rig, RUN_CANCELLED, "{\"each\":" OUT("{\"iterations\":[]}", "cancelled") "}");
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    rig_free(rig);
}

static void lose(struct rig *rig, const char *path)
{
    struct rig_work *work = rig_at(rig, path);
    struct rv__msg msg = { .kind = MSG_LOST,
                           .actor = work->effect.actor,
                           .token = work->effect.token,
                           .crash = true,
                           .shared = true };
    rig_turn(rig, &msg);
}

static void a_poison_pill_suspends_its_run(void **state)
{
    (void)state;
    struct rig *rig = rig_new(PLAN(S("a")), NULL);
    for (int i = 0; i < RV__SUSPECT_DEATHS + RV__MAX_CRASHES; i++)
        lose(rig, "a");
    rig_expect_in_flight(rig, "a");
    lose(rig, "a");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_expect_in_flight(rig, "");
    rig_crash(rig, true);
    struct rv__msg resume = { .kind = MSG_RESUME };
    assert_int_equal(rig_turn(rig, &resume), RV_OK);
    rig_expect_in_flight(rig, "a");
    assert_false(rig_has_fact(rig, "\"attempt\":2"));
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_int_equal(rig_turn(rig, &resume), RV_ESTATE);
    rig_free(rig);
}

static void iterations_nest_in_iterations(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        PLAN("{\"type\":\"forEach\",\"alias\":\"out\",\"items\":\"${ .x "
             "}\",\"run\":[{\"type\":\"branch\",\"alias\":"
             "\"br\",\"if\":\"${ .y "
             "}\",\"then\":[{\"type\":\"forEach\",\"alias\":\"inn\",\"items\":\"${ .z }\","
             "\"parallel\":true,\"run\":[" S("s") "]}]}]}"),
        NULL);
    rig_done(rig, "out?items", "[1,2]");
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "out:iter%d:node0:br?if", i);
        rig_done(rig, path, "true");
        snprintf(path, sizeof path, "out:iter%d:node0:br:then:node0:inn?items", i);
        rig_done(rig, path, "[5]");
        snprintf(path, sizeof path, "out:iter%d:node0:br:then:node0:inn:iter0:node0:s", i);
        rig_done(rig, path, i ? "\"b\"" : "\"a\"");
    }
#define INN(v)                                                                                     \
    "{\"inn\":" OUT(                                                                               \
        "{\"iterations\":[{\"item\":5,\"index\":0,\"results\":{\"s\":" OUT(v, "completed") "}}]}", \
        "completed") "}"
#define BR(v) "{\"br\":" OUT("{\"taken\":\"then\",\"results\":" INN(v) "}", "completed") "}"
    rig_expect(
        rig, RUN_COMPLETED,
        "{\"out\":" OUT("{\"iterations\":[{\"item\":1,\"index\":0,\"results\":" BR(
                            "\"a\"") "},"
                                     "{\"item\":2,\"index\":1,\"results\":" BR("\"b\"") "}]}",
                        "completed") "}");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(steps_run_one_after_the_other),
        RIG_TEST(a_skipped_step_has_no_result),
        RIG_TEST(a_plain_failure_stops_the_run),
        RIG_TEST(continue_goes_on),
        RIG_TEST(retries_wait_and_are_counted),
        RIG_TEST(the_error_may_lower_the_attempts_never_raise_them),
        RIG_TEST(lists_of_codes_say_what_is_tried_again),
        RIG_TEST(after_its_attempts_a_step_may_let_the_run_go_on),
        RIG_TEST(a_forEach_that_collects_runs_all_and_completes),
        RIG_TEST(a_handler_may_be_a_list_with_retries),
        RIG_TEST(finally_runs_however_the_run_ended),
        RIG_TEST(a_second_cancel_ends_finally),
        RIG_TEST(a_nested_workflow_has_its_own_finally),
        RIG_TEST(time_outs_stop_or_retry),
        RIG_TEST(a_delay_is_a_timer),
        RIG_TEST(signals_wake_one_waiter_each_in_order),
        RIG_TEST(a_signal_times_out_with_its_default_or_fails),
        RIG_TEST(a_parked_step_ends_by_its_handle),
        RIG_TEST(a_branch_takes_one_path),
        RIG_TEST(for_each_runs_in_order),
        RIG_TEST(for_each_over_nothing_completes),
        RIG_TEST(a_sequential_for_each_stops_at_a_hard_failure),
        RIG_TEST(a_parallel_for_each_lets_the_started_settle),
        RIG_TEST(a_loop_runs_until),
        RIG_TEST(a_loop_keeps_the_last_or_none),
        RIG_TEST(a_loop_fails_after_its_maximum),
        RIG_TEST(concurrent_children_run_together),
        RIG_TEST(the_first_failure_cancels_the_siblings),
        RIG_TEST(join_needs_so_many),
        RIG_TEST(detached_children_outlive_the_run),
        RIG_TEST(handlers_run_before_the_end),
        RIG_TEST(a_nested_workflow_gives_its_last_result),
        RIG_TEST(when_false_skips),
        RIG_TEST(cancel_is_one_fact),
        RIG_TEST(a_poison_pill_suspends_its_run),
        RIG_TEST(iterations_nest_in_iterations),
    };
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
