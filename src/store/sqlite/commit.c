/* commit.c: every writing function of the SQLite store.
 *
 * One transaction for each call. Whatever fails in it, it is rolled back as a whole, and with it
 * what the writer has in memory: the numbers it gives are taken over only after the commit, and the
 * caches are emptied. So a call that failed can be made again, and a disk that healed is enough.
 *
 * A commit allocates nothing of ours: texts are bound where they lie, and every statement is kept. */
#include "store/sqlite/sqlite.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"

/* Rows that one call of forget deletes at most: a few milliseconds in which no commit goes on. */
enum { FORGET_ROWS = 2000 };

/* ------------------------------------------------------------------------- transactions --- */

static int begin(struct rv__sqlite_conn *conn, rv_error *err)
{
    conn->writer.delta_count = 0;
    return rv__sqlite_run_sql(conn, SQL_BEGIN, err);
}

static void roll_back(struct rv__sqlite_conn *conn)
{
    /* SQLite may have done it itself. Should it fail, the next BEGIN says what is wrong. */
    if (!sqlite3_get_autocommit(conn->db))
        (void)rv__sqlite_run_sql(conn, SQL_ROLLBACK, NULL);
    rv__sqlite_cache_clear(&conn->writer.runs);
    rv__sqlite_cache_clear(&conn->writer.names);
}

static int flush_counts(struct rv__sqlite_conn *conn, rv_error *err)
{
    struct rv__sqlite_writer *w = &conn->writer;
    int rc = RV_OK;
    for (size_t i = 0; i < w->delta_count && rc == RV_OK; i++) {
        if (w->deltas[i].runs == 0)
            continue;
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_COUNT, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, w->deltas[i].status);
        rv__sqlite_bind_int(conn, st, 2, w->deltas[i].runs);
        rc = rv__sqlite_do(conn, st, err);
    }
    w->delta_count = 0;
    return rc;
}

static int count(struct rv__sqlite_conn *conn, int64_t status, int64_t more, rv_error *err)
{
    struct rv__sqlite_writer *w = &conn->writer;
    size_t i = 0;
    while (i < w->delta_count && w->deltas[i].status != status)
        i++;
    if (i == SQLITE_DELTAS) {
        int rc = flush_counts(conn, err);
        if (rc < 0)
            return rc;
        i = 0;
    }
    if (i == w->delta_count) {
        w->deltas[i].status = status;
        w->deltas[i].runs = 0;
        w->delta_count++;
    }
    w->deltas[i].runs += more;
    return RV_OK;
}

/* -------------------------------------------------------------------------- runs and names --- */

/* What is known of a run before the write, and what will be after it. */
struct known {
    int64_t key; /* 0: it has no row */
    int64_t status;
    bool finished; /* and at rest */
};

static int find_run(struct rv__sqlite_conn *conn, struct rv__str id, struct known *ret,
                    rv_error *err)
{
    struct rv__sqlite_slot *slot = rv__sqlite_cache_find(&conn->writer.runs, id);
    int rc = RV_OK;
    if (slot != NULL) {
        *ret = (struct known){ slot->key, slot->status, slot->finished };
        return RV_OK;
    }
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FIND_RUN, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, id);
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *ret = (struct known){ 0 };
    if (rc == 1) {
        ret->key = sqlite3_column_int64(st, 0);
        ret->status = sqlite3_column_int64(st, 1); /* NULL is 0 */
        ret->finished = sqlite3_column_int64(st, 2) != 0 && sqlite3_column_int64(st, 3) == 0 &&
                        sqlite3_column_int64(st, 4) == 0;
    }
    (void)sqlite3_reset(st);
    return RV_OK;
}

static void keep_run(struct rv__sqlite_conn *conn, struct rv__str id, const struct known *known)
{
    struct rv__sqlite_slot *slot = rv__sqlite_cache_put(&conn->writer.runs, id);
    if (slot == NULL)
        return;
    slot->key = known->key;
    slot->status = known->status;
    slot->finished = known->finished;
}

