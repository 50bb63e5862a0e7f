/* attach.c: an engine for a store that another process drives: it reads by itself, and asks the driver to act.
 *
 * Each request has a connection of its own, so there is none to keep alive or to share, and a driver that was
 * restarted is found again. If no driver listens, a request that only reads is answered from disk; any other one
 * fails. */
#include "engine/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/store_name.h"
#include "base/violations.h"
#include "engine/call.h"
#include "engine/member.h"

enum {
    ATTACH_MS = 2000, /* the driver may be starting or ending */
    ATTACH_AGAIN_MS = 50,
    HELLO_MS = 5000,
    BEGIN_MS = 120000, /* start of a run that is handed over: C files may have to be compiled */
    GRACE_MS = 10000,  /* for its steps to end, if the engine does not say */
    ANSWER_MS =
        60000, /* a commit takes milliseconds, but the store may be unavailable for a while */
    WAIT_AGAIN_MS = 250,
    WAIT_SLACK_MS = 5000, /* for the answer that the time has passed */
};

/* ---------------------------------------------------------------------------------- asking --- */

/* Write an optional member. */
static int take_int(struct rv__str value, int64_t *ret)
{
    return rv__str_none(value) ? RV_EINVAL : rv__json_int(value, ret);
}

static int take_string(struct rv__str value, struct rv__arena *arena, struct rv__str *ret)
{
    return rv__str_none(value) ? RV_EINVAL : rv__json_string(value, arena, ret);
}

static size_t begin_call(struct rv__buf *out, const char *method)
{
    rv__buf_init(out, SIZE_MAX / 8); /* bounded by the frame's own limit */
    size_t start = rv__wire_begin(out, FRAME_CALL);
    rv__wire_text(out, "method", rv__str(method));
    return start;
}

static void put_text(struct rv__buf *out, const char *key, const char *text)
{
    if (text != NULL)
        rv__wire_text(out, key, rv__str(text));
}

static int put_json(struct rv__buf *out, const char *key, const char *json, rv_error *err)
{
    struct rv__str value;
    rv_error why;
    if (json == NULL)
        return RV_OK;
    if (rv__json_check(rv__str(json), RV__JSON_VALUE_DEPTH, &value, &why) < 0)
        return rv__fail(err, RV_EINVAL, "the %s is not JSON: %s", key, why.message);
    rv__wire_json(out, key, value);
    return RV_OK;
}

/* Inside a public call: the engine is not freed meanwhile. */
static int ask_driver(rv_engine *e, struct rv__buf *request, size_t start, int64_t timeout_ms,
                      rv_cancel *by, struct rv__reply *reply, rv_error *err)
{
    const struct rv__asked asked = { &e->attached->place, e->attached->driver.pid };
    rv__wire_end(request, start);
    rv__engine_enter(e);
    int rc = rv__ask(&asked, request, timeout_ms, by, e->closing, reply, err);
    rv__engine_leave(e);
    rv__buf_done(request);
    return rc;
}

static int ask_member(rv_engine *e, const struct rv__addressee *told, struct rv__buf *request,
                      size_t start, struct rv__reply *reply, rv_error *err)
{
    if (told->by != NULL)
        rv__wire_text(request, "by", rv__str(told->by));
    rv__wire_end(request, start);
    rv__engine_enter(e);
    int rc = rv__buf_err(request, err);
    if (rc == RV_OK)
        rc = rv__member_ask(e, told->member, request, ANSWER_MS, reply, err);
    else
        *reply = (struct rv__reply){ .frame = { .type = FRAME_ERROR } };
    rv__engine_leave(e);
    rv__buf_done(request);
    return rc;
}

/* Send a request whose answer has no content. `rc`: result of composing it. */
static int tell(rv_engine *e, const struct rv__addressee *told, struct rv__buf *request,
                size_t start, int rc, rv_error *err)
{
    struct rv__reply reply;
    if (rc < 0) {
        rv__buf_done(request);
        return rc;
    }
    rc = told != NULL ? ask_member(e, told, request, start, &reply, err)
                      : ask_driver(e, request, start, ANSWER_MS, NULL, &reply, err);
    rv__reply_done(&reply);
    return rc;
}

