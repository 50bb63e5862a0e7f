/* test_supervisors.c: the supervisors, nested in each other, in their corners. For src/flow. */
#include "unit/flow/script.h"

#define EACH(body, more)     "{'type':'forEach','alias':'each','items':'${ .x }','run':" body more "}"
#define LOOP(body, more)     "{'type':'loop','alias':'lo','body':" body ",'until':'${ .x }'" more "}"
#define CONC(children, more) "{'type':'concurrent','alias':'c','steps':[" children "]" more "}"
#define BRANCH(then, more)   "{'type':'branch','alias':'br','if':'${ .x }','then':[" then "]" more "}"
#define FLOW(more)           "{'type':'workflow','name':'w','steps':[" S("p") "," S("q") "]" more "}"
#define AFLOW(alias, more) \
    "{'type':'workflow','alias':'" alias "','name':'w','steps':[" S("p") "," S("q") "]" more "}"
#define CUT OUT("null", "cancelled") /* it was in flight */

/* ------------------------------------------------------------------------- workflow bodies --- */

static void a_workflow_as_body_evaluates_its_input_for_each_iteration(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH(FLOW(",'input':{'n':'${ .loop.item }'}"), ""), "{'run':1}");
    rig_done(rig, "each?items", "[5,6]");
    for (int i = 0; i < 2; i++) {
        char path[64], input[32];
        snprintf(path, sizeof path, "each:iter%d?input", i);
        struct rv__view view = rig_view(rig, "each?input");
        assert_str(rig_text(rig, view.input), J("{'run':1}")); /* not yet its own */
        assert_str(rig_item(rig, &view), i == 0 ? "5" : "6");
        assert_int_equal(view.loop_index, i);
        rv__view_done(&view);
        snprintf(input, sizeof input, "{\"n\":%d}", 5 + i);
        rig_done(rig, "each?input", input);
        rig_crash(rig, i == 0);
        snprintf(path, sizeof path, "each:iter%d:node0:p", i);
        view = rig_view(rig, path);
        assert_str(rig_text(rig, view.input), input);
        rv__view_done(&view);
        rig_done(rig, path, "1");
        snprintf(path, sizeof path, "each:iter%d:node1:q", i);
        rig_done(rig, path, "2");
    }
#define ITER(item, index) \
    "{'item':" item ",'index':" index ",'results':{'p':" DONE("1") ",'q':" DONE("2") "}}"
    rig_expect(rig, RUN_COMPLETED,
               J("{'each':" DONE("{'iterations':[" ITER("5", "0") "," ITER("6", "1") "]}") "}"));
    rig_free(rig);
}

static void an_input_that_cannot_be_evaluated_fails_its_iteration(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        EACH(FLOW(",'inputSchema':{'type':'object'},'onError':{'name':'h'}"), ",'parallel':true"),
        "{}");
    rig_done(rig, "each?items", "[1,2]");
    rig_fail(rig, "each?input", "/n: must be a number"); /* iteration 0; its handler is not told */
    rig_done(rig, "each?input", "{}");
    rig_done(rig, "each:iter1:node0:p", "1");
    rig_done(rig, "each:iter1:node1:q", "2");
    rig_expect(rig, RUN_FAILED,
               J("{'each':" OUT("{'iterations':[{'item':1,'index':0,'results':{}},{'item':2,"
                                "'index':1,'results':{'p':" DONE("1") ",'q':" DONE("2") "}}]}",
                                "failed") "}"));
    assert_str(rv__cell_error(rig->cell),
               J("{'message':'/n: must be a number','path':'each:iter0'}"));
    assert_false(rig_has_fact(rig, "onError"));
    rig_free(rig);
}

static void an_input_may_be_a_function(void **state)
{
    (void)state;
    struct rig *rig = rig_of(AFLOW("pay", ",'input':{'fn':'makeInput'}") "," S("z"), "{}");
    assert_int_equal(rig_at(rig, "pay?input")->effect.eval, EVAL_INPUT);
    rig_lose(rig, "pay?input", true, false); /* a function can be to blame */
    rig_done(rig, "pay?input", NULL);        /* and gives null */
    struct rv__view view = rig_view(rig, "pay:node0:p");
    assert_str(rig_text(rig, view.input), "null");
    rv__view_done(&view);
    rig_finish(rig, "true");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);

    rig = rig_of(AFLOW("pay", ",'input':{'fn':'makeInput'}"), "{}");
    rig_fail(rig, "pay?input", "no");
    rig_expect(rig, RUN_FAILED, J("{'pay':" OUT("null", "failed") "}"));
    rig_free(rig);
}

static void a_loop_may_have_a_workflow_as_body(void **state)
{
    (void)state;
    struct rig *rig = rig_of(LOOP(FLOW(",'input':'${ .a }'"), ",'keep':'last'"), NULL);
    rig_done(rig, "lo?input", "1");
    rig_done(rig, "lo:iter0:node0:p", "1");
    rig_done(rig, "lo:iter0:node1:q", "2");
    rig_done(rig, "lo?until", "false");
    rig_crash(rig, true);
    rig_done(rig, "lo?input", "7");
    struct rv__view view = rig_view(rig, "lo:iter1:node0:p");
    assert_str(rig_text(rig, view.input), "7");
    rv__view_done(&view);
    rig_done(rig, "lo:iter1:node0:p", "3");
    rig_fail(rig, "lo:iter1:node1:q", "no");
    rig_expect(rig, RUN_FAILED,
               J("{'lo':" OUT("{'iterations':[{'index':1,'results':{'p':" DONE("3") ",'q':" OUT(
                                  "null", "failed") "}}]}",
                              "failed") "}"));
    rig_free(rig);
}

/* ------------------------------------------------------------------------------ concurrent --- */

