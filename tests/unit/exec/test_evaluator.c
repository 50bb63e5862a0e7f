/* test_evaluator.c: expressions on their thread: src/exec/evaluator.c. */
#include "unit/test.h"

#include <pthread.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "unit/expr/scope.h"

struct job {
    struct rv__evaluation evaluation; /* first */
    struct fixture *fx;
    char value[200];
    rv_error err;
    bool done;
};

struct fixture {
    struct rv__evaluator *evaluator;
    struct rv__exprs *set;
    struct test_scope scope;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int done;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    pthread_mutex_init(&fx->lock, NULL);
    pthread_cond_init(&fx->more, NULL);
    test_scope_init(&fx->scope);
    test_scope_put(&fx->scope, "input", NULL, NULL, "{\"n\":3}");
    assert_int_equal(rv__exprs_new(&fx->set, NULL), RV_OK);
    assert_int_equal(rv__evaluator_new(&fx->evaluator, NULL), RV_OK);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    rv__evaluator_free(fx->evaluator);
    rv__exprs_unref(fx->set);
    test_scope_done(&fx->scope);
    pthread_cond_destroy(&fx->more);
    pthread_mutex_destroy(&fx->lock);
    free(fx);
    return 0;
}

static void done(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err)
{
    struct job *job = (struct job *)evaluation;
    struct fixture *fx = job->fx;
    pthread_mutex_lock(&fx->lock);
    if (job->done)
        fail_msg("done twice");
    job->done = true;
    if (err != NULL)
        job->err = *err;
    else
        snprintf(job->value, sizeof job->value, "%.*s", RV__ARG(json));
    fx->done++;
    pthread_cond_broadcast(&fx->more);
    pthread_mutex_unlock(&fx->lock);
}

static void start(struct fixture *fx, struct job *job, uint32_t number, int64_t timeout_ms)
{
    *job = (struct job){ .evaluation = { .set = fx->set,
                                         .number = number,
                                         .scope = &fx->scope.scope,
                                         .timeout_ms = timeout_ms,
                                         .done = done },
                         .fx = fx };
    rv__evaluator_start(fx->evaluator, &job->evaluation);
}

static void wait_for(struct fixture *fx, int count)
{
    pthread_mutex_lock(&fx->lock);
    while (fx->done < count)
        pthread_cond_wait(&fx->more, &fx->lock);
    pthread_mutex_unlock(&fx->lock);
}

static uint32_t add(struct fixture *fx, const char *template)
{
    uint32_t number = 0;
    rv_error err;
    if (rv__exprs_add(fx->set, rv__str(template), &number, &err) < 0)
        fail_msg("%s: %s", template, err.message);
    return number;
}

static void values_come_back(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[3];
    uint32_t plain = add(fx, "\"${ .input.n }\""), jq = add(fx, "\"${ .input.n * 2 }\""),
             bad = add(fx, "\"${ .input.n | keys }\"");
    start(fx, &jobs[0], plain, 0);
    start(fx, &jobs[1], jq, 0);
    start(fx, &jobs[2], bad, 0);
    wait_for(fx, 3);
    assert_string_equal(jobs[0].value, "3");
    assert_string_equal(jobs[1].value, "6");
    assert_int_equal(jobs[2].err.code, RV_EINVAL);
}

static void a_set_that_does_not_compile_says_so(void **state)
{
    struct fixture *fx = *state;
    struct job job;
    start(fx, &job, add(fx, "\"${ nonsense }\""), 0);
    wait_for(fx, 1);
    assert_int_equal(job.err.code, RV_EPARSE);
    assert_non_null(strstr(job.err.message, "nonsense/0 is not defined"));
}

/* What goes on for ever, or wants all memory there is, in many ways. */
static const char *const endless[] = {
    "\"${ def f: f; f }\"",
    "\"${ def f: 1 + f; f }\"",
    "\"${ [range(1e9)] }\"",
    "\"${ reduce range(1e9) as $i (null; [.]) }\"",
    "\"${ reduce range(1e9) as $i (null; {a: .}) }\"",
    "\"${ [recurse([.])] | length }\"",
    "\"${ reduce range(60) as $i (\\\"xxxxxxxx\\\"; . + .) | length }\"",
    "\"${ reduce range(60) as $i ([1]; . + .) | length }\"",
    "\"${ \\\"x\\\" * 1e9 }\"",
    "{\"a\":\"${ [repeat(1)] }\",\"b\":\"${ [repeat(2)] }\"}",
};

