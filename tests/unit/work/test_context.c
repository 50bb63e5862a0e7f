/* test_context.c: what a step sees by path (rv_str and its like) and how it says that it failed, in this
 * process and in a host. For src/work/context.c. */
#include "unit/test.h"

#include <unistd.h>

#include <rival/rival.h>

struct fixture {
    char cache[64];
    rv_engine *engine;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    snprintf(fx->cache, sizeof fx->cache, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(fx->cache) == NULL || setenv("XDG_CACHE_HOME", fx->cache, 1) < 0)
        return -1;
    return rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .hosts = 2), &fx->engine, &fx->err);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->cache);
    int rc = system(command);
    free(fx);
    return rc;
}

static void put_file(struct fixture *fx, bool in_process)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/unit/work/files/paths.c", TESTS);
    if (rv_register_file(fx->engine, path, RV_FILE_OPTS(.in_process = in_process), &fx->err) < 0)
        fail_msg("cannot register: %s", fx->err.message);
}

static rv_outcome *outcome_of(struct fixture *fx, const char *run_id, const char *input)
{
    rv_outcome *outcome = NULL;
    if (rv_run(fx->engine, "paths", input, RV_RUN_OPTS(.run_id = run_id), NULL, &fx->err) < 0 ||
        rv_wait(fx->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 60000), &outcome, &fx->err) <
            0)
        fail_msg("%s", fx->err.message);
    return outcome;
}

/* How many lines of the log have this text. */
static size_t lines_of(struct fixture *fx, const char *run_id, int level, const char *text)
{
    rv_log_list *list = NULL;
    if (rv_logs(fx->engine, run_id, RV_LOG_QUERY(.level = level, .text = text), &list, &fx->err) <
        0)
        fail_msg("%s", fx->err.message);
    size_t count = list->count;
    rv_log_list_free(list);
    return count;
}

static void see_every_path(struct fixture *fx, bool in_process)
{
    put_file(fx, in_process);
    rv_outcome *outcome = outcome_of(fx, "r", "{\"who\":\"world\"}");
    if (outcome->status != RV_COMPLETED)
        fail_msg("%s: %s", outcome->failed_step, outcome->error);
    rv_outcome_free(outcome);
    assert_int_equal(lines_of(fx, "r", RV_INFO, "handled"), 1);
    assert_int_equal(lines_of(fx, "r", RV_WARN, "'.steps.find.result.n' is a number, not a string"),
                     1);
    assert_int_equal(lines_of(fx, "r", RV_WARN,
                              "nothing is at '.steps.find.result.id.deeper': Cannot index string"),
                     1);
    assert_int_equal(lines_of(fx, "r", RV_ERROR, NULL),
                     0); /* what may be there later is no mistake */
}

static void a_step_sees_its_context_by_path(void **state)
{
    see_every_path(*state, true);
}

static void a_step_in_a_host_sees_the_same(void **state)
{
    see_every_path(*state, false);
}

/* Paths that can lead nowhere fail the step, at once, with the reason. */
static const struct {
    const char *path, *why;
} mistakes[] = {
    { "", "it is not a plain path" },
    { "input.who", "it is not a plain path" },
    { ".inptu.who", "there is no 'inptu': did you mean 'input'?; there are input, steps" },
    { ".steps.find.reslt", "there is no 'reslt': did you mean 'result'?" },
    { ".lastStep.item", "there is no 'item'; there are result, state, alias, stepName" },
    { ".loop.itm", "there is no 'itm': did you mean 'item'?" },
    { ".run.runid", "there is no 'runid': did you mean 'runId'?" },
    { ".failedStep.foo", "there is no 'foo'" },
    { ".workflowState.foo", "there is no 'foo'" },
    { ".steps[0]", "nodes are found by name" },
    { ".steps.find[0]", "there is an index where a name should be" },
    { ".steps.find-tree.result", "it is not a plain path" },
    { ".input | keys", "it is not a plain path" },
    { ".input.list[", "a bracket does not close" },
    { ".input}", "it is not a plain path" },
};

