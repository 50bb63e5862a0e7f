/* lumber.c: a workflow that survives: run it, kill it at any moment, run it again. */
#include <rival/rival.h>
#include <stdio.h>

static int find(rv_ctx *c)
{
    return rv_return(c, "{s:s}", "tree", "oak-123");
}

static int chop(rv_ctx *c)
{
    rv_describe(c, "chopped %s", rv_str(c, ".steps.find.result.tree"));
    return rv_return(c, "{s:i}", "pieces", 10);
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_outcome *outcome = NULL;
    rv_workflow *w = rv_workflow_new("lumber");
    rv_add_step(rv_workflow_body(w), "find", find, NULL);
    rv_add_delay(rv_workflow_body(w), "rest", 200);
    rv_add_step(rv_workflow_body(w), "chop", chop, RV_STEP_OPTS(.max_attempts = 3));

    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = "lumber.db"), &engine, &err);
    if (rc == 0)
        rc = rv_register(engine, w, &err);
    if (rc == 0)
        rc = rv_run(engine, "lumber", NULL, RV_RUN_OPTS(.run_id = "today"), NULL, &err);
    if (rc == 0)
        rc = rv_wait(engine, "lumber", "today", NULL, &outcome, &err);
    if (rc == 0)
        printf("%s: %s\n", rv_status_name(outcome->status), outcome->results);
    else
        fprintf(stderr, "lumber: %s\n", err.message);
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return rc != 0;
}
