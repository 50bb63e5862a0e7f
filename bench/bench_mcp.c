/* bench_mcp.c: calls of MCP beside the same requests of the HTTP API, on one connection that stays open.
 *
 * A call of MCP is a few requests of the API and two texts more (ADR 0046): this says what that costs. Each round
 * has both, one after the other; what counts is their ratio. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "server/server.h"

enum { ROUNDS = 7, LOOKS = 1000, RUNS = 300, QUICK = 10, BUFFER = 64 << 10 };

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "bench_mcp: %s: %m\n", what);
    abort();
}

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_mcp: %s\n", err->message);
        abort();
    }
}

static int no_op(rv_ctx *c)
{
    return rv_return(c, "i", 1);
}

static int connect_to(const char *url)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        give_up("connect");
    return fd;
}

/* Send a request and read its answer to the end, which is in `ret`. */
static void ask(int fd, const char *method, const char *path, const char *body, char ret[BUFFER])
{
    char request[2048];
    size_t len = 0;
    int n = snprintf(request, sizeof request,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n\r\n%s",
                     method, path, strlen(body), body);
    if (n >= (int)sizeof request || write(fd, request, (size_t)n) != n)
        give_up("write");
    for (;;) {
        ssize_t got = read(fd, ret + len, BUFFER - 1 - len);
        if (got <= 0)
            give_up("read");
        len += (size_t)got;
        ret[len] = '\0';
        const char *rest = strstr(ret, "\r\n\r\n");
        const char *length = strstr(ret, "Content-Length: ");
        if (rest == NULL)
            continue;
        rest += 4;
        if (length != NULL && length < rest) {
            if (len - (size_t)(rest - ret) >= strtoul(length + 16, NULL, 10))
                return;
        } else if (strstr(rest, "\r\n0\r\n\r\n") != NULL) { /* chunked: the last one */
            return;
        }
    }
}

static double per_second(int count, int64_t began_ns)
{
    return count / ((double)(rv__mono_ns(rv__clock_real()) - began_ns) / 1e9);
}

/* The id of the run in an answer of the API. */
static void run_id_in(const char *answer, char ret[RV_RUN_ID_SIZE])
{
    const char *at = strstr(answer, "\"runId\":\"");
    if (at == NULL)
        give_up("no run");
    snprintf(ret, RV_RUN_ID_SIZE, "%.*s", (int)strcspn(at + 9, "\""), at + 9);
}

static double looks(int fd, bool mcp, const char *run_id, int count)
{
    char path[256], body[512], answer[BUFFER];
    snprintf(path, sizeof path, "/api/v1/runs/%s/why", run_id);
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"rival_why\",\"arguments\":{\"runId\":\"%s\"}}}",
             run_id);
    int64_t began = rv__mono_ns(rv__clock_real());
    for (int i = 0; i < count; i++)
        ask(fd, mcp ? "POST" : "GET", mcp ? "/mcp" : path, mcp ? body : "", answer);
    return per_second(count, began);
}

static double runs(int fd, bool mcp, int count)
{
    static const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
                               "{\"name\":\"three\",\"arguments\":{}}}";
    char path[256], answer[BUFFER], run_id[RV_RUN_ID_SIZE];
    int64_t began = rv__mono_ns(rv__clock_real());
    for (int i = 0; i < count; i++) {
        if (mcp) {
            ask(fd, "POST", "/mcp", call, answer);
            if (strstr(answer, "\"isError\":false") == NULL)
                give_up("a call failed");
        } else {
            ask(fd, "POST", "/api/v1/workflows/three/runs", "{}", answer);
            run_id_in(answer, run_id);
            snprintf(path, sizeof path, "/api/v1/runs/%s/wait", run_id);
            ask(fd, "GET", path, "", answer);
        }
    }
    return per_second(count, began);
}

static void measure(struct bench *b, rv_engine *engine, int part)
{
    double plain[ROUNDS], mcp[ROUNDS], ratios[ROUNDS];
    struct rv__server *server = NULL;
    char answer[BUFFER], run_id[RV_RUN_ID_SIZE];
    rv_error err;
    must(
        rv__server_new(engine, &(struct rv__server_opts){ .listen = "127.0.0.1:0" }, &server, &err),
        &err);
    int fd = connect_to(rv__server_url(server));
    ask(fd, "POST", "/api/v1/workflows/three/runs", "{}", answer);
    run_id_in(answer, run_id);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = looks(fd, false, run_id, LOOKS / part);
        mcp[i] = looks(fd, true, run_id, LOOKS / part);
        ratios[i] = mcp[i] / plain[i];
    }
    bench_figure(b, "GET …/why", bench_median(plain, ROUNDS), "/s");
    bench_figure(b, "rival_why", bench_median(mcp, ROUNDS), "/s");
    bench_figure(b, "rival_why / GET …/why", bench_median(ratios, ROUNDS), "");
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = runs(fd, false, RUNS / part);
        mcp[i] = runs(fd, true, RUNS / part);
        ratios[i] = mcp[i] / plain[i];
    }
    bench_figure(b, "runs: POST …/runs, GET …/wait", bench_median(plain, ROUNDS), "/s");
    bench_figure(b, "runs: a call of the workflow's tool", bench_median(mcp, ROUNDS), "/s");
    bench_figure(b, "call / POST and GET", bench_median(ratios, ROUNDS), "");
    close(fd);
    rv__server_free(server);
}

int main(int argc, char **argv)
{
    struct bench b;
    rv_engine *engine = NULL;
    rv_error err;
    int part = 1;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--quick") == 0)
            part = QUICK;
    (void)signal(SIGPIPE, SIG_IGN);
    bench_init(&b, "mcp: calls on one connection, beside the HTTP API", argc, argv);
    must(rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &engine, &err), &err);
    rv_workflow *w = rv_workflow_new("three");
    rv_add_step(rv_workflow_body(w), "a", no_op, NULL);
    rv_add_step(rv_workflow_body(w), "b", no_op, NULL);
    rv_add_step(rv_workflow_body(w), "c", no_op, NULL);
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
    measure(&b, engine, part);
    rv_engine_free(engine);
    return bench_done(&b);
}
