/* plans.c: the plans of a world: made, written, read again, and their nodes numbered. */
#include "sim.h"

#include <stdlib.h>

#include "base/error.h"

/* A workflow's handlers come after its nodes: the number of what is above them is left where theirs will
 * be. */
static void name_handlers(struct sim_plan *p, const struct rv__wrap *wrap, uint64_t above)
{
    if (wrap != NULL && wrap->on_error != NULL)
        p->keys[wrap->on_error->id] = above;
    if (wrap != NULL && wrap->finally != NULL)
        p->keys[wrap->finally->id] = above;
}

static void name_nodes(struct sim_plan *p)
{
    p->keys = sim_alloc(p->plan->node_count * sizeof *p->keys);
    name_handlers(p, p->plan->body.wrap, 98);
    for (uint32_t id = 0; id < p->plan->node_count; id++) { /* parents come first */
        const struct rv__node *node = p->plan->nodes[id];
        uint64_t above = p->keys[id]; /* of a workflow's handler */
        if (node->handler_of != NULL)
            above = mix(p->keys[node->handler_of->id], 99);
        else if (node->body != NULL)
            above = plan_body_key(p, node->body);
        p->keys[id] = mix(above, rv__str_hash(RV__HASH_START, node->alias));
        for (uint32_t b = 0; b < node->body_count; b++)
            name_handlers(p, node->bodies[b].wrap, mix(plan_body_key(p, &node->bodies[b]), 97));
    }
}

void plan_make(struct world *world, int which, uint64_t seed, int64_t budget)
{
    struct sim_plan *p = &world->plans[which];
    rv_error err = { .message = "" };
    gen_init(&world->gens[which], seed, budget, which, world->engine, world->stages);
    if (gen_compile(&world->gens[which], &world->cut, &p->plan, &err) < 0) {
        judge_fail(world, NULL, "refused", "a plan is refused: %s", err.message);
        return;
    }
    struct rv__buf text, again;
    rv__buf_init(&text, SIZE_MAX);
    rv__buf_init(&again, SIZE_MAX);
    struct rv__plan *read = NULL;
    if (rv__plan_write(p->plan, &text, &err) < 0 ||
        rv__plan_read(rv__buf_view(&text), &read, &err) < 0 ||
        rv__plan_write(read, &again, &err) < 0)
        judge_fail(world, NULL, "plan", "a plan cannot be written and read: %s", err.message);
    else if (!rv__str_eq(rv__buf_view(&text), rv__buf_view(&again)) ||
             strcmp(read->version, p->plan->version) != 0)
        judge_fail(world, NULL, "plan", "a plan is another one when it was written and read");
    if (!world->failed && one_in(&world->chance, 2)) { /* as after a restart */
        struct rv__plan *swap = p->plan;
        p->plan = read;
        read = swap;
    }
    p->json_len = text.len;
    p->json = sim_copy(rv__buf_view(&text));
    rv__buf_done(&text);
    rv__buf_done(&again);
    rv__plan_free(read);
    if (world->failed)
        return;
    trace(world, "plan %d: %.*s", which, (int)p->json_len, p->json);
    tally.nodes += p->plan->node_count;
    name_nodes(p);
    if (world->disk != NULL) /* else an engine writes it, when it is first used */
        (void)rv__store_define(world->disk, rv__str(p->plan->version),
                               (struct rv__str){ p->json, p->json_len }, NULL);
}

void plan_done(struct sim_plan *p)
{
    rv__plan_free(p->plan);
    free(p->keys);
    free(p->json);
}
