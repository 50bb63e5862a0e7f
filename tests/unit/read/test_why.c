/* test_why.c: why a run does not go on. For src/read/why.c, src/engine/why.c and src/flow/waits.c. */
#include "unit/engine/rig.h"

#include "base/json.h"

static int good(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int bad(rv_ctx *c)
{
    return rv_fail(c, "no luck");
}

static int pending(rv_ctx *c)
{
    return rv_return_pending(c, "parcel-7");
}

static int until_told(rv_ctx *c)
{
    while (!rv_ctx_cancelled(c))
        usleep(200);
    return rv_fail(c, "told to stop");
}

static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]");
}

/* The answer, as "reason step count limit:size paths;" of each group. */
static void why(struct rig *rig, const char *run_id)
{
    char *text = NULL;
    json_error_t at;
    if (rv_why(rig->engine, run_id, &text, &rig->err) < 0)
        fail_msg("no answer: %s", rig->err.message);
    json_t *all = json_loads(text, 0, &at), *group, *node;
    if (all == NULL)
        fail_msg("not JSON: %s in %s", at.text, text);
    size_t i, k;
    json_int_t last = 0;
    rig_add(rig, "%s:", json_string_value(json_object_get(all, "status")));
    json_array_foreach (json_object_get(all, "waits"), i, group) {
        json_int_t since = json_integer_value(json_object_get(group, "since"));
        rig_add(rig, " %s %s x%lld", json_string_value(json_object_get(group, "reason")),
                json_string_value(json_object_get(group, "step")),
                (long long)json_integer_value(json_object_get(group, "count")));
        if (json_object_get(group, "limitSize") != NULL)
            rig_add(rig, " of %lld",
                    (long long)json_integer_value(json_object_get(group, "limitSize")));
        static const char *const texts[] = { "executor", "evaluating", "limit", "name",
                                             "function" };
        for (k = 0; k < 5; k++)
            if (json_object_get(group, texts[k]) != NULL)
                rig_add(rig, " %s", json_string_value(json_object_get(group, texts[k])));
        if (json_object_get(group, "dueAt") != NULL)
            rig_add(rig, " due");
        if (json_object_get(group, "attempt") != NULL)
            rig_add(rig, " #%d", (int)json_integer_value(json_object_get(group, "attempt")));
        node = json_array_get(json_object_get(group, "nodes"), 0);
        rig_add(rig, " at %s;", json_string_value(json_object_get(node, "path")));
        assert_non_null(json_object_get(group, "message"));
        assert_true(json_array_size(json_object_get(group, "nodes")) <= 10);
        assert_true(since > 1000000000000 && since >= last); /* the oldest first */
        last = since;
    }
    json_decref(all);
    rv_free(text);
}

static void until(struct rig *rig, const char *kind, const char *run_id, int times)
{
    rig_follow(rig, RV_FEED_OPTS(.run_id = run_id, .from = RV_FROM_OLDEST));
    for (int i = 0; i < times; i++)
        rig_until(rig, kind, run_id);
    rig->len = 0;
}

static void each_wait_has_its_reason(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    rv_concurrent_step(block, "runs", until_told, NULL);
    rv_concurrent_step(block, "parcel", pending, RV_STEP_OPTS(.timeout_ms = 3600000));
    rv_concurrent_step(block, "again", bad,
                       RV_STEP_OPTS(.max_attempts = 9, .backoff_base_ms = 60000));
    rv_add_delay(rv_concurrent_body(block, "b1"), "nap", 3600000);
    rv_add_signal(rv_concurrent_body(block, "b2"), "go", "start", 0, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    until(rig, "timer.armed", "r", 3);
    why(rig, "r");
    assert_non_null(strstr(rig->text, " running runs x1 thread at block:runs;"));
    assert_non_null(strstr(rig->text, " handle parcel x1 parcel-7 due at block:parcel;"));
    assert_non_null(strstr(rig->text, " retry again x1 due #2 at block:again;"));
    assert_non_null(strstr(rig->text, " timer nap x1 due at block:b1:node0:nap;"));
    assert_non_null(strstr(rig->text, " signal go x1 start at block:b2:node0:go;"));
    rig->len = 0;
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    why(rig, "r");
    rig_saw(rig, "cancelled:");
}

static void limits_are_named(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w"), *v = rv_workflow_new("v");
    rig_open(rig, &(rv_engine_opts){ .workers = 2 });
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = 2));
    rv_add_step(each, "wait", until_told, NULL);
    rv_add_step(rv_workflow_body(v), "one", good, NULL);
    rig_put(rig, w);
    rig_put(rig, v);
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 2);
    why(rig, "r");
    assert_non_null(strstr(rig->text, " concurrency each x18 of 2 at each;"));
    assert_non_null(strstr(rig->text, " running wait x2 thread at each:iter0:node0:wait;"));
    rig->len = 0;
    rig_run(rig, "v", "s", NULL); /* both places are taken */
    why(rig, "s");
    rig_saw(rig, "running: place one x1 of 2 thread workers at one;");
}

static void groups_count_more_than_they_name(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_signal(each, "go", "go", 0, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 20);
    why(rig, "r");
    rig_saw(rig, "running: signal go x20 go at each:iter0:node0:go;");
}

static void register_text(struct rig *rig, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/w.yaml", rig->folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    if (rv_register_file(rig->engine, path, NULL, &rig->err) < 0)
        fail_msg("not registered: %s", rig->err.message);
}