/* ------------------------------------------------------------------------------- the calls --- */

/* Texts of an answer, in order, each copied with a NUL behind it. */
static int keep_texts(struct rv__str object, const char *const *keys, size_t count,
                      struct rv__arena *arena, struct rv__buf *out)
{
    for (size_t i = 0; i < count; i++) {
        struct rv__str value = { NULL, 0 }, text = { "", 0 };
        if (rv__json_get(object, keys[i], &value) && rv__json_string(value, arena, &text) < 0)
            text = value; /* a number: as it stands */
        rv__buf_add(out, text.at, strnlen(text.at, text.len));
        rv__buf_char(out, '\0');
    }
    return out->rc;
}

static int take_violations(const struct rv__reply *reply, rv_violations **ret)
{
    struct rv__arena arena;
    struct rv__violations list;
    struct rv__str items = { NULL, 0 }, item, dropped = { NULL, 0 };
    struct rv__json_iter it;
    int64_t more = 0;
    if (!rv__json_get(reply->frame.json, "violations", &items))
        return RV_OK;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    rv__violations_init(&list, &arena);
    rv__json_iter_init(&it, items);
    while (rv__json_next(&it, NULL, &item)) {
        struct rv__str path = { "", 0 }, message = { "", 0 }, value;
        if (rv__json_get(item, "path", &value))
            (void)rv__json_string(value, &arena, &path); /* "" where it is none */
        if (rv__json_get(item, "message", &value))
            (void)rv__json_string(value, &arena, &message);
        rv__violations_add(&list, path, "%.*s", RV__ARG(message));
    }
    if (rv__json_get(reply->frame.json, "dropped", &dropped) &&
        rv__json_int(dropped, &more) == RV_OK && more > 0)
        list.dropped += (size_t)more;
    int rc = list.rc;
    if (rc == RV_OK && list.count > 0)
        rc = rv__violations_give(&list, ret);
    rv__arena_done(&arena);
    return rc;
}

static int take_info(const struct rv__reply *reply, rv_run_info *ret, rv_error *err)
{
    static const char *const keys[] = { "runId", "status", "validated" };
    struct rv__str values[3];
    rv_run_info info = { .status = -1 };
    rv__frame_members(&reply->frame, keys, values, 3);
    info.schema_only = rv__str_is(values[2], "\"schema\"");
    if (values[0].len > 2 && values[0].len - 2 < sizeof info.run_id) /* ids have no escapes */
        snprintf(info.run_id, sizeof info.run_id, "%.*s", (int)values[0].len - 2, values[0].at + 1);
    for (int i = RV_RUNNING; i <= RV_CANCELLED; i++)
        if (!rv__str_none(values[1]) && rv__json_string_is(values[1], rv__str(rv_status_name(i))))
            info.status = i;
    if (info.status < 0 || !rv__id_valid(rv__str(info.run_id)))
        return rv__fail(err, RV_EPARSE, "the driver's answer is not a run");
    if (ret != NULL)
        *ret = info;
    return RV_OK;
}

int rv__attached_run(rv_engine *e, const char *workflow, const char *input, const rv_run_opts *opts,
                     rv_run_info *ret, rv_error *err)
{
    struct rv__buf request;
    struct rv__reply reply;
    size_t start = begin_call(&request, "run");
    put_text(&request, "workflow", workflow);
    put_text(&request, "runId", opts->run_id);
    put_text(&request, "rerunOf", opts->rerun_of);
    if (opts->max_concurrency != 0)
        rv__wire_int(&request, "maxConcurrency", opts->max_concurrency);
    int rc = put_json(&request, "input", input, err);
    if (rc < 0) {
        rv__buf_done(&request);
        return rc;
    }
    rc = ask_driver(e, &request, start, ANSWER_MS, NULL, &reply, err);
    if (rc == RV_OK)
        rc = take_info(&reply, ret, err);
    else if (rc == RV_EINVAL && opts->violations != NULL && reply.frame.json.at != NULL &&
             take_violations(&reply, opts->violations) < 0)
        rc = rv__nomem(err);
    rv__reply_done(&reply);
    return rc;
}

