/* answer.c: the methods of the control socket. Each is one public call: a frame in, a frame out. control.c sends
 * and receives the frames. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/call.h"
#include "engine/control.h"
#include "engine/member.h"

enum key {
    METHOD,
    RUN,
    WORKFLOW,
    INPUT,
    NAME,
    PAYLOAD,
    FORCE,
    ACTION,
    REASON,
    PATH,
    HANDLE,
    RESULT,
    ERROR,
    TIMEOUT,
    FILES,
    ENVIRONMENT,
    ALLOW_ENV,
    SECRETS,
    RESUMES,
    DRAIN,
    GRACE,
    ID,
    OUTCOME,
    RERUN_OF,
    MAX_CONCURRENCY,
    TOKEN,
    WHAT,
    THROUGH,
    MEMBER,
    COUNT,
    WORKFLOWS,
    KEYS
};
static const char *const keys[KEYS] = {
    "method", "runId",   "workflow",  "input",          "name",    "payload", "force",
    "action", "reason",  "path",      "handle",         "result",  "error",   "timeoutMs",
    "files",  "env",     "allowEnv",  "secretsFile",    "resumes", "drainMs", "graceMs",
    "id",     "outcome", "rerunOf",   "maxConcurrency", "token",   "what",    "through",
    "member", "count",   "workflows",
};

enum {
    FILES_MOST = 10000, /* of a run that is handed over */
    VARIABLES_MOST = 100000,
    GONE_GRACE_MS = 2000, /* for steps of a run whose process has died */
};

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

static int answer_driver(struct request *r, const char *run_id, rv_error *err)
{
    rv_health health;
    (void)run_id;
    (void)err;
    rv__wire_int(r->out, "protocol", RV__PROTOCOL);
    rv__wire_text(r->out, "version", rv__str(rv_version()));
    rv__wire_int(r->out, "pid", getpid());
    if (r->engine->only_run[0] != '\0')
        rv__wire_text(r->out, "onlyRun", rv__str(r->engine->only_run));
    rv__buf_text(r->out, ",\"guests\":");
    rv__guest_name_all(r->engine, r->out);
    if (rv_engine_health(r->engine, &health, NULL) == RV_OK && health.stuck)
        rv__wire_text(r->out, "refuses", rv__str(health.why.message));
    return RV_OK;
}

static int take_concurrency(struct request *r, int64_t *ret, rv_error *err)
{
    *ret = 0;
    if (rv__str_none(r->values[MAX_CONCURRENCY]) ||
        rv__json_int(r->values[MAX_CONCURRENCY], ret) == RV_OK)
        return RV_OK;
    return rv__fail(err, RV_EINVAL, "'maxConcurrency' must be a whole number");
}

static int answer_run(struct request *r, const char *run_id, rv_error *err)
{
    const char *workflow = NULL, *input = NULL, *rerun_of = NULL;
    int64_t limit;
    rv_run_info info;
    int rc = take_text(r, WORKFLOW, &workflow, err);
    if (rc == RV_OK)
        rc = take_json(r, INPUT, &input, err);
    if (rc == RV_OK)
        rc = take_text(r, RERUN_OF, &rerun_of, err);
    if (rc == RV_OK)
        rc = take_concurrency(r, &limit, err);
    if (rc == RV_OK)
        rc = rv_run(r->engine, workflow, input,
                    RV_RUN_OPTS(.run_id = run_id, .rerun_of = rerun_of, .max_concurrency = limit,
                                .violations = &r->violations, .by = r->asker->by),
                    &info, err);
    if (rc < 0)
        return rc;
    rv__wire_text(r->out, "runId", rv__str(info.run_id));
    rv__wire_text(r->out, "status", rv__str(rv_status_name(info.status)));
    if (info.schema_only)
        rv__wire_text(r->out, "validated", rv__str("schema"));
    return RV_OK;
}

static int answer_cancel(struct request *r, const char *run_id, rv_error *err)
{
    return rv_cancel_run_with(r->engine, run_id, RV_CANCEL_OPTS(.by = r->asker->by), err);
}

