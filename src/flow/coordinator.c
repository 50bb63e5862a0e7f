/* coordinator.c: the run as a whole: handles messages, grants places, pumps, and says facts.
 *
 *   running ──▶ completed | failed | cancelled
 *     ▲  │ a step is to blame for too many crashes, a critical state has used up its attempts, or the
 *     │  ▼ shell says so
 *   suspended ──abort──▶ running, its sequence failed ──▶ failed   (cancel: from both)
 *
 * While it is suspended nothing new begins; what is in flight ends and is recorded. Several things may be
 * suspended at once (suspend.c); each is decided by its path, and after the last one the run continues. Detached
 * blocks outlive its end. If its workflow has a `finally`, a cancelled run stays running until that has run. */
#include <assert.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "base/bugs.h"
#include "flow/cell.h"

enum { MAX_SIGNALS = 10000 }; /* received and not taken, in one run */

int rv__say(struct rv__turn *turn, const struct rv__fact *said, rv_error *err)
{
    struct rv__facts *facts = turn->facts;
    struct rv__fact fact = *said;
    size_t before = facts->json.len, failures = facts->logged_failure_count,
           rows = facts->row_count, values = facts->value_count;
    fact.at_ms = turn->now_ms;
    fact.by = turn->by;
    /* The fact may borrow from an actor that it ends. */
    rv__blob_ref(fact.result);
    rv__blob_ref(fact.state);
    rv__blob_ref(fact.error);
    rv__blob_ref(fact.name);
    rv__blob_ref(fact.given);
    rv__blob_ref(fact.turn);
    rv__blob_ref(fact.note);
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
    if (rc == RV_OK && rv__facts_note_failure(facts, turn->cell, &fact) < 0)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = rv__facts_rows(facts, turn->cell, &fact, err);
    if (rc == RV_OK)
        rc = rv__evolve(turn->cell, &fact) < 0 ? rv__nomem(err) : RV_OK;
    rv__fact_done(&fact);
    if (rc == RV_OK) {
        facts->count++;
        facts->said[fact.kind]++;
        return RV_OK;
    }
    facts->json.rc = RV_OK; /* undo: the fact was not said */
    rv__buf_cut(&facts->json, before);
    rv__facts_drop_failures(facts, failures);
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
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms, .by = opts->by };
    struct rv__fact fact = { .kind = FACT_RUN_STARTED,
                             .actor = cell->next_id,
                             .node = RV__NO_NODE,
                             .nonce = opts->nonce,
                             .limit = opts->limit,
                             .result = input };
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

/* Does the fact end something that failed itself? A failed description ends nothing. */
static bool fails(const struct rv__actor *actor, enum rv__fact_kind kind)
{
    return kind == FACT_STEP_FAILED || kind == FACT_NODE_FAILED ||
           (kind == FACT_EVAL_FAILED && actor->eval != EVAL_DESCRIPTION);
}

static int say_about(struct rv__turn *turn, const struct rv__actor *actor, enum rv__fact_kind kind,
                     const struct rv__msg *msg, rv_error *err)
{
    struct rv__blob *error = fails(actor, kind) ? rv__error_of(msg->error, actor)
                                                : rv__blob_ref(msg->error);
    if (fails(actor, kind) && error == NULL)
        return rv__nomem(err);
    struct rv__fact fact = { .kind = kind,
                             .actor = actor->id,
                             .node = rv__actor_about(actor)->id,
                             .eval = actor->eval,
                             .result = msg->result,
                             .error = error,
                             .given = kind == FACT_EVAL_COMPLETED ? msg->given : NULL };
    if (kind == FACT_STEP_FAILED)
        fact.hard = !actor->node->is_handler && !actor->node->step.config.continue_on_error;
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(error);
    return rc;
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
    if (rv__is_step(actor->node))
        return say_about(turn, actor, FACT_STEP_FAILED, msg, err);
    return say_about(turn, actor, FACT_NODE_FAILED, msg, err);
}

/* The run can no longer be suspended, so what cannot continue fails. */
static int fail_stuck(struct rv__turn *turn, struct rv__actor *actor, struct rv__blob *error,
                      rv_error *err)
{
    struct rv__msg msg = { .error = error };
    enum rv__fact_kind kind = actor->is_frame            ? FACT_EVAL_FAILED
                              : rv__is_step(actor->node) ? FACT_STEP_FAILED
                                                         : FACT_NODE_FAILED;
    return say_about(turn, actor, kind, &msg, err);
}

