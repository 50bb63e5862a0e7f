/* source.c: what a step sees, in the engine's process.
 *
 * It was captured when the step was dispatched (rv__view); finished iterations are read through a reader of the store.
 * Nothing here touches what the loop owns. Thread: the step's, or the one that talks to its host or worker. */
#include <stdio.h>

#include "base/error.h"
#include "work/work.h"

/* The state of a node; the text is in the entry, or in the step's arena. */
static int see_state(rv_ctx *ctx, const struct rv__entry *entry, struct rv__row_source *rows,
                     struct rv__str *ret)
{
    struct rv__buf json;
    if (rv__entry_state_here(entry, ret))
        return RV_OK;
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    int rc = rv__entry_state(entry, rows, &json, NULL);
    if (rc == RV_OK)
        rc = rv__str_copy(&ctx->arena, rv__buf_view(&json), ret);
    rv__buf_done(&json);
    return rc;
}

static int see_entry(rv_ctx *ctx, const struct rv__entry *entry, struct rv__buf *room,
                     struct rv__seen *ret)
{
    struct rv__stored_rows rows;
    if (entry == NULL)
        return RV_ENOTFOUND;
    *ret = (struct rv__seen){ .alias = rv__entry_alias(entry),
                              .error = rv__blob_str(rv__entry_error(entry)),
                              .status = rv__status_name(rv__entry_status(entry)) };
    rv__stored_rows_of(&rows, ctx);
    int rc = see_state(ctx, entry, &rows.source, &ret->state);
    if (room == NULL || rc < 0)
        return rc;
    rc = rv__entry_result(entry, &rows.source, room, NULL);
    if (rc == RV_OK)
        rc = rv__buf_err(room, NULL);
    if (rc == RV_OK)
        ret->json = rv__buf_view(room);
    return rc;
}

static int see_steps(rv_ctx *ctx, struct rv__buf *room)
{
    struct rv__stored_rows rows;
    rv__stored_rows_of(&rows, ctx);
    return rv__view_steps(&ctx->view, &rows.source, room, NULL);
}

/* The failed node that a handler handles. */
static int see_failed(rv_ctx *ctx, struct rv__buf *room)
{
    struct rv__stored_rows rows;
    const struct rv__node *failed = ctx->view.failed_node;
    struct rv__str alias = failed != NULL ? failed->alias : (struct rv__str){ NULL, 0 };
    const struct rv__entry *entry = failed != NULL ? rv__view_find(&ctx->view, alias) : NULL;
    struct rv__blob *state = NULL;
    if (failed == NULL) { /* in `finally`, if nothing has failed */
        rv__buf_text(room, "null");
        return RV_OK;
    }
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__blob_get(ctx->view.failed_state, &rows.source, &state, NULL);
    if (rc < 0)
        return rc;
    rv__buf_text(room, "{\"result\":");
    if (entry != NULL && failed->kind != NODE_STEP) /* what a supervisor had when it failed */
        rc = rv__entry_result(entry, &rows.source, room, NULL);
    else
        rv__buf_text(room, "null");
    rv__buf_text(room, ",\"state\":");
    rv__buf_str(room, state == NULL ? rv__str("{}") : rv__blob_str(state));
    rv__blob_unref(state);
    rv__buf_text(room, ",\"alias\":");
    rv__buf_json_str(room, alias);
    rv__buf_text(room, ",\"stepName\":");
    rv__buf_json_str(room, alias);
    rv__buf_text(room, ",\"status\":\"failed\"}");
    return rc;
}

/* A text that may be long: from memory, or read into `room`. Without `room`, RV_ETOOBIG if it is not in memory. */
static int see_blob(rv_ctx *ctx, struct rv__blob *blob, struct rv__buf *room, struct rv__seen *ret)
{
    struct rv__stored_rows rows;
    struct rv__blob *text = NULL;
    if (!rv__blob_is_reference(blob)) {
        ret->json = rv__blob_str(blob);
        return RV_OK;
    }
    if (room == NULL)
        return RV_ETOOBIG;
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__blob_get(blob, &rows.source, &text, NULL);
    if (rc < 0)
        return rc;
    rv__buf_str(room, rv__blob_str(text));
    rv__blob_unref(text);
    ret->json = rv__buf_view(room);
    return rv__buf_err(room, NULL);
}

