/* invoked.c: the frames of one invocation, sent and received. Shared by hosts and workers.
 *
 * Everything that the other side sends is checked. Values that many invocations see (inputs, items, results) are sent
 * once per connection: the other side caches them, and struct rv__kept says which it has. */
#include "work/invoked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

const char *const rv__part_names[PARTS] = {
    [PART_INPUT] = "input",
    [PART_STEP] = "step",
    [PART_STEPS] = "steps",
    [PART_LAST] = "last",
    [PART_ITEM] = "item",
    [PART_ITEMS] = "items",
    [PART_ERROR] = "error",
    [PART_FAILED] = "failed",
    [PART_PARENT] = "parent",
    [PART_INPUTS] = "inputs",
    [PART_PARAMETERS] = "parameters",
    [PART_STATE] = "state",
};

/* --------------------------------------------------------------------------------- showing --- */

static void unref_blob(void *blob)
{
    rv__blob_unref(blob);
}

static void unref_entry(void *entry)
{
    rv__entry_unref(entry);
}

/* The scope as a whole is identified by the address just behind that of its newest entry. */
static void unref_scope(void *identity)
{
    rv__entry_unref((struct rv__entry *)(void *)((char *)identity - 1));
}

/* The items of an enclosing iteration, if `what` names them: "items", "parent.items" … */
static const struct rv__blob *items_of_parent(const struct rv_ctx *ctx, struct rv__str what)
{
    static const struct rv__str up = RV__STR("parent.");
    const struct rv__view *view = ctx->view.parent;
    while (view != NULL && what.len > up.len && memcmp(what.at, up.at, up.len) == 0) {
        what = (struct rv__str){ what.at + up.len, what.len - up.len };
        view = view->parent;
    }
    return view != NULL && rv__str_is(what, "items") ? view->items : NULL;
}

struct rv__shared rv__invoked_shared(const struct rv_ctx *ctx, enum rv__part part,
                                     struct rv__str alias, const struct rv__entry *entry)
{
    const struct rv__view *view = &ctx->view;
    switch (part) {
    case PART_INPUT: return (struct rv__shared){ view->input, unref_blob };
    case PART_ITEMS: return (struct rv__shared){ view->items, unref_blob };
    case PART_PARENT: return (struct rv__shared){ items_of_parent(ctx, alias), unref_blob };
    case PART_STEP:
    case PART_LAST: return (struct rv__shared){ entry, unref_entry };
    case PART_STEPS:
        if (view->scope == NULL)
            break;
        return (struct rv__shared){ (const char *)view->scope + 1, unref_scope };
    case PART_ITEM:
    case PART_ERROR:
    case PART_FAILED:
    case PART_INPUTS:
    case PART_PARAMETERS:
    case PART_STATE:
    case PARTS: break;
    }
    return (struct rv__shared){ NULL, NULL };
}

void rv__invoked_hold(struct rv__shared value)
{
    if (value.release == unref_blob)
        (void)rv__blob_ref((struct rv__blob *)(uintptr_t)value.identity);
    else if (value.release == unref_entry)
        (void)rv__entry_ref((struct rv__entry *)(uintptr_t)value.identity);
    else
        (void)rv__entry_ref((struct rv__entry *)(uintptr_t)((const char *)value.identity - 1));
}

static void put_seen(struct rv__buf *out, const struct rv__seen *seen)
{
    if (seen->status == NULL)
        return;
    rv__wire_text(out, "alias", seen->alias);
    rv__wire_text(out, "status", rv__str(seen->status));
    if (!rv__str_none(seen->state))
        rv__wire_json(out, "state", seen->state);
    if (!rv__str_none(seen->error))
        rv__wire_json(out, "error", seen->error);
}

