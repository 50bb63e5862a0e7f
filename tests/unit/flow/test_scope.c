/* test_scope.c: what a piece of work sees, and how results read. For src/flow/view.c, write.c
 * and expand.c. */
#include "base/json.h"
#include "unit/flow/script.h"

#define LAST(alias, result) \
    "{'result':" result ",'state':{},'alias':'" alias "','stepName':'" alias "'}"
#define LAST_NONE "{'state':{},'alias':null,'stepName':null}"

/* -------------------------------------------------------------------------------- lastStep --- */

/* The first node inside a supervisor sees the node before that supervisor; the one behind it, the
 * supervisor. Each row: what is around the step 'p' that comes first in it. */
static void last_step_of_the_first_is_the_node_before(void **state)
{
    static const struct {
        const char *node, *eval, *value, *path;
    } rows[] = {
        { "{'type':'branch','alias':'k','if':true,'then':[" S("p") "]}", "k?if", "true",
          "k:then:node0:p" },
        { "{'type':'branch','alias':'k','if':true,'then':[],'else':[" S("p") "]}", "k?if", "false",
          "k:else:node0:p" },
        { "{'type':'loop','alias':'k','while':true,'body':[" S("p") "]}", "k?while", "1",
          "k:iter0:node0:p" },
        { "{'type':'forEach','alias':'k','items':[1],'run':[" S("p") "]}", "k?items", "[1]",
          "k:iter0:node0:p" },
        { "{'type':'concurrent','alias':'k','steps':[" S("p") "]}", NULL, NULL, "k:p" },
        { "{'type':'concurrent','alias':'k','steps':[{'alias':'n','nodes':[" S("p") "]}]}", NULL,
          NULL, "k:n:node0:p" },
        { "{'type':'workflow','alias':'k','name':'w','steps':[" S("p") "]}", NULL, NULL,
          "k:node0:p" },
        { "{'type':'workflow','alias':'k','name':'w','input':1,'steps':[" S("p") "]}", "k?input",
          "1", "k:node0:p" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan, S("a") ",%s," S("z"), rows[i].node);
        struct rig *rig = rig_of(plan, NULL);
        assert_string_equal(rig_last(rig, "a"), J(LAST_NONE));
        rig_done(rig, "a", "7");
        if (rows[i].eval != NULL) { /* an evaluation sees the same */
            assert_string_equal(rig_last(rig, rows[i].eval), J(LAST("a", "7")));
            assert_string_equal(rig_steps(rig, rows[i].eval), J("{'a':" DONE("7") "}"));
            rig_done(rig, rows[i].eval, rows[i].value);
        }
        assert_string_equal(rig_last(rig, rows[i].path), J(LAST("a", "7")));
        assert_string_equal(rig_steps(rig, rows[i].path), J("{'a':" DONE("7") "}"));
        rig_done(rig, rows[i].path, "8");
        if (rig_try(rig, "k?while") != NULL)
            rig_done(rig, "k?while", "false");
        assert_non_null(strstr(rig_last(rig, "z"), "\"alias\":\"k\""));
        assert_null(strstr(rig_steps(rig, "z"), "\"p\":{\"result\":8}")); /* not at this level */
        rig_done(rig, "z", "9");
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

static void last_step_may_have_failed_or_be_skipped(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," STEP("b", "'when':'${ .x }'") "," S("c"), NULL);
    rig_fail_as(rig, "a", "soft", BEHAVIOR_CONTINUE, 0);
    assert_string_equal(rig_last(rig, "b?when"), J(LAST("a", "null")));
    rig_done(rig, "b?when", "false");
    assert_string_equal(rig_last(rig, "c"), J(LAST("b", "null")));
    assert_string_equal(rig_steps(rig, "c"),
                        J("{'a':{'result':null,'state':{},'status':'failed','error':{'message':"
                          "'soft','path':'a'}},'b':" OUT("null", "skipped") "}"));
    rig_free(rig);
}

/* ----------------------------------------------------------------------------------- loops --- */

static void loop_is_of_the_innermost_iteration(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        S("a") ",{'type':'forEach','alias':'out','items':[],'run':[" S(
            "s") ",{'type':'forEach','alias':'in','items':[],'run':[" S("t") "]}]}",
        NULL);
    struct rv__view view = rig_view(rig, "a");
    assert_int_equal(view.loop_index, -1);
    assert_true(view.items == NULL && view.pieces == NULL);
    rv__view_done(&view);
    rig_done(rig, "a", "1");
    view = rig_view(rig, "out?items");
    assert_int_equal(view.loop_index, -1);
    rv__view_done(&view);
    rig_done(rig, "out?items", "[ 1 , { } , [ 3 ] ]");
    rig_done(rig, "out:iter0:node0:s", "1");
    rig_done(rig, "out:iter0:node1:in?items", "[]");
    rig_done(rig, "out:iter1:node0:s", "1");
    view = rig_view(rig, "out:iter1:node1:in?items");
    assert_int_equal(view.loop_index, 1);
    assert_str(rig_item(rig, &view), "{ }");
    rv__view_done(&view);
    rig_done(rig, "out:iter1:node1:in?items", "[\"x\",\"y\"]");
    rig_crash(rig, true);
    rig_done(rig, "out:iter1:node1:in:iter0:node0:t", "5");
    view = rig_view(rig, "out:iter1:node1:in:iter1:node0:t");
    assert_int_equal(view.loop_index, 1);
    assert_str(rig_item(rig, &view), "\"y\"");
    assert_str(rig_items(rig, &view), "[\"x\",\"y\"]");
    assert_int_equal(view.vector[0], 1);
    assert_int_equal(view.vector[1], 1);
    rv__view_done(&view);
    /* Iterations do not see each other. */
    assert_string_equal(rig_steps(rig, "out:iter1:node1:in:iter1:node0:t"),
                        J("{'a':" DONE("1") ",'s':" DONE("1") "}"));
    rig_free(rig);
}

static void a_loop_has_an_index_and_no_item(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'loop','alias':'lo','until':'${ .x }','body':[" S("s") "]}",
                             NULL);
    rig_done(rig, "lo:iter0:node0:s", "1");
    rig_done(rig, "lo?until", "false");
    struct rv__view view = rig_view(rig, "lo:iter1:node0:s");
    assert_int_equal(view.loop_index, 1);
    assert_true(view.items == NULL && view.pieces == NULL);
    rv__view_done(&view);
    rig_free(rig);
}

