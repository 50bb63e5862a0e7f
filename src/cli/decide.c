/* decide.c: `rival decide`: what becomes of a suspended run. */
#include "cli/runs.h"

struct decision {
    struct rv__tell tell;
    int what;
    const char *reason;
};

static int decide(struct rv__tell *tell, struct rv__client *client, rv_error *err)
{
    const struct decision *decision = tell->arg;
    return rv__client_decide(client, tell->run_id, decision->what, decision->reason, err);
}

static const char *const words[] = { "resume", "abort", "skip", "restart_stage", NULL };

static int run_decide(int argc, char **argv)
{
    struct decision decision = { .reason = NULL };
    struct rv__tell *tell = &decision.tell;
    int count = rv__options(&rv__cmd_decide, argc, argv, &decision);
    if (count < 0)
        return -count;
    decision.what = rv__option_choice("decide", "decision", argv[1], words);
    if (decision.what > RV_ABORT)
        return rv__cli_usage(
            "decide", "'%s' is not available yet: it is for the states of a manifest", argv[1]);
    tell->arg = &decision;
    tell->done = decision.what == RV_RESUME ? "resumed" : "aborted";
    return rv__tell_run(argv[0], tell, decide);
}

static const struct rv__option options[] = {
    { "--reason", "TEXT", "recorded; with abort, the error of the run",
      RV__INTO(struct decision, reason) },
    RV__OPTIONS_WHERE(struct decision, tell.where),
    RV__OPTION_TOLD(struct decision, tell.json),
    { NULL },
};

const struct rv__command rv__cmd_decide = {
    .name = "decide",
    .section = SECTION_TELL,
    .summary = "resume or abort a suspended run",
    .arguments = { { "ID", "which run, and resume or abort?", .completes = COMPLETES_LIVE_RUN },
                   { "resume|abort", "resume or abort?", .choices = words } },
    .options = options,
    .paragraphs = { "`resume` continues the run with fresh attempts. `abort` fails it. ID is the "
                    "whole id of the run.",
                    "`rival why ID` says why it is suspended." },
    .examples = { { "rival decide order-1 resume" },
                  { "rival decide order-1 abort --reason \"the customer has gone\"" } },
    .run = run_decide,
};
