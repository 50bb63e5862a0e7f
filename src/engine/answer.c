/* answer.c: what can be asked through a control socket, and how that is answered: by the public calls, of
 * which each method is one. A frame in, a frame out; who sends them is control.c's. */
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "engine/control.h"

enum key {
    METHOD,
    RUN,
    WORKFLOW,
    INPUT,
    NAME,
    PAYLOAD,
    ACTION,
    REASON,
    HANDLE,
    RESULT,
    ERROR,
    TIMEOUT,
    KEYS
};
static const char *const keys[KEYS] = { "method", "runId",   "workflow", "input",
                                        "name",   "payload", "action",   "reason",
                                        "handle", "result",  "error",    "timeoutMs" };

struct request {
    rv_engine *engine;
    const struct rv__asker *asker;
    struct rv__str values[KEYS];
    struct rv__arena arena;
    struct rv__buf *out; /* members of the result go here */
    rv_violations *violations;
};

/* The member as a C string; NULL where there is none. */
static int take_text(struct request *r, enum key key, const char **ret, rv_error *err)
{
    struct rv__str text, value = r->values[key];
    if (rv__str_none(value))
        return RV_OK;
    if (rv__json_string(value, &r->arena, &text) < 0 || memchr(text.at, '\0', text.len) != NULL)
        return rv__fail(err, RV_EINVAL, "'%s' is not a text", keys[key]);
    *ret = rv__arena_dup(&r->arena, text.at, text.len);
    return *ret != NULL ? RV_OK : rv__nomem(err);
}

static int take_json(struct request *r, enum key key, const char **ret, rv_error *err)
{
    struct rv__str value = r->values[key];
    if (rv__str_none(value))
        return RV_OK;
    *ret = rv__arena_dup(&r->arena, value.at, value.len);
    return *ret != NULL ? RV_OK : rv__nomem(err);
}

static int answer_hello(struct request *r, const char *run_id, rv_error *err)
{
    rv_health health;
    (void)run_id;
    (void)err;
    rv__wire_int(r->out, "protocol", RV__CONTROL_PROTOCOL);
    rv__wire_text(r->out, "version", rv__str(rv_version()));
    rv__wire_int(r->out, "pid", getpid());
    if (r->engine->only_run[0] != '\0')
        rv__wire_text(r->out, "onlyRun", rv__str(r->engine->only_run));
    if (rv_engine_health(r->engine, &health, NULL) == RV_OK && health.stuck)
        rv__wire_text(r->out, "refuses", rv__str(health.why.message));
    return RV_OK;
}

static int answer_run(struct request *r, const char *run_id, rv_error *err)
{
    const char *workflow = NULL, *input = NULL;
    rv_run_info info;
    int rc = take_text(r, WORKFLOW, &workflow, err);
    if (rc == RV_OK)
        rc = take_json(r, INPUT, &input, err);
    if (rc == RV_OK)
        rc = rv_run(r->engine, workflow, input,
                    RV_RUN_OPTS(.run_id = run_id, .violations = &r->violations), &info, err);
    if (rc < 0)
        return rc;
    rv__wire_text(r->out, "runId", rv__str(info.run_id));
    rv__wire_text(r->out, "status", rv__str(rv_status_name(info.status)));
    return RV_OK;
}

static int answer_cancel(struct request *r, const char *run_id, rv_error *err)
{
    return rv_cancel_run(r->engine, run_id, err);
}

static int answer_signal(struct request *r, const char *run_id, rv_error *err)
{
    const char *name = NULL, *payload = NULL;
    int rc = take_text(r, NAME, &name, err);
    if (rc == RV_OK)
        rc = take_json(r, PAYLOAD, &payload, err);
    return rc == RV_OK ? rv_signal(r->engine, run_id, name, payload, err) : rc;
}

