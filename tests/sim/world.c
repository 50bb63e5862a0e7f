/* world.c: the simulated shell. What an engine does with threads and a disk, done here in one thread
 * with a virtual clock, by the contract of flow.h:
 *
 *   letters and timers that are due ──▶ a turn: send, grant, pump ──▶ facts, effects
 *   facts ──▶ a commit, which takes its time and may fail ──▶ then, and only then, the effects
 *
 * While a commit is on its way the next turns are decided. When the process dies, everything is gone
 * but the store, what comes from outside, and the judge's memory. */
#include "sim.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

enum { MAX_TURNS = 300000 };

struct tally tally;

/* -------------------------------------------------------------------------------- letters --- */

static void letter_free(struct letter *letter)
{
    rv__blob_unref(letter->msg.result);
    rv__blob_unref(letter->msg.state);
    rv__blob_unref(letter->msg.error);
    rv__blob_unref(letter->answer);
    rv__blob_unref(letter->answer_state);
    free(letter);
}

static void letter_remove(struct world *world, struct letter *letter)
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
        snprintf(letter->name, sizeof letter->name, "%.*s", RV__ARG(msg->name));
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

static void wait_remove(struct world *world, struct wait *wait)
{
    *wait->link = wait->next;
    if (wait->next != NULL)
        wait->next->link = wait->link;
    rv__timers_disarm(&world->wall, &wait->timer);
    free(wait);
}

static void work_remove(struct world *world, struct run *run, uint64_t actor, uint64_t token)
{
    for (struct work **at = &world->works; *at != NULL; at = &(*at)->next) {
        struct work *work = *at;
        if (work->run != run || work->actor != actor || work->token != token)
            continue;
        *at = work->next;
        free(work);
        return;
    }
}

static bool work_there(const struct world *world, const struct run *run, uint64_t actor,
                       uint64_t token)
{
    for (const struct work *w = world->works; w != NULL; w = w->next)
        if (w->run == run && w->actor == actor && w->token == token)
            return true;
    return false;
}

/* --------------------------------------------------------------------------- the executors --- */

