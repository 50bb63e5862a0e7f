/* incoming.c: an answer that comes piece by piece, as server-sent events: lines of which those that begin with
 * "data:" count, and an empty one that ends the event. What an event means is its protocol's.
 *
 * The first thing that is wrong is remembered and told at the end, and nothing after it is looked at. An event that
 * has not ended is not looked at either: a stream that ends so, or before its protocol's own last word, was cut. */
#include "agent/protocol.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

int rv__incoming_new(const struct rv__provider *provider, struct rv__incoming **ret, rv_error *err)
{
    struct rv__incoming *s = rv__zalloc(1, sizeof *s);
    if (s == NULL)
        return rv__nomem(err);
    s->protocol = rv__provider_protocol(provider);
    rv__arena_init(&s->arena, SIZE_MAX);  /* bounded by the answer, */
    rv__buf_init(&s->text, SIZE_MAX / 8); /* as are these */
    rv__buf_init(&s->event, SIZE_MAX / 8);
    s->end = &s->calls;
    *ret = s;
    return RV_OK;
}

void rv__incoming_free(struct rv__incoming *s)
{
    if (s == NULL)
        return;
    for (struct rv__incoming_call *call = s->calls; call != NULL; call = call->next)
        rv__buf_done(&call->arguments);
    rv__buf_done(&s->text);
    rv__buf_done(&s->event);
    rv__arena_done(&s->arena);
    rv__free(s);
}

struct rv__str rv__incoming_text(const struct rv__incoming *s)
{
    return rv__buf_view(&s->text);
}

struct rv__incoming_call *rv__incoming_call(struct rv__incoming *s, int64_t index)
{
    size_t count = 0;
    for (struct rv__incoming_call *call = s->calls; call != NULL; call = call->next, count++)
        if (call->index == index)
            return call;
    if (count == RV__AGENT_CALLS) {
        s->rc = rv__fail(&s->err, RV_EINVAL, "it calls more than %d tools at once",
                         RV__AGENT_CALLS);
        return NULL;
    }
    struct rv__incoming_call *call = rv__arena_zalloc(&s->arena, 1, sizeof *call);
    if (call == NULL) {
        s->rc = rv__nomem(&s->err);
        return NULL;
    }
    call->index = index;
    rv__buf_init(&call->arguments, SIZE_MAX / 8); /* bounded by the answer */
    *s->end = call;
    s->end = &call->next;
    return call;
}

void rv__incoming_keep(struct rv__incoming *s, struct rv__str object, const char *key,
                       struct rv__str *ret)
{
    struct rv__str value;
    if (!rv__json_get(object, key, &value) || !rv__json_is(value, RV__JSON_STRING))
        return;
    if (rv__str_copy(&s->arena, value, ret) < 0)
        s->rc = rv__nomem(&s->err);
}

void rv__incoming_keep_text(struct rv__incoming *s, struct rv__str object, const char *key,
                            struct rv__str *ret)
{
    struct rv__str text;
    if (s->rc == RV_OK)
        s->rc = rv__model_answer_text(object, key, &s->arena, &text, &s->err);
    /* a text without escapes is a slice of the event */
    if (s->rc == RV_OK && !rv__str_none(text) && rv__str_copy(&s->arena, text, ret) < 0)
        s->rc = rv__nomem(&s->err);
}

void rv__incoming_add(struct rv__incoming *s, struct rv__str object, const char *key,
                      struct rv__buf *to)
{
    struct rv__str text;
    if (s->rc == RV_OK)
        s->rc = rv__model_answer_text(object, key, &s->arena, &text, &s->err);
    if (s->rc == RV_OK)
        rv__buf_str(to, text);
}

