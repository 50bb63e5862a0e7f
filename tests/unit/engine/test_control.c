/* test_control.c: the control socket, from both ends: engines that attach, and whoever else connects. For
 * src/engine/control.c, answer.c and attach.c, src/wire/listen.c and ask.c. */
#include "unit/engine/rig.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "engine/control.h"

enum { SOON_MS = 20000, FIRST_PEERS = 4 };

struct fixture {
    struct rig *rig;
    rv_engine *beside;           /* attached to the rig's */
    struct rv__control *control; /* with limits of a test's own */
    int fds[FIRST_PEERS + 2];
    struct rv__frames frames;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    void *rig = NULL;
    if (fx == NULL || rig_setup(&rig) < 0)
        return -1;
    fx->rig = rig;
    for (size_t i = 0; i < sizeof fx->fds / sizeof *fx->fds; i++)
        fx->fds[i] = -1;
    rv__frames_init(&fx->frames);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    void *rig = fx->rig;
    for (size_t i = 0; i < sizeof fx->fds / sizeof *fx->fds; i++)
        if (fx->fds[i] >= 0)
            close(fx->fds[i]);
    rv__frames_done(&fx->frames);
    rv_engine_free(fx->beside);
    rv__control_free(fx->control);
    free(fx);
    return rig_teardown(&rig);
}

static int answer(rv_ctx *ctx)
{
    return rv_return(ctx, "i", 42);
}

static int park(rv_ctx *ctx)
{
    return rv_return_pending(ctx, "handle-1");
}

static void put_waits(struct rig *rig)
{
    rv_workflow *w = rv_workflow_new("waits");
    rv_workflow_describe(w, "waits for \"go\"");
    rv_add_signal(rv_workflow_body(w), "ok", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "answer", answer, NULL);
    rig_put(rig, w);
}

static void put_workflows(struct rig *rig)
{
    put_waits(rig);
    rv_workflow *w = rv_workflow_new("parks");
    rv_add_step(rv_workflow_body(w), "park", park, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("picky");
    rv_workflow_input(w, "{\"type\":\"object\",\"required\":[\"a\",\"b\"]}");
    rv_add_step(rv_workflow_body(w), "answer", answer, NULL);
    rig_put(rig, w);
}

static void open_driver(struct fixture *fx, const rv_engine_opts *opts)
{
    rv_engine_opts driver = opts != NULL ? *opts : *RV_ENGINE_OPTS(.control = true);
    rig_open(fx->rig, &driver);
    put_workflows(fx->rig);
}

static void attach(struct fixture *fx)
{
    if (rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true), &fx->beside,
                      &fx->err) < 0)
        fail_msg("cannot attach: %s", fx->err.message);
}

#define assert_ok(call)                                 \
    do {                                                \
        if ((call) < 0)                                 \
            fail_msg("%s: %s", #call, fx->err.message); \
    } while (0)

static int end_of(struct fixture *fx, const char *run_id)
{
    rv_outcome *outcome = NULL;
    assert_ok(
        rv_wait(fx->beside, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = SOON_MS), &outcome, &fx->err));
    int status = outcome->status;
    rv_outcome_free(outcome);
    return status;
}

/* ------------------------------------------------------------------------------- attached --- */

static void what_an_attached_engine_asks_the_driver_does(void **state)
{
    struct fixture *fx = *state;
    rv_run_info info;
    rv_driver driver;
    rv_outcome *outcome = NULL;
    open_driver(fx, NULL);
    attach(fx);
    assert_int_equal(rv_engine_driver(fx->beside, &driver, NULL), 1);
    assert_int_equal(driver.pid, getpid());
    assert_string_equal(driver.version, rv_version());
    assert_string_equal(driver.only_run, "");

    assert_ok(
        rv_run(fx->beside, "waits", "{\"n\":1}", RV_RUN_OPTS(.run_id = "a"), &info, &fx->err));
    assert_string_equal(info.run_id, "a");
    assert_int_equal(info.status, RV_RUNNING);
    assert_ok(rv_signal(fx->beside, "a", "go", "{\"by\":\"kim\"}", &fx->err));
    assert_ok(rv_wait(fx->beside, "waits", "a", NULL, &outcome, &fx->err));
    assert_non_null(strstr(outcome->results, "\"by\":\"kim\""));
    assert_non_null(strstr(outcome->results, "\"result\":42"));
    rv_outcome_free(outcome);

    assert_ok(rv_run(fx->beside, "waits", NULL, RV_RUN_OPTS(.run_id = "b"), NULL, &fx->err));
    assert_ok(rv_cancel_run(fx->beside, "b", &fx->err));
    assert_int_equal(end_of(fx, "b"), RV_CANCELLED);

    assert_ok(rv_run(fx->beside, "parks", NULL, RV_RUN_OPTS(.run_id = "c"), NULL, &fx->err));
    assert_ok(rv_complete(fx->beside, "c", "handle-1", "[1]", NULL, &fx->err));
    assert_int_equal(end_of(fx, "c"), RV_COMPLETED);
    assert_ok(rv_run(fx->beside, "parks", NULL, RV_RUN_OPTS(.run_id = "d"), NULL, &fx->err));
    assert_ok(rv_complete(fx->beside, "d", "handle-1", NULL, "it broke", &fx->err));
    assert_int_equal(end_of(fx, "d"), RV_FAILED);

    assert_ok(rv_run(fx->beside, "waits", NULL, NULL, &info, &fx->err)); /* its id is made there */
    assert_true(strlen(info.run_id) > 8);
}

