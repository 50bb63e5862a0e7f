/* read.c: every reading function of the SQLite store.
 *
 * A statement that stands on a row holds a moment of the file: as long as it does, the WAL cannot
 * begin anew. So each reading goes by pages of SQLITE_PAGE_ROWS, and lets go between them. */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

static int64_t clamp(uint64_t n)
{
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* How many rows the next page has, when so many are still wanted. */
static int64_t page_of(size_t left)
{
    return left < SQLITE_PAGE_ROWS ? (int64_t)left : SQLITE_PAGE_ROWS;
}

struct rv__store_run rv__sqlite_run_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    return (struct rv__store_run){
        .number = (uint64_t)sqlite3_column_int64(st, 0),
        .id = rv__sqlite_text(conn, st, 1),
        .workflow = rv__sqlite_text(conn, st, 2),
        .version = rv__sqlite_text(conn, st, 3),
        .status = rv__sqlite_text(conn, st, 4),
        .active = sqlite3_column_int64(st, 5) != 0,
        .wake_at_ms = sqlite3_column_int64(st, 6),
        .created_ms = sqlite3_column_int64(st, 7),
        .started_ms = sqlite3_column_int64(st, 8),
        .completed_ms = sqlite3_column_int64(st, 9),
        .input_key = rv__sqlite_text(conn, st, 10),
        .failed_step = rv__sqlite_text(conn, st, 11),
        .error = rv__sqlite_text(conn, st, 12),
        .suspension = rv__sqlite_text(conn, st, 13),
        .input = rv__sqlite_text(conn, st, 14),
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
        struct rv__str plan = rv__sqlite_text(conn, st, 0);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, 0, plan);
        (void)sqlite3_reset(st); /* repeats what the step said */
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
        struct rv__str state = rv__sqlite_text(conn, st, 1);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, (uint64_t)sqlite3_column_int64(st, 0), state);
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

    struct rv__str json = rv__sqlite_text(conn, st, 1);
    rc = rv__sqlite_whole(conn, err);
    rc = rc < 0 ? rc : visit(arg, number, json);
    (void)sqlite3_reset(st); /* repeats what the step said */
out:
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                       rv__store_visit_row *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK, rows = SQLITE_PAGE_ROWS;
    while (rc == RV_OK && rows == SQLITE_PAGE_ROWS) {
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_JOURNAL, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_str(conn, st, 1, run);
        rv__sqlite_bind_int(conn, st, 2, clamp(after));
        rv__sqlite_bind_int(conn, st, 3, SQLITE_PAGE_ROWS);
        for (rows = 0; (rc = rv__sqlite_step(conn, st, err)) == 1; rows++) {
            struct rv__str facts = rv__sqlite_text(conn, st, 1);
            after = (uint64_t)sqlite3_column_int64(st, 0);
            rc = rv__sqlite_whole(conn, err);
            rc = rc < 0 ? rc : visit(arg, after, facts);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_results(struct rv__store *store, struct rv__str run, struct rv__str key,
                       rv__store_visit_result *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK, rows = SQLITE_PAGE_ROWS;
    int64_t from = INT64_MIN;
    while (rc == RV_OK && rows == SQLITE_PAGE_ROWS) {
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_RESULTS, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_str(conn, st, 1, run);
        rv__sqlite_bind_str(conn, st, 2, key);
        rv__sqlite_bind_int(conn, st, 3, from);
        rv__sqlite_bind_int(conn, st, 4, SQLITE_PAGE_ROWS);
        for (rows = 0; (rc = rv__sqlite_step(conn, st, err)) == 1; rows++) {
            int64_t index = sqlite3_column_int64(st, 0);
            struct rv__str json = rv__sqlite_text(conn, st, 1);
            rc = rv__sqlite_whole(conn, err);
            rc = rc < 0 ? rc : visit(arg, index, json);
            if (rc != RV_OK)
                break;
            if (index == INT64_MAX) {
                rows = 0; /* there is nothing behind it, and no number to go on from */
                break;
            }
            from = index + 1;
        }
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    return rc;
}

/* ----------------------------------------------------------------------------- many runs --- */

/* Visit the runs of a statement, a page at a time, which `bind` prepares behind the last one. */
struct walk {
    enum rv__sql sql;
    int64_t now_ms;
    struct rv__store_place place; /* of the last run visited */
    int64_t (*time_of)(const struct rv__store_run *row);
    void (*bind)(const struct walk *walk, struct rv__sqlite_conn *conn, sqlite3_stmt *st,
                 int64_t limit);
};

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
        for (rows = 0; (rc = rv__sqlite_step(conn, st, err)) == 1; rows++) {
            struct rv__store_run row = rv__sqlite_run_of(conn, st);
            walk->place = (struct rv__store_place){ walk->time_of(&row), row.number };
            rc = rv__sqlite_whole(conn, err);
            rc = rc < 0 ? rc : visit(arg, &row);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st);
        limit -= (size_t)rows;
    } while (rc == RV_OK && rows == page && limit > 0);
    rv__sqlite_leave(conn);
    return rc;
}

static int64_t no_time(const struct rv__store_run *row)
{
    (void)row;
    return 0;
}

static int64_t wake_time(const struct rv__store_run *row)
{
    return row->wake_at_ms;
}

static int64_t completed_time(const struct rv__store_run *row)
{
    return row->completed_ms;
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
    struct walk walk = { SQL_ACTIVE, 0, { 0, after }, no_time, bind_active };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
                   size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct walk walk = { SQL_DUE, now_ms, place_of(after), wake_time, bind_due };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                        rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct walk walk = { SQL_FINISHED, 0, place_of(after), completed_time, bind_finished };
    return walk_runs(store, &walk, limit, visit, arg, err);
}

int rv__sqlite_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = rv__sqlite_number(conn, SQL_NEXT_WAKE, after_ms, ret, err);
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_feed(struct rv__store *store, uint64_t after, size_t limit,
                    rv__store_visit_feed *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    int64_t page, rows = 0;
    do {
        page = page_of(limit);
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FEED, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_int(conn, st, 1, clamp(after));
        rv__sqlite_bind_int(conn, st, 2, page);
        for (rows = 0; (rc = rv__sqlite_step(conn, st, err)) == 1; rows++) {
            struct rv__str run = rv__sqlite_text(conn, st, 1), facts = rv__sqlite_text(conn, st, 2);
            after = (uint64_t)sqlite3_column_int64(st, 0);
            rc = rv__sqlite_whole(conn, err);
            rc = rc < 0 ? rc : visit(arg, after, run, facts);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st);
        limit -= (size_t)rows;
    } while (rc == RV_OK && rows == page && limit > 0);
    rv__sqlite_leave(conn);
    return rc;
}

/* --------------------------------------------------------------------------------- lists --- */

/* The newest place from which the list may begin: behind the cursor, and before `until_ms`. */
static int list_start(const struct rv__store_query *query, int64_t *created, struct rv__str *id,
                      rv_error *err)
{
    *created = INT64_MAX;
    *id = rv__str("");
    if (!rv__str_none(query->cursor)) {
        int rc = rv__store_cursor_read(query->cursor, created, id, err);
        if (rc < 0)
            return rc;
    }
    if (query->until_ms != 0 && query->until_ms <= *created) {
        *created = query->until_ms;
        *id = rv__str(""); /* less than every id: what was created just then stays outside */
    }
    return RV_OK;
}

/* Has less than a half of all runs this status? Then its index brings more than the workflow's. */
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
    if (!rv__str_none(query->workflow) && !rv__str_none(query->status))
        rc = status_is_rare(conn, query->status, &rare, err);
    if (!rv__str_none(query->status) && rare)
        *ret = SQL_LIST_STATUS;
    else
        *ret = rv__str_none(query->workflow) ? SQL_LIST : SQL_LIST_WORKFLOW;
    return rc;
}

