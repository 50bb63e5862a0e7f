/* use.c: finds out from the tokens which parts of the scope an expression uses.
 *
 * This serves two ends: names of steps that do not exist are refused before a run begins, and an
 * evaluation fetches only what is used. The second must never miss a use, so in doubt the answer is
 * "the whole scope".
 *
 * At the beginning "." is the scope. After a "|" it is something else (up to the end of the bracket or
 * branch), so only what comes before can use the scope. `.input.x` uses the root input; `..`, a "." without
 * a name, an assignment, or a function (`keys`, but not `null`) uses the whole. "x as $y | …" and
 * "label $out | …" do not change ".". What follows "reduce" and the arguments of a function are read as if
 * "." were still the scope: that can only find too many uses. */
#include <assert.h>

#include "base/json.h"
#include "expr/eval.h"
#include "expr/set.h"

const struct rv__str rv__loop_names[RV__LOOP_NAMES] = { RV__STR("item"), RV__STR("index"),
                                                        RV__STR("items") };

/* Functions that ignore ".", and jq's keywords. */
static const struct rv__str ignores_input[] = {
    RV__STR("true"), RV__STR("false"), RV__STR("null"),     RV__STR("empty"),
    RV__STR("now"),  RV__STR("nan"),   RV__STR("infinite"), RV__STR("range"),
};

static const struct rv__str assigning[] = {
    RV__STR("="),  RV__STR("|="), RV__STR("+="), RV__STR("-="),
    RV__STR("*="), RV__STR("/="), RV__STR("%="), RV__STR("//="),
};

/* Functions of libjq that read the environment or other inputs, or end the process. */
static const struct rv__str unavailable[] = {
    RV__STR("env"),           RV__STR("input"),
    RV__STR("inputs"),        RV__STR("debug"),
    RV__STR("stderr"),        RV__STR("input_filename"),
    RV__STR("halt"),          RV__STR("halt_error"),
    RV__STR("modulemeta"),    RV__STR("input_line_number"),
    RV__STR("import"),        RV__STR("include"),
    RV__STR("module"),        RV__STR("get_search_list"),
    RV__STR("get_jq_origin"), RV__STR("get_prog_origin"),
    RV__STR("__loc__"),
};

static const struct rv__str known_roots[] = {
    RV__STR("input"), RV__STR("steps"), RV__STR("lastStep"), RV__STR("loop"),
    RV__STR("run"),   RV__STR("env"),   RV__STR("secrets"),
};

static bool listed(struct rv__str s, const struct rv__str *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rv__str_eq(s, list[i]))
            return true;
    return false;
}
#define LISTED(s, list) listed((s), (list), sizeof(list) / sizeof *(list))

bool rv__expr_known_root(struct rv__str root)
{
    return LISTED(root, known_roots);
}

/* Is the i-th token this one? False after the last. */
static bool is(const struct rv__expr *expr, size_t i, const char *text)
{
    return i < expr->tok_count && expr->toks[i].kind != TOK_TEXT &&
           rv__str_is(expr->toks[i].text, text);
}

static bool kind_is(const struct rv__expr *expr, size_t i, enum rv__tok_kind kind)
{
    return i < expr->tok_count && expr->toks[i].kind == kind;
}

/* ------------------------------------------------------------------------ what is refused --- */

/* Is the name at i a key, as in {name: 1} or {name}, and not a function? */
static bool is_key(const struct rv__expr *expr, size_t i, bool in_object)
{
    return in_object && i > 0 && (is(expr, i - 1, "{") || is(expr, i - 1, ",")) &&
           (is(expr, i + 1, ":") || is(expr, i + 1, ",") || is(expr, i + 1, "}"));
}

