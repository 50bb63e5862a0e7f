/* compile.h: what the files that compile a draft share. Inside plan/ only. */
#ifndef RV_PLAN_COMPILE_H
#define RV_PLAN_COMPILE_H

#include "plan/alias.h"
#include "plan/draft.h"

struct rv__compiler {
    struct rv__plan *plan; /* being made; its arena owns all its parts */
    struct rv__resolver *resolver;
    struct rv__violations *bad;
    size_t found; /* violations of this compilation */
    rv_error *err;
    uint32_t reserved;     /* nodes reserved so far, of RV__PLAN_MAX_NODES */
    uint32_t needs;        /* copied so far, with the same limit; and */
    uint32_t children;     /* of concurrents and stages: empty ones are not nodes, but use memory */
    uint32_t dependencies; /* of states; limit RV__PLAN_MAX_DEPENDENCIES */
    size_t bytes;          /* of copied text; limit RV__PLAN_MAX_BYTES */
    struct rv__node **nodes;
    uint32_t count, cap;
    struct rv__aliases aliases;
    struct rv__buf text; /* a scratch buffer: paths, then definitions */
};

/* The place of a violation: a node; or a body as a whole, which for the outermost is named by the key. */
struct rv__place {
    const struct rv__node *node;
    const struct rv__body *body;
    const char *key;
};
#define RV__AT(n)       ((struct rv__place){ .node = (n) })
#define RV__IN(b, what) ((struct rv__place){ .body = (b), .key = (what) })

void rv__compiler_refuse(struct rv__compiler *c, struct rv__place place, const char *fmt, ...)
    RV_PRINTF(3, 4);

/* Copy text into the plan. RV_ENOMEM, RV_ETOOBIG. "none" stays "none". */
int rv__compiler_text(struct rv__compiler *c, struct rv__str text, struct rv__str *ret);

/* Copy raw JSON, without white space. If it is not JSON, or too deep, this is a violation "invalid WHAT: …", and
 * *ret is none. RV_ENOMEM, RV_ETOOBIG. */
int rv__compiler_json(struct rv__compiler *c, struct rv__place place, const char *what,
                      struct rv__str json, struct rv__str *ret);

/* The same for an expression. {"fn": "name"} is a function. */
int rv__compiler_expr(struct rv__compiler *c, struct rv__place place, const char *what,
                      const struct rv__expr *expr, struct rv__expr *ret);

/* The enclosing workflows, innermost first: none of them may be nested again below. */
struct rv__frame {
    const struct rv__draft_workflow *workflow;
    const struct rv__frame *up;
};

/* Report the complaints of the draft. */
void rv__compiler_tell(struct rv__compiler *c, const struct rv__complaints *complaints,
                       struct rv__place place);

/* Build the nodes of a body and everything below. `body` has its owner, alias and wrap; `depth` is its own
 * (outermost: 1); draft NULL: empty. RV_ENOMEM, RV_ETOOBIG, errors of the resolver. */
int rv__build_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within);

/* For the kinds. _make_bodies: allocate `count` bodies of a node; _enter_body: build one of them (RV_ENOMEM,
 * RV_ETOOBIG); _build_run: build the one body of a loop or a forEach, which is under `key`. */
int rv__make_bodies(struct rv__compiler *c, struct rv__node *node, uint32_t count);
int rv__enter_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within);
int rv__build_run(struct rv__compiler *c, const struct rv__draft_node *draft, struct rv__node *node,
                  const char *key, unsigned depth, const struct rv__frame *within);
/* The workflow node that *is* the body, or NULL: then the body has its own nodes. */
const struct rv__draft_node *rv__only_workflow(const struct rv__draft_body *draft);

/* Copy a list of aliases into the plan. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__take_needs(struct rv__compiler *c, const struct rv__str *from, uint32_t count,
                   struct rv__str **ret, uint32_t *ret_count);

/* Build a handler (draft NULL: none) of a step, or (step NULL) of the workflow whose body is given. `depth`: of the
 * body that the step is in, or of the workflow's body. */
int rv__build_handler(struct rv__compiler *c, const struct rv__draft_node *draft,
                      enum rv__handler which, struct rv__node *step,
                      const struct rv__body *workflow, unsigned depth,
                      const struct rv__frame *within, struct rv__node **ret);

/* Build a workflow in its body; _nested: the one that the node `draft` names or contains. */
int rv__build_workflow(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__expr *input, struct rv__body *body, unsigned depth,
                       const struct rv__frame *up);
int rv__build_nested(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__body *body, unsigned depth, const struct rv__frame *within);

/* Copy the members that only a manifest has into the wrap of its body. RV_ENOMEM, RV_ETOOBIG. */
int rv__build_manifest(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__body *body, struct rv__wrap *wrap);

/* Write the definition to c->text. RV_ETOOBIG: longer than a plan may be. */
int rv__compiler_write(struct rv__compiler *c, const struct rv__body *body, bool shallow);

/* Make the nodes of a body, each with alias and index, but without an id. */
int rv__name_nodes(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body);

/* Set the aliases of a concurrent's children or a stage's states, before their contents are built: paths need them. */
int rv__name_children(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node);

int rv__compiler_reserve(struct rv__compiler *c, uint32_t nodes); /* RV_ETOOBIG */
uint32_t rv__loops_around(const struct rv__body *body);           /* of the nodes in it */

/* Copy and check the configuration (retries, time-outs) of a step or a chat. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__check_config(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__node *node, struct rv__step_config *config);

/* Check everything of a step, or of a handler that is a step, except structure. */
int rv__check_step(struct rv__compiler *c, const struct rv__draft_node *draft,
                   struct rv__node *node);

/* Refuse options that only a step can have. `what` has them: "a forEach". */
void rv__check_no_step_config(struct rv__compiler *c, struct rv__place place,
                              const struct rv__draft_node *draft, const char *what);

#endif