/* ------------------------------------------------------------------------------ handing over --- */

/* An absolute path: the driver may be in another folder. */
static void put_path(struct rv__buf *out, const char *folder, const char *path)
{
    struct rv__buf whole;
    rv__buf_init(&whole, RV__PATH_ROOM);
    if (path[0] != '/') {
        rv__buf_text(&whole, folder);
        rv__buf_char(&whole, '/');
    }
    rv__buf_text(&whole, path);
    rv__buf_json_str(out, rv__buf_view(&whole));
    if (whole.rc < 0)
        out->rc = whole.rc;
    rv__buf_done(&whole);
}

static void put_variable(struct rv__buf *out, const char *variable)
{
    if (rv__str_utf8(rv__str(variable))) {
        rv__buf_json_str(out, rv__str(variable));
        return;
    }
    for (const char *c = variable; *c != '\0'; c++)
        rv__buf_fmt(out, "%c%d", c == variable ? '[' : ',', (int)(unsigned char)*c);
    rv__buf_char(out, ']');
}

/* ,"key":[ … ] of a list that ends in NULL. */
static void put_list(struct rv__buf *out, const char *key, const char *const *list,
                     const char *folder, bool variables)
{
    rv__buf_fmt(out, ",\"%s\":[", key);
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        rv__buf_text(out, i > 0 ? "," : "");
        if (folder != NULL)
            put_path(out, folder, list[i]);
        else if (variables)
            put_variable(out, list[i]);
        else
            rv__buf_json_str(out, rv__str(list[i]));
    }
    rv__buf_char(out, ']');
}

static int put_hand_over(struct rv__buf *request, const char *workflow, const rv_hand_opts *opts,
                         rv_error *err)
{
    char folder[RV__PATH_ROOM];
    if (getcwd(folder, sizeof folder) == NULL)
        return rv__fail(err, RV_ESYS, "the current folder cannot be named: %s",
                        strerrordesc_np(errno));
    put_text(request, "workflow", workflow);
    put_text(request, "runId", opts->run_id);
    put_list(request, "files", opts->files, folder, false);
    put_list(request, "env", (const char *const *)environ, NULL, true);
    put_list(request, "allowEnv", opts->allow_env, NULL, false);
    if (opts->secrets_file != NULL) {
        rv__buf_text(request, ",\"secretsFile\":");
        put_path(request, folder, opts->secrets_file);
    }
    if (opts->resumes)
        rv__wire_json(request, "resumes", rv__str("true"));
    if (opts->max_concurrency != 0)
        rv__wire_int(request, "maxConcurrency", opts->max_concurrency);
    return put_json(request, "input", opts->input, err);
}

static int take_begun(struct rv__attached *attached, rv_run_info *ret, rv_error *err)
{
    struct rv__str followed;
    if (attached->line.reply.frame.type != FRAME_BEGUN)
        return rv__fail(err, RV_EPARSE, "the driver's answer is not a run");
    attached->followed = rv__json_get(attached->line.reply.frame.json, "followed", &followed) &&
                         rv__str_is(followed, "true");
    return take_info(&attached->line.reply, ret, err);
}

