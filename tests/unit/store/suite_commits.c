/* suite_commits.c: what is written: turns, rows, results, snapshots, definitions. */
#include "unit/store/store_fixture.h"

#include "base/random.h"

static void an_empty_store_has_nothing(void **state)
{
    struct fixture *fx = *state;
    rv_error err;
    active_are(fx, "");
    journal_is(fx, "nobody", 0, "");
    results_are(fx, "nobody", "k", "");
    run_is(fx, "nobody", NULL);
    snapshot_is(fx, "nobody", NULL);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h"), see_text, fx, &err),
                     RV_ENOTFOUND);
    assert_non_null(strstr(err.message, "'h'"));
    assert_int_equal(rv__store_commit(fx->store, NULL, 0, NULL), RV_OK);
}

static void a_journal_is_read_in_order_and_after_a_number(void **state)
{
    struct fixture *fx = *state;
    uint64_t first = begin(fx, "a", "1");
    uint64_t other = begin(fx, "b", "9");
    uint64_t second = append(fx, "a", "2,2");
    uint64_t third = append(fx, "a", "");
    assert_true(0 < first && first < other && other < second && second < third);
    journal_is(fx, "a", 0, "[1][2,2][]");
    journal_is(fx, "a", first, "[2,2][]");
    journal_is(fx, "a", other, "[2,2][]");
    journal_is(fx, "a", third, "");
    journal_is(fx, "b", 0, "[9]");
}

static void many_runs_are_written_in_one_commit(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run a = active_row("a"), b = active_row("b");
    struct rv__store_result results[] = { { rv__str("4/0"), 1, rv__str("one") },
                                          { rv__str("4/0"), 0, rv__str("zero") } };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"), .facts = rv__str("x"), .row = &a },
        { .run = rv__str("b"),
          .facts = rv__str("y"),
          .row = &b,
          .results = results,
          .result_count = 2,
          .snapshot = rv__str("state") },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    assert_true(writes[0].seq > 0 && writes[0].seq < writes[1].seq);
    journal_is(fx, "a", 0, "[x]");
    journal_is(fx, "b", 0, "[y]");
    results_are(fx, "b", "4/0", "0=zero;1=one;");
    results_are(fx, "a", "4/0", "");
    snapshot_is(fx, "b", "state");
    snapshot_is(fx, "a", NULL);
}

static void a_write_without_facts_makes_no_row(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    struct rv__store_run row = active_row("a");
    row.status = rv__str("completed");
    struct rv__store_write write = { .run = rv__str("a"), .row = &row, .seq = 77 };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(write.seq, 0);
    journal_is(fx, "a", 0, "[1]");
    run_is(fx, "a", "a:v1:completed:{}:active:0;");
}

static void a_row_is_replaced_whole(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    struct rv__store_run row = { .id = rv__str("a"),
                                 .version = rv__str("v2"),
                                 .status = rv__str("failed"),
                                 .input = rv__str("7"),
                                 .wake_at_ms = -5 };
    struct rv__store_write write = { .run = rv__str("a"), .row = &row };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    run_is(fx, "a", "a:v2:failed:7:idle:-5;");
}

static void active_runs_are_listed_in_the_order_they_were_first_written(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "z", "1");
    begin(fx, "m", "1");
    begin(fx, "a", "1");
    begin(fx, "over", "1");
    struct rv__store_run over = active_row("over"), asleep = active_row("m");
    over.active = false;
    asleep.active = false;
    asleep.wake_at_ms = 12345;
    struct rv__store_write writes[] = { { .run = rv__str("over"), .row = &over },
                                        { .run = rv__str("m"), .row = &asleep } };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    active_are(fx, "z:v1:running:{}:active:0;a:v1:running:{}:active:0;");
    run_is(fx, "over", "over:v1:running:{}:idle:0;");
    run_is(fx, "m", "m:v1:running:{}:idle:12345;");
}

