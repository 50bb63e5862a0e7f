/* call.c: the public calls, on the loop's side; api.c has the caller's.
 *
 * The loop answers a call after the commit that makes the answer true. Calls that only read wait for the
 * end of the turn, so that they see what is on disk. */
#include "engine/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/control.h"
#include "engine/kit.h"

enum { EARLY_ANSWER_MS = 1000 }; /* that an answer waits for the handle it is for */

static void reply(struct rv__call *call, int rc)
{
    rv_engine *e = call->engine;
    pthread_mutex_lock(&e->reply_lock);
    call->rc = rc;
    call->done = true;
    pthread_cond_signal(&call->answered); /* under the lock: after it, the caller may be gone */
    pthread_mutex_unlock(&e->reply_lock);
}

static void push(struct rv__call **list, struct rv__call *call)
{
    call->next = *list;
    *list = call;
}

/* Where in call->texts it begins; with a NUL behind it. */
static size_t keep_text(struct rv__call *call, struct rv__str text)
{
    size_t at = call->texts.len;
    rv__buf_str(&call->texts, text);
    rv__buf_char(&call->texts, '\0');
    return at;
}

/* The run as it is on disk: its row and results. Its cell is in memory and not part of a turn. */
static int describe(struct rv__call *call, struct rv__run *run)
{
    struct rv__stored_rows rows;
    rv__stored_rows_init(&rows, run->id, &run->engine->reader, NULL);
    call->status = (int)rv__cell_status(run->cell);
    snprintf(call->run_id, sizeof call->run_id, "%s", run->id);
    call->row.workflow = keep_text(call, run->plan->plan->body.wrap->name);
    call->row.version = keep_text(call, rv__str(run->plan->plan->version));
    call->row.input = keep_text(call,
                                run->input != NULL ? rv__blob_str(run->input) : rv__str("null"));
    call->row.error = keep_text(call, rv__cell_error(run->cell));
    call->row.failed_step = keep_text(call, rv__cell_failed_step(run->cell));
    call->row.suspension = keep_text(call, rv__cell_suspension(run->cell));
    call->row.created_ms = run->created_ms;
    call->row.started_ms = run->started_ms;
    call->row.completed_ms = run->completed_ms;
    int rc = rv__cell_results(run->cell, &rows.source, &call->results, &call->err);
    return rc < 0 ? rc : rv__buf_err(&call->texts, &call->err);
}

void rv__run_answer_calls(struct rv__run *run)
{
    struct rv__call *call = run->calls;
    run->calls = NULL;
    while (call != NULL) {
        struct rv__call *next = call->next;
        /* What is new has begun, whatever the same turn made of it (SPEC: runs). */
        call->status = call->began ? (int)RUN_RUNNING : (int)rv__cell_status(run->cell);
        snprintf(call->run_id, sizeof call->run_id, "%s", run->id);
        reply(call, RV_OK);
        call = next;
    }
}

void rv__run_answer_waiters(struct rv__run *run)
{
    struct rv__call *call = run->waiters;
    run->waiters = NULL;
    while (call != NULL) {
        struct rv__call *next = call->next;
        call->waiting = false;
        reply(call, describe(call, run));
        call = next;
    }
}

/* The first offered workflow behind that one, by name. */
static const struct rv__registered *next_by_name(const rv_engine *e,
                                                 const struct rv__registered *behind)
{
    const struct rv__registered *next = NULL;
    for (const struct rv__registered *r = e->workflows; r != NULL; r = r->next)
        if (!r->withdrawn && (behind == NULL || rv__str_cmp(r->name, behind->name) > 0) &&
            (next == NULL || rv__str_cmp(r->name, next->name) < 0))
            next = r;
    return next;
}

/* As many as there is room for, which are few: so looking through all for each is no harm. */
static void list_names(const rv_engine *e, char *text, size_t room)
{
    size_t len = 0;
    const struct rv__registered *r = next_by_name(e, NULL);
    text[0] = '\0';
    for (; r != NULL && len + 1 < room; r = next_by_name(e, r)) {
        int n = snprintf(text + len, room - len, "%s%.*s", len ? ", " : "", RV__ARG(r->name));
        len += n > 0 ? (size_t)n : 0;
    }
}

