/* nodes.c: rv_nodes: the nodes of a run with their status, a window of children at a time.
 *
 * They come from the run's journal (trace.c), which still has what the cell has dropped. The traces of recently
 * requested runs are cached and updated with new rows, so that repeated requests cost only what is new. Nodes that
 * were never reached are not in the journal; they are listed from the plan. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/opts.h"
#include "read/items.h"
#include "read/kinds.h"
#include "read/read.h"

enum {
    KEPT_TRACES = 8,
    KEPT_NODES = 1000 * 1000, /* in all cached traces, except the one in use */
    LIMIT_DEFAULT = 100,
    LIMIT_MOST = 1000,
};

struct kept_trace {
    char id[RV_RUN_ID_SIZE];
    uint64_t number, used;
    struct rv__cached_plan *plan; /* NULL: unused */
    struct rv__trace trace;
};

struct rv__node_cache {
    struct rv__plan_cache *plans;
    uint64_t uses;
    struct kept_trace kept[KEPT_TRACES];
};

/* ---------------------------------------------------------------------------------- cache --- */

static void forget(struct rv__node_cache *cache, struct kept_trace *kept)
{
    if (kept->plan == NULL)
        return;
    rv__trace_done(&kept->trace);
    rv__plan_cache_put(cache->plans, kept->plan);
    *kept = (struct kept_trace){ .plan = NULL };
}

void rv__node_cache_free(struct rv__node_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < KEPT_TRACES; i++)
        forget(cache, &cache->kept[i]);
    rv__free(cache);
}

/* Drop large traces that were not used recently. */
static void trim(struct rv__node_cache *cache, const struct kept_trace *in_use)
{
    for (;;) {
        struct kept_trace *oldest = NULL;
        size_t nodes = 0;
        for (size_t i = 0; i < KEPT_TRACES; i++) {
            struct kept_trace *kept = &cache->kept[i];
            if (kept->plan == NULL || kept == in_use)
                continue;
            nodes += kept->trace.count;
            if (oldest == NULL || kept->used < oldest->used)
                oldest = kept;
        }
        if (nodes <= KEPT_NODES || oldest == NULL)
            return;
        forget(cache, oldest);
    }
}

int rv__reading_trace(struct rv__reading *r, const char *run_id, const struct rv__trace **ret,
                      rv_error *err)
{
    struct rv__read_run run = { .plan = NULL };
    if (r->nodes == NULL) {
        r->nodes = rv__zalloc(1, sizeof *r->nodes);
        if (r->nodes == NULL)
            return rv__nomem(err);
        r->nodes->plans = &r->plans;
    }
    int rc = rv__read_run(&r->plans, r->store, rv__str(run_id), &run, err);
    if (rc < 0)
        return rc;
    struct rv__node_cache *cache = r->nodes;
    struct kept_trace *kept = &cache->kept[0];
    for (size_t i = 0; i < KEPT_TRACES; i++) { /* the run's own; else the least recently used */
        if (strcmp(cache->kept[i].id, run_id) == 0) {
            kept = &cache->kept[i];
            break;
        }
        if (cache->kept[i].used < kept->used)
            kept = &cache->kept[i];
    }
    if (strcmp(kept->id, run_id) != 0 || kept->number != run.number) {
        forget(cache, kept);
        snprintf(kept->id, sizeof kept->id, "%s", run_id);
        kept->number = run.number;
        kept->plan = run.plan;
        rv__trace_init(&kept->trace, run.plan->plan, true);
    } else {
        rv__plan_cache_put(&r->plans, run.plan);
    }
    kept->used = ++cache->uses;
    rc = rv__trace_read(&kept->trace, r->store, rv__str(run_id), UINT64_MAX, err);
    if (rc < 0) {
        forget(cache, kept);
        return rc;
    }
    trim(cache, kept);
    *ret = &kept->trace;
    return RV_OK;
}

/* ---------------------------------------------------------------------------------- places --- */

/* A node or a body of the plan, and its instance in the run; 0: it was not reached. */
struct spot {
    const struct rv__node *node; /* NULL: it is a body */
    const struct rv__body *body;
    uint32_t at;
    int64_t vector[RV__PLAN_MAX_DEPTH]; /* the iterations around it */
    bool skipped;                       /* never reached: on the other path of a branch */
};

