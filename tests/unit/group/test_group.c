/* test_group.c: the promises of rival/group.h, one by one. For src/group/group.c. */
#include "unit/test.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rival/group.h>

#include "base/cancel.h"

/* A gate that tasks wait at: tests wait for events, not for time. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting; /* how many stand before it */
    bool open;
};
/* clang-format off */
#define GATE { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false }
/* clang-format on */

static void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_await(struct gate *gate, int waiting)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < waiting)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static int echo(rv_task *task, void *arg, void **value)
{
    (void)task;
    *value = arg;
    return 0;
}

static int wait_at_gate(rv_task *task, void *arg, void **value)
{
    (void)task;
    gate_pass(arg);
    *value = arg;
    return 0;
}

static int fail_with_message(rv_task *task, void *arg, void **value)
{
    (void)value;
    return rv_task_fail(task, RV_EBUSY, "disk %d is full", *(int *)arg);
}

static int fail_with_code(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)value;
    return *(int *)arg;
}

static int panic(rv_task *task, void *arg, void **value)
{
    (void)task;
    *value = arg;
    rv_panic("no such thing as %s", "luck");
}

static int until_cancelled(rv_task *task, void *arg, void **value)
{
    if (arg != NULL)
        gate_pass(arg);
    while (!rv_task_cancelled(task))
        sched_yield();
    *value = NULL;
    return 0;
}

static int threads_of_this_process(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* A joined thread stays in /proc for an instant. Sanitizers may have a thread of their own. */
static void assert_threads(int expected)
{
    for (int i = 0; threads_of_this_process() != expected && i < 100000; i++)
        sched_yield();
    assert_int_equal(threads_of_this_process(), expected);
}

static void results_come_in_completion_order(void **state)
{
    (void)state;
    struct gate first = GATE, second = GATE;
    rv_group_result res;
    rv_group *g = rv_group_new(NULL);
    assert_int_equal(rv_group_go(g, wait_at_gate, &first), 0);
    assert_int_equal(rv_group_go(g, wait_at_gate, &second), 0);
    gate_open(&second);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_ptr_equal(res.value, &second);
    assert_int_equal(res.err.code, 0);
    assert_string_equal(res.err.message, "");
    gate_open(&first);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_ptr_equal(res.value, &first);
    rv_group_free(g);
}

static void every_task_runs_and_every_result_comes_once(void **state)
{
    (void)state;
    enum { TASKS = 5000 };
    static int args[TASKS], seen[TASKS];
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 8 });
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(rv_group_go(g, echo, &args[i]), 0);
    rv_group_close(g);
    while (rv_group_next(g, -1, NULL, &res) == 1)
        seen[(int *)res.value - args]++;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(seen[i], 1);
    rv_group_free(g);
}

static void one_thread_runs_tasks_in_order_of_acceptance(void **state)
{
    (void)state;
    static int args[1000];
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 1 });
    for (int i = 0; i < 1000; i++)
        rv_group_go(g, echo, &args[i]);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
        assert_ptr_equal(res.value, &args[i]);
    }
    rv_group_free(g);
}

static struct {
    atomic_int now, most;
} crowd;

static int count_crowd(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)arg;
    (void)value;
    int now = atomic_fetch_add(&crowd.now, 1) + 1;
    int most = atomic_load(&crowd.most);
    while (now > most && !atomic_compare_exchange_weak(&crowd.most, &most, now))
        ;
    for (int i = 0; i < 20; i++)
        sched_yield();
    atomic_fetch_sub(&crowd.now, 1);
    return 0;
}

static void the_limit_holds(void **state)
{
    (void)state;
    static const int limits[] = { 1, 2, 7 };
    for (size_t i = 0; i < 3; i++) {
        atomic_store(&crowd.most, 0);
        rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = limits[i] });
        for (int k = 0; k < 500; k++)
            rv_group_go(g, count_crowd, NULL);
        assert_int_equal(rv_group_wait(g, NULL), 0);
        assert_true(atomic_load(&crowd.most) <= limits[i]);
        rv_group_free(g);
    }
}

static void as_many_run_at_once_as_the_limit_says(void **state)
{
    (void)state;
    struct gate gate = GATE;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 40 });
    int before = threads_of_this_process();
    for (int i = 0; i < 100; i++)
        rv_group_go(g, wait_at_gate, &gate);
    gate_await(&gate, 40); /* all forty stand there together, or this never ends */
    assert_int_equal(threads_of_this_process(), before + 40);
    gate_open(&gate);
    rv_group_free(g);
    assert_int_equal(gate.waiting, 100);
}

