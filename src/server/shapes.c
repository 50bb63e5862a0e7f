/* shapes.c: the documents: a run, a node, a log line, a workflow. The API sends them, and the command line prints
 * the same with --json. */
#include <string.h>

#include "base/json.h"
#include "server/api.h"

const char *const rv__level_names[] = { "debug", "info", "warn", "error", NULL };

void rv__put_text(struct rv__buf *out, const char *key, const char *text)
{
    rv__buf_fmt(out, ",\"%s\":", key);
    rv__buf_json_str(out, rv__str(text));
}

void rv__put_int(struct rv__buf *out, const char *key, int64_t value)
{
    rv__buf_fmt(out, ",\"%s\":%lld", key, (long long)value);
}

void rv__put_json(struct rv__buf *out, const char *key, const char *json)
{
    if (json == NULL || *json == '\0')
        return;
    rv__buf_fmt(out, ",\"%s\":", key);
    rv__buf_text(out, json);
}

static void put_known(struct rv__buf *out, const char *key, int64_t at_ms)
{
    if (at_ms != 0)
        rv__put_int(out, key, at_ms);
}

static void put_or_null(struct rv__buf *out, const char *key, int64_t value, bool known)
{
    if (known)
        rv__put_int(out, key, value);
    else
        rv__put_json(out, key, "null");
}

/* Where it failed: the top-level step, and the deepest node. */
static void put_where(struct rv__buf *out, const rv_run_state *run)
{
    if (run->failed_step != NULL && *run->failed_step != '\0')
        rv__put_text(out, "failedStep", run->failed_step);
    if (run->failed_path != NULL && *run->failed_path != '\0')
        rv__put_text(out, "failedPath", run->failed_path);
}

void rv__put_run(struct rv__buf *out, const rv_run_state *run)
{
    rv__buf_fmt(out, "{\"runId\":\"%s\"", run->run_id);
    rv__put_text(out, "workflow", run->workflow);
    rv__put_text(out, "version", run->version);
    rv__put_text(out, "status", rv_status_name(run->status));
    put_known(out, "createdAt", run->created_at);
    put_or_null(out, "startedAt", run->started_at, run->started_at != 0);
    put_or_null(out, "completedAt", run->completed_at, run->completed_at != 0);
    put_or_null(out, "duration", run->duration_ms, run->completed_at != 0);
    rv__put_json(out, "error", run->error);
    put_where(out, run);
    rv__put_json(out, "suspension", run->suspension);
    if (run->waiting != NULL && *run->waiting != '\0')
        rv__put_text(out, "waiting", run->waiting);
    if (run->rerun_of != NULL && *run->rerun_of != '\0')
        rv__put_text(out, "rerunOf", run->rerun_of);
    rv__put_json(out, "suspensions", run->suspensions);
}

void rv__put_results(struct rv__buf *out, const rv_run_state *run)
{
    rv__put_json(out, "results", *run->results != '\0' ? run->results : "{}");
    if (run->results_too_large > 0)
        rv__put_int(out, "resultsTooLarge", run->results_too_large);
}

bool rv__put_outcome_head(struct rv__buf *out, const rv_run_state *ended)
{
    rv__buf_fmt(out, "{\"runId\":\"%s\",\"status\":\"%s\"", ended->run_id,
                rv_status_name(ended->status));
    if (ended->results_too_large == 0)
        return true;
    rv__put_int(out, "resultsTooLarge", ended->results_too_large);
    return false;
}

void rv__put_outcome_tail(struct rv__buf *out, const rv_run_state *ended)
{
    rv__put_json(out, "error", ended->error);
    put_where(out, ended);
    rv__buf_char(out, '}');
}

void rv__put_outcome(struct rv__buf *out, const rv_run_state *ended)
{
    if (rv__put_outcome_head(out, ended))
        rv__put_json(out, "results", *ended->results != '\0' ? ended->results : "{}");
    rv__put_outcome_tail(out, ended);
}

/* The error, with attempt and time added, unless it has them. */
static void put_node_error(struct rv__buf *out, const rv_node *node)
{
    struct rv__str error = rv__str(node->error), own;
    if (error.len == 0)
        return;
    rv__buf_text(out, ",\"error\":");
    bool says = rv__json_type(error) != RV__JSON_OBJECT || rv__json_count(error) == 0 ||
                node->error_at == 0 || rv__json_get(error, "attemptNumber", &own) ||
                rv__json_get(error, "occurredAt", &own);
    rv__buf_add(out, error.at, error.len - !says);
    if (!says) {
        rv__put_int(out, "attemptNumber", node->error_attempt);
        rv__put_int(out, "occurredAt", node->error_at);
        rv__buf_char(out, '}');
    }
    rv__put_int(out, "errorAttempt", node->error_attempt);
    put_known(out, "errorAt", node->error_at);
}

