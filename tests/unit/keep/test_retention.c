/* test_retention.c: finished runs leave the store. For src/keep/retain.c
 * and src/engine/retain.c. */
#include <stdatomic.h>

#include "unit/engine/rig.h"

#include "base/clock.h"
#include "engine/engine.h"

static int good(rv_ctx *c)
{
    rv_log_info(c, "a line");
    return rv_return(c, "i", 1);
}

static char keys[3][200]; /* of the attempts of `twice`, in order */
static atomic_int key_count;

static int twice(rv_ctx *c)
{
    snprintf(keys[key_count % 3], sizeof keys[0], "%s", rv_ctx_idempotency_key(c));
    key_count++; /* now it is whole */
    return rv_ctx_attempt(c) < 2 ? rv_fail(c, "once more") : rv_return(c, "i", 1);
}

static void put_one(struct rig *rig)
{
    rv_workflow *again = rv_workflow_new("again");
    rv_add_step(rv_workflow_body(again), "twice", twice,
                RV_STEP_OPTS(.max_attempts = 2, .backoff_base_ms = 1000));
    rig_put(rig, again);
    rv_workflow *w = rv_workflow_new("w");
    rv_add_step(rv_workflow_body(w), "one", good, NULL);
    rig_put(rig, w);
    w = rv_workflow_new("waits");
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    rig_put(rig, w);
}

static void run_some(struct rig *rig, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char id[12];
        snprintf(id, sizeof id, "r%04d", i);
        rig_run(rig, "w", id, NULL);
        assert_int_equal(rig_wait(rig, id), RV_COMPLETED);
    }
}

static size_t runs_left(struct rig *rig)
{
    rv_run_list *list = NULL;
    assert_int_equal(rv_list(rig->engine, RV_QUERY(.limit = 1000), &list, &rig->err), RV_OK);
    size_t count = list->count;
    rv_run_list_free(list);
    return count;
}

static bool there(struct rig *rig, const char *run_id)
{
    rv_run_state *state = NULL;
    int rc = rv_state(rig->engine, run_id, &state, &rig->err);
    rv_run_state_free(state);
    assert_true(rc == RV_OK || rc == RV_ENOTFOUND);
    return rc == RV_OK;
}

static void the_oldest_go_first(void **state)
{
    struct rig *rig = *state;
    uint64_t removed = 0;
    rig_open(rig, NULL);
    put_one(rig);
    rig_run(rig, "waits", "lives", NULL);
    run_some(rig, 0, 150);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 10), &removed, &rig->err),
                     RV_OK);
    assert_int_equal(removed, 140);
    assert_int_equal(runs_left(rig), 11);
    assert_false(there(rig, "r0139"));
    assert_true(there(rig, "r0140"));
    assert_true(there(rig, "lives"));
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 10), &removed, &rig->err),
                     RV_OK);
    assert_int_equal(removed, 0);
    assert_int_equal(rv_retain(rig->engine, NULL, &removed, &rig->err), RV_OK); /* for ever */
    assert_int_equal(removed, 0);
    assert_int_equal(
        rv_retain(rig->engine, RV_RETAIN_OPTS(.max_age_ms = 3600000), &removed, &rig->err), RV_OK);
    assert_int_equal(removed, 0);
    usleep(3000);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_age_ms = 1), &removed, &rig->err),
                     RV_OK);
    assert_int_equal(removed, 10);
    assert_int_equal(runs_left(rig), 1);
    assert_int_equal(rv_retain(rig->engine, &(rv_retain_opts){ 0 }, NULL, &rig->err), RV_EINVAL);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_age_ms = -1), NULL, &rig->err),
                     RV_EINVAL);
}

static void the_store_shrinks_to_its_bound(void **state)
{
    struct rig *rig = *state;
    uint64_t removed = 0;
    struct rv__store_usage before, after;
    rig_open(rig, NULL);
    put_one(rig);
    run_some(rig, 0, 300);
    assert_int_equal(rv__store_usage(rig->engine->step_reader, &before, NULL), RV_OK);
    assert_int_equal(rv_retain(rig->engine,
                               RV_RETAIN_OPTS(.max_bytes = before.bytes - before.bytes / 4),
                               &removed, &rig->err),
                     RV_OK);
    assert_int_equal(rv__store_usage(rig->engine->step_reader, &after, NULL), RV_OK);
    assert_true(after.bytes <= before.bytes - before.bytes / 4);
    assert_in_range(removed, 20, 200); /* and not everything */
    assert_int_equal(runs_left(rig), 300 - removed);
}

static void an_engine_does_it_by_itself(void **state)
{
    struct rig *rig = *state;
    rig_open(rig, &(rv_engine_opts){ .workers = 4, .retain_runs = 5 });
    put_one(rig);
    run_some(rig, 0, 30);
    rig_close(rig);
    rig_open(rig, &(rv_engine_opts){ .workers = 4, .retain_runs = 5 });
    for (int i = 0; i < 4000 && runs_left(rig) > 5; i++)
        usleep(1000);
    assert_int_equal(runs_left(rig), 5);
    assert_true(there(rig, "r0029"));
    rig_close(rig);
    rv_engine_opts bad = { .size = sizeof bad, .store = rig->store, .retain_age_ms = -1 };
    assert_int_equal(rv_engine_new(&bad, &rig->engine, &rig->err), RV_EINVAL);
}