/* The iteration that started as the n-th, from 0; 0: none. */
static uint32_t nth_iteration(const struct rv__trace *t, uint32_t sup, int64_t n)
{
    uint32_t block = t->at[sup].block;
    for (; block != 0 && n >= RV__TRACE_BLOCK; n -= RV__TRACE_BLOCK)
        block = t->blocks[block].next;
    uint32_t i = block != 0 ? t->blocks[block].first : 0;
    for (; i != 0 && n > 0; n--)
        i = t->at[i].next;
    return i;
}

static uint32_t child_frame(const struct rv__trace *t, uint32_t sup, int64_t iteration)
{
    if (sup == 0)
        return 0;
    uint32_t i = nth_iteration(t, sup, iteration); /* they start in order */
    if (i != 0 && t->at[i].frame && t->at[i].iteration == iteration)
        return i;
    for (i = t->at[sup].first; i != 0; i = t->at[i].next)
        if (t->at[i].frame && t->at[i].iteration == iteration)
            return i;
    return 0;
}

static uint32_t child_node(const struct rv__trace *t, uint32_t parent, const struct rv__node *node)
{
    for (uint32_t i = parent != 0 ? t->at[parent].first : 0; i != 0; i = t->at[i].next)
        if (!t->at[i].frame && t->at[i].node == node->id)
            return i;
    return 0;
}

/* The part up to the next colon. */
static bool next_part(struct rv__str *path, struct rv__str *part)
{
    if (path->len == 0)
        return false;
    const char *colon = memchr(path->at, ':', path->len);
    size_t len = colon != NULL ? (size_t)(colon - path->at) : path->len;
    *part = (struct rv__str){ path->at, len };
    size_t skip = len + (colon != NULL);
    path->at += skip;
    path->len -= skip;
    return true;
}

/* "iter12" → 12; -1: it is not. */
static int64_t number_after(struct rv__str part, const char *word)
{
    size_t len = strlen(word);
    int64_t n = 0;
    if (part.len <= len || part.len > len + 18 || memcmp(part.at, word, len) != 0)
        return -1;
    for (size_t i = len; i < part.len; i++) {
        if (part.at[i] < '0' || part.at[i] > '9')
            return -1;
        n = n * 10 + (part.at[i] - '0');
    }
    return n;
}

static bool go_to_node(const struct rv__trace *t, struct spot *spot, const struct rv__node *node)
{
    if (node == NULL)
        return false;
    uint32_t parent = spot->at;
    spot->node = node;
    spot->at = child_node(t, parent, node);
    return true;
}

/* The handlers of a workflow's body, which run after its nodes, in this order; NULL: none. */
struct handlers {
    const struct rv__node *at[2];
};
static struct handlers handlers_of(const struct rv__body *body)
{
    if (body->wrap == NULL)
        return (struct handlers){ { NULL, NULL } };
    return (struct handlers){ { body->wrap->on_error, body->wrap->finally } };
}

static bool into_body(const struct rv__trace *t, struct spot *spot, struct rv__str *path)
{
    const struct rv__body *body = spot->body;
    struct rv__str part = { NULL, 0 };
    (void)next_part(path, &part);
    for (int i = 0; i < 2; i++) { /* a node of the body with the same name hides it */
        const struct rv__node *handler = handlers_of(body).at[i];
        if (handler != NULL && rv__str_eq(part, handler->alias) &&
            (body->owner != NULL || rv__body_find(body, part) == NULL))
            return go_to_node(t, spot, handler);
    }
    if (body->owner == NULL)
        return go_to_node(t, spot, rv__body_find(body, part));
    int64_t index = number_after(part, "node");
    if (index < 0 || index >= body->count || !next_part(path, &part) ||
        !rv__str_eq(part, body->nodes[index]->alias))
        return false;
    return go_to_node(t, spot, body->nodes[index]);
}

