/* sight.c: the roots of expressions (SPEC: input, steps, lastStep, loop, run, env), made from a view. On the
 * evaluator's thread, which owns the ctx and its arena meanwhile. */
#include "work/sight.h"

#include <string.h>

#include "base/alloc.h"
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

/* How a text that is not in memory is made: the second number of its key. A reference has none: its blob identifies
 * it. */
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

/* A result that is assembled has no text yet. The text is made if the evaluator does not have the value in its
 * cache. */
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
    rv__access_saw_steps(ctx, alias);
    if (rv__str_is(field, "result"))
        return is_result(entry, ret);
    if (rv__str_is(field, "state"))
        return is_state(entry, ret);
    if (rv__str_is(field, "error"))
        return rv__entry_error(entry) != NULL ? is_blob(rv__entry_error(entry), ret) : RV_ENOTFOUND;
    return is_text(rv__str(quoted[rv__entry_status(entry)]), ret);
}

static int find_last(struct rv_ctx *ctx, struct rv__str name, struct rv__scope_text *ret)
{
    const struct rv__entry *last = ctx->view.last;
    if (last != NULL)
        rv__access_saw_steps(ctx, rv__entry_alias(last));
    if (rv__str_is(name, "state"))
        return last != NULL ? is_state(last, ret) : is_text(rv__str("{}"), ret);
    if (rv__str_is(name, "result"))
        return last != NULL ? is_result(last, ret) : RV_ENOTFOUND;
    return last != NULL ? is_quoted(ctx, rv__entry_alias(last), ret)
                        : is_text(rv__str("null"), ret);
}

/* A secret has no identity, so that it is never cached. */
static int find_secret(struct rv_ctx *ctx, struct rv__str name, struct rv__scope_text *ret)
{
    struct rv__str value, copy;
    struct rv__buf json;
    if (!rv__ctx_may_see_secrets(ctx) || rv__str_none(name) ||
        !rv__wrap_has_secret(rv__node_wrap(ctx->view.node), name) ||
        !rv__secrets_get(ctx->secrets, name, &value))
        return RV_ENOTFOUND;
    rv__buf_init(&json, (size_t)8 * RV__MASK_MAX_BYTES);
    rv__buf_json_str(&json, value);
    int rc = rv__buf_err(&json, NULL);
    if (rc == RV_OK)
        rc = rv__str_copy(&ctx->arena, rv__buf_view(&json), &copy);
    rv__buf_done(&json);
    return rc < 0 ? rc : is_text(copy, ret);
}

/* Read the item once, however often an expression asks. */
static int find_piece_item(struct rv__sight *sight, const struct rv__view *view,
                           struct rv__scope_text *ret)
{
    struct rv__stored_rows rows;
    struct rv__sight_item *item = sight->items;
    while (item != NULL && item->of != view)
        item = item->next;
    if (item == NULL) {
        item = rv__arena_zalloc(&sight->ctx->arena, 1, sizeof *item);
        if (item == NULL)
            return RV_ENOMEM;
        rv__stored_rows_of(&rows, sight->ctx);
        rows.at_hand = sight->scope.at_hand;
        int rc = rv__view_item(view, &rows.source, &item->piece, &item->json, NULL);
        if (rc < 0)
            return rc;
        item->of = view;
        item->next = sight->items;
        sight->items = item;
    }
    *ret = (struct rv__scope_text){ .json = item->json, .blob = item->piece };
    return RV_OK;
}

