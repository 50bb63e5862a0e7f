/* test_attachments.c: what the attempts of a run's states left, and the log of each. For src/read/attachments.c. */
#include "unit/engine/rig.h"

#include <stdatomic.h>

#include "define/workflow.h"

#define AGENT(name)              "{'type':'step','kind':'function','alias':'x','name':'" name "'}"
#define STATE(alias, name, more) "{'alias':'" alias "'," more "'agent':" AGENT(name) "}"

static atomic_int failures;
static atomic_bool held;

static int gather(rv_ctx *c)
{
    rv_log_info(c, "gathering");
    return rv_return(c, "{s:i}", "found", 3);
}

static int second_time(rv_ctx *c)
{
    rv_log_info(c, "attempt %d", rv_ctx_attempt(c));
    if (atomic_fetch_sub(&failures, 1) > 0)
        return rv_fail(c, "not yet");
    rv_describe(c, "worked");
    return rv_return(c, "s", "at last");
}

static int skips(rv_ctx *c)
{
    rv_describe(c, "nothing to do");
    return rv_skip(c);
}

static int long_one(rv_ctx *c)
{
    char *text = malloc(40000);
    memset(text, 'x', 40000);
    text[39999] = '\0';
    int rc = rv_return(c, "s", text);
    free(text);
    return rc;
}

static int waits(rv_ctx *c)
{
    while (atomic_load(&held) && !rv_ctx_cancelled(c))
        usleep(500);
    return 0;
}

