/* commit.c: the writing functions of the SQLite store, and the outcome of each write.
 *
 * One transaction for each call. If anything fails, it is rolled back as a whole, together with the writer's state
 * in memory: new numbers are stored only after the commit, and the caches are cleared. So a failed call can be
 * repeated as soon as the disk works again.
 *
 * A write that would fail again is refused, and the others are written without it. Savepoints show which one it
 * was, but cost time in every commit; so the first pass has none, and only if a write is refused, everything is
 * rolled back and written again with a savepoint before each write. At most two passes, however many are refused.
 *
 * A commit allocates no memory of ours for its rows: texts are bound without a copy, and statements are reused. */
#include "store/sqlite/sqlite.h"

#include <assert.h>

#include "base/clock.h"
#include "base/error.h"

/* ------------------------------------------------------------------------- transactions --- */

int rv__sqlite_begin(struct rv__sqlite_conn *conn, rv_error *err)
{
    int rc = conn->gone ? rv__sqlite_still_there(conn, err) : rv__sqlite_heads_ready(conn, err);
    conn->writer.deltas.count = 0;
    conn->writer.ends_begin = rv__sqlite_heads_mark(conn); /* for a roll-back */
    if (rc < 0)
        return rv__sqlite_of_store(rc, err);
    return rv__sqlite_run_sql(conn, SQL_BEGIN, err);
}

static void forget_met(struct rv__sqlite_conn *conn)
{
    rv__sqlite_runs_clear(&conn->writer.runs);
    rv__sqlite_cache_clear(&conn->writer.names);
}

void rv__sqlite_roll_back(struct rv__sqlite_conn *conn)
{
    /* SQLite may have done it itself. If it fails, the next BEGIN reports the error. */
    if (!sqlite3_get_autocommit(conn->db))
        (void)rv__sqlite_run_sql(conn, SQL_ROLLBACK, NULL);
    forget_met(conn);
    rv__sqlite_heads_undo(conn, conn->writer.ends_begin);
}

int rv__sqlite_keep(struct rv__sqlite_conn *conn, const struct rv__sqlite_numbers *n, rv_error *err)
{
    int rc = rv__sqlite_heads_refresh(conn, n->seq, err);
    if (rc == RV_OK)
        rc = rv__sqlite_flush_counts(conn, err);
    if (rc == RV_OK)
        rc = rv__sqlite_run_sql(conn, SQL_COMMIT, err);
    if (rc == RV_OK) /* after the commit: the files may have been deleted during it */
        rc = rv__sqlite_still_there(conn, err);
    if (rc == RV_OK)
        rv__sqlite_heads_keep(conn);
    return rc;
}

int rv__sqlite_may_write(struct rv__store *store, rv_error *err)
{
    return ((struct rv__sqlite *)store)->read_only
               ? rv__fail(err, RV_ESTATE, "the store was opened for reading only")
               : RV_OK;
}

/* ------------------------------------------------------------------------------- commits --- */

/* Is it permanent, whatever happens to the disk? */
static bool lasting(int rc)
{
    return rc < 0 && rc != RV_ESTORE && rc != RV_ENOMEM && rc != RV_EGONE;
}

/* Return the error of one write, from its `why`, for the whole call. */
static int fail_all(const struct rv__store_write *write, int rc, rv_error *err)
{
    if (err != NULL)
        *err = write->why;
    return rc;
}

static int keep_definitions(struct rv__sqlite_conn *conn, struct rv__store_write *write)
{
    int rc = RV_OK;
    for (size_t i = 0; i < write->definition_count && rc == RV_OK; i++)
        rc = rv__sqlite_write_definition(conn, write->definitions[i].hash,
                                         write->definitions[i].json, &write->why);
    return rc;
}

