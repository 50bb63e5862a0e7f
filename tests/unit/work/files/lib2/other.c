/* A second library that lends, and a workflow that calls either. For test_nodes.c. */
#include <rival/rival.h>

static int lend(rv_ctx *c)
{
    return rv_return(c, "s", "another book");
}

static int nothing(rv_ctx *c)
{
    (void)c;
    return 0;
}

RV_WORKFLOW("reading", .steps = RV_STEPS(RV_CALL("library/lend", .alias = "lend"),
                                         RV_CALL("take_back"), RV_STEP(nothing)))
RV_FUNCTIONS(lend)
