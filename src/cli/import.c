/* import.c: `rival import`: take over a run that `rival export` wrote. */
#include <string.h>

#include "cli/options.h"
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

int rv__cmd_import(int argc, char **argv)
{
    const char *store = RV__CLI_STORE;
    bool json = false;
    rv_run_info info;
    rv_error err;
    const struct rv__option options[] = { { "--store", .text = &store },
                                          { "--json", .flag = &json },
                                          { NULL } };
    int count = rv__options_args("import", argc, argv, options, 1, 1, "which file?");
    if (count < 0)
        return -count;
    bool piped = strcmp(argv[0], "-") == 0;
    rv_engine *engine = rv__store_to_write(store, NULL);
    if (engine == NULL)
        return CLI_FAILED;
    int rc = rv_import(
        engine, RV_IMPORT_OPTS(.path = piped ? NULL : argv[0], .read = piped ? from_stdin : NULL),
        &info, &err);
    rv_engine_free(engine);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message, hint_for(rc));
    if (json)
        printf("{\"runId\":\"%s\",\"status\":\"%s\"}\n", info.run_id, rv_status_name(info.status));
    else
        printf("imported %s (%s)\n", info.run_id, rv_status_name(info.status));
    return CLI_OK;
}
