/* world.c: the simulated shell. What an engine does with threads and a disk, done here in one thread
 * with a virtual clock, by the contract of flow.h:
 *
 *   letters and timers that are due ──▶ a turn: send, grant, pump ──▶ facts, effects
 *   facts ──▶ a commit, which takes its time and may fail ──▶ then, and only then, the effects
 *
 * While a commit is on its way the next turns are decided. When the process dies, everything is gone
 * but the store, what comes from outside, and the judge's memory.
 *
 * Here: what is on its way, runs, and the world from its beginning to its end; turns and commits are in
 * world_turn.c, the executors in world_work.c, deaths and recoveries in world_life.c. */
#include "world.h"

#include <stdlib.h>

enum { MAX_TURNS = 300000 };

struct tally tally;
bool sim_stages;

/* -------------------------------------------------------------------------------- letters --- */

void world_letter_free(struct letter *letter)
{
    rv__blob_unref(letter->msg.result);
    rv__blob_unref(letter->msg.state);
    rv__blob_unref(letter->msg.error);
    rv__blob_unref(letter->msg.given);
    rv__blob_unref(letter->msg.note);
    rv__blob_unref(letter->answer);
    rv__blob_unref(letter->answer_state);
    free(letter->name);
    free(letter);
}

void world_letter_remove(struct world *world, struct letter *letter)
{
    *letter->link = letter->next;
    if (letter->next != NULL)
        letter->next->link = letter->link;
    rv__timers_disarm(&world->mono, &letter->timer);
}

struct letter *world_send(struct world *world, struct run *run, const struct rv__msg *msg,
                          int64_t in_ms)
{
    struct letter *letter = sim_alloc(sizeof *letter);
    letter->run = run;
    letter->msg = *msg;
    if (msg->name.len > 0) {
        letter->name = sim_copy(msg->name);
        letter->msg.name = rv__str(letter->name);
    }
    letter->next = world->letters;
    letter->link = &world->letters;
    if (letter->next != NULL)
        letter->next->link = &letter->next;
    world->letters = letter;
    if (rv__timers_arm(&world->mono, &letter->timer, world->mono_ms + in_ms) < 0)
        abort();
    return letter;
}

void world_wait_remove(struct world *world, struct wait *wait)
{
    *wait->link = wait->next;
    if (wait->next != NULL)
        wait->next->link = wait->link;
    rv__timers_disarm(&world->wall, &wait->timer);
    free(wait);
}

void world_work_remove(struct world *world, struct run *run, uint64_t actor, uint64_t token)
{
    for (struct work **at = &world->works; *at != NULL; at = &(*at)->next) {
        struct work *work = *at;
        if (work->run != run || work->actor != actor || work->token != token)
            continue;
        *at = work->next;
        world->taken[work->lane]--;
        free(work);
        return;
    }
}

