/* test_turn.c: how much a turn may do: facts, places, memory; and suspended runs. For
 * src/flow/coordinator.c and cell.c. */
#include "base/json.h"
#include "unit/flow/script.h"

/* One pump, and how many facts it said; they go nowhere. */
static size_t pump(struct rig *rig, int *rc)
{
    rv_error err;
    struct rv__effect effect;
    rv__facts_reset(&rig->facts);
    *rc = rv__flow_pump(rig->cell, rig->now_ms, &rig->facts, &err);
    while (rv__cell_effect(rig->cell, &effect))
        ;
    return rig->facts.count;
}

static void tell(struct rig *rig, const char *path, struct rv__blob *result) /* without a turn */
{
    rv_error err;
    struct rig_work *work = rig_at(rig, path);
    struct rv__msg msg = { .kind = MSG_DONE, .now_ms = rig->now_ms, .result = result };
    msg.actor = work->effect.actor;
    msg.token = work->effect.token;
    assert_int_equal(rv__flow_send(rig->cell, &msg, &rig->facts, &err), RV_OK);
}

/* "[0,0,0, …]" */
static struct rv__blob *zeros(size_t count)
{
    char *text = malloc(2 * count + 2);
    for (size_t i = 0; i < count; i++)
        memcpy(text + 2 * i, i == 0 ? "[0" : ",0", 2);
    memcpy(text + 2 * count, count == 0 ? "[]" : "]", count == 0 ? 3 : 2);
    struct rv__blob *blob = rv__blob_new(rv__str(text));
    free(text);
    return blob;
}

/* ------------------------------------------------------------------------- facts of a turn --- */

static void a_million_items_do_not_hold_the_loop(void **state)
{
    static const char *const bodies[] = {
        DELAY("d", "5"), /* needs nobody: all of them begin, but not in one turn */
        "{'type':'concurrent','alias':'c','continueOn':'detached','steps':[" DELAY("d", "5") "]}",
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char plan[500];
        snprintf(plan, sizeof plan,
                 "{'type':'forEach','alias':'e','items':'${ .x }','parallel':true,'run':[%s]}",
                 bodies[i]);
        struct rig *rig = rig_of(plan, NULL);
        struct rv__blob *items = zeros(1000000);
        int rc;
        rig->replay = false;
        tell(rig, "e?items", items);
        size_t bytes = rv__cell_bytes(rig->cell);
        for (int n = 0; n < 20; n++) {
            size_t said = pump(rig, &rc);
            assert_int_equal(rc, 1);
            assert_in_range(said, RV__TURN_FACTS, RV__TURN_FACTS + 1);
            assert_true(rv__cell_more(rig->cell)); /* it goes on, and recovery knows */
        }
        /* What waits costs nothing: 20 turns are at most 20 * 256 new actors. */
        assert_true(rv__cell_bytes(rig->cell) - bytes < 20 * 256 * 800);
        struct rv__msg cancel = { .kind = MSG_CANCEL };
        assert_int_equal(rv__flow_send(rig->cell, &cancel, &rig->facts, NULL), RV_OK);
        assert_int_equal(pump(rig, &rc), 0);
        assert_int_equal(rc, 0);
        rv__blob_unref(items);
        rig_free(rig);
    }
}

/* Iterations that run to their end without anybody: each takes a signal that is there already. */
static void a_turn_that_was_cut_goes_on_to_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'e','items':[],'run':[" SIGNAL("s", "go") "]}", NULL);
    struct rv__blob *items = zeros(5000);
    size_t turns = 0, facts = 0, rows = 0;
    int rc = 1;
    rig->replay = false;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(rig_signal(rig, "go", "1"), RV_OK);
    tell(rig, "e?items", items);
    while (rc == 1) {
        size_t said = pump(rig, &rc);
        assert_true(said <= RV__TURN_FACTS + 1);
        facts += said;
        rows += rig->facts.row_count;
        turns++;
    }
    assert_int_equal(rc, 0);
    assert_int_equal(rows, 5000);
    assert_true(turns >= facts / (RV__TURN_FACTS + 1));
    assert_int_equal(rv__cell_status(rig->cell), RUN_COMPLETED);
    rv__blob_unref(items);
    rig_free(rig);
}

