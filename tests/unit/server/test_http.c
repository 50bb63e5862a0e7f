/* test_http.c: requests as nobody should send them, who may come in, and limits: src/server/http.c. */
#include "unit/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/server/visitor.h"

#define VIEWER   "v-0123456789abcdef"
#define OPERATOR "o-0123456789abcdef"
#define ADMIN    "a-0123456789abcdef"

static void write_tokens(struct place *p, const char *text, mode_t mode)
{
    unlink(p->tokens);
    int fd = open(p->tokens, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void serve_with_tokens(struct place *p)
{
    write_tokens(p, "# who\nviewer " VIEWER "\noperator\t" OPERATOR "\r\n\nadmin " ADMIN, 0600);
    place_serve(p, &(struct rv__server_opts){ .token_file = p->tokens });
}

/* --------------------------------------------------------------------------------- requests --- */

#define OURS "Host: localhost\r\nConnection: close\r\n"
static const struct {
    const char *says, *text;
    int low, high; /* status; 0 = closed without one */
    bool library;  /* answered by libmicrohttpd itself, in HTML */
} unusual_requests[] = {
    { "a request", "GET /healthz HTTP/1.1\r\n" OURS "\r\n", 200, 200 },
    { "an old one", "GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200, 200 },
    { "noise", "\x16\x03\x01\x02\r\n\r\n", 0, 400 },
    { "one word", "HELLO\r\n\r\n", 0, 400 },
    { "no Host", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400, 400 },
    { "two Hosts", "GET /healthz HTTP/1.1\r\n" OURS "Host: localhost\r\n\r\n", 400, 400 },
    { "spaces in the target", "GET /healthz x HTTP/1.1\r\n" OURS "\r\n", 400, 400 },
    { "spaces in the query", "GET /healthz?x= y HTTP/1.1\r\n" OURS "\r\n", 400, 400 },
    { "a space behind a name",
      "POST /api/v1/login HTTP/1.1\r\n" OURS "Content-Length : 2\r\n\r\n{}", 400, 400 },
    { "no header", "GET /healthz HTTP/1.1\r\n" OURS "x\r\n\r\n", 400, 400, true },
    { "a version to come", "GET /healthz HTTP/9.9\r\n" OURS "\r\n", 505, 505, true },
    { "another's Host", "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403,
      403 },
    { "a proxy's target", "GET http://evil.example/ HTTP/1.1\r\n" OURS "\r\n", 400, 400 },
    { "no path", "OPTIONS * HTTP/1.1\r\n" OURS "\r\n", 400, 400 },
    { "a tunnel", "CONNECT evil.example:443 HTTP/1.1\r\n" OURS "\r\n", 400, 400 },
    { "no such method", "FROBNICATEFROBNICATE /api/v1/runs HTTP/1.1\r\n" OURS "\r\n", 400, 405 },
    { "a method that is not taken", "DELETE /api/v1/runs HTTP/1.1\r\n" OURS "\r\n", 405, 405 },
    { "a post to the UI", "POST / HTTP/1.1\r\n" OURS "Content-Length: 0\r\n\r\n", 405, 405 },
    { "two lengths",
      "POST /api/v1/login HTTP/1.1\r\n" OURS "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400, 400 },
    { "a length, and chunks",
      "POST /api/v1/login HTTP/1.1\r\n" OURS
      "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400, 400 },
    { "another encoding", "POST /api/v1/login HTTP/1.1\r\n" OURS "Transfer-Encoding: gzip\r\n\r\n",
      400, 400 },
    { "a length that is none", "POST /api/v1/login HTTP/1.1\r\n" OURS "Content-Length: -1\r\n\r\n",
      0, 400, true },
    { "chunks that are none",
      "POST /api/v1/login HTTP/1.1\r\n" OURS "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, 400,
      true },
    { "too long a body",
      "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS "Content-Length: 99999999999\r\n\r\n{",
      413, 413 },
    { "climbing", "GET /../../etc/passwd HTTP/1.1\r\n" OURS "\r\n", 200, 404 },
    { "climbing among the files", "GET /assets/../../../etc/passwd HTTP/1.1\r\n" OURS "\r\n", 404,
      404 },
    { "climbing, in disguise", "GET /assets/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" OURS "\r\n", 404,
      404 },
    { "a NUL in the path", "GET /api/v1/runs/%00 HTTP/1.1\r\n" OURS "\r\n", 400, 404 },
    { "no UTF-8 in the path", "GET /api/v1/runs/%ff%fe HTTP/1.1\r\n" OURS "\r\n", 400, 404 },
    { "raw bytes in the path", "GET /api/v1/runs/\xff\xfe HTTP/1.1\r\n" OURS "\r\n", 0, 404 },
    { "no UTF-8 in the body",
      "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS
      "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"runId\":\"\xff\xfe\"}",
      400, 422 },
    { "a page's simple post",
      "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS
      "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
      415, 415 },
    { "a page's simple log-in",
      "POST /api/v1/login HTTP/1.1\r\n" OURS
      "Origin: http://localhost\r\nContent-Type: text/plain\r\nContent-Length: "
      "13\r\n\r\n{\"token\":\"x\"}",
      415, 415 },
    { "another site's post",
      "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS
      "Origin: http://evil.example\r\nContent-Type: application/json\r\nContent-Length: "
      "2\r\n\r\n{}",
      403, 403 },
};

static void odd_requests_are_refused_and_harm_nothing(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    for (size_t i = 0; i < sizeof unusual_requests / sizeof *unusual_requests; i++) {
        int status = ask(p, unusual_requests[i].text);
        if (status < unusual_requests[i].low || status > unusual_requests[i].high)
            fail_msg("%s: %d, %s", unusual_requests[i].says, status, p->heard);
        if (has(p, "root:"))
            fail_msg("%s: that is /etc/passwd", unusual_requests[i].says);
        if (status >= 400 && !unusual_requests[i].library &&
            !has(p, "Content-Type: application/problem+json"))
            fail_msg("%s: not told as a problem: %s", unusual_requests[i].says, p->heard);
    }
    assert_int_equal(ask_for(p, "GET /healthz", NULL, NULL), 200);
}

static void long_heads_are_refused(void **state)
{
    struct place *p = *state;
    struct rv__buf text;
    place_serve(p, NULL);
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "GET /");
    for (int i = 0; i < 9000; i++)
        rv__buf_char(&text, 'a');
    rv__buf_text(&text, " HTTP/1.1\r\n" OURS "\r\n");
    assert_int_equal(ask(p, text.text), 414);
    assert_true(has(p, "application/problem+json"));
    rv__buf_reset(&text);
    rv__buf_text(&text, "GET /healthz HTTP/1.1\r\n" OURS "X-Long: ");
    for (int i = 0; i < 25 << 10; i++)
        rv__buf_char(&text, 'a');
    rv__buf_text(&text, "\r\n\r\n");
    assert_int_equal(ask(p, text.text), 431);
    assert_true(has(p, "application/problem+json"));
    rv__buf_reset(&text);
    rv__buf_text(&text, "GET /healthz HTTP/1.1\r\n" OURS);
    for (int i = 0; i < 5000; i++)
        rv__buf_fmt(&text, "X-%d: some value or other\r\n", i);
    rv__buf_text(&text, "\r\n");
    int status = ask(p, text.text);
    rv__buf_done(&text);
    assert_true(status == 431 ||
                status == 0); /* cut off while we still talk: the answer may be lost */
    assert_int_equal(ask_for(p, "GET /healthz", NULL, NULL), 200);
}

static void a_body_without_a_length_has_an_end_too(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){ .limits.body_bytes = 1000 });
    int fd = dial(p);
    say(fd, "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    char chunk[1100];
    memset(chunk, ' ', sizeof chunk);
    snprintf(chunk, 8, "3e8\r\n");
    chunk[5] = ' ';
    snprintf(chunk + 1005, 3, "\r\n");
    say(fd, chunk);
    say(fd, "2\r\n{}\r\n0\r\n\r\n");
    (void)hear(p, fd, NULL);
    assert_int_equal(status_in(p->heard), 413);
    fd = dial(p); /* and who goes on for ever is cut off */
    say(fd,
        "POST /api/v1/workflows/three/runs HTTP/1.1\r\n" OURS "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 1000; i++)
        say(fd, chunk);
    (void)hear(p, fd, NULL);
    assert_int_equal(status_in(p->heard), 0);
}

static void a_connection_is_used_again(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    int fd = dial(p);
    for (int i = 0; i < 3; i++) {
        say(fd, "POST /api/v1/workflows/three/runs HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
        assert_true(hear(p, fd, "\"status\":\"running\"}"));
        assert_int_equal(status_in(p->heard), 202);
        say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_true(hear(p, fd, "</html>"));
    }
}

static void every_answer_is_dressed(void **state)
{
    static const char *const headers[] = {
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; ",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cross-Origin-Resource-Policy: same-origin",
    };
    static const char *const what[] = { "GET /", "GET /api/v1/runs", "GET /nothing.txt",
                                        "DELETE /api/v1/runs", "GET /metrics" };
    struct place *p = *state;
    place_serve(p, NULL);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        (void)ask_for(p, what[i], NULL, NULL);
        for (size_t k = 0; k < sizeof headers / sizeof *headers; k++)
            if (!has(p, headers[k]))
                fail_msg("%s: no %s in %s", what[i], headers[k], p->heard);
        assert_false(has(p, "Access-Control-Allow-Origin"));
        assert_int_equal(has(p, "Cache-Control: no-store"), i != 0);
    }
}

static void the_page_is_there_for_every_route_of_its_own(void **state)
{
    struct place *p = *state;
    place_serve(p, NULL);
    assert_int_equal(ask_for(p, "GET /", NULL, NULL), 200);
    assert_true(has(p, "Content-Type: text/html") && has(p, "Cache-Control: no-cache"));
    const char *etag = strstr(p->heard, "ETag: ");
    assert_non_null(etag);
    char line[128];
    snprintf(line, sizeof line, "If-None-Match: %.*s\r\n", (int)strcspn(etag + 6, "\r"), etag + 6);
    assert_int_equal(ask_for(p, "GET /", line, NULL), 304);
    assert_int_equal(ask_for(p, "GET /runs/some-run", NULL, NULL), 200);
    assert_int_equal(ask_for(p, "GET /runs/a.run.with.dots", "Accept: text/html,*/*\r\n", NULL),
                     200);
    assert_int_equal(ask_for(p, "GET /favicon.png", "Accept: image/png\r\n", NULL), 404);
    assert_int_equal(ask_for(p, "GET /assets/none.js", NULL, NULL), 404);
    assert_int_equal(ask_for(p, "HEAD /", "Accept-Encoding: gzip\r\n", NULL), 200);
    assert_true(strstr(p->heard, "\r\n\r\n")[4] == '\0');
}

/* ------------------------------------------------------------------------------------- limits --- */

static void who_dawdles_is_cut_off(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){
                       .limits = { .header_ms = 200, .body_ms = 200, .idle_ms = 200 } });
    int silent = dial(p), slow = dial(p), body = dial(p), again = dial(p);
    say(body, "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              "Content-Length: 100\r\n\r\n{");
    say(again, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    say(slow, "GET /healthz HTTP/1.1\r\nHost: local");
    assert_false(hear(p, silent, NULL));
    assert_int_equal(status_in(p->heard), 0);
    assert_false(hear(p, slow, NULL));
    assert_int_equal(status_in(p->heard), 0);
    assert_false(hear(p, body, NULL));
    assert_int_equal(status_in(p->heard), 0);
    assert_false(hear(p, again, NULL));
    assert_int_equal(status_in(p->heard), 200); /* its first, and no second */
}

static void connections_are_counted(void **state)
{
    struct place *p = *state;
    place_serve(p, &(struct rv__server_opts){
                       .limits = { .connections = 8, .connections_per_address = 4 } });
    int fds[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(p);
        say(fds[i], "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_true(hear(p, fds[i], "status"));
    }
    assert_int_equal(ask_for(p, "GET /healthz", NULL, NULL), 0);
    shutdown(fds[0], SHUT_RDWR);
    for (int tries = 0; ask_for(p, "GET /healthz", NULL, NULL) != 200;
         tries++) /* a place is free soon */
        assert_true(tries < 100000);
}

static void requests_are_counted(void **state)
{
    struct place *p = *state;
    int status = 200;
    place_serve(p, &(struct rv__server_opts){ .limits.requests_per_s = 5 });
    for (int i = 0; i < 1000 && status == 200; i++)
        status = ask_for(p, "GET /healthz", NULL, NULL);
    assert_int_equal(status, 429);
    assert_true(has(p, "Retry-After: 1"));
}

/* --------------------------------------------------------------------------------- who may in --- */

#define BEARER(token) "Authorization: Bearer " token "\r\n"
static const struct {
    const char *what, *headers, *body;
    int status;
} allowed[] = {
    { "GET /", NULL, NULL, 200 }, /* the page that asks for a token */
    { "GET /healthz", NULL, NULL, 200 },
    { "GET /api/v1/session", NULL, NULL, 200 },
    { "GET /api/v1/runs", NULL, NULL, 401 },
    { "GET /api/v1/events", NULL, NULL, 401 },
    { "GET /metrics", NULL, NULL, 401 },
    { "GET /api/v1/nothing", NULL, NULL, 401 },
    { "GET /api/v1/runs", BEARER("wrong-0123456789abcdef"), NULL, 401 },
    { "GET /api/v1/runs", BEARER(""), NULL, 401 },
    { "GET /api/v1/runs", "Authorization: Basic dTpw\r\n", NULL, 401 },
    { "GET /api/v1/runs", "Cookie: rival_session=0123\r\n", NULL, 401 },
    { "GET /api/v1/runs", BEARER(VIEWER), NULL, 200 },
    { "GET /api/v1/runs", "authorization: bearer " VIEWER "\r\n", NULL, 200 },
    { "POST /api/v1/workflows/three/runs", BEARER(VIEWER), "{}", 403 },
    { "POST /api/v1/workflows/three/runs", BEARER(OPERATOR), "{}", 202 },
    { "POST /api/v1/workflows/three/runs", BEARER(ADMIN), "{}", 202 },
    { "POST /api/v1/workflows/three/runs", NULL, "{}", 401 },
};

static void a_token_opens_what_its_role_may(void **state)
{
    struct place *p = *state;
    serve_with_tokens(p);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        int status = ask_for(p, allowed[i].what, allowed[i].headers, allowed[i].body);
        if (status != allowed[i].status)
            fail_msg("%s with %s: %d", allowed[i].what, allowed[i].headers, status);
        if (status == 401 && !has(p, "WWW-Authenticate: Bearer"))
            fail_msg("%s: how to come in is not told", allowed[i].what);
    }
}

/* The header line of the session that the last answer began. */
static void take_cookie(const struct place *p, char ret[256])
{
    const char *set = strstr(p->heard, "Set-Cookie: ");
    assert_non_null(set);
    snprintf(ret, 256, "Cookie: other=1; %.*s\r\n", (int)strcspn(set + 12, ";"), set + 12);
}

static void log_in(struct place *p, const char *token, char cookie[256])
{
    char body[128];
    snprintf(body, sizeof body, "{\"token\":\"%s\"}", token);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, body), 200);
    take_cookie(p, cookie);
}

static void a_browser_logs_in_and_out(void **state)
{
    struct place *p = *state;
    char cookie[256];
    serve_with_tokens(p);
    assert_int_equal(ask_for(p, "GET /api/v1/session", NULL, NULL), 200);
    assert_true(has(p, "{\"role\":\"none\",\"authRequired\":true}"));
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"token\":\"nobody-has-this-one\"}"),
                     401);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"token\":7}"), 422);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"tokens\":\"" ADMIN "\"}"), 422);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{"), 400);
    assert_int_equal(ask_for(p, "GET /api/v1/login", NULL, NULL), 405);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"token\":\"" OPERATOR "\"}"), 200);
    assert_true(has(p, "{\"role\":\"operator\",\"authRequired\":true}"));
    assert_true(has(p, "; HttpOnly; SameSite=Strict;") && !has(p, OPERATOR));
    take_cookie(p, cookie);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", cookie, NULL), 200);
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", cookie, "{}"), 202);
    char evil[512];
    snprintf(evil, sizeof evil, "%sOrigin: http://evil.example\r\n", cookie);
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", evil, "{}"), 403);
    assert_int_equal(ask_for(p, "POST /api/v1/logout", cookie, NULL), 200);
    assert_true(has(p, "Max-Age=0"));
    assert_int_equal(ask_for(p, "GET /api/v1/runs", cookie, NULL), 401);
}

