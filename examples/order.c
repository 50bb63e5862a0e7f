/* order.c: an order from the shop's counter to the door: every kind of node there is.
 *
 * Two parts come from outside while it runs: the bank, which answers when it pleases (asynchronous
 * completion by a handle), and a person, who approves (a signal). Here main() plays both. */
#include <rival/rival.h>
#include <stdio.h>
#include <string.h>

static int check(rv_ctx *c)
{
    int total = 0;
    char path[40];
    for (int i = 0;; i++) {
        snprintf(path, sizeof path, ".input.items[%d].price", i);
        int64_t price = rv_int(c, path, -1);
        if (price < 0)
            break;
        total += (int)price;
    }
    printf("check    %s orders for %d\n", rv_str(c, ".input.customer"), total);
    return rv_return(c, "{s:i}", "total", total);
}

/* The error says itself that it is worth another attempt, and how many. */
static int authorise(rv_ctx *c)
{
    if (rv_ctx_attempt(c) < 3)
        return rv_retry(c, RV_RETRY_OPTS(.max_attempts = 5, .backoff = RV_EXPONENTIAL),
                        "the bank is busy");
    printf("pay      authorised at attempt %d\n", rv_ctx_attempt(c));
    return 0;
}

/* Ask the bank, and be done: the step is parked, on disk and without a thread, until it answers. The
 * key is the same over all attempts: a bank that knows it does not charge twice. */
static int charge(rv_ctx *c)
{
    printf("pay      the bank is asked, and calls back\n");
    return rv_return_pending(c, "bank-callback");
}

static int is_dear(rv_ctx *c)
{
    printf("pay      charged: receipt %s\n", rv_str(c, ".steps.pay.result.receipt"));
    printf("approve  by %s\n", rv_str(c, ".steps.approve.result.by"));
    return rv_return_bool(c, rv_int(c, ".steps.check.result.total", 0) > 100);
}

static int insure(rv_ctx *c)
{
    printf("route    dear: insured\n");
    return rv_return(c, "s", "insured");
}

static int plain_parcel(rv_ctx *c)
{
    printf("route    a plain parcel\n");
    return rv_return(c, "s", "plain");
}

static int items(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".input.items"));
}

static int pick(rv_ctx *c)
{
    return rv_return(c, "{s:s, s:i}", "sku", rv_str(c, ".loop.item.sku"), "shelf",
                     10 + (int)rv_int(c, ".loop.index", -1));
}

static int label(rv_ctx *c)
{
    char path[80];
    printf("pack    ");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, ".steps.pack.result.iterations[%d].results.pick.result.sku", i);
        printf(" %s", rv_str(c, path));
    }
    printf("\n");
    return 0;
}

static int email(rv_ctx *c)
{
    return rv_return(c, "s", "sent");
}

static int sms(rv_ctx *c)
{
    return rv_fail(c, "the number is not in service");
}

static int was_told(rv_ctx *c)
{
    printf("tell     email %s, sms %s\n", rv_str(c, ".steps.tell.result.email.status"),
           rv_str(c, ".steps.tell.result.sms.status"));
    return 0;
}

static int where_is_it(rv_ctx *c)
{
    static const char *const places[] = { "in the van", "at the neighbour's", "at the door" };
    int64_t day = rv_int(c, ".loop.index", -1);
    printf("track    day %d: %s\n", (int)day + 1, places[day]);
    return rv_return(c, "{s:b}", "delivered", day == 2);
}

static int delivered(rv_ctx *c)
{
    return rv_return_json(c, rv_json(c, ".steps.look.result.delivered"));
}

/* Nice to have: if it fails, the order goes on. */
static int ask_for_review(rv_ctx *c)
{
    return rv_continue(c, "the review site is down");
}

static int shrug(rv_ctx *c)
{
    printf("review   not asked for: %s\n", rv_str(c, ".error.message"));
    return 0;
}