static void concurrent_children_are_steps_nodes_or_workflows(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        S("a") "," CONC(S("x") ",{'alias':'n','nodes':[" S("s") "," S("t") "]}," AFLOW("w", ""),
                        ""),
        "{'in':1}");
    rig_done(rig, "a", "0");
    rig_expect_in_flight(rig, "c:x c:n:node0:s c:w:node0:p");
    static const char *const firsts[] = { "c:x", "c:n:node0:s", "c:w:node0:p" };
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(rig_last(rig, firsts[i]),
                            J("{'result':0,'state':{},'alias':'a','stepName':'a'}"));
    rig_done(rig, "c:n:node0:s", "1");
    assert_string_equal(rig_steps(rig, "c:n:node1:t"), J("{'a':" DONE("0") ",'s':" DONE("1") "}"));
    rig_done(rig, "c:n:node1:t", "2");
    rig_done(rig, "c:w:node0:p", "3");
    assert_string_equal(rig_steps(rig, "c:w:node1:q"), /* children do not see each other */
                        J("{'a':" DONE("0") ",'p':" DONE("3") "}"));
    rig_crash(rig, true);
    rig_done(rig, "c:w:node1:q", "4");
    rig_done(rig, "c:x", "5");
    rig_expect(rig, RUN_COMPLETED,
               J("{'a':" DONE("0") ",'c':" DONE(
                   "{'x':" DONE("5") ",'n':" DONE("{'s':" DONE("1") ",'t':" DONE(
                       "2") "}") ",'w':" DONE("{'p':" DONE("3") ",'q':" DONE("4") "}") "}") "}"));
    rig_free(rig);
}

static void a_child_that_has_not_ended_is_cancelled(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        CONC("{'alias':'n','nodes':[" S("s") "]}," AFLOW("w", "") "," S("x"), ""), NULL);
    rig_fail(rig, "c:x", "no");
    rig_expect(rig, RUN_FAILED,
               J("{'c':" OUT("{'n':" OUT("{'s':" CUT "}", "cancelled") ",'w':" OUT(
                                 "{'p':" CUT "}", "cancelled") ",'x':" OUT("null", "failed") "}",
                             "failed") "}"));
    rig_expect_in_flight(rig, "");
    rig_free(rig);
}

static void join_counts_soft_failures_of_steps_as_failures(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CONC(S("x") "," S("y") "," S("z"), ",'join':2"), NULL);
    rig_fail_as(rig, "c:x", "soft", BEHAVIOR_CONTINUE, 0);
    rig_expect(rig, RUN_RUNNING, NULL);
    rig_fail_as(rig, "c:y", "soft", BEHAVIOR_CONTINUE, 0);
    rig_expect(rig, RUN_FAILED, NULL);
    assert_true(rig_has_fact(rig, "fewer children completed"));
    rig_free(rig);

    /* In a child of several nodes a soft failure is the node's affair: the child completes. */
    rig = rig_of(CONC("{'alias':'n','nodes':[" S("s") "," S("t") "]}," S("x"), ",'join':'first'"),
                 NULL);
    rig_fail_as(rig, "c:n:node0:s", "soft", BEHAVIOR_CONTINUE, 0);
    rig_done(rig, "c:n:node1:t", "1");
    rig_expect(rig, RUN_COMPLETED,
               J("{'c':" DONE("{'n':" DONE("{'s':" OUT("null", "failed") ",'t':" DONE(
                   "1") "}") ",'x':" OUT("null", "cancelled") "}") "}"));
    rig_free(rig);
}

static void join_takes_any_failure_until_it_cannot_be_met(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CONC(S("x") "," S("y") "," S("z"), ",'join':2,'onFailure':'collect'"),
                             NULL);
    rig_fail(rig, "c:x", "one");
    rig_done(rig, "c:y", "1");
    rig_done(rig, "c:z", "2");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
    rig = rig_of(CONC(S("x") "," S("y"), ",'join':2"), NULL);
    rig_fail(rig, "c:x", "one");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_str(rv__cell_error(rig->cell), J("{'message':'one','path':'c:x'}"));
    rig_free(rig);
}

static void waiting_children_never_start_after_a_failure(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," CONC(S("x") "," S("y") "," S("z"), ""), NULL);
    rig->grants[LANE_FUNCTION] = false;
    rig_done(rig, "a", "1");
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "c:x");
    rig_fail(rig, "c:x", "no");
    rig->grants[LANE_FUNCTION] = true;
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "");
    rig_expect(rig, RUN_FAILED,
               J("{'a':" DONE("1") ",'c':" OUT(
                   "{'x':" OUT("null", "failed") ",'y':" OUT("null", "cancelled") ",'z':" OUT(
                       "null", "cancelled") "}",
                   "failed") "}"));
    rig_free(rig);
}

/* -------------------------------------------------------------------------------- detached --- */

#define DETACHED(children) CONC(children, ",'continueOn':'detached'")

static void a_detached_child_keeps_its_iteration(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        EACH("[" S("s") "," DETACHED(S("x") ",{'alias':'n','nodes':[" S("u") "," S("v") "]}") "]",
             ""),
        NULL);
    rig_done(rig, "each?items", J("[{'k':1},'b']"));
    rig_done(rig, "each:iter0:node0:s", "1");
    rig_done(rig, "each:iter1:node0:s", "2"); /* the first went on at once */
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_expect_in_flight(rig, "each:iter0:node1:c:x each:iter0:node1:c:n:node0:u "
                              "each:iter1:node1:c:x each:iter1:node1:c:n:node0:u");
    for (int crash = 0; crash < 3; crash++) {
        struct rv__view view = rig_view(rig, "each:iter0:node1:c:n:node0:u");
        assert_int_equal(view.loop_index, 0);
        assert_int_equal(view.vector[0], 0);
        assert_str(rig_item(rig, &view), J("{'k':1}"));
        assert_true(view.items != NULL || view.pieces != NULL);
        rv__view_done(&view);
        view = rig_view(rig, "each:iter1:node1:c:x");
        assert_int_equal(view.loop_index, 1);
        assert_str(rig_item(rig, &view), J("'b'"));
        rv__view_done(&view);
        assert_string_equal(rig_steps(rig, "each:iter1:node1:c:x"), J("{'s':" DONE("2") "}"));
        rig_crash(rig, crash == 1);
    }
    rig_done(rig, "each:iter0:node1:c:n:node0:u", "3");
    rig_done(rig, "each:iter0:node1:c:n:node1:v", "4");
    rig_fail(rig, "each:iter0:node1:c:x", "only logged");
    rig_expect_in_flight(rig, "each:iter1:node1:c:x each:iter1:node1:c:n:node0:u");
    assert_true(rig_has_fact(rig, "\"k\":\"detached.ended\""));
    rig_finish(rig, "1");
    assert_false(rv__cell_active(rig->cell));
    assert_int_equal(rv__cell_actors(rig->cell), 0);
    rig_free(rig);
}

