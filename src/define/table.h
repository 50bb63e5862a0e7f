/* table.h: reads the declarations of a workflow file in C (RV_WORKFLOW, RV_FUNCTIONS): a plan document, and
 * functions by name. */
#ifndef RV_DEFINE_TABLE_H
#define RV_DEFINE_TABLE_H

#include "define/workflow.h"

struct rv__table {
    struct rv__arena arena;
    struct rv__buf plan; /* the document for plan/; empty: a library without a workflow */
    struct rv__named_fn *functions;
    size_t function_count;
};

/* Read a definition. Violations of the plan's rules are reported when it is compiled, not here.
 * Errors: RV_EINVAL: made for another version, or impossible in a plan; RV_ETOOBIG; RV_ENOMEM. */
int rv__table_read(const rv_workflow_def *def, struct rv__table *ret, rv_error *err);
/* The same for a loaded file: `handle` from dlopen(). Errors: as above; RV_EINVAL: it declares nothing. */
int rv__table_load(void *handle, struct rv__table *ret, rv_error *err);
/* The same for one node and everything in it: `plan` is then a node of a plan document. Errors: as above. */
int rv__table_node(const rv_node_def *node, size_t node_size, struct rv__table *ret, rv_error *err);
void rv__table_done(struct rv__table *table);

/* The function of that name, or NULL. */
rv_step_fn rv__table_find(const struct rv__table *table, struct rv__str name);

#endif
