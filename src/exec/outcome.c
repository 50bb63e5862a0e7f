/* outcome.c: the outcome of a finished command for its step. Pure: text in, text out. */
#include <signal.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "exec/exec.h"

/* A message: our own words and the tail of stderr, in which every byte may be escaped. */
enum { MESSAGE_BYTES = 8 * RV__COMMAND_TAIL };

enum { MOST_ATTEMPTS = 1000000 }; /* a larger number is a mistake */

static const struct rv__str nothing = RV__STR("null");

/* --------------------------------------------------------------------------- the result --- */

static int text_json(struct rv__str text, struct rv__arena *arena, struct rv__str *ret,
                     rv_error *err)
{
    struct rv__buf buf;
    rv__buf_init(&buf, 6 * text.len + 2); /* \u00XX for every byte, and the quotes */
    rv__buf_json_str(&buf, text);
    int rc = rv__buf_err(&buf, err);
    if (rc == RV_OK && (rc = rv__str_copy(arena, rv__buf_view(&buf), ret)) < 0)
        rv__nomem(err);
    rv__buf_done(&buf);
    return rc;
}

/* Make it valid UTF-8. */
static int clean_text(struct rv__str text, struct rv__arena *arena, struct rv__str *ret,
                      rv_error *err)
{
    struct rv__str json;
    int rc = text_json(text, arena, &json, err);
    if (rc == RV_OK && (rc = rv__json_string(json, arena, ret)) < 0)
        rv__nomem(err);
    return rc;
}

static int base64_json(struct rv__str bytes, struct rv__arena *arena, struct rv__str *ret,
                       rv_error *err)
{
    struct rv__buf buf;
    rv__buf_init(&buf, RV__JSON_MAX_BYTES);
    rv__buf_char(&buf, '"');
    rv__buf_base64(&buf, bytes);
    rv__buf_char(&buf, '"');
    int rc = rv__buf_err(&buf, err);
    if (rc == RV_OK && (rc = rv__str_copy(arena, rv__buf_view(&buf), ret)) < 0)
        rv__nomem(err);
    rv__buf_done(&buf);
    return rc;
}

/* An error in stdout is reported in *why. */
static int read_output(struct rv__str output, enum rv__output_as as, struct rv__arena *arena,
                       struct rv__outcome *o, rv_error *why, rv_error *err)
{
    struct rv__str value;
    if (as == RV__OUTPUT_BASE64)
        return base64_json(output, arena, &o->result, err);
    if (output.len > 0 && output.at[output.len - 1] == '\n')
        output.len--;
    if (as == RV__OUTPUT_NONE || (output.len == 0 && as != RV__OUTPUT_TEXT)) {
        o->result = nothing;
        return RV_OK;
    }
    if (as != RV__OUTPUT_TEXT &&
        rv__json_check(output, RV__JSON_VALUE_DEPTH, &value, why) == RV_OK &&
        (as == RV__OUTPUT_JSON || rv__json_keeps_text(value))) {
        why->code = RV_OK;
        o->result = value;
        return RV_OK;
    }
    if (as == RV__OUTPUT_JSON) {
        char says[sizeof why->message];
        (void)snprintf(says, sizeof says, "%s", why->message);
        (void)rv__fail(why, RV_EPARSE, "is not JSON, as `output: json` asks for: %s", says);
        return RV_OK;
    }
    why->code = RV_OK;
    if (rv__str_utf8(output))
        return text_json(output, arena, &o->result, err);
    (void)rv__fail(why, RV_EPARSE,
                   "is not text: it has bytes that are not UTF-8; `output: base64` "
                   "keeps them as base64");
    return RV_OK;
}

/* -------------------------------------------------------------------------- the failure --- */

/* "SIGKILL", or its number. */
static void add_signal(struct rv__buf *buf, int sig)
{
    const char *name = sigabbrev_np(sig);
    if (name != NULL)
        rv__buf_fmt(buf, "SIG%s", name);
    else
        rv__buf_fmt(buf, "signal %d", sig);
}

