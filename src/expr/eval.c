/* eval.c: what a template is worth in a scope.
 *
 * A plain path looks at texts. Anything else gets its part of the scope as jq's value, made of values
 * that are kept between evaluations, and runs through the set's program.
 *
 * Halting: jq_halt() sets a flag that jq_next() looks at before each instruction, and is the one
 * function of libjq that another thread may call meanwhile: it writes that flag and two values that
 * are not counted. It must not come at any other time (jq_start() takes the flag back), so `running`
 * says under a lock whether it may. */
#include <assert.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "expr/eval.h"
#include "expr/value.h"

enum { SHOWN_BYTES = 60 }; /* of an expression in a message */

static const struct rv__str none = { NULL, 0 };
const struct rv__str rv__step_fields[RV__STEP_FIELDS] = { RV__STR("result"), RV__STR("state"),
                                                          RV__STR("status") };
const struct rv__str rv__last_names[RV__LAST_NAMES] = { RV__STR("result"), RV__STR("state"),
                                                        RV__STR("alias"), RV__STR("stepName") };
const struct rv__str rv__loop_names[RV__LOOP_NAMES] = { RV__STR("item"), RV__STR("index"),
                                                        RV__STR("items") };
static const char *const known[] = { "input", "steps", "lastStep", "loop", "run", "env", NULL };

int rv__expr_machine_new(size_t cache_bytes, struct rv__expr_machine **ret, rv_error *err)
{
    struct rv__expr_machine *machine = rv__zalloc(1, sizeof *machine);
    if (machine == NULL)
        return rv__nomem(err);
    if (pthread_mutex_init(&machine->lock, NULL) != 0) {
        rv__free(machine);
        return rv__nomem(err);
    }
    rv__cache_init(&machine->cache, cache_bytes > 0 ? cache_bytes : RV__EXPR_CACHE_BYTES);
    rv__buf_init(&machine->work, RV__JSON_MAX_BYTES);
    *ret = machine;
    return RV_OK;
}

void rv__expr_machine_free(struct rv__expr_machine *machine)
{
    if (machine == NULL)
        return;
    rv__cache_done(&machine->cache);
    rv__buf_done(&machine->work);
    pthread_mutex_destroy(&machine->lock);
    rv__free(machine);
}

void rv__expr_machine_begin(struct rv__expr_machine *machine)
{
    pthread_mutex_lock(&machine->lock);
    machine->halted = NULL;
    pthread_mutex_unlock(&machine->lock);
}

void rv__expr_machine_halt(struct rv__expr_machine *machine, const char *why)
{
    pthread_mutex_lock(&machine->lock);
    if (machine->halted == NULL) { /* jq_halt() may be called once */
        machine->halted = why;
        if (machine->running != NULL)
            jq_halt(machine->running, jv_invalid(), jv_invalid());
    }
    pthread_mutex_unlock(&machine->lock);
}

uint64_t rv__expr_machine_running(struct rv__expr_machine *machine)
{
    pthread_mutex_lock(&machine->lock);
    uint64_t run = machine->running != NULL ? machine->runs : 0;
    pthread_mutex_unlock(&machine->lock);
    return run;
}

/* May `jq` run (NULL: does it run no more)? Gives why not. */
static const char *set_running(struct rv__expr_machine *machine, jq_state *jq)
{
    pthread_mutex_lock(&machine->lock);
    const char *why = machine->halted;
    machine->running = why == NULL ? jq : NULL;
    machine->runs += machine->running != NULL;
    pthread_mutex_unlock(&machine->lock);
    return why;
}

bool rv__expr_truth(struct rv__str json)
{
    enum rv__json_type type = rv__json_type(json);
    return type != RV__JSON_NULL && type != RV__JSON_FALSE;
}

/* -------------------------------------------------------------------------------- failing --- */

