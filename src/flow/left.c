/* left.c: what remains of something that ends: the entry of a node, and rows of iterations.
 *
 * A node may be ended from outside while it works: the run is cancelled or aborted, or a concurrent block has what
 * it needs. Its results then show what has finished in it, and the nodes in flight as cancelled (a failed step whose
 * handler runs stays failed), so that a user sees what may have to be undone. An iteration in flight is listed only
 * if something has finished in it: a hundred thousand that have just begun would tell nothing and slow down a
 * cancel. ADR 0017.
 *
 * Recursive; plans are not deep. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "flow/write.h"

bool rv__node_keeps_rows(const struct rv__node *node)
{
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    return kind->keeps_rows != NULL && kind->keeps_rows(node);
}

static bool tells_below(const struct rv__node *node)
{
    return rv__flow_kind(node)->tells_below || (rv__shows_nodes(node) && !RV__BUG(431));
}

/* ------------------------------------------------------------------------------- entries --- */

/* Has it run far enough to have a result? */
static bool has_begun(const struct rv__actor *actor)
{
    const struct rv__flow_kind *kind = rv__flow_kind(actor->node);
    return kind->has_begun != NULL && kind->has_begun(actor);
}

struct rv__entry *rv__step_failed_entry(const struct rv__actor *step)
{
    struct rv__entry *entry = rv__entry_new(step->node, STATUS_FAILED);
    if (entry == NULL)
        return NULL;
    entry->state = rv__blob_ref(step->step.state);
    entry->error = rv__blob_ref(step->value);
    return entry;
}

struct rv__entry *rv__node_left(const struct rv__actor *actor, enum rv__status status)
{
    struct rv__entry *entry = rv__entry_new(actor->node, status);
    if (entry == NULL || !has_begun(actor))
        return entry;
    const struct rv__flow_kind *kind = rv__flow_kind(actor->node);
    entry->inner = kind->inner(actor);
    if (entry->inner != NULL && kind->state != NULL)
        entry->state = kind->state(actor);
    if (entry->inner == NULL || (kind->state != NULL && entry->state == NULL)) {
        rv__entry_unref(entry);
        return NULL;
    }
    return entry;
}

/* The node in flight in it; handlers do not count. */
static const struct rv__actor *in_flight(const struct rv__actor *frame)
{
    const struct rv__actor *child = frame->child;
    return child != NULL && !child->node->is_handler ? child : NULL;
}

int rv__frame_left(const struct rv__actor *frame, struct rv__entry **ret)
{
    const struct rv__actor *child = in_flight(frame);
    struct rv__entry *entry = NULL;
    if (child != NULL) {
        bool failed = rv__is_step(child->node) && child->phase == PHASE_FAILED;
        entry = failed ? rv__step_failed_entry(child) /* only its handler is cancelled */
                       : rv__node_left(child, STATUS_CANCELLED);
        if (entry == NULL)
            return RV_ENOMEM;
        entry->outer = rv__entry_ref(frame->frame.scope);
    }
    *ret = entry != NULL ? entry : rv__entry_ref(frame->frame.scope);
    return RV_OK;
}

/* May the node in flight contain something that is listed? The plan is asked first: with a hundred thousand
 * iterations, reading each actor costs a cache miss. */
static const struct rv__actor *open_below(const struct rv__actor *frame)
{
    const struct rv__body *body = frame->frame.body;
    if (frame->frame.at >= body->count || !tells_below(body->nodes[frame->frame.at]))
        return NULL;
    return in_flight(frame);
}

void rv__frame_count_shown(const struct rv__actor *frame, int more)
{
    struct rv__actor *sup = frame->owner;
    /* In a damaged snapshot it may have any owner: that is detected later. */
    if (sup != NULL && !sup->is_frame && !rv__is_step(sup->node))
        sup->sup.shown += more;
}

bool rv__frame_leaves(const struct rv__actor *frame)
{
    if (frame->frame.scope != frame->frame.base)
        return true;
    const struct rv__actor *child = open_below(frame);
    if (child == NULL || !has_begun(child))
        return false;
    if (child->sup.ended > 0)
        return true;
    for (const struct rv__actor *inner = child->child; inner != NULL; inner = inner->next)
        if (rv__frame_leaves(inner))
            return true;
    return false;
}

/* ---------------------------------------------------------------------------------- rows --- */

static int make_room(struct rv__facts *facts, rv_error *err)
{
    if (facts->row_count < facts->row_cap)
        return RV_OK;
    size_t cap = facts->row_cap ? facts->row_cap * 2 : 16;
    struct rv__row *rows = rv__realloc(facts->rows, cap * sizeof *rows);
    if (rows == NULL)
        return rv__nomem(err);
    facts->rows = rows;
    facts->row_cap = cap;
    return RV_OK;
}

