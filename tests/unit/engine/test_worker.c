/* test_worker.c: rv_worker_…: a worker against a real engine, by the socket beside the store and by TCP. For
 * src/work/worker.c, src/work/remote_ctx.c and src/engine/remote.c. */
#include "unit/engine/rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/wire.h"

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

/* It does not stop when it is told to. */
static int stubborn(rv_ctx *c)
{
    bool knows = false;
    slow_began++;
    while (hold) {
        told += !knows && rv_ctx_cancelled(c);
        knows = rv_ctx_cancelled(c);
        usleep(1000);
    }
    return rv_return(c, "i", 1);
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
        rv_worker_function(fx->worker, "stubborn", stubborn, &err) < 0 ||
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

/* ------------------------------------------------------------------------- several engines --- */

/* A member of a store, as a worker sees one: this test says what it says. */
struct member {
    int listener, fd;
    char address[40];
    struct rv__frames frames;
};

enum { PATIENCE_MS = 60000 }; /* for what must happen */

static void member_open(struct member *m)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof at;
    m->fd = -1;
    m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(m->listener >= 0);
    assert_int_equal(bind(m->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(m->listener, 8), 0);
    assert_int_equal(getsockname(m->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(m->address, sizeof m->address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
}

static void await_readable(int fd, const char *what)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (poll(&p, 1, PATIENCE_MS) != 1)
        fail_msg("it waits in vain for %s", what);
}

static void member_say(struct member *m, const char *json)
{
    struct rv__buf out;
    size_t len = strlen(json);
    const char head[] = { (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len };
    rv__buf_init(&out, RV__FRAME_MAX);
    rv__buf_add(&out, head, sizeof head);
    rv__buf_text(&out, json);
    assert_int_equal(rv__frames_send(m->fd, &out), RV_OK);
    rv__buf_done(&out);
}

static void member_cut(struct member *m)
{
    if (m->fd < 0)
        return;
    rv__frames_done(&m->frames);
    close(m->fd);
    m->fd = -1;
}

/* The worker connects, is welcome, and registers. */
static void member_greet(struct member *m, const char *members)
{
    struct rv__frame frame;
    char hello[500];
    await_readable(m->listener, "a worker");
    m->fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(m->fd >= 0);
    rv__frames_init(&m->frames);
    while (rv__frames_next(&m->frames, &frame, NULL) == 0) {
        await_readable(m->fd, "a hello");
        assert_true(rv__frames_read(&m->frames, m->fd) >= 0);
    }
    assert_int_equal(frame.type, FRAME_HELLO);
    snprintf(hello, sizeof hello, "{\"type\":\"hello\",\"protocol\":2,\"session\":\"s\"%s}",
             members);
    member_say(m, hello);
    while (rv__frames_next(&m->frames, &frame, NULL) == 0) {
        await_readable(m->fd, "a registration");
        assert_true(rv__frames_read(&m->frames, m->fd) >= 0);
    }
    assert_int_equal(frame.type, FRAME_REGISTER);
}

/* Until the worker has left. */
static void member_is_left(struct member *m)
{
    int rc;
    do {
        await_readable(m->fd, "the end of a connection");
        rc = rv__frames_read(&m->frames, m->fd);
    } while (rc >= 0);
    assert_int_equal(rc, RV_ECLOSED);
    member_cut(m);
}

static void member_close(struct member *m)
{
    member_cut(m);
    close(m->listener);
}

/* A member is left while one of its functions still runs, and comes back meanwhile: the worker serves it again. */
static void a_function_that_goes_on_holds_up_nobody(void **state)
{
    struct fixture *fx = *state;
    struct member a, b;
    char both[200], one_of_them[200], frame[300];
    member_open(&a);
    member_open(&b);
    snprintf(
        both, sizeof both,
        ",\"member\":1,\"members\":[{\"id\":1,\"workers\":\"%s\"},{\"id\":2,\"workers\":\"%s\"}]",
        a.address, b.address);
    snprintf(one_of_them, sizeof one_of_them,
             ",\"member\":1,\"members\":[{\"id\":1,\"workers\":\"%s\"}]", a.address);
    start_worker(fx, a.address, NULL);
    member_greet(&a, both);
    member_greet(&b, "");
    hold = true;
    member_say(
        &b, "{\"type\":\"invoke\",\"id\":\"0.1.1\",\"function\":\"stubborn\",\"workflow\":\"w\","
            "\"version\":\"\",\"run\":{\"runId\":\"r\",\"workflowName\":\"w\",\"stepName\":\"s\","
            "\"path\":\"s\",\"attempt\":1,\"executionId\":\"7.1\",\"idempotencyKey\":\"k\"}}");
    while (slow_began == 0)
        usleep(1000);
    member_cut(&b); /* it dies */
    snprintf(frame, sizeof frame, "{\"type\":\"members\"%s}", one_of_them);
    member_say(&a, frame);
    while (told == 0)
        usleep(1000);
    snprintf(frame, sizeof frame, "{\"type\":\"members\"%s}", both);
    member_say(&a, frame);
    member_greet(&b, "");
    hold = false;
    stop_worker(fx);
    assert_int_equal(fx->rc, RV_OK);
    member_close(&b);
    member_close(&a);
}

/* What an engine said of members is forgotten when it says hello without any: a member that only it knew is left, and stays so. */
static void a_hello_without_members_has_none(void **state)
{
    struct fixture *fx = *state;
    struct member a, b, c, d;
    char three_of_them[300], two_of_them[200], frame[400];
    member_open(&a);
    member_open(&b);
    member_open(&c);
    member_open(&d);
    snprintf(
        two_of_them, sizeof two_of_them,
        ",\"member\":2,\"members\":[{\"id\":1,\"workers\":\"%s\"},{\"id\":2,\"workers\":\"%s\"}]",
        a.address, b.address);
    snprintf(
        three_of_them, sizeof three_of_them,
        ",\"member\":1,\"members\":[{\"id\":1,\"workers\":\"%s\"},{\"id\":2,\"workers\":\"%s\"},"
        "{\"id\":3,\"workers\":\"%s\"}]",
        a.address, b.address, c.address);
    start_worker(fx, a.address, NULL);
    member_greet(&a, three_of_them);
    member_greet(&b, two_of_them);
    member_greet(&c, "");
    member_cut(&a);
    member_greet(&a, "");
    member_is_left(&c);
    snprintf(frame, sizeof frame,
             "{\"type\":\"members\",\"member\":2,\"members\":[{\"id\":2,\"workers\":\"%s\"},"
             "{\"id\":4,\"workers\":\"%s\"}]}",
             b.address, d.address);
    member_say(&b, frame);
    member_greet(&d, "");
    snprintf(frame, sizeof frame, "{\"type\":\"members\"%s}", two_of_them);
    member_say(&b, frame);
    member_is_left(&d); /* by now it would be with the other one again */
    struct pollfd p = { .fd = c.listener, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 0);
    stop_worker(fx);
    assert_int_equal(fx->rc, RV_OK);
    member_close(&d);
    member_close(&c);
    member_close(&b);
    member_close(&a);
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
    rv_engine_close(fx->rig->engine);
    assert_int_equal(
        rv_workers_listen(fx->rig->engine, RV_WORKERS_OPTS(.listen = "127.0.0.1:0"), &port, &err),
        RV_ECLOSED);
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
        WORKER_TEST(a_function_that_goes_on_holds_up_nobody),
        WORKER_TEST(a_hello_without_members_has_none),
        WORKER_TEST(what_will_not_do_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
