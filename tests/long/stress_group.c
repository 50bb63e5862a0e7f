/* stress_group.c: random use of task groups from several threads, against what can be counted.
 *
 *   stress_group [SECONDS]     else for MINUTES minutes, else for 2 seconds
 *
 * Each round makes a group with random options; four threads then go, take, wait, cancel and close
 * at random, the tasks themselves too; then it is freed. Whatever the order was, the sums must be
 * right. RIVAL_SEED repeats the choices of a run (not its interleaving). */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rival/group.h>

enum { DRIVERS = 4, MAX_OPS = 120 };

struct round {
    uint64_t seed;
    rv_group_opts opts;
    rv_group *group;
    rv_cancel *by;                /* what some callers of next listen to */
    rv_cancel *parent;            /* what the group hangs on, now and then */
    atomic_bool closed;           /* set before close is called */
    atomic_long accepted, ran;    /* tasks */
    atomic_long made, got, fell;  /* values: by tasks, by next, by drop */
    atomic_long errors, seen_bad; /* results with an error: by tasks, by next */
    atomic_long running;
    atomic_int verdict; /* of the first wait that had one */
};

static struct round round_;

static _Noreturn void fail(const char *what, long a, long b)
{
    printf("not ok 1 - %s: %ld, %ld (RIVAL_SEED=%llu)\n", what, a, b,
           (unsigned long long)round_.seed);
    fflush(stdout);
    abort();
}

#define MUST(what, condition, a, b)           \
    do {                                      \
        if (!(condition))                     \
            fail(what, (long)(a), (long)(b)); \
    } while (0)

