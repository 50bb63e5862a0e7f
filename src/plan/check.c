/* check.c: checks a step of a draft and copies its values into the plan.
 *
 * Each rule is here once, for drafts from JSON and from the builder. After a violation we continue with
 * a harmless value, to find the next one. */
#include "plan/compile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "plan/kinds.h"

void rv__compiler_refuse(struct rv__compiler *c, struct rv__place place, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert(n >= 0);

    c->found++;
    rv__buf_reset(&c->text);
    if (place.node != NULL)
        rv__node_path(place.node, NULL, &c->text);
    else if (place.body->owner != NULL)
        rv__body_path(place.body, NULL, &c->text);
    else
        rv__buf_text(&c->text, place.key);
    if (c->text.rc !=
        RV_OK) /* as if the list had run out of memory, which is reported at the end */
        c->bad->rc = RV_ENOMEM;
    rv__violations_add(c->bad, rv__buf_view(&c->text), "%s", text);
}

/* Text is counted before it is read, so no draft makes us read more than the limit. */
static int count_bytes(struct rv__compiler *c, size_t bytes)
{
    if (bytes > RV__PLAN_MAX_BYTES - c->bytes)
        return rv__fail(c->err, RV_ETOOBIG,
                        "the plan has more than %d bytes of text, nested workflows included",
                        RV__PLAN_MAX_BYTES);
    c->bytes += bytes;
    return RV_OK;
}

int rv__compiler_text(struct rv__compiler *c, struct rv__str text, struct rv__str *ret)
{
    if (rv__str_none(text))
        return RV_OK;
    int rc = count_bytes(c, text.len);
    if (rc < 0)
        return rc;
    if (rv__str_copy(&c->plan->arena, text, ret) < 0)
        return rv__nomem(c->err);
    return RV_OK;
}

