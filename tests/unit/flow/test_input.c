/* test_input.c: what functions make for a node: the parameters of a step, the input of a workflow that is a child of a
 * concurrent, a description. For src/flow. */
#include "unit/flow/script.h"

#define ASK(more) \
    "{'type':'step','alias':'ask','kind':'http','with':{'url':'u'},'input':{'fn':'make'}" more "}"

/* What the attempt at `path` sees of it; "": nothing. */
static const char *made(struct rig *rig, const char *path)
{
    static char text[200];
    struct rig_work *work = rig_at(rig, path);
    struct rv__view view;
    assert_int_equal(rv__cell_view(rig->cell, work->effect.actor, work->effect.token, &view),
                     RV_OK);
    struct rv__str json = rig_text(rig, view.made);
    snprintf(text, sizeof text, "%.*s", RV__ARG(json));
    rv__view_done(&view);
    return text;
}

static void parameters_are_made_once_before_the_first_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," ASK(",'maxAttempts':3,'backoffBaseMs':0"), "{}");
    rig_done(rig, "a", "1");
    rig_expect_in_flight(rig, "ask?input");
    assert_int_equal(rig_at(rig, "ask?input")->effect.place, LANE_FUNCTION);
    assert_string_equal(rig_last(rig, "ask?input"),
                        J("{'result':1,'state':{},'alias':'a','stepName':'a'}"));
    rig_done(rig, "ask?input", J("{'url':'made'}"));
    rig_expect_in_flight(rig, "ask");
    assert_int_equal(rig_at(rig, "ask")->effect.place, LANE_HTTP);
    assert_string_equal(made(rig, "ask"), J("{'url':'made'}"));
    rig_fail(rig, "ask", "busy");
    rig_timer(rig, "ask");
    rig_expect_in_flight(rig, "ask"); /* and its input is not made again */
    assert_string_equal(made(rig, "ask"), J("{'url':'made'}"));
    rig_done(rig, "ask", "2");
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("1") ",'ask':" DONE("2") "}"));
    rig_free(rig);
}

static void a_condition_comes_before_it(void **state)
{
    (void)state;
    for (int truth = 0; truth < 2; truth++) {
        struct rig *rig = rig_of(ASK(",'when':{'fn':'may'}"), "{}");
        rig_expect_in_flight(rig, "ask?when");
        rig_done(rig, "ask?when", truth ? "true" : "false");
        if (truth) {
            rig_done(rig, "ask?input", "{}");
            rig_done(rig, "ask", "2");
        }
        rig_expect(rig, RUN_COMPLETED,
                   truth ? J("{'ask':" DONE("2") "}") : J("{'ask':" OUT("null", "skipped") "}"));
        rig_free(rig);
    }
}

/* However the process dies: while it is made, between it and the attempt, in the attempt. */
static void a_crash_keeps_what_was_made(void **state)
{
    (void)state;
    for (int snapshot = 0; snapshot < 2; snapshot++) {
        struct rig *rig = rig_of(ASK(",'when':{'fn':'may'}"), "{}");
        rig_done(rig, "ask?when", "true");
        rig_crash(rig, snapshot);
        rig_expect_in_flight(rig, "ask?input");
        rig_done(rig, "ask?input", J("{'url':'made'}"));
        rig_crash(rig, snapshot);
        rig_expect_in_flight(rig, "ask");
        assert_string_equal(made(rig, "ask"), J("{'url':'made'}"));
        rig_done(rig, "ask", "2");
        rig_expect(rig, RUN_COMPLETED, J("{'ask':" DONE("2") "}"));
        rig_free(rig);
    }
}

static void a_function_that_fails_fails_its_step(void **state)
{
    (void)state;
    struct rig *rig = rig_of(ASK(",'maxAttempts':3,'onError':{'kind':'function','name':'tell'}"),
                             "{}");
    rig_fail(rig, "ask?input", "no url");
    rig_expect_in_flight(rig, "ask:onError");
    rig_done(rig, "ask:onError", "null");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);

    rig = rig_of(ASK(",'continueOnError':true") "," S("z"), "{}");
    rig_fail(rig, "ask?input", "no url");
    rig_done(rig, "z", "3");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_delay_waits_as_long_as_its_function_says(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'step','alias':'pause','kind':'delay','input':{'fn':'make'}}",
                             "{}");
    rig_done(rig, "pause?input", J("{'seconds':1}"));
    assert_string_equal(made(rig, "pause"), J("{'seconds':1}"));
    rig_park(rig, "pause", "", rig->now_ms + 1000);
    rig_timer(rig, "pause");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void children_that_are_workflows_have_functions_of_their_own(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(
        J("{'name':'t','steps':[{'type':'concurrent','alias':'both','steps':["
          "{'type':'workflow','alias':'l','name':'w','input':{'fn':'left'},'steps':[" S(
              "p") "]},"
                   "{'type':'workflow','alias':'r','name':'w','input':{'fn':'right'},'steps':[" S(
                       "p") "]}]}]}"),
        J("{}"), NULL, NULL);
    rig_expect_in_flight(rig, "both:l?input both:r?input");
    const struct rv__effect *left = &rig_at(rig, "both:l?input")->effect;
    const struct rv__effect *right = &rig_at(rig, "both:r?input")->effect;
    assert_true(rv__str_is(rv__input_expr(left->node, left->body)->text, "left"));
    assert_true(rv__str_is(rv__input_expr(right->node, right->body)->text, "right"));
    rig_done(rig, "both:l?input", "1");
    rig_done(rig, "both:r?input", "2");
    rig_done(rig, "both:l:node0:p", "3");
    rig_done(rig, "both:r:node0:p", "4");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* It is asked after the end, of a step as well, and sees what a node after it would. */
static void a_function_describes_what_has_completed(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'description':{'fn':'say'}") "," S("z"), "{}");
    rig_done(rig, "a", "1");
    rig_expect_in_flight(rig, "a?description");
    assert_int_equal(rig_at(rig, "a?description")->effect.place, LANE_FUNCTION);
    assert_string_equal(rig_steps(rig, "a?description"), J("{'a':" DONE("1") "}"));
    assert_string_equal(rig_last(rig, "a?description"),
                        J("{'result':1,'state':{},'alias':'a','stepName':'a'}"));
    rig_done(rig, "a?description", J("'fine'"));
    rig_done(rig, "z", "2");
    rig_expect(rig, RUN_COMPLETED,
               J("{'a':{'result':1,'state':{'description':'fine'},'status':'completed'},'z':" DONE(
                   "2") "}"));
    rig_free(rig);
}

static void a_step_that_describes_itself_is_not_asked(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STEP("a", "'description':{'fn':'say'}") "," STEP("b", "'description':{'fn':'say'}"), "{}");
    rig_done_state(rig, "a", "1", J("{'description':'own'}"), false);
    rig_done_state(rig, "b", "1", "{}", true); /* skipped */
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(parameters_are_made_once_before_the_first_attempt),
        RIG_TEST(a_condition_comes_before_it),
        RIG_TEST(a_crash_keeps_what_was_made),
        RIG_TEST(a_function_that_fails_fails_its_step),
        RIG_TEST(a_delay_waits_as_long_as_its_function_says),
        RIG_TEST(children_that_are_workflows_have_functions_of_their_own),
        RIG_TEST(a_function_describes_what_has_completed),
        RIG_TEST(a_step_that_describes_itself_is_not_asked),
    };
    return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
