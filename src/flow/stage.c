/* stage.c: the supervisor of a stage: states that run by dependency and priority, each attempt a new
 * generation of its agent's subtree.
 *
 *   blocked ──dependencies settled──▶ ready ──place──▶ running ──done──▶ settled
 *                                     ▲  ▲               │ failed
 *                    target settled   │  └── retry ──────┤
 *                       ┌─────────────┘                  ├── redirect ──▶ waiting
 *                    waiting                             ├── none left ──▶ settled (errored)
 *                                                        └── none left, critical ──▶ stuck
 *   stuck ──told──▶ suspended ──resume──▶ ready          (skip: settled; restart_stage: all anew)
 *
 * The ready ones are a heap, by priority and then order; the running ones the pool. A dependency settles
 * once and for all: that its state runs again, as the target of a redirect, holds nobody back, and who
 * begins later sees the newer outcome. A critical state that is ready or runs holds back all of lower
 * priority: a bit for each priority says so. So each event costs the logarithm of what is ready, and a
 * step for each dependent.
 *
 * Saved are phase, attempt and generation of each state; counters, heap and bits follow from them. */
#include <assert.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

enum phase { BLOCKED, READY, RUNNING, WAITING, STUCK, SUSPENDED, SETTLED, STATE_PHASES };

struct slot {
    uint8_t phase;
    bool released;      /* it has settled: who depends on it does not wait for it any more */
    uint32_t waits_for; /* dependencies of its stage that have not settled yet */
    int attempt;        /* attempts that have failed, since it was last given a fresh count */
    int64_t generation; /* attempts ever, of this stage as it runs now */
    uint32_t waiter;    /* the first that waits for its next end, + 1; 0: none */
    uint32_t next;      /* WAITING: the next one that waits for the same, + 1 */
};

enum { WORDS = (RV__PRIORITY_MAX + 64) / 64 };

struct rv__schedule {
    uint32_t count, settled, stuck, suspended;
    uint32_t stuck_from;   /* none before it is stuck */
    int64_t limit;         /* attempts at once; 0: as many as there are */
    uint32_t ready;        /* in the heap */
    bool drained;          /* a final state has completed */
    uint64_t holds[WORDS]; /* by priority: a critical state of it is ready or runs */
    uint32_t *heap;
    struct slot slots[];
};

static const struct rv__state *state_of(const struct rv__actor *sup, uint32_t i)
{
    return &sup->node->stage.states[i];
}

/* --------------------------------------------------------------------------------- heap --- */

static bool goes_first(const struct rv__actor *sup, uint32_t a, uint32_t b)
{
    int x = state_of(sup, a)->priority, y = state_of(sup, b)->priority;
    return x != y && !RV__BUG(71) ? x > y : a < b;
}

