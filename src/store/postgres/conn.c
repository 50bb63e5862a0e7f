/* conn.c: a connection: how it is made, lost and made again; statements, alone or in a pipeline.
 *
 * A connection that is lost is dropped at once, and made again by the next call that needs it, not more often than
 * a back-off allows: a server that comes back is not met by a storm. Whoever asks meanwhile is told why the
 * last try failed.
 *
 * Our statements are written for indexes and planned once: the settings of the session see to it that an
 * empty table does not teach the planner to read tables from end to end. */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/store_name.h"

enum {
    BACK_OFF_MS = 50,       /* after the first try that failed; it doubles … */
    BACK_OFF_MAX_MS = 2000, /* … up to this */
    OPTIONS_MAX = 80,       /* of a connection string: libpq has some 45 */
};

static const char settings[] =
    "SET search_path = rival; SET plan_cache_mode = force_generic_plan; SET jit = off;"
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off;"
    /* A client that has vanished is noticed within 15 s, and what it had begun ends. */
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
    "SET idle_in_transaction_session_timeout = '15s'; SET lock_timeout = '10s';";

static const char settings_to_write[] = "SELECT set_config('synchronous_commit', 'on', false)"
                                        " WHERE current_setting('synchronous_commit') = 'off'";

static const char settings_to_read[] = "SET default_transaction_read_only = on";

int rv__pg_conn_init(struct rv__pg_conn *conn, const char *conninfo, bool writes, rv_error *err)
{
    size_t size = strlen(conninfo) + 1;
    *conn = (struct rv__pg_conn){ .conninfo = rv__alloc(size),
                                  .writes = writes,
                                  .retries = !writes };
    if (conn->conninfo == NULL)
        return rv__nomem(err);
    memcpy(conn->conninfo, conninfo, size);
    return RV_OK;
}

void rv__pg_conn_drop(struct rv__pg_conn *conn)
{
    PQfinish(conn->pg); /* NULL is allowed */
    conn->pg = NULL;
    conn->broken = conn->listens = false;
    memset(conn->prepared, 0, sizeof conn->prepared);
}

void rv__pg_conn_done(struct rv__pg_conn *conn)
{
    rv__pg_conn_drop(conn);
    rv__free(conn->conninfo);
}

static void say_nothing(void *arg, const char *message)
{
    (void)arg;
    (void)message; /* notices are for people with a shell; a library does not print */
}

/* What libpq or the server says, without the line breaks at its end. */
static int fail_text(rv_error *err, int code, const char *what, const char *text)
{
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    return rv__fail(err, code, "%s: %.*s", what, (int)len, text);
}

static void set_default(PQconninfoOption *options, const char *name, const char *value,
                        const char **keys, const char **values, size_t *count)
{
    for (PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (strcmp(o->keyword, name) == 0 && o->val != NULL)
            return;
    keys[*count] = name;
    values[(*count)++] = value;
}

/* libpq quotes what it does not understand, which may be the password: then only the place is named. */
static int fail_address(const char *address, const char *problem, rv_error *err)
{
    struct rv__buf shown;
    rv__buf_init(&shown, SIZE_MAX);
    rv__store_name_shown(address, &shown);
    bool hides = shown.rc < 0 || strcmp(shown.text, address) != 0;
    int rc = hides ? rv__fail(err, RV_EINVAL, "the address of the database is invalid: %.150s",
                              shown.rc < 0 ? "" : shown.text)
                   : fail_text(err, RV_EINVAL, "the address of the database",
                               problem != NULL ? problem : "out of memory");
    rv__buf_done(&shown);
    return rc;
}

/* Connect with what the text says, and with our defaults for what it does not say. */
static int dial(struct rv__pg_conn *conn, rv_error *err)
{
    const char *keys[OPTIONS_MAX + 8], *values[OPTIONS_MAX + 8];
    size_t count = 0;
    char *problem = NULL;
    PQconninfoOption *options = PQconninfoParse(conn->conninfo, &problem);
    if (options == NULL) {
        int rc = fail_address(conn->conninfo, problem, err);
        PQfreemem(problem);
        return rc;
    }
    for (PQconninfoOption *o = options; o->keyword != NULL && count < OPTIONS_MAX; o++)
        if (o->val != NULL) {
            keys[count] = o->keyword;
            values[count++] = o->val;
        }
    set_default(options, "application_name", "rival", keys, values, &count);
    set_default(options, "connect_timeout", "5", keys, values, &count);
    set_default(options, "keepalives_idle", "5", keys, values, &count);
    set_default(options, "keepalives_interval", "3", keys, values, &count);
    set_default(options, "keepalives_count", "3", keys, values, &count);
    set_default(options, "tcp_user_timeout", "15000", keys, values, &count);
    if (conn->writes)
        set_default(options, "target_session_attrs", "read-write", keys, values, &count);
    keys[count] = values[count] = NULL;
    conn->pg = PQconnectdbParams(keys, values, 0);
    PQconninfoFree(options);
    if (PQstatus(conn->pg) == CONNECTION_OK)
        return RV_OK;
    int rc = fail_text(err, RV_ESTORE, "the database cannot be reached",
                       conn->pg != NULL ? PQerrorMessage(conn->pg) : "out of memory");
    rv__pg_conn_drop(conn);
    return rc;
}

static int set_up(struct rv__pg_conn *conn, rv_error *err)
{
    PQsetNoticeProcessor(conn->pg, say_nothing, NULL);
    int rc = rv__pg_exec(conn, settings, err);
    if (rc == RV_OK)
        rc = rv__pg_exec(conn, conn->writes ? settings_to_write : settings_to_read, err);
    if (rc < 0)
        return rc;
    PGresult *result = PQexec(conn->pg, "SELECT backend_start::text FROM pg_stat_activity"
                                        " WHERE pid = pg_backend_pid()");
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) {
        conn->backend = PQbackendPID(conn->pg);
        snprintf(conn->started, sizeof conn->started, "%s", PQgetvalue(result, 0, 0));
    } else {
        rc = rv__pg_fail(conn, result, err);
    }
    PQclear(result);
    return rc;
}

