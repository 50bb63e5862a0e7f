/* test_trouble.c: an engine whose store refuses: a full disk, a locked file, a damaged record, another
 * engine. Progress stops, loudly; what is on disk is still told; and nothing is lost. For src/engine. */
#include "unit/engine/rig.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

enum { PATIENCE_MS = 20000 }; /* for what must happen, on a slow machine */

static atomic_bool gate_open;
static atomic_int attempts;

/* ----------------------------------------------------------------------------- shorthands --- */

/* As a full disk does, writes beyond the first pages fail from here on. */
static void fill_disk(bool full)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = full ? 4096 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int teardown(void **state)
{
    fill_disk(false);
    atomic_store(&gate_open, true);
    return rig_teardown(state);
}
#define TROUBLE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, teardown)

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static int quick(rv_ctx *c)
{
    return rv_return(c, "s", "done");
}

static int gated(rv_ctx *c)
{
    atomic_fetch_add(&attempts, 1);
    while (!atomic_load(&gate_open) && !rv_ctx_cancelled(c))
        nap();
    return rv_return(c, "i", 42);
}

static int stubborn(rv_ctx *c)
{
    atomic_fetch_add(&attempts, 1);
    while (!atomic_load(&gate_open))
        nap();
    return rv_return(c, "i", rv_ctx_attempt(c));
}

