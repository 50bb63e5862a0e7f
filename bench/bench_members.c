/* bench_members.c: one, two and three members of a PostgreSQL store, beside pgbench.
 *
 * Each member is a process with an engine of its own and RUNS runs in flight, each of STEPS steps that do nothing. Beside it, in
 * turns, on the same server, which syncs: `pgbench` with as many clients as members, whose transactions insert as many rows of
 * the same size with one statement as a member's commits did on average, into a table with the journal's columns and indexes. On a
 * machine with few processors members cannot add up: the processor time of a step is what to look at.
 *
 * The server is started by this program, in /tmp. `--quick`: one round of one second. */
#include <glob.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "unit/store/pg_server.h"

enum { MEMBERS = 3, RUNS = 200, STEPS = 20, ROUNDS = 3, SECONDS = 5 };

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_members: %s\n", what);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

/* ------------------------------------------------------------------------------- a member --- */

static int nothing(rv_ctx *ctx)
{
    return rv_return(ctx, "i", 1);
}

static void run_all(rv_engine *engine, int round)
{
    char id[64];
    rv_error err = { 0, "" };
    for (int i = 0; i < RUNS; i++) {
        snprintf(id, sizeof id, "m%d-%d-%d", (int)getpid(), round, i);
        must(rv_run(engine, "steps", NULL, RV_RUN_OPTS(.run_id = id), NULL, &err) == RV_OK,
             err.message);
    }
    for (int i = 0; i < RUNS; i++) {
        rv_outcome *outcome = NULL;
        snprintf(id, sizeof id, "m%d-%d-%d", (int)getpid(), round, i);
        must(rv_wait(engine, "steps", id, RV_WAIT_OPTS(.timeout_ms = -1), &outcome, &err) == RV_OK,
             err.message);
        rv_outcome_free(outcome);
    }
}

/* In a process of its own: says that it is ready, waits for the start, says how many steps it took. */
static void be_member(const char *address, int ready, int go, int told, double limit)
{
    rv_engine *engine = NULL;
    rv_error err = { 0, "" };
    char alias[16], byte = 'r';
    must(rv_engine_new(RV_ENGINE_OPTS(.store = address, .member = true, .workers = 64), &engine,
                       &err) == RV_OK,
         err.message);
    rv_workflow *w = rv_workflow_new("steps");
    for (int i = 0; i < STEPS; i++) {
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, nothing, NULL);
    }
    must(rv_register(engine, w, &err) == RV_OK, err.message);
    rv_workflow_free(w);
    run_all(engine, -1); /* warms up */
    must(write(ready, &byte, 1) == 1 && read(go, &byte, 1) >= 0, "no start");
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    double start = seconds(), figures[2];
    long steps = 0;
    for (int round = 0; round == 0 || seconds() - start < limit;
         round++, steps += (long)RUNS * STEPS)
        run_all(engine, round);
    figures[0] = (double)steps / (seconds() - start);
    getrusage(RUSAGE_SELF, &after);
    double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                           before.ru_stime.tv_sec) +
                  (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                           after.ru_stime.tv_usec - before.ru_stime.tv_usec) /
                      1e6;
    figures[1] = used * 1e6 / (double)steps;
    must(write(told, figures, sizeof figures) == (ssize_t)sizeof figures, "nobody listens");
    rv_engine_free(engine);
    _exit(0);
}

/* Steps a second of all, and microseconds of processor time a step. */
static void take_round(const char *address, int members, double limit, double *rate, double *cpu)
{
    int ready[2], go[2], told[2];
    pid_t pids[MEMBERS];
    char byte;
    must(pipe(ready) == 0 && pipe(go) == 0 && pipe(told) == 0, "no pipe");
    for (int i = 0; i < members; i++) {
        pids[i] = fork();
        must(pids[i] >= 0, "no process");
        if (pids[i] == 0) {
            close(go[1]);
            be_member(address, ready[1], go[0], told[1], limit);
        }
    }
    for (int i = 0; i < members; i++)
        must(read(ready[0], &byte, 1) == 1, "a member failed");
    close(go[1]); /* all at once */
    *rate = *cpu = 0;
    for (int i = 0; i < members; i++) {
        double figures[2];
        must(read(told[0], figures, sizeof figures) == (ssize_t)sizeof figures, "a member failed");
        *rate += figures[0];
        *cpu += figures[1] / members;
    }
    for (int i = 0; i < members; i++)
        must(waitpid(pids[i], NULL, 0) == pids[i], "waitpid");
    close(ready[0]), close(ready[1]), close(go[0]), close(told[0]), close(told[1]);
}