static void without_a_limit_threads_stop_at_the_pool_cap(void **state)
{
    (void)state;
    struct gate gate = GATE;
    int before = threads_of_this_process();
    rv_group *g = rv_group_new(NULL);
    for (int i = 0; i < 200; i++)
        rv_group_go(g, wait_at_gate, &gate);
    gate_await(&gate, RV_GROUP_POOL_CAP);
    assert_int_equal(threads_of_this_process(), before + RV_GROUP_POOL_CAP);
    gate_open(&gate);
    assert_int_equal(rv_group_wait(g, NULL), 0);
    rv_group_free(g);
    assert_threads(before);
}

static void short_tasks_share_few_threads(void **state)
{
    (void)state;
    rv_group *g = rv_group_new(NULL);
    int before = threads_of_this_process();
    int x;
    for (int i = 0; i < 500; i++) { /* one at a time: one thread is enough */
        rv_group_result res;
        rv_group_go(g, echo, &x);
        assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    }
    assert_true(threads_of_this_process() - before <= 2);
    rv_group_free(g);
}

static void idle_threads_are_given_back(void **state)
{
    (void)state;
    struct gate gate = GATE;
    int before = threads_of_this_process();
    rv_group_result res;
    rv_group *g = rv_group_new(NULL);
    for (int i = 0; i < 10; i++)
        rv_group_go(g, wait_at_gate, &gate);
    gate_await(&gate, 10);
    gate_open(&gate);
    for (int i = 0; i < 10; i++)
        rv_group_next(g, -1, NULL, &res);
    assert_int_equal(rv_group_next(g, RV_GROUP_IDLE_MS + 500, NULL, &res), RV_ETIMEDOUT);
    assert_threads(before);
    rv_group_go(g, echo, &gate); /* and made again */
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    rv_group_free(g);
    assert_threads(before);
}

static void the_first_error_cancels_and_never_changes(void **state)
{
    (void)state;
    int disk = 7, other = -42;
    rv_error err;
    struct gate gate = GATE;
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, until_cancelled, &gate);
    gate_await(&gate, 1);
    gate_open(&gate);
    rv_group_go(g, fail_with_message, &disk);
    assert_int_equal(rv_group_wait(g, &err), RV_EBUSY); /* until_cancelled saw it, or this hangs */
    assert_string_equal(err.message, "disk 7 is full");
    rv_group_go(g, fail_with_code, &other);
    assert_int_equal(rv_group_wait(g, &err), RV_EBUSY);
    assert_string_equal(err.message, "disk 7 is full");
    rv_group_free(g);
}

/* A watch that holds the cancelling up while it is under way: between error and result. */
struct hold_up {
    struct rv__cancel_watch watch;
    struct gate *others, *go_on;
};

static void hold_up(struct rv__cancel_watch *watch)
{
    struct hold_up *h = (struct hold_up *)watch;
    gate_open(h->others);
    gate_pass(h->go_on);
}

static int watch_own_token(rv_task *task, void *arg, void **value)
{
    (void)value;
    struct hold_up *h = arg;
    rv__cancel_watch(rv_task_token(task), &h->watch);
    gate_pass(h->others);
    return RV_ECANCELED;
}

static void stopping_because_of_an_error_is_not_the_first_error(void **state)
{
    (void)state;
    int disk = 3;
    rv_error err;
    rv_group_result res;
    struct gate others = GATE, go_on = GATE;
    struct hold_up h = { { .fired = hold_up }, &others, &go_on };
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, watch_own_token, &h);
    gate_await(&others, 1);
    rv_group_go(g, fail_with_message, &disk);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1); /* who stopped is done first */
    assert_int_equal(res.err.code, RV_ECANCELED);
    gate_open(&go_on);
    assert_int_equal(rv_group_wait(g, &err), RV_EBUSY);
    assert_string_equal(err.message, "disk 3 is full");
    rv_group_free(g);
}

static int is_cancelled(rv_task *task, void *arg, void **value)
{
    (void)value;
    *(bool *)arg = rv_task_cancelled(task) && rv_cancel_fired(rv_task_token(task));
    return 0;
}

