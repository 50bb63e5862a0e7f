/* chat.c: a turn of a chat: sends the conversation so far to its provider, and turns the answer into an outcome
 * (SPEC §9). Also the arguments of a tool call, which are the input of the tool's body.
 *
 * The conversation is what the state machine has recorded (rv__view.talk): the answers, with the calls in their
 * states, and the results of the tools. So nothing is kept here between two turns, and a turn that is repeated after
 * a crash sends the same request. Begins on the evaluator's thread, ends on that of the I/O loop.
 *
 * An answer that is streamed appears in the log piece by piece. It is recorded when it is complete.
 *
 * An answer that does not match its schema is recorded like any other, with the error as `invalid` in its state and a
 * call of no tool, so that the model is told and asked again; a second one in a row fails. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mask.h"
#include "work/attached.h"
#include "work/prompts.h"
#include "work/secrets.h"
#include "work/work.h"

enum {
    WITHIN_MS =
        600000, /* time limit of one request if its step sets none: models think for minutes */
    FIRST_WAIT_MS =
        1000, /* wait if a server is busy and does not say for how long; doubled each time, */
    MOST_WAIT_MS = 60000, /* up to this */
    KEPT_PROMPT_BYTES =
        256 << 10,        /* limit of a prompt that is kept for later attempts of its state */
    INVALID_BYTES = 2000, /* limit of what the model is told about an answer that does not match */
    ANSWER_BYTES =
        64 << 20, /* limit of an answer as received: in a stream each word has its own event */
};
#define MOST_COST 1e9 /* limit of one request: a provider may report any number of tokens */

/* --------------------------------------------------------------------------- what was said --- */

/* The turns and calls so far, oldest first. */
struct said {
    const struct rv__entry **at;
    size_t count;
};

static int gather(struct rv_ctx *ctx, struct said *ret)
{
    size_t count = 0;
    const struct rv__entry *e;
    for (e = ctx->view.talk; e != NULL && rv__entry_number(e) != 0; e = rv__entry_before(e))
        count++;
    ret->count = count;
    ret->at = rv__arena_zalloc(&ctx->arena, count + 1, sizeof *ret->at);
    if (ret->at == NULL)
        return RV_ENOMEM;
    for (e = ctx->view.talk; count > 0; e = rv__entry_before(e))
        ret->at[--count] = e;
    return RV_OK;
}

/* Read the state or the result of an entry, as JSON in the arena. */
static int read_entry(struct rv_ctx *ctx, const struct rv__entry *entry, bool state,
                      struct rv__str *ret, rv_error *err)
{
    struct rv__stored_rows rows;
    struct rv__buf text;
    rv__stored_rows_of(&rows, ctx);
    rv__buf_init(&text, RV__AGENT_REQUEST_BYTES);
    int rc = state ? rv__entry_state(entry, &rows.source, &text, err)
                   : rv__entry_result(entry, &rows.source, &text, err);
    if (rc == RV_OK && rv__str_copy(&ctx->arena, rv__buf_view(&text), ret) < 0)
        rc = rv__nomem(err);
    rv__buf_done(&text);
    return rc;
}

static bool is(struct rv__str json, enum rv__json_type type)
{
    return json.len > 0 && rv__json_type(json) == type;
}

/* A text as it is, null as none, anything else as JSON. */
static struct rv__str as_text(struct rv_ctx *ctx, struct rv__str json)
{
    if (is(json, RV__JSON_NULL))
        return (struct rv__str){ NULL, 0 };
    return rv__ctx_text(ctx, json);
}

/* The result of a tool, or the error if it failed. */
static int tool_said(struct rv_ctx *ctx, const struct rv__entry *entry, struct rv__message *ret,
                     rv_error *err)
{
    struct rv__str json = { NULL, 0 }, message;
    if (rv__entry_status(entry) == STATUS_COMPLETED) {
        int rc = read_entry(ctx, entry, false, &json, err);
        ret->text = rc == RV_OK ? as_text(ctx, json) : json;
        if (rc == RV_OK && rv__str_none(ret->text))
            ret->text = rv__str("null");
        return rc;
    }
    struct rv__blob *error = rv__entry_error(entry);
    ret->failed = true;
    ret->text = rv__str("it failed");
    if (error != NULL && rv__json_get(rv__blob_str(error), "message", &message))
        ret->text = rv__ctx_text(ctx, message);
    return RV_OK;
}

static const struct rv__entry *find_call(const struct said *said, size_t turn, int call)
{
    int64_t number = rv__entry_number(said->at[turn]) + call + 1;
    for (size_t i = turn + 1; i < said->count; i++) {
        if (rv__entry_number(said->at[i]) == number)
            return said->at[i];
        if (rv__chat_call(rv__entry_number(said->at[i])) < 0)
            break; /* the next turn */
    }
    return NULL;
}

static struct rv__str no_such_tool(struct rv_ctx *ctx, struct rv__str name)
{
    const struct rv__node *chat = ctx->view.node->body->owner;
    struct rv__buf text;
    struct rv__str ret = RV__STR("there is no such tool");
    rv__buf_init(&text, RV__STATE_MAX_BYTES);
    rv__buf_text(&text, "there is no tool ");
    rv__buf_str(&text, name);
    rv__buf_text(&text, chat->body_count > 1 ? "; there are: " : ": there are none");
    for (uint32_t i = 1; i < chat->body_count; i++) {
        rv__buf_text(&text, i > 1 ? ", " : "");
        rv__buf_str(&text, chat->bodies[i].alias);
    }
    if (text.rc == RV_OK)
        (void)rv__str_copy(&ctx->arena, rv__buf_view(&text), &ret); /* else the short one */
    rv__buf_done(&text);
    return ret;
}

