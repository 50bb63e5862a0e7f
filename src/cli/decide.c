/* decide.c: `rival decide`: what becomes of a suspended run. */
#include "cli/options.h"
#include "cli/runs.h"

struct decision {
    int what;
    const char *reason;
};

static int decide(struct rv__tell *tell, rv_engine *engine, rv_error *err)
{
    const struct decision *decision = tell->arg;
    return rv_decide(engine, tell->run_id, decision->what, decision->reason, err);
}

int rv__cmd_decide(int argc, char **argv)
{
    static const char *const words[] = { "resume", "abort", "skip", "restart_stage", NULL };
    struct decision decision = { .reason = NULL };
    struct rv__tell tell = { .store = RV__CLI_STORE, .arg = &decision };
    const struct rv__option options[] = { { "--store", .text = &tell.store },
                                          { "--reason", .text = &decision.reason },
                                          { "--json", .flag = &tell.json },
                                          { NULL } };
    int count = rv__options_args("decide", argc, argv, options, 2, 2,
                                 "which run, and resume or abort?");
    if (count < 0)
        return -count;
    decision.what = rv__option_choice("decide", "decision", argv[1], words);
    if (decision.what < 0)
        return CLI_USAGE;
    if (decision.what > RV_ABORT)
        return rv__cli_usage("decide",
                             "'%s' is for the states of a manifest, which this version does "
                             "not run yet",
                             argv[1]);
    tell.done = decision.what == RV_RESUME ? "resumed" : "aborted";
    return rv__tell_run(argv[0], &tell, decide);
}