/* The index of the iteration that is tested; of one around the loop, nothing. */
static void expect_condition(struct rig *rig, const char *path, int64_t index)
{
    struct rv__view view = rig_view(rig, path);
    assert_int_equal(view.loop_index, index);
    assert_true(view.items == NULL && view.pieces == NULL);
    rv__view_done(&view);
}

static void an_until_has_the_index_of_the_iteration_that_ended(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'forEach','alias':'out','items':[],'run':["
                             "{'type':'loop','alias':'lo','until':'${ .x }','when':'${ .y }',"
                             "'body':[" S("s") "]}]}",
                             NULL);
    rig_done(rig, "out?items", "[7,8]");
    for (int at = 0; at < 2; at++) {
        struct rv__view view = rig_view(rig, at == 0 ? "out:iter0:node0:lo?when"
                                                     : "out:iter1:node0:lo?when");
        assert_int_equal(view.loop_index, at); /* not yet in it */
        assert_str(rig_item(rig, &view), at == 0 ? "7" : "8");
        rv__view_done(&view);
        rig_done(rig, at == 0 ? "out:iter0:node0:lo?when" : "out:iter1:node0:lo?when", "true");
        for (int i = 0; i < 3; i++) {
            char path[64];
            snprintf(path, sizeof path, "out:iter%d:node0:lo:iter%d:node0:s", at, i);
            rig_done(rig, path, "1");
            rig_crash(rig, i == 1);
            snprintf(path, sizeof path, "out:iter%d:node0:lo?until", at);
            expect_condition(rig, path, i);
            rig_done(rig, path, i < 2 ? "false" : "true");
        }
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void a_while_has_the_index_of_the_iteration_to_come(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'loop','alias':'lo','while':'${ .x }','body':[" S("s") "]}",
                             NULL);
    for (int i = 0; i < 3; i++) {
        char path[64];
        rig_crash(rig, i == 2);
        expect_condition(rig, "lo?while", i);
        rig_done(rig, "lo?while", i < 2 ? "true" : "false");
        snprintf(path, sizeof path, "lo:iter%d:node0:s", i);
        if (i < 2)
            rig_done(rig, path, "1");
    }
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* -------------------------------------------------------------------------------- handlers --- */

static void a_handler_sees_the_error_and_what_failed(void **state)
{
    (void)state;
    struct rig *rig = rig_new(J("{'name':'t','onError':{'name':'team'},'steps':[" S("z") "," STEP(
                                  "a", "'onError':{'name':'tell'}") "]}"),
                              J("{'in':1}"));
    rig_done(rig, "z", "0");
    struct rig_work *work = rig_at(rig, "a");
    struct rv__msg msg = { .kind = MSG_FAILED,
                           .actor = work->effect.actor,
                           .token = work->effect.token };
    msg.error = rv__blob_new(rv__str(J("{'message':'no','code':7}")));
    msg.state = rv__blob_new(rv__str(J("{'description':'half done'}")));
    rig_turn(rig, &msg);
    rv__blob_unref(msg.error);
    rv__blob_unref(msg.state);

    for (int crash = 0; crash < 2; crash++) {
        struct rv__view view = rig_view(rig, "a:onError");
        assert_str(rig_text(rig, view.error), J("{'message':'no','code':7,'path':'a'}"));
        assert_str(rig_text(rig, view.input), J("{'in':1}"));
        assert_int_equal(view.attempt, 1);
        assert_str(view.failed_node->alias, "a");
        assert_str(rig_text(rig, view.failed_state), J("{'description':'half done'}"));
        rv__view_done(&view);
        rig_crash(rig, crash == 0);
    }
    assert_string_equal(rig_steps(rig, "a:onError"), J("{'z':" DONE("0") "}"));
    rig_done(rig, "a:onError", NULL);

    struct rv__view view = rig_view(rig, "onError");
    assert_str(rig_text(rig, view.error), J("{'message':'no','code':7,'path':'a'}"));
    assert_str(view.failed_node->alias, "a");
    assert_str(rig_text(rig, view.failed_state), J("{'description':'half done'}"));
    rv__view_done(&view);
    assert_string_equal(
        rig_last(rig, "onError"),
        J("{'result':null,'state':{'description':'half done'},'alias':'a','stepName':'a'}"));
    assert_non_null(strstr(rig_steps(rig, "onError"), "\"status\":\"failed\""));
    rig_done(rig, "onError", NULL);
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

/* ----------------------------------------------------------------------------------- views --- */

static void a_view_is_of_work_that_runs(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'maxAttempts':2"), NULL);
    struct rv__effect effect = rig_at(rig, "a")->effect;
    struct rv__view view;
    assert_int_equal(rv__cell_view(rig->cell, 99, effect.token, &view), RV_ENOTFOUND);
    assert_int_equal(rv__cell_view(rig->cell, effect.actor, effect.token + 1, &view), RV_ENOTFOUND);
    rig_fail(rig, "a", "no");
    effect = rig_at(rig, "a")->effect;
    assert_int_equal(rv__cell_view(rig->cell, effect.actor, effect.token, &view), RV_ENOTFOUND);
    rig_free(rig);
}

static void a_view_outlives_its_cell(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'e','items':[],'run':[" S("s") "," S("t") "]}", "[1]");
    struct rv__buf out;
    rv__buf_init(&out, 10000);
    rig_done(rig, "e?items", "[\"i\"]");
    rig_done(rig, "e:iter0:node0:s", "5");
    struct rv__view view = rig_view(rig, "e:iter0:node1:t");
    rig_say(rig, MSG_CANCEL);
    assert_str(rig_item(rig, &view), "\"i\"");
    assert_str(rig_text(rig, view.input), "[1]");
    assert_int_equal(rv__view_steps(&view, NULL, &out, NULL), RV_OK);
    assert_str(rv__buf_view(&out), J("{'s':" DONE("5") "}"));
    rv__view_done(&view);
    rv__buf_done(&out);
    rig_free(rig);
}

static int no_rows(struct rv__row_source *self, struct rv__str key, int64_t after,
                   struct rv__buf *out, int64_t *last, rv_error *err)
{
    (void)self;
    (void)key;
    (void)after;
    (void)out;
    (void)last;
    return rv__fail(err, RV_ESTORE, "the disk is gone");
}

static void rows_that_cannot_be_had_are_an_error(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'forEach','alias':'e','items':[],'run':[" S("s") "]}," S("z"),
                             NULL);
    struct rv__row_source source = { .rows = no_rows };
    struct rv__buf out;
    rv_error err;
    rv__buf_init(&out, 10000);
    rig_done(rig, "e?items", "[1]");
    rig_done(rig, "e:iter0:node0:s", "5");
    struct rv__view view = rig_view(rig, "z");
    assert_int_equal(rv__view_steps(&view, NULL, &out, &err), RV_ENOTFOUND);
    assert_int_equal(rv__view_last(&view, NULL, &out, &err), RV_ENOTFOUND);
    assert_int_equal(rv__view_last(&view, &source, &out, &err), RV_ESTORE);
    assert_string_equal(err.message, "the disk is gone");
    assert_int_equal(rv__cell_results(rig->cell, NULL, &out, NULL, &err), RV_ENOTFOUND);
    rv__view_done(&view);
    rv__buf_done(&out);
    rig_free(rig);
}

