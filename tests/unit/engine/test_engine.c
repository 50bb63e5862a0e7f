/* test_engine.c: the public API, on real threads and a real store. For src/engine. */
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rival/rival.h>

struct fixture {
    char folder[64];
    char store[96];
    rv_engine *engine;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    if (fx == NULL || mkdtemp(fx->folder) == NULL)
        return -1;
    snprintf(fx->store, sizeof fx->store, "%s/rival.db", fx->folder);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->folder);
    int rc = system(command);
    free(fx);
    return rc;
}

static void open_engine(struct fixture *fx)
{
    if (rv_engine_new(RV_ENGINE_OPTS(.store = fx->store, .workers = 8), &fx->engine, &fx->err) < 0)
        fail_msg("cannot open: %s", fx->err.message);
}

static void close_engine(struct fixture *fx)
{
    rv_engine_free(fx->engine);
    fx->engine = NULL;
}

static void put(struct fixture *fx, rv_workflow *w)
{
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("cannot register: %s", fx->err.message);
    rv_workflow_free(w);
}

static rv_outcome *outcome_of(struct fixture *fx, const char *run_id)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(fx->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 20000), &outcome, &fx->err) <
        0)
        fail_msg("no outcome: %s", fx->err.message);
    return outcome;
}

static void start(struct fixture *fx, const char *workflow, const char *run_id, const char *input)
{
    if (rv_run(fx->engine, workflow, input, RV_RUN_OPTS(.run_id = run_id), NULL, &fx->err) < 0)
        fail_msg("cannot start: %s", fx->err.message);
}

/* ---------------------------------------------------------------------------------- steps --- */

static int find(rv_ctx *c)
{
    rv_log_info(c, "searching in %s", rv_str(c, ".input.where"));
    return rv_return(c, "{s:s,s:i}", "tree", "oak-123", "branches", 3);
}

static int chop(rv_ctx *c)
{
    rv_describe(c, "chopped %s", rv_str(c, ".steps.find.result.tree"));
    return rv_return(c, "{s:I}", "pieces",
                     (long long)rv_int(c, ".steps.find.result.branches", 0) * 10);
}

static rv_workflow *lumber(void)
{
    rv_workflow *w = rv_workflow_new("lumber");
    rv_add_step(rv_workflow_body(w), "find", find, NULL);
    rv_add_step(rv_workflow_body(w), "chop", chop, RV_STEP_OPTS(.max_attempts = 3));
    return w;
}

static void a_run_goes_from_start_to_end(void **state)
{
    struct fixture *fx = *state;
    rv_run_info info;
    open_engine(fx);
    put(fx, lumber());
    assert_int_equal(rv_run(fx->engine, "lumber", "{\"where\":\"forest\"}", NULL, &info, &fx->err),
                     0);
    assert_int_equal(strlen(info.run_id), 26);
    rv_outcome *outcome = outcome_of(fx, info.run_id);
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_string_equal(
        outcome->results,
        "{\"find\":{\"result\":{\"tree\":\"oak-123\",\"branches\":3},\"state\":{},\"status\":"
        "\"completed\"},\"chop\":{\"result\":{\"pieces\":30},\"state\":{\"description\":"
        "\"chopped oak-123\"},\"status\":\"completed\"}}");
    rv_outcome_free(outcome);
}