/* The id of a name, which is given one if it is new. None: 0. */
static int name_id(struct rv__sqlite_conn *conn, struct rv__str name, int64_t *ret, rv_error *err)
{
    struct rv__sqlite_slot *slot;
    sqlite3_stmt *st;
    int rc = RV_OK;
    *ret = 0;
    if (rv__str_none(name))
        return RV_OK;
    slot = rv__sqlite_cache_find(&conn->writer.names, name);
    if (slot != NULL) {
        *ret = slot->key;
        return RV_OK;
    }
    st = rv__sqlite_get(conn, SQL_FIND_NAME, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, name);
    rc = rv__sqlite_step(conn, st, err);
    if (rc == 1) {
        *ret = sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    } else if (rc == 0) {
        st = rv__sqlite_get(conn, SQL_ADD_NAME, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_str(conn, st, 1, name);
        rc = rv__sqlite_do(conn, st, err);
        *ret = sqlite3_last_insert_rowid(conn->db);
    }
    if (rc < 0)
        return rc;
    slot = rv__sqlite_cache_put(&conn->writer.names, name);
    if (slot != NULL)
        slot->key = *ret;
    return RV_OK;
}

static void bind_name(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at, int64_t id)
{
    if (id != 0)
        rv__sqlite_bind_int(conn, st, at, id);
    else
        rv__sqlite_bind_str(conn, st, at, (struct rv__str){ NULL, 0 });
}

/* The run was `before` (key 0: nothing) and is `after` (key 0: gone). */
static int recount(struct rv__sqlite_conn *conn, const struct known *before,
                   const struct known *after, rv_error *err)
{
    int rc = RV_OK;
    if ((before->key == 0) != (after->key == 0))
        rc = count(conn, COUNT_RUNS, after->key != 0 ? 1 : -1, err);
    if (rc == RV_OK && before->status != after->status && before->status != 0)
        rc = count(conn, before->status, -1, err);
    if (rc == RV_OK && before->status != after->status && after->status != 0)
        rc = count(conn, after->status, 1, err);
    if (rc == RV_OK && before->finished != after->finished)
        rc = count(conn, COUNT_FINISHED, after->finished ? 1 : -1, err);
    return rc;
}

/* ------------------------------------------------------------------------------- one write --- */

static int write_input(struct rv__sqlite_conn *conn, int64_t key, bool is_new, struct rv__str input,
                       rv_error *err)
{
    int rc = RV_OK;
    if (is_new && rv__str_none(input))
        return RV_OK;
    bool none = rv__str_none(input);
    sqlite3_stmt *st = rv__sqlite_get(conn, none ? SQL_DROP_INPUT : SQL_SET_INPUT, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    if (!none)
        rv__sqlite_bind_str(conn, st, 2, input);
    return rv__sqlite_do(conn, st, err);
}

static int write_row(struct rv__sqlite_conn *conn, const struct rv__store_run *row,
                     struct known *known, uint64_t *next_run, rv_error *err)
{
    struct known before = *known;
    int64_t workflow = 0, version = 0, status = 0;
    bool is_new = known->key == 0;
    int rc = name_id(conn, row->workflow, &workflow, err);
    if (rc == RV_OK)
        rc = name_id(conn, row->version, &version, err);
    if (rc == RV_OK)
        rc = name_id(conn, row->status, &status, err);
    if (rc < 0)
        return rc;

    if (is_new)
        known->key = (int64_t)++ * next_run;
    known->status = status;
    known->finished = row->completed_ms != 0 && !row->active && row->wake_at_ms == 0;
    sqlite3_stmt *st = rv__sqlite_get(conn, is_new ? SQL_ADD_RUN : SQL_SET_RUN, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, known->key);
    if (is_new)
        rv__sqlite_bind_str(conn, st, 2, row->id);
    bind_name(conn, st, 3, workflow);
    bind_name(conn, st, 4, version);
    bind_name(conn, st, 5, status);
    rv__sqlite_bind_int(conn, st, 6, row->active);
    rv__sqlite_bind_int(conn, st, 7, row->wake_at_ms);
    rv__sqlite_bind_int(conn, st, 8, row->created_ms);
    rv__sqlite_bind_int(conn, st, 9, row->started_ms);
    rv__sqlite_bind_int(conn, st, 10, row->completed_ms);
    rv__sqlite_bind_str(conn, st, 11, row->input_key);
    rv__sqlite_bind_str(conn, st, 12, row->failed_step);
    rv__sqlite_bind_str(conn, st, 13, row->error);
    rv__sqlite_bind_str(conn, st, 14, row->suspension);
    rc = rv__sqlite_do(conn, st, err);
    if (rc == RV_OK)
        rc = write_input(conn, known->key, is_new, row->input, err);
    return rc == RV_OK ? recount(conn, &before, known, err) : rc;
}

static int write_touch(struct rv__sqlite_conn *conn, const struct rv__store_touch *touch,
                       struct known *known, rv_error *err)
{
    struct known before = *known;
    int64_t status = 0;
    int rc = name_id(conn, touch->status, &status, err);
    if (rc < 0)
        return rc;
    known->status = status;
    known->finished = touch->completed_ms != 0 && !touch->active && touch->wake_at_ms == 0;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_TOUCH_RUN, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, known->key);
    bind_name(conn, st, 2, status);
    rv__sqlite_bind_int(conn, st, 3, touch->active);
    rv__sqlite_bind_int(conn, st, 4, touch->wake_at_ms);
    rv__sqlite_bind_int(conn, st, 5, touch->completed_ms);
    rv__sqlite_bind_str(conn, st, 6, touch->failed_step);
    rv__sqlite_bind_str(conn, st, 7, touch->error);
    rv__sqlite_bind_str(conn, st, 8, touch->suspension);
    rc = rv__sqlite_do(conn, st, err);
    return rc == RV_OK ? recount(conn, &before, known, err) : rc;
}

static int write_facts(struct rv__sqlite_conn *conn, int64_t key, uint64_t seq,
                       struct rv__str facts, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_JOURNAL, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, (int64_t)seq);
    rv__sqlite_bind_int(conn, st, 2, key);
    rv__sqlite_bind_str(conn, st, 3, facts);
    return rv__sqlite_do(conn, st, err);
}