static int answer_signal(struct request *r, const char *run_id, rv_error *err)
{
    const char *name = NULL, *payload = NULL;
    rv_signal_opts opts = { .size = sizeof opts, .by = r->asker->by };
    int rc = take_text(r, NAME, &name, err);
    if (rc == RV_OK)
        rc = take_json(r, PAYLOAD, &payload, err);
    if (rc == RV_OK && !rv__str_none(r->values[FORCE]) &&
        rv__json_bool(r->values[FORCE], &opts.force) < 0)
        rc = rv__fail(err, RV_EINVAL, "'force' is not true or false");
    return rc == RV_OK ? rv_signal_with(r->engine, run_id, name, payload, &opts, err) : rc;
}

const char *const rv__decisions[4] = { [RV_RESUME] = "resume",
                                       [RV_ABORT] = "abort",
                                       [RV_SKIP] = "skip",
                                       [RV_RESTART_STAGE] = "restart_stage" };

static int answer_decide(struct request *r, const char *run_id, rv_error *err)
{
    const char *action = NULL, *reason = NULL, *path = NULL;
    int rc = take_text(r, ACTION, &action, err);
    if (rc == RV_OK)
        rc = take_text(r, REASON, &reason, err);
    if (rc == RV_OK)
        rc = take_text(r, PATH, &path, err);
    if (rc < 0)
        return rc;
    int decision = 0;
    while (decision < 4 && (action == NULL || strcmp(action, rv__decisions[decision]) != 0))
        decision++;
    if (decision == 4)
        return rv__fail(err, RV_EINVAL, "'action' is not resume, abort, skip or restart_stage");
    return rv_decide(r->engine, run_id, decision,
                     RV_DECIDE_OPTS(.path = path, .reason = reason, .by = r->asker->by), err);
}

static int answer_complete(struct request *r, const char *run_id, rv_error *err)
{
    const char *handle = NULL, *result = NULL, *error = NULL;
    int rc = take_text(r, HANDLE, &handle, err);
    if (rc == RV_OK)
        rc = take_json(r, RESULT, &result, err);
    if (rc == RV_OK)
        rc = take_text(r, ERROR, &error, err);
    if (rc < 0)
        return rc;
    return rv_complete_with(r->engine, run_id, handle,
                            RV_COMPLETE_OPTS(.result = result, .error = error, .by = r->asker->by),
                            err);
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
        rv__wire_text(r->out, "cannotStart", rv__str(w->cannot_start));
        rv__buf_char(r->out, '}');
    }
    rv__buf_char(r->out, ']');
    rv_workflow_list_free(list);
    return RV_OK;
}

