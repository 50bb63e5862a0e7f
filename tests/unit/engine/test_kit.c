/* test_kit.c: the testing kit of the public API: skipped time, replaced steps, deaths by seed. For
 * src/engine/kit.c, and through it for the whole engine on a simulated store. */
#include "unit/test.h"

#include <time.h>

#include <rival/rival.h>

struct fixture {
    rv_engine *engine;
    rv_error err;
};

static int counts[8];    /* how often each step ran */
static char order[4096]; /* which step after which */

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    memset(counts, 0, sizeof counts);
    order[0] = '\0';
    *state = fx;
    return fx != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv_engine_free(fx->engine);
    free(fx);
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void open_kit(struct fixture *fx, const rv_test_opts *opts)
{
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    if (rv_test_engine_new(opts, &fx->engine, &fx->err) < 0)
        fail_msg("cannot open: %s", fx->err.message);
}

static void put(struct fixture *fx, rv_workflow *w)
{
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("cannot register: %s", fx->err.message);
    rv_workflow_free(w);
}

static void start(struct fixture *fx, const char *workflow, const char *run_id)
{
    if (rv_run(fx->engine, workflow, NULL, RV_RUN_OPTS(.run_id = run_id), NULL, &fx->err) < 0)
        fail_msg("cannot start: %s", fx->err.message);
}

static rv_outcome *outcome_of(struct fixture *fx, const char *run_id, int64_t timeout_ms)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(fx->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = timeout_ms), &outcome,
                &fx->err) < 0)
        fail_msg("no outcome: %s", fx->err.message);
    return outcome;
}

static void expect_status(struct fixture *fx, const char *run_id, int status)
{
    rv_run_state *now = NULL;
    if (rv_state(fx->engine, run_id, &now, &fx->err) < 0)
        fail_msg("no state: %s", fx->err.message);
    int is = now->status;
    rv_run_state_free(now);
    assert_int_equal(is, status);
}

static int step_n(rv_ctx *c, int n)
{
    counts[n]++;
    snprintf(order + strlen(order), sizeof order - strlen(order), "%s,", rv_ctx_path(c));
    return rv_return(c, "i", n);
}
static int zero(rv_ctx *c)
{
    return step_n(c, 0);
}
static int one(rv_ctx *c)
{
    return step_n(c, 1);
}
static int two(rv_ctx *c)
{
    return step_n(c, 2);
}

static rv_workflow *with_delay(void)
{
    rv_workflow *w = rv_workflow_new("patient");
    rv_add_step(rv_workflow_body(w), "first", zero, NULL);
    rv_add_delay(rv_workflow_body(w), "rest", 3600 * 1000);
    rv_add_step(rv_workflow_body(w), "second", one, NULL);
    return w;
}

static void a_wait_skips_the_time_it_takes(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    put(fx, with_delay());
    int64_t begin = rv_test_now(fx->engine);
    start(fx, "patient", "p");
    assert_int_equal(counts[0], 0); /* nothing runs by itself */
    rv_outcome *outcome = outcome_of(fx, "p", 2 * 3600 * 1000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_test_now(fx->engine) - begin, 3600 * 1000);
    assert_int_equal(counts[0] + counts[1], 2);
}

static void a_wait_that_is_too_short_times_out_by_the_engines_clock(void **state)
{
    struct fixture *fx = *state;
    rv_outcome *outcome = NULL;
    open_kit(fx, NULL);
    put(fx, with_delay());
    int64_t begin = rv_test_now(fx->engine);
    start(fx, "patient", "p");
    assert_int_equal(
        rv_wait(fx->engine, NULL, "p", RV_WAIT_OPTS(.timeout_ms = 1000), &outcome, &fx->err),
        RV_ETIMEDOUT);
    assert_int_equal(rv_test_now(fx->engine) - begin, 1000);
    expect_status(fx, "p", RV_RUNNING);
    assert_int_equal(rv_test_advance(fx->engine, 3600 * 1000 - 1001, &fx->err), 0);
    expect_status(fx, "p", RV_RUNNING);
    assert_int_equal(rv_test_advance(fx->engine, 1, &fx->err), 0);
    expect_status(fx, "p", RV_COMPLETED);
}

