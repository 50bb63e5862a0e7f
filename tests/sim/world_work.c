/* world_work.c: the executors of the simulated shell: attempts, evaluations and timers, which end as the
 * oracle and the faults say. */
#include "world.h"

#include <stdlib.h>

/* --------------------------------------------------------------------------- the executors --- */

static struct rv__blob *text_of(struct rv__buf *buf)
{
    struct rv__blob *blob = sim_blob(rv__buf_view(buf));
    rv__buf_reset(buf);
    return blob;
}

/* What an attempt was given changes nothing, whatever it is: some say something, a few a lot. No chance is asked,
 * so that old seeds do what they did. */
static struct rv__blob *some_given(const struct rv__effect *effect, int attempt)
{
    static const char *const texts[] = {
        "{\".input\":1}", "{\"argv\":[\"a\",\"b\"],\"stdin\":\"a longer text, which is "
                          "a value where values are short\"}"
    };
    uint64_t n = effect->token + effect->actor + (uint64_t)attempt;
    return n % 3 < 2 ? sim_blob(rv__str(texts[n % 3])) : NULL;
}

/* How this attempt will end, as a message. */
static void attempt_ends(struct world *world, struct run *run, const struct rv__effect *effect,
                         const struct rv__view *view, struct spot spot)
{
    struct rv__msg msg = { .kind = MSG_DONE,
                           .actor = effect->actor,
                           .token = effect->token,
                           .chance = rv__random_double(&world->chance.random) };
    struct outcome o;
    struct rv__buf text;
    if (effect->node->step.kind == STEP_TOOL && view->note == NULL && effect->actor % 2 == 0) {
        msg.kind = MSG_NOTE; /* its server works on it: the next attempt tells how it ends */
        msg.note = sim_blob(rv__str("{\"task\":\"t\"}"));
        world_send(world, run, &msg, 1);
        return;
    }
    rv__buf_init(&text, SIZE_MAX);
    oracle_attempt(&world->oracle, spot, effect->node, view->attempt, &o);
    if (effect->node->step.kind == STEP_CHAT)
        oracle_answer(&world->oracle, spot, effect->node, view->attempt, &text);
    else
        oracle_state(&world->oracle, spot, view->attempt, &text);
    msg.state = text_of(&text);
    msg.given = some_given(effect, view->attempt);
    int64_t in_ms = o.duration_ms;
    switch (o.fate) {
    case FATE_SKIPPED:
    case FATE_DONE:
    case FATE_HANGS:
        msg.skipped = o.fate == FATE_SKIPPED;
        oracle_result(&world->oracle, spot, view->attempt, false, &text);
        msg.result = text_of(&text);
        break;
    case FATE_FAILED:
        msg.kind = MSG_FAILED;
        oracle_error(&world->oracle, spot, view->attempt, false, &text);
        msg.error = text_of(&text);
        msg.behavior = o.behavior;
        msg.wait_ms = o.behavior == BEHAVIOR_LATER ? o.duration_ms + 1 : 0;
        msg.max_attempts = o.max_attempts;
        msg.backoff = o.backoff;
        break;
    case FATE_PARKED: {
        char name[40];
        snprintf(name, sizeof name, "h%llu", (unsigned long long)world->handles++);
        msg.kind = MSG_PARK;
        msg.name = rv__str(name);
        if (effect->timeout_ms > 0)
            msg.due_ms = wall_ms(world) + effect->timeout_ms;
        struct letter *letter = world_send(world, run, &msg, in_ms);
        letter->answer_ms = o.answer_ms;
        letter->answer_fails = o.answer_fails;
        if (o.answer_fails)
            oracle_error(&world->oracle, spot, view->attempt, true, &text);
        else
            oracle_result(&world->oracle, spot, view->attempt, true, &text);
        letter->answer = text_of(&text);
        letter->answer_state = rv__blob_ref(msg.state);
        rv__blob_unref(letter->msg.state); /* a park has none */
        letter->msg.state = NULL;
        rv__buf_done(&text);
        return;
    }
    }
    rv__buf_done(&text);

    /* On its way it may be lost, delayed or doubled. */
    bool bounded = effect->timeout_ms > 0;
    if (strikes(&world->faults, &world->chance, FAULT_LOST)) {
        trace(world, "  its end is lost");
        run->untimely |= bounded;
        rv__blob_unref(msg.result);
        rv__blob_unref(msg.state);
        rv__blob_unref(msg.error);
        if (bounded)
            rv__blob_unref(msg.given);
        if (bounded)
            return; /* its time-out tells */
        world_send(
            world, run,
            &(struct rv__msg){
                .kind = MSG_LOST, .actor = msg.actor, .token = msg.token, .given = msg.given },
            in_ms + skewed(&world->chance, 0, 60000));
        return;
    }
    if (strikes(&world->faults, &world->chance, FAULT_LATE)) {
        in_ms += skewed(&world->chance, 1, 100000);
        run->untimely |= bounded;
    }
    world_send(world, run, &msg, in_ms);
    if (strikes(&world->faults, &world->chance, FAULT_DUPLICATE)) {
        rv__blob_ref(msg.result);
        rv__blob_ref(msg.state);
        rv__blob_ref(msg.error);
        rv__blob_ref(msg.given);
        world_send(world, run, &msg,
                   in_ms + (one_in(&world->chance, 2) ? 0 : skewed(&world->chance, 1, 100000)));
    }
}

