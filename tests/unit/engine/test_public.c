/* test_public.c: promises of rival.h that no other test is about: waits and who gives them up, lists,
 * decisions, signals before their time, what was missing, logs as they are written. For src/engine. */
#include "unit/engine/rig.h"

#include <time.h>

static atomic_bool gate_open;
static atomic_int attempts;

static int teardown(void **state)
{
    atomic_store(&gate_open, true);
    return rig_teardown(state);
}
#define PUBLIC_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, teardown)

static int quick(rv_ctx *c)
{
    return rv_return(c, "s", "done");
}

static int gated(rv_ctx *c)
{
    rv_log_info(c, "waiting at the gate");
    while (!atomic_load(&gate_open) && !rv_ctx_cancelled(c))
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    if (!atomic_load(&gate_open))
        return rv_fail(c, "told to stop");
    return rv_return(c, "i", rv_ctx_attempt(c));
}

static int talkative(rv_ctx *c)
{
    for (int i = 0; i < 10007; i++)
        rv_log_debug(c, "%d", i);
    return 0;
}

static int fails(rv_ctx *c)
{
    atomic_fetch_add(&attempts, 1);
    return rv_fail(c, "attempt %d", rv_ctx_attempt(c));
}

static void one_step(struct rig *rig, const char *name, const char *alias, rv_step_fn fn)
{
    rv_workflow *w = rv_workflow_new(name);
    rv_add_step(rv_workflow_body(w), alias, fn, NULL);
    rig_put(rig, w);
}

static void open_gated(struct rig *rig)
{
    rig_open(rig, NULL);
    one_step(rig, "quick", "a", quick);
    one_step(rig, "gated", "g", gated);
    atomic_store(&gate_open, false);
}

static int wait_for(struct rig *rig, const char *workflow, const char *run_id,
                    const rv_wait_opts *opts)
{
    rv_outcome *outcome = NULL;
    int rc = rv_wait(rig->engine, workflow, run_id, opts, &outcome, &rig->err);
    int status = rc < 0 ? rc : outcome->status;
    rv_outcome_free(outcome);
    return status;
}

static void *fire_soon(void *token)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    rv_cancel_fire(token, RV_ECANCELED, "enough");
    return NULL;
}

static void a_wait_ends_by_time_or_by_its_token(void **state)
{
    struct rig *rig = *state;
    open_gated(rig);
    rig_run(rig, "gated", "r", NULL);
    assert_int_equal(wait_for(rig, "gated", "r", RV_WAIT_OPTS(.timeout_ms = 20)), RV_ETIMEDOUT);
    assert_non_null(strstr(rig->err.message, "'r'"));
    assert_non_null(strstr(rig->err.message, "gated"));
    assert_non_null(strstr(rig->err.message, "20 ms"));
    assert_int_equal(wait_for(rig, "quick", "r", NULL), RV_ENOTFOUND);
    assert_non_null(strstr(rig->err.message, "is of workflow 'gated'"));
    assert_int_equal(wait_for(rig, NULL, "nobody", NULL), RV_ENOTFOUND);

    rv_cancel *token = rv_cancel_new(NULL);
    rv_cancel_fire(token, RV_ECANCELED, "enough");
    int rc = wait_for(rig, NULL, "r", RV_WAIT_OPTS(.by = token));
    rv_cancel_free(token);
    assert_int_equal(rc, RV_ECANCELED);
    token = rv_cancel_new(NULL);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fire_soon, token), 0);
    rc = wait_for(rig, NULL, "r", RV_WAIT_OPTS(.timeout_ms = -1, .by = token));
    pthread_join(thread, NULL);
    rv_cancel_free(token);
    assert_int_equal(rc, RV_ECANCELED);
    atomic_store(&gate_open, true);
    assert_int_equal(wait_for(rig, "gated", "r", NULL), RV_COMPLETED);
}

