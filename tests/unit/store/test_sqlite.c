/* test_sqlite.c: the suite of every store on SQLite, in a file and in memory, and what is special
 * about it: one writer, readers in other threads, schemas, damaged files. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/store/faulty_vfs.h"
#include "unit/store/store_suite.h"

/* ------------------------------------------------------------------------------- folders --- */

struct folder {
    char path[64];
    char store[96]; /* a file in it */
};

static void folder_make(struct folder *folder)
{
    snprintf(folder->path, sizeof folder->path, "/tmp/rival-store-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->store, sizeof folder->store, "%s/a.db", folder->path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void folder_remove(struct folder *folder)
{
    (void)chmod(folder->path, 0755);
    (void)nftw(folder->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ----------------------------------------------------------------------------- the suite --- */

struct sqlite_maker {
    struct store_maker maker; /* first */
    struct folder folder;
};

static struct rv__store *open_at(const char *path)
{
    struct rv__store *store = NULL;
    struct rv__store_opts opts = { .path = path, .max_row_bytes = STORE_SUITE_MAX };
    rv_error err = { 0, "" };
    int rc = rv__store_open(&opts, &store, &err);
    if (rc < 0)
        fail_msg("%s", err.message);
    return store;
}

static struct rv__store *file_open(struct store_maker *maker)
{
    struct sqlite_maker *m = (struct sqlite_maker *)maker;
    folder_make(&m->folder);
    return open_at(m->folder.store);
}

/* The suite wants an end without a word; the lock is held until the old handle is gone, so here it
 * is closed. Ends without a word are test_sqlite_faults.c's business. */
static struct rv__store *file_reopen(struct store_maker *maker, struct rv__store *store)
{
    struct sqlite_maker *m = (struct sqlite_maker *)maker;
    rv__store_close(store);
    return open_at(m->folder.store);
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static struct rv__store *file_damage(struct store_maker *maker, struct rv__store *store,
                                     const char *run)
{
    struct sqlite_maker *m = (struct sqlite_maker *)maker;
    char sql[128];
    snprintf(sql, sizeof sql, "UPDATE runs SET input_key = x'00ff' WHERE id = '%s'", run);
    rv__store_close(store);
    execute(m->folder.store, sql);
    return open_at(m->folder.store);
}

static void file_remove(struct store_maker *maker, struct rv__store *store)
{
    struct sqlite_maker *m = (struct sqlite_maker *)maker;
    rv__store_close(store);
    folder_remove(&m->folder);
}

static struct rv__store *memory_open(struct store_maker *maker)
{
    (void)maker;
    return open_at(":memory:");
}

static struct rv__store *memory_reopen(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    return store; /* it would be empty */
}

static void memory_remove(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    rv__store_close(store);
}

/* ---------------------------------------------------------------------------- what is special --- */

static int setup(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    assert_non_null(folder);
    folder_make(folder);
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    rv__test_fail_alloc_after(-1);
    folder_remove(*state);
    free(*state);
    return 0;
}

/* Opening fails with this code, and its message has these words. */
static void refused(struct rv__store_opts opts, int code, const char *words, const char *more)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    int rc = rv__store_open(&opts, &store, &err);
    if (rc != code || strstr(err.message, words) == NULL || strstr(err.message, more) == NULL)
        fail_msg("%d: %s", rc, err.message);
    assert_null(store);
}

static void add(struct rv__store *store, const char *id, struct rv__str facts)
{
    struct rv__store_run row = { .id = rv__str(id), .status = rv__str("running"), .active = true };
    struct rv__store_write write = { .run = rv__str(id), .row = &row, .facts = facts };
    rv_error err = { 0, "" };
    if (rv__store_commit_one(store, &write, &err) < 0)
        fail_msg("%s", err.message);
}

static int count_row(void *arg, uint64_t seq, struct rv__str facts)
{
    (void)seq;
    (void)facts;
    ++*(int *)arg;
    return RV_OK;
}

static int rows_of(struct rv__store *store, const char *id)
{
    int rows = 0;
    assert_int_equal(rv__store_journal(store, rv__str(id), 0, count_row, &rows, NULL), RV_OK);
    return rows;
}

static void write_file(const char *path, const void *bytes, size_t len, long at)
{
    FILE *file = fopen(path, at < 0 ? "wb" : "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at < 0 ? 0 : at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* Run `child` in a process of its own; how it ended. */
static int in_child(int (*child)(struct folder *folder), struct folder *folder)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child(folder));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int second_writer(struct folder *folder)
{
    struct rv__store_opts opts = { .path = folder->store };
    struct rv__store *store = NULL;
    char holder[32];
    rv_error err = { 0, "" };
    if (rv__store_open(&opts, &store, &err) != RV_EBUSY || store != NULL)
        return 1;
    snprintf(holder, sizeof holder, "process %ld (", (long)getppid());
    if (strstr(err.message, holder) == NULL || strstr(err.message, "test_store_sqlite") == NULL ||
        strstr(err.message, " since 2") == NULL) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    opts.read_only = true; /* reading always works */
    if (rv__store_open(&opts, &store, &err) != RV_OK)
        return 3;
    int rows = 0;
    if (rv__store_journal(store, rv__str("a"), 0, count_row, &rows, NULL) != RV_OK || rows != 1)
        return 4;
    rv__store_close(store);
    return 0;
}

static void a_second_process_is_told_who_writes(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = open_at(folder->store);
    add(store, "a", rv__str("1"));
    assert_int_equal(in_child(second_writer, folder), 0);
    refused((struct rv__store_opts){ .path = folder->store }, RV_EBUSY, "held by process",
            "reading only"); /* and a second engine in this one */
    add(store, "b", rv__str("1"));
    rv__store_close(store);
    store = open_at(folder->store);
    assert_int_equal(rows_of(store, "b"), 1);
    rv__store_close(store);
}

static void another_name_of_the_store_is_the_same_store(void **state)
{
    struct folder *folder = *state;
    char other[128];
    struct rv__store *store = open_at(folder->store);
    snprintf(other, sizeof other, "%s/link.db", folder->path);
    assert_int_equal(symlink(folder->store, other), 0);
    refused((struct rv__store_opts){ .path = other }, RV_EBUSY, "held by process", "");
    snprintf(other, sizeof other, "%s/../%s", folder->path, folder->store + strlen("/tmp/"));
    refused((struct rv__store_opts){ .path = other }, RV_EBUSY, "held by process", "");
    rv__store_close(store);
}

static int dies_with_the_store(struct folder *folder)
{
    struct rv__store *store = NULL;
    struct rv__store_run row = { .id = rv__str("a") };
    struct rv__store_write write = { .run = rv__str("a"), .row = &row, .facts = rv__str("1") };
    if (rv__store_open(&(struct rv__store_opts){ .path = folder->store }, &store, NULL) < 0 ||
        rv__store_commit_one(store, &write, NULL) < 0)
        return 1;
    raise(SIGKILL);
    return 2;
}

static void a_killed_writer_leaves_its_commits_and_no_lock(void **state)
{
    struct folder *folder = *state;
    assert_int_equal(in_child(dies_with_the_store, folder), 128);
    struct rv__store *store = open_at(folder->store);
    assert_int_equal(rows_of(store, "a"), 1);
    rv__store_close(store);
}

static void a_newer_schema_is_refused_and_not_touched(void **state)
{
    struct folder *folder = *state;
    struct stat before, after;
    rv__store_close(open_at(folder->store));
    execute(folder->store, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 1000");
    assert_int_equal(stat(folder->store, &before), 0);
    refused((struct rv__store_opts){ .path = folder->store }, RV_ESTORE,
            "newer version of Rival (schema 1000, this program knows 2)", "nothing was changed");
    refused((struct rv__store_opts){ .path = folder->store, .read_only = true }, RV_ESTORE,
            "newer version of Rival", "nothing was changed");
    assert_int_equal(stat(folder->store, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_size, after.st_size);
}

static void an_older_schema_is_upgraded(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = open_at(folder->store);
    struct rv__store_mark mark = { .name = rv__str("m"), .seq = 3 };
    add(store, "a", rv__str("f"));
    rv__store_close(store);
    execute(folder->store, "DROP TABLE marks; PRAGMA user_version = 1");
    refused((struct rv__store_opts){ .path = folder->store, .read_only = true }, RV_ESTORE,
            "older schema", "open it once for writing");
    store = open_at(folder->store);
    assert_int_equal(rows_of(store, "a"), 1);
    assert_int_equal(rv__store_take_marks(store, &mark, 1, NULL), RV_OK);
    rv__store_close(store);
}

static void other_peoples_databases_are_refused(void **state)
{
    struct folder *folder = *state;
    execute(folder->store, "CREATE TABLE mine(x)");
    refused((struct rv__store_opts){ .path = folder->store }, RV_ESTORE, "another program",
            "nothing was changed");
    execute(folder->store, "DROP TABLE mine; PRAGMA user_version = 7");
    refused((struct rv__store_opts){ .path = folder->store }, RV_ESTORE, "another program", "");
}

static void what_is_no_store_is_refused(void **state)
{
    struct folder *folder = *state;
    char garbage[8192], path[160];
    memset(garbage, 'g', sizeof garbage);
    refused((struct rv__store_opts){ .path = NULL }, RV_EINVAL, "no path", "");
    refused((struct rv__store_opts){ .path = "" }, RV_EINVAL, "no path", "");
    refused((struct rv__store_opts){ .path = ":memory:", .read_only = true }, RV_EINVAL, "empty",
            "");
    refused((struct rv__store_opts){ .path = folder->path }, RV_ESTORE, "it is a folder", "");
    refused((struct rv__store_opts){ .path = folder->path, .read_only = true }, RV_ESTORE,
            "it is a folder", "");
    refused((struct rv__store_opts){ .path = folder->store, .read_only = true }, RV_ESTORE,
            "there is no store", folder->store);
    assert_int_not_equal(access(folder->store, F_OK), 0); /* and none was made */
    refused((struct rv__store_opts){ .path = folder->store, .vfs = "nobody" }, RV_ESTORE, "nobody",
            "");
    snprintf(path, sizeof path, "%s/no/such.db", folder->path);
    refused((struct rv__store_opts){ .path = path }, RV_ESTORE, "its folder", "No such file");
    write_file(folder->store, garbage, sizeof garbage, -1);
    refused((struct rv__store_opts){ .path = folder->store }, RV_ESTORE, "is not a store",
            "nothing was changed");
    refused((struct rv__store_opts){ .path = folder->store, .read_only = true }, RV_ESTORE,
            "is not a store", "");
    write_file(folder->store, "", 0, -1); /* an empty file is a store that begins */
    refused((struct rv__store_opts){ .path = folder->store, .read_only = true }, RV_ESTORE,
            "nothing in the store", "");
    rv__store_close(open_at(folder->store));
}

/* A store of some hundred pages, closed. */
static void large_store(struct folder *folder)
{
    struct rv__store *store = open_at(folder->store);
    char *text = calloc(1, 5000);
    char id[16];
    assert_non_null(text);
    memset(text, 'x', 5000);
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "r%d", i);
        add(store, id, (struct rv__str){ text, 5000 });
    }
    free(text);
    rv__store_close(store);
}

/* Every call answers; some of them that the file is damaged. Never a crash, never a wrong row. */
static int use(struct folder *folder, rv_error *err)
{
    struct rv__store *store = NULL;
    int rows = 0,
        worst = rv__store_open(&(struct rv__store_opts){ .path = folder->store }, &store, err);
    for (int i = 0; i < 100 && worst == RV_OK; i++) {
        char id[16];
        snprintf(id, sizeof id, "r%d", i);
        int rc = rv__store_journal(store, rv__str(id), 0, count_row, &rows, err);
        struct rv__store_write write = { .run = rv__str(id), .facts = rv__str("more") };
        if (rc == RV_OK)
            rc = rv__store_commit_one(store, &write, err);
        worst = rc < 0 ? rc : worst;
    }
    rv__store_close(store);
    return worst;
}

static void a_damaged_page_is_told(void **state)
{
    struct folder *folder = *state;
    char garbage[4096];
    memset(garbage, 0x5a, sizeof garbage);
    bool told = false;
    large_store(folder);
    for (long page = 1; page < 60; page++) { /* ever more of them */
        rv_error err = { 0, "" };
        write_file(folder->store, garbage, sizeof garbage, page * 4096);
        int rc = use(folder, &err);
        assert_true(rc == RV_OK || rc == RV_ESTORE || rc == RV_EINVAL);
        told = told || (rc == RV_ESTORE && strstr(err.message, "is damaged") != NULL &&
                        strstr(err.message, "backup") != NULL);
    }
    assert_true(told);
}

static void a_truncated_store_is_told(void **state)
{
    struct folder *folder = *state;
    struct stat st;
    rv_error err = { 0, "" };
    large_store(folder);
    assert_int_equal(stat(folder->store, &st), 0);
    for (off_t size = st.st_size - 4096; size > 100; size = size * 2 / 3) {
        assert_int_equal(truncate(folder->store, size), 0);
        int rc = use(folder, &err);
        if (rc != RV_ESTORE)
            fail_msg("%lld bytes: %d %s", (long long)size, rc, err.message);
    }
}

/* The tests run as root, for whom no folder is read-only: so a child becomes nobody. */
static void become_nobody(struct folder *folder)
{
    if (geteuid() != 0)
        return;
    (void)!chown(folder->path, 65534, 65534);
    (void)!chown(folder->store, 65534, 65534);
    if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
        _exit(99);
}

static int uses_a_read_only_folder(struct folder *folder)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    int rows = 0;
    become_nobody(folder);
    if (chmod(folder->store, 0444) < 0 || chmod(folder->path, 0555) < 0)
        return 1;
    struct rv__store_opts opts = { .path = folder->store };
    if (rv__store_open(&opts, &store, &err) != RV_ESTORE ||
        strstr(err.message, "Permission denied") == NULL)
        return 2;
    opts.read_only = true; /* without a WAL, and without the right to make its index */
    if (rv__store_open(&opts, &store, &err) != RV_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 3;
    }
    if (rv__store_journal(store, rv__str("r1"), 0, count_row, &rows, NULL) != RV_OK || rows != 1)
        return 4;
    struct rv__store_write write = { .run = rv__str("r1"), .facts = rv__str("2") };
    if (rv__store_commit_one(store, &write, &err) != RV_ESTATE)
        return 5;
    rv__store_close(store);
    return 0;
}

static void a_store_in_a_read_only_folder_can_be_read(void **state)
{
    struct folder *folder = *state;
    char lock[128];
    large_store(folder);
    snprintf(lock, sizeof lock, "%s.lock", folder->store);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(in_child(uses_a_read_only_folder, folder), 0);
}

static void a_lock_of_another_program_is_told_and_waited_for(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = NULL;
    struct rv__store_opts opts = { .path = folder->store, .busy_timeout_ms = 50 };
    sqlite3 *shell = NULL;
    rv_error err = { 0, "" };
    assert_int_equal(rv__store_open(&opts, &store, NULL), RV_OK);
    add(store, "a", rv__str("1"));
    assert_int_equal(sqlite3_open(folder->store, &shell), SQLITE_OK);
    assert_int_equal(sqlite3_exec(shell, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct rv__store_write write = { .run = rv__str("a"), .facts = rv__str("2"), .seq = 77 };
    int64_t start = rv__mono_ms(rv__clock_real());
    assert_int_equal(rv__store_commit_one(store, &write, &err), RV_ESTORE);
    assert_true(rv__mono_ms(rv__clock_real()) - start >= 40);
    assert_non_null(strstr(err.message, "locked by another program for more than 50 ms"));
    assert_int_equal(write.seq, 77);
    assert_int_equal(rows_of(store, "a"), 1);
    assert_int_equal(sqlite3_exec(shell, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
    assert_int_equal(rows_of(store, "a"), 2);
    (void)sqlite3_close(shell);
    rv__store_close(store);
}

static void no_memory_leaves_no_lock(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = NULL;
    struct rv__store_opts opts = { .path = folder->store };
    int rc;
    TORTURE(rc, rv__store_open(&opts, &store, NULL), assert_null(store));
    assert_int_equal(rc, RV_OK);
    add(store, "a", rv__str("1"));
    struct rv__store *reader = NULL;
    opts.read_only = true;
    TORTURE(rc, rv__store_open(&opts, &reader, NULL), assert_null(reader));
    assert_int_equal(rc, RV_OK);
    rv__store_close(reader);
    rv__store_close(store);
}

/* Ids and names that do not fit into the writer's cache, and more of them than it has places. */
static void many_and_long_names_are_kept_apart(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = open_at(folder->store);
    enum { RUNS = 6000 };
    static struct rv__store_run rows[RUNS];
    static struct rv__store_write writes[RUNS];
    static char ids[RUNS][120];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < RUNS; i++) {
            snprintf(ids[i], sizeof ids[i], "%0*d", 1 + i % 100, i);
            rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]),
                                              .workflow = rv__str(ids[i]),
                                              .status = rv__str(ids[i % 40]) };
            writes[i] = (struct rv__store_write){ .run = rv__str(ids[i]),
                                                  .row = turn == 0 ? &rows[i] : NULL,
                                                  .facts = rv__str("f") };
        }
        assert_int_equal(rv__store_commit(store, writes, RUNS, NULL), RV_OK);
    }
    for (int i = 0; i < RUNS; i += 7)
        assert_int_equal(rows_of(store, ids[i]), 2);
    struct rv__store_usage usage;
    assert_int_equal(rv__store_usage(store, &usage, NULL), RV_OK);
    assert_int_equal(usage.runs, RUNS);
    assert_int_equal(usage.last_seq, 2 * RUNS);
    rv__store_close(store);
}

/* A commit of n writes, every second one refused: what it costs this process. */
static double refusals_cost(struct folder *folder, size_t n)
{
    struct rv__store *store = open_at(folder->store);
    struct rv__store_write *writes = calloc(n, sizeof *writes);
    struct rv__store_run *rows = calloc(n, sizeof *rows);
    char(*ids)[16] = calloc(n, sizeof *ids);
    assert_true(writes != NULL && rows != NULL && ids != NULL);
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "%zu-%zu", n, i);
        rows[i] = (struct rv__store_run){ .id = rv__str(ids[i]), .status = rv__str("s") };
        writes[i] = (struct rv__store_write){ .run = rv__str(ids[i]),
                                              .row = i % 2 == 0 ? &rows[i] : NULL,
                                              .facts = rv__str("f") };
    }
    clock_t start = clock();
    assert_int_equal(rv__store_commit(store, writes, n, NULL), RV_OK);
    double took = (double)(clock() - start);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(writes[i].outcome, i % 2 == 0 ? STORE_WRITTEN : STORE_REFUSED);
    assert_int_equal(rows_of(store, ids[n - 2]), 1);
    rv__store_close(store);
    free(writes);
    free(rows);
    free(ids);
    return took;
}

static void many_refusals_cost_no_more_than_their_number(void **state)
{
    struct folder *folder = *state;
    enum { N = 1000 };
    double best = 1e9; /* of 10 N against N: 10 if it is linear, 100 if each refusal begins anew */
    for (int i = 0; i < 3 && best > 30; i++) {
        double few = refusals_cost(folder, N + (size_t)i);
        double many = refusals_cost(folder, 10 * (N + (size_t)i));
        best = many / few < best ? many / few : best;
    }
    if (best > 30)
        fail_msg("10 x the refusals cost %.0f x", best);
}

static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(st, 0);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return answer;
}

