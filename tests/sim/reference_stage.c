/* reference_stage.c: the reference of stages: the result of a stage, and what a state gets from those it
 * depends on. Which states begin and when is the model's question: stages.c. */
#include "reference.h"

#include "base/json.h"

/* The beginning of a text: what stands for a description that nobody gave. */
static json_t *cut_text(const char *text)
{
    struct rv__str begin = rv__str_begin(rv__str(text), RV__SUMMARY_BYTES);
    json_t *whole = json_stringn(begin.at, begin.len);
    if (begin.len == strlen(text))
        return whole;
    json_t *cut = json_sprintf("%s…", json_string_value(whole));
    json_decref(whole);
    return cut;
}

/* What its agent says of it; else the beginning of its error or result. How the JSON of a result is spelled
 * nobody knows here, unless it is a text. */
static json_t *description_of(const struct end *end, bool has, enum rv__status status,
                              const json_t *error)
{
    json_t *said = has && end->state != NULL ? json_object_get(end->state, "description") : NULL;
    if (said != NULL && !json_is_null(said))
        return json_incref(said);
    if (status == STATUS_FAILED) {
        const char *message = json_string_value(json_object_get(error, "message"));
        return message == NULL ? ref_any() : cut_text(message);
    }
    if (status != STATUS_COMPLETED || end->result == NULL || json_is_null(end->result))
        return json_null();
    return json_is_string(end->result) ? cut_text(json_string_value(end->result)) : ref_any();
}

/* Why an attempt failed: as its agent did, or because it took too long. */
static json_t *attempt_error(const struct end *end, const struct rv__body *body, struct at at)
{
    if (end->ended && end->status == STATUS_FAILED && end->error != NULL)
        return json_incref(end->error);
    return ref_placed(json_pack("{s:s,s:s}", "message", "$any", "code", "timeout"), NULL, body, at);
}

static json_t *state_shape(enum rv__status status, json_t *result, json_t *description,
                           json_t *error, int64_t attempts, json_t *attachment)
{
    json_t *shape = json_object();
    json_object_set_new(shape, "status", json_string(ref_status_name(status)));
    json_object_set_new(shape, "result", result);
    json_object_set_new(shape, "description", description);
    if (error != NULL)
        json_object_set_new(shape, "error", error);
    json_object_set_new(shape, "attempts", json_integer(attempts));
    if (attachment != NULL)
        json_object_set_new(shape, "attachmentId", attachment);
    return shape;
}

static json_t *attachment_of(const struct rec_inst *inst, uint32_t state, int64_t generation)
{
    return json_string(record_attempt(inst, state, generation)->attachment);
}

/* What there is of a state, by the record. */
static json_t *state_now(struct reference *ref, const struct rv__node *node, uint32_t i,
                         const struct rec_state *state, struct at at, bool *some)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    const struct rv__body *body = &node->bodies[i];
    bool runs = state->phase == REC_RUNNING;
    int64_t generation = runs ? state->generation : state->outcome;
    if (generation == 0)
        return state_shape(STATUS_SKIPPED, json_null(), json_null(), NULL, 0, NULL);
    struct at in = ref_deeper(at, generation, room);
    struct end end = ref_node_end(ref, body->nodes[0], in);
    *some |= !runs || (end.reached && end.ended);
    enum rv__status status = runs ? STATUS_CANCELLED : state->outcome_status;
    /* A step that has failed already, and whose handler is cut short, has said what it had to say. */
    bool has = end.reached && (end.ended || end.status == STATUS_FAILED);
    json_t *error = status == STATUS_FAILED ? attempt_error(&end, body, in) : NULL;
    json_t *shape = state_shape(
        status,
        status == STATUS_COMPLETED && end.result != NULL ? json_incref(end.result) : json_null(),
        description_of(&end, has, status, error), error, state->attempts,
        attachment_of(ref_inst(ref, node, at), i, generation));
    ref_end_done(&end);
    return shape;
}

/* A state that is tried until it completes or has used up its attempts; where more than that decides,
 * nobody can tell beforehand. */
