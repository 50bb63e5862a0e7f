/* signal.c: `rival signal`: a message to a run, for the step that waits for it or will. */
#include "base/alloc.h"
#include "cli/options.h"
#include "cli/runs.h"

struct message {
    const char *name;
    char *payload;
};

static int send_signal(struct rv__tell *tell, rv_engine *engine, rv_error *err)
{
    const struct message *message = tell->arg;
    return rv_signal(engine, tell->run_id, message->name, message->payload, err);
}

int rv__cmd_signal(int argc, char **argv)
{
    struct message message = { .payload = NULL };
    struct rv__tell tell = { .store = RV__CLI_STORE, .done = "signalled", .arg = &message };
    const struct rv__option options[] = { { "--store", .text = &tell.store },
                                          { "--json", .flag = &tell.json },
                                          { NULL } };
    int count = rv__options_args("signal", argc, argv, options, 2, 3,
                                 "which run, and which signal?");
    if (count < 0)
        return -count;
    message.name = argv[1];
    int code = count == 3 ? rv__read_input("signal", argv[2], &message.payload) : CLI_OK;
    if (code == CLI_OK)
        code = rv__tell_run(argv[0], &tell, send_signal);
    rv__free(message.payload);
    return code;
}