static int write_results(struct rv__sqlite_conn *conn, int64_t key,
                         const struct rv__store_write *write, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < write->result_count && rc == RV_OK; i++) {
        const struct rv__store_result *result = &write->results[i];
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_RESULT, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, key);
        rv__sqlite_bind_str(conn, st, 2, result->key);
        rv__sqlite_bind_int(conn, st, 3, result->index);
        rv__sqlite_bind_str(conn, st, 4, result->json);
        rc = rv__sqlite_do(conn, st, err);
        if (rc < 0 && (sqlite3_errcode(conn->db) & 0xff) == SQLITE_CONSTRAINT)
            return rv__fail(err, RV_EINVAL, "run '%.*s' has a result '%.*s' %lld already",
                            RV__ARG(write->run), RV__ARG(result->key), (long long)result->index);
    }
    return rc;
}

/* The last seq of its journal rows, or the last id of its log lines; 0 = it has none. */
static int last_of_run(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t key, uint64_t *ret,
                       rv_error *err)
{
    int64_t last = 0;
    int rc = rv__sqlite_number(conn, sql, key, &last, err);
    if (rc == RV_OK)
        *ret = (uint64_t)last;
    return rc;
}

static int write_snapshot(struct rv__sqlite_conn *conn, int64_t key, uint64_t seq,
                          struct rv__str state, rv_error *err)
{
    int rc = seq != 0 ? RV_OK : last_of_run(conn, SQL_LAST_OF_RUN, key, &seq, err);
    sqlite3_stmt *st = rc == RV_OK ? rv__sqlite_get(conn, SQL_SET_SNAPSHOT, &rc, err) : NULL;
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    rv__sqlite_bind_int(conn, st, 2, (int64_t)seq);
    rv__sqlite_bind_str(conn, st, 3, state);
    return rv__sqlite_do(conn, st, err);
}

