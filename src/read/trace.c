/* trace.c: the history of a run, built from its journal: the instances of its nodes, when they started and ended,
 * their attempts, what they waited for.
 *
 * This is not the state machine: nothing is decided here. So it is small, linear in the journal, and also knows
 * what the cell has dropped.
 *
 * Queue time is how long a ready piece of work waited for a free place: from the fact that made it ready (the node
 * before it ended, its retry timer fired, its block started) to the fact that it started. A body of a forEach
 * starts with its first work; its time counts from the items, or, if `concurrency` held it back, from the end of
 * the body that made room. */
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "read/detail.h"
#include "read/kinds.h"

enum {
    FIRST_NODES = 64,
    FIRST_BLOCKS = 16,
    ERROR_BYTES = 8192,      /* of an error stored with its node; of a longer one, */
    MESSAGE_BYTES = 2048,    /* the end of its message */
    DESCRIPTION_BYTES = 500, /* of a description; it is a sentence */
};

void rv__trace_init(struct rv__trace *trace, const struct rv__plan *plan, bool keep_ended)
{
    *trace = (struct rv__trace){ .plan = plan, .keep_ended = keep_ended };
    rv__buf_init(&trace->texts, UINT32_MAX / 2);
}

void rv__trace_done(struct rv__trace *trace)
{
    rv__free(trace->at);
    rv__free(trace->table);
    rv__free(trace->blocks);
    rv__free(trace->suspended);
    rv__buf_done(&trace->texts);
    *trace = (struct rv__trace){ .plan = NULL };
}

/* ---------------------------------------------------------------------------------- table --- */

static size_t slot_of(const struct rv__trace *t, uint64_t actor)
{
    return (size_t)(actor * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (t->table_size - 1);
}

static uint32_t find(const struct rv__trace *t, uint64_t actor)
{
    if (t->table_size == 0)
        return 0;
    size_t at = slot_of(t, actor);
    while (t->table[at] != 0 && t->at[t->table[at]].actor != actor)
        at = (at + 1) & (t->table_size - 1);
    return t->table[at];
}

uint32_t rv__trace_find(const struct rv__trace *t, uint64_t actor)
{
    return find(t, actor);
}

static void table_put(struct rv__trace *t, uint32_t i)
{
    size_t at = slot_of(t, t->at[i].actor);
    while (t->table[at] != 0)
        at = (at + 1) & (t->table_size - 1);
    t->table[at] = i;
    t->table_count++;
}

static bool table_grow(struct rv__trace *t)
{
    size_t old_size = t->table_size, size = old_size ? old_size * 2 : (size_t)FIRST_NODES * 2;
    uint32_t *old = t->table, *table = rv__zalloc(size, sizeof *table);
    if (table == NULL)
        return false;
    t->table = table;
    t->table_size = size;
    t->table_count = 0;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != 0)
            table_put(t, old[i]);
    rv__free(old);
    return true;
}

/* Without tombstones: later entries move up. */
static void table_remove(struct rv__trace *t, uint32_t i)
{
    size_t mask = t->table_size - 1, hole = slot_of(t, t->at[i].actor);
    while (t->table[hole] != i)
        hole = (hole + 1) & mask;
    for (size_t at = (hole + 1) & mask; t->table[at] != 0; at = (at + 1) & mask) {
        size_t home = slot_of(t, t->at[t->table[at]].actor);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            t->table[hole] = t->table[at];
            hole = at;
        }
    }
    t->table[hole] = 0;
    t->table_count--;
}

/* ---------------------------------------------------------------------------------- nodes --- */

static int grow(struct rv__trace *t, rv_error *err)
{
    uint32_t cap = t->cap ? t->cap * 2 : FIRST_NODES;
    if (t->cap >= RV__TRACE_NODES)
        return rv__fail(err, RV_ETOOBIG, "the run has more than %d nodes: too many to list",
                        (int)RV__TRACE_NODES);
    struct rv__traced *at = rv__realloc(t->at, cap * sizeof *at);
    if (at == NULL)
        return rv__nomem(err);
    t->at = at;
    t->cap = cap;
    if (t->count == 0)
        t->at[t->count++] = (struct rv__traced){ .actor = 0 }; /* none */
    return RV_OK;
}

