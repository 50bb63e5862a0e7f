/* context.c: rv_ctx: what a step's function sees and says, in any process. On the step's thread; nothing here
 * touches the engine: what the function sees comes from its source. */
#include "work/context.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "work/work.h"

/* ------------------------------------------------------------------------------- running --- */

void rv__ctx_run(struct rv__work *work)
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    int rc = ctx->fn(ctx);
    rv__ctx_check_state(ctx);
    if (ctx->mistake != NULL && ctx->outcome != MSG_FAILED)
        rc = rv_stop(ctx, "%s", ctx->mistake); /* a retry would fail in the same way */
    else if (ctx->unread != RV_OK && ctx->outcome != MSG_FAILED)
        rc = rv_fail(ctx, "a value that it reads could not be read: %s", rv_strerror(ctx->unread));
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

/* Report it in its log, and to the run. */
void rv__ctx_lost(struct rv_ctx *ctx, enum rv__lost how, const rv_error *why)
{
    ctx->lost = how;
    rv__ctx_keep_log(ctx, rv__wall_ms(ctx->services->clock), RV_ERROR, rv__str(why->message),
                     (struct rv__str){ NULL, 0 });
    rv_fail(ctx, "%s", why->message);
    ctx->outcome = MSG_LOST;
}

void rv__ctx_done(struct rv_ctx *ctx)
{
    rv__save_done(ctx->save);
    rv__secrets_unref(ctx->secrets);
    rv__view_done(&ctx->view);
    rv__sight_done(&ctx->sight);
    rv__blob_unref(ctx->result);
    rv__blob_unref(ctx->state);
    rv__blob_unref(ctx->error);
    rv__blob_unref(ctx->note);
    rv__buf_done(&ctx->state_members);
    rv_cancel_free(ctx->work.token);
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

/* As much as fits: its beginning, or "…" and its end. */
static size_t cut_to(struct rv__str whole, char *text, size_t size, bool keep_end)
{
    static const char cut[] = "…";
    size_t marked = keep_end && whole.len >= size ? sizeof cut - 1 : 0;
    struct rv__str kept = { whole.at, whole.len < size ? whole.len : size - 1 };
    if (marked > 0)
        kept = rv__str_end(whole, size - 1 - marked);
    memcpy(text, cut, marked);
    memcpy(text + marked, kept.at, kept.len);
    text[marked + kept.len] = '\0';
    return marked + kept.len;
}

/* As vsnprintf(). Secrets are masked before a long text is cut, so that none is cut in two. */
static size_t format(rv_ctx *ctx, char *text, size_t size, bool keep_end, const char *fmt,
                     va_list args) RV_PRINTF(5, 0);
static size_t format(rv_ctx *ctx, char *text, size_t size, bool keep_end, const char *fmt,
                     va_list args)
{
    struct rv__str whole = RV__STR(RV__MASK_TEXT);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(text, size, fmt, args);
    size_t len = n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
    if (n >= 0 && (size_t)n >= size && (ctx->secrets != NULL || keep_end)) {
        char *all = rv__alloc((size_t)n + 1);
        if (all != NULL) {
            (void)vsnprintf(all, (size_t)n + 1, fmt, again);
            whole = (struct rv__str){ all, (size_t)n };
            if (ctx->secrets != NULL)
                whole = rv__ctx_hidden(ctx, whole, false);
        }
        if (all != NULL || ctx->secrets != NULL) /* else the beginning must do */
            len = cut_to(whole, text, size, keep_end);
        rv__free(all);
    }
    va_end(again);
    return len;
}

static int fail_with(rv_ctx *ctx, const char *fmt, va_list args) RV_PRINTF(2, 0);
static int fail_with(rv_ctx *ctx, const char *fmt, va_list args)
{
    char text[RV__ERROR_TEXT_BYTES];
    struct rv__buf buf;
    size_t len = format(ctx, text, sizeof text, true, fmt, args);
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

static int fail_as(rv_ctx *ctx, enum rv__behavior behavior, const char *fmt, va_list args)
    RV_PRINTF(3, 0);
static int fail_as(rv_ctx *ctx, enum rv__behavior behavior, const char *fmt, va_list args)
{
    int rc = fail_with(ctx, fmt, args);
    ctx->behavior = behavior;
    ctx->max_attempts = ctx->backoff = 0;
    return rc;
}

int rv_fail(rv_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_as(ctx, BEHAVIOR_PLAIN, fmt, args);
    va_end(args);
    return rc;
}

int rv_stop(rv_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_as(ctx, BEHAVIOR_STOP, fmt, args);
    va_end(args);
    return rc;
}

int rv_continue(rv_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = fail_as(ctx, BEHAVIOR_CONTINUE, fmt, args);
    va_end(args);
    return rc;
}

int rv_retry(rv_ctx *ctx, const rv_retry_opts *opts, const char *fmt, ...)
{
    static const rv_retry_opts defaults = { .size = sizeof defaults };
    va_list args;
    if (opts == NULL)
        opts = &defaults;
    if (opts->size == 0)
        return rv_stop(ctx, "rv_retry: options without a size: make them with RV_RETRY_OPTS");
    if (opts->max_attempts < 0 || opts->backoff < 0 || opts->backoff > RV_EXPONENTIAL)
        return rv_stop(ctx, "rv_retry: max_attempts %d or backoff %d cannot be", opts->max_attempts,
                       opts->backoff);
    va_start(args, fmt);
    int rc = fail_as(ctx, BEHAVIOR_RETRY, fmt, args);
    va_end(args);
    ctx->max_attempts = opts->max_attempts;
    ctx->backoff = opts->backoff;
    return rc;
}

void rv_retry_opts_init(rv_retry_opts *opts)
{
    *opts = (rv_retry_opts){ .size = sizeof *opts };
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

/* Add a member to its error. Without memory the error stays as it is. */
static void add_to_error(rv_ctx *ctx, const char *key, struct rv__str value)
{
    struct rv__str error = rv__blob_str(ctx->error);
    struct rv__buf json;
    if (rv__str_none(error))
        return;
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    rv__buf_fmt(&json, "%.*s,\"%s\":%.*s}", (int)error.len - 1, error.at, key, RV__ARG(value));
    struct rv__blob *with = rv__buf_err(&json, NULL) == RV_OK ? rv__blob_new(rv__buf_view(&json))
                                                              : NULL;
    if (with != NULL) {
        rv__blob_unref(ctx->error);
        ctx->error = with;
    }
    rv__buf_done(&json);
}

void rv__ctx_exit_code(rv_ctx *ctx, int code)
{
    char number[16];
    snprintf(number, sizeof number, "%d", code);
    add_to_error(ctx, "exitCode", rv__str(number));
}

void rv__ctx_error_code(rv_ctx *ctx, const char *word)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"", word);
    add_to_error(ctx, "code", rv__str(quoted));
}

/* Of an error that is too long, keep only its codes and the end of its message. */
static void keep_of_error(rv_ctx *ctx, struct rv__str json)
{
    static const char *const codes[] = { "code", "exitCode", "status" };
    struct rv__str value, text = { NULL, 0 };
    if (rv__json_get(json, "message", &value))
        (void)rv__json_string(value, &ctx->arena, &text); /* no text, or no memory for it */
    if (rv__str_none(text))
        text = rv__str("failed");
    rv_fail(ctx, "%.*s", RV__ARG(text));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rv__json_get(json, codes[i], &value) && value.len <= RV__PLAN_MAX_NAME)
            add_to_error(ctx, codes[i], value);
}

