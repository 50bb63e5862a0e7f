/* scope.c: outcomes of finished nodes, and how they read as JSON.
 *
 * Entries are shared by everything that can see them and by executors on other threads, so they are
 * counted and never change. A result is held once: a supervisor's entry refers to its children, and
 * the nested JSON is put together here, on reading. Finished iterations are not in memory at all: they
 * are rows in the store, in the same shape, but for iterations nested in them, which are rows of their
 * own. The plan tells where in a row those belong (expand_*). */
#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

/* -------------------------------------------------------------------------------- memory --- */

/* Who keeps what it made of an entry needs a name for it that is never another's: an address is used
 * again. A counter over all cells is the one thing they share, and it tells none of the other. */
static atomic_ullong serials;

struct rv__entry *rv__entry_new(const struct rv__node *node, enum rv__status status)
{
    struct rv__entry *entry = rv__zalloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    atomic_init(&entry->refs, 1);
    entry->node = node;
    entry->status = (uint8_t)status;
    entry->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    return entry;
}

struct rv__entry *rv__entry_described(const struct rv__entry *entry, struct rv__str text)
{
    struct rv__str state = rv__blob_str(entry->state), key, value;
    struct rv__entry *copy = rv__entry_new(entry->node, (enum rv__status)entry->status);
    struct rv__json_iter it;
    struct rv__buf json;
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the two that are in it */
    rv__buf_text(&json, "{\"description\":");
    rv__buf_str(&json, text);
    bool has = !rv__str_none(state) && rv__json_type(state) == RV__JSON_OBJECT; /* a disk may lie */
    rv__json_iter_init(&it, has ? state : rv__str("{}"));
    while (rv__json_next(&it, &key, &value)) {
        rv__buf_char(&json, ',');
        rv__buf_str(&json, key);
        rv__buf_char(&json, ':');
        rv__buf_str(&json, value);
    }
    rv__buf_char(&json, '}');
    if (copy != NULL && rv__buf_err(&json, NULL) == RV_OK)
        copy->state = rv__blob_new(rv__buf_view(&json));
    rv__buf_done(&json);
    if (copy == NULL || copy->state == NULL) {
        rv__entry_unref(copy);
        return NULL;
    }
    copy->outer = rv__entry_ref(entry->outer);
    copy->result = rv__blob_ref(entry->result);
    copy->inner = entry->inner != NULL ? rv__inner_ref(entry->inner) : NULL;
    return copy;
}

