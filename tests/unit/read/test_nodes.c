/* test_nodes.c: the tree of a run, and how its nodes fared. For src/read/nodes.c, node.c,
 * trace.c and detail.c. */
#include "unit/engine/rig.h"

#include "define/workflow.h"

static int good(rv_ctx *c)
{
    rv_describe(c, "done by %s", rv_ctx_step(c));
    return 0;
}

static int bad(rv_ctx *c)
{
    return rv_fail(c, "no luck in attempt %d", rv_ctx_attempt(c));
}

static int second_time(rv_ctx *c)
{
    return rv_ctx_attempt(c) < 2 ? rv_fail(c, "not yet") : 0;
}

static int until_told(rv_ctx *c)
{
    while (!rv_ctx_cancelled(c))
        usleep(200);
    return rv_fail(c, "told to stop");
}

static int items(rv_ctx *c)
{
    const char *n = rv_json(c, ".input.n");
    long count = n != NULL ? strtol(n, NULL, 10) : 3;
    char *json = malloc((size_t)count * 8 + 3), *at = json;
    *at++ = '[';
    for (long i = 0; i < count; i++)
        at += snprintf(at, 8, "%s%ld", i ? "," : "", i);
    *at++ = ']';
    *at = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static int no(rv_ctx *c)
{
    return rv_return_bool(c, false);
}

static void list(struct rig *rig, const char *run_id, const char *parent, size_t offset,
                 size_t limit)
{
    rv_node_list *nodes = NULL;
    if (rv_nodes(rig->engine, run_id,
                 RV_NODE_QUERY(.parent = parent, .offset = offset, .limit = limit), &nodes,
                 &rig->err) < 0)
        fail_msg("no nodes below '%s': %s", parent ? parent : "", rig->err.message);
    for (size_t i = 0; i < nodes->count; i++) {
        const rv_node *n = &nodes->nodes[i];
        rig_add(rig, "%s=%s %s", n->path, n->kind, n->status);
        if (n->attempt > 1)
            rig_add(rig, " #%d", n->attempt);
        if (n->children > 0)
            rig_add(rig, " (%zu)", n->children);
        rig_add(rig, ";");
        assert_true(n->completed_at == 0 || n->duration_ms >= 0);
    }
    rig_add(rig, "%zu", nodes->total);
    rv_node_list_free(nodes);
}

/* Everything there is. */
static rv_workflow *zoo(void)
{
    rv_workflow *w = rv_workflow_new("zoo");
    rv_body *top = rv_workflow_body(w);
    rv_add_step(top, "again", second_time, RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 1));
    rv_body *each = rv_add_foreach(top, "each", items, RV_FOREACH_OPTS(.parallel = true));
    rv_branch_bodies branch = rv_add_branch(each, "decide", no, "no");
    rv_add_step(branch.then, "pay", good, NULL);
    rv_add_step(branch.otherwise, "beg", good, NULL);
    rv_concurrent *block = rv_add_concurrent(top, "block", RV_CONCURRENT_OPTS(.collect = true));
    rv_concurrent_step(block, "a", good, NULL);
    rv_body *b = rv_concurrent_body(block, "b");
    rv_add_step(b, "b1", good, NULL);
    rv_add_step(b, "b2", bad, RV_STEP_OPTS(.on_error = good));
    rv_add_workflow(top, "inner", "small");
    rv_add_step(top, "last", bad, RV_STEP_OPTS(.on_error = good));
    rv_add_step(top, "never", good, NULL);
    rv_workflow_on_error(w, "sorry", good);
    return w;
}

static rv_workflow *small(void)
{
    rv_workflow *w = rv_workflow_new("small");
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    return w;
}

