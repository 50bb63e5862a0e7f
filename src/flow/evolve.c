/* evolve.c: applies facts. The only writer of a cell, with step.c and frame.c, which it calls.
 *
 * It decides nothing: a fact that passed rv__fact_check() always applies, unless memory runs out. Then nothing
 * has changed, because all memory is allocated before the first change. */
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
    cell->nonce = fact->nonce;
    cell->limit = fact->limit;
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

static void run_ended(struct rv__cell *cell, const struct rv__fact *fact,
                      enum rv__run_status status)
{
    end_root(cell);
    cell->status = status;
    cell->error = rv__blob_ref(fact->error);
    cell->failed_node = fact->node;
    rv__suspensions_clear(cell);
}

/* Cancels everything with one fact. The current top-level node is listed as cancelled. */
static int run_cancelled(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__entry *results;
    if (rv__frame_left(cell->root, &results) < 0)
        return RV_ENOMEM;
    run_ended(cell, fact, RUN_CANCELLED);
    rv__entry_unref(cell->results);
    cell->results = results;
    while (cell->detached_scopes != NULL && !RV__BUG(16))
        rv__actor_end(cell, cell->detached_scopes);
    return RV_OK;
}

/* Cancels everything with one fact; the outermost sequence then runs its `finally`. */
static int run_cancelling(struct rv__cell *cell)
{
    struct rv__actor *root = cell->root;
    struct rv__entry *results;
    if (rv__frame_in_finally(root)) {
        root->frame.asked = true;
        return RV_OK;
    }
    if (rv__frame_left(root, &results) < 0)
        return RV_ENOMEM;
    cell->status = RUN_RUNNING;
    rv__suspensions_clear(cell);
    if (root->child != NULL)
        rv__actor_end(cell, root->child);
    while (cell->detached_scopes != NULL)
        rv__actor_end(cell, cell->detached_scopes);
    if (root->phase == PHASE_TO_EVAL || root->phase == PHASE_EVAL)
        (void)rv__frame_evolve_described(cell, root, NULL); /* it goes without */
    if (results != root->frame.scope) {                     /* the node that was in flight */
        rv__entry_unref(root->frame.last);
        root->frame.last = rv__entry_ref(results);
    }
    rv__entry_unref(root->frame.scope);
    root->frame.scope = results;
    root->frame.cancelled = root->frame.asked = true;
    root->phase = PHASE_RUNNING;
    rv__actor_place(cell, root);
    return RV_OK;
}

/* Work in flight is lost, or never began: it waits for a place again. */
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

static int run_suspended(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = rv__cell_find(cell, fact->actor);
    int rc = rv__suspension_add(cell, actor, fact->which, fact->at_ms, fact->error);
    if (rc < 0)
        return rc;
    cell->status = RUN_SUSPENDED;
    if (actor != NULL && fact->which != 0)
        rv__flow_kind(actor->node)->suspended(actor, fact->which, true);
    if (actor != NULL)
        rv__actor_place(cell, actor);
    return RV_OK;
}

/* One suspension is decided; or none is left. */
static int run_resumed(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = rv__cell_find(cell, fact->actor);
    struct rv__suspension *decided = rv__suspension_find(cell, actor, fact->which);
    if (actor != NULL && fact->which != 0) {
        int rc = rv__flow_kind(actor->node)
                     ->decided(cell, actor, fact->which, (enum rv__decision)fact->decision);
        if (rc < 0)
            return rc;
        decided = rv__suspension_find(cell, actor, fact->which);
    } else if (actor != NULL) {
        actor->crashes = 0;
        rv__actor_absolve(actor);
    }
    if (decided != NULL)
        rv__suspension_remove(cell, decided);
    cell->status = cell->suspended != NULL ? RUN_SUSPENDED : RUN_RUNNING;
    if (actor != NULL)
        rv__actor_place(cell, actor);
    return RV_OK;
}