static void a_start_may_be_repeated(void **state)
{
    struct fixture *fx = *state;
    rv_run_info info;
    open_engine(fx);
    put(fx, lumber());
    start(fx, "lumber", "today", "{\"where\": \"forest\", \"n\": 1.0}");
    rv_outcome_free(outcome_of(fx, "today"));
    /* the same, written differently; now, and after it has left memory */
    assert_int_equal(rv_run(fx->engine, "lumber", "{\"n\":1,\"where\":\"forest\"}",
                            RV_RUN_OPTS(.run_id = "today"), &info, &fx->err),
                     0);
    assert_int_equal(info.status, RV_COMPLETED);
    assert_int_equal(
        rv_run(fx->engine, "lumber", "{\"n\":2}", RV_RUN_OPTS(.run_id = "today"), &info, &fx->err),
        RV_EEXIST);
    assert_int_equal(rv_run(fx->engine, "nothing", NULL, NULL, &info, &fx->err), RV_ENOTFOUND);
    assert_non_null(strstr(fx->err.message, "lumber"));
    assert_int_equal(rv_run(fx->engine, "lumber", "{bad", NULL, &info, &fx->err), RV_EINVAL);
    assert_int_equal(
        rv_run(fx->engine, "lumber", NULL, RV_RUN_OPTS(.run_id = "a b"), &info, &fx->err),
        RV_EINVAL);
}

static atomic_int calls;

static int fail_twice(rv_ctx *c)
{
    int attempt = rv_ctx_attempt(c);
    atomic_fetch_add(&calls, 1);
    if (attempt < 3)
        return rv_fail(c, "attempt %d failed", attempt);
    return rv_return(c, "i", attempt);
}

static void failures_are_tried_again(void **state)
{
    struct fixture *fx = *state;
    atomic_store(&calls, 0);
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("retry");
    rv_add_step(rv_workflow_body(w), "f", fail_twice,
                RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 1));
    put(fx, w);
    start(fx, "retry", "r", NULL);
    rv_outcome *outcome = outcome_of(fx, "r");
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_int_equal(atomic_load(&calls), 3);
    rv_outcome_free(outcome);
}

static int panicking(rv_ctx *c)
{
    (void)c;
    rv_panic("out of cheese");
}

static void a_panic_fails_its_step(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("panic");
    rv_add_step(rv_workflow_body(w), "p", panicking, NULL);
    put(fx, w);
    start(fx, "panic", "r", NULL);
    rv_outcome *outcome = outcome_of(fx, "r");
    assert_int_equal(outcome->status, RV_FAILED);
    assert_string_equal(outcome->error, "{\"message\":\"panic: out of cheese\",\"path\":\"p\"}");
    assert_string_equal(outcome->failed_step, "p");
    assert_string_equal(outcome->failed_path, "p");
    rv_outcome_free(outcome);
}

static int until_cancelled(rv_ctx *c)
{
    atomic_fetch_add(&calls, 1);
    while (!rv_ctx_cancelled(c))
        usleep(1000);
    return rv_fail(c, "stopped");
}

static void time_outs_and_cancels_reach_the_step(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("slow");
    rv_add_step(rv_workflow_body(w), "s", until_cancelled, RV_STEP_OPTS(.timeout_ms = 50));
    put(fx, w);
    w = rv_workflow_new("endless");
    rv_add_step(rv_workflow_body(w), "s", until_cancelled, NULL);
    put(fx, w);
    atomic_store(&calls, 0);
    start(fx, "slow", "r", NULL);
    rv_outcome *outcome = outcome_of(fx, "r");
    assert_int_equal(outcome->status, RV_FAILED);
    assert_string_equal(
        outcome->error,
        "{\"message\":\"step 's' timed out after 50 ms\",\"code\":\"timeout\",\"path\":\"s\"}");
    rv_outcome_free(outcome);

    start(fx, "endless", "c", NULL);
    while (atomic_load(&calls) < 2)
        usleep(1000);
    assert_int_equal(rv_cancel_run(fx->engine, "c", &fx->err), 0);
    outcome = outcome_of(fx, "c");
    assert_int_equal(outcome->status, RV_CANCELLED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_cancel_run(fx->engine, "c", &fx->err), 0); /* again: nothing */
    assert_int_equal(rv_cancel_run(fx->engine, "d", &fx->err), RV_ENOTFOUND);
}

