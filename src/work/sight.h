/* sight.h: what the expressions of a piece of work see: the view it got when it was dispatched, behind
 * the interface that the evaluator asks through (struct rv__scope). */
#ifndef RV_WORK_SIGHT_H
#define RV_WORK_SIGHT_H

#include "expr/expr.h"

struct rv_ctx;
struct rv__view;

/* The item of an iteration whose items are in pieces, read once. */
struct rv__sight_item {
    struct rv__sight_item *next;
    const struct rv__view *of;
    struct rv__blob *piece; /* held; `json` lies in it */
    struct rv__str json;
};

struct rv__sight {
    struct rv__scope scope; /* first */
    struct rv_ctx *ctx;
    struct rv__str run;       /* made when asked for, in the ctx's arena */
    struct rv__str agents[3]; /* of an agent: its inputs, parameters, state; made when asked for */
    struct rv__str failure;   /* of a handler: {"error":…,"failedStep":…,"workflowState":…} */
    struct rv__sight_item *items; /* those that were read, of items in pieces; in the ctx's arena */
    const struct rv__entry **entries; /* all steps, in order; NULL: nobody has asked for them yet */
    size_t entry_count;
};

void rv__sight_init(struct rv__sight *sight, struct rv_ctx *ctx);
void rv__sight_done(struct rv__sight *sight);

#endif
