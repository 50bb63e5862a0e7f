/* context.c: rv_ctx: what a step's function sees and says. On the step's thread; nothing here touches
 * the engine's state: what it sees was captured when it was dispatched (rv__view), and finished
 * iterations are read through a reader of the store. */
#include "engine/context.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/engine.h"

/* ------------------------------------------------------------------------------- running --- */

void rv__ctx_run(struct rv__work *work)
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    int rc = ctx->fn(ctx);
    if (rc != 0 && ctx->outcome != MSG_FAILED) { /* a code without rv_fail() */
        const char *name = rv_errname(rc);
        if (name != NULL)
            rv_fail(ctx, "%s", rv_strerror(rc));
        else
            rv_fail(ctx, "the step returned %d", rc);
    }
}

void rv__ctx_failed(struct rv_ctx *ctx, const rv_error *err)
{
    rv_fail(ctx, "%s%s", err->code == RV_EPANIC ? "panic: " : "", err->message);
}

void rv__ctx_done(struct rv_ctx *ctx)
{
    rv__view_done(&ctx->view);
    rv__blob_unref(ctx->result);
    rv__blob_unref(ctx->state);
    rv__blob_unref(ctx->error);
    rv__buf_done(&ctx->state_members);
    rv_cancel_free(ctx->token);
    rv__arena_done(&ctx->arena);
}

/* ---------------------------------------------------------------------------------- said --- */

static int take_result(rv_ctx *ctx, struct rv__str json)
{
    struct rv__str value;
    rv_error err;
    if (rv__json_check(json, RV__JSON_VALUE_DEPTH, &value, &err) < 0)
        return rv_fail(ctx, "the result is not JSON: %s", err.message);
    struct rv__blob *result = rv__blob_new(value);
    if (result == NULL)
        return rv_fail(ctx, "out of memory");
    rv__blob_unref(ctx->result);
    ctx->result = result;
    ctx->outcome = MSG_DONE;
    return 0;
}

int rv_return(rv_ctx *ctx, const char *format, ...)
{
    json_error_t why;
    struct rv__buf buf;
    va_list args;
    va_start(args, format);
    json_t *value = json_vpack_ex(&why, 0, format, args);
    va_end(args);
    if (value == NULL)
        return rv_fail(ctx, "rv_return: bad format \"%.60s\": %s", format, why.text);

    rv__buf_init(&buf, RV__JSON_MAX_BYTES);
    int rc = rv__json_dump(value, &buf);
    json_decref(value);
    if (rc == RV_OK)
        rc = rv__buf_err(&buf, NULL);
    if (rc == RV_OK)
        rc = take_result(ctx, rv__buf_view(&buf));
    else
        rc = rv_fail(ctx, "rv_return: %s", rv_strerror(rc));
    rv__buf_done(&buf);
    return rc;
}

int rv_return_json(rv_ctx *ctx, const char *json)
{
    return take_result(ctx, rv__str(json != NULL ? json : "null"));
}

int rv_return_bool(rv_ctx *ctx, bool value)
{
    return take_result(ctx, rv__str(value ? "true" : "false"));
}

int rv_return_pending(rv_ctx *ctx, const char *handle)
{
    if (handle == NULL || *handle == '\0' || ctx->eval >= 0)
        return rv_fail(ctx, "rv_return_pending: %s",
                       ctx->eval >= 0 ? "a condition cannot wait" : "no handle given");
    if (rv__str_copy(&ctx->arena, rv__str(handle), &ctx->handle) < 0)
        return rv_fail(ctx, "out of memory");
    ctx->outcome = MSG_PARK;
    return 0;
}