/* Takes over both texts, which may have failed. */
static int put_row(struct rv__facts *facts, uint32_t node, int64_t index, struct rv__buf *key,
                   struct rv__buf *json, rv_error *err)
{
    struct rv__row row = { .node = node, .index = index };
    int rc = make_room(facts, err);
    row.json.len = json->len;
    row.key.len = key->len;
    row.json.at = rc == RV_OK && json->rc == RV_OK ? rv__buf_take(json) : NULL;
    row.key.at = rv__buf_take(key);
    rv__buf_done(json);
    rv__buf_done(key);
    if (row.json.at == NULL || row.key.at == NULL) {
        rv__free((char *)row.json.at);
        rv__free((char *)row.key.at);
        return rv__nomem(err);
    }
    facts->rows[facts->row_count++] = row;
    facts->row_bytes += row.json.len;
    return RV_OK;
}

static bool is_attempt(const struct rv__actor *actor)
{
    return actor->is_frame && actor->frame.attachment != NULL;
}

/* The row of an attempt of a state that has ended: its attachment. */
static int add_attachment(struct rv__facts *facts, const struct rv__actor *frame,
                          const struct rv__attachment_end *end, rv_error *err)
{
    struct rv__buf json, key;
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the result in it */
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_text(&key, RV__ATTACHMENT_KEY);
    rv__attachment_write(frame, end, &json);
    return put_row(facts, frame->node->id, facts->next_attachment++, &key, &json, err);
}

static int attempt_ended(struct rv__facts *facts, const struct rv__actor *frame,
                         const struct rv__fact *fact, rv_error *err)
{
    const struct rv__entry *newest = frame->frame.scope;
    bool skipped = newest != frame->frame.base && newest->status == STATUS_SKIPPED;
    struct rv__attachment_end end = {
        .status = fact->status == STATUS_FAILED ? ATTACHMENT_ERRORED
                  : skipped                     ? ATTACHMENT_SKIPPED
                                                : ATTACHMENT_FINISHED,
        .at_ms = fact->at_ms,
        .error = fact->error,
    };
    return RV__BUG(221) && fact->next == NEXT_RETRY ? RV_OK
                                                    : add_attachment(facts, frame, &end, err);
}

/* It is ended by something else. */
static int attempt_cut(struct rv__facts *facts, const struct rv__actor *frame, int64_t at_ms,
                       rv_error *err)
{
    struct rv__blob *error = rv__error_blob("cancelled", "cut short before it had ended");
    if (error == NULL)
        return rv__nomem(err);
    struct rv__attachment_end end = { ATTACHMENT_ERRORED, at_ms, error };
    int rc = RV__BUG(222) ? RV_OK : add_attachment(facts, frame, &end, err);
    rv__blob_unref(error);
    return rc;
}

/* The earlier attachments of its stage are superseded. Several stages may restart before the next actor is made, but
 * no stage twice: so actor number and stage together are a unique index. */
static int stage_anew(struct rv__facts *facts, const struct rv__cell *cell,
                      const struct rv__actor *sup, rv_error *err)
{
    struct rv__buf json, key;
    rv__buf_init(&json, SIZE_MAX / 8);
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_text(&key, RV__ANEW_KEY);
    rv__buf_text(&json, "{\"o\":");
    rv__buf_int(&json, (int64_t)sup->id);
    rv__buf_text(&json, ",\"n\":");
    rv__buf_int(&json, (int64_t)cell->next_id);
    rv__buf_char(&json, '}');
    int64_t index = (int64_t)((cell->next_id & UINT32_MAX) << 31 | (sup->id & INT32_MAX));
    return put_row(facts, sup->node->id, index, &key, &json, err);
}

/* An iteration has ended: its row goes to the store with that fact. */
static int add_row(struct rv__facts *facts, const struct rv__actor *frame, rv_error *err)
{
    const struct rv__actor *sup = frame->owner;
    const struct rv__flow_kind *kind = rv__flow_kind(sup->node);
    struct rv__entry *scope;
    struct rv__buf json, key;
    if (rv__frame_left(frame, &scope) < 0)
        return rv__nomem(err);

    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the results in it */
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_char(&json, '{');
    if (kind->write_item != NULL)
        kind->write_item(frame, &json);
    rv__buf_text(&json, "\"index\":");
    rv__buf_int(&json, frame->frame.iteration);
    rv__buf_text(&json, ",\"results\":");
    struct rv__writer w = { .as_row = true, .referred = sup->sup.items != NULL, .out = &json };
    rv__entries_write(&w, scope, frame->frame.base);
    rv__entry_unref(scope);
    rv__buf_text(&json, w.referred ? RV__ROW_REFERS : "}");
    rv__buf_str(&key, rv__blob_str(sup->sup.key));

    if (w.rc < 0 && json.rc == RV_OK)
        json.rc = w.rc;
    return put_row(facts, sup->node->id, frame->frame.iteration, &key, &json, err);
}

void rv__facts_cut_rows(struct rv__facts *facts, size_t count)
{
    while (facts->row_count > count) {
        struct rv__row *row = &facts->rows[--facts->row_count];
        facts->row_bytes -= row->json.len;
        rv__free((char *)row->json.at);
        rv__free((char *)row->key.at);
    }
}

