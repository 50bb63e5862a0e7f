/* evolve.c: applies facts. The only writer of a cell besides step.c and frame.c, which it calls.
 *
 * Total and without choices: a fact that passed rv__fact_check() always applies, unless memory runs
 * out, and then nothing has changed: whatever needs memory is asked for before the first change. */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

/* -------------------------------------------------------------------------------- runs --- */

static int run_started(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *root = rv__actor_new(cell);
    if (root == NULL)
        return RV_ENOMEM;
    cell->started = true;
    cell->input = rv__blob_ref(fact->result);
    rv__frame_evolve_start(cell, root, NULL, &cell->plan->body, -1);
    return RV_OK;
}

static void end_root(struct rv__cell *cell)
{
    if (cell->root == NULL)
        return;
    cell->results = rv__entry_ref(cell->root->frame.scope);
    rv__actor_end(cell, cell->root);
}

/* A step that was to blame and is alive after the run's end (detached) is looked at again. */
static void forget_suspension(struct rv__cell *cell)
{
    struct rv__actor *by = rv__cell_find(cell, cell->suspended_by);
    cell->suspended_by = 0;
    rv__blob_unref(cell->suspension);
    cell->suspension = NULL;
    if (by != NULL)
        rv__actor_place(cell, by);
}

static void run_ended(struct rv__cell *cell, const struct rv__fact *fact,
                      enum rv__run_status status)
{
    end_root(cell);
    cell->status = status;
    cell->error = rv__blob_ref(fact->error);
    cell->failed_node = fact->node;
    forget_suspension(cell);
}

/* One fact, however much is alive. The node that was reached at the top is listed as cancelled. */
static int run_cancelled(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__entry *results;
    if (rv__frame_left(cell->root, &results) < 0)
        return RV_ENOMEM;
    run_ended(cell, fact, RUN_CANCELLED);
    rv__entry_unref(cell->results);
    cell->results = results;
    while (cell->shades != NULL && !RV__BUG(16))
        rv__actor_end(cell, cell->shades);
    return RV_OK;
}

/* Work that is in flight goes back to waiting for a place: it never began, or it is lost. */
static void back_to_waiting(struct rv__cell *cell, struct rv__actor *actor)
{
    if (actor->phase == PHASE_EVAL) {
        actor->phase = PHASE_TO_EVAL;
    } else {
        actor->phase = PHASE_READY;
        actor->step.next_attempt = actor->step.attempt + RV__BUG(5);
    }
    rv__actor_owe(cell, actor);
}

static void run_suspended(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = rv__cell_find(cell, fact->actor);
    cell->status = RUN_SUSPENDED;
    cell->suspension = rv__blob_ref(fact->error);
    cell->suspended_by = fact->actor;
    if (actor != NULL)
        rv__actor_place(cell, actor);
}

static void run_resumed(struct rv__cell *cell)
{
    struct rv__actor *actor = rv__cell_find(cell, cell->suspended_by);
    cell->status = RUN_RUNNING;
    if (actor != NULL) {
        actor->crashes = 0;
        rv__actor_absolve(actor);
    }
    forget_suspension(cell);
}

/* The top-level node it is in, or was about to begin, fails with the reason; the run then ends as after
 * any failure. */
