/* test_nomem.c: an engine that is short of memory. A call says so, or does what it was asked for; a run
 * may be late, but is never lost nor wrong; and nothing leaks. For src/engine. */
#include "unit/test.h"

#include <rival/rival.h>

struct fixture {
    char folder[64];
    char file[96];
    rv_engine *engine;
    rv_error err;
    int made; /* runs so far */
    char run_id[32];
};

static const char every_kind_of_expression[] =
    "name: filed\n"
    "input: { type: object, properties: { n: { type: integer, default: 3 } } }\n"
    "steps:\n"
    "  - a: { value: '${ .input.n + 1 }', description: 'got ${ .result }' }\n"
    "  - each: { forEach: '${ [range(.input.n)] }', run: [ { s: { value: '${ .loop.item * 2 }' } } "
    "],"
    " parallel: true }\n"
    "  - b: { if: '${ .steps.a.result > 3 }', then: [ { t: { value: yes } } ], else: [] }\n"
    "  - d: { delay: '${ 50 * .input.n }' }\n"
    "  - k: { signal: { name: '${ \"go\" }', timeout: 5s, default: 1 } }\n"
    "  - w: { value: never, when: '${ false }' }\n";

/* ------------------------------------------------------------------------------- workflows --- */

static int two(rv_ctx *c)
{
    rv_describe(c, "the step of %s", rv_ctx_run_id(c));
    rv_set_state(c, "seen", "[1,2]");
    rv_log_info(c, "line %d", 1);
    rv_log(c, RV_WARN, "{\"a\":1}", "line %d", 2);
    return rv_return(c, "{s:i}", "two", 2);
}
static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3,4,5,6,7,8,9]");
}
static int item(rv_ctx *c)
{
    rv_log_debug(c, "item");
    return rv_return(c, "i", (int)rv_int(c, ".loop.index", -1) * 10);
}
static int yes(rv_ctx *c)
{
    return rv_return_bool(c, true);
}
static int no(rv_ctx *c)
{
    return rv_return_bool(c, false);
}
static int thrice(rv_ctx *c)
{
    return rv_return_bool(c, rv_int(c, ".steps.round.result", 0) >= 20);
}
static int second_time(rv_ctx *c)
{
    return rv_ctx_attempt(c) < 2 ? rv_fail(c, "not yet") : rv_return(c, "s", "at last");
}
static int goes_on(rv_ctx *c)
{
    return rv_continue(c, "no matter");
}
static int handler(rv_ctx *c)
{
    return rv_return(c, "s", "handled");
}
static int parked(rv_ctx *c)
{
    return rv_return_pending(c, "hand");
}
static int waits_for_me(rv_ctx *c)
{
    rv_test_takes(c, 20);
    return rv_return(c, "s", "slow");
}

/* Every kind of node. NULL: no memory. */
static rv_workflow *all_kinds(const char *name)
{
    rv_workflow *w = rv_workflow_new(name);
    if (w == NULL)
        return NULL;
    rv_workflow_describe(w, "all kinds of nodes");
    rv_workflow_input(w, "{\"type\":\"object\",\"properties\":{\"x\":{\"default\":7}}}");
    rv_workflow_on_error(w, "handler", handler);
    rv_body *top = rv_workflow_body(w);
    rv_add_step(top, "first", two, RV_STEP_OPTS(.on_error = handler, .timeout_ms = 100000));
    rv_add_step(top, "skipped", two, RV_STEP_OPTS(.when = no));
    rv_add_step(top, "again", second_time, RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 40));
    rv_add_step(top, "anyway", goes_on, RV_STEP_OPTS(.on_error = handler));
    rv_add_delay(top, "rest", 3000);
    rv_add_signal(top, "call", "go", 0, NULL);
    rv_add_signal(top, "silence", "never", 700, "\"quiet\"");
    rv_add_step(top, "parked", parked, NULL);
    rv_branch_bodies paths = rv_add_branch(top, "fork", yes, "yes");
    rv_add_step(paths.then, "left", two, NULL);
    rv_add_step(paths.otherwise, "right", two, NULL);
    rv_body *loop = rv_add_loop(top, "loop", RV_LOOP_OPTS(.until = thrice));
    rv_add_step(loop, "round", item, NULL);
    rv_body *each = rv_add_foreach(top, "each", items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = 4));
    rv_add_step(each, "one", item, NULL);
    rv_concurrent *both = rv_add_concurrent(top, "both", NULL);
    rv_concurrent_step(both, "slow", waits_for_me, NULL);
    rv_body *side = rv_concurrent_body(both, "side");
    rv_add_step(side, "quick", two, NULL);
    rv_add_workflow(top, "inner", "small");
    return w;
}