static int fails_twice(rv_ctx *c)
{
    counts[3]++;
    return rv_ctx_attempt(c) < 3 ? rv_fail(c, "not yet") : rv_return(c, "s", "at last");
}

static void a_step_is_replaced_by_its_alias(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "flaky", zero,
                RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 60000));
    put(fx, w);
    assert_int_equal(rv_test_replace(fx->engine, "flaky", fails_twice, &fx->err), 0);
    int64_t begin = rv_test_now(fx->engine);
    start(fx, "w", "a");
    rv_outcome *outcome = outcome_of(fx, "a", -1);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(counts[3], 3);
    assert_int_equal(rv_test_now(fx->engine) - begin, 60000 + 60000); /* capped at a minute */
    assert_int_equal(rv_test_replace(fx->engine, "flaky", NULL, &fx->err), 0);
    start(fx, "w", "b");
    rv_outcome_free(outcome_of(fx, "b", -1));
    assert_int_equal(counts[0], 1);
}

static int slow(rv_ctx *c)
{
    counts[4]++;
    rv_test_takes(c, rv_ctx_attempt(c) == 1 ? 5000 : 10);
    return rv_return(c, "s", "slow");
}

static void a_step_that_takes_too_long_is_tried_again(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "slow", slow,
                RV_STEP_OPTS(.timeout_ms = 1000, .on_timeout = RV_RETRY, .max_attempts = 2));
    put(fx, w);
    start(fx, "w", "a");
    rv_outcome *outcome = outcome_of(fx, "a", 4000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(counts[4], 2);
    assert_int_equal(rv_test_advance(fx->engine, 10000, &fx->err), 0); /* the late answer is void */
    expect_status(fx, "a", RV_COMPLETED);
}

static void what_was_recorded_does_not_run_again_after_a_crash(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    put(fx, with_delay());
    start(fx, "patient", "p");
    assert_int_equal(rv_test_advance(fx->engine, 10, &fx->err), 0);
    assert_int_equal(counts[0], 1);
    assert_int_equal(rv_test_crash(fx->engine, &fx->err), 0);
    assert_int_equal(rv_test_advance(fx->engine, 3600 * 1000, &fx->err), 0);
    expect_status(fx, "p", RV_COMPLETED);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
    assert_int_equal(rv_test_crashes(fx->engine), 1);
}

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

static int takes_a_year(rv_ctx *c)
{
    rv_log_info(c, "this takes a while");
    rv_test_takes(c, YEAR_MS);
    return rv_return(c, "i", 1);
}

static int from_the_twentieth(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".loop.index", -1) >= 19);
}

/* Nothing that happens costs by how long nothing does: neither delays, nor a run that sleeps in the store,
 * nor a step that takes long, nor a retry. */
static void years_pass_in_no_time(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *w = rv_workflow_new("patient");
    rv_body *again = rv_add_loop(rv_workflow_body(w), "again",
                                 RV_LOOP_OPTS(.until = from_the_twentieth));
    rv_add_delay(again, "year", YEAR_MS);
    rv_add_step(rv_workflow_body(w), "slow", takes_a_year, NULL);
    rv_add_step(
        rv_workflow_body(w), "flaky", fails_twice,
        RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = YEAR_MS, .max_backoff_ms = YEAR_MS));
    open_kit(fx, NULL);
    put(fx, w);
    int64_t began_ns = now_ns(), began_ms = rv_test_now(fx->engine);
    start(fx, "patient", "p");
    rv_outcome *outcome = outcome_of(fx, "p", 100 * YEAR_MS);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_test_now(fx->engine) - began_ms, 23 * YEAR_MS);
    assert_true(now_ns() - began_ns <
                INT64_C(1000000000)); /* some milliseconds, on a busy machine */
}

static char keys[4][200];
static int key_count;

static int takes_long(rv_ctx *c)
{
    snprintf(keys[key_count++ % 4], sizeof keys[0], "%s", rv_ctx_idempotency_key(c));
    rv_test_takes(c, 1000);
    return rv_return(c, "i", 1);
}