static void a_loop_that_keeps_the_last_stays_small(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'loop','alias':'lo','until':'${ .x }','maxIterations':100000,"
                             "'keep':'last','body':[" S("s") "]}",
                             NULL);
    size_t bytes = 0;
    rig->replay = false;
    for (int i = 0; i < 3000; i++) {
        rv__buf_reset(&rig->journal);
        char path[64];
        memcpy(path, rig->work[0].path, sizeof path);
        rig_done(rig, path, i % 2 ? "false" : "{\"a\":1}");
        if (i == 100)
            bytes = rv__cell_bytes(rig->cell);
    }
    assert_int_equal(rv__cell_bytes(rig->cell), bytes);
    rig_free(rig);
}

/* ---------------------------------------------------------------------------------- places --- */

static void a_grant_is_one_piece_of_work(void **state)
{
    static const struct {
        const char *plan;
        int works; /* that can be had, one by one, in the lane of functions */
    } rows[] = {
        { S("a"), 1 },
        { "{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "," S("z") "]}", 3 },
        { "{'type':'concurrent','alias':'c','steps':[{'alias':'n','nodes':[{'type':'workflow','"
          "alias':'w','name':'w',"
          "'steps':[{'type':'concurrent','alias':'d','steps':[" S("x") "," S("y") "]}]}]}," S(
              "z") "]}",
          3 },
        { "{'type':'loop','alias':'l','until':true,'body':[{'type':'workflow','alias':'w','name':'"
          "w','steps':[" S("x") "]}]}",
          1 },
        { "{'type':'workflow','alias':'w','name':'w','when':{'fn':'f'},'steps':[" S("x") "]}", 1 },
        { "{'type':'forEach','alias':'e','items':{'fn':'f'},'run':[" S("x") "]}", 1 },
        { DELAY("d", "5") "," S("a"), 0 },
        { STEP("a", "'when':'${ .x }'"), 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char plan[1000];
        snprintf(plan, sizeof plan, S("first") ",%s", rows[i].plan);
        struct rig *rig = rig_of(plan, NULL);
        rig_give(rig, false);
        rig_done(rig, "first", "1");
        rig_expect(rig, RUN_RUNNING, NULL);
        for (int n = 0; n < rows[i].works; n++) {
            size_t before = rig->work_count;
            assert_true(rv__cell_wants(rig->cell, LANE_FUNCTION));
            if (n == 1)
                rig_crash(rig, true);
            assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
            if (rig->work_count != before + 1)
                fail_msg("row %zu: %zu pieces of work by one place", i, rig->work_count - before);
        }
        assert_false(rv__cell_wants(rig->cell, LANE_FUNCTION));
        assert_int_equal(rig_grant(rig, LANE_FUNCTION), 0);
        assert_int_equal(rig_grant(rig, LANE_IO), 0);
        rig_free(rig);
    }
}

/* What was begun is finished before more is begun. */
static void who_has_begun_is_served_before_a_range(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'e','items':[],'parallel':true,'run':[" S("s") "," S("t") "]}",
        NULL);
    rig->grants[LANE_FUNCTION] = false;
    rig_done(rig, "e?items", "[0,1,2,3]");
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "e:iter0:node0:s e:iter1:node0:s");
    rig_done(rig, "e:iter1:node0:s", "1");
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "e:iter0:node0:s e:iter1:node1:t"); /* not iteration 2 */
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "e:iter0:node0:s e:iter1:node1:t e:iter2:node0:s");
    rig_free(rig);
}