int rv__pg_connect(struct rv__pg_conn *conn, rv_error *err)
{
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    if (conn->pg != NULL)
        return RV_OK;
    if (now_ms < conn->retry_at_ms)
        return rv__fail(err, conn->why.code, "%s", conn->why.message);
    int rc = dial(conn, &conn->why);
    if (rc == RV_OK)
        rc = set_up(conn, &conn->why);
    if (rc == RV_OK) {
        conn->back_off_ms = conn->retry_at_ms = 0;
        return RV_OK;
    }
    rv__pg_conn_drop(conn);
    conn->back_off_ms = conn->back_off_ms == 0 ? BACK_OFF_MS : conn->back_off_ms * 2;
    if (conn->back_off_ms > BACK_OFF_MAX_MS)
        conn->back_off_ms = BACK_OFF_MAX_MS;
    conn->retry_at_ms = rv__mono_ms(rv__clock_real()) + conn->back_off_ms;
    return rv__fail(err, rc, "%s", conn->why.message);
}

void rv__pg_end_old_backend(struct rv__pg_conn *conn, int pid, const char *started)
{
    char number[16];
    const char *values[] = { number, started };
    snprintf(number, sizeof number, "%d", pid);
    /* It is as good if it has ended by itself, or belongs to somebody else by now. */
    PQclear(PQexecParams(conn->pg,
                         "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                         " WHERE pid = $1 AND backend_start::text = $2",
                         2, NULL, values, NULL, NULL, 0));
}

/* -------------------------------------------------------------------------------- failures --- */

bool rv__pg_state_is(const char *state, const char *prefix)
{
    return state != NULL && strncmp(state, prefix, strlen(prefix)) == 0;
}

int rv__pg_fail(struct rv__pg_conn *conn, const PGresult *result, rv_error *err)
{
    const char *state = result != NULL ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *severity = result != NULL
                               ? PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED)
                               : NULL;
    /* What libpq says itself, without a SQLSTATE, is about the connection; it may not say so in its status yet. */
    conn->broken = conn->broken || state == NULL ||
                   (severity != NULL && strcmp(severity, "ERROR") != 0);
    const char *text = result != NULL ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (text == NULL)
        text = conn->pg != NULL ? PQerrorMessage(conn->pg) : "no connection";
    if (rv__pg_state_is(state, "XX00"))
        return fail_text(err, RV_EPARSE, "the store is damaged", text);
    if (rv__pg_state_is(state, "42P01") || rv__pg_state_is(state, "3F000"))
        return fail_text(err, RV_EGONE, "the tables of the store are gone", text);
    return fail_text(err, RV_ESTORE, "the database", text[0] != '\0' ? text : "no answer");
}

