/* bulk.c: one action for many runs: all that a list would have, one piece per call.
 *
 * A piece is limited (`limit`), and its answer says where the next one begins. So there is progress, the client can
 * stop at any time, and no state is needed here. If a run refuses, this is reported, and the others continue. */
#include <string.h>

#include "base/error.h"
#include "server/api.h"

enum bulk_end { BULK_DONE, BULK_UNCHANGED, BULK_FAILED };

struct bulk {
    struct rv__api_call *call;
    size_t done, unchanged;
    struct rv__buf failed, started; /* comma-separated */
};

static bool is_filtered(const rv_query *query)
{
    return query->workflow != NULL || query->status != 0 || query->since != 0 ||
           query->until != 0 || query->text != NULL || query->waiting || query->rerun_of != NULL;
}

static bool has_ended(const rv_run_state *run)
{
    return run->status >= RV_COMPLETED && run->status <= RV_CANCELLED;
}

static enum bulk_end cancel_one(struct bulk *bulk, const rv_run_state *run, rv_error *err)
{
    if (has_ended(run))
        return BULK_UNCHANGED;
    int rc = rv_cancel_run_with(bulk->call->engine, run->run_id,
                                RV_CANCEL_OPTS(.by = bulk->call->request->by), err);
    return rc < 0 ? BULK_FAILED : BULK_DONE;
}

/* Start it again with the same input and the current definition. The list has only the beginning of the input. */
static enum bulk_end start_again(struct bulk *bulk, const rv_run_state *run, rv_error *err)
{
    rv_engine *engine = bulk->call->engine;
    rv_run_list *row = NULL;
    rv_run_info info;
    if (!has_ended(run))
        return BULK_UNCHANGED;
    int rc = rv_list(engine, RV_QUERY(.run_id = run->run_id), &row, err);
    if (rc == RV_OK && row->count == 0) /* retention has deleted it meanwhile */
        rc = rv__fail(err, RV_ENOTFOUND, "there is no run '%s' any more", run->run_id);
    if (rc == RV_OK)
        rc = rv_run(engine, run->workflow, *row->runs[0].input != '\0' ? row->runs[0].input : NULL,
                    RV_RUN_OPTS(.rerun_of = run->run_id, .by = bulk->call->request->by), &info,
                    err);
    rv_run_list_free(row);
    if (rc < 0)
        return BULK_FAILED;
    rv__buf_fmt(&bulk->started, "%s{\"runId\":\"%s\",\"rerunOf\":\"%s\"}",
                bulk->started.len > 0 ? "," : "", info.run_id, run->run_id);
    return BULK_DONE;
}

static void put_failed(struct bulk *bulk, const rv_run_state *run, const rv_error *err)
{
    rv__buf_fmt(&bulk->failed, "%s{\"runId\":\"%s\"", bulk->failed.len > 0 ? "," : "", run->run_id);
    rv__put_text(&bulk->failed, "detail", err->message);
    rv__buf_char(&bulk->failed, '}');
}

static void put_list(struct rv__buf *out, const char *key, const struct rv__buf *items)
{
    rv__buf_fmt(out, ",\"%s\":[", key);
    rv__buf_str(out, rv__buf_view(items));
    rv__buf_char(out, ']');
    if (items->rc < 0)
        out->rc = items->rc;
}

static void do_all(struct rv__api_call *call,
                   enum bulk_end (*one)(struct bulk *, const rv_run_state *, rv_error *),
                   bool starts)
{
    struct bulk bulk = { .call = call };
    const rv_query query = rv__api_query(call);
    rv_run_list *list = NULL;
    rv_error err;
    if (!is_filtered(&query) && rv__api_int(call, "all") == 0) {
        rv__api_refuse(call, 400, "no filter is given: all=1 selects all runs");
        return;
    }
    if (rv_list(call->engine, &query, &list, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_init(&bulk.failed, SIZE_MAX / 8); /* both bounded by the limit */
    rv__buf_init(&bulk.started, SIZE_MAX / 8);
    for (size_t i = 0; i < list->count; i++) {
        enum bulk_end end = one(&bulk, &list->runs[i], &err);
        bulk.done += end == BULK_DONE;
        bulk.unchanged += end == BULK_UNCHANGED;
        if (end == BULK_FAILED)
            put_failed(&bulk, &list->runs[i], &err);
    }
    rv__buf_fmt(&call->out, "{\"matched\":%zu,\"done\":%zu,\"unchanged\":%zu", list->count,
                bulk.done, bulk.unchanged);
    put_list(&call->out, "failed", &bulk.failed);
    if (starts)
        put_list(&call->out, "started", &bulk.started);
    rv__api_put_next(call, list);
    rv__buf_char(&call->out, '}');
    rv__buf_done(&bulk.failed);
    rv__buf_done(&bulk.started);
    rv_run_list_free(list);
}

void rv__api_bulk_cancel(struct rv__api_call *call)
{
    do_all(call, cancel_one, false);
}

void rv__api_bulk_again(struct rv__api_call *call)
{
    do_all(call, start_again, true);
}

static int put_counts(struct rv__api_call *call, rv_error *err)
{
    rv_run_counts counts;
    int rc = rv_count_runs(call->engine, &counts, err);
    if (rc == RV_OK)
        rv__buf_fmt(&call->out,
                    "{\"running\":%llu,\"suspended\":%llu,\"completed\":%llu,\"failed\":%llu,"
                    "\"cancelled\":%llu,\"waiting\":%llu}",
                    (unsigned long long)counts.running, (unsigned long long)counts.suspended,
                    (unsigned long long)counts.completed, (unsigned long long)counts.failed,
                    (unsigned long long)counts.cancelled, (unsigned long long)counts.waiting);
    return rc;
}

void rv__api_counts(struct rv__api_call *call)
{
    rv_error err;
    if (put_counts(call, &err) < 0)
        rv__api_error(call, &err);
}

static int put_health(struct rv__api_call *call, rv_error *err)
{
    rv_health health;
    rv_usage usage = { 0 };
    int rc = rv_engine_health(call->engine, &health, err);
    if (rc == RV_OK)
        rc = rv_store_usage(call->engine, &usage, err);
    if (rc < 0)
        return rc;
    rv__buf_text(&call->out, health.stuck ? "{\"ok\":false" : "{\"ok\":true");
    if (health.stuck) {
        rv__put_int(&call->out, "since", health.since);
        rv__put_int(&call->out, "attempts", (int64_t)health.attempts);
        rv__put_text(&call->out, "reason", health.why.message);
    }
    rv__put_int(&call->out, "bytes", (int64_t)usage.bytes);
    rv__buf_char(&call->out, '}');
    return RV_OK;
}

void rv__api_overview(struct rv__api_call *call)
{
    char *overview = NULL;
    rv_error err;
    int rc = rv_overview(call->engine, &overview, &err);
    if (rc == RV_OK) {
        rv__buf_add(&call->out, overview, strlen(overview) - 1); /* without its closing brace */
        rv__buf_text(&call->out, ",\"counts\":");
        rc = put_counts(call, &err);
    }
    if (rc == RV_OK) {
        rv__buf_text(&call->out, ",\"health\":");
        rc = put_health(call, &err);
    }
    rv__buf_char(&call->out, '}');
    rv_free(overview);
    if (rc < 0)
        rv__api_error(call, &err);
}
