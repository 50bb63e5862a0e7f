/* loops.c: a loop that keeps only its last iteration costs the same however long it runs, in time and
 * in memory; and its store is opened at once, though the process died in the midst of it.
 *
 * One run: looked at after a tenth of its iterations and in the last one, where the process dies.
 * An iteration is two commits one after the other, so a million of them would measure the disk, and how
 * long a processor takes to wake up: the store lies in memory where it can (/dev/shm), and all
 * threads are on one processor. What could grow is ours. */
#include <sched.h>
#include <unistd.h>

#include "figures.h"

enum { FEW = 100000, MANY = 1000000 };
enum { EARLY_S, EARLY_CPU, EARLY_MB, ALL_S, ALL_CPU, ALL_MB, VALUES };

static atomic_int count;
static int few, many;
static double *measured, start, start_cpu; /* of the process that iterates */

static int goes_on(rv_ctx *c)
{
    return rv_return_bool(c, true);
}

static int body(rv_ctx *c)
{
    int now = atomic_fetch_add(&count, 1) + 1;
    (void)c;
    if (now != few && now != many)
        return 0;
    double *at = &measured[now == few ? EARLY_S : ALL_S];
    at[0] = seconds() - start;
    at[1] = cpu_seconds() - start_cpu;
    at[2] = now == few ? resident_mb() : peak_mb();
    if (now == many)
        _exit(0); /* as a crash would */
    return 0;
}

static rv_workflow *endless(void)
{
    rv_workflow *w = rv_workflow_new("loop");
    rv_body *again = rv_add_loop(
        rv_workflow_body(w), "again",
        RV_LOOP_OPTS(.while_ = goes_on, .keep = RV_KEEP_LAST, .max_iterations = 1 << 30));
    rv_add_step(again, "body", body, NULL);
    return w;
}

static void iterate(struct figures *f, const void *arg, double *ret)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    (void)sched_setaffinity(0, sizeof one, &one); /* else it takes longer, that is all */
    (void)arg;
    measured = ret;
    rv_engine *engine = open_engine(f, "loop");
    add_workflow(engine, endless());
    start = seconds();
    start_cpu = cpu_seconds();
    (void)run_once(engine, "loop", NULL);
    abort(); /* it has ended before */
}

static void reopen(struct figures *f, const void *arg, double *ret)
{
    (void)arg;
    double begin = seconds();
    rv_engine *engine = open_engine(f, "loop");
    ret[0] = seconds() - begin;
    rv_engine_free(engine);
}

void loops(struct figures *given)
{
    char folder[] = "/dev/shm/bench-engine-XXXXXX";
    struct figures own = *given, *f = &own;
    double got[VALUES], opening = 0;
    if (mkdtemp(folder) != NULL)
        own.folder = folder;
    few = f->quick ? 500 : FEW;
    many = f->quick ? 5000 : MANY;
    say(f, "  (a loop of %d iterations: a minute or two)\n", many);
    apart(iterate, f, NULL, got, VALUES);
    bench_figure(f->bench, "loop, keep last: an iteration of the first 100,000",
                 got[EARLY_S] / few * 1e6, "us");
    bench_figure(f->bench, "loop, keep last: an iteration of 1,000,000", got[ALL_S] / many * 1e6,
                 "us");
    bench_figure(f->bench, "loop, keep last: CPU of an iteration of 1,000,000",
                 got[ALL_CPU] / many * 1e6, "us");
    goal(f, "loop, keep last: growth of that since the first 100,000",
         (got[ALL_CPU] / many) / (got[EARLY_CPU] / few), "x", false, 1.3);
    bench_figure(f->bench, "loop, keep last: memory after 100,000", got[EARLY_MB], "MB");
    goal(f, "loop, keep last: its growth until 1,000,000", got[ALL_MB] / got[EARLY_MB], "x", false,
         1.3);
    bench_figure(f->bench, "loop, keep last: disk of an iteration",
                 disk_bytes(store_path(f, "loop")) / many, "bytes");
    apart(reopen, f, NULL, &opening, 1);
    goal(f, "opening the store of a loop that died at 1,000,000", opening * 1e3, "ms", false, 1000);
    drop_store(f, "loop");
    (void)rmdir(folder); /* not there: the store was in the other one */
}
