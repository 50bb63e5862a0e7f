/* test_step.c: the step actor: phase x message -> fact. For src/flow/step.c. */
#include "base/json.h"
#include "unit/flow/script.h"

/* ------------------------------------------------------------------------------- the table --- */

/* What an attempt was given; never freed. */
static struct rv__blob some = { .refs = 1, .len = 7, .text = "{\"a\":1}" };
#define SOME (&some)

/* How to bring the step 'a' into a phase; what it is then sent; the last fact of that, or none. */
enum phase {
    RUNNING,
    RETRY,
    PARKED_HANDLE,
    PARKED_DELAY,
    PARKED_SIGNAL,
    EVALUATING,
    NO_PLACE,
    HANDLER
};

static const char *const plans[] = {
    [RUNNING] = STEP("a", "'maxAttempts':2,'timeout':50,'onTimeout':'retry'"),
    [RETRY] = STEP("a", "'maxAttempts':3"),
    [PARKED_HANDLE] = STEP("a", "'maxAttempts':2,'timeout':50,'onTimeout':'retry'"),
    [PARKED_DELAY] = DELAY("a", "250"),
    [PARKED_SIGNAL] = SIGNAL("a", "go"),
    [EVALUATING] = STEP("a", "'when':'${ .x }'"),
    [NO_PLACE] = STEP("a", "'maxAttempts':2"),
    [HANDLER] = STEP("a", "'maxAttempts':1,'onError':{'name':'h'}"),
};

static const struct row {
    const char *says;
    enum phase phase;
    struct rv__msg msg;
    const char
        *fact; /* a kind that must have been said, or NULL: no fact, and the message was stale */
} rows[] = {
    { "an attempt completes", RUNNING, { .kind = MSG_DONE }, "step.completed" },
    { "an attempt says it is skipped",
      RUNNING,
      { .kind = MSG_DONE, .skipped = true },
      "step.skipped" },
    { "a plain failure is tried again", RUNNING, { .kind = MSG_FAILED }, "step.retrying" },
    { "a stop is not", RUNNING, { .kind = MSG_FAILED, .behavior = BEHAVIOR_STOP }, "step.failed" },
    { "nor a continue",
      RUNNING,
      { .kind = MSG_FAILED, .behavior = BEHAVIOR_CONTINUE },
      "step.failed" },
    { "a retry is", RUNNING, { .kind = MSG_FAILED, .behavior = BEHAVIOR_RETRY }, "step.retrying" },
    { "an attempt takes too long", RUNNING, { .kind = MSG_TIMER }, "step.retrying" },
    { "an attempt is pending", RUNNING, { .kind = MSG_PARK, .name = { "h", 1 } }, "step.parked" },
    { "an attempt leaves a note", RUNNING, { .kind = MSG_NOTE, .note = SOME }, "step.noted" },
    { "an attempt asks for a signal",
      RUNNING,
      { .kind = MSG_NOTE, .note = SOME, .name = { "q", 1 } },
      "step.noted" },
    { "a note without words is none", RUNNING, { .kind = MSG_NOTE }, NULL },
    { "nothing runs that could leave a note", RETRY, { .kind = MSG_NOTE, .note = SOME }, NULL },
    { "a parked one leaves no note", PARKED_HANDLE, { .kind = MSG_NOTE, .note = SOME }, NULL },
    { "an evaluation leaves no note", EVALUATING, { .kind = MSG_NOTE, .note = SOME }, NULL },
    { "an attempt is lost", RUNNING, { .kind = MSG_LOST }, "step.lost" },
    { "an attempt says what it was given",
      RUNNING,
      { .kind = MSG_GIVEN, .given = SOME },
      "step.given" },
    { "it was given nothing", RUNNING, { .kind = MSG_GIVEN }, NULL },
    { "what an attempt reads is told",
      RUNNING,
      { .kind = MSG_READ, .name = RV__STR("logs") },
      "step.read" },
    { "an evaluation reads, too",
      EVALUATING,
      { .kind = MSG_READ, .name = RV__STR("logs") },
      "step.read" },
    { "nothing runs that was given something", RETRY, { .kind = MSG_GIVEN, .given = SOME }, NULL },
    { "an evaluation is not asked", EVALUATING, { .kind = MSG_GIVEN, .given = SOME }, NULL },
    { "a wait for a retry ends", RETRY, { .kind = MSG_TIMER }, "timer.fired" },
    { "nothing runs that could complete", RETRY, { .kind = MSG_DONE }, NULL },
    { "nothing runs that could fail", RETRY, { .kind = MSG_FAILED }, NULL },
    { "nothing runs that could park", RETRY, { .kind = MSG_PARK }, NULL },
    { "nothing runs that could be lost", RETRY, { .kind = MSG_LOST }, NULL },
    { "a parked one completes", PARKED_HANDLE, { .kind = MSG_DONE }, "step.completed" },
    { "a parked one fails", PARKED_HANDLE, { .kind = MSG_FAILED }, "step.retrying" },
    { "a parked one takes too long", PARKED_HANDLE, { .kind = MSG_TIMER }, "step.retrying" },
    { "a parked one is not in its process", PARKED_HANDLE, { .kind = MSG_LOST }, NULL },
    { "a parked one is parked", PARKED_HANDLE, { .kind = MSG_PARK }, NULL },
    { "a delay ends", PARKED_DELAY, { .kind = MSG_TIMER }, "step.completed" },
    { "a delay ends by its timer only", PARKED_DELAY, { .kind = MSG_DONE }, NULL },
    { "a delay does not fail", PARKED_DELAY, { .kind = MSG_FAILED }, NULL },
    { "a signal is not answered", PARKED_SIGNAL, { .kind = MSG_DONE }, NULL },
    { "an evaluation has no timer", EVALUATING, { .kind = MSG_TIMER }, NULL },
    { "an evaluation cannot park", EVALUATING, { .kind = MSG_PARK }, NULL },
    { "an evaluation is done", EVALUATING, { .kind = MSG_DONE }, "eval.completed" },
    { "an evaluation fails", EVALUATING, { .kind = MSG_FAILED }, "step.failed" },
    { "an evaluation is lost", EVALUATING, { .kind = MSG_LOST }, "step.lost" },
    { "no place: nothing runs", NO_PLACE, { .kind = MSG_DONE }, NULL },
    { "no place: nothing fails", NO_PLACE, { .kind = MSG_FAILED }, NULL },
    { "no place: no timer", NO_PLACE, { .kind = MSG_TIMER }, NULL },
    { "no place: nothing is lost", NO_PLACE, { .kind = MSG_LOST }, NULL },
    { "a handler completes", HANDLER, { .kind = MSG_DONE }, "step.completed" },
    { "a handler is skipped", HANDLER, { .kind = MSG_DONE, .skipped = true }, "step.skipped" },
    { "a handler is never tried again",
      HANDLER,
      { .kind = MSG_FAILED, .behavior = BEHAVIOR_RETRY, .max_attempts = 9 },
      "step.failed" },
    { "a handler takes too long", HANDLER, { .kind = MSG_TIMER }, "step.failed" },
    { "a handler is lost", HANDLER, { .kind = MSG_LOST }, "step.lost" },
    { "a handler may be pending",
      HANDLER,
      { .kind = MSG_PARK, .name = { "h", 1 } },
      "step.parked" },
};