static void errors_come_back_as_they_are(void **state)
{
    struct fixture *fx = *state;
    rv_violations *violations = NULL;
    rv_outcome *outcome = NULL;
    open_driver(fx, NULL);
    attach(fx);
    assert_int_equal(rv_run(fx->beside, "nobody", NULL, NULL, NULL, &fx->err), RV_ENOTFOUND);
    assert_non_null(strstr(fx->err.message, "registered: "));
    assert_int_equal(
        rv_run(fx->beside, "picky", "{}", RV_RUN_OPTS(.violations = &violations), NULL, &fx->err),
        RV_EINVAL);
    assert_int_equal(violations->count, 2);
    assert_string_equal(violations->items[0].path, "/a");
    assert_string_equal(violations->items[0].message, "is required");
    rv_violations_free(violations);
    assert_int_equal(rv_signal(fx->beside, "nobody", "go", NULL, &fx->err), RV_ENOTFOUND);
    assert_int_equal(rv_signal(fx->beside, "x", "go", "{bad", &fx->err), RV_EINVAL);
    assert_int_equal(rv_signal(fx->beside, "x", "", NULL, &fx->err), RV_EINVAL);
    assert_int_equal(rv_run(fx->beside, "waits", "{bad", NULL, NULL, &fx->err), RV_EINVAL);
    assert_int_equal(rv_cancel_run(fx->beside, "not an id", &fx->err), RV_EINVAL);
    assert_int_equal(rv_wait(fx->beside, NULL, "nobody", NULL, &outcome, &fx->err), RV_ENOTFOUND);
    assert_ok(rv_run(fx->beside, "waits", NULL, RV_RUN_OPTS(.run_id = "a"), NULL, &fx->err));
    assert_int_equal(rv_decide(fx->beside, "a", RV_RESUME, NULL, &fx->err), RV_ESTATE);
    assert_int_equal(
        rv_decide(fx->beside, "a", RV_ABORT, RV_DECIDE_OPTS(.reason = "why not"), &fx->err),
        RV_ESTATE);
    assert_int_equal(rv_wait(fx->beside, "other", "a", NULL, &outcome, &fx->err), RV_ENOTFOUND);
    assert_int_equal(
        rv_wait(fx->beside, NULL, "a", RV_WAIT_OPTS(.timeout_ms = 30), &outcome, &fx->err),
        RV_ETIMEDOUT);
    rv_workflow *w = rv_workflow_new("mine");
    rv_add_step(rv_workflow_body(w), "answer", answer, NULL);
    assert_int_equal(rv_register(fx->beside, w, &fx->err), RV_ESTATE);
    assert_non_null(strstr(fx->err.message, "registered there"));
    rv_workflow_free(w);
}

static void what_the_driver_knows_is_asked_there(void **state)
{
    struct fixture *fx = *state;
    rv_workflow_list *list = NULL;
    char *why = NULL;
    open_driver(fx, NULL);
    attach(fx);
    assert_ok(rv_workflows(fx->beside, &list, &fx->err));
    assert_int_equal(list->count, 3);
    assert_string_equal(list->items[0].name, "parks"); /* by name */
    assert_string_equal(list->items[2].name, "waits");
    assert_string_equal(list->items[2].description, "waits for \"go\"");
    assert_int_equal(list->items[2].step_count, 2);
    assert_non_null(strstr(list->items[1].input_schema, "required"));
    rv_workflow_list_free(list);
    assert_ok(rv_run(fx->beside, "waits", NULL, RV_RUN_OPTS(.run_id = "a"), NULL, &fx->err));
    assert_ok(rv_why(fx->beside, "a", &why, &fx->err));
    assert_non_null(strstr(why, "\"reason\":\"signal\""));
    rv_free(why);
}

static void a_reader_that_attaches_waits_but_tells_nothing(void **state)
{
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .read_only = true, .attach = true),
                      &fx->beside, &fx->err),
        RV_OK);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_int_equal(rv_signal(fx->beside, "a", "go", NULL, &fx->err), RV_ESTATE);
    assert_int_equal(rv_run(fx->beside, "waits", NULL, NULL, NULL, &fx->err), RV_ESTATE);
    assert_ok(rv_signal(fx->rig->engine, "a", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

static void a_reader_waits_also_where_nobody_drives(void **state)
{
    struct fixture *fx = *state;
    rv_outcome *outcome = NULL;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    rig_close(fx->rig);
    assert_ok(
        rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .read_only = true, .attach = true),
                      &fx->beside, &fx->err));
    assert_int_equal(
        rv_wait(fx->beside, NULL, "a", RV_WAIT_OPTS(.timeout_ms = 20), &outcome, &fx->err),
        RV_ETIMEDOUT);
    open_driver(fx, NULL);
    assert_ok(rv_signal(fx->rig->engine, "a", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

static void where_nobody_drives_it_is_the_writer(void **state)
{
    struct fixture *fx = *state;
    rv_driver driver;
    rv_engine *second = NULL;
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true, .control = true),
                      &fx->rig->engine, &fx->err),
        RV_OK);
    assert_int_equal(rv_engine_driver(fx->rig->engine, &driver, &fx->err), 0);
    put_workflows(fx->rig);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_ok(rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true), &second,
                            &fx->err)); /* the next one finds it */
    fx->beside = second;
    assert_ok(rv_signal(fx->beside, "a", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

static void a_store_held_without_a_socket_names_its_holder(void **state)
{
    struct fixture *fx = *state;
    char pid[32];
    open_driver(fx, RV_ENGINE_OPTS(.workers = 1));
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true),
                                   &fx->beside, &fx->err),
                     RV_EBUSY);
    snprintf(pid, sizeof pid, "process %ld ", (long)getpid());
    assert_non_null(strstr(fx->err.message, pid));
}

static void an_engine_for_one_run_says_so(void **state)
{
    struct fixture *fx = *state;
    rv_driver driver;
    open_driver(fx, RV_ENGINE_OPTS(.control = true, .only_run = "mine"));
    attach(fx);
    assert_int_equal(rv_engine_driver(fx->beside, &driver, NULL), 1);
    assert_string_equal(driver.only_run, "mine");
    assert_int_equal(rv_cancel_run(fx->beside, "other", &fx->err), RV_EBUSY);
    assert_non_null(strstr(fx->err.message, "drives only run 'mine'"));
    assert_int_equal(rv_run(fx->beside, "waits", NULL, NULL, NULL, &fx->err), RV_EBUSY);
    assert_ok(rv_run(fx->beside, "waits", NULL, RV_RUN_OPTS(.run_id = "mine"), NULL, &fx->err));
    assert_ok(rv_signal(fx->beside, "mine", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "mine"), RV_COMPLETED);
}

static void *wait_for_a(void *arg)
{
    struct fixture *fx = arg;
    rv_outcome *outcome = NULL;
    rv_error err;
    int rc = rv_wait(fx->beside, NULL, "a", RV_WAIT_OPTS(.timeout_ms = SOON_MS), &outcome, &err);
    rc = rc == RV_OK ? outcome->status : rc;
    rv_outcome_free(outcome);
    return (void *)(intptr_t)rc;
}