static void the_feed_says_what_is_gone(void **state)
{
    struct rig *rig = *state;
    rv_feed *slow = NULL, *other = NULL;
    rv_event event, first;
    uint64_t seq[2] = { 0 };
    rig_open(rig, NULL);
    put_one(rig);
    rig_run(rig, "waits", "lives", NULL);
    run_some(rig, 0, 10);
    assert_int_equal(
        rv_feed_open(rig->engine, RV_FEED_OPTS(.from = RV_FROM_OLDEST), &slow, &rig->err), RV_OK);
    /* Where the 5th and the last run ended. */
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_OLDEST));
    while (rv_feed_next(rig->feed, 0, NULL, &event, &rig->err) == RV_OK)
        if (strcmp(event.kind, "run.completed") == 0 && strcmp(event.run_id, "r0004") <= 0)
            seq[0] = event.seq;
        else
            seq[1] = event.seq;
    assert_int_equal(rv_feed_next(slow, 0, NULL, &first, &rig->err), RV_OK);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 3), NULL, &rig->err), RV_OK);
    assert_int_equal(rv_feed_open(rig->engine,
                                  RV_FEED_OPTS(.from = RV_FROM_POSITION, .seq = seq[0]), &other,
                                  &rig->err),
                     RV_ENOTFOUND);
    assert_non_null(strstr(rig->err.message, "no longer kept"));
    assert_int_equal(rv_feed_open(rig->engine,
                                  RV_FEED_OPTS(.from = RV_FROM_POSITION, .seq = seq[1]), &other,
                                  &rig->err),
                     RV_OK);
    rv_feed_close(other);
    /* The one that had begun meets the hole, perhaps behind what it had read already. */
    int rc;
    while ((rc = rv_feed_next(slow, 0, NULL, &event, &rig->err)) == RV_OK)
        assert_true(strcmp(event.run_id, "r0007") < 0); /* "lives" too */
    assert_int_equal(rc, RV_ENOTFOUND);
    assert_int_equal(rv_feed_next(slow, 0, NULL, &event, &rig->err), RV_ENOTFOUND);
    rv_feed_close(slow);
    /* At the head nothing is missing; and from the oldest on there is what there is. */
    assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_ETIMEDOUT);
    rig_follow(rig, RV_FEED_OPTS(.from = RV_FROM_OLDEST));
    assert_int_equal(rv_feed_next(rig->feed, 0, NULL, &event, &rig->err), RV_OK);
    assert_string_equal(event.run_id, "lives");
    int events = 1;
    while (rv_feed_next(rig->feed, 0, NULL, &event, &rig->err) == RV_OK)
        events++;
    assert_int_equal(events, 2 + 3 * 5); /* over the hole that was there before */
}

static void what_is_waited_for_stays(void **state)
{
    struct rig *rig = *state;
    rv_node_list *nodes = NULL;
    rig_open(rig, NULL);
    put_one(rig);
    rig_follow(rig, NULL);
    run_some(rig, 0, 3);
    rig_until(rig, "run.completed", "r0002");
    assert_int_equal(rv_nodes(rig->engine, "r0000", NULL, &nodes, &rig->err), RV_OK);
    rv_node_list_free(nodes);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 1), NULL, &rig->err), RV_OK);
    assert_int_equal(rv_nodes(rig->engine, "r0000", NULL, &nodes, &rig->err), RV_ENOTFOUND);
    rig_run(rig, "waits", "r0000",
            NULL); /* the id is free: what was kept of the old one is not it */
    assert_int_equal(rv_nodes(rig->engine, "r0000", NULL, &nodes, &rig->err), RV_OK);
    assert_string_equal(nodes->nodes[0].path, "go");
    rv_node_list_free(nodes);
    rv_event event;
    assert_int_equal(rv_feed_next(rig->feed, 20000, NULL, &event, &rig->err), RV_OK);
    assert_string_equal(event.workflow, "waits");
}

static void until_tried(int attempts)
{
    for (int i = 0; i < 4000 && key_count < attempts; i++)
        usleep(1000);
    assert_int_equal(key_count, attempts);
}

/* A key is for whoever must not act twice: it is the same in each attempt, in whichever process; and no
 * later run has it, though it is given the same id. */
static void an_id_that_is_given_again_has_other_keys(void **state)
{
    struct rig *rig = *state;
    key_count = 0;
    rig_open(rig, NULL);
    put_one(rig);
    rig_follow(rig, NULL);
    rig_run(rig, "again", "order-1", NULL);
    rig_until(rig, "step.retrying", "order-1"); /* recorded, so that the close cuts nothing off */
    rv_feed_close(rig->feed);
    rig->feed = NULL;
    rig_close(rig);
    rig_open(rig, NULL);
    put_one(rig);
    assert_int_equal(rig_wait(rig, "order-1"), RV_COMPLETED);
    assert_int_equal(key_count, 2);
    assert_string_equal(keys[0], keys[1]);

    rig_run(rig, "again", "order-1", NULL); /* it is there: nothing is done again */
    assert_int_equal(key_count, 2);
    run_some(rig, 0, 2);
    assert_int_equal(rv_retain(rig->engine, RV_RETAIN_OPTS(.max_runs = 1), NULL, &rig->err), RV_OK);
    assert_false(there(rig, "order-1"));
    rig_run(rig, "again", "order-1", NULL);
    until_tried(3);
    assert_string_not_equal(keys[2], keys[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_oldest_go_first),         RIG_TEST(the_store_shrinks_to_its_bound),
        RIG_TEST(an_engine_does_it_by_itself), RIG_TEST(the_feed_says_what_is_gone),
        RIG_TEST(what_is_waited_for_stays),    RIG_TEST(an_id_that_is_given_again_has_other_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
