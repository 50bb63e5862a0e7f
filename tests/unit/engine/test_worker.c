/* test_worker.c: rv_worker_…: a worker against a real engine, by the socket beside the store and by TCP. For
 * src/work/worker.c, src/work/remote_ctx.c and src/engine/remote.c. */
#include "unit/engine/rig.h"

#include <pthread.h>
#include <unistd.h>

enum { MANY = 40 };

struct fixture {
    struct rig *rig;
    rv_worker *worker;
    rv_workflow *workflow, *inner;
    rv_cancel *stop;
    pthread_t thread;
    bool runs;
    int rc;
    rv_error err;
};

static atomic_int calls, told, slow_began;
static atomic_bool hold;

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    void *rig = NULL;
    if (fx == NULL || rig_setup(&rig) < 0)
        return -1;
    fx->rig = rig;
    calls = told = slow_began = 0;
    hold = false;
    *state = fx;
    return 0;
}

static void stop_worker(struct fixture *fx)
{
    if (!fx->runs)
        return;
    rv_cancel_fire(fx->stop, 0, NULL);
    pthread_join(fx->thread, NULL);
    fx->runs = false;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    void *rig = fx->rig;
    hold = false;
    stop_worker(fx);
    rv_worker_free(fx->worker);
    rv_workflow_free(fx->workflow);
    rv_workflow_free(fx->inner);
    rv_cancel_free(fx->stop);
    free(fx);
    return rig_teardown(&rig);
}

static int one(rv_ctx *c)
{
    calls++;
    rv_log_info(c, "one of %s", rv_str(c, ".input.name"));
    return rv_return(c, "{s:I}", "n", rv_int(c, ".input.n", -1) + 1);
}

static int two(rv_ctx *c)
{
    char large[3000]; /* longer than what comes along with an invocation */
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    rv_describe(c, "two of %lld", (long long)rv_int(c, ".steps.one.result.n", -1));
    return rv_return(c, "{s:I,s:s}", "n", rv_int(c, ".steps.one.result.n", -1) * 10, "s", large);
}

static int three(rv_ctx *c)
{
    if (strlen(rv_str(c, ".lastStep.result.s")) != 2999)
        return rv_fail(c, "the long text has %zu characters",
                       strlen(rv_str(c, ".lastStep.result.s")));
    return rv_return(c, "I", rv_int(c, ".steps.two.result.n", -1));
}

static int bad(rv_ctx *c)
{
    return rv_stop(c, "it does not work for %s", rv_str(c, ".run.runId"));
}

static int slow(rv_ctx *c)
{
    slow_began++;
    while (hold && !rv_ctx_cancelled(c))
        usleep(1000);
    told += rv_ctx_cancelled(c);
    return rv_return(c, "s", rv_str(c, ".input.name"));
}

static void *run_worker(void *arg)
{
    struct fixture *fx = arg;
    fx->rc = rv_worker_run(fx->worker, fx->stop, &fx->err);
    return NULL;
}

static void start_worker(struct fixture *fx, const char *address, const char *token)
{
    rv_error err;
    fx->inner = rv_workflow_new("inner");
    rv_add_step(rv_workflow_body(fx->inner), "three", three, NULL);
    fx->workflow = rv_workflow_new("w");
    rv_body *body = rv_workflow_body(fx->workflow);
    rv_add_step(body, "one", one, NULL);
    rv_add_step(body, "two", two, NULL);
    rv_add_workflow(body, "in", "inner");
    rv_workflow_function(fx->workflow, "unused", slow);
    fx->stop = rv_cancel_new(NULL);
    if (rv_worker_new(
            RV_WORKER_OPTS(.address = address, .token = token, .name = "test", .credits = 8),
            &fx->worker, &err) < 0 ||
        rv_worker_offer(fx->worker, fx->inner, &err) < 0 ||
        rv_worker_offer(fx->worker, fx->workflow, &err) < 0 ||
        rv_worker_function(fx->worker, "slow", slow, &err) < 0 ||
        rv_worker_function(fx->worker, "bad", bad, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(pthread_create(&fx->thread, NULL, run_worker, fx), 0);
    fx->runs = true;
}

static const char *socket_of(struct fixture *fx, char room[300])
{
    snprintf(room, 300, "%s.sock", fx->rig->store);
    return room;
}

/* A workflow of the engine's own, which calls functions that are the worker's. */
static void put_callers(struct fixture *fx)
{
    rv_workflow *w = rv_workflow_new("calls");
    rv_add(rv_workflow_body(w), RV_CALL("slow", .alias = "slow"));
    rig_put(fx->rig, w);
    w = rv_workflow_new("fails");
    rv_add(rv_workflow_body(w), RV_CALL("bad", .alias = "bad"));
    rig_put(fx->rig, w);
}

static void eventually_here(struct fixture *fx)
{
    for (int tries = 0; rv_worker_state(fx->worker, NULL) == 0; tries++) {
        if (tries == 2000)
            fail_msg("the worker is not there: %s", fx->err.message);
        usleep(10000);
    }
}

/* The worker's workflow is known some time after it has connected. */
static void begin(struct fixture *fx, const char *workflow, const char *run_id, const char *input)
{
    int rc = RV_ENOTFOUND;
    for (int tries = 0; tries < 2000 && rc == RV_ENOTFOUND; tries++) {
        rc = rv_run(fx->rig->engine, workflow, input, RV_RUN_OPTS(.run_id = run_id), NULL,
                    &fx->rig->err);
        if (rc == RV_ENOTFOUND)
            usleep(10000);
    }
    if (rc < 0)
        fail_msg("%s", fx->rig->err.message);
}

static void ends(struct fixture *fx, const char *run_id, int status, const char *part)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(fx->rig->engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = 60000), &outcome,
                &fx->rig->err) < 0)
        fail_msg("%s", fx->rig->err.message);
    if (outcome->status != status ||
        (strstr(outcome->results, part) == NULL && strstr(outcome->error, part) == NULL))
        fail_msg("%s: %s %s, expected %s", rv_status_name(outcome->status), outcome->results,
                 outcome->error, part);
    rv_outcome_free(outcome);
}

