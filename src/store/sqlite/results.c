/* results.c: finished iterations, stored in chunks.
 *
 * A row has results of consecutive indices with one key from one write, so that many small results need few rows.
 * Rows are appended, like those of the journal: a table ordered by run would write a page for each run with results
 * in a commit, and the same page again with the next one. Only the index, whose entries are small, is ordered by
 * run.
 *
 * (run, key, index) is written once. Chunks do not overlap, so only one existing chunk could contain an index of a
 * new one: the last that begins at or before the new one's end. */
#include "store/sqlite/sqlite.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    CHUNK_RESULTS = 1000,   /* so that a single result is found quickly */
    CHUNK_BYTES = 64 << 10, /* so that reading is cheap; a larger result has its own chunk */
    ORDER_KEEP = 16 << 10,  /* entries kept from one write to the next */
};

/* ------------------------------------------------------------------------------- writing --- */

static int compare(const void *a, const void *b)
{
    const struct rv__store_result *x = *(const struct rv__store_result *const *)a;
    const struct rv__store_result *y = *(const struct rv__store_result *const *)b;
    int by_key = rv__str_cmp(x->key, y->key);
    return by_key != 0 ? by_key : (x->index > y->index) - (x->index < y->index);
}

/* Sort the results of a write by key and index, into writer.order. */
static int put_in_order(struct rv__sqlite_writer *w, const struct rv__store_write *write,
                        rv_error *err)
{
    size_t count = write->result_count;
    bool sorted = true;
    if (w->order_cap < count) {
        size_t cap = count < 64 ? 64 : count;
        void *grown = rv__realloc(w->order, cap * sizeof(void *));
        if (grown == NULL)
            return rv__nomem(err);
        w->order = grown;
        w->order_cap = cap;
    }
    for (size_t i = 0; i < count; i++) {
        w->order[i] = &write->results[i];
        sorted = sorted && (i == 0 || compare(&w->order[i - 1], &w->order[i]) < 0);
    }
    if (!sorted)
        qsort(w->order, count, sizeof(void *), compare);
    return RV_OK;
}

static int fail_twice(const struct rv__store_write *write, struct rv__str key, int64_t index,
                      rv_error *err)
{
    return rv__fail(err, RV_EINVAL, "run '%.*s' has a result '%.*s' %lld already",
                    RV__ARG(write->run), RV__ARG(key), (long long)index);
}

/* Is there already a result of `key` from `first` to `last`? */
static int check_new(struct rv__sqlite_conn *conn, int64_t run, const struct rv__store_write *write,
                     struct rv__str key, int64_t first, int64_t last, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_RESULT_BEFORE, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, run);
    rv__sqlite_bind_str(conn, st, 2, key);
    rv__sqlite_bind_int(conn, st, 3, last);
    rc = rv__sqlite_step(conn, st, err);
    if (rc != 1)
        return rc;
    int64_t begins = sqlite3_column_int64(st, 0), count = sqlite3_column_int64(st, 1);
    (void)sqlite3_reset(st); /* repeats the result of the step */
    if (begins > first)
        return fail_twice(write, key, begins, err);
    bool reaches = count > 0 && (uint64_t)first - (uint64_t)begins < (uint64_t)count;
    return reaches ? fail_twice(write, key, first, err) : RV_OK;
}

/* How many of the sorted results from `from` on make one chunk. */
static size_t chunk_length(struct rv__store_result const *const *from, size_t count)
{
    size_t n = 1, bytes = from[0]->json.len;
    while (n < count && n < CHUNK_RESULTS && from[n - 1]->index < INT64_MAX &&
           from[n]->index == from[n - 1]->index + 1 && rv__str_eq(from[n]->key, from[0]->key) &&
           bytes + from[n]->json.len <= CHUNK_BYTES) {
        bytes += from[n]->json.len;
        n++;
    }
    return n;
}