static void sessions_are_counted(void **state)
{
    struct place *p = *state;
    char first[256], second[256], third[256];
    write_tokens(p, "viewer " VIEWER, 0600);
    place_serve(p, &(struct rv__server_opts){ .token_file = p->tokens, .limits.sessions = 2 });
    log_in(p, VIEWER, first);
    log_in(p, VIEWER, second);
    log_in(p, VIEWER, third);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", first, NULL), 401); /* the oldest went */
    assert_int_equal(ask_for(p, "GET /api/v1/runs", second, NULL), 200);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", third, NULL), 200);
}

/* A stream and one who waits, by the same right: both have begun. */
static void stay(struct place *p, const char *headers, int *stream, int *waiter)
{
    char text[512];
    *stream = dial(p);
    snprintf(text, sizeof text, "GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\n%s\r\n",
             headers);
    say(*stream, text);
    assert_true(hear(p, *stream, "retry: "));
    *waiter = dial(p);
    snprintf(text, sizeof text, "GET /api/v1/runs/r1/wait HTTP/1.0\r\nHost: localhost\r\n%s\r\n",
             headers);
    say(*waiter, text);
}

static void expect_out(struct place *p, int stream, int waiter)
{
    assert_false(hear(p, stream, NULL));
    assert_true(has(p, ": the session has ended, or the token was withdrawn\n\n"));
    assert_false(hear(p, waiter, NULL));
    assert_int_equal(status_in(p->heard), 401);
}

