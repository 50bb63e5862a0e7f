/* test_access.c: what agents in code, and those of workers, see and read through their scope, and the record of it.
 * For src/work/access.c and rv_read_as(). What a user meets is in tests/e2e/scopes.sh. */
#include "unit/engine/rig.h"

#include "work/work.h"

enum { SCOPES = 4 };
static const char *const scopes[SCOPES] = { "none", "logs", "explicit", "all" };

/* What it could see and read, a word each. */
static int looks(rv_ctx *c)
{
    char text[200] = "";
    const char *const paths[][2] = { { ".inputs.x", "inputs" },
                                     { ".steps.before.result", "steps" },
                                     { ".lastStep.result", "last" } };
    for (size_t i = 0; i < 3; i++)
        if (rv_json(c, paths[i][0]) != NULL)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", paths[i][1]);
    const char *all = rv_json(c, ".");
    if (all != NULL && strstr(all, "hidden words") != NULL)
        snprintf(text + strlen(text), sizeof text - strlen(text), "context ");
    return rv_return(c, "s", text);
}

/* As the tools of a chat do. */
static int reads(rv_ctx *c)
{
    char text[300] = "";
    rv_log_list *logs = NULL;
    rv_attachment_list *list = NULL;
    rv_error err = { .code = 0 };
    char given[100] = "", other[100] = "";
    if (rv__access_logs(c, RV_LOG_QUERY(.limit = 2), "tool_logs", &logs, &err) == RV_OK) {
        snprintf(text, sizeof text, "logs%zu ", logs->count);
        for (size_t i = 0; i < logs->count; i++)
            if (strcmp(logs->lines[i].message, "for people") == 0)
                snprintf(text, sizeof text, "LEAK ");
    } else if (err.code != RV_EDENIED) {
        return rv_fail(c, "%s", err.message);
    }
    rv_log_list_free(logs);
    if (rv__access_attachments(c, NULL, "tool_list", &list, &err) == RV_OK)
        snprintf(text + strlen(text), sizeof text - strlen(text), "list ");
    rv_attachment_list_free(list);
    list = NULL; /* what they are called, it knows from elsewhere */
    if (rv_attachments(rv_ctx_engine(c), rv_ctx_run_id(c), RV_ATTACHMENT_QUERY(.stage = "before"),
                       &list, &err) < 0)
        return rv_fail(c, "%s", err.message);
    for (size_t i = 0; i < list->count; i++)
        snprintf(strcmp(list->attachments[i].state, "one") == 0 ? other : given, 100, "%s",
                 list->attachments[i].id);
    rv_attachment_list_free(list);
    for (int i = 0; i < 2; i++) {
        list = NULL;
        if (rv__access_attachments(
                c, RV_ATTACHMENT_QUERY(.id = i == 0 ? given : other, .results = true), "tool_get",
                &list, &err) == RV_OK)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%zu ",
                     i == 0 ? "given" : "other", list->count);
        rv_attachment_list_free(list);
    }
    if (rv__access_read(c, RV_READ_RUN, "nodes", "tool_nodes", &err) == RV_OK)
        snprintf(text + strlen(text), sizeof text - strlen(text), "run ");
    if (rv__access_attachments(c, RV_ATTACHMENT_QUERY(.results = true), "x", &list, &err) !=
        RV_EINVAL) /* that would be all of them at once */
        snprintf(text, sizeof text, "LEAK ");
    return rv_return(c, "s", text);
}

static int says(rv_ctx *c)
{
    for (int i = 0; i < 5; i++)
        rv_log(c, RV_INFO, "{\"public\":false}", "for people");
    rv_log_info(c, "for all");
    rv_log(c, RV_INFO, "{\"public\":true}", "for all, too");
    return rv_return(c, "s", "hidden words");
}

/* "before" has one and two; "then" a state of each scope, which depends on two. */
static void define(struct rig *rig, const char *agent, const char *more)
{
    char path[120];
    snprintf(path, sizeof path, "%s/m.yaml", rig->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "name: m\nstages:\n  before:\n    - { name: one, agent_id: says }\n"
                  "    - { name: two, agent_id: says }\n  then:\n");
    for (int i = 0; i < SCOPES; i++)
        fprintf(file,
                "    - { name: %s, agent_id: %s, accessibility: %s, depends_on: { x: { state: two, "
                "stage: before } } }\n",
                scopes[i], agent, scopes[i]);
    fprintf(file, "%s", more);
    fclose(file);
    if (rv_register_file(rig->engine, path, RV_FILE_OPTS(.replace = true), &rig->err) < 0)
        fail_msg("%s", rig->err.message);
}