/* The last attempt of a state. If the stage has ended and the state had none, it is skipped. */
static void go_to_attempt(const struct rv__trace *t, struct spot *spot, const struct rv__node *node,
                          uint32_t stage, uint32_t state)
{
    uint32_t i = stage != 0 ? t->at[stage].last : 0;
    while (i != 0 && !(t->at[i].frame && t->at[i].iteration == state))
        i = t->at[i].prev;
    spot->at = i;
    spot->skipped |= i == 0 && stage != 0 && t->at[stage].completed_ms != 0;
    spot->vector[node->loops_around] = i != 0 ? t->at[i].generation : 0;
}

/* The frame of a turn in the last conversation of a chat; turn 0: its first. 0: none. The calls of a turn follow
 * it, up to the next turn. */
static uint32_t find_turn(const struct rv__trace *t, uint32_t chat, int64_t turn)
{
    uint32_t found = 0, last = chat != 0 ? t->at[chat].last : 0;
    for (uint32_t i = last; i != 0; i = t->at[i].prev) {
        const struct rv__traced *frame = &t->at[i];
        if (rv__chat_attempt(frame->generation) != rv__chat_attempt(t->at[last].generation))
            break;
        if (frame->iteration == 0 && (turn == 0 || rv__chat_turn(frame->generation) == turn))
            found = i;
    }
    return found;
}

static uint32_t next_turn(const struct rv__trace *t, uint32_t turn)
{
    uint32_t i = t->at[turn].next;
    while (i != 0 && t->at[i].iteration != 0)
        i = t->at[i].next;
    return i;
}

/* Go to the node in this frame of a chat: a turn or a call. */
static void go_to_talk(const struct rv__trace *t, struct spot *spot, uint32_t frame)
{
    const struct rv__node *chat = t->plan->nodes[t->at[frame].node];
    const struct rv__body *body = &chat->bodies[t->at[frame].iteration];
    spot->body = body;
    spot->at = frame;
    spot->vector[chat->loops_around] = t->at[frame].generation;
    (void)go_to_node(t, spot, body->nodes[0]);
}

/* Of a turn: the frame of its first call with a number of `from` or more; 0: none, or not a turn. */
static uint32_t find_call(const struct rv__trace *t, const struct spot *spot, int64_t from)
{
    const struct rv__node *node = spot->node;
    if (spot->at == 0 || node->kind != NODE_STEP || node->step.kind != STEP_CHAT)
        return 0;
    uint32_t i = t->at[t->at[spot->at].parent].next;
    while (i != 0 && t->at[i].iteration != 0 && rv__chat_call(t->at[i].generation) < from)
        i = t->at[i].next;
    return i != 0 && t->at[i].iteration != 0 ? i : 0;
}

static bool into_call(const struct rv__trace *t, struct spot *spot, struct rv__str part,
                      struct rv__str *path)
{
    int64_t call = number_after(part, "call");
    uint32_t frame = call >= 0 ? find_call(t, spot, call) : 0;
    if (frame == 0 || rv__chat_call(t->at[frame].generation) != call || !next_part(path, &part))
        return false;
    go_to_talk(t, spot, frame);
    return rv__str_eq(part, spot->node->alias);
}

static void go_to_body(const struct rv__trace *t, struct spot *spot, uint32_t index,
                       int64_t iteration)
{
    const struct rv__node *node = spot->node;
    uint32_t sup = spot->at;
    spot->body = &node->bodies[index];
    spot->node = NULL;
    if (rv__node_bodies(node) == BODIES_RETRIED)
        go_to_attempt(t, spot, node, sup, index);
    else
        spot->at = child_frame(t, sup, iteration);
    if (rv__read_kind(node)->takes_one && spot->at == 0)
        spot->skipped |= sup != 0 && t->at[sup].children > 0;
    if (spot->body->bare && spot->body->count == 1)
        (void)go_to_node(t, spot, spot->body->nodes[0]);
}

