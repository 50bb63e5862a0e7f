/* api.c: the public calls about runs, on the caller's side.
 *
 * A call is a struct on the caller's stack. It is sent to the loop as a letter (call.c handles it there), and the
 * caller waits on the call's own condition until it is answered. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/attempt.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/member.h"
#include "schema/schema.h"

#define DEFAULT_WAIT_MS 300000

static int call_init(struct rv__call *call, rv_engine *e, enum rv__call_kind kind, rv_error *err)
{
    *call = (struct rv__call){ .kind = kind,
                               .engine = e,
                               .registry = e != NULL ? e->registry : NULL };
    call->letter.kind = LETTER_CALL;
    rv__buf_init(&call->results, RV__RESULTS_MAX_BYTES);
    rv__buf_init(&call->texts, SIZE_MAX / 8);
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    pthread_mutex_init(&call->lock, NULL); /* on Linux it cannot fail */
    return rv__cond_init(&call->answered) < 0 ? rv__nomem(err) : RV_OK;
}

static void call_done(struct rv__call *call)
{
    rv__buf_done(&call->results);
    rv__buf_done(&call->texts);
    rv__blob_unref(call->input);
    rv__blob_unref(call->given);
    rv__blob_unref(call->rerun_of);
    rv__plan_ref_unref(call->judge);
    rv__blob_unref(call->asking);
    rv__session_unref(call->validator);
    rv__blob_unref(call->msg.result);
    rv__blob_unref(call->msg.error);
    pthread_cond_destroy(&call->answered);
    pthread_mutex_destroy(&call->lock);
}

/* The engine is not freed while a thread is inside one of its calls. */
void rv__engine_enter(rv_engine *e)
{
    pthread_mutex_lock(&e->callers_lock);
    e->callers++;
    pthread_mutex_unlock(&e->callers_lock);
}

void rv__engine_leave(rv_engine *e)
{
    pthread_mutex_lock(&e->callers_lock);
    if (--e->callers == 0)
        pthread_cond_signal(&e->left);
    pthread_mutex_unlock(&e->callers_lock);
}

/* Send it, and wait for the answer. */
static void call_send(struct rv__call *call)
{
    rv_engine *e = call->engine;
    rv__engine_enter(e);
    if (rv__engine_post(e, &call->letter) < 0) {
        call->rc = rv__fail(&call->err, RV_ECLOSED, "the engine has closed");
    } else if (e->around.await != NULL) {
        e->around.await(e, &call->done, NULL, INT64_MIN);
    } else {
        pthread_mutex_lock(&call->lock);
        while (!call->done)
            (void)rv__cond_wait_until(&call->answered, &call->lock, RV__NEVER);
        pthread_mutex_unlock(&call->lock);
    }
    rv__engine_leave(e);
}

static int call_result(struct rv__call *call, rv_error *err)
{
    if (call->rc == RV__ELSEWHERE) /* a caller that can ask another member has done so */
        call->rc = rv__fail(&call->err, RV_ESTATE, "another member has run '%s'", call->run_id);
    if (call->rc < 0 && err != NULL) {
        *err = call->err;
        if (err->code == 0)
            rv__fail(err, call->rc, "%s", rv_strerror(call->rc));
    }
    return call->rc < 0 ? call->rc : RV_OK;
}

static int check_run_id(const char *run_id, rv_error *err)
{
    if (run_id != NULL && rv__id_valid(rv__str(run_id)))
        return RV_OK;
    return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id: 1 to 128 of A-Z a-z 0-9 . _ : -",
                    run_id != NULL ? run_id : "");
}

static int set_run_id(struct rv__call *call, const char *run_id, rv_error *err)
{
    int rc = check_run_id(run_id, err);
    if (rc == RV_OK)
        snprintf(call->run_id, sizeof call->run_id, "%s", run_id);
    return rc;
}

/* Make the call, which is about that run, and wait for its answer. */
static int call_about(struct rv__call *call, const char *run_id, rv_error *err)
{
    int rc = set_run_id(call, run_id, err);
    if (rc < 0)
        return rc;
    call_send(call);
    return call_result(call, err);
}

