/* exprs.c: the templates and schemas of a plan, prepared when it is registered or read from the store. */
#include "work/exprs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

struct gathering {
    struct rv__plan_exprs *to;
    const struct rv__plan *plan;
    rv_error *err;
};

static int complain(const struct rv__node *node, const struct rv__body *body, const rv_error *why,
                    rv_error *err)
{
    struct rv__buf path;
    rv__buf_init(&path, 65536);
    if (node != NULL)
        rv__node_path(node, NULL, &path);
    else if (body != NULL)
        rv__body_path(body, NULL, &path);
    int rc = why->code == RV_ENOMEM ? rv__nomem(err)
                                    : rv__fail(err, RV_EINVAL, "%.*s: %s", (int)path.len,
                                               path.text != NULL ? path.text : "", why->message);
    rv__buf_done(&path);
    return rc;
}

static int add(struct gathering *g, const struct rv__node *node, int slot, struct rv__str json)
{
    bool condition = slot == EVAL_WHEN || slot == EVAL_IF || slot == EVAL_WHILE ||
                     slot == EVAL_UNTIL;
    uint32_t number = 0;
    rv_error why;
    int rc = RV_OK;
    if (g->to->set == NULL)
        rc = rv__exprs_new(&g->to->set, &why);
    if (rc == RV_OK)
        rc = condition ? rv__exprs_add_condition(g->to->set, json, &number, &why)
                       : rv__exprs_add(g->to->set, json, &number, &why);
    if (rc < 0)
        return complain(node, NULL, &why, g->err);
    assert(g->to->numbers != NULL); /* otherwise there is nothing to gather */
    g->to->numbers[(size_t)node->id * SLOTS + (size_t)slot] = number + 1;
    return RV_OK;
}

/* Whether something must be evaluated before an attempt of this node begins. */
static bool has_parameters(const struct rv__node *node)
{
    switch (node->step.kind) {
    case STEP_FUNCTION:
    case STEP_CALL: return false;
    case STEP_DELAY:
    case STEP_SIGNAL: return !node->step.parks; /* otherwise all of it is constant */
    case STEP_HTTP:
    case STEP_COMMAND:
    case STEP_VALUE:
    case STEP_CHAT:
    case STEP_TOOL:
    case STEP_KINDS: break;
    }
    return true;
}

static int gather_node(struct gathering *g, const struct rv__node *node)
{
    static const int slots[USES] = {
        [USE_WHEN] = EVAL_WHEN,   [USE_DESCRIPTION] = EVAL_DESCRIPTION,
        [USE_IF] = EVAL_IF,       [USE_WHILE] = EVAL_WHILE,
        [USE_UNTIL] = EVAL_UNTIL, [USE_ITEMS] = EVAL_ITEMS,
        [USE_LABEL] = SLOT_LABEL,
    };
    int rc = RV_OK;
    for (int use = 0; rc == RV_OK && use < USES; use++) {
        const struct rv__expr *expr = rv__node_expr(node, (enum rv__use)use);
        if (expr != NULL && expr->kind == EXPR_JSON)
            rc = add(g, node, slots[use], expr->text);
    }
    if (rc == RV_OK && node->kind == NODE_STEP && has_parameters(node))
        rc = add(g, node, SLOT_WITH,
                 rv__str_none(node->step.with) ? rv__str("null") : node->step.with);
    return rc;
}

