/* loops.c: a loop that keeps only its last iteration costs the same however long it runs, in time and
 * in memory; and its store is opened at once, also if the process died in the midst of it.
 *
 * An iteration is two commits one after the other, so a million of them would measure the disk for a
 * quarter of an hour: this store lies in memory where it can (/dev/shm). What could grow is ours. */
#include <unistd.h>

#include "figures.h"

enum { FEW = 100000, MANY = 1000000 };

static atomic_int count;
static int last;       /* iterations to make */
static bool die_there; /* end the process in the last one, as a crash would */

static int goes_on(rv_ctx *c)
{
    return rv_return_bool(c, atomic_load(&count) < last);
}

static int body(rv_ctx *c)
{
    (void)c;
    if (atomic_fetch_add(&count, 1) + 1 == last && die_there)
        _exit(0);
    return 0;
}

static rv_workflow *counting(void)
{
    rv_workflow *w = rv_workflow_new("loop");
    rv_body *again = rv_add_loop(
        rv_workflow_body(w), "again",
        RV_LOOP_OPTS(.while_ = goes_on, .keep = RV_KEEP_LAST, .max_iterations = 1 << 30));
    rv_add_step(again, "body", body, NULL);
    return w;
}

/* Seconds an iteration; MB after a tenth of them and at the peak. */
static void iterate(struct figures *f, const void *arg, double *ret)
{
    const char *store = arg;
    rv_engine *engine = open_engine(f, store);
    add_workflow(engine, counting());
    int all = last;
    die_there = false;
    last = all / 10;
    (void)run_once(engine, "loop", NULL);
    ret[1] = resident_mb();
    atomic_store(&count, 0);
    last = all;
    ret[0] = run_once(engine, "loop", NULL) / all;
    ret[2] = peak_mb();
    rv_engine_free(engine);
}

/* The same, and death in the last iteration. */
static void die(struct figures *f, const void *arg, double *ret)
{
    (void)ret;
    die_there = true;
    rv_engine *engine = open_engine(f, arg);
    add_workflow(engine, counting());
    (void)run_once(engine, "loop", NULL);
    abort(); /* it has ended before */
}

static void reopen(struct figures *f, const void *arg, double *ret)
{
    double start = seconds();
    rv_engine *engine = open_engine(f, arg);
    ret[0] = seconds() - start;
    rv_engine_free(engine);
}

void loops(struct figures *given)
{
    char folder[] = "/dev/shm/bench-engine-XXXXXX";
    struct figures own = *given, *f = &own;
    if (mkdtemp(folder) != NULL)
        own.folder = folder;
    const int few = f->quick ? 1000 : FEW, many = f->quick ? 5000 : MANY;
    double of_few[3], of_many[3], opening = 0;
    last = few;
    apart(iterate, f, "loop-few", of_few, 3);
    say(f, "  (%d iterations: %.1f us each)\n", few, of_few[0] * 1e6);
    last = many;
    apart(iterate, f, "loop-many", of_many, 3);
    bench_figure(f->bench, "loop of 100,000, keep last: an iteration", of_few[0] * 1e6, "us");
    bench_figure(f->bench, "loop of 1,000,000, keep last: an iteration", of_many[0] * 1e6, "us");
    goal(f, "loop: growth of the time of an iteration", of_many[0] / of_few[0], "x", false, 1.3);
    bench_figure(f->bench, "loop of 1,000,000: memory after a tenth", of_many[1], "MB");
    goal(f, "loop of 1,000,000: growth of memory since", of_many[2] / of_many[1], "x", false, 1.3);
    bench_figure(f->bench, "loop of 1,000,000: disk of an iteration",
                 disk_bytes(store_path(f, "loop-many")) / (1.1 * many), "bytes");
    last = few;
    apart(die, f, "loop-many", &opening, 1);
    apart(reopen, f, "loop-many", &opening, 1);
    goal(f, "opening that store, with a loop that died at 100,000", opening * 1e3, "ms", false,
         1000);
    drop_store(f, "loop-few");
    drop_store(f, "loop-many");
    (void)rmdir(folder); /* not there: the store was in the other one */
}
