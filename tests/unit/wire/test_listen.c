/* test_listen.c: a socket beside a store, from both ends, without an engine. For src/wire/listen.c,
 * ask.c and place.c. */
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/wire.h"

struct fixture {
    char folder[64], store[96];
    struct rv__socket_place place;
    struct rv__listener *listener;
    struct rv__request *held; /* of begin_hold() */
    pthread_t thread;
    atomic_bool has_thread, gone;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct fixture *fx = &fixture;
    memset(fx, 0, sizeof *fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-test-XXXXXX");
    if (mkdtemp(fx->folder) == NULL)
        return -1;
    snprintf(fx->store, sizeof fx->store, "%.60s/s.db", fx->folder);
    FILE *file = fopen(fx->store, "w");
    if (file == NULL || fclose(file) != 0)
        return -1;
    *state = fx;
    return rv__socket_place(fx->store, &fx->place, NULL);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    char command[128];
    rv__listener_close(fx->listener);
    if (fx->has_thread)
        pthread_join(fx->thread, NULL);
    rv__listener_free(fx->listener);
    snprintf(command, sizeof command, "rm -r '%s'", fx->folder);
    return system(command);
}

static void answer_with(struct rv__request *request, const char *text)
{
    struct rv__buf out;
    rv__buf_init(&out, 4096);
    size_t start = rv__wire_begin(&out, FRAME_RESULT);
    rv__wire_text(&out, "text", rv__str(text));
    rv__wire_end(&out, start);
    rv__request_answer(request, &out);
    rv__buf_done(&out);
}

/* Answers with what was asked; "fail" with an error, "mute" not at all. On the listener's own thread,
 * which it may: it is quick. */
static bool begin_echo(void *arg, struct rv__request *request)
{
    struct rv__str method;
    struct rv__buf out;
    (void)arg;
    rv__frame_members(rv__request_frame(request), (const char *[]){ "method" }, &method, 1);
    if (rv__str_is(method, "\"busy\""))
        return false;
    if (rv__str_is(method, "\"mute\"")) {
        rv__request_answer(request, NULL);
        return true;
    }
    if (!rv__str_is(method, "\"fail\"")) {
        answer_with(request, "heard");
        return true;
    }
    rv_error err;
    (void)rv__fail(&err, RV_ENOTFOUND, "there is no such thing");
    rv__buf_init(&out, 4096);
    rv__wire_error(&out, &err);
    rv__request_answer(request, &out);
    rv__buf_done(&out);
    return true;
}

static void *wait_for_gone(void *arg)
{
    struct fixture *fx = arg;
    while (!rv_cancel_fired(rv__request_gone(fx->held)))
        usleep(1000);
    fx->gone = true;
    rv__request_answer(fx->held, NULL);
    return NULL;
}

/* Holds the request until its asker has gone. */
static bool begin_hold(void *arg, struct rv__request *request)
{
    struct fixture *fx = arg;
    fx->held = request;
    fx->has_thread = pthread_create(&fx->thread, NULL, wait_for_gone, fx) == 0;
    return fx->has_thread;
}

static void listen_with(struct fixture *fx, bool (*begin)(void *, struct rv__request *))
{
    const struct rv__listen_opts opts = {
        .clock = rv__clock_real(), .begin = begin, .arg = fx, .request_ms = 200
    };
    rv_error err;
    if (rv__listen(fx->store, &opts, &fx->listener, &err) < 0)
        fail_msg("%s", err.message);
}

static int ask(struct fixture *fx, const char *method, int64_t timeout_ms, rv_cancel *by,
               char text[64], rv_error *err)
{
    const struct rv__asked asked = { &fx->place, 7 };
    struct rv__buf request;
    struct rv__reply reply;
    struct rv__str value;
    rv__buf_init(&request, 4096);
    size_t start = rv__wire_begin(&request, FRAME_CALL);
    rv__wire_text(&request, "method", rv__str(method));
    rv__wire_end(&request, start);
    int rc = rv__ask(&asked, &request, timeout_ms, by, NULL, &reply, err);
    if (rc == RV_OK) {
        rv__frame_members(&reply.frame, (const char *[]){ "text" }, &value, 1);
        snprintf(text, 64, "%.*s", RV__ARG(value));
    }
    rv__reply_done(&reply);
    rv__buf_done(&request);
    return rc;
}

static void a_question_gets_its_answer(void **state)
{
    struct fixture *fx = *state;
    struct stat mode;
    char text[64];
    rv_error err;
    assert_int_equal(ask(fx, "hi", 1000, NULL, text, &err), RV_ECLOSED); /* nobody listens */
    listen_with(fx, begin_echo);
    assert_int_equal(stat(fx->place.path, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0600);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ask(fx, "hi", 5000, NULL, text, &err), RV_OK);
        assert_string_equal(text, "\"heard\"");
    }
    assert_int_equal(ask(fx, "fail", 5000, NULL, text, &err), RV_ENOTFOUND);
    assert_string_equal(err.message, "there is no such thing");
    assert_int_equal(ask(fx, "busy", 5000, NULL, text, &err), RV_EBUSY);
    assert_int_equal(ask(fx, "mute", 5000, NULL, text, &err), RV_EFAILED); /* nobody knows */
    rv__listener_close(fx->listener);
    assert_int_equal(access(fx->place.path, F_OK), -1);
    assert_int_equal(ask(fx, "hi", 1000, NULL, text, &err), RV_ECLOSED);
}