static void a_delay_outlives_the_engine(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("nap");
    rv_add_delay(rv_workflow_body(w), "rest", 700);
    rv_add_step(rv_workflow_body(w), "find", find, NULL);
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    start(fx, "nap", "r", "{\"where\":\"x\"}");
    close_engine(fx);
    open_engine(fx);
    put(fx, w);
    rv_outcome *outcome = outcome_of(fx, "r");
    assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
}

static int needs_signal_payload(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".lastStep.result.who"));
}

static void signals_and_handles_wake_what_waits(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("approval");
    rv_add_signal(rv_workflow_body(w), "ok", "approve", 0, NULL);
    rv_add_step(rv_workflow_body(w), "who", needs_signal_payload, NULL);
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("%s", fx->err.message);
    start(fx, "approval", "r", NULL);
    rv_outcome *outcome = NULL;
    assert_int_equal(
        rv_wait(fx->engine, "approval", "r", RV_WAIT_OPTS(.timeout_ms = 30), &outcome, &fx->err),
        RV_ETIMEDOUT);
    close_engine(fx);
    open_engine(fx);
    put(fx, w);
    assert_int_equal(rv_signal(fx->engine, "r", "approve", "{\"who\":\"ada\"}", &fx->err), 0);
    outcome = outcome_of(fx, "r");
    assert_non_null(strstr(outcome->results, "\"who\":{\"result\":\"ada\""));
    rv_outcome_free(outcome);
    assert_int_equal(rv_signal(fx->engine, "r", "approve", NULL, &fx->err), RV_ESTATE);
}

static int three_items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3]");
}

static int double_it(rv_ctx *c)
{
    int64_t item = 0;
    const char *json = rv_json(c, ".loop.item");
    if (json != NULL)
        item = strtoll(json, NULL, 10);
    return rv_return(c, "i", (int)item * 2);
}

static int sum(rv_ctx *c)
{
    const char *all = rv_json(c, ".steps.each.result.iterations[2].results.d.result");
    return rv_return_json(c, all);
}

static void a_later_step_sees_iterations_from_the_store(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("fan");
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", three_items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "d", double_it, NULL);
    rv_add_step(rv_workflow_body(w), "sum", sum, NULL);
    put(fx, w);
    start(fx, "fan", "r", NULL);
    rv_outcome *outcome = outcome_of(fx, "r");
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_non_null(strstr(outcome->results, "\"sum\":{\"result\":6"));
    assert_non_null(
        strstr(outcome->results, "{\"item\":2,\"index\":1,\"results\":{\"d\":{\"result\":4"));
    rv_outcome_free(outcome);
}

static void bad_definitions_are_told(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("bad");
    rv_add_step(rv_workflow_body(w), "a", find, NULL);
    rv_add_step(rv_workflow_body(w), "a", find, RV_STEP_OPTS(.timeout_ms = -1));
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "more"));
    rv_workflow_free(w);
    w = rv_workflow_new("bad");
    rv_add_step(rv_workflow_body(w), "a", NULL, NULL);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    rv_workflow_free(w);
    w = rv_workflow_new("bad");
    rv_add_step(rv_workflow_body(w), "a", find, &(rv_step_opts){ .timeout_ms = 5 });
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EINVAL);
    assert_non_null(strstr(fx->err.message, "RV_STEP_OPTS"));
    rv_workflow_free(w);
    put(fx, lumber());
    w = lumber(); /* the same again is the name again */
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EEXIST);
    assert_non_null(strstr(fx->err.message, "already registered"));
    assert_null(strstr(fx->err.message, "another definition"));
    rv_workflow_free(w);
    w = rv_workflow_new("lumber");
    rv_add_step(rv_workflow_body(w), "other", find, NULL);
    assert_int_equal(rv_register(fx->engine, w, &fx->err), RV_EEXIST);
    assert_non_null(strstr(fx->err.message, "already registered, with another definition"));
    rv_workflow_free(w);
}