static int run_aborted(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *root = cell->root, *child = root->child;
    const struct rv__body *body = root->frame.body;
    bool in_handler = child != NULL && child->node->is_handler;
    bool at_end = root->frame.at == body->count;
    struct rv__entry *entry = NULL;
    if (!root->frame.failed && !at_end) {
        entry = child != NULL ? rv__node_left(child, STATUS_FAILED)
                              : rv__entry_new(body->nodes[root->frame.at], STATUS_FAILED);
        if (entry == NULL)
            return RV_ENOMEM;
    }
    cell->status = RUN_RUNNING;
    forget_suspension(cell);
    if (child != NULL)
        rv__actor_end(cell, child);
    if (root->phase == PHASE_TO_EVAL || root->phase == PHASE_EVAL)
        (void)rv__frame_evolve_described(cell, root, NULL); /* it goes without */
    if (entry != NULL) {
        rv__frame_evolve_child(cell, root, entry, true, fact->error);
        return RV_OK;
    }
    root->frame.handled |= in_handler;
    root->phase = PHASE_RUNNING;
    if (!root->frame.failed) { /* all its nodes are done: the last one stands for it */
        root->frame.failed = true;
        root->frame.failed_node = body->nodes[body->count - 1]->id;
        rv__blob_unref(root->value);
        root->value = rv__blob_ref(fact->error);
    }
    if (body->wrap->on_error != NULL && !root->frame.handled)
        root->phase = PHASE_FAILED;
    rv__actor_place(cell, root);
    return RV_OK;
}

static void lost(struct rv__cell *cell, struct rv__actor *actor, const struct rv__fact *fact)
{
    assert(actor != NULL); /* rv__fact_check saw it */
    actor->suspect |= fact->suspect;
    if (fact->deaths > 0)
        actor->deaths = fact->deaths;
    actor->crashes += fact->blame;
    if (fact->blame) {
        rv__blob_unref(actor->death);
        actor->death = rv__blob_ref(fact->error);
    }
    back_to_waiting(cell, actor);
    rv__actor_place(cell, actor);
}

static int signal_received(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__signal *signal = rv__zalloc(1, sizeof *signal);
    if (signal == NULL)
        return RV_ENOMEM;
    struct rv__channel *channel = rv__channel_get(cell, rv__blob_str(fact->name), false, true);
    if (channel == NULL) {
        rv__free(signal);
        return RV_ENOMEM;
    }
    signal->payload = rv__blob_ref(fact->result);
    if (channel->last_signal != NULL)
        channel->last_signal->next = signal;
    else
        channel->first_signal = signal;
    channel->last_signal = signal;
    cell->signals++;
    cell->bytes += sizeof *signal;
    if (channel->first_waiter != NULL)
        rv__actor_place(cell, channel->first_waiter);
    return RV_OK;
}

/* ------------------------------------------------------------------------- evaluations --- */

static struct rv__actor *new_node(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = rv__actor_new(cell);
    if (actor == NULL)
        return NULL;
    struct rv__actor *owner = rv__cell_find(cell, fact->owner);
    actor->node = cell->plan->nodes[fact->node];
    rv__actor_link(cell, actor, owner);
    rv__actor_place(cell, owner);
    return actor;
}

static int eval_started(struct rv__cell *cell, struct rv__actor *actor, const struct rv__fact *fact)
{
    if (actor == NULL) {
        actor = new_node(cell, fact);
        if (actor == NULL)
            return RV_ENOMEM;
    }
    actor->phase = PHASE_EVAL;
    actor->eval = (uint8_t)fact->eval;
    rv__actor_owe(cell, actor);
    rv__actor_place(cell, actor);
    return RV_OK;
}

/* If they are an array; else it fails for that. */
static void take_items(struct rv__actor *sup, const struct rv__fact *fact)
{
    bool here = fact->items == NULL && !rv__blob_is_reference(fact->result) &&
                fact->result->len > 0 &&
                rv__json_type(rv__blob_str(fact->result)) == RV__JSON_ARRAY;
    if (!here && fact->items == NULL)
        return;
    sup->sup.items = rv__items_ref(fact->items);
    sup->sup.count = here ? (int64_t)rv__json_count(rv__blob_str(fact->result))
                          : fact->items->count;
    sup->sup.cursor = 0;
    sup->phase = PHASE_RUNNING;
}

