/* call.c: the public calls, on the loop's side; api.c has the caller's side.
 *
 * The loop answers a call after the commit that makes the answer true. A call that only reads a run waits in the
 * run's mail while the run has decisions that are not on disk. */
#include "engine/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/attempt.h"
#include "engine/control.h"
#include "engine/member.h"

enum { EARLY_ANSWER_MS = 1000 }; /* that an answer waits for the handle it is for */

static void push(struct rv__call **list, struct rv__call *call)
{
    call->next = *list;
    *list = call;
}

/* A step that waits for another run gives its place back meanwhile: the other run may need it. */
static void release_place(struct rv__call *call)
{
    rv_engine *e = call->engine;
    if (!call->lends || call->life != e->life)
        return;
    call->lent = true;
    rv__place_give(e, LANE_FUNCTION, 0);
}

/* The step goes on when there is a place again. An engine that ends has none to wait for; without threads a
 * step takes it as it goes on (api.c), since those that it runs inside of its wait come first. */
static bool has_returned(struct rv__call *call)
{
    rv_engine *e = call->engine;
    if (!call->lent || !e->around.threads)
        return true;
    if (!rv__place_free(e, LANE_FUNCTION) && !e->closed && !e->commit.gone)
        return false;
    rv__place_take(e, LANE_FUNCTION, 0);
    call->lent = false;
    return true;
}

static void put_answered(rv_engine *e, struct rv__call *call)
{
    call->next = NULL;
    *e->last_answered = call;
    e->last_answered = &call->next;
}

void rv__call_reply(struct rv__call *call, int rc)
{
    rv_engine *e = call->engine;
    call->rc = rc;
    call->next = NULL;
    if ((e->returning == NULL || !call->lent) && has_returned(call)) {
        put_answered(e, call);
        return;
    }
    if (e->returning == NULL)
        e->last_returning = &e->returning;
    *e->last_returning = call;
    e->last_returning = &call->next;
}

bool rv__calls_may_return(const rv_engine *e)
{
    return e->returning != NULL &&
           (rv__place_free(e, LANE_FUNCTION) || e->closed || e->commit.gone);
}

void rv__calls_return(rv_engine *e)
{
    while (e->returning != NULL) {
        struct rv__call *call = e->returning, *next = call->next;
        if (!has_returned(call))
            return;
        e->returning = next;
        put_answered(e, call);
    }
}

void rv__calls_wake(rv_engine *e)
{
    struct rv__call *call = e->answered;
    e->answered = NULL;
    e->last_answered = &e->answered;
    while (call !=
           NULL) { /* in order: a cancelled wait is answered before the call that cancels it */
        struct rv__call *next = call->next;
        pthread_mutex_lock(&call->lock);
        call->done = true;
        pthread_cond_signal(&call->answered);
        pthread_mutex_unlock(&call->lock); /* the caller may be gone by now */
        call = next;
    }
}

/* Where in call->texts it begins; with a NUL behind it. */
static size_t keep_text(struct rv__call *call, struct rv__str text)
{
    size_t at = call->texts.len;
    rv__buf_str(&call->texts, text);
    rv__buf_char(&call->texts, '\0');
    return at;
}

static int put_input(void *arg, const struct rv__store_run *row)
{
    rv__buf_str(arg, row->input);
    return rv__buf_err(arg, NULL);
}

/* A long one is not in memory. */
static int keep_input(struct rv__call *call, const struct rv__run *run)
{
    size_t at = call->texts.len;
    if (!run->input_on_disk) {
        call->row.input = keep_text(call, run->input != NULL ? rv__blob_str(run->input)
                                                             : rv__str("null"));
        return RV_OK;
    }
    int rc = rv__store_run(run->engine->reader, rv__str(run->id), put_input, &call->texts,
                           &call->err);
    if (rc < 0)
        return rc;
    rv__buf_char(&call->texts, '\0');
    call->row.input = at;
    return RV_OK;
}

