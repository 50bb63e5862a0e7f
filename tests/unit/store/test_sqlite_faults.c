/* test_sqlite_faults.c: the SQLite store on a disk that fails, and on one that loses power.
 *
 * A script of commits runs on the store and on a simulated one beside it, which is the judge: at
 * any moment, whatever the disk did, what can be read from both is the same text. */
#include "unit/test.h"

#include <ftw.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/simulated/simulated.h"
#include "unit/store/faulty_vfs.h"

#define VFS "rival-faulty"

/* Each fault, one after the other. Under a sanitizer, which takes several times as long and looks for what
 * the code does wrong on the way, every third. */
enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    STRIDE = 3,
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    STRIDE = 3,
#else
    STRIDE = 1,
#endif
#else
    STRIDE = 1,
#endif
};

/* Of the script. */
enum { STEPS = 10, IMPORTED = 3 };

struct fixture {
    char folder[64], path[96];
    struct faulty_vfs faulty;
    struct rv__store *store; /* NULL: not open */
    struct rv__sim_store model;
    struct rv__buf ours, theirs;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-faults-XXXXXX");
    assert_non_null(mkdtemp(fx->folder));
    snprintf(fx->path, sizeof fx->path, "%s/a.db", fx->folder);
    faulty_init(&fx->faulty, VFS);
    rv__sim_store_init(&fx->model);
    rv__buf_init(&fx->ours, SIZE_MAX);
    rv__buf_init(&fx->theirs, SIZE_MAX);
    *state = fx;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    faulty_heal(&fx->faulty);
    rv__store_close(fx->store);
    faulty_done(&fx->faulty);
    rv__sim_store_done(&fx->model);
    rv__buf_done(&fx->ours);
    rv__buf_done(&fx->theirs);
    (void)nftw(fx->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fx);
    return 0;
}

/* A new disk and a new model. */
static void afresh(struct fixture *fx)
{
    static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
    char path[128];
    struct faulty_vfs old = fx->faulty;
    rv__store_close(fx->store);
    fx->store = NULL;
    faulty_done(&fx->faulty);
    faulty_init(&fx->faulty, VFS);
    fx->faulty.power = old.power;
    rv__sim_store_done(&fx->model);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", fx->path, ends[i]);
        (void)unlink(path); /* some of them are not there */
    }
}

static int try_open(struct fixture *fx, rv_error *err)
{
    /* Heads are brought up to date all the time. */
    struct rv__store_opts opts = {
        .path = fx->path, .vfs = VFS, .busy_timeout_ms = 10, .tail_rows = 3
    };
    return rv__store_open(&opts, &fx->store, err);
}

/* ------------------------------------------------------------------------- what is there --- */

/* A long text by its length and hash: a difference is to be read by people. */
static void dump_str(struct rv__buf *buf, struct rv__str text)
{
    if (text.len < 40)
        rv__buf_str(buf, text);
    else
        rv__buf_fmt(buf, "<%zu %llx>", text.len,
                    (unsigned long long)rv__str_hash(RV__HASH_START, text));
}

static int dump_text(void *arg, uint64_t seq, struct rv__str text)
{
    rv__buf_fmt(arg, " %llu:", (unsigned long long)seq);
    dump_str(arg, text);
    return RV_OK;
}

static int dump_result(void *arg, int64_t index, struct rv__str json)
{
    return dump_text(arg, (uint64_t)index, json);
}

static int dump_run(void *arg, const struct rv__store_run *row)
{
    rv__buf_fmt(arg, "%.*s %.*s %d %lld %lld ", RV__ARG(row->id), RV__ARG(row->status), row->active,
                (long long)row->completed_ms, (long long)row->number);
    dump_str(arg, row->input);
    rv__buf_char(arg, '\n');
    return RV_OK;
}

