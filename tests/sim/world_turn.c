/* world_turn.c: the turns of the simulated shell, and its commits. */
#include "world.h"

#include <stdlib.h>

#include "base/alloc.h"

/* --------------------------------------------------------------------------------- commits --- */

void world_pending_free(struct run *run)
{
    for (size_t i = 0; i < run->pending_row_count; i++) {
        free((char *)run->pending_rows[i].key.at);
        free((char *)run->pending_rows[i].json.at);
    }
    for (size_t i = 0; i < run->pending_value_count; i++)
        rv__blob_unref(run->pending_values[i].json);
    free(run->pending_values);
    run->pending_values = NULL;
    run->pending_value_count = 0;
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
    run->pending_value_count = run->facts.value_count;
    run->pending_values = sim_alloc(run->facts.value_count * sizeof *run->pending_values);
    for (size_t i = 0; i < run->facts.value_count; i++) {
        run->pending_values[i] = run->facts.values[i];
        (void)rv__blob_ref(run->facts.values[i].json);
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
            world_release(world, &world->notes[i]);
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
        world_pending_free(run);
    }
    world->committing = false;
    tally.commits++;
    size_t done = 0, count = world->notes_pending;
    size_t until = count;
    bool dies = strikes(&world->faults, &world->chance, FAULT_CRASH_RELEASE);
    if (dies)
        until = count > 0 ? (size_t)between(&world->chance, 0, (int64_t)count - 1) : 0;
    for (; done < until && !world->failed; done++)
        world_release(world, &world->notes[done]);
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

void world_finish_commit(struct world *world)
{
    struct rv__store_write *writes = sim_alloc((size_t)world->run_count * sizeof *writes);
    struct rv__store_run *rows = sim_alloc((size_t)world->run_count * sizeof *rows);
    struct rv__store_result **results = sim_alloc((size_t)world->run_count * sizeof *results);
    struct rv__store_value **values = sim_alloc((size_t)world->run_count * sizeof *values);
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
        values[count] = sim_alloc(run->pending_value_count * sizeof **values);
        for (size_t i = 0; i < run->pending_value_count; i++)
            values[count][i] = (struct rv__store_value){
                run->pending_values[i].number, rv__blob_str(run->pending_values[i].json)
            };
        *w = (struct rv__store_write){
            .run = rv__str(run->id),
            .values = values[count],
            .value_count = run->pending_value_count,
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
    for (size_t i = 0; i < count; i++)
        free(values[i]);
    free(values);
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

void world_memory_back(void)
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

void world_deliver(struct world *world, struct letter *letter)
{
    struct run *run = letter->run;
    struct expectation expected;
    rv_error err = { .message = "" };
    char name[200];
    if (letter->kills) {
        if (world_work_there(world, run, letter->msg.actor, letter->msg.token)) {
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
    if (letter->msg.kind != MSG_ANSWER && letter->msg.kind != MSG_READ && letter->msg.actor != 0)
        world_work_remove(world, run, letter->msg.actor, letter->msg.token);
    judge_before(world, run, &letter->msg, &expected);
    size_t facts_before = run->facts.count;
    memory_trouble(world);
    int rc = rv__flow_send(run->cell, &letter->msg, &run->facts, &err);
    world_memory_back();
    if (rc == RV_ENOMEM) {
        if (run->facts.count != facts_before)
            judge_fail(world, run, "memory", "a message was half taken when memory ran out");
        rc = rv__flow_send(run->cell, &letter->msg, &run->facts, &err);
    }
    judge_after(world, run, &letter->msg, rc, &expected);
    if (rc == RV_OK && run->facts.count > facts_before)
        accept_answer(world, letter);
}

bool world_wanted(const struct world *world, enum rv__lane lane)
{
    for (const struct run *run = world->runs; run != NULL; run = run->next)
        if (run->cell != NULL && rv__cell_wants(run->cell, lane))
            return true;
    return false;
}

/* May a place in this lane be given now? */
bool world_place_free(const struct world *world, enum rv__lane lane)
{
    int suspects = world->taken[LANE_SUSPECT];
    if (lane == LANE_SUSPECT && suspects > 0 && !RV__BUG(22))
        return false;                                  /* one at a time, beside all others */
    if (lane == LANE_SUSPECT || lane == LANE_FUNCTION) /* they share the threads */
        return world->taken[LANE_FUNCTION] + suspects < world->places[LANE_FUNCTION];
    return world->taken[lane] < world->places[lane];
}

/* Those whose turn is next; of suspects, those that have been blamed first. */
static bool is_next(const struct world *world, const struct run *run, enum rv__lane lane)
{
    if (run->cell == NULL || !rv__cell_wants(run->cell, lane))
        return false;
    if (lane != LANE_SUSPECT || rv__cell_blamed(run->cell))
        return true;
    for (const struct run *other = world->runs; other != NULL; other = other->next)
        if (other->cell != NULL && rv__cell_wants(other->cell, lane) &&
            rv__cell_blamed(other->cell))
            return false;
    return true;
}

static bool grant_lane(struct world *world, enum rv__lane lane)
{
    bool any = false;
    rv_error err;
    while (!world->failed && world_place_free(world, lane)) {
        bool given = false;
        for (int i = 0; i < world->run_count && !given && !world->failed; i++) {
            uint64_t turn = world->next_run++ % (uint64_t)world->run_count;
            struct run *run = world->runs;
            while (turn-- > 0)
                run = run->next;
            if (!is_next(world, run, lane))
                continue;
            size_t before = run->facts.count;
            memory_trouble(world);
            int rc = rv__flow_grant(run->cell, lane, wall_ms(world), &run->facts, &err);
            world_memory_back();
            given = rc == 1;
            world->taken[lane] += given;
            run->given[lane] += given;
            if (rc < 0 && rc != RV_ENOMEM)
                judge_fail(world, run, "grant", "grant says %d: %s", rc, err.message);
            if (run->facts.count - before > 2 * RV__PLAN_MAX_DEPTH + RV__TURN_FACTS)
                judge_fail(world, run, "bound", "a grant made %zu facts",
                           run->facts.count - before);
            judge_facts(world, run);
            if (one_in(&world->chance, 2)) /* else when the turn ends, as an engine would */
                judge_effects(world, run);
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
        world_memory_back();
        size_t made = run->facts.count - before;
        if (rc < 0 && rc != RV_ENOMEM)
            judge_fail(world, run, "pump", "pump says %d: %s", rc, err.message);
        if (made > RV__TURN_FACTS)
            judge_fail(world, run, "bound", "a pump made %zu facts", made);
        if (!more && made > 0)
            judge_fail(world, run, "more", "pump did something after more() said no");
        judge_facts(world, run);
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
void world_turn(struct world *world)
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
        world_letter_remove(world, batch[count - 1]);
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
        world_wait_remove(world, wait);
        world_letter_remove(world, letter);
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
            world_deliver(world, batch[i]);
        world_letter_free(batch[i]);
    }
    free(batch);
    if (world->dead || world->failed)
        return;
    if (one_in(&world->chance, 2))
        pump_all(world);
    for (bool any = true; any && !world->failed;) {
        any = false;
        static const enum rv__lane lanes[] = { LANE_SUSPECT, LANE_EVAL, LANE_FUNCTION,
                                               LANE_HOST,    LANE_IO,   LANE_HTTP };
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
        judge_places(world);
    if (!world->failed)
        begin_commit(world);
}
