/* command.c: a `command` step: runs a program with the evaluated parameters, and turns its end into an outcome
 * (SPEC §2).
 *
 * Begins on the evaluator's thread, ends on that of the I/O loop. The step's cancel token ends the program. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    MOST_WORDS =
        100000, /* limit of words in argv or in the environment: the system's own limit is in bytes */
};

static bool take_argv(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__json_iter it;
    struct rv__str list, word;
    size_t count = 0;
    if (!rv__json_get(with, "argv", &list) || rv__json_type(list) != RV__JSON_ARRAY ||
        rv__json_count(list) == 0 || rv__json_count(list) > MOST_WORDS) {
        with = rv__ctx_hidden(ctx, with, false);
        rv_fail(ctx, "a command must be a list, the program and its arguments; it came to %.*s",
                (int)(with.len < 80 ? with.len : 80), with.at);
        return false;
    }
    char **argv = rv__arena_zalloc(&ctx->arena, rv__json_count(list) + 1, sizeof *argv);
    if (argv == NULL) {
        rv_fail(ctx, "out of memory");
        return false;
    }
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &word)) {
        argv[count] = rv__ctx_c_text(ctx, rv__ctx_text(ctx, word), "an argument of a command");
        if (argv[count++] == NULL)
            return false;
    }
    ctx->command.argv = (const char *const *)argv;
    return true;
}

static bool add_env(struct rv_ctx *ctx, char **env, size_t *count, const char *name,
                    struct rv__str value)
{
    struct rv__buf pair;
    rv__buf_init(&pair, RV__JSON_MAX_BYTES);
    rv__buf_text(&pair, name);
    rv__buf_char(&pair, '=');
    rv__buf_str(&pair, value);
    env[*count] = rv__buf_err(&pair, NULL) == RV_OK
                      ? rv__ctx_c_text(ctx, rv__buf_view(&pair), "the environment of a command")
                      : NULL;
    rv__buf_done(&pair);
    return env[(*count)++] != NULL;
}

/* Make its environment: variables that describe the attempt, and those of the file. */
static bool take_env(struct rv_ctx *ctx, struct rv__str with)
{
    char attempt[16];
    struct rv__json_iter it;
    struct rv__str map = { NULL, 0 }, key, value, name;
    const char *url = atomic_load(&ctx->services->url), *store = ctx->services->store_name;
    snprintf(attempt, sizeof attempt, "%d", rv_ctx_attempt(ctx));
    const struct {
        const char *name, *value;
    } own[] = {
        { "RIVAL_RUN_ID", rv_ctx_run_id(ctx) },
        { "RIVAL_WORKFLOW", rv_ctx_workflow(ctx) },
        { "RIVAL_STEP", rv_ctx_step(ctx) },
        { "RIVAL_PATH", rv_ctx_path(ctx) },
        { "RIVAL_ATTEMPT", attempt },
        { "RIVAL_IDEMPOTENCY_KEY", rv_ctx_idempotency_key(ctx) },
        /* It reads its run with its own token, whatever this process has in its environment. */
        { "RIVAL_TOKEN", ctx->pass[0] != '\0' ? ctx->pass : NULL },
        { "RIVAL_URL", ctx->pass[0] != '\0' ? url != NULL ? url : "" : NULL },
        { "RIVAL_STORE", ctx->pass[0] != '\0' ? store != NULL && url == NULL ? store : "" : NULL },
    };
    enum { OWN = sizeof own / sizeof *own };
    size_t more = rv__json_get(with, "env", &map) ? rv__json_count(map) : 0, count = 0;
    if (more > MOST_WORDS || (more > 0 && rv__json_type(map) != RV__JSON_OBJECT)) {
        rv_fail(ctx, "the `env` of a command must be a map of names to values");
        return false;
    }
    char **env = rv__arena_zalloc(&ctx->arena, OWN + more + 1, sizeof *env);
    if (env == NULL || ctx->unread != RV_OK) {
        rv_fail(ctx, "out of memory");
        return false;
    }
    for (size_t i = 0; i < OWN; i++)
        if (own[i].value != NULL && !add_env(ctx, env, &count, own[i].name, rv__str(own[i].value)))
            return false;
    if (more > 0)
        rv__json_iter_init(&it, map);
    while (more > 0 && rv__json_next(&it, &key, &value)) {
        const char *word = rv__json_string(key, &ctx->arena, &name) == RV_OK
                               ? rv__ctx_c_text(ctx, name, "a name in the environment of a command")
                               : NULL;
        if (word == NULL || !add_env(ctx, env, &count, word, rv__ctx_text(ctx, value)))
            return false;
    }
    ctx->command.env = (const char *const *)env;
    return true;
}