static int fail_with(rv_ctx *ctx, const char *fmt, va_list args) RV_PRINTF(2, 0);
static int fail_with(rv_ctx *ctx, const char *fmt, va_list args)
{
    char text[4096]; /* an error is a sentence or two; a longer one is cut */
    struct rv__buf buf;
    int n = vsnprintf(text, sizeof text, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    rv__buf_init(&buf, 8 * sizeof text);
    rv__buf_text(&buf, "{\"message\":");
    rv__buf_json_str(&buf, (struct rv__str){ text, len });
    rv__buf_char(&buf, '}');
    rv__blob_unref(ctx->error);
    ctx->error = rv__buf_err(&buf, NULL) == RV_OK ? rv__blob_new(rv__buf_view(&buf)) : NULL;
    rv__buf_done(&buf);
    ctx->outcome = MSG_FAILED; /* without an error text, if there was no memory for it */
    return RV_EFAILED;
}

int rv_fail(rv_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_with(ctx, fmt, args);
    va_end(args);
    ctx->behavior = BEHAVIOR_PLAIN;
    ctx->max_attempts = ctx->backoff = 0;
    return rc;
}

int rv_step_error(rv_ctx *ctx, int behavior, int max_attempts, int backoff, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_with(ctx, fmt, args);
    va_end(args);
    ctx->behavior = behavior == RV_ON_CONTINUE ? BEHAVIOR_CONTINUE
                    : behavior == RV_ON_RETRY  ? BEHAVIOR_RETRY
                                               : BEHAVIOR_STOP;
    ctx->max_attempts = max_attempts > 0 ? max_attempts : 0;
    ctx->backoff = backoff == RV_LINEAR || backoff == RV_EXPONENTIAL ? backoff + 1 : 0;
    return rc;
}

static int put_state(rv_ctx *ctx, const char *key, struct rv__str json)
{
    struct rv__buf *state = &ctx->state_members;
    size_t before = state->len;
    if (state->len > 0)
        rv__buf_char(state, ',');
    rv__buf_json_str(state, rv__str(key));
    rv__buf_char(state, ':');
    rv__buf_str(state, json);
    int rc = rv__buf_err(state, NULL);
    if (rc < 0) {
        rv__buf_cut(state, before);
        state->rc = RV_OK; /* what was put before is whole */
    }
    return rc;
}

void rv_describe(rv_ctx *ctx, const char *fmt, ...)
{
    char text[1024]; /* a line for people */
    struct rv__buf json;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    rv__buf_init(&json, 8 * sizeof text);
    rv__buf_json_str(&json, (struct rv__str){ text, len });
    if (rv__buf_err(&json, NULL) == RV_OK)
        (void)put_state(ctx, "description", rv__buf_view(&json)); /* no memory: without it, then */
    ctx->described = true;
    rv__buf_done(&json);
}

int rv_set_state(rv_ctx *ctx, const char *key, const char *json)
{
    struct rv__str value;
    if (key == NULL || json == NULL ||
        rv__json_check(rv__str(json), RV__JSON_VALUE_DEPTH, &value, NULL) < 0)
        return RV_EINVAL;
    int rc = put_state(ctx, key, value);
    if (rc == RV_OK && strcmp(key, "skipped") == 0)
        ctx->skipped = rv__str_is(value, "true");
    return rc;
}

int rv_skip(rv_ctx *ctx)
{
    ctx->outcome = MSG_DONE;
    return rv_set_state(ctx, "skipped", "true");
}

/* ---------------------------------------------------------------------------------- seen --- */

/* The part of `json` at `pointer`, as a C string of the step's arena. */
static const char *part(rv_ctx *ctx, struct rv__str json, const char *pointer)
{
    struct rv__str found = json;
    if (rv__str_none(json))
        return NULL;
    if (pointer != NULL && *pointer != '\0' &&
        rv__json_pointer(json, rv__str(pointer), &found, NULL) < 0)
        return NULL;
    return rv__arena_dup(&ctx->arena, found.at, found.len);
}

/* A JSON string's text; NULL for anything else. */
static const char *as_str(rv_ctx *ctx, const char *json)
{
    struct rv__str text;
    if (json == NULL || *json != '"' || rv__json_string(rv__str(json), &ctx->arena, &text) < 0)
        return NULL;
    return rv__arena_dup(&ctx->arena, text.at, text.len);
}

static int64_t as_int(const char *json, int64_t fallback)
{
    int64_t n = fallback;
    if (json != NULL)
        (void)rv__json_int(rv__str(json), &n); /* not one: the fallback stays */
    return n;
}

static double as_double(const char *json, double fallback)
{
    double d = fallback;
    if (json != NULL && rv__json_type(rv__str(json)) == RV__JSON_NUMBER)
        (void)rv__json_double(rv__str(json), &d);
    return d;
}

const char *rv_input_json(rv_ctx *ctx, const char *pointer)
{
    struct rv__str input = rv__blob_str(ctx->view.input);
    return part(ctx, rv__str_none(input) ? rv__str("null") : input, pointer);
}

const char *rv_input_str(rv_ctx *ctx, const char *pointer)
{
    return as_str(ctx, rv_input_json(ctx, pointer));
}

int64_t rv_input_int(rv_ctx *ctx, const char *pointer, int64_t fallback)
{
    return as_int(rv_input_json(ctx, pointer), fallback);
}

double rv_input_double(rv_ctx *ctx, const char *pointer, double fallback)
{
    return as_double(rv_input_json(ctx, pointer), fallback);
}

bool rv_input_bool(rv_ctx *ctx, const char *pointer, bool fallback)
{
    const char *json = rv_input_json(ctx, pointer);
    bool value = fallback;
    if (json != NULL)
        (void)rv__json_bool(rv__str(json), &value); /* not one: the fallback stays */
    return value;
}

static const char *result_part(rv_ctx *ctx, const struct rv__entry *entry, const char *pointer)
{
    struct rv__engine_rows rows;
    struct rv__buf json;
    const char *found = NULL;
    if (entry == NULL)
        return NULL;
    rv__engine_rows_init(&rows, ctx->run);
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    if (rv__entry_result(entry, &rows.source, &json, NULL) == RV_OK)
        found = part(ctx, rv__buf_view(&json), pointer);
    rv__buf_done(&json);
    return found;
}

const char *rv_step_json(rv_ctx *ctx, const char *alias, const char *pointer)
{
    return result_part(ctx, rv__view_find(&ctx->view, rv__str(alias)), pointer);
}

const char *rv_step_str(rv_ctx *ctx, const char *alias, const char *pointer)
{
    return as_str(ctx, rv_step_json(ctx, alias, pointer));
}

int64_t rv_step_int(rv_ctx *ctx, const char *alias, const char *pointer, int64_t fallback)
{
    return as_int(rv_step_json(ctx, alias, pointer), fallback);
}

double rv_step_double(rv_ctx *ctx, const char *alias, const char *pointer, double fallback)
{
    return as_double(rv_step_json(ctx, alias, pointer), fallback);
}

const char *rv_step_state_json(rv_ctx *ctx, const char *alias, const char *pointer)
{
    const struct rv__entry *entry = rv__view_find(&ctx->view, rv__str(alias));
    if (entry == NULL)
        return NULL;
    struct rv__str state = rv__entry_state(entry);
    return part(ctx, rv__str_none(state) ? rv__str("{}") : state, pointer);
}

const char *rv_step_status(rv_ctx *ctx, const char *alias)
{
    const struct rv__entry *entry = rv__view_find(&ctx->view, rv__str(alias));
    return entry != NULL ? rv__status_name(rv__entry_status(entry)) : NULL;
}

const char *rv_last_json(rv_ctx *ctx, const char *pointer)
{
    return result_part(ctx, ctx->view.last, pointer);
}

const char *rv_last_state_json(rv_ctx *ctx, const char *pointer)
{
    struct rv__str state = { NULL, 0 };
    if (ctx->view.last != NULL)
        state = rv__entry_state(ctx->view.last);
    return part(ctx, rv__str_none(state) ? rv__str("{}") : state, pointer);
}

const char *rv_last_alias(rv_ctx *ctx)
{
    if (ctx->view.last == NULL)
        return NULL;
    struct rv__str alias = rv__entry_alias(ctx->view.last);
    return rv__arena_dup(&ctx->arena, alias.at, alias.len);
}

const char *rv_item_json(rv_ctx *ctx, const char *pointer)
{
    return part(ctx, ctx->view.item, pointer);
}

const char *rv_item_str(rv_ctx *ctx, const char *pointer)
{
    return as_str(ctx, rv_item_json(ctx, pointer));
}

int64_t rv_loop_index(rv_ctx *ctx)
{
    return ctx->view.loop_index;
}

const char *rv_error_json(rv_ctx *ctx, const char *pointer)
{
    return part(ctx, rv__blob_str(ctx->view.error), pointer);
}

void rv__ctx_put_run(rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_text(out, "{\"runId\":");
    rv__buf_json_str(out, rv__str(rv_ctx_run_id(ctx)));
    rv__buf_text(out, ",\"workflowName\":");
    rv__buf_json_str(out, rv__str(rv_ctx_workflow(ctx)));
    rv__buf_text(out, ",\"stepName\":");
    rv__buf_json_str(out, rv__str(rv_ctx_step(ctx)));
    rv__buf_text(out, ",\"path\":");
    rv__buf_json_str(out, rv__str(rv_ctx_path(ctx)));
    rv__buf_fmt(out,
                ",\"attempt\":%d,\"executionId\":\"%s\",\"idempotencyKey\":", rv_ctx_attempt(ctx),
                rv_ctx_execution_id(ctx));
    rv__buf_json_str(out, rv__str(rv_ctx_idempotency_key(ctx)));
    rv__buf_char(out, '}');
}

static void put_input(rv_ctx *ctx, struct rv__buf *out)
{
    struct rv__str input = rv__blob_str(ctx->view.input);
    rv__buf_text(out, "\"input\":");
    rv__buf_str(out, rv__str_none(input) ? rv__str("null") : input);
}

static int put_steps(rv_ctx *ctx, struct rv__engine_rows *rows, struct rv__buf *out)
{
    rv__buf_text(out, ",\"steps\":");
    return rv__view_steps(&ctx->view, &rows->source, out, NULL);
}

static void put_loop(rv_ctx *ctx, struct rv__buf *out, bool items)
{
    if (ctx->view.loop_index < 0)
        return;
    rv__buf_fmt(out, ",\"loop\":{\"index\":%lld", (long long)ctx->view.loop_index);
    if (ctx->view.items != NULL) {
        rv__buf_text(out, ",\"item\":");
        rv__buf_str(out, ctx->view.item);
    }
    if (ctx->view.items != NULL && items) {
        rv__buf_text(out, ",\"items\":");
        rv__buf_str(out, rv__blob_str(ctx->view.items));
    }
    rv__buf_char(out, '}');
}

/* What a handler is told: "error":…,"failedStep":…,"workflowState":… */
static int put_failure(rv_ctx *ctx, struct rv__engine_rows *rows, struct rv__buf *out)
{
    const struct rv__node *failed = ctx->view.failed_node;
    struct rv__str alias = failed != NULL ? failed->alias : (struct rv__str){ NULL, 0 };
    const struct rv__entry *entry = rv__view_find(&ctx->view, alias);
    struct rv__str state = rv__blob_str(ctx->view.failed_state);
    int rc = RV_OK;
    rv__buf_text(out, "\"error\":");
    rv__buf_str(out, rv__blob_str(ctx->view.error));
    rv__buf_text(out, ",\"failedStep\":{\"result\":");
    if (entry != NULL && failed->kind != NODE_STEP) /* what a supervisor had by then */
        rc = rv__entry_result(entry, &rows->source, out, NULL);
    else
        rv__buf_text(out, "null");
    rv__buf_text(out, ",\"state\":");
    rv__buf_str(out, rv__str_none(state) ? rv__str("{}") : state);
    rv__buf_text(out, ",\"alias\":");
    rv__buf_json_str(out, alias);
    rv__buf_text(out, ",\"stepName\":");
    rv__buf_json_str(out, alias);
    rv__buf_text(out, ",\"status\":\"failed\"},\"workflowState\":{");
    put_input(ctx, out);
    if (rc == RV_OK)
        rc = put_steps(ctx, rows, out);
    rv__buf_fmt(out, ",\"status\":\"%s\",\"runId\":",
                ctx->view.node->handler_of != NULL ? "running" : "failed");
    rv__buf_json_str(out, rv__str(rv_ctx_run_id(ctx)));
    rv__buf_text(out, ",\"workflowName\":");
    rv__buf_json_str(out, rv__str(rv_ctx_workflow(ctx)));
    rv__buf_char(out, '}');
    return rc;
}

int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out)
{
    struct rv__engine_rows rows;
    rv__engine_rows_init(&rows, ctx->run);
    rv__buf_char(out, '{');
    int rc = put_failure(ctx, &rows, out);
    rv__buf_char(out, '}');
    return rc;
}