static void the_zoo_is(struct rig *rig)
{
    list(rig, "r", NULL, 0, 0);
    rig_saw(rig,
            "again=step completed #2;each=forEach completed (3);block=concurrent completed (2);"
            "inner=workflow completed (1);last=step failed (1);never=step pending;"
            "onError=handler completed;7");
    list(rig, "r", "each", 1, 5);
    rig_saw(rig, "each:iter1=iteration completed (1);each:iter2=iteration completed (1);3");
    list(rig, "r", "each:iter1", 0, 0);
    rig_saw(rig, "each:iter1:node0:decide=branch completed (2);1");
    list(rig, "r", "each:iter1:node0:decide", 0, 0);
    rig_saw(rig, "each:iter1:node0:decide:then:node0:pay=step skipped;"
                 "each:iter1:node0:decide:else:node0:beg=step completed;2");
    list(rig, "r", "each:iter1:node0:decide:else", 0, 0);
    rig_saw(rig, "each:iter1:node0:decide:else:node0:beg=step completed;1");
    list(rig, "r", "block", 0, 0);
    rig_saw(rig, "block:a=step completed;block:b=child failed (2);2");
    list(rig, "r", "block:b", 0, 0);
    rig_saw(rig, "block:b:node0:b1=step completed;block:b:node1:b2=step failed (1);2");
    list(rig, "r", "block:b:node1:b2", 0, 0);
    rig_saw(rig, "block:b:node1:b2:onError=handler completed;1");
    list(rig, "r", "inner", 0, 0);
    rig_saw(rig, "inner:node0:one=step completed;1");
    list(rig, "r", "inner:node0:one", 0, 0);
    rig_saw(rig, "0");
    list(rig, "r", "onError", 0, 0);
    rig_saw(rig, "0");
}

/* The iterations of the first node of the top level. */
static rv_iterations iterations_of_first(struct rig *rig, const char *run_id)
{
    rv_node_list *nodes = NULL;
    if (rv_nodes(rig->engine, run_id, RV_NODE_QUERY(.limit = 1), &nodes, &rig->err) < 0)
        fail_msg("no nodes: %s", rig->err.message);
    rv_iterations ret = nodes->nodes[0].iterations;
    rv_node_list_free(nodes);
    return ret;
}

static int odd_fails(rv_ctx *c)
{
    return rv_int(c, ".loop.index", -1) % 2 == 1 ? rv_fail(c, "odd") : 0;
}

static void iterations_are_counted(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("odd");
    rig_open(rig, NULL);
    rv_add_step(
        rv_add_foreach(rv_workflow_body(w), "each", items, RV_FOREACH_OPTS(.parallel = true)),
        "one", odd_fails, NULL);
    rig_put(rig, w);
    rig_run(rig, "odd", "r", "{\"n\": 101}");
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    rv_iterations counts = iterations_of_first(rig, "r");
    assert_int_equal(counts.total, 101);
    assert_int_equal(counts.completed, 51);
    assert_int_equal(counts.failed, 50);
    assert_int_equal(counts.running + counts.cancelled, 0);
}

