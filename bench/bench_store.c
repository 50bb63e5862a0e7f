/* bench_store.c: the SQLite store beside SQLite itself.
 *
 * Throughput: commits of 200 journal rows of 200 bytes, one for each of 200 runs, of which each
 * has ten, against bare prepared inserts of the same rows in the same batches, with the same table,
 * index and pragmas, on the same disk, in turns. Then what a whole life of a run costs, and what does not grow with
 * the number of runs: opening, listing, counting, waking. */
#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "store/store.h"

enum { BATCH = 200, BATCHES = 100, RUN_ROWS = 10, ROUNDS = 15, ROW_BYTES = 200, MANY = 1000000 };

static char folder[] = "/tmp/rival-bench-XXXXXX";

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_store: %s\n", what);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

/* Of this process, in seconds: what the disk's moods do not change. */
static double cpu(void)
{
    struct rusage usage;
    must(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static const char *file(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void drop(const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    char path[160];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, ends[i]);
        (void)unlink(path); /* some of them are not there */
    }
}

static struct rv__store *open_store(const char *name)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    (void)rv__store_open(&(struct rv__store_opts){ .path = file(name) }, &store, &err);
    must(store != NULL, err.message);
    return store;
}

/* ---------------------------------------------------------------------------- throughput --- */

struct raw {
    sqlite3 *db;
    sqlite3_stmt *begin, *insert, *commit;
    int64_t seq;
};

static void raw_open(struct raw *raw)
{
    must(sqlite3_open(file("raw.db"), &raw->db) == SQLITE_OK, "raw open");
    must(sqlite3_exec(raw->db,
                      "PRAGMA cache_size = -16384; PRAGMA journal_mode = WAL;"
                      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
                      "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
                      " facts TEXT NOT NULL); CREATE INDEX journal_run ON journal(run);",
                      NULL, NULL, NULL) == SQLITE_OK,
         "raw schema");
    must(sqlite3_prepare_v2(raw->db, "BEGIN IMMEDIATE", -1, &raw->begin, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(raw->db, "INSERT INTO journal VALUES(?1, ?2, ?3)", -1, &raw->insert,
                                NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(raw->db, "COMMIT", -1, &raw->commit, NULL) == SQLITE_OK,
         "raw prepare");
}

static void raw_close(struct raw *raw)
{
    sqlite3_finalize(raw->begin);
    sqlite3_finalize(raw->insert);
    sqlite3_finalize(raw->commit);
    sqlite3_close(raw->db);
    drop("raw.db");
}

static void raw_commit(struct raw *raw, int64_t first, int rows, struct rv__str facts)
{
    must(sqlite3_step(raw->begin) == SQLITE_DONE && sqlite3_reset(raw->begin) == SQLITE_OK,
         "begin");
    for (int i = 0; i < rows; i++) {
        sqlite3_bind_int64(raw->insert, 1, ++raw->seq);
        sqlite3_bind_int64(raw->insert, 2, first + i);
        sqlite3_bind_text64(raw->insert, 3, facts.at, facts.len, SQLITE_STATIC, SQLITE_UTF8);
        must(sqlite3_step(raw->insert) == SQLITE_DONE && sqlite3_reset(raw->insert) == SQLITE_OK,
             "insert");
    }
    must(sqlite3_step(raw->commit) == SQLITE_DONE && sqlite3_reset(raw->commit) == SQLITE_OK,
         "commit");
}

/* Runs end and others begin, after RUN_ROWS rows each; their rows are written outside of the time. */
static void new_runs(struct rv__store *store, int batch, int64_t *first, char ids[BATCH][32],
                     struct rv__store_write *writes, struct rv__str facts)
{
    static struct rv__store_run rows[BATCH];
    *first += batch;
    for (int i = 0; i < batch; i++) {
        snprintf(ids[i], sizeof ids[i], "01hzzzzzzzzzzzzz%010u", (unsigned)(*first + i));
        rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]), .created_ms = 1 };
        writes[i] = (struct rv__store_write){ .run = rv__str(ids[i]), .row = &rows[i] };
    }
    must(rv__store_commit(store, writes, (size_t)batch, NULL) == RV_OK, "rows");
    for (int i = 0; i < batch; i++)
        writes[i] = (struct rv__store_write){ .run = rv__str(ids[i]), .facts = facts };
}

