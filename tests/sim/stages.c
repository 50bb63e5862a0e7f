/* stages.c: a naive model of stage schedules, written from the specification (SPEC: stage schedules) and
 * kept beside the record: what each state may do next, by plain loops over all of them. It shares no code
 * with src/flow. Every start, end, suspension and decision that a fact tells is held against it. */
#include "sim.h"

#include <stdlib.h>

static const struct rv__state *said(const struct rv__node *node, uint32_t i)
{
    return &node->stage.states[i];
}

/* Its dependencies in its own stage have settled, errored included. */
static bool is_free(const struct rec_stage *stage, const struct rv__node *node, uint32_t i)
{
    for (uint32_t d = 0; d < said(node, i)->depends_count; d++)
        if (said(node, i)->depends[d].stage == NULL &&
            !stage->states[said(node, i)->depends[d].state].ever_settled)
            return false;
    return true;
}

static void queue_free(struct rec_stage *stage, const struct rv__node *node)
{
    for (uint32_t i = 0; i < node->body_count; i++)
        if (stage->states[i].phase == REC_BLOCKED && is_free(stage, node, i))
            stage->states[i].phase = REC_QUEUED;
}

void stage_begins(struct rec_stage *stage, const struct rv__node *node)
{
    if (stage->states == NULL)
        stage->states = sim_alloc(node->body_count * sizeof *stage->states);
    for (uint32_t i = 0; i < node->body_count; i++) {
        int64_t generation = stage->states[i].generation;
        rv__blob_unref(stage->states[i].error);
        stage->states[i] = (struct rec_state){ .generation = generation };
    }
    stage->drained = false;
    stage->ends = 0;
    stage->running = 0;
    queue_free(stage, node);
}

void stage_done(struct rec_stage *stage, const struct rv__node *node)
{
    for (uint32_t i = 0; stage->states != NULL && i < node->body_count; i++)
        rv__blob_unref(stage->states[i].error);
    free(stage->states);
    stage->states = NULL;
}

/* The state that comes first in the queue; RV__NO_STATE: none is in it. */
static uint32_t first_queued(const struct rec_stage *stage, const struct rv__node *node)
{
    uint32_t best = RV__NO_STATE;
    for (uint32_t i = 0; i < node->body_count; i++)
        if (stage->states[i].phase == REC_QUEUED &&
            (best == RV__NO_STATE || said(node, i)->priority > said(node, best)->priority))
            best = i;
    return best;
}

static bool is_held_back(const struct rec_stage *stage, const struct rv__node *node, uint32_t i)
{
    for (uint32_t k = 0; k < node->body_count; k++)
        if (said(node, k)->critical && said(node, k)->priority > said(node, i)->priority &&
            (stage->states[k].phase == REC_QUEUED || stage->states[k].phase == REC_RUNNING))
            return true;
    return false;
}

uint32_t stage_next(const struct rec_stage *stage, const struct rv__node *node)
{
    uint32_t i = first_queued(stage, node);
    if (i == RV__NO_STATE || stage->drained || is_held_back(stage, node, i))
        return RV__NO_STATE;
    if (node->stage.concurrency > 0 && stage->running >= node->stage.concurrency)
        return RV__NO_STATE;
    return i;
}

const char *stage_starts(struct rec_stage *stage, const struct rv__node *node,
                         const struct rv__fact *fact)
{
    uint32_t i = (uint32_t)fact->index;
    struct rec_state *state = &stage->states[i];
    if (state->phase != REC_QUEUED)
        return "a state begins that is not in the queue";
    if (stage->drained)
        return "a state begins after a final one";
    if (is_held_back(stage, node, i))
        return "a state begins that a critical one holds back";
    if (first_queued(stage, node) != i)
        return "a state begins before another one that comes first";
    if (node->stage.concurrency > 0 && stage->running >= node->stage.concurrency)
        return "a stage runs more at once than it may";
    if (fact->generation != ++state->generation)
        return "its generations are counted wrongly";
    if (fact->attempt != state->failures + 1)
        return "its attempts are counted wrongly";
    state->phase = REC_RUNNING;
    state->attempts++;
    stage->running++;
    for (uint32_t d = 0; d < said(node, i)->depends_count; d++)
        if (said(node, i)->depends[d].stage == NULL && !is_free(stage, node, i))
            return "a state begins before what it depends on has settled";
    return NULL;
}