static rv_workflow *small(void)
{
    rv_workflow *w = rv_workflow_new("small");
    if (w != NULL)
        rv_add_step(rv_workflow_body(w), "two", two, NULL);
    return w;
}

static rv_workflow *waiting(void)
{
    rv_workflow *w = rv_workflow_new("waiting");
    if (w != NULL) {
        rv_add_signal(rv_workflow_body(w), "s", "go", 0, NULL);
        rv_add_step(rv_workflow_body(w), "p", parked, NULL);
    }
    return w;
}

static void put(struct fixture *fx, rv_workflow *w)
{
    if (rv_register(fx->engine, w, &fx->err) < 0)
        fail_msg("cannot register: %s", fx->err.message);
    rv_workflow_free(w);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    if (fx == NULL)
        return -1;
    *state = fx;
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(fx->folder) == NULL)
        return -1;
    snprintf(fx->file, sizeof fx->file, "%s/filed.yaml", fx->folder);
    FILE *file = fopen(fx->file, "w");
    if (file == NULL)
        return -1;
    fputs(every_kind_of_expression, file);
    return fclose(file);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[200];
    rv__test_fail_alloc_after(-1);
    rv_engine_free(fx->engine);
    snprintf(command, sizeof command, "rm -rf '%s'", fx->folder);
    int rc = system(command);
    free(fx);
    return rc;
}

static void open_kit(struct fixture *fx, uint64_t seed)
{
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    if (rv_test_engine_new(RV_TEST_OPTS(.seed = seed), &fx->engine, &fx->err) < 0)
        fail_msg("cannot open: %s", fx->err.message);
    put(fx, small());
    put(fx, waiting());
    put(fx, all_kinds("all"));
    assert_int_equal(rv_register_file(fx->engine, fx->file, NULL, &fx->err), 1);
}

/* A name that no run has yet. */
static const char *fresh(struct fixture *fx)
{
    snprintf(fx->run_id, sizeof fx->run_id, "run-%d", fx->made++);
    return fx->run_id;
}

static void start(struct fixture *fx, const char *workflow)
{
    if (rv_run(fx->engine, workflow, "{}", RV_RUN_OPTS(.run_id = fresh(fx)), NULL, &fx->err) < 0)
        fail_msg("cannot start: %s", fx->err.message);
}

/* The engine works: a run goes to its end, with the right result. */
static void works(struct fixture *fx)
{
    rv_outcome *outcome = NULL;
    start(fx, "small");
    if (rv_wait(fx->engine, "small", fx->run_id, NULL, &outcome, &fx->err) < 0)
        fail_msg("%s: %s", fx->run_id, fx->err.message);
    assert_int_equal(outcome->status, RV_COMPLETED);
    assert_non_null(strstr(outcome->results, "{\"two\":2}"));
    rv_outcome_free(outcome);
}

/* -------------------------------------------------------------------------------- the calls --- */

static int call_register(struct fixture *fx)
{
    char name[32];
    snprintf(name, sizeof name, "all-%d", fx->made++);
    rv_workflow *w = all_kinds(name);
    if (w == NULL)
        return RV_ENOMEM;
    int rc = rv_register(fx->engine, w, &fx->err);
    rv_workflow_free(w);
    return rc;
}