static int eval_completed(struct rv__cell *cell, struct rv__actor *actor,
                          const struct rv__fact *fact)
{
    assert(actor != NULL); /* rv__fact_check saw it */
    if (fact->eval == EVAL_DESCRIPTION)
        return rv__frame_evolve_described(cell, actor, fact->result);
    rv__actor_absolve(actor);
    actor->crashes = 0;
    if (actor->is_frame) {
        actor->frame.input = rv__blob_ref(fact->result);
        actor->phase = PHASE_RUNNING;
    } else {
        rv__blob_unref(actor->value);
        actor->value = rv__blob_ref(fact->result);
        actor->phase = PHASE_EVALUATED;
        if (fact->eval == EVAL_WHEN && rv__truth(actor->value))
            actor->phase = PHASE_BEGIN; /* as soon as there is a place */
        if (fact->eval == EVAL_ITEMS)
            take_items(actor, fact);
    }
    rv__actor_owe(cell, actor);
    rv__actor_place(cell, actor);
    return RV_OK;
}

/* The input of a nested workflow: its sequence fails before it begins, and no handler is told. */
static void input_failed(struct rv__cell *cell, struct rv__actor *frame,
                         const struct rv__fact *fact)
{
    assert(frame != NULL); /* rv__fact_check saw it */
    frame->phase = PHASE_RUNNING;
    frame->frame.failed = true;
    frame->frame.handled = true;
    rv__actor_absolve(frame);
    frame->value = rv__blob_ref(fact->error);
    rv__actor_owe(cell, frame);
    rv__actor_place(cell, frame);
}

/* -------------------------------------------------------------------------- supervisors --- */

static int node_started(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact)
{
    const struct rv__node *node = cell->plan->nodes[fact->node];
    const struct rv__actor *owner = sup != NULL ? sup : rv__cell_find(cell, fact->owner);
    struct rv__inner *outcomes = NULL;
    struct rv__blob *key = NULL;
    int eval = 0, rc = RV_ENOMEM;

    if (node->kind == NODE_CONCURRENT) {
        outcomes = rv__inner_new(node->body_count);
        if (outcomes == NULL)
            goto out;
        outcomes->base = rv__entry_ref(rv__actor_frame(owner)->frame.scope);
    }
    if (node->kind == NODE_FOREACH || node->kind == NODE_LOOP) {
        key = rv__row_key(owner, node);
        if (key == NULL)
            goto out;
    }
    if (sup == NULL)
        sup = new_node(cell, fact);
    if (sup == NULL)
        goto out;

    rv__blob_unref(sup->value); /* of its `when` */
    sup->value = NULL;
    sup->phase = (uint8_t)rv__kinds[node->kind]->first(node, &eval);
    sup->eval = (uint8_t)eval;
    sup->sup.inner = outcomes;
    sup->sup.key = key;
    outcomes = NULL;
    key = NULL;
    rv__actor_place(cell, sup);
    rc = RV_OK;
out:
    rv__inner_unref(outcomes);
    rv__blob_unref(key);
    return rc;
}

/* forEach: where its item is in the text of the items; the cursor moves behind it. */
static void next_item(struct rv__actor *sup, struct rv__actor *frame)
{
    struct rv__str items = rv__blob_str(sup->value), item;
    struct rv__json_iter it;
    rv__json_iter_init(&it, items);
    if (sup->sup.cursor > 0)
        it.at = items.at + sup->sup.cursor;
    bool there = rv__json_next(&it, NULL, &item);
    assert(there); /* rv__fact_check saw that it is */
    (void)there;
    frame->frame.item_at = (size_t)(item.at - items.at);
    frame->frame.item_len = item.len;
    sup->sup.cursor = (size_t)(it.at - items.at);
}