const char *rv__ctx_brief_json(struct rv_ctx *ctx)
{
    struct rv__engine_rows rows;
    struct rv__buf out;
    const char *json = NULL;
    rv__engine_rows_init(&rows, ctx->run);
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_char(&out, '{');
    put_input(ctx, &out);
    rv__buf_text(&out, ",\"lastStep\":");
    int rc = rv__view_last(&ctx->view, &rows.source, &out, NULL);
    put_loop(ctx, &out, false);
    rv__buf_text(&out, ",\"run\":");
    rv__ctx_put_run(ctx, &out);
    if (rc == RV_OK && ctx->view.error != NULL) {
        rv__buf_char(&out, ',');
        rc = put_failure(ctx, &rows, &out);
    }
    rv__buf_char(&out, '}');
    if (rc == RV_OK && rv__buf_err(&out, NULL) == RV_OK)
        json = rv__arena_dup(&ctx->arena, out.text, out.len);
    rv__buf_done(&out);
    return json;
}

const char *rv_context_json(rv_ctx *ctx)
{
    struct rv__engine_rows rows;
    struct rv__buf out;
    const char *json = NULL;
    rv__engine_rows_init(&rows, ctx->run);
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_char(&out, '{');
    put_input(ctx, &out);
    int rc = put_steps(ctx, &rows, &out);
    rv__buf_text(&out, ",\"lastStep\":");
    if (rc == RV_OK)
        rc = rv__view_last(&ctx->view, &rows.source, &out, NULL);
    put_loop(ctx, &out, true);
    rv__buf_text(&out, ",\"run\":");
    rv__ctx_put_run(ctx, &out);
    if (rc == RV_OK && ctx->view.error != NULL) {
        rv__buf_char(&out, ',');
        rc = put_failure(ctx, &rows, &out);
    }
    rv__buf_char(&out, '}');
    if (rc == RV_OK && rv__buf_err(&out, NULL) == RV_OK)
        json = rv__arena_dup(&ctx->arena, out.text, out.len);
    rv__buf_done(&out);
    return json;
}

