/* throughput.c: durable steps a second, against the raw rate of the store beneath them.
 *
 * The raw rate: as many journal rows of the same size, in the same batch sizes, inserted through
 * SQLite's own API into a table of the same shape, on the same disk, in the same run. */
#include <sqlite3.h>

#include "engine/engine.h"
#include "figures.h"

enum { RUNS = 10000, MOST_ROUNDS = 101 };

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

/* How many journal rows there are, and how long they are. */
static void journal_size(const char *path, double *rows, double *bytes)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT count(*), avg(length(facts)) FROM journal", -1, &stmt,
                           NULL) != SQLITE_OK ||
        sqlite3_step(stmt) != SQLITE_ROW)
        abort();
    *rows = sqlite3_column_double(stmt, 0);
    *bytes = sqlite3_column_double(stmt, 1);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* What one round measures. */
struct round {
    double steps, rows_a_commit, bytes_a_row, cpu_us, raw, ratio;
};

static struct round measure(struct figures *f, int runs)
{
    rv_engine *engine = open_engine(f, "throughput");
    add_workflow(engine, ten_steps());
    double cpu = cpu_seconds(), start = seconds();
    clients_start(engine, "ten", NULL, runs);
    clients_join();
    double took = seconds() - start, used = cpu_seconds() - cpu;
    int64_t commits = engine->commits;
    rv_engine_free(engine);

    struct round r = { .steps = runs * TEN / took, .cpu_us = used / (runs * TEN) * 1e6 };
    double rows = 0;
    journal_size(store_path(f, "throughput"), &rows, &r.bytes_a_row);
    r.rows_a_commit = rows / (double)commits;
    r.raw = raw_rate(store_path(f, "raw"), (int)rows, (int)(r.rows_a_commit + 0.5),
                     (int)r.bytes_a_row);
    r.ratio = r.steps / r.raw * 100;
    drop_store(f, "throughput");
    drop_store(f, "raw");
    return r;
}

static int by_ratio(const void *a, const void *b)
{
    double x = ((const struct round *)a)->ratio, y = ((const struct round *)b)->ratio;
    return (x > y) - (x < y);
}

void throughput(struct figures *f)
{
    struct round rounds[MOST_ROUNDS] = { { .ratio = 0 } };
    const int count = f->rounds < MOST_ROUNDS ? f->rounds : MOST_ROUNDS;
    for (int i = 0; i < count; i++)
        rounds[i] = measure(f, f->quick ? 400 : RUNS);
    qsort(rounds, (size_t)count, sizeof *rounds, by_ratio);
    const struct round *r = &rounds[count / 2];
    bench_figure(f->bench, "200 in flight: durable steps", r->steps, "/s");
    bench_figure(f->bench, "200 in flight: journal rows a commit", r->rows_a_commit, "");
    bench_figure(f->bench, "200 in flight: bytes a row", r->bytes_a_row, "");
    bench_figure(f->bench, "200 in flight: CPU a step", r->cpu_us, "us");
    bench_figure(f->bench, "200 in flight: raw rows", r->raw, "/s");
    goal(f, "200 in flight: steps / raw rows", r->ratio, "%", true, 50);
}