static uint64_t chance(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int threads_of_this_process(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    MUST("/proc can be read", dir != NULL, 0, 0);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void *lock_and_unlock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Without ours: ThreadSanitizer makes a thread of its own along with the first one. */
static int threads_of_others(void)
{
    pthread_t ours;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock); /* it is there as long as we look */
    MUST("a thread is made", pthread_create(&ours, NULL, lock_and_unlock, &lock) == 0, 0, 0);
    int count = threads_of_this_process() - 1;
    pthread_mutex_unlock(&lock);
    pthread_join(ours, NULL);
    return count;
}

static void drop(void *value)
{
    MUST("a dropped value is ours", value == &round_, 0, 0);
    round_.fell++;
}

static void go(uint64_t choice);

/* What a task does is in its argument: bits of a random number. */
static int task_main(rv_task *task, void *arg, void **value)
{
    struct round *r = &round_;
    uint64_t choice = (uintptr_t)arg;
    long now = ++r->running;
    MUST("the limit holds", !r->opts.max_concurrency || now <= r->opts.max_concurrency, now,
         r->opts.max_concurrency);
    r->ran++;
    if (choice & 1) {
        *value = r;
        r->made++;
    }
    for (uint64_t i = 0; i < (choice >> 1 & 15) && !rv_task_cancelled(task); i++)
        sched_yield();
    if ((choice >> 5 & 7) == 0 && choice != 0) /* each has fewer bits left: this ends */
        go(choice >> 8);
    if ((choice >> 8 & 15) == 0)
        MUST("a task cannot wait for itself", rv_group_wait(r->group, NULL) == RV_EDEADLK, 0, 0);
    r->running--;
    switch (choice >> 12 & 31) {
    case 0: r->errors++; return rv_task_fail(task, RV_EFAILED, "as chance would have it");
    case 1: r->errors++; return -1000;
    case 2: r->errors++; rv_panic("as chance would have it");
    case 3: rv_group_cancel(r->group, 0, "from inside"); return 0;
    default: return 0;
    }
}

static void go(uint64_t choice)
{
    struct round *r = &round_;
    r->accepted++; /* before: the task may be over before go returns */
    int rc = rv_group_go(r->group, task_main, (void *)(uintptr_t)choice);
    if (rc == 0)
        return;
    r->accepted--;
    MUST("go is refused for a reason",
         (rc == RV_ECLOSED && r->closed) || (rc == RV_EBUSY && r->opts.max_queued > 0), rc,
         r->closed);
}

/* Returns what next returned. */
static int take(int64_t timeout_ms, rv_cancel *by)
{
    struct round *r = &round_;
    rv_group_result res;
    int rc = rv_group_next(r->group, timeout_ms, by, &res);
    if (rc == 1) {
        r->got += res.value != NULL;
        r->seen_bad += res.err.code != 0;
        MUST("an error has a message", (res.err.code == 0) == (res.err.message[0] == '\0'),
             res.err.code, 0);
    }
    MUST("next gives a reason",
         rc == 1 || (rc == 0 && r->closed) || (rc == RV_ETIMEDOUT && timeout_ms >= 0) ||
             (rc == RV_ECANCELED && rv_cancel_fired(by)),
         rc, timeout_ms);
    return rc;
}

static void wait_for_all(void)
{
    struct round *r = &round_;
    rv_error err = { 0 };
    int rc = rv_group_wait(r->group, &err);
    MUST("wait's code is its error's", rc == err.code, rc, err.code);
    if (rc == 0 || rc == RV_ECANCELED || rc == RV_ETIMEDOUT)
        return; /* a cause of cancelling, which no task of ours returns, gives way to an error */
    int none = 0;
    if (!atomic_compare_exchange_strong(&r->verdict, &none, rc))
        MUST("the first error never changes", none == rc, none, rc);
}

static void *driver_main(void *arg)
{
    struct round *r = &round_;
    uint64_t state = r->seed * 31 + (uintptr_t)arg + 1;
    for (uint64_t ops = chance(&state) % MAX_OPS; ops > 0; ops--) {
        switch (chance(&state) % 100) {
        case 0: wait_for_all(); break;
        case 1: rv_group_cancel(r->group, 0, NULL); break;
        case 2: rv_cancel_fire(r->by, 0, NULL); break;
        case 3: rv_cancel_fire(r->parent, RV_ETIMEDOUT, "from above"); break;
        case 4:
            r->closed = true;
            rv_group_close(r->group);
            break;
        default:
            if (chance(&state) % 3)
                go(chance(&state));
            else
                take((int64_t)(chance(&state) % 3), chance(&state) % 2 ? r->by : NULL);
        }
    }
    return NULL;
}

static void play(uint64_t seed)
{
    struct round *r = &round_;
    uint64_t state = seed;
    pthread_t drivers[DRIVERS];

    *r = (struct round){ .seed = seed };
    r->by = rv_cancel_new(NULL);
    r->parent = rv_cancel_new(NULL);
    r->opts = (rv_group_opts){
        .max_concurrency = (int)(chance(&state) % 9),
        .keep_going = chance(&state) % 2,
        .max_queued = chance(&state) % 3 ? 0 : 1 + chance(&state) % 20,
        .parent = chance(&state) % 2 ? r->parent : NULL,
        .drop = drop,
    };
    r->group = rv_group_new(&r->opts);
    MUST("a group is made", r->group != NULL, 0, 0);

    for (uintptr_t i = 0; i < DRIVERS; i++)
        MUST("a thread is made", pthread_create(&drivers[i], NULL, driver_main, (void *)i) == 0, i,
             0);
    for (int i = 0; i < DRIVERS; i++)
        pthread_join(drivers[i], NULL);
    rv_cancel_free(r->parent); /* before its group, whose tasks may still run */
    if (chance(&state) % 2) {
        r->closed = true;
        rv_group_close(r->group);
        while (take(-1, NULL) == 1)
            ;
        MUST("each error was seen once", r->errors == r->seen_bad, r->errors, r->seen_bad);
        MUST("each value was seen once", r->made == r->got, r->made, r->got);
        wait_for_all();
    }
    r->closed = true; /* free closes: tasks that still run may find it so */
    rv_group_free(r->group);
    rv_cancel_free(r->by);

    MUST("each accepted task ran once", r->accepted == r->ran, r->accepted, r->ran);
    MUST("each value was taken or dropped", r->made == r->got + r->fell, r->made, r->got + r->fell);
    MUST("no error is seen twice", r->seen_bad <= r->errors, r->seen_bad, r->errors);
}

int main(int argc, char **argv)
{
    const char *minutes = getenv("MINUTES"), *seed_text = getenv("RIVAL_SEED");
    double seconds = argc > 1 ? strtod(argv[1], NULL) : minutes ? strtod(minutes, NULL) * 60 : 2;
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL) * 1000003;
    long rounds = 0, tasks = 0;
    struct timespec start, now;

    printf("1..1\n");
    clock_gettime(CLOCK_MONOTONIC, &start);
    int before = threads_of_others(), left = 0;
    do {
        play(seed + (uint64_t)rounds++);
        tasks += round_.accepted;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
             seconds);
    for (int i = 0; i < 100000 && (left = threads_of_this_process()) != before; i++)
        sched_yield(); /* a joined thread stays in /proc for an instant */
    MUST("no thread is left", left == before, left, before);
    printf("ok 1 - random use of groups adds up\n# => %ld groups, %ld tasks\n", rounds, tasks);
    return 0;
}