/* The current or next top-level node fails with the reason; the run then ends as after any failure. */
static int run_aborted(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *root = cell->root, *child = root->child;
    const struct rv__body *body = root->frame.body;
    bool in_finally = rv__frame_in_finally(root);
    bool in_handler = child != NULL && child->node->is_handler && !in_finally;
    bool at_end = root->frame.at == body->count || root->frame.cancelled;
    struct rv__entry *entry = NULL;
    if (!root->frame.failed && !at_end) {
        entry = child != NULL ? rv__node_left(child, STATUS_FAILED)
                              : rv__entry_new(body->nodes[root->frame.at], STATUS_FAILED);
        if (entry == NULL)
            return RV_ENOMEM;
        entry->error = rv__blob_ref(fact->error);
    }
    cell->status = RUN_RUNNING;
    rv__suspensions_clear(cell);
    if (child != NULL)
        rv__actor_end(cell, child);
    if (root->phase == PHASE_TO_EVAL || root->phase == PHASE_EVAL)
        (void)rv__frame_evolve_described(cell, root, NULL); /* it goes without */
    if (entry != NULL) {
        rv__frame_evolve_child(cell, root, entry, true, fact->error);
        return RV_OK;
    }
    root->frame.handled |= in_handler || in_finally || root->frame.cancelled; /* it is past that */
    root->frame.finished |= in_finally;
    root->phase = PHASE_RUNNING;
    if (!root->frame.failed &&
        !root->frame.cancelled) { /* all nodes are done: the last one failed */
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

/* The items, if the value is an array; if not, the node fails. */
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
    } else if (fact->eval == EVAL_INPUT) { /* a step's: its first attempt is next */
        actor->step.made = rv__blob_ref(fact->result);
        actor->phase = PHASE_BEGIN;
    } else {
        rv__blob_unref(actor->value);
        actor->value = rv__blob_ref(fact->result);
        actor->phase = PHASE_EVALUATED;
        if (fact->eval == EVAL_WHEN && rv__truth(actor->value)) {
            bool input = rv__input_expr(actor->node, NULL) != NULL && !RV__BUG(27);
            actor->phase = input ? PHASE_TO_EVAL : PHASE_BEGIN; /* when there is a place */
            actor->eval = input ? EVAL_INPUT : EVAL_WHEN;
        }
        if (fact->eval == EVAL_ITEMS)
            take_items(actor, fact);
    }
    rv__actor_owe(cell, actor);
    rv__actor_place(cell, actor);
    return RV_OK;
}