/* Whatever failed: is there still a connection? */
static void look_at_connection(struct rv__pg_conn *conn)
{
    if (conn->pg != NULL && (conn->broken || PQstatus(conn->pg) != CONNECTION_OK))
        rv__pg_conn_drop(conn);
}

int rv__pg_exec(struct rv__pg_conn *conn, const char *sql, rv_error *err)
{
    if (conn->pg == NULL)
        return rv__fail(err, RV_ESTORE, "the database: no connection");
    PGresult *result = PQexec(conn->pg, sql);
    ExecStatusType status = PQresultStatus(result);
    int rc = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
                 ? RV_OK
                 : rv__pg_fail(conn, result, err);
    PQclear(result);
    look_at_connection(conn);
    return rc;
}

/* ----------------------------------------------------------------------------- one statement --- */

static const char *name_of(enum rv__pg_sql sql, char ret[16])
{
    snprintf(ret, 16, "rv%d", (int)sql);
    return ret;
}

static const int all_binary[PG_PARAMS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                               1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

static int prepare(struct rv__pg_conn *conn, enum rv__pg_sql sql, rv_error *err)
{
    char name[16];
    if (conn->prepared[sql])
        return RV_OK;
    PGresult *result = PQprepare(conn->pg, name_of(sql, name), rv__pg_sql_text[sql], 0, NULL);
    int rc = PQresultStatus(result) == PGRES_COMMAND_OK ? RV_OK : rv__pg_fail(conn, result, err);
    PQclear(result);
    conn->prepared[sql] = rc == RV_OK;
    return rc;
}

PGresult *rv__pg_query(struct rv__pg_conn *conn, enum rv__pg_sql sql,
                       const struct rv__pg_params *params, rv_error *err)
{
    char name[16];
    if (prepare(conn, sql, err) < 0) {
        look_at_connection(conn);
        return NULL;
    }
    PGresult *result = PQexecPrepared(conn->pg, name_of(sql, name), params->count, params->values,
                                      params->lengths, all_binary, 1);
    if (PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK)
        return result;
    (void)rv__pg_fail(conn, result, err); /* its code is in *err */
    PQclear(result);
    look_at_connection(conn);
    return NULL;
}

/* The visitor has had enough, or something failed: nothing more of this statement comes. */
static void end_rows(struct rv__pg_conn *conn, bool early)
{
    char why[256];
    PGresult *result;
    if (conn->pg == NULL)
        return;
    if (early) {
        PGcancel *cancel = PQgetCancel(conn->pg);
        if (cancel == NULL || !PQcancel(cancel, why, sizeof why)) {
            PQfreeCancel(cancel);
            rv__pg_conn_drop(conn); /* quicker than to read it all */
            return;
        }
        PQfreeCancel(cancel);
    }
    while ((result = PQgetResult(conn->pg)) != NULL)
        PQclear(result);
    look_at_connection(conn);
}

/* `ret_rows`: how many were visited. */
static int try_rows(struct rv__pg_conn *conn, enum rv__pg_sql sql,
                    const struct rv__pg_params *params, rv__pg_visit *visit, void *arg,
                    size_t *ret_rows, rv_error *err)
{
    char name[16];
    int rc = prepare(conn, sql, err);
    if (rc < 0) {
        look_at_connection(conn);
        return rc;
    }
    if (!PQsendQueryPrepared(conn->pg, name_of(sql, name), params->count, params->values,
                             params->lengths, all_binary, 1) ||
        !PQsetSingleRowMode(conn->pg)) {
        rc = rv__pg_fail(conn, NULL, err);
        rv__pg_conn_drop(conn);
        return rc;
    }
    bool more = true;
    while (more && rc == RV_OK) {
        PGresult *row = PQgetResult(conn->pg);
        ExecStatusType status = PQresultStatus(row); /* of NULL it is PGRES_FATAL_ERROR */
        if (status == PGRES_SINGLE_TUPLE) {
            ++*ret_rows;
            rc = visit(arg, row, err);
        } else {
            more = false;
            if (status != PGRES_TUPLES_OK)
                rc = rv__pg_fail(conn, row, err);
        }
        PQclear(row);
    }
    end_rows(conn, more);
    return rc;
}

int rv__pg_rows(struct rv__pg_conn *conn, enum rv__pg_sql sql, const struct rv__pg_params *params,
                rv__pg_visit *visit, void *arg, rv_error *err)
{
    size_t rows = 0;
    int rc = try_rows(conn, sql, params, visit, arg, &rows, err);
    if (rc == RV_ESTORE && rows == 0 && conn->pg == NULL && conn->retries &&
        rv__pg_connect(conn, NULL) == RV_OK)
        rc = try_rows(conn, sql, params, visit, arg, &rows, err);
    return rc;
}

/* ------------------------------------------------------------------------------- pipelines --- */

int rv__pg_pipe_begin(struct rv__pg_conn *conn, rv_error *err)
{
    conn->sent_count = 0;
    if (PQenterPipelineMode(conn->pg))
        return RV_OK;
    int rc = rv__pg_fail(conn, NULL, err);
    rv__pg_conn_drop(conn);
    return rc;
}

static void note_sent(struct rv__pg_conn *conn, enum rv__pg_sql sql)
{
    assert(conn->sent_count < PG_PIPE_MAX);
    conn->sent[conn->sent_count++] = sql;
}

/* A failure to send is a lost connection, or one of no use: the end of the pipeline says so. */
void rv__pg_pipe_send(struct rv__pg_conn *conn, enum rv__pg_sql sql,
                      const struct rv__pg_params *params)
{
    char name[16];
    (void)name_of(sql, name);
    if (!conn->prepared[sql] && PQsendPrepare(conn->pg, name, rv__pg_sql_text[sql], 0, NULL)) {
        note_sent(conn, PG_SQLS);
        conn->prepared[sql] = true; /* if it is not, the connection is dropped: see below */
    }
    if (PQsendQueryPrepared(conn->pg, name, params->count, params->values, params->lengths,
                            all_binary, 1))
        note_sent(conn, sql);
}

void rv__pg_pipe_text(struct rv__pg_conn *conn, const char *sql)
{
    if (PQsendQueryParams(conn->pg, sql, 0, NULL, NULL, NULL, NULL, 1))
        note_sent(conn, PG_SQLS);
}

static void note_failure(struct rv__pg_conn *conn, size_t at, const PGresult *result,
                         struct rv__pg_answer *ret)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *table = PQresultErrorField(result, PG_DIAG_TABLE_NAME);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    ret->failed_at = at;
    ret->failed = conn->sent[at];
    snprintf(ret->state, sizeof ret->state, "%s", state != NULL ? state : "");
    snprintf(ret->table, sizeof ret->table, "%s", table != NULL ? table : "");
    snprintf(ret->detail, sizeof ret->detail, "%s", detail != NULL ? detail : "");
    (void)rv__pg_fail(conn, result, &ret->why);
}

