/* shell.c: drives a real engine through rival.h: starts, signals, answers, cancels, decides, looks and
 * waits, lets time pass, kills the process and begins anew; all of it from the seed. What the disk does
 * meanwhile is in shell_disk.c, what the steps do in shell_work.c, what must hold in shell_judge.c. */
#include "shell.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"

enum {
    ACTIONS = 30,    /* then it becomes calm, and is driven to the end */
    ROUNDS = 4000,   /* of "nothing happens any more; stir": more is no end */
    RESUMES = 4,     /* then a suspended run is given up */
    SIGNALS = 50,    /* to one run, unasked for */
    MOST_NODES = 60, /* of a plan: it is the engine that is tried, not large plans */
};

int64_t shell_ms(const struct shell *s)
{
    if (s->crowd != NULL)
        return crowd_ms(s);
    return s->base_ms + (s->engine != NULL ? rv__mono_ms(s->engine->clock) : 0);
}

void tell(struct shell *s, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    if (!s->world.trace)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->world.mono_ms = shell_ms(s);
    trace(&s->world, "%s", text);
}

struct run *shell_find(struct shell *s, const char *id)
{
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        if (strcmp(run->id, id) == 0)
            return run;
    return NULL;
}

/* ------------------------------------------------------------------------- registrations --- */

static struct rv__str workflow_of(const struct rv__node *node)
{
    const struct rv__body *body = rv__node_around(node);
    while (body->wrap == NULL)
        body = rv__node_around(body->owner);
    return body->wrap->name;
}

/* The functions of one workflow of the plan, by name. All of them do the same. */
static void add_functions(const struct shell *s, const struct sim_plan *plan, rv_workflow *w,
                          struct rv__str name)
{
    for (uint32_t i = 0; i < plan->plan->node_count; i++) {
        const struct rv__node *node = plan->plan->nodes[i];
        if (!rv__str_eq(workflow_of(node), name))
            continue;
        for (int eval = -1; eval < EVALS; eval++) {
            struct rv__named_fn *named;
            if (eval < 0 && node->kind != NODE_STEP)
                continue;
            struct rv__str fn = rv__plan_ref_fn_name(node, eval, NULL);
            if (fn.len == 0 || !crowd_has(s, fn))
                continue;
            named = rv__arena_zalloc(&w->arena, 1, sizeof *named);
            if (named == NULL)
                abort();
            *named = (struct rv__named_fn){ w->functions, fn, shell_work };
            w->functions = named;
        }
    }
}

/* Register the plan's workflows; those in it, too, so that their functions are known. Again, where the
 * upgrade of a program is only that it knows more: as files that are loaded again. */
static void register_plan(struct shell *s, int which)
{
    const struct gen_drafts *drafts = &s->drafts[which];
    const struct sim_plan *plan = &s->world.plans[which];
    rv_error err = { .message = "" };
    for (size_t i = drafts->count; i-- > 0 && !s->world.failed;) {
        rv_workflow w = { .draft = drafts->drafts[i], .replace = true };
        struct rv__plan *own = NULL;
        rv__arena_init(&w.arena, SIZE_MAX);
        if (rv__plan_compile(w.draft, NULL, NULL, &own, &err) < 0)
            abort();
        add_functions(s, plan, &w, own->body.wrap->name);
        if (rv_register(s->engine, &w, &err) < 0)
            judge_fail(&s->world, NULL, "register", "a plan is refused: %s", err.message);
        rv__plan_free(own);
        rv__arena_done(&w.arena);
    }
}

/* Some functions are in hosts: which, is a matter of the process, and so of chance. */
static void place_functions(struct shell *s)
{
    rv_engine *e = s->engine;
    for (struct rv__function *f = e->registry->functions; f != NULL; f = f->next)
        if (f->executor != NULL)
            f->executor =
                e->lanes[s->hosted_one_in > 0 && one_in(&s->world.chance, s->hosted_one_in)
                             ? LANE_HOST
                             : LANE_FUNCTION]
                    .executor;
    e->registry->generation++;
    e->relane = true;
    crew_place(s);
}

/* What it has is not taken back. */
static void set_credits(struct rv__lane_places *lane, int64_t credits)
{
    lane->executor->credits = credits > lane->taken ? credits : lane->taken;
}