/* One write after a savepoint: if it is refused, its changes are undone. */
static int write_apart(struct rv__sqlite_conn *conn, struct rv__store_write *write,
                       struct rv__sqlite_numbers *n)
{
    struct rv__sqlite_writer *w = &conn->writer;
    struct rv__sqlite_numbers numbers = *n;
    struct rv__sqlite_deltas deltas = w->deltas;
    struct rv__sqlite_ends_mark ends = rv__sqlite_heads_mark(conn);
    int rc = rv__sqlite_run_sql(conn, SQL_SAVEPOINT, &write->why);
    if (rc == RV_OK)
        rc = rv__sqlite_write_one(conn, write, n, &write->why);
    if (lasting(rc)) {
        *n = numbers;
        w->deltas = deltas;
        forget_met(conn);
        rv__sqlite_heads_undo(conn, ends);
        int undone = rv__sqlite_run_sql(conn, SQL_ROLLBACK_TO, NULL);
        if (undone == RV_OK)
            undone = rv__sqlite_run_sql(conn, SQL_RELEASE, NULL);
        return undone < 0 ? rv__fail(&write->why, RV_ESTORE, "a refused write cannot be undone")
                          : rc;
    }
    return rc == RV_OK ? rv__sqlite_run_sql(conn, SQL_RELEASE, &write->why) : rc;
}

static void refuse(struct rv__store_write *write)
{
    write->outcome = STORE_REFUSED;
}

/* Write everything that is not refused yet, in a transaction that stays open. Without savepoints the first refusal
 * ends the pass, with *ret_again set. */
static int pass(struct rv__sqlite_conn *conn, struct rv__store_write *writes, size_t count,
                bool apart, struct rv__sqlite_numbers *n, bool *ret_again, rv_error *err)
{
    int rc = rv__sqlite_begin(conn, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        rc = keep_definitions(conn, &writes[i]);
        if (rc < 0 && !lasting(rc))
            return fail_all(&writes[i], rc, err);
        if (rc < 0)
            refuse(&writes[i]); /* a failed statement changed nothing: no need to start again */
    }
    for (size_t i = 0; i < count; i++) {
        if (writes[i].outcome == STORE_REFUSED)
            continue;
        rc = apart ? write_apart(conn, &writes[i], n)
                   : rv__sqlite_write_one(conn, &writes[i], n, &writes[i].why);
        if (rc < 0 && !lasting(rc))
            return fail_all(&writes[i], rc, err);
        if (rc == RV_OK)
            continue;
        refuse(&writes[i]);
        *ret_again = !apart;
        if (!apart)
            return RV_OK;
    }
    return RV_OK;
}

/* Take back the numbers of new runs: the transaction was rolled back. */
static void take_back_numbers(struct rv__store_write *writes, size_t count,
                              const struct rv__sqlite_numbers *before,
                              const struct rv__sqlite_numbers *after)
{
    for (size_t i = 0; i < count; i++)
        if (writes[i].number > before->run && writes[i].number <= after->run)
            writes[i].number = 0;
}

static int write_all(struct rv__sqlite_conn *conn, struct rv__store_write *writes, size_t count,
                     struct rv__sqlite_numbers *n, rv_error *err)
{
    struct rv__sqlite_numbers start = *n;
    bool again = false;
    int rc = pass(conn, writes, count, false, n, &again, err);
    if (rc == RV_OK && again) {
        rv__sqlite_roll_back(conn);
        take_back_numbers(writes, count, &start, n);
        *n = start;
        rc = pass(conn, writes, count, true, n, &again, err);
    }
    return rc == RV_OK ? rv__sqlite_keep(conn, n, err) : rc;
}

/* It is on disk: fill in the results for the callers. */
static void tell_outcomes(struct rv__sqlite_writer *w, struct rv__store_write *writes, size_t count)
{
    uint64_t seq = w->seq;
    for (size_t i = 0; i < count; i++) {
        if (writes[i].outcome == STORE_REFUSED) {
            writes[i].seq = 0;
            w->stats.refused++;
            continue;
        }
        seq += writes[i].log_count;
        writes[i].seq = rv__str_none(writes[i].facts) ? 0 : ++seq;
    }
}

