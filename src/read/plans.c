/* plans.c: a cache of the plans of runs that are read, by version: parsed once, and kept for a while after the last
 * use. */
#include "read/read.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

enum { KEPT_PLANS = 64 }; /* unused plans in the cache: an engine runs a few dozen workflows */

void rv__plan_cache_init(struct rv__plan_cache *cache)
{
    *cache = (struct rv__plan_cache){ .first = NULL };
    pthread_mutex_init(&cache->lock, NULL);
}

static void cache_trim(struct rv__plan_cache *cache, size_t keep)
{
    struct rv__cached_plan **at = &cache->first;
    for (size_t seen = 0; *at != NULL; seen++) {
        struct rv__cached_plan *plan = *at;
        if (seen < keep || plan->refs > 0) {
            at = &plan->next;
            continue;
        }
        *at = plan->next;
        cache->count--;
        rv__plan_free(plan->plan);
        rv__free(plan);
    }
}

void rv__plan_cache_done(struct rv__plan_cache *cache)
{
    cache_trim(cache, 0);
    pthread_mutex_destroy(&cache->lock);
}

struct parsing {
    struct rv__plan *plan;
    rv_error *err;
};

static int parse_plan(void *arg, uint64_t seq, struct rv__str text)
{
    struct parsing *p = arg;
    (void)seq;
    return rv__plan_read(text, &p->plan, p->err);
}

static int cache_add(struct rv__plan_cache *cache, struct rv__store *store, struct rv__str version,
                     struct rv__cached_plan **ret, rv_error *err)
{
    struct parsing parsing = { .err = err };
    struct rv__cached_plan *plan = rv__zalloc(1, sizeof *plan);
    if (plan == NULL)
        return rv__nomem(err);
    int rc = rv__store_definition(store, version, parse_plan, &parsing, err);
    if (rc < 0) {
        rv__free(plan);
        if (rc == RV_ENOTFOUND)
            return rv__fail(err, RV_ESTORE, "the plan of version %.*s is not in the store",
                            RV__ARG(version));
        return rc;
    }
    plan->plan = parsing.plan;
    plan->next = cache->first;
    cache->first = plan;
    cache->count++;
    *ret = plan;
    return RV_OK;
}

int rv__plan_cache_get(struct rv__plan_cache *cache, struct rv__store *store,
                       struct rv__str version, struct rv__cached_plan **ret, rv_error *err)
{
    int rc = RV_OK;
    pthread_mutex_lock(&cache->lock);
    struct rv__cached_plan **at = &cache->first, *plan;
    while (*at != NULL && !rv__str_is(version, (*at)->plan->version))
        at = &(*at)->next;
    plan = *at;
    if (plan != NULL) { /* move it to the front */
        *at = plan->next;
        plan->next = cache->first;
        cache->first = plan;
    } else {
        rc = cache_add(cache, store, version, &plan, err);
    }
    if (rc == RV_OK && plan != NULL) {
        plan->refs++;
        if (cache->count > KEPT_PLANS)
            cache_trim(cache, KEPT_PLANS);
        *ret = plan;
    }
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

void rv__plan_cache_put(struct rv__plan_cache *cache, struct rv__cached_plan *plan)
{
    if (plan == NULL)
        return;
    pthread_mutex_lock(&cache->lock);
    plan->refs--;
    pthread_mutex_unlock(&cache->lock);
}

struct row_look {
    char version[65];
    uint64_t number;
    bool terminal;
};

static int look_at_row(void *arg, const struct rv__store_run *row)
{
    struct row_look *look = arg;
    if (row->version.len >= sizeof look->version)
        return RV_ESTORE;
    snprintf(look->version, sizeof look->version, "%.*s", RV__ARG(row->version));
    look->number = row->number;
    look->terminal = row->completed_ms != 0;
    return RV_OK;
}

int rv__read_run(struct rv__plan_cache *cache, struct rv__store *store, struct rv__str id,
                 struct rv__read_run *ret, rv_error *err)
{
    struct row_look look = { .number = 0 };
    int rc = rv__store_run(store, id, look_at_row, &look, err);
    if (rc == RV_ENOTFOUND)
        return rv__fail(err, rc, "there is no run '%.*s'", RV__ARG(id));
    if (rc == RV_OK)
        rc = rv__plan_cache_get(cache, store, rv__str(look.version), &ret->plan, err);
    if (rc < 0)
        return rc;
    ret->number = look.number;
    ret->terminal = look.terminal;
    return RV_OK;
}