static int call_register_file(struct fixture *fx)
{
    rv_report *report = NULL;
    int rc = rv_register_file(fx->engine, fx->file, RV_FILE_OPTS(.replace = true), &fx->err);
    if (rc >= 0)
        rc = rv_register_dir(fx->engine, fx->folder,
                             RV_FILE_OPTS(.replace = true, .report = &report), &fx->err);
    rv_report_free(report);
    return rc;
}

static int call_check_files(struct fixture *fx)
{
    const char *path = fx->folder, *text;
    rv_report *report = NULL;
    int rc = rv_check_files(&path, 1, NULL, &report, &fx->err);
    for (int format = RV_PLAN_JSON; format <= RV_PLAN_MERMAID && rc >= 0; format++)
        rc = rv_report_plan(report, 0, format, &text, &fx->err);
    rv_report_free(report);
    return rc;
}

static int call_workflows(struct fixture *fx)
{
    rv_workflow_list *list = NULL;
    int rc = rv_workflows(fx->engine, &list, &fx->err);
    if (rc == RV_OK)
        assert_true(list->count >= 4);
    rv_workflow_list_free(list);
    return rc;
}

static int call_run(struct fixture *fx)
{
    return rv_run(fx->engine, "all", "{\"n\":[1,2]}", RV_RUN_OPTS(.run_id = fresh(fx)), NULL,
                  &fx->err);
}

static int call_run_without_id(struct fixture *fx)
{
    return rv_run(fx->engine, "filed", "{\"n\":2}", NULL, NULL, &fx->err);
}

static int call_run_refused(struct fixture *fx)
{
    rv_violations *bad = NULL;
    int rc = rv_run(fx->engine, "filed", "{\"n\":\"x\"}",
                    RV_RUN_OPTS(.run_id = fresh(fx), .violations = &bad), NULL, &fx->err);
    if (rc == RV_EINVAL) {
        assert_int_equal(bad->count, 1);
        rc = RV_OK; /* as it should be */
    }
    rv_violations_free(bad);
    return rc;
}

static int call_wait(struct fixture *fx)
{
    rv_outcome *outcome = NULL;
    int rc = rv_wait(fx->engine, NULL, fx->run_id, NULL, &outcome, &fx->err);
    if (rc == RV_OK)
        assert_int_equal(outcome->status, RV_COMPLETED);
    rv_outcome_free(outcome);
    return rc;
}

static int call_state(struct fixture *fx)
{
    rv_run_state *now = NULL;
    int rc = rv_state(fx->engine, "shown", &now, &fx->err);
    if (rc == RV_OK)
        assert_string_equal(now->input, "{\"x\":7}");
    rv_run_state_free(now);
    return rc;
}

static int call_list(struct fixture *fx)
{
    rv_run_list *list = NULL;
    int rc = rv_list(fx->engine, RV_QUERY(.workflow = "all", .text = "show", .limit = 1), &list,
                     &fx->err);
    if (rc == RV_OK) {
        assert_int_equal(list->count, 1);
        assert_string_equal(list->runs[0].run_id, "shown");
    }
    rv_run_list_free(list);
    return rc;
}

static int call_nodes(struct fixture *fx)
{
    rv_node_list *nodes = NULL;
    int rc = rv_nodes(fx->engine, "shown", NULL, &nodes, &fx->err);
    if (rc == RV_OK)
        assert_string_equal(nodes->nodes[0].status, "completed");
    rv_node_list_free(nodes);
    return rc;
}

static int call_logs(struct fixture *fx)
{
    rv_log_list *logs = NULL;
    int rc = rv_logs(fx->engine, "shown", NULL, &logs, &fx->err);
    if (rc == RV_OK)
        assert_int_equal(logs->count, 2);
    rv_log_list_free(logs);
    return rc;
}

static int call_why(struct fixture *fx)
{
    char *why = NULL;
    int rc = rv_why(fx->engine, "shown", &why, &fx->err);
    if (rc == RV_OK)
        assert_non_null(strstr(why, "\"reason\":\"signal\""));
    rv_free(why);
    return rc;
}

