/* handle.c: `rival complete`: completes a step that waits for an answer, by its handle. */
#include "base/alloc.h"
#include "cli/runs.h"

struct completion {
    struct rv__tell tell;
    const char *handle, *error;
    char *result;
};

static int complete(struct rv__tell *tell, struct rv__client *client, rv_error *err)
{
    const struct completion *c = tell->arg;
    return rv__client_complete(client, tell->run_id, c->handle, c->result, c->error, err);
}

static int run_complete(int argc, char **argv)
{
    struct completion c = { .tell.done = "completed a step of" };
    int count = rv__options(&rv__cmd_complete_handle, argc, argv, &c);
    if (count < 0)
        return -count;
    if (c.error != NULL && count == 3)
        return rv__cli_usage("complete", "a step either has a result or fails: JSON or --error?");
    c.tell.arg = &c;
    c.handle = argv[1];
    if (c.error != NULL)
        c.tell.done = "failed a step of";
    int code = CLI_OK;
    if (count == 3)
        code = rv__read_json("complete", "the result", NULL, argv[2], &c.result);
    if (code == CLI_OK)
        code = rv__tell_run(argv[0], &c.tell, complete);
    rv__free(c.result);
    return code;
}

static const struct rv__option options[] = {
    { "--error", "TEXT", "the step fails with this message", RV__INTO(struct completion, error) },
    RV__OPTIONS_WHERE(struct completion, tell.where),
    RV__OPTION_TOLD(struct completion, tell.json),
    { NULL },
};

const struct rv__command rv__cmd_complete_handle = {
    .name = "complete",
    .section = SECTION_TELL,
    .summary = "complete a step that waits for its result from outside",
    .arguments = { { "ID", "which run, and which handle?", .completes = COMPLETES_LIVE_RUN },
                   { "HANDLE", "which handle? `rival why ID` names it" },
                   { "JSON", .completes = COMPLETES_INPUT } },
    .options = options,
    .paragraphs = { "A step can hand over a handle instead of a result and wait. This command "
                    "delivers it: JSON is the result (default null); @FILE reads it from a file, - "
                    "from stdin. A handle that no step waits for is refused.",
                    "ID is the whole id of the run." },
    .examples = { { "rival complete order-1 payment-77 '{\"paid\": true}'" },
                  { "rival complete order-1 payment-77 --error \"card declined\"" } },
    .run = run_complete,
};