static bool is_tool(struct rv_ctx *ctx, struct rv__str name)
{
    return is(name, RV__JSON_STRING) &&
           rv__chat_tool(ctx->view.node->body->owner, rv__ctx_text(ctx, name)) != 0;
}

struct messages {
    struct rv__message *at;
    size_t count, cap;
};

static struct rv__message *add_message(struct rv_ctx *ctx, struct messages *to, enum rv__role role)
{
    if (to->count == to->cap) {
        size_t cap = to->cap ? to->cap * 2 : 16;
        struct rv__message *more = rv__arena_zalloc(&ctx->arena, cap, sizeof *more);
        if (more == NULL)
            return NULL;
        if (to->count > 0)
            memcpy(more, to->at, to->count * sizeof *more);
        to->at = more;
        to->cap = cap;
    }
    struct rv__message *m = &to->at[to->count++];
    *m = (struct rv__message){ .role = role };
    return m;
}

/* Add the calls of a turn, each with its answer. */
static int add_calls(struct rv_ctx *ctx, const struct said *said, size_t turn, struct rv__str calls,
                     struct messages *to, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str call, id, name;
    int rc = RV_OK, number = 0;
    rv__json_iter_init(&it, calls);
    for (; rc == RV_OK && rv__json_next(&it, NULL, &call); number++) {
        if (!rv__json_get(call, "id", &id) || !rv__json_get(call, "name", &name))
            continue;
        struct rv__message *m = add_message(ctx, to, ROLE_TOOL);
        const struct rv__entry *entry = find_call(said, turn, number);
        if (m == NULL)
            return rv__nomem(err);
        m->call_id = id;
        m->failed = entry == NULL;
        if (entry == NULL)
            m->text = is_tool(ctx, name) ? rv__str("it was not called") : no_such_tool(ctx, name);
        else
            rc = tool_said(ctx, entry, m, err);
    }
    return rc;
}

static int add_turn(struct rv_ctx *ctx, const struct said *said, size_t turn, struct messages *to,
                    rv_error *err)
{
    struct rv__str state = { NULL, 0 }, result = state, calls, invalid, text;
    int rc = read_entry(ctx, said->at[turn], true, &state, err);
    if (rc == RV_OK)
        rc = read_entry(ctx, said->at[turn], false, &result, err);
    if (rc < 0)
        return rc;
    struct rv__message *m = add_message(ctx, to, ROLE_ASSISTANT);
    if (m == NULL)
        return rv__nomem(err);
    m->text = as_text(ctx, result);
    if (!is(state, RV__JSON_OBJECT))
        return RV_OK;
    if (rv__json_get(state, "text", &text)) /* the entry's result is what the model had set */
        m->text = as_text(ctx, text);
    if (rv__json_get(state, "invalid", &invalid)) {
        struct rv__message *again = add_message(ctx, to, ROLE_USER);
        if (again == NULL)
            return rv__nomem(err);
        again->text = rv__ctx_text(ctx, invalid);
        return RV_OK;
    }
    if (!rv__json_get(state, "calls", &calls) || !is(calls, RV__JSON_ARRAY))
        return RV_OK;
    m->calls = calls;
    return add_calls(ctx, said, turn, calls, to, err);
}

/* ----------------------------------------------------------------------------- what was set --- */

static bool has_member(struct rv_ctx *ctx, struct rv__str object, struct rv__str name)
{
    struct rv__json_iter it;
    struct rv__str key;
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, NULL))
        if (rv__json_string_is(key, rv__ctx_text(ctx, name)))
            return true;
    return false;
}

/* Write one object with the members of all these objects. If a name occurs twice, the last one counts. */
static void put_merged(struct rv_ctx *ctx, const struct rv__str *objects, size_t count,
                       struct rv__buf *out)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    rv__buf_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        rv__json_iter_init(&it, objects[i]);
        while (rv__json_next(&it, &key, &value)) {
            size_t later = i + 1;
            while (later < count && !has_member(ctx, objects[later], key))
                later++;
            if (later < count)
                continue;
            rv__buf_text(out, first ? "" : ",");
            first = false;
            rv__buf_str(out, key);
            rv__buf_char(out, ':');
            rv__buf_str(out, value);
        }
    }
    rv__buf_char(out, '}');
}

/* Take the arguments of all calls of set_outputs in this conversation, which begins at `from`. */
static int take_outputs(struct rv_ctx *ctx, const struct said *said, size_t from, rv_error *err)
{
    struct rv__str *objects = rv__arena_zalloc(&ctx->arena, said->count + 1, sizeof *objects);
    struct rv__buf out;
    size_t count = 0;
    int rc = RV_OK;
    if (objects == NULL)
        return rv__nomem(err);
    for (size_t i = from; i < said->count && rc == RV_OK; i++) {
        const struct rv__entry *entry = said->at[i];
        if (rv__chat_call(rv__entry_number(entry)) < 0 ||
            rv__entry_status(entry) != STATUS_COMPLETED ||
            rv__tool_own(rv__entry_node(entry)->body) != OWN_SET_OUTPUTS)
            continue;
        rc = read_entry(ctx, entry, false, &objects[count], err);
        if (rc == RV_OK && is(objects[count], RV__JSON_OBJECT))
            count++;
    }
    if (rc < 0 || count == 0)
        return rc;
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    put_merged(ctx, objects, count, &out);
    rc = rv__buf_err(&out, err);
    if (rc == RV_OK && rv__str_copy(&ctx->arena, rv__buf_view(&out), &ctx->outputs) < 0)
        rc = rv__nomem(err);
    rv__buf_done(&out);
    return rc;
}

