/* latency.c: one run at a time: how many commits it makes, and what it takes in commits.
 *
 * The measure is a commit of a single row through SQLite's own API, on the same disk, in turns with
 * the runs. Ten steps in a row are eleven commits: the start of the run with that of the first step,
 * then each result with the start of the next, the last one with the end. */
#include <sqlite3.h>

#include "engine/engine.h"
#include "figures.h"

enum { ROUNDS = 1001, WARM_UP = 20 };

struct raw {
    sqlite3 *db;
    sqlite3_stmt *insert;
};

static void raw_open(struct raw *raw, const char *path)
{
    if (sqlite3_open(path, &raw->db) != SQLITE_OK ||
        sqlite3_exec(raw->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                     "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER, facts TEXT)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(raw->db, "INSERT INTO journal(run, facts) VALUES(1, ?)", -1,
                           &raw->insert, NULL) != SQLITE_OK)
        abort();
}

static double raw_commit(struct raw *raw)
{
    double start = seconds();
    sqlite3_bind_text(raw->insert, 1, "{\"k\":\"step.completed\",\"a\":2,\"n\":0,\"at\":1000}", -1,
                      SQLITE_STATIC);
    if (sqlite3_step(raw->insert) != SQLITE_DONE || sqlite3_reset(raw->insert) != SQLITE_OK)
        abort();
    return seconds() - start;
}

void latency(struct figures *f)
{
    static double runs[ROUNDS], rows[ROUNDS * TEN];
    const int rounds = f->quick ? 21 : ROUNDS;
    struct raw raw;
    rv_engine *engine = open_engine(f, "latency");
    raw_open(&raw, store_path(f, "raw"));
    add_workflow(engine, ten_steps());
    for (int i = 0; i < WARM_UP; i++)
        (void)run_once(engine, "ten", NULL);
    int64_t commits = engine->commits;
    for (int i = 0; i < rounds; i++) {
        runs[i] = run_once(engine, "ten", NULL);
        for (int k = 0; k < TEN; k++)
            rows[i * TEN + k] = raw_commit(&raw);
    }
    /* The answer to rv_wait() follows the last commit: nothing writes this any more. */
    double each = (double)(engine->commits - commits) / rounds;
    double run_us = bench_median(runs, (size_t)rounds) * 1e6;
    double row_us = bench_median(rows, (size_t)rounds * TEN) * 1e6;
    bench_goal(f->bench, "one run of 10 steps: commits, at most", each, "", false, TEN + 1);
    bench_goal(f->bench, "one run of 10 steps: commits, at least", each, "", true, TEN + 1);
    bench_figure(f->bench, "one run of 10 steps: p50 from start to end", run_us, "us");
    bench_figure(f->bench, "one run of 10 steps: p99", runs[rounds * 99 / 100] * 1e6, "us");
    bench_figure(f->bench, "a commit of one row by SQLite alone: p50", row_us, "us");
    goal(f, "one run of 10 steps, in commits of one row (aim: 15)", run_us / row_us, "x", false,
         20);
    sqlite3_finalize(raw.insert);
    sqlite3_close(raw.db);
    rv_engine_free(engine);
    drop_store(f, "latency");
    drop_store(f, "raw");
}