static int body_started(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *frame = rv__actor_new(cell);
    if (frame == NULL)
        return RV_ENOMEM;
    struct rv__actor *sup = rv__cell_find(cell, fact->owner);
    enum rv__node_kind kind = sup->node->kind;
    bool iterates = kind == NODE_FOREACH || kind == NODE_LOOP;
    const struct rv__body *body = &sup->node->bodies[iterates ? 0 : fact->index];

    sup->phase = PHASE_RUNNING;
    if (kind == NODE_FOREACH && sup->sup.items == NULL)
        next_item(sup, frame);
    if (kind == NODE_FOREACH || kind == NODE_CONCURRENT) {
        sup->sup.next++;
        sup->sup.active++;
    }
    rv__frame_evolve_start(cell, frame, sup, body, iterates ? fact->index : -1);
    rv__actor_place(cell, sup);
    return RV_OK;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *frame, const struct rv__fact *fact)
{
    assert(frame != NULL); /* rv__fact_check saw it */
    struct rv__actor *sup = frame->owner;
    int rc = rv__kinds[sup->node->kind]->body_ended(cell, sup, frame, fact);
    if (rc < 0)
        return rc;
    rv__actor_end(cell, frame);
    rv__actor_place(cell, sup);
    return RV_OK;
}

/* The sequence goes on, the block too: below a shade that keeps what its steps see. */
static int node_detached(struct rv__cell *cell, struct rv__actor *sup, struct rv__entry *entry)
{
    static const char mark[] = "{\"detached\":true}";
    int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__actor *frame = sup->owner, *shade = NULL;
    struct rv__blob *state = rv__blob_new((struct rv__str){ mark, sizeof mark - 1 });
    struct rv__blob *prefix = NULL;
    struct rv__buf buf;
    int rc = RV_ENOMEM;

    size_t count = rv__actor_vector(sup, vector);
    rv__buf_init(&buf, (size_t)32 * (RV__PLAN_MAX_DEPTH + 1));
    rv__buf_char(&buf, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rv__buf_char(&buf, ',');
        rv__buf_int(&buf, vector[i]);
    }
    rv__buf_char(&buf, ']');
    if (state == NULL || rv__buf_err(&buf, NULL) < 0)
        goto out;
    prefix = rv__blob_new(rv__buf_view(&buf));
    if (prefix == NULL)
        goto out;
    shade = rv__actor_new(cell);
    if (shade == NULL)
        goto out;

    const struct rv__actor *loop = rv__actor_loop(frame);
    shade->is_frame = true;
    shade->phase = PHASE_RUNNING;
    shade->node = sup->node;
    shade->frame.body = frame->frame.body;
    shade->frame.iteration = -1;
    shade->frame.failed_node = RV__NO_NODE;
    shade->frame.prefix = rv__blob_ref(prefix);
    shade->frame.base = rv__entry_ref(frame->frame.scope);
    shade->frame.scope = rv__entry_ref(frame->frame.scope);
    shade->frame.last = rv__entry_ref(frame->frame.last);
    shade->frame.input = rv__blob_ref(frame->frame.input);
    if (loop != NULL) {
        const struct rv__actor *items = loop->frame.prefix != NULL ? loop : loop->owner;
        shade->frame.iteration = loop->frame.iteration;
        shade->frame.item_at = loop->frame.item_at;
        shade->frame.item_len = loop->frame.item_len;
        shade->value = loop->frame.item_len > 0 ? rv__blob_ref(items->value) : NULL;
        shade->frame.items = rv__items_ref(rv__frame_items(loop));
    }
    rv__actor_link(cell, shade, NULL);
    rv__actor_unlink(cell, sup);
    rv__actor_link(cell, sup, shade);
    sup->detached = true;
    rv__actor_place(cell, sup);

    entry->state = rv__blob_ref(state);
    rv__frame_evolve_child(cell, frame, entry, false, NULL);
    rc = RV_OK;
out:
    rv__buf_done(&buf);
    rv__blob_unref(state);
    rv__blob_unref(prefix);
    return rc;
}

/* The node has ended, and all that is alive below it with it. */
static int node_ended(struct rv__cell *cell, struct rv__actor *actor, const struct rv__fact *fact,
                      enum rv__status status)
{
    assert(actor != NULL); /* rv__fact_check saw it */
    struct rv__actor *frame = actor->owner;
    const struct rv__node *node = actor->node;
    if (actor->detached) { /* its entry was made long ago */
        rv__actor_end(cell, actor);
        rv__actor_place(cell, frame);
        return RV_OK;
    }

