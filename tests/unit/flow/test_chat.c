/* test_chat.c: chats: turns, calls of tools, bounds, time-outs, new conversations. For src/flow/chat.c. */
#include "unit/flow/script.h"

#define CHAT(more) "{'type':'chat','alias':'ask','with':{'prompt':'hi'}" more "}"
#define TOOLS      ",'tools':[" S("find") "," S("sum") "]"
#define USED(n)    "'usage':{'inputTokens':" n ",'outputTokens':1}"
#define CALL(name) "{'id':'c','name':'" name "','arguments':{'q':1}}"
#define SAYS(result, usage, turns)                                                      \
    "{'ask':{'result':" result ",'state':{'usage':" usage ",'model':'m','turns':" turns \
    ",'finishReason':'stop'},'status':'completed'}}"
#define USAGE(in, out, all) "{'inputTokens':" in ",'outputTokens':" out ",'totalTokens':" all "}"

/* An answer without calls. */
static void answer(struct rig *rig, const char *path, const char *result)
{
    rig_done_state(rig, path, result, J("{" USED("10") ",'model':'m','finishReason':'stop'}"),
                   false);
}

/* One that calls these tools. */
static void calls(struct rig *rig, const char *path, const char *list)
{
    char state[2000];
    snprintf(state, sizeof state,
             "{" USED("10") ",'model':'m','finishReason':'tools','calls':[%s]}", list);
    rig_done_state(rig, path, "null", J(state), false);
}

static void one_turn_is_a_chat(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(), NULL);
    rig_expect_in_flight(rig, "ask:turn1");
    answer(rig, "ask:turn1", J("'hello'"));
    rig_expect(rig, RUN_COMPLETED, J(SAYS("'hello'", USAGE("10", "1", "11"), "1")));
    rig_free(rig);
}

static void tools_of_a_turn_are_called_side_by_side(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("find") "," CALL("sum") "," CALL("find"));
    rig_expect_in_flight(rig, "ask:turn1:call0:find?input ask:turn1:call1:sum?input "
                              "ask:turn1:call2:find?input");
    for (int i = 0; i < 3; i++) { /* first the input of each, then its work */
        static const char *const paths[] = { "ask:turn1:call1:sum", "ask:turn1:call0:find",
                                             "ask:turn1:call2:find" };
        char input[64];
        snprintf(input, sizeof input, "%s?input", paths[i]);
        struct rv__view view = rig_view(rig, input);
        assert_int_equal(rv__chat_turn(view.chat_number), 1);
        assert_non_null(view.talk);
        rv__view_done(&view);
        rig_done(rig, input, J("{'q':1}"));
        rig_done(rig, paths[i], "7");
    }
    rig_expect_in_flight(rig, "ask:turn2");
    struct rv__view view = rig_view(rig, "ask:turn2");
    int seen = 0;
    for (const struct rv__entry *e = view.talk; e != NULL && rv__entry_number(e) != 0;
         e = rv__entry_before(e))
        seen++;
    assert_int_equal(seen, 4);
    assert_int_equal(rv__chat_call(rv__entry_number(view.talk)), 2);
    rv__view_done(&view);
    answer(rig, "ask:turn2", "42");
    rig_expect(rig, RUN_COMPLETED, J(SAYS("42", USAGE("20", "2", "22"), "2")));
    rig_free(rig);
}

