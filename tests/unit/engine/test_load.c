/* test_load.c: many runs at once, so that commits go by their own thread. For src/engine/commit.c. */
#include "unit/engine/rig.h"

#include "engine/engine.h"

enum { CLIENTS = 48, RUNS = 12, STEPS = 6 };

static int counts(rv_ctx *c)
{
    return rv_return(c, "I", (long long)(rv_last_json(c, NULL) != NULL ? 1 : 0));
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
    assert_true(rig->engine->commit.has_thread); /* or this was no load */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(everybody_is_served_while_commits_are_on_their_way),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
