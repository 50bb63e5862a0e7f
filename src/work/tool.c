/* tool.c: a `tool` step: a call of a tool of an MCP server (SPEC §9).
 *
 * Its result is the tool's structured value (`structuredContent`); else its text, if there is only text; else the list
 * of its content. A tool that reports a failure (`isError`) fails the step, as does an error of the protocol. Begins on
 * the evaluator's thread, ends on that of the I/O loop.
 *
 * A call that asks a person something, or that the server works on as a task, ends its attempt with a note (ADR 0063).
 * The next attempt goes on from there: with the answer, which came as the signal `elicit:<path>`, or by asking for the
 * task. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    WITHIN_MS = 600000
}; /* time limit of a call, if its step sets none: as for a turn of a chat */
enum {
    GIVING_UP_MS = 60000
}; /* time limit for telling a server that a task is not needed any more */
enum { NOTE_BYTES = 1 << 20 }; /* limit of what is recorded between two attempts */
enum {
    NO_METHOD = -32601,
    BAD_PARAMS = -32602
}; /* codes of JSON-RPC: a retry would fail in the same way */

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

/* Take the name and the arguments. They are copied, because the parameters are freed after this. */
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

/* Take a person's answer. Anything else, which only --force lets through, counts as {"action":"cancel"}. */
static bool take_said(struct rv_ctx *ctx, struct rv__str said)
{
    static const char *const actions[] = { "accept", "decline", "cancel" };
    struct rv__str action;
    bool good = false;
    if (is(said, RV__JSON_OBJECT) && rv__json_get(said, "action", &action) &&
        is(action, RV__JSON_STRING))
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
            good |= rv__json_string_is(action, rv__str(actions[i]));
    return rv__str_copy(&ctx->arena, good ? said : rv__str("{\"action\":\"cancel\"}"),
                        &ctx->tool.answer) == RV_OK;
}

/* Take the note of the previous attempt, and the answer to its question. */
static bool take_note(struct rv_ctx *ctx)
{
    struct rv__stored_rows rows;
    struct rv__blob *answer = NULL;
    rv_error err;
    ctx->tool.key = rv__str(ctx->source->who(ctx, WHO_KEY));
    if (ctx->unread != RV_OK) {
        rv_fail(ctx, "%s", rv_strerror(ctx->unread));
        return false;
    }
    if (ctx->view.note == NULL)
        return true;
    ctx->tool.note = rv__blob_str(ctx->view.note);
    if (ctx->view.answer == NULL)
        return true;
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__blob_get(ctx->view.answer, &rows.source, &answer, &err);
    bool good = rc == RV_OK && take_said(ctx, rv__blob_str(answer));
    rv__blob_unref(answer);
    if (!good)
        rv_fail(ctx, "the answer to the tool's question cannot be read: %s",
                rc < 0 ? err.message : "out of memory");
    return good;
}

/* --------------------------------------------------------------------------------- the end --- */

/* End this attempt with a note. The next attempt begins immediately, or when the person has answered. */
static void leave_note(struct rv_ctx *ctx, struct rv__str note)
{
    struct rv__str ask;
    struct rv__buf name;
    bool asks = rv__json_get(note, "ask", &ask);
    if (note.len > NOTE_BYTES) {
        rv__tool_give_up(ctx->services, note);
        rv_fail(ctx, "what the tool asks for is too long to be recorded: %zu bytes of at most %d",
                note.len, NOTE_BYTES);
        (void)refuse(ctx, "tooBig");
        return;
    }
    rv__buf_init(&name, RV__PATH_BYTES + 16);
    rv__buf_text(&name, "elicit:");
    rv__buf_text(&name, ctx->source->who(ctx, WHO_PATH));
    ctx->note = rv__blob_new(note);
    if (ctx->note == NULL || name.rc != RV_OK || ctx->unread != RV_OK ||
        (asks && rv__str_copy(&ctx->arena, rv__buf_view(&name), &ctx->handle) < 0))
        ctx->given_up = true; /* no memory: the attempt is started again */
    else
        ctx->outcome = MSG_NOTE;
    rv__buf_done(&name);
}

/* Append the texts in `content`, one per line. *all: it contains nothing but texts. */
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

/* Take the tool's result: {content, structuredContent?, isError?}. */
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
    case TOOL_NOTED:
    case TOOL_ANSWERED: break;
    }
}

static void ended(struct rv__tool_call *call, const struct rv__tool_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(call, struct rv_ctx, tool);
    rv__io_ended(ctx);
    if (result->end == TOOL_ANSWERED)
        take_answer(ctx, result->json);
    else if (result->end == TOOL_NOTED)
        leave_note(ctx, result->json);
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

/* A progress report, {progress, total?, message?}, or a line for the log, {level, data}. */
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
    if (take_server(ctx, with) && take_call(ctx, with) && take_note(ctx))
        rv__io_begin(ctx, "tool", start, stop);
    else
        rv__work_finish(ctx);
}

/* ------------------------------------------------------------------- what nobody goes on with --- */

struct giving_up {
    struct rv__tool_call call;
    struct rv__blob *note;
};

static void given_up(struct rv__tool_call *call, const struct rv__tool_result *result)
{
    struct giving_up *g = RV__CONTAINER(call, struct giving_up, call);
    (void)result; /* nothing to do if the server did not understand it */
    rv__blob_unref(g->note);
    rv__free(g);
}

void rv__tool_give_up(struct rv__services *services, struct rv__str note)
{
    struct rv__str json, name;
    struct rv__arena arena;
    struct rv__tool_server *server = NULL;
    rv__arena_init(&arena, SIZE_MAX); /* for a name */
    if (rv__json_get(note, "server", &json) && rv__json_string(json, &arena, &name) == RV_OK)
        server = rv__tool_servers_find(services->tool_servers, name);
    rv__arena_done(&arena);
    struct giving_up *g = NULL;
    if (server != NULL && rv__services_io(services, NULL) == RV_OK && services->io != NULL)
        g = rv__zalloc(1, sizeof *g);
    if (g == NULL)
        return; /* no memory: the server continues for nobody */
    g->note = rv__blob_new(note);
    g->call = (struct rv__tool_call){ .server = server,
                                      .name = rv__str("-"),
                                      .note = rv__blob_str(g->note),
                                      .gives_up = true,
                                      .timeout_ms = GIVING_UP_MS,
                                      .done = given_up };
    if (g->note == NULL || rv__tool_call_start(services->io, &g->call) < 0)
        given_up(&g->call, NULL);
}
