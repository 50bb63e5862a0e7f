/* why.c: what a run waits for, as JSON for people and programs (rv_why).
 *
 * The owner of the run's cell reports each wait (rv__why_add). Waits are grouped at once, so that a run with a
 * hundred thousand iterations costs its loop only one walk. The journal has the times since when they wait: these
 * are looked up when the JSON is written, on the caller's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "read/read.h"

enum {
    GROUPS = 256, /* reasons times steps; the rest is counted as `others` */
    SAMPLES = 10, /* nodes listed in a group */
};

static const char *const reason_names[WHY_REASONS] = { "running", "place",    "concurrency",
                                                       "timer",   "retry",    "signal",
                                                       "handle",  "decision", "turn",
                                                       "worker",  "limit" };

/* Names of executors, and what to say about them. */
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
    size_t path, name; /* offsets in `texts`; */
    size_t asks;       /* what an attempt asks for, a JSON object; 0: nothing */
};

struct group {
    struct rv__why_about about;
    const struct rv__node *node; /* only for comparison: its plan may be freed later */
    int eval;
    int64_t count, limit, since_ms, due_ms;
    size_t alias, function; /* offsets in `texts`; function: one that no process offers; 0 = none */
    size_t cause;           /* of a suspension, JSON; the same */
    bool of_secret;         /* `function` is the name of a secret without a value */
    struct sample samples[SAMPLES];
    size_t sample_count;
};

struct rv__why {
    struct group *groups;
    size_t count, last; /* last: the group of the last wait */
    int64_t others;
    enum rv__run_status status;
    size_t failed_path; /* an offset in `texts`; 0 = none */
    struct rv__buf texts;
};

/* ------------------------------------------------------------------------------- gathering --- */

int rv__why_new(struct rv__why **ret, rv_error *err)
{
    struct rv__why *why = rv__zalloc(1, sizeof *why);
    struct group *groups = rv__zalloc(GROUPS, sizeof *groups);
    if (why == NULL || groups == NULL) {
        rv__free(why);
        rv__free(groups);
        return rv__nomem(err);
    }
    why->groups = groups;
    rv__buf_init(&why->texts, SIZE_MAX / 8); /* bounded by GROUPS and SAMPLES */
    rv__buf_char(&why->texts, '\0');         /* 0 is none */
    *ret = why;
    return RV_OK;
}

void rv__why_free(struct rv__why *why)
{
    if (why == NULL)
        return;
    rv__buf_done(&why->texts);
    rv__free(why->groups);
    rv__free(why);
}

static size_t keep(struct rv__why *why, struct rv__str text)
{
    size_t at = why->texts.len;
    rv__buf_str(&why->texts, text);
    rv__buf_char(&why->texts, '\0');
    return at;
}

void rv__why_run(struct rv__why *why, enum rv__run_status status, struct rv__str failed_path)
{
    why->status = status;
    if (failed_path.len > 0)
        why->failed_path = keep(why, failed_path);
}

/* Siblings follow each other: the search begins at the last group. `lane` separates kinds of places. */
static struct group *find_group(struct rv__why *why, const struct rv__wait *wait,
                                const struct rv__why_about *about)
{
    for (size_t k = 0; k < why->count; k++) {
        size_t i = (why->last + k) % why->count;
        struct group *g = &why->groups[i];
        if (g->about.reason == about->reason && g->node == wait->node && g->eval == wait->eval &&
            g->about.lane == about->lane) {
            why->last = i;
            return g;
        }
    }
    return NULL;
}

static struct group *add_group(struct rv__why *why, const struct rv__wait *wait,
                               const struct rv__why_about *about)
{
    if (why->count == GROUPS)
        return NULL;
    why->last = why->count;
    struct group *g = &why->groups[why->count++];
    *g = (struct group){
        .about = *about, .node = wait->node, .eval = wait->eval, .limit = wait->limit
    };
    g->alias = keep(why, wait->node != NULL ? wait->node->alias : rv__str(""));
    if (about->reason == WHY_WORKER) {
        g->of_secret = !rv__str_none(about->secret);
        g->function = keep(why, g->of_secret ? about->secret : about->function);
    }
    if (!rv__str_none(wait->cause))
        g->cause = keep(why, wait->cause);
    g->about.function = g->about.secret = (struct rv__str){ NULL, 0 }; /* their plan may be freed */
    return g;
}

