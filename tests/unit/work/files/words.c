/* All that a file in C can say in the words of YAML. For test_nodes.c. */
#include <rival/rival.h>

static int plank(rv_ctx *c)
{
    return rv_return(c, "{s:s}", "from", rv_str(c, ".loop.item"));
}

RV_WORKFLOW("words", .input = RV_JSON({
                         "type" : "object",
                         "required" : ["kind"],
                         "properties" : { "kind" : { "type" : "string" } }
                     }),
            .steps = RV_STEPS(
                RV_COMMAND(RV_JSON([ "cat", "words.txt" ]), .alias = "read",
                           .description = "read ${ .result }"),
                RV_VALUE(RV_JSON({ "branches" : [ "a", "b" ], "of" : "${ .input.kind }", "n" : 3 }),
                         .alias = "tree"),
                RV_STEP(plank, .alias = "never", .when_expr = "${ .input.kind == \"oak\" }"),
                RV_FOREACH("${ .steps.tree.result.branches }", .alias = "planks",
                           .label = "branch ${ .loop.item }", .body = RV_STEPS(RV_STEP(plank))),
                RV_BRANCH("${ .steps.tree.result.n > 2 }", .alias = "size",
                          .then = RV_STEPS(RV_VALUE("big", .alias = "big"))),
                RV_UNTIL("${ .loop.index == 1 }", .alias = "twice",
                         .body = RV_STEPS(RV_VALUE("again"))),
                RV_DELAY("${ .steps.tree.result.n }", .alias = "rest"),
                RV_NESTED("./words.yaml", .alias = "pay",
                          .input = RV_JSON({ "amount" : "${ .steps.tree.result.n * 2 }" }))))
