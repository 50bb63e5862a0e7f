/* reference.c: a naive interpreter of plans, written from the specification (SPEC: steps, attempts,
 * control flow) for clarity. It shares no code with src/flow and knows no actors, turns or facts: it
 * walks the plan and asks for the outcome of each leaf and each evaluation,
 *
 *   - of the record of a run: what follows from those outcomes is then exact, whatever the timing;
 *   - of the oracle, before or after a run: what the outcome must be. Where it depends on timing
 *     (who of several was first) it says "$any".
 *
 * Recursion follows the plan, which is not deep. */
#include "reference.h"

#include <stdlib.h>

#include "base/json.h"

json_t *ref_any(void)
{
    return json_string("$any");
}

json_t *ref_parse(struct rv__str text)
{
    json_t *value = NULL;
    rv_error err;
    if (rv__json_load(text, &value, &err) < 0) {
        fprintf(stderr, "reference: %s in %.*s\n", err.message, RV__ARG(text));
        abort();
    }
    return value;
}

json_t *ref_parse_blob(const struct rv__blob *blob, const char *none)
{
    return ref_parse(blob != NULL ? rv__blob_str(blob) : rv__str(none));
}

/* The error of what failed by itself, with where that was: a node, or (NULL) a body. Takes the error. */
json_t *ref_placed(json_t *error, const struct rv__node *node, const struct rv__body *body,
                   struct at at)
{
    struct rv__buf path;
    rv__buf_init(&path, SIZE_MAX);
    if (node != NULL)
        rv__node_path(node, at.vector, &path);
    else
        rv__body_path(body, at.vector, &path);
    json_object_set_new(error, "path", json_stringn(path.text, path.len));
    rv__buf_done(&path);
    return error;
}

/* One of the engine's own making. */
json_t *ref_own_error(const char *code, const struct rv__node *node, struct at at)
{
    return ref_placed(json_pack("{s:s,s:s}", "message", "$any", "code", code), node, NULL, at);
}

static bool is_any(const json_t *value)
{
    return json_is_string(value) && strcmp(json_string_value(value), "$any") == 0;
}

bool json_agrees(const json_t *expected, const json_t *actual)
{
    if (is_any(expected))
        return actual != NULL;
    if (json_typeof(expected) != json_typeof(actual))
        return false;
    if (json_is_object(expected)) {
        const char *key;
        json_t *value;
        if (json_object_size(expected) != json_object_size(actual))
            return false;
        json_object_foreach ((json_t *)expected, key, value) {
            const json_t *other = json_object_get(actual, key);
            if (other == NULL || !json_agrees(value, other))
                return false;
        }
        return true;
    }
    if (json_is_array(expected)) {
        if (json_array_size(expected) != json_array_size(actual))
            return false;
        for (size_t i = 0; i < json_array_size(expected); i++)
            if (!json_agrees(json_array_get(expected, i), json_array_get(actual, i)))
                return false;
        return true;
    }
    return json_equal(expected, actual);
}

void ref_end_done(struct end *end)
{
    json_decref(end->result);
    json_decref(end->state);
    json_decref(end->error);
    end->result = end->state = end->error = NULL;
}

const char *ref_status_name(enum rv__status status)
{
    static const char *const names[STATUSES] = { "pending", "running", "waiting_retry", "completed",
                                                 "failed",  "skipped", "cancelled" };
    return names[status];
}

/* {result, state, status, error?}; takes the first two from `end`. */
json_t *ref_entry(struct end *end)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "result", end->result != NULL ? end->result : json_null());
    json_object_set_new(entry, "state", end->state != NULL ? end->state : json_object());
    json_object_set_new(entry, "status", json_string(ref_status_name(end->status)));
    if (end->error != NULL && end->status == STATUS_FAILED)
        json_object_set(entry, "error", end->error);
    end->result = end->state = NULL;
    return entry;
}

static json_t *plain_entry(enum rv__status status)
{
    struct end end = { .status = status };
    return ref_entry(&end);
}

void ref_put(json_t *map, struct rv__str alias, json_t *value)
{
    json_object_setn_new(map, alias.at, alias.len, value);
}

struct spot ref_spot(const struct reference *ref, const struct rv__node *node, struct at at)
{
    return (struct spot){ ref->plan->keys[node->id], at.vector, at.depth };
}

const struct rec_inst *ref_inst(const struct reference *ref, const struct rv__node *node,
                                struct at at)
{
    return record_find(ref->rec, node->id, at.vector, at.depth);
}

/* --------------------------------------------------------------------------- evaluations --- */

enum known { OPEN, VALUE, FAILED };

