/* call.c: the public calls, on both sides of the inbox.
 *
 * A call is a struct on the caller's stack. It goes to the loop as a letter; the loop answers it after
 * the commit that makes the answer true. Calls that only read wait for the end of the turn, so that
 * they see what is on disk. */
#include "engine/call.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/context.h"
#include "engine/kit.h"

#define DEFAULT_WAIT_MS 300000
enum { EARLY_ANSWER_MS = 1000 }; /* that an answer waits for the handle it is for */

/* ------------------------------------------------------------------------- the loop's side --- */

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

/* Rows of finished iterations. */
struct row_text {
    struct rv__buf *out;
    bool first;
};

static int put_row(void *arg, int64_t index, struct rv__str json)
{
    struct row_text *text = arg;
    (void)index;
    if (!text->first)
        rv__buf_char(text->out, ',');
    text->first = false;
    rv__buf_str(text->out, json);
    return RV_OK;
}

static int rows_from_store(struct rv__row_source *self, struct rv__str key, struct rv__buf *out,
                           rv_error *err)
{
    struct rv__engine_rows *rows = (struct rv__engine_rows *)self;
    rv_engine *e = rows->run->engine;
    struct row_text text = { .out = out, .first = true };
    if (rows->on_loop)
        return rv__store_results(e->reader, rv__str(rows->run->id), key, put_row, &text, err);
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = rv__store_results(e->step_reader, rv__str(rows->run->id), key, put_row, &text, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    return rc;
}

void rv__engine_rows_init(struct rv__engine_rows *rows, struct rv__run *run)
{
    rv_engine *e = run->engine;
    *rows = (struct rv__engine_rows){ .source = { rows_from_store }, .run = run };
    rows->on_loop = e->running_thread && pthread_equal(pthread_self(), e->thread);
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
    struct rv__engine_rows rows;
    rv__engine_rows_init(&rows, run);
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
        call->status = (int)rv__cell_status(run->cell);
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

static void list_names(rv_engine *e, char *text, size_t room)
{
    size_t len = 0;
    text[0] = '\0';
    for (struct rv__registered *r = e->workflows; r != NULL && len + 1 < room; r = r->next) {
        int n = snprintf(text + len, room - len, "%s%.*s", len ? ", " : "", RV__ARG(r->name));
        len += n > 0 ? (size_t)n : 0;
    }
}

/* The run exists already: the same start again, or a conflict. */
static int start_again(struct rv__call *call, struct rv__run *run)
{
    if (!rv__str_is(run->plan->plan->body.wrap->name, call->workflow) ||
        strcmp(run->input_key, call->input_key) != 0)
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
    struct rv__registered *known = rv__registry_find(e, rv__str(call->workflow));
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
    e->closed = true;
    e->close_by_ns = e->grace_ms < 0 ? RV__NEVER : rv__mono_ns(e->clock) + e->grace_ms * 1000000;
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
        reply(call, rv__fail(&call->err, RV_ESTATE, "the store is open for reading only"));
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

/* ----------------------------------------------------------------------- the caller's side --- */

static int call_init(struct rv__call *call, rv_engine *e, enum rv__call_kind kind, rv_error *err)
{
    *call = (struct rv__call){ .kind = kind, .engine = e };
    call->letter.kind = LETTER_CALL;
    rv__buf_init(&call->results, SIZE_MAX / 8);
    rv__buf_init(&call->texts, SIZE_MAX / 8);
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    return rv__cond_init(&call->answered) < 0 ? rv__nomem(err) : RV_OK;
}

static void call_done(struct rv__call *call)
{
    rv__buf_done(&call->results);
    rv__buf_done(&call->texts);
    rv__blob_unref(call->input);
    rv__blob_unref(call->given);
    rv__plan_ref_unref(call->judge);
    rv__blob_unref(call->msg.result);
    rv__blob_unref(call->msg.error);
    pthread_cond_destroy(&call->answered);
}

/* The engine is there as long as somebody is inside one of its calls. */
void rv__engine_enter(rv_engine *e)
{
    pthread_mutex_lock(&e->reply_lock);
    e->callers++;
    pthread_mutex_unlock(&e->reply_lock);
}

void rv__engine_leave(rv_engine *e)
{
    pthread_mutex_lock(&e->reply_lock);
    if (--e->callers == 0)
        pthread_cond_signal(&e->left);
    pthread_mutex_unlock(&e->reply_lock);
}

/* Send it, and wait for the answer. */
static void call_send(struct rv__call *call)
{
    rv_engine *e = call->engine;
    rv__engine_enter(e);
    if (rv__engine_post(e, &call->letter) < 0) {
        call->rc = rv__fail(&call->err, RV_ECLOSED, "the engine has closed");
    } else if (e->kit != NULL) {
        rv__kit_answer(e, &call->done);
    } else {
        pthread_mutex_lock(&e->reply_lock);
        while (!call->done)
            (void)rv__cond_wait_until(&call->answered, &e->reply_lock, RV__NEVER);
        pthread_mutex_unlock(&e->reply_lock);
    }
    rv__engine_leave(e);
}

static int call_result(struct rv__call *call, rv_error *err)
{
    if (call->rc < 0 && err != NULL) {
        *err = call->err;
        if (err->code == 0)
            rv__fail(err, call->rc, "%s", rv_strerror(call->rc));
    }
    return call->rc < 0 ? call->rc : RV_OK;
}

static int set_run_id(struct rv__call *call, const char *run_id, rv_error *err)
{
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id: 1 to 128 of A-Z a-z 0-9 . _ : -",
                        run_id != NULL ? run_id : "");
    snprintf(call->run_id, sizeof call->run_id, "%s", run_id);
    return RV_OK;
}

/* JSON text from outside, checked, as a blob; NULL text gives NULL. */
static int take_json(const char *json, const char *what, struct rv__blob **ret, rv_error *err)
{
    struct rv__str value;
    rv_error why;
    if (json == NULL)
        return RV_OK;
    if (rv__json_check(rv__str(json), RV__JSON_VALUE_DEPTH, &value, &why) < 0)
        return rv__fail(err, RV_EINVAL, "the %s is not JSON: %s", what, why.message);
    *ret = rv__blob_new(value);
    return *ret != NULL ? RV_OK : rv__nomem(err);
}

static int take_input(struct rv__call *call, const char *input, rv_error *err)
{
    struct rv__buf canonical;
    int rc = take_json(input, "input", &call->input, err);
    if (rc < 0)
        return rc;
    rv__buf_init(&canonical, RV__JSON_MAX_BYTES);
    rc = call->input != NULL ? rv__json_canonical(rv__blob_str(call->input), &canonical, err)
                             : RV_OK;
    if (rc == RV_OK)
        rc = rv__buf_err(&canonical, err);
    if (rc == RV_OK)
        rv__sha256_hex(rv__buf_view(&canonical), call->input_key);
    rv__buf_done(&canonical);
    call->given = rv__blob_ref(call->input);
    return rc;
}

static int check_size(size_t size, const char *macro, rv_error *err)
{
    if (size != 0)
        return RV_OK;
    return rv__fail(err, RV_EINVAL, "options without a size: make them with %s", macro);
}

int rv_register(rv_engine *engine, const rv_workflow *workflow, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_REGISTER, err);
    if (rc < 0)
        return rc;
    call.definition = workflow;
    if (workflow == NULL) {
        rc = rv__fail(err, RV_EINVAL, "no workflow given");
    } else {
        call_send(&call);
        rc = call_result(&call, err);
    }
    call_done(&call);
    return rc;
}

/* The violations as the caller gets them, in one allocation. */
static int give_violations(const struct rv__violations *bad, rv_violations **ret)
{
    size_t size = sizeof(rv_violations) + bad->count * sizeof(rv_violation);
    for (size_t i = 0; i < bad->count; i++)
        size += bad->items[i].path.len + bad->items[i].message.len + 2;
    char *mem = rv__zalloc(1, size);
    if (mem == NULL)
        return RV_ENOMEM;
    rv_violations *list = (rv_violations *)(void *)mem;
    rv_violation *items = (rv_violation *)(void *)(mem + sizeof *list);
    char *text = (char *)(items + bad->count);
    for (size_t i = 0; i < bad->count; i++) {
        const struct rv__str *from[] = { &bad->items[i].path, &bad->items[i].message };
        const char **to[] = { &items[i].path, &items[i].message };
        for (int k = 0; k < 2; k++) {
            *to[k] = text;
            if (from[k]->len > 0)
                memcpy(text, from[k]->at, from[k]->len);
            text += from[k]->len + 1;
        }
    }
    list->count = bad->count;
    list->dropped = bad->dropped;
    list->items = items;
    *ret = list;
    return RV_OK;
}

void rv_violations_free(rv_violations *violations)
{
    rv__free(violations);
}

/* Hold the input to the schema of the workflow, on the caller's thread. */
static int judge_input(struct rv__call *call, const rv_run_opts *opts, rv_error *err)
{
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__blob *full = NULL;
    rv_error why = { .code = 0 };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by RV__VIOLATIONS_MAX */
    rv__violations_init(&bad, &arena);
    const struct rv__plan_ref *plan = call->judge;
    int rc = rv__input_take(rv__plan_exprs_rule(&plan->exprs, &plan->plan->body), call->given, &bad,
                            &full, &why);
    if (rc == RV_OK) {
        rv__blob_unref(call->input);
        call->input = full;
    } else if (bad.count > 0) {
        if (opts->violations != NULL && give_violations(&bad, opts->violations) < 0)
            rc = rv__nomem(err);
        else
            rc = rv__fail(err, RV_EINVAL, "the input of workflow '%.60s' is refused: %s",
                          call->workflow, why.message);
    } else if (err != NULL) {
        *err = why;
    }
    rv__arena_done(&arena);
    return rc;
}

int rv_run(rv_engine *engine, const char *workflow, const char *input, const rv_run_opts *opts,
           rv_run_info *ret, rv_error *err)
{
    rv_run_opts known = { .size = sizeof known };
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_RUN, err);
    if (rc < 0)
        return rc;
    call.workflow = workflow;
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    opts = &known;
    rc = workflow != NULL ? check_size(opts->size, "RV_RUN_OPTS", err)
                          : rv__fail(err, RV_EINVAL, "no workflow named");
    if (rc == RV_OK && opts->run_id != NULL)
        rc = set_run_id(&call, opts->run_id, err);
    if (rc == RV_OK)
        rc = take_input(&call, input, err);
    if (rc == RV_OK)
        call_send(&call);
    while (rc == RV_OK &&
           call.rc == RV__CHECK_INPUT) { /* again, if it is registered anew meanwhile */
        rc = judge_input(&call, opts, err);
        call.done = false;
        if (rc == RV_OK)
            call_send(&call);
    }
    if (rc == RV_OK)
        rc = call_result(&call, err);
    if (rc == RV_OK && ret != NULL) {
        memcpy(ret->run_id, call.run_id, sizeof ret->run_id);
        ret->status = call.status;
    }
    call_done(&call);
    return rc;
}