static void ranges_are_served_in_turn(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[{'alias':'l','nodes':[{'type':'forEach','alias':"
        "'e',"
        "'items':[],'parallel':true,'run':[" S(
            "s") "]}]},{'alias':'r','nodes':[{'type':'forEach',"
                 "'alias':'e','items':[],'parallel':true,'run':[" S("s") "]}]}]}",
        NULL);
    rig->grants[LANE_FUNCTION] = false;
    rig_done(rig, "c:l:node0:e?items", "[0,0,0]");
    rig_done(rig, "c:r:node0:e?items", "[0,0,0]");
    for (int i = 0; i < 4; i++)
        assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    rig_expect_in_flight(rig, "c:l:node0:e:iter0:node0:s c:r:node0:e:iter0:node0:s "
                              "c:l:node0:e:iter1:node0:s c:r:node0:e:iter1:node0:s");
    rig_free(rig);
}

static void memory_is_bounded_by_the_places_given(void **state)
{
    (void)state;
    enum { ITEMS = 100000, PLACES = 64 };
    struct rig *rig = rig_of(
        "{'type':'forEach','alias':'e','items':'${ .x "
        "}','parallel':true,'run':[{'type':'concurrent',"
        "'alias':'c','steps':[" S("x") ",{'alias':'n','nodes':[" S("y") "," S("z") "]}]}]}",
        NULL);
    struct rv__blob *items = zeros(ITEMS);
    rig->replay = false;
    rig_give(rig, false);
    tell(rig, "e?items", items);
    rig_turn(rig, NULL);
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
    assert_int_equal(rig->work_count, PLACES);
    size_t bytes = 0;
    for (int n = 0; n < 20000; n++) { /* one ends, one begins */
        char path[256];
        memcpy(path, rig->work[(size_t)n * 7 % rig->work_count].path, sizeof path);
        rv__buf_reset(&rig->journal);
        rig_done(rig, path, "1");
        assert_int_equal(rig_grant(rig, LANE_FUNCTION), 1);
        assert_int_equal(rig->work_count, PLACES);
        if (n == 1000)
            bytes = rv__cell_bytes(rig->cell);
        for (; rig->kept_count > 0; rig->kept_count--) {
            free(rig->kept[rig->kept_count - 1].key);
            free(rig->kept[rig->kept_count - 1].json);
        }
    }
    assert_true(rv__cell_actors(rig->cell) <= PLACES * 6 + 8);
    assert_true(rv__cell_bytes(rig->cell) <= bytes * 2);
    rv__blob_unref(items);
    rig_free(rig);
}

/* ------------------------------------------------------------------------------- suspended --- */

static void while_suspended_nothing_begins_and_everything_is_recorded(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("x") ",{'alias':'n','nodes':[" S("y") "," S(
            "z") "]}," STEP("r",
                            "'maxAttempts':2") "," DELAY("d",
                                                         "50") "," S("h") "," STEP("w",
                                                                                   "'when':'${ .w "
                                                                                   "}'") ","
                                                                                         "{'alias':"
                                                                                         "'e','"
                                                                                         "nodes':[{"
                                                                                         "'type':'"
                                                                                         "forEach',"
                                                                                         "'alias':'"
                                                                                         "e','"
                                                                                         "items':[]"
                                                                                         ",'run':"
                                                                                         "[" S(
                                                                                             "s") "]}]}]}",
        NULL);
    rig_poison(rig, "c:x");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_done(rig, "c:n:node0:y", "1"); /* in flight: it ends, and what follows waits */
    rig_fail(rig, "c:r", "no");
    rig_timer(rig, "c:r");
    rig_timer(rig, "c:d");
    rig_park(rig, "c:h", "handle", 0);
    assert_int_equal(rig_answer(rig, "handle", "7", NULL), RV_OK);
    rig_done(rig, "c:w?when", "true");
    rig_done(rig, "c:e:node0:e?items", "[1]");
    assert_int_equal(rig_signal_by(rig, "go", "1", true), RV_OK);
    rig_expect_in_flight(rig, "");
    for (int lane = 0; lane < LANES; lane++)
        assert_int_equal(rv__flow_grant(rig->cell, (enum rv__lane)lane, 1, &rig->facts, NULL), 0);
    rig_crash(rig, true);
    rig_crash(rig, false);
    assert_int_equal(rig_say(rig, MSG_RESUME), RV_OK);
    rig_expect_in_flight(rig, "c:x c:n:node1:z c:r c:w c:e:node0:e:iter0:node0:s");
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* Why it was decided so, and why there was something to decide. */
static void a_resume_is_recorded_with_its_reason_and_its_cause(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    rig_poison(rig, "a");
    rig_send(rig, (struct rv__msg){ .kind = MSG_RESUME,
                                    .error = rv__blob_new(rv__str(J("{'message':'mended'}"))) });
    assert_true(rig_has_fact(rig, J("'message':'mended','cause':{'message':'step ")));
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("1") "}"));
    rig_free(rig);
}

static void several_steps_of_a_run_may_be_suspended_and_each_is_decided_by_its_path(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "]}",
                             NULL);
    for (int i = 0; i < RV__MAX_CRASHES; i++)
        rig_lose(rig, "c:y", true, false);
    rig_poison(rig, "c:x");
    rig_lose(rig, "c:y", true, false); /* now y is one too many, too */
    assert_non_null(strstr(rv__cell_suspension(rig->cell).at, "step 'x'"));
    rig_crash(rig, true);
    assert_int_equal(rig_say(rig, MSG_RESUME), RV_ESTATE); /* which? */
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "c:z"), RV_ESTATE);
    assert_int_equal(rig_say_at(rig, MSG_SKIP, "c:x"), RV_ESTATE); /* that is for states */
    assert_int_equal(rig_say_at(rig, MSG_RESUME, "c:x"), RV_OK);
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_expect_in_flight(rig, ""); /* nothing begins before the last is decided */
    assert_non_null(strstr(rv__cell_suspension(rig->cell).at, "step 'y'"));
    assert_true(rig_has_fact(rig, J("'left':1")));
    rig_crash(rig, false);
    assert_int_equal(rig_say(rig, MSG_RESUME), RV_OK);
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* Wherever the run is when it is given up: it fails with that reason, its handler runs once. */
static void a_run_can_be_aborted_anywhere(void **state)
{
    static const char *const reason = "{\"message\":\"enough\"}";
    (void)state;
    struct rig *rig = rig_new(
        J("{'name':'t','onError':{'name':'team'},'steps':[" S("a") "," S("b") "]}"), NULL);
    rig_done(rig, "a", "1");
    rig_poison(rig, "b"); /* in a node */
    rig_send(rig, (struct rv__msg){ .kind = MSG_ABORT, .error = rv__blob_new(rv__str(reason)) });
    rig_expect_in_flight(rig, "onError");
    rig_poison(rig, "onError"); /* in the handler: it is not run again */
    rig_expect(rig, RUN_SUSPENDED, NULL);
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
    rig_expect(rig, RUN_FAILED, J("{'a':" DONE("1") ",'b':" OUT("null", "failed") "}"));
    struct rv__str message;
    assert_true(rv__json_get(rv__cell_error(rig->cell), "message", &message));
    assert_str(message, "\"enough\"");
    assert_str(rv__cell_failed_path(rig->cell), "b");
    assert_str(rv__cell_failed_step(rig->cell), "b");
    rig_free(rig);

    rig = rig_new(
        J("{'name':'t','onError':{'name':'team'},'steps':[" S(
            "a") ",{'type':'concurrent','alias':'d',"
                 "'continueOn':'detached','steps':[" S(
                     "x") "]},{'type':'step','alias':'b','kind':'command','with':['x']}]}"),
        NULL);
    rig->grants[LANE_IO] = false;
    rig_done(rig, "a", "1");
    assert_int_equal(rig_suspend(rig, reason), RV_OK); /* and b waits for its place */
    rig_expect(rig, RUN_SUSPENDED, NULL);
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
    rig_crash(rig, true);
    rig_expect_in_flight(rig, "onError d:x"); /* what is detached goes on */
    assert_int_equal(rig_suspend(rig, reason), RV_OK);
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_done(rig, "onError", "1");
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK); /* it has failed already */
    rig_expect(rig, RUN_FAILED, NULL);
    rig_poison(rig, "d:x"); /* after the end it fails by itself */
    assert_false(rv__cell_active(rig->cell));
    rig_free(rig);
}