static int answer_decide(struct request *r, const char *run_id, rv_error *err)
{
    const char *action = NULL, *reason = NULL;
    int rc = take_text(r, ACTION, &action, err);
    if (rc == RV_OK)
        rc = take_text(r, REASON, &reason, err);
    if (rc < 0)
        return rc;
    bool resume = action != NULL && strcmp(action, "resume") == 0;
    if (!resume && (action == NULL || strcmp(action, "abort") != 0))
        return rv__fail(err, RV_EINVAL, "'action' is not resume or abort");
    return rv_decide(r->engine, run_id, resume ? RV_RESUME : RV_ABORT, reason, err);
}

static int answer_complete(struct request *r, const char *run_id, rv_error *err)
{
    const char *handle = NULL, *result = NULL, *error = NULL;
    int rc = take_text(r, HANDLE, &handle, err);
    if (rc == RV_OK)
        rc = take_json(r, RESULT, &result, err);
    if (rc == RV_OK)
        rc = take_text(r, ERROR, &error, err);
    return rc == RV_OK ? rv_complete(r->engine, run_id, handle, result, error, err) : rc;
}

static int answer_workflows(struct request *r, const char *run_id, rv_error *err)
{
    rv_workflow_list *list = NULL;
    (void)run_id;
    int rc = rv_workflows(r->engine, &list, err);
    if (rc < 0)
        return rc;
    rv__buf_text(r->out, ",\"workflows\":[");
    for (size_t i = 0; i < list->count; i++) {
        const rv_workflow_info *w = &list->items[i];
        rv__buf_text(r->out, i > 0 ? ",{\"name\":" : "{\"name\":");
        rv__buf_json_str(r->out, rv__str(w->name));
        rv__wire_text(r->out, "description", rv__str(w->description));
        rv__wire_text(r->out, "inputSchema", rv__str(w->input_schema));
        rv__wire_text(r->out, "version", rv__str(w->version));
        rv__wire_text(r->out, "source", rv__str(w->source));
        rv__wire_int(r->out, "steps", w->step_count);
        rv__buf_char(r->out, '}');
    }
    rv__buf_char(r->out, ']');
    rv_workflow_list_free(list);
    return RV_OK;
}

static int answer_why(struct request *r, const char *run_id, rv_error *err)
{
    char *why = NULL;
    int rc = rv_why(r->engine, run_id, &why, err);
    if (rc < 0)
        return rc;
    rv__wire_json(r->out, "why", rv__str(why));
    rv_free(why);
    return RV_OK;
}

/* Only that it has ended: the outcome is on disk, for who asks to read. */
static int answer_wait(struct request *r, const char *run_id, rv_error *err)
{
    rv_outcome *outcome = NULL;
    int64_t timeout_ms = -1;
    if (!rv__str_none(r->values[TIMEOUT]) && rv__json_int(r->values[TIMEOUT], &timeout_ms) < 0)
        return rv__fail(err, RV_EINVAL, "'timeoutMs' is not a number of milliseconds");
    if (atomic_fetch_add(r->asker->waiters, 1) >= r->asker->most) {
        atomic_fetch_sub(r->asker->waiters, 1);
        return rv__fail(err, RV_EBUSY, "%d callers wait for runs already", r->asker->most);
    }
    int rc = rv_wait(
        r->engine, NULL, run_id,
        RV_WAIT_OPTS(.timeout_ms = timeout_ms != 0 ? timeout_ms : 1, .by = r->asker->gone),
        &outcome, err);
    atomic_fetch_sub(r->asker->waiters, 1);
    if (rc < 0)
        return rc;
    rv__wire_text(r->out, "status", rv__str(rv_status_name(outcome->status)));
    rv_outcome_free(outcome);
    return RV_OK;
}

static const struct method {
    const char *name;
    int (*answer)(struct request *r, const char *run_id, rv_error *err);
    bool about_run; /* it needs one, and it is to be one that is driven here */
    bool starts;    /* it makes one */
} methods[] = {
    { "hello", answer_hello, false, false },
    { "run", answer_run, false, true },
    { "cancel", answer_cancel, true, false },
    { "signal", answer_signal, true, false },
    { "decide", answer_decide, true, false },
    { "complete", answer_complete, true, false },
    { "workflows", answer_workflows, false, false },
    { "why", answer_why, true, false },
    { "wait", answer_wait, true, false },
};

