/* bench_worker.c: steps a second through one worker at the socket beside the store, against a bare loop that exchanges
 * the same frames over the same kind of socket; and the bytes that items take.
 *
 *   bench_worker [--json] [--quick]
 *
 * A worker is a process of its own that answers every `invoke` with `null`: one in C, so that it is the engine and the wire that
 * are measured, and one in Node.js with the npm package (node_worker.mjs; left out where there is none). 200 runs are in
 * flight, of ten steps each. RIVAL_BENCH_DIR says where the store is, /tmp if it is not set: what a step costs shows best in
 * memory (/dev/shm), since a disk that syncs slowly makes all of them wait alike. `--quick` takes few steps, to see
 * that it works. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench.h"
#include "wire/wire.h"

enum {
    RUNS_EACH = 25,
    RUNS_EACH_QUICK = 1,
    STEPS = 10,
    IN_FLIGHT = 200,
    CREDITS = 256,
    MOST_WORKERS = 4
};
enum {
    BARE = 200000,
    BARE_QUICK = 4000,
    ITEM_BYTES = 1024,
    FEW = 10000,
    MANY = 60000, /* one value may have 64 MB */
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

static void put_list(struct rv__buf *out, struct rv__str count_json)
{
    int64_t count = 0;
    (void)rv__json_int(count_json, &count);
    rv__buf_text(out, ",\"result\":[");
    for (int64_t i = 0; i < count; i++)
        rv__buf_fmt(out, "%s\"%0*d\"", i > 0 ? "," : "", ITEM_BYTES - 2, (int)i);
    rv__buf_char(out, ']');
}

/* An item that did not come along is asked for, and answered then. `list` gives so many items as its input says. */
static void answer_frame(const struct rv__frame *frame, struct rv__buf *out)
{
    enum { ID, INDEX, ITEM, FUNCTION, INPUT, KEYS };
    struct rv__str has[KEYS];
    if (frame->type == FRAME_PING)
        rv__wire_end(out, rv__wire_begin(out, FRAME_PONG));
    if (frame->type != FRAME_INVOKE && frame->type != FRAME_VALUE)
        return;
    rv__frame_members(frame, (const char *[]){ "id", "index", "item", "function", "input" }, has,
                      KEYS);
    bool asks = frame->type == FRAME_INVOKE && !rv__str_none(has[INDEX]) && rv__str_none(has[ITEM]);
    size_t start = rv__wire_begin(out, asks ? FRAME_GET : FRAME_RESULT);
    rv__wire_json(out, "id", has[ID]);
    if (asks)
        rv__wire_text(out, "part", rv__str("item"));
    if (!rv__str_none(has[FUNCTION]) && rv__json_string_is(has[FUNCTION], rv__str("list")))
        put_list(out, has[INPUT]);
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
                 "\"forEach\",\"alias\":\"each\",\"items\":{\"fn\":\"list\"},\"parallel\":true,"
                 "\"run\":[{\"type\":\"step\",\"kind\":\"function\",\"name\":\"f\",\"alias\":"
                 "\"s\"}]}]},\"functions\":[\"f\",\"list\"]}]");
}

/* A process that offers both workflows to the engine that will be there. */
static pid_t start_worker(const char *store)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
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

/* The same, in Node.js. */
static pid_t start_node(const char *store)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    char socket_path[320];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(socket_path, sizeof socket_path, "%s.sock", store);
    execlp("node", "node", BENCH "/node_worker.mjs", socket_path, (char *)NULL);
    _exit(127);
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

/* Until so many workers are there and have registered what they offer. False: they do not come. */
static bool await_workers(rv_engine *engine, size_t workers, const char *workflow)
{
    for (int tries = 0; tries < 10000; tries++) {
        rv_workflow_list *list = NULL;
        char *there = NULL;
        rv_error err;
        bool found = false;
        size_t count = 0;
        must(rv_workers(engine, &there, &err), &err);
        must(rv_workflows(engine, &list, &err), &err);
        for (size_t i = 0; i < list->count; i++)
            found |= strcmp(list->items[i].name, workflow) == 0;
        for (const char *at = there; (at = strstr(at, "\"credits\"")) != NULL; at++)
            count++;
        free(there);
        rv_workflow_list_free(list);
        found &= count == workers;
        if (found)
            return true;
        usleep(1000);
    }
    return false;
}

