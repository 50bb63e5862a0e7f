/* remote_ctx.c: an invocation in another process than the engine's: made from its frame, given the values that it asks
 * for, and answered. */
#include "work/remote_ctx.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "group/group.h"

/* ---------------------------------------------------------------------------------- values --- */

void rv__slots_forget(struct rv__slots *slots)
{
    for (size_t i = 0; i < RV__KEPT_SLOTS; i++) {
        rv__blob_unref(slots->at[i]);
        slots->at[i] = NULL;
    }
}

int rv__slots_text(struct rv__slots *slots, struct rv__str json, struct rv__str number,
                   struct rv__blob **ret)
{
    int64_t slot = -1;
    if (!rv__str_none(number) &&
        (rv__json_int(number, &slot) < 0 || slot < 0 || slot >= RV__KEPT_SLOTS))
        return RV_EPARSE;
    if (rv__str_none(json)) {
        *ret = slot >= 0 ? rv__blob_ref(slots->at[slot]) : NULL;
        return RV_OK;
    }
    struct rv__blob *text = rv__blob_new(json);
    if (text == NULL)
        return RV_ENOMEM;
    if (slot >= 0) {
        rv__blob_unref(slots->at[slot]);
        slots->at[slot] = rv__blob_ref(text);
    }
    *ret = text;
    return RV_OK;
}

int rv__remote_ctx_value(struct rv__remote_ctx *remote, const struct rv__frame *frame,
                         struct rv__slots *slots, struct rv__shown *shown)
{
    enum { JSON, SLOT, ALIAS, STATUS, STATE, ERROR, KEYS };
    static const char *const keys[] = { "json", "slot", "alias", "status", "state", "error" };
    struct rv__arena *arena = &remote->ctx.arena;
    struct rv__str has[KEYS], status;
    rv__frame_members(frame, keys, has, KEYS);
    int rc = rv__slots_text(slots, has[JSON], has[SLOT], &shown->json);
    if (rc < 0 || rv__str_none(has[STATUS]))
        return rc;
    /* copied, because the frame is freed */
    if (rv__json_string(has[ALIAS], arena, &shown->seen.alias) < 0 ||
        rv__str_copy(arena, shown->seen.alias, &shown->seen.alias) < 0 ||
        rv__json_string(has[STATUS], arena, &status) < 0 ||
        (shown->seen.status = rv__arena_dup(arena, status.at, status.len)) == NULL ||
        (!rv__str_none(has[STATE]) && rv__str_copy(arena, has[STATE], &shown->seen.state) < 0) ||
        (!rv__str_none(has[ERROR]) && rv__str_copy(arena, has[ERROR], &shown->seen.error) < 0))
        return RV_ENOMEM;
    return RV_OK;
}

void rv__remote_ctx_put_get(const struct rv__remote_ctx *remote, const struct rv__shown *shown,
                            struct rv__buf *out)
{
    size_t start = rv__wire_begin(out, FRAME_GET);
    rv__wire_text(out, "id", rv__str(remote->id));
    rv__wire_text(out, "part", rv__str(rv__part_names[shown->part]));
    if (!rv__str_none(shown->alias))
        rv__wire_text(out, "alias", shown->alias);
    rv__wire_end(out, start);
}

int rv__remote_ctx_see(rv_ctx *ctx, enum rv__part part, struct rv__str alias, struct rv__buf *room,
                       struct rv__seen *ret)
{
    struct rv__remote_ctx *remote = (struct rv__remote_ctx *)ctx;
    struct rv__str given = part == PART_INPUT  ? remote->input
                           : part == PART_ITEM ? remote->item
                                               : (struct rv__str){ NULL, 0 };
    (void)room;
    if (!rv__str_none(given)) {
        ret->json = given;
        return RV_OK;
    }
    struct rv__shown *shown = remote->shown;
    while (shown != NULL && (shown->part != part || !rv__str_eq(shown->alias, alias)))
        shown = shown->next;
    if (shown == NULL) {
        shown = rv__arena_zalloc(&ctx->arena, 1, sizeof *shown);
        if (shown == NULL || rv__str_copy(&ctx->arena, alias, &shown->alias) < 0)
            return RV_ENOMEM;
        shown->part = part;
        int rc = remote->fetch(remote, shown);
        if (rc < 0)
            return rc;
        shown->next = remote->shown;
        remote->shown = shown;
    }
    if (shown->json == NULL)
        return RV_ENOTFOUND;
    *ret = shown->seen;
    ret->json = rv__blob_str(shown->json);
    return RV_OK;
}