/* ----------------------------------------------------------------------------- the request --- */

/* [{"name":…,"description":…,"schema":…}] of the tools of its chat. */
static int write_tools(struct rv_ctx *ctx, struct rv__str *ret, rv_error *err)
{
    const struct rv__node *chat = ctx->view.node->body->owner;
    struct rv__buf out;
    if (chat->body_count < 2)
        return RV_OK;
    rv__buf_init(&out, RV__AGENT_REQUEST_BYTES);
    rv__offers_write(ctx, &out);
    int rc = rv__buf_err(&out, err);
    if (rc == RV_OK && rv__str_copy(&ctx->arena, rv__buf_view(&out), ret) < 0)
        rc = rv__nomem(err);
    rv__buf_done(&out);
    return rc;
}

static bool refuse(struct rv_ctx *ctx, const char *code)
{
    rv__ctx_error_code(ctx, code);
    ctx->behavior = BEHAVIOR_FINAL; /* a retry would fail in the same way */
    return false;
}

static bool get_text(struct rv_ctx *ctx, struct rv__str with, const char *key, struct rv__str *ret)
{
    struct rv__str json;
    if (!rv__json_get(with, key, &json) || is(json, RV__JSON_NULL))
        return false;
    *ret = rv__ctx_text(ctx, json);
    return true;
}

/* Whether its plan names the provider. Then the engine has applied the provider's limits before this began. */
static bool is_named(const struct rv_ctx *ctx)
{
    struct rv__str name;
    return rv__json_get(ctx->view.node->step.with, "provider", &name) &&
           rv__json_string_is(name, rv__str(rv__provider_name(ctx->provider)));
}

/* Find the provider to ask. */
static bool take_provider(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str name = { NULL, 0 };
    struct rv__buf names;
    (void)get_text(ctx, with, "provider", &name);
    ctx->provider = rv__providers_find(ctx->services->providers, name);
    if (ctx->provider == NULL) {
        rv__buf_init(&names, 400);
        rv__providers_names(ctx->services->providers, &names);
        rv_fail(ctx,
                "there is no provider '%.*s' in the configuration (rival.yaml beside the store, or "
                "--config)%s%.*s",
                (int)(name.len < 60 ? name.len : 60), name.at != NULL ? name.at : "",
                names.len > 0 ? "; there are: " : ", which has none",
                RV__ARG(rv__buf_view(&names)));
        rv__buf_done(&names);
        return refuse(ctx, "noProvider");
    }
    if (rv__provider_is_limited(ctx->provider) && !is_named(ctx)) {
        rv_fail(ctx, "provider '%s' has limits: a chat must name it, not compute its name",
                rv__provider_name(ctx->provider));
        return refuse(ctx, "noProvider");
    }
    if (rv__node_bounds_cost(ctx->view.node) && !rv__provider_has_prices(ctx->provider)) {
        rv_fail(ctx, RV__NO_PRICES, rv__provider_name(ctx->provider));
        return refuse(ctx, "noPrices");
    }
    if (rv__provider_key(ctx->provider) == NULL) {
        rv_fail(ctx, "the key of provider '%s' is not set: give %s to the engine's environment",
                rv__provider_name(ctx->provider), rv__provider_key_variable(ctx->provider));
        return refuse(ctx, "noKey");
    }
    return true;
}

static bool is_first_turn(const struct rv_ctx *ctx)
{
    return rv__chat_turn(ctx->view.chat_number) == 1;
}

/* The index of the first turn of this conversation. Those before it belong to earlier attempts. */
static size_t first_of_this(const struct rv_ctx *ctx, const struct said *said)
{
    size_t at = said->count;
    while (!is_first_turn(ctx) && at > 0) {
        int64_t number = rv__entry_number(said->at[--at]);
        if (rv__chat_turn(number) == 1 && rv__chat_call(number) < 0)
            break;
    }
    return at;
}

/* `files` NULL: none. */
static int add_prompt(struct rv_ctx *ctx, struct rv__str text, const struct rv__attached *files,
                      struct messages *to, rv_error *err)
{
    struct rv__message *m = add_message(ctx, to, ROLE_USER);
    if (m == NULL)
        return rv__nomem(err);
    m->text = text;
    m->files = files != NULL ? files->files : NULL;
    m->file_count = files != NULL ? files->count : 0;
    return RV_OK;
}

