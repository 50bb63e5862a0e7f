/* lex.h: the tokens of jq, as in libjq 1.6: enough to find the end of an expression, what it refers to, and the
 * position of an error. */
#ifndef RV_EXPR_LEX_H
#define RV_EXPR_LEX_H

#include "base/str.h"
#include "expr/expr.h"

enum rv__tok_kind {
    TOK_END,     /* the end of the text, or an unmatched "}" */
    TOK_DOT,     /* . */
    TOK_DOTDOT,  /* .. */
    TOK_FIELD,   /* .name */
    TOK_NAME,    /* a function, a key, or the name after a $ */
    TOK_KEYWORD, /* if, as, def … */
    TOK_NUMBER,
    TOK_FORMAT, /* @base64 */
    TOK_QUOTE,  /* " that begins or ends a string */
    TOK_TEXT,   /* the raw contents of a string */
    TOK_OPEN,   /* ( [ { and, in a string, \( */
    TOK_CLOSE,
    TOK_OTHER, /* operators, $ ; , : ? */
};

struct rv__tok {
    enum rv__tok_kind kind;
    struct rv__str text;
};

struct rv__lexer {
    struct rv__str text;
    const char *at;
    size_t depth;
    char open[RV__EXPR_MAX_DEPTH]; /* ( [ {, '"' for a string, '\\' for an interpolation in one */
};

void rv__lexer_init(struct rv__lexer *lexer, struct rv__str text);

/* The next token. Returns NULL, or the error at lexer->at; do not call it again after an error. */
const char *rv__lexer_next(struct rv__lexer *lexer, struct rv__tok *ret);

#endif
