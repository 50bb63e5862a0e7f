/* test_describe.c: descriptions of what ends without an attempt: supervisors and waits. For src/flow. */
#include "unit/flow/script.h"

#define SAYS       ",'description':'${ .result }'"
#define TOLD(r, s) "{'result':" r ",'state':{'description':'fine'" s "},'status':'completed'}"

/* Each kind, up to where it has completed; then its description is owed, and nothing else. */
static const struct kind {
    const char *node, *done[3], *values[3], *result, *state;
} kinds[] = {
    { "{'type':'workflow','alias':'x','name':'w','steps':[" S("p") "]" SAYS "}",
      { "x:node0:p" },
      { "7" },
      "7",
      "" },
    { "{'type':'branch','alias':'x','if':'${ .c }','then':[" S("p") "]" SAYS "}",
      { "x?if", "x:then:node0:p" },
      { "true", "7" },
      "{'taken':'then','results':{'p':" DONE("7") "}}",
      "" },
    { "{'type':'loop','alias':'x','until':'${ .c }','body':[" S("p") "]" SAYS "}",
      { "x:iter0:node0:p", "x?until" },
      { "7", "true" },
      "{'iterations':[{'index':0,'results':{'p':" DONE("7") "}}]}",
      "" },
    { "{'type':'forEach','alias':'x','items':'${ .c }','run':[" S("p") "]" SAYS "}",
      { "x?items", "x:iter0:node0:p" },
      { "[5]", "7" },
      "{'iterations':[{'item':5,'index':0,'results':{'p':" DONE("7") "}}]}",
      "" },
    { "{'type':'concurrent','alias':'x','steps':[" S("p") "," S("q") "],'join':1" SAYS "}",
      { "x:p" },
      { "7" },
      "{'p':" DONE("7") ",'q':" OUT("null", "cancelled") "}",
      "" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct rig *rig_ended(const struct kind *kind, const char *more)
{
    char steps[4000];
    snprintf(steps, sizeof steps, S("a") ",%s%s", kind->node, more);
    struct rig *rig = rig_of(steps, "{}");
    rig_done(rig, "a", "1");
    for (size_t i = 0; i < 3 && kind->done[i] != NULL; i++)
        rig_done(rig, kind->done[i], kind->values[i]);
    return rig;
}

static void expect_told(struct rig *rig, const struct kind *kind, const char *rest)
{
    char results[4000];
    snprintf(results, sizeof results, "{'a':" DONE("1") ",'x':" TOLD("%s", "%s") "%s}",
             kind->result, kind->state, rest);
    rig_expect(rig, RUN_COMPLETED, J(results));
}

static void a_supervisor_is_described_when_it_has_completed(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        struct rig *rig = rig_ended(&kinds[i], "," S("z"));
        rig_expect_in_flight(rig, "x?description"); /* the next one waits for it */
        rig_done(rig, "x?description", "\"fine\"");
        rig_done(rig, "z", "2");
        expect_told(rig, &kinds[i], ",'z':" DONE("2"));
        rig_free(rig);
    }
}

static void the_last_node_of_a_run_is_described_before_the_run_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        struct rig *rig = rig_ended(&kinds[i], "");
        rig_expect(rig, RUN_RUNNING, NULL);
        rig_done(rig, "x?description", "\"fine\"");
        expect_told(rig, &kinds[i], "");
        rig_free(rig);
    }
}

static void a_description_is_made_again_after_a_crash(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        struct rig *rig = rig_ended(&kinds[i], "");
        rig_crash(rig, i % 2 == 0);
        rig_expect_in_flight(rig, "x?description");
        rig_lose(rig, "x?description", false, false);
        rig_crash(rig, i % 2 != 0);
        rig_done(rig, "x?description", "\"fine\"");
        rig_crash(rig, i % 2 == 0);
        expect_told(rig, &kinds[i], "");
        rig_free(rig);
    }
}

