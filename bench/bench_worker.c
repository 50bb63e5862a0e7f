/* bench_worker.c: steps a second through one worker at the socket beside the store, against a bare loop that exchanges
 * the same frames over the same kind of socket; and the bytes that items take.
 *
 *   bench_worker [--json] [--quick]
 *
 * The worker is a process of its own that answers every `invoke` with `null`, so it is the engine and the wire that are
 * measured. 200 runs are in flight, of ten steps each. `--quick` takes few steps, to see that it works. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench.h"
#include "wire/wire.h"

enum { RUNS_EACH = 25, RUNS_EACH_QUICK = 1, STEPS = 10, IN_FLIGHT = 200, CREDITS = 256 };
enum {
    BARE = 200000,
    BARE_QUICK = 4000,
    ITEM_BYTES = 128,
    FEW = 10000,
    MANY = 100000,
    FEW_QUICK = 100,
    MANY_QUICK = 1000
};

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_worker: %s\n", err->message);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

/* --------------------------------------------------------------------------------- worker --- */

static uint64_t *heard_bytes; /* of the worker: frames that came; shared with it */

/* An item that did not come along is asked for, and answered then. */
static void answer_frame(const struct rv__frame *frame, struct rv__buf *out)
{
    enum { ID, INDEX, ITEM, KEYS };
    struct rv__str has[KEYS];
    if (frame->type == FRAME_PING)
        rv__wire_end(out, rv__wire_begin(out, FRAME_PONG));
    if (frame->type != FRAME_INVOKE && frame->type != FRAME_VALUE)
        return;
    rv__frame_members(frame, (const char *[]){ "id", "index", "item" }, has, KEYS);
    bool asks = frame->type == FRAME_INVOKE && !rv__str_none(has[INDEX]) && rv__str_none(has[ITEM]);
    size_t start = rv__wire_begin(out, asks ? FRAME_GET : FRAME_RESULT);
    rv__wire_json(out, "id", has[ID]);
    if (asks)
        rv__wire_text(out, "part", rv__str("item"));
    rv__wire_end(out, start);
}

/* Answers all that comes, until the other end hangs up; what came at once is answered at once. */
static void serve(int fd)
{
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__buf out;
    rv__frames_init(&frames);
    rv__buf_init(&out, SIZE_MAX / 2);
    for (;;) {
        struct pollfd in = { fd, POLLIN, 0 };
        (void)poll(&in, 1, -1);
        if (rv__frames_read(&frames, fd) < 0)
            return;
        while (rv__frames_next(&frames, &frame, NULL) == 1) {
            *heard_bytes += frame.json.len;
            answer_frame(&frame, &out);
        }
        if (out.len > 0 && rv__frames_send(fd, &out) < 0)
            return;
        rv__buf_reset(&out);
    }
}

static int dial(const char *store)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s.sock", store);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        usleep(1000); /* the engine is about to come */
    return fd;
}

static void put_plans(struct rv__buf *out)
{
    rv__buf_text(out, ",\"workflows\":[{\"plan\":{\"name\":\"ten\",\"steps\":[");
    for (int i = 0; i < STEPS; i++)
        rv__buf_fmt(out,
                    "%s{\"type\":\"step\",\"kind\":\"function\",\"name\":\"f\",\"alias\":\"s%d\"}",
                    i > 0 ? "," : "", i);
    rv__buf_text(out,
                 "]},\"functions\":[\"f\"]},{\"plan\":{\"name\":\"items\",\"steps\":[{\"type\":"
                 "\"forEach\",\"alias\":\"each\",\"items\":\"${ .input }\",\"parallel\":true,"
                 "\"run\":[{\"type\":\"step\",\"kind\":\"function\",\"name\":\"f\",\"alias\":"
                 "\"s\"}]}]},\"functions\":[\"f\"]}]");
}

