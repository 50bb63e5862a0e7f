/* test_http.c: http steps on a real engine, answered by a server of our own. For src/work/http.c. */
#include "unit/engine/rig.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "unit/listener.h"

enum { ROOM = 16 << 10 };

static atomic_int busy_asked, missing_asked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int held, most_held;
static bool let_go;

static void answer(int fd, const char *status, const char *headers, const char *body)
{
    char text[ROOM];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 %s\r\nConnection: close\r\n%sContent-Length: %zu"
                     "\r\n\r\n%s",
                     status, headers, strlen(body), body);
    (void)!send(fd, text, (size_t)n, MSG_NOSIGNAL);
}

static void serve(int fd)
{
    char request[ROOM], path[64] = "";
    size_t len = 0;
    ssize_t n = 1;
    request[0] = '\0';
    while (n > 0 && strstr(request, "\r\n\r\n") == NULL) {
        n = recv(fd, request + len, sizeof request - len - 1, 0);
        len += n > 0 ? (size_t)n : 0;
        request[len] = '\0';
    }
    sscanf(request, "%*s %63[^ ?]", path);
    if (strcmp(path, "/json") == 0) {
        answer(fd, "200 OK", "Content-Type: application/json\r\n", "{\"n\": 12345678901234567890}");
    } else if (strcmp(path, "/echo") == 0) {
        for (char *c = request; *c != '\0'; c++)
            *c = *c == '\r' ? ' ' : *c;
        answer(fd, "200 OK", "", request);
    } else if (strcmp(path, "/busy") == 0) {
        if (atomic_fetch_add(&busy_asked, 1) == 0)
            answer(fd, "503 Busy", "Retry-After: 1\r\n", "come again");
        else
            answer(fd, "200 OK", "", "\"now\"");
    } else if (strcmp(path, "/stall") == 0) {
        while (recv(fd, request, 1, 0) > 0)
            ;
    } else if (strcmp(path, "/held") == 0) {
        pthread_mutex_lock(&lock);
        held++;
        most_held = held > most_held ? held : most_held;
        pthread_cond_broadcast(&changed);
        while (!let_go)
            pthread_cond_wait(&changed, &lock);
        held--;
        pthread_mutex_unlock(&lock);
        answer(fd, "200 OK", "", "1");
    } else if (strcmp(path, "/moved") == 0) {
        answer(fd, "302 Found", "Location: /json\r\n", "it is elsewhere");
    } else if (strcmp(path, "/half") == 0) {
        static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it";
        (void)!send(fd, half, sizeof half - 1, MSG_NOSIGNAL);
    } else if (strcmp(path, "/large") == 0) {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
        static const char piece[1 << 16];
        n = send(fd, head, sizeof head - 1, MSG_NOSIGNAL);
        for (int i = 0; i < 1600 && n > 0; i++) /* all of a piece: the socket blocks */
            n = send(fd, piece, sizeof piece, MSG_NOSIGNAL);
    } else if (strcmp(path, "/bytes") == 0) {
        answer(fd, "200 OK", "Content-Type: image/x\r\n", "\xff\xfe");
    } else {
        atomic_fetch_add(&missing_asked, 1);
        answer(fd, "404 Not Found", "X-Why: gone\r\n", "no such page");
    }
}

static struct listener server = { .serve = serve };

static int start_server(void **state)
{
    (void)state;
    return listener_start(&server);
}

static int stop_server(void **state)
{
    (void)state;
    listener_stop(&server);
    return 0;
}

/* ---------------------------------------------------------------------------------- tests --- */

/* A file with one workflow "w" of these steps; HOST in them is the server. */
static void define(struct rig *rig, const char *steps)
{
    snprintf(rig->host, sizeof rig->host, "http://127.0.0.1:%d", server.port);
    rig_define(rig, steps);
}

