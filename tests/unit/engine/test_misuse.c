/* test_misuse.c: what a program must not do is told, and harms nothing: RV_EINVAL at every public call.
 * For src/engine. */
#include "unit/engine/rig.h"

static int nothing(rv_ctx *c)
{
    (void)c;
    return 0;
}

static void open_one(struct rig *rig)
{
    rig_open(rig, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "a", nothing, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

/* RV_EINVAL, and a sentence about it. */
#define REFUSED(call)                                                                             \
    do {                                                                                          \
        rig->err = (rv_error){ .code = 0 };                                                       \
        int refused_rc = (call);                                                                  \
        if (refused_rc != RV_EINVAL || rig->err.code != RV_EINVAL || rig->err.message[0] == '\0') \
            fail_msg("%s: %d: %s", #call, refused_rc, rig->err.message);                          \
    } while (0)

static void no_engine_is_told(void **state)
{
    struct rig *rig = *state;
    rv_error *err = &rig->err;
    const char *path = rig->folder;
    rv_workflow *w = rv_workflow_new("w");
    rv_workflow_list *workflows = NULL;
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    rv_run_list *runs = NULL;
    rv_log_list *logs = NULL;
    rv_node_list *nodes = NULL;
    rv_feed *feed = NULL;
    rv_event event;
    rv_health health;
    rv_report *report = NULL;
    char *text = NULL;
    REFUSED(rv_register(NULL, w, err));
    rv_workflow_free(w);
    REFUSED(rv_register_file(NULL, path, NULL, err));
    REFUSED(rv_register_dir(NULL, path, NULL, err));
    REFUSED(rv_workflows(NULL, &workflows, err));
    REFUSED(rv_run(NULL, "w", NULL, NULL, NULL, err));
    REFUSED(rv_wait(NULL, NULL, "r", NULL, &outcome, err));
    REFUSED(rv_cancel_run(NULL, "r", err));
    REFUSED(rv_signal(NULL, "r", "s", "1", err));
    REFUSED(rv_complete(NULL, "r", "h", "1", "e", err));
    REFUSED(rv_decide(NULL, "r", RV_ABORT, RV_DECIDE_OPTS(.reason = "why"), err));
    REFUSED(rv_state(NULL, "r", &now, err));
    REFUSED(rv_list(NULL, NULL, &runs, err));
    REFUSED(rv_feed_open(NULL, NULL, &feed, err));
    REFUSED(rv_feed_next(NULL, 0, NULL, &event, err));
    REFUSED(rv_logs(NULL, "r", NULL, &logs, err));
    REFUSED(rv_nodes(NULL, "r", NULL, &nodes, err));
    REFUSED(rv_why(NULL, "r", &text, err));
    REFUSED(rv_metrics(NULL, &text, err));
    REFUSED(rv_retain(NULL, NULL, NULL, err));
    REFUSED(rv_engine_health(NULL, &health, err));
    REFUSED(rv_check_files(NULL, 1, NULL, &report, err));
    REFUSED(rv_check_files(&path, 0, NULL, &report, err));
    REFUSED(rv_report_plan(NULL, 0, RV_PLAN_JSON, &path, err));
    REFUSED(rv_test_advance(NULL, 1, err));
    REFUSED(rv_test_replace(NULL, "a", nothing, err));
    REFUSED(rv_test_crash(NULL, err));
    REFUSED(rv_engine_new(NULL, NULL, err));
    REFUSED(rv_test_engine_new(NULL, NULL, err));
    assert_int_equal(rv_test_now(NULL), 0);
    assert_int_equal(rv_test_crashes(NULL), 0);
    assert_int_equal(rv_engine_close(NULL), 0);
    rv_engine_free(NULL);
    assert_null(rv_instance_new(NULL, "w", "r"));
}

static void no_instance_is_told(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    open_one(rig);
    assert_null(rv_instance_new(rig->engine, NULL, "r"));
    assert_null(rv_instance_new(rig->engine, "w", NULL));
    assert_null(rv_instance_new(rig->engine, "w", "not an id"));
    REFUSED(rv_instance_run(NULL, NULL, NULL, &rig->err));
    REFUSED(rv_instance_wait(NULL, NULL, &outcome, &rig->err));
    REFUSED(rv_instance_cancel(NULL, &rig->err));
    REFUSED(rv_instance_state(NULL, &now, &rig->err));
    rv_instance_free(NULL);

    rv_instance *instance = rv_instance_new(rig->engine, "w", "of-it");
    rv_run_info info;
    assert_int_equal(rv_instance_state(instance, &now, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_instance_run(instance, "1", &info, &rig->err), RV_OK);
    assert_string_equal(info.run_id, "of-it");
    assert_int_equal(rv_instance_wait(instance, NULL, &outcome, &rig->err), RV_OK);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_instance_state(instance, &now, &rig->err), RV_OK);
    assert_string_equal(now->input, "1");
    rv_run_state_free(now);
    assert_int_equal(rv_instance_cancel(instance, &rig->err), RV_OK); /* it has ended: no matter */
    rv_instance_free(instance);
}

static void nowhere_to_put_it_is_told(void **state)
{
    struct rig *rig = *state;
    rv_engine *e;
    rv_error *err = &rig->err;
    open_one(rig);
    e = rig->engine;
    REFUSED(rv_wait(e, NULL, "r", NULL, NULL, err));
    REFUSED(rv_state(e, "r", NULL, err));
    REFUSED(rv_list(e, NULL, NULL, err));
    REFUSED(rv_workflows(e, NULL, err));
    REFUSED(rv_feed_open(e, NULL, NULL, err));
    REFUSED(rv_logs(e, "r", NULL, NULL, err));
    REFUSED(rv_nodes(e, "r", NULL, NULL, err));
    REFUSED(rv_why(e, "r", NULL, err));
    REFUSED(rv_metrics(e, NULL, err));
    REFUSED(rv_engine_health(e, NULL, err));
}

static void options_without_a_size_are_told(void **state)
{
    struct rig *rig = *state;
    rv_engine *e, *other = NULL;
    rv_error *err = &rig->err;
    rv_outcome *outcome = NULL;
    rv_run_list *runs = NULL;
    rv_log_list *logs = NULL;
    rv_node_list *nodes = NULL;
    rv_feed *feed = NULL;
    rv_report *report = NULL;
    const char *path = ".";
    open_one(rig);
    e = rig->engine;
    REFUSED(rv_engine_new(&(rv_engine_opts){ .size = 0 }, &other, err));
    REFUSED(rv_engine_new(RV_ENGINE_OPTS(.workers = UINT32_MAX), &other, err));
    REFUSED(rv_engine_new(RV_ENGINE_OPTS(.retain_age_ms = -1), &other, err));
    REFUSED(rv_test_engine_new(&(rv_test_opts){ .size = 0 }, &other, err));
    REFUSED(rv_register_file(e, "x", &(rv_file_opts){ .size = 0 }, err));
    REFUSED(rv_check_files(&path, 1, &(rv_check_opts){ .size = 0 }, &report, err));
    REFUSED(rv_check_files(&path, 1, RV_CHECK_OPTS(.c_files = 3), &report, err));
    REFUSED(rv_run(e, "w", NULL, &(rv_run_opts){ .size = 0 }, NULL, err));
    REFUSED(rv_wait(e, NULL, "r", &(rv_wait_opts){ .size = 0 }, &outcome, err));
    REFUSED(rv_list(e, &(rv_query){ .size = 0 }, &runs, err));
    REFUSED(rv_logs(e, "r", &(rv_log_query){ .size = 0 }, &logs, err));
    REFUSED(rv_nodes(e, "r", &(rv_node_query){ .size = 0 }, &nodes, err));
    REFUSED(rv_feed_open(e, &(rv_feed_opts){ .size = 0 }, &feed, err));
    REFUSED(rv_retain(e, &(rv_retain_opts){ .size = 0 }, NULL, err));
    rv_workflow *w = rv_workflow_new("v");
    rv_add_step(rv_workflow_body(w), "a", nothing, &(rv_step_opts){ .size = 0 });
    REFUSED(rv_register(e, w, err));
    assert_non_null(strstr(err->message, "RV_STEP_OPTS"));
    rv_workflow_free(w);
}

/* A program that was built when the struct had fewer fields: what lies behind them is not its. */
static void options_of_an_older_program_are_read_as_far_as_they_go(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    rv_run_list *runs = NULL;
    rv_violations *bad = NULL;
    rv_cancel *fired = rv_cancel_new(NULL);
    open_one(rig);
    rv_cancel_fire(fired, RV_ECANCELED, "fired");
    rv_wait_opts wait = { .size = offsetof(rv_wait_opts, by), .timeout_ms = 1000, .by = fired };
    int rc = rv_wait(rig->engine, NULL, "r", &wait, &outcome, &rig->err);
    rv_cancel_free(fired);
    assert_int_equal(rc, RV_OK);
    rv_outcome_free(outcome);
    rv_query query = { .size = offsetof(rv_query, limit), .limit = 0, .cursor = "not a cursor" };
    assert_int_equal(rv_list(rig->engine, &query, &runs, &rig->err), RV_OK);
    assert_int_equal(runs->count, 1);
    rv_run_list_free(runs);
    rv_workflow *w = rv_workflow_new("strict");
    rv_workflow_input(w, "{\"type\":\"object\"}");
    rv_add_step(rv_workflow_body(w), "a", nothing, NULL);
    rig_put(rig, w);
    rv_run_opts run = { .size = offsetof(rv_run_opts, violations), .violations = &bad };
    assert_int_equal(rv_run(rig->engine, "strict", "5", &run, NULL, &rig->err), RV_EINVAL);
    assert_null(bad);
}

static void bad_arguments_are_told(void **state)
{
    struct rig *rig = *state;
    rv_engine *e;
    rv_error *err = &rig->err;
    static const char *const bad_ids[] = { NULL, "", "a b", "\xc3\xa9", "x/y" };
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    rv_run_list *runs = NULL;
    rv_log_list *logs = NULL;
    rv_node_list *nodes = NULL;
    rv_feed *feed = NULL;
    char *text = NULL, long_id[140];
    open_one(rig);
    e = rig->engine;
    memset(long_id, 'x', sizeof long_id);
    long_id[RV_RUN_ID_SIZE] = '\0'; /* one too many */
    for (size_t i = 0; i <= sizeof bad_ids / sizeof *bad_ids; i++) {
        const char *id = i < sizeof bad_ids / sizeof *bad_ids ? bad_ids[i] : long_id;
        REFUSED(rv_wait(e, NULL, id, NULL, &outcome, err));
        REFUSED(rv_state(e, id, &now, err));
        REFUSED(rv_cancel_run(e, id, err));
        REFUSED(rv_signal(e, id, "s", "{\"a\":1}", err));
        REFUSED(rv_complete(e, id, "h", "{\"a\":1}", NULL, err));
        REFUSED(rv_decide(e, id, RV_RESUME, NULL, err));
        REFUSED(rv_logs(e, id, NULL, &logs, err));
        REFUSED(rv_nodes(e, id, NULL, &nodes, err));
        REFUSED(rv_why(e, id, &text, err));
        if (id != NULL) {
            REFUSED(rv_run(e, "w", NULL, RV_RUN_OPTS(.run_id = id), NULL, err));
            REFUSED(rv_feed_open(e, RV_FEED_OPTS(.run_id = id), &feed, err));
        }
    }
    REFUSED(rv_register(e, NULL, err));
    REFUSED(rv_register_file(e, NULL, NULL, err));
    REFUSED(rv_run(e, NULL, NULL, NULL, NULL, err));
    REFUSED(rv_run(e, "w", "{not json", NULL, NULL, err));
    REFUSED(rv_signal(e, "r", NULL, NULL, err));
    REFUSED(rv_signal(e, "r", "", NULL, err));
    REFUSED(rv_signal(e, "r", "s", "[1,", err));
    REFUSED(rv_complete(e, "r", NULL, NULL, NULL, err));
    REFUSED(rv_complete(e, "r", "h", "nope", NULL, err));
    REFUSED(rv_decide(e, "r", 7, NULL, err));
    REFUSED(rv_decide(e, "r", RV_ABORT, &(rv_decide_opts){ .reason = "no size" }, err));
    assert_int_equal(rv_decide(e, "r", RV_SKIP, NULL, err), RV_ESTATE);
    assert_int_equal(rv_decide(e, "r", RV_RESTART_STAGE, NULL, err), RV_ESTATE);
    assert_int_equal(rv_decide(e, "r", RV_RESUME, RV_DECIDE_OPTS(.path = "a"), err), RV_ESTATE);
    REFUSED(rv_list(e, RV_QUERY(.status = 99), &runs, err));
    REFUSED(rv_list(e, RV_QUERY(.status = -1), &runs, err));
    REFUSED(rv_list(e, RV_QUERY(.cursor = "no cursor"), &runs, err));
    REFUSED(rv_logs(e, "r", RV_LOG_QUERY(.level = 9), &logs, err));
    REFUSED(rv_nodes(e, "r", RV_NODE_QUERY(.status = "broken"), &nodes, err));
    REFUSED(rv_feed_open(e, RV_FEED_OPTS(.from = 9), &feed, err));
    REFUSED(rv_retain(e, RV_RETAIN_OPTS(.max_age_ms = -1), NULL, err));
    REFUSED(rv_test_advance(e, 1, err)); /* not a kit's */
    assert_int_equal(rv_signal(e, "nobody", "s", NULL, err), RV_ENOTFOUND);
    assert_int_equal(rv_signal(e, "r", "s", NULL, err), RV_ESTATE);
    assert_int_equal(rv_decide(e, "r", RV_RESUME, NULL, err), RV_ESTATE);
    assert_int_equal(rv_complete(e, "r", "h", NULL, NULL, err), RV_ENOTFOUND);
    assert_int_equal(rv_run(e, "v", NULL, NULL, NULL, err), RV_ENOTFOUND);
    assert_non_null(strstr(err->message, "registered: w"));
    assert_null(rv_status_name(-1));
    assert_null(rv_status_name(RV_CANCELLED + 1));
    assert_string_equal(rv_status_name(RV_SUSPENDED), "suspended");
}

static void a_closed_engine_says_so(void **state)
{
    struct rig *rig = *state;
    rv_engine *e;
    rv_error *err = &rig->err;
    rv_outcome *outcome = NULL;
    rv_run_state *now = NULL;
    rv_workflow_list *list = NULL;
    rv_feed *feed = NULL;
    char *text = NULL;
    open_one(rig);
    e = rig->engine;
    assert_int_equal(rv_engine_close(e), 0);
    assert_int_equal(rv_engine_close(e), 0);
    assert_int_equal(rv_run(e, "w", NULL, NULL, NULL, err), RV_ECLOSED);
    assert_int_equal(rv_wait(e, NULL, "r", NULL, &outcome, err), RV_ECLOSED);
    assert_int_equal(rv_state(e, "r", &now, err), RV_ECLOSED);
    assert_int_equal(rv_cancel_run(e, "r", err), RV_ECLOSED);
    assert_int_equal(rv_signal(e, "r", "s", NULL, err), RV_ECLOSED);
    assert_int_equal(rv_why(e, "r", &text, err), RV_ECLOSED);
    assert_int_equal(rv_metrics(e, &text, err), RV_ECLOSED);
    assert_int_equal(rv_workflows(e, &list, err), RV_ECLOSED);
    assert_int_equal(rv_retain(e, NULL, NULL, err), RV_ECLOSED);
    assert_int_equal(rv_feed_open(e, NULL, &feed, err), RV_ECLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(no_engine_is_told),
        RIG_TEST(no_instance_is_told),
        RIG_TEST(nowhere_to_put_it_is_told),
        RIG_TEST(options_without_a_size_are_told),
        RIG_TEST(options_of_an_older_program_are_read_as_far_as_they_go),
        RIG_TEST(bad_arguments_are_told),
        RIG_TEST(a_closed_engine_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
