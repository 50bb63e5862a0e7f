/* sight.h: what the expressions of a piece of work see: the view it got when it was dispatched, behind
 * the interface that the evaluator asks through (struct rv__scope). */
#ifndef RV_WORK_SIGHT_H
#define RV_WORK_SIGHT_H

#include "expr/expr.h"

struct rv_ctx;

struct rv__sight {
    struct rv__scope scope; /* first */
    struct rv_ctx *ctx;
    struct rv__str run;     /* made when asked for, in the ctx's arena */
    struct rv__str failure; /* of a handler: {"error":…,"failedStep":…,"workflowState":…} */
    struct rv__blob
        *piece; /* of the items, with the item in it; NULL: not read, or not in pieces */
    struct rv__str item;
    const struct rv__entry *at; /* where the walk over all aliases is, */
    size_t at_index;            /* and its number */
};

void rv__sight_init(struct rv__sight *sight, struct rv_ctx *ctx);
void rv__sight_done(struct rv__sight *sight);

#endif
