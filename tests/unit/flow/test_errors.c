/* test_errors.c: what is told of a failure: by the node, by the supervisors around it, by the run. */
#include "unit/flow/script.h"

#include "base/alloc.h"

#define ERROR(message, path) "{'message':'" message "','path':'" path "'}"
#define FAILED(result, message, path) \
    "{'result':" result ",'state':{},'status':'failed','error':" ERROR(message, path) "}"
#define EACH(alias, run)        "{'type':'forEach','alias':'" alias "','items':'${ .x }','run':" run "}"
#define BRANCH(alias, then)     "{'type':'branch','alias':'" alias "','if':'${ .x }','then':" then "}"
#define CONCURRENT(more, steps) "{'type':'concurrent','alias':'c'" more ",'steps':[" steps "]}"

/* The end of the run: as it is, from a snapshot, and from its journal. */
static void expect_failed(struct rig *rig, const char *results, const char *step, const char *path)
{
    for (int from = 0; from < 3; from++) {
        rig_expect(rig, RUN_FAILED, results);
        assert_str(rv__cell_failed_step(rig->cell), step);
        assert_str(rv__cell_failed_path(rig->cell), path);
        assert_str(rv__error_path(rv__cell_error(rig->cell)), path);
        rig_crash(rig, from == 0);
    }
    rig_free(rig);
}

static void a_failed_step_tells_its_error(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," S("b") "," S("c"), NULL);
    rig_fail_as(rig, "a", "soft", BEHAVIOR_CONTINUE, 0);
    rig_crash(rig, true);
    assert_string_equal(rig_steps(rig, "b"), J("{'a':" FAILED("null", "soft", "a") "}"));
    struct rv__view view = rig_view(rig, "b");
    const struct rv__entry *entry = rv__view_find(&view, rv__str("a"));
    assert_str(rv__blob_str(rv__entry_error(entry)), J(ERROR("soft", "a")));
    rv__view_done(&view);
    rig_done(rig, "b", "1");
    rig_fail(rig, "c", "hard");
    expect_failed(rig,
                  J("{'a':" FAILED("null", "soft",
                                   "a") ",'b':" DONE("1") ",'c':" FAILED("null", "hard", "c") "}"),
                  "c", "c");
}

/* A handler that is still at work does not hide what its step failed of. */
static void an_error_is_there_while_the_handler_runs(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'onError':{'name':'h'}"), NULL);
    rig_fail(rig, "a", "no");
    rig_expect(rig, RUN_RUNNING, J("{'a':" FAILED("null", "no", "a") "}"));
    rig_crash(rig, true);
    rig_done(rig, "a:onError", "1");
    expect_failed(rig, J("{'a':" FAILED("null", "no", "a") "}"), "a", "a");
}

/* A cancel cuts the handler short, not the step, which had failed. */
static void a_cancel_in_the_handler_leaves_the_step_failed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(
        J("{'name':'t','finally':[" S("f") "],'steps':[" STEP("a", "'onError':{'name':'h'}") "]}"),
        NULL);
    rig_fail(rig, "a", "no");
    rig_expect_in_flight(rig, "a:onError");
    rig_crash(rig, true);
    rig_send(rig, (struct rv__msg){ .kind = MSG_CANCEL });
    assert_string_equal(rig_steps(rig, "finally:node0:f"),
                        J("{'a':" FAILED("null", "no", "a") "}"));
    rig_done(rig, "finally:node0:f", NULL);
    rig_expect(rig, RUN_CANCELLED, J("{'a':" FAILED("null", "no", "a") "}"));
    rig_free(rig);
}

#define ROW   "t:iter1:node0:r:iter1:node0:d"
#define DEEP  ROW ":then:node1:q"
#define TAKEN "{'taken':'then','results':{'p':" DONE("1") ",'q':" FAILED("null", "no", DEEP) "}}"
#define ROWS                                                                  \
    "{'iterations':[{'item':7,'index':0,'results':{'d':" DONE(                \
        "{'taken':'else','results':{'p':" OUT("null", "skipped") ",'q':" OUT( \
            "null", "skipped") "}}") "}},{'item':8,'index':1,'results':{"     \
                                     "'d':" FAILED(TAKEN, "no", DEEP) "}}]}"

