/* run.c: runs in memory: the table, how they come from the store and leave it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/context.h"
#include "engine/engine.h"
#include "engine/kit.h"

enum {
    RECOVER_PAGE = 256,
    WAKE_PAGE = 256,
    WALK_A_TURN = 512, /* actors: less than a turn costs anyway */
};

static struct rv__run **bucket(rv_engine *e, const char *id)
{
    return &e->runs[rv__str_hash(RV__HASH_START, rv__str(id)) % RUN_BUCKETS];
}

struct rv__run *rv__run_find(rv_engine *e, const char *id)
{
    struct rv__run *run = *bucket(e, id);
    while (run != NULL && !rv__str_is(rv__str(id), run->id))
        run = run->next;
    return run;
}

static struct rv__run *run_make(rv_engine *e, const char *id, struct rv__plan_ref *plan)
{
    struct rv__run *run = rv__zalloc(1, sizeof *run);
    if (run == NULL)
        return NULL;
    run->engine = e;
    snprintf(run->id, sizeof run->id, "%s", id); /* checked by the caller */
    atomic_init(&run->refs, 1);
    run->plan = plan;
    if (plan != NULL)
        atomic_fetch_add(&plan->refs, 1);
    rv__facts_init(&run->facts);
    rv__buf_init(&run->logs, SIZE_MAX / 8);
    rv__buf_init(&run->snapshot, SIZE_MAX / 8);
    run->row_status = RUN_STATUSES; /* none written */
    return run;
}

int rv__run_new(rv_engine *e, const char *id, struct rv__plan_ref *plan, struct rv__run **ret)
{
    struct rv__run *run = run_make(e, id, plan);
    if (run == NULL)
        return RV_ENOMEM;
    struct rv__run **at = bucket(e, id);
    run->next = *at;
    *at = run;
    e->run_count++;
    *ret = run;
    return RV_OK;
}

void rv__run_ref(struct rv__run *run)
{
    atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
}

