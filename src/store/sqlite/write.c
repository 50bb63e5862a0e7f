/* write.c: one write of a commit, within its transaction: rows, facts, results, values, logs.
 *
 * After a failure the caller rolls back the transaction, or to the savepoint before this write. RV_ENOMEM
 * and RV_ESTORE may go away; every other code would come again.
 *
 * The writer caches runs by number, and names, so that it need not look them up. */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

/* ------------------------------------------------------------------------------ kept counts --- */

int rv__sqlite_flush_counts(struct rv__sqlite_conn *conn, rv_error *err)
{
    struct rv__sqlite_deltas *d = &conn->writer.deltas;
    int rc = RV_OK;
    for (size_t i = 0; i < d->count && rc == RV_OK; i++) {
        if (d->of[i].runs == 0)
            continue;
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_COUNT, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, d->of[i].status);
        rv__sqlite_bind_int(conn, st, 2, d->of[i].runs);
        rc = rv__sqlite_do(conn, st, err);
    }
    d->count = 0;
    return rc;
}

static int count(struct rv__sqlite_conn *conn, int64_t status, int64_t more, rv_error *err)
{
    struct rv__sqlite_deltas *d = &conn->writer.deltas;
    size_t i = 0;
    while (i < d->count && d->of[i].status != status)
        i++;
    if (i == SQLITE_DELTAS) {
        int rc = rv__sqlite_flush_counts(conn, err);
        if (rc < 0)
            return rc;
        i = 0;
    }
    if (i == d->count) {
        d->of[i].status = status;
        d->of[i].runs = 0;
        d->count++;
    }
    d->of[i].runs += more;
    return RV_OK;
}

/* -------------------------------------------------------------------------- runs and names --- */

/* The current row of a statement with the columns of SQL_FIND_RUN. */
static struct rv__sqlite_known known_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    return (struct rv__sqlite_known){
        .key = sqlite3_column_int64(st, 0),
        .status = sqlite3_column_int64(st, 1), /* NULL is 0 */
        .head = rv__sqlite_uint(conn, st, 5),
        .active = sqlite3_column_int64(st, 3) != 0,
        .waiting = sqlite3_column_int64(st, 6) != 0,
        .finished = sqlite3_column_int64(st, 2) != 0 && sqlite3_column_int64(st, 3) == 0 &&
                    sqlite3_column_int64(st, 4) == 0,
    };
}

/* Step a statement that finds one run or none. */
static int step_known(struct rv__sqlite_conn *conn, sqlite3_stmt *st, struct rv__sqlite_known *ret,
                      rv_error *err)
{
    int rc = rv__sqlite_step(conn, st, err);
    if (rc < 0)
        return rc;
    *ret = (struct rv__sqlite_known){ 0 };
    if (rc == 1) {
        *ret = known_of(conn, st);
        rc = rv__sqlite_whole(conn, err);
    }
    (void)sqlite3_reset(st); /* repeats what the step said */
    return rc;
}

int rv__sqlite_find_run(struct rv__sqlite_conn *conn, struct rv__str id,
                        struct rv__sqlite_known *ret, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FIND_RUN, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, id);
    return step_known(conn, st, ret, err);
}

int rv__sqlite_find_number(struct rv__sqlite_conn *conn, int64_t number,
                           struct rv__sqlite_known *ret, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_FIND_NUMBER, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, number);
    return step_known(conn, st, ret, err);
}

/* From the cache, if it is there. */
static int find_met(struct rv__sqlite_conn *conn, uint64_t number, struct rv__sqlite_known *ret,
                    rv_error *err)
{
    int64_t key = number < INT64_MAX ? (int64_t)number : INT64_MAX;
    const struct rv__sqlite_known *known = rv__sqlite_runs_find(&conn->writer.runs, key);
    if (known == NULL)
        return rv__sqlite_find_number(conn, key, ret, err);
    *ret = *known;
    return RV_OK;
}

/* The id of a name; a new name gets one. 0: there is no name. */
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

/* Update the counts for a run that was `before` (key 0: it did not exist) and is `after` (key 0: deleted). */
int rv__sqlite_recount(struct rv__sqlite_conn *conn, const struct rv__sqlite_known *before,
                       const struct rv__sqlite_known *after, rv_error *err)
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
    if (rc == RV_OK && before->waiting != after->waiting)
        rc = count(conn, COUNT_WAITING, after->waiting ? 1 : -1, err);
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

/* The names of a row by their ids. */
struct row_names {
    int64_t workflow, version, status;
};

