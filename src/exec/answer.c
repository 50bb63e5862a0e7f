/* answer.c: the result of a finished request for its step. Pure: text in, text out. */
#include <curl/curl.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "exec/exec.h"

enum {
    SHOWN_BODY = 1 << 10, /* bytes of a failed answer's body in its error */
    SHOWN_URL = 200,      /* and of the address in its message */
    SHOWN_HEADER = 200,   /* and of a header */
    STATUS_FAILED = 400,  /* this status and above */
    STATUS_TIMEOUT = 408, /* these three may be temporary */
    STATUS_TOO_EARLY = 425,
    STATUS_TOO_MANY = 429,
    STATUS_SERVER = 500,
    STATUS_UNAVAILABLE = 503,
};

struct header {
    struct rv__str name, value;
    size_t order;
};

struct headers {
    struct header *at;
    size_t count;
};

/* ------------------------------------------------------------------------------ the head --- */

static struct rv__str trimmed(struct rv__str s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && strchr(" \t\r\n", s.at[s.len - 1]) != NULL)
        s.len--;
    return s;
}

/* The next line, with its end. */
static bool next_line(struct rv__str *rest, struct rv__str *line)
{
    if (rest->len == 0)
        return false;
    const char *end = memchr(rest->at, '\n', rest->len);
    line->at = rest->at;
    line->len = end != NULL ? (size_t)(end + 1 - rest->at) : rest->len;
    rest->at += line->len;
    rest->len -= line->len;
    return true;
}

/* The text after "HTTP/1.1 200 ". */
static struct rv__str status_text(struct rv__str head)
{
    struct rv__str line;
    if (!next_line(&head, &line))
        return (struct rv__str){ "", 0 };
    for (int spaces = 0; spaces < 2; spaces++) {
        const char *space = memchr(line.at, ' ', line.len);
        if (space == NULL)
            return (struct rv__str){ "", 0 };
        line.len -= (size_t)(space + 1 - line.at);
        line.at = space + 1;
    }
    line = trimmed(line);
    line.len = line.len < SHOWN_HEADER ? line.len : SHOWN_HEADER;
    return line;
}

static int by_name(const void *a, const void *b)
{
    const struct header *x = a, *y = b;
    int cmp = rv__str_cmp(x->name, y->name);
    return cmp != 0 ? cmp : (x->order > y->order) - (x->order < y->order);
}

/* Parse all headers: names in lower case, sorted. */
static int read_head(struct rv__str head, struct rv__arena *arena, struct headers *ret)
{
    struct rv__str line, rest = head;
    size_t lines = 0;
    while (next_line(&rest, &line))
        lines++;
    struct header *at = rv__arena_zalloc(arena, lines + 1, sizeof *at);
    if (at == NULL)
        return RV_ENOMEM;
    size_t count = 0;
    while (next_line(&head, &line)) {
        const char *colon = memchr(line.at, ':', line.len);
        if (colon == NULL || colon == line.at ||
            memcmp(line.at, "HTTP/", line.len < 5 ? line.len : 5) == 0)
            continue;
        size_t len = (size_t)(colon - line.at);
        char *name = rv__arena_dup(arena, line.at, len);
        if (name == NULL)
            return RV_ENOMEM;
        for (size_t i = 0; i < len; i++)
            if (name[i] >= 'A' && name[i] <= 'Z')
                name[i] = (char)(name[i] - 'A' + 'a');
        struct rv__str value = { colon + 1, line.len - len - 1 };
        at[count] = (struct header){ trimmed((struct rv__str){ name, len }), trimmed(value),
                                     count };
        count++;
    }
    qsort(at, count, sizeof *at, by_name);
    *ret = (struct headers){ at, count };
    return RV_OK;
}

