/* test_fetch.c: requests on the I/O loop, to a server that does not mean well. For src/exec/fetch.c,
 * fetch_end.c and multi.c. Also run under the thread sanitizer. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "exec/fetch.h"
#include "unit/listener.h"

enum { PATIENCE_MS = 20000, ROOM = 1 << 16, MANY = 300 };

/* ---------------------------------------------------------------------------------- names --- */

/* Stands before libc's: no question leaves this machine. good.test is here, others are nowhere; while
 * `mute`, nobody answers. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t names_changed = PTHREAD_COND_INITIALIZER;
static bool mute;
static int asked, asking, most_asking;

__attribute__((visibility("default"))) int getaddrinfo(const char *restrict name,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    pthread_mutex_lock(&names_lock);
    asked++;
    if (++asking > most_asking)
        most_asking = asking;
    pthread_cond_broadcast(&names_changed);
    while (mute)
        pthread_cond_wait(&names_changed, &names_lock);
    int rc = strcmp(name, "good.test") == 0 ? real("127.0.0.1", service, hints, ret) : EAI_NONAME;
    asking--;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
    return rc;
}

static void set_mute(bool on)
{
    pthread_mutex_lock(&names_lock);
    mute = on;
    asked = on ? 0 : asked;
    most_asking = on ? 0 : most_asking;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
}

static void await_asked(int count)
{
    pthread_mutex_lock(&names_lock);
    while (asked < count)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

static void await_answered(void)
{
    pthread_mutex_lock(&names_lock);
    while (asking > 0)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

/* ------------------------------------------------------------------------------ the server --- */

static void serve_all(int fd);
static struct listener server = { .serve = serve_all };
static atomic_int served;
static atomic_bool was_reset; /* by /reset-once */
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held_changed = PTHREAD_COND_INITIALIZER;
static bool let_go;
static atomic_bool silent; /* to who wants TLS */
static int held;

static bool say(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

static void answer(int fd, const char *status, const char *headers, const char *body, size_t len)
{
    char head[2048];
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, headers,
             len);
    if (say(fd, head) && len > 0)
        (void)!send(fd, body, len, MSG_NOSIGNAL);
}

static void answer_text(int fd, const char *status, const char *headers, const char *body)
{
    answer(fd, status, headers, body, strlen(body));
}

