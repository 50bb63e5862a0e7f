/* test_answer.c: what a finished request means for its step. For src/exec/answer.c. */
#include "unit/test.h"

#include "base/arena.h"
#include "base/json.h"
#include "exec/exec.h"

static struct rv__arena arena;

static int setup(void **state)
{
    (void)state;
    rv__arena_init(&arena, SIZE_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv__arena_done(&arena);
    return 0;
}

static const struct rv__answer_want get = { .method = "GET", .url = "http://h/p" };
static const struct rv__answer_want as_text = { .method = "GET",
                                                .url = "http://h/p",
                                                .as = RV__OUTPUT_TEXT };
static const struct rv__answer_want as_json = { .method = "GET",
                                                .url = "http://h/p",
                                                .as = RV__OUTPUT_JSON };
static const struct rv__answer_want as_base64 = { .method = "GET",
                                                  .url = "http://h/p",
                                                  .as = RV__OUTPUT_BASE64 };
static const struct rv__answer_want any_status = { .method = "GET",
                                                   .url = "http://h/p",
                                                   .any_status = true };

static struct rv__fetch_result answered(int status, const char *head, const char *body)
{
    return (struct rv__fetch_result){ .end = RV__FETCH_ANSWERED,
                                      .status = status,
                                      .head = rv__str(head),
                                      .body = rv__str(body),
                                      .ran_ms = 5 };
}

static const struct row {
    const char *says;
    const struct rv__answer_want *want;
    int status;
    const char *head, *body;
    enum rv__fetch_end end;
    const char *json;
} rows[] = {
    { "bytes that are not UTF-8 are refused", &get, 200,
      "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", "\x89PNG", RV__FETCH_NOT_TEXT,
      "{\"message\":\"GET http://h/p: the body of the answer is not text: it has bytes that are "
      "not "
      "UTF-8 (its type is 'image/png'); `responseType: base64` keeps them as base64\",\"code\":"
      "\"notText\",\"status\":200,\"statusText\":\"OK\",\"headers\":{\"content-type\":\"image/"
      "png\"},\"body\":\"\xef\xbf\xbdPNG\"}" },
    { "or kept", &as_base64, 200, "HTTP/1.1 200 OK\r\n\r\n", "\x89PNG", RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{},\"data\":\"iVBORw==\",\"duration\":"
      "5}" },
    { "what looks like a number is text", &get, 200, "HTTP/1.1 200 OK\r\n\r\n", "5e12345",
      RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{},\"data\":\"5e12345\",\"duration\":5}" },
    { "unless it says what it is", &get, 200,
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", "1.10", RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{\"content-type\":\"application/json\"},"
      "\"data\":1.10,\"duration\":5}" },
    { "JSON is a value", &get, 200, "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n", " {\"a\": 1}\n",
      RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{\"content-type\":\"x\"},\"data\":"
      "{\"a\": 1},\"duration\":5}" },
    { "headers are sorted, and joined", &get, 200,
      "HTTP/2 200\r\nSet-Cookie: b\r\nA:1\r\nset-cookie:\tc \r\n\r\n", "1", RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"\",\"headers\":{\"a\":\"1\",\"set-cookie\":\"b, "
      "c\"},\"data\":1,\"duration\":5}" },
    { "no body is null", &get, 204, "HTTP/1.1 204 No Content\r\n\r\n", "", RV__FETCH_ANSWERED,
      "{\"status\":204,\"statusText\":\"No "
      "Content\",\"headers\":{},\"data\":null,\"duration\":5}" },
    { "text is text, even if it could be JSON", &as_text, 200, "HTTP/1.1 200 OK\r\n\r\n", "1\n",
      RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{},\"data\":\"1\\n\",\"duration\":5}" },
    { "what is no JSON is text", &get, 200, "HTTP/1.1 200 OK\r\n\r\n", "hello", RV__FETCH_ANSWERED,
      "{\"status\":200,\"statusText\":\"OK\",\"headers\":{},\"data\":\"hello\",\"duration\":5}" },
    { "but not if it says that it is", &get, 200,
      "HTTP/1.1 200 OK\r\nContent-Type: application/problem+json\r\n\r\n", "[", RV__FETCH_NOT_JSON,
      "{\"message\":\"GET http://h/p: the body of the answer is not JSON: line 1, column 2: "
      "expected a value, found the end of the text (its type is 'application/problem+json'); "
      "`responseType: text` takes it as "
      "text\",\"code\":\"notJson\",\"status\":200,\"statusText\":\"OK\",\"headers\":{\"content-"
      "type\":\"application/problem+json\"},\"body\":\"[\"}" },
    { "what should be JSON and is not", &as_json, 200,
      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "<html>", RV__FETCH_NOT_JSON,
      "{\"message\":\"GET http://h/p: the body of the answer is not JSON: line 1, column 1: "
      "expected a value, found '<' (its type is 'text/html'); `responseType: text` takes it as "
      "text\",\"code\":\"notJson\",\"status\":200,\"statusText\":\"OK\",\"headers\":{\"content-"
      "type\":\"text/html\"},\"body\":\"<html>\"}" },
    { "a bad status is an error", &get, 404, "HTTP/1.1 404 Not Found\r\n\r\n", "no\n",
      RV__FETCH_STATUS,
      "{\"message\":\"GET http://h/p: the server answered with status 404 (Not Found): "
      "no\",\"code\":\"status\",\"status\":404,\"statusText\":\"Not "
      "Found\",\"headers\":{},\"body\":\"no\"}" },
    { "unless it was asked for", &any_status, 404, "HTTP/1.1 404 Not Found\r\n\r\n", "no\n",
      RV__FETCH_ANSWERED,
      "{\"status\":404,\"statusText\":\"Not "
      "Found\",\"headers\":{},\"data\":\"no\\n\",\"duration\":5}" },
};

static void an_answer_follows_its_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct rv__fetch_result result = answered(r->status, r->head, r->body);
        struct rv__answer answer;
        assert_int_equal(rv__fetch_answer(&result, r->want, &arena, &answer, NULL), RV_OK);
        if (answer.end != r->end || !rv__str_is(answer.json, r->json))
            fail_msg("%s: %s %.*s", r->says, rv__fetch_end_name(answer.end), RV__ARG(answer.json));
    }
}

