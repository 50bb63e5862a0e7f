/* sight.c: the roots of expressions (SPEC: input, steps, lastStep, loop, run, env) out of a view. On the
 * evaluator's thread; the ctx is ours while it is there, its arena too. */
#include "work/sight.h"

#include <string.h>

#include "base/json.h"
#include "work/work.h"

static const char *const quoted[STATUSES] = {
    [STATUS_PENDING] = "\"pending\"",
    [STATUS_RUNNING] = "\"running\"",
    [STATUS_WAITING_RETRY] = "\"waiting_retry\"",
    [STATUS_COMPLETED] = "\"completed\"",
    [STATUS_FAILED] = "\"failed\"",
    [STATUS_SKIPPED] = "\"skipped\"",
    [STATUS_CANCELLED] = "\"cancelled\"",
};

static int is_text(struct rv__str json, struct rv__scope_text *ret)
{
    *ret = (struct rv__scope_text){ .json = json };
    return RV_OK;
}

/* What a text that is not at hand is made from: the second number of its key. A reference has none: it
 * is known by its blob. */
enum { MADE_RESULT = 1, MADE_STATE, MADE_ITEMS };

static int is_blob(struct rv__blob *blob, struct rv__scope_text *ret)
{
    if (blob == NULL)
        return is_text(rv__str("null"), ret);
    if (rv__blob_is_reference(blob)) {
        *ret = (struct rv__scope_text){ .blob = blob };
        return RV_OK;
    }
    *ret = (struct rv__scope_text){ .json = rv__blob_str(blob), .blob = blob };
    return RV_OK;
}

/* An assembled result has no text yet: it is made when the evaluator has not kept its value. */
static int is_result(const struct rv__entry *entry, struct rv__scope_text *ret)
{
    if (!rv__entry_assembled(entry))
        return is_blob(rv__entry_blob(entry), ret);
    *ret = (struct rv__scope_text){ .key = { rv__entry_serial(entry), MADE_RESULT },
                                    .origin = entry };
    return RV_OK;
}

static int is_state(const struct rv__entry *entry, struct rv__scope_text *ret)
{
    struct rv__str state;
    if (rv__entry_state_here(entry, &state))
        return is_text(rv__str_none(state) ? rv__str("{}") : state, ret);
    *ret = (struct rv__scope_text){ .key = { rv__entry_serial(entry), MADE_STATE },
                                    .origin = entry };
    return RV_OK;
}

static int is_quoted(struct rv_ctx *ctx, struct rv__str text, struct rv__scope_text *ret)
{
    struct rv__buf json;
    struct rv__str copy;
    rv__buf_init(&json, (size_t)8 * RV__PLAN_MAX_NAME);
    rv__buf_json_str(&json, text);
    int rc = rv__str_copy(&ctx->arena, rv__buf_view(&json), &copy);
    rv__buf_done(&json);
    return rc < 0 ? rc : is_text(copy, ret);
}

static int find_step(struct rv_ctx *ctx, struct rv__str alias, struct rv__str field,
                     struct rv__scope_text *ret)
{
    const struct rv__entry *entry = rv__view_find(&ctx->view, alias);
    if (entry == NULL)
        return RV_ENOTFOUND;
    if (rv__str_is(field, "result"))
        return is_result(entry, ret);
    if (rv__str_is(field, "state"))
        return is_state(entry, ret);
    return is_text(rv__str(quoted[rv__entry_status(entry)]), ret);
}

static int find_last(struct rv_ctx *ctx, struct rv__str name, struct rv__scope_text *ret)
{
    const struct rv__entry *last = ctx->view.last;
    if (rv__str_is(name, "state"))
        return last != NULL ? is_state(last, ret) : is_text(rv__str("{}"), ret);
    if (rv__str_is(name, "result"))
        return last != NULL ? is_result(last, ret) : RV_ENOTFOUND;
    return last != NULL ? is_quoted(ctx, rv__entry_alias(last), ret)
                        : is_text(rv__str("null"), ret);
}

/* Read once, however often an expression asks. */
static int find_piece_item(struct rv__sight *sight, struct rv__scope_text *ret)
{
    struct rv__stored_rows rows;
    if (sight->piece == NULL) {
        rv__stored_rows_of(&rows, sight->ctx);
        rows.at_hand = sight->scope.at_hand;
        int rc = rv__view_item(&sight->ctx->view, &rows.source, &sight->piece, &sight->item, NULL);
        if (rc < 0)
            return rc;
    }
    *ret = (struct rv__scope_text){ .json = sight->item, .blob = sight->piece };
    return RV_OK;
}

static int find_loop(struct rv__sight *sight, struct rv__str name, struct rv__scope_text *ret)
{
    struct rv_ctx *ctx = sight->ctx;
    const struct rv__view *view = &ctx->view;
    if (view->loop_index < 0)
        return RV_ENOTFOUND;
    if (rv__str_is(name, "index")) {
        struct rv__buf text;
        struct rv__str copy;
        rv__buf_init(&text, 32);
        rv__buf_int(&text, view->loop_index);
        int rc = rv__str_copy(&ctx->arena, rv__buf_view(&text), &copy);
        rv__buf_done(&text);
        return rc < 0 ? rc : is_text(copy, ret);
    }
    if (view->pieces != NULL && rv__str_is(name, "items")) {
        *ret = (struct rv__scope_text){ .key = { rv__view_items_serial(view), MADE_ITEMS },
                                        .origin = view };
        return RV_OK;
    }
    if (view->pieces != NULL)
        return find_piece_item(sight, ret);
    if (view->items == NULL)
        return RV_ENOTFOUND;
    if (rv__str_is(name, "items"))
        return is_blob(view->items, ret);
    *ret = (struct rv__scope_text){ .json = view->item, .blob = view->items };
    return RV_OK;
}