static int call_metrics(struct fixture *fx)
{
    char *text = NULL;
    int rc = rv_metrics(fx->engine, &text, &fx->err);
    rv_free(text);
    return rc;
}

static int call_feed(struct fixture *fx)
{
    rv_feed *feed = NULL;
    rv_event event;
    int rc = rv_feed_open(fx->engine, RV_FEED_OPTS(.run_id = "shown", .from = RV_FROM_OLDEST),
                          &feed, &fx->err);
    for (int i = 0; i < 6 && rc == RV_OK; i++)
        rc = rv_feed_next(feed, 0, NULL, &event, &fx->err);
    rv_feed_close(feed);
    return rc;
}

static int call_signal(struct fixture *fx)
{
    return rv_signal(fx->engine, fx->run_id, "go", "{\"a\":[1]}", &fx->err);
}

static int call_complete(struct fixture *fx)
{
    int rc = rv_complete(fx->engine, "parked", "hand", NULL, "it went wrong", &fx->err);
    if (rc == RV_ENOTFOUND) /* a first answer was taken */
        rc = RV_OK;
    return rc;
}

static int call_decide(struct fixture *fx)
{
    int rc = rv_decide(fx->engine, "shown", RV_ABORT, RV_DECIDE_OPTS(.reason = "enough"), &fx->err);
    return rc == RV_ESTATE ? RV_OK : rc; /* it is not suspended */
}

static int call_cancel(struct fixture *fx)
{
    return rv_cancel_run(fx->engine, fx->run_id, &fx->err);
}

static int call_retain(struct fixture *fx)
{
    return rv_retain(fx->engine, RV_RETAIN_OPTS(.max_runs = 1), NULL, &fx->err);
}

static int call_instance(struct fixture *fx)
{
    rv_run_state *now = NULL;
    rv_instance *instance = rv_instance_new(fx->engine, "small", fresh(fx));
    if (instance == NULL)
        return RV_ENOMEM;
    int rc = rv_instance_run(instance, "1", NULL, &fx->err);
    if (rc == RV_OK)
        rc = rv_instance_state(instance, &now, &fx->err);
    if (rc == RV_OK)
        rc = rv_instance_cancel(instance, &fx->err);
    rv_run_state_free(now);
    rv_instance_free(instance);
    return rc;
}

static int call_replace(struct fixture *fx)
{
    return rv_test_replace(fx->engine, fresh(fx), two, &fx->err);
}

static int call_crash(struct fixture *fx)
{
    return rv_test_crash(fx->engine, &fx->err);
}

static int call_advance(struct fixture *fx)
{
    return rv_test_advance(fx->engine, 10, &fx->err);
}

static const struct {
    const char *says;
    int (*make)(struct fixture *fx);
    const char *on; /* a new run of this workflow */
} calls[] = {
    { "rv_register", call_register },
    { "rv_register_file", call_register_file },
    { "rv_check_files", call_check_files },
    { "rv_workflows", call_workflows },
    { "rv_run", call_run },
    { "rv_run without an id", call_run_without_id },
    { "rv_run of what is refused", call_run_refused },
    { "rv_wait", call_wait, "small" },
    { "rv_state", call_state },
    { "rv_list", call_list },
    { "rv_nodes", call_nodes },
    { "rv_logs", call_logs },
    { "rv_why", call_why },
    { "rv_metrics", call_metrics },
    { "rv_feed", call_feed },
    { "rv_signal", call_signal, "waiting" },
    { "rv_complete", call_complete },
    { "rv_decide", call_decide },
    { "rv_cancel_run", call_cancel, "all" },
    { "rv_instance", call_instance },
    { "rv_test_replace", call_replace },
    { "rv_test_crash", call_crash },
    { "rv_test_advance", call_advance },
    { "rv_retain", call_retain },
};

