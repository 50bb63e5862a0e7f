/* test_members.c: two engines of one process share a store in PostgreSQL. For src/engine/member.c: what is asked of the
 * one about runs of the other, and what becomes of a member that is ended. */
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <rival/rival.h>

#include "unit/store/pg_server.h"

struct pair {
    char address[PG_ADDRESS_MAX];
    rv_engine *a, *b;
    rv_error err;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int began, told, open; /* attempts of `hold`; those that were told to stop; may they end? */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* Until the gate is open, or its run is another's. */
static int hold(rv_ctx *ctx)
{
    pthread_mutex_lock(&gate.lock);
    gate.began++;
    pthread_cond_broadcast(&gate.changed);
    bool open = gate.open != 0;
    pthread_mutex_unlock(&gate.lock);
    while (!open && !rv_ctx_cancelled(ctx)) {
        usleep(2000); /* an attempt that polls, as rv_ctx_cancelled() is meant to be used */
        pthread_mutex_lock(&gate.lock);
        open = gate.open != 0;
        pthread_mutex_unlock(&gate.lock);
    }
    if (!open) {
        pthread_mutex_lock(&gate.lock);
        gate.told++;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
        return RV_ECANCELED;
    }
    return rv_return(ctx, "i", 1);
}

/* It comes, or the test has failed: two minutes are for a machine that stands still. */
static void until(const int *count, int least)
{
    struct timespec by;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &by);
    by.tv_sec += 120;
    pthread_mutex_lock(&gate.lock);
    while (*count < least && rc == 0)
        rc = pthread_cond_timedwait(&gate.changed, &gate.lock, &by);
    int seen = *count;
    pthread_mutex_unlock(&gate.lock);
    if (seen < least)
        fail_msg("%d of %d have come", seen, least);
}

static void open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = 1;
    pthread_mutex_unlock(&gate.lock);
}

static int quick(rv_ctx *ctx)
{
    return rv_return(ctx, "i", 7);
}

static void put(struct pair *p, rv_engine *engine, rv_workflow *w)
{
    if (rv_register(engine, w, &p->err) < 0)
        fail_msg("%s", p->err.message);
    rv_workflow_free(w);
}

/* A member; with the function `pack`, or without. */
static rv_engine *join_relay(struct pair *p, bool packs)
{
    rv_engine *engine = NULL;
    if (rv_engine_new(RV_ENGINE_OPTS(.store = p->address, .member = true), &engine, &p->err) < 0)
        fail_msg("%s", p->err.message);
    rv_workflow *w = rv_workflow_new("relay");
    rv_add_signal(rv_workflow_body(w), "ok", "go", 0, NULL);
    if (packs)
        rv_add_step(rv_workflow_body(w), "pack", quick, NULL);
    put(p, engine, w);
    return engine;
}

static rv_engine *join(struct pair *p)
{
    rv_engine *engine = NULL;
    if (rv_engine_new(RV_ENGINE_OPTS(.store = p->address, .member = true, .by = "tester"), &engine,
                      &p->err) < 0)
        fail_msg("%s", p->err.message);
    rv_workflow *w = rv_workflow_new("holds");
    rv_add_step(rv_workflow_body(w), "quick", quick, NULL);
    rv_add_step(rv_workflow_body(w), "hold", hold, NULL);
    put(p, engine, w);
    w = rv_workflow_new("asks");
    rv_add_signal(rv_workflow_body(w), "ok", "go", 0, NULL);
    rv_add_step(rv_workflow_body(w), "quick", quick, NULL);
    put(p, engine, w);
    return engine;
}

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    gate.began = gate.told = gate.open = 0;
    pg_database_new(p->address);
    p->a = join(p);
    p->b = join(p);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;
    open_gate();
    rv_engine_free(p->a);
    rv_engine_free(p->b);
    pg_database_drop(p->address);
    free(p);
    return 0;
}

static void start(struct pair *p, rv_engine *engine, const char *workflow, const char *run_id)
{
    if (rv_run(engine, workflow, NULL, RV_RUN_OPTS(.run_id = run_id), NULL, &p->err) < 0)
        fail_msg("%s", p->err.message);
}