static void who_has_seen_the_error_finds_the_group_cancelled(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int code = RV_EFAILED;
        bool saw = false;
        rv_group_result res;
        rv_group *g = rv_group_new(NULL);
        rv_group_go(g, fail_with_code, &code);
        assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
        rv_group_go(g, is_cancelled, &saw);
        rv_group_next(g, -1, NULL, &res);
        assert_true(saw);
        rv_group_free(g);
    }
}

static void keep_going_keeps_going(void **state)
{
    (void)state;
    int code = -12345;
    bool saw = true;
    rv_error err;
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true, .max_concurrency = 1 });
    rv_group_go(g, fail_with_code, &code);
    rv_group_go(g, is_cancelled, &saw);
    assert_int_equal(rv_group_wait(g, &err), -12345);
    assert_false(saw);
    assert_string_equal(err.message, "the task failed with code -12345");
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_int_equal(res.err.code, -12345);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_int_equal(res.err.code, 0);
    rv_group_free(g);
}

static int fail_saying_zero(rv_task *task, void *arg, void **value)
{
    *value = arg;
    return rv_task_fail(task, 0, "said so");
}

static int fail_and_return_another(rv_task *task, void *arg, void **value)
{
    (void)value;
    (void)rv_task_fail(task, RV_EBUSY, "first thoughts");
    return arg ? *(int *)arg : 0;
}

static void errors_carry_code_message_and_value(void **state)
{
    (void)state;
    int code = RV_ENOTFOUND;
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true, .max_concurrency = 1 });
    rv_group_go(g, fail_with_code, &code);
    rv_group_go(g, fail_saying_zero, &code);
    rv_group_go(g, fail_and_return_another, &code);
    rv_group_go(g, fail_and_return_another, NULL); /* thought better of it: succeeded */

    rv_group_next(g, -1, NULL, &res);
    assert_int_equal(res.err.code, RV_ENOTFOUND);
    assert_string_equal(res.err.message, "not found");
    rv_group_next(g, -1, NULL, &res);
    assert_int_equal(res.err.code, RV_EFAILED);
    assert_string_equal(res.err.message, "said so");
    assert_ptr_equal(res.value, &code);
    rv_group_next(g, -1, NULL, &res);
    assert_int_equal(res.err.code, RV_ENOTFOUND);
    assert_string_equal(res.err.message, "first thoughts");
    rv_group_next(g, -1, NULL, &res);
    assert_int_equal(res.err.code, 0);
    rv_group_free(g);
}

static void a_panic_is_the_error_of_its_task_only(void **state)
{
    (void)state;
    int x = 0, errors = 0, good = 0;
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true });
    for (int i = 0; i < 300; i++)
        rv_group_go(g, i % 3 == 0 ? panic : echo, &x);
    rv_group_close(g);
    while (rv_group_next(g, -1, NULL, &res) == 1) {
        assert_ptr_equal(res.value, &x); /* stored before the panic: delivered all the same */
        if (res.err.code == 0) {
            good++;
            continue;
        }
        errors++;
        assert_int_equal(res.err.code, RV_EPANIC);
        assert_string_equal(res.err.message, "no such thing as luck");
    }
    assert_int_equal(errors, 100);
    assert_int_equal(good, 200);
    rv_group_free(g);
}