static bool into_node(const struct rv__trace *t, struct spot *spot, struct rv__str *path)
{
    const struct rv__node *node = spot->node;
    struct rv__str part = { NULL, 0 };
    if (rv__node_bodies(node) == BODIES_ITSELF) { /* its body has no name of its own */
        go_to_body(t, spot, 0, 0);
        return into_body(t, spot, path);
    }
    (void)next_part(path, &part);
    switch (rv__node_bodies(node)) {
    case BODIES_NONE:
        if (rv__str_is(part, "onError"))
            return go_to_node(t, spot, node->on_error);
        return into_call(t, spot, part, path);
    case BODIES_TURNS: {
        int64_t turn = number_after(part, "turn");
        uint32_t frame = turn > 0 ? find_turn(t, spot->at, turn) : 0;
        if (frame != 0)
            go_to_talk(t, spot, frame);
        return frame != 0;
    }
    case BODIES_ITERATED: {
        int64_t iteration = number_after(part, "iter");
        if (iteration < 0 || child_frame(t, spot->at, iteration) == 0)
            return false;
        spot->vector[node->loops_around] = iteration;
        go_to_body(t, spot, 0, iteration);
        return true;
    }
    case BODIES_NAMED:
    case BODIES_RETRIED:
        for (uint32_t i = 0; i < node->body_count; i++)
            if (rv__str_eq(node->bodies[i].alias, part)) {
                go_to_body(t, spot, i, i);
                return true;
            }
        return false;
    case BODIES_ITSELF: break;
    }
    return false;
}

static int find_spot(const struct rv__trace *t, const char *path, struct spot *ret, rv_error *err)
{
    struct rv__str rest = rv__str(path != NULL ? path : "");
    *ret = (struct spot){ .body = &t->plan->body, .at = t->count > 1 ? 1 : 0 };
    while (rest.len > 0) {
        bool found = ret->node == NULL ? into_body(t, ret, &rest) : into_node(t, ret, &rest);
        if (!found)
            return rv__fail(err, RV_ENOTFOUND, "the run has no node '%.120s'", path);
    }
    return RV_OK;
}

/* --------------------------------------------------------------------------------- listing --- */

struct node_texts {
    size_t path, alias; /* offsets in `texts` */
    uint32_t error, description;
    struct rv__iteration_text about; /* of an iteration of a forEach */
};

struct listing {
    const struct rv__trace *trace;
    int64_t now_ms;
    const char *status; /* NULL: any */
    size_t offset, limit, total;
    struct rv__buf texts;
    rv_node *nodes;
    struct node_texts *where;
    size_t count, cap;
    bool no_memory;
};

static size_t body_children(const struct rv__trace *t, const struct rv__body *body, uint32_t at)
{
    size_t count = body->count;
    for (int i = 0; i < 2; i++) {
        const struct rv__node *handler = handlers_of(body).at[i];
        count += handler != NULL && child_node(t, at, handler) != 0;
    }
    return count;
}

static size_t children_of(const struct rv__trace *t, const struct spot *spot)
{
    const struct rv__node *node = spot->node;
    if (node == NULL)
        return body_children(t, spot->body, spot->at);
    size_t count = 0;
    switch (rv__node_bodies(node)) {
    case BODIES_NONE:
        for (uint32_t i = find_call(t, spot, 0); i != 0 && t->at[i].iteration != 0;
             i = t->at[i].next)
            count++;
        return count + (spot->at != 0 ? t->at[spot->at].children : 0);
    case BODIES_TURNS:
        for (uint32_t i = find_turn(t, spot->at, 0); i != 0; i = next_turn(t, i))
            count++;
        return count;
    case BODIES_ITERATED: return spot->at != 0 ? t->at[spot->at].children : 0;
    case BODIES_ITSELF: return body_children(t, &node->bodies[0], child_frame(t, spot->at, 0));
    case BODIES_NAMED:
    case BODIES_RETRIED: break;
    }
    for (uint32_t i = 0; i < node->body_count; i++)
        count += rv__read_kind(node)->lists_bodies ? 1 : node->bodies[i].count;
    return count;
}

static const char *kind_of(const struct spot *spot)
{
    const struct rv__node *node = spot->node;
    if (node != NULL)
        return node->is_handler ? "handler" : rv__node_kind_name(node->kind);
    return spot->body->owner == NULL ? "workflow" : rv__read_kind(spot->body->owner)->body;
}

static bool has_room(struct listing *l)
{
    if (l->count < l->cap)
        return true;
    size_t cap = l->cap ? l->cap * 2 : 32;
    rv_node *nodes = rv__realloc(l->nodes, cap * sizeof *nodes);
    if (nodes != NULL)
        l->nodes = nodes;
    struct node_texts *where = rv__realloc(l->where, cap * sizeof *where);
    if (where != NULL)
        l->where = where;
    if (nodes == NULL || where == NULL)
        return false;
    l->cap = cap;
    return true;
}

