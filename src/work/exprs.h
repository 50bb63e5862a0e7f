/* exprs.h: what of a plan is to be evaluated, by node, and the schemas its inputs are held to. Made
 * once for each plan; immutable then. */
#ifndef RV_WORK_EXPRS_H
#define RV_WORK_EXPRS_H

#include "expr/expr.h"
#include "flow/flow.h"
#include "schema/schema.h"

/* Where a template stands in a node: what it is evaluated for (enum rv__eval), its parameters, or
 * what its iterations are called. */
enum { SLOT_WITH = EVALS, SLOT_LABEL, SLOTS };

/* The input of a workflow, as the outermost or inside of another. */
struct rv__input_rule {
    const struct rv__body *body;
    uint32_t number;           /* 1 + that of its template; 0: the input around it */
    struct rv__schema *schema; /* NULL: any */
};

/* What the payload of a signal must be. */
struct rv__signal_rule {
    struct rv__str name; /* the plan's */
    struct rv__schema *schema;
};

struct rv__plan_exprs {
    struct rv__exprs *set;        /* NULL: there is nothing to evaluate */
    uint32_t *numbers;            /* node id × SLOTS: 1 + that of its template; 0: none */
    struct rv__input_rule *rules; /* by the body's address */
    size_t rule_count;
    struct rv__signal_rule *signals; /* by name */
    size_t signal_count;
};

/* Errors: RV_EINVAL, naming the node; RV_ENOMEM. After an error it needs no `done`. */
int rv__plan_exprs_init(struct rv__plan_exprs *exprs, const struct rv__plan *plan, rv_error *err);
void rv__plan_exprs_done(struct rv__plan_exprs *exprs);

/* 1 + the number of the template, 0: none. */
uint32_t rv__plan_exprs_number(const struct rv__plan_exprs *exprs, const struct rv__node *node,
                               int slot);
const struct rv__input_rule *rv__plan_exprs_rule(const struct rv__plan_exprs *exprs,
                                                 const struct rv__body *body); /* NULL: none */

const struct rv__signal_rule *rv__plan_exprs_signal(const struct rv__plan_exprs *exprs,
                                                    struct rv__str name); /* NULL: none */

/* Hold an input to its rule: *ret is it with defaults put in, a blob to unref. NULL is no input.
 * RV_EINVAL: all that is wrong is in `bad`. */
int rv__input_take(const struct rv__input_rule *rule, struct rv__blob *input,
                   struct rv__violations *bad, struct rv__blob **ret, rv_error *err);

#endif
