/* limit.h: named limits: how much of something may be in use at once, and within a minute (SPEC §17).
 *
 * Work that needs a limit gets its place only if the limit and its executor have room for it, both or neither, and gives
 * both back together. Until then nothing of it is begun or recorded: it waits in its run's cell, and its run in the ring
 * of the limit, so that runs take turns. Levels are in memory: what waits does so again after a restart, and a new
 * process has used nothing yet.
 *
 * Today's limits are those of providers of models, `provider:<name>`. What a request takes (its tokens) is known when it
 * is answered. Until then it counts as much as the answers before it took on average. */
#ifndef RV_ENGINE_LIMIT_H
#define RV_ENGINE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rv__run;

enum {
    RV__LIMIT_SECONDS = 60,
    RV__LIMIT_GUESS = 1000, /* of an amount before any is known: tokens of a short conversation */
};

/* What was counted in this second and in the 60 before it. */
struct rv__window {
    int64_t second, sum;
    int64_t at[RV__LIMIT_SECONDS + 1]; /* by second, modulo */
};

struct rv__limit {
    const char *name;                          /* "provider:local" */
    int64_t at_once, per_minute;               /* places; 0: no limit */
    int64_t amount_at_once, amount_per_minute; /* what they take, tokens; the same */
    int64_t taken;                             /* places that have not come back */
    int64_t average;                           /* amount of one of them; 0: none is known */
    struct rv__window starts, amounts;
    struct rv__run *first, *last; /* who wants a place */
};

/* When may one more place be taken? 0: now; RV__NEVER: not before one comes back; else at this time. Times are
 * monotonic milliseconds. */
int64_t rv__limit_free_ms(struct rv__limit *limit, int64_t now_ms);
void rv__limit_take(struct rv__limit *limit, int64_t now_ms);
void rv__limit_give(struct rv__limit *limit);
/* One of them has taken so much; it is given back next. */
void rv__limit_used(struct rv__limit *limit, int64_t amount, int64_t now_ms);

#endif
