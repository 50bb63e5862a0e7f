/* test_streams.c: events and waiting over HTTP: src/server/hub.c behind real connections. */
#include "unit/test.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/hub.h"
#include "unit/server/visitor.h"

enum { SMALL_RING = 3000 }; /* bytes: a run of `three` does not fit */

static int follow(struct place *p, const char *path, const char *last_id)
{
    char text[512];
    int fd = dial(p);
    snprintf(text, sizeof text, "GET %.200s HTTP/1.0\r\nHost: localhost\r\n%s%.40s%s\r\n", path,
             last_id != NULL ? "Last-Event-ID: " : "", last_id != NULL ? last_id : "",
             last_id != NULL ? "\r\n" : "");
    say(fd, text);
    return fd;
}

/* The ids of all events in p->heard, each once and growing; how many. */
static size_t ids(struct place *p, char (*ret)[40], size_t max)
{
    size_t count = 0;
    unsigned long long seq = 0, index = 0, s, i;
    for (const char *at = p->heard; (at = strstr(at, "id: ")) != NULL;) {
        bool begins = at == p->heard || at[-1] == '\n';
        at += 4;
        if (!begins)
            continue;
        const char *line_end = strchr(at, '\n');
        if (line_end == NULL || strncmp(line_end, "\nevent: ", 8) != 0)
            continue; /* where the stream begins; or cut */
        assert_int_equal(sscanf(at, "%llu.%llu\n", &s, &i), 2);
        if (s < seq || (s == seq && i <= index && count > 0))
            fail_msg("event %llu.%llu came after %llu.%llu", s, i, seq, index);
        seq = s;
        index = i;
        assert_true(count < max);
        snprintf(ret[count++], 40, "%llu.%llu", s, i);
    }
    return count;
}

static void events_come_as_they_happen(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    int fd = follow(p, "/api/v1/events", NULL);
    assert_true(hear(p, fd, "retry: "));
    assert_true(has(p, "Content-Type: text/event-stream"));
    place_start(p, "three", "r1");
    assert_true(hear(p, fd, "event: run.completed"));
    assert_true(has(p, "event: run.started\ndata: {"));
    assert_true(has(p, "event: log\n"));
    assert_true(has(p, "\"result\":{\"n\":\ndata: 1}")); /* a line break in somebody's JSON */
    char all[64][40];
    assert_int_equal(ids(p, all, 64), 9);
}

static void a_stream_of_one_run_has_its_events_only(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    place_start(p, "hold", "mine");
    int fd = follow(p, "/api/v1/runs/mine/events?logs=0", NULL);
    assert_true(hear(p, fd, "retry: "));
    place_start(p, "three", "other");
    place_end(p, "other");
    assert_int_equal(rv_signal(p->engine, "mine", "go", "1", &p->err), RV_OK);
    assert_true(hear(p, fd, "event: run.completed"));
    assert_false(has(p, "\"other\""));
    assert_false(has(p, "event: log"));
    assert_true(has(p, "event: signal.received"));
}

/* Everything behind any event that was seen, exactly, from the ring or from the store. */
static void resume_everywhere(struct place *p)
{
    char all[64][40], some[64][40];
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        place_start(p, "three", id);
        place_end(p, id);
    }
    int fd = follow(p, "/api/v1/events", "0");
    assert_true(hear(p, fd, "\"run.completed\",\"runId\":\"r2\""));
    size_t count = ids(p, all, 64);
    assert_int_equal(count, 27);
    for (size_t i = 0; i + 1 < count; i++) {
        fd = follow(p, "/api/v1/events", all[i]);
        assert_true(hear(p, fd, "\"run.completed\",\"runId\":\"r2\""));
        assert_int_equal(ids(p, some, 64), count - i - 1);
        assert_string_equal(some[0], all[i + 1]);
    }
}

static void a_stream_resumes_behind_any_event(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    int fd = follow(p, "/api/v1/events", NULL); /* so that there is a ring */
    assert_true(hear(p, fd, "retry: "));
    resume_everywhere(p);
}

static void a_stream_resumes_also_from_the_store(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){ .limits.ring_bytes = SMALL_RING });
    resume_everywhere(p);
}

static void a_position_that_is_not_there_is_gone(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    place_start(p, "three", "r1");
    place_end(p, "r1");
    assert_int_equal(ask_for(p, "GET /api/v1/events", "Last-Event-ID: 99999.0\r\n", NULL), 410);
    assert_int_equal(ask_for(p, "GET /api/v1/events", "Last-Event-ID: what\r\n", NULL), 400);
    assert_int_equal(ask_for(p, "HEAD /api/v1/events", NULL, NULL), 405);
    assert_int_equal(ask_for(p, "GET /api/v1/runs/nobody/events", NULL, NULL), 404);
}