static void an_abort_without_a_handler_ends_the_run(void **state)
{
    (void)state;
    struct rig *rig = rig_of("{'type':'concurrent','alias':'d','continueOn':'detached','steps':[" S(
                                 "x") "]},"
                                      "{'type':'step','alias':'b','kind':'command','with':['x']}",
                             NULL);
    struct rv__effect b = rig_at(rig, "b")->effect;
    rig->grants[LANE_IO] = false;
    struct rv__msg lost = { .kind = MSG_LOST, .actor = b.actor, .token = b.token };
    rig_turn(rig, &lost);
    assert_int_equal(rig_suspend(rig, "{\"message\":\"no\"}"), RV_OK);
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
    rig_expect(rig, RUN_FAILED, NULL);
    rig_say(rig, MSG_CANCEL);
    rig_free(rig);
}

/* Detached, and to blame: once the run is given up, it is not stopped for that again. */
static void a_detached_pill_does_not_outlast_a_decision(void **state)
{
    (void)state;
    for (int handler = 0; handler < 2; handler++) {
        char plan[400];
        snprintf(plan, sizeof plan,
                 "{'name':'t'%s,'steps':[{'type':'concurrent','alias':'d','continueOn':'detached',"
                 "'steps':[" S("x") "]}," S("b") "]}",
                 handler ? ",'onError':{'name':'team'}" : "");
        struct rig *rig = rig_new(J(plan), NULL);
        rig_poison(rig, "d:x");
        rig_expect(rig, RUN_SUSPENDED, NULL);
        assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
        if (handler)
            rig_done(rig, "onError", "1");
        rig_expect(rig, RUN_FAILED, NULL);
        assert_false(rv__cell_active(rig->cell)); /* it has failed by itself */
        rig_free(rig);
    }
}