/* Add an instance below `parent` (0: the outermost). Its index is in *ret. Negative: an error. */
static int add(struct rv__trace *t, uint32_t parent, uint64_t actor, uint32_t *ret, rv_error *err)
{
    uint32_t i = t->spare;
    if (i != 0) {
        t->spare = t->at[i].next;
    } else {
        int rc = t->count >= t->cap ? grow(t, err) : RV_OK;
        if (rc < 0)
            return rc;
        i = t->count++;
    }
    if ((t->table_count + 1) * 4 > t->table_size * 3 && !table_grow(t))
        return rv__nomem(err);
    t->at[i] = (struct rv__traced){ .actor = actor, .parent = parent, .live = true };
    t->at[i].node = RV__NO_NODE;
    table_put(t, i);
    struct rv__traced *p = &t->at[parent];
    if (parent != 0) {
        t->at[i].prev = p->last;
        if (p->last != 0)
            t->at[p->last].next = i;
        else
            p->first = i;
        p->last = i;
        p->children++;
    }
    *ret = i;
    return RV_OK;
}

static void drop(struct rv__trace *t, uint32_t i)
{
    struct rv__traced *a = &t->at[i];
    if (a->parent != 0) {
        struct rv__traced *p = &t->at[a->parent];
        if (a->prev != 0)
            t->at[a->prev].next = a->next;
        else
            p->first = a->next;
        if (a->next != 0)
            t->at[a->next].prev = a->prev;
        else
            p->last = a->prev;
    }
    a->next = t->spare;
    t->spare = i;
}

static const struct rv__node *plan_node(const struct rv__trace *t, uint32_t i)
{
    return t->at[i].node != RV__NO_NODE ? t->plan->nodes[t->at[i].node] : NULL;
}

static bool is_step(const struct rv__trace *t, uint32_t i)
{
    return !t->at[i].frame && plan_node(t, i)->kind == NODE_STEP;
}

size_t rv__trace_vector(const struct rv__trace *t, uint32_t of, int64_t vector[RV__PLAN_MAX_DEPTH])
{
    size_t count = 0;
    for (uint32_t i = of; i != 0; i = t->at[i].parent) {
        if (!t->at[i].frame || t->at[i].node == RV__NO_NODE)
            continue;
        if (!rv__node_numbers(plan_node(t, i)) || count == RV__PLAN_MAX_DEPTH)
            continue;
        vector[count++] = t->at[i].generation > 0 ? t->at[i].generation : t->at[i].iteration;
    }
    for (size_t l = 0, r = count; l + 1 < r; l++) {
        int64_t swap = vector[l];
        vector[l] = vector[--r];
        vector[r] = swap;
    }
    return count;
}

/* --------------------------------------------------------------------------------- blocks --- */

size_t rv__trace_block_size(const struct rv__trace_block *block)
{
    size_t size = 0;
    for (int i = 0; i < STATUSES; i++)
        size += block->in[i];
    return size;
}

/* Add a block after the supervisor's last one; 0: no memory. */
static uint32_t block_add(struct rv__trace *t, uint32_t sup, uint32_t first)
{
    if (t->block_count == t->block_cap) {
        uint32_t cap = t->block_cap ? t->block_cap * 2 : FIRST_BLOCKS;
        struct rv__trace_block *blocks = rv__realloc(t->blocks, cap * sizeof *blocks);
        if (blocks == NULL) {
            t->no_memory = true;
            return 0;
        }
        t->blocks = blocks;
        t->block_cap = cap;
        t->block_count += t->block_count == 0; /* 0 is none */
    }
    uint32_t block = t->block_count++;
    t->blocks[block] = (struct rv__trace_block){ .first = first };
    if (t->at[sup].block == 0)
        t->at[sup].block = block;
    else
        t->blocks[t->at[sup].last_block].next = block;
    t->at[sup].last_block = block;
    return block;
}

/* An iteration has started. */
static void enter_block(struct rv__trace *t, uint32_t i)
{
    uint32_t sup = t->at[i].parent, block = t->at[sup].last_block;
    if (!t->keep_ended || rv__node_bodies(plan_node(t, sup)) != BODIES_ITERATED)
        return;
    if (block == 0 || rv__trace_block_size(&t->blocks[block]) == RV__TRACE_BLOCK)
        block = block_add(t, sup, i);
    if (block == 0)
        return;
    t->at[i].block = block;
    t->blocks[block].in[t->at[i].status]++;
}

/* The detail to fill, if it is about this instance. */
static struct rv__detail *detail_of(const struct rv__trace *t, uint32_t i)
{
    return t->detail != NULL && t->detail->actor == t->at[i].actor ? t->detail : NULL;
}

/* ----------------------------------------------------------------------------------- ends --- */