static void ends(struct pair *p, rv_engine *engine, const char *run_id, int status,
                 const char *part)
{
    rv_outcome *outcome = NULL;
    if (rv_wait(engine, NULL, run_id, RV_WAIT_OPTS(.timeout_ms = -1), &outcome, &p->err) < 0)
        fail_msg("%s", p->err.message);
    assert_int_equal(outcome->status, status);
    assert_true(strstr(outcome->results, part) != NULL);
    rv_outcome_free(outcome);
}

/* How many journal rows of the run have that text in them. */
static long facts(struct pair *p, const char *run_id, const char *text)
{
    char sql[200];
    PGconn *pg = pg_connect(p->address);
    snprintf(sql, sizeof sql,
             "SELECT count(*)::text FROM rival.turns WHERE run = '%s' AND facts LIKE '%%%s%%'",
             run_id, text);
    long n = pg_number(pg, sql);
    PQfinish(pg);
    return n;
}

/* As whoever finds that its lease is over. */
static void end_member_of(struct pair *p, const char *run_id)
{
    char sql[300];
    PGconn *pg = pg_connect(p->address);
    snprintf(sql, sizeof sql,
             "UPDATE rival.lanes SET ended = 2, epoch = epoch + 1 WHERE slot = (SELECT owner FROM"
             " rival.runs WHERE id = '%s')",
             run_id);
    pg_run(pg, sql);
    PQfinish(pg);
}

static void who_waits_elsewhere_learns_of_the_end(void **state)
{
    struct pair *p = *state;
    rv_outcome *none = NULL;
    start(p, p->a, "holds", "r");
    until(&gate.began, 1);
    assert_int_equal(rv_wait(p->b, "holds", "r", RV_WAIT_OPTS(.timeout_ms = 30), &none, &p->err),
                     RV_ETIMEDOUT);
    assert_int_equal(rv_wait(p->b, "asks", "r", RV_WAIT_OPTS(.timeout_ms = -1), &none, &p->err),
                     RV_ENOTFOUND);
    open_gate();
    ends(p, p->b, "r", RV_COMPLETED, "\"quick\":{\"result\":7");
    ends(p, p->a, "r", RV_COMPLETED, "\"hold\":{\"result\":1");
}

static void a_cancel_reaches_the_owner(void **state)
{
    struct pair *p = *state;
    start(p, p->a, "holds", "r");
    until(&gate.began, 1);
    if (rv_cancel_run_with(p->b, "r", RV_CANCEL_OPTS(.by = "somebody"), &p->err) < 0)
        fail_msg("%s", p->err.message);
    until(&gate.told, 1);
    ends(p, p->a, "r", RV_CANCELLED, "");
    assert_int_equal(facts(p, "r", "somebody"), 1);
    assert_int_equal(rv_cancel_run(p->b, "nothing", &p->err), RV_ENOTFOUND);
}

/* A signal to a run that the other has at work is sent there; to one at rest, it is taken. */
static void signals_and_decisions_find_their_run(void **state)
{
    struct pair *p = *state;
    start(p, p->a, "asks", "r");
    assert_int_equal(rv_signal(p->b, "r", "go", "5", &p->err), RV_OK);
    ends(p, p->a, "r", RV_COMPLETED, "\"ok\":{\"result\":5");
    assert_int_equal(facts(p, "r", "tester"), 2);
    assert_int_equal(rv_signal(p->b, "r", "go", "6", &p->err), RV_ESTATE);
    start(p, p->a, "holds", "h");
    until(&gate.began, 1);
    assert_true(rv_signal(p->b, "h", "go", "5", &p->err) < 0); /* it has no such signal */
    assert_true(rv_decide(p->b, "h", RV_RESUME, NULL, &p->err) < 0);
    assert_true(rv_complete(p->b, "h", "handle", "1", NULL, &p->err) < 0);
    char *why = NULL;
    assert_int_equal(rv_why(p->b, "h", &why, &p->err), RV_OK);
    assert_true(strstr(why, "\"running\"") != NULL);
    rv_free(why);
}