static struct rv__blob *text_of(struct rv__buf *buf)
{
    struct rv__blob *blob = sim_blob(rv__buf_view(buf));
    rv__buf_reset(buf);
    return blob;
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
    rv__buf_init(&text, SIZE_MAX);
    oracle_attempt(&world->oracle, spot, effect->node, view->attempt, &o);
    oracle_state(&world->oracle, spot, view->attempt, &text);
    msg.state = text_of(&text);
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
            return; /* its time-out tells */
        world_send(world, run,
                   &(struct rv__msg){ .kind = MSG_LOST, .actor = msg.actor, .token = msg.token },
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
static void begin_work(struct world *world, struct run *run, const struct rv__effect *effect,
                       enum rv__lane lane)
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
    *work = (struct work){ world->works, run, effect->actor, effect->token, lane };
    world->works = work;

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
    bool function = lane == LANE_FUNCTION || lane == LANE_SUSPECT;
    if (function && strikes(&world->faults, &world->chance, FAULT_MISSING)) {
        struct rv__msg msg = { .kind = MSG_MISSING,
                               .actor = effect->actor,
                               .token = effect->token,
                               .name = rv__str("someFunction") };
        world_send(world, run, &msg, 0);
    } else if (effect->eval >= 0) {
        eval_ends(world, run, effect, spot, test);
    } else {
        struct exec *exec = execs_get(world->execs, run, spot.key, spot.vector, spot.depth);
        int deaths = oracle_crashes(&world->oracle, spot, effect->node);
        if (exec->starts++ < deaths && world->faults.one_in[FAULT_KILLER] > 0) {
            struct rv__msg msg = { .kind = MSG_LOST,
                                   .actor = effect->actor,
                                   .token = effect->token };
            int64_t in_ms = skewed(&world->chance, 0, 100);
            if (effect->timeout_ms > 0)
                in_ms %= effect->timeout_ms;
            world_send(world, run, &msg, in_ms)->kills = true;
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

static void arm_wait(struct world *world, struct run *run, const struct rv__effect *effect)
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
            free(work);
        } else {
            at = &work->next;
        }
    }
    for (struct wait *w = world->waits, *next; w != NULL; w = next) {
        next = w->next;
        if (w->run == run && w->actor == actor && w->token != token)
            wait_remove(world, w);
    }
}

/* Perform an effect that is on disk. One that was overtaken by what was decided since is left out:
 * what replaced it follows. */
static void release_effect(struct world *world, const struct effect_note *note)
{
    const struct rv__effect *effect = &note->effect;
    const struct rv__effect *now = judge_owed(note->run, effect->actor);
    stop_work(world, note->run, effect->actor,
              effect->kind == EFFECT_STOP ? UINT64_MAX : effect->token);
    if (effect->kind == EFFECT_STOP || now == NULL || now->token != effect->token ||
        note->run->cell == NULL)
        return;
    if (effect->kind == EFFECT_START)
        begin_work(world, note->run, effect, note->lane);
    else
        arm_wait(world, note->run, effect);
}

/* --------------------------------------------------------------------------------- commits --- */

static void pending_free(struct run *run)
{
    for (size_t i = 0; i < run->pending_row_count; i++) {
        free((char *)run->pending_rows[i].key.at);
        free((char *)run->pending_rows[i].json.at);
    }
    free(run->pending_rows);
    free(run->pending);
    free(run->pending_snapshot);
    run->pending = run->pending_snapshot = NULL;
    run->pending_len = run->pending_snapshot_len = 0;
    run->pending_rows = NULL;
    run->pending_row_count = 0;
}

/* What this run has decided goes to disk next. */
static void gather(struct world *world, struct run *run)
{
    if (run->cell == NULL || run->facts.count == 0)
        return;
    if (run->shadowed < run->facts.json.len)
        judge_turn(world, run);
    run->pending_t = run->rec.t;
    run->pending_len = run->facts.json.len;
    run->pending = sim_copy(rv__buf_view(&run->facts.json));
    run->pending_row_count = run->facts.row_count;
    run->pending_rows = sim_alloc(run->facts.row_count * sizeof *run->pending_rows);
    for (size_t i = 0; i < run->facts.row_count; i++) {
        run->pending_rows[i] = run->facts.rows[i];
        run->pending_rows[i].key.at = sim_copy(run->facts.rows[i].key);
        run->pending_rows[i].json.at = sim_copy(run->facts.rows[i].json);
    }
    /* Seldom of what is large, as an engine would. */
    if (one_in(&world->chance, 1 + run->saved_bytes / 10000) &&
        strikes(&world->faults, &world->chance, FAULT_SNAPSHOT)) {
        struct rv__buf text;
        rv__buf_init(&text, SIZE_MAX);
        if (rv__cell_save(run->cell, &text, NULL) < 0)
            judge_fail(world, run, "save", "a cell cannot be saved");
        run->pending_snapshot_len = text.len;
        run->pending_snapshot = sim_copy(rv__buf_view(&text));
        rv__buf_done(&text);
    }
    run->pending_over = rv__run_terminal(rv__cell_status(run->cell)) && !rv__cell_active(run->cell);
    rv__facts_reset(&run->facts);
    run->judged = run->shadowed = 0;
}

static void begin_commit(struct world *world)
{
    bool any = false;
    if (world->committing)
        return;
    for (struct run *run = world->runs; run != NULL; run = run->next) {
        gather(world, run);
        any |= run->pending != NULL;
    }
    if (!any)
        return;
    world->committing = true;
    world->notes_pending = world->note_count;
    world->commit_due = world->mono_ms +
                        (one_in(&world->chance, 3) ? skewed(&world->chance, 1, 50) : 0);
    if (RV__BUG(1)) { /* act before it is on disk */
        size_t count = world->notes_pending;
        for (size_t i = 0; i < count; i++)
            release_effect(world, &world->notes[i]);
        memmove(world->notes, world->notes + count,
                (world->note_count - count) * sizeof *world->notes);
        world->note_count -= count;
        world->notes_pending = 0;
    }
}

static void released(struct world *world, size_t count)
{
    memmove(world->notes, world->notes + count, (world->note_count - count) * sizeof *world->notes);
    world->note_count -= count;
    world->notes_pending -= count;
}

static void committed(struct world *world)
{
    for (struct run *run = world->runs; run != NULL; run = run->next) {
        if (run->pending == NULL)
            continue;
        run->began = true;
        run->durable_t = run->pending_t;
        pending_free(run);
    }
    world->committing = false;
    tally.commits++;
    size_t done = 0, count = world->notes_pending;
    size_t until = count;
    bool dies = strikes(&world->faults, &world->chance, FAULT_CRASH_RELEASE);
    if (dies)
        until = count > 0 ? (size_t)between(&world->chance, 0, (int64_t)count - 1) : 0;
    for (; done < until && !world->failed; done++)
        release_effect(world, &world->notes[done]);
    if (world->failed)
        return;
    if (dies) {
        world_crash(world, "while effects are released", false);
        return;
    }
    released(world, count);
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next) {
        if (!run->pending_over || run->over || run->facts.count > 0)
            continue;
        judge_over(world, run);
        run->over = true;
        rv__cell_free(run->cell);
        rv__cell_free(run->shadow);
        run->cell = run->shadow = NULL;
    }
}

