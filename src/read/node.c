/* node.c: one node of a run with all that is known of it, and plans as people are shown them.
 *
 * What the tree of a run keeps for every node (trace.c) is small on purpose. Who looks at one node wants
 * its values and each of its attempts: these are read from the journal again, for that node alone. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "read/read.h"

enum {
    ATTEMPTS = 1000,    /* that are told of a node: the last ones */
    ERROR_BYTES = 8192, /* of the error of one attempt */
};

struct told_attempt {
    rv_attempt it;
    size_t error; /* where in `texts`; 0: none */
};

struct node_look {
    uint64_t actor;
    uint64_t frame; /* of a nested workflow: its sequence; 0: not begun */
    struct told_attempt *attempts;
    size_t count, cap, earlier;
    int64_t ready_ms; /* since when the next attempt could begin; 0: not known */
    struct rv__buf texts;
    size_t input, result, state;                     /* where in `texts`; 0: none, */
    uint64_t input_value, result_value, state_value; /* or values, read when the journal is */
    rv_error *err;
};

static size_t keep(struct node_look *look, struct rv__str text)
{
    if (look->texts.len == 0)
        rv__buf_char(&look->texts, '\0'); /* 0 is none */
    if (text.len == 0)
        return 0;
    size_t at = look->texts.len;
    rv__buf_str(&look->texts, text);
    rv__buf_char(&look->texts, '\0');
    return at;
}

/* ------------------------------------------------------------------------------- attempts --- */

static int attempt_began(struct node_look *look, const struct rv__read_fact *fact, rv_error *err)
{
    if (look->count == 2 * (size_t)ATTEMPTS) { /* the older half goes: amortised constant */
        memmove(look->attempts, look->attempts + ATTEMPTS, ATTEMPTS * sizeof *look->attempts);
        look->count -= ATTEMPTS;
        look->earlier += ATTEMPTS;
    }
    if (look->count == look->cap) {
        size_t cap = look->cap ? look->cap * 2 : 4;
        struct told_attempt *attempts = rv__realloc(look->attempts, cap * sizeof *attempts);
        if (attempts == NULL)
            return rv__nomem(err);
        look->attempts = attempts;
        look->cap = cap;
    }
    bool queued = look->ready_ms != 0 && fact->at_ms > look->ready_ms;
    look->attempts[look->count++] = (struct told_attempt){
        .it = { .attempt = fact->attempt,
                .outcome = "running",
                .started_at = fact->at_ms,
                .queue_ms = queued ? fact->at_ms - look->ready_ms : 0,
                .due_at = fact->due_ms },
    };
    look->ready_ms = 0;
    return RV_OK;
}

/* The one that runs, if one does. */
static struct told_attempt *running(struct node_look *look)
{
    struct told_attempt *last = look->count > 0 ? &look->attempts[look->count - 1] : NULL;
    return last != NULL && last->it.completed_at == 0 ? last : NULL;
}

static void attempt_ended(struct node_look *look, const struct rv__read_fact *fact,
                          const char *outcome)
{
    struct told_attempt *last = running(look);
    if (last == NULL)
        return;
    last->it.outcome = outcome;
    last->it.completed_at = fact->at_ms;
    last->it.due_at = fact->kind == FACT_STEP_RETRYING ? fact->due_ms : 0;
    last->error = fact->error.len <= ERROR_BYTES
                      ? keep(look, fact->error)
                      : keep(look, rv__str("{\"message\":\"(too long to be listed)\"}"));
}

static void step_ended(struct node_look *look, const struct rv__read_fact *fact,
                       const char *outcome)
{
    attempt_ended(look, fact, outcome);
    look->result_value = fact->result_value.number;
    if (fact->kind == FACT_STEP_COMPLETED && look->result_value == 0)
        look->result = keep(look, fact->result.len > 0 ? fact->result : rv__str("null"));
    look->state_value = fact->state_value.number;
    look->state = keep(look, fact->state);
}

/* The values that its facts refer to. Not while the store shows the journal. */
static int read_value(struct node_look *look, struct rv__store *store, const char *run_id,
                      uint64_t number, size_t *ret)
{
    struct rv__blob *text = NULL;
    if (number == 0)
        return RV_OK;
    int rc = rv__stored_value(store, rv__str(run_id), number, &text, look->err);
    if (rc < 0)
        return rc;
    *ret = keep(look, rv__blob_str(text));
    rv__blob_unref(text);
    return rv__buf_err(&look->texts, look->err);
}

static int read_values(struct node_look *look, struct rv__store *store, const char *run_id)
{
    int rc = read_value(look, store, run_id, look->input_value, &look->input);
    if (rc == RV_OK)
        rc = read_value(look, store, run_id, look->result_value, &look->result);
    return rc < 0 ? rc : read_value(look, store, run_id, look->state_value, &look->state);
}

