/* scope.c: outcomes of finished nodes, and how they read as JSON.
 *
 * Entries are shared by everything that can see them and by executors on other threads, so they are
 * counted and never change. A result is held once: a supervisor's entry refers to its children, and
 * the nested JSON is put together here, on reading. Finished iterations are not in memory at all: they
 * are rows in the store, in the same shape, but for iterations nested in them, which are rows of their
 * own. The plan tells where in a row those belong (expand_*).
 *
 * Long texts are not in memory either, but values in the store (value.c). A row has references to them,
 * under names of their own, so that nothing a user wrote can be taken for one: in an outcome "resultValue"
 * and "stateValue" instead of "result" and "state", beside the latter a "description" that belongs
 * into it (or "descriptionValue"), in an iteration "itemValue" instead of "item". A row that has any says
 * so at its end (RV__ROW_REFERS), for most have none and are passed on as they are. */
#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/cell.h"

/* -------------------------------------------------------------------------------- memory --- */

/* Who keeps what it made of an entry needs a name for it that is never another's: an address is used
 * again. A counter over all cells is the one thing they share, and it tells none of the other. */
static atomic_ullong serials;

uint64_t rv__serial_next(void)
{
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
}

struct rv__entry *rv__entry_new(const struct rv__node *node, enum rv__status status)
{
    struct rv__entry *entry = rv__zalloc(1, sizeof *entry);
    if (entry == NULL)
        return NULL;
    atomic_init(&entry->refs, 1);
    entry->node = node;
    entry->status = (uint8_t)status;
    entry->serial = rv__serial_next();
    return entry;
}

struct rv__entry *rv__entry_copy(const struct rv__entry *entry)
{
    struct rv__entry *copy = rv__entry_new(entry->node, (enum rv__status)entry->status);
    if (copy == NULL)
        return NULL;
    copy->result = rv__blob_ref(entry->result);
    copy->state = rv__blob_ref(entry->state);
    copy->description = rv__blob_ref(entry->description);
    copy->inner = rv__inner_ref(entry->inner);
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
        rv__blob_unref(entry->description);
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

/* What is put is counted, and kept as long as it fits. */
static void fail(struct rv__writer *w, int rc)
{
    if (w->rc == RV_OK)
        w->rc = rc;
}

/* Is there room for so many more bytes? If not, they are counted only. */
static bool has_room(struct rv__writer *w, size_t len)
{
    if (w->counts && !w->counting && len > w->out->max_bytes - w->out->len)
        w->counting = true;
    return !w->counting;
}

static void put_str(struct rv__writer *w, struct rv__str text)
{
    w->bytes += text.len;
    if (has_room(w, text.len))
        rv__buf_str(w->out, text);
}

static void put(struct rv__writer *w, const char *text)
{
    put_str(w, rv__str(text));
}

static void put_int(struct rv__writer *w, int64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)n);
    put_str(w, (struct rv__str){ text, (size_t)len });
}

static void put_alias(struct rv__writer *w, struct rv__str alias) /* needs no escapes */
{
    put(w, "\"");
    put_str(w, alias);
    put(w, "\"");
}

static void put_key(struct rv__writer *w, struct rv__str key, bool *first)
{
    if (!*first)
        put(w, ",");
    *first = false;
    put_alias(w, key);
    put(w, ":");
}

/* Anything else to be done? Reading from the store is not, once it has failed. */
static bool failed(const struct rv__writer *w)
{
    return w->rc < 0 || w->out->rc < 0;
}

void rv__writer_done(struct rv__writer *w)
{
    rv__blob_unref(w->piece);
    w->piece = NULL;
}

/* A reference, as long as it is only counted, is not read. */
static void put_json(struct rv__writer *w, struct rv__blob *json, const char *none)
{
    struct rv__blob *text = NULL;
    if (json == NULL || failed(w)) {
        put(w, none);
        return;
    }
    if (rv__blob_is_reference(json) && !has_room(w, json->len)) {
        w->bytes += json->len;
        return;
    }
    int rc = rv__blob_get(json, w->rows, &text, w->err);
    if (rc < 0)
        fail(w, rc);
    else
        put_str(w, rv__blob_str(text));
    rv__blob_unref(text);
}

static void put_reference(struct rv__writer *w, const struct rv__blob *json)
{
    w->referred = true;
    rv__reference_write(json, w->out);
}

