/* event.c: makes events from facts and log lines (SPEC: events derive from state changes).
 *
 * An event is {seq, index, kind, runId, workflow, path?, at} and the fields of its kind. `index` counts the events
 * of one journal row, so (seq, index) is the same each time they are made. Internal facts (evaluations, bodies, a
 * timer that fired) make no events. */
#include "read/event.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

const char *rv__level_name(int level)
{
    static const char *const names[] = { "debug", "info", "warn", "error" };
    return level >= 0 && level < 4 ? names[level] : "error";
}

void rv__events_init(struct rv__events *events)
{
    *events = (struct rv__events){ .count = 0 };
    rv__buf_init(&events->texts, SIZE_MAX / 8); /* bounded by a turn, and by what it cancels */
}

void rv__events_done(struct rv__events *events)
{
    rv__free(events->at);
    rv__buf_done(&events->texts);
    *events = (struct rv__events){ .count = 0 };
}

void rv__events_begin(struct rv__events *events, uint64_t seq, const char *run_id,
                      const struct rv__plan *plan)
{
    rv__buf_reset(&events->texts);
    events->count = 0;
    events->no_memory = false;
    events->seq = seq;
    events->run_id = run_id;
    events->plan = plan;
    events->workflow = plan->body.wrap->name;
}

int rv__events_err(const struct rv__events *events, rv_error *err)
{
    return events->no_memory ? rv__nomem(err) : rv__buf_err(&events->texts, err);
}

/* ------------------------------------------------------------------------------- writing --- */

/* Begin an event; its path, if it has one, is the text at texts[path]. */
static bool begin(struct rv__events *e, const char *kind, int64_t at_ms, size_t path)
{
    if (e->count == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 16;
        struct rv__event *at = rv__realloc(e->at, cap * sizeof *at);
        if (at == NULL) {
            e->no_memory = true;
            return false;
        }
        e->at = at;
        e->cap = cap;
    }
    struct rv__buf *out = &e->texts;
    struct rv__event *event = &e->at[e->count];
    *event = (struct rv__event){ .index = e->count, .kind = kind, .at_ms = at_ms, .path = path };
    e->count++;
    event->json = out->len;
    rv__buf_text(out, "{\"seq\":");
    rv__buf_int(out, (int64_t)e->seq);
    rv__buf_text(out, ",\"index\":");
    rv__buf_int(out, (int64_t)event->index);
    rv__buf_text(out, ",\"kind\":\"");
    rv__buf_text(out, kind);
    rv__buf_text(out, "\",\"runId\":\"");
    rv__buf_text(out, e->run_id); /* needs no escapes */
    rv__buf_text(out, "\",\"workflow\":");
    rv__buf_json_str(out, e->workflow);
    rv__buf_text(out, ",\"at\":");
    rv__buf_int(out, at_ms);
    return true;
}

static void put_path(struct rv__events *e, size_t path)
{
    if (rv__buf_err(&e->texts, NULL) < 0 || e->texts.text[path] == '\0')
        return;
    rv__buf_text(&e->texts, ",\"path\":\"");
    size_t len = strlen(e->texts.text + path);
    for (size_t i = 0; i < len; i++) /* aliases need no escapes; the buffer may move */
        rv__buf_char(&e->texts, e->texts.text[path + i]);
    rv__buf_char(&e->texts, '"');
}

static void finish(struct rv__events *e)
{
    rv__buf_text(&e->texts, "}");
    rv__buf_char(&e->texts, '\0');
}

static void put_int(struct rv__events *e, const char *key, int64_t value)
{
    rv__buf_text(&e->texts, ",\"");
    rv__buf_text(&e->texts, key);
    rv__buf_text(&e->texts, "\":");
    rv__buf_int(&e->texts, value);
}

static void put_text(struct rv__events *e, const char *key, struct rv__str text)
{
    rv__buf_text(&e->texts, ",\"");
    rv__buf_text(&e->texts, key);
    rv__buf_text(&e->texts, "\":");
    rv__buf_json_str(&e->texts, text);
}

static void put_bytes(struct rv__events *e, const char *key, uint64_t bytes)
{
    rv__buf_text(&e->texts, ",\"");
    rv__buf_text(&e->texts, key);
    rv__buf_text(&e->texts, "Bytes\":");
    rv__buf_int(&e->texts, (int64_t)bytes);
}