/* An error as a function of an engine tells it: rv_fail() and rv_complete() say the message, and no more. */
static json_t *as_told(const struct reference *ref, json_t *error)
{
    if (!ref->by_engine)
        return error;
    json_t *told = json_pack("{s:O}", "message", json_object_get(error, "message"));
    json_decref(error);
    return told;
}

/* The value of an evaluation of this node; FAILED: *ret is its error. */
static enum known evaluated(const struct reference *ref, const struct rv__node *node, struct at at,
                            enum rv__eval eval, int64_t test, json_t **ret)
{
    if (ref->rec != NULL) {
        const struct rec_inst *inst = ref_inst(ref, node, at);
        if (inst == NULL || inst->evals[eval].t < 0)
            return OPEN;
        const struct rec_value *v = &inst->evals[eval];
        *ret = ref_parse_blob(v->value, "null");
        if (v->failed)
            *ret = ref_placed(*ret, node, NULL, at);
        return v->failed ? FAILED : VALUE;
    }
    struct rv__buf text;
    rv__buf_init(&text, SIZE_MAX);
    bool good = oracle_eval(ref->oracle, ref_spot(ref, node, at), node, (int)eval, test, &text);
    *ret = ref_parse(rv__buf_view(&text));
    rv__buf_done(&text);
    if (!good)
        *ret = ref_placed(as_told(ref, *ret), node, NULL, at);
    return good ? VALUE : FAILED;
}

/* Truth is jq's. */
static bool is_true(const json_t *value)
{
    return !json_is_false(value) && !json_is_null(value);
}

/* The input of a workflow, if it has one of its own. VALUE also if there is nothing to evaluate. */
static enum known input_of(const struct reference *ref, const struct rv__body *body, struct at at,
                           int64_t index, json_t **error)
{
    bool tool = rv__body_is_tool(body);
    if (!tool && (body->owner == NULL || body->wrap == NULL || body->wrap->input.kind == EXPR_NONE))
        return VALUE;
    if (ref->rec != NULL) {
        bool iterates = body->owner->kind == NODE_LOOP || body->owner->kind == NODE_FOREACH;
        struct at outer = { at.vector, iterates || tool ? at.depth - 1 : at.depth };
        const struct rec_inst *inst = ref_inst(ref, body->owner, outer);
        const struct rec_body *b = inst == NULL ? NULL
                                   : tool
                                       ? record_attempt(inst, body->index, at.vector[at.depth - 1])
                                       : record_body(inst, index);
        if (b == NULL || b->input.t < 0)
            return OPEN;
        if (b->input.failed)
            *error = ref_placed(ref_parse_blob(b->input.value, "{}"), NULL, body, at);
        return b->input.failed ? FAILED : VALUE;
    }
    struct spot spot = { plan_body_key(ref->plan, body), at.vector, at.depth };
    struct rv__buf text;
    rv__buf_init(&text, SIZE_MAX);
    bool good = oracle_eval(ref->oracle, spot, body->owner, EVAL_INPUT, 0, &text);
    if (!good)
        *error = ref_placed(as_told(ref, ref_parse(rv__buf_view(&text))), NULL, body, at);
    rv__buf_done(&text);
    return good ? VALUE : FAILED;
}

/* --------------------------------------------------------------------------------- steps --- */

int ref_max_attempts(const struct rv__step_config *config, const struct outcome *o)
{
    int configured = config->max_attempts;
    if (o->behavior == BEHAVIOR_RETRY && o->max_attempts > 0)
        return configured > 0 && configured < o->max_attempts ? configured : o->max_attempts;
    return configured > 0 ? configured : 1;
}

static json_t *oracle_json(const struct reference *ref, struct spot spot, int attempt, int what)
{
    struct rv__buf text;
    rv__buf_init(&text, SIZE_MAX);
    if (what <= 1)
        oracle_result(ref->oracle, spot, attempt, what == 1, &text);
    else if (what == 2)
        oracle_state(ref->oracle, spot, attempt, &text);
    else
        oracle_error(ref->oracle, spot, attempt, what == 4, &text);
    json_t *value = ref_parse(rv__buf_view(&text));
    rv__buf_done(&text);
    return what >= 3 ? as_told(ref, value) : value;
}

/* A delay or a signal, foreseen. */
static void foresee_wait(struct reference *ref, const struct rv__node *node, struct at at,
                         struct end *ret)
{
    const struct rv__step_config *config = &node->step.config;
    if (node->step.kind == STEP_DELAY && config->timeout_ms > 0 &&
        config->timeout_ms < node->step.delay_ms) { /* so does each attempt */
        ret->status = STATUS_FAILED;
        ret->hard = !config->continue_on_error;
        ret->error = ref_own_error("timeout", node, at);
        return;
    }
    ret->status = STATUS_COMPLETED;
    if (node->step.kind == STEP_DELAY)
        ret->result = json_pack("{s:s,s:s,s:s}", "delayedMs", "$any", "startedAt", "$any",
                                "endedAt", "$any");
    else
        ret->result = ref_any();
    if (node->step.kind == STEP_SIGNAL && node->step.signal_timeout_ms > 0 &&
        rv__str_none(node->step.signal_default))
        ref->unsure = true; /* who is first, the signal or the time-out? */
}

