/* foreach.c: a forEach in a plan: runs a body for each item of a list. */
#include "plan/kinds.h"

#include <inttypes.h>

struct rv__draft_node *rv__draft_foreach(struct rv__draft_body *in, struct rv__expr items,
                                         struct rv__expr label, bool parallel, int64_t concurrency,
                                         bool collect, const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_FOREACH, opts);
    node->foreach.items = rv__draft_expr(in->draft, items);
    node->foreach.label = rv__draft_expr(in->draft, label);
    node->foreach.parallel = parallel;
    node->foreach.concurrency = concurrency;
    node->foreach.collect = collect;
    node->given |= concurrency != 0 ? GIVEN_CONCURRENCY : 0;
    return node;
}

static void read_foreach(struct rv__draft_node *node, const struct rv__subject *s)
{
    static const char *const on_failures[] = { "fail", "collect" };
    node->foreach.items = rv__subject_expr(s, KEY_ITEMS);
    node->foreach.label = rv__subject_expr(s, KEY_LABEL);
    node->foreach.collect = rv__subject_word(s, KEY_ON_FAILURE, on_failures, 2,
                                             "fail or collect") == 1;
    node->foreach.parallel = rv__subject_bool(s, KEY_PARALLEL);
    if (rv__subject_int(s, KEY_CONCURRENCY, INT64_MAX, &node->foreach.concurrency))
        node->given |= GIVEN_CONCURRENCY;
    if (rv__subject_get(s, KEY_RUN) != NULL)
        rv__subject_body(s, KEY_RUN, true, rv__draft_body(node, 0, NULL, false));
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

    rc = rv__compiler_expr(c, RV__AT(node), "label", &draft->foreach.label, &node->foreach.label);
    if (rc < 0)
        return rc;
    if (node->foreach.label.kind == EXPR_FUNCTION)
        rv__compiler_refuse(c, RV__AT(node), "a label is a text with ${ … }, not a function");

    node->foreach.parallel = draft->foreach.parallel;
    node->foreach.concurrency = draft->foreach.concurrency;
    node->foreach.collect = draft->foreach.collect;
    if (draft->given & GIVEN_CONCURRENCY) {
        if (node->foreach.concurrency < 1)
            rv__compiler_refuse(c, RV__AT(node),
                                "invalid concurrency %" PRId64 ": must be at least 1",
                                node->foreach.concurrency);
        if (!node->foreach.parallel)
            rv__compiler_refuse(c, RV__AT(node),
                                "'concurrency' is only for a forEach that is 'parallel'");
    }
    return rv__build_run(c, draft, node, "run", depth, within);
}

static void write_foreach(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_expr(w, "items", &node->foreach.items);
    if (node->foreach.label.kind != EXPR_NONE)
        rv__write_expr(w, "label", &node->foreach.label);
    rv__write_run(w, "run", &node->bodies[0]);
    if (node->foreach.parallel)
        rv__write_raw(w, "parallel", rv__str("true"));
    rv__write_int(w, "concurrency", node->foreach.concurrency, 0);
    if (node->foreach.collect)
        rv__write_text(w, "onFailure", rv__str("collect"));
}

static const struct rv__expr *foreach_expr(const struct rv__node *node, enum rv__use use)
{
    if (use == USE_LABEL && node->foreach.label.kind != EXPR_NONE)
        return &node->foreach.label;
    return use == USE_ITEMS ? &node->foreach.items : NULL;
}

const struct rv__kind rv__kind_foreach = {
    .phrase = "a forEach",
    .bodies = BODIES_ITERATED,
    .most_bodies = 1,
    .body_key = "run",
    .expr = foreach_expr,
    .read = read_foreach,
    .build = build_foreach,
    .write = write_foreach,
};