static struct rv__str header(const struct headers *headers, const char *name)
{
    struct header key = { .name = rv__str(name) };
    for (size_t low = 0, high = headers->count; low < high;) {
        size_t mid = low + (high - low) / 2;
        int cmp = rv__str_cmp(headers->at[mid].name, key.name);
        if (cmp == 0)
            return headers->at[mid].value;
        if (cmp < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return (struct rv__str){ "", 0 };
}

bool rv__fetch_is_type(struct rv__str head, const char *type)
{
    static const char name[] = "content-type:";
    size_t len = strlen(type), name_len = sizeof name - 1;
    while (head.len > 0) {
        const char *end = memchr(head.at, '\n', head.len);
        size_t line = end != NULL ? (size_t)(end - head.at) + 1 : head.len;
        if (line > name_len && strncasecmp(head.at, name, name_len) == 0) {
            struct rv__str value = trimmed((struct rv__str){ head.at + name_len, line - name_len });
            return value.len >= len && strncasecmp(value.at, type, len) == 0 &&
                   (value.len == len || strchr("; \t", value.at[len]) != NULL);
        }
        head = (struct rv__str){ head.at + line, head.len - line };
    }
    return false;
}

/* {"name":"value"}; values of a repeated header are joined by ", ". */
static void put_headers(struct rv__buf *out, const struct headers *headers)
{
    struct rv__buf value;
    bool first = true;
    rv__buf_init(&value, 2 * (size_t)RV__FETCH_HEAD);
    rv__buf_char(out, '{');
    for (size_t i = 0; i < headers->count; i++) {
        const struct header *h = &headers->at[i];
        bool more = i + 1 < headers->count && rv__str_eq(h->name, headers->at[i + 1].name);
        rv__buf_str(&value, h->value);
        if (more) {
            rv__buf_text(&value, ", ");
            continue;
        }
        if (!first)
            rv__buf_char(out, ',');
        first = false;
        rv__buf_json_str(out, h->name);
        rv__buf_char(out, ':');
        rv__buf_json_str(out, rv__buf_view(&value));
        if (value.rc != RV_OK)
            out->rc = value.rc;
        rv__buf_reset(&value);
    }
    rv__buf_char(out, '}');
    rv__buf_done(&value);
}

/* Seconds, or a date. 0: none, or not usable. */
static int64_t retry_after_ms(const struct headers *headers, int status, int64_t now_ms,
                              struct rv__arena *arena)
{
    struct rv__str said = header(headers, "retry-after");
    int64_t ms = 0;
    if (said.len == 0 || (status != STATUS_TOO_MANY && status != STATUS_UNAVAILABLE))
        return 0;
    if (said.at[0] >= '0' && said.at[0] <= '9') {
        for (size_t i = 0; i < said.len && said.at[i] >= '0' && said.at[i] <= '9'; i++)
            ms = ms > RV__RETRY_AFTER_MS ? ms : 10 * ms + INT64_C(1000) * (said.at[i] - '0');
    } else {
        const char *text = rv__arena_dup(arena, said.at, said.len);
        time_t date = text != NULL ? curl_getdate(text, NULL) : -1;
        if (date > 0)
            ms = (int64_t)date * 1000 - now_ms;
    }
    return ms < 0 ? 0 : ms > RV__RETRY_AFTER_MS ? RV__RETRY_AFTER_MS : ms;
}

/* ------------------------------------------------------------------------------- the words --- */

/* "POST http://host/path": without secrets. */
static void put_who(struct rv__buf *out, const struct rv__answer_want *want)
{
    struct rv__str url = rv__str(want->url);
    const char *at = memmem(url.at, url.len, "://", 3);
    size_t scheme = at != NULL ? (size_t)(at + 3 - url.at) : 0;
    size_t end = scheme + strcspn(url.at + scheme, "?#");
    size_t host_end = scheme + strcspn(url.at + scheme, "/?#");
    const char *user = memrchr(url.at + scheme, '@', host_end - scheme);
    size_t begin = user != NULL ? (size_t)(user + 1 - url.at) : scheme;
    rv__buf_fmt(out, "%s %.*s", want->method, (int)scheme, url.at);
    if (end - begin > SHOWN_URL)
        rv__buf_fmt(out, "%.*s…", SHOWN_URL, url.at + begin);
    else
        rv__buf_add(out, url.at + begin, end - begin);
}

static void put_answer(struct rv__buf *out, const struct rv__fetch_result *result,
                       const struct headers *headers)
{
    rv__buf_fmt(out, "\"status\":%d,\"statusText\":", result->status);
    rv__buf_json_str(out, status_text(result->head));
    rv__buf_text(out, ",\"headers\":");
    put_headers(out, headers);
}

/* Write the error; `message` is its text. */
static void put_error(struct rv__buf *out, const struct rv__fetch_result *result,
                      const struct rv__buf *message, const struct headers *headers,
                      const struct rv__answer *answer)
{
    rv__buf_text(out, "{\"message\":");
    rv__buf_json_str(out, rv__buf_view(message));
    rv__buf_text(out, ",\"code\":");
    rv__buf_json_str(out, rv__str(rv__fetch_end_name(answer->end)));
    if (result->end == RV__FETCH_ANSWERED) {
        rv__buf_char(out, ',');
        put_answer(out, result, headers);
        rv__buf_text(out, ",\"body\":");
        rv__buf_json_str(out, trimmed(rv__str_begin(result->body, SHOWN_BODY)));
    }
    if (answer->retry_after_ms > 0)
        rv__buf_fmt(out, ",\"retryAfterMs\":%lld", (long long)answer->retry_after_ms);
    rv__buf_char(out, '}');
}

static bool says_json(const struct headers *headers)
{
    struct rv__str type = header(headers, "content-type");
    return memmem(type.at, type.len, "json", 4) != NULL;
}

/* Write the result's `data`. RV__FETCH_ANSWERED; else how the body is wrong: *why. */
static enum rv__fetch_end put_data(struct rv__buf *out, const struct rv__fetch_result *result,
                                   const struct headers *headers, enum rv__output_as as,
                                   rv_error *why)
{
    struct rv__str value = trimmed(result->body);
    bool failed = result->status >= STATUS_FAILED;
    bool must_be_json = as == RV__OUTPUT_JSON || (as == RV__OUTPUT_AUTO && says_json(headers));
    if (as == RV__OUTPUT_BASE64) {
        rv__buf_char(out, '"');
        rv__buf_base64(out, result->body);
        rv__buf_char(out, '"');
        return RV__FETCH_ANSWERED;
    }
    if (as != RV__OUTPUT_TEXT && value.len == 0) {
        rv__buf_text(out, "null");
        return RV__FETCH_ANSWERED;
    }
    if (as != RV__OUTPUT_TEXT &&
        rv__json_check(result->body, RV__JSON_VALUE_DEPTH, &value, why) == RV_OK &&
        (must_be_json || rv__json_keeps_text(value))) {
        rv__buf_str(out, value);
        return RV__FETCH_ANSWERED;
    }
    if (must_be_json && !failed) /* failed answers are often text or HTML */
        return RV__FETCH_NOT_JSON;
    if (!rv__str_utf8(result->body))
        return RV__FETCH_NOT_TEXT;
    rv__buf_json_str(out, result->body);
    return RV__FETCH_ANSWERED;
}

/* Would it fail again every time? */
static bool is_final(enum rv__fetch_end end, int status)
{
    if (end == RV__FETCH_DENIED || end == RV__FETCH_BAD_URL)
        return true;
    return end == RV__FETCH_STATUS && status < STATUS_SERVER && status != STATUS_TIMEOUT &&
           status != STATUS_TOO_EARLY && status != STATUS_TOO_MANY;
}

static void put_status(struct rv__buf *message, const struct rv__fetch_result *result)
{
    struct rv__str text = status_text(result->head),
                   body = trimmed(rv__str_begin(result->body, SHOWN_BODY));
    rv__buf_fmt(message, ": the server answered with status %d", result->status);
    if (text.len > 0)
        rv__buf_fmt(message, " (%.*s)", RV__ARG(text));
    if (body.len > 0)
        rv__buf_fmt(message, ": %.*s", RV__ARG(body));
}

static int compose(const struct rv__fetch_result *result, const struct rv__answer_want *want,
                   const struct headers *headers, struct rv__buf *out, struct rv__buf *message,
                   struct rv__answer *ret)
{
    bool failed = result->status >= STATUS_FAILED;
    rv_error why;
    put_who(message, want);
    if (result->end != RV__FETCH_ANSWERED) {
        rv__buf_fmt(message, ": %s", result->error);
    } else if (failed && !want->any_status) {
        ret->end = RV__FETCH_STATUS;
        put_status(message, result);
    } else {
        rv__buf_char(out, '{');
        put_answer(out, result, headers);
        rv__buf_text(out, ",\"data\":");
        ret->end = put_data(out, result, headers, want->as, &why);
        if (ret->end == RV__FETCH_ANSWERED) {
            rv__buf_fmt(out, ",\"duration\":%lld}", (long long)result->ran_ms);
            return rv__buf_err(out, NULL);
        }
        struct rv__str type = header(headers, "content-type");
        type.len = type.len < SHOWN_HEADER ? type.len : SHOWN_HEADER;
        rv__buf_reset(out);
        if (ret->end == RV__FETCH_NOT_JSON)
            rv__buf_fmt(message,
                        ": the body of the answer is not JSON: %s (its type is '%.*s'); "
                        "`responseType: text` takes it as text",
                        why.message, RV__ARG(type));
        else
            rv__buf_fmt(
                message,
                ": the body of the answer is not text: it has bytes that are not UTF-8 (its "
                "type is '%.*s'); `responseType: base64` keeps them as base64",
                RV__ARG(type));
    }
    ret->final = is_final(ret->end, result->status);
    put_error(out, result, message, headers, ret);
    return message->rc != RV_OK ? message->rc : rv__buf_err(out, NULL);
}

int rv__fetch_answer(const struct rv__fetch_result *result, const struct rv__answer_want *want,
                     struct rv__arena *arena, struct rv__answer *ret, rv_error *err)
{
    struct headers headers = { NULL, 0 };
    struct rv__answer answer = { .end = result->end };
    struct rv__buf out, message;
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_init(&message, 8 * (size_t)SHOWN_BODY);
    int rc = read_head(result->head, arena, &headers);
    if (rc == RV_OK && result->end == RV__FETCH_ANSWERED)
        answer.retry_after_ms = retry_after_ms(&headers, result->status, want->now_ms, arena);
    if (rc == RV_OK)
        rc = compose(result, want, &headers, &out, &message, &answer);
    if (rc == RV_OK)
        rc = rv__str_copy(arena, rv__buf_view(&out), &answer.json);
    if (rc == RV_OK)
        *ret = answer;
    else if (rc == RV_ETOOBIG)
        rv__fail(err, rc, "the answer is too long as JSON: more than %u bytes", RV__JSON_MAX_BYTES);
    else
        rv__nomem(err);
    rv__buf_done(&out);
    rv__buf_done(&message);
    return rc;
}