static int put_row(struct rv__sqlite_conn *conn, enum rv__sql sql, int64_t key, uint64_t head,
                   const struct rv__store_run *row, const struct row_names *names, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, key);
    if (sql == SQL_ADD_RUN)
        rv__sqlite_bind_str(conn, st, 2, row->id);
    bind_name(conn, st, 3, names->workflow);
    bind_name(conn, st, 4, names->version);
    bind_name(conn, st, 5, names->status);
    rv__sqlite_bind_int(conn, st, 6, row->active);
    rv__sqlite_bind_int(conn, st, 7, row->wake_at_ms);
    rv__sqlite_bind_int(conn, st, 8, row->created_ms);
    rv__sqlite_bind_int(conn, st, 9, row->started_ms);
    rv__sqlite_bind_int(conn, st, 10, row->completed_ms);
    rv__sqlite_bind_str(conn, st, 11, row->input_key);
    rv__sqlite_bind_str(conn, st, 12, row->failed_step);
    rv__sqlite_bind_str(conn, st, 13, row->error);
    rv__sqlite_bind_str(conn, st, 14, row->suspension);
    rv__sqlite_bind_int(conn, st, 15, (int64_t)head);
    rv__sqlite_bind_int(conn, st, 16, row->waiting);
    rv__sqlite_bind_str(conn, st, 17, row->rerun_of);
    return rv__sqlite_do(conn, st, err);
}

/* A run whose number is not known is usually new: so insert it, and look it up only if its id exists. */
static int write_row(struct rv__sqlite_conn *conn, const struct rv__store_run *row, uint64_t seq,
                     struct rv__sqlite_known *known, uint64_t *next_run, rv_error *err)
{
    struct row_names names = { 0 };
    bool is_new = known->key == 0;
    int rc = name_id(conn, row->workflow, &names.workflow, err);
    if (rc == RV_OK)
        rc = name_id(conn, row->version, &names.version, err);
    if (rc == RV_OK)
        rc = name_id(conn, row->status, &names.status, err);
    if (rc == RV_OK && is_new) {
        int64_t key = (int64_t)(*next_run + 1);
        rc = put_row(conn, SQL_ADD_RUN, key, seq, row, &names, err);
        if (rc < 0 && sqlite3_extended_errcode(conn->db) == SQLITE_CONSTRAINT_UNIQUE) {
            is_new = false;
            rc = rv__sqlite_find_run(conn, row->id, known, err);
        } else if (rc == RV_OK) {
            (*next_run)++;
        }
        if (is_new)
            *known = (struct rv__sqlite_known){ 0 };
    }
    struct rv__sqlite_known before = *known;
    if (rc == RV_OK && !is_new) {
        seq = seq != 0 ? seq : rv__sqlite_head_of(conn, known);
        rc = put_row(conn, SQL_SET_RUN, known->key, seq, row, &names, err);
    }
    if (rc < 0)
        return rc;
    if (is_new)
        known->key = (int64_t)*next_run;
    known->status = names.status;
    known->active = row->active;
    known->waiting = row->waiting;
    known->finished = row->completed_ms != 0 && !row->active && row->wake_at_ms == 0;
    rc = write_input(conn, known->key, is_new, row->input, err);
    return rc == RV_OK ? rv__sqlite_recount(conn, &before, known, err) : rc;
}

static int write_touch(struct rv__sqlite_conn *conn, const struct rv__store_touch *touch,
                       uint64_t head, struct rv__sqlite_known *known, rv_error *err)
{
    struct rv__sqlite_known before = *known;
    int64_t status = 0;
    int rc = name_id(conn, touch->status, &status, err);
    if (rc < 0)
        return rc;
    known->status = status;
    known->active = touch->active;
    known->waiting = touch->waiting;
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
    rv__sqlite_bind_int(conn, st, 9, (int64_t)head);
    rv__sqlite_bind_int(conn, st, 10, touch->waiting);
    rc = rv__sqlite_do(conn, st, err);
    return rc == RV_OK ? rv__sqlite_recount(conn, &before, known, err) : rc;
}

int rv__sqlite_write_head(struct rv__sqlite_conn *conn, int64_t run, uint64_t head, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_SET_HEAD, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, run);
    rv__sqlite_bind_int(conn, st, 2, (int64_t)head);
    return rv__sqlite_do(conn, st, err);
}

static int write_facts(struct rv__sqlite_conn *conn, int64_t key, uint64_t seq, uint64_t prev,
                       struct rv__str facts, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_JOURNAL, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, (int64_t)seq);
    rv__sqlite_bind_int(conn, st, 2, key);
    rv__sqlite_bind_int(conn, st, 3, (int64_t)prev);
    rv__sqlite_bind_str(conn, st, 4, facts);
    return rv__sqlite_do(conn, st, err);
}

