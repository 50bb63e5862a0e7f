/* offers.c: the tools that a chat offers to its model: workflows from the plan, and tools of MCP servers, which are
 * asked for their lists before the turn begins. The lists are cached (agent/server.c). */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum { MOST_NAME = 64 }; /* the longest name of a tool that models accept */

/* In the attempt's arena. */
struct rv__offers {
    struct rv__str with; /* the turn's parameters */
    size_t count, next;  /* servers; those with an index below `next` have answered */
    struct {
        struct rv__tool_server *server;
        struct rv__str tools; /* a JSON array */
    } at[];
};

static const struct rv__node *chat_of(const struct rv_ctx *ctx)
{
    return ctx->view.node->body->owner;
}

/* The parameters of a tool of an MCP server. "none": it is not such a tool. */
static struct rv__str with_of(const struct rv__body *body)
{
    const struct rv__node *called = rv__tool_called(body);
    bool is = called->kind == NODE_STEP && called->step.kind == STEP_TOOL;
    return is && !rv__str_none(called->step.with) ? called->step.with : (struct rv__str){ NULL, 0 };
}

/* Whether it is a tool of a server. Other tools need no list. */
static bool has_server(struct rv__str with)
{
    struct rv__str server;
    return !rv__str_none(with) && rv__json_get(with, "server", &server);
}

static struct rv__str text_of(struct rv_ctx *ctx, struct rv__str with, const char *key)
{
    struct rv__str json;
    return rv__json_get(with, key, &json) ? rv__ctx_text(ctx, json) : (struct rv__str){ "", 0 };
}

/* --------------------------------------------------------------------------------- asking --- */

static void ask_next(struct rv_ctx *ctx);

/* A conversation is read from the store, so not on the I/O loop's thread. */
struct again {
    struct rv__later later;
    struct rv_ctx *ctx;
};

static void begin_again(struct rv__later *later)
{
    struct rv_ctx *ctx = RV__CONTAINER(later, struct again, later)->ctx;
    rv__chat_begin(ctx, ctx->offers->with);
}

static void began_again(struct rv__later *later)
{
    rv__free(RV__CONTAINER(later, struct again, later));
}