static void gave(const char *results, const char *state, const char *expected)
{
    char part[300];
    snprintf(part, sizeof part, "\"%s\":{\"status\":\"completed\",\"result\":\"%s\"", state,
             expected);
    if (strstr(results, part) == NULL)
        fail_msg("expected %s in %s", part, results);
}

static void expect(struct rig *rig, const char *run_id, const char *const expected[SCOPES])
{
    rv_run_state *run = NULL;
    assert_int_equal(rig_wait(rig, run_id), RV_COMPLETED);
    assert_int_equal(rv_state(rig->engine, run_id, &run, &rig->err), RV_OK);
    for (int i = 0; i < SCOPES; i++)
        gave(run->results, scopes[i], expected[i]);
    rv_run_state_free(run);
}

/* "path what by;" of each read of the run, as the feed has them. */
static void take_reads(struct rig *rig, const char *run_id, char *text, size_t size)
{
    rv_feed *feed = NULL;
    rv_event event;
    text[0] = '\0';
    assert_int_equal(
        rv_feed_open(rig->engine,
                     RV_FEED_OPTS(.run_id = run_id, .from = RV_FROM_OLDEST, .no_logs = true), &feed,
                     &rig->err),
        RV_OK);
    do {
        assert_int_equal(rv_feed_next(feed, 60000, NULL, &event, &rig->err), RV_OK);
        if (strcmp(event.kind, "step.read") == 0)
            snprintf(text + strlen(text), size - strlen(text), "%s %s;", event.path,
                     strstr(event.json, "\"what\":"));
    } while (strcmp(event.kind, "run.completed") != 0);
    rv_feed_close(feed);
}

static void open_with_agents(struct rig *rig)
{
    rig_open(rig, RV_ENGINE_OPTS(.control = true));
    assert_int_equal(rv_agent(rig->engine, "says", says, NULL, &rig->err), RV_OK);
    assert_int_equal(rv_agent(rig->engine, "looks", looks, NULL, &rig->err), RV_OK);
    assert_int_equal(rv_agent(rig->engine, "reads", reads, NULL, &rig->err), RV_OK);
}

static void a_function_sees_its_scope(void **state)
{
    struct rig *rig = *state;
    char text[2000];
    static const char *const expected[SCOPES] = { "", "", "inputs ", "inputs steps last context " };
    open_with_agents(rig);
    define(rig, "looks", "");
    rig_run(rig, "m", "r1", NULL);
    expect(rig, "r1", expected);
    take_reads(rig, "r1", text, sizeof text);
    if (strstr(text, "then:all \"what\":\"steps/before\",\"through\":\"context\"") == NULL ||
        strstr(text, "then:all \"what\":\"steps\"") == NULL || strstr(text, "then:none") != NULL ||
        strstr(text, "then:explicit") != NULL)
        fail_msg("%s", text);
}

static void what_tools_read_is_on_disk_with_their_answer(void **state)
{
    struct rig *rig = *state;
    char text[4000];
    static const char *const expected[SCOPES] = { "", "logs2 list ", "logs2 list given1 ",
                                                  "logs2 list given1 other1 run " };
    open_with_agents(rig);
    define(rig, "reads", "");
    rig_run(rig, "m", "r1", NULL);
    expect(rig, "r1", expected);
    take_reads(rig, "r1", text, sizeof text);
    static const char *const noted[] = {
        "then:logs \"what\":\"logs\",\"through\":\"tool_logs\"",
        "then:logs \"what\":\"attachments\",\"through\":\"tool_list\"",
        "then:explicit \"what\":\"attachments/[before][two]",
        "then:all \"what\":\"attachments/[before][one]",
        "then:all \"what\":\"nodes\",\"through\":\"tool_nodes\"",
    };
    for (size_t i = 0; i < sizeof noted / sizeof *noted; i++)
        if (strstr(text, noted[i]) == NULL)
            fail_msg("no %s in %s", noted[i], text);
    assert_null(strstr(text, "then:none"));
    assert_null(strstr(text, "then:explicit \"what\":\"attachments/[before][one]"));
}

static void *run_worker(void *arg)
{
    rv_error err;
    (void)rv_worker_run(((void **)arg)[0], ((void **)arg)[1], &err);
    return NULL;
}