static int send_message(rv_engine *engine, const char *run_id, struct rv__msg msg, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_MESSAGE, err);
    if (rc == RV_OK) {
        call.msg = msg;
        rc = set_run_id(&call, run_id, err);
        if (rc == RV_OK) {
            call_send(&call);
            rc = call_result(&call, err);
        }
        call_done(&call);
        return rc;
    }
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.error);
    return rc;
}

int rv_cancel_run(rv_engine *engine, const char *run_id, rv_error *err)
{
    return send_message(engine, run_id, (struct rv__msg){ .kind = MSG_CANCEL }, err);
}

int rv_signal(rv_engine *engine, const char *run_id, const char *name, const char *payload,
              rv_error *err)
{
    struct rv__msg msg = { .kind = MSG_SIGNAL, .name = rv__str(name) };
    if (name == NULL || *name == '\0')
        return rv__fail(err, RV_EINVAL, "a signal needs a name");
    int rc = take_json(payload, "payload", &msg.result, err);
    return rc < 0 ? rc : send_message(engine, run_id, msg, err);
}

static struct rv__blob *message_blob(const char *message)
{
    struct rv__buf json;
    struct rv__blob *blob = NULL;
    rv__buf_init(&json, RV__JSON_MAX_BYTES);
    rv__buf_text(&json, "{\"message\":");
    rv__buf_json_str(&json, rv__str(message));
    rv__buf_char(&json, '}');
    if (rv__buf_err(&json, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&json));
    rv__buf_done(&json);
    return blob;
}

