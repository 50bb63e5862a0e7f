/* judge_view.c: is what a piece of work sees when it starts what it should see? Its attempt, iteration,
 * item, input, earlier steps and, in a state of a stage, the results of the state's dependencies. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Are the steps in order of execution? The reference goes from the nearest outwards. */
static void check_order(struct world *world, struct run *run, const char *what, json_t *nearest,
                        const struct rv__buf *actual)
{
    json_t *got = judge_parse(world, run, actual);
    size_t count = json_object_size(nearest), at = 0;
    const char **names = sim_alloc((count + 1) * sizeof *names), *key;
    json_t *value;
    json_object_foreach (nearest, key, value)
        names[count - ++at] = key;
    at = 0;
    json_object_foreach (got, key, value) {
        if (!world->failed && at < count && strcmp(names[at], key) != 0)
            judge_fail(world, run, "scope", "%s: '%s' comes where '%s' should", what, key,
                       names[at]);
        at++;
    }
    free(names);
    json_decref(got);
}

static void check_scope(struct world *world, struct run *run, const struct rv__effect *effect,
                        const struct rec_actor *actor, const struct rv__view *view)
{
    struct reference ref = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    char name[200], what[300];
    work_name(run, effect->actor, name, sizeof name);
    store_rows_init(&rows, world, run);
    rv__buf_init(&text, SIZE_MAX);
    tally.views++;

    const struct rv__node *node = effect->node;
    const struct rv__body *body = NULL;
    if (actor->body != -1 && effect->eval != EVAL_DESCRIPTION) { /* it makes its input */
        body = actor->plan_body;
        node = NULL;
    } else if (node->is_handler && node->handler_of == NULL) {
        body = run->rec.actors[actor->owner].plan_body;
    }
    if (rv__view_steps(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: its steps cannot be read: %s", name, err.message);
    snprintf(what, sizeof what, "the steps that %s sees", name);
    if (!world->failed) {
        json_t *steps = reference_steps(&ref, node, body, effect->eval, actor->vector,
                                        actor->depth);
        check_order(world, run, what, steps, &text);
        judge_compare(world, run, "scope", what, steps, &text);
    }
    rv__buf_reset(&text);
    if (!world->failed && rv__view_last(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: lastStep cannot be read: %s", name, err.message);
    snprintf(what, sizeof what, "the lastStep that %s sees", name);
    if (!world->failed)
        judge_compare(world, run, "scope", what,
                      reference_last(&ref, node, body, effect->eval, actor->vector, actor->depth),
                      &text);
    rv__buf_done(&text);
}

/* The input that is seen there: of the nearest workflow that has one of its own. */
static const struct rv__blob *input_at(const struct run *run, const struct rec_actor *actor,
                                       int eval)
{
    const struct rv__body *body = actor->plan_body;
    uint32_t depth = actor->depth;
    if (actor->body == -1) {
        const struct rv__node *node = run->plan->plan->nodes[actor->inst->node];
        body = rv__node_around(node);
    } else if (body->owner != NULL &&
               eval != EVAL_DESCRIPTION) { /* its own is being made: what is around it */
        depth -= numbers(body->owner);
        body = rv__node_around(body->owner);
    }
    while (body->owner != NULL) {
        const struct rv__node *owner = body->owner;
        bool iterates = numbers(owner) && !generates(owner);
        int64_t number = numbers(owner) ? actor->vector[depth - 1] : 0;
        int64_t index = iterates ? number : (int64_t)body->index;
        depth -= numbers(owner);
        if (body->wrap != NULL && body->wrap->input.kind != EXPR_NONE) {
            const struct rec_inst *inst = record_find(&run->rec, owner->id, actor->vector, depth);
            return record_body(inst, index)->input.value;
        }
        if (rv__body_is_tool(body)) {
            const struct rec_inst *inst = record_find(&run->rec, owner->id, actor->vector, depth);
            return record_attempt(inst, body->index, number)->input.value;
        }
        body = rv__node_around(owner);
    }
    return run->input;
}

/* The node whose iteration it is in: the innermost around it that has any. NULL: none. *depth: of the
 * vector of that iteration. */
static const struct rv__node *around(const struct run *run, const struct rec_actor *actor,
                                     uint32_t *depth)
{
    const struct rv__body *body = actor->plan_body;
    *depth = actor->depth;
    if (actor->body == -1) {
        body = rv__node_around(run->plan->plan->nodes[actor->inst->node]);
    }
    while (body->owner != NULL && body->owner->kind != NODE_FOREACH &&
           body->owner->kind != NODE_LOOP) {
        *depth -= generates(body->owner);
        body = rv__node_around(body->owner);
    }
    return body->owner;
}

/* Of a forEach, the item is the one of its number, and there are as many as came. */
static void check_item(struct world *world, struct run *run, const struct rec_actor *actor,
                       const struct rv__view *view, const char *name)
{
    uint32_t depth;
    const struct rv__node *node = around(run, actor, &depth);
    struct store_rows rows;
    struct rv__blob *hold = NULL;
    struct rv__str item = { NULL, 0 }, should = { NULL, 0 };
    struct rv__json_iter it;
    rv_error err = { .message = "" };
    store_rows_init(&rows, world, run);
    int rc = rv__view_item(view, &rows.source, &hold, &item, &err);
    if (node == NULL || node->kind != NODE_FOREACH || depth == 0) {
        rv__blob_unref(hold);
        return;
    }
    const struct rec_inst *inst = record_find(&run->rec, node->id, actor->vector, depth - 1);
    if (inst != NULL && inst->evals[EVAL_ITEMS].value != NULL) {
        rv__json_iter_init(&it, rv__blob_str(inst->evals[EVAL_ITEMS].value));
        for (int64_t i = 0; i <= actor->vector[depth - 1]; i++)
            if (!rv__json_next(&it, NULL, &should))
                should = (struct rv__str){ NULL, 0 };
    }
    if (rc < 0 || !rv__str_eq(item, should))
        judge_fail(world, run, "item", "%s sees the item %.*s, which is %.*s: %s", name,
                   RV__ARG(item), RV__ARG(should), err.message);
    rv__blob_unref(hold);
}

/* What is in a handler knows what that is about. */
static void check_handler(struct world *world, struct run *run, const struct rv__effect *effect,
                          const struct rv__view *view, const char *name)
{
    const struct rv__node *node = effect->node;
    const struct rv__node *handler = node != NULL ? rv__node_handler(node) : NULL;
    const struct rv__body *body = &run->plan->plan->body;
    if (view->handler != handler) {
        judge_fail(world, run, "view", "%s sees itself in another handler", name);
        return;
    }
    if (handler == NULL)
        return;
    bool on_error = handler->handler_of != NULL || handler == handler->handler_in->wrap->on_error;
    if (on_error && view->error == NULL)
        judge_fail(world, run, "view", "%s sees no error", name);
    if (handler != body->wrap->finally)
        return;
    bool failed = run->rec.aborted != NULL;
    for (uint32_t i = 0; i < body->count && !failed; i++) {
        const struct rec_inst *inst = record_find(&run->rec, body->nodes[i]->id, NULL, 0);
        failed = inst != NULL && inst->hard && inst->status == STATUS_FAILED;
    }
    enum rv__run_status outcome = run->rec.cut >= 0 ? RUN_CANCELLED
                                  : failed          ? RUN_FAILED
                                                    : RUN_COMPLETED;
    if (view->outcome != outcome)
        judge_fail(world, run, "view", "%s sees that the run is %s, and it is %s", name,
                   rv__run_status_name(view->outcome), rv__run_status_name(outcome));
}

/* What its state depends on: as it was when the attempt began. */
static void check_inputs(struct world *world, struct run *run, const struct rec_actor *actor,
                         const struct rv__view *view, const char *name)
{
    const struct rv__body *body = actor->plan_body;
    size_t depth = actor->depth;
    if (actor->body == -1)
        body = rv__node_around(run->plan->plan->nodes[actor->inst->node]);
    bool detached = false; /* it outlives its state, and sees nothing of it */
    while (body->owner != NULL && body->owner->kind != NODE_STAGE) {
        depth -= numbers(body->owner);
        detached |= body->owner->kind == NODE_CONCURRENT && body->owner->concurrent.detached;
        body = rv__node_around(body->owner);
    }
    if (world->engine) /* what rv_ctx shows is no view, and has no inputs yet */
        return;
    if (view->state != (body->owner != NULL && !detached ? body : NULL)) {
        judge_fail(world, run, "view", "%s sees itself in another state", name);
        return;
    }
    if (world->failed || body->owner == NULL || actor->body >= 0 || detached)
        return; /* a frame's own work has no inputs to show */
    struct reference ref = { .plan = run->plan, .rec = &run->rec, .oracle = &world->oracle };
    struct store_rows rows;
    struct rv__buf text;
    rv_error err = { .message = "" };
    store_rows_init(&rows, world, run);
    rv__buf_init(&text, SIZE_MAX);
    if (rv__view_inputs(view, &rows.source, &text, &err) < 0)
        judge_fail(world, run, "view", "%s: its inputs cannot be read: %s", name, err.message);
    else
        judge_compare(world, run, "inputs", "the inputs of a state",
                      reference_inputs(&ref, body, actor->vector, depth), &text);
    rv__buf_done(&text);
}

void judge_start(struct world *world, struct run *run, const struct rv__effect *effect,
                 const struct rv__view *view)
{
    char name[200];
    work_name(run, effect->actor, name, sizeof name);
    const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
    if (actor == NULL) {
        judge_fail(world, run, "start", "work begins for an actor without a fact");
        return;
    }
    const struct rec_inst *inst = actor->inst;
    int64_t t = effect->eval >= 0 ? actor->eval_started : inst->last_started;
    if (t >= run->durable_t)
        judge_fail(world, run, "durable", "%s begins before the fact of it is on disk", name);
    if (effect->eval < 0 && inst->ended >= 0)
        judge_fail(world, run, "again", "%s has ended, and runs again", name);
    if (view->nonce != run->nonce)
        judge_fail(world, run, "view", "%s has another nonce than its run began with", name);
    if (view->node != effect->node)
        judge_fail(world, run, "view", "%s sees itself as another node", name);
    if (effect->eval < 0 && view->attempt != inst->attempt)
        judge_fail(world, run, "view", "%s sees attempt %d, and it is %d", name, view->attempt,
                   inst->attempt);
    struct rv__blob *made = value_text(world, run, view->made);
    const struct rv__blob *recorded = effect->eval < 0 ? inst->evals[EVAL_INPUT].value : NULL;
    if (!world->failed && !same_blob(made, recorded, ""))
        judge_fail(world, run, "view", "%s sees other parameters than its function made: %.*s",
                   name, RV__ARG(rv__blob_str(made)));
    rv__blob_unref(made);
    for (uint32_t i = 0; i < actor->depth; i++)
        if (view->vector[i] != actor->vector[i])
            judge_fail(world, run, "view", "%s sees itself in another iteration", name);
    uint32_t loop_depth;
    const struct rv__node *loop = around(run, actor, &loop_depth);
    int64_t index = loop != NULL ? actor->vector[loop_depth - 1] : -1;
    if (effect->eval == EVAL_WHILE) /* of the iteration to come, */
        index = (int64_t)inst->bodies_ended;
    else if (effect->eval == EVAL_UNTIL) /* or of the one that ended */
        index = (int64_t)inst->bodies_ended - 1;
    if (view->loop_index != index)
        judge_fail(world, run, "view", "%s sees loop index %lld", name,
                   (long long)view->loop_index);
    check_handler(world, run, effect, view, name);
    check_inputs(world, run, actor, view, name);
    struct rv__blob *input = value_text(world, run, view->input);
    if (!world->failed && !same_blob(input, input_at(run, actor, effect->eval), "null"))
        judge_fail(world, run, "view", "%s sees another input: %.*s", name,
                   RV__ARG(rv__blob_str(input)));
    rv__blob_unref(input);
    if (!world->failed && effect->eval != EVAL_WHILE && effect->eval != EVAL_UNTIL)
        check_item(world, run, actor, view, name);
    size_t insts = run->rec.insts;
    if (!world->failed && (insts < 60 || one_in(&world->chance, insts / 20)))
        check_scope(world, run, effect, actor, view);
}