static void a_detached_block_may_detach_again(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        EACH("[{'type':'loop','alias':'lo','until':'${ .y }','keep':'none','body':["
             "{'type':'concurrent','alias':'d','continueOn':'detached','steps':[{'alias':'n',"
             "'nodes':[{'type':'forEach','alias':'in','items':'${ .z }','run':[" DETACHED(
                 S("x")) "]}]}]}]}]",
             ""),
        NULL);
    rig_done(rig, "each?items", "[7]");
    rig_done(rig, "each:iter0:node0:lo?until", "true");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_done(rig, "each:iter0:node0:lo:iter0:node0:d:n:node0:in?items", "[8,9]");
    rig_expect_in_flight(rig, "each:iter0:node0:lo:iter0:node0:d:n:node0:in:iter0:node0:c:x "
                              "each:iter0:node0:lo:iter0:node0:d:n:node0:in:iter1:node0:c:x");
    rig_crash(rig, true);
    struct rv__view view = rig_view(rig,
                                    "each:iter0:node0:lo:iter0:node0:d:n:node0:in:iter1:node0:c:x");
    assert_int_equal(view.vector[0], 0);
    assert_int_equal(view.vector[1], 0);
    assert_int_equal(view.vector[2], 1);
    assert_str(rig_item(rig, &view), "9");
    rv__view_done(&view);
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    rig_expect_in_flight(rig, "");
    assert_false(rv__cell_active(rig->cell));
    assert_true(rig_has_fact(rig, "detached.cancelled"));
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK); /* once is enough */
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* As long as anything of the run is alive. */
static void what_is_detached_gets_its_signal_after_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_of(DETACHED(SIGNAL("x", "go")) "," S("b"), NULL);
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_signal(rig, "other", "0");
    rig_crash(rig, true);
    assert_true(rv__cell_active(rig->cell));
    rig_signal(rig, "go", "7");
    assert_true(rig_has_fact(rig, "\"signal\":true,\"result\":7"));
    assert_false(rv__cell_active(rig->cell));
    struct rv__msg late = { .kind = MSG_SIGNAL, .name = rv__str("go") };
    assert_int_equal(rig_turn(rig, &late), RV_ESTATE);
    rig_free(rig);
}

static void cancelling_the_run_cancels_what_is_detached(void **state)
{
    (void)state;
    struct rig *rig = rig_of(DETACHED(S("x") "," S("y")) "," S("b"), NULL);
    rig_done(rig, "c:x", "1");
    rig_say(rig, MSG_CANCEL);
    rig_expect_in_flight(rig, "");
    assert_false(rv__cell_active(rig->cell));
    rig_expect(rig, RUN_CANCELLED, NULL);
    rig_free(rig);
}

static void detached_children_may_end_before_the_run(void **state)
{
    (void)state;
    struct rig *rig = rig_of(DETACHED(S("x")) "," S("b"), NULL);
    rig_done(rig, "c:x", "1");
    rig_expect_in_flight(rig, "b");
    rig_crash(rig, true);
    rig_done(rig, "b", "1");
    rig_expect(rig, RUN_COMPLETED,
               J("{'c':{'result':null,'state':{'detached':true},'status':'completed'},'b':" DONE(
                   "1") "}"));
    rig_free(rig);
}

static void a_detached_block_waits_for_places_like_anybody(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," DETACHED(S("x") "," S("y")), NULL);
    rig->grants[LANE_FUNCTION] = false;
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_expect_in_flight(rig, "");
    assert_true(rv__cell_wants(rig->cell, LANE_FUNCTION));
    rig_crash(rig, true);
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "c:x");
    rig->grants[LANE_FUNCTION] = true;
    rig_finish(rig, "1");
    assert_false(rv__cell_active(rig->cell));
    rig_free(rig);
}

