/* view.c: what a piece of work sees of its run, and the results of a run. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

/* The status of a node that has not ended. */
static enum rv__status live_status(const struct rv__actor *node)
{
    switch ((enum rv__phase)node->phase) {
    case PHASE_RUNNING:
    case PHASE_PARKED: return STATUS_RUNNING;
    case PHASE_RETRY: return STATUS_WAITING_RETRY;
    case PHASE_READY: /* its timer has fired, or its work was lost */
        return node->step.next_attempt > node->step.attempt ? STATUS_WAITING_RETRY : STATUS_PENDING;
    case PHASE_FAILED: return STATUS_FAILED; /* its handler runs */
    case PHASE_BEGIN: return STATUS_PENDING;
    case PHASE_TO_EVAL:
    case PHASE_EVAL:
    case PHASE_EVALUATED: /* a step counts as running only with its attempt */
        return node->eval == EVAL_WHEN || rv__is_step(node->node) ? STATUS_PENDING : STATUS_RUNNING;
    case PHASES: break;
    }
    assert(!"no such phase");
    return STATUS_PENDING;
}

/* The current top-level node: reached, but without a result. */
static void write_reached(struct rv__writer *w, const struct rv__cell *cell, bool *first)
{
    const struct rv__actor *node = cell->root->child;
    if (node == NULL || node->node->is_handler)
        return;
    /* A stage is still running while one of its states waits for a decision, like every supervisor. */
    bool suspended = node->suspensions != NULL && node->suspensions->which == 0;
    rv__writer_put_key(w, node->node->alias, first);
    rv__writer_put(w, "{\"result\":null");
    if (suspended)
        rv__writer_put(w, ",\"state\":{},\"status\":\"suspended\"}");
    else /* a failed step stays until its handler has run */
        rv__writer_put_outcome_end(w, live_status(node),
                                   node->phase == PHASE_FAILED ? node->value : NULL);
}

int rv__cell_results(const struct rv__cell *cell, struct rv__row_source *rows, struct rv__buf *out,
                     uint64_t *bytes, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err, .counts = bytes != NULL };
    size_t before = out->len;
    bool first = true;
    rv__writer_put(&w, "{");
    if (cell->root != NULL) {
        rv__members_write(&w, cell->root->frame.scope, NULL, &first);
        write_reached(&w, cell, &first);
    } else {
        rv__members_write(&w, cell->results, NULL, &first);
    }
    rv__writer_put(&w, "}");
    int rc = rv__writer_end(&w);
    if (rc == RV_OK && w.counting)
        rc = rv__fail(err, RV_ETOOBIG, "the results have %llu bytes: at most %zu are read at once",
                      (unsigned long long)w.bytes, out->max_bytes);
    if (rc == RV_ETOOBIG) {
        rv__buf_cut(out, before);
        out->rc = RV_OK;
    }
    if (rc == RV_ETOOBIG && bytes != NULL)
        *bytes = w.bytes;
    return rc;
}

/* What a handler handles, for everything in it. */
static void see_failure(const struct rv__cell *cell, const struct rv__actor *actor,
                        struct rv__view *ret)
{
    while (actor != NULL && (actor->is_frame || !actor->node->is_handler))
        actor = actor->owner;
    if (actor == NULL)
        return;
    const struct rv__actor *of = actor->owner;
    ret->handler = actor->node;
    if (!of->is_frame) { /* for the step above it */
        ret->outcome = RUN_RUNNING;
        ret->error = rv__blob_ref(of->value);
        ret->failed_node = of->node;
        ret->failed_state = rv__blob_ref(of->step.state);
        return;
    }
    ret->outcome = of->frame.cancelled ? RUN_CANCELLED
                   : of->frame.failed  ? RUN_FAILED
                                       : RUN_COMPLETED;
    if (of->frame.failed) { /* for the node that failed in it */
        ret->error = rv__blob_ref(of->value);
        ret->failed_node = cell->plan->nodes[of->frame.failed_node];
        ret->failed_state = rv__blob_ref(of->frame.scope->state);
    }
}