/* A driver, one beside it, and a thread that waits there for run "a". */
static pthread_t begin_to_wait(struct fixture *fx)
{
    pthread_t thread;
    open_driver(fx, NULL);
    attach(fx);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a, fx), 0);
    return thread;
}

static void who_waits_is_told_by_the_next_driver_too(void **state)
{
    struct fixture *fx = *state;
    void *status;
    pthread_t thread = begin_to_wait(fx);
    rig_close(fx->rig);
    assert_int_equal(rv_signal(fx->beside, "a", "go", NULL, &fx->err), RV_ECLOSED);
    open_driver(fx, NULL);
    assert_ok(rv_signal(fx->beside, "a", "go", NULL, &fx->err)); /* found again */
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, RV_COMPLETED);
}

static void closing_an_attached_engine_ends_its_calls(void **state)
{
    struct fixture *fx = *state;
    void *status;
    pthread_t thread = begin_to_wait(fx);
    rv__clock_sleep_ms(20); /* either order is fine: most times it waits by now */
    rv_engine_close(fx->beside);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, RV_ECLOSED);
}

/* ----------------------------------------------------------------------------- the socket --- */

static void socket_path(const struct fixture *fx, char ret[104])
{
    snprintf(ret, 104, "%s.sock", fx->rig->store);
}

static void it_is_there_for_its_owner_while_the_engine_is_open(void **state)
{
    struct fixture *fx = *state;
    char path[104];
    struct stat is;
    mode_t before = umask(0); /* whatever the program's is */
    socket_path(fx, path);
    open_driver(fx, NULL);
    umask(before);
    assert_int_equal(stat(path, &is), 0);
    assert_true(S_ISSOCK(is.st_mode));
    assert_int_equal(is.st_mode & 07777, 0600);
    rig_close(fx->rig);
    assert_int_equal(stat(path, &is), -1);
}

