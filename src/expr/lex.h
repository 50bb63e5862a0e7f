/* lex.h: the tokens of jq, as libjq 1.6 sees them: enough to find where an expression ends, what it
 * refers to, and where in it an error is. */
#ifndef RV_EXPR_LEX_H
#define RV_EXPR_LEX_H

#include "base/str.h"
#include "expr/expr.h"

enum rv__tok_kind {
    TOK_END,     /* the text's end, or a "}" that nothing has opened */
    TOK_DOT,     /* . */
    TOK_DOTDOT,  /* .. */
    TOK_FIELD,   /* .name */
    TOK_NAME,    /* a function, a key, or the name behind a $ */
    TOK_KEYWORD, /* if, as, def … */
    TOK_NUMBER,
    TOK_FORMAT, /* @base64 */
    TOK_QUOTE,  /* " that begins or ends a string */
    TOK_TEXT,   /* what stands in a string, as it stands */
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

/* The next token. NULL, or what is wrong at lexer->at: then no more may be asked for. */
const char *rv__lexer_next(struct rv__lexer *lexer, struct rv__tok *ret);

#endif