static void change_credits(struct shell *s)
{
    static const enum rv__lane lanes[] = { LANE_FUNCTION, LANE_HOST };
    struct rv__lane_places *lane = &s->engine->lanes[lanes[between(&s->world.chance, 0, 1)]];
    set_credits(lane, skewed(&s->world.chance, 0, 8));
    tell(s, "the executor %s takes %lld at once", lane->executor->name,
         (long long)lane->executor->credits);
}

/* As they were at first: so that nobody is left without. */
static void restore_credits(struct shell *s)
{
    for (int lane = 0; lane < LANES; lane++)
        if (s->engine->lanes[lane].executor != NULL && s->credits[lane] > 0)
            set_credits(&s->engine->lanes[lane], s->credits[lane]);
}

static void register_all(struct shell *s)
{
    for (int i = 0; i < s->world.plan_count; i++)
        register_plan(s, i);
    place_functions(s);
    s->missing = false;
}

/* A function is no longer there: the program was changed, and something was forgotten. */
static void lose_function(struct shell *s)
{
    struct rv__function *list[64];
    size_t count = 0;
    for (struct rv__function *f = s->engine->registry->functions; f != NULL; f = f->next)
        if (count < sizeof list / sizeof *list)
            list[count++] = f;
    if (count == 0)
        return;
    struct rv__function *lost = list[between(&s->world.chance, 0, (int64_t)count - 1)];
    tell(s, "the function %.*s of %.*s is missing from now on", RV__ARG(lost->name),
         RV__ARG(lost->workflow));
    lost->executor = NULL;
    s->engine->registry->generation++;
    s->engine->relane = true;
    s->missing = true;
}

/* ------------------------------------------------------------------------------ lives --- */

/* `late`: the program registers what it knows later, or some of it. */
void shell_open(struct shell *s, int64_t wall_ms, bool late)
{
    rv_error err = { .message = "" };
    int64_t now_ms = shell_ms(s);
    uint32_t max_crashes = s->world.max_crashes > 0 ? (uint32_t)s->world.max_crashes : INT32_MAX;
    shell_now = s;
    rv_test_opts opts = { .size = sizeof opts,
                          .seed = mix(s->world.seed, ++s->lives),
                          .start_ms = wall_ms,
                          .workers = (uint32_t)s->workers,
                          .max_crashes = max_crashes };
    if (rv__kit_open(&opts, disk_kit(s->disk), &s->engine, &err) < 0) {
        s->engine = NULL;
        judge_fail(&s->world, NULL, "open", "the engine cannot be opened: %s", err.message);
        return;
    }
    s->base_ms = now_ms - rv__mono_ms(s->engine->clock);
    s->engine->kit->beside_one_in = s->beside_one_in;
    s->engine->kit->late_one_in = s->late_one_in;
    s->engine->kit->unsaid_one_in = s->unsaid_one_in;
    s->engine->kit->begin_one_in = s->begin_one_in;
    s->engine->kit->lose_one_in = s->lose_one_in;
    restore_credits(s);
    s->engine->commit.piece = s->piece;
    s->engine->commit.snapshot_from = s->snapshot_from;
    s->engine->commit.value_inline = s->value_inline;
    s->engine->commit.turn_facts = s->turn_facts;
    s->engine->burst = s->burst;
    for (int i = 0; i < SIM_PROVIDERS; i++)
        if (s->limits[i].name != NULL && rv__limits_add(s->engine, &s->limits[i]) < 0)
            judge_fail(&s->world, NULL, "open", "no memory for a limit");
    if (rv_test_replace(s->engine, "turn", shell_work, &err) < 0)
        judge_fail(&s->world, NULL, "open", "%s", err.message);
    s->engine->load.budget = s->budget;
    s->missing = late;
    if (!late)
        register_all(s);
    else if (one_in(&s->world.chance, 2)) {
        register_plan(s, 0);
        place_functions(s);
    }
}

/* The whole program ends here, and another one begins. */
static void new_process(struct shell *s)
{
    int64_t wall_ms = rv_test_now(s->engine), then_ms = shell_ms(s);
    tell(s, "---- the process dies, and another begins");
    rv_engine_free(s->engine);
    s->engine = NULL;
    s->base_ms = then_ms;
    shell_open(s, wall_ms, one_in(&s->world.chance, 4));
}

