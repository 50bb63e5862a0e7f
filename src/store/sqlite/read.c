/* read.c: the reading functions of the SQLite store.
 *
 * A statement on a row holds a snapshot of the file, and meanwhile the WAL cannot be restarted. So every read works
 * in pages of SQLITE_PAGE_ROWS, and releases the file between them.
 *
 * The file is not trusted: a column of a wrong type is damage (RV_EPARSE) of its run. Lists of runs find numbers in
 * an index and read each row separately: a row that cannot be read is reported, and the next one follows. */
#include "store/sqlite/sqlite.h"

#include <assert.h>

#include "base/error.h"

static int64_t clamp(uint64_t n)
{
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* The size of the next page. */
static int64_t page_of(size_t left)
{
    return left < SQLITE_PAGE_ROWS ? (int64_t)left : SQLITE_PAGE_ROWS;
}

struct rv__store_run rv__sqlite_run_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    return (struct rv__store_run){
        .number = rv__sqlite_uint(conn, st, 0),
        .id = rv__sqlite_some_text(conn, st, 1),
        .workflow = rv__sqlite_text(conn, st, 2),
        .version = rv__sqlite_text(conn, st, 3),
        .status = rv__sqlite_text(conn, st, 4),
        .active = rv__sqlite_int(conn, st, 5) != 0,
        .wake_at_ms = rv__sqlite_int(conn, st, 6),
        .created_ms = rv__sqlite_int(conn, st, 7),
        .started_ms = rv__sqlite_int(conn, st, 8),
        .completed_ms = rv__sqlite_int(conn, st, 9),
        .input_key = rv__sqlite_text(conn, st, 10),
        .failed_step = rv__sqlite_text(conn, st, 11),
        .error = rv__sqlite_text(conn, st, 12),
        .suspension = rv__sqlite_text(conn, st, 13),
        .waiting = rv__sqlite_int(conn, st, 14) != 0,
        .rerun_of = rv__sqlite_text(conn, st, 15),
        .input = rv__sqlite_text(conn, st, 16),
    };
}

sqlite3_stmt *rv__sqlite_find_one(struct rv__sqlite_conn *conn, enum rv__sql sql, struct rv__str by,
                                  const char *what, int *rc, rv_error *err)
{
    *rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, rc, err);
    if (st == NULL)
        return NULL;
    rv__sqlite_bind_str(conn, st, 1, by);
    *rc = rv__sqlite_step(conn, st, err);
    if (*rc == 0)
        *rc = rv__fail(err, RV_ENOTFOUND, "there is no %s '%.*s'", what, RV__ARG(by));
    return *rc == 1 ? st : NULL;
}

