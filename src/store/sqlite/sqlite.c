/* sqlite.c: the store in a SQLite file: opening, closing, statements, errors.
 *
 * WAL with synchronous FULL: a commit is one append and one sync; readers and the writer do not wait for
 * each other. The writer makes the checkpoints itself: see checkpoint(). Start-up checks nothing that
 * grows with the store: opening a store of a million runs reads a few pages. */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    BUSY_MS = 5000,
    CHECKPOINT_PAGES = 4000, /* checkpoint from 16 MB of WAL on */
    /* From 32 MB on, and again after as much more: there is always a reader, so the WAL could never be
     * restarted. Wait for the present readers, but not for one that hangs. */
    CHECKPOINT_WAIT_PAGES = 8000,
    CHECKPOINT_WAIT_MS = 1000,
    CHECKPOINT_TRY_MS = 25,    /* see checkpoint_all() */
    WAL_KEEP_BYTES = 32 << 20, /* a larger WAL is truncated when it restarts */
    WRITER_CACHE_KB = 16384,
    READER_CACHE_KB = 4096,
    RUN_SLOTS = 4096, /* runs that are written at the same time: hundreds, at most thousands */
    NAME_SLOTS = 512,
};

#define NAME_OF(column) "(SELECT name FROM names WHERE id = " column ")"
#define RUN_COLUMNS                                                                           \
    "r.key, r.id, " NAME_OF("r.workflow") ", " NAME_OF("r.version") ", " NAME_OF(             \
        "r.status") ", r.active, r.wake_at, r.created, r.started, r.completed, r.input_key, " \
                    "r.failed_step,"                                                          \
                    " r.error, r.suspension, r.waiting, r.rerun_of"
#define WITH_INPUT    ", (SELECT input FROM inputs WHERE run = r.key)"
#define WITHOUT_INPUT ", NULL"
#define KEY_OF(id)    "(SELECT key FROM runs WHERE id = " id ")"
#define NAME_ID(name) "(SELECT id FROM names WHERE name = " name ")"
#define LOG_COLUMNS                                                                       \
    "l.id, r.id, l.at, l.level, l.path, l.step, l.attempt, l.message, l.metadata, l.kind" \
    " FROM logs l"
/* Lists of runs get times and keys from an index alone. Each row is then read separately, so that a damaged one
 * does not hide the others.
 *
 * Ordered by (time, key), after a given place. SQLite merges two halves: the runs of the same millisecond, which
 * may be a million, and the later ones. A comparison of pairs would walk over the former for each page. */
#define BY_TIME(time, index, where, at, key, limit)                                          \
    "SELECT " time ", key FROM runs INDEXED BY " index " WHERE " where " AND " time " = " at \
    " AND key > " key " UNION ALL SELECT " time ", key FROM runs INDEXED BY " index          \
    " WHERE " where " AND " time " > " at " ORDER BY 1, 2 LIMIT " limit
#define LIST_COLUMNS "SELECT r.created, r.key, r.id FROM runs r INDEXED BY "
/* A damaged row with an absurd number must not use up the range of numbers. */
#define SANE(number) " WHERE " number " < 4611686018427387904"
/* The id orders runs of the same millisecond. */
#define LIST_ORDER   "(r.created, r.id) < (?1, ?2) ORDER BY r.created DESC, r.id DESC"

