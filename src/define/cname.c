/* cname.c: finds the name of the workflow in a C or TypeScript file by reading its text. Listing files must not
 * run their code, so nothing more is known before a file is loaded (rv__cfile_build, or a host).
 *
 * It skips comments and literals as a compiler does, but expands no macros and evaluates no conditions. If the
 * name comes from a macro, it is not found, and the name of the file is used. */
#include <stdio.h>
#include <string.h>

#include "define/define.h"
#include "define/tree.h"

struct scan {
    const char *at, *end;
};

static bool begins(const struct scan *s, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

static bool in_name(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Skip the literal that begins here. */
static void skip_literal(struct scan *s)
{
    char quote = *s->at++;
    while (s->at < s->end && *s->at != quote && *s->at != '\n')
        s->at += *s->at == '\\' && s->at + 1 < s->end ? 2 : 1;
    s->at += s->at < s->end;
}

/* Skip white space and comments. False: there were none. */
static bool skip_blank(struct scan *s)
{
    const char *from = s->at;
    while (s->at < s->end) {
        if (begins(s, "/*")) {
            const char *close = memmem(s->at + 2, (size_t)(s->end - s->at) - 2, "*/", 2);
            s->at = close != NULL ? close + 2 : s->end;
        } else if (begins(s, "//")) {
            const char *close = memchr(s->at, '\n', (size_t)(s->end - s->at));
            s->at = close != NULL ? close : s->end;
        } else if (strchr(" \t\r\n\\", *s->at) != NULL && *s->at != '\0') {
            s->at++;
        } else {
            break;
        }
    }
    return s->at != from;
}

/* The literal in RV_WORKFLOW("name", …); none: its first argument is something else. */
static struct rv__str name_in_call(struct scan *s)
{
    struct rv__str none = { NULL, 0 };
    (void)skip_blank(s);
    if (s->at == s->end || *s->at++ != '(')
        return none;
    (void)skip_blank(s);
    if (s->at == s->end || *s->at != '"')
        return none;
    const char *from = s->at + 1;
    skip_literal(s);
    struct rv__str name = { from, (size_t)(s->at - from) };
    if (name.len == 0 || name.at[--name.len] != '"' || memchr(name.at, '\\', name.len) != NULL)
        return none;
    (void)skip_blank(s);
    return s->at < s->end && (*s->at == ',' || *s->at == ')') ? name : none;
}

enum rv__declares rv__cfile_declares(struct rv__str text, struct rv__str *name)
{
    enum rv__declares found = DECLARES_NOTHING;
    struct scan s = { text.at, text.at + text.len };
    *name = (struct rv__str){ NULL, 0 };
    while (s.at < s.end) {
        if (skip_blank(&s))
            continue;
        if (*s.at == '"' || *s.at == '\'') {
            skip_literal(&s);
        } else if (in_name(*s.at)) {
            const char *from = s.at;
            while (s.at < s.end && in_name(*s.at))
                s.at++;
            struct rv__str word = { from, (size_t)(s.at - from) };
            if (rv__str_is(word, "RV_WORKFLOW")) {
                *name = name_in_call(&s);
                return DECLARES_WORKFLOW;
            }
            if (rv__str_is(word, "RV_FUNCTIONS"))
                found = DECLARES_FUNCTIONS;
        } else {
            s.at++;
        }
    }
    return found;
}

/* ------------------------------------------------------------------------------- scripts --- */

/* The identifier that comes next; empty: something else does. */
static struct rv__str next_word(struct scan *s)
{
    (void)skip_blank(s);
    const char *from = s->at;
    while (s->at < s->end && (in_name(*s->at) || *s->at == '$'))
        s->at++;
    return (struct rv__str){ from, (size_t)(s->at - from) };
}

/* The text of the literal that comes next; none: something else does. */
static struct rv__str next_literal(struct scan *s)
{
    (void)skip_blank(s);
    if (s->at == s->end || (*s->at != '"' && *s->at != '\''))
        return (struct rv__str){ NULL, 0 };
    const char *from = s->at + 1;
    skip_literal(s);
    return s->at > from ? (struct rv__str){ from, (size_t)(s->at - 1 - from) }
                        : (struct rv__str){ NULL, 0 };
}

static bool makes_workflow(struct rv__str word)
{
    return rv__str_is(word, "createWorkflow") || rv__str_is(word, "defineWorkflow");
}

/* What is known of a script so far. */
struct script {
    bool steps, exports, makes,
        runs;                  /* `steps`, or something else; makes a workflow; starts an engine */
    struct rv__str name, made; /* exported as `name`; name of the first workflow it makes */
};

/* After the word `export`. */
static void take_export(struct scan *s, struct script *found)
{
    struct rv__str word = next_word(s), name;
    if (rv__str_is(word, "const") || rv__str_is(word, "let") || rv__str_is(word, "var")) {
        name = next_word(s);
        found->steps |= rv__str_is(name, "steps");
        found->exports = true;
        (void)skip_blank(s);
        if (rv__str_is(name, "name") && s->at < s->end && *s->at == '=') {
            s->at++;
            found->name = next_literal(s);
        }
    } else if (rv__str_is(word, "default")) {
        found->exports = true;
    } else if (word.len == 0 && s->at < s->end && *s->at == '{') {
        const char *close = memchr(s->at, '}', (size_t)(s->end - s->at));
        struct scan list = { s->at + 1, close != NULL ? close : s->end };
        found->exports = true;
        while (list.at < list.end) {
            name = next_word(&list);
            found->steps |= rv__str_is(name, "steps");
            list.at += name.len == 0 && list.at < list.end;
        }
        s->at = list.end;
    }
}

static void skip_template(struct scan *s)
{
    for (s->at++; s->at < s->end && *s->at != '`'; s->at++)
        s->at += *s->at == '\\' && s->at + 1 < s->end;
    s->at += s->at < s->end;
}

enum rv__declares rv__script_declares(struct rv__str text, struct rv__str *name)
{
    struct scan s = { text.at, text.at + text.len };
    struct script found = { .steps = false };
    while (s.at < s.end) {
        if (skip_blank(&s))
            continue;
        if (*s.at == '`') {
            skip_template(&s);
        } else if (*s.at == '"' || *s.at == '\'') {
            skip_literal(&s);
        } else if (in_name(*s.at)) {
            struct rv__str word = next_word(&s);
            (void)skip_blank(&s);
            bool called = s.at < s.end && *s.at == '(';
            if (rv__str_is(word, "export")) {
                take_export(&s, &found);
            } else if (called && makes_workflow(word)) {
                s.at++;
                if (!found.makes)
                    found.made = next_literal(&s);
                found.makes = true;
            } else if (called && rv__str_is(word, "rival")) {
                found.runs = true;
            }
        } else {
            s.at++;
        }
    }
    *name = found.steps ? found.name : found.made;
    return found.steps || (found.makes && found.exports && !found.runs) ? DECLARES_WORKFLOW
                                                                        : DECLARES_NOTHING;
}

struct rv__str rv__file_stem(struct rv__str path)
{
    const char *slash = memrchr(path.at, '/', path.len);
    struct rv__str name = path;
    if (slash != NULL)
        name = (struct rv__str){ slash + 1, path.len - (size_t)(slash + 1 - path.at) };
    const char *dot = memrchr(name.at, '.', name.len);
    if (dot != NULL && dot > name.at)
        name.len = (size_t)(dot - name.at);
    return name;
}

int rv__cfile_name(const char *path, struct rv__arena *arena, enum rv__declares *declares,
                   struct rv__str *ret)
{
    struct rv__str text, name = { NULL, 0 };
    *declares = DECLARES_WORKFLOW; /* of a shared object nothing is known */
    size_t len = strlen(path);
    bool script = rv__is_script(rv__str(path));
    if (script || (len > 2 && strcmp(path + len - 2, ".c") == 0)) {
        if (rv__source_read(path, arena, &text) < 0)
            return RV_ENOMEM;
        *declares = script ? rv__script_declares(text, &name) : rv__cfile_declares(text, &name);
    }
    *ret = rv__str_none(name) || rv__alias_fault(name) != NULL ? rv__file_stem(rv__str(path))
                                                               : name;
    return rv__str_copy(arena, *ret, ret) < 0 ? RV_ENOMEM : RV_OK;
}
