/* yaml.c: reads YAML 1.2 into a tree, event by event.
 *
 * libfyaml scans the text and knows the positions. The tree is built here with a stack, not recursively, and
 * all limits are our own. An alias is not expanded: it points to its target and counts as many nodes as that.
 * So a file in which aliases repeat aliases ("billion laughs") is refused by the count. */
#include <libfyaml.h>

#include "base/alloc.h"
#include "define/tree.h"

struct anchor {
    struct anchor *next;
    struct rv__str name;
    struct rv__tree *tree;
    bool open; /* its value is not complete yet */
};

struct open {
    struct rv__tree *tree;
    struct rv__str key; /* of the value that comes next; none: a key comes */
    uint32_t key_at;
    struct anchor *anchor;
    bool flow;
};

struct builder {
    const struct rv__source *source;
    struct rv__arena *arena;
    struct rv__problems *problems;
    struct open *stack; /* RV__DEFINE_MAX_LEVELS of them */
    uint32_t depth;
    uint32_t last_at; /* the end of the previous token: the position of an empty value */
    uint32_t anchor_count;
    struct anchor *anchors; /* the latest of a name first */
    struct rv__tree *root;
    bool ended; /* a document is over */
};

enum verdict { GO_ON, REFUSED, NO_MEMORY };

#define REFUSE(b, at, ...) (rv__problem_add((b)->problems, (b)->source, (at), __VA_ARGS__), REFUSED)

static uint32_t mark_at(const struct fy_mark *mark, uint32_t otherwise)
{
    return mark != NULL ? (uint32_t)mark->input_pos : otherwise;
}

/* Copy a token's text, which lives only as long as its event. */
static bool copy_text(struct builder *b, struct fy_token *token, struct rv__str *ret)
{
    size_t len = 0;
    const char *text = token != NULL ? fy_token_get_text(token, &len) : "";
    if (text == NULL)
        return false;
    return rv__str_copy(b->arena, (struct rv__str){ text, len }, ret) == RV_OK;
}

/* The core tag; "": there is no tag; NULL: another tag. */
static const char *core_tag(struct fy_token *token)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    static const char *const names[] = { "str", "int", "float", "bool", "null", "map", "seq" };
    size_t len = 0;
    if (token == NULL)
        return "";
    const char *text = fy_token_get_text(token, &len);
    struct rv__str tag = { text, text != NULL ? len : 0 };
    if (rv__str_is(tag, "!"))
        return "str";
    if (tag.len <= sizeof prefix - 1 || memcmp(tag.at, prefix, sizeof prefix - 1) != 0)
        return NULL;
    tag.at += sizeof prefix - 1;
    tag.len -= sizeof prefix - 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (rv__str_is(tag, names[i]))
            return names[i];
    return NULL;
}

static bool expects_key(const struct builder *b)
{
    const struct open *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    return top != NULL && top->tree->kind == TREE_MAP && rv__str_none(top->key);
}

/* Add a complete value to its container. */
static enum verdict place(struct builder *b, struct rv__tree *tree)
{
    if (b->depth == 0) {
        b->root = tree;
        return GO_ON;
    }
    struct open *top = &b->stack[b->depth - 1];
    tree->key_at = tree->at;
    if (top->tree->kind == TREE_MAP) {
        tree->key = top->key;
        tree->key_at = top->key_at;
        top->key = (struct rv__str){ NULL, 0 };
    }
    rv__tree_add(top->tree, tree);
    if (top->tree->size > RV__DEFINE_MAX_NODES)
        return REFUSE(b, tree->at,
                      "the file has more than %d values, counting each use of an alias",
                      RV__DEFINE_MAX_NODES);
    if (top->tree->depth + b->depth > RV__DEFINE_MAX_LEVELS)
        return REFUSE(b, tree->at, "nested deeper than %d levels", RV__DEFINE_MAX_LEVELS);
    return GO_ON;
}