static struct rv__effect into_phase(struct rig *rig, enum phase phase)
{
    const char *path = phase == HANDLER ? "a:onError" : phase == EVALUATING ? "a?when" : "a";
    if (phase == RETRY || phase == HANDLER)
        rig_fail(rig, "a", "no");
    if (phase == PARKED_HANDLE)
        rig_park(rig, "a", "h", 0);
    if (phase == NO_PLACE) {
        rig_fail(rig, "a", "no");
        rig_give(rig, false);
        struct rv__effect effect = rig_at(rig, "a")->effect;
        rig_timer(rig, "a");
        effect.token++; /* as it is now that the timer has fired */
        return effect;
    }
    if (phase == PARKED_SIGNAL) /* nothing is owed: actor 2, and the token it began with */
        return (struct rv__effect){ .actor = 2, .token = 1 };
    return rig_at(rig, path)->effect;
}

static void a_step_follows_its_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct rig *rig = rig_of(plans[row->phase], NULL);
        struct rv__effect effect = into_phase(rig, row->phase);
        struct rv__msg msg = row->msg;
        size_t before = rig->journal.len;
        char kind[64];
        rig_give(rig, false); /* what the message says, and not what comes of it */
        msg.actor = effect.actor;
        msg.token = effect.token;
        if (rig_turn(rig, &msg) != RV_OK)
            fail_msg("%s: refused", row->says);
        snprintf(kind, sizeof kind, "{\"k\":\"%s\"", row->fact ? row->fact : "");
        if (row->fact == NULL && (rig->journal.len != before || rv__cell_stale(rig->cell) != 1))
            fail_msg("%s: expected nothing, got %s", row->says, rig->journal.text + before);
        if (row->fact != NULL && strstr(rig->journal.text + before, kind) == NULL)
            fail_msg("%s: expected %s, got %s", row->says, row->fact, rig->journal.text + before);
        rig_give(rig, true);
        (void)rig_say(rig, MSG_RESUME);
        rig_signal(rig, "go", "1");
        for (int n = 0; rv__cell_active(rig->cell) && n < 20; n++) {
            if (rig->work_count > 0)
                rig_finish(rig, "true");
            (void)rig_answer(rig, "h", "1", NULL);
        }
        if (!rv__run_terminal(rv__cell_status(rig->cell)))
            fail_msg("%s: the run never ended: %s", row->says, rig->journal.text);
        rig_free(rig);
    }
}

/* A token of before, of later, or of nobody: dropped and counted. */
static void a_stale_token_yields_no_fact(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    struct rv__effect effect = rig_at(rig, "a")->effect;
    size_t before = rig->journal.len, stale = 0;
    for (int kind = MSG_DONE; kind <= MSG_LOST; kind++)
        for (int k = 0; k < 4; k++) {
            struct rv__msg msg = { .kind = (enum rv__msg_kind)kind,
                                   .actor = k == 3   ? 999
                                            : k == 2 ? 0
                                                     : effect.actor,
                                   .token = effect.token + (k == 0) - (k == 1) };
            assert_int_equal(rig_turn(rig, &msg), RV_OK);
            assert_int_equal(rv__cell_stale(rig->cell), ++stale);
        }
    struct rv__msg to_frame = { .kind = MSG_DONE, .actor = 1, .token = 0 }; /* no work is there */
    assert_int_equal(rig_turn(rig, &to_frame), RV_OK);
    assert_int_equal(rv__cell_stale(rig->cell), stale + 1);
    assert_int_equal(rig->journal.len, before);
    struct rv__msg none = { .kind = MSG_KINDS };
    assert_int_equal(rig_turn(rig, &none), RV_EINVAL);
    rig_free(rig);
}

/* -------------------------------------------------------------------------------- back-off --- */