/* JSON text from outside, checked, as a blob; NULL text gives NULL. */
static int take_json(const char *json, const char *what, struct rv__blob **ret, rv_error *err)
{
    struct rv__str value;
    rv_error why;
    if (json == NULL)
        return RV_OK;
    if (strlen(json) > RV__JSON_MAX_BYTES)
        return rv__fail(err, RV_ETOOBIG, "the %s has %zu bytes: at most %u are allowed", what,
                        strlen(json), RV__JSON_MAX_BYTES);
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

/* The name of the caller: as given, or else the engine's. Borrowed. */
static int take_by(const rv_engine *e, const char *by, struct rv__str *ret, rv_error *err)
{
    struct rv__str name = rv__str(by != NULL ? by : e != NULL ? e->by : NULL);
    if (name.len > RV_BY_BYTES || !rv__str_utf8(name))
        return rv__fail(err, RV_EINVAL, "`by` is a text of at most %d bytes of UTF-8", RV_BY_BYTES);
    *ret = name.len > 0 ? name : (struct rv__str){ NULL, 0 };
    return RV_OK;
}

static int check_size(size_t size, const char *macro, rv_error *err)
{
    if (size != 0)
        return RV_OK;
    return rv__fail(err, RV_EINVAL, "options without a size: make them with %s", macro);
}

int rv__register_in(struct rv__registry *registry, const rv_workflow *workflow, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, registry->engine, CALL_REGISTER, err);
    if (rc < 0)
        return rc;
    call.registry = registry;
    call.definition = workflow;
    rc = rv__register_nested(registry, workflow, err);
    if (rc == RV_OK) {
        call_send(&call);
        rc = call_result(&call, err);
    }
    call_done(&call);
    return rc;
}

int rv_register(rv_engine *engine, const rv_workflow *workflow, rv_error *err)
{
    if (engine == NULL || workflow == NULL)
        return rv__fail(err, RV_EINVAL, "no %s given", engine == NULL ? "engine" : "workflow");
    return rv__register_in(engine->registry, workflow, err);
}

int rv__violations_give(const struct rv__violations *bad, rv_violations **ret)
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

/* The worker that registered the workflow validates the input instead of the schema, which does not know about
 * coercions. As rv__session_validate(). */
static int ask_worker(struct rv__call *call, struct rv__violations *bad, struct rv__blob **ret,
                      rv_error *err)
{
    const struct rv__wrap *wrap = call->judge->plan->body.wrap;
    struct rv__str given = rv__blob_str(call->given);
    struct rv__judged about = { .workflow = call->workflow,
                                .version = call->judge->plan->version,
                                .input = given };
    if (rv__str_none(given) && !rv__str_none(wrap->schema))
        about.input = rv__str("{}");
    int rc = rv__session_validate(call->validator, &about, call->engine->closing, bad, ret, err);
    if (rc == RV_OK && *ret == NULL)
        *ret = rv__blob_ref(call->given);
    return rc;
}

