/* builtin.c: work that needs no function of the program: conditions, items and inputs that are expressions; value,
 * delay and signal steps with expressions; and descriptions. Also the executors for expressions, commands and
 * requests.
 *
 *   start ──▶ evaluate its parameters ──▶ do it ──▶ done ──▶ evaluate its description ──▶ the loop's inbox
 *              (evaluator)                                    (evaluator)
 *
 * The description of a step is made at the end of its attempt, as part of it. For supervisors and waits, which have
 * no attempt, the state machine asks for the description as separate work.
 *
 * Each part begins on the thread that finished the part before; the engine's loop is not involved. With a testing
 * kit everything is done when rv__builtin_run() returns. */
#include "work/builtin.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/json.h"
#include "work/labels.h"
#include "work/work.h"

/* The longest delay, as in plans. */
static const double MOST_MS = (double)RV__PLAN_MAX_MS;

/* ---------------------------------------------------------------------------- evaluating --- */

static void evaluated(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err);

/* Whether the I/O loop runs this step once its parameters are evaluated. */
static bool needs_io(const struct rv_ctx *ctx)
{
    enum rv__step_kind kind = ctx->eval < 0 ? ctx->view.node->step.kind : STEP_KINDS;
    return kind == STEP_COMMAND || kind == STEP_HTTP || kind == STEP_CHAT || kind == STEP_TOOL;
}

int rv__services_evaluator(struct rv__services *services, struct rv__evaluator **ret, rv_error *err)
{
    int rc = RV_OK;
    if (services->evaluator == NULL)
        rc = rv__evaluator_new(&(struct rv__evaluator_opts){ 0 }, &services->evaluator, err);
    if (rc == RV_OK)
        *ret = services->evaluator;
    return rc;
}

/* For test engines: waits for the evaluation, so that no virtual time passes. One call at a time, on any thread. */
static int evaluate_now(struct rv__services *services, const struct rv__evaluation *evaluation,
                        struct rv__buf *json, rv_error *err)
{
    struct rv__evaluator *evaluator = NULL;
    if (rv__exprs_jq(evaluation->set, evaluation->number) == 0)
        return rv__exprs_compose(evaluation->set, evaluation->number, services->texts,
                                 evaluation->scope, (struct rv__str){ NULL, 0 }, json, err);
    int rc = rv__services_evaluator(services, &evaluator, err);
    return rc < 0 ? rc
                  : rv__evaluator_run(evaluator, evaluation->set, evaluation->number,
                                      evaluation->scope, json, err);
}

static void evaluate_by_hand(struct rv_ctx *ctx)
{
    struct rv__evaluation *evaluation = &ctx->evaluation;
    struct rv__buf json;
    rv_error err;
    rv__buf_init(&json, RV__EXPR_OUTPUT_BYTES);
    int rc = evaluate_now(ctx->services, evaluation, &json, &err);
    evaluated(evaluation, rv__buf_view(&json), rc < 0 ? &err : NULL);
    rv__buf_done(&json);
}

/* No memory for the engine's part of the work: hand it back, so that it begins again. */
static void no_memory(struct rv_ctx *ctx)
{
    ctx->given_up = true;
    ctx->outcome = MSG_FAILED;
}

static void evaluation_begun(struct rv__evaluation *evaluation)
{
    struct rv_ctx *ctx = RV__CONTAINER(evaluation, struct rv_ctx, evaluation);
    ctx->work.begun(&ctx->work);
}

void rv__work_post(struct rv_ctx *ctx)
{
    rv__ctx_hide(ctx);
    ctx->services->post(ctx);
}

void rv__work_evaluate(struct rv_ctx *ctx, uint32_t number)
{
    struct rv__services *services = ctx->services;
    /* Otherwise it is one part of an attempt, or it follows the evaluation of items. */
    bool is_all = !ctx->describing && !needs_io(ctx) && ctx->labels == NULL;
    rv__sight_done(&ctx->sight); /* the one of the previous evaluation */
    rv__sight_init(&ctx->sight, ctx);
    ctx->evaluation = (struct rv__evaluation){ .set = ctx->exprs->set,
                                               .number = number - 1,
                                               .scope = &ctx->sight.scope,
                                               .begun = is_all ? evaluation_begun : NULL,
                                               .done = evaluated };
    if (services->by_hand)
        evaluate_by_hand(ctx);
    else
        rv__evaluator_start(services->evaluator, &ctx->evaluation);
}

