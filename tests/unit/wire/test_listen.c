/* test_listen.c: a socket beside a store, from both ends, without an engine; connections, and what is kept
 * at their other end. For src/wire/listen.c, ask.c, place.c, wires.c, conn.c and kept.c. */
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/wire.h"

struct fixture {
    char folder[64], store[96];
    struct rv__socket_place place;
    struct rv__wires *wires;
    struct rv__listener *listener;
    atomic_int ended, held;
    atomic_int died;
    struct rv__pid_watch *watch;
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
    rv__listener_free(fx->listener);
    rv__wires_free(fx->wires);
    snprintf(command, sizeof command, "rm -r '%s'", fx->folder);
    return system(command);
}

/* Answers with what was asked; "fail" with an error, "mute" not at all, "wait" never. */
static void heard(void *arg, struct rv__conn *conn, const struct rv__frame *frame)
{
    struct fixture *fx = arg;
    struct rv__str method;
    struct rv__buf *out = rv__conn_out(conn);
    rv_error err;
    rv__frame_members(frame, (const char *[]){ "method" }, &method, 1);
    if (rv__str_is(method, "\"mute\"")) {
        rv__conn_end(conn, NULL);
    } else if (rv__str_is(method, "\"fail\"")) {
        (void)rv__fail(&err, RV_ENOTFOUND, "there is no such thing");
        rv__wire_error(out, &err);
    } else if (rv__str_is(method, "\"wait\"")) {
        fx->held++;
    } else if (rv__str_is(method, "\"large\"")) {
        size_t start = rv__wire_begin(out, FRAME_RESULT);
        rv__wire_text(out, "text", rv__str("large"));
        rv__buf_text(out, ",\"more\":\"");
        for (int i = 0; i < 1 << 20; i++)
            rv__buf_text(out, "0123456789");
        rv__buf_char(out, '"');
        rv__wire_end(out, start);
    } else {
        size_t start = rv__wire_begin(out, FRAME_RESULT);
        rv__wire_text(out, "text", rv__str("heard"));
        rv__wire_end(out, start);
    }
}

static void ended(void *arg, struct rv__conn *conn, const rv_error *why)
{
    (void)conn;
    (void)why;
    ((struct fixture *)arg)->ended++;
}

static const struct rv__conn_user echo = { .heard = heard, .ended = ended };

static void greeted(void *arg, struct rv__conn *conn, const struct rv__frame *hello)
{
    struct rv__str role;
    rv__frame_members(hello, (const char *[]){ "role" }, &role, 1);
    assert_true(rv__str_is(role, "\"client\""));
    rv__conn_use(conn, &echo, arg);
    rv__conn_say(conn, FRAME_HELLO);
}

static void listen_here(struct fixture *fx)
{
    rv_error err;
    if (fx->wires == NULL && rv__wires_new(&fx->wires, &err) < 0)
        fail_msg("%s", err.message);
    const struct rv__listen_opts opts = {
        .wires = fx->wires, .greeted = greeted, .arg = fx, .hello_ms = 200
    };
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
    listen_here(fx);
    assert_int_equal(stat(fx->place.path, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0600);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ask(fx, "hi", 5000, NULL, text, &err), RV_OK);
        assert_string_equal(text, "\"heard\"");
    }
    assert_int_equal(ask(fx, "large", 20000, NULL, text, &err), RV_OK); /* longer than any buffer */
    assert_int_equal(ask(fx, "fail", 5000, NULL, text, &err), RV_ENOTFOUND);
    assert_string_equal(err.message, "there is no such thing");
    assert_int_equal(ask(fx, "mute", 5000, NULL, text, &err), RV_EFAILED); /* nobody knows */
    rv__listener_free(fx->listener);
    fx->listener = NULL;
    assert_int_equal(access(fx->place.path, F_OK), -1);
    assert_int_equal(ask(fx, "hi", 1000, NULL, text, &err), RV_ECLOSED);
}

static void a_socket_of_the_dead_gives_way(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    listen_here(fx);
    struct rv__listener *first = fx->listener; /* as if its process had died and left its socket */
    listen_here(fx);
    assert_int_equal(ask(fx, "hi", 5000, NULL, text, &err), RV_OK);
    struct rv__listener *second = fx->listener;
    fx->listener = first; /* the teardown's; the name is the second's until it closes */
    rv__listener_free(second);
    assert_int_equal(access(fx->place.path, F_OK), -1);
}

static void await_at_least(atomic_int *count, int least)
{
    for (int i = 0; i < 5000 && *count < least; i++)
        usleep(1000);
    assert_true(*count >= least);
}

