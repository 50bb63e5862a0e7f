/* postgres.c: opening and closing a PostgreSQL store; who may write to it; the table of functions.
 *
 * One process writes to a store, as with SQLite, or members do (member.c). The one holds an advisory lock as long
 * as its connection lives, and lane 0, whose epoch grows with each such writer; members share the lock, and
 * have a lane each. The lock keeps the other kind out. The epoch is the fence: a writer whose place another one
 * took meanwhile finds it changed in the transaction of its next write, which then does nothing. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum {
    WRITER_SLOT = 0,
    LOCK_TRIES = 40,    /* for a lock that our own old connection still has … */
    LOCK_PAUSE_MS = 50, /* … so long apart: two seconds together */
};

static const struct rv__store_ops pg_ops;

/* ------------------------------------------------------------------------------ who writes --- */

/* Try to get the writer's lock: 1, 0 (somebody else has it), or negative. */
static int try_lock(struct rv__pg *pg, rv_error *err)
{
    char sql[128];
    if (pg->conn.pg == NULL)
        return rv__fail(err, RV_ESTORE, "the database: no connection");
    snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock%s((%lld << 32) | 1)",
             pg->lease_ms > 0 ? "_shared" : "", (long long)(uint32_t)pg->conn.class_id);
    PGresult *result = PQexec(pg->conn.pg, sql);
    int rc = PQresultStatus(result) != PGRES_TUPLES_OK ? rv__pg_fail(&pg->conn, result, err)
                                                       : PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return rc;
}

/* The same, for a while: the server may not have noticed yet that a process has ended. */
static int wait_for_lock(struct rv__pg *pg, rv_error *err)
{
    int rc = try_lock(pg, err);
    for (int i = 0; rc == 0 && i < LOCK_TRIES; i++) {
        rv__clock_sleep_ms(LOCK_PAUSE_MS);
        rc = try_lock(pg, err);
    }
    return rc;
}

static int fail_fenced(struct rv__pg *pg, rv_error *err)
{
    pg->writer.fenced = true;
    return rv__fail(err, RV_EGONE,
                    pg->lease_ms > 0
                        ? "this member's lease is over: others have its runs"
                        : "another process writes to this store now: nothing more is written here");
}

/* Our lane, as it is now. Waits for a transaction of ours that has not ended yet. */
static int read_lane(struct rv__pg *pg, rv_error *err)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT epoch, batch FROM lanes WHERE slot = %d FOR UPDATE",
             (int)pg->writer.slot);
    PGresult *result = PQexecParams(pg->conn.pg, sql, 0, NULL, NULL, NULL, NULL, 1);
    int rc = RV_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        rc = rv__pg_fail(&pg->conn, result, err);
    else if (PQntuples(result) != 1 || rv__pg_int(result, 0) != pg->writer.epoch)
        rc = fail_fenced(pg, err);
    else
        pg->writer.batch = rv__pg_int(result, 1);
    PQclear(result);
    return rc;
}

/* The connection was lost, and another one is there. Is the store still ours to write to? */
static int come_back(struct rv__pg *pg, int old_backend, const char *old_started, rv_error *err)
{
    rv__pg_end_old_backend(&pg->conn, old_backend, old_started);
    int rc = wait_for_lock(pg, err);
    if (rc < 0)
        return rc;
    bool locked = rc == 1;
    rc = rv__pg_member_session(pg, err);
    if (rc == RV_OK && !pg->joining)
        rc = read_lane(pg, err); /* says if it is another's by now */
    if (rc == RV_OK && !locked)
        rc = rv__fail(err, RV_ESTORE, "another process is about to write to this store");
    return rc;
}

int rv__pg_ready(struct rv__pg *pg, rv_error *err)
{
    if (pg->conn.pg != NULL && !pg->conn.broken && PQstatus(pg->conn.pg) == CONNECTION_OK)
        return RV_OK;
    if (pg->writer.fenced && !pg->joining)
        return fail_fenced(pg, err);
    int backend = pg->conn.backend;
    char started[sizeof pg->conn.started];
    memcpy(started, pg->conn.started, sizeof started);
    rv__pg_conn_drop(&pg->conn);
    int rc = rv__pg_connect(&pg->conn, err);
    if (rc == RV_OK && !pg->read_only) {
        rc = come_back(pg, backend, started, err);
        if (rc < 0)
            rv__pg_conn_drop(&pg->conn);
    }
    return rc;
}

