/* bench_engine.c: durable steps a second, against the raw rate of the store beneath them.
 *
 * The raw rate: as many journal rows of the same size, in the same batch sizes, inserted through
 * SQLite's own API into a table of the same shape, on the same disk, in the same run. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"
#include "engine/engine.h"

static void must(int rc, const rv_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_engine: %s\n", err->message);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int no_op(rv_ctx *c)
{
    (void)c;
    return 0;
}

static rv_workflow *ten_steps(void)
{
    rv_workflow *w = rv_workflow_new("ten");
    for (int i = 0; i < 10; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, no_op, NULL);
    }
    return w;
}

struct client {
    pthread_t thread;
    rv_engine *engine;
    atomic_int *left;
};

static void *client_main(void *arg)
{
    struct client *client = arg;
    rv_error err;
    while (atomic_fetch_sub(client->left, 1) > 0) {
        rv_run_info info;
        rv_outcome *outcome = NULL;
        must(rv_run(client->engine, "ten", NULL, NULL, &info, &err), &err);
        must(rv_wait(client->engine, NULL, info.run_id, NULL, &outcome, &err), &err);
        if (outcome->status != RV_COMPLETED)
            abort();
        rv_outcome_free(outcome);
    }
    return NULL;
}

static double raw_rate(const char *path, int rows, int batch, int size)
{
    sqlite3 *db;
    sqlite3_stmt *insert;
    char *text = malloc((size_t)size + 1);
    memset(text, 'x', (size_t)size);
    text[size] = '\0';
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                     "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER, facts TEXT);"
                     "CREATE INDEX journal_run ON journal(run)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "INSERT INTO journal(run, facts) VALUES(?,?)", -1, &insert, NULL) !=
            SQLITE_OK)
        abort();
    double start = seconds();
    for (int done = 0; done < rows;) {
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        for (int i = 0; i < batch && done < rows; i++, done++) {
            sqlite3_bind_int64(insert, 1, done % 20000);
            sqlite3_bind_text(insert, 2, text, size, SQLITE_STATIC);
            if (sqlite3_step(insert) != SQLITE_DONE)
                abort();
            sqlite3_reset(insert);
        }
        if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
            abort();
    }
    double took = seconds() - start;
    sqlite3_finalize(insert);
    sqlite3_close(db);
    free(text);
    return rows / took;
}

static void throughput(struct bench *b, const char *folder, int clients_count, int runs)
{
    enum { STEPS = 10 };
    char path[256], name[80];
    rv_error err;
    rv_engine *engine = NULL;
    atomic_int left = runs;
    struct client clients[1000];

    snprintf(path, sizeof path, "%s/engine-%d.db", folder, clients_count);
    must(rv_engine_new(RV_ENGINE_OPTS(.store = path), &engine, &err), &err);
    rv_workflow *w = ten_steps();
    must(rv_register(engine, w, &err), &err);
    rv_workflow_free(w);
    double cpu = cpu_seconds(), start = seconds();
    for (int i = 0; i < clients_count; i++) {
        clients[i] = (struct client){ .engine = engine, .left = &left };
        pthread_create(&clients[i].thread, NULL, client_main, &clients[i]);
    }
    for (int i = 0; i < clients_count; i++)
        pthread_join(clients[i].thread, NULL);
    double took = seconds() - start, used = cpu_seconds() - cpu;
    int64_t commits = engine->commits;
    rv_engine_free(engine);

    sqlite3 *db;
    sqlite3_stmt *stmt;
    double rows = 0, bytes = 0;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT count(*), avg(length(facts)) FROM journal", -1, &stmt,
                           NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        rows = sqlite3_column_double(stmt, 0);
        bytes = sqlite3_column_double(stmt, 1);
        sqlite3_finalize(stmt);
    }
    sqlite3_close(db);
    double batch = rows / (double)commits;
    snprintf(path, sizeof path, "%s/raw-%d.db", folder, clients_count);
    double raw = raw_rate(path, (int)rows, (int)(batch + 0.5), (int)bytes);

    snprintf(name, sizeof name, "%d in flight: durable steps", clients_count);
    bench_figure(b, name, runs * STEPS / took, "/s");
    snprintf(name, sizeof name, "%d in flight: journal rows a commit", clients_count);
    bench_figure(b, name, batch, "");
    snprintf(name, sizeof name, "%d in flight: bytes a row", clients_count);
    bench_figure(b, name, bytes, "");
    snprintf(name, sizeof name, "%d in flight: CPU a step", clients_count);
    bench_figure(b, name, used / (runs * STEPS) * 1e6, "us");
    snprintf(name, sizeof name, "%d in flight: raw rows", clients_count);
    bench_figure(b, name, raw, "/s");
    snprintf(name, sizeof name, "%d in flight: steps / raw rows", clients_count);
    bench_goal(b, name, runs * STEPS / took / raw * 100, "%", true, 20);
}

int main(int argc, char **argv)
{
    struct bench b;
    char folder[] = "bench-engine-XXXXXX", command[100];
    bench_init(&b, "engine", argc, argv);
    if (mkdtemp(folder) == NULL)
        return 1;
    throughput(&b, folder, 200, 20000);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? bench_done(&b) : 1;
}