static void has_settled(struct rec_stage *stage, const struct rv__node *node, uint32_t i)
{
    stage->states[i].phase = REC_SETTLED;
    stage->states[i].ever_settled = true;
    for (uint32_t k = 0; k < node->body_count; k++)
        if (stage->states[k].phase == REC_REDIRECTED && said(node, k)->on_failure == i)
            stage->states[k].phase = REC_QUEUED;
    queue_free(stage, node);
}

/* What should become of it. */
static enum rv__next what_follows(const struct rec_stage *stage, const struct rv__node *node,
                                  uint32_t i, bool failed, bool good)
{
    if (!failed)
        return said(node, i)->final && good ? NEXT_FINAL : NEXT_DONE;
    if (stage->drained)
        return NEXT_ERRORED;
    if (stage->states[i].failures < said(node, i)->max_retry)
        return said(node, i)->on_failure != RV__NO_STATE ? NEXT_REDIRECT : NEXT_RETRY;
    return said(node, i)->critical ? NEXT_SUSPEND : NEXT_ERRORED;
}

/* `status`: of the agent. */
const char *stage_ends(struct rec_stage *stage, const struct rv__node *node,
                       const struct rv__fact *fact, enum rv__status status)
{
    uint32_t i = (uint32_t)fact->index;
    struct rec_state *state = &stage->states[i];
    bool failed = fact->status == STATUS_FAILED;
    if (state->phase != REC_RUNNING)
        return "an attempt ends that does not run";
    if (failed != (status == STATUS_FAILED))
        return "an attempt ends otherwise than its agent";
    enum rv__next next = what_follows(stage, node, i, failed, status == STATUS_COMPLETED);
    if (fact->next != (int)next)
        return "something else follows from the end of this attempt";
    if (fact->to != (next == NEXT_REDIRECT ? said(node, i)->on_failure + 1 : 0))
        return "it is redirected to another state";
    if (fact->attempt != state->failures + 1)
        return "another attempt ends than the one that began";
    stage->running--;
    stage->ends++;
    if (!state->ever_settled || (next != NEXT_RETRY && next != NEXT_REDIRECT)) {
        state->outcome = state->generation; /* what those see that depend on it */
        state->outcome_status = failed ? STATUS_FAILED : status;
        rv__blob_unref(state->error);
        state->error = rv__blob_ref(fact->error);
    }
    switch (next) {
    case NEXT_FINAL:
    case NEXT_DONE:
    case NEXT_ERRORED:
        stage->drained |= next == NEXT_FINAL;
        has_settled(stage, node, i);
        break;
    case NEXT_RETRY:
        state->failures++;
        state->phase = REC_QUEUED;
        break;
    case NEXT_REDIRECT: {
        struct rec_state *target = &stage->states[said(node, i)->on_failure];
        state->failures++;
        state->phase = REC_REDIRECTED;
        if (target->phase == REC_SETTLED) {
            target->phase = REC_QUEUED;
            target->failures = 0;
        }
        break;
    }
    case NEXT_SUSPEND: state->phase = REC_STUCK; break;
    case NEXT_NONE:
    case NEXTS: abort();
    }
    return NULL;
}

const char *stage_decided(struct rec_stage *stage, const struct rv__node *node, uint32_t i,
                          enum rv__decision decision)
{
    if (stage->states[i].phase != REC_STUCK)
        return "it is decided about a state that nobody asked about";
    switch (decision) {
    case DECISION_RESUME:
        stage->states[i].failures = 0;
        stage->states[i].phase = REC_QUEUED;
        break;
    case DECISION_SKIP: has_settled(stage, node, i); break;
    case DECISION_RESTART: stage_begins(stage, node); break;
    case DECISION_ABORT:
    case DECISIONS: return "that is no decision";
    }
    return NULL;
}

bool stage_over(const struct rec_stage *stage, const struct rv__node *node)
{
    bool all = true, stuck = false;
    for (uint32_t i = 0; i < node->body_count; i++) {
        all &= stage->states[i].phase == REC_SETTLED;
        stuck |= stage->states[i].phase == REC_STUCK;
    }
    return all || (stage->drained && stage->running == 0 && !stuck);
}