/* Answer with the run as it is on disk. Its cell is in memory, and has no decisions that are not on disk. */
static int describe(struct rv__call *call, struct rv__run *run)
{
    struct rv__stored_rows rows;
    rv__stored_rows_init(&rows, run->id, &run->engine->reader, NULL);
    call->status = rv__public_status(rv__cell_status(run->cell));
    snprintf(call->run_id, sizeof call->run_id, "%s", run->id);
    call->row.workflow = keep_text(call, run->plan->plan->body.wrap->name);
    call->row.version = keep_text(call, rv__str(run->plan->plan->version));
    int rc = keep_input(call, run);
    if (rc < 0)
        return rc;
    call->row.error = keep_text(call, rv__cell_error(run->cell));
    call->row.failed_step = keep_text(call, rv__cell_failed_step(run->cell));
    call->row.failed_path = keep_text(call, rv__cell_failed_path(run->cell));
    call->row.suspension = keep_text(call, rv__cell_suspension(run->cell));
    call->row.rerun_of = keep_text(call, rv__blob_str(run->rerun_of));
    call->row.waiting = rv__cell_waits_for_somebody(run->cell);
    call->row.suspensions = call->texts.len;
    rc = rv__cell_suspensions(run->cell, SIZE_MAX, &call->texts, &call->err);
    if (rc < 0)
        return rc;
    rv__buf_char(&call->texts, '\0');
    call->row.created_ms = run->created_ms;
    call->row.started_ms = run->started_ms;
    call->row.completed_ms = run->completed_ms;
    rc = rv__cell_results(run->cell, &rows.source, &call->results, &call->results_bytes,
                          &call->err);
    if (rc == RV_ETOOBIG) { /* they are read node by node, then */
        rv__buf_text(&call->results, "{}");
        rc = RV_OK;
    } else {
        call->results_bytes = 0;
    }
    return rc < 0 ? rc : rv__buf_err(&call->texts, &call->err);
}

void rv__run_answer_calls(struct rv__run *run)
{
    struct rv__call *call = run->calls;
    run->calls = NULL;
    while (call != NULL) {
        struct rv__call *next = call->next;
        /* What is new has begun, whatever the same turn made of it (SPEC: runs). */
        call->status = rv__public_status(call->began ? RUN_RUNNING : rv__cell_status(run->cell));
        snprintf(call->run_id, sizeof call->run_id, "%s", run->id);
        rv__call_reply(call, RV_OK);
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
        rv__call_reply(call, describe(call, run));
        call = next;
    }
}

void rv__run_refuse_calls(struct rv__run *run, const rv_error *why)
{
    while (run->calls != NULL) {
        struct rv__call *call = run->calls;
        run->calls = call->next;
        call->err = *why;
        rv__call_reply(call, why->code);
    }
}

/* The next offered workflow after that one, by name. */
static const struct rv__registered *next_by_name(const struct rv__registry *registry,
                                                 const struct rv__registered *behind)
{
    const struct rv__registered *next = NULL;
    for (const struct rv__registered *r = registry->workflows; r != NULL; r = r->next)
        if (!r->withdrawn && (behind == NULL || rv__str_cmp(r->name, behind->name) > 0) &&
            (next == NULL || rv__str_cmp(r->name, next->name) < 0))
            next = r;
    return next;
}

/* List the names that fit. They are few, so a search through all for each is cheap enough. */
static void list_names(const struct rv__registry *registry, char *text, size_t room)
{
    size_t len = 0;
    const struct rv__registered *r = next_by_name(registry, NULL);
    text[0] = '\0';
    for (; r != NULL && len + 1 < room; r = next_by_name(registry, r)) {
        int n = snprintf(text + len, room - len, "%s%.*s", len ? ", " : "", RV__ARG(r->name));
        len += n > 0 ? (size_t)n : 0;
    }
}