int rv__sqlite_definition(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                          void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc;
    sqlite3_stmt *st = rv__sqlite_find_one(conn, SQL_DEFINITION, hash, "definition", &rc, err);
    if (st != NULL) {
        struct rv__str plan = rv__sqlite_some_text(conn, st, 0);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, 0, plan);
        (void)sqlite3_reset(st); /* repeats the result of the step */
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit,
                   void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc;
    sqlite3_stmt *st = rv__sqlite_find_one(conn, SQL_RUN, id, "run", &rc, err);
    if (st != NULL) {
        struct rv__store_run row = rv__sqlite_run_of(conn, st);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, &row);
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_snapshot(struct rv__store *store, struct rv__str run, rv__store_visit_text *visit,
                        void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc;
    sqlite3_stmt *st = rv__sqlite_find_one(conn, SQL_SNAPSHOT, run, "snapshot of run", &rc, err);
    if (st != NULL) {
        struct rv__str state = rv__sqlite_some_text(conn, st, 1);
        uint64_t seq = rv__sqlite_uint(conn, st, 0);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, seq, state);
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_value(struct rv__store *store, struct rv__str run, uint64_t number,
                     rv__store_visit_text *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_VALUE, &rc, err);
    if (st == NULL)
        goto out;
    rv__sqlite_bind_str(conn, st, 1, run);
    rv__sqlite_bind_int(conn, st, 2, (int64_t)number);
    rc = rv__sqlite_step(conn, st, err);
    if (rc == 0)
        rc = rv__fail(err, RV_ENOTFOUND, "there is no value %llu of run '%.*s'",
                      (unsigned long long)number, RV__ARG(run));
    if (rc < 0)
        goto out;

    struct rv__str json = rv__sqlite_some_text(conn, st, 1);
    rc = rv__sqlite_whole(conn, err);
    rc = rc < 0 ? rc : visit(arg, number, json);
    (void)sqlite3_reset(st); /* repeats the result of the step */
out:
    rv__sqlite_leave(conn);
    return rc;
}

/* ----------------------------------------------------------------------------- many runs --- */

/* Step a statement that is not about one run. */
static int step_store(struct rv__sqlite_conn *conn, sqlite3_stmt *st, rv_error *err)
{
    return rv__sqlite_of_store(rv__sqlite_step(conn, st, err), err);
}

static bool is_damage(int rc)
{
    return rc == RV_EPARSE || rc == RV_ETOOBIG;
}

/* A run of which only the number is known, and perhaps its id. */
static struct rv__store_run damaged_run(struct rv__sqlite_conn *conn, int64_t number)
{
    struct rv__store_run row = { .number = (uint64_t)number, .damaged = true };
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ID_OF_NUMBER, &rc, NULL);
    if (st != NULL) {
        rv__sqlite_bind_int(conn, st, 1, number);
        if (rv__sqlite_step(conn, st, NULL) == 1)
            row.id = rv__sqlite_text(conn, st, 0); /* valid until the next read */
    }
    row.why = rv__str(conn->damage.message);
    return row;
}

static void let_go_of(struct rv__sqlite_conn *conn)
{
    static const enum rv__sql rows[] = { SQL_RUN_OF_NUMBER, SQL_RUN_WITHOUT_INPUT,
                                         SQL_ID_OF_NUMBER };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (conn->statements[rows[i]] != NULL)
            (void)sqlite3_reset(conn->statements[rows[i]]); /* repeats the result of its step */
    conn->bad = SQLITE_OK;
}

/* The row of a run found by an index, for the visitor: its texts are valid until let_go_of(). */
static int fetch_run(struct rv__sqlite_conn *conn, int64_t number, bool with_input,
                     struct rv__store_run *ret, rv_error *err)
{
    enum rv__sql sql = with_input ? SQL_RUN_OF_NUMBER : SQL_RUN_WITHOUT_INPUT;
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, number);
    rc = rv__sqlite_step(conn, st, &conn->damage);
    if (rc == 0)
        rc = rv__fail(&conn->damage, RV_EPARSE,
                      "the store '%.100s' is damaged: there is no row %lld", conn->path,
                      (long long)number);
    if (rc == 1) {
        *ret = rv__sqlite_run_of(conn, st);
        rc = rv__sqlite_whole(conn, &conn->damage);
    }
    if (is_damage(rc)) {
        *ret = damaged_run(conn, number);
        rc = RV_OK;
    }
    if (rc < 0 && err != NULL)
        *err = conn->damage;
    return rc;
}

/* Visit the runs of a statement in pages; `bind` sets the position after the last one. */
struct walk {
    enum rv__sql sql;
    bool with_input;
    int64_t now_ms;
    struct rv__store_place place; /* of the last run visited */
    void (*set_time)(struct rv__store_run *row, int64_t at_ms);
    void (*bind)(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                 int64_t limit);
};

static int visit_found(struct rv__sqlite_conn *conn, struct walk *walk, sqlite3_stmt *st,
                       rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct rv__store_run row = { .number = 0 };
    int64_t at_ms = sqlite3_column_int64(st, 0), number = sqlite3_column_int64(st, 1);
    walk->place = (struct rv__store_place){ at_ms, (uint64_t)number };
    int rc = fetch_run(conn, number, walk->with_input, &row, err);
    if (rc == RV_OK && row.damaged)
        walk->set_time(&row, at_ms);
    if (rc == RV_OK)
        rc = visit(arg, &row);
    let_go_of(conn);
    return rc;
}

