/* bench_dbos.c: workflows a second and the time of one workflow, beside the DBOS library, on the same PostgreSQL.
 *
 * The contenders run workflows of one and of ten steps that do nothing: Rival in C, as a library in a process of its own; Rival in
 * TypeScript, by the npm package, which starts `rival serve`; and DBOS in TypeScript. Rival's engines are members of their stores, as where
 * several machines share one. Each has a database of its own on one server, which syncs, and they take turns. IN_FLIGHT loops start a
 * workflow and wait for its result, or one loop does.
 *
 * The server is started by this program, in /tmp. `scripts/bench-dbos` fetches the library and runs this; without the library, or without
 * Node.js, it measures nothing and says so. `--quick`: one round of one second. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "unit/store/pg_server.h"

enum { IN_FLIGHT = 100, TEN = 10, ROUNDS = 5, ROUND_MS = 5000, ARGUMENT_MAX = 4200 };

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_dbos: %s\n", what);
        abort();
    }
}

static double now_ms(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e6;
}

/* ------------------------------------------------------------------------------- Rival in C --- */

static int nothing(rv_ctx *ctx)
{
    return rv_return(ctx, "i", 1);
}

static void register_steps(rv_engine *engine, const char *name, int steps)
{
    rv_error err = { 0, "" };
    char alias[16];
    rv_workflow *w = rv_workflow_new(name);
    for (int i = 0; i < steps; i++) {
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, nothing, NULL);
    }
    must(rv_register(engine, w, &err) == RV_OK, err.message);
    rv_workflow_free(w);
}

struct loop {
    pthread_t thread;
    rv_engine *engine;
    const char *workflow;
    double end_ms;
    double *took; /* of each workflow */
    size_t count, cap;
};

static void *run_loop(void *arg)
{
    struct loop *loop = arg;
    while (now_ms() < loop->end_ms) {
        double before = now_ms();
        rv_error err = { 0, "" };
        rv_outcome *outcome = NULL;
        rv_run_info info;
        must(rv_run(loop->engine, loop->workflow, NULL, NULL, &info, &err) == RV_OK, err.message);
        must(rv_wait(loop->engine, loop->workflow, info.run_id, RV_WAIT_OPTS(.timeout_ms = -1),
                     &outcome, &err) == RV_OK,
             err.message);
        double took = now_ms() - before;
        rv_outcome_free(outcome);
        if (loop->count == loop->cap) {
            loop->cap = loop->cap * 2 + 64;
            loop->took = realloc(loop->took, loop->cap * sizeof *loop->took);
            must(loop->took != NULL, "no memory");
        }
        loop->took[loop->count++] = took;
    }
    return NULL;
}

static void measure(rv_engine *engine, int steps, int in_flight, int ms, FILE *told)
{
    struct loop loops[IN_FLIGHT] = { 0 };
    double start = now_ms();
    for (int i = 0; i < in_flight; i++) {
        loops[i].engine = engine;
        loops[i].workflow = steps == 1 ? "steps1" : "steps10";
        loops[i].end_ms = start + ms;
        must(pthread_create(&loops[i].thread, NULL, run_loop, &loops[i]) == 0, "no thread");
    }
    for (int i = 0; i < in_flight; i++)
        pthread_join(loops[i].thread, NULL);
    double end = now_ms();
    size_t count = 0;
    for (int i = 0; i < in_flight; i++)
        count += loops[i].count;
    double *all = calloc(count + 1, sizeof *all);
    must(all != NULL, "no memory");
    count = 0;
    for (int i = 0; i < in_flight; i++) {
        for (size_t n = 0; n < loops[i].count; n++)
            all[count++] = loops[i].took[n];
        free(loops[i].took);
    }
    fprintf(told, "%f %f\n", (double)count * 1000 / (end - start), bench_median(all, count));
    free(all);
}

/* In a process of its own: what contender.mjs does. */
static void be_rival(const char *address)
{
    rv_engine *engine = NULL;
    rv_error err = { 0, "" };
    int steps, in_flight, ms;
    must(rv_engine_new(RV_ENGINE_OPTS(.store = address, .member = true), &engine, &err) == RV_OK,
         err.message);
    register_steps(engine, "steps1", 1);
    register_steps(engine, "steps10", TEN);
    printf("ready\n");
    fflush(stdout);
    while (scanf("%d %d %d", &steps, &in_flight, &ms) == 3) { /* NOLINT(cert-err34-c): ours */
        measure(engine, steps, in_flight, ms, stdout);
        fflush(stdout);
    }
    rv_engine_free(engine);
}

/* -------------------------------------------------------------------------------- contenders --- */

struct contender {
    const char *name, *kind; /* kind: of contender.mjs; NULL: be_rival() */
    char address[PG_ADDRESS_MAX];
    pid_t pid;
    FILE *say, *hear;
    double rate[2][ROUNDS], one[2][ROUNDS]; /* of one step, of ten */
};

