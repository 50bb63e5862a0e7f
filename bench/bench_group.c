/* bench_group.c: what a task costs in a group, against a bare thread pool and a thread a task.
 *
 * The bare pool is what one writes by hand: a lock, a condition, a linked list, a fixed number of
 * threads, no results, no errors, no cancellation. Each contender is made, used and freed anew in
 * every round, and all of them take turns in the same round.
 *
 * A bare pool with the group's limit as its size starts all its threads, needed or not, and they
 * get in each other's way; the group fetches one at a time. So that this does not flatter it, a
 * pool of two threads stands beside, as one would tune it by hand for tasks like these. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include <rival/group.h>

#include "base/clock.h"
#include "bench.h"

typedef void (*work_fn)(void);

static void nothing(void)
{
}

/* About two microseconds of arithmetic. */
static void something(void)
{
    volatile uint64_t x = 88172645463325252u;
    for (int i = 0; i < 700; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
}

/* ------------------------------------------------------------------------- the bare pool --- */

struct job {
    struct job *next;
    work_fn work;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    struct job *first, **last;
    size_t open;
    bool ending;
};

static void *pool_main(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->first == NULL && !p->ending)
            pthread_cond_wait(&p->more, &p->lock);
        if (p->first == NULL)
            break;
        struct job *job = p->first;
        p->first = job->next;
        if (p->first == NULL)
            p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        job->work();
        free(job);
        pthread_mutex_lock(&p->lock);
        if (--p->open == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void by_pool(work_fn work, int tasks, int threads)
{
    struct pool p = { .lock = PTHREAD_MUTEX_INITIALIZER,
                      .more = PTHREAD_COND_INITIALIZER,
                      .done = PTHREAD_COND_INITIALIZER };
    pthread_t ids[256];
    p.last = &p.first;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, pool_main, &p) != 0)
            abort();
    for (int i = 0; i < tasks; i++) {
        struct job *job = malloc(sizeof *job);
        if (job == NULL)
            abort();
        *job = (struct job){ .work = work };
        pthread_mutex_lock(&p.lock);
        *p.last = job;
        p.last = &job->next;
        p.open++;
        pthread_mutex_unlock(&p.lock);
        pthread_cond_signal(&p.more);
    }
    pthread_mutex_lock(&p.lock);
    while (p.open > 0)
        pthread_cond_wait(&p.done, &p.lock);
    p.ending = true;
    pthread_cond_broadcast(&p.more);
    pthread_mutex_unlock(&p.lock);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

/* ---------------------------------------------------------------------- a thread per task --- */

static void *thread_main(void *arg)
{
    (*(work_fn *)arg)();
    return NULL;
}

static void by_threads(work_fn work, int tasks, int at_once)
{
    pthread_t ids[256] = { 0 };
    for (int i = 0; i < tasks; i++) {
        if (i >= at_once)
            pthread_join(ids[i % at_once], NULL);
        if (pthread_create(&ids[i % at_once], NULL, thread_main, &work) != 0)
            abort();
    }
    for (int i = 0; i < at_once && i < tasks; i++)
        pthread_join(ids[i], NULL);
}

/* ------------------------------------------------------------------------------ the group --- */

static int task_main(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)value;
    (*(work_fn *)arg)();
    return 0;
}

static void by_group(work_fn work, int tasks, int threads)
{
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = threads });
    if (g == NULL)
        abort();
    for (int i = 0; i < tasks; i++)
        if (rv_group_go(g, task_main, &work) != 0)
            abort();
    if (rv_group_wait(g, NULL) != 0)
        abort();
    rv_group_free(g);
}

/* The same, with every result taken in completion order. */
static void by_group_next(work_fn work, int tasks, int threads)
{
    rv_group_result res;
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = threads });
    if (g == NULL)
        abort();
    for (int i = 0; i < tasks; i++)
        if (rv_group_go(g, task_main, &work) != 0)
            abort();
    rv_group_close(g);
    for (int i = 0; i < tasks; i++)
        if (rv_group_next(g, -1, NULL, &res) != 1)
            abort();
    rv_group_free(g);
}

/* ------------------------------------------------------------------------------------------ */

typedef void (*contender_fn)(work_fn work, int tasks, int threads);
enum { GROUP, GROUP_NEXT, POOL, POOL_OF_2, THREADS, CONTENDERS };

/* What a pool can do whose size was chosen by hand for two cores and tasks that never wait. */
static void by_pool_of_2(work_fn work, int tasks, int threads)
{
    (void)threads;
    by_pool(work, tasks, 2);
}

static void compare(struct bench *b, const char *what, work_fn work, int tasks, int threads,
                    int rounds)
{
    static const contender_fn run[CONTENDERS] = { by_group, by_group_next, by_pool, by_pool_of_2,
                                                  by_threads };
    static const char *const names[CONTENDERS] = { "group (go, wait)", "group (go, next)",
                                                   "bare pool", "bare pool of 2 threads",
                                                   "a thread per task" };
    double ns[CONTENDERS][BENCH_ROUNDS], to_pool[BENCH_ROUNDS], to_threads[BENCH_ROUNDS];
    char name[80];

    for (int r = -1; r < rounds; r++) { /* the first round warms up */
        for (int c = 0; c < CONTENDERS; c++) {
            int64_t start = rv__mono_ns(rv__clock_real());
            run[c](work, tasks, threads);
            int64_t took = rv__mono_ns(rv__clock_real()) - start;
            if (r >= 0)
                ns[c][r] = (double)took / tasks;
        }
        if (r >= 0) {
            to_pool[r] = ns[GROUP][r] / ns[POOL][r];
            to_threads[r] = ns[THREADS][r] / ns[GROUP][r];
        }
    }
    for (int c = 0; c < CONTENDERS; c++) {
        snprintf(name, sizeof name, "%s: %s", what, names[c]);
        bench_figure(b, name, bench_median(ns[c], (size_t)rounds), "ns/task");
    }
    snprintf(name, sizeof name, "%s: group / bare pool", what);
    bench_goal(b, name, bench_median(to_pool, (size_t)rounds), "x", false, 1.5);
    snprintf(name, sizeof name, "%s: thread per task / group", what);
    bench_goal(b, name, bench_median(to_threads, (size_t)rounds), "x", true, 5);
}

static int block(rv_task *task, void *arg, void **value)
{
    (void)task;
    (void)value;
    pthread_mutex_lock(arg);
    pthread_mutex_unlock(arg);
    return 0;
}

static void memory(struct bench *b)
{
    enum { QUEUED = 1000000 };
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 1 });
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < QUEUED; i++)
        if (rv_group_go(g, block, &gate) != 0)
            abort();
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    bench_goal(b, "1,000,000 queued tasks: memory", (double)(after - before) / QUEUED, "bytes/task",
               false, 64);
    pthread_mutex_unlock(&gate);
    rv_group_free(g);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, "group", argc, argv);
    compare(&b, "256 short tasks, limit 32", something, 256, 32, 51);
    compare(&b, "100,000 no-op tasks, limit 32", nothing, 100000, 32, 5);
    memory(&b);
    return bench_done(&b);
}
