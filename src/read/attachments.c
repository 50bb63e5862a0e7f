/* attachments.c: rv_attachments: the attachments of the attempts of a run's states.
 *
 * Attempts that have ended have rows in the store (flow/attachment.c), numbered from 1 in the order in which they ended;
 * the others are in the journal and follow them in a list. So a page of all of them is read by its numbers, however long
 * the list is. The store has no index by name: for some of them (an id, a state, a status) all rows of the run are read. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/opts.h"
#include "read/read.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MOST = 1000,
    LIMIT_RESULTS = 100,     /* the most with results: each may be long */
    DESCRIPTION_BYTES = 200, /* of a description, in a list */
    FIRST_STEP = 64,         /* towards the last row, then twice as far each time */
};

struct found {
    rv_attachment it;
    int64_t number; /* of its actor: the order of starts */
    int64_t ended;  /* of its row: the order of ends; INT64_MAX: it has not ended */
    int64_t stage;  /* number of its stage's actor */
    struct rv__str row;
};

struct anew {
    int64_t stage, number;
};

/* No text is ever NULL. */
static const rv_attachment blank = { .id = "",
                                     .stage = "",
                                     .state = "",
                                     .agent = "",
                                     .path = "",
                                     .status = "",
                                     .description = "",
                                     .result = "",
                                     .error = "" };

struct gather {
    const rv_attachment_query *query;
    int64_t now_ms;
    struct rv__arena arena, row; /* for the list; for the current row */
    struct found *at;
    size_t count, cap;
    struct anew *anew;
    size_t anew_count, anew_cap;
    rv_error *err;
};

void rv_attachment_query_init(rv_attachment_query *query)
{
    if (query != NULL)
        *query = (rv_attachment_query){ .size = sizeof *query };
}

static int grow(void **at, size_t *cap, size_t count, size_t size, rv_error *err)
{
    if (count < *cap)
        return RV_OK;
    size_t more = *cap > 0 ? *cap * 2 : 32;
    void *grown = rv__realloc(*at, more * size);
    if (grown == NULL)
        return rv__nomem(err);
    *at = grown;
    *cap = more;
    return RV_OK;
}

/* ---------------------------------------------------------------------------------- rows --- */

static int bad_row(struct gather *g)
{
    return rv__fail(g->err, RV_ESTORE, "an attachment in the store is damaged");
}

static int copy_text(struct gather *g, struct rv__str text, const char **ret)
{
    struct rv__str copy;
    if (rv__str_copy(&g->arena, text, &copy) < 0)
        return rv__nomem(g->err);
    *ret = copy.at;
    return RV_OK;
}

static int take_text(struct gather *g, struct rv__str row, const char *key, const char **ret)
{
    struct rv__str json, text;
    if (!rv__json_get(row, key, &json))
        return bad_row(g);
    int rc = rv__json_string(json, &g->row, &text);
    if (rc == RV_OK)
        rc = rv__str_copy(&g->row, text, &text); /* NUL-terminated */
    if (rc == RV_EINVAL)
        return bad_row(g);
    *ret = text.at;
    return rc < 0 ? rv__nomem(g->err) : RV_OK;
}

static bool take_int(struct rv__str row, const char *key, int64_t *ret)
{
    struct rv__str json;
    return rv__json_get(row, key, &json) && rv__json_int(json, ret) == RV_OK;
}

static bool is_wanted(const struct gather *g, const rv_attachment *a)
{
    const rv_attachment_query *q = g->query;
    bool ended = a->completed_at != 0;
    return (q->id == NULL || strcmp(q->id, a->id) == 0) &&
           (q->stage == NULL || strcmp(q->stage, a->stage) == 0) &&
           (q->state == NULL || strcmp(q->state, a->state) == 0) &&
           (q->status == NULL || strcmp(q->status, a->status) == 0) && !(q->incomplete && ended) &&
           !(q->last > 0 && !ended) &&
           !(q->older_than_ms > 0 && a->started_at > g->now_ms - q->older_than_ms);
}

static int keep(struct gather *g, const struct found *found)
{
    void *at = g->at;
    int rc = grow(&at, &g->cap, g->count, sizeof *g->at, g->err);
    g->at = at;
    if (rc == RV_OK)
        g->at[g->count++] = *found;
    return rc;
}