/* Large values go a few megabytes at a time, and nothing stays in any table. */
static void what_is_forgotten_leaves_no_rows(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = open_at(folder->store);
    enum { VALUES = 30, BYTES = 1 << 20 };
    struct rv__store_value values[VALUES];
    struct rv__store_result result = { rv__str("k"), 1, rv__str("r") };
    struct rv__store_log line = { .message = rv__str("m") };
    struct rv__store_touch over = { .status = rv__str("completed"), .completed_ms = 5 };
    char *text = calloc(1, BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    for (int i = 0; i < VALUES; i++)
        values[i] = (struct rv__store_value){ (uint64_t)i, { text, BYTES } };
    add(store, "a", rv__str("1"));
    struct rv__store_write write = { .run = rv__str("a"),
                                     .facts = rv__str("2"),
                                     .results = &result,
                                     .result_count = 1,
                                     .values = values,
                                     .value_count = VALUES,
                                     .snapshot = rv__str("s"),
                                     .logs = &line,
                                     .log_count = 1,
                                     .touch = &over };
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
    free(text);
    struct rv__str ids[] = { rv__str("a") };
    bool more = true;
    int calls = 0;
    for (; more; calls++)
        assert_int_equal(rv__store_forget(store, ids, 1, &more, NULL), RV_OK);
    assert_true(calls >= VALUES * BYTES / (8 << 20) && calls < 10);
    rv__store_close(store);
    assert_int_equal(ask(folder->store, "SELECT (SELECT count(*) FROM runs) +"
                                        " (SELECT count(*) FROM journal) +"
                                        " (SELECT count(*) FROM results) +"
                                        " (SELECT count(*) FROM results_seqs) +"
                                        " (SELECT count(*) FROM large_values) +"
                                        " (SELECT count(*) FROM snapshots) +"
                                        " (SELECT count(*) FROM logs) +"
                                        " (SELECT count(*) FROM forgotten)"),
                     0);
}

static int see_result(void *arg, int64_t index, struct rv__str json)
{
    (void)index;
    (void)json;
    ++*(int *)arg;
    return RV_OK;
}

/* Write so many results in one go, and read windows of ten from their end: what a window costs. */
static double window_cost(struct rv__store *store, const char *id, size_t count)
{
    struct rv__store_result *results = calloc(count, sizeof *results);
    assert_non_null(results);
    for (size_t i = 0; i < count; i++)
        results[i] = (struct rv__store_result){ rv__str("k"), (int64_t)(count - 1 - i),
                                                rv__str("{\"result\":1}") };
    add(store, id, rv__str("1"));
    struct rv__store_write write = { .run = rv__str(id),
                                     .results = results,
                                     .result_count = count };
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
    free(results);
    int rows = 0;
    clock_t start = clock();
    for (int i = 0; i < 300; i++)
        assert_int_equal(rv__store_results(store, rv__str(id), rv__str("k"), (int64_t)count - 15,
                                           10, see_result, &rows, NULL),
                         RV_OK);
    assert_int_equal(rows, 3000);
    return (double)(clock() - start);
}

static void results_are_kept_in_chunks_and_a_window_costs_a_window(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = open_at(folder->store);
    double few = window_cost(store, "few", 10000), many = window_cost(store, "many", 100000);
    if (many > 4 * few + CLOCKS_PER_SEC / 50)
        fail_msg("a window of 10 x the results costs %.1f x", many / few);
    rv__store_close(store);
    assert_true(ask(folder->store, "SELECT count(*) FROM results") <= 110000 / 1000);
}

struct paging { /* a thread that reads the feed over and over, by pages */
    struct rv__store *reader;
    _Atomic bool over;
};

static int see_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    (void)run;
    (void)facts;
    *(uint64_t *)arg = seq;
    return RV_OK;
}

