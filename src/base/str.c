/* str.c: slices of text, and a buffer that remembers its failure. */
#include "base/str.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"

enum { FIRST_CAPACITY = 64 };

int rv__str_cmp(struct rv__str a, struct rv__str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.at, b.at, common) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

int rv__str_copy(struct rv__arena *arena, struct rv__str s, struct rv__str *ret)
{
    char *copy = rv__arena_dup(arena, s.at, s.len);
    if (copy == NULL)
        return RV_ENOMEM;
    *ret = (struct rv__str){ copy, s.len };
    return RV_OK;
}

/* Length of the UTF-8 sequence at `s`; 0: it is not well-formed. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    unsigned char c = s[0];
    size_t len = c < 0x80 ? 1 : c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : 4;
    if (c >= 0x80 && (c < 0xC2 || c > 0xF4))
        return 0;
    if (len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((c == 0xE0 && s[1] < 0xA0) || (c == 0xED && s[1] > 0x9F) || /* overlong; surrogates */
        (c == 0xF0 && s[1] < 0x90) || (c == 0xF4 && s[1] > 0x8F))   /* overlong; past the end */
        return 0;
    return len;
}

bool rv__str_utf8(struct rv__str s)
{
    const unsigned char *at = (const unsigned char *)s.at;
    for (size_t i = 0; i < s.len;) {
        size_t len = utf8_sequence(at + i, s.len - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

struct rv__str rv__str_begin(struct rv__str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.at[max] & 0xC0) == 0x80)
        max--;
    return (struct rv__str){ s.at, max };
}

struct rv__str rv__str_end(struct rv__str s, size_t max)
{
    if (s.len <= max)
        return s;
    const char *from = s.at + (s.len - max), *end = s.at + s.len;
    while (from < end && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    return (struct rv__str){ from, (size_t)(end - from) };
}

uint64_t rv__str_hash(uint64_t hash, struct rv__str s)
{
    for (size_t i = 0; i < s.len; i++) {
        hash ^= (unsigned char)s.at[i];
        hash *= UINT64_C(0x100000001b3); /* FNV-1a: short keys, no seed needed */
    }
    return hash;
}

void rv__buf_init(struct rv__buf *buf, size_t max_bytes)
{
    *buf = (struct rv__buf){ .max_bytes = max_bytes };
}

void rv__buf_done(struct rv__buf *buf)
{
    rv__free(buf->text);
    rv__buf_init(buf, buf->max_bytes);
}

void rv__buf_reset(struct rv__buf *buf)
{
    buf->len = 0;
    buf->rc = RV_OK;
    if (buf->text != NULL)
        buf->text[0] = '\0';
}

/* Make room for `more` bytes and a NUL. False: it failed, and buf->rc says so. */
static bool reserve(struct rv__buf *buf, size_t more)
{
    if (buf->rc != RV_OK)
        return false;
    if (more > buf->max_bytes - buf->len || more > SIZE_MAX / 4 - buf->len) {
        buf->rc = RV_ETOOBIG;
        return false;
    }
    if (more < buf->cap - buf->len) /* cap 0 and len 0 at first: falls through */
        return true;

    size_t cap = buf->cap ? buf->cap : FIRST_CAPACITY;
    while (cap - 1 < buf->len + more)
        cap *= 2;
    char *text = rv__realloc(buf->text, cap);
    if (text == NULL) {
        buf->rc = RV_ENOMEM;
        return false;
    }
    buf->text = text;
    buf->cap = cap;
    return true;
}

void rv__buf_add(struct rv__buf *buf, const char *bytes, size_t len)
{
    if (!reserve(buf, len))
        return;
    if (len > 0)
        memcpy(buf->text + buf->len, bytes, len);
    buf->len += len;
    buf->text[buf->len] = '\0';
}

void rv__buf_str(struct rv__buf *buf, struct rv__str s)
{
    rv__buf_add(buf, s.at, s.len);
}

void rv__buf_text(struct rv__buf *buf, const char *text)
{
    rv__buf_add(buf, text, strlen(text));
}

void rv__buf_char(struct rv__buf *buf, char c)
{
    rv__buf_add(buf, &c, 1);
}

void rv__buf_int(struct rv__buf *buf, int64_t n)
{
    char digits[20]; /* 19 of them and a sign */
    size_t at = sizeof digits;
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (n < 0)
        digits[--at] = '-';
    rv__buf_add(buf, digits + at, sizeof digits - at);
}

void rv__buf_fmt(struct rv__buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    assert(n >= 0); /* fails for a bad format only, and the compiler checks those */
    if (n < 0 || !reserve(buf, (size_t)n))
        return;
    va_start(args, fmt);
    (void)vsnprintf(buf->text + buf->len, (size_t)n + 1, fmt, args); /* measured above */
    va_end(args);
    buf->len += (size_t)n;
}

void rv__buf_cut(struct rv__buf *buf, size_t len)
{
    assert(len <= buf->len);
    buf->len = len;
    if (buf->text != NULL)
        buf->text[len] = '\0';
}

int rv__buf_err(const struct rv__buf *buf, rv_error *err)
{
    if (buf->rc == RV_ETOOBIG)
        return rv__fail(err, RV_ETOOBIG, "text would be longer than %zu bytes", buf->max_bytes);
    if (buf->rc != RV_OK)
        return rv__nomem(err);
    return RV_OK;
}

char *rv__buf_take(struct rv__buf *buf)
{
    rv__buf_add(buf, "", 0); /* an empty one gets its NUL */
    if (buf->rc != RV_OK)
        return NULL;
    char *text = buf->text;
    buf->text = NULL;
    buf->len = buf->cap = 0;
    return text;
}

void rv__buf_message(struct rv__buf *buf, struct rv__str message, size_t max)
{
    static const struct rv__str cut = RV__STR("…");
    if (message.len > max) {
        rv__buf_str(buf, cut);
        message = rv__str_end(message, max - cut.len);
    }
    rv__buf_str(buf, message);
}

void rv__buf_base64(struct rv__buf *buf, struct rv__str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes.at;
    for (size_t left = bytes.len; left > 0;) {
        size_t n = left < 3 ? left : 3;
        unsigned group = (unsigned)at[0] << 16 | (n > 1 ? (unsigned)at[1] << 8 : 0) |
                         (n > 2 ? at[2] : 0u);
        const char text[4] = { digits[group >> 18], digits[group >> 12 & 63],
                               (char)(n > 1 ? digits[group >> 6 & 63] : '='),
                               (char)(n > 2 ? digits[group & 63] : '=') };
        rv__buf_add(buf, text, sizeof text);
        at += n;
        left -= n;
    }
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool rv__buf_from_base64(struct rv__buf *buf, struct rv__str text)
{
    unsigned group = 0, digits = 0, padding = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\n' || text.at[i] == '\r')
            continue;
        int digit = base64_digit(text.at[i]);
        if (text.at[i] == '=')
            padding++;
        else if (digit < 0 || padding > 0)
            return false;
        group = group << 6 | (digit > 0 ? (unsigned)digit : 0);
        if (++digits % 4 != 0)
            continue;
        const char bytes[3] = { (char)(group >> 16 & 255), (char)(group >> 8 & 255),
                                (char)(group & 255) };
        if (padding > 2)
            return false;
        rv__buf_add(buf, bytes, 3 - padding);
        group = 0;
    }
    return digits % 4 == 0;
}