static void until_hung_up(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

/* A request with its body; 0: there is no more. */
static size_t read_request(int fd, char *room, size_t size)
{
    size_t len = 0;
    for (;;) {
        room[len] = '\0';
        char *end = strstr(room, "\r\n\r\n");
        const char *length = strcasestr(room, "\r\nContent-Length:");
        size_t body = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
        if (end != NULL && len >= (size_t)(end + 4 - room) + body)
            return len;
        ssize_t n = len + 1 < size ? recv(fd, room + len, size - len - 1, 0) : 0;
        if (n > 0 && len == 0 && room[0] == 0x16) { /* TLS: not here */
            if (atomic_load(&silent))
                until_hung_up(fd);
            else
                answer_text(fd, "400 Bad Request", "", "");
            return 0;
        }
        if (n <= 0)
            return 0;
        len += (size_t)n;
    }
}

/* False: the connection ends. */
static bool serve(int fd, const char *path, const char *request, size_t len)
{
    char text[512];
    if (strcmp(path, "/ok") == 0) {
        answer_text(fd, "200 OK", "Content-Type: application/json\r\nX-A: 1\r\nx-a: 2\r\n",
                    "{\"a\":1}");
    } else if (strcmp(path, "/echo") == 0) {
        answer(fd, "200 OK", "", request, len);
    } else if (strcmp(path, "/missing") == 0) {
        answer_text(fd, "404 Not Here", "", "no such thing");
    } else if (strcmp(path, "/empty") == 0) {
        (void)say(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    } else if (strcmp(path, "/continue") == 0) {
        (void)say(fd, "HTTP/1.1 100 Continue\r\nX-First: 1\r\n\r\n");
        answer_text(fd, "200 OK", "", "7");
    } else if (strcmp(path, "/drop") == 0) {
        return false;
    } else if (strcmp(path, "/short") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
        return false;
    } else if (strcmp(path, "/cut-head") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Le");
        return false;
    } else if (strcmp(path, "/stall") == 0) {
        until_hung_up(fd);
        return false;
    } else if (strcmp(path, "/slow") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
        until_hung_up(fd);
        return false;
    } else if (strcmp(path, "/headers") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\n");
        while (say(fd, "X-More: and more and more and more\r\n"))
            ;
        return false;
    } else if (strcmp(path, "/line") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nX-Long: ");
        while (say(fd, "and more and more and more and more"))
            ;
        return false;
    } else if (strcmp(path, "/endless") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while (say(fd, "10\r\n0123456789abcdef\r\n"))
            ;
        return false;
    } else if (strcmp(path, "/announced") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
        until_hung_up(fd);
        return false;
    } else if (strcmp(path, "/chunks") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n");
        return false;
    } else if (strcmp(path, "/lengths") == 0) {
        (void)say(fd, "HTTP/1.1 200 OK\r\nContent-Length: minus one\r\n\r\nabc");
        return false;
    } else if (strcmp(path, "/garbage") == 0) {
        (void)say(fd, "SSH-2.0-OpenSSH_9.2\r\n");
        return false;
    } else if (strcmp(path, "/encoding") == 0) {
        answer_text(fd, "200 OK", "Content-Encoding: gzip\r\n", "this is not gzip at all");
    } else if (strcmp(path, "/circle") == 0) {
        answer_text(fd, "302 Found", "Location: /circle\r\n", "");
    } else if (strcmp(path, "/there") == 0) {
        answer_text(fd, "302 Found", "Location: /echo\r\n", "not here");
    } else if (strcmp(path, "/kept") == 0) {
        answer_text(fd, "307 Temporary Redirect", "Location: /echo\r\n", "");
    } else if (strcmp(path, "/away") == 0) {
        snprintf(text, sizeof text, "Location: http://localhost:%d/echo\r\n", server.port);
        answer_text(fd, "301 Moved", text, "");
    } else if (strcmp(path, "http://public.test/in") == 0) { /* asked as a proxy */
        answer_text(fd, "302 Found", "Location: http://10.1.2.3/latest\r\n", "");
    } else if (strcmp(path, "http://public.test/ok") == 0) {
        answer_text(fd, "200 OK", "", "through the proxy");
    } else if (strcmp(path, "/file") == 0) {
        answer_text(fd, "302 Found", "Location: file:///etc/passwd\r\n", "");
    } else if (strcmp(path, "/reset-once") == 0) {
        struct linger reset = { .l_onoff = 1 };
        if (!atomic_exchange(&was_reset, true))
            return setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) < 0;
        answer_text(fd, "200 OK", "", "this time");
    } else if (strcmp(path, "/held") == 0) {
        pthread_mutex_lock(&held_lock);
        held++;
        pthread_cond_broadcast(&held_changed);
        while (!let_go)
            pthread_cond_wait(&held_changed, &held_lock);
        pthread_mutex_unlock(&held_lock);
        answer_text(fd, "200 OK", "", "1");
    } else {
        answer_text(fd, "500 What", "", path);
    }
    return true;
}

static void serve_all(int fd)
{
    char *room = malloc(ROOM);
    size_t len;
    bool more = true;
    while (room != NULL && more && (len = read_request(fd, room, ROOM)) > 0) {
        char path[128] = "";
        sscanf(room, "%*s %127[^ ?]", path);
        atomic_fetch_add(&served, 1);
        more = serve(fd, path, room, len);
    }
    free(room);
}

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

/* ------------------------------------------------------------------------------- requests --- */

struct ask {
    struct rv__fetch fetch; /* first */
    char url[256];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int begun;
    struct rv__fetch_result result;
    char *head, *body;
};

static atomic_long fail_next = -1;
static struct rv__io *io;
static struct ask ask, asks[MANY]; /* static: a failed assertion jumps out of the function */

static char *copy(struct rv__str s)
{
    char *text = malloc(s.len + 1);
    if (text == NULL)
        abort();
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    return text;
}

static void on_begun(struct rv__fetch *fetch)
{
    struct ask *a = (struct ask *)fetch;
    pthread_mutex_lock(&a->lock);
    assert_false(a->done);
    a->begun++;
    pthread_mutex_unlock(&a->lock);
}

static void on_done(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    struct ask *a = (struct ask *)fetch;
    pthread_mutex_lock(&a->lock);
    assert_false(a->done);
    a->result = *result;
    a->head = copy(result->head);
    a->body = copy(result->body);
    a->done = true;
    rv__test_fail_allocs(atomic_load(&fail_next), 1); /* on the loop's thread, from now on */
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void forget(struct ask *a)
{
    free(a->head);
    free(a->body);
    a->head = a->body = NULL;
}

static void start_url(struct ask *a, const char *url)
{
    struct rv__fetch fetch = a->fetch;
    forget(a);
    *a = (struct ask){ .fetch = fetch,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER };
    snprintf(a->url, sizeof a->url, "%s", url);
    a->fetch.url = a->url;
    a->fetch.begun = on_begun;
    a->fetch.done = on_done;
    if (a->fetch.method == NULL)
        a->fetch.method = "GET";
    if (a->fetch.timeout_ms == 0)
        a->fetch.timeout_ms = PATIENCE_MS;
    assert_int_equal(rv__fetch_start(io, &a->fetch), RV_OK);
}

static void start_path(struct ask *a, const char *path)
{
    char url[256];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, path);
    start_url(a, url);
}

static const struct rv__fetch_result *await(struct ask *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->done)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    return &a->result;
}

