/* set.c: reads templates, given as JSON, into lists of pieces.
 *
 * A set lives in one arena that only grows. A refused template wastes a little memory until the set is
 * freed with its workflow. */
#include "expr/set.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

/* Reading one template. */
struct reader {
    struct rv__exprs *set;
    struct rv__template tpl;
    struct rv__piece **last;
    const char *copied;     /* the template's text up to here is in the pieces */
    struct rv__buf pointer; /* to the value being read */
    size_t expr_cap;
    rv_error *err;
};

/* Each use is compared with at most so many earlier ones, to find duplicates in linear time. */
enum { COMPARED_USES = 64 };

uint64_t rv__expr_serial(void)
{
    static _Atomic uint64_t serials; /* numbers need only differ; their order means nothing */
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
}

int rv__exprs_new(struct rv__exprs **ret, rv_error *err)
{
    struct rv__exprs *set = rv__zalloc(1, sizeof *set);
    if (set == NULL)
        return rv__nomem(err);
    atomic_init(&set->refs, 1);
    rv__arena_init(&set->arena, RV__EXPR_SET_BYTES);
    *ret = set;
    return RV_OK;
}

struct rv__exprs *rv__exprs_ref(struct rv__exprs *set)
{
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

void rv__exprs_unref(struct rv__exprs *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) > 1)
        return;
    rv__arena_done(&set->arena);
    rv__free(set->templates);
    rv__free(set->jq_exprs);
    rv__free(set->programs);
    rv__free(set);
}

size_t rv__expr_character(const struct rv__expr *expr, const char *at)
{
    size_t n = 1;
    for (const char *c = expr->string.at; c < at; c++)
        n += (*c & 0xC0) != 0x80; /* every byte that begins a character */
    return n;
}

/* -------------------------------------------------------------------------------- pieces --- */

static int wrong(struct reader *r, const struct rv__expr *where, const char *at, int code,
                 const char *what)
{
    struct rv__str pointer = rv__buf_view(&r->pointer);
    return rv__fail(r->err, code, "%s%.*s%scharacter %zu: %s", pointer.len > 0 ? "at " : "",
                    RV__ARG(pointer), pointer.len > 0 ? ", " : "at ", rv__expr_character(where, at),
                    what);
}

static int add_piece(struct reader *r, enum rv__piece_kind kind, struct rv__str json,
                     struct rv__expr *expr)
{
    struct rv__piece *piece = rv__arena_zalloc(&r->set->arena, 1, sizeof *piece);
    if (piece == NULL)
        return rv__nomem(r->err);
    *piece = (struct rv__piece){ .kind = kind, .json = json, .expr = expr };
    *r->last = piece;
    r->last = &piece->next;
    return RV_OK;
}

/* Add the template's text from the last copied byte up to `to`. */
static int copy_upto(struct reader *r, const char *to)
{
    struct rv__str json = { r->copied, (size_t)(to - r->copied) };
    return json.len > 0 ? add_piece(r, PIECE_JSON, json, NULL) : RV_OK;
}

/* Add a part of a string, escaped again. */
static int add_text(struct reader *r, struct rv__str text)
{
    struct rv__str json = { NULL, 0 };
    struct rv__buf buf;
    rv__buf_init(&buf, RV__JSON_MAX_BYTES);
    rv__buf_json_str(&buf, text);
    int rc = rv__buf_err(&buf, r->err);
    if (rc == RV_OK &&
        rv__str_copy(&r->set->arena, (struct rv__str){ buf.text + 1, buf.len - 2 }, &json) < 0)
        rc = rv__nomem(r->err);
    rv__buf_done(&buf);
    return rc == RV_OK && json.len > 0 ? add_piece(r, PIECE_JSON, json, NULL) : rc;
}

/* ---------------------------------------------------------------------------- expressions --- */

static int add_tok(struct reader *r, struct rv__expr *expr, const struct rv__tok *tok, size_t *cap)
{
    if (expr->tok_count == *cap) {
        size_t more = *cap > 0 ? *cap * 2 : 16;
        struct rv__tok *toks = rv__arena_alloc(&r->set->arena, more * sizeof *toks);
        if (toks == NULL)
            return rv__nomem(r->err);
        if (expr->tok_count > 0)
            memcpy(toks, expr->toks, expr->tok_count * sizeof *toks);
        expr->toks = toks;
        *cap = more;
    }
    expr->toks[expr->tok_count++] = *tok;
    return RV_OK;
}