static void finish_commit(struct world *world)
{
    struct rv__store_write *writes = sim_alloc((size_t)world->run_count * sizeof *writes);
    struct rv__store_run *rows = sim_alloc((size_t)world->run_count * sizeof *rows);
    struct rv__store_result **results = sim_alloc((size_t)world->run_count * sizeof *results);
    size_t count = 0;
    rv_error err;
    for (struct run *run = world->runs; run != NULL; run = run->next) {
        if (run->pending == NULL)
            continue;
        struct rv__store_write *w = &writes[count];
        rows[count] = (struct rv__store_run){
            .id = rv__str(run->id),
            .version = rv__str(run->plan->plan->version),
            .status = rv__str(run->pending_over ? "over" : "alive"),
            .input = rv__blob_str(run->input),
            .active = !run->pending_over,
        };
        results[count] = sim_alloc(run->pending_row_count * sizeof **results);
        for (size_t i = 0; i < run->pending_row_count; i++)
            results[count][i] = (struct rv__store_result){ run->pending_rows[i].key,
                                                           run->pending_rows[i].index,
                                                           run->pending_rows[i].json };
        *w = (struct rv__store_write){
            .run = rv__str(run->id),
            .facts = { run->pending, run->pending_len },
            .results = results[count],
            .result_count = run->pending_row_count,
            .row = &rows[count],
            .snapshot = { run->pending_snapshot, run->pending_snapshot_len },
        };
        count++;
    }
    if (strikes(&world->faults, &world->chance, FAULT_STORE))
        world->store.fate = SIM_STORE_FAILS;
    else if (strikes(&world->faults, &world->chance, FAULT_CRASH_COMMIT))
        world->store.fate = one_in(&world->chance, 2) ? SIM_STORE_DIES_BEFORE
                                                      : SIM_STORE_DIES_AFTER;
    int rc = rv__store_commit(&world->store.store, writes, count, &err);
    for (size_t i = 0; i < count; i++)
        free(results[i]);
    free(results);
    free(rows);
    free(writes);
    world->commit_due = -1;
    if (world->store.dead) {
        world_crash(world, "in a commit", false);
    } else if (rc == RV_ESTORE) {
        trace(world, "the commit fails: again later");
        world->commit_due = world->mono_ms + skewed(&world->chance, 1, 1000);
    } else if (rc < 0) {
        judge_fail(world, NULL, "store", "a commit is refused: %s", err.message);
    } else {
        trace(world, "committed");
        committed(world);
    }
}

/* ----------------------------------------------------------------------------------- turns --- */

/* Fail one of the next allocations, now and then. */
static void memory_trouble(struct world *world)
{
    if (strikes(&world->faults, &world->chance, FAULT_MEMORY))
        rv__test_fail_alloc_after((long)skewed(&world->chance, 0, 30));
}

static void memory_back(void)
{
    rv__test_fail_alloc_after(-1);
}