static void remove_live(struct rv__trace *t, uint32_t i)
{
    if (!t->at[i].live)
        return;
    t->at[i].live = false;
    table_remove(t, i);
}

static void finish(struct rv__trace *t, uint32_t i, enum rv__status status, int64_t at_ms)
{
    struct rv__traced *a = &t->at[i];
    if (a->completed_ms != 0) /* its handler has ended now; or it was detached before */
        return;
    if (a->frame && a->block != 0) {
        t->blocks[a->block].in[a->status]--;
        t->blocks[a->block].in[status]++;
    }
    a->status = (uint8_t)status;
    a->completed_ms = at_ms;
    a->due_ms = 0;
    if (detail_of(t, i) != NULL)
        rv__detail_finished(t->detail, status, at_ms);
}

/* The first below `i` in an order with children before parents. */
static uint32_t deepest(const struct rv__trace *t, uint32_t i)
{
    while (t->at[i].first != 0)
        i = t->at[i].first;
    return i;
}

/* End everything active below `top`; detached blocks continue, unless `all`. */
static void cancel_below(struct rv__trace *t, uint32_t top, int64_t at_ms, bool all)
{
    for (uint32_t i = deepest(t, top), next; i != top; i = next) {
        struct rv__traced *a = &t->at[i];
        next = a->next != 0 ? deepest(t, a->next) : a->parent;
        if (!a->live)
            continue;
        bool spared = false;
        for (uint32_t up = i; up != top && !all && !spared; up = t->at[up].parent)
            spared = t->at[up].detached;
        if (spared)
            continue;
        if (is_step(t, i) && a->completed_ms == 0 && t->along != NULL)
            t->along(t->along_arg, t, i, STATUS_CANCELLED);
        finish(t, i, STATUS_CANCELLED, at_ms);
        remove_live(t, i);
        if (!t->keep_ended && a->first == 0)
            drop(t, i);
    }
}

/* End an instance and everything active below it. */
static void end(struct rv__trace *t, uint32_t i, enum rv__status status, int64_t at_ms)
{
    uint32_t parent = t->at[i].parent;
    cancel_below(t, i, at_ms, false);
    finish(t, i, status, at_ms);
    remove_live(t, i);
    t->at[parent].ready_ms = at_ms;
    if (!t->keep_ended && t->at[i].first == 0)
        drop(t, i);
}

/* ---------------------------------------------------------------------------------- texts --- */

static uint32_t begin_text(struct rv__trace *t)
{
    if (t->texts.len == 0)
        rv__buf_char(&t->texts, '\0'); /* 0 is none */
    return (uint32_t)t->texts.len;
}

static uint32_t keep_text(struct rv__trace *t, struct rv__str text)
{
    uint32_t at = begin_text(t);
    rv__buf_str(&t->texts, text);
    rv__buf_char(&t->texts, '\0');
    return at;
}

void rv__listed_error(const struct rv__read_fact *fact, struct rv__buf *out)
{
    struct rv__str message, text = { "", 0 }, path = rv__error_path(fact->error);
    struct rv__arena arena;
    struct rv__buf end;
    if (fact->error.len <= ERROR_BYTES) {
        rv__buf_str(out, fact->error);
        return;
    }
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the error */
    rv__buf_init(&end, MESSAGE_BYTES);
    if (rv__json_get(fact->error, "message", &message))
        (void)rv__json_string(message, &arena, &text); /* none, or no memory: left out */
    rv__buf_message(&end, text, MESSAGE_BYTES);
    rv__buf_text(out, "{\"message\":");
    rv__buf_json_str(out, rv__buf_view(&end));
    if (!rv__str_none(path)) {
        rv__buf_text(out, ",\"path\":");
        rv__buf_json_str(out, path);
    }
    rv__buf_char(out, '}');
    rv__buf_done(&end);
    rv__arena_done(&arena);
}

static void note_error(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    struct rv__traced *a = &t->at[i];
    if (!t->keep_ended || fact->error.len == 0)
        return;
    a->error = begin_text(t);
    rv__listed_error(fact, &t->texts);
    rv__buf_char(&t->texts, '\0');
    a->error_attempt = a->attempt;
    a->error_ms = fact->at_ms;
}

static void note_description(struct rv__trace *t, uint32_t i, struct rv__str value)
{
    struct rv__str text;
    struct rv__arena arena;
    if (!t->keep_ended || value.len == 0)
        return;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the state */
    if (rv__json_string(value, &arena, &text) == RV_OK)
        t->at[i].description = keep_text(t, rv__str_begin(text, DESCRIPTION_BYTES));
    rv__arena_done(&arena);
}

