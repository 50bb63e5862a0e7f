/* expand.c: completes rows of iterations that are read from the store.
 *
 * A row has the shape of its iteration (write.c), except for two things that are filled in here: nested
 * iterations, which are rows of their own, and values, to which a row only refers. The plan tells where they
 * belong; the result of a supervisor is expanded by its kind (expand_result). */
#include <assert.h>

#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

/* The vector part of a key: "4/3.0" → "3.0". */
static struct rv__str key_vector(struct rv__str key)
{
    assert(key.at != NULL);
    const char *slash = memchr(key.at, '/', key.len);
    assert(slash != NULL);
    return (struct rv__str){ slash + 1, key.len - (size_t)(slash + 1 - key.at) };
}

static bool body_has_rows(const struct rv__body *body)
{
    for (uint32_t i = 0; i < body->count; i++) {
        const struct rv__node *node = body->nodes[i];
        if (rv__node_keeps_rows(node) || rv__flow_kind(node)->schedule != NULL)
            return true; /* a stage has fields that are not shown */
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

/* {alias: outcome, …} of the nodes of a body; of a branch, of both bodies. */
static void expand_map(struct rv__writer *w, const struct rv__body *a, const struct rv__body *b,
                       struct rv__str map, struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    rv__writer_put(w, "{");
    rv__json_iter_init(&it, map);
    while (rv__json_next(&it, &key, &value)) {
        const struct rv__node *node = find_raw(a, key);
        if (node == NULL && b != NULL)
            node = find_raw(b, key);
        if (!first)
            rv__writer_put(w, ",");
        first = false;
        rv__writer_put_str(w, key);
        rv__writer_put(w, ":");
        rv__outcome_expand(w, node, NULL, value, vector);
    }
    rv__writer_put(w, "}");
}

/* The value that a row refers to. NULL: it cannot be read, and the writer has failed. */
static struct rv__blob *read_reference(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *reference = NULL;
    int rc = rv__reference_read(json, &reference);
    if (rc == RV_EINVAL)
        rc = rv__fail(w->err, RV_ESTORE, "a finished iteration refers to no value");
    if (rc < 0)
        rv__writer_fail(w, rc);
    return reference;
}

static struct rv__blob *read_here(struct rv__writer *w, struct rv__str json)
{
    struct rv__blob *blob = rv__blob_new(json);
    if (blob == NULL)
        rv__writer_fail(w, RV_ENOMEM);
    return blob;
}

/* "state" or "stateValue" of an outcome, with the description that stood before it. */
static void expand_state(struct rv__writer *w, bool reference, struct rv__str json,
                         struct rv__blob *description)
{
    if (!reference && description == NULL) {
        rv__writer_put(w, "\"state\":");
        rv__writer_put_str(w, json);
        return;
    }
    struct rv__blob *state = reference ? read_reference(w, json) : read_here(w, json);
    if (state != NULL)
        rv__writer_put_state(w, state, description);
    rv__blob_unref(state);
}

/* Write a result; how depends on the kind of node. */
static void expand_result(struct rv__writer *w, const struct rv__node *node,
                          const struct rv__body *map, struct rv__str result, struct rv__str vector)
{
    rv__writer_put(w, "\"result\":");
    if (map != NULL && rv__json_type(result) == RV__JSON_OBJECT)
        expand_map(w, map, NULL, result, vector);
    else if (node != NULL)
        rv__node_expand(w, node, result, vector);
    else
        rv__writer_put_str(w, result);
}

void rv__outcome_expand(struct rv__writer *w, const struct rv__node *node,
                        const struct rv__body *map, struct rv__str outcome, struct rv__str vector)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    struct rv__blob *description = NULL, *result;
    bool first = true;
    rv__writer_put(w, "{");
    rv__json_iter_init(&it, outcome);
    while (!rv__writer_failed(w) && rv__json_next(&it, &key, &value)) {
        bool described = rv__str_is(key, "\"description\"");
        if (described || rv__str_is(key, "\"descriptionValue\"")) {
            rv__blob_unref(description);
            description = described ? read_here(w, value) : read_reference(w, value);
            continue;
        }
        if (!first)
            rv__writer_put(w, ",");
        first = false;
        if (rv__str_is(key, "\"result\"")) {
            expand_result(w, node, map, value, vector);
        } else if (rv__str_is(key, "\"resultValue\"")) {
            rv__writer_put(w, "\"result\":");
            result = read_reference(w, value);
            rv__writer_put_json(w, result, "null");
            rv__blob_unref(result);
        } else if (rv__str_is(key, "\"state\"") || rv__str_is(key, "\"stateValue\"")) {
            expand_state(w, rv__str_is(key, "\"stateValue\""), value, description);
        } else {
            rv__writer_put_str(w, key);
            rv__writer_put(w, ":");
            rv__writer_put_str(w, value);
        }
    }
    rv__writer_put(w, "}");
    rv__blob_unref(description);
}

void rv__results_expand(struct rv__writer *w, const struct rv__node *node, const struct rv__body *a,
                        const struct rv__body *b, struct rv__str object, struct rv__str vector)
{
    const struct rv__flow_kind *kind = rv__flow_kind(node);
    struct rv__json_iter it;
    struct rv__str key, value;
    bool first = true;
    rv__writer_put(w, "{");
    rv__json_iter_init(&it, object);
    while (!rv__writer_failed(w) && rv__json_next(&it, &key, &value)) {
        if (rv__str_is(key, "\"refers\""))
            continue;
        if (!first)
            rv__writer_put(w, ",");
        first = false;
        if (kind->expand_item != NULL && rv__str_is(key, "\"itemValue\"")) {
            kind->expand_item(w, value);
            continue;
        }
        rv__writer_put_str(w, key);
        rv__writer_put(w, ":");
        if (rv__str_is(key, "\"results\""))
            expand_map(w, a, b, value, vector);
        else
            rv__writer_put_str(w, value);
    }
    rv__writer_put(w, "}");
}

/* Does the row have references? Without any, it ends with the results, so with two braces. */
static bool row_refers(struct rv__str row)
{
    static const struct rv__str mark = RV__STR(RV__ROW_REFERS);
    return row.len > mark.len && memcmp(row.at + row.len - mark.len, mark.at, mark.len) == 0;
}

/* The vector of what is nested includes the index of this iteration. */
void rv__row_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str vector,
                    struct rv__str row, bool refers)
{
    struct rv__str index;
    if ((!refers && !body_has_rows(&node->bodies[0])) || !rv__json_get(row, "index", &index)) {
        rv__writer_put_str(w, row);
        return;
    }
    struct rv__buf inner;
    rv__buf_init(&inner, SIZE_MAX / 8);
    rv__buf_str(&inner, vector);
    if (vector.len > 0)
        rv__buf_char(&inner, '.');
    rv__buf_str(&inner, index);
    if (rv__buf_err(&inner, NULL) < 0)
        rv__writer_fail(w, RV_ENOMEM);
    else
        rv__results_expand(w, node, &node->bodies[0], NULL, row, rv__buf_view(&inner));
    rv__buf_done(&inner);
}

