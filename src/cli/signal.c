/* signal.c: `rival signal`: sends a signal to a run, for a step that waits for it now or later. */
#include "base/alloc.h"
#include "cli/runs.h"

struct message {
    struct rv__tell tell;
    const char *name;
    char *payload;
    bool force;
};

static int send_signal(struct rv__tell *tell, struct rv__client *client, rv_error *err)
{
    const struct message *message = tell->arg;
    return rv__client_signal(client, tell->run_id, message->name, message->payload, message->force,
                             err);
}

static int run_signal(int argc, char **argv)
{
    struct message message = { .tell = { .done = "signalled", .arg = &message } };
    int count = rv__options(&rv__cmd_signal, argc, argv, &message);
    if (count < 0)
        return -count;
    message.name = argv[1];
    int code = CLI_OK;
    if (count == 3)
        code = rv__read_json("signal", "the signal's payload", NULL, argv[2], &message.payload);
    if (code == CLI_OK)
        code = rv__tell_run(argv[0], &message.tell, send_signal);
    rv__free(message.payload);
    return code;
}

static const struct rv__option options[] = {
    { "--force", NULL, "keep the signal even if no step of the run waits for this name",
      RV__INTO(struct message, force) },
    RV__OPTIONS_WHERE(struct message, tell.where),
    RV__OPTION_TOLD(struct message, tell.json),
    { NULL },
};

const struct rv__command rv__cmd_signal = {
    .name = "signal",
    .section = SECTION_TELL,
    .summary = "send a signal to a run",
    .arguments = { { "ID", "which run, and which signal?", .completes = COMPLETES_LIVE_RUN },
                   { "NAME", "which signal?" },
                   { "JSON", .completes = COMPLETES_INPUT } },
    .options = options,
    .paragraphs = { "The signal is kept until a step takes it. JSON becomes the result of that "
                    "step (default null); @FILE reads it from a file, - from stdin. ID is the "
                    "whole id of the run.",
                    "A name that no step of the run waits for is refused, with the names there "
                    "are." },
    .examples = { { "rival signal order-1 approved '{\"by\": \"kim\"}'" },
                  { "rival signal order-1 papers @papers.json" } },
    .run = run_signal,
};