static void die(struct shell *s)
{
    if (one_in(&s->world.chance, 3)) {
        new_process(s);
        return;
    }
    tell(s, "---- the process dies");
    (void)rv_test_crash(s->engine, NULL);
}

static void shut_down(struct shell *s)
{
    int64_t grace_ms = skewed(&s->world.chance, 0, 100);
    tell(s, "---- the process is shut down, within %lld ms", (long long)grace_ms);
    rv__kit_restart(s->engine, grace_ms);
}

static void jump(struct shell *s)
{
    int64_t by_ms = skewed(&s->world.chance, 1, 100000000);
    if (one_in(&s->world.chance, 2))
        by_ms = -by_ms;
    tell(s, "the clock jumps by %lld ms", (long long)by_ms);
    rv__virtual_clock_jump(&s->engine->kit->clock, by_ms);
    for (struct run *run = s->world.runs; run != NULL; run = run->next)
        run->untimely = true; /* the time-out of a parked step may now come before its answer */
}

/* ------------------------------------------------------------------------------- calls --- */

/* Did it do what it says it did? It may have been asked twice, if the process died meanwhile. */
static void expect_rc(struct shell *s, struct run *run, const char *who, int rc, int other,
                      const rv_error *err, int64_t crashes)
{
    bool died = s->engine->kit->crashes != crashes;
    if (crowd_excuses(s, rc))
        return;
    if (rc == RV_EINVAL && s->refused > 0)
        return; /* with what was decided for the run besides */
    if (rc < 0 && rc != other && !(died && (rc == RV_ESTATE || rc == RV_ENOTFOUND)))
        judge_fail(&s->world, run, "call", "%s fails: %s", who, err->message);
}

static void start_run(struct shell *s)
{
    struct world *world = &s->world;
    struct run *run = sim_alloc(sizeof *run);
    struct rv__cell_opts opts = { 0 };
    rv_error err = { .message = "" };
    run->index = world->run_count++;
    snprintf(run->id, sizeof run->id, "run%d", run->index);
    int which = world->plan_count > 1 && one_in(&world->chance, 3);
    run->plan = &world->plans[which];
    const char *input = one_in(&world->chance, 4) ? NULL : "{\"order\":[1,2,3]}";
    run->input = input != NULL ? sim_blob(rv__str(input)) : NULL;
    /* A time-out may come before what would have been in time, or behind what would not. */
    run->untimely = s->late_one_in > 0 || s->unsaid_one_in > 0 || !crowd_is_punctual(s);
    record_init(&run->rec, run->plan->plan, world->max_crashes);
    rv__facts_init(&run->facts);
    opts = (struct rv__cell_opts){ .plan = run->plan->plan, .max_crashes = s->engine->max_crashes };
    if (rv__cell_empty(&opts, &run->shadow, NULL) < 0)
        abort();
    *world->last_run = run;
    world->last_run = &run->next;
    tally.runs++;
    crowd_pick(s);
    if (s->missing)
        register_all(s);
    tell(s, "%s of %s starts", run->id, world->gens[which].name);
    if (rv_run(s->engine, world->gens[which].name, input, RV_RUN_OPTS(.run_id = run->id), NULL,
               &err) < 0) {
        judge_fail(world, run, "call", "rv_run fails: %s", err.message);
        return;
    }
    run->began = true;
    shell_watch(s, run);
    if (!run->rec.started)
        judge_fail(world, run, "answered", "a start was answered, and it is not on disk");
}

/* The same start again is the same run; with another input it is refused. */
static void start_again(struct shell *s, struct run *run)
{
    bool other = one_in(&s->world.chance, 2);
    const char *input = run->input != NULL ? rv__blob_str(run->input).at : NULL;
    int which = run->plan == &s->world.plans[1];
    rv_error err = { .message = "" };
    if (s->missing)
        register_all(s);
    tell(s, "%s is started again%s", run->id, other ? ", with another input" : "");
    int rc = rv_run(s->engine, s->world.gens[which].name, other ? "\"other\"" : input,
                    RV_RUN_OPTS(.run_id = run->id), NULL, &err);
    if (rc != (other ? RV_EEXIST : RV_OK) && !(rc == RV_EINVAL && s->refused > 0) &&
        !crowd_excuses(s, rc))
        judge_fail(&s->world, run, "call", "a second start says %d: %s", rc, err.message);
}

