/* program.c: the expressions of a set as one jq program (a large set: several), compiled.
 *
 *   guards | which one? | if n < 4 then if n < 2 then … (expression 2) … end end
 *
 * Text goes in token by token and in parentheses: comments and line ends are gone by then, and the
 * lexer has seen every bracket close, so that no expression can end its parentheses.
 *
 * jq says in which line an error is, and nothing finer. So to say where in an expression it is, the
 * expression is compiled once more with every token in a line of its own.
 *
 * The guards redefine what aborts the process, hangs in one call of C, or takes all memory at once,
 * for a value that may come from outside: operators are functions to jq, `a * b` is _multiply(a; b),
 * and a definition in the program goes before its own. (libjq 1.6 with each: README.md.) */
#include "expr/set.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"

#define PROGRAM_BYTES ((size_t)64 << 20) /* far above RV__PROGRAM_TOKENS or RV__EXPR_MAX_BYTES */

static const char guards[] =
    /* A text times a number: the memory before the error would be n times the text. */
    "def rv__times($a; $b): $a * $b; "
    "def rv__repeat($s; $n): if $n * ($s | utf8bytelength) > 16777216 "
    "  then error(\"text * number makes more than 16 MiB\") else rv__times($s; $n) end; "
    "def _multiply(a; b): b as $b | a as $a | "
    "  if ($a | type) == \"string\" and ($b | type) == \"number\" then rv__repeat($a; $b) "
    "  elif ($b | type) == \"string\" and ($a | type) == \"number\" then rv__repeat($b; $a) "
    "  else rv__times($a; $b) end; "
    /* An index far behind an array's end: all up to it is filled. */
    "def rv__path: if type == \"array\" and (reduce .[] as $k (false; . or "
    "  (($k | type) == \"number\" and $k > 1000000))) "
    "  then error(\"an array cannot be given an index above 1000000\") else . end; "
    "def rv__setpath($p; $v): setpath($p; $v); "
    "def setpath(p; v): v as $v | p as $p | rv__setpath($p | rv__path; $v); "
    "def rv__assign(p; v): _assign(p; v); def rv__modify(p; f): _modify(p; f); "
    "def _assign(p; v): (path(p) | rv__path | empty), rv__assign(p; v); "
    "def _modify(p; f): (path(p) | rv__path | empty), rv__modify(p; f); "
    "def rv__fromstream(f): fromstream(f); "
    "def fromstream(f): rv__fromstream(f | if length == 2 then (.[0] | rv__path) as $p | . "
    "  else . end); "
    /* The places of an empty text: an endless loop. */
    "def rv__indices($i): indices($i); "
    "def indices($i): if $i == \"\" then [] else rv__indices($i) end; "
    "def index($i): indices($i) | .[0]; "
    "def rindex($i): indices($i) | .[-1:][0]; "
    /* Times that no calendar has: an assertion. */
    "def rv__time: if type == \"number\" and ((. >= -1e15 and . <= 1e15) | not) "
    "  then error(\"the time \\(.) is out of range\") else . end; "
    "def rv__strftime($f): strftime($f); def rv__strflocaltime($f): strflocaltime($f); "
    "def strftime(f): f as $f | rv__time | rv__strftime($f); "
    "def strflocaltime(f): f as $f | rv__time | rv__strflocaltime($f); "
    "def todateiso8601: strftime(\"%Y-%m-%dT%H:%M:%SZ\"); "
    "def todate: todateiso8601; def date: todate; ";

/* ---------------------------------------------------------------------------- as a text --- */

