/* cancel.c: `rival cancel`: ends a run and everything active in it. */
#include "cli/runs.h"

static int cancel(struct rv__tell *tell, struct rv__client *client, rv_error *err)
{
    rv_run_list *row = NULL;
    int rc = rv__client_cancel(client, tell->run_id, err);
    if (rc == RV_OK)
        rc = rv__client_list(client, RV_QUERY(.run_id = tell->run_id), &row, err);
    int status = rc == RV_OK && row->count == 1 ? row->runs[0].status : RV_CANCELLED;
    if (status == RV_COMPLETED || status == RV_FAILED) /* it had already ended */
        tell->done = status == RV_COMPLETED ? "already completed:" : "already failed:";
    else if (status != RV_CANCELLED)
        tell->done = "being cancelled: its 'finally' runs (cancel it again to skip that):";
    rv_run_list_free(row);
    return rc;
}

static int run_cancel(int argc, char **argv)
{
    struct rv__tell tell = { .done = "cancelled" };
    int count = rv__options(&rv__cmd_cancel, argc, argv, &tell);
    return count < 0 ? -count : rv__tell_run(argv[0], &tell, cancel);
}

static const struct rv__option options[] = { RV__OPTIONS_WHERE(struct rv__tell, where),
                                             RV__OPTION_TOLD(struct rv__tell, json),
                                             { NULL } };

const struct rv__command rv__cmd_cancel = {
    .name = "cancel",
    .section = SECTION_TELL,
    .summary = "cancel a run and all its running steps",
    .arguments = { { "ID", "which run?", .completes = COMPLETES_LIVE_RUN } },
    .options = options,
    .paragraphs = { "A run that has ended keeps its status; steps it detached are cancelled.",
                    "If the workflow has a 'finally', the run stays running until that has run. "
                    "Cancelling it a second time ends the 'finally' too.",
                    "ID is the whole id of the run." },
    .examples = { { "rival cancel order-1" } },
    .run = run_cancel,
};
