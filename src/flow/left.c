/* left.c: what is left of what ends: the entry of a node, and rows of iterations.
 *
 * A node may be ended from outside while it is in the midst of its work: the run is cancelled or
 * aborted, or a concurrent block has what it needs. What has finished in it by then is told all the
 * same, with the nodes that were in flight beside it as cancelled; for that is where a user sees what
 * there is to undo. An iteration in flight is listed if anything has finished in it: a hundred thousand
 * that have only begun tell nothing, and would be what a cancel waits for. ADR 0017.
 *
 * Recursion follows the plan, which is not deep. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "flow/cell.h"

bool rv__node_keeps_rows(const struct rv__node *node)
{
    return node->kind == NODE_FOREACH || (node->kind == NODE_LOOP && node->loop.keep == KEEP_ALL);
}

/* ------------------------------------------------------------------------------- entries --- */

/* Has it got as far as to have a result? */
static bool has_begun(const struct rv__actor *actor)
{
    bool evaluating = actor->phase == PHASE_EVAL || actor->phase == PHASE_TO_EVAL;
    switch (actor->node->kind) {
    case NODE_WORKFLOW:
    case NODE_BRANCH: return actor->child != NULL;
    case NODE_LOOP: return actor->sup.key != NULL; /* it evaluates between iterations too */
    case NODE_FOREACH: return actor->sup.key != NULL && !evaluating;
    case NODE_CONCURRENT: return actor->sup.inner != NULL && !actor->node->concurrent.detached;
    case NODE_STEP:
    case NODE_KINDS: break;
    }
    return false;
}

struct rv__entry *rv__node_left(const struct rv__actor *actor, enum rv__status status)
{
    struct rv__entry *entry = rv__entry_new(actor->node, status);
    if (entry == NULL || !has_begun(actor))
        return entry;
    entry->inner = rv__kinds[actor->node->kind]->inner(actor);
    if (entry->inner == NULL) {
        rv__entry_unref(entry);
        return NULL;
    }
    return entry;
}

/* The node in flight in it; a handler is none. */
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
        entry = rv__node_left(child, STATUS_CANCELLED);
        if (entry == NULL)
            return RV_ENOMEM;
        entry->outer = rv__entry_ref(frame->frame.scope);
    }
    *ret = entry != NULL ? entry : rv__entry_ref(frame->frame.scope);
    return RV_OK;
}

/* May the node in flight have something below it that is told of? The plan is asked first: with a
 * hundred thousand iterations, each look at an actor is one into memory far away. */
static const struct rv__actor *open_below(const struct rv__actor *frame)
{
    const struct rv__body *body = frame->frame.body;
    enum rv__node_kind kind = frame->frame.at < body->count ? body->nodes[frame->frame.at]->kind
                                                            : NODE_STEP;
    if (kind == NODE_STEP || kind == NODE_WORKFLOW)
        return NULL; /* of a nested workflow nothing is told but its end */
    return in_flight(frame);
}

void rv__frame_tells(const struct rv__actor *frame, int more)
{
    struct rv__actor *sup = frame->owner;
    /* A snapshot that was tampered with may have it under anything: that is found out later. */
    if (sup != NULL && !sup->is_frame && sup->node->kind != NODE_STEP)
        sup->sup.told += more;
}

bool rv__frame_leaves(const struct rv__actor *frame) /* NOLINT(misc-no-recursion) */
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

static void put_item_value(struct rv__buf *json, const struct rv__items *items, int64_t index)
{
    int64_t place;
    uint64_t piece = rv__items_piece(items, index, &place);
    rv__buf_text(json, "\"itemValue\":[");
    rv__buf_int(json, (int64_t)piece);
    rv__buf_char(json, ',');
    rv__buf_int(json, place);
    rv__buf_text(json, "],");
}

/* An iteration leaves the cell for the store, with the fact of its end. */
static int add_row(struct rv__facts *facts, const struct rv__actor *frame, rv_error *err)
{
    const struct rv__actor *sup = frame->owner;
    struct rv__entry *scope;
    struct rv__buf json, key;
    int rc = make_room(facts, err);
    if (rc < 0)
        return rc;
    if (rv__frame_left(frame, &scope) < 0)
        return rv__nomem(err);

    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the results in it */
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_char(&json, '{');
    if (sup->node->kind == NODE_FOREACH && sup->sup.items != NULL) {
        put_item_value(&json, sup->sup.items, frame->frame.iteration);
    } else if (sup->node->kind == NODE_FOREACH) {
        rv__buf_text(&json, "\"item\":");
        rv__buf_add(&json, sup->value->text + frame->frame.item_at, frame->frame.item_len);
        rv__buf_char(&json, ',');
    }
    rv__buf_text(&json, "\"index\":");
    rv__buf_int(&json, frame->frame.iteration);
    rv__buf_text(&json, ",\"results\":");
    struct rv__writer w = { .as_row = true, .referred = sup->sup.items != NULL, .out = &json };
    rv__entries_write(&w, scope, frame->frame.base);
    rv__entry_unref(scope);
    rv__buf_text(&json, w.referred ? RV__ROW_REFERS : "}");
    rv__buf_str(&key, rv__blob_str(sup->sup.key));

    struct rv__row row = { .node = sup->node->id, .index = frame->frame.iteration };
    row.json.len = json.len;
    row.key.len = key.len;
    row.json.at = w.rc == RV_OK ? rv__buf_take(&json) : NULL;
    row.key.at = rv__buf_take(&key);
    rv__buf_done(&json);
    rv__buf_done(&key);
    if (row.json.at == NULL || row.key.at == NULL) {
        rv__free((char *)row.json.at);
        rv__free((char *)row.key.at);
        return rv__nomem(err);
    }
    facts->rows[facts->row_count++] = row;
    facts->row_bytes += row.json.len;
    return RV_OK;
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

/* Iterations in flight of which none is to be told: no node has ended in one, and none of their nodes
 * has anything below it. Then they are not even looked at. */
static bool tells_nothing(const struct rv__actor *sup)
{
    if (!rv__node_keeps_rows(sup->node) || sup->sup.told > 0)
        return false;
    const struct rv__body *body = sup->node->bodies;
    for (uint32_t i = 0; i < body->count; i++)
        if (body->nodes[i]->kind != NODE_STEP && body->nodes[i]->kind != NODE_WORKFLOW)
            return false;
    return true;
}

/* The next one of a walk over `top` and all below it that is told of. */
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

/* The iterations in flight of all below this node, which is ended from outside. */
static int add_rows_below(struct rv__facts *facts, const struct rv__actor *top, rv_error *err)
{
    if (top->node->kind == NODE_WORKFLOW)
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
    if (fact->kind == FACT_BODY_ENDED) {
        actor = rv__cell_find(cell, fact->actor);
        assert(actor != NULL); /* rv__fact_check saw it */
        return rv__node_keeps_rows(actor->node) ? add_row(facts, actor, err) : RV_OK;
    }
    if (fact->kind == FACT_RUN_CANCELLED || fact->kind == FACT_RUN_ABORTED)
        actor = cell->root->child;
    else if (fact->kind == FACT_NODE_COMPLETED || fact->kind == FACT_NODE_FAILED)
        actor = rv__cell_find(cell, fact->actor);
    else
        return RV_OK; /* it ends nothing that has anything below it */
    return actor != NULL ? add_rows_below(facts, actor, err) : RV_OK;
}