/* With the signal or limit by which the process died, if that is known. */
static struct rv__blob *crash_error(const struct rv__actor *actor)
{
    struct rv__str death = rv__blob_str(actor->death), message, how = { "", 0 };
    struct rv__arena arena;
    struct rv__blob *why = NULL;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the message */
    if (rv__str_none(death) || !rv__json_get(death, "message", &message) ||
        rv__json_string(message, &arena, &how) != RV_ENOMEM)
        why = rv__error_blob("crashed",
                             "step '%.*s' was to blame when its process died, %d times%s%.*s: "
                             "it is not tried again without a decision",
                             RV__ARG(rv__actor_about(actor)->alias), actor->crashes,
                             how.len > 0 ? "; the last time, " : "", RV__ARG(how));
    rv__arena_done(&arena);
    return why;
}

bool rv__is_left_behind(const struct rv__cell *cell, const struct rv__actor *actor)
{
    while (actor->owner != NULL)
        actor = actor->owner;
    return cell->root == NULL || (actor != cell->root && cell->root->frame.failed);
}

int rv__suspend(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    struct rv__blob *why = crash_error(actor);
    if (why == NULL)
        return rv__nomem(err);
    int rc;
    if (rv__is_left_behind(turn->cell, actor)) {
        rc = fail_stuck(turn, actor, why, err);
    } else {
        struct rv__msg msg = { .error = why };
        rc = say_about(turn, actor, FACT_RUN_SUSPENDED, &msg, err);
    }
    rv__blob_unref(why);
    return rc;
}

/* Several actors may have been in flight when their shared process died. They continue at once, but after two such
 * deaths an actor is a suspect. At most one suspect is in flight at a time, so the next death is its own. */
static int say_lost(struct rv__turn *turn, const struct rv__actor *actor, const struct rv__msg *msg,
                    rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_STEP_LOST,
                             .actor = actor->id,
                             .node = rv__actor_about(actor)->id,
                             .error = msg->error,
                             .given = actor->phase == PHASE_EVAL ? NULL : msg->given,
                             .crash = msg->crash,
                             .down_ms = msg->down_ms,
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
    if (actor->fresh) /* its effect is not released: nobody knows this token */
        return stale(turn->cell);
    if (msg->kind == MSG_LOST)
        return rv__actor_working(actor) ? say_lost(turn, actor, msg, err) : stale(turn->cell);
    if (actor->phase == PHASE_EVAL)
        return eval_send(turn, actor, msg, err);
    if (actor->is_frame && msg->kind == MSG_TIMER && rv__actor_waiting(actor))
        return rv__frame_timed_out(turn, actor, err);
    bool timed = !actor->is_frame && msg->kind == MSG_TIMER && rv__actor_waiting(actor);
    if (timed && rv__flow_kind(actor->node)->timer != NULL)
        return rv__flow_kind(actor->node)->timer(turn, actor, msg, err);
    if (!rv__actor_is_step(actor))
        return stale(turn->cell);
    return rv__step_send(turn, actor, msg, err);
}

/* The reader is answered once this is on disk, so it is an error if its attempt no longer runs. */
static int say_read(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    const struct rv__actor *actor = rv__cell_find(turn->cell, msg->actor);
    if (actor == NULL || actor->token != msg->token || actor->fresh || !rv__actor_working(actor))
        return rv__fail(err, RV_ENOTFOUND, "the attempt that wanted to read is over");
    struct rv__fact fact = { .kind = FACT_STEP_READ,
                             .actor = actor->id,
                             .node = rv__actor_about(actor)->id,
                             .name = rv__blob_new(msg->name) };
    int rc = fact.name != NULL ? rv__say(turn, &fact, err) : rv__nomem(err);
    rv__blob_unref(fact.name);
    return rc;
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

/* List as many names as there is room for, to help after a misspelling. */
static void list_signals(const struct rv__plan *plan, char *text, size_t room)
{
    static const char more[] = ", …";
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < plan->signal_count; i++) {
        struct rv__str name = plan->signals[i];
        if (len + name.len + 2 + sizeof more > room) {
            snprintf(text + len, room - len, "%s", len > 0 ? more : "…");
            return;
        }
        len += (size_t)snprintf(text + len, room - len, "%s%.*s", len > 0 ? ", " : "",
                                RV__ARG(name));
    }
}