int rv__invoked_value(const struct rv__value_head *head, struct rv__kept *kept,
                      struct rv__shared shared, const struct rv__seen *seen, struct rv__buf *out)
{
    bool known = false, keep = false, forget = false;
    unsigned slot = 0;
    size_t before = out->len;
    if (seen != NULL && shared.identity != NULL) {
        known = rv__kept_has(kept, shared.identity, &slot);
        keep = !known && seen->json.len > RV__KEPT_SMALL && seen->json.len < RV__KEPT_BYTES / 2;
    }
    if (keep) {
        rv__invoked_hold(shared);
        slot = rv__kept_add(kept, shared, seen->json.len, &forget);
    }
    if (forget)
        rv__wire_end(out, rv__wire_begin(out, FRAME_FORGET));
    size_t start = rv__wire_begin(out, FRAME_VALUE);
    if (head->id != NULL)
        rv__wire_text(out, "id", rv__str(head->id));
    if (!rv__str_none(head->seq))
        rv__wire_json(out, "seq", head->seq);
    if (known || keep)
        rv__wire_int(out, "slot", slot);
    if (seen != NULL)
        put_seen(out, seen);
    if (seen != NULL && !known)
        rv__wire_json(out, "json", seen->json);
    rv__wire_end(out, start);
    int rc = out->rc;
    if (rc == RV_OK)
        return rc;
    if (keep) /* it was not sent, so neither side has it */
        rv__kept_forget(kept);
    if (rc == RV_ETOOBIG) {
        out->rc = RV_OK;
        rv__buf_cut(out, before);
        if (keep)
            rv__wire_end(out, rv__wire_begin(out, FRAME_FORGET));
    }
    return rc;
}

/* The part, if it is in the view. "none": it must be assembled or read. */
static struct rv__str at_hand(const struct rv_ctx *ctx, enum rv__part part, struct rv__str alias)
{
    const struct rv__view *view = &ctx->view;
    const struct rv__entry *entry = part == PART_LAST   ? view->last
                                    : part == PART_STEP ? rv__view_find(view, alias)
                                                        : NULL;
    const struct rv__blob *blob = part == PART_INPUT   ? view->input
                                  : part == PART_ITEMS ? view->items
                                  : entry != NULL && !rv__entry_assembled(entry)
                                      ? rv__entry_blob(entry)
                                      : NULL;
    return rv__blob_is_reference(blob) ? (struct rv__str){ NULL, 0 } : rv__blob_str(blob);
}

void rv__invoked_given(struct rv_ctx *ctx, enum rv__part part, struct rv__str alias,
                       struct rv__str json)
{
    static const char *const paths[PARTS] = {
        [PART_INPUT] = ".input",           [PART_STEP] = ".steps.",
        [PART_STEPS] = ".steps",           [PART_LAST] = ".lastStep.result",
        [PART_ITEM] = ".loop.item",        [PART_ITEMS] = ".loop.items",
        [PART_ERROR] = ".error",           [PART_FAILED] = ".failedStep",
        [PART_PARENT] = ".loop.parent.",   [PART_INPUTS] = ".inputs",
        [PART_PARAMETERS] = ".parameters", [PART_STATE] = ".state",
    };
    struct rv__buf path;
    if (part == PART_STEP || part == PART_STEPS)
        rv__access_saw_steps(ctx, part == PART_STEP ? alias : rv__str(NULL));
    else if (part == PART_LAST && ctx->view.last != NULL)
        rv__access_saw_steps(ctx, rv__entry_alias(ctx->view.last));
    if (!ctx->records)
        return;
    rv__buf_init(&path, RV__GIVEN_NAME_BYTES);
    rv__buf_text(&path, paths[part]);
    if (part == PART_STEP)
        rv__buf_fmt(&path, "%.*s.result", RV__ARG(alias));
    if (part == PART_PARENT)
        rv__buf_str(&path, alias);
    if (path.rc == RV_OK)
        rv__ctx_given_shared(ctx, rv__buf_view(&path),
                             rv__str_none(json) ? at_hand(ctx, part, alias) : json);
    rv__buf_done(&path);
}

/* The indices of the enclosing iterations, innermost first. */
static void put_parents(const struct rv__view *parent, struct rv__buf *out)
{
    rv__buf_text(out, ",\"parents\":");
    for (char before = '['; parent != NULL; parent = parent->parent, before = ',') {
        rv__buf_char(out, before);
        rv__buf_int(out, parent->loop_index);
    }
    rv__buf_char(out, ']');
}