static int write_values(struct rv__sqlite_conn *conn, int64_t key,
                        const struct rv__store_write *write, rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < write->value_count && rc == RV_OK; i++) {
        const struct rv__store_value *value = &write->values[i];
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_VALUE, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, key);
        rv__sqlite_bind_int(conn, st, 2, (int64_t)value->number);
        rv__sqlite_bind_int(conn, st, 3, (int64_t)value->json.len);
        rv__sqlite_bind_str(conn, st, 4, value->json);
        rc = rv__sqlite_do(conn, st, err);
        if (rc < 0 && (sqlite3_errcode(conn->db) & 0xff) == SQLITE_CONSTRAINT)
            return rv__fail(err, RV_EINVAL, "run '%.*s' has a value %llu already",
                            RV__ARG(write->run), (unsigned long long)value->number);
    }
    return rc;
}

static int write_snapshot(struct rv__sqlite_conn *conn, int64_t key, uint64_t seq,
                          struct rv__str state, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_SET_SNAPSHOT, &rc, err);
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
        rv__sqlite_bind_str(conn, st, 10, line->kind);
        rc = rv__sqlite_do(conn, st, err);
    }
    for (size_t i = 0; i < write->answered_count && rc == RV_OK; i++) {
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_DROP_STREAM, &rc, err);
        if (st == NULL)
            return rc;
        rv__sqlite_bind_int(conn, st, 1, key);
        rv__sqlite_bind_str(conn, st, 2, write->answered[i]);
        rc = rv__sqlite_do(conn, st, err);
    }
    return rc;
}

int rv__sqlite_write_definition(struct rv__sqlite_conn *conn, struct rv__str hash,
                                struct rv__str json, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_ADD_DEFINITION, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, hash);
    rv__sqlite_bind_str(conn, st, 2, json);
    return rv__sqlite_do(conn, st, err);
}

/* The run of a write; key 0: it has no row yet, as far as known. */
static int known_run(struct rv__sqlite_conn *conn, const struct rv__store_write *write,
                     struct rv__sqlite_known *ret, rv_error *err)
{
    int rc = RV_OK;
    *ret = (struct rv__sqlite_known){ 0 };
    if (write->number != 0)
        rc = find_met(conn, write->number, ret, err);
    else if (write->row == NULL)
        rc = rv__sqlite_find_run(conn, write->run, ret, err);
    if (rc == RV_OK && ret->key == 0 && (write->number != 0 || write->row == NULL))
        rc = rv__fail(err, RV_EINVAL, "there is no run '%.*s'", RV__ARG(write->run));
    return rc;
}

/* Write the run's row and its journal row. *ret_head: the last journal row of the run. */
static int write_rows(struct rv__sqlite_conn *conn, struct rv__store_write *write,
                      struct rv__sqlite_known *known, struct rv__sqlite_numbers *n,
                      uint64_t *ret_head, rv_error *err)
{
    /* The log lines get their numbers first. */
    uint64_t seq = rv__str_none(write->facts) ? 0 : n->seq + write->log_count + 1;
    uint64_t prev = rv__sqlite_head_of(conn, known), head = seq != 0 ? seq : prev;
    bool recorded = true;
    int rc = RV_OK;
    if (write->row != NULL) {
        rc = write_row(conn, write->row, seq, known, &n->run, err);
        prev = rv__sqlite_head_of(conn,
                                  known); /* the run may exist without the caller's knowledge */
        head = seq != 0 ? seq : prev;
    } else if (write->touch != NULL) {
        rc = write_touch(conn, write->touch, head, known, err);
    } else if (seq != 0 && !known->active) {
        rc = rv__sqlite_write_head(conn, known->key, head, err);
    } else {
        recorded = seq == 0 && prev == known->head;
    }
    if (rc == RV_OK)
        rc = write_logs(conn, known->key, write, &n->seq, err);
    if (rc == RV_OK && seq != 0)
        rc = write_facts(conn, known->key, ++n->seq, prev, write->facts, err);
    if (rc == RV_OK && head != 0)
        rc = rv__sqlite_head_set(conn, known->key, head, recorded, err);
    if (recorded)
        known->head = head;
    *ret_head = head;
    return rc;
}

int rv__sqlite_write_one(struct rv__sqlite_conn *conn, struct rv__store_write *write,
                         struct rv__sqlite_numbers *n, rv_error *err)
{
    struct rv__sqlite_known known = { .key = 0 };
    uint64_t head = 0;
    int rc = rv__store_check_write(write, err);
    if (rc == RV_OK)
        rc = known_run(conn, write, &known, err);
    if (rc == RV_OK)
        rc = write_rows(conn, write, &known, n, &head, err);
    if (rc < 0)
        return rc;

    rv__sqlite_runs_put(&conn->writer.runs, &known);
    write->number = (uint64_t)known.key;
    if (write->result_count > 0)
        rc = rv__sqlite_write_results(conn, known.key, head, write, err);
    if (rc == RV_OK)
        rc = write_values(conn, known.key, write, err);
    if (rc == RV_OK && !rv__str_none(write->snapshot))
        rc = write_snapshot(conn, known.key, head, write->snapshot, err);
    return rc;
}