/* All attempts of a step, one after the other, as the oracle says they will go. */
static void foresee_step(struct reference *ref, const struct rv__node *node, struct at at,
                         struct end *ret)
{
    const struct rv__step_config *config = &node->step.config;
    struct spot spot = ref_spot(ref, node, at);
    if (node->step.parks) {
        foresee_wait(ref, node, at, ret);
        return;
    }
    for (int attempt = 1;; attempt++) {
        struct outcome o;
        oracle_attempt(ref->oracle, spot, node, attempt, &o);
        bool timed_out = o.fate == FATE_HANGS || (o.fate == FATE_PARKED && o.answer_ms < 0);
        bool answered = o.fate == FATE_PARKED && !timed_out;
        if (o.fate == FATE_SKIPPED) {
            ret->status = STATUS_SKIPPED; /* and its result null, whatever was returned */
            ret->state = oracle_json(ref, spot, attempt, 2);
            if (ref->by_engine) /* rv_skip() is a state like any other */
                json_object_set_new(ret->state, "skipped", json_true());
            return;
        }
        if (o.fate == FATE_DONE || (answered && !o.answer_fails)) {
            ret->status = STATUS_COMPLETED;
            ret->result = oracle_json(ref, spot, attempt, answered ? 1 : 0);
            ret->state = ref->by_engine && answered ? json_object()
                                                    : oracle_json(ref, spot, attempt, 2);
            return;
        }
        /* It failed. */
        if (timed_out || answered)
            o.behavior = BEHAVIOR_PLAIN;
        bool may_retry = o.behavior == BEHAVIOR_RETRY ||
                         (timed_out && config->on_timeout == ON_TIMEOUT_RETRY);
        if (!timed_out && o.behavior == BEHAVIOR_PLAIN) {
            struct rv__buf text;
            rv__buf_init(&text, SIZE_MAX);
            oracle_error(ref->oracle, spot, attempt, answered, &text);
            /* A function of an engine fails with a message and nothing else. */
            struct rv__str codes = ref->by_engine ? rv__str("{}") : rv__buf_view(&text);
            may_retry = lists_say_retry(config, codes, true);
            rv__buf_done(&text);
        }
        if (may_retry && attempt < ref_max_attempts(config, &o))
            continue;
        ret->status = STATUS_FAILED;
        ret->hard = o.behavior == BEHAVIOR_STOP ||
                    (o.behavior != BEHAVIOR_CONTINUE && !config->continue_on_error);
        ret->error = timed_out ? ref_own_error("timeout", node, at)
                               : ref_placed(oracle_json(ref, spot, attempt, answered ? 4 : 3), node,
                                            NULL, at);
        bool stateless = timed_out || (ref->by_engine && answered); /* rv_complete() gives none */
        ret->state = stateless ? json_object() : oracle_json(ref, spot, attempt, 2);
        bool panics = ref->by_engine && o.fate == FATE_FAILED && o.behavior == BEHAVIOR_PLAIN &&
                      oracle_panics(ref->oracle, spot, attempt);
        if (panics) {
            const char *plain = json_string_value(json_object_get(ret->error, "message"));
            json_object_set_new(ret->error, "message", json_sprintf("panic: %s", plain));
        }
        return;
    }
}

static bool handler_over(const struct reference *ref, const struct rv__node *handler, struct at at)
{
    if (handler == NULL || ref->rec == NULL)
        return true;
    const struct rec_inst *inst = ref_inst(ref, handler, at);
    return inst != NULL && inst->ended >= 0;
}

/* All that a workflow runs after its nodes. */
static bool handlers_over(const struct reference *ref, const struct rv__body *body, struct at at,
                          bool failed)
{
    if (body->wrap == NULL)
        return true;
    bool told = !failed || (ref->rec != NULL && ref->rec->past_handler && body->owner == NULL) ||
                handler_over(ref, body->wrap->on_error, at);
    /* Who cancels a run again ends it without; whether that was so, judge.c asks. */
    bool left_out = ref->rec != NULL && body->owner == NULL && ref->rec->run_ended >= 0;
    return told && (left_out || handler_over(ref, body->wrap->finally, at));
}