static void *page_on(void *arg)
{
    struct paging *paging = arg;
    uint64_t last = 0;
    while (!paging->over) {
        uint64_t before = last;
        assert_int_equal(rv__store_feed(paging->reader, last, 20, see_feed, &last, NULL), RV_OK);
        last = last == before ? 0 : last;
    }
    return NULL;
}

static void readers_that_follow_each_other_do_not_grow_the_wal(void **state)
{
    struct folder *folder = *state;
    struct rv__store *store = NULL;
    struct faulty_vfs quick; /* nothing fails, and nothing waits for a disk */
    struct paging paging[2] = { 0 };
    struct rv__store_stats stats;
    pthread_t threads[2];
    enum {
        READER_WAIT_MS = 120000,
        FACTS = 400000,
        COMMITS = 250
    }; /* 100 MB in all; the WAL is waited for at 32 */
    char *text = calloc(1, FACTS), wal[128];
    struct stat st;
    assert_non_null(text);
    memset(text, 'x', FACTS);
    faulty_init(&quick, "rival-quick");
    /* The writer gives up only when a reader hangs: a machine without time for it is not one. */
    struct rv__store_opts opts = { .path = folder->store,
                                   .vfs = "rival-quick",
                                   .reader_wait_ms = READER_WAIT_MS };
    assert_int_equal(rv__store_open(&opts, &store, NULL), RV_OK);
    add(store, "a", rv__str("1"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rv__store_reader(store, &paging[i].reader, NULL), RV_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, page_on, &paging[i]), 0);
    }
    for (int i = 0; i < COMMITS; i++) {
        struct rv__store_write write = { .run = rv__str("a"), .facts = { text, FACTS } };
        int64_t start_ms = rv__mono_ms(rv__clock_real());
        assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
        if (rv__mono_ms(rv__clock_real()) - start_ms > READER_WAIT_MS / 2)
            fail_msg("commit %d waited for readers that are in nobody's way", i);
    }
    const int64_t bound = 72 << 20;
    for (int i = 0; i < 2; i++) {
        paging[i].over = true;
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        rv__store_close(paging[i].reader);
    }
    snprintf(wal, sizeof wal, "%s-wal", folder->store);
    assert_int_equal(stat(wal, &st), 0);
    rv__store_stats(store, &stats);
    assert_true(st.st_size < bound);
    assert_true(stats.wal_bytes < bound);
    rv__store_close(store);
    faulty_done(&quick);
    free(text);
}