struct rv__entry *rv__entry_ref(struct rv__entry *entry)
{
    if (entry != NULL)
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

/* Along the chain in a loop, for it may be long; into `inner` by recursion, for that is bounded by
 * the depth of the plan. */
void rv__entry_unref(struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    while (entry != NULL && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1) {
        struct rv__entry *outer = entry->outer;
        rv__blob_unref(entry->result);
        rv__blob_unref(entry->state);
        rv__inner_unref(entry->inner);
        rv__free(entry);
        entry = outer;
    }
}

struct rv__inner *rv__inner_new(uint32_t children)
{
    struct rv__inner *inner = rv__zalloc(1, sizeof *inner +
                                                (size_t)children * sizeof inner->children[0]);
    if (inner != NULL) {
        atomic_init(&inner->refs, 1);
        inner->child_count = children;
        inner->index = -1;
        for (uint32_t i = 0; i < children; i++)
            inner->children[i].status = STATUS_CANCELLED; /* until it is known better */
    }
    return inner;
}

struct rv__inner *rv__inner_of_body(const struct rv__actor *frame, struct rv__entry *scope,
                                    int64_t index)
{
    struct rv__inner *inner = rv__inner_new(1);
    if (inner == NULL) {
        rv__entry_unref(scope);
        return NULL;
    }
    inner->index = index;
    inner->base = rv__entry_ref(frame->frame.base);
    inner->children[0].scope = scope;
    inner->children[0].status = frame->frame.failed ? STATUS_FAILED : STATUS_COMPLETED;
    return inner;
}

struct rv__inner *rv__inner_ref(struct rv__inner *inner)
{
    if (inner != NULL)
        atomic_fetch_add_explicit(&inner->refs, 1, memory_order_relaxed);
    return inner;
}

void rv__inner_unref(struct rv__inner *inner) /* NOLINT(misc-no-recursion) */
{
    if (inner == NULL || atomic_fetch_sub_explicit(&inner->refs, 1, memory_order_acq_rel) != 1)
        return;
    rv__blob_unref(inner->key);
    for (uint32_t i = 0; i < inner->child_count; i++)
        rv__entry_unref(inner->children[i].scope);
    rv__entry_unref(inner->base);
    rv__free(inner);
}

/* ------------------------------------------------------------------------------- writing --- */

static void put(struct rv__writer *w, const char *text)
{
    rv__buf_text(w->out, text);
}

static void put_key(struct rv__writer *w, struct rv__str key, bool *first)
{
    if (!*first)
        rv__buf_char(w->out, ',');
    *first = false;
    rv__buf_json_str(w->out, key);
    rv__buf_char(w->out, ':');
}

static void put_json(struct rv__writer *w, const struct rv__blob *json, const char *none)
{
    if (json != NULL)
        rv__buf_str(w->out, rv__blob_str(json));
    else
        put(w, none);
}

static void put_outcome_end(struct rv__writer *w, const struct rv__blob *state,
                            enum rv__status status)
{
    put(w, ",\"state\":");
    put_json(w, state, "{}");
    put(w, ",\"status\":\"");
    put(w, rv__status_name(status));
    put(w, "\"}");
}

static void expand_rows(struct rv__writer *w, const struct rv__node *node, struct rv__str key);

/* {"iterations":[ … ]} of a forEach, or of a loop that keeps all. */
static void write_iterations(struct rv__writer *w,
                             const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    put(w, "{\"iterations\":[");
    if (inner->iterations > 0 && !w->skip_rows)
        expand_rows(w, entry->node, rv__blob_str(inner->key));
    put(w, "]}");
}

/* {"iterations":[{"index":…,"results":…}]} of a loop that keeps the last, or none. */
static void write_last_iteration(struct rv__writer *w,
                                 const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    put(w, "{\"iterations\":[");
    if (inner->index >= 0) {
        put(w, "{\"index\":");
        rv__buf_int(w->out, inner->index);
        put(w, ",\"results\":");
        rv__entries_write(w, inner->children[0].scope, inner->base);
        put(w, "}");
    }
    put(w, "]}");
}

static void put_skipped(struct rv__writer *w, const struct rv__body *body, bool *first)
{
    for (uint32_t i = 0; i < body->count; i++) {
        put_key(w, body->nodes[i]->alias, first);
        put(w, "{\"result\":null");
        put_outcome_end(w, NULL, STATUS_SKIPPED);
    }
}

static void write_members(struct rv__writer *w, const struct rv__entry *newest,
                          const struct rv__entry *base, bool *first);

/* The path not taken is there too, as skipped; an alias of both paths shows the one taken. */
static void write_branch(struct rv__writer *w,
                         const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    const struct rv__body *not_taken = &entry->node->bodies[1 - inner->index];
    const struct rv__body *taken = &entry->node->bodies[inner->index];
    bool first = true;
    put(w, inner->index == 0 ? "{\"taken\":\"then\",\"results\":{"
                             : "{\"taken\":\"else\",\"results\":{");
    write_members(w, inner->children[0].scope, inner->base, &first);
    for (uint32_t i = 0; i < not_taken->count; i++) {
        if (rv__body_find(taken, not_taken->nodes[i]->alias) != NULL)
            continue;
        struct rv__body one = { .nodes = &not_taken->nodes[i], .count = 1 };
        put_skipped(w, &one, &first);
    }
    put(w, "}}");
}

static void write_concurrent(struct rv__writer *w,
                             const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    bool first = true;
    put(w, "{");
    for (uint32_t i = 0; i < inner->child_count; i++) {
        const struct rv__child *child = &inner->children[i];
        const struct rv__body *body = &entry->node->bodies[i];
        bool empty = child->scope == NULL || child->scope == inner->base;
        put_key(w, body->alias, &first);
        if (body->bare && body->wrap == NULL && !empty) { /* the step itself */
            rv__entry_write(w, child->scope);
            continue;
        }
        put(w, "{\"result\":");
        if (empty)
            put(w, body->bare && body->wrap == NULL ? "null" : "{}");
        else
            rv__entries_write(w, child->scope, inner->base);
        put_outcome_end(w, NULL, child->status);
    }
    put(w, "}");
}

void rv__result_write(struct rv__writer *w,
                      const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    if (entry->node->kind == NODE_STEP || inner == NULL) {
        put_json(w, entry->result, "null");
        return;
    }
    switch (entry->node->kind) {
    case NODE_WORKFLOW: /* the result of its last node */
        if (inner->children[0].scope != inner->base && entry->status == STATUS_COMPLETED)
            rv__result_write(w, inner->children[0].scope);
        else
            put(w, "null");
        break;
    case NODE_BRANCH: write_branch(w, entry); break;
    case NODE_LOOP:
        if (rv__node_keeps_rows(entry->node))
            write_iterations(w, entry);
        else
            write_last_iteration(w, entry);
        break;
    case NODE_FOREACH: write_iterations(w, entry); break;
    case NODE_CONCURRENT: write_concurrent(w, entry); break;
    case NODE_STEP:
    case NODE_KINDS: break;
    }
}

void rv__entry_write(struct rv__writer *w,
                     const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    put(w, "{\"result\":");
    rv__result_write(w, entry);
    put_outcome_end(w, entry->state, entry->status);
}

/* The entries of one body, oldest first. */
static void write_members(struct rv__writer *w,
                          const struct rv__entry *newest, /* NOLINT(misc-no-recursion) */
                          const struct rv__entry *base, bool *first)
{
    size_t count = 0;
    for (const struct rv__entry *e = newest; e != base; e = e->outer)
        count++;
    if (count == 0)
        return;
    const struct rv__entry **order = rv__zalloc(count, sizeof *order);
    if (order == NULL) {
        w->rc = RV_ENOMEM;
        return;
    }
    size_t at = count;
    for (const struct rv__entry *e = newest; e != base; e = e->outer)
        order[--at] = e;
    for (size_t i = 0; i < count; i++) {
        put_key(w, order[i]->node->alias, first);
        rv__entry_write(w, order[i]);
    }
    rv__free(order);
}

void rv__entries_write(struct rv__writer *w,
                       const struct rv__entry *newest, /* NOLINT(misc-no-recursion) */
                       const struct rv__entry *base)
{
    bool first = true;
    put(w, "{");
    write_members(w, newest, base, &first);
    put(w, "}");
}

/* ------------------------------------------------------------------------------ expanding --- */

/* The vector part of a key: "4/3.0" → "3.0". */
static struct rv__str key_vector(struct rv__str key)
{
    assert(key.at != NULL);
    const char *slash = memchr(key.at, '/', key.len);
    assert(slash != NULL);
    return (struct rv__str){ slash + 1, key.len - (size_t)(slash + 1 - key.at) };
}

static void expand_node(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                        struct rv__str vector);

static bool body_has_rows(const struct rv__body *body) /* NOLINT(misc-no-recursion) */
{
    for (uint32_t i = 0; i < body->count; i++) {
        const struct rv__node *node = body->nodes[i];
        if (rv__node_keeps_rows(node))
            return true;
        for (uint32_t k = 0; k < node->body_count; k++)
            if (body_has_rows(&node->bodies[k]))
                return true;
    }
    return false;
}

static const struct rv__node *find_raw(const struct rv__body *body, struct rv__str raw_key)
{
    /* An alias has no character that JSON would escape: the key's text is between its quotes. */
    return rv__body_find(body, (struct rv__str){ raw_key.at + 1, raw_key.len - 2 });
}

/* {"result":R, …}: the same with R expanded. */
static void expand_outcome(struct rv__writer *w,
                           const struct rv__node *node, /* NOLINT(misc-no-recursion) */
                           const struct rv__body *map, struct rv__str outcome,
                           struct rv__str vector);

/* {alias: outcome, …} of the nodes of a body; of a branch, of both bodies. */
static void expand_map(struct rv__writer *w, const struct rv__body *a,
                       const struct rv__body *b, /* NOLINT(misc-no-recursion) */
                       struct rv__str map, struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    put(w, "{");
    rv__json_iter_init(&it, map);
    while (rv__json_next(&it, &key, &value)) {
        const struct rv__node *node = find_raw(a, key);
        if (node == NULL && b != NULL)
            node = find_raw(b, key);
        if (!first)
            put(w, ",");
        first = false;
        rv__buf_str(w->out, key);
        put(w, ":");
        expand_outcome(w, node, NULL, value, vector);
    }
    put(w, "}");
}

static void expand_outcome(struct rv__writer *w,
                           const struct rv__node *node, /* NOLINT(misc-no-recursion) */
                           const struct rv__body *map, struct rv__str outcome,
                           struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    put(w, "{");
    rv__json_iter_init(&it, outcome);
    while (rv__json_next(&it, &key, &value)) {
        if (!first)
            put(w, ",");
        first = false;
        rv__buf_str(w->out, key);
        put(w, ":");
        bool is_result = rv__str_is(key, "\"result\"");
        if (is_result && map != NULL && rv__json_type(value) == RV__JSON_OBJECT)
            expand_map(w, map, NULL, value, vector);
        else if (is_result && node != NULL)
            expand_node(w, node, value, vector);
        else
            rv__buf_str(w->out, value);
    }
    put(w, "}");
}

static void expand_concurrent(struct rv__writer *w, const struct rv__node *node,
                              struct rv__str result, /* NOLINT(misc-no-recursion) */
                              struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    put(w, "{");
    rv__json_iter_init(&it, result);
    for (uint32_t i = 0; rv__json_next(&it, &key, &value); i++) { /* in the order of the bodies */
        const struct rv__body *body = &node->bodies[i];
        if (i > 0)
            put(w, ",");
        rv__buf_str(w->out, key);
        put(w, ":");
        if (body->bare && body->wrap == NULL)
            rv__buf_str(w->out, value); /* a step: nothing in it is ours */
        else
            expand_outcome(w, NULL, body, value, vector);
    }
    put(w, "}");
}

/* {"taken":…,"results":{…}} or {"iterations":[{"index":…,"results":{…}}]}: expand each `results`. */
static void expand_results_in(struct rv__writer *w, const struct rv__body *a,
                              const struct rv__body *b, /* NOLINT(misc-no-recursion) */
                              struct rv__str object, struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    put(w, "{");
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, &value)) {
        if (!first)
            put(w, ",");
        first = false;
        rv__buf_str(w->out, key);
        put(w, ":");
        if (rv__str_is(key, "\"results\""))
            expand_map(w, a, b, value, vector);
        else
            rv__buf_str(w->out, value);
    }
    put(w, "}");
}

