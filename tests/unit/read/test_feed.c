/* test_feed.c: subscriptions to what is on disk. For src/read/feed.c, event.c, trace.c. */
#include "unit/engine/rig.h"

#include "base/json.h"

static int good(rv_ctx *c)
{
    rv_log_info(c, "at %s", rv_ctx_path(c));
    rv_describe(c, "did it");
    return rv_return(c, "{s:i}", "n", 7);
}

static int quiet(rv_ctx *c)
{
    (void)c;
    return 0;
}

static int bad(rv_ctx *c)
{
    return rv_fail(c, "no luck");
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

static int three_items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3]");
}

static int yes(rv_ctx *c)
{
    return rv_return_bool(c, true);
}

static rv_workflow *plain(const char *name, rv_step_fn fn)
{
    rv_workflow *w = rv_workflow_new(name);
    rv_add_step(rv_workflow_body(w), "one", fn, NULL);
    rv_add_step(rv_workflow_body(w), "two", fn, NULL);
    return w;
}

static void events_come_in_the_order_of_the_journal(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", "{\"x\":1}");
    rig_until(rig, "run.completed", "r");
    rig_saw(rig, "run.started;step.started one;log one;step.completed one;step.started two;"
                 "log two;step.completed two;run.completed;");
}

static struct rv__str field(const char *json, const char *key)
{
    struct rv__str value = { "", 0 };
    assert_int_equal(rv__json_check(rv__str(json), RV__JSON_MAX_DEPTH, NULL, NULL), RV_OK);
    (void)rv__json_get(rv__str(json), key, &value);
    return value;
}

static void field_is(const char *json, const char *key, const char *expected)
{
    struct rv__str value = field(json, key);
    if (!rv__str_is(value, expected))
        fail_msg("%s is %.*s, not %s, in %s", key, RV__ARG(value), expected, json);
}

static void an_event_says_what_happened(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    uint64_t last = 0;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", "{\"x\":1}");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err), RV_OK);
        char seq[32], index[32], at[32];
        snprintf(seq, sizeof seq, "%llu", (unsigned long long)event.seq);
        snprintf(index, sizeof index, "%llu", (unsigned long long)event.index);
        snprintf(at, sizeof at, "%lld", (long long)event.at);
        field_is(event.json, "seq", seq);
        field_is(event.json, "index", index);
        field_is(event.json, "at", at);
        field_is(event.json, "runId", "\"r\"");
        field_is(event.json, "workflow", "\"w\"");
        assert_string_equal(event.workflow, "w");
        assert_true(event.seq >= last && event.at > 1000000000000);
        last = event.seq;
        switch (i) {
        case 0:
            field_is(event.json, "kind", "\"run.started\"");
            field_is(event.json, "input", "{\"x\":1}");
            field_is(event.json, "status", "\"running\"");
            field_is(event.json, "path", "");
            assert_int_equal(field(event.json, "version").len, 66);
            break;
        case 1: field_is(event.json, "attempt", "1"); break;
        case 2:
            field_is(event.json, "level", "\"info\"");
            field_is(event.json, "message", "\"at one\"");
            field_is(event.json, "stepName", "\"one\"");
            field_is(event.json, "path", "\"one\"");
            field_is(event.json, "attempt", "1");
            break;
        case 3:
            field_is(event.json, "attempt", "1");
            field_is(event.json, "result", "{\"n\":7}");
            field_is(event.json, "state", "{\"description\":\"did it\"}");
            break;
        case 7: field_is(event.json, "status", "\"completed\""); break;
        default: break;
        }
    }
}

static void control_flow_has_its_paths(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", three_items,
                                   RV_FOREACH_OPTS(.items_name = "items"));
    rv_branch_bodies branch = rv_add_branch(each, "decide", yes, "yes");
    rv_add_step(branch.then, "pay", quiet, NULL);
    rig_put(rig, w);
    rig_follow(rig, RV_FEED_OPTS(.no_logs = true));
    rig_run(rig, "w", "r", NULL);
    rig_until(rig, "run.completed", "r");
    rig_add(rig, " ");
    rig_saw(rig, "run.started;node.started each;node.started each:iter0:node0:decide;"
                 "step.started each:iter0:node0:decide:then:node0:pay;"
                 "step.completed each:iter0:node0:decide:then:node0:pay;"
                 "node.completed each:iter0:node0:decide;node.started each:iter1:node0:decide;"
                 "step.started each:iter1:node0:decide:then:node0:pay;"
                 "step.completed each:iter1:node0:decide:then:node0:pay;"
                 "node.completed each:iter1:node0:decide;node.started each:iter2:node0:decide;"
                 "step.started each:iter2:node0:decide:then:node0:pay;"
                 "step.completed each:iter2:node0:decide:then:node0:pay;"
                 "node.completed each:iter2:node0:decide;node.completed each;run.completed; ");
}

