/* metrics.c: rv_metrics: the metrics of an engine, in the format of Prometheus.
 *
 * The loop increments plain numbers; a call copies them on the loop, and the caller's thread writes the text. The
 * numbers of a step are found through its plan, by an index for each node that is made on first use. The number of
 * series is limited: beyond RV__METRIC_SERIES all names are "other". */
#include "engine/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/member.h"
#include "read/read.h"

/* Buckets in seconds: from a commit on a good disk to a long step. */
static const struct {
    int64_t ns;
    const char *text;
} bounds[RV__METRIC_BUCKETS] = {
    { 100000, "0.0001" },    { 500000, "0.0005" }, { 1000000, "0.001" },  { 5000000, "0.005" },
    { 10000000, "0.01" },    { 50000000, "0.05" }, { 100000000, "0.1" },  { 500000000, "0.5" },
    { 1000000000, "1" },     { 5000000000, "5" },  { 10000000000, "10" }, { 60000000000, "60" },
    { 300000000000, "300" },
};

/* ------------------------------------------------------------------------------- counting --- */

int rv__metrics_init(struct rv__metrics *m, rv_error *err)
{
    m->series = rv__zalloc(RV__METRIC_SERIES, sizeof *m->series);
    if (m->series == NULL)
        return rv__nomem(err);
    m->series[0].workflow = m->series[0].alias = "other";
    m->series_count = 1;
    return RV_OK;
}

void rv__metrics_done(struct rv__metrics *m)
{
    for (size_t i = 1; i < m->series_count; i++)
        rv__free((char *)m->series[i].workflow); /* the alias is behind it */
    rv__free(m->series);
}

static void observe(struct rv__histogram *h, int64_t ns)
{
    size_t i = 0;
    while (i < RV__METRIC_BUCKETS && ns > bounds[i].ns)
        i++;
    h->buckets[i]++;
    h->sum_ns += ns;
}

void rv__metrics_facts(rv_engine *e, const struct rv__facts *facts)
{
    for (int i = 0; i < FACT_KINDS; i++)
        e->metrics->facts[i] += facts->said[i];
}

void rv__metrics_commit(rv_engine *e, int64_t took_ns, size_t runs)
{
    observe(&e->metrics->commit, took_ns);
    e->metrics->commit_runs += runs;
}

/* The series of these names; 0, "other", when there are too many or no memory. */
static uint16_t series_of(struct rv__metrics *m, struct rv__str workflow, struct rv__str alias)
{
    for (size_t i = 1; i < m->series_count; i++) /* once for each node of a plan */
        if (rv__str_is(workflow, m->series[i].workflow) && rv__str_is(alias, m->series[i].alias))
            return (uint16_t)i;
    if (m->series_count == RV__METRIC_SERIES)
        return 0;
    char *names = rv__alloc(workflow.len + alias.len + 2);
    if (names == NULL)
        return 0;
    memcpy(names, workflow.at, workflow.len);
    names[workflow.len] = '\0';
    memcpy(names + workflow.len + 1, alias.at, alias.len);
    names[workflow.len + 1 + alias.len] = '\0';
    struct rv__series *s = &m->series[m->series_count];
    s->workflow = names;
    s->alias = names + workflow.len + 1;
    return (uint16_t)m->series_count++;
}

static struct rv__series *series_for(struct rv__metrics *m, struct rv__plan_ref *plan,
                                     const struct rv__node *node)
{
    enum { UNKNOWN = 0 }; /* in the plan's index: else 1 + which */
    if (plan->series == NULL)
        plan->series = rv__zalloc(plan->plan->node_count, sizeof *plan->series);
    if (plan->series == NULL)
        return &m->series[0];
    if (plan->series[node->id] == UNKNOWN)
        plan->series[node->id] = (uint16_t)(1 +
                                            series_of(m, plan->plan->body.wrap->name, node->alias));
    return &m->series[plan->series[node->id] - 1];
}

void rv__metrics_attempt(rv_engine *e, const struct rv__attempt *a)
{
    const struct rv_ctx *ctx = &a->ctx;
    if (ctx->eval >= 0)
        return;
    struct rv__series *s = series_for(e->metrics, a->run->plan, ctx->view.node);
    int outcome = ctx->outcome == MSG_FAILED ? 1 : ctx->outcome == MSG_PARK ? 3 : ctx->skipped * 2;
    if (ctx->outcome == MSG_NOTE) /* the next attempt continues it */
        return;
    s->outcomes[outcome]++;
    observe(&s->duration, rv__mono_ns(e->clock) - a->begun_ns);
    observe(&s->queue, a->queued_ns);
}

/* -------------------------------------------------------------------------------- reading --- */

struct reading_metrics {
    struct rv__metrics counted; /* its series: a copy */
    struct rv__store_stats stats;
    struct rv__member_counts member;
    uint64_t cells, timers, retained;
    int64_t busy, places;
};