static void expect_in(struct place *p, int stream, const char *run)
{
    char event[64];
    snprintf(event, sizeof event, "\"run.completed\",\"runId\":\"%s\"", run);
    place_start(p, "three", run);
    assert_true(hear(p, stream, event));
}

static void who_logs_out_sees_no_more(void **state)
{
    struct place *p = *state;
    char cookie[256], other[256];
    int stream, waiter, others, other_waiter;
    serve_with_tokens(p);
    place_start(p, "hold", "r1");
    log_in(p, VIEWER, cookie);
    log_in(p, VIEWER, other);
    stay(p, cookie, &stream, &waiter);
    stay(p, other, &others, &other_waiter);
    assert_int_equal(ask_for(p, "POST /api/v1/logout", cookie, NULL), 200);
    expect_out(p, stream, waiter);
    expect_in(p, others, "r2");
    assert_int_equal(rv_signal(p->engine, "r1", "go", "1", &p->err), RV_OK);
    assert_false(hear(p, other_waiter, NULL));
    assert_int_equal(status_in(p->heard), 200);
}

static void a_token_that_is_withdrawn_opens_nothing(void **state)
{
    struct place *p = *state;
    char viewer[256], operator[256];
    int by_cookie, cookie_waits, by_token, token_waits, stays, stay_waits;
    serve_with_tokens(p);
    place_start(p, "hold", "r1");
    log_in(p, VIEWER, viewer);
    log_in(p, OPERATOR, operator);
    stay(p, viewer, &by_cookie, &cookie_waits);
    stay(p, BEARER(VIEWER), &by_token, &token_waits);
    stay(p, operator, & stays, &stay_waits);
    write_tokens(p, "admin " OPERATOR "\nviewer " ADMIN, 0600);
    assert_int_equal(rv__server_tokens(p->server, p->tokens, &p->err), 1);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", viewer, NULL), 401);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER(VIEWER), NULL), 401);
    expect_out(p, by_cookie, cookie_waits);
    expect_out(p, by_token, token_waits);
    expect_in(p, stays, "r2");
    assert_int_equal(ask_for(p, "GET /api/v1/session", operator, NULL), 200);
    assert_true(has(p, "\"role\":\"admin\"")); /* as the file says now */
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", BEARER(ADMIN), "{}"), 403);
}