static int walk_runs(struct rv__store *store, struct walk *walk, size_t limit,
                     rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    int64_t page, rows = 0;
    do {
        page = page_of(limit);
        sqlite3_stmt *st = rv__sqlite_get(conn, walk->sql, &rc, err);
        if (st == NULL)
            break;
        walk->bind(walk, conn, st, page);
        for (rows = 0; (rc = step_store(conn, st, err)) == 1; rows++) {
            rc = visit_found(conn, walk, st, visit, arg, err);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st);
        limit -= (size_t)rows;
    } while (rc == RV_OK && rows == page && limit > 0);
    rv__sqlite_leave(conn);
    return rc;
}

static void set_active(struct rv__store_run *row, int64_t at_ms)
{
    (void)at_ms;
    row->active = true;
}

static void set_wake_time(struct rv__store_run *row, int64_t at_ms)
{
    row->wake_at_ms = at_ms;
}

static void set_completed(struct rv__store_run *row, int64_t at_ms)
{
    row->completed_ms = at_ms;
}

static void bind_active(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                        int64_t limit)
{
    rv__sqlite_bind_int(conn, st, 1, clamp(walk->place.number));
    rv__sqlite_bind_int(conn, st, 2, limit);
}

static void bind_due(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                     int64_t limit)
{
    rv__sqlite_bind_int(conn, st, 1, walk->now_ms);
    rv__sqlite_bind_int(conn, st, 2, walk->place.at_ms);
    rv__sqlite_bind_int(conn, st, 3, clamp(walk->place.number));
    rv__sqlite_bind_int(conn, st, 4, limit);
}

static void bind_finished(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                          int64_t limit)
{
    rv__sqlite_bind_int(conn, st, 1, walk->place.at_ms);
    rv__sqlite_bind_int(conn, st, 2, clamp(walk->place.number));
    rv__sqlite_bind_int(conn, st, 3, limit);
}

static struct rv__store_place place_of(const struct rv__store_place *after)
{
    return after != NULL ? *after : (struct rv__store_place){ INT64_MIN, 0 };
}

int rv__sqlite_active(struct rv__store *store, uint64_t after, size_t limit,
                      rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct walk walk = { SQL_ACTIVE, true, 0, { 0, after }, set_active, bind_active };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
                   size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct walk walk = { SQL_DUE, true, now_ms, place_of(after), set_wake_time, bind_due };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                        rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct walk walk = { SQL_FINISHED, false, 0, place_of(after), set_completed, bind_finished };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

static void set_created(struct rv__store_run *row, int64_t at_ms)
{
    row->created_ms = at_ms;
}

static void bind_limit(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                       int64_t limit)
{
    (void)walk;
    rv__sqlite_bind_int(conn, st, 1, limit);
}

int rv__sqlite_oldest_waiting(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                              void *arg, rv_error *err)
{
    struct walk walk = { SQL_OLDEST_WAITING, false, 0, place_of(NULL), set_created, bind_limit };
    static_assert((int)RV__STORE_OLDEST <= (int)SQLITE_PAGE_ROWS, "all of them are one page");
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = rv__sqlite_number(conn, SQL_NEXT_WAKE, after_ms, ret, err);
    rv__sqlite_leave(conn);
    return rv__sqlite_of_store(rc, err);
}

/* The current row of SQL_FEED, or of SQL_FEED_NEXT, which has no facts. */
static int visit_turn(struct rv__sqlite_conn *conn, sqlite3_stmt *st, bool with_facts,
                      uint64_t *after, rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    uint64_t seq = (uint64_t)sqlite3_column_int64(st, 0);
    struct rv__str run = rv__sqlite_some_text(conn, st, 1), facts = { NULL, 0 };
    if (with_facts)
        facts = rv__sqlite_some_text(conn, st, 2);
    int rc = rv__sqlite_whole(conn, err);
    if (rc < 0)
        return rc;
    *after = seq;
    return visit(arg, seq, run, facts);
}

/* The row after `after` cannot be read: report what is known, and continue after it. */
static int visit_damaged_turn(struct rv__sqlite_conn *conn, uint64_t *after,
                              rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FEED_NEXT, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, clamp(*after));
    rc = step_store(conn, st, err);
    if (rc == 0)
        rc = rv__fail(err, RV_ESTORE,
                      "the store '%.100s' is damaged behind row %llu of its journal", conn->path,
                      (unsigned long long)*after);
    if (rc == 1) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(st, 0);
        rc = visit_turn(conn, st, false, after, visit, arg, err);
        if (is_damage(rc) && *after != seq) { /* not even its run is known */
            *after = seq;
            rc = RV_OK;
        }
    }
    (void)sqlite3_reset(st); /* repeats the result of the step */
    return rc;
}