const char *rv__expr_refused(const struct rv__expr *expr, const char **ret_at)
{
    bool object[RV__EXPR_MAX_DEPTH + 1] = { false };
    size_t depth = 0;
    for (size_t i = 0; i < expr->tok_count; i++) {
        const struct rv__tok *tok = &expr->toks[i];
        bool variable = i > 0 && is(expr, i - 1, "$");
        *ret_at = tok->text.at;
        if (tok->kind == TOK_OPEN)
            object[++depth] = *tok->text.at == '{';
        else if (tok->kind == TOK_CLOSE)
            depth--;
        if (tok->kind != TOK_NAME && tok->kind != TOK_KEYWORD)
            continue;
        if (variable && rv__str_is(tok->text, "ENV"))
            return "$ENV is not available: '.env' has the variables the server allows";
        if (variable && !rv__str_is(tok->text, "__loc__"))
            continue;
        if (is_key(expr, i, object[depth]))
            continue;
        if (rv__str_is(tok->text, "env"))
            return "env is not available: '.env' has the variables the server allows";
        if (rv__str_is(tok->text, "input"))
            return "input is not available: the run's input is '.input'";
        if (LISTED(tok->text, unavailable))
            return "this name of jq is not available in an expression";
        if (memmem(tok->text.at, tok->text.len, "::", 2) != NULL)
            return "modules are not available in an expression";
        if (*tok->text.at == '_' || (tok->text.len > 4 && memcmp(tok->text.at, "rv__", 4) == 0))
            return "names that begin with '_' or 'rv__' are not available in an expression";
    }
    return NULL;
}

/* --------------------------------------------------------------------------- plain paths --- */

/* The text of a string without interpolation, whose quote is at *i; moves *i after it. */
static int plain_string(struct rv__arena *arena, const struct rv__expr *expr, size_t *i,
                        struct rv__str *ret)
{
    size_t at = *i;
    struct rv__str quoted;
    if (!kind_is(expr, at, TOK_QUOTE))
        return RV_ENOTFOUND;
    const char *from = expr->toks[at++].text.at;
    if (kind_is(expr, at, TOK_TEXT))
        at++;
    if (!kind_is(expr, at, TOK_QUOTE))
        return RV_ENOTFOUND;
    quoted = (struct rv__str){ from, (size_t)(expr->toks[at].text.at + 1 - from) };
    if (rv__json_check(quoted, 1, &quoted, NULL) <
        0) /* jq accepts more than JSON: leave it to jq */
        return RV_ENOTFOUND;
    *i = at + 1;
    return rv__json_string(quoted, arena, ret);
}

/* [0], [-1] or ["key"], its bracket at *i. */
static int plain_bracket(struct rv__arena *arena, const struct rv__expr *expr, size_t *i,
                         struct rv__expr_step *ret)
{
    size_t at = *i + 1;
    int rc;
    if (!is(expr, *i, "["))
        return RV_ENOTFOUND;
    if (kind_is(expr, at, TOK_QUOTE)) {
        rc = plain_string(arena, expr, &at, &ret->key);
        if (rc < 0)
            return rc;
    } else {
        bool minus = is(expr, at, "-");
        at += minus;
        if (!kind_is(expr, at, TOK_NUMBER) || expr->toks[at].text.len > 9 ||
            rv__json_int(expr->toks[at].text, &ret->index) < 0)
            return RV_ENOTFOUND;
        ret->index = minus ? -ret->index : ret->index;
        at++;
    }
    if (!is(expr, at, "]"))
        return RV_ENOTFOUND;
    *i = at + 1;
    return RV_OK;
}

/* One step of a path, whose first token is at *i: .name, ."name", .["name"], and after another step
 * also ["name"], [0]. RV_ENOTFOUND: there is none. */
static int plain_step(struct rv__arena *arena, const struct rv__expr *expr, size_t *i,
                      struct rv__expr_step *ret)
{
    *ret = (struct rv__expr_step){ { NULL, 0 }, 0 };
    if (kind_is(expr, *i, TOK_FIELD)) {
        ret->key = (struct rv__str){ expr->toks[*i].text.at + 1, expr->toks[*i].text.len - 1 };
        ++*i;
        return RV_OK;
    }
    if (kind_is(expr, *i, TOK_DOT)) {
        size_t at = *i + 1;
        int rc = kind_is(expr, at, TOK_QUOTE) ? plain_string(arena, expr, &at, &ret->key)
                 : *i == 0                    ? plain_bracket(arena, expr, &at, ret)
                                              : RV_ENOTFOUND;
        if (rc == RV_OK)
            *i = at;
        return rc;
    }
    return *i > 0 ? plain_bracket(arena, expr, i, ret) : RV_ENOTFOUND;
}