/* An alias may be in both paths: the one that was taken has the result. */
static void expand_branch(struct rv__writer *w, /* NOLINT(misc-no-recursion) */
                          const struct rv__node *node, struct rv__str result, struct rv__str vector)
{
    struct rv__str taken;
    bool other = rv__json_get(result, "taken", &taken) && rv__str_is(taken, "\"else\"");
    expand_results_in(w, &node->bodies[other], &node->bodies[!other], result, vector);
}

/* Rows of iterations nested in the body of the row whose vector, with its index, is `vector`. */
static void expand_row(struct rv__writer *w, const struct rv__node *node,
                       struct rv__str vector, /* NOLINT(misc-no-recursion) */
                       struct rv__str row)
{
    struct rv__str index;
    if (!body_has_rows(&node->bodies[0]) || !rv__json_get(row, "index", &index)) {
        rv__buf_str(w->out, row);
        return;
    }
    struct rv__buf inner;
    rv__buf_init(&inner, SIZE_MAX / 8);
    rv__buf_str(&inner, vector);
    if (vector.len > 0)
        rv__buf_char(&inner, '.');
    rv__buf_str(&inner, index);
    if (rv__buf_err(&inner, NULL) < 0)
        w->rc = RV_ENOMEM;
    else
        expand_results_in(w, &node->bodies[0], NULL, row, rv__buf_view(&inner));
    rv__buf_done(&inner);
}