static void a_snapshot_covers_its_own_facts(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    struct rv__store_write write = { .run = rv__str("a"),
                                     .facts = rv__str("2"),
                                     .snapshot = rv__str("after 2") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    append(fx, "a", "3");
    uint64_t seq = 0;
    assert_int_equal(rv__store_snapshot(fx->store, rv__str("a"), see_seq, &seq, NULL), RV_OK);
    assert_int_equal(seq, write.seq);
    snapshot_is(fx, "a", "after 2");
    journal_is(fx, "a", seq, "[3]");

    /* And one without facts covers what was written before. */
    write = (struct rv__store_write){ .run = rv__str("a"), .snapshot = rv__str("after 3") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_snapshot(fx->store, rv__str("a"), see_seq, &seq, NULL), RV_OK);
    snapshot_is(fx, "a", "after 3");
    journal_is(fx, "a", seq, "");
    journal_is(fx, "a", 0, "[1][2][3]");
}

static void results_come_by_key_and_index(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    for (int turn = 0; turn < 3; turn++) {
        struct rv__store_result results[] = {
            { rv__str("k"), 12 - turn, rv__str("\"x\"") },
            { rv__str("k2"), turn, rv__str("{}") },
            { rv__str("k"), turn, rv__str("[1]") },
        };
        struct rv__store_write write = { .run = rv__str("a"),
                                         .results = results,
                                         .result_count = 3 };
        assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
        results_are(fx, "a", "k2",
                    turn == 0   ? "0={};"
                    : turn == 1 ? "0={};1={};"
                                : "0={};1={};2={};");
    }
    results_are(fx, "a", "k", "0=[1];1=[1];2=[1];10=\"x\";11=\"x\";12=\"x\";");
    results_are(fx, "a", "", "");
}

static void a_definition_is_kept_once(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(rv__store_define(fx->store, rv__str("h1"), rv__str("{\"a\":1}"), NULL), RV_OK);
    assert_int_equal(rv__store_define(fx->store, rv__str("h2"), rv__str("{}"), NULL), RV_OK);
    assert_int_equal(rv__store_define(fx->store, rv__str("h1"), rv__str("other"), NULL), RV_OK);
    reopen(fx);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h1"), see_text, fx, NULL), RV_OK);
    seen(fx, "{\"a\":1}");
    assert_int_equal(rv__store_definition(fx->store, rv__str("h2"), see_text, fx, NULL), RV_OK);
    seen(fx, "{}");
}

static void mistakes_are_refused_and_write_nothing(void **state)
{
    struct fixture *fx = *state;
    rv_error err;
    begin(fx, "a", "1");
    struct rv__store_result result = { rv__str("k"), 3, rv__str("first") };
    struct rv__store_write write = { .run = rv__str("a"), .results = &result, .result_count = 1 };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);

    struct rv__store_write to_nobody = { .run = rv__str("b"), .facts = rv__str("2") };
    assert_int_equal(rv__store_commit_one(fx->store, &to_nobody, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "'b'"));

    result.json = rv__str("second");
    write.facts = rv__str("2");
    assert_int_equal(rv__store_commit_one(fx->store, &write, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "'k' 3"));

    struct rv__store_run row = active_row("other");
    struct rv__store_write wrong = { .run = rv__str("a"), .row = &row };
    assert_int_equal(rv__store_commit_one(fx->store, &wrong, &err), RV_EINVAL);

    journal_is(fx, "a", 0, "[1]");
    results_are(fx, "a", "k", "3=first;");
    run_is(fx, "b", NULL);
    run_is(fx, "other", NULL);
}

static void what_was_committed_survives_and_numbers_go_on(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    struct rv__store_result result = { rv__str("k"), 3, rv__str("r") };
    struct rv__store_write write = { .run = rv__str("a"),
                                     .facts = rv__str("2"),
                                     .results = &result,
                                     .result_count = 1,
                                     .snapshot = rv__str("s") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    reopen(fx);
    journal_is(fx, "a", 0, "[1][2]");
    results_are(fx, "a", "k", "3=r;");
    snapshot_is(fx, "a", "s");
    active_are(fx, "a:v1:running:{}:active:0;");
    assert_true(append(fx, "a", "3") > write.seq);
}

static void a_failed_commit_leaves_nothing_and_can_be_repeated(void **state)
{
    struct fixture *fx = *state;
    if (fx->maker->fail_next == NULL)
        return; /* this store is made to fail elsewhere: test_sqlite_faults.c */
    begin(fx, "a", "1");
    struct rv__store_run b = active_row("b");
    struct rv__store_result result = { rv__str("k"), 0, rv__str("r") };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"),
          .facts = rv__str("2"),
          .results = &result,
          .result_count = 1,
          .snapshot = rv__str("s"),
          .seq = 77 },
        { .run = rv__str("b"), .facts = rv__str("1"), .row = &b, .seq = 77 },
    };
    fx->maker->fail_next(fx->maker, fx->store);
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_ESTORE);
    assert_int_equal(writes[0].seq, 77);
    assert_int_equal(writes[1].seq, 77);
    journal_is(fx, "a", 0, "[1]");
    results_are(fx, "a", "k", "");
    snapshot_is(fx, "a", NULL);
    run_is(fx, "b", NULL);
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    journal_is(fx, "a", 0, "[1][2]");
    journal_is(fx, "b", 0, "[1]");
    results_are(fx, "a", "k", "0=r;");
}

