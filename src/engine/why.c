/* why.c: rv_why: what a run waits for, and what of that is in flight: said by the loop, which has the cell.
 * read/why.c groups it and looks up since when. */
#include "base/error.h"
#include "engine/call.h"
#include "engine/control.h"
#include "read/read.h"

static const struct {
    const char *limit, *place; /* as JSON has it; as people say it */
} lanes[LANES] = {
    [LANE_NONE] = { "none", "nothing" },
    [LANE_FUNCTION] = { "workers", "a free worker" },
    [LANE_IO] = { "io", "a free place for commands" },
    [LANE_EVAL] = { "evaluator", "the evaluator" },
    [LANE_SUSPECT] = { "suspects, one at a time", "its turn: the engine died twice while it ran, "
                                                  "and such steps run one at a time" },
    [LANE_HTTP] = { "connections", "a free connection" },
    [LANE_HOST] = { "hosts", "a free host process" },
    [LANE_NOBODY] = { "none", "nobody" }, /* told as WHY_WORKER */
};

struct looking {
    struct rv__why *why;
    struct rv__run *run; /* during the walk */
};

static enum rv__why_reason reason_of(const struct rv__wait *wait)
{
    switch (wait->kind) {
    case WAIT_WORK: return WHY_RUNNING;
    case WAIT_PLACE: return wait->lane == LANE_NOBODY ? WHY_WORKER : WHY_PLACE;
    case WAIT_LIMIT: return WHY_CONCURRENCY;
    case WAIT_TIMER: return WHY_TIMER;
    case WAIT_RETRY: return WHY_RETRY;
    case WAIT_SIGNAL: return WHY_SIGNAL;
    case WAIT_HANDLE: return WHY_HANDLE;
    case WAIT_DECISION: return WHY_DECISION;
    case WAIT_TURN: break;
    }
    return WHY_TURN;
}

/* Who runs it. A reader cannot know of a `call` whether its function is in a host: it has none. */
static const char *executor_of(const struct rv__run *run, const struct rv__wait *wait)
{
    if (wait->node == NULL || wait->lane == LANE_EVAL)
        return "evaluator";
    if (wait->lane != LANE_FUNCTION && wait->lane != LANE_SUSPECT && wait->lane != LANE_HOST)
        return rv__step_kind_name(wait->node->step.kind);
    if (wait->lane == LANE_HOST)
        return "host";
    if (wait->eval >= 0 || wait->node->step.kind != STEP_CALL)
        return "thread";
    if (run->engine->read_only)
        return "function";
    const struct rv__function *function = rv__plan_ref_fn(run->plan, wait->node, wait->eval);
    return function != NULL && function->module != NULL ? "host" : "thread";
}

static void take_wait(void *arg, const struct rv__wait *wait)
{
    struct looking *l = arg;
    struct rv__why_about about = { .reason = reason_of(wait), .lane = (int)wait->lane };
    if (about.reason == WHY_RUNNING)
        about.executor = executor_of(l->run, wait);
    if (about.reason == WHY_WORKER)
        about.function = wait->name;
    if (about.reason == WHY_PLACE) {
        about.limit = lanes[wait->lane].limit;
        about.place = lanes[wait->lane].place;
        about.places = l->run->engine->read_only ? 0 : l->run->engine->places[wait->lane];
    }
    rv__why_add(l->why, wait, &about);
}

/* On the loop's thread. */
static int look(struct rv__call *call, struct rv__run *run)
{
    struct looking l = { .why = call->arg, .run = run };
    rv__why_run(l.why, rv__cell_status(run->cell), rv__cell_suspension(run->cell));
    rv__cell_waits(run->cell, take_wait, &l);
    return rv__why_err(l.why, &call->err);
}

int rv_why(rv_engine *e, const char *run_id, char **ret, rv_error *err)
{
    struct rv__why *why = NULL;
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_why: no engine, or nowhere to put the answer");
    if (e->attached != NULL) { /* who drives it knows more */
        rv_error why_not;
        int rc = rv__attached_why(e, run_id, ret, &why_not);
        if (rc != RV_ECLOSED && rc != RV_EFAILED && rc != RV_EBUSY)
            return rc == RV_OK ? rc : rv__fail(err, rc, "%s", why_not.message);
    }
    int rc = rv__why_new(&why, err);
    if (rc < 0)
        return rc;
    rv__engine_enter(e);
    rc = rv__call_look(e, run_id, look, why, err);
    if (rc == RV_OK)
        rc = rv__why_tell(e->reading, run_id, why, ret, err);
    rv__engine_leave(e);
    rv__why_free(why);
    return rc;
}
