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
    if (limits->max_age_ms <= 0 && limits->max_runs == 0 && limits->max_bytes == 0)
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
    if (e->closed || (limits->max_age_ms <= 0 && limits->max_runs == 0 && limits->max_bytes == 0))
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
    struct asking asking = { .limits = opts != NULL ? &limits : NULL };
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_RETAIN_OPTS");
    if (opts != NULL && opts->max_age_ms < 0)
        return rv__fail(err, RV_EINVAL, "a negative age: 0 is for ever");
    if (opts != NULL)
        limits = (struct rv__retain_limits){ opts->max_age_ms, opts->max_runs, opts->max_bytes };
    int rc;
    do
        rc = rv__call_ask(e, ask, &asking, true, err);
    while (rc == RV_OK && asking.more);
    if (rc == RV_OK && ret != NULL)
        *ret = asking.removed;
    return rc;
}

void rv_retain_opts_init(rv_retain_opts *opts)
{
    *opts = (rv_retain_opts){ .size = sizeof *opts };
}