void rv__run_unref(struct rv__run *run)
{
    if (run == NULL || atomic_fetch_sub_explicit(&run->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(run->cell == NULL && run->work == NULL);
    rv__facts_done(&run->facts);
    rv__buf_done(&run->logs);
    rv__buf_done(&run->snapshot);
    rv__blob_unref(run->input);
    rv__plan_ref_unref(run->plan);
    rv__free(run);
}

void rv__run_drop(struct rv__run *run)
{
    rv_engine *e = run->engine;
    struct rv__run **at = bucket(e, run->id);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    e->run_count--;
    rv__run_unqueue(run);
    rv__owed_clear_all(run);
    rv__cell_free(run->cell);
    run->cell = NULL;
    rv__run_unref(run);
}

void rv__run_touch(struct rv__run *run)
{
    rv_engine *e = run->engine;
    if (run->locked)
        run->touched = true;
    if (run->dirty || run->locked)
        return;
    run->dirty = true;
    run->next_dirty = NULL;
    *e->last_dirty = run;
    e->last_dirty = &run->next_dirty;
}

/* A reader has no functions, and cannot know who has. */
static enum rv__lane lane_of(void *arg, const struct rv__node *node, int eval)
{
    struct rv__run *run = arg;
    rv_engine *e = run->engine;
    if (e->read_only || (e->kit != NULL && eval < 0 && rv__kit_instead(e, node->alias) != NULL))
        return LANE_FUNCTION;
    rv__plan_ref_resolve(e, run->plan);
    const struct rv__function *function = rv__plan_ref_fn(run->plan, node, eval);
    if (function == NULL || (function->fn == NULL && function->module == NULL))
        return LANE_NOBODY;
    return function->module != NULL ? LANE_HOST : LANE_FUNCTION;
}

/* Something was registered: what waits may be somebody's now, or nobody's. */
void rv__runs_relane(rv_engine *e)
{
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            if (run->cell == NULL)
                continue;
            (void)rv__cell_lanes(run->cell, lane_of, run); /* it takes no memory */
            rv__run_touch(run);
        }
}

static struct rv__cell_opts cell_opts(const struct rv__run *run)
{
    return (struct rv__cell_opts){ .plan = run->plan->plan,
                                   .max_crashes = run->engine->max_crashes,
                                   .lane = lane_of,
                                   .arg = (void *)run };
}

int rv__run_start(struct rv__run *run, struct rv__blob *input, rv_error *err)
{
    rv_engine *e = run->engine;
    int64_t now_ms = e->now_ms;
    struct rv__cell_opts opts = cell_opts(run);
    int rc = rv__cell_start(&opts, input, now_ms, &run->facts, &run->cell, err);
    if (rc < 0)
        return rc;
    run->input = rv__blob_ref(input);
    run->is_new = true;
    run->created_ms = run->started_ms = now_ms;
    rv__run_touch(run);
    return RV_OK;
}

/* Out of memory is met by trying again: nothing was lost, and somebody may give some back. */
int rv__run_send(struct rv__run *run, struct rv__msg *msg, rv_error *err)
{
    assert(!run->locked);
    msg->now_ms = run->engine->now_ms;
    int rc = rv__flow_send(run->cell, msg, &run->facts, err);
    rv__run_touch(run);
    return rc;
}

bool rv__run_idle(const struct rv__run *run)
{
    return run->work == NULL && rv__cell_idle(run->cell);
}

bool rv__run_may_walk(struct rv__run *run)
{
    size_t actors = rv__cell_actors(run->cell);
    run->walk_credit += WALK_A_TURN;
    if (run->walk_credit < actors)
        return false;
    run->walk_credit = 0;
    return true;
}

int64_t rv__run_wake_ms(const struct rv__run *run)
{
    return rv__cell_wake_ms(run->cell);
}

/* ------------------------------------------------------------------------------- loading --- */

struct loading {
    struct rv__run *run;
    struct rv__cell *cell;
    struct rv__cell_opts opts;
    uint64_t seq;
    char version[65];
    bool damaged; /* what the store has of it cannot be read */
    rv_error *err;
};

static enum rv__run_status status_by_name(struct rv__str name)
{
    for (int i = 0; i < RUN_STATUSES; i++)
        if (rv__str_is(name, rv__run_status_name((enum rv__run_status)i)))
            return (enum rv__run_status)i;
    return RUN_STATUSES;
}

static int take_row(void *arg, const struct rv__store_run *row)
{
    struct loading *l = arg;
    struct rv__run *run = l->run;
    if (row->version.len >= sizeof l->version)
        return RV_ESTORE;
    memcpy(l->version, row->version.at, row->version.len);
    l->version[row->version.len] = '\0';
    run->row_status = status_by_name(row->status);
    run->row_active = row->active;
    run->row_wake_ms = row->wake_at_ms;
    run->created_ms = row->created_ms;
    run->started_ms = row->started_ms;
    run->completed_ms = row->completed_ms;
    snprintf(run->input_key, sizeof run->input_key, "%.*s", RV__ARG(row->input_key));
    if (row->input.len > 0) {
        run->input = rv__blob_new(row->input);
        if (run->input == NULL)
            return RV_ENOMEM;
    }
    return run->row_status == RUN_STATUSES ? RV_ESTORE : RV_OK;
}

static int take_snapshot(void *arg, uint64_t seq, struct rv__str text)
{
    struct loading *l = arg;
    int rc = rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, l->err);
    if (rc == RV_OK)
        rc = rv__cell_load(&l->opts, text, &l->cell, l->err);
    if (rc == RV_OK) {
        l->seq = seq;
        l->run->snapshot_bytes = text.len;
    }
    l->damaged = rc < 0 && rc != RV_ENOMEM;
    return rc;
}

static int take_journal(void *arg, uint64_t seq, struct rv__str facts)
{
    struct loading *l = arg;
    struct rv__buf array; /* the check wants one value */
    rv__buf_init(&array, SIZE_MAX / 8);
    rv__buf_char(&array, '[');
    rv__buf_str(&array, facts);
    rv__buf_char(&array, ']');
    int rc = rv__buf_err(&array, l->err);
    if (rc == RV_OK)
        rc = rv__json_check(rv__buf_view(&array), RV__JSON_MAX_DEPTH, NULL, l->err);
    if (rc == RV_OK)
        rc = rv__cell_replay_json(l->cell, facts, l->err);
    rv__buf_done(&array);
    l->seq = seq;
    l->run->journal_bytes += facts.len;
    l->damaged = rc < 0 && rc != RV_ENOMEM;
    return rc;
}

static int load_cell(struct loading *l)
{
    rv_engine *e = l->run->engine;
    struct rv__str id = rv__str(l->run->id);
    int rc = rv__plan_ref_load(e, rv__str(l->version), &l->run->plan, &l->damaged, l->err);
    if (rc < 0)
        return rc;
    l->opts = cell_opts(l->run);
    rc = rv__store_snapshot(e->reader, id, take_snapshot, l, l->err);
    if (rc == RV_ENOTFOUND)
        rc = rv__cell_empty(&l->opts, &l->cell, l->err);
    if (rc < 0)
        return rc;
    if (RV__BUG(40) && l->seq > 0)
        l->seq = INT64_MAX;
    rc = rv__store_journal(e->reader, id, l->seq, take_journal, l, l->err);
    if (rc < 0)
        return rc;
    l->run->cell = l->cell;
    l->run->seq = l->seq;
    l->cell = NULL;
    return RV_OK;
}