static void signal_run(struct shell *s, struct run *run, const char *name)
{
    char payload[32];
    rv_error err = { .message = "" };
    bool bare = s->crowd == NULL && one_in(&s->world.chance, 5);
    int number = run->signals;
    crowd_pick(s);
    snprintf(payload, sizeof payload, "{\"signal\":%d}", run->signals++);
    shell_watch(s, run);
    bool ended = !rv__cell_active(run->shadow); /* what is detached may wait for one */
    size_t before = run->rec.signal_count;
    int64_t crashes = s->engine->kit->crashes;
    bool force = run->signals % 2 == 0;
    bool wanted = force || judge_wants_signal(run, rv__str(name));
    int rc = rv_signal_with(s->engine, run->id, name, bare ? NULL : payload,
                            RV_SIGNAL_OPTS(.force = force), &err);
    tell(s, "%s gets the signal %s: %d", run->id, name, rc);
    crowd_gave(s, run, number, rc);
    shell_watch(s, run);
    bool ended_now = !rv__cell_active(run->shadow); /* its end was on its way to disk */
    bool refused = !ended && ended_now && !wanted && rc == RV_EUNWANTED; /* before it ended */
    expect_rc(s, run, "rv_signal", rc,
              refused              ? RV_EUNWANTED
              : ended || ended_now ? RV_ESTATE
              : wanted             ? RV_OK
                                   : RV_EUNWANTED,
              &err, crashes);
    if (rc == RV_OK && !ended && run->rec.signal_count == before)
        judge_fail(&s->world, run, "answered", "a signal was answered, and it is not on disk");
}

static void cancel_run(struct shell *s, struct run *run)
{
    rv_error err = { .message = "" };
    crowd_pick(s);
    int64_t crashes = s->engine->kit->crashes;
    run->cancelled = run->untimely = true;
    run->cancels++;
    int rc = rv_cancel_run(s->engine, run->id, &err);
    tell(s, "%s is cancelled: %d", run->id, rc);
    expect_rc(s, run, "rv_cancel_run", rc, RV_ESTATE, &err, crashes);
    shell_watch(s, run);
    if (rc == RV_OK && !s->world.failed && !run->rec.asked &&
        !rv__run_terminal(rv__cell_status(run->shadow)))
        judge_fail(&s->world, run, "answered", "a cancel was answered, and it is not on disk");
}

static void decide_run(struct shell *s, struct run *run, int decision)
{
    rv_error err = { .message = "" };
    crowd_pick(s);
    int64_t crashes = s->engine->kit->crashes;
    int64_t from_ms = shell_ms(s);
    shell_watch(s, run);
    bool suspended = rv__cell_status(run->shadow) == RUN_SUSPENDED;
    struct rv__buf path;
    rv__buf_init(&path, SIZE_MAX);
    size_t count = run->rec.suspended_count;
    if (suspended && count > 0) { /* by its path, which may be left out while there is one */
        struct chance *c = &s->world.chance;
        const struct rec_suspension *one = &run->rec.suspended[between(c, 0, (int64_t)count - 1)];
        if (count > 1 || one_in(c, 2))
            record_suspension_path(&run->rec, one, &path);
        if (one->which != 0 && decision == RV_RESUME)
            decision = one_in(c, 5) ? RV_RESTART_STAGE : one_in(c, 2) ? RV_SKIP : RV_RESUME;
        run->untimely |= one->which != 0;
    }
    uint64_t before = run->rec.counts[FACT_RUN_RESUMED] + run->rec.counts[FACT_RUN_ABORTED];
    if (decision == RV_ABORT)
        run->untimely = true;
    int rc = rv_decide(
        s->engine, run->id, decision,
        RV_DECIDE_OPTS(.path = path.len > 0 ? path.text : NULL, .reason = "decided so"), &err);
    tell(s, "%s is decided about (%d, %s): %d", run->id, decision,
         path.len > 0 ? path.text : "all there is", rc);
    rv__buf_done(&path);
    bool moved = s->crowd != NULL && shell_ms(s) != from_ms; /* it went on meanwhile */
    expect_rc(s, run, "rv_decide", rc,
              moved && rc == RV_ENOTFOUND ? RV_ENOTFOUND
              : suspended && !moved       ? RV_OK
                                          : RV_ESTATE,
              &err, crashes);
    shell_watch(s, run);
    if (rc == RV_OK && suspended &&
        before == run->rec.counts[FACT_RUN_RESUMED] + run->rec.counts[FACT_RUN_ABORTED])
        judge_fail(&s->world, run, "answered", "a decision was answered, and it is not on disk");
}

