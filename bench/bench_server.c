/* bench_server.c: the server under load: streams of all events to many clients while runs are launched
 * at a steady rate, and what the engine pays for a server that nobody talks to.
 *
 * The clients are a process of their own, with one loop, so that what is measured here is the server's.
 * A launch counts from the moment when it was due, not from when there was time for it: a server that is
 * late cannot hide it. Nothing may be lost: every client has to see the end of every run. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "server/server.h"

enum {
    STREAMS = 200,
    LAUNCHERS = 64, /* connections; each has one launch under way */
    RATE = 500,     /* launches in a second */
    SECONDS = 60,
    QUICK_SECONDS = 3,
    DRAIN_MS = 60000, /* for the last events to come */
    BUFFER = 256 << 10,
    ROUNDS = 7, /* of the engine alone and with an idle server */
    ROUND_RUNS = 3000,
};

static int64_t now_us(void)
{
    return rv__mono_ns(rv__clock_real()) / 1000;
}

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "bench_server: %s: %m\n", what);
    abort();
}

/* ---------------------------------------------------------------------------------- clients --- */

struct figures { /* what the clients found */
    uint64_t launched, errors, lost, doubled;
    double p50_ms, p99_ms, max_ms, seconds, bytes;
};

struct client {
    int fd;
    bool launches;
    bool busy; /* a launch is under way, due at: */
    int64_t due_us;
    uint64_t ends;  /* of runs, that a stream has told of */
    char tail[256]; /* of what came: the beginning of something */
    size_t tail_len;
};

struct crowd {
    int epoll;
    unsigned port;
    struct client all[STREAMS + LAUNCHERS];
    char buffer[BUFFER + 256];
    struct figures figures;
    double *latencies;
    size_t latency_cap, waiting; /* launches without an answer */
};

static void client_open(struct crowd *crowd, struct client *c)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)crowd->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        give_up("cannot connect");
    if (!c->launches) {
        static const char ask[] = "GET /api/v1/events?logs=0 HTTP/1.0\r\nHost: localhost\r\n\r\n";
        if (write(c->fd, ask, sizeof ask - 1) != sizeof ask - 1)
            give_up("cannot ask for events");
        ssize_t n = read(c->fd, crowd->buffer, BUFFER); /* the head: it follows from here on */
        if (n < 12 || memcmp(crowd->buffer + 9, "200", 3) != 0)
            give_up("no stream");
    }
    if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        give_up("cannot wait for a connection");
}

static void launch(struct crowd *crowd, struct client *c, int64_t due_us)
{
    static const char post[] = "POST /api/v1/workflows/three/runs HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/json\r\nContent-Length: 19\r\n\r\n"
                               "{\"input\":{\"n\":123}}";
    if (write(c->fd, post, sizeof post - 1) != sizeof post - 1)
        give_up("cannot launch");
    c->busy = true;
    c->due_us = due_us;
    crowd->waiting++;
}

static int hear_stream(struct crowd *crowd, struct client *c)
{
    static const char end[] = "event: run.completed\n";
    memcpy(crowd->buffer, c->tail, c->tail_len);
    ssize_t n = read(c->fd, crowd->buffer + c->tail_len, BUFFER);
    if (n <= 0)
        return -1;
    crowd->figures.bytes += (double)n;
    size_t have = c->tail_len + (size_t)n;
    const char *at = crowd->buffer, *stop = crowd->buffer + have, *hit;
    while ((hit = memmem(at, (size_t)(stop - at), end, sizeof end - 1)) != NULL) {
        c->ends++;
        at = hit + sizeof end - 1;
    }
    c->tail_len = (size_t)(stop - at) < sizeof end - 2 ? (size_t)(stop - at) : sizeof end - 2;
    memcpy(c->tail, stop - c->tail_len, c->tail_len);
    return 0;
}

static int hear_launch(struct crowd *crowd, struct client *c)
{
    ssize_t n = read(c->fd, crowd->buffer, BUFFER); /* short: it comes in one piece */
    if (n <= 0 || !c->busy)
        return -1;
    if (n < 12 || memcmp(crowd->buffer + 9, "202", 3) != 0)
        crowd->figures.errors++;
    if (crowd->figures.launched < crowd->latency_cap)
        crowd->latencies[crowd->figures.launched] = (double)(now_us() - c->due_us) / 1000;
    crowd->figures.launched++;
    c->busy = false;
    crowd->waiting--;
    return 0;
}

