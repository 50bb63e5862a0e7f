/* lines.c: see lines.h. */
#include "exec/lines.h"

#include "exec/exec.h"

static const char cut_mark[] = "…";

void rv__lines_init(struct rv__lines *lines, void (*line)(void *arg, struct rv__str line),
                    void *arg)
{
    *lines = (struct rv__lines){ .line = line, .arg = arg };
    rv__buf_init(&lines->open, RV__COMMAND_LINE + sizeof cut_mark);
    rv__buf_init(&lines->tail, 2 * (size_t)RV__COMMAND_TAIL);
}

void rv__lines_done(struct rv__lines *lines)
{
    rv__buf_done(&lines->open);
    rv__buf_done(&lines->tail);
}

/* The tail keeps the end of a long line: errors usually say most there. */
static void keep(struct rv__buf *tail, struct rv__str bytes)
{
    if (bytes.len > RV__COMMAND_TAIL)
        bytes = (struct rv__str){ bytes.at + bytes.len - RV__COMMAND_TAIL, RV__COMMAND_TAIL };
    if (tail->len + bytes.len > tail->max_bytes) {
        size_t gone = tail->len - RV__COMMAND_TAIL;
        memmove(tail->text, tail->text + gone, RV__COMMAND_TAIL);
        rv__buf_cut(tail, RV__COMMAND_TAIL);
    }
    rv__buf_str(tail, bytes);
    if (tail->rc != RV_OK)
        rv__buf_reset(tail);
}

/* Remove the bytes of a character that was cut in two. */
static void cut_whole(struct rv__buf *line)
{
    size_t len = line->len;
    while (len > 0 && line->len - len < 4 && ((unsigned char)line->text[len - 1] & 0xc0) == 0x80)
        len--;
    if (len > 0 && (unsigned char)line->text[len - 1] >= 0xc0)
        rv__buf_cut(line, len - 1);
    rv__buf_text(line, cut_mark);
}

static void emit(struct rv__lines *lines)
{
    struct rv__buf *open = &lines->open;
    if (!lines->cut && open->len > 0 && open->text[open->len - 1] == '\r')
        rv__buf_cut(open, open->len - 1);
    if (lines->cut)
        cut_whole(open);
    if (open->rc == RV_OK && lines->line != NULL)
        lines->line(lines->arg, rv__buf_view(open));
    if (lines->tail.len > 0 && lines->tail.text[lines->tail.len - 1] == '\r')
        rv__buf_cut(&lines->tail, lines->tail.len - 1);
    keep(&lines->tail, (struct rv__str)RV__STR("\n"));
    rv__buf_reset(open);
    lines->cut = false;
}

void rv__lines_add(struct rv__lines *lines, struct rv__str bytes)
{
    const char *at = bytes.at, *end = bytes.at + bytes.len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        size_t room = RV__COMMAND_LINE - lines->open.len;
        if (len > room)
            lines->cut = true;
        rv__buf_add(&lines->open, at, len < room ? len : room);
        keep(&lines->tail, (struct rv__str){ at, len });
        if (newline == NULL)
            return;
        emit(lines);
        at = newline + 1;
    }
}

void rv__lines_end(struct rv__lines *lines)
{
    if (lines->open.len > 0 || lines->open.rc != RV_OK)
        emit(lines);
}

struct rv__str rv__lines_tail(const struct rv__lines *lines)
{
    struct rv__str all = rv__buf_view(&lines->tail);
    if (all.len == 0)
        return all;
    all.len -= all.at[all.len - 1] == '\n'; /* the last one */
    if (all.len < RV__COMMAND_TAIL)
        return all;
    const char *end = all.at + all.len, *from = end - (RV__COMMAND_TAIL - 1);
    if (from[-1] != '\n') {
        const char *newline = memchr(from, '\n', (size_t)(end - from));
        from = newline != NULL ? newline + 1 : from;
    }
    return rv__str_end(all, (size_t)(end - from)); /* cuts at the beginning of a character */
}