/* ---------------------------------------------------------------------------------- tests --- */

static void its_functions_are_those_of_any_program(void **state)
{
    struct fixture *fx = *state;
    char room[300], id[16];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    put_callers(fx);
    start_worker(fx, socket_of(fx, room), NULL);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "r%d", i);
        begin(fx, "w", id, "{\"n\":4,\"name\":\"kim\"}");
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "r%d", i);
        ends(fx, id, RV_COMPLETED, "\"result\":50");
    }
    assert_int_equal(calls, MANY); /* each once */
    begin(fx, "fails", "f", NULL);
    ends(fx, "f", RV_FAILED, "it does not work for f");
    begin(fx, "calls", "c", "{\"name\":\"kim\"}");
    ends(fx, "c", RV_COMPLETED, "\"result\":\"kim\"");
    stop_worker(fx);
    assert_int_equal(fx->rc, RV_OK);
}

static bool admits(void *arg, const char *token, const char *from)
{
    assert_true(strncmp(from, "127.0.0.1:", 10) == 0);
    return strcmp(token, arg) == 0;
}

static void listen_here(struct fixture *fx, const char *token, char address[64])
{
    uint16_t port = 0;
    if (rv_workers_listen(fx->rig->engine,
                          RV_WORKERS_OPTS(.listen = "127.0.0.1:0", .admits = admits,
                                          .arg = (void *)(uintptr_t)token),
                          &port, &fx->rig->err) < 0)
        fail_msg("%s", fx->rig->err.message);
    snprintf(address, 64, "tcp://127.0.0.1:%u", port);
}

static void a_connection_that_is_cut_costs_nothing(void **state)
{
    struct fixture *fx = *state;
    char address[64];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    put_callers(fx);
    listen_here(fx, "good", address);
    start_worker(fx, address, "good");
    hold = true;
    begin(fx, "calls", "c", "{\"name\":\"kim\"}");
    while (slow_began == 0)
        usleep(1000);
    assert_int_equal(rv_workers_again(fx->rig->engine, NULL), RV_OK);
    for (int tries = 0; tries < 500 && rv_worker_state(fx->worker, NULL) == 1; tries++)
        usleep(1000);
    eventually_here(fx);
    hold = false; /* what it asks for now is asked for on the other connection */
    ends(fx, "c", RV_COMPLETED, "\"result\":\"kim\"");
    assert_int_equal(slow_began, 1); /* it was not begun again */
    assert_int_equal(told, 0);
    char *who = NULL;
    assert_int_equal(rv_workers(fx->rig->engine, &who, NULL), RV_OK);
    assert_non_null(strstr(who, "{\"name\":\"test\",\"credits\":8,\"busy\":0,\"local\":false}"));
    rv_free(who);
}

static void who_is_not_wanted_learns_why(void **state)
{
    struct fixture *fx = *state;
    char address[64];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    listen_here(fx, "good", address);
    start_worker(fx, address, "wrong");
    pthread_join(fx->thread, NULL);
    fx->runs = false;
    assert_int_equal(fx->rc, RV_EINVAL);
    assert_string_equal(fx->err.message, "there is no such token of role worker");
}

static void a_name_that_is_taken_is_refused(void **state)
{
    struct fixture *fx = *state;
    char room[300];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    rv_workflow *w = rv_workflow_new("w");
    rv_add_delay(rv_workflow_body(w), "d", 1);
    rig_put(fx->rig, w);
    start_worker(fx, socket_of(fx, room), NULL);
    pthread_join(fx->thread, NULL);
    fx->runs = false;
    assert_int_equal(fx->rc, RV_EEXIST);
    assert_non_null(strstr(fx->err.message, "already registered, by the program"));
}

