/* context.c: rv_ctx: what a step's function sees and says, in whatever process it is. On the step's
 * thread; nothing here touches the engine: what it sees comes from its source. */
#include "work/context.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

/* ------------------------------------------------------------------------------- running --- */

void rv__ctx_run(struct rv__work *work)
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    int rc = ctx->fn(ctx);
    rv__ctx_check_state(ctx);
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
    rv__sight_done(&ctx->sight);
    rv__blob_unref(ctx->result);
    rv__blob_unref(ctx->state);
    rv__blob_unref(ctx->error);
    rv__buf_done(&ctx->state_members);
    rv_cancel_free(ctx->token);
    rv__arena_done(&ctx->arena);
}

/* ---------------------------------------------------------------------------------- said --- */

int rv__ctx_result(rv_ctx *ctx, struct rv__str json)
{
    struct rv__str value;
    rv_error err;
    if (json.len > RV__JSON_MAX_BYTES)
        return rv_fail(ctx, "the result has %zu bytes: at most %u are allowed", json.len,
                       RV__JSON_MAX_BYTES);
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
        rc = rv__ctx_result(ctx, rv__buf_view(&buf));
    else if (rc == RV_ETOOBIG)
        rc = rv_fail(ctx,
                     "the result has more than the %u bytes that are allowed, or is nested too "
                     "deeply",
                     RV__JSON_MAX_BYTES);
    else
        rc = rv_fail(ctx, "rv_return: %s", rv_strerror(rc));
    rv__buf_done(&buf);
    return rc;
}

int rv_return_json(rv_ctx *ctx, const char *json)
{
    return rv__ctx_result(ctx, rv__str(json != NULL ? json : "null"));
}