/* One that was not given is null, or {} where there is a schema. The key of what was given is kept. */
static bool same_input(const struct rv__run *run, const struct rv__call *call)
{
    char absent[65], meant[65];
    bool schema = !rv__str_none(run->plan->plan->body.wrap->schema);
    if (strcmp(run->input_key, call->input_key) == 0)
        return true;
    rv__sha256_hex(rv__str(""), absent);
    rv__sha256_hex(rv__str(schema ? "{}" : "null"), meant);
    return (strcmp(run->input_key, absent) == 0 && strcmp(call->input_key, meant) == 0) ||
           (strcmp(run->input_key, meant) == 0 && strcmp(call->input_key, absent) == 0);
}

/* The run exists already: the same start again, or a conflict. */
static int start_again(struct rv__call *call, struct rv__run *run)
{
    if (!rv__str_is(run->plan->plan->body.wrap->name, call->workflow) || !same_input(run, call))
        return rv__fail(&call->err, RV_EEXIST,
                        "run '%s' exists already, of workflow '%.*s'%s: take another run id",
                        run->id, RV__ARG(run->plan->plan->body.wrap->name),
                        rv__str_is(run->plan->plan->body.wrap->name, call->workflow)
                            ? ", with another input"
                            : "");
    push(&run->calls, call);
    rv__run_touch(run); /* answered with the turn: what it is then is on disk */
    return RV_OK;
}

static int take_start(rv_engine *e, struct rv__call *call)
{
    struct rv__registered *known = rv__registry_offered(e, rv__str(call->workflow));
    struct rv__run *run = NULL;
    if (known == NULL) {
        char names[160];
        list_names(e, names, sizeof names);
        return rv__fail(&call->err, RV_ENOTFOUND, "there is no workflow '%.60s'; registered: %s",
                        call->workflow, names[0] ? names : "none");
    }
    if (call->run_id[0] != '\0') {
        int rc = rv__run_load(e, call->run_id, &run, &call->err);
        if (rc == RV_OK)
            return start_again(call, run);
        if (rc != RV_ENOTFOUND)
            return rc;
    }
    const struct rv__input_rule *rule = rv__plan_exprs_rule(&known->plan->exprs,
                                                            &known->plan->plan->body);
    if (rule != NULL && call->judge != known->plan) {
        rv__plan_ref_unref(call->judge);
        call->judge = known->plan;
        atomic_fetch_add(&call->judge->refs, 1);
        reply(call, RV__CHECK_INPUT);
        return RV_OK;
    }
    if (e->only_run[0] != '\0' && strcmp(call->run_id, e->only_run) != 0)
        return rv__fail(&call->err, RV_ESTATE, "this engine is for run '%.80s' only", e->only_run);
    if (call->run_id[0] == '\0')
        rv__ids_next(&e->ids, rv__wall_ms(e->clock), call->run_id);
    if (rv__run_new(e, call->run_id, known->plan, &run) < 0)
        return rv__nomem(&call->err);
    memcpy(run->input_key, call->input_key, sizeof run->input_key);
    int rc = rv__run_start(run, call->input, &call->err);
    if (rc < 0) {
        rv__run_drop(run);
        return rc;
    }
    call->began = true;
    push(&run->calls, call);
    return RV_OK;
}

static int not_found(struct rv__call *call, int rc)
{
    if (rc == RV_ENOTFOUND)
        return rv__fail(&call->err, rc, "there is no run '%s'", call->run_id);
    return rc;
}

/* A message to a run: cancel, signal, answer, decision. */
static int take_message(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_load(e, call->run_id, &run, &call->err);
    if (rc < 0)
        return not_found(call, rc);
    rc = rv__run_send(run, &call->msg, &call->err);
    if (rc == RV_ENOTFOUND && call->msg.kind == MSG_ANSWER && run->work != NULL &&
        e->kit == NULL) { /* there nothing happens while a call is answered */
        call->until_ms = rv__mono_ms(e->clock) + EARLY_ANSWER_MS;
        push(&e->early, call);
        return RV_OK;
    }
    if (rc < 0)
        return rc;
    push(&run->calls, call);
    return RV_OK;
}

/* Whoever completes a handle may be quicker than the step that gave it away: its attempt has not ended
 * yet, or that is not on disk. So such an answer waits a little, while the run has work in flight. */
