/* coordinator.c: the run as a whole: takes messages, gives places, pumps, and says facts.
 *
 *   running ──▶ completed | failed | cancelled
 *     ▲  │ a step is to blame for too many crashes, or the shell says so
 *     │  ▼
 *   suspended ──abort──▶ running, its sequence failed ──▶ failed   (cancel: from both)
 *
 * While it is suspended nothing new begins, what is in flight ends and is recorded. Detached blocks
 * outlive its end. */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

enum {
    MAX_SIGNALS = 10000
}; /* received and not taken, in one run: more is a mistake or an attack */

int rv__say(struct rv__turn *turn, const struct rv__fact *said, rv_error *err)
{
    struct rv__facts *facts = turn->facts;
    struct rv__fact fact = *said;
    size_t before = facts->json.len, unheard = facts->unheard_count, rows = facts->row_count,
           values = facts->value_count;
    fact.at_ms = turn->now_ms;
    /* What the fact borrows may be held by an actor that it ends. */
    rv__blob_ref(fact.result);
    rv__blob_ref(fact.state);
    rv__blob_ref(fact.error);
    rv__fact_trim(&fact);
    int rc = rv__facts_outline(facts, turn->cell, &fact) < 0 ? rv__nomem(err) : RV_OK;
#ifdef RV_DEBUG_CHECKS
    rv_error why = { .message = "" };
    if (rc == RV_OK && rv__fact_check(turn->cell, &fact, &why) < 0)
        rv_panic("flow said a fact that does not fit: %s", why.message);
#endif

    if (facts->count > 0)
        rv__buf_char(&facts->json, ',');
    rv__fact_write(turn->cell, &fact, &facts->json);
    if (rc == RV_OK)
        rc = rv__buf_err(&facts->json, err);
    if (rc == RV_OK && rv__facts_unheard(facts, turn->cell, &fact) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__facts_rows(facts, turn->cell, &fact, err);
    if (rc == RV_OK)
        rc = rv__evolve(turn->cell, &fact) < 0 ? rv__nomem(err) : RV_OK;
    fact.name = NULL; /* never an actor's */
    rv__fact_done(&fact);
    if (rc == RV_OK) {
        facts->count++;
        facts->said[fact.kind]++;
        return RV_OK;
    }
    facts->json.rc = RV_OK; /* as if it had not been said */
    rv__buf_cut(&facts->json, before);
    rv__facts_heard(facts, unheard);
    rv__facts_cut_rows(facts, rows);
    rv__facts_cut_values(facts, values);
    return rc;
}

/* --------------------------------------------------------------------------- beginnings --- */

int rv__cell_start(const struct rv__cell_opts *opts, struct rv__blob *input, int64_t now_ms,
                   struct rv__facts *facts, struct rv__cell **ret, rv_error *err)
{
    struct rv__cell *cell = rv__cell_alloc(opts);
    if (cell == NULL)
        return rv__nomem(err);
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms };
    struct rv__fact fact = {
        .kind = FACT_RUN_STARTED, .actor = cell->next_id, .node = RV__NO_NODE, .result = input
    };
    int rc = rv__say(&turn, &fact, err);
    if (rc < 0) {
        rv__cell_free(cell);
        return rc;
    }
    *ret = cell;
    return RV_OK;
}

/* `rows`: NULL, or what gets the rows. */
static int replay(struct rv__cell *cell, const struct rv__fact *fact, struct rv__facts *rows,
                  rv_error *err)
{
    int rc = rv__fact_check(cell, fact, err);
    if (rc == RV_OK && rows != NULL)
        rc = rv__facts_rows(rows, cell, fact, err);
    if (rc < 0)
        return rc;
    cell->quiet = true;
    rc = rv__evolve(cell, fact);
    cell->quiet = false;
    return rc < 0 ? rv__nomem(err) : RV_OK;
}

int rv__cell_replay(struct rv__cell *cell, const struct rv__fact *fact, rv_error *err)
{
    return replay(cell, fact, NULL, err);
}

int rv__cell_replay_json(struct rv__cell *cell, struct rv__str facts_json, rv_error *err)
{
    return rv__cell_replay_rows(cell, facts_json, NULL, err);
}

