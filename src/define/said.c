/* said.c: problems of a C file, with their lines, from the compiler's output.
 *
 * Compilers agree on "FILE:LINE:COLUMN: error: what". Such lines about the file itself become its problems. If
 * there are none (a system header, the linker), the problem is about the whole file, with the given reason. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "define/define.h"
#include "define/tree.h"

/* "12:3: error: what", after the file's name. False: another form, or no error. */
static bool read_error(struct rv__str line, unsigned long *at_line, unsigned long *column,
                       struct rv__str *what)
{
    static const char *const marks[] = { " error: ", " fatal error: " };
    char *end;
    *at_line = strtoul(line.at, &end, 10);
    if (end == line.at || *end != ':')
        return false;
    const char *from = end + 1;
    *column = strtoul(from, &end, 10);
    if (end == from || *end != ':') { /* without a column */
        *column = 1;
        end = (char *)(uintptr_t)(from - 1);
    }
    end++;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t len = strlen(marks[i]), left = line.len - (size_t)(end - line.at);
        if (left > len && memcmp(end, marks[i], len) == 0) {
            *what = (struct rv__str){ end + len, left - len };
            return true;
        }
    }
    return false;
}

/* The position of its workflow declaration, for problems that have no other. */
static uint32_t declared_at(const struct rv__source *source)
{
    static const char mark[] = "RV_WORKFLOW";
    struct rv__str name;
    if (source->text.len == 0 || rv__cfile_declares(source->text, &name) != DECLARES_WORKFLOW)
        return RV__NOWHERE;
    const char *found = NULL, *next = source->text.at;
    const char *end = name.at != NULL ? name.at : source->text.at + source->text.len;
    while ((next = memmem(next, (size_t)(end - next), mark, sizeof mark - 1)) != NULL) {
        found = next;
        next += sizeof mark - 1;
        if (name.at == NULL)
            break;
    }
    return found != NULL ? (uint32_t)(found - source->text.at) : RV__NOWHERE;
}

static void tell_said(struct rv__problems *to, const struct rv__source *source, struct rv__str said)
{
    const char *at = said.at, *end = at + said.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct rv__str line = { at, (size_t)((stop != NULL ? stop : end) - at) }, what;
        unsigned long number, column;
        size_t skip = source->file.len + 1;
        if (line.len > skip && memcmp(at, source->file.at, skip - 1) == 0 && at[skip - 1] == ':' &&
            read_error((struct rv__str){ at + skip, line.len - skip }, &number, &column, &what))
            rv__problem_add(to, source, rv__source_at(source, number, column), "%.*s",
                            RV__ARG(what));
        at += line.len + 1;
    }
}

int rv__definitions_complain_c(struct rv__definitions *all, const char *file, struct rv__str said,
                               const char *why)
{
    struct rv__problems problems = { .arena = &all->arena,
                                     .items = all->problems,
                                     .count = all->problem_count,
                                     .cap = all->problem_count };
    struct rv__arena arena;
    struct rv__source source = { .file = rv__str(file) };
    size_t told = 0;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the size of a file */
    int rc = rv__source_read(file, &arena, &source.text);
    source.told = &told;
    if (rc == RV_OK && said.len > 0)
        tell_said(&problems, &source, said);
    if (rc == RV_OK && told == 0)
        rv__problem_add(&problems, &source, rv__str_none(said) ? declared_at(&source) : RV__NOWHERE,
                        "%s", why);
    rv__arena_done(&arena);
    if (rc < 0 || problems.rc < 0)
        return RV_ENOMEM;
    all->problems = problems.items;
    all->problem_count = problems.count;
    all->dropped += problems.dropped;
    rv__definitions_sort(all);
    return RV_OK;
}
