/* plan_test.h: what the tests of src/plan share: compiling a text, and what was found wrong. */
#ifndef RV_TESTS_UNIT_PLAN_TEST_H
#define RV_TESTS_UNIT_PLAN_TEST_H

#include "unit/test.h"

#include "base/arena.h"
#include "plan/plan.h"

/* A text of a plan that is compiled, with what was found. fixture_done() after each use. */
struct fixture {
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__draft *draft;
    struct rv__plan *plan; /* NULL if it was refused */
    rv_error err;
    int rc;
};

static inline void fixture_compile(struct fixture *fx, const char *json,
                                   struct rv__resolver *resolver)
{
    memset(fx, 0, sizeof *fx);
    rv__arena_init(&fx->arena, SIZE_MAX);
    rv__violations_init(&fx->bad, &fx->arena);
    fx->rc = rv__draft_read(rv__str(json), &fx->draft, &fx->err);
    if (fx->rc == RV_OK)
        fx->rc = rv__plan_compile(fx->draft, resolver, &fx->bad, &fx->plan, &fx->err);
}

static inline void fixture_done(struct fixture *fx)
{
    rv__plan_free(fx->plan);
    rv__draft_free(fx->draft);
    rv__arena_done(&fx->arena);
}

/* All violations as text, "path: message" a line. */
static inline void violations_text(const struct rv__violations *bad, struct rv__buf *out)
{
    for (size_t i = 0; i < bad->count; i++)
        rv__buf_fmt(out, "%.*s: %.*s\n", RV__ARG(bad->items[i].path),
                    RV__ARG(bad->items[i].message));
}

/* What is wrong with the text is exactly this: "path: message", a line for each. */
static inline void expect_violations(const char *says, const char *json, const char *expected)
{
    struct fixture fx;
    struct rv__buf text;
    rv__buf_init(&text, 1 << 20);
    fixture_compile(&fx, json, NULL);
    violations_text(&fx.bad, &text);
    if (fx.rc != (*expected ? RV_EINVAL : RV_OK) || strcmp(text.text ? text.text : "", expected))
        fail_msg("%s: rc %d (%s), got\n%s", says, fx.rc, fx.rc < 0 ? fx.err.message : "",
                 text.text ? text.text : "");
    rv__buf_done(&text);
    fixture_done(&fx);
}

/* The plan of a text that is in order. */
static inline struct rv__plan *must_read(const char *json)
{
    struct rv__plan *plan = NULL;
    rv_error err;
    if (rv__plan_read(rv__str(json), &plan, &err) < 0)
        fail_msg("%s", err.message);
    return plan;
}

/* The only child of the only node and so on, by a path of "body.node" indices. */
static inline const struct rv__node *node_by_path(const struct rv__plan *plan, const char *path)
{
    struct rv__buf buf;
    const struct rv__node *found = NULL;
    rv__buf_init(&buf, 1 << 20);
    for (uint32_t i = 0; i < plan->node_count && found == NULL; i++) {
        rv__buf_reset(&buf);
        rv__node_path(plan->nodes[i], NULL, &buf);
        if (rv__str_is(rv__buf_view(&buf), path))
            found = plan->nodes[i];
    }
    rv__buf_done(&buf);
    if (found == NULL)
        fail_msg("there is no node %s", path);
    return found;
}

#endif