/* Add the conversations of earlier attempts of its state, each with its prompt. */
static int add_kept(struct rv_ctx *ctx, const struct said *said, size_t count, struct messages *to,
                    rv_error *err)
{
    int rc = RV_OK;
    for (size_t i = 0; i < count && rc == RV_OK; i++) {
        struct rv__str state = { NULL, 0 }, prompt;
        int64_t number = rv__entry_number(said->at[i]);
        if (rv__chat_call(number) >= 0)
            continue;
        if (rv__chat_turn(number) == 1)
            rc = read_entry(ctx, said->at[i], true, &state, err);
        if (rc == RV_OK && is(state, RV__JSON_OBJECT) && rv__json_get(state, "prompt", &prompt))
            rc = add_prompt(ctx, rv__ctx_text(ctx, prompt), NULL, to, err);
        if (rc == RV_OK)
            rc = add_turn(ctx, said, i, to, err);
    }
    return rc;
}

/* For people: what the first request of a conversation says, as JSON. */
static void give_json(struct rv_ctx *ctx, const char *name, struct rv__str json)
{
    if (is_first_turn(ctx) && !rv__str_none(json))
        rv__ctx_given(ctx, name, json);
}

/* The same for a text. */
static void give(struct rv_ctx *ctx, const char *name, struct rv__str text)
{
    struct rv__buf json;
    if (!is_first_turn(ctx) || rv__str_none(text))
        return;
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the text */
    rv__buf_json_str(&json, text);
    if (json.rc == RV_OK)
        give_json(ctx, name, rv__buf_view(&json));
    rv__buf_done(&json);
}

/* Do two lists of files, as they are described, have the same contents? Names in the journal may be masked. */
static bool same_contents(struct rv__str one, struct rv__str other)
{
    struct rv__json_iter a, b;
    struct rv__str file, twin, hash, twins;
    size_t count = is(one, RV__JSON_ARRAY) ? rv__json_count(one) : 0;
    if (count != (is(other, RV__JSON_ARRAY) ? rv__json_count(other) : 0))
        return false;
    if (count == 0)
        return true;
    rv__json_iter_init(&a, one);
    rv__json_iter_init(&b, other);
    while (rv__json_next(&a, NULL, &file) && rv__json_next(&b, NULL, &twin))
        if (!is(file, RV__JSON_OBJECT) || !is(twin, RV__JSON_OBJECT) ||
            !rv__json_get(file, "sha256", &hash) || !rv__json_get(twin, "sha256", &twins) ||
            !rv__str_eq(hash, twins))
            return false;
    return true;
}

/* Are the attached files those that the first request of this conversation had? `first` is its answer. */
static int check_same_files(struct rv_ctx *ctx, const struct rv__entry *first,
                            const struct rv__attached *files, rv_error *err)
{
    struct rv__str state = { NULL, 0 }, before = rv__str("[]");
    int rc = read_entry(ctx, first, true, &state, err);
    if (rc == RV_OK && is(state, RV__JSON_OBJECT))
        (void)rv__json_get(state, "attached", &before);
    if (rc == RV_OK && !same_contents(before, files->described))
        rc = rv__fail(err, RV_EINVAL,
                      "an attached file has changed since the conversation began; it was %.*s",
                      (int)(before.len < 400 ? before.len : 400), before.at);
    return rc;
}

static int take_talk(struct rv_ctx *ctx, struct rv__str with, struct rv__model_request *talk,
                     rv_error *err)
{
    struct messages messages = { .at = NULL };
    struct said said = { .count = 0 };
    struct rv__prompts asked;
    struct rv__attached files;
    int rc = rv__prompts_take(ctx, with, &asked, err);
    if (rc == RV_OK && gather(ctx, &said) < 0)
        rc = rv__nomem(err);
    if (rc < 0)
        return rc;
    size_t own = first_of_this(ctx, &said);
    talk->model = rv__provider_model(ctx->provider);
    (void)get_text(ctx, with, "model", &talk->model);
    talk->system = asked.system;
    talk->schema = asked.schema;
    give(ctx, "system", asked.system);
    give(ctx, "prompt", asked.prompt);
    rc = rv__attached_take(ctx, with, &files, err);
    if (rc == RV_OK && own < said.count)
        rc = check_same_files(ctx, said.at[own], &files, err);
    if (rc < 0) {
        ctx->bad_files = rc == RV_EINVAL;
        return rc;
    }
    give_json(ctx, "attached", files.described);
    if (is_first_turn(ctx))
        ctx->attached = files.described;
    if (asked.keeps_turns && is_first_turn(ctx))
        ctx->asked = rv__str_begin(asked.prompt, KEPT_PROMPT_BYTES);
    if (asked.keeps_turns)
        rc = add_kept(ctx, &said, own, &messages, err);
    if (rc == RV_OK)
        rc = add_prompt(ctx, asked.prompt, &files, &messages, err);
    for (size_t i = own; i < said.count && rc == RV_OK; i++)
        if (rv__chat_call(rv__entry_number(said.at[i])) < 0)
            rc = add_turn(ctx, &said, i, &messages, err);
    if (rc == RV_OK)
        rc = take_outputs(ctx, &said, own, err);
    if (rc == RV_OK)
        rc = write_tools(ctx, &talk->tools, err);
    talk->messages = messages.at;
    talk->count = messages.count;
    return rc;
}

