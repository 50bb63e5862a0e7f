/* refs.h: what is wrong with the expressions of a plan, precisely. Inside define/ only. */
#ifndef RV_DEFINE_REFS_H
#define RV_DEFINE_REFS_H

#include "define/define.h"

/* Where in a node an expression is. */
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
    struct rv__str pointer; /* into the slot's JSON: the string it is in */
    size_t character;       /* of that string, from 1; 0: the whole */
    struct rv__str near;    /* what is written there; none: not known */
    const char *message;
};

/* Tell everything that is wrong, in order. RV_OK also if there is something. RV_ENOMEM; RV_EPARSE: jq
 * refuses the expressions together, and none of them alone; what the compiler (NULL: nobody compiles)
 * could not do. */
int rv__refs_find(const struct rv__plan *plan, struct rv__expr_compiler *compiler,
                  void (*told)(void *, const struct rv__finding *), void *arg, rv_error *err);

#endif