/* The key of one attempt in a kit of this seed, which dies in it and tries again with the same. */
static const char *key_by_seed(struct fixture *fx, uint64_t seed)
{
    rv_workflow *w = rv_workflow_new("slow");
    rv_add_step(rv_workflow_body(w), "slow", takes_long, NULL);
    open_kit(fx, RV_TEST_OPTS(.seed = seed));
    put(fx, w);
    start(fx, "slow", "s");
    assert_int_equal(rv_test_advance(fx->engine, 500, &fx->err), 0);
    assert_int_equal(rv_test_crash(fx->engine, &fx->err), 0);
    assert_int_equal(rv_test_advance(fx->engine, 1000, &fx->err), 0);
    expect_status(fx, "s", RV_COMPLETED);
    assert_int_equal(key_count % 2, 0);
    assert_string_equal(keys[(key_count - 2) % 4], keys[(key_count - 1) % 4]);
    return keys[(key_count - 1) % 4];
}

static void a_key_outlives_a_crash_and_comes_from_the_seed(void **state)
{
    struct fixture *fx = *state;
    char first[sizeof keys[0]];
    snprintf(first, sizeof first, "%s", key_by_seed(fx, 1));
    assert_string_equal(key_by_seed(fx, 1), first);
    assert_string_not_equal(key_by_seed(fx, 2), first);
}

/* ----------------------------------------------------------------------------- conditions --- */

static int from_the_third(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".loop.index", -1) >= 2);
}
static int before_the_third(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".loop.index", -1) < 2);
}

static void a_condition_knows_which_iteration_it_is_about(void **state)
{
    struct fixture *fx = *state;
    rv_workflow *w = rv_workflow_new("loops");
    rv_body *until = rv_add_loop(rv_workflow_body(w), "until",
                                 RV_LOOP_OPTS(.until = from_the_third, .max_iterations = 5));
    rv_add_step(until, "after", zero, NULL);
    rv_body *while_ = rv_add_loop(rv_workflow_body(w), "while",
                                  RV_LOOP_OPTS(.while_ = before_the_third, .max_iterations = 5));
    rv_add_step(while_, "before", one, NULL);
    open_kit(fx, NULL);
    put(fx, w);
    start(fx, "loops", "l");
    rv_outcome *outcome = outcome_of(fx, "l", 1000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], 2);
}

/* ---------------------------------------------------------------------------------- seeds --- */

static int three_items(rv_ctx *c)
{
    return rv_return(c, "[i,i,i]", 1, 2, 3);
}
static int not_many(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".steps.turn.result", 0) < 2);
}
static int turn(rv_ctx *c)
{
    (void)step_n(c, 2);
    return rv_return(c, "I", (long long)rv_int(c, ".loop.index", -1));
}
static int parks(rv_ctx *c)
{
    return rv_return_pending(c, "ticket");
}

static rv_workflow *everything(void)
{
    rv_workflow *w = rv_workflow_new("everything");
    rv_body *root = rv_workflow_body(w);
    rv_add_step(root, "first", zero, NULL);
    rv_body *each = rv_add_foreach(root, "each", three_items, RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "work", one, NULL);
    rv_add_delay(each, "pause", 500);
    rv_body *again = rv_add_loop(root, "again", RV_LOOP_OPTS(.while_ = not_many));
    rv_add_step(again, "turn", turn, NULL);
    rv_concurrent *both = rv_add_concurrent(root, "both", NULL);
    rv_concurrent_step(both, "left", one, NULL);
    rv_concurrent_step(both, "right", two, NULL);
    rv_add_step(root, "flaky", fails_twice, RV_STEP_OPTS(.max_attempts = 3));
    rv_add_signal(root, "nod", "go", 0, NULL);
    rv_add_step(root, "parked", parks, NULL);
    return w;
}