static const struct rv__fetch_result *get(const char *path)
{
    start_path(&ask, path);
    return await(&ask);
}

static void expect_end(const char *path, enum rv__fetch_end end, const char *words)
{
    const struct rv__fetch_result *result = get(path);
    if (result->end != end || strstr(result->error, words) == NULL)
        fail_msg("%s: %s, '%s'; not %s, '%s'", path, rv__fetch_end_name(result->end), result->error,
                 rv__fetch_end_name(end), words);
}

static int setup(void **state)
{
    rv_error err;
    (void)state;
    memset(&ask, 0, sizeof ask);
    pthread_mutex_lock(&held_lock);
    let_go = false;
    held = 0;
    pthread_mutex_unlock(&held_lock);
    return rv__io_new(NULL, &io, &err);
}

static int teardown(void **state)
{
    (void)state;
    set_mute(false);
    pthread_mutex_lock(&held_lock);
    let_go = true;
    pthread_cond_broadcast(&held_changed);
    pthread_mutex_unlock(&held_lock);
    rv__io_free(io);
    io = NULL;
    forget(&ask);
    for (size_t i = 0; i < MANY; i++) {
        forget(&asks[i]);
        memset(&asks[i], 0, sizeof asks[i]);
    }
    return 0;
}

static int entries_of(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static int open_descriptors(void)
{
    return entries_of("/proc/self/fd");
}

/* ---------------------------------------------------------------------------------- tests --- */

static void a_request_that_is_sent_has_begun_once(void **state)
{
    (void)state;
    (void)get("/ok");
    assert_int_equal(ask.begun, 1);
    start_url(&ask, "gopher://nowhere.test/");
    (void)await(&ask);
    assert_int_equal(ask.begun, 0);
}

static void an_answer_has_status_headers_and_body(void **state)
{
    (void)state;
    const struct rv__fetch_result *result = get("/ok");
    assert_int_equal(result->end, RV__FETCH_ANSWERED);
    assert_int_equal(result->status, 200);
    assert_string_equal(ask.body, "{\"a\":1}");
    assert_non_null(strstr(ask.head, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(ask.head, "X-A: 1\r\nx-a: 2\r\n"));
    assert_int_equal(get("/missing")->status, 404);
    assert_string_equal(ask.body, "no such thing");
    assert_int_equal(get("/empty")->status, 204);
    assert_string_equal(ask.body, "");
    assert_int_equal(get("/continue")->status, 200); /* the headers of the last answer only */
    assert_null(strstr(ask.head, "X-First"));
    ask.fetch.method = "HEAD";
    assert_int_equal(get("/ok")->status, 200);
    assert_string_equal(ask.body, "");
}

static void a_request_has_its_method_headers_and_body(void **state)
{
    static const char *const headers[] = { "X-Mine: yes", "Content-Type: text/x", NULL };
    (void)state;
    ask.fetch.method = "PATCH";
    ask.fetch.headers = headers;
    ask.fetch.body = rv__str("the body");
    assert_int_equal(get("/echo?q=a b&c=\xC3\xA4")->status, 200);
    assert_memory_equal(ask.body, "PATCH /echo?q=a+b&c=%c3%a4 HTTP/1.1\r\n", 37);
    assert_non_null(strstr(ask.body, "\r\nX-Mine: yes\r\n"));
    assert_non_null(strstr(ask.body, "\r\nContent-Type: text/x\r\n"));
    assert_non_null(strstr(ask.body, "\r\nUser-Agent: rival/"));
    assert_non_null(strstr(ask.body, "\r\n\r\nthe body"));
    ask.fetch = (struct rv__fetch){ .method = "POST" };
    get("/echo");
    assert_non_null(strstr(ask.body, "\r\nContent-Length: 0\r\n"));
    assert_null(strstr(ask.body, "Content-Type"));
}

static void connections_are_used_again(void **state)
{
    (void)state;
    int before = atomic_load(&server.connections);
    for (int i = 0; i < 10; i++)
        assert_int_equal(get("/ok")->status, 200);
    assert_int_equal(atomic_load(&server.connections) - before, 1);
}

static void a_reused_connection_that_the_server_resets_is_not_an_error(void **state)
{
    (void)state;
    atomic_store(&was_reset, false);
    assert_int_equal(get("/ok")->status, 200);
    const struct rv__fetch_result *result = get("/reset-once");
    if (result->end != RV__FETCH_ANSWERED)
        fail_msg("%s: %s", rv__fetch_end_name(result->end), result->error);
    assert_true(atomic_load(&was_reset));
    assert_string_equal(ask.body, "this time");
}

static void each_bad_end_has_its_own_words(void **state)
{
    (void)state;
    expect_end("/drop", RV__FETCH_DROPPED, "the connection ended before the answer did");
    expect_end("/short", RV__FETCH_DROPPED, "97 bytes remaining");
    expect_end("/cut-head", RV__FETCH_DROPPED, "ended before");
    expect_end("/headers", RV__FETCH_TOO_LARGE, "the headers of the answer have more than 65536");
    expect_end("/line", RV__FETCH_TOO_LARGE, "a header of the answer is too long");
    expect_end("/chunks", RV__FETCH_BAD_ANSWER, "not HTTP");
    expect_end("/lengths", RV__FETCH_BAD_ANSWER, "not HTTP");
    expect_end("/garbage", RV__FETCH_BAD_ANSWER, "not HTTP");
    expect_end("/encoding", RV__FETCH_BAD_ANSWER, "not HTTP");
    expect_end("/circle", RV__FETCH_REDIRECT, "more than 10 times, perhaps in a loop");
    expect_end("/file", RV__FETCH_REDIRECT, "only http and https");
    ask.fetch.max_bytes = 1000;
    expect_end("/endless", RV__FETCH_TOO_LARGE, "more than 1000 bytes");
    expect_end("/announced", RV__FETCH_TOO_LARGE, "more than 1000 bytes");
}

static void whom_it_cannot_reach_it_tells(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    char url[64];
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound, and nobody listens */
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    start_url(&ask, url);
    assert_int_equal(await(&ask)->end, RV__FETCH_REFUSED);
    close(fd);
    start_url(&ask, "http://nowhere.test/");
    assert_int_equal(await(&ask)->end, RV__FETCH_DNS);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/ok", server.port); /* no TLS is spoken there */
    start_url(&ask, url);
    assert_int_equal(await(&ask)->end, RV__FETCH_TLS);
    static const char *const bad[] = { "ftp://127.0.0.1/x",
                                       "file:///etc/passwd",
                                       "127.0.0.1/x",
                                       "http://",
                                       "http://a\nb/",
                                       "http://h:99999/",
                                       "" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        start_url(&ask, bad[i]);
        if (await(&ask)->end != RV__FETCH_BAD_URL)
            fail_msg("'%s': %s", bad[i], rv__fetch_end_name(ask.result.end));
    }
}

static void what_takes_too_long_is_ended_and_says_where_it_was(void **state)
{
    (void)state;
    ask.fetch.timeout_ms = 200;
    expect_end("/stall", RV__FETCH_TIMEOUT, "after 200 ms: no answer had arrived");
    expect_end("/slow", RV__FETCH_TIMEOUT, "3 bytes of the answer's body had arrived");
    assert_true(ask.result.ran_ms >= 200 && ask.result.ran_ms < PATIENCE_MS);
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", server.port);
    atomic_store(&silent, true);
    start_url(&ask, url);
    await(&ask);
    atomic_store(&silent, false);
    if (strstr(ask.result.error, "no TLS on it") == NULL)
        fail_msg("%s", ask.result.error);
}

static void redirects_are_followed(void **state)
{
    static const char *const headers[] = { "Authorization: Bearer secret", "Cookie: a=b",
                                           "Content-Type: text/x", "X-Mine: yes", NULL };
    (void)state;
    ask.fetch.method = "POST";
    ask.fetch.headers = headers;
    ask.fetch.body = rv__str("the body");
    assert_int_equal(get("/there")->status, 200); /* 302: a POST is asked for with GET */
    assert_memory_equal(ask.body, "GET /echo ", 10);
    assert_null(strstr(ask.body, "the body"));
    assert_null(strstr(ask.body, "Content-"));
    assert_non_null(strstr(ask.body, "Bearer secret")); /* the same host */
    assert_int_equal(get("/kept")->status, 200);        /* 307: as it was */
    assert_memory_equal(ask.body, "POST /echo ", 11);
    assert_non_null(strstr(ask.body, "\r\n\r\nthe body"));
}

static void credentials_stay_with_the_host_they_are_for(void **state)
{
    static const char *const headers[] = { "authorization: Bearer secret", "COOKIE: a=b",
                                           "X-Api-Key: k", "Accept: text/x", NULL };
    char url[128];
    (void)state;
    ask.fetch.headers = headers;
    snprintf(url, sizeof url, "http://user:pass@127.0.0.1:%d/away", server.port);
    start_url(&ask, url);
    assert_int_equal(await(&ask)->status, 200);
    assert_null(strcasestr(ask.body, "authorization"));
    assert_null(strcasestr(ask.body, "cookie"));
    assert_null(strcasestr(ask.body, "X-Api-Key")); /* any header of its own may be one */
    assert_non_null(strstr(ask.body, "Accept: text/x"));
}

static const struct {
    const char *address;
    bool private;
} addresses[] = {
    { "127.0.0.1", true },
    { "127.255.0.9", true },
    { "0.0.0.0", true },
    { "10.1.2.3", true },
    { "172.16.0.1", true },
    { "172.31.255.255", true },
    { "172.32.0.1", false },
    { "192.168.1.1", true },
    { "192.169.0.1", false },
    { "169.254.169.254", true },
    { "100.64.0.1", true },
    { "100.128.0.1", false },
    { "224.0.0.1", true },
    { "255.255.255.255", true },
    { "198.19.0.1", true },
    { "192.0.0.8", true },
    { "192.0.1.1", false },
    { "8.8.8.8", false },
    { "11.0.0.1", false },
    { "::", true },
    { "::1", true },
    { "::ffff:10.0.0.1", true },
    { "::ffff:8.8.8.8", false },
    { "::127.0.0.1", true },
    { "64:ff9b::a00:1", true },
    { "64:ff9b::808:808", false },
    { "64:ff9b:1::1", true },
    { "2002:a00:1::", true },
    { "2002:808:808::", false },
    { "fc00::1", true },
    { "fdff::1", true },
    { "fe80::1", true },
    { "fec0::1", true },
    { "ff02::1", true },
    { "2001:4860:4860::8888", false },
};

static void an_address_is_private_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
        bool four = inet_pton(AF_INET, addresses[i].address, &v4.sin_addr) == 1;
        if (!four)
            assert_int_equal(inet_pton(AF_INET6, addresses[i].address, &v6.sin6_addr), 1);
        const struct sockaddr *it = four ? (const struct sockaddr *)&v4
                                         : (const struct sockaddr *)&v6;
        if (rv__address_private(it) != addresses[i].private)
            fail_msg("%s", addresses[i].address);
    }
    assert_true(rv__address_private(&(const struct sockaddr){ .sa_family = AF_UNIX }));
}

