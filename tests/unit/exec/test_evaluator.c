/* test_evaluator.c: expressions in processes of their own: src/exec/evaluator.c, eval_process.c, and src/jq behind
 * them. */
#include "unit/test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "unit/expr/scope.h"

struct job {
    struct rv__evaluation evaluation; /* first */
    struct fixture *fx;
    char value[400];
    rv_error err;
    bool done;
    int begun;
};

struct fixture {
    struct rv__evaluator *evaluator;
    struct rv__exprs *set;
    struct test_scope scope;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int done;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static const struct rv__evaluator_opts defaults;

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    *state = fx;
    pthread_mutex_init(&fx->lock, NULL);
    pthread_cond_init(&fx->more, NULL);
    test_scope_init(&fx->scope);
    test_scope_put(&fx->scope, "input", NULL, NULL, "{\"n\":3}");
    assert_int_equal(rv__exprs_new(&fx->set, NULL), RV_OK);
    assert_int_equal(rv__evaluator_new(&defaults, &fx->evaluator, NULL), RV_OK);
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

static void begun(struct rv__evaluation *evaluation)
{
    struct job *job = (struct job *)evaluation;
    pthread_mutex_lock(&job->fx->lock);
    job->begun += job->done ? 100 : 1; /* not after its end */
    pthread_mutex_unlock(&job->fx->lock);
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

static void start(struct fixture *fx, struct job *job, uint32_t number, int64_t cpu_ms)
{
    *job = (struct job){ .evaluation = { .set = fx->set,
                                         .number = number,
                                         .scope = &fx->scope.scope,
                                         .cpu_ms = cpu_ms,
                                         .begun = begun,
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
    assert_int_equal(jobs[0].begun, 0); /* it needs no process */
    assert_int_equal(jobs[1].begun, 1);
    assert_int_equal(jobs[2].begun, 1);
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
    for (size_t i = 0; i < ENDLESS; i++)
        start(fx, &jobs[i], numbers[i], 300);
    start(fx, &good, last, 0);
    wait_for(fx, ENDLESS + 1);
    for (size_t i = 0; i < ENDLESS; i++)
        if (jobs[i].err.code != RV_ETIMEDOUT &&
            (jobs[i].err.code != RV_EFAILED || strstr(jobs[i].err.message, "crashed") == NULL))
            fail_msg("%s: %d %s %s", endless[i], jobs[i].err.code, jobs[i].err.message,
                     jobs[i].value);
    assert_non_null(strstr(jobs[0].err.message, "longer than the 300 ms of CPU time"));
    assert_string_equal(good.value, "4");
}

/* ----------------------------------------------------------------------------- processes --- */

/* Our evaluator processes. Returns how many; *ret is one of them. */
static int children(pid_t *ret)
{
    int count = 0;
    char path[300], line[400];
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        long pid = strtol(entry->d_name, NULL, 10), parent = 0;
        char what = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        if (fgets(line, sizeof line, file) != NULL && strrchr(line, ')') != NULL &&
            sscanf(strrchr(line, ')') + 1, " %c %ld", &what, &parent) == 2 && parent == getpid() &&
            what != 'Z') {
            count++;
            *ret = (pid_t)pid;
        }
        fclose(file);
    }
    closedir(proc);
    return count;
}

static void nap(int64_t ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* What ends libjq's process, in several ways; each of them took the engine with it once. */
static const char *const killers[] = {
    "\"${ [1,2,3][(\\\"nan\\\" | tonumber):] }\"", /* an assertion on data */
    "\"${ 1e18 | todate }\"",                      /* another */
    "\"${ [.[]?] | .[1e9] = 1 }\"",                /* 16 GB at once */
};

static void a_crash_is_one_expressions_error(void **state)
{
    struct fixture *fx = *state;
    enum { KILLERS = sizeof killers / sizeof *killers };
    struct job jobs[KILLERS], good[KILLERS];
    uint32_t numbers[KILLERS], plus;
    for (size_t i = 0; i < KILLERS; i++)
        numbers[i] = add(fx, killers[i]);
    plus = add(fx, "\"${ .input.n + 1 }\"");
    for (size_t i = 0; i < KILLERS; i++) {
        start(fx, &jobs[i], numbers[i], 20000);
        start(fx, &good[i], plus, 0);
    }
    wait_for(fx, 2 * KILLERS);
    for (size_t i = 0; i < KILLERS; i++) {
        if (jobs[i].err.code != RV_EFAILED ||
            strstr(jobs[i].err.message, "the expression crashed the evaluator: ") == NULL)
            fail_msg("%s: %d '%s' %s", killers[i], jobs[i].err.code, jobs[i].err.message,
                     jobs[i].value);
        assert_string_equal(good[i].value, "4");
    }
    assert_non_null(strstr(jobs[0].err.message, "signal 6")); /* how, */
    assert_non_null(strstr(jobs[0].err.message, "ssertion")); /* and what it said before */
}

static void memory_has_a_bound(void **state)
{
    struct fixture *fx = *state;
    struct job job;
    if (SANITIZED)
        return; /* their address space has no bound */
    start(fx, &job, add(fx, "\"${ reduce range(60) as $i (\\\"xxxxxxxx\\\"; . + .) | length }\""),
          60000);
    wait_for(fx, 1);
    assert_int_equal(job.err.code, RV_EFAILED);
    assert_non_null(strstr(job.err.message, "out of memory (it may have 1024 MB)"));
}

static void a_call_in_c_that_does_not_end_is_ended(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[3];
    uint32_t places = add(fx, "\"${ \\\"abc\\\" | indices(\\\"\\\") }\""),
             good = add(fx, "\"${ .input.n + 1 }\"");
    start(fx, &jobs[0], good, 0);
    start(fx, &jobs[1], places, 100);
    start(fx, &jobs[2], good, 0);
    wait_for(fx, 3);
    assert_int_equal(jobs[1].err.code, RV_ETIMEDOUT);
    assert_non_null(strstr(jobs[1].err.message, "longer than the 100 ms of CPU time"));
    assert_string_equal(jobs[0].value, "4");
    assert_string_equal(jobs[2].value, "4");
}

/* A machine that stands still is no fault of the expression. */
static void stopped_time_does_not_count(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[2];
    pid_t pid = 0;
    uint32_t sum = add(fx, "\"${ [range(.input.n * 20000)] | add }\"");
    start(fx, &jobs[0], sum, 2000);
    wait_for(fx, 1);
    assert_int_equal(children(&pid), 1);
    start(fx, &jobs[1], sum, 2000);
    kill(pid, SIGSTOP);
    nap(2500);
    kill(pid, SIGCONT);
    wait_for(fx, 2);
    assert_string_equal(jobs[1].value, "1799970000");
}

static void killed_processes_lose_nothing(void **state)
{
    struct fixture *fx = *state;
    enum { JOBS = 1000, KILLS = 4 }; /* even if all of them meet one expression */
    static struct job jobs[JOBS];
    struct rv__buf text;
    char template[200], expected[100];
    pid_t pid = 0;
    uint32_t first = 0;
    rv__buf_init(&text, 1 << 20);
    rv__buf_char(&text, '[');
    for (int i = 0; i < 2000; i++)
        rv__buf_fmt(&text, "%s%d", i > 0 ? "," : "", i);
    rv__buf_char(&text, ']');
    test_scope_put(&fx->scope, "steps", "a", "result", text.text); /* crosses once, and again */
    test_scope_put(&fx->scope, "steps", "a", "status", "\"completed\"");
    for (int i = 0; i < 100; i++) {
        snprintf(
            template, sizeof template,
            "[\"${ .steps.a.result[:%d] | add + ([range(2000)] | length) }\",\"${ .input.n }\"]",
            i + 1);
        uint32_t number = add(fx, template);
        first = i == 0 ? number : first;
    }
    for (int i = 0; i < JOBS; i++)
        start(fx, &jobs[i], first + (uint32_t)(i % 100), 0);
    for (int k = 0; k < KILLS; k++) {
        wait_for(fx, 100 + k * 100); /* in the midst of it */
        if (children(&pid) > 0)
            kill(pid, SIGKILL);
    }
    wait_for(fx, JOBS);
    for (int i = 0; i < JOBS; i++) {
        int n = i % 100;
        snprintf(expected, sizeof expected, "[%d,3]", n * (n + 1) / 2 + 2000);
        if (strcmp(jobs[i].value, expected) != 0)
            fail_msg("job %d: '%s' %s", i, jobs[i].value, jobs[i].err.message);
    }
    rv__buf_done(&text);
}

/* A long evaluation does not hold up the others. */
static void a_second_process_does_what_waits(void **state)
{
    struct fixture *fx = *state;
    enum { MORE = 200 };
    static struct job jobs[MORE];
    struct job endless_one;
    uint32_t loops = add(fx, "\"${ def f: f; f }\""), good = add(fx, "\"${ .input.n + 1 }\"");
    pid_t pid;
    start(fx, &endless_one, loops, 1500);
    nap(200); /* it goes on now */
    for (int i = 0; i < MORE; i++)
        start(fx, &jobs[i], good, 0);
    wait_for(fx, MORE);
    assert_false(endless_one.done);
    assert_int_equal(children(&pid), 2);
    wait_for(fx, MORE + 1);
    assert_int_equal(endless_one.err.code, RV_ETIMEDOUT);
}

static void two_evaluators_do_not_notice_each_other(void **state)
{
    struct fixture *fx = *state, *other = NULL;
    struct job jobs[2][50], crash;
    pid_t pid;
    assert_int_equal(setup((void **)&other), 0);
    uint32_t here = add(fx, "\"${ .input.n + 1 }\""), there = add(other, "\"${ .input.n + 2 }\""),
             killer = add(other, killers[0]);
    for (int i = 0; i < 50; i++) {
        start(fx, &jobs[0][i], here, 0);
        start(other, &jobs[1][i], there, 0);
    }
    start(other, &crash, killer, 0);
    wait_for(fx, 50);
    wait_for(other, 51);
    for (int i = 0; i < 50; i++) {
        assert_string_equal(jobs[0][i].value, "4");
        assert_string_equal(jobs[1][i].value, "5");
    }
    assert_int_equal(crash.err.code, RV_EFAILED);
    rv__evaluator_close(other->evaluator);
    assert_int_equal(children(&pid), 1); /* that of the first */
    teardown((void **)&other);
}

static void a_file_of_definitions_is_not_loaded(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[3];
    char home[] = "/tmp/rival-home-XXXXXX", path[60];
    char *before = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof path, "%s/.jq", home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("def mine: 42; def length: 7;", file);
    fclose(file);
    setenv("HOME", home, 1);
    start(fx, &jobs[0], add(fx, "\"${ [1] | length }\""), 0);
    wait_for(fx, 1);
    assert_string_equal(jobs[0].value, "1");
    rv__exprs_unref(fx->set);
    assert_int_equal(rv__exprs_new(&fx->set, NULL), RV_OK);
    start(fx, &jobs[1], add(fx, "\"${ mine }\""), 0);
    wait_for(fx, 2);
    assert_int_equal(jobs[1].err.code, RV_EPARSE);
    if (before != NULL)
        setenv("HOME", before, 1);
    free(before);
    unlink(path);
    rmdir(home);
}

static void without_the_program_paths_are_still_there(void **state)
{
    struct fixture *fx = *state;
    struct job jobs[2];
    char *before = strdup(getenv("RIVAL_HOST"));
    /* A set that is in use may not grow: both are there before the first starts. */
    uint32_t path = add(fx, "\"n: ${ .input.n }\""), jq = add(fx, "\"${ .input.n + 1 }\"");
    setenv("RIVAL_HOST", "/nowhere/rival", 1);
    start(fx, &jobs[0], path, 0);
    start(fx, &jobs[1], jq, 0);
    wait_for(fx, 2);
    setenv("RIVAL_HOST", before, 1);
    free(before);
    assert_string_equal(jobs[0].value, "\"n: 3\"");
    assert_int_equal(jobs[1].err.code, RV_ENOTFOUND);
    assert_non_null(strstr(jobs[1].err.message, "/nowhere/rival"));
}

static void a_program_that_is_no_evaluator_is_told(void **state)
{
    struct fixture *fx = *state;
    struct job job;
    char *before = strdup(getenv("RIVAL_HOST"));
    setenv("RIVAL_HOST", "/bin/false", 1);
    start(fx, &job, add(fx, "\"${ .input.n + 1 }\""), 0);
    wait_for(fx, 1);
    setenv("RIVAL_HOST", before, 1);
    free(before);
    assert_int_equal(job.err.code, RV_ESYS);
    assert_non_null(strstr(job.err.message, "does not start: it exited with code 1"));
}

static void the_output_has_a_bound(void **state)
{
    struct fixture *fx = *state;
    struct job job = { .fx = fx };
    job.evaluation = (struct rv__evaluation){ .set = fx->set,
                                              .number = add(fx, "\"${ [range(1000)] }\""),
                                              .scope = &fx->scope.scope,
                                              .max_bytes = 100,
                                              .done = done };
    rv__evaluator_start(fx->evaluator, &job.evaluation);
    wait_for(fx, 1);
    assert_int_equal(job.err.code, RV_ETOOBIG);
}

/* What is in another expression's way is told once, and nothing is left of it. */
static void it_can_be_waited_for(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf out;
    rv_error err;
    uint32_t good = add(fx, "\"${ .input.n + 1 }\""), bad = add(fx, "\"${ error(\\\"no\\\") }\"");
    rv__buf_init(&out, 1000);
    assert_int_equal(rv__evaluator_run(fx->evaluator, fx->set, good, &fx->scope.scope, &out, &err),
                     RV_OK);
    assert_str(rv__buf_view(&out), "4");
    assert_int_equal(rv__evaluator_run(fx->evaluator, fx->set, bad, &fx->scope.scope, &out, &err),
                     RV_EINVAL);
    assert_non_null(strstr(err.message, "}: no"));
    rv__buf_done(&out);
    struct rv__expr_compiler *compiler = rv__evaluator_compiler(fx->evaluator);
    assert_int_equal(compiler->compile(compiler, rv__str("1 + 1"), &err), RV_OK);
    assert_int_equal(compiler->compile(compiler, rv__str("nope"), &err), RV_EPARSE);
    assert_non_null(strstr(err.message, "nope/0 is not defined"));
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
    assert_int_equal(jobs[0].err.code, RV_ECLOSED);
    assert_true(jobs[1].err.code == RV_ECLOSED || strcmp(jobs[1].value, "2") == 0);
    assert_int_equal(jobs[2].err.code, RV_ECLOSED);
}

static int make(struct fixture *fx)
{
    struct rv__evaluator *evaluator = NULL;
    (void)fx;
    int rc = rv__evaluator_new(&defaults, &evaluator, NULL);
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
        cmocka_unit_test_setup_teardown(a_crash_is_one_expressions_error, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_in_c_that_does_not_end_is_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(stopped_time_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(killed_processes_lose_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_process_does_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(two_evaluators_do_not_notice_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_definitions_is_not_loaded, setup, teardown),
        cmocka_unit_test_setup_teardown(without_the_program_paths_are_still_there, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_no_evaluator_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_output_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(it_can_be_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_may_ask_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_what_goes_on_and_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(no_memory_means_no_evaluator, setup, teardown),
    };
    return cmocka_run_group_tests_name("evaluator", tests, NULL, NULL);
}
