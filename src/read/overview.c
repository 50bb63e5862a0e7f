/* overview.c: statistics of the runs of the last day, by workflow and hour; and the runs that wait longest.
 *
 * Each run is counted once, when it has ended. A call continues in the store's order of completion where the last
 * one stopped, so it costs only the runs that have ended since. The first call reads a day. No call reads more than
 * CALL_RUNS: then `complete` is false, and the next one continues.
 *
 * The order of completion is only nearly the order of time: two batches are written at once, and several processes
 * have several clocks. So the position where the next call starts stays SETTLE_MS behind; runs counted beyond it
 * are remembered (`recent`), in the same order, and skipped the next time. An imported run that ended long ago is
 * not counted. */
#include "read/read.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

#define HOUR_MS INT64_C(3600000)
enum {
    HOURS = 24,            /* shown, including the present one */
    WORKFLOWS_MOST = 200,  /* listed separately; the others are counted together */
    CALL_RUNS = 20000,     /* read by one call: some tens of milliseconds */
    PIECE_RUNS = 500,      /* read at a time: others wait for the reader meanwhile */
    SETTLE_MS = 2000,      /* a run may appear this much later than one with a later time */
    RECENT_MOST = 1 << 16, /* remembered; beyond that the oldest count as settled */
    OLDEST = 10,           /* of the waiting runs */
    TIMES = 64,            /* classes of durations: the n-th ends at about 1.4^n ms */
};

struct hour {
    int64_t hour; /* since 1970; older entries of the ring are empty */
    uint32_t ended, failed;
    uint32_t times[TIMES]; /* of those that completed */
    int64_t slowest_ms;    /* -1: none completed */
    char slowest[RV_RUN_ID_SIZE];
};

struct counted {
    char *workflow;
    struct hour hours[HOURS];
};

struct rv__overview {
    pthread_mutex_t lock; /* of the following members; taken before reading->lock */
    struct counted *at[WORKFLOWS_MOST];
    size_t count;
    struct hour others; /* workflows beyond the limit: ended and failed, all hours */
    bool began;
    struct rv__store_place place; /* runs up to here are counted */
    struct rv__store_place *recent;
    size_t recent_count, recent_cap;
};

void rv__overview_free(struct rv__overview *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->count; i++) {
        rv__free(o->at[i]->workflow);
        rv__free(o->at[i]);
    }
    rv__free(o->recent);
    pthread_mutex_destroy(&o->lock);
    rv__free(o);
}

int rv__overview_new(struct rv__overview **ret, rv_error *err)
{
    struct rv__overview *o = rv__zalloc(1, sizeof *o);
    if (o == NULL)
        return rv__nomem(err);
    pthread_mutex_init(&o->lock, NULL); /* on Linux it cannot fail */
    *ret = o;
    return RV_OK;
}

/* -------------------------------------------------------------------------------- counting --- */

/* The upper bound of a class. The median is such a bound. */
static int64_t class_ms(int n)
{
    double ms = 1;
    for (int i = 0; i < n; i++)
        ms *= 1.4;
    return (int64_t)ms;
}

static int class_of(int64_t ms)
{
    int n = 0;
    double bound = 1;
    for (; n < TIMES - 1 && bound < (double)ms; n++)
        bound *= 1.4;
    return n;
}

/* NULL: too many, or no memory. */
static struct counted *find_workflow(struct rv__overview *o, struct rv__str name)
{
    for (size_t i = 0; i < o->count; i++)
        if (rv__str_is(name, o->at[i]->workflow))
            return o->at[i];
    struct counted *one = o->count < WORKFLOWS_MOST ? rv__zalloc(1, sizeof *one) : NULL;
    if (one == NULL)
        return NULL;
    one->workflow = rv__zalloc(1, name.len + 1);
    if (one->workflow == NULL) {
        rv__free(one);
        return NULL;
    }
    memcpy(one->workflow, name.at, name.len);
    o->at[o->count++] = one;
    return one;
}

static struct hour *hour_of(struct counted *of, int64_t hour)
{
    struct hour *h = &of->hours[hour % HOURS];
    if (h->hour != hour)
        *h = (struct hour){ .hour = hour, .slowest_ms = -1 };
    return h;
}

struct counting {
    struct rv__overview *o;
    int64_t now_ms;
    struct rv__store_place last;   /* the last run read */
    struct rv__store_place *fresh; /* `recent` for the next call */
    size_t fresh_count, passed;    /* passed: entries of o->recent */
    size_t read;
};

static bool is_before(const struct rv__store_place *a, const struct rv__store_place *b)
{
    return a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->number < b->number);
}

