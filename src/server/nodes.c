/* nodes.c: a window of a run's nodes, and one node in full. */
#include "server/api.h"

const char *const rv__node_status_names[] = { "pending",   "running",   "waiting_retry",
                                              "completed", "failed",    "skipped",
                                              "cancelled", "suspended", NULL };

void rv__api_nodes(struct rv__api_call *call)
{
    rv_node_list *list = NULL;
    rv_error err;
    int64_t offset = rv__api_int(call, "offset");
    const char *parent = rv__api_text(call, "parent"), *status = rv__api_text(call, "status");
    const rv_node_query query = { .size = sizeof query,
                                  .parent = parent,
                                  .status = status,
                                  .offset = (size_t)offset,
                                  .limit = (size_t)rv__api_int(call, "limit") };
    if (!rv__api_run_exists(call))
        return;
    if (rv_nodes(call->engine, call->names[0], &query, &list, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_text(&call->out, "{\"nodes\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        rv__put_node(&call->out, &list->nodes[i]);
        rv__buf_char(&call->out, '}');
        rv__api_piece(call);
    }
    rv__buf_char(&call->out, ']');
    rv__put_int(&call->out, "total", (int64_t)list->total);
    rv__put_int(&call->out, "offset", offset);
    rv__buf_char(&call->out, '}');
    rv_node_list_free(list);
}

static void put_attempt(struct rv__buf *out, const rv_attempt *attempt, bool values)
{
    rv__buf_fmt(out, "{\"attempt\":%d", attempt->attempt);
    rv__put_text(out, "outcome", attempt->outcome);
    rv__put_int(out, "startedAt", attempt->started_at);
    if (attempt->completed_at != 0)
        rv__put_int(out, "completedAt", attempt->completed_at);
    rv__put_int(out, "queueMs", attempt->queue_ms);
    if (attempt->down_since != 0)
        rv__put_int(out, "downSince", attempt->down_since);
    if (attempt->due_at != 0)
        rv__put_int(out, "dueAt", attempt->due_at);
    if (*attempt->module != '\0')
        rv__put_text(out, "module", attempt->module);
    rv__put_json(out, "error", attempt->error);
    if (values)
        rv__put_json(out, "input", attempt->input);
    rv__buf_char(out, '}');
}

void rv__api_node(struct rv__api_call *call)
{
    rv_node_detail *detail = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    if (rv_node_get(call->engine, call->names[0], rv__api_text(call, "path"), &detail, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__put_node(&call->out, &detail->node);
    bool values = rv__api_int(call, "results") != 0;
    if (values) {
        rv__api_put_value(call, "input", detail->input);
        rv__api_put_value(call, "result", detail->result);
        rv__api_put_value(call, "state", detail->state);
    }
    rv__buf_text(&call->out, ",\"attempts\":[");
    for (size_t i = 0; i < detail->attempt_count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        put_attempt(&call->out, &detail->attempts[i], values);
        rv__api_piece(call);
    }
    rv__buf_char(&call->out, ']');
    if (detail->earlier > 0)
        rv__put_int(&call->out, "earlierAttempts", (int64_t)detail->earlier);
    rv__buf_char(&call->out, '}');
    rv_node_detail_free(detail);
}
