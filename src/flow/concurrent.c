/* concurrent.c: the supervisor of a concurrent block: several bodies at once, each its own child.
 *
 *   running ──▶ completed | failed      detached: the node is completed as it begins, and goes on
 *                                       under a detached scope until its last child has ended
 *
 * Children from `next` on have not begun. What is still alive when the node ends is cancelled with it. */
#include "base/bugs.h"
#include "base/json.h"
#include "flow/write.h"

static bool detaches(const struct rv__node *node)
{
    return node->concurrent.detached;
}

static struct rv__first first_work(const struct rv__node *node)
{
    if (detaches(node) || node->body_count == 0) /* detached: it ends at once, without work */
        return (struct rv__first){ .eval = -1 };
    return rv__first_of_body(&node->bodies[0]);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING;
}

/* What follows from the outcomes so far: 0 continue, 1 completed, -1 failed. A detached block continues. */
static int verdict(const struct rv__actor *sup)
{
    const struct rv__node *node = sup->node;
    int64_t children = node->body_count;
    if (sup->detached)
        return sup->sup.ended + RV__BUG(7) >= children;
    if (node->concurrent.join != RV__JOIN_ALL) {
        if (sup->sup.good >= node->concurrent.join)
            return 1;
        return children - (sup->sup.ended - sup->sup.good) < node->concurrent.join ? -1 : 0;
    }
    if (sup->sup.bad > 0 && !node->concurrent.collect &&
        (!RV__BUG(11) || sup->sup.ended == children))
        return -1;
    return sup->sup.ended == children;
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if ((sup->node->concurrent.detached && !sup->detached) || verdict(sup) != 0)
        return PLACE_TODO;
    if (sup->sup.next >= sup->node->body_count)
        return PLACE_NOWHERE;
    *first = rv__first_of_body(&sup->node->bodies[sup->sup.next]);
    return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->node->concurrent.detached && !sup->detached)
        return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    switch (verdict(sup)) {
    case 0: return rv__body_start(turn, sup, sup->sup.next, err);
    case 1: return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    default: break;
    }
    if (sup->sup.error != NULL)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    return rv__node_fail(turn, sup, "join", "fewer children completed than `join` requires", err);
}

static struct rv__inner *outcomes(const struct rv__node *node, struct rv__entry *scope)
{
    struct rv__inner *inner = rv__inner_new(node->body_count);
    if (inner != NULL)
        inner->base = rv__entry_ref(scope);
    return inner;
}

static void body_started(struct rv__actor *sup, struct rv__actor *frame)
{
    (void)frame;
    sup->sup.next++;
    sup->sup.active++;
}

/* Does it count as completed for `join`? A bare step that failed softly or was skipped does not. */
static bool is_good(const struct rv__actor *frame, enum rv__status status)
{
    const struct rv__entry *newest = frame->frame.scope;
    if (status != STATUS_COMPLETED)
        return false;
    return !frame->frame.body->bare || frame->frame.body->wrap != NULL ||
           newest == frame->frame.base || newest->status == STATUS_COMPLETED;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    struct rv__child *child = &sup->sup.inner->children[frame->frame.body->index];
    child->status = (uint8_t)fact->status;
    rv__entry_unref(child->scope); /* none, unless a disk lied */
    child->scope = rv__entry_ref(frame->frame.scope);
    if (frame->frame.scope == frame->frame.base) { /* else its newest entry has the error */
        rv__blob_unref(child->error);
        child->error = rv__blob_ref(fact->error);
    }
    sup->sup.active--;
    sup->sup.ended++;
    sup->sup.good += is_good(frame, (enum rv__status)fact->status);
    if (fact->status == STATUS_FAILED && sup->sup.bad++ == 0)
        sup->sup.error = rv__blob_ref(fact->error);
    return RV_OK;
}

static bool has_begun(const struct rv__actor *sup)
{
    return sup->sup.inner != NULL && !detaches(sup->node);
}

/* The outcomes so far. A child without one is cancelled (the array was initialised so), with what has ended
 * in it. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    const struct rv__inner *ended = sup->sup.inner;
    if (sup->child == NULL)
        return rv__inner_ref(sup->sup.inner);
    struct rv__inner *all = rv__inner_new(ended->child_count);
    if (all == NULL)
        return NULL;
    all->base = rv__entry_ref(ended->base);
    for (uint32_t i = 0; i < ended->child_count; i++) {
        all->children[i].status = ended->children[i].status;
        all->children[i].scope = rv__entry_ref(ended->children[i].scope);
        all->children[i].error = rv__blob_ref(ended->children[i].error);
    }
    for (const struct rv__actor *frame = sup->child; frame != NULL; frame = frame->next) {
        struct rv__child *child = &all->children[frame->frame.body->index];
        struct rv__entry *scope;
        if (rv__frame_left(frame, &scope) < 0) {
            rv__inner_unref(all);
            return NULL;
        }
        rv__entry_unref(child->scope); /* none, unless a disk lied */
        child->scope = scope;
    }
    return all;
}

/* Children that have not begun. */
static bool rest(const struct rv__actor *sup, struct rv__wait *wait)
{
    if (sup->place != PLACE_RANGE)
        return false;
    wait->kind = WAIT_PLACE;
    wait->count = sup->node->body_count - sup->sup.next;
    return true;
}

/* ------------------------------------------------------------------------------ results --- */

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    bool first = true;
    rv__writer_put(w, "{");
    for (uint32_t i = 0; i < inner->child_count; i++) {
        const struct rv__child *child = &inner->children[i];
        const struct rv__body *body = &entry->node->bodies[i];
        bool empty = child->scope == NULL || child->scope == inner->base;
        rv__writer_put_key(w, body->alias, &first);
        if (body->bare && body->wrap == NULL && !empty) { /* the node itself */
            rv__entry_write(w, child->scope);
            continue;
        }
        rv__writer_put(w, "{\"result\":");
        if (empty)
            rv__writer_put(w, body->bare && body->wrap == NULL ? "null" : "{}");
        else
            rv__entries_write(w, child->scope, inner->base);
        rv__writer_put_outcome_end(w, child->status, rv__inner_error(inner, i));
    }
    rv__writer_put(w, "}");
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    rv__writer_put(w, "{");
    rv__json_iter_init(&it, result);
    for (uint32_t i = 0; i < node->body_count && rv__json_next(&it, &key, &value); i++) {
        /* in the order of the bodies */
        const struct rv__body *body = &node->bodies[i];
        if (i > 0)
            rv__writer_put(w, ",");
        rv__writer_put_str(w, key);
        rv__writer_put(w, ":");
        bool bare = body->bare && body->wrap == NULL; /* the node itself */
        const struct rv__node *node_of = bare ? body->nodes[0] : NULL;
        if (node_of != NULL && rv__shows_nodes(node_of))
            rv__outcome_expand(w, NULL, &node_of->bodies[0], value, vector);
        else
            rv__outcome_expand(w, node_of, bare ? NULL : body, value, vector);
    }
    rv__writer_put(w, "}");
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    return index == sup->sup.next && index < sup->node->body_count ? NULL : "not the next child";
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    return frames == sup->sup.active && sup->sup.next <= sup->node->body_count;
}

const struct rv__flow_kind rv__concurrent_kind = {
    .first_work = first_work,
    .detaches = detaches,
    .tells_below = true,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .outcomes = outcomes,
    .body_started = body_started,
    .body_ended = body_ended,
    .has_begun = has_begun,
    .inner = inner,
    .rest = rest,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_running = true,
    .body_fits = body_fits,
    .sound = sound,
    .inner_fits = rv__children_fit,
};