    struct rv__entry *entry = rv__node_left(actor, status);
    if (entry == NULL)
        return RV_ENOMEM;
    if (status == STATUS_COMPLETED && node->kind == NODE_CONCURRENT && node->concurrent.detached) {
        int rc = node_detached(cell, actor, entry);
        if (rc < 0)
            rv__entry_unref(entry);
        else if (fact->describe)
            rv__frame_evolve_describe(cell, frame);
        return rc;
    }
    rv__actor_end(cell, actor);
    rv__frame_evolve_child(cell, frame, entry, status == STATUS_FAILED, fact->error);
    if (fact->describe)
        rv__frame_evolve_describe(cell, frame);
    return RV_OK;
}

static int apply(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = fact->owner == 0 ? rv__cell_find(cell, fact->actor) : NULL;
    switch (fact->kind) {
    case FACT_RUN_STARTED: return run_started(cell, fact);
    case FACT_RUN_COMPLETED: run_ended(cell, fact, RUN_COMPLETED); return RV_OK;
    case FACT_RUN_FAILED: run_ended(cell, fact, RUN_FAILED); return RV_OK;
    case FACT_RUN_CANCELLED: return run_cancelled(cell, fact);
    case FACT_RUN_SUSPENDED: run_suspended(cell, fact); return RV_OK;
    case FACT_RUN_RESUMED: run_resumed(cell); return RV_OK;
    case FACT_RUN_ABORTED: return run_aborted(cell, fact);
    case FACT_EVAL_STARTED: return eval_started(cell, actor, fact);
    case FACT_EVAL_COMPLETED: return eval_completed(cell, actor, fact);
    case FACT_EVAL_FAILED:
        if (fact->eval == EVAL_DESCRIPTION)
            return rv__frame_evolve_described(cell, actor, NULL);
        input_failed(cell, actor, fact);
        return RV_OK;
    case FACT_NODE_STARTED: return node_started(cell, actor, fact);
    case FACT_NODE_COMPLETED: return node_ended(cell, actor, fact, STATUS_COMPLETED);
    case FACT_NODE_FAILED: return node_ended(cell, actor, fact, STATUS_FAILED);
    case FACT_NODE_SKIPPED: return node_ended(cell, actor, fact, STATUS_SKIPPED);
    case FACT_BODY_STARTED: return body_started(cell, fact);
    case FACT_BODY_ENDED: return body_ended(cell, actor, fact);
    case FACT_STEP_STARTED:
    case FACT_STEP_COMPLETED:
    case FACT_STEP_SKIPPED:
    case FACT_STEP_FAILED:
    case FACT_STEP_RETRYING:
    case FACT_STEP_PARKED:
    case FACT_TIMER_FIRED: return rv__step_evolve(cell, actor, fact);
    case FACT_STEP_LOST: lost(cell, actor, fact); return RV_OK;
    case FACT_SIGNAL_RECEIVED: return signal_received(cell, fact);
    case FACT_DETACHED_ENDED: rv__actor_end(cell, actor); return RV_OK;
    case FACT_DETACHED_CANCELLED:
        while (cell->shades != NULL)
            rv__actor_end(cell, cell->shades);
        return RV_OK;
    case FACT_KINDS: break;
    }
    assert(!"no such fact");
    return RV_ESTATE;
}

int rv__evolve(struct rv__cell *cell, const struct rv__fact *fact)
{
    /* What the fact holds may be an actor's, which ends: it is looked at first. */
    uint64_t last = rv__blob_is_reference(fact->result) ? fact->result->value : 0;
    if (rv__blob_is_reference(fact->state) && fact->state->value > last)
        last = fact->state->value;
    if (fact->items != NULL)
        last = fact->items->first + (uint64_t)fact->items->pieces - 1;
    int rc = apply(cell, fact);
    if (rc == RV_OK && last >= cell->next_value)
        cell->next_value = last + 1;
    return rc;
}
