/* retain.c: finished runs leave the store when they are too old, too many or too large.
 *
 * The loop does it in pieces, for it owns the writer: at most RETAIN_RUNS runs, or FORGET_ROWS (store)
 * rows of what they wrote, between two turns, then a pause. So it never holds the loop for longer than a
 * few commits take, however much there is to remove. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/call.h"
#include "engine/engine.h"

enum {
    RETAIN_RUNS = 64,        /* of one piece: with some ten rows each, some milliseconds */
    RETAIN_PAUSE_MS = 20,    /* between two pieces */
    RETAIN_EVERY_MS = 10000, /* between two looks, when there was nothing to do */
    RETAIN_RETRY_MS = 1000,  /* after the store did not answer */
};

struct candidates {
    rv_engine *engine;
    const struct rv__retain_limits *limits;
    int64_t before_ms;    /* finished before this is too old */
    uint64_t left, bytes; /* that are kept if no more is chosen; of everything */
    char (*ids)[RV_RUN_ID_SIZE];
    size_t count;
};

static bool has_bounds(const struct rv__retain_limits *limits)
{
    return limits->max_age_ms > 0 || limits->max_runs > 0 || limits->max_bytes > 0;
}

/* Oldest first. One that is kept ends it: all behind it are younger. */
static int choose(void *arg, const struct rv__store_run *row)
{
    struct candidates *c = arg;
    const struct rv__retain_limits *limits = c->limits;
    bool old = limits->max_age_ms > 0 && row->completed_ms < c->before_ms;
    bool many = limits->max_runs > 0 && c->left > limits->max_runs;
    bool large = limits->max_bytes > 0 && c->bytes > limits->max_bytes;
    if (!old && !many && !large)
        return 1;
    snprintf(c->ids[c->count], RV_RUN_ID_SIZE, "%.*s", RV__ARG(row->id));
    if (rv__run_find(c->engine, c->ids[c->count]) != NULL)
        return RV_OK; /* somebody looks at it: next time */
    c->count++;
    c->left--;
    if (large && !old && !many && c->count == RETAIN_RUNS / 8)
        return 1; /* how much each gives back is not known: a few, then look again */
    return RV_OK;
}

/* One piece. *ret_more: there is more to do. Thread: the loop's, with no commit under way. */
static int retain_piece(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *removed,
                        bool *ret_more, rv_error *err)
{
    char ids[RETAIN_RUNS][RV_RUN_ID_SIZE];
    struct rv__str runs[RETAIN_RUNS];
    struct rv__store_usage usage;
    struct candidates c = { .engine = e, .limits = limits, .ids = ids };
    bool more = false;
    int rc = RV_OK;
    if (!e->retain.sweeping) { /* what was forgotten goes first: until then the size says nothing */
        rc = rv__store_usage(e->store, &usage, err);
        if (rc < 0)
            return rc;
        c.before_ms = rv__wall_ms(e->clock) - limits->max_age_ms;
        c.left = usage.finished;
        c.bytes = usage.bytes;
        rc = rv__store_finished(e->store, NULL, RETAIN_RUNS, choose, &c, err);
        if (rc < 0)
            return rc;
        if (c.count == 0) {
            *ret_more = false;
            return RV_OK;
        }
    }
    for (size_t i = 0; i < c.count; i++)
        runs[i] = rv__str(ids[i]);
    rc = rv__store_forget(e->store, runs, c.count, &more, err);
    if (rc < 0)
        return rc;
    e->retain.sweeping = more;
    *removed += c.count;
    *ret_more = true;
    return RV_OK;
}

void rv__retain_tick(rv_engine *e)
{
    const struct rv__retain_limits *limits = &e->retain.limits;
    bool more = false;
    if (!has_bounds(limits))
        return;
    int64_t now_ms = rv__mono_ms(e->clock);
    if (e->closed || now_ms < e->retain.next_ms)
        return;
    int rc = retain_piece(e, limits, &e->retain.removed, &more, NULL);
    e->retain.next_ms = rv__mono_ms(e->clock) + (rc < 0 ? RETAIN_RETRY_MS
                                                 : more ? RETAIN_PAUSE_MS
                                                        : RETAIN_EVERY_MS);
}