/* "key":…, or "keyValue":[number,bytes] in a row, where that is how it is kept. */
static void put_member(struct rv__writer *w, const char *key, struct rv__blob *json,
                       const char *none)
{
    bool reference = w->as_row && rv__blob_is_reference(json);
    put(w, "\"");
    put(w, key);
    put(w, reference ? "Value\":" : "\":");
    if (reference)
        put_reference(w, json);
    else
        put_json(w, json, none);
}

/* The state with a description in it: as an object of its own. */
static void put_described(struct rv__writer *w, struct rv__blob *state,
                          struct rv__blob *description)
{
    struct rv__blob *text = NULL;
    struct rv__json_iter it;
    struct rv__str key, value;
    int rc = failed(w) ? w->rc : rv__blob_get(state, w->rows, &text, w->err);
    put(w, "{\"description\":");
    put_json(w, description, "null");
    if (rc < 0)
        fail(w, rc);
    bool has = text != NULL && rv__json_type(rv__blob_str(text)) == RV__JSON_OBJECT;
    rv__json_iter_init(&it, has ? rv__blob_str(text) : rv__str("{}")); /* a disk may lie */
    while (rv__json_next(&it, &key, &value)) {
        put(w, ",");
        put_str(w, key);
        put(w, ":");
        put_str(w, value);
    }
    put(w, "}");
    rv__blob_unref(text);
}

static void put_state(struct rv__writer *w, struct rv__blob *state, struct rv__blob *description)
{
    bool refers = rv__blob_is_reference(state) || rv__blob_is_reference(description);
    if (description == NULL) {
        put_member(w, "state", state, "{}");
    } else if (w->as_row && refers) {
        put_member(w, "description", description, "null");
        put(w, ",");
        put_member(w, "state", state, "{}");
    } else {
        put(w, "\"state\":");
        put_described(w, state, description);
    }
}

static void put_status(struct rv__writer *w, enum rv__status status)
{
    put(w, ",\"status\":\"");
    put(w, rv__status_name(status));
    put(w, "\"}");
}

/* Of what has no state. */
static void put_outcome_end(struct rv__writer *w, enum rv__status status)
{
    put(w, ",\"state\":{}");
    put_status(w, status);
}

static void expand_rows(struct rv__writer *w, const struct rv__node *node, struct rv__str key);

/* {"iterations":[ … ]} of a forEach, or of a loop that keeps all. */
static void write_iterations(struct rv__writer *w,
                             const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    const struct rv__inner *inner = entry->inner;
    put(w, "{\"iterations\":[");
    if (inner->iterations > 0 && !w->as_row)
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
        put_int(w, inner->index);
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
        put_outcome_end(w, STATUS_SKIPPED);
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
        put_outcome_end(w, child->status);
    }
    put(w, "}");
}

/* A nested workflow's result is that of its last node. */
static const struct rv__entry *result_of(const struct rv__entry *entry)
{
    while (entry->node->kind == NODE_WORKFLOW && entry->inner != NULL &&
           entry->status == STATUS_COMPLETED &&
           entry->inner->children[0].scope != entry->inner->base)
        entry = entry->inner->children[0].scope;
    return entry;
}

static bool is_kept(const struct rv__entry *entry)
{
    return entry->node->kind == NODE_STEP || entry->inner == NULL;
}

void rv__result_write(struct rv__writer *w,
                      const struct rv__entry *entry) /* NOLINT(misc-no-recursion) */
{
    entry = result_of(entry);
    if (is_kept(entry)) {
        put_json(w, entry->result, "null");
        return;
    }
    switch (entry->node->kind) {
    case NODE_WORKFLOW: put(w, "null"); break; /* it has none: it did not complete, or is empty */
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
    const struct rv__entry *has = result_of(entry);
    put(w, "{");
    if (is_kept(has)) {
        put_member(w, "result", has->result, "null");
    } else {
        put(w, "\"result\":");
        rv__result_write(w, has);
    }
    put(w, ",");
    put_state(w, entry->state, entry->description);
    put_status(w, entry->status);
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
        fail(w, RV_ENOMEM);
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
        put_str(w, key);
        put(w, ":");
        expand_outcome(w, node, NULL, value, vector);
    }
    put(w, "}");
}

/* A reference that stands in a row. NULL: it cannot be read, and the writer has failed. */
static struct rv__blob *read_reference(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *reference = NULL;
    int rc = rv__reference_read(json, &reference);
    if (rc == RV_EINVAL)
        rc = rv__fail(w->err, RV_ESTORE, "a finished iteration refers to no value");
    if (rc < 0)
        fail(w, rc);
    return reference;
}