static int gather_body(struct gathering *g, const struct rv__body *body)
{
    const struct rv__wrap *wrap = body->wrap;
    bool alone = wrap != NULL && body->owner == NULL &&
                 wrap->needs_count > 0; /* it cannot run alone: api.c refuses it */
    if (wrap == NULL || (wrap->input.kind != EXPR_JSON && rv__str_none(wrap->schema) &&
                         rv__str_none(wrap->parameters) && !alone))
        return RV_OK;
    struct rv__plan_exprs *to = g->to;
    struct rv__input_rule *rules = rv__realloc(to->rules, (to->rule_count + 1) * sizeof *rules);
    if (rules == NULL)
        return rv__nomem(g->err);
    to->rules = rules;
    struct rv__input_rule *rule = &rules[to->rule_count++];
    *rule = (struct rv__input_rule){ .body = body };
    rv_error why;
    uint32_t number = 0;
    int rc = RV_OK;
    if (wrap->input.kind == EXPR_JSON) {
        if (to->set == NULL)
            rc = rv__exprs_new(&to->set, &why);
        if (rc == RV_OK)
            rc = rv__exprs_add(to->set, wrap->input.text, &number, &why);
        rule->number = number + 1;
    }
    if (rc == RV_OK && !rv__str_none(wrap->schema))
        rc = rv__schema_new(wrap->schema, NULL, &rule->schema, &why);
    return rc < 0 ? complain(NULL, body, &why, g->err) : RV_OK;
}

static int by_address(const void *a, const void *b)
{
    const struct rv__input_rule *x = a, *y = b;
    return (x->body > y->body) - (x->body < y->body);
}

static int by_signal(const void *a, const void *b)
{
    return rv__str_cmp((*(const struct rv__node *const *)a)->step.signal_checked,
                       (*(const struct rv__node *const *)b)->step.signal_checked);
}

static int by_name(const void *a, const void *b)
{
    return rv__str_cmp(((const struct rv__signal_rule *)a)->name,
                       ((const struct rv__signal_rule *)b)->name);
}

/* Add each signal name once. Signals of the same name have the same schema. */
static int gather_signals(struct gathering *g)
{
    const struct rv__plan *plan = g->plan;
    struct rv__plan_exprs *to = g->to;
    size_t count = 0, kept = 0;
    rv_error why;
    for (uint32_t i = 0; i < plan->node_count; i++)
        count += rv__node_has_schema(plan->nodes[i]);
    if (count == 0)
        return RV_OK;
    to->signals = rv__zalloc(count, sizeof *to->signals);
    const struct rv__node **nodes = rv__zalloc(count, sizeof *nodes);
    if (to->signals == NULL || nodes == NULL) {
        rv__free(nodes);
        return rv__nomem(g->err);
    }
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (rv__node_has_schema(plan->nodes[i]))
            nodes[kept++] = plan->nodes[i];
    int rc = RV_OK;
    qsort(nodes, count, sizeof *nodes, by_signal);
    for (size_t i = 0; i < count && rc == RV_OK; i++) {
        if (i > 0 && by_signal(&nodes[i], &nodes[i - 1]) == 0)
            continue;
        struct rv__signal_rule *rule = &to->signals[to->signal_count++];
        rule->name = nodes[i]->step.signal_checked;
        rc = rv__schema_new(nodes[i]->step.signal_schema, NULL, &rule->schema, &why);
        if (rc < 0)
            rc = complain(nodes[i], NULL, &why, g->err);
    }
    rv__free(nodes);
    return rc;
}

const struct rv__signal_rule *rv__plan_exprs_signal(const struct rv__plan_exprs *exprs,
                                                    struct rv__str name)
{
    struct rv__signal_rule key = { .name = name };
    if (exprs->signal_count == 0)
        return NULL;
    return bsearch(&key, exprs->signals, exprs->signal_count, sizeof key, by_name);
}

int rv__plan_exprs_init(struct rv__plan_exprs *exprs, const struct rv__plan *plan, rv_error *err)
{
    struct gathering g = { .to = exprs, .plan = plan, .err = err };
    *exprs = (struct rv__plan_exprs){ .set = NULL };
    exprs->numbers = rv__zalloc((size_t)plan->node_count * SLOTS + 1, sizeof *exprs->numbers);
    int rc = exprs->numbers != NULL ? gather_body(&g, &plan->body) : rv__nomem(err);
    for (uint32_t i = 0; i < plan->node_count && rc == RV_OK; i++) {
        const struct rv__node *node = plan->nodes[i];
        rc = gather_node(&g, node);
        for (uint32_t b = 0; b < node->body_count && rc == RV_OK; b++)
            rc = gather_body(&g, &node->bodies[b]);
    }
    if (rc == RV_OK)
        rc = gather_signals(&g);
    if (rc < 0) {
        rv__plan_exprs_done(exprs);
        return rc;
    }
    if (exprs->rule_count > 1)
        qsort(exprs->rules, exprs->rule_count, sizeof *exprs->rules, by_address);
    return RV_OK;
}

