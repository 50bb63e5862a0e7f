/* record.c: what a run's facts say, by node and iterations. Read from the facts alone: it knows
 * nothing of cells, and is what the judge and the reference look into. */
#include "sim.h"

#include <stdlib.h>

static void value_done(struct rec_value *value)
{
    rv__blob_unref(value->value);
}

void record_init(struct record *rec, const struct rv__plan *plan, int max_crashes)
{
    *rec = (struct record){ .plan = plan,
                            .run_ended = -1,
                            .failed_node = RV__NO_NODE,
                            .detached_cancelled = -1,
                            .cut = -1 };
    rec->root_input.t = -1;
    rec->max_crashes = max_crashes > 0 ? max_crashes : RV__MAX_CRASHES;
    rv__arena_init(&rec->arena, SIZE_MAX);
    rec->bucket_count = 64;
    rec->buckets = sim_alloc(rec->bucket_count * sizeof *rec->buckets);
}

void record_done(struct record *rec)
{
    free(rec->answers);
    for (size_t b = 0; b < rec->bucket_count; b++) {
        for (struct rec_inst *i = rec->buckets[b]; i != NULL; i = i->chain) {
            rv__blob_unref(i->result);
            rv__blob_unref(i->state);
            rv__blob_unref(i->error);
            rv__blob_unref(i->name);
            for (int e = 0; e < EVALS; e++)
                value_done(&i->evals[e]);
            stage_done(&i->stage, rec->plan->nodes[i->node]);
            chat_done(&i->chat);
            for (size_t k = 0; k < i->body_count; k++) {
                free(i->bodies[k].outcomes);
                rv__blob_unref(i->bodies[k].error);
                value_done(&i->bodies[k].input);
                free(i->bodies[k].attachment);
            }
            free(i->bodies);
        }
    }
    rv__blob_unref(rec->error);
    rv__blob_unref(rec->aborted);
    value_done(&rec->root_input);
    for (size_t i = 0; i < rec->signal_count; i++) {
        rv__blob_unref(rec->signals[i].name);
        rv__blob_unref(rec->signals[i].payload);
    }
    free(rec->signals);
    free(rec->names);
    free(rec->actors);
    free(rec->buckets);
    rv__arena_done(&rec->arena);
}

static size_t bucket_of(const struct record *rec, uint32_t node, const int64_t *vector,
                        size_t depth)
{
    uint64_t h = mix(node, 11);
    for (size_t i = 0; i < depth; i++)
        h = mix(h, (uint64_t)vector[i]);
    return h & (rec->bucket_count - 1);
}

struct rec_inst *record_find(const struct record *rec, uint32_t node, const int64_t *vector,
                             size_t depth)
{
    struct rec_inst *i = rec->buckets[bucket_of(rec, node, vector, depth)];
    while (i != NULL && !(i->node == node && i->depth == depth &&
                          (depth == 0 || memcmp(i->vector, vector, depth * sizeof *vector) == 0)))
        i = i->chain;
    return i;
}

struct rec_actor *record_actor(const struct record *rec, uint64_t id)
{
    if (id >= rec->actor_cap || rec->actors[id].body == -2)
        return NULL;
    return &rec->actors[id];
}

/* Bodies are recorded as they start, mostly in the order of their index. */
struct rec_body *record_body(const struct rec_inst *inst, int64_t index)
{
    if (index >= 0 && (size_t)index < inst->body_count && inst->bodies[index].index == index)
        return &inst->bodies[index];
    for (size_t i = 0; i < inst->body_count; i++)
        if (inst->bodies[i].index == index)
            return &inst->bodies[i];
    return NULL;
}

struct rec_body *record_attempt(const struct rec_inst *inst, int64_t state, int64_t generation)
{
    for (size_t i = inst->body_count; i-- > 0;)
        if (inst->bodies[i].index == state && inst->bodies[i].generation == generation)
            return &inst->bodies[i];
    return NULL;
}

void record_suspension_path(const struct record *rec, const struct rec_suspension *one,
                            struct rv__buf *out)
{
    const struct rec_actor *actor = one->actor != 0 ? record_actor(rec, one->actor) : NULL;
    if (actor == NULL)
        return;
    const struct rv__node *node = actor->inst != NULL ? rec->plan->nodes[actor->inst->node] : NULL;
    if (actor->describes != NULL)
        rv__node_path(rec->plan->nodes[actor->describes->node], actor->vector, out);
    else if (one->which != 0)
        rv__body_path(&node->bodies[one->which - 1], actor->vector, out);
    else
        rv__node_path(node, actor->vector, out); /* an input: as the node that it is of */
}

/* The body above a node. False: it is a handler of a step that was aborted. */
static bool up_from(const struct record *rec, const struct rv__node *node, const int64_t *vector,
                    uint32_t depth, const struct rv__body **body, bool *finally)
{
    *body = rv__node_around(node);
    *finally |= node == rec->plan->body.wrap->finally;
    return node->handler_of == NULL ||
           !record_find(rec, node->handler_of->id, vector, depth)->aborted;
}

