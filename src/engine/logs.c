/* logs.c: log lines on their way to the store. They are taken from attempts from time to time, and at their end, and
 * are kept with their run until its next commit. */
#include <stdio.h>

#include "base/bugs.h"
#include "base/json.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/engine.h"

/* Whose lines they are. */
struct speaker {
    struct rv__str path, step;
    int attempt;
};

/* RV_ENOMEM: it is not there. */
static int keep_line(struct rv__run *run, const struct speaker *speaker,
                     const struct rv__log_line *line)
{
    struct rv__kept_line head = { .at_ms = line->at_ms,
                                  .level = line->level,
                                  .attempt = speaker->attempt,
                                  .stream = line->stream,
                                  .path = (uint32_t)speaker->path.len,
                                  .step = (uint32_t)speaker->step.len,
                                  .message = (uint32_t)line->message.len,
                                  .metadata = (uint32_t)line->metadata.len };
    size_t before = run->logs.len;
    rv__buf_add(&run->logs, (const char *)&head, sizeof head);
    rv__buf_str(&run->logs, speaker->path);
    rv__buf_str(&run->logs, speaker->step);
    rv__buf_str(&run->logs, line->message);
    rv__buf_str(&run->logs, line->metadata);
    if (rv__buf_err(&run->logs, NULL) < 0) {
        rv__buf_cut(&run->logs, before);
        run->logs.rc = RV_OK; /* those before it are whole */
        return RV_ENOMEM;
    }
    run->log_count++;
    return RV_OK;
}