/* Words of providers for "not now". */
static bool means_busy(struct rv__str word)
{
    static const char *const words[] = { "rate_limit_error", "overloaded_error",
                                         "rate_limit_exceeded", "server_overloaded" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (rv__json_string_is(word, rv__str(words[i])))
            return true;
    return false;
}

void rv__incoming_refuse(struct rv__incoming *s, struct rv__str error)
{
    struct rv__str word, message = { NULL, 0 };
    if (rv__json_is(error, RV__JSON_OBJECT)) {
        s->busy = (rv__json_get(error, "type", &word) && means_busy(word)) ||
                  (rv__json_get(error, "code", &word) && means_busy(word));
        (void)rv__model_answer_text(error, "message", &s->arena, &message,
                                    NULL); /* else as it came */
    }
    if (rv__str_none(message))
        message = error;
    s->rc = rv__fail(&s->err, RV_EINVAL, "after %zu event%s the provider reports: %.*s",
                     s->events - 1, s->events == 2 ? "" : "s",
                     (int)(message.len < 150 ? message.len : 150), message.at);
}

static void take_event(struct rv__incoming *s)
{
    struct rv__str data = rv__buf_view(&s->event), json;
    rv_error why;
    s->events++;
    if (s->protocol->last_word != NULL && rv__str_is(data, s->protocol->last_word)) {
        s->over = true;
        return;
    }
    if (rv__json_check(data, RV__JSON_VALUE_DEPTH, &json, &why) < 0)
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream is not JSON: %s", s->events,
                         why.message);
    else if (!rv__json_is(json, RV__JSON_OBJECT))
        s->rc = rv__fail(&s->err, RV_EINVAL, "event %zu of the stream is not a JSON object",
                         s->events);
    else
        s->protocol->event(s, json);
}

static void take_line(struct rv__incoming *s, struct rv__str line)
{
    static const struct rv__str data = RV__STR("data:");
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0) {
        if (s->in_event)
            take_event(s);
        rv__buf_reset(&s->event);
        s->in_event = false;
        return;
    }
    if (line.len < data.len || memcmp(line.at, data.at, data.len) != 0)
        return; /* the event's name, which is in its data too; a comment, an id */
    line = (struct rv__str){ line.at + data.len, line.len - data.len };
    if (line.len > 0 && *line.at == ' ')
        line = (struct rv__str){ line.at + 1, line.len - 1 };
    if (s->in_event)
        rv__buf_char(&s->event, '\n');
    s->in_event = true;
    rv__buf_str(&s->event, line);
    if (s->event.rc < 0)
        s->rc = rv__nomem(&s->err);
}

void rv__incoming_take(struct rv__incoming *s, struct rv__str body)
{
    while (s->rc == RV_OK && !s->over && s->seen < body.len) {
        const char *end = memchr(body.at + s->seen, '\n', body.len - s->seen);
        if (end == NULL) {
            s->seen = body.len;
            return;
        }
        size_t next = (size_t)(end - body.at) + 1;
        take_line(s, (struct rv__str){ body.at + s->line, next - 1 - s->line });
        s->line = s->seen = next;
    }
    if (s->rc == RV_OK && s->text.rc < 0)
        s->rc = rv__nomem(&s->err);
}

static int take_calls(struct rv__incoming *s, struct rv__arena *arena, struct rv__model_answer *ret,
                      rv_error *err)
{
    struct rv__buf calls;
    int rc = RV_OK;
    rv__buf_init(&calls, SIZE_MAX / 8); /* bounded by the answer */
    for (struct rv__incoming_call *call = s->calls; call != NULL && rc == RV_OK;
         call = call->next) {
        if (rv__str_none(call->id) || rv__str_none(call->name))
            rc = rv__fail(err, RV_EINVAL, "a tool call in it has no id or no name");
        else if (call->arguments.rc < 0)
            rc = rv__buf_err(&call->arguments, err);
        else
            rv__model_answer_call_text(&calls, call->id, call->name,
                                       rv__buf_view(&call->arguments));
    }
    if (rc == RV_OK)
        rc = rv__model_answer_calls(&calls, arena, ret, err);
    rv__buf_done(&calls);
    return rc;
}

int rv__incoming_end(struct rv__incoming *s, struct rv__str body, struct rv__arena *arena,
                     struct rv__model_answer *ret, rv_error *err)
{
    *ret = (struct rv__model_answer){ .text = { NULL, 0 } };
    rv__incoming_take(s, body);
    ret->input_tokens = s->input_tokens;
    ret->output_tokens = s->output_tokens;
    ret->busy = s->busy;
    if (s->rc < 0) {
        if (err != NULL)
            *err = s->err;
        return s->rc;
    }
    if (!s->over)
        return rv__fail(err, RV_EINVAL,
                        "the stream ends before the answer does: %zu event%s came, and %s",
                        s->events, s->events == 1 ? "" : "s", s->protocol->cut_words);
    if (rv__str_copy(arena, rv__buf_view(&s->text), &ret->text) < 0 ||
        (!rv__str_none(s->model) && rv__str_copy(arena, s->model, &ret->model) < 0) ||
        (!rv__str_none(s->finish) && rv__str_copy(arena, s->finish, &ret->finish) < 0))
        return rv__nomem(err);
    ret->cut = rv__str_is(s->finish, s->protocol->finish_cut);
    return take_calls(s, arena, ret, err);
}