/* ---------------------------------------------------------------------- what came of it --- */

static void take_value(struct rv_ctx *ctx, struct rv__str json)
{
    rv__blob_unref(ctx->result);
    ctx->result = rv__blob_new(json);
    ctx->outcome = MSG_DONE;
    if (ctx->result == NULL)
        no_memory(ctx);
}

/* Check the input of a nested workflow by its schema, and take it. The input is evaluated, or that of the enclosing
 * workflow. */
static void take_input(struct rv_ctx *ctx, struct rv__blob *input)
{
    struct rv__violations bad;
    struct rv__blob *full = NULL;
    rv_error err = { .code = 0 };
    rv__violations_init(&bad, &ctx->arena);
    const struct rv__input_rule *rule = rv__plan_exprs_rule(ctx->exprs, ctx->view.body);
    int rc = rv__input_take(rule, input, &bad, &full, &err);
    if (rc == RV_ENOMEM) {
        no_memory(ctx);
        return;
    }
    if (rc < 0) {
        rv_fail(ctx, "the input of workflow '%.*s' is refused: %s",
                RV__ARG(ctx->view.body->wrap->name), err.message);
        rv__ctx_error_code(ctx, "badInput");
        return;
    }
    rv__blob_unref(ctx->result);
    ctx->result = full;
    ctx->outcome = MSG_DONE;
}

/* Take the input of the enclosing workflow. A long one is read from the store, and stored again. */
static void take_input_around(struct rv_ctx *ctx)
{
    struct rv__stored_rows rows;
    struct rv__blob *input = NULL;
    rv_error err;
    rv__stored_rows_of(&rows, ctx);
    if (rv__blob_get(ctx->view.input, &rows.source, &input, &err) < 0)
        rv_fail(ctx, "the input of workflow '%.*s' cannot be read: %s",
                RV__ARG(ctx->view.body->wrap->name), err.message);
    else
        take_input(ctx, input);
    rv__blob_unref(input);
}

static void take_delay(struct rv_ctx *ctx, struct rv__str json)
{
    static const struct {
        const char *key;
        double ms;
    } units[] = { { "ms", 1 }, { "milliseconds", 1 }, { "seconds", 1000 } };
    struct rv__str value = json;
    double ms = -1, unit = 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (rv__json_type(json) == RV__JSON_OBJECT && rv__json_get(json, units[i].key, &value)) {
            unit = units[i].ms;
            break;
        }
    if (rv__json_type(value) == RV__JSON_STRING) {
        struct rv__str words;
        int64_t n;
        if (rv__json_string(value, &ctx->arena, &words) == RV_OK &&
            rv__duration_ms(words, &n) == RV_OK)
            ms = (double)n / unit;
    } else if (rv__json_type(value) == RV__JSON_NUMBER) {
        (void)rv__json_double(
            value, &ms); /* a number outside the range of a double leaves `ms` negative */
    }
    if (!(ms >= 0) || ms * unit > MOST_MS) {
        rv_fail(ctx,
                "a delay must be a number of milliseconds, a duration such as \"5s\", or "
                "{seconds}, {milliseconds}; it came to %.*s",
                (int)(json.len < 80 ? json.len : 80), json.at);
        return;
    }
    ctx->outcome = MSG_PARK;
    ctx->due_ms = rv__wall_ms(ctx->services->clock) + (int64_t)(ms * unit);
}

static void take_signal(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__str value, name = { NULL, 0 };
    int64_t timeout_ms = 0;
    bool good = rv__json_get(json, "name", &value) && rv__json_type(value) == RV__JSON_STRING &&
                rv__json_string(value, &ctx->arena, &name) == RV_OK && name.len > 0;
    if (good && rv__json_get(json, "timeout", &value)) {
        struct rv__str words;
        good = rv__json_int(value, &timeout_ms) == RV_OK ||
               (rv__json_string(value, &ctx->arena, &words) == RV_OK &&
                rv__duration_ms(words, &timeout_ms) == RV_OK);
        good = good && timeout_ms > 0 && timeout_ms <= RV__PLAN_MAX_MS;
    }
    if (!good) {
        rv_fail(ctx, "a signal needs {name, timeout?}; it came to %.*s",
                (int)(json.len < 80 ? json.len : 80), json.at);
        return;
    }
    if (rv__str_copy(&ctx->arena, name, &ctx->handle) < 0) {
        no_memory(ctx);
        return;
    }
    ctx->outcome = MSG_PARK;
    ctx->due_ms = timeout_ms > 0 ? rv__wall_ms(ctx->services->clock) + timeout_ms : 0;
}

