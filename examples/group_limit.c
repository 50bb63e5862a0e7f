/* group_limit.c: fan-out with a limit, and with a bound on what waits.
 *
 * A producer of a million jobs, twenty workers at most, a hundred jobs waiting at most: when the
 * queue is full the producer takes a result before it brings more, so memory stays flat. */
#include <rival/group.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { JOBS = 1000000 };

/* The job is a number that travels in the pointers: nothing to allocate. */
static int collatz_steps(rv_task *task, void *arg, void **value)
{
    uintptr_t steps = 0;
    (void)task;
    for (uint64_t n = (uintptr_t)arg; n != 1; n = n % 2 == 0 ? n / 2 : 3 * n + 1)
        steps++;
    *value = (void *)steps;
    return 0;
}

/* Note one result; false when there is none to be had. */
static bool take(rv_group *g, uintptr_t *longest, int *taken)
{
    rv_group_result res;
    if (rv_group_next(g, -1, NULL, &res) != 1)
        return false;
    if ((uintptr_t)res.value > *longest)
        *longest = (uintptr_t)res.value;
    ++*taken;
    return true;
}

int main(int argc, char **argv)
{
    long jobs = argc > 1 ? strtol(argv[1], NULL, 10) : JOBS;
    uintptr_t longest = 0;
    int taken = 0;

    rv_group *g = rv_group_new(&(rv_group_opts){ .max_concurrency = 20, .max_queued = 100 });
    if (g == NULL)
        return 1;
    for (long i = 1; i <= jobs; i++) {
        int rc;
        while ((rc = rv_group_go(g, collatz_steps, (void *)(uintptr_t)i)) == RV_EBUSY)
            take(g, &longest, &taken);
        if (rc < 0) {
            fprintf(stderr, "job %ld: %s\n", i, rv_strerror(rc));
            break;
        }
    }
    rv_group_close(g);
    while (take(g, &longest, &taken))
        ;
    rv_group_free(g);
    printf("%d numbers, the longest chain has %ju steps\n", taken, (uintmax_t)longest);
    return taken == jobs ? 0 : 1;
}
