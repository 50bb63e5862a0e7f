/* fragile.c: a step that takes its process with it, until there is a file `mended` where the server runs. */
#include <rival/rival.h>

#include <stdlib.h>
#include <unistd.h>

static int begin(rv_ctx *c)
{
    return rv_return(c, "s", "ready");
}

static int fragile(rv_ctx *c)
{
    if (access("mended", F_OK) != 0)
        abort();
    return rv_return(c, "s", "whole");
}

RV_WORKFLOW("fragile", .description = "Breaks, until it is mended",
            .steps = RV_STEPS(RV_STEP(begin), RV_SIGNAL("go", .alias = "gate"), RV_STEP(fragile)))
