/* test_stage.c: stages: queue, pool and completed set; retries, redirects, critical and final states;
 * suspensions and decisions. Each rule of the schedule has a test that is named after it. For
 * src/flow/stage.c and suspend.c. */
#include "unit/flow/script.h"

#include "base/json.h"
#include "flow/cell.h"

#define STATE(alias, more)   "{'alias':'" alias "'," more "'agent':" S("f") "}"
#define STAGE(alias, states) "{'type':'stage','alias':'" alias "','states':[" states "]}"
#define POOL(alias, n, states) \
    "{'type':'stage','alias':'" alias "','concurrency':" n ",'states':[" states "]}"
#define AFTER(param, state) "'" param "':{'state':'" state "'}"
#define OF(status, result, description, more) \
    "{'status':'" status "','result':" result ",'description':" description "," more "}"
#define TIMES(result, n) OF("completed", result, "'" result "'", "'attempts':" n)
#define ONCE(result)     TIMES(result, "1")
#define FAILED(message, path, n)          \
    OF("failed", "null", "'" message "'", \
       "'error':{'message':'" message "','path':'" path "'},'attempts':" n)
#define NEVER         OF("skipped", "null", "null", "'attempts':0")
#define WHOLE(states) "{'result':{" states "},'state':{},'status':'completed'}"

static void expect_inputs(struct rig *rig, const char *path, const char *json)
{
    struct rv__view view = rig_view(rig, path);
    struct rv__buf out;
    rv__buf_init(&out, 1u << 20);
    assert_int_equal(rv__view_inputs(&view, &rig->rows, &out, NULL), RV_OK);
    if (strstr(json, "attachmentId") == NULL)
        rig_drop_attachments(out.text);
    assert_string_equal(out.text, json);
    rv__buf_done(&out);
    rv__view_done(&view);
}

static void expect_suspensions(struct rig *rig, const char *json)
{
    struct rv__buf out;
    rv__buf_init(&out, 1u << 20);
    assert_int_equal(rv__cell_suspensions(rig->cell, SIZE_MAX, &out, NULL), RV_OK);
    if (strstr(out.text != NULL ? out.text : "", json) == NULL)
        fail_msg("%s is not in %s", json, out.text != NULL ? out.text : "nothing");
    rv__buf_done(&out);
}

/* ------------------------------------------------------------------------------ the queue --- */

static void states_of_a_stage_run_concurrently(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "") "," STATE("b", "") "," STATE("c", "")),
                             NULL);
    rig_expect_in_flight(rig, "g:a g:b g:c");
    rig_done(rig, "g:b", "2");
    rig_done(rig, "g:c", "3");
    rig_done(rig, "g:a", "1");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'a':" ONCE("1") ",'b':" ONCE("2") ",'c':" ONCE("3")) "}"));
    rig_free(rig);
}

