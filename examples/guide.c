/* guide.c: the pieces that docs/guide/embedding.md shows, put together into a program that runs. */
#include <rival/rival.h>
#include <stdio.h>
#include <string.h>

#define SECOND_MS INT64_C(1000)
#define DAY_MS    (INT64_C(86400) * SECOND_MS)

/* ------------------------------------------------------------------- a payment, elsewhere --- */

static char seen_key[256];

/* As a payment provider does it: a request whose key it knows is answered, and not done again. */
static const char *provider_charge(const char *key, int64_t amount)
{
    if (strcmp(key, seen_key) != 0)
        printf("provider: charges %d\n", (int)amount);
    snprintf(seen_key, sizeof seen_key, "%s", key);
    return "R-1";
}

static int charge(rv_ctx *c)
{
    int64_t amount = rv_int(c, ".input.amount", 0);
    const char *receipt = provider_charge(rv_ctx_idempotency_key(c), amount);
    if (rv_ctx_attempt(c) == 1)
        return rv_fail(c, "the line broke after the charge"); /* so it is attempted again */
    return rv_return(c, "{s:s}", "receipt", receipt);
}

/* ------------------------------------------------------------------------ retries, errors --- */

static int fetch(rv_ctx *c)
{
    int status = rv_ctx_attempt(c) < 3 ? 503 : 200; /* the answer of some server */
    if (status == 404)
        return rv_stop(c, "there is no such page");
    if (status != 200)
        return rv_fail(c, "the server answered %d", status);
    printf("fetch: there at attempt %d\n", rv_ctx_attempt(c));
    return rv_return(c, "{s:i}", "status", status);
}

static int decorate(rv_ctx *c)
{
    return rv_continue(c, "no ribbon left");
}

static int say_why(rv_ctx *c)
{
    printf("decorate: left out: %s\n", rv_str(c, ".error.message"));
    return 0;
}

static void add_fetch(rv_body *body)
{
    rv_add_step(body, "fetch", fetch,
                RV_STEP_OPTS(.timeout_ms = 10 * SECOND_MS, .on_timeout = RV_RETRY,
                             .max_attempts = 5, .backoff = RV_EXPONENTIAL, .backoff_base_ms = 20,
                             .jitter = 0.2));
    rv_add_step(body, "decorate", decorate, RV_STEP_OPTS(.on_error = say_why));
}

/* ------------------------------------------------------------------------ timers, signals --- */

static int remind(rv_ctx *c)
{
    printf("remind: answered %s\n", rv_json(c, ".steps.answer.result"));
    return 0;
}

static void add_waits(rv_body *body)
{
    rv_add_delay(body, "coolingOff", 30);
    rv_add_signal(body, "answer", "answer", 3 * DAY_MS, "{\"by\":\"nobody\"}");
    rv_add_step(body, "remind", remind, NULL);
}

/* ------------------------------------------------------------------ completion from outside --- */

/* Hand the work to somebody else, with the handle by which they will tell us. */
static int print_poster(rv_ctx *c)
{
    char handle[160];
    snprintf(handle, sizeof handle, "printer/%s", rv_ctx_run_id(c));
    printf("print: sent\n");
    return rv_return_pending(c, handle);
}

/* Called when the printer reports. Quicker than our own commit? Then nobody waits for it yet. */
static int printer_reports(rv_engine *engine, const char *run_id, rv_error *err)
{
    char handle[160];
    int rc;
    snprintf(handle, sizeof handle, "printer/%s", run_id);
    do
        rc = rv_complete(engine, run_id, handle, "{\"pages\":2}", NULL, err);
    while (rc == RV_ENOTFOUND);
    return rc;
}

static int hang_up(rv_ctx *c)
{
    printf("hangUp: %d pages\n", (int)rv_int(c, ".steps.print.result.pages", 0));
    return 0;
}

/* ------------------------------------------------------------------- long steps, and closing --- */

static int count_stars(rv_ctx *c)
{
    for (int i = 0; i < 1000; i++)
        if (rv_ctx_cancelled(c)) /* cancelled, timed out, or the engine closes */
            return rv_fail(c, "stopped at star %d", i);
    return rv_return(c, "{s:i}", "stars", 1000);
}

/* ---------------------------------------------------------------------------- the workflow --- */

static rv_workflow *poster(void)
{
    rv_workflow *w = rv_workflow_new("poster");
    rv_body *body = rv_workflow_body(w);
    rv_add_step(body, "charge", charge, RV_STEP_OPTS(.max_attempts = 3, .backoff_base_ms = 10));
    add_fetch(body);
    rv_add_step(body, "print", print_poster, RV_STEP_OPTS(.timeout_ms = 2 * DAY_MS));
    rv_add_step(body, "hangUp", hang_up, NULL);
    add_waits(body);
    rv_add_step(body, "countStars", count_stars, NULL);
    return w;
}

static int order_poster(rv_engine *engine, rv_error *err)
{
    rv_outcome *outcome = NULL;
    int rc = rv_run(engine, "poster", "{\"amount\":12}", RV_RUN_OPTS(.run_id = "poster-1"), NULL,
                    err);
    if (rc == 0)
        rc = printer_reports(engine, "poster-1", err);
    if (rc == 0)
        rc = rv_signal(engine, "poster-1", "answer", "{\"by\":\"Ada\"}", err);
    if (rc == 0)
        rc = rv_wait(engine, "poster", "poster-1", NULL, &outcome, err);
    if (rc == 0 && outcome->status == RV_FAILED)
        printf("failed at %s: %s\n", outcome->failed_step, outcome->error);
    else if (rc == 0)
        printf("poster-1: %s\n", rv_status_name(outcome->status));
    rv_outcome_free(outcome);
    return rc;
}