int rv__cell_replay_rows(struct rv__cell *cell, struct rv__str facts_json, struct rv__facts *rows,
                         rv_error *err)
{
    struct rv__json_iter it = { .at = facts_json.at, .end = facts_json.at + facts_json.len };
    struct rv__str json;
    while (rv__json_next(&it, NULL, &json)) { /* an array without its brackets */
        struct rv__fact fact;
        int rc = rv__fact_read(json, &fact, err);
        if (rc < 0)
            return rc;
        rc = replay(cell, &fact, rows, err);
        rv__fact_done(&fact);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

/* ----------------------------------------------------------------------------- messages --- */

static int stale(struct rv__cell *cell)
{
    cell->stale++;
    return RV_OK;
}

static int say_about(struct rv__turn *turn, const struct rv__actor *actor, enum rv__fact_kind kind,
                     const struct rv__msg *msg, rv_error *err)
{
    struct rv__fact fact = { .kind = kind,
                             .actor = actor->id,
                             .node = rv__actor_about(actor)->id,
                             .eval = actor->eval,
                             .result = msg->result,
                             .error = msg->error };
    if (kind == FACT_STEP_FAILED)
        fact.hard = true;
    return rv__say(turn, &fact, err);
}

/* JSON null, where an evaluation gave nothing. */
static int say_evaluated(struct rv__turn *turn, const struct rv__actor *actor,
                         const struct rv__msg *msg, rv_error *err)
{
    struct rv__msg with = *msg;
    if (msg->result != NULL)
        return say_about(turn, actor, FACT_EVAL_COMPLETED, msg, err);
    with.result = rv__blob_new(rv__str("null"));
    if (with.result == NULL)
        return rv__nomem(err);
    int rc = say_about(turn, actor, FACT_EVAL_COMPLETED, &with, err);
    rv__blob_unref(with.result);
    return rc;
}

static int eval_send(struct rv__turn *turn, struct rv__actor *actor, const struct rv__msg *msg,
                     rv_error *err)
{
    if (msg->kind == MSG_DONE)
        return say_evaluated(turn, actor, msg, err);
    if (msg->kind != MSG_FAILED)
        return stale(turn->cell);
    if (actor->is_frame)
        return say_about(turn, actor, FACT_EVAL_FAILED, msg, err);
    if (actor->node->kind == NODE_STEP)
        return say_about(turn, actor, FACT_STEP_FAILED, msg, err);
    return say_about(turn, actor, FACT_NODE_FAILED, msg, err);
}

/* The run can no longer be suspended: what cannot go on fails. */
static int fail_stuck(struct rv__turn *turn, struct rv__actor *actor, struct rv__blob *error,
                      rv_error *err)
{
    struct rv__msg msg = { .error = error };
    enum rv__fact_kind kind = actor->is_frame                  ? FACT_EVAL_FAILED
                              : actor->node->kind == NODE_STEP ? FACT_STEP_FAILED
                                                               : FACT_NODE_FAILED;
    return say_about(turn, actor, kind, &msg, err);
}

/* How it died is told if somebody saw it: by which signal, at which limit. */
static struct rv__blob *poisonous(const struct rv__actor *actor)
{
    struct rv__str death = rv__blob_str(actor->death), message, how = { "", 0 };
    struct rv__arena arena;
    struct rv__blob *why = NULL;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the message */
    if (rv__str_none(death) || !rv__json_get(death, "message", &message) ||
        rv__json_string(message, &arena, &how) != RV_ENOMEM)
        why = rv__error_blob("step '%.*s' was to blame when its process died, %d times%s%.*s: "
                             "it is not tried again without a decision",
                             RV__ARG(rv__actor_about(actor)->alias), actor->crashes,
                             how.len > 0 ? "; the last time, " : "", RV__ARG(how));
    rv__arena_done(&arena);
    return why;
}

/* A run that has ended, or only has its handler to run yet, is not stopped for what it has detached. */
static bool is_left_behind(const struct rv__cell *cell, const struct rv__actor *actor)
{
    while (actor->owner != NULL)
        actor = actor->owner;
    return cell->root == NULL || (actor != cell->root && cell->root->frame.failed);
}

int rv__suspend(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    struct rv__blob *why = poisonous(actor);
    if (why == NULL)
        return rv__nomem(err);
    int rc;
    if (is_left_behind(turn->cell, actor)) {
        rc = fail_stuck(turn, actor, why, err);
    } else {
        struct rv__msg msg = { .error = why };
        rc = say_about(turn, actor, FACT_RUN_SUSPENDED, &msg, err);
    }
    rv__blob_unref(why);
    return rc;
}

/* Several may have been in flight when a process died that they shared. They go on at once; who was in
 * flight in two such deaths is a suspect. At most one suspect is in flight, so the next death is its own. */
static int say_lost(struct rv__turn *turn, const struct rv__actor *actor, const struct rv__msg *msg,
                    rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_STEP_LOST,
                             .actor = actor->id,
                             .node = rv__actor_about(actor)->id,
                             .error = msg->error,
                             .crash = msg->crash,
                             .blame = msg->blame };
    if (msg->shared) {
        fact.deaths = actor->deaths < RV__MAX_DEATHS ? actor->deaths + 1 : actor->deaths;
        fact.suspect = !actor->suspect && fact.deaths >= RV__SUSPECT_DEATHS;
        fact.blame |= actor->suspect;
    }
    return rv__say(turn, &fact, err);
}

/* Work that is in flight: an attempt or an evaluation. */
static int work_send(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__actor *actor = rv__cell_find(turn->cell, msg->actor);
    if (actor == NULL || (actor->token != msg->token && !RV__BUG(4)))
        return stale(turn->cell);
    if (actor->fresh) /* nobody was told this token yet */
        return stale(turn->cell);
    if (msg->kind == MSG_LOST)
        return rv__actor_working(actor) ? say_lost(turn, actor, msg, err) : stale(turn->cell);
    if (actor->phase == PHASE_EVAL)
        return eval_send(turn, actor, msg, err);
    if (actor->is_frame || actor->node->kind != NODE_STEP)
        return stale(turn->cell);
    return rv__step_send(turn, actor, msg, err);
}

static int answer(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__channel *channel = rv__channel_get(turn->cell, msg->name, true, false);
    if (channel == NULL || channel->first_waiter == NULL)
        return rv__fail(err, RV_ENOTFOUND, "no step waits for the handle '%.*s'",
                        RV__ARG(msg->name));
    struct rv__msg to = *msg;
    to.kind = msg->error != NULL ? MSG_FAILED : MSG_DONE;
    return rv__step_send(turn, channel->first_waiter, &to, err);
}

static int signal_run(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    if (!rv__cell_active(cell)) /* what is detached may wait for one after the run's end */
        return rv__fail(err, RV_ESTATE, "the run is %s: it takes no signals",
                        rv__run_status_name(cell->status));
    if (cell->signals >= MAX_SIGNALS)
        return rv__fail(err, RV_EBUSY, "%d signals wait to be taken already", MAX_SIGNALS);
    struct rv__blob *payload = msg->result != NULL ? rv__blob_ref(msg->result)
                                                   : rv__blob_new(rv__str("null"));
    struct rv__fact fact = { .kind = FACT_SIGNAL_RECEIVED, .node = RV__NO_NODE, .result = payload };
    fact.name = rv__blob_new(msg->name);
    int rc = fact.name != NULL && payload != NULL ? rv__say(turn, &fact, err) : rv__nomem(err);
    rv__blob_unref(fact.name);
    rv__blob_unref(payload);
    return rc;
}

static int cancel(struct rv__turn *turn, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    struct rv__fact fact = { .kind = FACT_RUN_CANCELLED, .node = RV__NO_NODE };
    if (rv__run_terminal(cell->status)) { /* left as it is; what was detached ends */
        if (cell->shades == NULL)
            return RV_OK;
        fact.kind = FACT_DETACHED_CANCELLED;
    }
    return rv__say(turn, &fact, err);
}

/* Something is wrong that concerns the run as a whole: what it had decided could not be kept. */
static int suspend(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_RUN_SUSPENDED, .node = RV__NO_NODE, .error = msg->error };
    if (turn->cell->status != RUN_RUNNING)
        return RV_OK;
    if (msg->error == NULL)
        return rv__fail(err, RV_EINVAL, "a run is suspended with a reason");
    return rv__say(turn, &fact, err);
}

