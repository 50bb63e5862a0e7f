/* test_trouble.c: answers when something is short or refused: too long a request, no room for the answer, no
 * memory, a suspended run, a store that cannot be written. For src/server/. */
#include "unit/engine/rig.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "unit/server/api_world.h"

/* Nesting, length and number of what is sent are bounded. */
static void what_is_too_much_is_refused(void **state)
{
    struct api_world *w = *state;
    static char body[4000], line[8000];
    snprintf(body, sizeof body, "{\"input\":");
    memset(body + 9, '[', 490);
    memset(body + 499, ']', 490);
    snprintf(body + 989, sizeof body - 989, "}");
    api_ask(w, "POST /api/v1/workflows/ask/runs", body);
    assert_int_equal(w->answer.status, 413);
    memset(line, 'a', sizeof line - 1);
    memcpy(line, "GET /", 5);
    api_ask(w, line, NULL);
    assert_int_equal(w->answer.status, 414);
    snprintf(line, sizeof line, "GET /api/v1/runs/%0200d", 0);
    api_ask(w, line, NULL);
    assert_int_equal(w->answer.status, 404);
}

/* A run with an input of 400 kB, and answers that have so much room. */
static void with_room(struct api_world *w, size_t memory, size_t disk)
{
    enum { LONG = 400000 };
    w->room = calloc(1, sizeof *w->room);
    w->kept = calloc(1, LONG + 3);
    assert_true(w->room != NULL && w->kept != NULL);
    rv__room_init(w->room, memory, disk);
    memset(w->kept, 'x', LONG + 2);
    w->kept[0] = w->kept[LONG + 1] = '"';
    api_begin(w, "ask", "long", w->kept);
}

static size_t used(const struct api_world *w, enum rv__room_kind kind)
{
    return atomic_load(&w->room->used[kind]);
}

static void a_long_answer_is_in_a_file(void **state)
{
    struct api_world *w = *state;
    char text[64];
    with_room(w, 1 << 20, 1 << 20);
    api_ask(w, "GET /api/v1/runs/long", NULL);
    assert_true(w->answer.status == 200 && w->answer.in_file && w->answer.body == NULL);
    assert_true(w->answer.length > 400000 && used(w, RV__ROOM_MEMORY) == 0);
    assert_int_equal(used(w, RV__ROOM_DISK), w->answer.length);
    assert_int_equal(pread(w->answer.file, text, 15, 0), 15);
    assert_memory_equal(text, "{\"runId\":\"long\"", 15);
    assert_int_equal(pread(w->answer.file, text, 64, (off_t)w->answer.length - 2), 2);
    assert_memory_equal(text, "]}", 2); /* the last of its nodes, and nothing behind it */
    int file = w->answer.file;
    rv__api_answer_done(&w->answer);
    assert_int_equal(used(w, RV__ROOM_DISK), 0);
    assert_int_equal(fcntl(file, F_GETFD), -1); /* closed */
}

static void an_answer_without_room_is_refused(void **state)
{
    struct api_world *w = *state;
    with_room(w, 5000, 390000);
    api_ask(w, "GET /api/v1/runs/long", NULL);
    api_expect(w, "no room on disk", 503, "{'detail':'*','title':'Service unavailable'}");
    assert_int_equal(used(w, RV__ROOM_DISK), 0);
    api_ask(w, "GET /openapi.json", NULL);
    api_expect(w, "none in memory", 503, "{'detail':'*'}");
    api_ask(w, "GET /api/v1/runs/done?results=0", NULL);
    assert_int_equal(w->answer.status, 200); /* small enough to need none, or to have it */
    rv__api_answer_done(&w->answer);
    assert_int_equal(used(w, RV__ROOM_MEMORY), 0);
}