int rv_return_bool(rv_ctx *ctx, bool value)
{
    return rv__ctx_result(ctx, rv__str(value ? "true" : "false"));
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

int rv__ctx_state(rv_ctx *ctx, struct rv__str key, struct rv__str json)
{
    struct rv__buf *state = &ctx->state_members;
    size_t before = state->len;
    if (state->len > 0)
        rv__buf_char(state, ',');
    rv__buf_json_str(state, key);
    rv__buf_char(state, ':');
    rv__buf_str(state, json);
    int rc = rv__buf_err(state, NULL);
    if (rc < 0) {
        if (rc == RV_ETOOBIG)
            ctx->state_over = before + key.len + json.len + 6; /* quotes, a comma, braces … */
        rv__buf_cut(state, before);
        state->rc = RV_OK; /* what was put before is whole */
        return rc;
    }
    if (rv__str_is(key, "skipped"))
        ctx->skipped = rv__str_is(json, "true");
    ctx->described |= rv__str_is(key, "description");
    return RV_OK;
}

void rv__ctx_check_state(rv_ctx *ctx)
{
    if (ctx->state_over > 0 && ctx->outcome != MSG_FAILED)
        rv_fail(ctx, "the state would have %zu bytes: at most %d are allowed", ctx->state_over,
                RV__STATE_MAX_BYTES);
}

/* What is too long to be kept goes; its message is told, as far as that goes. */
void rv__ctx_error(rv_ctx *ctx, struct rv__str json)
{
    struct rv__str message, text;
    if (json.len > RV__ERROR_MAX_BYTES) {
        bool said = rv__json_get(json, "message", &message) &&
                    rv__json_string(message, &ctx->arena, &text) == RV_OK;
        int len = said ? (int)(text.len < 2048 ? text.len : 2048) : 0;
        rv_fail(ctx, "%.*s… (the error has %zu bytes: at most %d are kept)", len,
                said ? text.at : "", json.len, RV__ERROR_MAX_BYTES);
        return;
    }
    rv_fail(ctx, "failed"); /* if there is no memory for more */
    struct rv__blob *error = rv__blob_new(json);
    if (error != NULL) {
        rv__blob_unref(ctx->error);
        ctx->error = error;
    }
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
        (void)rv__ctx_state(ctx, rv__str("description"), rv__buf_view(&json)); /* or without it */
    rv__buf_done(&json);
}

int rv_set_state(rv_ctx *ctx, const char *key, const char *json)
{
    struct rv__str value;
    if (key == NULL || json == NULL ||
        rv__json_check(rv__str(json), RV__JSON_VALUE_DEPTH, &value, NULL) < 0)
        return RV_EINVAL;
    return rv__ctx_state(ctx, rv__str(key), value);
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

/* One part of what it sees, and of that the part at `pointer`. */
static const char *see(rv_ctx *ctx, enum rv__part what, const char *alias, const char *pointer)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    const char *found = NULL;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    if (ctx->source->see(ctx, what, rv__str(alias), &room, &seen) == RV_OK)
        found = part(ctx, seen.json, pointer);
    rv__buf_done(&room);
    return found;
}

/* What there is to know about a node beside its result. False: it is not there. */
static bool see_node(rv_ctx *ctx, enum rv__part what, const char *alias, struct rv__seen *ret)
{
    *ret = (struct rv__seen){ .status = NULL };
    return ctx->source->see(ctx, what, rv__str(alias), NULL, ret) == RV_OK;
}

static const char *state_part(rv_ctx *ctx, struct rv__str state, const char *pointer)
{
    return part(ctx, rv__str_none(state) ? rv__str("{}") : state, pointer);
}

const char *rv_input_json(rv_ctx *ctx, const char *pointer)
{
    return see(ctx, PART_INPUT, NULL, pointer);
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

const char *rv_step_json(rv_ctx *ctx, const char *alias, const char *pointer)
{
    return see(ctx, PART_STEP, alias, pointer);
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
    struct rv__seen seen;
    return see_node(ctx, PART_STEP, alias, &seen) ? state_part(ctx, seen.state, pointer) : NULL;
}

const char *rv_step_status(rv_ctx *ctx, const char *alias)
{
    struct rv__seen seen;
    return see_node(ctx, PART_STEP, alias, &seen) ? seen.status : NULL;
}

const char *rv_last_json(rv_ctx *ctx, const char *pointer)
{
    return see(ctx, PART_LAST, NULL, pointer);
}

const char *rv_last_state_json(rv_ctx *ctx, const char *pointer)
{
    struct rv__seen seen;
    (void)see_node(ctx, PART_LAST, NULL, &seen); /* of the first: {} */
    return state_part(ctx, seen.state, pointer);
}

const char *rv_last_alias(rv_ctx *ctx)
{
    struct rv__seen seen;
    if (!see_node(ctx, PART_LAST, NULL, &seen))
        return NULL;
    return rv__arena_dup(&ctx->arena, seen.alias.at, seen.alias.len);
}

const char *rv_item_json(rv_ctx *ctx, const char *pointer)
{
    return see(ctx, PART_ITEM, NULL, pointer);
}

const char *rv_item_str(rv_ctx *ctx, const char *pointer)
{
    return as_str(ctx, rv_item_json(ctx, pointer));
}

int64_t rv_loop_index(rv_ctx *ctx)
{
    return ctx->loop_index;
}

const char *rv_error_json(rv_ctx *ctx, const char *pointer)
{
    return see(ctx, PART_ERROR, NULL, pointer);
}

/* ---------------------------------------------------------------------- all of it at once --- */

/* A part where it belongs; `otherwise` where there is none. */
static int put_part(rv_ctx *ctx, enum rv__part what, const char *otherwise, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    int rc = ctx->source->see(ctx, what, (struct rv__str){ NULL, 0 }, &room, &seen);
    if (rc == RV_OK)
        rv__buf_str(out, seen.json);
    else if (rc == RV_ENOTFOUND)
        rv__buf_text(out, otherwise);
    rv__buf_done(&room);
    return rc == RV_ENOTFOUND ? RV_OK : rc;
}

static int put_last(rv_ctx *ctx, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    int rc = ctx->source->see(ctx, PART_LAST, (struct rv__str){ NULL, 0 }, &room, &seen);
    if (rc == RV_ENOTFOUND) { /* the first: its result is undefined */
        rv__buf_text(out, "{\"state\":{},\"alias\":null,\"stepName\":null}");
        rc = RV_OK;
    } else if (rc == RV_OK) {
        rv__buf_text(out, "{\"result\":");
        rv__buf_str(out, seen.json);
        rv__buf_text(out, ",\"state\":");
        rv__buf_str(out, rv__str_none(seen.state) ? rv__str("{}") : seen.state);
        rv__buf_text(out, ",\"alias\":");
        rv__buf_json_str(out, seen.alias);
        rv__buf_text(out, ",\"stepName\":");
        rv__buf_json_str(out, seen.alias);
        rv__buf_char(out, '}');
    }
    rv__buf_done(&room);
    return rc;
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

static int put_loop(rv_ctx *ctx, bool items, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    if (ctx->loop_index < 0)
        return RV_OK;
    rv__buf_fmt(out, ",\"loop\":{\"index\":%lld", (long long)ctx->loop_index);
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    int rc = ctx->source->see(ctx, PART_ITEM, (struct rv__str){ NULL, 0 }, &room, &seen);
    if (rc == RV_OK) {
        rv__buf_text(out, ",\"item\":");
        rv__buf_str(out, seen.json);
    }
    if (rc == RV_OK && items) {
        rv__buf_text(out, ",\"items\":");
        rc = put_part(ctx, PART_ITEMS, "null", out);
    }
    rv__buf_done(&room);
    rv__buf_char(out, '}');
    return rc == RV_ENOTFOUND ? RV_OK : rc;
}

static int put_input(rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_text(out, "\"input\":");
    return put_part(ctx, PART_INPUT, "null", out);
}

static int put_input_and_steps(rv_ctx *ctx, struct rv__buf *out)
{
    int rc = put_input(ctx, out);
    rv__buf_text(out, ",\"steps\":");
    return rc < 0 ? rc : put_part(ctx, PART_STEPS, "{}", out);
}

/* What a handler is told: "error":…,"failedStep":…,"workflowState":… */
static int put_failure(rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_text(out, "\"error\":");
    int rc = put_part(ctx, PART_ERROR, "null", out);
    rv__buf_text(out, ",\"failedStep\":");
    if (rc == RV_OK)
        rc = put_part(ctx, PART_FAILED, "null", out);
    rv__buf_text(out, ",\"workflowState\":{");
    if (rc == RV_OK)
        rc = put_input_and_steps(ctx, out);
    rv__buf_fmt(out, ",\"status\":\"%s\",\"runId\":", ctx->of_step ? "running" : "failed");
    rv__buf_json_str(out, rv__str(rv_ctx_run_id(ctx)));
    rv__buf_text(out, ",\"workflowName\":");
    rv__buf_json_str(out, rv__str(rv_ctx_workflow(ctx)));
    rv__buf_char(out, '}');
    return rc;
}

int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_char(out, '{');
    int rc = put_failure(ctx, out);
    rv__buf_char(out, '}');
    return rc;
}

/* All of it; or, in brief, without what may be large: the steps, and the items of a loop. */
static const char *context_json(rv_ctx *ctx, bool brief)
{
    struct rv__buf out;
    const char *json = NULL;
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_char(&out, '{');
    int rc = brief ? put_input(ctx, &out) : put_input_and_steps(ctx, &out);
    rv__buf_text(&out, ",\"lastStep\":");
    if (rc == RV_OK)
        rc = put_last(ctx, &out);
    if (rc == RV_OK)
        rc = put_loop(ctx, !brief, &out);
    rv__buf_text(&out, ",\"run\":");
    rv__ctx_put_run(ctx, &out);
    if (rc == RV_OK && rv_error_json(ctx, NULL) != NULL) {
        rv__buf_char(&out, ',');
        rc = put_failure(ctx, &out);
    }
    rv__buf_char(&out, '}');
    if (rc == RV_OK && rv__buf_err(&out, NULL) == RV_OK)
        json = rv__arena_dup(&ctx->arena, out.text, out.len);
    rv__buf_done(&out);
    return json;
}

const char *rv__ctx_brief_json(struct rv_ctx *ctx)
{
    return context_json(ctx, true);
}

const char *rv_context_json(rv_ctx *ctx)
{
    return context_json(ctx, false);
}

/* ------------------------------------------------------------------------------ who it is --- */

const char *rv_ctx_run_id(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_RUN);
}

const char *rv_ctx_workflow(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_WORKFLOW);
}

