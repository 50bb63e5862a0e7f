/* hosted.c: a step in a host process, seen from the engine.
 *
 * The step's work runs on a thread of the executor as any other, but there it speaks with a host: it asks
 * for the function to be run, shows what the step wants to see, keeps its log lines, and takes its answer
 * into the rv_ctx as if the function had been called here. What many steps see (inputs, items, results)
 * goes to a host once: it keeps them, and we keep in mind which (rv__host_knows).
 *
 * What a host says is the world's: everything is checked, and what is wrong ends the host. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

struct hosted {
    struct rv__invocation invocation; /* first */
    struct rv_ctx *ctx;
    const char *id; /* what both sides call it */
};

const char *const rv__part_names[PARTS] = {
    [PART_INPUT] = "input", [PART_STEP] = "step",     [PART_STEPS] = "steps",
    [PART_LAST] = "last",   [PART_ITEM] = "item",     [PART_ITEMS] = "items",
    [PART_ERROR] = "error", [PART_FAILED] = "failed",
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

/* All steps of a scope go by the address behind that of its newest entry. */
static void unref_scope(void *identity)
{
    rv__entry_unref((struct rv__entry *)(void *)((char *)identity - 1));
}

/* What the part is known by, if it may be seen by others too. It is not held yet. */
static struct rv__shared shared_part(const struct rv_ctx *ctx, enum rv__part part,
                                     struct rv__str alias)
{
    const struct rv__view *view = &ctx->view;
    switch (part) {
    case PART_INPUT: return (struct rv__shared){ view->input, unref_blob };
    case PART_ITEMS: return (struct rv__shared){ view->items, unref_blob };
    case PART_STEP: return (struct rv__shared){ rv__view_find(view, alias), unref_entry };
    case PART_LAST: return (struct rv__shared){ view->last, unref_entry };
    case PART_STEPS:
        if (view->scope == NULL)
            break;
        return (struct rv__shared){ (const char *)view->scope + 1, unref_scope };
    case PART_ITEM:
    case PART_ERROR:
    case PART_FAILED:
    case PARTS: break;
    }
    return (struct rv__shared){ NULL, NULL };
}

static void hold(struct rv__shared value)
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
}

/* The members of a `value` frame that show a part. RV_ENOTFOUND, with nothing written: it is not there. */
static int put_part(struct rv_ctx *ctx, struct rv__host *host, enum rv__part part,
                    struct rv__str alias, struct rv__buf *out)
{
    struct rv__seen seen = { .status = NULL };
    struct rv__shared shared = shared_part(ctx, part, alias);
    struct rv__buf room;
    unsigned slot;
    bool known = shared.identity != NULL && rv__host_knows(host, shared.identity, &slot);
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    int rc = RV_OK;
    if (!known || part == PART_STEP || part == PART_LAST)
        rc = ctx->source->see(ctx, part, alias, known ? NULL : &room, &seen);
    if (rc == RV_OK && known) {
        rv__wire_int(out, "slot", slot);
        put_seen(out, &seen);
    } else if (rc == RV_OK) {
        bool forget = false;
        if (shared.identity != NULL && seen.json.len > RV__HOST_SMALL &&
            seen.json.len < RV__HOST_KEEPS / 2) {
            hold(shared);
            slot = rv__host_keeps(host, shared, seen.json.len, &forget);
            if (forget)
                rv__wire_json(out, "forget", rv__str("true"));
            rv__wire_int(out, "slot", slot);
        }
        put_seen(out, &seen);
        rv__wire_json(out, "json", seen.json);
    }
    rv__buf_done(&room);
    return rc;
}

/* The function to run, and of what it sees what is small: the rest it asks for. */
static void ask(struct rv__invocation *self, struct rv__host *host, struct rv__buf *out)
{
    struct rv_ctx *ctx = ((struct hosted *)self)->ctx;
    struct rv__seen input = { .status = NULL }, item = { .status = NULL };
    struct rv__buf room;
    (void)host;
    rv__buf_init(&room, RV__JSON_MAX_BYTES);
    size_t start = rv__wire_begin(out, FRAME_INVOKE);
    rv__wire_text(out, "id", rv__str(((struct hosted *)self)->id));
    rv__wire_text(out, "function", ctx->function);
    rv__buf_text(out, ",\"run\":");
    rv__ctx_put_run(ctx, out);
    if (ctx->loop_index >= 0)
        rv__wire_int(out, "index", ctx->loop_index);
    if (ctx->eval >= 0)
        rv__wire_json(out, "condition", rv__str("true"));
    if (ctx->of_step)
        rv__wire_json(out, "ofStep", rv__str("true"));
    if (ctx->source->see(ctx, PART_INPUT, rv__str(NULL), NULL, &input) == RV_OK &&
        input.json.len <= RV__HOST_SMALL)
        rv__wire_json(out, "input", input.json);
    if (ctx->source->see(ctx, PART_ITEM, rv__str(NULL), &room, &item) == RV_OK &&
        item.json.len <= RV__HOST_SMALL)
        rv__wire_json(out, "item", item.json);
    rv__wire_end(out, start);
    rv__buf_done(&room);
}

