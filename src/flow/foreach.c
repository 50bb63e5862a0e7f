/* foreach.c: the supervisor of a forEach: a body for each item of an array.
 *
 *   to_eval ──▶ eval ──array──▶ running ──▶ completed | failed
 *                 └──no array──▶ evaluated ──▶ failed
 *
 * Iterations that have not begun are a range, `next` to `count`, and a cursor into the text of the items. Those
 * that have ended are rows in the store, and here only counted. So a million items cost only their text and the
 * iterations that run. */
#include <assert.h>

#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

static struct rv__first first_work(const struct rv__node *node)
{
    return rv__first_of_expr(node, EVAL_ITEMS);
}

static bool keeps_rows(const struct rv__node *node)
{
    (void)node;
    return true;
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    *eval = EVAL_ITEMS;
    return PHASE_TO_EVAL;
}

/* May another iteration begin? Not after a hard failure; but in a parallel forEach without `concurrency`, all
 * iterations count as begun. */
static bool may_start(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    if (sup->sup.next >= sup->sup.count)
        return false;
    if (node->foreach.parallel && node->foreach.concurrency == 0)
        return true;
    int64_t limit = node->foreach.parallel ? node->foreach.concurrency : 1;
    bool failed = sup->sup.bad > 0 && !node->foreach.collect;
    return !failed && sup->sup.active < limit + RV__BUG(10);
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (may_start(sup)) {
        *first = rv__first_of_body(&sup->node->bodies[0]);
        return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
    }
    return sup->sup.active > 0 ? PLACE_NOWHERE : PLACE_TODO;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->phase == PHASE_EVALUATED) /* it has no array, else it would be running */
        return rv__node_fail(turn, sup, "notArray", "the items of a forEach must return an array",
                             err);
    if (may_start(sup))
        return rv__body_start(turn, sup, sup->sup.next, err);
    if (sup->sup.bad > 0 && !sup->node->foreach.collect)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
}

/* Find its item in the text of the items; the cursor moves after it. */
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

static void body_started(struct rv__actor *sup, struct rv__actor *frame)
{
    if (sup->sup.items == NULL)
        next_item(sup, frame);
    sup->sup.next++;
    sup->sup.active++;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    (void)frame;
    sup->sup.active--;
    sup->sup.ended++;
    if (fact->status == STATUS_FAILED && sup->sup.bad++ == 0)
        sup->sup.error = rv__blob_ref(fact->error);
    return RV_OK;
}

static bool has_begun(const struct rv__actor *sup)
{
    return sup->sup.key != NULL && sup->phase != PHASE_EVAL && sup->phase != PHASE_TO_EVAL;
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    struct rv__inner *all = rv__inner_new(0);
    if (all != NULL) {
        all->iterations = sup->sup.ended + sup->sup.active;
        all->key = rv__blob_ref(sup->sup.key);
    }
    return all;
}

/* --------------------------------------------------------------------------------- rows --- */

static void put_item_value(struct rv__buf *row, const struct rv__items *items, int64_t index)
{
    int64_t at;
    uint64_t piece = rv__items_piece(items, index, &at);
    rv__buf_text(row, "\"itemValue\":[");
    rv__buf_int(row, (int64_t)piece);
    rv__buf_char(row, ',');
    rv__buf_int(row, at);
    rv__buf_text(row, "],");
}

static void write_item(const struct rv__actor *frame, struct rv__buf *row)
{
    const struct rv__actor *sup = frame->owner;
    if (sup->sup.items != NULL) {
        put_item_value(row, sup->sup.items, frame->frame.iteration);
        return;
    }
    rv__buf_text(row, "\"item\":");
    rv__buf_add(row, sup->value->text + frame->frame.item_at, frame->frame.item_len);
    rv__buf_char(row, ',');
}

/* Iterations that have not begun, if it is parallel. Those of a sequential forEach do not wait for anything of
 * their own, like the later nodes of a sequence. */
