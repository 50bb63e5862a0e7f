/* write.c: a batch of writes as statements, each of which takes arrays: one element for each write, or for each
 * of its results, values or lines. A statement that would get too long is sent, and the next one begins.
 *
 * Log lines go before journal rows, so that the ids of a write's lines are smaller than its seq. */
#include "store/postgres/postgres.h"

#include <assert.h>

#include "base/error.h"

/* Some rows of one table: the parameters of a statement while they are gathered. */
struct gather {
    struct rv__pg *pg;
    enum rv__pg_sql sql;
    void (*begin)(struct rv__pg *pg); /* adds the parameters, empty */
    size_t rows, bytes;
    int rc;
};

static void gather_flush(struct gather *g, rv_error *err)
{
    if (g->rows > 0 && g->rc == RV_OK) {
        g->rc = rv__pg_params_ready(&g->pg->params, err);
        if (g->rc == RV_OK)
            rv__pg_pipe_send(&g->pg->conn, g->sql, &g->pg->params);
    }
    rv__pg_params_reset(&g->pg->params);
    g->rows = g->bytes = 0;
}

/* The parameters, ready for one more row of so many bytes. */
static struct rv__pg_params *gather_row(struct gather *g, size_t bytes, rv_error *err)
{
    if (g->rows > 0 && g->bytes + bytes > PG_STATEMENT_BYTES)
        gather_flush(g, err);
    if (g->rows == 0)
        g->begin(g->pg);
    g->rows++;
    g->bytes += bytes;
    return &g->pg->params;
}

static const struct rv__str none = { NULL, 0 };

/* Whose a row is: by number, or by id if it begins with this transaction. */
static void put_run(struct rv__pg_params *params, const struct rv__store_write *write,
                    const struct rv__pg_item *item)
{
    rv__pg_put_int(params, 0, item->is_new ? 0 : (int64_t)item->number);
    rv__pg_put_str(params, 1, item->is_new ? write->run : none);
}

static void add_arrays(struct rv__pg *pg, const char *types)
{
    for (; *types != '\0'; types++)
        (void)rv__pg_add_array(&pg->params, *types == 'i'   ? PG_INT8
                                            : *types == 'b' ? PG_BOOL
                                                            : PG_BYTEA);
}

/* ------------------------------------------------------------------------------------ runs --- */

static void begin_definitions(struct rv__pg *pg)
{
    add_arrays(pg, "tt");
}

int rv__pg_send_definitions(struct rv__pg *pg, const struct rv__store_write *writes, size_t count,
                            rv_error *err)
{
    struct gather g = { pg, PG_DEFINE, begin_definitions, 0, 0, RV_OK };
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < writes[i].definition_count; k++) {
            const struct rv__store_definition *d = &writes[i].definitions[k];
            struct rv__pg_params *params = gather_row(&g, d->json.len, err);
            rv__pg_put_str(params, 0, d->hash);
            rv__pg_put_str(params, 1, rv__str_none(d->json) ? rv__str("") : d->json);
        }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_add_runs(struct rv__pg *pg)
{
    rv__pg_add_int4(&pg->params, pg->writer.slot);
    add_arrays(pg, "tttttttttiiiibbt");
}

static void begin_set_runs(struct rv__pg *pg)
{
    rv__pg_add_int4(&pg->params, pg->writer.slot);
    add_arrays(pg, "ittttttttiiiibbt");
}

/* All columns, from parameter 2 (the third) on. */
static void put_row(struct rv__pg_params *params, const struct rv__store_run *row)
{
    rv__pg_put_str(params, 2, row->workflow);
    rv__pg_put_str(params, 3, row->version);
    rv__pg_put_str(params, 4, row->status);
    rv__pg_put_str(params, 5, row->input);
    rv__pg_put_str(params, 6, row->input_key);
    rv__pg_put_str(params, 7, row->error);
    rv__pg_put_str(params, 8, row->failed_step);
    rv__pg_put_str(params, 9, row->suspension);
    rv__pg_put_int(params, 10, row->created_ms);
    rv__pg_put_int(params, 11, row->started_ms);
    rv__pg_put_int(params, 12, row->completed_ms);
    rv__pg_put_int(params, 13, row->wake_at_ms);
    rv__pg_put_bool(params, 14, row->active);
    rv__pg_put_bool(params, 15, row->waiting);
    rv__pg_put_str(params, 16, row->rerun_of);
}

