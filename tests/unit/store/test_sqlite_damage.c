/* test_sqlite_damage.c: SQLite stores whose file says what nobody wrote: columns of other types, pages
 * that are torn, bytes at random. What can be read is read, what cannot is an error of its run. */
#include "unit/test.h"

#include <ftw.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "store/store.h"
#include "unit/store/faulty_vfs.h"

#define VFS "rival-damage-disk"

enum { LARGE = 20000 };

struct fixture {
    struct faulty_vfs quick; /* nothing fails, and nothing waits for a disk */
    char folder[64], path[96];
    char *bytes; /* of the store before it was damaged */
    size_t size;
    struct rv__store *store; /* NULL: not open */
    struct rv__buf seen;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-damage-XXXXXX");
    assert_non_null(mkdtemp(fx->folder));
    snprintf(fx->path, sizeof fx->path, "%s/a.db", fx->folder);
    faulty_init(&fx->quick, VFS);
    rv__buf_init(&fx->seen, SIZE_MAX);
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
    rv__store_close(fx->store);
    faulty_done(&fx->quick);
    rv__buf_done(&fx->seen);
    (void)nftw(fx->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fx->bytes);
    free(fx);
    return 0;
}

static void open_store(struct fixture *fx)
{
    rv_error err = { 0, "" };
    if (rv__store_open(&(struct rv__store_opts){ .path = fx->path, .vfs = VFS }, &fx->store, &err) <
        0)
        fail_msg("%s", err.message);
}

static void close_store(struct fixture *fx)
{
    rv__store_close(fx->store);
    fx->store = NULL;
}

/* ---------------------------------------------------------------------------- what was there --- */

/* Three runs, of which "b" has a large text in every place, each of another letter. */
static void make_store(struct fixture *fx)
{
    static char large[7][LARGE];
    static const char letters[] = "FIVRSED";
    struct rv__str texts[7];
    for (size_t i = 0; i < 7; i++) {
        memset(large[i], letters[i], LARGE);
        texts[i] = (struct rv__str){ large[i], LARGE };
    }
    struct rv__store_run a = { .id = rv__str("a"), .status = rv__str("s"), .active = true };
    struct rv__store_run b = { .id = rv__str("b"),
                               .workflow = rv__str("w"),
                               .version = rv__str("v"),
                               .status = rv__str("s"),
                               .input = texts[1],
                               .input_key = rv__str("k"),
                               .error = texts[5],
                               .failed_step = rv__str("f"),
                               .suspension = rv__str("x"),
                               .created_ms = 5,
                               .active = true };
    struct rv__store_run c = a;
    c.id = rv__str("c");
    struct rv__store_result results[] = { { rv__str("k"), 0, rv__str("r") },
                                          { rv__str("k"), 1, rv__str("r") },
                                          { rv__str("big"), 0, texts[3] } };
    struct rv__store_value value = { 1, texts[2] };
    struct rv__store_definition definition = { rv__str("v"), texts[6] };
    struct rv__store_log line = { .path = rv__str("p"),
                                  .step = rv__str("s"),
                                  .message = rv__str("m"),
                                  .metadata = rv__str("{}") };
    struct rv__store_write writes[] = {
        { .run = a.id, .row = &a, .facts = rv__str("fa") },
        { .run = b.id,
          .row = &b,
          .facts = texts[0],
          .results = results,
          .result_count = 3,
          .values = &value,
          .value_count = 1,
          .snapshot = texts[4],
          .logs = &line,
          .log_count = 1,
          .definitions = &definition,
          .definition_count = 1 },
        { .run = c.id, .row = &c, .facts = rv__str("fc") },
    };
    open_store(fx);
    assert_int_equal(rv__store_commit(fx->store, writes, 3, NULL), RV_OK);
    close_store(fx);
    FILE *file = fopen(fx->path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    fx->size = (size_t)ftell(file);
    rewind(file);
    fx->bytes = malloc(fx->size);
    assert_non_null(fx->bytes);
    assert_int_equal(fread(fx->bytes, 1, fx->size, file), fx->size);
    assert_int_equal(fclose(file), 0);
}

/* The file, with these bytes and no others. */
static void put_back(struct fixture *fx, const char *bytes)
{
    static const char *const ends[] = { "-wal", "-shm" };
    char path[128];
    close_store(fx);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s", fx->path, ends[i]);
        (void)unlink(path); /* they may not be there */
    }
    FILE *file = fopen(fx->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, fx->size, file), fx->size);
    assert_int_equal(fclose(file), 0);
}