struct caller {
    pthread_t thread;
    rv_engine *engine;
    const char *workflow;
    int runs;
};

static void *call_runs(void *arg)
{
    const struct caller *caller = arg;
    for (int i = 0; i < caller->runs; i++) {
        rv_run_info info;
        rv_outcome *outcome;
        rv_error err;
        must(rv_run(caller->engine, caller->workflow, NULL, NULL, &info, &err), &err);
        must(rv_wait(caller->engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        if (outcome->status != RV_COMPLETED)
            abort();
        rv_outcome_free(outcome);
    }
    return NULL;
}

/* Runs of ten steps, IN_FLIGHT at once, each with a caller that waits for it: steps a second. */
static double steps(rv_engine *engine, const char *workflow, int runs_each)
{
    static struct caller callers[IN_FLIGHT];
    double before = seconds();
    for (int i = 0; i < IN_FLIGHT; i++) {
        callers[i] = (struct caller){ .engine = engine, .workflow = workflow, .runs = runs_each };
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
    char input[32];
    rv_run_info info;
    rv_outcome *outcome;
    rv_error err;
    uint64_t bytes = *heard_bytes;
    snprintf(input, sizeof input, "%d", count);
    double before = seconds();
    must(rv_run(engine, "items", input, NULL, &info, &err), &err);
    must(rv_wait(engine, NULL, info.run_id, RV_WAIT_OPTS(.timeout_ms = -1), &outcome, &err), &err);
    *took = seconds() - before;
    if (outcome->status != RV_COMPLETED) {
        fprintf(stderr, "bench_worker: %s\n", outcome->error);
        abort();
    }
    rv_outcome_free(outcome);
    return (double)(*heard_bytes - bytes);
}

/* One run of ten steps, alone. */
static double latency_ms(rv_engine *engine, const char *workflow, int rounds)
{
    rv_run_info info;
    rv_outcome *outcome;
    rv_error err;
    double before = seconds();
    for (int i = 0; i < rounds; i++) {
        must(rv_run(engine, workflow, NULL, NULL, &info, &err), &err);
        must(rv_wait(engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        rv_outcome_free(outcome);
    }
    return (seconds() - before) * 1000 / rounds;
}

/* CPU time of this process, in microseconds. */
static double cpu_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* The same, of others. */
static double cpu_us_of(const pid_t *pids, int count)
{
    enum { TIME_FIELD = 14 }; /* proc(5) */
    double ticks = 0;
    for (int i = 0; i < count; i++) {
        char name[64], line[512] = "";
        snprintf(name, sizeof name, "/proc/%d/stat", (int)pids[i]);
        FILE *file = fopen(name, "r");
        const char *rest = file != NULL && fgets(line, sizeof line, file) != NULL
                               ? strrchr(line, ')') /* behind its name */
                               : NULL;
        for (int field = 2; rest != NULL && field < TIME_FIELD;
             field++) /* the name is the second */
            rest = strchr(rest + 1, ' ');
        if (rest != NULL) {
            char *end;
            ticks += (double)strtoul(rest, &end, 10); /* in user mode */
            ticks += (double)strtoul(end, NULL, 10);  /* in the system */
        }
        if (file != NULL)
            (void)fclose(file);
    }
    return ticks * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

struct contest {
    struct bench *bench;
    rv_engine *engine;
    const char *store;
    bool quick;
};

static void end_workers(const pid_t *workers, int count)
{
    for (int i = 0; i < count; i++)
        kill(workers[i], SIGKILL);
    for (int i = 0; i < count; i++)
        waitpid(workers[i], NULL, 0);
}

/* So many workers of one kind. False: there are none of that kind here. */
static bool through_workers(const struct contest *c, const char *kind, pid_t (*start)(const char *),
                            const char *workflow, int count)
{
    pid_t workers[MOST_WORKERS];
    char says[80];
    int runs_each = c->quick ? RUNS_EACH_QUICK : RUNS_EACH;
    for (int i = 0; i < count; i++)
        workers[i] = start(c->store);
    bool there = await_workers(c->engine, (size_t)count, workflow);
    if (there) {
        (void)steps(c->engine, workflow, c->quick ? 1 : 5); /* warm */
        int bare_count = c->quick ? BARE_QUICK : BARE, all = IN_FLIGHT * runs_each * STEPS;
        double loop = bare(bare_count);
        double cpu = cpu_us(), theirs = cpu_us_of(workers, count);
        double rate = steps(c->engine, workflow, runs_each);
        cpu = (cpu_us() - cpu) / all;
        theirs = (cpu_us_of(workers, count) - theirs) / all;
        loop = (loop + bare(bare_count)) / 2; /* before and after: others use this machine too */
        snprintf(says, sizeof says, "steps through %d in %s, 200 runs in flight", count, kind);
        bench_figure(c->bench, says, rate, "/s");
        snprintf(says, sizeof says, "%d in %s, of the bare loop", count, kind);
        if (count == 1 && !c->quick)
            bench_goal(c->bench, says, rate / loop * 100, "%", true, 25);
        else
            bench_figure(c->bench, says, rate / loop * 100, "%");
        snprintf(says, sizeof says, "%d in %s: CPU of the engine, a step", count, kind);
        bench_figure(c->bench, says, cpu, "us");
        snprintf(says, sizeof says, "%d in %s: CPU of the workers, a step", count, kind);
        bench_figure(c->bench, says, theirs, "us");
        if (count == 1) {
            snprintf(says, sizeof says, "one run of ten steps, alone, in %s", kind);
            bench_figure(c->bench, says, latency_ms(c->engine, workflow, c->quick ? 5 : 100), "ms");
        }
    }
    end_workers(workers, count);
    return there && await_workers(c->engine, 0, workflow);
}

static void items_linear(const struct contest *c)
{
    int counts[2] = { c->quick ? FEW_QUICK : FEW, c->quick ? MANY_QUICK : MANY };
    double each[2], took;
    pid_t worker = start_worker(c->store);
    if (!await_workers(c->engine, 1, "items"))
        abort();
    for (int i = 0; i < 2; i++) {
        char says[80];
        each[i] = items(c->engine, counts[i], &took) / counts[i];
        snprintf(says, sizeof says, "%d items of %d bytes: bytes each", counts[i], ITEM_BYTES);
        bench_figure(c->bench, says, each[i], "B");
        snprintf(says, sizeof says, "%d items: a second", counts[i]);
        bench_figure(c->bench, says, counts[i] / took, "/s");
    }
    bench_goal(c->bench, "bytes each, of the longer list", each[1] / each[0], "x", false, 1.2);
    end_workers(&worker, 1);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct contest contest = { .bench = &b };
    const char *where = getenv("RIVAL_BENCH_DIR");
    char folder[100], store[120], command[120];
    rv_error err;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            contest.quick = true;
        } else if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "usage: bench_worker [--json] [--quick]\n");
            return 2;
        }
    }
    bench_init(&b, "worker", argc, argv);
    snprintf(folder, sizeof folder, "%.60s/rival-bench-XXXXXX", where != NULL ? where : "/tmp");
    heard_bytes = mmap(NULL, sizeof *heard_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (heard_bytes == MAP_FAILED || mkdtemp(folder) == NULL)
        return 1;
    bench_figure(&b, "a bare loop of the same frames", bare(contest.quick ? BARE_QUICK : BARE),
                 "/s");
    snprintf(store, sizeof store, "%s/s.db", folder);
    contest.store = store;
    must(rv_engine_new(RV_ENGINE_OPTS(.store = store, .control = true), &contest.engine, &err),
         &err);
    bool node = true;
    for (int workers = 1; workers <= (contest.quick ? 1 : MOST_WORKERS); workers *= 2) {
        if (!through_workers(&contest, "C", start_worker, "ten", workers))
            abort();
        node = node && through_workers(&contest, "Node.js", start_node, "node-ten", workers);
    }
    items_linear(&contest);
    rv_engine_free(contest.engine);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return bench_done(&b) | (system(command) != 0);
}
