/* branch.c: a branch in a plan: a condition and two bodies, then and else. */
#include "plan/kinds.h"

struct rv__draft_node *rv__draft_branch(struct rv__draft_body *in, struct rv__expr condition,
                                        const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_BRANCH, opts);
    node->branch.condition = rv__draft_expr(in->draft, condition);
    return node;
}

static void read_branch(struct rv__draft_node *node, const struct rv__subject *s)
{
    node->branch.condition = rv__subject_expr(s, KEY_IF);
    if (rv__subject_get(s, KEY_THEN) == NULL)
        rv__subject_complain(s, NULL, "a branch needs 'then'");
    else
        rv__subject_body(s, KEY_THEN, false, rv__draft_body(node, 0, NULL, false));
    if (rv__subject_get(s, KEY_ELSE) != NULL)
        rv__subject_body(s, KEY_ELSE, false, rv__draft_body(node, 1, NULL, false));
}

static int build_branch(struct rv__compiler *c, const struct rv__draft_node *draft,
                        struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = rv__make_bodies(c, node, 2);
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

static void write_branch(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_expr(w, "if", &node->branch.condition);
    rv__write_nodes(w, "then", &node->bodies[0]);
    if (node->bodies[1].count > 0)
        rv__write_nodes(w, "else", &node->bodies[1]);
}

static const struct rv__expr *branch_expr(const struct rv__node *node, enum rv__use use)
{
    return use == USE_IF ? &node->branch.condition : NULL;
}

const struct rv__kind rv__kind_branch = {
    .phrase = "a branch",
    .bodies = BODIES_NAMED,
    .most_bodies = 2,
    .all_bodies = true, /* then and else */
    .expr = branch_expr,
    .read = read_branch,
    .build = build_branch,
    .write = write_branch,
};