static void backoff_follows_its_formula(void **state)
{
    static const struct {
        const char *config;
        int attempt; /* that fails */
        int said;    /* the step error's back-off: 1 linear, 2 exponential, 0 none */
        double chance;
        int64_t wait_ms;
    } table[] = {
        { "", 1, 0, 0.9, 100 },
        { "", 3, 0, 0, 300 },
        { "'backoff':'exponential'", 1, 0, 0, 100 },
        { "'backoff':'exponential'", 4, 0, 0, 800 },
        { "'backoff':'exponential'", 4, 1, 0, 400 },
        { "'backoff':'linear'", 4, 2, 0, 800 },
        { "'backoffBaseMs':7", 2, 0, 0, 14 },
        { "'maxBackoffMs':250", 3, 0, 0, 250 },
        { "'jitter':0.5", 2, 0, 0.5, 150 },
        { "'jitter':1", 2, 0, 0.999, 0 },
        { "'jitter':0.5,'maxBackoffMs':100", 9, 0, 0.5, 75 },
        { "'backoff':'exponential'", 90, 0, 0, 60000 },
        { "'backoffBaseMs':0", 1, 0, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char plan[300];
        snprintf(plan, sizeof plan, "{'type':'step','alias':'a','name':'a','maxAttempts':100%s%s}",
                 table[i].config[0] ? "," : "", table[i].config);
        struct rig *rig = rig_of(plan, NULL);
        rig->replay = false;
        for (int n = 1; n < table[i].attempt; n++) {
            rig_fail(rig, "a", "no");
            rig_timer(rig, "a");
        }
        int64_t now = rig->now_ms;
        struct rv__msg msg = { .kind = MSG_FAILED,
                               .backoff = table[i].said,
                               .chance = table[i].chance };
        rig_tell(rig, "a", msg);
        if (rig_at(rig, "a")->effect.due_ms != now + table[i].wait_ms)
            fail_msg("row %zu: waits %lld", i, (long long)(rig_at(rig, "a")->effect.due_ms - now));
        rig_free(rig);
    }
}

static void a_clock_at_its_ends_does_no_harm(void **state)
{
    static const int64_t clocks[] = { -5000, -250, 0, INT64_C(1) << 52 };
    (void)state;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct rig *rig = rig_of(S("z") "," STEP("a", "'maxAttempts':2") "," DELAY("d", "250"),
                                 NULL);
        rig->now_ms = clocks[i];
        rig_done(rig, "z", "1");
        rig_fail(rig, "a", "no");
        assert_int_equal(rig_at(rig, "a")->effect.kind, EFFECT_WAIT); /* due, not never */
        rig_timer(rig, "a");
        rig_done(rig, "a", "1");
        assert_int_equal(rig_at(rig, "d")->effect.kind, EFFECT_WAIT);
        rig_timer(rig, "d");
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

/* ----------------------------------------------------------------------- parks and signals --- */

static void a_delay_that_is_an_expression_is_parked_by_its_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_of(DELAY("d", "'${ .n }'"), NULL);
    assert_int_equal(rig_at(rig, "d")->effect.kind, EFFECT_START);
    rig_park(rig, "d", NULL, 5000);
    assert_int_equal(rig_at(rig, "d")->effect.due_ms, 5000);
    rig_crash(rig, true);
    rig_timer(rig, "d");
    rig_expect(rig, RUN_COMPLETED,
               J("{'d':" DONE("{'delayedMs':4000,'startedAt':1000,'endedAt':5000}") "}"));
    rig_free(rig);
}

/* `parked`: its attempt says how long it takes. It begins at 1000. */
static void a_delay_obeys_its_time_out(void **state)
{
    static const struct {
        const char *says, *plan;
        int64_t parked_ms, due_ms;
        enum rv__run_status ends;
    } table[] = {
        { "longer", TIMED_DELAY("d", "5000", "'timeout':200"), 0, 1200, RUN_FAILED },
        { "as long", TIMED_DELAY("d", "200", "'timeout':200"), 0, 1200, RUN_COMPLETED },
        { "shorter", TIMED_DELAY("d", "150", "'timeout':200"), 0, 1150, RUN_COMPLETED },
        { "computed, longer", TIMED_DELAY("d", "'${ .n }'", "'timeout':200"), 6000, 1200,
          RUN_FAILED },
        { "computed, as long", TIMED_DELAY("d", "'${ .n }'", "'timeout':200"), 1200, 1200,
          RUN_COMPLETED },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rig *rig = rig_of(table[i].plan, NULL);
        if (table[i].parked_ms > 0)
            rig_park(rig, "d", NULL, table[i].parked_ms);
        if (rig_at(rig, "d")->effect.due_ms != table[i].due_ms)
            fail_msg("%s: due at %lld", table[i].says, (long long)rig_at(rig, "d")->effect.due_ms);
        rig_crash(rig, true);
        rig_timer(rig, "d");
        rig_expect(rig, table[i].ends, NULL);
        assert_int_equal(rig_has_fact(rig, "step 'd' timed out after 200 ms"),
                         table[i].ends == RUN_FAILED);
        rig_free(rig);
    }
}

static void a_delay_that_timed_out_may_begin_anew(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        TIMED_DELAY("d", "5000",
                    "'timeout':200,'onTimeout':'retry','maxAttempts':2,'backoffBaseMs':50"),
        NULL);
    rig_timer(rig, "d");
    assert_int_equal(rig_at(rig, "d")->effect.due_ms, 1250); /* the retry */
    rig_crash(rig, true);
    rig_timer(rig, "d");
    assert_int_equal(rig_at(rig, "d")->effect.due_ms, 1450);
    rig_timer(rig, "d");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

static void a_signal_whose_name_is_an_expression_is_parked_by_its_attempt(void **state)
{
    (void)state;
    const char *plan =
        "{'type':'step','alias':'s','kind':'signal','with':{'name':'${ .n }','timeout':70}}";
    struct rig *rig = rig_of(plan, NULL);
    rig_signal(rig, "order-7", "1"); /* before anybody waits for it */
    rig_park(rig, "s", "order-7", 0);
    rig_expect(rig, RUN_COMPLETED, J("{'s':" DONE("1") "}"));
    rig_free(rig);
    rig = rig_of(plan, NULL);
    rig_park(rig, "s", "order-7", 0);
    assert_int_equal(rig_at(rig, "s")->effect.due_ms, 1070); /* as the step says */
    rig_crash(rig, false);
    rig_timer(rig, "s");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_true(rig_has_fact(rig, "timed out waiting for the signal 'order-7'"));
    rig_free(rig);
}

static void a_parked_step_ends_by_an_error_or_its_time_out(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'timeout':500"), NULL);
    rig->now_ms = 1200; /* it has begun at 1000, and the time-out counts from there */
    rig_park(rig, "a", "job", 0);
    assert_int_equal(rig_at(rig, "a")->effect.due_ms, 1500);
    rig_timer(rig, "a");
    rig_expect(rig, RUN_FAILED, NULL);
    assert_int_equal(rig_answer(rig, "job", "1", NULL), RV_ENOTFOUND); /* a stale handle */
    rig_free(rig);

    rig = rig_of(STEP("a", "'maxAttempts':2"), NULL);
    rig_park(rig, "a", "job", 9000);
    assert_int_equal(rig_at(rig, "a")->effect.due_ms, 9000); /* what it said itself */
    assert_int_equal(rig_answer(rig, "job", NULL, J("{'message':'no'}")), RV_OK);
    assert_int_equal(rig_answer(rig, "job", "1", NULL), RV_ENOTFOUND);
    rig_timer(rig, "a");
    rig_done(rig, "a", "2");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* Names that fall into one bucket, as handles and as signals, stay apart. */
static void a_handle_is_not_a_signal_of_that_name(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("x") "," SIGNAL("y", "go") "]}", NULL);
    rig_park(rig, "c:x", "go", 0);
    assert_int_equal(rig_signal(rig, "go", "2"), RV_OK);
    assert_int_equal(rig_answer(rig, "go", "1", NULL), RV_OK);
    rig_expect(rig, RUN_COMPLETED, J("{'c':" DONE("{'x':" DONE("1") ",'y':" DONE("2") "}") "}"));
    rig_free(rig);

    bool torture = rig_torture;
    rig_torture = false; /* a save for each try would be long */
    rig = rig_of(S("a"), NULL);
    rig->replay = false;
    for (int i = 0; i < 200; i++) { /* more names than buckets */
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(rig_signal_by(rig, name, "1", true), RV_OK);
    }
    rig_crash(rig, true);
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
    rig_torture = torture;
}

static void what_is_due_has_a_bound(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," DELAY("d", "250"), NULL);
    rig->now_ms = (INT64_C(1) << 61) - 10;
    rig_done(rig, "a", "1");
    assert_true(rig_at(rig, "d")->effect.due_ms >= rig->now_ms);
    rig_timer(rig, "d");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void two_steps_may_wait_for_one_handle(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "," S("z") "]}", NULL);
    rig_park(rig, "c:x", "job", 0);
    rig_park(rig, "c:y", "job", 0);
    rig_park(rig, "c:z", "other", 0);
    rig_crash(rig, true);
    rig_answer(rig, "job", "1", NULL);
    rig_answer(rig, "other", "3", NULL);
    rig_answer(rig, "job", "2", NULL);
    rig_expect(rig, RUN_COMPLETED,
               J("{'c':" DONE("{'x':" DONE("1") ",'y':" DONE("2") ",'z':" DONE("3") "}") "}"));
    rig_free(rig);
}

/* A slip is told, with the names there are; an answer to nobody would only look like one. */
static void a_signal_that_no_step_waits_for_is_refused(void **state)
{
    (void)state;
    rv_error err = { 0 };
    struct rv__msg slip = { .kind = MSG_SIGNAL, .name = rv__str("aproved"), .now_ms = 1000 };
    struct rig *rig = rig_of(
        S("a") "," SIGNAL("y", "papers") "," SIGNAL("x", "approved") "," SIGNAL("z", "approved"),
        NULL);
    assert_int_equal(rv__flow_send(rig->cell, &slip, &rig->facts, &err), RV_EUNWANTED);
    assert_string_equal(
        err.message,
        "no step of this run waits for the signal 'aproved'; known signals: approved, papers");
    assert_int_equal(rig->facts.count, 0);
    assert_int_equal(rig_signal(rig, "approved", "1"), RV_OK); /* it waits for the step */
    assert_int_equal(rig_signal_by(rig, "aproved", "1", true), RV_OK);
    rig_free(rig);

    rig = rig_of(S("a"), NULL);
    assert_int_equal(rv__flow_send(rig->cell, &slip, &rig->facts, &err), RV_EUNWANTED);
    assert_string_equal(
        err.message,
        "the signal 'aproved' has no receiver: no step of this run waits for a signal");
    rig_free(rig);

    char steps[8000] = "";
    for (int i = 0; i < 40; i++) /* more than a message can hold */
        snprintf(steps + strlen(steps), sizeof steps - strlen(steps),
                 "%s{'type':'step','alias':'s%d','kind':'signal','with':{'name':'signal-%d'}}",
                 i > 0 ? "," : "", i, i);
    rig = rig_of(steps, NULL);
    assert_int_equal(rv__flow_send(rig->cell, &slip, &rig->facts, &err), RV_EUNWANTED);
    assert_non_null(strstr(err.message, "known signals: signal-0, signal-1, "));
    assert_string_equal(err.message + strlen(err.message) - strlen(", …"), ", …");
    rig_free(rig);
}

static void who_stops_waiting_leaves_the_signal_to_the_next(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','onFailure':'collect','steps':["
        "{'type':'step','alias':'x','kind':'signal','with':{'name':'go','timeout':10}}," SIGNAL(
            "y", "go") "," SIGNAL("z", "go") "]}",
        NULL);
    rig_timer(rig, "c:x"); /* the first in the queue */
    rig_signal(rig, "go", "1");
    rig_signal(rig, "go", NULL);
    rig_expect(rig, RUN_COMPLETED,
               J("{'c':" DONE(
                   "{'x':" OUT("null", "failed") ",'y':" DONE("1") ",'z':" DONE("null") "}") "}"));
    rig_free(rig);
}