static void who_hangs_up_is_noticed(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    listen_here(fx);
    assert_int_equal(ask(fx, "wait", 50, NULL, text, &err), RV_ETIMEDOUT);
    assert_non_null(strstr(err.message, "process 7"));
    await_at_least(&fx->ended, 1);
}

static void who_asks_can_be_told_to_give_up(void **state)
{
    struct fixture *fx = *state;
    char text[64];
    rv_error err;
    rv_cancel *by = rv_cancel_new(NULL);
    listen_here(fx);
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

static void closing_ends_every_conversation(void **state)
{
    struct fixture *fx = *state;
    pthread_t asker;
    void *rc = NULL;
    listen_here(fx);
    assert_int_equal(pthread_create(&asker, NULL, ask_for_ever, fx), 0);
    await_at_least(&fx->held, 1);
    rv__listener_free(fx->listener);
    fx->listener = NULL;
    assert_int_equal(fx->ended, 0); /* who is in stays */
    rv__wires_free(fx->wires);
    fx->wires = NULL;
    assert_int_equal(fx->ended, 1);
    pthread_join(asker, &rc);
    assert_int_equal((intptr_t)rc, RV_EFAILED);
}

/* ------------------------------------------------------------------------------ processes --- */

static void note_died(void *arg)
{
    ((struct fixture *)arg)->died++;
}

static pid_t watched;

static void begin_watch(void *arg)
{
    struct fixture *fx = arg;
    fx->watch = rv__pid_watch_new(fx->wires, watched, note_died, fx);
}

static void end_watch(void *arg)
{
    rv__pid_watch_free(((struct fixture *)arg)->watch);
}

static void the_death_of_a_process_is_told_once(void **state)
{
    struct fixture *fx = *state;
    rv_error err;
    int pipe_in[2], status;
    assert_int_equal(pipe(pipe_in), 0);
    watched = fork();
    if (watched == 0) {
        char byte;
        close(pipe_in[1]);
        (void)!read(pipe_in[0], &byte, 1);
        _exit(0);
    }
    assert_int_equal(rv__wires_new(&fx->wires, &err), RV_OK);
    rv__wires_run(fx->wires, begin_watch, fx);
    assert_non_null(fx->watch);
    assert_int_equal(fx->died, 0);
    close(pipe_in[1]);
    await_at_least(&fx->died, 1);
    assert_int_equal(waitpid(watched, &status, 0), watched);
    rv__wires_run(fx->wires, end_watch, fx);
    assert_int_equal(fx->died, 1);
    close(pipe_in[0]);
}

/* ----------------------------------------------------------------------------------- kept --- */

static void what_the_other_end_keeps_is_known(void **state)
{
    static struct rv__kept kept;
    static const char values[1000];
    unsigned slot;
    bool forget, no_memory;
    (void)state;
    assert_false(rv__kept_has(&kept, &values[1], &slot));
    assert_int_equal(rv__kept_add(&kept, (struct rv__shared){ &values[1], NULL }, 10, &forget),
                     slot);
    assert_false(forget);
    assert_true(rv__kept_has(&kept, &values[1], &slot));
    (void)rv__kept_add(&kept, (struct rv__shared){ &values[2], NULL }, RV__KEPT_BYTES, &forget);
    assert_true(forget); /* the first one would not fit beside it */
    assert_false(rv__kept_has(&kept, &values[1], &slot));

    rv__kept_forget(&kept);
    for (uint64_t serial = 1; serial <= 5000; serial++) {
        assert_int_equal(rv__kept_entry(&kept, serial * 7919), 0);
        assert_true(rv__kept_room(&kept, 1, 100, &no_memory));
        assert_int_equal(rv__kept_add_entry(&kept, serial * 7919, 100), serial);
    }
    for (uint64_t serial = 1; serial <= 5000; serial++)
        assert_int_equal(rv__kept_entry(&kept, serial * 7919), serial);
    assert_false(rv__kept_room(&kept, RV__KEPT_ENTRIES, 0, &no_memory));
    assert_false(no_memory);
    assert_false(rv__kept_room(&kept, 1, RV__KEPT_BYTES, &no_memory));
    rv__kept_forget(&kept);
    assert_true(rv__kept_room(&kept, RV__KEPT_ENTRIES, RV__KEPT_BYTES + 1, &no_memory)); /* once */
    rv__kept_forget(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_question_gets_its_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_socket_of_the_dead_gives_way, setup, teardown),
        cmocka_unit_test_setup_teardown(who_hangs_up_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_can_be_told_to_give_up, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_every_conversation, setup, teardown),
        cmocka_unit_test_setup_teardown(the_death_of_a_process_is_told_once, setup, teardown),
        cmocka_unit_test(what_the_other_end_keeps_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