static int take_row(void *arg, int64_t index, struct rv__str json)
{
    struct gather *g = arg;
    struct found f = { .ended = index, .it = blank };
    int64_t attempt;
    if (rv__json_check_stored(json, RV__JSON_MAX_DEPTH, &json, NULL) < 0 ||
        rv__json_type(json) != RV__JSON_OBJECT || !take_int(json, "attempt", &attempt) ||
        !take_int(json, "startedAt", &f.it.started_at) ||
        !take_int(json, "completedAt", &f.it.completed_at) || !take_int(json, "o", &f.stage) ||
        !take_int(json, "a", &f.number))
        return bad_row(g);
    f.it.attempt = (int)attempt;
    const struct {
        const char *key, **ret;
    } texts[] = { { "id", &f.it.id },       { "stage", &f.it.stage }, { "state", &f.it.state },
                  { "agent", &f.it.agent }, { "path", &f.it.path },   { "status", &f.it.status } };
    size_t count = sizeof texts / sizeof *texts;
    int rc = RV_OK;
    rv__arena_reset(&g->row);
    for (size_t i = 0; rc == RV_OK && i < count; i++)
        rc = take_text(g, json, texts[i].key, texts[i].ret);
    if (rc < 0 || !is_wanted(g, &f.it))
        return rc;
    for (size_t i = 0; rc == RV_OK && i < count; i++)
        rc = copy_text(g, rv__str(*texts[i].ret), texts[i].ret);
    if (rc == RV_OK && rv__str_copy(&g->arena, json, &f.row) < 0)
        rc = rv__nomem(g->err);
    return rc < 0 ? rc : keep(g, &f);
}

static int take_anew(void *arg, int64_t index, struct rv__str json)
{
    struct gather *g = arg;
    int64_t stage, number;
    void *at = g->anew;
    (void)index; /* it is only unique */
    if (rv__json_check_stored(json, RV__JSON_MAX_DEPTH, &json, NULL) < 0 ||
        rv__json_type(json) != RV__JSON_OBJECT || !take_int(json, "o", &stage) ||
        !take_int(json, "n", &number))
        return bad_row(g);
    int rc = grow(&at, &g->anew_cap, g->anew_count, sizeof *g->anew, g->err);
    g->anew = at;
    if (rc == RV_OK)
        g->anew[g->anew_count++] = (struct anew){ stage, number };
    return rc;
}

/* ------------------------------------------------------------------------------- in flight --- */

/* Add an attempt that has not ended, from the trace. */
static int take_live(struct gather *g, const struct rv__trace *t, uint32_t i)
{
    const struct rv__traced *a = &t->at[i];
    const struct rv__node *node = t->plan->nodes[a->node];
    const struct rv__body *body = &node->bodies[a->iteration];
    struct rv__str agent = node->stage.states[a->iteration].agent_id;
    int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__buf path;
    bool runs = a->first != 0 && t->at[a->first].status != STATUS_PENDING;
    struct found f = {
        .number = (int64_t)a->actor,
        .ended = INT64_MAX,
        .stage = (int64_t)t->at[a->parent].actor,
        .it = blank,
    };
    f.it.attempt = a->attempt - 1;
    f.it.status = rv__attachment_status_name(runs ? ATTACHMENT_RUNNING : ATTACHMENT_INIT);
    f.it.started_at = a->started_ms;
    (void)rv__trace_vector(t, i, vector);
    rv__buf_init(&path, SIZE_MAX / 8); /* bounded by the plan's depth */
    rv__body_path(body, vector, &path);
    int rc = rv__buf_err(&path, g->err);
    if (rc == RV_OK)
        rc = copy_text(g, rv__str(t->texts.text + a->attachment), &f.it.id);
    if (rc == RV_OK)
        rc = copy_text(g, node->alias, &f.it.stage);
    if (rc == RV_OK)
        rc = copy_text(g, body->alias, &f.it.state);
    if (rc == RV_OK)
        rc = copy_text(g, rv__str_none(agent) ? body->alias : agent, &f.it.agent);
    if (rc == RV_OK)
        rc = copy_text(g, rv__buf_view(&path), &f.it.path);
    rv__buf_done(&path);
    if (rc < 0)
        return rc;
    return is_wanted(g, &f.it) ? keep(g, &f) : RV_OK;
}

static int take_all_live(struct gather *g, const struct rv__trace *t)
{
    int rc = RV_OK;
    for (uint32_t i = 1; rc == RV_OK && i < t->count; i++)
        if (t->at[i].frame && t->at[i].live && t->at[i].attachment != 0 &&
            t->at[i].iteration < t->plan->nodes[t->at[i].node]->body_count)
            rc = take_live(g, t, i);
    return rc;
}

/* ------------------------------------------------------------------------------- choosing --- */