static void an_error_says_who_was_asked_but_no_secrets(void **state)
{
    struct rv__fetch_result result = { .end = RV__FETCH_REFUSED, .error = "refused" };
    const struct rv__answer_want want = { .method = "PUT", .url = "https://me:pw@h:1/p?key=k#f" };
    struct rv__answer answer;
    (void)state;
    result.head = result.body = rv__str("");
    assert_int_equal(rv__fetch_answer(&result, &want, &arena, &answer, NULL), RV_OK);
    assert_true(rv__str_is(answer.json, "{\"message\":\"PUT https://h:1/p: refused\","
                                        "\"code\":\"refused\"}"));
}

static void a_server_may_ask_for_a_wait(void **state)
{
    static const struct {
        int status;
        const char *header;
        int64_t ms;
    } waits[] = {
        { 429, "Retry-After: 7", 7000 },
        { 503, "retry-after: 120", 120000 },
        { 500, "Retry-After: 7", 0 }, /* not of these */
        { 429, "Retry-After: soon", 0 },
        { 429, "Retry-After: -5", 0 },
        { 429, "Retry-After: 99999999999999999999999", RV__RETRY_AFTER_MS },
        { 503, "Retry-After: Thu, 01 Jan 1970 00:00:30 GMT", 20000 }, /* it is ten past */
        { 503, "Retry-After: Thu, 01 Jan 1970 00:00:05 GMT", 0 },
        { 503, "Retry-After: Thu, 01 Jan 2037 00:00:05 GMT", RV__RETRY_AFTER_MS },
    };
    struct rv__answer_want want = get;
    (void)state;
    want.now_ms = 10000;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        char head[200];
        struct rv__answer answer;
        snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%s\r\n\r\n", waits[i].status,
                 waits[i].header);
        struct rv__fetch_result result = answered(waits[i].status, head, "");
        assert_int_equal(rv__fetch_answer(&result, &want, &arena, &answer, NULL), RV_OK);
        if (answer.retry_after_ms != waits[i].ms)
            fail_msg("%s: %lld", waits[i].header, (long long)answer.retry_after_ms);
    }
}