bool world_work_there(const struct world *world, const struct run *run, uint64_t actor,
                      uint64_t token)
{
    for (const struct work *w = world->works; w != NULL; w = w->next)
        if (w->run == run && w->actor == actor && w->token == token)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------ runs --- */

void world_start_cell(struct world *world, struct run *run)
{
    struct rv__cell_opts opts = world_opts(run);
    rv_error err;
    opts.nonce = run->nonce = mix(world->seed, (uint64_t)run->index);
    trace(world, "%s starts", run->id);
    if (rv__cell_start(&opts, run->input, wall_ms(world), &run->facts, &run->cell, &err) < 0 ||
        rv__cell_empty(&opts, &run->shadow, &err) < 0) {
        judge_fail(world, run, "start", "a run cannot be started: %s", err.message);
        return;
    }
    judge_facts(world, run);
}

static void start_run(struct world *world)
{
    struct run *run = sim_alloc(sizeof *run);
    run->world = world;
    run->index = world->run_count++;
    snprintf(run->id, sizeof run->id, "run%d", run->index);
    /* After an upgrade new runs take the new plan; the old ones keep theirs. */
    bool newer = world->plan_count > 1 && run->index > 0 &&
                 strikes(&world->faults, &world->chance, FAULT_UPGRADE);
    run->plan = &world->plans[newer ? 1 : 0];
    run->input = one_in(&world->chance, 4) ? NULL : sim_blob(rv__str("{\"order\":[1,2,3]}"));
    record_init(&run->rec, run->plan->plan, world->max_crashes);
    rv__facts_init(&run->facts);
    *world->last_run = run;
    world->last_run = &run->next;
    tally.runs++;
    world_start_cell(world, run);
}

/* ------------------------------------------------------------------------------------ quiet --- */

void world_decide(struct world *world, struct run *run, bool enough)
{
    static const enum rv__msg_kind kinds[] = { MSG_RESUME, MSG_SKIP, MSG_RESTART, MSG_ABORT };
    const struct record *rec = &run->rec;
    struct chance *c = &world->chance;
    struct rv__msg msg = { .kind = MSG_RESUME };
    struct rv__buf path;
    rv__buf_init(&path, SIZE_MAX);
    if (rec->suspended_count > 0) {
        const struct rec_suspension *one =
            &rec->suspended[between(c, 0, (int64_t)rec->suspended_count - 1)];
        bool named = rec->suspended_count > 1 || one_in(c, 2);
        if (named && !one_in(c, 20))
            record_suspension_path(rec, one, &path);
        if (one->which != 0)
            msg.kind = kinds[one_in(c, 12) ? 3 : one_in(c, 5) ? 2 : between(c, 0, 1)];
        else if (one_in(c, 12))
            msg.kind = kinds[between(c, 1, 3)]; /* two of these do not fit */
    }
    if (one_in(c, 30))
        rv__buf_text(&path, "elsewhere");
    if (enough) {
        msg.kind = MSG_ABORT;
        run->untimely = true;
        msg.error = sim_blob(rv__str("{\"message\":\"given up\"}"));
    }
    msg.name = rv__buf_view(&path);
    world_send(world, run, &msg, skewed(c, 0, 1000));
    rv__buf_done(&path);
}

/* Nothing is under way. What the world owes the runs that wait for it is done now. */
static bool stir(struct world *world, struct run *run)
{
    struct rv__msg msg = { 0 };
    int stirred = 0;
    if (rv__cell_status(run->cell) == RUN_SUSPENDED) {
        world_decide(world, run, run->resumes++ >= 6);
        return true;
    }
    for (const struct rec_inst *i = run->rec.first_wait; i != NULL; i = i->wait_next) {
        if (!record_alive(&run->rec, i))
            continue;
        struct rv__str signal = run->plan->plan->nodes[i->node]->step.signal;
        msg = (struct rv__msg){ .kind = MSG_SIGNAL, .name = signal };
        if (i->parked) {
            msg = (struct rv__msg){ .kind = MSG_ANSWER,
                                    .name = rv__blob_str(i->name),
                                    .result = sim_blob(rv__str("\"at last\"")) };
            run->untimely = true;
        }
        world_send(world, run, &msg, skewed(&world->chance, 0, 1000));
        if (++stirred == 50)
            break;
    }
    return stirred > 0;
}

/* False: all is over. */
static bool when_quiet(struct world *world)
{
    bool open = false;
    world->faults.calm = ++world->quiets > 20;
    if (world->missing != 0) { /* that may be all it waits for */
        world_functions(world, 0);
        return true;
    }
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next) {
        if (run->cell == NULL)
            continue;
        open = true;
        judge_quiet(world, run);
        if (!world->failed && !stir(world, run))
            judge_fail(world, run, "stuck", "it is %s, and nothing that could happen is left",
                       rv__run_status_name(rv__cell_status(run->cell)));
    }
    return open;
}

/* ------------------------------------------------------------------------------------ world --- */

void world_init(struct world *world, uint64_t seed, const struct cut *cut, bool with_trace)
{
    *world = (struct world){ .seed = seed, .trace = with_trace, .last_run = &world->runs };
    if (cut != NULL)
        world->cut = *cut;
    struct chance *c = &world->chance;
    chance_init(c, mix(seed, 1));
    oracle_init(&world->oracle, seed);
    faults_init(&world->faults, c, &world->cut);
    rv__sim_store_init(&world->store);
    world->disk = &world->store.store;
    rv__timers_init(&world->mono);
    rv__timers_init(&world->wall);
    world->wall_offset_ms = INT64_C(1700000000000);
    world->execs = sim_alloc(sizeof *world->execs);
    world->places[LANE_FUNCTION] = (int)skewed(c, 1, 12);
    world->places[LANE_HOST] = (int)skewed(c, 1, 4);
    world->places[LANE_IO] = (int)skewed(c, 1, 12);
    world->places[LANE_EVAL] = (int)skewed(c, 1, 4);
    world->places[LANE_HTTP] = (int)skewed(c, 1, 12);
    world->places[LANE_SUSPECT] = 1;
    world->max_crashes = one_in(c, 2) ? 0 : (int)between(c, 1, 4);
    world->value_inline = one_in(c, 3) ? 0 : (size_t)skewed(c, 8, 60);
    world->commit_due = world->wake_due = -1;
    world->meddle_due = skewed(c, 0, 10000);
    world->start_due = 0;
    int64_t budget = one_in(c, 300)  ? skewed(c, 100, 4000)
                     : one_in(c, 12) ? skewed(c, 20, 400)
                                     : between(c, 1, one_in(c, 3) ? 6 : 30);
    world->run_goal = (int)skewed(c, 1, budget < 50 ? 4 : 2);
    if (world->cut.runs > 0)
        world->run_goal = world->cut.runs;
    world->stages = sim_stages || mix(seed, 9) % 10 == 0;
    if (world->stages && mix(seed, 10) % 2 == 0) /* what a schedule is for */
        world->oracle.fail_per_mille = 300;
    plan_make(world, 0, mix(seed, 2), budget);
    world->plan_count = 1;
    if (world->run_goal > 1 && one_in(c, 4) && !world->failed) {
        plan_make(world, 1, mix(seed, 3), skewed(c, 1, 20));
        world->plan_count = 2;
    }
}