static void heap_push(struct rv__actor *sup, uint32_t state)
{
    struct rv__schedule *s = sup->sup.schedule;
    uint32_t at = s->ready++;
    while (at > 0 && goes_first(sup, state, s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = state;
}

static void heap_pop(struct rv__actor *sup)
{
    struct rv__schedule *s = sup->sup.schedule;
    uint32_t last = s->heap[--s->ready], at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->ready)
            break;
        if (child + 1 < s->ready && goes_first(sup, s->heap[child + 1], s->heap[child]))
            child++;
        if (!goes_first(sup, s->heap[child], last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
}

/* ------------------------------------------------------------------------------- phases --- */

/* The only writer of a phase. What is ready goes into the heap; the first of it comes out by running. */
static void set_phase(struct rv__actor *sup, uint32_t i, enum phase to)
{
    struct rv__schedule *s = sup->sup.schedule;
    enum phase from = (enum phase)s->slots[i].phase;
    const struct rv__state *state = state_of(sup, i);
    s->settled += (to == SETTLED) - (from == SETTLED);
    s->stuck += (to == STUCK) - (from == STUCK);
    s->suspended += (to == SUSPENDED) - (from == SUSPENDED);
    s->slots[i].phase = (uint8_t)to;
    if (to == STUCK && (s->stuck == 1 || i < s->stuck_from))
        s->stuck_from = i;
    if (from == READY)
        heap_pop(sup);
    if (to == READY)
        heap_push(sup, i);
    uint64_t bit = UINT64_C(1) << state->priority % 64;
    if (!state->critical)
        return;
    if (to == READY || to == RUNNING || (RV__BUG(75) && to == WAITING))
        s->holds[state->priority / 64] |= bit;
    else
        s->holds[state->priority / 64] &= ~bit;
}

/* The highest priority that a critical state holds; -1: none does. */
static int held_at(const struct rv__schedule *s)
{
    for (int w = WORDS - 1; w >= 0; w--)
        if (s->holds[w] != 0)
            return w * 64 + 63 - __builtin_clzll(s->holds[w]);
    return -1;
}

/* It has settled: who waited for that goes on. */
static void settle(struct rv__actor *sup, uint32_t i)
{
    struct rv__schedule *s = sup->sup.schedule;
    struct slot *slot = &s->slots[i];
    const struct rv__state *state = state_of(sup, i);
    set_phase(sup, i, SETTLED);
    for (uint32_t d = 0; d < state->dependents_count && !slot->released; d++) {
        uint32_t k = state->dependents[d];
        if (--s->slots[k].waits_for == 0 && s->slots[k].phase == BLOCKED)
            set_phase(sup, k, READY);
    }
    slot->released = true;
    uint32_t waiter = slot->waiter;
    slot->waiter = 0;
    while (waiter != 0 && !RV__BUG(80)) {
        struct slot *w = &s->slots[waiter - 1];
        uint32_t next = w->next;
        w->next = 0;
        set_phase(sup, waiter - 1, READY);
        waiter = next;
    }
}

static void wait_for(struct rv__actor *sup, uint32_t i, uint32_t target)
{
    struct rv__schedule *s = sup->sup.schedule;
    set_phase(sup, i, WAITING);
    s->slots[i].next = s->slots[target].waiter;
    s->slots[target].waiter = i + 1;
}

/* As it is when the stage begins. Generations go on: no two attempts of a state have the same. */
static void reset(struct rv__actor *sup)
{
    struct rv__schedule *s = sup->sup.schedule;
    s->settled = s->stuck = s->suspended = s->ready = 0;
    s->drained = false;
    for (int w = 0; w < WORDS; w++)
        s->holds[w] = 0;
    for (uint32_t i = 0; i < s->count; i++)
        s->slots[i] = (struct slot){ .waits_for = state_of(sup, i)->waits_for,
                                     .generation = s->slots[i].generation };
    if (RV__BUG(82) && s->count > 1)
        s->slots[s->count - 1].waits_for = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->slots[i].waits_for == 0)
            set_phase(sup, i, READY);
}

/* ------------------------------------------------------------------------------- decide --- */

static struct rv__first first_work(const struct rv__node *node)
{
    /* That of the state that will be first: of the highest priority among those that wait for nobody. */
    uint32_t best = RV__NO_STATE;
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__state *state = &node->stage.states[i];
        if (state->waits_for == 0 &&
            (best == RV__NO_STATE || state->priority > node->stage.states[best].priority))
            best = i;
    }
    if (best == RV__NO_STATE)
        return (struct rv__first){ .eval = -1 };
    return rv__first_of_body(&node->bodies[best]);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING;
}

static bool is_over(const struct rv__actor *sup)
{
    const struct rv__schedule *s = sup->sup.schedule;
    if (s->settled == s->count)
        return true;
    return s->drained && sup->sup.active == 0 && s->stuck == 0 && s->suspended == 0;
}

/* May the first of the queue begin? */
static bool may_start(const struct rv__actor *sup)
{
    const struct rv__schedule *s = sup->sup.schedule;
    int64_t limit = s->limit;
    if (s->ready == 0 || (s->drained && !RV__BUG(72)))
        return false;
    if (limit > 0 && sup->sup.active >= limit + RV__BUG(73))
        return false;
    return state_of(sup, s->heap[0])->priority >= held_at(s) || RV__BUG(74);
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    if (sup->sup.schedule->stuck > 0)
        return PLACE_ENDS;
    if (is_over(sup))
        return PLACE_TODO;
    if (!may_start(sup))
        return PLACE_NOWHERE;
    *first = rv__first_of_body(&sup->node->bodies[sup->sup.schedule->heap[0]]);
    return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
}

/* The attempt of a step is bounded by the step itself, from when an executor begins it. */
static bool has_timer(const struct rv__actor *sup, uint32_t i)
{
    return state_of(sup, i)->timeout_ms > 0 && !rv__is_step(sup->node->bodies[i].nodes[0]);
}

static int start_attempt(struct rv__turn *turn, struct rv__actor *sup, uint32_t i, rv_error *err)
{
    const struct slot *slot = &sup->sup.schedule->slots[i];
    struct rv__blob *name = NULL;
    if (rv__attachment_name(turn->cell, sup, i, slot->attempt + 1, turn->now_ms, &name) < 0)
        return rv__nomem(err);
    struct rv__fact fact = { .kind = FACT_BODY_STARTED,
                             .actor = turn->cell->next_id,
                             .owner = sup->id,
                             .node = sup->node->id,
                             .index = i,
                             .generation = slot->generation + 1,
                             .attempt = slot->attempt + 1,
                             .name = name };
    if (has_timer(sup, i)) {
        int64_t due = turn->now_ms;
        if (__builtin_add_overflow(due, state_of(sup, i)->timeout_ms, &due) || due > RV__MAX_NUMBER)
            due = RV__MAX_NUMBER;
        fact.due_ms = due > 0 ? due : 1;
    }
    int rc = rv__say(turn, &fact, err);
    rv__blob_unref(name);
    return rc;
}

/* The first that is stuck: its run is to stop for a decision. One that is left behind cannot: it fails. */
static int tell_stuck(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    const struct rv__schedule *s = sup->sup.schedule;
    int64_t vector[RV__PLAN_MAX_DEPTH];
    uint32_t i = s->stuck_from;
    while (s->slots[i].phase != STUCK)
        i++;
    const struct rv__child *child = &sup->sup.inner->children[i];
    struct rv__blob *said = rv__error_because(
        "exhausted", child->error, "the critical state '%.*s' failed%s",
        RV__ARG(sup->node->bodies[i].alias),
        child->attempts > 1 ? ", and its attempts are used up" : "");
    (void)rv__actor_vector(sup, vector);
    struct rv__blob *why = said != NULL ? rv__error_at(said, NULL, &sup->node->bodies[i], vector)
                                        : NULL;
    rv__blob_unref(said);
    if (why == NULL)
        return rv__nomem(err);
    int rc;
    if (rv__is_left_behind(turn->cell, sup)) {
        rc = rv__node_end(turn, sup, FACT_NODE_FAILED, why, err);
    } else {
        struct rv__fact fact = { .kind = FACT_RUN_SUSPENDED,
                                 .actor = sup->id,
                                 .node = sup->node->id,
                                 .which = i + 1,
                                 .error = why };
        rc = rv__say(turn, &fact, err);
    }
    rv__blob_unref(why);
    return rc;
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    if (sup->sup.schedule->stuck > 0)
        return tell_stuck(turn, sup, err);
    if (is_over(sup))
        return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    return start_attempt(turn, sup, sup->sup.schedule->heap[0], err);
}

/* An attempt has ended: what becomes of its state. A soft failure of its agent is a failure, too. Once a
 * final state has completed nothing is tried again, and nobody is asked. */
static void settle_attempt(const struct rv__actor *frame, struct rv__fact *fact)
{
    const struct rv__actor *sup = frame->owner;
    const struct rv__schedule *s = sup->sup.schedule;
    uint32_t i = frame->frame.body->index;
    const struct rv__state *state = state_of(sup, i);
    const struct rv__entry *newest = frame->frame.scope;
    fact->attempt = s->slots[i].attempt + 1;
    fact->name = frame->frame.attachment;
    if (fact->error == NULL && newest != frame->frame.base && newest->status == STATUS_FAILED) {
        fact->status = STATUS_FAILED;
        fact->error = newest->error;
    }
    if (fact->status == STATUS_COMPLETED) {
        bool good = newest == frame->frame.base || newest->status == STATUS_COMPLETED;
        fact->next = state->final && good ? NEXT_FINAL : NEXT_DONE;
    } else if (s->drained) {
        fact->next = NEXT_ERRORED;
    } else if (s->slots[i].attempt >= state->max_retry + RV__BUG(76)) {
        fact->next = state->critical && !RV__BUG(77) ? NEXT_SUSPEND : NEXT_ERRORED;
    } else if (state->on_failure == RV__NO_STATE) {
        fact->next = NEXT_RETRY;
    } else {
        fact->next = NEXT_REDIRECT;
        fact->to = state->on_failure + 1;
    }
}

/* ------------------------------------------------------------------------------- evolve --- */

static struct rv__inner *outcomes(const struct rv__node *node, struct rv__entry *scope)
{
    struct rv__inner *inner = rv__inner_new(node->body_count);
    if (inner == NULL)
        return NULL;
    inner->base = rv__entry_ref(scope);
    for (uint32_t i = 0; i < node->body_count; i++)
        inner->children[i].status = STATUS_PENDING;
    return inner;
}

static struct rv__schedule *schedule(const struct rv__cell *cell, const struct rv__node *node)
{
    uint32_t count = node->body_count;
    struct rv__schedule *s = rv__zalloc(1, sizeof *s + (size_t)count *
                                                           (sizeof s->slots[0] + sizeof *s->heap));
    if (s == NULL)
        return NULL;
    s->count = count;
    s->limit = cell->limit > 0 ? cell->limit : node->stage.concurrency;
    s->heap = (uint32_t *)(void *)&s->slots[count];
    struct rv__actor sup = { .node = node, .sup = { .schedule = s } };
    reset(&sup);
    return s;
}

/* The outcome of what it depends on, as it is now. */
static const struct rv__child *dependency(const struct rv__actor *sup,
                                          const struct rv__dependency *on)
{
    if (on->stage == NULL)
        return &sup->sup.inner->children[on->state];
    const struct rv__entry *entry = sup->sup.inner->base;
    while (entry != NULL && entry->node != on->stage)
        entry = entry->outer;
    return entry != NULL && entry->inner != NULL ? &entry->inner->children[on->state] : NULL;
}

static struct rv__inner *inputs(const struct rv__actor *sup, int64_t index, bool *none)
{
    const struct rv__state *state = state_of(sup, (uint32_t)index);
    *none = state->depends_count == 0;
    struct rv__inner *all = *none ? NULL : rv__inner_new(state->depends_count);
    for (uint32_t i = 0; all != NULL && i < state->depends_count; i++) {
        const struct rv__child *from = dependency(sup, &state->depends[i]);
        all->children[i].status = STATUS_SKIPPED; /* unless it is known better */
        if (from == NULL)
            continue;
        all->children[i].status = from->status;
        all->children[i].scope = rv__entry_ref(from->scope);
        all->children[i].error = rv__blob_ref(from->error);
        all->children[i].generation = from->generation;
        all->children[i].attachment = rv__blob_ref(from->attachment);
    }
    return all;
}

static void body_started(struct rv__actor *sup, struct rv__actor *frame)
{
    (void)frame;
    uint32_t i = sup->sup.schedule->heap[0]; /* rv__fact_check saw that it is this one */
    set_phase(sup, i, RUNNING);
    sup->sup.schedule->slots[i].generation++;
    sup->sup.inner->children[i].attempts++;
    sup->sup.active++;
}

/* What follows for it, as the fact says. */
static void evolve_next(struct rv__actor *sup, uint32_t i, const struct rv__fact *fact)
{
    struct rv__schedule *s = sup->sup.schedule;
    uint32_t target = fact->to - 1;
    switch ((enum rv__next)fact->next) {
    case NEXT_FINAL:
        s->drained = true;
        settle(sup, i);
        return;
    case NEXT_DONE:
    case NEXT_ERRORED: settle(sup, i); return;
    case NEXT_RETRY:
        s->slots[i].attempt++;
        set_phase(sup, i, READY);
        return;
    case NEXT_REDIRECT:
        s->slots[i].attempt++;
        wait_for(sup, i, target);
        if (s->slots[target].phase == SETTLED) { /* it runs again; else it runs anyhow */
            s->slots[target].attempt = 0;
            set_phase(sup, target, READY);
        }
        return;
    case NEXT_SUSPEND: set_phase(sup, i, STUCK); return;
    case NEXT_NONE:
    case NEXTS: break;
    }
    assert(!"rv__fact_check saw it");
}

/* Takes the scope. */
static void keep_outcome(struct rv__child *child, const struct rv__actor *frame,
                         struct rv__entry *scope, const struct rv__fact *fact)
{
    bool empty = scope == frame->frame.base;
    rv__entry_unref(child->scope);
    rv__blob_unref(child->error);
    child->scope = scope;
    child->error = rv__blob_ref(fact->error);
    child->status = (uint8_t)fact->status;
    if (fact->status == STATUS_COMPLETED && !empty) /* skipped, says its agent */
        child->status = scope->status;
    child->generation = frame->frame.iteration;
    rv__blob_unref(child->attachment);
    child->attachment = rv__blob_ref(frame->frame.attachment);
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    uint32_t i = frame->frame.body->index;
    struct rv__entry *scope;
    (void)cell;
    if (rv__frame_left(frame, &scope) < 0)
        return RV_ENOMEM;
    bool again = fact->next == NEXT_RETRY || fact->next == NEXT_REDIRECT;
    if (again && sup->sup.schedule->slots[i].released)
        rv__entry_unref(
            scope); /* it runs again: how it settled before counts until it does so anew */
    else
        keep_outcome(&sup->sup.inner->children[i], frame, scope, fact);
    sup->sup.active--;
    sup->sup.ended++;
    evolve_next(sup, i, fact);
    return RV_OK;
}

static void suspended(struct rv__actor *sup, uint32_t which, bool is)
{
    set_phase(sup, which - 1, is ? SUSPENDED : STUCK);
}

/* All anew: what was is superseded. */
static int restart(struct rv__cell *cell, struct rv__actor *sup)
{
    struct rv__inner *fresh = outcomes(sup->node, sup->sup.inner->base);
    if (fresh == NULL)
        return RV_ENOMEM;
    rv__inner_unref(RV__BUG(81) ? fresh : sup->sup.inner);
    sup->sup.inner = RV__BUG(81) ? sup->sup.inner : fresh;
    while (sup->child != NULL)
        rv__actor_end(cell, sup->child);
    rv__suspensions_end(cell, sup);
    sup->sup.active = sup->sup.ended = 0;
    reset(sup);
    return RV_OK;
}

static int decided(struct rv__cell *cell, struct rv__actor *sup, uint32_t which,
                   enum rv__decision decision)
{
    struct slot *slot = &sup->sup.schedule->slots[which - 1];
    switch (decision) {
    case DECISION_RESUME:
        slot->attempt = RV__BUG(78) ? slot->attempt : 0;
        set_phase(sup, which - 1, READY);
        return RV_OK;
    case DECISION_SKIP: settle(sup, which - 1); return RV_OK;
    case DECISION_RESTART: return restart(cell, sup);
    case DECISION_ABORT:
    case DECISIONS: break;
    }
    assert(!"rv__fact_check saw it");
    return RV_ESTATE;
}

static bool drains(const struct rv__actor *sup)
{
    return sup->sup.schedule->drained;
}

int rv__state_attempt(const struct rv__actor *frame)
{
    return frame->owner->sup.schedule->slots[frame->frame.body->index].attempt + 1;
}

const struct rv__body *rv__state_redirects_in_vain(const struct rv__actor *frame,
                                                   const struct rv__fact *fact)
{
    const struct rv__actor *sup = frame->owner;
    bool runs = fact->next == NEXT_REDIRECT &&
                sup->sup.schedule->slots[fact->to - 1].phase == RUNNING;
    return runs ? &sup->node->bodies[fact->to - 1] : NULL;
}

/* ------------------------------------------------------------------------ what is left --- */

static bool has_begun(const struct rv__actor *sup)
{
    return sup->sup.inner != NULL;
}

/* Those that never ran are skipped; an attempt in flight is cancelled; else the last one counts. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    const struct rv__inner *ended = sup->sup.inner;
    if (sup->sup.schedule->settled == sup->sup.schedule->count)
        return rv__inner_ref(sup->sup.inner);
    struct rv__inner *all = rv__inner_new(ended->child_count);
    if (all == NULL)
        return NULL;
    all->base = rv__entry_ref(ended->base);
    for (uint32_t i = 0; i < ended->child_count; i++) {
        struct rv__child *child = &all->children[i];
        *child = ended->children[i];
        (void)rv__entry_ref(child->scope);
        (void)rv__blob_ref(child->error);
        (void)rv__blob_ref(child->attachment);
        if (child->status == STATUS_PENDING)
            child->status = STATUS_SKIPPED;
    }
    for (const struct rv__actor *frame = sup->child; frame != NULL; frame = frame->next) {
        struct rv__child *child = &all->children[frame->frame.body->index];
        struct rv__entry *scope;
        if (rv__frame_left(frame, &scope) < 0) {
            rv__inner_unref(all);
            return NULL;
        }
        rv__entry_unref(child->scope);
        rv__blob_unref(child->error);
        child->scope = scope;
        child->error = NULL;
        child->status = STATUS_CANCELLED;
        child->generation = frame->frame.iteration;
        rv__blob_unref(child->attachment);
        child->attachment = rv__blob_ref(frame->frame.attachment);
    }
    return all;
}

/* States that could run, and have no place, or no room in the pool. Those that a critical one holds back
 * wait for nothing of their own, no more than the later nodes of a sequence do. */
static bool rest(const struct rv__actor *sup, struct rv__wait *wait)
{
    const struct rv__schedule *s = sup->sup.schedule;
    if (sup->phase != PHASE_RUNNING || s == NULL || s->ready == 0 || s->drained)
        return false;
    bool full = s->limit > 0 && sup->sup.active >= s->limit;
    if (sup->place != PLACE_RANGE && !full)
        return false;
    wait->kind = full ? WAIT_LIMIT : WAIT_PLACE;
    wait->count = s->ready;
    wait->limit = s->limit;
    return true;
}

/* ------------------------------------------------------------------------------ results --- */

static bool is_empty(const struct rv__child *child, const struct rv__inner *inner)
{
    return child->scope == NULL || child->scope == inner->base;
}

/* In a row: all that the shape below is made of, and the generation, which names what is nested in it. */
static void write_row(struct rv__writer *w, const struct rv__child *child, bool empty)
{
    rv__writer_put(w, "{\"g\":");
    rv__writer_put_int(w, child->generation);
    rv__writer_put(w, ",\"status\":\"");
    rv__writer_put(w, rv__status_name((enum rv__status)child->status));
    rv__writer_put(w, "\",");
    if (empty || child->status != STATUS_COMPLETED)
        rv__writer_put(w, "\"result\":null");
    else
        rv__result_member_write(w, child->scope);
    if (!empty) {
        rv__writer_put(w, ",");
        rv__writer_put_state(w, child->scope->state, child->scope->description);
    }
}

static void put_attachment(struct rv__writer *w, const struct rv__child *child)
{
    struct rv__buf name; /* an agent may be called anything */
    if (child->attachment == NULL)
        return;
    rv__buf_init(&name, SIZE_MAX / 8);
    rv__buf_json_str(&name, rv__blob_str(child->attachment));
    if (rv__buf_err(&name, NULL) < 0)
        rv__writer_fail(w, RV_ENOMEM);
    rv__writer_put(w, ",\"attachmentId\":");
    rv__writer_put_str(w, rv__buf_view(&name));
    rv__buf_done(&name);
}

/* What its agent says of it; else the beginning of its result, or of its error. */
static void put_description(struct rv__writer *w, const struct rv__child *child)
{
    const struct rv__entry *entry = child->scope;
    struct rv__summary s;
    if (entry != NULL && rv__writer_put_description(w, entry->state, entry->description))
        return;
    if (entry == NULL || child->status != STATUS_COMPLETED) {
        rv__writer_put_error_summary(w, rv__blob_str(child->error));
        return;
    }
    rv__summary_begin(&s, w);
    rv__result_write(&s.writer, entry);
    rv__summary_end(&s, w);
}

/* {status, result, error?, description, attempts, attachmentId?} */
static void write_state(struct rv__writer *w, const struct rv__inner *inner, uint32_t i)
{
    const struct rv__child *child = &inner->children[i];
    bool empty = is_empty(child, inner);
    if (w->as_row) {
        write_row(w, child, empty);
    } else {
        rv__writer_put(w, "{\"status\":\"");
        rv__writer_put(w, rv__status_name((enum rv__status)child->status));
        rv__writer_put(w, "\",\"result\":");
        if (empty || child->status != STATUS_COMPLETED)
            rv__writer_put(w, "null");
        else
            rv__result_write(w, child->scope);
        rv__writer_put(w, ",\"description\":");
        if (empty)
            rv__writer_put_error_summary(w, rv__blob_str(child->error));
        else
            put_description(w, child);
    }
    if (child->status == STATUS_FAILED && child->error != NULL) {
        rv__writer_put(w, ",\"error\":");
        rv__writer_put_str(w, rv__blob_str(child->error));
    }
    rv__writer_put(w, ",\"attempts\":");
    rv__writer_put_int(w, child->attempts);
    put_attachment(w, child);
    rv__writer_put(w, "}");
}

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    bool first = true;
    rv__writer_put(w, "{");
    for (uint32_t i = 0; i < inner->child_count; i++) {
        rv__writer_put_key(w, entry->node->bodies[i].alias, &first);
        write_state(w, inner, i);
    }
    rv__writer_put(w, "}");
}

