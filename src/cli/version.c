/* version.c: `rival version`. */
#include "cli/cli.h"

#include "cli/options.h"

int rv__cmd_version(int argc, char **argv)
{
    bool json = false;
    const struct rv__option options[] = { { "--json", .flag = &json }, { NULL } };
    int count = rv__options_args("version", argc, argv, options, 0, 0, "");
    if (count < 0)
        return -count;
    printf(json ? "{\"version\":\"%s\"}\n" : "rival %s\n", rv_version());
    return CLI_OK;
}
