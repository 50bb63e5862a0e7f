/* whole.c: reads a whole run, or copies the whole store, as of one moment.
 *
 * Other readers work in pages and end their transaction in between (read.c). These keep one read transaction
 * to the end, so that all they read is consistent. It does not block writers, but the WAL cannot restart
 * meanwhile. */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Pages of a backup between two reports of progress: 4 MB. */
enum { BACKUP_PAGES = 1024 };

static int begin_reading(struct rv__sqlite_conn *conn, rv_error *err)
{
    uint64_t seq, run, forgotten;
    int rc = rv__sqlite_run_sql(conn, SQL_BEGIN_READING, err);
    /* The snapshot is taken by the first read. */
    return rc == RV_OK ? rv__sqlite_last_numbers(conn, &seq, &run, &forgotten, err) : rc;
}

static void end_reading(struct rv__sqlite_conn *conn)
{
    /* Nothing was written, so a failure loses nothing. */
    if (!sqlite3_get_autocommit(conn->db))
        (void)rv__sqlite_run_sql(conn, SQL_ROLLBACK, NULL);
}

/* ---------------------------------------------------------------------------------- a run --- */

struct showing {
    struct rv__sqlite_conn *conn;
    const struct rv__store_visitor *visitor;
    void *arg;
    rv_error *err;
};

static int show_definition(struct showing *s, struct rv__str version)
{
    rv_error why;
    int rc;
    sqlite3_stmt *st = rv__sqlite_find_one(s->conn, SQL_DEFINITION, version, "definition", &rc,
                                           &why);
    if (st == NULL && rc == RV_ENOTFOUND)
        return RV_OK;
    if (st == NULL)
        return rv__fail(s->err, rc, "%s", why.message);
    struct rv__str plan = rv__sqlite_some_text(s->conn, st, 0);
    rc = rv__sqlite_whole(s->conn, s->err);
    rc = rc < 0 ? rc : s->visitor->definition(s->arg, 0, plan);
    (void)sqlite3_reset(st); /* repeats what the step said */
    return rc;
}

static int show_row(struct showing *s, struct rv__str run)
{
    int rc;
    sqlite3_stmt *st = rv__sqlite_find_one(s->conn, SQL_RUN, run, "run", &rc, s->err);
    if (st == NULL)
        return rc;
    struct rv__store_run row = rv__sqlite_run_of(s->conn, st);
    rc = rv__sqlite_whole(s->conn, s->err);
    rc = rc < 0 ? rc : s->visitor->run(s->arg, &row);
    if (rc == RV_OK)
        rc = show_definition(s, row.version);
    (void)sqlite3_reset(st);
    return rc;
}

static int show_values(struct showing *s, struct rv__str run)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(s->conn, SQL_VALUES, &rc, s->err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(s->conn, st, 1, run);
    while ((rc = rv__sqlite_step(s->conn, st, s->err)) == 1) {
        struct rv__str json = rv__sqlite_some_text(s->conn, st, 1);
        rc = rv__sqlite_whole(s->conn, s->err);
        rc = rc < 0 ? rc : s->visitor->value(s->arg, (uint64_t)sqlite3_column_int64(st, 0), json);
        if (rc != RV_OK)
            break;
    }
    (void)sqlite3_reset(st); /* repeats what the step said */
    return rc;
}

/* The next line of the log; *ret_id is its number, UINT64_MAX at their end. */
static int next_line(struct showing *s, sqlite3_stmt *lines, uint64_t *ret_id)
{
    int rc = rv__sqlite_step(s->conn, lines, s->err);
    *ret_id = rc == 1 ? (uint64_t)sqlite3_column_int64(lines, 0) : UINT64_MAX;
    return rc < 0 ? rc : RV_OK;
}

/* Merge the journal rows and the log lines by number. */
static int merge(struct showing *s, int64_t run, sqlite3_stmt *lines)
{
    struct rv__sqlite_conn *conn = s->conn;
    uint64_t line = 0;
    size_t left = conn->chain.count;
    bool gone = false; /* always false within one snapshot */
    int rc = next_line(s, lines, &line);
    while (rc == RV_OK && (left > 0 || line != UINT64_MAX) && !gone) {
        if (left > 0 && conn->chain.of[left - 1] < line) {
            rc = rv__sqlite_visit_turn(conn, run, conn->chain.of[--left], s->visitor->row, s->arg,
                                       &gone, s->err);
        } else {
            conn->bad = SQLITE_OK; /* set by the last row, which was good */
            struct rv__store_log log = rv__sqlite_log_of(conn, lines);
            rc = rv__sqlite_whole(conn, s->err);
            rc = rc < 0 ? rc : s->visitor->log(s->arg, &log);
            rc = rc == RV_OK ? next_line(s, lines, &line) : rc;
        }
    }
    return rc;
}