static void open_all(struct rig *rig, int64_t grace_ms)
{
    rv_engine_opts opts = { .workers = 16, .grace_ms = grace_ms };
    rig_open(rig, &opts);
    rv_workflow *w = rv_workflow_new("quick");
    rv_add_step(rv_workflow_body(w), "a", quick, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("gated");
    rv_add_step(rv_workflow_body(w), "g", gated, NULL);
    rv_add_step(rv_workflow_body(w), "a", quick, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("stubborn");
    rv_add_step(rv_workflow_body(w), "g", stubborn, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("sleepy");
    rv_add_delay(rv_workflow_body(w), "rest", 2000);
    rv_add_step(rv_workflow_body(w), "a", quick, NULL);
    rig_put(rig, w);
    atomic_store(&gate_open, false);
}

static int status_of(struct rig *rig, const char *run_id)
{
    rv_run_state *now = NULL;
    if (rv_state(rig->engine, run_id, &now, &rig->err) < 0)
        fail_msg("no state of %s: %s", run_id, rig->err.message);
    int status = now->status;
    rv_run_state_free(now);
    return status;
}

static void until_attempts(int count)
{
    for (int i = 0; i < PATIENCE_MS / 2 && atomic_load(&attempts) < count; i++)
        nap();
    assert_true(atomic_load(&attempts) >= count);
}

static rv_health until_stuck(struct rig *rig, bool stuck)
{
    rv_health health = { .stuck = !stuck };
    for (int i = 0; i < PATIENCE_MS / 2 && health.stuck != stuck; i++) {
        assert_int_equal(rv_engine_health(rig->engine, &health, &rig->err), RV_OK);
        nap();
    }
    assert_int_equal(health.stuck, stuck);
    return health;
}

/* A second user of the file, as a program beside it would be. */
static void sql(struct rig *rig, sqlite3 *db, const char *text)
{
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s (%s)", text, why, rig->store);
}

struct starter {
    pthread_t thread;
    struct rig *rig;
    int rc;
};

static void *start_one(void *arg)
{
    struct starter *s = arg;
    s->rc = rv_run(s->rig->engine, "quick", NULL, RV_RUN_OPTS(.run_id = "late"), NULL, NULL);
    return NULL;
}

/* ---------------------------------------------------------------------------------- tests --- */

/* What an engine that cannot write still says. */
static void still_answers(struct rig *rig, const char *ended, const char *stuck)
{
    rv_outcome *outcome = NULL;
    rv_run_list *list = NULL;
    char *text = NULL;
    assert_int_equal(status_of(rig, ended), RV_COMPLETED);
    assert_int_equal(rig_wait(rig, ended), RV_COMPLETED);
    assert_int_equal(status_of(rig, stuck), RV_RUNNING);
    assert_int_equal(
        rv_wait(rig->engine, NULL, stuck, RV_WAIT_OPTS(.timeout_ms = 50), &outcome, &rig->err),
        RV_ETIMEDOUT);
    assert_int_equal(rv_why(rig->engine, stuck, &text, &rig->err), RV_OK);
    rv_free(text);
    assert_int_equal(rv_list(rig->engine, NULL, &list, &rig->err), RV_OK);
    assert_true(list->count >= 2);
    rv_run_list_free(list);
    assert_int_equal(rv_metrics(rig->engine, &text, &rig->err), RV_OK);
    assert_null(strstr(text, "rival_commit_failures_total 0\n"));
    rv_free(text);
}

static void a_full_disk_stops_progress_and_loses_nothing(void **state)
{
    struct rig *rig = *state;
    struct starter starter = { .rig = rig, .rc = 1 };
    atomic_store(&attempts, 0);
    open_all(rig, 0);
    rig_run(rig, "quick", "before", NULL);
    assert_int_equal(rig_wait(rig, "before"), RV_COMPLETED);
    assert_false(until_stuck(rig, false).stuck);
    for (int i = 0; i < 12; i++) {
        char id[16];
        snprintf(id, sizeof id, "held-%d", i);
        rig_run(rig, "gated", id, NULL);
    }
    until_attempts(12);
    fill_disk(true);
    atomic_store(&gate_open, true); /* their ends cannot be written */
    rv_health health = until_stuck(rig, true);
    assert_true(health.attempts > 0 && health.since > 0);
    assert_int_equal(health.why.code, RV_ESTORE);
    assert_int_equal(pthread_create(&starter.thread, NULL, start_one, &starter), 0);
    for (int i = 0; i < 3; i++)
        still_answers(rig, "before", "held-0");

    fill_disk(false);
    pthread_join(starter.thread, NULL);
    assert_int_equal(starter.rc, RV_OK);
    assert_int_equal(rig_wait(rig, "late"), RV_COMPLETED);
    for (int i = 0; i < 12; i++) {
        char id[16];
        snprintf(id, sizeof id, "held-%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
    until_stuck(rig, false);
    assert_int_equal(atomic_load(&attempts), 12); /* nothing was done twice */
    rig_close(rig);
    open_all(rig, 0);
    assert_int_equal(status_of(rig, "held-11"), RV_COMPLETED);
    assert_int_equal(status_of(rig, "late"), RV_COMPLETED);
}

static void an_engine_that_cannot_write_closes_after_its_grace(void **state)
{
    struct rig *rig = *state;
    struct starter starter = { .rig = rig, .rc = 1 };
    atomic_store(&attempts, 0);
    open_all(rig, 200);
    rig_run(rig, "gated", "r", NULL);
    until_attempts(1);
    fill_disk(true);
    atomic_store(&gate_open, true);
    until_stuck(rig, true);
    assert_int_equal(pthread_create(&starter.thread, NULL, start_one, &starter), 0);
    (void)rv_engine_close(rig->engine);
    pthread_join(starter.thread, NULL);
    assert_int_equal(starter.rc, RV_ECLOSED);
    rig_close(rig);
    fill_disk(false);

    open_all(rig, 0);
    atomic_store(&gate_open, true);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_int_equal(atomic_load(&attempts), 2); /* the end of the first was not on disk */
}

static void a_file_that_another_program_has_locked_is_waited_for(void **state)
{
    struct rig *rig = *state;
    sqlite3 *db = NULL;
    atomic_store(&attempts, 0);
    open_all(rig, 0);
    rig_run(rig, "quick", "before", NULL);
    assert_int_equal(rig_wait(rig, "before"), RV_COMPLETED);
    rig_run(rig, "gated", "r", NULL);
    until_attempts(1);
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    sql(rig, db, "BEGIN IMMEDIATE");
    atomic_store(&gate_open, true);
    rv_health health = until_stuck(rig, true);
    still_answers(rig, "before", "r");
    sql(rig, db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_non_null(strstr(health.why.message, "lock"));
}

static void a_second_engine_is_told_who_has_the_store(void **state)
{
    struct rig *rig = *state;
    rv_engine *second = NULL;
    char pid[24];
    open_all(rig, 0);
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = rig->store), &second, &rig->err),
                     RV_EBUSY);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_non_null(strstr(rig->err.message, pid));
    rig_run(rig, "quick", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

static void what_is_no_store_is_refused(void **state)
{
    struct rig *rig = *state;
    rv_engine *engine = NULL;
    char path[200];
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = rig->folder), &engine, &rig->err),
                     RV_ESTORE);
    snprintf(path, sizeof path, "%s/not/there.db", rig->folder);
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = path), &engine, &rig->err), RV_ESTORE);
    FILE *file = fopen(rig->store, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database\n", file);
    fclose(file);
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = rig->store), &engine, &rig->err),
                     RV_ESTORE);
    assert_null(engine);
}