/* A JSON value; if it is long, only its length: the node or the run has the value. */
static void put_value(struct rv__events *e, const char *key, struct rv__str json)
{
    if (json.len == 0)
        return;
    if (json.len > RV__EVENT_VALUE_BYTES) {
        put_bytes(e, key, json.len);
        return;
    }
    rv__buf_text(&e->texts, ",\"");
    rv__buf_text(&e->texts, key);
    rv__buf_text(&e->texts, "\":");
    rv__buf_str(&e->texts, json);
}

static void put_result(struct rv__events *e, const char *key, const struct rv__read_fact *fact)
{
    if (fact->result_value.number != 0)
        put_bytes(e, key, fact->result_value.bytes);
    else
        put_value(e, key, fact->result);
}

static void put_state(struct rv__events *e, const struct rv__read_fact *fact)
{
    if (fact->state_value.number != 0)
        put_bytes(e, "state", fact->state_value.bytes);
    else
        put_value(e, "state", fact->state);
}

/* --------------------------------------------------------------------------------- facts --- */

static size_t path_of(struct rv__events *e, const struct rv__read_fact *fact)
{
    size_t at = e->texts.len;
    const struct rv__node *node = fact->node != RV__NO_NODE ? e->plan->nodes[fact->node] : NULL;
    uint32_t state = fact->which > 0 ? fact->which - 1 : (uint32_t)fact->index;
    bool of_state = fact->which > 0 || fact->kind == FACT_BODY_STARTED ||
                    fact->kind == FACT_BODY_ENDED;
    if (node != NULL && node->kind == NODE_STAGE && of_state && state < node->body_count)
        rv__body_path(&node->bodies[state], fact->vector.at, &e->texts);
    else if (node != NULL && fact->kind != FACT_RUN_FAILED)
        rv__node_path(node, fact->vector.at, &e->texts);
    rv__buf_char(&e->texts, '\0');
    return at;
}

/* The kind of the fact's event; NULL: none. */
static const char *kind_of(const struct rv__events *e, const struct rv__read_fact *fact)
{
    bool state = fact->node != RV__NO_NODE && e->plan->nodes[fact->node]->kind == NODE_STAGE;
    if (fact->kind == FACT_EVAL_COMPLETED && fact->eval == EVAL_DESCRIPTION)
        return "node.described"; /* comes after the node's end */
    if (fact->kind == FACT_BODY_STARTED && state)
        return "state.started";
    if (fact->kind == FACT_BODY_ENDED && fact->next != NEXT_NONE)
        return "state.ended";
    switch (fact->kind) {
    case FACT_RUN_STARTED:
    case FACT_RUN_COMPLETED:
    case FACT_RUN_FAILED:
    case FACT_RUN_CANCELLING:
    case FACT_RUN_CANCELLED:
    case FACT_RUN_SUSPENDED:
    case FACT_RUN_RESUMED:
    case FACT_RUN_ABORTED:
    case FACT_NODE_STARTED:
    case FACT_NODE_COMPLETED:
    case FACT_NODE_FAILED:
    case FACT_STEP_STARTED:
    case FACT_STEP_COMPLETED:
    case FACT_STEP_SKIPPED:
    case FACT_STEP_FAILED:
    case FACT_STEP_RETRYING:
    case FACT_STEP_READ:
    case FACT_SIGNAL_RECEIVED: return rv__fact_kind_name(fact->kind);
    case FACT_NODE_SKIPPED: return "step.skipped";   /* its `when` was false, or it is left out */
    case FACT_NODE_RETRYING: return "step.retrying"; /* a chat is retried like a step */
    case FACT_EVAL_STARTED:
    case FACT_EVAL_COMPLETED:
    case FACT_EVAL_FAILED:
    case FACT_BODY_STARTED:
    case FACT_BODY_ENDED:
    case FACT_STEP_PARKED:
    case FACT_STEP_NOTED:
    case FACT_STEP_LOST:
    case FACT_STEP_GIVEN:
    case FACT_TIMER_FIRED:
    case FACT_DETACHED_ENDED:
    case FACT_DETACHED_CANCELLED:
    case FACT_KINDS: break;
    }
    return NULL;
}