/* Write the body of the request, in the arena. */
static bool take_body(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__model_request talk = { .provider = ctx->provider,
                                      .stream = rv__provider_streams(ctx->provider) };
    struct rv__buf body;
    rv_error err = { .message = "" };
    rv__buf_init(&body, RV__AGENT_REQUEST_BYTES);
    int rc = take_talk(ctx, with, &talk, &err);
    if (rc == RV_OK && rv__str_none(talk.model)) {
        rv_fail(ctx, "neither the chat nor its provider '%s' names a model",
                rv__provider_name(ctx->provider));
        rv__buf_done(&body);
        return refuse(ctx, "noModel");
    }
    if (rc == RV_OK)
        rc = rv__model_request_write(&talk, &body, &err);
    if (rc == RV_OK &&
        (rv__str_copy(&ctx->arena, rv__buf_view(&body), &ctx->fetch.body) < 0 ||
         (!rv__str_none(talk.schema) && rv__str_copy(&ctx->arena, talk.schema, &ctx->returns) < 0)))
        rc = rv__nomem(&err);
    rv__buf_done(&body);
    if (rc == RV_OK)
        return true;
    rv_fail(ctx, "the conversation cannot be sent: %s", err.message);
    if (rc == RV_EINVAL)
        return refuse(ctx, ctx->bad_files ? "badAttachment" : "noPrompt");
    return rc == RV_ETOOBIG ? refuse(ctx, "tooLarge") : false;
}

/* Retry not before `wait_ms`, and not at the same time as all the others. */
static void come_later(struct rv_ctx *ctx, int64_t wait_ms)
{
    uint64_t some = (uint64_t)rv__mono_ms(ctx->services->clock) * 2654435761u ^
                    ctx->view.actor * 40503u;
    ctx->behavior = BEHAVIOR_LATER;
    ctx->wait_ms = wait_ms + (int64_t)(some % 1000) * wait_ms / 4000; /* up to a quarter more */
}

/* Mask the provider's key, in case the provider's text contains it. */
static struct rv__str without_key(struct rv_ctx *ctx, struct rv__str text)
{
    const char *key = rv__provider_key(ctx->provider);
    size_t len = key != NULL ? strlen(key) : 0;
    if (len < 8 || text.len < len || memmem(text.at, text.len, key, len) == NULL)
        return text;
    char *copy = rv__arena_dup(&ctx->arena, text.at, text.len);
    if (copy == NULL)
        return (struct rv__str){ "", 0 };
    for (char *at; (at = memmem(copy, text.len, key, len)) != NULL;)
        memset(at, '*', len);
    return (struct rv__str){ copy, text.len };
}

/* ------------------------------------------------------------------------------ as it comes --- */

struct rv__streaming {
    struct rv__incoming *stream;
    struct rv__mask_stream *masked; /* NULL: the plan has no secrets */
    size_t told;                    /* bytes of its text that were given to the mask */
    struct rv__buf unsaid;          /* masked text that is not in the log yet */
};

static void streaming_done(struct rv_ctx *ctx)
{
    if (ctx->streaming == NULL)
        return;
    rv__incoming_free(ctx->streaming->stream);
    rv__mask_stream_free(ctx->streaming->masked);
    rv__buf_done(&ctx->streaming->unsaid);
    ctx->streaming = NULL;
}

/* False: the answer is no event stream, or there is no memory. Then it is read when it is complete. */
static bool streaming_begin(struct rv_ctx *ctx, struct rv__str head)
{
    struct rv__mask *mask = rv__secrets_mask(ctx->secrets);
    if (ctx->streaming != NULL || !rv__fetch_is_type(head, "text/event-stream"))
        return ctx->streaming != NULL;
    ctx->streaming = rv__arena_zalloc(&ctx->arena, 1, sizeof *ctx->streaming);
    if (ctx->streaming == NULL)
        return false;
    rv__buf_init(&ctx->streaming->unsaid, ANSWER_BYTES);
    if (rv__incoming_new(ctx->provider, &ctx->streaming->stream, NULL) == RV_OK &&
        (mask == NULL || rv__mask_stream_new(mask, &ctx->streaming->masked, NULL) == RV_OK))
        return true;
    streaming_done(ctx);
    return false;
}

/* How many bytes at the end of a text may be the beginning of the key. */
static size_t maybe_key(struct rv__str text, const char *key, size_t len)
{
    size_t most = text.len < len - 1 ? text.len : len - 1;
    for (size_t n = most; n > 0; n--)
        if (memcmp(text.at + text.len - n, key, n) == 0)
            return n;
    return 0;
}

/* Write to the log what certainly contains no secret. */
static void say_pieces(struct rv_ctx *ctx, bool all)
{
    struct rv__streaming *s = ctx->streaming;
    struct rv__str text = rv__incoming_text(s->stream);
    struct rv__str piece = { text.at + s->told, text.len - s->told };
    const char *key = rv__provider_key(ctx->provider);
    size_t len = key != NULL ? strlen(key) : 0;
    if (s->masked != NULL && piece.len > 0)
        rv__mask_stream_add(s->masked, piece, &s->unsaid);
    else
        rv__buf_str(&s->unsaid, piece);
    if (s->masked != NULL && all)
        rv__mask_stream_end(s->masked, &s->unsaid);
    s->told = text.len;
    if (s->unsaid.rc < 0) /* no memory: some of it is missing in the log */
        rv__buf_reset(&s->unsaid);
    struct rv__str said = without_key(ctx, rv__buf_view(&s->unsaid));
    size_t held = all || len < RV__MASK_SHORTEST ? 0 : maybe_key(said, key, len);
    said.len -= held;
    if (said.len == 0)
        return;
    rv__ctx_keep_stream(ctx, rv__wall_ms(ctx->services->clock), said);
    ctx->streamed = true;
    size_t keep_from = s->unsaid.len - held;
    memmove(s->unsaid.text, s->unsaid.text + keep_from, held);
    rv__buf_cut(&s->unsaid, held);
}

