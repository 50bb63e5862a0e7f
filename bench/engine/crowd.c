/* crowd.c: 200 runs at once, each with a parallel forEach: items a second.
 *
 * There are about as many places as runs, so a run has few of its items in flight at a time: what counts is
 * how many of them share a journal row, and what their results cost. */
#include "figures.h"

enum { RUNS = 200, ITEMS = 500 };

static rv_workflow *for_each(void)
{
    rv_workflow *w = rv_workflow_new("forEach");
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", many_items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "nothing", no_op, NULL);
    return w;
}

static double items_a_second(struct figures *f, int items)
{
    char input[32];
    snprintf(input, sizeof input, "{\"items\":%d}", items);
    rv_engine *engine = open_engine(f, "crowd");
    add_workflow(engine, for_each());
    double start = seconds();
    clients_start(engine, "forEach", input, RUNS);
    clients_join();
    double took = seconds() - start;
    rv_engine_free(engine);
    drop_store(f, "crowd");
    return RUNS * items / took;
}

void crowd(struct figures *f)
{
    double rates[BENCH_ROUNDS] = { 0 };
    const int count = f->rounds < BENCH_ROUNDS ? f->rounds : BENCH_ROUNDS;
    for (int i = 0; i < count; i++)
        rates[i] = items_a_second(f, f->quick ? 10 : ITEMS);
    bench_figure(f->bench, "forEach parallel in 200 runs at once: items",
                 bench_median(rates, (size_t)count), "/s");
}