static int see_item(rv_ctx *ctx, const struct rv__view *view, struct rv__buf *room,
                    struct rv__seen *ret)
{
    struct rv__stored_rows rows;
    struct rv__blob *hold = NULL;
    struct rv__str item = { NULL, 0 };
    if (view->pieces != NULL && room == NULL)
        return RV_ETOOBIG;
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__view_item(view, &rows.source, &hold, &item, NULL);
    if (rc == RV_OK && hold != NULL) {
        rv__buf_str(room, item);
        rc = rv__buf_err(room, NULL);
        item = rv__buf_view(room);
    }
    rv__blob_unref(hold);
    ret->json = item;
    return rc;
}

static int see_items(rv_ctx *ctx, const struct rv__view *view, struct rv__buf *room,
                     struct rv__seen *ret)
{
    struct rv__stored_rows rows;
    if (view->pieces == NULL)
        return see_blob(ctx, view->items, room, ret);
    if (room == NULL)
        return RV_ETOOBIG;
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__view_items(view, &rows.source, room, NULL);
    ret->json = rv__buf_view(room);
    return rc;
}

/* `what`: "item", "index" or "items" of the iteration that encloses the innermost one; with "parent." in front, of
 * the next enclosing one. */
static int see_parent(rv_ctx *ctx, struct rv__str what, struct rv__buf *room, struct rv__seen *ret)
{
    static const struct rv__str up = RV__STR("parent.");
    const struct rv__view *view = ctx->view.parent;
    for (; view != NULL && what.len > up.len && memcmp(what.at, up.at, up.len) == 0;
         view = view->parent)
        what = (struct rv__str){ what.at + up.len, what.len - up.len };
    if (view == NULL)
        return RV_ENOTFOUND;
    if (rv__str_is(what, "item"))
        return see_item(ctx, view, room, ret);
    if (rv__str_is(what, "items"))
        return see_items(ctx, view, room, ret);
    if (!rv__str_is(what, "index"))
        return RV_ENOTFOUND;
    if (room == NULL)
        return RV_ETOOBIG;
    rv__buf_int(room, view->loop_index);
    ret->json = rv__buf_view(room);
    return rv__buf_err(room, NULL);
}

/* The step asked for a node that it does not see. If the node could exist, for example in a branch that was not
 * taken, that is no mistake. If it never can, the log says so. */
static void note_unseen(rv_ctx *ctx, struct rv__str alias)
{
    char why[RV__PLAN_MAX_NAME + 200];
    bool own_body = ctx->eval == EVAL_WHILE || ctx->eval == EVAL_UNTIL;
    if (ctx->view.node != NULL &&
        !rv__define_sees(ctx->plan, ctx->view.node, own_body, alias, why, sizeof why))
        rv__ctx_note(ctx, RV_ERROR, alias, "%s", why);
}