/* The first overflow page that is full of a letter leads nowhere. */
static void tear(struct fixture *fx, char letter)
{
    char *copy = malloc(fx->size);
    assert_non_null(copy);
    memcpy(copy, fx->bytes, fx->size);
    bool torn = false;
    for (size_t page = 4096; page < fx->size && !torn; page += 4096) {
        size_t at = 4;
        while (at < 4096 && copy[page + at] == letter)
            at++;
        torn = at == 4096;
        if (torn)
            memset(copy + page, 0x7f, 4);
    }
    assert_true(torn);
    put_back(fx, copy);
    free(copy);
    open_store(fx);
}

static void execute(struct fixture *fx, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(fx->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ------------------------------------------------------------------------------ what is read --- */

static int see_run(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    assert_true(!row->damaged || row->why.len > 0);
    rv__buf_fmt(&fx->seen, "%.*s%s ", RV__ARG(row->id), row->damaged ? "!" : "");
    return RV_OK;
}

static int see_text(void *arg, uint64_t seq, struct rv__str text)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "%zu ", text.len);
    return RV_OK;
}

static int see_result(void *arg, int64_t index, struct rv__str json)
{
    return see_text(arg, (uint64_t)index, json);
}

static int see_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "%.*s%s ", RV__ARG(run), rv__str_none(facts) ? "!" : "");
    return RV_OK;
}

static int see_log(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    assert_true(line->level >= STORE_DEBUG && line->level <= STORE_ERROR);
    rv__buf_fmt(&fx->seen, "%.*s:%.*s ", RV__ARG(line->run), RV__ARG(line->message));
    return RV_OK;
}

static int see_count(void *arg, struct rv__str status, uint64_t runs)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s=%llu ", RV__ARG(status), (unsigned long long)runs);
    return RV_OK;
}

static const struct rv__store_visitor visitor = { see_run, see_text, see_text, see_text, see_log };

static void seen(struct fixture *fx, const char *expected)
{
    assert_str(rv__buf_view(&fx->seen), expected);
    rv__buf_reset(&fx->seen);
}

static int read_journal(struct fixture *fx)
{
    return rv__store_journal(fx->store, rv__str("b"), 0, see_text, fx, NULL);
}

static int read_whole(struct fixture *fx)
{
    return rv__store_whole(fx->store, rv__str("b"), &visitor, fx, NULL);
}

static int read_run(struct fixture *fx)
{
    return rv__store_run(fx->store, rv__str("b"), see_run, fx, NULL);
}

static int read_value(struct fixture *fx)
{
    return rv__store_value_read(fx->store, rv__str("b"), 1, see_text, fx, NULL);
}

static int read_snapshot(struct fixture *fx)
{
    return rv__store_snapshot(fx->store, rv__str("b"), see_text, fx, NULL);
}

static int read_definition(struct fixture *fx)
{
    return rv__store_definition(fx->store, rv__str("v"), see_text, fx, NULL);
}

static int read_large_result(struct fixture *fx)
{
    return rv__store_results(fx->store, rv__str("b"), rv__str("big"), 0, 9, see_result, fx, NULL);
}

static int read_results(struct fixture *fx)
{
    return rv__store_results(fx->store, rv__str("b"), rv__str("k"), 0, 9, see_result, fx, NULL);
}

static int read_results_seq(struct fixture *fx)
{
    uint64_t seq;
    return rv__store_results_seq(fx->store, rv__str("b"), &seq, NULL);
}

static void lists_say(struct fixture *fx, const char *with_input, const char *without)
{
    struct rv__store_query query = { .input_bytes = SIZE_MAX };
    assert_int_equal(rv__store_active(fx->store, see_run, fx, NULL), RV_OK);
    seen(fx, with_input);
    assert_int_equal(rv__store_list(fx->store, &query, see_run, fx, NULL, NULL), RV_OK);
    assert_int_equal(fx->seen.len, strlen(with_input)); /* in another order */
    rv__buf_reset(&fx->seen);
    query.input_bytes = 0;
    assert_int_equal(rv__store_list(fx->store, &query, see_run, fx, NULL, NULL), RV_OK);
    assert_int_equal(fx->seen.len, strlen(without));
    rv__buf_reset(&fx->seen);
}

/* ------------------------------------------------------------------------------------- tests --- */