/* Validate the input, on the caller's thread. */
static int judge_input(struct rv__call *call, const rv_run_opts *opts, rv_error *err)
{
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__blob *full = NULL;
    rv_error why = { .code = 0 };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by RV__VIOLATIONS_MAX */
    rv__violations_init(&bad, &arena);
    const struct rv__plan_ref *plan = call->judge;
    const struct rv__wrap *wrap = plan->plan->body.wrap;
    if (wrap->needs_count > 0)
        return rv__fail(err, RV_EINVAL,
                        "workflow '%.60s' cannot be run alone: it needs '%.60s' of a workflow that "
                        "nests it",
                        call->workflow, wrap->needs[0].at);
    int rc = RV_ECLOSED;
    if (call->validator != NULL)
        rc = ask_worker(call, &bad, &full, &why);
    if (rc == RV_ECLOSED) { /* no worker is connected, or it does not answer */
        call->schema_only |= call->validator != NULL;
        rc = rv__input_take(rv__plan_exprs_rule(&plan->exprs, &plan->plan->body), call->given, &bad,
                            &full, &why);
    }
    if (rc == RV_OK) {
        rv__blob_unref(call->input);
        call->input = full;
    } else if (bad.count > 0) {
        if (opts->violations != NULL && rv__violations_give(&bad, opts->violations) < 0)
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

int rv__run_in(struct rv__registry *registry, const char *workflow, const char *input,
               const rv_run_opts *opts, rv_run_info *ret, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, registry->engine, CALL_RUN, err);
    if (rc < 0)
        return rc;
    call.registry = registry;
    call.workflow = workflow;
    if (opts->run_id != NULL)
        rc = set_run_id(&call, opts->run_id, err);
    if (rc == RV_OK)
        rc = take_by(registry->engine, opts->by, &call.msg.by, err);
    call.limit = opts->max_concurrency;
    if (rc == RV_OK && (opts->max_concurrency < 0 || opts->max_concurrency > INT32_MAX))
        rc = rv__fail(err, RV_EINVAL, "maxConcurrency must be from 1 to %d", INT32_MAX);
    if (rc == RV_OK && opts->rerun_of != NULL)
        rc = check_run_id(opts->rerun_of, err);
    if (rc == RV_OK && opts->rerun_of != NULL &&
        (call.rerun_of = rv__blob_new(rv__str(opts->rerun_of))) == NULL)
        rc = rv__nomem(err);
    if (rc == RV_OK)
        rc = take_input(&call, input, err);
    if (rc == RV_OK)
        call_send(&call);
    while (rc == RV_OK &&
           call.rc == RV__CHECK_INPUT) { /* again, if the workflow was registered again meanwhile */
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
        ret->schema_only = call.schema_only && call.began;
    }
    call_done(&call);
    return rc;
}

int rv_run(rv_engine *engine, const char *workflow, const char *input, const rv_run_opts *opts,
           rv_run_info *ret, rv_error *err)
{
    rv_run_opts known = { .size = sizeof known };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (engine == NULL || workflow == NULL)
        return rv__fail(err, RV_EINVAL, engine == NULL ? "no engine given" : "no workflow named");
    int rc = check_size(known.size, "RV_RUN_OPTS", err);
    if (rc < 0)
        return rc;
    if (!rv__attached_asks_driver(engine))
        return rv__run_in(engine->registry, workflow, input, &known, ret, err);
    if (known.run_id != NULL)
        rc = check_run_id(known.run_id, err);
    return rc == RV_OK ? rv__attached_run(engine, workflow, input, &known, ret, err) : rc;
}

/* The schema of what an attempt asks for; *ret is NULL if it has none. */
static int asked_schema(const struct rv__blob *note, struct rv__schema **ret, rv_error *err)
{
    struct rv__str ask, schema;
    rv_error why = { .code = 0 };
    *ret = NULL;
    if (!rv__json_get(rv__blob_str(note), "ask", &ask) || !rv__json_get(ask, "schema", &schema))
        return RV_OK;
    int rc = rv__schema_new(schema, NULL, ret, &why);
    if (rc == RV_OK || rc == RV_ENOMEM)
        return rc == RV_OK ? RV_OK : rv__nomem(err);
    return rv__fail(err, RV_EINVAL,
                    "the answer cannot be checked, because the schema of the question is wrong: %s",
                    why.message);
}

/* Check a signal's payload by its schema, on the caller's thread. */
static int judge_payload(const struct rv__call *call, rv_violations **violations, rv_error *err)
{
    const struct rv__signal_rule *rule = NULL;
    struct rv__signal_rule asked = { .name = call->msg.name };
    int rc = call->asking != NULL ? asked_schema(call->asking, &asked.schema, err) : RV_OK;
    if (rc < 0)
        return rc;
    if (call->asking == NULL)
        rule = rv__plan_exprs_signal(&call->judge->exprs, call->msg.name);
    else if (asked.schema != NULL)
        rule = &asked;
    if (rule == NULL)
        return RV_OK;
    struct rv__str payload = rv__blob_str(call->msg.result);
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error why = { .code = 0 };
    rv__arena_init(&arena, SIZE_MAX); /* bounded by RV__VIOLATIONS_MAX */
    rv__violations_init(&bad, &arena);
    rc = rv__schema_check(rule->schema, rv__str_none(payload) ? rv__str("null") : payload, &bad,
                          &why);
    if (rc < 0 && bad.count > 0) {
        if (violations != NULL && rv__violations_give(&bad, violations) < 0)
            rc = rv__nomem(err);
        else
            rc = rv__fail(err, RV_EINVAL, "the payload of signal '%.*s' is refused: %s",
                          (int)(rule->name.len < 60 ? rule->name.len : 60), rule->name.at,
                          why.message);
    } else if (rc < 0 && err != NULL) {
        *err = why;
    }
    rv__arena_done(&arena);
    rv__schema_free(asked.schema);
    return rc;
}

/* If another member owns the run, send the call to that member; *rc: the result. True: the run has another owner
 * now, so the call must be made again. */
enum { MOVED_MS = 20 };
static bool has_moved(rv_engine *e, int *rc, rv_error *err)
{
    if (*rc != RV_ECLOSED || rv_cancel_fired(e->closing) || RV__BUG(410))
        return false;
    int passed = rv__member_pause(e, MOVED_MS, NULL, err);
    *rc = passed < 0 ? passed : RV_ECLOSED;
    return passed == RV_OK;
}

/* Where to store the owner; NULL: this call comes from another member, which looks for the owner itself. */
static const struct rv__addressee *tell_whom(rv_engine *e, struct rv__addressee *told,
                                             const char *by, rv_error *err)
{
    told->by = by != NULL ? by : e->by[0] != '\0' ? e->by : NULL;
    if (!rv__member_answers(e))
        return told;
    (void)rv__fail(err, RV_ECLOSED, "the run is another member's by now");
    return NULL;
}

/* `violations`: of a signal's payload; may be NULL. RV__ELSEWHERE: another member has it, *ret_owner. */
static int send_message(rv_engine *engine, const char *run_id, struct rv__msg msg,
                        rv_violations **violations, int64_t *ret_owner, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_MESSAGE, err);
    if (rc == RV_OK) {
        call.msg = msg;
        rc = set_run_id(&call, run_id, err);
        if (rc == RV_OK)
            call_send(&call);
        while (rc == RV_OK && call.rc == RV__CHECK_INPUT) {
            rc = judge_payload(&call, violations, err);
            call.done = false;
            if (rc == RV_OK)
                call_send(&call);
        }
        if (rc == RV_OK && call.rc == RV__ELSEWHERE) {
            *ret_owner = call.owner;
            rc = RV__ELSEWHERE;
        } else if (rc == RV_OK) {
            rc = call_result(&call, err);
        }
        call_done(&call);
        return rc;
    }
    rv__blob_unref(msg.result);
    rv__blob_unref(msg.error);
    return rc;
}

