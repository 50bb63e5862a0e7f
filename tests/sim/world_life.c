/* world_life.c: how the simulated process dies, and another one comes. */
#include "world.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------- dying, living --- */

/* A parked step with a time-out: whether its answer or its end comes first is no longer foreseen. */
static void time_is_out_of_joint(struct run *run)
{
    for (size_t b = 0; b < run->rec.bucket_count; b++)
        for (const struct rec_inst *i = run->rec.buckets[b]; i != NULL; i = i->chain)
            run->untimely |= i->parked && i->due_ms != 0;
}

void world_crash(struct world *world, const char *how, bool clean)
{
    trace(world, "---- the process %s %s", clean ? "is shut down" : "dies", how);
    for (struct letter *l = world->letters, *next; l != NULL; l = next) {
        next = l->next;
        /* What workers elsewhere do goes on; now and then its end comes after our new beginning. */
        bool lives = l->outside || (!l->kills && l->msg.kind != MSG_TIMER &&
                                    l->msg.kind != MSG_LOST && one_in(&world->chance, 4));
        if (lives)
            continue;
        world_letter_remove(world, l);
        world_letter_free(l);
    }
    while (world->works != NULL) {
        struct work *next = world->works->next;
        free(world->works);
        world->works = next;
    }
    memset(world->taken, 0, sizeof world->taken);
    while (world->waits != NULL)
        world_wait_remove(world, world->waits);
    world->note_count = world->notes_pending = 0;
    world->committing = false;
    world->commit_due = -1;
    for (struct run *run = world->runs; run != NULL; run = run->next) {
        rv__cell_free(run->cell);
        rv__cell_free(run->shadow);
        run->cell = run->shadow = NULL;
        rv__facts_reset(&run->facts);
        run->judged = run->shadowed = 0;
        world_pending_free(run);
        run->pending_over = false;
        judge_forget(run);
        memset(run->given, 0, sizeof run->given);
    }
    world->dead = true;
    world->wake_due = world->mono_ms +
                      (one_in(&world->chance, 2) ? 0 : skewed(&world->chance, 1, 10000000));
    world->clean = clean;
}

/* Some functions have hosts; which, is said of the node, and is the same in every life. */
enum rv__lane world_lane(void *arg, const struct rv__node *node, int eval,
                         const struct rv__body *body)
{
    const struct run *run = arg;
    uint64_t key = mix(mix(run->world->seed, run->plan->keys[node->id]), (uint64_t)eval + 1);
    if (body != NULL)
        key = mix(key, body->index);
    if (run->world->missing != 0 && mix(key, run->world->missing) % 3 == 0)
        return LANE_NOBODY;
    return eval < 0 && key % 5 == 0 ? LANE_HOST : LANE_FUNCTION;
}

void world_functions(struct world *world, uint64_t missing)
{
    trace(world,
          missing != 0 ? "some functions are missing from now on" : "all functions are there");
    world->missing = missing;
    for (struct run *run = world->runs; run != NULL; run = run->next)
        if (run->cell != NULL && rv__cell_lanes(run->cell, world_lane, run) < 0)
            judge_fail(world, run, "lanes", "a run cannot be told who does its functions");
}

struct rv__cell_opts world_opts(const struct run *run)
{
    return (struct rv__cell_opts){ .plan = run->plan->plan,
                                   .max_crashes = run->world->max_crashes,
                                   .value_inline = run->world->value_inline,
                                   .lane = world_lane,
                                   .arg = (void *)run };
}

static enum rv__lane nobody(void *arg, const struct rv__node *node, int eval,
                            const struct rv__body *body)
{
    (void)arg;
    (void)node;
    (void)eval;
    (void)body;
    return LANE_NOBODY;
}

/* Now and then by one who does not know the lanes. */
int world_load(struct world *world, struct run *run, struct rv__str text, rv_error *err)
{
    struct rv__cell_opts opts = world_opts(run);
    struct rv__cell *cell = NULL;
    bool unknown = one_in(&world->chance, 2);
    if (unknown)
        opts.lane = nobody;
    int rc = rv__cell_load(&opts, text, &cell, err);
    if (rc == RV_OK && unknown)
        rc = rv__cell_lanes(cell, world_lane, run);
    if (rc < 0)
        return rc;
    rv__cell_free(run->cell);
    run->cell = cell;
    return RV_OK;
}

struct loading {
    struct world *world;
    struct run *run;
    bool from_snapshot;
    uint64_t seq;
    int rc;
};

static int load_snapshot(void *arg, uint64_t seq, struct rv__str text)
{
    struct loading *l = arg;
    rv_error err;
    l->rc = world_load(l->world, l->run, text, &err);
    if (l->rc < 0)
        judge_fail(l->world, l->run, "load", "a snapshot cannot be read: %s", err.message);
    l->seq = seq;
    l->from_snapshot = true;
    return RV_OK;
}

static int load_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct loading *l = arg;
    rv_error err;
    (void)seq;
    tally.replays++;
    if (rv__cell_replay_json(l->run->cell, facts, &err) < 0) {
        judge_fail(l->world, l->run, "replay", "the journal cannot be replayed: %s", err.message);
        return RV_ECANCELED;
    }
    return RV_OK;
}