/* Where no file can be made, that is told, and no room stays taken. */
static void a_disk_that_refuses_is_told(void **state)
{
    struct api_world *w = *state;
    with_room(w, 1 << 20, 1 << 20);
    setenv("TMPDIR", "/no/such/folder", 1);
    api_ask(w, "GET /api/v1/runs/long", NULL);
    unsetenv("TMPDIR");
    api_expect(w, "no file", 503, "{'detail':'*'}");
    assert_int_equal(used(w, RV__ROOM_DISK), 0);
}

/* There is an answer whatever allocation fails, and in the end the right one. */
static void without_memory_there_is_still_an_answer(void **state)
{
    struct api_world *w = *state;
    static const char *const paths[] = { "/api/v1/runs", "/api/v1/runs/done/logs", "/openapi.json",
                                         "/api/v1/runs/done/nodes", "/api/v1/runs/nix" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct rv__api_request request = { .method = "GET",
                                                 .path = paths[i],
                                                 .role = RV__ROLE_VIEWER };
        int hit = 1;
        for (long n = 0; hit; n++) {
            rv__api_answer_done(&w->answer);
            rv__test_fail_alloc_after(n);
            rv__api_handle(w->engine, &request, &w->answer);
            hit = rv__test_alloc_failed();
            rv__test_fail_alloc_after(-1);
            assert_true(w->answer.status >= 200 && w->answer.type != NULL);
            assert_true(w->answer.length == 0 || w->answer.body != NULL);
            assert_true(!hit || w->answer.status >= 400);
        }
        assert_true(w->answer.status == (strstr(paths[i], "nix") != NULL ? 404 : 200));
    }
}

static struct rv__api_answer ask(struct rig *rig, const char *method, const char *path,
                                 const char *body)
{
    struct rv__api_answer answer;
    rv__api_handle(rig->engine,
                   &(struct rv__api_request){ .method = method,
                                              .path = path,
                                              .content_type = "application/json",
                                              .body = body,
                                              .body_length = body != NULL ? strlen(body) : 0,
                                              .role = RV__ROLE_OPERATOR,
                                              .by = "kim" },
                   &answer);
    return answer;
}

static void expect_ask(struct rig *rig, const char *method, const char *path, const char *body,
                       int status, const char *part)
{
    struct rv__api_answer answer = ask(rig, method, path, body);
    if (answer.status != status || strstr(answer.body, part) == NULL)
        fail_msg("%s: %d %s", path, answer.status, answer.body);
    rv__api_answer_done(&answer);
}

static int an_hour(rv_ctx *c)
{
    rv_test_takes(c, 3600000);
    return 0;
}

