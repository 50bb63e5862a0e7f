/* test_shell.c: the shell around the state machine: in time under load, and one run's trouble is its own.
 * For src/engine/{loop,commit,load,run}.c; tests/sim judges the rest. */
#include <sqlite3.h>

#include "base/clock.h"
#include "engine/kit.h"
#include "rig.h"

/* ----------------------------------------------------------------------------- under load --- */

enum { BUSY = 100, NAPS = 20, NAP_MS = 50, LATE_MS = 1500 };

static atomic_bool enough;

static int a_little(rv_ctx *c)
{
    return rv_return(c, "i", 1);
}
static int is_enough(rv_ctx *c)
{
    return rv_return_bool(c, atomic_load(&enough));
}

static long long number_in(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

/* A hundred runs that never rest: the disk and the loop are always busy. A nap among them ends in time,
 * and a look is answered. (Before, it ended when the load did.) */
static void a_timer_is_taken_in_time_whatever_the_load(void **state)
{
    struct rig *rig = *state;
    char id[24];
    rig_open(rig, NULL);
    atomic_store(&enough, false);
    rv_workflow *w = rv_workflow_new("busy");
    rv_body *body = rv_add_loop(
        rv_workflow_body(w), "round",
        RV_LOOP_OPTS(.until = is_enough, .max_iterations = 1000000, .keep = RV_KEEP_NONE));
    rv_add_step(body, "one", a_little, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("nap");
    rv_add_delay(rv_workflow_body(w), "rest", NAP_MS);
    rig_put(rig, w);
    for (int i = 0; i < BUSY; i++) {
        snprintf(id, sizeof id, "busy-%d", i);
        rig_run(rig, "busy", id, NULL);
    }
    for (int i = 0; i < NAPS; i++) {
        rv_outcome *outcome = NULL;
        snprintf(id, sizeof id, "nap-%d", i);
        rig_run(rig, "nap", id, NULL);
        assert_int_equal(rv_wait(rig->engine, "nap", id, NULL, &outcome, &rig->err), RV_OK);
        long long took = number_in(outcome->results, "\"delayedMs\":");
        rv_outcome_free(outcome);
        if (took < NAP_MS || took > NAP_MS + LATE_MS)
            fail_msg("a nap of %d ms took %lld ms", NAP_MS, took);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < BUSY; i++) {
        snprintf(id, sizeof id, "busy-%d", i);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
}

enum { CALLERS = 32, RUNS_EACH = 20, STEPS = 10, PLACES = 2 * CALLERS };

static void *call_runs(void *arg)
{
    struct rig *rig = arg;
    rv_error err;
    for (int i = 0; i < RUNS_EACH; i++) {
        rv_run_info info;
        rv_outcome *outcome = NULL;
        if (rv_run(rig->engine, "ten", NULL, NULL, &info, &err) < 0 ||
            rv_wait(rig->engine, NULL, info.run_id, NULL, &outcome, &err) < 0)
            return rig; /* it failed */
        rv_outcome_free(outcome);
    }
    return NULL;
}

/* The result of a step and the start of the next are one row, also while batches overtake one another: the
 * start of the run with that of its first step, each result with the next start, the last with the end. */
static void a_step_costs_one_journal_row_under_load(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[CALLERS];
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    void *wrong = NULL;
    rig_open(rig, RV_ENGINE_OPTS(.store = rig->store, .workers = PLACES));
    rv_workflow *w = rv_workflow_new("ten");
    for (int i = 0; i < STEPS; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, a_little, NULL);
    }
    rig_put(rig, w);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_runs, rig), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *said;
        pthread_join(threads[i], &said);
        wrong = said != NULL ? said : wrong;
    }
    assert_null(wrong);
    assert_true(rig->engine->commit.beside > 0); /* else there was no load */
    rig_close(rig);
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM journal", -1, &count, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(count, 0), CALLERS * RUNS_EACH * (STEPS + 1));
    sqlite3_finalize(count);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* -------------------------------------------------------------------------------- refused --- */

struct refusing {
    const char *run;
    int times;       /* so often, from now on */
    bool beginnings; /* its first row, too */
};

static bool refuses(void *arg, const struct rv__store_write *write)
{
    struct refusing *r = arg;
    if (r->times == 0 || !rv__str_is(write->run, r->run) || write->facts.len == 0 ||
        (write->row != NULL && !r->beginnings))
        return false;
    r->times--;
    return true;
}

struct kit {
    rv_engine *engine;
    rv_error err;
    struct refusing refusing;
};

static int kit_setup(void **state)
{
    struct kit *kit = calloc(1, sizeof *kit);
    *state = kit;
    if (rv_test_engine_new(RV_TEST_OPTS(.seed = 7), &kit->engine, &kit->err) < 0)
        return -1;
    kit->engine->kit->disk.refuses = refuses;
    kit->engine->kit->disk.refuses_arg = &kit->refusing;
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "first", a_little, NULL);
    rv_add_step(rv_workflow_body(w), "second", a_little, NULL);
    int rc = rv_register(kit->engine, w, &kit->err);
    rv_workflow_free(w);
    return rc;
}