/* Who has the lock, for people. */
static int fail_busy(struct rv__pg *pg, rv_error *err)
{
    PGresult *result = PQexec(pg->conn.pg,
                              "SELECT holder, since::text, slot <> 0 FROM lanes WHERE ended = 0"
                              " ORDER BY slot <> 0 DESC, since LIMIT 1");
    int rc;
    bool known = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    if (known && pg->lease_ms == 0 && PQgetvalue(result, 0, 2)[0] == 't')
        rc = rv__fail(err, RV_EBUSY,
                      "%.100s writes to this store, since %.40s, and shares it with members only",
                      PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    else if (known)
        rc = rv__fail(err, RV_EBUSY,
                      "%.100s writes to this store, since %.40s: only one process can",
                      PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    else
        rc = rv__fail(err, RV_EBUSY, "another process writes to this store: only one can");
    PQclear(result);
    return rc;
}

/* Take the lane: whoever had it before cannot write any more. */
static int take_lane(struct rv__pg *pg, rv_error *err)
{
    char holder[128], host[64] = "", slot[16];
    const char *values[] = { slot, holder };
    (void)gethostname(host, sizeof host - 1); /* cut, if it is long */
    snprintf(holder, sizeof holder, "process %d on %s", (int)getpid(), host);
    snprintf(slot, sizeof slot, "%d", (int)pg->writer.slot);
    PGresult *result = PQexecParams(
        pg->conn.pg,
        "INSERT INTO lanes AS l (slot, epoch, batch, holder) VALUES ($1, 1, 0, $2)"
        " ON CONFLICT (slot) DO UPDATE SET epoch = l.epoch + 1, batch = 0,"
        " holder = EXCLUDED.holder, since = now() RETURNING epoch",
        2, NULL, values, NULL, NULL, 1);
    int rc = RV_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        rc = rv__pg_fail(&pg->conn, result, err);
    else
        pg->writer.epoch = rv__pg_int(result, 0);
    PQclear(result);
    return rc;
}

static int become_writer(struct rv__pg *pg, rv_error *err)
{
    pg->writer.slot = WRITER_SLOT;
    pg->writer.known = rv__zalloc(PG_KNOWN_RUNS, sizeof *pg->writer.known);
    if (pg->writer.known == NULL)
        return rv__nomem(err);
    int rc = wait_for_lock(pg, err);
    if (rc == 0)
        return fail_busy(pg, err);
    if (rc < 0 || pg->lease_ms == 0)
        return rc < 0 ? rc : take_lane(pg, err);
    rc = rv__pg_member_session(pg, err);
    return rc < 0 ? rc : rv__pg_join(pg, err);
}

/* --------------------------------------------------------------------------------- handles --- */

static void pg_close(struct rv__store *store)
{
    struct rv__pg *pg = rv__pg_of(store);
    rv__pg_conn_done(&pg->conn);
    rv__pg_params_done(&pg->params);
    rv__free(pg->writer.known);
    rv__free(pg);
}

static int handle_new(const char *conninfo, bool writes, struct rv__pg **ret, rv_error *err)
{
    struct rv__pg *pg = rv__zalloc(1, sizeof *pg);
    if (pg == NULL)
        return rv__nomem(err);
    pg->store.ops = &pg_ops;
    pg->read_only = !writes;
    rv__pg_params_init(&pg->params);
    int rc = rv__pg_conn_init(&pg->conn, conninfo, writes, err);
    if (rc < 0) {
        pg_close(&pg->store);
        return rc;
    }
    *ret = pg;
    return RV_OK;
}

static int read_class(struct rv__pg_conn *conn, rv_error *err)
{
    PGresult *result = PQexecParams(conn->pg, "SELECT 'rival'::regnamespace::oid", 0, NULL, NULL,
                                    NULL, NULL, 1);
    int rc = RV_OK;
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        conn->class_id = (int32_t)rv__pg_int(result, 0);
    else
        rc = rv__pg_fail(conn, result, err);
    PQclear(result);
    return rc;
}

int rv__postgres_open(const struct rv__store_opts *opts, struct rv__store **ret, rv_error *err)
{
    struct rv__pg *pg = NULL;
    int rc = handle_new(opts->path, !opts->read_only, &pg, err);
    if (rc < 0)
        return rc;
    assert(pg != NULL);
    pg->max_bytes = opts->max_row_bytes != 0 ? opts->max_row_bytes : PG_TEXT_MAX;
    if (opts->member)
        rv__pg_member_init(pg, opts->lease_ms);
    rc = rv__pg_connect(&pg->conn, err);
    if (rc == RV_OK)
        rc = rv__pg_migrate(&pg->conn, !opts->read_only, err);
    if (rc == RV_OK)
        rc = read_class(&pg->conn, err);
    if (rc == RV_OK && !opts->read_only)
        rc = become_writer(pg, err);
    if (rc < 0)
        pg_close(&pg->store);
    else
        *ret = &pg->store;
    return rc;
}

static int second_handle(const struct rv__pg *from, bool writes, struct rv__store **ret,
                         rv_error *err)
{
    struct rv__pg *pg = NULL;
    int rc = handle_new(from->conn.conninfo, writes, &pg, err);
    if (rc < 0)
        return rc;
    assert(pg != NULL);
    pg->read_only = true; /* runs are written by the store itself only */
    pg->conn.retries = true;
    pg->conn.class_id = from->conn.class_id;
    memcpy(pg->place, from->place, sizeof pg->place);
    rc = rv__pg_connect(&pg->conn, err);
    if (rc < 0)
        pg_close(&pg->store);
    else
        *ret = &pg->store;
    return rc;
}

static int pg_reader(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    return second_handle(rv__pg_of(store), false, ret, err);
}

static int pg_aide(struct rv__store *store, struct rv__store **ret, rv_error *err)
{
    return second_handle(rv__pg_of(store), true, ret, err);
}

static int pg_backup(struct rv__store *store, const char *path, rv__store_progress *progress,
                     void *arg, rv_error *err)
{
    (void)store;
    (void)path;
    (void)progress;
    (void)arg;
    return rv__fail(err, RV_ESTATE,
                    "a store in PostgreSQL is backed up with PostgreSQL's tools: pg_dump, or a "
                    "base backup");
}

static void pg_stats(struct rv__store *store, struct rv__store_stats *ret)
{
    *ret = rv__pg_of(store)->writer.stats;
}

static const struct rv__store_ops pg_ops = {
    .name = "postgres",
    .commit = rv__pg_commit,
    .define = rv__pg_define,
    .forget = rv__pg_forget,
    .import = rv__pg_import,
    .rejoin = rv__pg_rejoin,
    .renew = rv__pg_renew,
    .part = rv__pg_part,
    .member = rv__pg_member,
    .aide = pg_aide,
    .expire = rv__pg_expire,
    .claim = rv__pg_claim,
    .claim_run = rv__pg_claim_run,
    .owner = rv__pg_owner,
    .members = rv__pg_members,
    .ask = rv__pg_ask,
    .asked = rv__pg_asked,
    .answer = rv__pg_answer_request,
    .answered = rv__pg_answered,
    .await = rv__pg_await,
    .take_marks = rv__pg_take_marks,
    .move_marks = rv__pg_move_marks,
    .marks = rv__pg_marks,
    .definition = rv__pg_definition,
    .run = rv__pg_run,
    .snapshot = rv__pg_snapshot,
    .value = rv__pg_value,
    .journal = rv__pg_journal,
    .results = rv__pg_results,
    .results_seq = rv__pg_results_seq,
    .active = rv__pg_active,
    .due = rv__pg_due,
    .next_wake = rv__pg_next_wake,
    .feed = rv__pg_feed,
    .list = rv__pg_list,
    .logs = rv__pg_logs,
    .counts = rv__pg_counts,
    .finished = rv__pg_finished,
    .oldest_waiting = rv__pg_oldest_waiting,
    .whole = rv__pg_whole,
    .backup = pg_backup,
    .usage = rv__pg_usage,
    .stats = pg_stats,
    .reader = pg_reader,
    .close = pg_close,
};