static void hear(struct crowd *crowd, int timeout_ms)
{
    struct epoll_event events[128];
    int count = epoll_wait(crowd->epoll, events, 128, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct client *c = events[i].data.ptr;
        if ((c->launches ? hear_launch(crowd, c) : hear_stream(crowd, c)) < 0) {
            crowd->figures.errors++;
            (void)epoll_ctl(crowd->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        }
    }
}

static bool all_heard(const struct crowd *crowd, uint64_t runs)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (crowd->all[i].ends < runs)
            return false;
    return true;
}

static void crowd_run(struct crowd *crowd, int seconds)
{
    uint64_t runs = (uint64_t)seconds * RATE, next = 0;
    int64_t began_us = now_us();
    size_t at = STREAMS;
    while (next < runs || crowd->waiting > 0) {
        int64_t due_us = began_us + (int64_t)(next * 1000000 / RATE);
        while (next < runs && due_us <= now_us() && crowd->waiting < LAUNCHERS) {
            while (crowd->all[at].busy)
                at = at + 1 < STREAMS + LAUNCHERS ? at + 1 : STREAMS;
            launch(crowd, &crowd->all[at], due_us);
            due_us = began_us + (int64_t)(++next * 1000000 / RATE);
        }
        int64_t wait_us = due_us - now_us();
        hear(crowd, next >= runs || crowd->waiting == LAUNCHERS ? 100
                    : wait_us <= 0                              ? 0
                                                                : (int)(wait_us / 1000));
    }
    int64_t until_us = now_us() + (int64_t)DRAIN_MS * 1000;
    while (!all_heard(crowd, runs) && now_us() < until_us)
        hear(crowd, 100);
    struct figures *f = &crowd->figures;
    f->seconds = (double)(now_us() - began_us) / 1e6;
    for (size_t i = 0; i < STREAMS; i++) {
        f->lost += crowd->all[i].ends < runs ? runs - crowd->all[i].ends : 0;
        f->doubled += crowd->all[i].ends > runs ? crowd->all[i].ends - runs : 0;
    }
    qsort(crowd->latencies, f->launched, sizeof *crowd->latencies, bench_order);
    f->p50_ms = crowd->latencies[f->launched / 2];
    f->p99_ms = crowd->latencies[f->launched * 99 / 100];
    f->max_ms = crowd->latencies[f->launched - 1];
}

/* The process of the clients: told the port, tells the figures. */
static void crowd_main(int from, int to, int seconds)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    if (crowd == NULL || read(from, &crowd->port, sizeof crowd->port) != sizeof crowd->port)
        give_up("no port");
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    crowd->latency_cap = (size_t)seconds * RATE;
    crowd->latencies = calloc(crowd->latency_cap, sizeof *crowd->latencies);
    if (crowd->latencies == NULL)
        give_up("no memory");
    for (size_t i = 0; i < STREAMS + LAUNCHERS; i++) {
        crowd->all[i].launches = i >= STREAMS;
        client_open(crowd, &crowd->all[i]);
    }
    crowd_run(crowd, seconds);
    if (write(to, &crowd->figures, sizeof crowd->figures) != sizeof crowd->figures)
        give_up("nobody listens");
    _exit(0);
}

/* ----------------------------------------------------------------------------------- server --- */

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_server: %s\n", err->message);
        abort();
    }
}

static int no_op(rv_ctx *c)
{
    return rv_return(c, "i", 1);
}

static rv_engine *engine_open(const char *store)
{
    rv_engine *engine = NULL;
    rv_error err;
    rv_workflow *w = rv_workflow_new("three");
    must(rv_engine_new(RV_ENGINE_OPTS(.store = store), &engine, &err), &err);
    rv_add_step(rv_workflow_body(w), "a", no_op, NULL);
    rv_add_step(rv_workflow_body(w), "b", no_op, NULL);
    rv_add_step(rv_workflow_body(w), "c", no_op, NULL);
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
    return engine;
}

static void store_remove(const char *store)
{
    static const char *const tails[] = { "", "-wal", "-shm", ".lock", ".sock" };
    char path[128];
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(path, sizeof path, "%s%s", store, tails[i]);
        unlink(path);
    }
}

/* VmRSS, VmHWM of this process, in MB. */
static double memory_mb(const char *which)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, which, strlen(which)) == 0)
            kb = strtod(line + strlen(which) + 1, NULL);
    fclose(f);
    return kb / 1024;
}