/* Without the white space between its tokens; `json` has been checked. */
static struct rv__str strip_spaces(struct rv__str json, char *to)
{
    struct rv__str out = { to, 0 };
    bool quoted = false;
    for (size_t i = 0; i < json.len; i++) {
        char ch = json.at[i];
        if (!quoted && (ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r'))
            continue;
        to[out.len++] = ch;
        if (quoted && ch == '\\')
            to[out.len++] = json.at[++i];
        else if (ch == '"')
            quoted = !quoted;
    }
    to[out.len] = '\0';
    return out;
}

int rv__compiler_json(struct rv__compiler *c, struct rv__place place, const char *what,
                      struct rv__str json, struct rv__str *ret)
{
    rv_error why;
    if (rv__str_none(json))
        return RV_OK;
    int rc = count_bytes(c, json.len);
    if (rc < 0)
        return rc;
    if (rv__json_check(json, RV__PLAN_VALUE_DEPTH, NULL, &why) < 0) {
        rv__compiler_refuse(c, place, "invalid %s: %s", what, why.message);
        return RV_OK;
    }
    char *copy = rv__arena_alloc(&c->plan->arena, json.len + 1);
    if (copy == NULL)
        return rv__nomem(c->err);
    *ret = strip_spaces(json, copy);
    return RV_OK;
}

int rv__compiler_expr(struct rv__compiler *c, struct rv__place place, const char *what,
                      const struct rv__expr *expr, struct rv__expr *ret)
{
    struct rv__str json = { NULL, 0 }, key, value;
    struct rv__json_iter it;
    const char *fault;
    int rc;

    if (expr->kind == EXPR_NONE)
        return RV_OK;
    if (expr->kind == EXPR_FUNCTION) {
        rc = rv__compiler_text(c, expr->text, &ret->text);
        if (rc < 0)
            return rc;
        ret->kind = EXPR_FUNCTION;
    } else {
        rc = rv__compiler_json(c, place, what, expr->text, &json);
        if (rc < 0 || rv__str_none(json))
            return rc;
        *ret = (struct rv__expr){ EXPR_JSON, json };
        rv__json_iter_init(&it, json);
        if (it.object && rv__json_next(&it, &key, &value) &&
            rv__json_string_is(key, (struct rv__str)RV__STR("fn")) &&
            rv__json_type(value) == RV__JSON_STRING && !rv__json_next(&it, NULL, NULL)) {
            if (rv__json_string(value, &c->plan->arena, &ret->text) < 0)
                return rv__nomem(c->err);
            ret->kind = EXPR_FUNCTION;
        }
    }
    fault = ret->kind == EXPR_FUNCTION ? rv__function_fault(ret->text) : NULL;
    if (fault != NULL)
        rv__compiler_refuse(c, place, "invalid function '%s' in %s: %s", rv__show(ret->text).text,
                            what, fault);
    return RV_OK;
}

/* ------------------------------------------------------------------------------- config --- */

static const struct {
    enum rv__given bit;
    const char *key;
} step_only[] = {
    { GIVEN_TIMEOUT, "timeout" },
    { GIVEN_ON_TIMEOUT, "onTimeout" },
    { GIVEN_MAX_ATTEMPTS, "maxAttempts" },
    { GIVEN_BACKOFF, "backoff" },
    { GIVEN_BACKOFF_BASE_MS, "backoffBaseMs" },
    { GIVEN_MAX_BACKOFF_MS, "maxBackoffMs" },
    { GIVEN_JITTER, "jitter" },
    { GIVEN_RETRY_ON, "retryOn" },
    { GIVEN_NO_RETRY_ON, "noRetryOn" },
    { GIVEN_CONTINUE_ON_ERROR, "continueOnError" },
    { GIVEN_RECORD_INPUT, "recordInput" },
    { GIVEN_NEEDS, "needs" },
};

void rv__check_no_step_config(struct rv__compiler *c, struct rv__place place,
                              const struct rv__draft_node *draft, const char *what)
{
    for (size_t i = 0; i < sizeof step_only / sizeof *step_only; i++)
        if (draft->given & step_only[i].bit)
            rv__compiler_refuse(c, place, "step-only config: '%s' is for steps, not for %s",
                                step_only[i].key, what);
    if (draft->on_error != NULL)
        rv__compiler_refuse(c, place, "step-only config: 'onError' is for steps, not for %s", what);
}

static void check_ms(struct rv__compiler *c, const struct rv__node *node, const char *key,
                     int64_t ms, int64_t least)
{
    if (ms < least || ms > RV__PLAN_MAX_MS)
        rv__compiler_refuse(c, RV__AT(node),
                            "invalid %s %" PRId64
                            ": must be milliseconds, %s 0 and at most a hundred years",
                            key, ms, least > 0 ? "above" : "not below");
}

/* A code of an error as JSON: with its quotes, and without escapes, so that it can be compared byte by
 * byte. Digits only are refused: a number was meant. */
static bool is_code(struct rv__str quoted)
{
    bool letters = false;
    for (size_t i = 1; i + 1 < quoted.len; i++) {
        unsigned char ch = (unsigned char)quoted.at[i];
        bool digit = ch >= '0' && ch <= '9';
        bool letter = (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
        if (!digit && !letter && (ch == '\0' || strchr("_.:-", ch) == NULL))
            return false;
        letters |= !digit;
    }
    return letters && quoted.len <= RV__PLAN_MAX_NAME;
}

enum {
    MAX_CODE = 999
}; /* exit codes end at 255, HTTP statuses at 599; some servers use higher ones */

/* A list of codes: exit codes, HTTP statuses, and codes of errors.
 * Errors: RV_ENOMEM, RV_ETOOBIG. */
static int check_codes(struct rv__compiler *c, const struct rv__node *node, const char *key,
                       struct rv__str said, struct rv__str *ret)
{
    struct rv__json_iter it;
    struct rv__str json = { NULL, 0 }, value;
    int64_t number;
    int rc = rv__compiler_json(c, RV__AT(node), key, said, &json);
    if (rc < 0 || rv__str_none(json))
        return rc;
    rv__json_iter_init(&it, json);
    size_t count = *json.at == '[' ? rv__json_count(json) : 0;
    if (count == 0 || count > RV__PLAN_MAX_CODES) {
        rv__compiler_refuse(c, RV__AT(node),
                            "invalid %s %s: must be a list of 1 to %d exit codes, HTTP statuses or "
                            "error codes, such as [75, 503, \"timeout\"]",
                            key, rv__show(json).text, RV__PLAN_MAX_CODES);
        return RV_OK;
    }
    while (rv__json_next(&it, NULL, &value)) {
        bool good = *value.at == '"' ? is_code(value)
                                     : rv__json_int(value, &number) == RV_OK && number >= 1 &&
                                           number <= MAX_CODE;
        if (!good)
            rv__compiler_refuse(c, RV__AT(node),
                                "invalid code %s in %s: must be a number from 1 to %d (without "
                                "quotes), or the name of an error: letters, digits and _ . : -",
                                rv__show(value).text, key, MAX_CODE);
    }
    *ret = json;
    return RV_OK;
}

int rv__check_config(struct rv__compiler *c, const struct rv__draft_node *draft,
                     struct rv__node *node, struct rv__step_config *config)
{
    *config = draft->config;
    config->retry_on = config->no_retry_on = (struct rv__str){ NULL, 0 };
    int rc = check_codes(c, node, "retryOn", draft->config.retry_on, &config->retry_on);
    if (rc == RV_OK)
        rc = check_codes(c, node, "noRetryOn", draft->config.no_retry_on, &config->no_retry_on);
    if (rc < 0)
        return rc;
    if (!(draft->given & GIVEN_BACKOFF_BASE_MS))
        config->backoff_base_ms = RV__DEFAULT_BACKOFF_BASE_MS;
    if (!(draft->given & GIVEN_MAX_BACKOFF_MS))
        config->max_backoff_ms = RV__DEFAULT_MAX_BACKOFF_MS;

    if (draft->given & GIVEN_TIMEOUT)
        check_ms(c, node, "timeout", config->timeout_ms, 1);
    else
        config->timeout_ms = rv__node_timeout_ms(node);
    check_ms(c, node, "backoffBaseMs", config->backoff_base_ms, 0);
    check_ms(c, node, "maxBackoffMs", config->max_backoff_ms, 0);
    if (draft->given & GIVEN_MAX_ATTEMPTS && config->max_attempts < 1)
        rv__compiler_refuse(c, RV__AT(node), "invalid maxAttempts %d: must be at least 1",
                            config->max_attempts);
    if (!(config->jitter >= 0 && config->jitter <= 1)) /* also refuses NaN */
        rv__compiler_refuse(c, RV__AT(node), "invalid jitter %g: must be from 0 to 1",
                            config->jitter);
    if ((unsigned)config->on_timeout > ON_TIMEOUT_RETRY)
        rv__compiler_refuse(c, RV__AT(node), "unknown onTimeout %d: must be stop or retry",
                            (int)config->on_timeout);
    if ((unsigned)config->backoff > BACKOFF_EXPONENTIAL)
        rv__compiler_refuse(c, RV__AT(node), "unknown backoff %d: must be linear or exponential",
                            (int)config->backoff);
    return RV_OK;
}

/* --------------------------------------------------------------------- delay and signal --- */

static bool has_template(struct rv__str json)
{
    return memmem(json.at, json.len, "${", 2) !=
           NULL; /* also "$${", which the evaluator turns into text */
}

/* Read a number of units of `scale` ms, as ms. False: it is no number, or out of range. */
static bool read_ms(struct rv__str json, int64_t scale, int64_t *ret)
{
    double n;
    if (rv__json_double(json, &n) < 0 || !(n >= 0 && n * (double)scale <= (double)RV__PLAN_MAX_MS))
        return false;
    *ret = (int64_t)(n * (double)scale + 0.5);
    return true;
}

static void check_delay(struct rv__compiler *c, struct rv__node *node)
{
    struct rv__str with = node->step.with, key, value;
    struct rv__json_iter it;

    node->step.delay_ms = -1;
    if (node->step.input.kind != EXPR_NONE)
        return; /* a function makes it: known at run time */
    if (rv__str_none(with)) {
        rv__compiler_refuse(c, RV__AT(node), "a delay needs 'with': its duration");
        return;
    }
    if (has_template(with))
        return;
    node->step.parks = true;
    rv__json_iter_init(&it, with);
    if (!it.object) {
        key = (struct rv__str)RV__STR("\"ms\"");
        value = with;
    } else if (!rv__json_next(&it, &key, &value) || rv__json_next(&it, NULL, NULL)) {
        rv__compiler_refuse(c, RV__AT(node),
                            "invalid delay: it has one of 'milliseconds', 'seconds', 'ms'");
        return;
    }

    bool seconds = rv__json_string_is(key, (struct rv__str)RV__STR("seconds"));
    if (!seconds && !rv__json_string_is(key, (struct rv__str)RV__STR("ms")) &&
        !rv__json_string_is(key, (struct rv__str)RV__STR("milliseconds")))
        rv__compiler_refuse(c, RV__AT(node),
                            "invalid delay: unknown key %s; it has 'milliseconds', "
                            "'seconds' or 'ms'",
                            rv__show(key).text);
    else if (!read_ms(value, seconds ? 1000 : 1, &node->step.delay_ms))
        rv__compiler_refuse(
            c, RV__AT(node),
            "invalid delay %s: must be a number, not below 0 and at most a hundred years",
            rv__show(value).text);
}

/* Refuse a template where a constant is needed. */
static void check_constant(struct rv__compiler *c, const struct rv__node *node, const char *key,
                           struct rv__str value)
{
    if (has_template(value))
        rv__compiler_refuse(c, RV__AT(node), "the %s of a signal cannot have expressions ${ … }",
                            key);
}

/* Errors: RV_ENOMEM. */
static int check_signal(struct rv__compiler *c, struct rv__node *node)
{
    static const char *const keys[] = { "name", "timeout", "default", "schema" };
    struct rv__str with = node->step.with, key, value, word, name = { NULL, 0 };
    struct rv__json_iter it;
    bool computed = node->step.input.kind != EXPR_NONE, template = computed;
    if (rv__node_handler(node) != NULL) /* the default in a handler, so that a run ends */
        node->step.signal_timeout_ms = RV__HANDLER_TIMEOUT_MS;

    if (rv__str_none(with) && computed)
        return RV_OK;
    rv__json_iter_init(&it, rv__str_none(with) ? (struct rv__str)RV__STR("null") : with);
    if (!it.object) {
        rv__compiler_refuse(c, RV__AT(node), "a signal needs 'with': an object with its 'name'");
        return RV_OK;
    }
    while (rv__json_next(&it, &key, &value)) {
        template = template || has_template(value);
        if (rv__json_string(key, &c->plan->arena, &word) < 0)
            return rv__nomem(c->err);
        if (rv__str_is(word, "name")) {
            int rc = rv__json_string(value, &c->plan->arena, &name);
            if (rc == RV_ENOMEM)
                return rv__nomem(c->err);
            if (rc < 0 || name.len == 0 || name.len > RV__PLAN_MAX_NAME)
                rv__compiler_refuse(c, RV__AT(node),
                                    "invalid name of a signal %s: must be a text of 1 to %d bytes",
                                    rv__show(value).text, RV__PLAN_MAX_NAME);
        } else if (rv__str_is(word, "timeout")) {
            node->step.signal_timeout_ms = 0;
            if (!has_template(value) && (!read_ms(value, 1, &node->step.signal_timeout_ms) ||
                                         node->step.signal_timeout_ms == 0))
                rv__compiler_refuse(
                    c, RV__AT(node),
                    "invalid timeout %s of a signal: must be milliseconds, above 0 and at "
                    "most a hundred years",
                    rv__show(value).text);
        } else if (rv__str_is(word, "default")) {
            node->step.signal_default = value;
            check_constant(c, node, "default", value);
        } else if (rv__str_is(word, "schema")) {
            node->step.signal_schema = value;
            check_constant(c, node, "schema", value);
            if (*value.at != '{' && *value.at != 't' && *value.at != 'f')
                rv__compiler_refuse(c, RV__AT(node),
                                    "invalid schema %s of a signal: a JSON Schema is an object, "
                                    "true or false",
                                    rv__show(value).text);
        } else {
            const char *meant = rv__suggest(word, keys, sizeof keys / sizeof *keys);
            rv__compiler_refuse(c, RV__AT(node), "unknown key '%s' of a signal%s%s%s",
                                rv__show(word).text, meant ? "; did you mean '" : "",
                                meant ? meant : "", meant ? "'?" : "");
        }
    }
    if (rv__str_none(name) && !computed)
        rv__compiler_refuse(c, RV__AT(node), "a signal needs a 'name'");
    else if ((computed || has_template(name)) && !rv__str_none(node->step.signal_schema))
        rv__compiler_refuse(c, RV__AT(node),
                            "the name of a signal with a schema cannot have expressions: a payload "
                            "is checked when it arrives, which may be before the step is reached");
    node->step.parks = !template;
    if (!template)
        node->step.signal = name;
    if (!rv__str_none(node->step.signal_schema))
        node->step.signal_checked = name;
    return RV_OK;
}

/* -------------------------------------------------------------------------------- steps --- */

/* Only the parameters of built-in steps (http, command …) can be made by a function. Errors: RV_ENOMEM. */
static int check_input(struct rv__compiler *c, const struct rv__draft_node *draft,
                       struct rv__node *node)
{
    enum rv__step_kind kind = node->step.kind;
    int rc = rv__compiler_expr(c, RV__AT(node), "input", &draft->step.input, &node->step.input);
    if (rc < 0 || node->step.input.kind == EXPR_NONE)
        return rc;
    if (node->step.input.kind != EXPR_FUNCTION)
        rv__compiler_refuse(c, RV__AT(node),
                            "the 'input' of a step must be a function: {\"fn\": \"name\"}");
    if (kind != STEP_HTTP && kind != STEP_DELAY && kind != STEP_SIGNAL)
        rv__compiler_refuse(c, RV__AT(node), "a step of kind %s takes no 'input'",
                            rv__step_kind_name(kind));
    else if (!rv__str_none(node->step.with) && *node->step.with.at != '{')
        rv__compiler_refuse(c, RV__AT(node), "invalid with %s: beside 'input' it must be an object",
                            rv__show(node->step.with).text);
    return RV_OK;
}

static void check_name(struct rv__compiler *c, struct rv__node *node)
{
    bool named = node->step.kind == STEP_FUNCTION || node->step.kind == STEP_CALL;
    const char *kind = rv__step_kind_name(node->step.kind);
    if (named && rv__str_none(node->step.name)) {
        rv__compiler_refuse(c, RV__AT(node), "a step of kind %s needs the 'name' of a function",
                            kind);
    } else if (named) {
        const char *fault = rv__function_fault(node->step.name);
        if (fault != NULL)
            rv__compiler_refuse(c, RV__AT(node), "invalid function '%s': %s",
                                rv__show(node->step.name).text, fault);
        if (!rv__str_none(node->step.with))
            rv__compiler_refuse(c, RV__AT(node), "a step of kind %s takes no 'with'", kind);
    } else if (!rv__str_none(node->step.name)) {
        rv__compiler_refuse(c, RV__AT(node), "a step of kind %s takes no 'name'", kind);
    }
}

int rv__take_needs(struct rv__compiler *c, const struct rv__str *from, uint32_t count,
                   struct rv__str **ret, uint32_t *ret_count)
{
    if (count == 0)
        return RV_OK;
    if (count > RV__PLAN_MAX_NODES - c->needs)
        return rv__fail(c->err, RV_ETOOBIG, "the plan's steps have more than %d 'needs'",
                        RV__PLAN_MAX_NODES);
    c->needs += count;
    *ret = rv__arena_zalloc(&c->plan->arena, count, sizeof **ret);
    if (*ret == NULL)
        return rv__nomem(c->err);
    *ret_count = count;
    for (uint32_t i = 0; i < count; i++) {
        int rc = rv__compiler_text(c, from[i], &(*ret)[i]);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

int rv__check_step(struct rv__compiler *c, const struct rv__draft_node *draft,
                   struct rv__node *node)
{
    int rc;
    if ((unsigned)draft->step.kind >= STEP_KINDS) {
        rv__compiler_refuse(c, RV__AT(node), "unknown kind %d of a step", (int)draft->step.kind);
        return RV_OK;
    }
    node->step.kind = draft->step.kind;

    rc = rv__compiler_text(c, draft->name, &node->step.name);
    if (rc < 0)
        return rc;

    rc = rv__compiler_json(c, RV__AT(node), "with", draft->step.with, &node->step.with);
    if (rc < 0)
        return rc;

    rc = check_input(c, draft, node);
    if (rc < 0)
        return rc;
    check_name(c, node);
    bool turn = node->body != NULL && node->body->owner != NULL &&
                node->body->owner->kind == NODE_CHAT && node->body->index == 0;
    if (node->step.kind == STEP_CHAT && !turn)
        rv__compiler_refuse(c, RV__AT(node), "a chat is not a step: its type is 'chat'");
    rc = rv__check_config(c, draft, node, &node->step.config);
    if (rc < 0)
        return rc;
    if (node->is_handler && (node->step.kind == STEP_DELAY || node->step.kind == STEP_SIGNAL))
        rv__compiler_refuse(c, RV__AT(node), "a handler must do something: it cannot be a %s",
                            rv__step_kind_name(node->step.kind));
    rc = rv__take_needs(c, draft->needs, draft->needs_count, &node->step.needs,
                        &node->step.needs_count);
    if (rc < 0)
        return rc;

    bool lost = rv__str_none(node->step.with) && !rv__str_none(draft->step.with); /* not JSON */
    if (node->step.kind == STEP_VALUE && rv__str_none(draft->step.with))
        rv__compiler_refuse(c, RV__AT(node), "a value needs 'with': the value");
    if (node->step.kind == STEP_DELAY && !lost)
        check_delay(c, node);
    if (node->step.kind == STEP_SIGNAL && !lost)
        return check_signal(c, node);
    return RV_OK;
}