static int show(struct rv_ctx *ctx, struct rv__host *host, const struct rv__frame *frame,
                struct rv__buf *out, rv_error *err)
{
    enum { ID, PART, ALIAS, KEYS };
    struct rv__str has[KEYS], alias = { NULL, 0 };
    rv__frame_members(frame, (const char *[]){ "id", "part", "alias" }, has, KEYS);
    int part = 0;
    while (part < PARTS && (rv__str_none(has[PART]) ||
                            !rv__json_string_is(has[PART], rv__str(rv__part_names[part]))))
        part++;
    if (part == PARTS)
        return rv__fail(err, RV_EPARSE, "it asks for a part that there is not");
    if (part == PART_STEP &&
        (rv__str_none(has[ALIAS]) || rv__json_string(has[ALIAS], &ctx->arena, &alias) < 0))
        return rv__fail(err, RV_EPARSE, "it asks for a step without an alias");

    size_t start = rv__wire_begin(out, FRAME_VALUE), before = out->len;
    int rc = put_part(ctx, host, (enum rv__part)part, alias, out);
    if (rc == RV_ENOTFOUND)
        rv__buf_cut(out, before);
    else if (rc < 0)
        return rv__fail(err, rc == RV_ENOMEM ? RV_ENOMEM : RV_ETOOBIG,
                        "'%s' cannot be shown to the step: %s", rv__part_names[part],
                        rv_strerror(rc));
    rv__wire_end(out, start);
    return 0;
}

/* --------------------------------------------------------------------------------- hearing --- */

static int take_log(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
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
        at_ms = rv__wall_ms(ctx->shop->clock);
    if (!rv__str_none(has[LEVEL]))
        (void)rv__json_int(has[LEVEL], &level); /* not one: information */
    if (!rv__str_none(has[METADATA]))
        (void)rv__json_check(has[METADATA], RV__JSON_VALUE_DEPTH, &metadata, NULL); /* too deep */
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
            (void)rv__ctx_state(ctx, name, value); /* no memory: without it, then; or too long */
    }
    return 0;
}

/* It was done: {result?, state?, pending?}. */
static int take_result(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
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
        (void)rv__ctx_result(ctx, has[RESULT]); /* one that is too deep fails the step */
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
static int take_error(struct rv_ctx *ctx, const struct rv__frame *frame, rv_error *err)
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
        (void)rv__json_int(has[ATTEMPTS], &attempts); /* not one: not said */
    rv__ctx_error(ctx, has[ERROR]);
    ctx->behavior = (enum rv__behavior)named(has[BEHAVIOR], behaviors, 4, BEHAVIOR_PLAIN);
    ctx->max_attempts = attempts > 0 && attempts < INT32_MAX ? (int)attempts : 0;
    ctx->backoff = 1 + named(has[BACKOFF], backoffs, 2, -1);
    return 1;
}

/* Is it about this invocation? A thread that a step left behind may still speak of that one. */
static bool is_about(const struct hosted *hosted, const struct rv__frame *frame)
{
    struct rv__str id;
    rv__frame_members(frame, (const char *[]){ "id" }, &id, 1);
    return rv__str_none(id) || rv__json_string_is(id, rv__str(hosted->id));
}

static int took(struct rv__invocation *self, struct rv__host *host, const struct rv__frame *frame,
                struct rv__buf *out, rv_error *err)
{
    const struct hosted *hosted = (struct hosted *)self;
    struct rv_ctx *ctx = hosted->ctx;
    switch (frame->type) {
    case FRAME_HELLO:
    case FRAME_REGISTER:
    case FRAME_PONG: return 0; /* of a host that has just begun */
    case FRAME_PING: rv__wire_end(out, rv__wire_begin(out, FRAME_PONG)); return 0;
    case FRAME_GET: return is_about(hosted, frame) ? show(ctx, host, frame, out, err) : 0;
    case FRAME_LOG: return is_about(hosted, frame) ? take_log(ctx, frame, err) : 0;
    case FRAME_STATE: {
        struct rv__str state;
        rv__frame_members(frame, (const char *[]){ "state" }, &state, 1);
        return is_about(hosted, frame) ? take_state(ctx, state, err) : 0;
    }
    case FRAME_RESULT: return is_about(hosted, frame) ? take_result(ctx, frame, err) : 0;
    case FRAME_ERROR: return is_about(hosted, frame) ? take_error(ctx, frame, err) : 0;
    case FRAME_INVOKE:
    case FRAME_VALUE:
    case FRAME_CANCEL:
    case FRAME_DYING:
    case FRAME_CALL:
    case FRAME_TYPES: break;
    }
    return rv__fail(err, RV_EPARSE, "it may not say '%s'", rv__frame_type_name(frame->type));
}

/* --------------------------------------------------------------------------------- running --- */

static void begun(struct rv__invocation *self)
{
    struct rv_ctx *ctx = ((struct hosted *)self)->ctx;
    if (ctx->timeout_ms > 0)
        ctx->shop->begun(ctx);
}

