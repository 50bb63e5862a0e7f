/* workflow.h: a definition while the public builder makes it. */
#ifndef RV_DEFINE_WORKFLOW_H
#define RV_DEFINE_WORKFLOW_H

#include <rival/rival.h>

#include "base/arena.h"
#include "base/json.h"
#include "plan/plan.h"

struct rv__named_fn {
    struct rv__named_fn *next;
    struct rv__str name;
    rv_step_fn fn;
    const char *module; /* not NULL: it is in this shared object, and runs in a host process */
    uint64_t hash;      /* of the file it was loaded from; 0: none */
    const char *where;  /* the node that added it, for messages; NULL: none */
};

struct rv_body {
    rv_workflow *workflow;
    struct rv__draft_body *draft;
    struct rv__draft_node *step; /* the last one added; NULL: none */
};

struct rv_concurrent {
    rv_workflow *workflow;
    struct rv__draft_node *node;
    uint32_t count;
};

struct rv_workflow {
    struct rv__arena arena; /* for bodies and names */
    struct rv__draft *draft;
    struct rv__named_fn *functions;
    rv_body root;
    rv_concurrent spare_block; /* returned when there is no memory for another */
    const char *source;        /* the file it came from, borrowed; NULL: none */
    const char *directory;     /* absolute: for relative commands; in the arena; NULL: none */
    bool replace;              /* it replaces another definition with this name, */
    bool keep_others;          /* but not that of another file that still exists */
    bool library;              /* only functions, no draft */
    int rc;                    /* the first error while it was built */
    char why[320];
};

/* Make it from a plan document. Its violations are reported by rv_register(). Errors: RV_EPARSE, RV_EINVAL,
 * RV_ETOOBIG, RV_ENOMEM. */
int rv__workflow_read(struct rv__str json, rv_workflow **ret, rv_error *err);
/* A library of functions without a workflow, for rv_register(). NULL: no memory. */
rv_workflow *rv__workflow_library(void);
/* The function `name` is offered by a worker. */
void rv__workflow_offered(rv_workflow *workflow, struct rv__str name);
/* The function `name` is in this module, and runs in a host process. `module` is copied. */
void rv__workflow_hosted(rv_workflow *workflow, struct rv__str name, const char *module);

#endif