int rv__sqlite_feed(struct rv__store *store, uint64_t after, size_t limit,
                    rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    bool more = limit > 0;
    while (rc == RV_OK && more) {
        int64_t page = page_of(limit), rows = 0;
        bool visitor = false; /* the visitor ended the read */
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FEED, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_int(conn, st, 1, clamp(after));
        rv__sqlite_bind_int(conn, st, 2, page);
        while ((rc = rv__sqlite_step(conn, st, err)) == 1) {
            uint64_t before = after;
            rc = visit_turn(conn, st, true, &after, visit, arg, err);
            visitor = rc != RV_OK && after != before;
            if (rc != RV_OK)
                break;
            rows++;
        }
        (void)sqlite3_reset(st); /* repeats the result of the step */
        limit -= (size_t)rows;
        more = rows == page && limit > 0;
        if (is_damage(rc) && !visitor) {
            rc = visit_damaged_turn(conn, &after, visit, arg, err);
            limit -= limit > 0;
            more = limit > 0;
        }
    }
    rv__sqlite_leave(conn);
    return rc;
}

/* --------------------------------------------------------------------------------- lists --- */

/* Do less than half of all runs have this status? Then its index is better than the workflow's. */
static int status_is_rare(struct rv__sqlite_conn *conn, struct rv__str status, bool *ret,
                          rv_error *err)
{
    int64_t all = 0, some = 0;
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FIND_NAME, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, status);
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    int64_t id = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    (void)sqlite3_reset(st);
    rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_RUNS, &all, err);
    if (rc == RV_OK && id != 0)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, id, &some, err);
    *ret = some < all / 2;
    return rc;
}

static int choose_list(struct rv__sqlite_conn *conn, const struct rv__store_query *query,
                       enum rv__sql *ret, rv_error *err)
{
    bool rare = true;
    int rc = RV_OK;
    if (!rv__str_none(query->rerun_of) || query->waiting) { /* the rarest first */
        *ret = query->waiting && rv__str_none(query->rerun_of) ? SQL_LIST_WAITING : SQL_LIST_RERUNS;
        return RV_OK;
    }
    if (!rv__str_none(query->workflow) && !rv__str_none(query->status))
        rc = status_is_rare(conn, query->status, &rare, err);
    if (!rv__str_none(query->status) && rare)
        *ret = SQL_LIST_STATUS;
    else
        *ret = rv__str_none(query->workflow) ? SQL_LIST : SQL_LIST_WORKFLOW;
    return rc;
}

/* Of a damaged row only the columns of its index are known. */
static bool damaged_match(const struct rv__store_query *query)
{
    return rv__str_none(query->text) && !rv__str_none(query->workflow) +
                                                !rv__str_none(query->status) + query->waiting +
                                                !rv__str_none(query->rerun_of) <=
                                            1;
}

/* Visit the current run of the list, if it matches: *ret_found. */
static int list_one(struct rv__sqlite_conn *conn, const struct rv__store_query *query,
                    sqlite3_stmt *st, rv__store_visit_run *visit, void *arg, bool *ret_found,
                    rv_error *err)
{
    struct rv__store_run row = { .number = 0 };
    bool with_input = query->input_bytes > 0 || !rv__str_none(query->text);
    int rc = fetch_run(conn, sqlite3_column_int64(st, 1), with_input, &row, err);
    if (rc == RV_OK && row.damaged) {
        row.created_ms = sqlite3_column_int64(st, 0);
        row.id = rv__sqlite_text(conn, st, 2); /* from the index, which could be read */
    }
    *ret_found = rc == RV_OK &&
                 (row.damaged ? damaged_match(query) : rv__store_query_takes(query, &row));
    row.input = rv__store_query_input(query, row.input);
    if (*ret_found)
        rc = visit(arg, &row);
    let_go_of(conn);
    return rc;
}