/* A text or a reference of a row, as a blob. NULL: none, or the writer has failed. */
static struct rv__blob *row_blob(struct rv__writer *w, struct rv__str json, bool reference)
{
    struct rv__blob *blob = NULL;
    int rc = RV_OK;
    if (reference)
        rc = rv__reference_read(json, &blob);
    else
        blob = rv__blob_new(json);
    if (rc == RV_EINVAL)
        rc = rv__fail(w->err, RV_ESTORE, "a finished iteration refers to no value");
    else if (blob == NULL)
        rc = RV_ENOMEM;
    if (rc < 0)
        rv__writer_fail(w, rc);
    return blob;
}

/* The result in a row of a state. `vector`: the iterations around it, with its generation. */
static void expand_value(struct rv__writer *w, const struct rv__body *body, struct rv__str row,
                         struct rv__str vector)
{
    struct rv__str value;
    if (rv__json_get(row, "resultValue", &value)) {
        struct rv__blob *result = row_blob(w, value, true);
        rv__writer_put_json(w, result, "null");
        rv__blob_unref(result);
    } else if (rv__json_get(row, "result", &value) && !rv__writer_failed(w)) {
        rv__node_expand(w, body->nodes[0], value, vector);
    } else {
        rv__writer_put(w, "null");
    }
}

