/* why.c: rv_why: what a run waits for.
 *
 * The loop says what each thing alive waits for (flow: rv__cell_waits) and what of that is in flight; it
 * groups as it goes, so that a run with a hundred thousand iterations costs it a walk and no more. Since
 * when they wait is in the journal: that is looked up on the caller's thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/context.h"
#include "engine/control.h"
#include "engine/reading.h"

enum {
    GROUPS = 256, /* reasons times steps: what is more is counted in the last one's `others` */
    SAMPLES = 10, /* nodes that are named in a group */
};

enum reason {
    REASON_RUNNING,
    REASON_PLACE,
    REASON_CONCURRENCY,
    REASON_TIMER,
    REASON_RETRY,
    REASON_SIGNAL,
    REASON_HANDLE,
    REASON_DECISION,
    REASON_TURN,
    REASON_WORKER,
};

static const char *const reason_names[] = { "running", "place",  "concurrency", "timer", "retry",
                                            "signal",  "handle", "decision",    "turn",  "worker" };

static const struct {
    const char *limit, *place; /* as JSON has it; as people say it */
} lanes[LANES] = {
    [LANE_NONE] = { "none", "nothing" },
    [LANE_FUNCTION] = { "workers", "a free worker" },
    [LANE_HOST] = { "workers", "a free worker" },
    [LANE_IO] = { "io", "a free place for commands" },
    [LANE_EVAL] = { "evaluator", "the evaluator" },
    [LANE_SUSPECT] = { "suspects, one at a time", "its turn: the engine died twice while it ran, "
                                                  "and such steps run one at a time" },
    [LANE_HTTP] = { "connections", "a free connection" },
    [LANE_NOBODY] = { "none", "nobody" }, /* told as REASON_WORKER */
};

/* What runs a thing, and how that is said. */
static const struct {
    const char *name, *says;
} executors[] = {
    { "thread", "runs on a thread" },   { "host", "runs in a host process" },
    { "command", "runs as a command" }, { "http", "waits for an answer over HTTP" },
    { "evaluator", "is evaluated" },    { "function", "runs" },
};

struct sample {
    uint64_t actor;
    int64_t since_ms, due_ms;
    int attempt;
    size_t path, name; /* where in `texts` */
};

struct group {
    enum reason reason;
    const struct rv__node *node; /* for comparing only: its plan may be gone afterwards */
    enum rv__lane lane;
    int eval;
    const char *executor; /* of what runs */
    int64_t count, limit, since_ms, due_ms;
    size_t alias, function; /* where in `texts`; function: that nobody has; 0 = none */
    struct sample samples[SAMPLES];
    size_t sample_count;
};

struct why {
    struct group *groups;
    size_t count, last; /* last: the one that the last wait went to */
    int64_t others;
    int64_t places[LANES]; /* in all */
    enum rv__run_status status;
    size_t suspension; /* where in `texts`; 0 = none */
    struct rv__buf texts;
    struct rv__run *run; /* of the loop, during the walk */
};

/* ------------------------------------------------------------------------- the loop's side --- */

static size_t keep(struct why *why, struct rv__str text)
{
    size_t at = why->texts.len;
    rv__buf_str(&why->texts, text);
    rv__buf_char(&why->texts, '\0');
    return at;
}

static enum reason reason_of(const struct rv__wait *wait)
{
    switch (wait->kind) {
    case WAIT_WORK: return REASON_RUNNING;
    case WAIT_PLACE: return wait->lane == LANE_NOBODY ? REASON_WORKER : REASON_PLACE;
    case WAIT_LIMIT: return REASON_CONCURRENCY;
    case WAIT_TIMER: return REASON_TIMER;
    case WAIT_RETRY: return REASON_RETRY;
    case WAIT_SIGNAL: return REASON_SIGNAL;
    case WAIT_HANDLE: return REASON_HANDLE;
    case WAIT_DECISION: return REASON_DECISION;
    case WAIT_TURN: break;
    }
    return REASON_TURN;
}