/* Is it a step? Otherwise `module` has another meaning. */
static bool is_step(const struct rv__trace *t, const struct rv__traced *a)
{
    return !a->frame && a->node != RV__NO_NODE && t->plan->nodes[a->node]->kind == NODE_STEP;
}

/* The attempt of a state whose agent this is; NULL: it is no agent. */
static const struct rv__traced *state_of(const struct rv__trace *t, const struct rv__traced *a)
{
    const struct rv__traced *in = &t->at[a->parent];
    return a->parent != 0 && in->frame && in->node != RV__NO_NODE &&
                   rv__node_bodies(t->plan->nodes[in->node]) == BODIES_RETRIED
               ? in
               : NULL;
}

/* What follows this attempt of a state, which has ended. */
static enum rv__traced_then then_of(const struct rv__trace *t, uint32_t at)
{
    const struct rv__traced *state = at != 0 ? state_of(t, &t->at[at]) : NULL;
    return state != NULL && t->at[state->parent].completed_ms == 0
               ? (enum rv__traced_then)state->then
               : THEN_NOTHING;
}

static void put_metrics(struct listing *l, const struct rv__traced *a, rv_node *node)
{
    node->started_at = a->started_ms;
    node->completed_at = a->completed_ms;
    if (a->started_ms != 0)
        node->duration_ms = (a->completed_ms ? a->completed_ms : l->now_ms) - a->started_ms;
    node->queue_ms = a->queue_ms;
    node->due_at = a->due_ms;
    const struct rv__traced *state = state_of(l->trace, a);
    node->attempt = state != NULL ? state->attempt : a->attempt; /* an agent itself has only one */
    node->retry_count = node->attempt > 1 ? node->attempt - 1 : 0;
    node->crashes = a->crashes;
    if (a->module != 0 && is_step(l->trace, a))
        snprintf(node->module, sizeof node->module, "%016llx", (unsigned long long)a->module);
    node->error_attempt = a->error_attempt;
    node->error_at = a->error_ms;
    l->where[l->count].error = a->error;
    l->where[l->count].description = a->description;
}

/* One pass over the blocks of iterations that have started. */
static rv_iterations count_iterations(const struct rv__trace *t, uint32_t sup)
{
    rv_iterations ret = { .total = t->at[sup].items };
    for (uint32_t i = t->at[sup].block; i != 0; i = t->blocks[i].next) {
        const uint16_t *in = t->blocks[i].in;
        ret.running += in[STATUS_RUNNING];
        ret.failed += in[STATUS_FAILED];
        ret.cancelled += in[STATUS_CANCELLED];
        ret.completed += in[STATUS_COMPLETED] + in[STATUS_SKIPPED];
    }
    return ret;
}

/* Does this node wait for a decision? A state: its last attempt, or the agent in it. */
static bool is_suspended(const struct rv__trace *t, uint32_t at)
{
    for (uint32_t i = 0; i < t->suspended_count; i++) {
        const struct rv__trace_suspended *one = &t->suspended[i];
        bool state = one->which != 0 && (one->at == at || one->at == t->at[at].parent);
        if (one->at != 0 && (state || (one->at == at && t->at[at].completed_ms == 0)))
            return true;
    }
    return false;
}

/* A stage or a state that was not reached, of a run that starts no more nodes: it is never run. */
static bool is_never_run(const struct rv__trace *t, const struct spot *spot)
{
    const struct rv__node *node = spot->node != NULL ? spot->node : spot->body->owner;
    const struct rv__node *stage = node;
    if (stage != NULL && rv__node_bodies(stage) != BODIES_RETRIED)
        stage = node->body != NULL ? node->body->owner : NULL;
    return stage != NULL && rv__node_bodies(stage) == BODIES_RETRIED &&
           (t->failed || t->at[1].completed_ms != 0);
}

