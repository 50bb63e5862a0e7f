/* text.c: text for terminals. */
#include "cli/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"

bool rv__text_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *term = getenv("TERM");
    if (term != NULL && (strcmp(term, "linux") == 0 || strcmp(term, "dumb") == 0))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0') /* the first that is set decides, as in locale(7) */
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

/* ---------------------------------------------------------------------------------- widths --- */

/* Decode one character: its code point; returns its bytes, 0: not UTF-8. */
static size_t decode(struct rv__str text, uint32_t *ret)
{
    const unsigned char *at = (const unsigned char *)text.at;
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (len > text.len || !rv__str_utf8((struct rv__str){ text.at, len }))
        return 0;
    *ret = len == 1 ? at[0] : at[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        *ret = *ret << 6 | (at[i] & 0x3Fu);
    return len;
}

static const struct {
    uint32_t from, to;
    int width;
} widths[] = {
    /* the ranges that matter in practice: marks without width, wide scripts, emoji */
    { 0x0300, 0x036F, 0 },   { 0x200B, 0x200F, 0 },   { 0x202A, 0x202E, 0 },
    { 0x2060, 0x2069, 0 },   { 0xFE00, 0xFE0F, 0 },   { 0xFEFF, 0xFEFF, 0 },
    { 0x1100, 0x115F, 2 },   { 0x2E80, 0xA4CF, 2 },   { 0xAC00, 0xD7A3, 2 },
    { 0xF900, 0xFAFF, 2 },   { 0xFE30, 0xFE6F, 2 },   { 0xFF00, 0xFF60, 2 },
    { 0x1F300, 0x1F64F, 2 }, { 0x1F680, 0x1F6FF, 2 }, { 0x1F900, 0x1F9FF, 2 },
    { 0x20000, 0x3FFFD, 2 },
};

static int width_of(uint32_t c)
{
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (c >= widths[i].from && c <= widths[i].to)
            return widths[i].width;
    return 1;
}

/* The next character as it is printed: *shown are its bytes. Returns its width. */
static int next_shown(struct rv__str *text, bool unicode, struct rv__str *shown)
{
    uint32_t c = 0;
    size_t len = decode(*text, &c);
    int width = 1;
    *shown = (struct rv__str){ text->at, len };
    if (len == 0 || (c >= 0x80 && !unicode)) {
        *shown = rv__str("?");
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
        *shown = rv__str(" ");
    } else if ((width = width_of(c)) == 0 && c != 0x0301) {
        bool mark = c >= 0x0300 && c <= 0x036F; /* the others control the writing direction */
        *shown = mark ? *shown : rv__str("");
    }
    text->at += len ? len : 1;
    text->len -= len ? len : 1;
    return width;
}

int rv__text_width(struct rv__str text)
{
    struct rv__str shown;
    bool unicode = rv__text_unicode();
    int width = 0;
    while (text.len > 0)
        width += next_shown(&text, unicode, &shown);
    return width;
}

int rv__text_fit(struct rv__buf *out, struct rv__str text, int width)
{
    bool unicode = rv__text_unicode();
    int used = 0, kept = 0;
    size_t cut = out->len; /* up to here there is room for the dots */
    if (width <= 0)
        return 0;
    while (text.len > 0) {
        struct rv__str shown;
        int w = next_shown(&text, unicode, &shown);
        if (used + w > width) {
            rv__buf_cut(out, cut);
            rv__buf_text(out, unicode ? "…" : ".");
            return kept + 1;
        }
        rv__buf_str(out, shown);
        used += w;
        if (used < width) {
            cut = out->len;
            kept = used;
        }
    }
    return used;
}

void rv__text_pad(struct rv__buf *out, struct rv__str text, int width)
{
    for (int used = rv__text_fit(out, text, width); used < width; used++)
        rv__buf_char(out, ' ');
}

/* ----------------------------------------------------------------------------------- times --- */

const char *rv__text_duration(int64_t ms, char ret[RV__DURATION_TEXT])
{
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(ret, RV__DURATION_TEXT, "0ms");
    else if (ms < 1000)
        snprintf(ret, RV__DURATION_TEXT, "%lldms", (long long)ms);
    else if (s < 60)
        snprintf(ret, RV__DURATION_TEXT, "%lld.%llds", s, (long long)(ms / 100 % 10));
    else if (s < 3600)
        snprintf(ret, RV__DURATION_TEXT, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(ret, RV__DURATION_TEXT, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(ret, RV__DURATION_TEXT, "%lldd%lldh", s / 86400, s / 3600 % 24);
    return ret;
}

static struct tm local_time(int64_t at_ms)
{
    time_t at = (time_t)(at_ms / 1000);
    struct tm tm = { .tm_mday = 1 };
    (void)localtime_r(&at, &tm); /* fails for years beyond any clock */
    return tm;
}

const char *rv__text_when(int64_t at_ms, int64_t now_ms, char ret[RV__WHEN_TEXT])
{
    struct tm at = local_time(at_ms), now = local_time(now_ms);
    bool today = at.tm_year == now.tm_year && at.tm_yday == now.tm_yday;
    ret[0] = '\0';
    if (at_ms != 0)
        (void)strftime(ret, RV__WHEN_TEXT, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &at);
    return ret;
}

const char *rv__text_clock(int64_t at_ms, bool with_ms, char ret[RV__WHEN_TEXT])
{
    struct tm at = local_time(at_ms);
    char text[RV__WHEN_TEXT];
    (void)strftime(text, sizeof text, "%H:%M:%S", &at);
    if (with_ms)
        snprintf(ret, RV__WHEN_TEXT, "%.8s.%03d", text, (int)(at_ms % 1000));
    else
        snprintf(ret, RV__WHEN_TEXT, "%.8s", text);
    return ret;
}

/* ----------------------------------------------------------------------------------- forms --- */

void rv__text_mask(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F */
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (c1)
            at[0] = at[1] = '?';
    }
}

void rv__text_error(struct rv__buf *out, struct rv__str json)
{
    struct rv__arena arena;
    struct rv__str member = json, text = json;
    rv__arena_init(&arena, RV__JSON_MAX_BYTES);
    if (json.len > 0)
        (void)rv__json_get(json, "message", &member);
    if (json.len == 0 || rv__json_string(member, &arena, &text) < 0)
        text = member;
    rv__buf_str(out, text);
    if (json.len > 0 && rv__json_get(json, "cause", &member) &&
        rv__json_get(member, "message", &member) &&
        rv__json_string(member, &arena, &text) == RV_OK) {
        rv__buf_text(out, " (it was suspended: ");
        rv__buf_str(out, text);
        rv__buf_char(out, ')');
    }
    rv__arena_done(&arena);
}

void rv__text_failed_at(struct rv__buf *out, const char *failed_path, const char *failed_step)
{
    const char *at = *failed_path != '\0' ? failed_path : failed_step;
    if (*at != '\0')
        rv__buf_fmt(out, "%s: ", at);
}

/* A control character at `at`: how many bytes it has; 0: there is none. */
static size_t control_at(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
        return 2;
    return (byte[0] < 0x20 || byte[0] == 0x7f) && byte[0] != '\0' ? 1 : 0;
}

/* Control characters must not reach a terminal: $'…' has escapes for them, in bash, zsh and ksh. */
static void quote_escaped(struct rv__buf *out, const char *word)
{
    rv__buf_text(out, "$'");
    while (*word != '\0') {
        size_t control = control_at(word);
        for (size_t i = 0; i < control; i++)
            rv__buf_fmt(out, "\\x%02x", (unsigned char)word[i]);
        if (control == 0) {
            if (*word == '\'' || *word == '\\')
                rv__buf_char(out, '\\');
            rv__buf_char(out, *word);
        }
        word += control > 0 ? control : 1;
    }
    rv__buf_char(out, '\'');
}

void rv__text_shell(struct rv__buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._/:=@%+,-";
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        rv__buf_text(out, word);
        return;
    }
    for (const char *at = word; *at != '\0'; at++)
        if (control_at(at) > 0) {
            quote_escaped(out, word);
            return;
        }
    rv__buf_char(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            rv__buf_text(out, "'\\''");
        else
            rv__buf_char(out, *word);
    }
    rv__buf_char(out, '\'');
}

static void new_line(struct rv__buf *out, int depth)
{
    rv__buf_char(out, '\n');
    for (int i = 0; i < depth; i++)
        rv__buf_text(out, "  ");
}

/* One pass without recursion: only brackets, commas and colons outside of strings matter. */
void rv__text_json(struct rv__buf *out, struct rv__str json)
{
    int depth = 0;
    const char *at = json.at, *end = json.at + json.len;
    while (at < end) {
        char c = *at;
        if (c == '"') {
            const char *next = rv__json_skip(at, end);
            rv__buf_add(out, at, (size_t)(next - at));
            at = next;
            continue;
        }
        at++;
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
            continue;
        if (c == '}' || c == ']')
            new_line(out, --depth);
        rv__buf_char(out, c);
        if (c == '{' || c == '[') {
            while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
                at++;
            if (at < end && (*at == '}' || *at == ']'))
                rv__buf_char(out, *at++);
            else
                new_line(out, ++depth);
        } else if (c == ',') {
            new_line(out, depth);
        } else if (c == ':') {
            rv__buf_char(out, ' ');
        }
    }
}

bool rv__count_read(const char *text, int64_t *ret)
{
    int64_t n;
    if (rv__json_check(rv__str(text), 1, NULL, NULL) < 0 || rv__json_int(rv__str(text), &n) < 0 ||
        n < 1 || n > INT32_MAX)
        return false;
    *ret = n;
    return true;
}
