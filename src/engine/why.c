/* why.c: rv_why: what a run waits for, and which work is in flight. The loop, which owns the cell, lists the waits.
 * read/why.c groups them and looks up since when they wait. */
#include "base/error.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/member.h"
#include "read/read.h"

struct looking {
    struct rv__why *why;
    struct rv__run *run; /* during the walk */
    bool unclaimed;      /* no member can continue it */
};

static enum rv__why_reason reason_of(const struct rv__wait *wait)
{
    switch (wait->kind) {
    case WAIT_WORK: return WHY_RUNNING;
    case WAIT_PLACE:
        return wait->lane == LANE_NOBODY       ? WHY_WORKER
               : rv__lane_is_limit(wait->lane) ? WHY_LIMIT
                                               : WHY_PLACE;
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

/* The executor of a lane. */
static const struct rv__executor *executor_of(const rv_engine *e, enum rv__lane lane)
{
    if (rv__lane_is_worker(lane))
        return e->lanes[LANE_WORKER].executor;
    if (rv__lane_is_limit(lane))
        return e->lanes[LANE_HTTP].executor;
    return e->lanes[lane == LANE_SUSPECT ? LANE_FUNCTION : lane].executor;
}

/* Who runs it. A process that only reads the store has no hosts, so it cannot know whether the function of a `call`
 * is in one. */
static const char *runner_of(const struct rv__run *run, const struct rv__wait *wait)
{
    bool call = wait->node != NULL && wait->eval < 0 && wait->node->step.kind == STEP_CALL;
    const struct rv__executor *executor = executor_of(run->engine, wait->lane);
    if (call && wait->lane != LANE_HOST && run->engine->read_only)
        return "function";
    return executor != NULL ? executor->name : "function";
}

/* It waits for a named limit; if the limit becomes free at a known time, until then. */
static void take_limit(struct looking *l, const struct rv__wait *wait, struct rv__why_about *about)
{
    const rv_engine *e = l->run->engine;
    int number = rv__limits_of(e, wait->work, -1);
    struct rv__wait timed = *wait;
    if (number < 0)
        return; /* it needs no limit any more, and continues with the next turn */
    struct rv__limit *limit = &e->limits.at[number];
    int64_t now_ms = rv__mono_ms(e->clock), free_ms = rv__limit_free_ms(limit, now_ms);
    about->lane += number * LANES; /* a group for each limit */
    about->limit = limit->name;
    about->places = limit->at_once;
    if (free_ms != RV__NEVER && free_ms > now_ms)
        timed.due_ms = rv__wall_ms(e->clock) + free_ms - now_ms;
    rv__why_add(l->why, &timed, about);
}

static void take_wait(void *arg, const struct rv__wait *wait)
{
    struct looking *l = arg;
    const rv_engine *e = l->run->engine;
    struct rv__why_about about = { .reason = reason_of(wait), .lane = (int)wait->lane };
    if (about.reason == WHY_RUNNING)
        about.executor = runner_of(l->run, wait);
    if (about.reason == WHY_WORKER) {
        about.function = wait->name;
        about.command = wait->eval < 0 && wait->node != NULL &&
                        wait->node->step.kind == STEP_COMMAND;
        about.unclaimed = l->unclaimed;
    }
    if (about.reason == WHY_WORKER && wait->eval < 0)
        about.secret = rv__plan_ref_secret(l->run->plan, wait->node);
    if (about.reason == WHY_PLACE) {
        const struct rv__executor *executor = executor_of(e, wait->lane);
        bool suspect = wait->lane == LANE_SUSPECT;
        about.executor = executor->name;
        about.limit = suspect ? "suspects, one at a time" : executor->limit;
        about.place = suspect ? "its turn: the engine died twice while this step ran, and such "
                                "steps run one at a time"
                              : executor->credit;
        about.places = e->read_only || rv__lane_is_worker(wait->lane) ? 0
                       : suspect                                      ? 1
                                                                      : executor->credits;
    }
    if (about.reason == WHY_LIMIT)
        take_limit(l, wait, &about);
    else
        rv__why_add(l->why, wait, &about);
}

/* On the loop's thread. */
static int look(struct rv__call *call, struct rv__run *run)
{
    struct looking l = *(struct looking *)call->arg;
    l.run = run;
    rv__why_run(l.why, rv__cell_status(run->cell), rv__cell_failed_path(run->cell));
    rv__cell_waits(run->cell, take_wait, &l);
    return rv__why_err(l.why, &call->err);
}

/* Whether another member owns the run and has answered. *unclaimed: no member can continue the run. */
static bool owner_tells(rv_engine *e, const char *run_id, bool *unclaimed, char **ret)
{
    struct rv__addressee owner = { .member = 0 };
    rv_error why_not;
    if (!rv__member_is(e) || run_id == NULL || rv__member_answers(e))
        return false;
    rv__engine_enter(e);
    int rc = rv__member_owner(e, run_id, &owner.member, unclaimed, &why_not);
    rv__engine_leave(e);
    return rc == RV_OK && owner.member != 0 && owner.member != rv__member_id(e) &&
           rv__attached_why(e, &owner, run_id, ret, &why_not) == RV_OK;
}

int rv_why(rv_engine *e, const char *run_id, char **ret, rv_error *err)
{
    struct looking looking = { .why = NULL };
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_why: no engine, or nowhere to put the answer");
    if (e->attached != NULL) { /* the driving process knows more */
        rv_error why_not;
        int rc = rv__attached_why(e, NULL, run_id, ret, &why_not);
        if (rc != RV_ECLOSED && rc != RV_EFAILED && rc != RV_EBUSY)
            return rc == RV_OK ? rc : rv__fail(err, rc, "%s", why_not.message);
    }
    if (owner_tells(e, run_id, &looking.unclaimed, ret))
        return RV_OK; /* otherwise the store is read */
    int rc = rv__why_new(&looking.why, err);
    if (rc < 0)
        return rc;
    rv__engine_enter(e);
    rc = rv__call_look(e, run_id, look, &looking, err);
    if (rc == RV_OK)
        rc = rv__why_tell(e->reading, run_id, looking.why, ret, err);
    rv__engine_leave(e);
    rv__why_free(looking.why);
    return rc;
}