static int try_add(struct rv__store *store, const char *id, rv_error *err)
{
    struct rv__store_run row = { .id = rv__str(id), .status = rv__str("running"), .active = true };
    struct rv__store_write write = { .run = rv__str(id), .row = &row, .facts = rv__str("{}") };
    return rv__store_commit_one(store, &write, err);
}

/* What is written into a file that has no name any more is lost: that is no commit. */
static void a_store_that_is_deleted_or_replaced_is_noticed(void **state)
{
    static const struct {
        const char *says, *file; /* "": the store itself */
        bool replaced;
    } cases[] = { { "deleted", "", false },
                  { "replaced by rename", "", true },
                  { "its WAL deleted", "-wal", false },
                  { "its WAL replaced", "-wal", true } };
    struct folder *folder = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char store[128], file[140], other[128];
        rv_error err = { 0, "" };
        bool more;
        snprintf(store, sizeof store, "%s/%zu.db", folder->path, i);
        snprintf(other, sizeof other, "%s/other-%zu", folder->path, i);
        snprintf(file, sizeof file, "%s%s", store, cases[i].file);
        struct rv__store *s = open_at(store);
        add(s, "a", rv__str("{}"));
        if (cases[i].replaced) {
            close(creat(other, 0600));
            write_file(other, "another", 7, 0);
            assert_int_equal(rename(other, file), 0);
        } else {
            assert_int_equal(unlink(file), 0);
        }
        int rc = try_add(s, "b", &err);
        if (rc != RV_EGONE || strstr(err.message, "deleted or replaced") == NULL ||
            strstr(err.message, store) == NULL ||
            (strstr(err.message, "-wal") != NULL) != (cases[i].file[0] != '\0'))
            fail_msg("%s: %d %s", cases[i].says, rc, err.message);
        /* For good: nothing that follows could be right. */
        assert_int_equal(try_add(s, "c", NULL), RV_EGONE);
        assert_int_equal(rv__store_define(s, rv__str("h"), rv__str("{}"), NULL), RV_EGONE);
        assert_int_equal(rv__store_forget(s, NULL, 0, &more, NULL), RV_EGONE);
        rv__store_close(s);
    }
}

