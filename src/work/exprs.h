/* exprs.h: the templates of a plan, by node, and the schemas of its inputs. Made once for each plan, and never
 * changed. */
#ifndef RV_WORK_EXPRS_H
#define RV_WORK_EXPRS_H

#include "expr/expr.h"
#include "flow/flow.h"
#include "schema/schema.h"

/* For what a template of a node is evaluated: one of enum rv__eval, the parameters of the node, or the labels of its
 * iterations. */
enum { SLOT_WITH = EVALS, SLOT_LABEL, SLOTS };

/* The rule for the input of a workflow: of the run's workflow, or of a nested one. */
struct rv__input_rule {
    const struct rv__body *body;
    uint32_t
        number; /* 1 + the index of its template; 0: it gets the input of the enclosing workflow */
    struct rv__schema *schema; /* NULL: any input is valid */
};

/* The schema of a signal's payload. */
struct rv__signal_rule {
    struct rv__str name; /* belongs to the plan */
    struct rv__schema *schema;
};

struct rv__plan_exprs {
    struct rv__exprs *set;        /* NULL: there is nothing to evaluate */
    uint32_t *numbers;            /* [node id × SLOTS]: 1 + the index of the template; 0: none */
    struct rv__input_rule *rules; /* sorted by the body's address */
    size_t rule_count;
    struct rv__signal_rule *signals; /* sorted by name */
    size_t signal_count;
};

/* Errors: RV_EINVAL, which names the node; RV_ENOMEM. After an error, `done` need not be called. */
int rv__plan_exprs_init(struct rv__plan_exprs *exprs, const struct rv__plan *plan, rv_error *err);
void rv__plan_exprs_done(struct rv__plan_exprs *exprs);

/* 1 + the index of the template; 0: none. */
uint32_t rv__plan_exprs_number(const struct rv__plan_exprs *exprs, const struct rv__node *node,
                               int slot);
const struct rv__input_rule *rv__plan_exprs_rule(const struct rv__plan_exprs *exprs,
                                                 const struct rv__body *body); /* NULL: none */

const struct rv__signal_rule *rv__plan_exprs_signal(const struct rv__plan_exprs *exprs,
                                                    struct rv__str name); /* NULL: none */

/* Check an input by its rule. *ret is the input with defaults added, to be given to rv__blob_unref(). An `input` of
 * NULL means no input. RV_EINVAL: `bad` lists everything that is wrong. */
int rv__input_take(const struct rv__input_rule *rule, struct rv__blob *input,
                   struct rv__violations *bad, struct rv__blob **ret, rv_error *err);

#endif