static void events_that_retention_took_are_gone(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    for (int i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        place_start(p, "three", id);
        place_end(p, id);
    }
    assert_int_equal(rv_retain(p->engine, RV_RETAIN_OPTS(.max_runs = 1), NULL, &p->err), RV_OK);
    assert_int_equal(ask_for(p, "GET /api/v1/events", "Last-Event-ID: 1.0\r\n", NULL), 410);
}

/* A reader that does not read: everything is there for it later, and nothing twice. */
static void a_slow_reader_gets_everything(void **state)
{
    enum { RUNS = 300, EVENTS = RUNS * 9 };
    struct place *p = *state;
    char(*all)[40] = calloc(EVENTS + 1, sizeof *all);
    int small = 32 << 10;
    assert_non_null(all);
    p->kept = all; /* freed with it */
    place_serve(p, &(struct rv__server_opts){ .limits.ring_bytes = SMALL_RING });
    int fd = dial(p);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    say(fd, "GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_true(hear(p, fd, "retry: "));
    for (int i = 0; i < RUNS; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        place_start(p, "three", id);
    }
    for (int i = 0; i < RUNS; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        place_end(p, id);
    }
    place_start(p, "hold", "last");
    assert_true(hear(p, fd, "\"run.started\",\"runId\":\"last\""));
    *strstr(p->heard, "\"runId\":\"last\"") = '\0';
    assert_int_equal(ids(p, all, EVENTS + 1), EVENTS + 1);
}

/* The ring holds a run or two, and runs end all the while: streams fall behind and join it again, over
 * and over, and what is added to the ring just then is not lost between the store and the ring. */
static void who_joins_in_the_midst_misses_nothing(void **state)
{
    enum { RUNS = 80, EVENTS = RUNS * 9, STREAMS = 8 };
    struct place *p = *state;
    char(*all)[40] = calloc(EVENTS + 1, sizeof *all);
    int fds[STREAMS];
    assert_non_null(all);
    p->kept = all; /* freed with it */
    place_serve(p, &(struct rv__server_opts){ .limits.ring_bytes = SMALL_RING });
    place_annoy(p);
    for (int i = 0; i < RUNS; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        place_start(p, "three", id);
        if (i % (RUNS / STREAMS) == 0)
            fds[i / (RUNS / STREAMS)] = follow(p, "/api/v1/events", "0");
        place_end(p, id);
    }
    place_start(p, "hold", "last");
    place_calm(p);
    for (int i = 0; i < STREAMS; i++) {
        assert_true(hear(p, fds[i], "\"run.started\",\"runId\":\"last\""));
        *strstr(p->heard, "\"runId\":\"last\"") = '\0';
        assert_int_equal(ids(p, all, EVENTS + 1), EVENTS + 1);
    }
}

static void a_quiet_stream_beats(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){ .limits.heartbeat_ms = 100 });
    int fd = follow(p, "/api/v1/events", NULL);
    assert_true(hear(p, fd, "\n:\n\n"));
}

/* ----------------------------------------------------------------------------------- waiting --- */

static void who_waits_is_answered_at_the_end(void **state)
{
    enum { CLIENTS = 40 }; /* more than there are threads */
    struct place *p = *state;
    int fds[CLIENTS];
    place_serve(p, NULL);
    place_start(p, "hold", "r1");
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(p);
        say(fds[i], "GET /api/v1/runs/r1/wait HTTP/1.0\r\nHost: localhost\r\n\r\n");
    }
    assert_int_equal(ask_for(p, "GET /api/v1/runs/r1", NULL, NULL), 200); /* others are served */
    assert_int_equal(rv_signal(p->engine, "r1", "go", "{\"by\":\"me\"}", &p->err), RV_OK);
    for (int i = 0; i < CLIENTS; i++) {
        assert_false(hear(p, fds[i], NULL));
        assert_int_equal(status_in(p->heard), 200);
        assert_true(has(p, "\"status\":\"completed\"") && has(p, "{\"by\":\"me\"}"));
    }
}

/* It ends behind the look whether to wait, and before somebody listens for its end. */
static void a_run_that_ends_just_before_is_not_waited_for(void **state)
{
    struct place *p = *state;
    char id[8], text[128];
    place_serve(p, NULL);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof id, "r%d", i);
        place_start(p, "hold", id);
        int fd = dial(p);
        snprintf(text, sizeof text, "GET /api/v1/runs/%s/wait HTTP/1.0\r\nHost: localhost\r\n\r\n",
                 id);
        pthread_mutex_lock(&p->server->hub->lock); /* nobody begins to listen meanwhile */
        say(fd, text);
        for (int k = 0; k < 20; k++) /* the look before these was before the end */
            assert_int_equal(ask_for(p, "GET /api/v1/runs", NULL, NULL), 200);
        assert_int_equal(rv_signal(p->engine, id, "go", "1", &p->err), RV_OK);
        place_end(p, id);
        pthread_mutex_unlock(&p->server->hub->lock);
        assert_false(hear(p, fd, NULL));
        assert_int_equal(status_in(p->heard), 200);
    }
}