static void answer_run(struct shell *s, struct run *run, const char *handle, const char *result,
                       const char *error)
{
    rv_error err = { .message = "" };
    crowd_pick(s);
    int64_t crashes = s->engine->kit->crashes, from_ms = shell_ms(s);
    if (s->crowd != NULL && !crowd_owns(s, run))
        run->untimely = true; /* it goes to another member, and a time-out may come first */
    int rc = rv_complete(s->engine, run->id, handle, result, error, &err);
    tell(s, "%s gets the answer to %s: %d", run->id, handle, rc);
    bool moved = s->crowd != NULL && shell_ms(s) != from_ms; /* its time may be over */
    expect_rc(s, run, "rv_complete", rc,
              moved && (rc == RV_ENOTFOUND || rc == RV_ESTATE) ? rc : RV_OK, &err, crashes);
    shell_watch(s, run);
    if (!s->world.failed && rc == RV_OK && record_waiter(&run->rec, rv__str(handle), true) != NULL)
        judge_fail(&s->world, run, "answered", "an answer was answered, and it is not on disk");
}

static void wait_run(struct shell *s, struct run *run)
{
    rv_outcome *outcome = NULL;
    rv_error err = { .message = "" };
    int64_t ms = skewed(&s->world.chance, 1, s->crowd != NULL ? 5000 : 100000);
    crowd_pick(s);
    int rc = rv_wait(s->engine, NULL, run->id, RV_WAIT_OPTS(.timeout_ms = ms), &outcome, &err);
    tell(s, "%s was waited for: %d", run->id, rc);
    if (rc == RV_OK) {
        shell_outcome(s, run, outcome);
        rv_outcome_free(outcome);
        return;
    }
    shell_watch(s, run);
    if (rc != RV_ETIMEDOUT && !crowd_excuses(s, rc))
        judge_fail(&s->world, run, "call", "rv_wait fails: %s", err.message);
    else if (!s->world.failed && rv__run_terminal(rv__cell_status(run->shadow)) &&
             s->crowd == NULL && /* there it is looked at now and then */
             run->rec.ended_ms !=
                 rv__wall_ms(s->engine->clock)) /* else both at once: either counts */
        judge_fail(&s->world, run, "answer", "it was waited for in vain, and it has ended");
}

/* What fits nothing is refused, and changes nothing. */
static void stray(struct shell *s, struct run *run)
{
    rv_run_state *state = NULL;
    crowd_pick(s);
    int rc = rv_complete(s->engine, run->id, "nothing", "1", NULL, NULL);
    if (rc == RV_OK && !run->over)
        judge_fail(&s->world, run, "call", "a handle that nobody has is answered");
    rc = rv_signal(s->engine, "nobody", "sig0", NULL, NULL);
    if (rc != RV_ENOTFOUND && !crowd_excuses(s, rc))
        judge_fail(&s->world, NULL, "call", "a signal to nobody says %d", rc);
    rc = rv_state(s->engine, "nobody", &state, NULL);
    if (rc != RV_ENOTFOUND)
        judge_fail(&s->world, NULL, "call", "the state of nobody says %d", rc);
    start_again(s, run);
}

/* -------------------------------------------------------------------------------- time --- */

static struct answer **next_answer(struct shell *s)
{
    struct answer **first = NULL;
    for (struct answer **at = &s->answers; *at != NULL; at = &(*at)->next)
        if (first == NULL || (*at)->due_ms < (*first)->due_ms)
            first = at;
    return first;
}