static void expand_rows(struct rv__writer *w, const struct rv__node *node,
                        struct rv__str key) /* NOLINT(misc-no-recursion) */
{
    if (w->rows == NULL) {
        w->rc = rv__fail(w->err, RV_ENOTFOUND, "the iterations of '%.*s' are in the store",
                         RV__ARG(node->alias));
        return;
    }
    struct rv__buf rows;
    rv__buf_init(&rows, SIZE_MAX / 8); /* bounded by what the store holds */
    rv__buf_char(&rows, '[');
    int rc = w->rows->rows(w->rows, key, &rows, w->err);
    rv__buf_char(&rows, ']');
    if (rc == RV_OK)
        rc = rv__buf_err(&rows, w->err);
    if (rc < 0) {
        w->rc = rc;
    } else {
        struct rv__json_iter it;
        struct rv__str row;
        bool first = true;
        rv__json_iter_init(&it, rv__buf_view(&rows));
        while (rv__json_next(&it, NULL, &row)) {
            if (!first)
                put(w, ",");
            first = false;
            expand_row(w, node, key_vector(key), row);
        }
    }
    rv__buf_done(&rows);
}

static void expand_iterations(struct rv__writer *w, const struct rv__node *node,
                              struct rv__str vector) /* NOLINT(misc-no-recursion) */
{
    struct rv__buf key;
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_fmt(&key, "%u/%.*s", node->id, RV__ARG(vector));
    put(w, "{\"iterations\":[");
    if (rv__buf_err(&key, NULL) < 0)
        w->rc = RV_ENOMEM;
    else
        expand_rows(w, node, rv__buf_view(&key));
    put(w, "]}");
    rv__buf_done(&key);
}