static int answer_read(struct request *r, const char *run_id, rv_error *err)
{
    const char *token = NULL;
    int64_t what = 0;
    rv_read read = { .size = sizeof read, .run_id = run_id };
    int rc = take_text(r, TOKEN, &token, err);
    if (rc == RV_OK)
        rc = take_text(r, NAME, &read.name, err);
    if (rc == RV_OK)
        rc = take_text(r, THROUGH, &read.through, err);
    if (rc == RV_OK && (rv__str_none(r->values[WHAT]) || rv__json_int(r->values[WHAT], &what) < 0 ||
                        what < RV_READ_LOGS || what > RV_READ_RUN))
        rc = rv__fail(err, RV_EINVAL, "'what' must be a number from %d to %d", RV_READ_LOGS,
                      RV_READ_RUN);
    read.what = (int)what;
    return rc == RV_OK ? rv_read_as(r->engine, token, &read, err) : rc;
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

/* ---------------------------------------------------------------------------- a run handed over --- */

/* The texts of an array; RV_EINVAL: it is not one of texts. */
static int take_texts(struct request *r, enum key key, size_t most, const char ***ret,
                      size_t *count, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str array = r->values[key], item, text;
    *count = 0;
    bool none = rv__str_none(array);
    if (!none && (rv__json_type(array) != RV__JSON_ARRAY || rv__json_count(array) > most))
        return rv__fail(err, RV_EINVAL, "'%s' is not a list of at most %zu texts", keys[key], most);
    const char **texts = rv__arena_zalloc(&r->arena, (none ? 0 : rv__json_count(array)) + 1,
                                          sizeof *texts);
    if (texts == NULL)
        return rv__nomem(err);
    if (!none)
        rv__json_iter_init(&it, array);
    while (!none && rv__json_next(&it, NULL, &item)) {
        if (rv__json_string(item, &r->arena, &text) < 0 || memchr(text.at, '\0', text.len) != NULL)
            return rv__fail(err, RV_EINVAL, "'%s' has something that is not a text", keys[key]);
        texts[*count] = rv__arena_dup(&r->arena, text.at, text.len);
        if (texts[(*count)++] == NULL)
            return rv__nomem(err);
    }
    *ret = texts;
    return RV_OK;
}

/* A variable: a text, or a list of its bytes if it is not UTF-8. False: neither. */
static bool put_variable(struct request *r, struct rv__str item, struct rv__buf *out)
{
    struct rv__json_iter it;
    struct rv__str text, byte;
    int64_t n;
    if (rv__json_type(item) != RV__JSON_ARRAY) {
        if (rv__json_string(item, &r->arena, &text) < 0 || memchr(text.at, '\0', text.len) != NULL)
            return false;
        rv__buf_str(out, text);
        return true;
    }
    rv__json_iter_init(&it, item);
    while (rv__json_next(&it, NULL, &byte)) {
        if (rv__json_int(byte, &n) < 0 || n < 1 || n > 255)
            return false;
        rv__buf_char(out, (char)(unsigned char)n);
    }
    return true;
}

/* The environment for commands, as one block: the pointers, then the texts. */
static int take_environment(struct request *r, struct rv__registry *registry, rv_error *err)
{
    struct rv__json_iter it;
    struct rv__str array = r->values[ENVIRONMENT], item;
    struct rv__buf texts;
    size_t count = 0, n = 0;
    if (rv__str_none(array) || rv__json_type(array) != RV__JSON_ARRAY ||
        (count = rv__json_count(array)) > VARIABLES_MOST)
        return rv__fail(err, RV_EINVAL, "'env' is not a list of at most %d variables",
                        VARIABLES_MOST);
    rv__buf_init(&texts, RV__FRAME_MAX);
    rv__json_iter_init(&it, array);
    bool good = true;
    while (good && rv__json_next(&it, NULL, &item)) {
        good = put_variable(r, item, &texts);
        rv__buf_char(&texts, '\0');
    }
    int rc = good ? rv__buf_err(&texts, err)
                  : rv__fail(err, RV_EINVAL, "'env' has something that is not a variable");
    const char **block = rc == RV_OK ? rv__alloc((count + 1) * sizeof *block + texts.len) : NULL;
    if (rc == RV_OK && block == NULL)
        rc = rv__nomem(err);
    if (block != NULL) {
        char *at = (char *)(block + count + 1);
        if (texts.len > 0)
            memcpy(at, texts.text, texts.len);
        for (; n < count; n++, at += strlen(at) + 1)
            block[n] = at;
        block[count] = NULL;
        registry->environment = block;
    }
    rv__buf_done(&texts);
    return rc;
}

static const char *variable(const struct rv__registry *registry, const char *name)
{
    size_t len = strlen(name);
    assert(registry != NULL); /* it was made, with its environment */
    for (const char *const *v = registry->environment; *v != NULL; v++)
        if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
            return *v + len + 1;
    return NULL;
}

/* The variables that its expressions may read: only those that its owner allows. */
static int allow(struct request *r, struct rv__registry *registry, rv_error *err)
{
    const char **names = NULL;
    size_t count = 0;
    int rc = take_texts(r, ALLOW_ENV, VARIABLES_MOST, &names, &count, err);
    if (rc < 0)
        return rc;
    assert(names != NULL || count == 0);
    rv__buf_char(&registry->env, '{');
    for (size_t i = 0; i < count; i++) {
        const char *value = variable(registry, names[i]);
        if (value == NULL)
            continue;
        if (registry->env.len > 1)
            rv__buf_char(&registry->env, ',');
        rv__buf_json_str(&registry->env, rv__str(names[i]));
        rv__buf_char(&registry->env, ':');
        rv__buf_json_str(&registry->env, rv__str(value));
    }
    rv__buf_char(&registry->env, '}');
    return rv__buf_err(&registry->env, err);
}

static int take_secrets(struct request *r, struct rv__registry *registry, rv_error *err)
{
    const char *path = NULL;
    assert(registry != NULL); /* it was made, with its environment */
    int rc = take_text(r, SECRETS, &path, err);
    if (rc == RV_OK)
        rc = rv__secret_source_new(path, registry->environment, &registry->secret_source, err);
    return rc;
}

/* The first file is the workflow; the others are C files that it may call. Errors in those were reported by the
 * process that hands the run over. */
static int register_files(struct request *r, struct rv__registry *registry, rv_error *err)
{
    const rv_file_opts opts = { .size = sizeof opts, .replace = true };
    const char **files = NULL;
    size_t count = 0;
    rv_error why;
    int rc = take_texts(r, FILES, FILES_MOST, &files, &count, err);
    if (rc == RV_OK && count == 0)
        rc = rv__fail(err, RV_EINVAL,
                      "'files' is empty: it must begin with the file of the workflow");
    if (rc < 0)
        return rc;
    for (size_t i = count - 1; i > 0; i--)
        (void)rv__register_file_in(registry, files[i], &opts, &why); /* reported there */
    rc = rv__register_file_in(registry, files[0], &opts, &why);
    if (rc == RV_ECLOSED || rc == RV_ENOMEM)
        return rv__fail(err, rc, "%s", why.message);
    if (rc < 0)
        return rv__fail(err, RV_ENOTFOUND,
                        "process %ld drives the store, but cannot load this workflow: %.140s",
                        (long)getpid(), why.message);
    return RV_OK;
}

static int look_at_status(struct rv__call *call, struct rv__run *run)
{
    *(int *)call->arg = rv__public_status(rv__cell_status(run->cell));
    return RV_OK;
}

/* Continue the run if it is in the store already; else start it. */
static int begin_run(struct request *r, struct rv__registry *registry, const char *run_id,
                     rv_run_info *ret, rv_error *err)
{
    const char *workflow = NULL, *input = NULL;
    int64_t limit;
    *ret = (rv_run_info){ .status = RV_RUNNING };
    if (!rv__str_none(r->values[RESUMES]) && rv__str_is(r->values[RESUMES], "true"))
        return rv__call_look(r->engine, run_id, look_at_status, &ret->status, err);
    int rc = take_text(r, WORKFLOW, &workflow, err);
    if (rc == RV_OK)
        rc = take_json(r, INPUT, &input, err);
    if (rc == RV_OK)
        rc = take_concurrency(r, &limit, err);
    if (rc == RV_OK)
        rc = rv__run_in(registry, workflow, input,
                        RV_RUN_OPTS(.run_id = run_id, .max_concurrency = limit,
                                    .violations = &r->violations, .by = r->asker->by),
                        ret, err);
    return rc;
}

static int say_begun(struct request *r, const char *run_id, int status, bool followed)
{
    struct rv__buf frame;
    rv__buf_init(&frame, 1u << 12);
    size_t start = rv__wire_begin(&frame, FRAME_BEGUN);
    if (!rv__str_none(r->values[ID]))
        rv__wire_json(&frame, "id", r->values[ID]);
    rv__wire_text(&frame, "runId", rv__str(run_id));
    rv__wire_text(&frame, "status", rv__str(rv_status_name(status)));
    rv__wire_json(&frame, "followed", rv__str(followed ? "true" : "false"));
    rv__wire_end(&frame, start);
    int rc = r->asker->caller != NULL ? rv__asker_tell(r->asker, &frame) : RV_ECLOSED;
    rv__buf_done(&frame);
    return rc;
}

/* Accept the run, and drive it as long as the other process keeps its connection open. */
static int drive_guest(struct request *r, struct rv__registry *registry, const char *run_id,
                       rv_error *err)
{
    struct rv__registry *its = NULL;
    const char *workflow = NULL;
    rv_run_info info;
    bool followed = false,
         resumes = !rv__str_none(r->values[RESUMES]) && rv__str_is(r->values[RESUMES], "true");
    int left, rc = take_text(r, WORKFLOW, &workflow, err);
    if (rc == RV_OK && workflow == NULL)
        rc = rv__fail(err, RV_EINVAL, "no workflow named");
    if (rc == RV_OK)
        rc = rv__hand_over(registry, workflow, run_id, resumes, &followed, &its, err);
    if (rc < 0) {
        rv__registry_clear(registry); /* nobody else has it */
        return rc;
    }
    if (followed)
        rv__registry_clear(registry);
    rc = begin_run(r, its, run_id, &info, err);
    if (rc == RV_OK && say_begun(r, run_id, info.status, followed) == RV_OK)
        (void)rv_cancel_wait(r->asker->gone, -1);
    if (!followed)
        (void)rv__hand_back_run(r->engine, registry, run_id, 0, GONE_GRACE_MS, &left, NULL);
    rv__registry_unref(its);
    return rc < 0 ? rc : rv__fail(err, RV_ECLOSED, "the caller has disconnected");
}

static int answer_exec(struct request *r, const char *run_id, rv_error *err)
{
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'exec' needs a 'runId'");
    if (atomic_fetch_add(r->asker->waiters, 1) >= r->asker->most) {
        atomic_fetch_sub(r->asker->waiters, 1);
        return rv__fail(err, RV_EBUSY, "%d processes already have runs driven here",
                        r->asker->most);
    }
    struct rv__registry *registry = rv__registry_new(r->engine);
    int rc = registry != NULL ? take_environment(r, registry, err) : rv__nomem(err);
    if (rc == RV_OK)
        rc = allow(r, registry, err);
    if (rc == RV_OK)
        rc = take_secrets(r, registry, err);
    if (rc == RV_OK)
        rc = register_files(r, registry, err);
    if (rc == RV_OK)
        rc = drive_guest(r, registry, run_id, err);
    else if (registry != NULL)
        rv__registry_clear(registry);
    rv__script_hosts_forget(r->engine->services.scripts, registry);
    rv__registry_unref(registry);
    atomic_fetch_sub(r->asker->waiters, 1);
    return rc;
}

static int take_ms(struct request *r, enum key key, int64_t *ret, rv_error *err)
{
    if (rv__str_none(r->values[key]))
        return RV_OK;
    if (rv__json_int(r->values[key], ret) < 0 || *ret < 0 || *ret > INT32_MAX)
        return rv__fail(err, RV_EINVAL, "'%s' is not a number of milliseconds", keys[key]);
    return RV_OK;
}

static int answer_release(struct request *r, const char *run_id, rv_error *err)
{
    int64_t drain_ms = 0, grace_ms = GONE_GRACE_MS;
    int left = 0;
    int rc = take_ms(r, DRAIN, &drain_ms, err);
    if (rc == RV_OK)
        rc = take_ms(r, GRACE, &grace_ms, err);
    if (rc == RV_OK)
        rc = rv__hand_back_run(r->engine, NULL, run_id, drain_ms, grace_ms, &left, err);
    if (rc == RV_OK)
        rv__wire_int(r->out, "left", left);
    return rc;
}

/* Write a member, unless its text is empty. */
static void put_if(struct rv__buf *out, const char *key, const char *text, bool json)
{
    if (text == NULL || *text == '\0')
        return;
    if (json)
        rv__wire_json(out, key, rv__str(text));
    else
        rv__wire_text(out, key, rv__str(text));
}

static void put_outcome(struct rv__buf *out, const rv_outcome *outcome)
{
    rv__buf_text(out, ",\"outcome\":{\"runId\":");
    rv__buf_json_str(out, rv__str(outcome->run_id));
    rv__wire_text(out, "status", rv__str(rv_status_name(outcome->status)));
    rv__wire_json(out, "results", rv__str(outcome->results));
    if (outcome->results_too_large > 0)
        rv__wire_int(out, "resultsTooLarge", outcome->results_too_large);
    put_if(out, "error", outcome->error, true);
    put_if(out, "failedStep", outcome->failed_step, false);
    put_if(out, "failedPath", outcome->failed_path, false);
    rv__buf_char(out, '}');
}

static int answer_state(struct request *r, const char *run_id, rv_error *err)
{
    rv_run_state *state = NULL;
    int rc = rv_state(r->engine, run_id, &state, err);
    if (rc < 0)
        return rc;
    rv__buf_text(r->out, ",\"state\":{\"runId\":");
    rv__buf_json_str(r->out, rv__str(state->run_id));
    rv__wire_text(r->out, "workflow", rv__str(state->workflow));
    rv__wire_text(r->out, "version", rv__str(state->version));
    rv__wire_text(r->out, "status", rv__str(rv_status_name(state->status)));
    rv__wire_int(r->out, "createdAt", state->created_at);
    rv__wire_int(r->out, "startedAt", state->started_at);
    if (state->completed_at > 0)
        rv__wire_int(r->out, "completedAt", state->completed_at);
    rv__wire_int(r->out, "duration", state->duration_ms);
    put_if(r->out, "input", state->input, true);
    put_if(r->out, "results", state->results, true);
    if (state->results_too_large > 0)
        rv__wire_int(r->out, "resultsTooLarge", state->results_too_large);
    put_if(r->out, "error", state->error, true);
    put_if(r->out, "failedStep", state->failed_step, false);
    put_if(r->out, "failedPath", state->failed_path, false);
    put_if(r->out, "suspension", state->suspension, true);
    put_if(r->out, "suspensions", state->suspensions, true);
    rv__buf_char(r->out, '}');
    rv_run_state_free(state);
    return RV_OK;
}

/* The run has ended. The outcome is sent only if it was asked for: others read it from the store. */
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
    if (rv__str_is(r->values[OUTCOME], "true"))
        put_outcome(r->out, outcome);
    rv_outcome_free(outcome);
    return RV_OK;
}