/* `count` allocations fail, the first of them after n others. True: none did. */
static bool once(struct fixture *fx, size_t i, long n, long count)
{
    if (calls[i].on != NULL)
        start(fx, calls[i].on);
    rv__test_fail_allocs(n, count);
    int rc = calls[i].make(fx);
    bool unharmed = !rv__test_alloc_failed();
    rv__test_fail_alloc_after(-1);
    if (rc < 0 && (rc != RV_ENOMEM || unharmed))
        fail_msg("%s, allocation %ld: %d: %s", calls[i].says, n, rc, fx->err.message);
    return unharmed;
}

static void every_call_says_so_or_works(void **state)
{
    struct fixture *fx = *state;
    static const long counts[] = { 1, 5 };
    open_kit(fx, 1);
    assert_int_equal(
        rv_run(fx->engine, "all", "{}", RV_RUN_OPTS(.run_id = "shown"), NULL, &fx->err), 0);
    assert_int_equal(
        rv_run(fx->engine, "waiting", "{}", RV_RUN_OPTS(.run_id = "parked"), NULL, &fx->err), 0);
    assert_int_equal(rv_signal(fx->engine, "parked", "go", NULL, &fx->err), 0);
    assert_int_equal(rv_test_advance(fx->engine, 10000, &fx->err), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            for (long n = 0; !once(fx, i, n, counts[k]); n++)
                if (n % 8 == 0)
                    works(fx);
    works(fx);
    assert_int_equal(rv_signal(fx->engine, "shown", "go", NULL, &fx->err), 0);
}

/* Opened with the n-th allocation failing, and all after it. */
static void an_engine_opens_or_says_so(void **state)
{
    struct fixture *fx = *state;
    char store[100];
    int rc;
    TORTURE(rc, rv_test_engine_new(RV_TEST_OPTS(.seed = 3), &fx->engine, &fx->err), (void)0);
    assert_int_equal(rc, RV_OK);
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    snprintf(store, sizeof store, "%s/rival.db", fx->folder);
    rc = rv_engine_new(RV_ENGINE_OPTS(.store = store, .workers = 2), &fx->engine, &fx->err);
    assert_int_equal(rc, RV_OK);
    put(fx, waiting());
    start(fx, "waiting"); /* something to recover */
    rv_engine_free(fx->engine);
    fx->engine = NULL;
    TORTURE(rc, rv_engine_new(RV_ENGINE_OPTS(.store = store, .workers = 2), &fx->engine, &fx->err),
            (void)0);
    assert_int_equal(rc, RV_OK);
    put(fx, waiting());
    put(fx, small());
    works(fx);
}

/* On a real engine only the caller's thread is short of memory: its side of each call. */
static void the_callers_side_of_a_real_engine_says_so_too(void **state)
{
    struct fixture *fx = *state;
    static int (*const sides[])(struct fixture *) = { call_run,     call_wait,   call_state,
                                                      call_list,    call_logs,   call_nodes,
                                                      call_metrics, call_signal, call_feed };
    fx->engine = NULL;
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .workers = 4), &fx->engine, &fx->err), 0);
    put(fx, small());
    put(fx, waiting());
    put(fx, all_kinds("all"));
    rv_feed *feed = NULL;
    rv_event event = { .kind = "" };
    assert_int_equal(rv_feed_open(fx->engine, NULL, &feed, &fx->err), 0);
    assert_int_equal(
        rv_run(fx->engine, "all", "{}", RV_RUN_OPTS(.run_id = "shown"), NULL, &fx->err), 0);
    while (strcmp(event.kind, "timer.armed") != 0 || strcmp(event.path, "rest") != 0)
        if (rv_feed_next(feed, 20000, NULL, &event, &fx->err) < 0)
            fail_msg("%s", fx->err.message);
    rv_feed_close(feed);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        bool unharmed = false;
        for (long n = 0; !unharmed; n++) {
            start(fx, sides[i] == call_signal ? "waiting" : "small");
            rv__test_fail_allocs(n, 3);
            int rc = sides[i](fx);
            unharmed = !rv__test_alloc_failed();
            rv__test_fail_alloc_after(-1);
            if (rc < 0 && (rc != RV_ENOMEM || unharmed))
                fail_msg("side %zu, allocation %ld: %d: %s", i, n, rc, fx->err.message);
        }
        works(fx);
    }
}

