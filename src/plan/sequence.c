/* sequence.c: a handler that is a list of nodes. In JSON it is the array of these. */
#include "plan/kinds.h"

static int build_sequence(struct rv__compiler *c, const struct rv__draft_node *draft,
                          struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    int rc = rv__make_bodies(c, node, 1);
    if (rc < 0)
        return rc;
    if (draft->bodies->count == 0)
        rv__compiler_refuse(c, RV__AT(node), "a handler that is a list needs at least one node");
    return rv__build_body(c, draft->bodies, &node->bodies[0], depth + 1, within);
}

const struct rv__kind rv__kind_sequence = {
    .phrase = "a sequence",
    .bodies = BODIES_ITSELF,
    .most_bodies = 1,
    .build = build_sequence,
};