static void arm_wait(void *arg, const struct rv__effect *effect)
{
    if (effect->kind == EFFECT_WAIT)
        rv__owe(arg, effect);
}

static int load(rv_engine *e, const char *id, struct rv__run **ret, bool *damaged, rv_error *err)
{
    struct rv__run *run = rv__run_find(e, id);
    const bool known = run != NULL;
    if (known && run->cell != NULL) {
        *ret = run;
        return RV_OK;
    }
    if (!known && rv__run_new(e, id, NULL, &run) < 0)
        return rv__nomem(err);

    struct loading l = { .run = run, .err = err };
    rv__blob_unref(run->input);
    run->input = NULL;
    int rc = rv__store_run(e->reader, rv__str(id), take_row, &l, err);
    if (rc == RV_OK && run->plan != NULL) { /* waited for while it slept */
        rv__plan_ref_unref(run->plan);
        run->plan = NULL;
    }
    if (rc == RV_OK)
        rc = load_cell(&l);
    if (rc < 0) {
        *damaged = l.damaged;
        rv__cell_free(l.cell);
        if (!known)
            rv__run_drop(run);
        return rc;
    }
    if (!RV__BUG(32))
        rv__cell_outstanding(run->cell, arm_wait, run);
    *ret = run;
    return RV_OK;
}

static bool is_ours(const rv_engine *e, const char *id)
{
    return e->only_run[0] == '\0' || strcmp(e->only_run, id) == 0;
}

int rv__run_load(rv_engine *e, const char *id, struct rv__run **ret, rv_error *err)
{
    rv_error why = { .code = 0 };
    bool damaged = false;
    if (!is_ours(e, id))
        return rv__fail(err, RV_ESTATE, "this engine is for run '%.80s' only", e->only_run);
    int rc = load(e, id, ret, &damaged, &why);
    if (damaged)
        return rv__fail(err, RV_ESTORE, "the record of run '%.40s' is damaged: %.160s", id,
                        why.message);
    if (rc < 0 && err != NULL)
        *err = why;
    return rc;
}

int rv__run_read(rv_engine *e, const char *id, struct rv__run **ret, rv_error *err)
{
    struct rv__run *run = run_make(e, id, NULL);
    if (run == NULL)
        return rv__nomem(err);
    struct loading l = { .run = run, .err = err };
    int rc = rv__store_run(e->reader, rv__str(id), take_row, &l, err);
    if (rc == RV_OK)
        rc = load_cell(&l);
    if (rc < 0) {
        rv__cell_free(l.cell);
        rv__run_unref(run);
        return rc;
    }
    *ret = run;
    return RV_OK;
}

void rv__run_unread(struct rv__run *run)
{
    rv__cell_free(run->cell);
    run->cell = NULL;
    rv__run_unref(run);
}

/* Nobody can go on with a run whose record cannot be read: its row says so, and the others go on. */
static int set_aside(rv_engine *e, const char *id, const rv_error *why, rv_error *err)
{
    struct rv__buf text;
    char message[320];
    snprintf(message, sizeof message, "its record in the store is damaged: %s", why->message);
    rv__buf_init(&text, 4096);
    rv__buf_text(&text, "{\"message\":");
    rv__buf_json_str(&text, rv__str(message));
    rv__buf_char(&text, '}');
    int rc = rv__buf_err(&text, err);
    struct rv__store_touch touch = {
        .status = rv__str(rv__run_status_name(RUN_SUSPENDED)),
        .suspension = rv__buf_view(&text),
    };
    struct rv__store_write write = { .run = rv__str(id), .touch = &touch };
    if (rc == RV_OK)
        rc = rv__store_commit(e->store, &write, 1, err);
    rv__buf_done(&text);
    return rc;
}

/* As rv__run_load(), for runs that are to go on: a damaged one is set aside, and *ret is NULL. */
static int load_to_go_on(rv_engine *e, const char *id, struct rv__run **ret, rv_error *err)
{
    rv_error why = { .code = 0 };
    bool damaged = false;
    *ret = NULL;
    int rc = load(e, id, ret, &damaged, &why);
    if (damaged)
        return set_aside(e, id, &why, err);
    if (rc < 0 && err != NULL)
        *err = why;
    return rc;
}

/* ------------------------------------------------------------------------------ recovery --- */

struct page {
    char (*ids)[RV_RUN_ID_SIZE];
    size_t count;
    uint64_t last_number;
    struct rv__store_place place;
};

static int take_id(void *arg, const struct rv__store_run *row)
{
    struct page *page = arg;
    snprintf(page->ids[page->count++], RV_RUN_ID_SIZE, "%.*s", RV__ARG(row->id));
    page->last_number = row->number;
    page->place = (struct rv__store_place){ .at_ms = row->wake_at_ms, .number = row->number };
    return RV_OK;
}