static void add_end(struct rv__buf *buf, const struct rv__command_result *r, const char *program)
{
    rv__buf_fmt(buf, "'%s' ", program);
    if (r->end == RV__COMMAND_EXITED) {
        rv__buf_fmt(buf, "failed with exit code %d", r->status);
    } else {
        rv__buf_text(buf, "was ended by ");
        add_signal(buf, r->status);
    }
}

static void add_killed(struct rv__buf *buf, const struct rv__command_result *r, const char *program)
{
    rv__buf_fmt(buf, "'%s' ", program);
    if (r->killed == RV__KILL_TIMEOUT && r->end != RV__COMMAND_NOT_RUN)
        rv__buf_fmt(buf, "timed out and was stopped after %lld ms", (long long)r->ran_ms);
    else if (r->killed == RV__KILL_TIMEOUT)
        rv__buf_text(buf, "timed out before it began");
    else
        rv__buf_text(buf, r->killed == RV__KILL_CANCEL ? "was cancelled"
                                                       : "was stopped: the engine is closing");
}

static void add_tail(struct rv__buf *buf, struct rv__str tail)
{
    if (tail.len == 0)
        return;
    rv__buf_text(buf, memchr(tail.at, '\n', tail.len) != NULL ? "; stderr ended with:\n" : ": ");
    rv__buf_str(buf, tail);
}

/* 0: the process succeeded. */
static int judge(const struct rv__command_result *r, const char *program, struct rv__buf *message)
{
    static const int codes[] = { [RV__KILL_NONE] = RV_OK,
                                 [RV__KILL_TIMEOUT] = RV_ETIMEDOUT,
                                 [RV__KILL_CANCEL] = RV_ECANCELED,
                                 [RV__KILL_SHUTDOWN] = RV_ECLOSED };
    if (r->killed != RV__KILL_NONE) {
        add_killed(message, r, program);
        add_tail(message, r->tail);
        return codes[r->killed];
    }
    if (r->end == RV__COMMAND_NOT_RUN) {
        rv__buf_text(message, r->error.message); /* it already names the program */
        return r->error.code;
    }
    if (r->error.code != RV_OK) {
        rv__buf_fmt(message, "'%s': %s", program, r->error.message);
        add_tail(message, r->tail);
        return r->error.code;
    }
    if (r->end == RV__COMMAND_EXITED && r->status == 0)
        return RV_OK;
    add_end(message, r, program);
    add_tail(message, r->tail);
    return RV_EFAILED;
}

/* The `code` of its error, for retry rules. */
static const char *word_of(const struct rv__command_result *r, bool own)
{
    if (r->killed != RV__KILL_NONE)
        return r->killed == RV__KILL_TIMEOUT ? "timeout" : "cancelled";
    if (r->end == RV__COMMAND_NOT_RUN)
        return "notRun";
    if (r->error.code != RV_OK) /* too long, or not readable */
        return "badOutput";
    if (own)
        return NULL;
    return r->end != RV__COMMAND_EXITED ? "signal" : r->status != 0 ? "exit" : "badOutput";
}

/* --------------------------------------------------------------------- the control object --- */

struct control {
    struct rv__arena *arena;
    struct rv__outcome *o;
    bool failed;            /* it has an `error` */
    struct rv__str message; /* of the error; none: not given */
    rv_error *wrong;        /* what is wrong with the object */
};

typedef int (*member_fn)(struct control *c, const char *name, struct rv__str value);

struct member {
    const char *name;
    member_fn read;
};

enum { MOST_MEMBERS = 8 }; /* of the tables below */

static int bad(struct control *c, const char *name, const char *want)
{
    return rv__fail(c->wrong, RV_EINVAL, "%s must be %s", name, want);
}