static void accept_answer(struct world *world, const struct letter *letter)
{
    if (letter->msg.kind != MSG_PARK || letter->answer_ms < 0)
        return;
    struct rv__msg msg = { .kind = MSG_ANSWER,
                           .name = letter->msg.name,
                           .chance = letter->msg.chance };
    *(letter->answer_fails ? &msg.error : &msg.result) = rv__blob_ref(letter->answer);
    msg.state = rv__blob_ref(letter->answer_state);
    world_send(world, letter->run, &msg, letter->answer_ms)->outside = true;
}

static void deliver(struct world *world, struct letter *letter)
{
    struct run *run = letter->run;
    struct expectation expected;
    rv_error err = { .message = "" };
    char name[200];
    if (letter->kills) {
        if (work_there(world, run, letter->msg.actor, letter->msg.token)) {
            world->faults.happened[FAULT_KILLER]++;
            world_crash(world, "by a step", false);
        }
        return;
    }
    if (run->cell == NULL)
        return;
    letter->msg.now_ms = wall_ms(world);
    trace(world, "%s gets %s%s%.*s for %s, token %llu", run->id,
          rv__msg_kind_name(letter->msg.kind), letter->msg.name.len > 0 ? " " : "",
          RV__ARG(letter->msg.name),
          letter->msg.actor > 0 ? work_name(run, letter->msg.actor, name, sizeof name) : "it",
          (unsigned long long)letter->msg.token);
    if (letter->msg.kind != MSG_ANSWER && letter->msg.actor != 0)
        work_remove(world, run, letter->msg.actor, letter->msg.token);
    judge_before(world, run, &letter->msg, &expected);
    size_t facts_before = run->facts.count;
    memory_trouble(world);
    int rc = rv__flow_send(run->cell, &letter->msg, &run->facts, &err);
    memory_back();
    if (rc == RV_ENOMEM) {
        if (run->facts.count != facts_before)
            judge_fail(world, run, "memory", "a message was half taken when memory ran out");
        rc = rv__flow_send(run->cell, &letter->msg, &run->facts, &err);
    }
    judge_after(world, run, &letter->msg, rc, &expected);
    if (rc == RV_OK && run->facts.count > facts_before)
        accept_answer(world, letter);
}

static int used(const struct world *world, enum rv__lane lane)
{
    int count = 0;
    for (const struct work *w = world->works; w != NULL; w = w->next)
        count += w->lane == lane;
    for (size_t i = 0; i < world->note_count; i++) {
        const struct effect_note *n = &world->notes[i];
        if (n->effect.kind != EFFECT_START || n->lane != lane)
            continue;
        const struct rv__effect *now = judge_owed(n->run, n->effect.actor);
        count += now != NULL && now->token == n->effect.token;
    }
    return count;
}

static bool wanted(const struct world *world, enum rv__lane lane)
{
    for (const struct run *run = world->runs; run != NULL; run = run->next)
        if (run->cell != NULL && rv__cell_wants(run->cell, lane))
            return true;
    return false;
}

/* May a place in this lane be given now? */
static bool place_free(const struct world *world, enum rv__lane lane)
{
    bool suspects = wanted(world, LANE_SUSPECT);
    if (lane == LANE_SUSPECT) /* alone */
        return used(world, LANE_SUSPECT) == 0 && used(world, LANE_FUNCTION) == 0;
    if (lane == LANE_FUNCTION && (suspects || used(world, LANE_SUSPECT) > 0))
        return false;
    return used(world, lane) < world->places[lane];
}

static bool grant_lane(struct world *world, enum rv__lane lane)
{
    bool any = false;
    rv_error err;
    while (!world->failed && place_free(world, lane)) {
        bool given = false;
        for (int i = 0; i < world->run_count && !given && !world->failed; i++) {
            uint64_t turn = world->next_run++ % (uint64_t)world->run_count;
            struct run *run = world->runs;
            while (turn-- > 0)
                run = run->next;
            if (run->cell == NULL || !rv__cell_wants(run->cell, lane))
                continue;
            size_t before = run->facts.count;
            memory_trouble(world);
            int rc = rv__flow_grant(run->cell, lane, wall_ms(world), &run->facts, &err);
            memory_back();
            given = rc == 1;
            if (rc < 0 && rc != RV_ENOMEM)
                judge_fail(world, run, "grant", "grant says %d: %s", rc, err.message);
            if (run->facts.count - before > 2 * RV__PLAN_MAX_DEPTH + RV__TURN_FACTS)
                judge_fail(world, run, "bound", "a grant made %zu facts",
                           run->facts.count - before);
            judge_facts(world, run, rc == 1 ? lane : LANE_NONE);
        }
        any |= given;
        if (!given)
            break;
    }
    return any;
}