/* Another member has fewer runs, and asks for some of ours. */
static int answer_share(struct request *r, const char *run_id, rv_error *err)
{
    int64_t member = 0, count = 0, given = 0;
    (void)run_id;
    if (rv__json_int(r->values[MEMBER], &member) < 0 ||
        rv__json_int(r->values[COUNT], &count) < 0 || member <= 0 ||
        rv__str_none(r->values[WORKFLOWS]))
        return rv__fail(err, RV_EINVAL, "'share' needs a 'member', a 'count' and 'workflows'");
    int rc = rv__member_share(r->engine, member, r->values[WORKFLOWS], count, &given, err);
    if (rc == RV_OK)
        rv__wire_int(r->out, "given", given);
    return rc;
}

static const struct method {
    const char *name;
    int (*answer)(struct request *r, const char *run_id, rv_error *err);
    bool about_run; /* it needs a run that is driven here */
    bool starts;    /* it starts a run */
} methods[] = {
    { "driver", answer_driver, false, false },       { "run", answer_run, false, true },
    { "cancel", answer_cancel, true, false },        { "signal", answer_signal, true, false },
    { "decide", answer_decide, true, false },        { "complete", answer_complete, true, false },
    { "workflows", answer_workflows, false, false }, { "why", answer_why, true, false },
    { "state", answer_state, true, false },          { "wait", answer_wait, true, false },
    { "exec", answer_exec, false, false },           { "release", answer_release, true, false },
    { "read", answer_read, false, false },           { "share", answer_share, false, false },
};