static void every_kind_of_node_is_listed(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    rig_put(rig, small());
    rig_put(rig, zoo());
    rig_run(rig, "zoo", "r", "{}");
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    the_zoo_is(rig);
    the_zoo_is(rig); /* from what was kept */
    rig_close(rig);
    rig_open(rig, NULL); /* from the disk alone */
    the_zoo_is(rig);
    static const char *const nowhere[] = { "nobody",      "each:iter3",       "each:node0:decide",
                                           "again:x",     "each:iter1:node1", "each:iter1:node0:x",
                                           "block:c",     "inner:one",        "each:iter",
                                           "each:iterx1", "last:onError:x",   ":" };
    rv_node_list *nodes = NULL;
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
        if (rv_nodes(rig->engine, "r", RV_NODE_QUERY(.parent = nowhere[i]), &nodes, &rig->err) !=
            RV_ENOTFOUND)
            fail_msg("'%s' is there", nowhere[i]);
    assert_int_equal(rv_nodes(rig->engine, "nobody", NULL, &nodes, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_nodes(rig->engine, "a b", NULL, &nodes, &rig->err), RV_EINVAL);
    int rc;
    for (long n = 0;; n++) {
        rv__test_fail_alloc_after(n);
        rc = rv_nodes(rig->engine, "r", RV_NODE_QUERY(.parent = "block:b"), &nodes, &rig->err);
        rv__test_fail_alloc_after(-1);
        if (rc == RV_OK)
            break;
        assert_true(rc == RV_ENOMEM || rc == RV_ESTORE);
        assert_null(nodes);
    }
    rv_node_list_free(nodes);
}

static void a_node_says_how_it_fared(void **state)
{
    struct rig *rig = *state;
    rv_node_list *nodes = NULL;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "good", good, NULL);
    rv_add_delay(rv_workflow_body(w), "nap", 30);
    rv_add_step(rv_workflow_body(w), "bad", bad,
                RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 5));
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    assert_int_equal(rv_nodes(rig->engine, "r", NULL, &nodes, &rig->err), RV_OK);
    const rv_node *n = nodes->nodes;
    assert_string_equal(n[0].description, "done by good");
    assert_string_equal(n[0].error, "");
    assert_string_equal(n[0].alias, "good");
    assert_int_equal(n[0].attempt, 1);
    assert_int_equal(n[0].retry_count, 0);
    assert_true(n[0].started_at > 1000000000000 && n[0].completed_at >= n[0].started_at);
    assert_in_range(n[1].duration_ms, 30, 20000);
    assert_int_equal(n[1].due_at, 0);
    assert_true(n[1].started_at >= n[0].completed_at);
    assert_int_equal(n[2].attempt, 3);
    assert_int_equal(n[2].retry_count, 2);
    assert_string_equal(n[2].error, "{\"message\":\"no luck in attempt 3\",\"path\":\"bad\"}");
    assert_int_equal(n[2].error_attempt, 3);
    assert_int_equal(n[2].error_at, n[2].completed_at);
    assert_true(n[2].duration_ms >= 15 - 2); /* two waits, 5 and 10 ms */
    rv_node_list_free(nodes);
}

static void a_run_is_seen_as_it_goes(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = 2));
    rv_add_step(each, "wait", until_told, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rig_put(rig, w);
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", "{}");
    list(rig, "r", "each", 0, 0); /* whatever there is so far: it is brought up to date */
    rig->len = 0;
    for (int i = 0; i < 3; i++)
        rig_until(rig, "step.started", "r");
    rig->len = 0;
    list(rig, "r", NULL, 0, 0);
    rig_saw(rig, "one=step completed;each=forEach running (2);go=step pending;3");
    list(rig, "r", "each:iter1", 0, 0);
    rig_saw(rig, "each:iter1:node0:wait=step running;1");
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    list(rig, "r", NULL, 0, 0);
    rig_saw(rig, "one=step completed;each=forEach cancelled (2);go=step pending;3");
    list(rig, "r", "each:iter1", 0, 0);
    rig_saw(rig, "each:iter1:node0:wait=step cancelled;1");
}

static int slow(rv_ctx *c)
{
    rv_test_takes(c, 30);
    return 0;
}

