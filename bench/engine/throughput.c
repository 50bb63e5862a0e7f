/* throughput.c: durable steps a second, against the raw rate of the store beneath them.
 *
 * The raw rate: as many journal rows of the same size, in the same batch sizes, inserted through
 * SQLite's own API into a table of the same shape, on the same disk, in the same run. */
#include <pthread.h>
#include <sqlite3.h>

#include "engine/engine.h"
#include "figures.h"

enum { CLIENTS = 200 };

struct client {
    pthread_t thread;
    rv_engine *engine;
    atomic_int *left;
};

static void *client_main(void *arg)
{
    struct client *client = arg;
    while (atomic_fetch_sub(client->left, 1) > 0)
        (void)run_once(client->engine, "ten", NULL);
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

void throughput(struct figures *f)
{
    static struct client clients[CLIENTS];
    const int runs = f->quick ? 400 : 20000;
    atomic_int left = runs;
    rv_engine *engine = open_engine(f, "throughput");
    add_workflow(engine, ten_steps());
    double cpu = cpu_seconds(), start = seconds();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .engine = engine, .left = &left };
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
            abort();
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    double took = seconds() - start, used = cpu_seconds() - cpu;
    int64_t commits = engine->commits;
    rv_engine_free(engine);

    double rows = 0, bytes = 0;
    journal_size(store_path(f, "throughput"), &rows, &bytes);
    double batch = rows / (double)commits;
    double raw = raw_rate(store_path(f, "raw"), (int)rows, (int)(batch + 0.5), (int)bytes);
    bench_figure(f->bench, "200 in flight: durable steps", runs * TEN / took, "/s");
    bench_figure(f->bench, "200 in flight: journal rows a commit", batch, "");
    bench_figure(f->bench, "200 in flight: bytes a row", bytes, "");
    bench_figure(f->bench, "200 in flight: CPU a step", used / (runs * TEN) * 1e6, "us");
    bench_figure(f->bench, "200 in flight: raw rows", raw, "/s");
    goal(f, "200 in flight: steps / raw rows", runs * TEN / took / raw * 100, "%", true, 20);
    drop_store(f, "throughput");
    drop_store(f, "raw");
}
