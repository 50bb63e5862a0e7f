/* openai.c: the protocol of /v1/chat/completions, which many servers speak. */
#include "agent/protocol.h"

#include "base/error.h"

static void put_calls(struct rv__buf *out, struct rv__str calls)
{
    struct rv__json_iter it;
    struct rv__str call, id, name, arguments;
    bool first = true;
    rv__buf_text(out, ",\"tool_calls\":[");
    rv__json_iter_init(&it, calls);
    while (rv__json_next(&it, NULL, &call)) {
        if (!rv__json_get(call, "id", &id) || !rv__json_get(call, "name", &name) ||
            !rv__json_get(call, "arguments", &arguments))
            continue;
        rv__buf_text(out, first ? "{\"id\":" : ",{\"id\":");
        first = false;
        rv__buf_str(out, id);
        rv__buf_text(out, ",\"type\":\"function\",\"function\":{\"name\":");
        rv__buf_str(out, name);
        rv__buf_text(out, ",\"arguments\":");
        if (rv__json_is(arguments, RV__JSON_STRING))
            rv__buf_str(out, arguments); /* it was no JSON: as it came */
        else
            rv__buf_json_str(out, arguments);
        rv__buf_text(out, "}}");
    }
    rv__buf_char(out, ']');
}

/* Texts have no form of their own here: they are parts of the message. */
static void put_file(struct rv__buf *out, const struct rv__enclosed *file)
{
    if (file->kind == MEDIA_TEXT) {
        struct rv__buf text;
        rv__buf_init(&text, SIZE_MAX / 8); /* bounded by the file */
        rv__buf_str(&text, file->name);
        rv__buf_text(&text, ":\n");
        rv__buf_str(&text, file->bytes);
        rv__model_request_part(out, rv__buf_view(&text));
        if (text.rc < 0)
            out->rc = text.rc;
        rv__buf_done(&text);
        return;
    }
    if (file->kind == MEDIA_IMAGE) {
        rv__buf_text(out, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:");
    } else {
        rv__buf_text(out, "{\"type\":\"file\",\"file\":{\"filename\":");
        rv__buf_json_str(out, file->name);
        rv__buf_text(out, ",\"file_data\":\"data:");
    }
    rv__buf_str(out, file->type);
    rv__buf_text(out, ";base64,");
    rv__buf_base64(out, file->bytes);
    rv__buf_text(out, "\"}}");
}

static void put_message(struct rv__buf *out, const struct rv__message *m)
{
    static const char *const roles[] = { "user", "assistant", "tool" };
    rv__buf_fmt(out, ",{\"role\":\"%s\"", roles[m->role]);
    if (m->role == ROLE_TOOL) {
        rv__buf_text(out, ",\"tool_call_id\":");
        rv__buf_str(out, m->call_id);
    }
    if (m->file_count > 0)
        rv__model_request_content(out, m, put_file);
    else if (m->text.len > 0 || m->role != ROLE_ASSISTANT)
        rv__model_request_text(out, "content", rv__str_none(m->text) ? rv__str("") : m->text);
    else
        rv__buf_text(out, ",\"content\":null");
    if (!rv__str_none(m->calls))
        put_calls(out, m->calls);
    rv__buf_char(out, '}');
}

static void write(const struct rv__model_request *request, struct rv__buf *out)
{
    rv__buf_text(out, "{\"model\":");
    rv__buf_json_str(out, request->model);
    rv__buf_text(out, ",\"messages\":[");
    size_t begin = out->len;
    bool words = !rv__str_none(request->schema) && !rv__provider_native(request->provider);
    if (!rv__str_none(request->system) || words) {
        rv__buf_text(out, ",{\"role\":\"system\"");
        rv__model_request_system(out, "content", request, words);
        rv__buf_char(out, '}');
    }
    for (size_t i = 0; i < request->count; i++)
        put_message(out, &request->messages[i]);
    if (out->rc == RV_OK && out->len > begin)
        out->text[begin] = ' '; /* the first has no comma before it */
    rv__buf_char(out, ']');
    rv__model_request_tools(out, request->tools,
                            "{\"type\":\"function\",\"function\":{\"name\":", "parameters", "}}");
    if (!rv__str_none(request->schema) && !words) {
        rv__buf_text(out, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
                          "{\"name\":\"result\",\"schema\":");
        rv__buf_str(out, request->schema);
        rv__buf_text(out, "}}");
    }
    if (request->stream)
        rv__buf_text(out, ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    rv__buf_char(out, '}');
}

static int read_calls(struct rv__str message, struct rv__arena *arena, struct rv__model_answer *ret,
                      rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str list, call, function = { NULL, 0 }, id = function, name = id, text = id;
    struct rv__buf calls;
    int rc = RV_OK;
    if (!rv__json_get(message, "tool_calls", &list) || !rv__json_is(list, RV__JSON_ARRAY))
        return RV_OK;
    if (rv__json_count(list) > RV__AGENT_CALLS)
        return rv__fail(err, RV_EINVAL, "it calls more than %d tools at once", RV__AGENT_CALLS);
    rv__buf_init(&calls, SIZE_MAX / 8);
    rv__json_iter_init(&it, list);
    while (rc == RV_OK && rv__json_next(&it, NULL, &call)) {
        if (!rv__json_is(call, RV__JSON_OBJECT) || !rv__json_get(call, "function", &function) ||
            !rv__json_is(function, RV__JSON_OBJECT) || !rv__json_get(call, "id", &id) ||
            !rv__json_is(id, RV__JSON_STRING) || !rv__json_get(function, "name", &name) ||
            !rv__json_is(name, RV__JSON_STRING))
            rc = rv__fail(err, RV_EINVAL, "a tool call in it has no id or no name");
        if (rc == RV_OK)
            rc = rv__model_answer_text(function, "arguments", arena, &text, err);
        if (rc == RV_OK)
            rv__model_answer_call_text(&calls, id, name, text);
    }
    if (rc == RV_OK)
        rc = rv__model_answer_calls(&calls, arena, ret, err);
    rv__buf_done(&calls);
    return rc;
}

static int read(struct rv__str body, struct rv__arena *arena, struct rv__model_answer *ret,
                rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str choices, choice, message, usage;
    if (!rv__json_get(body, "choices", &choices) || !rv__json_is(choices, RV__JSON_ARRAY))
        return rv__fail(err, RV_EINVAL, "it has no 'choices'");
    rv__json_iter_init(&it, choices);
    if (!rv__json_next(&it, NULL, &choice) || !rv__json_is(choice, RV__JSON_OBJECT) ||
        !rv__json_get(choice, "message", &message) || !rv__json_is(message, RV__JSON_OBJECT))
        return rv__fail(err, RV_EINVAL, "its first choice has no 'message'");
    int rc = rv__model_answer_text(message, "content", arena, &ret->text, err);
    if (rc == RV_OK)
        rc = rv__model_answer_text(choice, "finish_reason", arena, &ret->finish, err);
    if (rc == RV_OK)
        rc = rv__model_answer_text(body, "model", arena, &ret->model, err);
    if (rc == RV_OK)
        rc = read_calls(message, arena, ret, err);
    if (rv__json_get(body, "usage", &usage) && rv__json_is(usage, RV__JSON_OBJECT)) {
        ret->input_tokens = rv__model_answer_count(usage, "prompt_tokens");
        ret->output_tokens = rv__model_answer_count(usage, "completion_tokens");
    }
    ret->cut = rv__str_is(ret->finish, rv__openai.finish_cut);
    return rc;
}

/* ------------------------------------------------------------------------------- streams --- */

static void take_calls(struct rv__incoming *s, struct rv__str list)
{
    struct rv__json_iter it;
    struct rv__str piece, value, function;
    int64_t place = 0;
    rv__json_iter_init(&it, list);
    for (; s->rc == RV_OK && rv__json_next(&it, NULL, &piece); place++) {
        int64_t index = place; /* where it is not said */
        if (rv__json_get(piece, "index", &value))
            (void)rv__json_int(value, &index);
        struct rv__incoming_call *call = rv__incoming_call(s, index);
        if (call == NULL)
            return;
        rv__incoming_keep(s, piece, "id", &call->id);
        if (!rv__json_get(piece, "function", &function))
            continue;
        rv__incoming_keep(s, function, "name", &call->name);
        rv__incoming_add(s, function, "arguments", &call->arguments);
    }
}

static void take_event(struct rv__incoming *s, struct rv__str json)
{
    struct rv__json_iter it;
    struct rv__str choices, choice, delta, value;
    if (rv__json_get(json, "error", &value) && !rv__json_is(value, RV__JSON_NULL)) {
        rv__incoming_refuse(s, value);
        return;
    }
    if (!rv__json_get(json, "choices", &choices) || !rv__json_is(choices, RV__JSON_ARRAY)) {
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream has no 'choices'", s->events);
        return;
    }
    rv__incoming_keep_text(s, json, "model", &s->model);
    if (rv__json_get(json, "usage", &value) && rv__json_is(value, RV__JSON_OBJECT)) {
        s->input_tokens = rv__model_answer_count(value, "prompt_tokens");
        s->output_tokens = rv__model_answer_count(value, "completion_tokens");
    }
    rv__json_iter_init(&it, choices);
    if (!rv__json_next(&it, NULL, &choice)) /* the last one has only the usage */
        return;
    rv__incoming_keep_text(s, choice, "finish_reason", &s->finish);
    if (!rv__json_get(choice, "delta", &delta))
        return;
    rv__incoming_add(s, delta, "content", &s->text);
    if (rv__json_get(delta, "tool_calls", &value) && rv__json_is(value, RV__JSON_ARRAY))
        take_calls(s, value);
}

const struct rv__protocol rv__openai = {
    .name = "openai",
    .path = "/v1/chat/completions",
    .key_header = "Authorization: Bearer %s",
    .write = write,
    .read = read,
    .finish_cut = "length",
    .event = take_event,
    .last_word = "[DONE]",
    .cut_words = "no [DONE]",
};