static void a_signal_wakes_a_suspended_run_only_after_its_resume(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("x") "," SIGNAL("y", "go") "]}", NULL);
    rig_poison(rig, "c:x");
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig->replay = true;
    struct rv__msg signal = { .kind = MSG_SIGNAL, .name = rv__str("go"), .now_ms = rig->now_ms };
    rv_error err;
    assert_int_equal(rv__flow_send(rig->cell, &signal, &rig->facts, &err), RV_OK);
    assert_int_equal(rv__flow_pump(rig->cell, 1, &rig->facts, &err), 0); /* nothing begins */
    assert_int_equal(rig->facts.count, 1);
    assert_int_equal(rig_say(rig, MSG_RESUME), RV_OK);
    rig_expect_in_flight(rig, "c:x");
    rig_done(rig, "c:x", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

static void signals_have_a_limit(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a") "," SIGNAL("s", "go"), NULL);
    rig->replay = false;
    bool torture = rig_torture;
    rig_torture = false; /* a save for each try would be long */
    for (int i = 0; i < 10000; i++)
        assert_int_equal(rig_signal(rig, "go", "1"), RV_OK);
    assert_int_equal(rig_signal(rig, "go", "1"), RV_EBUSY);
    rig_done(rig, "a", "1");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
    rig_torture = torture;
}

/* Nobody suspends anything for it: it waits, alone, and goes on by itself. */
static void a_missing_function_is_waited_for(void **state)
{
    (void)state;
    struct rig *rig = rig_new_where(
        J("{'name':'t','steps':[{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "," S(
            "z") "]}]}"),
        NULL, NULL, "y");
    rig_expect_in_flight(rig, "c:x"); /* children begin one after the other */
    rig_done(rig, "c:x", "1");
    rig_expect(rig, RUN_RUNNING, NULL);
    rig_expect_in_flight(rig, "");
    assert_true(rv__cell_wants(rig->cell, LANE_NOBODY));
    rig_crash(rig, true);
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "");
    rig->nobody = NULL;
    rig_relane(rig);
    rig_turn(rig, NULL);
    rig_expect_in_flight(rig, "c:y c:z");
    rig->nobody = "y"; /* gone between its place and its beginning: it is lost without a death */
    rig_lose(rig, "c:y", false, false);
    rig_expect_in_flight(rig, "c:z");
    rig_done(rig, "c:z", "3");
    rig_expect(rig, RUN_RUNNING, NULL);
    rig->nobody = NULL;
    rig_relane(rig);
    rig_turn(rig, NULL);
    struct rv__view view = rig_view(rig, "c:y");
    assert_int_equal(view.attempt, 1); /* it never began */
    rv__view_done(&view);
    rig_done(rig, "c:y", "2");
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* As a whole, for a reason of the shell's; not twice, and not after its end. */
static void a_run_is_suspended_as_a_whole(void **state)
{
    static const char *const reason = "{\"message\":\"too large\"}";
    (void)state;
    for (int decision = 0; decision < 3; decision++) {
        struct rig *rig = rig_of(
            "{'type':'concurrent','alias':'c','steps':[" S("x") "," DELAY("d", "50") "]}," S("b"),
            NULL);
        struct rv__msg unsaid = { .kind = MSG_SUSPEND };
        assert_int_equal(rig_turn(rig, &unsaid), RV_EINVAL);
        assert_int_equal(rig_suspend(rig, reason), RV_OK);
        assert_true(rig_has_fact(rig, J("{'k':'run.suspended','a':0,'at':1000,'error':{'mess")));
        rig_expect(rig, RUN_SUSPENDED, NULL);
        assert_str(rv__cell_suspension(rig->cell), reason);
        size_t before = rig->journal.len;
        assert_int_equal(rig_suspend(rig, "{\"message\":\"again\"}"), RV_OK);
        assert_int_equal(rig->journal.len, before);
        rig_crash(rig, decision % 2);
        rig_done(rig, "c:x", "1"); /* what is in flight ends, and nothing begins */
        rig_timer(rig, "c:d");
        rig_expect_in_flight(rig, "");
        if (decision == 0) {
            assert_int_equal(rig_say(rig, MSG_RESUME), RV_OK);
            rig_expect_in_flight(rig, "b");
            rig_done(rig, "b", "2");
            rig_expect(rig, RUN_COMPLETED, NULL);
        } else if (decision == 1) {
            assert_int_equal(rig_say(rig, MSG_ABORT), RV_OK);
            rig_expect(rig, RUN_FAILED, NULL);
            assert_str(rv__cell_error(rig->cell), J("{'message':'too large','path':'c'}"));
        } else {
            assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
            rig_expect(rig, RUN_CANCELLED, NULL);
        }
        before = rig->journal.len;
        assert_int_equal(rig_suspend(rig, reason), RV_OK);
        assert_int_equal(rig->journal.len, before);
        rig_free(rig);
    }
}

