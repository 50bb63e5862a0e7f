/* node.c: everything known about one node of a run; and plans as JSON for people.
 *
 * The trace of a run (trace.c) keeps little for each node. For one node in full, with its values and attempts, the
 * journal is folded again (detail.h). */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "read/detail.h"

/* Read a stored value that its facts refer to. Not during a read of the journal. */
static int read_value(struct rv__detail *detail, struct rv__store *store, const char *run_id,
                      uint64_t number, size_t *ret, rv_error *err)
{
    struct rv__blob *text = NULL;
    if (number == 0)
        return RV_OK;
    int rc = rv__stored_value(store, rv__str(run_id), number, &text, err);
    if (rc < 0)
        return rc;
    *ret = rv__detail_keep(detail, rv__blob_str(text));
    rv__blob_unref(text);
    return rv__buf_err(&detail->texts, err);
}

static int read_values(struct rv__detail *detail, struct rv__store *store, const char *run_id,
                       rv_error *err)
{
    int rc = read_value(detail, store, run_id, detail->input_value, &detail->input, err);
    if (rc == RV_OK)
        rc = read_value(detail, store, run_id, detail->result_value, &detail->result, err);
    if (rc == RV_OK)
        rc = read_value(detail, store, run_id, detail->state_value, &detail->state, err);
    for (size_t i = 0; rc == RV_OK && i < detail->given_count; i++) {
        const struct rv__given_value *given = &detail->given[i];
        struct rv__blob *text = NULL;
        if (given->attempt < detail->earlier)
            continue; /* not shown */
        rc = rv__stored_value(store, rv__str(run_id), given->number, &text, err);
        if (rc == RV_OK)
            rv__detail_add_given(detail, given->attempt, rv__blob_str(text));
        rv__blob_unref(text);
    }
    return rc < 0 ? rc : rv__detail_err(detail, err);
}

/* The struct, its attempts and texts in one allocation. */
static int make_detail(const struct rv__detail *from, const rv_node *node, rv_node_detail **ret,
                       rv_error *err)
{
    const char *const copied[] = { node->path, node->error, node->description, node->item,
                                   node->label };
    size_t attempts_at = sizeof(rv_node_detail);
    size_t texts_at = attempts_at + from->count * sizeof(rv_attempt);
    size_t size = texts_at + from->texts.len + 1, lens[5];
    for (size_t i = 0; i < 5; i++)
        size += lens[i] = strlen(copied[i]) + 1;
    char *mem = rv__zalloc(1, size);
    if (mem == NULL)
        return rv__nomem(err);
    rv_node_detail *detail = (rv_node_detail *)(void *)mem;
    rv_attempt *attempts = (rv_attempt *)(void *)(mem + attempts_at);
    char *texts = mem + texts_at; /* begins with a NUL: "" is at 0 */
    memcpy(texts, rv__buf_view(&from->texts).at, from->texts.len);
    char *put = texts + from->texts.len + 1;
    detail->node = *node;
    const char **to[] = { &detail->node.path, &detail->node.error, &detail->node.description,
                          &detail->node.item, &detail->node.label };
    for (size_t i = 0; i < 5; i++) {
        memcpy(put, copied[i], lens[i]);
        *to[i] = put;
        put += lens[i];
    }
    detail->node.alias = detail->node.path + (node->alias - node->path);
    detail->input = texts + from->input;
    detail->result = texts + from->result;
    detail->state = texts + from->state;
    for (size_t i = 0; i < from->count; i++) {
        attempts[i] = from->attempts[i].it;
        attempts[i].error = texts + from->attempts[i].error;
        attempts[i].input = texts + from->attempts[i].given;
    }
    detail->attempt_count = from->count;
    detail->attempts = attempts;
    detail->earlier = from->earlier;
    *ret = detail;
    return RV_OK;
}

/* Fold the journal again for this instance; of the others only active ones are kept. */
static int fill(struct rv__detail *detail, const struct rv__plan *plan, struct rv__store *store,
                const char *run_id, rv_error *err)
{
    struct rv__trace trace;
    rv__trace_init(&trace, plan, false);
    trace.detail = detail;
    int rc = rv__trace_read(&trace, store, rv__str(run_id), UINT64_MAX, err);
    rv__trace_done(&trace);
    rv__detail_cut(detail);
    return rc < 0 ? rc : read_values(detail, store, run_id, err);
}

int rv__node_get(struct rv__reading *r, const char *run_id, const char *path, int64_t now_ms,
                 rv_node_detail **ret, rv_error *err)
{
    struct rv__detail detail;
    const struct rv__trace *trace = NULL;
    rv_node_list *found = NULL;
    uint32_t at = 0;
    if (ret == NULL || path == NULL || *path == '\0')
        return rv__fail(err, RV_EINVAL, "rv_node_get: no path, or nowhere to put the node");
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    rv__detail_init(&detail, 0);
    pthread_mutex_lock(&r->lock);
    int rc = rv__reading_trace(r, run_id, &trace, err);
    if (rc == RV_OK)
        rc = rv__node_find(trace, r->store, run_id, path, now_ms, &found, &at, err);
    if (rc == RV_OK && at != 0) {
        detail.actor = trace->at[at].actor;
        rc = fill(&detail, trace->plan, r->store, run_id, err);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc >= 0 && found != NULL) /* `found` is set only with RV_OK */
        rc = make_detail(&detail, &found->nodes[0], ret, err);
    rv_node_list_free(found);
    rv__detail_done(&detail);
    return rc;
}

void rv_node_detail_free(rv_node_detail *detail)
{
    rv__free(detail);
}

/* ---------------------------------------------------------------------------------- plans --- */

int rv__plan_text(const struct rv__plan *plan, char **ret, rv_error *err)
{
    struct rv__buf json;
    rv__buf_init(&json, 2 * (size_t)RV__PLAN_MAX_BYTES); /* the name is in it twice */
    int rc = rv__plan_show(plan, &json, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&json);
    rv__buf_done(&json);
    return rc;
}

int rv__plan_of_run(struct rv__reading *r, const char *run_id, char **ret, rv_error *err)
{
    struct rv__read_run run = { .plan = NULL };
    if (ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_plan_of_run: nowhere to put the plan");
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    pthread_mutex_lock(&r->lock);
    int rc = rv__read_run(&r->plans, r->store, rv__str(run_id), &run, err);
    pthread_mutex_unlock(&r->lock);
    if (rc == RV_OK)
        rc = rv__plan_text(run.plan->plan, ret, err);
    rv__plan_cache_put(&r->plans, run.plan);
    return rc;
}