static int engine_see(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
                      struct rv__seen *ret)
{
    int rc = RV_OK;
    switch (part) {
    case PART_INPUT:
        rc = see_blob(ctx, ctx->view.input, room, ret);
        if (rc == RV_OK && rv__str_none(ret->json))
            ret->json = rv__str("null");
        return rc;
    case PART_STEP:
        rv__access_saw_steps(ctx, alias);
        rc = see_entry(ctx, rv__view_find(&ctx->view, alias), room, ret);
        if (rc == RV_ENOTFOUND)
            note_unseen(ctx, alias);
        return rc;
    case PART_LAST:
        if (ctx->view.last != NULL)
            rv__access_saw_steps(ctx, rv__entry_alias(ctx->view.last));
        return see_entry(ctx, ctx->view.last, room, ret);
    case PART_ITEM:
        rc = see_item(ctx, &ctx->view, room, ret);
        if (rc < 0)
            return rc;
        break;
    case PART_ITEMS:
        rc = see_items(ctx, &ctx->view, room, ret);
        if (rc < 0)
            return rc;
        break;
    case PART_PARENT:
        rc = see_parent(ctx, alias, room, ret);
        if (rc < 0)
            return rc;
        break;
    case PART_ERROR: ret->json = rv__blob_str(ctx->view.error); break;
    case PART_STEPS:
    case PART_FAILED:
        if (part == PART_STEPS)
            rv__access_saw_steps(ctx, (struct rv__str){ NULL, 0 });
        rc = part == PART_STEPS ? see_steps(ctx, room) : see_failed(ctx, room);
        if (rc == RV_OK)
            rc = rv__buf_err(room, NULL);
        ret->json = rv__buf_view(room);
        return rc;
    case PART_INPUTS:
    case PART_PARAMETERS:
    case PART_STATE:
        if (room == NULL)
            return RV_ETOOBIG;
        rc = rv__agent_see(ctx, part, room);
        ret->json = rv__buf_view(room);
        return rc;
    case PARTS: break;
    }
    return rv__str_none(ret->json) ? RV_ENOTFOUND : RV_OK;
}

/* The text; if there was no memory for it (NULL), "", and the attempt fails. */
static const char *text_or_fail(rv_ctx *ctx, const char *text)
{
    if (text == NULL && ctx->unread == RV_OK)
        ctx->unread = RV_ENOMEM;
    return text != NULL ? text : "";
}

static const char *path_of(rv_ctx *ctx)
{
    struct rv__buf buf;
    if (ctx->path != NULL)
        return ctx->path;
    rv__buf_init(&buf, RV__PATH_BYTES);
    if (ctx->view.node != NULL)
        rv__node_path(ctx->view.node, ctx->view.vector, &buf);
    if (rv__buf_err(&buf, NULL) == RV_OK)
        ctx->path = rv__arena_dup(&ctx->arena, buf.text, buf.len);
    rv__buf_done(&buf);
    return text_or_fail(ctx, ctx->path);
}

/* The run's id and nonce, and the actor's number. It is the same in all attempts of a step. No other step has it, in
 * any store, nor has a later run with the same id. */
static const char *key_of(rv_ctx *ctx)
{
    char text[RV_RUN_ID_SIZE + 40];
    if (ctx->key != NULL)
        return ctx->key;
    int n = snprintf(text, sizeof text, "%s/%016llx/%llu", ctx->run_id,
                     (unsigned long long)ctx->view.nonce, (unsigned long long)ctx->view.actor);
    ctx->key = rv__arena_dup(&ctx->arena, text, (size_t)n);
    return text_or_fail(ctx, ctx->key);
}

static const char *execution_of(rv_ctx *ctx)
{
    char text[48];
    int n = snprintf(text, sizeof text, "%llu.%llu", (unsigned long long)ctx->view.actor,
                     (unsigned long long)ctx->view.token);
    return text_or_fail(ctx, rv__arena_dup(&ctx->arena, text, (size_t)n));
}

static const char *engine_who(rv_ctx *ctx, enum rv__who who)
{
    switch (who) {
    case WHO_RUN: return ctx->run_id;
    case WHO_WORKFLOW: return ctx->plan->body.wrap->name.at; /* texts of a plan end in NUL */
    case WHO_STEP: return ctx->view.node != NULL ? ctx->view.node->alias.at : "";
    case WHO_PATH: return path_of(ctx);
    case WHO_EXECUTION: return execution_of(ctx);
    case WHO_KEY: return key_of(ctx);
    }
    return "";
}

static void engine_log(rv_ctx *ctx, int level, struct rv__str message, struct rv__str metadata)
{
    rv__ctx_keep_log(ctx, rv__wall_ms(ctx->services->clock), level, message, metadata);
}

const struct rv__source rv__engine_source = { .see = engine_see,
                                              .who = engine_who,
                                              .log = engine_log };
