/* loop.c: the supervisor of a loop: a body that is repeated while or until a condition holds.
 *
 *   while:  to_eval ──▶ evaluated ──true──▶ running (an iteration) ──▶ to_eval …
 *                            └─────false──▶ completed
 *   until:  running (an iteration) ──▶ to_eval ──▶ evaluated ──false──▶ running …
 *                                                      └───────true───▶ completed
 *
 * If the condition asks for more than max_iterations, the node fails. An iteration sees the results of the previous
 * one; earlier ones are no longer in memory. */
#include <stdio.h>

#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

static bool by_while(const struct rv__node *node)
{
    return node->loop.while_.kind != EXPR_NONE;
}

static struct rv__first first_work(const struct rv__node *node)
{
    return by_while(node) ? rv__first_of_expr(node, EVAL_WHILE)
                          : rv__first_of_body(&node->bodies[0]);
}

static bool keeps_rows(const struct rv__node *node)
{
    return node->loop.keep == KEEP_ALL;
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    *eval = by_while(node) ? EVAL_WHILE : EVAL_UNTIL;
    return by_while(node) ? PHASE_TO_EVAL : PHASE_RUNNING;
}

/* RUNNING without a body: the first iteration of an until; or an iteration failed. */
static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (sup->child != NULL)
        return PLACE_NOWHERE;
    if (sup->sup.bad > 0)
        return PLACE_TODO;
    *first = rv__first_of_body(&sup->node->bodies[0]);
    return first->node == NULL ? PLACE_TODO : PLACE_READY;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->sup.bad > 0)
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    if (sup->phase == PHASE_EVALUATED) {
        bool truth = rv__truth(sup->value);
        if (truth != by_while(sup->node))
            return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
        if (sup->sup.ended >= sup->node->loop.max_iterations) {
            char text[128];
            snprintf(text, sizeof text,
                     "the condition of '%s' is still %strue after %lld iteration%s",
                     by_while(sup->node) ? "while" : "until", by_while(sup->node) ? "" : "not ",
                     (long long)sup->sup.ended, sup->sup.ended == 1 ? "" : "s");
            return rv__node_fail(turn, sup, "maxIterations", text, err);
        }
    }
    return rv__body_start(turn, sup, sup->sup.ended, err);
}

/* An iteration sees the previous one. */
static struct rv__entry *scope(const struct rv__actor *sup)
{
    return sup->sup.inner != NULL && !RV__BUG(18) ? sup->sup.inner->children[0].scope : NULL;
}

/* The entries of this iteration without the previous one: copies on the loop's own scope. Linear in the size of the
 * body. */
static int keep_entries(const struct rv__actor *frame, struct rv__entry *on, struct rv__entry **ret)
{
    struct rv__entry *newest = NULL, *oldest = NULL;
    for (struct rv__entry *e = frame->frame.scope; e != frame->frame.base; e = e->outer) {
        struct rv__entry *copy = rv__entry_copy(e);
        if (copy == NULL) {
            rv__entry_unref(newest);
            return RV_ENOMEM;
        }
        if (oldest != NULL)
            oldest->outer = copy;
        else
            newest = copy;
        oldest = copy;
    }
    if (oldest != NULL)
        oldest->outer = rv__entry_ref(on);
    *ret = newest != NULL ? newest : rv__entry_ref(on);
    return RV_OK;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    (void)cell;
    struct rv__entry *base = rv__actor_frame(sup)->frame.scope;
    struct rv__entry *kept = NULL;
    struct rv__inner *inner = rv__inner_new(1);
    if (inner == NULL)
        return RV_ENOMEM;
    if (keep_entries(frame, base, &kept) < 0) {
        rv__inner_unref(inner);
        return RV_ENOMEM;
    }
    inner->base = rv__entry_ref(base);
    inner->index = frame->frame.iteration;
    inner->children[0].status = (uint8_t)fact->status;
    inner->children[0].scope = kept;
    rv__inner_unref(sup->sup.inner);
    sup->sup.inner = inner;
    sup->sup.ended++;
    if (fact->status == STATUS_FAILED) {
        sup->sup.bad++;
        sup->sup.error = rv__blob_ref(fact->error);
        sup->phase = PHASE_RUNNING;
    } else {
        sup->phase = PHASE_TO_EVAL;
    }
    return RV_OK;
}

static bool has_begun(const struct rv__actor *sup)
{
    return sup->sup.key != NULL; /* also while it evaluates between iterations */
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    bool more = sup->child != NULL && rv__frame_leaves(sup->child); /* ended in an iteration */
    struct rv__inner *all;
    if (sup->node->loop.keep == KEEP_LAST && more) {
        struct rv__entry *scope;
        if (rv__frame_left(sup->child, &scope) < 0)
            return NULL;
        return rv__inner_of_body(sup->child, scope, sup->child->frame.iteration);
    }
    if (sup->node->loop.keep == KEEP_LAST && sup->sup.inner != NULL)
        return rv__inner_ref(sup->sup.inner);
    all = rv__inner_new(0);
    if (all != NULL && sup->node->loop.keep == KEEP_ALL) {
        all->iterations = sup->sup.ended + more;
        all->key = rv__blob_ref(sup->sup.key);
    }
    return all;
}

/* ------------------------------------------------------------------------------ results --- */

/* {"iterations":[{"index":…,"results":…}]} of a loop that keeps the last, or none. */
static void write_last(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    rv__writer_put(w, "{\"iterations\":[");
    if (inner->index >= 0) {
        rv__writer_put(w, "{\"index\":");
        rv__writer_put_int(w, inner->index);
        rv__writer_put(w, ",\"results\":");
        rv__entries_write(w, inner->children[0].scope, inner->base);
        rv__writer_put(w, "}");
    }
    rv__writer_put(w, "]}");
}

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    if (keeps_rows(entry->node))
        rv__iterations_write(w, entry);
    else
        write_last(w, entry);
}

static void expand_last(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                        struct rv__str vector)
{
    struct rv__str list;
    if (!rv__json_get(result, "iterations", &list)) {
        rv__writer_put_str(w, result);
        return;
    }
    struct rv__json_iter it;
    struct rv__str row;
    rv__writer_put(w, "{\"iterations\":[");
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &row)) /* one at most */
        rv__row_expand(w, node, vector, row, true);
    rv__writer_put(w, "]}");
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    if (keeps_rows(node))
        rv__iterations_expand(w, node, vector);
    else
        expand_last(w, node, result, vector);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    return index == sup->sup.ended && sup->child == NULL ? NULL : "not the next iteration";
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    return frames <= 1 && (sup->sup.inner == NULL || sup->sup.inner->child_count == 1);
}

static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    (void)node;
    return inner->index >= 0 ? rv__inner_one(inner) : rv__inner_linked(inner);
}

const struct rv__flow_kind rv__loop_kind = {
    .first_work = first_work,
    .keeps_rows = keeps_rows,
    .tells_below = true,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .scope = scope,
    .body_ended = body_ended,
    .has_begun = has_begun,
    .inner = inner,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_evaluated = true,
    .starts_running = true,
    .ends_evaluated = true,
    .body_fits = body_fits,
    .sound = sound,
    .inner_fits = inner_fits,
};