/* After its end a run cannot be suspended: what is stuck fails, and only that. */
static void after_the_end_what_is_stuck_fails(void **state)
{
    static const struct {
        const char *child, *path;
    } rows[] = {
        { S("x"), "c:x" },
        { STEP("x", "'when':{'fn':'f'}"), "c:x?when" },
        { STEP("x", "'when':{'fn':'f'},'onError':{'name':'h'}"), "c:x?when" },
        { "{'alias':'n','nodes':[{'type':'branch','alias':'br','if':{'fn':'f'},'then':[" S(
              "p") "]}]}",
          "c:n:node0:br?if" },
        { "{'alias':'n','nodes':[{'type':'forEach','alias':'e','items':{'fn':'f'},'run':[" S(
              "p") "]}]}",
          "c:n:node0:e?items" },
        { "{'alias':'n','nodes':[{'type':'loop','alias':'l','while':{'fn':'f'},'body':[" S(
              "p") "]}]}",
          "c:n:node0:l?while" },
        { AFLOW("w", ",'input':{'fn':'f'}"), "c?input" },
        { "{'alias':'n','nodes':[" AFLOW("w", ",'when':{'fn':'f'}") "]}", "c:n:node0:w?when" },
        { "{'alias':'n','nodes':[{'type':'concurrent','alias':'k','when':{'fn':'f'},'steps':[" S(
              "p") "]}]}",
          "c:n:node0:k?when" },
        { "{'alias':'n','nodes':[{'type':'branch','alias':'br','when':{'fn':'f'},'if':true,'then':"
          "[" S("p") "]}]}",
          "c:n:node0:br?when" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan,
                 "{'type':'concurrent','alias':'c','continueOn':'detached','steps':[%s]}",
                 rows[i].child);
        struct rig *rig = rig_of(plan, NULL);
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_poison(rig, rows[i].path);
        rig_finish(rig, "true"); /* a handler */
        if (rv__cell_active(rig->cell))
            fail_msg("row %zu is still alive: %s", i, rig->journal.text);
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

/* -------------------------------------------------------------------------------- handlers --- */

static void a_nested_workflow_has_its_own_handler(void **state)
{
    (void)state;
    struct rig *rig = rig_of(AFLOW("pay", ",'onError':{'name':'refund'}") "," S("z"), NULL);
    rig_done(rig, "pay:node0:p", "1");
    rig_fail(rig, "pay:node1:q", "no");
    rig_expect_in_flight(rig, "pay:onError");
    rig_crash(rig, false);
    rig_timer(rig, "pay:onError"); /* 30 s: that it fails changes nothing */
    rig_expect(rig, RUN_FAILED, J("{'pay':" OUT("null", "failed") "}"));
    assert_str(rv__cell_error(rig->cell), J("{'message':'no','path':'pay:node1:q'}"));
    assert_str(rv__cell_failed_step(rig->cell), "pay");
    rig_free(rig);
}

static void handlers_run_inside_out(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        J("{'name':'t','onError':{'name':'outer'},'steps':[{'type':'forEach','alias':'each',"
          "'items':'${ .x }','parallel':true,'run':{'type':'workflow','name':'w','onError':{'kind':"
          "'http','with':{'url':'http://x'}},'steps':[{'type':'step','alias':'p','name':'p',"
          "'onError':{'kind':'command','with':['x']}}]}}]}"),
        NULL);
    rig_done(rig, "each?items", "[1,2]");
    rig_fail(rig, "each:iter0:node0:p", "no");
    rig_done(rig, "each:iter1:node0:p", "1");
    rig_done(rig, "each:iter0:node0:p:onError", "1");
    rig_expect_in_flight(rig, "each:iter0:onError");
    rig_done(rig, "each:iter0:onError", "1");
    rig_expect_in_flight(rig, "onError");
    rig_crash(rig, true);
    rig_lose(rig, "onError", false, false);
    rig_done(rig, "onError", NULL);
    rig_expect(rig, RUN_FAILED,
               J("{'each':" OUT(
                   "{'iterations':[{'item':1,'index':0,'results':{'p':" OUT(
                       "null", "failed") "}},{'item':2,'index':1,'results':{'p':" DONE("1") "}}]}",
                   "failed") "}"));
    rig_free(rig);
}

/* ----------------------------------------------------------------------------------- loops --- */

#define INNER "{'type':'forEach','alias':'in','items':'${ .z }','run':[" S("s") "]}"

static void drive_loop_of_loops(struct rig *rig)
{
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "lo:iter%d:node0:in?items", i);
        rig_done(rig, path, i == 0 ? "[1,2]" : "[3]");
        for (int k = 0; k < 2 - i; k++) {
            snprintf(path, sizeof path, "lo:iter%d:node0:in:iter%d:node0:s", i, k);
            rig_done(rig, path, i == 0 ? (k == 0 ? "10" : "20") : "30");
        }
        rig_crash(rig, i == 0);
        if (i == 1) /* the condition sees the iteration, with the rows it has in the store */
            assert_non_null(strstr(rig_steps(rig, "lo?until"), "\"result\":30"));
        rig_done(rig, "lo?until", i == 0 ? "false" : "true");
    }
}

static void a_loop_keeps_nested_iterations_as_it_was_told(void **state)
{
#define ROW(item, index, result) \
    "{'item':" item ",'index':" index ",'results':{'s':" DONE(result) "}}"
#define FIRST                           \
    "{'index':0,'results':{'in':" DONE( \
        "{'iterations':[" ROW("1", "0", "10") "," ROW("2", "1", "20") "]}") "}}"
#define SECOND "{'index':1,'results':{'in':" DONE("{'iterations':[" ROW("3", "0", "30") "]}") "}}"
    static const struct {
        const char *keep, *expected;
    } rows[] = {
        { "all", "{'lo':" DONE("{'iterations':[" FIRST "," SECOND "]}") "}" },
        { "last", "{'lo':" DONE("{'iterations':[" SECOND "]}") "}" },
        { "none", "{'lo':" DONE("{'iterations':[]}") "}" },
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan,
                 "{'type':'loop','alias':'lo','until':'${ .x }','keep':'%s','body':[" INNER "]}",
                 rows[i].keep);
        struct rig *rig = rig_of(plan, NULL);
        drive_loop_of_loops(rig);
        rig_expect(rig, RUN_COMPLETED, J(rows[i].expected));
        rig_free(rig);
    }
}

/* Whatever is around a forEach in an iteration: its rows are found again. */
static void rows_in_rows_are_put_together_again(void **state)
{
#define IN DONE("{'iterations':[" ROW("9", "0", "1") "]}")
    static const struct {
        const char *node, *result; /* of the node 'k', in the one iteration of 'each' */
    } rows[] = {
        { "{'type':'workflow','alias':'k','name':'w','steps':[" S("s") "," INNER "]}",
          "{'iterations':[" ROW("9", "0", "1") "]}" },
        { "{'type':'workflow','alias':'k','name':'w','steps':[" INNER "," S("s") "]}", "1" },
        { "{'type':'branch','alias':'k','if':true,'then':[" INNER
          "," S("t") "],'else':[" S("s") "]}",
          "{'taken':'then','results':{'in':" IN
          ",'t':" DONE("1") ",'s':" OUT("null", "skipped") "}}" },
        { "{'type':'concurrent','alias':'k','steps':[" S(
              "s") ",{'alias':'n','nodes':[" INNER
                   "]},{'type':'workflow','alias':'w','name':'w','steps':[" INNER "]}]}",
          "{'s':" DONE("1") ",'n':" DONE("{'in':" IN "}") ",'w':" DONE("{'in':" IN "}") "}" },
        { "{'type':'loop','alias':'k','until':'${ .u }','keep':'last','body':[" INNER "]}",
          "{'iterations':[{'index':0,'results':{'in':" IN "}}]}" },
        { "{'type':'loop','alias':'k','until':'${ .u }','keep':'none','body':[" INNER "]}",
          "{'iterations':[]}" },
        { "{'type':'loop','alias':'k','until':'${ .u }','keep':'all','body':[" INNER "]}",
          "{'iterations':[{'index':0,'results':{'in':" IN "}}]}" },
        { "{'type':'forEach','alias':'k','items':'${ .i }','parallel':true,'run':{'type':"
          "'workflow','name':'w','steps':[" INNER "]}}",
          "{'iterations':[{'item':9,'index':0,'results':{'in':" IN "}}]}" },
        { "{'type':'step','alias':'k','name':'k'}", "1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4000];
        snprintf(text, sizeof text,
                 "{'type':'forEach','alias':'each','items':'${ .x }','run':[%s]}", rows[i].node);
        struct rig *rig = rig_of(text, NULL);
        while (rig->work_count > 0) {
            char path[256];
            memcpy(path, rig->work[0].path, sizeof path);
            int eval = rig->work[0].effect.eval;
            rig_done(rig, path, eval == EVAL_ITEMS ? "[9]" : eval >= 0 ? "true" : "1");
        }
        snprintf(text, sizeof text,
                 "{'each':" DONE(
                     "{'iterations':[{'item':9,'index':0,'results':{'k':" DONE("%s") "}}]}") "}",
                 rows[i].result);
        rig_expect(rig, RUN_COMPLETED, J(text));
        rig_free(rig);
    }
}

/* The same alias may be on both paths of a branch, and mean something else there. */
static void a_row_shows_the_path_that_was_taken(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH("[{'type':'branch','alias':'br','if':'${ .c }','then':[" INNER
                                  "],'else':[{'type':'step','alias':'in','name':'in'}]}]",
                                  ""),
                             NULL);
    rig_done(rig, "each?items", "[1]");
    rig_done(rig, "each:iter0:node0:br?if", "false");
    rig_done(rig, "each:iter0:node0:br:else:node0:in", J("{'mine':1}"));
    rig_expect(rig, RUN_COMPLETED,
               J("{'each':" DONE("{'iterations':[{'item':1,'index':0,'results':{'br':" DONE(
                   "{'taken':'else','results':{'in':" DONE("{'mine':1}") "}}") "}}]}") "}"));
    rig_free(rig);
}