static void timers_signals_and_failures_are_told(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "again", second_time,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rv_add_delay(rv_workflow_body(w), "nap", 1);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "last", bad, NULL);
    rig_put(rig, w);
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", NULL);
    rig_until(rig, "step.completed", "r");
    rig_saw(rig, "run.started;step.started again;step.retrying again;timer.armed again;"
                 "step.started again;step.completed again;");
    assert_int_equal(rv_signal(rig->engine, "r", "go", "{\"a\":[]}", &rig->err), RV_OK);
    rig_until(rig, "run.failed", "r");
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    rv_event event;
    int seen = 0;
    do {
        assert_int_equal(rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err), RV_OK);
        if (strcmp(event.kind, "step.retrying") == 0) {
            field_is(event.json, "error", "{\"message\":\"not yet\"}");
            field_is(event.json, "attempt", "1");
            assert_true(field(event.json, "dueAt").len > 10);
            seen |= 1;
        } else if (strcmp(event.kind, "step.completed") == 0 && strcmp(event.path, "again") == 0) {
            field_is(event.json, "attempt", "2");
            seen |= 32;
        } else if (strcmp(event.kind, "timer.armed") == 0) {
            assert_true(field(event.json, "dueAt").len > 10);
            seen |= strcmp(event.path, "nap") == 0 ? 2 : 4;
        } else if (strcmp(event.kind, "signal.received") == 0) {
            field_is(event.json, "name", "\"go\"");
            field_is(event.json, "payload", "{\"a\":[]}");
            seen |= 8;
        } else if (strcmp(event.kind, "step.failed") == 0) {
            field_is(event.json, "error", "{\"message\":\"no luck\",\"path\":\"last\"}");
            field_is(event.json, "stops", "true");
            field_is(event.json, "attempt", "1");
            seen |= 16;
        }
    } while (strcmp(event.kind, "run.failed") != 0);
    field_is(event.json, "failedStep", "\"last\"");
    field_is(event.json, "failedPath", "\"last\"");
    field_is(event.json, "error", "{\"message\":\"no luck\",\"path\":\"last\"}");
    assert_int_equal(seen, 63);
}

static void what_a_cancel_takes_with_it_is_told(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", three_items,
                                   RV_FOREACH_OPTS(.items_name = "items", .parallel = true));
    rv_add_step(each, "fast", quiet, NULL);
    rv_add_step(each, "wait", until_told, NULL);
    rig_put(rig, w);
    rig_follow(rig, RV_FEED_OPTS(.no_logs = true));
    rig_run(rig, "w", "r", NULL);
    for (int i = 0; i < 6; i++)
        rig_until(rig, "step.started", "r");
    rig->len = 0;
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    rig_until(rig, "run.cancelled", "r");
    rig_saw(rig, "step.cancelled each:iter0:node1:wait;step.cancelled each:iter1:node1:wait;"
                 "step.cancelled each:iter2:node1:wait;run.cancelled;");
    /* The same, made again from the start. */
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_OLDEST));
    rig_until(rig, "run.cancelled", "r");
    assert_non_null(strstr(rig->text, "step.cancelled each:iter0:node1:wait;step.cancelled "
                                      "each:iter1:node1:wait;step.cancelled "
                                      "each:iter2:node1:wait;run.cancelled;"));
}

static void a_failed_block_cancels_its_other_children(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "block", NULL);
    rv_concurrent_step(block, "slow", until_told, NULL);
    rv_concurrent_step(block, "bad", bad, NULL);
    rig_put(rig, w);
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", NULL);
    rig_until(rig, "run.failed", "r");
    assert_non_null(strstr(rig->text, "step.failed block:bad;step.cancelled block:slow;"
                                      "node.failed block;run.failed;"));
}