bool record_alive(const struct record *rec, const struct rec_inst *inst)
{
    const struct rv__body *body;
    uint32_t depth = inst->depth;
    bool finally = false; /* it is in that of the run */
    if (inst->ended >= 0)
        return false;
    if (!up_from(rec, rec->plan->nodes[inst->node], inst->vector, depth, &body, &finally))
        return false;
    while (body->owner != NULL) {
        const struct rv__node *owner = body->owner;
        bool stage = generates(owner), iterates = numbers(owner) && !stage;
        int64_t number = numbers(owner) ? inst->vector[depth - 1] : 0;
        depth -= numbers(owner);
        const struct rec_inst *above = record_find(rec, owner->id, inst->vector, depth);
        const struct rec_body *b = stage ? record_attempt(above, body->index, number)
                                         : record_body(above,
                                                       iterates ? number : (int64_t)body->index);
        if (b->ended >= 0)
            return false;
        if (owner->kind == NODE_CONCURRENT && owner->concurrent.detached && above->ended >= 0)
            return !above->detached_over && rec->detached_cancelled < above->ended &&
                   rec->status != RUN_CANCELLED;
        if (above->ended >= 0 || !up_from(rec, owner, inst->vector, depth, &body, &finally))
            return false;
    }
    return rec->run_ended < 0 && (rec->cut < 0 || finally);
}

struct rec_inst *record_waiter(const struct record *rec, struct rv__str name, bool handle)
{
    for (struct rec_inst *i = rec->first_wait; i != NULL; i = i->wait_next) {
        const struct rv__node *node = rec->plan->nodes[i->node];
        bool fits = handle ? i->parked && rv__str_eq(rv__blob_str(i->name), name)
                           : !i->parked && rv__str_eq(node->step.signal, name);
        if (fits && record_alive(rec, i))
            return i;
    }
    return NULL;
}

static struct rec_actor *new_actor(struct record *rec, uint64_t id)
{
    if (id >= rec->actor_cap) {
        size_t cap = rec->actor_cap > 0 ? rec->actor_cap : 64;
        while (cap <= id)
            cap *= 2;
        rec->actors = sim_grow(rec->actors, cap * sizeof *rec->actors);
        for (size_t i = rec->actor_cap; i < cap; i++)
            rec->actors[i] = (struct rec_actor){ .body = -2 };
        rec->actor_cap = cap;
    }
    return &rec->actors[id];
}

/* It waits for somebody outside, from now on; or no longer. */
static void set_waits(struct record *rec, struct rec_inst *inst, bool waits)
{
    if (inst->waits) {
        *(inst->wait_prev != NULL ? &inst->wait_prev->wait_next
                                  : &rec->first_wait) = inst->wait_next;
        *(inst->wait_next != NULL ? &inst->wait_next->wait_prev
                                  : &rec->last_wait) = inst->wait_prev;
    }
    inst->waits = waits;
    if (!waits)
        return;
    inst->wait_next = NULL;
    inst->wait_prev = rec->last_wait;
    *(rec->last_wait != NULL ? &rec->last_wait->wait_next : &rec->first_wait) = inst;
    rec->last_wait = inst;
}

static void more_buckets(struct record *rec)
{
    struct rec_inst **old = rec->buckets;
    size_t count = rec->bucket_count;
    rec->bucket_count = count * 4;
    rec->buckets = sim_alloc(rec->bucket_count * sizeof *rec->buckets);
    for (size_t b = 0; b < count; b++) {
        for (struct rec_inst *i = old[b], *next; i != NULL; i = next) {
            size_t to = bucket_of(rec, i->node, i->vector, i->depth);
            next = i->chain;
            i->chain = rec->buckets[to];
            rec->buckets[to] = i;
        }
    }
    free(old);
}

static struct rec_inst *new_inst(struct record *rec, uint32_t node, int64_t *vector, size_t depth,
                                 uint64_t actor)
{
    struct rec_inst *inst = rv__arena_zalloc(&rec->arena, 1, sizeof *inst);
    if (inst == NULL)
        abort();
    if (rec->insts >= rec->bucket_count)
        more_buckets(rec);
    size_t b = bucket_of(rec, node, vector, depth);
    *inst = (struct rec_inst){ .chain = rec->buckets[b],
                               .node = node,
                               .vector = vector,
                               .depth = (uint32_t)depth,
                               .actor = actor,
                               .started = -1,
                               .ended = -1,
                               .last_started = -1,
                               .eval_running = -1 };
    for (int e = 0; e < EVALS; e++)
        inst->evals[e].t = -1;
    rec->buckets[b] = inst;
    rec->insts++;
    return inst;
}

static bool node_over(const struct record *rec, const struct rv__node *node,
                      const struct rec_inst *inst);

/* Is nothing left of the run but its `finally`? */
static bool at_end(const struct record *rec)
{
    const struct rv__body *body = &rec->plan->body;
    const struct rv__node *on_error = body->wrap->on_error;
    bool failed = rec->aborted != NULL;
    if (rec->cut >= 0)
        return true;
    for (uint32_t i = 0; i < body->count && !failed; i++) {
        const struct rec_inst *inst = record_find(rec, body->nodes[i]->id, NULL, 0);
        if (!node_over(rec, body->nodes[i], inst))
            return false;
        failed = inst->hard;
    }
    const struct rec_inst *handler = on_error != NULL ? record_find(rec, on_error->id, NULL, 0)
                                                      : NULL;
    return !failed || on_error == NULL || (handler != NULL && handler->ended >= 0);
}

