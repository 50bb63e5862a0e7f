/* kit.c: `rival kit`: not for people: the npm package starts it to test workflows. */
#include "cli/cli.h"

#include <rival/rival.h>

const struct rv__command rv__cmd_kit = {
    .name = "kit",
    .section = SECTION_HIDDEN,
    .summary = "a test engine for a program in another language",
    .run = rv_kit_main,
};