static void a_wait_is_described_as_well(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'step','alias':'d','kind':'delay','with':5" SAYS "},"
                             "{'type':'step','alias':'s','kind':'signal','with':{'name':'go'}" SAYS
                             "},"
                             "{'type':'step','alias':'t','kind':'signal','with':{'name':'no',"
                             "'timeout':9,'default':3}" SAYS "}," STEP("h", "'description':'x'"),
                             "{}");
    rig->now_ms += 5;
    rig_timer(rig, "d");
    rig_done(rig, "d?description", "\"slept\"");
    assert_int_equal(rig_signal(rig, "go", "{\"by\":1}"), RV_OK);
    rig_done(rig, "s?description", "\"heard\"");
    rig->now_ms += 9;
    rig_timer(rig, "t");
    rig_done(rig, "t?description", "\"gave up\"");
    rig_park(rig, "h", "handle", 0);
    assert_int_equal(rig_answer(rig, "handle", "4", NULL), RV_OK);
    rig_done(rig, "h?description", "\"answered\"");
    rig_expect(rig, RUN_COMPLETED, NULL);
    static const char *const said[] = { "slept", "heard", "gave up", "answered" };
    for (size_t i = 0; i < 4; i++)
        assert_true(rig_has_fact(rig, said[i]));
    rig_free(rig);
}

static void an_attempt_makes_its_own_and_so_may_an_answer(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'description':'x'") "," STEP("b", "'description':'x'"),
                             "{}");
    rig_done_state(rig, "a", "1", J("{'description':'own'}"), false);
    rig_park(rig, "b", "handle", 0);
    struct rv__msg msg = { .kind = MSG_ANSWER, .name = rv__str("handle") };
    msg.state = rv__blob_new(rv__str(J("{'description':'own','k':1}")));
    assert_int_equal(rig_turn(rig, &msg), RV_OK);
    rv__blob_unref(msg.state);
    rig_expect(rig, RUN_COMPLETED,
               J("{'a':{'result':1,'state':{'description':'own'},'status':'completed'},"
                 "'b':{'result':null,'state':{'description':'own','k':1},'status':'completed'}}"));
    rig_free(rig);
}

static void it_sees_the_result_and_what_the_node_saw(void **state)
{
    (void)state;
    struct rig *rig = rig_ended(&kinds[0], "");
    assert_string_equal(rig_steps(rig, "x?description"), J("{'a':" DONE("1") "}"));
    struct rv__view view = rig_view(rig, "x?description");
    assert_str(rv__entry_alias(view.last), "a");
    assert_str(rv__entry_alias(view.ended), "x");
    assert_null(view.body);
    rv__view_done(&view);
    rig_free(rig);

    /* The first inside of a supervisor: the one before that. */
    rig = rig_of(S("a") ",{'type':'forEach','alias':'e','items':'${ .c }','run':["
                        "{'type':'step','alias':'d','kind':'delay','with':5" SAYS "}]}",
                 "{'in':1}");
    rig_done(rig, "a", "1");
    rig_done(rig, "e?items", "[5,6]");
    rig->now_ms += 5;
    rig_timer(rig, "e:iter0:node0:d");
    view = rig_view(rig, "e:iter0:node0:d?description");
    assert_str(rv__entry_alias(view.last), "a");
    assert_str(rig_item(rig, &view), "5");
    assert_str(rig_text(rig, view.input), J("{'in':1}"));
    rv__view_done(&view);
    rig_free(rig);
}

static void one_that_cannot_be_made_is_left_out(void **state)
{
    (void)state;
    struct rig *rig = rig_ended(&kinds[0], "," S("z"));
    rig_fail(rig, "x?description", "no such thing");
    rig_done(rig, "z", "2");
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("1") ",'x':" DONE("7") ",'z':" DONE("2") "}"));
    rig_free(rig);
}

static void what_failed_or_was_skipped_is_not_described(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'workflow','alias':'w','when':'${ .c }','name':'w','steps':[" S(
            "p") "]" SAYS "},{'type':'branch','alias':'b','if':'${ .c }',"
                 "'then':[" S("q") "]" SAYS "}",
        "{}");
    rig_done(rig, "w?when", "false");
    rig_done(rig, "b?if", "true");
    rig_fail(rig, "b:then:node0:q", "no");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_false(rig_has_fact(rig, "describe"));
    rig_free(rig);
}