/* By what is written, by what a name comes to, and by where a redirect leads. */
static void private_addresses_can_be_denied(void **state)
{
    static const char *const hosts[] = { "127.0.0.1", "localhost",  "good.test",
                                         "[::1]",     "0x7f000001", "a.localhost" };
    (void)state;
    int before = atomic_load(&served);
    rv__io_free(io);
    io = NULL;
    assert_int_equal(rv__io_new(&(struct rv__io_opts){ .deny_private = true }, &io, NULL), RV_OK);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char url[128];
        snprintf(url, sizeof url, "http://%s:%d/", hosts[i], server.port);
        start_url(&ask, url);
        await(&ask);
        if (ask.result.end != RV__FETCH_DENIED || strstr(ask.result.error, "private") == NULL)
            fail_msg("%s: %s, '%s'", url, rv__fetch_end_name(ask.result.end), ask.result.error);
    }
    assert_int_equal(atomic_load(&served), before); /* nobody was asked */
}

/* A proxy is the operator's: it is reached, and what names lead to is its business; but not where an address
 * is written, in a URL or in a redirect. */
static void a_redirect_into_a_private_network_is_denied(void **state)
{
    char proxy[64];
    (void)state;
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server.port);
    setenv("http_proxy", proxy, 1);
    rv__io_free(io);
    io = NULL;
    int rc = rv__io_new(&(struct rv__io_opts){ .deny_private = true }, &io, NULL);
    if (rc == RV_OK) {
        start_url(&ask, "http://public.test/ok");
        await(&ask);
    }
    unsetenv("http_proxy"); /* it is looked at with the first request */
    assert_int_equal(rc, RV_OK);
    assert_int_equal(ask.result.end, RV__FETCH_ANSWERED);
    assert_string_equal(ask.body, "through the proxy");
    setenv("http_proxy", proxy, 1);
    start_url(&ask, "http://public.test/in");
    await(&ask);
    unsetenv("http_proxy");
    if (ask.result.end != RV__FETCH_DENIED ||
        strstr(ask.result.error, "redirects to an address") == NULL)
        fail_msg("%s: %s", rv__fetch_end_name(ask.result.end), ask.result.error);
}

