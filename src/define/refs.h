/* refs.h: finds the errors in the expressions of a plan, with their positions. Inside define/ only. */
#ifndef RV_DEFINE_REFS_H
#define RV_DEFINE_REFS_H

#include "define/define.h"

/* The place of an expression in a node. */
enum rv__slot {
    SLOT_WHEN,
    SLOT_DESCRIPTION,
    SLOT_IF,
    SLOT_WHILE,
    SLOT_UNTIL,
    SLOT_ITEMS,
    SLOT_LABEL,
    SLOT_INPUT,
    SLOT_WITH,
    SLOTS,
};
const char *rv__slot_name(enum rv__slot slot); /* for people */

struct rv__finding {
    const struct rv__node *node;
    const struct rv__body *body; /* SLOT_INPUT: the workflow's; else NULL */
    enum rv__slot slot;
    struct rv__str pointer; /* into the slot's JSON: the string that has the error */
    size_t character;       /* in that string, from 1; 0: the whole string */
    struct rv__str near;    /* the text at that position; none: unknown */
    const char *message;
};

/* Report every error, in order; RV_OK even if there are some. RV_ENOMEM; RV_EPARSE: jq refuses the expressions
 * together, but none of them alone; errors of the compiler (NULL: expressions are not compiled). */
int rv__refs_find(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                  void (*told)(void *, const struct rv__finding *), void *arg, rv_error *err);

#endif