static void put_size(struct rv__buf *sizes, struct rv__str json)
{
    if (sizes->len > 0)
        rv__buf_char(sizes, ',');
    if (rv__str_none(json))
        rv__buf_char(sizes, '-');
    else
        rv__buf_int(sizes, (int64_t)json.len);
}

static int write_chunk(struct rv__sqlite_conn *conn, int64_t run,
                       struct rv__store_result const *const *from, size_t count, rv_error *err)
{
    struct rv__sqlite_writer *w = &conn->writer;
    struct rv__str json = rv__str_none(from[0]->json) ? rv__str("") : from[0]->json;
    rv__buf_reset(&w->chunk);
    rv__buf_reset(&w->sizes);
    for (size_t i = 0; i < count; i++) {
        put_size(&w->sizes, from[i]->json);
        if (count > 1) /* a single one, which may be large, is bound without a copy */
            rv__buf_str(&w->chunk, from[i]->json);
    }
    int rc = rv__buf_err(&w->sizes, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&w->chunk, err);
    sqlite3_stmt *st = rc == RV_OK ? rv__sqlite_get(conn, SQL_ADD_RESULTS, &rc, err) : NULL;
    if (st == NULL)
        return rc;
    if (count > 1)
        json = w->chunk.len > 0 ? rv__buf_view(&w->chunk) : rv__str("");
    rv__sqlite_bind_int(conn, st, 1, run);
    rv__sqlite_bind_str(conn, st, 2, from[0]->key);
    rv__sqlite_bind_int(conn, st, 3, from[0]->index);
    rv__sqlite_bind_int(conn, st, 4, (int64_t)count);
    rv__sqlite_bind_str(conn, st, 5, rv__buf_view(&w->sizes));
    rv__sqlite_bind_str(conn, st, 6, json);
    return rv__sqlite_do(conn, st, err);
}

static int write_seq(struct rv__sqlite_conn *conn, int64_t run, uint64_t seq, rv_error *err)
{
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_SET_RESULTS_SEQ, &rc, err);
    if (st == NULL)
        return rc;
    rv__sqlite_bind_int(conn, st, 1, run);
    rv__sqlite_bind_int(conn, st, 2, (int64_t)seq);
    return rv__sqlite_do(conn, st, err);
}

int rv__sqlite_write_results(struct rv__sqlite_conn *conn, int64_t run, uint64_t head,
                             const struct rv__store_write *write, rv_error *err)
{
    struct rv__sqlite_writer *w = &conn->writer;
    int rc = put_in_order(w, write, err);
    for (size_t at = 0, n; at < write->result_count && rc == RV_OK; at += n) {
        struct rv__store_result const *const *from = &w->order[at];
        n = chunk_length(from, write->result_count - at);
        /* This also finds a result that is twice in the write: its first chunk is already written. */
        rc = check_new(conn, run, write, from[0]->key, from[0]->index, from[n - 1]->index, err);
        if (rc == RV_OK)
            rc = write_chunk(conn, run, from, n, err);
    }
    if (w->order_cap > ORDER_KEEP) {
        rv__free(w->order);
        w->order = NULL;
        w->order_cap = 0;
    }
    return rc == RV_OK ? write_seq(conn, run, head, err) : rc;
}

/* ------------------------------------------------------------------------------- reading --- */

/* What a reader still wants. */
struct wanted {
    int64_t from;
    size_t limit;
    size_t page; /* how many before the file is released */
    bool end;    /* nothing comes after what was visited */
    rv__store_visit_result *visit;
    void *arg;
};