/* ---------------------------------------------------------------------------------- pgbench --- */

static void bare_table(PGconn *pg)
{
    pg_run(pg,
           "CREATE SCHEMA bare; CREATE SEQUENCE bare.seqs; CREATE TABLE bare.journal (seq bigint"
           " NOT NULL, run bigint NOT NULL, prev bigint NOT NULL, facts bytea NOT NULL);"
           "CREATE UNIQUE INDEX ON bare.journal (run, prev);"
           "CREATE INDEX ON bare.journal (seq)");
}

/* Rows a second of so many clients. */
static double pgbench(const char *program, PGconn *pg, int clients, long rows, long bytes,
                      int limit)
{
    char script[256], command[1024];
    snprintf(script, sizeof script, "%s/insert.sql", pg_server_folder());
    FILE *file = fopen(script, "we");
    must(file != NULL, "no script");
    fprintf(file,
            "INSERT INTO bare.journal SELECT s, s %% 2000, s, decode(repeat('78', %ld), 'hex')"
            " FROM (SELECT nextval('bare.seqs') AS s FROM generate_series(1, %ld)) x;\n",
            bytes, rows);
    must(fclose(file) == 0, "no script");
    snprintf(command, sizeof command,
             "%s -n -M prepared -f %s -h %s -U %s -c %d -j %d -T %d %s >/dev/null 2>&1", program,
             script, pg_server_folder(), PQuser(pg), clients, clients, limit, PQdb(pg));
    long before = pg_number(pg, "SELECT last_value FROM bare.seqs");
    double start = seconds();
    must(system(command) == 0, "pgbench failed"); /* NOLINT(cert-env33-c): a path of our own */
    return (double)(pg_number(pg, "SELECT last_value FROM bare.seqs") - before) /
           (seconds() - start);
}

int main(int argc, char **argv)
{
    struct bench b;
    char address[PG_ADDRESS_MAX], name[80];
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int rounds = quick ? 1 : ROUNDS, limit = quick ? 1 : SECONDS;
    glob_t programs;
    bench_init(&b, "members of a PostgreSQL store", argc, argv);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
    must(glob("/usr/lib/postgresql/*/bin/pgbench", 0, NULL, &programs) == 0, "no pgbench");
    pg_server_start_synced();
    pg_database_new(address);
    PGconn *pg = pg_connect(address);
    bare_table(pg);
    for (int members = 1; members <= MEMBERS; members++) {
        double rate[ROUNDS] = { 0 }, cpu[ROUNDS] = { 0 }, bare[ROUNDS] = { 0 };
        double ratio[ROUNDS] = { 0 }, batch[ROUNDS] = { 0 };
        for (int r = 0; r < rounds; r++) {
            double unused;
            if (members == 1 && r == 0)
                take_round(address, 1, 0.5, &unused, &unused); /* makes the tables */
            pg_run(pg, "TRUNCATE rival.journal; CREATE TEMP TABLE t AS SELECT sum(batch) AS n FROM"
                       " rival.lanes");
            take_round(address, members, limit, &rate[r], &cpu[r]);
            long rows = pg_number(pg, "SELECT count(*) FROM rival.journal");
            long commits = pg_number(pg, "SELECT sum(batch) - (SELECT n FROM t) FROM rival.lanes");
            long bytes = pg_number(pg, "SELECT avg(length(facts))::bigint FROM rival.journal");
            pg_run(pg, "DROP TABLE t; TRUNCATE bare.journal");
            batch[r] = (double)rows / (double)commits;
            bare[r] = pgbench(programs.gl_pathv[programs.gl_pathc - 1], pg, members,
                              (long)(batch[r] + 0.5), bytes, limit);
            /* a step is a row, and a run two more at most */
            ratio[r] = 100 * rate[r] / bare[r];
        }
        snprintf(name, sizeof name, "steps a second, %d member%s", members, members > 1 ? "s" : "");
        bench_figure(&b, name, bench_median(rate, (size_t)rounds), "/s");
        bench_figure(&b, "  rows of a commit", bench_median(batch, (size_t)rounds), "");
        bench_figure(&b, "  processor time of a step", bench_median(cpu, (size_t)rounds), "us");
        bench_figure(&b, "  pgbench, as many rows a transaction",
                     bench_median(bare, (size_t)rounds), "/s");
        bench_goal(&b, "  of pgbench", bench_median(ratio, (size_t)rounds), "%", true, 25);
    }
    PQfinish(pg);
    globfree(&programs);
    pg_server_stop();
    return bench_done(&b);
}