static void a_failed_condition_fails_the_loop(void **state)
{
    (void)state;
    struct rig *rig = rig_of(LOOP("[" S("p") "]", ""), NULL);
    rig_done(rig, "lo:iter0:node0:p", "1");
    rig_fail(rig, "lo?until", "jq says no");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
    rig = rig_of(
        "{'type':'loop','alias':'lo','while':{'fn':'f'},'maxIterations':1,'body':[" S("p") "]}",
        NULL);
    rig_done(rig, "lo?while", "{}");
    rig_done(rig, "lo:iter0:node0:p", "1");
    rig_done(rig, "lo?while", "0"); /* jq's truth: only false and null are not */
    rig_expect(rig, RUN_FAILED, NULL);
    assert_true(rig_has_fact(rig, "'while' is still true after 1 iteration\""));
    rig_free(rig);
}

static void an_alias_of_an_earlier_iteration_is_replaced(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("s") "," LOOP("[" BRANCH(S("t"), "") "," S("s") "]", ""), NULL);
    rig_done(rig, "s", "0");
    rig_done(rig, "lo:iter0:node0:br?if", "true");
    rig_done(rig, "lo:iter0:node0:br:then:node0:t", "1");
    rig_done(rig, "lo:iter0:node1:s", "2");
    rig_done(rig, "lo?until", "false");
    rig_done(rig, "lo:iter1:node0:br?if", "false");
    assert_string_equal(rig_steps(rig, "lo:iter1:node1:s"),
                        J("{'s':" DONE("2") ",'br':" DONE(
                            "{'taken':'else','results':{'t':" OUT("null", "skipped") "}}") "}"));
    rig_finish(rig, "true");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* ------------------------------------------------------------------------------------ when --- */

static const struct when_row {
    const char *node; /* but for its `when` and the closing brace */
    const char *first;
} whens[] = {
    { "{'type':'step','alias':'k','name':'k'", "k" },
    { "{'type':'step','alias':'k','kind':'command','with':['x']", "k" },
    { "{'type':'step','alias':'k','kind':'value','with':1", "k" },
    { "{'type':'step','alias':'k','kind':'delay','with':5", "" },
    { "{'type':'step','alias':'k','kind':'signal','with':{'name':'go'}", "" },
    { "{'type':'branch','alias':'k','if':true,'then':[" S("p") "]", "k?if" },
    { "{'type':'loop','alias':'k','while':true,'body':[" S("p") "]", "k?while" },
    { "{'type':'loop','alias':'k','until':true,'body':[" S("p") "]", "k:iter0:node0:p" },
    { "{'type':'forEach','alias':'k','items':[1],'run':[" S("p") "]", "k?items" },
    { "{'type':'concurrent','alias':'k','steps':[" S("p") "]", "k:p" },
    { "{'type':'concurrent','alias':'k','steps':[" S("p") "],'continueOn':'detached'", "k:p z" },
    { "{'type':'workflow','alias':'k','name':'w','steps':[" S("p") "]", "k:node0:p" },
    { "{'type':'workflow','alias':'k','name':'w','input':1,'steps':[" S("p") "]", "k?input" },
};

static struct rig *rig_when(const struct when_row *row, const char *when)
{
    char plan[1000];
    snprintf(plan, sizeof plan, "%s,'when':%s}," S("z"), row->node, when);
    return rig_of(plan, NULL);
}

static void when_is_asked_before_anything_begins(void **state)
{
    static const char *const exprs[] = { "'${ .w }'", "{'fn':'w'}" };
    (void)state;
    for (size_t i = 0; i < sizeof whens / sizeof *whens * 2; i++) {
        const struct when_row *row = &whens[i / 2];
        struct rig *rig = rig_when(row, exprs[i % 2]);
        rig_expect_in_flight(rig, "k?when");
        rig_lose(rig, "k?when", false, i % 2); /* once more */
        rig_expect_in_flight(rig, "k?when");
        rig_crash(rig, i % 2);
        rig_done(rig, "k?when", i % 4 < 2 ? "false" : "null");
        rig_expect_in_flight(rig, "z");
        rig_done(rig, "z", "1");
        rig_expect(rig, RUN_COMPLETED, J("{'k':" OUT("null", "skipped") ",'z':" DONE("1") "}"));
        rig_free(rig);

        rig = rig_when(row, exprs[i % 2]);
        rig_done(rig, "k?when", "[]");
        if (row->first[0] != '\0')
            rig_expect_in_flight(rig, row->first);
        rig_crash(rig, i % 2);
        rig_signal(rig, "go", NULL);
        rig_finish(rig, i % 4 < 2 ? "false" : "[true]");
        assert_int_not_equal(rv__cell_status(rig->cell), RUN_RUNNING);
        rig_free(rig);

        rig = rig_when(row, exprs[i % 2]);
        rig_fail_as(rig, "k?when", "cannot say", BEHAVIOR_PLAIN, 0);
        rig_expect(rig, RUN_FAILED, J("{'k':" OUT("null", "failed") "}"));
        rig_free(rig);
    }
}