static int write_logs(struct rv__sqlite_conn *conn, int64_t key,
                      const struct rv__store_write *write, uint64_t *next_seq, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < write->log_count && rc == RV_OK; i++) {
        const struct rv__store_log *line = &write->logs[i];
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_LOG, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, (int64_t)++ * next_seq);
        rv__sqlite_bind_int(conn, st, 2, key);
        rv__sqlite_bind_int(conn, st, 3, line->at_ms);
        rv__sqlite_bind_int(conn, st, 4, line->level);
        rv__sqlite_bind_int(conn, st, 5, line->attempt);
        rv__sqlite_bind_str(conn, st, 6, line->step);
        rv__sqlite_bind_str(conn, st, 7, line->path);
        rv__sqlite_bind_str(conn, st, 8, line->message);
        rv__sqlite_bind_str(conn, st, 9, line->metadata);
        rc = rv__sqlite_do(conn, st, err);
    }
    return rc;
}

static int write_definition(struct rv__sqlite_conn *conn, struct rv__str hash, struct rv__str json,
                            rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_DEFINITION, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, hash);
    rv__sqlite_bind_str(conn, st, 2, json);
    return rv__sqlite_do(conn, st, err);
}

/* The numbers a transaction gives; they become the writer's when it is on disk. */
struct numbers {
    uint64_t seq, run;
};

static int write_one(struct rv__sqlite_conn *conn, const struct rv__store_write *write,
                     struct numbers *n, rv_error *err)
{
    struct known known = { 0 };
    uint64_t seq = 0;
    int rc = RV_OK;

    for (size_t i = 0; i < write->definition_count && rc == RV_OK; i++)
        rc = write_definition(conn, write->definitions[i].hash, write->definitions[i].json, err);
    if (rc == RV_OK)
        rc = find_run(conn, write->run, &known, err);
    if (rc < 0)
        return rc;

    if (write->row != NULL && write->touch != NULL)
        return rv__fail(err, RV_EINVAL, "run '%.*s' gets a row and a touch at once",
                        RV__ARG(write->run));
    if (write->row != NULL && !rv__str_eq(write->row->id, write->run))
        return rv__fail(err, RV_EINVAL, "the row of '%.*s' is written for run '%.*s'",
                        RV__ARG(write->row->id), RV__ARG(write->run));
    if (write->row != NULL)
        rc = write_row(conn, write->row, &known, &n->run, err);
    else if (known.key == 0)
        return rv__fail(err, RV_EINVAL, "there is no run '%.*s'", RV__ARG(write->run));
    else if (write->touch != NULL)
        rc = write_touch(conn, write->touch, &known, err);
    if (rc < 0)
        return rc;

    keep_run(conn, write->run, &known);
    rc = write_logs(conn, known.key, write, &n->seq, err);
    if (rc == RV_OK && !rv__str_none(write->facts)) {
        seq = ++n->seq;
        rc = write_facts(conn, known.key, seq, write->facts, err);
    }
    if (rc == RV_OK)
        rc = write_results(conn, known.key, write, err);
    if (rc == RV_OK && !rv__str_none(write->snapshot))
        rc = write_snapshot(conn, known.key, seq, write->snapshot, err);
    return rc;
}

static int refuse(struct rv__store *store, rv_error *err)
{
    return ((struct rv__sqlite *)store)->read_only
               ? rv__fail(err, RV_ESTATE, "the store was opened for reading only")
               : RV_OK;
}