int rv__expr_find_path(struct rv__arena *arena, struct rv__expr *expr)
{
    struct rv__expr_step *path = rv__arena_alloc(arena,
                                                 expr->tok_count * sizeof(struct rv__expr_step));
    size_t count = 0, i = 0;
    if (path == NULL)
        return RV_ENOMEM;
    while (i < expr->tok_count) {
        int rc = plain_step(arena, expr, &i, &path[count]);
        if (rc == RV_ENOMEM)
            return rc;
        if (rc < 0 || (count == 0 && rv__str_none(path[0].key)))
            return RV_OK; /* not a plain path: jq evaluates it */
        count++;
    }
    expr->path = path;
    expr->path_count = count;
    return RV_OK;
}

/* ------------------------------------------------------------------------------ what is used --- */

/* State of the walk for each open bracket and each "if". */
struct level {
    bool scope;   /* "." is the scope here, */
    bool was;     /* and was where the level began */
    bool binding; /* the next "|" belongs to an "as" or a "label" */
    bool object;  /* directly in { } */
};

struct walk {
    struct rv__arena *arena;
    struct rv__expr *expr;
    struct level *levels;
    size_t depth;
};

static void add_use(struct walk *w, size_t i, struct rv__str root, struct rv__str name)
{
    struct rv__expr *expr = w->expr;
    if (rv__str_none(root)) {
        if (expr->whole)
            return; /* noted already */
        expr->whole = true;
    }
    expr->secrets |= rv__str_is(root, "secrets");
    expr->uses[expr->use_count++] = (struct rv__expr_use){ .root = root,
                                                           .name = name,
                                                           .pointer = expr->pointer,
                                                           .character = rv__expr_character(
                                                               expr, expr->toks[i].text.at) };
}

/* Note the root, and perhaps the step, of a path that begins at *i and starts at the scope. Moves *i to
 * the last token of it that was understood. */
static int use_path(struct walk *w, size_t *i)
{
    struct rv__expr_step step;
    struct rv__str root, name = { NULL, 0 };
    size_t at = *i;
    const struct rv__str none = { NULL, 0 };
    int rc;
    if (kind_is(w->expr, at, TOK_DOT) && is(w->expr, at + 1, "[")) {
        at++;
        rc = plain_bracket(w->arena, w->expr, &at, &step);
    } else {
        rc = plain_step(w->arena, w->expr, &at, &step);
    }
    if (rc == RV_ENOMEM)
        return rc;
    if (rc < 0 || rv__str_none(step.key)) { /* "." alone, or .[ of something */
        add_use(w, *i, none, none);
        return RV_OK;
    }
    root = step.key;
    size_t next = at;
    bool named = rv__str_is(root, "steps") || rv__str_is(root, "secrets");
    if (named && next < w->expr->tok_count) {
        rc = plain_step(w->arena, w->expr, &next, &step);
        if (rc == RV_ENOMEM)
            return rc;
        if (rc == RV_OK && !rv__str_none(step.key)) {
            name = step.key;
            at = next;
        }
    }
    if (rv__str_is(root, "loop")) { /* a member of the iteration itself needs no enclosing ones */
        rc = next < w->expr->tok_count ? plain_step(w->arena, w->expr, &next, &step) : RV_ENOTFOUND;
        if (rc == RV_ENOMEM)
            return rc;
        w->expr->outer_loops |= rc < 0 || !LISTED(step.key, rv__loop_names);
    }
    add_use(w, *i, root, name);
    *i = at - 1;
    return RV_OK;
}

static void push(struct walk *w, char bracket)
{
    struct level *top = &w->levels[w->depth];
    if (bracket == '(') /* reduce … as $x ( : no "|" belongs to that "as" */
        top->binding = false;
    w->levels[++w->depth] = (struct level){ .scope = top->scope,
                                            .was = top->scope,
                                            .object = bracket == '{' };
}

static void pop(struct walk *w)
{
    if (w->depth > 0) /* a surplus "end": jq reports it */
        w->depth--;
}