/* Where a node of the plan may be begun from: the actor that owns it. */
static const char *new_node(struct record *rec, const struct rv__fact *fact)
{
    const struct rec_actor *owner = record_actor(rec, fact->owner);
    if (owner == NULL)
        return "it begins below an actor that nobody has heard of";
    if (fact->node >= rec->plan->node_count)
        return "it is of a node that the plan does not have";
    const struct rv__node *node = rec->plan->nodes[fact->node];
    const struct rv__node *above = owner->inst != NULL ? rec->plan->nodes[owner->inst->node] : NULL;
    if (node->is_handler) {
        if (owner->body == -1 ? above->on_error != node : node->handler_in != owner->plan_body)
            return "a handler begins where it is none";
        if (node == rec->plan->body.wrap->finally && !at_end(rec))
            return "finally begins before the end";
    } else if (owner->body == -1) {
        return "a node begins below a node";
    } else if (node->body->owner != above) {
        return "a node begins in a body that it is not in";
    }
    if (node->loops_around != owner->depth)
        return "a node has iterations around it that it cannot have";
    if (record_find(rec, fact->node, owner->vector, owner->depth) != NULL)
        return "a node begins a second time in the same iteration";
    uint32_t depth = owner->depth;
    int64_t *vector = owner->vector;
    struct rec_actor *actor = new_actor(rec, fact->actor);
    if (actor->body != -2)
        return "two actors have one id";
    *actor = (struct rec_actor){
        .body = -1, .depth = depth, .vector = vector, .owner = fact->owner
    };
    actor->inst = new_inst(rec, fact->node, vector, depth, fact->actor);
    return NULL;
}

/* Whose outcome counts now, for each dependency of the state that begins. */
static int64_t *outcomes_now(const struct record *rec, const struct rec_actor *owner,
                             const struct rv__node *node, const struct rv__fact *fact)
{
    const struct rv__state *state = &node->stage.states[fact->index];
    int64_t *outcomes = sim_alloc((state->depends_count + 1) * sizeof *outcomes);
    for (uint32_t d = 0; d < state->depends_count; d++) {
        const struct rv__dependency *on = &state->depends[d];
        const struct rec_inst *of = owner->inst;
        if (on->stage != NULL)
            of = record_find(rec, on->stage->id, owner->vector, owner->depth);
        if (of != NULL && of->stage.states != NULL)
            outcomes[d] = of->stage.states[on->state].outcome;
    }
    return outcomes;
}

static const char *body_started(struct record *rec, const struct rv__fact *fact)
{
    const struct rec_actor *owner = record_actor(rec, fact->owner);
    if (owner == NULL || owner->body != -1)
        return "a body begins below no node";
    struct rec_inst *inst = owner->inst;
    const struct rv__node *node = rec->plan->nodes[inst->node];
    bool stage = node->kind == NODE_STAGE, numbered = generates(node);
    if (!numbered && record_body(inst, fact->index) != NULL)
        return "a body begins a second time";
    bool iterates = numbers(node) && !numbered;
    if (!iterates && fact->index >= node->body_count)
        return "a body begins that the plan does not have";
    if (rec->suspended_count > 0)
        return "a body begins while the run is suspended";
    int64_t *outcomes = stage ? outcomes_now(rec, owner, node, fact) : NULL;
    const char *why = stage ? stage_starts(&inst->stage, node, fact) : NULL;
    if (node->kind == NODE_CHAT)
        why = chat_starts(&inst->chat, node, fact, chat_is_bounded(rec, node, inst->vector));
    if (inst->body_count == inst->body_cap) {
        inst->body_cap = inst->body_cap > 0 ? inst->body_cap * 2 : 4;
        inst->bodies = sim_grow(inst->bodies, inst->body_cap * sizeof *inst->bodies);
    }
    int64_t *vector = owner->vector;
    uint32_t depth = owner->depth;
    if (iterates || numbered) {
        vector = rv__arena_alloc(&rec->arena, (depth + 1) * sizeof *vector);
        if (vector == NULL)
            abort();
        if (depth > 0)
            memcpy(vector, owner->vector, depth * sizeof *vector);
        vector[depth++] = numbered ? fact->generation : fact->index;
    }
    struct rec_actor *actor = new_actor(rec, fact->actor);
    if (actor->body != -2)
        return "two actors have one id";
    *actor = (struct rec_actor){
        .inst = inst,
        .body = (int64_t)inst->body_count,
        .plan_body = &node->bodies[iterates ? 0 : fact->index],
        .depth = depth,
        .vector = vector,
    };
    size_t active = inst->body_count - inst->bodies_ended;
    if (node->kind == NODE_LOOP && active > 0)
        why = "a loop runs two iterations at once";
    if (node->kind == NODE_FOREACH && (!node->foreach.parallel || node->foreach.concurrency > 0)) {
        int64_t limit = node->foreach.parallel ? node->foreach.concurrency : 1;
        if ((int64_t)active >= limit)
            why = "a forEach runs more at once than it may";
        if (inst->bodies_failed > 0 && !node->foreach.collect)
            why = "an iteration begins after a hard failure";
    }
    if (node->kind == NODE_CONCURRENT && node->concurrent.join == RV__JOIN_ALL &&
        !node->concurrent.detached && !node->concurrent.collect && inst->bodies_failed > 0)
        why = "a child begins after a hard failure";
    struct rec_body *body = &inst->bodies[inst->body_count++];
    *body = (struct rec_body){ .index = fact->index,
                               .generation = fact->generation,
                               .due_ms = fact->due_ms,
                               .outcomes = outcomes,
                               .started = rec->t,
                               .ended = -1 };
    body->input.t = -1;
    const char *named = stage ? attachment_begins(rec, node, fact, &body->attachment) : NULL;
    return why != NULL ? why : named;
}