/* The folder in which it runs. A relative path starts at the folder of the workflow's file, which is also the
 * default. */
static bool take_cwd(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, cwd = { NULL, 0 };
    if (rv__json_get(with, "cwd", &json))
        cwd = rv__ctx_text(ctx, json);
    if (cwd.len == 0) {
        ctx->command.cwd = ctx->directory;
        return true;
    }
    ctx->command.cwd = rv__ctx_path(ctx, cwd, "the `cwd` of a command");
    return ctx->command.cwd != NULL;
}

/* Take a value as standard input: text as it is, anything else as JSON. It is copied, because the parameters are
 * freed before it is written. */
static bool take_stdin_value(struct rv_ctx *ctx, struct rv__str value)
{
    if (rv__str_copy(&ctx->arena, rv__ctx_text(ctx, value), &ctx->command.input) == RV_OK)
        return true;
    rv_fail(ctx, "out of memory");
    return false;
}

/* `none` and the like have a meaning only in the file: an expression that evaluates to "none" means that text. */
static bool take_stdin(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str value, said = { NULL, 0 };
    const char *text;
    bool has = rv__json_get(with, "stdin", &value) &&
               rv__json_get(ctx->view.node->step.with, "stdin", &said);
    if (has && rv__json_string_is(said, rv__str("none")))
        return true;
    bool context = has && rv__json_string_is(said, rv__str("context"));
    if (has && !context) {
        rv__ctx_given(ctx, "stdin", value);
        return take_stdin_value(ctx, value);
    }
    rv__ctx_given_context(ctx);
    text = context ? rv__ctx_full_json(ctx) : rv__ctx_brief_json(ctx);
    if (text == NULL) {
        rv_fail(ctx, "its input could not be built");
        return false;
    }
    ctx->command.input = rv__str(text);
    return true;
}

static void take_output(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str how;
    ctx->output_as = RV__OUTPUT_AUTO;
    if (!rv__json_get(with, "output", &how))
        return;
    how = rv__ctx_text(ctx, how);
    if (rv__str_is(how, "json"))
        ctx->output_as = RV__OUTPUT_JSON;
    else if (rv__str_is(how, "text"))
        ctx->output_as = RV__OUTPUT_TEXT;
    else if (rv__str_is(how, "base64"))
        ctx->output_as = RV__OUTPUT_BASE64;
    else if (rv__str_is(how, "none"))
        ctx->output_as = RV__OUTPUT_NONE;
}

/* -------------------------------------------------------------------------------- the end --- */

static void said(struct rv__command *command, struct rv__str line)
{
    struct rv_ctx *ctx = RV__CONTAINER(command, struct rv_ctx, command);
    rv_log_info(ctx, "%.*s", RV__ARG(line));
}

static void take_state(struct rv_ctx *ctx, const struct rv__outcome *outcome)
{
    struct rv__json_iter it;
    struct rv__str key, value, name;
    bool has_state = !rv__str_none(outcome->state);
    if (has_state)
        rv__json_iter_init(&it, outcome->state);
    while (has_state && rv__json_next(&it, &key, &value)) {
        const char *word = rv__json_string(key, &ctx->arena, &name) == RV_OK
                               ? rv__ctx_c_text(ctx, name, "a name in the state of a command")
                               : NULL;
        const char *json = rv__arena_dup(&ctx->arena, value.at, value.len);
        if (word != NULL && json != NULL)
            (void)rv_set_state(ctx, word, json); /* checked when the control file was read */
    }
    if (!rv__str_none(outcome->description))
        rv_describe(ctx, "%.*s", RV__ARG(outcome->description));
}

