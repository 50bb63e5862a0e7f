/* tree.c: what YAML and JSON files share: bytes, keys, limits; and the JSON reader. */
#include "define/tree.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

const struct rv__tree *rv__tree_get(const struct rv__tree *map, const char *key)
{
    map = rv__tree_real(map);
    if (map->kind != TREE_MAP)
        return NULL;
    const struct rv__tree *child = map->first;
    while (child != NULL && !rv__str_is(child->key, key))
        child = child->next;
    return child;
}

const char *rv__tree_phrase(const struct rv__tree *tree)
{
    static const char *const phrases[] = {
        [TREE_NULL] = "nothing",  [TREE_BOOL] = "true or false", [TREE_NUMBER] = "a number",
        [TREE_STRING] = "a text", [TREE_LIST] = "a list",        [TREE_MAP] = "a mapping",
    };
    return phrases[rv__tree_real(tree)->kind];
}

/* Recurses no deeper than RV__DEFINE_MAX_LEVELS. */
void rv__tree_json(const struct rv__tree *tree, struct rv__buf *out) /* NOLINT(misc-no-recursion) */
{
    tree = rv__tree_real(tree);
    switch (tree->kind) {
    case TREE_NULL:
    case TREE_BOOL:
    case TREE_NUMBER: rv__buf_str(out, tree->text); break;
    case TREE_STRING: rv__buf_json_str(out, tree->text); break;
    case TREE_LIST:
    case TREE_MAP:
        rv__buf_char(out, tree->kind == TREE_MAP ? '{' : '[');
        for (const struct rv__tree *child = tree->first; child != NULL; child = child->next) {
            if (child != tree->first)
                rv__buf_char(out, ',');
            if (tree->kind == TREE_MAP) {
                rv__buf_json_str(out, child->key);
                rv__buf_char(out, ':');
            }
            rv__tree_json(child, out);
        }
        rv__buf_char(out, tree->kind == TREE_MAP ? '}' : ']');
        break;
    }
}

void rv__tree_add(struct rv__tree *container, struct rv__tree *child)
{
    *(container->last != NULL ? &container->last->next : &container->first) = child;
    container->last = child;
    container->count++;
    if (container->depth < child->depth + 1)
        container->depth = child->depth + 1;
    uint32_t size = child->size;
    if (size > UINT32_MAX - container->size)
        size = UINT32_MAX - container->size;
    container->size += size;
}

/* By key, then by position. */
static int by_key(const void *a, const void *b)
{
    const struct rv__tree *const *x = a, *const *y = b;
    int order = rv__str_cmp((*x)->key, (*y)->key);
    if (order != 0)
        return order;
    return (*x)->key_at < (*y)->key_at ? -1 : 1;
}

int rv__tree_check_keys(const struct rv__tree *map, const struct rv__source *source,
                        struct rv__problems *problems)
{
    size_t count = 0;
    if (map->count < 2)
        return RV_OK;
    const struct rv__tree **sorted = rv__zalloc(map->count, sizeof(struct rv__tree *));
    if (sorted == NULL)
        return RV_ENOMEM;
    for (const struct rv__tree *child = map->first; child != NULL; child = child->next)
        sorted[count++] = child;
    qsort(sorted, count, sizeof(struct rv__tree *), by_key);
    for (size_t i = 1; i < count; i++)
        if (rv__str_eq(sorted[i - 1]->key, sorted[i]->key)) {
            size_t line, column;
            rv__json_where(source->text, source->text.at + sorted[i - 1]->key_at, &line, &column);
            rv__problem_add(problems, source, sorted[i]->key_at,
                            "the key '%s' is given twice: first in line %zu",
                            rv__cite(sorted[i]->key).text, line);
        }
    rv__free(sorted);
    return RV_OK;
}

/* --------------------------------------------------------------------------------- JSON --- */

struct json_reader {
    const struct rv__source *source;
    struct rv__arena *arena;
    struct rv__problems *problems;
    const char *at, *end;
    uint32_t count;
};

static uint32_t offset(const struct json_reader *r)
{
    return (uint32_t)(r->at - r->source->text.at);
}

static int read_value(struct json_reader *r, struct rv__tree **ret);

static int read_scalar(struct json_reader *r, struct rv__tree *tree)
{
    static const enum rv__tree_kind kinds[] = {
        [RV__JSON_NULL] = TREE_NULL,     [RV__JSON_FALSE] = TREE_BOOL,
        [RV__JSON_TRUE] = TREE_BOOL,     [RV__JSON_NUMBER] = TREE_NUMBER,
        [RV__JSON_STRING] = TREE_STRING, [RV__JSON_ARRAY] = TREE_LIST,
        [RV__JSON_OBJECT] = TREE_MAP,
    };
    struct rv__str value = { r->at, 0 };
    r->at = rv__json_skip(r->at, r->end);
    value.len = (size_t)(r->at - value.at);
    tree->kind = kinds[rv__json_type(value)];
    tree->text = value;
    if (tree->kind == TREE_STRING) {
        tree->at++; /* after the quote, as in YAML */
        return rv__json_string(value, r->arena, &tree->text);
    }
    return RV_OK;
}

