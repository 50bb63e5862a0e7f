/* marks.c: how far those who follow the feed have come. One process writes, so all marks are its own. */
#include "base/error.h"
#include "store/sqlite/sqlite.h"

static int write_mark(struct rv__sqlite_conn *conn, enum rv__sql sql,
                      const struct rv__store_mark *mark, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, sql, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_str(conn, st, 1, mark->name);
    if (sql != SQL_DROP_MARK) {
        rv__sqlite_bind_int(conn, st, 2, (int64_t)mark->seq);
        rv__sqlite_bind_int(conn, st, 3, (int64_t)mark->index);
    }
    return rv__sqlite_do(conn, st, err);
}

static struct rv__store_mark mark_of(struct rv__sqlite_conn *conn, sqlite3_stmt *st)
{
    return (struct rv__store_mark){ .name = rv__sqlite_some_text(conn, st, 0),
                                    .seq = rv__sqlite_uint(conn, st, 1),
                                    .index = (uint64_t)rv__sqlite_int(conn, st, 2),
                                    .free = true };
}

static int take_one(struct rv__sqlite_conn *conn, struct rv__store_mark *mark, rv_error *err)
{
    int rc = write_mark(conn, SQL_ADD_MARK, mark, err);
    if (rc < 0)
        return rc;
    sqlite3_stmt *st = rv__sqlite_find_one(conn, SQL_MARK, mark->name, "mark", &rc, err);
    if (st == NULL)
        return rc;
    struct rv__store_mark found = mark_of(conn, st);
    rc = rv__sqlite_whole(conn, err);
    if (rc == RV_OK) {
        mark->seq = found.seq;
        mark->index = found.index;
    }
    (void)sqlite3_reset(st);
    return rc;
}

static int write_all(struct rv__store *store, bool take, struct rv__store_mark *marks, size_t count,
                     rv_error *err)
{
    int rc = rv__sqlite_may_write(store, err);
    if (rc < 0)
        return rc;
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    rc = rv__sqlite_begin(conn, err);
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        rc = take ? take_one(conn, &marks[i], err)
                  : write_mark(conn, marks[i].gone ? SQL_DROP_MARK : SQL_MOVE_MARK, &marks[i], err);
    if (rc == RV_OK)
        rc = rv__sqlite_keep(conn, &(struct rv__sqlite_numbers){ conn->writer.seq, 0 }, err);
    if (rc < 0)
        rv__sqlite_roll_back(conn);
    rv__sqlite_leave(conn);
    for (size_t i = 0; i < count && rc == RV_OK; i++)
        marks[i].ours = take || !marks[i].gone;
    return rv__sqlite_of_store(rc, err);
}

int rv__sqlite_take_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                          rv_error *err)
{
    return write_all(store, true, marks, count, err);
}

int rv__sqlite_move_marks(struct rv__store *store, struct rv__store_mark *marks, size_t count,
                          rv_error *err)
{
    return write_all(store, false, marks, count, err);
}

int rv__sqlite_marks(struct rv__store *store, rv__store_visit_mark *visit, void *arg, rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_MARKS, &rc, err);
    while (st != NULL && (rc = rv__sqlite_step(conn, st, err)) == 1) {
        struct rv__store_mark mark = mark_of(conn, st);
        rc = rv__sqlite_whole(conn, err);
        if (rc == RV_OK)
            rc = visit(arg, &mark);
        if (rc != RV_OK)
            break;
    }
    if (st != NULL)
        (void)sqlite3_reset(st);
    rv__sqlite_leave(conn);
    return rv__sqlite_of_store(rc, err);
}