int rv__sqlite_commit(struct rv__store *store, struct rv__store_write *writes, size_t count_,
                      rv_error *err)
{
    int rc = refuse(store, err);
    if (rc < 0 || count_ == 0)
        return rc;

    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__sqlite_writer *w = &conn->writer;
    struct numbers n = { w->seq, w->run };
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    rc = begin(conn, err);
    for (size_t i = 0; i < count_ && rc == RV_OK; i++)
        rc = write_one(conn, &writes[i], &n, err);
    if (rc == RV_OK)
        rc = flush_counts(conn, err);
    if (rc == RV_OK)
        rc = rv__sqlite_run_sql(conn, SQL_COMMIT, err);
    w->stats.last_commit_ns = rv__mono_ns(rv__clock_real()) - start_ns;
    if (rc == RV_OK) {
        uint64_t seq = w->seq;
        for (size_t i = 0; i < count_; i++) {
            seq += writes[i].log_count;
            writes[i].seq = rv__str_none(writes[i].facts) ? 0 : ++seq;
        }
        w->seq = n.seq;
        w->run = n.run;
        w->stats.commits++;
    } else {
        roll_back(conn);
        w->stats.failures++;
    }
    rv__sqlite_leave(conn);
    return rc;
}

/* All that `next` gives, between begin and commit. */
static int write_next(struct rv__sqlite_conn *conn, struct rv__str run, rv__store_next_write *next,
                      void *arg, struct numbers *n, rv_error *err)
{
    struct known known = { 0 };
    struct rv__store_write write;
    int rc = find_run(conn, run, &known, err);
    if (rc == RV_OK && known.key != 0)
        return rv__fail(err, RV_EEXIST, "there is a run '%.*s' already", RV__ARG(run));
    while (rc == RV_OK && (rc = next(arg, &write, err)) == 1) {
        assert(rv__str_eq(write.run, run));
        rc = write_one(conn, &write, n, err);
    }
    return rc;
}

int rv__sqlite_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                      void *arg, rv_error *err)
{
    int rc = refuse(store, err);
    if (rc < 0)
        return rc;
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__sqlite_writer *w = &conn->writer;
    struct numbers n = { w->seq, w->run };
    rc = begin(conn, err);
    if (rc == RV_OK)
        rc = write_next(conn, run, next, arg, &n, err);
    if (rc == RV_OK)
        rc = flush_counts(conn, err);
    if (rc == RV_OK)
        rc = rv__sqlite_run_sql(conn, SQL_COMMIT, err);
    if (rc == RV_OK) {
        w->seq = n.seq;
        w->run = n.run;
        w->stats.commits++;
    } else {
        roll_back(conn);
        w->stats.failures++;
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                      rv_error *err)
{
    int rc = refuse(store, err);
    if (rc < 0)
        return rc;
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    rc = begin(conn, err);
    if (rc == RV_OK)
        rc = write_definition(conn, hash, json, err);
    if (rc == RV_OK)
        rc = rv__sqlite_run_sql(conn, SQL_COMMIT, err);
    if (rc < 0)
        roll_back(conn);
    rv__sqlite_leave(conn);
    return rc;
}

/* ---------------------------------------------------------------------------- forgetting --- */

static int with_key(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t key, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    return rv__sqlite_do(conn, st, err);
}

/* *forgotten becomes the last number that it had, if that is more. */
static int forget_run(struct rv__sqlite_conn *conn, struct rv__str id, uint64_t *forgotten,
                      rv_error *err)
{
    uint64_t last_row = 0, last_log = 0;
    static const enum rv__sql drops[] = { SQL_DROP_RUN, SQL_DROP_INPUT, SQL_DROP_SNAPSHOT,
                                          SQL_ADD_FORGOTTEN };
    struct known known = { 0 }, gone = { 0 };
    int rc = find_run(conn, id, &known, err);
    if (rc < 0 || known.key == 0)
        return rc;
    if (!known.finished)
        return rv__fail(err, RV_ESTATE, "run '%.*s' is not over: it cannot be forgotten",
                        RV__ARG(id));
    rc = last_of_run(conn, SQL_LAST_OF_RUN, known.key, &last_row, err);
    if (rc == RV_OK)
        rc = last_of_run(conn, SQL_LAST_LOG_OF_RUN, known.key, &last_log, err);
    if (last_row < last_log)
        last_row = last_log;
    if (*forgotten < last_row)
        *forgotten = last_row;
    for (size_t i = 0; i < sizeof drops / sizeof *drops && rc == RV_OK; i++)
        rc = with_key(conn, drops[i], known.key, err);
    rv__sqlite_cache_drop(&conn->writer.runs, id);
    return rc == RV_OK ? recount(conn, &known, &gone, err) : rc;
}

/* A number that was given is not given again, even if its row is deleted. */
static int keep_numbers(struct rv__sqlite_conn *conn, uint64_t forgotten, rv_error *err)
{
    const struct rv__sqlite_writer *w = &conn->writer;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = { { "seq", w->seq }, { "run", w->run }, { "forgotten", forgotten } };
    int rc = RV_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && rc == RV_OK; i++) {
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_SET_META, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_str(conn, st, 1, rv__str(numbers[i].key));
        rv__sqlite_bind_int(conn, st, 2, (int64_t)numbers[i].value);
        rc = rv__sqlite_do(conn, st, err);
    }
    return rc;
}