int rv_hand_over(rv_engine *e, const char *workflow, const rv_hand_opts *opts, rv_run_info *ret,
                 rv_error *err)
{
    rv_hand_opts known = { .size = sizeof known };
    struct rv__buf request;
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (e == NULL || workflow == NULL || known.run_id == NULL || known.files == NULL ||
        known.size == 0)
        return rv__fail(err, RV_EINVAL, "rv_hand_over: no %s given",
                        e == NULL          ? "engine"
                        : workflow == NULL ? "workflow"
                        : known.size == 0  ? "size of the options"
                                           : "run id, or no files");
    struct rv__attached *attached = e->attached;
    if (!rv__attached_asks_driver(e) || attached->handed[0] != '\0')
        return rv__fail(err, RV_ESTATE, "this engine %s",
                        attached == NULL
                            ? "drives the store itself: there is no process to hand the run to"
                            : "has handed over a run already");
    if (strcmp(attached->driver.version, rv_version()) != 0)
        return rv__fail(err, RV_ESTATE,
                        "process %lld drives the store with version %.20s, and this is %s",
                        (long long)attached->driver.pid, attached->driver.version, rv_version());
    size_t start = begin_call(&request, "exec");
    int rc = put_hand_over(&request, workflow, &known, err);
    rv__wire_end(&request, start);
    const struct rv__asked asked = { &attached->place, attached->driver.pid };
    rv__engine_enter(e);
    if (rc == RV_OK)
        rc = rv__line_open(&asked, &request, &attached->line, err);
    if (rc == RV_OK)
        rc = rv__line_take(&attached->line, BEGIN_MS, NULL, e->closing, err);
    if (rc == RV_OK)
        rc = take_begun(attached, ret, err);
    else if (rc == RV_EINVAL && known.violations != NULL &&
             attached->line.reply.frame.json.at != NULL &&
             take_violations(&attached->line.reply, known.violations) < 0)
        rc = rv__nomem(err);
    rv__engine_leave(e);
    rv__buf_done(&request);
    if (rc == RV_OK && known.followed != NULL)
        *known.followed = attached->followed;
    if (rc == RV_OK)
        snprintf(attached->handed, sizeof attached->handed, "%s", known.run_id);
    else
        rv__line_close(&attached->line);
    return rc;
}

void rv_hand_opts_init(rv_hand_opts *opts)
{
    *opts = (rv_hand_opts){ .size = sizeof *opts };
}

/* Its steps end like our own: first they get time to finish, then they are cancelled. */
static int release(struct rv__attached *attached)
{
    struct rv__buf request;
    struct rv__reply reply;
    struct rv__str value;
    int64_t left = 0;
    const struct rv__asked asked = { &attached->place, attached->driver.pid };
    size_t start = begin_call(&request, "release");
    put_text(&request, "runId", attached->handed);
    rv__wire_int(&request, "drainMs", attached->drain_ms);
    rv__wire_int(&request, "graceMs", attached->grace_ms);
    rv__wire_end(&request, start);
    /* If this fails: the driver has ended, or will notice that we have. */
    if (rv__ask(&asked, &request, attached->drain_ms + attached->grace_ms + WAIT_SLACK_MS, NULL,
                NULL, &reply, NULL) < 0 ||
        !rv__json_get(reply.frame.json, "left", &value) || rv__json_int(value, &left) < 0)
        left = 0;
    rv__reply_done(&reply);
    rv__buf_done(&request);
    return (int)left;
}

int rv__attached_close(rv_engine *e)
{
    struct rv__attached *attached = e->attached;
    if (attached == NULL)
        return 0;
    if (attached->handed[0] != '\0' && attached->line.fd >= 0) {
        if (!attached->followed && !rv__line_ended(&attached->line))
            attached->left = release(attached);
        rv__line_close(&attached->line);
    }
    return attached->left;
}

int rv__attached_cancel(rv_engine *e, const struct rv__addressee *told, const char *run_id,
                        rv_error *err)
{
    struct rv__buf request;
    size_t start = begin_call(&request, "cancel");
    put_text(&request, "runId", run_id);
    return tell(e, told, &request, start, RV_OK, err);
}

int rv__attached_signal(rv_engine *e, const struct rv__addressee *told, const char *run_id,
                        const char *name, const char *payload, bool force, rv_error *err)
{
    struct rv__buf request;
    size_t start = begin_call(&request, "signal");
    put_text(&request, "runId", run_id);
    put_text(&request, "name", name);
    if (force)
        (void)put_json(&request, "force", "true", NULL); /* it is JSON */
    return tell(e, told, &request, start, put_json(&request, "payload", payload, err), err);
}

int rv__attached_read(rv_engine *e, const struct rv__addressee *told, const char *token,
                      const rv_read *read, rv_error *err)
{
    struct rv__buf request;
    size_t start = begin_call(&request, "read");
    put_text(&request, "runId", read->run_id);
    put_text(&request, "token", token);
    rv__wire_int(&request, "what", read->what);
    put_text(&request, "name", read->name);
    put_text(&request, "through", read->through);
    return tell(e, told, &request, start, RV_OK, err);
}