/* A missing input is null, or {} if there is a schema. The key is that of the input as given. */
static bool same_input(const struct rv__run *run, const struct rv__call *call)
{
    char absent[65], meant[65];
    const struct rv__wrap *wrap = run->plan->plan->body.wrap;
    bool schema = !rv__str_none(wrap->schema) || !rv__str_none(wrap->parameters);
    if (strcmp(run->input_key, call->input_key) == 0)
        return true;
    rv__sha256_hex(rv__str(""), absent);
    rv__sha256_hex(rv__str(schema ? "{}" : "null"), meant);
    return (strcmp(run->input_key, absent) == 0 && strcmp(call->input_key, meant) == 0) ||
           (strcmp(run->input_key, meant) == 0 && strcmp(call->input_key, absent) == 0);
}

static bool is_other(const struct rv__call *call, const struct rv__run *run)
{
    return !rv__str_is(run->plan->plan->body.wrap->name, call->workflow) || !same_input(run, call);
}

static int fail_other(struct rv__call *call, const struct rv__run *run)
{
    return rv__fail(
        &call->err, RV_EEXIST, "run '%s' exists already, of workflow '%.*s'%s: take another run id",
        run->id, RV__ARG(run->plan->plan->body.wrap->name),
        rv__str_is(run->plan->plan->body.wrap->name, call->workflow) ? ", with another input" : "");
}

/* The run exists already: the same start again, or a conflict. */
static int start_again(struct rv__call *call, struct rv__run *run)
{
    bool other = is_other(call, run);
    if (other && run->is_new) { /* not on disk yet: try again later */
        rv__mail_put(&run->mail, &call->letter);
        return RV_OK;
    }
    if (other)
        return fail_other(call, run);
    push(&run->calls, call);
    rv__run_touch(run); /* answered after the turn, with what is on disk then */
    return RV_OK;
}

/* Start a new run, in a struct that is in the table already, or (NULL) in a new one. */
static int begin(rv_engine *e, struct rv__call *call, struct rv__registered *known,
                 struct rv__run *run)
{
    const struct rv__input_rule *rule = rv__plan_exprs_rule(&known->plan->exprs,
                                                            &known->plan->plan->body);
    if ((rule != NULL || known->validates) && call->judge != known->plan) {
        rv__plan_ref_unref(call->judge);
        call->judge = rv__plan_ref_ref(known->plan);
        rv__session_unref(call->validator);
        call->validator = known->validates ? rv__workers_validator(e, known->plan->plan->version)
                                           : NULL;
        call->schema_only = known->validates && call->validator == NULL;
        rv__call_reply(call, RV__CHECK_INPUT);
        return RV_OK;
    }
    int fit = rv__plan_ref_check(known->plan, &call->err);
    if (fit < 0)
        return fit;
    bool made = run == NULL;
    if (made && rv__run_new(e, call->run_id, &run) < 0)
        return rv__nomem(&call->err);
    memcpy(run->input_key, call->input_key, sizeof run->input_key);
    int rc = rv__run_start(run, known->plan, call->input, call->limit, call->msg.by, &call->err);
    if (rc < 0 && made)
        rv__run_drop_if_unused(run);
    if (rc < 0)
        return rc;
    rv__blob_unref(run->rerun_of);
    run->rerun_of = rv__blob_ref(call->rerun_of);
    call->began = true;
    push(&run->calls, call);
    return RV_OK;
}

static struct rv__registered *find_offered(struct rv__call *call)
{
    struct rv__registered *known = rv__registry_offered(call->registry, rv__str(call->workflow));
    if (known == NULL) {
        char names[160];
        list_names(call->registry, names, sizeof names);
        rv__fail(&call->err, RV_ENOTFOUND, "there is no workflow '%.60s'; registered: %s",
                 call->workflow, names[0] ? names : "none");
    }
    return known;
}

static int take_start(rv_engine *e, struct rv__call *call)
{
    struct rv__registered *known = find_offered(call);
    struct rv__run *run = NULL;
    if (known == NULL)
        return RV_ENOTFOUND;
    /* It may be there already; one that is begun again, too. */
    if (call->run_id[0] != '\0' && (!call->made_id || (call->began && rv__member_is(e)))) {
        /* Members look first: it may be another's. */
        int rc = rv__run_reach(e, call->run_id, &call->letter, rv__member_is(e), &run);
        if (rc < 0)
            return rv__nomem(&call->err);
        return run != NULL ? start_again(call, run) : RV_OK;
    }
    if (e->only_run[0] != '\0')
        return rv__fail(&call->err, RV_ESTATE, "this engine is for run '%.80s' only", e->only_run);
    if (!call->made_id)
        rv__ids_next(&e->ids, rv__wall_ms(e->clock), call->run_id);
    call->made_id = true;
    return begin(e, call, known, NULL);
}