/* A step starts only on a grant, also when its `when` was true: ARCHITECTURE 3, decision 3. */
static void after_its_when_a_node_waits_for_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof whens / sizeof *whens; i++) {
        struct rig *rig = rig_when(&whens[i], "'${ .w }'");
        rig_give(rig, false);
        rig_done(rig, "k?when", "true");
        for (size_t w = 0; w < rig->work_count; w++)
            if (rig->work[w].effect.kind == EFFECT_START)
                fail_msg("row %zu: %s started without a place", i, rig->work[w].path);
        rig_crash(rig, true);
        rig_give(rig, true);
        rig_turn(rig, NULL);
        if (whens[i].first[0] != '\0')
            rig_expect_in_flight(rig, whens[i].first);
        rig_free(rig);
    }
}

/* ---------------------------------------------------------------------------------- cancel --- */

#define EVERYTHING                                                                                 \
    AFLOW("w0", "")                                                                                \
    "," S("a") "," BRANCH(                                                                         \
        LOOP("[" EACH(                                                                             \
                 "[" CONC("{'alias':'n','nodes':[" AFLOW(                                          \
                              "w",                                                                 \
                              ",'input':'${ .i "                                                   \
                              "}','onError':{'name':'h'}") "]}," STEP("x",                         \
                                                                      "'maxAttempts':2,'onError':" \
                                                                      "{'name':'h'}"),             \
                          ",'onFailure':'collect'") "]",                                           \
                 ",'parallel':true,'concurrency':2") "]",                                          \
             ",'maxIterations':2"),                                                                \
        "") "," DETACHED(S("d")) "," S("z")

/* Cancel after the n-th turn, for every n. */
static void cancel_is_possible_in_every_phase(void **state)
{
    (void)state;
    for (int n = 0; n < 60; n += rig_torture ? 6 : 1) {
        struct rig *rig = rig_of(EVERYTHING, "{}");
        for (int i = 0; i < n && rig->work_count > 0; i++) {
            char path[256];
            struct rig_work *work = &rig->work[(size_t)i % rig->work_count];
            memcpy(path, work->path, sizeof path);
            if (work->effect.kind == EFFECT_WAIT)
                rig_timer(rig, path);
            else if (work->effect.eval == EVAL_ITEMS)
                rig_done(rig, path, "[1,2,3]");
            else if (work->effect.eval < 0 && i % 5 == 4)
                rig_fail(rig, path, "no");
            else
                rig_done(rig, path, work->effect.eval == EVAL_UNTIL ? "false" : "true");
        }
        enum rv__run_status before = rv__cell_status(rig->cell);
        assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
        rig_expect(rig, before == RUN_RUNNING ? RUN_CANCELLED : before, NULL);
        rig_expect_in_flight(rig, "");
        assert_false(rv__cell_active(rig->cell));
        assert_int_equal(rv__cell_actors(rig->cell), 0);
        rig_free(rig);
    }
}

static void a_late_answer_after_a_cancel_is_stale(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    struct rv__effect effect = rig_at(rig, "a")->effect;
    rig_say(rig, MSG_CANCEL);
    struct rv__msg late = { .kind = MSG_DONE, .actor = effect.actor, .token = effect.token };
    assert_int_equal(rig_turn(rig, &late), RV_OK);
    assert_int_equal(rv__cell_stale(rig->cell), 1);
    rig_expect(rig, RUN_CANCELLED, J("{'a':" OUT("null", "cancelled") "}"));
    rig_free(rig);
}

/* ---------------------------------------------------------------------- ended from outside --- */

#define BOTH "[" S("p") "," S("q") "]" /* a body of two */