static void pump(struct world *world, struct run *run)
{
    rv_error err;
    for (;;) {
        size_t before = run->facts.count;
        bool more = rv__cell_more(run->cell);
        memory_trouble(world);
        int rc = rv__flow_pump(run->cell, wall_ms(world), &run->facts, &err);
        memory_back();
        size_t made = run->facts.count - before;
        if (rc < 0 && rc != RV_ENOMEM)
            judge_fail(world, run, "pump", "pump says %d: %s", rc, err.message);
        if (made > RV__TURN_FACTS)
            judge_fail(world, run, "bound", "a pump made %zu facts", made);
        if (!more && made > 0)
            judge_fail(world, run, "more", "pump did something after more() said no");
        judge_facts(world, run, LANE_NONE);
        if (rc == 0 && rv__cell_more(run->cell) && !world->failed)
            judge_fail(world, run, "more", "pump says it is done, and more() says it is not");
        if (rc == 0 || world->failed || strikes(&world->faults, &world->chance, FAULT_CUT))
            return;
    }
}

static void pump_all(struct world *world)
{
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next)
        if (run->cell != NULL && rv__cell_more(run->cell))
            pump(world, run);
}

/* Deliver what is due, give places, let follow what follows; then on to the disk with it. */
static void turn(struct world *world)
{
    struct rv__timer *due;
    world->turns++;
    tally.turns++;
    /* All that is due, in an order that nobody promised. */
    struct letter **batch = NULL;
    size_t count = 0;
    while ((due = rv__timers_pop_due(&world->mono, world->mono_ms)) != NULL) {
        batch = sim_grow(batch, (count + 1) * sizeof *batch);
        batch[count++] = (struct letter *)((char *)due - offsetof(struct letter, timer));
        letter_remove(world, batch[count - 1]);
        if (strikes(&world->faults, &world->chance, FAULT_CUT))
            break;
    }
    while ((due = rv__timers_pop_due(&world->wall, wall_ms(world))) != NULL) {
        struct wait *wait = (struct wait *)((char *)due - offsetof(struct wait, timer));
        struct rv__msg msg = { .kind = MSG_TIMER,
                               .actor = wait->actor,
                               .token = wait->token,
                               .chance = rv__random_double(&world->chance.random) };
        struct letter *letter = world_send(world, wait->run, &msg, 0);
        wait_remove(world, wait);
        letter_remove(world, letter);
        batch = sim_grow(batch, (count + 1) * sizeof *batch);
        batch[count++] = letter;
    }
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)between(&world->chance, 0, (int64_t)i - 1);
        struct letter *swap = batch[i - 1];
        batch[i - 1] = batch[other];
        batch[other] = swap;
    }
    for (size_t i = 0; i < count; i++) {
        if (!world->failed && !world->dead)
            deliver(world, batch[i]);
        letter_free(batch[i]);
    }
    free(batch);
    if (world->dead || world->failed)
        return;
    if (one_in(&world->chance, 2))
        pump_all(world);
    for (bool any = true; any && !world->failed;) {
        any = false;
        static const enum rv__lane lanes[] = { LANE_SUSPECT, LANE_EVAL, LANE_FUNCTION, LANE_IO,
                                               LANE_HTTP };
        for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
            any |= grant_lane(world, lanes[i]);
        pump_all(world);
        if (strikes(&world->faults, &world->chance, FAULT_CUT))
            break;
    }
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next)
        if (run->cell != NULL && run->facts.count > 0)
            judge_turn(world, run);
    if (!world->failed)
        begin_commit(world);
}

/* ------------------------------------------------------------------------------------ runs --- */