/* Is no iteration in flight to be listed? So it is if no node has ended in one and none of their nodes contains
 * others. Then they are not visited. */
static bool tells_nothing(const struct rv__actor *sup)
{
    if (!rv__node_keeps_rows(sup->node) || sup->sup.shown > 0)
        return false;
    const struct rv__body *body = sup->node->bodies;
    for (uint32_t i = 0; i < body->count; i++)
        if (tells_below(body->nodes[i]))
            return false;
    return true;
}

/* The next actor in a walk over `top` and what is listed below it. */
static const struct rv__actor *walk(const struct rv__actor *top, const struct rv__actor *at)
{
    const struct rv__actor *below = at->is_frame        ? open_below(at)
                                    : tells_nothing(at) ? NULL
                                                        : at->child;
    if (below != NULL)
        return below;
    for (; at != top; at = at->owner)
        if (at->next != NULL)
            return at->next;
    return NULL;
}

/* Add rows for the attempts of states that are in flight below `top`, which is ended from outside. Nothing to do if
 * the plan has no stage there. */
static int add_attempts_below(struct rv__facts *facts, const struct rv__actor *top, int64_t at_ms,
                              rv_error *err)
{
    const struct rv__actor *at = top, *below;
    while (at != NULL) {
        int rc = is_attempt(at) && at != top ? attempt_cut(facts, at, at_ms, err) : RV_OK;
        if (rc < 0)
            return rc;
        below = at->is_frame || at->node->has_stages ? at->child : NULL;
        while (below == NULL && at != top) {
            below = at->next;
            at = at->owner;
        }
        at = below;
    }
    return RV_OK;
}

/* Add rows for the iterations and attempts in flight below this node, which is ended from outside. */
static int add_rows_below(struct rv__facts *facts, const struct rv__actor *top, int64_t at_ms,
                          rv_error *err)
{
    int done = add_attempts_below(facts, top, at_ms, err);
    if (done < 0)
        return done;
    if (!tells_below(top->node))
        return RV_OK;
    for (const struct rv__actor *at = top; at != NULL; at = walk(top, at)) {
        if (!at->is_frame || !rv__node_keeps_rows(at->node) || !rv__frame_leaves(at) || RV__BUG(20))
            continue;
        int rc = add_row(facts, at, err);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

int rv__facts_rows(struct rv__facts *facts, const struct rv__cell *cell,
                   const struct rv__fact *fact, rv_error *err)
{
    const struct rv__actor *actor;
    facts->next_attachment = (int64_t)cell->attempts_ended + 1;
    if (fact->kind == FACT_BODY_ENDED) {
        actor = rv__cell_find(cell, fact->actor);
        assert(actor != NULL); /* rv__fact_check saw it */
        if (rv__node_keeps_rows(actor->node))
            return add_row(facts, actor, err);
        int rc = is_attempt(actor) ? attempt_ended(facts, actor, fact, err) : RV_OK;
        if (rc < 0 || actor->child == NULL)
            return rc;
        return add_rows_below(facts, actor->child, fact->at_ms, err);
    }
    if (fact->kind == FACT_RUN_RESUMED && fact->decision == DECISION_RESTART) {
        actor = rv__cell_find(cell, fact->actor);
        assert(actor != NULL); /* the same */
        int rc = add_rows_below(facts, actor, fact->at_ms, err);
        return rc < 0 ? rc : stage_anew(facts, cell, actor, err);
    }
    const struct rv__actor *last = cell->root != NULL ? cell->root->child : NULL;
    bool finally = last != NULL && last->node->is_handler &&
                   last->node == cell->plan->body.wrap->finally;
    if (fact->kind == FACT_RUN_CANCELLING && finally)
        return RV_OK; /* a detached block continues */
    if ((fact->kind == FACT_RUN_COMPLETED || fact->kind == FACT_RUN_FAILED) && finally)
        return add_attempts_below(facts, last, fact->at_ms, err); /* it was ended from outside */
    bool cancelled = fact->kind == FACT_RUN_CANCELLED || fact->kind == FACT_RUN_CANCELLING;
    if (cancelled || fact->kind == FACT_DETACHED_CANCELLED) {
        int rc = RV_OK; /* detached blocks are cancelled, too */
        for (actor = cell->detached_scopes; rc == RV_OK && actor != NULL; actor = actor->next)
            rc = add_attempts_below(facts, actor, fact->at_ms, err);
        if (rc < 0 || !cancelled)
            return rc;
    }
    if (cancelled || fact->kind == FACT_RUN_ABORTED)
        actor = last;
    else if (fact->kind == FACT_NODE_COMPLETED || fact->kind == FACT_NODE_FAILED ||
             fact->kind == FACT_NODE_RETRYING)
        actor = rv__cell_find(cell, fact->actor);
    else
        return RV_OK; /* it ends nothing that contains others */
    return actor != NULL ? add_rows_below(facts, actor, fact->at_ms, err) : RV_OK;
}