static void refuse_mistakes(struct fixture *fx, bool in_process)
{
    put_file(fx, in_process);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char run[16], input[200];
        snprintf(run, sizeof run, "m%zu", i);
        snprintf(input, sizeof input, "{\"who\":\"world\",\"path\":\"%s\"}", mistakes[i].path);
        rv_outcome *outcome = outcome_of(fx, run, input);
        if (outcome->status != RV_FAILED || strstr(outcome->error, mistakes[i].why) == NULL)
            fail_msg("'%s': status %d, %s", mistakes[i].path, outcome->status, outcome->error);
        rv_outcome_free(outcome);
        if (lines_of(fx, run, RV_ERROR, "the path '") != 1) /* once, and not tried again */
            fail_msg("'%s': %zu lines", mistakes[i].path,
                     lines_of(fx, run, RV_ERROR, "the path '"));
    }
}

static void a_path_that_leads_nowhere_fails_the_step(void **state)
{
    refuse_mistakes(*state, true);
}

static void a_path_that_leads_nowhere_fails_a_step_in_a_host(void **state)
{
    refuse_mistakes(*state, false);
}

/* Nodes that a step can never see. */
static const struct {
    const char *path, *why; /* why NULL: it can */
} unseen[] = {
    { ".steps.fnd.result", "there is no node 'fnd'; did you mean 'find'?" },
    { ".steps.later.status", "'later' comes later" },
    { ".steps.wrong", "'wrong' is this node itself" },
    { ".steps.letter.result", "'letter' is inside 'each'" },
    { ".steps.find.result.nobody", NULL },
};

static void tell_unseen(struct fixture *fx, bool in_process)
{
    put_file(fx, in_process);
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++) {
        char run[16], input[200];
        snprintf(run, sizeof run, "u%zu", i);
        snprintf(input, sizeof input, "{\"who\":\"world\",\"path\":\"%s\"}", unseen[i].path);
        rv_outcome *outcome = outcome_of(fx, run, input);
        if (outcome->status != RV_COMPLETED ||
            strstr(outcome->results, "\"wrong\":{\"result\":false") == NULL)
            fail_msg("'%s': %s", unseen[i].path, outcome->error);
        rv_outcome_free(outcome);
        size_t want = unseen[i].why != NULL;
        if (lines_of(fx, run, RV_ERROR, NULL) != want ||
            lines_of(fx, run, RV_ERROR, unseen[i].why) != want)
            fail_msg("'%s': %zu lines", unseen[i].path, lines_of(fx, run, RV_ERROR, NULL));
    }
}

static void a_node_that_cannot_be_seen_is_told_in_the_log(void **state)
{
    tell_unseen(*state, true);
}

static void a_node_that_cannot_be_seen_from_a_host_is_told(void **state)
{
    tell_unseen(*state, false);
}

/* --------------------------------------------------------------------------------- failing --- */

static int tries; /* of the step below */
static const rv_retry_opts *retry;

static int retries(rv_ctx *c)
{
    tries++;
    return rv_retry(c, retry, "attempt %d", rv_ctx_attempt(c));
}

static int stops(rv_ctx *c)
{
    tries++;
    return rv_stop(c, "no use");
}

static int goes_on(rv_ctx *c)
{
    tries++;
    return rv_continue(c, "never mind");
}

static int forgets_size(rv_ctx *c)
{
    static const rv_retry_opts bare = { .max_attempts = 3 };
    tries++;
    return rv_retry(c, &bare, "again");
}

static const struct {
    const char *says;
    rv_step_fn fn;
    int max_attempts; /* of the step */
    rv_retry_opts retry;
    int tries, status;
    const char *error;
} errors[] = {
    { "stop is not tried again", stops, 3, { 0 }, 1, RV_FAILED, "no use" },
    { "continue neither, and the run goes on", goes_on, 3, { 0 }, 1, RV_COMPLETED, "" },
    { "retry up to what the error says",
      retries,
      0,
      { .max_attempts = 4 },
      4,
      RV_FAILED,
      "attempt 4" },
    { "retry up to what the step says",
      retries,
      2,
      { .max_attempts = 4 },
      2,
      RV_FAILED,
      "attempt 2" },
    { "retry as the step says",
      retries,
      3,
      { .backoff = RV_EXPONENTIAL },
      3,
      RV_FAILED,
      "attempt 3" },
    { "retry with nothing said", retries, 0, { .size = 1 }, 1, RV_FAILED, "attempt 1" },
    { "a bad backoff is told", retries, 3, { .backoff = 9 }, 1, RV_FAILED, "backoff 9 cannot be" },
    { "so are options without their macro", forgets_size, 3, { 0 }, 1, RV_FAILED, "RV_RETRY_OPTS" },
};