static void waiting_ends_in_time(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    place_start(p, "hold", "r1");
    assert_int_equal(ask_for(p, "GET /api/v1/runs/r1/wait?timeoutMs=50", NULL, NULL), 408);
    assert_true(has(p, "\"runStatus\":\"running\""));
    assert_int_equal(ask_for(p, "GET /api/v1/runs/nobody/wait", NULL, NULL), 404);
}

/* It is over while it is still being looked whether there is need to wait. */
static void a_time_that_is_over_at_once_is_told(void **state)
{
    enum { CLIENTS = 40 };
    struct place *p = *state;
    int fds[CLIENTS];
    place_serve(p, NULL);
    place_start(p, "hold", "r1");
    place_annoy(p);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = dial(p);
        say(fds[i], "GET /api/v1/runs/r1/wait?timeoutMs=1 HTTP/1.0\r\nHost: localhost\r\n\r\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_false(hear(p, fds[i], NULL));
        assert_int_equal(status_in(p->heard), 408);
    }
}

/* The time without a byte is counted while bytes are due, not while we are. */
static void who_waits_for_long_is_not_taken_for_stuck(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){ .limits.stuck_ms = 1000 });
    place_start(p, "hold", "r1");
    int stream = follow(p, "/api/v1/events", NULL);
    assert_true(hear(p, stream, "retry: "));
    assert_int_equal(ask_for(p, "GET /api/v1/runs/r1/wait?timeoutMs=2500", NULL, NULL), 408);
    place_start(p, "three", "r2");
    assert_true(hear(p, stream, "event: run.completed"));
}

/* A client that waits and goes away gives its place back long before its time is over. */
static void who_goes_away_leaves_nothing(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){ .limits.connections = 2 });
    place_start(p, "hold", "r1");
    for (int i = 0; i < 4; i++) {
        int fd = dial(p);
        say(fd, i % 2 == 0 ? "GET /api/v1/runs/r1/wait HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           : "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (i % 2 == 1)
            assert_true(hear(p, fd, "retry: "));
        (void)shutdown(fd, SHUT_WR);
        (void)hear(p, fd, NULL); /* until we are gone there too */
        close(fd);
        p->fd_count--;
    }
    assert_int_equal(ask_for(p, "GET /healthz", NULL, NULL), 200);
}

static void draining_answers_everybody(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    place_start(p, "hold", "r1");
    int stream = follow(p, "/api/v1/events", NULL);
    assert_true(hear(p, stream, "retry: "));
    int waiter = dial(p), idle = dial(p);
    say(waiter, "GET /api/v1/runs/r1/wait HTTP/1.0\r\nHost: localhost\r\n\r\n");
    say(idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(hear(p, idle, "{\"status\""));
    rv__server_drain(p->server, 10000);
    assert_false(hear(p, stream, NULL));
    assert_true(has(p, ": the server is shutting down\n\n"));
    assert_false(hear(p, waiter, NULL));
    assert_true(status_in(p->heard) == 408 || status_in(p->heard) == 503);
    say(idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    (void)hear(p, idle, NULL);
    assert_int_equal(status_in(p->heard), 503);
}

static void the_end_of_the_engine_ends_streams(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    int stream = follow(p, "/api/v1/events", NULL);
    assert_true(hear(p, stream, "retry: "));
    rv_engine_close(p->engine);
    assert_false(hear(p, stream, NULL));
    assert_int_equal(ask_for(p, "GET /api/v1/events", NULL, NULL), 503);
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", NULL, "{}"), 503);
}

#define T(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(events_come_as_they_happen),
        T(a_stream_of_one_run_has_its_events_only),
        T(a_stream_resumes_behind_any_event),
        T(a_stream_resumes_also_from_the_store),
        T(a_position_that_is_not_there_is_gone),
        T(events_that_retention_took_are_gone),
        T(a_slow_reader_gets_everything),
        T(who_joins_in_the_midst_misses_nothing),
        T(a_quiet_stream_beats),
        T(who_waits_is_answered_at_the_end),
        T(a_run_that_ends_just_before_is_not_waited_for),
        T(waiting_ends_in_time),
        T(a_time_that_is_over_at_once_is_told),
        T(who_waits_for_long_is_not_taken_for_stuck),
        T(who_goes_away_leaves_nothing),
        T(draining_answers_everybody),
        T(the_end_of_the_engine_ends_streams),
    };
    return cmocka_run_group_tests_name("server/streams", tests, NULL, NULL);
}