static void a_feed_resumes_behind_any_event(void **state)
{
    struct rig *rig = *state;
    struct {
        uint64_t seq, index;
        char text[64];
    } all[64];
    size_t count = 0;
    rv_event event;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        rig_run(rig, "w", id, NULL);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_OLDEST));
    while (rv_feed_next(rig->feed, 0, NULL, &event, &rig->err) == RV_OK) {
        assert_true(count < 64);
        assert_true(count == 0 || event.seq > all[count - 1].seq ||
                    (event.seq == all[count - 1].seq && event.index == all[count - 1].index + 1));
        all[count].seq = event.seq;
        all[count].index = event.index;
        snprintf(all[count++].text, sizeof all[0].text, "%s %s %s", event.run_id, event.kind,
                 event.path);
    }
    assert_int_equal(count, 24);
    rig_close(rig); /* the numbers survive that */
    rv_feed_close(rig->feed);
    rig->feed = NULL;
    rig_open(rig, NULL);
    for (size_t i = 0; i < count; i++) {
        rig_follow(
            rig, RV_FEED_OPTS(.from = RV_FROM_POSITION, .seq = all[i].seq, .index = all[i].index));
        for (size_t k = i + 1; k < count; k++) {
            char text[64];
            assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_OK);
            snprintf(text, sizeof text, "%s %s %s", event.run_id, event.kind, event.path);
            assert_string_equal(text, all[k].text);
        }
        assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_ETIMEDOUT);
    }
    assert_int_equal(rv_feed_open(rig->engine,
                                  RV_FEED_OPTS(.from = RV_FROM_POSITION, .seq = 100000), &rig->feed,
                                  &rig->err),
                     RV_ENOTFOUND);
}

/* Where a feed is, told at any time, is where another one can go on. */
static void a_feed_tells_where_it_is(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    uint64_t seq = 1, index = 1;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_NOW));
    rv_feed_position(rig->feed, &seq, &index);
    assert_int_equal(seq, 0); /* nothing has happened yet */
    rig_run(rig, "w", "a", NULL);
    assert_int_equal(rig_wait(rig, "a"), RV_COMPLETED);
    assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_OK);
    rv_feed_position(rig->feed, &seq, &index);
    assert_true(seq == event.seq && index == event.index);

    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_NOW));
    rv_feed_position(rig->feed, &seq, &index);
    rig_run(rig, "w", "b", NULL);
    assert_int_equal(rig_wait(rig, "b"), RV_COMPLETED);
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_POSITION, .seq = seq, .index = index));
    assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_OK);
    assert_string_equal(event.run_id, "b");
    assert_string_equal(event.kind, "run.started");
}

static void a_feed_of_one_run_has_only_its_events(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    rig_run(rig, "w", "a", NULL);
    rig_run(rig, "w", "b", NULL);
    rig_wait(rig, "a");
    rig_wait(rig, "b");
    rig_follow(rig, RV_FEED_OPTS(.run_id = "b", .from = RV_FROM_OLDEST));
    int count = 0;
    while (rv_feed_next(rig->feed, 0, NULL, &event, &rig->err) == RV_OK) {
        assert_string_equal(event.run_id, "b");
        count++;
    }
    assert_int_equal(count, 8);
    rv_feed *none = NULL;
    assert_int_equal(rv_feed_open(rig->engine, RV_FEED_OPTS(.run_id = "nobody"), &none, &rig->err),
                     RV_ENOTFOUND);
    assert_int_equal(rv_feed_open(rig->engine, RV_FEED_OPTS(.run_id = "a b"), &none, &rig->err),
                     RV_EINVAL);
    assert_int_equal(rv_feed_open(rig->engine, &(rv_feed_opts){ 0 }, &none, &rig->err), RV_EINVAL);
    assert_null(none);
}

static int huge(rv_ctx *c)
{
    char *text = calloc(1, 6001);
    memset(text, 'x', 6000);
    int rc = rv_return(c, "s", text);
    free(text);
    return rc;
}

static void a_long_result_is_only_measured(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", huge));
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", NULL);
    do
        assert_int_equal(rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err), RV_OK);
    while (strcmp(event.kind, "step.completed") != 0);
    field_is(event.json, "resultBytes", "6002");
    field_is(event.json, "result", "");
}

/* More than a page of rows, and of lines, so that pages are cut and merged. */
static int chatty(rv_ctx *c)
{
    for (int i = 0; i < 40; i++)
        rv_log_info(c, "%d", i);
    return 0;
}