static int not_found(struct rv__call *call, int rc)
{
    if (rc == RV_ENOTFOUND)
        return rv__fail(&call->err, rc, "there is no run '%s'", call->run_id);
    return rc;
}

/* Find the attempt with this token, and check that it may read this. The message then names the reader. */
static int find_reader(const rv_engine *e, const struct rv__run *run, struct rv__call *call)
{
    const struct rv__attempt *a = run->work;
    while (a != NULL && (a->life != e->life || !rv__pass_is(a->ctx.pass, call->pass)))
        a = a->next;
    if (a == NULL)
        return rv__fail(&call->err, RV_ENOTFOUND,
                        "the token is of no attempt of run '%s' that is under way", run->id);
    call->msg.actor = a->ctx.view.actor;
    call->msg.token = a->ctx.view.token;
    return rv__access_check(&a->ctx, call->wanted->what, call->wanted->name, &call->err);
}

/* Does an attempt wait for this signal, and is the payload not checked against what it asks for? */
static bool asks_anew(const struct rv__run *run, const struct rv__call *call)
{
    struct rv__str note = rv__cell_asked(run->cell, call->msg.name);
    return !rv__str_none(note) && !rv__str_eq(note, rv__blob_str(call->asking));
}

/* A message to a run: cancel, signal, answer, decision. */
static int take_message(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_reach(e, call->run_id, &call->letter, false, &run);
    if (rc < 0)
        return rv__nomem(&call->err);
    if (run == NULL)
        return RV_OK;
    if (call->msg.kind == MSG_SIGNAL && call->judge != run->plan &&
        rv__plan_exprs_signal(&run->plan->exprs, call->msg.name) != NULL) {
        rv__plan_ref_unref(call->judge);
        call->judge = rv__plan_ref_ref(run->plan);
        rv__call_reply(call, RV__CHECK_INPUT);
        return RV_OK;
    }
    if (call->msg.kind == MSG_SIGNAL && !call->msg.force && asks_anew(run, call)) {
        rv__blob_unref(call->asking);
        call->asking = rv__blob_new(rv__cell_asked(run->cell, call->msg.name));
        if (call->asking == NULL)
            return rv__nomem(&call->err);
        rv__call_reply(call, RV__CHECK_INPUT);
        return RV_OK;
    }
    if (call->msg.kind == MSG_READ && (rc = find_reader(e, run, call)) < 0)
        return rc;
    for (struct rv__attempt *a = run->work; a != NULL && call->msg.kind == MSG_CANCEL; a = a->next)
        rv__attempt_tell_given(a); /* this may be its end */
    rc = rv__run_send(run, &call->msg, &call->err);
    if (rc < 0 && rc != RV_ENOMEM &&
        run->facts.count > 0) { /* why, is not on disk yet: later again */
        rv__mail_put(&run->mail, &call->letter);
        return RV_OK;
    }
    if (rc == RV_ENOTFOUND && call->msg.kind == MSG_ANSWER && run->work != NULL &&
        e->around.await == NULL) { /* there nothing happens while a call is answered */
        call->until_ms = rv__mono_ms(e->clock) + EARLY_ANSWER_MS;
        push(&e->early, call);
        return RV_OK;
    }
    if (rc < 0)
        return rc;
    push(&run->calls, call);
    return RV_OK;
}

void rv__call_absent(rv_engine *e, struct rv__call *call, struct rv__run *run)
{
    int rc = run->trouble;
    struct rv__registered *known;
    if (call->kind == CALL_RUN && rc == RV_ENOTFOUND) {
        known = find_offered(call); /* again: it may have been unregistered meanwhile */
        rc = known != NULL ? begin(e, call, known, run) : RV_ENOTFOUND;
    } else {
        call->err = run->why;
        rc = not_found(call, rc);
    }
    if (rc < 0)
        rv__call_reply(call, rc);
}