static void a_worker_sees_no_more(void **state)
{
    struct rig *rig = *state;
    char address[120], text[2000];
    static const char *const expected[SCOPES] = { "", "", "inputs ", "inputs steps last context " };
    rv_worker *worker = NULL;
    rv_cancel *stop = rv_cancel_new(NULL);
    pthread_t thread;
    rig_open(rig, RV_ENGINE_OPTS(.control = true));
    assert_int_equal(rv_agent(rig->engine, "says", says, NULL, &rig->err), RV_OK);
    snprintf(address, sizeof address, "%s.sock", rig->store);
    if (rv_worker_new(RV_WORKER_OPTS(.address = address, .name = "w", .credits = 4), &worker,
                      &rig->err) < 0 ||
        rv_worker_function(worker, "looks", looks, &rig->err) < 0)
        fail_msg("%s", rig->err.message);
    void *arg[] = { worker, stop };
    assert_int_equal(pthread_create(&thread, NULL, run_worker, arg), 0);
    define(rig, "looks", "agents: [{ id: looks, call: looks }]\n");
    rig_run(rig, "m", "r1", NULL); /* it waits for the worker */
    int status = rig_wait(rig, "r1");
    rv_cancel_fire(stop, 0, NULL);
    pthread_join(thread, NULL);
    rv_worker_free(worker);
    rv_cancel_free(stop);
    assert_int_equal(status, RV_COMPLETED);
    expect(rig, "r1", expected);
    take_reads(rig, "r1", text, sizeof text);
    if (strstr(text, "then:all \"what\":\"steps/before\"") == NULL ||
        strstr(text, "then:none") != NULL || strstr(text, "then:explicit") != NULL)
        fail_msg("%s", text);
}

static void private_lines_are_left_out_and_pages_are_full(void **state)
{
    struct rig *rig = *state;
    rv_log_list *logs = NULL;
    open_with_agents(rig);
    define(rig, "looks", "");
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    assert_int_equal(rv_logs(rig->engine, "r1",
                             RV_LOG_QUERY(.path = "before", .limit = 3, .for_agents = true), &logs,
                             &rig->err),
                     RV_OK);
    assert_int_equal(logs->count, 3);
    uint64_t after = logs->next;
    rv_log_list_free(logs);
    assert_int_equal(
        rv_logs(rig->engine, "r1",
                RV_LOG_QUERY(.path = "before", .limit = 3, .for_agents = true, .after = after),
                &logs, &rig->err),
        RV_OK);
    assert_int_equal(logs->count, 1);
    rv_log_list_free(logs);
}

static void misuse_is_refused(void **state)
{
    struct rig *rig = *state;
    open_with_agents(rig);
    define(rig, "looks", "");
    rig_run(rig, "m", "r1", NULL);
    assert_int_equal(rig_wait(rig, "r1"), RV_COMPLETED);
    const struct {
        const char *token;
        const rv_read *read;
        int rc;
    } rows[] = {
        { NULL, RV_READ(.run_id = "r1", .what = RV_READ_LOGS), RV_EINVAL },
        { "rvx_1", NULL, RV_EINVAL },
        { "rvx_1", RV_READ(.run_id = "r1", .what = 0), RV_EINVAL },
        { "rvx_1", RV_READ(.run_id = "r1", .what = 99), RV_EINVAL },
        { "rvx_1", RV_READ(.run_id = "r1", .what = RV_READ_LOGS), RV_ENOTFOUND },
        { "", RV_READ(.run_id = "r1", .what = RV_READ_LOGS), RV_ENOTFOUND },
        { "rvx_1", RV_READ(.run_id = "nothing", .what = RV_READ_LOGS), RV_ENOTFOUND },
        { "rvx_1", RV_READ(.run_id = "not an id", .what = RV_READ_LOGS), RV_EINVAL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rv_read_as(rig->engine, rows[i].token, rows[i].read, &rig->err) != rows[i].rc)
            fail_msg("row %zu: %s", i, rig->err.message);
    assert_int_equal(rv_engine_set_url(rig->engine, "", &rig->err), RV_EINVAL);
    assert_int_equal(rv_engine_set_url(rig->engine, "http://127.0.0.1:1", &rig->err), RV_OK);
    assert_int_equal(rv_engine_set_url(rig->engine, "http://127.0.0.1:2", &rig->err), RV_ESTATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_function_sees_its_scope),
        RIG_TEST(what_tools_read_is_on_disk_with_their_answer),
        RIG_TEST(a_worker_sees_no_more),
        RIG_TEST(private_lines_are_left_out_and_pages_are_full),
        RIG_TEST(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
