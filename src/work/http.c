/* http.c: an `http` step: sends a request with the evaluated parameters, and turns the answer into an outcome
 * (SPEC §2).
 *
 * Begins on the evaluator's thread, ends on that of the I/O loop. The step's cancel token ends the request. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    MOST_HEADERS = 1000,    /* of a request */
    MOST_HEADER = 64 << 10, /* bytes of one header: servers usually accept 8 KiB */
    MOST_METHOD = 32,       /* the longest registered method has 17 bytes */
};

static bool is_token(struct rv__str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c >= 0x7F || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return text.len > 0;
}

static bool get_text(struct rv_ctx *ctx, struct rv__str with, const char *key, struct rv__str *ret)
{
    struct rv__str json;
    if (!rv__json_get(with, key, &json) || rv__json_type(json) == RV__JSON_NULL)
        return false;
    *ret = rv__ctx_text(ctx, json);
    return true;
}

static bool take_url(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str url = { NULL, 0 };
    if (!get_text(ctx, with, "url", &url) || url.len == 0) {
        with = rv__ctx_hidden(ctx, with, false);
        rv_fail(ctx, "an http step needs a `url`; its parameters came to %.*s",
                (int)(with.len < 80 ? with.len : 80), with.at);
        return false;
    }
    ctx->fetch.url = rv__ctx_c_text(ctx, url, "the `url` of a request");
    return ctx->fetch.url != NULL;
}