static void expand_description(struct rv__writer *w, const struct rv__body *body,
                               struct rv__str row, struct rv__str vector)
{
    struct rv__str value, error = { NULL, 0 };
    struct rv__blob *state = NULL, *description = NULL;
    if (rv__json_get(row, "descriptionValue", &value))
        description = row_blob(w, value, true);
    else if (rv__json_get(row, "description", &value))
        description = row_blob(w, value, false);
    if (rv__json_get(row, "stateValue", &value))
        state = row_blob(w, value, true);
    else if (rv__json_get(row, "state", &value))
        state = row_blob(w, value, false);
    bool said = rv__writer_put_description(w, state, description);
    rv__blob_unref(state);
    rv__blob_unref(description);
    if (!said && rv__json_get(row, "error", &error)) {
        rv__writer_put_error_summary(w, error);
    } else if (!said) {
        struct rv__summary s;
        rv__summary_begin(&s, w);
        expand_value(&s.writer, body, row, vector);
        rv__summary_end(&s, w);
    }
}

/* One state of a row, in the shape that people see. */
static void expand_state(struct rv__writer *w, const struct rv__body *body, struct rv__str row,
                         struct rv__str vector)
{
    struct rv__str status = RV__STR("null"), value, attempts = RV__STR("0"), g;
    struct rv__buf inner;
    rv__buf_init(&inner, SIZE_MAX / 8);
    rv__buf_str(&inner, vector);
    if (vector.len > 0)
        rv__buf_char(&inner, '.');
    if (rv__json_get(row, "g", &g))
        rv__buf_str(&inner, g);
    if (rv__buf_err(&inner, NULL) < 0)
        rv__writer_fail(w, RV_ENOMEM);
    (void)rv__json_get(row, "status", &status);
    rv__writer_put(w, "{\"status\":");
    rv__writer_put_str(w, status);
    rv__writer_put(w, ",\"result\":");
    expand_value(w, body, row, rv__buf_view(&inner));
    rv__writer_put(w, ",\"description\":");
    expand_description(w, body, row, rv__buf_view(&inner));
    if (rv__json_get(row, "error", &value)) {
        rv__writer_put(w, ",\"error\":");
        rv__writer_put_str(w, value);
    }
    (void)rv__json_get(row, "attempts", &attempts);
    rv__writer_put(w, ",\"attempts\":");
    rv__writer_put_str(w, attempts);
    if (rv__json_get(row, "attachmentId", &value)) {
        rv__writer_put(w, ",\"attachmentId\":");
        rv__writer_put_str(w, value);
    }
    rv__writer_put(w, "}");
    rv__buf_done(&inner);
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    rv__writer_put(w, "{");
    rv__json_iter_init(&it, result);
    for (uint32_t i = 0; i < node->body_count && rv__json_next(&it, &key, &value); i++) {
        if (i > 0)
            rv__writer_put(w, ",");
        rv__writer_put_str(w, key);
        rv__writer_put(w, ":");
        if (rv__json_type(value) == RV__JSON_OBJECT)
            expand_state(w, &node->bodies[i], value, vector);
        else
            rv__writer_put_str(w, value);
    }
    rv__writer_put(w, "}");
}

