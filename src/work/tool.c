/* tool.c: a `tool` step: a call of a tool of an MCP server (SPEC §9).
 *
 * Its result is what the tool says as a value (`structuredContent`); else its text, if that is all there is; else
 * the list of what it said. A tool that says that it failed (`isError`) fails the step, as does an error of the
 * protocol. Begun on the evaluator's thread, ended on that of the I/O loop. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum { WITHIN_MS = 600000 }; /* of a call, where its step says nothing: as of a turn of a chat */
enum { NO_METHOD = -32601, BAD_PARAMS = -32602 }; /* codes of JSON-RPC: the same again would be */

static bool is(struct rv__str json, enum rv__json_type type)
{
    return json.len > 0 && rv__json_type(json) == type;
}

static bool refuse(struct rv_ctx *ctx, const char *code)
{
    rv__ctx_error_code(ctx, code);
    ctx->behavior = BEHAVIOR_FINAL;
    return false;
}

/* -------------------------------------------------------------------------------- the call --- */

struct rv__tool_server *rv__tool_server_of(struct rv_ctx *ctx, struct rv__str name)
{
    struct rv__tool_server *server = rv__tool_servers_find(ctx->services->tool_servers, name);
    struct rv__buf names;
    if (server != NULL)
        return server;
    rv__buf_init(&names, 400);
    rv__tool_servers_names(ctx->services->tool_servers, &names);
    rv_fail(ctx,
            "there is no MCP server '%.*s' in the configuration (rival.yaml beside the store, or "
            "--config)%s%.*s",
            (int)(name.len < 60 ? name.len : 60), name.at != NULL ? name.at : "",
            names.len > 0 ? "; there are: " : ", which has none", RV__ARG(rv__buf_view(&names)));
    rv__buf_done(&names);
    (void)refuse(ctx, "noServer");
    return NULL;
}

static bool take_server(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, name = { "", 0 };
    if (rv__json_get(with, "server", &json))
        name = rv__ctx_text(ctx, json);
    ctx->tool.server = rv__tool_server_of(ctx, name);
    return ctx->tool.server != NULL;
}

/* The parameters are gone after this: what is kept of them is copied. */
static bool take_call(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, name = { "", 0 }, arguments = RV__STR("{}");
    if (rv__json_get(with, "name", &json))
        name = rv__ctx_text(ctx, json);
    if (rv__json_get(with, "arguments", &json) && !is(json, RV__JSON_NULL))
        arguments = json;
    if (name.len == 0 || name.len > RV__TOOL_NAME) {
        rv_fail(ctx, "a tool needs a `name` of 1 to %d bytes", RV__TOOL_NAME);
        return refuse(ctx, "badInput");
    }
    if (!is(arguments, RV__JSON_OBJECT)) {
        rv_fail(ctx, "the `arguments` of a tool must be a JSON object, not %.*s",
                (int)(arguments.len < 80 ? arguments.len : 80), arguments.at);
        return refuse(ctx, "badInput");
    }
    if (rv__str_copy(&ctx->arena, name, &ctx->tool.name) < 0 ||
        rv__str_copy(&ctx->arena, arguments, &ctx->tool.arguments) < 0)
        return rv_fail(ctx, "out of memory") == 0;
    return true;
}

/* --------------------------------------------------------------------------------- the end --- */

/* The texts among what it said, a line each; *all: there is nothing else. */
static void put_texts(struct rv_ctx *ctx, struct rv__str content, struct rv__buf *out, bool *all)
{
    struct rv__json_iter it;
    struct rv__str item, type, text;
    bool first = true;
    *all = true;
    rv__json_iter_init(&it, content);
    while (rv__json_next(&it, NULL, &item)) {
        if (!is(item, RV__JSON_OBJECT) || !rv__json_get(item, "type", &type) ||
            !rv__json_string_is(type, rv__str("text")) || !rv__json_get(item, "text", &text) ||
            !is(text, RV__JSON_STRING)) {
            *all = false;
            continue;
        }
        if (!first)
            rv__buf_char(out, '\n');
        first = false;
        rv__buf_str(out, rv__ctx_text(ctx, text));
    }
}

/* Its result: {content, structuredContent?, isError?}. */
static void take_answer(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__str content = RV__STR("[]"), value, failed;
    struct rv__buf text, result;
    bool all;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__buf_init(&result, RV__JSON_MAX_BYTES);
    if (rv__json_get(json, "content", &value) && is(value, RV__JSON_ARRAY))
        content = value;
    put_texts(ctx, content, &text, &all);
    if (rv__json_get(json, "isError", &failed) && is(failed, RV__JSON_TRUE)) {
        rv_fail(ctx, "%.*s",
                RV__ARG(text.len > 0 ? rv__buf_view(&text)
                                     : (struct rv__str)RV__STR("the tool failed")));
        rv__ctx_error_code(ctx, "tool");
    } else {
        if (rv__json_get(json, "structuredContent", &value) && !is(value, RV__JSON_NULL))
            rv__buf_str(&result, value);
        else if (all)
            rv__buf_json_str(&result, rv__buf_view(&text));
        else
            rv__buf_str(&result, content);
        if (text.rc != RV_OK || result.rc != RV_OK ||
            rv__ctx_result(ctx, rv__buf_view(&result)) < 0)
            rv_fail(ctx, "what the tool said is too long, or there is no memory for it");
        else
            ctx->outcome = MSG_DONE;
    }
    rv__buf_done(&text);
    rv__buf_done(&result);
}