static void start_cell(struct world *world, struct run *run)
{
    struct rv__cell_opts opts = { run->plan->plan, world->max_crashes };
    rv_error err;
    trace(world, "%s starts", run->id);
    if (rv__cell_start(&opts, run->input, wall_ms(world), &run->facts, &run->cell, &err) < 0 ||
        rv__cell_empty(&opts, &run->shadow, &err) < 0) {
        judge_fail(world, run, "start", "a run cannot be started: %s", err.message);
        return;
    }
    judge_facts(world, run, LANE_NONE);
}

static void start_run(struct world *world)
{
    struct run *run = sim_alloc(sizeof *run);
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
    start_cell(world, run);
}

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
        letter_remove(world, l);
        letter_free(l);
    }
    while (world->works != NULL) {
        struct work *next = world->works->next;
        free(world->works);
        world->works = next;
    }
    while (world->waits != NULL)
        wait_remove(world, world->waits);
    world->note_count = world->notes_pending = 0;
    world->committing = false;
    world->commit_due = -1;
    for (struct run *run = world->runs; run != NULL; run = run->next) {
        rv__cell_free(run->cell);
        rv__cell_free(run->shadow);
        run->cell = run->shadow = NULL;
        rv__facts_reset(&run->facts);
        run->judged = run->shadowed = 0;
        pending_free(run);
        run->pending_over = false;
        judge_forget(run);
    }
    world->dead = true;
    world->wake_due = world->mono_ms +
                      (one_in(&world->chance, 2) ? 0 : skewed(&world->chance, 1, 10000000));
    world->clean = clean;
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
    struct rv__cell_opts opts = { l->run->plan->plan, l->world->max_crashes };
    rv_error err;
    l->rc = rv__cell_load(&opts, text, &l->run->cell, &err);
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
    struct rv__cell_opts opts = { run->plan->plan, world->max_crashes };
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
    int functions;
    bool count_only;
    bool clean;
};

static bool in_process(const struct run *run, const struct rv__effect *effect)
{
    const struct rv__node *node = effect->node;
    if (effect->eval < 0)
        return node->step.lane == LANE_FUNCTION;
    const struct rv__expr *expr = NULL;
    switch ((enum rv__eval)effect->eval) {
    case EVAL_WHEN: expr = &node->when; break;
    case EVAL_IF: expr = &node->branch.condition; break;
    case EVAL_WHILE: expr = &node->loop.while_; break;
    case EVAL_UNTIL: expr = &node->loop.until; break;
    case EVAL_ITEMS: expr = &node->foreach.items; break;
    case EVAL_INPUT: {
        const struct rec_actor *actor = record_actor(&run->rec, effect->actor);
        expr = actor != NULL && actor->plan_body != NULL ? &actor->plan_body->wrap->input : NULL;
        break;
    }
    case EVAL_DESCRIPTION:
    case EVALS: break;
    }
    return expr != NULL && expr->kind == EXPR_FUNCTION;
}

static void owed_again(void *arg, const struct rv__effect *effect)
{
    struct fleet *f = arg;
    if (f->count_only) {
        f->functions += effect->kind == EFFECT_START && in_process(f->run, effect);
        return;
    }
    struct run *run = f->run;
    judge_owe(run, effect);
    if (effect->kind == EFFECT_WAIT) {
        if (!RV__BUG(3)) /* a timer is forgotten */
            arm_wait(f->world, run, effect);
        return;
    }
    struct rv__msg msg = { .kind = MSG_LOST, .actor = effect->actor, .token = effect->token };
    if (in_process(run, effect) && !f->clean) {
        msg.blame = f->functions == 1;
        msg.suspect = f->functions > 1;
    }
    world_send(f->world, run, &msg, 0);
}

static void recover(struct world *world)
{
    rv__sim_store_restart(&world->store);
    world->dead = false;
    world->wake_due = -1;
    trace(world, "---- a new process begins");
    (void)rv__store_active(&world->store.store, see_active, world, NULL);
    struct fleet fleet = { .world = world, .count_only = true, .clean = world->clean };
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next) {
        bool listed = run->marked;
        run->marked = false;
        if (run->over)
            continue;
        judge_rebuild(world, run);
        if (!run->rec.started) { /* its start was lost: whoever asked for it asks again */
            start_cell(world, run);
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
            continue;
        }
        fleet.run = run;
        rv__cell_outstanding(run->cell, owed_again, &fleet);
    }
    fleet.count_only = false;
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
        letter_remove(world, l);
        deliver(world, l);
        letter_free(l);
    }
}