static void runs_are_listed_newest_first(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    put(fx, lumber());
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "run-%d", i);
        start(fx, "lumber", id, "{\"where\":\"x\"}");
        rv_outcome_free(outcome_of(fx, id));
        usleep(2000);
    }
    rv_run_list *list = NULL;
    assert_int_equal(rv_list(fx->engine, RV_QUERY(.limit = 3), &list, &fx->err), 0);
    assert_int_equal(list->count, 3);
    assert_string_equal(list->runs[0].run_id, "run-4");
    assert_int_equal(list->runs[0].status, RV_COMPLETED);
    assert_string_equal(list->runs[0].workflow, "lumber");
    char cursor[256];
    snprintf(cursor, sizeof cursor, "%s", list->next);
    rv_run_list_free(list);
    assert_int_equal(rv_list(fx->engine, RV_QUERY(.limit = 3, .cursor = cursor), &list, &fx->err),
                     0);
    assert_int_equal(list->count, 2);
    assert_string_equal(list->runs[1].run_id, "run-0");
    rv_run_list_free(list);

    rv_run_state *run = NULL;
    assert_int_equal(rv_state(fx->engine, "run-2", &run, &fx->err), 0);
    assert_string_equal(run->input, "{\"where\":\"x\"}");
    assert_non_null(strstr(run->results, "oak-123"));
    rv_run_state_free(run);
}

static pthread_barrier_t gave_it_away;

static int gives_it_away_first(rv_ctx *c)
{
    pthread_barrier_wait(&gave_it_away); /* the other one may answer from here on */
    pthread_barrier_wait(&gave_it_away); /* it is about to */
    return rv_return_pending(c, "quick");
}

static void *answers_at_once(void *arg)
{
    struct fixture *fx = arg;
    pthread_barrier_wait(&gave_it_away);
    pthread_barrier_wait(&gave_it_away);
    return (void *)(intptr_t)rv_complete(fx->engine, "q", "quick", "5", NULL, &fx->err);
}

static void an_answer_may_be_quicker_than_its_handle(void **state)
{
    struct fixture *fx = *state;
    pthread_t thread;
    void *rc;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("quick");
    rv_add_step(rv_workflow_body(w), "parks", gives_it_away_first, NULL);
    put(fx, w);
    pthread_barrier_init(&gave_it_away, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, answers_at_once, fx), 0);
    start(fx, "quick", "q", NULL);
    pthread_join(thread, &rc);
    assert_int_equal((intptr_t)rc, 0);
    rv_outcome *outcome = outcome_of(fx, "q");
    assert_string_equal(outcome->results,
                        "{\"parks\":{\"result\":5,\"state\":{},\"status\":\"completed\"}}");
    rv_outcome_free(outcome);
    pthread_barrier_destroy(&gave_it_away);
}

static int waits_to_be_let_go(rv_ctx *c)
{
    (void)c;
    pthread_barrier_wait(&gave_it_away);
    return 0;
}

static void an_answer_to_nobodys_handle_is_refused_while_steps_run(void **state)
{
    struct fixture *fx = *state;
    open_engine(fx);
    rv_workflow *w = rv_workflow_new("busy");
    rv_add_step(rv_workflow_body(w), "waits", waits_to_be_let_go, NULL);
    put(fx, w);
    pthread_barrier_init(&gave_it_away, NULL, 2);
    start(fx, "busy", "b", NULL);
    int rc = rv_complete(fx->engine, "b", "nobodys", NULL, NULL, &fx->err);
    pthread_barrier_wait(&gave_it_away);
    rv_outcome_free(outcome_of(fx, "b"));
    pthread_barrier_destroy(&gave_it_away);
    assert_int_equal(rc, RV_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_to_nobodys_handle_is_refused_while_steps_run,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_may_be_quicker_than_its_handle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_goes_from_start_to_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_may_be_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_are_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_panic_fails_its_step, setup, teardown),
        cmocka_unit_test_setup_teardown(time_outs_and_cancels_reach_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_delay_outlives_the_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(signals_and_handles_wake_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_later_step_sees_iterations_from_the_store, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bad_definitions_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_are_listed_newest_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