static int find_run(struct rv__sight *sight, struct rv__scope_text *ret)
{
    if (rv__str_none(sight->run)) {
        struct rv__buf json;
        rv__buf_init(&json, RV__JSON_MAX_BYTES);
        rv__ctx_put_run(sight->ctx, &json);
        int rc = rv__buf_err(&json, NULL);
        if (rc == RV_OK)
            rc = rv__str_copy(&sight->ctx->arena, rv__buf_view(&json), &sight->run);
        rv__buf_done(&json);
        if (rc < 0)
            return rc;
    }
    return is_text(sight->run, ret);
}

/* error, failedStep, workflowState: of handlers. */
static int find_failure(struct rv__sight *sight, struct rv__str root, struct rv__scope_text *ret)
{
    char key[16];
    struct rv__str found;
    if (sight->ctx->view.error == NULL || root.len >= sizeof key)
        return RV_ENOTFOUND;
    if (rv__str_none(sight->failure) && sight->scope.at_hand)
        return RV_EBUSY; /* it may be read from the store */
    if (rv__str_none(sight->failure)) {
        struct rv__buf json;
        rv__buf_init(&json, RV__JSON_MAX_BYTES);
        int rc = rv__ctx_put_failure(sight->ctx, &json);
        if (rc == RV_OK)
            rc = rv__buf_err(&json, NULL);
        if (rc == RV_OK)
            rc = rv__str_copy(&sight->ctx->arena, rv__buf_view(&json), &sight->failure);
        rv__buf_done(&json);
        if (rc < 0)
            return rc;
    }
    memcpy(key, root.at, root.len);
    key[root.len] = '\0';
    return rv__json_get(sight->failure, key, &found) ? is_text(found, ret) : RV_ENOTFOUND;
}

static int find(struct rv__scope *self, struct rv__str root, struct rv__str name,
                struct rv__str field, struct rv__scope_text *ret)
{
    struct rv__sight *sight = (struct rv__sight *)self;
    struct rv_ctx *ctx = sight->ctx;
    if (rv__str_is(root, "input"))
        return is_blob(ctx->view.input, ret);
    if (rv__str_is(root, "steps"))
        return find_step(ctx, name, field, ret);
    if (rv__str_is(root, "lastStep"))
        return find_last(ctx, name, ret);
    if (rv__str_is(root, "loop"))
        return find_loop(sight, name, ret);
    if (rv__str_is(root, "run"))
        return find_run(sight, ret);
    if (rv__str_is(root, "env"))
        return is_text(rv__buf_view(&ctx->shop->env), ret);
    if (rv__str_is(root, "result"))
        return ctx->view.ended != NULL ? is_result(ctx->view.ended, ret)
               : ctx->describing       ? is_blob(ctx->result, ret)
                                       : RV_ENOTFOUND;
    return find_failure(sight, root, ret);
}

static int text(struct rv__scope *self, const struct rv__scope_text *found, struct rv__blob **ret,
                rv_error *err)
{
    struct rv__sight *sight = (struct rv__sight *)self;
    struct rv__stored_rows rows;
    struct rv__buf json;
    rv__stored_rows_of(&rows, sight->ctx);
    if (found->blob != NULL)
        return rv__blob_get(found->blob, &rows.source, ret, err);
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    int rc = found->key[1] == MADE_ITEMS
                 ? rv__view_items(&sight->ctx->view, &rows.source, &json, err)
             : found->key[1] == MADE_STATE
                 ? rv__entry_state(found->origin, &rows.source, &json, err)
                 : rv__entry_result(found->origin, &rows.source, &json, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&json, err);
    if (rc == RV_OK) {
        *ret = rv__blob_new(rv__buf_view(&json));
        rc = *ret != NULL ? RV_OK : RV_ENOMEM;
    }
    rv__buf_done(&json);
    return rc;
}

/* Newest first; one that a newer of its name hides is left out. */
static bool alias(struct rv__scope *self, size_t i, struct rv__str *ret)
{
    struct rv__sight *sight = (struct rv__sight *)self;
    const struct rv__entry *at = sight->ctx->view.scope;
    size_t number = 0;
    if (sight->at != NULL && sight->at_index <= i) { /* they are asked for in order */
        at = sight->at;
        number = sight->at_index;
    }
    for (; at != NULL; at = rv__entry_before(at)) {
        if (rv__view_find(&sight->ctx->view, rv__entry_alias(at)) != at)
            continue;
        if (number++ < i)
            continue;
        sight->at = at;
        sight->at_index = i;
        *ret = rv__entry_alias(at);
        return true;
    }
    return false;
}

void rv__sight_done(struct rv__sight *sight)
{
    rv__blob_unref(sight->piece);
    sight->piece = NULL;
}

void rv__sight_init(struct rv__sight *sight, struct rv_ctx *ctx)
{
    static const char *const of_handler[] = { "error", "failedStep", "workflowState", NULL };
    static const char *const of_description[] = { "result", NULL };
    *sight = (struct rv__sight){ .scope = { .find = find, .text = text, .alias = alias },
                                 .ctx = ctx };
    sight->scope.roots = ctx->view.error != NULL                      ? of_handler
                         : ctx->describing || ctx->view.ended != NULL ? of_description
                                                                      : NULL;
}