static void the_queue_goes_by_priority_then_by_order(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        POOL("g", "1",
             STATE("a", "'priority':5,") "," STATE("b", "'priority':9,") "," STATE(
                 "c", "'priority':9,") "," STATE("d", "")),
        NULL);
    static const char *const order[] = { "g:d", "g:b", "g:c", "g:a" };
    for (size_t i = 0; i < 4; i++) {
        rig_expect_in_flight(rig, order[i]);
        rig_done(rig, order[i], "1");
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void the_pool_holds_no_more_than_max_concurrency(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        POOL("g", "2", STATE("a", "") "," STATE("b", "") "," STATE("c", "") "," STATE("d", "")),
        NULL);
    rig_expect_in_flight(rig, "g:a g:b");
    rig_done(rig, "g:b", "1");
    rig_expect_in_flight(rig, "g:a g:c");
    rig_crash(rig, true);
    rig_done(rig, "g:a", "1");
    rig_expect_in_flight(rig, "g:c g:d");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* C and A run, B waits for room; D fails and is tried again before B, for its priority is higher. */
static void a_retry_goes_ahead_of_what_waits_with_lower_priority(void **state)
{
    (void)state;
    struct rig *rig = rig_of(POOL("g", "2",
                                  STATE("d", "'priority':120,'maxRetry':1,") "," STATE(
                                      "c", "'priority':100,") "," STATE("b", "'priority':80,")),
                             NULL);
    rig_expect_in_flight(rig, "g:d g:c");
    rig_fail(rig, "g:d", "no");
    rig_expect_in_flight(rig, "g:d g:c");
    rig_done(rig, "g:c", "1");
    rig_expect_in_flight(rig, "g:d g:b");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* ----------------------------------------------------------------------------- dependencies --- */

static void a_dependency_blocks_dispatch_until_it_completes(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g",
              STATE("a", "") "," STATE("b", "'priority':90,'dependsOn':{" AFTER(
                                                "in", "a") "},") "," STATE("c", "'priority':10,")),
        NULL);
    rig_expect_in_flight(rig, "g:a g:c"); /* no waiting for a whole tier */
    rig_done(rig, "g:a", "[1]");
    rig_expect_in_flight(rig, "g:b g:c");
    expect_inputs(rig, "g:b", J("{'in':[1]}"));
    expect_inputs(rig, "g:c", "{}");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void nobody_waits_for_a_whole_tier(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "'priority':90,") "," STATE("slow", "'priority':90,") "," STATE(
                       "b", "'priority':50,'dependsOn':{" AFTER(
                                "in", "a") "},") "," STATE("c",
                                                           "'priority':10,'dependsOn':{" AFTER(
                                                               "in", "b") "},")),
        NULL);
    rig_expect_in_flight(rig, "g:a g:slow");
    rig_done(rig, "g:a", "1");
    rig_expect_in_flight(rig, "g:slow g:b");
    rig_fail(rig, "g:b", "no"); /* an error settles it as well */
    rig_expect_in_flight(rig, "g:slow g:c");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_dependent_of_an_errored_state_gets_the_error_as_its_value(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g",
              STATE("a", "") "," STATE("b", "'priority':9,'dependsOn':{" AFTER("in", "a") "},")),
        NULL);
    rig_fail(rig, "g:a", "went wrong");
    rig_expect_in_flight(rig, "g:b");
    expect_inputs(rig, "g:b", J("{'in':{'error':{'message':'went wrong'}}}"));
    rig_done(rig, "g:b", "2");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'a':" FAILED("went wrong", "g:a", "1") ",'b':" ONCE("2")) "}"));
    rig_free(rig);
}

static void an_earlier_stage_is_a_dependency_that_is_settled(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "")) "," STAGE(
            "h", STATE("b", "'dependsOn':{'x':{'state':'a','stage':'g'},'y':{'state':'a','stage':'"
                            "g','field':'description'}},")),
        NULL);
    rig_expect_in_flight(rig, "g:a"); /* stages run one after the other */
    rig_done_state(rig, "g:a", "7", J("{'description':'seven'}"), false);
    expect_inputs(rig, "h:b", J("{'x':7,'y':'seven'}"));
    rig_crash(rig, true);
    rig_done(rig, "h:b", "8");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void without_describe_the_description_is_a_bounded_summary(void **state)
{
    enum { MANY = 5000 };
    char text[MANY * 6 + 3], expected[MANY * 6];
    (void)state;
    struct rig *rig = rig_of(
        STAGE(
            "g",
            STATE("a", "") "," STATE("b", "") "," STATE("c", "") "," STATE(
                "d", "")) "," STAGE("h",
                                    STATE("z",
                                          "'dependsOn':{'a':{'state':'a','stage':'g','field':'"
                                          "description'},"
                                          "'b':{'state':'b','stage':'g','field':'description'},"
                                          "'c':{'state':'c','stage':'g','field':'description'},"
                                          "'d':{'state':'d','stage':'g','field':'description'}},")),
        NULL);
    /* A text of 2,000 bytes is whole; a longer one is cut, never within a character. */
    memset(text, 'x', sizeof text);
    text[0] = '"';
    memcpy(text + RV__SUMMARY_BYTES + 1, "\"", 2);
    rig_done(rig, "g:a", text);
    size_t len = 0;
    len += (size_t)snprintf(text, sizeof text, "\"x");
    for (int i = 0; i < MANY; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "\\u00e9");
    snprintf(text + len, sizeof text - len, "\"");
    rig_done(rig, "g:b", text);
    rig_done(rig, "g:c", J("{'rows':[1,2]}"));
    rig_fail(rig, "g:d", "it rained");
    len = (size_t)snprintf(expected, sizeof expected, "{\"a\":\"%0*d\",\"b\":\"x",
                           RV__SUMMARY_BYTES, 0);
    for (size_t i = 0; i < len; i++)
        expected[i] = expected[i] == '0' ? 'x' : expected[i];
    for (int i = 0; i < (RV__SUMMARY_BYTES - 1) / 2; i++)
        len += (size_t)snprintf(expected + len, sizeof expected - len, "é");
    snprintf(expected + len, sizeof expected - len,
             "…\",\"c\":\"{\\\"rows\\\":[1,2]}\",\"d\":{\"error\":{\"message\":\"it rained\"}}}");
    expect_inputs(rig, "h:z", expected);
    rig_crash(rig, true);
    expect_inputs(rig, "h:z", expected);
    rig_free(rig);
}