/* What two calls with the same id do: the same start is the same run; another one is refused. */
static int order_again(rv_engine *engine, rv_error *err)
{
    rv_run_info info;
    int rc = rv_run(engine, "poster", "{\"amount\":12}", RV_RUN_OPTS(.run_id = "poster-1"), &info,
                    err);
    if (rc == 0)
        printf("again: it is %s\n", rv_status_name(info.status));
    if (rc == 0)
        rc = rv_run(engine, "poster", "{\"amount\":13}", RV_RUN_OPTS(.run_id = "poster-1"), &info,
                    err);
    if (rc == RV_EEXIST) {
        printf("another amount: %s\n", rv_errname(rc));
        rc = 0;
    }
    return rc;
}

/* ------------------------------------------------------------------------------- upgrading --- */

static int weigh(rv_ctx *c)
{
    return rv_return(c, "{s:i}", "grams", 500);
}

static int wrap_up(rv_ctx *c)
{
    printf("wrap: %d g, stamped by %s\n", (int)rv_int(c, ".steps.weigh.result.grams", 0),
           rv_str(c, ".steps.lick.status") != NULL ? "hand" : "machine");
    return 0;
}

static int lick_stamp(rv_ctx *c)
{
    (void)c;
    return 0;
}

/* Version 2 of the program has a machine for stamps: nobody licks them any more, but old parcels. */
static rv_workflow *parcel(int version)
{
    rv_workflow *w = rv_workflow_new("parcel");
    rv_body *body = rv_workflow_body(w);
    rv_add_step(body, "weigh", weigh, NULL);
    rv_add_signal(body, "go", "go", 0, NULL);
    if (version == 1)
        rv_add_step(body, "lick", lick_stamp, NULL);
    else
        rv_workflow_function(w, "lick", lick_stamp); /* for runs that began under version 1 */
    rv_add_step(body, "wrap", wrap_up, RV_STEP_OPTS(.name = "wrap"));
    return w;
}

/* A program of this version: opens the store, knows its workflow, starts a run of its own. */
static int program(int version, const char *store, const char *run_id, rv_error *err)
{
    rv_engine *engine = NULL;
    rv_outcome *outcome = NULL;
    rv_workflow *w = parcel(version);
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = store), &engine, err);
    if (rc == 0)
        rc = rv_register(engine, w, err);
    if (rc == 0)
        rc = rv_run(engine, "parcel", NULL, RV_RUN_OPTS(.run_id = run_id), NULL, err);
    if (rc == 0 && version == 2)
        rc = rv_signal(engine, "old", "go", NULL, err);
    if (rc == 0 && version == 2)
        rc = rv_wait(engine, "parcel", "old", NULL, &outcome, err);
    rv_outcome_free(outcome);
    outcome = NULL;
    if (rc == 0 && version == 2)
        rc = rv_signal(engine, "new", "go", NULL, err);
    if (rc == 0 && version == 2)
        rc = rv_wait(engine, "parcel", "new", NULL, &outcome, err);
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return rc;
}

/* --------------------------------------------------------------------------------- testing --- */

static int days_passed(rv_engine *engine, int64_t since_ms)
{
    return (int)((rv_test_now(engine) - since_ms) / DAY_MS);
}

/* Nobody answers; and on the second day, the process dies. */
static int test_that_we_do_not_wait_for_ever(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_outcome *outcome = NULL;
    int good = 0;
    rv_workflow *w = rv_workflow_new("question");
    add_waits(rv_workflow_body(w));

    int rc = rv_test_engine_new(RV_TEST_OPTS(.seed = 1), &engine, &err);
    int64_t start_ms = rc == 0 ? rv_test_now(engine) : 0;
    if (rc == 0)
        rc = rv_register(engine, w, &err);
    if (rc == 0)
        rc = rv_run(engine, "question", NULL, RV_RUN_OPTS(.run_id = "q"), NULL, &err);
    if (rc == 0)
        rc = rv_test_advance(engine, 2 * DAY_MS, &err);
    if (rc == 0)
        rc = rv_test_crash(engine, &err);
    if (rc == 0)
        rc = rv_wait(engine, "question", "q", RV_WAIT_OPTS(.timeout_ms = 5 * DAY_MS), &outcome,
                     &err);
    if (rc == 0)
        good = outcome->status == RV_COMPLETED && days_passed(engine, start_ms) == 3;
    rv_outcome_free(outcome);
    rv_engine_free(engine);
    rv_workflow_free(w);
    return good;
}

int main(void)
{
    rv_error err;
    rv_engine *engine = NULL;
    rv_workflow *w = poster();
    setvbuf(stdout, NULL, _IOLBF, 0);
    int rc = rv_engine_new(RV_ENGINE_OPTS(.store = "guide.db"), &engine, &err);
    if (rc == 0)
        rc = rv_register(engine, w, &err);
    if (rc == 0)
        rc = order_poster(engine, &err);
    if (rc == 0)
        rc = order_again(engine, &err);
    rv_engine_free(engine);
    rv_workflow_free(w);
    if (rc == 0)
        rc = program(1, "upgrade.db", "old", &err);
    if (rc == 0)
        rc = program(2, "upgrade.db", "new", &err);
    if (rc != 0)
        fprintf(stderr, "guide: %s\n", err.message);
    printf("test: %s\n", test_that_we_do_not_wait_for_ever() ? "good" : "bad");
    return rc != 0;
}