static void a_suspended_run_can_be_cancelled_or_aborted(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    rig_poison(rig, "a");
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    rig_expect(rig, RUN_CANCELLED, J("{'a':" OUT("null", "cancelled") "}"));
    assert_true(rv__str_none(rv__cell_suspension(rig->cell)));
    rig_free(rig);

    rig = rig_of(S("a") "," S("b"), NULL);
    rig_done(rig, "a", "1");
    assert_int_equal(rig_say(rig, MSG_ABORT), RV_ESTATE);
    rig_poison(rig, "b");
    rig_send(rig, (struct rv__msg){ .kind = MSG_ABORT,
                                    .error = rv__blob_new(rv__str(J("{'message':'enough'}"))) });
    rig_expect(rig, RUN_FAILED, NULL);
    struct rv__str error = rv__cell_error(rig->cell), cause, message;
    assert_true(rv__json_get(error, "message", &message));
    assert_str(message, "\"enough\"");
    assert_true(rv__json_get(error, "cause", &cause)); /* why there was something to decide */
    assert_true(rv__json_get(cause, "message", &message));
    assert_non_null(memmem(message.at, message.len, "step 'b' was to blame", 21));
    assert_str(rv__cell_failed_path(rig->cell), "b");
    assert_str(rv__cell_failed_step(rig->cell), "b");
    rig_free(rig);
}

/* ----------------------------------------------------------------------- crashes and blame --- */

static void a_crash_uses_up_no_attempt(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'maxAttempts':2"), NULL);
    rig_fail(rig, "a", "no");
    rig_timer(rig, "a");
    for (int i = 0; i < 10; i++) {
        rig_lose(rig, "a", false, false);
        struct rv__view view = rig_view(rig, "a");
        assert_int_equal(view.attempt, 2);
        rv__view_done(&view);
    }
    rig_fail(rig, "a", "no");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
}