static void a_detached_block_is_described_as_the_sequence_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'concurrent','alias':'x','continueOn':'detached','steps':[" S(
                                 "p") "]" SAYS "}," S("z"),
                             "{}");
    rig_expect_in_flight(rig, "x?description x:p");
    rig_done(rig, "x?description", "\"fine\"");
    rig_done(rig, "z", "2");
    rig_expect(rig, RUN_COMPLETED,
               J("{'x':" TOLD("null", ",'detached':true") ",'z':" DONE("2") "}"));
    rig_done(rig, "x:p", "1"); /* and not once more, when it is over */
    rig_expect_in_flight(rig, "");
    rig_free(rig);
}

static void a_cancelled_run_keeps_what_it_has(void **state)
{
    (void)state;
    struct rig *rig = rig_ended(&kinds[0], "," S("z"));
    struct rv__msg late = { .kind = MSG_DONE };
    late.actor = rig_at(rig, "x?description")->effect.actor;
    late.token = rig_at(rig, "x?description")->effect.token;
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    assert_int_equal(rig_turn(rig, &late), RV_OK);
    rig_expect(rig, RUN_CANCELLED, J("{'a':" DONE("1") ",'x':" DONE("7") "}"));
    rig_expect_in_flight(rig, "");
    rig_free(rig);
}

/* The block that was detached misses its function meanwhile; somebody aborts. */
static void a_run_that_is_aborted_meanwhile_goes_without_it(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        char steps[1000];
        snprintf(steps, sizeof steps,
                 "{'type':'concurrent','alias':'x','continueOn':'detached','steps':[" S(
                     "p") "]" SAYS "}%s",
                 more ? "," S("z") : "");
        struct rig *rig = rig_of(steps, "{}");
        assert_int_equal(rig_suspend(rig, "{\"message\":\"no\"}"), RV_OK);
        rig_expect(rig, RUN_SUSPENDED, NULL);
        assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
        rig_expect(rig, RUN_FAILED, NULL);
        assert_null(rig_try(rig, "x?description"));
        assert_str(rv__cell_failed_step(rig->cell), more ? "z" : "x");
        rig_free(rig);
    }
}

/* Journals of versions that ignored it say nothing of a description: the run goes on as it did. */
static void a_journal_that_never_asked_for_it_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_ended(&kinds[0], "," S("z"));
    struct rv__cell_opts opts = { .plan = rig->plan };
    struct rv__cell *cell = NULL;
    struct rv__buf old;
    rv_error err = { .message = "" };
    rv__buf_init(&old, 1 << 20);
    const char *text = rig->journal.text, *asked = strstr(text, ",\"describe\":true");
    assert_non_null(asked);
    rv__buf_add(&old, text, (size_t)(asked - text));
    rv__buf_text(&old, "}"); /* what came after it is not there */
    assert_int_equal(rv__cell_empty(&opts, &cell, &err), RV_OK);
    assert_int_equal(rv__cell_replay_json(cell, rv__buf_view(&old), &err), RV_OK);
    assert_true(rv__cell_wants(cell, LANE_FUNCTION)); /* z */
    assert_false(rv__cell_wants(cell, LANE_EVAL));
    rv__cell_free(cell);
    rv__buf_done(&old);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_supervisor_is_described_when_it_has_completed),
        RIG_TEST(the_last_node_of_a_run_is_described_before_the_run_ends),
        RIG_TEST(a_description_is_made_again_after_a_crash),
        RIG_TEST_HERE(a_wait_is_described_as_well),
        RIG_TEST(an_attempt_makes_its_own_and_so_may_an_answer),
        RIG_TEST(it_sees_the_result_and_what_the_node_saw),
        RIG_TEST(one_that_cannot_be_made_is_left_out),
        RIG_TEST(what_failed_or_was_skipped_is_not_described),
        RIG_TEST(a_detached_block_is_described_as_the_sequence_goes_on),
        RIG_TEST(a_cancelled_run_keeps_what_it_has),
        RIG_TEST(a_run_that_is_aborted_meanwhile_goes_without_it),
        cmocka_unit_test(a_journal_that_never_asked_for_it_goes_on),
    };
    return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