/* What it prints is for its log. */
static void printed(struct rv__invocation *self, struct rv__str line)
{
    rv_log_info(((struct hosted *)self)->ctx, "%.*s", RV__ARG(line));
}

/* The host died in it: told in its log, where people look, and to the run. */
static void say_lost(struct rv_ctx *ctx, const rv_error *how)
{
    rv__ctx_keep_log(ctx, rv__wall_ms(ctx->shop->clock), RV_ERROR, rv__str(how->message),
                     (struct rv__str){ NULL, 0 });
    rv_fail(ctx, "%s", how->message);
    ctx->outcome = MSG_LOST;
}

void rv__hosted_run(struct rv__work *work)
{
    struct rv_ctx *ctx = (struct rv_ctx *)work;
    struct rv__hosts *hosts = NULL;
    rv_error err = { .code = 0 };
    struct hosted hosted = { .invocation = { .module = ctx->module,
                                             .token = ctx->token,
                                             .ask = ask,
                                             .took = took,
                                             .begun = begun,
                                             .printed = printed },
                             .ctx = ctx,
                             .id = rv_ctx_execution_id(ctx) };
    int rc = rv__workshop_hosts(ctx->shop, &hosts, &err);
    if (rc == RV_OK)
        rc = rv__hosts_invoke(hosts, &hosted.invocation, &err);
    if (rc == 1)
        say_lost(ctx, &err);
    else if (rc < 0)
        rv__ctx_failed(ctx, &err);
}

int rv__workshop_hosts(struct rv__workshop *shop, struct rv__hosts **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&shop->hosts_lock);
    if (shop->hosts == NULL)
        rc = rv__hosts_new(&shop->hosts_opts, &shop->hosts, err);
    *ret = shop->hosts;
    pthread_mutex_unlock(&shop->hosts_lock);
    return rc;
}

/* ------------------------------------------------------------------------------ what it has --- */

struct described {
    struct rv__invocation invocation; /* first */
    rv_workflow *workflow;
};

static void ask_nothing(struct rv__invocation *self, struct rv__host *host, struct rv__buf *out)
{
    (void)self;
    (void)host;
    (void)out;
}

/* {plan, functions: [name]} as a workflow. */
static int take_register(struct described *d, const struct rv__frame *frame, rv_error *err)
{
    struct rv__str has[2], value, name;
    struct rv__json_iter it;
    rv__frame_members(frame, (const char *[]){ "plan", "functions" }, has, 2);
    if (rv__str_none(has[0]) || rv__json_type(has[0]) != RV__JSON_OBJECT || rv__str_none(has[1]))
        return rv__fail(err, RV_EPARSE, "it registers without a plan, or without functions");
    int rc = rv__workflow_read(has[0], &d->workflow, err);
    if (rc < 0)
        return rc;
    rv__draft_hosted(d->workflow->draft);
    rv__json_iter_init(&it, has[1]);
    while (rv__json_next(&it, NULL, &value)) {
        if (rv__json_type(value) != RV__JSON_STRING ||
            rv__json_string(value, &d->workflow->arena, &name) < 0)
            return rv__fail(err, RV_EPARSE, "a function without a name");
        rv__workflow_hosted(d->workflow, name, d->invocation.module);
    }
    return 1;
}

/* What the host says is wrong with the file, in its own words. */
static int tell(struct rv__str json, rv_error *err)
{
    struct rv__arena arena;
    struct rv__str text = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (rv__json_type(json) == RV__JSON_STRING)
        (void)rv__json_string(json, &arena, &text); /* no memory: as it came, then */
    int rc = rv__fail(err, RV_ETOOBIG, "%.*s", RV__ARG(text));
    rv__arena_done(&arena);
    return rc;
}

static int took_description(struct rv__invocation *self, struct rv__host *host,
                            const struct rv__frame *frame, struct rv__buf *out, rv_error *err)
{
    struct rv__str error, message;
    (void)host;
    (void)out;
    if (frame->type == FRAME_HELLO)
        return 0;
    if (frame->type == FRAME_REGISTER)
        return take_register((struct described *)self, frame, err);
    rv__frame_members(frame, (const char *[]){ "error" }, &error, 1);
    if (frame->type == FRAME_ERROR && !rv__str_none(error) &&
        rv__json_get(error, "message", &message))
        return tell(message, err);
    return rv__fail(err, RV_EPARSE, "it said '%s' before anything was asked",
                    rv__frame_type_name(frame->type));
}

int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err)
{
    struct described d = { .invocation = { .module = module,
                                           .fresh = true,
                                           .ask = ask_nothing,
                                           .took = took_description } };
    int rc = rv__hosts_invoke(hosts, &d.invocation, err);
    if (rc == RV_OK) {
        *ret = d.workflow;
        return RV_OK;
    }
    rv_workflow_free(d.workflow);
    if (err != NULL)
        err->code = RV_EINVAL;
    return rc > 0 || rc == RV_ETOOBIG ? RV_EINVAL : rc;
}