static void eval_ends(struct world *world, struct run *run, const struct rv__effect *effect,
                      struct spot spot, int64_t test)
{
    struct rv__msg msg = { .kind = MSG_DONE, .actor = effect->actor, .token = effect->token };
    struct rv__buf text;
    rv__buf_init(&text, SIZE_MAX);
    bool good = oracle_eval(&world->oracle, spot, effect->node, effect->eval, test, &text);
    *(good ? &msg.result : &msg.error) = text_of(&text);
    if (!good)
        msg.kind = MSG_FAILED;
    rv__buf_done(&text);
    int64_t in_ms = oracle_eval_ms(&world->oracle, spot, effect->eval, test);
    world_send(world, run, &msg, in_ms);
    if (strikes(&world->faults, &world->chance, FAULT_DUPLICATE)) {
        rv__blob_ref(msg.result);
        rv__blob_ref(msg.error);
        world_send(world, run, &msg, in_ms + skewed(&world->chance, 0, 1000));
    }
}

/* An executor begins. */
static void begin_work(struct world *world, struct run *run, const struct rv__effect *effect)
{
    struct rv__view view;
    char name[200];
    if (rv__cell_view(run->cell, effect->actor, effect->token, &view) < 0) {
        judge_fail(world, run, "view", "no view of work that is owed: %s",
                   work_name(run, effect->actor, name, sizeof name));
        return;
    }
    tally.works++;
    trace(world, "%s begins %s%s%s, attempt %d, token %llu", run->id,
          work_name(run, effect->actor, name, sizeof name), effect->eval >= 0 ? " " : "",
          effect->eval >= 0 ? rv__eval_name((enum rv__eval)effect->eval) : "", view.attempt,
          (unsigned long long)effect->token);
    judge_start(world, run, effect, &view);
    const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
    if (world->failed || actor == NULL) {
        rv__view_done(&view);
        return;
    }
    struct work *work = sim_alloc(sizeof *work);
    *work = (struct work){ world->works, run, effect->actor, effect->token, effect->place };
    world->works = work;

    if ((effect->token + effect->actor) % 4 ==
        0) { /* it reads, and goes on, or has ended by then */
        struct rv__msg msg = { .kind = MSG_READ, .actor = effect->actor, .token = effect->token };
        msg.name = rv__str("steps");
        world_send(world, run, &msg, (int64_t)(effect->token % 3) * 20);
    }
    struct spot spot = { .vector = actor->vector, .depth = actor->depth };
    int64_t test = 0;
    if (effect->eval == EVAL_DESCRIPTION) {
        spot.key = run->plan->keys[effect->node->id];
    } else if (actor->body >= 0) {
        spot.key = plan_body_key(run->plan, actor->plan_body);
    } else {
        spot.key = run->plan->keys[actor->inst->node];
        if (effect->eval == EVAL_WHILE || effect->eval == EVAL_UNTIL)
            test = actor->inst->eval_counts[effect->eval];
    }
    bool function = effect->place == LANE_FUNCTION || effect->place == LANE_SUSPECT ||
                    effect->place == LANE_HOST;
    if (function && world_lane(run, effect->node, effect->eval, effect->body) == LANE_NOBODY) {
        struct rv__msg msg = { .kind = MSG_LOST, .actor = effect->actor, .token = effect->token };
        world_send(world, run, &msg, 0); /* it is gone since, and so did not begin */
    } else if (effect->eval >= 0) {
        eval_ends(world, run, effect, spot, test);
    } else {
        struct exec *exec = execs_get(world->execs, run, spot.key, spot.vector, spot.depth);
        int deaths = oracle_crashes(&world->oracle, spot, effect->node);
        if (exec->starts++ < deaths && world->faults.one_in[FAULT_KILLER] > 0) {
            bool hosted = effect->place == LANE_HOST; /* then only its own process dies of it */
            struct rv__msg msg = { .kind = MSG_LOST,
                                   .actor = effect->actor,
                                   .token = effect->token,
                                   .crash = hosted,
                                   .blame = hosted };
            int64_t in_ms = skewed(&world->chance, 0, 100);
            if (effect->timeout_ms > 0)
                in_ms %= effect->timeout_ms;
            if (hosted)
                msg.error = sim_blob(rv__str("{\"message\":\"the host exited\"}"));
            world_send(world, run, &msg, in_ms)->kills = !hosted;
        } else {
            attempt_ends(world, run, effect, &view, spot);
        }
    }
    if (effect->timeout_ms > 0) {
        struct rv__msg msg = { .kind = MSG_TIMER,
                               .actor = effect->actor,
                               .token = effect->token,
                               .chance = rv__random_double(&world->chance.random) };
        world_send(world, run, &msg, effect->timeout_ms);
    }
    rv__view_done(&view);
}