/* What has been done, and what that leaves if the run is cancelled then. */
static const struct cut {
    const char *says, *plan;
    struct {
        const char *path, *result;
    } done[8];
    const char *left; /* the result of its node at the top */
} cuts[] = {
    { "a branch tells its path, what has ended on it, and what was in flight",
      BRANCH(S("p") "," S("q") "," S("r"), ",'else':[" S("e") "]"),
      { { "br?if", "true" }, { "br:then:node0:p", "1" } },
      "{'taken':'then','results':{'p':" DONE("1") ",'q':" CUT ",'e':" OUT("null", "skipped") "}}" },
    { "one that has not decided tells nothing", BRANCH(S("p"), ""), { { NULL, NULL } }, "null" },
    { "a concurrent tells each child, as far as it got",
      CONC(S("x") "," S("y") ",{'alias':'n','nodes':" BOTH "}," AFLOW("w", ""), ""),
      { { "c:x", "1" }, { "c:n:node0:p", "2" } },
      "{'x':" DONE("1") ",'y':" CUT
                        ",'n':" OUT("{'p':" DONE("2") ",'q':" CUT "}",
                                    "cancelled") ",'w':" OUT("{'p':" CUT "}", "cancelled") "}" },
    { "a forEach tells the iterations that have ended, and that in which something has",
      EACH(BOTH, ""),
      { { "each?items", "[5,6,7]" },
        { "each:iter0:node0:p", "1" },
        { "each:iter0:node1:q", "2" },
        { "each:iter1:node0:p", "3" } },
      "{'iterations':[{'item':5,'index':0,'results':{'p':" DONE("1") ",'q':" DONE(
          "2") "}},{'item':6,'index':1,'results':{'p':" DONE("3") ",'q':" CUT "}}]}" },
    { "in order, whoever was first",
      EACH(BOTH, ",'parallel':true"),
      { { "each?items", "[5,6,7]" },
        { "each:iter2:node0:p", "1" },
        { "each:iter2:node1:q", "2" },
        { "each:iter0:node0:p", "3" } },
      "{'iterations':[{'item':5,'index':0,'results':{'p':" DONE(
          "3") ",'q':" CUT
               "}},{'item':7,'index':2,'results':{'p':" DONE("1") ",'q':" DONE("2") "}}]}" },
    { "one without items tells nothing", EACH(BOTH, ""), { { NULL, NULL } }, "null" },
    { "a loop tells its iterations, and that in which something has ended",
      LOOP(BOTH, ""),
      { { "lo:iter0:node0:p", "1" },
        { "lo:iter0:node1:q", "2" },
        { "lo?until", "false" },
        { "lo:iter1:node0:p", "3" } },
      "{'iterations':[{'index':0,'results':{'p':" DONE("1") ",'q':" DONE(
          "2") "}},{'index':1,'results':{'p':" DONE("3") ",'q':" CUT "}}]}" },
    { "one that keeps the last tells that, if something has ended in it",
      LOOP(BOTH, ",'keep':'last'"),
      { { "lo:iter0:node0:p", "1" },
        { "lo:iter0:node1:q", "2" },
        { "lo?until", "false" },
        { "lo:iter1:node0:p", "3" } },
      "{'iterations':[{'index':1,'results':{'p':" DONE("3") ",'q':" CUT "}}]}" },
    { "and else the one before",
      LOOP(BOTH, ",'keep':'last'"),
      { { "lo:iter0:node0:p", "1" }, { "lo:iter0:node1:q", "2" }, { "lo?until", "false" } },
      "{'iterations':[{'index':0,'results':{'p':" DONE("1") ",'q':" DONE("2") "}}]}" },
    { "one that keeps none has none",
      LOOP(BOTH, ",'keep':'none'"),
      { { "lo:iter0:node0:p", "1" } },
      "{'iterations':[]}" },
    { "a nested workflow has no result before its end",
      AFLOW("w", ""),
      { { "w:node0:p", "1" } },
      "null" },
    { "iterations in iterations are told as those around them are",
      EACH("[{'type':'forEach','alias':'in','items':'${ .x }','run':" BOTH "}]",
           ",'parallel':true"),
      { { "each?items", "[5,6]" },
        { "each:iter0:node0:in?items", "[8,9]" },
        { "each:iter1:node0:in?items", "[8]" },
        { "each:iter0:node0:in:iter0:node0:p", "1" },
        { "each:iter0:node0:in:iter0:node1:q", "2" },
        { "each:iter0:node0:in:iter1:node0:p", "3" } },
      "{'iterations':[{'item':5,'index':0,'results':{'in':" OUT(
          "{'iterations':[{'item':8,'index':0,'results':{'p':" DONE("1") ",'q':" DONE(
              "2") "}},{'item':9,'index':1,'results':{'p':" DONE("3") ",'q':" CUT "}}]}",
          "cancelled") "}}]}" },
};

static void what_is_cancelled_tells_what_has_ended_in_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const struct cut *cut = &cuts[i];
        struct rig *rig = rig_of(cut->plan, NULL);
        char expected[2048];
        for (size_t k = 0; cut->done[k].path != NULL; k++)
            rig_done(rig, cut->done[k].path, cut->done[k].result);
        rig_crash(rig, i % 2 == 0);
        rig_say(rig, MSG_CANCEL);
        struct rv__str name = rv__cell_plan(rig->cell)->body.nodes[0]->alias;
        snprintf(expected, sizeof expected,
                 "{'%.*s':{'result':%s,'state':{},'status':'cancelled'}}", RV__ARG(name),
                 cut->left);
        print_message("# %s\n", cut->says);
        rig_expect(rig, RUN_CANCELLED, J(expected));
        rig_crash(rig, true);
        rig_expect(rig, RUN_CANCELLED, J(expected));
        rig_free(rig);
    }
}

static void an_abort_tells_what_has_ended_in_the_node_that_fails(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH(BOTH, ""), NULL);
    rig_done(rig, "each?items", "[5,6]");
    rig_done(rig, "each:iter0:node0:p", "1");
    rig_poison(rig, "each:iter0:node1:q");
    rig_say(rig, MSG_ABORT);
    rig_expect(rig, RUN_FAILED,
               J("{'each':" OUT("{'iterations':[{'item':5,'index':0,'results':{'p':" DONE(
                                    "1") ",'q':" CUT "}}]}",
                                "failed") "}"));
    rig_free(rig);
}

/* The rows of what a concurrent ends stand in its own result, in an iteration too. */
static void what_a_concurrent_ends_tells_what_has_ended_in_it(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'out','items':'${ .x }','run':[" CONC(
            "{'alias':'n','nodes':[" EACH(BOTH, "") "]}," S("x"), ",'join':'first'") "]}",
        NULL);
    rig_done(rig, "out?items", "[1]");
    rig_done(rig, "out:iter0:node0:c:n:node0:each?items", "[5,6]");
    rig_done(rig, "out:iter0:node0:c:n:node0:each:iter0:node0:p", "1");
    rig_done(rig, "out:iter0:node0:c:x", "2");
    rig_expect(
        rig, RUN_COMPLETED,
        J("{'out':" DONE("{'iterations':[{'item':1,'index':0,'results':{'c':" DONE(
            "{'n':" OUT("{'each':" OUT("{'iterations':[{'item':5,'index':0,'results':{'p':" DONE(
                                           "1") ",'q':" CUT "}}]}",
                                       "cancelled") "}",
                        "cancelled") ",'x':" DONE("2") "}") "}}]}") "}"));
    rig_free(rig);
}

/* --------------------------------------------------------------------------------- forEach --- */