static bool start(struct contender *c, const char *program)
{
    int in[2], out[2];
    char line[64], uri[ARGUMENT_MAX];
    const char *database = strrchr(c->address, '/'); /* as node-postgres reads an address */
    must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "no pipe");
    snprintf(uri, sizeof uri, "postgresql://rival@localhost%s?host=%s", database,
             pg_server_folder());
    fflush(NULL);
    c->pid = fork();
    must(c->pid >= 0, "no process");
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        must(dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1, "no pipe");
        close(in[1]), close(out[0]); /* the first contender is no other program */
        if (c->kind == NULL) {
            be_rival(c->address);
            _exit(0);
        }
        execlp("node", "node", BENCH "/dbos/contender.mjs", c->kind,
               strcmp(c->kind, "dbos") == 0 ? uri : c->address, program, (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    c->say = fdopen(in[1], "w");
    c->hear = fdopen(out[0], "r");
    must(c->say != NULL && c->hear != NULL, "no pipe");
    return fgets(line, sizeof line, c->hear) != NULL && strcmp(line, "ready\n") == 0;
}

static void ask(struct contender *c, int steps, int in_flight, int ms, double *rate, double *one)
{
    fprintf(c->say, "%d %d %d\n", steps, in_flight, ms);
    fflush(c->say);
    must(fscanf(c->hear, "%lf %lf", rate, one) == 2, c->name); /* NOLINT(cert-err34-c): ours */
}

static void end(struct contender *c)
{
    fclose(c->say);
    fclose(c->hear);
    must(waitpid(c->pid, NULL, 0) == c->pid, "waitpid");
}

static void print_all(struct bench *b, struct contender *all, size_t count, int rounds)
{
    char name[80];
    struct contender *dbos = &all[count - 1];
    for (int ten = 0; ten < 2; ten++)
        for (size_t i = 0; i < count; i++) {
            double ratio[2][ROUNDS];
            const char *steps = ten ? "ten steps" : "one step";
            for (int r = 0; r < rounds; r++) {
                ratio[0][r] = all[i].rate[ten][r] / dbos->rate[ten][r];
                ratio[1][r] = all[i].one[ten][r] / dbos->one[ten][r];
            }
            snprintf(name, sizeof name, "%s: %s, %d in flight", all[i].name, steps, IN_FLIGHT);
            bench_figure(b, name, bench_median(all[i].rate[ten], (size_t)rounds), "workflows/s");
            if (&all[i] != dbos)
                bench_figure(b, "  of DBOS", bench_median(ratio[0], (size_t)rounds), "x");
            snprintf(name, sizeof name, "%s: %s, alone", all[i].name, steps);
            bench_figure(b, name, bench_median(all[i].one[ten], (size_t)rounds), "ms");
            if (&all[i] != dbos)
                bench_figure(b, "  of DBOS", bench_median(ratio[1], (size_t)rounds), "x");
        }
}

int main(int argc, char **argv)
{
    static struct contender all[] = { { .name = "Rival, C" },
                                      { .name = "Rival, TypeScript", .kind = "rival" },
                                      { .name = "DBOS, TypeScript", .kind = "dbos" } };
    enum { COUNT = sizeof all / sizeof all[0] };
    struct bench b;
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int rounds = quick ? 1 : ROUNDS, ms = quick ? 1000 : ROUND_MS;
    bench_init(&b, "workflows beside the DBOS library", argc, argv);
    if (access(BENCH "/dbos/node_modules/@dbos-inc/dbos-sdk", R_OK) != 0) {
        fprintf(stderr, "bench_dbos: not measured: scripts/bench-dbos fetches the library\n");
        return bench_done(&b);
    }
    pg_server_start_synced();
    for (int i = 0; i < COUNT; i++)
        pg_database_new(all[i].address);
    for (int i = 0; i < COUNT; i++)
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
        must(start(&all[i], getenv("RIVAL_HOST")), "a contender does not start");
    for (int r = -1; r < rounds; r++) /* the first one warms up */
        for (int ten = 0; ten < 2; ten++)
            for (int i = 0; i < COUNT; i++) {
                double unused;
                int at = r < 0 ? 0 : r, time = r < 0 ? ms / 5 : ms, steps = ten ? TEN : 1;
                ask(&all[i], steps, IN_FLIGHT, time, &all[i].rate[ten][at], &unused);
                ask(&all[i], steps, 1, time / 2, &unused, &all[i].one[ten][at]);
            }
    print_all(&b, all, COUNT, rounds);
    for (int i = 0; i < COUNT; i++)
        end(&all[i]);
    pg_server_stop();
    return bench_done(&b);
}