static void a_token_file_that_will_not_do_changes_nothing(void **state)
{
    struct place *p = *state;
    char cookie[256];
    serve_with_tokens(p);
    log_in(p, VIEWER, cookie);
    write_tokens(p, "viewer " ADMIN "\nroot " VIEWER, 0600);
    assert_int_equal(rv__server_tokens(p->server, p->tokens, &p->err), RV_EINVAL);
    assert_non_null(strstr(p->err.message, "tokens:2: "));
    unlink(p->tokens);
    assert_int_equal(rv__server_tokens(p->server, p->tokens, &p->err), RV_EINVAL);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", cookie, NULL), 200);
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", BEARER(ADMIN), "{}"), 202);
    int rc;
    write_tokens(p, "viewer " VIEWER, 0600);
    TORTURE(rc, rv__server_tokens(p->server, p->tokens, &p->err), (void)0);
    assert_int_equal(rc, 0);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", cookie, NULL), 200);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER(ADMIN), NULL), 401);
}

/* A stranger behind the same address must not keep the owner of a token out. */
static void wrong_tokens_never_lock_out_the_right_one(void **state)
{
    struct place *p = *state;
    serve_with_tokens(p);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER("guess-0123456789abcdef"), NULL),
                         401);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER("guess-0123456789abcdef"), NULL), 429);
    assert_true(has(p, "Retry-After:"));
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"token\":\"guess-again\"}"), 429);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER(VIEWER), NULL), 200);
    assert_int_equal(ask_for(p, "POST /api/v1/login", NULL, "{\"token\":\"" VIEWER "\"}"), 200);
    assert_int_equal(ask_for(p, "GET /healthz", NULL, NULL), 200);
}