void rv__plan_exprs_done(struct rv__plan_exprs *exprs)
{
    for (size_t i = 0; i < exprs->rule_count; i++)
        rv__schema_free(exprs->rules[i].schema);
    for (size_t i = 0; i < exprs->signal_count; i++)
        rv__schema_free(exprs->signals[i].schema);
    rv__free(exprs->signals);
    rv__free(exprs->rules);
    rv__free(exprs->numbers);
    rv__exprs_unref(exprs->set);
    *exprs = (struct rv__plan_exprs){ .set = NULL };
}

uint32_t rv__plan_exprs_number(const struct rv__plan_exprs *exprs, const struct rv__node *node,
                               int slot)
{
    return exprs->numbers[(size_t)node->id * SLOTS + (size_t)slot];
}

const struct rv__input_rule *rv__plan_exprs_rule(const struct rv__plan_exprs *exprs,
                                                 const struct rv__body *body)
{
    struct rv__input_rule key = { .body = body };
    if (exprs->rule_count == 0)
        return NULL;
    return bsearch(&key, exprs->rules, exprs->rule_count, sizeof key, by_address);
}

/* Write into `out` the default parameters of the workflow, overridden by the input. An input that is no object stays
 * as it is. */
static int merge_input(const struct rv__body *body, struct rv__str *text, struct rv__buf *out,
                       rv_error *err)
{
    struct rv__str under = body->wrap != NULL ? body->wrap->parameters
                                              : (struct rv__str){ NULL, 0 };
    bool none = rv__str_none(*text) || rv__json_type(*text) == RV__JSON_NULL;
    if (rv__str_none(under) || (!none && rv__json_type(*text) != RV__JSON_OBJECT))
        return RV_OK;
    int rc = rv__json_overlay(under, none ? rv__str("{}") : *text, out, err);
    *text = rv__buf_view(out);
    return rc;
}

int rv__input_take(const struct rv__input_rule *rule, struct rv__blob *input,
                   struct rv__violations *bad, struct rv__blob **ret, rv_error *err)
{
    struct rv__str text = rv__blob_str(input);
    struct rv__buf full, laid;
    rv__buf_init(&laid, RV__JSON_MAX_BYTES);
    if (rule != NULL && merge_input(rule->body, &text, &laid, err) < 0) {
        int failed = laid.rc != RV_OK ? laid.rc : RV_ENOMEM;
        rv__buf_done(&laid);
        return failed;
    }
    if (rule == NULL || rule->schema == NULL) {
        bool made = laid.len > 0;
        struct rv__blob *blob = made ? rv__blob_new(text) : rv__blob_ref(input);
        rv__buf_done(&laid);
        if (made && blob == NULL)
            return rv__nomem(err);
        *ret = blob;
        return RV_OK;
    }
    rv__buf_init(&full, RV__JSON_MAX_BYTES);
    int rc = rv__schema_defaults(rule->schema, rv__str_none(text) ? rv__str("{}") : text, &full,
                                 err);
    if (rc == RV_OK)
        rc = rv__schema_check(rule->schema, rv__buf_view(&full), bad, err);
    if (rc == RV_OK) {
        *ret = rv__blob_new(rv__buf_view(&full));
        rc = *ret != NULL ? RV_OK : rv__nomem(err);
    }
    rv__buf_done(&full);
    rv__buf_done(&laid);
    return rc;
}