void rv_read_init(rv_read *read)
{
    *read = (rv_read){ .size = sizeof *read };
}

/* Only the loop knows which attempt has the token: call.c. */
static int send_read(rv_engine *engine, const char *token, const rv_read *read, int64_t *ret_owner,
                     rv_error *err)
{
    struct rv__call call;
    struct rv__buf what;
    int rc = call_init(&call, engine, CALL_MESSAGE, err);
    if (rc < 0)
        return rc;
    rv__buf_init(&what, RV__READ_NAME_BYTES);
    rv__access_name_read(read->what, read->name, &what);
    call.msg = (struct rv__msg){ .kind = MSG_READ,
                                 .name = rv__buf_view(&what),
                                 .by = rv__str(read->through) };
    call.pass = token;
    call.wanted = read;
    rc = rv__buf_err(&what, err);
    if (rc == RV_OK)
        rc = set_run_id(&call, read->run_id, err);
    if (rc == RV_OK)
        call_send(&call);
    *ret_owner = call.owner;
    if (rc == RV_OK)
        rc = call.rc == RV__ELSEWHERE ? RV__ELSEWHERE : call_result(&call, err);
    call_done(&call);
    rv__buf_done(&what);
    return rc;
}

/* The attempt with this token is where its run is driven. */
static int read_there(rv_engine *engine, const char *token, const rv_read *read, rv_error *err)
{
    struct rv__addressee told;
    int rc;
    do {
        rc = send_read(engine, token, read, &told.member, err);
        if (rc != RV__ELSEWHERE)
            return rc;
        const struct rv__addressee *whom = tell_whom(engine, &told, NULL, err);
        if (whom == NULL)
            return RV_ECLOSED;
        rc = rv__attached_read(engine, whom, token, read, err);
    } while (has_moved(engine, &rc, err));
    return rc;
}