/* One that sleeps is read when its time has come: only then it is found out. */
static rv_run_list *once_suspended(struct rig *rig, const char *run_id)
{
    for (int i = 0; i < 10000; i++) {
        rv_run_list *list = NULL;
        assert_int_equal(rv_list(rig->engine, RV_QUERY(.text = run_id), &list, &rig->err), 0);
        assert_int_equal(list->count, 1);
        if (list->runs[0].status == RV_SUSPENDED)
            return list;
        rv_run_list_free(list);
        nap();
    }
    fail_msg("%s is not suspended", run_id);
    return NULL;
}

static void a_damaged_run_is_set_aside_and_the_others_go_on(void **state)
{
    struct rig *rig = *state;
    sqlite3 *db = NULL;
    open_all(rig, 0);
    rig_run(rig, "sleepy", "good", NULL);
    rig_run(rig, "sleepy", "bad", NULL);
    rig_run(rig, "gated", "worse", NULL); /* in flight, and not asleep */
    rig_run(rig, "gated", "well", NULL);
    rig_close(rig);
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    sql(rig, db,
        "UPDATE journal SET facts = '{\"k\":\"no.such.fact\"}' WHERE run IN"
        " (SELECT key FROM runs WHERE id IN ('bad', 'worse'));"
        "DELETE FROM snapshots WHERE run IN (SELECT key FROM runs WHERE id IN ('bad', 'worse'))");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    open_all(rig, 0);
    atomic_store(&gate_open, true);
    assert_int_equal(rig_wait(rig, "good"), RV_COMPLETED);
    assert_int_equal(rig_wait(rig, "well"), RV_COMPLETED);
    static const char *const damaged[] = { "bad", "worse" };
    for (int i = 0; i < 2; i++) {
        rv_run_list *list = once_suspended(rig, damaged[i]);
        assert_non_null(strstr(list->runs[0].suspension, "damaged"));
        rv_run_list_free(list);
        assert_int_equal(rv_cancel_run(rig->engine, damaged[i], &rig->err), RV_ESTORE);
        assert_non_null(strstr(rig->err.message, "damaged"));
    }
}

