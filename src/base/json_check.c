/* json_check.c: the strict check of JSON text. The rest of the program trusts what passed it.
 *
 * Not recursive: it has a cursor and a bit per depth (is this container an object?), so that a hostile
 * text is limited by a number, not by the size of the stack.
 *
 *   value ──scalar, "[]", "{}"──▶ ended ──depth 0──▶ done
 *    ▲ ▲ └──'[', '{' key ':'──┐   │   ▲ └──']', '}'──┐
 *    │ └──────────────────────┘   │   └──────────────┘
 *    └──────',', ',' key ':'──────┘ */
#include "base/json.h"

#include <assert.h>

#include "base/error.h"

struct scan {
    struct rv__str text;
    const char *at;
    const char *end;
    size_t depth;
    size_t max_depth;
    uint64_t objects[RV__JSON_STORED_DEPTH / 64]; /* bit d: the container at depth d is an object */
    rv_error *err;
};

void rv__json_where(struct rv__str text, const char *at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (const char *c = text.at; c < at; c++) {
        if (*c == '\n') {
            ++*line;
            *column = 1;
        } else if ((*c & 0xC0) != 0x80) { /* every byte that begins a character */
            ++*column;
        }
    }
}

static int wrong(const struct scan *s, const char *at, int code, const char *what)
{
    size_t line, column;
    if (s->err == NULL) /* nobody reads it: do not compute the position */
        return code;
    rv__json_where(s->text, at, &line, &column);
    return rv__fail(s->err, code, "line %zu, column %zu: %s", line, column, what);
}

static int expected(const struct scan *s, const char *what)
{
    char sentence[128];
    unsigned char c = s->at < s->end ? (unsigned char)*s->at : 0;
    if (s->at == s->end)
        snprintf(sentence, sizeof sentence, "expected %s, found the end of the text", what);
    else if (c > ' ' && c < 0x7F)
        snprintf(sentence, sizeof sentence, "expected %s, found '%c'", what, c);
    else
        snprintf(sentence, sizeof sentence, "expected %s, found byte 0x%02x", what, c);
    return wrong(s, s->at, RV_EPARSE, sentence);
}

static bool next_is(const struct scan *s, char c)
{
    return s->at < s->end && *s->at == c;
}