/* A handle may be completed before the attempt that returned it has ended, or before that is on disk. So the call
 * waits a little while the run has work in flight. */
void rv__calls_early(rv_engine *e, const struct rv__run *of)
{
    struct rv__call *call = e->early;
    e->early = NULL;
    while (call != NULL) {
        struct rv__call *next = call->next;
        struct rv__run *run = rv__run_find(e, call->run_id);
        bool waits = of != NULL && run != of;
        bool there = run != NULL && run->phase != RV__ABSENT;
        int rc = waits || (there && !rv__run_takes(run, false)) ? RV_EBUSY
                 : there ? rv__run_send(run, &call->msg, &call->err)
                         : RV_ENOTFOUND;
        if (rc == RV_OK)
            push(&run->calls, call);
        else if (rc == RV_EBUSY || (rc == RV_ENOTFOUND && there && run->work != NULL &&
                                    rv__mono_ms(e->clock) < call->until_ms))
            push(&e->early, call);
        else
            rv__call_reply(call, rc == RV_ENOTFOUND && !there ? not_found(call, rc) : rc);
        call = next;
    }
}

bool rv__call_looks(const struct rv__call *call)
{
    return call->kind == CALL_STATE || call->kind == CALL_WAIT || call->kind == CALL_LOOK;
}