/* ---------------------------------------------------------------------------------- facts --- */

static int misfit(const struct rv__read_fact *fact, rv_error *err)
{
    return rv__fail(err, RV_ESTORE, "fact %s of actor %llu does not fit its run",
                    rv__fact_kind_name(fact->kind), (unsigned long long)fact->actor);
}

static bool is_full(const struct rv__trace *t, uint32_t sup)
{
    const struct rv__node *node = plan_node(t, sup);
    int64_t places = rv__read_kind(node)->places(node, t->limit);
    return places > 0 && t->at[sup].active >= places;
}

/* The actor of a fact; created if the fact names its owner. */
static int actor_of(struct rv__trace *t, const struct rv__read_fact *fact, uint32_t *ret,
                    rv_error *err)
{
    if (fact->owner == 0) {
        *ret = find(t, fact->actor);
        return *ret != 0 ? RV_OK : misfit(fact, err);
    }
    uint32_t parent = find(t, fact->owner);
    if (parent == 0 || fact->node == RV__NO_NODE || find(t, fact->actor) != 0)
        return misfit(fact, err);
    int64_t ready_ms = t->at[parent].ready_ms;
    int rc = add(t, parent, fact->actor, ret, err);
    if (rc < 0)
        return rc;
    t->at[*ret].node = fact->node;
    t->at[*ret].ready_ms = ready_ms;
    return RV_OK;
}

static void leave_queue(struct rv__traced *a, int64_t at_ms)
{
    if (a->ready_ms != 0 && at_ms > a->ready_ms)
        a->queue_ms += at_ms - a->ready_ms;
    a->ready_ms = at_ms;
}

static void note_attachment(struct rv__trace *t, uint32_t i, struct rv__str name)
{
    struct rv__str text;
    struct rv__arena arena;
    if (!t->keep_ended || name.len == 0)
        return;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the name */
    if (rv__json_string(name, &arena, &text) == RV_OK)
        t->at[i].attachment = keep_text(t, text);
    rv__arena_done(&arena);
}

static void body_started(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    struct rv__traced *a = &t->at[i];
    note_attachment(t, i, fact->name);
    a->frame = true;
    a->iteration = fact->index;
    a->generation = fact->generation;
    a->attempt = fact->attempt; /* of a state's */
    a->due_ms = fact->due_ms;
    a->status = STATUS_RUNNING;
    a->started_ms = fact->at_ms;
    a->ready_ms = t->at[a->parent].ready_ms;
    t->at[a->parent].active++;
    if (rv__node_bodies(plan_node(t, i)) ==
        BODIES_TURNS) { /* the time-out is that of the whole conversation */
        if (fact->due_ms != 0)
            t->at[a->parent].due_ms = fact->due_ms;
        t->at[a->parent].attempt = fact->attempt;
        a->due_ms = 0;
    }
    if (detail_of(t, a->parent) != NULL && t->detail->frame == 0)
        t->detail->frame = a->actor;
    enter_block(t, i);
}

static void body_ended(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    uint32_t sup = t->at[i].parent;
    int64_t ready_ms = t->at[sup].ready_ms;
    bool made_room = is_full(t, sup);
    note_error(t, i, fact);
    t->at[sup].active -= t->at[sup].active > 0;
    end(t, i, fact->status >= 0 ? (enum rv__status)fact->status : STATUS_COMPLETED, fact->at_ms);
    if (fact->next == NEXT_RETRY || fact->next == NEXT_REDIRECT)
        t->at[i].then = THEN_AGAIN;
    t->at[sup].ready_ms = made_room ? fact->at_ms : ready_ms;
}

static void step_started(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    struct rv__traced *a = &t->at[i];
    leave_queue(a, fact->at_ms);
    a->status = STATUS_RUNNING;
    a->attempt = fact->attempt;
    a->module = fact->module;
    a->due_ms = fact->due_ms;
    if (a->started_ms == 0)
        a->started_ms = fact->at_ms;
    if (detail_of(t, i) != NULL)
        rv__detail_began(t->detail, fact, a->queue_ms);
}