static int show_history(struct showing *s, struct rv__str run)
{
    int64_t key = 0;
    uint64_t head = 0;
    int rc = rv__sqlite_find_head(s->conn, run, &key, &head, s->err);
    if (rc == RV_OK)
        rc = rv__sqlite_chain(s->conn, key, head, 0, s->err);
    sqlite3_stmt *lines = rc == RV_OK ? rv__sqlite_get(s->conn, SQL_LOGS_OF_RUN, &rc, s->err)
                                      : NULL;
    if (lines == NULL)
        return rc;
    rv__sqlite_bind_int(s->conn, lines, 1, 0);
    rv__sqlite_bind_int(s->conn, lines, 2, INT64_MAX);
    rv__sqlite_bind_str(s->conn, lines, 3, run);
    rc = merge(s, key, lines);
    (void)sqlite3_reset(lines); /* repeats what the step said */
    return rc;
}

int rv__sqlite_whole_run(struct rv__store *store, struct rv__str run,
                         const struct rv__store_visitor *visitor, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct showing s = { conn, visitor, arg, err };
    int rc = begin_reading(conn, err);
    if (rc == RV_OK)
        rc = show_row(&s, run);
    if (rc == RV_OK)
        rc = show_values(&s, run);
    if (rc == RV_OK)
        rc = show_history(&s, run);
    end_reading(conn);
    rv__sqlite_leave(conn);
    return rc;
}

/* -------------------------------------------------------------------------------- backups --- */

static int fail_copy(sqlite3 *to, int sqlite_rc, const char *path, rv_error *err)
{
    int system = to != NULL ? sqlite3_system_errno(to) : 0;
    if ((sqlite_rc & 0xff) == SQLITE_NOMEM)
        return rv__nomem(err);
    if ((sqlite_rc & 0xff) == SQLITE_FULL)
        return rv__fail(err, RV_ESTORE,
                        "no space left for the backup '%.150s': no file was kept; free some space, "
                        "or name a file on another disk",
                        path);
    return rv__fail(err, RV_ESTORE, "the backup '%.150s' failed: %s", path,
                    system != 0 ? strerrordesc_np(system) : sqlite3_errstr(sqlite_rc));
}

static int copy_pages(sqlite3_backup *backup, sqlite3 *to, const char *path,
                      rv__store_progress *progress, void *arg, rv_error *err)
{
    int rc, answer = RV_OK;
    do {
        rc = sqlite3_backup_step(backup, BACKUP_PAGES);
        if (rc == SQLITE_OK || rc == SQLITE_DONE) {
            int total = sqlite3_backup_pagecount(backup);
            answer = progress(arg, (uint64_t)(total - sqlite3_backup_remaining(backup)),
                              (uint64_t)total);
        }
    } while (rc == SQLITE_OK && answer == RV_OK);
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        return fail_copy(to, rc, path, err);
    return answer;
}

static int copy(struct rv__sqlite_conn *conn, sqlite3 *to, const char *path,
                rv__store_progress *progress, void *arg, rv_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", conn->db, "main");
    if (backup == NULL)
        return fail_copy(to, sqlite3_errcode(to), path, err);
    int rc = copy_pages(backup, to, path, progress, arg, err);
    int finished = sqlite3_backup_finish(backup); /* repeats what a step said */
    return rc == RV_OK && finished != SQLITE_OK ? fail_copy(to, finished, path, err) : rc;
}

/* Check every page and index of the copy. */
static int verify(sqlite3 *to, const char *path, rv_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(to, "PRAGMA integrity_check(1)", -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    const char *said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (rc != SQLITE_ROW || said == NULL)
        rc = fail_copy(to, rc == SQLITE_ROW ? SQLITE_NOMEM : rc, path, err);
    else if (strcmp(said, "ok") != 0)
        rc = rv__fail(
            err, RV_ESTORE,
            "the backup '%.100s' would be damaged, and so is the store, or the disk: %.80s", path,
            said);
    else
        rc = RV_OK;
    (void)sqlite3_finalize(st);
    return rc;
}

int rv__sqlite_backup(struct rv__store *store, const char *path, rv__store_progress *progress,
                      void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    sqlite3 *to = NULL;
    int rc = sqlite3_open_v2(path, &to,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_EXRESCODE,
                             conn->vfs);
    /* No sync: an unfinished copy is useless after a crash. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    rc = rc == SQLITE_OK ? begin_reading(conn, err) : fail_copy(to, rc, path, err);
    if (rc == RV_OK)
        rc = copy(conn, to, path, progress, arg, err);
    end_reading(conn);
    /* Without a WAL the copy is one file, readable also in a read-only folder; a writer turns WAL on again. */
    if (rc == RV_OK &&
        sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        rc = fail_copy(to, sqlite3_errcode(to), path, err);
    if (rc == RV_OK)
        rc = verify(to, path, err);
    int closed = sqlite3_close(to); /* every statement is gone: it cannot be busy */
    assert(closed == SQLITE_OK);
    (void)closed;
    rv__sqlite_leave(conn);
    return rc;
}
