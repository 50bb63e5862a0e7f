/* read.c: every reading function of the PostgreSQL store.
 *
 * Rows come one at a time, so that memory does not depend on how many there are; a reader keeps nobody from writing.
 *
 * The feed. Numbers are given by a sequence, and members commit when they commit: a smaller number may appear
 * after a larger one was seen. So each transaction, before it takes its numbers, takes a shared advisory lock
 * whose key is the last number given so far: its numbers will be larger. The lock ends with the transaction, and after
 * its rows can be seen. A reader asks for (1) the last number given, (2) the keys of the locks that are held, and then
 * (3) reads rows up to the least of these. A number up to (1) belongs to a transaction that had its lock before: at
 * (2) it either has it still, and holds the reader back, or it has ended, and (3) sees its rows, if there are
 * any. Nobody waits for anybody's sync, and transactions of strangers have no such locks. */
#include "store/postgres/postgres.h"

#include <stdio.h>

#include "base/error.h"

enum { PAGE_ROWS = 1000, CHARACTER_BYTES = 4 };

static int64_t clamp(uint64_t n)
{
    return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

/* The handle, connected, with empty parameters. */
static int enter(struct rv__store *store, struct rv__pg **ret, rv_error *err)
{
    struct rv__pg *pg = rv__pg_of(store);
    int rc = rv__pg_ready(pg, err);
    rv__pg_params_reset(&pg->params);
    *ret = pg;
    return rc == RV_EGONE ? RV_ESTORE : rc;
}

static int rows(struct rv__pg *pg, enum rv__pg_sql sql, rv__pg_visit *visit, void *arg,
                rv_error *err)
{
    int rc = rv__pg_rows(&pg->conn, sql, &pg->params, visit, arg, err);
    return rc == RV_EGONE ? RV_ESTORE : rc;
}

/* Who visits rows that are shown as they are. */
struct visitor {
    union {
        rv__store_visit_result *result;
        rv__store_visit_feed *feed;
        rv__store_visit_count *count;
    } visit;
    void *arg;
};

/* --------------------------------------------------------------------------------- one run --- */

/* Who visits texts. `column` has the text; `number` the column of the number before it, or -1. */
struct texts {
    rv__store_visit_text *visit;
    void *arg;
    bool numbered;
    size_t seen;
};

static int visit_text(void *arg, const PGresult *row, rv_error *err)
{
    struct texts *texts = arg;
    (void)err;
    texts->seen++;
    return texts->visit(texts->arg, texts->numbered ? (uint64_t)rv__pg_int(row, 0) : 0,
                        rv__pg_str(row, texts->numbered));
}

/* The text that `sql` finds by the parameters at hand. RV_ENOTFOUND: there is none. */
static int find_text(struct rv__pg *pg, enum rv__pg_sql sql, struct texts *texts, rv_error *err,
                     const char *what, struct rv__str whose)
{
    int rc = rows(pg, sql, visit_text, texts, err);
    return rc == RV_OK && texts->seen == 0
               ? rv__fail(err, RV_ENOTFOUND, "there is no %s '%.*s'", what, RV__ARG(whose))
               : rc;
}

int rv__pg_definition(struct rv__store *store, struct rv__str hash, rv__store_visit_text *visit,
                      void *arg, rv_error *err)
{
    struct texts texts = { visit, arg, false, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, hash);
    return find_text(pg, PG_DEFINITION, &texts, err, "definition", hash);
}

int rv__pg_snapshot(struct rv__store *store, struct rv__str run, rv__store_visit_text *visit,
                    void *arg, rv_error *err)
{
    struct texts texts = { visit, arg, true, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    return find_text(pg, PG_SNAPSHOT, &texts, err, "snapshot of run", run);
}

int rv__pg_value(struct rv__store *store, struct rv__str run, uint64_t number,
                 rv__store_visit_text *visit, void *arg, rv_error *err)
{
    struct texts texts = { visit, arg, true, 0 };
    struct rv__pg *pg;
    char what[48];
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    rv__pg_add_int(&pg->params, clamp(number));
    snprintf(what, sizeof what, "value %llu of run", (unsigned long long)number);
    return find_text(pg, PG_VALUE, &texts, err, what, run);
}

int rv__pg_journal(struct rv__store *store, struct rv__str run, uint64_t after,
                   rv__store_visit_row *visit, void *arg, rv_error *err)
{
    struct texts texts = { visit, arg, true, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    rv__pg_add_int(&pg->params, clamp(after));
    return rows(pg, PG_JOURNAL, visit_text, &texts, err);
}

/* Who visits runs, and how many it has seen. */
struct runs {
    rv__store_visit_run *visit;
    void *arg;
    size_t seen;
};

static int visit_run(void *arg, const PGresult *row, rv_error *err)
{
    struct runs *runs = arg;
    struct rv__store_run run = rv__pg_run_of(row);
    (void)err;
    runs->seen++;
    return runs->visit(runs->arg, &run);
}

int rv__pg_run(struct rv__store *store, struct rv__str id, rv__store_visit_run *visit, void *arg,
               rv_error *err)
{
    struct runs runs = { visit, arg, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, id);
    rc = rows(pg, PG_RUN, visit_run, &runs, err);
    return rc == RV_OK && runs.seen == 0
               ? rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(id))
               : rc;
}

static int visit_result(void *arg, const PGresult *row, rv_error *err)
{
    const struct visitor *v = arg;
    (void)err;
    return v->visit.result(v->arg, rv__pg_int(row, 0), rv__pg_str(row, 1));
}

int rv__pg_results(struct rv__store *store, struct rv__str run, struct rv__str key, int64_t from,
                   size_t limit, rv__store_visit_result *visit, void *arg, rv_error *err)
{
    struct visitor visitor = { .visit.result = visit, .arg = arg };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    rv__pg_add_str(&pg->params, key);
    rv__pg_add_int(&pg->params, from);
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_RESULTS, visit_result, &visitor, err);
}

static int take_int(void *arg, const PGresult *row, rv_error *err)
{
    (void)err;
    *(int64_t *)arg = rv__pg_int(row, 0);
    return RV_OK;
}

int rv__pg_results_seq(struct rv__store *store, struct rv__str run, uint64_t *ret, rv_error *err)
{
    struct rv__pg *pg;
    int64_t seq = 0;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_str(&pg->params, run);
    rc = rows(pg, PG_RESULTS_SEQ, take_int, &seq, err);
    if (rc == RV_OK)
        *ret = (uint64_t)seq;
    return rc;
}

/* ------------------------------------------------------------------------------- many runs --- */

int rv__pg_active(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_run *visit,
                  void *arg, rv_error *err)
{
    struct runs runs = { visit, arg, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, clamp(after));
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_ACTIVE, visit_run, &runs, err);
}