int rv__attached_complete(rv_engine *e, const struct rv__addressee *told, const char *run_id,
                          const char *handle, const char *result, const char *error, rv_error *err)
{
    struct rv__buf request;
    size_t start = begin_call(&request, "complete");
    put_text(&request, "runId", run_id);
    put_text(&request, "handle", handle);
    put_text(&request, "error", error);
    return tell(e, told, &request, start, put_json(&request, "result", result, err), err);
}

int rv__attached_decide(rv_engine *e, const struct rv__addressee *told, const char *run_id,
                        int decision, const rv_decide_opts *opts, rv_error *err)
{
    struct rv__buf request;
    size_t start = begin_call(&request, "decide");
    put_text(&request, "runId", run_id);
    put_text(&request, "action", rv__decisions[decision]);
    put_text(&request, "reason", opts->reason);
    put_text(&request, "path", opts->path);
    return tell(e, told, &request, start, RV_OK, err);
}

int rv__attached_why(rv_engine *e, const struct rv__addressee *told, const char *run_id, char **ret,
                     rv_error *err)
{
    struct rv__buf request, text;
    struct rv__reply reply;
    struct rv__str why = { NULL, 0 };
    size_t start = begin_call(&request, "why");
    put_text(&request, "runId", run_id);
    int rc = told != NULL ? ask_member(e, told, &request, start, &reply, err)
                          : ask_driver(e, &request, start, ANSWER_MS, NULL, &reply, err);
    if (rc == RV_OK && !rv__json_get(reply.frame.json, "why", &why))
        rc = rv__fail(err, RV_EPARSE, "the driver's answer has no reason");
    if (rc == RV_OK) {
        rv__buf_init(&text, RV__FRAME_MAX);
        rv__buf_str(&text, why);
        rc = rv__buf_err(&text, err);
        if (rc == RV_OK)
            *ret = rv__buf_take(&text);
        rv__buf_done(&text);
    }
    rv__reply_done(&reply);
    return rc;
}

int rv__attached_workflows(rv_engine *e, struct rv__buf *ret, rv_error *err)
{
    static const char *const keys[] = { "name",   "description", "inputSchema", "version",
                                        "source", "steps",       "cannotStart" };
    struct rv__buf request;
    struct rv__reply reply;
    struct rv__arena arena;
    struct rv__str list = { NULL, 0 }, item;
    struct rv__json_iter it;
    size_t start = begin_call(&request, "workflows");
    int rc = ask_driver(e, &request, start, ANSWER_MS, NULL, &reply, err);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (rc == RV_OK && rv__json_get(reply.frame.json, "workflows", &list)) {
        rv__json_iter_init(&it, list);
        while (rc == RV_OK && rv__json_next(&it, NULL, &item))
            rc = keep_texts(item, keys, sizeof keys / sizeof *keys, &arena, ret);
        rc = rv__buf_err(ret, err);
    }
    rv__arena_done(&arena);
    rv__reply_done(&reply);
    return rc;
}

/* --------------------------------------------------------------------------------- an end --- */

struct row {
    const char *workflow; /* it is to be of this one; NULL = any */
    bool ended, other;
    rv_error *err;
};

static int look_at_row(void *arg, const struct rv__store_run *run)
{
    struct row *row = arg;
    row->ended = run->completed_ms != 0;
    row->other = row->workflow != NULL && !rv__str_is(run->workflow, row->workflow);
    if (row->other)
        (void)rv__fail(row->err, RV_ENOTFOUND, "run '%.*s' is of workflow '%.*s', not '%.60s'",
                       RV__ARG(run->id), RV__ARG(run->workflow), row->workflow);
    return RV_OK;
}