static void throughput(struct bench *b, int batch, int batches, double goal)
{
    static char ids[BATCH][32], text[ROW_BYTES + 1], name[80];
    static struct rv__store_write writes[BATCH];
    double ours[ROUNDS], theirs[ROUNDS], ratio[ROUNDS], our_us[ROUNDS], their_us[ROUNDS];
    struct rv__store *store = open_store("a.db");
    struct raw raw = { 0 };
    int64_t first = 1;
    raw_open(&raw);
    memset(text, 'x', ROW_BYTES);
    for (int r = -1; r < ROUNDS; r++) { /* the first round warms up */
        double mine = 0, bare = 0, my_cpu = 0, bare_cpu = 0;
        for (int i = 0; i < batches; i++) {
            /* In turns: what the disk does to one, it does to both. */
            if (i % RUN_ROWS == 0)
                new_runs(store, batch, &first, ids, writes, (struct rv__str){ text, ROW_BYTES });
            double start = seconds(), start_cpu = cpu();
            must(rv__store_commit(store, writes, (size_t)batch, NULL) == RV_OK, "commit");
            double middle = seconds(), middle_cpu = cpu();
            raw_commit(&raw, first, batch, (struct rv__str){ text, ROW_BYTES });
            mine += middle - start;
            bare += seconds() - middle;
            my_cpu += middle_cpu - start_cpu;
            bare_cpu += cpu() - middle_cpu;
        }
        if (r < 0)
            continue;
        ours[r] = batch * batches / mine;
        theirs[r] = batch * batches / bare;
        ratio[r] = 100 * ours[r] / theirs[r];
        our_us[r] = my_cpu / (batch * batches) * 1e6;
        their_us[r] = bare_cpu / (batch * batches) * 1e6;
    }
    snprintf(name, sizeof name, "commits of %d rows of %d bytes", batch, ROW_BYTES);
    bench_figure(b, name, bench_median(ours, ROUNDS), "rows/s");
    bench_figure(b, "  the same by bare inserts", bench_median(theirs, ROUNDS), "rows/s");
    bench_goal(b, "  of the bare rate", bench_median(ratio, ROUNDS), "%", true, goal);
    bench_figure(b, "  CPU of a row", bench_median(our_us, ROUNDS), "us");
    bench_figure(b, "  CPU of a bare row", bench_median(their_us, ROUNDS), "us");
    raw_close(&raw);
    rv__store_close(store);
    drop("a.db");
}

/* ------------------------------------------------------------------------------ many runs --- */

/* Runs `from` to `to`: born and, `finished`, ended; else asleep for an hour. */
static void add_runs(struct rv__store *store, int from, int to, bool finished)
{
    static struct rv__store_run rows[BATCH];
    static struct rv__store_write writes[BATCH];
    static char ids[BATCH][32];
    char version[65];
    memset(version, 'a', 64);
    version[64] = '\0';
    for (; from < to; from += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            int n = from + i;
            snprintf(ids[i], sizeof ids[i], "01hzzzzzzzzzzzzzzz%08d", n);
            rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]),
                                              .workflow = rv__str(n % 10 ? "orders" : "billing"),
                                              .version = rv__str(version),
                                              .status = rv__str(!finished       ? "running"
                                                                : n % 1000 == 0 ? "failed"
                                                                                : "completed"),
                                              .input = rv__str("{\"order\":12345,\"item\":\"x\"}"),
                                              .input_key = rv__str(version),
                                              .created_ms = 1700000000000 + n / 100,
                                              .started_ms = 1700000000000 + n / 100,
                                              .completed_ms = finished ? 1700000000000 + n / 10 : 0,
                                              .wake_at_ms = finished ? 0
                                                                     : 1700003600000 + n / 100 };
            writes[i] = (struct rv__store_write){ .run = rows[i].id,
                                                  .row = &rows[i],
                                                  .facts = rv__str("[{\"run.started\":1}]") };
        }
        must(rv__store_commit(store, writes, BATCH, NULL) == RV_OK, "runs");
    }
}

static int see_run(void *arg, const struct rv__store_run *row)
{
    (void)row;
    ++*(int *)arg;
    return RV_OK;
}

static int see_count(void *arg, struct rv__str status, uint64_t runs)
{
    (void)status;
    *(uint64_t *)arg += runs;
    return RV_OK;
}

