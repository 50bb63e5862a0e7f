/* sleeping.c: a run that waits for an hour costs disk, not memory; and those that are due wake. */
#include <unistd.h>

#include "base/clock.h"
#include "figures.h"

enum { MANY = 1000000, DUE = 10000, POLL_US = 1000, HOUR_MS = 3600000 };

static atomic_int awake;
static int64_t nap_ms;
static int64_t due_ms; /* by the wall: when the last of those that nap is due */

static int wakes(rv_ctx *c)
{
    (void)c;
    atomic_fetch_add(&awake, 1);
    return 0;
}

static rv_workflow *nap(const char *name, int64_t ms)
{
    rv_workflow *w = rv_workflow_new(name);
    rv_add_delay(rv_workflow_body(w), "nap", ms);
    rv_add_step(rv_workflow_body(w), "wakes", wakes, NULL);
    return w;
}

static rv_engine *open_with_workflows(struct figures *f, double *took)
{
    double start = seconds();
    rv_engine *engine = open_engine(f, "sleeping");
    *took = seconds() - start;
    add_workflow(engine, nap("hour", HOUR_MS));
    add_workflow(engine, nap("short", nap_ms));
    return engine;
}

static void wait_until_due(void)
{
    int64_t left_ms;
    while ((left_ms = due_ms - rv__wall_ms(rv__clock_real())) > 0)
        rv__clock_sleep_ms(left_ms);
}

static double wait_until_awake(int count)
{
    double start = seconds();
    while (atomic_load(&awake) < count)
        (void)usleep(POLL_US);
    return seconds() - start;
}

static void start_naps(struct figures *f, rv_engine *engine, int count)
{
    double start = seconds();
    atomic_store(&awake, 0);
    start_many(f, engine, "short", count);
    due_ms = rv__wall_ms(rv__clock_real()) + nap_ms;
    double took = seconds() - start;
    if (took > 1)
        say(f, "  (due within %.1f s, not within one)\n", took);
}

/* What is measured. */
enum { START_RATE, MEMORY_MB, WAKE_S, REOPEN_S, REOPEN_WAKE_S, VALUES };

static void sleep_and_wake(struct figures *f, const void *arg, double *ret)
{
    const int many = f->quick ? 2000 : MANY, due = f->quick ? 100 : DUE;
    (void)arg;
    rv_engine *engine = open_with_workflows(f, &ret[REOPEN_S]);
    double start = seconds();
    start_many(f, engine, "hour", many);
    ret[START_RATE] = many / (seconds() - start);
    ret[MEMORY_MB] = resident_mb();

    start_naps(f, engine, due);
    wait_until_due();
    ret[WAKE_S] = wait_until_awake(due);

    /* And those that fell due while nobody was there. */
    start_naps(f, engine, due);
    rv_engine_free(engine);
    wait_until_due();
    start = seconds();
    engine = open_with_workflows(f, &ret[REOPEN_S]);
    (void)wait_until_awake(due);
    ret[REOPEN_WAKE_S] = seconds() - start;
    rv_engine_free(engine);
}

void sleeping(struct figures *f)
{
    double got[VALUES];
    nap_ms = f->quick ? 1000 : 6000; /* long enough to leave memory, and for all to be started */
    apart(sleep_and_wake, f, NULL, got, VALUES);
    bench_figure(f->bench, "runs started, 256 callers at once", got[START_RATE], "/s");
    goal(f, "1,000,000 runs asleep: resident memory", got[MEMORY_MB], "MB", false, 200);
    bench_figure(f->bench, "1,000,000 runs asleep: disk of one",
                 disk_bytes(store_path(f, "sleeping")) / (f->quick ? 2000 : MANY), "bytes");
    goal(f, "10,000 of them due at once: all awake in", got[WAKE_S], "s", false, 2);
    goal(f, "opening that store", got[REOPEN_S] * 1e3, "ms", false, 1000);
    goal(f, "10,000 that fell due meanwhile: all awake in", got[REOPEN_WAKE_S], "s", false, 2);
    drop_store(f, "sleeping");
}