static int decided(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    if (cell->status != RUN_SUSPENDED)
        return rv__fail(err, RV_ESTATE, "the run is %s: there is nothing to decide",
                        rv__run_status_name(cell->status));
    struct rv__fact fact = { .kind = FACT_RUN_RESUMED, .node = RV__NO_NODE };
    if (msg->kind == MSG_RESUME)
        return rv__say(turn, &fact, err);

    fact.kind = FACT_RUN_ABORTED;
    fact.error = msg->error != NULL ? msg->error : cell->suspension;
    return rv__say(turn, &fact, err);
}

int rv__flow_send(struct rv__cell *cell, const struct rv__msg *msg, struct rv__facts *facts,
                  rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = msg->now_ms };
    switch (msg->kind) {
    case MSG_DONE:
    case MSG_FAILED:
    case MSG_PARK:
    case MSG_TIMER:
    case MSG_LOST: return work_send(&turn, msg, err);
    case MSG_ANSWER: return answer(&turn, msg, err);
    case MSG_SIGNAL: return signal_run(&turn, msg, err);
    case MSG_CANCEL: return cancel(&turn, err);
    case MSG_SUSPEND: return suspend(&turn, msg, err);
    case MSG_RESUME:
    case MSG_ABORT: return decided(&turn, msg, err);
    case MSG_KINDS: break;
    }
    return rv__fail(err, RV_EINVAL, "no such message");
}