static void the_same_id_is_the_same_run(void **state)
{
    struct pair *p = *state;
    rv_run_info info;
    start(p, p->a, "holds", "r");
    start(p, p->b, "holds", "r");
    assert_int_equal(rv_run(p->b, "asks", NULL, RV_RUN_OPTS(.run_id = "r"), &info, &p->err),
                     RV_EEXIST);
    assert_int_equal(facts(p, "r", "run.started"), 1);
}

struct starter {
    struct pair *p;
    rv_engine *engine;
    int good;
};

static void *start_many(void *arg)
{
    struct starter *s = arg;
    char id[16];
    rv_error err;
    for (int i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "run-%d", i);
        s->good += rv_run(s->engine, "asks", NULL, RV_RUN_OPTS(.run_id = id), NULL, &err) == RV_OK;
    }
    return NULL;
}

static void two_that_begin_the_same_runs_at_once_agree(void **state)
{
    struct pair *p = *state;
    struct starter a = { p, p->a, 0 }, b = { p, p->b, 0 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, start_many, &a), 0);
    start_many(&b);
    pthread_join(thread, NULL);
    assert_int_equal(a.good, 40);
    assert_int_equal(b.good, 40);
    for (int i = 0; i < 40; i++) {
        char id[16];
        snprintf(id, sizeof id, "run-%d", i);
        assert_int_equal(facts(p, id, "run.started"), 1);
    }
}

/* Its run goes on at the other, its own attempt is told to stop, and what that says is not recorded. */
static void a_member_that_is_ended_loses_its_runs_and_joins_anew(void **state)
{
    struct pair *p = *state;
    start(p, p->a, "holds", "r");
    until(&gate.began, 1);
    end_member_of(p, "r");
    until(&gate.began, 2);
    until(&gate.told, 1);
    open_gate();
    ends(p, p->a, "r", RV_COMPLETED, "\"hold\":{\"result\":1");
    ends(p, p->b, "r", RV_COMPLETED, "\"quick\":{\"result\":7");
    assert_int_equal(facts(p, "r", "run.completed"), 1);
    start(p, p->a, "holds", "s"); /* it is a member again */
    ends(p, p->b, "s", RV_COMPLETED, "\"hold\":{\"result\":1");
}

static void a_member_that_ends_in_order_leaves_its_runs(void **state)
{
    struct pair *p = *state;
    start(p, p->a, "holds", "r");
    until(&gate.began, 1);
    rv_engine_free(p->a); /* its step is told, and its attempt is lost without blame */
    p->a = NULL;
    until(&gate.began, 2);
    open_gate();
    ends(p, p->b, "r", RV_COMPLETED, "\"hold\":{\"result\":1");
}

/* What a member of the store says of a run, until it says that. */
static void says(struct pair *p, rv_engine *engine, const char *run_id, const char *part)
{
    char *why = NULL;
    for (int i = 0; i < 6000; i++) { /* a minute or more, for a machine that stands still */
        if (rv_why(engine, run_id, &why, &p->err) < 0)
            fail_msg("%s", p->err.message);
        bool said = strstr(why, part) != NULL;
        if (!said && i == 5999)
            fail_msg("it does not say '%s': %s", part, why);
        rv_free(why);
        if (said)
            return;
        usleep(10000); /* members look once a second */
    }
}

/* A member without the function takes the signal; who has the function continues the run. */
static void a_member_without_the_next_function_hands_the_run_over(void **state)
{
    struct pair *p = *state;
    rv_engine *packs = join_relay(p, true), *waits = join_relay(p, false);
    start(p, packs, "relay", "r");
    assert_int_equal(rv_signal(waits, "r", "go", "5", &p->err), RV_OK);
    ends(p, waits, "r", RV_COMPLETED, "\"pack\":{\"result\":7");
    char *metrics = NULL;
    assert_int_equal(rv_metrics(waits, &metrics, &p->err), RV_OK);
    assert_non_null(strstr(metrics, "\nrival_member_handed_over_total 1\n"));
    rv_free(metrics);
    rv_engine_free(waits);
    rv_engine_free(packs);
}

