/* branch.c: the supervisor of a branch: a condition, then one of two bodies.
 *
 *   to_eval ──▶ eval ──▶ evaluated ──▶ running (then | else) ──▶ ended with its body */
#include "base/json.h"
#include "flow/write.h"

static struct rv__first first_work(const struct rv__node *node)
{
    return rv__first_of_expr(node, EVAL_IF);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    *eval = EVAL_IF;
    return PHASE_TO_EVAL;
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    (void)sup;
    (void)first;
    return PLACE_NOWHERE; /* it waits for its body */
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    return rv__body_start(turn, sup, rv__truth(sup->value) ? 0 : 1, err);
}

static bool has_begun(const struct rv__actor *sup)
{
    return sup->child != NULL;
}

static struct rv__inner *inner(const struct rv__actor *sup)
{
    struct rv__entry *scope;
    if (rv__frame_left(sup->child, &scope) < 0)
        return NULL;
    return rv__inner_of_body(sup->child, scope, sup->child->frame.body->index);
}

/* ------------------------------------------------------------------------------ results --- */

/* Nodes of the path not taken are listed as skipped, except for aliases that the taken path has, too. */
static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    const struct rv__body *not_taken = &entry->node->bodies[1 - inner->index];
    const struct rv__body *taken = &entry->node->bodies[inner->index];
    bool first = true;
    rv__writer_put(w, inner->index == 0 ? "{\"taken\":\"then\",\"results\":{"
                                        : "{\"taken\":\"else\",\"results\":{");
    rv__members_write(w, inner->children[0].scope, inner->base, &first);
    for (uint32_t i = 0; i < not_taken->count; i++) {
        if (rv__body_find(taken, not_taken->nodes[i]->alias) != NULL)
            continue;
        rv__writer_put_key(w, not_taken->nodes[i]->alias, &first);
        rv__writer_put(w, "{\"result\":null");
        rv__writer_put_outcome_end(w, STATUS_SKIPPED, NULL);
    }
    rv__writer_put(w, "}}");
}

/* An alias may be in both paths: the path taken counts. */
static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    struct rv__str taken;
    bool other = rv__json_get(result, "taken", &taken) && rv__str_is(taken, "\"else\"");
    rv__results_expand(w, node, &node->bodies[other], &node->bodies[!other], result, vector);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    return index <= 1 && sup->child == NULL ? NULL : "there are two paths";
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    return sup->phase == PHASE_RUNNING ? frames == 1 : frames <= 1;
}

static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    (void)node;
    if (inner->index < 0 || inner->index > 1)
        return "x";
    return rv__inner_one(inner);
}

const struct rv__flow_kind rv__branch_kind = {
    .first_work = first_work,
    .tells_below = true,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .has_begun = has_begun,
    .inner = inner,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_evaluated = true,
    .body_fits = body_fits,
    .sound = sound,
    .inner_fits = inner_fits,
};
