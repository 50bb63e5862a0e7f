/* model_request.c: what the protocols share: writing requests, reading answers. */
#include "agent/protocol.h"

#include "base/error.h"

void rv__model_request_text(struct rv__buf *out, const char *key, struct rv__str text)
{
    if (rv__str_none(text))
        return;
    rv__buf_fmt(out, ",\"%s\":", key);
    rv__buf_json_str(out, text);
}

void rv__model_request_part(struct rv__buf *out, struct rv__str text)
{
    rv__buf_text(out, "{\"type\":\"text\"");
    rv__model_request_text(out, "text", text);
    rv__buf_char(out, '}');
}

void rv__model_request_content(struct rv__buf *out, const struct rv__message *message,
                               void (*put)(struct rv__buf *out, const struct rv__enclosed *file))
{
    rv__buf_text(out, ",\"content\":[");
    for (size_t i = 0; i < message->file_count; i++) {
        rv__buf_text(out, i > 0 ? "," : "");
        put(out, &message->files[i]);
    }
    if (message->text.len > 0) { /* an empty part is refused */
        rv__buf_char(out, ',');
        rv__model_request_part(out, message->text);
    }
    rv__buf_char(out, ']');
}

void rv__model_request_system(struct rv__buf *out, const char *key,
                              const struct rv__model_request *request, bool words)
{
    struct rv__buf text;
    if (rv__str_none(request->system) && !words)
        return;
    rv__buf_init(&text, SIZE_MAX / 8); /* bounded by the two */
    rv__buf_str(&text, request->system);
    if (words) {
        rv__buf_text(&text, text.len > 0 ? "\n\n" : "");
        rv__buf_text(&text, "Answer with one JSON value and nothing else: no words around it, no "
                            "code fence. It must fit this JSON Schema: ");
        rv__buf_str(&text, request->schema);
    }
    rv__model_request_text(out, key, rv__buf_view(&text));
    if (text.rc < 0)
        out->rc = text.rc;
    rv__buf_done(&text);
}

void rv__model_request_tools(struct rv__buf *out, struct rv__str tools, const char *open,
                             const char *schema_key, const char *close)
{
    struct rv__json_iter it;
    struct rv__str tool, value;
    bool first = true;
    if (rv__str_none(tools))
        return;
    rv__buf_text(out, ",\"tools\":[");
    rv__json_iter_init(&it, tools);
    while (rv__json_next(&it, NULL, &tool)) {
        rv__buf_text(out, first ? "" : ",");
        first = false;
        rv__buf_text(out, open);
        rv__buf_str(out, rv__json_get(tool, "name", &value) ? value : rv__str("\"\""));
        if (rv__json_get(tool, "description", &value)) {
            rv__buf_text(out, ",\"description\":");
            rv__buf_str(out, value);
        }
        rv__buf_fmt(out, ",\"%s\":", schema_key);
        rv__buf_str(out, rv__json_get(tool, "schema", &value) ? value : rv__str("{}"));
        rv__buf_text(out, close);
    }
    rv__buf_char(out, ']');
}

bool rv__json_is(struct rv__str json, enum rv__json_type type)
{
    return json.len > 0 && rv__json_type(json) == type;
}

int rv__model_answer_text(struct rv__str object, const char *key, struct rv__arena *arena,
                          struct rv__str *ret, rv_error *err)
{
    struct rv__str value;
    *ret = (struct rv__str){ NULL, 0 };
    if (!rv__json_get(object, key, &value) || !rv__json_is(value, RV__JSON_STRING))
        return RV_OK;
    return rv__json_string(value, arena, ret) == RV_ENOMEM ? rv__nomem(err) : RV_OK;
}

int64_t rv__model_answer_count(struct rv__str object, const char *key)
{
    struct rv__str value;
    int64_t n = 0;
    return rv__json_get(object, key, &value) && rv__json_int(value, &n) == RV_OK && n > 0 ? n : 0;
}

void rv__model_answer_call(struct rv__buf *calls, struct rv__str id, struct rv__str name,
                           struct rv__str arguments)
{
    rv__buf_text(calls, calls->len == 0 ? "[{\"id\":" : ",{\"id\":");
    rv__buf_str(calls, id);
    rv__buf_text(calls, ",\"name\":");
    rv__buf_str(calls, name);
    rv__buf_text(calls, ",\"arguments\":");
    rv__buf_str(calls, arguments);
    rv__buf_char(calls, '}');
}

void rv__model_answer_call_text(struct rv__buf *calls, struct rv__str id, struct rv__str name,
                                struct rv__str text)
{
    struct rv__str json = { NULL, 0 };
    struct rv__buf quoted;
    if (text.len == 0)
        text = rv__str("{}");
    if (rv__json_check(text, RV__JSON_VALUE_DEPTH, &json, NULL) == RV_OK) {
        rv__model_answer_call(calls, id, name, json);
        return;
    }
    rv__buf_init(&quoted, SIZE_MAX / 8); /* bounded by the answer */
    rv__buf_json_str(&quoted, text);
    rv__model_answer_call(calls, id, name, rv__buf_view(&quoted));
    if (quoted.rc < 0)
        calls->rc = quoted.rc;
    rv__buf_done(&quoted);
}

int rv__model_answer_calls(struct rv__buf *calls, struct rv__arena *arena,
                           struct rv__model_answer *ret, rv_error *err)
{
    if (calls->len == 0 && calls->rc == RV_OK)
        return RV_OK;
    rv__buf_char(calls, ']');
    int rc = rv__buf_err(calls, err);
    if (rc == RV_OK && rv__str_copy(arena, rv__buf_view(calls), &ret->calls) < 0)
        rc = rv__nomem(err);
    return rc;
}