/* Refuse a signal that no step waits for: it would be kept for ever. If a plan computes names, any may be wanted. */
static int refuse_signal(const struct rv__cell *cell, struct rv__str name, rv_error *err)
{
    enum { SHOWN = 60 };
    char names[120];
    name.len = name.len < SHOWN ? name.len : SHOWN;
    if (cell->plan->signal_count == 0)
        return rv__fail(err, RV_EUNWANTED,
                        "the signal '%.*s' has no receiver: no step of this run waits for a signal",
                        RV__ARG(name));
    list_signals(cell->plan, names, sizeof names);
    return rv__fail(err, RV_EUNWANTED,
                    "no step of this run waits for the signal '%.*s'; known signals: %s",
                    RV__ARG(name), names);
}

static int signal_run(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    if (!rv__cell_active(cell)) /* a detached block may wait for a signal after the run's end */
        return rv__fail(err, RV_ESTATE, "the run is %s: it takes no signals",
                        rv__run_status_name(cell->status));
    if (!msg->force && !rv__plan_takes_signal(cell->plan, msg->name) &&
        rv__str_none(rv__cell_asked(cell, msg->name)))
        return refuse_signal(cell, msg->name, err);
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

/* A second cancel, or the run cannot continue: its `finally` fails, and the run ends. */
static int cancel_finally(struct rv__turn *turn, struct rv__actor *root, rv_error *err)
{
    bool goes_on = turn->cell->status == RUN_RUNNING; /* a suspended run would not end by itself */
    if (root->child == NULL || !goes_on)
        return rv__say_run_ended(turn, root, err);
    struct rv__blob *why = rv__error_blob("cancelled", "it was cancelled");
    if (why == NULL)
        return rv__nomem(err);
    int rc = fail_stuck(turn, root->child, why, err);
    rv__blob_unref(why);
    return rc;
}

static int cancel(struct rv__turn *turn, rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    struct rv__fact fact = { .kind = FACT_RUN_CANCELLED, .node = RV__NO_NODE };
    if (rv__run_terminal(cell->status)) { /* its status stays; detached blocks end */
        if (cell->detached_scopes == NULL)
            return RV_OK;
        fact.kind = FACT_DETACHED_CANCELLED;
        return rv__say(turn, &fact, err);
    }
    struct rv__actor *root = cell->root;
    bool stuck = cell->status == RUN_SUSPENDED && rv__frame_in_finally(root);
    if (root->frame.asked || root->frame.finished || stuck)
        return cancel_finally(turn, root, err);
    if (cell->plan->body.wrap->finally != NULL && !RV__BUG(63))
        fact.kind = FACT_RUN_CANCELLING;
    return rv__say(turn, &fact, err);
}

/* The run as a whole is suspended: its facts could not be stored. */
static int suspend(struct rv__turn *turn, const struct rv__msg *msg, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_RUN_SUSPENDED, .node = RV__NO_NODE, .error = msg->error };
    if (turn->cell->status != RUN_RUNNING)
        return RV_OK;
    if (msg->error == NULL)
        return rv__fail(err, RV_EINVAL, "a run is suspended with a reason");
    return rv__say(turn, &fact, err);
}

/* {"message": the reason of the decision, "cause": the reason of the suspension}. NULL: no memory. */
static struct rv__blob *with_cause(const struct rv__blob *reason, const struct rv__blob *cause)
{
    struct rv__buf json;
    struct rv__blob *both = NULL;
    struct rv__str text = rv__blob_str(reason);
    rv__buf_init(&json, SIZE_MAX / 8);         /* bounded by the two */
    rv__buf_add(&json, text.at, text.len - 1); /* an object with a message: without its brace */
    rv__buf_text(&json, ",\"cause\":");
    rv__buf_str(&json, rv__blob_str(cause));
    rv__buf_char(&json, '}');
    if (rv__buf_err(&json, NULL) == RV_OK)
        both = rv__blob_new(rv__buf_view(&json));
    rv__buf_done(&json);
    return both;
}

/* The top-level node that an abort fails: the current or next one; after the last, the last one. */
static const struct rv__node *aborted_node(const struct rv__actor *root)
{
    const struct rv__body *body = root->frame.body;
    uint32_t at = root->frame.at < body->count ? root->frame.at : body->count - 1;
    return body->nodes[at];
}

