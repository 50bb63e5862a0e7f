/* bench_store.c: the SQLite store beside SQLite itself.
 *
 * Throughput, as the engine writes: 200 runs take turns, 150 of them in a commit, with journal rows of 150
 * to 299 bytes, against bare prepared inserts of the same rows in the same batches, into the same table,
 * with the same pragmas, on the same disk, in turns. Three shapes: rows alone; whole runs of ten rows, with
 * their start and end; parallel iterations, of which each write brings some results. Then what does not
 * grow with the number of runs: opening, listing, counting, waking.
 *
 * RIVAL_BENCH_DIR says where, /tmp if it is not set: a disk, or memory (/dev/shm). */
#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "store/store.h"

enum {
    LIVE = 200,   /* runs that take turns */
    TURN = 150,   /* of them in a commit */
    LIFE = 10,    /* rows of a run */
    COMMITS = 20, /* in a round */
    ROUNDS = 15,
    RESULTS = 8, /* that a write of the third shape brings */
    BATCH = 200,
    MANY = 1000000,
};

static char folder[200];

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
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void drop(const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    char path[288];
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
    sqlite3_stmt *begin, *insert, *result, *commit;
    int64_t seq;
};

static void raw_open(struct raw *raw)
{
    must(sqlite3_open(file("raw.db"), &raw->db) == SQLITE_OK, "raw open");
    must(sqlite3_exec(raw->db,
                      "PRAGMA cache_size = -16384; PRAGMA journal_mode = WAL;"
                      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
                      "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
                      " prev INTEGER NOT NULL, facts TEXT NOT NULL);"
                      "CREATE TABLE results(run INTEGER, key TEXT, idx INTEGER, json TEXT,"
                      " PRIMARY KEY(run, key, idx)) WITHOUT ROWID;",
                      NULL, NULL, NULL) == SQLITE_OK,
         "raw schema");
    must(sqlite3_prepare_v2(raw->db, "BEGIN IMMEDIATE", -1, &raw->begin, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(raw->db, "INSERT INTO journal VALUES(?1, ?2, ?3, ?4)", -1,
                                &raw->insert, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(raw->db, "INSERT INTO results VALUES(?1, 'k', ?2, ?3)", -1,
                                &raw->result, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(raw->db, "COMMIT", -1, &raw->commit, NULL) == SQLITE_OK,
         "raw prepare");
}

static void raw_close(struct raw *raw)
{
    sqlite3_finalize(raw->begin);
    sqlite3_finalize(raw->insert);
    sqlite3_finalize(raw->result);
    sqlite3_finalize(raw->commit);
    sqlite3_close(raw->db);
    drop("raw.db");
}

static void raw_step(sqlite3_stmt *st)
{
    must(sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK, "raw step");
}

/* A run that takes turns. */
struct turner {
    char id[32];
    uint64_t number;
    int rows;
};

struct shape {
    const char *name;
    bool whole;  /* with the start and the end of each run */
    int results; /* that each write brings */
    double goal; /* % of the bare rate */
};

struct race {
    struct shape shape;
    struct rv__store *store;
    struct raw raw;
    struct turner live[LIVE];
    unsigned born;
    int at;
    struct rv__store_write writes[TURN];
    struct rv__store_run rows[TURN];
    struct rv__store_result results[TURN][RESULTS];
    struct turner *whose[TURN];
};

static char row_text[512];
static const char version[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char one_result[] = "{\"status\":200,\"body\":{\"id\":12345,\"name\":\"item\"}}";

static void be_born(struct race *race, struct turner *t)
{
    *t = (struct turner){ .rows = 0 };
    snprintf(t->id, sizeof t->id, "01hzzzzzzzzzzzzz%010u", ++race->born);
}

static struct rv__store_run row_of(const struct race *race, const struct turner *t)
{
    return (struct rv__store_run){ .id = rv__str(t->id),
                                   .workflow = rv__str("orders"),
                                   .version = rv__str(version),
                                   .status = rv__str("running"),
                                   .input = rv__str("{\"order\":12345,\"item\":\"x\"}"),
                                   .input_key = rv__str(version),
                                   .created_ms = 1700000000000 + race->born / 10,
                                   .started_ms = 1700000000000 + race->born / 10,
                                   .active = true };
}

/* The rows of the runs that begin with this commit, where they are not to be measured. */
static void start_apart(struct race *race)
{
    size_t count = 0;
    static struct rv__store_write starts[TURN];
    for (int i = 0; i < TURN; i++)
        if (race->writes[i].row != NULL)
            starts[count++] = (struct rv__store_write){ .run = race->writes[i].run,
                                                        .row = race->writes[i].row };
    must(rv__store_commit(race->store, starts, count, NULL) == RV_OK, "starts");
    count = 0;
    for (int i = 0; i < TURN; i++)
        if (race->writes[i].row != NULL) {
            race->writes[i].number = starts[count++].number;
            race->writes[i].row = NULL;
        }
}

/* What the next 150 runs write. */
static void take_turns(struct race *race)
{
    static const struct rv__store_touch over = { .status = RV__STR("completed"),
                                                 .completed_ms = 1700000000000 };
    for (int i = 0; i < TURN; i++) {
        struct turner *t = race->whose[i] = &race->live[race->at++ % LIVE];
        race->writes[i] = (struct rv__store_write){
            .run = rv__str(t->id),
            .number = t->number,
            .facts = { row_text, 150 + (size_t)(i * 37 + race->at) % 150 },
            .results = race->results[i],
            .result_count = (size_t)race->shape.results,
            .touch = race->shape.whole && t->rows == LIFE - 1 ? &over : NULL,
        };
        for (int k = 0; k < race->shape.results; k++)
            race->results[i][k] = (struct rv__store_result){ RV__STR("k"),
                                                             t->rows * race->shape.results + k,
                                                             rv__str(one_result) };
        if (t->rows == 0) {
            race->rows[i] = row_of(race, t);
            race->writes[i].row = &race->rows[i];
        }
    }
    if (!race->shape.whole)
        start_apart(race);
}

static void turns_are_over(struct race *race)
{
    for (int i = 0; i < TURN; i++) {
        must(race->writes[i].outcome == STORE_WRITTEN, race->writes[i].why.message);
        race->whose[i]->number = race->writes[i].number;
        if (++race->whose[i]->rows == LIFE)
            be_born(race, race->whose[i]);
    }
}

/* The same, without a store. */
static void raw_turns(struct race *race)
{
    struct raw *raw = &race->raw;
    raw_step(raw->begin);
    for (int i = 0; i < TURN; i++) {
        const struct rv__store_write *w = &race->writes[i];
        sqlite3_bind_int64(raw->insert, 1, ++raw->seq);
        sqlite3_bind_int64(raw->insert, 2, (int64_t)w->number);
        sqlite3_bind_int64(raw->insert, 3, raw->seq > LIVE ? raw->seq - LIVE : 0);
        sqlite3_bind_text64(raw->insert, 4, w->facts.at, w->facts.len, SQLITE_STATIC, SQLITE_UTF8);
        raw_step(raw->insert);
        for (size_t k = 0; k < w->result_count; k++) {
            sqlite3_bind_int64(raw->result, 1, (int64_t)w->number);
            sqlite3_bind_int64(raw->result, 2, w->results[k].index);
            sqlite3_bind_text64(raw->result, 3, w->results[k].json.at, w->results[k].json.len,
                                SQLITE_STATIC, SQLITE_UTF8);
            raw_step(raw->result);
        }
    }
    raw_step(raw->commit);
}

static void throughput(struct bench *b, struct shape shape)
{
    static struct race race;
    double ours[ROUNDS], theirs[ROUNDS], ratio[ROUNDS], our_us[ROUNDS], their_us[ROUNDS];
    const double items = (double)COMMITS * TURN * (shape.results > 0 ? shape.results : 1);
    race = (struct race){ .shape = shape, .store = open_store("a.db") };
    raw_open(&race.raw);
    for (int i = 0; i < LIVE; i++)
        be_born(&race, &race.live[i]);
    for (int r = -1; r < ROUNDS; r++) { /* the first round warms up */
        double mine = 0, bare = 0, my_cpu = 0, bare_cpu = 0;
        for (int i = 0; i < COMMITS; i++) {
            /* In turns: what the disk does to one, it does to both. */
            take_turns(&race);
            double start = seconds(), start_cpu = cpu();
            must(rv__store_commit(race.store, race.writes, TURN, NULL) == RV_OK, "commit");
            double middle = seconds(), middle_cpu = cpu();
            raw_turns(&race);
            mine += middle - start;
            bare += seconds() - middle;
            my_cpu += middle_cpu - start_cpu;
            bare_cpu += cpu() - middle_cpu;
            turns_are_over(&race);
        }
        if (r < 0)
            continue;
        ours[r] = items / mine;
        theirs[r] = items / bare;
        ratio[r] = 100 * ours[r] / theirs[r];
        our_us[r] = my_cpu / items * 1e6;
        their_us[r] = bare_cpu / items * 1e6;
    }
    bench_figure(b, shape.name, bench_median(ours, ROUNDS), "/s");
    bench_figure(b, "  the same by bare inserts", bench_median(theirs, ROUNDS), "/s");
    bench_goal(b, "  of the bare rate", bench_median(ratio, ROUNDS), "%", true, shape.goal);
    bench_figure(b, "  CPU of one", bench_median(our_us, ROUNDS), "us");
    bench_figure(b, "  CPU of a bare one", bench_median(their_us, ROUNDS), "us");
    raw_close(&race.raw);
    rv__store_close(race.store);
    drop("a.db");
}

/* ------------------------------------------------------------------------------ many runs --- */

/* Runs `from` to `to`: born and, `finished`, ended; else asleep for an hour. */
static void add_runs(struct rv__store *store, int from, int to, bool finished)
{
    static struct rv__store_run rows[BATCH];
    static struct rv__store_write writes[BATCH];
    static char ids[BATCH][32];
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
    const char *where = getenv("RIVAL_BENCH_DIR");
    snprintf(folder, sizeof folder, "%.150s/rival-bench-XXXXXX", where != NULL ? where : "/tmp");
    must(mkdtemp(folder) != NULL, "mkdtemp");
    memset(row_text, 'x', sizeof row_text);
    throughput(&b, (struct shape){ "journal rows, 150 of 200 runs in a commit", false, 0, 80 });
    throughput(&b, (struct shape){ "journal rows of whole 10-step runs", true, 0, 35 });
    throughput(
        &b, (struct shape){ "results of parallel iterations, 8 in a write", true, RESULTS, 100 });
    many_runs(&b);
    sleepers(&b);
    (void)rmdir(folder);
    return bench_done(&b);
}
