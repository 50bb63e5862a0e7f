/* bench_keep.c: runs as files and back, stores as files: beside SQLite itself, and how it grows.
 *
 * A run of sequential iterations (a turn each, or two) is made by an engine for tests, in memory, and exported.
 * Then, round by round on the same disk: its import beside bare inserts of the same rows in one transaction,
 * its export beside bare selects into a file, a backup beside SQLite's own. Time and the highest memory of each
 * at n and at 10 n items. `--quick` takes small sizes (as the tests do). */
#include <fcntl.h>
#include <malloc.h>
#include <sqlite3.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/rival.h>

#include "base/clock.h"
#include "bench.h"

enum { ITEMS = 5000, QUICK_ITEMS = 2000, TIMES = 10, ROUNDS = 3, ITEM_BYTES = 2000 };

static char folder[] = "/tmp/rival-bench-XXXXXX";
static int item_count; /* of the run that is made */

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_keep: %s\n", what);
        abort();
    }
}

static double seconds(void)
{
    return (double)rv__mono_ns(rv__clock_real()) / 1e9;
}

static double cpu(void)
{
    struct rusage usage;
    must(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The highest since forget_peak(), in MB. */
static double peak_mb(void)
{
    char line[256];
    double kb = 0;
    FILE *status = fopen("/proc/self/status", "re");
    must(status != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtod(line + 6, NULL);
    (void)fclose(status);
    return kb / 1024;
}

static void forget_peak(void)
{
    (void)malloc_trim(0);
    int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    must(file >= 0 && write(file, "5", 1) == 1, "/proc/self/clear_refs");
    (void)close(file);
}

static void path_of(const char *name, char ret[128])
{
    snprintf(ret, 128, "%s/%s", folder, name);
}

static void drop(const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock", ".sock" };
    char path[160];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, ends[i]);
        (void)unlink(path); /* some of them are not there */
    }
}

static double size_mb(const char *name)
{
    char path[128];
    struct stat what;
    path_of(name, path);
    must(stat(path, &what) == 0, "stat");
    return (double)what.st_size / (1 << 20);
}

/* -------------------------------------------------------------------------------- the run --- */

static int items(rv_ctx *c)
{
    char *json = malloc((size_t)item_count * 8 + 3), *at = json;
    must(json != NULL, "memory");
    *at++ = '[';
    for (int i = 0; i < item_count; i++)
        at += snprintf(at, 9, "%s%d", i ? "," : "", i);
    memcpy(at, "]", 2);
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static int one(rv_ctx *c)
{
    static char text[ITEM_BYTES + 1];
    memset(text, 'x', ITEM_BYTES);
    return rv_return(c, "s", text);
}

/* A finished run of `count` items, in the file `name`; in a process of its own, with its memory. */
static void make_run(int count, const char *name)
{
    rv_engine *engine = NULL;
    rv_run_state *state = NULL;
    rv_error err = { 0, "" };
    char path[128];
    int status = 0;
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child > 0) {
        must(waitpid(child, &status, 0) == child && status == 0, "no run");
        return;
    }
    item_count = count;
    must(rv_test_engine_new(NULL, &engine, &err) == RV_OK, err.message);
    rv_workflow *w = rv_workflow_new("each");
    rv_add_step(rv_add_foreach(rv_workflow_body(w), "each", items, NULL), "one", one, NULL);
    must(rv_register(engine, w, &err) == RV_OK, err.message);
    rv_workflow_free(w);
    must(rv_run(engine, "each", NULL, RV_RUN_OPTS(.run_id = "r"), NULL, &err) == RV_OK,
         err.message);
    must(rv_test_advance(engine, 0, &err) == RV_OK, err.message);
    must(rv_state(engine, "r", &state, &err) == RV_OK && state->status == RV_COMPLETED,
         "the run does not end");
    rv_run_state_free(state);
    path_of(name, path);
    must(rv_export(engine, "r", RV_EXPORT_OPTS(.path = path), &err) == RV_OK, err.message);
    _exit(0);
}

/* ----------------------------------------------------------------------------------- bare --- */

static sqlite3 *raw_open(const char *name)
{
    char path[128];
    sqlite3 *db = NULL;
    path_of(name, path);
    must(sqlite3_open(path, &db) == SQLITE_OK, "raw open");
    must(sqlite3_exec(db, "PRAGMA cache_size = -16384", NULL, NULL, NULL) == SQLITE_OK, "pragma");
    return db;
}

static sqlite3_stmt *raw_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;
    must(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, sql);
    return st;
}

