/* problems.c: collects problems, with the lines they are in. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "define/tree.h"

enum {
    EXCERPT_BEFORE = 100, /* bytes of a long line before the position, and */
    EXCERPT_AFTER = 60,   /* after it: fits a wide terminal */
};

static bool is_printable(unsigned char c)
{
    return c >= ' ' && c != 0x7f;
}

/* Cut at a whole character, without control characters. */
struct rv__cite rv__cite(struct rv__str text)
{
    enum { SHOWN = 60 };
    struct rv__cite cite;
    size_t len = text.len <= SHOWN ? text.len : SHOWN;
    while (len > 0 && len < text.len && ((unsigned char)text.at[len] & 0xc0) == 0x80)
        len--;
    memcpy(cite.text, len > 0 ? text.at : "", len);
    for (size_t i = 0; i < len; i++)
        if (!is_printable((unsigned char)cite.text[i]))
            cite.text[i] = ' ';
    cite.text[len] = '\0';
    if (len < text.len)
        memcpy(cite.text + len, "…", sizeof "…");
    return cite;
}

static uint32_t count_characters(struct rv__str text)
{
    uint32_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

uint32_t rv__source_at(const struct rv__source *source, unsigned long line, unsigned long column)
{
    const char *at = source->text.at, *end = at + source->text.len;
    for (; line > 1 && at < end; at++)
        line -= *at == '\n';
    for (; column > 1 && at < end && *at != '\n'; column--)
        do
            at++;
        while (at < end && ((unsigned char)*at & 0xc0) == 0x80);
    return (uint32_t)(at - source->text.at);
}

/* The line around `at`. Bytes that are not text become '?', so that it can be printed. */
static int add_excerpt(struct rv__problem *problem, struct rv__arena *arena, struct rv__str text,
                       size_t at)
{
    size_t from = at, to = at;
    while (from > 0 && text.at[from - 1] != '\n' && at - from < EXCERPT_BEFORE)
        from--;
    while (from < at && ((unsigned char)text.at[from] & 0xc0) == 0x80)
        from++;
    while (to < text.len && text.at[to] != '\n' && text.at[to] != '\r' && to - at < EXCERPT_AFTER)
        to++;
    while (to > at && to < text.len && ((unsigned char)text.at[to] & 0xc0) == 0x80)
        to--;
    static const char more[] = "…"; /* after a line that was cut */
    bool cut = to < text.len && text.at[to] != '\n' && text.at[to] != '\r';
    size_t more_len = cut ? sizeof more - 1 : 0;
    char *copy = rv__arena_alloc(arena, to - from + sizeof more);
    if (copy == NULL)
        return RV_ENOMEM;
    if (to > from)
        memcpy(copy, text.at + from, to - from);
    bool utf8 = rv__str_utf8((struct rv__str){ copy, to - from });
    for (size_t i = 0; i < to - from; i++) {
        unsigned char c = (unsigned char)copy[i];
        if (c == '\t')
            copy[i] = ' ';
        else if (!is_printable(c) || (!utf8 && c >= 0x80))
            copy[i] = '?';
    }
    memcpy(copy + (to - from), more, more_len);
    copy[to - from + more_len] = '\0';
    problem->excerpt = (struct rv__str){ copy, to - from + more_len };
    problem->caret = count_characters((struct rv__str){ copy, at - from });
    return RV_OK;
}

static struct rv__problem *grow(struct rv__problems *to)
{
    if (to->count == to->cap) {
        size_t cap = to->cap ? to->cap * 2 : 8;
        struct rv__problem *items = rv__arena_zalloc(to->arena, cap, sizeof *items);
        if (items == NULL)
            return NULL;
        if (to->count > 0)
            memcpy(items, to->items, to->count * sizeof *items);
        to->items = items;
        to->cap = cap;
    }
    return &to->items[to->count];
}

/* Is it already in the list? Only the latest are compared. */
static bool is_known(const struct rv__problems *to, const struct rv__problem *problem)
{
    size_t oldest = to->count > RV__DEFINE_MAX_PROBLEMS ? to->count - RV__DEFINE_MAX_PROBLEMS : 0;
    for (size_t i = to->count; i > oldest; i--) {
        const struct rv__problem *other = &to->items[i - 1];
        if (other->line == problem->line && other->column == problem->column &&
            rv__str_eq(other->file, problem->file) && rv__str_eq(other->message, problem->message))
            return true;
    }
    return false;
}

bool rv__problems_full(const struct rv__source *source)
{
    return source->told != NULL && *source->told >= RV__DEFINE_MAX_PROBLEMS;
}

void rv__problem_warn(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                      const char *fmt, ...)
{
    enum { MAX_WARNINGS = 1000 }; /* of all files: more than anybody reads */
    char message[1024];
    struct rv__source uncounted = { source->file, source->text, NULL };
    va_list args;
    if (to->warnings == NULL || to->warnings->count >= MAX_WARNINGS)
        return;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    rv__problem_add(to->warnings, &uncounted, at, "%s", message);
    if (to->warnings->rc != RV_OK)
        to->rc = to->warnings->rc;
}

void rv__problem_add(struct rv__problems *to, const struct rv__source *source, uint32_t at,
                     const char *fmt, ...)
{
    char message[1024]; /* a sentence with a quotation or two */
    struct rv__problem problem = { .file = source->file };
    va_list args;
    if (rv__problems_full(source)) {
        to->dropped++;
        return;
    }
    va_start(args, fmt);
    int len = vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (len < 0)
        message[0] = '\0';
    for (size_t i = 0; message[i] != '\0'; i++)
        if (!is_printable((unsigned char)message[i]))
            message[i] = ' ';
    problem.message = rv__str(message);
    while (!rv__str_utf8(problem.message)) /* cut within a character */
        problem.message.len--;

    if (at != RV__NOWHERE) {
        size_t line, column;
        if (at > source->text.len)
            at = (uint32_t)source->text.len;
        rv__json_where(source->text, source->text.at + at, &line, &column);
        problem.line = (uint32_t)line;
        problem.column = (uint32_t)column;
    }
    if (to->rc != RV_OK || is_known(to, &problem))
        return;
    struct rv__problem *item = grow(to);
    if (item == NULL || rv__str_copy(to->arena, problem.message, &problem.message) < 0 ||
        rv__str_copy(to->arena, problem.file, &problem.file) < 0 ||
        (at != RV__NOWHERE && add_excerpt(&problem, to->arena, source->text, at) < 0)) {
        to->rc = RV_ENOMEM;
        return;
    }
    *item = problem;
    to->count++;
    if (source->told != NULL)
        ++*source->told;
}