static struct rec_value *eval_of(struct record *rec, struct rec_actor *actor, int eval)
{
    if (actor->describes != NULL)
        return &actor->describes->evals[eval];
    if (actor->body >= 0)
        return &actor->inst->bodies[actor->body].input;
    return actor->inst != NULL ? &actor->inst->evals[eval] : &rec->root_input;
}

static void set(struct rv__blob **to, struct rv__blob *from)
{
    rv__blob_unref(*to);
    *to = rv__blob_ref(from);
}

static void set_value(struct record *rec, struct rec_actor *actor, const struct rv__fact *fact)
{
    struct rec_value *value = eval_of(rec, actor, fact->eval);
    value->failed = fact->kind != FACT_EVAL_COMPLETED;
    value->t = rec->t;
    set(&value->value, value->failed ? fact->error : fact->result);
    actor->describes = NULL;
    if (actor->inst != NULL && actor->body == -1) {
        actor->inst->eval_counts[fact->eval]++;
        actor->inst->eval_running = -1;
    }
}

/* A node fails with its evaluation, and there is no fact of that alone. */
static void eval_failed(struct record *rec, struct rec_inst *inst, const struct rv__fact *fact)
{
    struct rec_value *value = &inst->evals[inst->eval_running];
    value->failed = true;
    value->t = rec->t;
    set(&value->value, fact->error);
    inst->eval_counts[inst->eval_running]++;
    inst->eval_running = -1;
}

/* Signals are kept in order, and each wakes one waiter: the one that waited longest. */
static const char *signal_taken(struct record *rec, const struct rec_inst *inst)
{
    struct rv__str name = rec->plan->nodes[inst->node]->step.signal;
    for (size_t i = 0; i < rec->signal_count; i++) {
        struct rec_signal *signal = &rec->signals[i];
        if (signal->taken || !rv__str_eq(rv__blob_str(signal->name), name))
            continue;
        struct rv__str got = rv__blob_str(inst->result), sent = rv__blob_str(signal->payload);
        if (!rv__str_eq(rv__str_none(got) ? rv__str("null") : got,
                        rv__str_none(sent) ? rv__str("null") : sent))
            return "a signal is taken out of turn, or with another payload";
        signal->taken = true;
        const struct rec_inst *other = record_waiter(rec, name, false);
        if (other != NULL && other->last_started < inst->last_started)
            return "a signal wakes one that did not wait longest";
        return NULL;
    }
    return "a signal is taken that nobody sent";
}

static void signal_received(struct record *rec, const struct rv__fact *fact)
{
    if (rec->signal_count == rec->signal_cap) {
        rec->signal_cap = rec->signal_cap > 0 ? rec->signal_cap * 2 : 8;
        rec->signals = sim_grow(rec->signals, rec->signal_cap * sizeof *rec->signals);
    }
    rec->signals[rec->signal_count++] = (struct rec_signal){ rv__blob_ref(fact->name),
                                                             rv__blob_ref(fact->result), false };
}

static void note_answer(struct record *rec, const struct rec_inst *turn, struct rv__budget used)
{
    if (rec->answer_count == rec->answer_cap) {
        rec->answer_cap = rec->answer_cap > 0 ? rec->answer_cap * 2 : 8;
        rec->answers = sim_grow(rec->answers, rec->answer_cap * sizeof *rec->answers);
    }
    rec->answers[rec->answer_count++] = (struct rec_answer){ turn, used };
}

static const char *step_ended(struct record *rec, struct rec_inst *inst,
                              const struct rv__fact *fact, enum rv__status status)
{
    if (inst->ended >= 0)
        return "a step that has ended ends again";
    if (inst->eval_running >= 0 && status == STATUS_FAILED) /* its `when` failed */
        eval_failed(rec, inst, fact);
    else if (inst->started < 0)
        return "a step ends that never started";
    if (fact->attempt != inst->attempt)
        return "a step ends with another attempt than the one that began";
    inst->ended = rec->t;
    inst->status = status;
    inst->hard = fact->hard;
    inst->parked = false;
    set_waits(rec, inst, false);
    set(&inst->result, fact->result);
    set(&inst->state, fact->state);
    set(&inst->error, fact->error);
    const struct rv__node *node = rec->plan->nodes[inst->node];
    if (node->step.kind == STEP_CHAT) {
        struct rec_inst *chat = record_find(rec, node->body->owner->id, inst->vector,
                                            inst->depth - 1);
        chat->chat.gave_up = status == STATUS_FAILED && fact->due_ms == 0;
        if (status == STATUS_COMPLETED)
            note_answer(rec, inst, chat_answered(&chat->chat, node->body->owner, fact));
    }
    return fact->taken ? signal_taken(rec, inst) : NULL;
}

static void absolve(struct rec_actor *actor)
{
    actor->suspect = false;
    actor->deaths = 0;
}

static const char *too_many_deaths(const struct record *rec, const struct rv__fact *fact)
{
    const struct rec_actor *actor = record_actor(rec, fact->actor);
    return actor->blames > rec->max_crashes ? "it starts again after too many deaths" : NULL;
}

/* It was in flight in its process, which died: twice makes a suspect, and the suspect is to blame. */
static const char *shared_death(const struct record *rec, struct rec_actor *actor,
                                const struct rv__fact *fact)
{
    if (fact->deaths == 0) /* it had a process of its own, or nobody died */
        return fact->suspect ? "a suspect without a death" : NULL;
    if (fact->deaths != ++actor->deaths)
        return "its deaths are counted wrongly";
    if (fact->blame != actor->suspect)
        return "the suspect in flight is to blame for a death, and nobody else";
    if (actor->deaths - 3 > rec->max_crashes)
        return "it was in flight in more deaths than it takes to find out";
    actor->suspect |= actor->deaths >= 2;
    if (fact->suspect != (actor->deaths == 2))
        return "the second death makes a suspect";
    return NULL;
}