static void an_answer_becomes_the_result(void **state)
{
    struct rig *rig = *state;
    define(rig, "  - http: HOST/json\n"
                "  - n: { value: '${ .steps.httpRequest.result.data.n }' }\n"
                "  - say: { http: { url: 'HOST/${ .input }', responseType: text, method: delete,\n"
                "      headers: { X-Key: '${ .run.idempotencyKey }', X-No: null, X-N: 5 },\n"
                "      body: { a: '${ .input }' } }, description: 'said ${ .result.status }' }\n");
    rig_gives(rig, "a", "\"echo\"",
              "\"httpRequest\":{\"result\":{\"status\":200,\"statusText\":\"OK\",\"headers\":{"
              "\"connection\":\"close\",\"content-length\":\"27\",\"content-type\":\"application/"
              "json\"},\"data\":{\"n\": 12345678901234567890},\"duration\":");
    rig_gives(rig, "b", "\"echo\"", "\"n\":{\"result\":12345678901234567890");
    rig_gives(rig, "c", "\"echo\"", "\"data\":\"DELETE /echo HTTP/1.1 ");
    rig_gives(rig, "d", "\"echo\"", "X-N: 5 ");
    rig_gives(rig, "e", "\"echo\"", "Content-Type: application/json ");
    rig_gives(rig, "f", "\"echo\"", "{\\\"a\\\":\\\"echo\\\"}\"");
    rig_gives(rig, "g", "\"echo\"", "\"description\":\"said 200\"");
    rv_outcome *outcome = rig_outcome(rig, "h", "\"echo\"");
    assert_null(strstr(outcome->results, "X-No"));
    assert_non_null(strstr(outcome->results, "X-Key: "));
    rv_outcome_free(outcome);
}

static void a_bad_answer_is_an_error_with_a_code(void **state)
{
    struct rig *rig = *state;
    define(rig,
           "  - get: { http: HOST/nowhere, onError: { command: [sh, -c, 'echo \"$1\" > told', x,"
           " '${ [.error.code, .error.status, .error.headers[\"x-why\"], .error.body] }'] } }\n");
    rig_gives(rig, "a", NULL, "the server answered with status 404 (Not Found): no such page");
    char path[100], told[200] = "";
    snprintf(path, sizeof path, "%s/told", rig->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(told, sizeof told, file));
    fclose(file);
    unlink(path);
    assert_string_equal(told, "[\"status\",404,\"gone\",\"no such page\"]\n");
    define(rig, "  - get: { http: { url: HOST/nowhere, throwOnError: false } }\n"
                "  - then: { value: '${ .lastStep.result.status }' }\n");
    rig_gives(rig, "b", NULL, "\"then\":{\"result\":404");
    define(rig, "  - get: { http: { url: HOST/echo, responseType: json } }\n");
    rig_gives(rig, "c", NULL, "is not JSON");
}

static void what_is_no_request_is_told(void **state)
{
    static const struct {
        const char *with, *says;
    } rows[] = {
        { "url: '${ 5 }'", "badUrl" },
        { "url: '${ null }'", "needs a `url`" },
        { "url: HOST/json, method: '${ \"A B\" }'", "is a word such as GET" },
        { "url: HOST/json, method: '${ \"connect\" }'", "is a word such as GET" },
        { "url: HOST/json, headers: { A: '${ \"x\\r\\nB: y\" }' }", "line end" },
        { "url: HOST/json, headers: { 'a b': x }", "an invalid name" },
        { "url: HOST/json, headers: { A: [1] }", "must have a text" },
        { "url: HOST/json, headers: { Content-Length: 5 }", "cannot be given" },
        { "url: HOST/json, headers: '${ 5 }'", "must be a map" },
        { "url: HOST/json, timeout: '${ -1 }'", "is a duration" },
        { "url: HOST/json, maxBytes: '${ 0 }'", "`maxBytes`" },
        { "url: HOST/json, maxBytes: 5", "more than 5 bytes" },
        { "url: HOST/json, responseType: '${ \"xml\" }'", "json, text or base64" },
        { "url: HOST/json, throwOnError: '${ 1 }'", "true or false" },
    };
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char steps[300], id[16];
        snprintf(steps, sizeof steps, "  - get: { http: { %s } }\n", rows[i].with);
        snprintf(id, sizeof id, "r%zu", i);
        define(rig, steps);
        rig_gives(rig, id, NULL, rows[i].says);
    }
}