int rv__expr_failed(const struct rv__expr *expr, int code, rv_error *err, const char *why)
{
    struct rv__str text = expr->text;
    while (text.len > 0 && (*text.at == ' ' || *text.at == '\n'))
        text = (struct rv__str){ text.at + 1, text.len - 1 };
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\n'))
        text.len--;
    bool cut = text.len > SHOWN_BYTES;
    if (cut)
        for (text.len = SHOWN_BYTES; (text.at[text.len] & 0xC0) == 0x80;)
            text.len--;
    return rv__fail(err, code, "${ %.*s%s }: %s", RV__ARG(text), cut ? "…" : "", why);
}

/* ------------------------------------------------------------------- the scope as a value --- */

/* One text of the scope as a value: *ret is invalid if there is none. */
static int fetch(struct rv__eval_state *e, struct rv__str root, struct rv__str name,
                 struct rv__str field, jv *ret)
{
    struct rv__scope_text text = { 0 };
    int rc = e->scope->find(e->scope, root, name, field, &text);
    *ret = jv_invalid();
    if (rc == RV_ENOTFOUND)
        return RV_OK;
    if (rc < 0)
        return rv__expr_failed(e->expr, rc, e->err, "the scope cannot be read");
    return rv__cache_value(&e->machine->cache, e->scope, &text, ret, e->err);
}

static jv key_of(struct rv__str key)
{
    return jv_string_sized(key.at, (int)key.len);
}

/* An object of several texts: of a step (`name`, then `parts` are fields), lastStep or loop. null, if
 * the scope has none of them. */
static int fetch_parts(struct rv__eval_state *e, struct rv__str root, struct rv__str name,
                       const struct rv__str *parts, size_t count, jv *ret)
{
    jv object = jv_object(), part;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        int rc = rv__str_none(name) ? fetch(e, root, parts[i], none, &part)
                                    : fetch(e, root, name, parts[i], &part);
        if (rc < 0) {
            jv_free(object);
            return rc;
        }
        if (!jv_is_valid(part)) {
            jv_free(part);
            continue;
        }
        any = true;
        object = jv_object_set(object, key_of(parts[i]), part);
    }
    if (any) {
        *ret = object;
        return RV_OK;
    }
    jv_free(object);
    *ret = jv_null();
    return RV_OK;
}

/* Add a step to the object of steps. Takes *steps, and gives it back. */
static int add_step(struct rv__eval_state *e, struct rv__str alias, jv *steps)
{
    jv step;
    int rc = fetch_parts(e, rv__str("steps"), alias, rv__step_fields, RV__STEP_FIELDS, &step);
    if (rc < 0)
        return rc;
    if (jv_get_kind(step) == JV_KIND_NULL)
        jv_free(step);
    else
        *steps = jv_object_set(*steps, key_of(alias), step);
    return RV_OK;
}

/* steps: those that the expression names, or all. */
static int fetch_steps(struct rv__eval_state *e, bool all, jv *ret)
{
    jv steps = jv_object();
    struct rv__str alias;
    int rc = RV_OK;
    for (size_t i = 0; i < e->expr->use_count && !all; i++)
        all = rv__str_is(e->expr->uses[i].root, "steps") && rv__str_none(e->expr->uses[i].name);
    if (all)
        for (size_t i = 0; rc == RV_OK && e->scope->alias(e->scope, i, &alias); i++)
            rc = add_step(e, alias, &steps);
    else
        for (size_t i = 0; i < e->expr->use_count && rc == RV_OK; i++)
            if (rv__str_is(e->expr->uses[i].root, "steps"))
                rc = add_step(e, e->expr->uses[i].name, &steps);
    if (rc < 0)
        jv_free(steps);
    else
        *ret = steps;
    return rc;
}

static int fetch_root(struct rv__eval_state *e, struct rv__str root, bool all, jv *ret)
{
    if (rv__str_is(root, "steps"))
        return fetch_steps(e, all, ret);
    if (rv__str_is(root, "lastStep"))
        return fetch_parts(e, root, none, rv__last_names, RV__LAST_NAMES, ret);
    if (rv__str_is(root, "loop"))
        return fetch_parts(e, root, none, rv__loop_names, RV__LOOP_NAMES, ret);
    int rc = fetch(e, root, none, none, ret);
    if (rc == RV_OK && !jv_is_valid(*ret)) {
        jv_free(*ret);
        *ret = jv_null();
    }
    return rc;
}