static void a_token_may_have_a_name(void **state)
{
    struct place *p = *state;
    char cookie[256];
    write_tokens(p, "viewer " VIEWER " kim@example.org\nworker " OPERATOR " w-1\nadmin " ADMIN,
                 0600);
    place_serve(p, &(struct rv__server_opts){ .token_file = p->tokens });
    assert_int_equal(ask_for(p, "GET /api/v1/session", BEARER(VIEWER), NULL), 200);
    assert_true(has(p, "\"role\":\"viewer\",\"authRequired\":true,\"name\":\"kim@example.org\"}"));
    log_in(p, VIEWER, cookie);
    assert_int_equal(ask_for(p, "GET /api/v1/session", cookie, NULL), 200);
    assert_true(has(p, "\"name\":\"kim@example.org\""));
    assert_int_equal(ask_for(p, "GET /api/v1/session", BEARER(ADMIN), NULL), 200);
    assert_false(has(p, "\"name\""));
    assert_int_equal(ask_for(p, "GET /api/v1/runs", BEARER(OPERATOR), NULL), 403); /* a worker's */
    write_tokens(p, "viewer " VIEWER " lee", 0600);
    assert_int_equal(rv__server_tokens(p->server, p->tokens, &p->err), 0);
    assert_int_equal(ask_for(p, "GET /api/v1/session", cookie, NULL), 200);
    assert_true(has(p, "\"name\":\"lee\"")); /* as the file says now */
}