void rv__why_add(struct rv__why *why, const struct rv__wait *wait,
                 const struct rv__why_about *about)
{
    struct group *g = find_group(why, wait, about);
    if (g == NULL)
        g = add_group(why, wait, about);
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
                               .since_ms = wait->since_ms,
                               .due_ms = wait->due_ms,
                               .attempt = wait->attempt };
    sample->path = why->texts.len;
    if (wait->node != NULL)
        rv__node_path(wait->node, wait->vector, &why->texts);
    rv__buf_char(&why->texts, '\0');
    sample->name = keep(why, wait->name);
    struct rv__str asks;
    if (!rv__str_none(wait->note) && rv__json_get(wait->note, "ask", &asks))
        sample->asks = keep(why, asks);
}

int rv__why_err(const struct rv__why *why, rv_error *err)
{
    return rv__buf_err(&why->texts, err);
}

/* --------------------------------------------------------------------------------- telling --- */

/* Look up since when the listed nodes wait, in the journal. One that is not found has continued meanwhile. */
static int look_up(struct rv__reading *r, const char *run_id, struct rv__why *why, rv_error *err)
{
    const struct rv__trace *trace = NULL;
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
            if (sample->since_ms == 0) /* it was not told with the wait */
                sample->since_ms = g->about.reason == WHY_RETRY ? a->error_ms : a->ready_ms;
            if (g->since_ms == 0 || sample->since_ms < g->since_ms)
                g->since_ms = sample->since_ms;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return rc == RV_ETOOBIG ? RV_OK : rc; /* a run too large for a trace is shown without times */
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

/* The sentence, and what is asked: a JSON string, whose quotes are taken off. */
static void put_question(struct rv__buf *out, const char *sentence, struct rv__str asks)
{
    struct rv__str question;
    rv__buf_text(out, ",\"message\":");
    if (!rv__json_get(asks, "message", &question) || rv__json_type(question) != RV__JSON_STRING) {
        rv__buf_json_str(out, rv__str(sentence));
        return;
    }
    size_t at = out->len;
    rv__buf_json_str(out, rv__str(sentence));
    if (out->len > at)
        rv__buf_cut(out, out->len - 1);
    rv__buf_text(out, ": ");
    rv__buf_add(out, question.at + 1, question.len - 1);
}

/* A sentence for people. */
static void put_message(struct rv__buf *out, const struct rv__why *why, const struct group *g)
{
    const char *texts = why->texts.text, *alias = texts + g->alias;
    const struct sample *first = &g->samples[0];
    char text[400];
    switch (g->about.reason) {
    case WHY_RUNNING:
        if (g->eval >= 0)
            snprintf(text, sizeof text, "'%s' of '%.100s' %s",
                     rv__eval_name((enum rv__eval)g->eval), alias, says(g->about.executor));
        else
            snprintf(text, sizeof text, "'%.100s' %s", alias, says(g->about.executor));
        break;
    case WHY_PLACE:
        snprintf(text, sizeof text, "'%.100s' waits for %s", alias, g->about.place);
        break;
    case WHY_CONCURRENCY:
        snprintf(text, sizeof text, "%lld more %s of '%.100s' %s: at most %lld run at once",
                 (long long)g->count, g->count == 1 ? "iteration" : "iterations", alias,
                 g->count == 1 ? "waits" : "wait", (long long)g->limit);
        break;
    case WHY_TIMER: snprintf(text, sizeof text, "'%.100s' waits for its time", alias); break;
    case WHY_RETRY:
        snprintf(text, sizeof text, "'%.100s' waits for attempt %d", alias, first->attempt);
        break;
    case WHY_SIGNAL:
        snprintf(text, sizeof text, "'%.100s' waits for the signal '%.100s'", alias,
                 texts + first->name);
        if (first->asks != 0) {
            put_question(out, text, rv__str(texts + first->asks));
            return;
        }
        break;
    case WHY_HANDLE:
        snprintf(text, sizeof text, "'%.100s' waits for somebody to complete '%.100s'", alias,
                 texts + first->name);
        break;
    case WHY_DECISION: snprintf(text, sizeof text, "'%.100s' waits for a decision", alias); break;
    case WHY_TURN: snprintf(text, sizeof text, "'%.100s' continues at once", alias); break;
    case WHY_WORKER:
        if (g->of_secret)
            snprintf(text, sizeof text, "'%.100s' waits for a value of the secret %.200s", alias,
                     texts + g->function);
        else if (g->about.command && g->about.unclaimed)
            snprintf(text, sizeof text,
                     "'%.100s' waits for a member with the file of workflow '%.160s': none has it",
                     alias, texts + g->function);
        else
            snprintf(text, sizeof text, "'%.100s' waits for a worker that offers '%.200s'%s", alias,
                     texts + g->function,
                     g->about.unclaimed ? ": no member of the store offers it" : "");
        break;
    case WHY_LIMIT:
        snprintf(text, sizeof text, "'%.100s' waits for the limit '%.200s'", alias, g->about.limit);
        break;
    case WHY_REASONS: return;
    }
    put_text(out, ",\"message\":", text);
}

static void put_samples(struct rv__buf *out, const struct rv__why *why, const struct group *g)
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
        if (s->asks != 0) {
            rv__buf_text(out, ",\"asks\":");
            rv__buf_text(out, texts + s->asks);
        }
        rv__buf_char(out, '}');
    }
    rv__buf_char(out, ']');
}

