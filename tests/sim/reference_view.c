/* reference_view.c: what a piece of work may see of the nodes before it and around it: `steps` and
 * `lastStep` (SPEC: context). By the record only. */
#include "reference.h"

static void see(struct reference *ref, const struct rv__node *node, struct at at, json_t *map)
{
    if (json_object_getn(map, node->alias.at, node->alias.len) != NULL)
        return; /* what is nearer hides it */
    struct end end = ref_node_end(ref, node, at);
    if (end.reached && end.ended)
        ref_put(map, node->alias, ref_entry(&end));
    else if (end.reached && ref->rec != NULL && ref->rec->cut >= 0 && node->body->owner == NULL)
        ref_put(map, node->alias,
                ref_cut_short(node, &end)); /* it was in flight when the run was cancelled */
    ref_end_done(&end);
}

/* The nodes of a body before the one at `before`, nearest first. */
static void see_body(struct reference *ref, const struct rv__body *body, uint32_t before,
                     struct at at, json_t *map)
{
    for (uint32_t i = before; i > 0; i--)
        see(ref, body->nodes[i - 1], at, map);
}

/* How many nodes around it something sees: those before it, and a handler what it is about. */
static uint32_t seen_before(const struct rv__node *node)
{
    if (node->handler_of != NULL)
        return node->handler_of->index;
    return node->is_handler ? node->handler_in->count : node->index;
}

/* A state that does not let its agent see everything hides all that is around it. So does a chat, from its tools: one
 * that is no state's agent unless it says `all`, one that is if it says less. */
static bool is_fenced(const struct rv__body *body)
{
    const struct rv__node *owner = body->owner;
    if (owner == NULL)
        return false;
    if (owner->kind == NODE_STAGE)
        return owner->stage.states[body->index].access != ACCESS_ALL;
    if (owner->kind != NODE_CHAT || body == &owner->bodies[0])
        return false;
    bool agent = owner->body != NULL && owner->body->owner != NULL &&
                 owner->body->owner->kind == NODE_STAGE;
    return owner->chat.says_access ? owner->chat.access != ACCESS_ALL : !agent;
}

/* All that a sequence sees when it begins: the previous round of a loop, and what is around. */
static void see_around(struct reference *ref, const struct rv__body *body, struct at at,
                       json_t *map)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    while (body->owner != NULL && !is_fenced(body)) {
        const struct rv__node *owner = body->owner;
        struct at outer = { at.vector, numbers(owner) ? at.depth - 1 : at.depth };
        if (owner->kind == NODE_LOOP && at.vector[at.depth - 1] > 0)
            see_body(ref, body, body->count, ref_deeper(outer, at.vector[at.depth - 1] - 1, room),
                     map);
        body = rv__node_around(owner);
        see_body(ref, body, seen_before(owner), outer, map);
        at = outer;
    }
}

/* A function that makes the description of a node sees what a node after it would. */
static bool describes_after(const struct rv__node *node, int eval)
{
    return eval == EVAL_DESCRIPTION && node->description.kind == EXPR_FUNCTION;
}

json_t *reference_steps(struct reference *ref, const struct rv__node *node,
                        const struct rv__body *body, int eval, const int64_t *vector, size_t depth)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    json_t *map = json_object();
    struct at at = { vector, depth };
    if (body != NULL) { /* it makes its input, or its handler runs: it is in the body itself */
        if (node != NULL)
            see_body(ref, body, body->count, at, map);
        see_around(ref, body, at, map);
        return map;
    }
    if (node->handler_of != NULL)
        node = node->handler_of;
    if (eval == EVAL_WHILE || eval == EVAL_UNTIL) { /* tested on what the last round left */
        const struct rec_inst *inst = ref_inst(ref, node, at);
        if (inst != NULL && inst->bodies_ended > 0)
            see_body(ref, &node->bodies[0], node->bodies[0].count,
                     ref_deeper(at, (int64_t)inst->bodies_ended - 1, room), map);
    }
    see_body(ref, node->body, node->index + describes_after(node, eval), at, map);
    see_around(ref, node->body, at, map);
    return map;
}

static json_t *last_of(struct reference *ref, const struct rv__node *node, struct at at)
{
    struct end end = ref_node_end(ref, node, at);
    json_t *last = json_object();
    json_object_set_new(last, "result", end.result != NULL ? end.result : json_null());
    json_object_set_new(last, "state", end.state != NULL ? end.state : json_object());
    json_object_set_new(last, "alias", json_stringn(node->alias.at, node->alias.len));
    json_object_set_new(last, "stepName", json_stringn(node->alias.at, node->alias.len));
    json_decref(end.error);
    return last;
}

/* How many nodes of a body have begun. */
static uint32_t reached(const struct reference *ref, const struct rv__body *body, struct at at)
{
    uint32_t count = 0;
    while (count < body->count && ref_inst(ref, body->nodes[count], at) != NULL)
        count++;
    return count;
}

json_t *reference_last(struct reference *ref, const struct rv__node *node,
                       const struct rv__body *body, int eval, const int64_t *vector, size_t depth)
{
    struct at at = { vector, depth };
    uint32_t before = 0;
    if (body == NULL) {
        if (node->handler_of != NULL)
            node = node->handler_of;
        body = node->body;
        before = node->index + describes_after(node, eval);
    } else if (node != NULL) { /* the workflow's handler: what failed is the last one */
        before = reached(ref, body, at);
    }
    /* The first node inside a supervisor sees the one before that supervisor. */
    while (before == 0 && body->owner != NULL && !is_fenced(body)) {
        const struct rv__node *owner = body->owner;
        at.depth -= numbers(owner);
        body = rv__node_around(owner);
        before = owner->is_handler && owner->handler_of == NULL ? reached(ref, body, at)
                                                                : seen_before(owner);
    }
    if (before == 0)
        return json_pack("{s:{},s:n,s:n}", "state", "alias", "stepName");
    return last_of(ref, body->nodes[before - 1], at);
}