/* Run in a child process; returns its wait status. Its stderr goes to `said`. */
static int in_child(void (*fn)(void), char *said, size_t room)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 2);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL); /* cmocka's, or a sanitizer's, handler is not what we test */
        fn();
        _exit(0);
    }
    close(fds[1]);
    size_t len = 0;
    for (ssize_t n; (n = read(fds[0], said + len, room - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = '\0';
    close(fds[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static void panic_in_aborting_group(void)
{
    rv_group *g = rv_group_new(&(rv_group_opts){ .panic_aborts = true });
    rv_group_go(g, panic, NULL);
    rv_group_free(g);
}

static void panic_outside(void)
{
    rv_panic("nobody %s", "home");
}

static void a_panic_aborts_where_it_should(void **state)
{
    (void)state;
    char said[4096];
    int status = in_child(panic_in_aborting_group, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "panic in a task: no such thing as luck"));
    status = in_child(panic_outside, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "panic outside of any task: nobody home"));
}

static void cancel_is_seen_by_running_and_by_coming_tasks(void **state)
{
    (void)state;
    rv_error err;
    bool saw = false;
    struct gate gate = GATE;
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, until_cancelled, &gate);
    gate_await(&gate, 1);
    gate_open(&gate);
    rv_group_cancel(g, RV_ETIMEDOUT, "took too long");
    rv_group_cancel(g, 0, "second thoughts");
    assert_int_equal(rv_group_go(g, is_cancelled, &saw), 0); /* accepted after cancel too */
    assert_int_equal(rv_group_wait(g, &err), RV_ETIMEDOUT);
    assert_string_equal(err.message, "took too long");
    assert_true(saw);
    rv_group_free(g);
}

static void a_task_error_comes_before_the_cause_of_cancellation(void **state)
{
    (void)state;
    int code = RV_ENOTFOUND;
    rv_error err;
    rv_group *g = rv_group_new(NULL);
    rv_group_cancel(g, 0, NULL);
    rv_group_go(g, fail_with_code, &code);
    assert_int_equal(rv_group_wait(g, &err), RV_ENOTFOUND);
    rv_group_free(g);
}

static void the_parent_token_cancels_the_group_and_not_the_other_way(void **state)
{
    (void)state;
    rv_error err = { 0 };
    rv_cancel *parent = rv_cancel_new(NULL);
    rv_group *a = rv_group_new(&(rv_group_opts){ .parent = parent });
    rv_group *b = rv_group_new(&(rv_group_opts){ .parent = parent });
    rv_group_cancel(a, 0, "only a");
    assert_false(rv_cancel_fired(parent));
    rv_group_go(b, until_cancelled, NULL);
    rv_cancel_fire(parent, RV_ECLOSED, "shutting down");
    assert_int_equal(rv_group_wait(b, &err), RV_ECLOSED);
    assert_string_equal(err.message, "shutting down");
    rv_cancel_free(parent); /* before its groups */
    rv_group_free(a);
    rv_group_free(b);
}

static int run_child_group(rv_task *task, void *arg, void **value)
{
    (void)value;
    rv_group *child = rv_group_new(&(rv_group_opts){ .parent = rv_task_token(task) });
    for (int i = 0; i < 5; i++)
        rv_group_go(child, until_cancelled, arg);
    rv_error err;
    int rc = rv_group_wait(child, &err);
    rv_group_free(child);
    return rv_task_fail(task, rc, "child: %s", err.message);
}

static void a_child_group_hangs_on_its_task(void **state)
{
    (void)state;
    rv_error err;
    struct gate gate = GATE;
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, run_child_group, &gate);
    gate_await(&gate, 5);
    gate_open(&gate);
    rv_group_cancel(g, RV_ECANCELED, "enough");
    assert_int_equal(rv_group_wait(g, &err), RV_ECANCELED);
    assert_string_equal(err.message, "child: enough");
    rv_group_free(g);
}

static void next_gives_up_by_time_and_by_token(void **state)
{
    (void)state;
    struct gate gate = GATE;
    rv_group_result res = { .value = &gate };
    rv_cancel *by = rv_cancel_new(NULL), *never = rv_cancel_new(NULL);
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, wait_at_gate, &gate);
    assert_int_equal(rv_group_next(g, 0, NULL, &res), RV_ETIMEDOUT);
    assert_int_equal(rv_group_next(g, 10, never, &res), RV_ETIMEDOUT);
    rv_cancel_fire(by, 0, NULL);
    assert_int_equal(rv_group_next(g, -1, by, &res), RV_ECANCELED);
    assert_ptr_equal(res.value, &gate); /* untouched */
    gate_open(&gate);
    assert_int_equal(rv_group_next(g, -1, never, &res), 1);
    rv_group_go(g, echo, &gate);
    rv_group_wait(g, NULL);
    assert_int_equal(rv_group_next(g, 0, by, &res), 1); /* a queued result wins over both */
    rv_group_close(g);
    assert_int_equal(rv_group_next(g, 0, by, &res), 0); /* and so does "drained" */
    rv_group_free(g);
    rv_cancel_free(by);
    rv_cancel_free(never);
}

struct call {
    rv_group *group;
    rv_cancel *by;
    int rc, taken;
    rv_error err;
};