/* The input of a nested workflow failed: its sequence fails before it begins, and no handler runs. */
static void input_failed(struct rv__cell *cell, struct rv__actor *frame,
                         const struct rv__fact *fact)
{
    assert(frame != NULL); /* rv__fact_check saw it */
    frame->phase = PHASE_RUNNING;
    frame->frame.failed = true;
    frame->frame.handled = true;
    frame->frame.finished = frame->frame.body->wrap != NULL && /* a tool has no handlers */
                            frame->frame.body->wrap->finally != NULL;
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
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    struct rv__inner *outcomes = NULL;
    struct rv__schedule *schedule = NULL;
    struct rv__blob *key = NULL;
    int eval = 0, rc = RV_ENOMEM;

    if (kind->schedule != NULL) {
        schedule = kind->schedule(cell, node);
        if (schedule == NULL)
            goto out;
    }
    if (kind->outcomes != NULL) {
        outcomes = kind->outcomes(node, rv__actor_frame(owner)->frame.scope);
        if (outcomes == NULL)
            goto out;
    }
    if (kind->carry_on != NULL && kind->carry_on(node, rv__actor_frame(owner), outcomes) < 0)
        goto out;
    if (rv__iterates(node)) {
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
    sup->phase = (uint8_t)kind->first_phase(node, &eval);
    sup->eval = (uint8_t)eval;
    sup->sup.inner = outcomes;
    sup->sup.key = key;
    sup->sup.schedule = schedule;
    outcomes = NULL;
    schedule = NULL;
    key = NULL;
    rv__actor_place(cell, sup);
    rc = RV_OK;
out:
    rv__inner_unref(outcomes);
    rv__free(schedule);
    rv__blob_unref(key);
    return rc;
}

static int body_started(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *sup = rv__cell_find(cell, fact->owner);
    const struct rv__flow_kind *kind = rv__flow_kind(sup->node);
    bool iterates = rv__iterates(sup->node), none = kind->inputs == NULL;
    const struct rv__body *body = &sup->node->bodies[iterates ? 0 : fact->index];
    struct rv__inner *inputs = none ? NULL : kind->inputs(sup, fact->index, &none);
    if (inputs == NULL && !none)
        return RV_ENOMEM;
    struct rv__actor *frame = rv__actor_new(cell);
    if (frame != NULL && fact->name != NULL && rv__attachment_begun(cell, sup, fact) < 0) {
        rv__actor_unnew(cell, frame);
        frame = NULL;
    }
    if (frame == NULL) {
        rv__inner_unref(inputs);
        return RV_ENOMEM;
    }

    sup->phase = PHASE_RUNNING;
    if (kind->body_started != NULL)
        kind->body_started(sup, frame);
    int64_t number = iterates ? fact->index : fact->generation > 0 ? fact->generation : -1;
    rv__frame_evolve_start(cell, frame, sup, body, number);
    frame->frame.inputs = inputs;
    frame->frame.attachment = rv__blob_ref(fact->name);
    frame->frame.started_ms = fact->name != NULL ? fact->at_ms : 0;
    struct rv__actor *timed = kind->timer != NULL ? sup : frame;
    if (fact->due_ms != 0) {
        timed->due_ms = fact->due_ms;
        rv__actor_owe(cell, timed);
    }
    rv__actor_place(cell, sup);
    return RV_OK;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *frame, const struct rv__fact *fact)
{
    assert(frame != NULL); /* rv__fact_check saw it */
    struct rv__actor *sup = frame->owner;
    int rc = rv__flow_kind(sup->node)->body_ended(cell, sup, frame, fact);
    if (rc < 0)
        return rc;
    rv__actor_end(cell, frame);
    rv__actor_place(cell, sup);
    return RV_OK;
}

/* The sequence continues, and so does the block, below a detached scope that keeps what its steps see. */
static int node_detached(struct rv__cell *cell, struct rv__actor *sup, struct rv__entry *entry)
{
    static const char mark[] = "{\"detached\":true}";
    int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__actor *frame = sup->owner, *detached_scope = NULL;
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
    detached_scope = rv__actor_new(cell);
    if (detached_scope == NULL)
        goto out;

    const struct rv__actor *loop = rv__actor_loop(frame);
    detached_scope->is_frame = true;
    detached_scope->phase = PHASE_RUNNING;
    detached_scope->node = sup->node;
    detached_scope->frame.body = frame->frame.body;
    detached_scope->frame.iteration = -1;
    detached_scope->frame.failed_node = RV__NO_NODE;
    detached_scope->frame.prefix = rv__blob_ref(prefix);
    detached_scope->frame.base = rv__entry_ref(frame->frame.scope);
    detached_scope->frame.scope = rv__entry_ref(frame->frame.scope);
    detached_scope->frame.last = rv__entry_ref(frame->frame.last);
    detached_scope->frame.input = rv__blob_ref(frame->frame.input);
    if (loop != NULL) {
        const struct rv__actor *items = loop->frame.prefix != NULL ? loop : loop->owner;
        detached_scope->frame.iteration = loop->frame.iteration;
        detached_scope->frame.item_at = loop->frame.item_at;
        detached_scope->frame.item_len = loop->frame.item_len;
        detached_scope->value = loop->frame.item_len > 0 ? rv__blob_ref(items->value) : NULL;
        detached_scope->frame.items = rv__items_ref(rv__frame_items(loop));
    }
    rv__actor_link(cell, detached_scope, NULL);
    rv__actor_unlink(cell, sup);
    rv__actor_link(cell, sup, detached_scope);
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

/* The node ends, with everything alive in it. */
static int node_ended(struct rv__cell *cell, struct rv__actor *actor, const struct rv__fact *fact,
                      enum rv__status status)
{
    assert(actor != NULL); /* rv__fact_check saw it */
    struct rv__actor *frame = actor->owner;
    if (actor->node->is_handler)
        return rv__handler_ended(cell, actor);
    if (actor->detached) { /* its entry was made when it was detached */
        rv__actor_end(cell, actor);
        rv__actor_place(cell, frame);
        return RV_OK;
    }

    struct rv__entry *entry = rv__node_left(actor, status);
    if (entry == NULL)
        return RV_ENOMEM;
    entry->error = rv__blob_ref(fact->error); /* only a failure has one */
    if (status == STATUS_COMPLETED && rv__flow_kind(actor->node)->drains != NULL)
        frame->frame.drained |= rv__flow_kind(actor->node)->drains(actor);
    if (status == STATUS_COMPLETED && rv__detaches(actor->node)) {
        int rc = node_detached(cell, actor, entry);
        if (rc < 0)
            rv__entry_unref(entry);
        else if (fact->describe)
            rv__frame_evolve_describe(cell, frame);
        return rc;
    }
    rv__actor_end(cell, actor);
    const struct rv__step_config *config = rv__node_config(entry->node);
    bool hard = status == STATUS_FAILED && !(config != NULL && config->continue_on_error);
    rv__frame_evolve_child(cell, frame, entry, hard, fact->error);
    if (fact->describe)
        rv__frame_evolve_describe(cell, frame);
    return RV_OK;
}

/* Skipped, because a final state has completed. It takes an actor number all the same, for readers. */
static int node_left_out(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__entry *entry = rv__entry_new(cell->plan->nodes[fact->node], STATUS_SKIPPED);
    if (entry == NULL)
        return RV_ENOMEM;
    cell->next_id++;
    rv__frame_evolve_child(cell, rv__cell_find(cell, fact->owner), entry, false, NULL);
    return RV_OK;
}

static int apply(struct rv__cell *cell, const struct rv__fact *fact)
{
    struct rv__actor *actor = fact->owner == 0 ? rv__cell_find(cell, fact->actor) : NULL;
    switch (fact->kind) {
    case FACT_RUN_STARTED: return run_started(cell, fact);
    case FACT_RUN_COMPLETED: run_ended(cell, fact, RUN_COMPLETED); return RV_OK;
    case FACT_RUN_FAILED: run_ended(cell, fact, RUN_FAILED); return RV_OK;
    case FACT_RUN_CANCELLING: return run_cancelling(cell);
    case FACT_RUN_CANCELLED: return run_cancelled(cell, fact);
    case FACT_RUN_SUSPENDED: return run_suspended(cell, fact);
    case FACT_RUN_RESUMED: return run_resumed(cell, fact);
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
    case FACT_NODE_SKIPPED:
        return fact->owner != 0 ? node_left_out(cell, fact)
                                : node_ended(cell, actor, fact, STATUS_SKIPPED);
    case FACT_BODY_STARTED: return body_started(cell, fact);
    case FACT_BODY_ENDED: return body_ended(cell, actor, fact);
    case FACT_STEP_STARTED:
    case FACT_STEP_COMPLETED:
    case FACT_STEP_SKIPPED:
    case FACT_STEP_FAILED:
    case FACT_STEP_RETRYING:
    case FACT_STEP_PARKED:
    case FACT_STEP_NOTED:
    case FACT_TIMER_FIRED:
        return actor != NULL && !rv__is_step(actor->node)
                   ? rv__flow_kind(actor->node)->retried(cell, actor, fact)
                   : rv__step_evolve(cell, actor, fact);
    case FACT_NODE_RETRYING:
        assert(actor != NULL);
        return rv__flow_kind(actor->node)->retried(cell, actor, fact);
    case FACT_STEP_GIVEN:
    case FACT_STEP_READ: return RV_OK; /* for readers */
    case FACT_STEP_LOST: lost(cell, actor, fact); return RV_OK;
    case FACT_SIGNAL_RECEIVED: return signal_received(cell, fact);
    case FACT_DETACHED_ENDED: rv__actor_end(cell, actor); return RV_OK;
    case FACT_DETACHED_CANCELLED:
        while (cell->detached_scopes != NULL)
            rv__actor_end(cell, cell->detached_scopes);
        return RV_OK;
    case FACT_KINDS: break;
    }
    assert(!"no such fact");
    return RV_ESTATE;
}

int rv__evolve(struct rv__cell *cell, const struct rv__fact *fact)
{
    /* Read this first: the fact may refer to a blob of an actor that ends. */
    uint64_t last = rv__blob_is_reference(fact->result) ? fact->result->value : 0;
    if (rv__blob_is_reference(fact->state) && fact->state->value > last)
        last = fact->state->value;
    if (rv__blob_is_reference(fact->given) && fact->given->value > last)
        last = fact->given->value;
    if (fact->items != NULL)
        last = fact->items->first + (uint64_t)fact->items->pieces - 1;
    int rc = apply(cell, fact);
    if (rc == RV_OK && last >= cell->next_value)
        cell->next_value = last + 1;
    return rc;
}