/* Tokens, each behind `between`; but what is in a string stays as it is, and "$x" together. */
static void put_tokens(struct rv__buf *out, const struct rv__expr *expr, char between)
{
    char open[RV__EXPR_MAX_DEPTH + 1] = { 0 }; /* as the lexer had it; open[0]: nothing is */
    size_t depth = 0;
    for (size_t i = 0; i < expr->tok_count; i++) {
        const struct rv__tok *tok = &expr->toks[i];
        bool in_string = open[depth] == '"';
        if (!in_string && !(i > 0 && rv__str_is(expr->toks[i - 1].text, "$")))
            rv__buf_char(out, between);
        rv__buf_str(out, tok->text);
        if (tok->kind == TOK_CLOSE || (tok->kind == TOK_QUOTE && in_string))
            depth--;
        else if (tok->kind == TOK_OPEN || tok->kind == TOK_QUOTE)
            open[++depth] = *tok->text.at;
    }
}

/* Which of the expressions [from, to) it is, by halves. */
static void put_choice(struct rv__buf *out, struct rv__expr *const *exprs, uint32_t from,
                       uint32_t to)
{
    if (to - from == 1) {
        rv__buf_char(out, '(');
        put_tokens(out, exprs[from], ' ');
        rv__buf_text(out, " )");
        return;
    }
    uint32_t middle = from + (to - from) / 2;
    rv__buf_fmt(out, "if $rv__n < %u then ", middle);
    put_choice(out, exprs, from, middle);
    rv__buf_text(out, " else ");
    put_choice(out, exprs, middle, to);
    rv__buf_text(out, " end");
}

/* ------------------------------------------------------------------------------ compiling --- */

struct complaint {
    char first[200]; /* what jq said first; "": nothing */
};

static void note(void *arg, jv message)
{
    struct complaint *complaint = arg;
    if (complaint->first[0] == '\0' && jv_get_kind(message) == JV_KIND_STRING)
        snprintf(complaint->first, sizeof complaint->first, "%s", jv_string_value(message));
    jv_free(message);
}

/* RV_OK; RV_EPARSE with *complaint; RV_ENOMEM. */
static int compile(const struct rv__buf *text, jq_state **ret, struct complaint *complaint)
{
    jq_state *jq;
    complaint->first[0] = '\0';
    if (rv__buf_err(text, NULL) < 0 || (jq = jq_init()) == NULL)
        return RV_ENOMEM;
    jq_set_error_cb(jq, note, complaint);
    int ok = jq_compile(jq, text->text);
    jq_set_error_cb(jq, NULL, NULL);
    if (!ok) {
        jq_teardown(&jq);
        return RV_EPARSE;
    }
    *ret = jq;
    return RV_OK;
}

/* jq's sentence without its wrapping, and the line it names (0: none). It says
 * "jq: error: syntax error, unexpected ')' (Unix shell quoting issues?) at <top-level>, line 4:\n…" */
static size_t read_complaint(struct complaint *complaint)
{
    static const char prefix[] = "jq: error: ", shell[] = " (Unix shell quoting issues?)";
    char *text = complaint->first, *at;
    size_t line = 0;
    if (memcmp(text, prefix, sizeof prefix - 1) == 0)
        memmove(text, text + sizeof prefix - 1, strlen(text + sizeof prefix - 1) + 1);
    at = strstr(text, " at <top-level>, line ");
    if (at != NULL) {
        line = strtoul(at + sizeof " at <top-level>, line " - 1, NULL, 10);
        *at = '\0';
    }
    at = strstr(text, shell);
    if (at != NULL)
        memmove(at, at + sizeof shell - 1, strlen(at + sizeof shell - 1) + 1);
    text[strcspn(text, "\n")] = '\0';
    return line;
}

/* Where the token is that stands in this line of the text with a token a line. */
static const char *token_of_line(const struct rv__expr *expr, size_t line)
{
    struct rv__buf upto;
    struct rv__expr part = *expr;
    const char *at = expr->text.at + expr->text.len; /* behind the last: the end */
    for (part.tok_count = 1; part.tok_count <= expr->tok_count; part.tok_count++) {
        size_t lines = 1;
        rv__buf_init(&upto, PROGRAM_BYTES);
        put_tokens(&upto, &part, '\n');
        for (size_t i = 0; i < upto.len; i++)
            lines += upto.text[i] == '\n';
        rv__buf_done(&upto);
        if (lines >= line) {
            at = expr->toks[part.tok_count - 1].text.at;
            break;
        }
    }
    return at;
}