static void *call_next(void *arg)
{
    struct call *call = arg;
    rv_group_result res;
    call->rc = rv_group_next(call->group, -1, call->by, &res);
    return NULL;
}

static void *call_next_until_drained(void *arg)
{
    struct call *call = arg;
    rv_group_result res;
    while ((call->rc = rv_group_next(call->group, -1, call->by, &res)) == 1)
        call->taken++;
    return NULL;
}

static void *call_wait(void *arg)
{
    struct call *call = arg;
    call->rc = rv_group_wait(call->group, &call->err);
    return NULL;
}

static void a_token_wakes_the_caller_it_belongs_to(void **state)
{
    (void)state;
    struct gate gate = GATE;
    rv_cancel *by = rv_cancel_new(NULL);
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, wait_at_gate, &gate);
    struct call one = { .group = g, .by = by }, other = { .group = g };
    pthread_t t1, t2;
    pthread_create(&t1, NULL, call_next, &one);
    pthread_create(&t2, NULL, call_next, &other);
    rv_cancel_fire(by, 0, NULL);
    pthread_join(t1, NULL);
    assert_int_equal(one.rc, RV_ECANCELED);
    gate_open(&gate); /* the result that comes later is the other's */
    pthread_join(t2, NULL);
    assert_int_equal(other.rc, 1);
    rv_group_free(g);
    rv_cancel_free(by);
}

static void close_wakes_every_waiter_when_nothing_is_left(void **state)
{
    (void)state;
    rv_group *g = rv_group_new(NULL);
    struct call calls[6];
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        calls[i] = (struct call){ .group = g };
        pthread_create(&threads[i], NULL, i % 2 ? call_next : call_wait, &calls[i]);
    }
    rv_group_close(g);
    rv_group_close(g);
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(calls[i].rc, 0);
    }
    rv_group_free(g);
}

static void many_callers_see_every_result_exactly_once(void **state)
{
    (void)state;
    enum { TASKS = 5000, CALLERS = 8 };
    static int args[TASKS];
    rv_cancel *by = rv_cancel_new(NULL);
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 4 });
    struct call calls[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        calls[i] = (struct call){ .group = g, .by = i < 2 ? by : NULL };
        pthread_create(&threads[i], NULL, call_next_until_drained, &calls[i]);
    }
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(rv_group_go(g, echo, &args[i]), 0);
        if (i == TASKS / 2)
            rv_cancel_fire(by, 0, NULL); /* two give up midway, and take nothing with them */
    }
    rv_group_close(g);
    int taken = 0;
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(calls[i].rc == 0 || (i < 2 && calls[i].rc == RV_ECANCELED));
        taken += calls[i].taken;
    }
    assert_int_equal(taken, TASKS);
    rv_group_free(g);
    rv_cancel_free(by);
}

static void *call_free(void *arg)
{
    rv_group_free(arg);
    return NULL;
}

static void free_lets_waiters_out_first(void **state)
{
    (void)state;
    struct gate gate = GATE;
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, wait_at_gate, &gate);
    gate_await(&gate, 1);
    struct call calls[4];
    pthread_t threads[4], freer;
    for (int i = 0; i < 4; i++) {
        calls[i] = (struct call){ .group = g, .rc = 99 };
        pthread_create(&threads[i], NULL, i % 2 ? call_next : call_wait, &calls[i]);
    }
    struct timespec nap = { 0, 20 * 1000 * 1000 };
    nanosleep(&nap, NULL); /* for the four to be inside: "before free" cannot be seen from here */
    pthread_create(&freer, NULL, call_free, g);
    gate_open(&gate);
    pthread_join(freer, NULL);
    int taken = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        taken += calls[i].rc;
    }
    assert_int_equal(taken, 1); /* one next had the result, one found it drained, two waits: 0 */
}

static atomic_int dropped;

static void drop(void *value)
{
    assert_non_null(value);
    atomic_fetch_add(&dropped, 1);
}

static void values_nobody_took_are_dropped_at_free(void **state)
{
    (void)state;
    int x;
    rv_group_result res;
    atomic_store(&dropped, 0);
    rv_group *g = rv_group_new(
        &(rv_group_opts){ .drop = drop, .keep_going = true, .max_concurrency = 1 });
    for (int i = 0; i < 10; i++) /* in order: the ninth value is NULL, the tenth from a panic */
        rv_group_go(g, i == 9 ? panic : echo, i == 8 ? NULL : &x);
    for (int i = 0; i < 4; i++)
        rv_group_next(g, -1, NULL, &res);
    rv_group_free(g);
    assert_int_equal(atomic_load(&dropped), 5);
}