static void an_unknown_tool_is_not_called_and_the_model_is_asked_again(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("nope"));
    rig_expect_in_flight(rig, "ask:turn2");
    calls(rig, "ask:turn2", CALL("nope") "," CALL("sum"));
    rig_expect_in_flight(rig, "ask:turn2:call1:sum?input");
    rig_done(rig, "ask:turn2:call1:sum?input", "{}");
    rig_expect_in_flight(rig, "ask:turn2:call1:sum");
    rig_finish(rig, "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_tool_that_fails_does_not_fail_the_chat(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("find") "," CALL("sum"));
    rig_fail(rig, "ask:turn1:call0:find?input", "these are no arguments");
    rig_done(rig, "ask:turn1:call1:sum?input", "{}");
    rig_fail(rig, "ask:turn1:call1:sum", "no");
    rig_expect_in_flight(rig, "ask:turn2");
    struct rv__view view = rig_view(rig, "ask:turn2");
    for (int i = 0; i < 2; i++) {
        const struct rv__entry *entry = i == 0 ? view.talk : rv__entry_before(view.talk);
        assert_int_equal(rv__entry_status(entry), STATUS_FAILED);
        assert_non_null(rv__entry_error(entry));
    }
    rv__view_done(&view);
    answer(rig, "ask:turn2", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_crash_resumes_after_the_last_recorded_answer(void **state)
{
    (void)state;
    for (int snapshot = 0; snapshot < 2; snapshot++) {
        struct rig *rig = rig_of(CHAT(TOOLS), NULL);
        calls(rig, "ask:turn1", CALL("find") "," CALL("sum"));
        rig_crash(rig, snapshot);
        rig_expect_in_flight(rig, "ask:turn1:call0:find?input ask:turn1:call1:sum?input");
        rig_done(rig, "ask:turn1:call0:find?input", "{}");
        rig_crash(rig, snapshot);
        rig_done(rig, "ask:turn1:call0:find", "1");
        rig_crash(rig, snapshot);
        rig_expect_in_flight(rig, "ask:turn1:call1:sum?input");
        rig_done(rig, "ask:turn1:call1:sum?input", "{}");
        rig_done(rig, "ask:turn1:call1:sum", "1");
        rig_crash(rig, snapshot);
        rig_expect_in_flight(rig, "ask:turn2");
        answer(rig, "ask:turn2", "3");
        rig_expect(rig, RUN_COMPLETED, J(SAYS("3", USAGE("20", "2", "22"), "2")));
        rig_free(rig);
    }
}

static void bounds_fail_the_chat_with_what_it_had(void **state)
{
    (void)state;
    static const struct {
        const char *bound, *code;
    } rows[] = { { ",'maxTurns':1", "'code':'maxTurns'" },
                 { ",'budget':{'tokens':11}", "'code':'budget'" } };
    for (size_t i = 0; i < 2; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan, CHAT("%s" TOOLS) "," S("next"), rows[i].bound);
        struct rig *rig = rig_of(plan, NULL);
        rig_done_state(
            rig, "ask:turn1", J("'so far'"),
            J("{" USED("10") ",'model':'m','finishReason':'tools','calls':[" CALL("find") "]}"),
            false);
        rig_expect_in_flight(rig, ""); /* nobody would be told what the tool says */
        rig_expect(rig, RUN_FAILED,
                   J("{'ask':{'result':'so far','state':{'usage':" USAGE(
                       "10", "1",
                       "11") ",'model':'m','turns':1,'finishReason':'tools'},'status':'failed'}}"));
        assert_true(rig_has_fact(rig, J(rows[i].code)));
        rig_free(rig);
    }
}

static void a_budget_that_is_used_up_by_the_last_answer_fails_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'budget':{'tokens':1}"), NULL);
    answer(rig, "ask:turn1", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* Two chats side by side, and one after them. */
#define BESIDE(more)                                                      \
    "{'type':'concurrent','alias':'all','onFailure':'collect','steps':["  \
    "{'alias':'a','nodes':[" CHAT(more) "]},{'alias':'b','nodes':[" CHAT( \
        more) "]}]},"                                                     \
              "{'type':'chat','alias':'late','with':{},'continueOnError':true}"

static void the_budget_of_a_run_bounds_all_its_chats(void **state)
{
    (void)state;
    static const struct {
        const char *budget, *usage, *why;
    } rows[] = {
        { "{'tokens':22}", "{'inputTokens':10,'outputTokens':1}",
          "22 tokens are used up, the budget of workflow 'w' is 22" },
        { "{'cost':0.5}", "{'inputTokens':1,'outputTokens':1,'cost':0.25}",
          "a cost of 0.5 is reached, the budget of workflow 'w' is 0.5" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int snapshot = 0; snapshot < 2; snapshot++) {
            char plan[2000], said[400];
            snprintf(plan, sizeof plan, "{'name':'w','budget':%s,'steps':[" BESIDE(TOOLS) "]}",
                     rows[i].budget);
            struct rig *rig = rig_new(J(plan), NULL);
            snprintf(said, sizeof said, "{'usage':%s,'calls':[" CALL("find") "]}", rows[i].usage);
            rig_done_state(rig, "all:a:node0:ask:turn1", "1", J(said), false);
            rig_expect_in_flight(rig,
                                 "all:b:node0:ask:turn1 all:a:node0:ask:turn1:call0:find?input");
            rig_crash(rig, snapshot);
            rig_done_state(rig, "all:b:node0:ask:turn1", "2", J(said), false);
            /* Its own call is not made; the other chat's was begun, and is. */
            rig_expect_in_flight(rig, "all:a:node0:ask:turn1:call0:find?input");
            rig_crash(rig, snapshot);
            rig_done(rig, "all:a:node0:ask:turn1:call0:find?input", "{}");
            rig_done(rig, "all:a:node0:ask:turn1:call0:find", "7");
            rig_expect_in_flight(rig, ""); /* nobody is asked again, and `late` not at all */
            rig_expect(rig, RUN_COMPLETED, NULL);
            assert_true(rig_has_fact(rig, rows[i].why));
            rig_free(rig);
        }
}

static void a_nested_workflow_has_a_budget_of_its_own(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'each','items':'${ .x }','run':"
        "{'type':'workflow','name':'inner','budget':{'tokens':12},'steps':[" CHAT(
            ",'continueOnError':true") ","
                                       "{'type':'chat','alias':'more','with':{},'continueOnError':"
                                       "true},"
                                       "{'type':'chat','alias':'late','with':{},'continueOnError':"
                                       "true}]}}",
        NULL);
    rig_done(rig, "each?items", "[1,2]");
    for (int i = 0; i < 2; i++) { /* each iteration counts for itself */
        char path[64];
        snprintf(path, sizeof path, "each:iter%d:node0:ask:turn1", i);
        answer(rig, path, "1");
        snprintf(path, sizeof path, "each:iter%d:node1:more:turn1", i);
        answer(rig, path, "2");
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    assert_true(rig_has_fact(rig, "22 tokens are used up, the budget of workflow 'inner' is 12"));
    rig_free(rig);
}

static void what_waits_to_ask_when_the_budget_is_used_up_needs_no_place(void **state)
{
    (void)state;
    struct rig *rig = rig_new(J("{'name':'w','budget':{'tokens':5},'steps':[{'type':'forEach',"
                                "'alias':'each','items':'${ .x }','parallel':true,'concurrency':1,"
                                "'onFailure':'collect','run':[" CHAT() "]}]}"),
                              NULL);
    rig_done(rig, "each?items", "[1,2,3,4]");
    answer(rig, "each:iter0:node0:ask:turn1", "1");
    rig_expect_in_flight(rig, "");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_request_that_comes_too_soon_waits_and_uses_up_no_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(), NULL);
    for (int i = 0; i < 3; i++) {
        struct rv__msg msg = { .kind = MSG_FAILED,
                               .behavior = BEHAVIOR_LATER,
                               .wait_ms = 5000,
                               .error = rv__blob_new(rv__str("{\"message\":\"slow down\"}")) };
        assert_int_equal(rig_tell(rig, "ask:turn1", msg), RV_OK);
        rv__blob_unref(msg.error);
        /* a wait is in no turn: the rig asks a cell about work only */
        assert_int_equal(rig_at(rig, "ask:turn0")->effect.due_ms, rig->now_ms + 5000);
        rig_crash(rig, i == 1);
        rig_timer(rig, "ask:turn0");
        rig_expect_in_flight(rig, "ask:turn1");
    }
    answer(rig, "ask:turn1", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void max_attempts_begins_a_new_conversation(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'maxAttempts':2,'backoffBaseMs':70" TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("find"));
    rig_finish(rig, NULL); /* the call, and turn 2 */
    rig_free(rig);

    rig = rig_of(CHAT(",'maxAttempts':2,'backoffBaseMs':70" TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("nope"));
    rig_fail(rig, "ask:turn2", "broken");
    assert_int_equal(rig_at(rig, "ask")->effect.due_ms, rig->now_ms + 70);
    rig_crash(rig, true);
    rig_timer(rig, "ask");
    rig_expect_in_flight(rig, "ask:turn1");
    struct rv__view view = rig_view(rig, "ask:turn1");
    assert_null(view.talk); /* nothing of the first one */
    assert_int_equal(rv__chat_attempt(view.chat_number), 2);
    rv__view_done(&view);
    rig_fail(rig, "ask:turn1", "broken again");
    rig_expect(
        rig, RUN_FAILED,
        J("{'ask':{'result':null,'state':{'usage':" USAGE(
            "10", "1", "11") ",'model':'m','turns':0,'finishReason':'tools'},'status':'failed'}}"));
    assert_string_equal(rv__cell_failed_path(rig->cell).len > 0 ? "has" : "none", "has");
    rig_free(rig);
}

static void errors_that_are_final_begin_no_conversation(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'maxAttempts':3"), NULL);
    rig_fail_as(rig, "ask:turn1", "401", BEHAVIOR_FINAL, 0);
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void a_time_out_bounds_the_conversation(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'timeout':1000,'onTimeout':'retry','maxAttempts':2" TOOLS),
                             NULL);
    assert_int_equal(rig_at(rig, "ask")->effect.due_ms, rig->now_ms + 1000);
    calls(rig, "ask:turn1", CALL("find"));
    rig_crash(rig, true);
    rig_timer(rig, "ask"); /* in the midst of a call */
    rig_expect_in_flight(rig, "ask");
    rig_timer(rig, "ask"); /* the wait before the second one */
    rig_expect_in_flight(rig, "ask ask:turn1");
    rig_timer(rig, "ask");
    rig_expect_in_flight(rig, "");
    assert_true(rig_has_fact(rig, J("'code':'timeout'")));
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void a_failed_chat_may_let_its_sequence_go_on(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'continueOnError':true") "," S("next"), NULL);
    rig_fail(rig, "ask:turn1", "no");
    rig_expect_in_flight(rig, "next");
    rig_done(rig, "next", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_prompt_sees_what_was_before_the_chat_and_nothing_of_it(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," CHAT(TOOLS) "," S("b"), NULL);
    rig_done(rig, "a", "1");
    calls(rig, "ask:turn1", CALL("nope"));
    assert_string_equal(rig_steps(rig, "ask:turn2"), J("{'a':" DONE("1") "}"));
    answer(rig, "ask:turn2", J("'x'"));
    assert_non_null(strstr(rig_steps(rig, "b"), J("'ask':{'result':'x'")));
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_workflow_is_a_tool(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(",'tools':[{'type':'workflow','alias':'look','name':'look','"
                                  "inputSchema':{},'steps':[" S("s") "]}]"),
                             NULL);
    calls(rig, "ask:turn1", CALL("look"));
    rig_done(rig, "ask:turn1:call0:look?input", J("{'q':5}")); /* what it was called with */
    struct rv__view view = rig_view(rig, "ask:turn1:call0:look?input");
    assert_string_equal(rig_text(rig, view.input).at, J("{'q':5}"));
    rv__view_done(&view);
    rig_done(rig, "ask:turn1:call0:look?input", J("{'q':5}")); /* held to its schema */
    rig_done(rig, "ask:turn1:call0:look:node0:s", "9");
    view = rig_view(rig, "ask:turn2");
    struct rv__buf out;
    rv__buf_init(&out, 1000);
    assert_int_equal(rv__entry_result(view.talk, &rig->rows, &out, NULL), RV_OK);
    assert_string_equal(out.text, "9");
    rv__buf_done(&out);
    rv__view_done(&view);
    answer(rig, "ask:turn2", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void chats_in_iterations_leave_their_answers(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'forEach','alias':'e','items':[1,2],'run':[" CHAT() "]}",
                             NULL);
    rig_done(rig, "e?items", "[1,2]");
    answer(rig, "e:iter0:node0:ask:turn1", J("'a'"));
    answer(rig, "e:iter1:node0:ask:turn1", J("'b'"));
#define ONE(item, index, text)                                                                   \
    "{'item':" item ",'index':" index ",'results':{'ask':{'result':" text                        \
    ",'state':{'usage':" USAGE("10", "1", "11") ",'model':'m','turns':1,'finishReason':'stop'}," \
                                                "'status':'completed'}}}"
    rig_expect(
        rig, RUN_COMPLETED,
        J("{'e':" DONE("{'iterations':[" ONE("1", "0", "'a'") "," ONE("2", "1", "'b'") "]}") "}"));
    rig_free(rig);
}

static void a_cancel_in_the_midst_of_calls_ends_all_of_it(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CHAT(TOOLS), NULL);
    calls(rig, "ask:turn1", CALL("find") "," CALL("sum"));
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    rig_expect_in_flight(rig, "");
    rig_expect(rig, RUN_CANCELLED,
               J("{'ask':{'result':null,'state':{'usage':" USAGE(
                   "10", "1",
                   "11") ",'model':'m','turns':1,'finishReason':'tools'},'status':'cancelled'}}"));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(one_turn_is_a_chat),
        RIG_TEST(tools_of_a_turn_are_called_side_by_side),
        RIG_TEST(an_unknown_tool_is_not_called_and_the_model_is_asked_again),
        RIG_TEST(a_tool_that_fails_does_not_fail_the_chat),
        RIG_TEST(a_crash_resumes_after_the_last_recorded_answer),
        RIG_TEST(bounds_fail_the_chat_with_what_it_had),
        RIG_TEST(a_budget_that_is_used_up_by_the_last_answer_fails_nothing),
        RIG_TEST(the_budget_of_a_run_bounds_all_its_chats),
        RIG_TEST(a_nested_workflow_has_a_budget_of_its_own),
        RIG_TEST(what_waits_to_ask_when_the_budget_is_used_up_needs_no_place),
        RIG_TEST(a_request_that_comes_too_soon_waits_and_uses_up_no_attempt),
        RIG_TEST(max_attempts_begins_a_new_conversation),
        RIG_TEST(errors_that_are_final_begin_no_conversation),
        RIG_TEST(a_time_out_bounds_the_conversation),
        RIG_TEST(a_failed_chat_may_let_its_sequence_go_on),
        RIG_TEST(a_prompt_sees_what_was_before_the_chat_and_nothing_of_it),
        RIG_TEST(a_workflow_is_a_tool),
        RIG_TEST(chats_in_iterations_leave_their_answers),
        RIG_TEST(a_cancel_in_the_midst_of_calls_ends_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