static bool rest(const struct rv__actor *sup, struct rv__wait *wait)
{
    if (sup->phase != PHASE_RUNNING || sup->sup.bad > 0 || sup->sup.next >= sup->sup.count ||
        !sup->node->foreach.parallel)
        return false;
    wait->count = sup->sup.count - sup->sup.next;
    wait->limit = sup->node->foreach.concurrency;
    wait->kind = sup->place == PLACE_RANGE  ? WAIT_PLACE
                 : sup->place == PLACE_TODO ? WAIT_TURN
                                            : WAIT_LIMIT;
    return true;
}

/* "itemValue":[piece,place]: the item. */
static void expand_item(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *piece = NULL;
    struct rv__json_iter it;
    struct rv__str text, item = { NULL, 0 };
    int64_t number = 0, at = 0;
    int rc = RV_OK;
    rv__json_iter_init(&it, json);
    if (!rv__json_next(&it, NULL, &text) || rv__json_int(text, &number) < 0 || number < 1 ||
        !rv__json_next(&it, NULL, &text) || rv__json_int(text, &at) < 0)
        rc = RV_ESTORE;
    if (rc == RV_OK && (w->piece == NULL || w->piece_number != (uint64_t)number)) {
        rc = w->rows->value(w->rows, (uint64_t)number, &piece, w->err);
        if (rc < 0) {
            rv__writer_fail(w, rc);
            return;
        }
        rv__blob_unref(w->piece);
        w->piece = piece;
        w->piece_number = (uint64_t)number;
    }
    if (rc == RV_OK)
        item = rv__piece_item(rv__blob_str(w->piece), at);
    if (rv__str_none(item)) {
        rv__writer_fail(w, rv__fail(w->err, RV_ESTORE, "a finished iteration refers to no item"));
        return;
    }
    rv__writer_put(w, "\"item\":");
    rv__writer_put_str(w, item);
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    (void)result; /* the rows are written instead */
    rv__iterations_expand(w, node, vector);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    return index == sup->sup.next && index < sup->sup.count ? NULL : "not the next iteration";
}

/* The iterations that run, of items in pieces. */
static bool pieces_sound(const struct rv__actor *sup)
{
    int64_t above = 0;
    for (const struct rv__actor *frame = sup->child; frame != NULL; frame = frame->next) {
        if (frame->frame.iteration < above || frame->frame.iteration >= sup->sup.next)
            return false;
        above = frame->frame.iteration + 1;
    }
    return sup->value == NULL && sup->sup.count == sup->sup.items->count &&
           sup->sup.next <= sup->sup.count;
}

/* The items, the cursor, and the item of each iteration that runs, in one walk. */
static bool items_sound(const struct rv__actor *sup)
{
    if (rv__blob_is_reference(sup->value))
        return false;
    struct rv__str items = rv__blob_str(sup->value), item = { NULL, 0 };
    struct rv__json_iter it;
    const struct rv__actor *frame = sup->child;
    size_t cursor = 0;
    int64_t index = 0;
    if (items.len == 0 || rv__json_type(items) != RV__JSON_ARRAY)
        return false;
    rv__json_iter_init(&it, items);
    for (; rv__json_next(&it, NULL, &item); index++) {
        if (frame != NULL && frame->frame.iteration == index) {
            if (frame->frame.item_at != (size_t)(item.at - items.at) ||
                frame->frame.item_len != item.len)
                return false;
            frame = frame->next;
        }
        if (index + 1 == sup->sup.next)
            cursor = (size_t)(it.at - items.at);
    }
    return frame == NULL && index == sup->sup.count && cursor == sup->sup.cursor;
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    if (frames != sup->sup.active)
        return false;
    if (sup->phase != PHASE_RUNNING)
        return true;
    return sup->sup.items != NULL ? pieces_sound(sup) : items_sound(sup);
}

static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    (void)node;
    return rv__inner_linked(inner);
}

const struct rv__flow_kind rv__foreach_kind = {
    .first_work = first_work,
    .keeps_rows = keeps_rows,
    .tells_below = true,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .body_started = body_started,
    .body_ended = body_ended,
    .has_begun = has_begun,
    .inner = inner,
    .write_item = write_item,
    .rest = rest,
    .write_result = rv__iterations_write,
    .expand_result = expand_result,
    .expand_item = expand_item,
    .starts_running = true,
    .body_fits = body_fits,
    .sound = sound,
    .inner_fits = inner_fits,
};
