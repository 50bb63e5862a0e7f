/* machine.c: programs, values, and what comes of one with the other.
 *
 * Halting: jq_halt() sets a flag that jq_next() looks at before each instruction, and writes two values that
 * are not counted, so a signal handler may call it. It must not come at any other time (jq_start() takes the
 * flag back), nor twice, so `running` says whether it may. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <jq.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "expr/expr.h"
#include "jq/jq.h"
#include "jq/value.h"

#define SCRATCH_BYTES ((size_t)128 << 20) /* above any string in a text of RV__JSON_MAX_BYTES */

struct program {
    jq_state *jq;     /* NULL: empty, or refused, and then */
    rv_error refused; /* this is what jq said */
};

struct rv__jq {
    struct program programs[RV__PEER_PROGRAMS];
    jv values[RV__PEER_VALUES]; /* invalid: empty */
    struct rv__arena scratch;
    struct rv__buf work;        /* of messages */
    jq_state *volatile running; /* between jq_start() and the last jq_next() */
    volatile sig_atomic_t halted;
};

int rv__jq_new(struct rv__jq **ret, rv_error *err)
{
    struct rv__jq *jq = rv__zalloc(1, sizeof *jq);
    if (jq == NULL)
        return rv__nomem(err);
    for (size_t i = 0; i < RV__PEER_VALUES; i++)
        jq->values[i] = jv_invalid();
    rv__arena_init(&jq->scratch, SCRATCH_BYTES);
    rv__buf_init(&jq->work, RV__JSON_MAX_BYTES);
    *ret = jq;
    return RV_OK;
}

void rv__jq_free(struct rv__jq *jq)
{
    if (jq == NULL)
        return;
    for (size_t i = 0; i < RV__PEER_PROGRAMS; i++)
        if (jq->programs[i].jq != NULL)
            jq_teardown(&jq->programs[i].jq);
    for (size_t i = 0; i < RV__PEER_VALUES; i++)
        jv_free(jq->values[i]);
    rv__arena_done(&jq->scratch);
    rv__buf_done(&jq->work);
    rv__free(jq);
}

bool rv__jq_halt(struct rv__jq *jq)
{
    if (jq->running == NULL)
        return false;
    if (!jq->halted) {
        jq->halted = 1;
        jq_halt(jq->running, jv_invalid(), jv_invalid());
    }
    return true;
}

/* ------------------------------------------------------------------------------- compiling --- */

static void note(void *arg, jv message)
{
    rv_error *complaint = arg;
    if (complaint->code == 0 && jv_get_kind(message) == JV_KIND_STRING)
        (void)rv__fail(complaint, RV_EPARSE, "%s", jv_string_value(message));
    jv_free(message);
}

/* *ret is a program that jq took. RV_EPARSE, RV_ENOMEM. */
static int compile(struct rv__str text, jq_state **ret, rv_error *err)
{
    rv_error complaint = { .code = 0 };
    jq_state *jq = NULL;
    char *copy = rv__alloc(text.len + 1);
    if (copy == NULL || (jq = jq_init()) == NULL) {
        rv__free(copy);
        return rv__nomem(err);
    }
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    jq_set_error_cb(jq, note, &complaint);
    int ok = jq_compile(jq, copy);
    jq_set_error_cb(jq, NULL, NULL);
    rv__free(copy);
    if (ok) {
        *ret = jq;
        return RV_OK;
    }
    jq_teardown(&jq);
    return rv__fail(err, RV_EPARSE, "%s",
                    complaint.code != 0 ? complaint.message : "it does not compile");
}

int rv__jq_compile(struct rv__str text, rv_error *err)
{
    jq_state *jq = NULL;
    int rc = compile(text, &jq, err);
    if (rc == RV_OK)
        jq_teardown(&jq);
    return rc;
}

int rv__jq_program(struct rv__jq *jq, int64_t slot, struct rv__str text)
{
    if (slot < 0 || slot >= RV__PEER_PROGRAMS)
        return RV_EINVAL;
    struct program *program = &jq->programs[slot];
    if (program->jq != NULL)
        jq_teardown(&program->jq);
    program->jq = NULL;
    int rc = compile(text, &program->jq, &program->refused);
    return rc == RV_ENOMEM ? rc : RV_OK;
}

