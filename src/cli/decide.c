/* decide.c: `rival decide`: decides how a suspended run continues. */
#include "cli/runs.h"

struct decision {
    struct rv__tell tell;
    int what;
    const char *path, *reason;
};

static int decide(struct rv__tell *tell, struct rv__client *client, rv_error *err)
{
    const struct decision *decision = tell->arg;
    return rv__client_decide(client, tell->run_id, decision->what,
                             RV_DECIDE_OPTS(.path = decision->path, .reason = decision->reason),
                             err);
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
    static const char *const done[] = { "resumed", "aborted", "skipped", "restarted" };
    tell->arg = &decision;
    tell->done = done[decision.what];
    return rv__tell_run(argv[0], tell, decide);
}

static const struct rv__option options[] = {
    { "--path", "PATH", "which suspension; required if there are several",
      RV__INTO(struct decision, path) },
    { "--reason", "TEXT",
      "recorded, with the cause of the suspension; with abort, the error of the run",
      RV__INTO(struct decision, reason) },
    RV__OPTIONS_WHERE(struct decision, tell.where),
    RV__OPTION_TOLD(struct decision, tell.json),
    { NULL },
};

const struct rv__command rv__cmd_decide = {
    .name = "decide",
    .section = SECTION_TELL,
    .summary = "decide what happens to a suspended run",
    .arguments = { { "ID", "which run, and which decision?", .completes = COMPLETES_LIVE_RUN },
                   { "resume|skip|abort|restart_stage",
                     "which decision: resume, skip, abort or restart_stage?", .choices = words } },
    .options = options,
    .paragraphs = { "`resume` continues with new attempts. `abort` fails the run. Only for "
                    "critical "
                    "states of a manifest: `skip` records the state as failed, and its stage goes "
                    "on; states that depend on it get the error. `restart_stage` runs its stage "
                    "again. ID is the whole id of the run.",
                    "`rival why ID` says why it is suspended. If several states wait for a "
                    "decision, --path says which one is meant. Nothing else starts until all are "
                    "decided." },
    .examples = { { "rival decide order-1 resume" },
                  { "rival decide order-1 abort --reason \"the customer has gone\"" },
                  { "rival decide report-7 skip --path triage:gather" } },
    .run = run_decide,
};
