/* concurrent.c: a concurrent in a plan: parallel children, each a step, a workflow or a list of nodes. */
#include "plan/kinds.h"

#include <inttypes.h>

#include "base/error.h"

struct rv__draft_node *rv__draft_concurrent(struct rv__draft_body *in, bool detached, bool collect,
                                            int64_t join, const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_CONCURRENT, opts);
    node->concurrent.detached = detached;
    node->concurrent.collect = collect;
    node->concurrent.join = join;
    node->given |= join != RV__JOIN_ALL ? GIVEN_JOIN : 0;
    return node;
}

/* A child of a concurrent: {"alias", "nodes": [..]}, or a step or a workflow with its alias. */
static void read_child(struct rv__draft_node *node, const struct rv__object *object)
{
    struct rv__subject s = rv__subject_of(node, object);
    struct rv__draft_body *body = rv__draft_body(node, node->body_count, NULL, false);
    if (rv__subject_get(&s, KEY_NODES) == NULL) {
        body->bare = true;
        rv__draft_node_read(body, object);
        return;
    }
    body->alias = rv__subject_text(&s, KEY_ALIAS);
    rv__subject_check_keys(&s, SORT_CHILD, "a child with 'nodes'");
    rv__subject_body(&s, KEY_NODES, false, body);
}

static void read_concurrent(struct rv__draft_node *node, const struct rv__subject *s)
{
    static const char *const continue_ons[] = { "all", "detached" };
    static const char *const on_failures[] = { "fail", "collect" };
    static const char *const joins[] = { "all", "first" };
    const struct rv__member *join = rv__subject_get(s, KEY_JOIN),
                            *steps = rv__subject_get(s, KEY_STEPS);

    node->concurrent.detached = rv__subject_word(s, KEY_CONTINUE_ON, continue_ons, 2,
                                                 "all or detached") == 1;
    node->concurrent.collect = rv__subject_word(s, KEY_ON_FAILURE, on_failures, 2,
                                                "fail or collect") == 1;
    if (join != NULL && *join->value.at == '"') {
        int word = rv__subject_word(s, KEY_JOIN, joins, 2, "all, first or a number");
        node->given |= word == 0 ? GIVEN_JOIN_ALL : word == 1 ? GIVEN_JOIN : 0;
        node->concurrent.join = word == 1 ? 1 : RV__JOIN_ALL;
    } else if (rv__subject_int(s, KEY_JOIN, INT64_MAX, &node->concurrent.join)) {
        node->given |= GIVEN_JOIN;
    }
    if (steps == NULL)
        return;
    if (*steps->value.at != '[')
        rv__subject_complain(s, NULL, "invalid steps %s: must be a list of children",
                             rv__show(steps->value).text);
    else
        for (const struct rv__object *object = steps->first; object != NULL; object = object->next)
            read_child(node, object);
}

static int build_child(struct rv__compiler *c, const struct rv__draft_body *draft,
                       struct rv__body *child, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *only = draft->bare && draft->count == 1 ? draft->first : NULL;
    const struct rv__draft_node *workflow = rv__only_workflow(draft);
    /* A workflow that can be skipped, or is described, has a node of its own. */
    bool own_node = workflow != NULL &&
                    (workflow->when.kind != EXPR_NONE || workflow->description.kind != EXPR_NONE);
    child->bare = only != NULL && (workflow == NULL || own_node);
    if (draft->count == 0)
        rv__compiler_refuse(c, RV__IN(child, NULL), "it has no nodes");
    if (only != NULL && child->bare && !own_node && !only->broken && only->kind != NODE_STEP)
        rv__compiler_refuse(c, RV__IN(child, NULL),
                            "a child is a step, a workflow or 'nodes': put %s in 'nodes'",
                            rv__node_kind_phrase(only->kind));
    return own_node ? rv__build_body(c, draft, child, depth, within)
                    : rv__enter_body(c, draft, child, depth, within);
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
    rc = rv__make_bodies(c, node, draft->body_count);
    if (rc < 0)
        return rc;
    node->concurrent.detached = draft->concurrent.detached;
    node->concurrent.collect = draft->concurrent.collect;
    node->concurrent.join = draft->concurrent.join;
    if (node->concurrent.detached && rv__node_handler(node) != NULL)
        rv__compiler_refuse(c, RV__AT(node),
                            "nothing in a handler can be detached: the run ends after it");
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

static void write_concurrent(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_key(w, "steps");
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__body *child = &node->bodies[i];
        rv__buf_char(w->out, i == 0 ? '[' : ',');
        if (child->bare) {
            rv__write_node(w, child->nodes[0]);
            continue;
        }
        rv__buf_char(w->out, '{');
        if (child->wrap != NULL)
            rv__write_text(w, "type", rv__str(rv__node_kind_name(NODE_WORKFLOW)));
        rv__write_text(w, "alias", child->alias);
        if (child->wrap != NULL)
            rv__write_nested(w, child);
        else
            rv__write_nodes(w, "nodes", child);
        rv__buf_char(w->out, '}');
    }
    rv__buf_char(w->out, ']');

    if (node->concurrent.detached)
        rv__write_text(w, "continueOn", rv__str("detached"));
    if (node->concurrent.collect)
        rv__write_text(w, "onFailure", rv__str("collect"));
    if (node->concurrent.join == 1)
        rv__write_text(w, "join", rv__str("first"));
    else
        rv__write_int(w, "join", node->concurrent.join, RV__JOIN_ALL);
}

const struct rv__kind rv__kind_concurrent = {
    .phrase = "a concurrent",
    .bodies = BODIES_NAMED,
    .most_bodies = UINT32_MAX, /* in order */
    .read = read_concurrent,
    .build = build_concurrent,
    .write = write_concurrent,
};