static void with_access_logs_or_none_a_dependency_only_orders(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g",
              STATE("a", "") "," STATE(
                  "b",
                  "'priority':9,'access':'none','dependsOn':{" AFTER(
                      "in",
                      "a") "},") "," STATE("c",
                                           "'priority':9,'access':'logs','dependsOn':{" AFTER(
                                               "in",
                                               "a") "},") "," STATE("d",
                                                                    "'priority':9,'access':'"
                                                                    "explicit','dependsOn':{" AFTER(
                                                                        "in", "a") "},")),
        NULL);
    rig_expect_in_flight(rig, "g:a");
    rig_done(rig, "g:a", "1");
    expect_inputs(rig, "g:b", "{}");
    expect_inputs(rig, "g:c", "{}");
    expect_inputs(rig, "g:d", J("{'in':1}"));
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* --------------------------------------------------------------------------------- failure --- */

static void retries_left_and_no_on_failure_queues_it_again(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'maxRetry':2,")), NULL);
    rig_fail(rig, "g:a", "one");
    rig_crash(rig, false);
    rig_fail(rig, "g:a", "two");
    assert_true(rig_has_fact(rig, J("'x':0,'g':3,'attempt':3")));
    rig_done(rig, "g:a", "1");
    rig_expect(rig, RUN_COMPLETED, J("{'g':" WHOLE("'a':" TIMES("1", "3")) "}"));
    rig_free(rig);
}

static void retries_exhausted_and_not_critical_is_errored_not_skipped(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'maxRetry':1,")) "," S("z"), NULL);
    rig_fail(rig, "g:a", "one");
    rig_fail(rig, "g:a", "two");
    rig_expect_in_flight(rig, "z"); /* the run goes on */
    rig_done(rig, "z", "1");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'a':" FAILED("two", "g:a", "2")) ",'z':" DONE("1") "}"));
    rig_free(rig);
}

static void a_soft_failure_of_an_agent_is_a_failure(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'maxRetry':1,")), NULL);
    rig_fail_as(rig, "g:a", "softly", BEHAVIOR_CONTINUE, 0);
    rig_done(rig, "g:a", "1");
    rig_expect(rig, RUN_COMPLETED, J("{'g':" WHOLE("'a':" TIMES("1", "2")) "}"));
    rig_free(rig);
}

static void a_timeout_is_a_failure_like_any_other(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'maxRetry':1,'timeout':50,")), NULL);
    rig_timer(rig, "g:a");
    rig_expect_in_flight(rig, "g:a");
    rig_timer(rig, "g:a");
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_true(rig_has_fact(rig, J("'code':'timeout'")));
    rig_free(rig);
}

/* An agent may be a workflow: all of it is one attempt, and the next one is a new generation of it. */
static void an_attempt_is_bounded_as_a_whole_by_its_timeout(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", "{'alias':'a','maxRetry':1,'timeout':50,'agent':"
                   "{'type':'workflow','name':'w','steps':[" S("p") "," S("q") "]}}"),
        NULL);
    rig_expect_in_flight(rig, "g g:a:node0:p");
    rig_done(rig, "g:a:node0:p", "1");
    rig_expect_in_flight(rig, "g g:a:node1:q");
    rig_crash(rig, true);
    rig_timer(rig, "g");
    rig_expect_in_flight(rig, "g g:a:node0:p"); /* from its beginning */
    rig_done(rig, "g:a:node0:p", "2");
    rig_done(rig, "g:a:node1:q", "3");
    rig_expect_in_flight(rig, ""); /* and the timer is gone */
    rig_expect(rig, RUN_COMPLETED, J("{'g':" WHOLE("'a':" TIMES("3", "2")) "}"));
    rig_free(rig);
}