/* ------------------------------------------------------------------------------------ quiet --- */

/* Nothing is under way. What the world owes the runs that wait for it is done now. */
static bool stir(struct world *world, struct run *run)
{
    struct rv__msg msg = { 0 };
    int stirred = 0;
    if (rv__cell_status(run->cell) == RUN_SUSPENDED) {
        bool abort_it = run->resumes >= 2;
        msg.kind = abort_it ? MSG_ABORT : MSG_RESUME;
        if (abort_it) {
            run->untimely = true;
            msg.error = sim_blob(rv__str("{\"message\":\"given up\"}"));
        }
        run->resumes++;
        world_send(world, run, &msg, skewed(&world->chance, 0, 1000));
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
        } else if (rv__run_terminal(rv__cell_status(run->cell))) {
            /* Detached, and waiting for ever: it can only be cancelled. */
            msg = (struct rv__msg){ .kind = MSG_CANCEL };
        }
        world_send(world, run, &msg, skewed(&world->chance, 0, 1000));
        if (++stirred == 50 || msg.kind == MSG_CANCEL)
            break;
    }
    return stirred > 0;
}

/* False: all is over. */
static bool when_quiet(struct world *world)
{
    bool open = false;
    world->faults.calm = ++world->quiets > 20;
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
    world->places[LANE_IO] = (int)skewed(c, 1, 12);
    world->places[LANE_EVAL] = (int)skewed(c, 1, 4);
    world->places[LANE_HTTP] = (int)skewed(c, 1, 12);
    world->places[LANE_SUSPECT] = 1;
    world->max_crashes = one_in(c, 2) ? 0 : (int)between(c, 1, 4);
    world->commit_due = world->wake_due = -1;
    world->meddle_due = skewed(c, 0, 10000);
    world->start_due = 0;
    int64_t budget = one_in(c, 300)  ? skewed(c, 100, 4000)
                     : one_in(c, 12) ? skewed(c, 20, 400)
                                     : between(c, 1, one_in(c, 3) ? 6 : 30);
    world->run_goal = (int)skewed(c, 1, budget < 50 ? 4 : 2);
    if (world->cut.runs > 0)
        world->run_goal = world->cut.runs;
    plan_make(world, 0, mix(seed, 2), budget);
    world->plan_count = 1;
    if (world->run_goal > 1 && one_in(c, 4) && !world->failed) {
        plan_make(world, 1, mix(seed, 3), skewed(c, 1, 20));
        world->plan_count = 2;
    }
}

void world_done(struct world *world)
{
    memory_back();
    for (int i = 0; i < FAULT_KINDS; i++)
        tally.faults[i] += world->faults.happened[i];
    while (world->letters != NULL) {
        struct letter *letter = world->letters;
        letter_remove(world, letter);
        letter_free(letter);
    }
    while (world->waits != NULL)
        wait_remove(world, world->waits);
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
        pending_free(run);
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
    for (int lane = LANE_FUNCTION; lane < LANES; lane++)
        if (wanted(world, (enum rv__lane)lane) && place_free(world, (enum rv__lane)lane))
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
            turn(world);
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
            recover(world);
        else if (world->commit_due >= 0 && world->commit_due <= world->mono_ms)
            finish_commit(world);
        else if (world->run_count < world->run_goal && world->start_due <= world->mono_ms) {
            start_run(world);
            world->start_due = world->mono_ms + skewed(&world->chance, 0, 100000);
        } else if (world->meddle_due <= world->mono_ms && !world->faults.calm) {
            world_meddle(world);
            world->meddle_due = world->mono_ms + skewed(&world->chance, 0, 100000);
        } else {
            turn(world);
        }
    }
    tally.virtual_ms += (uint64_t)(world->mono_ms - began_ms);
}