int rv_read_as(rv_engine *engine, const char *token, const rv_read *read, rv_error *err)
{
    rv_read known = { .size = sizeof known };
    if (read != NULL)
        rv__opts_take(&known, sizeof known, read, read->size);
    if (engine == NULL || token == NULL || read == NULL || known.size == 0)
        return rv__fail(err, RV_EINVAL, "rv_read_as: %s",
                        engine == NULL  ? "no engine given"
                        : token == NULL ? "no token given"
                                        : "say what is read with RV_READ");
    if (known.what < RV_READ_LOGS || known.what > RV_READ_RUN)
        return rv__fail(err, RV_EINVAL, "rv_read_as: there is no such thing to read");
    if (known.name == NULL)
        known.name = "";
    if (known.through != NULL && strlen(known.through) > RV_BY_BYTES)
        return rv__fail(err, RV_EINVAL, "rv_read_as: 'through' has more than %d bytes",
                        RV_BY_BYTES);
    if (engine->attached == NULL && !engine->read_only)
        return read_there(engine, token, &known, err);
    int rc = engine->attached != NULL ? rv__attached_read(engine, NULL, token, &known, err)
                                      : RV_ECLOSED;
    return rc != RV_ECLOSED
               ? rc
               : rv__fail(err, RV_ESTATE, "nobody drives the store: no token is valid now");
}

int rv_cancel_run(rv_engine *engine, const char *run_id, rv_error *err)
{
    return rv_cancel_run_with(engine, run_id, NULL, err);
}