static void a_request_can_be_cancelled_at_any_time(void **state)
{
    (void)state;
    start_path(&ask, "/stall");
    rv__fetch_cancel(io, &ask.fetch); /* perhaps before it has begun */
    rv__fetch_cancel(io, &ask.fetch);
    assert_int_equal(await(&ask)->end, RV__FETCH_CANCELLED);
    rv__fetch_cancel(io, &ask.fetch); /* too late */
    start_path(&ask, "/held");
    pthread_mutex_lock(&held_lock);
    while (held == 0)
        pthread_cond_wait(&held_changed, &held_lock);
    pthread_mutex_unlock(&held_lock);
    rv__fetch_cancel(io, &ask.fetch);
    assert_int_equal(await(&ask)->end, RV__FETCH_CANCELLED);
}

static void who_waits_for_a_name_is_ended_and_its_look_up_keeps_its_place(void **state)
{
    (void)state;
    set_mute(true);
    for (int i = 0; i < RV__FETCH_LOOKUPS; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://n%d.test/", i);
        start_url(&asks[i], url);
    }
    await_asked(RV__FETCH_LOOKUPS);
    for (int i = 0; i < RV__FETCH_LOOKUPS; i++) {
        rv__fetch_cancel(io, &asks[i].fetch);
        assert_int_equal(await(&asks[i])->end, RV__FETCH_CANCELLED);
    }
    ask.fetch.timeout_ms = 100;
    start_url(&ask, "http://good.test/");
    assert_non_null(strstr(await(&ask)->error, "it waited while other host names"));
    start_path(&ask, "/ok"); /* who needs no name goes ahead */
    assert_int_equal(await(&ask)->end, RV__FETCH_ANSWERED);
    ask.fetch.timeout_ms = 0;
    char url[64];
    snprintf(url, sizeof url, "http://good.test:%d/ok", server.port);
    start_url(&ask, url);
    set_mute(false);
    assert_int_equal(await(&ask)->end, RV__FETCH_ANSWERED);
    assert_int_equal(most_asking, RV__FETCH_LOOKUPS);
    set_mute(true);
    ask.fetch.timeout_ms = 100;
    start_url(&ask, "http://other.test/");
    assert_non_null(strstr(await(&ask)->error, "its name was still being looked up"));
}