static const char *const texts[SQLS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READING] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT one",
    [SQL_RELEASE] = "RELEASE one",
    [SQL_ROLLBACK_TO] = "ROLLBACK TO one",

    [SQL_FIND_RUN] = "SELECT key, status, completed, active, wake_at, head, waiting FROM runs"
                     " WHERE id = ?1",
    [SQL_FIND_NUMBER] = "SELECT key, status, completed, active, wake_at, head, waiting FROM runs"
                        " WHERE key = ?1",
    [SQL_FIND_NAME] = "SELECT id FROM names WHERE name = ?1",
    [SQL_ADD_NAME] = "INSERT INTO names(name) VALUES(?1)",
    [SQL_ADD_RUN] = "INSERT INTO runs(key, id, workflow, version, status, active, wake_at, created,"
                    " started, completed, input_key, failed_step, error, suspension, head,"
                    " waiting, rerun_of) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
                    " ?13, ?14, ?15, ?16, ?17)",
    [SQL_SET_RUN] = "UPDATE runs SET workflow = ?3, version = ?4, status = ?5, active = ?6,"
                    " wake_at = ?7, created = ?8, started = ?9, completed = ?10, input_key = ?11,"
                    " failed_step = ?12, error = ?13, suspension = ?14, head = ?15, waiting = ?16,"
                    " rerun_of = ?17 WHERE key = ?1",
    [SQL_TOUCH_RUN] = "UPDATE runs SET status = ?2, active = ?3, wake_at = ?4, completed = ?5,"
                      " failed_step = ?6, error = ?7, suspension = ?8, head = ?9, waiting = ?10"
                      " WHERE key = ?1",
    [SQL_SET_HEAD] = "UPDATE runs SET head = ?2 WHERE key = ?1",
    [SQL_SET_INPUT] = "INSERT OR REPLACE INTO inputs(run, input) VALUES(?1, ?2)",
    [SQL_DROP_INPUT] = "DELETE FROM inputs WHERE run = ?1",
    [SQL_ADD_JOURNAL] = "INSERT INTO journal(seq, run, prev, facts) VALUES(?1, ?2, ?3, ?4)",
    [SQL_RESULT_BEFORE] = "SELECT first, count FROM results INDEXED BY results_place WHERE run = ?1"
                          " AND key = ?2 AND first <= ?3 ORDER BY first DESC LIMIT 1",
    [SQL_ADD_RESULTS] = "INSERT INTO results(run, key, first, count, sizes, json)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_SET_RESULTS_SEQ] = "INSERT OR REPLACE INTO results_seqs(run, seq) VALUES(?1, ?2)",
    [SQL_ADD_VALUE] = "INSERT INTO large_values(run, number, bytes, json) VALUES(?1, ?2, ?3, ?4)",
    [SQL_LAST_LOG_OF_RUN] = "SELECT id FROM logs INDEXED BY logs_run WHERE run = ?1"
                            " ORDER BY id DESC LIMIT 1",
    [SQL_SET_SNAPSHOT] = "INSERT OR REPLACE INTO snapshots(run, seq, state) VALUES(?1, ?2, ?3)",
    [SQL_ADD_LOG] = "INSERT INTO logs(id, run, at, level, attempt, step, path, message, metadata,"
                    " kind) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [SQL_DROP_STREAM] = "DELETE FROM logs INDEXED BY logs_stream WHERE run = ?1 AND path = ?2"
                        " AND kind = 'stream'",
    [SQL_ADD_DEFINITION] = "INSERT OR IGNORE INTO definitions(hash, plan) VALUES(?1, ?2)",
    [SQL_ADD_COUNT] = "INSERT INTO counts(status, runs) VALUES(?1, ?2)"
                      " ON CONFLICT(status) DO UPDATE SET runs = runs + ?2",
    [SQL_DROP_RUN] = "DELETE FROM runs WHERE key = ?1",
    [SQL_DROP_SNAPSHOT] = "DELETE FROM snapshots WHERE run = ?1",
    [SQL_DROP_RESULTS_SEQ] = "DELETE FROM results_seqs WHERE run = ?1",
    [SQL_ADD_FORGOTTEN] = "INSERT INTO forgotten(run, head) VALUES(?1, ?2)",
    [SQL_NEXT_FORGOTTEN] = "SELECT run, head FROM forgotten ORDER BY run LIMIT 1",
    [SQL_MOVE_FORGOTTEN] = "UPDATE forgotten SET head = ?2 WHERE run = ?1",
    [SQL_DROP_ROW] = "DELETE FROM journal WHERE seq = ?1",
    [SQL_DROP_RESULTS] = "DELETE FROM results WHERE id IN (SELECT id FROM results"
                         " INDEXED BY results_place WHERE run = ?1 LIMIT ?2)",
    [SQL_NEXT_VALUE] = "SELECT id, bytes FROM large_values INDEXED BY large_values_place"
                       " WHERE run = ?1 LIMIT 1",
    [SQL_DROP_VALUE] = "DELETE FROM large_values WHERE id = ?1",
    [SQL_DROP_LOGS] = "DELETE FROM logs WHERE id IN (SELECT id FROM logs"
                      " INDEXED BY logs_run WHERE run = ?1 LIMIT ?2)",
    [SQL_DROP_FORGOTTEN] = "DELETE FROM forgotten WHERE run = ?1",
    [SQL_SET_META] = "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)",
    [SQL_ADD_MARK] = "INSERT OR IGNORE INTO marks(name, seq, place) VALUES(?1, ?2, ?3)",
    [SQL_MOVE_MARK] = "UPDATE marks SET seq = ?2, place = ?3 WHERE name = ?1",
    [SQL_DROP_MARK] = "DELETE FROM marks WHERE name = ?1",

    [SQL_DEFINITION] = "SELECT plan FROM definitions WHERE hash = ?1",
    [SQL_RUN] = "SELECT " RUN_COLUMNS WITH_INPUT " FROM runs r WHERE r.id = ?1",
    [SQL_RUN_OF_NUMBER] = "SELECT " RUN_COLUMNS WITH_INPUT " FROM runs r WHERE r.key = ?1",
    [SQL_RUN_WITHOUT_INPUT] = "SELECT " RUN_COLUMNS WITHOUT_INPUT " FROM runs r WHERE r.key = ?1",
    [SQL_ID_OF_NUMBER] = "SELECT id FROM runs WHERE key = ?1",
    [SQL_SNAPSHOT] = "SELECT seq, state FROM snapshots WHERE run = " KEY_OF("?1"),
    [SQL_VALUE] = "SELECT number, json FROM large_values INDEXED BY large_values_place"
                  " WHERE run = " KEY_OF("?1") " AND number = ?2",
    [SQL_VALUES] = "SELECT number, json FROM large_values INDEXED BY large_values_place"
                   " WHERE run = " KEY_OF("?1") " ORDER BY number",
    [SQL_ROW_BEFORE] = "SELECT run, prev FROM journal WHERE seq = ?1",
    [SQL_FACTS] = "SELECT facts FROM journal WHERE seq = ?1",
    [SQL_TAIL] = "SELECT seq, run FROM journal" SANE("seq") " AND seq > ?1 ORDER BY seq",
    [SQL_LAST_SEQ] = "SELECT seq FROM journal" SANE("seq") " - ?1 ORDER BY seq DESC LIMIT 1",
    [SQL_ANY_ACTIVE] = "SELECT 1 FROM runs INDEXED BY runs_active WHERE active = 1 AND key > ?1"
                       " LIMIT 1",
    [SQL_RESULTS] =
        "SELECT first, count, sizes, json FROM results INDEXED BY results_place"
        " WHERE run = " KEY_OF(
            "?1") " AND key = ?2 AND first >="
                  " ifnull((SELECT first FROM results INDEXED BY results_place WHERE run ="
                  " " KEY_OF("?1") " AND key = ?2 AND first <= ?3 ORDER BY first DESC LIMIT 1),"
                                   " ?3) ORDER BY first",
    [SQL_RESULTS_SEQ] = "SELECT seq FROM results_seqs WHERE run = " KEY_OF("?1"),
    [SQL_ACTIVE] = "SELECT 0, key FROM runs INDEXED BY runs_active"
                   " WHERE active = 1 AND key > ?1 ORDER BY key LIMIT ?2",
    [SQL_DUE] = BY_TIME("wake_at", "runs_wake", "wake_at <> 0 AND wake_at <= ?1", "?2", "?3", "?4"),
    [SQL_NEXT_WAKE] = "SELECT wake_at FROM runs INDEXED BY runs_wake"
                      " WHERE wake_at <> 0 AND wake_at > ?1 ORDER BY wake_at LIMIT 1",
    [SQL_FEED] = "SELECT j.seq, r.id, j.facts FROM journal j CROSS JOIN runs r"
                 " WHERE r.key = j.run AND j.seq > ?1 ORDER BY j.seq LIMIT ?2",
    [SQL_FEED_NEXT] = "SELECT j.seq, r.id FROM journal j CROSS JOIN runs r"
                      " WHERE r.key = j.run AND j.seq > ?1 ORDER BY j.seq LIMIT 1",
    [SQL_LIST] = LIST_COLUMNS "runs_created WHERE " LIST_ORDER,
    [SQL_LIST_WORKFLOW] = LIST_COLUMNS
    "runs_workflow WHERE r.workflow = " NAME_ID("?3") " AND " LIST_ORDER,
    [SQL_LIST_STATUS] = LIST_COLUMNS
    "runs_status WHERE r.status = " NAME_ID("?3") " AND " LIST_ORDER,
    [SQL_LIST_WAITING] = LIST_COLUMNS "runs_waiting WHERE r.waiting = 1 AND " LIST_ORDER,
    [SQL_LIST_RERUNS] = LIST_COLUMNS "runs_rerun WHERE r.rerun_of = ?3 AND " LIST_ORDER,
    [SQL_LOGS] = "SELECT " LOG_COLUMNS " CROSS JOIN runs r WHERE r.key = l.run AND l.id > ?1"
                 " ORDER BY l.id LIMIT ?2",
    [SQL_LOGS_OF_RUN] = "SELECT " LOG_COLUMNS " INDEXED BY logs_run CROSS JOIN runs r"
                        " WHERE r.key = l.run AND l.id > ?1 AND l.run = " KEY_OF(
                            "?3") " ORDER BY l.id LIMIT ?2",
    [SQL_COUNTS] = "SELECT n.name, c.runs FROM counts c JOIN names n ON n.id = c.status"
                   " WHERE c.runs <> 0 ORDER BY n.name",
    [SQL_MARK] = "SELECT name, seq, place FROM marks WHERE name = ?1",
    [SQL_MARKS] = "SELECT name, seq, place FROM marks ORDER BY name",
    [SQL_COUNT_OF] = "SELECT runs FROM counts WHERE status = ?1",
    [SQL_FINISHED] = BY_TIME("completed", "runs_finished",
                             "completed <> 0 AND active = 0 AND wake_at = 0", "?1", "?2", "?3"),
    [SQL_OLDEST_WAITING] = "SELECT created, key FROM runs INDEXED BY runs_waiting WHERE waiting = 1"
                           " ORDER BY created, id LIMIT ?1",
    [SQL_LAST_NUMBERS] = "SELECT max(ifnull((SELECT max(seq) FROM journal" SANE(
        "seq") "), 0),"
               " ifnull((SELECT max(id) FROM logs" SANE(
                   "id") "), 0),"
                         " ifnull((SELECT value FROM meta WHERE key = 'seq'), 0)),"
                         " max(ifnull((SELECT max(key) FROM runs" SANE(
                             "key") "), 0),"
                                    " ifnull((SELECT value FROM meta WHERE key = 'run'), 0)),"
                                    " ifnull((SELECT value FROM meta WHERE key = 'forgotten'), 0)",
    [SQL_SIZE] = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count,"
                 " pragma_freelist_count, pragma_page_size",
};