static struct rv__blob *read_here(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *blob = rv__blob_new(json);
    if (blob == NULL)
        fail(w, RV_ENOMEM);
    return blob;
}

/* "state" or "stateValue" of an outcome, with the description that stood before it. */
static void expand_state(struct rv__writer *w, bool reference, struct rv__str json,
                         struct rv__blob *description)
{
    if (!reference && description == NULL) {
        put(w, "\"state\":");
        put_str(w, json);
        return;
    }
    struct rv__blob *state = reference ? read_reference(w, json) : read_here(w, json);
    if (state != NULL)
        put_state(w, state, description);
    rv__blob_unref(state);
}

/* Its result, by what it is the result of. */
static void expand_result(struct rv__writer *w, /* NOLINT(misc-no-recursion) */
                          const struct rv__node *node, const struct rv__body *map,
                          struct rv__str result, struct rv__str vector)
{
    put(w, "\"result\":");
    if (map != NULL && rv__json_type(result) == RV__JSON_OBJECT)
        expand_map(w, map, NULL, result, vector);
    else if (node != NULL)
        expand_node(w, node, result, vector);
    else
        put_str(w, result);
}

static void expand_outcome(struct rv__writer *w,
                           const struct rv__node *node, /* NOLINT(misc-no-recursion) */
                           const struct rv__body *map, struct rv__str outcome,
                           struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    struct rv__blob *description = NULL, *result;
    bool first = true;
    put(w, "{");
    rv__json_iter_init(&it, outcome);
    while (!failed(w) && rv__json_next(&it, &key, &value)) {
        bool described = rv__str_is(key, "\"description\"");
        if (described || rv__str_is(key, "\"descriptionValue\"")) {
            rv__blob_unref(description);
            description = described ? read_here(w, value) : read_reference(w, value);
            continue;
        }
        if (!first)
            put(w, ",");
        first = false;
        if (rv__str_is(key, "\"result\"")) {
            expand_result(w, node, map, value, vector);
        } else if (rv__str_is(key, "\"resultValue\"")) {
            put(w, "\"result\":");
            result = read_reference(w, value);
            put_json(w, result, "null");
            rv__blob_unref(result);
        } else if (rv__str_is(key, "\"state\"") || rv__str_is(key, "\"stateValue\"")) {
            expand_state(w, rv__str_is(key, "\"stateValue\""), value, description);
        } else {
            put_str(w, key);
            put(w, ":");
            put_str(w, value);
        }
    }
    put(w, "}");
    rv__blob_unref(description);
}

static void expand_concurrent(struct rv__writer *w, const struct rv__node *node,
                              struct rv__str result, /* NOLINT(misc-no-recursion) */
                              struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    put(w, "{");
    rv__json_iter_init(&it, result);
    for (uint32_t i = 0; i < node->body_count && rv__json_next(&it, &key, &value); i++) {
        /* in the order of the bodies */
        const struct rv__body *body = &node->bodies[i];
        if (i > 0)
            put(w, ",");
        put_str(w, key);
        put(w, ":");
        bool bare = body->bare && body->wrap == NULL; /* the step itself */
        expand_outcome(w, bare ? body->nodes[0] : NULL, bare ? NULL : body, value, vector);
    }
    put(w, "}");
}

/* "itemValue":[piece,place]: the item. */
static void expand_item(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *piece = NULL;
    struct rv__json_iter it;
    struct rv__str text, item = { NULL, 0 };
    int64_t number = 0, place = 0;
    int rc = RV_OK;
    rv__json_iter_init(&it, json);
    if (!rv__json_next(&it, NULL, &text) || rv__json_int(text, &number) < 0 || number < 1 ||
        !rv__json_next(&it, NULL, &text) || rv__json_int(text, &place) < 0)
        rc = RV_ESTORE;
    if (rc == RV_OK && (w->piece == NULL || w->piece_number != (uint64_t)number)) {
        rc = w->rows->value(w->rows, (uint64_t)number, &piece, w->err);
        if (rc < 0) {
            fail(w, rc);
            return;
        }
        rv__blob_unref(w->piece);
        w->piece = piece;
        w->piece_number = (uint64_t)number;
    }
    if (rc == RV_OK)
        item = rv__piece_item(rv__blob_str(w->piece), place);
    if (rv__str_none(item)) {
        fail(w, rv__fail(w->err, RV_ESTORE, "a finished iteration refers to no item"));
        return;
    }
    put(w, "\"item\":");
    put_str(w, item);
}