static struct rv__tree *new_tree(struct builder *b, enum rv__tree_kind kind, uint32_t at)
{
    struct rv__tree *tree = rv__arena_zalloc(b->arena, 1, sizeof *tree);
    if (tree != NULL) {
        tree->kind = kind;
        tree->at = tree->end = tree->key_at = at;
        tree->size = 1;
    }
    return tree;
}

static enum verdict add_anchor(struct builder *b, struct fy_event *event, struct rv__tree *tree,
                               struct anchor **ret)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    if (token == NULL)
        return GO_ON;
    if (b->anchor_count++ >= RV__DEFINE_MAX_ANCHORS)
        return REFUSE(b, tree->at, "the file has more than %d anchors", RV__DEFINE_MAX_ANCHORS);
    struct anchor *anchor = rv__arena_zalloc(b->arena, 1, sizeof *anchor);
    if (anchor == NULL || !copy_text(b, token, &anchor->name))
        return NO_MEMORY;
    anchor->tree = tree;
    anchor->next = b->anchors;
    b->anchors = anchor;
    *ret = anchor;
    return GO_ON;
}

/* The value of a scalar, by its tag, its style and the core schema. */
static enum verdict resolve(struct builder *b, struct rv__tree *tree, const char *tag, bool plain)
{
    enum rv__tree_kind kind = TREE_STRING;
    struct rv__str json = { NULL, 0 };
    bool typed = *tag != '\0' && strcmp(tag, "str") != 0;
    if ((!plain && !typed) || strcmp(tag, "str") == 0)
        return GO_ON;
    if (!rv__yaml_plain(tree->text, b->arena, &kind, &json))
        return REFUSE(b, tree->at, "JSON has no number '%s'; write \"%s\" if it is a text",
                      rv__cite(tree->text).text, rv__cite(tree->text).text);
    if (kind != TREE_STRING && rv__str_none(json))
        return NO_MEMORY;
    bool fits = !typed || (kind == TREE_NULL && strcmp(tag, "null") == 0) ||
                (kind == TREE_BOOL && strcmp(tag, "bool") == 0) ||
                (kind == TREE_NUMBER && strcmp(tag, "float") == 0) ||
                (kind == TREE_NUMBER && strcmp(tag, "int") == 0 &&
                 memchr(json.at, '.', json.len) == NULL && memchr(json.at, 'e', json.len) == NULL);
    if (!fits)
        return REFUSE(b, tree->at, "'%s' is not a !!%s", rv__cite(tree->text).text, tag);
    tree->kind = kind;
    if (kind != TREE_STRING)
        tree->text = json;
    return GO_ON;
}

static enum verdict take_scalar(struct builder *b, struct fy_event *event)
{
    struct fy_token *token = fy_event_get_token(event);
    const char *tag = core_tag(fy_event_get_tag_token(event));
    uint32_t at = mark_at(fy_event_start_mark(event), b->last_at);
    struct anchor *anchor = NULL;
    struct rv__tree *tree = new_tree(b, TREE_STRING, at);
    if (tree == NULL || !copy_text(b, token, &tree->text))
        return NO_MEMORY;
    tree->end = mark_at(fy_event_end_mark(event), at);
    if (tag == NULL)
        return REFUSE(b, at, "unknown tag: only YAML's core tags are known (!!str, !!int, …)");
    enum fy_scalar_style style = token != NULL ? fy_token_scalar_style(token) : FYSS_PLAIN;
    if (expects_key(b)) {
        struct open *top = &b->stack[b->depth - 1];
        if (style == FYSS_PLAIN && rv__str_is(tree->text, "<<"))
            return REFUSE(b, at, "merge keys (<<) are not part of YAML 1.2; repeat the keys");
        top->key = tree->text;
        top->key_at = at;
        return GO_ON;
    }
    tree->block = style == FYSS_LITERAL || style == FYSS_FOLDED;
    enum verdict verdict = resolve(b, tree, tag, style == FYSS_PLAIN);
    if (verdict == GO_ON)
        verdict = add_anchor(b, event, tree, &anchor);
    return verdict == GO_ON ? place(b, tree) : verdict;
}