int rv__jq_value(struct rv__jq *jq, int64_t slot, struct rv__str json)
{
    size_t bytes;
    if (slot < 0 || slot >= RV__PEER_VALUES)
        return RV_EINVAL;
    jv_free(jq->values[slot]);
    jq->values[slot] = jv_invalid();
    if (rv__str_none(json))
        return RV_OK;
    jv value;
    int rc = rv__value_parse(json, &jq->scratch, &value, &bytes);
    if (rc == RV_OK)
        jq->values[slot] = value;
    return rc;
}

/* ------------------------------------------------------------------- the scope as a value --- */

enum { PATH = RV__SCOPE_PATH };

/* An entry of "scope": its path, and its value. */
static int read_entry(struct rv__jq *jq, struct rv__str entry, jv path[PATH], size_t *count,
                      jv *ret)
{
    struct rv__json_iter it;
    struct rv__str part;
    size_t bytes;
    int64_t slot;
    *count = 0;
    rv__json_iter_init(&it, entry);
    while (rv__json_next(&it, NULL, &part)) {
        if (rv__json_type(part) == RV__JSON_STRING && *count < PATH) {
            int rc = rv__value_parse(part, &jq->scratch, &path[*count], &bytes);
            if (rc < 0)
                return rc;
            ++*count;
        } else if (rv__json_type(part) == RV__JSON_ARRAY && *count > 0) {
            struct rv__json_iter inner;
            rv__json_iter_init(&inner, part);
            return rv__json_next(&inner, NULL, &part)
                       ? rv__value_parse(part, &jq->scratch, ret, &bytes)
                       : RV_EINVAL;
        } else if (*count > 0 && rv__json_int(part, &slot) == RV_OK && slot >= 0 &&
                   slot < RV__PEER_VALUES && jv_is_valid(jq->values[slot])) {
            *ret = jv_copy(jq->values[slot]);
            return RV_OK;
        } else {
            return RV_EINVAL;
        }
    }
    return RV_EINVAL;
}

/* Put a value at a path into an object, and make the objects on the way. Takes all of them. */
static jv put_at(jv object, jv *path, size_t count, jv value)
{
    if (jv_get_kind(object) != JV_KIND_OBJECT) {
        jv_free(object);
        object = jv_object();
    }
    if (count == 1)
        return jv_object_set(object, path[0], value);
    jv inner = jv_object_get(jv_copy(object), jv_copy(path[0]));
    object = jv_object_set(object, jv_copy(path[0]), jv_null()); /* we alone hold the inner one */
    return jv_object_set(object, path[0], put_at(inner, path + 1, count - 1, value));
}

static int read_scope(struct rv__jq *jq, struct rv__str scope, jv *ret)
{
    struct rv__json_iter it;
    struct rv__str entry;
    jv object = jv_object(), path[PATH], value;
    size_t count;
    int rc = RV_OK;
    rv__json_iter_init(&it, scope);
    while (rc == RV_OK && rv__json_next(&it, NULL, &entry)) {
        rc = read_entry(jq, entry, path, &count, &value);
        if (rc == RV_OK)
            object = put_at(object, path, count, value);
        for (size_t i = 0; rc < 0 && i < count; i++)
            jv_free(path[i]);
    }
    if (rc < 0)
        jv_free(object);
    else
        *ret = object;
    return rc;
}

/* ----------------------------------------------------------------------------- evaluating --- */

/* What jq's error says, as one sentence. Takes `message`. */
static int jq_failed(struct rv__jq *jq, jv message, rv_error *err)
{
    int rc;
    if (jv_get_kind(message) == JV_KIND_STRING) {
        rc = rv__fail_text(err, RV_EINVAL, jv_string_value(message));
    } else {
        rv__buf_reset(&jq->work);
        (void)rv__value_write(message, &jq->work, NULL); /* half of it says enough */
        rc = rv__fail(err, RV_EINVAL, "%s", rv__buf_view(&jq->work).at);
    }
    jv_free(message);
    return rc;
}