static int keep_expr(struct reader *r, struct rv__expr *expr)
{
    struct rv__template *tpl = &r->tpl;
    if (tpl->expr_count == r->expr_cap) {
        size_t more = r->expr_cap > 0 ? r->expr_cap * 2 : 4;
        struct rv__expr **all = rv__arena_alloc(&r->set->arena, more * sizeof(struct rv__expr *));
        if (all == NULL)
            return rv__nomem(r->err);
        if (tpl->expr_count > 0)
            memcpy(all, tpl->exprs, tpl->expr_count * sizeof(struct rv__expr *));
        tpl->exprs = all;
        r->expr_cap = more;
    }
    tpl->exprs[tpl->expr_count++] = expr;
    return RV_OK;
}

/* Read the expression that begins at `from`, after "${". *end is after its "}". */
static int read_expr(struct reader *r, struct rv__str string, const char *from, const char **end,
                     struct rv__expr **ret)
{
    struct rv__expr *expr = rv__arena_zalloc(&r->set->arena, 1, sizeof *expr);
    struct rv__lexer lexer;
    struct rv__tok tok = { 0 };
    const char *what, *at;
    size_t cap = 0;
    int rc = RV_OK;
    if (expr == NULL)
        return rv__nomem(r->err);
    expr->string = string;
    expr->number = r->set->template_count;
    if (r->set->expr_count + r->tpl.expr_count == RV__EXPRS_MAX)
        return wrong(r, expr, from, RV_ETOOBIG, "too many expressions in one workflow");

    rv__lexer_init(&lexer,
                   (struct rv__str){ from + 2, string.len - (size_t)(from + 2 - string.at) });
    while ((what = rv__lexer_next(&lexer, &tok)) == NULL && tok.kind != TOK_END && rc == RV_OK)
        rc = add_tok(r, expr, &tok, &cap);
    if (rc < 0)
        return rc;
    if (what != NULL)
        return wrong(r, expr, lexer.at, RV_EPARSE, what);
    if (lexer.at == string.at + string.len)
        return wrong(r, expr, from, RV_EPARSE, "'${' without its '}' (for the text itself: '$${')");
    expr->text = (struct rv__str){ from + 2, (size_t)(lexer.at - from) - 2 };
    if (expr->tok_count == 0)
        return wrong(r, expr, from, RV_EPARSE, "there is no expression in '${ }'");
    if (expr->text.len > RV__EXPR_MAX_BYTES)
        return wrong(r, expr, from, RV_ETOOBIG, "the expression is too long");
    what = rv__expr_refused(expr, &at);
    if (what != NULL)
        return wrong(r, expr, at, RV_EPARSE, what);

    expr->serial = rv__expr_serial();
    if (rv__str_copy(&r->set->arena, rv__buf_view(&r->pointer), &expr->pointer) < 0 ||
        rv__expr_analyse(&r->set->arena, expr) < 0)
        return rv__nomem(r->err);
    *end = lexer.at + 1;
    *ret = expr;
    return keep_expr(r, expr);
}

/* -------------------------------------------------------------------------------- strings --- */

/* The next "${" that is not "$${", from `at` on; NULL: none. */
static const char *find_expr(struct rv__str string, const char *at)
{
    const char *end = string.at + string.len;
    for (; end - at >= 2; at++) {
        if (at[0] == '$' && at[1] == '$' && end - at >= 3 && at[2] == '{')
            at += 2; /* "$${" is literal text */
        else if (at[0] == '$' && at[1] == '{')
            return at;
    }
    return NULL;
}

/* Add literal text, with "${" for each "$${". */
static int add_literal(struct reader *r, const char *at, const char *end)
{
    for (;;) {
        const char *escape = at < end ? memmem(at, (size_t)(end - at), "$${", 3) : NULL;
        const char *to = escape != NULL ? escape : end;
        int rc = add_text(r, (struct rv__str){ at, (size_t)(to - at) });
        if (rc < 0 || escape == NULL)
            return rc;
        at = escape + 1;
    }
}