/* Was it counted by the last call? Both lists are in order. */
static bool is_known(struct counting *c, const struct rv__store_place *place)
{
    const struct rv__overview *o = c->o;
    while (c->passed < o->recent_count && is_before(&o->recent[c->passed], place))
        c->passed++;
    return c->passed < o->recent_count && !is_before(place, &o->recent[c->passed]);
}

static void count(struct rv__overview *o, const struct rv__store_run *row)
{
    struct counted *of = find_workflow(o, row->workflow);
    struct hour *h = of != NULL ? hour_of(of, row->completed_ms / HOUR_MS) : &o->others;
    int64_t ms = row->completed_ms - row->started_ms;
    bool failed = rv__str_is(row->status, "failed");
    h->ended++;
    h->failed += failed;
    if (of == NULL || !rv__str_is(row->status, "completed") || ms < 0)
        return;
    h->times[class_of(ms)]++;
    if (ms <= h->slowest_ms)
        return;
    h->slowest_ms = ms;
    snprintf(h->slowest, sizeof h->slowest, "%.*s", RV__ARG(row->id));
}

static int take_run(void *arg, const struct rv__store_run *row)
{
    struct counting *c = arg;
    struct rv__store_place place = { row->completed_ms, row->number };
    c->last = place;
    c->read++;
    if (row->damaged || row->completed_ms < 0)
        return RV_OK;
    if (!is_known(c, &place))
        count(c->o, row);
    if (place.at_ms > c->now_ms - SETTLE_MS && c->fresh_count < RECENT_MOST)
        c->fresh[c->fresh_count++] = place;
    return RV_OK;
}

/* Count more runs. *complete: all that have ended are counted. */
static int go_on(struct rv__reading *r, struct rv__overview *o, int64_t now_ms, bool *complete,
                 rv_error *err)
{
    int64_t oldest = (now_ms / HOUR_MS - (HOURS - 1)) * HOUR_MS - 1;
    struct counting c = { .o = o, .now_ms = now_ms };
    int rc = RV_OK;
    if (!o->began || o->place.at_ms < oldest)
        o->place = (struct rv__store_place){ oldest, UINT64_MAX };
    o->began = true;
    c.last = o->place;
    c.fresh = rv__zalloc(RECENT_MOST, sizeof *c.fresh);
    if (c.fresh == NULL)
        return rv__nomem(err);
    size_t before;
    do {
        struct rv__store_place from = c.last;
        before = c.read;
        pthread_mutex_lock(&r->lock);
        rc = rv__store_finished(r->store, &from, PIECE_RUNS, take_run, &c, err);
        pthread_mutex_unlock(&r->lock);
    } while (rc == RV_OK && c.read - before == PIECE_RUNS && c.read < CALL_RUNS);
    /* Also after an error: counted runs must not be counted again. */
    *complete = rc == RV_OK && c.read - before < PIECE_RUNS;
    if (is_before(&o->place, &c.last) || c.read > 0) {
        int64_t settled = now_ms - SETTLE_MS;
        if (c.fresh_count == RECENT_MOST || c.last.at_ms <= settled)
            o->place = c.last;
        else if (o->place.at_ms < settled)
            o->place = (struct rv__store_place){ settled, UINT64_MAX };
    }
    size_t kept = 0;
    for (size_t i = 0; i < c.fresh_count; i++)
        if (is_before(&o->place, &c.fresh[i]))
            c.fresh[kept++] = c.fresh[i];
    rv__free(o->recent);
    o->recent = c.fresh;
    o->recent_count = kept;
    return rc;
}

/* --------------------------------------------------------------------------------- telling --- */

struct total {
    const struct counted *of;
    uint64_t ended, failed;
};

static struct total total_of(const struct counted *of, int64_t first)
{
    struct total t = { .of = of };
    for (size_t i = 0; i < HOURS; i++)
        if (of->hours[i].hour >= first) {
            t.ended += of->hours[i].ended;
            t.failed += of->hours[i].failed;
        }
    return t;
}

static int64_t median_of(const struct counted *of, int64_t first)
{
    uint64_t all = 0, passed = 0;
    uint32_t sums[TIMES] = { 0 };
    for (size_t i = 0; i < HOURS; i++)
        for (int n = 0; of->hours[i].hour >= first && n < TIMES; n++) {
            sums[n] += of->hours[i].times[n];
            all += of->hours[i].times[n];
        }
    for (int n = 0; n < TIMES; n++) {
        passed += sums[n];
        if (all > 0 && 2 * passed >= all)
            return class_ms(n);
    }
    return -1;
}

