/* retain.c: deletes finished runs from the store. It is done at the writing desk: a piece (keep/retain.c) between two
 * batches, then a pause; and on request (rv_retain). */
#include "base/alloc.h"
#include "base/error.h"
#include "engine/call.h"
#include "engine/engine.h"

enum {
    RETAIN_PAUSE_MS = 20,    /* between two pieces */
    RETAIN_EVERY_MS = 10000, /* between two looks, when there was nothing to do */
    RETAIN_RETRY_MS = 1000,  /* after the store did not answer */
};

static bool has_bounds(const struct rv__retain_limits *limits)
{
    return limits->max_age_ms > 0 || limits->max_runs > 0 || limits->max_bytes > 0;
}

/* One piece. *ret_more: there is more to do. Thread: the writing desk's. */
static int retain_piece(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *removed,
                        bool *ret_more, rv_error *err)
{
    const struct rv__retaining how = { .limits = limits, .now_ms = rv__wall_ms(e->clock) };
    return rv__retain_piece(e->store, &how, &e->retain.sweeping, removed, ret_more, err);
}

static int64_t run_piece(struct rv__job *job)
{
    struct rv__retention *r = (struct rv__retention *)job;
    rv_engine *e = RV__CONTAINER(r, struct rv_engine, retain);
    r->more = false;
    r->rc = retain_piece(e, &r->limits, &r->piece, &r->more, NULL);
    return 0;
}

static void piece_landed(rv_engine *e, struct rv__job *job)
{
    struct rv__retention *r = (struct rv__retention *)job;
    r->under_way = false;
    r->removed += r->piece;
    r->next_ms = rv__mono_ms(e->clock) + (r->rc < 0 ? RETAIN_RETRY_MS
                                          : r->more ? RETAIN_PAUSE_MS
                                                    : RETAIN_EVERY_MS);
}

static void drop_piece(struct rv__job *job)
{
    ((struct rv__retention *)job)->under_way = false; /* the engine's own */
}

void rv__retain_tick(rv_engine *e)
{
    struct rv__retention *r = &e->retain;
    if (!has_bounds(&r->limits) || r->under_way || e->closed || e->read_only ||
        rv__mono_ms(e->clock) < r->next_ms)
        return;
    r->job = (struct rv__job){ .run = run_piece, .landed = piece_landed, .drop = drop_piece };
    r->piece = 0;
    r->under_way = true;
    rv__write_job(e, &r->job);
}

int64_t rv__retain_until_ns(const rv_engine *e, int64_t until_ns)
{
    const struct rv__retain_limits *limits = &e->retain.limits;
    if (e->closed || e->read_only || !has_bounds(limits) || e->retain.under_way)
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

static int count_removable(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *ret,
                           rv_error *err)
{
    struct rv__store *reader = NULL;
    int rc = rv__engine_reader(e, &reader, err);
    if (rc == RV_OK)
        rc = rv__retain_foresee(reader, limits, rv__wall_ms(e->clock), ret, err);
    rv__store_close(reader);
    return rc;
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
        rc = known.dry_run ? count_removable(e, opts != NULL ? &limits : &e->retain.limits,
                                             &asking.removed, err)
                           : rv__call_write(e, ask, NULL, &asking, err);
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