static void pages_are_joined_without_a_seam(void **state)
{
    struct rig *rig = *state;
    enum { RUNS = 60 };
    rv_event event;
    int lines[RUNS] = { 0 }, started[RUNS] = { 0 }, ended[RUNS] = { 0 };
    uint64_t last_seq = 0;
    rig_open(rig, NULL);
    rig_put(rig, plain("w", chatty));
    rig_follow(rig, NULL);
    for (int i = 0; i < RUNS; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        rig_run(rig, "w", id, NULL);
    }
    for (int left = RUNS; left > 0;) {
        if (rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err) < 0)
            fail_msg("%d runs missing: %s", left, rig->err.message);
        int run = (int)strtol(event.run_id + 1, NULL, 10);
        assert_true(event.seq >= last_seq);
        last_seq = event.seq;
        if (strcmp(event.kind, "log") == 0) {
            char message[24];
            snprintf(message, sizeof message, "\"%d\"", lines[run] % 40);
            field_is(event.json, "message", message);
            lines[run]++;
        } else if (strcmp(event.kind, "run.started") == 0) {
            assert_int_equal(started[run]++, 0);
        } else if (strcmp(event.kind, "run.completed") == 0) {
            assert_int_equal(ended[run]++, 0);
            assert_int_equal(lines[run], 80);
            left--;
        }
    }
}

static void *cancel_soon(void *token)
{
    usleep(2000);
    rv_cancel_fire(token, 0, NULL);
    return NULL;
}

static void *close_soon(void *arg)
{
    struct rig *rig = arg;
    usleep(2000);
    rv_engine_free(rig->engine);
    return NULL;
}

static void waiting_ends_by_time_token_and_close(void **state)
{
    struct rig *rig = *state;
    rv_event event;
    pthread_t thread;
    rig_open(rig, NULL);
    rig_follow(rig, NULL);
    assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_ETIMEDOUT);
    assert_int_equal(rv_feed_next(rig->feed, 5, NULL, &event, &rig->err), RV_ETIMEDOUT);
    rv_cancel *token = rv_cancel_new(NULL);
    pthread_create(&thread, NULL, cancel_soon, token);
    assert_int_equal(rv_feed_next(rig->feed, -1, token, &event, &rig->err), RV_ECANCELED);
    pthread_join(thread, NULL);
    assert_int_equal(rv_feed_next(rig->feed, -1, token, &event, &rig->err), RV_ECANCELED);
    rv_cancel_free(token);
    pthread_create(&thread, NULL, close_soon, rig);
    assert_int_equal(rv_feed_next(rig->feed, -1, NULL, &event, &rig->err), RV_ECLOSED);
    pthread_join(thread, NULL);
    rig->engine = NULL;
    assert_int_equal(rv_feed_next(rig->feed, -1, NULL, &event, &rig->err), RV_ECLOSED);
}

struct follower {
    pthread_t thread;
    rv_feed *feed;
    char run_id[16];
    int events, ends, want;
    bool good;
};

static void *follow(void *arg)
{
    struct follower *f = arg;
    rv_event event;
    f->good = true;
    while (f->ends < f->want && rv_feed_next(f->feed, 20000, NULL, &event, NULL) == RV_OK) {
        f->events++;
        f->ends += strcmp(event.kind, "run.completed") == 0;
        f->good &= f->run_id[0] == '\0' || strcmp(event.run_id, f->run_id) == 0;
    }
    return NULL;
}

static void *signal_soon(void *arg)
{
    struct rig *rig = arg;
    usleep(1000);
    (void)rv_signal(rig->engine, "r", "go", NULL, NULL);
    return NULL;
}

static void many_follow_at_once(void **state)
{
    struct rig *rig = *state;
    enum { FOLLOWERS = 6, RUNS = 100 };
    struct follower followers[FOLLOWERS] = { { .events = 0 } };
    rig_open(rig, NULL);
    rig_put(rig, plain("w", good));
    rig_run(rig, "w", "r0", NULL);
    for (int i = 0; i < FOLLOWERS; i++) {
        struct follower *f = &followers[i];
        f->want = i < 3 ? RUNS : 1;
        if (i >= 3)
            snprintf(f->run_id, sizeof f->run_id, "r0");
        assert_int_equal(
            rv_feed_open(rig->engine,
                         RV_FEED_OPTS(.run_id = i < 3 ? NULL : "r0", .from = RV_FROM_OLDEST),
                         &f->feed, &rig->err),
            RV_OK);
        pthread_create(&f->thread, NULL, follow, f);
    }
    for (int i = 1; i < RUNS; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        rig_run(rig, "w", id, NULL);
    }
    for (int i = 0; i < FOLLOWERS; i++) {
        pthread_join(followers[i].thread, NULL);
        assert_true(followers[i].good);
        assert_int_equal(followers[i].ends, followers[i].want);
        assert_int_equal(followers[i].events, followers[i].want * 8);
        rv_feed_close(followers[i].feed);
    }
}