/* ------------------------------------------------------------------------------- inputs --- */

/* What a state gets of one that it depends on. */
static void write_input(struct rv__writer *w, bool description, const struct rv__child *child)
{
    struct rv__str message;
    if (child->status == STATUS_FAILED) {
        struct rv__str error = rv__blob_str(child->error);
        bool has = !rv__str_none(error) && rv__json_type(error) == RV__JSON_OBJECT &&
                   rv__json_get(error, "message", &message);
        rv__writer_put(w, "{\"error\":{\"message\":");
        rv__writer_put_str(w, has ? message : rv__str("\"failed\""));
        put_attachment(w, child);
        rv__writer_put(w, "}}");
    } else if (child->scope == NULL || child->status != STATUS_COMPLETED) {
        rv__writer_put(w, "null");
    } else if (description) {
        put_description(w, child);
    } else {
        rv__result_write(w, child->scope);
    }
}

static int write_inputs(const struct rv__view *view, bool descriptions, struct rv__row_source *rows,
                        struct rv__buf *out, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    const struct rv__state *state = view->state != NULL
                                        ? &view->state->owner->stage.states[view->state->index]
                                        : NULL;
    bool shown = state != NULL && view->inputs != NULL &&
                 (state->access == ACCESS_ALL || state->access == ACCESS_EXPLICIT);
    bool first = true;
    rv__writer_put(&w, "{");
    for (uint32_t i = 0; shown && i < state->depends_count; i++) {
        rv__writer_put_key(&w, state->depends[i].param, &first);
        write_input(&w, descriptions || state->depends[i].description, &view->inputs->children[i]);
    }
    rv__writer_put(&w, "}");
    return rv__writer_end(&w);
}