static int read_members(struct control *c, const char *where, struct rv__str object,
                        const struct member *members, size_t count)
{
    const char *names[MOST_MEMBERS];
    struct rv__json_iter it;
    struct rv__str key, name, value;
    for (size_t i = 0; i < count; i++)
        names[i] = members[i].name;
    rv__json_iter_init(&it, object);
    while (rv__json_next(&it, &key, NULL)) {
        int rc = rv__json_string(key, c->arena, &name);
        if (rc < 0)
            return rc;
        size_t i = 0;
        while (i < count && !rv__str_is(name, names[i]))
            i++;
        if (i < count)
            continue;
        const char *near = rv__suggest(name, names, count);
        return rv__fail(c->wrong, RV_EINVAL, "unknown member '%s%.*s'%s%s%s", where,
                        name.len < 64 ? (int)name.len : 64, name.at, near ? ": did you mean '" : "",
                        near ? near : "", near ? "'?" : "");
    }
    for (size_t i = 0; i < count; i++) {
        char full[64];
        if (!rv__json_get(object, names[i], &value) || rv__json_type(value) == RV__JSON_NULL)
            continue; /* null counts as absent */
        snprintf(full, sizeof full, "%s%s", where, names[i]);
        int rc = members[i].read(c, full, value);
        if (rc < 0)
            return rc;
    }
    return RV_OK;
}

static int read_text(struct control *c, const char *name, struct rv__str value, struct rv__str *ret)
{
    int rc = rv__json_string(value, c->arena, ret);
    return rc == RV_EINVAL ? bad(c, name, "a string") : rc;
}

static int read_description(struct control *c, const char *name, struct rv__str value)
{
    return read_text(c, name, value, &c->o->description);
}

static int read_message(struct control *c, const char *name, struct rv__str value)
{
    return read_text(c, name, value, &c->message);
}

static int read_skipped(struct control *c, const char *name, struct rv__str value)
{
    if (rv__json_bool(value, &c->o->skipped) == RV_OK)
        return RV_OK;
    return bad(c, name, "true or false");
}

static int read_state(struct control *c, const char *name, struct rv__str value)
{
    if (rv__json_type(value) != RV__JSON_OBJECT)
        return bad(c, name, "an object");
    c->o->state = value;
    return RV_OK;
}

static int read_behavior(struct control *c, const char *name, struct rv__str value)
{
    static const char *const names[] = { "", "stop", "continue", "retry" };
    for (int i = RV__STEP_STOP; i <= RV__STEP_RETRY; i++)
        if (rv__json_string_is(value, rv__str(names[i]))) {
            c->o->behavior = (enum rv__step_behavior)i;
            return RV_OK;
        }
    return bad(c, name, "\"stop\", \"continue\" or \"retry\"");
}

static int read_attempts(struct control *c, const char *name, struct rv__str value)
{
    if (rv__json_int(value, &c->o->max_attempts) == RV_OK && c->o->max_attempts >= 1 &&
        c->o->max_attempts <= MOST_ATTEMPTS)
        return RV_OK;
    return bad(c, name, "an integer from 1 to 1000000");
}

static int read_backoff(struct control *c, const char *name, struct rv__str value)
{
    if (rv__json_string_is(value, rv__str("linear")))
        c->o->backoff = RV__BACKOFF_LINEAR;
    else if (rv__json_string_is(value, rv__str("exponential")))
        c->o->backoff = RV__BACKOFF_EXPONENTIAL;
    else
        return bad(c, name, "\"linear\" or \"exponential\"");
    return RV_OK;
}

static int read_error(struct control *c, const char *name, struct rv__str value)
{
    static const struct member members[] = { { "message", read_message },
                                             { "behavior", read_behavior },
                                             { "maxAttempts", read_attempts },
                                             { "backoff", read_backoff } };
    if (rv__json_type(value) != RV__JSON_OBJECT)
        return bad(c, name, "an object");
    c->failed = true;
    int rc = read_members(c, "error.", value, members, sizeof members / sizeof *members);
    if (rc < 0)
        return rc;
    if (c->o->behavior != RV__STEP_RETRY && (c->o->max_attempts != 0 || c->o->backoff != 0))
        return rv__fail(c->wrong, RV_EINVAL,
                        "error.maxAttempts and error.backoff are for error.behavior \"retry\"");
    return RV_OK;
}