static void listed(struct rv__tool_call *call, const struct rv__tool_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(call, struct rv_ctx, tool);
    struct rv__offers *offers = ctx->offers;
    rv__io_ended(ctx);
    if (result->end != TOOL_ANSWERED) {
        rv__tool_failed(ctx, result);
        rv__work_finish(ctx);
    } else if (rv__str_copy(&ctx->arena, result->json, &offers->at[offers->next++].tools) < 0) {
        rv_fail(ctx, "out of memory");
        rv__work_finish(ctx);
    } else {
        ask_next(ctx);
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

static void ask_next(struct rv_ctx *ctx)
{
    struct rv__offers *offers = ctx->offers;
    if (offers->next < offers->count) {
        ctx->tool = (struct rv__tool_call){ .server = offers->at[offers->next].server,
                                            .done = listed };
        rv__io_begin(ctx, "chat", start, stop);
        return;
    }
    struct again *again = rv__zalloc(1, sizeof *again);
    if (again == NULL) {
        rv_fail(ctx, "out of memory");
        rv__work_finish(ctx);
        return;
    }
    *again = (struct again){ .later = { .run = begin_again, .done = began_again }, .ctx = ctx };
    rv__io_later(ctx->services->io, &again->later);
}

/* Find the servers of its tools, each once. False: one is not in the configuration, and the turn has failed. */
static bool find_servers(struct rv_ctx *ctx, struct rv__offers *offers)
{
    const struct rv__node *chat = chat_of(ctx);
    for (uint32_t i = 1; i < chat->body_count; i++) {
        struct rv__str with = with_of(&chat->bodies[i]);
        if (!has_server(with))
            continue;
        struct rv__tool_server *server = rv__tool_server_of(ctx, text_of(ctx, with, "server"));
        size_t at = 0;
        if (server == NULL)
            return false;
        while (at < offers->count && offers->at[at].server != server)
            at++;
        if (at == offers->count)
            offers->at[offers->count++].server = server;
    }
    return true;
}

bool rv__offers_ready(struct rv_ctx *ctx, struct rv__str with)
{
    const struct rv__node *chat = chat_of(ctx);
    struct rv__offers *offers = ctx->offers;
    if (offers != NULL || chat->body_count < 2 || ctx->services->io == NULL)
        return true;
    offers = rv__arena_zalloc(&ctx->arena, 1,
                              sizeof *offers + chat->body_count * sizeof offers->at[0]);
    if (offers == NULL || rv__str_copy(&ctx->arena, with, &offers->with) < 0)
        rv_fail(ctx, "out of memory");
    else if (find_servers(ctx, offers)) {
        ctx->offers = offers;
        if (offers->count == 0)
            return true;
        ask_next(ctx);
        return false;
    }
    rv__work_finish(ctx);
    return false;
}

/* -------------------------------------------------------------------------------- telling --- */

struct telling {
    struct rv_ctx *ctx;
    struct rv__buf *out;
    int count;
};

/* `description` is JSON. */
static void put(struct telling *t, struct rv__str before, struct rv__str name,
                struct rv__str description, struct rv__str schema)
{
    if (t->count == RV__MAX_TOOLS)
        return; /* models would refuse it */
    rv__buf_text(t->out, t->count++ == 0 ? "{\"name\":\"" : ",{\"name\":\"");
    rv__buf_str(t->out, before); /* both are names, so nothing must be escaped */
    rv__buf_text(t->out, before.len > 0 ? "_" : "");
    rv__buf_str(t->out, name);
    rv__buf_char(t->out, '"');
    if (!rv__str_none(description)) {
        rv__buf_text(t->out, ",\"description\":");
        rv__buf_str(t->out, description);
    }
    rv__buf_text(t->out, ",\"schema\":");
    rv__buf_str(t->out, rv__str_none(schema) ? rv__str("{\"type\":\"object\"}") : schema);
    rv__buf_char(t->out, '}');
}

static void put_workflow(struct telling *t, const struct rv__body *body)
{
    const struct rv__node *called = rv__tool_called(body);
    const struct rv__wrap *wrap = called->kind == NODE_WORKFLOW ? called->bodies[0].wrap : NULL;
    const struct rv__str none = { NULL, 0 };
    struct rv__buf description;
    rv__buf_init(&description, RV__AGENT_REQUEST_BYTES);
    if (wrap != NULL && !rv__str_none(wrap->description))
        rv__buf_json_str(&description, wrap->description);
    put(t, none, body->alias, description.len > 0 ? rv__buf_view(&description) : none,
        wrap != NULL ? wrap->schema : none);
    if (description.rc != RV_OK)
        t->out->rc = description.rc;
    rv__buf_done(&description);
}

static bool is_name(struct rv__str name, size_t room)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return name.len > 0 && name.len <= room;
}

static struct rv__str member(struct rv__str object, const char *key, enum rv__json_type type)
{
    struct rv__str value;
    bool good = rv__json_get(object, key, &value) && rv__json_type(value) == type;
    return good ? value : (struct rv__str){ NULL, 0 };
}

/* Write one tool of a server, or all of them. */
static void put_tools(struct telling *t, const struct rv__body *body, struct rv__str with)
{
    const struct rv__offers *offers = t->ctx->offers;
    struct rv__tool_server *server = rv__tool_servers_find(t->ctx->services->tool_servers,
                                                           text_of(t->ctx, with, "server"));
    struct rv__str wanted = text_of(t->ctx, with, "name"), tool, none = { NULL, 0 };
    struct rv__json_iter it;
    bool all = rv__tool_is_all(body), told = false;
    size_t at = 0;
    while (offers != NULL && at < offers->next && offers->at[at].server != server)
        at++;
    if (offers != NULL && at < offers->next) {
        rv__json_iter_init(&it, offers->at[at].tools);
        while (rv__json_next(&it, NULL, &tool)) {
            struct rv__str name = member(tool, "name", RV__JSON_STRING);
            if (rv__str_none(name) || (!all && !rv__json_string_is(name, wanted)))
                continue;
            name = rv__ctx_text(t->ctx, name);
            if (all && !is_name(name, MOST_NAME - 1 - body->alias.len))
                continue; /* no model could call it; if the file lists this tool by itself, it can have a shorter name */
            put(t, all ? body->alias : none, all ? name : body->alias,
                member(tool, "description", RV__JSON_STRING),
                member(tool, "inputSchema", RV__JSON_OBJECT));
            told = true;
        }
    }
    if (!all && !told)
        put(t, none, body->alias, none, none); /* the server will report what is wrong */
}

static void put_own(struct telling *t, const struct rv__body *body)
{
    struct rv__str description, schema, none = { NULL, 0 };
    if (rv__own_tool_offer(t->ctx, rv__tool_own(body), &description, &schema))
        put(t, none, body->alias, description, schema);
}

static void put_skill(struct telling *t, const struct rv__body *body, struct rv__str with)
{
    struct rv__str description, schema, none = { NULL, 0 };
    rv__skill_offer(t->ctx, with, &description, &schema);
    put(t, none, body->alias, description, schema);
}

void rv__offers_write(struct rv_ctx *ctx, struct rv__buf *out)
{
    const struct rv__node *chat = chat_of(ctx);
    struct telling t = { .ctx = ctx, .out = out };
    rv__buf_char(out, '[');
    for (uint32_t i = 1; i < chat->body_count; i++) {
        struct rv__str with = with_of(&chat->bodies[i]);
        struct rv__str skill;
        if (rv__str_none(with))
            put_workflow(&t, &chat->bodies[i]);
        else if (rv__tool_own(&chat->bodies[i]) != OWN_TOOLS)
            put_own(&t, &chat->bodies[i]);
        else if (rv__json_get(with, "skill", &skill))
            put_skill(&t, &chat->bodies[i], with);
        else
            put_tools(&t, &chat->bodies[i], with);
    }
    rv__buf_char(out, ']');
}
