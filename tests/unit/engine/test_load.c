/* test_load.c: many runs at once, so that commits go by their own thread, and many workflows. For
 * src/engine/commit.c and registry.c. */
#include "unit/engine/rig.h"

#include <time.h>

#include "engine/engine.h"

enum { CLIENTS = 48, RUNS = 12, STEPS = 6 };

static int counts(rv_ctx *c)
{
    return rv_return(c, "I", (long long)(rv_json(c, ".lastStep.result") != NULL ? 1 : 0));
}

struct client {
    pthread_t thread;
    rv_engine *engine;
    int number;
    int completed, cancelled;
    char why[300];
};

/* Run, look, signal, cancel every fifth, wait; twice the same start now and then. */
static void *client_main(void *arg)
{
    struct client *client = arg;
    rv_error err;
    for (int i = 0; i < RUNS && client->why[0] == '\0'; i++) {
        char id[64];
        rv_outcome *outcome = NULL;
        rv_run_state *state = NULL;
        snprintf(id, sizeof id, "run-%d-%d", client->number, i);
        int rc = rv_run(client->engine, "w", "{\"n\":1}", RV_RUN_OPTS(.run_id = id), NULL, &err);
        if (rc == 0 && i % 3 == 0)
            rc = rv_run(client->engine, "w", "{\"n\":1}", RV_RUN_OPTS(.run_id = id), NULL, &err);
        if (rc == 0)
            rc = rv_state(client->engine, id, &state, &err);
        rv_run_state_free(state);
        if (rc == 0)
            rc = rv_signal(client->engine, id, "go", "1", &err);
        if (rc == 0 && i % 5 == 4)
            rc = rv_cancel_run(client->engine, id, &err);
        if (rc == 0 || rc == RV_ESTATE)
            rc = rv_wait(client->engine, "w", id, NULL, &outcome, &err);
        if (rc < 0)
            snprintf(client->why, sizeof client->why, "%s", err.message);
        else if (outcome->status == RV_COMPLETED)
            client->completed++;
        else if (outcome->status == RV_CANCELLED && i % 5 == 4)
            client->cancelled++;
        else
            snprintf(client->why, sizeof client->why, "%.200s", outcome->error);
        rv_outcome_free(outcome);
    }
    return NULL;
}

static void everybody_is_served_while_commits_are_on_their_way(void **state)
{
    struct rig *rig = *state;
    struct client clients[CLIENTS];
    rv_workflow *w = rv_workflow_new("w");
    rig_open(rig, RV_ENGINE_OPTS());
    for (int i = 0; i < STEPS; i++) {
        char alias[8];
        snprintf(alias, sizeof alias, "s%d", i);
        rv_add_step(rv_workflow_body(w), alias, counts, NULL);
        if (i == 2)
            rv_add_signal(rv_workflow_body(w), "nod", "go", 0, NULL);
    }
    rig_put(rig, w);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .engine = rig->engine, .number = i };
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    int completed = 0, cancelled = 0;
    const char *why = NULL;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        completed += clients[i].completed;
        cancelled += clients[i].cancelled;
        why = clients[i].why[0] ? clients[i].why : why;
    }
    if (why != NULL)
        fail_msg("%s", why);
    assert_int_equal(completed + cancelled, CLIENTS * RUNS);
    assert_true(rig->engine->commit.beside > 0); /* or this was no load */
}

/* Seconds of this process that it takes to register so many workflows, each with a function of its own. */
static double registering(struct rig *rig, int count)
{
    clock_t start = clock();
    for (int i = 0; i < count; i++) {
        char name[24], function[24];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(function, sizeof function, "f%d", i);
        rv_workflow *w = rv_workflow_new(name);
        rv_add_step(rv_workflow_body(w), "one", counts, RV_STEP_OPTS(.name = function));
        rig_put(rig, w);
    }
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* The least of three: others use the machine too. */
static double least_registering(struct rig *rig, int count)
{
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        rig_close(rig);
        rig_open(rig, NULL);
        double took = registering(rig, count);
        least = took < least ? took : least;
    }
    return least;
}

/* Ten times as many take ten times as long, not a hundred times. */
static void many_workflows_are_registered_in_a_time_that_fits_them(void **state)
{
    enum { FEW = 800, TIMES = 10 };
    struct rig *rig = *state;
    rig_open(rig, NULL);
    double few = least_registering(rig, FEW);
    double many = least_registering(rig, FEW * TIMES);
    if (many > 3 * TIMES * few)
        fail_msg("%d take %.3f s, %d take %.3f s", FEW, few, FEW * TIMES, many);
    rv_workflow_list *list = NULL;
    assert_int_equal(rv_workflows(rig->engine, &list, &rig->err), RV_OK);
    assert_int_equal(list->count, FEW * TIMES);
    rv_workflow_list_free(list);
    rig_run(rig, "w7", "r", NULL);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(everybody_is_served_while_commits_are_on_their_way),
        RIG_TEST(many_workflows_are_registered_in_a_time_that_fits_them),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