static void fail_as(struct rv_ctx *ctx, const struct rv__outcome *outcome)
{
    int backoff = outcome->backoff == RV__BACKOFF_LINEAR        ? RV_LINEAR
                  : outcome->backoff == RV__BACKOFF_EXPONENTIAL ? RV_EXPONENTIAL
                                                                : 0;
    int attempts = outcome->max_attempts > INT32_MAX ? INT32_MAX : (int)outcome->max_attempts;
    switch (outcome->behavior) {
    case RV__STEP_PLAIN: rv_fail(ctx, "%.*s", RV__ARG(outcome->message)); break;
    case RV__STEP_STOP: rv_stop(ctx, "%.*s", RV__ARG(outcome->message)); break;
    case RV__STEP_CONTINUE: rv_continue(ctx, "%.*s", RV__ARG(outcome->message)); break;
    case RV__STEP_RETRY:
        rv_retry(ctx, RV_RETRY_OPTS(.max_attempts = attempts, .backoff = backoff), "%.*s",
                 RV__ARG(outcome->message));
        break;
    }
    if (outcome->word != NULL)
        rv__ctx_error_code(ctx, outcome->word);
    if (outcome->exit_code > 0)
        rv__ctx_exit_code(ctx, outcome->exit_code);
}

static void ended(struct rv__command *command, const struct rv__command_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(command, struct rv_ctx, command);
    struct rv__outcome outcome;
    rv_error err;
    rv__io_ended(ctx);
    struct rv__command_result hidden = *result; /* secrets are masked before messages are cut */
    hidden.control = rv__ctx_hidden(ctx, result->control, false);
    int rc = rv__command_outcome(&hidden, command->argv[0], ctx->output_as, &ctx->arena, &outcome,
                                 &err);
    if (rc < 0) {
        rv_fail(ctx, "%s", err.message);
    } else {
        take_state(ctx, &outcome);
        if (outcome.code < 0) {
            fail_as(ctx, &outcome);
        } else if (ctx->save != NULL && !outcome.skipped) {
            rv__ctx_check_state(ctx);
            if (ctx->outcome != MSG_FAILED) {
                rv__save_end(ctx);
                return;
            }
        } else {
            bool fits = outcome.result.len <= RV__JSON_MAX_BYTES; /* escapes make it longer */
            struct rv__blob *value = fits ? rv__blob_new(outcome.result) : NULL;
            rv__blob_unref(ctx->result);
            ctx->result = value;
            ctx->outcome = MSG_DONE;
            if (!fits)
                rv_fail(ctx, "the result has %zu bytes: at most %u are allowed", outcome.result.len,
                        RV__JSON_MAX_BYTES);
            else if (value == NULL)
                rv_fail(ctx, "out of memory");
            else if (outcome.skipped)
                (void)rv_skip(ctx);
            rv__ctx_check_state(ctx);
        }
    }
    rv__work_finish(ctx);
}

static void begun(struct rv__command *command)
{
    struct rv_ctx *ctx = RV__CONTAINER(command, struct rv_ctx, command);
    ctx->work.begun(&ctx->work);
}

static int start(struct rv_ctx *ctx)
{
    return rv__command_start(ctx->services->io, &ctx->command);
}

static void stop(struct rv_ctx *ctx)
{
    rv__command_kill(ctx->services->io, &ctx->command, RV__KILL_CANCEL);
}

static void prepare(struct rv_ctx *ctx)
{
    ctx->command = (struct rv__command){ .stderr_line = said,
                                         .begun = begun,
                                         .done = ended,
                                         .inherited = ctx->environment,
                                         .mask = rv__secrets_mask(ctx->secrets) };
}

void rv__command_run(struct rv_ctx *ctx, const char *const *argv, const char *cwd,
                     struct rv__str input, int64_t timeout_ms)
{
    prepare(ctx);
    ctx->output_as = RV__OUTPUT_TEXT;
    ctx->command.argv = argv;
    ctx->command.cwd = cwd;
    ctx->command.input = input;
    ctx->command.timeout_ms = timeout_ms;
    if (take_env(ctx, rv__str("{}")))
        rv__io_begin(ctx, "command", start, stop);
    else
        rv__work_finish(ctx);
}

void rv__command_begin(struct rv_ctx *ctx, struct rv__str with)
{
    static const char *const told[] = { "argv", "cwd", "env" };
    struct rv__str value;
    prepare(ctx);
    take_output(ctx, with);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (rv__json_get(with, told[i], &value))
            rv__ctx_given(ctx, told[i], value);
    bool good = take_argv(ctx, with) && take_env(ctx, with) && take_cwd(ctx, with) &&
                take_stdin(ctx, with) && rv__save_begin(ctx, with, "a command");
    if (good && ctx->save != NULL) {
        ctx->command.output_file = &ctx->save->file.file;
        ctx->output_as = RV__OUTPUT_NONE;
    }
    if (good)
        rv__io_begin(ctx, "command", start, stop);
    else
        rv__work_finish(ctx);
}