/* Set the description: text as it is, anything else as JSON. If `err` is set, there is no description. */
static void take_description(struct rv_ctx *ctx, struct rv__str json, const rv_error *err)
{
    struct rv__str text = json;
    if (err != NULL) {
        rv_log_warn(ctx, "its description could not be evaluated: %s", err->message);
        return;
    }
    if (rv__json_type(json) == RV__JSON_STRING)
        (void)rv__json_string(json, &ctx->arena, &text); /* without memory it keeps its quotes */
    rv_describe(ctx, "%.*s", RV__ARG(text));
}

/* The same for work that only makes a description: the text is the value. */
static void take_description_alone(struct rv_ctx *ctx, struct rv__str json, const rv_error *err)
{
    static const char before[] = "\"description\":";
    take_description(ctx, json, err);
    struct rv__str said = rv__buf_view(&ctx->state_members);
    if (err != NULL) {
        rv_fail(ctx, "%s", err->message);
        ctx->given_up = err->code == RV_ECLOSED || err->code == RV_ENOMEM;
    } else if (said.len < sizeof before) {
        no_memory(ctx);
    } else {
        take_value(ctx,
                   (struct rv__str){ said.at + sizeof before - 1, said.len + 1 - sizeof before });
    }
}

/* ------------------------------------------------------------------------ what it was given --- */

static void given_path(struct rv_ctx *ctx, const char *path, const char *root, const char *name)
{
    struct rv__scope_text found;
    struct rv__scope *scope = &ctx->sight.scope;
    const struct rv__str none = { NULL, 0 };
    bool waits = scope->at_hand;
    scope->at_hand = true; /* values that are not in memory are recorded elsewhere */
    if (ctx->records && scope->find(scope, rv__str(root), rv__str(name), none, &found) == RV_OK)
        rv__ctx_given_shared(ctx, rv__str(path), found.json);
    scope->at_hand = waits;
}

static void given_step(struct rv_ctx *ctx, struct rv__str alias)
{
    struct rv__buf path;
    const struct rv__entry *entry = rv__view_find(&ctx->view, alias);
    if (!ctx->records || entry == NULL || rv__entry_assembled(entry) ||
        rv__blob_is_reference(rv__entry_blob(entry)))
        return;
    rv__buf_init(&path, RV__GIVEN_NAME_BYTES);
    rv__buf_fmt(&path, ".steps.%.*s.result", RV__ARG(alias));
    if (path.rc == RV_OK)
        rv__ctx_given_shared(ctx, rv__buf_view(&path), rv__blob_str(rv__entry_blob(entry)));
    rv__buf_done(&path);
}

/* Record what its expressions see. Inputs, results and items are also recorded elsewhere, so these are shortened. */
static void given_uses(struct rv_ctx *ctx)
{
    struct rv__expr_use use;
    for (size_t i = 0;
         ctx->records && rv__exprs_use(ctx->evaluation.set, ctx->evaluation.number, i, &use); i++) {
        if (rv__str_is(use.root, "input"))
            given_path(ctx, ".input", "input", NULL);
        else if (rv__str_is(use.root, "lastStep"))
            given_path(ctx, ".lastStep.result", "lastStep", "result");
        else if (rv__str_is(use.root, "error"))
            given_path(ctx, ".error", "error", NULL);
        else if (rv__str_is(use.root, "steps") && !rv__str_none(use.name))
            given_step(ctx, use.name);
    }
}

void rv__ctx_given_context(struct rv_ctx *ctx)
{
    given_path(ctx, ".input", "input", NULL);
    given_path(ctx, ".lastStep.result", "lastStep", "result");
    given_path(ctx, ".error", "error", NULL);
}