/* Recurses no deeper than RV__DEFINE_MAX_LEVELS: the text was checked for it. */
static int read_children(struct json_reader *r,
                         struct rv__tree *tree) /* NOLINT(misc-no-recursion) */
{
    char close = tree->kind == TREE_MAP ? '}' : ']';
    r->at = rv__json_skip_separators(r->at + 1);
    while (*r->at != close) {
        struct rv__str key = { NULL, 0 }, quoted = { r->at, 0 };
        uint32_t key_at = offset(r);
        struct rv__tree *child = NULL;
        if (tree->kind == TREE_MAP) {
            r->at = rv__json_skip(r->at, r->end);
            quoted.len = (size_t)(r->at - quoted.at);
            if (rv__json_string(quoted, r->arena, &key) < 0)
                return RV_ENOMEM;
            key_at++;
            r->at = rv__json_skip_separators(r->at);
        }
        int rc = read_value(r, &child);
        if (rc < 0)
            return rc;
        child->key = key;
        child->key_at = key_at;
        rv__tree_add(tree, child);
        r->at = rv__json_skip_separators(r->at);
    }
    r->at++;
    return tree->kind == TREE_MAP ? rv__tree_check_keys(tree, r->source, r->problems) : RV_OK;
}

static int read_value(struct json_reader *r, struct rv__tree **ret) /* NOLINT(misc-no-recursion) */
{
    int rc;
    if (r->count++ >= RV__DEFINE_MAX_NODES) {
        rv__problem_add(r->problems, r->source, offset(r), "the file has more than %d values",
                        RV__DEFINE_MAX_NODES);
        return RV_ETOOBIG;
    }
    struct rv__tree *tree = rv__arena_zalloc(r->arena, 1, sizeof *tree);
    if (tree == NULL)
        return RV_ENOMEM;
    tree->at = tree->key_at = offset(r);
    tree->size = 1;
    if (*r->at == '{' || *r->at == '[') {
        tree->kind = *r->at == '{' ? TREE_MAP : TREE_LIST;
        rc = read_children(r, tree);
    } else {
        rc = read_scalar(r, tree);
    }
    tree->end = offset(r);
    *ret = tree;
    return rc;
}

/* "line L, column C: why": the position is reported separately. */
static void tell_json_error(const struct rv__source *source, struct rv__problems *problems,
                            const char *message)
{
    static const char first[] = "line ", second[] = ", column ";
    unsigned long line = 1, column = 1;
    char *end;
    if (strncmp(message, first, sizeof first - 1) == 0) {
        line = strtoul(message + sizeof first - 1, &end, 10);
        if (strncmp(end, second, sizeof second - 1) == 0)
            column = strtoul(end + sizeof second - 1, &end, 10);
        if (strncmp(end, ": ", 2) == 0)
            message = end + 2;
    }
    rv__problem_add(problems, source, rv__source_at(source, line, column), "%s", message);
}

int rv__tree_from_json(const struct rv__source *source, struct rv__arena *arena,
                       struct rv__problems *problems, struct rv__tree **ret)
{
    struct rv__str value;
    struct rv__tree *tree = NULL;
    rv_error err;
    *ret = NULL;
    if (rv__json_check(source->text, RV__DEFINE_MAX_LEVELS, &value, &err) < 0) {
        tell_json_error(source, problems, err.message);
        return RV_OK;
    }
    struct json_reader r = { source, arena, problems, value.at, value.at + value.len, 0 };
    int rc = read_value(&r, &tree);
    if (rc == RV_ETOOBIG)
        return RV_OK;
    if (rc == RV_OK)
        *ret = tree;
    return rc;
}

/* ---------------------------------------------------------------------------- the bytes --- */

static size_t utf8_prefix(struct rv__str text)
{
    size_t good = 0, bad = text.len; /* the longest prefix that is UTF-8 has good <= len <= bad */
    while (good < bad) {
        size_t middle = good + (bad - good + 1) / 2;
        while (middle < text.len && middle > good &&
               ((unsigned char)text.at[middle] & 0xc0) == 0x80)
            middle--;
        if (middle == good)
            break;
        if (rv__str_utf8((struct rv__str){ text.at, middle }))
            good = middle;
        else
            bad = middle - 1;
    }
    return good;
}

/* Refuse text that is not UTF-8 before a parser sees it. */
static bool check_bytes(const struct rv__source *source, struct rv__problems *problems)
{
    struct rv__str text = source->text;
    if (!rv__str_utf8(text)) {
        rv__problem_add(problems, source, (uint32_t)utf8_prefix(text), "this is not UTF-8");
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
            rv__problem_add(problems, source, (uint32_t)i, "a control character (0x%02x)", c);
            return false;
        }
    }
    return true;
}

int rv__tree_read(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret)
{
    struct rv__str file = source->file;
    bool json = file.len > 5 && memcmp(file.at + file.len - 5, ".json", 5) == 0;
    *ret = NULL;
    if (source->text.len > RV__DEFINE_MAX_BYTES) {
        rv__problem_add(problems, source, RV__NOWHERE, "the file has more than %d bytes",
                        RV__DEFINE_MAX_BYTES);
        return RV_OK;
    }
    if (!check_bytes(source, problems))
        return RV_OK;
    return json ? rv__tree_from_json(source, arena, problems, ret)
                : rv__tree_yaml(source, arena, problems, ret);
}