static void commands_run_as_such_and_wait_for_places(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    register_text(rig, "name: w\n"
                       "steps:\n"
                       "  - each:\n"
                       "      forEach: ${ [range(66)] }\n"
                       "      parallel: true\n"
                       "      run: [ { nap: { command: [sleep, '600'], stdin: none } } ]\n");
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 64);
    why(rig, "r");
    assert_non_null(strstr(rig->text, " running nap x64 command at each:iter0:node0:nap;"));
    assert_non_null(strstr(rig->text, " x2 of 64 command io at each"));
}

/* Expressions that never end on the one evaluator: each is stopped after a second, and tried again much
 * later, so that for minutes more of them want a place than there are. */
static void expressions_wait_for_the_evaluator(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    register_text(rig,
                  "name: w\n"
                  "steps:\n"
                  "  - each:\n"
                  "      forEach: ${ [range(600)] }\n"
                  "      parallel: true\n"
                  "      run: [ { spin: { value: '${ last(range(1e15)) }', maxAttempts: 2,\n"
                  "                       backoffBaseMs: 3600000, maxBackoffMs: 3600000 } } ]\n");
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 256);
    why(rig, "r");
    assert_non_null(strstr(rig->text, " evaluator at each:iter"));
    assert_non_null(strstr(rig->text, " of 256 evaluator evaluator at each"));
}

static void functions_that_evaluate_are_told_as_that(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", until_told, NULL);
    rv_add_step(each, "one", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    until(rig, "node.started", "r", 1);
    why(rig, "r");
    rig_saw(rig, "running: running each x1 thread items at each;");
}

static int an_hour(rv_ctx *c)
{
    rv_test_takes(c, 3600000);
    return 0;
}

static void suspects_wait_for_each_other(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    assert_int_equal(rv_test_engine_new(NULL, &rig->engine, &rig->err), RV_OK);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    rv_concurrent_step(block, "a", an_hour, NULL);
    rv_concurrent_step(block, "b", an_hour, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    for (int deaths = 0; deaths < 2; deaths++) {
        assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
        why(rig, "r"); /* after one death both go on */
        rig_saw(rig, "running: running a x1 thread at block:a; running b x1 thread at block:b;");
        assert_int_equal(rv_test_crash(rig->engine, &rig->err), RV_OK);
    }
    assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
    why(rig, "r"); /* both were in flight when the engine died twice: one of them at a time */
    assert_non_null(strstr(rig->text, " running a x1 thread at block:a;"));
    assert_non_null(
        strstr(rig->text, " place b x1 of 1 thread suspects, one at a time at block:b;"));
}

static void a_reader_says_what_it_can_know(void **state)
{
    struct rig *rig = *state;
    rv_engine *writer;
    rig_open(rig, NULL);
    rv_workflow *w = rv_workflow_new("v");
    rv_add_step(rv_workflow_body(w), "f", until_told, NULL);
    rig_put(rig, w);
    register_text(rig, "name: w\nsteps: [ { c: { call: f } } ]\n");
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 1);
    why(rig, "r");
    rig_saw(rig, "running: running c x1 thread at c;");
    writer = rig->engine;
    rig_open(rig, &(rv_engine_opts){ .read_only = true });
    why(rig, "r");
    rig_saw(rig, "running: running c x1 function at c;");
    rig_close(rig);
    rig->engine = writer;
}

static void what_is_missing_is_named(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "two", good, RV_STEP_OPTS(.name = "second"));
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    until(rig, "step.started", "r", 1);
    rv_feed_close(rig->feed);
    rig->feed = NULL;
    rig_close(rig);
    rig_open(rig, NULL); /* nothing is registered yet */
    assert_int_equal(rv_signal(rig->engine, "r", "go", NULL, &rig->err), RV_OK);
    why(rig, "r");
    rig_saw(rig, "running: worker two x1 second at two;");
    w = rv_workflow_new("w");
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rig_put(rig, w); /* that is not it */
    why(rig, "r");
    rig_saw(rig, "running: worker two x1 second at two;");
    rig_close(rig);
    rig_open(rig, NULL);
    w = rv_workflow_new("w");
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "two", good, RV_STEP_OPTS(.name = "second"));
    rig_put(rig, w);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

/* A step that is in flight whenever the engine dies: in the end somebody has to decide. */
static void what_is_to_be_decided(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    assert_int_equal(rv_test_engine_new(RV_TEST_OPTS(.max_crashes = 1), &rig->engine, &rig->err),
                     RV_OK);
    rv_add_step(rv_workflow_body(w), "two", an_hour, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
        assert_int_equal(rv_test_crash(rig->engine, &rig->err), RV_OK);
    }
    assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
    why(rig, "r");
    rig_saw(rig, "suspended: decision two x1 at two;");
}

static void nobody_waits_in_what_is_not_there(void **state)
{
    struct rig *rig = *state;
    char *text = NULL;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rig_wait(rig, "r");
    why(rig, "r");
    rig_saw(rig, "completed:");
    assert_int_equal(rv_why(rig->engine, "nobody", &text, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_why(rig->engine, "a b", &text, &rig->err), RV_EINVAL);
    assert_int_equal(rv_why(NULL, "r", &text, &rig->err), RV_EINVAL);
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(each_wait_has_its_reason),
        RIG_TEST(limits_are_named),
        RIG_TEST(groups_count_more_than_they_name),
        RIG_TEST(commands_run_as_such_and_wait_for_places),
        RIG_TEST(expressions_wait_for_the_evaluator),
        RIG_TEST(functions_that_evaluate_are_told_as_that),
        RIG_TEST(suspects_wait_for_each_other),
        RIG_TEST(a_reader_says_what_it_can_know),
        RIG_TEST(what_is_missing_is_named),
        RIG_TEST(what_is_to_be_decided),
        RIG_TEST(nobody_waits_in_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