static struct rv__store_place place_of(const struct rv__store_place *after)
{
    return after != NULL ? *after : (struct rv__store_place){ INT64_MIN, 0 };
}

int rv__pg_due(struct rv__store *store, int64_t now_ms, const struct rv__store_place *after,
               size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct runs runs = { visit, arg, 0 };
    struct rv__store_place place = place_of(after);
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, now_ms);
    rv__pg_add_int(&pg->params, place.at_ms);
    rv__pg_add_int(&pg->params, clamp(place.number));
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_DUE, visit_run, &runs, err);
}

int rv__pg_finished(struct rv__store *store, const struct rv__store_place *after, size_t limit,
                    rv__store_visit_run *visit, void *arg, rv_error *err)
{
    struct runs runs = { visit, arg, 0 };
    struct rv__store_place place = place_of(after);
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, place.at_ms);
    rv__pg_add_int(&pg->params, clamp(place.number));
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_FINISHED, visit_run, &runs, err);
}

int rv__pg_oldest_waiting(struct rv__store *store, size_t limit, rv__store_visit_run *visit,
                          void *arg, rv_error *err)
{
    struct runs runs = { visit, arg, 0 };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_OLDEST_WAITING, visit_run, &runs, err);
}

int rv__pg_next_wake(struct rv__store *store, int64_t after_ms, int64_t *ret, rv_error *err)
{
    struct rv__pg *pg;
    int64_t next = 0;
    int rc = enter(store, &pg, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, after_ms);
    rc = rows(pg, PG_NEXT_WAKE, take_int, &next, err);
    if (rc == RV_OK)
        *ret = next;
    return rc;
}

