/* cancelling.c: a cancel answers at once, whatever is alive in the run; in memory or asleep. */
#include <unistd.h>

#include "figures.h"

enum { ROUNDS = 5, OUTER = 100, POLL_US = 1000, HOUR_MS = 3600000 };

static atomic_int reached;

static int mark(rv_ctx *c)
{
    (void)c;
    atomic_fetch_add(&reached, 1);
    return 0;
}

/* Keeps its run in memory. */
static int hold(rv_ctx *c)
{
    while (!rv_ctx_cancelled(c))
        (void)usleep(POLL_US);
    return 0;
}

/* An hour's wait in a forEach in a workflow in a forEach. */
static rv_workflow *inner(void)
{
    rv_workflow *w = rv_workflow_new("inner");
    rv_body *each = rv_add_foreach(rv_workflow_body(w), "each", many_items,
                                   RV_FOREACH_OPTS(.parallel = true));
    rv_add_step(each, "mark", mark, NULL);
    rv_add_delay(each, "hour", HOUR_MS);
    return w;
}

static rv_workflow *outer(bool held)
{
    rv_workflow *w = rv_workflow_new(held ? "held" : "asleep");
    rv_concurrent *both = rv_add_concurrent(rv_workflow_body(w), "both", NULL);
    rv_body *nested = rv_concurrent_body(both, "nested");
    rv_body *each = rv_add_foreach(nested, "each", many_items, RV_FOREACH_OPTS(.parallel = true));
    rv_add_workflow(each, "inner", "inner");
    if (held)
        rv_concurrent_step(both, "hold", hold, NULL);
    return w;
}

/* The slowest of some rounds, in ms. */
static double slowest_ms(struct figures *f, rv_engine *engine, const char *workflow)
{
    const int items = f->quick ? 10 : OUTER;
    char input[32];
    double most = 0;
    rv_error err;
    snprintf(input, sizeof input, "{\"items\":%d}", items);
    for (int i = 0; i < ROUNDS; i++) {
        rv_run_info info;
        rv_run_state *state = NULL;
        atomic_store(&reached, 0);
        must(rv_run(engine, workflow, input, NULL, &info, &err), &err);
        while (atomic_load(&reached) < items * items)
            (void)usleep(POLL_US);
        (void)usleep(200 * 1000); /* the last of them have begun to wait */
        double start = seconds();
        must(rv_cancel_run(engine, info.run_id, &err), &err);
        double took = (seconds() - start) * 1e3;
        most = took > most ? took : most;
        must(rv_state(engine, info.run_id, &state, &err), &err);
        if (state->status != RV_CANCELLED)
            abort();
        rv_run_state_free(state);
    }
    return most;
}

void cancelling(struct figures *f)
{
    rv_engine *engine = open_engine(f, "cancel");
    add_workflow(engine, inner());
    add_workflow(engine, outer(true));
    add_workflow(engine, outer(false));
    goal(f, "cancel of 10,000 nested children, in memory: slowest", slowest_ms(f, engine, "held"),
         "ms", false, 100);
    goal(f, "cancel of 10,000 nested children, asleep: slowest", slowest_ms(f, engine, "asleep"),
         "ms", false, 100);
    rv_engine_free(engine);
    drop_store(f, "cancel");
}