/* What the work at `a` has gone through, letter by letter, and where it waits then. */
static void deaths_make_a_suspect_and_blame_it(void **state)
{
    static const struct {
        const char *says,
            *story; /* s: its process died, and others were in it; h: a host of its own
                                     died; c: nobody did; f: it failed, and its next attempt is due */
        enum rv__lane lane;
        bool blamed;
        const char *fact; /* the last one of it; NULL: any */
    } table[] = {
        { "who never ran is none", "", LANE_FUNCTION, false, NULL },
        { "one death says nothing", "s", LANE_FUNCTION, false, "'crash':true,'deaths':1}" },
        { "two make a suspect", "ss", LANE_SUSPECT, false,
          "'suspect':true,'crash':true,'deaths':2}" },
        { "who is in a third is to blame", "sss", LANE_SUSPECT, true,
          "'blame':true,'crash':true,'deaths':3}" },
        { "and in each that follows", "ssss", LANE_SUSPECT, true,
          "'blame':true,'crash':true,'deaths':4}" },
        { "a clean end is no death", "sc", LANE_FUNCTION, false, NULL },
        { "and changes nothing", "scs", LANE_SUSPECT, false, NULL },
        { "nor for a suspect", "ssc", LANE_SUSPECT, false, NULL },
        { "nor for one that was blamed", "sssc", LANE_SUSPECT, true, NULL },
        { "who fails like anybody is none", "ssf", LANE_FUNCTION, false, NULL },
        { "its deaths are forgotten", "sfs", LANE_FUNCTION, false, "'deaths':1}" },
        { "it takes two again", "ssfss", LANE_SUSPECT, false, "'deaths':2}" },
        { "its blames are not", "sssfss", LANE_SUSPECT, true, "'deaths':2}" },
        { "a host's death is its own", "h", LANE_FUNCTION, false, "'blame':true,'crash':true}" },
        { "and no shared one", "hs", LANE_FUNCTION, false, "'deaths':1}" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (int snapshot = 0; snapshot < 2; snapshot++) {
            struct rig *rig = rig_of(STEP("a", "'maxAttempts':9"), NULL);
            for (const char *at = table[i].story; *at != '\0'; at++) {
                rig_give(rig, at[1] != '\0');
                if (*at == 'f') {
                    rig_fail(rig, "a", "no");
                    rig_timer(rig, "a");
                } else {
                    rig_lose(rig, "a", *at == 'h', *at == 's');
                }
                rig_crash(rig, snapshot);
            }
            if (*table[i].story == '\0') {
                rig_give(rig, false);
                rig_lose(rig, "a", false, false);
            }
            bool suspect = table[i].lane == LANE_SUSPECT;
            if (rv__cell_wants(rig->cell, LANE_SUSPECT) != suspect ||
                rv__cell_wants(rig->cell, LANE_FUNCTION) == suspect ||
                rv__cell_blamed(rig->cell) != table[i].blamed)
                fail_msg("%s: %s", table[i].says, rig->journal.text);
            const char *fact = table[i].fact != NULL ? J(table[i].fact) : "";
            size_t len = strlen(fact);
            if (rig->journal.len < len ||
                strcmp(rig->journal.text + rig->journal.len - len, fact) != 0)
                fail_msg("%s: %s", table[i].says, rig->journal.text);
            rig_give(rig, true);
            rig_turn(rig, NULL);
            rig_done(rig, "a", "1");
            rig_expect(rig, RUN_COMPLETED, NULL);
            rig_free(rig);
        }
    }
}

/* Of the deaths in which it was in flight it takes two, and one more than may be forgiven. */
static void a_pill_is_found_in_a_bounded_number_of_deaths(void **state)
{
    (void)state;
    for (int most = 1; most < 5; most++) {
        struct rig *rig = rig_of(S("a"), NULL);
        rv_error err;
        rv__cell_free(rig->cell);
        rv__facts_reset(&rig->facts);
        rv__buf_reset(&rig->journal);
        rig->replay = false;
        rig->work_count = 0;
        struct rv__cell_opts opts = { .plan = rig->plan, .max_crashes = most };
        assert_int_equal(rv__cell_start(&opts, NULL, 1, &rig->facts, &rig->cell, &err), RV_OK);
        rig_turn(rig, NULL);
        int deaths = 0;
        for (; rv__cell_status(rig->cell) == RUN_RUNNING; deaths++)
            rig_lose(rig, "a", false, true);
        assert_int_equal(deaths, 2 + most + 1);
        rig_free(rig);
    }
}

/* After a death all go on, and suspects one by one: who has been blamed before the others. */
static void blamed_suspects_come_first(void **state)
{
    (void)state;
    struct rig *rig = rig_of(
        "{'type':'concurrent','alias':'c','steps':[" S("x") "," S("y") "," S("z") "]}", NULL);
    for (int n = 0; n < 2; n++) {
        rig_give(rig, n == 0);
        rig_lose(rig, "c:x", false, true);
        rig_lose(rig, "c:y", false, true);
    }
    rig_expect_in_flight(rig, "c:z");
    assert_false(rv__cell_wants(rig->cell, LANE_FUNCTION));
    assert_int_equal(rig_grant(rig, LANE_FUNCTION), 0);
    assert_int_equal(rig_grant(rig, LANE_SUSPECT), 1);
    assert_int_equal(rig_grant(rig, LANE_SUSPECT), 1); /* how many at once is the shell's to say */
    rig_lose(rig, "c:x", false, false);
    rig_lose(rig, "c:y", false, true); /* it came later, and is blamed now */
    for (int again = 0; again < 3; again++) {
        if (again > 0)
            rig_crash(rig, again == 1);
        assert_true(rv__cell_blamed(rig->cell));
    }
    assert_int_equal(rig_grant(rig, LANE_SUSPECT), 1);
    rig_expect_in_flight(rig, "c:y c:z");
    assert_false(rv__cell_blamed(rig->cell));
    rig_give(rig, true);
    rig_turn(rig, NULL);
    rig_finish(rig, NULL);
    rig_expect(rig, RUN_COMPLETED, NULL);
    rig_free(rig);
}

/* What was seen of its last death is told; of one that nobody saw, nothing. */
static void a_poison_pill_tells_how_it_died(void **state)
{
    static const char *const table[][2] = { { S("a"), "a" },
                                            { STEP("a", "'when':{'fn':'f'}"), "a?when" } };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (int seen = 0; seen < 2; seen++) {
            struct rig *rig = rig_of(table[i][0], NULL);
            const char *path = table[i][1];
            for (int n = 0; n < RV__MAX_CRASHES; n++)
                rig_kill(rig, path, "{\"message\":\"the host exited\"}");
            if (seen)
                rig_kill(rig, path, "{\"message\":\"the host \\\"h\\\" was killed by signal 11\"}");
            else
                rig_lose(rig, path, true, false);
            rig_expect(rig, RUN_SUSPENDED, NULL);
            assert_true(rig_has_fact(rig, seen ? "4 times; the last time, the host \\\"h\\\" was "
                                                 "killed by signal 11: it is not tried again"
                                               : "4 times: it is not tried again"));
            rig_free(rig);
        }
    }
}