static const char *step_started(struct record *rec, struct rec_inst *inst,
                                const struct rv__fact *fact)
{
    if (inst->ended >= 0)
        return "a step that has ended starts again";
    if (rec->plan->nodes[inst->node]->step.input.kind != EXPR_NONE &&
        (inst->evals[EVAL_INPUT].t < 0 || inst->evals[EVAL_INPUT].failed))
        return "a step starts without the input that a function makes";
    if (inst->started < 0)
        inst->started = rec->t;
    inst->last_started = rec->t;
    inst->status = STATUS_RUNNING;
    int expected = inst->next_attempt > 0 ? inst->next_attempt : 1;
    inst->attempt = inst->next_attempt = fact->attempt;
    inst->due_ms = fact->due_ms;
    if (rec->plan->nodes[inst->node]->step.kind == STEP_SIGNAL)
        set_waits(rec, inst, true);
    if (fact->attempt != expected) /* a failed attempt counts, a lost one does not */
        return "its attempts are counted wrongly";
    return too_many_deaths(rec, fact);
}

/* The next attempt has the same number, and sees the note. */
static const char *step_noted(struct record *rec, struct rec_inst *inst,
                              const struct rv__fact *fact)
{
    if (inst == NULL || inst->status != STATUS_RUNNING || fact->note == NULL || fact->taken)
        return "a note of nobody";
    if (inst->noted)
        return "an attempt did not see the note of the one before it";
    inst->status = STATUS_PENDING;
    inst->noted = true;
    (void)rec;
    return NULL;
}

static const char *node_ended(struct record *rec, struct rec_inst *inst,
                              const struct rv__fact *fact, enum rv__status status)
{
    const struct rv__node *node = rec->plan->nodes[inst->node];
    if (inst->ended >= 0 && node->kind == NODE_CONCURRENT && node->concurrent.detached &&
        !inst->detached_over) {
        inst->detached_over = true; /* it went on, and has come to its own end */
        return inst->bodies_ended < node->body_count ? "a detached block ends before its children"
                                                     : NULL;
    }
    if (inst->ended >= 0)
        return "a node that has ended ends again";
    if (inst->eval_running >= 0 && status == STATUS_FAILED)
        eval_failed(rec, inst, fact);
    if (node->kind == NODE_STEP && status != STATUS_SKIPPED && status != STATUS_FAILED)
        return "a step ends as a supervisor does";
    inst->ended = rec->t;
    inst->status = status;
    inst->hard = status == STATUS_FAILED &&
                 !(node->kind == NODE_CHAT && node->chat.config.continue_on_error);
    set(&inst->error, fact->error);
    if (node->kind == NODE_STAGE && status == STATUS_COMPLETED && !stage_over(&inst->stage, node))
        return "a stage ends before its states have settled";
    return NULL;
}

/* As its agent ended; one that has not took too long. */
static const char *attempt_ended(const struct record *rec, const struct rec_actor *actor,
                                 struct rec_inst *inst, const struct rv__fact *fact)
{
    const struct rv__node *node = rec->plan->nodes[inst->node];
    const struct rv__node *agent = node->bodies[fact->index].nodes[0];
    const struct rec_inst *of = record_find(rec, agent->id, actor->vector, actor->depth);
    bool over = of != NULL && of->ended >= 0;
    if (!over && inst->bodies[actor->body].due_ms == 0)
        return "an attempt ends before its agent";
    return stage_ends(&inst->stage, node, fact, over ? (enum rv__status)of->status : STATUS_FAILED);
}

/* What was to be decided about has ended with something around it. */
static void drop_gone(struct record *rec)
{
    size_t kept = 0;
    for (size_t i = 0; i < rec->suspended_count; i++) {
        struct rec_suspension one = rec->suspended[i];
        const struct rec_actor *actor = one.actor != 0 ? &rec->actors[one.actor] : NULL;
        bool gone = actor != NULL && actor->inst != NULL && !record_alive(rec, actor->inst);
        if (actor != NULL && actor->body >= 0)
            gone |= actor->inst->bodies[actor->body].ended >= 0;
        if (!gone)
            rec->suspended[kept++] = one;
    }
    rec->suspended_count = kept;
}

static const char *suspended(struct record *rec, const struct rv__fact *fact)
{
    const struct rec_actor *actor = fact->actor != 0 ? record_actor(rec, fact->actor) : NULL;
    bool whole = fact->actor == 0;
    if (rec->status != RUN_RUNNING && (whole || rec->status != RUN_SUSPENDED))
        return "a run is suspended that does not run";
    if (whole && fact->error == NULL)
        return "a run is suspended without a reason";
    if (!whole && actor == NULL)
        return "a run is suspended by nobody";
    for (size_t i = 0; i < rec->suspended_count; i++)
        if (rec->suspended[i].actor == 0 ||
            (rec->suspended[i].actor == fact->actor && rec->suspended[i].which == fact->which))
            return "a run is suspended for the same again, or is so as a whole";
    if (fact->which != 0 && actor->inst->stage.states[fact->which - 1].phase != REC_STUCK)
        return "a run is suspended for a state that goes on";
    if (rec->suspended_count == sizeof rec->suspended / sizeof *rec->suspended)
        abort();
    rec->suspended[rec->suspended_count++] = (struct rec_suspension){ fact->actor, fact->which };
    rec->status = RUN_SUSPENDED;
    return NULL;
}