static bool is_wanted(const struct rv__store_write *write)
{
    return write->outcome == STORE_WRITTEN;
}

static int send_rows(struct rv__pg *pg, const struct rv__pg_batch *b, bool new, rv_error *err)
{
    struct gather g = {
        pg, new ? PG_ADD_RUNS : PG_SET_RUNS, new ? begin_add_runs : begin_set_runs, 0, 0, RV_OK
    };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        if (!is_wanted(w) || w->row == NULL || b->items[i].is_new != new)
            continue;
        struct rv__pg_params *params = gather_row(&g, w->row->input.len, err);
        if (new)
            rv__pg_put_str(params, 1, w->run);
        else
            rv__pg_put_int(params, 1, (int64_t)b->items[i].number);
        put_row(params, w->row);
    }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_touches(struct rv__pg *pg)
{
    rv__pg_add_int4(&pg->params, pg->writer.slot);
    add_arrays(pg, "ittttiibbit");
}

static int send_touches(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_TOUCH_RUNS, begin_touches, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_touch *touch = b->writes[i].touch;
        if (!is_wanted(&b->writes[i]) || touch == NULL)
            continue;
        struct rv__pg_params *params = gather_row(&g, touch->error.len, err);
        rv__pg_put_int(params, 1, (int64_t)b->items[i].number);
        rv__pg_put_str(params, 2, touch->status);
        rv__pg_put_str(params, 3, touch->error);
        rv__pg_put_str(params, 4, touch->failed_step);
        rv__pg_put_str(params, 5, touch->suspension);
        rv__pg_put_int(params, 6, touch->completed_ms);
        rv__pg_put_int(params, 7, touch->wake_at_ms);
        rv__pg_put_bool(params, 8, touch->active);
        rv__pg_put_bool(params, 9, touch->waiting);
        rv__pg_put_int(params, 10, touch->to);
        rv__pg_put_str(params, 11, touch->lacks);
    }
    gather_flush(&g, err);
    return g.rc;
}

/* ------------------------------------------------------------------------- what runs write --- */

static void begin_logs(struct rv__pg *pg)
{
    add_arrays(pg, "itiittittt");
}

static int send_logs(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_ADD_LOGS, begin_logs, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        for (size_t k = 0; is_wanted(w) && k < w->log_count; k++) {
            const struct rv__store_log *line = &w->logs[k];
            struct rv__pg_params *params = gather_row(&g, line->message.len + line->metadata.len,
                                                      err);
            put_run(params, w, &b->items[i]);
            rv__pg_put_int(params, 2, line->at_ms);
            rv__pg_put_int(params, 3, line->level);
            rv__pg_put_str(params, 4, line->path);
            rv__pg_put_str(params, 5, line->step);
            rv__pg_put_int(params, 6, line->attempt);
            rv__pg_put_str(params, 7, line->message);
            rv__pg_put_str(params, 8, line->metadata);
            rv__pg_put_str(params, 9, line->kind);
        }
    }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_answered(struct rv__pg *pg)
{
    add_arrays(pg, "itt");
}

static int send_answered(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_DROP_STREAM, begin_answered, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        for (size_t k = 0; is_wanted(w) && k < w->answered_count; k++) {
            struct rv__pg_params *params = gather_row(&g, w->answered[k].len, err);
            put_run(params, w, &b->items[i]);
            rv__pg_put_str(params, 2, w->answered[k]);
        }
    }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_journal(struct rv__pg *pg)
{
    add_arrays(pg, "itit");
}

static int send_journal(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_ADD_JOURNAL, begin_journal, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        if (!is_wanted(w) || rv__str_none(w->facts))
            continue;
        struct rv__pg_params *params = gather_row(&g, w->facts.len, err);
        put_run(params, w, &b->items[i]);
        rv__pg_put_int(params, 2, (int64_t)b->items[i].last_seq);
        rv__pg_put_str(params, 3, w->facts);
    }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_results(struct rv__pg *pg)
{
    add_arrays(pg, "ittit");
}