void world_arm(struct world *world, struct run *run, const struct rv__effect *effect)
{
    struct wait *wait = sim_alloc(sizeof *wait);
    *wait = (struct wait){ .next = world->waits,
                           .run = run,
                           .actor = effect->actor,
                           .token = effect->token,
                           .due_ms = effect->due_ms };
    wait->link = &world->waits;
    if (wait->next != NULL)
        wait->next->link = &wait->next;
    world->waits = wait;
    if (rv__timers_arm(&world->wall, &wait->timer, effect->due_ms) < 0)
        abort();
}

/* What is no longer wanted: places are free again; timers go; what is on its way may still come. */
static void stop_work(struct world *world, struct run *run, uint64_t actor, uint64_t token)
{
    for (struct work **at = &world->works; *at != NULL;) {
        struct work *work = *at;
        if (work->run == run && work->actor == actor && work->token != token) {
            *at = work->next;
            world->taken[work->lane]--;
            free(work);
        } else {
            at = &work->next;
        }
    }
    for (struct wait *w = world->waits, *next; w != NULL; w = next) {
        next = w->next;
        if (w->run == run && w->actor == actor && w->token != token)
            world_wait_remove(world, w);
    }
}

/* Perform an effect that is on disk. One that was overtaken by what was decided since is left out:
 * what replaced it follows. */
void world_release(struct world *world, const struct effect_note *note)
{
    const struct rv__effect *effect = &note->effect;
    const struct rv__effect *now = judge_owed(note->run, effect->actor);
    stop_work(world, note->run, effect->actor,
              effect->kind == EFFECT_STOP ? UINT64_MAX : effect->token);
    bool overtaken = now == NULL || now->token != effect->token || note->run->cell == NULL;
    if (effect->kind == EFFECT_START && !overtaken) {
        begin_work(world, note->run, effect);
        return;
    }
    if (effect->kind == EFFECT_WAIT && !overtaken)
        world_arm(world, note->run, effect);
    world->taken[effect->place]--; /* of LANE_NONE nobody asks */
}
