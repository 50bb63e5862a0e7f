/* workflow.h: a definition as the public builder keeps it. */
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
    uint64_t hash;      /* of the file that it was loaded from; 0: of none */
    const char *where;  /* the node that brought it, for people; NULL: none did */
};

struct rv_body {
    rv_workflow *workflow;
    struct rv__draft_body *draft;
    struct rv__draft_node *step; /* that was added last; NULL: none was */
};

struct rv_concurrent {
    rv_workflow *workflow;
    struct rv__draft_node *node;
    uint32_t count;
};

struct rv_workflow {
    struct rv__arena arena; /* of the bodies and names below */
    struct rv__draft *draft;
    struct rv__named_fn *functions;
    rv_body root;
    rv_concurrent spare_block; /* handed out when there is no memory for another */
    const char *source;        /* the file it came from, borrowed; NULL: none */
    const char *directory; /* absolute: its commands are relative to it; in the arena; NULL: none */
    bool replace;          /* another definition of that name gives way */
    bool library;          /* functions for others, and no draft */
    int rc;                /* what went wrong while it was written */
    char why[320];
};

/* From a plan's document. What is wrong with it is told by rv_register(). Errors: RV_EPARSE, RV_EINVAL,
 * RV_ETOOBIG, RV_ENOMEM. */
int rv__workflow_read(struct rv__str json, rv_workflow **ret, rv_error *err);
/* A library of functions, without a workflow; rv_register() makes them known. NULL: no memory. */
rv_workflow *rv__workflow_library(void);
/* The function `name` is some worker's. */
void rv__workflow_offered(rv_workflow *workflow, struct rv__str name);
/* The function `name` is in this module, and runs in a host. `module` is copied. */
void rv__workflow_hosted(rv_workflow *workflow, struct rv__str name, const char *module);

#endif