/* ------------------------------------------------------------------------ pump and grant --- */

/* What follows for this actor: one fact. */
static int advance(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    if (actor->crashes > turn->cell->max_crashes && !RV__BUG(15) &&
        (actor->phase == PHASE_READY || actor->phase == PHASE_TO_EVAL))
        return rv__suspend(turn, actor, err);
    if (actor->is_frame)
        return rv__frame_advance(turn, actor, err);
    if (actor->node->kind == NODE_STEP)
        return rv__step_advance(turn, actor, err);
    switch ((enum rv__phase)actor->phase) {
    case PHASE_BEGIN: return rv__node_begin(turn, actor->owner, actor, actor->node, err);
    case PHASE_TO_EVAL: return rv__eval_start(turn, actor, err);
    case PHASE_EVALUATED: return rv__node_evaluated(turn, actor, err);
    case PHASE_RUNNING: return rv__kinds[actor->node->kind]->advance(turn, actor, err);
    case PHASE_EVAL:
    case PHASE_READY:
    case PHASE_RETRY:
    case PHASE_PARKED:
    case PHASE_FAILED:
    case PHASES: break;
    }
    assert(!"nothing follows for this actor");
    return RV_ESTATE;
}

int rv__flow_pump(struct rv__cell *cell, int64_t now_ms, struct rv__facts *facts, rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms };
    size_t from = facts->json.len + facts->row_bytes;
    for (int said = 0; rv__cell_more(cell); said++) {
        if (said == cell->turn_facts ||
            facts->json.len + facts->row_bytes - from > (size_t)RV__TURN_BYTES)
            return 1;
        int rc = advance(&turn, cell->todo.first, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What was begun goes on before more is begun. */
static struct rv__actor *pick(const struct rv__cell *cell, enum rv__lane lane)
{
    struct rv__actor *actor = cell->ready[lane].first;
    return actor != NULL ? actor : cell->range[lane].first;
}

/* Until work has taken the place, or nothing is left that could. */
static int start_one(struct rv__turn *turn, enum rv__lane lane, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    struct rv__actor *actor = pick(cell, lane);
    while (actor != NULL) {
        uint64_t id = actor->id;
        bool node = !actor->is_frame;
        int rc = advance(turn, actor, err);
        if (rc < 0)
            return rc;
        if (cell->place == LANE_NONE)
            return 1;
        /* It got as far as a body or a node that wants the same place: go on with that one. */
        actor = rv__cell_find(cell, id);
        if (actor != NULL && actor->last_child != NULL)
            actor = actor->last_child;
        else if (actor == NULL || !node)
            actor = NULL;
        if (actor == NULL || actor->lane != lane ||
            (actor->place != PLACE_READY && actor->place != PLACE_RANGE))
            actor = pick(cell, lane);
    }
    return 0;
}

int rv__flow_grant(struct rv__cell *cell, enum rv__lane lane, int64_t now_ms,
                   struct rv__facts *facts, rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms };
    if (cell->status == RUN_SUSPENDED || lane == LANE_NONE || lane == LANE_NOBODY)
        return 0;
    cell->place = lane;
    int rc = start_one(&turn, lane, err);
    cell->place = LANE_NONE;
    return rc;
}