/* --------------------------------------------------------------------------- whole runs --- */

/* Its results at the end, with one allocation in `one_in` failing while the engine works. */
static char *whole_run(struct fixture *fx, const char *workflow, uint64_t seed, unsigned one_in)
{
    rv_outcome *outcome = NULL;
    bool signalled = false, completed = false;
    int rc;
    open_kit(fx, seed);
    rv__test_fail_one_alloc_in(one_in, seed);
    do
        rc = rv_run(fx->engine, workflow, "{}", RV_RUN_OPTS(.run_id = "whole"), NULL, &fx->err);
    while (rc == RV_ENOMEM);
    assert_int_equal(rc, RV_OK);
    for (int i = 0; i < 4000 && outcome == NULL; i++) {
        rc = rv_wait(fx->engine, NULL, "whole", RV_WAIT_OPTS(.timeout_ms = 100), &outcome,
                     &fx->err);
        if (rc < 0 && rc != RV_ENOMEM && rc != RV_ETIMEDOUT)
            fail_msg("seed %llu: %s", (unsigned long long)seed, fx->err.message);
        if (!signalled && i >= 2)
            signalled = rv_signal(fx->engine, "whole", "go", "\"went\"", &fx->err) == RV_OK;
        if (!completed)
            completed = rv_complete(fx->engine, "whole", "hand", "\"done\"", NULL, &fx->err) ==
                        RV_OK;
    }
    rv__test_fail_alloc_after(-1);
    if (outcome == NULL) {
        char *why = NULL;
        (void)rv_why(fx->engine, "whole", &why, NULL);
        fail_msg("seed %llu: it never ended: %s", (unsigned long long)seed, why ? why : "");
    }
    assert_int_equal(outcome->status, RV_COMPLETED);
    char *results = strdup(outcome->results);
    rv_outcome_free(outcome);
    return results;
}

/* Times differ: the delays take longer. */
static void without_times(char *text)
{
    static const char *const keys[] = { "\"delayedMs\":", "\"startedAt\":", "\"endedAt\":" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (char *at = strstr(text, keys[i]); at != NULL; at = strstr(at + 1, keys[i])) {
            char *from = at + strlen(keys[i]);
            size_t digits = strspn(from, "\"0123456789-T:.Z");
            memmove(from, from + digits, strlen(from + digits) + 1);
        }
}

static void as_without_failures(struct fixture *fx, const char *workflow, uint64_t seeds)
{
    char *expected = whole_run(fx, workflow, 1, 0);
    without_times(expected);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        char *results = whole_run(fx, workflow, seed, 30 + (unsigned)(seed * seed) % 170);
        without_times(results);
        bool same = strcmp(results, expected) == 0;
        free(results);
        works(fx);
        if (!same) {
            free(expected);
            fail_msg("seed %llu: other results", (unsigned long long)seed);
        }
        rv_log_list *logs = NULL;
        assert_int_equal(rv_logs(fx->engine, "whole", NULL, &logs, &fx->err), 0);
        size_t lines = logs->count;
        rv_log_list_free(logs);
        if (strcmp(workflow, "all") == 0)
            assert_int_equal(lines, 4 * 2 + 3 + 9); /* of those that say something */
    }
    free(expected);
}

static void a_run_of_every_kind_of_node_is_late_but_right(void **state)
{
    as_without_failures(*state, "all", 40);
}

static void a_run_of_expressions_is_late_but_right(void **state)
{
    as_without_failures(*state, "filed", 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_engine_opens_or_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(every_call_says_so_or_works, setup, teardown),
        cmocka_unit_test_setup_teardown(the_callers_side_of_a_real_engine_says_so_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_of_every_kind_of_node_is_late_but_right, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_run_of_expressions_is_late_but_right, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