static void expand_loop_last(struct rv__writer *w, const struct rv__node *node,
                             struct rv__str result, /* NOLINT(misc-no-recursion) */
                             struct rv__str vector)
{
    struct rv__str list;
    if (!rv__json_get(result, "iterations", &list)) {
        rv__buf_str(w->out, result);
        return;
    }
    struct rv__json_iter it;
    struct rv__str row;
    put(w, "{\"iterations\":[");
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &row)) /* one at most */
        expand_row(w, node, vector, row);
    put(w, "]}");
}

static void expand_node(struct rv__writer *w, const struct rv__node *node,
                        struct rv__str result, /* NOLINT(misc-no-recursion) */
                        struct rv__str vector)
{
    if (rv__json_type(result) != RV__JSON_OBJECT || node->kind == NODE_STEP) {
        rv__buf_str(w->out, result); /* a step's; or null, of what was skipped or cancelled */
        return;
    }
    switch (node->kind) {
    case NODE_WORKFLOW: /* it is its last node's */
        expand_node(w, node->bodies[0].nodes[node->bodies[0].count - 1], result, vector);
        break;
    case NODE_BRANCH: expand_branch(w, node, result, vector); break;
    case NODE_LOOP:
        if (rv__node_keeps_rows(node))
            expand_iterations(w, node, vector);
        else
            expand_loop_last(w, node, result, vector);
        break;
    case NODE_FOREACH: expand_iterations(w, node, vector); break;
    case NODE_CONCURRENT: expand_concurrent(w, node, result, vector); break;
    case NODE_STEP:
    case NODE_KINDS: break;
    }
}

/* ------------------------------------------------------------------------------- reading --- */

static int writer_end(const struct rv__writer *w)
{
    if (w->rc == RV_ENOMEM)
        return rv__nomem(w->err);
    return w->rc < 0 ? w->rc : rv__buf_err(w->out, w->err);
}

/* The status of a node that has not ended. */
static enum rv__status live_status(const struct rv__actor *node)
{
    switch ((enum rv__phase)node->phase) {
    case PHASE_RUNNING:
    case PHASE_PARKED: return STATUS_RUNNING;
    case PHASE_RETRY: return STATUS_WAITING_RETRY;
    case PHASE_READY: /* its timer has fired, or it was lost */
        return node->step.next_attempt > node->step.attempt ? STATUS_WAITING_RETRY : STATUS_PENDING;
    case PHASE_FAILED: return STATUS_FAILED; /* its handler runs */
    case PHASE_BEGIN: return STATUS_PENDING;
    case PHASE_TO_EVAL:
    case PHASE_EVAL:
    case PHASE_EVALUATED: return node->eval == EVAL_WHEN ? STATUS_PENDING : STATUS_RUNNING;
    case PHASES: break;
    }
    assert(!"no such phase");
    return STATUS_PENDING;
}