static void a_torn_page_is_the_error_of_its_run(void **state)
{
    struct fixture *fx = *state;
    static const struct {
        char letter;
        int (*read)(struct fixture *fx);
        const char *with_input, *without, *feed;
    } tears[] = {
        { 'F', read_journal, "a b c ", "a b c ", "a b! c " },
        { 'F', read_whole, "a b c ", "a b c ", "a b! c " },
        { 'I', read_run, "a b! c ", "a b c ", "a b c " },
        { 'E', read_run, "a b! c ", "a b! c ", "a b c " },
        { 'V', read_value, "a b c ", "a b c ", "a b c " },
        { 'V', read_whole, "a b c ", "a b c ", "a b c " },
        { 'R', read_large_result, "a b c ", "a b c ", "a b c " },
        { 'S', read_snapshot, "a b c ", "a b c ", "a b c " },
        { 'D', read_definition, "a b c ", "a b c ", "a b c " },
    };
    make_store(fx);
    for (size_t i = 0; i < sizeof tears / sizeof *tears; i++) {
        tear(fx, tears[i].letter);
        int rc = tears[i].read(fx);
        if (rc != RV_EPARSE)
            fail_msg("tear %zu: %d", i, rc);
        rv__buf_reset(&fx->seen);
        lists_say(fx, tears[i].with_input, tears[i].without);
        assert_int_equal(rv__store_feed(fx->store, 0, 9, see_feed, fx, NULL), RV_OK);
        seen(fx, tears[i].feed);
        assert_int_equal(rv__store_feed(fx->store, 0, 2, see_feed, fx, NULL), RV_OK);
        assert_int_equal(fx->seen.len, strlen(tears[i].feed) - 2);
        rv__buf_reset(&fx->seen);
    }
}

static int end_at_b(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    (void)see_feed(arg, seq, run, facts);
    return rv__str_is(run, "b") ? RV_EPARSE : RV_OK;
}

static void a_visitor_may_find_a_row_damaged_itself(void **state)
{
    struct fixture *fx = *state;
    make_store(fx);
    open_store(fx);
    assert_int_equal(rv__store_feed(fx->store, 0, 9, end_at_b, fx, NULL), RV_EPARSE);
    seen(fx, "a b ");
    tear(fx, 'F');
    assert_int_equal(rv__store_feed(fx->store, 0, 9, end_at_b, fx, NULL), RV_EPARSE);
    seen(fx, "a b! ");
}

static void what_cannot_be_written_over_damage_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_touch touch = { .status = rv__str("t"), .active = true };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"), .touch = &touch, .facts = rv__str("2") },
        { .run = rv__str("b"), .touch = &touch, .facts = rv__str("2") },
        { .run = rv__str("c"), .touch = &touch, .facts = rv__str("2") },
    };
    make_store(fx);
    tear(fx, 'E');
    assert_int_equal(rv__store_commit(fx->store, writes, 3, NULL), RV_OK);
    assert_int_equal(writes[0].outcome, STORE_WRITTEN);
    assert_int_equal(writes[1].outcome, STORE_REFUSED);
    assert_int_equal(writes[1].why.code, RV_EPARSE);
    assert_int_equal(writes[2].outcome, STORE_WRITTEN);
    assert_int_equal(rv__store_feed(fx->store, 0, 9, see_feed, fx, NULL), RV_OK);
    seen(fx, "a b c a c ");
}

