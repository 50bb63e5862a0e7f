/* test_facts.c: facts as readers get them: every member, unknown ones, wrong ones; and the walk over a
 * journal. For src/read/facts.c. */
#include "unit/plan/plan_test.h"

#include "read/read.h"
#include "store/simulated/simulated.h"

static int read_one(const char *facts, const struct rv__plan *plan, struct rv__row_reader *row,
                    struct rv__read_fact *ret, rv_error *err)
{
    int rc = rv__row_begin(row, rv__str(facts), err);
    return rc < 0 ? rc : rv__row_next(row, plan, ret, err);
}

static int setup(void **state)
{
    static struct fixture fx;
    fixture_compile(&fx,
                    "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"},"
                    "{\"type\":\"step\",\"name\":\"g\"}]}",
                    NULL);
    assert_int_equal(fx.rc, RV_OK);
    *state = &fx;
    return 0;
}

static int teardown(void **state)
{
    fixture_done(*state);
    return 0;
}

static void every_member_has_its_field(void **state)
{
    struct fixture *fx = *state;
    struct rv__row_reader row;
    struct rv__read_fact f;
    rv_error err;
    rv__row_reader_init(&row);
    assert_int_equal(
        read_one("{\"k\":\"step.failed\",\"a\":7,\"o\":3,\"n\":1,\"i\":[4,0],\"at\":10,"
                 "\"x\":5,\"due\":20,\"attempt\":2,\"eval\":\"until\","
                 "\"status\":\"failed\",\"hard\":true,\"suspect\":true,\"blame\":true,"
                 "\"crash\":true,\"name\":\"go\",\"result\":[1],\"state\":{},"
                 "\"error\":{\"message\":\"no\"}}",
                 fx->plan, &row, &f, &err),
        1);
    assert_int_equal(f.kind, FACT_STEP_FAILED);
    assert_int_equal(f.actor, 7);
    assert_int_equal(f.owner, 3);
    assert_int_equal(f.node, 1);
    assert_int_equal(f.vector.depth, 2);
    assert_int_equal(f.vector.at[0], 4);
    assert_int_equal(f.vector.at[1], 0);
    assert_int_equal(f.at_ms, 10);
    assert_int_equal(f.index, 5);
    assert_int_equal(f.due_ms, 20);
    assert_int_equal(f.attempt, 2);
    assert_int_equal(f.eval, EVAL_UNTIL);
    assert_int_equal(f.status, STATUS_FAILED);
    assert_true(f.hard && f.suspect && f.blame && f.crash);
    assert_str(f.name, "\"go\"");
    assert_str(f.result, "[1]");
    assert_str(f.state, "{}");
    assert_str(f.error, "{\"message\":\"no\"}");
    assert_int_equal(rv__row_next(&row, fx->plan, &f, &err), 0);
    rv__row_reader_done(&row);
}

static void what_is_not_said_is_none(void **state)
{
    struct fixture *fx = *state;
    struct rv__row_reader row;
    struct rv__read_fact f;
    rv__row_reader_init(&row);
    for (int i = 0; i < FACT_KINDS; i++) { /* every kind is known by its name */
        char text[64];
        snprintf(text, sizeof text, "{\"k\":\"%s\"}", rv__fact_kind_name((enum rv__fact_kind)i));
        assert_int_equal(read_one(text, fx->plan, &row, &f, NULL), 1);
        assert_int_equal(f.kind, i);
        assert_true(f.node == RV__NO_NODE && f.eval == -1 && f.status == -1 && !f.hard);
        assert_true(rv__str_none(f.result) && f.vector.depth == 0);
    }
    assert_int_equal(read_one("{\"k\":\"run.resumed\",\"later\":[{}],\"eval\":\"new\"}", fx->plan,
                              &row, &f, NULL),
                     1); /* written by a newer version */
    assert_int_equal(f.eval, -1);
    rv__row_reader_done(&row);
}

static void what_a_disk_may_not_say_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"k\":\"step.started\"",
        "{\"k\":\"nothing.such\"}",
        "{\"a\":1}",
        "{\"k\":\"step.started\",\"a\":-1}",
        "{\"k\":\"step.started\",\"a\":\"1\"}",
        "{\"k\":\"step.started\",\"n\":2}", /* the plan has two */
        "{\"k\":\"step.started\",\"n\":4294967295}",
        "{\"k\":\"step.started\",\"attempt\":2147483647}",
        "{\"k\":\"step.started\",\"at\":\"now\"}",
        "{\"k\":\"body.ended\",\"status\":\"odd\"}",
        "{\"k\":\"step.started\",\"i\":[\"0\"]}",
    };
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rv__row_reader row;
        struct rv__read_fact f;
        rv_error err;
        rv__row_reader_init(&row);
        if (read_one(bad[i], fx->plan, &row, &f, &err) != RV_ESTORE)
            fail_msg("taken: %s", bad[i]);
        rv__row_reader_done(&row);
    }
    struct rv__buf deep; /* more iterations around it than a plan can have */
    struct rv__row_reader row;
    struct rv__read_fact f;
    rv__buf_init(&deep, 1 << 16);
    rv__buf_text(&deep, "{\"k\":\"step.started\",\"i\":[0");
    for (int i = 0; i < RV__PLAN_MAX_DEPTH; i++)
        rv__buf_text(&deep, ",0");
    rv__buf_text(&deep, "]}");
    rv__buf_char(&deep, '\0');
    rv__row_reader_init(&row);
    assert_int_equal(read_one(deep.text, fx->plan, &row, &f, NULL), RV_ESTORE);
    rv__row_reader_done(&row);
    rv__buf_done(&deep);
}

