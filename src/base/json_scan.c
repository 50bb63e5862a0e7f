/* json_scan.c: reads JSON text in place. All text here has passed rv__json_check() (json.h), so its
 * syntax is asserted, not checked again. */
#include "base/json.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/error.h"

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_white(const char *at, const char *end)
{
    while (at < end && is_white(*at))
        at++;
    return at;
}

/* Without the white space around it. */
static struct rv__str trim(struct rv__str v)
{
    while (v.len > 0 && is_white(v.at[v.len - 1]))
        v.len--;
    while (v.len > 0 && is_white(v.at[0])) {
        v.at++;
        v.len--;
    }
    assert(v.len > 0);
    return v;
}

enum rv__json_type rv__json_type(struct rv__str value)
{
    switch (*trim(value).at) {
    case 'n': return RV__JSON_NULL;
    case 'f': return RV__JSON_FALSE;
    case 't': return RV__JSON_TRUE;
    case '"': return RV__JSON_STRING;
    case '[': return RV__JSON_ARRAY;
    case '{': return RV__JSON_OBJECT;
    default: return RV__JSON_NUMBER;
    }
}

/* ------------------------------------------------------------------------------------------
 * Walking */

/* A quote ends the string unless an odd number of backslashes stands before it. Each of those is
 * counted once, so this is linear; memchr makes it fast. */
static const char *skip_string(const char *at, const char *end)
{
    const char *open = at;
    for (;;) {
        at = memchr(at + 1, '"', (size_t)(end - at - 1));
        assert(at != NULL);
        const char *slash = at;
        while (slash[-1] == '\\') /* the opening quote stops it */
            slash--;
        assert(slash > open);
        if ((at - slash) % 2 == 0)
            return at + 1;
    }
}

static const char *skip_container(const char *at, const char *end)
{
    size_t depth = 0;
    do {
        assert(at < end);
        switch (*at) {
        case '"': at = skip_string(at, end); continue;
        case '[':
        case '{': depth++; break;
        case ']':
        case '}': depth--; break;
        default: break;
        }
        at++;
    } while (depth > 0);
    return at;
}

const char *rv__json_skip(const char *at, const char *end)
{
    assert(at < end);
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '[' || *at == '{')
        return skip_container(at, end);
    while (at < end && *at != ',' && *at != ']' && *at != '}' && !is_white(*at))
        at++;
    return at;
}

void rv__json_iter_init(struct rv__json_iter *it, struct rv__str container)
{
    container = trim(container);
    *it = (struct rv__json_iter){ container.at, container.at, false };
    if (*container.at == '[' || *container.at == '{') {
        it->object = *container.at == '{';
        it->at++;
        it->end = container.at + container.len - 1; /* before the closing bracket */
    }
}

bool rv__json_next(struct rv__json_iter *it, struct rv__str *key, struct rv__str *value)
{
    struct rv__str name = { NULL, 0 };
    const char *at = skip_white(it->at, it->end);
    if (at == it->end)
        return false;

    if (*at == ',') /* between two members */
        at = skip_white(at + 1, it->end);
    if (it->object) {
        assert(at < it->end && *at == '"');
        name.at = at;
        at = skip_string(at, it->end);
        name.len = (size_t)(at - name.at);
        at = skip_white(at, it->end);
        assert(at < it->end && *at == ':');
        at = skip_white(at + 1, it->end);
    }
    it->at = rv__json_skip(at, it->end);
    if (key != NULL)
        *key = name;
    if (value != NULL)
        *value = (struct rv__str){ at, (size_t)(it->at - at) };
    return true;
}

size_t rv__json_count(struct rv__str container)
{
    struct rv__json_iter it;
    size_t count = 0;
    rv__json_iter_init(&it, container);
    while (rv__json_next(&it, NULL, NULL))
        count++;
    return count;
}

/* ------------------------------------------------------------------------------------------
 * Strings */