static void a_signal_may_come_before_its_time(void **state)
{
    struct rig *rig = *state;
    rv_run_state *now = NULL;
    open_gated(rig);
    rv_workflow *w = rv_workflow_new("signals");
    rv_add_step(rv_workflow_body(w), "g", gated, NULL);
    rv_add_signal(rv_workflow_body(w), "first", "go", 0, NULL);
    rv_add_signal(rv_workflow_body(w), "second", "go", 0, NULL);
    rig_put(rig, w);
    rig_run(rig, "signals", "r", NULL);
    assert_int_equal(rv_signal(rig->engine, "r", "go", "1", &rig->err), RV_OK);
    assert_int_equal(rv_signal(rig->engine, "r", "go", NULL, &rig->err), RV_OK);
    atomic_store(&gate_open, true);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_OK);
    bool in_order = strstr(now->results, "\"first\":{\"result\":1,") != NULL &&
                    strstr(now->results, "\"second\":{\"result\":null,") != NULL;
    if (!in_order)
        print_message("%s\n", now->results);
    rv_run_state_free(now);
    assert_true(in_order);
}

/* The runs that a query finds, as "id,id". */
static const char *found(struct rig *rig, const rv_query *query)
{
    rv_run_list *list = NULL;
    if (rv_list(rig->engine, query, &list, &rig->err) < 0)
        fail_msg("no list: %s", rig->err.message);
    rig->len = 0;
    rig_add(rig, "%s", "");
    for (size_t i = 0; i < list->count; i++)
        rig_add(rig, "%s%s", i > 0 ? "," : "", list->runs[i].run_id);
    rv_run_list_free(list);
    return rig->text;
}

static void runs_are_found_by_what_they_are(void **state)
{
    struct rig *rig = *state;
    rv_run_state *now = NULL;
    open_gated(rig);
    one_step(rig, "fails", "f", fails);
    rig_run(rig, "quick", "q1", "{\"city\":\"Bern\"}");
    assert_int_equal(rig_wait(rig, "q1"), RV_COMPLETED);
    rig_run(rig, "fails", "f1", NULL);
    assert_int_equal(rig_wait(rig, "f1"), RV_FAILED);
    rig_run(rig, "gated", "g1", NULL);
    rig_run(rig, "quick", "q2", NULL);
    assert_int_equal(rig_wait(rig, "q2"), RV_COMPLETED);
    assert_string_equal(found(rig, RV_QUERY(.workflow = "fails")), "f1");
    assert_string_equal(found(rig, RV_QUERY(.workflow = "none")), "");
    assert_string_equal(found(rig, RV_QUERY(.status = RV_RUNNING)), "g1");
    assert_string_equal(found(rig, RV_QUERY(.status = RV_FAILED)), "f1");
    assert_string_equal(found(rig, RV_QUERY(.text = "Bern")), "q1");
    assert_string_equal(found(rig, RV_QUERY(.text = "attempt 1")), "f1");
    assert_string_equal(found(rig, RV_QUERY(.workflow = "quick", .text = "q2")), "q2");
    assert_int_equal(rv_state(rig->engine, "q1", &now, &rig->err), RV_OK);
    int64_t at = now->created_at;
    rv_run_state_free(now);
    assert_string_equal(found(rig, RV_QUERY(.until = at - 1)), "");
    assert_int_equal(strlen(found(rig, RV_QUERY(.since = at))), 11);

    rv_run_list *page = NULL; /* two pages of two */
    char seen[64] = "", cursor[512] = "";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            rv_list(rig->engine, RV_QUERY(.limit = 2, .cursor = cursor), &page, &rig->err), RV_OK);
        assert_int_equal(page->count, 2);
        for (size_t k = 0; k < 2; k++)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.10s,",
                     page->runs[k].run_id);
        snprintf(cursor, sizeof cursor, "%s", page->next);
        rv_run_list_free(page);
    }
    assert_int_equal(strlen(seen), 12); /* each once; those of one millisecond in any order */
    assert_true(strstr(seen, "q1,") && strstr(seen, "f1,") && strstr(seen, "g1,") &&
                strstr(seen, "q2,"));
    if (cursor[0] != '\0')
        assert_string_equal(found(rig, RV_QUERY(.limit = 2, .cursor = cursor)), "");
}