void rv__ctx_error(rv_ctx *ctx, struct rv__str json)
{
    if (json.len > RV__ERROR_MAX_BYTES) {
        keep_of_error(ctx, json);
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
    size_t len = format(ctx, text, sizeof text, false, fmt, args);
    va_end(args);
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

/* ---------------------------------------------------------------------- all of it at once --- */

/* Write a part, or `otherwise` if the part does not exist. */
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
    if (rc == RV_ENOTFOUND) { /* it is the first node: the result is undefined */
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
    rv__buf_text(out, ",\"attempt\":");
    rv__buf_int(out, rv_ctx_attempt(ctx));
    rv__buf_text(out, ",\"executionId\":");
    rv__buf_json_str(out, rv__str(rv_ctx_execution_id(ctx)));
    rv__buf_text(out, ",\"idempotencyKey\":");
    rv__buf_json_str(out, rv__str(rv_ctx_idempotency_key(ctx)));
    rv__buf_char(out, '}');
    if (ctx->unread == RV_ENOMEM && out->rc == RV_OK) /* for one of these texts */
        out->rc = RV_ENOMEM;
}

/* Write a member of an enclosing iteration ("item", "parent.item" …). RV_ENOTFOUND: it does not exist. */
static int put_of_parent(rv_ctx *ctx, struct rv__str what, const char *key, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    int rc = ctx->source->see(ctx, PART_PARENT, what, &room, &seen);
    if (rc == RV_OK) {
        rv__buf_fmt(out, "%s\"%s\":", out->text[out->len - 1] == '{' ? "" : ",", key);
        rv__buf_str(out, seen.json);
    }
    rv__buf_done(&room);
    return rc;
}

/* The iteration around the innermost, and those around it: {"index":…,"item":…,"items":…,"parent":{…}}.
 * `up`: how many more to go up first. RV_ENOTFOUND: there is none. */
static int put_parent(rv_ctx *ctx, size_t up, struct rv__buf *out)
{
    static const char *const members[] = { "index", "item", "items" };
    struct rv__buf what;
    size_t open = 0;
    int rc = RV_OK;
    rv__buf_init(&what, RV__PATH_BYTES);
    for (size_t i = 0; i < up; i++)
        rv__buf_text(&what, "parent.");
    while (rc == RV_OK) {
        size_t stem = what.len, before = out->len;
        rv__buf_text(out, open > 0 ? ",\"parent\":{" : "{");
        for (size_t i = 0; i < 3 && (rc == RV_OK || (i > 0 && rc == RV_ENOTFOUND)); i++) {
            rv__buf_text(&what, members[i]);
            rc = rv__buf_err(&what, NULL);
            if (rc == RV_OK && out->rc == RV_OK)
                rc = put_of_parent(ctx, rv__buf_view(&what), members[i], out);
            rv__buf_cut(&what, stem);
            if (i == 0 && rc < 0)
                break;
        }
        bool there = out->rc == RV_OK && out->text[out->len - 1] != '{';
        if (!there)
            rv__buf_cut(out, before);
        if (there && rc == RV_ENOTFOUND) /* a loop has no items */
            rc = RV_OK;
        open += there;
        if (!there || out->rc != RV_OK)
            break;
        rv__buf_text(&what, "parent.");
    }
    rv__buf_done(&what);
    for (size_t i = 0; i < open; i++)
        rv__buf_char(out, '}');
    return rc == RV_ENOTFOUND && open > 0 ? RV_OK : rc;
}

/* Write `loop`, for a step that is in an iteration. */
static int put_loop(rv_ctx *ctx, bool items, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__buf room;
    rv__buf_fmt(out, "{\"index\":%lld", (long long)ctx->loop_index);
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
    if (items && (rc == RV_OK || rc == RV_ENOTFOUND)) {
        size_t before = out->len;
        rv__buf_text(out, ",\"parent\":");
        rc = put_parent(ctx, 0, out);
        if (rc == RV_ENOTFOUND)
            rv__buf_cut(out, before);
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

/* `all`: also the parts that may be large. */
static int put_workflow_state(rv_ctx *ctx, bool all, struct rv__buf *out)
{
    rv__buf_char(out, '{');
    int rc = all ? put_input_and_steps(ctx, out) : RV_OK;
    rv__buf_fmt(out, "%s\"status\":\"%s\",\"runId\":", all ? "," : "", ctx->handles);
    rv__buf_json_str(out, rv__str(rv_ctx_run_id(ctx)));
    rv__buf_text(out, ",\"workflowName\":");
    rv__buf_json_str(out, rv__str(rv_ctx_workflow(ctx)));
    rv__buf_char(out, '}');
    return rc;
}

/* What a handler sees: "error":…,"failedStep":…,"workflowState":… */
static int put_failure(rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_text(out, "\"error\":");
    int rc = put_part(ctx, PART_ERROR, "null", out);
    rv__buf_text(out, ",\"failedStep\":");
    if (rc == RV_OK)
        rc = put_part(ctx, PART_FAILED, "null", out);
    rv__buf_text(out, ",\"workflowState\":");
    return rc == RV_OK ? put_workflow_state(ctx, true, out) : rc;
}

int rv__ctx_put_failure(struct rv_ctx *ctx, struct rv__buf *out)
{
    rv__buf_char(out, '{');
    int rc = put_failure(ctx, out);
    rv__buf_char(out, '}');
    return rc;
}

/* Write the context of the agent of a state, for its stdin. It contains what the scope of the state allows. */
static int put_agent(rv_ctx *ctx, const struct rv__state *state, struct rv__buf *out)
{
    static const enum rv__part parts[] = { PART_INPUTS, PART_PARAMETERS, PART_STATE };
    rv__buf_char(out, '{');
    int rc = put_input(ctx, out);
    for (size_t i = 0; rc == RV_OK && i < sizeof parts / sizeof *parts; i++) {
        rv__buf_fmt(out, ",\"%s\":", rv__part_names[parts[i]]);
        rc = rv__agent_see(ctx, parts[i], out);
    }
    rv__buf_text(out, ",\"run\":");
    rv__ctx_put_run(ctx, out);
    if (rc == RV_OK && state->access == ACCESS_ALL) {
        rv__buf_text(out, ",\"steps\":");
        rc = put_part(ctx, PART_STEPS, "{}", out);
        rv__buf_text(out, ",\"env\":");
        rv__buf_str(out, rv__str_none(ctx->env) ? rv__str("{}") : ctx->env);
    }
    rv__buf_char(out, '}');
    return rc == RV_OK ? rv__buf_err(out, NULL) : rc;
}

/* Write the whole context; or, if `brief`, without steps and items, which may be large. */
static int put_context(rv_ctx *ctx, bool brief, struct rv__buf *out)
{
    rv__buf_char(out, '{');
    int rc = brief ? put_input(ctx, out) : put_input_and_steps(ctx, out);
    rv__buf_text(out, ",\"lastStep\":");
    if (rc == RV_OK)
        rc = put_last(ctx, out);
    if (rc == RV_OK && ctx->loop_index >= 0) {
        rv__buf_text(out, ",\"loop\":");
        rc = put_loop(ctx, !brief, out);
    }
    rv__buf_text(out, ",\"run\":");
    rv__ctx_put_run(ctx, out);
    if (rc == RV_OK && ctx->handles != NULL) {
        rv__buf_char(out, ',');
        rc = put_failure(ctx, out);
    }
    rv__buf_char(out, '}');
    return rc == RV_OK ? rv__buf_err(out, NULL) : rc;
}

/* The context for a command, in the step's arena. NULL: no memory. */
static const char *context_json(rv_ctx *ctx, bool brief)
{
    struct rv__buf out;
    const char *json = NULL;
    const struct rv__state *agent = rv__ctx_agent(ctx);
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    int rc = agent != NULL ? put_agent(ctx, agent, &out) : put_context(ctx, brief, &out);
    if (rc == RV_OK)
        json = rv__arena_dup(&ctx->arena, out.text, out.len);
    rv__buf_done(&out);
    return json;
}

const char *rv__ctx_brief_json(struct rv_ctx *ctx)
{
    return context_json(ctx, true);
}

const char *rv__ctx_full_json(struct rv_ctx *ctx)
{
    return context_json(ctx, false);
}

/* ---------------------------------------------------------------------------------- seen --- */

enum {
    TOLD_MAX = 20
}; /* lines about wrong paths in the log of one attempt: the first are enough */

/* Is this the first error with this path? The number of reports is limited. */
static bool is_news(rv_ctx *ctx, struct rv__str path)
{
    for (const struct rv__told *told = ctx->told; told != NULL; told = told->next)
        if (rv__str_eq(told->path, path))
            return false;
    if (ctx->told_count == TOLD_MAX)
        return false;
    struct rv__told *told = rv__arena_zalloc(&ctx->arena, 1, sizeof *told);
    if (told == NULL || rv__str_copy(&ctx->arena, path, &told->path) < 0)
        return false;
    told->next = ctx->told;
    ctx->told = told;
    ctx->told_count++;
    return true;
}

void rv__ctx_note(struct rv_ctx *ctx, int level, struct rv__str path, const char *fmt, ...)
{
    char text[400];
    va_list args;
    if (!is_news(ctx, path))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rv_log(ctx, level, NULL, "%s", text);
}

/* One access to the context by a path. */
struct look {
    rv_ctx *ctx;
    struct rv__str text;        /* the path as it was given */
    struct rv__expr_step *path; /* the part of it that is still to follow, */
    size_t count;
    struct rv__str json;    /* from here */
    struct rv__buf room;    /* of what is put together, */
    struct rv__arena arena; /* and of the path */
};

static const char *const roots[] = { "input",  "steps",      "lastStep",   "loop",
                                     "run",    "error",      "failedStep", "workflowState",
                                     "inputs", "parameters", "state",      NULL };
static const char *const of_step[] = { "result", "state", "status", "error", NULL };
static const char *const of_last[] = { "result", "state", "alias", "stepName", NULL };
static const char *const of_loop[] = { "item", "index", "items", "parent", NULL };
static const char *const of_run[] = { "runId",   "workflowName", "stepName",       "path",
                                      "attempt", "executionId",  "idempotencyKey", NULL };
static const char *const of_state[] = { "name", "stage", "priority", "attempt", NULL };
static const char *const of_failed[] = { "result", "state", "alias", "stepName", "status", NULL };
static const char *const of_workflow[] = {
    "input", "steps", "status", "runId", "workflowName", NULL
};

/* The path cannot exist in any run, so the code is wrong. The step fails for it when its function has returned, so
 * that no result that was made from a missing value is recorded. */
static int is_mistake(const struct look *l, const char *fmt, ...) RV_PRINTF(2, 3);
static int is_mistake(const struct look *l, const char *fmt, ...)
{
    rv_ctx *ctx = l->ctx;
    char text[400];
    int shown = l->text.len < 100 ? (int)l->text.len : 100;
    int n = snprintf(text, sizeof text, "the path '%.*s'%s: ", shown, l->text.at,
                     shown < (int)l->text.len ? " …" : "");
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, args);
    va_end(args);
    rv__ctx_note(ctx, RV_ERROR, l->text, "%s", text);
    if (ctx->mistake == NULL)
        ctx->mistake = rv__arena_dup(&ctx->arena, text, strlen(text));
    return RV_EPARSE;
}

/* Check that the next key, if there is one, is one of these. */
static int check_key(const struct look *l, const char *const *names)
{
    struct rv__str key = l->count > 0 ? l->path[0].key : rv__str(names[0]);
    size_t count = 0;
    struct rv__buf list;
    if (rv__str_none(key))
        return is_mistake(l, "there is an index where a name should be");
    for (; names[count] != NULL; count++)
        if (rv__str_is(key, names[count]))
            return RV_OK;
    const char *meant = rv__suggest(key, names, count);
    rv__buf_init(&list, 256);
    for (size_t i = 0; i < count; i++)
        rv__buf_fmt(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    int rc = is_mistake(l, "there is no '%.*s'%s%s%s; there are %s", RV__ARG(key),
                        meant ? ": did you mean '" : "", meant ? meant : "", meant ? "'?" : "",
                        list.rc == RV_OK ? list.text : "others");
    rv__buf_done(&list);
    return rc;
}

static bool next_is(const struct look *l, const char *key)
{
    return l->count > 0 && rv__str_is(l->path[0].key, key);
}

static void go_on(struct look *l, size_t steps)
{
    l->path += steps;
    l->count -= steps;
}

static int see_part(struct look *l, enum rv__part part, struct rv__str alias, struct rv__seen *seen)
{
    *seen = (struct rv__seen){ .status = NULL };
    rv__buf_reset(&l->room);
    int rc = l->ctx->source->see(l->ctx, part, alias, &l->room, seen);
    l->json = seen->json;
    return rc;
}

/* Continue in the text that was written to `room`. */
static int take_room(struct look *l, int rc)
{
    l->json = rv__buf_view(&l->room);
    return rc < 0 ? rc : rv__buf_err(&l->room, NULL);
}

/* A text as a JSON string. */
static int take_text(struct look *l, struct rv__str text)
{
    rv__buf_reset(&l->room);
    rv__buf_json_str(&l->room, text);
    return take_room(l, RV_OK);
}

/* state, alias, status and error of a node, which are available without its result. */
static int take_about(struct look *l, enum rv__part part, struct rv__str alias)
{
    struct rv__seen seen = { .status = NULL };
    int rc = l->ctx->source->see(l->ctx, part, alias, NULL, &seen);
    if (rc < 0)
        return rc;
    if (next_is(l, "state"))
        l->json = rv__str_none(seen.state) ? rv__str("{}") : seen.state;
    else if (next_is(l, "error"))
        l->json = seen.error;
    else
        rc = take_text(l, next_is(l, "status") ? rv__str(seen.status) : seen.alias);
    go_on(l, 1);
    return rc == RV_OK && rv__str_none(l->json) ? RV_ENOTFOUND : rc;
}

static int find_step(struct look *l) /* behind .steps */
{
    const struct rv__str none = { NULL, 0 };
    struct rv__seen seen;
    if (l->count == 0)
        return see_part(l, PART_STEPS, none, &seen);
    struct rv__str alias = l->path[0].key;
    if (rv__str_none(alias))
        return is_mistake(l, "nodes are found by name, not by index");
    struct rv__expr_step *named = l->path;
    go_on(l, 1);
    int rc = check_key(l, of_step);
    if (rc < 0)
        return rc;
    if (next_is(l, "state") || next_is(l, "status") || next_is(l, "error"))
        return take_about(l, PART_STEP, alias);
    if (next_is(l, "result")) {
        go_on(l, 1);
        return see_part(l, PART_STEP, alias, &seen);
    }
    /* All that is known about a node is in the list of all nodes. */
    rc = l->ctx->source->see(l->ctx, PART_STEP, alias, NULL, &seen);
    if (rc == RV_OK)
        rc = see_part(l, PART_STEPS, none, &seen);
    l->path = named;
    l->count++;
    return rc;
}

static int find_last(struct look *l) /* behind .lastStep */
{
    struct rv__seen seen;
    const struct rv__str none = { NULL, 0 };
    int rc = check_key(l, of_last);
    if (rc < 0)
        return rc;
    if (next_is(l, "result")) {
        go_on(l, 1);
        return see_part(l, PART_LAST, none, &seen);
    }
    if (next_is(l, "stepName")) /* the same */
        l->path[0].key = rv__str("alias");
    rc = l->count > 0 ? take_about(l, PART_LAST, none) : take_room(l, put_last(l->ctx, &l->room));
    if (rc == RV_ENOTFOUND && next_is(l, "state")) { /* the first node has no previous one */
        l->json = rv__str("{}");
        go_on(l, 1);
        rc = RV_OK;
    }
    return rc;
}

static int find_parent(struct look *l) /* behind .loop, at .parent */
{
    struct rv__seen seen;
    struct rv__buf what;
    size_t up = 0;
    for (go_on(l, 1); next_is(l, "parent"); go_on(l, 1))
        up++;
    int rc = check_key(l, of_loop);
    if (rc < 0)
        return rc;
    if (l->count == 0) {
        rv__buf_reset(&l->room);
        return take_room(l, put_parent(l->ctx, up, &l->room));
    }
    rv__buf_init(&what, RV__PATH_BYTES);
    for (size_t i = 0; i < up; i++)
        rv__buf_text(&what, "parent.");
    rv__buf_str(&what, l->path[0].key);
    go_on(l, 1);
    rc = rv__buf_err(&what, NULL);
    if (rc == RV_OK)
        rc = see_part(l, PART_PARENT, rv__buf_view(&what), &seen);
    rv__buf_done(&what);
    return rc;
}

static int find_loop(struct look *l) /* behind .loop */
{
    struct rv__seen seen;
    const struct rv__str none = { NULL, 0 };
    int rc = check_key(l, of_loop);
    if (rc < 0)
        return rc;
    if (l->ctx->loop_index < 0)
        return RV_ENOTFOUND;
    if (next_is(l, "parent"))
        return find_parent(l);
    if (next_is(l, "item") || next_is(l, "items")) {
        enum rv__part part = next_is(l, "item") ? PART_ITEM : PART_ITEMS;
        go_on(l, 1);
        return see_part(l, part, none, &seen);
    }
    rv__buf_reset(&l->room);
    if (next_is(l, "index")) {
        rv__buf_int(&l->room, l->ctx->loop_index);
        go_on(l, 1);
        return take_room(l, RV_OK);
    }
    return take_room(l, put_loop(l->ctx, true, &l->room));
}

static int find_root(struct look *l);

static int find_workflow_state(struct look *l) /* behind .workflowState, in a handler */
{
    if (next_is(l, "input") || next_is(l, "steps"))
        return find_root(l);
    rv__buf_reset(&l->room);
    return take_room(l, put_workflow_state(l->ctx, l->count == 0, &l->room));
}

/* Find the text in which the path begins, and which part of the path is left to follow in it. */
static int find_root(struct look *l)
{
    struct rv__seen seen;
    const struct rv__str none = { NULL, 0 };
    int rc = check_key(l, roots);
    if (rc < 0)
        return rc;
    struct rv__str root = l->path[0].key;
    go_on(l, 1);
    if (rv__str_is(root, "input"))
        return see_part(l, PART_INPUT, none, &seen);
    if (rv__str_is(root, "steps"))
        return find_step(l);
    if (rv__str_is(root, "lastStep"))
        return find_last(l);
    if (rv__str_is(root, "loop"))
        return find_loop(l);
    if (rv__str_is(root, "run")) {
        rv__buf_reset(&l->room);
        rv__ctx_put_run(l->ctx, &l->room);
        rc = check_key(l, of_run);
        return take_room(l, rc);
    }
    if (rv__str_is(root, "inputs"))
        return see_part(l, PART_INPUTS, none, &seen);
    if (rv__str_is(root, "parameters"))
        return see_part(l, PART_PARAMETERS, none, &seen);
    if (rv__str_is(root, "state")) {
        rc = check_key(l, of_state);
        return rc < 0 ? rc : see_part(l, PART_STATE, none, &seen);
    }
    if (rv__str_is(root, "error"))
        return see_part(l, PART_ERROR, none, &seen);
    rc = check_key(l, rv__str_is(root, "failedStep") ? of_failed : of_workflow);
    if (rc < 0)
        return rc;
    if (l->ctx->handles == NULL)
        return RV_ENOTFOUND;
    return rv__str_is(root, "failedStep") ? see_part(l, PART_FAILED, none, &seen)
                                          : find_workflow_state(l);
}

/* The value may exist, but cannot be read now: the step must not continue with a default. */
static void cannot_read(const struct look *l, int code)
{
    rv_ctx *ctx = l->ctx;
    rv__ctx_note(ctx, RV_ERROR, l->text, "'%.*s' cannot be read: %s", RV__ARG(l->text),
                 rv_strerror(code));
    if (ctx->unread == RV_OK)
        ctx->unread = code;
}

/* The value that a path leads to; false: it does not exist. look_done() after use. */
static bool look_at(struct look *l, rv_ctx *ctx, const char *path)
{
    rv_error why;
    *l = (struct look){ .ctx = ctx, .text = rv__str(path != NULL ? path : "") };
    rv__arena_init(&l->arena, SIZE_MAX); /* RV__EXPR_MAX_BYTES bounds what is read */
    rv__buf_init(&l->room, RV__JSON_MAX_BYTES);
    bool all = rv__str_is(l->text, ".");
    int rc = all ? RV_OK : rv__path_read(&l->arena, l->text, &l->path, &l->count, &why);
    if (rc < 0 && rc != RV_ENOMEM)
        rc = is_mistake(l, "%s", why.message);
    if (rc == RV_OK)
        rc = all ? take_room(l, put_context(ctx, false, &l->room)) : find_root(l);
    if (rc == RV_OK)
        rc = rv__path_walk(l->path, l->count, &l->json, &why);
    if (rc == RV_EINVAL)
        rv__ctx_note(ctx, RV_WARN, l->text, "nothing is at '%s': %s", path, why.message);
    else if (rc < 0 && rc != RV_ENOTFOUND && rc != RV_EPARSE)
        cannot_read(l, rc);
    if (rc == RV_OK && ctx->records)
        rv__ctx_given_shared(ctx, l->text, l->json);
    return rc == RV_OK;
}

static void look_done(struct look *l)
{
    rv__buf_done(&l->room);
    rv__arena_done(&l->arena);
}

/* It exists, but has another type than was asked for. */
static void note_type(const struct look *l, const char *wanted)
{
    static const char *const names[] = { "null",     "true or false", "true or false", "a number",
                                         "a string", "an array",      "an object" };
    if (rv__json_type(l->json) != RV__JSON_NULL) /* null counts as absent */
        rv__ctx_note(l->ctx, RV_WARN, l->text, "'%.*s' is %s, not %s", RV__ARG(l->text),
                     names[rv__json_type(l->json)], wanted);
}

const char *rv_json(rv_ctx *ctx, const char *path)
{
    struct look l;
    const char *json = look_at(&l, ctx, path) ? rv__arena_dup(&ctx->arena, l.json.at, l.json.len)
                                              : NULL;
    look_done(&l);
    return json;
}

const char *rv_str(rv_ctx *ctx, const char *path)
{
    struct look l;
    struct rv__str text;
    const char *found = NULL;
    if (!look_at(&l, ctx, path))
        goto out;
    if (rv__json_type(l.json) != RV__JSON_STRING)
        note_type(&l, "a string");
    else if (rv__json_string(l.json, &l.arena, &text) == RV_OK)
        found = rv__arena_dup(&ctx->arena, text.at, text.len);
out:
    look_done(&l);
    return found;
}

int64_t rv_int(rv_ctx *ctx, const char *path, int64_t fallback)
{
    struct look l;
    int64_t n = fallback;
    if (look_at(&l, ctx, path) && rv__json_int(l.json, &n) < 0)
        note_type(&l, "an integer of 64 bits");
    look_done(&l);
    return n;
}

double rv_num(rv_ctx *ctx, const char *path, double fallback)
{
    struct look l;
    double d = fallback;
    if (look_at(&l, ctx, path) &&
        (rv__json_type(l.json) != RV__JSON_NUMBER || rv__json_double(l.json, &d) < 0))
        note_type(&l, "a number that a double can hold");
    look_done(&l);
    return d;
}

bool rv_bool(rv_ctx *ctx, const char *path, bool fallback)
{
    struct look l;
    bool value = fallback;
    if (look_at(&l, ctx, path) && rv__json_bool(l.json, &value) < 0)
        note_type(&l, "true or false");
    look_done(&l);
    return value;
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
    return rv_cancel_fired(ctx->work.token);
}

rv_cancel *rv_ctx_token(rv_ctx *ctx)
{
    if (ctx->source->listen != NULL)
        ctx->source->listen(ctx, true);
    return ctx->work.token;
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
    size_t len = format(ctx, text, sizeof text, false, fmt, args);
    va_end(args);
    if (metadata_json != NULL &&
        rv__json_check(rv__str(metadata_json), RV__JSON_VALUE_DEPTH, &metadata, NULL) < 0)
        metadata = (struct rv__str){ NULL, 0 };
    level = level < RV_DEBUG ? RV_DEBUG : level > RV_ERROR ? RV_ERROR : level;
    ctx->source->log(ctx, level, (struct rv__str){ text, len }, metadata);
}

static void push_line(struct rv_ctx *ctx, struct rv__log_line *line)
{
    line->next = atomic_load_explicit(&ctx->logs, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ctx->logs, &line->next, line,
                                                  memory_order_release, memory_order_relaxed))
        ; /* the loop has just taken those before */
}

void rv__ctx_keep_log(struct rv_ctx *ctx, int64_t at_ms, int level, struct rv__str message,
                      struct rv__str metadata)
{
    struct rv__log_line *line = rv__arena_zalloc(&ctx->arena, 1, sizeof *line);
    struct rv__mask *mask = rv__secrets_mask(ctx->secrets);
    message = rv__ctx_hidden(ctx, message, message.len >= RV__LOG_BYTES);
    if (mask != NULL && !rv__str_none(metadata)) {
        struct rv__buf masked;
        rv__buf_init(&masked, SIZE_MAX / 2);
        (void)rv__mask_json(mask, metadata, &masked);
        if (masked.rc != RV_OK || rv__str_copy(&ctx->arena, rv__buf_view(&masked), &metadata) < 0)
            metadata = (struct rv__str){ NULL, 0 };
        rv__buf_done(&masked);
    }
    if (line == NULL || rv__str_copy(&ctx->arena, message, &line->message) < 0)
        return; /* a log line is not worth failing a step for */
    if (!rv__str_none(metadata))
        (void)rv__str_copy(&ctx->arena, metadata, &line->metadata);
    line->level = level;
    line->at_ms = at_ms;
    push_line(ctx, line);
}

void rv__ctx_keep_stream(struct rv_ctx *ctx, int64_t at_ms, struct rv__str text)
{
    struct rv__log_line *line = rv__arena_zalloc(&ctx->arena, 1, sizeof *line);
    if (line == NULL || rv__str_copy(&ctx->arena, text, &line->message) < 0)
        return; /* the complete answer is recorded later */
    line->level = RV_INFO;
    line->at_ms = at_ms;
    line->stream = true;
    push_line(ctx, line);
}