/* -------------------------------------------------------------------------------- errors --- */

int rv__sqlite_fail(struct rv__sqlite_conn *conn, int sqlite_rc, rv_error *err)
{
    const char *path = conn->path, *why = sqlite3_errstr(sqlite_rc);
    size_t len = strlen(path);
    if (len > 96)
        path += len - 96; /* of a long path, show the end */
    int extended = conn->db != NULL ? sqlite3_extended_errcode(conn->db) : sqlite_rc;
    int system = conn->db != NULL ? sqlite3_system_errno(conn->db) : 0;
    if ((extended & 0xff) != (sqlite_rc & 0xff))
        extended = sqlite_rc; /* the connection's last error is another one */

    switch (sqlite_rc & 0xff) {
    case SQLITE_NOMEM: return rv__nomem(err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return rv__fail(err, RV_ESTORE,
                        "the store '%s' is locked by another program for more than %lld ms (an "
                        "open transaction in a shell?): end that, and the runs continue",
                        path, (long long)conn->busy_ms);
    case SQLITE_FULL:
        return rv__fail(err, RV_ESTORE,
                        "no space left for the store '%s': nothing was written; free some space on "
                        "its disk, and the runs continue",
                        path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return rv__fail(err, RV_ESTORE,
                        "the store '%s' cannot be written: the file, its folder or the disk is "
                        "read-only; change that, or open it for reading only",
                        path);
    case SQLITE_CORRUPT:
        return rv__fail(err, RV_EPARSE,
                        "the store '%s' is damaged (%s): restore a backup, or save what can be "
                        "read with the .recover command of sqlite3",
                        path, why);
    case SQLITE_FORMAT: /* we use it; SQLite itself no longer does */
        return rv__fail(err, RV_EPARSE,
                        "a record in the store '%s' is damaged: a column has the wrong type", path);
    case SQLITE_NOTADB:
        return rv__fail(err, RV_ESTORE,
                        "'%s' is not a store: it is not an SQLite database, or its first page is "
                        "damaged; nothing was changed",
                        path);
    case SQLITE_CANTOPEN:
        return rv__fail(err, RV_ESTORE, "cannot open the store '%s': %s", path,
                        system != 0 ? strerrordesc_np(system) : why);
    case SQLITE_TOOBIG:
        return rv__fail(err, RV_ETOOBIG, "a text is too long for the store '%s'", path);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return rv__fail(err, RV_EINVAL, "the store '%s' cannot take this: %s", path,
                        conn->db != NULL ? sqlite3_errmsg(conn->db) : why);
    case SQLITE_IOERR:
        return rv__fail(err, RV_ESTORE,
                        "reading or writing the store '%s' failed (%s, SQLite %d): nothing was "
                        "written; check the disk",
                        path, system != 0 ? strerrordesc_np(system) : why, extended);
    default: /* codes of later versions of SQLite */
        return rv__fail(err, RV_ESTORE, "the store '%s' failed (SQLite %d): %s", path, extended,
                        conn->db != NULL ? sqlite3_errmsg(conn->db) : why);
    }
}

/* ---------------------------------------------------------------------------- statements --- */

sqlite3_stmt *rv__sqlite_get(struct rv__sqlite_conn *conn, enum rv__sql sql, int *rc, rv_error *err)
{
    conn->bad = SQLITE_OK;
    if (conn->statements[sql] == NULL) {
        int prepared = sqlite3_prepare_v3(conn->db, texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
                                          &conn->statements[sql], NULL);
        if (prepared != SQLITE_OK)
            *rc = rv__sqlite_fail(conn, prepared, err);
    }
    return conn->statements[sql];
}

static void remember(struct rv__sqlite_conn *conn, int rc)
{
    if (conn->bad == SQLITE_OK)
        conn->bad = rc;
}

void rv__sqlite_bind_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at, int64_t value)
{
    remember(conn, sqlite3_bind_int64(st, at, value));
}

void rv__sqlite_bind_str(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int at,
                         struct rv__str value)
{
    if (rv__str_none(value))
        remember(conn, sqlite3_bind_null(st, at));
    else
        remember(conn,
                 sqlite3_bind_text64(st, at, value.at, value.len, SQLITE_STATIC, SQLITE_UTF8));
}

int rv__sqlite_step(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err)
{
    int rc = conn->bad;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE) {
        (void)sqlite3_reset(st); /* repeats what the step said */
        return 0;
    }
    rc = rv__sqlite_fail(conn, rc, err);
    (void)sqlite3_reset(st);
    return rc;
}