static void recorded_step(const struct reference *ref, const struct rv__node *node, struct at at,
                          struct end *ret)
{
    const struct rec_inst *inst = ref_inst(ref, node, at);
    if (inst == NULL || inst->ended < 0) {
        ret->ended = false;
        return;
    }
    ret->status = (enum rv__status)inst->status;
    if (ret->status == STATUS_COMPLETED)
        ret->result = ref_parse_blob(inst->result, "null");
    ret->state = ref_parse_blob(inst->state, "{}");
    if (ret->status == STATUS_FAILED) {
        ret->hard = inst->hard;
        ret->error = ref_placed(ref_parse_blob(inst->error, "{}"), node, NULL, at);
        ret->ended = handler_over(ref, node->on_error, at); /* the sequence waits for it */
    }
}

/* ----------------------------------------------------------------------------- sequences --- */

enum seq { SEQ_OPEN, SEQ_ENDED, SEQ_FAILED };

/* Was the run aborted when this node had ended, and the next had not begun? */
static bool aborted_after(const struct reference *ref, const struct rv__body *body, uint32_t i,
                          struct at at)
{
    if (body->owner != NULL)
        return false;
    const struct rec_inst *next = i + 1 < body->count ? ref_inst(ref, body->nodes[i + 1], at)
                                                      : NULL;
    return ref->rec->aborted != NULL || (next != NULL && next->aborted);
}

/* What there is of a node that is cancelled now. A step that has failed already, and whose handler runs, has failed. */
json_t *ref_cut_short(const struct rv__node *node, struct end *end)
{
    if (node->kind == NODE_STEP && end->status == STATUS_FAILED)
        return ref_entry(end);
    if (node->kind == NODE_CHAT) { /* what it used is told in any case */
        end->status = STATUS_CANCELLED;
        return ref_entry(end);
    }
    json_decref(end->state);
    end->state = NULL;
    end->status = STATUS_CANCELLED;
    return ref_entry(end);
}

/* Run the nodes of a body: their entries go to `map`; of an open one also that of the node in flight, as
 * if it were cancelled now. *last: the result of the last one that ended; *error: why it failed. Both
 * may be NULL. `failed`: which node. `some`: has anything ended in it? */
static enum seq sequence_to(struct reference *ref, const struct rv__body *body, struct at at,
                            int64_t index, json_t *map, json_t **last, json_t **error,
                            const struct rv__node **failed, bool *some)
{
    json_t *why = NULL;
    *some = false;
    if (failed != NULL)
        *failed = NULL;
    enum known input = input_of(ref, body, at, index, &why);
    if (input == OPEN)
        return SEQ_OPEN;
    if (input == FAILED) { /* it never began: its handler has nothing to say */
        if (error != NULL)
            *error = why;
        else
            json_decref(why);
        return SEQ_FAILED;
    }
    for (uint32_t i = 0; i < body->count; i++) {
        const struct rv__node *node = body->nodes[i];
        struct end end = ref_node_end(ref, node, at);
        if (end.reached && !end.ended) {
            *some |= end.some;
            ref_put(map, node->alias, ref_cut_short(node, &end));
        }
        if (!end.reached || !end.ended) {
            ref_end_done(&end);
            return SEQ_OPEN;
        }
        *some = true;
        if (last != NULL) {
            json_decref(*last);
            *last = end.result != NULL ? json_incref(end.result) : json_null();
        }
        bool hard = end.hard, waits = end.undescribed && !aborted_after(ref, body, i, at);
        ref_put(map, node->alias, ref_entry(&end));
        json_t *e = end.error;
        end.error = NULL;
        if (!hard) {
            json_decref(e);
            if (waits)
                return SEQ_OPEN;
            continue;
        }
        if (failed != NULL)
            *failed = node;
        if (error != NULL)
            *error = e;
        else
            json_decref(e);
        return handlers_over(ref, body, at, true) ? SEQ_FAILED : SEQ_OPEN;
    }
    if (body->owner == NULL && ref->rec != NULL && ref->rec->aborted != NULL) {
        *failed = body->nodes[body->count - 1]; /* behind the last one, it stands for the run */
        *error = ref_parse_blob(ref->rec->aborted, "{}");
        if (!ref->rec->aborted_at_state)
            *error = ref_placed(*error, *failed, NULL, at);
        return handlers_over(ref, body, at, true) ? SEQ_FAILED : SEQ_OPEN;
    }
    return handlers_over(ref, body, at, false) ? SEQ_ENDED : SEQ_OPEN;
}

static enum seq sequence(struct reference *ref, const struct rv__body *body, struct at at,
                         int64_t index, json_t *map, json_t **last, json_t **error,
                         const struct rv__node **failed)
{
    bool some;
    return sequence_to(ref, body, at, index, map, last, error, failed, &some);
}