static const char *run_status(const struct rv__read_fact *fact)
{
    if (fact->kind == FACT_RUN_RESUMED && fact->left > 0)
        return "suspended"; /* another suspension is left */
    switch ((int)fact->kind) {
    case FACT_RUN_STARTED:
    case FACT_RUN_CANCELLING: /* until its `finally` has run */
    case FACT_RUN_ABORTED:    /* until its handlers have run */
    case FACT_RUN_RESUMED: return "running";
    case FACT_RUN_COMPLETED: return "completed";
    case FACT_RUN_FAILED: return "failed";
    case FACT_RUN_CANCELLED: return "cancelled";
    case FACT_RUN_SUSPENDED: return "suspended";
    default: return NULL;
    }
}

/* The names of the stage and the state that a fact is about. */
static void put_stage(struct rv__events *e, const struct rv__read_fact *fact)
{
    const struct rv__node *node = fact->node != RV__NO_NODE ? e->plan->nodes[fact->node] : NULL;
    bool body = fact->kind == FACT_BODY_STARTED || fact->kind == FACT_BODY_ENDED;
    int64_t state = fact->which > 0 ? (int64_t)fact->which - 1 : body ? fact->index : -1;
    if (node == NULL || node->kind != NODE_STAGE || fact->kind == FACT_RUN_FAILED)
        return;
    put_text(e, "stage", node->alias);
    if (state >= 0 && state < node->body_count)
        put_text(e, "state", node->bodies[state].alias);
}

/* Whether a state has failed for good with attempts left: a final state had completed, so it is not tried again. */
static bool had_attempts_left(const struct rv__events *e, const struct rv__read_fact *fact)
{
    const struct rv__node *node = e->plan->nodes[fact->node];
    return fact->next == NEXT_ERRORED && node->kind == NODE_STAGE && fact->index >= 0 &&
           fact->index < node->body_count &&
           fact->attempt <= node->stage.states[fact->index].max_retry;
}

static void put_fields(struct rv__events *e, const struct rv__read_fact *fact)
{
    const char *status = run_status(fact);
    if (status != NULL)
        put_text(e, "status", rv__str(status));
    if (fact->attempt > 0)
        put_int(e, "attempt", fact->attempt);
    if (fact->kind == FACT_BODY_STARTED || fact->kind == FACT_BODY_ENDED)
        put_value(e, "attachmentId", fact->name);
    put_stage(e, fact);
    switch ((int)fact->kind) {
    case FACT_RUN_STARTED:
        put_text(e, "version", rv__str(e->plan->version));
        put_result(e, "input", fact);
        break;
    case FACT_RUN_FAILED:
        put_value(e, "error", fact->error);
        if (fact->node != RV__NO_NODE)
            put_text(e, "failedStep", e->plan->nodes[fact->node]->alias);
        if (!rv__str_none(rv__error_path(fact->error)))
            put_text(e, "failedPath", rv__error_path(fact->error));
        break;
    case FACT_RUN_RESUMED:
        put_text(e, "decision", rv__str(rv__decision_name((enum rv__decision)fact->decision)));
        put_value(e, "reason", fact->error);
        break;
    case FACT_RUN_ABORTED:
    case FACT_RUN_SUSPENDED: put_value(e, "reason", fact->error); break;
    case FACT_BODY_ENDED: /* of a state */
        rv__buf_text(&e->texts,
                     fact->status == STATUS_FAILED ? ",\"succeed\":false" : ",\"succeed\":true");
        put_text(e, "next", rv__str(rv__next_name((enum rv__next)fact->next)));
        if (had_attempts_left(e, fact))
            rv__buf_text(&e->texts, ",\"drained\":true");
        if (fact->to > 0 && fact->to <= e->plan->nodes[fact->node]->body_count)
            put_text(e, "to", e->plan->nodes[fact->node]->bodies[fact->to - 1].alias);
        put_value(e, "error", fact->error);
        break;
    case FACT_EVAL_COMPLETED: put_result(e, "description", fact); break;
    case FACT_STEP_COMPLETED:
    case FACT_STEP_SKIPPED:
        put_result(e, "result", fact);
        put_state(e, fact);
        break;
    case FACT_STEP_FAILED:
        put_value(e, "error", fact->error);
        put_state(e, fact);
        rv__buf_text(&e->texts, fact->hard ? ",\"stops\":true" : ",\"stops\":false");
        break;
    case FACT_NODE_COMPLETED: put_state(e, fact); break;
    case FACT_NODE_FAILED:
        put_value(e, "error", fact->error);
        put_state(e, fact);
        break;
    case FACT_STEP_RETRYING:
    case FACT_NODE_RETRYING: put_value(e, "error", fact->error); break;
    case FACT_STEP_READ: /* not done by a person */
        put_value(e, "what", fact->name);
        put_value(e, "through", fact->by);
        return;
    case FACT_SIGNAL_RECEIVED:
        if (fact->name.len > 0) {
            rv__buf_text(&e->texts, ",\"name\":");
            rv__buf_str(&e->texts, fact->name);
        }
        put_result(e, "payload", fact);
        break;
    default: break;
    }
    put_value(e, "by", fact->by);
    if (fact->due_ms != 0 && fact->kind != FACT_STEP_FAILED) /* else it belongs to its chat */
        put_int(e, "dueAt", fact->due_ms);
}