/* The next forgotten run whose rows are still there; *ret 0: none. */
static int next_forgotten(struct rv__sqlite_conn *conn, int64_t *ret, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_NEXT_FORGOTTEN, &rc, err);
    if (st == NULL)
        return rc;
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *ret = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_reset(st);
    return RV_OK;
}

/* Delete at most *left rows of what forgotten runs wrote. */
static int sweep(struct rv__sqlite_conn *conn, int64_t left, bool *ret_more, rv_error *err)
{
    static const enum rv__sql drops[] = { SQL_DROP_JOURNAL, SQL_DROP_RESULTS, SQL_DROP_LOGS };
    for (;;) {
        int64_t key = 0;
        int rc = next_forgotten(conn, &key, err);
        *ret_more = rc == RV_OK && key != 0;
        if (!*ret_more || left <= 0)
            return rc;
        for (size_t i = 0; i < sizeof drops / sizeof *drops && left > 0; i++) {
            sqlite3_stmt *st = rv__sqlite_get(conn, drops[i], &rc, err);
            if (st == NULL)
                return rc;
            rv__sqlite_bind_int(conn, st, 1, key);
            rv__sqlite_bind_int(conn, st, 2, left);
            rc = rv__sqlite_do(conn, st, err);
            if (rc < 0)
                return rc;
            left -= sqlite3_changes(conn->db);
        }
        left--; /* for the run itself: a great many of them are work too */
        if (left > 0)
            rc = with_key(conn, SQL_DROP_FORGOTTEN, key, err);
        if (rc < 0)
            return rc;
    }
}

int rv__sqlite_forget(struct rv__store *store, const struct rv__str *runs, size_t count_,
                      bool *ret_more, rv_error *err)
{
    bool more = false;
    int rc = refuse(store, err);
    if (rc < 0)
        return rc;
    if (count_ > RV__STORE_LIST_MAX)
        return rv__fail(err, RV_EINVAL, "%zu runs are too many to forget at once: at most %d",
                        count_, (int)RV__STORE_LIST_MAX);

    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    uint64_t forgotten = conn->writer.forgotten;
    rc = begin(conn, err);
    for (size_t i = 0; i < count_ && rc == RV_OK; i++)
        rc = forget_run(conn, runs[i], &forgotten, err);
    if (rc == RV_OK)
        rc = sweep(conn, FORGET_ROWS, &more, err);
    if (rc == RV_OK)
        rc = flush_counts(conn, err);
    if (rc == RV_OK)
        rc = keep_numbers(conn, forgotten, err);
    if (rc == RV_OK)
        rc = rv__sqlite_run_sql(conn, SQL_COMMIT, err);
    if (rc == RV_OK) {
        conn->writer.forgotten = forgotten;
        *ret_more = more;
    } else {
        roll_back(conn);
    }
    rv__sqlite_leave(conn);
    return rc;
}