static void give_answer(struct shell *s, struct answer **at)
{
    struct answer *answer = *at;
    *at = answer->next;
    shell_watch(s, answer->run);
    /* Its step may have died before it said that it waits, or be over: then nobody asks. */
    if (!s->world.failed && record_waiter(&answer->run->rec, rv__str(answer->handle), true) != NULL)
        answer_run(s, answer->run, answer->handle, answer->fails ? NULL : answer->text,
                   answer->fails ? answer->text : NULL);
    free(answer->text);
    free(answer);
}

/* Let time pass until then, or (INT64_MAX) until nothing can happen; answers come in time. */
static void advance(struct shell *s, int64_t until_ms)
{
    s->steps_left = skewed(&s->world.chance, 0, 30);
    while (!s->world.failed) {
        struct answer **at = next_answer(s);
        int64_t stop_ms = at != NULL && (*at)->due_ms < until_ms ? (*at)->due_ms : until_ms;
        int64_t mono_ms = stop_ms == INT64_MAX ? INT64_MAX : stop_ms - s->base_ms;
        s->interrupted = false;
        if (s->crowd != NULL)
            crowd_drive(s, &s->interrupted, stop_ms);
        else
            rv__kit_drive(s->engine, &s->interrupted, NULL, mono_ms);
        if (s->interrupted && s->steps_left == 0 && !s->world.faults.calm)
            return; /* in the midst of it */
        if (s->interrupted)
            continue; /* an answer to a step that has begun may be the first that is due */
        if (stop_ms == until_ms)
            return;
        give_answer(s, next_answer(s));
    }
}

/* --------------------------------------------------------------------------- meddling --- */

static bool hits(struct shell *s, enum fault fault)
{
    return strikes(&s->world.faults, &s->world.chance, fault);
}

static void meddle(struct shell *s)
{
    struct world *world = &s->world;
    struct run *run = world->runs;
    char name[8];
    if (s->crowd != NULL)
        crowd_meddle(s);
    else if (hits(s, FAULT_CRASH))
        die(s);
    if (s->crowd == NULL && hits(s, FAULT_SHUTDOWN))
        shut_down(s);
    if (hits(s, FAULT_CLOCK))
        jump(s);
    if (s->crowd == NULL && (s->missing ? one_in(&world->chance, 3) : hits(s, FAULT_MISSING))) {
        if (s->missing)
            register_all(s);
        else
            lose_function(s);
    }
    crew_meddle(s);
    if (one_in(&world->chance, 6))
        change_credits(s);
    if (s->hosted_one_in > 0 && one_in(&world->chance, 12))
        place_functions(s);
    for (int64_t n = between(&world->chance, 0, world->run_count - 1); n > 0; n--)
        run = run->next;
    if (world->failed || !run->began)
        return;
    snprintf(name, sizeof name, "sig%d", (int)between(&world->chance, 0, 2));
    if (run->signals < SIGNALS && hits(s, FAULT_SIGNAL))
        signal_run(s, run, name);
    if (!world->failed && hits(s, FAULT_STRAY))
        stray(s, run);
    if (!world->failed && hits(s, FAULT_DECIDE))
        decide_run(s, run, one_in(&world->chance, 3) ? RV_ABORT : RV_RESUME);
    if (!world->failed && hits(s, FAULT_CANCEL))
        cancel_run(s, run);
    crowd_pick(s);
    if (!world->failed && one_in(&world->chance, 4))
        shell_state(s, run);
    if (!world->failed && one_in(&world->chance, 8))
        shell_list(s);
    if (!world->failed && one_in(&world->chance, 4))
        wait_run(s, run);
}

void shell_from_inside(struct shell *s)
{
    struct world *world = &s->world;
    struct run *run = world->runs;
    char name[8];
    for (int64_t n = between(&world->chance, 0, world->run_count - 1); n > 0; n--)
        run = run->next;
    if (!run->began)
        return;
    tell(s, "a step calls the engine");
    snprintf(name, sizeof name, "sig%d", (int)between(&world->chance, 0, 2));
    switch (between(&world->chance, 0, 3)) {
    case 0: shell_state(s, run); break;
    case 1: shell_list(s); break;
    case 2: cancel_run(s, run); break;
    default: signal_run(s, run, name); break;
    }
}

/* ------------------------------------------------------------------------------ quiet --- */