static int dump_log(void *arg, const struct rv__store_log *line)
{
    rv__buf_fmt(arg, "log %llu %.*s %.*s\n", (unsigned long long)line->id, RV__ARG(line->run),
                RV__ARG(line->message));
    return RV_OK;
}

static int dump_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    rv__buf_fmt(arg, "%llu %.*s %zu\n", (unsigned long long)seq, RV__ARG(run), facts.len);
    return RV_OK;
}

static int dump_count(void *arg, struct rv__str status, uint64_t runs)
{
    rv__buf_fmt(arg, "%.*s=%llu\n", RV__ARG(status), (unsigned long long)runs);
    return RV_OK;
}

/* All that can be read, but for the journals of one run each. */
static int dump(struct rv__store *store, struct rv__buf *ret, rv_error *err)
{
    static const char *const runs[] = { "a", "b", "c", "d", "e" };
    struct rv__store_query query = { .input_bytes = SIZE_MAX, .limit = 1000 };
    struct rv__store_log_query lines = { .limit = SIZE_MAX };
    struct rv__store_usage usage;
    rv__buf_reset(ret);
    int rc = rv__store_list(store, &query, dump_run, ret, NULL, err);
    for (size_t i = 0; i < sizeof runs / sizeof *runs && rc == RV_OK; i++) {
        rc = rv__store_results(store, rv__str(runs[i]), rv__str("k"), INT64_MIN, SIZE_MAX,
                               dump_result, ret, err);
        uint64_t results_seq = 0;
        if (rc == RV_OK)
            rc = rv__store_results_seq(store, rv__str(runs[i]), &results_seq, err);
        rv__buf_fmt(ret, "%llu\n", (unsigned long long)results_seq);
        for (uint64_t n = 0; n < STEPS && rc == RV_OK; n++) {
            rc = rv__store_value_read(store, rv__str(runs[i]), n, dump_text, ret, err);
            rc = rc == RV_ENOTFOUND ? RV_OK : rc;
        }
        if (rc == RV_OK)
            rc = rv__store_journal(store, rv__str(runs[i]), 0, dump_text, ret, err);
        if (rc == RV_OK)
            rc = rv__store_snapshot(store, rv__str(runs[i]), dump_text, ret, err);
        rc = rc == RV_ENOTFOUND ? RV_OK : rc;
    }
    if (rc == RV_OK)
        rc = rv__store_logs(store, &lines, dump_log, ret, err);
    if (rc == RV_OK)
        rc = rv__store_feed(store, 0, SIZE_MAX, dump_feed, ret, err);
    if (rc == RV_OK)
        rc = rv__store_counts(store, dump_count, ret, err);
    if (rc == RV_OK)
        rc = rv__store_usage(store, &usage, err);
    if (rc == RV_OK)
        rv__buf_fmt(ret, "%llu %llu %llu\n", (unsigned long long)usage.runs,
                    (unsigned long long)usage.finished, (unsigned long long)usage.last_seq);
    return rc;
}

