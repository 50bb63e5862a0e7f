/* eval.h: what eval.c (templates), ask.c (questions) and path.c (plain paths) share. */
#ifndef RV_EXPR_EVAL_H
#define RV_EXPR_EVAL_H

#include "expr/cache.h"
#include "expr/set.h"

/* One expression being evaluated. */
struct rv__eval_state {
    struct rv__expr_texts *texts;
    struct rv__scope *scope;
    const struct rv__expr *expr;
    struct rv__buf *work; /* for scopes that are built from several parts */
    rv_error *err;
};

/* Names of the parts, for pieces that the scope gives in parts. */
enum { RV__STEP_FIELDS = 4, RV__LAST_NAMES = 4, RV__LOOP_NAMES = 3 };
extern const struct rv__str rv__step_fields[RV__STEP_FIELDS]; /* of steps.ALIAS */
extern const struct rv__str rv__last_names[RV__LAST_NAMES];   /* of lastStep */
extern const struct rv__str rv__loop_names[RV__LOOP_NAMES];   /* of loop */
/* "loop", "loop.parent" …: the root of the iteration `level` levels up. "none": deeper than any plan. */
struct rv__str rv__loop_root(size_t level);

/* Fail with "${ expression }: why". */
int rv__expr_failed(const struct rv__expr *expr, int code, rv_error *err, const char *why);

/* path.c: the text that a plain path leads to; RV_ENOTFOUND: null. Valid until the texts or `work` are used again;
 * *own, if not NULL afterwards, holds the text and must be unref'd after use. */
int rv__path_text(struct rv__eval_state *e, struct rv__str *ret, struct rv__blob **own);

#endif
