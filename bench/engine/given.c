/* given.c: what it costs to record what attempts were given: the same steps with and without it, in turns.
 *
 * Each of ten steps reads a text of the input, as a function of an order would; that is what is recorded. */
#include "figures.h"

enum { RUNS = 5000, MOST_ROUNDS = 101 };

static int reads(rv_ctx *c)
{
    (void)rv_str(c, ".input.order");
    return 0;
}

static rv_workflow *readers(bool records)
{
    rv_workflow *workflow = rv_workflow_new("readers");
    for (int i = 0; i < TEN; i++) {
        char alias[16];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(workflow), alias, reads,
                    RV_STEP_OPTS(.name = "reads", .hide_input = !records));
    }
    return workflow;
}

struct round {
    double steps, cpu; /* a second; seconds */
};

static struct round measure(struct figures *f, int runs, bool records)
{
    rv_engine *engine = open_engine(f, "given");
    add_workflow(engine, readers(records));
    double start = seconds(), cpu = cpu_seconds();
    clients_start(engine, "readers", "{\"order\":\"order-2026-11-17-000042\"}", runs);
    clients_join();
    struct round r = { runs * TEN / (seconds() - start), cpu_seconds() - cpu };
    rv_engine_free(engine);
    drop_store(f, "given");
    return r;
}

void given(struct figures *f)
{
    double with[MOST_ROUNDS] = { 0 }, without[MOST_ROUNDS] = { 0 };
    double ratio[MOST_ROUNDS] = { 0 }, cpu[MOST_ROUNDS] = { 0 };
    const int most = f->rounds < MOST_ROUNDS ? f->rounds : MOST_ROUNDS;
    const int runs = f->quick ? 400 : RUNS;
    const size_t count = (size_t)most;
    (void)measure(f, runs, true); /* warms up */
    for (size_t i = 0; i < count; i++) {
        bool first = i % 2 == 0; /* nobody is always the second */
        struct round a = measure(f, runs, first), b = measure(f, runs, !first);
        struct round yes = first ? a : b, no = first ? b : a;
        with[i] = yes.steps;
        without[i] = no.steps;
        ratio[i] = yes.steps / no.steps;
        cpu[i] = no.cpu / yes.cpu;
    }
    bench_figure(f->bench, "what attempts were given: steps with it", bench_median(with, count),
                 "/s");
    bench_figure(f->bench, "what attempts were given: steps without", bench_median(without, count),
                 "/s");
    bench_figure(f->bench, "what attempts were given: CPU without / with it",
                 bench_median(cpu, count), "x");
    goal(f, "what attempts were given: with it / without", bench_median(ratio, count), "x", true,
         0.95);
}