int rv__sqlite_do(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err)
{
    int rc = rv__sqlite_step(conn, st, err);
    assert(rc != 1);
    return rc;
}

int rv__sqlite_run_sql(struct rv__sqlite_conn *conn, enum rv__sql sql, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    return st != NULL ? rv__sqlite_do(conn, st, err) : rc;
}

int rv__sqlite_number(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t by, int64_t *ret,
                      rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, by);
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *ret = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_reset(st); /* repeats what the step said */
    return RV_OK;
}

struct rv__str rv__sqlite_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column)
{
    int type = sqlite3_column_type(st, column);
    if (type != SQLITE_TEXT) {
        if (type != SQLITE_NULL)
            remember(conn, SQLITE_FORMAT);
        return (struct rv__str){ NULL, 0 };
    }
    const char *text = (const char *)sqlite3_column_text(st, column);
    if (text == NULL) {
        remember(conn, SQLITE_NOMEM);
        return (struct rv__str){ NULL, 0 };
    }
    return (struct rv__str){ text, (size_t)sqlite3_column_bytes(st, column) };
}

struct rv__str rv__sqlite_some_text(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column)
{
    struct rv__str text = rv__sqlite_text(conn, st, column);
    if (rv__str_none(text))
        remember(conn, SQLITE_FORMAT);
    return text;
}