void world_done(struct world *world)
{
    world_memory_back();
    for (int i = 0; i < FAULT_KINDS; i++)
        tally.faults[i] += world->faults.happened[i];
    while (world->letters != NULL) {
        struct letter *letter = world->letters;
        world_letter_remove(world, letter);
        world_letter_free(letter);
    }
    while (world->waits != NULL)
        world_wait_remove(world, world->waits);
    while (world->works != NULL) {
        struct work *next = world->works->next;
        free(world->works);
        world->works = next;
    }
    while (world->runs != NULL) {
        struct run *run = world->runs;
        world->runs = run->next;
        for (int i = 0; i < FACT_KINDS; i++)
            tally.facts[i] += run->rec.counts[i];
        rv__cell_free(run->cell);
        rv__cell_free(run->shadow);
        rv__facts_done(&run->facts);
        record_done(&run->rec);
        world_pending_free(run);
        rv__blob_unref(run->input);
        free(run->owed);
        free(run->owed_at);
        free(run);
    }
    for (int i = 0; i < 2; i++) {
        plan_done(&world->plans[i]);
        gen_done(&world->gens[i]);
    }
    free(world->notes);
    for (size_t b = 0; b < 1024; b++) {
        while (world->execs->buckets[b] != NULL) {
            struct exec *next = world->execs->buckets[b]->chain;
            free(world->execs->buckets[b]);
            world->execs->buckets[b] = next;
        }
    }
    free(world->execs);
    rv__timers_done(&world->mono);
    rv__timers_done(&world->wall);
    rv__sim_store_done(&world->store);
}

/* Could a turn do something without time passing? */
static bool busy(const struct world *world)
{
    for (const struct run *run = world->runs; run != NULL; run = run->next) {
        if (run->cell == NULL)
            continue;
        if (rv__cell_more(run->cell) || (run->facts.count > 0 && !world->committing))
            return true;
    }
    for (int lane = LANE_FUNCTION; lane < LANE_NOBODY; lane++)
        if (world_wanted(world, (enum rv__lane)lane) &&
            world_place_free(world, (enum rv__lane)lane))
            return true;
    return false;
}

static void sooner(int64_t *when, int64_t other)
{
    if (other >= 0 && (*when < 0 || other < *when))
        *when = other;
}

/* When the next thing happens (monotonic); -1: nothing will. */
static int64_t next_event(const struct world *world)
{
    int64_t when = -1;
    if (world->dead)
        return world->wake_due;
    const struct rv__timer *mono = rv__timers_first(&world->mono);
    const struct rv__timer *wall = rv__timers_first(&world->wall);
    if (mono != NULL)
        sooner(&when, mono->due);
    if (wall != NULL) {
        int64_t due = wall->due - world->wall_offset_ms;
        sooner(&when, due > world->mono_ms ? due : world->mono_ms);
    }
    sooner(&when, world->commit_due);
    if (world->run_count < world->run_goal)
        sooner(&when, world->start_due);
    if (when < 0)
        return -1;
    if (!world->faults.calm)
        sooner(&when, world->meddle_due);
    return when;
}

void world_run(struct world *world)
{
    int64_t began_ms = world->mono_ms;
    while (!world->failed) {
        if (world->turns > MAX_TURNS) {
            judge_fail(world, NULL, "end", "there is no end of it");
            break;
        }
        if (world->turns > MAX_TURNS / 2)
            world->faults.calm = true;
        if (!world->dead && busy(world)) {
            world_turn(world);
            if (!world->dead && !world->failed && !world->faults.calm && one_in(&world->chance, 6))
                world_meddle(world);
            continue;
        }
        int64_t when = next_event(world);
        if (when < 0) {
            if (world->committing)
                abort();
            if (!when_quiet(world))
                break;
            continue;
        }
        if (when > world->mono_ms)
            world->mono_ms = when;
        if (world->dead)
            world_recover(world);
        else if (world->commit_due >= 0 && world->commit_due <= world->mono_ms)
            world_finish_commit(world);
        else if (world->run_count < world->run_goal && world->start_due <= world->mono_ms) {
            start_run(world);
            world->start_due = world->mono_ms + skewed(&world->chance, 0, 100000);
        } else if (world->meddle_due <= world->mono_ms && !world->faults.calm) {
            world_meddle(world);
            world->meddle_due = world->mono_ms + skewed(&world->chance, 0, 100000);
        } else {
            world_turn(world);
        }
    }
    tally.virtual_ms += (uint64_t)(world->mono_ms - began_ms);
}