/* One run from start to end; its results, to be freed. */
static char *run_everything(struct fixture *fx, uint64_t seed, uint32_t crash_one_in)
{
    open_kit(fx, RV_TEST_OPTS(.seed = seed, .crash_one_in = crash_one_in));
    put(fx, everything());
    order[0] = '\0';
    start(fx, "everything", "e");
    if (rv_signal(fx->engine, "e", "go", "true", &fx->err) < 0)
        fail_msg("seed %llu: signal: %s", (unsigned long long)seed, fx->err.message);
    int rc = RV_ENOTFOUND;
    for (int i = 0; i < 100 && rc == RV_ENOTFOUND; i++) {
        assert_int_equal(rv_test_advance(fx->engine, 1000, &fx->err), 0);
        rc = rv_complete(fx->engine, "e", "ticket", "\"done\"", NULL, &fx->err);
    }
    if (rc < 0)
        fail_msg("seed %llu: complete: %s", (unsigned long long)seed, fx->err.message);
    rv_outcome *outcome = outcome_of(fx, "e", 60000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    char *results = strdup(outcome->results);
    rv_outcome_free(outcome);
    return results;
}

static void the_outcome_is_the_same_however_often_it_dies(void **state)
{
    struct fixture *fx = *state;
    int64_t crashes = 0;
    char *expected = run_everything(fx, 1, 0);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        char *results = run_everything(fx, seed, 2 + (uint32_t)(seed % 5));
        crashes += rv_test_crashes(fx->engine);
        if (strcmp(results, expected) != 0)
            fail_msg("seed %llu:\n%s\n%s", (unsigned long long)seed, results, expected);
        free(results);
    }
    free(expected);
    assert_true(crashes > 1000);
}

static void the_same_seed_does_the_same(void **state)
{
    struct fixture *fx = *state;
    char first[sizeof order];
    bool differs = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        free(run_everything(fx, seed, 3));
        memcpy(first, order, sizeof first);
        free(run_everything(fx, seed, 3));
        assert_string_equal(first, order);
        free(run_everything(fx, seed + 1, 3));
        differs |= strcmp(first, order) != 0;
    }
    assert_true(differs);
}

/* --------------------------------------------------------------------------------- inputs --- */

static int gives_input(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".input"));
}

static rv_workflow *with_schema(void)
{
    rv_workflow *w = rv_workflow_new("strict");
    rv_workflow_input(w, "{\"type\":\"object\",\"required\":[\"tree\"],\"properties\":{\"tree\":{"
                         "\"type\":\"string\"},\"n\":{\"type\":\"integer\",\"maximum\":5},"
                         "\"where\":{\"default\":\"forest\"}}}");
    rv_add_step(rv_workflow_body(w), "echo", gives_input, NULL);
    return w;
}

static void an_input_that_the_schema_refuses_makes_no_run(void **state)
{
    struct fixture *fx = *state;
    rv_violations *bad = NULL;
    rv_run_state *none = NULL;
    open_kit(fx, NULL);
    put(fx, with_schema());
    assert_int_equal(rv_run(fx->engine, "strict", "{\"n\":7}",
                            RV_RUN_OPTS(.run_id = "r", .violations = &bad), NULL, &fx->err),
                     RV_EINVAL);
    assert_non_null(bad);
    assert_int_equal(bad->count, 2);
    assert_string_equal(bad->items[0].path, "/tree");
    assert_string_equal(bad->items[1].path, "/n");
    rv_violations_free(bad);
    assert_int_equal(rv_state(fx->engine, "r", &none, &fx->err), RV_ENOTFOUND);
    assert_int_equal(rv_run(fx->engine, "strict", NULL, NULL, NULL, &fx->err), RV_EINVAL);
}

static void an_input_that_is_not_given_to_a_schema_is_an_object(void **state)
{
    struct fixture *fx = *state;
    const char *const inputs[] = { NULL, "{}", "{ }", NULL };
    rv_workflow *w = rv_workflow_new("lax");
    open_kit(fx, NULL);
    rv_workflow_input(w, "{\"properties\":{\"where\":{\"default\":\"forest\"}}}");
    rv_add_step(rv_workflow_body(w), "echo", gives_input, NULL);
    put(fx, w);
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            rv_run(fx->engine, "lax", inputs[i], RV_RUN_OPTS(.run_id = "r"), NULL, &fx->err), 0);
    assert_int_equal(rv_run(fx->engine, "lax", "null", RV_RUN_OPTS(.run_id = "r"), NULL, &fx->err),
                     RV_EEXIST);
}

static void an_input_gets_its_defaults_and_may_be_given_again_without(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    put(fx, with_schema());
    for (int i = 0; i < 2; i++)
        assert_int_equal(rv_run(fx->engine, "strict", "{\"tree\":\"oak\"}",
                                RV_RUN_OPTS(.run_id = "r"), NULL, &fx->err),
                         0);
    assert_int_equal(rv_run(fx->engine, "strict", "{\"tree\":\"oak\",\"where\":\"forest\"}",
                            RV_RUN_OPTS(.run_id = "r"), NULL, &fx->err),
                     RV_EEXIST); /* what was given counts, not what became of it */
    rv_outcome *outcome = outcome_of(fx, "r", 1000);
    assert_string_equal(
        outcome->results,
        "{\"echo\":{\"result\":{\"tree\":\"oak\",\"where\":\"forest\"},\"state\":{},"
        "\"status\":\"completed\"}}");
    rv_outcome_free(outcome);
}