/* The row has all but the input, which is fetched if it is asked for or searched. `input` stays on
 * its row, and keeps the text alive, until the caller resets it. */
static int list_match(struct rv__sqlite_conn *conn, const struct rv__store_query *query,
                      struct rv__store_run *row, sqlite3_stmt *input, bool *ret, rv_error *err)
{
    *ret = false;
    if (!rv__str_none(query->workflow) && !rv__str_eq(row->workflow, query->workflow))
        return RV_OK;
    if (!rv__str_none(query->status) && !rv__str_eq(row->status, query->status))
        return RV_OK;
    *ret = rv__str_none(query->text) || rv__store_contains(row->id, query->text) ||
           rv__store_contains(row->workflow, query->text) ||
           rv__store_contains(row->error, query->text);
    if (*ret && !query->with_input)
        return RV_OK;

    rv__sqlite_bind_int(conn, input, 1, (int64_t)row->number);
    int rc = rv__sqlite_step(conn, input, err);
    if (rc < 0)
        return rc;
    struct rv__str text = rc == 1 ? rv__sqlite_text(conn, input, 0) : (struct rv__str){ NULL, 0 };
    *ret = *ret || rv__store_contains(text, query->text);
    row->input = query->with_input ? text : row->input;
    return rv__sqlite_whole(conn, err);
}

static int list_rows(struct rv__sqlite_conn *conn, const struct rv__store_query *query,
                     sqlite3_stmt *st, sqlite3_stmt *input, rv__store_visit_run *visit, void *arg,
                     struct rv__buf *cursor, rv_error *err)
{
    size_t limit = query->limit == 0 ? RV__STORE_LIST_DEFAULT : query->limit;
    size_t found = 0, looked = 0;
    int rc;
    if (limit > RV__STORE_LIST_MAX)
        limit = RV__STORE_LIST_MAX;
    while ((rc = rv__sqlite_step(conn, st, err)) == 1) {
        struct rv__store_run row = rv__sqlite_run_of(conn, st);
        bool match = false;
        if (query->since_ms != 0 && row.created_ms < query->since_ms)
            break;
        if (found == limit || looked == SQLITE_SCAN_MAX)
            return cursor != NULL ? rv__buf_err(cursor, err) : RV_OK; /* there is more */
        looked++;
        rc = rv__sqlite_whole(conn, err);
        if (rc == RV_OK)
            rc = list_match(conn, query, &row, input, &match, err);
        if (rc == RV_OK && match) {
            found++;
            rc = visit(arg, &row);
        }
        (void)sqlite3_reset(input); /* repeats what its step said */
        if (rc != RV_OK)
            return rc;
        if (cursor != NULL && (found == limit || looked == SQLITE_SCAN_MAX))
            rv__store_cursor_write(cursor, &row);
    }
    if (cursor != NULL)
        rv__buf_reset(cursor);
    return rc < 0 ? rc : RV_OK;
}