int rv__sqlite_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                      rv_error *err)
{
    int rc = rv__sqlite_may_write(store, err);
    if (rc < 0 || count == 0)
        return rc;

    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__sqlite_writer *w = &conn->writer;
    struct rv__sqlite_numbers n = { w->seq, w->run };
    int64_t start_ns = rv__mono_ns(rv__clock_real());
    for (size_t i = 0; i < count; i++) {
        writes[i].outcome = STORE_WRITTEN;
        writes[i].why.code = 0;
        writes[i].why.message[0] = '\0';
    }
    rc = write_all(conn, writes, count, &n, err);
    w->stats.last_commit_ns = rv__mono_ns(rv__clock_real()) - start_ns;
    if (rc == RV_OK) {
        tell_outcomes(w, writes, count);
        w->seq = n.seq;
        w->run = n.run;
        w->stats.commits++;
    } else {
        rv__sqlite_roll_back(conn);
        take_back_numbers(writes, count, &(struct rv__sqlite_numbers){ w->seq, w->run }, &n);
        w->stats.failures++;
    }
    rv__sqlite_leave(conn);
    if (lasting(rc)) { /* an error of data that all writes share: an error of the file */
        rc = RV_ESTORE;
        if (err != NULL)
            err->code = rc;
    }
    return rc;
}

/* ----------------------------------------------------------------------- other transactions --- */

/* Write everything from `next`, between begin and commit. */
static int write_next(struct rv__sqlite_conn *conn, struct rv__str run, rv__store_next_write *next,
                      void *arg, struct rv__sqlite_numbers *n, rv_error *err)
{
    struct rv__sqlite_known known = { 0 };
    struct rv__store_write write;
    uint64_t number = 0;
    int rc = rv__sqlite_find_run(conn, run, &known, err);
    if (rc == RV_OK && known.key != 0)
        return rv__fail(err, RV_EEXIST, "there is a run '%.*s' already", RV__ARG(run));
    while (rc == RV_OK && (rc = next(arg, &write, err)) == 1) {
        assert(rv__str_eq(write.run, run));
        write.number = number;
        rc = keep_definitions(conn, &write);
        if (rc == RV_OK)
            rc = rv__sqlite_write_one(conn, &write, n, &write.why);
        if (rc < 0)
            return fail_all(&write, rc, err);
        number = write.number;
    }
    return rc;
}

int rv__sqlite_import(struct rv__store *store, struct rv__str run, rv__store_next_write *next,
                      void *arg, rv_error *err)
{
    int rc = rv__sqlite_may_write(store, err);
    if (rc < 0)
        return rc;
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__sqlite_writer *w = &conn->writer;
    struct rv__sqlite_numbers n = { w->seq, w->run };
    rc = rv__sqlite_begin(conn, err);
    if (rc == RV_OK)
        rc = write_next(conn, run, next, arg, &n, err);
    if (rc == RV_OK)
        rc = rv__sqlite_keep(conn, &n, err);
    if (rc == RV_OK) {
        w->seq = n.seq;
        w->run = n.run;
        w->stats.commits++;
    } else {
        rv__sqlite_roll_back(conn);
        w->stats.failures++;
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_define(struct rv__store *store, struct rv__str hash, struct rv__str json,
                      rv_error *err)
{
    int rc = rv__sqlite_may_write(store, err);
    if (rc < 0)
        return rc;
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    rc = rv__sqlite_begin(conn, err);
    if (rc == RV_OK)
        rc = rv__sqlite_write_definition(conn, hash, json, err);
    if (rc == RV_OK)
        rc = rv__sqlite_keep(conn, &(struct rv__sqlite_numbers){ conn->writer.seq, 0 }, err);
    if (rc < 0)
        rv__sqlite_roll_back(conn);
    rv__sqlite_leave(conn);
    return rv__sqlite_of_store(rc, err);
}