static void begin_runs(struct rv__pg *pg)
{
    add_arrays(pg, "it");
}

static int send_results(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_ADD_RESULTS, begin_results, 0, 0, RV_OK };
    struct gather seqs = { pg, PG_SET_RESULTS_SEQS, begin_runs, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        for (size_t k = 0; is_wanted(w) && k < w->result_count; k++) {
            struct rv__pg_params *params = gather_row(&g, w->results[k].json.len, err);
            put_run(params, w, &b->items[i]);
            rv__pg_put_str(params, 2, w->results[k].key);
            rv__pg_put_int(params, 3, w->results[k].index);
            rv__pg_put_str(params, 4, w->results[k].json);
        }
    }
    gather_flush(&g, err);
    if (g.rc < 0)
        return g.rc;
    for (size_t i = b->from; i < b->to; i++)
        if (is_wanted(&b->writes[i]) && b->writes[i].result_count > 0)
            put_run(gather_row(&seqs, 0, err), &b->writes[i], &b->items[i]);
    gather_flush(&seqs, err);
    return seqs.rc;
}

static int send_values(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_ADD_VALUES, begin_journal, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        for (size_t k = 0; is_wanted(w) && k < w->value_count; k++) {
            struct rv__pg_params *params = gather_row(&g, w->values[k].json.len, err);
            put_run(params, w, &b->items[i]);
            rv__pg_put_int(params, 2, (int64_t)w->values[k].number);
            rv__pg_put_str(params, 3, w->values[k].json);
        }
    }
    gather_flush(&g, err);
    return g.rc;
}

static void begin_snapshots(struct rv__pg *pg)
{
    add_arrays(pg, "itt");
}

static int send_snapshots(struct rv__pg *pg, const struct rv__pg_batch *b, rv_error *err)
{
    struct gather g = { pg, PG_SET_SNAPSHOTS, begin_snapshots, 0, 0, RV_OK };
    for (size_t i = b->from; i < b->to; i++) {
        const struct rv__store_write *w = &b->writes[i];
        if (!is_wanted(w) || rv__str_none(w->snapshot))
            continue;
        struct rv__pg_params *params = gather_row(&g, w->snapshot.len, err);
        put_run(params, w, &b->items[i]);
        rv__pg_put_str(params, 2, w->snapshot);
    }
    gather_flush(&g, err);
    return g.rc;
}

int rv__pg_send_writes(struct rv__pg *pg, struct rv__pg_batch *b, size_t from, size_t to,
                       rv_error *err)
{
    b->from = b->next_run = b->next_row = from;
    b->to = to;
    int rc = send_rows(pg, b, true, err);
    if (rc == RV_OK)
        rc = send_rows(pg, b, false, err);
    if (rc == RV_OK)
        rc = send_touches(pg, b, err);
    if (rc == RV_OK)
        rc = send_logs(pg, b, err);
    if (rc == RV_OK)
        rc = send_answered(pg, b, err);
    if (rc == RV_OK)
        rc = send_journal(pg, b, err);
    if (rc == RV_OK)
        rc = send_results(pg, b, err);
    if (rc == RV_OK)
        rc = send_values(pg, b, err);
    if (rc == RV_OK)
        rc = send_snapshots(pg, b, err);
    return rc;
}

void rv__pg_take_numbers(void *arg, enum rv__pg_sql sql, const PGresult *result)
{
    struct rv__pg_batch *b = arg;
    if (sql != PG_ADD_RUNS && sql != PG_ADD_JOURNAL)
        return;
    size_t *next = sql == PG_ADD_RUNS ? &b->next_run : &b->next_row;
    for (int row = 0; row < PQntuples(result); row++, ++*next) {
        while (*next < b->to && (!is_wanted(&b->writes[*next]) ||
                                 (sql == PG_ADD_RUNS ? !b->items[*next].is_new
                                                     : rv__str_none(b->writes[*next].facts))))
            ++*next;
        assert(*next < b->to); /* as many as were sent: an INSERT that went well says so */
        uint64_t number = (uint64_t)rv__pg_int_at(result, row, 0);
        if (sql == PG_ADD_RUNS)
            b->items[*next].number = number;
        else
            b->items[*next].seq = number;
    }
}