static void a_run_that_no_member_can_continue_waits_and_why_tells(void **state)
{
    struct pair *p = *state;
    rv_engine *packs = join_relay(p, true), *waits = join_relay(p, false);
    start(p, packs, "relay", "r");
    rv_engine_free(packs);
    assert_int_equal(rv_signal(waits, "r", "go", "5", &p->err), RV_OK);
    says(p, waits, "r", "waits for a worker that offers 'pack': no member of the store offers it");
    says(p, p->a, "r", "no member of the store offers it");
    packs = join_relay(p, true);
    ends(p, waits, "r", RV_COMPLETED, "\"pack\":{\"result\":7");
    rv_engine_free(packs);
    rv_engine_free(waits);
}

/* It gave the run up, and has the function later. */
static void a_member_takes_back_what_it_can_continue_now(void **state)
{
    struct pair *p = *state;
    rv_engine *packs = join_relay(p, true), *waits = join_relay(p, false);
    start(p, packs, "relay", "r");
    rv_engine_free(packs);
    assert_int_equal(rv_signal(waits, "r", "go", "5", &p->err), RV_OK);
    says(p, waits, "r", "no member of the store offers it");
    assert_int_equal(rv_unregister(waits, "relay", &p->err), RV_OK);
    rv_workflow *w = rv_workflow_new("relay");
    rv_add_step(rv_workflow_body(w), "pack", quick, NULL);
    put(p, waits, w);
    ends(p, waits, "r", RV_COMPLETED, "\"pack\":{\"result\":7");
    rv_engine_free(waits);
}

static void the_owner_tells_what_its_run_waits_for(void **state)
{
    struct pair *p = *state;
    start(p, p->a, "holds", "r");
    until(&gate.began, 1);
    char *here = NULL, *there = NULL;
    assert_int_equal(rv_why(p->a, "r", &here, &p->err), RV_OK);
    assert_int_equal(rv_why(p->b, "r", &there, &p->err), RV_OK);
    assert_non_null(strstr(here, "\"executor\":\"thread\""));
    assert_string_equal(here, there);
    rv_free(here);
    rv_free(there);
}

/* Runs wait for a place at one member; another one comes and has places. */
static void a_member_that_joins_takes_its_share(void **state)
{
    struct pair *p = *state;
    char id[16];
    rv_engine_free(p->a);
    rv_engine_free(p->b);
    p->a = p->b = NULL;
    if (rv_engine_new(RV_ENGINE_OPTS(.store = p->address, .member = true, .workers = 1), &p->a,
                      &p->err) < 0)
        fail_msg("%s", p->err.message);
    rv_workflow *w = rv_workflow_new("holds");
    rv_add_step(rv_workflow_body(w), "hold", hold, NULL);
    put(p, p->a, w);
    for (int i = 0; i < 9; i++) {
        snprintf(id, sizeof id, "r-%d", i);
        start(p, p->a, "holds", id);
    }
    until(&gate.began, 1);
    p->b = join(p);
    until(&gate.began, 5); /* one at a, and its share at b */
    open_gate();
    for (int i = 0; i < 9; i++) {
        snprintf(id, sizeof id, "r-%d", i);
        ends(p, p->b, id, RV_COMPLETED, "\"hold\":{\"result\":1");
        assert_int_equal(facts(p, id, "step.lost"), 0);
    }
}

/* ---- workers */

static int hammer(rv_ctx *ctx)
{
    pthread_mutex_lock(&gate.lock);
    gate.began++;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    return rv_return(ctx, "s", rv_str(ctx, ".run.runId"));
}

struct forge {
    rv_worker *worker;
    rv_workflow *workflow;
    rv_cancel *stop;
    pthread_t thread;
    int rc;
    rv_error err;
};

static void *run_worker(void *arg)
{
    struct forge *f = arg;
    f->rc = rv_worker_run(f->worker, f->stop, &f->err);
    return NULL;
}

static uint16_t take_workers(struct pair *p, rv_engine *engine)
{
    uint16_t port = 0;
    if (rv_workers_listen(engine,
                          RV_WORKERS_OPTS(.listen = "127.0.0.1:0", .url = "tcp://127.0.0.1:0"),
                          &port, &p->err) < 0)
        fail_msg("%s", p->err.message);
    return port;
}

