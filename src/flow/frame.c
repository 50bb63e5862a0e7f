/* frame.c: the actor of a sequence: the nodes of a body, one after the other.
 *
 *   [to_eval ──▶ eval ──▶] running ──▶ ended     (and to_eval, eval between two nodes, for the
 *   (input of a nested       │                    description of the first)
 *    workflow)               │  a node fails hard, and the workflow has a handler
 *                            ▼
 *                          failed ──handler ends──▶ running (failed, handled) ──▶ ended
 *
 * A workflow's `finally` runs last: after its nodes, after its handler, or (the outermost) after a cancel.
 *
 * It owns at most one child: the node that runs, or a handler. The fact of its end tells its supervisor; the end of
 * the outermost frame ends the run. */
#include "base/error.h"
#include "base/bugs.h"
#include "flow/cell.h"

bool rv__truth(const struct rv__blob *json)
{
    if (rv__blob_is_reference(json)) /* `false` and `null` are never references */
        return true;
    struct rv__str text = rv__blob_str(json);
    return !rv__str_is(text, "false") && !rv__str_is(text, "null");
}

const struct rv__node *rv__frame_next(const struct rv__actor *frame)
{
    const struct rv__body *body = frame->frame.body;
    const struct rv__wrap *wrap = body->wrap;
    if (frame->phase == PHASE_FAILED)
        return wrap->on_error;
    if (!frame->frame.failed && !frame->frame.cancelled && frame->frame.at < body->count)
        return body->nodes[frame->frame.at];
    if (RV__BUG(64) && frame->frame.failed)
        return NULL;
    return wrap != NULL && !frame->frame.finished ? wrap->finally : NULL;
}

bool rv__frame_in_finally(const struct rv__actor *frame)
{
    return frame->child != NULL && frame->child->node->is_handler && frame->phase == PHASE_RUNNING;
}

/* ------------------------------------------------------------------------------- decide --- */

/* Begin the next node. */
int rv__frame_begin(struct rv__turn *turn, struct rv__actor *frame, rv_error *err)
{
    if (frame->phase == PHASE_TO_EVAL)
        return rv__eval_start(turn, frame, err);
    return rv__node_begin(turn, frame, NULL, rv__frame_next(frame), err);
}

/* The end of one body of several is a fact of its own. */
static int say_ended(struct rv__turn *turn, struct rv__actor *frame, struct rv__blob *error,
                     rv_error *err)
{
    const struct rv__flow_kind *kind = rv__flow_kind(frame->owner->node);
    struct rv__fact fact = {
        .kind = FACT_BODY_ENDED,
        .actor = frame->id,
        .node = frame->owner->node->id,
        .index = rv__iterates(frame->owner->node) ? frame->frame.iteration
                                                  : frame->frame.body->index,
        .status = error != NULL ? STATUS_FAILED : STATUS_COMPLETED,
        .error = error,
    };
    if (kind->settle != NULL)
        kind->settle(frame, &fact);
    return rv__say(turn, &fact, err);
}

int rv__frame_timed_out(struct rv__turn *turn, struct rv__actor *frame, rv_error *err)
{
    const struct rv__body *body = frame->frame.body;
    struct rv__blob *why = rv__error_blob(
        "timeout", "state '%.*s' timed out after %lld ms", RV__ARG(body->alias),
        (long long)body->owner->stage.states[body->index].timeout_ms);
    struct rv__blob *error = why != NULL ? rv__error_of(why, frame) : NULL;
    rv__blob_unref(why);
    if (error == NULL)
        return rv__nomem(err);
    int rc = say_ended(turn, frame, error, err);
    rv__blob_unref(error);
    return rc;
}

bool rv__frame_leaves_out(const struct rv__actor *frame, const struct rv__node *node)
{
    return frame->frame.drained && !node->is_handler && rv__flow_kind(node)->drained_out;
}

static int say_left_out(struct rv__turn *turn, struct rv__actor *frame, const struct rv__node *node,
                        rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_NODE_SKIPPED,
                             .actor = turn->cell->next_id,
                             .owner = frame->id,
                             .node = node->id };
    return rv__say(turn, &fact, err);
}

int rv__say_run_ended(struct rv__turn *turn, struct rv__actor *root, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_RUN_COMPLETED, .node = RV__NO_NODE };
    if (root->frame.cancelled) {
        fact.kind = FACT_RUN_CANCELLED;
    } else if (root->frame.failed) {
        fact.kind = FACT_RUN_FAILED;
        fact.error = root->value;
        fact.node = root->frame.failed_node;
    }
    return rv__say(turn, &fact, err);
}