/* The method: GET, or POST if there is a body. */
static bool take_method(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str said;
    if (!get_text(ctx, with, "method", &said)) {
        ctx->fetch.method = rv__str_none(ctx->fetch.body) ? "GET" : "POST";
        return true;
    }
    if (!is_token(said) || said.len > MOST_METHOD ||
        strncasecmp(said.at, "CONNECT", said.len) == 0) {
        rv_fail(ctx, "the `method` of a request is a word such as GET, POST or DELETE, not '%.*s'",
                (int)(said.len < 40 ? said.len : 40), said.at);
        return false;
    }
    char *method = rv__ctx_c_text(ctx, said, "the `method` of a request");
    for (char *c = method; c != NULL && *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    ctx->fetch.method = method;
    return method != NULL;
}

static bool bad_header(struct rv_ctx *ctx, struct rv__str name, const char *why)
{
    rv_fail(ctx, "the header '%.*s' of a request %s", (int)(name.len < 40 ? name.len : 40), name.at,
            why);
    return false;
}

/* "Name: value"; "Name;" is libcurl's way to say that the value is empty. */
static char *header_line(struct rv_ctx *ctx, struct rv__str name, struct rv__str value)
{
    struct rv__buf line;
    char *text = NULL;
    rv__buf_init(&line, MOST_HEADER);
    rv__buf_str(&line, name);
    rv__buf_text(&line, value.len > 0 ? ": " : ";");
    rv__buf_str(&line, value);
    if (rv__buf_err(&line, NULL) == RV_ETOOBIG)
        (void)bad_header(ctx, name, "is too long");
    else
        text = rv__ctx_c_text(ctx, rv__buf_view(&line), "a header of a request");
    rv__buf_done(&line);
    return text;
}

static bool is_name(struct rv__str name, const char *text)
{
    return name.len == strlen(text) && strncasecmp(name.at, text, name.len) == 0;
}

/* One header. True with *line NULL: it is not sent. */
static bool take_header(struct rv_ctx *ctx, struct rv__str key, struct rv__str json, char **line)
{
    struct rv__str name = rv__ctx_text(ctx, key), value = rv__ctx_text(ctx, json);
    enum rv__json_type type = rv__json_type(json);
    *line = NULL;
    if (type == RV__JSON_NULL)
        return true;
    if (!is_token(name))
        return bad_header(ctx, name, "has an invalid name");
    if (type == RV__JSON_ARRAY || type == RV__JSON_OBJECT)
        return bad_header(ctx, name, "must have a text, a number, true or false as its value");
    if (is_name(name, "Content-Length") || is_name(name, "Transfer-Encoding"))
        return bad_header(ctx, name, "is set from the body, and cannot be given");
    for (size_t i = 0; i < value.len; i++)
        if (strchr("\r\n", value.at[i]) != NULL) /* NUL included */
            return bad_header(ctx, name, "cannot have a line end or a NUL in its value");
    *line = header_line(ctx, name, value);
    return *line != NULL;
}

/* Set the content type if the step does not. Text is sent as it is, anything else as JSON. */
static void take_body(struct rv_ctx *ctx, struct rv__str with, const char **type)
{
    struct rv__str json;
    if (!rv__json_get(with, "body", &json) || rv__json_type(json) == RV__JSON_NULL)
        return;
    ctx->fetch.body = rv__ctx_text(ctx, json);
    *type = rv__json_type(json) == RV__JSON_STRING ? "Content-Type: text/plain; charset=utf-8"
                                                   : "Content-Type: application/json";
    if (rv__str_none(ctx->fetch.body))
        ctx->fetch.body = (struct rv__str){ "", 0 };
}

static bool take_headers(struct rv_ctx *ctx, struct rv__str with, const char *type)
{
    struct rv__str map = { NULL, 0 }, key, value;
    struct rv__json_iter it;
    bool has = rv__json_get(with, "headers", &map) && rv__json_type(map) != RV__JSON_NULL;
    size_t most = has ? rv__json_count(map) : 0, count = 0;
    if (has && (rv__json_type(map) != RV__JSON_OBJECT || most > MOST_HEADERS)) {
        rv_fail(ctx, "the `headers` of a request must be a map of names to values, of at most %d",
                MOST_HEADERS);
        return false;
    }
    const char **lines = rv__arena_zalloc(&ctx->arena, most + 2, sizeof *lines);
    if (lines == NULL)
        return rv_fail(ctx, "out of memory") == 0;
    if (has)
        rv__json_iter_init(&it, map);
    while (has && rv__json_next(&it, &key, &value)) {
        char *line;
        if (!take_header(ctx, key, value, &line))
            return false;
        if (line == NULL)
            continue;
        lines[count++] = line;
        if (is_name(rv__ctx_text(ctx, key), "Content-Type"))
            type = NULL;
    }
    if (type != NULL)
        lines[count] = type;
    ctx->fetch.headers = lines;
    return true;
}

/* If the request has no time-out of its own, that of the step applies. */
static bool take_timeout(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, words;
    int64_t ms = ctx->timeout_ms > 0 ? 0 : RV__FETCH_WITHIN_MS;
    if (rv__json_get(with, "timeout", &json) && rv__json_type(json) != RV__JSON_NULL) {
        bool good = rv__json_int(json, &ms) == RV_OK ||
                    (rv__json_string(json, &ctx->arena, &words) == RV_OK &&
                     rv__duration_ms(words, &ms) == RV_OK);
        if (!good || ms <= 0 || ms > RV__PLAN_MAX_MS) {
            rv_fail(ctx,
                    "the `timeout` of a request is a duration such as 30s, or milliseconds, not "
                    "%.*s",
                    (int)(json.len < 40 ? json.len : 40), json.at);
            return false;
        }
    }
    ctx->fetch.timeout_ms = ms;
    return true;
}

static bool take_limits(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str value;
    int64_t bytes = RV__FETCH_BYTES;
    bool throws = true;
    if (rv__json_get(with, "maxBytes", &value) &&
        (rv__json_int(value, &bytes) < 0 || bytes <= 0 || bytes > RV__FETCH_MAX_BYTES)) {
        rv_fail(ctx, "the `maxBytes` of a request is a number from 1 to %u", RV__FETCH_MAX_BYTES);
        return false;
    }
    if (rv__json_get(with, "throwOnError", &value) && rv__json_bool(value, &throws) < 0) {
        rv_fail(ctx, "the `throwOnError` of a request is true or false");
        return false;
    }
    if (get_text(ctx, with, "responseType", &value)) {
        ctx->output_as = rv__str_is(value, "text")     ? RV__OUTPUT_TEXT
                         : rv__str_is(value, "base64") ? RV__OUTPUT_BASE64
                                                       : RV__OUTPUT_JSON;
        if (ctx->output_as == RV__OUTPUT_JSON && !rv__str_is(value, "json")) {
            rv_fail(ctx, "the `responseType` of a request is json, text or base64, not %.*s",
                    (int)(value.len < 40 ? value.len : 40), value.at);
            return false;
        }
    }
    ctx->fetch.max_bytes = (size_t)bytes;
    ctx->any_status = !throws;
    return true;
}

/* -------------------------------------------------------------------------------- the end --- */

/* Secrets are masked before a failed answer is cut for its message: in the address, in the message and in the answer
 * itself. */
static int answer_of(struct rv_ctx *ctx, const struct rv__fetch_result *result,
                     struct rv__answer *ret, rv_error *err)
{
    struct rv__fetch_result hidden = *result;
    struct rv__str url = rv__ctx_hidden(ctx, rv__str(ctx->fetch.url), false);
    struct rv__answer_want want = { .method = ctx->fetch.method,
                                    .url = rv__arena_dup(&ctx->arena, url.at, url.len),
                                    .as = ctx->output_as,
                                    .any_status = ctx->any_status,
                                    .now_ms = rv__wall_ms(ctx->services->clock) };
    struct rv__str error = rv__ctx_hidden(ctx, rv__str(result->error), true);
    if (want.url == NULL)
        return rv__nomem(err);
    snprintf(hidden.error, sizeof hidden.error, "%.*s", RV__ARG(error));
    hidden.head = rv__ctx_hidden(ctx, result->head, false);
    int rc = rv__fetch_answer(&hidden, &want, &ctx->arena, ret, err);
    if (rc == RV_OK && ret->end != RV__FETCH_ANSWERED && ctx->secrets != NULL) {
        hidden.body = rv__ctx_hidden(ctx, result->body, false);
        if (hidden.body.at != result->body.at)
            rc = rv__fetch_answer(&hidden, &want, &ctx->arena, ret, err);
    }
    return rc;
}

static void ended(struct rv__fetch *fetch, const struct rv__fetch_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(fetch, struct rv_ctx, fetch);
    struct rv__answer answer = { .json = { NULL, 0 } };
    rv_error err;
    rv__io_ended(ctx);
    if (result->end == RV__FETCH_ANSWERED && result->saved) {
        rv__save_end(ctx);
        return;
    }
    int rc = answer_of(ctx, result, &answer, &err);
    struct rv__blob *blob = rc == RV_OK ? rv__blob_new(answer.json) : NULL;
    if (blob == NULL) {
        rv_fail(ctx, "%s", rc < 0 ? err.message : "out of memory");
    } else if (answer.end == RV__FETCH_ANSWERED) {
        rv__blob_unref(ctx->result);
        ctx->result = blob;
        ctx->outcome = MSG_DONE;
    } else {
        rv__ctx_error(ctx, rv__blob_str(blob));
        rv__blob_unref(blob);
        ctx->behavior = answer.final ? BEHAVIOR_FINAL : BEHAVIOR_PLAIN;
        ctx->wait_ms = answer.retry_after_ms;
    }
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

/* Copy what is kept of the parameters, which are freed after this. */
static bool keep_body(struct rv_ctx *ctx)
{
    struct rv__str *body = &ctx->fetch.body;
    if (!rv__str_none(*body) && rv__str_copy(&ctx->arena, *body, body) < 0)
        return rv_fail(ctx, "out of memory") == 0;
    return true;
}

void rv__http_begin(struct rv_ctx *ctx, struct rv__str with)
{
    static const char *const told[] = { "method", "url", "headers", "body" };
    const char *type = NULL;
    struct rv__str value;
    ctx->fetch = (struct rv__fetch){ .begun = begun, .done = ended };
    ctx->output_as = RV__OUTPUT_AUTO;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (rv__json_get(with, told[i], &value))
            rv__ctx_given(ctx, told[i], value);
    take_body(ctx, with, &type);
    if (take_url(ctx, with) && take_method(ctx, with) && take_headers(ctx, with, type) &&
        take_timeout(ctx, with) && take_limits(ctx, with) && keep_body(ctx) &&
        rv__save_begin(ctx, with, "a request")) {
        ctx->fetch.save = ctx->save != NULL ? &ctx->save->file : NULL;
        rv__io_begin(ctx, "http", start, stop);
    } else {
        rv__work_finish(ctx);
    }
}
