/* faults.c: what goes wrong in this world, how often, and what people do to the runs in it. */
#include "sim.h"

void faults_init(struct faults *faults, struct chance *chance, const struct cut *cut)
{
    /* Once in so many chances, where it happens at all. */
    static const struct {
        enum fault fault;
        uint32_t worlds; /* one world in so many has it */
        uint32_t least, most;
    } rows[] = {
        { FAULT_CRASH, 3, 3, 30 },
        { FAULT_CRASH_COMMIT, 3, 4, 100 },
        { FAULT_CRASH_RELEASE, 4, 4, 100 },
        { FAULT_KILLER, 1, 1, 1 },
        { FAULT_STORE, 4, 2, 50 },
        { FAULT_DUPLICATE, 2, 2, 20 },
        { FAULT_LATE, 4, 3, 30 },
        { FAULT_LOST, 4, 3, 40 },
        { FAULT_CLOCK, 5, 2, 10 },
        { FAULT_CANCEL, 4, 2, 16 },
        { FAULT_SIGNAL, 2, 1, 6 },
        { FAULT_STRAY, 3, 1, 6 },
        { FAULT_DECIDE, 4, 2, 8 },
        { FAULT_MISSING, 4, 2, 12 },
        { FAULT_SUSPEND, 6, 4, 30 },
        { FAULT_UPGRADE, 1, 2, 2 },
        { FAULT_CUT, 3, 2, 10 },
        { FAULT_SNAPSHOT, 2, 1, 20 },
        { FAULT_SHUTDOWN, 8, 4, 20 },
        { FAULT_MEMORY, 6, 5, 60 },
        { FAULT_SLEEP, 4, 4, 40 },
        { FAULT_REFUSED, 4, 4, 60 },
    };
    *faults = (struct faults){ 0 };
    bool kind_world = one_in(chance, 6); /* where nothing goes wrong */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool here = one_in(chance, rows[i].worlds);
        uint32_t often = (uint32_t)between(chance, rows[i].least, rows[i].most);
        bool harmless = rows[i].fault == FAULT_SNAPSHOT || rows[i].fault == FAULT_UPGRADE;
        if (here && (!kind_world || harmless) && !(cut->faults >> rows[i].fault & 1))
            faults->one_in[rows[i].fault] = often;
    }
}

bool strikes(struct faults *faults, struct chance *chance, enum fault fault)
{
    if (faults->one_in[fault] == 0 || faults->calm || !one_in(chance, faults->one_in[fault]))
        return false;
    faults->happened[fault]++;
    return true;
}

static void jump(struct world *world)
{
    int64_t by = skewed(&world->chance, 1, 100000000);
    if (one_in(&world->chance, 2))
        by = -by;
    trace(world, "the clock jumps by %lld ms", (long long)by);
    world->wall_offset_ms += by;
    for (const struct wait *w = world->waits; w != NULL; w = w->next) {
        const struct rec_actor *actor = record_actor(&w->run->rec, w->actor);
        if (actor != NULL && actor->inst != NULL && actor->inst->parked)
            w->run->untimely = true; /* its time-out may now come before its answer */
    }
    for (const struct letter *l = world->letters; l != NULL; l = l->next)
        if (l->msg.kind == MSG_PARK && l->msg.due_ms != 0)
            l->run->untimely = true;
}

/* An idle run leaves memory, and comes back. */
static void sleep_and_wake(struct world *world, struct run *run)
{
    struct rv__buf text;
    rv_error err = { .message = "" };
    trace(world, "%s leaves memory and comes back", run->id);
    rv__buf_init(&text, SIZE_MAX);
    if (rv__cell_save(run->cell, &text, &err) < 0 ||
        world_load(world, run, rv__buf_view(&text), &err) < 0)
        judge_fail(world, run, "load", "a run cannot leave memory and come back: %s", err.message);
    rv__buf_done(&text);
}

