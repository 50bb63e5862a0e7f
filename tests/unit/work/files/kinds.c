/* Every kind of node, and all that a step sees. */
#include <rival/rival.h>
#include <stdlib.h>
#include <string.h>

static int big(rv_ctx *c) /* more than is sent with an invocation */
{
    size_t len = 100000;
    char *json = malloc(len + 3);
    memset(json, 'x', len + 2);
    json[0] = json[len + 1] = '"';
    json[len + 2] = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}
static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3,4,5,6,7,8]");
}
static int length(rv_ctx *c)
{
    const char *text = rv_str(c, ".steps.big.result");
    return rv_return(c, "{s:i,s:i,s:i}", "item", atoi(rv_json(c, ".loop.item")), "index",
                     (int)rv_int(c, ".loop.index", -1), "length", text ? (int)strlen(text) : -1);
}
static int yes(rv_ctx *c)
{
    return rv_return_bool(c, true);
}
static int no(rv_ctx *c)
{
    return rv_return_bool(c, false);
}
static int nothing(rv_ctx *c)
{
    (void)c;
    return 0;
}
static int fails(rv_ctx *c)
{
    return rv_continue(c, "as planned");
}
static int handler(rv_ctx *c)
{
    rv_log_warn(c, "handled %s", rv_json(c, ".error.message"));
    return rv_return_json(c, rv_json(c, "."));
}
static int seen(rv_ctx *c)
{
    rv_set_state(c, "mine", "{\"a\":[1]}");
    rv_log(c, RV_DEBUG, "{\"n\":1}", "looking at %s", rv_ctx_path(c));
    return rv_return(c, "{s:s,s:s,s:s,s:s,s:s,s:s,s:i}", "last", rv_str(c, ".lastStep.alias"),
                     "status", rv_str(c, ".steps.fails.status"), "run", rv_ctx_run_id(c),
                     "workflow", rv_ctx_workflow(c), "step", rv_ctx_step(c), "none",
                     rv_json(c, ".steps.nobody.result") ? "there" : "absent", "context",
                     rv_json(c, ".") != NULL);
}
RV_WORKFLOW(
    "kinds", .description = "all of them", .input = "{\"type\":\"object\"}", .on_error = handler,
    .steps = RV_STEPS(
        RV_STEP(big), RV_DELAY(1),
        RV_FOREACH(items, .alias = "each", .parallel = true, .concurrency = 3,
                   .body = RV_STEPS(RV_STEP(length))),
        RV_BRANCH(yes, .alias = "fork", .then = RV_STEPS(RV_STEP(nothing)),
                  .otherwise = RV_STEPS(RV_STEP(nothing))),
        RV_UNTIL(yes, .alias = "again", .body = RV_STEPS(RV_STEP(nothing)), .keep = RV_KEEP_LAST),
        RV_WHILE(no, .alias = "never", .body = RV_STEPS(RV_STEP(nothing))),
        RV_CONCURRENT(.alias = "both", .collect = true,
                      .body = RV_STEPS(RV_STEP(nothing, .alias = "one"),
                                       RV_NODES("two", .body = RV_STEPS(RV_STEP(nothing))))),
        RV_SIGNAL("go", .alias = "gate", .timeout_ms = 1, .default_json = "\"late\""),
        RV_STEP(nothing, .alias = "skipped", .when = no), RV_NESTED("inner"),
        RV_STEP(fails, .on_error = handler), RV_STEP(seen, .needs = RV_NEEDS("big"))))