static bool same(struct fixture *fx)
{
    rv_error err = { 0, "" };
    if (dump(fx->store, &fx->ours, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(dump(&fx->model.store, &fx->theirs, NULL), RV_OK);
    return rv__str_eq(rv__buf_view(&fx->ours), rv__buf_view(&fx->theirs));
}

static void check_same(struct fixture *fx, const char *when, long n)
{
    if (!same(fx))
        fail_msg("%s, fault %ld: the store has\n%s\nand should have\n%s", when, n, fx->ours.text,
                 fx->theirs.text);
}

/* SQLite's own opinion of the file, and that every index has what its table has. */
static void check_integrity(struct fixture *fx, long n)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open_v2(fx->path, &db, SQLITE_OPEN_READONLY, VFS), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    const char *says = (const char *)sqlite3_column_text(st, 0);
    if (strcmp(says, "ok") != 0)
        fail_msg("fault %ld: %s", n, says);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
}

/* ---------------------------------------------------------------------------- the script --- */

/* More than two pages: overflow, and many writes in one commit. No larger: each write of the script is a fault to
 * come, and those of one long text are all alike. */
static char large[9000];

/* A run that comes from elsewhere, in a few writes. */
static int next_write(void *arg, struct rv__store_write *ret, rv_error *err)
{
    static const struct rv__store_run row = { .id = RV__STR("e"), .status = RV__STR("running") };
    static const struct rv__store_touch over = { .status = RV__STR("failed"), .completed_ms = 3 };
    static const struct rv__store_log line = { .message = RV__STR("from afar") };
    static struct rv__store_result result = { .key = RV__STR("k"), .json = RV__STR("r") };
    int n = (*(int *)arg)++;
    (void)err;
    if (n == IMPORTED)
        return 0;
    *ret = (struct rv__store_write){ .run = row.id };
    result.index = n;
    if (n == 0) {
        ret->row = &row;
        return 1;
    }
    ret->facts = rv__str("from afar");
    ret->results = &result;
    ret->result_count = 1;
    ret->logs = &line;
    ret->log_count = 1;
    ret->touch = n == IMPORTED - 1 ? &over : NULL;
    return 1;
}

/* The second of the writes is refused, the others are written. */
static int commit_and_refuse(struct rv__store *store, struct rv__store_write *writes, size_t count,
                             rv_error *err)
{
    int rc = rv__store_commit(store, writes, count, err);
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        assert_int_equal(writes[i].outcome, i == 1 ? STORE_REFUSED : STORE_WRITTEN);
    return rc;
}

/* Step n of the script, on either store. */
static int script(struct rv__store *store, int n, rv_error *err)
{
    struct rv__store_run rows[] = {
        { .id = rv__str("a"), .status = rv__str("running"), .input = rv__str("1"), .active = true },
        { .id = rv__str("b"), .status = rv__str("running"), .input = { large, sizeof large } },
        { .id = rv__str("c"), .status = rv__str("failed"), .created_ms = 5, .completed_ms = 7 },
        { .id = rv__str("d"), .status = rv__str("running"), .workflow = rv__str("w") },
    };
    struct rv__store_result results[] = { { rv__str("k"), n, rv__str("r") },
                                          { rv__str("k"), -n - 1, { large, sizeof large } } };
    struct rv__store_value value = { (uint64_t)n, { large, sizeof large } };
    struct rv__store_log lines[] = { { .message = rv__str("hello") },
                                     { .message = rv__str("world") } };
    struct rv__store_definition definition = { rv__str("h"), { large, sizeof large } };
    struct rv__store_touch over = { .status = rv__str("completed"), .completed_ms = 9 };
    struct rv__store_write first[] = {
        { .run = rv__str("a"), .row = &rows[0], .facts = rv__str("a0") },
        { .run = rv__str("b"), .row = &rows[1], .facts = { large, sizeof large } },
        { .run = rv__str("c"),
          .row = &rows[2],
          .facts = rv__str("c0"),
          .logs = lines,
          .log_count = 2 },
    };
    struct rv__store_write more[] = {
        { .run = rv__str("a"),
          .facts = rv__str("a1"),
          .results = results,
          .result_count = 2,
          .values = &value,
          .value_count = 1,
          .snapshot = { large, sizeof large } },
        { .run = rv__str("nobody"), .facts = rv__str("refused") },
        { .run = rv__str("b"),
          .facts = rv__str("b1"),
          .logs = lines,
          .log_count = 1,
          .definitions = &definition,
          .definition_count = 1 },
    };
    struct rv__store_write ends[] = {
        { .run = rv__str("b"), .touch = &over, .facts = rv__str("e") }
    };
    struct rv__store_write late[] = {
        { .run = rv__str("d"), .row = &rows[3], .facts = rv__str("d") }
    };
    struct rv__str forget[] = { rv__str("c"), rv__str("b") };
    bool unused;
    int from = 0;
    switch (n) {
    case 0: return rv__store_commit(store, first, 3, err);
    case 1:
    case 2:
    case 3: return commit_and_refuse(store, more, 3, err);
    case 4: return rv__store_commit(store, ends, 1, err);
    case 5: return rv__store_forget(store, forget, 2, &unused, err);
    case 6: return rv__store_commit(store, late, 1, err);
    case 7: return rv__store_commit(store, more, 1, err);
    case 8: return rv__store_import(store, rv__str("e"), next_write, &from, err);
    default: return rv__store_define(store, rv__str("h2"), rv__str("{}"), err);
    }
}

/* Open and run the script, each step again until it goes well; after each failure nothing of the
 * step is there. Returns how many failures there were. */
static int run_script(struct fixture *fx, long n, int tries_until_healed)
{
    rv_error err = { 0, "" };
    int failures = 0;
    while (try_open(fx, &err) < 0) {
        if (err.code != RV_ESTORE || err.message[0] == '\0' || failures > 20)
            fail_msg("open, fault %ld: %d %s", n, err.code, err.message);
        if (++failures == tries_until_healed)
            faulty_heal(&fx->faulty);
    }
    for (int step = 0; step < STEPS; step++) {
        int rc;
        while ((rc = script(fx->store, step, &err)) < 0) {
            if (rc != RV_ESTORE || failures > 20)
                fail_msg("step %d, fault %ld: %d %s", step, n, rc, err.message);
            if (++failures == tries_until_healed)
                faulty_heal(&fx->faulty);
            if (fx->faulty.countdown < 0) /* else reading may fail too */
                check_same(fx, "after a failure", n);
        }
        assert_int_equal(script(&fx->model.store, step, NULL), RV_OK);
    }
    return failures;
}

/* The n-th call fails, for each n, until the script needs fewer calls than that. */
static void every_fault(struct fixture *fx, unsigned kinds, int rc, bool short_write, bool stays,
                        int tries)
{
    int failures = 1;
    for (long n = 0; failures > 0 || fx->faulty.hits > 0; n += STRIDE) {
        afresh(fx);
        fx->faulty.short_write = short_write;
        fx->faulty.stays = stays;
        faulty_fail(&fx->faulty, kinds, n, rc);
        failures = run_script(fx, n, tries);
        long hits = fx->faulty.hits;
        faulty_heal(&fx->faulty);
        check_same(fx, "at the end", n);
        rv__store_close(fx->store);
        fx->store = NULL;
        check_integrity(fx, n);
        assert_int_equal(try_open(fx, NULL), RV_OK);
        check_same(fx, "when opened again", n);
        fx->faulty.hits = hits;
        assert_true(n < 5000);
    }
}

static void a_full_disk_stops_and_heals(void **state)
{
    every_fault(*state, FAULTY_WRITE, SQLITE_FULL, false, true, 3);
}

static void a_write_that_fails_once_is_tried_again(void **state)
{
    every_fault(*state, FAULTY_WRITE | FAULTY_TRUNCATE, SQLITE_IOERR, false, false, 1);
}

static void a_write_that_is_cut_short_is_tried_again(void **state)
{
    every_fault(*state, FAULTY_WRITE, SQLITE_FULL, true, false, 1);
}

static void a_sync_that_fails_is_tried_again(void **state)
{
    every_fault(*state, FAULTY_SYNC, SQLITE_IOERR, false, false, 1);
    every_fault(*state, FAULTY_SYNC, SQLITE_IOERR, false, true, 4);
}

static void a_file_that_cannot_be_made_is_tried_again(void **state)
{
    every_fault(*state, FAULTY_OPEN, SQLITE_CANTOPEN, false, false, 1);
}

/* Reading either says the truth or that it failed. */
static void reads_that_fail_say_so(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    (void)run_script(fx, -1, 0);
    assert_int_equal(dump(&fx->model.store, &fx->theirs, NULL), RV_OK);
    bool hit = true;
    for (long n = 0; hit; n++) {
        rv__store_close(fx->store);
        fx->store = NULL;
        faulty_fail(&fx->faulty, FAULTY_READ, n, SQLITE_IOERR);
        int rc = try_open(fx, &err);
        if (rc == RV_OK)
            rc = dump(fx->store, &fx->ours, &err);
        hit = fx->faulty.hits > 0;
        if (rc < 0 && (rc != RV_ESTORE || !hit))
            fail_msg("read %ld: %s", n, err.message);
        assert_true(rc < 0 || rv__str_eq(rv__buf_view(&fx->ours), rv__buf_view(&fx->theirs)));
        faulty_heal(&fx->faulty);
        if (fx->store == NULL)
            assert_int_equal(try_open(fx, NULL), RV_OK);
        check_same(fx, "after a bad read", n);
        assert_true(n < 5000);
    }
}

static int no_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return RV_OK;
}