static void waiting_for_a_place_is_queue_time(void **state)
{
    struct rig *rig = *state;
    rv_node_list *nodes = NULL;
    rv_workflow *w = rv_workflow_new("w");
    assert_int_equal(rv_test_engine_new(RV_TEST_OPTS(.workers = 1), &rig->engine, &rig->err),
                     RV_OK);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    rv_concurrent_step(block, "first", slow, NULL);
    rv_concurrent_step(block, "second", slow, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_int_equal(
        rv_nodes(rig->engine, "r", RV_NODE_QUERY(.parent = "block"), &nodes, &rig->err), RV_OK);
    assert_int_equal(nodes->nodes[0].queue_ms, 0);
    assert_int_equal(nodes->nodes[1].queue_ms, 30);
    rv_node_list_free(nodes);
}

/* What the pool of a stage has no room for does not wait for a place, whoever has set its limit. */
static void waiting_for_a_stage_is_no_queue_time(void **state)
{
    struct rig *rig = *state;
    for (int64_t limit = 0; limit <= 1; limit++) {
        char json[600];
        rv_node_list *nodes = NULL;
        rv_workflow *w = NULL;
        rv_engine_free(rig->engine);
        assert_int_equal(rv_test_engine_new(NULL, &rig->engine, &rig->err), RV_OK);
        snprintf(
            json, sizeof json,
            "{\"name\":\"w\",\"steps\":[{\"type\":\"stage\",\"alias\":\"g\",%s\"states\":["
            "{\"alias\":\"a\",\"agent\":{\"type\":\"step\",\"kind\":\"function\",\"alias\":\"x\","
            "\"name\":\"slow\"}},"
            "{\"alias\":\"b\",\"agent\":{\"type\":\"step\",\"kind\":\"function\",\"alias\":\"x\","
            "\"name\":\"slow\"}}]}]}",
            limit == 0 ? "\"concurrency\":1," : "");
        assert_int_equal(rv__workflow_read(rv__str(json), &w, &rig->err), RV_OK);
        rv_workflow_function(w, "slow", slow);
        rig_put(rig, w);
        assert_int_equal(rv_run(rig->engine, "w", NULL,
                                RV_RUN_OPTS(.run_id = "r", .max_concurrency = limit), NULL,
                                &rig->err),
                         RV_OK);
        assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
        assert_int_equal(
            rv_nodes(rig->engine, "r", RV_NODE_QUERY(.parent = "g"), &nodes, &rig->err), RV_OK);
        assert_int_equal(nodes->count, 2);
        assert_int_equal(nodes->nodes[1].started_at - nodes->nodes[0].started_at, 30);
        rv_node_list_free(nodes);
        rv_node_detail *node = NULL;
        assert_int_equal(rv_node_get(rig->engine, "r", "g:b", &node, &rig->err), RV_OK);
        assert_int_equal(node->attempt_count, 1);
        assert_int_equal(node->attempts[0].queue_ms, 0);
        rv_node_detail_free(node);
    }
}

static void many_iterations_are_a_window_each(void **state)
{
    struct rig *rig = *state;
    enum { COUNT = 5000 };
    rv_workflow *w = rv_workflow_new("w");
    rv_node_list *nodes = NULL;
    size_t seen = 0;
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "one", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", "{\"n\":5000}");
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    while (seen < COUNT) {
        assert_int_equal(rv_nodes(rig->engine, "r",
                                  RV_NODE_QUERY(.parent = "each", .offset = seen, .limit = 5000),
                                  &nodes, &rig->err),
                         RV_OK);
        assert_int_equal(nodes->total, COUNT);
        assert_int_equal(nodes->count, 1000);
        for (size_t i = 0; i < nodes->count; i++) {
            char path[32];
            snprintf(path, sizeof path, "each:iter%zu", seen++);
            assert_string_equal(nodes->nodes[i].path, path);
        }
        rv_node_list_free(nodes);
    }
}

/* Every seventh fails; the others: whatever was asked for. */
static int seventh_fails(rv_ctx *c)
{
    return rv_int(c, ".loop.index", -1) % 7 == 3 ? rv_fail(c, "seventh") : 0;
}

static bool is_in(size_t index, const char *status)
{
    return status == NULL || (index % 7 == 3) == (strcmp(status, "failed") == 0);
}

/* All windows of `limit`, one after the other, against what was to be. */
static void windows_are(struct rig *rig, const char *status, size_t count, size_t limit)
{
    size_t index = 0, total = 0;
    for (size_t i = 0; i < count; i++)
        total += is_in(i, status);
    for (size_t seen = 0; seen <= total; seen += limit) {
        rv_node_list *nodes = NULL;
        if (rv_nodes(
                rig->engine, "r",
                RV_NODE_QUERY(.parent = "each", .status = status, .offset = seen, .limit = limit),
                &nodes, &rig->err) < 0)
            fail_msg("no window: %s", rig->err.message);
        assert_int_equal(nodes->total, total);
        assert_int_equal(nodes->count, total - seen < limit ? total - seen : limit);
        for (size_t i = 0; i < nodes->count; i++, index++) {
            char path[32];
            while (!is_in(index, status))
                index++;
            snprintf(path, sizeof path, "each:iter%zu", index);
            assert_string_equal(nodes->nodes[i].path, path);
            if (status != NULL)
                assert_string_equal(nodes->nodes[i].status, status);
        }
        rv_node_list_free(nodes);
    }
}

static void windows_of_one_status(struct rig *rig, size_t count)
{
    rv_node_list *nodes = NULL;
    char input[32], path[32];
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "one", seventh_fails, NULL);
    rig_put(rig, w);
    snprintf(input, sizeof input, "{\"n\":%zu}", count);
    rig_run(rig, "w", "r", input);
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    static const size_t limits[] = { 1000, 100, 7 };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        windows_are(rig, NULL, count, limits[i]);
        windows_are(rig, "failed", count, limits[i]);
        windows_are(rig, "completed", count, limits[i]);
    }
    snprintf(path, sizeof path, "each:iter%zu", count - 1); /* found without looking at all */
    assert_int_equal(rv_nodes(rig->engine, "r", RV_NODE_QUERY(.parent = path), &nodes, &rig->err),
                     RV_OK);
    assert_int_equal(nodes->total, 1);
    rv_node_list_free(nodes);
    static const char *const none[] = { "running", "cancelled", "skipped", "suspended" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(rv_nodes(rig->engine, "r",
                                  RV_NODE_QUERY(.parent = "each", .status = none[i]), &nodes,
                                  &rig->err),
                         RV_OK);
        assert_int_equal(nodes->total + nodes->count, 0);
        rv_node_list_free(nodes);
    }
}