/* The iteration that this frame is. */
static void see_iteration(const struct rv__actor *loop, struct rv__view *ret)
{
    const struct rv__actor *items = loop->frame.prefix != NULL ? loop : loop->owner;
    bool has_item = loop->frame.prefix != NULL ? loop->frame.item_len > 0
                                               : rv__has_items(loop->node);
    ret->loop_index = loop->frame.iteration;
    ret->pieces = rv__items_ref(rv__frame_items(loop));
    if (items->value != NULL && has_item && ret->pieces == NULL) {
        ret->items = rv__blob_ref(items->value);
        ret->item = (struct rv__str){ ret->items->text + loop->frame.item_at,
                                      loop->frame.item_len };
    }
}

/* The enclosing iterations, innermost first. A detached block keeps only the innermost. */
static int see_parents(const struct rv__actor *loop, struct rv__view *ret)
{
    while (loop != NULL && (loop = rv__actor_loop(loop)) != NULL) {
        ret->parent = rv__zalloc(1, sizeof *ret->parent);
        if (ret->parent == NULL)
            return RV_ENOMEM;
        ret = ret->parent;
        see_iteration(loop, ret);
        loop = loop->owner;
    }
    return RV_OK;
}

/* The innermost state around it. */
static void see_state(const struct rv__actor *actor, struct rv__view *ret)
{
    while (actor != NULL &&
           !(actor->is_frame && actor->owner != NULL && rv__flow_kind(actor->node)->inputs != NULL))
        actor = actor->owner;
    if (actor == NULL)
        return;
    ret->state = actor->frame.body;
    ret->state_attempt = rv__state_attempt(actor);
    ret->inputs = rv__inner_ref(actor->frame.inputs);
    const struct rv__child *before = &actor->owner->sup.inner->children[actor->frame.body->index];
    if (before->status == STATUS_FAILED)
        ret->state_error = rv__blob_ref(before->error);
}

/* The conversation of a turn, or of a call whose input is made. */
static void see_talk(const struct rv__actor *actor, struct rv__view *ret)
{
    const struct rv__actor *frame = rv__actor_frame(actor);
    const struct rv__actor *chat = frame->owner;
    bool input = actor->is_frame && actor->eval == EVAL_INPUT;
    bool turn = rv__actor_is_step(actor) && actor->node->step.kind == STEP_CHAT;
    if ((!turn && !input) || chat == NULL || rv__flow_kind(chat->node)->answer == NULL)
        return;
    ret->chat_number = frame->frame.iteration;
    if (chat->sup.inner->children[0].scope != chat->sup.inner->base)
        ret->talk = rv__entry_ref(chat->sup.inner->children[0].scope);
}

static bool is_outside(const struct rv__view *view, const struct rv__entry *entry)
{
    return view->fence != NULL && entry != NULL && !rv__body_encloses(view->fence, entry->node);
}

/* What a state hides from its agent is hidden from everything in it. */
static void see_fence(struct rv__view *ret)
{
    bool tool = ret->body != NULL && rv__body_is_tool(ret->body); /* the arguments of the call */
    ret->fence = RV__BUG(84) ? NULL : tool ? rv__body_fence(ret->body) : rv__node_fence(ret->node);
    if (RV__BUG(267) && ret->fence != NULL && ret->fence->owner->kind == NODE_CHAT)
        ret->fence = NULL;
    if (is_outside(ret, ret->scope)) {
        rv__entry_unref(ret->scope);
        ret->scope = NULL;
    }
    if (is_outside(ret, ret->last)) {
        rv__entry_unref(ret->last);
        ret->last = NULL;
    }
}

