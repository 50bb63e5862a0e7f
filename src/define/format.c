/* format.c: `rival manifest fmt`: brings a manifest into a standard form.
 *
 * The text is edited, not written from the tree, so comments, quotes and the order of keys stay. Three things
 * change: keys of manifests, states and agents become snake_case; indentation becomes two columns per level,
 * also for lists below their key; trailing spaces, repeated blank lines and the end of the file are tidied. The
 * tree says what begins where. A line on which no block begins (inside of {}, [], a long text) moves with the
 * lines around it.
 *
 * The result is parsed again: if it does not mean the same, it is an error. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/lower.h"
#include "define/tree.h"

/* ---------------------------------------------------------------------------- spelling --- */

struct edit {
    uint32_t at, len;
    const char *text;
};

struct edits {
    struct edit *items;
    size_t count, cap;
    int rc;
};

static const char *const words[] = {
    "agent_id",           "depends_on", "max_retry", "on_failure",
    "max_concurrency",    "save_to",    "on_error",  "append_errors_to_chat",
    "clear_chat_on_pass",
};

static void spell(struct edits *edits, const struct rv__tree *child, struct rv__str text)
{
    struct rv__key_room ours, theirs;
    struct rv__str key = child->key;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (rv__str_is(key, words[i]) ||
            !rv__str_eq(rv__camel(key, &theirs), rv__camel(rv__str(words[i]), &ours)))
            continue;
        if (child->key_at + key.len > text.len ||
            memcmp(text.at + child->key_at, key.at, key.len) != 0)
            return; /* written with escapes: left as it is */
        if (edits->count == edits->cap) {
            size_t cap = edits->cap > 0 ? edits->cap * 2 : 16;
            struct edit *items = rv__realloc(edits->items, cap * sizeof *items);
            if (items == NULL) {
                edits->rc = RV_ENOMEM;
                return;
            }
            edits->items = items;
            edits->cap = cap;
        }
        edits->items[edits->count++] = (struct edit){ child->key_at, (uint32_t)key.len, words[i] };
        return;
    }
}

static void spell_map(struct edits *edits, const struct rv__tree *map, struct rv__str text)
{
    if (map->same != NULL ||
        map->kind != TREE_MAP) /* an alias: its target is edited where it stands */
        return;
    for (const struct rv__tree *child = map->first; child != NULL; child = child->next)
        spell(edits, child, text);
}

static void spell_list(struct edits *edits, const struct rv__tree *list, struct rv__str text)
{
    if (list == NULL || list->same != NULL || list->kind != TREE_LIST)
        return;
    for (const struct rv__tree *item = list->first; item != NULL; item = item->next)
        spell_map(edits, item, text);
}

static void spell_manifest(struct edits *edits, const struct rv__tree *manifest,
                           struct rv__str text)
{
    const struct rv__tree *stages = rv__tree_get(manifest, "stages");
    spell_map(edits, manifest, text);
    spell_list(edits, rv__tree_get(manifest, "states"), text);
    spell_list(edits, rv__tree_get(manifest, "agents"), text);
    for (const struct rv__tree *stage = stages != NULL && stages->kind == TREE_MAP ? stages->first
                                                                                   : NULL;
         stage != NULL; stage = stage->next)
        spell_list(edits, stage, text);
}