int rv_complete(rv_engine *engine, const char *run_id, const char *handle, const char *result,
                const char *error, rv_error *err)
{
    struct rv__msg msg = { .kind = MSG_ANSWER, .name = rv__str(handle) };
    if (handle == NULL || *handle == '\0')
        return rv__fail(err, RV_EINVAL, "no handle given");
    int rc = take_json(result, "result", &msg.result, err);
    if (rc < 0)
        return rc;
    if (error != NULL && (msg.error = message_blob(error)) == NULL) {
        rv__blob_unref(msg.result);
        return rv__nomem(err);
    }
    return send_message(engine, run_id, msg, err);
}

int rv_decide(rv_engine *engine, const char *run_id, int decision, const char *reason,
              rv_error *err)
{
    struct rv__msg msg = { .kind = decision == RV_ABORT ? MSG_ABORT : MSG_RESUME };
    if (decision != RV_RESUME && decision != RV_ABORT)
        return rv__fail(err, RV_EINVAL, "%d is no decision: RV_RESUME or RV_ABORT", decision);
    if (decision == RV_ABORT && reason != NULL && (msg.error = message_blob(reason)) == NULL)
        return rv__nomem(err);
    return send_message(engine, run_id, msg, err);
}

int rv__call_register(rv_engine *engine, struct rv__registration *registration, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_REGISTER, err);
    if (rc < 0)
        return rc;
    call.registration = registration;
    call_send(&call);
    rc = call_result(&call, err);
    call_done(&call);
    return rc;
}

