/* sight.h: what the expressions of a piece of work see: the view from when it was dispatched, behind the interface
 * of the evaluator (struct rv__scope). */
#ifndef RV_WORK_SIGHT_H
#define RV_WORK_SIGHT_H

#include "expr/expr.h"

struct rv_ctx;
struct rv__view;

/* The item of an iteration whose items are stored in pieces. It is read once. */
struct rv__sight_item {
    struct rv__sight_item *next;
    const struct rv__view *of;
    struct rv__blob *piece; /* referenced; `json` points into it */
    struct rv__str json;
};

struct rv__sight {
    struct rv__scope scope; /* first */
    struct rv_ctx *ctx;
    struct rv__str run; /* made when it is first asked for; in the ctx's arena */
    struct rv__str
        agents[3]; /* of an agent: its inputs, parameters and state; made when first asked for */
    struct rv__str failure; /* of a handler: {"error":…,"failedStep":…,"workflowState":…} */
    struct rv__sight_item *items;     /* those that were read; in the ctx's arena */
    const struct rv__entry **entries; /* all steps, in order; NULL: not asked for yet */
    size_t entry_count;
};

void rv__sight_init(struct rv__sight *sight, struct rv_ctx *ctx);
void rv__sight_done(struct rv__sight *sight);

#endif