static void a_retry_waits_as_long_as_the_server_asks(void **state)
{
    struct rig *rig = *state;
    define(rig, "  - get: { http: HOST/busy, maxAttempts: 2, backoffBaseMs: 1 }\n");
    atomic_store(&busy_asked, 0);
    int64_t before = rv__mono_ms(rv__clock_real());
    rig_gives(rig, "a", NULL, "\"data\":\"now\"");
    assert_true(rv__mono_ms(rv__clock_real()) - before >= 990); /* and not 1 ms */
    assert_int_equal(atomic_load(&busy_asked), 2);
}

static void what_the_server_will_not_have_is_not_sent_again(void **state)
{
    struct rig *rig = *state;
    define(rig, "  - get: { http: HOST/missing, maxAttempts: 3, backoffBaseMs: 1 }\n");
    atomic_store(&missing_asked, 0);
    rig_gives(rig, "a", NULL, "status 404");
    assert_int_equal(atomic_load(&missing_asked), 1);
    define(rig,
           "  - get: { http: HOST/missing, maxAttempts: 3, backoffBaseMs: 1, retryOn: [404] }\n");
    atomic_store(&missing_asked, 0);
    rig_gives(rig, "b", NULL, "status 404");
    assert_int_equal(atomic_load(&missing_asked), 3);
}

static void bytes_are_refused_or_kept_as_base64(void **state)
{
    struct rig *rig = *state;
    define(rig, "  - get: { http: { url: HOST/bytes } }\n");
    rig_gives(rig, "a", NULL, "`responseType: base64` keeps them");
    define(rig, "  - get: { http: { url: HOST/bytes, responseType: base64 } }\n");
    rig_gives(rig, "b", NULL, "\"data\":\"//4=\"");
}

static void a_request_that_is_cancelled_or_too_slow_is_ended(void **state)
{
    struct rig *rig = *state;
    rv_outcome *outcome = NULL;
    define(rig, "  - slow: { http: { url: HOST/stall, timeout: 100ms }, maxAttempts: 2 }\n");
    rig_gives(rig, "a", NULL, "it timed out after 100 ms: no answer had arrived");
    define(rig, "  - slow: { http: HOST/stall, timeout: 100ms }\n");
    rig_gives(rig, "b", NULL, "step 'slow' timed out after 100 ms");
    define(rig, "  - slow: { http: HOST/stall }\n");
    assert_int_equal(rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "c"), NULL, &rig->err),
                     0);
    assert_int_equal(rv_cancel_run(rig->engine, "c", &rig->err), 0);
    assert_int_equal(rv_wait(rig->engine, NULL, "c", NULL, &outcome, &rig->err), 0);
    assert_int_equal(outcome->status, RV_CANCELLED);
    rv_outcome_free(outcome);
    assert_int_equal(rv_engine_close(rig->engine), 0); /* nobody is left at work */
}

static void await_held(int count)
{
    pthread_mutex_lock(&lock);
    while (held < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void set_let_go(bool on)
{
    pthread_mutex_lock(&lock);
    let_go = on;
    most_held = on ? most_held : 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void an_engine_that_closes_hands_its_requests_back(void **state)
{
    struct rig *rig = *state;
    set_let_go(false);
    define(rig, "  - get: { http: HOST/held }\n");
    assert_int_equal(rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "a"), NULL, &rig->err),
                     0);
    await_held(1);
    rig_close(rig);
    set_let_go(true);
    rig_open(rig, NULL);
    define(rig, "  - get: { http: HOST/held }\n");
    assert_int_equal(rig_wait(rig, "a"), RV_COMPLETED); /* it was asked again */
}

static void beyond_the_connections_they_queue(void **state)
{
    struct rig *rig = *state;
    struct rlimit before, less;
    char *why = NULL;
    set_let_go(false);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = before;
    less.rlim_cur = 40; /* half of it is for connections */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .workers = 1));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    define(rig, "  - all: { forEach: '${ [range(40)] }', parallel: true, run: { http: HOST/held } }"
                "\n");
    assert_int_equal(rv_run(rig->engine, "w", NULL, RV_RUN_OPTS(.run_id = "a"), NULL, &rig->err),
                     0);
    await_held(20);
    assert_int_equal(rv_why(rig->engine, "a", &why, &rig->err), 0);
    if (strstr(why, "\"reason\":\"place\",\"count\":20,") == NULL ||
        strstr(why, "\"limit\":\"connections\",\"limitSize\":20,") == NULL)
        fail_msg("%s", why);
    rv_free(why);
    set_let_go(true);
    assert_int_equal(rig_wait(rig, "a"), RV_COMPLETED);
    assert_int_equal(most_held, 20);
}