static int status_of(struct rig *rig, const char *run_id, const char *suspension)
{
    rv_run_state *now = NULL;
    if (rv_state(rig->engine, run_id, &now, &rig->err) < 0)
        fail_msg("no state of %s: %s", run_id, rig->err.message);
    int status = now->status;
    bool said = suspension == NULL || strstr(now->suspension, suspension) != NULL;
    if (!said)
        print_message("%s\n", now->suspension);
    rv_run_state_free(now);
    assert_true(said);
    return status;
}

static void register_late(struct rig *rig, const char *name, int64_t rest_ms)
{
    rv_workflow *w = rv_workflow_new(name);
    if (rest_ms > 0)
        rv_add_delay(rv_workflow_body(w), "rest", rest_ms);
    rv_add_step(rv_workflow_body(w), "g", gated, NULL);
    rig_put(rig, w);
}

/* A run in flight, and one asleep, in a program that does not know their workflows: they wait, and go on
 * by themselves; or are cancelled. */
static void what_was_missing_may_come_back(void **state)
{
    struct rig *rig = *state;
    open_gated(rig);
    register_late(rig, "later", 0);
    register_late(rig, "asleep", 1000);
    rig_run(rig, "later", "r1", NULL);
    rig_run(rig, "later", "r2", NULL);
    rig_run(rig, "asleep", "r3", NULL);
    atomic_store(&gate_open, false);
    rig_close(rig); /* r1 and r2 are told, and so handed back */
    rig_open(rig, NULL);
    register_late(rig, "later", 0);
    register_late(rig, "asleep", 1000);
    atomic_store(&gate_open, false);
    rig_run(rig, "later", "r4", NULL);
    rig_run(rig, "later", "r5", NULL);
    rv_engine_opts opts = { .workers = 2, .grace_ms = 1 };
    rig_close(rig);

    rig_open(rig, &opts);
    one_step(rig, "quick", "a", quick);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r3", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.completed", "r3"); /* it has rested, and its next step is nobody's */
    assert_int_equal(status_of(rig, "r3", NULL), RV_RUNNING);
    assert_int_equal(status_of(rig, "r1", NULL), RV_RUNNING);
    assert_int_equal(rv_signal(rig->engine, "r2", "any", NULL, &rig->err), RV_EUNWANTED);
    assert_int_equal(
        rv_signal_with(rig->engine, "r2", "any", NULL, RV_SIGNAL_OPTS(.force = true), &rig->err),
        RV_OK);
    assert_int_equal(rv_decide(rig->engine, "r3", RV_ABORT,
                               RV_DECIDE_OPTS(.reason = "nobody knows it"), &rig->err),
                     RV_ESTATE);
    assert_int_equal(rv_cancel_run(rig->engine, "r3", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r3"), RV_CANCELLED);
    rig_run(rig, "quick", "other", NULL); /* others go on */
    assert_int_equal(rig_wait(rig, "other"), RV_COMPLETED);
    atomic_store(&gate_open, true);
    register_late(rig, "later", 0);
    for (int i = 1; i <= 5; i++)
        if (i != 3) {
            char id[8];
            snprintf(id, sizeof id, "r%d", i);
            assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
        }
}

/* Nothing is suspended for it: the run waits, and says so wherever one looks. */
static void a_run_without_its_function_waits_wherever_one_looks(void **state)
{
    struct rig *rig = *state;
    rv_run_info info;
    rv_run_state *now = NULL;
    rv_node_list *nodes = NULL;
    rig_define(rig, "  - a: { value: 1 }\n  - it: { call: nobodyHasIt }\n");
    assert_int_equal(rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "r"), &info, &rig->err),
                     RV_OK);
    assert_int_equal(info.status, RV_RUNNING);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.completed", "r");
    assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_OK);
    assert_int_equal(now->status, RV_RUNNING);
    assert_string_equal(now->results,
                        "{\"a\":{\"result\":1,\"state\":{},\"status\":\"completed\"}}");
    rv_run_state_free(now);
    assert_int_equal(rv_nodes(rig->engine, "r", NULL, &nodes, &rig->err), RV_OK);
    assert_string_equal(nodes->nodes[1].status, "pending");
    rv_node_list_free(nodes);
    assert_int_equal(/* the same start again: as it is now */
                     rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "r"), &info, &rig->err),
                     RV_OK);
    assert_int_equal(info.status, RV_RUNNING);

    rv_workflow *has = rv_workflow_new("has");
    rv_add_step(rv_workflow_body(has), "nobodyHasIt", quick, NULL);
    rig_put(rig, has);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