static void iterations_of_two_attempts_are_not_mixed(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", "{'alias':'a','maxRetry':1,'agent':{'type':'workflow','name':'w','steps':["
                   "{'type':'forEach','alias':'e','items':'${ .i }','run':[" S("s") "]}]}}"),
        NULL);
    rig_done(rig, "g:a:node0:e?items", "[1,2]");
    rig_done(rig, "g:a:node0:e:iter0:node0:s", "\"old\"");
    rig_fail(rig, "g:a:node0:e:iter1:node0:s", "no");
    rig_done(rig, "g:a:node0:e?items", "[3]");
    rig_done(rig, "g:a:node0:e:iter0:node0:s", "\"new\"");
    rig_expect(
        rig, RUN_COMPLETED,
        J("{'g':" WHOLE("'a':" OF(
            "completed", "{'iterations':[{'item':3,'index':0,'results':{'s':" DONE("'new'") "}}]}",
            "'{\\\"iterations\\\":[{\\\"item\\\":3,\\\"index\\\":0,\\\"results\\\":{\\\"s\\\":{"
            "\\\"result\\\":\\\"new\\\",\\\"state\\\":{},\\\"status\\\":\\\"completed\\\"}}}]}'",
            "'attempts':2")) "}"));
    rig_free(rig);
}

/* -------------------------------------------------------------------------------- redirects --- */

static void on_failure_queues_its_target_and_tries_again_after_it(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        POOL("g", "1",
             STATE("a", "'priority':90,'maxRetry':1,'onFailure':'b',") "," STATE(
                 "b", "'priority':10,") "," STATE("c", "'priority':50,")),
        NULL);
    rig_fail(rig, "g:a", "no");
    rig_expect_in_flight(rig, "g:c"); /* the target goes by its own priority */
    rig_done(rig, "g:c", "1");
    rig_expect_in_flight(rig, "g:b");
    rig_done(rig, "g:b", "2");
    rig_expect_in_flight(rig, "g:a");
    assert_true(rig_has_fact(rig, J("'next':'redirect','to':1")));
    rig_done(rig, "g:a", "3");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'a':" TIMES("3", "2") ",'b':" ONCE("2") ",'c':" ONCE("1")) "}"));
    rig_free(rig);
}

static void a_completed_target_of_a_redirect_runs_again_with_a_fresh_count(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "'priority':9,'maxRetry':1,'onFailure':'b','dependsOn':{" AFTER(
                                  "in", "b") "},") "," STATE("b", "'maxRetry':1,")),
        NULL);
    rig_fail(rig, "g:b", "once");
    rig_done(rig, "g:b", "1");
    rig_fail(rig, "g:a", "no");
    rig_expect_in_flight(rig, "g:b");
    rig_fail(rig, "g:b", "again");
    rig_expect_in_flight(rig, "g:b"); /* its own count applies */
    rig_done(rig, "g:b", "2");
    expect_inputs(rig, "g:a", J("{'in':2}"));
    rig_done(rig, "g:a", "3");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'a':" TIMES("3", "2") ",'b':" TIMES("2", "4")) "}"));
    rig_free(rig);
}

static void a_running_target_of_a_redirect_is_left_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "'maxRetry':1,'onFailure':'b',") "," STATE("b", "")), NULL);
    rig_fail(rig, "g:a", "no");
    rig_expect_in_flight(rig, "g:b");
    rig_done(rig, "g:b", "1");
    rig_expect_in_flight(rig, "g:a");
    rig_done(rig, "g:a", "2");
    rig_expect(rig, RUN_COMPLETED, J("{'g':" WHOLE("'a':" TIMES("2", "2") ",'b':" ONCE("1")) "}"));
    rig_free(rig);
}

static void with_max_retry_0_on_failure_never_fires(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STAGE("g", STATE("a", "'onFailure':'b',") "," STATE("b", "")), NULL);
    rig_done(rig, "g:b", "1");
    rig_fail(rig, "g:a", "no");
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_false(rig_has_fact(rig, J("'next':'redirect'")));
    rig_free(rig);
}

/* ------------------------------------------------------------------------------- critical --- */