static void the_queue_has_the_bound_it_was_given(void **state)
{
    (void)state;
    struct gate gate = GATE;
    int x;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 1, .max_queued = 3 });
    rv_group_go(g, wait_at_gate, &gate);
    gate_await(&gate, 1); /* it runs: no longer queued */
    for (int i = 0; i < 3; i++)
        assert_int_equal(rv_group_go(g, echo, &x), 0);
    assert_int_equal(rv_group_go(g, echo, &x), RV_EBUSY);
    gate_open(&gate);
    assert_int_equal(rv_group_wait(g, NULL), 0);
    assert_int_equal(rv_group_go(g, echo, &x), 0);
    rv_group_free(g);
}

static int use_own_group(rv_task *task, void *arg, void **value)
{
    (void)task;
    rv_group *g = arg;
    rv_error err = { 0 };
    int ok = rv_group_wait(g, &err) == RV_EDEADLK && strstr(err.message, "wait for itself") &&
             rv_group_go(g, echo, g) == 0;
    *value = ok ? g : NULL;
    return 0;
}

static int free_own_group(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)value;
    rv_group_free(arg);
    return 0;
}

static void bad_use_is_answered_with_codes(void **state)
{
    (void)state;
    rv_group_result res;
    rv_error err;
    assert_null(rv_group_new(&(rv_group_opts){ .max_concurrency = -1 }));
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true });
    assert_int_equal(rv_group_go(g, NULL, NULL), RV_EINVAL);
    assert_int_equal(rv_group_go(NULL, echo, NULL), RV_EINVAL);
    assert_int_equal(rv_group_next(NULL, 0, NULL, &res), RV_EINVAL);
    assert_int_equal(rv_group_next(g, 0, NULL, NULL), RV_EINVAL);
    assert_int_equal(rv_group_wait(NULL, &err), RV_EINVAL);
    assert_int_equal(rv_group_wait(g, NULL), 0); /* nothing was ever started */

    rv_group_go(g, use_own_group, g);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_ptr_equal(res.value, g);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    rv_group_go(g, free_own_group, g);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_int_equal(res.err.code, RV_EPANIC);

    rv_group_close(g);
    assert_int_equal(rv_group_go(g, echo, NULL), RV_ECLOSED);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 0);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 0);
    rv_group_free(g);
    rv_group_close(NULL);
    rv_group_cancel(NULL, 0, NULL);
    rv_group_free(NULL);
    assert_false(rv_task_cancelled(NULL));
    assert_null(rv_task_token(NULL));
    assert_int_equal(rv_task_fail(NULL, RV_EBUSY, "x"), RV_EBUSY);
}

static void without_memory_nothing_is_accepted(void **state)
{
    (void)state;
    rv_group *g = NULL;
    long n = 0;
    for (; g == NULL; n++) { /* the group, its token, the token's domain */
        rv__test_fail_alloc_after(n);
        g = rv_group_new(NULL);
        rv__test_fail_alloc_after(-1);
    }
    assert_int_equal(n - 1, 3);

    int rc = -1, x;
    for (n = 0; rc != 0; n++) { /* the slab; then the thread, without which it is RV_EBUSY */
        rv__test_fail_alloc_after(n);
        rc = rv_group_go(g, echo, &x);
        rv__test_fail_alloc_after(-1);
        assert_true(rc == 0 || rc == (n == 0 ? RV_ENOMEM : RV_EBUSY));
    }
    rv_group_result res;
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1); /* just the one accepted */
    rv_group_close(g);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 0);
    rv_group_free(g);
}

static int panic_without_memory(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)arg;
    (void)value;
    rv__test_fail_alloc_after(0); /* on the worker's thread; its next go switches it off */
    return RV_ENOTFOUND;
}

static int memory_again(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)arg;
    (void)value;
    rv__test_fail_alloc_after(-1);
    return 0;
}

static void an_error_without_memory_keeps_its_code(void **state)
{
    (void)state;
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 1, .keep_going = true });
    rv_group_go(g, panic_without_memory, NULL);
    assert_int_equal(rv_group_next(g, -1, NULL, &res), 1);
    assert_int_equal(res.err.code, RV_ENOTFOUND);
    assert_string_equal(res.err.message, "not found");
    rv_group_go(g, memory_again, NULL);
    rv_group_free(g);
}