/* The paths of what waits for a decision, as many as there is room for. */
static void list_paths(const struct rv__cell *cell, char *text, size_t room)
{
    size_t len = 0;
    text[0] = '\0';
    bool more = true;
    for (const struct rv__suspension *one = cell->suspended; one != NULL && more; one = one->next) {
        struct rv__buf path;
        rv__buf_init(&path, SIZE_MAX / 8); /* bounded by the plan */
        rv__suspension_path(one, &path);
        more = rv__buf_err(&path, NULL) == RV_OK && len + path.len + sizeof ", …" < room;
        if (more)
            len += (size_t)snprintf(text + len, room - len, "%s%.*s", len > 0 ? ", " : "",
                                    RV__ARG(rv__buf_view(&path)));
        rv__buf_done(&path);
    }
}

/* Find the suspension that the decision is about. */
static int find_decided(struct rv__cell *cell, struct rv__str path, struct rv__suspension **ret,
                        rv_error *err)
{
    char names[160];
    bool said = path.len > 0;
    if (!said && cell->suspended != NULL && cell->suspended->next == NULL) {
        *ret = cell->suspended;
        return RV_OK;
    }
    *ret = NULL;
    if (said && rv__suspension_at(cell, path, ret) < 0)
        return rv__nomem(err);
    if (*ret != NULL)
        return RV_OK;
    list_paths(cell, names, sizeof names);
    if (said)
        return rv__fail(err, RV_ESTATE, "nothing at '%.60s' waits for a decision; these do: %s",
                        path.at, names);
    return rv__fail(err, RV_ESTATE, "several nodes wait for a decision, name one: %s", names);
}

/* How many suspensions would be left. A stage that is restarted ends all that are in it. */
static int64_t left_after(const struct rv__cell *cell, const struct rv__suspension *decided,
                          enum rv__decision decision)
{
    return rv__suspension_count(cell) -
           (decision == DECISION_RESTART ? rv__suspensions_below(decided->actor) : 1);
}

/* The error of an aborted run, with the path of the state that was decided about; else of the top-level node. */
static struct rv__blob *aborted_with(const struct rv__cell *cell, const struct rv__suspension *one,
                                     const struct rv__blob *why)
{
    int64_t vector[RV__PLAN_MAX_DEPTH];
    if (one->which == 0)
        return rv__error_at(why, aborted_node(cell->root), NULL, NULL);
    (void)rv__actor_vector(one->actor, vector);
    return rv__error_at(why, NULL, &one->actor->node->bodies[one->which - 1], vector);
}

static int decided(struct rv__turn *turn, const struct rv__msg *msg, enum rv__decision decision,
                   rv_error *err)
{
    struct rv__cell *cell = turn->cell;
    struct rv__suspension *one = NULL;
    if (cell->status != RUN_SUSPENDED || cell->suspended == NULL)
        return rv__fail(err, RV_ESTATE, "the run is %s: there is nothing to decide",
                        rv__run_status_name(cell->status));
    int rc = find_decided(cell, msg->name, &one, err);
    if (rc < 0)
        return rc;
    assert(one != NULL);
    if (one->which == 0 && (decision == DECISION_SKIP || decision == DECISION_RESTART))
        return rv__fail(err, RV_ESTATE,
                        "'%s' is for the states of a stage: this takes resume or abort",
                        rv__decision_name(decision));
    struct rv__fact fact = { .kind = FACT_RUN_RESUMED, .node = RV__NO_NODE };
    struct rv__blob *why = msg->error != NULL ? with_cause(msg->error, one->why) : NULL;
    if (msg->error != NULL && why == NULL)
        return rv__nomem(err);
    if (decision == DECISION_ABORT) {
        fact.kind = FACT_RUN_ABORTED;
        fact.error = aborted_with(cell, one, why != NULL ? why : one->why);
        rv__blob_unref(why);
        if (fact.error == NULL)
            return rv__nomem(err);
    } else {
        fact.error = why;
        fact.decision = decision;
        fact.left = left_after(cell, one, decision);
        if (one->actor != NULL) {
            fact.actor = one->actor->id;
            fact.node = rv__actor_about(one->actor)->id;
            fact.which = one->which;
        }
    }
    rc = rv__say(turn, &fact, err);
    rv__blob_unref(fact.error);
    return rc;
}