const char *rv__remote_ctx_who(rv_ctx *ctx, enum rv__who who)
{
    const char *text = ((struct rv__remote_ctx *)ctx)->who[who];
    return text != NULL ? text : "";
}

void rv__remote_ctx_put_log(const struct rv__remote_ctx *remote, int level, struct rv__str message,
                            struct rv__str metadata, struct rv__buf *out)
{
    size_t start = rv__wire_begin(out, FRAME_LOG);
    rv__wire_text(out, "id", rv__str(remote->id));
    rv__wire_int(out, "at", rv__wall_ms(rv__clock_real()));
    rv__wire_int(out, "level", level);
    rv__wire_text(out, "message", message);
    if (!rv__str_none(metadata))
        rv__wire_json(out, "metadata", metadata);
    rv__wire_end(out, start);
}

/* ---------------------------------------------------------------------------------- taking --- */

static const char *text_member(struct rv__remote_ctx *remote, struct rv__str value)
{
    struct rv__str text;
    if (rv__str_none(value) || rv__json_type(value) != RV__JSON_STRING ||
        rv__json_string(value, &remote->ctx.arena, &text) < 0)
        return NULL;
    return rv__arena_dup(&remote->ctx.arena, text.at, text.len);
}

static void take_run(struct rv__remote_ctx *remote, struct rv__str run)
{
    static const char *const keys[] = { "runId", "workflowName", "stepName",
                                        "path",  "executionId",  "idempotencyKey" };
    struct rv__str value;
    int64_t attempt = 1;
    for (int who = WHO_RUN; who <= WHO_KEY; who++) {
        bool there = !rv__str_none(run) && rv__json_get(run, keys[who], &value);
        remote->who[who] = there ? text_member(remote, value) : NULL;
    }
    if (!rv__str_none(run) && rv__json_get(run, "attempt", &value))
        (void)rv__json_int(value, &attempt); /* if it is no number: the first */
    remote->ctx.attempt = (int)attempt;
}

int rv__remote_ctx_take(struct rv__remote_ctx *remote, const struct rv__frame *read,
                        struct rv__slots *slots, const struct rv__source *source)
{
    enum { ID, FUNCTION, WORKFLOW, RUN, INDEX, CONDITION, HANDLES, INPUT, INPUT_SLOT, ITEM, KEYS };
    static const char *const keys[] = { "id",        "function", "workflow", "run",       "index",
                                        "condition", "handles",  "input",    "inputSlot", "item" };
    struct rv__str has[KEYS];
    struct rv__frame frame = *read;
    struct rv_ctx *ctx = &remote->ctx;
    *ctx = (struct rv_ctx){ .source = source, .loop_index = -1, .outcome = MSG_DONE };
    rv__arena_init(&ctx->arena, SIZE_MAX); /* bounded by what the step reads */
    rv__buf_init(&ctx->state_members, RV__STATE_MAX_BYTES);
    ctx->work.token = rv_cancel_new(NULL);
    if (ctx->work.token == NULL || rv__str_copy(&ctx->arena, read->json, &frame.json) < 0)
        return RV_ENOMEM;
    rv__frame_members(&frame, keys, has, KEYS);
    const char *function = text_member(remote, has[FUNCTION]);
    const char *workflow = text_member(remote, has[WORKFLOW]);
    remote->id = text_member(remote, has[ID]);
    remote->function = rv__str(function != NULL ? function : "");
    remote->workflow = rv__str(workflow != NULL ? workflow : "");
    remote->input = has[INPUT];
    remote->item = has[ITEM];
    remote->shown = NULL;
    remote->slot_input = NULL;
    ctx->eval = rv__str_none(has[CONDITION]) ? -1 : 0;
    ctx->handles = text_member(remote, has[HANDLES]);
    if (!rv__str_none(has[INDEX]))
        (void)rv__json_int(has[INDEX], &ctx->loop_index); /* if it is no number: none */
    take_run(remote, has[RUN]);
    int rc = RV_OK;
    if (!rv__str_none(has[INPUT_SLOT]))
        rc = rv__slots_text(slots, (struct rv__str){ NULL, 0 }, has[INPUT_SLOT],
                            &remote->slot_input);
    if (rc == RV_OK && remote->slot_input != NULL)
        remote->input = rv__blob_str(remote->slot_input);
    return rc == RV_OK && remote->id == NULL ? RV_EPARSE : rc;
}