static int kit_teardown(void **state)
{
    struct kit *kit = *state;
    rv_engine_free(kit->engine);
    free(kit);
    return 0;
}

static int start(struct kit *kit, const char *id)
{
    return rv_run(kit->engine, "w", NULL, RV_RUN_OPTS(.run_id = id), NULL, &kit->err);
}

static int status_of(struct kit *kit, const char *id, const char *suspension)
{
    rv_run_state *now = NULL;
    assert_int_equal(rv_test_advance(kit->engine, 1000, &kit->err), RV_OK);
    assert_int_equal(rv_state(kit->engine, id, &now, &kit->err), RV_OK);
    int status = now->status;
    if (suspension != NULL && strstr(now->suspension, suspension) == NULL)
        fail_msg("it says: %s", now->suspension);
    rv_run_state_free(now);
    return status;
}

static void what_the_store_refuses_is_one_runs_trouble(void **state)
{
    struct kit *kit = *state;
    assert_int_equal(start(kit, "good"), RV_OK);
    assert_int_equal(start(kit, "bad"), RV_OK);
    kit->refusing = (struct refusing){ .run = "bad", .times = 1 };
    assert_int_equal(status_of(kit, "bad", "refuses this write"), RV_SUSPENDED);
    assert_int_equal(status_of(kit, "good", NULL), RV_COMPLETED);
    assert_int_equal(rv_decide(kit->engine, "bad", RV_RESUME, NULL, &kit->err), RV_OK);
    assert_int_equal(status_of(kit, "bad", NULL), RV_COMPLETED);
}

static void a_start_that_is_refused_makes_no_run(void **state)
{
    struct kit *kit = *state;
    rv_run_state *now = NULL;
    kit->refusing = (struct refusing){ .run = "bad", .times = 1, .beginnings = true };
    assert_int_equal(start(kit, "bad"), RV_EINVAL);
    assert_non_null(strstr(kit->err.message, "refuses this write"));
    assert_int_equal(rv_state(kit->engine, "bad", &now, &kit->err), RV_ENOTFOUND);
    assert_int_equal(start(kit, "bad"), RV_OK); /* the name is free */
    assert_int_equal(status_of(kit, "bad", NULL), RV_COMPLETED);
}

/* Not even that it is suspended can be written into its journal: its row says so, and it can still be
 * decided about, once that is mended. */
static void a_run_that_can_write_nothing_is_set_aside(void **state)
{
    struct kit *kit = *state;
    assert_int_equal(start(kit, "bad"), RV_OK);
    kit->refusing = (struct refusing){ .run = "bad", .times = 2 };
    assert_int_equal(rv_test_advance(kit->engine, 1000, &kit->err), RV_OK);
    rv_run_list *list = NULL;
    assert_int_equal(rv_list(kit->engine, RV_QUERY(.run_id = "bad"), &list, &kit->err), RV_OK);
    assert_int_equal(list->runs[0].status, RV_SUSPENDED);
    assert_non_null(strstr(list->runs[0].suspension, "refuses this write"));
    rv_run_list_free(list);
    assert_int_equal(kit->refusing.times, 0);
    assert_int_equal(rv_decide(kit->engine, "bad", RV_RESUME, NULL, &kit->err), RV_OK);
    assert_int_equal(status_of(kit, "bad", NULL), RV_COMPLETED);
}