static void keyword(struct walk *w, struct rv__str word)
{
    struct level *top = &w->levels[w->depth];
    if (rv__str_is(word, "as") || rv__str_is(word, "label"))
        top->binding = true;
    else if (rv__str_is(word, "if"))
        push(w, 'i');
    else if (rv__str_is(word, "then") || rv__str_is(word, "elif") || rv__str_is(word, "else"))
        top->scope = top->was;
    else if (rv__str_is(word, "end"))
        pop(w);
}

static void other(struct walk *w, size_t i, struct rv__str text)
{
    struct level *top = &w->levels[w->depth];
    if (rv__str_is(text, "|")) {
        if (!top->binding)
            top->scope = false;
        top->binding = false;
    } else if (rv__str_is(text, ";") || (rv__str_is(text, ",") && top->object)) {
        top->scope = top->was;
    } else if (top->scope && LISTED(text, assigning)) {
        add_use(w, i, (struct rv__str){ NULL, 0 }, (struct rv__str){ NULL, 0 });
    }
}

/* Is it a string that means a key and its value? {"input"} is {"input": .input}. */
static bool shorthand_string(const struct walk *w, size_t i)
{
    return w->levels[w->depth].object && i > 0 &&
           (is(w->expr, i - 1, "{") || is(w->expr, i - 1, ","));
}

static int look(struct walk *w, size_t *i)
{
    const struct rv__expr *expr = w->expr;
    const struct rv__tok *tok = &expr->toks[*i];
    const struct rv__str none = { NULL, 0 };
    bool scope = w->levels[w->depth].scope;
    bool variable = *i > 0 && is(expr, *i - 1, "$");
    bool behind = *i > 0 && (kind_is(expr, *i - 1, TOK_CLOSE) || kind_is(expr, *i - 1, TOK_NAME) ||
                             kind_is(expr, *i - 1, TOK_FIELD) || kind_is(expr, *i - 1, TOK_QUOTE) ||
                             is(expr, *i - 1, "?") || is(expr, *i - 1, "end"));
    switch (tok->kind) {
    case TOK_FIELD:
    case TOK_DOT: /* after a term it continues that one: $x.input */
        if (scope && !behind)
            return use_path(w, i);
        break;
    case TOK_DOTDOT:
        if (scope)
            add_use(w, *i, none, none);
        break;
    case TOK_NAME:
        if (scope && !variable && !LISTED(tok->text, ignores_input) &&
            !(is_key(expr, *i, w->levels[w->depth].object) && is(expr, *i + 1, ":")))
            add_use(w, *i, none, none);
        break;
    case TOK_FORMAT: /* @json "…" formats what is in the string; alone it takes "." */
        if (scope && !kind_is(expr, *i + 1, TOK_QUOTE))
            add_use(w, *i, none, none);
        break;
    case TOK_QUOTE:
        if (scope && shorthand_string(w, *i)) {
            struct rv__str key;
            size_t at = *i;
            int rc = plain_string(w->arena, expr, &at, &key);
            if (rc == RV_ENOMEM)
                return rc;
            if (rc < 0 || !is(expr, at, ":"))
                add_use(w, *i, none, none);
        }
        break;
    case TOK_KEYWORD:
        if (!variable)
            keyword(w, tok->text);
        break;
    case TOK_OPEN: push(w, *tok->text.at); break;
    case TOK_CLOSE: pop(w); break;
    case TOK_OTHER: other(w, *i, tok->text); break;
    case TOK_NUMBER:
    case TOK_TEXT:
    case TOK_END: break;
    }
    return RV_OK;
}

int rv__expr_analyse(struct rv__arena *arena, struct rv__expr *expr)
{
    struct walk w = { .arena = arena, .expr = expr };
    int rc = rv__expr_find_path(arena, expr);
    w.levels = rv__arena_zalloc(arena, expr->tok_count + 1, sizeof *w.levels);
    expr->uses = rv__arena_zalloc(arena, expr->tok_count + 1, sizeof *expr->uses);
    if (rc < 0 || w.levels == NULL || expr->uses == NULL)
        return RV_ENOMEM;
    w.levels[0] = (struct level){ .scope = true, .was = true };
    for (size_t i = 0; i < expr->tok_count; i++) {
        rc = look(&w, &i);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}