static int check_driven(const rv_engine *e, const struct method *method, const char *run_id,
                        rv_error *err)
{
    if (method->about_run && run_id == NULL)
        return rv__fail(err, RV_EINVAL, "'%s' needs a 'runId'", method->name);
    if (e->only_run[0] == '\0' || (!method->about_run && !method->starts) ||
        (run_id != NULL && strcmp(run_id, e->only_run) == 0))
        return RV_OK;
    return rv__fail(err, RV_EBUSY,
                    "process %ld has the store, and drives run '%.60s' only: wait for its end "
                    "(rival wait), or stop it, and try again",
                    (long)getpid(), e->only_run);
}

static int answer_call(struct request *r, const struct rv__frame *frame, rv_error *err)
{
    const char *run_id = NULL;
    if (frame->type != FRAME_CALL)
        return rv__fail(err, RV_EINVAL, "this is a control socket: it takes frames of type 'call'");
    rv__frame_members(frame, keys, r->values, KEYS);
    if (rv__str_none(r->values[METHOD]))
        return rv__fail(err, RV_EINVAL, "a call needs a 'method'");
    int rc = take_text(r, RUN, &run_id, err);
    for (size_t i = 0; rc == RV_OK && i < sizeof methods / sizeof *methods; i++) {
        if (!rv__json_string_is(r->values[METHOD], rv__str(methods[i].name)))
            continue;
        rc = check_driven(r->engine, &methods[i], run_id, err);
        return rc == RV_OK ? methods[i].answer(r, run_id, err) : rc;
    }
    if (rc < 0)
        return rc;
    return rv__fail(err, RV_EINVAL, "there is no such method in version %s", rv_version());
}

/* The frame `error`; violations may be NULL. */
static void put_error(struct rv__buf *out, const rv_error *err, const rv_violations *violations)
{
    size_t start = rv__wire_begin(out, FRAME_ERROR);
    rv__wire_int(out, "code", err->code);
    rv__wire_text(out, "message", rv__str(err->message));
    if (violations != NULL) {
        rv__buf_text(out, ",\"violations\":[");
        for (size_t i = 0; i < violations->count; i++) {
            rv__buf_text(out, i > 0 ? ",{\"path\":" : "{\"path\":");
            rv__buf_json_str(out, rv__str(violations->items[i].path));
            rv__wire_text(out, "message", rv__str(violations->items[i].message));
            rv__buf_char(out, '}');
        }
        rv__buf_char(out, ']');
        rv__wire_int(out, "dropped", (int64_t)violations->dropped);
    }
    rv__wire_end(out, start);
}

void rv__control_answer(rv_engine *engine, const struct rv__frame *frame,
                        const struct rv__asker *asker, struct rv__buf *out)
{
    struct request r = { .engine = engine, .asker = asker, .out = out };
    rv_error err = { .code = 0 };
    rv__arena_init(&r.arena, SIZE_MAX); /* bounded by the frame */
    size_t start = rv__wire_begin(out, FRAME_RESULT);
    int rc = answer_call(&r, frame, &err);
    if (rc == RV_OK)
        rv__wire_end(out, start);
    if (rc == RV_OK && out->rc < 0)
        rc = rv__fail(&err, out->rc, "the answer: %s", rv_strerror(out->rc));
    if (rc == RV_ECLOSED)
        (void)rv__fail(&err, rc, "process %ld, which drives the store, is ending: try again soon",
                       (long)getpid());
    if (rc < 0) {
        rv__buf_reset(out);
        put_error(out, &err, r.violations);
    }
    rv_violations_free(r.violations);
    rv__arena_done(&r.arena);
}