static const char *status_of(const struct rv__trace *t, const struct spot *spot)
{
    if (spot->at == 0)
        return spot->skipped || is_never_run(t, spot) ? "skipped" : "pending";
    if (is_suspended(t, spot->at))
        return "suspended"; /* the actor itself is only queued again */
    switch (then_of(t, spot->at)) {
    case THEN_AGAIN: return "waiting_retry";
    case THEN_ANEW: return "pending";
    case THEN_NOTHING: break;
    }
    return rv__status_name((enum rv__status)t->at[spot->at].status);
}

static bool is_iterated(const struct rv__node *node)
{
    return node != NULL && rv__node_bodies(node) == BODIES_ITERATED;
}

/* Add one child, if it is in the window. */
static void list_one(struct listing *l, const struct spot *spot)
{
    const char *status = status_of(l->trace, spot);
    if (l->status != NULL && strcmp(status, l->status) != 0)
        return;
    size_t place = l->total++;
    if (place < l->offset || l->count == l->limit || l->no_memory)
        return;
    if (!has_room(l)) {
        l->no_memory = true;
        return;
    }
    rv_node *node = &l->nodes[l->count];
    struct node_texts *where = &l->where[l->count];
    *node = (rv_node){ .kind = kind_of(spot), .status = status };
    node->children = children_of(l->trace, spot);
    *where = (struct node_texts){ .path = l->texts.len, .about = { .index = -1 } };
    if (spot->at != 0 && l->trace->at[spot->at].frame)
        where->about.index = l->trace->at[spot->at].iteration;
    if (spot->node != NULL)
        rv__node_path(spot->node, spot->vector, &l->texts);
    else
        rv__body_path(spot->body, spot->vector, &l->texts);
    rv__buf_char(&l->texts, '\0');
    where->alias = where->path;
    for (size_t i = where->path; i + 1 < l->texts.len; i++)
        if (l->texts.text[i] == ':')
            where->alias = i + 1;
    if (spot->at != 0 && is_iterated(spot->node))
        node->iterations = count_iterations(l->trace, spot->at);
    if (spot->at != 0 && then_of(l->trace, spot->at) != THEN_ANEW)
        put_metrics(l, &l->trace->at[spot->at], node);
    l->count++;
}

/* The nodes of a body, in the plan's order; then its workflow's handlers, if they have run. */
static void list_body(struct listing *l, const struct spot *in)
{
    const struct rv__trace *t = l->trace;
    const struct rv__body *body = in->body;
    uint32_t at = in->at != 0 ? t->at[in->at].first : 0;
    struct spot spot = *in;
    for (uint32_t i = 0; i < body->count; i++) {
        spot.node = body->nodes[i];
        spot.at = 0;
        if (at != 0 && t->at[at].node == spot.node->id) { /* reached nodes are in the same order */
            spot.at = at;
            at = t->at[at].next;
        }
        list_one(l, &spot);
    }
    for (int i = 0; i < 2; i++) {
        spot.node = handlers_of(body).at[i];
        spot.at = spot.node != NULL ? child_node(t, in->at, spot.node) : 0;
        if (spot.at != 0)
            list_one(l, &spot);
    }
}

/* How many iterations of a block have the requested status. */
static size_t block_matches(const struct listing *l, const struct rv__trace_block *block)
{
    if (l->status == NULL)
        return rv__trace_block_size(block);
    for (int i = 0; i < STATUSES; i++)
        if (strcmp(l->status, rv__status_name((enum rv__status)i)) == 0)
            return block->in[i];
    return 0; /* suspended: never an iteration */
}

/* Blocks outside the window are only counted. */
static void list_iterations(struct listing *l, const struct spot *in)
{
    const struct rv__trace *t = l->trace;
    struct spot spot = *in;
    spot.node = NULL;
    spot.body = &in->node->bodies[0];
    for (uint32_t b = in->at != 0 ? t->at[in->at].block : 0; b != 0; b = t->blocks[b].next) {
        const struct rv__trace_block *block = &t->blocks[b];
        size_t matches = block_matches(l, block), size = rv__trace_block_size(block);
        if (matches == 0 || l->total + matches <= l->offset || l->count == l->limit) {
            l->total += matches;
            continue;
        }
        for (spot.at = block->first; size > 0; size--, spot.at = t->at[spot.at].next) {
            spot.vector[in->node->loops_around] = t->at[spot.at].iteration;
            list_one(l, &spot);
        }
    }
}