static enum verdict take_start(struct builder *b, struct fy_event *event)
{
    bool map = event->type == FYET_MAPPING_START;
    const char *tag = core_tag(fy_event_get_tag_token(event));
    uint32_t at = mark_at(fy_event_start_mark(event), b->last_at);
    if (tag == NULL || (*tag != '\0' && strcmp(tag, map ? "map" : "seq") != 0))
        return REFUSE(b, at, "unknown tag: only YAML's core tags are known (!!str, !!int, …)");
    if (expects_key(b))
        return REFUSE(b, at, "a key must be a text, not a %s", map ? "mapping" : "list");
    if (b->depth >= RV__DEFINE_MAX_LEVELS)
        return REFUSE(b, at, "nested deeper than %d levels", RV__DEFINE_MAX_LEVELS);
    struct rv__tree *tree = new_tree(b, map ? TREE_MAP : TREE_LIST, at);
    if (tree == NULL)
        return NO_MEMORY;
    struct open *top = &b->stack[b->depth++];
    *top = (struct open){ .tree = tree, .flow = b->source->text.at[at] == (map ? '{' : '[') };
    enum verdict verdict = add_anchor(b, event, tree, &top->anchor);
    if (top->anchor != NULL)
        top->anchor->open = true;
    return verdict;
}

static enum verdict take_end(struct builder *b, struct fy_event *event)
{
    struct open top = b->stack[--b->depth];
    top.tree->end = mark_at(fy_event_end_mark(event), b->last_at);
    if (top.anchor != NULL)
        top.anchor->open = false;
    if (top.tree->kind == TREE_MAP && rv__tree_check_keys(top.tree, b->source, b->problems) < 0)
        return NO_MEMORY;
    return place(b, top.tree);
}

static enum verdict take_alias(struct builder *b, struct fy_event *event)
{
    struct rv__str name;
    uint32_t at = mark_at(fy_event_start_mark(event), b->last_at);
    if (!copy_text(b, fy_event_get_token(event), &name))
        return NO_MEMORY;
    if (expects_key(b))
        return REFUSE(b, at, "a key must be a text, not an alias");
    struct anchor *anchor = b->anchors;
    while (anchor != NULL && !rv__str_eq(anchor->name, name))
        anchor = anchor->next;
    if (anchor == NULL)
        return REFUSE(b, at, "there is no anchor '&%s' before this", rv__cite(name).text);
    if (anchor->open)
        return REFUSE(b, at, "'*%s' refers to a value that contains it", rv__cite(name).text);
    struct rv__tree *tree = new_tree(b, anchor->tree->kind, at);
    if (tree == NULL)
        return NO_MEMORY;
    tree->same = (struct rv__tree *)rv__tree_real(anchor->tree);
    tree->size = tree->same->size;
    tree->depth = tree->same->depth;
    return place(b, tree);
}

static enum verdict take(struct builder *b, struct fy_event *event)
{
    enum verdict verdict = GO_ON;
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (b->ended)
            return REFUSE(b, mark_at(fy_event_start_mark(event), b->last_at),
                          "a second document: a file holds one workflow");
        break;
    case FYET_DOCUMENT_END: b->ended = true; break;
    case FYET_MAPPING_START:
    case FYET_SEQUENCE_START: verdict = take_start(b, event); break;
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END: verdict = take_end(b, event); break;
    case FYET_SCALAR: verdict = take_scalar(b, event); break;
    case FYET_ALIAS: verdict = take_alias(b, event); break;
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END: break;
    }
    b->last_at = mark_at(fy_event_end_mark(event), b->last_at);
    return verdict;
}