static void a_critical_state_holds_back_lower_priorities_while_ready_or_running(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("low", "'priority':1,") "," STATE(
                       "c", "'priority':50,'critical':true,") "," STATE("high", "'priority':60,")),
        NULL);
    rig_expect_in_flight(rig, "g:c g:high");
    rig_done(rig, "g:high", "1");
    rig_expect_in_flight(rig, "g:c");
    rig_done(rig, "g:c", "1");
    rig_expect_in_flight(rig, "g:low");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void it_does_not_while_it_waits_for_a_redirect(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("low", "'priority':1,") "," STATE(
                       "c", "'priority':50,'critical':true,'maxRetry':1,'onFailure':'low',")),
        NULL);
    rig_expect_in_flight(rig, "g:c");
    rig_fail(rig, "g:c", "no");
    rig_expect_in_flight(rig, "g:low");
    rig_done(rig, "g:low", "1");
    rig_expect_in_flight(rig, "g:c");
    rig_done(rig, "g:c", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

#define CRITICAL                                                                    \
    STATE("c", "'priority':50,'critical':true,'maxRetry':1,")                       \
    "," STATE("low", "'priority':1,'dependsOn':{" AFTER("in", "c") "},") "," STATE( \
        "side", "'priority':90,")

static struct rig *suspended_rig(void)
{
    struct rig *rig = rig_of(STAGE("g", CRITICAL) "," S("z"), NULL);
    rig_fail(rig, "g:c", "one");
    rig_fail(rig, "g:c", "two");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    expect_suspensions(
        rig, "\"path\":\"g:c\",\"reason\":{\"message\":\"the critical state 'c' failed, and "
             "its attempts are used up: two\",\"code\":\"exhausted\"");
    expect_suspensions(rig, J("'actions':['resume','skip','abort','restart_stage']"));
    rig_expect_in_flight(rig, "g:side"); /* nothing new is dispatched, what is in flight drains */
    return rig;
}

static void expect_reached(struct rig *rig, const char *json)
{
    struct rv__buf out;
    rv__buf_init(&out, 1u << 20);
    assert_int_equal(rv__cell_results(rig->cell, &rig->rows, &out, NULL, NULL), RV_OK);
    assert_string_equal(rv__buf_view(&out).at, json);
    rv__buf_done(&out);
}

static void a_critical_failure_suspends_the_run_and_what_is_in_flight_drains(void **state)
{
    (void)state;
    struct rig *rig = suspended_rig();
    expect_reached(rig,
                   J("{'g':{'result':null,'state':{},'status':'running'}}")); /* its state waits */
    rig_done(rig, "g:side", "5");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    assert_true(rig_has_fact(rig, J("'status':'completed','next':'done'"))); /* and is recorded */
    rig_crash(rig, true);
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_crash(rig, false);
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_free(rig);
}

static void resume_gives_fresh_attempts(void **state)
{
    (void)state;
    struct rig *rig = suspended_rig();
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:c"), RV_OK);
    rig_fail(rig, "g:c", "three");
    rig_expect(rig, RUN_RUNNING, NULL);
    rig_done(rig, "g:c", "1");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:c"), RV_ESTATE); /* a decision acts once */
    rig_free(rig);
}

static void skip_records_it_as_errored_and_goes_on(void **state)
{
    (void)state;
    struct rig *rig = suspended_rig();
    rig_done(rig, "g:side", "5");
    rig_crash(rig, true);
    assert_int_equal(rig_say(rig, MSG_SKIP), RV_OK); /* there is one only */
    expect_inputs(rig, "g:low", J("{'in':{'error':{'message':'two'}}}"));
    rig_done(rig, "g:low", "6");
    rig_done(rig, "z", "7");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'c':" FAILED("two", "g:c", "2") ",'low':" ONCE("6") ",'side':" ONCE(
                   "5")) ",'z':" DONE("7") "}"));
    rig_free(rig);
}

static void abort_fails_the_run_at_the_state_and_the_rest_is_skipped(void **state)
{
    (void)state;
    struct rig *rig = suspended_rig();
    rig_done(rig, "g:side", "5");
    assert_int_equal(rig_say_at(rig, MSG_ABORT, "g:c"), RV_OK);
    rig_expect(rig, RUN_FAILED, NULL);
    assert_str(rv__cell_failed_step(rig->cell), "g");
    assert_str(rv__cell_failed_path(rig->cell), "g:c");
    struct rv__buf out;
    rv__buf_init(&out, 1u << 20);
    assert_int_equal(rv__cell_results(rig->cell, &rig->rows, &out, NULL, NULL), RV_OK);
    assert_non_null(strstr(out.text, J("'low':" NEVER)));
    rv__buf_done(&out);
    rig_free(rig);
}