static void open_forge(struct pair *p, struct forge *f, uint16_t port)
{
    char address[40];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", port);
    f->workflow = rv_workflow_new("forge");
    rv_add_step(rv_workflow_body(f->workflow), "hammer", hammer, NULL);
    f->stop = rv_cancel_new(NULL);
    if (rv_worker_new(RV_WORKER_OPTS(.address = address, .credits = 4), &f->worker, &p->err) < 0 ||
        rv_worker_offer(f->worker, f->workflow, &p->err) < 0)
        fail_msg("%s", p->err.message);
    assert_int_equal(pthread_create(&f->thread, NULL, run_worker, f), 0);
}

static void close_forge(struct forge *f)
{
    rv_cancel_fire(f->stop, 0, NULL);
    pthread_join(f->thread, NULL);
    assert_int_equal(f->rc, RV_OK);
    rv_worker_free(f->worker);
    rv_workflow_free(f->workflow);
    rv_cancel_free(f->stop);
}

/* Until so many workers are connected to the engine, with these credits in all. */
static void has_workers(struct pair *p, rv_engine *engine, const char *part)
{
    char *text = NULL;
    for (int i = 0; i < 6000; i++) { /* a minute or more, for a machine that stands still */
        if (rv_workers(engine, &text, &p->err) < 0)
            fail_msg("%s", p->err.message);
        bool there = strstr(text, part) != NULL;
        if (!there && i == 5999)
            fail_msg("it has not '%s': %s", part, text);
        rv_free(text);
        if (there)
            return;
        usleep(10000); /* members look once a second */
    }
}

/* It is given one address, and serves both, and one that comes later. */
static void a_worker_connects_to_all_members(void **state)
{
    struct pair *p = *state;
    struct forge forge = { .rc = 0 };
    uint16_t port = take_workers(p, p->a);
    (void)take_workers(p, p->b);
    open_forge(p, &forge, port);
    has_workers(p, p->a, "\"connections\":[{\"name\":\"\",\"credits\":2,");
    has_workers(p, p->b, "\"connections\":[{\"name\":\"\",\"credits\":2,");
    start(p, p->a, "forge", "at-a");
    ends(p, p->b, "at-a", RV_COMPLETED, "\"hammer\":{\"result\":\"at-a\"");
    start(p, p->b, "forge", "at-b");
    ends(p, p->a, "at-b", RV_COMPLETED, "\"hammer\":{\"result\":\"at-b\"");
    rv_engine *c = join(p);
    (void)take_workers(p, c);
    has_workers(p, c, "\"connections\":[{\"name\":\"\",\"credits\":1,");
    start(p, c, "forge", "at-c");
    ends(p, c, "at-c", RV_COMPLETED, "\"hammer\":{\"result\":\"at-c\"");
    /* The one that it was given goes: the others keep it, and share what it has. */
    rv_engine_free(p->a);
    p->a = NULL;
    has_workers(p, p->b, "\"connections\":[{\"name\":\"\",\"credits\":2,");
    has_workers(p, c, "\"connections\":[{\"name\":\"\",\"credits\":2,");
    start(p, p->b, "forge", "still");
    ends(p, p->b, "still", RV_COMPLETED, "\"hammer\":{\"result\":\"still\"");
    close_forge(&forge);
    has_workers(p, c, "\"connections\":[]");
    rv_engine_free(c);
    assert_int_equal(gate.began, 4);
}

/* A member that was ended joins as another one, at the same address. */
static void a_worker_stays_with_a_member_that_joins_anew(void **state)
{
    struct pair *p = *state;
    struct forge forge = { .rc = 0 };
    uint16_t port = take_workers(p, p->a);
    (void)take_workers(p, p->b);
    start(p, p->b, "holds", "r");
    until(&gate.began, 1);
    open_forge(p, &forge, port);
    has_workers(p, p->b, "\"credits\":2,");
    end_member_of(p, "r");
    until(&gate.told, 1); /* b joins as another member */
    start(p, p->b, "forge", "at-b");
    ends(p, p->b, "at-b", RV_COMPLETED, "\"hammer\":{\"result\":\"at-b\"");
    has_workers(p, p->b, "\"credits\":2,");
    has_workers(p, p->a, "\"credits\":2,");
    close_forge(&forge);
}