/* A fact of each kind, as flow/ writes them: replay and readers take the same out of it. */
static void readers_and_replay_agree(void **state)
{
    static const char *const facts[] = {
        "{\"k\":\"run.started\",\"a\":1,\"at\":5,\"nonce\":\"00000000000000a1\",\"result\":{}}",
        "{\"k\":\"run.completed\",\"at\":5}",
        "{\"k\":\"run.failed\",\"n\":1,\"at\":5,\"error\":{\"message\":\"m\"}}",
        "{\"k\":\"run.cancelled\",\"at\":5}",
        "{\"k\":\"run.suspended\",\"a\":2,\"n\":1,\"at\":5,\"error\":{}}",
        "{\"k\":\"run.resumed\",\"at\":5}",
        "{\"k\":\"run.aborted\",\"at\":5,\"error\":{}}",
        "{\"k\":\"eval.started\",\"a\":2,\"o\":1,\"n\":1,\"i\":[3],\"at\":5,\"eval\":\"items\"}",
        "{\"k\":\"eval.completed\",\"a\":2,\"n\":1,\"at\":5,\"eval\":\"if\",\"result\":true}",
        "{\"k\":\"eval.failed\",\"a\":2,\"n\":1,\"at\":5,\"eval\":\"input\",\"error\":{}}",
        "{\"k\":\"node.started\",\"a\":2,\"o\":1,\"n\":1,\"at\":5}",
        "{\"k\":\"node.completed\",\"a\":2,\"n\":1,\"at\":5,\"describe\":true}",
        "{\"k\":\"node.failed\",\"a\":2,\"n\":1,\"at\":5,\"error\":{}}",
        "{\"k\":\"node.skipped\",\"a\":2,\"n\":1,\"at\":5}",
        "{\"k\":\"node.retrying\",\"a\":2,\"n\":1,\"at\":5,\"due\":9,\"attempt\":1,\"error\":{}}",
        "{\"k\":\"body.started\",\"a\":2,\"o\":1,\"n\":1,\"at\":5,\"x\":7}",
        "{\"k\":\"body.ended\",\"a\":2,\"n\":1,\"at\":5,\"x\":7,\"status\":\"cancelled\"}",
        "{\"k\":\"step.started\",\"a\":2,\"o\":1,\"n\":0,\"at\":5,\"due\":9,\"attempt\":3}",
        "{\"k\":\"step.completed\",\"a\":2,\"n\":0,\"at\":5,\"result\":[1],\"state\":{\"s\":0}}",
        "{\"k\":\"step.skipped\",\"a\":2,\"n\":0,\"at\":5,\"attempt\":1,\"state\":{}}",
        "{\"k\":\"step.failed\",\"a\":2,\"n\":0,\"at\":5,\"hard\":true,\"error\":{}}",
        "{\"k\":\"step.retrying\",\"a\":2,\"n\":0,\"at\":5,\"due\":9,\"error\":{}}",
        "{\"k\":\"step.parked\",\"a\":2,\"n\":0,\"at\":5,\"due\":9,\"name\":\"go\"}",
        "{\"k\":\"step.noted\",\"a\":2,\"n\":0,\"at\":5,\"due\":9,\"name\":\"q\",\"note\":{}}",
        "{\"k\":\"step.lost\",\"a\":2,\"n\":0,\"at\":5,\"suspect\":true,\"crash\":true}",
        "{\"k\":\"step.lost\",\"a\":2,\"n\":0,\"at\":5,\"blame\":true}",
        "{\"k\":\"step.given\",\"a\":2,\"n\":0,\"at\":5,\"attempt\":1,\"input\":{\"argv\":[1]}}",
        "{\"k\":\"step.read\",\"a\":2,\"n\":0,\"at\":5,\"name\":\"logs\",\"by\":\"http\"}",
        "{\"k\":\"timer.fired\",\"a\":2,\"n\":0,\"at\":5}",
        "{\"k\":\"signal.received\",\"at\":5,\"name\":\"go\",\"result\":1}",
        "{\"k\":\"detached.ended\",\"a\":2,\"n\":0,\"at\":5}",
        "{\"k\":\"detached.cancelled\",\"at\":5}",
        "{\"k\":\"run.cancelling\",\"at\":5}",
    };
    struct fixture *fx = *state;
    bool seen[FACT_KINDS] = { false };
    struct rv__row_reader row;
    rv__row_reader_init(&row);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        struct rv__read_fact f;
        struct rv__fact replayed;
        rv_error err;
        assert_int_equal(read_one(facts[i], fx->plan, &row, &f, &err), 1);
        if (rv__fact_read(rv__str(facts[i]), &replayed, &err) < 0)
            fail_msg("%s: %s", facts[i], err.message);
        const struct rv__fact *r = &replayed;
        bool says_eval = strstr(facts[i], "\"eval\":") != NULL;
        bool says_status = strstr(facts[i], "\"status\":") != NULL;
        if (f.kind != r->kind || f.actor != r->actor || f.owner != r->owner || f.node != r->node ||
            f.at_ms != r->at_ms || f.due_ms != r->due_ms || f.index != r->index ||
            f.attempt != r->attempt || f.eval != (says_eval ? r->eval : -1) ||
            f.status != (says_status ? r->status : -1) || f.hard != r->hard ||
            f.suspect != r->suspect || f.blame != r->blame || f.crash != r->crash ||
            !rv__str_eq(f.result, rv__blob_str(r->result)) ||
            !rv__str_eq(f.state, rv__blob_str(r->state)) ||
            !rv__str_eq(f.error, rv__blob_str(r->error)) ||
            !rv__str_eq(f.given, rv__blob_str(r->given)) ||
            rv__str_none(f.name) != (r->name == NULL))
            fail_msg("read otherwise: %s", facts[i]);
        seen[f.kind] = true;
        rv__fact_done(&replayed);
    }
    for (int i = 0; i < FACT_KINDS; i++)
        if (!seen[i])
            fail_msg("no %s among them", rv__fact_kind_name((enum rv__fact_kind)i));
    rv__row_reader_done(&row);
}