static int signals_are_blocked(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)arg;
    (void)value;
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGTERM) && sigismember(&now, SIGINT) && !sigismember(&now, SIGSEGV)
               ? 0
               : RV_EFAILED;
}

static void signals_stay_with_the_host(void **state)
{
    (void)state;
    rv_group *g = rv_group_new(NULL);
    rv_group_go(g, signals_are_blocked, NULL);
    assert_int_equal(rv_group_wait(g, NULL), 0);
    rv_group_free(g);
}

static int spread(rv_task *task, void *arg, void **value)
{
    (void)value;
    struct {
        rv_group *g;
        atomic_int *left;
    } *all = arg;
    if (atomic_fetch_sub(all->left, 1) > 0 && !rv_task_cancelled(task)) {
        rv_group_go(all->g, spread, arg);
        rv_group_go(all->g, spread, arg);
    }
    return 0;
}

static void tasks_may_bring_tasks(void **state)
{
    (void)state;
    atomic_int left = 2000;
    rv_group *g = rv_group_new(NULL);
    struct {
        rv_group *g;
        atomic_int *left;
    } all = { g, &left };
    rv_group_go(g, spread, &all);
    assert_int_equal(rv_group_wait(g, NULL), 0);
    assert_true(atomic_load(&left) <= 0);
    rv_group_free(g);
}

static void ten_thousand_groups_leave_nothing_behind(void **state)
{
    (void)state;
    int rounds = getenv("RIVAL_UNDER_VALGRIND") ? 300 : 10000;
    int before = threads_of_this_process(), x;
    rv_group_result res;
    for (int i = 0; i < rounds; i++) {
        rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 1 + i % 3 });
        rv_group_go(g, echo, &x);
        rv_group_go(g, echo, &x);
        if (i % 2)
            rv_group_next(g, -1, NULL, &res);
        rv_group_free(g);
    }
    assert_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_in_completion_order),
        cmocka_unit_test(every_task_runs_and_every_result_comes_once),
        cmocka_unit_test(one_thread_runs_tasks_in_order_of_acceptance),
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(as_many_run_at_once_as_the_limit_says),
        cmocka_unit_test(without_a_limit_threads_stop_at_the_pool_cap),
        cmocka_unit_test(short_tasks_share_few_threads),
        cmocka_unit_test(idle_threads_are_given_back),
        cmocka_unit_test(the_first_error_cancels_and_never_changes),
        cmocka_unit_test(stopping_because_of_an_error_is_not_the_first_error),
        cmocka_unit_test(who_has_seen_the_error_finds_the_group_cancelled),
        cmocka_unit_test(keep_going_keeps_going),
        cmocka_unit_test(errors_carry_code_message_and_value),
        cmocka_unit_test(a_panic_is_the_error_of_its_task_only),
        cmocka_unit_test(a_panic_aborts_where_it_should),
        cmocka_unit_test(cancel_is_seen_by_running_and_by_coming_tasks),
        cmocka_unit_test(a_task_error_comes_before_the_cause_of_cancellation),
        cmocka_unit_test(the_parent_token_cancels_the_group_and_not_the_other_way),
        cmocka_unit_test(a_child_group_hangs_on_its_task),
        cmocka_unit_test(next_gives_up_by_time_and_by_token),
        cmocka_unit_test(a_token_wakes_the_caller_it_belongs_to),
        cmocka_unit_test(close_wakes_every_waiter_when_nothing_is_left),
        cmocka_unit_test(many_callers_see_every_result_exactly_once),
        cmocka_unit_test(free_lets_waiters_out_first),
        cmocka_unit_test(values_nobody_took_are_dropped_at_free),
        cmocka_unit_test(the_queue_has_the_bound_it_was_given),
        cmocka_unit_test(bad_use_is_answered_with_codes),
        cmocka_unit_test(without_memory_nothing_is_accepted),
        cmocka_unit_test(an_error_without_memory_keeps_its_code),
        cmocka_unit_test(signals_stay_with_the_host),
        cmocka_unit_test(tasks_may_bring_tasks),
        cmocka_unit_test(ten_thousand_groups_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