/* --------------------------------------------------------------------------- supervisors --- */

void ref_fail(struct end *ret, json_t *error)
{
    ret->status = STATUS_FAILED;
    ret->hard = true;
    json_decref(ret->error);
    ret->error = error;
}

/* How a node ends whose only body has. */
static void end_with(struct end *ret, enum seq seq, json_t *error)
{
    if (seq == SEQ_FAILED)
        ref_fail(ret, error);
    else
        json_decref(error);
    ret->ended = seq != SEQ_OPEN;
}

/* A child of a concurrent shows its nodes, whatever became of it. */
static bool is_child(const struct rv__node *node)
{
    return node->kind == NODE_WORKFLOW && node->body->bare &&
           node->body->owner->kind == NODE_CONCURRENT;
}

static void workflow_end(struct reference *ref, const struct rv__node *node, struct at at,
                         struct end *ret)
{
    json_t *map = json_object(), *last = NULL, *error = NULL;
    bool some = false;
    enum seq seq = sequence_to(ref, &node->bodies[0], at, 0, map, &last, &error, NULL, &some);
    end_with(ret, seq, error);
    if (is_child(node)) {
        ret->some |= some;
        ret->result = json_incref(map);
    } else if (seq == SEQ_ENDED) {
        ret->result = json_incref(last);
    }
    json_decref(last);
    json_decref(map);
}

static void branch_end(struct reference *ref, const struct rv__node *node, struct at at,
                       struct end *ret)
{
    json_t *value = NULL, *error = NULL;
    enum known known = evaluated(ref, node, at, EVAL_IF, 0, &value);
    if (known != VALUE) {
        ret->ended = known == FAILED;
        if (known == FAILED)
            ref_fail(ret, value);
        return;
    }
    int taken = is_true(value) ? 0 : 1;
    json_decref(value);
    if (ref->rec != NULL && record_body(ref_inst(ref, node, at), taken) == NULL) {
        ret->ended = false; /* decided, and not gone there yet */
        return;
    }
    const struct rv__body *other = &node->bodies[1 - taken];
    json_t *map = json_object();
    enum seq seq = sequence_to(ref, &node->bodies[taken], at, taken, map, NULL, &error, NULL,
                               &ret->some);
    end_with(ret, seq, error);
    for (uint32_t i = 0; i < other->count; i++)
        if (rv__body_find(&node->bodies[taken], other->nodes[i]->alias) == NULL)
            ref_put(map, other->nodes[i]->alias, plain_entry(STATUS_SKIPPED));
    ret->result = json_pack("{s:s,s:o}", "taken", taken == 0 ? "then" : "else", "results", map);
}

struct at ref_deeper(struct at at, int64_t index, int64_t *room)
{
    if (at.depth > 0)
        memcpy(room, at.vector, at.depth * sizeof *room);
    room[at.depth] = index;
    return (struct at){ room, at.depth + 1 };
}

static void loop_end(struct reference *ref, const struct rv__node *node, struct at at,
                     struct end *ret)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    bool by_while = node->loop.while_.kind != EXPR_NONE;
    enum rv__eval eval = by_while ? EVAL_WHILE : EVAL_UNTIL;
    json_t *rounds = json_array();
    bool never_ran = false;
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    int64_t done = 0;
    ret->ended = false;
    for (;;) {
        /* Tested before an iteration, or after it. In the record only the last test is kept: those
         * before an iteration that began said so. */
        bool began = inst == NULL || record_body(inst, done) != NULL;
        bool test = by_while || done > 0;
        if (test && !(inst != NULL && began)) {
            json_t *value = NULL;
            int64_t tests = done + by_while;
            enum known known = OPEN;
            if (inst == NULL || inst->eval_counts[eval] == tests)
                known = evaluated(ref, node, at, eval, tests - 1, &value);
            if (known == OPEN)
                break;
            if (known == FAILED) {
                ref_fail(ret, value);
                ret->ended = true;
                never_ran = done == 0;
                break;
            }
            bool truth = is_true(value);
            json_decref(value);
            if (truth != by_while) {
                ret->status = STATUS_COMPLETED;
                ret->ended = true;
                break;
            }
            if (done >= node->loop.max_iterations) { /* still unmet */
                ref_fail(ret, ref_own_error("maxIterations", node, at));
                ret->ended = true;
                break;
            }
        }
        if (!began)
            break;
        json_t *map = json_object(), *error = NULL;
        bool some;
        enum seq seq = sequence_to(ref, &node->bodies[0], ref_deeper(at, done, room), done, map,
                                   NULL, &error, NULL, &some);
        bool open = seq == SEQ_OPEN || (inst != NULL && record_body(inst, done)->ended < 0);
        ret->some |= some || !open;
        if (open && !some) {
            json_decref(map);
            json_decref(error);
            break;
        }
        if (node->loop.keep == KEEP_LAST)
            json_array_clear(rounds);
        json_t *round = json_pack("{s:I,s:o}", "index", (json_int_t)done, "results", map);
        if (node->loop.keep != KEEP_NONE)
            json_array_append_new(rounds, round);
        else
            json_decref(round);
        if (open) {
            json_decref(error);
            break;
        }
        done++;
        if (seq == SEQ_FAILED) {
            ref_fail(ret, error);
            ret->ended = true;
            break;
        }
        json_decref(error);
    }
    ret->result = json_pack("{s:o}", "iterations", rounds);
    if (never_ran) { /* the specification does not say what the result of nothing is */
        json_decref(ret->result);
        ret->result = ref_any();
    }
}

