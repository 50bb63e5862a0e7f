/* retain.c: when finished runs leave the store. The loop does it, for it owns the writer: a piece
 * (keep/retain.c) between two turns, then a pause; and whoever asks for it (rv_retain). */
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

static bool in_use(void *arg, const char *run_id)
{
    return rv__run_find(arg, run_id) != NULL; /* somebody looks at it: next time */
}

/* One piece. *ret_more: there is more to do. Thread: the loop's, with no commit under way. */
static int retain_piece(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *removed,
                        bool *ret_more, rv_error *err)
{
    const struct rv__retaining how = {
        .limits = limits, .now_ms = rv__wall_ms(e->clock), .in_use = in_use, .arg = e
    };
    return rv__retain_piece(e->store, &how, &e->retain.sweeping, removed, ret_more, err);
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

static int foresee(rv_engine *e, const struct rv__retain_limits *limits, uint64_t *ret,
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
