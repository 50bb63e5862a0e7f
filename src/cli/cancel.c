/* cancel.c: `rival cancel`: end a run and all that is alive in it. */
#include "cli/options.h"
#include "cli/runs.h"

static int cancel(struct rv__tell *tell, rv_engine *engine, rv_error *err)
{
    rv_run_state *state = NULL;
    int rc = rv_cancel_run(engine, tell->run_id, err);
    if (rc == RV_OK)
        rc = rv_state(engine, tell->run_id, &state, err);
    if (rc == RV_OK && state->status != RV_CANCELLED) /* it had ended before */
        tell->done = state->status == RV_COMPLETED ? "already completed:" : "already failed:";
    rv_run_state_free(state);
    return rc;
}

int rv__cmd_cancel(int argc, char **argv)
{
    struct rv__tell tell = { .store = RV__CLI_STORE, .done = "cancelled" };
    const struct rv__option options[] = { { "--store", .text = &tell.store },
                                          { "--json", .flag = &tell.json },
                                          { NULL } };
    int count = rv__options_args("cancel", argc, argv, options, 1, 1, "which run?");
    return count < 0 ? -count : rv__tell_run(argv[0], &tell, cancel);
}