/* The next size of a chunk: 1; 0: "-"; -1: malformed. */
static int next_size(struct rv__str *sizes, size_t *ret)
{
    const char *comma = sizes->len > 0 ? memchr(sizes->at, ',', sizes->len) : NULL;
    size_t len = comma != NULL ? (size_t)(comma - sizes->at) : sizes->len;
    struct rv__str text = { sizes->at, len };
    size_t skip = comma != NULL ? len + 1 : len;
    *sizes = (struct rv__str){ sizes->at + skip, sizes->len - skip };
    *ret = 0;
    if (rv__str_is(text, "-"))
        return 0;
    if (len == 0 || len > 10) /* a row of SQLite has at most 2^31 bytes */
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return -1;
        *ret = *ret * 10 + (size_t)(text.at[i] - '0');
    }
    return 1;
}

/* Visit the wanted part of a chunk. Nothing in it is trusted. */
static int visit_chunk(struct wanted *w, int64_t first, int64_t count, struct rv__str sizes,
                       struct rv__str json, rv_error *err)
{
    int rc = RV_OK;
    for (int64_t i = 0; i < count && rc == RV_OK && w->limit > 0 && w->page > 0; i++) {
        size_t size;
        int there = next_size(&sizes, &size);
        if (there < 0 || size > json.len || first > INT64_MAX - i)
            return rv__fail(err, RV_EPARSE, "the results from %lld on are damaged",
                            (long long)first);
        struct rv__str one = { there == 1 ? json.at : NULL, size };
        json = (struct rv__str){ json.at + size, json.len - size };
        int64_t index = first + i;
        if (index < w->from)
            continue;
        rc = w->visit(w->arg, index, one);
        w->limit--;
        w->page--;
        w->end = index == INT64_MAX;
        w->from = w->end ? index : index + 1;
    }
    return rc;
}

int rv__sqlite_results(struct rv__store *store, struct rv__str run, struct rv__str key,
                       int64_t from, size_t limit, rv__store_visit_result *visit, void *arg,
                       rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    struct wanted w = { .from = from, .limit = limit, .visit = visit, .arg = arg };
    int rc = RV_OK;
    while (rc == RV_OK && w.limit > 0 && !w.end) {
        sqlite3_stmt *st = rv__sqlite_get(conn, SQL_RESULTS, &rc, err);
        if (st == NULL)
            break;
        rv__sqlite_bind_str(conn, st, 1, run);
        rv__sqlite_bind_str(conn, st, 2, key);
        rv__sqlite_bind_int(conn, st, 3, w.from);
        w.page = SQLITE_PAGE_ROWS;
        while (w.limit > 0 && w.page > 0 && !w.end && (rc = rv__sqlite_step(conn, st, err)) == 1) {
            int64_t first = rv__sqlite_int(conn, st, 0), count = rv__sqlite_int(conn, st, 1);
            struct rv__str sizes = rv__sqlite_some_text(conn, st, 2);
            struct rv__str json = rv__sqlite_some_text(conn, st, 3);
            rc = rv__sqlite_whole(conn, err);
            if (rc == RV_OK)
                rc = visit_chunk(&w, first, count, sizes, json, err);
            if (rc != RV_OK)
                break;
        }
        (void)sqlite3_reset(st); /* repeats the result of the step */
        w.end = w.end || w.page > 0;
    }
    rv__sqlite_leave(conn);
    return rc;
}

int rv__sqlite_results_seq(struct rv__store *store, struct rv__str run, uint64_t *ret,
                           rv_error *err)
{
    struct rv__sqlite_conn *conn = rv__sqlite_enter(store);
    uint64_t seq = 0;
    int rc = RV_OK;
    sqlite3_stmt *st = rv__sqlite_get(conn, SQL_RESULTS_SEQ, &rc, err);
    if (st != NULL) {
        rv__sqlite_bind_str(conn, st, 1, run);
        rc = rv__sqlite_step(conn, st, err);
        if (rc == 1) {
            seq = rv__sqlite_uint(conn, st, 0);
            rc = rv__sqlite_whole(conn, err);
        }
        (void)sqlite3_reset(st); /* repeats the result of the step */
    }
    if (rc == RV_OK)
        *ret = seq;
    rv__sqlite_leave(conn);
    return rc;
}
