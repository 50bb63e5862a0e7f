/* schema.c: the tables, and the migrations that make them.
 *
 * Entry n of `migrations` takes a file from schema n to n + 1, in one transaction together with the
 * number (user_version). A released entry is never edited. The number is read before anything else is
 * done to a file, so a file of a newer version is not changed.
 *
 * Why these tables: docs/adr/0006-sqlite-schema.md. In short: run ids are replaced by integer keys, and the
 * names of workflows, versions and statuses by integer ids, so that rows and indexes are small. The journal
 * is append-only and has no index: the rows of a run are a chain (ADR 0018). Inputs are large and never
 * change, so they are not in the row that changes. */
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

/* "Rval": marks a file as ours. */
#define APPLICATION_ID "1383489900"

static const char *const migrations[] = {
    /* 0 -> 1 */
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE names(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE definitions(hash TEXT PRIMARY KEY, plan TEXT NOT NULL);"
    /* workflow, version, status: ids of names. Times: wall ms, 0 = not yet. head: the last row of its
     * journal; of an active run perhaps an older one (heads.c). */
    "CREATE TABLE runs(key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow INTEGER,"
    " version INTEGER, status INTEGER, active INTEGER NOT NULL, wake_at INTEGER NOT NULL,"
    " created INTEGER NOT NULL, started INTEGER NOT NULL, completed INTEGER NOT NULL,"
    " head INTEGER NOT NULL, input_key TEXT, failed_step TEXT, error TEXT, suspension TEXT,"
    " waiting INTEGER NOT NULL DEFAULT 0, rerun_of TEXT);"
    "CREATE INDEX runs_created ON runs(created, id);"
    "CREATE INDEX runs_workflow ON runs(workflow, created, id);"
    "CREATE INDEX runs_status ON runs(status, created, id);"
    "CREATE INDEX runs_waiting ON runs(created, id) WHERE waiting = 1;"
    "CREATE INDEX runs_rerun ON runs(rerun_of, created, id) WHERE rerun_of IS NOT NULL;"
    "CREATE INDEX runs_active ON runs(active) WHERE active = 1;"
    "CREATE INDEX runs_wake ON runs(wake_at) WHERE wake_at <> 0;"
    "CREATE INDEX runs_finished ON runs(completed)"
    " WHERE completed <> 0 AND active = 0 AND wake_at = 0;"
    "CREATE TABLE inputs(run INTEGER PRIMARY KEY, input TEXT NOT NULL);"
    /* status: the id of a name; 0: finished and not active; -1: all; -2: waiting for a person or signal. */
    "CREATE TABLE counts(status INTEGER PRIMARY KEY, runs INTEGER NOT NULL);"
    /* prev: the run's row before this one; 0 = it is the first. */
    "CREATE TABLE journal(seq INTEGER PRIMARY KEY, run INTEGER NOT NULL, prev INTEGER NOT NULL,"
    " facts TEXT NOT NULL);"
    /* A chunk has the results `first` to `first` + `count` - 1, concatenated in json; sizes has the length of each,
     * with commas; "-": none. Rows are appended; the index serves the check whether a result exists. */
    "CREATE TABLE results(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, key TEXT NOT NULL,"
    " first INTEGER NOT NULL, count INTEGER NOT NULL, sizes TEXT NOT NULL, json TEXT NOT NULL);"
    "CREATE INDEX results_place ON results(run, key, first, count);"
    /* The journal row of the last write that had results. */
    "CREATE TABLE results_seqs(run INTEGER PRIMARY KEY, seq INTEGER NOT NULL);"
    /* bytes: of json, so that deleting a large one can be planned without reading it. */
    "CREATE TABLE large_values(id INTEGER PRIMARY KEY, run INTEGER NOT NULL,"
    " number INTEGER NOT NULL, bytes INTEGER NOT NULL, json TEXT NOT NULL);"
    "CREATE UNIQUE INDEX large_values_place ON large_values(run, number);"
    "CREATE TABLE snapshots(run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);"
    "CREATE TABLE logs(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, at INTEGER NOT NULL,"
    " level INTEGER NOT NULL, attempt INTEGER NOT NULL, step TEXT, path TEXT,"
    " message TEXT NOT NULL, metadata TEXT, kind TEXT);"
    "CREATE INDEX logs_run ON logs(run);"
    "CREATE INDEX logs_stream ON logs(run, path) WHERE kind = 'stream';"
    /* Runs whose rows are gone, and whose journal, results and logs are being deleted. */
    "CREATE TABLE forgotten(run INTEGER PRIMARY KEY, head INTEGER NOT NULL);"
    /* For people who use the sqlite3 shell. */
    "CREATE VIEW run_list AS SELECT r.id, w.name AS workflow, s.name AS status,"
    " datetime(r.created / 1000, 'unixepoch') AS created, r.active, r.wake_at, r.failed_step,"
    " r.error, v.name AS version, r.key FROM runs r LEFT JOIN names w ON w.id = r.workflow"
    " LEFT JOIN names s ON s.id = r.status LEFT JOIN names v ON v.id = r.version;"
    "PRAGMA application_id = " APPLICATION_ID ";",
    /* 1 -> 2. place: the index. */
    "CREATE TABLE marks(name TEXT PRIMARY KEY, seq INTEGER NOT NULL, place INTEGER NOT NULL)"
    " WITHOUT ROWID;",
};

enum { VERSION = sizeof migrations / sizeof *migrations };

int rv__sqlite_schema_version(void)
{
    return VERSION;
}

/* One number, for a pragma or a count. */
static int ask(struct rv__sqlite_conn *conn, const char *sql, int64_t *ret, rv_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(conn->db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc != SQLITE_ROW) {
        rc = rv__sqlite_fail(conn, rc, err);
    } else {
        *ret = sqlite3_column_int64(st, 0);
        rc = RV_OK;
    }
    sqlite3_finalize(st);
    return rc;
}

int rv__sqlite_schema_check(struct rv__sqlite_conn *conn, int *ret_version, rv_error *err)
{
    int64_t version = 0, application = 0, tables = 0;
    int rc = ask(conn, "PRAGMA user_version", &version, err);
    if (rc < 0)
        return rc;

    rc = ask(conn, "PRAGMA application_id", &application, err);
    if (rc < 0)
        return rc;

    rc = ask(conn, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (rc < 0)
        return rc;

    bool ours = application == strtoll(APPLICATION_ID, NULL, 10);
    if (!ours && (application != 0 || version != 0 || tables != 0))
        return rv__fail(err, RV_ESTORE,
                        "'%.100s' is a database of another program, not a store of Rival; nothing "
                        "was changed: name another file",
                        conn->path);
    if (version > VERSION)
        return rv__fail(err, RV_ESTORE,
                        "'%.100s' was written by a newer version of Rival (schema %lld, this "
                        "program knows %d); nothing was changed",
                        conn->path, (long long)version, VERSION);
    if (version < 0 || (ours && version == 0))
        return rv__fail(err, RV_ESTORE, "'%.100s' is damaged: it says its schema is %lld",
                        conn->path, (long long)version);
    *ret_version = (int)version;
    return RV_OK;
}

static int exec(struct rv__sqlite_conn *conn, const char *sql, rv_error *err)
{
    int rc = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? RV_OK : rv__sqlite_fail(conn, rc, err);
}

int rv__sqlite_schema_upgrade(struct rv__sqlite_conn *conn, int version, rv_error *err)
{
    int rc = RV_OK;
    for (; version < VERSION && rc == RV_OK; version++) {
        char number[64];
        snprintf(number, sizeof number, "PRAGMA user_version = %d", version + 1);
        rc = exec(conn, "BEGIN IMMEDIATE", err);
        if (rc == RV_OK)
            rc = exec(conn, migrations[version], err);
        if (rc == RV_OK)
            rc = exec(conn, number, err);
        if (rc == RV_OK)
            rc = exec(conn, "COMMIT", err);
        if (rc < 0 && !sqlite3_get_autocommit(conn->db))
            (void)exec(conn, "ROLLBACK", NULL); /* the first failure is reported */
    }
    return rc;
}