/* --------------------------------------------------------------------------------- the feed --- */

struct horizon {
    int64_t last_given, least;
};

/* A lock's key has the low 32 bits of a number: one that is near the last given. */
static int take_place(void *arg, const PGresult *row, rv_error *err)
{
    struct horizon *h = arg;
    int32_t behind = (int32_t)((uint32_t)h->last_given - (uint32_t)rv__pg_int(row, 0));
    (void)err;
    if (behind > 0 && h->last_given - behind < h->least)
        h->least = h->last_given - behind;
    return RV_OK;
}

/* The number up to which all that will ever be there can be seen. */
static int read_stable_seq(struct rv__pg *pg, int64_t *ret, rv_error *err)
{
    struct horizon h = { 0, 0 };
    rv__pg_params_reset(&pg->params);
    int rc = rows(pg, PG_LAST_GIVEN, take_int, &h.last_given, err);
    if (rc < 0)
        return rc;
    h.least = h.last_given;
    rv__pg_add_int(&pg->params, (uint32_t)pg->conn.class_id);
    rc = rows(pg, PG_PLACES, take_place, &h, err);
    rv__pg_params_reset(&pg->params);
    *ret = h.least;
    return rc;
}

static int visit_feed(void *arg, const PGresult *row, rv_error *err)
{
    const struct visitor *v = arg;
    (void)err;
    return v->visit.feed(v->arg, (uint64_t)rv__pg_int(row, 0), rv__pg_str(row, 1),
                         rv__pg_str(row, 2));
}

int rv__pg_feed(struct rv__store *store, uint64_t after, size_t limit, rv__store_visit_feed *visit,
                void *arg, rv_error *err)
{
    struct visitor visitor = { .visit.feed = visit, .arg = arg };
    struct rv__pg *pg;
    int64_t horizon = 0;
    int rc = enter(store, &pg, err);
    if (rc == RV_OK)
        rc = read_stable_seq(pg, &horizon, err);
    if (rc < 0 || limit == 0 || clamp(after) >= horizon)
        return rc;
    rv__pg_add_int(&pg->params, clamp(after));
    rv__pg_add_int(&pg->params, horizon);
    rv__pg_add_int(&pg->params, clamp(limit));
    return rows(pg, PG_FEED, visit_feed, &visitor, err);
}

/* ------------------------------------------------------------------------------------ lists --- */

/* A list on its way. Pages are read whole, since what a text filter leaves out only we know. */
struct list {
    const struct rv__store_query *query;
    rv__store_visit_run *visit;
    void *arg;
    size_t limit, found, looked, in_page;
    bool full;         /* nothing more is visited: there is a row behind the last one */
    int64_t created;   /* of the last row that was looked at … */
    struct rv__buf id; /* … and its id */
};

static int visit_listed(void *arg, const PGresult *row, rv_error *err)
{
    struct list *list = arg;
    struct rv__store_run run = rv__pg_run_of(row);
    list->in_page++;
    if (list->found == list->limit || list->looked == PG_SCAN_MAX) {
        list->full = true;
        return RV_OK;
    }
    list->looked++;
    list->created = run.created_ms;
    rv__buf_reset(&list->id);
    rv__buf_str(&list->id, run.id);
    int rc = rv__buf_err(&list->id, err);
    if (rc < 0 || !rv__store_query_takes(list->query, &run))
        return rc;
    run.input = rv__store_query_input(list->query, run.input);
    list->found++;
    return list->visit(list->arg, &run);
}

static int list_start(struct list *list, rv_error *err)
{
    struct rv__str id;
    int rc = rv__store_query_start(list->query, &list->created, &id, err);
    if (rc < 0)
        return rc;
    rv__buf_str(&list->id, id);
    return rv__buf_err(&list->id, err);
}