static void foreach_end(struct reference *ref, const struct rv__node *node, struct at at,
                        struct end *ret)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    json_t *items = NULL;
    enum known known = evaluated(ref, node, at, EVAL_ITEMS, 0, &items);
    if (known != VALUE) {
        ret->ended = known == FAILED;
        if (known == FAILED)
            ref_fail(ret, items);
        return;
    }
    if (!json_is_array(items)) {
        json_decref(items);
        ref_fail(ret, ref_own_error("notArray", node, at));
        ret->result = ref_any();
        return;
    }
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    json_t *list = json_array(), *first_error = NULL;
    int64_t first_failed = INT64_MAX, failures = 0, open = 0, begun = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const struct rec_body *b = inst != NULL ? record_body(inst, (int64_t)i) : NULL;
        if (inst != NULL && b == NULL) {
            if (node->foreach.parallel && node->foreach.concurrency == 0)
                open++; /* all of them count as started */
            continue;
        }
        begun++;
        json_t *map = json_object(), *error = NULL;
        bool some;
        enum seq seq = sequence_to(ref, &node->bodies[0], ref_deeper(at, (int64_t)i, room),
                                   (int64_t)i, map, NULL, &error, NULL, &some);
        bool in_flight = seq == SEQ_OPEN || (b != NULL && b->ended < 0);
        open += in_flight;
        ret->some |= some || !in_flight;
        if (some || !in_flight)
            json_array_append_new(list, json_pack("{s:O,s:i,s:O}", "item", json_array_get(items, i),
                                                  "index", (int)i, "results", map));
        json_decref(map);
        if (seq != SEQ_FAILED || in_flight) {
            json_decref(error);
            continue;
        }
        failures++;
        if (b == NULL && failures > 1) { /* foreseen: who was first? */
            json_decref(error);
            json_decref(first_error);
            first_error = ref_any();
        } else if (b == NULL || b->ended < first_failed) {
            first_failed = b != NULL ? b->ended : 0;
            json_decref(first_error);
            first_error = error;
        } else {
            json_decref(error);
        }
        if (inst == NULL && !node->foreach.parallel && !node->foreach.collect)
            break; /* sequential: later ones are not run */
    }
    if (node->foreach.collect) { /* all are run, and it completes */
        failures = 0;
        json_decref(first_error);
    }
    bool all = begun == (int64_t)json_array_size(items);
    ret->ended = open == 0 && (failures > 0 || all);
    ret->result = json_pack("{s:o}", "iterations", list);
    if (failures > 0)
        ref_fail(ret, first_error);
    if (inst == NULL && failures > 0 && node->foreach.concurrency > 0) {
        json_decref(ret->result); /* which ones were begun by then? */
        ret->result = ref_any();
        json_decref(ret->error);
        ret->error = ref_any();
    }
    json_decref(items);
}

/* One child of a concurrent: its entry, whether it completed, failed hard, or neither. */
struct child {
    json_t *entry, *error;
    bool ended, good, bad;
    bool some; /* not ended: something has, in it */
    int64_t ended_at;
};

