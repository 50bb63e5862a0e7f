#include <rival/rival.h>

static int findTree(rv_ctx *c)
{
    rv_log_info(c, "searching");
    return rv_return(c, "{s:s}", "treeId", "oak-123");
}

static int chopTree(rv_ctx *c)
{
    rv_describe(c, "Chopped %s", rv_str(c, ".steps.findTree.result.treeId"));
    return rv_return(c, "{s:i}", "pieces", 10);
}

RV_WORKFLOW("chop-tree", .description = "Find a tree and chop it",
            .steps = RV_STEPS(RV_STEP(findTree),
                              RV_STEP(chopTree, .timeout_ms = 60000, .on_timeout = RV_RETRY,
                                      .max_attempts = 3)))