static int thank(rv_ctx *c)
{
    printf("thank    thank you, %s\n", rv_str(c, ".input.customer"));
    return rv_return(c, "s", "done");
}

static rv_workflow *payment(void)
{
    rv_workflow *w = rv_workflow_new("payment");
    rv_add_step(rv_workflow_body(w), "authorise", authorise, RV_STEP_OPTS(.backoff_base_ms = 5));
    rv_add_step(rv_workflow_body(w), "charge", charge, RV_STEP_OPTS(.timeout_ms = 60000));
    return w;
}

static rv_workflow *order(void)
{
    rv_workflow *w = rv_workflow_new("order");
    rv_body *body = rv_workflow_body(w);
    rv_add_step(body, "check", check, NULL);
    rv_add_workflow(body, "pay", "payment");
    rv_add_signal(body, "approve", "approval", 60000, "{\"by\":\"nobody, in time\"}");

    rv_branch_bodies route = rv_add_branch(body, "route", is_dear, NULL);
    rv_add_step(route.then, "insure", insure, NULL);
    rv_add_step(route.otherwise, "plain", plain_parcel, NULL);

    rv_body *pack = rv_add_foreach(body, "pack", items,
                                   RV_FOREACH_OPTS(.parallel = true, .concurrency = 2));
    rv_add_step(pack, "pick", pick, NULL);
    rv_add_step(body, "label", label, NULL);

    rv_concurrent *tell = rv_add_concurrent(body, "tell", RV_CONCURRENT_OPTS(.collect = true));
    rv_concurrent_step(tell, "email", email, NULL);
    rv_concurrent_step(tell, "sms", sms, NULL);
    rv_add_step(body, "wasTold", was_told, NULL);

    rv_add_delay(body, "onItsWay", 100);
    rv_body *track = rv_add_loop(body, "track",
                                 RV_LOOP_OPTS(.until = delivered, .max_iterations = 30));
    rv_add_step(track, "look", where_is_it, NULL);

    rv_add_step(body, "review", ask_for_review, RV_STEP_OPTS(.on_error = shrug));
    rv_add_step(body, "thank", thank, NULL);
    return w;
}

/* The bank calls back. Before the step is parked nobody waits for it yet: the call is repeated. */
static int answer_as_bank(rv_engine *engine, rv_error *err)
{
    int rc;
    do
        rc = rv_complete(engine, "order-1", "bank-callback", "{\"receipt\":\"R-77\"}", NULL, err);
    while (rc == RV_ENOTFOUND);
    return rc;
}

static int play(rv_engine *engine, rv_error *err)
{
    static const char input[] = "{\"customer\":\"Ada\", \"items\":["
                                "{\"sku\":\"kettle\",\"price\":60},{\"sku\":\"cups\",\"price\":25},"
                                "{\"sku\":\"tea\",\"price\":20}]}";
    rv_outcome *outcome = NULL;
    rv_workflow *pay = payment(), *all = order();
    int rc = rv_register(engine, pay, err);
    if (rc == 0)
        rc = rv_register(engine, all, err);
    if (rc == 0)
        rc = rv_run(engine, "order", input, RV_RUN_OPTS(.run_id = "order-1"), NULL, err);
    if (rc == 0) /* kept until somebody takes it */
        rc = rv_signal(engine, "order-1", "approval", "{\"by\":\"Grace\"}", err);
    if (rc == 0)
        rc = answer_as_bank(engine, err);
    if (rc == 0)
        rc = rv_wait(engine, "order", "order-1", NULL, &outcome, err);
    if (rc == 0)
        printf("order-1: %s\n", rv_status_name(outcome->status));
    rv_outcome_free(outcome);
    rv_workflow_free(all);
    rv_workflow_free(pay);
    return rc;
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = ":memory:"), &engine, &err);
    if (rc == 0)
        rc = play(engine, &err);
    if (rc != 0)
        fprintf(stderr, "order: %s\n", err.message);
    rv_engine_free(engine);
    return rc != 0;
}