static void a_window_may_be_of_one_status(void **state)
{
    windows_of_one_status(*state, 300);
}

static void also_of_ten_times_as_many(void **state)
{
    windows_of_one_status(*state, 3000);
}

/* While they run, what was counted as running is counted as what it became. */
static void a_status_is_that_of_now(void **state)
{
    struct rig *rig = *state;
    rv_node_list *nodes = NULL;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_signal(each, "wait", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "then", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", "{\"n\":600}");
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    for (size_t i = 0; i < 600; i++)
        rig_until(rig, "step.started", "r");
    for (size_t gone = 0; gone < 3; gone++) {
        const rv_node_query running = { .size = sizeof running,
                                        .parent = "each",
                                        .status = "running" };
        assert_int_equal(rv_nodes(rig->engine, "r", &running, &nodes, &rig->err), RV_OK);
        assert_int_equal(nodes->total, 600 - gone);
        rv_node_list_free(nodes);
        assert_int_equal(rv_signal(rig->engine, "r", "go", "1", &rig->err), RV_OK);
        rig_until(rig, "step.completed", "r");
    }
    assert_int_equal(
        rv_nodes(rig->engine, "r", RV_NODE_QUERY(.status = "pending"), &nodes, &rig->err), RV_OK);
    assert_string_equal(nodes->nodes[0].path, "then");
    assert_int_equal(nodes->total, 1);
    rv_node_list_free(nodes);
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_CANCELLED);
    rv_iterations counts = iterations_of_first(rig, "r");
    assert_int_equal(counts.completed, 3);
    assert_int_equal(counts.cancelled, 597);
    assert_int_equal(counts.running, 0);
}

static int an_hour(rv_ctx *c)
{
    rv_test_takes(c, 3600000);
    return 0;
}