static int bind_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void one_that_a_dead_process_left_gives_way(void **state)
{
    struct fixture *fx = *state;
    char path[104];
    socket_path(fx, path);
    close(bind_to(path)); /* nobody listens there */
    assert_ok(rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true), &fx->beside,
                            &fx->err)); /* and so it is the writer */
    rv_engine_free(fx->beside);
    fx->beside = NULL;
    open_driver(fx, NULL);
    attach(fx);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_ok(rv_signal(fx->beside, "a", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

static void a_path_longer_than_an_address_works(void **state)
{
    struct fixture *fx = *state;
    char folder[300], store[400];
    rv_engine *driver = NULL;
    snprintf(folder, sizeof folder, "%s/%0120d", fx->rig->folder, 7);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(store, sizeof store, "%s/rival.db", folder);
    assert_ok(rv_engine_new(RV_ENGINE_OPTS(.store = store, .control = true), &driver, &fx->err));
    fx->rig->engine = driver;
    put_workflows(fx->rig);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_ok(rv_engine_new(RV_ENGINE_OPTS(.store = store, .attach = true), &fx->beside, &fx->err));
    assert_ok(rv_signal(fx->beside, "a", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

static void misuse_is_told(void **state)
{
    struct fixture *fx = *state;
    rv_driver driver;
    static const rv_engine_opts bad[] = {
        { .size = sizeof(rv_engine_opts), .store = ":memory:", .control = true },
        { .size = sizeof(rv_engine_opts), .store = ":memory:", .attach = true },
        { .size = sizeof(rv_engine_opts), .store = "x", .read_only = true, .control = true },
        { .size = sizeof(rv_engine_opts), .store = "x", .drain_ms = -1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rv_engine_new(&bad[i], &fx->beside, &fx->err), RV_EINVAL);
    assert_int_equal(rv_engine_driver(NULL, &driver, &fx->err), RV_EINVAL);
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = "/nowhere/at/all.db", .attach = true),
                                   &fx->beside, &fx->err),
                     RV_ESTORE);
    assert_int_equal(rv_unregister(NULL, "x", &fx->err), RV_EINVAL);
}

/* -------------------------------------------------------------------------- whoever connects --- */

static int dial(const struct fixture *fx)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s.sock", fx->rig->store);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail_msg("cannot connect: %s", strerrordesc_np(errno));
    return fd;
}

static void send_bytes(int fd, const char *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void send_json(int fd, const char *json)
{
    size_t len = strlen(json);
    char head[4] = { (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len };
    send_bytes(fd, head, 4);
    send_bytes(fd, json, len);
}

/* The next frame; "" when the other end has hung up. Valid until the next call. */
static const char *receive(struct fixture *fx, int fd)
{
    struct rv__frame frame;
    static char text[4096];
    int rc;
    while ((rc = rv__frames_next(&fx->frames, &frame, &fx->err)) == 0) {
        struct pollfd poll_in = { fd, POLLIN, 0 };
        assert_int_equal(poll(&poll_in, 1, SOON_MS), 1);
        if (rv__frames_read(&fx->frames, fd) < 0)
            return "";
    }
    assert_int_equal(rc, 1);
    snprintf(text, sizeof text, "%.*s", RV__ARG(frame.json));
    return text;
}

static void expect(struct fixture *fx, int fd, const char *part)
{
    const char *got = receive(fx, fd);
    if (strstr(got, part) == NULL)
        fail_msg("got '%s', expected '%s' in it", got, part);
}

/* Connected, and as a client. */
static int greet(struct fixture *fx)
{
    int fd = dial(fx);
    send_json(fd, "{\"type\":\"hello\",\"protocol\":2,\"role\":\"client\"}");
    expect(fx, fd, "\"type\":\"hello\"");
    return fd;
}

static void limited(struct fixture *fx, const struct rv__control_limits *limits)
{
    open_driver(fx, RV_ENGINE_OPTS(.workers = 4));
    assert_ok(rv__control_new(fx->rig->engine, fx->rig->store, limits, &fx->control, &fx->err));
}

static void several_requests_may_share_a_connection(void **state)
{
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    fx->fds[0] = greet(fx);
    send_json(fx->fds[0], "{\"type\":\"call\",\"id\":\"w\",\"method\":\"wait\",\"runId\":\"a\"}");
    send_json(fx->fds[0], "{\"type\":\"call\",\"id\":\"d\",\"method\":\"driver\"}");
    expect(fx, fx->fds[0], "\"id\":\"d\""); /* the other one is still under way */
    send_json(fx->fds[0], "{\"type\":\"call\",\"id\":\"e\",\"method\":\"dance\"}");
    expect(fx, fx->fds[0], "{\"type\":\"error\",\"id\":\"e\"");
    send_json(fx->fds[0], "{\"type\":\"ping\"}");
    expect(fx, fx->fds[0], "pong");
    assert_ok(rv_signal(fx->rig->engine, "a", "go", NULL, &fx->err));
    expect(fx, fx->fds[0], "\"id\":\"w\",\"status\":\"completed\"}");
    send_json(fx->fds[0], "{\"type\":\"call\",\"id\":\"o\",\"method\":\"wait\",\"runId\":\"a\","
                          "\"outcome\":true}");
    expect(fx, fx->fds[0],
           "\"outcome\":{\"runId\":\"a\",\"status\":\"completed\",\"results\":{\"ok\":{");
    send_json(fx->fds[0], "{\"type\":\"call\",\"id\":\"s\",\"method\":\"state\",\"runId\":\"a\"}");
    expect(fx, fx->fds[0], "\"state\":{\"runId\":\"a\",\"workflow\":\"waits\",\"version\":\"");
}

static void what_is_not_a_request_is_told_so(void **state)
{
    static const struct {
        const char *json, *part;
        bool hangs_up;
    } rows[] = {
        { "{\"type\":\"call\"}", "needs a 'method'", false },
        { "{\"type\":\"call\",\"method\":\"dance\"}", "no such method", false },
        { "{\"type\":\"call\",\"method\":[]}", "no such method", false },
        { "{\"type\":\"call\",\"method\":\"signal\"}", "needs a 'runId'", false },
        { "{\"type\":\"call\",\"method\":\"signal\",\"runId\":7}", "'runId' is not a text", false },
        { "{\"type\":\"call\",\"method\":\"signal\",\"runId\":\"a\\u0000b\"}",
          "'runId' is not a text", false },
        { "{\"type\":\"call\",\"method\":\"signal\",\"runId\":\"a\"}", "needs a name", false },
        { "{\"type\":\"call\",\"method\":\"decide\",\"runId\":\"a\",\"action\":\"x\"}",
          "not resume, abort, skip or restart_stage", false },
        { "{\"type\":\"call\",\"method\":\"complete\",\"runId\":\"a\"}", "no handle", false },
        { "{\"type\":\"call\",\"method\":\"run\"}", "no workflow named", false },
        { "{\"type\":\"call\",\"method\":\"wait\",\"runId\":\"a\",\"timeoutMs\":\"soon\"}",
          "not a number of milliseconds", false },
        { "{\"type\":\"call\",\"method\":\"why\",\"runId\":\"nobody\"}", "no run 'nobody'", false },
        { "{\"type\":\"invoke\"}", "may not send 'invoke'", true },
        { "{\"type\":\"shutdown\"}", "its type is unknown", true },
        { "[\"call\"]", "its type is unknown", true },
        { "{\"type\":\"call\"", "not a frame", true },
        { "nonsense", "not a frame", true },
    };
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx->fds[0] = greet(fx);
        send_json(fx->fds[0], rows[i].json);
        expect(fx, fx->fds[0], rows[i].part);
        if (rows[i].hangs_up) {
            assert_string_equal(receive(fx, fx->fds[0]), "");
        } else { /* the next one is answered */
            send_json(fx->fds[0], "{\"type\":\"call\",\"method\":\"driver\"}");
            expect(fx, fx->fds[0], "\"protocol\":2");
        }
        close(fx->fds[0]);
        fx->fds[0] = -1;
    }
}

static void a_length_beyond_the_bound_ends_the_conversation(void **state)
{
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    fx->fds[0] = greet(fx);
    send_bytes(fx->fds[0], "\xff\xff\xff\xff", 4);
    expect(fx, fx->fds[0], "not a frame");
    assert_string_equal(receive(fx, fx->fds[0]), "");
}

static void who_does_not_say_hello_first_is_sent_away(void **state)
{
    static const struct {
        const char *json, *part;
    } rows[] = {
        { "{\"type\":\"call\",\"method\":\"driver\"}", "a hello of protocol 2" },
        { "{\"type\":\"hello\",\"role\":\"client\"}", "a hello of protocol 2" },
        { "{\"type\":\"hello\",\"protocol\":1,\"role\":\"client\"}", "a hello of protocol 2" },
        { "{\"type\":\"hello\",\"protocol\":2}", "needs a 'role'" },
        { "{\"type\":\"hello\",\"protocol\":2,\"role\":\"king\"}", "needs a 'role'" },
    };
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx->fds[0] = dial(fx);
        send_json(fx->fds[0], rows[i].json);
        expect(fx, fx->fds[0], rows[i].part);
        assert_string_equal(receive(fx, fx->fds[0]), "");
        close(fx->fds[0]);
        fx->fds[0] = -1;
    }
}

static void who_says_nothing_whole_is_sent_away(void **state)
{
    struct fixture *fx = *state;
    limited(fx, &(struct rv__control_limits){ .hello_ms = 50 });
    fx->fds[0] = dial(fx);
    fx->fds[1] = dial(fx);
    send_bytes(fx->fds[1], "\0\0\0\x20{\"ty", 8); /* and no more */
    expect(fx, fx->fds[0], "no hello came");
    assert_string_equal(receive(fx, fx->fds[0]), "");
    expect(fx, fx->fds[1], "no hello came");
    assert_string_equal(receive(fx, fx->fds[1]), "");
    fx->fds[2] = greet(fx);
    send_json(fx->fds[2], "{\"type\":\"call\",\"method\":\"driver\"}");
    expect(fx, fx->fds[2], "\"protocol\":2");
}

static void one_connection_too_many_is_told_to_come_again(void **state)
{
    struct fixture *fx = *state;
    limited(fx, &(struct rv__control_limits){ .connections = FIRST_PEERS });
    for (int i = 0; i < FIRST_PEERS; i++)
        fx->fds[i] = greet(fx);
    fx->fds[FIRST_PEERS] = dial(fx);
    expect(fx, fx->fds[FIRST_PEERS], "too many connections");
    assert_string_equal(receive(fx, fx->fds[FIRST_PEERS]), "");
    close(fx->fds[0]);
    for (int tries = 0;; tries++) { /* its place is free as soon as its going was seen */
        static const char ask[] =
            "\0\0\0\x2d{\"type\":\"hello\",\"protocol\":2,\"role\":\"client\"}";
        fx->fds[0] = dial(fx);
        (void)!send(fx->fds[0], ask, sizeof ask - 1, MSG_NOSIGNAL); /* it may have hung up */
        if (strstr(receive(fx, fx->fds[0]), "\"protocol\":2") != NULL)
            break;
        assert_true(tries < 1000);
        close(fx->fds[0]);
        rv__frames_done(&fx->frames);
        rv__frames_init(&fx->frames);
    }
}

static void waiters_leave_room_for_others_and_end_when_they_hang_up(void **state)
{
    static const char wait[] = "{\"type\":\"call\",\"method\":\"wait\",\"runId\":\"a\"}";
    struct fixture *fx = *state;
    limited(fx, &(struct rv__control_limits){ .waiters = 1 });
    rig_run(fx->rig, "waits", "a", NULL);
    fx->fds[0] = greet(fx);
    send_json(fx->fds[0], wait);
    for (int tries = 0;; tries++) { /* until the first is known to wait */
        fx->fds[1] = greet(fx);
        send_json(fx->fds[1],
                  "{\"type\":\"call\",\"method\":\"wait\",\"runId\":\"a\",\"timeoutMs\":1}");
        if (strstr(receive(fx, fx->fds[1]), "wait for runs already") != NULL)
            break;
        assert_true(tries < 10000);
        close(fx->fds[1]);
        struct pollfd refused = { fx->fds[0], POLLIN, 0 };
        if (poll(&refused, 1, 0) == 1) { /* ours was the quicker one: it took the place */
            expect(fx, fx->fds[0], "wait for runs already");
            send_json(fx->fds[0], wait);
        }
    }
    close(fx->fds[0]); /* its wait ends, and there is room */
    fx->fds[0] = -1;
    for (int tries = 0;; tries++) {
        send_json(fx->fds[1],
                  "{\"type\":\"call\",\"method\":\"wait\",\"runId\":\"a\",\"timeoutMs\":1}");
        if (strstr(receive(fx, fx->fds[1]), "has not ended") != NULL)
            break;
        assert_true(tries < 10000);
    }
    send_json(fx->fds[1], wait);
    assert_ok(rv_signal(fx->rig->engine, "a", "go", NULL, &fx->err));
    expect(fx, fx->fds[1], "\"status\":\"completed\"");
}

static void closing_answers_those_who_wait(void **state)
{
    struct fixture *fx = *state;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    fx->fds[0] = greet(fx);
    send_json(fx->fds[0], "{\"type\":\"call\",\"method\":\"driver\"}");
    expect(fx, fx->fds[0], "\"protocol\":2");
    send_json(fx->fds[0], "{\"type\":\"call\",\"method\":\"wait\",\"runId\":\"a\"}");
    rig_close(fx->rig);
    const char *got = receive(fx, fx->fds[0]);
    if (*got != '\0' && strstr(got, "is ending") == NULL) /* "": not even read before */
        fail_msg("got '%s'", got);
}

static void another_user_is_refused(void **state)
{
    struct fixture *fx = *state;
    char path[104];
    int status;
    if (geteuid() != 0)
        skip();
    open_driver(fx, NULL);
    socket_path(fx, path);
    assert_int_equal(chmod(fx->rig->folder, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0); /* somebody was careless */
    pid_t child = fork();
    if (child == 0) {
        char bytes[512] = "";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setgid(65534) < 0 || setuid(65534) < 0 ||
            connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
            _exit(2);
        ssize_t got = read(fd, bytes, sizeof bytes - 1);
        _exit(got > 4 && strstr(bytes + 4, "for its own user") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void whatever_is_sent_nothing_breaks(void **state)
{
    static const char good[] = "{\"type\":\"call\",\"method\":\"signal\",\"runId\":\"a\","
                               "\"name\":\"go\",\"payload\":{\"a\":[1,\"\\u00e9\"]}}";
    struct fixture *fx = *state;
    struct rv__random random;
    rv__random_init(&random, 7);
    open_driver(fx, NULL);
    for (int i = 0; i < 2000; i++) {
        char bytes[sizeof good + 4] = { 0, 0, 0, (char)(sizeof good - 1) };
        memcpy(bytes + 4, good, sizeof good);
        for (uint64_t n = rv__random_u64(&random) % 4; n > 0; n--)
            bytes[rv__random_u64(&random) % (sizeof bytes - 1)] = (char)rv__random_u64(&random);
        size_t len = rv__random_u64(&random) % sizeof bytes;
        int fd = dial(fx);
        if (i % 4 != 0)
            send_json(fd, "{\"type\":\"hello\",\"protocol\":2,\"role\":\"client\"}");
        (void)!send(fd, bytes, len, MSG_NOSIGNAL);
        close(fd);
    }
    attach(fx); /* it is there, and well */
    assert_ok(rv_run(fx->beside, "waits", NULL, RV_RUN_OPTS(.run_id = "b"), NULL, &fx->err));
    assert_ok(rv_signal(fx->beside, "b", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "b"), RV_COMPLETED);
}

static int answer_with(rv_engine *engine, const char *json, struct rv__buf *out)
{
    atomic_int waiters = 0;
    struct rv__asker asker = { NULL, &waiters, 1 };
    struct rv__frame frame = { .type = FRAME_CALL, .json = rv__str(json) };
    rv__buf_reset(out);
    rv__control_answer(engine, &frame, &asker, out);
    if (out->rc < 0)
        return out->rc;
    return memmem(out->text, out->len, "\"code\":-2", 9) != NULL ? RV_ENOMEM : RV_OK;
}

static void no_memory_is_an_answer_too(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf out;
    int rc;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    rv__buf_init(&out, SIZE_MAX / 8);
    TORTURE(rc, answer_with(fx->rig->engine, "{\"method\":\"workflows\"}", &out), (void)0);
    assert_int_equal(rc, RV_OK);
    TORTURE(rc, answer_with(fx->rig->engine, "{\"method\":\"why\",\"runId\":\"a\"}", &out),
            (void)0);
    assert_int_equal(rc, RV_OK);
    TORTURE(rc,
            answer_with(fx->rig->engine,
                        "{\"method\":\"run\",\"runId\":\"r\",\"workflow\":\"waits\",\"input\":[1]}",
                        &out),
            (void)0);
    assert_int_equal(rc, RV_OK);
    rv__buf_done(&out);
}

static void no_memory_to_ask_with_is_told(void **state)
{
    struct fixture *fx = *state;
    rv_workflow_list *list = NULL;
    char *why = NULL;
    int rc;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    TORTURE(rc,
            rv_engine_new(RV_ENGINE_OPTS(.store = fx->rig->store, .attach = true), &fx->beside,
                          &fx->err),
            assert_null(fx->beside));
    assert_int_equal(rc, RV_OK);
    TORTURE(rc, rv_workflows(fx->beside, &list, &fx->err), assert_null(list));
    assert_int_equal(rc, RV_OK);
    rv_workflow_list_free(list);
    TORTURE(rc, rv_why(fx->beside, "a", &why, &fx->err), assert_null(why));
    assert_int_equal(rc, RV_OK);
    rv_free(why);
    TORTURE(rc, rv_signal(fx->beside, "a", "go", "{\"long\":\"\\u0041 text\"}", &fx->err), (void)0);
    assert_int_equal(rc, RV_OK);
    assert_int_equal(end_of(fx, "a"), RV_COMPLETED);
}

/* --------------------------------------------------------------------- a driver that is none --- */

/* Answers the first connection as a driver would, and each after it with `says`, whatever that is. */
struct impostor {
    int listener;
    const char *says;
    size_t len;
};

static void *pretend(void *arg)
{
    static const char hello[] = "{\"type\":\"result\",\"protocol\":2,\"pid\":1,\"version\":\"0\"}";
    const struct impostor *i = arg;
    char bytes[512];
    for (int fd, n = 0; (fd = accept(i->listener, NULL, NULL)) >= 0; n++) {
        (void)!read(fd, bytes, sizeof bytes);
        if (n == 0)
            send_json(fd, hello);
        else
            (void)!send(fd, i->says, i->len, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void an_answer_that_is_none_is_told(void **state)
{
    static const struct {
        const char *says;
        size_t len;
        int signal, run, why;
    } rows[] = {
        { "", 0, RV_EFAILED, RV_EFAILED, RV_ENOTFOUND }, /* why: from the store, then */
        { "\xff\xff\xff\xff", 4, RV_EPARSE, RV_EPARSE, RV_EPARSE },
        { "\0\0\0\4nope", 8, RV_EPARSE, RV_EPARSE, RV_EPARSE },
        { "\0\0\0\x0f{\"type\":\"ping\"}", 19, RV_EPARSE, RV_EPARSE, RV_EPARSE },
        { "\0\0\0\x10{\"type\":\"error\"}", 20, RV_EFAILED, RV_EFAILED, RV_ENOTFOUND },
        { "\0\0\0\x11{\"type\":\"result\"}", 21, RV_OK, RV_EPARSE, RV_EPARSE },
        { "\0\0\0\x11{\"type\":", 12, RV_EFAILED, RV_EFAILED, RV_ENOTFOUND },
    };
    struct fixture *fx = *state;
    char path[104], *why = NULL;
    rv_workflow_list *list = NULL;
    socket_path(fx, path);
    open_driver(fx, NULL); /* makes the store */
    rig_close(fx->rig);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct impostor impostor = { bind_to(path), rows[i].says, rows[i].len };
        pthread_t thread;
        assert_int_equal(listen(impostor.listener, 8), 0);
        assert_int_equal(pthread_create(&thread, NULL, pretend, &impostor), 0);
        attach(fx);
        assert_int_equal(rv_signal(fx->beside, "a", "go", NULL, &fx->err), rows[i].signal);
        assert_int_equal(rv_run(fx->beside, "waits", NULL, NULL, NULL, &fx->err), rows[i].run);
        assert_int_equal(
            rv_hand_over(fx->beside, "waits",
                         RV_HAND_OPTS(.run_id = "a", .files = (const char *[]){ "a.yaml", NULL }),
                         NULL, &fx->err),
            RV_ESTATE); /* it is of another version */
        assert_non_null(strstr(fx->err.message, "with version 0"));
        assert_int_equal(rv_why(fx->beside, "a", &why, &fx->err), rows[i].why);
        (void)rv_workflows(fx->beside, &list, &fx->err); /* any answer, but no crash */
        rv_workflow_list_free(list);
        list = NULL;
        rv_engine_free(fx->beside);
        fx->beside = NULL;
        shutdown(impostor.listener, SHUT_RDWR);
        pthread_join(thread, NULL);
        close(impostor.listener);
        unlink(path);
    }
}

/* --------------------------------------------------------------------- taking back, draining --- */

static void a_workflow_that_was_taken_back_finishes_its_runs(void **state)
{
    struct fixture *fx = *state;
    rv_workflow_list *list = NULL;
    open_driver(fx, NULL);
    rig_run(fx->rig, "waits", "a", NULL);
    assert_ok(rv_unregister(fx->rig->engine, "waits", &fx->err));
    assert_int_equal(rv_unregister(fx->rig->engine, "waits", &fx->err), RV_ENOTFOUND);
    assert_int_equal(rv_run(fx->rig->engine, "waits", NULL, NULL, NULL, &fx->err), RV_ENOTFOUND);
    assert_non_null(strstr(fx->err.message, "registered: parks, picky"));
    char *plan = NULL;
    assert_int_equal(rv_plan_of_workflow(fx->rig->engine, "waits", &plan, &fx->err), RV_ENOTFOUND);
    rv_workflow *outer = rv_workflow_new("outer");
    rv_add_workflow(rv_workflow_body(outer), "inner", "waits");
    assert_true(rv_register(fx->rig->engine, outer, &fx->err) < 0);
    assert_ok(rv_workflows(fx->rig->engine, &list, &fx->err));
    assert_int_equal(list->count, 2);
    rv_workflow_list_free(list);
    assert_ok(rv_signal(fx->rig->engine, "a", "go", NULL, &fx->err));
    assert_int_equal(rig_wait(fx->rig, "a"), RV_COMPLETED);
    put_waits(fx->rig); /* again */
    assert_ok(rv_register(fx->rig->engine, outer, &fx->err));
    rv_workflow_free(outer);
    rig_run(fx->rig, "waits", "b", NULL);
}

static atomic_bool begun, told;

static int work_a_while(rv_ctx *ctx)
{
    atomic_store(&begun, true);
    for (int i = 0; i < 30; i++) {
        rv__clock_sleep_ms(5);
        if (rv_ctx_cancelled(ctx))
            atomic_store(&told, true);
    }
    return rv_return(ctx, "s", "done");
}

static void a_drained_engine_lets_steps_end_undisturbed(void **state)
{
    struct fixture *fx = *state;
    rv_outcome *outcome = NULL;
    atomic_store(&begun, false);
    atomic_store(&told, false);
    for (int drains = 0; drains < 2; drains++) {
        rig_open(fx->rig, RV_ENGINE_OPTS(.drain_ms = drains ? SOON_MS : 0));
        rv_workflow *w = rv_workflow_new("works");
        rv_add_step(rv_workflow_body(w), "work", work_a_while, NULL);
        rv_add_signal(rv_workflow_body(w), "then", "go", 0, NULL);
        rig_put(fx->rig, w);
        atomic_store(&begun, false);
        rig_run(fx->rig, "works", drains ? "b" : "a", NULL);
        while (!atomic_load(&begun))
            rv__clock_sleep_ms(1);
        assert_int_equal(rv_engine_close(fx->rig->engine), 0);
        assert_int_equal(rv_wait(fx->rig->engine, NULL, "b", NULL, &outcome, &fx->err), RV_ECLOSED);
        rig_close(fx->rig);
        assert_int_equal(atomic_load(&told), drains == 0);
        atomic_store(&told, false);
    }
    rv_run_state *run = NULL;
    rig_open(fx->rig, RV_ENGINE_OPTS(.read_only = true));
    assert_ok(rv_state(fx->rig->engine, "b", &run, &fx->err));
    assert_non_null(strstr(run->results, "\"result\":\"done\""));
    rv_run_state_free(run);
}

/* ---------------------------------------------------------------------------- runs handed over --- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A file of a workflow that has the name of one of the driver's. */
static int hand_over(struct fixture *fx, const char *run_id, const char *version, bool resumes,
                     bool *followed)
{
    static char path[160];
    static const char *const allowed[] = { "RIVAL_TEST_WHO", NULL };
    char text[300];
    const char *files[] = { path, NULL };
    snprintf(path, sizeof path, "%s.yaml", fx->rig->store);
    snprintf(text, sizeof text,
             "name: waits\nsteps:\n  - ok: { signal: { name: go } }\n"
             "  - says: { value: \"%s ${ .env.RIVAL_TEST_WHO }\" }\n",
             version);
    write_file(path, text);
    int rc = rv_hand_over(fx->beside, "waits",
                          RV_HAND_OPTS(.run_id = run_id, .files = files, .allow_env = allowed,
                                       .resumes = resumes, .followed = followed),
                          NULL, &fx->err);
    unlink(path);
    return rc;
}

static void results_are(struct fixture *fx, const char *run_id, const char *part)
{
    rv_run_state *run = NULL;
    assert_ok(rv_state(fx->rig->engine, run_id, &run, &fx->err));
    if (strstr(run->results, part) == NULL)
        fail_msg("%s: %s", run_id, run->results);
    rv_run_state_free(run);
}

static void a_run_that_is_handed_over_has_its_own_workflow(void **state)
{
    struct fixture *fx = *state;
    bool followed = true;
    open_driver(fx, RV_ENGINE_OPTS(.control = true, .only_run = "own"));
    rig_run(fx->rig, "waits", "own", NULL);
    attach(fx);
    assert_int_equal(rv_engine_drives(fx->beside, "guest"), false);
    setenv("RIVAL_TEST_WHO", "kim", 1);
    assert_ok(hand_over(fx, "guest", "one", false, &followed));
    assert_false(followed);
    setenv("RIVAL_TEST_WHO", "nobody", 1);
    assert_int_equal(hand_over(fx, "other", "one", false, &followed), RV_ESTATE); /* one each */
    assert_ok(rv_signal(fx->beside, "guest", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "guest"), RV_COMPLETED);
    results_are(fx, "guest", "one kim");
    assert_ok(rv_signal(fx->beside, "own", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "own"), RV_COMPLETED);
    results_are(fx, "own", "\"answer\":{\"result\":42");
}

static void a_run_that_is_handed_back_waits_for_the_next(void **state)
{
    struct fixture *fx = *state;
    bool followed = true;
    open_driver(fx, RV_ENGINE_OPTS(.control = true, .only_run = "own"));
    attach(fx);
    assert_ok(hand_over(fx, "guest", "one", false, &followed));
    assert_int_equal(rv_engine_close(fx->beside), 0);
    rv_engine_free(fx->beside);
    attach(fx);
    assert_false(rv_engine_drives(fx->beside, "guest"));
    assert_ok(
        rv_signal(fx->beside, "guest", "go", NULL, &fx->err)); /* it may be told all the same */
    setenv("RIVAL_TEST_WHO", "ada", 1);
    rv_outcome *outcome = NULL;
    assert_int_equal(
        rv_wait(fx->beside, NULL, "guest", RV_WAIT_OPTS(.timeout_ms = 200), &outcome, &fx->err),
        RV_ETIMEDOUT); /* but nothing of it is begun */
    assert_ok(hand_over(fx, "guest", "two", true, &followed));
    assert_false(followed);
    assert_int_equal(end_of(fx, "guest"), RV_COMPLETED);
    results_are(fx, "guest", "one ada"); /* on its own plan, in its new surroundings */
}

static void a_run_that_somebody_drives_is_only_followed(void **state)
{
    struct fixture *fx = *state;
    bool followed = false;
    open_driver(fx, RV_ENGINE_OPTS(.control = true, .only_run = "own"));
    rig_run(fx->rig, "waits", "own", NULL);
    attach(fx);
    assert_ok(hand_over(fx, "own", "one", true, &followed));
    assert_true(followed);
    assert_int_equal(rv_engine_close(fx->beside), 0);
    rv_engine_free(fx->beside);
    attach(fx);
    assert_true(rv_engine_drives(fx->beside, "own"));
    assert_ok(rv_signal(fx->beside, "own", "go", NULL, &fx->err));
    assert_int_equal(end_of(fx, "own"), RV_COMPLETED);
}

static void a_driver_that_drains_takes_nothing_new(void **state)
{
    struct fixture *fx = *state;
    rv_driver driver;
    bool followed;
    open_driver(fx, RV_ENGINE_OPTS(.control = true, .only_run = "own"));
    attach(fx);
    assert_ok(hand_over(fx, "guest", "one", false, &followed));
    assert_int_equal(rv_engine_driver(fx->beside, &driver, NULL), 1);
    assert_ok(rv_engine_drain(fx->rig->engine, SOON_MS, NULL, &fx->err)); /* nothing runs */
    rv_engine *late = fx->beside;
    fx->beside = NULL;
    attach(fx);
    assert_int_equal(hand_over(fx, "late", "one", false, &followed), RV_ECLOSED);
    rig_close(fx->rig);
    assert_int_equal(rv_engine_driver(late, &driver, NULL), 0); /* who followed it learns of that */
    rv_engine_free(late);
}

static void what_a_run_is_handed_over_with_is_checked(void **state)
{
    static const struct {
        const char *json, *says;
    } rows[] = {
        { "{\"method\":\"exec\"}", "needs a 'runId'" },
        { "{\"method\":\"exec\",\"runId\":\"a/b\"}", "needs a 'runId'" },
        { "{\"method\":\"exec\",\"runId\":\"a\"}", "'env' is not a list" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[1]}", "not a variable" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[[0]]}", "not a variable" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[[65,256]]}", "not a variable" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[\"A=\\u0000\"]}", "not a variable" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[],\"allowEnv\":{}}", "not a list" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[[65,61,200]]}", "'files' is empty" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[],\"files\":[7]}", "not a text" },
        { "{\"method\":\"exec\",\"runId\":\"a\",\"env\":[],\"files\":[\"/nowhere/a.yaml\"]}",
          "cannot load this workflow" },
        { "{\"method\":\"release\"}", "needs a 'runId'" },
        { "{\"method\":\"release\",\"runId\":\"a\",\"drainMs\":-1}", "number of milliseconds" },
        { "{\"method\":\"release\",\"runId\":\"a\"}", "\"left\":0" },
    };
    struct fixture *fx = *state;
    struct rv__buf out;
    open_driver(fx, NULL);
    rv__buf_init(&out, SIZE_MAX / 8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)answer_with(fx->rig->engine, rows[i].json, &out);
        if (memmem(out.text, out.len, rows[i].says, strlen(rows[i].says)) == NULL)
            fail_msg("%s: %.*s", rows[i].json, (int)out.len - 4, out.text + 4);
    }
    rv__buf_done(&out);
    assert_int_equal(
        rv_hand_over(fx->rig->engine, "waits",
                     RV_HAND_OPTS(.run_id = "a", .files = (const char *[]){ "a", NULL }), NULL,
                     &fx->err),
        RV_ESTATE); /* it drives itself */
    assert_int_equal(
        rv_hand_over(fx->rig->engine, "waits", RV_HAND_OPTS(.run_id = "a"), NULL, &fx->err),
        RV_EINVAL);
}

#define CONTROL_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTROL_TEST(what_an_attached_engine_asks_the_driver_does),
        CONTROL_TEST(errors_come_back_as_they_are),
        CONTROL_TEST(what_the_driver_knows_is_asked_there),
        CONTROL_TEST(a_reader_that_attaches_waits_but_tells_nothing),
        CONTROL_TEST(a_reader_waits_also_where_nobody_drives),
        CONTROL_TEST(where_nobody_drives_it_is_the_writer),
        CONTROL_TEST(a_store_held_without_a_socket_names_its_holder),
        CONTROL_TEST(an_engine_for_one_run_says_so),
        CONTROL_TEST(who_waits_is_told_by_the_next_driver_too),
        CONTROL_TEST(closing_an_attached_engine_ends_its_calls),
        CONTROL_TEST(it_is_there_for_its_owner_while_the_engine_is_open),
        CONTROL_TEST(one_that_a_dead_process_left_gives_way),
        CONTROL_TEST(a_path_longer_than_an_address_works),
        CONTROL_TEST(misuse_is_told),
        CONTROL_TEST(several_requests_may_share_a_connection),
        CONTROL_TEST(what_is_not_a_request_is_told_so),
        CONTROL_TEST(a_length_beyond_the_bound_ends_the_conversation),
        CONTROL_TEST(who_does_not_say_hello_first_is_sent_away),
        CONTROL_TEST(who_says_nothing_whole_is_sent_away),
        CONTROL_TEST(one_connection_too_many_is_told_to_come_again),
        CONTROL_TEST(waiters_leave_room_for_others_and_end_when_they_hang_up),
        CONTROL_TEST(closing_answers_those_who_wait),
        CONTROL_TEST(another_user_is_refused),
        CONTROL_TEST(whatever_is_sent_nothing_breaks),
        CONTROL_TEST(no_memory_is_an_answer_too),
        CONTROL_TEST(no_memory_to_ask_with_is_told),
        CONTROL_TEST(an_answer_that_is_none_is_told),
        CONTROL_TEST(a_workflow_that_was_taken_back_finishes_its_runs),
        CONTROL_TEST(a_drained_engine_lets_steps_end_undisturbed),
        CONTROL_TEST(a_run_that_is_handed_over_has_its_own_workflow),
        CONTROL_TEST(a_run_that_is_handed_back_waits_for_the_next),
        CONTROL_TEST(a_run_that_somebody_drives_is_only_followed),
        CONTROL_TEST(a_driver_that_drains_takes_nothing_new),
        CONTROL_TEST(what_a_run_is_handed_over_with_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