int rv__sqlite_list(struct rv__store *store, const struct rv__store_query *query,
                    rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    sqlite3_stmt *st = NULL, *input = NULL;
    struct rv__str id;
    int64_t created;
    enum rv__sql sql = SQL_LIST;
    int rc = list_start(query, &created, &id, err);
    if (rc == RV_OK)
        rc = choose_list(conn, query, &sql, err);
    if (rc < 0)
        goto out;

    input = rv__sqlite_get(conn, SQL_INPUT, &rc, err);
    if (input == NULL)
        goto out;

    st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        goto out;

    rv__sqlite_bind_int(conn, st, 1, created);
    /* Copied: the cursor that came in may be the text of the buffer that gets the new one. */
    rc = sqlite3_bind_text64(st, 2, id.at, id.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    if (rc != SQLITE_OK) {
        rc = rv__sqlite_fail(conn, rc, err);
        goto out;
    }
    if (sql != SQL_LIST)
        rv__sqlite_bind_str(conn, st, 3, sql == SQL_LIST_STATUS ? query->status : query->workflow);
    rc = list_rows(conn, query, st, input, visit, arg, cursor, err);
    (void)sqlite3_reset(st);
out:
    rv__sqlite_leave(conn);
    return rc;
}

/* ---------------------------------------------------------------------------------- logs --- */

struct rv__store_log rv__sqlite_log_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    return (struct rv__store_log){
        .id = (uint64_t)sqlite3_column_int64(st, 0),
        .run = rv__sqlite_text(conn, st, 1),
        .at_ms = sqlite3_column_int64(st, 2),
        .level = (enum rv__store_level)sqlite3_column_int(st, 3),
        .path = rv__sqlite_text(conn, st, 4),
        .step = rv__sqlite_text(conn, st, 5),
        .attempt = sqlite3_column_int64(st, 6),
        .message = rv__sqlite_text(conn, st, 7),
        .metadata = rv__sqlite_text(conn, st, 8),
    };
}

static bool log_matches(const struct rv__store_log_query *query, const struct rv__store_log *line)
{
    return line->level >= query->min_level &&
           (rv__str_none(query->step) || rv__str_eq(line->step, query->step)) &&
           (rv__str_none(query->text) || rv__store_contains(line->message, query->text));
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
        for (rows = 0; left > 0 && (rc = rv__sqlite_step(conn, st, err)) == 1; rows++) {
            struct rv__store_log line = rv__sqlite_log_of(conn, st);
            after = line.id;
            if (!log_matches(query, &line))
                continue;
            left--;
            rc = rv__sqlite_whole(conn, err);
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

int rv__sqlite_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg,
                      rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_COUNTS, &rc, err);
    while (st != NULL && (rc = rv__sqlite_step(conn, st, err)) == 1) {
        struct rv__str status = rv__sqlite_text(conn, st, 0);
        rc = rv__sqlite_whole(conn, err);
        rc = rc < 0 ? rc : visit(arg, status, (uint64_t)sqlite3_column_int64(st, 1));
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
    *seq = (uint64_t)sqlite3_column_int64(st, 0);
    *run = (uint64_t)sqlite3_column_int64(st, 1);
    *forgotten = (uint64_t)sqlite3_column_int64(st, 2);
    (void)sqlite3_reset(st);
    return RV_OK;
}

int rv__sqlite_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct rv__store_usage usage = { 0 };
    uint64_t run;
    int64_t runs = 0, finished = 0;
    int rc = rv__sqlite_last_numbers(conn, &usage.last_seq, &run, &usage.forgotten_seq, err);
    if (rc == RV_OK)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_RUNS, &runs, err);
    if (rc == RV_OK)
        rc = rv__sqlite_number(conn, SQL_COUNT_OF, COUNT_FINISHED, &finished, err);
    sqlite3_stmt *st = rc == RV_OK ? rv__sqlite_get(conn, SQL_SIZE, &rc, err) : NULL;
    if (st != NULL) {
        rc = rv__sqlite_step(conn, st, err);
        if (rc == 1)
            usage.bytes = (uint64_t)sqlite3_column_int64(st, 0);
        (void)sqlite3_reset(st);
    }
    rv__sqlite_leave(conn);
    if (rc < 0)
        return rc;
    usage.runs = (uint64_t)runs;
    usage.finished = (uint64_t)finished;
    *ret = usage;
    return RV_OK;
}