int rv__cell_view(const struct rv__cell *cell, uint64_t id, uint64_t token, struct rv__view *ret)
{
    const struct rv__actor *actor = rv__cell_find(cell, id);
    if (actor == NULL || actor->token != token || !rv__actor_working(actor))
        return RV_ENOTFOUND;

    const struct rv__actor *frame = rv__actor_frame(actor);
    const struct rv__actor *loop = rv__actor_loop(frame);
    const struct rv__actor *around = frame;
    bool describes = actor->is_frame && actor->eval == EVAL_DESCRIPTION;
    if (actor->is_frame && !describes) /* making its own input: it sees what its supervisor sees */
        around = rv__actor_frame(actor->owner);
    *ret = (struct rv__view){ .actor = id, .token = token, .nonce = cell->nonce, .loop_index = -1 };
    ret->node = rv__actor_about(actor);
    ret->body = actor->is_frame && !describes ? actor->frame.body : NULL;
    ret->input = rv__blob_ref(around->frame.input);
    /* A template sees what the node saw, and its result; a function what a node after it would see. */
    if (describes && (ret->node->description.kind == EXPR_JSON || RV__BUG(30))) {
        ret->ended = rv__entry_ref(frame->frame.scope);
        ret->scope = rv__entry_ref(ret->ended->outer);
        ret->last = rv__entry_ref(ret->scope != frame->frame.base ? ret->scope
                                  : frame->owner != NULL ? rv__actor_frame(frame->owner)->frame.last
                                                         : NULL);
    } else {
        ret->scope = rv__entry_ref(frame->frame.scope);
        ret->last = rv__entry_ref(frame->frame.last);
    }
    bool condition = !actor->is_frame && (actor->eval == EVAL_WHILE || actor->eval == EVAL_UNTIL);
    if (condition && actor->sup.inner != NULL) { /* it sees the last iteration */
        rv__entry_unref(ret->scope);
        ret->scope = rv__entry_ref(actor->sup.inner->children[0].scope);
    }
    if (condition) /* while: of the next iteration; until: of the one that ended */
        ret->loop_index = actor->sup.ended - (actor->eval == EVAL_UNTIL);
    else if (loop != NULL)
        see_iteration(loop, ret);
    if (see_parents(condition || loop == NULL ? loop : loop->owner, ret) < 0) {
        rv__view_done(ret);
        return RV_ENOMEM;
    }
    see_fence(ret);
    if (rv__actor_is_step(actor) && actor->phase == PHASE_RUNNING)
        ret->attempt = actor->step.attempt;
    if (ret->attempt > (RV__BUG(29) ? 1 : 0))
        ret->made = rv__blob_ref(actor->step.made);
    if (ret->attempt > 0) {
        ret->note = rv__blob_ref(actor->step.note);
        ret->answer = rv__blob_ref(actor->step.answer);
    }
    see_failure(cell, actor, ret);
    see_state(actor, ret);
    see_talk(actor, ret);
    (void)rv__actor_vector(actor, ret->vector);
    return RV_OK;
}

void rv__view_done(struct rv__view *view)
{
    rv__blob_unref(view->input);
    rv__blob_unref(view->made);
    rv__blob_unref(view->note);
    rv__blob_unref(view->answer);
    rv__blob_unref(view->items);
    rv__items_unref(view->pieces);
    rv__blob_unref(view->error);
    rv__entry_unref(view->scope);
    rv__entry_unref(view->last);
    rv__entry_unref(view->ended);
    rv__entry_unref(view->talk);
    rv__blob_unref(view->state_error);
    rv__inner_unref(view->inputs);
    rv__blob_unref(view->failed_state);
    while (view->parent != NULL) {
        struct rv__view *parent = view->parent;
        view->parent = parent->parent;
        rv__blob_unref(parent->items);
        rv__items_unref(parent->pieces);
        rv__free(parent);
    }
    *view = (struct rv__view){ .loop_index = -1 };
}

int rv__view_item(const struct rv__view *view, struct rv__row_source *rows, struct rv__blob **hold,
                  struct rv__str *ret, rv_error *err)
{
    struct rv__blob *piece;
    int64_t place;
    *hold = NULL;
    *ret = view->item;
    if (view->pieces == NULL)
        return rv__str_none(view->item) ? RV_ENOTFOUND : RV_OK;
    uint64_t number = rv__items_piece(view->pieces, view->loop_index, &place);
    int rc = rows->value(rows, number, &piece, err);
    if (rc < 0)
        return rc;
    *ret = rv__piece_item(rv__blob_str(piece), place);
    if (rv__str_none(*ret)) {
        rv__blob_unref(piece);
        return rv__fail(err, RV_ESTORE, "the value %llu has no item %lld",
                        (unsigned long long)number, (long long)place);
    }
    *hold = piece;
    return RV_OK;
}