static struct child child_end(struct reference *ref, const struct rv__node *node, uint32_t which,
                              struct at at, const struct rec_inst *inst)
{
    const struct rv__body *body = &node->bodies[which];
    const struct rec_body *b = inst != NULL ? record_body(inst, which) : NULL;
    struct child child = { 0 };
    json_t *map = json_object();
    enum seq seq = SEQ_OPEN;
    if (inst == NULL || b != NULL)
        seq = sequence_to(ref, body, at, which, map, NULL, &child.error, NULL, &child.some);
    child.ended = seq != SEQ_OPEN && (b == NULL || b->ended >= 0);
    child.ended_at = b != NULL ? b->ended : 0;
    child.bad = seq == SEQ_FAILED;
    if (!child.ended) { /* when the node ends, this one is cancelled */
        struct end cancelled = { .status = STATUS_CANCELLED };
        if (body->bare && json_object_size(map) > 0) {
            child.entry = json_incref(json_object_iter_value(json_object_iter(map)));
            json_decref(map);
            return child;
        }
        if (!body->bare)
            cancelled.result = json_incref(map);
        child.entry = ref_entry(&cancelled);
        json_decref(map);
        return child;
    }
    if (body->bare) {
        child.entry = json_incref(
            json_object_getn(map, body->nodes[0]->alias.at, body->nodes[0]->alias.len));
        const char *status = json_string_value(json_object_get(child.entry, "status"));
        child.good = strcmp(status, "completed") == 0; /* skipped is not completed */
        json_decref(map);
        return child;
    }
    struct end end = { .status = child.bad ? STATUS_FAILED : STATUS_COMPLETED,
                       .result = map,
                       .error = child.error };
    child.entry = ref_entry(&end);
    child.good = !child.bad;
    return child;
}

static void concurrent_end(struct reference *ref, const struct rv__node *node, struct at at,
                           struct end *ret)
{
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    if (node->concurrent.detached) { /* the sequence goes on at once */
        ret->ended = inst == NULL || inst->ended >= 0;
        if (ret->ended) /* a cancel may come before it is let go */
            ret->state = json_pack("{s:b}", "detached", 1);
        return;
    }
    json_t *map = json_object(), *error = NULL;
    int64_t good = 0, bad = 0, ended = 0, first_bad = INT64_MAX, children = node->body_count;
    for (uint32_t i = 0; i < node->body_count; i++) {
        struct child child = child_end(ref, node, i, at, inst);
        ref_put(map, node->bodies[i].alias, child.entry);
        ret->some |= child.some || child.ended;
        ended += child.ended;
        good += child.ended && child.good;
        if (child.ended && child.bad) {
            bad++;
            if (inst == NULL && bad > 1) {
                json_decref(child.error);
                json_decref(error);
                error = ref_any();
            } else if (inst == NULL || child.ended_at < first_bad) {
                json_decref(error);
                error = child.error;
                first_bad = child.ended_at;
            } else {
                json_decref(child.error);
            }
        } else {
            json_decref(child.error);
        }
    }
    int64_t join = node->concurrent.join;
    bool hurry = false; /* it may end before all children have */
    bool failed = false;
    ret->ended = ended == children;
    if (join != RV__JOIN_ALL) {
        hurry = good >= join ? join < children : children - (ended - good) < join;
        failed = good < join;
        ret->ended = good >= join || children - (ended - good) < join;
    } else if (bad > 0 && !node->concurrent.collect) {
        hurry = children > 1;
        failed = ret->ended = true;
    }
    ret->result = map;
    if (failed)
        ref_fail(ret, error != NULL ? error : ref_own_error("join", node, at));
    else
        json_decref(error);
    if (inst == NULL && hurry) {
        json_decref(ret->result);
        ret->result = ref_any();
        if (failed && !(bad == 1 && join == RV__JOIN_ALL)) {
            json_decref(ret->error);
            ret->error = ref_any();
        }
    }
}

/* All that it waited for is there; but the run may have been ended before it was looked at. */
static struct end settled(struct reference *ref, const struct rv__node *node, struct at at,
                          struct end end)
{
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    if (inst != NULL && inst->ended < 0) {
        ref->overdue |= end.ended && inst == ref->asked;
        end.ended = false;
    }
    return end;
}

/* What ends without an attempt has its description made when it has completed; one that cannot be made,
 * or has not been yet, is not there. */
static void describe(const struct reference *ref, const struct rv__node *node, struct at at,
                     struct end *end)
{
    json_t *text = NULL;
    if (node->description.kind == EXPR_NONE || !end->ended || end->status != STATUS_COMPLETED)
        return;
    if (end->state != NULL && json_object_get(end->state, "description") != NULL)
        return; /* it has said so itself */
    enum known known = evaluated(ref, node, at, EVAL_DESCRIPTION, 0, &text);
    end->undescribed = known == OPEN;
    if (known != VALUE) {
        json_decref(text);
        return;
    }
    if (end->state == NULL)
        end->state = json_object();
    json_object_set_new(end->state, "description", text);
}

/* What a node is evaluated for before it begins has failed. */
static struct end failed_before(struct reference *ref, const struct rv__node *node, struct at at,
                                struct end ret, json_t *error)
{
    ref_fail(&ret, error);
    if (node->kind == NODE_STEP) {
        ret.ended = handler_over(ref, node->on_error, at);
        ret.hard = !node->step.config.continue_on_error;
    }
    if (node->kind == NODE_CHAT)
        ret.hard = !node->chat.config.continue_on_error;
    return settled(ref, node, at, ret);
}