int rv_cancel_run_with(rv_engine *engine, const char *run_id, const rv_cancel_opts *opts,
                       rv_error *err)
{
    rv_cancel_opts known = { .size = sizeof known };
    struct rv__msg msg = { .kind = MSG_CANCEL };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    int rc = check_size(known.size, "RV_CANCEL_OPTS", err);
    if (rc != RV_OK)
        return rc;
    if (engine == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    if (rv__attached_asks_driver(engine))
        return rv__attached_cancel(engine, NULL, run_id, err);
    rc = take_by(engine, known.by, &msg.by, err);
    if (rc != RV_OK)
        return rc;
    struct rv__addressee told;
    do {
        rc = send_message(engine, run_id, msg, NULL, &told.member, err);
        if (rc != RV__ELSEWHERE)
            return rc;
        const struct rv__addressee *whom = tell_whom(engine, &told, known.by, err);
        if (whom == NULL)
            return RV_ECLOSED;
        rc = rv__attached_cancel(engine, whom, run_id, err);
    } while (has_moved(engine, &rc, err));
    return rc;
}

int rv_signal(rv_engine *engine, const char *run_id, const char *name, const char *payload,
              rv_error *err)
{
    return rv_signal_with(engine, run_id, name, payload, NULL, err);
}

int rv_signal_with(rv_engine *engine, const char *run_id, const char *name, const char *payload,
                   const rv_signal_opts *opts, rv_error *err)
{
    rv_signal_opts known = { .size = sizeof known };
    struct rv__msg msg = { .kind = MSG_SIGNAL, .name = rv__str(name) };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    int rc = check_size(known.size, "RV_SIGNAL_OPTS", err);
    if (rc < 0)
        return rc;
    if (name == NULL || *name == '\0')
        return rv__fail(err, RV_EINVAL, "a signal needs a name");
    if (rv__attached_asks_driver(engine))
        return rv__attached_signal(engine, NULL, run_id, name, payload, known.force, err);
    msg.force = known.force;
    rc = take_by(engine, known.by, &msg.by, err);
    if (rc < 0)
        return rc;
    struct rv__addressee told;
    do {
        msg.result = NULL;
        rc = take_json(payload, "payload", &msg.result, err);
        if (rc == RV_OK)
            rc = send_message(engine, run_id, msg, known.violations, &told.member, err);
        if (rc != RV__ELSEWHERE)
            return rc;
        const struct rv__addressee *whom = tell_whom(engine, &told, known.by, err);
        if (whom == NULL)
            return RV_ECLOSED;
        rc = rv__attached_signal(engine, whom, run_id, name, payload, known.force, err);
    } while (has_moved(engine, &rc, err));
    return rc;
}

static int check_message(const char *message, const char *what, rv_error *err)
{
    if (message == NULL || strlen(message) <= RV__MESSAGE_MAX_BYTES)
        return RV_OK;
    return rv__fail(err, RV_ETOOBIG, "the %s has %zu bytes: at most %d are allowed", what,
                    strlen(message), RV__MESSAGE_MAX_BYTES);
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
    return rv_complete_with(engine, run_id, handle,
                            RV_COMPLETE_OPTS(.result = result, .error = error), err);
}

int rv_complete_with(rv_engine *engine, const char *run_id, const char *handle,
                     const rv_complete_opts *opts, rv_error *err)
{
    rv_complete_opts known = { .size = sizeof known };
    struct rv__msg msg = { .kind = MSG_ANSWER, .name = rv__str(handle) };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    int rc = check_size(known.size, "RV_COMPLETE_OPTS", err);
    if (rc < 0)
        return rc;
    if (handle == NULL || *handle == '\0')
        return rv__fail(err, RV_EINVAL, "no handle given");
    if (check_message(known.error, "error", err) < 0)
        return RV_ETOOBIG;
    if (engine == NULL)
        return rv__fail(err, RV_EINVAL, "no engine given");
    if (rv__attached_asks_driver(engine))
        return rv__attached_complete(engine, NULL, run_id, handle, known.result, known.error, err);
    rc = take_by(engine, known.by, &msg.by, err);
    if (rc < 0)
        return rc;
    struct rv__addressee told;
    do {
        msg.result = msg.error = NULL;
        rc = take_json(known.result, "result", &msg.result, err);
        if (rc == RV_OK && known.error != NULL && (msg.error = message_blob(known.error)) == NULL) {
            rv__blob_unref(msg.result);
            rc = rv__nomem(err);
        }
        if (rc == RV_OK)
            rc = send_message(engine, run_id, msg, NULL, &told.member, err);
        if (rc != RV__ELSEWHERE)
            return rc;
        const struct rv__addressee *whom = tell_whom(engine, &told, known.by, err);
        if (whom == NULL)
            return RV_ECLOSED;
        rc = rv__attached_complete(engine, whom, run_id, handle, known.result, known.error, err);
    } while (has_moved(engine, &rc, err));
    return rc;
}

void rv_decide_opts_init(rv_decide_opts *opts)
{
    *opts = (rv_decide_opts){ .size = sizeof *opts };
}

int rv_decide(rv_engine *engine, const char *run_id, int decision, const rv_decide_opts *opts,
              rv_error *err)
{
    static const enum rv__msg_kind kinds[] = { [RV_RESUME] = MSG_RESUME,
                                               [RV_ABORT] = MSG_ABORT,
                                               [RV_SKIP] = MSG_SKIP,
                                               [RV_RESTART_STAGE] = MSG_RESTART };
    rv_decide_opts known = { .size = sizeof known };
    if (decision < RV_RESUME || decision > RV_RESTART_STAGE)
        return rv__fail(err, RV_EINVAL, "%d is not a decision: RV_RESUME, RV_ABORT, …", decision);
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_DECIDE_OPTS");
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    const char *reason = known.reason;
    struct rv__msg msg = { .kind = kinds[decision], .name = rv__str(known.path) };
    if (check_message(reason, "reason", err) < 0)
        return RV_ETOOBIG;
    if (rv__attached_asks_driver(engine))
        return rv__attached_decide(engine, NULL, run_id, decision, &known, err);
    int rc = engine != NULL ? take_by(engine, known.by, &msg.by, err)
                            : rv__fail(err, RV_EINVAL, "no engine given");
    if (rc < 0)
        return rc;
    struct rv__addressee told;
    do {
        msg.error = NULL;
        if (reason != NULL && (msg.error = message_blob(reason)) == NULL)
            return rv__nomem(err);
        rc = send_message(engine, run_id, msg, NULL, &told.member, err);
        if (rc != RV__ELSEWHERE)
            return rc;
        const struct rv__addressee *whom = tell_whom(engine, &told, known.by, err);
        if (whom == NULL)
            return RV_ECLOSED;
        rc = rv__attached_decide(engine, whom, run_id, decision, &known, err);
    } while (has_moved(engine, &rc, err));
    return rc;
}

int rv__call_register(struct rv__registry *registry, struct rv__registration *registration,
                      rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, registry->engine, CALL_REGISTER, err);
    if (rc < 0)
        return rc;
    call.registry = registry;
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
    rc = call_about(&call, run_id, err);
    call_done(&call);
    return rc;
}