static void put_group(struct rv__buf *out, const struct rv__why *why, const struct group *g)
{
    const char *texts = why->texts.text;
    put_text(out, "{\"reason\":", reason_names[g->about.reason]);
    put_int(out, ",\"count\":", g->count);
    if (g->since_ms != 0)
        put_int(out, ",\"since\":", g->since_ms);
    if (texts[g->alias] != '\0')
        put_text(out, ",\"step\":", texts + g->alias);
    if (g->about.reason == WHY_RUNNING || g->about.reason == WHY_PLACE)
        put_text(out, ",\"executor\":", g->about.executor);
    if ((g->about.reason == WHY_RUNNING || g->about.reason == WHY_PLACE) && g->eval >= 0)
        put_text(out, ",\"evaluating\":", rv__eval_name((enum rv__eval)g->eval));
    if (g->about.reason == WHY_PLACE || g->about.reason == WHY_LIMIT) {
        put_text(out, ",\"limit\":", g->about.limit);
        if (g->about.places != 0) /* a reader does not know the limits of the driving process */
            put_int(out, ",\"limitSize\":", g->about.places);
    }
    if (g->about.reason == WHY_CONCURRENCY)
        put_int(out, ",\"limitSize\":", g->limit);
    if (g->due_ms != 0)
        put_int(out, ",\"dueAt\":", g->due_ms);
    if (g->about.reason == WHY_RETRY)
        put_int(out, ",\"attempt\":", g->samples[0].attempt);
    if ((g->about.reason == WHY_SIGNAL || g->about.reason == WHY_HANDLE) && g->sample_count > 0)
        put_text(out, ",\"name\":", texts + g->samples[0].name);
    if (g->about.reason == WHY_WORKER)
        put_text(out, g->of_secret ? ",\"secret\":" : ",\"function\":", texts + g->function);
    if (g->cause != 0) {
        rv__buf_text(out, ",\"cause\":");
        rv__buf_text(out, texts + g->cause);
    }
    put_message(out, why, g);
    put_samples(out, why, g);
    rv__buf_char(out, '}');
}

static int write_all(const struct rv__why *why, const char *run_id, char **ret, rv_error *err)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX / 8); /* bounded by GROUPS and SAMPLES */
    put_text(&out, "{\"runId\":", run_id);
    put_text(&out, ",\"status\":", rv__run_status_name(why->status));
    if (why->failed_path != 0)
        put_text(&out, ",\"failedPath\":", why->texts.text + why->failed_path);
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

int rv__why_tell(struct rv__reading *r, const char *run_id, struct rv__why *why, char **ret,
                 rv_error *err)
{
    int rc = why->count > 0 ? look_up(r, run_id, why, err) : RV_OK;
    if (rc < 0)
        return rc;
    qsort(why->groups, why->count, sizeof *why->groups, oldest_first);
    return write_all(why, run_id, ret, err);
}