int rv__run_has_ended(rv_engine *e, const char *workflow, const char *run_id, rv_error *err)
{
    struct row row = { .workflow = workflow, .err = err };
    pthread_mutex_lock(&e->step_reader_lock);
    int rc = rv__store_run(e->step_reader, rv__str(run_id), look_at_row, &row, err);
    pthread_mutex_unlock(&e->step_reader_lock);
    if (rc == RV_ENOTFOUND)
        return rv__fail(err, rc, "there is no run '%s'", run_id);
    if (rc == RV_OK && row.other)
        return RV_ENOTFOUND;
    return rc < 0 ? rc : row.ended;
}

static int wait_there(rv_engine *e, const char *run_id, int64_t left_ms, rv_cancel *by,
                      rv_error *err)
{
    struct rv__buf request;
    struct rv__reply reply;
    size_t start = begin_call(&request, "wait");
    put_text(&request, "runId", run_id);
    rv__wire_int(&request, "timeoutMs", left_ms);
    int rc = ask_driver(e, &request, start, left_ms < 0 ? -1 : left_ms + WAIT_SLACK_MS, by, &reply,
                        err);
    rv__reply_done(&reply);
    return rc;
}

static int pause_here(rv_engine *e, int64_t ms, rv_cancel *by, rv_error *err)
{
    rv__engine_enter(e);
    int rc = rv__ask_pause(ms, by, e->closing, err);
    rv__engine_leave(e);
    return rc;
}

int rv__attached_wait(rv_engine *e, const char *workflow, const char *run_id, int64_t timeout_ms,
                      rv_cancel *by, rv_error *err)
{
    int64_t deadline_ns = rv__deadline_ns(timeout_ms);
    for (;;) {
        int rc = rv__run_has_ended(e, workflow, run_id, err);
        if (rc != 0)
            return rc < 0 ? rc : RV_OK;
        int64_t left_ns = deadline_ns - rv__mono_ns(rv__clock_real());
        int64_t left_ms = timeout_ms < 0 ? -1 : left_ns / 1000000 + 1;
        if (timeout_ms >= 0 && left_ns <= 0)
            return rv__fail(err, RV_ETIMEDOUT, "run '%s'%s%.60s has not ended after %lld ms",
                            run_id, workflow != NULL ? " of workflow " : "",
                            workflow != NULL ? workflow : "", (long long)timeout_ms);
        rv_error why;
        rc = wait_there(e, run_id, left_ms, by, &why);
        if (rc == RV_OK || rc == RV_ETIMEDOUT)
            continue;
        /* No driver, or one that cannot say: look again a little later. */
        rc = pause_here(e, timeout_ms >= 0 && left_ms < WAIT_AGAIN_MS ? left_ms : WAIT_AGAIN_MS, by,
                        err);
        if (rc < 0)
            return rc;
    }
}

/* ------------------------------------------------------------------------------- attaching --- */

static int say_hello(struct rv__attached *attached, rv_error *err)
{
    static const char *const keys[] = {
        "protocol", "version", "pid", "onlyRun", "refuses", "guests"
    };
    struct rv__str values[6], text;
    struct rv__arena arena;
    struct rv__buf request;
    struct rv__reply reply;
    int64_t protocol = 0;
    size_t start = begin_call(&request, "driver");
    const struct rv__asked asked = { &attached->place, attached->driver.pid };
    rv__wire_end(&request, start);
    int rc = rv__ask(&asked, &request, HELLO_MS, NULL, NULL, &reply, err);
    rv__buf_done(&request);
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the frame */
    if (rc == RV_OK) {
        rv_driver *driver = &attached->driver;
        rv__frame_members(&reply.frame, keys, values, 6);
        rv__buf_reset(&attached->guests);
        if (!rv__str_none(values[5]))
            rv__buf_str(&attached->guests, values[5]);
        if (take_int(values[0], &protocol) < 0 || take_int(values[2], &driver->pid) < 0)
            protocol = 0;
        if (take_string(values[1], &arena, &text) == RV_OK)
            snprintf(driver->version, sizeof driver->version, "%.*s", RV__ARG(text));
        if (take_string(values[3], &arena, &text) == RV_OK)
            snprintf(driver->only_run, sizeof driver->only_run, "%.*s", RV__ARG(text));
        if (take_string(values[4], &arena, &text) == RV_OK)
            snprintf(driver->refuses, sizeof driver->refuses, "%.*s", RV__ARG(text));
        if (protocol != RV__PROTOCOL)
            rc = rv__fail(err, RV_ESTATE,
                          "process %lld drives the store with version %.20s, which this one (%s) "
                          "cannot speak to",
                          (long long)driver->pid, driver->version, rv_version());
    }
    rv__arena_done(&arena);
    rv__reply_done(&reply);
    return rc;
}