int rv__hand_over(struct rv__registry *registry, const char *workflow, const char *run_id,
                  bool resumes, bool *followed, struct rv__registry **ret, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, registry->engine, CALL_HAND_OVER, err);
    if (rc < 0)
        return rc;
    call.registry = registry;
    call.workflow = workflow;
    call.resumes = resumes;
    rc = call_about(&call, run_id, err);
    if (rc == RV_OK) {
        *followed = call.followed;
        *ret = call.found;
    }
    call_done(&call);
    return rc;
}

int rv__hand_back_run(rv_engine *engine, const struct rv__registry *registry, const char *run_id,
                      int64_t drain_ms, int64_t tell_ms, int *left, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_HAND_BACK, err);
    if (rc < 0)
        return rc;
    call.registry = (struct rv__registry *)(uintptr_t)registry; /* compared */
    call.drain_ms = drain_ms;
    call.tell_ms = tell_ms;
    rc = call_about(&call, run_id, err);
    *left = call.left;
    call_done(&call);
    return rc;
}

int rv_engine_drain(rv_engine *engine, int64_t timeout_ms, rv_cancel *by, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_DRAIN, err);
    if (rc < 0)
        return rc;
    if (!engine->around.threads) {
        call_done(&call);
        return rv__fail(err, RV_EINVAL, "a test engine cannot be drained");
    }
    call_send(&call); /* an error only says that it has ended */
    call_done(&call);
    if (call.rc == RV_ENOTFOUND)
        return RV_OK;
    rv__engine_enter(engine);
    rc = rv__ask_pause(timeout_ms, by, engine->over, err);
    rv__engine_leave(engine);
    if (rc == RV_OK)
        return rv__fail(err, RV_ETIMEDOUT, "steps still run after %lld ms", (long long)timeout_ms);
    return rc == RV_ECLOSED ? RV_OK : rc;
}

static int ask_loop(rv_engine *engine, struct rv__call what, rv_error *err)
{
    struct rv__call call;
    int rc = call_init(&call, engine, CALL_ASK, err);
    if (rc < 0)
        return rc;
    call.ask = what.ask;
    call.asked = what.asked;
    call.writes = what.writes;
    call.arg = what.arg;
    call_send(&call);
    rc = call_result(&call, err);
    call_done(&call);
    return rc;
}

int rv__call_ask(rv_engine *engine, int (*ask)(struct rv__call *call), void *arg, rv_error *err)
{
    return ask_loop(engine, (struct rv__call){ .ask = ask, .arg = arg }, err);
}

int rv__call_write(rv_engine *engine, int (*ask)(struct rv__call *call),
                   int (*asked)(struct rv__call *call), void *arg, rv_error *err)
{
    struct rv__call call = { .ask = ask, .asked = asked, .arg = arg, .writes = true };
    return ask_loop(engine, call, err);
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
        /* One allocation: the struct, then its texts. */
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
            state->failed_path = mem + texts_at + call.row.failed_path;
            state->suspension = mem + texts_at + call.row.suspension;
            state->rerun_of = mem + texts_at + call.row.rerun_of;
            state->waiting = call.row.waiting ? "somebody" : "";
            state->suspensions = mem + texts_at + call.row.suspensions;
            state->results = mem + results_at;
            state->results_too_large = (int64_t)call.results_bytes;
            state->created_at = call.row.created_ms;
            state->started_at = call.row.started_ms;
            state->completed_at = call.row.completed_ms;
            int64_t end_ms = call.row.completed_ms ? call.row.completed_ms
                                                   : rv__wall_ms(engine->clock);
            state->duration_ms = end_ms - call.row.started_ms;
            assert(ret != NULL); /* the call was answered */
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

/* The caller gives up: tell the loop, and wait until it no longer uses the call. */
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
    bool fired; /* under call->lock */
};

static void wait_given_up(struct rv__cancel_watch *watch)
{
    struct wait_watch *w = (struct wait_watch *)watch;
    pthread_mutex_lock(&w->call->lock);
    w->fired = true;
    pthread_cond_signal(&w->call->answered);
    pthread_mutex_unlock(&w->call->lock);
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
    if (e->around.await != NULL) {
        int64_t now_ms = rv__mono_ms(e->clock);
        e->around.await(e, &call->done, by, timeout_ms < 0 ? INT64_MAX : now_ms + timeout_ms);
        w.fired = rv_cancel_fired(by);
        deadline_ns = 0;
    }
    bool watching = by != NULL && rv__cancel_watch(by, &w.watch);
    bool in_time = true;
    pthread_mutex_lock(&call->lock);
    if (by != NULL && !watching)
        w.fired = true;
    while (!call->done && in_time && !w.fired)
        in_time = rv__cond_wait_until(&call->answered, &call->lock, deadline_ns);
    bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    if (watching)
        rv__cancel_unwatch(by, &w.watch);
    if (done)
        return 1;
    give_up(call);
    if (call->done) /* answered at the last moment */
        return 1;
    return w.fired ? -1 : 0;
}

