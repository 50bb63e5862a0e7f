/* forget.c: deletes runs.
 *
 * A run is deleted in one small transaction: its row is removed, and its key is added to `forgotten`. Its data is
 * deleted later, a limited piece in each call. */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

/* Limit of one call, in rows and in pages of large values: a few milliseconds, in which no commit can run. */
enum { FORGET_ROWS = 2000, PAGE_BYTES = 4096 };

static int with_key(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t key, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    return rv__sqlite_do(conn, st, err);
}

static int with_two(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t key, int64_t value,
                    rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    rv__sqlite_bind_int(conn, st, 2, value);
    return rv__sqlite_do(conn, st, err);
}

/* *forgotten becomes the run's last number, if that is greater. */
static int forget_run(struct rv__sqlite_conn *conn, struct rv__str id, uint64_t *forgotten,
                      rv_error *err)
{
    static const enum rv__sql drops[] = { SQL_DROP_RUN, SQL_DROP_INPUT, SQL_DROP_SNAPSHOT,
                                          SQL_DROP_RESULTS_SEQ };
    struct rv__sqlite_known known = { 0 }, gone = { 0 };
    int64_t last_log = 0;
    int rc = rv__sqlite_find_run(conn, id, &known, err);
    if (rc < 0 || known.key == 0)
        return rc;
    if (!known.finished)
        return rv__fail(err, RV_ESTATE, "run '%.*s' has not ended: it cannot be deleted",
                        RV__ARG(id));
    uint64_t head = rv__sqlite_head_of(conn, &known);
    rc = rv__sqlite_number(conn, SQL_LAST_LOG_OF_RUN, known.key, &last_log, err);
    uint64_t last = last_log > 0 && (uint64_t)last_log > head ? (uint64_t)last_log : head;
    if (*forgotten < last)
        *forgotten = last;
    for (size_t i = 0; i < sizeof drops / sizeof *drops && rc == RV_OK; i++)
        rc = with_key(conn, drops[i], known.key, err);
    if (rc == RV_OK)
        rc = with_two(conn, SQL_ADD_FORGOTTEN, known.key, (int64_t)head, err);
    if (rc == RV_OK)
        rc = rv__sqlite_head_set(conn, known.key, head, true,
                                 err); /* its row is not updated any more */
    rv__sqlite_runs_drop(&conn->writer.runs, known.key);
    return rc == RV_OK ? rv__sqlite_recount(conn, &known, &gone, err) : rc;
}

/* A number is never used again, even if its row is deleted. */
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

/* The next deleted run whose rows still exist, and its last journal row; *ret 0: none. */
static int next_forgotten(struct rv__sqlite_conn *conn, int64_t *ret, int64_t *ret_head,
                          rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_NEXT_FORGOTTEN, &rc, err);
    if (st == NULL)
        return rc;
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *ret = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    *ret_head = rc == 1 ? sqlite3_column_int64(st, 1) : 0;
    (void)sqlite3_reset(st);
    return RV_OK;
}

/* Delete the journal from its end. If the chain is broken, it ends there: rows before that are lost, but do no
 * harm. */
static int sweep_journal(struct rv__sqlite_conn *conn, int64_t key, int64_t head, int64_t *left,
                         rv_error *err)
{
    int rc = RV_OK;
    while (head > 0 && *left > 0 && rc == RV_OK) {
        uint64_t before = 0;
        rc = rv__sqlite_row_before(conn, key, (uint64_t)head, &before, err);
        if (rc == RV_EPARSE) {
            head = 0;
            rc = RV_OK;
            break;
        }
        if (rc == RV_OK)
            rc = with_key(conn, SQL_DROP_ROW, head, err);
        head = (int64_t)before;
        --*left;
    }
    return rc == RV_OK ? with_two(conn, SQL_MOVE_FORGOTTEN, key, head, err) : rc;
}

/* Delete large values of a run, up to the limit: each of their pages costs time. */
static int sweep_values(struct rv__sqlite_conn *conn, int64_t key, int64_t *left, rv_error *err)
{
    while (*left > 0) {
        int rc = RV_OK;
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_NEXT_VALUE, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, key);
        rc = rv__sqlite_step(conn, st, err);
        if (rc != 1)
            return rc;
        int64_t id = sqlite3_column_int64(st, 0), bytes = sqlite3_column_int64(st, 1);
        (void)sqlite3_reset(st); /* repeats the result of the step */
        rc = with_key(conn, SQL_DROP_VALUE, id, err);
        if (rc < 0)
            return rc;
        *left -= 1 + (bytes > 0 ? bytes / PAGE_BYTES : 0);
    }
    return RV_OK;
}

/* Delete at most `left` rows, or pages of values, of deleted runs. */
static int sweep(struct rv__sqlite_conn *conn, int64_t left, bool *ret_more, rv_error *err)
{
    static const enum rv__sql drops[] = { SQL_DROP_RESULTS, SQL_DROP_LOGS };
    for (;;) {
        int64_t key = 0, head = 0;
        int rc = next_forgotten(conn, &key, &head, err);
        *ret_more = rc == RV_OK && key != 0;
        if (!*ret_more || left <= 0)
            return rc;
        rc = sweep_journal(conn, key, head, &left, err);
        if (rc < 0)
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
        if (left > 0)
            rc = sweep_values(conn, key, &left, err);
        left--; /* for the run itself: many runs cost time too */
        if (rc == RV_OK && left > 0)
            rc = with_key(conn, SQL_DROP_FORGOTTEN, key, err);
        if (rc < 0)
            return rc;
    }
}

int rv__sqlite_forget(struct rv__store *store, const struct rv__str *runs, size_t count_,
                      bool *ret_more, rv_error *err)
{
    bool more = false;
    int rc = rv__sqlite_may_write(store, err);
    if (rc < 0)
        return rc;
    if (count_ > RV__STORE_LIST_MAX)
        return rv__fail(err, RV_EINVAL, "%zu runs are too many to delete at once: at most %d",
                        count_, (int)RV__STORE_LIST_MAX);

    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    uint64_t forgotten = conn->writer.forgotten;
    rc = rv__sqlite_begin(conn, err);
    for (size_t i = 0; i < count_ && rc == RV_OK; i++)
        rc = forget_run(conn, runs[i], &forgotten, err);
    if (rc == RV_OK)
        rc = sweep(conn, FORGET_ROWS, &more, err);
    if (rc == RV_OK)
        rc = keep_numbers(conn, forgotten, err);
    if (rc == RV_OK)
        rc = rv__sqlite_keep(conn, &(struct rv__sqlite_numbers){ conn->writer.seq, 0 }, err);
    if (rc == RV_OK) {
        conn->writer.forgotten = forgotten;
        *ret_more = more;
    } else {
        rv__sqlite_roll_back(conn);
    }
    rv__sqlite_leave(conn);
    return rv__sqlite_of_store(rc, err);
}