void rv__events_fact(struct rv__events *e, const struct rv__read_fact *fact)
{
    const char *kind = kind_of(e, fact);
    bool armed = fact->due_ms != 0 && fact->kind != FACT_STEP_FAILED;
    if (kind == NULL && !armed)
        return;
    size_t path = path_of(e, fact);
    if (kind != NULL && begin(e, kind, fact->at_ms, path)) {
        put_path(e, path);
        put_fields(e, fact);
        finish(e);
    }
    if (armed && begin(e, "timer.armed", fact->at_ms, path)) {
        put_path(e, path);
        put_int(e, "dueAt", fact->due_ms);
        finish(e);
    }
}

void rv__events_along(struct rv__events *e, const struct rv__trace *trace, uint32_t node,
                      enum rv__status status, const struct rv__read_fact *fact)
{
    const struct rv__node *of = e->plan->nodes[trace->at[node].node];
    int64_t vector[RV__PLAN_MAX_DEPTH] = { 0 };
    size_t path = e->texts.len;
    (void)rv__trace_vector(trace, node, vector);
    rv__node_path(of, vector, &e->texts);
    rv__buf_char(&e->texts, '\0');
    bool step = of->kind == NODE_STEP;
    if (!begin(e,
               status == STATUS_CANCELLED ? "step.cancelled"
               : step                     ? "step.failed"
                                          : "node.failed",
               fact->at_ms, path))
        return;
    put_path(e, path);
    if (step && trace->at[node].attempt > 0)
        put_int(e, "attempt", trace->at[node].attempt);
    if (status == STATUS_FAILED)
        put_value(e, "error", fact->error);
    if (status == STATUS_FAILED && step)
        rv__buf_text(&e->texts, ",\"stops\":true");
    finish(e);
}

/* ---------------------------------------------------------------------------------- lines --- */

void rv__event_log_fields(struct rv__buf *own, const struct rv__store_log *line)
{
    rv__buf_text(own, ",\"level\":\"");
    rv__buf_text(own, rv__level_name((int)line->level));
    rv__buf_text(own, "\",\"message\":");
    rv__buf_json_str(own, line->message);
    if (line->metadata.len > 0) {
        rv__buf_text(own, ",\"metadata\":");
        rv__buf_str(own, line->metadata);
    }
    if (rv__str_is(line->kind, RV__STORE_STREAM)) /* `kind` is already the event's */
        rv__buf_text(own, ",\"stream\":true");
    if (line->step.len > 0) {
        rv__buf_text(own, ",\"stepName\":");
        rv__buf_json_str(own, line->step);
    }
    rv__buf_text(own, ",\"attempt\":");
    rv__buf_int(own, line->attempt);
}

void rv__events_log(struct rv__events *e, int64_t at_ms, struct rv__str path, struct rv__str own)
{
    size_t at = e->texts.len;
    rv__buf_str(&e->texts, path);
    rv__buf_char(&e->texts, '\0');
    if (!begin(e, "log", at_ms, at))
        return;
    put_path(e, at);
    rv__buf_str(&e->texts, own);
    finish(e);
}