static void put_stages(struct rig *rig, const char *states)
{
    char json[8000];
    rv_workflow *w = NULL;
    snprintf(json, sizeof json,
             "{'name':'m','steps':[{'type':'stage','alias':'g',"
             "'states':[%s]}]}",
             states);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    if (rv__workflow_read(rv__str(json), &w, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    rv_workflow_function(w, "gather", gather);
    rv_workflow_function(w, "second_time", second_time);
    rv_workflow_function(w, "skips", skips);
    rv_workflow_function(w, "long_one", long_one);
    rv_workflow_function(w, "waits", waits);
    rig_put(rig, w);
}

/* As "state#attempt status description;", what there is by the query. */
static void expect(struct rig *rig, const char *run_id, const rv_attachment_query *query,
                   const char *expected)
{
    rv_attachment_list *list = NULL;
    char text[4000] = "";
    if (rv_attachments(rig->engine, run_id, query, &list, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    for (size_t i = 0; i < list->count; i++) {
        const rv_attachment *a = &list->attachments[i];
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s#%d %s%s %.30s;", a->state, a->attempt,
                 a->superseded ? "superseded " : "", a->status, a->description);
    }
    assert_string_equal(text, expected);
    rv_attachment_list_free(list);
}

static void wait_for_status(struct rig *rig, const char *run_id, int status)
{
    rv_run_state *state = NULL;
    for (int i = 0; i < 40000; i++) {
        assert_int_equal(rv_state(rig->engine, run_id, &state, &rig->err), RV_OK);
        bool there = (int)state->status == status;
        rv_run_state_free(state);
        if (there)
            return;
        usleep(500);
    }
    fail_msg("run '%s' never came to status %d", run_id, status);
}

static void each_attempt_of_each_state_leaves_one(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    atomic_store(&failures, 1);
    put_stages(
        rig,
        STATE("a", "gather", "'priority':300,'agentId':'asker',") "," STATE(
            "b", "second_time",
            "'priority':200,'maxRetry':2,'dependsOn':{'in':{'state':'a'}},") "," STATE("c", "skips",
                                                                                       "'dependsOn'"
                                                                                       ":{'in':{'"
                                                                                       "state':'b'}"
                                                                                       "},"));
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    expect(rig, "r1", NULL,
           "a#0 finished {\"found\":3};b#0 errored not yet;b#1 finished worked;"
           "c#0 skipped nothing to do;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.state = "b", .latest = true), "b#1 finished worked;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.status = "errored"), "b#0 errored not yet;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.last = 2),
           "b#1 finished worked;c#0 skipped nothing to do;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.stage = "other"), "");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 1, .limit = 1), "b#0 errored not yet;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.incomplete = true), "");

    rv_attachment_list *list = NULL;
    assert_int_equal(
        rv_attachments(rig->engine, "r1", RV_ATTACHMENT_QUERY(.state = "a"), &list, &rig->err),
        RV_OK);
    char id[200];
    snprintf(id, sizeof id, "%s", list->attachments[0].id);
    assert_memory_equal(id, "[g][a][asker]_", 14);
    assert_string_equal(id + strlen(id) - 2, "_0");
    assert_string_equal(list->attachments[0].result, ""); /* not asked for */
    rv_attachment_list_free(list);
    assert_int_equal(rv_attachments(rig->engine, "r1",
                                    RV_ATTACHMENT_QUERY(.id = id, .results = true), &list,
                                    &rig->err),
                     RV_OK);
    assert_int_equal(list->count, 1);
    assert_string_equal(list->attachments[0].result, "{\"found\":3}");
    rv_attachment_list_free(list);
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.id = "[g][a][asker]_000000T000000_0"), "");

    /* The stage's result names them. */
    rv_run_state *run = NULL;
    assert_int_equal(rv_state(rig->engine, "r1", &run, &rig->err), RV_OK);
    char part[300];
    snprintf(part, sizeof part, "\"attachmentId\":\"%s\"", id);
    assert_non_null(strstr(run->results, part));
    rv_run_state_free(run);
}

static void each_attempt_has_a_log_of_its_own(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    atomic_store(&failures, 2);
    put_stages(rig, STATE("b", "second_time", "'maxRetry':2,"));
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    for (int attempt = 0; attempt <= 4; attempt++) {
        rv_log_list *list = NULL;
        assert_int_equal(rv_logs(rig->engine, "r1",
                                 RV_LOG_QUERY(.step = "b", .attempt = attempt, .level = RV_INFO,
                                              .text = "attempt"),
                                 &list, &rig->err),
                         RV_OK);
        assert_int_equal(list->count, attempt == 0 ? 3 : attempt == 4 ? 0 : 1);
        if (attempt > 0 && attempt < 4)
            assert_int_equal(list->lines[0].attempt, attempt);
        rv_log_list_free(list);
    }
}

static void a_redirect_to_a_running_state_is_a_warning_in_the_log(void **state)
{
    struct rig *rig = *state;
    size_t found = 0;
    rig_open(rig, NULL);
    atomic_store(&failures, 1);
    atomic_store(&held, true);
    put_stages(rig, STATE("b", "waits", "'priority':200,") "," STATE(
                        "a", "second_time", "'maxRetry':1,'onFailure':'b',"));
    rig_run(rig, "m", "r1", NULL);
    for (int i = 0; i < 40000 && found == 0; i++) {
        rv_log_list *list = NULL;
        assert_int_equal(rv_logs(rig->engine, "r1",
                                 RV_LOG_QUERY(.step = "a", .attempt = 1, .level = RV_WARN), &list,
                                 &rig->err),
                         RV_OK);
        found = list->count;
        if (found > 0)
            assert_string_equal(list->lines[0].message,
                                "'b' is running already: on_failure does not start it again");
        rv_log_list_free(list);
        usleep(500);
    }
    atomic_store(&held, false);
    assert_int_equal(found, 1);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    expect(rig, "r1", NULL, "a#0 errored not yet;b#0 finished ;a#1 finished worked;");
}

static void a_stage_begun_anew_supersedes_what_it_left(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    atomic_store(&failures, 1);
    put_stages(rig, STATE("a", "gather", "'priority':300,") "," STATE(
                        "b", "second_time", "'critical':true,'dependsOn':{'in':{'state':'a'}},"));
    rig_run(rig, "m", "r1", NULL);
    wait_for_status(rig, "r1", RV_SUSPENDED);
    expect(rig, "r1", NULL, "a#0 finished {\"found\":3};b#0 errored not yet;");
    assert_int_equal(rv_decide(rig->engine, "r1", RV_RESTART_STAGE, NULL, &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    expect(rig, "r1", NULL,
           "a#0 superseded finished {\"found\":3};b#0 superseded errored not yet;"
           "a#0 finished {\"found\":3};b#0 finished worked;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.latest = true),
           "a#0 finished {\"found\":3};b#0 finished worked;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.last = 9),
           "a#0 finished {\"found\":3};b#0 finished worked;");
    rv_attachment_list *list = NULL; /* no two have one id, even within a second */
    assert_int_equal(rv_attachments(rig->engine, "r1", NULL, &list, &rig->err), RV_OK);
    for (size_t i = 0; i < list->count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(list->attachments[i].id, list->attachments[k].id);
    rv_attachment_list_free(list);
}

static void what_has_not_ended_is_told_from_the_journal(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    atomic_store(&held, true);
    put_stages(rig, STATE("a", "waits", ""));
    rig_run(rig, "m", "r1", NULL);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r1", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.started", "r1");
    expect(rig, "r1", NULL, "a#0 running ;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.incomplete = true), "a#0 running ;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.incomplete = true, .older_than_ms = 3600000), "");
    assert_int_equal(rv_cancel_run(rig->engine, "r1", &rig->err), RV_OK);
    atomic_store(&held, false);
    expect(rig, "r1", NULL, "a#0 errored cut short before it had ended;");
}

/* The second one starts last and ends first. */
static void they_are_listed_in_order_of_completion(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, NULL);
    atomic_store(&held, true);
    put_stages(rig, STATE("a", "waits", "'priority':200,") "," STATE("b", "gather", ""));
    rig_run(rig, "m", "r1", NULL);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r1", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.completed", "r1");
    atomic_store(&held, false);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    expect(rig, "r1", NULL, "b#0 finished {\"found\":3};a#0 finished ;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.last = 1), "a#0 finished ;");
}

static void a_page_is_read_by_its_numbers(void **state)
{
    struct rig *rig = *state;
    rv_attachment_list *list = NULL;
    rig_open(rig, NULL);
    atomic_store(&failures, 200);
    atomic_store(&held, true);
    put_stages(rig, STATE("b", "second_time", "'priority':200,'maxRetry':200,") "," STATE(
                        "a", "waits", "'dependsOn':{'in':{'state':'b'}},"));
    rig_run(rig, "m", "r1", NULL);
    rig_follow(rig, RV_FEED_OPTS(.run_id = "r1", .from = RV_FROM_OLDEST));
    rig_until(rig, "step.completed", "r1");
    rig_until(rig, "step.started", "r1");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 63, .limit = 2),
           "b#63 errored not yet;b#64 errored not yet;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 199, .limit = 9),
           "b#199 errored not yet;b#200 finished worked;a#0 running ;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 201), "a#0 running ;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 202), "");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.last = 2),
           "b#199 errored not yet;b#200 finished worked;");
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.last = 3, .offset = 1, .limit = 1),
           "b#199 errored not yet;");
    assert_int_equal(
        rv_attachments(rig->engine, "r1", RV_ATTACHMENT_QUERY(.limit = 1), &list, &rig->err),
        RV_OK);
    assert_int_equal(list->total, 202);
    rv_attachment_list_free(list);
    atomic_store(&held, false);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    expect(rig, "r1", RV_ATTACHMENT_QUERY(.offset = 200), "b#200 finished worked;a#0 finished ;");
}

