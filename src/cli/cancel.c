/* cancel.c: `rival cancel`: end a run and all that is alive in it. */
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

static int run_cancel(int argc, char **argv)
{
    struct rv__tell tell = { .done = "cancelled" };
    int count = rv__options(&rv__cmd_cancel, argc, argv, &tell);
    return count < 0 ? -count : rv__tell_run(argv[0], &tell, cancel);
}

static const struct rv__option options[] = { RV__OPTION_STORE(struct rv__tell, store),
                                             RV__OPTION_TOLD(struct rv__tell, json),
                                             { NULL } };

const struct rv__command rv__cmd_cancel = {
    .name = "cancel",
    .section = SECTION_TELL,
    .summary = "end a run, and all that is alive in it",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_LIVE_RUN } },
    .options = options,
    .paragraphs = { "A run that has ended is left as it is; what it had detached is cancelled.",
                    "An id may be cut, as long as it is the only one that begins so." },
    .examples = { { "rival cancel order-1" },
                  { "rival cancel 01k7h", "the only run that begins so" } },
    .run = run_cancel,
};
