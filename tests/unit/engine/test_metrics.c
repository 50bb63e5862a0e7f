/* test_metrics.c: the figures of an engine. For src/engine/metrics.c. */
#include "unit/engine/rig.h"

static int good(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int pass_over(rv_ctx *c)
{
    return rv_skip(c);
}

static int bad(rv_ctx *c)
{
    return rv_fail(c, "no luck");
}

static int slow(rv_ctx *c)
{
    (void)c;
    usleep(60000);
    return 0;
}

static void read_metrics(struct rig *rig)
{
    char *text = NULL;
    if (rv_metrics(rig->engine, &text, &rig->err) < 0)
        fail_msg("no metrics: %s", rig->err.message);
    rig->len = 0;
    rig_add(rig, "%s", text);
    rv_free(text);
}

static double value(const struct rig *rig, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = rig->text; (at = strstr(at, name)) != NULL; at += len)
        if ((at == rig->text || at[-1] == '\n') && at[len] == ' ')
            return strtod(at + len, NULL);
    fail_msg("no %s in\n%s", name, rig->text);
    return 0;
}

static void is(const struct rig *rig, const char *name, double expected)
{
    double found = value(rig, name);
    if (found != expected)
        fail_msg("%s is %g, not %g", name, found, expected);
}

static void what_happened_is_counted(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    rv_add_step(rv_workflow_body(w), "two", pass_over, NULL);
    rv_add_step(rv_workflow_body(w), "three", slow, NULL);
    rv_add_step(rv_workflow_body(w), "four", bad,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rig_put(rig, w);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        rig_run(rig, "w", id, NULL);
    }
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        assert_int_equal(rig_wait(rig, id), RV_FAILED);
    }
    rig_follow(rig, NULL);
    read_metrics(rig);
    is(rig, "rival_runs_started_total", 3);
    is(rig, "rival_runs_ended_total{status=\"failed\"}", 3);
    is(rig, "rival_runs_ended_total{status=\"completed\"}", 0);
    is(rig, "rival_runs{status=\"failed\"}", 3);
    is(rig, "rival_steps_started_total", 15);
    is(rig, "rival_steps_total{outcome=\"completed\"}", 6);
    is(rig, "rival_steps_total{outcome=\"skipped\"}", 3);
    is(rig, "rival_steps_total{outcome=\"failed\"}", 3);
    is(rig, "rival_steps_total{outcome=\"retrying\"}", 3);
    is(rig, "rival_step_attempts_total{workflow=\"w\",alias=\"one\",outcome=\"completed\"}", 3);
    is(rig, "rival_step_attempts_total{workflow=\"w\",alias=\"two\",outcome=\"skipped\"}", 3);
    is(rig, "rival_step_attempts_total{workflow=\"w\",alias=\"four\",outcome=\"failed\"}", 6);
    is(rig, "rival_step_duration_seconds_count{workflow=\"w\",alias=\"three\"}", 3);
    is(rig, "rival_step_duration_seconds_bucket{workflow=\"w\",alias=\"three\",le=\"0.05\"}", 0);
    is(rig, "rival_step_duration_seconds_bucket{workflow=\"w\",alias=\"three\",le=\"+Inf\"}", 3);
    assert_true(value(rig, "rival_step_duration_seconds_sum{workflow=\"w\",alias=\"three\"}") >=
                0.18);
    is(rig, "rival_step_queue_seconds_count{workflow=\"w\",alias=\"four\"}", 6);
    is(rig, "rival_commit_seconds_count", value(rig, "rival_commits_total"));
    assert_true(value(rig, "rival_commits_total") >= 5);
    assert_true(value(rig, "rival_store_bytes") > 10000);
    assert_true(value(rig, "rival_inbox_letters_total") >= 21);
    is(rig, "rival_workers", 8);
    is(rig, "rival_workers_busy", 0);
    is(rig, "rival_cells", 0);
    is(rig, "rival_feeds", 1);
}

static void a_queue_shows(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, &(rv_engine_opts){ .workers = 1 });
    rv_add_step(rv_workflow_body(w), "slow", slow, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "a", NULL);
    rig_run(rig, "w", "b", NULL);
    rig_wait(rig, "a");
    rig_wait(rig, "b");
    read_metrics(rig);
    assert_true(value(rig, "rival_step_queue_seconds_sum{workflow=\"w\",alias=\"slow\"}") >= 0.03);
}

static void names_are_bounded(void **state)
{
    struct rig *rig = *state;
    enum { STEPS = 600 };
    rv_workflow *w = rv_workflow_new("many");
    rig_open(rig, NULL);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    for (int i = 0; i < STEPS; i++) {
        char alias[12];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_concurrent_step(block, alias, good, RV_STEP_OPTS(.name = "good"));
    }
    rig_put(rig, w);
    rig_run(rig, "many", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    read_metrics(rig);
    is(rig, "rival_steps_total{outcome=\"completed\"}", STEPS);
    is(rig, "rival_step_attempts_total{workflow=\"other\",alias=\"other\",outcome=\"completed\"}",
       STEPS - 499);
    char *text = NULL;
    assert_int_equal(rv_metrics(NULL, &text, &rig->err), RV_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_happened_is_counted),
        RIG_TEST(a_queue_shows),
        RIG_TEST(names_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