/* ------------------------------------------------------------------------------- handlers --- */

static char told[4096];

static int tells(rv_ctx *c)
{
    snprintf(told, sizeof told, "%s", rv_json(c, "."));
    return 0;
}
static int fails(rv_ctx *c)
{
    rv_describe(c, "tried");
    return rv_fail(c, "no luck");
}

static void a_handler_is_told_what_failed(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "first", one, NULL);
    rv_add_step(rv_workflow_body(w), "second", fails, NULL);
    rv_workflow_on_error(w, NULL, tells);
    put(fx, w);
    start(fx, "w", "a");
    rv_outcome_free(outcome_of(fx, "a", 1000));
    const char *expected =
        ",\"error\":{\"message\":\"no luck\",\"path\":\"second\"},\"failedStep\":{\"result\":null,"
        "\"state\":{\"description\":\"tried\"},\"alias\":\"second\","
        "\"stepName\":\"second\",\"status\":\"failed\"},\"workflowState\":{"
        "\"input\":null,\"steps\":{\"first\":";
    if (strstr(told, expected) == NULL)
        fail_msg("%s", told);
    assert_non_null(strstr(told, "\"status\":\"failed\",\"runId\":\"a\",\"workflowName\":\"w\"}}"));
}

/* -------------------------------------------------------------------------------- inside --- */

static int starts_another(rv_ctx *c)
{
    rv_error err;
    rv_outcome *outcome = NULL;
    rv_engine *engine = rv_ctx_engine(c);
    if (rv_run(engine, "inner", NULL, RV_RUN_OPTS(.run_id = "inner"), NULL, &err) < 0 ||
        rv_wait(engine, NULL, "inner", NULL, &outcome, &err) < 0)
        return rv_fail(c, "%s", err.message);
    int rc = rv_return_json(c, outcome->results);
    rv_outcome_free(outcome);
    return rc;
}

static void a_step_may_run_another_workflow_and_wait_for_it(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("inner");
    rv_add_step(rv_workflow_body(w), "zero", zero, NULL);
    put(fx, w);
    w = rv_workflow_new("outer");
    rv_add_step(rv_workflow_body(w), "starts", starts_another, NULL);
    put(fx, w);
    start(fx, "outer", "o");
    rv_outcome *outcome = outcome_of(fx, "o", 1000);
    assert_string_equal(outcome->results,
                        "{\"starts\":{\"result\":{\"zero\":{\"result\":0,\"state\":{},\"status\":"
                        "\"completed\"}},\"state\":{},\"status\":\"completed\"}}");
    rv_outcome_free(outcome);
}

static int rambles(rv_ctx *c)
{
    static char text[20001];
    memset(text, 'x', sizeof text - 1);
    return rv_continue(c, "begin %s the end", text);
}

static int looks_on(rv_ctx *c)
{
    return rv_return_bool(c, true);
}

static int looks_back(rv_ctx *c)
{
    const char *message = rv_str(c, ".steps.rambles.error.message");
    if (message == NULL || rv_json(c, ".steps.missing.error") != NULL)
        return rv_fail(c, "there is no message");
    return rv_return(c, "s", message + strlen(message) - 8);
}

/* What a step says of its failure keeps its end, and is there for later ones. */
static void a_long_message_keeps_its_end(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "rambles", rambles, NULL);
    rv_add_step(rv_workflow_body(w), "missing", looks_on, NULL);
    rv_add_step(rv_workflow_body(w), "looksBack", looks_back, NULL);
    put(fx, w);
    start(fx, "w", "a");
    rv_outcome *outcome = outcome_of(fx, "a", 1000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_string_equal(outcome->failed_path, "");
    assert_non_null(strstr(outcome->results, "\"error\":{\"message\":\"…xxx"));
    assert_non_null(strstr(outcome->results, "xxx the end\",\"path\":\"rambles\"}"));
    assert_non_null(strstr(outcome->results, "{\"result\":\" the end\""));
    rv_outcome_free(outcome);
}

