/* wait.c: `rival wait`: until a run that another process drives has ended. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/runs.h"
#include "cli/text.h"

enum { POLL_MS = 250 }; /* the other process does not tell us: the store is looked at */

struct waiting {
    struct rv__look look;
    const char *timeout;
    rv_cancel *interrupt;
    int64_t timeout_ms; /* negative: for ever */
};

/* Has it ended? Reads what is new in its feed. */
static bool has_ended(rv_feed *feed)
{
    rv_event event;
    while (rv_feed_next(feed, 0, NULL, &event, NULL) == RV_OK)
        if (strcmp(event.kind, "run.completed") == 0 || strcmp(event.kind, "run.failed") == 0 ||
            strcmp(event.kind, "run.cancelled") == 0)
            return true;
    return false;
}

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

static int print_end(struct rv__look *look)
{
    rv_outcome *outcome = NULL;
    struct rv__buf json;
    rv_error err;
    if (rv_wait(look->engine, NULL, look->run_id, NULL, &outcome, &err) < 0)
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    rv__buf_init(&json, SIZE_MAX / 8); /* bounded by the outcome */
    rv__outcome_json(&json, outcome);
    int code = rv__print_json(&json);
    if (code == CLI_OK)
        code = rv__exit_code(outcome->status);
    rv__buf_done(&json);
    rv_outcome_free(outcome);
    return code;
}

static int wait_for(struct rv__look *look)
{
    struct waiting *w = look->arg;
    rv_feed *feed = NULL;
    rv_run_state *state = NULL;
    rv_error err;
    int64_t began_ms = rv__mono_ms(rv__clock_real());
    int rc = rv_feed_open(look->engine, RV_FEED_OPTS(.run_id = look->run_id, .no_logs = true),
                          &feed, &err);
    if (rc == RV_OK)
        rc = rv_state(look->engine, look->run_id, &state, &err);
    if (rc < 0 || state == NULL) { /* it comes with RV_OK */
        rv_feed_close(feed);
        return rv__cli_fail(CLI_FAILED, err.message, NULL);
    }
    bool ended = state->status != RV_RUNNING && state->status != RV_SUSPENDED;
    if (state->status == RV_SUSPENDED && isatty(STDERR_FILENO))
        fprintf(stderr, "it is suspended: rival decide %s resume|abort\n", look->run_id);
    rv_run_state_free(state);
    int code = CLI_OK;
    while (!ended && code == CLI_OK) {
        int64_t left_ms = w->timeout_ms - (rv__mono_ms(rv__clock_real()) - began_ms);
        if (rv_cancel_fired(w->interrupt) || (w->timeout_ms >= 0 && left_ms <= 0))
            code = give_up(look, w);
        else if (!(ended = has_ended(feed)))
            (void)rv_cancel_wait(w->interrupt,
                                 w->timeout_ms >= 0 && left_ms < POLL_MS ? left_ms : POLL_MS);
    }
    rv_feed_close(feed);
    return ended ? print_end(look) : code;
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