static int read_control(struct control *c, struct rv__str text)
{
    static const struct member members[] = { { "description", read_description },
                                             { "skipped", read_skipped },
                                             { "state", read_state },
                                             { "error", read_error } };
    struct rv__str object;
    size_t blank = 0;
    while (blank < text.len && strchr(" \t\r\n", text.at[blank]) != NULL && text.at[blank] != '\0')
        blank++;
    if (blank == text.len)
        return RV_OK; /* empty */
    int rc = rv__json_check(text, RV__JSON_VALUE_DEPTH, &object, c->wrong);
    if (rc < 0)
        return rc;
    if (rv__json_type(object) != RV__JSON_OBJECT)
        return rv__fail(c->wrong, RV_EINVAL, "it must hold one JSON object");
    return read_members(c, "", object, members, sizeof members / sizeof *members);
}

/* ------------------------------------------------------------------------------------------ */

/* The command's own message replaces ours. */
static void add_own_message(struct rv__buf *message, struct rv__str own, const char *program)
{
    if (rv__str_none(own)) {
        if (message->len == 0)
            rv__buf_fmt(message, "'%s' reported an error", program);
        return;
    }
    rv__buf_reset(message);
    rv__buf_message(message, own, RV__COMMAND_TAIL);
}

static void forget(struct rv__outcome *o)
{
    *o = (struct rv__outcome){ .result = nothing };
}

int rv__command_outcome(const struct rv__command_result *r, const char *program,
                        enum rv__output_as as, struct rv__arena *arena, struct rv__outcome *ret,
                        rv_error *err)
{
    struct rv__outcome o = { .result = nothing };
    rv_error why = { 0 };
    struct control c = { .arena = arena, .o = &o, .wrong = &why };
    struct rv__buf message;
    int rc = RV_OK;

    rv__buf_init(&message, MESSAGE_BYTES);
    int code = judge(r, program, &message);
    if (r->killed == RV__KILL_NONE && r->end != RV__COMMAND_NOT_RUN && r->error.code == RV_OK) {
        rc = read_control(&c, r->control);
        if (rc == RV_ENOMEM) {
            rv__nomem(err);
            goto out;
        }
        if (rc < 0) {
            forget(&o);
            rv__buf_fmt(&message, "%s'%s' wrote a control file (RIVAL_CONTROL) that is wrong: %s",
                        message.len > 0 ? "\n" : "", program, why.message);
            code = code != RV_OK ? code : RV_EFAILED;
        } else if (c.failed) {
            add_own_message(&message, c.message, program);
            code = RV_EFAILED;
        }
    }
    rc = RV_OK;
    if (code == RV_OK && !o.skipped) {
        why.code = RV_OK;
        rc = read_output(r->output, as, arena, &o, &why, err);
        if (rc < 0)
            goto out;
        if (why.code != RV_OK) {
            rv__buf_fmt(&message, "the stdout of '%s' %s", program, why.message);
            code = RV_EFAILED;
        }
    }
    if (code != RV_OK) {
        o.code = code;
        o.word = word_of(r, c.failed);
        if (r->killed == RV__KILL_NONE && r->end == RV__COMMAND_EXITED)
            o.exit_code = r->status;
        o.skipped = false;
        o.result = nothing;
        rc = rv__buf_err(&message, err);
        if (rc == RV_OK)
            rc = clean_text(rv__buf_view(&message), arena, &o.message, err);
    }
    if (rc == RV_OK)
        *ret = o;
out:
    rv__buf_done(&message);
    return rc;
}