static uint32_t hex4(const char *at)
{
    uint32_t unit = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = at[i];
        unit = unit * 16 + (uint32_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

static size_t put_utf8(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    out[0] = (char)((0xF00 >> len) | c); /* as many leading ones as there are bytes */
    return len;
}

/* The character that the escape at `at` stands for, as UTF-8. Returns what follows the escape. */
static const char *decode_escape(const char *at, char out[4], size_t *len)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    assert(*at == '\\');
    *len = 1;
    if (at[1] != 'u') {
        const char *letter = strchr(letters, at[1]);
        assert(letter != NULL);
        out[0] = meant[letter - letters];
        return at + 2;
    }
    uint32_t c = hex4(at + 2);
    at += 6;
    if (c >= 0xD800 && c <= 0xDBFF) { /* the other half follows: checked */
        c = 0x10000 + ((c - 0xD800) << 10) + (hex4(at + 2) - 0xDC00);
        at += 6;
    }
    *len = put_utf8(out, c);
    return at;
}

int rv__json_string(struct rv__str v, struct rv__arena *arena, struct rv__str *ret)
{
    v = trim(v);
    if (*v.at != '"')
        return RV_EINVAL;

    const char *at = v.at + 1, *end = v.at + v.len - 1;
    const char *slash = memchr(at, '\\', (size_t)(end - at));
    if (slash == NULL) {
        *ret = (struct rv__str){ at, (size_t)(end - at) };
        return RV_OK;
    }

    char *text = rv__arena_alloc(arena, v.len); /* unescaped text is never longer */
    if (text == NULL)
        return RV_ENOMEM;
    size_t len = 0;
    while (at < end) {
        if (slash == NULL)
            slash = end;
        memcpy(text + len, at, (size_t)(slash - at));
        len += (size_t)(slash - at);
        at = slash;
        if (at < end) {
            char utf8[4];
            size_t bytes;
            at = decode_escape(at, utf8, &bytes);
            memcpy(text + len, utf8, bytes);
            len += bytes;
            slash = memchr(at, '\\', (size_t)(end - at));
        }
    }
    *ret = (struct rv__str){ text, len };
    return RV_OK;
}

/* Is the string literal `v`, unescaped, equal to `expected`? With `token`, `expected` is a token of a
 * JSON Pointer, with ~0 and ~1 in it. */
static bool literal_equals(struct rv__str v, struct rv__str expected, bool token)
{
    const char *at = v.at + 1, *end = v.at + v.len - 1;
    size_t i = 0;
    while (at < end) {
        char utf8[4];
        size_t bytes = 1;
        if (*at == '\\')
            at = decode_escape(at, utf8, &bytes);
        else
            utf8[0] = *at++;
        for (size_t k = 0; k < bytes; k++) {
            if (i == expected.len)
                return false;
            char c = expected.at[i++];
            if (token && c == '~')
                c = expected.at[i++] == '0' ? '~' : '/'; /* valid, so one of the two follows */
            if (c != utf8[k])
                return false;
        }
    }
    return i == expected.len;
}

bool rv__json_string_is(struct rv__str v, struct rv__str expected)
{
    v = trim(v);
    return *v.at == '"' && literal_equals(v, expected, false);
}

static bool get(struct rv__str object, struct rv__str name, bool token, struct rv__str *ret)
{
    struct rv__json_iter it;
    struct rv__str key, value, found = { NULL, 0 };
    rv__json_iter_init(&it, object);
    while (it.object && rv__json_next(&it, &key, &value))
        if (literal_equals(key, name, token))
            found = value; /* continue: of equal keys the last one counts */
    if (rv__str_none(found))
        return false;
    *ret = found;
    return true;
}

bool rv__json_get(struct rv__str object, const char *key, struct rv__str *ret)
{
    return get(object, rv__str(key), false, ret);
}

/* ------------------------------------------------------------------------------------------
 * Numbers and truth */

int rv__json_int(struct rv__str v, int64_t *ret)
{
    v = trim(v);
    bool negative = *v.at == '-';
    int64_t number = 0;
    for (size_t i = negative; i < v.len; i++) {
        if (!is_digit(v.at[i]))
            return RV_EINVAL;
        int64_t digit = v.at[i] - '0';
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digit, &number)) /* negative: one more fits */
            return RV_EINVAL;
    }
    if (!negative && number == INT64_MIN)
        return RV_EINVAL;
    *ret = negative ? number : -number;
    return RV_OK;
}

/* strtod needs a NUL behind the number and takes its decimal point from the locale. So the number
 * is given to it as a whole number of at most ENOUGH_DIGITS digits and an exponent. That loses
 * nothing: no double, and no midpoint of two doubles, has more than 768 significant digits; of the
 * digits after those it only matters whether one of them is not 0. */