static void a_long_result_is_read_where_it_is(void **state)
{
    struct rig *rig = *state;
    rv_attachment_list *list = NULL;
    rig_open(rig, NULL);
    put_stages(rig, STATE("a", "long_one", ""));
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(
        rv_attachments(rig->engine, "r1", RV_ATTACHMENT_QUERY(.results = true), &list, &rig->err),
        RV_OK);
    assert_int_equal(strlen(list->attachments[0].result), 39999 + 2);
    assert_int_equal(strlen(list->attachments[0].description), 2000 + strlen("…"));
    rv_attachment_list_free(list);
    assert_int_equal(rv_attachments(rig->engine, "r1", NULL, &list, &rig->err), RV_OK);
    assert_int_equal(strlen(list->attachments[0].description), 200); /* in a list */
    rv_attachment_list_free(list);
}

static void they_go_with_an_export_and_leave_with_retention(void **state)
{
    struct rig *rig = *state;
    char file[120];
    rig_open(rig, NULL);
    atomic_store(&failures, 1);
    put_stages(rig, STATE("b", "second_time", "'maxRetry':1,"));
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    snprintf(file, sizeof file, "%s/r1.export", rig->folder);
    assert_int_equal(rv_export(rig->engine, "r1", RV_EXPORT_OPTS(.path = file), &rig->err), RV_OK);
    uint64_t gone = 0;
    while (gone == 0) { /* until it is older than that */
        assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_age_ms = 1), &gone, &rig->err),
                         RV_OK);
        usleep(1000);
    }
    rv_attachment_list *list = NULL;
    assert_int_equal(rv_attachments(rig->engine, "r1", NULL, &list, &rig->err), RV_ENOTFOUND);
    if (rv_import(rig->engine, RV_IMPORT_OPTS(.path = file), NULL, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    expect(rig, "r1", NULL, "b#0 errored not yet;b#1 finished worked;");
}

static void bad_questions_are_refused(void **state)
{
    struct rig *rig = *state;
    rv_attachment_list *list = NULL;
    rig_open(rig, NULL);
    put_stages(rig, STATE("a", "gather", ""));
    assert_int_equal(rv_attachments(rig->engine, "none", NULL, &list, &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_attachments(rig->engine, "no id!", NULL, &list, &rig->err), RV_EINVAL);
    assert_int_equal(
        rv_attachments(rig->engine, "r1", RV_ATTACHMENT_QUERY(.status = "done"), &list, &rig->err),
        RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "finished, errored, skipped"));
    assert_int_equal(
        rv_attachments(rig->engine, "r1", &(rv_attachment_query){ .size = 0 }, &list, &rig->err),
        RV_EINVAL);
    assert_int_equal(rv_attachments(NULL, "r1", NULL, &list, &rig->err), RV_EINVAL);
    assert_int_equal(rv_attachments(rig->engine, "r1", NULL, NULL, &rig->err), RV_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(each_attempt_of_each_state_leaves_one),
        RIG_TEST(each_attempt_has_a_log_of_its_own),
        RIG_TEST(a_redirect_to_a_running_state_is_a_warning_in_the_log),
        RIG_TEST(a_stage_begun_anew_supersedes_what_it_left),
        RIG_TEST(what_has_not_ended_is_told_from_the_journal),
        RIG_TEST(they_are_listed_in_order_of_completion),
        RIG_TEST(a_page_is_read_by_its_numbers),
        RIG_TEST(a_long_result_is_read_where_it_is),
        RIG_TEST(they_go_with_an_export_and_leave_with_retention),
        RIG_TEST(bad_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