static void supervisors_tell_the_deepest_node(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        EACH("t", "[" EACH("r", "[" BRANCH("d", "[" S("p") "," S("q") "]") "]") "]"), NULL);
    rig_done(rig, "t?items", "[1,2]");
    rig_done(rig, "t:iter0:node0:r?items", "[]");
    rig_done(rig, "t:iter1:node0:r?items", "[7,8]");
    rig_done(rig, "t:iter1:node0:r:iter0:node0:d?if", "false");
    rig_done(rig, ROW "?if", "true");
    rig_done(rig, ROW ":then:node0:p", "1");
    rig_crash(rig, true);
    rig_fail(rig, DEEP, "no");
    expect_failed(rig,
                  J("{'t':" FAILED("{'iterations':[{'item':1,'index':0,'results':{'r':" DONE(
                                       "{'iterations':[]}") "}},{'item':2,'index':1,'results':{"
                                                            "'r':" FAILED(ROWS, "no", DEEP) "}}]}",
                                   "no", DEEP) "}"),
                  "t", DEEP);
}

static void children_of_a_concurrent_tell_theirs(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        CONCURRENT(",'onFailure':'collect'",
                   S("x") ",{'alias':'y','nodes':[" S("p") "," S("q") "]}," S("z")),
        NULL);
    rig_fail(rig, "c:x", "one");
    rig_done(rig, "c:y:node0:p", "1");
    rig_crash(rig, true);
    rig_fail(rig, "c:y:node1:q", "two");
    rig_crash(rig, true);
    rig_done(rig, "c:z", "3");
    for (int from = 0; from < 3; from++) {
        rig_expect(rig, RUN_COMPLETED,
                   J("{'c':" DONE("{'x':" FAILED("null", "one", "c:x") ",'y':" FAILED(
                       "{'p':" DONE("1") ",'q':" FAILED("null", "two", "c:y:node1:q") "}", "two",
                       "c:y:node1:q") ",'z':" DONE("3") "}") "}"));
        assert_true(rv__str_none(rv__cell_failed_path(rig->cell)));
        rig_crash(rig, from == 0);
    }
    rig_free(rig);
}

/* It failed before anything in it began: then nobody inside has the error. */
static void a_child_whose_input_is_refused_tells_so(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        CONCURRENT(",'onFailure':'collect'",
                   "{'type':'workflow','alias':'y','name':'w','input':'${ .x }','steps':[" S(
                       "p") "]}," S("z")),
        NULL);
    rig_fail(rig, "c:y?input", "bad");
    rig_crash(rig, true);
    rig_fail(rig, "c:z", "two");
    for (int from = 0; from < 3; from++) {
        rig_expect(rig, RUN_COMPLETED,
                   J("{'c':" DONE("{'y':" FAILED("{}", "bad", "c:y") ",'z':" FAILED(
                       "null", "two", "c:z") "}") "}"));
        rig_crash(rig, from == 0);
    }
    rig_free(rig);
}

/* What a step says of a path of its own is not believed. */
static void the_path_is_ours_to_say(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    struct rv__blob *error = rv__blob_new(
        rv__str("{\"pa\\u0074h\":1,\"code\":\"x\",\"path\":\"z\",\"message\":\"m\"}"));
    struct rv__msg msg = { .kind = MSG_FAILED, .error = error };
    assert_int_equal(rig_tell(rig, "a", msg), RV_OK);
    rv__blob_unref(error);
    assert_str(rv__cell_error(rig->cell), J("{'code':'x','message':'m','path':'a'}"));
    rig_free(rig);
}

static void an_error_without_words_has_a_path(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    struct rv__msg msg = { .kind = MSG_FAILED };
    assert_int_equal(rig_tell(rig, "a", msg), RV_OK);
    assert_str(rv__cell_error(rig->cell), J(ERROR("failed", "a")));
    rig_free(rig);
}

