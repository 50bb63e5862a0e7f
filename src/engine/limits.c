/* limits.c: the named limits of an engine, and which limits a piece of work needs. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/json.h"
#include "engine/engine.h"

int rv__limits_add(rv_engine *e, const struct rv__limit *limit)
{
    struct rv__limits *all = &e->limits;
    if (all->count == all->cap) {
        size_t cap = all->cap ? all->cap * 2 : 4;
        struct rv__limit *more = rv__realloc(all->at, cap * sizeof *more);
        if (more == NULL)
            return RV_ENOMEM;
        all->at = more;
        all->cap = cap;
    }
    all->at[all->count++] = *limit;
    return RV_OK;
}

int rv__limits_take(rv_engine *e)
{
    for (struct rv__provider *p = rv__providers_first(e->services.providers); p != NULL;
         p = rv__provider_next(p)) {
        const struct rv__provider_limits *l = rv__provider_limits(p);
        struct rv__limit limit = { .name = l->name,
                                   .at_once = l->requests,
                                   .per_minute = l->requests_per_minute,
                                   .amount_at_once = l->tokens,
                                   .amount_per_minute = l->tokens_per_minute };
        if (rv__provider_is_limited(p) && rv__limits_add(e, &limit) < 0)
            return RV_ENOMEM;
    }
    return RV_OK;
}

void rv__limits_free(rv_engine *e)
{
    rv__free(e->limits.at);
    e->limits = (struct rv__limits){ .at = NULL };
}

void rv__limits_reset(rv_engine *e)
{
    for (size_t i = 0; i < e->limits.count; i++) {
        struct rv__limit *l = &e->limits.at[i];
        *l = (struct rv__limit){ .name = l->name,
                                 .at_once = l->at_once,
                                 .per_minute = l->per_minute,
                                 .amount_at_once = l->amount_at_once,
                                 .amount_per_minute = l->amount_per_minute };
    }
}

int rv__limits_of(const rv_engine *e, const struct rv__node *node, int eval)
{
    static const char kind[] = "provider:";
    struct rv__str name;
    if (e->limits.count == 0 || eval >= 0 || node->step.kind != STEP_CHAT ||
        !rv__json_get(node->step.with, "provider", &name))
        return -1;
    for (size_t i = 0; i < e->limits.count; i++)
        if (strncmp(e->limits.at[i].name, kind, sizeof kind - 1) == 0 &&
            rv__json_string_is(name, rv__str(e->limits.at[i].name + sizeof kind - 1)))
            return (int)i;
    return -1;
}

bool rv__limits_give(const rv_engine *e, size_t number)
{
    return rv__limit_free_ms(&e->limits.at[number], rv__mono_ms(e->clock)) <= rv__mono_ms(e->clock);
}

int64_t rv__limits_until_ns(const rv_engine *e, int64_t until_ns)
{
    for (size_t i = 0; i < e->limits.count; i++) {
        struct rv__limit *l = &e->limits.at[i];
        int64_t free_ms = l->first != NULL ? rv__limit_free_ms(l, rv__mono_ms(e->clock))
                                           : RV__NEVER;
        if (free_ms != RV__NEVER && free_ms * 1000000 < until_ns && !RV__BUG(274))
            until_ns = free_ms * 1000000;
    }
    return until_ns;
}