int rv__frame_advance(struct rv__turn *turn, struct rv__actor *frame, rv_error *err)
{
    if (frame->frame.prefix != NULL) {
        struct rv__fact fact = { .kind = FACT_DETACHED_ENDED,
                                 .actor = frame->id,
                                 .node = frame->node->id };
        return rv__say(turn, &fact, err);
    }
    const struct rv__node *next = frame->phase == PHASE_RUNNING ? rv__frame_next(frame) : NULL;
    if (next != NULL && rv__frame_leaves_out(frame, next))
        return say_left_out(turn, frame, next, err);
    if (frame->phase != PHASE_RUNNING || next != NULL)
        return rv__frame_begin(turn, frame, err);
    if (frame->owner == NULL)
        return rv__say_run_ended(turn, frame, err);

    if (rv__flow_kind(frame->owner->node)->body_ended != NULL)
        return say_ended(turn, frame, frame->frame.failed ? frame->value : NULL, err);
    return rv__node_end(turn, frame->owner,
                        frame->frame.failed ? FACT_NODE_FAILED : FACT_NODE_COMPLETED,
                        frame->frame.failed ? frame->value : NULL, err);
}

/* ------------------------------------------------------------------------------- evolve --- */

/* Set up a new frame. Cannot fail. */
void rv__frame_evolve_start(struct rv__cell *cell, struct rv__actor *frame, struct rv__actor *owner,
                            const struct rv__body *body, int64_t iteration)
{
    frame->is_frame = true;
    frame->phase = PHASE_RUNNING;
    frame->frame.body = body;
    frame->frame.iteration = iteration;
    frame->frame.failed_node = RV__NO_NODE;
    if (owner == NULL) {
        cell->root = frame;
        frame->frame.input = rv__blob_ref(cell->input);
        rv__actor_place(cell, frame);
        return;
    }

    const struct rv__actor *around = rv__actor_frame(owner);
    const struct rv__flow_kind *kind = rv__flow_kind(owner->node);
    struct rv__entry *scope = kind->scope != NULL ? kind->scope(owner) : NULL;
    if (scope == NULL)
        scope = around->frame.scope;
    frame->node = owner->node;
    frame->frame.base = rv__entry_ref(scope);
    frame->frame.scope = rv__entry_ref(scope);
    frame->frame.last = RV__BUG(12) ? NULL : rv__entry_ref(around->frame.last);
    if (rv__body_needs_input(body)) {
        frame->phase = PHASE_TO_EVAL;
        frame->eval = EVAL_INPUT;
    } else {
        frame->frame.input = rv__blob_ref(around->frame.input);
    }
    rv__actor_link(cell, frame, owner);
    rv__actor_place(cell, frame);
}

/* The node has ended; takes over its `entry`. Cannot fail. */
void rv__frame_evolve_child(struct rv__cell *cell, struct rv__actor *frame, struct rv__entry *entry,
                            bool hard, struct rv__blob *error)
{
    if (frame->frame.scope == frame->frame.base)
        rv__frame_count_shown(frame, 1);
    if (frame->due_ms != 0 && !RV__BUG(83)) { /* its agent ended before the time-out */
        frame->due_ms = 0;
        rv__actor_owe(cell, frame);
    }
    entry->outer = frame->frame.scope;
    frame->frame.scope = entry;
    rv__entry_unref(frame->frame.last);
    frame->frame.last = rv__entry_ref(entry);
    if (hard) {
        const struct rv__wrap *wrap = frame->frame.body->wrap;
        frame->frame.failed = true;
        frame->frame.failed_node = entry->node->id;
        rv__blob_unref(frame->value);
        frame->value = rv__blob_ref(error);
        if (wrap != NULL && wrap->on_error != NULL && !frame->frame.handled)
            frame->phase = PHASE_FAILED;
    } else {
        frame->frame.at++;
    }
    rv__actor_place(cell, frame);
}

/* Add the description to the node that ended last: in a copy of its entry, since others may read that. */
int rv__frame_evolve_described(struct rv__cell *cell, struct rv__actor *frame,
                               struct rv__blob *text)
{
    if (text != NULL) {
        struct rv__entry *entry = rv__entry_copy(frame->frame.scope);
        if (entry == NULL)
            return RV_ENOMEM;
        entry->outer = rv__entry_ref(frame->frame.scope->outer);
        entry->description = rv__blob_ref(text);
        rv__entry_unref(frame->frame.scope);
        rv__entry_unref(frame->frame.last);
        frame->frame.scope = entry;
        frame->frame.last = rv__entry_ref(entry);
    }
    frame->phase = PHASE_RUNNING;
    rv__actor_absolve(frame);
    frame->crashes = 0;
    rv__actor_owe(cell, frame);
    rv__actor_place(cell, frame);
    return RV_OK;
}

void rv__frame_evolve_describe(struct rv__cell *cell, struct rv__actor *frame)
{
    frame->phase = PHASE_TO_EVAL;
    frame->eval = EVAL_DESCRIPTION;
    rv__actor_place(cell, frame);
}
