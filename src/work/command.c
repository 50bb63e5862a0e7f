/* command.c: a `command` step: its evaluated parameters become a program, its end an outcome (SPEC §2).
 *
 * Begun on the evaluator's thread, ended on that of the I/O loop; in between, the step's token tells it
 * to end the program. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    MOST_WORDS =
        100000, /* of a command's argv or environment: the system's own bound is in bytes */
};

static bool take_argv(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__json_iter it;
    struct rv__str list, word;
    size_t count = 0;
    if (!rv__json_get(with, "argv", &list) || rv__json_type(list) != RV__JSON_ARRAY ||
        rv__json_count(list) == 0 || rv__json_count(list) > MOST_WORDS) {
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

/* What it is told of itself, and what the file says. */
static bool take_env(struct rv_ctx *ctx, struct rv__str with)
{
    char attempt[16];
    struct rv__json_iter it;
    struct rv__str map = { NULL, 0 }, key, value, name;
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
    };
    enum { OWN = sizeof own / sizeof *own };
    size_t more = rv__json_get(with, "env", &map) ? rv__json_count(map) : 0, count = 0;
    if (more > MOST_WORDS || (more > 0 && rv__json_type(map) != RV__JSON_OBJECT)) {
        rv_fail(ctx, "the `env` of a command must be a map of names to values");
        return false;
    }
    char **env = rv__arena_zalloc(&ctx->arena, OWN + more + 1, sizeof *env);
    if (env == NULL) {
        rv_fail(ctx, "out of memory");
        return false;
    }
    for (size_t i = 0; i < OWN; i++)
        if (!add_env(ctx, env, &count, own[i].name, rv__str(own[i].value)))
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

/* Relative to the folder of the workflow's file, which is also where it runs by default. */
static bool take_cwd(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str json, cwd = { NULL, 0 };
    struct rv__buf path;
    if (rv__json_get(with, "cwd", &json))
        cwd = rv__ctx_text(ctx, json);
    if (cwd.len == 0) {
        ctx->command.cwd = ctx->directory;
        return true;
    }
    rv__buf_init(&path, RV__PATH_ROOM);
    if (cwd.at[0] != '/' && ctx->directory != NULL) {
        rv__buf_text(&path, ctx->directory);
        rv__buf_char(&path, '/');
    }
    rv__buf_str(&path, cwd);
    if (rv__buf_err(&path, NULL) == RV_OK)
        ctx->command.cwd = rv__ctx_c_text(ctx, rv__buf_view(&path), "the `cwd` of a command");
    else
        rv_fail(ctx, "the `cwd` of a command is too long");
    rv__buf_done(&path);
    return ctx->command.cwd != NULL;
}

static bool take_stdin(struct rv_ctx *ctx, struct rv__str with)
{
    struct rv__str how = { NULL, 0 };
    const char *text;
    if (rv__json_get(with, "stdin", &how))
        how = rv__ctx_text(ctx, how);
    if (rv__str_is(how, "none"))
        return true;
    if (rv__str_none(how))
        text = rv__ctx_brief_json(ctx);
    else if (rv__str_is(how, "context"))
        text = rv_context_json(ctx);
    else {
        rv_fail(ctx, "the `stdin` of a command is `context` or `none`, not %.*s",
                (int)(how.len < 40 ? how.len : 40), how.at);
        return false;
    }
    if (text == NULL) {
        rv_fail(ctx, "its input could not be put together");
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
    static const int behaviors[] = { [RV__STEP_STOP] = RV_ON_STOP,
                                     [RV__STEP_CONTINUE] = RV_ON_CONTINUE,
                                     [RV__STEP_RETRY] = RV_ON_RETRY };
    int backoff = outcome->backoff == RV__BACKOFF_LINEAR        ? RV_LINEAR
                  : outcome->backoff == RV__BACKOFF_EXPONENTIAL ? RV_EXPONENTIAL
                                                                : -1;
    int attempts = outcome->max_attempts > INT32_MAX ? INT32_MAX : (int)outcome->max_attempts;
    if (outcome->behavior == RV__STEP_PLAIN)
        rv_fail(ctx, "%.*s", RV__ARG(outcome->message));
    else
        rv_step_error(ctx, behaviors[outcome->behavior], attempts, backoff, "%.*s",
                      RV__ARG(outcome->message));
}

static void ended(struct rv__command *command, const struct rv__command_result *result)
{
    struct rv_ctx *ctx = RV__CONTAINER(command, struct rv_ctx, command);
    struct rv__outcome outcome;
    rv_error err;
    rv__io_ended(ctx);
    int rc = rv__command_outcome(result, command->argv[0], ctx->output_as, &ctx->arena, &outcome,
                                 &err);
    if (rc < 0) {
        rv_fail(ctx, "%s", err.message);
    } else {
        take_state(ctx, &outcome);
        if (outcome.code < 0) {
            fail_as(ctx, &outcome);
        } else {
            bool fits = outcome.result.len <= RV__JSON_MAX_BYTES; /* escapes add to it */
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

static int start(struct rv_ctx *ctx)
{
    return rv__command_start(ctx->shop->io, &ctx->command);
}

static void stop(struct rv_ctx *ctx)
{
    rv__command_kill(ctx->shop->io, &ctx->command, RV__KILL_CANCEL);
}

void rv__command_begin(struct rv_ctx *ctx, struct rv__str with)
{
    ctx->command = (struct rv__command){ .stderr_line = said, .done = ended };
    take_output(ctx, with);
    if (take_argv(ctx, with) && take_env(ctx, with) && take_cwd(ctx, with) && take_stdin(ctx, with))
        rv__io_begin(ctx, "command", start, stop);
    else
        rv__work_finish(ctx);
}
