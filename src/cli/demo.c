/* demo.c: `rival demo`: chooses a demo; and `rival demo group`, which shows a task group.
 *
 * Three short scenes. The tasks only wait, so that the order of completion is visible; a task waits on its group's
 * token, so that a cancel ends it at once. */
#include "cli/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rival/group.h>

#include "base/clock.h"

struct job {
    const char *name;
    int64_t ms;
    enum { GOOD, BAD, PANICS } end;
};

/* Waits in rv_group_next() of an empty group, which ends by time or by token. */
bool rv__cli_pause(rv_cancel *by, int64_t ms)
{
    rv_group *nothing = rv_group_new(NULL);
    rv_group_result none;
    int rc = rv_group_next(nothing, ms, by, &none);
    rv_group_free(nothing);
    return rc == RV_ETIMEDOUT;
}

static int work(rv_task *task, void *arg, void **value)
{
    struct job *job = arg;
    *value = job;
    if (!rv__cli_pause(rv_task_token(task), job->ms))
        return rv_task_fail(task, RV_ECANCELED, "stopped early");
    if (job->end == BAD)
        return rv_task_fail(task, RV_EFAILED, "no such file on the mirror");
    if (job->end == PANICS)
        rv_panic("index %d is out of bounds", 17);
    return 0;
}

static void print_result(const rv_group_result *res, int64_t started_ns)
{
    const struct job *job = res->value;
    int64_t ms = (rv__mono_ns(rv__clock_real()) - started_ns) / 1000000;
    const char *sign = res->err.code == 0 ? "ok" : res->err.code == RV_ECANCELED ? "stop" : "FAIL";
    enum rv__colour colour = res->err.code == 0              ? GREEN
                             : res->err.code == RV_ECANCELED ? YELLOW
                                                             : RED;
    printf("  %s%5lld ms%s  %s%-4s%s  %-12s", rv__colour(stdout, DIM), (long long)ms,
           rv__colour(stdout, PLAIN), rv__colour(stdout, colour), sign, rv__colour(stdout, PLAIN),
           job->name);
    if (res->err.code != 0)
        printf(" %s: %s", rv_errname(res->err.code), res->err.message);
    printf("\n");
    fflush(stdout);
}

/* Run the jobs, print each as it ends. Returns the group's result. */
static int play(const char *title, struct job *jobs, size_t count, const rv_group_opts *opts)
{
    rv_error err = { .code = 0 };
    rv_group_result res;
    int64_t started_ns = rv__mono_ns(rv__clock_real());

    printf("\n%s%s%s\n", rv__colour(stdout, BOLD), title, rv__colour(stdout, PLAIN));
    rv_group *g = rv_group_new(opts);
    if (g == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int rc = rv_group_go(g, work, &jobs[i]);
        if (rc < 0)
            rv_group_cancel(g, rc, "could not start a task");
    }
    rv_group_close(g);
    while (rv_group_next(g, -1, NULL, &res) == 1)
        print_result(&res, started_ns);
    int rc = rv_group_wait(g, &err);
    printf("  %s=> %s%s%s\n", rv__colour(stdout, DIM),
           rc == 0 ? "all went well" : "first error: ", rc == 0 ? "" : err.message,
           rv__colour(stdout, PLAIN));
    rv_group_free(g);
    return rc;
}

static int demo_group(rv_cancel *interrupt)
{
    struct job eight[] = {
        { "amber", 300, GOOD },  { "birch", 100, GOOD }, { "cedar", 220, GOOD },
        { "dogwood", 60, GOOD }, { "elm", 120, GOOD },   { "fir", 40, GOOD },
        { "ginkgo", 90, GOOD },  { "hazel", 10, GOOD },
    };
    struct job failing[] = {
        { "amber", 120, GOOD },
        { "birch", 200, BAD },
        { "cedar", 3000, GOOD },
        { "dogwood", 3000, GOOD },
    };
    struct job panicking[] = {
        { "amber", 40, PANICS },
        { "birch", 80, BAD },
        { "cedar", 120, GOOD },
    };
    (void)play("Eight tasks, three at a time; results come as they finish", eight, 8,
               &(rv_group_opts){ .parent = interrupt, .max_concurrency = 3 });
    if (!rv_cancel_fired(interrupt))
        (void)play("Fail-fast: the first error cancels the others", failing, 4,
                   &(rv_group_opts){ .parent = interrupt });
    if (!rv_cancel_fired(interrupt))
        (void)play("keep_going: a panic and an error stay with their tasks", panicking, 3,
                   &(rv_group_opts){ .parent = interrupt, .keep_going = true });
    if (!rv_cancel_fired(interrupt))
        return CLI_OK;

    rv_error why = { .code = 0 };
    (void)rv_cancel_cause(interrupt, &why);
    printf("\n%s: every task was told and has ended.\n", why.message);
    return CLI_CANCELLED;
}

static const char *const names[] = { "group", "resume", NULL };

static int run_demo(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "resume") == 0 && strcmp(argv[2], "--process") == 0)
        return rv__demo_resume_process(argv[3], argv[4]); /* started by the demo itself */
    int count = rv__options(&rv__cmd_demo, argc, argv, NULL);
    if (count < 0)
        return -count;
    rv_cancel *interrupt = rv__cli_interrupt();
    if (interrupt == NULL)
        return CLI_FAILED;
    return strcmp(argv[0], "group") == 0 ? demo_group(interrupt) : rv__demo_resume(interrupt);
}

const struct rv__command rv__cmd_demo = {
    .name = "demo",
    .section = SECTION_PROGRAM,
    .summary = "show a part of Rival at work",
    .arguments = { { "NAME", "which demo? there are: group, resume", .choices = names } },
    .paragraphs = { "`group`: a task group: tasks on threads, results as they finish, a failing "
                    "task, a panic, cancellation (Ctrl-C works too).",
                    "`resume`: a run that continues after its process is killed, twice." },
    .examples = { { "rival demo resume" },
                  { "rival demo group | cat", "the same without colours" } },
    .exits = { { CLI_CANCELLED, "stopped by Ctrl-C" } },
    .run = run_demo,
};
