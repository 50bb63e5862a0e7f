/* tree.c: from a tree to lumber: a workflow of a bit of everything. Run it with a kind of tree
 * (oak, if you say nothing); once more with the same kind, and nothing is done twice. */
#include <rival/rival.h>
#include <stdio.h>
#include <string.h>

static int find_tree(rv_ctx *c)
{
    const char *type = rv_str(c, ".input.treeType");
    printf("findTree    a fine %s, with 5 branches\n", type);
    return rv_return(c, "{s:s, s:[s,s,s,s,s]}", "id", type, "branches", "A", "B", "C", "D", "E");
}

/* The first blow fails. What fails is tried again, as its options say. */
static int chop_tree(rv_ctx *c)
{
    if (rv_ctx_attempt(c) == 1) {
        printf("chopTree    the axe slips; another blow, soon\n");
        return rv_fail(c, "the axe slipped");
    }
    printf("chopTree    attempt %d: timber!\n", rv_ctx_attempt(c));
    rv_describe(c, "Chopped %s", rv_str(c, ".steps.findTree.result.id"));
    return rv_return(c, "{s:i}", "pieces", 10);
}

static int is_oak(rv_ctx *c)
{
    return rv_return_bool(c, strcmp(rv_str(c, ".input.treeType"), "oak") == 0);
}

static int alert(rv_ctx *c)
{
    printf("alert       oaks are rare: the forester is told\n");
    return rv_return(c, "b", 1);
}

static int branches(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".steps.findTree.result.branches"));
}

static int saw(rv_ctx *c)
{
    return rv_return(c, "{s:s, s:i}", "branch", rv_str(c, ".loop.item"), "planks",
                     2 + (int)rv_int(c, ".loop.index", -1));
}

static int sum(rv_ctx *c)
{
    int64_t planks = 0;
    for (int i = 0; i < 5; i++) {
        char path[80];
        snprintf(path, sizeof path, ".steps.planks.result.iterations[%d].results.saw.result.planks",
                 i);
        planks += rv_int(c, path, 0);
    }
    printf("planks      5 branches, four at a time: %d planks\n", (int)planks);
    return rv_return(c, "{s:i}", "planks", (int)planks);
}

static int email(rv_ctx *c)
{
    return rv_return(c, "s", "sent");
}

static int sms(rv_ctx *c)
{
    return rv_fail(c, "no signal in the forest");
}

static int is_worth_it(rv_ctx *c)
{
    printf("notify      email: %s, sms: %s\n", rv_str(c, ".steps.notify.result.email.status"),
           rv_str(c, ".steps.notify.result.sms.status"));
    return rv_return_bool(c, rv_int(c, ".steps.sum.result.planks", 0) > 3);
}

static int invoice(rv_ctx *c)
{
    return rv_return(c, "{s:i}", "amount", (int)rv_int(c, ".steps.sum.result.planks", 0) * 4);
}

static int receive(rv_ctx *c)
{
    printf("pay         %d in the till\n", (int)rv_int(c, ".steps.invoice.result.amount", 0));
    return rv_return_json(c, rv_json(c, ".lastStep.result.amount"));
}

static int keep_it(rv_ctx *c)
{
    return rv_return(c, "s", "firewood");
}

static int look(rv_ctx *c)
{
    printf("poll        look %d for the lorry\n", (int)rv_int(c, ".loop.index", -1) + 1);
    return rv_return(c, "{s:b}", "here", rv_int(c, ".loop.index", -1) == 2);
}

static int lorry_is_here(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".steps.look.result.here"));
}

static int finish_tree(rv_ctx *c)
{
    printf("finishTree  %s: done\n", rv_str(c, ".steps.findTree.result.id"));
    return rv_return(c, "s", "lumber");
}

static int tell_team(rv_ctx *c)
{
    printf("onError     %s\n", rv_str(c, ".error.message"));
    return 0;
}

static rv_workflow *payment(void)
{
    rv_workflow *w = rv_workflow_new("payment");
    rv_add_step(rv_workflow_body(w), "invoice", invoice, NULL);
    rv_add_step(rv_workflow_body(w), "receive", receive, NULL);
    return w;
}

static rv_workflow *tree_processing(void)
{
    rv_workflow *w = rv_workflow_new("tree-processing");
    rv_body *body = rv_workflow_body(w);
    rv_workflow_describe(w, "Find a tree and turn it into lumber");
    rv_workflow_on_error(w, "tellTeam", tell_team);

    rv_add_step(body, "findTree", find_tree, NULL);
    rv_add_step(body, "chopTree", chop_tree,
                RV_STEP_OPTS(.timeout_ms = 60000, .on_timeout = RV_RETRY, .max_attempts = 3,
                             .backoff = RV_EXPONENTIAL));
    rv_add_delay(body, "rest", 50);
    rv_add_step(body, "alert", alert, RV_STEP_OPTS(.when = is_oak));

    rv_body *plank = rv_add_foreach(body, "planks", branches,
                                    RV_FOREACH_OPTS(.parallel = true, .concurrency = 4));
    rv_add_step(plank, "saw", saw, NULL);
    rv_add_step(body, "sum", sum, NULL);

    rv_concurrent *notify = rv_add_concurrent(body, "notify", RV_CONCURRENT_OPTS(.collect = true));
    rv_concurrent_step(notify, "email", email, NULL);
    rv_concurrent_step(notify, "sms", sms, NULL);

    rv_branch_bodies decide = rv_add_branch(body, "decide", is_worth_it, NULL);
    rv_add_workflow(decide.then, "pay", "payment");
    rv_add_step(decide.otherwise, "note", keep_it, NULL);

    rv_body *poll = rv_add_loop(body, "poll",
                                RV_LOOP_OPTS(.until = lorry_is_here, .max_iterations = 100));
    rv_add_step(poll, "look", look, NULL);
    rv_add_step(body, "finish", finish_tree, NULL);
    return w;
}

int main(int argc, char **argv)
{
    const char *type = argc > 1 ? argv[1] : "oak";
    char input[64];
    rv_error err;
    rv_engine *engine = NULL;
    rv_outcome *outcome = NULL;
    rv_workflow *pay = payment(), *tree = tree_processing();
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(input, sizeof input, "{\"treeType\":\"%s\"}", type);

    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = "tree.db"), &engine, &err);
    if (rc == 0)
        rc = rv_register(engine, pay, &err); /* first: the other one nests it */
    if (rc == 0)
        rc = rv_register(engine, tree, &err);
    if (rc == 0)
        rc = rv_run(engine, "tree-processing", input, RV_RUN_OPTS(.run_id = type), NULL, &err);
    if (rc == 0)
        rc = rv_wait(engine, NULL, type, NULL, &outcome, &err);
    if (rc == 0)
        printf("%s: %s\n", type, rv_status_name(outcome->status));
    else
        fprintf(stderr, "tree: %s\n", err.message);
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    rv_workflow_free(tree);
    rv_workflow_free(pay);
    return rc != 0;
}
