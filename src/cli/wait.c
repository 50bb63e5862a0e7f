/* wait.c: `rival wait`: waits for the end of a run that another process drives. */
#include <unistd.h>

#include "base/duration.h"
#include "cli/runs.h"
#include "cli/text.h"

struct waiting {
    struct rv__look look;
    const char *timeout;
    rv_cancel *interrupt;
    int64_t timeout_ms;            /* negative: for ever */
    char workflow[RV_RUN_ID_SIZE]; /* or the part of it that fits */
};

static int give_up(const struct rv__look *look, const struct waiting *w)
{
    char message[400], time[RV__DURATION_TEXT];
    rv_error why = { .code = 0 };
    if (rv_cancel_cause(w->interrupt, &why) != 0)
        return rv__cli_fail(CLI_INTERRUPTED, why.message, "the run continues");
    snprintf(message, sizeof message, "run '%s' of workflow '%s' has not ended after %s",
             look->run_id, w->workflow, rv__text_duration(w->timeout_ms, time));
    return rv__cli_fail(CLI_TIMED_OUT, message, "`rival why` says what it waits for");
}

static int print_end(const rv_run_state *ended)
{
    struct rv__buf json;
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the outcome */
    rv__put_outcome(&json, ended);
    int code = rv__print_json(&json);
    if (code == CLI_OK)
        code = rv__exit_code(ended->status);
    rv__buf_done(&json);
    return code;
}

static void say_suspended(const struct rv__look *look)
{
    struct rv__buf where;
    rv__buf_init(&where, 1u << 16);
    rv__where_again(&look->where, &where);
    fprintf(stderr, "it is suspended: rival decide %s resume%s (or abort)\n", look->run_id,
            rv__buf_view(&where).at);
    rv__buf_done(&where);
}

static int wait_for(struct rv__look *look)
{
    struct waiting *w = look->arg;
    rv_run_list *row = NULL;
    rv_run_state *ended = NULL;
    rv_error err;
    if (rv__client_list(look->client, RV_QUERY(.run_id = look->run_id), &row, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    if (row->count == 1 && row->runs[0].status == RV_SUSPENDED && isatty(STDERR_FILENO))
        say_suspended(look);
    if (row->count == 1)
        snprintf(w->workflow, sizeof w->workflow, "%s", row->runs[0].workflow);
    rv_run_list_free(row);
    int rc = rv__client_wait(look->client, look->run_id, w->timeout_ms, w->interrupt, &ended, &err);
    if (rc == RV_ETIMEDOUT || rc == RV_ECANCELED)
        return give_up(look, w);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    int code = print_end(ended);
    rv_run_state_free(ended);
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
    RV__OPTIONS_WHERE(struct waiting, look.where),
    RV__OPTION_JSON(struct waiting, look.json, "no effect: the outcome is always JSON"),
    { NULL },
};

const struct rv__command rv__cmd_wait = {
    .name = "wait",
    .section = SECTION_LOOK,
    .summary = "wait until a run has ended",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_LIVE_RUN } },
    .options = options,
    .paragraphs = { "Prints the outcome as `rival exec` does, and exits with the same code." },
    .examples = { { "rival wait order-1 --timeout 5m | jq .status" } },
    .exits = { { CLI_OK, "completed" },
               { CLI_FAILED, "failed" },
               { CLI_CANCELLED, "cancelled" },
               { CLI_TIMED_OUT, "timed out; the run continues" },
               { CLI_INTERRUPTED, "stopped by Ctrl-C; the run continues" } },
    .run = run_wait,
};
