/* delay.c: how late is a delay, while 200 runs keep the engine as busy as they can?
 *
 * A run that is one delay of 50 ms, from the call that starts it to the answer that it has ended. That takes at
 * least two commits more than the delay: of its start, and of its end. They share them with the busy runs. */
#include "engine/engine.h"
#include "figures.h"

enum { DELAY_MS = 50, DELAYS = 200, MOST_COMMITS = 1 << 20, COMMITS_LATE = 5 };

static struct {
    struct rv__store_ops ops; /* those of the store, but for: */
    int (*commit)(struct rv__store *store, struct rv__store_write *writes, size_t count,
                  rv_error *err);
    double *ms;
    size_t count;
} timed;

/* Thread: who writes, one at a time. */
static int timed_commit(struct rv__store *store, struct rv__store_write *writes, size_t count,
                        rv_error *err)
{
    double start = seconds();
    int rc = timed.commit(store, writes, count, err);
    if (timed.count < MOST_COMMITS)
        timed.ms[timed.count++] = (seconds() - start) * 1e3;
    return rc;
}

/* Before anything is written. */
static void time_commits(rv_engine *engine)
{
    timed.ops = *engine->store->ops;
    timed.commit = timed.ops.commit;
    timed.ops.commit = timed_commit;
    timed.count = 0;
    engine->store->ops = &timed.ops;
}

static double p99(double *values, size_t count)
{
    qsort(values, count, sizeof *values, bench_order);
    return values[count * 99 / 100];
}

void delay(struct figures *f)
{
    static double ms[DELAYS];
    const size_t count = f->quick ? 5 : DELAYS;
    rv_workflow *nap = rv_workflow_new("nap");
    rv_add_delay(rv_workflow_body(nap), "nap", DELAY_MS);
    rv_engine *engine = open_engine(f, "delay");
    timed.ms = malloc(MOST_COMMITS * sizeof *timed.ms);
    if (timed.ms == NULL)
        abort();
    add_workflow(engine, ten_steps());
    add_workflow(engine, nap);
    time_commits(engine);
    clients_start(engine, "ten", NULL, INT32_MAX);
    for (size_t i = 0; i < count; i++)
        ms[i] = run_once(engine, "nap", NULL) * 1e3;
    clients_stop();
    clients_join();
    rv_engine_free(engine);
    double commit_ms = p99(timed.ms, timed.count), late_ms = p99(ms, count);
    goal(f, "a delay of 50 ms beside 200 busy runs: p50", bench_median(ms, count), "ms", false, 60);
    bench_figure(f->bench, "a commit beside it: p99", commit_ms, "ms");
    goal(f, "a delay of 50 ms beside 200 busy runs: p99", late_ms, "ms", false,
         DELAY_MS + COMMITS_LATE * commit_ms);
    free(timed.ms);
    drop_store(f, "delay");
}
