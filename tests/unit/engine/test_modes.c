/* test_modes.c: engines for one run, that start no work, that only read. For the options only_run, idle
 * and read_only of rv_engine_new(). */
#include "unit/engine/rig.h"

static atomic_int ran;

static int count(rv_ctx *ctx)
{
    atomic_fetch_add(&ran, 1);
    return rv_return(ctx, "i", 1);
}

/* A signal, then a step; or a delay, then a step. */
static void put_workflows(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("waits");
    rv_add_signal(rv_workflow_body(w), "ok", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "count", count, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("sleeps");
    rv_add_delay(rv_workflow_body(w), "rest", 700);
    rv_add_step(rv_workflow_body(w), "count", count, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("works");
    rv_add_step(rv_workflow_body(w), "count", count, NULL);
    rig_put(rig, w);
}

static int status_of(struct rig *rig, const char *run_id)
{
    rv_run_state *state = NULL;
    int rc = rv_state(rig->engine, run_id, &state, &rig->err);
    int status = rc < 0 ? rc : state->status;
    rv_run_state_free(state);
    return status;
}

static void an_engine_for_one_run_leaves_the_others(void **state)
{
    struct rig *rig = *state;
    atomic_store(&ran, 0);
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .idle = true));
    put_workflows(rig);
    rig_run(rig, "sleeps", "mine", NULL);
    rig_run(rig, "sleeps", "asleep", NULL);
    rig_run(rig, "works", "active", NULL);
    rig_close(rig);

    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .only_run = "mine"));
    put_workflows(rig);
    assert_int_equal(rig_wait(rig, "mine"), RV_COMPLETED);
    assert_int_equal(atomic_load(&ran), 1);
    assert_int_equal(status_of(rig, "active"), RV_ESTATE);
    assert_int_equal(rv_cancel_run(rig->engine, "asleep", &rig->err), RV_ESTATE);
    assert_int_equal(
        rv_run(rig->engine, "works", NULL, RV_RUN_OPTS(.run_id = "new"), NULL, &rig->err),
        RV_ESTATE);
    rig_close(rig);

    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store));
    put_workflows(rig);
    assert_int_equal(rig_wait(rig, "asleep"), RV_COMPLETED);
    assert_int_equal(rig_wait(rig, "active"), RV_COMPLETED);
    assert_int_equal(atomic_load(&ran), 3);
}

static void the_one_run_may_begin_there(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .only_run = "mine"));
    put_workflows(rig);
    rig_run(rig, "works", "mine", NULL);
    assert_int_equal(rig_wait(rig, "mine"), RV_COMPLETED);
    rv_engine *engine = NULL;
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = "x", .only_run = "not an id"), &engine, &rig->err),
        RV_EINVAL);
}

static void an_idle_engine_records_and_starts_nothing(void **state)
{
    struct rig *rig = *state;
    atomic_store(&ran, 0);
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .idle = true));
    put_workflows(rig);
    rig_run(rig, "waits", "w", NULL);
    assert_int_equal(rv_signal(rig->engine, "w", "go", "7", &rig->err), RV_OK);
    rig_run(rig, "works", "gone", NULL);
    assert_int_equal(rv_cancel_run(rig->engine, "gone", &rig->err), RV_OK);
    assert_int_equal(status_of(rig, "gone"), RV_CANCELLED);
    rig_close(rig);
    assert_int_equal(atomic_load(&ran), 0);

    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store));
    put_workflows(rig);
    assert_int_equal(rig_wait(rig, "w"), RV_COMPLETED);
    assert_int_equal(atomic_load(&ran), 1);
}

static void a_reader_sees_what_the_writer_commits(void **state)
{
    struct rig *rig = *state;
    rv_engine *reader = NULL;
    rv_outcome *outcome = NULL;
    rv_run_state *run = NULL;
    rv_node_list *nodes = NULL;
    char *why = NULL;
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store));
    put_workflows(rig);
    rig_run(rig, "waits", "w", NULL);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = rig->store, .read_only = true), &reader, &rig->err),
        RV_OK);
    for (int i = 0; i < 3; i++) { /* each look is a new one */
        assert_int_equal(rv_state(reader, "w", &run, &rig->err), RV_OK);
        assert_int_equal(run->status, RV_RUNNING);
        rv_run_state_free(run);
    }
    assert_int_equal(rv_why(reader, "w", &why, &rig->err), RV_OK);
    assert_non_null(strstr(why, "\"reason\":\"signal\""));
    rv_free(why);

    assert_int_equal(rv_wait(reader, NULL, "w", NULL, &outcome, &rig->err), RV_ESTATE);
    assert_int_equal(rv_signal(reader, "w", "go", NULL, &rig->err), RV_ESTATE);
    assert_int_equal(rv_cancel_run(reader, "w", &rig->err), RV_ESTATE);
    assert_int_equal(rv_run(reader, "waits", NULL, NULL, NULL, &rig->err), RV_ESTATE);
    assert_int_equal(rv_retain(reader, RV_RETAIN_OPTS(.max_runs = 1), NULL, &rig->err), RV_OK);

    assert_int_equal(rv_signal(rig->engine, "w", "go", NULL, &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "w"), RV_COMPLETED);
    assert_int_equal(rv_wait(reader, NULL, "w", NULL, &outcome, &rig->err), RV_OK);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_nodes(reader, "w", NULL, &nodes, &rig->err), RV_OK);
    assert_string_equal(nodes->nodes[1].status, "completed");
    rv_node_list_free(nodes);
    rv_engine_free(reader);
}

static void a_reader_makes_no_store(void **state)
{
    struct rig *rig = *state;
    rv_engine *reader = NULL;
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = rig->store, .read_only = true), &reader, &rig->err),
        RV_ESTORE);
    assert_int_equal(access(rig->store, F_OK), -1);
}

static void a_reader_leaves_a_dead_engines_run_as_it_is(void **state)
{
    struct rig *rig = *state;
    rv_engine *reader = NULL;
    rv_run_state *run = NULL;
    rv_node_list *nodes = NULL;
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .idle = true));
    put_workflows(rig);
    rig_run(rig, "works", "active", NULL);
    rig_close(rig);
    atomic_store(&ran, 0);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = rig->store, .read_only = true), &reader, &rig->err),
        RV_OK);
    assert_int_equal(rv_state(reader, "active", &run, &rig->err), RV_OK);
    assert_int_equal(run->status, RV_RUNNING);
    rv_run_state_free(run);
    assert_int_equal(rv_nodes(reader, "active", NULL, &nodes, &rig->err), RV_OK);
    assert_string_equal(nodes->nodes[0].status, "pending");
    rv_node_list_free(nodes);
    rv_engine_free(reader);
    assert_int_equal(atomic_load(&ran), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_engine_for_one_run_leaves_the_others),
        RIG_TEST(the_one_run_may_begin_there),
        RIG_TEST(an_idle_engine_records_and_starts_nothing),
        RIG_TEST(a_reader_sees_what_the_writer_commits),
        RIG_TEST(a_reader_makes_no_store),
        RIG_TEST(a_reader_leaves_a_dead_engines_run_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