void rv__tool_failed(struct rv_ctx *ctx, const struct rv__tool_result *result)
{
    rv_fail(ctx, "%s", result->error);
    switch (result->end) {
    case TOOL_REFUSED:
        rv__ctx_error_code(ctx, "refused");
        if (result->code == NO_METHOD || result->code == BAD_PARAMS)
            ctx->behavior = BEHAVIOR_FINAL; /* it would be refused again */
        break;
    case TOOL_DOWN: rv__ctx_error_code(ctx, "serverDown"); break;
    case TOOL_LOST: rv__ctx_error_code(ctx, "lost"); break;
    case TOOL_LATE: rv__ctx_error_code(ctx, "timeout"); break;
    case TOOL_CLOSED: ctx->given_up = true; break;
    case TOOL_CANCELLED: rv__ctx_error_code(ctx, "cancelled"); break;
    case TOOL_ANSWERED: break;
    }
}

static void ended(struct rv__tool_call *call, const struct rv__tool_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(call, struct rv_ctx, tool);
    rv__io_ended(ctx);
    if (result->end == TOOL_ANSWERED)
        take_answer(ctx, result->json);
    else
        rv__tool_failed(ctx, result);
    rv__work_finish(ctx);
}

static void begun(struct rv__tool_call *call)
{
    struct rv_ctx *ctx = RV__CONTAINER(call, struct rv_ctx, tool);
    ctx->work.begun(&ctx->work);
}

static bool get(struct rv__str params, const char *key, enum rv__json_type type,
                struct rv__str *ret)
{
    return is(params, RV__JSON_OBJECT) && rv__json_get(params, key, ret) && is(*ret, type);
}

/* Its progress, {progress, total?, message?}, or a line of its log, {level, data}. */
static void said(struct rv__tool_call *call, struct rv__str params)
{
    struct rv_ctx *ctx = RV__CONTAINER(call, struct rv_ctx, tool);
    struct rv__str done, total, text, level;
    if (get(params, "progress", RV__JSON_NUMBER, &done)) {
        bool of = get(params, "total", RV__JSON_NUMBER, &total);
        bool says = get(params, "message", RV__JSON_STRING, &text);
        rv_log_info(ctx, "progress %.*s%s%.*s%s%.*s", RV__ARG(done), of ? " of " : "",
                    of ? (int)total.len : 0, of ? total.at : "", says ? ": " : "",
                    says ? (int)rv__ctx_text(ctx, text).len : 0,
                    says ? rv__ctx_text(ctx, text).at : "");
    } else if (is(params, RV__JSON_OBJECT) && rv__json_get(params, "data", &text)) {
        bool bad = get(params, "level", RV__JSON_STRING, &level) &&
                   (rv__json_string_is(level, rv__str("warning")) ||
                    rv__json_string_is(level, rv__str("error")) ||
                    rv__json_string_is(level, rv__str("critical")) ||
                    rv__json_string_is(level, rv__str("alert")) ||
                    rv__json_string_is(level, rv__str("emergency")));
        text = rv__ctx_text(ctx, text);
        if (bad)
            rv_log_warn(ctx, "%.*s", RV__ARG(text));
        else
            rv_log_info(ctx, "%.*s", RV__ARG(text));
    }
}

static int start(struct rv_ctx *ctx)
{
    return rv__tool_call_start(ctx->services->io, &ctx->tool);
}

static void stop(struct rv_ctx *ctx)
{
    rv__tool_call_cancel(ctx->services->io, &ctx->tool);
}

static bool begin_own(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str own, arguments = RV__STR("{}");
    if (!rv__json_get(with, "own", &own))
        return false;
    enum rv__own_tool tool = rv__own_tool_find(rv__ctx_text(ctx, own));
    (void)rv__json_get(with, "arguments", &arguments);
    if (tool < OWN_TOOLS) {
        rv__own_tool_run(ctx, tool, arguments);
    } else {
        rv_fail(ctx, "there is no such tool");
        (void)refuse(ctx, "badInput");
    }
    rv__work_finish(ctx);
    return true;
}

void rv__tool_begin(struct rv_ctx *ctx, struct rv__str with)
{
    static const char *const told[] = { "server", "name", "own", "skill", "arguments" };
    struct rv__str value;
    ctx->tool = (struct rv__tool_call){ .begun = begun, .said = said, .done = ended };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (rv__json_get(with, told[i], &value))
            rv__ctx_given(ctx, told[i], value);
    if (begin_own(ctx, with) || rv__skill_begin(ctx, with))
        return;
    ctx->tool.timeout_ms = ctx->timeout_ms > 0 ? 0 : WITHIN_MS;
    if (take_server(ctx, with) && take_call(ctx, with))
        rv__io_begin(ctx, "tool", start, stop);
    else
        rv__work_finish(ctx);
}