static void list_children(struct listing *l, const struct spot *in)
{
    const struct rv__node *node = in->node;
    if (node == NULL) {
        list_body(l, in);
        return;
    }
    switch (rv__node_bodies(node)) {
    case BODIES_NONE: {
        struct spot spot = *in;
        if (node->on_error != NULL && go_to_node(l->trace, &spot, node->on_error) && spot.at != 0)
            list_one(l, &spot);
        for (uint32_t i = find_call(l->trace, in, 0); i != 0 && l->trace->at[i].iteration != 0;
             i = l->trace->at[i].next) {
            spot = *in;
            go_to_talk(l->trace, &spot, i);
            list_one(l, &spot);
        }
        return;
    }
    case BODIES_TURNS:
        for (uint32_t i = find_turn(l->trace, in->at, 0); i != 0; i = next_turn(l->trace, i)) {
            struct spot spot = *in;
            go_to_talk(l->trace, &spot, i);
            list_one(l, &spot);
        }
        return;
    case BODIES_ITERATED: list_iterations(l, in); return;
    case BODIES_ITSELF:
    case BODIES_NAMED:
    case BODIES_RETRIED:
        for (uint32_t i = 0; i < node->body_count; i++) {
            struct spot spot = *in;
            go_to_body(l->trace, &spot, i, i);
            if (rv__read_kind(node)->lists_bodies)
                list_one(l, &spot);
            else
                list_body(l, &spot);
        }
        return;
    }
}

/* The list, its nodes and texts in one allocation. */
static int make_list(const struct listing *l, rv_node_list **ret, rv_error *err)
{
    const char *kept = l->trace->texts.text;
    size_t nodes_at = sizeof(rv_node_list), texts_at = nodes_at + l->count * sizeof(rv_node);
    size_t more = 1;
    for (size_t i = 0; i < l->count; i++) {
        more += l->where[i].error != 0 ? strlen(kept + l->where[i].error) + 1 : 0;
        more += l->where[i].description != 0 ? strlen(kept + l->where[i].description) + 1 : 0;
    }
    char *mem = rv__zalloc(1, texts_at + l->texts.len + more);
    if (mem == NULL)
        return rv__nomem(err);
    rv_node_list *list = (rv_node_list *)(void *)mem;
    rv_node *nodes = (rv_node *)(void *)(mem + nodes_at);
    char *texts = mem + texts_at, *put = texts + l->texts.len;
    if (l->texts.len > 0)
        memcpy(texts, l->texts.text, l->texts.len);
    *put++ = '\0';
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t from[] = { l->where[i].error, l->where[i].description };
        const char *to[] = { put - 1, put - 1 }; /* "" */
        for (size_t k = 0; k < 2; k++) {
            if (from[k] == 0)
                continue;
            size_t len = strlen(kept + from[k]) + 1;
            memcpy(put, kept + from[k], len);
            to[k] = put;
            put += len;
        }
        nodes[i] = l->nodes[i];
        nodes[i].path = texts + l->where[i].path;
        nodes[i].alias = texts + l->where[i].alias;
        nodes[i].error = from[0] != 0 ? to[0] : "";
        nodes[i].description = from[1] != 0 ? to[1] : "";
        nodes[i].item = l->where[i].about.item != 0 ? texts + l->where[i].about.item : "";
        nodes[i].label = l->where[i].about.label != 0 ? texts + l->where[i].about.label : "";
    }
    list->count = l->count;
    list->total = l->total;
    list->nodes = nodes;
    *ret = list;
    return RV_OK;
}

/* Add items and labels of the listed iterations. `sup`: their forEach. */
static int put_labels_of_iterations(struct listing *l, uint32_t sup, struct rv__store *store,
                                    const char *run_id, rv_error *err)
{
    const struct rv__trace *t = l->trace;
    if (sup == 0 || l->count == 0 || t->at[sup].frame || t->at[sup].node == RV__NO_NODE ||
        t->plan->nodes[t->at[sup].node]->kind != NODE_FOREACH || t->at[sup].items == 0)
        return RV_OK;
    struct rv__iteration_text *abouts = rv__zalloc(l->count, sizeof *abouts);
    if (abouts == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < l->count; i++)
        abouts[i] = l->where[i].about;
    int rc = rv__iteration_texts(t, sup, store, run_id, abouts, l->count, &l->texts, err);
    for (size_t i = 0; i < l->count; i++)
        l->where[i].about = abouts[i];
    rv__free(abouts);
    return rc;
}