static int wait_for_answer(struct rv__call *call, int64_t timeout_ms, rv_cancel *by)
{
    rv__engine_enter(call->engine);
    int answered = wait_inside(call, timeout_ms, by);
    rv_engine *e = call->engine;
    if (call->lent && !e->around.threads && call->life == e->life)
        rv__place_take(e, LANE_FUNCTION, 0); /* no other thread changes it now */
    rv__engine_leave(e);
    return answered;
}

/* Wait a moment, then read the row of a run that another member owns. True: it has ended, or the caller must give up
 * for a reason that the call itself reports. */
enum { LOOK_FIRST_MS = 10, LOOK_LAST_MS = 200 };
static bool is_over_elsewhere(struct rv__call *call, int64_t pause_ms, rv_cancel *by)
{
    rv_engine *e = call->engine;
    rv__engine_enter(e);
    int rc = rv__member_pause(e, pause_ms, by, NULL);
    if (rc == RV_OK)
        rc = rv__run_has_ended(e, call->workflow, call->run_id, NULL);
    rv__engine_leave(e);
    return rc != 0 && rc != RV_ESTORE;
}

/* As wait_for_answer(), but the run may belong to another member: then it is polled, less and less often. */
static int wait_for_member(struct rv__call *call, int64_t timeout_ms, rv_cancel *by)
{
    struct rv__clock *clock = call->engine->clock;
    int64_t until_ms = rv__mono_ms(clock) + timeout_ms, left_ms = timeout_ms;
    for (;;) {
        int answered = wait_for_answer(call, left_ms, by);
        if (answered <= 0 || call->rc != RV__ELSEWHERE)
            return answered;
        int64_t pause_ms = LOOK_FIRST_MS;
        bool over = false;
        while (!over && left_ms != 0) {
            over = is_over_elsewhere(call, left_ms > 0 && left_ms < pause_ms ? left_ms : pause_ms,
                                     by);
            pause_ms = pause_ms * 2 < LOOK_LAST_MS ? pause_ms * 2 : LOOK_LAST_MS;
            left_ms = until_ms - rv__mono_ms(clock);
            left_ms = timeout_ms < 0 ? -1 : left_ms > 0 ? left_ms : 0;
        }
        if (!over)
            return 0;
        call->done = false;
    }
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
    outcome->failed_path = mem + texts_at + call->row.failed_path;
    outcome->results = mem + results_at;
    outcome->results_too_large = (int64_t)call->results_bytes;
    assert(ret != NULL); /* the call was answered */
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
    const struct rv__attempt *step = rv__executors_inside(engine);
    call.lends = step != NULL && step->executor->lane == LANE_FUNCTION;
    call.life = step != NULL ? step->life : 0;
    rc = check_size(opts->size, "RV_WAIT_OPTS", err);
    if (rc == RV_OK && ret == NULL)
        rc = rv__fail(err, RV_EINVAL, "rv_wait: nowhere to put the outcome");
    if (rc == RV_OK)
        rc = set_run_id(&call, run_id, err);
    int64_t timeout_ms = opts->timeout_ms == 0 ? DEFAULT_WAIT_MS : opts->timeout_ms;
    if (rc == RV_OK && engine->attached != NULL)
        rc = rv__attached_wait(engine, workflow, run_id, timeout_ms, opts->by, err);
    if (rc == RV_OK) { /* attached: the run has ended, so this returns at once */
        int answered = rv__member_is(engine) ? wait_for_member(&call, timeout_ms, opts->by)
                                             : wait_for_answer(&call, timeout_ms, opts->by);
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
    if (status < RV_RUNNING || status > RV_CANCELLED)
        return NULL;
    return rv__run_status_name((enum rv__run_status)(status - RV_RUNNING));
}