/* A page of rows, without its brackets. */
static void expand_page(struct rv__writer *w, const struct rv__node *node, struct rv__str vector,
                        struct rv__str page, bool *first)
{
    struct rv__json_iter it = { .at = page.at, .end = page.at + page.len };
    struct rv__str row;
    while (!rv__writer_failed(w) && rv__json_next(&it, NULL, &row)) {
        if (!*first)
            rv__writer_put(w, ",");
        *first = false;
        rv__row_expand(w, node, vector, row, row_refers(row));
    }
}

/* Page by page, so that only one page is in memory. */
static void expand_rows(struct rv__writer *w, const struct rv__node *node, struct rv__str key)
{
    struct rv__buf rows;
    int64_t last = -1;
    bool first = true;
    int rc = 1;
    if (w->rows == NULL) {
        rv__writer_fail(w,
                        rv__fail(w->err, RV_ENOTFOUND, "the iterations of '%.*s' are in the store",
                                 RV__ARG(node->alias)));
        return;
    }
    rv__buf_init(&rows, SIZE_MAX / 8); /* bounded by a page */
    while (rc > 0 && !rv__writer_failed(w)) {
        rv__buf_reset(&rows);
        rc = w->rows->rows(w->rows, key, last, &rows, &last, w->err);
        if (rc >= 0 && rv__buf_err(&rows, w->err) < 0)
            rc = rows.rc;
        if (rc < 0)
            rv__writer_fail(w, rc);
        else
            expand_page(w, node, key_vector(key), rv__buf_view(&rows), &first);
    }
    rv__buf_done(&rows);
}

void rv__iterations_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str vector)
{
    struct rv__buf key;
    rv__buf_init(&key, SIZE_MAX / 8);
    rv__buf_fmt(&key, "%u/%.*s", node->id, RV__ARG(vector));
    rv__writer_put(w, "{\"iterations\":[");
    if (rv__buf_err(&key, NULL) < 0)
        rv__writer_fail(w, RV_ENOMEM);
    else
        expand_rows(w, node, rv__buf_view(&key));
    rv__writer_put(w, "]}");
    rv__buf_done(&key);
}

/* {"iterations":[ … ]} of a forEach, or of a loop that keeps all. */
void rv__iterations_write(struct rv__writer *w, const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    rv__writer_put(w, "{\"iterations\":[");
    if (inner->iterations > 0 && !w->as_row)
        expand_rows(w, entry->node, rv__blob_str(inner->key));
    rv__writer_put(w, "]}");
}

void rv__node_expand(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                     struct rv__str vector)
{
    if (rv__json_type(result) != RV__JSON_OBJECT || rv__is_step(node))
        rv__writer_put_str(w, result); /* of a step; or null, of a skipped or cancelled node */
    else
        rv__flow_kind(node)->expand_result(w, node, result, vector);
}