static unsigned port_of(const struct rv__server *server)
{
    return (unsigned)strtoul(strrchr(rv__server_url(server), ':') + 1, NULL, 10);
}

static void under_load(struct bench *b, const char *store, int seconds)
{
    int there[2], back[2];
    rv_error err;
    struct rv__server *server = NULL;
    struct figures f = { .errors = 1 };
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        give_up("no pipe");
    pid_t child = fork(); /* before there are threads */
    if (child < 0)
        give_up("no process");
    if (child == 0)
        crowd_main(there[0], back[1], seconds);
    close(back[1]);

    rv_engine *engine = engine_open(store);
    must(
        rv__server_new(engine, &(struct rv__server_opts){ .listen = "127.0.0.1:0" }, &server, &err),
        &err);
    double before = memory_mb("VmRSS");
    unsigned port = port_of(server);
    if (write(there[1], &port, sizeof port) != sizeof port ||
        read(back[0], &f, sizeof f) != sizeof f)
        give_up("the clients are gone");
    (void)waitpid(child, NULL, 0);
    double peak = memory_mb("VmHWM");
    rv__server_free(server);
    rv_engine_free(engine);
    store_remove(store);

    bench_goal(b, "launches that failed, connections lost", (double)f.errors, "", false, 0);
    bench_goal(b, "ends of runs that a stream did not tell", (double)f.lost, "", false, 0);
    bench_goal(b, "ends of runs that were told twice", (double)f.doubled, "", false, 0);
    bench_figure(b, "launches", (double)f.launched / f.seconds, "/s");
    bench_figure(b, "events to all clients", (double)f.launched * 8 * STREAMS / f.seconds, "/s");
    bench_figure(b, "bytes to all clients", f.bytes / 1e6 / f.seconds, "MB/s");
    bench_figure(b, "a launch, from when it was due: median", f.p50_ms, "ms");
    bench_figure(b, "a launch, from when it was due: p99", f.p99_ms, "ms");
    bench_figure(b, "a launch, from when it was due: longest", f.max_ms, "ms");
    bench_figure(b, "memory at the beginning", before, "MB");
    bench_figure(b, "memory at its peak", peak, "MB");
}

/* ------------------------------------------------------------------------------- idle server --- */

static double engine_round(rv_engine *engine)
{
    enum { AT_ONCE = 200 };
    rv_run_info ids[AT_ONCE];
    rv_error err;
    int64_t began = now_us();
    for (int done = 0; done < ROUND_RUNS; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            must(rv_run(engine, "three", NULL, NULL, &ids[i], &err), &err);
        for (int i = 0; i < AT_ONCE; i++) {
            rv_outcome *outcome = NULL;
            must(rv_wait(engine, NULL, ids[i].run_id, NULL, &outcome, &err), &err);
            rv_outcome_free(outcome);
        }
    }
    return ROUND_RUNS / ((double)(now_us() - began) / 1e6);
}

static void idle(struct bench *b, const char *store)
{
    double alone[ROUNDS], served[ROUNDS], ratios[ROUNDS];
    rv_engine *engine = engine_open(store);
    rv_error err;
    for (int i = 0; i < ROUNDS; i++) {
        struct rv__server *server = NULL;
        alone[i] = engine_round(engine);
        must(rv__server_new(engine, &(struct rv__server_opts){ .listen = "127.0.0.1:0" }, &server,
                            &err),
             &err);
        served[i] = engine_round(engine);
        rv__server_free(server);
        ratios[i] = served[i] / alone[i];
    }
    rv_engine_free(engine);
    store_remove(store);
    bench_figure(b, "runs of the engine alone", bench_median(alone, ROUNDS), "/s");
    bench_figure(b, "runs with an idle server", bench_median(served, ROUNDS), "/s");
    bench_goal(b, "with an idle server / alone", bench_median(ratios, ROUNDS), "", true, 0.9);
}

int main(int argc, char **argv)
{
    struct bench b;
    char store[64];
    int seconds = SECONDS;
    bool quick = false;
    for (int i = 1; i < argc; i++)
        quick |= strcmp(argv[i], "--quick") == 0;
    if (quick)
        seconds = QUICK_SECONDS;
    (void)signal(SIGPIPE, SIG_IGN);
    snprintf(store, sizeof store, "bench-server-%d.db", (int)getpid());
    bench_init(&b, "server: 200 streams and 500 launches a second of three steps", argc, argv);
    under_load(&b, store, seconds);
    if (!quick)
        idle(&b, store);
    return bench_done(&b);
}