bool rv__view_given(const struct rv__view *view, struct rv__str attachment)
{
    const struct rv__inner *inputs = view->inputs;
    for (uint32_t i = 0; inputs != NULL && i < inputs->child_count; i++)
        if (inputs->children[i].attachment != NULL &&
            rv__str_eq(rv__blob_str(inputs->children[i].attachment), attachment))
            return true;
    return false;
}

int rv__view_inputs(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err)
{
    return write_inputs(view, false, rows, out, err);
}

int rv__view_descriptions(const struct rv__view *view, struct rv__row_source *rows,
                          struct rv__buf *out, rv_error *err)
{
    return write_inputs(view, true, rows, out, err);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    const struct rv__schedule *s = sup->sup.schedule;
    return s->ready > 0 && index == s->heap[0] ? NULL : "not the next state";
}

static const char *end_fits(const struct rv__actor *sup, const struct rv__actor *frame,
                            const struct rv__fact *fact)
{
    uint32_t i = frame->frame.body->index;
    bool failed = fact->status == STATUS_FAILED;
    bool redirect = fact->next == NEXT_REDIRECT;
    if (fact->index != i)
        return "it is of another state";
    if (failed ? fact->next < NEXT_RETRY : fact->next != NEXT_DONE && fact->next != NEXT_FINAL)
        return "a state does not go on so";
    if (fact->attempt != sup->sup.schedule->slots[i].attempt + 1)
        return "it is of another attempt";
    if (redirect ? fact->to != state_of(sup, i)->on_failure + 1 || fact->to == 0 : fact->to != 0)
        return "it is redirected elsewhere";
    return failed || fact->error == NULL ? NULL : "only a failure has an error";
}

