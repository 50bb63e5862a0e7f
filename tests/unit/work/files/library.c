/* Functions for others, and no workflow. For test_nodes.c. */
#include <rival/rival.h>

static int lend(rv_ctx *c)
{
    return rv_return(c, "{s:s}", "book", rv_str(c, ".input.book"));
}

static int take_back(rv_ctx *c)
{
    return rv_return(c, "{s:s}", "back", rv_str(c, ".steps.lend.result.book"));
}

RV_FUNCTIONS(lend, take_back)