static int by_stage(const void *a, const void *b)
{
    const struct anew *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_end(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->ended != y->ended)
        return x->ended < y->ended ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* By state, newest first. */
static int by_state(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = strcmp(x->it.path, y->it.path);
    return order != 0 ? order : (x->number < y->number) - (x->number > y->number);
}

/* By number, those with a row first. */
static int by_number(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->row.len == 0) - (y->row.len == 0);
}

/* An attempt that ended between the two readings is there twice: keep its row. */
static void drop_duplicates(struct gather *g)
{
    size_t kept = 0;
    if (g->count > 0)
        qsort(g->at, g->count, sizeof *g->at, by_number);
    for (size_t i = 0; i < g->count; i++)
        if (kept == 0 || g->at[i].number != g->at[kept - 1].number)
            g->at[kept++] = g->at[i];
    g->count = kept;
}

static void mark_superseded(struct gather *g)
{
    if (g->anew_count > 0)
        qsort(g->anew, g->anew_count, sizeof *g->anew, by_stage);
    for (size_t i = 0; i < g->count; i++) {
        struct anew want = { g->at[i].stage, g->at[i].number + 1 };
        size_t from = 0, to = g->anew_count; /* the first at or after it */
        while (from < to) {
            size_t mid = from + (to - from) / 2;
            if (by_stage(&g->anew[mid], &want) < 0)
                from = mid + 1;
            else
                to = mid;
        }
        g->at[i].it.superseded = from < g->anew_count && g->anew[from].stage == want.stage;
    }
}

static void choose(struct gather *g)
{
    const rv_attachment_query *q = g->query;
    size_t kept = 0;
    for (size_t i = 0; i < g->count; i++)
        if (!g->at[i].it.superseded || (!q->latest && q->last == 0))
            g->at[kept++] = g->at[i];
    g->count = kept;
    if (q->latest && g->count > 0) {
        qsort(g->at, g->count, sizeof *g->at, by_state);
        kept = 1;
        for (size_t i = 1; i < g->count; i++)
            if (strcmp(g->at[i].it.path, g->at[kept - 1].it.path) != 0)
                g->at[kept++] = g->at[i];
        g->count = kept;
    }
    if (g->count > 0)
        qsort(g->at, g->count, sizeof *g->at, by_end);
    if (q->last > 0 && g->count > q->last) {
        memmove(g->at, g->at + (g->count - q->last), q->last * sizeof *g->at);
        g->count = q->last;
    }
}

/* -------------------------------------------------------------------------------- filling --- */

/* A list has the beginning; with results it is whole. */
static int take_description(struct gather *g, struct rv__str json, const char **ret)
{
    struct rv__str text = json;
    if (rv__json_type(json) == RV__JSON_NULL)
        return RV_OK;
    if (rv__json_type(json) == RV__JSON_STRING && rv__json_string(json, &g->arena, &text) < 0)
        return rv__nomem(g->err);
    return copy_text(g, g->query->results ? text : rv__str_begin(text, DESCRIPTION_BYTES), ret);
}

static int fill(struct gather *g, const struct rv__plan *plan, struct rv__row_source *rows,
                struct found *f)
{
    struct rv__buf text;
    struct rv__str error;
    if (f->row.len == 0)
        return RV_OK;
    rv__buf_init(&text, SIZE_MAX / 8); /* bounded by the result */
    int rc = rv__attachment_description(plan, f->row, rows, &text, g->err);
    if (rc == RV_OK)
        rc = take_description(g, rv__buf_view(&text), &f->it.description);
    rv__buf_reset(&text);
    if (rc == RV_OK && g->query->results) {
        rc = rv__attachment_result(plan, f->row, rows, &text, g->err);
        if (rc == RV_OK)
            rc = copy_text(g, rv__buf_view(&text), &f->it.result);
        if (rc == RV_OK && rv__json_get(f->row, "error", &error))
            rc = copy_text(g, error, &f->it.error);
    }
    rv__buf_done(&text);
    return rc;
}

/* The list with its attachments and their texts behind it, in one allocation. */
static int make_list(const struct gather *g, size_t total, rv_attachment_list **ret, rv_error *err)
{
    size_t count = g->count, items_at = sizeof(rv_attachment_list),
           put = items_at + count * sizeof(rv_attachment);
    size_t size = put;
    for (size_t i = 0; i < count; i++) {
        const rv_attachment *a = &g->at[i].it;
        const char *const texts[] = { a->id,     a->stage,       a->state,  a->agent, a->path,
                                      a->status, a->description, a->result, a->error };
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            size += strlen(texts[k]) + 1;
    }
    char *mem = rv__zalloc(1, size);
    if (mem == NULL)
        return rv__nomem(err);
    rv_attachment_list *list = (rv_attachment_list *)(void *)mem;
    rv_attachment *items = (rv_attachment *)(void *)(mem + items_at);
    for (size_t i = 0; i < count; i++) {
        rv_attachment *a = &items[i];
        *a = g->at[i].it;
        const char **const texts[] = { &a->id,     &a->stage,       &a->state,  &a->agent, &a->path,
                                       &a->status, &a->description, &a->result, &a->error };
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            size_t len = strlen(*texts[k]) + 1;
            memcpy(mem + put, *texts[k], len);
            *texts[k] = mem + put;
            put += len;
        }
    }
    *list = (rv_attachment_list){ .count = count, .attachments = items, .total = total };
    *ret = list;
    return RV_OK;
}