static void our_own_errors_have_a_code(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH("e", S("p")), NULL);
    rig_done(rig, "e?items", "7");
    assert_str(rv__cell_error(rig->cell),
               J("{'message':'e: the items of a forEach must return an array','code':'notArray',"
                 "'path':'e'}"));
    rig_free(rig);
}

/* An abort fails the node at the top that the run is in. */
static void an_abort_names_the_node_at_the_top(void **state)
{
    (void)state;
    struct rig *rig = rig_of(EACH("e", S("p")), NULL);
    rig_done(rig, "e?items", "[1]");
    assert_int_equal(rig_suspend(rig, J("{'message':'stop'}")), RV_OK);
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
    rig_expect(rig, RUN_FAILED, NULL);
    assert_str(rv__cell_failed_path(rig->cell), "e");
    rig_free(rig);
}

/* A run that is cancelled before its first node stays so, whatever is decided before its `finally`. */
static void an_abort_of_a_cancelled_run_leaves_it_cancelled(void **state)
{
    (void)state;
    struct rig *rig = rig_new(J("{'name':'w','steps':[" S("a") "],'finally':[" S("f") "]}"), NULL);
    struct rv__msg cancel = { .kind = MSG_CANCEL, .now_ms = rig->now_ms };
    assert_int_equal(rv__flow_send(rig->cell, &cancel, &rig->facts, NULL), RV_OK);
    struct rv__msg refused = { .kind = MSG_SUSPEND,
                               .now_ms = rig->now_ms,
                               .error = rv__blob_new(rv__str("{\"message\":\"full\"}")) };
    assert_int_equal(rv__flow_send(rig->cell, &refused, &rig->facts, NULL), RV_OK);
    rv__blob_unref(refused.error);
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
    struct rv__view view = rig_view(rig, "finally:node0:f");
    assert_int_equal(view.outcome, RUN_CANCELLED);
    assert_null(view.failed_node);
    rv__view_done(&view);
    rig_done(rig, "finally:node0:f", "1");
    rig_expect(rig, RUN_CANCELLED, NULL);
    rig_free(rig);
}

static void steps_are_in_order_of_execution(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("z") "," S("b") "," EACH("e", "[" S("y") "," S("a") "," S("n") "]"),
                             NULL);
    rig_done(rig, "z", "1");
    rig_done(rig, "b", "2");
    rig_done(rig, "e?items", "[1]");
    rig_done(rig, "e:iter0:node0:y", "3");
    rig_done(rig, "e:iter0:node1:a", "4");
    assert_string_equal(
        rig_steps(rig, "e:iter0:node2:n"),
        J("{'z':" DONE("1") ",'b':" DONE("2") ",'y':" DONE("3") ",'a':" DONE("4") "}"));
    struct rv__view view = rig_view(rig, "e:iter0:node2:n");
    size_t count = 0;
    const struct rv__entry **entries = rv__view_entries(&view, &count);
    assert_non_null(entries);
    assert_int_equal(count, 4);
    assert_str(rv__entry_alias(entries[0]), "z");
    assert_str(rv__entry_alias(entries[3]), "a");
    rv__free(entries);
    rv__view_done(&view);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_failed_step_tells_its_error),
        RIG_TEST(an_error_is_there_while_the_handler_runs),
        RIG_TEST(a_cancel_in_the_handler_leaves_the_step_failed),
        RIG_TEST(supervisors_tell_the_deepest_node),
        RIG_TEST(children_of_a_concurrent_tell_theirs),
        RIG_TEST(a_child_whose_input_is_refused_tells_so),
        RIG_TEST(the_path_is_ours_to_say),
        RIG_TEST(an_error_without_words_has_a_path),
        RIG_TEST(our_own_errors_have_a_code),
        RIG_TEST(an_abort_names_the_node_at_the_top),
        RIG_TEST(an_abort_of_a_cancelled_run_leaves_it_cancelled),
        RIG_TEST(steps_are_in_order_of_execution),
    };
    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