void rv__invoked_ask(struct rv_ctx *ctx, const char *id, struct rv__buf *out)
{
    rv__wire_text(out, "id", rv__str(id));
    rv__wire_text(out, "function", ctx->function);
    rv__buf_text(out, ",\"run\":");
    rv__ctx_put_run(ctx, out);
    if (ctx->loop_index >= 0)
        rv__wire_int(out, "index", ctx->loop_index);
    if (ctx->loop_index >= 0 && ctx->view.parent != NULL)
        put_parents(ctx->view.parent, out);
    if (ctx->timeout_ms > 0)
        rv__wire_int(out, "timeoutMs", ctx->timeout_ms);
    if (ctx->eval >= 0)
        rv__wire_json(out, "condition", rv__str("true"));
    if (ctx->handles != NULL)
        rv__wire_text(out, "handles", rv__str(ctx->handles));
}

void rv__invoked_item(struct rv_ctx *ctx, size_t most_item, struct rv__buf *room,
                      struct rv__buf *out)
{
    struct rv__seen item = { .status = NULL };
    if (ctx->source->see(ctx, PART_ITEM, rv__str(NULL), room, &item) == RV_OK &&
        item.json.len <= most_item) {
        rv__wire_json(out, "item", item.json);
        rv__invoked_given(ctx, PART_ITEM, rv__str(NULL), item.json);
    }
}

int rv__invoked_wanted(struct rv_ctx *ctx, const struct rv__frame *get, struct rv__wanted *ret,
                       rv_error *err)
{
    enum { PART, ALIAS, ENTRY, SEQ, KEYS };
    struct rv__str has[KEYS];
    rv__frame_members(get, (const char *[]){ "part", "alias", "entry", "seq" }, has, KEYS);
    *ret = (struct rv__wanted){ .seq = has[SEQ], .number = has[ENTRY] };
    int part = 0;
    while (part < PARTS && (rv__str_none(has[PART]) ||
                            !rv__json_string_is(has[PART], rv__str(rv__part_names[part]))))
        part++;
    if (part == PARTS)
        return rv__fail(err, RV_EPARSE, "it requests an unknown part");
    if (!rv__str_none(has[SEQ]) && rv__json_type(has[SEQ]) != RV__JSON_NUMBER)
        return rv__fail(err, RV_EPARSE, "a 'seq' that is not a number");
    if (((part == PART_STEP && rv__str_none(has[ENTRY])) || part == PART_PARENT) &&
        (rv__str_none(has[ALIAS]) || rv__json_type(has[ALIAS]) != RV__JSON_STRING ||
         rv__json_string(has[ALIAS], &ctx->arena, &ret->alias) < 0))
        return rv__fail(err, RV_EPARSE, "it requests a %s without an alias", rv__part_names[part]);
    ret->part = (enum rv__part)part;
    return RV_OK;
}

/* --------------------------------------------------------------------------------- hearing --- */

