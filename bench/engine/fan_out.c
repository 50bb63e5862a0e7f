/* fan_out.c: many steps at once in one run, and how the cost of one grows with their number. */
#include "figures.h"

enum { ROUNDS = 21, PAIRS = 5, WIDE = 1000, FEW = 10000, MANY = 100000 };

static rv_workflow *for_each(void)
{
    rv_workflow *w = rv_workflow_new("forEach");
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", many_items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "nothing", no_op, NULL);
    return w;
}

static rv_workflow *concurrent(int children)
{
    rv_workflow *w = rv_workflow_new("concurrent");
    rv_concurrent *block = rv_add_concurrent(rv_workflow_body(w), "wide", NULL);
    for (int i = 0; i < children; i++) {
        char alias[16];
        snprintf(alias, sizeof alias, "c%d", i);
        rv_concurrent_step(block, alias, no_op, NULL);
    }
    return w;
}

static double median_ms(rv_engine *engine, const char *workflow, const char *input)
{
    double ms[ROUNDS];
    (void)run_once(engine, workflow, input);
    for (int i = 0; i < ROUNDS; i++)
        ms[i] = run_once(engine, workflow, input) * 1e3;
    return bench_median(ms, ROUNDS);
}

static void wide(struct figures *f)
{
    const int children = f->quick ? 50 : WIDE;
    char input[32];
    rv_engine *engine = open_engine(f, "wide");
    add_workflow(engine, concurrent(children));
    add_workflow(engine, for_each());
    snprintf(input, sizeof input, "{\"items\":%d}", children);
    goal(f, "1,000 steps at once, forEach parallel: p50", median_ms(engine, "forEach", input), "ms",
         false, 30);
    goal(f, "1,000 steps at once, concurrent: p50", median_ms(engine, "concurrent", NULL), "ms",
         false, 30);
    rv_engine_free(engine);
    drop_store(f, "wide");
}

/* In a process of its own: seconds, MB at its peak beyond those of an engine at rest. */
static void items(struct figures *f, const void *arg, double *ret)
{
    char input[32];
    rv_engine *engine = open_engine(f, "items");
    add_workflow(engine, for_each());
    (void)run_once(engine, "forEach", "{\"items\":100}");
    double before = resident_mb();
    snprintf(input, sizeof input, "{\"items\":%d}", *(const int *)arg);
    ret[0] = run_once(engine, "forEach", input);
    ret[1] = peak_mb() - before;
    rv_engine_free(engine);
    drop_store(f, "items");
}

void fan_out(struct figures *f)
{
    const int few = f->quick ? 100 : FEW, many = f->quick ? 1000 : MANY;
    double of_few[2], of_many[2], few_us[PAIRS], many_us[PAIRS], growth[PAIRS];
    wide(f);
    for (int i = 0; i < PAIRS; i++) { /* in turns: a busy machine is so for both */
        apart(items, f, &few, of_few, 2);
        apart(items, f, &many, of_many, 2);
        few_us[i] = of_few[0] / few * 1e6;
        many_us[i] = of_many[0] / many * 1e6;
        growth[i] = many_us[i] / few_us[i];
    }
    bench_figure(f->bench, "forEach parallel of 10,000: an item", bench_median(few_us, PAIRS),
                 "us");
    bench_figure(f->bench, "forEach parallel of 100,000: an item", bench_median(many_us, PAIRS),
                 "us");
    goal(f, "forEach parallel: growth of the time of an item", bench_median(growth, PAIRS), "x",
         false, 1.3);
    bench_figure(f->bench, "forEach parallel of 10,000: peak memory of an item",
                 of_few[1] / few * 1024 * 1024, "bytes");
    bench_figure(f->bench, "forEach parallel of 100,000: peak memory of an item",
                 of_many[1] / many * 1024 * 1024, "bytes");
}