/* The quickest: how long it takes, not how long others kept the disk busy. */
static double best(double *values, size_t count)
{
    (void)bench_median(values, count); /* sorts them */
    return values[0];
}

static double opening(const char *name)
{
    double ms[21];
    for (int i = 0; i < 21; i++) {
        double start = seconds();
        struct rv__store *store = open_store(name);
        ms[i] = (seconds() - start) * 1e3;
        rv__store_close(store);
    }
    return best(ms, 21);
}

/* A page of the list from the middle of it, in µs. */
static double page_us(struct rv__store *store, struct rv__store_query query)
{
    double us[101];
    int rows = 0;
    query.limit = 100;
    for (int i = 0; i < 101; i++) {
        double start = seconds();
        must(rv__store_list(store, &query, see_run, &rows, NULL, NULL) == RV_OK, "list");
        us[i] = (seconds() - start) * 1e6;
    }
    must(rows > 0, "an empty list");
    return bench_median(us, 101);
}

static double first_opening(void)
{
    double ms[11];
    for (int i = 0; i < 11; i++) {
        double start = seconds();
        struct rv__store *store = open_store("new.db");
        ms[i] = (seconds() - start) * 1e3;
        rv__store_close(store);
        drop("new.db");
    }
    return best(ms, 11);
}

static void many_runs(struct bench *b)
{
    struct stat st;
    struct rv__store_query middle = { .cursor = rv__str("1700000000500:x") };
    struct rv__store *store = open_store("few.db");
    add_runs(store, 0, MANY / 100, true);
    middle.cursor = rv__str("1700000000050:x");
    double few_us = page_us(store, middle);
    rv__store_close(store);

    store = open_store("many.db");
    double start = seconds();
    add_runs(store, 0, MANY, true);
    bench_figure(b, "finished runs written, 200 in a commit", MANY / (seconds() - start), "runs/s");
    middle.cursor = rv__str("1700000005000:x");
    double many_us = page_us(store, middle);
    bench_figure(b, "a page of 100 from the middle of 10,000 runs", few_us, "us");
    bench_figure(b, "a page of 100 from the middle of 1,000,000 runs", many_us, "us");
    bench_goal(b, "  growth over 100 x the runs", many_us / few_us, "x", false, 2);
    middle.status = rv__str("failed");
    bench_figure(b, "  of those that failed, one in 1,000", page_us(store, middle), "us");
    middle.workflow = rv__str("billing");
    bench_figure(b, "  of those that failed and of one workflow", page_us(store, middle), "us");

    uint64_t runs = 0;
    start = seconds();
    must(rv__store_counts(store, see_count, &runs, NULL) == RV_OK && runs == MANY, "counts");
    bench_figure(b, "counts by status of 1,000,000 runs", (seconds() - start) * 1e6, "us");
    rv__store_close(store);
    must(stat(file("many.db"), &st) == 0, "stat");
    bench_figure(b, "disk bytes of a finished run and its journal row", (double)st.st_size / MANY,
                 "bytes");
    bench_goal(b, "opening a new store", first_opening(), "ms", false, 20);
    bench_goal(b, "opening a store of 1,000,000 finished runs", opening("many.db"), "ms", false,
               200);
    drop("few.db");
    drop("many.db");
}

static void sleepers(struct bench *b)
{
    enum { SLEEPERS = 200000, DUE = 10000 };
    struct rv__store *store = open_store("asleep.db");
    int seen = 0;
    add_runs(store, 0, SLEEPERS, false);
    double start = seconds();
    must(rv__store_due(store, 1700003600000 + SLEEPERS / 200, NULL, DUE, see_run, &seen, NULL) ==
                 RV_OK &&
             seen == DUE,
         "due");
    bench_figure(b, "10,000 due of 200,000 sleeping runs are read in", (seconds() - start) * 1e3,
                 "ms");
    rv__store_close(store);
    drop("asleep.db");
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, "store: SQLite", argc, argv);
    must(mkdtemp(folder) != NULL, "mkdtemp");
    throughput(&b, BATCH, BATCHES, 80);
    throughput(&b, 1, 200, 80);
    many_runs(&b);
    sleepers(&b);
    (void)rmdir(folder);
    return bench_done(&b);
}