static int list_rows(struct rv__sqlite_conn *conn, const struct rv__store_query *query,
                     sqlite3_stmt *st, rv__store_visit_run *visit, void *arg,
                     struct rv__buf *cursor, rv_error *err)
{
    size_t limit = query->limit == 0 ? RV__STORE_LIST_DEFAULT : query->limit;
    size_t found = 0, looked = 0;
    int rc;
    if (limit > RV__STORE_LIST_MAX)
        limit = RV__STORE_LIST_MAX;
    while ((rc = step_store(conn, st, err)) == 1) {
        bool match = false;
        int64_t created_ms = sqlite3_column_int64(st, 0);
        if (query->since_ms != 0 && created_ms < query->since_ms)
            break;
        if (found == limit || looked == SQLITE_SCAN_MAX)
            return cursor != NULL ? rv__buf_err(cursor, err) : RV_OK; /* there is more */
        looked++;
        rc = list_one(conn, query, st, visit, arg, &match, err);
        if (rc != RV_OK)
            return rc;
        found += match;
        if (cursor != NULL && (found == limit || looked == SQLITE_SCAN_MAX)) {
            struct rv__store_run last = { .created_ms = created_ms,
                                          .id = rv__sqlite_text(conn, st, 2) };
            rv__store_cursor_write(cursor, &last);
            conn->bad = SQLITE_OK; /* an id that is not text comes after the cursor */
        }
    }
    if (cursor != NULL)
        rv__buf_reset(cursor);
    return rc < 0 ? rc : RV_OK;
}

int rv__sqlite_list(struct rv__store *store, const struct rv__store_query *query,
                    rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    sqlite3_stmt *st = NULL;
    struct rv__str id;
    int64_t created;
    enum rv__sql sql = SQL_LIST;
    int rc = rv__store_query_start(query, &created, &id, err);
    if (rc == RV_OK)
        rc = rv__sqlite_of_store(choose_list(conn, query, &sql, err), err);
    if (rc < 0)
        goto out;

    st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        goto out;

    rv__sqlite_bind_int(conn, st, 1, created);
    /* Copied: the old cursor may be in the buffer that gets the new one. */
    rc = sqlite3_bind_text64(st, 2, id.at, id.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    if (rc != SQLITE_OK) {
        rc = rv__sqlite_fail(conn, rc, err);
        goto out;
    }
    if (sql != SQL_LIST && sql != SQL_LIST_WAITING)
        rv__sqlite_bind_str(conn, st, 3,
                            sql == SQL_LIST_STATUS   ? query->status
                            : sql == SQL_LIST_RERUNS ? query->rerun_of
                                                     : query->workflow);
    rc = list_rows(conn, query, st, visit, arg, cursor, err);
    (void)sqlite3_reset(st);
out:
    rv__sqlite_leave(conn);
    return rc;
}

/* ---------------------------------------------------------------------------------- logs --- */

struct rv__store_log rv__sqlite_log_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    int64_t level = rv__sqlite_int(conn, st, 3);
    return (struct rv__store_log){
        .id = (uint64_t)sqlite3_column_int64(st, 0),
        .run = rv__sqlite_some_text(conn, st, 1),
        .at_ms = rv__sqlite_int(conn, st, 2),
        .level = level < STORE_DEBUG || level > STORE_ERROR ? STORE_ERROR
                                                            : (enum rv__store_level)level,
        .path = rv__sqlite_text(conn, st, 4),
        .step = rv__sqlite_text(conn, st, 5),
        .attempt = rv__sqlite_int(conn, st, 6),
        .message = rv__sqlite_some_text(conn, st, 7),
        .metadata = rv__sqlite_text(conn, st, 8),
        .kind = rv__sqlite_text(conn, st, 9),
    };
}

