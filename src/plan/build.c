/* build.c: the walk down the draft: a node for each, and what is in it.
 *
 * It recurses, and RV__PLAN_MAX_DEPTH bounds it: a body deeper than that is refused before it is
 * entered. RV__PLAN_MAX_NODES and RV__PLAN_MAX_BYTES are held while we go, so that workflows which
 * nest each other ten times each cannot make us build what nobody could run. */
#include "plan/compile.h"

#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/kinds.h"

void rv__compiler_tell(struct rv__compiler *c, const struct rv__complaints *complaints,
                       struct rv__place place)
{
    for (const struct rv__complaint *one = complaints->first; one != NULL; one = one->next) {
        if (one->key != NULL)
            place.key = one->key;
        rv__compiler_refuse(c, place, "%.*s", RV__ARG(one->text));
    }
}

int rv__compiler_reserve(struct rv__compiler *c, uint32_t nodes)
{
    if (nodes > RV__PLAN_MAX_NODES - c->reserved)
        return rv__fail(c->err, RV_ETOOBIG,
                        "the plan has more than %d nodes, nested workflows and handlers included",
                        RV__PLAN_MAX_NODES);
    c->reserved += nodes;
    return RV_OK;
}

/* It gets the next id. Its place was reserved. */
static int add_node(struct rv__compiler *c, struct rv__node *node)
{
    if (c->count == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 16;
        struct rv__node **nodes = rv__realloc(c->nodes, cap * sizeof(struct rv__node *));
        if (nodes == NULL)
            return rv__nomem(c->err);
        c->nodes = nodes;
        c->cap = cap;
    }
    node->id = c->count;
    c->nodes[c->count++] = node;
    return RV_OK;
}

static bool is_iterated(const struct rv__node *node)
{
    return node->kind == NODE_LOOP || node->kind == NODE_FOREACH;
}

uint32_t rv__loops_around(const struct rv__body *body)
{
    if (body->owner == NULL)
        return 0;
    return body->owner->loops_around + is_iterated(body->owner);
}

int rv__build_handler(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *step, const struct rv__body *workflow, struct rv__node **ret)
{
    assert((step != NULL) != (workflow != NULL));
    int rc = rv__compiler_reserve(c, 1);
    if (rc < 0)
        return rc;
    struct rv__node *node = rv__arena_zalloc(&c->plan->arena, 1, sizeof *node);
    if (node == NULL)
        return rv__nomem(c->err);
    node->alias = (struct rv__str)RV__STR("onError");
    node->kind = NODE_STEP;
    node->is_handler = true;
    node->handler_of = step;
    node->handler_in = workflow;
    node->loops_around = step != NULL ? step->loops_around : rv__loops_around(workflow);
    rc = add_node(c, node);
    if (rc < 0)
        return rc;

    rv__compiler_tell(c, &draft->complaints, RV__AT(node));
    *ret = node;
    return draft->broken ? RV_OK : rv__check_step(c, draft, node);
}

/* ------------------------------------------------------------------------------- bodies --- */

/* The workflow that *is* the body, or NULL: its nodes are then the body's own. */
static const struct rv__draft_node *only_workflow(const struct rv__draft_body *draft)
{
    bool is = draft->bare && draft->count == 1 && draft->first->kind == NODE_WORKFLOW &&
              !draft->first->broken;
    return is ? draft->first : NULL;
}

/* Errors: RV_ENOMEM, RV_ETOOBIG. */
static int enter_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                      struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *workflow = draft != NULL ? only_workflow(draft) : NULL;
    if (draft != NULL && draft->bare && draft->count > 1)
        rv__compiler_refuse(c, RV__IN(body, NULL),
                            "it has to be one step or one workflow, and there are %" PRIu32,
                            draft->count);
    if (workflow == NULL)
        return rv__build_body(c, draft, body, depth, within);

    /* There is no node of its own that could be skipped, or described. */
    struct rv__place place = RV__IN(body, NULL);
    rv__compiler_tell(c, &workflow->complaints, place);
    if (workflow->when.kind != EXPR_NONE)
        rv__compiler_refuse(c, place,
                            "a workflow in this place takes no 'when': put it in a list of nodes");
    if (workflow->description.kind != EXPR_NONE)
        rv__compiler_refuse(
            c, place, "a workflow in this place takes no 'description': put it in a list of nodes");
    rv__check_no_step_config(c, place, workflow, "a workflow");
    return rv__build_nested(c, workflow, body, depth, within);
}