static void raw_run(sqlite3 *db, const char *sql)
{
    must(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sql);
}

/* Each row of `from` through `into`. */
static void raw_copy(sqlite3_stmt *from, sqlite3_stmt *into)
{
    while (sqlite3_step(from) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(from); i++)
            must(sqlite3_bind_value(into, i + 1, sqlite3_column_value(from, i)) == SQLITE_OK,
                 "bind");
        must(sqlite3_step(into) == SQLITE_DONE && sqlite3_reset(into) == SQLITE_OK, "insert");
    }
    must(sqlite3_finalize(from) == SQLITE_OK && sqlite3_finalize(into) == SQLITE_OK, "copy");
}

/* What an import writes, from a store that has it. */
static void raw_import(void)
{
    sqlite3 *from = raw_open("a.db"), *db = raw_open("raw.db");
    raw_run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
                " facts TEXT NOT NULL); CREATE INDEX journal_run ON journal(run);"
                "CREATE TABLE results(run INTEGER NOT NULL, key TEXT NOT NULL,"
                " idx INTEGER NOT NULL, json TEXT, PRIMARY KEY(run, key, idx)) WITHOUT ROWID;"
                "BEGIN IMMEDIATE");
    raw_copy(raw_prepare(from, "SELECT seq, run, facts FROM journal ORDER BY seq"),
             raw_prepare(db, "INSERT INTO journal VALUES(?1, ?2, ?3)"));
    raw_copy(raw_prepare(from, "SELECT run, key, first, json FROM results"),
             raw_prepare(db, "INSERT INTO results VALUES(?1, ?2, ?3, ?4)"));
    raw_run(db, "COMMIT");
    must(sqlite3_close(db) == SQLITE_OK && sqlite3_close(from) == SQLITE_OK, "close");
    drop("raw.db");
}

static void raw_export(void)
{
    char path[128];
    sqlite3 *db = raw_open("a.db");
    sqlite3_stmt *st = raw_prepare(db, "SELECT facts FROM journal WHERE run = 1 ORDER BY seq");
    path_of("raw.jsonl", path);
    FILE *file = fopen(path, "we");
    must(file != NULL, path);
    while (sqlite3_step(st) == SQLITE_ROW) {
        size_t len = (size_t)sqlite3_column_bytes(st, 0);
        must(fwrite(sqlite3_column_text(st, 0), 1, len, file) == len && fputc('\n', file) >= 0,
             path);
    }
    must(fflush(file) == 0 && fsync(fileno(file)) == 0 && fclose(file) == 0, path);
    must(sqlite3_finalize(st) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK, "close");
    drop("raw.jsonl");
}

static void raw_backup(void)
{
    sqlite3 *from = raw_open("a.db"), *to = raw_open("raw.db");
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    must(backup != NULL && sqlite3_backup_step(backup, -1) == SQLITE_DONE &&
             sqlite3_backup_finish(backup) == SQLITE_OK,
         "backup");
    must(sqlite3_close(to) == SQLITE_OK && sqlite3_close(from) == SQLITE_OK, "close");
    drop("raw.db");
}

/* ----------------------------------------------------------------------------------- ours --- */

static const char *file_name; /* of the exported run */

static rv_engine *open_engine(void)
{
    char path[128];
    rv_engine *engine = NULL;
    rv_error err = { 0, "" };
    path_of("a.db", path);
    must(rv_engine_new(RV_ENGINE_OPTS(.store = path, .idle = true), &engine, &err) == RV_OK,
         err.message);
    return engine;
}

/* A new store, with the run in it. */
static void our_import(void)
{
    char path[128];
    rv_error err = { 0, "" };
    drop("a.db");
    rv_engine *engine = open_engine();
    path_of(file_name, path);
    must(rv_import(engine, RV_IMPORT_OPTS(.path = path), NULL, &err) == RV_OK, err.message);
    rv_engine_free(engine);
}

static void our_export(void)
{
    char path[128];
    rv_error err = { 0, "" };
    rv_engine *engine = open_engine();
    path_of("out.jsonl", path);
    must(rv_export(engine, "r", RV_EXPORT_OPTS(.path = path), &err) == RV_OK, err.message);
    rv_engine_free(engine);
    drop("out.jsonl");
}