/* A stage, or a chat, begins anew: what was in flight in it is over. */
static void stage_anew(struct record *rec, struct rec_inst *inst)
{
    for (size_t i = 0; i < inst->body_count; i++)
        if (inst->bodies[i].ended < 0) {
            inst->bodies[i].ended = rec->t;
            inst->bodies[i].status = STATUS_CANCELLED;
            inst->bodies_ended++;
        }
}

static const char *resumed(struct record *rec, const struct rv__fact *fact)
{
    if (rec->status != RUN_SUSPENDED)
        return "a run is resumed that is not suspended";
    size_t at = 0;
    while (at < rec->suspended_count &&
           (rec->suspended[at].actor != fact->actor || rec->suspended[at].which != fact->which))
        at++;
    if (at == rec->suspended_count && !(fact->actor == 0 && rec->suspended_count == 0))
        return "it is decided about what nobody asked about";
    for (size_t i = at; i + 1 < rec->suspended_count; i++)
        rec->suspended[i] = rec->suspended[i + 1];
    rec->suspended_count -= rec->suspended_count > 0;
    const char *why = NULL;
    if (fact->actor != 0 && fact->which == 0) {
        rec->actors[fact->actor].blames = 0;
        absolve(&rec->actors[fact->actor]);
    } else if (fact->actor != 0) {
        struct rec_inst *inst = rec->actors[fact->actor].inst;
        why = stage_decided(&inst->stage, rec->plan->nodes[inst->node], fact->which - 1,
                            (enum rv__decision)fact->decision);
        if (fact->decision == DECISION_RESTART) {
            stage_anew(rec, inst);
            rec->anew++;
            size_t kept = 0;
            for (size_t i = 0; i < rec->suspended_count; i++)
                if (rec->suspended[i].actor != fact->actor)
                    rec->suspended[kept++] = rec->suspended[i];
            rec->suspended_count = kept;
            drop_gone(rec);
        }
    }
    if (fact->left != (int64_t)rec->suspended_count)
        return "what is left to decide is counted wrongly";
    rec->status = rec->suspended_count > 0 ? RUN_SUSPENDED : RUN_RUNNING;
    return why;
}

/* A stage that never begins, for a final state has completed before it. */
static const char *left_out(struct record *rec, const struct rv__fact *fact)
{
    struct rec_actor *owner = record_actor(rec, fact->owner);
    const struct rv__node *node = rec->plan->nodes[fact->node];
    bool drained = false;
    if (owner == NULL || owner->body == -1 || node->kind != NODE_STAGE)
        return "something is left out that cannot be";
    for (uint32_t i = 0; i < node->index; i++) {
        const struct rec_inst *before = record_find(rec, node->body->nodes[i]->id, owner->vector,
                                                    owner->depth);
        drained |= before != NULL && before->stage.drained;
    }
    if (!drained)
        return "a stage is left out, and no final state has completed";
    struct rec_inst *inst = new_inst(rec, fact->node, owner->vector, owner->depth, fact->actor);
    inst->ended = rec->t;
    inst->status = STATUS_SKIPPED;
    inst->left_out = true;
    return NULL;
}