void rv__calls_early(rv_engine *e, const struct rv__run *of)
{
    struct rv__call *call = e->early;
    e->early = NULL;
    while (call != NULL) {
        struct rv__call *next = call->next;
        struct rv__run *run = rv__run_find(e, call->run_id);
        bool waits = of != NULL && run != of;
        bool there = run != NULL && run->cell != NULL;
        int rc = waits || (there && run->locked) ? RV_EBUSY
                 : there                         ? rv__run_send(run, &call->msg, &call->err)
                                                 : RV_ENOTFOUND;
        if (rc == RV_OK)
            push(&run->calls, call);
        else if (rc == RV_EBUSY || (rc == RV_ENOTFOUND && there && run->work != NULL &&
                                    rv__mono_ms(e->clock) < call->until_ms))
            push(&e->early, call);
        else
            reply(call, rc == RV_ENOTFOUND && !there ? not_found(call, rc) : rc);
        call = next;
    }
}

bool rv__call_waits(rv_engine *e, const struct rv__call *call)
{
    switch (call->kind) {
    case CALL_REGISTER: return true; /* it looks at all of them */
    case CALL_RUN:
    case CALL_MESSAGE: break;
    case CALL_STATE:
    case CALL_WAIT:
    case CALL_LOOK:
    case CALL_ASK:
    case CALL_UNWAIT:
    case CALL_CLOSE: return false;
    }
    const struct rv__run *run = call->run_id[0] != '\0' ? rv__run_find(e, call->run_id) : NULL;
    return run != NULL && run->locked;
}

void rv__engine_begin_close(rv_engine *e)
{
    if (e->closed)
        return;
    e->closed = true;
    e->tell_by_ns = rv__mono_ns(e->clock) + e->drain_ms * 1000000;
    e->close_by_ns = e->grace_ms < 0 ? RV__NEVER : e->tell_by_ns + e->grace_ms * 1000000;
    rv__engine_tell_close(e);
}

void rv__engine_tell_close(rv_engine *e)
{
    if (e->tell_by_ns == 0 || rv__mono_ns(e->clock) < e->tell_by_ns)
        return;
    e->tell_by_ns = 0;
    rv_cancel_fire(e->closing, RV_ECLOSED, "the engine is closing");
}

void rv__call_take(rv_engine *e, struct rv__call *call)
{
    int rc = RV_OK;
    if (e->closed && call->kind != CALL_UNWAIT && call->kind != CALL_CLOSE) {
        reply(call, rv__fail(&call->err, RV_ECLOSED, "the engine is closing"));
        return;
    }
    if (e->read_only &&
        (call->kind == CALL_REGISTER || call->kind == CALL_RUN || call->kind == CALL_MESSAGE)) {
        reply(call,
              rv__fail(&call->err, RV_ESTATE, "%s",
                       rv__attached_tells(e)
                           ? "another process drives the store: workflows are registered there"
                           : "the store is open for reading only"));
        return;
    }
    switch (call->kind) {
    case CALL_REGISTER:
        reply(call, call->registration != NULL ? rv__registry_put(e, call->registration, &call->err)
                                               : rv__registry_add(e, call->definition, &call->err));
        return;
    case CALL_RUN: rc = take_start(e, call); break;
    case CALL_MESSAGE: rc = take_message(e, call); break;
    case CALL_STATE:
    case CALL_WAIT:
    case CALL_LOOK:
    case CALL_ASK:
    case CALL_UNWAIT: push(&e->late, call); return;
    case CALL_CLOSE:
        rv__engine_begin_close(e);
        reply(call, RV_OK);
        return;
    }
    if (rc < 0)
        reply(call, rc);
}

static void take_unwait(rv_engine *e, struct rv__call *call)
{
    struct rv__call *wait = call->about;
    if (wait->waiting) { /* not answered meanwhile */
        struct rv__run *run = rv__run_find(e, wait->run_id);
        for (struct rv__call **at = &run->waiters; *at != NULL; at = &(*at)->next)
            if (*at == wait) {
                *at = wait->next;
                break;
            }
        wait->waiting = false;
        if (run->cell == NULL && run->waiters == NULL)
            rv__run_drop(run);
    }
    for (struct rv__call **at = &e->late; *at != NULL; at = &(*at)->next)
        if (*at == wait) { /* not even looked at: its run is not on disk yet */
            *at = wait->next;
            break;
        }
    reply(call, RV_OK);
}