static int read_string(struct reader *r, struct rv__str value)
{
    struct rv__str string;
    struct rv__expr *expr = NULL;
    int rc;
    if (memchr(value.at, '{', value.len) == NULL && memchr(value.at, '\\', value.len) == NULL)
        return RV_OK; /* no expression in it: it is copied with the surrounding text */
    if (rv__json_string(value, &r->set->arena, &string) < 0)
        return rv__nomem(r->err);
    if (memmem(string.at, string.len, "${", 2) == NULL)
        return RV_OK;

    rc = copy_upto(r, value.at);
    r->copied = value.at + value.len;
    const char *at = string.at, *end = string.at + string.len, *from = find_expr(string, at);
    if (rc == RV_OK && from == at) { /* the string may consist of one expression */
        rc = read_expr(r, string, from, &at, &expr);
        if (rc == RV_OK && at == end)
            return add_piece(r, PIECE_VALUE, (struct rv__str){ NULL, 0 }, expr);
        from = string.at;
    }
    if (rc == RV_OK)
        rc = add_piece(r, PIECE_JSON, (struct rv__str)RV__STR("\""), NULL);
    for (; rc == RV_OK && from != NULL; from = find_expr(string, at)) {
        if (expr == NULL) {
            rc = add_literal(r, at, from);
            if (rc == RV_OK)
                rc = read_expr(r, string, from, &at, &expr);
        }
        if (rc == RV_OK)
            rc = add_piece(r, PIECE_TEXT, (struct rv__str){ NULL, 0 }, expr);
        expr = NULL;
    }
    if (rc == RV_OK)
        rc = add_literal(r, at, end);
    if (rc == RV_OK)
        rc = add_piece(r, PIECE_JSON, (struct rv__str)RV__STR("\""), NULL);
    return rc;
}

/* Recursive; rv__json_check() has limited the depth. */
static int read_value(struct reader *r, struct rv__str value)
{
    struct rv__json_iter it;
    struct rv__str key, member;
    size_t index = 0;
    int rc = RV_OK;
    if (rv__json_type(value) == RV__JSON_STRING)
        return read_string(r, value);
    rv__json_iter_init(&it, value);
    while (rc == RV_OK && rv__json_next(&it, &key, &member)) {
        size_t len = r->pointer.len;
        struct rv__str name = key;
        if (it.object && rv__json_string(key, &r->set->arena, &name) < 0)
            return rv__nomem(r->err);
        if (it.object)
            rv__buf_json_pointer(&r->pointer, name);
        else
            rv__buf_fmt(&r->pointer, "/%zu", index++);
        rc = rv__buf_err(&r->pointer, r->err);
        if (rc == RV_OK)
            rc = read_value(r, member);
        rv__buf_cut(&r->pointer, len);
    }
    return rc;
}

/* --------------------------------------------------------------------------------- adding --- */

/* Room in an array for `more` elements of `size` bytes. */
static int grow(void *array, uint32_t count, uint32_t *cap, size_t more, size_t size, rv_error *err)
{
    void *old, *mem;
    if (count + more <= *cap)
        return RV_OK;
    uint32_t wanted = (count + (uint32_t)more) * 2;
    memcpy(&old, array, sizeof old);
    mem = rv__realloc(old, wanted * size);
    if (mem == NULL)
        return rv__nomem(err);
    memcpy(array, &mem, sizeof mem);
    *cap = wanted;
    return RV_OK;
}

/* Add the expression to the last program, or to a new one if that is full. */
static void join_program(struct rv__exprs *set, struct rv__expr *expr)
{
    struct rv__program *last = set->program_count > 0 ? &set->programs[set->program_count - 1]
                                                      : NULL;
    if (last == NULL || last->count == RV__PROGRAM_EXPRS ||
        last->tokens + expr->tok_count > RV__PROGRAM_TOKENS) {
        assert(set->programs != NULL); /* room was made before */
        last = &set->programs[set->program_count++];
        *last = (struct rv__program){ .from = set->jq_count, .serial = rv__expr_serial() };
    }
    expr->program = (uint32_t)(last - set->programs);
    expr->choice = last->count++;
    last->tokens += expr->tok_count;
    set->jq_exprs[set->jq_count++] = expr;
}

static bool needed(const struct rv__template *tpl, const struct rv__expr_use *use)
{
    size_t from = tpl->need_count > COMPARED_USES ? tpl->need_count - COMPARED_USES : 0;
    for (size_t i = from; i < tpl->need_count; i++)
        if (rv__str_eq(tpl->needs[i]->root, use->root) &&
            rv__str_eq(tpl->needs[i]->name, use->name))
            return true;
    return false;
}