/* As far as it got by itself. */
static struct end own_end(struct reference *ref, const struct rv__node *node, struct at at)
{
    struct end ret = { .reached = true, .ended = true, .status = STATUS_COMPLETED };
    if (ref->rec != NULL && ref_inst(ref, node, at)->left_out) {
        ret.status = STATUS_SKIPPED;
        return ret;
    }
    if (node->when.kind != EXPR_NONE) {
        json_t *value = NULL;
        enum known known = evaluated(ref, node, at, EVAL_WHEN, 0, &value);
        if (known == OPEN) {
            ret.ended = false;
            return ret;
        }
        if (known == FAILED)
            return failed_before(ref, node, at, ret, value);
        bool truth = is_true(value);
        json_decref(value);
        if (!truth) {
            ret.status = STATUS_SKIPPED;
            return settled(ref, node, at, ret);
        }
    }
    if (node->kind == NODE_STEP && node->step.input.kind != EXPR_NONE) {
        json_t *value = NULL;
        enum known known = evaluated(ref, node, at, EVAL_INPUT, 0, &value);
        if (known == FAILED)
            return failed_before(ref, node, at, ret, value);
        json_decref(value);
        if (known == OPEN) {
            ret.ended = false;
            return ret;
        }
    }
    if (ref->rec != NULL && node->kind != NODE_STEP && ref_inst(ref, node, at)->started < 0) {
        ret.ended = false; /* it was about to begin */
        return ret;
    }
    switch (node->kind) {
    case NODE_STEP:
        if (ref->rec != NULL)
            recorded_step(ref, node, at, &ret);
        else
            foresee_step(ref, node, at, &ret);
        break;
    case NODE_WORKFLOW: workflow_end(ref, node, at, &ret); break;
    case NODE_BRANCH: branch_end(ref, node, at, &ret); break;
    case NODE_LOOP: loop_end(ref, node, at, &ret); break;
    case NODE_FOREACH: foreach_end(ref, node, at, &ret); break;
    case NODE_CONCURRENT: concurrent_end(ref, node, at, &ret); break;
    case NODE_STAGE: ref_stage_end(ref, node, at, &ret); break;
    case NODE_CHAT: ref_chat_end(ref, node, at, &ret); break;
    case NODE_SEQUENCE: workflow_end(ref, node, at, &ret); break;
    case NODE_KINDS: abort();
    }
    return settled(ref, node, at, ret);
}

struct end ref_node_end(struct reference *ref, const struct rv__node *node, struct at at)
{
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    if (ref->rec != NULL && inst == NULL)
        return (struct end){ 0 };
    struct end ret = own_end(ref, node, at);
    bool aborted = inst != NULL && inst->aborted;
    if (node->kind == NODE_WORKFLOW && (aborted || !ret.ended) && !is_child(node)) {
        json_decref(ret.result); /* of what has not completed there is none */
        ret.result = NULL;
    }
    if (aborted) {
        if (node->kind != NODE_CHAT) { /* which has used what it has used */
            json_decref(ret.state);
            ret.state = NULL;
        }
        json_t *why = ref_parse_blob(inst->error, "{}");
        ref_fail(&ret, ref->rec->aborted_at_state ? why : ref_placed(why, node, NULL, at));
        ret.ended = true;
        return ret;
    }
    describe(ref, node, at, &ret);
    return ret;
}

bool reference_overdue(struct reference *ref, const struct rec_inst *inst)
{
    ref->overdue = false;
    ref->asked = inst;
    struct end end = ref_node_end(ref, ref->plan->plan->nodes[inst->node],
                                  (struct at){ inst->vector, inst->depth });
    ref_end_done(&end);
    return ref->overdue;
}

/* ----------------------------------------------------------------------------------- run --- */

void reference_run(struct reference *ref, struct ref_outcome *ret)
{
    struct at top = { NULL, 0 };
    const struct rv__body *body = &ref->plan->plan->body;
    const struct rv__node *failed = NULL;
    json_t *map = json_object(), *error = NULL;
    enum seq seq = sequence(ref, body, top, 0, map, NULL, &error, &failed);
    *ret = (struct ref_outcome){ .status = seq == SEQ_ENDED    ? RUN_COMPLETED
                                           : seq == SEQ_FAILED ? RUN_FAILED
                                                               : RUN_RUNNING,
                                 .results = map,
                                 .error = error };
    if (failed != NULL) {
        ret->failed_step = failed->alias.at;
        ret->failed_len = failed->alias.len;
    }
}