/* Outside of an iteration there is no `loop`; everything else is there, if only as null. */
static int add_root(struct rv__eval_state *e, struct rv__str root, bool all, jv *scope)
{
    jv value;
    int rc = fetch_root(e, root, all, &value);
    if (rc < 0)
        return rc;
    if (rv__str_is(root, "loop") && jv_get_kind(value) == JV_KIND_NULL)
        jv_free(value);
    else
        *scope = jv_object_set(*scope, key_of(root), value);
    return RV_OK;
}

/* What "." is in the expression: the roots it uses. */
static int fetch_scope(struct rv__eval_state *e, jv *ret)
{
    const struct rv__expr *expr = e->expr;
    jv scope = jv_object();
    int rc = RV_OK;
    for (size_t i = 0; i < expr->use_count && rc == RV_OK && !expr->whole; i++)
        if (jv_object_has(jv_copy(scope), key_of(expr->uses[i].root)) == 0)
            rc = add_root(e, expr->uses[i].root, false, &scope);
    for (size_t i = 0; expr->whole && rc == RV_OK && known[i] != NULL; i++)
        rc = add_root(e, rv__str(known[i]), true, &scope);
    for (size_t i = 0;
         expr->whole && rc == RV_OK && e->scope->roots != NULL && e->scope->roots[i] != NULL; i++)
        rc = add_root(e, rv__str(e->scope->roots[i]), true, &scope);
    if (rc < 0)
        jv_free(scope);
    else
        *ret = scope;
    return rc;
}

/* ------------------------------------------------------------------------------ through jq --- */

/* What jq's error says, as one sentence. Takes `message`. */
static int jq_failed(struct rv__eval_state *e, jv message)
{
    int rc;
    if (jv_get_kind(message) == JV_KIND_STRING) {
        rc = rv__expr_failed(e->expr, RV_EINVAL, e->err, jv_string_value(message));
    } else {
        rv__buf_reset(&e->machine->work);
        (void)rv__value_write(message, &e->machine->work, NULL); /* half of it says enough */
        rc = rv__expr_failed(e->expr, RV_EINVAL, e->err, rv__buf_view(&e->machine->work).at);
    }
    jv_free(message);
    return rc;
}

/* The one value of the program that was started. */
static int only_value(struct rv__eval_state *e, jq_state *jq, jv *ret)
{
    jv value = jq_next(jq), more = jv_invalid();
    int rc = RV_OK;
    if (jv_is_valid(value))
        more = jq_next(jq);
    const char *why = set_running(e->machine, NULL);
    if (why != NULL)
        rc = rv__expr_failed(e->expr, RV_ETIMEDOUT, e->err, why);
    else if (!jv_is_valid(value) && jv_invalid_has_msg(jv_copy(value)))
        rc = jq_failed(e, jv_invalid_get_msg(jv_copy(value)));
    else if (!jv_is_valid(value))
        rc = rv__expr_failed(e->expr, RV_EINVAL, e->err,
                             "it yields no value, where it must yield one");
    else if (jv_is_valid(more))
        rc = rv__expr_failed(
            e->expr, RV_EINVAL, e->err,
            "it yields more than one value (collect them in [ ], or take first(…))");
    else if (jv_invalid_has_msg(jv_copy(more)))
        rc = jq_failed(e, jv_invalid_get_msg(jv_copy(more)));
    jv_free(more);
    if (rc == RV_OK)
        *ret = value;
    else
        jv_free(value);
    return rc;
}

static int run(struct rv__eval_state *e, jq_state *jq, jv *ret)
{
    jv scope;
    int rc = fetch_scope(e, &scope);
    if (rc < 0)
        return rc;
    jq_start(jq, JV_ARRAY(jv_number(e->expr->choice), scope), 0);
    const char *why = set_running(e->machine, jq);
    rc = why != NULL ? rv__expr_failed(e->expr, RV_ETIMEDOUT, e->err, why) : only_value(e, jq, ret);
    jq_start(jq, jv_null(), 0); /* lets go of all that the program still holds */
    return rc;
}

