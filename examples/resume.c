/* resume.c: killed in the midst of its work, it goes on. Start it twice:
 *
 *   $ ./resume            mixes, kneads, and is killed (SIGKILL) while it bakes
 *   $ ./resume            bakes again, and serves; mixing and kneading are on disk */
#include <rival/rival.h>
#include <signal.h>
#include <stdio.h>

static bool again; /* the run was there when we came */

static int tell(rv_ctx *c, const char *what)
{
    printf("%s start: %-5s  %s\n", again ? "second" : "first", rv_ctx_step(c), what);
    return 0;
}

static int mix(rv_ctx *c)
{
    tell(c, "flour, water, salt, yeast");
    return rv_return(c, "{s:i}", "grams", 800);
}

static int knead(rv_ctx *c)
{
    return tell(c, "ten minutes of it");
}

/* May be attempted twice: the first attempt is on disk, its result is not. What has effects outside
 * shows this key there, which is the same for both. */
static int bake(rv_ctx *c)
{
    printf("%s start: bake   with the key %s\n", again ? "second" : "first",
           rv_ctx_idempotency_key(c));
    if (!again)
        raise(SIGKILL);
    return rv_return(c, "{s:I}", "grams",
                     (long long)rv_int(c, ".steps.mix.result.grams", 0) * 9 / 10);
}

static int serve(rv_ctx *c)
{
    printf("%s start: serve  a loaf of %d g\n", again ? "second" : "first",
           (int)rv_int(c, ".steps.bake.result.grams", 0));
    return 0;
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_run_state *state = NULL;
    rv_outcome *outcome = NULL;
    rv_workflow *w = rv_workflow_new("bread");
    rv_add_step(rv_workflow_body(w), "mix", mix, NULL);
    rv_add_step(rv_workflow_body(w), "knead", knead, NULL);
    rv_add_step(rv_workflow_body(w), "bake", bake, NULL);
    rv_add_step(rv_workflow_body(w), "serve", serve, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);

    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = "resume.db"), &engine, &err);
    if (rc == 0) {
        again = rv_state(engine, "sunday", &state, NULL) == 0;
        rc = rv_register(engine, w, &err); /* what was unfinished goes on from here */
    }
    if (rc == 0) /* the same name, workflow and input: that run, not a new one */
        rc = rv_run(engine, "bread", NULL, RV_RUN_OPTS(.run_id = "sunday"), NULL, &err);
    if (rc == 0)
        rc = rv_wait(engine, "bread", "sunday", NULL, &outcome, &err);
    if (rc == 0)
        printf("sunday: %s\n", rv_status_name(outcome->status));
    else
        fprintf(stderr, "resume: %s\n", err.message);
    rv_outcome_free(outcome);
    rv_run_state_free(state);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return rc != 0;
}