static void what_is_under_way_ends_with_the_loop(void **state)
{
    rv_error err;
    (void)state;
    set_mute(true);
    start_path(&ask, "/stall");
    start_url(&asks[0], "http://n.test/");
    await_asked(1);
    rv__io_free(io); /* waits for nobody */
    assert_int_equal(await(&ask)->end, RV__FETCH_CANCELLED);
    assert_int_equal(await(&asks[0])->end, RV__FETCH_CANCELLED);
    set_mute(false);
    await_answered();
    assert_int_equal(rv__io_new(NULL, &io, &err), RV_OK);
}

static int threads(void)
{
    return entries_of("/proc/self/task");
}

static void names_are_looked_up_by_a_few_threads(void **state)
{
    (void)state;
    set_mute(true);
    for (int i = 0; i < MANY; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://n%d.test/", i);
        start_url(&asks[i], url);
    }
    await_asked(RV__FETCH_LOOKUPS);
    set_mute(false);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(await(&asks[i])->end, RV__FETCH_DNS);
    assert_int_equal(asked, MANY);
    assert_int_equal(most_asking, RV__FETCH_LOOKUPS);
}

static void one_name_is_looked_up_once_for_many(void **state)
{
    char url[64];
    (void)state;
    set_mute(true);
    snprintf(url, sizeof url, "http://good.test:%d/ok", server.port);
    for (int i = 0; i < MANY; i++)
        start_url(&asks[i], url);
    await_asked(RV__FETCH_LOOKUPS); /* those that were there before there was an answer */
    set_mute(false);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(await(&asks[i])->status, 200);
    assert_int_equal(asked, RV__FETCH_LOOKUPS);
}

