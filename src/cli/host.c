/* host.c: `rival host`: not for people: an engine starts it to run the steps of a file. */
#include "cli/cli.h"

#include <rival/rival.h>

const struct rv__command rv__cmd_host = {
    .name = "host",
    .section = SECTION_HIDDEN,
    .summary = "run the steps of a file for an engine",
    .run = rv_host_main,
};
