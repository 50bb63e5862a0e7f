/* stock.c: order what runs out: commands, values and conditions in the words of YAML, beside a function.
 *
 *     run_file stock.c stock '{"least": 5}' */
#include <rival/rival.h>

static int order(rv_ctx *c)
{
    const char *name = rv_str(c, ".loop.item.name");
    int64_t left = rv_int(c, ".loop.item.left", 0);
    rv_describe(c, "%s: %d left", name, (int)left);
    return rv_return(c, "{s:s, s:i}", "name", name, "amount", (int)(10 - left));
}

RV_WORKFLOW(
    "stock", .description = "Orders what runs out",
    .input = RV_JSON(
        { "type" : "object", "properties" : { "least" : { "type" : "integer", "default" : 5 } } }),
    .steps = RV_STEPS(RV_COMMAND(RV_JSON([ "cat", "stock.txt" ]), .alias = "count",
                                 .timeout_ms = 5000, .max_attempts = 3),
                      RV_VALUE("${ [.input.least as $least | .steps.count.result[] | "
                               "select(.left < $least)] }",
                               .alias = "low", .description = "${ .result | length } run out"),
                      RV_FOREACH("${ .steps.low.result }", .alias = "orders",
                                 .body = RV_STEPS(RV_STEP(order))),
                      RV_VALUE("all shelves are full", .alias = "praise",
                               .when_expr = "${ .steps.low.result == [] }")))