int64_t rv__sqlite_int(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column)
{
    if (sqlite3_column_type(st, column) != SQLITE_INTEGER)
        remember(conn, SQLITE_FORMAT);
    return sqlite3_column_int64(st, column);
}

uint64_t rv__sqlite_uint(struct rv__sqlite_conn *conn, sqlite3_stmt *st, int column)
{
    int64_t value = rv__sqlite_int(conn, st, column);
    if (value < 0)
        remember(conn, SQLITE_FORMAT);
    return (uint64_t)value;
}

int rv__sqlite_whole(struct rv__sqlite_conn *conn, rv_error *err)
{
    return conn->bad == SQLITE_OK ? RV_OK : rv__sqlite_fail(conn, conn->bad, err);
}

/* --------------------------------------------------------------------------- connections --- */

struct rv__sqlite_conn *rv__sqlite_enter(struct rv__store *store)
{
    struct rv__sqlite_conn *conn = ((struct rv__sqlite *)store)->conn;
    int rc = pthread_mutex_lock(&conn->lock);
    assert(rc == 0); /* EDEADLK: a visitor calls its own store */
    (void)rc;
    return conn;
}

void rv__sqlite_leave(struct rv__sqlite_conn *conn)
{
    (void)pthread_mutex_unlock(&conn->lock); /* ours: it cannot fail */
}

int rv__sqlite_of_store(int rc, rv_error *err)
{
    if (rc != RV_EPARSE)
        return rc;
    if (err != NULL)
        err->code = RV_ESTORE;
    return RV_ESTORE;
}

static int clamp_ms(int64_t ms)
{
    return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

/* Checkpoint the whole WAL, so that it restarts. That waits for readers with an old snapshot. SQLite waits for the
 * slot of such a reader; when it has left, other readers may use the slot in turn. Those have the newest snapshot
 * and do not matter, but SQLite would still wait for them. So each attempt waits briefly, and the next one looks
 * again at who has which snapshot. */
static void checkpoint_all(struct rv__sqlite_conn *conn, const char *schema, int *left, int *done)
{
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    int64_t until_ms = now_ms + conn->writer.reader_wait_ms;
    int rc = SQLITE_BUSY;
    (void)sqlite3_busy_timeout(conn->db, CHECKPOINT_TRY_MS);
    for (; rc == SQLITE_BUSY && now_ms < until_ms; now_ms = rv__mono_ms(rv__clock_real()))
        rc = sqlite3_wal_checkpoint_v2(conn->db, schema, SQLITE_CHECKPOINT_RESTART, left, done);
    (void)sqlite3_busy_timeout(conn->db, clamp_ms(conn->busy_ms));
}

/* SQLite's hook after each commit. A failure is ignored and the checkpoint tried after a later commit: this
 * commit is on disk already and must not be reported as failed. */
static int checkpoint(void *arg, sqlite3 *db, const char *schema, int pages)
{
    struct rv__sqlite_conn *conn = arg;
    struct rv__sqlite_writer *w = &conn->writer;
    int left = pages, done = 0;
    if (pages < CHECKPOINT_WAIT_PAGES)
        w->wait_pages = CHECKPOINT_WAIT_PAGES;
    if (pages >= w->wait_pages) {
        w->wait_pages = pages + CHECKPOINT_WAIT_PAGES;
        checkpoint_all(conn, schema, &left, &done);
    } else if (pages >= CHECKPOINT_PAGES) {
        (void)sqlite3_wal_checkpoint_v2(db, schema, SQLITE_CHECKPOINT_PASSIVE, &left, &done);
    }
    w->stats.wal_bytes = (int64_t)(left > done ? left - done : 0) * 4096;
    return SQLITE_OK;
}

static int pragmas(struct rv__sqlite_conn *conn, const char *sql, rv_error *err)
{
    int rc = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? RV_OK : rv__sqlite_fail(conn, rc, err);
}

static void conn_free(struct rv__sqlite_conn *conn)
{
    if (conn == NULL)
        return;
    for (int i = 0; i < SQLS; i++)
        (void)sqlite3_finalize(conn->statements[i]); /* repeats an old failure */
    (void)sqlite3_close(conn->db); /* all statements are finalized: it cannot be busy */
    rv__sqlite_runs_done(&conn->writer.runs);
    rv__sqlite_cache_done(&conn->writer.names);
    rv__buf_done(&conn->writer.chunk);
    rv__buf_done(&conn->writer.sizes);
    rv__free(conn->writer.order);
    rv__sqlite_heads_done(conn);
    (void)pthread_mutex_destroy(&conn->lock);
    rv__free(conn->path);
    rv__free(conn);
}

/* An error-checking mutex: a visitor that calls its own store fails instead of hanging. */
static int lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    if (pthread_mutexattr_init(&attr) != 0)
        return RV_ENOMEM;
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK); /* a type that exists */
    int rc = pthread_mutex_init(lock, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    return rc == 0 ? RV_OK : RV_ENOMEM;
}