/* `root`: "loop", "loop.parent", "loop.parent.parent" … */
static int find_loop(struct rv__sight *sight, struct rv__str root, struct rv__str name,
                     struct rv__scope_text *ret)
{
    struct rv_ctx *ctx = sight->ctx;
    const struct rv__view *view = &ctx->view;
    for (size_t up = root.len / (sizeof ".parent" - 1); view != NULL && up > 0; up--)
        view = view->parent;
    if (view == NULL || view->loop_index < 0)
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
        return find_piece_item(sight, view, ret);
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
    if (sight->ctx->view.handler == NULL || root.len >= sizeof key)
        return RV_ENOTFOUND;
    if (rv__str_none(sight->failure) && sight->scope.at_hand)
        return RV_EBUSY; /* it may have to be read from the store */
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

/* inputs, parameters, state: of the agent of a state. */
static int find_agents(struct rv__sight *sight, struct rv__str root, struct rv__scope_text *ret)
{
    static const enum rv__part parts[] = { PART_INPUTS, PART_PARAMETERS, PART_STATE };
    size_t i = 0;
    while (i < 3 && !rv__str_is(root, rv__part_names[parts[i]]))
        i++;
    if (i == 3)
        return RV_ENOTFOUND;
    if (rv__str_none(sight->agents[i])) {
        struct rv__buf json;
        if (sight->scope.at_hand && parts[i] != PART_STATE)
            return RV_EBUSY; /* it may have to be read from the store */
        rv__buf_init(&json, RV__JSON_MAX_BYTES);
        int rc = rv__agent_see(sight->ctx, parts[i], &json);
        if (rc == RV_OK)
            rc = rv__str_copy(&sight->ctx->arena, rv__buf_view(&json), &sight->agents[i]);
        rv__buf_done(&json);
        if (rc < 0)
            return rc;
    }
    return is_text(sight->agents[i], ret);
}

/* Whether the scope of an agent hides this root. Then it does not exist for the agent. */
static bool is_hidden(const struct rv_ctx *ctx, struct rv__str root)
{
    const struct rv__state *state = rv__ctx_agent(ctx);
    if (state == NULL)
        return false;
    bool everything = state->access == ACCESS_ALL;
    return ((rv__str_is(root, "steps") || rv__str_is(root, "env")) && !everything) ||
           rv__str_is(root, "lastStep");
}

static int find(struct rv__scope *self, struct rv__str root, struct rv__str name,
                struct rv__str field, struct rv__scope_text *ret)
{
    struct rv__sight *sight = (struct rv__sight *)self;
    struct rv_ctx *ctx = sight->ctx;
    if (is_hidden(ctx, root))
        return RV_ENOTFOUND;
    if (rv__str_is(root, "input"))
        return is_blob(ctx->view.input, ret);
    if (rv__str_is(root, "steps"))
        return find_step(ctx, name, field, ret);
    if (rv__str_is(root, "lastStep"))
        return find_last(ctx, name, ret);
    if (rv__str_is(root, "run"))
        return find_run(sight, ret);
    if (rv__str_is(root, "secrets"))
        return find_secret(ctx, name, ret);
    if (!rv__str_none(name)) /* only roots of loops are left: "loop", "loop.parent" … */
        return find_loop(sight, root, name, ret);
    if (rv__str_is(root, "env"))
        return is_text(ctx->env, ret);
    if (rv__str_is(root, "result"))
        return ctx->view.ended != NULL ? is_result(ctx->view.ended, ret)
               : ctx->describing       ? is_blob(ctx->result, ret)
                                       : RV_ENOTFOUND;
    if (rv__ctx_agent(ctx) != NULL)
        return find_agents(sight, root, ret);
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
    int rc = found->key[1] == MADE_ITEMS ? rv__view_items(found->origin, &rows.source, &json, err)
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

static int alias(struct rv__scope *self, size_t i, struct rv__str *ret)
{
    struct rv__sight *sight = (struct rv__sight *)self;
    if (is_hidden(sight->ctx, rv__str("steps")))
        return 0;
    if (sight->entries == NULL)
        sight->entries = rv__view_entries(&sight->ctx->view, &sight->entry_count);
    if (sight->entries == NULL)
        return RV_ENOMEM;
    if (i >= sight->entry_count)
        return 0;
    *ret = rv__entry_alias(sight->entries[i]);
    return 1;
}

void rv__sight_done(struct rv__sight *sight)
{
    for (; sight->items != NULL; sight->items = sight->items->next)
        rv__blob_unref(sight->items->piece);
    rv__free(sight->entries);
    sight->entries = NULL;
}

void rv__sight_init(struct rv__sight *sight, struct rv_ctx *ctx)
{
    static const char *const of_handler[] = { "error", "failedStep", "workflowState", NULL };
    static const char *const of_description[] = { "result", NULL };
    static const char *const of_agent[] = { "inputs", "parameters", "state", NULL };
    static const char *const of_described_agent[] = { "inputs", "parameters", "state", "result",
                                                      NULL };
    bool describes = ctx->describing || ctx->view.ended != NULL;
    *sight = (struct rv__sight){ .scope = { .find = find, .text = text, .alias = alias },
                                 .ctx = ctx };
    sight->scope.roots = rv__ctx_agent(ctx) != NULL  ? describes ? of_described_agent : of_agent
                         : ctx->view.handler != NULL ? of_handler
                         : describes                 ? of_description
                                                     : NULL;
}