/* The one value of the program that was started. */
static int only_value(struct rv__jq *jq, jq_state *state, jv *ret, rv_error *err)
{
    jq->halted = 0;
    jq->running = state;
    jv value = jq_next(state), more = jv_invalid();
    int rc = RV_OK;
    if (jv_is_valid(value))
        more = jq_next(state);
    jq->running = NULL;
    if (jq->halted)
        rc = rv__fail(err, RV_ETIMEDOUT, "it was halted");
    else if (!jv_is_valid(value) && jv_invalid_has_msg(jv_copy(value)))
        rc = jq_failed(jq, jv_invalid_get_msg(jv_copy(value)), err);
    else if (!jv_is_valid(value))
        rc = rv__fail(err, RV_EINVAL, "it yields no value, but must yield one");
    else if (jv_is_valid(more))
        rc = rv__fail(err, RV_EINVAL,
                      "it yields more than one value (collect them in [ ], or take first(…))");
    else if (jv_invalid_has_msg(jv_copy(more)))
        rc = jq_failed(jq, jv_invalid_get_msg(jv_copy(more)), err);
    jv_free(more);
    if (rc == RV_OK)
        *ret = value;
    else
        jv_free(value);
    return rc;
}

/* One pair of "run". Appends its value. */
static int run(struct rv__jq *jq, int64_t slot, int64_t choice, jv scope, struct rv__buf *out,
               rv_error *err)
{
    jv value = jv_invalid();
    if (slot < 0 || slot >= RV__PEER_PROGRAMS)
        return rv__fail(err, RV_EINVAL, "there is no program %lld", (long long)slot);
    struct program *program = &jq->programs[slot];
    if (program->jq == NULL)
        return rv__fail(err, RV_EPARSE, "%s", program->refused.message);
    jq_start(program->jq, JV_ARRAY(jv_number((double)choice), jv_copy(scope)), 0);
    int rc = only_value(jq, program->jq, &value, err);
    jq_start(program->jq, jv_null(), 0); /* lets go of all that the program still holds */
    if (rc < 0)
        return rc;
    rc = rv__value_write(value, out, err);
    jv_free(value);
    if (rc == RV_OK && out->rc == RV_ETOOBIG)
        return rv__fail(err, RV_ETOOBIG, "the value is too large");
    return rc < 0 ? rc : rv__buf_err(out, err);
}

int rv__jq_answer(struct rv__jq *jq, struct rv__str question, struct rv__buf *out, size_t *ret_at,
                  rv_error *err)
{
    struct rv__str pairs, scope, part;
    struct rv__json_iter it;
    jv seen;
    size_t start = out->len;
    *ret_at = 0;
    if (!rv__json_get(question, "run", &pairs) || !rv__json_get(question, "scope", &scope))
        return rv__fail(err, RV_EINVAL, "the evaluator was not asked anything");
    int rc = read_scope(jq, scope, &seen);
    if (rc < 0)
        return rv__fail(err, rc, rc == RV_ENOMEM ? "out of memory" : "the scope cannot be read");
    rv__buf_char(out, '[');
    rv__json_iter_init(&it, pairs);
    while (rc == RV_OK && rv__json_next(&it, NULL, &part)) {
        int64_t slot = -1, choice = -1;
        (void)rv__json_int(part, &slot); /* not one: there is no program -1 */
        if (rv__json_next(&it, NULL, &part))
            (void)rv__json_int(part, &choice);
        if (*ret_at > 0)
            rv__buf_char(out, ',');
        rc = run(jq, slot, choice, seen, out, err);
        *ret_at += rc == RV_OK;
    }
    jv_free(seen);
    rv__buf_char(out, ']');
    if (rc == RV_OK)
        rc = rv__buf_err(out, err);
    if (rc < 0) {
        out->rc = RV_OK; /* it was, before us */
        rv__buf_cut(out, start);
    }
    return rc;
}
