/* naming.c: gives every node its alias: the one in the draft, or an implied one. */
#include "plan/compile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/kinds.h"

/* The alias of a node that has none, before it is made unique: its name, if that is a valid one. (An invalid
 * name is reported elsewhere.) */
static struct rv__str implied_alias(const struct rv__draft_node *draft)
{
    if (draft->broken || (draft->kind == NODE_STEP && (unsigned)draft->step.kind >= STEP_KINDS))
        return (struct rv__str)RV__STR("node");
    if (draft->kind == NODE_WORKFLOW && rv__alias_fault(draft->name) == NULL)
        return draft->name;
    if (draft->kind != NODE_STEP)
        return rv__str(rv__node_kind_name(draft->kind));
    if (draft->step.kind == STEP_CALL && rv__function_fault(draft->name) == NULL) {
        const char *slash = memrchr(draft->name.at, '/', draft->name.len); /* "file/function" */
        size_t skip = slash != NULL ? (size_t)(slash + 1 - draft->name.at) : 0;
        return (struct rv__str){ draft->name.at + skip, draft->name.len - skip };
    }
    if (draft->step.kind == STEP_FUNCTION && rv__function_fault(draft->name) == NULL)
        return draft->name;
    return rv__str(rv__step_kind_alias(draft->step.kind));
}

/* A valid alias in place of a refused one, for the paths in messages. There will be no plan. */
static int take_bad_alias(struct rv__compiler *c, struct rv__str alias, struct rv__str *ret)
{
    struct rv__shown shown = rv__show(alias);
    if (rv__str_copy(&c->plan->arena, rv__str(alias.len > 0 ? shown.text : "?"), ret) < 0)
        return rv__nomem(c->err);
    return RV_OK;
}

/* Name a node, or a child of a concurrent. Its path reads *ret, so *ret is set before anything is refused.
 * `given` none: the alias is implied. */
static int name_it(struct rv__compiler *c, struct rv__place place, struct rv__str given,
                   struct rv__str implied, uint32_t index, struct rv__str *ret)
{
    struct rv__str alias = rv__str_none(given) ? implied : given;
    const char *fault = rv__alias_fault(alias);
    uint32_t taken_by;
    int rc;

    if (fault != NULL) {
        rc = take_bad_alias(c, alias, ret);
        if (rc == RV_OK && rv__str_none(given))
            rv__compiler_refuse(c, place, "its name '%s' cannot be its alias: %s; give it one",
                                rv__show(alias).text, fault);
        else if (rc == RV_OK)
            rv__compiler_refuse(c, place, "invalid alias '%s': %s", rv__show(alias).text, fault);
        return rc;
    }
    rc = rv__compiler_text(c, alias, ret);
    if (rc < 0)
        return rc;
    if (rv__str_none(given)) {
        if (rv__aliases_imply(&c->aliases, *ret, index, &c->plan->arena, ret) < 0)
            return rv__nomem(c->err);
        return RV_OK;
    }
    if (rv__aliases_take(&c->aliases, *ret, index, &taken_by))
        return RV_OK;
    if (place.node == NULL)
        rv__compiler_refuse(c, place, "duplicate %s '%.*s': it must be unique",
                            place.body->owner->kind == NODE_STAGE  ? "state"
                            : place.body->owner->kind == NODE_CHAT ? "tool"
                                                                   : "concurrent child alias",
                            RV__ARG(*ret));
    else
        rv__compiler_refuse(c, place,
                            "alias '%.*s' must be unique in its sequence: node%" PRIu32 " has it",
                            RV__ARG(*ret), taken_by);
    return RV_OK;
}

static int by_alias(const void *a, const void *b)
{
    const struct rv__node *const *x = a, *const *y = b;
    int order = rv__str_cmp((*x)->alias, (*y)->alias);
    if (order != 0)
        return order;
    return (*x)->index < (*y)->index ? -1 : 1; /* a fixed order of equal aliases */
}

/* Make the nodes of the body, each with its alias and its place. */
int rv__name_nodes(struct rv__compiler *c, const struct rv__draft_body *draft,
                   struct rv__body *body)
{
    int rc = rv__compiler_reserve(c, draft->count);
    if (rc < 0)
        return rc;
    body->nodes = rv__arena_zalloc(&c->plan->arena, draft->count, 2 * sizeof(struct rv__node *));
    struct rv__node *nodes = rv__arena_zalloc(&c->plan->arena, draft->count, sizeof *nodes);
    if (body->nodes == NULL || nodes == NULL || rv__aliases_begin(&c->aliases, draft->count) < 0)
        return rv__nomem(c->err);
    body->by_alias = body->nodes + draft->count;

    const struct rv__draft_node *from = draft->first;
    for (uint32_t i = 0; i < draft->count; i++, from = from->next) {
        struct rv__node *node = &nodes[i];
        node->kind = from->kind;
        node->body = body;
        node->index = i;
        node->loops_around = rv__loops_around(body);
        body->nodes[body->count++] = node;
        if (body->bare) /* it has the alias of the child */
            node->alias = body->alias;
        else
            rc = name_it(c, RV__AT(node), from->alias, implied_alias(from), i, &node->alias);
        if (rc < 0)
            return rc;
    }
    memcpy(body->by_alias, body->nodes, body->count * sizeof(struct rv__node *));
    qsort(body->by_alias, body->count, sizeof(struct rv__node *), by_alias);
    return RV_OK;
}

/* The aliases of the children come before what is in them, whose paths need them. */
int rv__name_children(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node)
{
    if (rv__aliases_begin(&c->aliases, draft->body_count) < 0)
        return rv__nomem(c->err);
    const struct rv__draft_body *from = draft->bodies;
    for (uint32_t i = 0; i < node->body_count; i++, from = from->next) {
        struct rv__body *child = &node->bodies[i];
        struct rv__str given = from->alias, implied = RV__STR("child");
        bool stage = node->kind == NODE_STAGE; /* the state is named, not its agent */
        const struct rv__draft_node *only = from->bare && !stage ? from->first : NULL;
        if (rv__str_none(given) && only != NULL) {
            given = only->alias;
            implied = implied_alias(only);
        }
        int rc = name_it(c, RV__IN(child, NULL), given, implied, i, &child->alias);
        if (rc < 0)
            return rc;
        if (rv__str_none(given) && only == NULL)
            rv__compiler_refuse(c, RV__IN(child, NULL), "%s needs an 'alias'",
                                stage ? "a state" : "a child that is a list of nodes");
    }
    return RV_OK;
}