int rv__call_look(rv_engine *engine, const char *run_id,
                  int (*look)(struct rv__call *call, struct rv__run *run), void *arg, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_LOOK, err);
    if (rc < 0)
        return rc;
    call.look = look;
    call.arg = arg;
    rc = set_run_id(&call, run_id, err);
    if (rc == RV_OK) {
        call_send(&call);
        rc = call_result(&call, err);
    }
    call_done(&call);
    return rc;
}

int rv__call_ask(rv_engine *engine, int (*ask)(struct rv__call *call), void *arg, bool writes,
                 rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_ASK, err);
    if (rc < 0)
        return rc;
    call.ask = ask;
    call.writes = writes;
    call.arg = arg;
    call_send(&call);
    rc = call_result(&call, err);
    call_done(&call);
    return rc;
}

int rv_state(rv_engine *engine, const char *run_id, rv_run_state **ret, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_STATE, err);
    if (rc < 0)
        return rc;
    rc = ret != NULL ? set_run_id(&call, run_id, err)
                     : rv__fail(err, RV_EINVAL, "rv_state: nowhere to put it");
    if (rc == RV_OK) {
        call_send(&call);
        rc = call_result(&call, err);
    }
    if (rc == RV_OK) {
        /* The struct with its texts behind it, in one allocation. */
        size_t texts_at = sizeof(rv_run_state), results_at = texts_at + call.texts.len;
        char *mem = rv__zalloc(1, results_at + call.results.len + 1);
        if (mem == NULL) {
            rc = rv__nomem(err);
        } else {
            rv_run_state *state = (rv_run_state *)(void *)mem;
            memcpy(mem + texts_at, call.texts.text, call.texts.len);
            memcpy(mem + results_at, call.results.text, call.results.len);
            memcpy(state->run_id, call.run_id, sizeof state->run_id);
            state->status = call.status;
            state->workflow = mem + texts_at + call.row.workflow;
            state->version = mem + texts_at + call.row.version;
            state->input = mem + texts_at + call.row.input;
            state->error = mem + texts_at + call.row.error;
            state->failed_step = mem + texts_at + call.row.failed_step;
            state->suspension = mem + texts_at + call.row.suspension;
            state->results = mem + results_at;
            state->created_at = call.row.created_ms;
            state->started_at = call.row.started_ms;
            state->completed_at = call.row.completed_ms;
            int64_t end_ms = call.row.completed_ms ? call.row.completed_ms
                                                   : rv__wall_ms(engine->clock);
            state->duration_ms = end_ms - call.row.started_ms;
            *ret = state;
        }
    }
    call_done(&call);
    return rc;
}

void rv_run_state_free(rv_run_state *state)
{
    rv__free(state);
}

/* The caller gives up: tell the loop, and wait until it has let go of the call. */
static void give_up(struct rv__call *call)
{
    struct rv__call unwait;
    if (call_init(&unwait, call->engine, CALL_UNWAIT, NULL) < 0)
        return;
    unwait.about = call;
    call_send(&unwait);
    call_done(&unwait);
}

/* A waiter whose token fires is woken through its condition. */
struct wait_watch {
    struct rv__cancel_watch watch; /* first */
    struct rv__call *call;
    bool fired; /* under reply_lock */
};

static void wait_given_up(struct rv__cancel_watch *watch)
{
    struct wait_watch *w = (struct wait_watch *)watch;
    pthread_mutex_lock(&w->call->engine->reply_lock);
    w->fired = true;
    pthread_cond_signal(&w->call->answered);
    pthread_mutex_unlock(&w->call->engine->reply_lock);
}