/* Copy the store to `path`, which is there and empty. */
static int back_up(struct fixture *fx, const char *path, rv_error *err)
{
    FILE *file = fopen(path, "w");
    assert_true(file != NULL && fclose(file) == 0);
    return rv__store_backup(fx->store, path, no_progress, NULL, err);
}

/* A backup is whole or an error, and the store does not suffer from it. */
static void a_backup_that_fails_says_so(void **state)
{
    static const struct {
        unsigned kinds;
        int rc;
    } faults[] = { { FAULTY_WRITE | FAULTY_TRUNCATE, SQLITE_FULL },
                   { FAULTY_READ, SQLITE_IOERR },
                   { FAULTY_OPEN, SQLITE_CANTOPEN } };
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    char path[128];
    snprintf(path, sizeof path, "%s/copy.db", fx->folder);
    (void)run_script(fx, -1, 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        bool hit = true;
        for (long n = 0; hit; n++) {
            faulty_fail(&fx->faulty, faults[i].kinds, n, faults[i].rc);
            int rc = back_up(fx, path, &err);
            hit = fx->faulty.hits > 0;
            if (rc < 0 && (rc != RV_ESTORE || !hit || err.message[0] == '\0'))
                fail_msg("fault %ld: %d %s", n, rc, err.message);
            faulty_heal(&fx->faulty);
            check_same(fx, "after a backup", n);
            if (rc == RV_OK) {
                struct rv__store *copy = NULL;
                struct rv__store_opts opts = { .path = path, .read_only = true, .vfs = VFS };
                assert_int_equal(rv__store_open(&opts, &copy, NULL), RV_OK);
                assert_int_equal(dump(copy, &fx->ours, NULL), RV_OK);
                assert_string_equal(fx->ours.text, fx->theirs.text);
                rv__store_close(copy);
            }
            assert_true(n < 5000);
        }
    }
}

