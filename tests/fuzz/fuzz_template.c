/* fuzz_template.c: any bytes as the text of a template's string, against src/expr/{lex,set,use}.c.
 *
 * Beyond "does not crash": a text without "${" is itself; what was refused has left the set as it was;
 * the tokens of an expression lie in its text, in order, with nothing but white space and comments in
 * between; and so do its uses. Every expression that was accepted is lexed again, with the same end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "expr/expr.h"
#include "expr/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* From `at` to `to` there is nothing that means anything. */
static void must_be_blank(const char *at, const char *to)
{
    bool comment = false;
    for (; at < to; at++) {
        if (*at == '\n')
            comment = false;
        else if (*at == '#')
            comment = true;
        else
            MUST(comment || *at == ' ' || *at == '\t' || *at == '\r');
    }
}

static void check_expr(const struct rv__expr *expr)
{
    struct rv__lexer lexer;
    struct rv__tok tok;
    const char *at = expr->text.at;
    MUST(expr->tok_count > 0);
    for (size_t i = 0; i < expr->tok_count; i++) {
        struct rv__str text = expr->toks[i].text;
        must_be_blank(at, text.at);
        MUST(text.len > 0);
        at = text.at + text.len;
    }
    must_be_blank(at, expr->text.at + expr->text.len);

    rv__lexer_init(&lexer, expr->text);
    for (size_t i = 0; i < expr->tok_count; i++) {
        MUST(rv__lexer_next(&lexer, &tok) == NULL);
        MUST(tok.kind == expr->toks[i].kind && tok.text.at == expr->toks[i].text.at);
    }
    MUST(rv__lexer_next(&lexer, &tok) == NULL && tok.kind == TOK_END);
    MUST(expr->text.at[expr->text.len] == '}');
    MUST(expr->path == NULL || expr->use_count == 1);
    MUST(expr->use_count <= expr->tok_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__exprs *set;
    struct rv__buf json;
    struct rv__str text = { (const char *)data, size };
    uint32_t number = 0;
    rv_error err;
    if (!rv__str_utf8(text))
        return 0;
    MUST(rv__exprs_new(&set, NULL) == RV_OK);
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    rv__buf_text(&json, "{\"a\":[1,");
    rv__buf_json_str(&json, text);
    rv__buf_text(&json, "]}");
    int rc = rv__exprs_add(set, rv__buf_view(&json), &number, &err);
    if (memmem(text.at, text.len, "${", 2) == NULL) {
        MUST(rc == RV_OK && rv__exprs_constant(set, number));
        struct rv__piece *piece = set->templates[number].pieces;
        MUST(piece->next == NULL && rv__str_eq(piece->json, rv__buf_view(&json)));
    } else if (rc == RV_OK) {
        const struct rv__template *tpl = &set->templates[number];
        for (size_t i = 0; i < tpl->expr_count; i++)
            check_expr(tpl->exprs[i]);
    } else {
        MUST(rc == RV_EPARSE || rc == RV_ETOOBIG);
        MUST(set->template_count == 0 && set->jq_count == 0);
        MUST(strncmp(err.message, "at /a/1, character ", 19) == 0);
    }
    rv__buf_done(&json);
    rv__exprs_unref(set);
    return 0;
}