static void what_has_no_end_is_ended(void **state)
{
    struct fixture *fx = *state;
    enum { ENDLESS = sizeof endless / sizeof *endless };
    struct job jobs[ENDLESS], good;
    uint32_t numbers[ENDLESS], last;
    for (size_t i = 0; i < ENDLESS; i++)
        numbers[i] = add(fx, endless[i]);
    last = add(fx, "\"${ .input.n + 1 }\"");
    int64_t before = rv__mono_ns(rv__clock_real());
    for (size_t i = 0; i < ENDLESS; i++)
        start(fx, &jobs[i], numbers[i], 300);
    start(fx, &good, last, 0);
    wait_for(fx, ENDLESS + 1);
    int64_t took_ms = (rv__mono_ns(rv__clock_real()) - before) / 1000000;
    for (size_t i = 0; i < ENDLESS; i++)
        if (jobs[i].err.code != RV_ETIMEDOUT &&
            (jobs[i].err.code != RV_EINVAL || strstr(jobs[i].err.message, "16 MiB") == NULL))
            fail_msg("%s: %d %s %s", endless[i], jobs[i].err.code, jobs[i].err.message,
                     jobs[i].value);
    assert_non_null(strstr(jobs[0].err.message, "longer than the 300 ms"));
    assert_string_equal(good.value, "4");
    assert_true(took_ms < 60000); /* far above what it takes: ended at all is what counts */
}

static void memory_has_a_bound_of_its_own(void **state)
{
    struct fixture *fx = *state;
    struct job job;
    start(fx, &job, add(fx, "\"${ def f: 1 + f; f }\""), 600000); /* 600 MB a second */
    wait_for(fx, 1);
    assert_int_equal(job.err.code, RV_ETIMEDOUT);
    assert_non_null(strstr(job.err.message, "more memory than it may"));
}

static void *produce(void *arg)
{
    struct job *jobs = arg;
    struct fixture *fx = jobs->fx;
    for (uint32_t i = 0; i < 200; i++)
        start(fx, &jobs[i], i % 2, 0);
    return NULL;
}

static void threads_may_ask_at_once(void **state)
{
    struct fixture *fx = *state;
    enum { THREADS = 4, EACH = 200 };
    static struct job jobs[THREADS][EACH];
    pthread_t threads[THREADS];
    (void)add(fx, "\"${ .input.n }\"");
    (void)add(fx, "\"n: ${ .input.n - 1 }\"");
    for (int t = 0; t < THREADS; t++) {
        jobs[t][0].fx = fx;
        assert_int_equal(pthread_create(&threads[t], NULL, produce, jobs[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    wait_for(fx, THREADS * EACH);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < EACH; i++)
            assert_string_equal(jobs[t][i].value, i % 2 ? "\"n: 2\"" : "3");
}

static void closing_ends_what_goes_on_and_what_waits(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[3];
    uint32_t endless_one = add(fx, "\"${ def f: f; f }\""), good = add(fx, "\"${ 1 + 1 }\"");
    start(fx, &jobs[0], endless_one, 600000);
    start(fx, &jobs[1], good, 0);
    start(fx, &jobs[2], endless_one, 600000);
    rv__evaluator_free(fx->evaluator);
    fx->evaluator = NULL;
    assert_int_equal(fx->done, 3);
    assert_true(jobs[0].err.code == RV_ETIMEDOUT || jobs[0].err.code == RV_ECLOSED);
    assert_true(jobs[1].err.code == RV_ECLOSED || strcmp(jobs[1].value, "2") == 0);
    assert_int_equal(jobs[2].err.code, RV_ECLOSED);
}

static int make(struct fixture *fx)
{
    struct rv__evaluator *evaluator = NULL;
    (void)fx;
    int rc = rv__evaluator_new(&evaluator, NULL);
    rv__evaluator_free(evaluator);
    return rc;
}

static void no_memory_means_no_evaluator(void **state)
{
    int rc;
    TORTURE(rc, make(*state), (void)0);
    assert_int_equal(rc, RV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_that_does_not_compile_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_no_end_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_has_a_bound_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_may_ask_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_what_goes_on_and_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_means_no_evaluator, setup, teardown),
    };
    return cmocka_run_group_tests_name("evaluator", tests, NULL, NULL);
}