/* Who runs it. A reader cannot know of a `call` whether its function is in a host: it has none. */
static const char *executor_of(const struct why *why, const struct rv__wait *wait)
{
    const struct rv__run *run = why->run;
    if (wait->node == NULL || wait->lane == LANE_EVAL)
        return "evaluator";
    if (wait->lane == LANE_HOST)
        return "host";
    if (wait->lane != LANE_FUNCTION && wait->lane != LANE_SUSPECT)
        return rv__step_kind_name(wait->node->step.kind);
    if (rv__node_hosted(wait->node))
        return "host";
    if (wait->eval >= 0 || wait->node->step.kind != STEP_CALL)
        return "thread";
    if (run->engine->read_only)
        return "function";
    const struct rv__function *function = rv__plan_ref_fn(run->plan, wait->node, wait->eval);
    return function != NULL && function->module != NULL ? "host" : "thread";
}

static struct group *group_of(struct why *why, const struct rv__wait *wait, enum reason reason)
{
    for (size_t k = 0; k < why->count; k++) { /* siblings come one after the other */
        size_t i = (why->last + k) % why->count;
        struct group *g = &why->groups[i];
        if (g->reason == reason && g->node == wait->node && g->eval == wait->eval &&
            g->lane == wait->lane) {
            why->last = i;
            return g;
        }
    }
    if (why->count == GROUPS)
        return NULL;
    why->last = why->count;
    struct group *g = &why->groups[why->count++];
    *g = (struct group){ .reason = reason,
                         .node = wait->node,
                         .lane = wait->lane,
                         .eval = wait->eval,
                         .limit = wait->limit };
    if (reason == REASON_RUNNING)
        g->executor = executor_of(why, wait);
    g->alias = keep(why, wait->node != NULL ? wait->node->alias : rv__str(""));
    if (reason == REASON_WORKER)
        g->function = keep(why, wait->name);
    return g;
}

static void take_wait(void *arg, const struct rv__wait *wait)
{
    struct why *why = arg;
    struct group *g = group_of(why, wait, reason_of(wait));
    if (g == NULL) {
        why->others += wait->count;
        return;
    }
    g->count += wait->count;
    if (wait->due_ms != 0 && (g->due_ms == 0 || wait->due_ms < g->due_ms))
        g->due_ms = wait->due_ms;
    if (g->sample_count == SAMPLES)
        return;
    struct sample *sample = &g->samples[g->sample_count++];
    *sample = (struct sample){ .actor = wait->actor,
                               .due_ms = wait->due_ms,
                               .attempt = wait->attempt };
    sample->path = why->texts.len;
    if (wait->node != NULL)
        rv__node_path(wait->node, wait->vector, &why->texts);
    rv__buf_char(&why->texts, '\0');
    sample->name = keep(why, wait->name);
}

static int look(struct rv__call *call, struct rv__run *run)
{
    struct why *why = call->arg;
    rv_engine *e = run->engine;
    why->run = run;
    why->status = rv__cell_status(run->cell);
    rv__buf_char(&why->texts, '\0'); /* 0 is none */
    if (rv__cell_suspension(run->cell).len > 0)
        why->suspension = keep(why, rv__cell_suspension(run->cell));
    if (!e->read_only)
        memcpy(why->places, e->places, sizeof why->places);
    rv__cell_waits(run->cell, take_wait, why);
    why->run = NULL;
    return rv__buf_err(&why->texts, &call->err);
}

/* ----------------------------------------------------------------------- the caller's side --- */

/* Since when: what the journal says of those that are named. One that is not there any more has gone on
 * meanwhile. */
