/* test_logs.c: pages of a run's log. For src/read/logs.c. */
#include "unit/engine/rig.h"

static int talk(rv_ctx *c)
{
    rv_log(c, RV_DEBUG, NULL, "a whisper");
    rv_log(c, RV_INFO, "{\"n\":1}", "Some news");
    if (rv_ctx_attempt(c) == 1) {
        rv_log(c, RV_WARN, NULL, "not well");
        return rv_fail(c, "again");
    }
    rv_log(c, RV_ERROR, NULL, "NEWS of a crash");
    return 0;
}

static int chatty(rv_ctx *c)
{
    for (int i = 0; i < 2500; i++)
        rv_log_info(c, "line %d", i);
    return 0;
}

static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2]");
}

static void put_talk(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("talk");
    rv_add_step(rv_workflow_body(w), "one", talk,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items, NULL);
    rv_add_step(each, "two", talk, RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rig_put(rig, w);
    rig_run(rig, "talk", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

static void logs_are(struct rig *rig, const rv_log_query *query, const char *expected)
{
    rv_log_list *list = NULL;
    assert_int_equal(rv_logs(rig->engine, "r", query, &list, &rig->err), RV_OK);
    for (size_t i = 0; i < list->count; i++)
        rig_add(rig, "%s%d:%s;", list->lines[i].path, list->lines[i].attempt,
                list->lines[i].message);
    rv_log_list_free(list);
    rig_saw(rig, expected);
}

static void lines_are_filtered_and_in_order(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    put_talk(rig);
    logs_are(rig, RV_LOG_QUERY(.level = RV_WARN),
             "one1:not well;one2:NEWS of a crash;each:iter0:node0:two1:not well;"
             "each:iter0:node0:two2:NEWS of a crash;each:iter1:node0:two1:not well;"
             "each:iter1:node0:two2:NEWS of a crash;");
    logs_are(rig, RV_LOG_QUERY(.step = "one", .text = "news"),
             "one1:Some news;one2:Some news;one2:NEWS of a crash;");
    logs_are(rig, RV_LOG_QUERY(.step = "one", .limit = 2), "one1:a whisper;one1:Some news;");
    logs_are(rig, RV_LOG_QUERY(.step = "nobody"), "");
    rv_log_list *list = NULL;
    assert_int_equal(rv_logs(rig->engine, "r", NULL, &list, &rig->err), RV_OK);
    assert_int_equal(list->count, 18);
    assert_string_equal(list->lines[1].metadata, "{\"n\":1}");
    assert_string_equal(list->lines[0].metadata, "");
    assert_string_equal(list->lines[0].step, "one");
    assert_int_equal(list->lines[0].level, RV_DEBUG);
    assert_true(list->lines[0].at > 1000000000000);
    rv_log_list_free(list);
}

static int bad(rv_ctx *c)
{
    return rv_fail(c, "no luck");
}

static int bad_too(rv_ctx *c)
{
    return rv_fail(c, "cannot even say sorry");
}

static void what_a_handlers_failure_changes_is_the_log(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", items, NULL);
    rv_add_step(each, "one", bad, RV_STEP_OPTS(.on_error = bad_too));
    rv_workflow_on_error(w, "sorry", bad_too);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_FAILED);
    logs_are(rig, RV_LOG_QUERY(.level = RV_ERROR),
             "each:iter0:node0:one:onError1:the handler failed: cannot even say sorry;"
             "onError1:the handler failed: cannot even say sorry;");
    rv_log_list *list = NULL;
    assert_int_equal(rv_logs(rig->engine, "r", NULL, &list, &rig->err), RV_OK);
    assert_true(list->lines[0].step[0] != '\0' && list->lines[0].at > 1000000000000);
    rv_log_list_free(list);
}

/* Of a child: what failed in it, with its attempt; what was caught inside it is no failure of it. */
static void the_failure_of_a_detached_child_is_logged(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "later",
                                             RV_CONCURRENT_OPTS(.detached = true));
    rv_concurrent_step(block, "mail", bad, RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1));
    rv_body *body = rv_concurrent_body(block, "tidy");
    rv_concurrent *inner = rv_add_concurrent(body, "inner", RV_CONCURRENT_OPTS(.collect = true));
    rv_concurrent_step(inner, "caught", bad, NULL);
    rv_body *each = rv_add_foreach(body, "each", items, NULL);
    rv_add_step(each, "one", bad, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    rig_until(rig, "log", "r");
    rig_until(rig, "log", "r");
    rig->len = 0;
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    logs_are(rig, RV_LOG_QUERY(.step = "mail"),
             "later:mail2:the detached child 'mail' failed: no luck;");
    logs_are(rig, RV_LOG_QUERY(.step = "each"),
             "later:tidy:node1:each1:the detached child 'tidy' failed: no luck;");
}

static void pages_follow_each_other(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    uint64_t after = 0;
    int seen = 0, pages = 0;
    rig_open(rig, NULL);
    rv_add_step(rv_workflow_body(w), "one", chatty, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    rig_run(rig, "w", "other", NULL);
    rig_wait(rig, "r");
    rig_wait(rig, "other");
    for (bool more = true; more; pages++) {
        rv_log_list *list = NULL;
        assert_int_equal(rv_logs(rig->engine, "r", RV_LOG_QUERY(.after = after, .limit = 5000),
                                 &list, &rig->err),
                         RV_OK);
        for (size_t i = 0; i < list->count; i++) {
            char expected[32];
            snprintf(expected, sizeof expected, "line %d", seen++);
            assert_string_equal(list->lines[i].message, expected);
        }
        more = list->count > 0;
        assert_true(!more || list->next > after);
        after = list->next;
        rv_log_list_free(list);
    }
    assert_int_equal(seen, 2500);
    assert_int_equal(pages, 4); /* a thousand at most in each */
}

static void a_line_is_its_event(void **state)
{
    struct rig *rig = *state;
    rv_log_list *list = NULL;
    rv_event event;
    size_t at = 0;
    rig_open(rig, NULL);
    put_talk(rig);
    assert_int_equal(rv_logs(rig->engine, "r", NULL, &list, &rig->err), RV_OK);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r", .from = RV_FROM_OLDEST));
    while (rv_feed_next(rig->feed, 0, NULL, &event, &rig->err) == RV_OK)
        if (strcmp(event.kind, "log") == 0) {
            assert_true(at < list->count);
            assert_int_equal(event.seq, list->lines[at++].id);
        }
    assert_int_equal(at, list->count);
    rv_log_list_free(list);
}

static void what_cannot_be_read_is_refused(void **state)
{
    struct rig *rig = *state;
    rv_log_list *list = NULL;
    rig_open(rig, NULL);
    put_talk(rig);
    assert_int_equal(rv_logs(rig->engine, "nobody", NULL, &list, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_logs(rig->engine, "a b", NULL, &list, &rig->err), RV_EINVAL);
    assert_int_equal(rv_logs(rig->engine, "r", RV_LOG_QUERY(.level = 7), &list, &rig->err),
                     RV_EINVAL);
    assert_int_equal(rv_logs(rig->engine, "r", &(rv_log_query){ 0 }, &list, &rig->err), RV_EINVAL);
    assert_int_equal(rv_logs(NULL, "r", NULL, &list, &rig->err), RV_EINVAL);
    assert_null(list);
    int rc;
    rv__test_fail_alloc_after(-1);
    for (long n = 0; (rv__test_fail_alloc_after(n),
                      rc = rv_logs(rig->engine, "r", NULL, &list, &rig->err)) != RV_OK;
         n++) {
        rv__test_fail_alloc_after(-1);
        assert_true(rc == RV_ENOMEM || rc == RV_ESTORE);
        assert_null(list);
    }
    rv__test_fail_alloc_after(-1);
    rv_log_list_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(lines_are_filtered_and_in_order),
        RIG_TEST(what_a_handlers_failure_changes_is_the_log),
        RIG_TEST(the_failure_of_a_detached_child_is_logged),
        RIG_TEST(pages_follow_each_other),
        RIG_TEST(a_line_is_its_event),
        RIG_TEST(what_cannot_be_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