/* The store refuses what was decided: nobody knows for how long. False: it goes on waiting. */
static bool look_at_disk(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_read(e, call->run_id, &run, &call->err);
    if (rc < 0) {
        if (call->kind != CALL_WAIT)
            reply(call, not_found(call, rc));
        return call->kind != CALL_WAIT;
    }
    bool ended = rv__run_terminal(rv__cell_status(run->cell));
    bool answers = call->kind != CALL_WAIT || ended;
    if (call->kind == CALL_LOOK)
        reply(call, call->look(call, run));
    else if (answers)
        reply(call, describe(call, run));
    rv__run_unread(run);
    return answers;
}

static void take_look(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_load(e, call->run_id, &run, &call->err);
    if (rc < 0) {
        reply(call, not_found(call, rc));
        return;
    }
    bool unwritten = run->facts.count > 0 || run->locked;
    if (unwritten && rv__commit_failing(e) && look_at_disk(e, call))
        return;
    if (unwritten) { /* not on disk yet: after the next commit */
        push(&e->late, call);
        if (!run->locked)
            rv__run_touch(run);
        return;
    }
    if (call->workflow != NULL && !rv__str_is(run->plan->plan->body.wrap->name, call->workflow)) {
        reply(call,
              rv__fail(&call->err, RV_ENOTFOUND, "run '%s' is of workflow '%.*s', not '%.60s'",
                       run->id, RV__ARG(run->plan->plan->body.wrap->name), call->workflow));
    } else if (call->kind == CALL_LOOK) {
        reply(call, call->look(call, run));
    } else if (call->kind == CALL_STATE || rv__run_terminal(rv__cell_status(run->cell))) {
        reply(call, describe(call, run));
    } else if (e->read_only) { /* nobody here would learn of its end */
        reply(call,
              rv__fail(&call->err, RV_ESTATE, "run '%s' is %s, and the store open for reading only",
                       run->id, rv__run_status_name(rv__cell_status(run->cell))));
    } else {
        call->waiting = true;
        push(&run->waiters, call);
    }
    rv__run_touch(run); /* looked at again after the next commit: it may leave memory */
}

void rv__calls_late(rv_engine *e)
{
    struct rv__call *call = e->late, *order = NULL;
    e->late = NULL;
    while (call != NULL) { /* first come, first served */
        struct rv__call *next = call->next;
        push(&order, call);
        call = next;
    }
    while (order != NULL) {
        struct rv__call *next = order->next;
        if (order->kind == CALL_UNWAIT)
            take_unwait(e, order);
        else if (order->kind == CALL_ASK && order->writes && e->commit.away)
            push(&e->late, order);
        else if (order->kind == CALL_ASK)
            reply(order, order->ask(order));
        else
            take_look(e, order);
        order = next;
    }
}

static void close_list(struct rv__call **list)
{
    while (*list != NULL) {
        struct rv__call *call = *list;
        *list = call->next;
        call->waiting = false;
        reply(call, rv__fail(&call->err, RV_ECLOSED, "the engine has closed"));
    }
}

static void again(rv_engine *e, struct rv__call **list)
{
    while (*list != NULL) {
        struct rv__call *call = *list;
        *list = call->next;
        call->waiting = false;
        (void)!rv__engine_post(e, &call->letter); /* it is open: a kit's caller waits for it */
    }
}

void rv__calls_again(rv_engine *e)
{
    again(e, &e->late);
    again(e, &e->early);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            again(e, &run->calls);
            again(e, &run->waiters);
        }
}

static void close_letters(rv_engine *e, struct rv__queue_node *node)
{
    while (node != NULL) {
        struct rv__letter *letter = (struct rv__letter *)node;
        node = node->next;
        if (letter->kind == LETTER_CALL)
            push(&e->late, RV__CONTAINER(letter, struct rv__call, letter));
    }
}

void rv__calls_close(rv_engine *e)
{
    close_letters(e, rv__queue_take(&e->inbox)); /* came too late to be taken */
    close_letters(e, e->held);                   /* a commit was given up */
    e->held = NULL;
    e->last_held = &e->held;
    close_list(&e->late);
    close_list(&e->early);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            close_list(&run->calls);
            close_list(&run->waiters);
        }
}