static void came(struct rv__fetch *fetch, struct rv__str head, struct rv__str body)
{
    struct rv_ctx *ctx = RV__CONTAINER(fetch, struct rv_ctx, fetch);
    if (!streaming_begin(ctx, head))
        return;
    rv__incoming_take(ctx->streaming->stream, body);
    say_pieces(ctx, false);
}

/* --------------------------------------------------------------------------------- the end --- */

/* The JSON in a text. Some models put it into a code fence. */
static struct rv__str unfenced(struct rv__str text)
{
    while (text.len > 0 && strchr(" \t\r\n", text.at[text.len - 1]) != NULL)
        text.len--;
    while (text.len > 0 && strchr(" \t\r\n", *text.at) != NULL)
        text = (struct rv__str){ text.at + 1, text.len - 1 };
    const char *line = text.len > 6 && memcmp(text.at, "```", 3) == 0
                           ? memchr(text.at, '\n', text.len)
                           : NULL;
    if (line == NULL || memcmp(text.at + text.len - 3, "```", 3) != 0)
        return text;
    return (struct rv__str){ line + 1, (size_t)(text.at + text.len - 3 - (line + 1)) };
}

/* Whether the answer matches its schema. *value: the answer as JSON. If it does not match, `why` says what is wrong. */
static int check_value(struct rv_ctx *ctx, struct rv__str text, struct rv__str *value,
                       struct rv__buf *why, rv_error *err)
{
    struct rv__schema *schema = NULL;
    struct rv__violations bad;
    rv_error wrong;
    rv__violations_init(&bad, &ctx->arena);
    int rc = rv__schema_new(ctx->returns, NULL, &schema, err);
    if (rc < 0)
        return rc;
    if (rv__json_check(unfenced(text), RV__JSON_VALUE_DEPTH, value, &wrong) < 0) {
        rv__buf_text(why, "it is not JSON: ");
        rv__buf_text(why, wrong.message);
    } else if (rv__schema_check(schema, *value, &bad, &wrong) < 0) {
        for (size_t i = 0; i < bad.count && why->len < INVALID_BYTES / 2; i++) {
            rv__buf_text(why, i > 0 ? "; " : "");
            rv__buf_str(why, bad.items[i].path);
            rv__buf_text(why, bad.items[i].path.len > 0 ? " " : "");
            rv__buf_str(why, bad.items[i].message);
        }
        if (bad.count == 0)
            rv__buf_text(why, wrong.message);
    }
    rv__schema_free(schema);
    return RV_OK;
}

/* Whether the model was already asked to correct its previous answer. */
static bool asked_again(struct rv_ctx *ctx)
{
    struct rv__str state, invalid;
    return ctx->view.talk != NULL && !is_first_turn(ctx) &&
           rv__chat_call(rv__entry_number(ctx->view.talk)) < 0 &&
           read_entry(ctx, ctx->view.talk, true, &state, NULL) == RV_OK &&
           is(state, RV__JSON_OBJECT) && rv__json_get(state, "invalid", &invalid);
}

static void put_text(struct rv_ctx *ctx, const char *key, struct rv__str text)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__STATE_MAX_BYTES);
    if (rv__str_none(text))
        rv__buf_text(&json, "null");
    else
        rv__buf_json_str(&json, text);
    if (json.rc == RV_OK)
        (void)rv__ctx_state(ctx, rv__str(key), rv__buf_view(&json)); /* remembers its failure */
    rv__buf_done(&json);
}

static void take_text(struct rv_ctx *ctx, struct rv__str text)
{
    struct rv__buf json;
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    if (text.len > 0)
        rv__buf_json_str(&json, text);
    else
        rv__buf_text(&json, "null");
    if (rv__buf_err(&json, NULL) < 0 || rv__ctx_result(ctx, rv__buf_view(&json)) < 0)
        rv_fail(ctx, "out of memory");
    rv__buf_done(&json);
}

/* Take an answer that must match its schema. */
static void take_value(struct rv_ctx *ctx, struct rv__str text)
{
    struct rv__str value;
    struct rv__buf why, told;
    rv_error err = { .message = "" };
    rv__buf_init(&why, 8 * (size_t)INVALID_BYTES);
    rv__buf_init(&told, 16 * (size_t)INVALID_BYTES);
    int rc = check_value(ctx, text, &value, &why, &err);
    if (rc < 0 || why.rc < 0) {
        rv_fail(ctx, "the answer cannot be held to its returnType: %s",
                rc < 0 ? err.message : "out of memory");
    } else if (why.len == 0) {
        if (rv__ctx_result(ctx, value) < 0)
            rv_fail(ctx, "out of memory");
    } else if (asked_again(ctx)) {
        rv_fail(ctx, "the model was asked twice, and its answer does not fit the returnType: %.*s",
                RV__ARG(rv__buf_view(&why)));
        rv__ctx_error_code(ctx, "badAnswer");
    } else {
        take_text(ctx, text);
        rv__buf_text(&told, "Your answer does not fit the JSON Schema: ");
        rv__buf_str(&told, rv__buf_view(&why));
        rv__buf_text(&told, rv__str_none(ctx->outputs)
                                ? ". Answer again with one JSON value that fits it, and nothing "
                                  "else."
                                : ". Call set_outputs again, so that it does.");
        put_text(ctx, "invalid", rv__buf_view(&told));
        (void)rv__ctx_state(ctx, rv__str("calls"), rv__str("[{\"name\":\"\"}]")); /* of no tool */
    }
    rv__buf_done(&why);
    rv__buf_done(&told);
}