/* `count` bodies in the node, each in its place. */
static int make_bodies(struct rv__compiler *c, struct rv__node *node, uint32_t count)
{
    node->bodies = rv__arena_zalloc(&c->plan->arena, count, sizeof *node->bodies);
    if (node->bodies == NULL)
        return rv__nomem(c->err);
    node->body_count = count;
    for (uint32_t i = 0; i < count; i++) {
        node->bodies[i].owner = node;
        node->bodies[i].index = i;
        node->bodies[i].alias = (struct rv__str)RV__STR("");
    }
    return RV_OK;
}

static int build_branch(struct rv__compiler *c, const struct rv__draft_node *draft,
                        struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = make_bodies(c, node, 2);
    if (rc < 0)
        return rc;
    node->bodies[0].alias = (struct rv__str)RV__STR("then");
    node->bodies[1].alias = (struct rv__str)RV__STR("else");

    if (draft->branch.condition.kind == EXPR_NONE)
        rv__compiler_refuse(c, RV__AT(node), "a branch needs 'if'");
    rc = rv__compiler_expr(c, RV__AT(node), "if", &draft->branch.condition,
                           &node->branch.condition);
    if (rc < 0)
        return rc;

    const struct rv__draft_body *then = draft->bodies;
    rc = rv__build_body(c, then, &node->bodies[0], depth + 1, within);
    if (rc < 0)
        return rc;
    return rv__build_body(c, then != NULL ? then->next : NULL, &node->bodies[1], depth + 1, within);
}

/* The one body of a loop or a forEach. */
static int build_run(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__node *node, const char *key, unsigned depth,
                     const struct rv__frame *within)
{
    int rc = make_bodies(c, node, 1);
    if (rc < 0)
        return rc;
    if (draft->bodies == NULL || draft->bodies->count == 0)
        rv__compiler_refuse(c, RV__AT(node), "%s needs '%s' with at least one node in it",
                            rv__node_kind_phrase(node->kind), key);
    return enter_body(c, draft->bodies, &node->bodies[0], depth + 1, within);
}

static int build_loop(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    bool has_while = draft->loop.while_.kind != EXPR_NONE;
    bool has_until = draft->loop.until.kind != EXPR_NONE;
    if (has_while && has_until)
        rv__compiler_refuse(c, RV__AT(node), "a loop cannot have both 'while' and 'until'");
    if (!has_while && !has_until)
        rv__compiler_refuse(c, RV__AT(node), "a loop needs 'while' or 'until'");
    int rc = rv__compiler_expr(c, RV__AT(node), "while", &draft->loop.while_, &node->loop.while_);
    if (rc < 0)
        return rc;
    rc = rv__compiler_expr(c, RV__AT(node), "until", &draft->loop.until, &node->loop.until);
    if (rc < 0)
        return rc;

    node->loop.max_iterations = RV__DEFAULT_MAX_ITERATIONS;
    if (draft->given & GIVEN_MAX_ITERATIONS)
        node->loop.max_iterations = draft->loop.max_iterations;
    if (node->loop.max_iterations < 1)
        rv__compiler_refuse(c, RV__AT(node),
                            "invalid maxIterations %" PRId64 ": must be at least 1",
                            node->loop.max_iterations);
    node->loop.keep = draft->loop.keep;
    if ((unsigned)node->loop.keep > KEEP_NONE)
        rv__compiler_refuse(c, RV__AT(node), "unknown keep %d: must be all, last or none",
                            (int)node->loop.keep);
    return build_run(c, draft, node, "body", depth, within);
}

static int build_foreach(struct rv__compiler *c, const struct rv__draft_node *draft,
                         struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    if (draft->foreach.items.kind == EXPR_NONE)
        rv__compiler_refuse(c, RV__AT(node), "a forEach needs 'items'");
    int rc = rv__compiler_expr(c, RV__AT(node), "items", &draft->foreach.items,
                               &node->foreach.items);
    if (rc < 0)
        return rc;

    node->foreach.parallel = draft->foreach.parallel;
    node->foreach.concurrency = draft->foreach.concurrency;
    if (draft->given & GIVEN_CONCURRENCY) {
        if (node->foreach.concurrency < 1)
            rv__compiler_refuse(c, RV__AT(node),
                                "invalid concurrency %" PRId64 ": must be at least 1",
                                node->foreach.concurrency);
        if (!node->foreach.parallel)
            rv__compiler_refuse(c, RV__AT(node),
                                "'concurrency' is only for a forEach that is 'parallel'");
    }
    return build_run(c, draft, node, "run", depth, within);
}