/* ------------------------------------------------------------------------------ who it is --- */

const char *rv_ctx_run_id(rv_ctx *ctx)
{
    return ctx->run->id;
}

const char *rv_ctx_workflow(rv_ctx *ctx)
{
    return ctx->run->plan->plan->body.wrap->name.at; /* texts of a plan have a NUL behind them */
}

const char *rv_ctx_step(rv_ctx *ctx)
{
    return ctx->view.node != NULL ? ctx->view.node->alias.at : "";
}

const char *rv_ctx_path(rv_ctx *ctx)
{
    struct rv__buf buf;
    if (ctx->path != NULL)
        return ctx->path;
    rv__buf_init(&buf, RV__PATH_BYTES);
    if (ctx->view.node != NULL)
        rv__node_path(ctx->view.node, ctx->view.vector, &buf);
    ctx->path = rv__arena_dup(&ctx->arena, buf.text, buf.len);
    rv__buf_done(&buf);
    return ctx->path != NULL ? ctx->path : "";
}

const char *rv_ctx_execution_id(rv_ctx *ctx)
{
    char text[48];
    int n = snprintf(text, sizeof text, "%llu.%llu", (unsigned long long)ctx->view.actor,
                     (unsigned long long)ctx->view.token);
    const char *id = rv__arena_dup(&ctx->arena, text, (size_t)n);
    return id != NULL ? id : "";
}

