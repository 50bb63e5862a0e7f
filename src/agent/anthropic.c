/* anthropic.c: the protocol of /v1/messages. What tools answered is one message of the user for each turn. A schema of
 * the answer is sent as the format of the output, as far as that goes (narrow.c); the system prompt says the rest. */
#include "agent/protocol.h"

#include "base/error.h"

static void put_file(struct rv__buf *out, const struct rv__enclosed *file)
{
    bool text = file->kind == MEDIA_TEXT;
    rv__buf_fmt(out, "{\"type\":\"%s\",\"source\":{\"type\":\"%s\",\"media_type\":\"",
                file->kind == MEDIA_IMAGE ? "image" : "document", text ? "text" : "base64");
    rv__buf_str(out, text ? rv__str("text/plain") : file->type); /* of texts it takes no other */
    rv__buf_text(out, "\",\"data\":");
    if (text) {
        rv__buf_json_str(out, file->bytes);
    } else {
        rv__buf_char(out, '"');
        rv__buf_base64(out, file->bytes);
        rv__buf_char(out, '"');
    }
    rv__buf_char(out, '}');
    if (file->kind != MEDIA_IMAGE)
        rv__model_request_text(out, "title", file->name);
    rv__buf_char(out, '}');
}

static void put_assistant(struct rv__buf *out, const struct rv__message *m)
{
    struct rv__json_iter it;
    struct rv__str call, id, name, arguments;
    bool first = m->text.len == 0;
    rv__buf_text(out, ",{\"role\":\"assistant\",\"content\":[");
    if (m->text.len > 0)
        rv__model_request_part(out, m->text);
    rv__json_iter_init(&it, rv__str_none(m->calls) ? rv__str("[]") : m->calls);
    while (rv__json_next(&it, NULL, &call)) {
        if (!rv__json_get(call, "id", &id) || !rv__json_get(call, "name", &name) ||
            !rv__json_get(call, "arguments", &arguments))
            continue;
        rv__buf_text(out, first ? "" : ",");
        first = false;
        rv__buf_text(out, "{\"type\":\"tool_use\",\"id\":");
        rv__buf_str(out, id);
        rv__buf_text(out, ",\"name\":");
        rv__buf_str(out, name);
        rv__buf_text(out, ",\"input\":");
        rv__buf_str(out, rv__json_is(arguments, RV__JSON_OBJECT) ? arguments : rv__str("{}"));
        rv__buf_char(out, '}');
    }
    if (first) /* it wants something */
        rv__model_request_part(out, rv__str("(no answer)"));
    rv__buf_text(out, "]}");
}

/* All that tools say in a row. Returns how many messages that are. */
static size_t put_results(struct rv__buf *out, const struct rv__message *m, size_t count)
{
    size_t i = 0;
    rv__buf_text(out, ",{\"role\":\"user\",\"content\":[");
    for (; i < count && m[i].role == ROLE_TOOL; i++) {
        rv__buf_text(out, i == 0 ? "" : ",");
        rv__buf_text(out, "{\"type\":\"tool_result\",\"tool_use_id\":");
        rv__buf_str(out, m[i].call_id);
        rv__model_request_text(out, "content", rv__str_none(m[i].text) ? rv__str("") : m[i].text);
        rv__buf_text(out, m[i].failed ? ",\"is_error\":true}" : "}");
    }
    rv__buf_text(out, "]}");
    return i;
}

