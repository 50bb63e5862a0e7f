/* build.c: builds the nodes of a plan from a draft.
 *
 * It recurses up to RV__PLAN_MAX_DEPTH: a deeper body is refused before it is entered. RV__PLAN_MAX_NODES and
 * RV__PLAN_MAX_BYTES are checked on the way, so that workflows which nest each other ten times each cannot make us
 * build an enormous plan. */
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

/* Give the node the next id, which was reserved. */
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

uint32_t rv__loops_around(const struct rv__body *body)
{
    if (body->owner == NULL)
        return 0;
    return body->owner->loops_around + rv__node_numbers(body->owner);
}

int rv__build_handler(struct rv__compiler *c, const struct rv__draft_node *draft,
                      enum rv__handler which, struct rv__node *step,
                      const struct rv__body *workflow, unsigned depth,
                      const struct rv__frame *within, struct rv__node **ret)
{
    static const struct rv__str aliases[] = {
        [HANDLER_ON_ERROR] = RV__STR("onError"), [HANDLER_FINALLY] = RV__STR("finally")
    };
    assert((step != NULL) != (workflow != NULL));
    if (draft == NULL)
        return RV_OK;
    int rc = rv__compiler_reserve(c, 1);
    if (rc < 0)
        return rc;
    struct rv__node *node = rv__arena_zalloc(&c->plan->arena, 1, sizeof *node);
    if (node == NULL)
        return rv__nomem(c->err);
    node->alias = aliases[which];
    node->kind = draft->kind;
    node->is_handler = true;
    node->handler_of = step;
    node->handler_in = workflow;
    node->loops_around = step != NULL ? step->loops_around : rv__loops_around(workflow);
    rc = add_node(c, node);
    if (rc < 0)
        return rc;

    rv__compiler_tell(c, &draft->complaints, RV__AT(node));
    *ret = node;
    return draft->broken ? RV_OK : rv__kind_of(node->kind)->build(c, draft, node, depth, within);
}

/* ------------------------------------------------------------------------------- bodies --- */

const struct rv__draft_node *rv__only_workflow(const struct rv__draft_body *draft)
{
    bool is = draft->bare && draft->count == 1 && draft->first->kind == NODE_WORKFLOW &&
              !draft->first->broken;
    return is ? draft->first : NULL;
}

int rv__enter_body(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *workflow = draft != NULL ? rv__only_workflow(draft) : NULL;
    if (draft != NULL && draft->bare && draft->count > 1)
        rv__compiler_refuse(c, RV__IN(body, NULL),
                            "it must be one step or one workflow; there are %" PRIu32,
                            draft->count);
    if (workflow == NULL)
        return rv__build_body(c, draft, body, depth, within);

    /* It has no node of its own that could be skipped or described. */
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

int rv__make_bodies(struct rv__compiler *c, struct rv__node *node, uint32_t count)
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

int rv__build_run(struct rv__compiler *c, const struct rv__draft_node *draft, struct rv__node *node,
                  const char *key, unsigned depth, const struct rv__frame *within)
{
    int rc = rv__make_bodies(c, node, 1);
    if (rc < 0)
        return rc;
    if (draft->bodies == NULL || draft->bodies->count == 0)
        rv__compiler_refuse(c, RV__AT(node), "%s needs '%s' with at least one node in it",
                            rv__node_kind_phrase(node->kind), key);
    return rv__enter_body(c, draft->bodies, &node->bodies[0], depth + 1, within);
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
    if (draft->kind != NODE_STEP && !rv__kind_of(draft->kind)->takes_config)
        rv__check_no_step_config(c, RV__AT(node), draft, rv__node_kind_phrase(draft->kind));

    return rv__kind_of(draft->kind)->build(c, draft, node, depth, within);
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