static void a_suspended_run_is_decided_about(void **state)
{
    struct rig *rig = *state;
    rv_workflow *w = rv_workflow_new("w");
    assert_int_equal(rv_test_engine_new(RV_TEST_OPTS(.max_crashes = 1), &rig->engine, &rig->err),
                     RV_OK);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "two", an_hour, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r1", NULL);
    rig_run(rig, "w", "r2", NULL);
    expect_ask(rig, "POST", "/api/v1/runs/r1/signals/go", NULL, 200, "r1");
    for (int i = 0; i < 4; i++) { /* it is in flight whenever the engine dies */
        assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
        assert_int_equal(rv_test_crash(rig->engine, &rig->err), RV_OK);
    }
    assert_int_equal(rv_test_advance(rig->engine, 1000, &rig->err), RV_OK);
    expect_ask(rig, "GET", "/api/v1/runs/r1", NULL, 200, "\"status\":\"suspended\"");
    expect_ask(rig, "GET", "/api/v1/runs/r1", NULL, 200, "\"suspension\":{\"message\":");
    expect_ask(rig, "GET", "/api/v1/runs/r1/nodes", NULL, 200, "\"status\":\"suspended\"");
    expect_ask(rig, "GET", "/api/v1/overview", NULL, 200,
               "\"runId\":\"r1\",\"workflow\":\"w\",\"status\":\"suspended\"");
    expect_ask(rig, "GET", "/api/v1/overview", NULL, 200, "\"suspension\":{\"message\":");
    expect_ask(rig, "GET", "/api/v1/runs/r1/wait?x", NULL, 404, "nothing at this address");
    expect_ask(rig, "POST", "/api/v1/runs/r1/decide", "{\"action\":\"restart_stage\"}", 409,
               "\"paths\":[\"two\"]");
    expect_ask(rig, "GET", "/api/v1/runs/r1", NULL, 200,
               "\"suspensions\":[{\"path\":\"two\",\"reason\":{");
    expect_ask(rig, "GET", "/api/v1/runs/r1", NULL, 200, "\"actions\":[\"resume\",\"abort\"]}]");
    expect_ask(rig, "GET", "/api/v1/runs", NULL, 200, "\"suspensions\":[{\"path\":\"two\"");
    expect_ask(rig, "POST", "/api/v1/runs/r1/decide",
               "{\"action\":\"abort\",\"reason\":\"enough\"}", 200, "r1");
    assert_int_equal(rig_wait(rig, "r1"), RV_FAILED);
    expect_ask(rig, "GET", "/api/v1/runs/r1/wait", NULL, 200, "\"error\":{\"message\":\"enough\"");
    expect_ask(rig, "GET", "/api/v1/runs/r1/history", NULL, 200, "\"kind\":\"run.aborted\"");
    expect_ask(rig, "GET", "/api/v1/runs/r1/history", NULL, 200, "\"by\":\"kim\"");
    expect_ask(rig, "GET", "/api/v1/workflows/w", NULL, 200, "\"plan\":{");
    assert_int_equal(rv_unregister(rig->engine, "w", &rig->err), RV_OK);
    expect_ask(rig, "GET", "/api/v1/workflows/w", NULL, 404, "there is no workflow 'w'");
    rv_engine_close(rig->engine);
    expect_ask(rig, "POST", "/api/v1/runs/r2/cancel", NULL, 503, "closed");
    expect_ask(rig, "GET", "/readyz", NULL, 503, "closed");
    expect_ask(rig, "GET", "/healthz", NULL, 200, "ok");
}

static void *send_signal(void *arg)
{
    struct rig *rig = arg;
    (void)rv_signal_with(rig->engine, "r", "other", NULL, RV_SIGNAL_OPTS(.force = true),
                         NULL); /* waits until the store is back */
    return NULL;
}

static void a_store_that_refuses_is_told(void **state)
{
    struct rig *rig = *state;
    sqlite3 *other = NULL;
    pthread_t thread;
    rv_health health = { .stuck = false };
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rig_put(rig, w);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(sqlite3_open(rig->store, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pthread_create(&thread, NULL, send_signal, rig), 0);
    for (int i = 0; i < 20000 && !health.stuck; i++) {
        assert_int_equal(rv_engine_health(rig->engine, &health, NULL), RV_OK);
        usleep(1000);
    }
    assert_true(health.stuck);
    expect_ask(rig, "POST", "/api/v1/runs/r/cancel", NULL, 503, "nothing was changed");
    expect_ask(rig, "GET", "/readyz", NULL, 503, "\"attempts\":");
    expect_ask(rig, "GET", "/healthz", NULL, 200, "ok");
    expect_ask(rig, "GET", "/api/v1/runs", NULL, 200, "\"r\"");
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    pthread_join(thread, NULL);
    expect_ask(rig, "GET", "/readyz", NULL, 200, "ok");
    expect_ask(rig, "POST", "/api/v1/runs/r/cancel", NULL, 200, "cancelled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(what_is_too_much_is_refused),
        API_TEST(a_long_answer_is_in_a_file),
        API_TEST(an_answer_without_room_is_refused),
        API_TEST(a_disk_that_refuses_is_told),
        API_TEST(without_memory_there_is_still_an_answer),
        RIG_TEST(a_suspended_run_is_decided_about),
        RIG_TEST(a_store_that_refuses_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