static void one_token_has_so_many_sessions(void **state)
{
    struct place *p = *state;
    char other[256], first[256], second[256], third[256];
    write_tokens(p, "viewer " VIEWER "\nadmin " ADMIN, 0600);
    place_serve(
        p, &(struct rv__server_opts){ .token_file = p->tokens, .limits.sessions_per_token = 2 });
    log_in(p, ADMIN, other);
    log_in(p, VIEWER, first);
    log_in(p, VIEWER, second);
    log_in(p, VIEWER, third);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", first, NULL), 401); /* the oldest of its own */
    assert_int_equal(ask_for(p, "GET /api/v1/runs", second, NULL), 200);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", third, NULL), 200);
    assert_int_equal(ask_for(p, "GET /api/v1/runs", other, NULL), 200); /* though it is older */
}

/* Room for one stream, and then for nothing that is not small. */
static void what_waits_to_be_read_has_its_room(void **state)
{
    struct place *p = *state;
    char *body = calloc(1, 20001);
    p->kept = body;
    assert_non_null(body);
    memset(body, ' ', 20000);
    memcpy(body, "{}", 2);
    place_serve(p, &(struct rv__server_opts){ .limits.memory_bytes = 100 << 10 });
    int stream = dial(p);
    say(stream, "GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert_true(hear(p, stream, "retry: "));
    assert_int_equal(ask_for(p, "GET /api/v1/events", NULL, NULL), 503);
    assert_true(has(p, "application/problem+json") && has(p, "Retry-After:"));
    assert_int_equal(ask_for(p, "GET /openapi.json", NULL, NULL), 503);
    assert_true(has(p, "no memory for the answer"));
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", NULL, body), 503);
    assert_true(has(p, "no memory for the request"));
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", NULL, "{}"), 202);
    shutdown(stream, SHUT_RDWR);
    int status = 0;
    for (int i = 0; i < 100 && status != 200; i++) { /* as soon as it is seen to be gone */
        status = ask_for(p, "GET /openapi.json", NULL, NULL);
        rv__clock_sleep_ms(50);
    }
    assert_int_equal(status, 200);
    assert_int_equal(ask_for(p, "POST /api/v1/workflows/three/runs", NULL, body), 202);
}

static const struct {
    const char *says, *text, *message;
    mode_t mode;
} token_files[] = {
    { "nobody is in it", "# nobody\n", "there is no token", 0600 },
    { "no such role", "viewer " VIEWER "\nroot " ADMIN,
      "tokens:2: a line must be `role token [name]`", 0600 },
    { "only a token", ADMIN, "tokens:1: a line must be `role token [name]`", 0600 },
    { "no token", "admin", "tokens:1: a token has 1 to", 0600 },
    { "something behind it", "admin " ADMIN " a b", "tokens:1: there is text after", 0600 },
    { "a name that is none", "admin " ADMIN " a/b", "tokens:1: the name after a token", 0600 },
    { "twice", "admin " ADMIN "\nviewer " ADMIN, "tokens:2: this token is given twice", 0600 },
    { "not visible", "admin 0123456789abcdef\x01", "tokens:1: a token is made of visible", 0600 },
};

/* Good enough where only this machine comes in; a warning says so. */
static void a_weak_token_is_for_this_machine_alone(void **state)
{
    static const struct {
        const char *text, *message;
        mode_t mode;
    } weak[] = {
        { "viewer " VIEWER, "chmod 600", 0644 },
        { "admin secret", "tokens:1: a token of fewer than 16 characters", 0600 },
    };
    struct place *p = *state;
    for (size_t i = 0; i < sizeof weak / sizeof *weak; i++) {
        struct rv__server *server = NULL;
        write_tokens(p, weak[i].text, weak[i].mode);
        struct rv__server_opts opts = { .listen = "0.0.0.0:0", .token_file = p->tokens };
        assert_int_equal(rv__server_new(p->engine, &opts, &server, &p->err), RV_EINVAL);
        assert_non_null(strstr(p->err.message, weak[i].message));
        assert_null(strstr(p->err.message, "secret"));
        opts.listen = "127.0.0.1:0";
        assert_int_equal(rv__server_new(p->engine, &opts, &server, &p->err), RV_OK);
        rv__server_free(server);
        write_tokens(p, "viewer " VIEWER, 0600); /* nor may it become weak */
        opts.listen = "0.0.0.0:0";
        assert_int_equal(rv__server_new(p->engine, &opts, &server, &p->err), RV_OK);
        write_tokens(p, weak[i].text, weak[i].mode);
        assert_int_equal(rv__server_tokens(server, p->tokens, &p->err), RV_EINVAL);
        rv__server_free(server);
    }
}

static void a_bad_token_file_is_told_by_line(void **state)
{
    struct place *p = *state;
    struct rv__server *server = NULL;
    for (size_t i = 0; i < sizeof token_files / sizeof *token_files; i++) {
        write_tokens(p, token_files[i].text, token_files[i].mode);
        int rc = rv__server_new(
            p->engine,
            &(struct rv__server_opts){ .listen = "127.0.0.1:0", .token_file = p->tokens }, &server,
            &p->err);
        if (rc != RV_EINVAL || strstr(p->err.message, token_files[i].message) == NULL)
            fail_msg("%s: %d, %s", token_files[i].says, rc, p->err.message);
        if (strstr(p->err.message, "abcdef") != NULL || strstr(p->err.message, "secret") != NULL)
            fail_msg("%s: the message has a token in it", token_files[i].says);
    }
}

static const struct {
    const char *listen;
    bool insecure;
    int rc;
} addresses[] = {
    { "0.0.0.0:0", false, RV_EINVAL }, /* others can reach it, and nobody is asked for a token */
    { ":0", false, RV_EINVAL },
    { "*:0", false, RV_EINVAL },
    { "0.0.0.0:0", true, RV_OK },
    { "127.0.0.1:0", false, RV_OK },
    { "127.3.2.1:0", false, RV_OK },
    { "localhost:0", false, RV_OK },
    { "127.0.0.1", false, RV_EINVAL },
    { "127.0.0.1:", false, RV_EINVAL },
    { "127.0.0.1:http", false, RV_EINVAL },
    { "127.0.0.1:99999", false, RV_EINVAL },
    { "::1:0", false, RV_EINVAL },
    { "", false, RV_EINVAL },
};

static void an_open_address_needs_a_token_or_a_word(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct rv__server *server = NULL;
        int rc = rv__server_new(p->engine,
                                &(struct rv__server_opts){ .listen = addresses[i].listen,
                                                           .insecure = addresses[i].insecure },
                                &server, &p->err);
        rv__server_free(server);
        if (rc != addresses[i].rc)
            fail_msg("'%s': %d %s", addresses[i].listen, rc, rc < 0 ? p->err.message : "");
    }
    place_serve(p, NULL);
    char taken[32];
    struct rv__server *server = NULL;
    snprintf(taken, sizeof taken, "127.0.0.1:%u", p->port);
    assert_int_equal(
        rv__server_new(p->engine, &(struct rv__server_opts){ .listen = taken }, &server, &p->err),
        RV_EBUSY);
    assert_int_equal(
        rv__server_new(p->engine,
                       &(struct rv__server_opts){ .listen = "127.0.0.1:0", .tls_cert = "x" },
                       &server, &p->err),
        RV_EINVAL);
}