static void restart_stage_supersedes_its_results_and_runs_it_again(void **state)
{
    (void)state;
    struct rig *rig = suspended_rig();
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "g:c"), RV_OK);
    rig_expect_in_flight(rig,
                         "g:side g:c"); /* what was in flight in it is cancelled, and begins anew */
    rig_crash(rig, true);
    rig_done(rig, "g:side", "15");
    rig_done(rig, "g:c", "11");
    expect_inputs(rig, "g:low", J("{'in':11}"));
    rig_done(rig, "g:low", "12");
    rig_done(rig, "z", "13");
    rig_expect(rig, RUN_COMPLETED,
               J("{'g':" WHOLE("'c':" ONCE("11") ",'low':" ONCE("12") ",'side':" ONCE(
                   "15")) ",'z':" DONE("13") "}"));
    rig_free(rig);
}

static void several_states_may_be_suspended_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE(
            "g",
            STATE("a", "'priority':90,'critical':true,'dependsOn':{" AFTER("x", "s") "},") "," STATE(
                "b",
                "'priority':80,'critical':true,") "," STATE("s",
                                                            "'priority':95,") "," STATE("low",
                                                                                        "'priority'"
                                                                                        ":2,")),
        NULL);
    rig_expect_in_flight(rig, "g:s g:b");
    rig_done(rig, "g:s", "1");
    rig_expect_in_flight(rig, "g:a g:b");
    rig_fail(rig, "g:a", "no a");
    rig_fail(rig, "g:b", "no b");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    expect_suspensions(rig, J("'path':'g:a'"));
    expect_suspensions(rig, J("'path':'g:b'"));
    rig_crash(rig, true);
    assert_int_equal(rig_say(rig, MSG_SKIP), RV_ESTATE);
    assert_int_equal(rig_say_at(rig, MSG_SKIP, "g:b"), RV_OK);
    rig_expect(rig, RUN_SUSPENDED, NULL); /* until the last is decided */
    rig_expect_in_flight(rig, "");
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:a"), RV_OK);
    rig_expect_in_flight(rig, "g:a");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void restart_stage_takes_every_suspension_of_its_stage_along(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE(
            "g",
            STATE("a", "'priority':90,'critical':true,'dependsOn':{" AFTER("x", "s") "},") "," STATE(
                "b",
                "'priority':80,'critical':true,") "," STATE("s",
                                                            "'priority':95,") "," STATE("low",
                                                                                        "'priority'"
                                                                                        ":2,")),
        NULL);
    rig_done(rig, "g:s", "1");
    rig_fail(rig, "g:a", "no a");
    rig_fail(rig, "g:b", "no b"); /* it was in flight */
    assert_int_equal(rig_say_at(rig, MSG_RESTART, "g:b"), RV_OK);
    rig_expect(rig, RUN_RUNNING, NULL);
    assert_int_equal(rig_say_at(rig, MSG_SKIP, "g:a"), RV_ESTATE); /* nothing waits any more */
    rig_crash(rig, true);
    rig_expect_in_flight(rig, "g:s g:b"); /* from the beginning */
    rig_done(rig, "g:s", "2");
    rig_expect_in_flight(rig, "g:b g:a");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* How many allocations a decision needs: it is tried with one more each time, and changes nothing until it has
 * them all. */
static int64_t cost_of_decision(struct rig *rig, const char *path)
{
    struct rv__facts facts;
    struct rv__msg msg = { .kind = MSG_SKIP, .now_ms = 1, .name = rv__str(path) };
    int rc = RV_ENOMEM;
    int64_t n = 0;
    rv__facts_init(&facts);
    for (; rc == RV_ENOMEM; n++) {
        rv__test_fail_alloc_after((long)n);
        rc = rv__flow_send(rig->cell, &msg, &facts, NULL);
    }
    rv__test_fail_alloc_after(-1);
    assert_int_equal(rc, RV_OK);
    rv__facts_done(&facts);
    return n;
}