static void many_at_once_need_no_thread_and_leave_no_descriptor(void **state)
{
    rv_error err;
    (void)state;
    assert_int_equal(get("/ok")->status, 200);
    int before = threads();
    for (int i = 0; i < MANY; i++)
        start_path(&asks[i], "/held");
    pthread_mutex_lock(&held_lock);
    while (held < MANY) /* all of them are under way at the same time */
        pthread_cond_wait(&held_changed, &held_lock);
    let_go = true;
    pthread_mutex_unlock(&held_lock);
    assert_true(threads() - before <= MANY + 1); /* the server's own, one for each */
    pthread_cond_broadcast(&held_changed);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(await(&asks[i])->status, 200);
    rv__io_free(io);
    while (atomic_load(&server.under_way) > 0) /* the server's ends */
        usleep(1000);
    int open = open_descriptors();
    assert_int_equal(rv__io_new(NULL, &io, &err), RV_OK);
    int with_loop = open_descriptors();
    get("/ok");
    expect_end("/drop", RV__FETCH_DROPPED, "");
    expect_end("/circle", RV__FETCH_REDIRECT, "");
    rv__io_free(io);
    while (atomic_load(&server.under_way) > 0)
        usleep(1000);
    assert_int_equal(open_descriptors(), open);
    assert_int_equal(rv__io_new(NULL, &io, &err), RV_OK);
    assert_int_equal(open_descriptors(), with_loop);
}