/* What all expressions that need jq use: one scope is sent for them. */
static int gather_needs(struct reader *r)
{
    struct rv__template *tpl = &r->tpl;
    size_t most = 0;
    for (size_t i = 0; i < tpl->expr_count; i++)
        if (tpl->exprs[i]->path == NULL) {
            tpl->jq_count++;
            most += tpl->exprs[i]->use_count;
            tpl->whole |= tpl->exprs[i]->whole;
            tpl->secrets |= tpl->exprs[i]->secrets;
            tpl->outer_loops |= tpl->exprs[i]->outer_loops || tpl->exprs[i]->whole;
        }
    for (size_t i = 0; i < tpl->expr_count; i++)
        tpl->exprs[i]->hide = tpl->secrets && tpl->exprs[i]->whole && !tpl->exprs[i]->secrets;
    tpl->all_steps = tpl->whole;
    if (most == 0)
        return RV_OK;
    tpl->needs = rv__arena_alloc(&r->set->arena, most * sizeof(struct rv__expr_use *));
    if (tpl->needs == NULL)
        return rv__nomem(r->err);
    for (size_t i = 0; i < tpl->expr_count; i++)
        for (size_t u = 0; tpl->exprs[i]->path == NULL && u < tpl->exprs[i]->use_count; u++) {
            const struct rv__expr_use *use = &tpl->exprs[i]->uses[u];
            tpl->all_steps |= rv__str_is(use->root, "steps") && rv__str_none(use->name);
            if (!needed(tpl, use))
                tpl->needs[tpl->need_count++] = use;
        }
    return RV_OK;
}

static int take(struct reader *r, uint32_t *ret)
{
    struct rv__exprs *set = r->set;
    size_t count = r->tpl.expr_count;
    int rc = grow(&set->templates, set->template_count, &set->template_cap, 1,
                  sizeof *set->templates, r->err);
    if (rc == RV_OK)
        rc = grow(&set->jq_exprs, set->jq_count, &set->jq_cap, count, sizeof(struct rv__expr *),
                  r->err);
    if (rc == RV_OK)
        rc = grow(&set->programs, set->program_count, &set->program_cap, count,
                  sizeof *set->programs, r->err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) /* nothing can fail any more */
        if (r->tpl.exprs[i]->path == NULL)
            join_program(set, r->tpl.exprs[i]);
    set->expr_count += (uint32_t)count;
    set->templates[set->template_count] = r->tpl;
    *ret = set->template_count++;
    return RV_OK;
}

static int add(struct rv__exprs *set, struct rv__str json, bool condition, uint32_t *ret,
               rv_error *err)
{
    struct reader r = { .set = set, .err = err };
    struct rv__str text;
    int rc;
    if (rv__str_copy(&set->arena, json, &text) < 0)
        return rv__nomem(err);
    r.last = &r.tpl.pieces;
    r.copied = text.at;
    rv__buf_init(&r.pointer, RV__JSON_MAX_BYTES);

    rc = read_value(&r, text);
    if (rc == RV_OK)
        rc = copy_upto(&r, text.at + text.len);
    if (rc == RV_OK && condition &&
        (r.tpl.pieces == NULL || r.tpl.pieces->kind != PIECE_VALUE || r.tpl.pieces->next != NULL))
        rc = rv__fail(err, RV_EPARSE,
                      "a condition is one expression in '${ }', as in \"${ .input.count > 3 }\"");
    if (rc == RV_OK)
        rc = gather_needs(&r);
    if (rc == RV_OK)
        rc = take(&r, ret);
    rv__buf_done(&r.pointer);
    return rc;
}

int rv__exprs_add(struct rv__exprs *set, struct rv__str json, uint32_t *ret, rv_error *err)
{
    return add(set, json, false, ret, err);
}

int rv__exprs_add_condition(struct rv__exprs *set, struct rv__str json, uint32_t *ret,
                            rv_error *err)
{
    return add(set, json, true, ret, err);
}

bool rv__exprs_constant(const struct rv__exprs *set, uint32_t number)
{
    assert(number < set->template_count);
    return set->templates[number].expr_count == 0;
}

bool rv__exprs_use(const struct rv__exprs *set, uint32_t number, size_t i, struct rv__expr_use *ret)
{
    assert(number < set->template_count);
    const struct rv__template *tpl = &set->templates[number];
    for (size_t e = 0; e < tpl->expr_count; e++) {
        if (i < tpl->exprs[e]->use_count) {
            *ret = tpl->exprs[e]->uses[i];
            return true;
        }
        i -= tpl->exprs[e]->use_count;
    }
    return false;
}

size_t rv__exprs_jq(const struct rv__exprs *set, uint32_t number)
{
    assert(number < set->template_count);
    return set->templates[number].jq_count;
}

bool rv__exprs_any_jq(const struct rv__exprs *set)
{
    return set->jq_count > 0;
}