/* The node at the top that the run is in: reached, without a result yet. */
static void write_reached(struct rv__writer *w, const struct rv__cell *cell, bool *first)
{
    const struct rv__actor *node = cell->root->child;
    if (node == NULL || node->node->is_handler)
        return;
    bool suspended = cell->suspended_by == node->id;
    put_key(w, node->node->alias, first);
    put(w, "{\"result\":null,\"state\":{},\"status\":\"");
    put(w, suspended ? "suspended" : rv__status_name(live_status(node)));
    put(w, "\"}");
}

int rv__cell_results(const struct rv__cell *cell, struct rv__row_source *rows, struct rv__buf *out,
                     rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    bool first = true;
    put(&w, "{");
    if (cell->root != NULL) {
        write_members(&w, cell->root->frame.scope, NULL, &first);
        write_reached(&w, cell, &first);
    } else {
        write_members(&w, cell->results, NULL, &first);
    }
    put(&w, "}");
    return writer_end(&w);
}

int rv__cell_view(const struct rv__cell *cell, uint64_t id, uint64_t token, struct rv__view *ret)
{
    const struct rv__actor *actor = rv__cell_find(cell, id);
    if (actor == NULL || actor->token != token || !rv__actor_working(actor))
        return RV_ENOTFOUND;

    const struct rv__actor *frame = rv__actor_frame(actor);
    const struct rv__actor *loop = rv__actor_loop(frame);
    const struct rv__actor *around = frame;
    bool describes = actor->is_frame && actor->eval == EVAL_DESCRIPTION;
    if (actor->is_frame && !describes) /* its own input: it sees what its supervisor sees */
        around = rv__actor_frame(actor->owner);
    *ret = (struct rv__view){ .actor = id, .token = token, .loop_index = -1 };
    ret->node = rv__actor_about(actor);
    ret->body = actor->is_frame && !describes ? actor->frame.body : NULL;
    ret->input = rv__blob_ref(around->frame.input);
    if (describes) { /* it sees what the node saw */
        ret->ended = rv__entry_ref(frame->frame.scope);
        ret->scope = rv__entry_ref(ret->ended->outer);
        ret->last = rv__entry_ref(ret->scope != frame->frame.base ? ret->scope
                                  : frame->owner != NULL ? rv__actor_frame(frame->owner)->frame.last
                                                         : NULL);
    } else {
        ret->scope = rv__entry_ref(frame->frame.scope);
        ret->last = rv__entry_ref(frame->frame.last);
    }
    bool condition = !actor->is_frame && (actor->eval == EVAL_WHILE || actor->eval == EVAL_UNTIL);
    if (condition && actor->sup.inner != NULL) { /* it sees what the last iteration left */
        rv__entry_unref(ret->scope);
        ret->scope = rv__entry_ref(actor->sup.inner->children[0].scope);
    }
    if (condition) { /* of the iteration to come, or of the one that ended: as its nodes see it */
        ret->loop_index = actor->sup.ended - (actor->eval == EVAL_UNTIL);
    } else if (loop != NULL) {
        const struct rv__actor *items = loop->frame.prefix != NULL ? loop : loop->owner;
        ret->loop_index = loop->frame.iteration;
        bool has_item = loop->frame.prefix != NULL ? loop->frame.item_len > 0
                                                   : loop->node->kind == NODE_FOREACH;
        if (items->value != NULL && has_item) {
            ret->items = rv__blob_ref(items->value);
            ret->item = (struct rv__str){ ret->items->text + loop->frame.item_at,
                                          loop->frame.item_len };
        }
    }
    if (!actor->is_frame && actor->node->kind == NODE_STEP && actor->phase == PHASE_RUNNING) {
        ret->attempt = actor->step.attempt;
        if (actor->node->is_handler &&
            actor->owner->is_frame) { /* for the node that failed in it */
            ret->error = rv__blob_ref(actor->owner->value);
            ret->failed_node = cell->plan->nodes[frame->frame.failed_node];
            ret->failed_state = rv__blob_ref(frame->frame.scope->state);
        } else if (actor->node->is_handler) { /* for the step above it */
            ret->error = rv__blob_ref(actor->owner->value);
            ret->failed_node = actor->owner->node;
            ret->failed_state = rv__blob_ref(actor->owner->step.state);
        }
    }
    (void)rv__actor_vector(actor, ret->vector);
    return RV_OK;
}