static bool next_is_digit(const struct scan *s)
{
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static void skip_white(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
        s->at++;
}

/* The first byte of a string that is not plain: a quote, a backslash, a control character, or not
 * ASCII. Checks eight bytes at a time, because most text is plain. */
static const char *plain_end(const char *at, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    while (end - at >= 8) {
        uint64_t bytes;
        memcpy(&bytes, at, sizeof bytes);
        /* A top bit set: not ASCII; or below 0x20, or equal, so that the subtraction wrapped. */
        uint64_t special = bytes | (bytes - ones * 0x20) | ((bytes ^ ones * '"') - ones) |
                           ((bytes ^ ones * '\\') - ones);
        if (special & (ones << 7))
            break;
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 &&
           (unsigned char)*at < 0x80)
        at++;
    return at;
}

static int scan_utf8(struct scan *s)
{
    struct rv__str run = { s->at, 0 };
    while (s->at + run.len < s->end && (unsigned char)run.at[run.len] >= 0x80)
        run.len++;
    if (!rv__str_utf8(run)) {
        size_t good = 0; /* bytes that are valid; the error is at the first that is not */
        for (size_t len = 1; len <= run.len && len <= good + 4; len++)
            if (rv__str_utf8((struct rv__str){ run.at + good, len - good }))
                good = len;
        return wrong(s, run.at + good, RV_EPARSE, "this is not UTF-8");
    }
    s->at += run.len;
    return RV_OK;
}

/* The UTF-16 unit of the \u escape at `at`, or -1. */
static int32_t escaped_unit(const char *at, const char *end)
{
    int32_t unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static int scan_escape(struct scan *s)
{
    char letter = '\0';
    if (s->end - s->at >= 2)
        letter = s->at[1];
    if (letter != '\0' && strchr("\"\\/bfnrt", letter) != NULL) {
        s->at += 2;
        return RV_OK;
    }
    if (letter != 'u') {
        s->at++;
        return expected(s, "one of \"\\/bfnrtu after the backslash");
    }

    int32_t unit = escaped_unit(s->at, s->end);
    if (unit < 0)
        return wrong(s, s->at, RV_EPARSE, "expected four hexadecimal digits after \\u");
    if (unit < 0xD800 || unit > 0xDFFF) {
        s->at += 6;
        return RV_OK;
    }
    int32_t low = unit < 0xDC00 ? escaped_unit(s->at + 6, s->end) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return wrong(s, s->at, RV_EPARSE, "this is half of a surrogate pair");
    s->at += 12;
    return RV_OK;
}

static int scan_string(struct scan *s)
{
    const char *quote = s->at++;
    for (;;) {
        int rc;
        s->at = plain_end(s->at, s->end);
        if (s->at == s->end)
            return wrong(s, quote, RV_EPARSE, "this string has no end");
        if (*s->at == '"') {
            s->at++;
            return RV_OK;
        }
        if (*s->at == '\\')
            rc = scan_escape(s);
        else if ((unsigned char)*s->at >= 0x80)
            rc = scan_utf8(s);
        else
            rc = wrong(s, s->at, RV_EPARSE, "a control character must be escaped in a string");
        if (rc < 0)
            return rc;
    }
}

static int scan_digits(struct scan *s)
{
    if (!next_is_digit(s))
        return expected(s, "a digit");
    while (next_is_digit(s))
        s->at++;
    return RV_OK;
}

static int scan_number(struct scan *s)
{
    int rc = RV_OK;
    if (next_is(s, '-'))
        s->at++;
    if (next_is(s, '0'))
        s->at++; /* a digit after the 0 is refused by the caller, which expects something else */
    else
        rc = scan_digits(s);
    if (rc == RV_OK && next_is(s, '.')) {
        s->at++;
        rc = scan_digits(s);
    }
    if (rc == RV_OK && (next_is(s, 'e') || next_is(s, 'E'))) {
        s->at++;
        if (next_is(s, '+') || next_is(s, '-'))
            s->at++;
        rc = scan_digits(s);
    }
    return rc;
}

static int scan_word(struct scan *s, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return expected(s, "a value");
    s->at += len;
    return RV_OK;
}

static int scan_scalar(struct scan *s)
{
    if (next_is(s, '"'))
        return scan_string(s);
    if (next_is(s, '-') || next_is_digit(s))
        return scan_number(s);
    return scan_word(s, next_is(s, 't') ? "true" : next_is(s, 'f') ? "false" : "null");
}

/* A key, its colon and the white space around that. */
static int scan_key(struct scan *s)
{
    if (!next_is(s, '"'))
        return expected(s, "a key in quotes");
    int rc = scan_string(s);
    if (rc < 0)
        return rc;

    skip_white(s);
    if (!next_is(s, ':'))
        return expected(s, "':'");
    s->at++;
    skip_white(s);
    return RV_OK;
}

static bool in_object(const struct scan *s)
{
    return s->objects[(s->depth - 1) / 64] >> ((s->depth - 1) % 64) & 1;
}

/* At '[' or '{'. Returns 1: its first value follows; 0: it was empty, and the cursor is after it. */
static int enter(struct scan *s)
{
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *objects = &s->objects[s->depth / 64];
    if (s->depth == s->max_depth) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "nested deeper than %zu", s->max_depth);
        return wrong(s, s->at, RV_ETOOBIG, sentence);
    }
    *objects = *s->at == '{' ? *objects | bit : *objects & ~bit;
    s->depth++;
    s->at++;
    skip_white(s);
    if (next_is(s, in_object(s) ? '}' : ']')) {
        s->at++;
        s->depth--;
        return 0;
    }
    int rc = in_object(s) ? scan_key(s) : RV_OK;
    return rc < 0 ? rc : 1;
}

/* After a value. Returns 1: another value follows; 0: that was the end of the outermost one. */
static int leave(struct scan *s)
{
    while (s->depth > 0) {
        skip_white(s);
        if (next_is(s, ',')) {
            s->at++;
            skip_white(s);
            int rc = in_object(s) ? scan_key(s) : RV_OK;
            return rc < 0 ? rc : 1;
        }
        if (!next_is(s, in_object(s) ? '}' : ']'))
            return expected(s, in_object(s) ? "',' or '}'" : "',' or ']'");
        s->at++;
        s->depth--;
    }
    return 0;
}

int rv__json_check(struct rv__str text, size_t max_depth, struct rv__str *ret, rv_error *err)
{
    assert(max_depth <= RV__JSON_MAX_DEPTH);
    if (text.len > RV__JSON_MAX_BYTES)
        return rv__fail(err, RV_ETOOBIG, "a JSON text of %zu bytes: at most %u are allowed",
                        text.len, RV__JSON_MAX_BYTES);
    return rv__json_check_stored(text, max_depth, ret, err);
}

int rv__json_check_stored(struct rv__str text, size_t max_depth, struct rv__str *ret, rv_error *err)
{
    struct scan s = { .max_depth = max_depth, .err = err };
    int rc;

    assert(max_depth <= RV__JSON_STORED_DEPTH);
    s.text = text.len > 0 ? text : rv__str("");
    s.at = s.text.at;
    s.end = s.at + s.text.len;

    skip_white(&s);
    struct rv__str value = { s.at, 0 };
    do {
        rc = next_is(&s, '[') || next_is(&s, '{') ? enter(&s) : scan_scalar(&s);
        if (rc == 0)
            rc = leave(&s);
    } while (rc > 0);
    if (rc < 0)
        return rc;

    value.len = (size_t)(s.at - value.at);
    skip_white(&s);
    if (s.at != s.end)
        return expected(&s, "the end of the text");
    if (ret != NULL)
        *ret = value;
    return RV_OK;
}