static void step_ended(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact,
                       enum rv__status status)
{
    const struct rv__node *node = plan_node(t, i);
    uint32_t parent = t->at[i].parent;
    if (detail_of(t, i) != NULL)
        rv__detail_completed(t->detail, fact, rv__status_name(status));
    else if (node->kind == NODE_STEP && node->step.kind == STEP_CHAT &&
             status == STATUS_COMPLETED && detail_of(t, t->at[parent].parent) != NULL)
        rv__detail_answered(t->detail, fact);
    if (status == STATUS_FAILED)
        note_error(t, i, fact);
    t->failed |= status == STATUS_FAILED && fact->hard && parent == 1; /* a handler's is not hard */
    struct rv__str description;
    if (fact->state.len > 0 && rv__json_get(fact->state, "description", &description))
        note_description(t, i, description);
    else
        note_description(t, i, fact->description);
    if (status == STATUS_FAILED && node->on_error != NULL && !node->is_handler) {
        finish(t, i, status, fact->at_ms); /* it stays active until its handler has run */
        t->at[i].ready_ms = fact->at_ms;
        return;
    }
    end(t, i, status, fact->at_ms);
    if (node->is_handler && !t->at[parent].frame) /* the handler's step ends with it */
        end(t, parent, STATUS_FAILED, fact->at_ms);
}

static void node_ended(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact,
                       enum rv__status status)
{
    const struct rv__node *node = plan_node(t, i);
    struct rv__traced *a = &t->at[i];
    if (status == STATUS_FAILED)
        note_error(t, i, fact);
    if (node->is_handler) {
        uint32_t parent = a->parent;
        end(t, i, status, fact->at_ms);
        if (!t->at[parent].frame) /* the handler's step ends with it */
            end(t, parent, STATUS_FAILED, fact->at_ms);
        return;
    }
    const struct rv__step_config *config = rv__node_config(node);
    bool goes_on = config != NULL && config->continue_on_error;
    t->failed |= status == STATUS_FAILED && a->parent == 1 && !goes_on;
    if (detail_of(t, i) != NULL && fact->state.len > 0)
        t->detail->state = rv__detail_keep(t->detail, fact->state);
    const struct rv__read_kind *kind = rv__read_kind(node);
    if (status == STATUS_COMPLETED && !a->detached && kind->detached != NULL &&
        kind->detached(node)) {
        a->detached = true; /* the sequence continues, and so does the block */
        finish(t, i, status, fact->at_ms);
        t->at[a->parent].ready_ms = fact->at_ms;
        return;
    }
    if (a->detached) {
        int64_t ready_ms = t->at[a->parent].ready_ms;
        uint32_t parent = a->parent;
        end(t, i, status, fact->at_ms);
        t->at[parent].ready_ms = ready_ms; /* the sequence continued before */
        return;
    }
    end(t, i, status, fact->at_ms);
}

/* The current or next top-level node fails with the reason. */
static int run_aborted(struct rv__trace *t, const struct rv__read_fact *fact, rv_error *err)
{
    const uint32_t root = 1;
    uint32_t i = t->at[root].last;
    t->suspended_count = 0;
    while (i != 0 && (!t->at[i].live || t->at[i].detached))
        i = t->at[i].prev;
    if (i == 0) {
        uint32_t reached = t->at[root].children; /* no handlers: these run after a failure */
        if (t->failed || reached >= t->plan->body.count)
            return RV_OK;
        int rc = add(t, root, UINT64_MAX, &i, err); /* no actor has this number */
        if (rc < 0)
            return rc;
        t->at[i].node = t->plan->body.nodes[reached]->id;
    }
    note_error(t, i, fact);
    cancel_below(t, i, fact->at_ms, false);
    if (t->at[i].completed_ms == 0 && t->along != NULL) /* else only its handler ends */
        t->along(t->along_arg, t, i, STATUS_FAILED);
    end(t, i, STATUS_FAILED, fact->at_ms);
    return RV_OK;
}

static void detached_cancelled(struct rv__trace *t, const struct rv__read_fact *fact)
{
    for (uint32_t i = 1; i < t->count; i++)
        if (t->at[i].live && t->at[i].detached) {
            cancel_below(t, i, fact->at_ms, true);
            remove_live(t, i);
        }
}

static int run_started(struct rv__trace *t, const struct rv__read_fact *fact, rv_error *err)
{
    uint32_t root = 0;
    if (t->count != 0)
        return misfit(fact, err);
    int rc = add(t, 0, fact->actor, &root, err);
    if (rc < 0)
        return rc;
    t->at[root].frame = true;
    t->at[root].iteration = -1;
    t->at[root].status = STATUS_RUNNING;
    t->at[root].started_ms = t->at[root].ready_ms = fact->at_ms;
    t->limit = fact->limit;
    return RV_OK;
}