/* Compile one of them alone. RV_OK: it is not this one. */
static int blame(const struct rv__expr *expr, struct complaint *complaint, const char **ret_at)
{
    struct rv__buf text;
    jq_state *jq = NULL;
    rv__buf_init(&text, PROGRAM_BYTES);
    rv__buf_char(&text, '(');
    put_tokens(&text, expr, '\n');
    rv__buf_text(&text, "\n)");
    int rc = compile(&text, &jq, complaint);
    rv__buf_done(&text);
    if (jq != NULL)
        jq_teardown(&jq);
    if (rc == RV_EPARSE) {
        size_t line = read_complaint(complaint);
        *ret_at = line > 0 ? token_of_line(expr, line) : expr->text.at;
        if (*ret_at == expr->text.at + expr->text.len) { /* the ')' is ours */
            char *ours = strstr(complaint->first, "unexpected ')'");
            if (ours != NULL)
                snprintf(ours, sizeof complaint->first - (size_t)(ours - complaint->first),
                         "the expression ends too early");
        }
    }
    return rc;
}

/* The program does not compile: name each expression that does not. */
static int blame_each(struct rv__expr *const *exprs, uint32_t count,
                      void (*bad)(void *, const struct rv__expr_bad *), void *arg, rv_error *err)
{
    struct complaint complaint;
    const char *at;
    int found = RV_OK;
    for (uint32_t i = 0; i < count; i++) {
        const struct rv__expr *expr = exprs[i];
        int rc = blame(expr, &complaint, &at);
        if (rc == RV_ENOMEM)
            return rv__nomem(err);
        if (rc == RV_OK)
            continue;
        struct rv__expr_bad one = { expr->number, expr->pointer, rv__expr_character(expr, at),
                                    complaint.first };
        if (found == RV_OK)
            found = rv__fail(err, RV_EPARSE, "%s%.*s%scharacter %zu: %s",
                             one.pointer.len > 0 ? "at " : "", RV__ARG(one.pointer),
                             one.pointer.len > 0 ? ", " : "at ", one.character, one.message);
        if (bad != NULL)
            bad(arg, &one);
    }
    return found;
}

int rv__program_compile(struct rv__exprs *set, struct rv__program *program,
                        void (*bad)(void *arg, const struct rv__expr_bad *bad), void *arg,
                        rv_error *err)
{
    struct rv__expr *const *exprs = set->jq_exprs + program->from;
    struct rv__buf text;
    struct complaint complaint;
    int rc;
    set->compiled = true;
    if (program->jq != NULL)
        return RV_OK;
    rv__buf_init(&text, PROGRAM_BYTES);
    rv__buf_text(&text, guards);
    rv__buf_text(&text, ".[0] as $rv__n | .[1] | ");
    put_choice(&text, exprs, 0, program->count);
    rc = compile(&text, &program->jq, &complaint);
    rv__buf_done(&text);
    if (rc == RV_ENOMEM)
        return rv__nomem(err);
    if (rc < 0) {
        rc = blame_each(exprs, program->count, bad, arg, err);
        if (rc == RV_OK) { /* each compiles alone: it must be the guards or libjq */
            (void)read_complaint(&complaint);
            rc = rv__fail(err, RV_EPARSE, "the expressions do not compile together: %s",
                          complaint.first);
        }
    }
    return rc;
}

int rv__exprs_check(struct rv__exprs *set, void (*bad)(void *arg, const struct rv__expr_bad *bad),
                    void *arg, rv_error *err)
{
    int first = RV_OK;
    for (uint32_t i = 0; i < set->program_count; i++) {
        int rc = rv__program_compile(set, &set->programs[i], bad, arg, first == RV_OK ? err : NULL);
        if (rc < 0 && rc != RV_EPARSE)
            return rc;
        if (first == RV_OK)
            first = rc;
    }
    return first;
}