/* What would fail again is not tried again: a 4xx, unless it is about time. */
static void some_failures_are_final(void **state)
{
    static const struct {
        int status;
        bool final;
    } statuses[] = {
        { 400, true },  { 401, true },  { 404, true }, { 408, false }, { 410, true },
        { 425, false }, { 429, false }, { 499, true }, { 500, false }, { 503, false }
    };
    struct rv__answer a;
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct rv__fetch_result r = answered(statuses[i].status, "HTTP/1.1 400 x\r\n\r\n", "");
        assert_int_equal(rv__fetch_answer(&r, &get, &arena, &a, NULL), RV_OK);
        if (a.final != statuses[i].final)
            fail_msg("%d", statuses[i].status);
        assert_int_equal(rv__fetch_answer(&r, &any_status, &arena, &a, NULL), RV_OK);
        assert_true(a.end == RV__FETCH_ANSWERED && !a.final); /* it did not fail */
    }
    struct rv__fetch_result denied = { .end = RV__FETCH_DENIED },
                            timeout = { .end = RV__FETCH_TIMEOUT };
    denied.head = denied.body = timeout.head = timeout.body = rv__str("");
    assert_int_equal(rv__fetch_answer(&denied, &get, &arena, &a, NULL), RV_OK);
    assert_true(a.final);
    assert_int_equal(rv__fetch_answer(&timeout, &get, &arena, &a, NULL), RV_OK);
    assert_false(a.final);
}

static void hostile_text_becomes_json_all_the_same(void **state)
{
    static char body[5000], head[60000];
    struct rv__answer answer;
    (void)state;
    memset(body, '\xC3', sizeof body - 1);
    size_t len = (size_t)snprintf(head, sizeof head, "HTTP/1.1 500 ");
    memset(head + len, 'x', 30000); /* a status text without an end, then one header many times */
    for (len += 30000; len + 6 < sizeof head; len += 6)
        memcpy(head + len, "\r\nA:b", 6);
    struct rv__fetch_result result = answered(500, head, body);
    assert_int_equal(rv__fetch_answer(&result, &get, &arena, &answer, NULL), RV_OK);
    assert_int_equal(rv__json_check(answer.json, RV__JSON_VALUE_DEPTH, NULL, NULL), RV_OK);
    result = answered(500, "\r\n:\r\nHTTP/\r\nno colon\r\n: no name\r\n\xFF:\xFF", body);
    assert_int_equal(rv__fetch_answer(&result, &any_status, &arena, &answer, NULL), RV_OK);
    assert_int_equal(rv__json_check(answer.json, RV__JSON_VALUE_DEPTH, NULL, NULL), RV_OK);
}

static void no_memory_is_told(void **state)
{
    struct rv__fetch_result result = answered(200, "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "[1]");
    int rc = RV_ENOMEM;
    (void)state;
    for (int n = 0; rc != RV_OK; n++) {
        struct rv__answer answer;
        rv_error err;
        rv__arena_done(&arena);
        rv__test_fail_alloc_after(n);
        rc = rv__fetch_answer(&result, &get, &arena, &answer, &err);
        rv__test_fail_alloc_after(-1);
        assert_true(rc == RV_OK || (rc == RV_ENOMEM && err.code == RV_ENOMEM));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_follows_its_table),
        TEST(an_error_says_who_was_asked_but_no_secrets),
        TEST(a_server_may_ask_for_a_wait),
        TEST(some_failures_are_final),
        TEST(hostile_text_becomes_json_all_the_same),
        TEST(no_memory_is_told),
    };
    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