/* A connection whose file is not opened yet. */
static int conn_new(const char *path, const char *vfs, int64_t busy_ms, uint64_t tail_rows,
                    struct rv__sqlite_conn **ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__zalloc(1, sizeof *conn);
    if (conn == NULL)
        return rv__nomem(err);
    if (lock_init(&conn->lock) < 0) {
        rv__free(conn);
        return rv__nomem(err);
    }
    conn->path = rv__alloc(strlen(path) + 1);
    if (conn->path == NULL) {
        conn_free(conn);
        return rv__nomem(err);
    }
    memcpy(conn->path, path, strlen(path) + 1);
    const sqlite3_vfs *found = vfs != NULL ? sqlite3_vfs_find(vfs) : NULL;
    conn->vfs = found != NULL ? found->zName : vfs; /* an unknown one fails when opening */
    conn->busy_ms = busy_ms > 0 ? busy_ms : BUSY_MS;
    conn->tail_rows = tail_rows > 0 ? tail_rows : SQLITE_TAIL_ROWS;
    conn->memory = strcmp(path, ":memory:") == 0;
    rv__buf_init(&conn->writer.chunk, SIZE_MAX);
    rv__buf_init(&conn->writer.sizes, SIZE_MAX);
    *ret = conn;
    return RV_OK;
}