static void an_error_says_what_to_do(void **state)
{
    struct fixture *fx = *state;
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        rv_retry_opts opts = errors[i].retry;
        rv_outcome *outcome = NULL;
        retry = opts.size == 1 ? NULL : &opts;
        opts.size = sizeof opts;
        tries = 0;
        assert_int_equal(rv_test_engine_new(NULL, &fx->engine, &fx->err), RV_OK);
        rv_workflow *w = rv_workflow_new("w");
        rv_add_step(rv_workflow_body(w), "s", errors[i].fn,
                    RV_STEP_OPTS(.max_attempts = errors[i].max_attempts));
        int rc = rv_register(fx->engine, w, &fx->err);
        rv_workflow_free(w);
        if (rc < 0 ||
            rv_run(fx->engine, "w", NULL, RV_RUN_OPTS(.run_id = "r"), NULL, &fx->err) < 0 ||
            rv_wait(fx->engine, NULL, "r", NULL, &outcome, &fx->err) < 0)
            fail_msg("%s: %s", errors[i].says, fx->err.message);
        if (tries != errors[i].tries || outcome->status != errors[i].status ||
            strstr(outcome->error, errors[i].error) == NULL)
            fail_msg("%s: %d tries, status %d, %s", errors[i].says, tries, outcome->status,
                     outcome->error);
        rv_outcome_free(outcome);
        rv_engine_free(fx->engine);
        fx->engine = NULL;
    }
}

/* ------------------------------------------------------------------------------- no memory --- */

static const char *(*text_of)(rv_ctx *c);

static int reads_without_memory(rv_ctx *c)
{
    enum { ENOUGH_TO_FILL_A_BLOCK = 100000 }; /* of the arena, which may have some room left */
    tries++;
    rv__test_fail_alloc_after(0);
    const char *text = text_of(c);
    for (int i = 0; i < ENOUGH_TO_FILL_A_BLOCK && *text != '\0'; i++)
        text = text_of(c);
    rv__test_fail_alloc_after(-1);
    return rv_return(c, "s", text);
}

/* A step that sent "" as its idempotency key would not be protected by it. */
static void who_it_is_is_never_empty_for_want_of_memory(void **state)
{
    struct fixture *fx = *state;
    static const char *(*const texts[])(rv_ctx *) = { rv_ctx_path, rv_ctx_execution_id,
                                                      rv_ctx_idempotency_key };
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "s", reads_without_memory, NULL);
    int rc = rv_register(fx->engine, w, &fx->err);
    rv_workflow_free(w);
    assert_int_equal(rc, RV_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rv_outcome *outcome = NULL;
        char run[8];
        snprintf(run, sizeof run, "n%zu", i);
        text_of = texts[i];
        if (rv_run(fx->engine, "w", NULL, RV_RUN_OPTS(.run_id = run), NULL, &fx->err) < 0 ||
            rv_wait(fx->engine, NULL, run, NULL, &outcome, &fx->err) < 0)
            fail_msg("%s", fx->err.message);
        if (outcome->status != RV_FAILED || strstr(outcome->error, "out of memory") == NULL)
            fail_msg("text %zu: status %d, %s %s", i, outcome->status, outcome->error,
                     outcome->results);
        rv_outcome_free(outcome);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_sees_its_context_by_path, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_in_a_host_sees_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_leads_nowhere_fails_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_leads_nowhere_fails_a_step_in_a_host, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_cannot_be_seen_is_told_in_the_log, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_that_cannot_be_seen_from_a_host_is_told, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_error_says_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(who_it_is_is_never_empty_for_want_of_memory, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