/* --------------------------------------------------------------------------------- a walk --- */

struct heard {
    char text[128];
    uint64_t rows;
    int end_at; /* after so many facts; 0: never */
};

static int hear(void *arg, const struct rv__read_fact *fact, rv_error *err)
{
    struct heard *h = arg;
    size_t len = strlen(h->text);
    snprintf(h->text + len, sizeof h->text - len, "%lld;", (long long)fact->at_ms);
    return h->end_at > 0 && --h->end_at == 0 ? rv__fail(err, RV_ECANCELED, "enough") : RV_OK;
}

static void row_heard(void *arg, uint64_t seq)
{
    struct heard *h = arg;
    h->rows = seq;
}

static void a_walk_tells_each_fact_once_in_order(void **state)
{
    struct fixture *fx = *state;
    struct rv__sim_store disk;
    struct rv__store *store = &disk.store;
    uint64_t seqs[3] = { 0 };
    rv_error err;
    rv__sim_store_init(&disk);
    for (int i = 0; i < 3; i++) {
        char facts[96];
        snprintf(facts, sizeof facts,
                 "{\"k\":\"run.resumed\",\"at\":%d},{\"k\":\"run.resumed\",\"at\":%d}", 2 * i,
                 2 * i + 1);
        struct rv__store_run row = { .id = rv__str("r"),
                                     .workflow = rv__str("w"),
                                     .version = rv__str(fx->plan->version),
                                     .status = rv__str("running") };
        struct rv__store_write write = { .run = rv__str("r"),
                                         .row = i == 0 ? &row : NULL,
                                         .facts = rv__str(facts) };
        assert_int_equal(rv__store_commit(store, &write, 1, &err), RV_OK);
        seqs[i] = write.seq;
    }
    struct heard all = { .rows = 0 }, some = { .rows = 0 }, cut = { .end_at = 3 };
    struct rv__journal_walk walk = {
        .plan = fx->plan, .until = UINT64_MAX, .fact = hear, .row = row_heard, .arg = &all
    };
    assert_int_equal(rv__journal_walk(store, rv__str("r"), &walk, &err), RV_OK);
    assert_string_equal(all.text, "0;1;2;3;4;5;");
    assert_int_equal(all.rows, seqs[2]);
    walk.after = seqs[0];
    walk.until = seqs[1];
    walk.arg = &some;
    assert_int_equal(rv__journal_walk(store, rv__str("r"), &walk, &err), RV_OK);
    assert_string_equal(some.text, "2;3;");
    assert_int_equal(some.rows, seqs[1]);
    walk = (struct rv__journal_walk){
        .plan = fx->plan, .until = UINT64_MAX, .fact = hear, .row = row_heard, .arg = &cut
    };
    assert_int_equal(rv__journal_walk(store, rv__str("r"), &walk, &err), RV_ECANCELED);
    assert_string_equal(cut.text, "0;1;2;");
    assert_int_equal(cut.rows, seqs[0]); /* the second was not taken whole */
    rv__sim_store_done(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_member_has_its_field, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_said_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_disk_may_not_say_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_and_replay_agree, setup, teardown),
        cmocka_unit_test_setup_teardown(a_walk_tells_each_fact_once_in_order, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