/* 1: answered; 0: the time has passed; -1: the token fired. Inside rv__engine_enter() and rv__engine_leave(). */
static int wait_inside(struct rv__call *call, int64_t timeout_ms, rv_cancel *by)
{
    rv_engine *e = call->engine;
    struct wait_watch w = { .watch.fired = wait_given_up, .call = call };
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    if (rv__engine_post(e, &call->letter) < 0) {
        call->rc = rv__fail(&call->err, RV_ECLOSED, "the engine has closed");
        return 1;
    }
    if (e->kit != NULL) {
        int64_t now_ms = rv__mono_ms(e->clock);
        rv__kit_drive(e, &call->done, by, timeout_ms < 0 ? INT64_MAX : now_ms + timeout_ms);
        w.fired = rv_cancel_fired(by);
        deadline_ns = 0;
    }
    bool watching = by != NULL && rv__cancel_watch(by, &w.watch);
    bool in_time = true;
    pthread_mutex_lock(&e->reply_lock);
    if (by != NULL && !watching)
        w.fired = true;
    while (!call->done && in_time && !w.fired)
        in_time = rv__cond_wait_until(&call->answered, &e->reply_lock, deadline_ns);
    bool done = call->done;
    pthread_mutex_unlock(&e->reply_lock);
    if (watching)
        rv__cancel_unwatch(by, &w.watch);
    if (done)
        return 1;
    give_up(call);
    if (call->done) /* answered at the last moment: that counts */
        return 1;
    return w.fired ? -1 : 0;
}

static int wait_for_answer(struct rv__call *call, int64_t timeout_ms, rv_cancel *by)
{
    rv__engine_enter(call->engine);
    int answered = wait_inside(call, timeout_ms, by);
    rv__engine_leave(call->engine);
    return answered;
}

static int make_outcome(struct rv__call *call, rv_outcome **ret, rv_error *err)
{
    size_t texts_at = sizeof(rv_outcome), results_at = texts_at + call->texts.len;
    char *mem = rv__zalloc(1, results_at + call->results.len + 1);
    if (mem == NULL)
        return rv__nomem(err);
    rv_outcome *outcome = (rv_outcome *)(void *)mem;
    memcpy(mem + texts_at, call->texts.text, call->texts.len);
    memcpy(mem + results_at, call->results.text, call->results.len);
    memcpy(outcome->run_id, call->run_id, sizeof outcome->run_id);
    outcome->status = call->status;
    outcome->error = mem + texts_at + call->row.error;
    outcome->failed_step = mem + texts_at + call->row.failed_step;
    outcome->results = mem + results_at;
    *ret = outcome;
    return RV_OK;
}

int rv_wait(rv_engine *engine, const char *workflow, const char *run_id, const rv_wait_opts *opts,
            rv_outcome **ret, rv_error *err)
{
    rv_wait_opts known = { .size = sizeof known };
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_WAIT, err);
    if (rc < 0)
        return rc;
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    opts = &known;
    call.workflow = workflow;
    rc = check_size(opts->size, "RV_WAIT_OPTS", err);
    if (rc == RV_OK && ret == NULL)
        rc = rv__fail(err, RV_EINVAL, "rv_wait: nowhere to put the outcome");
    if (rc == RV_OK)
        rc = set_run_id(&call, run_id, err);
    int64_t timeout_ms = opts->timeout_ms == 0 ? DEFAULT_WAIT_MS : opts->timeout_ms;
    if (rc == RV_OK) {
        int answered = wait_for_answer(&call, timeout_ms, opts->by);
        if (answered > 0)
            rc = call_result(&call, err);
        else if (answered == 0)
            rc = rv__fail(err, RV_ETIMEDOUT, "run '%s'%s%.60s has not ended after %lld ms", run_id,
                          workflow != NULL ? " of workflow " : "", workflow != NULL ? workflow : "",
                          (long long)timeout_ms);
        else
            rc = rv__fail(err, RV_ECANCELED, "waiting for run '%s' was cancelled", run_id);
    }
    if (rc == RV_OK)
        rc = make_outcome(&call, ret, err);
    call_done(&call);
    return rc;
}

void rv_outcome_free(rv_outcome *outcome)
{
    rv__free(outcome);
}

const char *rv_status_name(int status)
{
    if (status < 0 || status >= RUN_STATUSES)
        return NULL;
    return rv__run_status_name((enum rv__run_status)status);
}