static void the_budget_is_half_of_the_descriptors(void **state)
{
    struct rlimit before, less;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = before;
    less.rlim_cur = 600;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    int64_t budget = rv__fetch_budget();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(budget, 300);
    assert_true(rv__fetch_budget() <= RV__FETCH_CONNECTIONS);
}

static void without_memory_a_request_fails_and_nothing_else(void **state)
{
    int failed = 0;
    (void)state;
    for (long n = 0; n < 16; n++) {
        fail_next = n;
        get("/ok");
        fail_next = -1;
        start_path(&asks[0], "/there");
        enum rv__fetch_end end = await(&asks[0])->end;
        failed += end == RV__FETCH_NO_MEMORY;
        if (end != RV__FETCH_NO_MEMORY && end != RV__FETCH_ANSWERED)
            fail_msg("%ld: %s", n, asks[0].result.error);
    }
    assert_true(failed > 2 && failed < 16);
    assert_int_equal(get("/ok")->end, RV__FETCH_ANSWERED);
}

static void a_request_that_lacks_something_is_refused(void **state)
{
    (void)state;
    assert_int_equal(rv__fetch_start(io, &(struct rv__fetch){ .url = "http://a/" }), RV_EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_that_is_sent_has_begun_once),
        TEST(an_answer_has_status_headers_and_body),
        TEST(a_request_has_its_method_headers_and_body),
        TEST(connections_are_used_again),
        TEST(a_reused_connection_that_the_server_resets_is_not_an_error),
        TEST(each_bad_end_has_its_own_words),
        TEST(whom_it_cannot_reach_it_tells),
        TEST(what_takes_too_long_is_ended_and_says_where_it_was),
        TEST(redirects_are_followed),
        TEST(credentials_stay_with_the_host_they_are_for),
        TEST(an_address_is_private_or_not),
        TEST(private_addresses_can_be_denied),
        TEST(a_redirect_into_a_private_network_is_denied),
        TEST(a_request_can_be_cancelled_at_any_time),
        TEST(what_is_under_way_ends_with_the_loop),
        TEST(names_are_looked_up_by_a_few_threads),
        TEST(one_name_is_looked_up_once_for_many),
        TEST(who_waits_for_a_name_is_ended_and_its_look_up_keeps_its_place),
        TEST(many_at_once_need_no_thread_and_leave_no_descriptor),
        TEST(the_budget_is_half_of_the_descriptors),
        TEST(without_memory_a_request_fails_and_nothing_else),
        TEST(a_request_that_lacks_something_is_refused),
    };
    return cmocka_run_group_tests_name("fetch", tests, start_server, stop_server);
}
