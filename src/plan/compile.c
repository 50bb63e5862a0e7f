/* compile.c: turns a draft into a plan.
 *
 * One walk over the draft (build.c) makes the nodes in pre-order and reports errors. A nested workflow
 * (nested.c) is compiled at each place where it is used, so each has nodes of its own. A second walk over
 * the nodes checks their `needs`, since in a loop a needed node may come later. There is a plan only if
 * there was no error. */
#include "plan/compile.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

/* Can the node see a node of that alias? It sees those before it in its own sequence, those before its
 * supervisor in the enclosing one, and so on; in a loop all nodes of the body, of the previous iteration; and
 * a workflow's handler sees all nodes of the workflow. */
static bool is_visible(const struct rv__node *node, struct rv__str alias)
{
    while (node != NULL) {
        const struct rv__body *body = rv__node_around(node);
        const struct rv__node *found = rv__body_find(body, alias);
        if (node->handler_of != NULL)
            node = node->handler_of; /* a handler sees what its step sees */
        bool all = node->is_handler || (body->owner != NULL && body->owner->kind == NODE_LOOP);
        if (found != NULL && (found->index < node->index || all))
            return true;
        if (body->owner == NULL) /* the nesting workflow must have it: checked there */
            return body->wrap != NULL && rv__wrap_needs(body->wrap, alias);
        node = body->owner;
    }
    return false;
}

const struct rv__expr *rv__input_expr(const struct rv__node *node, const struct rv__body *body)
{
    const struct rv__expr *expr = NULL;
    if (body != NULL)
        expr = body->wrap != NULL ? &body->wrap->input : NULL; /* a tool has no input expression */
    else if (node->kind == NODE_STEP)
        expr = &node->step.input;
    return expr != NULL && expr->kind != EXPR_NONE ? expr : NULL;
}

const struct rv__wrap *rv__node_wrap(const struct rv__node *node)
{
    for (;;) { /* ends at the outermost body, which always has one */
        const struct rv__body *body = node->handler_in != NULL ? node->handler_in : node->body;
        if (node->handler_of == NULL && body->wrap != NULL)
            return body->wrap;
        node = node->handler_of != NULL ? node->handler_of : body->owner;
    }
}

bool rv__wrap_has_secret(const struct rv__wrap *wrap, struct rv__str name)
{
    for (uint32_t i = 0; i < wrap->secrets_count; i++)
        if (rv__str_eq(wrap->secrets[i], name))
            return true;
    return false;
}

bool rv__wrap_needs(const struct rv__wrap *wrap, struct rv__str alias)
{
    for (uint32_t i = 0; i < wrap->needs_count; i++)
        if (rv__str_eq(wrap->needs[i], alias))
            return true;
    return false;
}

/* Check that what a nested workflow needs is visible where it is nested. */
static void check_nested_needs(struct rv__compiler *c, const struct rv__node *node)
{
    for (uint32_t b = 0; b < node->body_count; b++) {
        const struct rv__wrap *wrap = node->bodies[b].wrap;
        for (uint32_t i = 0; wrap != NULL && i < wrap->needs_count; i++)
            if (!is_visible(node, wrap->needs[i]))
                rv__compiler_refuse(c, RV__AT(node),
                                    "workflow '%s' needs '%s', which is not the alias of a node "
                                    "before it",
                                    rv__show(wrap->name).text, rv__show(wrap->needs[i]).text);
    }
}

static void check_needs(struct rv__compiler *c)
{
    for (uint32_t id = 0; id < c->count; id++) {
        const struct rv__node *node = c->nodes[id];
        check_nested_needs(c, node);
        if (node->kind != NODE_STEP)
            continue;
        for (uint32_t i = 0; i < node->step.needs_count; i++) /* a handler has no needs */
            if (!is_visible(node, node->step.needs[i]))
                rv__compiler_refuse(c, RV__AT(node),
                                    "needs '%s', which is not the alias of a node before it",
                                    rv__show(node->step.needs[i]).text);
    }
}

/* Has the name been reported as wrong already? Then it is not missing. */
static bool complains_of_name(const struct rv__draft *draft)
{
    for (const struct rv__complaint *w = draft->workflow.complaints.first; w != NULL; w = w->next)
        if (w->key != NULL && strcmp(w->key, "name") == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return rv__str_cmp(*(const struct rv__str *)a, *(const struct rv__str *)b);
}

static int list_signals(struct rv__plan *plan)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < plan->node_count; i++)
        count += plan->nodes[i]->kind == NODE_STEP && plan->nodes[i]->step.kind == STEP_SIGNAL;
    if (count == 0)
        return RV_OK;
    struct rv__str *names = rv__arena_zalloc(&plan->arena, count, sizeof *names);
    if (names == NULL)
        return RV_ENOMEM;
    count = 0;
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        if (node->kind != NODE_STEP || node->step.kind != STEP_SIGNAL)
            continue;
        if (rv__str_none(node->step.signal))
            plan->any_signal = true;
        else
            names[count++] = node->step.signal;
    }
    qsort(names, count, sizeof *names, by_name);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || !rv__str_eq(names[kept - 1], names[i]))
            names[kept++] = names[i];
    plan->signals = names;
    plan->signal_count = kept;
    return RV_OK;
}

