/* first.c: the guide's first workflow: a greeting in two steps. */
#include <rival/rival.h>
#include <stdio.h>

static int compose(rv_ctx *c)
{
    const char *name = rv_str(c, ".input.name");
    if (name == NULL)
        return rv_fail(c, "the input has no name");
    return rv_return(c, "{s:s, s:s}", "to", name, "text", "good morning");
}

static int deliver(rv_ctx *c)
{
    printf("%s, %s!\n", rv_str(c, ".steps.compose.result.text"),
           rv_str(c, ".steps.compose.result.to"));
    return 0;
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_run_info run;
    rv_outcome *outcome = NULL;
    rv_workflow *w = rv_workflow_new("greeting");
    rv_add_step(rv_workflow_body(w), "compose", compose, NULL);
    rv_add_step(rv_workflow_body(w), "deliver", deliver, NULL);

    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = "greetings.db"), &engine, &err);
    if (rc == 0)
        rc = rv_register(engine, w, &err);
    if (rc == 0)
        rc = rv_run(engine, "greeting", "{\"name\":\"Ada\"}", NULL, &run, &err);
    if (rc == 0)
        rc = rv_wait(engine, "greeting", run.run_id, NULL, &outcome, &err);
    if (rc == 0)
        printf("%s\n", rv_status_name(outcome->status));
    else
        fprintf(stderr, "first: %s\n", err.message);
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return rc != 0;
}
