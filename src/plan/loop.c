/* loop.c: a loop in a plan: a body that is repeated while or until a condition holds. */
#include "plan/kinds.h"

#include <inttypes.h>

struct rv__draft_node *rv__draft_loop(struct rv__draft_body *in, struct rv__expr while_,
                                      struct rv__expr until, int64_t max_iterations,
                                      enum rv__keep keep, const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_LOOP, opts);
    node->loop.while_ = rv__draft_expr(in->draft, while_);
    node->loop.until = rv__draft_expr(in->draft, until);
    node->loop.max_iterations = max_iterations;
    node->given |= max_iterations != 0 ? GIVEN_MAX_ITERATIONS : 0;
    node->loop.keep = keep;
    return node;
}

static void read_loop(struct rv__draft_node *node, const struct rv__subject *s)
{
    static const char *const keeps[] = { "all", "last", "none" };
    node->loop.while_ = rv__subject_expr(s, KEY_WHILE);
    node->loop.until = rv__subject_expr(s, KEY_UNTIL);
    if (rv__subject_int(s, KEY_MAX_ITERATIONS, INT64_MAX, &node->loop.max_iterations))
        node->given |= GIVEN_MAX_ITERATIONS;
    int keep = rv__subject_word(s, KEY_KEEP, keeps, 3, "all, last or none");
    node->loop.keep = keep < 0 ? KEEP_ALL : (enum rv__keep)keep;
    if (rv__subject_get(s, KEY_BODY) != NULL)
        rv__subject_body(s, KEY_BODY, true, rv__draft_body(node, 0, NULL, false));
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
    return rv__build_run(c, draft, node, "body", depth, within);
}

static void write_loop(struct rv__writer *w, const struct rv__node *node)
{
    static const char *const keeps[] = { NULL, "last", "none" };
    rv__write_run(w, "body", &node->bodies[0]);
    rv__write_expr(w, "while", &node->loop.while_);
    rv__write_expr(w, "until", &node->loop.until);
    rv__write_int(w, "maxIterations", node->loop.max_iterations, RV__DEFAULT_MAX_ITERATIONS);
    rv__write_text(w, "keep", rv__str(keeps[node->loop.keep]));
}

static const struct rv__expr *loop_expr(const struct rv__node *node, enum rv__use use)
{
    return use == USE_WHILE ? &node->loop.while_ : use == USE_UNTIL ? &node->loop.until : NULL;
}

const struct rv__kind rv__kind_loop = {
    .phrase = "a loop",
    .bodies = BODIES_ITERATED,
    .most_bodies = 1,
    .body_key = "body",
    .expr = loop_expr,
    .read = read_loop,
    .build = build_loop,
    .write = write_loop,
};