static void a_run_that_was_aborted_shows_what_failed(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    assert_int_equal(rv_test_engine_new(RV_TEST_OPTS(.max_crashes = 1), &rig->engine, &rig->err),
                     RV_OK);
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "two", an_hour, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rv_signal(rig->engine, "r", "go", NULL, &rig->err), RV_OK);
    for (int i = 0; i < 4; i++) { /* it is in flight whenever the engine dies */
        assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
        assert_int_equal(rv_test_crash(rig->engine, &rig->err), RV_OK);
    }
    assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    rig_until(rig, "run.suspended", "r");
    rig->len = 0;
    list(rig, "r", NULL, 0, 0);
    rig_saw(rig, "one=step completed;go=step completed;two=step suspended;3");
    assert_int_equal(
        rv_decide(rig->engine, "r", RV_ABORT, RV_DECIDE_OPTS(.reason = "enough"), &rig->err),
        RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    list(rig, "r", NULL, 0, 0);
    rig_saw(rig, "one=step completed;go=step completed;two=step failed;3");
    rig_until(rig, "run.failed", "r");
    rig_saw(rig, "step.failed two;run.aborted;run.failed;");
}

/* One node, as "status result state input; #attempt outcome error+due …;". */
static void look(struct rig *rig, const char *run_id, const char *path)
{
    rv_node_detail *node = NULL;
    if (rv_node_get(rig->engine, run_id, path, &node, &rig->err) < 0)
        fail_msg("no node '%s': %s", path, rig->err.message);
    assert_string_equal(node->node.path, path);
    rig_add(rig, "%s %s %s %s;", node->node.status, node->result, node->state, node->input);
    for (size_t i = 0; i < node->attempt_count; i++) {
        const rv_attempt *a = &node->attempts[i];
        assert_true(a->started_at != 0 && a->completed_at <= node->node.completed_at + 1);
        rig_add(rig, " #%d %s %s%s", a->attempt, a->outcome, a->error, a->due_at ? "+due" : "");
    }
    rig_add(rig, ";");
    rv_node_detail_free(node);
}

static int last_words(rv_ctx *c)
{
    return rv_return(c, "{s:i}", "n", rv_ctx_attempt(c));
}