void rv__remote_ctx_done(struct rv__remote_ctx *remote)
{
    for (struct rv__shown *shown = remote->shown; shown != NULL; shown = shown->next)
        rv__blob_unref(shown->json);
    remote->shown = NULL;
    rv__blob_unref(remote->slot_input);
    remote->slot_input = NULL;
    rv__ctx_done(&remote->ctx);
    remote->ctx.work.token = NULL;
}

/* ---------------------------------------------------------------------------------- running --- */

static int run_fn(void *ctx)
{
    rv__ctx_run(ctx); /* an rv_ctx begins with its rv__work */
    return 0;
}

void rv__remote_ctx_run(struct rv__remote_ctx *remote)
{
    rv_error err;
    if (remote->ctx.fn == NULL)
        rv_fail(&remote->ctx, "there is no function '%.*s' in this process",
                RV__ARG(remote->function));
    else if (rv__panic_guard(run_fn, &remote->ctx, &err) < 0)
        rv__ctx_failed(&remote->ctx, &err);
}

static void put_state(const struct rv__remote_ctx *remote, struct rv__buf *out)
{
    const struct rv__buf *state = &remote->ctx.state_members;
    if (state->len == 0 || state->rc != RV_OK)
        return;
    rv__buf_text(out, ",\"state\":{");
    rv__buf_str(out, rv__buf_view(state));
    rv__buf_char(out, '}');
}

static void put_answer(const struct rv__remote_ctx *remote, struct rv__buf *out)
{
    static const char *const behaviors[] = { "plain", "stop", "continue", "retry" };
    static const char *const backoffs[] = { "linear", "exponential" };
    const struct rv_ctx *ctx = &remote->ctx;
    bool failed = ctx->outcome == MSG_FAILED;
    size_t start = rv__wire_begin(out, failed ? FRAME_ERROR : FRAME_RESULT);
    rv__wire_text(out, "id", rv__str(remote->id));
    if (failed) {
        struct rv__str error = rv__blob_str(ctx->error);
        rv__wire_json(out, "error",
                      rv__str_none(error) ? rv__str("{\"message\":\"failed\"}") : error);
        rv__wire_text(out, "behavior", rv__str(behaviors[ctx->behavior]));
        if (ctx->max_attempts > 0)
            rv__wire_int(out, "maxAttempts", ctx->max_attempts);
        if (ctx->backoff > 0)
            rv__wire_text(out, "backoff", rv__str(backoffs[ctx->backoff - 1]));
    } else if (ctx->outcome == MSG_PARK) {
        rv__wire_text(out, "pending", ctx->handle);
    } else if (ctx->result != NULL) {
        rv__wire_json(out, "result", rv__blob_str(ctx->result));
    }
    put_state(remote, out);
    rv__wire_end(out, start);
}

void rv__remote_ctx_put_answer(struct rv__remote_ctx *remote, struct rv__buf *out)
{
    put_answer(remote, out);
    if (out->rc != RV_ETOOBIG || remote->ctx.outcome == MSG_FAILED)
        return;
    /* the same error as for a result that is too long in the engine */
    size_t bytes = remote->ctx.result != NULL ? remote->ctx.result->len : 0;
    rv__buf_reset(out);
    rv_fail(&remote->ctx,
            "the result has %zu bytes, and with its state more than the %d that are allowed", bytes,
            RV__FRAME_MAX);
    put_answer(remote, out);
}