/* Its lines, oldest first, after those that there was no memory for before. */
static void take_lines(struct rv__attempt *attempt)
{
    struct rv__log_line *newest = atomic_exchange_explicit(&attempt->ctx.logs, NULL,
                                                           memory_order_acquire);
    struct rv__log_line *oldest = NULL, **end = &attempt->unkept;
    while (newest != NULL) {
        struct rv__log_line *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = oldest;
}

/* The pieces of an answer that its lines begin with: as one line. RV_ENOMEM: nothing is taken. */
static int keep_pieces(struct rv__attempt *attempt, const struct speaker *speaker)
{
    const struct rv__log_line *first = attempt->unkept, *line = first;
    struct rv__buf text;
    rv__buf_init(&text, SIZE_MAX / 8); /* bounded by two of them */
    for (; line != NULL && line->stream && text.len < RV__LOG_BYTES; line = line->next)
        rv__buf_str(&text, line->message);
    int rc = rv__buf_err(&text, NULL);
    if (rc == RV_OK)
        rc = keep_line(attempt->run, speaker,
                       &(struct rv__log_line){ .at_ms = first->at_ms,
                                               .level = first->level,
                                               .stream = true,
                                               .message = rv__buf_view(&text) });
    rv__buf_done(&text);
    while (rc == RV_OK && attempt->unkept != line)
        attempt->unkept = attempt->unkept->next;
    return rc;
}

void rv__attempt_forget_stream(struct rv__attempt *attempt)
{
    struct rv__run *run = attempt->run;
    struct rv__buf path;
    rv__buf_init(&path, RV__PATH_BYTES);
    rv__node_path(attempt->ctx.view.node, attempt->ctx.view.vector, &path);
    size_t before = run->answered.len;
    rv__buf_str(&run->answered, rv__buf_view(&path));
    rv__buf_char(&run->answered, '\0');
    if (path.rc == RV_OK && run->answered.rc == RV_OK) {
        run->answered_count++;
    } else { /* no memory: they stay for the next time */
        rv__buf_cut(&run->answered, before);
        run->answered.rc = RV_OK;
    }
    rv__buf_done(&path);
}

/* Its step may still run: only the lines are touched. */
int rv__attempt_keep_logs(struct rv__attempt *attempt, bool ended)
{
    struct rv_ctx *ctx = &attempt->ctx;
    struct rv__run *run = attempt->run;
    bool too_many = ended && ctx->log_count > RV__LOG_LINES;
    take_lines(attempt);
    if (attempt->unkept == NULL && !too_many)
        return RV_OK;
    struct rv__buf path;
    rv__buf_init(&path, RV__PATH_BYTES);
    rv__node_path(ctx->view.node, ctx->view.vector, &path);
    int rc = rv__buf_err(&path, NULL);
    /* Of all that belongs to a state's attempt: that of the state. */
    int number = ctx->view.state != NULL ? ctx->view.state_attempt : rv_ctx_attempt(ctx);
    struct speaker speaker = { rv__buf_view(&path), ctx->view.node->alias, number };
    while (rc == RV_OK && attempt->unkept != NULL) {
        if (attempt->unkept->stream) {
            rc = keep_pieces(attempt, &speaker);
            continue;
        }
        rc = keep_line(run, &speaker, attempt->unkept);
        if (rc == RV_OK)
            attempt->unkept = attempt->unkept->next;
    }
    if (rc == RV_OK && too_many) {
        char text[80];
        snprintf(text, sizeof text, "%zu more lines of this attempt were not kept",
                 ctx->log_count - RV__LOG_LINES);
        rc = keep_line(run, &speaker,
                       &(struct rv__log_line){ .at_ms = run->engine->now_ms,
                                               .level = RV_WARN,
                                               .message = rv__str(text) });
        if (rc == RV_OK)
            ctx->log_count = RV__LOG_LINES; /* it is said */
    }
    rv__buf_done(&path);
    return rc;
}

/* "the handler failed: …", in `out`. */
static void put_failure(const struct rv__logged_failure *failure, struct rv__buf *out)
{
    if (failure->target != NULL) {
        rv__buf_fmt(out, "'%.*s' is running already: on_failure does not start it again",
                    RV__ARG(failure->target->alias));
        return;
    }
    struct rv__str json, message = rv__str("(it does not say why)");
    struct rv__arena arena;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the error */
    if (failure->error != NULL && rv__json_get(rv__blob_str(failure->error), "message", &json) &&
        rv__json_string(json, &arena, &message) == RV_ENOMEM)
        out->rc = RV_ENOMEM;
    if (failure->body == NULL)
        rv__buf_text(out, "the handler failed: ");
    else
        rv__buf_fmt(out, "the detached child '%.*s' failed: ", RV__ARG(failure->body->alias));
    size_t room = RV__LOG_BYTES - out->len;
    rv__buf_str(out, (struct rv__str){ message.at, message.len < room ? message.len : room });
    rv__arena_done(&arena);
}

/* RV_ENOMEM: it is not in the log. */
static int log_failure(struct rv__run *run, const struct rv__logged_failure *failure)
{
    const struct rv__body *body = failure->body;
    bool own = body != NULL && failure->node == body->owner; /* its input was refused */
    struct rv__buf path, text;
    rv__buf_init(&path, RV__PATH_BYTES);
    rv__buf_init(&text, RV__LOG_BYTES);
    if (own)
        rv__body_path(body, failure->vector, &path);
    else
        rv__node_path(failure->node, failure->vector, &path);
    put_failure(failure, &text);
    int rc = rv__buf_err(&path, NULL);
    if (rc == RV_OK)
        rc = rv__buf_err(&text, NULL);
    struct speaker speaker = { rv__buf_view(&path), own ? body->alias : failure->node->alias,
                               failure->attempt };
    if (rc == RV_OK)
        rc = keep_line(
            run, &speaker,
            &(struct rv__log_line){ .at_ms = run->engine->now_ms,
                                    .level = failure->target != NULL ? RV_WARN : RV_ERROR,
                                    .message = rv__buf_view(&text) });
    rv__buf_done(&path);
    rv__buf_done(&text);
    return rc;
}

int rv__log_failures(struct rv__run *run)
{
    size_t before = run->logs.len, count = run->log_count;
    for (size_t i = 0; i < run->facts.logged_failure_count; i++)
        if (log_failure(run, &run->facts.logged_failures[i]) < 0) {
            rv__buf_cut(&run->logs, before);
            run->log_count = count;
            return RV_ENOMEM;
        }
    rv__facts_drop_failures(&run->facts, 0);
    return RV_OK;
}

void rv__fetch_logs(rv_engine *e)
{
    int64_t now_ms = rv__mono_ms(e->clock);
    if (e->in_flight == NULL || now_ms < e->log_tick_ms)
        return;
    e->log_tick_ms = now_ms + RV__LOG_TICK_MS;
    if (e->early != NULL)
        rv__calls_early(e, NULL);
    bool silent = !e->around.threads && e->early == NULL; /* nobody speaks while time passes */
    for (struct rv__attempt *a = e->in_flight; a != NULL; a = a->all_next) {
        bool busy = !rv__run_takes(a->run, false) && !RV__BUG(58);
        if (atomic_load_explicit(&a->ctx.logs, memory_order_relaxed) == NULL && a->unkept == NULL &&
            atomic_load_explicit(&a->ctx.given, memory_order_relaxed) == NULL &&
            a->unrecorded_given == NULL && a->unrecorded == NULL &&
            atomic_load_explicit(&a->ctx.reads, memory_order_relaxed) == NULL)
            continue;
        silent = false;
        if (busy || a->run->cell == NULL || a->life != e->life)
            continue;
        (void)rv__attempt_keep_logs(a, false); /* no memory: the next time */
        rv__attempt_tell_given(a);
        rv__run_touch(a->run);
    }
    if (silent)
        e->log_tick_ms = RV__NEVER / 1000000; /* until a step has run: kit.c */
}

struct said {
    const char *run_id, *path, *text;
};

static int say_line(struct rv__call *call)
{
    const struct said *said = call->arg;
    rv_engine *e = call->engine;
    struct rv__run *run = rv__run_find(e, said->run_id);
    if (run == NULL || run->cell == NULL)
        return RV_ENOTFOUND;
    if (!rv__run_takes(run, false))
        return RV_EBUSY;
    struct speaker speaker = { .path = rv__str(said->path) };
    int rc = keep_line(run, &speaker,
                       &(struct rv__log_line){
                           .at_ms = e->now_ms, .level = RV_WARN, .message = rv__str(said->text) });
    if (rc == RV_OK)
        rv__run_touch(run);
    return rc;
}

int rv__run_say(rv_engine *e, const char *run_id, const char *path, const char *text)
{
    struct said said = { run_id, path, text };
    return rv__call_ask(e, say_line, &said, NULL);
}