int rv__view_items(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err)
{
    const struct rv__items *pieces = view->pieces;
    int rc = RV_OK;
    if (pieces == NULL && view->items == NULL)
        return RV_ENOTFOUND;
    if (pieces == NULL) {
        rv__buf_str(out, rv__blob_str(view->items));
        return rv__buf_err(out, err);
    }
    rv__buf_char(out, '[');
    for (int64_t i = 0; i < pieces->pieces && rc == RV_OK; i++) {
        struct rv__blob *piece = NULL;
        rc = rows->value(rows, pieces->first + (uint64_t)i, &piece, err);
        if (rc == RV_OK && piece->len < 2)
            rc = rv__fail(err, RV_ESTORE, "a piece of the items is not one");
        if (rc == RV_OK && i > 0)
            rv__buf_char(out, ',');
        if (rc == RV_OK) /* an array, without its brackets */
            rv__buf_add(out, piece->text + 1, piece->len - 2);
        rv__blob_unref(piece);
        if (rc == RV_OK)
            rc = rv__buf_err(out, err);
    }
    rv__buf_char(out, ']');
    return rc < 0 ? rc : rv__buf_err(out, err);
}

uint64_t rv__view_items_serial(const struct rv__view *view)
{
    return view->pieces->serial;
}

/* Aliases written so far: the newest entry of a name hides older ones. */
struct seen {
    struct rv__str *slots;
    size_t size;
};

static bool seen_before(struct seen *seen, struct rv__str alias)
{
    size_t at = (size_t)rv__str_hash(RV__HASH_START, alias) & (seen->size - 1);
    while (seen->slots[at].at != NULL) {
        if (rv__str_eq(seen->slots[at], alias))
            return true;
        at = (at + 1) & (seen->size - 1);
    }
    seen->slots[at] = alias;
    return false;
}

const struct rv__entry **rv__view_entries(const struct rv__view *view, size_t *count)
{
    size_t all = 0, visible = 0;
    struct seen seen = { .size = 8 };
    for (const struct rv__entry *e = view->scope; e != NULL; e = rv__view_before(view, e))
        all++;
    while (seen.size < all * 2)
        seen.size *= 2;
    seen.slots = rv__zalloc(seen.size, sizeof *seen.slots);
    const struct rv__entry **entries = rv__zalloc(all + 1, sizeof *entries);
    if (seen.slots == NULL || entries == NULL) {
        rv__free(seen.slots);
        rv__free(entries);
        return NULL;
    }
    for (const struct rv__entry *e = view->scope; e != NULL; e = rv__view_before(view, e))
        if (!seen_before(&seen, e->node->alias))
            entries[visible++] = e;
    for (size_t l = 0, r = visible; l + 1 < r; l++) { /* the chain is newest first */
        const struct rv__entry *swap = entries[l];
        entries[l] = entries[--r];
        entries[r] = swap;
    }
    rv__free(seen.slots);
    *count = visible;
    return entries;
}

int rv__view_steps(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    bool first = true;
    size_t count;
    const struct rv__entry **entries = rv__view_entries(view, &count);
    if (entries == NULL)
        return rv__nomem(err);
    rv__writer_put(&w, "{");
    for (size_t i = 0; i < count; i++) {
        rv__writer_put_key(&w, entries[i]->node->alias, &first);
        rv__entry_write(&w, entries[i]);
    }
    rv__writer_put(&w, "}");
    rv__free(entries);
    return rv__writer_end(&w);
}

int rv__view_last(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                  rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    if (view->last == NULL) {
        rv__writer_put(&w,
                       "{\"state\":{},\"alias\":null,\"stepName\":null}"); /* result: undefined */
        return rv__writer_end(&w);
    }
    rv__writer_put(&w, "{\"result\":");
    rv__result_write(&w, view->last);
    rv__writer_put(&w, ",");
    rv__writer_put_state(&w, view->last->state, view->last->description);
    rv__writer_put(&w, ",\"alias\":");
    rv__writer_put_alias(&w, view->last->node->alias);
    rv__writer_put(&w, ",\"stepName\":");
    rv__writer_put_alias(&w, view->last->node->alias);
    rv__writer_put(&w, "}");
    return rv__writer_end(&w);
}

const struct rv__entry *rv__entry_before(const struct rv__entry *entry)
{
    return entry->outer;
}

const struct rv__entry *rv__view_before(const struct rv__view *view, const struct rv__entry *entry)
{
    return is_outside(view, entry->outer) ? NULL : entry->outer;
}

const struct rv__entry *rv__view_find(const struct rv__view *view, struct rv__str alias)
{
    const struct rv__entry *entry = view->scope;
    while (entry != NULL && !rv__str_eq(entry->node->alias, alias))
        entry = rv__view_before(view, entry);
    return entry;
}