static void one_who_follows_a_run_is_woken_for_it(void **state)
{
    struct rig *rig = *state;
    enum { ROUNDS = 20 };
    rv_workflow *w = rv_workflow_new("w");
    pthread_t thread;
    rig_open(rig, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_signal(rv_workflow_body(w), alias, "go", 0, NULL);
    }
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rig_run(rig, "w", "other", NULL);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.started", "r"); /* the first: from here on it is silent until the signal */
    for (int i = 0; i < ROUNDS; i++) {   /* somebody else first: that is not for him */
        rv_event event;
        assert_int_equal(rv_signal(rig->engine, "other", "go", NULL, &rig->err), RV_OK);
        assert_int_equal(rv_feed_next(rig->feed, 1, NULL, &event, &rig->err), RV_ETIMEDOUT);
        pthread_create(&thread, NULL, signal_soon, rig);
        rig_until(rig, "step.completed", "r");
        if (i + 1 < ROUNDS)
            rig_until(rig, "step.started", "r");
        pthread_join(thread, NULL);
    }
    rig_until(rig, "run.completed", "r");
}

static void without_memory_nothing_is_skipped(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rv_event event;
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", three_items,
                                   RV_FOREACH_OPTS(.items_name = "items", .parallel = true));
    rv_add_step(each, "wait", until_told, NULL);
    rig_put(rig, w);
    rig_put(rig, plain("p", good));
    rig_run(rig, "p", "p", NULL);
    rig_wait(rig, "p");
    rig_follow(rig, NULL);
    rig_run(rig, "w", "r", NULL);
    for (int i = 0; i < 3; i++)
        rig_until(rig, "step.started", "r");
    assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_OK);
    rig_until(rig, "run.cancelled", "r");
    rig->len = 0;
    rv_feed_close(rig->feed);
    rig->feed = NULL;

    int rc = RV_ENOMEM;
    for (long n = 0; rc != RV_OK; n++) { /* opening */
        rv__test_fail_alloc_after(n);
        rc = rv_feed_open(rig->engine, RV_FEED_OPTS(.from = RV_FROM_OLDEST), &rig->feed, &rig->err);
        rv__test_fail_alloc_after(-1);
        assert_true(rc == RV_OK || rc == RV_ENOMEM || rc == RV_ESTORE);
    }
    for (long n = 0;;) { /* reading: each event after some failures */
        rv__test_fail_alloc_after(n);
        rc = rv_feed_next(rig->feed, 0, NULL, &event, &rig->err);
        rv__test_fail_alloc_after(-1);
        if (rc == RV_OK) {
            rig_add(rig, "%s %s;", event.kind, event.path);
            if (strcmp(event.kind, "run.cancelled") == 0)
                break;
        }
        n = rc == RV_OK ? 0 : n + 1;
        assert_true(n < 2000);
    }
    rig_saw(rig, "run.started ;step.started one;log one;step.completed one;step.started two;"
                 "log two;step.completed two;run.completed ;run.started ;node.started each;"
                 "step.started each:iter0:node0:wait;step.started each:iter1:node0:wait;"
                 "step.started each:iter2:node0:wait;step.cancelled each:iter0:node0:wait;"
                 "step.cancelled each:iter1:node0:wait;step.cancelled each:iter2:node0:wait;"
                 "run.cancelled ;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(events_come_in_the_order_of_the_journal),
        RIG_TEST(an_event_says_what_happened),
        RIG_TEST(control_flow_has_its_paths),
        RIG_TEST(timers_signals_and_failures_are_told),
        RIG_TEST(what_a_cancel_takes_with_it_is_told),
        RIG_TEST(a_failed_block_cancels_its_other_children),
        RIG_TEST(a_feed_resumes_behind_any_event),
        RIG_TEST(a_feed_tells_where_it_is),
        RIG_TEST(a_feed_of_one_run_has_only_its_events),
        RIG_TEST(a_long_result_is_only_measured),
        RIG_TEST(pages_are_joined_without_a_seam),
        RIG_TEST(waiting_ends_by_time_token_and_close),
        RIG_TEST(many_follow_at_once),
        RIG_TEST(one_who_follows_a_run_is_woken_for_it),
        RIG_TEST(without_memory_nothing_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
