/* evaluator.c: `rival evaluator`: not for people: an engine starts it to evaluate expressions. */
#include "cli/cli.h"
#include "jq/jq.h"

const struct rv__command rv__cmd_evaluator = {
    .name = "evaluator",
    .section = SECTION_HIDDEN,
    .summary = "evaluate expressions for an engine",
    .run = rv__jq_main,
};
