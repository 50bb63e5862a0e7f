/* version.c: `rival version`. */
#include "cli/cli.h"

#include <string.h>

int rv__cmd_version(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0))
        return rv__cli_usage("version", "unexpected argument '%s'", argv[argc - 1]);
    printf(argc == 2 ? "{\"version\":\"%s\"}\n" : "rival %s\n", rv_version());
    return CLI_OK;
}