static const char *fact_fits(const struct rv__actor *sup, const struct rv__actor *frame,
                             const struct rv__fact *fact)
{
    const struct rv__schedule *s = sup->sup.schedule;
    if (s == NULL)
        return "it has not begun";
    if (frame != NULL)
        return end_fits(sup, frame, fact);
    if (fact->kind == FACT_BODY_STARTED) {
        const struct slot *slot = &s->slots[fact->index];
        return fact->generation == slot->generation + 1 && fact->attempt >= 1 &&
                       fact->attempt == slot->attempt + 1 && fact->name != NULL &&
                       (fact->due_ms == 0 || has_timer(sup, (uint32_t)fact->index))
                   ? NULL
                   : "its attempts are counted wrongly";
    }
    if (fact->which > s->count)
        return "it has no such state";
    enum phase phase = fact->kind == FACT_RUN_SUSPENDED ? STUCK : SUSPENDED;
    return s->slots[fact->which - 1].phase == phase ? NULL : "the state is not there";
}

/* [drained,phase,attempt,generation,released,…] */
static void save(const struct rv__actor *sup, struct rv__buf *out)
{
    const struct rv__schedule *s = sup->sup.schedule;
    rv__buf_text(out, s->drained ? "[1" : "[0");
    for (uint32_t i = 0; i < s->count; i++) {
        const int64_t numbers[] = { s->slots[i].phase, s->slots[i].attempt, s->slots[i].generation,
                                    s->slots[i].released };
        for (size_t k = 0; k < 4; k++) {
            rv__buf_char(out, ',');
            rv__buf_int(out, numbers[k]);
        }
    }
    rv__buf_char(out, ']');
}