static int panics(rv_ctx *c)
{
    (void)c;
    rv_panic("no such thing");
}

static int runs_one(rv_ctx *c)
{
    rv_run_info child;
    rv_outcome *outcome = NULL;
    rv_error err;
    if (rv_run(rv_ctx_engine(c), "child", NULL, NULL, &child, &err) < 0 ||
        rv_wait(rv_ctx_engine(c), NULL, child.run_id, NULL, &outcome, &err) < 0)
        return rv_fail(c, "%s", err.message);
    int status = outcome->status;
    rv_outcome_free(outcome);
    counts[5]++;
    return rv_return(c, "i", status);
}

static void with_one_place_parents_wait_for_children(void **state)
{
    struct fixture *fx = *state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        counts[5] = 0;
        open_kit(fx, RV_TEST_OPTS(.workers = 1, .seed = seed, .crash_one_in = seed % 2 ? 7 : 0));
        rv_workflow *w = rv_workflow_new("child");
        rv_add_step(rv_workflow_body(w), "one", one, NULL);
        put(fx, w);
        w = rv_workflow_new("parent");
        rv_add_step(rv_workflow_body(w), "runs", runs_one, NULL);
        put(fx, w);
        for (int i = 0; i < 5; i++) {
            char id[8];
            snprintf(id, sizeof id, "p%d", i);
            start(fx, "parent", id);
        }
        for (int i = 0; i < 5; i++) {
            char id[8];
            snprintf(id, sizeof id, "p%d", i);
            rv_outcome *outcome = outcome_of(fx, id, 60000);
            if (outcome->status != RV_COMPLETED)
                fail_msg("%s: %s", id, outcome->error);
            rv_outcome_free(outcome);
        }
        assert_true(counts[5] >= 5);
    }
}

static void a_panic_fails_the_step(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "panics", panics, NULL);
    put(fx, w);
    start(fx, "w", "a");
    rv_outcome *outcome = outcome_of(fx, "a", 1000);
    assert_int_equal(outcome->status, RV_FAILED);
    assert_string_equal(outcome->error,
                        "{\"message\":\"panic: no such thing\",\"path\":\"panics\"}");
    rv_outcome_free(outcome);
}

static void a_real_engine_is_refused(void **state)
{
    struct fixture *fx = *state;
    if (rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &fx->engine, &fx->err) < 0)
        fail_msg("cannot open: %s", fx->err.message);
    assert_int_equal(rv_test_advance(fx->engine, 1, &fx->err), RV_EINVAL);
    assert_int_equal(rv_test_crash(fx->engine, &fx->err), RV_EINVAL);
    assert_int_equal(rv_test_replace(fx->engine, "a", zero, &fx->err), RV_EINVAL);
    assert_int_equal(rv_test_engine_new(&(rv_test_opts){ .size = 0 }, &fx->engine, &fx->err),
                     RV_EINVAL);
}

/* Outside of a kit such an answer waits a little; here, no step would run meanwhile. */
static void an_answer_that_no_step_waits_for_is_refused_at_once(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, NULL);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "a", zero, NULL);
    put(fx, w);
    start(fx, "w", "r");
    assert_int_equal(rv_complete(fx->engine, "r", "ticket", NULL, NULL, &fx->err), RV_ENOTFOUND);
    rv_outcome_free(outcome_of(fx, "r", 100));
}

/* ----------------------------------------------------------------------------- places --- */