static void deciding_one_of_many_costs_as_much_as_one_of_few(void **state)
{
    enum { FEW = 20, TIMES = 10 };
    int64_t cost[2];
    (void)state;
    for (int round = 0; round < 2; round++) {
        int count = round == 0 ? FEW : FEW * TIMES;
        char items[FEW * TIMES * 4 + 3] = "[0", path[80];
        struct rig *rig = rig_of(
            "{'type':'forEach','alias':'e','items':[1],'parallel':true,'run':[" STAGE(
                "g", STATE("a", "'critical':true,")) "]}",
            NULL);
        for (int i = 1; i < count; i++)
            strcat(items, ",0");
        strcat(items, "]");
        rig_done(rig, "e?items", items);
        for (int i = 0; i < count; i++) {
            snprintf(path, sizeof path, "e:iter%d:node0:g:a", i);
            rig_fail(rig, path, "no");
        }
        rig_expect(rig, RUN_SUSPENDED, NULL);
        assert_int_equal(rv__suspension_count(rig->cell), count);
        (void)cost_of_decision(rig, "e:iter1:node0:g:a"); /* the first that asks for a path */
        assert_int_equal(rv__suspension_count(rig->cell), count - 1);
        snprintf(path, sizeof path, "e:iter%d:node0:g:a", count - 1);
        cost[round] = cost_of_decision(rig, path);
        assert_int_equal(rv__suspension_count(rig->cell), count - 2);

        struct rv__buf row; /* what a list shows is bounded */
        rv__buf_init(&row, SIZE_MAX / 8);
        assert_int_equal(rv__cell_suspensions(rig->cell, 3, &row, NULL), RV_OK);
        assert_int_equal(rv__json_count(rv__buf_view(&row)), 3);
        rv__buf_done(&row);
        rig_free(rig);
    }
    if (cost[1] > cost[0] + 2)
        fail_msg("of %d: %d allocations; of %d: %d", FEW, (int)cost[0], FEW * TIMES, (int)cost[1]);
}

static void a_poison_pill_in_a_state_is_decided_by_its_own_path(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("a", "") "," STATE("b", "'critical':true,'priority':7,")), NULL);
    rig_poison(rig, "g:a");
    rig_fail(rig, "g:b", "no");
    expect_suspensions(rig, J("'actions':['resume','abort']"));
    assert_int_equal(rig_say_at(rig, MSG_SKIP, "g:a"), RV_ESTATE);
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "g:a"), RV_OK);
    assert_int_equal(rig_say(rig, MSG_SKIP), RV_OK);
    rig_done(rig, "g:a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* A workflow took too long while a step of it waited for a decision: there is nothing to decide any more. */
static void a_timeout_takes_a_suspension_below_it_along(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", "{'alias':'a','timeout':50,'agent':{'type':'workflow','name':'w','steps':[" S(
                       "p") "]}}"),
        NULL);
    rig_poison(rig, "g:a:node0:p");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_timer(rig, "g");
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_true(rig_has_fact(rig, J("{'k':'run.resumed'")));
    rig_free(rig);
}

/* ---------------------------------------------------------------------------------- final --- */

static void a_final_success_drains_the_pool_and_skips_what_is_left(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        POOL("g", "2",
             STATE("f", "'priority':50,'final':true,") "," STATE(
                 "a", "'priority':60,'maxRetry'"
                      ":3,") "," STATE("b", "'priority':1,")) "," STAGE("h",
                                                                        STATE("x", "")) "," S("z"),
        NULL);
    rig_expect_in_flight(rig, "g:f g:a");
    rig_done(rig, "g:f", "1");
    rig_expect_in_flight(rig, "g:a"); /* in-flight work finishes, nothing new is dispatched */
    rig_crash(rig, true);
    rig_fail(rig, "g:a", "no");     /* and nothing is tried again */
    rig_expect_in_flight(rig, "z"); /* later stages are skipped */
    rig_done(rig, "z", "2");
    rig_expect(
        rig, RUN_COMPLETED,
        J("{'g':" WHOLE("'f':" ONCE("1") ",'a':" FAILED(
            "no", "g:a", "1") ",'b':" NEVER) ",'h':" OUT("null", "skipp"
                                                                 "ed") ",'z':" DONE("2") "}"));
    rig_free(rig);
}

