/* set.h: shared by the files of expr/: a set of templates after parsing.
 *
 * A template is a flat list of pieces; its value is their texts, one after the other. */
#ifndef RV_EXPR_SET_H
#define RV_EXPR_SET_H

#include <stdatomic.h>

#include "base/arena.h"
#include "expr/expr.h"
#include "expr/lex.h"

/* jq compiles a program to one function of at most 65535 words (a token makes two or three), and the time grows
 * faster than the size: so a large set has several programs. */
enum { RV__PROGRAM_EXPRS = 128, RV__PROGRAM_TOKENS = 4096 };

#define RV__EXPR_SET_BYTES ((size_t)64 << 20) /* memory of a set: texts, tokens, pieces */

struct rv__expr {
    struct rv__str text;    /* without ${ and } */
    struct rv__str pointer; /* to the string that contains it */
    struct rv__str string;  /* that string, unescaped; contains `text` */
    uint32_t number;        /* of its template */
    struct rv__tok *toks;   /* without TOK_END */
    size_t tok_count;

    struct rv__expr_step *path; /* NULL: not a plain path; then jq runs it: */
    size_t path_count;
    uint32_t program; /* the program of the set, */
    uint32_t choice;  /* and its number in the program */
    uint64_t serial;  /* unique in this process */

    struct rv__expr_use *uses;
    size_t use_count;
    bool whole;       /* reads the scope as a whole */
    bool outer_loops; /* reads more of `.loop` than item, index and items: perhaps its parent */
    bool secrets;     /* names a secret */
    bool
        hide; /* hide secrets: it reads the whole scope, and only others in its template name them */
};

enum rv__piece_kind {
    PIECE_JSON,  /* this text */
    PIECE_VALUE, /* the value of an expression, as JSON */
    PIECE_TEXT,  /* the same, as text inside a string */
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
    /* For the expressions that need jq: how many, and what they read together. In a huge template a root or step
     * may be listed more than once. */
    size_t jq_count;
    const struct rv__expr_use **needs;
    size_t need_count;
    bool whole, all_steps, secrets;
    bool outer_loops; /* some expression reads more of `.loop` than item, index and items */
};

/* Expressions compiled together. */
struct rv__program {
    uint32_t from, count; /* in set->jq_exprs */
    size_t tokens;
    uint64_t serial; /* unique in this process */
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

/* use.c: find what an expression uses, and whether it is a plain path. RV_OK, RV_ENOMEM. rv__expr_refused(): the
 * message about something that is not allowed, and its position; NULL: nothing. */
int rv__expr_analyse(struct rv__arena *arena, struct rv__expr *expr);
/* Fill expr->path, if all its tokens are a plain path that begins at a root. RV_OK, RV_ENOMEM. */
int rv__expr_find_path(struct rv__arena *arena, struct rv__expr *expr);
const char *rv__expr_refused(const struct rv__expr *expr, const char **ret_at);

/* The position in its string, in characters from 1. */
size_t rv__expr_character(const struct rv__expr *expr, const char *at);

/* program.c: append the text of a program, for jq. The buffer remembers a failure. */
void rv__program_text(const struct rv__exprs *set, const struct rv__program *program,
                      struct rv__buf *out);

/* A number that is unique in this process. Thread: any. */
uint64_t rv__expr_serial(void);

#endif