/* The same write for the model, which gives numbers of its own. */
static int model_write(struct fixture *fx, struct rv__store_write write)
{
    write.number = 0;
    return rv__store_commit_one(&fx->model.store, &write, NULL);
}

/* The process dies in the n-th write or sync, and with it the power: what was acknowledged is
 * there, and the commit it died in is there as a whole or not at all. */
static void power_loss_at(struct fixture *fx, long n, uint64_t seed, bool *ret_died)
{
    struct rv__random random;
    int step = -1;
    afresh(fx);
    rv__random_init(&random, seed);
    faulty_fail(&fx->faulty, FAULTY_WRITE | FAULTY_SYNC, n, SQLITE_IOERR);
    fx->faulty.dies = true;
    if (try_open(fx, NULL) == RV_OK)
        for (step = 0; step < STEPS && script(fx->store, step, NULL) == RV_OK; step++)
            assert_int_equal(script(&fx->model.store, step, NULL), RV_OK);
    *ret_died = fx->faulty.dead;
    rv__store_close(fx->store); /* a dead process writes nothing more */
    fx->store = NULL;
    char shm[128];
    snprintf(shm, sizeof shm, "%s-shm", fx->path);
    (void)unlink(shm); /* memory, which is gone */
    faulty_power_loss(&fx->faulty, &random);

    rv_error err = { 0, "" };
    if (try_open(fx, &err) < 0)
        fail_msg("write %ld, seed %llu: %s", n, (unsigned long long)seed, err.message);
    if (!same(fx) && step >= 0 && step < STEPS)
        assert_int_equal(script(&fx->model.store, step, NULL), RV_OK); /* it had reached the disk */
    check_same(fx, "after the power came back", n);
    /* And it goes on from there. */
    struct rv__store_run row = { .id = rv__str("z"), .status = rv__str("s") };
    struct rv__store_write write = { .run = rv__str("z"), .row = &row, .facts = rv__str("z") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(model_write(fx, write), RV_OK);
    check_same(fx, "going on", n);
    rv__store_close(fx->store);
    fx->store = NULL;
    check_integrity(fx, n);
}

static void a_loss_of_power_takes_nothing_that_was_acknowledged(void **state)
{
    struct fixture *fx = *state;
    const char *seeds = getenv("RIVAL_SEEDS");
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : 2;
    fx->faulty.power = true;
    for (uint64_t seed = 0; seed < count; seed++) {
        bool died = true;
        for (long n = (long)(seed % STRIDE); died; n += STRIDE)
            power_loss_at(fx, n, seed * 100003 + (uint64_t)n, &died);
    }
}

/* Many commits over a WAL that is carried over again and again, then the power goes. */
static void a_loss_of_power_while_the_wal_is_carried_over(void **state)
{
    struct fixture *fx = *state;
    struct rv__random random;
    fx->faulty.power = true;
    rv__random_init(&random, 7);
    for (int round = 0; round < 6; round++) {
        afresh(fx);
        assert_int_equal(try_open(fx, NULL), RV_OK);
        struct rv__store_run row = { .id = rv__str("a"), .status = rv__str("running") };
        struct rv__store_write write = { .run = rv__str("a"), .row = &row };
        assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
        assert_int_equal(model_write(fx, write), RV_OK);
        faulty_fail(&fx->faulty, FAULTY_WRITE | FAULTY_SYNC,
                    4000 + (long)rv__random_below(&random, 9000), SQLITE_IOERR);
        fx->faulty.dies = true;
        write = (struct rv__store_write){ .run = rv__str("a"), .facts = { large, sizeof large } };
        while (rv__store_commit_one(fx->store, &write, NULL) == RV_OK)
            assert_int_equal(model_write(fx, write), RV_OK);
        rv__store_close(fx->store);
        fx->store = NULL;
        faulty_power_loss(&fx->faulty, &random);
        assert_int_equal(try_open(fx, NULL), RV_OK);
        if (!same(fx))
            assert_int_equal(model_write(fx, write), RV_OK);
        check_same(fx, "after the power came back", round);
        rv__store_close(fx->store);
        fx->store = NULL;
        check_integrity(fx, round);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_full_disk_stops_and_heals),
        CASE(a_write_that_fails_once_is_tried_again),
        CASE(a_write_that_is_cut_short_is_tried_again),
        CASE(a_sync_that_fails_is_tried_again),
        CASE(a_file_that_cannot_be_made_is_tried_again),
        CASE(reads_that_fail_say_so),
        CASE(a_backup_that_fails_says_so),
        CASE(a_loss_of_power_takes_nothing_that_was_acknowledged),
        CASE(a_loss_of_power_while_the_wal_is_carried_over),
    };
#undef CASE
    memset(large, 'L', sizeof large);
    return cmocka_run_group_tests_name("sqlite faults", tests, NULL, NULL);
}