static void a_store_in_a_folder_that_moves_is_gone(void **state)
{
    struct folder *folder = *state;
    char inside[80], moved[80], store[96];
    snprintf(inside, sizeof inside, "%s/in", folder->path);
    snprintf(moved, sizeof moved, "%s/moved", folder->path);
    snprintf(store, sizeof store, "%s/a.db", inside);
    assert_int_equal(mkdir(inside, 0700), 0);
    struct rv__store *s = open_at(store);
    add(s, "a", rv__str("{}"));
    assert_int_equal(rename(inside, moved), 0);
    assert_int_equal(try_add(s, "b", NULL), RV_EGONE);
    rv__store_close(s);
}

int main(void)
{
    struct sqlite_maker file = { { file_open, file_reopen, NULL, file_damage, file_remove },
                                 { "", "" } };
    struct store_maker memory = { memory_open, memory_reopen, NULL, NULL, memory_remove };
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_second_process_is_told_who_writes),
        CASE(another_name_of_the_store_is_the_same_store),
        CASE(a_killed_writer_leaves_its_commits_and_no_lock),
        CASE(a_newer_schema_is_refused_and_not_touched),
        CASE(an_older_schema_is_upgraded),
        CASE(other_peoples_databases_are_refused),
        CASE(what_is_no_store_is_refused),
        CASE(a_damaged_page_is_told),
        CASE(a_truncated_store_is_told),
        CASE(a_store_in_a_read_only_folder_can_be_read),
        CASE(a_lock_of_another_program_is_told_and_waited_for),
        CASE(no_memory_leaves_no_lock),
        CASE(many_and_long_names_are_kept_apart),
        CASE(what_is_forgotten_leaves_no_rows),
        CASE(results_are_kept_in_chunks_and_a_window_costs_a_window),
        CASE(many_refusals_cost_no_more_than_their_number),
        CASE(readers_that_follow_each_other_do_not_grow_the_wal),
        CASE(a_store_that_is_deleted_or_replaced_is_noticed),
        CASE(a_store_in_a_folder_that_moves_is_gone),
    };
#undef CASE
    int failed = store_suite(&file.maker);
    failed += store_suite(&memory);
    return failed + cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