/* ---------------------------------------------------------------------------------- asking --- */

static int check_query(const char *run_id, const rv_attachment_query *q, void *ret, rv_error *err)
{
    static const char *const statuses[] = { "init", "running", "finished", "errored", "skipped" };
    if (ret == NULL || q->size == 0)
        return rv__fail(err, RV_EINVAL, "rv_attachments: %s",
                        ret == NULL ? "nowhere to put them"
                                    : "make the query with RV_ATTACHMENT_QUERY");
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    for (size_t i = 0; q->status != NULL; i++) {
        if (i == sizeof statuses / sizeof *statuses)
            return rv__fail(err, RV_EINVAL,
                            "'%.40s' is not a status of an attachment: it must be one of init, "
                            "running, finished, errored, skipped",
                            q->status);
        if (strcmp(q->status, statuses[i]) == 0)
            break;
    }
    return RV_OK;
}

static int stop_at_first(void *arg, int64_t index, struct rv__str json)
{
    (void)json;
    *(int64_t *)arg = index;
    return RV_OK;
}

/* 1: there is a row with this number. */
static int has_row(struct rv__store *store, struct rv__str id, int64_t number, rv_error *err)
{
    int64_t found = 0;
    int rc = rv__store_results(store, id, rv__str(RV__ATTACHMENT_KEY), number, 1, stop_at_first,
                               &found, err);
    return rc < 0 ? rc : found >= number;
}

/* The number of the last row; at least *last. */
static int find_last(struct rv__store *store, struct rv__str id, int64_t *last, rv_error *err)
{
    int64_t step = FIRST_STEP;
    int there;
    while ((there = has_row(store, id, *last + step, err)) == 1) {
        *last += step;
        step *= 2;
    }
    for (step /= 2; there >= 0 && step > 0; step /= 2) {
        there = has_row(store, id, *last + step, err);
        *last += there == 1 ? step : 0;
    }
    return there < 0 ? there : RV_OK;
}

static int read_rows(struct gather *g, struct rv__store *store, struct rv__str id, int64_t from,
                     size_t count)
{
    return count == 0 ? RV_OK
                      : rv__store_results(store, id, rv__str(RV__ATTACHMENT_KEY), from, count,
                                          take_row, g, g->err);
}

/* What belongs to every list: attempts in flight, and stages that began anew. */
static int gather_live(struct gather *g, struct rv__reading *r, const char *run_id,
                       const struct rv__read_run *run)
{
    const struct rv__trace *trace = NULL;
    int rc = run->terminal ? RV_OK : rv__reading_trace(r, run_id, &trace, g->err);
    if (rc == RV_OK && trace != NULL)
        rc = take_all_live(g, trace);
    if (rc == RV_OK)
        rc = rv__store_results(r->store, rv__str(run_id), rv__str(RV__ANEW_KEY), INT64_MIN,
                               SIZE_MAX, take_anew, g, g->err);
    return rc;
}

struct window {
    size_t offset, limit; /* of the list */
    size_t total;
};

/* All rows, those that were asked for, and of them the window. Attempts in flight first: one that ends meanwhile then
 * also has a row, which is preferred. */
static int gather_some(struct gather *g, struct rv__reading *r, const char *run_id,
                       const struct rv__read_run *run, struct window *w)
{
    int rc = gather_live(g, r, run_id, run);
    if (rc == RV_OK)
        rc = read_rows(g, r->store, rv__str(run_id), 1, SIZE_MAX);
    if (rc < 0)
        return rc;
    drop_duplicates(g);
    mark_superseded(g);
    choose(g);
    w->total = g->count;
    size_t from = w->offset < g->count ? w->offset : g->count;
    g->count = g->count - from < w->limit ? g->count - from : w->limit;
    if (g->count > 0)
        memmove(g->at, g->at + from, g->count * sizeof *g->at);
    return RV_OK;
}