void rv__engine_begin_close(rv_engine *e)
{
    if (e->closed && !e->drains)
        return;
    e->closed = true;
    e->drains = false;
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

/* Remove it from the mail of its run. */
static bool take_from_mail(struct rv__run *run, const struct rv__call *call)
{
    for (struct rv__queue_node **at = &run->mail.first; *at != NULL; at = &(*at)->next)
        if (*at == &call->letter.node) {
            *at = call->letter.node.next;
            if (*at == NULL)
                run->mail.last = at;
            return true;
        }
    return false;
}

/* Remove it from those that wait for a place, if it is there. */
static bool take_returning(rv_engine *e, const struct rv__call *call)
{
    for (struct rv__call **at = &e->returning; *at != NULL; at = &(*at)->next)
        if (*at == call) {
            *at = call->next;
            if (*at == NULL)
                e->last_returning = at;
            return true;
        }
    return false;
}

/* The caller gives up waiting. If its call was answered in this turn, the answer counts. */
static void take_unwait(rv_engine *e, struct rv__call *call)
{
    struct rv__call *wait = call->about;
    struct rv__run *run = rv__run_find(e, wait->run_id);
    if (e->around.threads) { /* it needs its place again first, as for an answer */
        call->lent = wait->lent;
        wait->lent = false;
    }
    if (take_returning(e, wait)) {
        put_answered(e, wait); /* it has its answer: that counts */
    } else if (wait->waiting) {
        for (struct rv__call **at = &run->waiters; *at != NULL; at = &(*at)->next)
            if (*at == wait) {
                *at = wait->next;
                break;
            }
        wait->waiting = false;
    } else if (run != NULL) {
        (void)take_from_mail(run, wait); /* it was not handled yet */
    }
    if (run != NULL && run->phase == RV__ABSENT)
        rv__run_drop_if_unused(run);
    rv__call_reply(call, RV_OK);
}

/* The store does not accept commits at present: fail the call. False: it continues to wait. */
static bool look_at_disk(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_read(e, call->run_id, &run, &call->err);
    if (rc < 0) {
        if (call->kind != CALL_WAIT)
            rv__call_reply(call, not_found(call, rc));
        return call->kind != CALL_WAIT;
    }
    bool ended = rv__run_terminal(rv__cell_status(run->cell));
    bool answers = call->kind != CALL_WAIT || ended;
    if (call->kind == CALL_LOOK)
        rv__call_reply(call, call->look(call, run));
    else if (answers)
        rv__call_reply(call, describe(call, run));
    rv__run_unread(run);
    return answers;
}

static void look_in_mail(rv_engine *e, struct rv__run *run)
{
    for (; run != NULL; run = run->next_in) {
        struct rv__mail mail = { .first = run->mail.first, .last = &mail.first };
        struct rv__letter *letter;
        run->mail = (struct rv__mail){ NULL, &run->mail.first };
        while ((letter = rv__mail_take(&mail)) != NULL) {
            struct rv__call *call = RV__CONTAINER(letter, struct rv__call, letter);
            bool looks = letter->kind == LETTER_CALL && rv__call_looks(call);
            if (!looks || !look_at_disk(e, call))
                rv__mail_put(&run->mail, letter);
        }
    }
}

void rv__calls_from_disk(rv_engine *e)
{
    for (size_t i = 0; i < RV__BATCHES; i++)
        look_in_mail(e, e->commit.batches[i].runs);
    look_in_mail(e, e->deciding);
}

/* Is the run of another workflow than the caller says? */
static int check_workflow(struct rv__call *call, const struct rv__run *run)
{
    if (call->workflow == NULL || rv__str_is(run->plan->plan->body.wrap->name, call->workflow))
        return RV_OK;
    return rv__fail(&call->err, RV_ENOTFOUND, "run '%s' is of workflow '%.*s', not '%.60s'",
                    run->id, RV__ARG(run->plan->plan->body.wrap->name), call->workflow);
}

static int take_look(rv_engine *e, struct rv__call *call)
{
    struct rv__run *run;
    int rc = rv__run_reach(e, call->run_id, &call->letter, true, &run);
    if (rc < 0)
        return rv__nomem(&call->err);
    if (run == NULL)
        return RV_OK;
    rc = check_workflow(call, run);
    if (rc < 0)
        return rc;
    if (call->kind == CALL_LOOK) {
        rv__call_reply(call, call->look(call, run));
    } else if (call->kind == CALL_STATE || rv__run_terminal(rv__cell_status(run->cell))) {
        rv__call_reply(call, describe(call, run));
    } else if (e->read_only) { /* nobody here would learn of its end */
        rc = rv__fail(&call->err, RV_ESTATE,
                      "run '%s' is %s, and the store is open for reading only", run->id,
                      rv__run_status_name(rv__cell_status(run->cell)));
    } else {
        call->waiting = true;
        push(&run->waiters, call);
        release_place(call);
    }
    return rc;
}

/* A job that uses the writer runs at its desk, between two batches. */
struct ask {
    struct rv__job job; /* first */
    struct rv__call *call;
    int rc;
};

static int64_t run_ask(struct rv__job *job)
{
    struct ask *ask = (struct ask *)job;
    ask->rc = ask->call->ask(ask->call);
    return 0;
}

static void drop_ask(struct rv__job *job)
{
    rv__free(job); /* the caller gets "closed", like all others */
}

static void ask_landed(rv_engine *e, struct rv__job *job)
{
    struct ask *ask = (struct ask *)job;
    struct rv__call *call = ask->call;
    (void)e;
    rv__call_reply(call, ask->rc < 0 || call->asked == NULL ? ask->rc : call->asked(call));
    rv__free(ask);
}

static int take_ask(rv_engine *e, struct rv__call *call)
{
    if (!call->writes) {
        rv__call_reply(call, call->ask(call));
        return RV_OK;
    }
    struct ask *ask = rv__zalloc(1, sizeof *ask);
    if (ask == NULL)
        return rv__nomem(&call->err);
    ask->job = (struct rv__job){ .run = run_ask, .landed = ask_landed, .drop = drop_ask };
    ask->call = call;
    rv__write_job(e, &ask->job);
    return RV_OK;
}

void rv__call_take(rv_engine *e, struct rv__call *call)
{
    int rc = RV_OK;
    if (e->member.fenced && !e->closed && call->kind != CALL_UNWAIT && call->kind != CALL_CLOSE &&
        call->kind != CALL_DRAIN && call->kind != CALL_REGISTER) {
        rv__engine_take_again(e, &call->letter); /* after we have joined again */
        return;
    }
    if (e->closed && call->kind != CALL_UNWAIT && call->kind != CALL_CLOSE &&
        call->kind != CALL_DRAIN && call->kind != CALL_HAND_BACK) {
        rv__call_reply(call, rv__fail(&call->err, RV_ECLOSED, "the engine is closing"));
        return;
    }
    if (e->commit.gone && call->kind != CALL_UNWAIT && call->kind != CALL_CLOSE &&
        call->kind != CALL_DRAIN) {
        rv_health health;
        (void)rv_engine_health(e, &health, NULL); /* there is an engine */
        call->err = health.why;
        rv__call_reply(call, RV_EGONE);
        return;
    }
    if (e->read_only &&
        (call->kind == CALL_REGISTER || call->kind == CALL_RUN || call->kind == CALL_MESSAGE)) {
        rv__call_reply(
            call, rv__fail(&call->err, RV_ESTATE, "%s",
                           rv__attached_asks_driver(e)
                               ? "another process drives the store: workflows are registered there"
                               : "the store is open for reading only"));
        return;
    }
    switch (call->kind) {
    case CALL_REGISTER:
        rv__call_reply(call, call->registration != NULL
                                 ? rv__registry_put(call->registry, call->registration, &call->err)
                                 : rv__registry_add(call->registry, call->definition, &call->err));
        return;
    case CALL_RUN: rc = take_start(e, call); break;
    case CALL_MESSAGE: rc = take_message(e, call); break;
    case CALL_STATE:
    case CALL_WAIT:
    case CALL_LOOK: rc = take_look(e, call); break;
    case CALL_ASK: rc = take_ask(e, call); break;
    case CALL_UNWAIT: take_unwait(e, call); return;
    case CALL_HAND_OVER: rc = rv__guest_take(e, call); break;
    case CALL_HAND_BACK: rc = rv__guest_release(e, call); break;
    case CALL_DRAIN:
        if (!e->closed && rv__guests_here(e)) {
            e->closed = e->drains = true;
            e->tell_by_ns = e->close_by_ns = RV__NEVER;
        }
        rv__call_reply(call, e->closed ? RV_OK : RV_ENOTFOUND);
        return;
    case CALL_CLOSE:
        rv__engine_begin_close(e);
        rv__call_reply(call, RV_OK);
        return;
    }
    if (rc < 0)
        rv__call_reply(call, rc);
}

static void again(rv_engine *e, struct rv__call **list)
{
    while (*list != NULL) {
        struct rv__call *call = *list;
        *list = call->next;
        call->waiting = call->lent = false;
        (void)!rv__engine_post(e, &call->letter); /* it is open: a kit's caller waits for it */
    }
}

static void reply_elsewhere(struct rv__call *call, int64_t owner)
{
    call->waiting = false;
    call->owner = owner;
    rv__call_reply(call, RV__ELSEWHERE);
}

/* A read, or a start, of a run that another member owns. */
static void look_elsewhere(struct rv__call *call, struct rv__run *seen)
{
    enum rv__run_status status = rv__cell_status(seen->cell);
    int rc = call->kind == CALL_RUN ? RV_OK : check_workflow(call, seen);
    if (rc < 0) {
        rv__call_reply(call, rc);
    } else if (call->kind == CALL_RUN) {
        call->status = rv__public_status(status);
        rv__call_reply(call, is_other(call, seen) ? fail_other(call, seen) : RV_OK);
    } else if (call->kind == CALL_LOOK) {
        rv__call_reply(call, call->look(call, seen));
    } else if (call->kind == CALL_STATE || rv__run_terminal(status)) {
        rv__call_reply(call, describe(call, seen));
    } else {
        reply_elsewhere(call, 0); /* it waits for the end, which this process does not notice */
    }
}

bool rv__call_elsewhere(rv_engine *e, struct rv__call *call, struct rv__run *seen, int64_t owner)
{
    bool looks = rv__call_looks(call) || call->kind == CALL_RUN;
    (void)e;
    if (looks && seen != NULL)
        look_elsewhere(call, seen);
    else if (call->kind == CALL_MESSAGE && owner != 0)
        reply_elsewhere(call, owner);
    else
        return false;
    return true;
}

void rv__run_calls_elsewhere(struct rv__run *run)
{
    struct rv__call *waiter;
    again(run->engine, &run->calls);
    while ((waiter = run->waiters) != NULL) {
        run->waiters = waiter->next;
        reply_elsewhere(waiter, 0);
    }
}

static void refuse_one(struct rv__call *call, const rv_error *why)
{
    call->waiting = false;
    call->err = *why;
    rv__call_reply(call, why->code);
}

void rv__run_calls_doubtful(struct rv__run *run)
{
    rv_error why;
    struct rv__call **at = &run->calls;
    (void)rv__fail(&why, RV_EFAILED,
                   "this process was taken for dead before the store answered: it is not known "
                   "whether it was done");
    while (*at != NULL) {
        struct rv__call *call = *at;
        if (call->kind != CALL_MESSAGE) { /* a repeated start finds the run */
            at = &call->next;
            continue;
        }
        *at = call->next;
        refuse_one(call, &why);
    }
}

static void close_list(struct rv__call **list)
{
    while (*list != NULL) {
        struct rv__call *call = *list;
        *list = call->next;
        call->waiting = false;
        rv__call_reply(call, rv__fail(&call->err, RV_ECLOSED, "the engine has closed"));
    }
}

static void refuse_list(struct rv__call **list, const rv_error *why)
{
    while (*list != NULL) {
        struct rv__call *call = *list;
        *list = call->next;
        refuse_one(call, why);
    }
}

/* Only calls are answered here; other letters, such as ended work, stay. */
static void refuse_mail(struct rv__mail *of, const rv_error *why)
{
    struct rv__mail mail = { .first = of->first, .last = &mail.first };
    struct rv__letter *letter;
    *of = (struct rv__mail){ NULL, &of->first };
    while ((letter = rv__mail_take(&mail)) != NULL)
        if (letter->kind == LETTER_CALL)
            refuse_one(RV__CONTAINER(letter, struct rv__call, letter), why);
        else
            rv__mail_put(of, letter);
}

void rv__calls_refuse(rv_engine *e, const rv_error *why)
{
    refuse_mail(&e->retry, why);
    refuse_list(&e->early, why);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            refuse_mail(&run->mail, why);
            refuse_list(&run->calls, why);
            refuse_list(&run->waiters, why);
        }
}