static void a_poison_pill_may_be_an_evaluation(void **state)
{
    static const struct {
        const char *plan, *path;
    } table[] = {
        { STEP("a", "'when':{'fn':'f'}"), "a?when" },
        { "{'type':'branch','alias':'a','if':{'fn':'f'},'then':[]}", "a?if" },
        { "{'type':'forEach','alias':'a','items':{'fn':'f'},'run':[" S("x") "]}", "a?items" },
        { "{'type':'workflow','alias':'a','name':'w','input':{'fn':'f'},'steps':[" S("x") "]}",
          "a?input" },
        { S("a"), "a" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct rig *rig = rig_of(table[i].plan, NULL);
        for (int n = 0; n <= RV__MAX_CRASHES; n++) {
            rig_expect_in_flight(rig, table[i].path);
            rig_lose(rig, table[i].path, true, false);
        }
        rig_expect(rig, RUN_SUSPENDED, NULL);
        assert_true(rig_has_fact(rig, "was to blame when its process died, 4 times"));
        rig_crash(rig, i % 2);
        assert_int_equal(rig_say(rig, MSG_RESUME), RV_OK);
        rig_expect_in_flight(rig, table[i].path); /* and its crashes are forgotten */
        rig_lose(rig, table[i].path, true, false);
        rig_expect_in_flight(rig, table[i].path);
        rig_finish(rig, "[]");
        rig_expect(rig, RUN_COMPLETED, NULL);
        rig_free(rig);
    }
}

static void max_crashes_is_an_option(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    rv_error err;
    rv__cell_free(rig->cell);
    rv__facts_reset(&rig->facts);
    rv__buf_reset(&rig->journal);
    rig->replay = false;
    rig->work_count = 0;
    struct rv__cell_opts opts = { .plan = rig->plan, .max_crashes = 1 };
    assert_int_equal(rv__cell_start(&opts, NULL, 1, &rig->facts, &rig->cell, &err), RV_OK);
    assert_ptr_equal(rv__cell_plan(rig->cell), rig->plan);
    rig_turn(rig, NULL);
    rig_lose(rig, "a", true, false);
    rig_expect_in_flight(rig, "a");
    rig_lose(rig, "a", true, false);
    rig_expect(rig, RUN_SUSPENDED, NULL);
    rig_free(rig);
}

static void leave_note_at(struct rig *rig, const char *path, const char *note, const char *signal)
{
    struct rv__msg msg = { .kind = MSG_NOTE, .note = rv__blob_new(rv__str(note)) };
    if (signal != NULL)
        msg.name = rv__str(signal);
    assert_int_equal(rig_tell(rig, path, msg), RV_OK);
    rv__blob_unref(msg.note);
}

static void leave_note(struct rig *rig, const char *note, const char *signal)
{
    leave_note_at(rig, "a", note, signal);
}

/* What the attempt in flight sees of the one before it. */
static void expect_note(struct rig *rig, const char *note, const char *answer, int attempt)
{
    struct rig_work *work = rig_at(rig, "a");
    struct rv__view view;
    struct rv__blob *said = NULL;
    assert_int_equal(rv__cell_view(rig->cell, work->effect.actor, work->effect.token, &view),
                     RV_OK);
    assert_int_equal(rv__blob_get(view.answer, &rig->rows, &said, NULL), RV_OK);
    if (note == NULL)
        assert_null(view.note);
    else
        assert_str(rv__blob_str(view.note), note);
    if (answer == NULL)
        assert_null(said);
    else
        assert_str(rv__blob_str(said), answer);
    assert_int_equal(view.attempt, attempt);
    rv__blob_unref(said);
    rv__view_done(&view);
}

static void a_note_is_for_the_next_attempt_which_has_the_same_number(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'maxAttempts':2"), NULL);
    expect_note(rig, NULL, NULL, 1);
    leave_note(rig, "{\"task\":1}", NULL);
    expect_note(rig, "{\"task\":1}", NULL, 1);
    rig_lose(rig, "a", false, false);
    expect_note(rig, "{\"task\":1}", NULL, 1);
    rig_crash(rig, true);
    rig_crash(rig, false);
    expect_note(rig, "{\"task\":1}", NULL, 1);
    leave_note(rig, "{\"task\":2}", NULL);
    expect_note(rig, "{\"task\":2}", NULL, 1);
    assert_string_equal(rig->unused_note, "");
    rig_fail(rig, "a", "no"); /* the next attempt begins anew */
    assert_string_equal(rig->unused_note, "{\"task\":2}");
    rig_timer(rig, "a");
    expect_note(rig, NULL, NULL, 2);
    leave_note(rig, "{\"task\":3}", NULL);
    rig_done(rig, "a", "7");
    assert_string_equal(rig->unused_note, "{\"task\":2}"); /* the third was taken up */
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("7") "}"));
    rig_free(rig);
}

