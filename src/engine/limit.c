/* limit.c: how much of a named limit is left. It is a sliding window and not a leaky bucket, which would let up to
 * twice the limit pass in a minute. */
#include "engine/limit.h"

#include <string.h>

#include "base/bugs.h"
#include "base/clock.h"

enum { SLOTS = RV__LIMIT_SECONDS + 1 };

static void window_move(struct rv__window *w, int64_t second)
{
    if (second - w->second >= SLOTS) {
        memset(w->at, 0, sizeof w->at);
        w->sum = 0;
        w->second = second;
    }
    while (w->second < second) {
        w->second++;
        w->sum -= w->at[w->second % SLOTS];
        w->at[w->second % SLOTS] = 0;
    }
}

static void window_add(struct rv__window *w, int64_t amount, int64_t now_ms)
{
    window_move(w, now_ms / 1000);
    w->at[w->second % SLOTS] += amount;
    w->sum += amount;
}

/* When the window will contain no more than `most`. 0: now. */
static int64_t window_below_ms(struct rv__window *w, int64_t most, int64_t now_ms)
{
    window_move(w, now_ms / 1000);
    int64_t sum = w->sum, later = 0;
    while (sum > most && later < SLOTS)
        sum -= w->at[(w->second + ++later) % SLOTS]; /* the oldest first */
    return later > 0 ? (w->second + later) * 1000 : 0;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first request always passes, even if it needs more than the whole limit. */
static int64_t amount_free_ms(struct rv__limit *l, int64_t now_ms)
{
    int64_t one = l->average > 0 ? l->average : RV__LIMIT_GUESS;
    int64_t with_one = one * (l->taken + 1);
    bool alone = l->taken == 0;
    if (!alone && l->amount_at_once > 0 && with_one > l->amount_at_once)
        return RV__NEVER;
    if (l->amount_per_minute == 0)
        return 0;
    if (!alone && with_one > l->amount_per_minute)
        return RV__NEVER;
    return window_below_ms(&l->amounts, most_of(0, l->amount_per_minute - with_one), now_ms);
}

int64_t rv__limit_free_ms(struct rv__limit *l, int64_t now_ms)
{
    int64_t amount_ms = amount_free_ms(l, now_ms), start_ms = 0;
    if (l->at_once > 0 && l->taken >= l->at_once && !RV__BUG(270))
        return RV__NEVER;
    if (l->per_minute > 0 && !RV__BUG(271))
        start_ms = window_below_ms(&l->starts, l->per_minute - 1, now_ms);
    return most_of(amount_ms, start_ms);
}

void rv__limit_take(struct rv__limit *l, int64_t now_ms)
{
    l->taken++;
    if (l->per_minute > 0)
        window_add(&l->starts, 1, now_ms);
}

void rv__limit_give(struct rv__limit *l)
{
    l->taken--;
}

void rv__limit_used(struct rv__limit *l, int64_t amount, int64_t now_ms)
{
    if (amount <= 0)
        return;
    l->average = l->average == 0 ? amount : l->average + (amount - l->average) / 8;
    if (l->amount_per_minute > 0)
        window_add(&l->amounts, amount, now_ms);
}