static int copy_all(struct rv__call *call)
{
    struct reading_metrics *m = call->arg;
    rv_engine *e = call->engine;
    struct rv__series *series = m->counted.series;
    m->counted = *e->metrics;
    m->counted.series = series;
    memcpy(series, e->metrics->series, e->metrics->series_count * sizeof *series);
    m->cells = e->run_count;
    m->timers = e->owed_count;
    m->busy = e->lanes[LANE_FUNCTION].taken;
    m->places = e->lanes[LANE_FUNCTION].executor->credits;
    m->retained = e->retain.removed;
    m->member = e->member.counted;
    pthread_mutex_lock(&e->commit.lock); /* never held during a commit */
    m->stats = e->commit.stats;
    pthread_mutex_unlock(&e->commit.lock);
    return RV_OK;
}

static void put_head(struct rv__buf *out, const char *name, const char *type, const char *help)
{
    rv__buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_number(struct rv__buf *out, const char *name, const char *type, const char *help,
                       uint64_t value)
{
    put_head(out, name, type, help);
    rv__buf_fmt(out, "%s %llu\n", name, (unsigned long long)value);
}

/* A label's value: aliases and workflow names need no escapes. */
static void put_histogram(struct rv__buf *out, const char *name, const char *labels,
                          const struct rv__histogram *h)
{
    uint64_t sum = 0;
    const char *comma = *labels != '\0' ? "," : "";
    for (int i = 0; i < RV__METRIC_BUCKETS; i++) {
        sum += h->buckets[i];
        rv__buf_fmt(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma, bounds[i].text,
                    (unsigned long long)sum);
    }
    sum += h->buckets[RV__METRIC_BUCKETS];
    rv__buf_fmt(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                (unsigned long long)sum);
    const char *open = *labels != '\0' ? "{" : "", *close = *labels != '\0' ? "}" : "";
    rv__buf_fmt(out, "%s_sum%s%s%s %lld.%09lld\n", name, open, labels, close,
                (long long)(h->sum_ns / 1000000000), (long long)(h->sum_ns % 1000000000));
    rv__buf_fmt(out, "%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)sum);
}

static void labels_of(const struct rv__series *s, char *ret, size_t room)
{
    snprintf(ret, room, "workflow=\"%s\",alias=\"%s\"", s->workflow, s->alias);
}

static bool used(const struct rv__series *s)
{
    return (s->outcomes[0] | s->outcomes[1] | s->outcomes[2] | s->outcomes[3]) != 0;
}

static void put_steps(struct rv__buf *out, const struct rv__metrics *m)
{
    static const char *const outcomes[] = { "completed", "failed", "skipped", "pending" };
    char labels[2 * RV__PLAN_MAX_NAME + 64];
    put_head(out, "rival_step_attempts_total", "counter", "Attempts of steps, by outcome.");
    for (size_t i = 0; i < m->series_count; i++) {
        labels_of(&m->series[i], labels, sizeof labels);
        for (int k = 0; k < 4; k++)
            if (m->series[i].outcomes[k] != 0)
                rv__buf_fmt(out, "rival_step_attempts_total{%s,outcome=\"%s\"} %llu\n", labels,
                            outcomes[k], (unsigned long long)m->series[i].outcomes[k]);
    }
    put_head(out, "rival_step_duration_seconds", "histogram",
             "How long attempts took, from their start to their answer.");
    for (size_t i = 0; i < m->series_count; i++) {
        labels_of(&m->series[i], labels, sizeof labels);
        if (used(&m->series[i]))
            put_histogram(out, "rival_step_duration_seconds", labels, &m->series[i].duration);
    }
    put_head(out, "rival_step_queue_seconds", "histogram",
             "How long ready attempts waited for a free place.");
    for (size_t i = 0; i < m->series_count; i++) {
        labels_of(&m->series[i], labels, sizeof labels);
        if (used(&m->series[i]))
            put_histogram(out, "rival_step_queue_seconds", labels, &m->series[i].queue);
    }
}

static void put_facts(struct rv__buf *out, const uint64_t facts[FACT_KINDS])
{
    static const struct {
        enum rv__fact_kind kind;
        const char *name;
    } runs[] = { { FACT_RUN_COMPLETED, "completed" },
                 { FACT_RUN_FAILED, "failed" },
                 { FACT_RUN_CANCELLED, "cancelled" } },
      steps[] = { { FACT_STEP_COMPLETED, "completed" },
                  { FACT_STEP_FAILED, "failed" },
                  { FACT_STEP_SKIPPED, "skipped" },
                  { FACT_STEP_RETRYING, "retrying" },
                  { FACT_STEP_LOST, "lost" } };
    put_number(out, "rival_runs_started_total", "counter", "Runs that began.",
               facts[FACT_RUN_STARTED]);
    put_head(out, "rival_runs_ended_total", "counter", "Runs that ended, by status.");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        rv__buf_fmt(out, "rival_runs_ended_total{status=\"%s\"} %llu\n", runs[i].name,
                    (unsigned long long)facts[runs[i].kind]);
    put_number(out, "rival_runs_suspended_total", "counter", "Times a run was suspended.",
               facts[FACT_RUN_SUSPENDED]);
    put_number(out, "rival_steps_started_total", "counter", "Attempts and waits started.",
               facts[FACT_STEP_STARTED]);
    put_head(out, "rival_steps_total", "counter",
             "Steps that ended, by outcome; and attempts that are tried again.");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        rv__buf_fmt(out, "rival_steps_total{outcome=\"%s\"} %llu\n", steps[i].name,
                    (unsigned long long)facts[steps[i].kind]);
}

static int put_count(void *arg, struct rv__str status, uint64_t runs)
{
    rv__buf_fmt(arg, "rival_runs{status=\"%.*s\"} %llu\n", RV__ARG(status),
                (unsigned long long)runs);
    return RV_OK;
}

/* The figures of the store, read through the readers' handle on the caller's thread. */
static int put_store(struct rv__reading *r, struct rv__buf *out, rv_error *err)
{
    struct rv__store_usage usage = { 0 };
    put_head(out, "rival_runs", "gauge", "Runs in the store, by status.");
    pthread_mutex_lock(&r->lock);
    int rc = rv__store_counts(r->store, put_count, out, err);
    if (rc == RV_OK)
        rc = rv__store_usage(r->store, &usage, err);
    pthread_mutex_unlock(&r->lock);
    put_number(out, "rival_store_bytes", "gauge", "Size of the store, without free space.",
               usage.bytes);
    put_number(out, "rival_store_seq", "gauge", "The last number of the journal.", usage.last_seq);
    return rc;
}

/* Of a process that shares its store with others. */
static void put_member(struct rv__buf *out, const rv_engine *e, const struct reading_metrics *m)
{
    if (!rv__member_is(e))
        return;
    put_number(out, "rival_member_id", "gauge", "This process's number among the members.",
               (uint64_t)rv__member_id(e));
    put_number(out, "rival_member_lease_seconds", "gauge", "How long its lease is.",
               (uint64_t)e->member.lease_ms / 1000);
    put_number(out, "rival_member_claimed_total", "counter", "Runs that it claimed.",
               m->member.claimed);
    put_number(out, "rival_member_taken_over_total", "counter",
               "Of these, runs of members that had ended.", m->member.taken_over);
    put_number(out, "rival_member_handed_over_total", "counter", "Runs that it gave up for others.",
               m->member.handed_over);
    put_number(out, "rival_member_refused_total", "counter",
               "Runs that it lost because another member had written them.", m->member.refused);
    put_number(out, "rival_member_fenced_total", "counter",
               "Times that its lease was over and it joined again.", m->member.fenced);
}

static void put_engine(struct rv__buf *out, const struct reading_metrics *m,
                       const struct rv__reading *r)
{
    put_number(out, "rival_commits_total", "counter", "Successful commits.", m->stats.commits);
    put_number(out, "rival_commit_failures_total", "counter", "Failed commits.", m->stats.failures);
    put_number(out, "rival_commit_runs_total", "counter", "Runs in those commits.",
               m->counted.commit_runs);
    put_head(out, "rival_commit_seconds", "histogram", "How long commits took.");
    put_histogram(out, "rival_commit_seconds", "", &m->counted.commit);
    put_number(out, "rival_wal_bytes", "gauge", "Written, not yet carried over into the file.",
               (uint64_t)m->stats.wal_bytes);
    put_number(out, "rival_inbox_letters_total", "counter", "Messages taken by the loop.",
               m->counted.letters);
    put_number(out, "rival_inbox_length", "gauge", "Messages taken by the last turn.",
               m->counted.letters_last);
    put_number(out, "rival_cells", "gauge", "Runs in memory.", m->cells);
    put_number(out, "rival_owed", "gauge", "Work in flight and timers.", m->timers);
    put_number(out, "rival_workers", "gauge", "Places for functions.", (uint64_t)m->places);
    put_number(out, "rival_workers_busy", "gauge", "Places in use.", (uint64_t)m->busy);
    put_number(out, "rival_feeds", "gauge", "Subscriptions that are open.", atomic_load(&r->feeds));
    put_number(out, "rival_retained_total", "counter", "Runs that retention removed by itself.",
               m->retained);
}

int rv_metrics(rv_engine *e, char **ret, rv_error *err)
{
    struct reading_metrics m = { .cells = 0 };
    struct rv__buf out;
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_metrics: no engine, or nowhere to put the text");
    m.counted.series = rv__alloc(RV__METRIC_SERIES * sizeof *m.counted.series);
    if (m.counted.series == NULL)
        return rv__nomem(err);
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by RV__METRIC_SERIES */
    rv__engine_enter(e);
    int rc = rv__call_ask(e, copy_all, &m, err);
    if (rc == RV_OK) {
        put_facts(&out, m.counted.facts);
        put_steps(&out, &m.counted);
        put_engine(&out, &m, e->reading);
        put_member(&out, e, &m);
        rc = put_store(e->reading, &out, err);
    }
    rv__engine_leave(e);
    if (rc == RV_OK)
        rc = rv__buf_err(&out, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&out);
    rv__buf_done(&out);
    rv__free(m.counted.series);
    return rc;
}