static void a_handler_that_is_done_has_used_its_note(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'maxAttempts':1,'onError':{'name':'h'}"), NULL);
    rig_fail(rig, "a", "no");
    leave_note_at(rig, "a:onError", "{\"task\":1}", NULL);
    rig_done(rig, "a:onError", "7");
    assert_string_equal(rig->unused_note, "");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);
    rig = rig_of(STEP("a", "'maxAttempts':1,'onError':{'name':'h'}"), NULL);
    rig_fail(rig, "a", "no");
    leave_note_at(rig, "a:onError", "{\"task\":1}", NULL);
    rig_fail(rig, "a:onError", "no");
    assert_string_equal(rig->unused_note, "{\"task\":1}"); /* nobody takes it up */
    rig_free(rig);
}

static void an_attempt_may_ask_for_a_signal(void **state)
{
    (void)state;
    struct rig *rig = rig_of(S("a"), NULL);
    assert_int_equal(rig_signal(rig, "q", "1"), RV_EUNWANTED);
    leave_note(rig, "{\"ask\":{}}", "q");
    rig_expect_in_flight(rig, "");
    assert_true(rv__cell_waits_for_somebody(rig->cell));
    assert_str(rv__cell_asked(rig->cell, rv__str("q")), "{\"ask\":{}}");
    assert_true(rv__str_none(rv__cell_asked(rig->cell, rv__str("p"))));
    assert_int_equal(rig_signal(rig, "p", "1"), RV_EUNWANTED);
    rig_crash(rig, true);
    assert_int_equal(rig_signal(rig, "q", "{\"action\":\"accept\"}"), RV_OK);
    expect_note(rig, "{\"ask\":{}}", "{\"action\":\"accept\"}", 1);
    rig_crash(rig, true);
    rig_crash(rig, false);
    expect_note(rig, "{\"ask\":{}}", "{\"action\":\"accept\"}", 1);
    assert_int_equal(rig_signal(rig, "q", "2"), RV_EUNWANTED); /* that is answered */
    leave_note(rig, "{\"ask\":2}", "q");
    assert_int_equal(rig_signal(rig, "q", "2"), RV_OK);
    expect_note(rig, "{\"ask\":2}", "2", 1);
    rig_done(rig, "a", "7");
    assert_string_equal(rig->unused_note, "");
    rig_expect(rig, RUN_COMPLETED, J("{'a':" DONE("7") "}"));
    rig_free(rig);
}

static void who_asks_in_vain_leaves_its_note_to_be_given_up(void **state)
{
    (void)state;
    struct rig *rig = rig_of(STEP("a", "'timeout':100"), NULL);
    leave_note(rig, "{\"ask\":1}", "q");
    rig_timer(rig, "a"); /* the time-out of the step bounds the wait */
    assert_string_equal(rig->unused_note, "{\"ask\":1}");
    rig_expect(rig, RUN_FAILED, NULL);
    rig_free(rig);

    rig = rig_of(S("a"), NULL);
    leave_note(rig, "{\"ask\":2}", "q");
    rig_crash(rig, true); /* nothing is owed to it then */
    assert_int_equal(rig_say(rig, MSG_CANCEL), RV_OK);
    assert_string_equal(rig->unused_note, "{\"ask\":2}");
    rig_free(rig);
}

static void names_are_as_in_the_specification(void **state)
{
    (void)state;
    assert_string_equal(rv__status_name(STATUS_WAITING_RETRY), "waiting_retry");
    assert_string_equal(rv__run_status_name(RUN_SUSPENDED), "suspended");
    assert_string_equal(rv__eval_name(EVAL_ITEMS), "items");
    assert_string_equal(rv__msg_kind_name(MSG_ABORT), "abort");
    assert_string_equal(rv__msg_kind_name(MSG_DONE), "done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_step_follows_its_table),
        RIG_TEST(a_stale_token_yields_no_fact),
        RIG_TEST(backoff_follows_its_formula),
        RIG_TEST(a_clock_at_its_ends_does_no_harm),
        RIG_TEST(a_delay_that_is_an_expression_is_parked_by_its_attempt),
        RIG_TEST(a_delay_obeys_its_time_out),
        RIG_TEST(a_delay_that_timed_out_may_begin_anew),
        RIG_TEST(a_signal_whose_name_is_an_expression_is_parked_by_its_attempt),
        RIG_TEST(a_parked_step_ends_by_an_error_or_its_time_out),
        RIG_TEST(a_handle_is_not_a_signal_of_that_name),
        RIG_TEST(what_is_due_has_a_bound),
        RIG_TEST(two_steps_may_wait_for_one_handle),
        RIG_TEST(a_signal_that_no_step_waits_for_is_refused),
        RIG_TEST(who_stops_waiting_leaves_the_signal_to_the_next),
        RIG_TEST(a_signal_wakes_a_suspended_run_only_after_its_resume),
        RIG_TEST(signals_have_a_limit),
        RIG_TEST(a_missing_function_is_waited_for),
        RIG_TEST(a_run_is_suspended_as_a_whole),
        RIG_TEST(a_suspended_run_can_be_cancelled_or_aborted),
        RIG_TEST(a_crash_uses_up_no_attempt),
        RIG_TEST(deaths_make_a_suspect_and_blame_it),
        RIG_TEST(a_pill_is_found_in_a_bounded_number_of_deaths),
        RIG_TEST(blamed_suspects_come_first),
        RIG_TEST(a_poison_pill_tells_how_it_died),
        RIG_TEST(a_poison_pill_may_be_an_evaluation),
        RIG_TEST(max_crashes_is_an_option),
        RIG_TEST(a_note_is_for_the_next_attempt_which_has_the_same_number),
        RIG_TEST(a_handler_that_is_done_has_used_its_note),
        RIG_TEST(an_attempt_may_ask_for_a_signal),
        RIG_TEST(who_asks_in_vain_leaves_its_note_to_be_given_up),
        RIG_TEST(names_are_as_in_the_specification),
    };
    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