static void without_memory_there_is_no_server(void **state)
{
    struct place *p = *state;
    struct rv__server_opts opts = { .listen = "127.0.0.1:0",
                                    .token_file = p->tokens,
                                    .allow_hosts = (const char *const[]){ "a.example", NULL } };
    int rc;
    write_tokens(p, "viewer " VIEWER, 0600);
    TORTURE(rc, rv__server_new(p->engine, &opts, &p->server, &p->err), assert_null(p->server));
    assert_int_equal(rc, RV_OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(odd_requests_are_refused_and_harm_nothing),
        T(long_heads_are_refused),
        T(a_body_without_a_length_has_an_end_too),
        T(a_connection_is_used_again),
        T(every_answer_is_dressed),
        T(the_page_is_there_for_every_route_of_its_own),
        T(who_dawdles_is_cut_off),
        T(connections_are_counted),
        T(requests_are_counted),
        T(a_token_opens_what_its_role_may),
        T(a_browser_logs_in_and_out),
        T(sessions_are_counted),
        T(who_logs_out_sees_no_more),
        T(a_token_that_is_withdrawn_opens_nothing),
        T(a_token_file_that_will_not_do_changes_nothing),
        T(wrong_tokens_never_lock_out_the_right_one),
        T(a_token_may_have_a_name),
        T(one_token_has_so_many_sessions),
        T(what_waits_to_be_read_has_its_room),
        T(a_weak_token_is_for_this_machine_alone),
        T(a_bad_token_file_is_told_by_line),
        T(an_open_address_needs_a_token_or_a_word),
        T(without_memory_there_is_no_server),
    };
    return cmocka_run_group_tests_name("server/http", tests, NULL, NULL);
}