static int build_child(struct rv__compiler *c, const struct rv__draft_body *draft,
                       struct rv__body *child, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *only = draft->bare && draft->count == 1 ? draft->first : NULL;
    child->bare = only != NULL && only_workflow(draft) == NULL;
    if (draft->count == 0)
        rv__compiler_refuse(c, RV__IN(child, NULL), "it has no nodes");
    if (only != NULL && child->bare && !only->broken && only->kind != NODE_STEP)
        rv__compiler_refuse(c, RV__IN(child, NULL),
                            "a child is a step, a workflow or 'nodes': put %s in 'nodes'",
                            rv__node_kind_phrase(only->kind));
    return enter_body(c, draft, child, depth, within);
}

static int build_concurrent(struct rv__compiler *c, const struct rv__draft_node *draft,
                            struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc;
    if (draft->body_count > RV__PLAN_MAX_NODES - c->children)
        return rv__fail(c->err, RV_ETOOBIG,
                        "the plan's concurrents have more than %d children, nested workflows "
                        "included",
                        RV__PLAN_MAX_NODES);
    c->children += draft->body_count;
    rc = make_bodies(c, node, draft->body_count);
    if (rc < 0)
        return rc;
    node->concurrent.detached = draft->concurrent.detached;
    node->concurrent.collect = draft->concurrent.collect;
    node->concurrent.join = draft->concurrent.join;
    if (draft->body_count == 0)
        rv__compiler_refuse(c, RV__AT(node), "a concurrent needs at least one child");
    if (draft->given & (GIVEN_JOIN | GIVEN_JOIN_ALL)) {
        int64_t join = node->concurrent.join;
        if (draft->given & GIVEN_JOIN && (join < 1 || join > draft->body_count))
            rv__compiler_refuse(c, RV__AT(node),
                                "invalid join %" PRId64
                                ": must be from 1 to the number of children, %" PRIu32,
                                join, draft->body_count);
        if (node->concurrent.detached)
            rv__compiler_refuse(c, RV__AT(node),
                                "'join' cannot be used with 'continueOn' detached");
    }
    rc = rv__name_children(c, draft, node);
    if (rc < 0)
        return rc;
    const struct rv__draft_body *from = draft->bodies;
    for (uint32_t i = 0; i < node->body_count; i++, from = from->next) {
        rc = build_child(c, from, &node->bodies[i], depth + 1, within);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

/* ----------------------------------------------------------------------------- the walk --- */

static int build_node(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = add_node(c, node);
    if (rc < 0)
        return rc;
    rv__compiler_tell(c, &draft->complaints, RV__AT(node));
    if (draft->broken)
        return RV_OK;

    rc = rv__compiler_expr(c, RV__AT(node), "when", &draft->when, &node->when);
    if (rc < 0)
        return rc;
    rc = rv__compiler_expr(c, RV__AT(node), "description", &draft->description, &node->description);
    if (rc < 0)
        return rc;
    if (draft->kind != NODE_STEP)
        rv__check_no_step_config(c, RV__AT(node), draft, rv__node_kind_phrase(draft->kind));

    switch (draft->kind) {
    case NODE_STEP:
        rc = rv__check_step(c, draft, node);
        if (rc == RV_OK && draft->on_error != NULL)
            rc = rv__build_handler(c, draft->on_error, node, NULL, &node->on_error);
        return rc;
    case NODE_WORKFLOW:
        rc = make_bodies(c, node, 1);
        if (rc < 0)
            return rc;
        return rv__build_nested(c, draft, &node->bodies[0], depth + 1, within);
    case NODE_BRANCH: return build_branch(c, draft, node, depth, within);
    case NODE_LOOP: return build_loop(c, draft, node, depth, within);
    case NODE_FOREACH: return build_foreach(c, draft, node, depth, within);
    case NODE_CONCURRENT: return build_concurrent(c, draft, node, depth, within);
    case NODE_KINDS: break;
    }
    return RV_OK;
}

int rv__build_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    if (draft == NULL || draft->count == 0)
        return RV_OK;
    if (depth > RV__PLAN_MAX_DEPTH)
        return rv__fail(c->err, RV_ETOOBIG,
                        "the plan is nested deeper than %d levels, nested workflows included",
                        RV__PLAN_MAX_DEPTH);
    int rc = rv__name_nodes(c, draft, body);
    if (rc < 0)
        return rc;
    const struct rv__draft_node *from = draft->first;
    for (uint32_t i = 0; i < body->count; i++, from = from->next) {
        rc = build_node(c, from, body->nodes[i], depth, within);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}