static void run_ended(struct rv__trace *t, const struct rv__read_fact *fact, enum rv__status status)
{
    const uint32_t root = 1;
    t->suspended_count = 0;
    cancel_below(t, root, fact->at_ms, status == STATUS_CANCELLED);
    finish(t, root, status, fact->at_ms);
    remove_live(t, root);
}

/* Cancel everything active; `finally` runs next. While `finally` runs, do nothing. */
static void run_cancelling(struct rv__trace *t, const struct rv__read_fact *fact)
{
    const uint32_t root = 1;
    const struct rv__node *finally = t->plan->body.wrap->finally;
    uint32_t last = t->at[root].last;
    if (last != 0 && t->at[last].live && finally != NULL && t->at[last].node == finally->id)
        return;
    t->suspended_count = 0;
    t->failed = true; /* no more nodes start */
    cancel_below(t, root, fact->at_ms, true);
    t->at[root].ready_ms = fact->at_ms;
}

/* The last attempt of a state; 0: none is kept. */
static uint32_t last_attempt(const struct rv__trace *t, uint32_t stage, uint32_t state)
{
    uint32_t i = t->at[stage].last;
    while (i != 0 && !(t->at[i].frame && t->at[i].iteration == state))
        i = t->at[i].prev;
    return i;
}

/* Record a suspension: of a node; of a sequence (its node, if the input was to be evaluated, but not a description
 * of a node that has ended); of a state. i 0: of the whole run. */
static void run_suspended(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    if (t->suspended_count == t->suspended_cap) {
        uint32_t cap = t->suspended_cap ? t->suspended_cap * 2 : 4;
        struct rv__trace_suspended *more = rv__realloc(t->suspended, cap * sizeof *more);
        if (more == NULL) {
            t->no_memory = true;
            return;
        }
        t->suspended = more;
        t->suspended_cap = cap;
    }
    uint32_t node = i;
    if (i != 0 && fact->which != 0)
        node = last_attempt(t, i, fact->which - 1);
    else if (i != 0)
        node = t->at[i].frame ? t->at[i].parent : i;
    if (node != 0 && fact->which == 0 && t->at[node].node != fact->node)
        node = 0;
    if (i != 0)
        note_error(t, fact->which != 0 && node != 0 ? node : i, fact);
    t->suspended[t->suspended_count++] = (struct rv__trace_suspended){ fact->actor, fact->which,
                                                                       node };
}

/* One suspension was decided. A stage that starts again removes all of its own. */
static void run_resumed(struct rv__trace *t, const struct rv__read_fact *fact)
{
    uint32_t kept = 0, stage = fact->actor != 0 ? find(t, fact->actor) : 0;
    bool anew = fact->decision == DECISION_RESTART;
    for (uint32_t i = 0; i < t->suspended_count; i++) {
        struct rv__trace_suspended one = t->suspended[i];
        uint32_t up = anew ? find(t, one.actor) : 0;
        while (up != 0 && up != stage)
            up = t->at[up].parent;
        bool gone = fact->actor == 0 || (one.actor == fact->actor && one.which == fact->which) ||
                    (anew && up != 0);
        if (!gone)
            t->suspended[kept++] = one;
    }
    t->suspended_count = kept;
    if (anew && stage != 0) {
        cancel_below(t, stage, fact->at_ms, false);
        t->at[stage].active = 0;
        for (uint32_t i = t->at[stage].first; i != 0; i = t->at[i].next)
            t->at[i].then = THEN_ANEW;
    }
    uint32_t attempt = stage != 0 && fact->which != 0 && fact->decision == DECISION_RESUME
                           ? last_attempt(t, stage, fact->which - 1)
                           : 0;
    if (attempt != 0)
        t->at[attempt].then = THEN_AGAIN;
    if (stage != 0)
        t->at[stage].ready_ms = fact->at_ms;
}

