/* version.c: `rival version`. */
#include "cli/cli.h"

struct version {
    bool json;
};

static int run_version(int argc, char **argv)
{
    struct version version = { .json = false };
    int count = rv__options(&rv__cmd_version, argc, argv, &version);
    if (count < 0)
        return -count;
    printf(version.json ? "{\"version\":\"%s\"}\n" : "rival %s\n", rv_version());
    return CLI_OK;
}

static const struct rv__option options[] = {
    { "--json", .meaning = "as a JSON object: {\"version\"}", RV__INTO(struct version, json) },
    { NULL },
};

const struct rv__command rv__cmd_version = {
    .name = "version",
    .section = SECTION_PROGRAM,
    .summary = "print the version",
    .options = options,
    .examples = { { "rival version" } },
    .run = run_version,
};