static void log_lines_are_on_disk_while_the_step_runs(void **state)
{
    struct rig *rig = *state;
    rv_log_list *logs = NULL;
    open_gated(rig);
    rig_follow(rig, NULL);
    rig_run(rig, "gated", "r", NULL);
    rig_until(rig, "log", "r"); /* the gate is closed: the step still runs */
    assert_int_equal(rv_logs(rig->engine, "r", NULL, &logs, &rig->err), RV_OK);
    assert_int_equal(logs->count, 1);
    assert_string_equal(logs->lines[0].message, "waiting at the gate");
    assert_string_equal(logs->lines[0].path, "g");
    rv_log_list_free(logs);
    assert_int_equal(status_of(rig, "r", NULL), RV_RUNNING);
}

static void a_step_that_says_too_much_is_cut_and_marked(void **state)
{
    struct rig *rig = *state;
    rv_log_list *logs = NULL;
    rig_open(rig, NULL);
    one_step(rig, "talk", "t", talkative);
    rig_run(rig, "talk", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_int_equal(rv_logs(rig->engine, "r", RV_LOG_QUERY(.level = RV_WARN), &logs, &rig->err),
                     RV_OK);
    assert_int_equal(logs->count, 1);
    assert_string_equal(logs->lines[0].message, "7 more lines of this attempt were not kept");
    rv_log_list_free(logs);
    assert_int_equal(rv_logs(rig->engine, "r", RV_LOG_QUERY(.text = "9999"), &logs, &rig->err),
                     RV_OK);
    assert_int_equal(logs->count, 1);
    rv_log_list_free(logs);
}

/* With no schema it is null; and where there is one, {}: see test_kit.c. */
static void an_input_that_is_not_given_is_null(void **state)
{
    struct rig *rig = *state;
    open_gated(rig);
    const char *const inputs[] = { NULL, "null" };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(rv_run(rig->engine, "gated", inputs[(i + i / 2) % 2],
                                RV_RUN_OPTS(.run_id = i < 2 ? "absent" : "null"), NULL, &rig->err),
                         RV_OK);
    assert_int_equal(
        rv_run(rig->engine, "gated", "{}", RV_RUN_OPTS(.run_id = "absent"), NULL, &rig->err),
        RV_EEXIST);
}

static void the_same_start_again_is_the_same_run(void **state)
{
    struct rig *rig = *state;
    rv_run_info info;
    open_gated(rig);
    rig_run(rig, "gated", "r", "{\"a\":1,\"b\":2}");
    assert_int_equal(rv_run(rig->engine, "gated", "{ \"b\": 2, \"a\": 1.0 }",
                            RV_RUN_OPTS(.run_id = "r"), &info, &rig->err),
                     RV_OK);
    assert_int_equal(info.status, RV_RUNNING);
    assert_int_equal(
        rv_run(rig->engine, "gated", "{\"a\":1}", RV_RUN_OPTS(.run_id = "r"), &info, &rig->err),
        RV_EEXIST);
    assert_non_null(strstr(rig->err.message, "another input"));
    assert_int_equal(rv_run(rig->engine, "quick", "{\"a\":1,\"b\":2}", RV_RUN_OPTS(.run_id = "r"),
                            &info, &rig->err),
                     RV_EEXIST);
    assert_non_null(strstr(rig->err.message, "'gated'"));
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_CANCELLED);
    rig_close(rig);
    open_gated(rig); /* and after a restart, from the store */
    assert_int_equal(rv_run(rig->engine, "gated", "{\"b\":2,\"a\":1}", RV_RUN_OPTS(.run_id = "r"),
                            &info, &rig->err),
                     RV_OK);
    assert_int_equal(info.status, RV_CANCELLED);
}