static json_t *state_foreseen(struct reference *ref, const struct rv__node *node, uint32_t i,
                              struct at at)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    const struct rv__body *body = &node->bodies[i];
    const struct rv__state *state = &node->stage.states[i];
    if (state->final || (state->timeout_ms > 0 && body->nodes[0]->kind != NODE_STEP)) {
        ref->unsure = true;
        return ref_any();
    }
    for (int64_t attempt = 1;; attempt++) {
        struct at in = ref_deeper(at, attempt, room);
        struct end end = ref_node_end(ref, body->nodes[0], in);
        bool failed = end.status == STATUS_FAILED, last = attempt > state->max_retry;
        if (failed && !last && state->on_failure == RV__NO_STATE) {
            ref_end_done(&end);
            continue;
        }
        ref->unsure |= failed && (!last || state->critical);
        json_t *error = failed ? attempt_error(&end, body, in) : NULL;
        json_t *shape = state_shape(
            end.status,
            end.status == STATUS_COMPLETED && end.result != NULL ? json_incref(end.result)
                                                                 : json_null(),
            description_of(&end, true, end.status, error), error, attempt, ref_any());
        ref_end_done(&end);
        return shape;
    }
}

void ref_stage_end(struct reference *ref, const struct rv__node *node, struct at at,
                   struct end *ret)
{
    const struct rec_inst *inst = ref->rec != NULL ? ref_inst(ref, node, at) : NULL;
    json_t *map = json_object();
    for (uint32_t i = 0; i < node->body_count; i++)
        ref_put(map, node->bodies[i].alias,
                inst != NULL ? state_now(ref, node, i, &inst->stage.states[i], at, &ret->some)
                             : state_foreseen(ref, node, i, at));
    ret->result = map;
    ret->ended = inst == NULL || stage_over(&inst->stage, node);
    if (inst != NULL) {
        ret->some |= inst->stage.ends > 0;
        if (inst->status == STATUS_FAILED && inst->ended >= 0 && !inst->aborted) {
            /* detached, when its run had ended: nobody could be asked */
            ref_fail(ret, ref_parse_blob(inst->error, "{}"));
            ret->ended = true;
        }
    }
}

json_t *reference_attempt(struct reference *ref, const struct rv__body *body, const int64_t *vector,
                          size_t depth)
{
    struct end end = ref_node_end(ref, body->nodes[0], (struct at){ vector, depth });
    json_t *result = end.result != NULL ? json_incref(end.result) : json_null();
    ref_end_done(&end);
    return result;
}

json_t *reference_inputs(struct reference *ref, const struct rv__body *body, const int64_t *vector,
                         size_t depth)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    const struct rv__node *node = body->owner;
    const struct rv__state *state = &node->stage.states[body->index];
    struct at around = { vector, depth - 1 };
    const struct rec_inst *inst = ref_inst(ref, node, around);
    const struct rec_body *attempt = record_attempt(inst, body->index, vector[depth - 1]);
    json_t *map = json_object();
    for (uint32_t d = 0; d < state->depends_count; d++) {
        const struct rv__dependency *on = &state->depends[d];
        const struct rv__node *of = on->stage != NULL ? on->stage : node;
        const struct rv__body *from = &of->bodies[on->state];
        json_t *value = json_null();
        if (state->access == ACCESS_LOGS || state->access == ACCESS_NONE)
            continue; /* it only orders */
        if (attempt->outcomes[d] != 0) {
            struct at in = ref_deeper(around, attempt->outcomes[d], room);
            struct end end = ref_node_end(ref, from->nodes[0], in);
            const struct rec_body *was = record_attempt(ref_inst(ref, of, around), on->state,
                                                        attempt->outcomes[d]);
            if (was->status == STATUS_FAILED) {
                json_t *error = attempt_error(&end, from, in);
                json_decref(value);
                value = json_pack("{s:{s:O,s:s}}", "error", "message",
                                  json_object_get(error, "message"), "attachmentId",
                                  was->attachment);
                json_decref(error);
            } else if (end.status == STATUS_COMPLETED) {
                json_decref(value);
                value = on->description      ? description_of(&end, true, STATUS_COMPLETED, NULL)
                        : end.result != NULL ? json_incref(end.result)
                                             : json_null();
            }
            ref_end_done(&end);
        }
        ref_put(map, on->param, value);
    }
    return map;
}