int rv__invoked_log(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
{
    enum { AT, LEVEL, MESSAGE, METADATA, KEYS };
    struct rv__str has[KEYS], message, metadata = { NULL, 0 };
    int64_t at_ms = 0, level = RV_INFO;
    rv__frame_members(frame, (const char *[]){ "at", "level", "message", "metadata" }, has, KEYS);
    if (rv__str_none(has[MESSAGE]) || rv__json_string(has[MESSAGE], &ctx->arena, &message) < 0)
        return rv__fail(err, RV_EPARSE, "a log line without a message");
    if (++ctx->log_count > RV__LOG_LINES)
        return 0;
    if (rv__str_none(has[AT]) || rv__json_int(has[AT], &at_ms) < 0)
        at_ms = rv__wall_ms(ctx->services->clock);
    if (!rv__str_none(has[LEVEL]))
        (void)rv__json_int(has[LEVEL], &level); /* if it is no number: RV_INFO */
    if (!rv__str_none(has[METADATA]))
        (void)rv__json_check(has[METADATA], RV__JSON_VALUE_DEPTH, &metadata,
                             NULL); /* if it is too deep: none */
    if (message.len > RV__LOG_BYTES)
        message.len = RV__LOG_BYTES;
    level = level < RV_DEBUG ? RV_DEBUG : level > RV_ERROR ? RV_ERROR : level;
    rv__ctx_keep_log(ctx, at_ms, (int)level, message, metadata);
    return 0;
}

static int take_state(struct rv_ctx *ctx, struct rv__str state, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str key, value, name;
    if (rv__str_none(state))
        return 0;
    if (rv__json_type(state) != RV__JSON_OBJECT)
        return rv__fail(err, RV_EPARSE, "a state that is not an object");
    rv__json_iter_init(&it, state);
    while (rv__json_next(&it, &key, &value)) {
        if (rv__json_string(key, &ctx->arena, &name) < 0)
            return rv__nomem(err);
        if (rv__json_check(value, RV__JSON_VALUE_DEPTH, &value, NULL) == RV_OK)
            (void)rv__ctx_state(ctx, name,
                                value); /* without memory, or if it is too long, it is left out */
    }
    return 0;
}

int rv__invoked_state(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
{
    struct rv__str state;
    rv__frame_members(frame, (const char *[]){ "state" }, &state, 1);
    return take_state(ctx, state, err);
}

/* It has completed: {result?, state?, pending?}. */
int rv__invoked_result(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
{
    enum { RESULT, STATE, PENDING, KEYS };
    struct rv__str has[KEYS];
    rv__frame_members(frame, (const char *[]){ "result", "state", "pending" }, has, KEYS);
    int rc = take_state(ctx, has[STATE], err);
    if (rc < 0)
        return rc;
    if (!rv__str_none(has[PENDING])) {
        struct rv__str handle;
        if (rv__json_string(has[PENDING], &ctx->arena, &handle) < 0)
            return rv__fail(err, RV_EPARSE, "a handle that is not a text");
        (void)rv_return_pending(ctx, rv__arena_dup(&ctx->arena, handle.at, handle.len));
    } else if (!rv__str_none(has[RESULT])) {
        (void)rv__ctx_result(ctx, has[RESULT]); /* a result that is too deep fails the step */
    }
    rv__ctx_check_state(ctx);
    return 1;
}

static int named(struct rv__str value, const char *const *names, int count, int otherwise)
{
    for (int i = 0; i < count && !rv__str_none(value); i++)
        if (rv__json_string_is(value, rv__str(names[i])))
            return i;
    return otherwise;
}

/* It failed: {error: {message, …}, behavior?, maxAttempts?, backoff?, state?}. */
int rv__invoked_error(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
{
    enum { ID, ERROR, BEHAVIOR, ATTEMPTS, BACKOFF, STATE, KEYS };
    static const char *const keys[] = {
        "id", "error", "behavior", "maxAttempts", "backoff", "state"
    };
    static const char *const behaviors[] = { "plain", "stop", "continue", "retry" };
    static const char *const backoffs[] = { "linear", "exponential" };
    struct rv__str has[KEYS], message;
    int64_t attempts = 0;
    rv__frame_members(frame, keys, has, KEYS);
    if (rv__str_none(has[ERROR]) || !rv__json_get(has[ERROR], "message", &message) ||
        rv__json_type(message) != RV__JSON_STRING ||
        rv__json_check(has[ERROR], RV__JSON_VALUE_DEPTH, NULL, NULL) < 0)
        return rv__fail(err, RV_EPARSE, "an error without a message");
    int rc = take_state(ctx, has[STATE], err);
    if (rc < 0)
        return rc;
    if (!rv__str_none(has[ATTEMPTS]))
        (void)rv__json_int(has[ATTEMPTS], &attempts); /* if it is no number: not set */
    rv__ctx_error(ctx, has[ERROR]);
    ctx->behavior = (enum rv__behavior)named(has[BEHAVIOR], behaviors, 4, BEHAVIOR_PLAIN);
    ctx->max_attempts = attempts > 0 && attempts < INT32_MAX ? (int)attempts : 0;
    ctx->backoff = 1 + named(has[BACKOFF], backoffs, 2, -1);
    return 1;
}