static bool next_number(struct rv__json_iter *it, int64_t most, int64_t *ret)
{
    struct rv__str text;
    return rv__json_next(it, NULL, &text) && rv__json_int(text, ret) == RV_OK && *ret >= 0 &&
           *ret <= most;
}

static bool load(struct rv__actor *sup, struct rv__str array)
{
    struct rv__schedule *s = sup->sup.schedule;
    struct rv__json_iter it;
    int64_t drained, phase, attempt, generation, released;
    rv__json_iter_init(&it, array);
    if (!next_number(&it, 1, &drained))
        return false;
    s->ready = s->settled = s->stuck = s->suspended = 0;
    s->drained = drained == 1;
    for (int w = 0; w < WORDS; w++)
        s->holds[w] = 0;
    for (uint32_t i = 0; i < s->count; i++)
        s->slots[i] = (struct slot){ .waits_for = state_of(sup, i)->waits_for };
    for (uint32_t i = 0; i < s->count; i++) {
        const struct rv__state *state = state_of(sup, i);
        if (!next_number(&it, STATE_PHASES - 1, &phase) ||
            !next_number(&it, RV__MAX_RETRIES, &attempt) ||
            !next_number(&it, RV__MAX_NUMBER, &generation) || !next_number(&it, 1, &released))
            return false;
        if (phase == WAITING && state->on_failure == RV__NO_STATE)
            return false;
        s->slots[i].attempt = (int)attempt;
        s->slots[i].generation = generation;
        s->slots[i].released = released == 1;
        for (uint32_t d = 0; d < state->dependents_count && released == 1; d++)
            s->slots[state->dependents[d]].waits_for--;
        if (phase == WAITING)
            wait_for(sup, i, state->on_failure);
        else if (phase != BLOCKED)
            set_phase(sup, i, (enum phase)phase);
    }
    return !rv__json_next(&it, NULL, NULL);
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    const struct rv__schedule *s = sup->sup.schedule;
    if (frames != sup->sup.active)
        return false;
    if (s == NULL)
        return frames == 0;
    if (sup->sup.inner == NULL)
        return false;
    int64_t running = 0, suspensions = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct slot *slot = &s->slots[i];
        const struct rv__child *child = &sup->sup.inner->children[i];
        bool blocked = slot->phase == BLOCKED;
        running += slot->phase == RUNNING;
        if (blocked != (slot->waits_for > 0) || (slot->phase == SETTLED && !slot->released))
            return false;
        if (slot->phase == WAITING &&
            s->slots[state_of(sup, i)->on_failure].phase == SETTLED) /* nobody would wake it */
            return false;
        if (slot->phase >= STUCK && child->status == STATUS_PENDING)
            return false;
    }
    /* None is there twice: so each that is suspended has one. */
    for (const struct rv__suspension *one = sup->suspensions; one != NULL; one = one->same_next) {
        suspensions++;
        if (one->which == 0 || s->slots[one->which - 1].phase != SUSPENDED)
            return false;
    }
    for (const struct rv__actor *f = sup->child; f != NULL; f = f->next) {
        if (!f->is_frame || f->node != sup->node)
            return false;
        const struct slot *slot = &s->slots[f->frame.body->index];
        if (slot->phase != RUNNING || f->frame.iteration != slot->generation)
            return false;
    }
    return running == frames && suspensions == s->suspended;
}

const struct rv__flow_kind rv__stage_kind = {
    .first_work = first_work,
    .tells_below = true,
    .drained_out = true,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .settle = settle_attempt,
    .schedule = schedule,
    .inputs = inputs,
    .decided = decided,
    .suspended = suspended,
    .drains = drains,
    .outcomes = outcomes,
    .body_started = body_started,
    .body_ended = body_ended,
    .has_begun = has_begun,
    .inner = inner,
    .rest = rest,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_running = true,
    .body_fits = body_fits,
    .fact_fits = fact_fits,
    .save = save,
    .load = load,
    .sound = sound,
    .inner_fits = rv__children_fit,
};