static void signal_run(struct world *world, struct run *run)
{
    char name[8], payload[32];
    if (run->signals > 50)
        return;
    snprintf(name, sizeof name, "sig%d", (int)between(&world->chance, 0, 2));
    snprintf(payload, sizeof payload, "{\"signal\":%d}", run->signals++);
    struct rv__msg msg = { .kind = MSG_SIGNAL,
                           .name = rv__str(name),
                           .force = run->signals % 2 == 0 };
    if (!one_in(&world->chance, 5))
        msg.result = sim_blob(rv__str(payload));
    world_send(world, run, &msg, 0);
}

/* Something that fits nothing, or no longer. */
static void stray(struct world *world, struct run *run)
{
    static const enum rv__msg_kind kinds[] = { MSG_DONE, MSG_FAILED, MSG_PARK, MSG_TIMER,
                                               MSG_LOST, MSG_ANSWER, MSG_READ };
    struct rv__msg msg = { .kind = kinds[between(&world->chance, 0, 6)] };
    msg.actor = (uint64_t)skewed(&world->chance, 0, 2 * (int64_t)run->rec.actor_cap + 5);
    msg.token = (uint64_t)skewed(&world->chance, 0, 20);
    const struct rv__effect *owed = judge_owed(run, msg.actor);
    const struct rec_actor *actor = record_actor(&run->rec, msg.actor);
    if (actor != NULL && actor->inst != NULL &&
        (actor->inst->parked || run->plan->plan->nodes[actor->inst->node]->kind == NODE_STEP) &&
        owed == NULL)
        return; /* it may wait with a token that nobody was told: a guess could be right */
    /* That fits, or may when it arrives: what is on its way moves the token on. */
    if (owed != NULL && msg.token >= owed->token)
        msg.token = one_in(&world->chance, 2) ? owed->token + 1000 : owed->token - 1;
    if (msg.kind == MSG_ANSWER || msg.kind == MSG_PARK || msg.kind == MSG_READ)
        msg.name = rv__str("nothing");
    if (msg.kind == MSG_FAILED)
        msg.error = sim_blob(rv__str("{\"message\":\"stray\"}"));
    world_send(world, run, &msg, 0);
}

void world_meddle(struct world *world)
{
    struct run *run = world->runs;
    struct rv__msg msg = { 0 };
    if (strikes(&world->faults, &world->chance, FAULT_CRASH)) {
        world_crash(world, "", false);
        return;
    }
    if (strikes(&world->faults, &world->chance, FAULT_SHUTDOWN) && !world->committing) {
        world_crash(world, "", true);
        return;
    }
    if (strikes(&world->faults, &world->chance, FAULT_CLOCK))
        jump(world);
    if (strikes(&world->faults, &world->chance, FAULT_MISSING))
        world_functions(world, world->missing == 0 ? 1 + (world->turns & 0xff) : 0);
    if (run == NULL)
        return;
    for (int64_t n = between(&world->chance, 0, world->run_count - 1); n > 0; n--)
        run = run->next;
    if (run->cell == NULL)
        return;
    if (one_in(&world->chance, 1 + run->saved_bytes / 10000) &&
        strikes(&world->faults, &world->chance, FAULT_SLEEP))
        sleep_and_wake(world, run);
    if (strikes(&world->faults, &world->chance, FAULT_SIGNAL))
        signal_run(world, run);
    if (strikes(&world->faults, &world->chance, FAULT_STRAY))
        stray(world, run);
    if (strikes(&world->faults, &world->chance, FAULT_DECIDE)) {
        msg.kind = one_in(&world->chance, 3) ? MSG_ABORT : MSG_RESUME;
        if (msg.kind == MSG_ABORT && one_in(&world->chance, 2))
            msg.error = sim_blob(rv__str("{\"message\":\"decided so\"}"));
        if (msg.kind == MSG_ABORT)
            world_send(world, run, &msg, 0);
        else
            world_decide(world, run, false);
    }
    if (strikes(&world->faults, &world->chance, FAULT_SUSPEND)) {
        msg = (struct rv__msg){ .kind = MSG_SUSPEND,
                                .error = sim_blob(rv__str("{\"message\":\"it was refused\"}")) };
        world_send(world, run, &msg, 0);
    }
    if (strikes(&world->faults, &world->chance, FAULT_CANCEL)) {
        msg = (struct rv__msg){ .kind = MSG_CANCEL };
        run->untimely = true;
        world_send(world, run, &msg, 0);
    }
}
