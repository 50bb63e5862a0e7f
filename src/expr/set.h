/* set.h: what the files of expr/ share: how a set of templates looks once it is read.
 *
 * A template is a flat list of pieces, and its value is the pieces' texts, one behind the other. */
#ifndef RV_EXPR_SET_H
#define RV_EXPR_SET_H

#include <stdatomic.h>

#include "base/arena.h"
#include "expr/expr.h"
#include "expr/lex.h"

/* A program of jq compiles to one function of at most 65535 words (a token makes two or three), and
 * takes longer than in proportion to its size: so a large set is several. */
enum { RV__PROGRAM_EXPRS = 128, RV__PROGRAM_TOKENS = 4096 };

#define RV__EXPR_SET_BYTES ((size_t)64 << 20) /* memory of a set: texts, tokens, pieces */

struct rv__expr {
    struct rv__str text;    /* without ${ and } */
    struct rv__str pointer; /* of the string it is in, */
    struct rv__str string;  /* that string, unescaped; `text` lies in it */
    uint32_t number;        /* of its template */
    struct rv__tok *toks;   /* without TOK_END */
    size_t tok_count;

    struct rv__expr_step *path; /* NULL: it is no plain path, and */
    size_t path_count;
    uint32_t program; /* it is in this program of the set, */
    uint32_t choice;  /* and is this one there */
    uint64_t serial;  /* unlike any other expression's in the process */

    struct rv__expr_use *uses;
    size_t use_count;
    bool whole;       /* takes the scope as a whole */
    bool outer_loops; /* takes more of `.loop` than item, index and items: perhaps its parent */
    bool secrets;     /* names a secret */
    bool
        hide; /* takes the whole, names no secret, and another of its template does: not shown to it */
};

enum rv__piece_kind {
    PIECE_JSON,  /* this text */
    PIECE_VALUE, /* the value of an expression, as JSON */
    PIECE_TEXT,  /* the same as text, within a string */
};

struct rv__piece {
    enum rv__piece_kind kind;
    struct rv__str json;
    struct rv__expr *expr;
    struct rv__piece *next;
};

struct rv__template {
    struct rv__piece *pieces;
    struct rv__expr **exprs;
    size_t expr_count;
    /* Of those that need jq: how many, and what they see, all together. A root or step is there once, or
     * a few times, if the template is huge. */
    size_t jq_count;
    const struct rv__expr_use **needs;
    size_t need_count;
    bool whole, all_steps, secrets;
    bool outer_loops; /* something of `.loop` beyond item, index and items: perhaps its parent */
};

/* Expressions compiled together. */
struct rv__program {
    uint32_t from, count; /* of set->jq_exprs */
    size_t tokens;
    uint64_t serial; /* unlike any other program's in the process */
};

struct rv__exprs {
    atomic_uint refs;
    struct rv__arena arena;
    struct rv__template *templates;
    uint32_t template_count, template_cap;
    struct rv__expr **jq_exprs; /* those that need jq */
    uint32_t jq_count, jq_cap;
    struct rv__program *programs;
    uint32_t program_count, program_cap;
    uint32_t expr_count;
};

/* use.c: what an expression uses; is it a plain path; is there something in it that is refused? The
 * last gives a message and where it is. RV_OK, RV_ENOMEM. */
int rv__expr_analyse(struct rv__arena *arena, struct rv__expr *expr);
/* Fill expr->path, if all its tokens are a plain path that begins at a root. RV_OK, RV_ENOMEM. */
int rv__expr_find_path(struct rv__arena *arena, struct rv__expr *expr);
const char *rv__expr_refused(const struct rv__expr *expr, const char **ret_at);

/* Where in its string something is, in characters from 1. */
size_t rv__expr_character(const struct rv__expr *expr, const char *at);

/* program.c: the text of one of the set's programs, for jq. Failures are the buffer's. */
void rv__program_text(const struct rv__exprs *set, const struct rv__program *program,
                      struct rv__buf *out);

/* A number that nobody else has. Thread: any. */
uint64_t rv__expr_serial(void);

#endif