/* {"taken":…,"results":{…}} or {"index":…,"results":{…}}: expand what stands for something else. */
static void expand_results_in(struct rv__writer *w, const struct rv__body *a,
                              const struct rv__body *b, /* NOLINT(misc-no-recursion) */
                              struct rv__str object, struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    put(w, "{");
    rv__json_iter_init(&it, object);
    while (!failed(w) && rv__json_next(&it, &key, &value)) {
        if (rv__str_is(key, "\"refers\""))
            continue;
        if (!first)
            put(w, ",");
        first = false;
        if (rv__str_is(key, "\"itemValue\"")) {
            expand_item(w, value);
            continue;
        }
        put_str(w, key);
        put(w, ":");
        if (rv__str_is(key, "\"results\""))
            expand_map(w, a, b, value, vector);
        else
            put_str(w, value);
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

/* Has it references? An iteration ends with its results, one brace within the other, if not. */
static bool row_refers(struct rv__str row)
{
    static const struct rv__str mark = RV__STR(RV__ROW_REFERS);
    return row.len > mark.len && memcmp(row.at + row.len - mark.len, mark.at, mark.len) == 0;
}

/* Rows of iterations nested in the body of the row whose vector, with its index, is `vector`. */
static void expand_row(struct rv__writer *w, const struct rv__node *node,
                       struct rv__str vector, /* NOLINT(misc-no-recursion) */
                       struct rv__str row, bool refers)
{
    struct rv__str index;
    if ((!refers && !body_has_rows(&node->bodies[0])) || !rv__json_get(row, "index", &index)) {
        put_str(w, row);
        return;
    }
    struct rv__buf inner;
    rv__buf_init(&inner, SIZE_MAX / 8);
    rv__buf_str(&inner, vector);
    if (vector.len > 0)
        rv__buf_char(&inner, '.');
    rv__buf_str(&inner, index);
    if (rv__buf_err(&inner, NULL) < 0)
        fail(w, RV_ENOMEM);
    else
        expand_results_in(w, &node->bodies[0], NULL, row, rv__buf_view(&inner));
    rv__buf_done(&inner);
}

/* A page of rows, without its brackets. */
static void expand_page(struct rv__writer *w, const struct rv__node *node, struct rv__str vector,
                        struct rv__str page, bool *first) /* NOLINT(misc-no-recursion) */
{
    struct rv__json_iter it = { .at = page.at, .end = page.at + page.len };
    struct rv__str row;
    while (!failed(w) && rv__json_next(&it, NULL, &row)) {
        if (!*first)
            put(w, ",");
        *first = false;
        expand_row(w, node, vector, row, row_refers(row));
    }
}

/* Page by page: however many there are, a page is in memory. */
static void expand_rows(struct rv__writer *w, const struct rv__node *node,
                        struct rv__str key) /* NOLINT(misc-no-recursion) */
{
    struct rv__buf rows;
    int64_t last = -1;
    bool first = true;
    int rc = 1;
    if (w->rows == NULL) {
        fail(w, rv__fail(w->err, RV_ENOTFOUND, "the iterations of '%.*s' are in the store",
                         RV__ARG(node->alias)));
        return;
    }
    rv__buf_init(&rows, SIZE_MAX / 8); /* bounded by a page */
    while (rc > 0 && !failed(w)) {
        rv__buf_reset(&rows);
        rc = w->rows->rows(w->rows, key, last, &rows, &last, w->err);
        if (rc >= 0 && rv__buf_err(&rows, w->err) < 0)
            rc = rows.rc;
        if (rc < 0)
            fail(w, rc);
        else
            expand_page(w, node, key_vector(key), rv__buf_view(&rows), &first);
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
        fail(w, RV_ENOMEM);
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
        put_str(w, result);
        return;
    }
    struct rv__json_iter it;
    struct rv__str row;
    put(w, "{\"iterations\":[");
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &row)) /* one at most */
        expand_row(w, node, vector, row, true);
    put(w, "]}");
}