/* Only attempts that have no row yet. */
static void keep_live(struct gather *g)
{
    size_t kept = 0;
    drop_duplicates(g);
    for (size_t i = 0; i < g->count; i++)
        if (g->at[i].row.len == 0)
            g->at[kept++] = g->at[i];
    g->count = kept;
}

/* The window of a list of all, or of the last ones; 1: it was read. 0: some of its rows do not count. */
static int gather_page(struct gather *g, struct rv__reading *r, const char *run_id,
                       const struct rv__read_run *run, struct window *w)
{
    struct rv__str id = rv__str(run_id);
    int64_t before = 0, last;
    int rc = find_last(r->store, id, &before, g->err);
    if (rc == RV_OK)
        rc = gather_live(g, r, run_id, run);
    last = before;
    if (rc == RV_OK)
        rc = find_last(r->store, id, &last, g->err);
    if (rc == RV_OK) /* those that ended meanwhile */
        rc = read_rows(g, r->store, id, before + 1, (size_t)(last - before));
    if (rc < 0)
        return rc;
    keep_live(g);
    if (g->query->last > 0 && g->anew_count > 0) {
        g->count = g->anew_count = 0;
        return 0;
    }
    int64_t first = g->query->last > 0 && (uint64_t)last > g->query->last
                        ? last - (int64_t)g->query->last
                        : 0;
    size_t live = g->count, rows = (size_t)(last - first);
    w->total = rows + live;
    size_t from = w->offset < w->total ? w->offset : w->total;
    size_t count = w->total - from < w->limit ? w->total - from : w->limit;
    size_t of_rows = from >= rows ? 0 : rows - from < count ? rows - from : count;
    rc = read_rows(g, r->store, id, first + (int64_t)from + 1, of_rows);
    if (rc < 0)
        return rc;
    if (g->count > 0)
        qsort(g->at, g->count, sizeof *g->at, by_end);
    size_t skip = from > rows ? from - rows : 0; /* of those in flight */
    if (skip + count > g->count) {               /* the run was deleted meanwhile */
        skip = skip < g->count ? skip : g->count;
        count = g->count - skip;
    }
    g->count = count;
    if (skip > 0 && count > 0)
        memmove(g->at, g->at + skip, count * sizeof *g->at);
    mark_superseded(g);
    return 1;
}

static int gather(struct gather *g, struct rv__reading *r, const char *run_id,
                  struct rv__read_run *run, struct window *w)
{
    const rv_attachment_query *q = g->query;
    bool all = q->id == NULL && q->stage == NULL && q->state == NULL && q->status == NULL &&
               !q->incomplete && !q->latest && q->older_than_ms <= 0;
    pthread_mutex_lock(&r->lock);
    int rc = rv__read_run(&r->plans, r->store, rv__str(run_id), run, g->err);
    int read = rc == RV_OK && all ? gather_page(g, r, run_id, run, w) : 0;
    if (read < 0)
        rc = read;
    if (rc == RV_OK && read == 0)
        rc = gather_some(g, r, run_id, run, w);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int rv__attachments(struct rv__reading *r, const char *run_id, const rv_attachment_query *query,
                    int64_t now_ms, struct rv__row_source *rows, rv_attachment_list **ret,
                    rv_error *err)
{
    rv_attachment_query known = { .size = sizeof known };
    struct rv__read_run run = { .plan = NULL };
    if (query != NULL)
        rv__opts_take(&known, sizeof known, query, query->size);
    int rc = check_query(run_id, &known, ret, err);
    if (rc < 0)
        return rc;
    size_t most = known.results ? LIMIT_RESULTS : LIMIT_MOST;
    struct gather g = { .query = &known, .now_ms = now_ms, .err = err };
    struct window w = { .offset = known.offset,
                        .limit = known.limit == 0     ? LIMIT_DEFAULT
                                 : known.limit < most ? known.limit
                                                      : most };
    rv__arena_init(&g.arena, SIZE_MAX); /* bounded by what the run has */
    rv__arena_init(&g.row, SIZE_MAX);   /* the same */
    rc = gather(&g, r, run_id, &run, &w);
    for (size_t i = 0; rc == RV_OK && i < g.count; i++)
        rc = fill(&g, run.plan->plan, rows, &g.at[i]);
    if (rc == RV_OK)
        rc = make_list(&g, w.total, ret, err);
    rv__plan_cache_put(&r->plans, run.plan);
    rv__arena_done(&g.arena);
    rv__arena_done(&g.row);
    rv__free(g.at);
    rv__free(g.anew);
    return rc;
}

void rv_attachment_list_free(rv_attachment_list *list)
{
    rv__free(list);
}