/* Everything that reads, with every allocation failing in turn. */
static void reading_survives_without_memory(void **state)
{
    static const char *const plans[] = {
        "{'type':'concurrent','alias':'c','steps':[" S("x") ",{'alias':'n','nodes':[" S(
            "y") "]}]}," S("z"),
        "{'type':'forEach','alias':'e','items':[],'run':[{'type':'branch','alias':'b','if':true,'"
        "then':"
        "[{'type':'loop','alias':'l','until':true,'keep':'last','body':[{'type':'forEach','alias':'"
        "f',"
        "'items':[],'run':[" S("s") "]}]}]}]}," S("z"),
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_of(plans[i], NULL);
        rv_error err;
        struct rv__buf out;
        int rc;
        while (rig_try(rig, "z") == NULL) {
            char path[256];
            memcpy(path, rig->work[0].path, sizeof path);
            int eval = rig->work[0].effect.eval;
            rig_done(rig, path, eval == EVAL_ITEMS ? "[1,2]" : "true");
        }
        struct rv__view view = rig_view(rig, "z");
        rv__buf_init(&out, 1 << 20);
#define TRY(call)                                                                            \
    do {                                                                                     \
        TORTURE(rc, call, (rv__buf_done(&out), rv__buf_init(&out, 1 << 20)));                \
        assert_int_equal(rc, RV_OK);                                                         \
        assert_int_equal(rv__json_check(rv__buf_view(&out), RV__JSON_MAX_DEPTH, NULL, &err), \
                         RV_OK);                                                             \
        rv__buf_done(&out);                                                                  \
        rv__buf_init(&out, 1 << 20);                                                         \
    } while (0)
        TRY(rv__view_steps(&view, &rig->rows, &out, &err));
        TRY(rv__view_last(&view, &rig->rows, &out, &err));
        TRY(rv__cell_results(rig->cell, &rig->rows, &out, NULL, &err));
        TRY(rv__cell_save(rig->cell, &out, &err));
        rv__view_done(&view);
        rv__buf_done(&out);
        rig_free(rig);
    }
}