static void put_workflow(struct rv__buf *out, const struct total *t, int64_t first)
{
    const struct hour *slowest = NULL;
    rv__buf_text(out, "{\"workflow\":");
    rv__buf_json_str(out, rv__str(t->of->workflow));
    rv__buf_fmt(out, ",\"ended\":%llu,\"failed\":%llu", (unsigned long long)t->ended,
                (unsigned long long)t->failed);
    rv__buf_text(out, ",\"hours\":[");
    for (int64_t hour = first; hour < first + HOURS; hour++) {
        const struct hour *h = &t->of->hours[hour % HOURS];
        bool there = h->hour == hour;
        rv__buf_fmt(out, "%s{\"ended\":%u,\"failed\":%u}", hour > first ? "," : "",
                    there ? h->ended : 0, there ? h->failed : 0);
        if (there && h->slowest_ms >= 0 && (slowest == NULL || h->slowest_ms > slowest->slowest_ms))
            slowest = h;
    }
    rv__buf_char(out, ']');
    int64_t median = median_of(t->of, first);
    if (slowest != NULL && median > slowest->slowest_ms) /* the median is the bound of a class */
        median = slowest->slowest_ms;
    if (median >= 0)
        rv__buf_fmt(out, ",\"medianMs\":%lld", (long long)median);
    if (slowest != NULL)
        rv__buf_fmt(out, ",\"slowest\":{\"runId\":\"%s\",\"duration\":%lld}", slowest->slowest,
                    (long long)slowest->slowest_ms);
    rv__buf_char(out, '}');
}

static void put_workflows(struct rv__buf *out, const struct rv__overview *o, int64_t first)
{
    bool begun = false;
    rv__buf_text(out, ",\"workflows\":[");
    for (size_t i = 0; i < o->count; i++) {
        struct total t = total_of(o->at[i], first);
        if (t.ended == 0)
            continue;
        rv__buf_text(out, begun ? "," : "");
        put_workflow(out, &t, first);
        begun = true;
    }
    rv__buf_char(out, ']');
}

/* Remove workflows without runs in the last day, to make room for others. */
static void drop_old(struct rv__overview *o, int64_t first)
{
    for (size_t i = 0; i < o->count;) {
        if (total_of(o->at[i], first).ended > 0) {
            i++;
            continue;
        }
        rv__free(o->at[i]->workflow);
        rv__free(o->at[i]);
        o->at[i] = o->at[--o->count];
    }
}

struct rv__str rv__first_reason(struct rv__str suspensions)
{
    struct rv__json_iter it;
    struct rv__str one, reason = { NULL, 0 };
    if (suspensions.len == 0 || rv__json_type(suspensions) != RV__JSON_ARRAY)
        return reason;
    rv__json_iter_init(&it, suspensions);
    if (rv__json_next(&it, NULL, &one) && rv__json_type(one) == RV__JSON_OBJECT)
        (void)rv__json_get(one, "reason", &reason);
    return reason;
}

static int put_waiting(void *arg, const struct rv__store_run *row)
{
    struct rv__buf *out = arg;
    if (row->damaged)
        return RV_OK;
    rv__buf_text(out, out->len > 0 && out->text[out->len - 1] == '}' ? "," : "");
    rv__buf_fmt(out, "{\"runId\":\"%.*s\",\"workflow\":", RV__ARG(row->id));
    rv__buf_json_str(out, row->workflow);
    rv__buf_fmt(out, ",\"status\":\"%.*s\",\"createdAt\":%lld", RV__ARG(row->status),
                (long long)row->created_ms);
    struct rv__str reason = rv__first_reason(row->suspension);
    if (reason.len > 0) {
        rv__buf_text(out, ",\"suspension\":");
        rv__buf_str(out, reason);
    }
    rv__buf_char(out, '}');
    return RV_OK;
}

int rv__overview(struct rv__reading *r, int64_t now_ms, char **ret, rv_error *err)
{
    struct rv__overview *o = r->overview;
    struct rv__buf out;
    bool complete = false;
    int64_t first = now_ms / HOUR_MS - (HOURS - 1), from_ms = first * HOUR_MS;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by WORKFLOWS_MOST and OLDEST */
    pthread_mutex_lock(&o->lock);
    drop_old(o, first);
    int rc = go_on(r, o, now_ms, &complete, err);
    rv__buf_fmt(&out, "{\"from\":%lld,\"to\":%lld,\"complete\":%s,\"others\":%u",
                (long long)from_ms, (long long)now_ms, complete ? "true" : "false",
                o->others.ended);
    put_workflows(&out, o, first);
    pthread_mutex_unlock(&o->lock);
    rv__buf_text(&out, ",\"oldestWaiting\":[");
    pthread_mutex_lock(&r->lock);
    if (rc == RV_OK)
        rc = rv__store_oldest_waiting(r->store, OLDEST, put_waiting, &out, err);
    pthread_mutex_unlock(&r->lock);
    rv__buf_text(&out, "]}");
    if (rc == RV_OK)
        rc = rv__buf_err(&out, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&out);
    rv__buf_done(&out);
    return rc;
}