static void one_node_tells_its_values_and_attempts(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "words", last_words, NULL);
    rv_add_step(rv_workflow_body(w), "twice", second_time,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rv_add_step(rv_workflow_body(w), "says", good, NULL);
    rv_add_step(rv_add_foreach(rv_workflow_body(w), "each", items, NULL), "in", last_words, NULL);
    rv_add_step(rv_workflow_body(w), "bad", bad,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rv_add_step(rv_workflow_body(w), "never", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", "{\"n\":2}");
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    look(rig, "r", "words");
    rig_saw(rig, "completed {\"n\":1}  ; #1 completed ;");
    look(rig, "r", "twice");
    rig_saw(rig, "completed null  ; #1 failed {\"message\":\"not yet\"}+due #2 completed ;");
    look(rig, "r", "says");
    rig_saw(rig, "completed null {\"description\":\"done by says\"} ; #1 completed ;");
    look(rig, "r", "each:iter1:node0:in");
    rig_saw(rig, "completed {\"n\":1}  ; #1 completed ;");
    look(rig, "r", "each");
    rig_saw(rig, "completed   ;;");
    look(rig, "r", "bad");
    rig_saw(rig, "failed   ; #1 failed {\"message\":\"no luck in attempt 1\"}+due #2 failed "
                 "{\"message\":\"no luck in attempt 2\",\"path\":\"bad\"};");
    look(rig, "r", "never");
    rig_saw(rig, "pending   ;;");
    rv_node_detail *none = NULL;
    assert_int_equal(rv_node_get(rig->engine, "r", "nix", &none, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_node_get(rig->engine, "nix", "bad", &none, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_node_get(rig->engine, "r", "", &none, &rig->err), RV_EINVAL);
}

static int takes_long(rv_ctx *c)
{
    rv_test_takes(c, 100);
    return 0;
}

static void an_attempt_may_be_lost_or_cancelled(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    if (rv_test_engine_new(NULL, &rig->engine, &rig->err) < 0)
        fail_msg("no engine: %s", rig->err.message);
    rv_add_step(rv_workflow_body(w), "long", takes_long, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 60000, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rv_test_advance(rig->engine, 10, NULL);
    assert_int_equal(rv_test_crash(rig->engine, &rig->err), RV_OK);
    rv_test_advance(rig->engine, 1000, NULL);
    look(rig, "r", "long");
    rig_saw(rig, "completed null  ; #1 lost  #1 completed ;");
    look(rig, "r", "go");
    rig_saw(rig, "running   ; #1 running +due;");
    rv_cancel_run(rig->engine, "r", NULL);
    look(rig, "r", "go");
    rig_saw(rig, "cancelled   ; #1 cancelled ;");
}

static int takes_long_twice(rv_ctx *c)
{
    rv_test_takes(c, 70);
    return rv_ctx_attempt(c) < 2 ? rv_fail(c, "not yet") : 0;
}

/* One place for two: whoever is second waits, and so does a second attempt. */
static void each_attempt_says_how_long_it_waited(void **state)
{
    struct rig *rig = *state;
    rv_node_detail *node = NULL;
    rv_workflow *w = rv_workflow_new("w");
    if (rv_test_engine_new(RV_TEST_OPTS(.workers = 1), &rig->engine, &rig->err) < 0)
        fail_msg("no engine: %s", rig->err.message);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    const rv_step_opts *opts = RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1);
    rv_concurrent_step(block, "one", takes_long_twice, opts);
    rv_concurrent_step(block, "two", takes_long_twice, opts);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rv_test_advance(rig->engine, 10000, NULL);
    static const char *const paths[] = { "block:one", "block:two" };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rv_node_get(rig->engine, "r", paths[i], &node, &rig->err), RV_OK);
        assert_int_equal(node->attempt_count, 2);
        assert_int_equal(node->node.queue_ms,
                         node->attempts[0].queue_ms + node->attempts[1].queue_ms);
        rig_add(rig, "%s", i > 0 ? "; " : "");
        for (int k = 0; k < 2; k++)
            rig_add(rig, " %d", (int)node->attempts[k].queue_ms);
        rv_node_detail_free(node);
    }
    rig_saw(rig, " 0 69;  70 69");
}

static void of_very_many_attempts_the_last_are_told(void **state)
{
    struct rig *rig = *state;
    rv_node_detail *node = NULL;
    rv_workflow *w = rv_workflow_new("w");
    if (rv_test_engine_new(NULL, &rig->engine, &rig->err) < 0)
        fail_msg("no engine: %s", rig->err.message);
    rv_add_step(rv_workflow_body(w), "bad", bad,
                RV_STEP_OPTS(.max_attempts = 3500, .max_backoff_ms = 1, .backoff_base_ms = 1));
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rv_test_advance(rig->engine, 1000000, NULL);
    assert_int_equal(rv_node_get(rig->engine, "r", "bad", &node, &rig->err), RV_OK);
    assert_string_equal(node->node.status, "failed");
    assert_int_equal(node->attempt_count, 1000);
    assert_int_equal(node->earlier, 2500);
    assert_int_equal(node->attempts[0].attempt, 2501);
    assert_int_equal(node->attempts[999].attempt, 3500);
    assert_string_equal(node->attempts[0].error, "{\"message\":\"no luck in attempt 2501\"}");
    rv_node_detail_free(node);
}

static void a_nested_workflow_tells_its_input(void **state)
{
    struct rig *rig = *state;
    rv_workflow *inner = rv_workflow_new("inner"), *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_workflow_input(inner, "{\"type\":\"object\",\"required\":[\"n\"]}");
    rv_add_step(rv_workflow_body(inner), "words", last_words, NULL);
    rig_put(rig, inner);
    rv_add_workflow(rv_workflow_body(w), "sub", "inner");
    rig_put(rig, w);
    rig_run(rig, "w", "r", "{\"n\":2}");
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    look(rig, "r", "sub");
    rig_saw(rig, "completed   {\"n\":2};;");
}

static void no_memory_means_no_node(void **state)
{
    struct rig *rig = *state;
    rv_node_detail *node = NULL;
    char *plan = NULL;
    int rc;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "words", last_words, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rig_wait(rig, "r");
    TORTURE(rc, rv_node_get(rig->engine, "r", "words", &node, &rig->err), assert_null(node));
    assert_int_equal(rc, RV_OK);
    rv_node_detail_free(node);
    TORTURE(rc, rv_plan_of_run(rig->engine, "r", &plan, &rig->err), assert_null(plan));
    rv_free(plan);
}

static void a_run_keeps_its_plan_and_a_workflow_has_the_newest(void **state)
{
    struct rig *rig = *state;
    char *of_run = NULL, *of_workflow = NULL;
    for (int i = 0; i < 2; i++) {
        rv_workflow *w = rv_workflow_new("w");
        rig_open(rig, NULL);
        rv_add_step(rv_workflow_body(w), i == 0 ? "old" : "new", good, NULL);
        rig_put(rig, w);
        if (i == 0) {
            rig_run(rig, "w", "r", NULL);
            rig_wait(rig, "r");
            rig_close(rig);
        }
    }
    assert_int_equal(rv_plan_of_run(rig->engine, "r", &of_run, &rig->err), RV_OK);
    assert_int_equal(rv_plan_of_workflow(rig->engine, "w", &of_workflow, &rig->err), RV_OK);
    assert_int_equal(strncmp(of_run, "{\"type\":\"workflow\",\"alias\":\"w\",\"name\":\"w\",", 41),
                     0);
    rig_add(rig, "%s", strstr(of_run, "\"old\"") != NULL ? "old" : of_run);
    rig_add(rig, " %s", strstr(of_workflow, "\"new\"") != NULL ? "new" : of_workflow);
    rv_free(of_run);
    rv_free(of_workflow);
    rig_saw(rig, "old new");
    assert_int_equal(rv_plan_of_run(rig->engine, "nix", &of_run, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_plan_of_workflow(rig->engine, "nix", &of_run, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_plan_of_workflow(NULL, "nix", &of_run, &rig->err), RV_EINVAL);
}

static void a_list_may_be_of_one_run(void **state)
{
    struct rig *rig = *state;
    rv_run_list *runs = NULL;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "a", good, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", "[7]");
    rig_run(rig, "w", "r2", NULL);
    rig_wait(rig, "r");
    assert_int_equal(rv_list(rig->engine, RV_QUERY(.run_id = "r"), &runs, &rig->err), RV_OK);
    rig_add(rig, "%zu %s %s", runs->count, runs->runs[0].run_id, runs->runs[0].input);
    rv_run_list_free(runs);
    rig_saw(rig, "1 r [7]");
    assert_int_equal(rv_list(rig->engine, RV_QUERY(.run_id = "nix"), &runs, &rig->err), RV_OK);
    assert_int_equal(runs->count, 0);
    rv_run_list_free(runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(every_kind_of_node_is_listed),
        RIG_TEST(a_node_says_how_it_fared),
        RIG_TEST(a_run_is_seen_as_it_goes),
        RIG_TEST(waiting_for_a_place_is_queue_time),
        RIG_TEST(waiting_for_a_stage_is_no_queue_time),
        RIG_TEST(many_iterations_are_a_window_each),
        RIG_TEST(a_window_may_be_of_one_status),
        RIG_TEST(also_of_ten_times_as_many),
        RIG_TEST(a_status_is_that_of_now),
        RIG_TEST(iterations_are_counted),
        RIG_TEST(a_run_that_was_aborted_shows_what_failed),
        RIG_TEST(one_node_tells_its_values_and_attempts),
        RIG_TEST(an_attempt_may_be_lost_or_cancelled),
        RIG_TEST(each_attempt_says_how_long_it_waited),
        RIG_TEST(of_very_many_attempts_the_last_are_told),
        RIG_TEST(a_nested_workflow_tells_its_input),
        RIG_TEST(no_memory_means_no_node),
        RIG_TEST(a_run_keeps_its_plan_and_a_workflow_has_the_newest),
        RIG_TEST(a_list_may_be_of_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