/* A process that offers both workflows to the engine that will be there. */
static pid_t start_worker(const char *store)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    struct rv__buf out;
    int fd = dial(store);
    rv__buf_init(&out, 1 << 20);
    size_t start = rv__wire_begin(&out, FRAME_HELLO);
    rv__wire_int(&out, "protocol", RV__PROTOCOL);
    rv__wire_text(&out, "role", rv__str("worker"));
    rv__wire_int(&out, "credits", CREDITS);
    rv__wire_end(&out, start);
    start = rv__wire_begin(&out, FRAME_REGISTER);
    put_plans(&out);
    rv__wire_end(&out, start);
    (void)rv__frames_send(fd, &out);
    serve(fd);
    _exit(0);
}

/* ------------------------------------------------------------------------------- measured --- */

/* Frames like those of an invocation, both ways, with IN_FLIGHT under way: invocations a second. */
static double bare(int count)
{
    int pair[2], sent = 0, got = 0;
    struct rv__frames frames;
    struct rv__frame frame;
    struct rv__buf out;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        serve(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    rv__frames_init(&frames);
    rv__buf_init(&out, SIZE_MAX / 2);
    double before = seconds();
    while (got < count) {
        for (; sent < count && sent - got < IN_FLIGHT; sent++) {
            size_t start = rv__wire_begin(&out, FRAME_INVOKE);
            rv__buf_fmt(
                &out,
                ",\"id\":\"%d.1.%d\",\"function\":\"f\",\"run\":{\"runId\":\"run-%d\","
                "\"workflowName\":\"ten\",\"stepName\":\"s1\",\"path\":\"s1\",\"attempt\":1,"
                "\"executionId\":\"2.1\",\"idempotencyKey\":\"run-%d/0123456789abcdef/2\"},"
                "\"input\":null",
                sent % IN_FLIGHT, sent, sent, sent);
            rv__wire_end(&out, start);
        }
        (void)rv__frames_send(pair[0], &out);
        rv__buf_reset(&out);
        struct pollfd in = { pair[0], POLLIN, 0 };
        (void)poll(&in, 1, -1);
        (void)rv__frames_read(&frames, pair[0]);
        while (rv__frames_next(&frames, &frame, NULL) == 1)
            got++;
    }
    double took = seconds() - before;
    close(pair[0]);
    waitpid(child, NULL, 0);
    rv__frames_done(&frames);
    rv__buf_done(&out);
    return count / took;
}

static void await_workflow(rv_engine *engine, const char *name)
{
    for (int tries = 0; tries < 10000; tries++) {
        rv_workflow_list *list = NULL;
        rv_error err;
        must(rv_workflows(engine, &list, &err), &err);
        bool found = false;
        for (size_t i = 0; i < list->count; i++)
            found |= strcmp(list->items[i].name, name) == 0;
        rv_workflow_list_free(list);
        if (found)
            return;
        usleep(1000);
    }
    abort();
}

struct caller {
    pthread_t thread;
    rv_engine *engine;
    int runs;
};

static void *call_runs(void *arg)
{
    const struct caller *caller = arg;
    for (int i = 0; i < caller->runs; i++) {
        rv_run_info info;
        rv_outcome *outcome;
        rv_error err;
        must(rv_run(caller->engine, "ten", NULL, NULL, &info, &err), &err);
        must(rv_wait(caller->engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        if (outcome->status != RV_COMPLETED)
            abort();
        rv_outcome_free(outcome);
    }
    return NULL;
}

/* Runs of ten steps, IN_FLIGHT at once, each with a caller that waits for it: steps a second. */
static double steps(rv_engine *engine, int runs_each)
{
    static struct caller callers[IN_FLIGHT];
    double before = seconds();
    for (int i = 0; i < IN_FLIGHT; i++) {
        callers[i] = (struct caller){ .engine = engine, .runs = runs_each };
        if (pthread_create(&callers[i].thread, NULL, call_runs, &callers[i]) != 0)
            abort();
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        pthread_join(callers[i].thread, NULL);
    return IN_FLIGHT * runs_each * STEPS / (seconds() - before);
}

/* A forEach over so many items: the bytes that the worker hears. */
static double items(rv_engine *engine, int count, double *took)
{
    struct rv__buf input;
    rv_run_info info;
    rv_outcome *outcome;
    rv_error err;
    uint64_t bytes = *heard_bytes;
    rv__buf_init(&input, SIZE_MAX / 2);
    rv__buf_char(&input, '[');
    for (int i = 0; i < count; i++)
        rv__buf_fmt(&input, "%s\"%0*d\"", i > 0 ? "," : "", ITEM_BYTES - 2, i);
    rv__buf_char(&input, ']');
    double before = seconds();
    must(rv_run(engine, "items", input.text, NULL, &info, &err), &err);
    must(rv_wait(engine, NULL, info.run_id, RV_WAIT_OPTS(.timeout_ms = -1), &outcome, &err), &err);
    *took = seconds() - before;
    if (outcome->status != RV_COMPLETED) {
        fprintf(stderr, "bench_worker: %s\n", outcome->error);
        abort();
    }
    rv_outcome_free(outcome);
    rv__buf_done(&input);
    return (double)(*heard_bytes - bytes);
}

/* One run of ten steps, alone. */
static double latency_ms(rv_engine *engine, int rounds)
{
    rv_run_info info;
    rv_outcome *outcome;
    rv_error err;
    double before = seconds();
    for (int i = 0; i < rounds; i++) {
        must(rv_run(engine, "ten", NULL, NULL, &info, &err), &err);
        must(rv_wait(engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        rv_outcome_free(outcome);
    }
    return (seconds() - before) * 1000 / rounds;
}

int main(int argc, char **argv)
{
    struct bench b;
    bool quick = false;
    char folder[] = "/tmp/rival-bench-XXXXXX", store[64], command[64];
    double took = 0;
    rv_engine *engine;
    rv_error err;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
        } else if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "usage: bench_worker [--json] [--quick]\n");
            return 2;
        }
    }
    bench_init(&b, "worker", argc, argv);
    heard_bytes = mmap(NULL, sizeof *heard_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (heard_bytes == MAP_FAILED || mkdtemp(folder) == NULL)
        return 1;
    double loop = bare(quick ? BARE_QUICK : BARE);
    bench_figure(&b, "a bare loop of the same frames", loop, "/s");
    snprintf(store, sizeof store, "%s/s.db", folder);
    pid_t worker = start_worker(store);
    must(rv_engine_new(RV_ENGINE_OPTS(.store = store, .control = true), &engine, &err), &err);
    await_workflow(engine, "items");
    (void)steps(engine, RUNS_EACH_QUICK); /* warm */
    double through = steps(engine, quick ? RUNS_EACH_QUICK : RUNS_EACH);
    bench_figure(&b, "steps through one worker, 200 runs in flight", through, "/s");
    bench_figure(&b, "the same, of the bare loop", through / loop * 100, "%");
    bench_figure(&b, "one run of ten steps, alone", latency_ms(engine, quick ? 5 : 100), "ms");
    int counts[2] = { quick ? FEW_QUICK : FEW, quick ? MANY_QUICK : MANY };
    double each[2];
    for (int i = 0; i < 2; i++) {
        char says[80];
        each[i] = items(engine, counts[i], &took) / counts[i];
        snprintf(says, sizeof says, "%d items of %d bytes: bytes each", counts[i], ITEM_BYTES);
        bench_figure(&b, says, each[i], "B");
        snprintf(says, sizeof says, "%d items: a second", counts[i]);
        bench_figure(&b, says, counts[i] / took, "/s");
    }
    bench_goal(&b, "bytes each, of ten times as many items", each[1] / each[0], "x", false, 1.2);
    rv_engine_free(engine);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return bench_done(&b) | (system(command) != 0);
}