int rv__flow_send(struct rv__cell *cell, const struct rv__msg *msg, struct rv__facts *facts,
                  rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = msg->now_ms, .by = msg->by };
    switch (msg->kind) {
    case MSG_DONE:
    case MSG_FAILED:
    case MSG_PARK:
    case MSG_NOTE:
    case MSG_TIMER:
    case MSG_GIVEN:
    case MSG_LOST: return work_send(&turn, msg, err);
    case MSG_READ: return say_read(&turn, msg, err);
    case MSG_ANSWER: return answer(&turn, msg, err);
    case MSG_SIGNAL: return signal_run(&turn, msg, err);
    case MSG_CANCEL: return cancel(&turn, err);
    case MSG_SUSPEND: return suspend(&turn, msg, err);
    case MSG_RESUME: return decided(&turn, msg, DECISION_RESUME, err);
    case MSG_ABORT: return decided(&turn, msg, DECISION_ABORT, err);
    case MSG_SKIP: return decided(&turn, msg, DECISION_SKIP, err);
    case MSG_RESTART: return decided(&turn, msg, DECISION_RESTART, err);
    case MSG_KINDS: break;
    }
    return rv__fail(err, RV_EINVAL, "no such message");
}

/* ------------------------------------------------------------------------ pump and grant --- */

/* Advance this actor by one fact. */
static int advance(struct rv__turn *turn, struct rv__actor *actor, rv_error *err)
{
    if (actor->crashes > turn->cell->max_crashes && !RV__BUG(15) &&
        (actor->phase == PHASE_READY || actor->phase == PHASE_TO_EVAL))
        return rv__suspend(turn, actor, err);
    if (actor->is_frame)
        return rv__frame_advance(turn, actor, err);
    if (rv__is_step(actor->node))
        return rv__step_advance(turn, actor, err);
    switch ((enum rv__phase)actor->phase) {
    case PHASE_BEGIN: return rv__node_begin(turn, actor->owner, actor, actor->node, err);
    case PHASE_TO_EVAL: return rv__eval_start(turn, actor, err);
    case PHASE_EVALUATED: return rv__node_evaluated(turn, actor, err);
    case PHASE_RUNNING: return rv__flow_kind(actor->node)->advance(turn, actor, err);
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

/* What was suspended has ended meanwhile, because the attempt around it timed out. */
static int say_unneeded(struct rv__turn *turn, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_RUN_RESUMED, .node = RV__NO_NODE };
    return rv__say(turn, &fact, err);
}

int rv__flow_pump(struct rv__cell *cell, int64_t now_ms, struct rv__facts *facts, rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms };
    size_t from = facts->json.len + facts->row_bytes;
    for (int said = 0; rv__cell_more(cell); said++) {
        if (said == cell->turn_facts ||
            facts->json.len + facts->row_bytes - from > (size_t)RV__TURN_BYTES)
            return 1;
        struct rv__actor *next = cell->ends.first != NULL && !rv__cell_stopped(cell)
                                     ? cell->ends.first
                                     : cell->todo.first;
        bool orphaned = cell->status == RUN_SUSPENDED && cell->suspended == NULL;
        int rc = orphaned ? say_unneeded(&turn, err) : advance(&turn, next, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* What was begun comes before new bodies. */
static struct rv__actor *pick(const struct rv__cell *cell, enum rv__lane lane)
{
    struct rv__actor *actor = cell->ready[lane].first;
    return actor != NULL ? actor : cell->range[lane].first;
}

/* Continue until work has taken the place, or no work is left for it. */
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
        /* It has begun a body or node that wants the same place: continue with that one. */
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

bool rv__cell_first(const struct rv__cell *cell, enum rv__lane lane, const struct rv__node **node,
                    int *eval, const struct rv__body **body, enum rv__lane *plain)
{
    const struct rv__actor *actor = pick(cell, lane);
    if (actor == NULL)
        return false;
    struct rv__first first = rv__actor_first(cell, actor);
    *node = first.node;
    *eval = first.eval;
    *body = first.body;
    *plain = rv__first_lane(cell, &first);
    return true;
}

int rv__flow_grant(struct rv__cell *cell, enum rv__lane lane, int64_t now_ms,
                   struct rv__facts *facts, rv_error *err)
{
    return rv__flow_grant_ticket(cell, lane, 0, now_ms, facts, err);
}

int rv__flow_grant_ticket(struct rv__cell *cell, enum rv__lane lane, uint32_t ticket,
                          int64_t now_ms, struct rv__facts *facts, rv_error *err)
{
    struct rv__turn turn = { .cell = cell, .facts = facts, .now_ms = now_ms };
    if (cell->status == RUN_SUSPENDED || lane == LANE_NONE || lane == LANE_NOBODY)
        return 0;
    cell->place = lane;
    cell->ticket = ticket;
    int rc = start_one(&turn, lane, err);
    cell->place = LANE_NONE;
    cell->ticket = 0;
    return rc;
}