static void a_final_state_that_fails_ends_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STAGE("g", STATE("f", "'priority':50,'final':true,")) "," STAGE("h", STATE("x", "")), NULL);
    rig_fail(rig, "g:f", "no");
    rig_expect_in_flight(rig, "h:x");
    rig_done(rig, "h:x", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* -------------------------------------------------------------------------------- the rest --- */

static void a_cancel_lists_what_finished_what_ran_and_what_never_did(void **state)
{
    (void)state;
    struct rig *rig = rig_of(POOL("g", "1", STATE("a", "") "," STATE("b", "") "," STATE("c", "")),
                             NULL);
    rig_done(rig, "g:a", "1");
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    rig_expect(rig, RUN_CANCELLED,
               J("{'g':{'result':{'a':" ONCE("1") ",'b':" OF(
                   "cancelled", "null", "null",
                   "'attempts':1") ",'c':" NEVER "},'state':{},'status':'cancelled'}}"));
    rig_free(rig);
}

static void a_stage_in_an_iteration_reads_the_same_from_the_store(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'forEach','alias':'e','items':[1,2],'run':[" STAGE(
                                 "g", STATE("a", "'maxRetry':1,")) "]}," S("z"),
                             NULL);
    rig_done(rig, "e?items", "[1,2]");
    rig_fail(rig, "e:iter0:node0:g:a", "no");
    rig_done_state(rig, "e:iter0:node0:g:a", "1", J("{'description':'one'}"), false);
    rig_done(rig, "e:iter1:node0:g:a", "2");
    rig_done(rig, "z", "3");
    rig_expect(rig, RUN_COMPLETED,
               J("{'e':{'result':{'iterations':["
                 "{'item':1,'index':0,'results':{'g':" WHOLE(
                     "'a':{'status':'completed','result':"
                     "1,'description':'one','attempts':"
                     "2}") "}},"
                           "{'item':2,'index':1,'results'"
                           ":{'g':" WHOLE("'a':" ONCE("2")) "}}]},'state':{}"
                                                            ",'status':'"
                                                            "completed'},'z'"
                                                            ":" DONE("3") "}"));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(states_of_a_stage_run_concurrently),
        RIG_TEST(the_queue_goes_by_priority_then_by_order),
        RIG_TEST(the_pool_holds_no_more_than_max_concurrency),
        RIG_TEST(a_retry_goes_ahead_of_what_waits_with_lower_priority),
        RIG_TEST(a_dependency_blocks_dispatch_until_it_completes),
        RIG_TEST(nobody_waits_for_a_whole_tier),
        RIG_TEST(a_dependent_of_an_errored_state_gets_the_error_as_its_value),
        RIG_TEST(an_earlier_stage_is_a_dependency_that_is_settled),
        RIG_TEST(without_describe_the_description_is_a_bounded_summary),
        RIG_TEST(with_access_logs_or_none_a_dependency_only_orders),
        RIG_TEST(retries_left_and_no_on_failure_queues_it_again),
        RIG_TEST(retries_exhausted_and_not_critical_is_errored_not_skipped),
        RIG_TEST(a_soft_failure_of_an_agent_is_a_failure),
        RIG_TEST(a_timeout_is_a_failure_like_any_other),
        RIG_TEST(an_attempt_is_bounded_as_a_whole_by_its_timeout),
        RIG_TEST(iterations_of_two_attempts_are_not_mixed),
        RIG_TEST(on_failure_queues_its_target_and_tries_again_after_it),
        RIG_TEST(a_completed_target_of_a_redirect_runs_again_with_a_fresh_count),
        RIG_TEST(a_running_target_of_a_redirect_is_left_alone),
        RIG_TEST(with_max_retry_0_on_failure_never_fires),
        RIG_TEST(a_critical_state_holds_back_lower_priorities_while_ready_or_running),
        RIG_TEST(it_does_not_while_it_waits_for_a_redirect),
        RIG_TEST(a_critical_failure_suspends_the_run_and_what_is_in_flight_drains),
        RIG_TEST(resume_gives_fresh_attempts),
        RIG_TEST(skip_records_it_as_errored_and_goes_on),
        RIG_TEST(abort_fails_the_run_at_the_state_and_the_rest_is_skipped),
        RIG_TEST(restart_stage_supersedes_its_results_and_runs_it_again),
        RIG_TEST(several_states_may_be_suspended_at_once),
        RIG_TEST(restart_stage_takes_every_suspension_of_its_stage_along),
        cmocka_unit_test(deciding_one_of_many_costs_as_much_as_one_of_few),
        RIG_TEST(a_poison_pill_in_a_state_is_decided_by_its_own_path),
        RIG_TEST(a_timeout_takes_a_suspension_below_it_along),
        RIG_TEST(a_final_success_drains_the_pool_and_skips_what_is_left),
        RIG_TEST(a_final_state_that_fails_ends_nothing),
        RIG_TEST(a_cancel_lists_what_finished_what_ran_and_what_never_did),
        RIG_TEST(a_stage_in_an_iteration_reads_the_same_from_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