static void load_run(struct world *world, struct run *run)
{
    struct loading l = { .world = world, .run = run };
    struct rv__cell_opts opts = world_opts(run);
    struct rv__store *store = &world->store.store;
    if (one_in(&world->chance, 4) ||
        rv__store_snapshot(store, rv__str(run->id), load_snapshot, &l, NULL) < 0)
        if (rv__cell_empty(&opts, &run->cell, NULL) < 0)
            abort();
    if (world->failed)
        return;
    if (RV__BUG(2) && l.from_snapshot)
        return; /* what came after the snapshot is forgotten */
    (void)rv__store_journal(store, rv__str(run->id), l.seq, load_row, &l, NULL);
    trace(world, "%s is loaded%s", run->id, l.from_snapshot ? " from a snapshot" : "");
}

static struct run *find_run(struct world *world, struct rv__str id)
{
    for (struct run *run = world->runs; run != NULL; run = run->next)
        if (rv__str_is(id, run->id))
            return run;
    return NULL;
}

static int see_active(void *arg, const struct rv__store_run *row)
{
    struct world *world = arg;
    struct run *run = find_run(world, row->id);
    if (run == NULL)
        judge_fail(world, NULL, "store", "there is a run that nobody started");
    else
        run->marked = true;
    return RV_OK;
}

struct fleet { /* all work that was in flight, over all runs */
    struct world *world;
    struct run *run;
    int suspects;
    bool clean;
};

static bool in_process(const struct run *run, const struct rv__effect *effect)
{
    const struct rv__node *node = effect->node;
    if (effect->eval < 0)
        return is_function(node) && !effect->hosted;
    const struct rv__expr *expr = NULL;
    switch ((enum rv__eval)effect->eval) {
    case EVAL_WHEN: expr = &node->when; break;
    case EVAL_IF: expr = &node->branch.condition; break;
    case EVAL_WHILE: expr = &node->loop.while_; break;
    case EVAL_UNTIL: expr = &node->loop.until; break;
    case EVAL_ITEMS: expr = &node->foreach.items; break;
    case EVAL_INPUT: {
        const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
        const struct rv__body *body = actor != NULL ? actor->plan_body : NULL;
        if (actor != NULL && actor->body == -1)
            expr = &node->step.input;
        else
            expr = body != NULL && body->wrap != NULL ? &body->wrap->input
                                                      : NULL; /* a tool has none */
        break;
    }
    case EVAL_DESCRIPTION: expr = &node->description; break;
    case EVALS: break;
    }
    return expr != NULL && expr->kind == EXPR_FUNCTION;
}

static void owed_again(void *arg, const struct rv__effect *effect)
{
    struct fleet *f = arg;
    struct run *run = f->run;
    judge_owe(run, effect);
    if (effect->kind == EFFECT_WAIT) {
        if (!RV__BUG(3)) /* a timer is forgotten */
            world_arm(f->world, run, effect);
        return;
    }
    struct rv__msg msg = { .kind = MSG_LOST, .actor = effect->actor, .token = effect->token };
    msg.crash = !f->clean;
    msg.shared = !f->clean && in_process(run, effect);
    const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
    f->suspects += actor != NULL && actor->suspect;
    if (f->suspects > 1)
        judge_fail(f->world, run, "suspect", "two suspects were in flight: whom to blame?");
    world_send(f->world, run, &msg, 0);
}

void world_recover(struct world *world)
{
    rv__sim_store_restart(&world->store);
    world->dead = false;
    world->wake_due = -1;
    trace(world, "---- a new process begins");
    (void)rv__store_active(&world->store.store, see_active, world, NULL);
    struct fleet fleet = { .world = world, .clean = world->clean };
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next) {
        bool listed = run->marked;
        run->marked = false;
        if (run->over)
            continue;
        judge_rebuild(world, run);
        if (!run->rec.started) { /* its start was lost: whoever asked for it asks again */
            world_start_cell(world, run);
            continue;
        }
        run->began = true;
        time_is_out_of_joint(run);
        load_run(world, run);
        if (world->failed)
            return;
        judge_turn(world, run);
        bool over = rv__run_terminal(rv__cell_status(run->cell)) && !rv__cell_active(run->cell);
        if (over == listed)
            judge_fail(world, run, "active", "its row says it is %s, which it is not",
                       listed ? "active" : "over");
        if (over && !world->failed) {
            judge_over(world, run);
            run->over = true;
            rv__cell_free(run->cell);
            rv__cell_free(run->shadow);
            run->cell = run->shadow = NULL;
        }
    }
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next) {
        if (run->cell == NULL || !run->began)
            continue;
        fleet.run = run;
        judge_forget(run);
        rv__cell_outstanding(run->cell, owed_again, &fleet);
    }
    /* The first that the new process does is to tell what was lost with the old one. */
    for (struct letter *l = world->letters, *next; l != NULL; l = next) {
        next = l->next;
        if (l->msg.kind != MSG_LOST || world->failed)
            continue;
        world_letter_remove(world, l);
        world_deliver(world, l);
        world_letter_free(l);
    }
}