int rv_ctx_attempt(rv_ctx *ctx)
{
    return ctx->view.attempt > 0 ? ctx->view.attempt : 1;
}

/* The run's id and the actor's number: the same over all attempts of a step, and no other's. */
const char *rv_ctx_idempotency_key(rv_ctx *ctx)
{
    char text[RV_RUN_ID_SIZE + 24];
    if (ctx->key != NULL)
        return ctx->key;
    int n = snprintf(text, sizeof text, "%s/%llu", ctx->run->id,
                     (unsigned long long)ctx->view.actor);
    ctx->key = rv__arena_dup(&ctx->arena, text, (size_t)n);
    return ctx->key != NULL ? ctx->key : "";
}

rv_engine *rv_ctx_engine(rv_ctx *ctx)
{
    return ctx->engine;
}

bool rv_ctx_cancelled(rv_ctx *ctx)
{
    return rv_cancel_fired(ctx->token);
}

rv_cancel *rv_ctx_token(rv_ctx *ctx)
{
    return ctx->token;
}

/* ----------------------------------------------------------------------------------- logs --- */

void rv_log(rv_ctx *ctx, int level, const char *metadata_json, const char *fmt, ...)
{
    char text[4096]; /* a line; a longer one is cut */
    va_list args;
    if (++ctx->log_count > RV__LOG_LINES) /* the loop writes a marker with the count */
        return;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    struct rv__log_line *line = rv__arena_zalloc(&ctx->arena, 1, sizeof *line);
    if (line == NULL ||
        rv__str_copy(&ctx->arena, (struct rv__str){ text, len }, &line->message) < 0)
        return; /* a log line is not worth failing a step for */
    struct rv__str metadata;
    if (metadata_json != NULL &&
        rv__json_check(rv__str(metadata_json), RV__JSON_VALUE_DEPTH, &metadata, NULL) == RV_OK)
        (void)rv__str_copy(&ctx->arena, metadata, &line->metadata);
    line->level = level < RV_DEBUG ? RV_DEBUG : level > RV_ERROR ? RV_ERROR : level;
    line->at_ms = rv__wall_ms(ctx->engine->clock);
    line->next = atomic_load_explicit(&ctx->logs, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ctx->logs, &line->next, line,
                                                  memory_order_release, memory_order_relaxed))
        ; /* the loop has just taken those before */
}