/* Many aliases, some of them hidden by newer ones. */
static void the_newest_of_a_name_is_seen(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        S("s0") "," S("s1") "," S("s2") "," S("s3") "," S("s4") "," S("s5") "," S(
            "s6") ","
                  "{'type':'branch','alias':'b','if':true,'then':[" S("s3") "," S("n1") "," S(
                      "n2") "]}",
        NULL);
    for (int i = 0; i < 7; i++) {
        char path[16];
        snprintf(path, sizeof path, "s%d", i);
        rig_done(rig, path, "0");
    }
    rig_done(rig, "b?if", "true");
    rig_done(rig, "b:then:node0:s3", "33");
    rig_done(rig, "b:then:node1:n1", "1");
    struct rv__view view = rig_view(rig, "b:then:node2:n2");
    const struct rv__entry *entry = rv__view_find(&view, rv__str("s3"));
    struct rv__buf out;
    rv__buf_init(&out, 1000);
    assert_str(rv__entry_alias(entry), "s3");
    assert_int_equal(rv__entry_status(entry), STATUS_COMPLETED);
    struct rv__str state_text;
    assert_true(rv__entry_state_here(entry, &state_text) && rv__str_none(state_text));
    assert_int_equal(rv__entry_result(entry, NULL, &out, NULL), RV_OK);
    assert_str(rv__buf_view(&out), "33");
    assert_null(rv__view_find(&view, rv__str("n2")));
    rv__buf_done(&out);
    rv__view_done(&view);
    const char *steps = rig_steps(rig, "b:then:node2:n2");
    const char *s3 = strstr(steps, "\"s3\"");
    assert_non_null(strstr(steps, J("'s3':" DONE("33"))));
    assert_null(strstr(s3 + 1, "\"s3\"")); /* once */
    rig_free(rig);
}