static void expand_node(struct rv__writer *w, const struct rv__node *node,
                        struct rv__str result, /* NOLINT(misc-no-recursion) */
                        struct rv__str vector)
{
    if (rv__json_type(result) != RV__JSON_OBJECT || node->kind == NODE_STEP) {
        put_str(w, result); /* a step's; or null, of what was skipped or cancelled */
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

static int writer_end(struct rv__writer *w)
{
    rv__writer_done(w);
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
                     uint64_t *bytes, rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err, .counts = bytes != NULL };
    size_t before = out->len;
    bool first = true;
    put(&w, "{");
    if (cell->root != NULL) {
        write_members(&w, cell->root->frame.scope, NULL, &first);
        write_reached(&w, cell, &first);
    } else {
        write_members(&w, cell->results, NULL, &first);
    }
    put(&w, "}");
    int rc = writer_end(&w);
    if (rc == RV_OK && w.counting)
        rc = rv__fail(err, RV_ETOOBIG, "the results have %llu bytes: at most %zu are read at once",
                      (unsigned long long)w.bytes, out->max_bytes);
    if (rc == RV_ETOOBIG) {
        rv__buf_cut(out, before);
        out->rc = RV_OK;
    }
    if (rc == RV_ETOOBIG && bytes != NULL)
        *bytes = w.bytes;
    return rc;
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
        ret->pieces = rv__items_ref(rv__frame_items(loop));
        if (items->value != NULL && has_item && ret->pieces == NULL) {
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
    rv__items_unref(view->pieces);
    rv__blob_unref(view->error);
    rv__entry_unref(view->scope);
    rv__entry_unref(view->last);
    rv__entry_unref(view->ended);
    rv__blob_unref(view->failed_state);
    *view = (struct rv__view){ .loop_index = -1 };
}

int rv__view_item(const struct rv__view *view, struct rv__row_source *rows, struct rv__blob **hold,
                  struct rv__str *ret, rv_error *err)
{
    struct rv__blob *piece;
    int64_t place;
    *hold = NULL;
    *ret = view->item;
    if (view->pieces == NULL)
        return rv__str_none(view->item) ? RV_ENOTFOUND : RV_OK;
    uint64_t number = rv__items_piece(view->pieces, view->loop_index, &place);
    int rc = rows->value(rows, number, &piece, err);
    if (rc < 0)
        return rc;
    *ret = rv__piece_item(rv__blob_str(piece), place);
    if (rv__str_none(*ret)) {
        rv__blob_unref(piece);
        return rv__fail(err, RV_ESTORE, "the value %llu has no item %lld",
                        (unsigned long long)number, (long long)place);
    }
    *hold = piece;
    return RV_OK;
}

int rv__view_items(const struct rv__view *view, struct rv__row_source *rows, struct rv__buf *out,
                   rv_error *err)
{
    const struct rv__items *pieces = view->pieces;
    int rc = RV_OK;
    if (pieces == NULL && view->items == NULL)
        return RV_ENOTFOUND;
    if (pieces == NULL) {
        rv__buf_str(out, rv__blob_str(view->items));
        return rv__buf_err(out, err);
    }
    rv__buf_char(out, '[');
    for (int64_t i = 0; i < pieces->pieces && rc == RV_OK; i++) {
        struct rv__blob *piece = NULL;
        rc = rows->value(rows, pieces->first + (uint64_t)i, &piece, err);
        if (rc == RV_OK && piece->len < 2)
            rc = rv__fail(err, RV_ESTORE, "a piece of the items is not one");
        if (rc == RV_OK && i > 0)
            rv__buf_char(out, ',');
        if (rc == RV_OK) /* an array, without its brackets */
            rv__buf_add(out, piece->text + 1, piece->len - 2);
        rv__blob_unref(piece);
        if (rc == RV_OK)
            rc = rv__buf_err(out, err);
    }
    rv__buf_char(out, ']');
    return rc < 0 ? rc : rv__buf_err(out, err);
}

uint64_t rv__view_items_serial(const struct rv__view *view)
{
    return view->pieces->serial;
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
    put(&w, ",");
    put_state(&w, view->last->state, view->last->description);
    put(&w, ",\"alias\":");
    put_alias(&w, view->last->node->alias);
    put(&w, ",\"stepName\":");
    put_alias(&w, view->last->node->alias);
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

bool rv__entry_state_here(const struct rv__entry *entry, struct rv__str *ret)
{
    if (entry->description != NULL || rv__blob_is_reference(entry->state))
        return false;
    *ret = rv__blob_str(entry->state);
    return true;
}

int rv__entry_state(const struct rv__entry *entry, struct rv__row_source *rows, struct rv__buf *out,
                    rv_error *err)
{
    struct rv__writer w = { .rows = rows, .out = out, .err = err };
    if (entry->description != NULL)
        put_described(&w, entry->state, entry->description);
    else
        put_json(&w, entry->state, "{}");
    return writer_end(&w);
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