/* The forEach of this iteration, or of the single node that is one; 0: neither. */
static uint32_t iterated_by(const struct rv__trace *t, struct spot *spot, int64_t *index)
{
    uint32_t at = spot->at;
    if (at != 0 && !t->at[at].frame && spot->body != NULL && spot->body->bare)
        at = t->at[at].parent;
    if (at == 0 || !t->at[at].frame)
        return 0;
    *index = t->at[at].iteration;
    return t->at[at].parent;
}

static void listing_done(struct listing *l)
{
    rv__free(l->nodes);
    rv__free(l->where);
    rv__buf_done(&l->texts);
}

int rv__node_find(const struct rv__trace *trace, struct rv__store *store, const char *run_id,
                  const char *path, int64_t now_ms, rv_node_list **ret, uint32_t *instance,
                  rv_error *err)
{
    struct listing l = { .trace = trace, .now_ms = now_ms, .limit = 1 };
    struct spot spot;
    int rc = find_spot(trace, path, &spot, err);
    if (rc < 0)
        return rc;
    rv__buf_init(&l.texts, SIZE_MAX / 8); /* bounded by one path */
    list_one(&l, &spot);
    rc = l.no_memory ? rv__nomem(err) : rv__buf_err(&l.texts, err);
    if (rc == RV_OK && l.count > 0)
        rc = put_labels_of_iterations(&l, iterated_by(trace, &spot, &l.where[0].about.index), store,
                                      run_id, err);
    if (rc == RV_OK)
        rc = make_list(&l, ret, err);
    if (rc == RV_OK)
        *instance = spot.at;
    listing_done(&l);
    return rc;
}

static bool is_status(const char *text)
{
    for (int i = 0; i < STATUSES; i++)
        if (strcmp(text, rv__status_name((enum rv__status)i)) == 0)
            return true;
    return strcmp(text, "suspended") == 0;
}

int rv__nodes(struct rv__reading *r, const char *run_id, const rv_node_query *query, int64_t now_ms,
              rv_node_list **ret, rv_error *err)
{
    rv_node_query known = { .size = sizeof known };
    struct spot spot;
    if (query != NULL)
        rv__opts_take(&known, sizeof known, query, query->size);
    if (ret == NULL || known.size == 0)
        return rv__fail(err, RV_EINVAL, "rv_nodes: %s",
                        known.size == 0 ? "make the query with RV_NODE_QUERY"
                                        : "nowhere to put the nodes");
    if (known.status != NULL && !is_status(known.status))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not the status of a node", known.status);
    struct listing l = { .offset = known.offset, .limit = known.limit, .status = known.status };
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    if (l.limit == 0 || l.limit > LIMIT_MOST)
        l.limit = l.limit == 0 ? LIMIT_DEFAULT : LIMIT_MOST;
    rv__buf_init(&l.texts, SIZE_MAX / 8); /* bounded by LIMIT_MOST paths */
    l.now_ms = now_ms;
    pthread_mutex_lock(&r->lock);
    int rc = rv__reading_trace(r, run_id, &l.trace, err);
    if (rc == RV_OK)
        rc = find_spot(l.trace, known.parent, &spot, err);
    if (rc == RV_OK) {
        list_children(&l, &spot);
        rc = l.no_memory ? rv__nomem(err) : rv__buf_err(&l.texts, err);
    }
    if (rc == RV_OK && spot.node != NULL)
        rc = put_labels_of_iterations(&l, spot.at, r->store, run_id, err);
    if (rc == RV_OK)
        rc = make_list(&l, ret, err);
    pthread_mutex_unlock(&r->lock);
    listing_done(&l);
    return rc;
}

void rv_node_query_init(rv_node_query *query)
{
    *query = (rv_node_query){ .size = sizeof *query };
}

void rv_node_list_free(rv_node_list *list)
{
    rv__free(list);
}