static const char *known_fact(struct record *rec, const struct rv__fact *fact)
{
    struct rec_actor *actor = record_actor(rec, fact->actor);
    if (actor == NULL)
        return "it concerns an actor that nobody has heard of";
    struct rec_inst *inst = actor->inst;
    const char *why;
    bool describes = fact->kind == FACT_EVAL_STARTED && fact->eval == EVAL_DESCRIPTION;
    if (describes) {
        actor->describes = record_find(rec, fact->node, actor->vector, actor->depth);
        if (actor->describes == NULL || actor->describes->status != STATUS_COMPLETED)
            return "it describes a node that has not completed";
        if (actor->describes->evals[EVAL_DESCRIPTION].t >= 0)
            return "it describes a node a second time";
    }
    if (actor->describes != NULL ? fact->node != actor->describes->node
                                 : inst != NULL && fact->node != inst->node)
        return "it names another node than its actor has";
    switch (fact->kind) {
    case FACT_EVAL_STARTED:
        if (inst != NULL && actor->body == -1 && fact->eval == EVAL_INPUT &&
            inst->evals[EVAL_INPUT].t >= 0)
            return "the input of a step is made a second time";
        if (inst != NULL && actor->body == -1)
            inst->eval_running = fact->eval;
        actor->eval_started = rec->t;
        return too_many_deaths(rec, fact);
    case FACT_EVAL_COMPLETED:
    case FACT_EVAL_FAILED:
        set_value(rec, actor, fact);
        actor->blames = 0;
        absolve(actor);
        return NULL;
    case FACT_NODE_STARTED:
        if (inst->started >= 0)
            return "a node begins a second time";
        inst->started = rec->t;
        inst->status = STATUS_RUNNING;
        if (rec->plan->nodes[inst->node]->kind == NODE_STAGE)
            stage_begins(&inst->stage, rec->plan->nodes[inst->node]);
        if (rec->plan->nodes[inst->node]->kind == NODE_CHAT)
            chat_begins(&inst->chat);
        return NULL;
    case FACT_NODE_RETRYING:
        if (fact->attempt != inst->chat.attempt || inst->status != STATUS_RUNNING)
            return "another conversation is given up than the one that runs";
        inst->status = STATUS_WAITING_RETRY;
        inst->due_ms = fact->due_ms;
        chat_anew(&inst->chat);
        stage_anew(rec, inst);
        drop_gone(rec);
        return NULL;
    case FACT_NODE_COMPLETED: return node_ended(rec, inst, fact, STATUS_COMPLETED);
    case FACT_NODE_FAILED: return node_ended(rec, inst, fact, STATUS_FAILED);
    case FACT_NODE_SKIPPED: return node_ended(rec, inst, fact, STATUS_SKIPPED);
    case FACT_BODY_ENDED: {
        if (actor->body < 0)
            return "a body ends that is none";
        struct rec_body *body = &inst->bodies[actor->body];
        if (body->ended >= 0)
            return "a body ends again";
        why = NULL;
        if (rec->plan->nodes[inst->node]->kind == NODE_STAGE)
            why = attempt_ended(rec, actor, inst, fact);
        if (rec->plan->nodes[inst->node]->kind == NODE_CHAT)
            chat_ends(&inst->chat, fact);
        body->ended = rec->t;
        body->status = fact->status;
        set(&body->error, fact->error);
        inst->bodies_ended++;
        inst->bodies_failed += fact->status == STATUS_FAILED;
        drop_gone(rec);
        return why;
    }
    case FACT_STEP_STARTED: return step_started(rec, inst, fact);
    case FACT_STEP_COMPLETED: return step_ended(rec, inst, fact, STATUS_COMPLETED);
    case FACT_STEP_SKIPPED: return step_ended(rec, inst, fact, STATUS_SKIPPED);
    case FACT_STEP_FAILED: return step_ended(rec, inst, fact, STATUS_FAILED);
    case FACT_STEP_RETRYING:
        if (fact->attempt != inst->attempt)
            return "another attempt is tried again than the one that began";
        inst->status = STATUS_WAITING_RETRY;
        inst->due_ms = fact->due_ms;
        inst->parked = false;
        set_waits(rec, inst, false);
        inst->next_attempt = inst->attempt + 1;
        inst->noted = false;
        absolve(actor);
        return NULL;
    case FACT_STEP_PARKED:
        inst->parked = true;
        set_waits(rec, inst, true);
        inst->due_ms = fact->due_ms;
        set(&inst->name, fact->name);
        return NULL;
    case FACT_STEP_NOTED: return step_noted(rec, inst, fact);
    case FACT_STEP_LOST:
        why = shared_death(rec, actor, fact);
        if (why != NULL)
            return why;
        actor->blames += fact->blame;
        if (inst != NULL && actor->body == -1 && inst->status == STATUS_RUNNING)
            inst->status = STATUS_PENDING;
        return NULL;
    case FACT_STEP_GIVEN:
        return inst != NULL && inst->status == STATUS_RUNNING ? NULL : "it was given to nobody";
    case FACT_STEP_READ: return NULL; /* that it is in flight: judge.c */
    case FACT_TIMER_FIRED:
        if (inst->status != STATUS_WAITING_RETRY)
            return "a timer fires for a step that waits for none";
        inst->status = STATUS_PENDING;
        if (rec->plan->nodes[inst->node]->kind == NODE_CHAT) {
            inst->status = STATUS_RUNNING;
            inst->chat.waits = false;
        }
        return NULL;
    case FACT_RUN_STARTED:
    case FACT_RUN_COMPLETED:
    case FACT_RUN_FAILED:
    case FACT_RUN_CANCELLING:
    case FACT_RUN_CANCELLED:
    case FACT_RUN_SUSPENDED:
    case FACT_RUN_RESUMED:
    case FACT_RUN_ABORTED:
    case FACT_BODY_STARTED:
    case FACT_SIGNAL_RECEIVED:
    case FACT_DETACHED_ENDED:
    case FACT_DETACHED_CANCELLED:
    case FACT_KINDS: break;
    }
    return "it is of no kind";
}

static const char *run_ended(struct record *rec, const struct rv__fact *fact,
                             enum rv__run_status status)
{
    if (rec->run_ended >= 0)
        return "a run that has ended ends again";
    rec->run_ended = rec->t;
    rec->ended_ms = fact->at_ms;
    rec->suspended_count = 0;
    rec->status = status;
    set(&rec->error, fact->error);
    rec->failed_node = fact->node;
    return NULL;
}

static bool node_over(const struct record *rec, const struct rv__node *node,
                      const struct rec_inst *inst)
{
    if (inst == NULL || inst->ended < 0)
        return false;
    if (node->on_error == NULL || inst->status != STATUS_FAILED || inst->aborted)
        return true; /* an abort leaves no time for the step's own handler */
    const struct rec_inst *handler = record_find(rec, node->on_error->id, inst->vector,
                                                 inst->depth);
    return handler != NULL && handler->ended >= 0;
}

static void leave_handler(struct record *rec)
{
    const struct rv__node *on_error = rec->plan->body.wrap->on_error;
    struct rec_inst *handler = on_error != NULL ? record_find(rec, on_error->id, NULL, 0) : NULL;
    if (handler != NULL && handler->ended < 0)
        handler->ended = rec->t;
}

/* The top-level node that the run is in, or comes to next, fails with the reason; behind the last one
 * the run itself does. Has it failed already, the handler it is in is left. */
