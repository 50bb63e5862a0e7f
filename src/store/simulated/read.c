/* read.c: reading the simulated store. What wants an order is gathered and sorted at each call. */
#include "store/simulated/tables.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

static int compare_results(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    int by_key = rv__str_cmp(view(&x->key), view(&y->key));
    return by_key != 0 ? by_key : (x->index > y->index) - (x->index < y->index);
}

size_t rv__sim_result_place(const struct rv__sim_run *run, struct rv__str key, int64_t index)
{
    size_t low = 0, high = run->result_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct result *r = &run->results[mid];
        int by_key = rv__str_cmp(view(&r->key), key);
        if (by_key < 0 || (by_key == 0 && r->index < index))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void rv__sim_sort_results(struct rv__sim_run *run)
{
    if (run->results_sorted == run->result_count)
        return;
    /* Iterations mostly end in order: then there is nothing to do but look. */
    size_t i = run->results_sorted > 0 ? run->results_sorted : 1;
    while (i < run->result_count && compare_results(&run->results[i - 1], &run->results[i]) < 0)
        i++;
    if (i < run->result_count)
        qsort(run->results, run->result_count, sizeof *run->results, compare_results);
    run->results_sorted = run->result_count;
}

size_t rv__sim_value_place(const struct rv__sim_run *run, uint64_t number)
{
    size_t low = 0, high = run->value_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (run->values[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct rv__sim_run *rv__sim_find(const struct rv__sim_store *sim, struct rv__str id)
{
    for (size_t i = 0; i < sim->run_count; i++)
        if (rv__str_eq(view(&sim->runs[i]->id), id))
            return sim->runs[i];
    return NULL;
}

static struct rv__store_run row_of(const struct rv__sim_run *run)
{
    const struct columns *c = &run->columns;
    if (run->damaged)
        return (struct rv__store_run){
            .id = view(&run->id),
            .number = run->number,
            .created_ms = c->created_ms,
            .completed_ms = c->completed_ms,
            .active = c->active,
            .wake_at_ms = c->wake_at_ms,
            .damaged = true,
            .why = RV__STR("the row is damaged: it was simulated"),
        };
    return (struct rv__store_run){
        .id = view(&run->id),
        .workflow = view(&c->workflow),
        .version = view(&c->version),
        .status = view(&c->status),
        .input = view(&c->input),
        .input_key = view(&c->input_key),
        .error = view(&c->error),
        .failed_step = view(&c->failed_step),
        .suspension = view(&c->suspension),
        .rerun_of = view(&c->rerun_of),
        .waiting = c->waiting,
        .created_ms = c->created_ms,
        .started_ms = c->started_ms,
        .completed_ms = c->completed_ms,
        .active = c->active,
        .wake_at_ms = c->wake_at_ms,
        .number = run->number,
    };
}

static struct rv__store_log log_of(const struct rv__sim_line_row *line)
{
    return (struct rv__store_log){
        .id = line->id,
        .run = view(&line->run->id),
        .at_ms = line->at_ms,
        .level = line->level,
        .path = view(&line->path),
        .step = view(&line->step),
        .attempt = line->attempt,
        .message = view(&line->message),
        .metadata = view(&line->metadata),
        .kind = view(&line->kind),
    };
}

/* ------------------------------------------------------------------------------- one run --- */

int rv__sim_read_definition(struct rv__sim_store *sim, struct rv__str hash,
                            rv__store_visit_text *visit, void *arg, rv_error *err)
{
    for (struct rv__sim_definition *d = sim->definitions; d != NULL; d = d->next)
        if (rv__str_eq(view(&d->hash), hash))
            return visit(arg, 0, view(&d->json));
    return rv__fail(err, RV_ENOTFOUND, "there is no definition '%.*s'", RV__ARG(hash));
}

int rv__sim_read_run(struct rv__sim_store *sim, struct rv__str id, rv__store_visit_run *visit,
                     void *arg, rv_error *err)
{
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    if (run == NULL)
        return rv__fail(err, RV_ENOTFOUND, "there is no run '%.*s'", RV__ARG(id));
    struct rv__store_run row = row_of(run);
    if (row.damaged)
        return rv__fail(err, RV_EPARSE, "%.*s", RV__ARG(row.why));
    return visit(arg, &row);
}

int rv__sim_read_snapshot(struct rv__sim_store *sim, struct rv__str id, rv__store_visit_text *visit,
                          void *arg, rv_error *err)
{
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    if (run == NULL || run->snapshot.at == NULL)
        return rv__fail(err, RV_ENOTFOUND, "run '%.*s' has no snapshot", RV__ARG(id));
    return visit(arg, run->snapshot_seq, view(&run->snapshot));
}

int rv__sim_read_value(struct rv__sim_store *sim, struct rv__str id, uint64_t number,
                       rv__store_visit_text *visit, void *arg, rv_error *err)
{
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    size_t at = run != NULL ? rv__sim_value_place(run, number) : 0;
    if (run == NULL || at == run->value_count || run->values[at].number != number)
        return rv__fail(err, RV_ENOTFOUND, "there is no value %llu of run '%.*s'",
                        (unsigned long long)number, RV__ARG(id));
    return visit(arg, number, view(&run->values[at].json));
}

/* The place of the run's first row behind `after`. */
static size_t row_place(const struct rv__sim_run *run, uint64_t after)
{
    size_t low = 0, high = run->row_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (run->rows[mid].seq <= after)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int rv__sim_read_journal(struct rv__sim_store *sim, struct rv__str id, uint64_t after,
                         rv__store_visit_row *visit, void *arg)
{
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    int rc = RV_OK;
    if (run == NULL)
        return RV_OK;
    for (size_t i = row_place(run, after); i < run->row_count && rc == RV_OK; i++)
        rc = visit(arg, run->rows[i].seq, view(&run->rows[i].facts));
    return rc;
}

int rv__sim_read_results(struct rv__sim_store *sim, struct rv__str id, struct rv__str key,
                         int64_t from, size_t limit, rv__store_visit_result *visit, void *arg)
{
    struct rv__sim_run *run = rv__sim_find(sim, id);
    int rc = RV_OK;
    if (run == NULL)
        return RV_OK;
    rv__sim_sort_results(run);
    size_t i = rv__sim_result_place(run, key, from);
    for (; i < run->result_count && rc == RV_OK && limit > 0; i++, limit--) {
        const struct result *r = &run->results[i];
        if (!rv__str_eq(view(&r->key), key))
            break;
        rc = visit(arg, r->index, view(&r->json));
    }
    return rc;
}

int rv__sim_whole(struct rv__sim_store *sim, struct rv__str id,
                  const struct rv__store_visitor *visitor, void *arg, rv_error *err)
{
    const struct rv__sim_run *run = rv__sim_find(sim, id);
    int rc = rv__sim_read_run(sim, id, visitor->run, arg, err);
    if (rc != RV_OK)
        return rc;
    for (struct rv__sim_definition *d = sim->definitions; d != NULL && rc == RV_OK; d = d->next)
        if (rv__str_eq(view(&d->hash), view(&run->columns.version)))
            rc = visitor->definition(arg, 0, view(&d->json));
    for (size_t i = 0; i < run->value_count && rc == RV_OK; i++)
        rc = visitor->value(arg, run->values[i].number, view(&run->values[i].json));
    size_t row = 0, line = 0;
    while (rc == RV_OK) {
        while (line < sim->line_count && sim->lines[line].run != run)
            line++;
        uint64_t seq = row < run->row_count ? run->rows[row].seq : UINT64_MAX;
        uint64_t log_id = line < sim->line_count ? sim->lines[line].id : UINT64_MAX;
        if (seq == UINT64_MAX && log_id == UINT64_MAX)
            break;
        if (seq < log_id) {
            rc = visitor->row(arg, seq, view(&run->rows[row++].facts));
        } else {
            struct rv__store_log log = log_of(&sim->lines[line++]);
            rc = visitor->log(arg, &log);
        }
    }
    return rc;
}

/* ----------------------------------------------------------------------------- many runs --- */

int rv__sim_read_active(struct rv__sim_store *sim, uint64_t after, size_t limit,
                        rv__store_visit_run *visit, void *arg)
{
    int rc = RV_OK;
    for (size_t i = 0; i < sim->run_count && limit > 0 && rc == RV_OK; i++) {
        struct rv__store_run row = row_of(sim->runs[i]);
        if (!row.active || row.number <= after)
            continue;
        limit--;
        rc = visit(arg, &row);
    }
    return rc;
}

/* Runs by a time, in the order of struct rv__store_place. */
struct timed {
    struct rv__store_place place;
    const struct rv__sim_run *run;
};

static int compare_places(const void *a, const void *b)
{
    const struct rv__store_place *x = &((const struct timed *)a)->place;
    const struct rv__store_place *y = &((const struct timed *)b)->place;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int visit_timed(struct timed *timed, size_t count, const struct rv__store_place *after,
                       size_t limit, bool with_input, rv__store_visit_run *visit, void *arg)
{
    struct timed start = { after != NULL ? *after : (struct rv__store_place){ INT64_MIN, 0 },
                           NULL };
    int rc = RV_OK;
    if (count > 0)
        qsort(timed, count, sizeof *timed, compare_places);
    for (size_t i = 0; i < count && limit > 0 && rc == RV_OK; i++) {
        if (compare_places(&timed[i], &start) <= 0)
            continue;
        struct rv__store_run row = row_of(timed[i].run);
        if (!with_input)
            row.input = (struct rv__str){ NULL, 0 };
        limit--;
        rc = visit(arg, &row);
    }
    return rc;
}

static int read_timed(struct rv__sim_store *sim, bool due, int64_t now_ms,
                      const struct rv__store_place *after, size_t limit, rv__store_visit_run *visit,
                      void *arg, rv_error *err)
{
    struct timed *timed = rv__zalloc(sim->run_count + 1, sizeof *timed);
    size_t count = 0;
    if (timed == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < sim->run_count; i++) {
        const struct rv__sim_run *run = sim->runs[i];
        int64_t wake_at = run->columns.wake_at_ms;
        bool wanted = due ? wake_at != 0 && wake_at <= now_ms : finished(run);
        if (wanted)
            timed[count++] = (struct timed){
                { due ? wake_at : run->columns.completed_ms, run->number }, run
            };
    }
    int rc = visit_timed(timed, count, after, limit, due, visit, arg);
    rv__free(timed);
    return rc;
}

int rv__sim_read_due(struct rv__sim_store *sim, int64_t now_ms, const struct rv__store_place *after,
                     size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return read_timed(sim, true, now_ms, after, limit, visit, arg, err);
}

int rv__sim_read_finished(struct rv__sim_store *sim, const struct rv__store_place *after,
                          size_t limit, rv__store_visit_run *visit, void *arg, rv_error *err)
{
    return read_timed(sim, false, 0, after, limit, visit, arg, err);
}

static int compare_created(const void *a, const void *b)
{
    const struct rv__store_run x = row_of(((const struct timed *)a)->run);
    const struct rv__store_run y = row_of(((const struct timed *)b)->run);
    if (x.created_ms != y.created_ms)
        return x.created_ms < y.created_ms ? -1 : 1;
    return rv__str_cmp(x.id, y.id);
}

int rv__sim_read_oldest_waiting(struct rv__sim_store *sim, size_t limit, rv__store_visit_run *visit,
                                void *arg, rv_error *err)
{
    struct timed *waiting = rv__zalloc(sim->run_count + 1, sizeof *waiting);
    size_t count = 0;
    int rc = RV_OK;
    if (waiting == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < sim->run_count; i++)
        if (row_of(sim->runs[i]).waiting)
            waiting[count++].run = sim->runs[i];
    if (count > 0)
        qsort(waiting, count, sizeof *waiting, compare_created);
    for (size_t i = 0; i < count && i < limit && rc == RV_OK; i++) {
        struct rv__store_run row = row_of(waiting[i].run);
        row.input = (struct rv__str){ NULL, 0 };
        rc = visit(arg, &row);
    }
    rv__free(waiting);
    return rc;
}

int64_t rv__sim_next_wake(const struct rv__sim_store *sim, int64_t after_ms)
{
    int64_t next = 0;
    for (size_t i = 0; i < sim->run_count; i++) {
        int64_t wake_at = sim->runs[i]->columns.wake_at_ms;
        if (wake_at != 0 && wake_at > after_ms && (next == 0 || wake_at < next))
            next = wake_at;
    }
    return next;
}

int rv__sim_read_feed(struct rv__sim_store *sim, uint64_t after, size_t limit,
                      rv__store_visit_feed *visit, void *arg)
{
    int rc = RV_OK;
    for (; limit > 0 && rc == RV_OK; limit--) {
        const struct rv__sim_run *next = NULL;
        const struct row *row = NULL;
        for (size_t i = 0; i < sim->run_count; i++) {
            const struct rv__sim_run *run = sim->runs[i];
            size_t at = row_place(run, after);
            if (at < run->row_count && (row == NULL || run->rows[at].seq < row->seq)) {
                next = run;
                row = &run->rows[at];
            }
        }
        if (next == NULL)
            break;
        after = row->seq;
        rc = visit(arg, row->seq, view(&next->id), view(&row->facts));
    }
    return rc;
}

/* --------------------------------------------------------------------------------- lists --- */

static int compare_newest(const void *a, const void *b)
{
    const struct rv__sim_run *x = *(struct rv__sim_run *const *)a;
    const struct rv__sim_run *y = *(struct rv__sim_run *const *)b;
    if (x->columns.created_ms != y->columns.created_ms)
        return x->columns.created_ms > y->columns.created_ms ? -1 : 1;
    return -rv__str_cmp(view(&x->id), view(&y->id));
}

static bool list_match(const struct rv__store_query *query, const struct rv__store_run *row)
{
    if (row->damaged && (!rv__str_none(query->text) ||
                         !rv__str_none(query->workflow) + !rv__str_none(query->status) +
                                 query->waiting + !rv__str_none(query->rerun_of) >
                             1))
        return false;
    if (query->waiting && !row->waiting)
        return false;
    if (!rv__str_none(query->rerun_of) && !rv__str_eq(row->rerun_of, query->rerun_of))
        return false;
    if (!rv__str_none(query->workflow) && !rv__str_eq(row->workflow, query->workflow))
        return false;
    if (!rv__str_none(query->status) && !rv__str_eq(row->status, query->status))
        return false;
    if (query->since_ms != 0 && row->created_ms < query->since_ms)
        return false;
    if (query->until_ms != 0 && row->created_ms >= query->until_ms)
        return false;
    return rv__str_none(query->text) || rv__store_contains(row->id, query->text) ||
           rv__store_contains(row->workflow, query->text) ||
           rv__store_contains(row->error, query->text) ||
           rv__store_contains(row->input, query->text);
}

static bool behind(const struct rv__store_run *row, int64_t created, struct rv__str id)
{
    return row->created_ms < created ||
           (row->created_ms == created && rv__str_cmp(row->id, id) < 0);
}

int rv__sim_read_list(struct rv__sim_store *sim, const struct rv__store_query *query,
                      rv__store_visit_run *visit, void *arg, struct rv__buf *cursor, rv_error *err)
{
    size_t limit = query->limit == 0 ? RV__STORE_LIST_DEFAULT : query->limit, count = 0, i, found;
    bool from_start = rv__str_none(query->cursor);
    struct rv__sim_run **sorted = NULL;
    struct rv__str id = { NULL, 0 };
    int64_t created = 0;
    int rc = from_start ? RV_OK : rv__store_cursor_read(query->cursor, &created, &id, err);
    if (rc < 0)
        return rc;
    if (limit > RV__STORE_LIST_MAX)
        limit = RV__STORE_LIST_MAX;
    sorted = rv__zalloc(sim->run_count + 1, sizeof(void *));
    if (sorted == NULL)
        return rv__nomem(err);
    for (i = 0; i < sim->run_count; i++) {
        struct rv__store_run row = row_of(sim->runs[i]);
        if (list_match(query, &row) && (from_start || behind(&row, created, id)))
            sorted[count++] = sim->runs[i];
    }
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_newest);
    for (found = 0; found < count && found < limit && rc == RV_OK; found++) {
        struct rv__store_run row = row_of(sorted[found]);
        row.input = rv__store_query_input(query, row.input);
        rc = visit(arg, &row);
    }
    if (rc == RV_OK && cursor != NULL) {
        rv__buf_reset(cursor);
        if (found > 0 && found < count) {
            struct rv__store_run last = row_of(sorted[found - 1]);
            rv__store_cursor_write(cursor, &last);
        }
        rc = rv__buf_err(cursor, err);
    }
    rv__free(sorted);
    return rc;
}

int rv__sim_read_logs(struct rv__sim_store *sim, const struct rv__store_log_query *query,
                      rv__store_visit_log *visit, void *arg)
{
    size_t left = query->limit;
    int rc = RV_OK;
    for (size_t i = 0; i < sim->line_count && left > 0 && rc == RV_OK; i++) {
        struct rv__store_log line = log_of(&sim->lines[i]);
        if (line.id <= query->after_id ||
            (!rv__str_none(query->run) && !rv__str_eq(line.run, query->run)) ||
            !rv__store_log_matches(query, &line))
            continue;
        left--;
        rc = visit(arg, &line);
    }
    return rc;
}

/* ------------------------------------------------------------------------------- figures --- */

static int compare_statuses(const void *a, const void *b)
{
    const struct rv__sim_run *x = *(struct rv__sim_run *const *)a;
    const struct rv__sim_run *y = *(struct rv__sim_run *const *)b;
    return rv__str_cmp(view(&x->columns.status), view(&y->columns.status));
}

int rv__sim_read_counts(struct rv__sim_store *sim, rv__store_visit_count *visit, void *arg,
                        rv_error *err)
{
    struct rv__sim_run **sorted = rv__zalloc(sim->run_count + 1, sizeof(void *));
    size_t count = 0;
    int rc = RV_OK;
    if (sorted == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < sim->run_count; i++)
        if (sim->runs[i]->columns.status.at != NULL)
            sorted[count++] = sim->runs[i];
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_statuses);
    for (size_t i = 0, first = 0; i < count && rc == RV_OK; i++) {
        if (i + 1 < count && compare_statuses(&sorted[i], &sorted[i + 1]) == 0)
            continue;
        rc = visit(arg, view(&sorted[i]->columns.status), i + 1 - first);
        first = i + 1;
    }
    rv__free(sorted);
    return rc;
}

void rv__sim_usage(const struct rv__sim_store *sim, struct rv__store_usage *ret)
{
    *ret = (struct rv__store_usage){ .runs = sim->run_count,
                                     .last_seq = sim->seq,
                                     .forgotten_seq = sim->forgotten };
    for (size_t i = 0; i < sim->run_count; i++) {
        const struct rv__sim_run *run = sim->runs[i];
        ret->finished += finished(run);
        ret->waiting += run->columns.waiting;
        ret->bytes += sizeof *run + run->columns.input.len + run->snapshot.len;
        for (size_t k = 0; k < run->row_count; k++)
            ret->bytes += run->rows[k].facts.len;
        for (size_t k = 0; k < run->result_count; k++)
            ret->bytes += run->results[k].json.len;
        for (size_t k = 0; k < run->value_count; k++)
            ret->bytes += run->values[k].json.len;
    }
}