static void begin_with(struct rv_ctx *ctx, struct rv__str json)
{
    given_path(ctx, ".loop.item", "loop", "item");
    switch (ctx->view.node->step.kind) {
    case STEP_VALUE:
        given_uses(ctx);
        take_value(ctx, json);
        break;
    case STEP_DELAY:
        rv__ctx_given(ctx, "delay", json);
        take_delay(ctx, json);
        break;
    case STEP_SIGNAL:
        rv__ctx_given(ctx, "signal", json);
        take_signal(ctx, json);
        break;
    case STEP_COMMAND: rv__command_begin(ctx, json); return;
    case STEP_HTTP: rv__http_begin(ctx, json); return;
    case STEP_CHAT: rv__chat_begin(ctx, json); return;
    case STEP_TOOL: rv__tool_begin(ctx, json); return;
    case STEP_FUNCTION:
    case STEP_CALL:
    case STEP_KINDS: rv_fail(ctx, "this kind of step cannot be run here"); break;
    }
    rv__work_finish(ctx);
}

/* Its parameters are evaluated. Parameters made by a function override those of the plan, and contain no templates. */
static void take_parameters(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__stored_rows rows;
    struct rv__blob *made = NULL;
    struct rv__buf all;
    rv_error err;
    if (ctx->view.made == NULL) {
        begin_with(ctx, json);
        return;
    }
    rv__buf_init(&all, RV__JSON_MAX_BYTES);
    rv__stored_rows_of(&rows, ctx);
    int rc = rv__blob_get(ctx->view.made, &rows.source, &made, &err);
    if (rc == RV_OK)
        rc = rv__json_overlay(rv__json_type(json) == RV__JSON_OBJECT ? json : rv__str("{}"),
                              rv__blob_str(made), &all, &err);
    if (rc == RV_OK) {
        begin_with(ctx, rv__buf_view(&all));
    } else {
        rv_fail(ctx, "its input cannot be read: %s", err.message);
        ctx->given_up = rc == RV_ENOMEM;
        rv__work_finish(ctx);
    }
    rv__blob_unref(made);
    rv__buf_done(&all);
}

/* On the evaluator's thread. */
static void evaluated(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err)
{
    struct rv_ctx *ctx = RV__CONTAINER(evaluation, struct rv_ctx, evaluation);
    if (ctx->labels != NULL) {
        rv__labels_answer(ctx, json, err);
    } else if (ctx->describing) {
        take_description(ctx, json, err);
        rv__work_post(ctx);
    } else if (ctx->eval == EVAL_DESCRIPTION) {
        take_description_alone(ctx, json, err);
        rv__work_finish(ctx);
    } else if (err != NULL) {
        given_path(ctx, ".loop.item", "loop", "item");
        given_uses(ctx);
        rv_fail(ctx, "%s", err->message);
        rv__ctx_error_code(ctx, "expression");
        ctx->given_up = err->code == RV_ECLOSED || err->code == RV_ENOMEM;
        rv__work_finish(ctx);
    } else if (ctx->eval == EVAL_INPUT) {
        struct rv__blob *input = rv__blob_new(json);
        if (input != NULL)
            take_input(ctx, input);
        else
            no_memory(ctx);
        rv__blob_unref(input);
        rv__work_finish(ctx);
    } else if (ctx->eval >= 0) {
        take_value(ctx, json);
        rv__work_finish(ctx);
    } else {
        take_parameters(ctx, json);
    }
}

/* In a test engine, the caller reports the end. */
void rv__work_finish(struct rv_ctx *ctx)
{
    if (!ctx->services->by_hand)
        ctx->work.done(&ctx->work, NULL);
}

/* Take an input that a function made. That of a nested workflow is checked by its schema; that of a step becomes the
 * step's parameters. */
static void take_made_input(struct rv_ctx *ctx)
{
    bool object = ctx->result != NULL &&
                  rv__json_type(rv__blob_str(ctx->result)) == RV__JSON_OBJECT;
    if (ctx->view.body == NULL) {
        if (!object)
            rv_fail(ctx, "the function '%.*s' must return an object: the parameters of the step",
                    RV__ARG(ctx->view.node->step.input.text));
        return;
    }
    struct rv__blob *made = ctx->result != NULL ? rv__blob_ref(ctx->result)
                                                : rv__blob_new(rv__str("null"));
    if (made != NULL)
        take_input(ctx, made);
    else
        no_memory(ctx);
    rv__blob_unref(made);
}