int rv__json_double(struct rv__str v, double *ret)
{
    enum { ENOUGH_DIGITS = 770 };
    char text[ENOUGH_DIGITS + 32];
    int64_t exponent = 0, written = 0;
    bool fraction = false, more = false;

    v = trim(v);
    if (*v.at != '-' && !is_digit(*v.at))
        return RV_EINVAL;

    const char *at = v.at, *end = v.at + v.len;
    size_t first = 0;
    if (*at == '-') {
        text[first++] = '-';
        at++;
    }
    size_t len = first;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
        } else if (len - first < ENOUGH_DIGITS) {
            if (*at != '0' || len > first)
                text[len++] = *at;
            exponent -= fraction;
        } else {
            more |= *at != '0';
            exponent += !fraction;
        }
    }
    if (len == first)
        text[len++] = '0';
    if (more) {
        text[len++] = '1';
        exponent--;
    }

    if (at < end) {
        bool negative = at[1] == '-';
        for (at += 1 + (negative || at[1] == '+'); at < end; at++)
            if (written < INT64_C(1000000000000)) /* more than the digits of a text can offset */
                written = written * 10 + (*at - '0');
        exponent += negative ? -written : written;
    }
    snprintf(text + len, sizeof text - len, "e%" PRId64, exponent);

    double number = strtod(text, NULL);
    if (number > DBL_MAX || number < -DBL_MAX)
        return RV_EINVAL;
    *ret = number;
    return RV_OK;
}

int rv__json_bool(struct rv__str v, bool *ret)
{
    enum rv__json_type type = rv__json_type(v);
    if (type != RV__JSON_TRUE && type != RV__JSON_FALSE)
        return RV_EINVAL;
    *ret = type == RV__JSON_TRUE;
    return RV_OK;
}

/* ------------------------------------------------------------------------------------------
 * JSON Pointer */

bool rv__json_pointer_valid(struct rv__str pointer)
{
    if (pointer.len > 0 && pointer.at[0] != '/')
        return false;
    for (size_t i = 0; i < pointer.len; i++)
        if (pointer.at[i] == '~' &&
            (i + 1 == pointer.len || (pointer.at[i + 1] != '0' && pointer.at[i + 1] != '1')))
            return false;
    return true;
}

bool rv__json_pointer_next(struct rv__str *pointer, struct rv__str *token)
{
    if (pointer->len == 0)
        return false;
    assert(pointer->at[0] == '/');
    const char *at = pointer->at + 1, *end = pointer->at + pointer->len;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    if (slash == NULL)
        slash = end;
    *token = (struct rv__str){ at, (size_t)(slash - at) };
    *pointer = (struct rv__str){ slash, (size_t)(end - slash) };
    return true;
}

bool rv__json_pointer_index(struct rv__str token, size_t *ret)
{
    size_t index = 0;
    if (token.len == 0 || (token.at[0] == '0' && token.len > 1))
        return false;
    for (size_t i = 0; i < token.len; i++)
        if (!is_digit(token.at[i]) || __builtin_mul_overflow(index, (size_t)10, &index) ||
            __builtin_add_overflow(index, (size_t)(token.at[i] - '0'), &index))
            return false;
    *ret = index;
    return true;
}

static bool element(struct rv__str array, struct rv__str token, struct rv__str *ret)
{
    struct rv__json_iter it;
    struct rv__str value;
    size_t index;
    if (rv__json_type(array) != RV__JSON_ARRAY || !rv__json_pointer_index(token, &index))
        return false;
    rv__json_iter_init(&it, array);
    while (rv__json_next(&it, NULL, &value))
        if (index-- == 0) {
            *ret = value;
            return true;
        }
    return false;
}

int rv__json_pointer(struct rv__str doc, struct rv__str pointer, struct rv__str *ret, rv_error *err)
{
    struct rv__str rest = pointer, token, value = trim(doc);
    if (!rv__json_pointer_valid(pointer))
        return rv__fail(err, RV_EINVAL,
                        "'%.*s' is not a JSON Pointer: each part begins with '/', and '~' is "
                        "written '~0'",
                        RV__ARG(pointer));
    while (rv__json_pointer_next(&rest, &token))
        if (!get(value, token, true, &value) && !element(value, token, &value))
            return rv__fail(err, RV_ENOTFOUND, "there is nothing at '%.*s'",
                            (int)(token.at + token.len - pointer.at), pointer.at);
    *ret = value;
    return RV_OK;
}