static void columns_of_other_types_are_the_error_of_their_run(void **state)
{
    struct fixture *fx = *state;
    static const struct {
        const char *sql; /* x: a blob that nobody wrote */
        int (*read)(struct fixture *fx);
        int rc;
        const char *active;
    } rows[] = {
        { "UPDATE runs SET input_key = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET failed_step = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET suspension = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET error = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET created = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET created = 'soon' WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET started = 1.5 WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET completed = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET wake_at = x WHERE key = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE runs SET id = x WHERE key = 2", read_run, RV_ENOTFOUND, "a ! c " },
        { "UPDATE inputs SET input = x WHERE run = 2", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE names SET name = x WHERE name = 'w'", read_run, RV_EPARSE, "a b! c " },
        { "UPDATE journal SET facts = x WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE journal SET prev = x WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE journal SET prev = seq WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE journal SET prev = -1 WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE journal SET prev = 1 WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE journal SET run = 3 WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "DELETE FROM journal WHERE run = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE runs SET head = x WHERE key = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE runs SET head = -7 WHERE key = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE runs SET head = 99 WHERE key = 2", read_journal, RV_EPARSE, "a b c " },
        { "UPDATE runs SET head = 1 WHERE key = 2", read_journal, RV_OK, "a b c " }, /* the tail */
        { "UPDATE runs SET head = 1, active = 0 WHERE key = 2", read_journal, RV_EPARSE, "a c " },
        { "UPDATE large_values SET json = x", read_value, RV_EPARSE, "a b c " },
        { "UPDATE snapshots SET state = x", read_snapshot, RV_EPARSE, "a b c " },
        { "UPDATE snapshots SET seq = -1", read_snapshot, RV_EPARSE, "a b c " },
        { "UPDATE snapshots SET seq = 'x'", read_snapshot, RV_EPARSE, "a b c " },
        { "UPDATE definitions SET plan = x", read_definition, RV_EPARSE, "a b c " },
        { "UPDATE results_seqs SET seq = x", read_results_seq, RV_EPARSE, "a b c " },
        { "UPDATE results SET json = x WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET json = 'r' WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = x WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = '' WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = '1' WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = '1,,' WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = '1,-1' WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET sizes = '1,99999999999999999999' WHERE key = 'k'", read_results,
          RV_EPARSE, "a b c " },
        { "UPDATE results SET count = x WHERE key = 'k'", read_results, RV_EPARSE, "a b c " },
        { "UPDATE results SET count = 9223372036854775807 WHERE key = 'k'", read_results, RV_EPARSE,
          "a b c " },
        { "UPDATE results SET count = -1 WHERE key = 'k'", read_results, RV_OK, "a b c " },
        { "UPDATE results SET first = 9223372036854775807 WHERE key = 'k'", read_results, RV_EPARSE,
          "a b c " },
    };
    make_store(fx);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char sql[256];
        const char *blob = strstr(rows[i].sql, "= x");
        size_t head = blob != NULL ? (size_t)(blob - rows[i].sql) + 2 : strlen(rows[i].sql);
        snprintf(sql, sizeof sql, "%.*s%s%s", (int)head, rows[i].sql, blob != NULL ? "x'00ff'" : "",
                 blob != NULL ? blob + 3 : "");
        put_back(fx, fx->bytes);
        execute(fx, sql);
        open_store(fx);
        int rc = rows[i].read(fx);
        if (rc != rows[i].rc)
            fail_msg("%s: %d", sql, rc);
        rv__buf_reset(&fx->seen);
        assert_int_equal(rv__store_active(fx->store, see_run, fx, NULL), RV_OK);
        seen(fx, rows[i].active);
    }
}

static void absurd_numbers_do_not_use_up_the_others(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = { .id = rv__str("d"), .status = rv__str("s"), .active = true };
    struct rv__store_write write = { .run = rv__str("d"), .row = &row, .facts = rv__str("1") };
    make_store(fx);
    execute(fx, "INSERT INTO journal VALUES(9223372036854775807, 2, 0, 'x');"
                "UPDATE logs SET id = 9223372036854775806;"
                "UPDATE runs SET key = 9223372036854775807 WHERE id = 'a';"
                "UPDATE counts SET runs = -5; INSERT OR REPLACE INTO meta VALUES('seq', -1);"
                "UPDATE logs SET level = 77");
    open_store(fx);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
        assert_true(write.number > 0 && write.number < 100 && write.seq > 0 && write.seq < 100);
        write.row = NULL;
    }
    assert_int_equal(rv__store_counts(fx->store, see_count, fx, NULL), RV_OK);
    seen(fx, "s=0 ");
    close_store(fx);
    execute(fx, "UPDATE counts SET runs = 7; UPDATE names SET name = x'00' WHERE name = 's';"
                "INSERT INTO names VALUES(77, 't'); INSERT INTO counts VALUES(77, 3)");
    open_store(fx);
    assert_int_equal(rv__store_counts(fx->store, see_count, fx, NULL), RV_OK);
    seen(fx, "t=3 ");
    struct rv__store_log_query lines = { .limit = 9 };
    assert_int_equal(rv__store_logs(fx->store, &lines, see_log, fx, NULL), RV_OK);
    seen(fx, "b:m ");
    assert_int_equal(rv__store_feed(fx->store, 0, 99, see_feed, fx, NULL), RV_OK);
    seen(fx, "b c d d d b ");
}

static void a_damaged_line_does_not_hide_the_log(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_log_query lines = { .limit = 9 };
    make_store(fx);
    execute(fx,
            "INSERT INTO logs SELECT 1000, run, at, level, attempt, step, path, 'late', metadata,"
            " kind FROM logs; UPDATE logs SET metadata = x'00' WHERE id < 1000");
    open_store(fx);
    assert_int_equal(rv__store_logs(fx->store, &lines, see_log, fx, NULL), RV_OK);
    seen(fx, "b:(this line of the log is damaged) b:late ");
    lines.run = rv__str("b");
    assert_int_equal(rv__store_logs(fx->store, &lines, see_log, fx, NULL), RV_OK);
    seen(fx, "b:(this line of the log is damaged) b:late ");
}