/* A description made by a function. If that fails or returns nothing, there is none. */
static void take_made_description(struct rv_ctx *ctx)
{
    struct rv__blob *made = rv__blob_ref(ctx->result);
    struct rv__str text = rv__blob_str(made);
    rv__buf_reset(&ctx->state_members); /* it has no state of its own */
    if (ctx->outcome == MSG_DONE)
        take_description_alone(
            ctx, made != NULL && rv__json_type(text) != RV__JSON_NULL ? text : rv__str("\"\""),
            NULL);
    else if (ctx->outcome == MSG_FAILED)
        rv_log_warn(ctx, "its description could not be made: the function '%.*s' failed",
                    RV__ARG(ctx->view.node->description.text));
    rv__blob_unref(made);
}

void rv__work_describe(struct rv_ctx *ctx)
{
    bool by_function = ctx->fn != NULL || ctx->function.len > 0;
    if (ctx->eval == EVAL_INPUT && by_function && ctx->outcome == MSG_DONE)
        take_made_input(ctx);
    if (ctx->eval == EVAL_DESCRIPTION && by_function)
        take_made_description(ctx);
    if (ctx->eval == EVAL_ITEMS && rv__labels_make(ctx))
        return;
    const struct rv__plan_exprs *exprs = ctx->exprs;
    uint32_t number = ctx->eval < 0 ? rv__plan_exprs_number(exprs, ctx->view.node, EVAL_DESCRIPTION)
                                    : 0;
    if (number == 0 || ctx->outcome != MSG_DONE || ctx->skipped || ctx->described ||
        atomic_load(ctx->services->stopped)) {
        rv__work_post(ctx);
        return;
    }
    rv__ctx_hide(ctx); /* its description sees its result */
    ctx->describing = true;
    rv__work_evaluate(ctx, number);
}

/* -------------------------------------------------------------------------- by the I/O loop --- */

struct rv__str rv__ctx_text(struct rv_ctx *ctx, struct rv__str json)
{
    struct rv__str text;
    if (rv__json_type(json) == RV__JSON_STRING &&
        rv__json_string(json, &ctx->arena, &text) == RV_OK)
        return text;
    return json;
}

char *rv__ctx_c_text(struct rv_ctx *ctx, struct rv__str text, const char *what)
{
    if (text.len > 0 && memchr(text.at, '\0', text.len) != NULL) {
        rv_fail(ctx, "%s cannot have a NUL character in it", what);
        return NULL;
    }
    char *copy = rv__arena_dup(&ctx->arena, text.at, text.len);
    if (copy == NULL)
        rv_fail(ctx, "out of memory");
    return copy;
}

const char *rv__ctx_path(struct rv_ctx *ctx, struct rv__str path, const char *what)
{
    struct rv__buf full;
    const char *text = NULL;
    rv__buf_init(&full, RV__PATH_ROOM);
    if (path.len > 0 && path.at[0] != '/' && ctx->directory != NULL) {
        rv__buf_text(&full, ctx->directory);
        rv__buf_char(&full, '/');
    }
    rv__buf_str(&full, path);
    if (rv__buf_err(&full, NULL) == RV_OK)
        text = rv__ctx_c_text(ctx, rv__buf_view(&full), what);
    else
        rv_fail(ctx, "%s is too long", what);
    rv__buf_done(&full);
    return text;
}

static void token_fired(struct rv__cancel_watch *watch)
{
    struct rv_ctx *ctx = RV__CONTAINER(watch, struct rv_ctx, watch);
    ctx->stop(ctx);
}

void rv__io_begin(struct rv_ctx *ctx, const char *what, int (*start)(struct rv_ctx *ctx),
                  void (*stop)(struct rv_ctx *ctx))
{
    ctx->stop = stop;
    ctx->watch = (struct rv__cancel_watch){ .fired = token_fired };
    ctx->gate = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (ctx->services->io == NULL) {
        rv_fail(ctx, "%s steps are not run by a test engine: replace '%.*s' by rv_test_replace()",
                what, RV__ARG(ctx->view.node->alias));
        rv__work_finish(ctx);
        return;
    }
    pthread_mutex_lock(&ctx->gate);
    int rc = start(ctx);
    if (rc == RV_OK && !rv__cancel_watch(ctx->work.token, &ctx->watch))
        stop(ctx);
    pthread_mutex_unlock(&ctx->gate); /* if it was started, ctx may be freed from here on */
    if (rc == RV_OK)
        return;
    ctx->given_up = rc == RV_ECLOSED;
    rv_fail(ctx, "the %s could not be started: %s", what, rv_strerror(rc));
    rv__work_finish(ctx);
}