int64_t rv__retain_until_ns(const rv_engine *e, int64_t until_ns)
{
    const struct rv__retain_limits *limits = &e->retain.limits;
    if (e->closed || !has_bounds(limits))
        return until_ns;
    int64_t at_ns = e->retain.next_ms * 1000000;
    return at_ns < until_ns ? at_ns : until_ns;
}

/* ------------------------------------------------------------------------------ on demand --- */

struct asking {
    const struct rv__retain_limits *limits; /* NULL: the engine's own */
    uint64_t removed;
    bool more;
};

/* How many would go, without a list of them: a walk over those that are too old, a number for the rest. */
struct counting {
    int64_t before_ms;
    uint64_t old;
};

static int count_old(void *arg, const struct rv__store_run *row)
{
    struct counting *c = arg;
    if (row->completed_ms >= c->before_ms)
        return 1;
    c->old++;
    return RV_OK;
}

static int foresee(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *ret,
                   rv_error *err)
{
    struct counting c = { rv__wall_ms(e->clock) - limits->max_age_ms, 0 };
    struct rv__store_usage usage = { 0 };
    struct rv__store *reader = NULL;
    int rc = rv__engine_reader(e, &reader, err);
    if (rc == RV_OK)
        rc = rv__store_usage(reader, &usage, err);
    if (rc == RV_OK && limits->max_age_ms > 0)
        rc = rv__store_finished(reader, NULL, SIZE_MAX, count_old, &c, err);
    rv__store_close(reader);
    if (rc < 0)
        return rc;
    uint64_t go = c.old;
    if (limits->max_runs > 0 && usage.finished > limits->max_runs &&
        go < usage.finished - limits->max_runs)
        go = usage.finished - limits->max_runs;
    if (limits->max_bytes > 0 && usage.bytes > limits->max_bytes && usage.runs > 0) {
        uint64_t each = usage.bytes / usage.runs + 1;
        uint64_t large = (usage.bytes - limits->max_bytes + each - 1) / each;
        go = go < large ? large : go;
    }
    *ret = go < usage.finished ? go : usage.finished;
    return RV_OK;
}

static int ask(struct rv__call *call)
{
    struct asking *asking = call->arg;
    rv_engine *e = call->engine;
    return retain_piece(e, asking->limits != NULL ? asking->limits : &e->retain.limits,
                        &asking->removed, &asking->more, &call->err);
}

int rv_retain(rv_engine *e, const rv_retain_opts *opts, uint64_t *ret, rv_error *err)
{
    struct rv__retain_limits limits = { 0 };
    rv_retain_opts known = { .size = sizeof known };
    struct asking asking = { .limits = opts != NULL ? &limits : NULL };
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    if (opts != NULL) {
        rv__opts_take(&known, sizeof known, opts, opts->size);
        opts = &known;
    }
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_RETAIN_OPTS");
    if (opts != NULL && opts->max_age_ms < 0)
        return rv__fail(err, RV_EINVAL, "a negative age: 0 is for ever");
    if (opts != NULL)
        limits = (struct rv__retain_limits){ opts->max_age_ms, opts->max_runs, opts->max_bytes };
    int rc;
    do
        rc = known.dry_run
                 ? foresee(e, opts != NULL ? &limits : &e->retain.limits, &asking.removed, err)
                 : rv__call_ask(e, ask, &asking, true, err);
    while (rc == RV_OK && asking.more);
    if (rc == RV_OK && ret != NULL)
        *ret = asking.removed;
    return rc;
}

int rv_store_usage(rv_engine *e, rv_usage *ret, rv_error *err)
{
    struct rv__store_usage usage;
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_store_usage: %s",
                        e == NULL ? "no engine given" : "nowhere to put it");
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = rv__store_usage(e->step_reader, &usage, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    if (rc == RV_OK)
        *ret = (rv_usage){ usage.runs, usage.finished, usage.bytes };
    return rc;
}

void rv_retain_opts_init(rv_retain_opts *opts)
{
    *opts = (rv_retain_opts){ .size = sizeof *opts };
}
