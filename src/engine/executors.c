/* executors.c: the executors of an engine: one for each lane that has places. */
#include "base/alloc.h"
#include "engine/engine.h"

enum {
    EVAL_CREDITS = 256,            /* evaluations in progress: they are quick */
    IO_CREDITS = RV__IO_PROCESSES, /* commands in progress */
};

/* The names appear in the answers of rv_why. */
static const struct rv__executor heads[LANES] = {
    [LANE_FUNCTION] = { .name = "thread", .limit = "workers", .credit = "a free worker" },
    [LANE_HOST] = { .name = "host", .limit = "hosts", .credit = "a free host process" },
    [LANE_IO] = { .name = "command", .limit = "io", .credit = "a free place for commands" },
    [LANE_EVAL] = { .name = "evaluator", .limit = "evaluator", .credit = "the evaluator" },
    [LANE_WORKER] = { .name = "worker", .limit = "credits", .credit = "a worker that is free" },
    [LANE_HTTP] = { .name = "http", .limit = "connections", .credit = "a free connection" },
};

int rv__executors_new(rv_engine *e, int workers, rv_error *err)
{
    const int64_t credits[LANES] = { [LANE_FUNCTION] = workers,
                                     [LANE_HOST] = rv__hosts_limit(&e->services.hosts_opts),
                                     [LANE_IO] = IO_CREDITS,
                                     [LANE_EVAL] = EVAL_CREDITS,
                                     [LANE_HTTP] = rv__fetch_budget() };
    for (int lane = 0; lane < LANES; lane++) {
        struct rv__executor head = heads[lane];
        head.lane = lane;
        head.credits = credits[lane];
        int rc = head.name != NULL ? e->around.executor(e, &head, &e->lanes[lane].executor, err)
                                   : RV_OK;
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

void rv__executors_free(rv_engine *e)
{
    for (int lane = 0; lane < LANES; lane++) {
        rv__executor_free(e->lanes[lane].executor);
        e->lanes[lane].executor = NULL;
        rv__free(e->lanes[lane].starting);
        e->lanes[lane].starting = NULL;
    }
}

struct rv__attempt *rv__executors_inside(const rv_engine *e)
{
    for (int lane = 0; lane < LANES; lane++) {
        const struct rv__executor *executor = e->lanes[lane].executor;
        struct rv__work *work = executor != NULL ? executor->inside(executor) : NULL;
        if (work != NULL)
            return (struct rv__attempt *)work;
    }
    return NULL;
}

void rv__places_reset(rv_engine *e)
{
    for (int lane = 0; lane < LANES; lane++)
        e->lanes[lane].taken = (int64_t)(e->lanes[lane].starting_count = 0);
    rv__workers_recount(e);
    rv__limits_reset(e);
}