/* A damaged line is replaced by a message, and the others follow. */
static int readable_line(struct rv__sqlite_conn *conn, struct rv__store_log *line, rv_error *err)
{
    int rc = rv__sqlite_whole(conn, &conn->damage);
    if (rc == RV_EPARSE) {
        *line = (struct rv__store_log){ .id = line->id,
                                        .run = rv__str_none(line->run) ? rv__str("") : line->run,
                                        .level = STORE_ERROR,
                                        .message = rv__str("(this line of the log is damaged)") };
        conn->bad = SQLITE_OK;
        return RV_OK;
    }
    if (rc < 0 && err != NULL)
        *err = conn->damage;
    return rc;
}

int rv__sqlite_logs(struct rv__store *store, const struct rv__store_log_query *query,
                    rv__store_visit_log *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    bool all = rv__str_none(query->run);
    uint64_t after = query->after_id;
    size_t left = query->limit;
    int rc = RV_OK, rows = SQLITE_PAGE_ROWS;
    while (rc == RV_OK && left > 0 && rows == SQLITE_PAGE_ROWS) {
        sqlite3_stmt *st = rv__sqlite_get(conn, all ? SQL_LOGS : SQL_LOGS_OF_RUN, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_int(conn, st, 1, clamp(after));
        rv__sqlite_bind_int(conn, st, 2, SQLITE_PAGE_ROWS);
        if (!all)
            rv__sqlite_bind_str(conn, st, 3, query->run);
        for (rows = 0; left > 0 && (rc = step_store(conn, st, err)) == 1; rows++) {
            struct rv__store_log line = rv__sqlite_log_of(conn, st);
            after = line.id;
            rc = readable_line(conn, &line, err);
            if (rc == RV_OK && !rv__store_log_matches(query, &line))
                continue;
            left--;
            rc = rc < 0 ? rc : visit(arg, &line);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    return rc;
}

/* ------------------------------------------------------------------------------- figures --- */

/* A count or number from the file, limited so that it cannot overflow. */
static uint64_t at_least_0(int64_t n)
{
    return n < 0 ? 0 : n > INT64_MAX / 2 ? INT64_MAX / 2 : (uint64_t)n;
}

int rv__sqlite_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg,
                      rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_COUNTS, &rc, err);
    while (st != NULL && (rc = step_store(conn, st, err)) == 1) {
        struct rv__str status = rv__sqlite_some_text(conn, st, 0);
        rc = rv__sqlite_whole(conn, err);
        if (rc == RV_EPARSE) { /* a name that cannot be read */
            conn->bad = SQLITE_OK;
            rc = RV_OK;
            continue;
        }
        rc = rc < 0 ? rc : visit(arg, status, at_least_0(sqlite3_column_int64(st, 1)));
        if (rc != RV_OK)
            break;
    }
    if (st != NULL)
        (void)sqlite3_reset(st);
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_last_numbers(struct rv__sqlite_conn *conn, uint64_t *seq, uint64_t *run,
                            uint64_t *forgotten, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_LAST_NUMBERS, &rc, err);
    if (st == NULL)
        return rc;
    rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *seq = at_least_0(sqlite3_column_int64(st, 0));
    *run = at_least_0(sqlite3_column_int64(st, 1));
    *forgotten = at_least_0(sqlite3_column_int64(st, 2));
    (void)sqlite3_reset(st);
    return RV_OK;
}

int rv__sqlite_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__store_usage usage = { 0 };
    uint64_t run;
    int64_t runs = 0, finished = 0, waiting = 0;
    int rc = rv__sqlite_last_numbers(conn, &usage.last_seq, &run, &usage.forgotten_seq, err);
    if (rc == RV_OK)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_RUNS, &runs, err);
    if (rc == RV_OK)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_FINISHED, &finished, err);
    if (rc == RV_OK)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_WAITING, &waiting, err);
    sqlite3_stmt *st = rc == RV_OK ? rv__sqlite_get(conn, SQL_SIZE, &rc, err) : NULL;
    if (st != NULL) {
        rc = rv__sqlite_step(conn, st, err);
        if (rc == 1)
            usage.bytes = (uint64_t)sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    rc = rv__sqlite_of_store(rc, err);
    if (rc < 0)
        return rc;
    usage.runs = at_least_0(runs);
    usage.finished = at_least_0(finished);
    usage.waiting = at_least_0(waiting);
    *ret = usage;
    return RV_OK;
}