static void a_step_that_does_not_end_is_handed_back(void **state)
{
    struct rig *rig = *state;
    rv_run_state *now = NULL;
    atomic_store(&attempts, 0);
    open_all(rig, 50);
    for (int i = 0; i < 12; i++) { /* enough for a commit on the thread */
        char id[16];
        snprintf(id, sizeof id, "r-%d", i);
        rig_run(rig, "stubborn", id, NULL);
    }
    rig_run(rig, "gated", "told", NULL);
    until_attempts(13);
    assert_int_equal(rv_engine_close(rig->engine), 12);
    assert_int_equal(rv_engine_close(rig->engine), 12); /* who asks again is told the same */
    assert_int_equal(rv_state(rig->engine, "told", &now, &rig->err), RV_ECLOSED);
    /* On disk: a handed back step is ready, none is in flight. */
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT count(DISTINCT run) FROM journal"
                                        " WHERE facts LIKE '%step.lost%'",
                                        -1, &count, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    int lost = sqlite3_column_int(count, 0);
    sqlite3_finalize(count);
    sqlite3_close(db);
    assert_int_equal(lost, 12);
    atomic_store(&gate_open, true);
    rig_close(rig);

    open_all(rig, 0);
    atomic_store(&gate_open, true);
    for (int i = 0; i < 12; i++) {
        char id[16];
        snprintf(id, sizeof id, "r-%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
        assert_int_equal(rv_state(rig->engine, id, &now, &rig->err), RV_OK);
        assert_non_null(strstr(now->results, "\"result\":1")); /* the attempt was not counted */
        rv_run_state_free(now);
    }
    assert_int_equal(rig_wait(rig, "told"), RV_COMPLETED);
}

static void *wait_for_one(void *arg)
{
    struct starter *s = arg;
    rv_outcome *outcome = NULL;
    s->rc = rv_wait(s->rig->engine, NULL, "r", NULL, &outcome, NULL);
    rv_outcome_free(outcome);
    return NULL;
}

/* The result of a step that nobody will find is not told, its successor is not begun, and everybody who
 * waits or comes hears why. `beside`: with enough in flight that the writing desk does it. */
static void a_store_that_is_gone_stops_everything(void **state)
{
    struct rig *rig = *state;
    for (int beside = 0; beside < 2; beside++) {
        rv_run_state *now = NULL;
        struct starter waits = { .rig = rig };
        char wal[160];
        atomic_store(&attempts, 0);
        rig->store[strlen(rig->store) - 1] = (char)('0' + beside); /* another one */
        open_all(rig, 10000);
        rig_run(rig, "gated", "r", NULL);
        for (int i = 0; i < 12 * beside; i++) {
            char id[16];
            snprintf(id, sizeof id, "r-%d", i);
            rig_run(rig, "gated", id, NULL);
        }
        rig_run(rig, "sleepy", "sleeps", NULL);
        until_attempts(1 + 12 * beside);
        assert_int_equal(pthread_create(&waits.thread, NULL, wait_for_one, &waits), 0);
        snprintf(wal, sizeof wal, "%s-wal", rig->store);
        assert_int_equal(unlink(beside ? rig->store : wal), 0);
        atomic_store(&gate_open, true);

        rv_health health = until_stuck(rig, true);
        assert_true(health.gone);
        assert_int_equal(health.why.code, RV_EGONE);
        assert_int_equal(pthread_join(waits.thread, NULL), 0);
        assert_int_equal(waits.rc, RV_EGONE);
        assert_int_equal(rv_run(rig->engine, "quick", NULL, NULL, NULL, &rig->err), RV_EGONE);
        assert_non_null(strstr(rig->err.message, "deleted or replaced"));
        assert_int_equal(rv_cancel_run(rig->engine, "r", &rig->err), RV_EGONE);
        assert_int_equal(rv_state(rig->engine, "r", &now, &rig->err), RV_EGONE);
        assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 1), NULL, &rig->err),
                         RV_EGONE);
        usleep(2100000); /* the timer of the one that sleeps falls due: it does not go on either */
        assert_int_equal(atomic_load(&attempts), 1 + 12 * beside);
        int64_t before_ms = rv__mono_ms(rv__clock_real());
        assert_int_equal(rv_engine_close(rig->engine), 0); /* there is nothing to wait for */
        assert_true(rv__mono_ms(rv__clock_real()) - before_ms < 5000);
        rig_close(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TROUBLE_TEST(a_full_disk_stops_progress_and_loses_nothing),
        TROUBLE_TEST(an_engine_that_cannot_write_closes_after_its_grace),
        TROUBLE_TEST(a_file_that_another_program_has_locked_is_waited_for),
        TROUBLE_TEST(a_second_engine_is_told_who_has_the_store),
        TROUBLE_TEST(what_is_no_store_is_refused),
        TROUBLE_TEST(a_damaged_run_is_set_aside_and_the_others_go_on),
        TROUBLE_TEST(a_step_that_does_not_end_is_handed_back),
        TROUBLE_TEST(a_store_that_is_gone_stops_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