/* Signals of a person: in time, too late, and too late with nothing assumed. */
static void a_signal_has_its_time(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, RV_TEST_OPTS(.seed = 1));
    rv_workflow *w = rv_workflow_new("asks");
    rv_add_signal(rv_workflow_body(w), "answer", "approval", 60000, "{\"by\":\"nobody\"}");
    put(fx, w);
    w = rv_workflow_new("insists");
    rv_add_signal(rv_workflow_body(w), "answer", "approval", 60000, NULL);
    put(fx, w);
    static const struct {
        const char *workflow;
        int64_t after_ms;
        int status;
        const char *result;
    } rows[] = {
        { "asks", 59999, RV_COMPLETED, "{\"by\":\"kim\"}" },
        { "asks", 60000, RV_COMPLETED, "{\"by\":\"nobody\"}" },
        { "insists", 59999, RV_COMPLETED, "{\"by\":\"kim\"}" },
        { "insists", 60000, RV_FAILED, "null" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char id[8], expected[64];
        snprintf(id, sizeof id, "r%zu", i);
        snprintf(expected, sizeof expected, "\"result\":%s", rows[i].result);
        start(fx, rows[i].workflow, id);
        assert_int_equal(rv_test_advance(fx->engine, rows[i].after_ms, &fx->err), 0);
        int rc = rv_signal(fx->engine, id, "approval", "{\"by\":\"kim\"}", &fx->err);
        assert_int_equal(rc, rows[i].after_ms < 60000 ? RV_OK : RV_ESTATE); /* it has ended */
        rv_outcome *outcome = outcome_of(fx, id, 1000);
        assert_int_equal(outcome->status, rows[i].status);
        if (strstr(outcome->results, expected) == NULL)
            fail_msg("%s: %s", id, outcome->results);
        rv_outcome_free(outcome);
    }
}

static void what_is_detached_gets_its_signal_after_the_end(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, RV_TEST_OPTS(.seed = 1));
    rv_workflow *w = rv_workflow_new("leaves");
    rv_body *later = rv_concurrent_body(
        rv_add_concurrent(rv_workflow_body(w), "later", RV_CONCURRENT_OPTS(.detached = true)),
        "mail");
    rv_add_signal(later, "answer", "approval", 0, NULL);
    rv_add_step(later, "sent", one, NULL);
    put(fx, w);
    start(fx, "leaves", "r");
    rv_outcome *outcome = outcome_of(fx, "r", 1000);
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_test_crash(fx->engine, &fx->err), 0);
    assert_int_equal(rv_signal(fx->engine, "r", "approval", NULL, &fx->err), RV_OK);
    assert_int_equal(rv_test_advance(fx->engine, 1000, &fx->err), 0);
    assert_int_equal(counts[1], 1);
    assert_int_equal(rv_signal(fx->engine, "r", "approval", NULL, &fx->err), RV_ESTATE);
}

/* The block's first child gets a place; then the second, whose signal is there already, completes the
 * block, and the first is cancelled before its work has left the engine. */
static void a_place_for_what_is_cancelled_at_once_comes_back(void **state)
{
    struct fixture *fx = *state;
    open_kit(fx, RV_TEST_OPTS(.workers = 1));
    rv_workflow *w = rv_workflow_new("race");
    rv_add_step(rv_workflow_body(w), "before", zero, NULL);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block",
                                             RV_CONCURRENT_OPTS(.join = 1));
    rv_concurrent_step(block, "slow", one, NULL);
    rv_add_signal(rv_concurrent_body(block, "quick"), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "after", two, NULL);
    put(fx, w);
    start(fx, "race", "r");
    assert_int_equal(rv_signal(fx->engine, "r", "go", NULL, &fx->err), RV_OK);
    int64_t begin = rv_test_now(fx->engine);
    rv_outcome *outcome = outcome_of(fx, "r", 1000);
    assert_int_equal(rv_test_now(fx->engine), begin); /* at once, not when something else happens */
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[2], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wait_skips_the_time_it_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wait_that_is_too_short_times_out_by_the_engines_clock,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_is_replaced_by_its_alias, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_takes_too_long_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_recorded_does_not_run_again_after_a_crash, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(years_pass_in_no_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_outlives_a_crash_and_comes_from_the_seed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_condition_knows_which_iteration_it_is_about, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_outcome_is_the_same_however_often_it_dies, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_same_seed_does_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_may_run_another_workflow_and_wait_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_input_that_the_schema_refuses_makes_no_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_input_that_is_not_given_to_a_schema_is_an_object, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_input_gets_its_defaults_and_may_be_given_again_without,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_handler_is_told_what_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(with_one_place_parents_wait_for_children, setup, teardown),
        cmocka_unit_test_setup_teardown(a_panic_fails_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_message_keeps_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_real_engine_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_no_step_waits_for_is_refused_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_signal_has_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_detached_gets_its_signal_after_the_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_place_for_what_is_cancelled_at_once_comes_back, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("kit", tests, NULL, NULL);
}
