/* compile.h: what the files that compile a draft share. Inside plan/ only. */
#ifndef RV_PLAN_COMPILE_H
#define RV_PLAN_COMPILE_H

#include "plan/alias.h"
#include "plan/draft.h"

struct rv__compiler {
    struct rv__plan *plan; /* being made; what comes into it lives in its arena */
    struct rv__resolver *resolver;
    struct rv__violations *bad;
    size_t found; /* violations of this compilation */
    rv_error *err;
    uint32_t reserved; /* nodes that have got their place, of RV__PLAN_MAX_NODES */
    uint32_t needs;    /* taken over, of as many; and */
    uint32_t children; /* of concurrents and stages: empty ones are no nodes, and yet cost memory */
    uint32_t dependencies; /* of states, of RV__PLAN_MAX_DEPENDENCIES */
    size_t bytes;          /* of text taken over, of RV__PLAN_MAX_BYTES */
    struct rv__node **nodes;
    uint32_t count, cap;
    struct rv__aliases aliases;
    struct rv__buf text; /* paths, then definitions: for one thing at a time */
};

/* Where something is wrong: at a node; or in a body as a whole, which in the outermost is told by
 * the key concerned. */
struct rv__place {
    const struct rv__node *node;
    const struct rv__body *body;
    const char *key;
};
#define RV__AT(n)       ((struct rv__place){ .node = (n) })
#define RV__IN(b, what) ((struct rv__place){ .body = (b), .key = (what) })

void rv__compiler_refuse(struct rv__compiler *c, struct rv__place place, const char *fmt, ...)
    RV_PRINTF(3, 4);

/* Take text over into the plan. RV_ENOMEM, RV_ETOOBIG. "none" stays "none". */
int rv__compiler_text(struct rv__compiler *c, struct rv__str text, struct rv__str *ret);

/* Take raw JSON over, without its white space. If it is not JSON, or too deep, that is refused as
 * "invalid WHAT: …" and *ret is none. RV_ENOMEM, RV_ETOOBIG. */
int rv__compiler_json(struct rv__compiler *c, struct rv__place place, const char *what,
                      struct rv__str json, struct rv__str *ret);

/* The same for an expression. {"fn": "name"} is a function. */
int rv__compiler_expr(struct rv__compiler *c, struct rv__place place, const char *what,
                      const struct rv__expr *expr, struct rv__expr *ret);

/* The workflows we are inside of, innermost first: none of them may come again below. */
struct rv__frame {
    const struct rv__draft_workflow *workflow;
    const struct rv__frame *up;
};

/* What the draft itself complains about. */
void rv__compiler_tell(struct rv__compiler *c, const struct rv__complaints *complaints,
                       struct rv__place place);

/* The nodes of a body, and all below them. `body` has its owner, alias and wrap; `depth` is its own,
 * the outermost's is 1; draft NULL: it is empty. RV_ENOMEM, RV_ETOOBIG, what a resolver said. */
int rv__build_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within);

/* For the kinds: `count` bodies in the node, each in its place; into one of them (RV_ENOMEM, RV_ETOOBIG);
 * and the one body of a loop or a forEach, which is under `key`. */
int rv__make_bodies(struct rv__compiler *c, struct rv__node *node, uint32_t count);
int rv__enter_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within);
int rv__build_run(struct rv__compiler *c, const struct rv__draft_node *draft, struct rv__node *node,
                  const char *key, unsigned depth, const struct rv__frame *within);
/* The workflow that *is* the body, or NULL: its nodes are then the body's own. */
const struct rv__draft_node *rv__only_workflow(const struct rv__draft_body *draft);

/* Copy a list of aliases into the plan. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__take_needs(struct rv__compiler *c, const struct rv__str *from, uint32_t count,
                   struct rv__str **ret, uint32_t *ret_count);

/* A handler (NULL: there is none) of a step, or (step NULL) of the workflow whose body is given. `depth`: of
 * the body that the step is in, or of that of the workflow. */
int rv__build_handler(struct rv__compiler *c, const struct rv__draft_node *draft,
                      enum rv__handler which, struct rv__node *step,
                      const struct rv__body *workflow, unsigned depth,
                      const struct rv__frame *within, struct rv__node **ret);

/* A workflow into its body; and the one that a node, `draft`, names or holds. */
int rv__build_workflow(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__expr *input, struct rv__body *body, unsigned depth,
                       const struct rv__frame *up);
int rv__build_nested(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__body *body, unsigned depth, const struct rv__frame *within);

/* What a manifest says of itself, into the wrap of its body. RV_ENOMEM, RV_ETOOBIG. */
int rv__build_manifest(struct rv__compiler *c, const struct rv__draft_workflow *draft,
                       const struct rv__body *body, struct rv__wrap *wrap);

/* The definition's text, in c->text. RV_ETOOBIG where it is longer than a plan may be. */
int rv__compiler_write(struct rv__compiler *c, const struct rv__body *body, bool shallow);

/* Make the nodes of a body, each with its alias and place; not yet with an id. */
int rv__name_nodes(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body);

/* The aliases of a concurrent's children or a stage's states, before anything in them: a path needs those above. */
int rv__name_children(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node);

int rv__compiler_reserve(struct rv__compiler *c, uint32_t nodes); /* RV_ETOOBIG */
uint32_t rv__loops_around(const struct rv__body *body);           /* of the nodes in it */

/* How it is to be tried, of a step or a chat: taken over and checked. Errors: RV_ENOMEM, RV_ETOOBIG. */
int rv__check_config(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__node *node, struct rv__step_config *config);

/* A step, and a handler, which is a step of its own: everything that is not structure. */
int rv__check_step(struct rv__compiler *c, const struct rv__draft_node *draft,
                   struct rv__node *node);

/* Refuse what only a step can have. `what` is it that has it: "a forEach". */
void rv__check_no_step_config(struct rv__compiler *c, struct rv__place place,
                              const struct rv__draft_node *draft, const char *what);

#endif