static void our_backup(void)
{
    char path[128];
    rv_error err = { 0, "" };
    rv_engine *engine = open_engine();
    path_of("copy.db", path);
    must(rv_backup(engine, RV_BACKUP_OPTS(.path = path), &err) == RV_OK, err.message);
    rv_engine_free(engine);
    drop("copy.db");
}

/* -------------------------------------------------------------------------------- figures --- */

static const struct contest {
    const char *name;
    void (*ours)(void), (*bare)(void);
    double least; /* of the bare rate, in % */
} contests[] = {
    { "import", our_import, raw_import, 40 },
    { "export", our_export, raw_export, 20 },
    { "backup", our_backup, raw_backup, 40 },
};
enum { CONTESTS = sizeof contests / sizeof *contests };

struct cost {
    double cpu, peak; /* the least of the rounds; the most */
};

static void show(struct bench *b, const struct contest *contest, int rounds, double *ours,
                 double *bare)
{
    char name[80];
    double ratio[ROUNDS];
    for (int r = 0; r < rounds; r++)
        ratio[r] = 100 * bare[r] / ours[r];
    snprintf(name, sizeof name, "%s, %.0f MB", contest->name,
             contest->ours == our_backup ? size_mb("a.db") : size_mb(file_name));
    bench_figure(b, name, bench_median(ours, (size_t)rounds), "s");
    bench_figure(b, "  by bare SQLite", bench_median(bare, (size_t)rounds), "s");
    if (rounds > 1)
        bench_goal(b, "  of the bare rate", bench_median(ratio, (size_t)rounds), "%", true,
                   contest->least);
}

/* In turns, so many rounds; what ours cost. `b` NULL: nothing is shown. */
static void measure(struct bench *b, int rounds, struct cost ret[CONTESTS])
{
    for (int i = 0; i < CONTESTS; i++) { /* the import first: the others are of its store */
        double ours[ROUNDS], bare[ROUNDS];
        ret[i] = (struct cost){ 1e9, 0 };
        for (int r = rounds > 1 ? -1 : 0; r < rounds; r++) { /* the first round warms up */
            forget_peak();
            double start = seconds(), start_cpu = cpu();
            contests[i].ours();
            double middle = seconds(), used = cpu() - start_cpu, peak = peak_mb();
            contests[i].bare();
            ret[i].cpu = used < ret[i].cpu ? used : ret[i].cpu;
            ret[i].peak = peak > ret[i].peak ? peak : ret[i].peak;
            ours[r < 0 ? 0 : r] = middle - start;
            bare[r < 0 ? 0 : r] = seconds() - middle;
        }
        if (b != NULL)
            show(b, &contests[i], rounds, ours, bare);
    }
}

/* How many turns the file has. */
static double turns(void)
{
    char path[128], *line = NULL;
    size_t room = 0, count = 0;
    path_of(file_name, path);
    FILE *file = fopen(path, "re");
    must(file != NULL, path);
    while (getline(&line, &room, file) > 0)
        count += strncmp(line, "{\"turn\":", 8) == 0;
    free(line);
    (void)fclose(file);
    return (double)count;
}

int main(int argc, char **argv)
{
    struct bench b;
    struct cost few[CONTESTS], many[CONTESTS];
    char name[80];
    int n = ITEMS, rounds = ROUNDS;
    bench_init(&b, "runs and stores as files", argc, argv);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--quick") == 0) {
            n = QUICK_ITEMS;
            rounds = 1;
        }
    must(mkdtemp(folder) != NULL, "mkdtemp");
    make_run(n, "few.jsonl");
    make_run(n * TIMES, "many.jsonl");
    double more = size_mb("many.jsonl") - size_mb("few.jsonl");
    file_name = "few.jsonl";
    measure(NULL, rounds, few);
    file_name = "many.jsonl";
    bench_figure(&b, "turns of the run", turns(), "");
    measure(&b, rounds, many);
    bench_figure(&b, "import: CPU of a turn", many[0].cpu / turns() * 1e6, "us");
    for (int i = 0; i < CONTESTS; i++) {
        snprintf(name, sizeof name, "%s: CPU of %d x the items", contests[i].name, TIMES);
        bench_goal(&b, name, many[i].cpu / few[i].cpu, "x", false, 2 * TIMES);
        snprintf(name, sizeof name, "%s: memory more, of %.0f MB more", contests[i].name, more);
        bench_goal(&b, name, many[i].peak - few[i].peak, "MB", false, more / 2);
    }
    drop("few.jsonl");
    drop("many.jsonl");
    drop("a.db");
    (void)rmdir(folder);
    return bench_done(&b);
}