static void take_reply(struct rv_ctx *ctx, const struct rv__model_answer *reply)
{
    double cost = rv__provider_cost(ctx->provider, reply->input_tokens, reply->output_tokens);
    struct rv__buf usage;
    rv__buf_init(&usage, 200); /* three numbers */
    rv__buf_fmt(&usage, "{\"inputTokens\":%lld,\"outputTokens\":%lld",
                (long long)reply->input_tokens, (long long)reply->output_tokens);
    if (cost > 0) {
        rv__buf_text(&usage, ",\"cost\":");
        cost = cost < MOST_COST ? cost : MOST_COST;
        rv__cost_write((int64_t)(cost * (double)RV__COST_UNIT + 0.5), &usage);
    }
    rv__buf_char(&usage, '}');
    ctx->outcome = MSG_DONE;
    if (rv__buf_err(&usage, NULL) < 0)
        rv_fail(ctx, "out of memory");
    else
        (void)rv__ctx_state(ctx, rv__str("usage"), rv__buf_view(&usage));
    rv__buf_done(&usage);
    put_text(ctx, "model", reply->model);
    put_text(ctx, "finishReason", reply->finish);
    if (!rv__str_none(ctx->asked))
        put_text(ctx, "prompt", ctx->asked);
    if (!rv__str_none(ctx->attached))
        (void)rv__ctx_state(ctx, rv__str("attached"), ctx->attached);
    if (!rv__str_none(reply->calls)) {
        (void)rv__ctx_state(ctx, rv__str("calls"), reply->calls);
        take_text(ctx, reply->text);
    } else if (!rv__str_none(ctx->outputs)) {
        put_text(ctx, "text", reply->text);
        if (!rv__str_none(ctx->returns))
            take_value(ctx, ctx->outputs);
        else if (rv__ctx_result(ctx, ctx->outputs) < 0)
            rv_fail(ctx, "out of memory");
    } else if (!rv__str_none(ctx->returns)) {
        take_value(ctx, reply->text);
    } else {
        take_text(ctx, reply->text);
    }
}

static int64_t next_wait(const struct rv_ctx *ctx)
{
    int64_t wait = FIRST_WAIT_MS;
    for (int i = 1; i < ctx->view.attempt && wait < MOST_WAIT_MS; i++)
        wait *= 2;
    return wait < MOST_WAIT_MS ? wait : MOST_WAIT_MS;
}

/* The request failed, or the answer is an error. */
static void take_failure(struct rv_ctx *ctx, const struct rv__fetch_result *result)
{
    struct rv__fetch_result hidden = *result;
    struct rv__answer answer = { .json = { NULL, 0 } };
    struct rv__answer_want want = { .method = "POST",
                                    .url = rv__provider_url(ctx->provider),
                                    .as = RV__OUTPUT_JSON,
                                    .now_ms = rv__wall_ms(ctx->services->clock) };
    rv_error err;
    hidden.body = without_key(ctx, result->body);
    hidden.head = without_key(ctx, result->head);
    int rc = rv__fetch_answer(&hidden, &want, &ctx->arena, &answer, &err);
    if (rc < 0) {
        rv_fail(ctx, "%s", err.message);
        return;
    }
    rv__ctx_error(ctx, answer.json);
    ctx->behavior = answer.final ? BEHAVIOR_FINAL : BEHAVIOR_PLAIN;
    ctx->wait_ms = answer.retry_after_ms;
    bool busy = result->end == RV__FETCH_ANSWERED &&
                (result->status == 429 || result->status == 503 || result->status == 529);
    if (busy)
        come_later(ctx, answer.retry_after_ms > 0 ? answer.retry_after_ms : next_wait(ctx));
}

/* Read the complete answer. `ret` has what is known even if the answer cannot be read. */
static int read_reply(struct rv_ctx *ctx, const struct rv__fetch_result *result,
                      struct rv__model_answer *ret, rv_error *err)
{
    struct rv__str body = without_key(ctx, result->body);
    if (!streaming_begin(ctx, result->head))
        return rv__model_answer_read(ctx->provider, body, &ctx->arena, ret, err);
    int rc = rv__incoming_end(ctx->streaming->stream, body, &ctx->arena, ret, err);
    ret->text = without_key(ctx, ret->text); /* a key may have been split between pieces */
    ret->calls = without_key(ctx, ret->calls);
    say_pieces(ctx, true); /* if the answer broke off, the pieces are all there is */
    return rc;
}