static int conn_connect(struct rv__sqlite_conn *conn, const char *name, int flags, rv_error *err)
{
    /* We lock the connection ourselves: SQLite need not. */
    int rc = sqlite3_open_v2(name, &conn->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                             conn->vfs);
    if (rc != SQLITE_OK)
        return rv__sqlite_fail(conn, rc, err);
    (void)sqlite3_busy_timeout(conn->db, clamp_ms(conn->busy_ms));
    /* The file is only data: it may contain no code, and its schema tables cannot be written. */
    (void)sqlite3_db_config(conn->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return RV_OK;
}

/* A path as SQLite's URI. */
static int to_uri(const char *path, const char *query, struct rv__buf *ret, rv_error *err)
{
    rv__buf_text(ret, "file:");
    for (; *path != '\0'; path++) {
        if (strchr("?#%", *path) != NULL)
            rv__buf_fmt(ret, "%%%02x", (unsigned)(unsigned char)*path);
        else
            rv__buf_char(ret, *path);
    }
    rv__buf_text(ret, query);
    return rv__buf_err(ret, err);
}

/* Is there a WAL with something in it? */
static int has_wal(const char *path, bool *ret, rv_error *err)
{
    struct stat st;
    struct rv__buf name;
    rv__buf_init(&name, SIZE_MAX);
    rv__buf_fmt(&name, "%s-wal", path);
    int rc = rv__buf_err(&name, err);
    if (rc == RV_OK)
        *ret = stat(name.text, &st) == 0 && st.st_size > 0;
    rv__buf_done(&name);
    return rc;
}

/* Is it a folder, or does it not exist? SQLite reports "unable to open" for both. */
static int look_at(const char *path, bool read_only, rv_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT && read_only
                   ? rv__fail(err, RV_ESTORE, "there is no store '%.150s'", path)
                   : RV_OK; /* other errors are reported when it is opened */
    if (S_ISDIR(st.st_mode))
        return rv__fail(err, RV_ESTORE,
                        "cannot open the store '%.100s': it is a folder; name a file in it", path);
    return RV_OK;
}

/* --------------------------------------------------------------- was the file replaced? --- */

/* By SQLite's name of the file, which does not depend on the working directory.
 *
 * Not by stat(): asking for the times of a file makes Linux (6.13 and later: multigrain timestamps) give the
 * next write a new timestamp, and the sync after it then writes the inode, too. Measured: 84 -> 156 us. */
static struct rv__sqlite_identity identify(const char *name)
{
    struct statx st;
    if (name == NULL || statx(AT_FDCWD, name, 0, STATX_INO, &st) < 0)
        return (struct rv__sqlite_identity){ .known = false };
    return (struct rv__sqlite_identity){ true, makedev(st.stx_dev_major, st.stx_dev_minor),
                                         st.stx_ino };
}

/* While SQLite has the file open, no other file gets its inode number. */
static bool is_still(const struct rv__sqlite_identity *opened, const char *name)
{
    struct rv__sqlite_identity now = identify(name);
    return !opened->known ||
           (now.known && now.device == opened->device && now.inode == opened->inode);
}

/* Both files exist by now: the schema was read or written, in WAL mode. */
static void remember_files(struct rv__sqlite_conn *conn)
{
    const char *name = conn->memory ? NULL : sqlite3_db_filename(conn->db, "main");
    conn->file = identify(name);
    if (conn->file.known)
        conn->wal = identify(sqlite3_filename_wal(name));
}

/* Needs no lock: it reads nothing of the connection that changes. */
static bool are_still(const struct rv__sqlite_conn *conn, bool *wal_only)
{
    if (!conn->file.known)
        return true;
    const char *name = sqlite3_db_filename(conn->db, "main");
    bool file = is_still(&conn->file, name), wal = is_still(&conn->wal, sqlite3_filename_wal(name));
    *wal_only = file && !wal;
    return file && wal;
}

static int fail_gone(const struct rv__sqlite_conn *conn, bool wal_only, rv_error *err)
{
    return rv__fail(
        err, RV_EGONE,
        "the store '%.100s'%s was deleted or replaced while this process used it: nothing "
        "more is recorded, and the last results may be lost",
        conn->path, wal_only ? " (its -wal file)" : "");
}

int rv__sqlite_still_there(struct rv__sqlite_conn *conn, rv_error *err)
{
    bool wal_only = false;
    conn->gone |= !are_still(conn, &wal_only);
    return conn->gone ? fail_gone(conn, wal_only, err) : RV_OK;
}

static int sqlite_there(struct rv__store *store, rv_error *err)
{
    const struct rv__sqlite_conn *conn = ((struct rv__sqlite *)store)->conn;
    bool wal_only = false;
    return are_still(conn, &wal_only) ? RV_OK : fail_gone(conn, wal_only, err);
}

/* For reading only: the writer maintains the file, so nothing is set up here. */
static int conn_open_reader(struct rv__sqlite_conn *conn, rv_error *err)
{
    char cache[64];
    int version = 0;
    bool wal = false;
    int rc = look_at(conn->path, true, err);
    if (rc == RV_OK)
        rc = has_wal(conn->path, &wal, err);
    if (rc < 0)
        return rc;

    /* Reading creates the WAL and its index if they do not exist, and only a connection that may write removes
     * them when it is the last. So if there is no WAL yet, this one may write; but it never does (query_only). */
    int mode = wal ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    rc = conn_connect(conn, conn->path, mode, err);
    if (rc == RV_OK)
        rc = rv__sqlite_schema_check(conn, &version, err);
    int why = conn->db != NULL ? sqlite3_errcode(conn->db) & 0xff : SQLITE_OK;
    bool refused = rc < 0 && (why == SQLITE_CANTOPEN || why == SQLITE_READONLY);
    if (refused && has_wal(conn->path, &wal, NULL) == RV_OK && !wal) {
        /* The folder is not writable, not even for the index of the WAL. But there is no WAL, so nobody
         * writes, and the file alone is complete. */
        struct rv__buf uri;
        (void)sqlite3_close(conn->db); /* no statement is open */
        conn->db = NULL;
        rv__buf_init(&uri, SIZE_MAX);
        rc = to_uri(conn->path, "?immutable=1", &uri, err);
        if (rc == RV_OK)
            rc = conn_connect(conn, uri.text, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
        rv__buf_done(&uri);
        if (rc == RV_OK)
            rc = rv__sqlite_schema_check(conn, &version, err);
    }
    if (rc < 0)
        return rc;
    if (version < rv__sqlite_schema_version())
        return rv__fail(err, RV_ESTORE,
                        version == 0
                            ? "there is nothing in the store '%.100s' yet (schema %d, this program "
                              "reads %d)"
                            : "the store '%.100s' has an older schema (%d, this program reads %d): "
                              "open it once for writing, which upgrades it",
                        conn->path, version, rv__sqlite_schema_version());
    snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d; PRAGMA query_only = 1",
             READER_CACHE_KB);
    return pragmas(conn, cache, err);
}

static int conn_open_writer(struct rv__sqlite_conn *conn, size_t max_row_bytes, rv_error *err)
{
    struct rv__sqlite_writer *w = &conn->writer;
    char sizes[160];
    int version = 0;
    int rc = rv__sqlite_runs_init(&w->runs, RUN_SLOTS);
    if (rc == RV_OK)
        rc = rv__sqlite_cache_init(&w->names, NAME_SLOTS);
    if (rc < 0)
        return rv__nomem(err);

    rc = conn_connect(conn, conn->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (rc < 0)
        return rc;

    rc = rv__sqlite_schema_check(conn, &version, err);
    if (rc < 0)
        return rc;

    snprintf(sizes, sizeof sizes,
             "PRAGMA cache_size = -%d; PRAGMA journal_size_limit = %d; PRAGMA temp_store = MEMORY;"
             "PRAGMA cell_size_check = 1",
             WRITER_CACHE_KB, WAL_KEEP_BYTES);
    rc = pragmas(conn, sizes, err);
    if (rc == RV_OK)
        rc = pragmas(conn, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", err);
    if (rc == RV_OK)
        rc = rv__sqlite_schema_upgrade(conn, version, err);
    if (rc < 0)
        return rc;

    if (max_row_bytes > 0)
        (void)sqlite3_limit(conn->db, SQLITE_LIMIT_LENGTH,
                            max_row_bytes < INT32_MAX ? (int)max_row_bytes : INT32_MAX);
    (void)sqlite3_wal_hook(conn->db, checkpoint,
                           conn); /* replaces SQLite's own, which never waits */
    rc = rv__sqlite_last_numbers(conn, &w->seq, &w->run, &w->forgotten, err);
    remember_files(conn);
    return rc;
}

/* --------------------------------------------------------------------------------- stores --- */

static int sqlite_reader(struct rv__store *store, struct rv__store **ret, rv_error *err);
static void sqlite_stats(struct rv__store *store, struct rv__store_stats *ret);
static void sqlite_close(struct rv__store *store);

static const struct rv__store_ops sqlite_ops = {
    .name = "sqlite",
    .commit = rv__sqlite_commit,
    .there = sqlite_there,
    .define = rv__sqlite_define,
    .forget = rv__sqlite_forget,
    .take_marks = rv__sqlite_take_marks,
    .move_marks = rv__sqlite_move_marks,
    .marks = rv__sqlite_marks,
    .import = rv__sqlite_import,
    .definition = rv__sqlite_definition,
    .run = rv__sqlite_run,
    .snapshot = rv__sqlite_snapshot,
    .value = rv__sqlite_value,
    .journal = rv__sqlite_journal,
    .results = rv__sqlite_results,
    .results_seq = rv__sqlite_results_seq,
    .active = rv__sqlite_active,
    .due = rv__sqlite_due,
    .next_wake = rv__sqlite_next_wake,
    .feed = rv__sqlite_feed,
    .list = rv__sqlite_list,
    .logs = rv__sqlite_logs,
    .counts = rv__sqlite_counts,
    .finished = rv__sqlite_finished,
    .oldest_waiting = rv__sqlite_oldest_waiting,
    .whole = rv__sqlite_whole_run,
    .backup = rv__sqlite_backup,
    .usage = rv__sqlite_usage,
    .stats = sqlite_stats,
    .reader = sqlite_reader,
    .close = sqlite_close,
};

static struct rv__sqlite *handle_new(struct rv__sqlite_conn *conn, bool read_only)
{
    struct rv__sqlite *sqlite = rv__zalloc(1, sizeof *sqlite);
    if (sqlite != NULL)
        *sqlite = (struct rv__sqlite){ { &sqlite_ops }, conn, false, read_only, -1 };
    return sqlite;
}

int rv__sqlite_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = NULL;
    struct rv__sqlite *sqlite = NULL;
    int holder = -1, rc;

    if (opts->member)
        return rv__fail(err, RV_EINVAL,
                        "one process writes to a SQLite file: several share a store in PostgreSQL");
    rc = conn_new(opts->path, opts->vfs, opts->busy_timeout_ms, opts->tail_rows, &conn, err);
    if (rc < 0)
        goto out;

    assert(conn != NULL);
    conn->writer.reader_wait_ms = opts->reader_wait_ms > 0 ? clamp_ms(opts->reader_wait_ms)
                                                           : CHECKPOINT_WAIT_MS;
    if (conn->memory && opts->read_only) {
        rc = rv__fail(err, RV_EINVAL, "a store in memory begins empty: it cannot be read only");
        goto out;
    }
    sqlite = handle_new(conn, opts->read_only);
    if (sqlite == NULL) {
        rc = rv__nomem(err);
        goto out;
    }
    if (!opts->read_only && !conn->memory) {
        rc = look_at(opts->path, false, err);
        if (rc == RV_OK)
            rc = rv__holder_take(opts->path, &holder, err);
        if (rc < 0)
            goto out;
    }
    rc = opts->read_only ? conn_open_reader(conn, err)
                         : conn_open_writer(conn, opts->max_row_bytes, err);
    if (rc < 0)
        goto out;

    sqlite->holder = holder;
    *ret = &sqlite->store;
    return RV_OK;
out:
    rc = rv__sqlite_of_store(rc, err);
    conn_free(conn); /* before the lock: nobody else writes until the file is closed */
    rv__holder_release(holder);
    rv__free(sqlite);
    return rc;
}

static int sqlite_reader(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    struct rv__sqlite *from = (struct rv__sqlite *)store;
    struct rv__sqlite_conn *conn = NULL;
    struct rv__sqlite *sqlite = handle_new(from->conn, true);
    int rc;

    if (sqlite == NULL)
        return rv__nomem(err);
    if (from->conn->memory) {
        sqlite->shares = true;
        *ret = &sqlite->store;
        return RV_OK;
    }
    rc = conn_new(from->conn->path, from->conn->vfs, from->conn->busy_ms, from->conn->tail_rows,
                  &conn, err);
    if (rc == RV_OK && conn != NULL)
        rc = conn_open_reader(conn, err);
    if (rc < 0) {
        conn_free(conn);
        rv__free(sqlite);
        return rc;
    }
    sqlite->conn = conn;
    *ret = &sqlite->store;
    return RV_OK;
}

static void sqlite_stats(struct rv__store *store, struct rv__store_stats *ret)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    *ret = conn->writer.stats;
    rv__sqlite_leave(conn);
}

static void sqlite_close(struct rv__store *store)
{
    struct rv__sqlite *sqlite = (struct rv__sqlite *)store;
    if (!sqlite->shares)
        conn_free(sqlite->conn);
    rv__holder_release(sqlite->holder);
    rv__free(sqlite);
}
