/* scalar.c: reads a plain scalar by the core schema of YAML 1.2, and writes it as JSON.
 *
 * `yes`, `no`, `on`, `off` are texts, and so are dates; 0o17 and 0x1F are numbers, 017 is seventeen. */
#include "define/tree.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_one_of(struct rv__str text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rv__str_is(text, words[i]))
            return true;
    return false;
}

/* Reads 0o17 or 0x1F. False: it is neither, or has more than 63 bits. */
static bool read_radix(struct rv__str text, uint64_t *ret)
{
    unsigned base;
    uint64_t n = 0;
    if (text.len < 3 || text.at[0] != '0' || (text.at[1] != 'o' && text.at[1] != 'x'))
        return false;
    base = text.at[1] == 'o' ? 8 : 16;
    for (size_t i = 2; i < text.len; i++) {
        char c = text.at[i];
        unsigned digit = is_digit(c)              ? (unsigned)(c - '0')
                         : (c >= 'a' && c <= 'f') ? (unsigned)(c - 'a') + 10
                         : (c >= 'A' && c <= 'F') ? (unsigned)(c - 'A') + 10
                                                  : 16;
        if (digit >= base || n > ((uint64_t)INT64_MAX - digit) / base)
            return false;
        n = n * base + digit;
    }
    *ret = n;
    return true;
}

static size_t span_digits(struct rv__str text, size_t from)
{
    size_t to = from;
    while (to < text.len && is_digit(text.at[to]))
        to++;
    return to;
}

/* [-+]? ( \. digits | digits ( \. digits? )? ) ( [eE] [-+]? digits )?  Where its parts are. */
struct decimal {
    bool minus;
    struct rv__str whole, fraction, exponent; /* the exponent with its sign */
};

static bool read_decimal(struct rv__str text, struct decimal *d)
{
    size_t at = 0, to;
    *d = (struct decimal){ 0 };
    if (text.len > 0 && (text.at[0] == '-' || text.at[0] == '+'))
        d->minus = text.at[at++] == '-';
    to = span_digits(text, at);
    d->whole = (struct rv__str){ text.at + at, to - at };
    at = to;
    if (at < text.len && text.at[at] == '.') {
        to = span_digits(text, ++at);
        d->fraction = (struct rv__str){ text.at + at, to - at };
        at = to;
    }
    if (d->whole.len + d->fraction.len == 0)
        return false;
    if (at < text.len && (text.at[at] == 'e' || text.at[at] == 'E')) {
        size_t from = ++at;
        if (at < text.len && (text.at[at] == '-' || text.at[at] == '+'))
            at++;
        to = span_digits(text, at);
        if (to == at)
            return false;
        d->exponent = (struct rv__str){ text.at + from, to - from };
        at = to;
    }
    return at == text.len;
}

static struct rv__str write_decimal(const struct decimal *d, struct rv__arena *arena)
{
    size_t room = d->whole.len + d->fraction.len + d->exponent.len + 6, len = 0;
    struct rv__str whole = d->whole;
    char *out = rv__arena_alloc(arena, room);
    if (out == NULL)
        return (struct rv__str){ NULL, 0 };
    while (whole.len > 1 && *whole.at == '0') { /* JSON allows no leading zeros */
        whole.at++;
        whole.len--;
    }
    if (d->minus)
        out[len++] = '-';
    if (whole.len == 0)
        out[len++] = '0';
    memcpy(out + len, whole.len > 0 ? whole.at : "", whole.len);
    len += whole.len;
    if (!rv__str_none(d->fraction)) {
        out[len++] = '.';
        if (d->fraction.len == 0)
            out[len++] = '0';
        memcpy(out + len, d->fraction.len > 0 ? d->fraction.at : "", d->fraction.len);
        len += d->fraction.len;
    }
    if (!rv__str_none(d->exponent)) {
        out[len++] = 'e';
        memcpy(out + len, d->exponent.at, d->exponent.len);
        len += d->exponent.len;
    }
    return (struct rv__str){ out, len };
}

bool rv__yaml_plain(struct rv__str text, struct rv__arena *arena, enum rv__tree_kind *kind,
                    struct rv__str *ret)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
    static const char *const trues[] = { "true", "True", "TRUE" };
    static const char *const falses[] = { "false", "False", "FALSE" };
    static const char *const unreal[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf", "+.INF",
                                          "-.inf", "-.Inf", "-.INF", ".nan",  ".NaN",  ".NAN" };
    struct decimal decimal;
    uint64_t n;

    *kind = TREE_STRING;
    *ret = (struct rv__str){ NULL, 0 };
    if (is_one_of(text, nulls, 5)) {
        *kind = TREE_NULL;
        *ret = (struct rv__str)RV__STR("null");
    } else if (is_one_of(text, trues, 3)) {
        *kind = TREE_BOOL;
        *ret = (struct rv__str)RV__STR("true");
    } else if (is_one_of(text, falses, 3)) {
        *kind = TREE_BOOL;
        *ret = (struct rv__str)RV__STR("false");
    } else if (is_one_of(text, unreal, sizeof unreal / sizeof *unreal)) {
        return false;
    } else if (read_radix(text, &n)) {
        struct rv__buf digits;
        rv__buf_init(&digits, 64);
        rv__buf_int(&digits, (int64_t)n);
        *kind = TREE_NUMBER;
        (void)(digits.rc == RV_OK && rv__str_copy(arena, rv__buf_view(&digits), ret));
        rv__buf_done(&digits);
    } else if (read_decimal(text, &decimal)) {
        *kind = TREE_NUMBER;
        *ret = write_decimal(&decimal, arena);
    }
    return true;
}