static void ended(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(fetch, struct rv_ctx, fetch);
    struct rv__model_answer reply = { .input_tokens = 0 };
    rv_error err;
    rv__io_ended(ctx);
    bool good = result->end == RV__FETCH_ANSWERED && result->status >= 200 && result->status < 300;
    int rc = good ? read_reply(ctx, result, &reply, &err) : RV_OK;
    ctx->tokens = reply.input_tokens + reply.output_tokens;
    if (!good) {
        if (ctx->streaming != NULL)
            say_pieces(ctx, true);
        take_failure(ctx, result);
    } else if (rc < 0) {
        rv_fail(ctx, "the answer of provider '%s' cannot be read: %s",
                rv__provider_name(ctx->provider), err.message);
        rv__ctx_error_code(ctx, reply.busy ? "busy" : "badAnswer");
        if (reply.busy)
            come_later(ctx, next_wait(ctx));
    } else {
        take_reply(ctx, &reply);
        rv__ctx_check_state(ctx);
    }
    streaming_done(ctx);
    rv__work_finish(ctx);
}

static void begun(struct rv__fetch *fetch)
{
    struct rv_ctx *ctx = RV__CONTAINER(fetch, struct rv_ctx, fetch);
    ctx->work.begun(&ctx->work);
}

static int start(struct rv_ctx *ctx)
{
    return rv__fetch_start(ctx->services->io, &ctx->fetch);
}

static void stop(struct rv_ctx *ctx)
{
    rv__fetch_cancel(ctx->services->io, &ctx->fetch);
}

void rv__chat_begin(struct rv_ctx *ctx, struct rv__str with)
{
    static const char *const told[] = { "provider", "model" };
    struct rv__str value;
    if (!rv__offers_ready(ctx, with))
        return;
    ctx->fetch = (struct rv__fetch){
        .method = "POST", .max_bytes = ANSWER_BYTES, .begun = begun, .came = came, .done = ended
    };
    for (size_t i = 0; is_first_turn(ctx) && i < sizeof told / sizeof *told; i++)
        if (rv__json_get(with, told[i], &value))
            rv__ctx_given(ctx, told[i], value);
    if (!take_provider(ctx, with) || !take_body(ctx, with)) {
        rv__work_finish(ctx);
        return;
    }
    ctx->fetch.url = rv__provider_url(ctx->provider);
    ctx->fetch.headers = rv__provider_headers(ctx->provider, rv__provider_key(ctx->provider),
                                              &ctx->arena);
    ctx->fetch.timeout_ms = ctx->timeout_ms > 0 ? 0 : WITHIN_MS;
    if (ctx->fetch.headers == NULL) {
        rv_fail(ctx, "out of memory");
        rv__work_finish(ctx);
        return;
    }
    rv__io_begin(ctx, "chat", start, stop);
}

/* ------------------------------------------------------------------------------- arguments --- */

/* Write {"name":…,"arguments":…}. The name is without the prefix of the tools' body and the "_" after it. */
static void put_named(struct rv_ctx *ctx, struct rv__str name, struct rv__str arguments,
                      struct rv__buf *out)
{
    size_t before = ctx->view.body->alias.len + 1;
    name = is(name, RV__JSON_STRING) ? rv__ctx_text(ctx, name) : (struct rv__str){ "", 0 };
    if (name.len > before)
        name = (struct rv__str){ name.at + before, name.len - before };
    rv__buf_text(out, "{\"name\":");
    rv__buf_json_str(out, name);
    rv__buf_text(out, ",\"arguments\":");
    rv__buf_str(out, arguments);
    rv__buf_char(out, '}');
}

void rv__chat_arguments(struct rv_ctx *ctx)
{
    struct rv__str state = { NULL, 0 }, calls, call, arguments = { NULL, 0 }, name = { NULL, 0 };
    struct rv__json_iter it;
    struct said said;
    rv_error err = { .message = "out of memory" };
    int number = rv__chat_call(ctx->view.chat_number);
    int64_t turn = ctx->view.chat_number - number - 1;
    int rc = gather(ctx, &said);
    for (size_t i = 0; rc == RV_OK && i < said.count; i++)
        if (rv__entry_number(said.at[i]) == turn)
            rc = read_entry(ctx, said.at[i], true, &state, &err);
    if (rc < 0) {
        rv_fail(ctx, "what the tool is called with cannot be read: %s", err.message);
        return;
    }
    if (is(state, RV__JSON_OBJECT) && rv__json_get(state, "calls", &calls) &&
        is(calls, RV__JSON_ARRAY)) {
        rv__json_iter_init(&it, calls);
        for (int i = 0; i <= number && rv__json_next(&it, NULL, &call); i++)
            if (i == number && is(call, RV__JSON_OBJECT)) {
                (void)rv__json_get(call, "arguments", &arguments);
                (void)rv__json_get(call, "name", &name);
            }
    }
    if (!is(arguments, RV__JSON_OBJECT)) {
        rv_fail(ctx, "the arguments of a tool must be a JSON object, not %.*s",
                (int)(arguments.len < 80 ? arguments.len : 80),
                arguments.at != NULL ? arguments.at : "");
        rv__ctx_error_code(ctx, "badInput");
        return;
    }
    struct rv__buf input;
    rv__buf_init(&input, RV__JSON_MAX_BYTES);
    if (rv__tool_is_all(
            ctx->view
                .body)) /* the body stands for all tools of a server: which one is called is an argument */
        put_named(ctx, name, arguments, &input);
    else
        rv__buf_str(&input, arguments);
    if (input.rc != RV_OK || rv__ctx_result(ctx, rv__buf_view(&input)) < 0)
        rv_fail(ctx, "out of memory");
    else
        ctx->outcome = MSG_DONE;
    rv__buf_done(&input);
}