static void put_iterations(struct rv__buf *out, const rv_iterations *iterations)
{
    rv__buf_fmt(out, ",\"iterations\":{\"running\":%zu", iterations->running);
    rv__put_int(out, "completed", (int64_t)iterations->completed);
    rv__put_int(out, "failed", (int64_t)iterations->failed);
    rv__put_int(out, "cancelled", (int64_t)iterations->cancelled);
    put_known(out, "total", (int64_t)iterations->total);
    rv__buf_char(out, '}');
}

void rv__put_node(struct rv__buf *out, const rv_node *node)
{
    rv__buf_text(out, "{\"path\":");
    rv__buf_json_str(out, rv__str(node->path));
    rv__put_text(out, "alias", node->alias);
    rv__put_text(out, "kind", node->kind);
    rv__put_text(out, "status", node->status);
    if (node->started_at != 0) {
        rv__put_int(out, "startedAt", node->started_at);
        rv__put_int(out, "duration", node->duration_ms);
        rv__put_int(out, "queueMs", node->queue_ms);
    }
    put_known(out, "completedAt", node->completed_at);
    put_known(out, "dueAt", node->due_at);
    if (node->attempt != 0) {
        rv__put_int(out, "attempt", node->attempt);
        rv__put_int(out, "retryCount", node->retry_count);
        rv__put_int(out, "crashes", node->crashes);
    }
    if (*node->module != '\0')
        rv__put_text(out, "module", node->module);
    put_node_error(out, node);
    if (*node->description != '\0')
        rv__put_text(out, "description", node->description);
    if (*node->label != '\0')
        rv__put_text(out, "label", node->label);
    if (*node->item != '\0')
        rv__put_text(out, "itemSummary", node->item);
    rv__put_int(out, "children", (int64_t)node->children);
    if (node->started_at != 0 &&
        (strcmp(node->kind, "forEach") == 0 || strcmp(node->kind, "loop") == 0))
        put_iterations(out, &node->iterations);
}

void rv__put_log_line(struct rv__buf *out, const char *run_id, const rv_log_line *line)
{
    bool known = line->level >= RV_DEBUG && line->level <= RV_ERROR;
    rv__buf_fmt(out, "{\"id\":%llu,\"level\":\"%s\"", (unsigned long long)line->id,
                rv__level_names[known ? line->level : RV_ERROR]);
    rv__put_text(out, "message", line->message);
    rv__put_int(out, "timestamp", line->at);
    rv__put_json(out, "metadata", line->metadata);
    rv__put_text(out, "runId", run_id);
    rv__put_text(out, "stepName", line->step);
    rv__put_text(out, "path", line->path);
    rv__put_int(out, "attempt", line->attempt);
    if (*line->kind != '\0')
        rv__put_text(out, "kind", line->kind);
    rv__buf_char(out, '}');
}

void rv__put_attachment(struct rv__buf *out, const rv_attachment *one)
{
    rv__buf_text(out, "{\"id\":");
    rv__buf_json_str(out, rv__str(one->id));
    rv__put_text(out, "stage", one->stage);
    rv__put_text(out, "state", one->state);
    rv__put_text(out, "agent", one->agent);
    rv__put_text(out, "path", one->path);
    rv__put_int(out, "attempt", one->attempt);
    rv__put_text(out, "status", one->status);
    rv__put_text(out, "description", one->description);
    rv__put_int(out, "startedAt", one->started_at);
    put_or_null(out, "completedAt", one->completed_at, one->completed_at != 0);
    if (one->superseded)
        rv__put_json(out, "superseded", "true");
}

void rv__put_workflow(struct rv__buf *out, const rv_workflow_info *workflow)
{
    rv__buf_text(out, "{\"name\":");
    rv__buf_json_str(out, rv__str(workflow->name));
    rv__put_text(out, "description", workflow->description);
    rv__put_text(out, "version", workflow->version);
    rv__put_text(out, "source", workflow->source);
    rv__put_int(out, "stepCount", workflow->step_count);
    if (workflow->cannot_start != NULL && workflow->cannot_start[0] != '\0')
        rv__put_text(out, "cannotStart", workflow->cannot_start);
    rv__put_json(out, "inputSchema", workflow->input_schema);
}
