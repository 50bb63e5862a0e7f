/* frame.c: the actor of a sequence: the nodes of a body, one after the other.
 *
 *   [to_eval ──▶ eval ──▶] running ──▶ ended     (and to_eval, eval between two nodes, for the
 *   (input of a nested       │                    description of the first)
 *    workflow)               │  a node fails hard, and the workflow has a handler
 *                            ▼
 *                          failed ──handler ends──▶ running (failed, handled) ──▶ ended
 *
 * It owns at most one child: the node that runs, or the handler. When it has ended, it tells its
 * supervisor, by the fact of that; the outermost ends the run. */
#include <assert.h>

#include "base/error.h"
#include "base/bugs.h"
#include "flow/cell.h"

bool rv__truth(const struct rv__blob *json)
{
    if (rv__blob_is_reference(json)) /* neither is that long */
        return true;
    struct rv__str text = rv__blob_str(json);
    return !rv__str_is(text, "false") && !rv__str_is(text, "null");
}

/* ------------------------------------------------------------------------------- decide --- */

/* The node that comes next begins. */
int rv__frame_begin(struct rv__turn *turn, struct rv__actor *frame, rv_error *err)
{
    const struct rv__body *body = frame->frame.body;
    if (frame->phase == PHASE_TO_EVAL)
        return rv__eval_start(turn, frame, err);
    if (frame->phase == PHASE_FAILED)
        return rv__step_begin(turn, frame, NULL, body->wrap->on_error, err);
    return rv__node_begin(turn, frame, NULL, body->nodes[frame->frame.at], err);
}

/* One body of several: its end is a fact of its own. */
static int say_ended(struct rv__turn *turn, struct rv__actor *frame, rv_error *err)
{
    struct rv__fact fact = {
        .kind = FACT_BODY_ENDED,
        .actor = frame->id,
        .node = frame->owner->node->id,
        .index = frame->frame.iteration >= 0 ? frame->frame.iteration : frame->frame.body->index,
        .status = frame->frame.failed ? STATUS_FAILED : STATUS_COMPLETED,
        .error = frame->frame.failed ? frame->value : NULL,
    };
    return rv__say(turn, &fact, err);
}

static int say_run_ended(struct rv__turn *turn, struct rv__actor *root, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_RUN_COMPLETED, .node = RV__NO_NODE };
    if (root->frame.failed) {
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
    bool ended = frame->frame.failed || frame->frame.at == frame->frame.body->count;
    if (!ended || frame->phase != PHASE_RUNNING)
        return rv__frame_begin(turn, frame, err);
    if (frame->owner == NULL)
        return say_run_ended(turn, frame, err);

    switch (frame->owner->node->kind) {
    case NODE_WORKFLOW:
    case NODE_BRANCH: /* one body: its end is the node's */
        return rv__node_end(turn, frame->owner,
                            frame->frame.failed ? FACT_NODE_FAILED : FACT_NODE_COMPLETED,
                            frame->frame.failed ? frame->value : NULL, err);
    case NODE_LOOP:
    case NODE_FOREACH:
    case NODE_CONCURRENT: return say_ended(turn, frame, err);
    case NODE_STEP:
    case NODE_KINDS: break;
    }
    assert(!"a frame belongs to a supervisor");
    return RV_ESTATE;
}

/* ------------------------------------------------------------------------------- evolve --- */

/* Set up a new frame. Takes no memory. */
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
    struct rv__entry *scope = around->frame.scope;
    if (owner->node->kind == NODE_LOOP && owner->sup.inner != NULL && !RV__BUG(18))
        scope = owner->sup.inner->children[0].scope; /* the iteration before is seen */
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

/* The node that ran has ended as `entry` says (which is taken over). Takes no memory. */
void rv__frame_evolve_child(struct rv__cell *cell, struct rv__actor *frame, struct rv__entry *entry,
                            bool hard, struct rv__blob *error)
{
    if (frame->frame.scope == frame->frame.base)
        rv__frame_tells(frame, 1);
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

/* What `text` says is put into the state of the node that ended last, in a copy: others read the entry. */
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