/* Apply a fact to its actor. */
static void fold_actor(struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    struct rv__traced *a = &t->at[i];
    struct rv__detail *detail = detail_of(t, i);
    switch (fact->kind) {
    case FACT_RUN_SUSPENDED: run_suspended(t, i, fact); break;
    case FACT_EVAL_STARTED: leave_queue(a, fact->at_ms); break;
    case FACT_EVAL_COMPLETED:
        if (fact->eval == EVAL_DESCRIPTION && a->last != 0) /* of the node that ended last in it */
            note_description(t, a->last, fact->result);
        if (fact->eval == EVAL_INPUT && t->detail != NULL &&
            (detail != NULL || t->detail->frame == a->actor))
            rv__detail_input(t->detail, fact);
        if (fact->eval == EVAL_ITEMS && t->keep_ended) {
            a->items = fact->items.count > 0 ? (uint32_t)fact->items.count
                                             : (uint32_t)rv__json_count(fact->result);
            a->items_after = t->seq; /* the seq of the row before this one */
        }
        a->ready_ms = fact->at_ms;
        break;
    case FACT_EVAL_FAILED: a->ready_ms = fact->at_ms; break;
    case FACT_NODE_STARTED:
        leave_queue(a, fact->at_ms);
        a->status = STATUS_RUNNING;
        a->started_ms = fact->at_ms;
        break;
    case FACT_NODE_COMPLETED: node_ended(t, i, fact, STATUS_COMPLETED); break;
    case FACT_NODE_FAILED: node_ended(t, i, fact, STATUS_FAILED); break;
    case FACT_NODE_SKIPPED: node_ended(t, i, fact, STATUS_SKIPPED); break;
    case FACT_NODE_RETRYING: /* everything below it is given up */
        note_error(t, i, fact);
        cancel_below(t, i, fact->at_ms, false);
        a->status = STATUS_WAITING_RETRY;
        a->due_ms = fact->due_ms;
        a->active = 0;
        break;
    case FACT_BODY_STARTED: body_started(t, i, fact); break;
    case FACT_BODY_ENDED: body_ended(t, i, fact); break;
    case FACT_STEP_STARTED: step_started(t, i, fact); break;
    case FACT_STEP_COMPLETED: step_ended(t, i, fact, STATUS_COMPLETED); break;
    case FACT_STEP_SKIPPED: step_ended(t, i, fact, STATUS_SKIPPED); break;
    case FACT_STEP_FAILED: step_ended(t, i, fact, STATUS_FAILED); break;
    case FACT_STEP_RETRYING:
        a->status = STATUS_WAITING_RETRY;
        a->due_ms = fact->due_ms;
        note_error(t, i, fact);
        if (detail != NULL)
            rv__detail_ended(detail, fact, "failed");
        break;
    case FACT_STEP_PARKED:
        a->due_ms = fact->due_ms;
        if (detail != NULL)
            rv__detail_parked(detail, fact);
        break;
    case FACT_STEP_NOTED: /* the next attempt continues this one */
        a->ready_ms = fact->at_ms;
        a->due_ms = fact->due_ms;
        if (detail != NULL)
            rv__detail_parked(detail, fact);
        break;
    case FACT_STEP_LOST:
        if (detail != NULL)
            rv__detail_ended(detail, fact, "lost");
        a->crashes += fact->crash;
        a->ready_ms = fact->at_ms;
        if (is_step(t, i))
            a->status = STATUS_PENDING;
        break;
    case FACT_STEP_GIVEN:
        if (detail != NULL)
            rv__detail_given(detail, fact);
        break;
    case FACT_TIMER_FIRED:
        a->ready_ms = fact->at_ms;
        a->due_ms = 0;
        if (!is_step(t, i))
            a->status = STATUS_RUNNING;
        break;
    case FACT_STEP_READ:
    case FACT_RUN_STARTED:
    case FACT_RUN_COMPLETED:
    case FACT_RUN_FAILED:
    case FACT_RUN_CANCELLING:
    case FACT_RUN_CANCELLED:
    case FACT_RUN_RESUMED:
    case FACT_RUN_ABORTED:
    case FACT_SIGNAL_RECEIVED:
    case FACT_DETACHED_ENDED:
    case FACT_DETACHED_CANCELLED:
    case FACT_KINDS: break;
    }
}