static int by_place(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* The text with its keys in snake_case. */
static int spell_all(struct rv__str text, const struct rv__tree *document, struct rv__buf *out)
{
    struct edits edits = { .rc = RV_OK };
    const struct rv__tree *several = rv__tree_get(document, "workflows");
    size_t at = 0;
    spell_manifest(&edits, document, text);
    for (const struct rv__tree *one = several != NULL && several->kind == TREE_LIST ? several->first
                                                                                    : NULL;
         one != NULL; one = one->next)
        spell_manifest(&edits, one, text);
    if (edits.count > 1)
        qsort(edits.items, edits.count, sizeof *edits.items, by_place);
    for (size_t i = 0; i < edits.count; i++) {
        rv__buf_add(out, text.at + at, edits.items[i].at - at);
        rv__buf_text(out, edits.items[i].text);
        at = edits.items[i].at + edits.items[i].len;
    }
    rv__buf_add(out, text.at + at, text.len - at);
    rv__free(edits.items);
    return edits.rc != RV_OK ? edits.rc : out->rc;
}

/* --------------------------------------------------------------------------- indentation --- */

struct line {
    uint32_t at;     /* its first byte */
    bool begins;     /* a part of the block structure begins on it, and goes to column `indent` */
    bool kept;       /* inside of a text: trailing spaces and blank lines are part of it */
    uint32_t indent; /* columns */
    int32_t shift;   /* otherwise it moves by so many columns */
    uint32_t dashes; /* at its beginning, each to be followed by one space */
};

struct lines {
    struct rv__str text;
    struct line *items;
    size_t count;
};

static size_t line_of(const struct lines *l, uint32_t at)
{
    size_t from = 0, to = l->count;
    while (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        if (l->items[middle].at <= at)
            from = middle;
        else
            to = middle;
    }
    return from;
}

static int64_t column_of(const struct lines *l, uint32_t at)
{
    return (int64_t)at - (int64_t)l->items[line_of(l, at)].at;
}

/* What is at `at` goes to this column, if it is the first on its line. */
static void begin_line(struct lines *l, uint32_t at, int64_t indent)
{
    struct line *line = &l->items[line_of(l, at)];
    for (uint32_t i = line->at; i < at; i++)
        if (l->text.at[i] != ' ')
            return;
    line->begins = true;
    line->indent = (uint32_t)indent;
}

static bool is_flow(const struct lines *l, const struct rv__tree *tree)
{
    return tree->at < l->text.len && (l->text.at[tree->at] == '{' || l->text.at[tree->at] == '[');
}

/* The lines of a value below that of `head`, its key or dash, move with what is around it. */
static void move_lines(struct lines *l, const struct rv__tree *tree, uint32_t head, int64_t shift)
{
    size_t first = line_of(l, head), last = line_of(l, tree->end);
    if (last > first && l->items[last].at == tree->end)
        last--; /* a block scalar ends where the next line begins */
    for (size_t i = first + 1; i <= last; i++) {
        l->items[i].shift = (int32_t)shift;
        l->items[i].kept |= tree->kind == TREE_STRING && (tree->block || i > line_of(l, tree->at));
    }
}

/* Texts inside of {} and [], too. */
static void move_value(struct lines *l, const struct rv__tree *tree, uint32_t head,
                       int64_t shift) /* NOLINT(misc-no-recursion) */
{
    move_lines(l, tree, head, shift);
    for (const struct rv__tree *child = tree->same == NULL ? tree->first : NULL; child != NULL;
         child = child->next)
        move_value(l, child, child->at, shift);
}

static void lay_out(struct lines *l, const struct rv__tree *tree, int64_t indent);

/* A value in a block, whose things go from `column` to `indent`. */
static void lay_out_value(struct lines *l, const struct rv__tree *value, uint32_t head,
                          int64_t column, int64_t indent) /* NOLINT(misc-no-recursion) */
{
    bool block = value->same == NULL && (value->kind == TREE_MAP || value->kind == TREE_LIST) &&
                 value->first != NULL && !is_flow(l, value);
    if (block)
        lay_out(l, value, indent + 2);
    else
        move_value(l, value, head, indent - column);
}

/* The dash of an item: in the column of its list, on the item's line or before it. */
static bool find_dash(const struct lines *l, const struct rv__tree *item, int64_t column,
                      size_t first, uint32_t *ret)
{
    uint32_t begin = item->kind == TREE_MAP && item->first != NULL && item->same == NULL &&
                             !is_flow(l, item)
                         ? item->first->key_at
                         : item->at;
    for (size_t n = line_of(l, begin) + 1; n-- > first;) {
        size_t at = (size_t)l->items[n].at + (size_t)column;
        size_t end = n + 1 < l->count ? l->items[n + 1].at : l->text.len;
        if (at < end && l->text.at[at] == '-' &&
            (at + 1 >= end || strchr(" \r\n", l->text.at[at + 1]) != NULL)) {
            *ret = (uint32_t)at;
            return true;
        }
    }
    return false;
}

static void lay_out_list(struct lines *l, const struct rv__tree *list,
                         int64_t indent) /* NOLINT(misc-no-recursion) */
{
    int64_t column = column_of(l, list->at);
    size_t first = line_of(l, list->at);
    for (const struct rv__tree *item = list->first; item != NULL; item = item->next) {
        uint32_t dash;
        if (!find_dash(l, item, column, first, &dash))
            continue; /* the final comparison finds it */
        first = line_of(l, dash) + 1;
        begin_line(l, dash, indent);
        l->items[first - 1].dashes++;
        lay_out_value(l, item, dash, column, indent);
    }
}

/* A mapping or a list in block style. Recursive; a tree has at most RV__DEFINE_MAX_LEVELS. */
static void lay_out(struct lines *l, const struct rv__tree *tree,
                    int64_t indent) /* NOLINT(misc-no-recursion) */
{
    if (tree->kind == TREE_LIST) {
        lay_out_list(l, tree, indent);
        return;
    }
    int64_t column = column_of(l, tree->first->key_at);
    for (const struct rv__tree *child = tree->first; child != NULL; child = child->next) {
        begin_line(l, child->key_at, indent);
        lay_out_value(l, child, child->key_at, column, indent);
    }
}

static void put_spaces(struct rv__buf *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        rv__buf_char(out, ' ');
}

/* Write the dashes at the beginning of a line, with one space after each. */
static struct rv__str skip_dashes(struct rv__str rest, uint32_t count, struct rv__buf *out)
{
    for (uint32_t i = 0; i < count && rest.len > 1 && *rest.at == '-' && rest.at[1] == ' '; i++) {
        rv__buf_text(out, "- ");
        rest.at++;
        rest.len--;
        while (rest.len > 0 && *rest.at == ' ') {
            rest.at++;
            rest.len--;
        }
    }
    return rest;
}

/* The indentation of the next line on which something begins; 0: none does. */
static uint32_t next_indent(const struct lines *l, size_t from)
{
    while (from < l->count && !l->items[from].begins)
        from++;
    return from < l->count ? l->items[from].indent : 0;
}

static struct rv__str next_line(struct rv__str *text)
{
    const char *end = memchr(text->at, '\n', text->len);
    struct rv__str line = { text->at, end != NULL ? (size_t)(end - text->at) : text->len };
    size_t taken = line.len + (end != NULL);
    text->at += taken;
    text->len -= taken;
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    return line;
}

static void put_line(const struct lines *l, size_t n, struct rv__str line, struct rv__buf *out)
{
    const struct line *of = &l->items[n];
    size_t spaces = 0, len = line.len;
    while (spaces < len && line.at[spaces] == ' ')
        spaces++;
    while (!of->kept && len > spaces && (line.at[len - 1] == ' ' || line.at[len - 1] == '\t'))
        len--;
    struct rv__str rest = { line.at + spaces, len - spaces };
    if (of->begins) {
        put_spaces(out, of->indent);
        rest = skip_dashes(rest, of->dashes, out);
    } else if (rest.len > 0 && !of->kept && *rest.at == '#') {
        put_spaces(out, next_indent(l, n));
    } else if (rest.len > 0 || (of->kept && spaces > 0)) {
        int64_t indent = (int64_t)spaces + of->shift;
        put_spaces(out, indent > 0 ? indent : 0);
    }
    rv__buf_str(out, rest);
    rv__buf_char(out, '\n');
}

static void put_lines(const struct lines *l, struct rv__buf *out)
{
    struct rv__str text = l->text;
    bool blank = true; /* was the previous line blank? So it counts at the beginning of the file */
    for (size_t n = 0; text.len > 0; n++) {
        struct rv__str line = next_line(&text);
        size_t spaces = 0;
        while (spaces < line.len && (line.at[spaces] == ' ' || line.at[spaces] == '\t'))
            spaces++;
        bool empty = spaces == line.len && !l->items[n].kept;
        if (empty && !blank && text.len > 0)
            rv__buf_char(out, '\n');
        else if (!empty)
            put_line(l, n, line, out);
        blank = empty;
    }
    while (out->rc == RV_OK && out->len > 1 && out->text[out->len - 1] == '\n' &&
           out->text[out->len - 2] == '\n' && !l->items[l->count - 1].kept)
        rv__buf_cut(out, out->len - 1);
}

static int indent(struct rv__str text, const struct rv__tree *document, struct rv__buf *out)
{
    struct lines l = { .text = text, .count = 1 };
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        l.count += text.at[i] == '\n';
    l.items = rv__zalloc(l.count, sizeof *l.items);
    if (l.items == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\n')
            l.items[++n].at = (uint32_t)i + 1;
    if (document->first != NULL && !is_flow(&l, document))
        lay_out(&l, document, 0);
    put_lines(&l, out);
    rv__free(l.items);
    return out->rc;
}

/* ------------------------------------------------------------------------------ comparing --- */

/* Recursive; trees have at most RV__DEFINE_MAX_LEVELS. */
static bool means_same(const struct rv__tree *a,
                       const struct rv__tree *b) /* NOLINT(misc-no-recursion) */
{
    struct rv__key_room x, y;
    a = rv__tree_real(a);
    b = rv__tree_real(b);
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind != TREE_LIST && a->kind != TREE_MAP)
        return rv__str_eq(a->text, b->text);
    const struct rv__tree *p = a->first, *q = b->first;
    for (; p != NULL && q != NULL; p = p->next, q = q->next)
        if ((a->kind == TREE_MAP && !rv__str_eq(p->key, q->key) &&
             !rv__str_eq(rv__camel(p->key, &x), rv__camel(q->key, &y))) ||
            !means_same(p, q))
            return false;
    return p == NULL && q == NULL;
}

static int read_tree(struct rv__str text, struct rv__arena *arena, struct rv__tree **ret,
                     rv_error *err)
{
    struct rv__problems problems = { .arena = arena };
    struct rv__source source = { .file = rv__str("manifest.yaml"), .text = text };
    if (rv__tree_read(&source, arena, &problems, ret) < 0 || problems.rc == RV_ENOMEM)
        return rv__nomem(err);
    if (problems.count > 0)
        return rv__fail(err, RV_EINVAL, "line %u: %.*s", problems.items[0].line,
                        RV__ARG(problems.items[0].message));
    if (*ret == NULL || rv__tree_real(*ret)->kind != TREE_MAP)
        return rv__fail(err, RV_EINVAL, "it is not a mapping");
    return RV_OK;
}

int rv__manifest_format(struct rv__str text, struct rv__buf *out, rv_error *err)
{
    struct rv__arena arena;
    struct rv__tree *before = NULL, *spelt = NULL, *after = NULL;
    struct rv__buf words_fixed;
    size_t begin = out->len;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the text */
    rv__buf_init(&words_fixed, (size_t)2 * RV__DEFINE_MAX_BYTES);
    int rc = text.len <= RV__DEFINE_MAX_BYTES
                 ? read_tree(text, &arena, &before, err)
                 : rv__fail(err, RV_ETOOBIG, "it has more than %d bytes", RV__DEFINE_MAX_BYTES);
    assert(rc < 0 || before != NULL);
    if (rc == RV_OK && spell_all(text, rv__tree_real(before), &words_fixed) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = read_tree(rv__buf_view(&words_fixed), &arena, &spelt, err);
    assert(rc < 0 || spelt != NULL);
    if (rc == RV_OK && indent(rv__buf_view(&words_fixed), rv__tree_real(spelt), out) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK) {
        struct rv__str now = { out->text + begin, out->len - begin };
        rc = read_tree(now, &arena, &after, err);
        assert(rc < 0 || after != NULL);
        if (rc == RV_EINVAL || (rc == RV_OK && !means_same(before, after)))
            rc = rv__fail(err, RV_ESTATE,
                          "formatting would change its meaning: the file was not changed");
    }
    if (rc < 0)
        rv__buf_cut(out, begin);
    rv__buf_done(&words_fixed);
    rv__arena_done(&arena);
    return rc;
}