/* Every call, whatever it says. */
static bool use_all(struct fixture *fx)
{
    int (*const reads[])(struct fixture *) = { read_journal,      read_whole,       read_run,
                                               read_value,        read_snapshot,    read_definition,
                                               read_large_result, read_results_seq, read_results };
    struct rv__store_query query = { .input_bytes = SIZE_MAX, .text = rv__str("F") };
    struct rv__store_log_query lines = { .limit = SIZE_MAX };
    struct rv__store_touch touch = { .status = rv__str("t"), .completed_ms = 5 };
    struct rv__store_result result = { rv__str("k"), 2, rv__str("r") };
    struct rv__store_usage usage;
    struct rv__str ids[] = { rv__str("b") };
    rv_error err = { 0, "" };
    bool more = true;
    int rc = rv__store_open(&(struct rv__store_opts){ .path = fx->path, .vfs = VFS }, &fx->store,
                            &err);
    if (rc < 0) {
        assert_true(rc == RV_ESTORE && err.message[0] != '\0');
        return false;
    }
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        rc = reads[i](fx);
        assert_true(rc == RV_OK || rc == RV_EPARSE || rc == RV_ESTORE || rc == RV_ENOTFOUND);
    }
    int answers[] = {
        rv__store_active(fx->store, see_run, fx, NULL),
        rv__store_due(fx->store, 9, NULL, 9, see_run, fx, NULL),
        rv__store_finished(fx->store, NULL, 9, see_run, fx, NULL),
        rv__store_list(fx->store, &query, see_run, fx, NULL, NULL),
        rv__store_feed(fx->store, 0, SIZE_MAX, see_feed, fx, NULL),
        rv__store_logs(fx->store, &lines, see_log, fx, NULL),
        rv__store_counts(fx->store, see_count, fx, NULL),
        rv__store_usage(fx->store, &usage, NULL),
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_true(answers[i] == RV_OK || answers[i] == RV_ESTORE);
    for (int i = 0; i < 3; i++) {
        static const char *const runs[] = { "a", "b", "c" };
        struct rv__store_write write = { .run = rv__str(runs[i]),
                                         .facts = rv__str("2"),
                                         .touch = &touch,
                                         .results = &result,
                                         .result_count = 1 };
        rc = rv__store_commit(fx->store, &write, 1, NULL);
        assert_true(rc == RV_OK || rc == RV_ESTORE);
    }
    for (int i = 0; i < 5 && more; i++) {
        rc = rv__store_forget(fx->store, ids, 1, &more, NULL);
        assert_true(rc == RV_OK || rc == RV_ESTORE || rc == RV_ESTATE || rc == RV_EINVAL);
    }
    rv__buf_reset(&fx->seen);
    close_store(fx);
    return true;
}

static void bytes_at_random_do_no_harm(void **state)
{
    struct fixture *fx = *state;
    const char *seeds = getenv("RIVAL_SEEDS");
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : 300;
    make_store(fx);
    char *copy = malloc(fx->size);
    assert_non_null(copy);
    int opened = 0;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct rv__random random;
        rv__random_init(&random, seed);
        memcpy(copy, fx->bytes, fx->size);
        size_t bytes = 1 + rv__random_below(&random, 30);
        for (size_t i = 0; i < bytes; i++) {
            /* Half of them where the b-trees keep their accounts: at the beginning of a page. */
            size_t at = rv__random_below(&random, fx->size);
            if (rv__random_below(&random, 2) == 0)
                at = at / 4096 * 4096 + rv__random_below(&random, 40);
            copy[at] = (char)rv__random_below(&random, 256);
        }
        put_back(fx, copy);
        opened += use_all(fx);
    }
    free(copy);
    assert_true(opened > (int)count / 4);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_torn_page_is_the_error_of_its_run),
        CASE(a_visitor_may_find_a_row_damaged_itself),
        CASE(what_cannot_be_written_over_damage_is_refused),
        CASE(columns_of_other_types_are_the_error_of_their_run),
        CASE(absurd_numbers_do_not_use_up_the_others),
        CASE(a_damaged_line_does_not_hide_the_log),
        CASE(bytes_at_random_do_no_harm),
    };
#undef CASE
    return cmocka_run_group_tests_name("sqlite damage", tests, NULL, NULL);
}