/* Attach to a driver that listens; with looks_only, to none. Takes *attached. */
static int open_beside(const rv_engine_opts *opts, struct rv__attached **attached, rv_engine **ret,
                       rv_error *err)
{
    rv_engine_opts reading = *opts;
    rv_engine *engine = NULL;
    reading.read_only = true;
    reading.control = false;
    int rc = rv__engine_make(&reading, NULL, 0, &engine, err);
    if (rc < 0)
        return rc;
    engine->attached = *attached;
    *attached = NULL;
    *ret = engine;
    return RV_OK;
}

int rv__engine_attach(const rv_engine_opts *opts, rv_engine **ret, rv_error *err)
{
    const char *store = opts->store != NULL ? opts->store : RV__STORE_DEFAULT;
    int64_t deadline_ns = rv__deadline_ns(ATTACH_MS);
    struct rv__attached *attached = rv__zalloc(1, sizeof *attached);
    rv_error none;
    int rc;

    if (attached == NULL)
        return rv__nomem(err);
    attached->looks_only = opts->read_only;
    attached->line.fd = -1;
    attached->drain_ms = opts->drain_ms;
    attached->grace_ms = opts->grace_ms > 0 ? opts->grace_ms : GRACE_MS;
    rv__buf_init(&attached->guests, RV__FRAME_MAX);
    for (;;) {
        int there = !rv__store_name_exists(store)
                        ? RV_ECLOSED
                        : rv__socket_place(store, &attached->place, &none);
        if (there == RV_OK)
            there = say_hello(attached, &none);
        if (there == RV_OK || opts->read_only) {
            rc = open_beside(opts, &attached, ret, err);
            break;
        }
        if (there == RV_ESTATE || there == RV_ENOMEM) {
            rc = rv__fail(err, there, "%s", none.message);
            break;
        }
        rc = rv__engine_make(opts, NULL, 0, ret, err);
        bool late = rv__mono_ns(rv__clock_real()) >= deadline_ns;
        if (rc == RV_EBUSY && late && there == RV_ESYS)
            rc = rv__fail(err, RV_EFAILED, "another process has the store: %s", none.message);
        if (rc != RV_EBUSY || late)
            break;
        rv__clock_sleep_ms(ATTACH_AGAIN_MS);
    }
    rv__attached_free(attached);
    return rc;
}

void rv__attached_free(struct rv__attached *attached)
{
    if (attached == NULL)
        return;
    rv__line_close(&attached->line);
    rv__buf_done(&attached->guests);
    rv__free(attached);
}

int rv_engine_driver(rv_engine *e, rv_driver *ret, rv_error *err)
{
    if (e == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_engine_driver: no engine, or nowhere to put it");
    const struct rv__attached *attached = e->attached;
    if (attached == NULL || attached->driver.pid == 0 ||
        (attached->handed[0] != '\0' && rv__line_ended(&attached->line)))
        return 0;
    *ret = attached->driver;
    return 1;
}

bool rv_engine_drives(rv_engine *e, const char *run_id)
{
    struct rv__json_iter it;
    struct rv__str id;
    rv_driver driver = { .pid = 0 };
    if (run_id == NULL || rv_engine_driver(e, &driver, NULL) != 1)
        return false;
    if (driver.only_run[0] == '\0' || strcmp(driver.only_run, run_id) == 0)
        return true;
    if (e->attached->guests.len == 0)
        return false;
    rv__json_iter_init(&it, rv__buf_view(&e->attached->guests));
    while (rv__json_next(&it, NULL, &id))
        if (rv__json_string_is(id, rv__str(run_id)))
            return true;
    return false;
}