static void run_aborted(struct record *rec, const struct rv__fact *fact, bool at_state)
{
    const struct rv__body *body = &rec->plan->body;
    struct rec_inst *finally = body->wrap->finally != NULL
                                   ? record_find(rec, body->wrap->finally->id, NULL, 0)
                                   : NULL;
    if (finally != NULL && finally->ended < 0) {
        finally->ended = rec->t; /* it is left, too */
        rec->past_handler = true;
    }
    if (rec->cut >= 0)
        return;
    for (uint32_t i = 0; i < body->count; i++) {
        struct rec_inst *inst = record_find(rec, body->nodes[i]->id, NULL, 0);
        if (!node_over(rec, body->nodes[i], inst)) {
            if (inst == NULL)
                inst = new_inst(rec, body->nodes[i]->id, NULL, 0, 0);
            inst->aborted = inst->hard = true;
            rec->aborted_at_state = at_state; /* a later abort ends a handler, and no node */
            inst->ended = rec->t;
            inst->status = STATUS_FAILED;
            set(&inst->error, fact->error);
            return;
        }
        if (inst->hard) {
            leave_handler(rec);
            return;
        }
    }
    if (rec->aborted != NULL) {
        leave_handler(rec);
        return;
    }
    set(&rec->aborted, fact->error);
    rec->aborted_at_state = at_state;
}

static const char *run_cancelling(struct record *rec)
{
    const struct rv__node *node = rec->plan->body.wrap->finally;
    if (node == NULL || rec->asked)
        return "it is to be cancelled, and does not end";
    const struct rec_inst *finally = record_find(rec, node->id, NULL, 0);
    rec->asked = true;
    if (finally != NULL)
        return NULL; /* which goes on */
    rec->cut = rec->detached_cancelled = rec->t;
    rec->suspended_count = 0;
    rec->status = RUN_RUNNING;
    return NULL;
}

/* Is it the path of a state that somebody had to decide about? */
static bool names_state(const struct record *rec, struct rv__str path)
{
    bool is = false;
    for (size_t i = 0; i < rec->suspended_count && !is; i++) {
        struct rv__buf buf;
        rv__buf_init(&buf, SIZE_MAX);
        record_suspension_path(rec, &rec->suspended[i], &buf);
        is = rec->suspended[i].which != 0 && rv__str_eq(rv__buf_view(&buf), path);
        rv__buf_done(&buf);
    }
    return is;
}

static const char *take_in(struct record *rec, const struct rv__fact *fact)
{
    const char *why = NULL;
    bool at_state;
    if (!rec->started && fact->kind != FACT_RUN_STARTED)
        return "something happens before the run starts";
    switch (fact->kind) {
    case FACT_RUN_STARTED:
        if (rec->started)
            return "a run starts again";
        rec->started = true;
        rec->status = RUN_RUNNING;
        *new_actor(rec, fact->actor) = (struct rec_actor){ .body = -3,
                                                           .plan_body = &rec->plan->body };
        return NULL;
    case FACT_RUN_COMPLETED: return run_ended(rec, fact, RUN_COMPLETED);
    case FACT_RUN_FAILED: return run_ended(rec, fact, RUN_FAILED);
    case FACT_RUN_CANCELLING: return run_cancelling(rec);
    case FACT_RUN_CANCELLED: return run_ended(rec, fact, RUN_CANCELLED);
    case FACT_RUN_SUSPENDED: return suspended(rec, fact);
    case FACT_RUN_RESUMED: return resumed(rec, fact);
    case FACT_RUN_ABORTED:
        if (rec->status != RUN_SUSPENDED)
            return "a run is aborted that is not suspended";
        rec->status = RUN_RUNNING;
        at_state = names_state(rec, rv__error_path(rv__blob_str(fact->error)));
        rec->suspended_count = 0;
        run_aborted(rec, fact, at_state);
        return NULL;
    case FACT_SIGNAL_RECEIVED: signal_received(rec, fact); return NULL;
    case FACT_DETACHED_ENDED: return NULL;
    case FACT_DETACHED_CANCELLED: rec->detached_cancelled = rec->t; return NULL;
    case FACT_BODY_STARTED: return body_started(rec, fact);
    case FACT_EVAL_STARTED:
    case FACT_NODE_STARTED:
    case FACT_STEP_STARTED:
        if (fact->owner != 0)
            why = new_node(rec, fact);
        return why != NULL ? why : known_fact(rec, fact);
    case FACT_EVAL_COMPLETED:
    case FACT_EVAL_FAILED:
    case FACT_NODE_COMPLETED:
    case FACT_NODE_FAILED:
    case FACT_NODE_RETRYING:
    case FACT_BODY_ENDED:
    case FACT_STEP_COMPLETED:
    case FACT_STEP_SKIPPED:
    case FACT_STEP_FAILED:
    case FACT_STEP_RETRYING:
    case FACT_STEP_PARKED:
    case FACT_STEP_NOTED:
    case FACT_STEP_LOST:
    case FACT_STEP_GIVEN:
    case FACT_STEP_READ:
    case FACT_TIMER_FIRED: return known_fact(rec, fact);
    case FACT_NODE_SKIPPED: return fact->owner != 0 ? left_out(rec, fact) : known_fact(rec, fact);
    case FACT_KINDS: break;
    }
    return "it is of no kind";
}

bool record_fact(struct record *rec, const struct rv__fact *fact, const char **why)
{
    *why = take_in(rec, fact);
    rec->t++;
    rec->counts[fact->kind]++;
    return *why == NULL;
}