/* The same of what is detached from a run that has ended: how it ended stays so. */
static void how_a_run_ended_stays_so_whatever_is_refused(void **state)
{
    struct kit *kit = *state;
    rv_workflow *w = rv_workflow_new("w2");
    rv_concurrent *later = rv_add_concurrent(rv_workflow_body(w), "later",
                                             RV_CONCURRENT_OPTS(.detached = true));
    rv_body *body = rv_concurrent_body(later, "rest");
    rv_add_delay(body, "rest", 100);
    rv_add_step(body, "one", a_little, NULL);
    assert_int_equal(rv_register(kit->engine, w, &kit->err), RV_OK);
    rv_workflow_free(w);
    assert_int_equal(rv_run(kit->engine, "w2", NULL, RV_RUN_OPTS(.run_id = "bad"), NULL, &kit->err),
                     RV_OK);
    assert_int_equal(rv_test_advance(kit->engine, 50, &kit->err), RV_OK);
    kit->refusing = (struct refusing){ .run = "bad", .times = 2 };
    assert_int_equal(rv_test_advance(kit->engine, 1000, &kit->err), RV_OK);
    assert_int_equal(kit->refusing.times, 0);
    rv_run_list *list = NULL;
    assert_int_equal(rv_list(kit->engine, RV_QUERY(.run_id = "bad"), &list, &kit->err), RV_OK);
    assert_int_equal(list->runs[0].status, RV_COMPLETED);
    rv_run_list_free(list);
}

/* ------------------------------------------------------------------------------- bad rows --- */

static void open_sleepy(struct rig *rig)
{
    rig_open(rig, NULL);
    rv_workflow *w = rv_workflow_new("sleepy");
    rv_add_delay(rv_workflow_body(w), "rest", 800);
    rv_add_step(rv_workflow_body(w), "one", a_little, NULL);
    rig_put(rig, w);
}

/* The row of a run cannot be read, of one that is active and of one that sleeps: the engine opens, and the
 * others go on, those that are due after it too. */
static void a_row_that_cannot_be_read_stops_nobody_else(void **state)
{
    static const char *const ids[] = { "active", "asleep", "well", "good" };
    struct rig *rig = *state;
    sqlite3 *db = NULL;
    open_sleepy(rig);
    for (int i = 0; i < 4; i++)
        rig_run(rig, "sleepy", ids[i], NULL);
    rig_close(rig);
    assert_int_equal(sqlite3_open(rig->store, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "UPDATE runs SET version = x'00ff' WHERE id IN ('active', 'asleep');"
                     "UPDATE runs SET active = 1, wake_at = 0 WHERE id = 'active';"
                     "UPDATE runs SET wake_at = 1 WHERE id = 'asleep';",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    open_sleepy(rig);
    assert_int_equal(rig_wait(rig, "well"), RV_COMPLETED);
    assert_int_equal(rig_wait(rig, "good"), RV_COMPLETED);
    assert_int_equal(rv_cancel_run(rig->engine, "active", &rig->err), RV_ESTORE);
    assert_non_null(strstr(rig->err.message, "damaged"));
}

#define KIT_TEST(test) cmocka_unit_test_setup_teardown(test, kit_setup, kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_timer_is_taken_in_time_whatever_the_load),
        RIG_TEST(a_step_costs_one_journal_row_under_load),
        KIT_TEST(what_the_store_refuses_is_one_runs_trouble),
        KIT_TEST(a_start_that_is_refused_makes_no_run),
        KIT_TEST(a_run_that_can_write_nothing_is_set_aside),
        KIT_TEST(how_a_run_ended_stays_so_whatever_is_refused),
        RIG_TEST(a_row_that_cannot_be_read_stops_nobody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