static void an_address_for_workers_is_checked(void **state)
{
    struct pair *p = *state;
    static const char *const bad[] = { "127.0.0.1:7070",
                                       "http://a:7070",
                                       "tls://:7070",
                                       "tls://a",
                                       "",
                                       "tls://a b:7070",
                                       "tls://a\nb:7070",
                                       "tls://\x1b[2Ja:7070",
                                       "tls://\xff:7070",
                                       "tls://a\x7f:7070" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rv_workers_listen(p->a,
                                           RV_WORKERS_OPTS(.listen = "127.0.0.1:0", .url = bad[i]),
                                           NULL, &p->err),
                         RV_EINVAL);
}

/* Before this was checked, the engine that failed here listened all the same. */
static void a_member_that_closes_takes_no_workers(void **state)
{
    struct pair *p = *state;
    uint16_t port = 0;
    rv_engine_close(p->a);
    assert_int_equal(rv_workers_listen(
                         p->a, RV_WORKERS_OPTS(.listen = "127.0.0.1:0", .url = "tcp://127.0.0.1:0"),
                         &port, &p->err),
                     RV_ECLOSED);
    assert_int_equal(port, 0);
}

static void members_are_told(void **state)
{
    struct pair *p = *state;
    char *text = NULL;
    assert_int_equal(rv_members(p->a, &text, &p->err), RV_OK);
    const char *first = strstr(text, "\"id\":");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "\"id\":"));
    assert_non_null(strstr(text, "\"self\":true"));
    rv_free(text);
    assert_int_equal(rv_members(NULL, &text, &p->err), RV_EINVAL);
}

static void a_store_is_shared_by_members_or_by_nobody(void **state)
{
    struct pair *p = *state;
    rv_engine *engine = NULL;
    assert_int_equal(rv_engine_new(RV_ENGINE_OPTS(.store = p->address), &engine, &p->err),
                     RV_EBUSY);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:", .member = true), &engine, &p->err),
        RV_EINVAL);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = p->address, .member = true, .only_run = "r"), &engine,
                      &p->err),
        RV_EINVAL);
    assert_int_equal(
        rv_engine_new(RV_ENGINE_OPTS(.store = p->address, .member = true, .lease_ms = 10), &engine,
                      &p->err),
        RV_EINVAL);
}

#define PAIR_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(who_waits_elsewhere_learns_of_the_end),
        PAIR_TEST(a_cancel_reaches_the_owner),
        PAIR_TEST(signals_and_decisions_find_their_run),
        PAIR_TEST(the_same_id_is_the_same_run),
        PAIR_TEST(two_that_begin_the_same_runs_at_once_agree),
        PAIR_TEST(a_member_that_is_ended_loses_its_runs_and_joins_anew),
        PAIR_TEST(a_member_that_ends_in_order_leaves_its_runs),
        PAIR_TEST(a_member_without_the_next_function_hands_the_run_over),
        PAIR_TEST(a_run_that_no_member_can_continue_waits_and_why_tells),
        PAIR_TEST(a_member_takes_back_what_it_can_continue_now),
        PAIR_TEST(the_owner_tells_what_its_run_waits_for),
        PAIR_TEST(a_member_that_joins_takes_its_share),
        PAIR_TEST(a_worker_connects_to_all_members),
        PAIR_TEST(a_worker_stays_with_a_member_that_joins_anew),
        PAIR_TEST(an_address_for_workers_is_checked),
        PAIR_TEST(a_member_that_closes_takes_no_workers),
        PAIR_TEST(members_are_told),
        PAIR_TEST(a_store_is_shared_by_members_or_by_nobody),
    };
    pg_server_start();
    int failed = cmocka_run_group_tests_name("members", tests, NULL, NULL);
    pg_server_stop();
    return failed;
}