/* By the index that has the fewest, more often than not, and what it is asked for. */
static enum rv__pg_sql list_sql(const struct rv__store_query *query, struct rv__str *ret_by)
{
    *ret_by = (struct rv__str){ NULL, 0 };
    if (!rv__str_none(query->rerun_of)) {
        *ret_by = query->rerun_of;
        return PG_LIST_RERUNS;
    }
    if (query->waiting)
        return PG_LIST_WAITING;
    *ret_by = rv__str_none(query->status) ? query->workflow : query->status;
    if (rv__str_none(*ret_by))
        return PG_LIST;
    return rv__str_none(query->status) ? PG_LIST_WORKFLOW : PG_LIST_STATUS;
}

/* Is something asked for that the index does not know? Then we look at each row. */
static bool list_filters(const struct rv__store_query *query)
{
    return !rv__str_none(query->text) || !rv__str_none(query->workflow) +
                                                 !rv__str_none(query->status) + query->waiting +
                                                 !rv__str_none(query->rerun_of) >
                                             1;
}

static int list_page(struct rv__pg *pg, struct list *list, size_t page, rv_error *err)
{
    const struct rv__store_query *query = list->query;
    struct rv__str by;
    enum rv__pg_sql sql = list_sql(query, &by);
    struct rv__buf id = list->id; /* the visitor writes another one while this is being sent */
    rv__buf_init(&list->id, SIZE_MAX);
    rv__pg_params_reset(&pg->params);
    rv__pg_add_int(&pg->params, list->created);
    rv__pg_add_str(&pg->params, rv__buf_view(&id));
    rv__pg_add_int(&pg->params, query->since_ms != 0 ? query->since_ms : INT64_MIN);
    rv__pg_add_int(&pg->params, (int64_t)page);
    /* A text is looked for in the whole of it. */
    rv__pg_add_int4(&pg->params,
                    !rv__str_none(query->text) || query->input_bytes >= INT32_MAX - CHARACTER_BYTES
                        ? INT32_MAX
                    : query->input_bytes == 0 ? 0
                                              : (int32_t)query->input_bytes + CHARACTER_BYTES);
    if (!rv__str_none(by))
        rv__pg_add_str(&pg->params, by);
    list->in_page = 0;
    int rc = rows(pg, sql, visit_listed, list, err);
    rv__pg_params_reset(&pg->params);
    rv__buf_done(&id);
    return rc;
}

int rv__pg_list(struct rv__store *store, const struct rv__store_query *query,
                rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err)
{
    struct list list = { .query = query, .visit = visit, .arg = arg };
    struct rv__pg *pg;
    list.limit = query->limit == 0 ? RV__STORE_LIST_DEFAULT : query->limit;
    if (list.limit > RV__STORE_LIST_MAX)
        list.limit = RV__STORE_LIST_MAX;
    size_t page = list_filters(query) ? PAGE_ROWS : list.limit + 1;
    rv__buf_init(&list.id, SIZE_MAX);
    int rc = enter(store, &pg, err);
    if (rc == RV_OK)
        rc = list_start(&list, err);
    if (rc < 0)
        goto out;

    do {
        rc = list_page(pg, &list, page, err);
    } while (rc == RV_OK && !list.full && list.in_page == page);
    if (rc == RV_OK && cursor != NULL) {
        rv__buf_reset(cursor);
        if (list.full)
            rv__store_cursor_write(cursor, &(struct rv__store_run){ .created_ms = list.created,
                                                                    .id = rv__buf_view(&list.id) });
        rc = rv__buf_err(cursor, err);
    }
out:
    rv__buf_done(&list.id);
    return rc;
}

/* ------------------------------------------------------------------------------------- logs --- */

struct rv__store_log rv__pg_log_of(const PGresult *row)
{
    return (struct rv__store_log){
        .id = (uint64_t)rv__pg_int(row, 0),
        .run = rv__pg_str(row, 1),
        .at_ms = rv__pg_int(row, 2),
        .level = (enum rv__store_level)rv__pg_int(row, 3),
        .path = rv__pg_str(row, 4),
        .step = rv__pg_str(row, 5),
        .attempt = rv__pg_int(row, 6),
        .message = rv__pg_str(row, 7),
        .metadata = rv__pg_str(row, 8),
        .kind = rv__pg_str(row, 9),
    };
}

struct logs {
    const struct rv__store_log_query *query;
    rv__store_visit_log *visit;
    void *arg;
    uint64_t after;
    size_t left, in_page;
};