static void a_socket_of_the_dead_gives_way(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    listen_with(fx, begin_echo);
    struct rv__listener *first = fx->listener; /* as if its process had died and left its socket */
    listen_with(fx, begin_echo);
    assert_int_equal(ask(fx, "hi", 5000, NULL, text, &err), RV_OK);
    struct rv__listener *second = fx->listener;
    fx->listener = first; /* the teardown's; the name is the second's until it closes */
    rv__listener_free(second);
    assert_int_equal(access(fx->place.path, F_OK), -1);
}

static void who_hangs_up_is_noticed(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    listen_with(fx, begin_hold);
    assert_int_equal(ask(fx, "wait", 50, NULL, text, &err), RV_ETIMEDOUT);
    assert_non_null(strstr(err.message, "process 7"));
    for (int i = 0; i < 5000 && !fx->gone; i++)
        usleep(1000);
    assert_true(fx->gone);
}

static void who_asks_can_be_told_to_give_up(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    rv_cancel *by = rv_cancel_new(NULL);
    listen_with(fx, begin_hold);
    rv_cancel_fire(by, RV_ECANCELED, "no more");
    assert_int_equal(ask(fx, "wait", -1, by, text, &err), RV_ECANCELED);
    rv_cancel_free(by);
}

static void *ask_for_ever(void *arg)
{
    char text[64];
    rv_error err;
    return (void *)(intptr_t)ask(arg, "wait", -1, NULL, text, &err);
}

static void closing_ends_what_is_being_answered(void **state)
{
    struct fixture *fx = *state;
    pthread_t asker;
    void *rc = NULL;
    listen_with(fx, begin_hold);
    assert_int_equal(pthread_create(&asker, NULL, ask_for_ever, fx), 0);
    for (int i = 0; i < 5000 && !fx->has_thread; i++)
        usleep(1000);
    assert_false(fx->gone);
    rv__listener_close(fx->listener); /* waits for the answer, which waits for this */
    assert_true(fx->gone);
    pthread_join(asker, &rc);
    assert_int_equal((intptr_t)rc, RV_EFAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_question_gets_its_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_socket_of_the_dead_gives_way, setup, teardown),
        cmocka_unit_test_setup_teardown(who_hangs_up_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_can_be_told_to_give_up, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_what_is_being_answered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