static void for_each_may_be_over_a_constant_list_or_a_function(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'each','items':{'fn':'list'},'run':[" S("s") "]}", NULL);
    rig_lose(rig, "each?items", true, false);
    rig_crash(rig, true);
    rig_done(rig, "each?items", NULL); /* null is no array */
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void concurrency_is_kept(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH("[" S("s") "]", ",'parallel':true,'concurrency':3"), NULL);
    rig_done(rig, "each?items", "[0,1,2,3,4,5,6]");
    for (int i = 0; i < 7; i++) {
        char path[64];
        assert_int_equal(rig->work_count, 7 - i < 3 ? 7 - i : 3);
        snprintf(path, sizeof path, "each:iter%d:node0:s", i);
        if (i == 3)
            rig_crash(rig, true);
        rig_done(rig, path, "1");
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_soft_failure_stops_no_iteration(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH("[" S("s") "," S("t") "]", ",'parallel':true"), NULL);
    rig_done(rig, "each?items", "[0,1]");
    rig_fail_as(rig, "each:iter0:node0:s", "soft", BEHAVIOR_CONTINUE, 0);
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* Bodies that begin with what needs nobody start without a place. */
static void what_begins_with_a_wait_needs_no_place(void **state)
{
    static const char *const nodes[] = {
        "{'type':'workflow','alias':'k','name':'w','steps':[" DELAY("d", "5") "]}",
        "{'type':'loop','alias':'k','until':true,'body':[" DELAY("d", "5") "]}",
        "{'type':'concurrent','alias':'k','steps':[" DELAY("d", "5") "," SIGNAL("s", "go") "]}",
        "{'type':'concurrent','alias':'k','steps':[{'alias':'n','nodes':[" DELAY(
            "d", "5") "]},"
                      "{'type':'workflow','alias':'w','name':'w','steps':[" SIGNAL(
                          "s", "go") "]}],'join':1}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan, S("a") ",%s", nodes[i]);
        struct rig *rig = rig_of(plan, NULL);
        rig_give(rig, false);
        rig_done(rig, "a", "1");
        assert_int_equal(rig->work_count, 1); /* the delay */
        assert_int_equal(rig->work[0].effect.kind, EFFECT_WAIT);
        rig_crash(rig, i % 2);
        rig_give(rig, true);
        rig_finish(rig, "true");
        rig_signal(rig, "go", "1");
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

/* A workflow as a child: it is done when its nodes are, whatever became of the last. */
static void a_workflow_child_is_good_for_join_if_it_completes(void **state)
{
    (void)state;
    struct rig *rig = rig_of(CONC(AFLOW("w", "") "," S("x"), ",'join':1"), NULL);
    rig_done(rig, "c:w:node0:p", "1");
    rig_fail_as(rig, "c:w:node1:q", "soft", BEHAVIOR_CONTINUE, 0);
    rig_expect(rig, RUN_COMPLETED,
               J("{'c':" DONE("{'w':" DONE("{'p':" DONE("1") ",'q':" OUT(
                   "null", "failed") "}") ",'x':" OUT("null", "cancelled") "}") "}"));
    rig_free(rig);
    rig = rig_of(CONC(STEP("x", "'when':'${ .w }'") "," S("y"), ",'join':1"), NULL);
    rig_done(rig, "c:x?when", "false"); /* skipped is not completed */
    rig_expect(rig, RUN_RUNNING, NULL);
    rig_done(rig, "c:y", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void branches_of_nothing_complete(void **state)
{
    (void)state;
    struct rig *rig = rig_of(BRANCH("", ""), NULL);
    rig_done(rig, "br?if", "true");
    rig_expect(rig, RUN_COMPLETED, J("{'br':" DONE("{'taken':'then','results':{}}") "}"));
    rig_free(rig);
    rig = rig_of(BRANCH(S("p"), ""), NULL);
    rig_fail(rig, "br?if", "no");
    rig_expect(rig, RUN_FAILED, J("{'br':" OUT("null", "failed") "}"));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_workflow_as_body_evaluates_its_input_for_each_iteration),
        RIG_TEST(an_input_that_cannot_be_evaluated_fails_its_iteration),
        RIG_TEST(an_input_may_be_a_function),
        RIG_TEST(a_loop_may_have_a_workflow_as_body),
        RIG_TEST(concurrent_children_are_steps_nodes_or_workflows),
        RIG_TEST(a_child_that_has_not_ended_is_cancelled),
        RIG_TEST(join_counts_soft_failures_of_steps_as_failures),
        RIG_TEST(join_takes_any_failure_until_it_cannot_be_met),
        RIG_TEST(waiting_children_never_start_after_a_failure),
        RIG_TEST(a_detached_child_keeps_its_iteration),
        RIG_TEST(a_detached_block_may_detach_again),
        RIG_TEST(what_is_detached_gets_its_signal_after_the_end),
        RIG_TEST(cancelling_the_run_cancels_what_is_detached),
        RIG_TEST(detached_children_may_end_before_the_run),
        RIG_TEST(a_detached_block_waits_for_places_like_anybody),
        RIG_TEST(after_the_end_what_is_stuck_fails),
        RIG_TEST(a_nested_workflow_has_its_own_handler),
        RIG_TEST(handlers_run_inside_out),
        RIG_TEST(a_loop_keeps_nested_iterations_as_it_was_told),
        RIG_TEST(rows_in_rows_are_put_together_again),
        RIG_TEST(a_row_shows_the_path_that_was_taken),
        RIG_TEST(a_failed_condition_fails_the_loop),
        RIG_TEST(an_alias_of_an_earlier_iteration_is_replaced),
        RIG_TEST(when_is_asked_before_anything_begins),
        RIG_TEST(after_its_when_a_node_waits_for_its_place),
        RIG_TEST(cancel_is_possible_in_every_phase),
        RIG_TEST(a_late_answer_after_a_cancel_is_stale),
        RIG_TEST(what_is_cancelled_tells_what_has_ended_in_it),
        RIG_TEST(an_abort_tells_what_has_ended_in_the_node_that_fails),
        RIG_TEST(what_a_concurrent_ends_tells_what_has_ended_in_it),
        RIG_TEST(for_each_may_be_over_a_constant_list_or_a_function),
        RIG_TEST(concurrency_is_kept),
        RIG_TEST(a_soft_failure_stops_no_iteration),
        RIG_TEST(what_begins_with_a_wait_needs_no_place),
        RIG_TEST(a_workflow_child_is_good_for_join_if_it_completes),
        RIG_TEST(branches_of_nothing_complete),
    };
    return cmocka_run_group_tests_name("supervisors", tests, NULL, NULL);
}