static int check_driven(rv_engine *e, const struct method *method, const char *run_id,
                        rv_error *err)
{
    if (method->about_run && run_id == NULL)
        return rv__fail(err, RV_EINVAL, "'%s' needs a 'runId'", method->name);
    if (e->only_run[0] == '\0' || (!method->about_run && !method->starts) ||
        (run_id != NULL && rv__engine_drives(e, run_id)))
        return RV_OK;
    return rv__fail(err, RV_EBUSY,
                    "process %ld has the store and drives only run '%.60s': wait for its end "
                    "(rival wait) or stop it, and try again",
                    (long)getpid(), e->only_run);
}

static int answer_call(struct request *r, rv_error *err)
{
    const char *run_id = NULL;
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

/* The frame `error`. */
static void put_error(const struct request *r, const rv_error *err)
{
    struct rv__buf *out = r->out;
    const rv_violations *violations = r->violations;
    size_t start = rv__wire_begin(out, FRAME_ERROR);
    if (!rv__str_none(r->values[ID]))
        rv__wire_json(out, "id", r->values[ID]);
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
    rv__frame_members(frame, keys, r.values, KEYS);
    size_t start = rv__wire_begin(out, FRAME_RESULT);
    if (!rv__str_none(r.values[ID]))
        rv__wire_json(out, "id", r.values[ID]);
    int rc = answer_call(&r, &err);
    if (rc == RV_OK)
        rv__wire_end(out, start);
    if (rc == RV_OK && out->rc < 0)
        rc = rv__fail(&err, out->rc, "the answer: %s", rv_strerror(out->rc));
    if (rc == RV_ECLOSED)
        (void)rv__fail(&err, rc,
                       "process %ld, which drives the store, is ending: try again in a moment",
                       (long)getpid());
    if (rc < 0) {
        rv__buf_reset(out);
        put_error(&r, &err);
    }
    rv_violations_free(r.violations);
    rv__arena_done(&r.arena);
}