void rv__view_done(struct rv__view *view)
{
    rv__blob_unref(view->input);
    rv__blob_unref(view->items);
    rv__blob_unref(view->error);
    rv__entry_unref(view->scope);
    rv__entry_unref(view->last);
    rv__entry_unref(view->ended);
    rv__blob_unref(view->failed_state);
    *view = (struct rv__view){ .loop_index = -1 };
}

/* Aliases that were written already: the newest of a name hides the older ones. */
struct seen {
    struct rv__str *slots;
    size_t size;
};

static bool seen_before(struct seen *seen, struct rv__str alias)
{
    size_t at = (size_t)rv__str_hash(RV__HASH_START, alias) & (seen->size - 1);
    while (seen->slots[at].at != NULL) {
        if (rv__str_eq(seen->slots[at], alias))
            return true;
        at = (at + 1) & (seen->size - 1);
    }
    seen->slots[at] = alias;
    return false;
}

int rv__view_steps(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    size_t count = 0;
    struct seen seen = { .size = 8 };
    bool first = true;
    for (const struct rv__entry *e = view->scope; e != NULL; e = e->outer)
        count++;
    while (seen.size < count * 2)
        seen.size *= 2;
    seen.slots = rv__zalloc(seen.size, sizeof *seen.slots);
    if (seen.slots == NULL)
        return rv__nomem(err);
    put(&w, "{");
    for (const struct rv__entry *e = view->scope; e != NULL; e = e->outer) {
        if (seen_before(&seen, e->node->alias))
            continue;
        put_key(&w, e->node->alias, &first);
        rv__entry_write(&w, e);
    }
    put(&w, "}");
    rv__free(seen.slots);
    return writer_end(&w);
}

int rv__view_last(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                  rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    if (view->last == NULL) {
        put(&w, "{\"state\":{},\"alias\":null,\"stepName\":null}"); /* result: undefined */
        return writer_end(&w);
    }
    put(&w, "{\"result\":");
    rv__result_write(&w, view->last);
    put(&w, ",\"state\":");
    put_json(&w, view->last->state, "{}");
    put(&w, ",\"alias\":");
    rv__buf_json_str(out, view->last->node->alias);
    put(&w, ",\"stepName\":");
    rv__buf_json_str(out, view->last->node->alias);
    put(&w, "}");
    return writer_end(&w);
}

const struct rv__entry *rv__view_find(const struct rv__view *view, struct rv__str alias)
{
    const struct rv__entry *entry = view->scope;
    while (entry != NULL && !rv__str_eq(entry->node->alias, alias))
        entry = entry->outer;
    return entry;
}

struct rv__str rv__entry_alias(const struct rv__entry *entry)
{
    return entry->node->alias;
}

enum rv__status rv__entry_status(const struct rv__entry *entry)
{
    return (enum rv__status)entry->status;
}

struct rv__str rv__entry_state(const struct rv__entry *entry)
{
    return rv__blob_str(entry->state);
}

struct rv__blob *rv__entry_blob(const struct rv__entry *entry)
{
    return entry->inner == NULL ? entry->result : NULL;
}

bool rv__entry_assembled(const struct rv__entry *entry)
{
    return entry->inner != NULL;
}

uint64_t rv__entry_serial(const struct rv__entry *entry)
{
    return entry->serial;
}

const struct rv__entry *rv__entry_before(const struct rv__entry *entry)
{
    return entry->outer;
}

int rv__entry_result(const struct rv__entry *entry, struct rv__row_source *rows,
                     struct rv__buf *out, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    rv__result_write(&w, entry);
    return writer_end(&w);
}