/* ------------------------------------------------------------------------------- templates --- */

/* A JSON value as it stands within a string that is being written. */
static void put_within_string(struct rv__str json, struct rv__buf *out)
{
    if (*json.at == '"') { /* it is within one already: its escapes stay */
        rv__buf_add(out, json.at + 1, json.len - 2);
        return;
    }
    size_t quote = out->len;
    rv__buf_json_str(out, json);
    if (out->rc == RV_OK) { /* take its quotes away again */
        memmove(out->text + quote, out->text + quote + 1, out->len - quote - 1);
        rv__buf_cut(out, out->len - 2);
    }
}

static int put_path(struct rv__eval_state *e, enum rv__piece_kind kind, struct rv__buf *out)
{
    struct rv__str json;
    struct rv__blob *own = NULL;
    int rc = rv__path_text(e, &json, &own);
    if (rc == RV_ENOTFOUND) {
        rv__buf_text(out, "null");
        rc = RV_OK;
    } else if (rc == RV_OK && kind == PIECE_VALUE) {
        rv__buf_str(out, json);
    } else if (rc == RV_OK) {
        struct rv__buf compact;
        rv__buf_init(&compact, RV__JSON_MAX_BYTES);
        rv__json_compact(json, &compact);
        rc = rv__buf_err(&compact, e->err);
        if (rc == RV_OK)
            put_within_string(rv__buf_view(&compact), out);
        rv__buf_done(&compact);
    }
    rv__blob_unref(own);
    return rc;
}

static int put_jq(struct rv__eval_state *e, struct rv__exprs *set, enum rv__piece_kind kind,
                  struct rv__buf *out)
{
    struct rv__program *program = &set->programs[e->expr->program];
    struct rv__buf *work = &e->machine->work;
    rv_error why = { 0 };
    jv value = jv_invalid();
    int rc = rv__program_compile(set, program, NULL, NULL, e->err);
    if (rc == RV_OK)
        rc = run(e, program->jq, &value);
    if (rc < 0)
        return rc;
    if (kind == PIECE_VALUE) {
        rc = rv__value_write(value, out, &why);
    } else {
        rv__buf_reset(work);
        rc = rv__value_write(value, work, &why);
        if (rc == RV_OK)
            rc = rv__buf_err(work, &why);
        if (rc == RV_OK)
            put_within_string(rv__buf_view(work), out);
    }
    jv_free(value);
    return rc < 0 ? rv__expr_failed(e->expr, rc, e->err, why.message) : RV_OK;
}

int rv__exprs_eval(struct rv__exprs *set, uint32_t number, struct rv__expr_machine *machine,
                   struct rv__scope *scope, struct rv__buf *out, rv_error *err)
{
    struct rv__eval_state e = { .machine = machine, .scope = scope, .err = err };
    size_t start = out->len;
    int rc = RV_OK;
    assert(number < set->template_count && out->rc == RV_OK);
    for (const struct rv__piece *piece = set->templates[number].pieces;
         piece != NULL && rc == RV_OK; piece = piece->next) {
        e.expr = piece->expr;
        if (piece->kind == PIECE_JSON)
            rv__buf_str(out, piece->json);
        else if (piece->expr->path != NULL)
            rc = put_path(&e, piece->kind, out);
        else
            rc = put_jq(&e, set, piece->kind, out);
        if (rc == RV_OK && out->rc == RV_ETOOBIG && piece->expr != NULL)
            rc = rv__expr_failed(piece->expr, RV_ETOOBIG, err,
                                 "the value is larger than it may be");
    }
    if (rc == RV_OK)
        rc = rv__buf_err(out, err);
    if (rc < 0) {
        out->rc = RV_OK; /* it was, before us */
        rv__buf_cut(out, start);
    }
    return rc;
}