static bool is_there(const struct rig *rig, const char *name, char *text, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", rig->folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    fclose(file);
    assert_int_equal(unlink(path), 0);
    return true;
}

/* What was asked for, and neither a redirect's words nor a failure's. */
static void a_body_goes_to_a_file(void **state)
{
    struct rig *rig = *state;
    char text[100];
    define(rig, "  - a: { http: HOST/json, saveTo: a.kept }\n"
                "  - b: { http: { url: HOST/moved, saveTo: 'b.${ .input }' } }\n"
                "  - c: { http: { url: HOST/missing, throwOnError: false, saveTo: c.kept } }\n");
    rig_gives(rig, "a", "\"kept\"",
              "\"a\":{\"result\":{\"path\":\"a.kept\",\"bytes\":27},\"state\":{},\"status\":"
              "\"completed\"},\"b\":{\"result\":{\"path\":\"b.kept\",\"bytes\":27}");
    assert_true(is_there(rig, "a.kept", text, sizeof text));
    assert_string_equal(text, "{\"n\": 12345678901234567890}");
    assert_true(is_there(rig, "b.kept", text, sizeof text));
    assert_string_equal(text, "{\"n\": 12345678901234567890}");
    assert_false(is_there(rig, "c.kept", text, sizeof text));
    rig_gives(rig, "b", "\"kept\"", "\"c\":{\"result\":{\"status\":404,");
    define(rig, "  - a: { http: HOST/half, saveTo: a.kept }\n");
    rig_gives(rig, "c", NULL, "\"code\":\"dropped\"");
    define(rig, "  - a: { http: HOST/nowhere, saveTo: d.kept }\n");
    rig_gives(rig, "d", NULL, "\"code\":\"status\"");
    (void)is_there(rig, "b.kept", text, sizeof text);
    assert_true(is_there(rig, "a.kept", text, sizeof text)); /* of run b: the failed one left it */
    assert_string_equal(text, "{\"n\": 12345678901234567890}");
    assert_false(is_there(rig, "d.kept", text, sizeof text));
}

static void a_saved_body_is_in_no_memory(void **state)
{
    struct rig *rig = *state;
    struct rusage before, after;
    char text[2];
    getrusage(RUSAGE_SELF, &before);
    define(rig, "  - a: { http: HOST/large, saveTo: large.kept }\n");
    rig_gives(rig, "a", NULL, "{\"path\":\"large.kept\",\"bytes\":104857600}");
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 50000); /* kB */
    assert_true(is_there(rig, "large.kept", text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_answer_becomes_the_result),
        RIG_TEST(a_bad_answer_is_an_error_with_a_code),
        RIG_TEST(what_is_no_request_is_told),
        RIG_TEST(a_retry_waits_as_long_as_the_server_asks),
        RIG_TEST(what_the_server_will_not_have_is_not_sent_again),
        RIG_TEST(bytes_are_refused_or_kept_as_base64),
        RIG_TEST(a_request_that_is_cancelled_or_too_slow_is_ended),
        RIG_TEST(an_engine_that_closes_hands_its_requests_back),
        RIG_TEST(a_body_goes_to_a_file),
        RIG_TEST(a_saved_body_is_in_no_memory),
        RIG_TEST(beyond_the_connections_they_queue),
    };
    return cmocka_run_group_tests_name("http", tests, start_server, stop_server);
}