/* Nothing is under way. What the world owes the runs that wait for it is done now. */
static void stir(struct shell *s, struct run *run)
{
    enum rv__run_status status = rv__cell_status(run->shadow);
    if (status == RUN_SUSPENDED) {
        decide_run(s, run, run->resumes++ < RESUMES ? RV_RESUME : RV_ABORT);
        return;
    }
    struct rec_inst *wait = run->rec.first_wait;
    while (wait != NULL && !record_alive(&run->rec, wait))
        wait = wait->wait_next;
    if (wait == NULL) {
        judge_fail(&s->world, run, "stuck", "it is %s%s, and nothing that could happen is left",
                   rv__run_status_name(status), s->crowd != NULL ? crowd_whose(s, run) : "");
    } else if (wait->parked) {
        char handle[40];
        snprintf(handle, sizeof handle, "%.*s", RV__ARG(rv__blob_str(wait->name)));
        run->untimely = true;
        answer_run(s, run, handle, "\"at last\"", NULL);
    } else {
        char name[40];
        snprintf(name, sizeof name, "%.*s",
                 RV__ARG(run->plan->plan->nodes[wait->node]->step.signal));
        signal_run(s, run, name);
    }
}

static void check_granted(struct shell *s)
{
    if (!s->world.failed && rv__may_grant(s->engine))
        judge_fail(&s->world, NULL, "progress", "a place is free and wanted, and nobody gives it");
}

/* False: all is over. */
static bool when_quiet(struct shell *s)
{
    bool open = false;
    if (s->crowd != NULL) {
        crowd_restore(s);
        crowd_each(s, true, restore_credits);
        advance(s, INT64_MAX);
        crowd_each(s, false, check_granted);
    } else {
        if (s->missing)
            register_all(s);
        restore_credits(s);
        (void)crew_restore(s);
        do
            advance(s, INT64_MAX);
        while (!s->world.failed && crew_restore(s)); /* the process has died, and they came back */
    }
    shell_check(s);
    check_granted(s);
    for (struct run *run = s->world.runs; run != NULL && !s->world.failed; run = run->next) {
        if (run->over)
            continue;
        open = true;
        shell_quiet(s, run);
        if (!s->world.failed)
            stir(s, run);
    }
    return open;
}

/* ------------------------------------------------------------------------------ world --- */

/* Small ones, so that most chats wait. */
static void make_limits(struct shell *s, uint64_t seed)
{
    static const char *const names[SIM_PROVIDERS] = { "provider:p0", "provider:p1", "provider:p2",
                                                      "provider:p3", "provider:p4", "provider:p5" };
    struct chance c; /* of their own: they move no other seed */
    chance_init(&c, mix(seed, 5));
    for (int i = 0; i < SIM_PROVIDERS; i++) {
        if (one_in(&c, 6))
            continue;
        s->limits[i] = (struct rv__limit){ .name = names[i] };
        s->limits[i].at_once = one_in(&c, 2) ? between(&c, 1, 3) : 0;
        s->limits[i].per_minute = one_in(&c, 2) ? skewed(&c, 1, 20) : 0;
        s->limits[i].amount_at_once = one_in(&c, 3) ? skewed(&c, 1, 3000) : 0;
        s->limits[i].amount_per_minute = one_in(&c, 3) ? skewed(&c, 1, 3000) : 0;
    }
}