/* A function that ran in a host cannot be what killed the engine. */
static bool in_process(const struct rv__effect *effect)
{
    const struct rv__node *node = effect->node;
    bool function = node != NULL && rv__plan_ref_fn_name(node, effect->eval).len > 0;
    bool called = effect->eval < 0 && node->step.kind == STEP_CALL; /* what of, was on record */
    return function && !effect->hosted && (called || !rv__node_hosted(node));
}

/* What was in flight when the last engine died is lost. */
static int say_lost(struct rv__run *run, rv_error *err)
{
    struct rv__started lost = rv__cell_started(run->cell);
    int rc = lost.no_memory ? rv__nomem(err) : RV_OK;
    for (size_t i = 0; i < lost.count && rc == RV_OK; i++) {
        struct rv__msg msg = { .kind = MSG_LOST,
                               .actor = lost.effects[i].actor,
                               .token = lost.effects[i].token,
                               .crash = true,
                               .shared = in_process(&lost.effects[i]) };
        rc = rv__run_send(run, &msg, err);
    }
    rv__free(lost.effects);
    rv__run_touch(run);
    return rc;
}

/* What the row of the only run says: is it active, or when does it want to be woken? */
struct only_row {
    bool active;
    int64_t wake_ms;
};

static int take_only_row(void *arg, const struct rv__store_run *row)
{
    *(struct only_row *)arg = (struct only_row){ row->active, row->wake_at_ms };
    return RV_OK;
}

static int read_only_row(rv_engine *e, struct only_row *ret, rv_error *err)
{
    *ret = (struct only_row){ false, 0 };
    int rc = rv__store_run(e->reader, rv__str(e->only_run), take_only_row, ret, err);
    return rc == RV_ENOTFOUND ? RV_OK : rc; /* it is to begin yet */
}

int rv__next_wake(rv_engine *e, rv_error *err)
{
    struct only_row row;
    if (e->only_run[0] == '\0')
        return rv__store_next_wake(e->reader, INT64_MIN, &e->store_wake_ms, err);
    int rc = read_only_row(e, &row, err);
    if (rc == RV_OK)
        e->store_wake_ms = row.wake_ms;
    return rc;
}

/* Whether others were in flight with it when its engine died is not asked: an engine for one run, which
 * this one continues, had no others. */
static int load_only_run(rv_engine *e, rv_error *err)
{
    struct only_row row;
    struct rv__run *run;
    int rc = read_only_row(e, &row, err);
    if (rc == RV_OK && row.active)
        rc = load_to_go_on(e, e->only_run, &run, err);
    return rc;
}

static int load_active(rv_engine *e, rv_error *err)
{
    struct page page = { .ids = rv__alloc(sizeof *page.ids * RECOVER_PAGE) };
    uint64_t after = 0;
    int rc = page.ids != NULL ? RV_OK : rv__nomem(err);
    do {
        page.count = 0;
        if (rc == RV_OK)
            rc = rv__store_active_after(e->reader, after, RECOVER_PAGE, take_id, &page, err);
        for (size_t i = 0; i < page.count && rc == RV_OK; i++) {
            struct rv__run *run;
            rc = load_to_go_on(e, page.ids[i], &run, err);
        }
        after = page.last_number;
    } while (rc == RV_OK && page.count == RECOVER_PAGE);
    rv__free(page.ids);
    return rc;
}

int rv__recover(rv_engine *e, rv_error *err)
{
    int rc = e->only_run[0] != '\0' ? load_only_run(e, err) : load_active(e, err);
    if (rc < 0)
        return rc;
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            rc = say_lost(run, err);
            if (rc < 0)
                return rc;
        }
    if (RV__BUG(38))
        return RV_OK;
    return rv__next_wake(e, err);
}

/* Runs that sleep in the store and are due come back, a page a turn. */
int rv__wake_due(rv_engine *e, int64_t now_ms)
{
    rv_error err;
    struct page page = { .ids = rv__alloc(sizeof *page.ids * WAKE_PAGE) };
    if (page.ids == NULL)
        return RV_ENOMEM;
    int rc = RV_OK;
    if (e->only_run[0] == '\0')
        rc = rv__store_due(e->reader, now_ms, NULL, WAKE_PAGE, take_id, &page, &err);
    else /* it is its own wake time that has come */
        snprintf(page.ids[page.count++], RV_RUN_ID_SIZE, "%s", e->only_run);
    for (size_t i = 0; i < page.count && rc == RV_OK; i++) {
        struct rv__run *run = NULL;
        rc = load_to_go_on(e, page.ids[i], &run, &err);
        if (rc == RV_OK && run != NULL)
            rv__run_touch(run); /* its row says that it sleeps: to be written anew */
    }
    rv__free(page.ids);
    return rc;
}
