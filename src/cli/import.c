/* import.c: `rival import`: take over a run that `rival export` wrote. */
#include <string.h>

#include "cli/runs.h"

static long from_stdin(void *arg, char *into, size_t room)
{
    (void)arg;
    size_t n = fread(into, 1, room, stdin);
    return ferror(stdin) ? -1 : (long)n;
}

static const char *hint_for(int rc)
{
    switch (rc) {
    case RV_EEXIST: return "a run keeps its id: import it into another store (--store)";
    case RV_EPARSE: return "export it again, and see that all of it arrives";
    default: return NULL;
    }
}

struct importing {
    const char *store;
    bool json;
};

static int run_import(int argc, char **argv)
{
    struct importing x = { .json = false };
    rv_run_info info;
    rv_error err;
    int count = rv__options(&rv__cmd_import, argc, argv, &x);
    if (count < 0)
        return -count;
    bool piped = strcmp(argv[0], "-") == 0;
    rv_engine *engine = rv__store_to_hold(x.store);
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_import(
        engine, RV_IMPORT_OPTS(.path = piped ? NULL : argv[0], .read = piped ? from_stdin : NULL),
        &info, &err);
    rv_engine_free(engine);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, hint_for(rc));
    printf(x.json ? "{\"runId\":\"%s\",\"status\":\"%s\"}\n" : "imported %s (%s)\n", info.run_id,
           rv_status_name(info.status));
    return CLI_OK;
}

static const struct rv__option options[] = { RV__OPTION_STORE(struct importing, store),
                                             RV__OPTION_TOLD(struct importing, json),
                                             { NULL } };

const struct rv__command rv__cmd_import = {
    .name = "import",
    .section = SECTION_STORE,
    .summary = "take over a run that was exported",
    .arguments = { { "FILE", "which file?", .completes = COMPLETES_FILE } },
    .options = options,
    .paragraphs = { "All of it or nothing: a file that is cut or altered is refused, and so is a "
                    "run "
                    "whose id the store has already. FILE may be - for stdin. The store is made if "
                    "it is "
                    "not there.",
                    "The run keeps its id, and goes on when a process drives the store: `rival "
                    "serve`, or "
                    "`rival exec` with its workflow and `--run-id`." },
    .examples = { { "rival import order-1.jsonl --store other.db" },
                  { "rival export order-1 | ssh host rival import -" } },
    .run = run_import,
};