static void it_finds_the_next_engine(void **state)
{
    struct fixture *fx = *state;
    char room[300];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true, .grace_ms = 100));
    put_callers(fx);
    start_worker(fx, socket_of(fx, room), NULL);
    hold = true;
    begin(fx, "calls", "c", "{\"name\":\"kim\"}");
    while (slow_began == 0)
        usleep(1000);
    rig_close(fx->rig); /* it is told to stop, and what it returns is nobody's */
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    put_callers(fx);
    hold = false;
    ends(fx, "c", RV_COMPLETED, "\"result\":\"kim\"");
    begin(fx, "w", "r", "{\"n\":1}");
    ends(fx, "r", RV_COMPLETED, "\"result\":20");
}

static void stopped_it_lets_what_runs_end(void **state)
{
    struct fixture *fx = *state;
    char room[300];
    rig_open(fx->rig, RV_ENGINE_OPTS(.control = true));
    put_callers(fx);
    start_worker(fx, socket_of(fx, room), NULL);
    hold = true;
    begin(fx, "calls", "c", "{\"name\":\"kim\"}");
    while (slow_began == 0)
        usleep(1000);
    rv_cancel_fire(fx->stop, 0, NULL);
    usleep(50000); /* it has no credits now; which of the two is first does not matter */
    hold = false;
    pthread_join(fx->thread, NULL);
    fx->runs = false;
    assert_int_equal(fx->rc, RV_OK);
    ends(fx, "c", RV_COMPLETED, "\"result\":\"kim\""); /* its answer was delivered */
    assert_int_equal(slow_began, 1);
}

static void what_will_not_do_is_said_at_once(void **state)
{
    struct fixture *fx = *state;
    rv_error err;
    rv_worker *w = NULL;
    assert_int_equal(rv_worker_new(NULL, &w, &err), RV_EINVAL);
    assert_int_equal(rv_worker_new(&(rv_worker_opts){ .address = "a.sock" }, &w, &err), RV_EINVAL);
    assert_int_equal(rv_worker_new(RV_WORKER_OPTS(.name = "x"), &w, &err), RV_EINVAL);
    assert_int_equal(rv_worker_new(RV_WORKER_OPTS(.address = "tcp://nowhere"), &w, &err),
                     RV_EINVAL);
    assert_int_equal(
        rv_worker_new(RV_WORKER_OPTS(.address = "tls://h:1", .trusted = "/nix"), &w, &err),
        RV_EINVAL);
    assert_non_null(strstr(err.message, "/nix"));
    assert_int_equal(rv_worker_new(RV_WORKER_OPTS(.address = "a.sock", .credits = 10001), &w, &err),
                     RV_EINVAL);
    assert_int_equal(rv_worker_new(RV_WORKER_OPTS(.address = "a.sock"), &w, &err), RV_OK);
    fx->stop = rv_cancel_new(NULL);
    assert_int_equal(rv_worker_run(w, fx->stop, &err), RV_EINVAL); /* it offers nothing */
    assert_int_equal(rv_worker_function(w, "", one, &err), RV_EINVAL);
    rv_workflow *bad_one = rv_workflow_new("no__good");
    rv_add_step(rv_workflow_body(bad_one), "a", one, NULL);
    assert_int_equal(rv_worker_offer(w, bad_one, &err), RV_EINVAL);
    rv_workflow_free(bad_one);
    rv_worker_free(w);
    rig_open(fx->rig, NULL);
    uint16_t port;
    assert_int_equal(
        rv_workers_listen(fx->rig->engine, RV_WORKERS_OPTS(.listen = "0.0.0.0:0"), &port, &err),
        RV_EINVAL);
    assert_non_null(strstr(err.message, "TLS"));
    assert_int_equal(
        rv_workers_listen(fx->rig->engine, RV_WORKERS_OPTS(.listen = "127.0.0.1:0"), &port, &err),
        RV_OK);
    assert_int_equal(
        rv_workers_listen(fx->rig->engine, RV_WORKERS_OPTS(.listen = "127.0.0.1:0"), &port, &err),
        RV_EEXIST);
}

#define WORKER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORKER_TEST(its_functions_are_those_of_any_program),
        WORKER_TEST(a_connection_that_is_cut_costs_nothing),
        WORKER_TEST(who_is_not_wanted_learns_why),
        WORKER_TEST(a_name_that_is_taken_is_refused),
        WORKER_TEST(it_finds_the_next_engine),
        WORKER_TEST(stopped_it_lets_what_runs_end),
        WORKER_TEST(what_will_not_do_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