/* Does the fact fit its actor? The disk may be damaged, and the code below relies on it. */
static bool suits(const struct rv__trace *t, uint32_t i, const struct rv__read_fact *fact)
{
    const struct rv__traced *a = &t->at[i];
    bool describes = a->frame && fact->node != RV__NO_NODE && fact->eval == EVAL_DESCRIPTION;
    bool lost = a->frame && (fact->kind == FACT_STEP_LOST || fact->kind == FACT_RUN_SUSPENDED);
    bool body = fact->kind == FACT_BODY_ENDED || fact->kind == FACT_EVAL_FAILED;
    bool node = fact->kind == FACT_NODE_STARTED || fact->kind == FACT_NODE_COMPLETED ||
                fact->kind == FACT_NODE_FAILED || fact->kind == FACT_NODE_SKIPPED ||
                fact->kind == FACT_NODE_RETRYING || fact->kind == FACT_STEP_STARTED ||
                fact->kind == FACT_STEP_COMPLETED || fact->kind == FACT_STEP_SKIPPED ||
                fact->kind == FACT_STEP_FAILED || fact->kind == FACT_STEP_RETRYING ||
                fact->kind == FACT_STEP_PARKED || fact->kind == FACT_STEP_NOTED ||
                fact->kind == FACT_STEP_GIVEN || fact->kind == FACT_TIMER_FIRED;
    if (describes || lost) /* about the node that ended last in it */
        return true;
    if (a->node == RV__NO_NODE || fact->node != a->node)
        return false;
    return !(body && (!a->frame || t->at[a->parent].frame)) && !(node && a->frame);
}

int rv__trace_fold(struct rv__trace *t, const struct rv__read_fact *fact, rv_error *err)
{
    uint32_t i = 0;
    if (fact->kind == FACT_RUN_STARTED)
        return run_started(t, fact, err);
    if (t->count == 0)
        return misfit(fact, err);
    switch ((int)fact->kind) {
    case FACT_RUN_COMPLETED: run_ended(t, fact, STATUS_COMPLETED); return RV_OK;
    case FACT_RUN_FAILED: run_ended(t, fact, STATUS_FAILED); return RV_OK;
    case FACT_RUN_CANCELLING: run_cancelling(t, fact); return RV_OK;
    case FACT_RUN_CANCELLED: run_ended(t, fact, STATUS_CANCELLED); return RV_OK;
    case FACT_RUN_ABORTED: return run_aborted(t, fact, err);
    case FACT_RUN_RESUMED: run_resumed(t, fact); return RV_OK;
    case FACT_RUN_SUSPENDED:
        if (fact->actor != 0)
            break;
        run_suspended(t, 0, fact); /* as a whole */
        return t->no_memory ? rv__nomem(err) : RV_OK;
    case FACT_SIGNAL_RECEIVED:
    case FACT_STEP_READ:
    case FACT_DETACHED_ENDED: return RV_OK;
    case FACT_DETACHED_CANCELLED: detached_cancelled(t, fact); return RV_OK;
    default: break;
    }
    int rc = actor_of(t, fact, &i, err);
    if (rc < 0)
        return rc;
    if (!suits(t, i, fact))
        return misfit(fact, err);
    fold_actor(t, i, fact);
    rc = t->detail != NULL ? rv__detail_err(t->detail, err) : RV_OK;
    if (rc < 0)
        return rc;
    return t->no_memory ? rv__nomem(err) : rv__buf_err(&t->texts, err);
}

bool rv__read_fact_cancels(const struct rv__read_fact *fact, const struct rv__plan *plan)
{
    switch ((int)fact->kind) {
    case FACT_RUN_CANCELLING:
    case FACT_RUN_CANCELLED:
    case FACT_RUN_ABORTED:
    case FACT_DETACHED_CANCELLED: return true;
    case FACT_RUN_RESUMED: return fact->decision == DECISION_RESTART;
    case FACT_NODE_RETRYING: return true;
    case FACT_BODY_ENDED: return fact->next >= NEXT_RETRY; /* it may have timed out */
    case FACT_NODE_FAILED:
    case FACT_NODE_COMPLETED: {
        const struct rv__node *node = fact->node != RV__NO_NODE ? plan->nodes[fact->node] : NULL;
        const struct rv__read_kind *kind = node != NULL ? rv__read_kind(node) : NULL;
        return kind != NULL && kind->cancels != NULL &&
               kind->cancels(node, fact->kind == FACT_NODE_FAILED);
    }
    default: return false;
    }
}

/* -------------------------------------------------------------------------------- reading --- */

static int fold(void *arg, const struct rv__read_fact *fact, rv_error *err)
{
    return rv__trace_fold(arg, fact, err);
}

static void row_folded(void *arg, uint64_t seq)
{
    struct rv__trace *t = arg;
    t->seq = seq;
}

int rv__trace_read(struct rv__trace *t, struct rv__store *store, struct rv__str run, uint64_t until,
                   rv_error *err)
{
    const struct rv__journal_walk walk = {
        .plan = t->plan, .after = t->seq, .until = until, .fact = fold, .row = row_folded, .arg = t
    };
    return rv__journal_walk(store, run, &walk, err);
}