static void again_mail(rv_engine *e, struct rv__mail *mail)
{
    struct rv__letter *letter;
    while ((letter = rv__mail_take(mail)) != NULL)
        if (letter->kind == LETTER_CALL)
            (void)!rv__engine_post(e, letter);
        else
            rv__letter_drop(letter);
}

void rv__calls_again(rv_engine *e)
{
    again(e, &e->early);
    again_mail(e, &e->retry);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            again(e, &run->calls);
            again(e, &run->waiters);
            again_mail(e, &run->mail);
        }
}

static void close_letter(rv_engine *e, struct rv__letter *letter)
{
    if (letter->kind == LETTER_CALL)
        push(&e->early, RV__CONTAINER(letter, struct rv__call, letter));
    else
        rv__letter_drop(letter);
}

static void close_mail(rv_engine *e, struct rv__mail *mail)
{
    struct rv__letter *letter;
    while ((letter = rv__mail_take(mail)) != NULL)
        close_letter(e, letter);
}

void rv__calls_close(rv_engine *e)
{
    struct rv__queue_node *node = rv__queue_take(&e->inbox); /* came too late to be taken */
    while (node != NULL) {
        struct rv__queue_node *next = node->next;
        close_letter(e, (struct rv__letter *)node);
        node = next;
    }
    close_mail(e, &e->retry);
    for (size_t b = 0; b < RUN_BUCKETS; b++)
        for (struct rv__run *run = e->runs[b]; run != NULL; run = run->next) {
            close_mail(e, &run->mail);
            close_list(&run->calls);
            close_list(&run->waiters);
        }
    close_list(&e->early);
    rv__guests_close(e);
    rv__calls_return(e);
    rv__calls_wake(e);
}