const char *rv_ctx_step(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_STEP);
}

const char *rv_ctx_path(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_PATH);
}

const char *rv_ctx_execution_id(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_EXECUTION);
}

const char *rv_ctx_idempotency_key(rv_ctx *ctx)
{
    return ctx->source->who(ctx, WHO_KEY);
}

int rv_ctx_attempt(rv_ctx *ctx)
{
    return ctx->attempt;
}

rv_engine *rv_ctx_engine(rv_ctx *ctx)
{
    return ctx->engine;
}

bool rv_ctx_cancelled(rv_ctx *ctx)
{
    if (ctx->source->listen != NULL)
        ctx->source->listen(ctx, false);
    return rv_cancel_fired(ctx->token);
}

rv_cancel *rv_ctx_token(rv_ctx *ctx)
{
    if (ctx->source->listen != NULL)
        ctx->source->listen(ctx, true);
    return ctx->token;
}

/* ----------------------------------------------------------------------------------- logs --- */

void rv_log(rv_ctx *ctx, int level, const char *metadata_json, const char *fmt, ...)
{
    char text[RV__LOG_BYTES + 1];
    struct rv__str metadata = { NULL, 0 };
    va_list args;
    if (++ctx->log_count > RV__LOG_LINES) /* the loop writes a marker with the count */
        return;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    if (metadata_json != NULL &&
        rv__json_check(rv__str(metadata_json), RV__JSON_VALUE_DEPTH, &metadata, NULL) < 0)
        metadata = (struct rv__str){ NULL, 0 };
    level = level < RV_DEBUG ? RV_DEBUG : level > RV_ERROR ? RV_ERROR : level;
    ctx->source->log(ctx, level, (struct rv__str){ text, len }, metadata);
}

void rv__ctx_keep_log(struct rv_ctx *ctx, int64_t at_ms, int level, struct rv__str message,
                      struct rv__str metadata)
{
    struct rv__log_line *line = rv__arena_zalloc(&ctx->arena, 1, sizeof *line);
    if (line == NULL || rv__str_copy(&ctx->arena, message, &line->message) < 0)
        return; /* a log line is not worth failing a step for */
    if (!rv__str_none(metadata))
        (void)rv__str_copy(&ctx->arena, metadata, &line->metadata);
    line->level = level;
    line->at_ms = at_ms;
    line->next = atomic_load_explicit(&ctx->logs, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ctx->logs, &line->next, line,
                                                  memory_order_release, memory_order_relaxed))
        ; /* the loop has just taken those before */
}
