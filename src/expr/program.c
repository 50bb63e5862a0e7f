/* program.c: the expressions of a set as one jq program (a large set: several), as text.
 *
 *   number of the expression | if n < 4 then if n < 2 then … (expression 2) … end end
 *
 * An expression is written token by token, in parentheses. Comments and line ends are left out, and the
 * lexer has seen every bracket close, so no expression can close its own parentheses.
 *
 * jq reports only the line of an error. To find the position within an expression, it is compiled again
 * with each token on a line of its own. */
#include "expr/set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PROGRAM_BYTES ((size_t)64 << 20) /* far above RV__PROGRAM_TOKENS or RV__EXPR_MAX_BYTES */

/* ---------------------------------------------------------------------------- as a text --- */

/* Write the tokens, each after `between`; except within strings, and "$x" stays together. */
static void put_tokens(struct rv__buf *out, const struct rv__expr *expr, char between)
{
    char open[RV__EXPR_MAX_DEPTH + 1] = { 0 }; /* open brackets, as in the lexer; open[0]: none */
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

/* Choose one of the expressions [from, to) by binary search. */
static void put_choice(struct rv__buf *out, struct rv__expr *const *exprs, uint32_t from,
                       uint32_t to)
{
    if (to - from == 1) {
        rv__buf_text(out, exprs[from]->hide ? "(del(.secrets) | (" : "(");
        put_tokens(out, exprs[from], ' ');
        rv__buf_text(out, exprs[from]->hide ? " ))" : " )");
        return;
    }
    uint32_t middle = from + (to - from) / 2;
    rv__buf_fmt(out, "if $rv__n < %u then ", middle);
    put_choice(out, exprs, from, middle);
    rv__buf_text(out, " else ");
    put_choice(out, exprs, middle, to);
    rv__buf_text(out, " end");
}

void rv__program_text(const struct rv__exprs *set, const struct rv__program *program,
                      struct rv__buf *out)
{
    rv__buf_text(out, ".[0] as $rv__n | .[1] | ");
    put_choice(out, set->jq_exprs + program->from, 0, program->count);
}

/* ------------------------------------------------------------------------------- checking --- */

struct check {
    struct rv__expr_compiler *compiler;
    void (*bad)(void *arg, const struct rv__expr_bad *bad);
    void *arg;
};

static int compile(const struct check *c, const struct rv__buf *text, rv_error *complaint)
{
    int rc = rv__buf_err(text, complaint);
    return rc < 0 ? rc : c->compiler->compile(c->compiler, rv__buf_view(text), complaint);
}

/* Reduce jq's message to its sentence; returns the line it names (0: none). jq writes
 * "jq: error: syntax error, unexpected ')' (Unix shell quoting issues?) at <top-level>, line 4:\n…" */
static size_t read_complaint(rv_error *complaint)
{
    static const char prefix[] = "jq: error: ", shell[] = " (Unix shell quoting issues?)";
    char *text = complaint->message, *at;
    size_t line = 0;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0)
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

/* Where the token is that was written on this line. */
static const char *token_of_line(const struct rv__expr *expr, size_t line)
{
    struct rv__buf upto;
    struct rv__expr part = *expr;
    const char *at = expr->text.at + expr->text.len; /* after the last token: the end */
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

/* Compile one expression alone. RV_OK: the error is not in this one. */
static int blame(const struct check *c, const struct rv__expr *expr, rv_error *complaint,
                 const char **ret_at)
{
    struct rv__buf text;
    rv__buf_init(&text, PROGRAM_BYTES);
    rv__buf_char(&text, '(');
    put_tokens(&text, expr, '\n');
    rv__buf_text(&text, "\n)");
    int rc = compile(c, &text, complaint);
    rv__buf_done(&text);
    if (rc != RV_EPARSE)
        return rc;
    size_t line = read_complaint(complaint);
    *ret_at = line > 0 ? token_of_line(expr, line) : expr->text.at;
    if (*ret_at == expr->text.at + expr->text.len) { /* at the ')' that we added */
        char *ours = strstr(complaint->message, "unexpected ')'");
        if (ours != NULL)
            snprintf(ours, sizeof complaint->message - (size_t)(ours - complaint->message),
                     "the expression ends too early");
    }
    return rc;
}

/* The program does not compile: report each expression that does not. */
static int blame_each(const struct check *c, struct rv__expr *const *exprs, uint32_t count,
                      rv_error *err)
{
    rv_error complaint;
    int found = RV_OK;
    for (uint32_t i = 0; i < count; i++) {
        const struct rv__expr *expr = exprs[i];
        const char *at = expr->text.at;
        int rc = blame(c, expr, &complaint, &at);
        if (rc < 0 && rc != RV_EPARSE)
            return rv__fail(err, rc, "%s", complaint.message);
        if (rc == RV_OK)
            continue;
        struct rv__expr_bad one = { expr->number, expr->pointer, rv__expr_character(expr, at),
                                    complaint.message };
        if (found == RV_OK)
            found = rv__fail(err, RV_EPARSE, "%s%.*s%scharacter %zu: %s",
                             one.pointer.len > 0 ? "at " : "", RV__ARG(one.pointer),
                             one.pointer.len > 0 ? ", " : "at ", one.character, one.message);
        if (c->bad != NULL)
            c->bad(c->arg, &one);
    }
    return found;
}

static int check_program(const struct check *c, const struct rv__exprs *set,
                         const struct rv__program *program, rv_error *err)
{
    struct rv__buf text;
    rv_error complaint;
    rv__buf_init(&text, PROGRAM_BYTES);
    rv__program_text(set, program, &text);
    int rc = compile(c, &text, &complaint);
    rv__buf_done(&text);
    if (rc < 0 && rc != RV_EPARSE)
        return rv__fail(err, rc, "%s", complaint.message);
    if (rc == RV_EPARSE) {
        rc = blame_each(c, set->jq_exprs + program->from, program->count, err);
        if (rc == RV_OK) { /* each compiles alone: libjq failed */
            (void)read_complaint(&complaint);
            rc = rv__fail(err, RV_EPARSE, "the expressions do not compile together: %s",
                          complaint.message);
        }
    }
    return rc;
}

int rv__exprs_check(struct rv__exprs *set, struct rv__expr_compiler *compiler,
                    void (*bad)(void *arg, const struct rv__expr_bad *bad), void *arg,
                    rv_error *err)
{
    const struct check c = { .compiler = compiler, .bad = bad, .arg = arg };
    int first = RV_OK;
    for (uint32_t i = 0; i < set->program_count; i++) {
        int rc = check_program(&c, set, &set->programs[i], first == RV_OK ? err : NULL);
        if (rc < 0 && rc != RV_EPARSE)
            return rc;
        if (first == RV_OK)
            first = rc;
    }
    return first;
}