/* --------------------------------------------------------------------------------- effects --- */

/* An actor is owed one thing at a time: a turn that begins and ends work leaves one effect of it. */
static void effects_are_what_is_owed_at_the_end_of_the_turn(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," DELAY("d", "5"), NULL);
    rv_error err;
    struct rv__effect effect;
    struct rv__effect a = rig_at(rig, "a")->effect;
    struct rv__msg lost = { .kind = MSG_LOST, .actor = a.actor, .token = a.token };
    assert_int_equal(rv__flow_send(rig->cell, &lost, &rig->facts, &err), RV_OK);
    assert_int_equal(rv__flow_grant(rig->cell, LANE_FUNCTION, 1, &rig->facts, &err), 1);
    assert_true(rv__cell_effect(rig->cell, &effect));
    assert_int_equal(effect.kind, EFFECT_START);
    assert_int_equal(effect.actor, a.actor);
    assert_int_not_equal(effect.token, a.token);
    assert_false(rv__cell_effect(rig->cell, &effect));

    struct rv__msg done = { .kind = MSG_DONE, .actor = effect.actor, .token = effect.token };
    done.actor = a.actor;
    done.token = a.token + 2;
    assert_int_equal(rv__flow_send(rig->cell, &done, &rig->facts, &err), RV_OK);
    assert_int_equal(rv__flow_pump(rig->cell, 7, &rig->facts, &err), 0);
    struct rv__msg cancel = { .kind = MSG_CANCEL };
    assert_int_equal(rv__flow_send(rig->cell, &cancel, &rig->facts, &err), RV_OK);
    int stops = 0;
    while (rv__cell_effect(rig->cell, &effect)) {
        assert_int_equal(effect.kind, EFFECT_STOP); /* the delay began and ended in this turn */
        stops++;
    }
    assert_int_equal(stops, 2);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_items_do_not_hold_the_loop),
        cmocka_unit_test(a_turn_that_was_cut_goes_on_to_the_end),
        cmocka_unit_test(a_loop_that_keeps_the_last_stays_small),
        RIG_TEST(a_grant_is_one_piece_of_work),
        RIG_TEST(who_has_begun_is_served_before_a_range),
        RIG_TEST(ranges_are_served_in_turn),
        cmocka_unit_test(memory_is_bounded_by_the_places_given),
        RIG_TEST(while_suspended_nothing_begins_and_everything_is_recorded),
        RIG_TEST(a_resume_is_recorded_with_its_reason_and_its_cause),
        RIG_TEST(several_steps_of_a_run_may_be_suspended_and_each_is_decided_by_its_path),
        RIG_TEST(a_run_can_be_aborted_anywhere),
        RIG_TEST(an_abort_without_a_handler_ends_the_run),
        RIG_TEST(a_detached_pill_does_not_outlast_a_decision),
        cmocka_unit_test(effects_are_what_is_owed_at_the_end_of_the_turn),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
