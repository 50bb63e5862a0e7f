/* Count primes on all cores. The answers come in the order in which they are ready. */
#include <rival/group.h>
#include <stdio.h>

struct count {
    int below, primes;
};

static int count_primes(rv_task *task, void *arg, void **value)
{
    struct count *count = arg;
    for (int n = 2; n < count->below && !rv_task_cancelled(task); n++) {
        int divisor = 2;
        while (n % divisor != 0)
            divisor++;
        count->primes += divisor == n;
    }
    *value = count;
    return 0; /* or rv_task_fail(task, code, "why"), which cancels the others */
}

int main(void)
{
    struct count counts[] = { { 40000, 0 }, { 500, 0 }, { 8000, 0 } };
    rv_group *group = rv_group_new(NULL);
    rv_group_result result;

    for (int i = 0; i < 3; i++)
        rv_group_go(group, count_primes, &counts[i]);
    rv_group_close(group);
    while (rv_group_next(group, -1, NULL, &result) == 1) {
        struct count *count = result.value;
        printf("%d primes below %d\n", count->primes, count->below);
    }
    rv_group_free(group);
}