/* ---------------------------------------------------------------------------------- places --- */

static atomic_int at_work, most_at_work;

static void comes(void)
{
    int now = atomic_fetch_add(&at_work, 1) + 1, most = atomic_load(&most_at_work);
    while (now > most && !atomic_compare_exchange_weak(&most_at_work, &most, now))
        ;
}

static int naps(rv_ctx *c)
{
    comes();
    usleep(2000);
    atomic_fetch_sub(&at_work, 1);
    return rv_return(c, "i", 1);
}

/* Runs a child and waits for it; what it does before and after takes a while, too. */
static int has_child(rv_ctx *c)
{
    rv_run_info child;
    rv_outcome *outcome = NULL;
    rv_error err;
    comes();
    usleep(1000);
    int rc = rv_run(rv_ctx_engine(c), "naps", NULL, NULL, &child, &err);
    atomic_fetch_sub(&at_work, 1);
    if (rc == RV_OK)
        rc = rv_wait(rv_ctx_engine(c), NULL, child.run_id, NULL, &outcome, &err);
    if (rc < 0)
        return rv_fail(c, "%s", err.message);
    rv_outcome_free(outcome);
    comes();
    usleep(2000);
    atomic_fetch_sub(&at_work, 1);
    return rv_return(c, "i", 2);
}

static int waits_too_briefly(rv_ctx *c)
{
    rv_outcome *outcome = NULL;
    int rc = rv_wait(rv_ctx_engine(c), NULL, "never", RV_WAIT_OPTS(.timeout_ms = 20), &outcome,
                     NULL);
    return rc == RV_ETIMEDOUT ? rv_return(c, "i", 1) : rv_fail(c, "rv_wait says %d", rc);
}

/* A step that waits for another run gives its place to others, and goes on when it has one again: with one
 * worker nothing waits for itself, and never do two work at once. */
static void a_step_that_waits_for_a_run_lends_its_place(void **state)
{
    struct rig *rig = *state;
    enum { PARENTS = 30 };
    char id[16];
    rv_engine_opts opts = { .workers = 1 };
    rig_open(rig, &opts);
    one_step(rig, "naps", "a", naps);
    one_step(rig, "parent", "p", has_child);
    one_step(rig, "brief", "b", waits_too_briefly);
    rv_workflow *w = rv_workflow_new("signal");
    rv_add_signal(rv_workflow_body(w), "s", "s", 0, NULL);
    rig_put(rig, w);
    atomic_store(&most_at_work, 0);
    rig_run(rig, "signal", "never", NULL);
    for (int i = 0; i < PARENTS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        rig_run(rig, "parent", id, NULL);
        snprintf(id, sizeof id, "b%d", i);
        rig_run(rig, "brief", id, NULL);
    }
    for (int i = 0; i < PARENTS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
        snprintf(id, sizeof id, "b%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
    assert_int_equal(atomic_load(&most_at_work), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUBLIC_TEST(a_wait_ends_by_time_or_by_its_token),
        PUBLIC_TEST(a_signal_may_come_before_its_time),
        PUBLIC_TEST(runs_are_found_by_what_they_are),
        PUBLIC_TEST(an_input_that_is_not_given_is_null),
        PUBLIC_TEST(the_same_start_again_is_the_same_run),
        PUBLIC_TEST(log_lines_are_on_disk_while_the_step_runs),
        PUBLIC_TEST(a_step_that_says_too_much_is_cut_and_marked),
        PUBLIC_TEST(what_was_missing_may_come_back),
        PUBLIC_TEST(a_run_without_its_function_waits_wherever_one_looks),
        PUBLIC_TEST(a_step_that_waits_for_a_run_lends_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