static void no_memory_leaves_nothing(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    struct rv__store_run b = active_row("b");
    struct rv__store_result results[] = { { rv__str("k"), 0, rv__str("r") },
                                          { rv__str("k"), 1, rv__str("r") } };
    struct rv__store_log line = { .step = rv__str("s"),
                                  .path = rv__str("p"),
                                  .message = rv__str("m"),
                                  .metadata = rv__str("{}") };
    struct rv__store_definition definition = { rv__str("h0"), rv__str("{}") };
    struct rv__store_touch touched = { .status = rv__str("s"),
                                       .error = rv__str("e"),
                                       .failed_step = rv__str("f"),
                                       .suspension = rv__str("x") };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"),
          .facts = rv__str("2"),
          .results = results,
          .result_count = 2,
          .touch = &touched,
          .snapshot = rv__str("s") },
        { .run = rv__str("b"),
          .facts = rv__str("1"),
          .row = &b,
          .logs = &line,
          .log_count = 1,
          .definitions = &definition,
          .definition_count = 1 },
    };
    int rc;
    b.workflow = b.error = b.input_key = rv__str("text");
    b.failed_step = b.suspension = rv__str("text");
    TORTURE(rc, rv__store_commit(fx->store, writes, 2, NULL), {
        journal_is(fx, "a", 0, "[1]");
        results_are(fx, "a", "k", "");
        snapshot_is(fx, "a", NULL);
        run_is(fx, "b", NULL);
    });
    assert_int_equal(rc, RV_OK);
    results_are(fx, "a", "k", "0=r;1=r;");
    TORTURE(rc, rv__store_define(fx->store, rv__str("h"), rv__str("{}"), NULL),
            assert_int_equal(rv__store_definition(fx->store, rv__str("h"), see_text, fx, NULL),
                             RV_ENOTFOUND));
    assert_int_equal(rc, RV_OK);
}

static int stop_at_result(void *arg, int64_t index, struct rv__str json)
{
    (void)index;
    return stop_at_once(arg, 0, json);
}

static void a_visitor_can_end_the_reading(void **state)
{
    struct fixture *fx = *state;
    int calls = 0;
    begin(fx, "a", "1");
    begin(fx, "b", "1");
    append(fx, "a", "2");
    struct rv__store_result results[] = { { rv__str("k"), 0, rv__str("r") },
                                          { rv__str("k"), 1, rv__str("r") } };
    struct rv__store_write write = { .run = rv__str("a"), .results = results, .result_count = 2 };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_journal(fx->store, rv__str("a"), 0, stop_at_once, &calls, NULL),
                     RV_ECANCELED);
    assert_int_equal(rv__store_results(fx->store, rv__str("a"), rv__str("k"), INT64_MIN, SIZE_MAX,
                                       stop_at_result, &calls, NULL),
                     RV_ECANCELED);
    assert_int_equal(rv__store_active(fx->store, stop_at_run, &calls, NULL), RV_ECANCELED);
    assert_int_equal(calls, 3);
}

