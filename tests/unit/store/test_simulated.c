/* test_simulated.c: for src/store/simulated/: the suite of every store, and how this one dies. */
#include "unit/test.h"

#include "store/simulated/simulated.h"
#include "unit/store/store_suite.h"

static struct rv__sim_store *at_hand; /* whose members join */

static struct rv__store *sim_open(struct store_maker *maker)
{
    (void)maker;
    struct rv__sim_store *sim = malloc(sizeof *sim);
    assert_non_null(sim);
    rv__sim_store_init(sim);
    sim->max_bytes = STORE_SUITE_MAX;
    sim->now_ms = 1000;
    at_hand = sim;
    return &sim->store;
}

static struct rv__store *sim_reopen(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    rv__sim_store_restart((struct rv__sim_store *)store);
    return store;
}

static void sim_fail_next(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    ((struct rv__sim_store *)store)->fate = SIM_STORE_FAILS;
}

static struct rv__store *sim_damage(struct store_maker *maker, struct rv__store *store,
                                    const char *run)
{
    (void)maker;
    rv__sim_store_damage((struct rv__sim_store *)store, rv__str(run));
    return store;
}

static void sim_remove(struct store_maker *maker, struct rv__store *store)
{
    (void)maker;
    rv__store_close(store); /* it may be a member */
    rv__sim_store_done(at_hand);
    free(at_hand);
    at_hand = NULL;
}

static struct rv__store *sim_join(struct store_maker *maker)
{
    struct rv__sim_member *member = NULL;
    (void)maker;
    assert_int_equal(rv__sim_member_new(at_hand, 10000, 0, &member, NULL), RV_OK);
    return &member->store;
}

static void sim_lapse(struct store_maker *maker, int64_t member)
{
    (void)maker;
    rv__sim_lapse(at_hand, member);
}

static int count_row(void *arg, uint64_t seq, struct rv__str facts)
{
    (void)seq;
    (void)facts;
    ++*(int *)arg;
    return RV_OK;
}

/* Dies in the second commit; then every call fails; after the restart there are so many rows. */
static void dies(enum rv__sim_store_fate fate, int rows_then)
{
    struct rv__sim_store sim;
    struct rv__store *store = &sim.store;
    struct rv__store_run row = { .id = rv__str("a"), .active = true };
    struct rv__store_write write = { .run = rv__str("a"), .facts = rv__str("1"), .row = &row };
    int rows = 0;
    rv__sim_store_init(&sim);
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
    sim.fate = fate;
    write.seq = 77;
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_ESTORE);
    assert_int_equal(write.seq, 77);
    assert_true(sim.dead);
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_ESTORE);
    assert_int_equal(rv__store_define(store, rv__str("h"), rv__str("{}"), NULL), RV_ESTORE);
    assert_int_equal(rv__store_definition(store, rv__str("h"), count_row, &rows, NULL), RV_ESTORE);
    assert_int_equal(rv__store_run(store, rv__str("a"), NULL, NULL, NULL), RV_ESTORE);
    assert_int_equal(rv__store_snapshot(store, rv__str("a"), count_row, &rows, NULL), RV_ESTORE);
    assert_int_equal(rv__store_journal(store, rv__str("a"), 0, count_row, &rows, NULL), RV_ESTORE);
    assert_int_equal(
        rv__store_results(store, rv__str("a"), rv__str("k"), INT64_MIN, SIZE_MAX, NULL, NULL, NULL),
        RV_ESTORE);
    assert_int_equal(rv__store_active(store, NULL, NULL, NULL), RV_ESTORE);
    assert_int_equal(rows, 0);
    rv__sim_store_restart(&sim);
    assert_int_equal(rv__store_journal(store, rv__str("a"), 0, count_row, &rows, NULL), RV_OK);
    assert_int_equal(rows, rows_then);
    assert_int_equal(rv__store_commit_one(store, &write, NULL), RV_OK);
    assert_int_equal(sim.deaths, 1);
    rv__sim_store_done(&sim);
}

static void a_death_before_the_commit_leaves_nothing_of_it(void **state)
{
    (void)state;
    dies(SIM_STORE_DIES_BEFORE, 1);
}

static void a_death_after_the_commit_leaves_all_of_it(void **state)
{
    (void)state;
    dies(SIM_STORE_DIES_AFTER, 2);
}

static bool refuses_a_second(void *arg, const struct rv__store_write *write)
{
    return rv__str_is(write->facts, "2") && ++*(int *)arg > 0;
}

static void a_chosen_write_is_refused(void **state)
{
    (void)state;
    struct rv__sim_store sim;
    struct rv__store *store = &sim.store;
    struct rv__store_run a = { .id = rv__str("a") }, b = { .id = rv__str("b") };
    struct rv__store_write writes[] = { { .run = rv__str("a"), .facts = rv__str("2"), .row = &a },
                                        { .run = rv__str("b"), .facts = rv__str("1"), .row = &b } };
    int refused = 0, rows = 0;
    rv__sim_store_init(&sim);
    sim.refuses = refuses_a_second;
    sim.refuses_arg = &refused;
    assert_int_equal(rv__store_commit(store, writes, 2, NULL), RV_OK);
    assert_int_equal(writes[0].outcome, STORE_REFUSED);
    assert_non_null(strstr(writes[0].why.message, "refuses"));
    assert_int_equal(writes[1].outcome, STORE_WRITTEN);
    assert_int_equal(refused, 1);
    assert_int_equal(sim.refused, 1);
    assert_int_equal(rv__store_journal(store, rv__str("a"), 0, count_row, &rows, NULL), RV_OK);
    assert_int_equal(rows, 0);
    sim.fate = SIM_STORE_FAILS; /* the whole commit, whatever would be refused in it */
    assert_int_equal(rv__store_commit(store, writes, 2, NULL), RV_ESTORE);
    rv__sim_store_done(&sim);
}

int main(void)
{
    struct store_maker maker = { sim_open,   sim_reopen, sim_fail_next, sim_damage,
                                 sim_remove, sim_join,   sim_lapse };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_before_the_commit_leaves_nothing_of_it),
        cmocka_unit_test(a_death_after_the_commit_leaves_all_of_it),
        cmocka_unit_test(a_chosen_write_is_refused),
    };
    int failed = store_suite(&maker);
    return failed + cmocka_run_group_tests_name("simulated", tests, NULL, NULL);
}