void rv__io_ended(struct rv_ctx *ctx)
{
    pthread_mutex_lock(&ctx->gate); /* waits until its start is over, even if it ended quickly */
    pthread_mutex_unlock(&ctx->gate);
    rv__cancel_unwatch(ctx->work.token, &ctx->watch);
}

/* ------------------------------------------------------------------------------- beginning --- */

bool rv__builtin(const struct rv__plan_exprs *exprs, const struct rv__effect *effect)
{
    if (effect->eval == EVAL_INPUT) {
        const struct rv__expr *input = rv__input_expr(effect->node, effect->body);
        return input == NULL || input->kind != EXPR_FUNCTION;
    }
    int slot = effect->eval < 0 ? SLOT_WITH : effect->eval;
    return effect->node != NULL && rv__plan_exprs_number(exprs, effect->node, slot) != 0;
}

int rv__services_io(struct rv__services *services, rv_error *err)
{
    const struct rv__io_opts opts = { .deny_private = services->http_deny_private };
    return services->io == NULL && !services->by_hand ? rv__io_new(&opts, &services->io, err)
                                                      : RV_OK;
}

/* Prepare what only the loop knows, and create the I/O loop when it is first needed. */
static bool prepare_io(struct rv_ctx *ctx)
{
    struct rv__services *services = ctx->services;
    rv_error err;
    if (ctx->directory != NULL) { /* a copy: it may be registered from another file meanwhile */
        ctx->directory = rv__arena_dup(&ctx->arena, ctx->directory, strlen(ctx->directory));
        if (ctx->directory == NULL) {
            no_memory(ctx);
            return false;
        }
    }
    if (rv__services_io(services, &err) < 0)
        return rv_fail(ctx, "commands and requests cannot be run: %s", err.message) == 0;
    return true;
}

static void begin(struct rv_ctx *ctx)
{
    const struct rv__plan_exprs *exprs = ctx->exprs;
    if (needs_io(ctx) && !prepare_io(ctx)) {
        rv__work_finish(ctx);
        return;
    }
    if (ctx->eval == EVAL_INPUT && rv__body_is_tool(ctx->view.body)) {
        rv__chat_arguments(ctx);
        rv__work_finish(ctx);
        return;
    }
    if (ctx->eval == EVAL_INPUT) {
        const struct rv__input_rule *rule = rv__plan_exprs_rule(exprs, ctx->view.body);
        if (rule != NULL && rule->number != 0) {
            rv__work_evaluate(ctx, rule->number);
        } else {
            take_input_around(ctx);
            rv__work_finish(ctx);
        }
        return;
    }
    uint32_t number = rv__plan_exprs_number(exprs, ctx->view.node,
                                            ctx->eval < 0 ? SLOT_WITH : ctx->eval);
    if (rv__ctx_may_see_secrets(ctx) && !rv__ctx_secrets_ready(ctx, number - 1))
        rv__work_finish(ctx);
    else
        rv__work_evaluate(ctx, number);
}

/* ------------------------------------------------------------------------------- executors --- */

void rv__builtin_run(struct rv__work *work)
{
    begin((struct rv_ctx *)work);
}

static size_t builtin_start(struct rv__executor *self, struct rv__work *const *works, size_t count)
{
    (void)self;
    for (size_t i = 0; i < count; i++)
        begin((struct rv_ctx *)works[i]);
    return count;
}

static void builtin_free(struct rv__executor *self)
{
    rv__free(self); /* the evaluator and the I/O loop belong to the services */
}

int rv__builtins_new(const struct rv__executor *head, struct rv__executor **ret, rv_error *err)
{
    struct rv__executor *executor = rv__alloc(sizeof *executor);
    if (executor == NULL)
        return rv__nomem(err);
    *executor = *head;
    executor->start = builtin_start;
    executor->cancel = rv__executor_fire;
    executor->inside = rv__executor_outside;
    executor->free = builtin_free;
    *ret = executor;
    return RV_OK;
}