/* Texts are bytes to a store: quotes, NULs and large ones come back as they went in. */
static void texts_come_back_byte_for_byte(void **state)
{
    struct fixture *fx = *state;
    enum { BIG = 3 << 20 };
    char *big = malloc(BIG);
    assert_non_null(big);
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)('a' + i % 26);
    struct rv__str odd = RV__STR("{\"quote'\\\"\":\"a\0b%s;--\xC3\xA9\"}");
    struct rv__store_run row = active_row("it's");
    row.input = odd;
    struct rv__store_result result = { odd, 0, (struct rv__str){ big, BIG } };
    struct rv__store_write write = {
        .run = rv__str("it's"), .facts = odd, .row = &row, .results = &result, .result_count = 1
    };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_journal(fx->store, rv__str("it's"), 0, see_text, fx, NULL), RV_OK);
    assert_true(rv__str_eq(rv__buf_view(&fx->seen), odd));
    rv__buf_reset(&fx->seen);
    assert_int_equal(rv__store_results(fx->store, rv__str("it's"), odd, INT64_MIN, SIZE_MAX,
                                       see_result, fx, NULL),
                     RV_OK);
    assert_int_equal(fx->seen.len, BIG + 3);
    assert_memory_equal(fx->seen.text + 2, big, BIG);
    free(big);
}

/* Random turns of random runs against lists kept here. */
static void random_use_is_remembered(void **state)
{
    struct fixture *fx = *state;
    enum { RUNS = 7, TURNS = 600 };
    struct rv__buf expected[RUNS];
    uint64_t last_seq = 0;
    struct rv__random random;
    rv__random_init(&random, 42);
    for (int i = 0; i < RUNS; i++) {
        char id[2] = { (char)('a' + i), 0 };
        rv__buf_init(&expected[i], SIZE_MAX);
        begin(fx, id, "0");
        rv__buf_text(&expected[i], "[0]");
    }
    for (int turn = 1; turn < TURNS; turn++) {
        struct rv__store_write writes[RUNS] = { 0 };
        char ids[RUNS][2], facts[RUNS][16];
        size_t count = 0;
        for (int i = 0; i < RUNS; i++) {
            if (rv__random_below(&random, 3) != 0)
                continue;
            snprintf(ids[count], sizeof ids[count], "%c", 'a' + i);
            snprintf(facts[count], sizeof facts[count], "%d", turn);
            writes[count] = (struct rv__store_write){ .run = rv__str(ids[count]),
                                                      .facts = rv__str(facts[count]) };
            rv__buf_fmt(&expected[i], "[%d]", turn);
            count++;
        }
        assert_int_equal(rv__store_commit(fx->store, writes, count, NULL), RV_OK);
        for (size_t i = 0; i < count; i++) {
            assert_true(writes[i].seq > last_seq);
            last_seq = writes[i].seq;
        }
        if (rv__random_below(&random, 50) == 0)
            reopen(fx);
    }
    for (int i = 0; i < RUNS; i++) {
        char id[2] = { (char)('a' + i), 0 };
        journal_is(fx, id, 0, expected[i].text);
        rv__buf_done(&expected[i]);
    }
}

static int see_columns(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%lld|%lld|%lld|%d|%lld;",
                RV__ARG(row->id), RV__ARG(row->workflow), RV__ARG(row->version),
                RV__ARG(row->status), RV__ARG(row->input), RV__ARG(row->input_key),
                RV__ARG(row->error), RV__ARG(row->failed_step), RV__ARG(row->suspension),
                (long long)row->created_ms, (long long)row->started_ms,
                (long long)row->completed_ms, row->active, (long long)row->wake_at_ms);
    return RV_OK;
}