/* A statement whose preparation failed, or was skipped, is not prepared. */
static void forget_prepared(struct rv__pg_conn *conn, size_t from)
{
    for (size_t i = from; i < conn->sent_count; i++)
        if (conn->sent[i] == PG_SQLS && i + 1 < conn->sent_count && conn->sent[i + 1] != PG_SQLS)
            conn->prepared[conn->sent[i + 1]] = false;
}

void rv__pg_pipe_end(struct rv__pg_conn *conn, rv__pg_on_result *on_result, void *arg,
                     struct rv__pg_answer *ret)
{
    *ret = (struct rv__pg_answer){ .failed_at = SIZE_MAX, .failed = PG_SQLS };
    bool sent = PQpipelineSync(conn->pg) == 1;
    bool synced = false;
    for (size_t at = 0; sent && !synced && PQstatus(conn->pg) == CONNECTION_OK;) {
        PGresult *result = PQgetResult(conn->pg);
        ExecStatusType status = PQresultStatus(result);
        if (result == NULL) {
            at++; /* all of that statement */
            if (at > conn->sent_count)
                break;
            continue;
        }
        if (status == PGRES_PIPELINE_SYNC)
            synced = true;
        else if (status == PGRES_FATAL_ERROR && ret->failed_at == SIZE_MAX && at < conn->sent_count)
            note_failure(conn, at, result, ret);
        else if ((status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) && on_result != NULL &&
                 at < conn->sent_count && conn->sent[at] != PG_SQLS)
            on_result(arg, conn->sent[at], result);
        PQclear(result);
    }
    if (ret->failed_at != SIZE_MAX)
        forget_prepared(conn, ret->failed_at);
    if (!synced || conn->broken || PQstatus(conn->pg) != CONNECTION_OK ||
        !PQexitPipelineMode(conn->pg)) {
        ret->lost = true;
        if (ret->why.code == 0)
            (void)rv__pg_fail(conn, NULL, &ret->why);
        rv__pg_conn_drop(conn);
    }
}