/* Is the line one that the database cannot tell? */
static bool takes_line(const struct rv__store_log_query *query, const struct rv__store_log *line)
{
    struct rv__str path = query->path;
    if (query->attempt != 0 && line->attempt != query->attempt)
        return false;
    if (!rv__str_none(path) && (line->path.len < path.len ||
                                !rv__str_eq((struct rv__str){ line->path.at, path.len }, path) ||
                                (line->path.len > path.len && line->path.at[path.len] != ':')))
        return false;
    return rv__str_none(query->text) || rv__store_contains(line->message, query->text);
}

static int visit_line(void *arg, const PGresult *row, rv_error *err)
{
    struct logs *logs = arg;
    struct rv__store_log line = rv__pg_log_of(row);
    (void)err;
    logs->in_page++;
    logs->after = line.id;
    if (logs->left == 0 || !takes_line(logs->query, &line))
        return RV_OK;
    logs->left--;
    return logs->visit(logs->arg, &line);
}

int rv__pg_logs(struct rv__store *store, const struct rv__store_log_query *query,
                rv__store_visit_log *visit, void *arg, rv_error *err)
{
    struct logs logs = { query, visit, arg, query->after_id, query->limit, 0 };
    bool all = rv__str_none(query->run);
    struct rv__pg *pg;
    int64_t horizon = 0, page = 0;
    int rc = enter(store, &pg, err);
    if (rc == RV_OK && all)
        rc = read_stable_seq(pg, &horizon, err);
    while (rc == RV_OK && logs.left > 0 && (int64_t)logs.in_page == page) {
        page = rv__str_none(query->text) && rv__str_none(query->path) && query->attempt == 0 &&
                       logs.left < PAGE_ROWS
                   ? (int64_t)logs.left
                   : PAGE_ROWS;
        rv__pg_params_reset(&pg->params);
        if (!all)
            rv__pg_add_str(&pg->params, query->run);
        rv__pg_add_int(&pg->params, clamp(logs.after));
        if (all)
            rv__pg_add_int(&pg->params, horizon);
        rv__pg_add_int(&pg->params, query->min_level);
        rv__pg_add_str(&pg->params, query->step);
        rv__pg_add_int(&pg->params, page);
        logs.in_page = 0;
        rc = rows(pg, all ? PG_LOGS : PG_LOGS_OF_RUN, visit_line, &logs, err);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------- figures --- */

static int visit_count(void *arg, const PGresult *row, rv_error *err)
{
    const struct visitor *v = arg;
    (void)err;
    return v->visit.count(v->arg, rv__pg_str(row, 0), (uint64_t)rv__pg_int(row, 1));
}

int rv__pg_counts(struct rv__store *store, rv__store_visit_count *visit, void *arg, rv_error *err)
{
    struct visitor visitor = { .visit.count = visit, .arg = arg };
    struct rv__pg *pg;
    int rc = enter(store, &pg, err);
    return rc < 0 ? rc : rows(pg, PG_COUNTS, visit_count, &visitor, err);
}

static int take_usage(void *arg, const PGresult *row, rv_error *err)
{
    (void)err;
    *(struct rv__store_usage *)arg = (struct rv__store_usage){
        .runs = (uint64_t)rv__pg_int(row, 0),
        .finished = (uint64_t)rv__pg_int(row, 1),
        .bytes = (uint64_t)rv__pg_int(row, 2),
        .last_seq = (uint64_t)rv__pg_int(row, 3),
        .forgotten_seq = (uint64_t)rv__pg_int(row, 4),
        .waiting = (uint64_t)rv__pg_int(row, 5),
    };
    return RV_OK;
}

int rv__pg_usage(struct rv__store *store, struct rv__store_usage *ret, rv_error *err)
{
    struct rv__pg *pg;
    int64_t horizon = 0;
    int rc = enter(store, &pg, err);
    if (rc == RV_OK)
        rc = read_stable_seq(pg, &horizon, err);
    if (rc < 0)
        return rc;
    rv__pg_add_int(&pg->params, horizon);
    return rows(pg, PG_USAGE, take_usage, ret, err);
}