static void columns_are(struct fixture *fx, const char *run, const char *expected)
{
    assert_int_equal(rv__store_run(fx->store, rv__str(run), see_columns, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void every_column_of_a_row_comes_back(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = full_row("a");
    row.error = rv__str("{\"e\":1}");
    row.failed_step = rv__str("step");
    row.suspension = rv__str("{\"why\":1}");
    row.completed_ms = 12;
    row.wake_at_ms = 99;
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"), .row = &row });
    reopen(fx);
    columns_are(fx, "a", "a|wf|v1|running|{\"n\":1}|abc|{\"e\":1}|step|{\"why\":1}|10|11|12|1|99;");
}

static int see_none(void *arg, const struct rv__store_run *row)
{
    *(bool *)arg = rv__str_none(row->workflow) && rv__str_none(row->version) &&
                   rv__str_none(row->status) && rv__str_none(row->input) &&
                   rv__str_none(row->input_key) && rv__str_none(row->error) &&
                   rv__str_none(row->failed_step) && rv__str_none(row->suspension);
    return RV_OK;
}

static void none_is_not_the_empty_text(void **state)
{
    struct fixture *fx = *state;
    bool none = false;
    struct rv__store_run row = { .id = rv__str("a") };
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"), .row = &row });
    assert_int_equal(rv__store_run(fx->store, rv__str("a"), see_none, &none, NULL), RV_OK);
    assert_true(none);
    row = (struct rv__store_run){ .id = rv__str("a"),
                                  .workflow = rv__str(""),
                                  .input = rv__str("") };
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"), .row = &row });
    assert_int_equal(rv__store_run(fx->store, rv__str("a"), see_none, &none, NULL), RV_OK);
    assert_false(none);
}

static void a_touch_changes_its_columns_and_no_others(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = full_row("a");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"), .row = &row });
    touch(fx, "a",
          (struct rv__store_touch){ .status = rv__str("failed"),
                                    .completed_ms = 20,
                                    .error = rv__str("{}"),
                                    .failed_step = rv__str("s"),
                                    .suspension = rv__str("x"),
                                    .wake_at_ms = 7 });
    columns_are(fx, "a", "a|wf|v1|failed|{\"n\":1}|abc|{}|s|x|10|11|20|0|7;");
    touch(fx, "a", (struct rv__store_touch){ .status = rv__str("running"), .active = true });
    columns_are(fx, "a", "a|wf|v1|running|{\"n\":1}|abc||||10|11|0|1|0;");
}

static void a_touch_needs_a_row_and_comes_alone(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_touch touched = { .status = rv__str("failed") };
    struct rv__store_run row = full_row("a");
    struct rv__store_write write = { .run = rv__str("a"), .touch = &touched };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
    write.row = &row;
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
    run_is(fx, "a", NULL);
}

static void definitions_ride_along(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = full_row("a");
    struct rv__store_definition definitions[] = { { rv__str("h1"), rv__str("one") },
                                                  { rv__str("h2"), rv__str("two") },
                                                  { rv__str("h1"), rv__str("other") } };
    struct rv__store_write write = { .run = rv__str("a"),
                                     .facts = rv__str("f"),
                                     .definitions = definitions,
                                     .definition_count = 3 };
    write.row = &row;
    commit_one(fx, write);
    commit_one(fx, write);
    write = (struct rv__store_write){ .run = rv__str("nobody"), .facts = rv__str("f") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h1"), see_text, fx, NULL), RV_OK);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h2"), see_text, fx, NULL), RV_OK);
    seen(fx, "onetwo");
}

int store_suite_commits(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(an_empty_store_has_nothing),
        STORE_CASE(a_journal_is_read_in_order_and_after_a_number),
        STORE_CASE(many_runs_are_written_in_one_commit),
        STORE_CASE(a_write_without_facts_makes_no_row),
        STORE_CASE(a_row_is_replaced_whole),
        STORE_CASE(active_runs_are_listed_in_the_order_they_were_first_written),
        STORE_CASE(a_snapshot_covers_its_own_facts),
        STORE_CASE(results_come_by_key_and_index),
        STORE_CASE(a_definition_is_kept_once),
        STORE_CASE(mistakes_are_refused_and_write_nothing),
        STORE_CASE(what_was_committed_survives_and_numbers_go_on),
        STORE_CASE(a_failed_commit_leaves_nothing_and_can_be_repeated),
        STORE_CASE(no_memory_leaves_nothing),
        STORE_CASE(a_visitor_can_end_the_reading),
        STORE_CASE(texts_come_back_byte_for_byte),
        STORE_CASE(random_use_is_remembered),
        STORE_CASE(every_column_of_a_row_comes_back),
        STORE_CASE(none_is_not_the_empty_text),
        STORE_CASE(a_touch_changes_its_columns_and_no_others),
        STORE_CASE(a_touch_needs_a_row_and_comes_alone),
        STORE_CASE(definitions_ride_along),
    };
    return STORE_GROUP("store: commits", tests);
}