static int look_up(rv_engine *e, const char *run_id, struct why *why, rv_error *err)
{
    const struct rv__trace *trace = NULL;
    struct rv__reading *r = e->reading;
    pthread_mutex_lock(&r->lock);
    int rc = rv__reading_trace(r, run_id, &trace, err);
    for (size_t i = 0; i < why->count && rc == RV_OK; i++) {
        struct group *g = &why->groups[i];
        for (size_t k = 0; k < g->sample_count; k++) {
            struct sample *sample = &g->samples[k];
            uint32_t at = rv__trace_find(trace, sample->actor);
            if (at == 0)
                continue;
            const struct rv__traced *a = &trace->at[at];
            sample->since_ms = g->reason == REASON_RETRY ? a->error_ms : a->ready_ms;
            if (g->since_ms == 0 || sample->since_ms < g->since_ms)
                g->since_ms = sample->since_ms;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return rc == RV_ETOOBIG ? RV_OK : rc; /* a run too large for it is told without */
}

static int oldest_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if ((x->since_ms == 0) != (y->since_ms == 0))
        return x->since_ms == 0 ? 1 : -1;
    return (x->since_ms > y->since_ms) - (x->since_ms < y->since_ms);
}

static void put_int(struct rv__buf *out, const char *key, int64_t value)
{
    rv__buf_text(out, key);
    rv__buf_int(out, value);
}

static void put_text(struct rv__buf *out, const char *key, const char *text)
{
    rv__buf_text(out, key);
    rv__buf_json_str(out, rv__str(text));
}

static const char *says(const char *executor)
{
    for (size_t i = 0; i < sizeof executors / sizeof *executors; i++)
        if (strcmp(executors[i].name, executor) == 0)
            return executors[i].says;
    return "runs";
}

/* A sentence for people. */
static void put_message(struct rv__buf *out, const struct why *why, const struct group *g)
{
    const char *texts = why->texts.text, *alias = texts + g->alias;
    const struct sample *first = &g->samples[0];
    char text[400];
    switch (g->reason) {
    case REASON_RUNNING:
        if (g->eval >= 0)
            snprintf(text, sizeof text, "'%s' of '%.100s' %s",
                     rv__eval_name((enum rv__eval)g->eval), alias, says(g->executor));
        else
            snprintf(text, sizeof text, "'%.100s' %s", alias, says(g->executor));
        break;
    case REASON_PLACE:
        snprintf(text, sizeof text, "'%.100s' waits for %s", alias, lanes[g->lane].place);
        break;
    case REASON_CONCURRENCY:
        snprintf(text, sizeof text, "%lld more iterations of '%.100s' wait: %lld at once",
                 (long long)g->count, alias, (long long)g->limit);
        break;
    case REASON_TIMER: snprintf(text, sizeof text, "'%.100s' waits for its time", alias); break;
    case REASON_RETRY:
        snprintf(text, sizeof text, "'%.100s' waits for attempt %d", alias, first->attempt);
        break;
    case REASON_SIGNAL:
        snprintf(text, sizeof text, "'%.100s' waits for the signal '%.100s'", alias,
                 texts + first->name);
        break;
    case REASON_HANDLE:
        snprintf(text, sizeof text, "'%.100s' waits for somebody to complete '%.100s'", alias,
                 texts + first->name);
        break;
    case REASON_DECISION:
        snprintf(text, sizeof text, "'%.100s' waits for a decision: the run is suspended", alias);
        break;
    case REASON_TURN: snprintf(text, sizeof text, "'%.100s' goes on at once", alias); break;
    case REASON_WORKER:
        snprintf(text, sizeof text, "'%.100s' waits for somebody who has the function '%.200s'",
                 alias, texts + g->function);
        break;
    }
    put_text(out, ",\"message\":", text);
}

static void put_samples(struct rv__buf *out, const struct why *why, const struct group *g)
{
    const char *texts = why->texts.text;
    rv__buf_text(out, ",\"nodes\":[");
    for (size_t i = 0; i < g->sample_count; i++) {
        const struct sample *s = &g->samples[i];
        put_text(out, i ? ",{\"path\":" : "{\"path\":", texts + s->path);
        if (s->since_ms != 0)
            put_int(out, ",\"since\":", s->since_ms);
        if (s->due_ms != 0)
            put_int(out, ",\"dueAt\":", s->due_ms);
        if (s->attempt != 0)
            put_int(out, ",\"attempt\":", s->attempt);
        if (texts[s->name] != '\0')
            put_text(out, ",\"name\":", texts + s->name);
        rv__buf_char(out, '}');
    }
    rv__buf_char(out, ']');
}

static void put_group(struct rv__buf *out, const struct why *why, const struct group *g)
{
    const char *texts = why->texts.text;
    put_text(out, "{\"reason\":", reason_names[g->reason]);
    put_int(out, ",\"count\":", g->count);
    if (g->since_ms != 0)
        put_int(out, ",\"since\":", g->since_ms);
    if (texts[g->alias] != '\0')
        put_text(out, ",\"step\":", texts + g->alias);
    if (g->reason == REASON_RUNNING)
        put_text(out, ",\"executor\":", g->executor);
    if ((g->reason == REASON_RUNNING || g->reason == REASON_PLACE) && g->eval >= 0)
        put_text(out, ",\"evaluating\":", rv__eval_name((enum rv__eval)g->eval));
    if (g->reason == REASON_PLACE) {
        put_text(out, ",\"limit\":", lanes[g->lane].limit);
        if (why->places[g->lane] != 0) /* a reader does not know those of the process that drives */
            put_int(out, ",\"limitSize\":", why->places[g->lane]);
    }
    if (g->reason == REASON_CONCURRENCY)
        put_int(out, ",\"limitSize\":", g->limit);
    if (g->due_ms != 0)
        put_int(out, ",\"dueAt\":", g->due_ms);
    if (g->reason == REASON_RETRY)
        put_int(out, ",\"attempt\":", g->samples[0].attempt);
    if ((g->reason == REASON_SIGNAL || g->reason == REASON_HANDLE) && g->sample_count > 0)
        put_text(out, ",\"name\":", texts + g->samples[0].name);
    if (g->reason == REASON_WORKER)
        put_text(out, ",\"function\":", texts + g->function);
    if (g->reason == REASON_DECISION && why->suspension != 0) {
        rv__buf_text(out, ",\"cause\":");
        rv__buf_text(out, texts + why->suspension);
    }
    put_message(out, why, g);
    put_samples(out, why, g);
    rv__buf_char(out, '}');
}

static int write_all(const struct why *why, const char *run_id, char **ret, rv_error *err)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by GROUPS and SAMPLES */
    put_text(&out, "{\"runId\":", run_id);
    put_text(&out, ",\"status\":", rv__run_status_name(why->status));
    rv__buf_text(&out, ",\"waits\":[");
    for (size_t i = 0; i < why->count; i++) {
        if (i > 0)
            rv__buf_char(&out, ',');
        put_group(&out, why, &why->groups[i]);
    }
    rv__buf_char(&out, ']');
    if (why->others > 0)
        put_int(&out, ",\"others\":", why->others);
    rv__buf_char(&out, '}');
    int rc = rv__buf_err(&out, err);
    if (rc == RV_OK)
        *ret = rv__buf_take(&out);
    rv__buf_done(&out);
    return rc;
}

