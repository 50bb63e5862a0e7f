/* group_timeout.c: time limits.
 *
 * The group itself knows no time limit: whoever waits does, and says what follows from it. Here
 * that is: print a sign of life when nothing has finished for 50 ms, cancel after 200 ms. */
#include <rival/group.h>
#include <stdio.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Something slow that looks up now and then to see whether it should stop. */
static int slow(rv_task *task, void *arg, void **value)
{
    const int *ms = arg;
    *value = arg;
    for (int64_t end = now_ms() + *ms; now_ms() < end;) {
        if (rv_task_cancelled(task)) { /* fail with the reason for the cancellation */
            rv_error why;
            int code = rv_cancel_cause(rv_task_token(task), &why);
            return rv_task_fail(task, code, "%s", why.message);
        }
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
    return 0;
}

/* Take all results; after `limit_ms` cancel what still runs, and take those results too. */
static void drain_within(rv_group *g, int64_t limit_ms)
{
    int64_t deadline = now_ms() + limit_ms;
    rv_group_result res;
    int rc;
    while ((rc = rv_group_next(g, 50, NULL, &res)) != 0) {
        if (rc == 1)
            printf("%d ms: %s\n", *(int *)res.value, res.err.code == 0 ? "done" : "stopped");
        else
            printf("still working\n");
        if (now_ms() >= deadline) /* may be called again: the first cause stays */
            rv_group_cancel(g, RV_ETIMEDOUT, "took longer than allowed");
    }
}

int main(void)
{
    int times[] = { 10, 150, 60000 };
    rv_error err;
    rv_group *g = rv_group_new(&(rv_group_opts){ .keep_going = true });
    if (g == NULL)
        return 1;
    for (int i = 0; i < 3; i++)
        rv_group_go(g, slow, &times[i]);
    rv_group_close(g);
    drain_within(g, 200);
    if (rv_group_wait(g, &err) != 0)
        printf("verdict: %s\n", err.message);
    rv_group_free(g);
    return 0;
}