/* ,"output_config":…; true: it says all that the schema does. */
static bool put_format(struct rv__buf *out, const struct rv__model_request *request)
{
    struct rv__buf schema;
    bool left_out = true;
    if (rv__str_none(request->schema))
        return true;
    rv__buf_init(&schema, SIZE_MAX / 8); /* bounded by the schema */
    if (rv__provider_native(request->provider) &&
        rv__schema_narrow(request->schema, &schema, &left_out)) {
        rv__buf_text(out, ",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":");
        rv__buf_str(out, rv__buf_view(&schema));
        rv__buf_text(out, "}}");
    }
    if (schema.rc < 0)
        out->rc = schema.rc;
    rv__buf_done(&schema);
    return !left_out;
}

static void write(const struct rv__model_request *request, struct rv__buf *out)
{
    rv__buf_text(out, "{\"model\":");
    rv__buf_json_str(out, request->model);
    rv__buf_fmt(out, ",\"max_tokens\":%d", RV__AGENT_MAX_TOKENS);
    bool words = !put_format(out, request);
    rv__model_request_system(out, "system", request, words);
    rv__buf_text(out, ",\"messages\":[");
    size_t begin = out->len;
    for (size_t i = 0; i < request->count; i++) {
        const struct rv__message *m = &request->messages[i];
        if (m->role == ROLE_ASSISTANT) {
            put_assistant(out, m);
        } else if (m->role == ROLE_TOOL) {
            i += put_results(out, m, request->count - i) - 1;
        } else {
            rv__buf_text(out, ",{\"role\":\"user\"");
            if (m->file_count > 0)
                rv__model_request_content(out, m, put_file);
            else
                rv__model_request_text(out, "content", m->text);
            rv__buf_char(out, '}');
        }
    }
    if (out->rc == RV_OK && out->len > begin)
        out->text[begin] = ' '; /* the first has no comma before it */
    rv__buf_char(out, ']');
    rv__model_request_tools(out, request->tools, "{\"name\":", "input_schema", "}");
    rv__buf_text(out, request->stream ? ",\"stream\":true" : "");
    rv__buf_char(out, '}');
}

/* One part of the content. */
static int read_block(struct rv__str block, struct rv__buf *text, struct rv__buf *calls,
                      struct rv__arena *arena, rv_error *err)
{
    struct rv__str type, value, id, name, input;
    if (!rv__json_is(block, RV__JSON_OBJECT) || !rv__json_get(block, "type", &type))
        return rv__fail(err, RV_EINVAL, "a part of its 'content' has no type");
    if (rv__json_string_is(type, rv__str("text"))) {
        int rc = rv__model_answer_text(block, "text", arena, &value, err);
        rv__buf_str(text, value);
        return rc;
    }
    if (!rv__json_string_is(type, rv__str("tool_use")))
        return RV_OK; /* thinking, and what may come: it is not ours to judge */
    if (!rv__json_get(block, "id", &id) || !rv__json_is(id, RV__JSON_STRING) ||
        !rv__json_get(block, "name", &name) || !rv__json_is(name, RV__JSON_STRING))
        return rv__fail(err, RV_EINVAL, "a tool call in it has no id or no name");
    rv__model_answer_call(calls, id, name,
                          rv__json_get(block, "input", &input) ? input : rv__str("{}"));
    return RV_OK;
}

static int read(struct rv__str body, struct rv__arena *arena, struct rv__model_answer *ret,
                rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str content, block, usage;
    struct rv__buf text, calls;
    if (!rv__json_get(body, "content", &content) || !rv__json_is(content, RV__JSON_ARRAY))
        return rv__fail(err, RV_EINVAL, "it has no 'content'");
    if (rv__json_count(content) > (size_t)10 * RV__AGENT_CALLS)
        return rv__fail(err, RV_EINVAL, "its 'content' has more than %d parts",
                        10 * RV__AGENT_CALLS);
    rv__buf_init(&text, SIZE_MAX / 8); /* bounded by the answer */
    rv__buf_init(&calls, SIZE_MAX / 8);
    int rc = RV_OK;
    rv__json_iter_init(&it, content);
    while (rc == RV_OK && rv__json_next(&it, NULL, &block))
        rc = read_block(block, &text, &calls, arena, err);
    if (rc == RV_OK)
        rc = rv__buf_err(&text, err);
    if (rc == RV_OK && rv__str_copy(arena, rv__buf_view(&text), &ret->text) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__model_answer_calls(&calls, arena, ret, err);
    rv__buf_done(&text);
    rv__buf_done(&calls);
    if (rc == RV_OK && !rv__str_none(ret->calls) && rv__json_count(ret->calls) > RV__AGENT_CALLS)
        rc = rv__fail(err, RV_EINVAL, "it calls more than %d tools at once", RV__AGENT_CALLS);
    if (rc == RV_OK)
        rc = rv__model_answer_text(body, "stop_reason", arena, &ret->finish, err);
    if (rc == RV_OK)
        rc = rv__model_answer_text(body, "model", arena, &ret->model, err);
    if (rv__json_get(body, "usage", &usage) && rv__json_is(usage, RV__JSON_OBJECT)) {
        ret->input_tokens = rv__model_answer_count(usage, "input_tokens");
        ret->output_tokens = rv__model_answer_count(usage, "output_tokens");
    }
    ret->cut = rv__str_is(ret->finish, rv__anthropic.finish_cut);
    return rc;
}

/* ------------------------------------------------------------------------------- streams --- */

static void take_usage(struct rv__incoming *s, struct rv__str object)
{
    struct rv__str usage, count;
    if (!rv__json_get(object, "usage", &usage) || !rv__json_is(usage, RV__JSON_OBJECT))
        return;
    if (rv__json_get(usage, "input_tokens", &count))
        s->input_tokens = rv__model_answer_count(usage, "input_tokens");
    if (rv__json_get(usage, "output_tokens", &count)) /* of all so far */
        s->output_tokens = rv__model_answer_count(usage, "output_tokens");
}

static int64_t index_of(struct rv__str json)
{
    struct rv__str value;
    int64_t index = 0;
    if (rv__json_get(json, "index", &value))
        (void)rv__json_int(value, &index);
    return index;
}

static void begin_block(struct rv__incoming *s, struct rv__str json)
{
    struct rv__str block, type, input;
    if (!rv__json_get(json, "content_block", &block) || !rv__json_get(block, "type", &type)) {
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream begins a part without a type",
                         s->events);
        return;
    }
    if (rv__json_string_is(type, rv__str("text")))
        rv__incoming_add(s, block, "text", &s->text);
    if (!rv__json_string_is(type, rv__str("tool_use")))
        return; /* thinking, and what may come */
    struct rv__incoming_call *call = rv__incoming_call(s, index_of(json));
    if (call == NULL)
        return;
    rv__incoming_keep(s, block, "id", &call->id);
    rv__incoming_keep(s, block, "name", &call->name);
    if (rv__json_get(block, "input", &input) && rv__json_count(input) > 0)
        rv__buf_str(&call->arguments, input); /* else it comes in pieces */
}

static void take_delta(struct rv__incoming *s, struct rv__str json)
{
    struct rv__str delta, type;
    if (!rv__json_get(json, "delta", &delta) || !rv__json_get(delta, "type", &type)) {
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream has no 'delta'", s->events);
    } else if (rv__json_string_is(type, rv__str("text_delta"))) {
        rv__incoming_add(s, delta, "text", &s->text);
    } else if (rv__json_string_is(type, rv__str("input_json_delta"))) {
        struct rv__incoming_call *call = rv__incoming_call(s, index_of(json));
        if (call != NULL)
            rv__incoming_add(s, delta, "partial_json", &call->arguments);
    }
}

static void take_event(struct rv__incoming *s, struct rv__str json)
{
    struct rv__str type, value;
    if (!rv__json_get(json, "type", &type) || !rv__json_is(type, RV__JSON_STRING)) {
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream has no type", s->events);
    } else if (rv__json_string_is(type, rv__str("message_start"))) {
        if (rv__json_get(json, "message", &value)) {
            rv__incoming_keep_text(s, value, "model", &s->model);
            take_usage(s, value);
        }
    } else if (rv__json_string_is(type, rv__str("content_block_start"))) {
        begin_block(s, json);
    } else if (rv__json_string_is(type, rv__str("content_block_delta"))) {
        take_delta(s, json);
    } else if (rv__json_string_is(type, rv__str("message_delta"))) {
        if (rv__json_get(json, "delta", &value))
            rv__incoming_keep_text(s, value, "stop_reason", &s->finish);
        take_usage(s, json);
    } else if (rv__json_string_is(type, rv__str("message_stop"))) {
        s->over = true;
    } else if (rv__json_string_is(type, rv__str("error"))) {
        rv__incoming_refuse(s, rv__json_get(json, "error", &value) ? value : json);
    } /* pings, and what may come */
}

const struct rv__protocol rv__anthropic = {
    .name = "anthropic",
    .path = "/v1/messages",
    .key_header = "x-api-key: %s",
    .more_header = "anthropic-version: 2023-06-01",
    .write = write,
    .read = read,
    .finish_cut = "max_tokens",
    .event = take_event,
    .cut_words = "no message_stop",
};