bool rv__plan_takes_signal(const struct rv__plan *plan, struct rv__str name)
{
    return plan->any_signal ||
           (plan->signal_count > 0 && bsearch(&name, plan->signals, plan->signal_count,
                                              sizeof *plan->signals, by_name) != NULL);
}

/* The node whose body contains this one; a handler is not among the nodes of its body. */
static const struct rv__node *around(const struct rv__node *node)
{
    if (node->handler_of != NULL)
        return node->handler_of;
    const struct rv__body *body = node->is_handler ? node->handler_in : node->body;
    return body != NULL ? body->owner : NULL;
}

static void find_stages(struct rv__plan *plan)
{
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i]->kind != NODE_STAGE)
            continue;
        struct rv__node *node = plan->nodes[i];
        while (node != NULL && !node->has_stages) {
            node->has_stages = true;
            const struct rv__node *up = around(node);
            node = up != NULL ? plan->nodes[up->id] : NULL;
        }
    }
}

static int compile(struct rv__compiler *c, const struct rv__draft *draft)
{
    struct rv__plan *plan = c->plan;
    struct rv__expr no_input = { EXPR_NONE, { NULL, 0 } };
    const char *fault = rv__alias_fault(draft->workflow.name);
    if (draft->failure.code != RV_OK)
        return rv__fail(c->err, draft->failure.code, "%s", draft->failure.message);
    if (rv__str_none(draft->workflow.name) && !complains_of_name(draft))
        rv__compiler_refuse(c, RV__IN(&plan->body, "name"), "a workflow needs a 'name'");
    else if (!rv__str_none(draft->workflow.name) && fault != NULL)
        rv__compiler_refuse(c, RV__IN(&plan->body, "name"), "invalid name '%s' of a workflow: %s",
                            rv__show(draft->workflow.name).text, fault);

    int rc = rv__build_workflow(c, &draft->workflow, &no_input, &plan->body, 1, NULL);
    if (rc < 0)
        return rc;
    check_needs(c);
    if (c->found > 0)
        return rv__violations_err(c->bad, c->err);

    rc = rv__compiler_write(c, &plan->body, false); /* as it will be on disk, to check its size */
    if (rc < 0)
        return rc;
    plan->nodes = rv__arena_zalloc(&plan->arena, c->count, sizeof(struct rv__node *));
    if (plan->nodes == NULL)
        return rv__nomem(c->err);
    memcpy(plan->nodes, c->nodes, c->count * sizeof(struct rv__node *));
    plan->node_count = c->count;
    find_stages(plan);
    if (list_signals(plan) < 0)
        return rv__nomem(c->err);
    plan->description = plan->body.wrap->description;
    memcpy(plan->version, plan->body.wrap->version.at, sizeof plan->version);
    return RV_OK;
}

int rv__plan_compile(const struct rv__draft *draft, struct rv__resolver *resolver,
                     struct rv__violations *bad, struct rv__plan **ret, rv_error *err)
{
    struct rv__compiler c = { .resolver = resolver, .bad = bad, .err = err };
    struct rv__arena own_arena;
    struct rv__violations own;
    int rc;

    rv__arena_init(&own_arena, SIZE_MAX); /* bounded by RV__VIOLATIONS_MAX */
    rv__violations_init(&own, &own_arena);
    if (bad == NULL)
        c.bad = &own;
    rv__aliases_init(&c.aliases);
    rv__buf_init(&c.text, RV__PLAN_MAX_BYTES);

    c.plan = rv__zalloc(1, sizeof *c.plan);
    if (c.plan == NULL) {
        rc = rv__nomem(err);
        goto out;
    }
    rv__arena_init(&c.plan->arena, SIZE_MAX); /* `reserved` and `bytes` bound it */
    c.plan->body.alias = (struct rv__str)RV__STR("");

    rc = compile(&c, draft);
    if (rc < 0)
        goto out;

    *ret = c.plan;
    c.plan = NULL;
out:
    rv__plan_free(c.plan);
    rv__free(c.nodes);
    rv__aliases_done(&c.aliases);
    rv__buf_done(&c.text);
    rv__arena_done(&own_arena);
    return rc;
}

int rv__plan_read(struct rv__str json, struct rv__plan **ret, rv_error *err)
{
    struct rv__draft *draft = NULL;
    int rc = rv__draft_read(json, &draft, err);
    if (rc < 0)
        return rc;
    rc = rv__plan_compile(draft, NULL, NULL, ret, err);
    rv__draft_free(draft);
    return rc;
}

void rv__plan_free(struct rv__plan *plan)
{
    if (plan == NULL)
        return;
    rv__arena_done(&plan->arena);
    rv__free(plan);
}