static int take_fact(void *arg, const struct rv__read_fact *fact, rv_error *err)
{
    struct node_look *look = arg;
    if (fact->kind == FACT_BODY_STARTED && fact->owner == look->actor && look->frame == 0)
        look->frame = fact->actor;
    if (fact->kind == FACT_EVAL_COMPLETED && fact->eval == EVAL_INPUT &&
        (fact->actor == look->actor || (look->frame != 0 && fact->actor == look->frame))) {
        look->input = keep(look, fact->result);
        look->input_value = fact->result_value.number;
    }
    if (fact->actor != look->actor)
        return RV_OK;
    switch ((int)fact->kind) {
    case FACT_STEP_STARTED: return attempt_began(look, fact, err);
    case FACT_STEP_COMPLETED: step_ended(look, fact, "completed"); break;
    case FACT_STEP_SKIPPED: step_ended(look, fact, "skipped"); break;
    case FACT_STEP_FAILED: step_ended(look, fact, "failed"); break;
    case FACT_STEP_RETRYING: attempt_ended(look, fact, "failed"); break;
    case FACT_STEP_LOST:
        attempt_ended(look, fact, "lost");
        look->ready_ms = fact->at_ms;
        break;
    case FACT_TIMER_FIRED: look->ready_ms = fact->at_ms; break;
    case FACT_STEP_PARKED: {
        struct told_attempt *last = running(look);
        if (last != NULL)
            last->it.due_at = fact->due_ms;
        break;
    }
    default: break;
    }
    return rv__buf_err(&look->texts, err);
}

/* What the facts of the node do not say: how long its first attempt waited, and that it was cancelled
 * along with something else. */
static void settle(struct node_look *look, const rv_node *node)
{
    int64_t known_ms = 0;
    if (look->count > ATTEMPTS) {
        size_t extra = look->count - ATTEMPTS;
        memmove(look->attempts, look->attempts + extra, ATTEMPTS * sizeof *look->attempts);
        look->earlier += extra;
        look->count = ATTEMPTS;
    }
    for (size_t i = 1; i < look->count; i++)
        known_ms += look->attempts[i].it.queue_ms;
    if (look->count > 0 && look->earlier == 0 && node->queue_ms > known_ms)
        look->attempts[0].it.queue_ms = node->queue_ms - known_ms;
    struct told_attempt *last = running(look);
    if (last != NULL && node->completed_at != 0) {
        last->it.completed_at = node->completed_at;
        last->it.outcome = strcmp(node->status, "cancelled") == 0 ? "cancelled" : "failed";
        last->it.due_at = 0;
    }
}

/* The struct with its attempts and texts behind it, in one allocation. */
static int make_detail(const struct node_look *look, const rv_node *node, rv_node_detail **ret,
                       rv_error *err)
{
    const char *const copied[] = { node->path, node->error, node->description };
    size_t attempts_at = sizeof(rv_node_detail);
    size_t texts_at = attempts_at + look->count * sizeof(rv_attempt);
    size_t size = texts_at + look->texts.len + 1, lens[3];
    for (size_t i = 0; i < 3; i++)
        size += lens[i] = strlen(copied[i]) + 1;
    char *mem = rv__zalloc(1, size);
    if (mem == NULL)
        return rv__nomem(err);
    rv_node_detail *detail = (rv_node_detail *)(void *)mem;
    rv_attempt *attempts = (rv_attempt *)(void *)(mem + attempts_at);
    char *texts = mem + texts_at; /* begins with a NUL: "" is at 0 */
    memcpy(texts, rv__buf_view(&look->texts).at, look->texts.len);
    char *put = texts + look->texts.len + 1;
    detail->node = *node;
    const char **to[] = { &detail->node.path, &detail->node.error, &detail->node.description };
    for (size_t i = 0; i < 3; i++) {
        memcpy(put, copied[i], lens[i]);
        *to[i] = put;
        put += lens[i];
    }
    detail->node.alias = detail->node.path + (node->alias - node->path);
    detail->input = texts + look->input;
    detail->result = texts + look->result;
    detail->state = texts + look->state;
    for (size_t i = 0; i < look->count; i++) {
        attempts[i] = look->attempts[i].it;
        attempts[i].error = texts + look->attempts[i].error;
    }
    detail->attempt_count = look->count;
    detail->attempts = attempts;
    detail->earlier = look->earlier;
    *ret = detail;
    return RV_OK;
}

int rv__node_get(struct rv__reading *r, const char *run_id, const char *path, int64_t now_ms,
                 rv_node_detail **ret, rv_error *err)
{
    struct node_look look = { .actor = 0 };
    const struct rv__trace *trace = NULL;
    rv_node_list *found = NULL;
    uint32_t at = 0;
    if (ret == NULL || path == NULL || *path == '\0')
        return rv__fail(err, RV_EINVAL, "rv_node_get: no path, or nowhere to put the node");
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    rv__buf_init(&look.texts, SIZE_MAX / 8); /* bounded by the run's values, and ATTEMPTS errors */
    pthread_mutex_lock(&r->lock);
    int rc = rv__reading_trace(r, run_id, &trace, err);
    if (rc == RV_OK)
        rc = rv__node_find(trace, path, now_ms, &found, &at, err);
    if (rc == RV_OK && at != 0) {
        look.actor = trace->at[at].actor;
        const struct rv__journal_walk walk = {
            .plan = trace->plan, .until = UINT64_MAX, .fact = take_fact, .arg = &look
        };
        rc = rv__journal_walk(r->store, rv__str(run_id), &walk, err);
        if (rc >= 0)
            rc = read_values(&look, r->store, run_id);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc >= 0 && found != NULL) { /* which comes with RV_OK */
        settle(&look, &found->nodes[0]);
        rc = make_detail(&look, &found->nodes[0], ret, err);
    }
    rv_node_list_free(found);
    rv__buf_done(&look.texts);
    rv__free(look.attempts);
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
    rv__buf_init(&json, 2 * (size_t)RV__PLAN_MAX_BYTES); /* its name is in it once more */
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
