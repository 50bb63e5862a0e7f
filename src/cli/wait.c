/* wait.c: `rival wait`: until a run that another process drives has ended. */
#include <unistd.h>

#include "base/duration.h"
#include "cli/runs.h"
#include "cli/text.h"

struct waiting {
    struct rv__look look;
    const char *timeout;
    rv_cancel *interrupt;
    int64_t timeout_ms; /* negative: for ever */
};

static int give_up(const struct rv__look *look, const struct waiting *w)
{
    char message[300], time[RV__DURATION_TEXT];
    rv_error why = { .code = 0 };
    if (rv_cancel_cause(w->interrupt, &why) != 0)
        return rv__cli_fail(CLI_INTERRUPTED, why.message, "the run is not touched by that");
    snprintf(message, sizeof message, "run '%s' has not ended after %s", look->run_id,
             rv__text_duration(w->timeout_ms, time));
    return rv__cli_fail(CLI_FAILED, message, "`rival why` says what it waits for");
}

static int print_end(const rv_outcome *outcome)
{
    struct rv__buf json;
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the outcome */
    rv__outcome_json(&json, outcome);
    int code = rv__print_json(&json);
    if (code == CLI_OK)
        code = rv__exit_code(outcome->status);
    rv__buf_done(&json);
    return code;
}

static int wait_for(struct rv__look *look)
{
    struct waiting *w = look->arg;
    rv_run_state *state = NULL;
    rv_outcome *outcome = NULL;
    rv_error err;
    if (rv_state(look->engine, look->run_id, &state, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    if (state->status == RV_SUSPENDED && isatty(STDERR_FILENO))
        fprintf(stderr, "it is suspended: rival decide %s resume|abort\n", look->run_id);
    rv_run_state_free(state);
    int64_t timeout_ms = w->timeout_ms == 0 ? 1 : w->timeout_ms; /* 0 would be a default */
    int rc = rv_wait(look->engine, NULL, look->run_id,
                     RV_WAIT_OPTS(.timeout_ms = timeout_ms, .by = w->interrupt), &outcome, &err);
    if (rc == RV_ETIMEDOUT || rc == RV_ECANCELED)
        return give_up(look, w);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = print_end(outcome);
    rv_outcome_free(outcome);
    return code;
}

static int run_wait(int argc, char **argv)
{
    struct waiting w = { .timeout_ms = -1 };
    int count = rv__options(&rv__cmd_wait, argc, argv, &w);
    if (count < 0)
        return -count;
    if (w.timeout != NULL && rv__duration_ms(rv__str(w.timeout), &w.timeout_ms) < 0)
        return rv__cli_usage("wait", "--timeout '%s' is not a duration like 30s, 5m, 1h",
                             w.timeout);
    w.interrupt = rv__cli_interrupt();
    if (w.interrupt == NULL)
        return CLI_FAILED;
    w.look.arg = &w;
    w.look.asks = true;
    return rv__look_at_run(&w.look, count, argv, wait_for);
}

static const struct rv__option options[] = {
    { "--timeout", "DURATION", "give up after: 30s, 5m (never)",
      RV__INTO(struct waiting, timeout) },
    RV__OPTION_STORE(struct waiting, look.store),
    RV__OPTION_JSON(struct waiting, look.json, "the outcome is JSON in any case"),
    { NULL },
};

const struct rv__command rv__cmd_wait = {
    .name = "wait",
    .section = SECTION_LOOK,
    .summary = "wait until a run has ended",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_LIVE_RUN } },
    .options = options,
    .paragraphs = { "Prints the outcome as `rival exec` does, and exits with its code." },
    .examples = { { "rival wait order-1 --timeout 5m | jq .status" } },
    .exits = { { CLI_OK, "completed" },
               { CLI_FAILED, "failed, or given up" },
               { CLI_CANCELLED, "cancelled" },
               { CLI_INTERRUPTED, "stopped by Ctrl-C; the run is not touched by that" } },
    .run = run_wait,
};