/* Is it after a `${` on the same line, outside of quotes? */
static bool is_in_expression(const struct rv__source *source, uint32_t at)
{
    char quote = '\0';
    bool inside = false;
    size_t from = at < source->text.len ? at : source->text.len;
    while (from > 0 && source->text.at[from - 1] != '\n')
        from--;
    for (size_t i = from; i <= at && i < source->text.len; i++) {
        char c = source->text.at[i];
        if (quote != '\0' && c != quote)
            continue;
        if (quote != '\0')
            quote = '\0';
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '{' && i > from && source->text.at[i - 1] == '$')
            inside = true;
    }
    return inside;
}

/* Report libfyaml's errors. A bracket that is never closed is reported where it was opened. */
static void tell_errors(struct builder *b, struct fy_diag *diag)
{
    struct fy_diag_error *error;
    void *iter = NULL;
    size_t told = 0;
    while ((error = fy_diag_errors_iterate(diag, &iter)) != NULL && told++ < 1) {
        const struct open *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
        uint32_t at = rv__source_at(b->source, error->line > 0 ? (unsigned long)error->line : 1,
                                    error->column > 0 ? (unsigned long)error->column : 1);
        if (strstr(error->msg, "without a closing") != NULL && top != NULL && top->flow)
            at = top->tree->at;
        rv__problem_add(b->problems, b->source, at, "%.200s%s", error->msg,
                        top != NULL && top->flow && is_in_expression(b->source, at)
                            ? "; between { } and [ ] an expression needs quotes: \"${ … }\""
                            : "");
    }
    if (told == 0)
        rv__problem_add(b->problems, b->source, b->last_at, "this is not YAML");
}

static void say_nothing(struct fy_diag *diag, void *user, const char *text, size_t len)
{
    (void)diag, (void)user, (void)text, (void)len;
}

static enum verdict parse(struct builder *b, struct fy_parser *parser, struct fy_diag *diag)
{
    struct fy_event *event;
    enum verdict verdict = GO_ON;
    if (fy_parser_set_string(parser, b->source->text.at, b->source->text.len) != 0)
        return NO_MEMORY;
    while (verdict == GO_ON && (event = fy_parser_parse(parser)) != NULL) {
        verdict = take(b, event);
        fy_parser_event_free(parser, event);
    }
    if (verdict != GO_ON)
        return verdict;
    if (fy_parser_get_stream_error(parser)) {
        tell_errors(b, diag);
        return REFUSED;
    }
    if (b->root == NULL)
        return REFUSE(b, RV__NOWHERE, "the file is empty");
    return GO_ON;
}

int rv__tree_yaml(const struct rv__source *source, struct rv__arena *arena,
                  struct rv__problems *problems, struct rv__tree **ret)
{
    struct builder b = { .source = source, .arena = arena, .problems = problems };
    struct fy_diag_cfg diag_cfg;
    struct fy_diag *diag = NULL;
    struct fy_parser *parser = NULL;
    int rc = RV_ENOMEM;

    *ret = NULL;
    if (source->text.len == 0) { /* libfyaml would take a length of 0 for "call strlen" */
        rv__problem_add(problems, source, RV__NOWHERE, "the file is empty");
        return RV_OK;
    }
    b.stack = rv__zalloc(RV__DEFINE_MAX_LEVELS, sizeof *b.stack);
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = say_nothing;
    diag = b.stack != NULL ? fy_diag_create(&diag_cfg) : NULL;
    if (diag == NULL)
        goto out;
    fy_diag_set_collect_errors(diag, true);
    parser = fy_parser_create(&(struct fy_parse_cfg){
        .flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE | FYPCF_DISABLE_DEPTH_LIMIT,
        .diag = diag });
    if (parser == NULL)
        goto out;

    enum verdict verdict = parse(&b, parser, diag);
    rc = verdict == NO_MEMORY ? RV_ENOMEM : RV_OK;
    if (verdict == GO_ON)
        *ret = b.root;
out:
    if (parser != NULL)
        fy_parser_destroy(parser);
    if (diag != NULL)
        fy_diag_destroy(diag);
    rv__free(b.stack);
    return rc;
}