/* A cell after its end still has its results; a cell that has not begun has none. */
static void results_can_be_read_at_any_time(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," S("b"), NULL);
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "running") "}"));
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_RUNNING, J("{'a':" DONE("1") ",'b':" OUT("null", "running") "}"));
    rig_done(rig, "b", "2");
    rig_crash(rig, true);
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("1") ",'b':" DONE("2") "}"));
    assert_true(rv__str_none(rv__cell_failed_step(rig->cell)));
    assert_true(rv__cell_bytes(rig->cell) > 0);

    struct rv__cell *empty = NULL;
    struct rv__cell_opts opts = { .plan = rig->plan };
    rv_error err;
    int rc;
    TORTURE(rc, rv__cell_empty(&opts, &empty, &err), assert_null(empty));
    rv__buf_reset(&rig->text);
    assert_int_equal(rv__cell_results(empty, NULL, &rig->text, NULL, &err), RV_OK);
    assert_str(rv__buf_view(&rig->text), "{}");
    assert_false(rv__cell_active(empty));
    rv__cell_free(empty);
    rv__cell_free(NULL);
    rig_free(rig);
}

/* The node that the run is in is told too, as it is: without a result, whatever has finished in it. */
static void the_node_that_a_run_is_in_is_told_with_its_status(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        STEP("a",
             "'when':'${ .x }','maxAttempts':2,'onError':{'name':'h'}") ",{'type':'forEach',"
                                                                        "'alias':'each','items':'${"
                                                                        " .x }','run':[" S(
                                                                            "p") "]}",
        NULL);
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "pending") "}"));
    rig_done(rig, "a?when", "true");
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "running") "}"));
    rig_lose(rig, "a", false, false);
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "running") "}"));
    rig_fail(rig, "a", "no");
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "waiting_retry") "}"));
    rig_timer(rig, "a");
    rig_poison(rig, "a");
    rig_expect(rig, RUN_SUSPENDED, J("{'a':" OUT("null", "suspended") "}"));
    rig_crash(rig, true);
    rig_expect(rig, RUN_SUSPENDED, J("{'a':" OUT("null", "suspended") "}"));
    rig_say(rig, MSG_RESUME);
    rig_fail_as(rig, "a", "no", BEHAVIOR_CONTINUE, 0);
    rig_expect(rig, RUN_RUNNING, J("{'a':" OUT("null", "failed") "}")); /* its handler runs */
    rig_done(rig, "a:onError", "0");
    rig_done(rig, "each?items", "[1,2]");
    rig_done(rig, "each:iter0:node0:p", "1");
    rig_expect(rig, RUN_RUNNING,
               J("{'a':" OUT("null", "failed") ",'each':" OUT("null", "running") "}"));
    rig_free(rig);
}

static void a_run_that_cannot_begin_for_want_of_memory_leaves_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    struct rv__cell_opts opts = { .plan = rig->plan };
    struct rv__cell *cell = NULL;
    struct rv__facts facts;
    rv_error err;
    int rc;
    rv__facts_init(&facts);
    TORTURE(rc, rv__cell_start(&opts, NULL, 1, &facts, &cell, &err),
            (assert_null(cell), assert_int_equal(facts.count, 0)));
    rv__cell_free(cell);
    rv__facts_done(&facts);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST_VALUES(last_step_of_the_first_is_the_node_before),
        RIG_TEST_VALUES(last_step_may_have_failed_or_be_skipped),
        RIG_TEST_VALUES(loop_is_of_the_innermost_iteration),
        RIG_TEST_VALUES(a_loop_has_an_index_and_no_item),
        RIG_TEST_VALUES(an_until_has_the_index_of_the_iteration_that_ended),
        RIG_TEST_VALUES(a_while_has_the_index_of_the_iteration_to_come),
        RIG_TEST_VALUES(a_handler_sees_the_error_and_what_failed),
        RIG_TEST_VALUES(a_view_is_of_work_that_runs),
        RIG_TEST_VALUES(a_view_outlives_its_cell),
        RIG_TEST_VALUES(rows_that_cannot_be_had_are_an_error),
        RIG_TEST_VALUES(reading_survives_without_memory),
        RIG_TEST_VALUES(the_newest_of_a_name_is_seen),
        RIG_TEST_VALUES(results_can_be_read_at_any_time),
        RIG_TEST_VALUES(the_node_that_a_run_is_in_is_told_with_its_status),
        RIG_TEST_VALUES(a_run_that_cannot_begin_for_want_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