void shell_init(struct shell *s, uint64_t seed, enum shell_kind kind, bool with_trace)
{
    struct world *world = &s->world;
    struct chance *c = &world->chance;
    *s = (struct shell){ .world = { .seed = seed, .trace = with_trace, .engine = true } };
    world->last_run = &world->runs;
    chance_init(c, mix(seed, 1));
    oracle_init(&world->oracle, seed);
    world->oracle.real_exprs = true;
    faults_init(&world->faults, c, &world->cut);
    rv__sim_store_init(&world->store);
    world->execs = sim_alloc(sizeof *world->execs);
    if (world->faults.one_in[FAULT_MISSING] > 0) /* there are fewer chances than among messages */
        world->faults.one_in[FAULT_MISSING] = (uint32_t)between(c, 2, 8);
    world->max_crashes = one_in(c, 3) ? (int)between(c, 1, 4) : INT32_MAX;
    s->workers = (int)between(c, 1, one_in(c, 2) ? 3 : 12);
    s->beside_one_in = one_in(c, 4) ? 0 : (unsigned)between(c, 1, 3);
    s->late_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 2, 20);
    s->credits[LANE_FUNCTION] = s->workers;
    s->credits[LANE_HOST] = between(c, 1, 4);
    s->hosted_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 1, 4);
    s->unsaid_one_in = !one_in(c, 3) ? 0 : (unsigned)between(c, 1, 4);
    s->begin_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 1, 4);
    s->lose_one_in = one_in(c, 2) ? 0 : (unsigned)between(c, 3, 30);
    s->piece = one_in(c, 2) ? SIZE_MAX : (size_t)skewed(c, 1, 2000);
    s->budget = one_in(c, 2) ? SIZE_MAX : (size_t)skewed(c, 1, 20000);
    s->snapshot_from = (size_t)skewed(c, 1, 16384);
    s->value_inline = one_in(c, 2) ? 0 : (size_t)skewed(c, 8, 500);
    s->turn_facts = one_in(c, 2) ? 0 : (int)skewed(c, 1, 40);
    s->burst = 1 + (int)(mix(seed, 4) % 8);
    crew_init(s, seed);
    make_limits(s, seed);
    if (kind == SHELL_MEMBERS)
        crowd_new(s, seed);
    else
        s->disk = disk_new(s, kind == SHELL_SQLITE);
    world->run_goal = (int)skewed(c, 1, 5);
    world->stages = sim_stages || mix(seed, 9) % 5 == 0;
    plan_make(world, 0, mix(seed, 2), between(c, 1, one_in(c, 8) ? MOST_NODES : 20));
    world->plan_count = 1;
    if (world->run_goal > 1 && one_in(c, 3) && !world->failed) {
        plan_make(world, 1, mix(seed, 3), skewed(c, 1, 10));
        world->plan_count = 2;
    }
    for (int i = 0; i < world->plan_count; i++)
        gen_emit(&world->gens[i], &world->cut, &s->drafts[i]);
}

void shell_run(struct shell *s)
{
    struct world *world = &s->world;
    if (!world->failed && s->crowd != NULL)
        crowd_open(s);
    else if (!world->failed)
        shell_open(s, 0, false);
    for (int n = 0; n < ACTIONS && !world->failed; n++) {
        if (world->run_count < world->run_goal && (n == 0 || one_in(&world->chance, 3)))
            start_run(s);
        if (!world->failed && !one_in(&world->chance, 3))
            advance(s, shell_ms(s) +
                           (one_in(&world->chance, 3)
                                ? 0
                                : skewed(&world->chance, 1, s->crowd != NULL ? 20000 : 200000)));
        if (!world->failed)
            shell_check(s);
        if (!world->failed)
            meddle(s);
        if (!world->failed)
            shell_check(s);
    }
    world->faults.calm = true;
    if (s->crowd == NULL)
        s->engine->kit->lose_one_in = 0;
    s->killed = false;
    int rounds = 0;
    while (!world->failed && when_quiet(s))
        if (++rounds > ROUNDS)
            judge_fail(world, NULL, "end", "there is no end of it");
    if (!world->failed)
        shell_list(s);
    for (struct run *run = world->runs; run != NULL && !world->failed; run = run->next)
        wait_run(s, run);
    if (!world->failed)
        advance(s, INT64_MAX);
    if (!world->failed && s->crowd != NULL) {
        crowd_over(s);
        crowd_each(s, false, shell_over);
    } else if (!world->failed) {
        shell_over(s);
    }
    if (s->engine != NULL) {
        tally.virtual_ms += (uint64_t)shell_ms(s);
        tally.commits += (uint64_t)s->engine->commits; /* of its last life */
    }
}

void shell_done(struct shell *s)
{
    struct world *world = &s->world;
    if (s->crowd != NULL) {
        crowd_free(s);
    } else {
        rv_engine_free(s->engine);
        disk_free(s->disk);
    }
    s->engine = NULL;
    while (s->answers != NULL) {
        struct answer *next = s->answers->next;
        free(s->answers->text);
        free(s->answers);
        s->answers = next;
    }
    for (int i = 0; i < 2; i++)
        gen_drafts_done(&s->drafts[i]);
    world_done(world);
}
