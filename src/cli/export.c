/* export.c: `rival export`: one run as one file, or on stdout. */
#include <string.h>

#include "cli/options.h"
#include "cli/runs.h"

static int to_stdout(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    return fwrite(bytes, 1, count, stdout) == count ? 0 : 1;
}

static int export(struct rv__look *look)
{
    const bool *force = look->arg;
    const char *file = look->argc > 0 ? look->argv[0] : "-";
    bool piped = strcmp(file, "-") == 0;
    rv_error err;
    int rc = rv_export(look->engine, look->run_id,
                       RV_EXPORT_OPTS(.path = piped ? NULL : file, .replace = *force,
                                      .write = piped ? to_stdout : NULL),
                       &err);
    if (rc == RV_OK && piped && fflush(stdout) == 0)
        return CLI_OK;
    if (piped && (rc == RV_OK || rc == RV_ECANCELED))
        return rv__cli_fail(CLI_FAILED, "stdout took not all of it", NULL);
    if (rc < 0)
        return rv__cli_fail(CLI_FAILED, err.message,
                            rc == RV_EEXIST ? "--force replaces it" : NULL);
    fprintf(stderr, "exported %s to %s\n", look->run_id, file);
    return CLI_OK;
}

int rv__cmd_export(int argc, char **argv)
{
    const char *store = RV__CLI_STORE;
    bool force = false;
    struct rv__look look = { .arg = &force };
    const struct rv__option options[] = { { "--store", .text = &store },
                                          { "--force", .flag = &force },
                                          { NULL } };
    int count = rv__options_args("export", argc, argv, options, 1, 2, "which run?");
    return count < 0 ? -count : rv__look_at_run(store, count, argv, export, &look);
}