int rv_why(rv_engine *e, const char *run_id, char **ret, rv_error *err)
{
    struct why why = { .count = 0 };
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_why: no engine, or nowhere to put the answer");
    if (e->attached != NULL) { /* who drives it knows more */
        rv_error why_not;
        int rc = rv__attached_why(e, run_id, ret, &why_not);
        if (rc != RV_ECLOSED && rc != RV_EFAILED && rc != RV_EBUSY)
            return rc == RV_OK ? rc : rv__fail(err, rc, "%s", why_not.message);
    }
    why.groups = rv__zalloc(GROUPS, sizeof *why.groups);
    if (why.groups == NULL)
        return rv__nomem(err);
    rv__buf_init(&why.texts, SIZE_MAX / 8); /* bounded by GROUPS and SAMPLES */
    rv__engine_enter(e);
    int rc = rv__call_look(e, run_id, look, &why, err);
    if (rc == RV_OK && why.count > 0)
        rc = look_up(e, run_id, &why, err);
    rv__engine_leave(e);
    if (rc == RV_OK) {
        qsort(why.groups, why.count, sizeof *why.groups, oldest_first);
        rc = write_all(&why, run_id, ret, err);
    }
    rv__buf_done(&why.texts);
    rv__free(why.groups);
    return rc;
}

void rv_free(void *text)
{
    rv__free(text);
}
