/* store_suite.c: the contract of src/store/store.h as tests that any store can be run through. */
#include "unit/test.h"

#include <pthread.h>

#include "unit/store/store_suite.h"

#include "base/random.h"

struct fixture {
    struct store_maker *maker;
    struct rv__store *store;
    struct rv__buf seen; /* what the visitors saw, as text */
};

static struct store_maker *the_maker; /* cmocka's setup gets no argument of ours */

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    fx->maker = the_maker;
    fx->store = fx->maker->open(fx->maker);
    assert_non_null(fx->store);
    rv__buf_init(&fx->seen, SIZE_MAX);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    fx->maker->remove(fx->maker, fx->store);
    rv__buf_done(&fx->seen);
    free(fx);
    return 0;
}

static void reopen(struct fixture *fx)
{
    fx->store = fx->maker->reopen(fx->maker, fx->store);
    assert_non_null(fx->store);
}

/* ------------------------------------------------------------------------- what is there --- */

static int see_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "[%.*s]", RV__ARG(facts));
    return RV_OK;
}

static int see_result(void *arg, int64_t index, struct rv__str json)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%lld=%.*s;", (long long)index, RV__ARG(json));
    return RV_OK;
}

static int see_run(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s:%.*s:%.*s:%.*s:%s:%lld;", RV__ARG(row->id), RV__ARG(row->version),
                RV__ARG(row->status), RV__ARG(row->input), row->active ? "active" : "idle",
                (long long)row->wake_at_ms);
    return RV_OK;
}

static int see_text(void *arg, uint64_t seq, struct rv__str text)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_str(&fx->seen, text);
    return RV_OK;
}

static int see_seq(void *arg, uint64_t seq, struct rv__str text)
{
    (void)text;
    *(uint64_t *)arg = seq;
    return RV_OK;
}

static void seen(struct fixture *fx, const char *expected)
{
    assert_str(rv__buf_view(&fx->seen), expected);
    rv__buf_reset(&fx->seen);
}

static void journal_is(struct fixture *fx, const char *run, uint64_t after, const char *expected)
{
    assert_int_equal(rv__store_journal(fx->store, rv__str(run), after, see_row, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void results_are(struct fixture *fx, const char *run, const char *key, const char *expected)
{
    assert_int_equal(rv__store_results(fx->store, rv__str(run), rv__str(key), see_result, fx, NULL),
                     RV_OK);
    seen(fx, expected);
}

static void active_are(struct fixture *fx, const char *expected)
{
    assert_int_equal(rv__store_active(fx->store, see_run, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void run_is(struct fixture *fx, const char *run, const char *expected)
{
    int rc = rv__store_run(fx->store, rv__str(run), see_run, fx, NULL);
    assert_int_equal(rc, expected != NULL ? RV_OK : RV_ENOTFOUND);
    seen(fx, expected != NULL ? expected : "");
}

static void snapshot_is(struct fixture *fx, const char *run, const char *expected)
{
    int rc = rv__store_snapshot(fx->store, rv__str(run), see_text, fx, NULL);
    assert_int_equal(rc, expected != NULL ? RV_OK : RV_ENOTFOUND);
    seen(fx, expected != NULL ? expected : "");
}

/* ------------------------------------------------------------------------------- writing --- */

static struct rv__store_run active_row(const char *id)
{
    return (struct rv__store_run){ .id = rv__str(id),
                                   .version = rv__str("v1"),
                                   .status = rv__str("running"),
                                   .input = rv__str("{}"),
                                   .active = true };
}

/* The first turn of a run: its row and its first facts. */
static uint64_t begin(struct fixture *fx, const char *id, const char *facts)
{
    struct rv__store_run row = active_row(id);
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts), .row = &row };
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
    return write.seq;
}

static uint64_t append(struct fixture *fx, const char *id, const char *facts)
{
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts) };
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
    return write.seq;
}

/* --------------------------------------------------------------------------------- tests --- */

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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
    append(fx, "a", "3");
    uint64_t seq = 0;
    assert_int_equal(rv__store_snapshot(fx->store, rv__str("a"), see_seq, &seq, NULL), RV_OK);
    assert_int_equal(seq, write.seq);
    snapshot_is(fx, "a", "after 2");
    journal_is(fx, "a", seq, "[3]");

    /* And one without facts covers what was written before. */
    write = (struct rv__store_write){ .run = rv__str("a"), .snapshot = rv__str("after 3") };
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
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
        assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);

    struct rv__store_write to_nobody[] = {
        { .run = rv__str("a"), .facts = rv__str("2"), .seq = 77 },
        { .run = rv__str("b"), .facts = rv__str("2"), .seq = 77 },
    };
    assert_int_equal(rv__store_commit(fx->store, to_nobody, 2, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "'b'"));
    assert_int_equal(to_nobody[0].seq, 77);

    result.json = rv__str("second");
    write.facts = rv__str("2");
    assert_int_equal(rv__store_commit(fx->store, &write, 1, &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "'k' 3"));

    struct rv__store_run row = active_row("other");
    struct rv__store_write wrong = { .run = rv__str("a"), .row = &row };
    assert_int_equal(rv__store_commit(fx->store, &wrong, 1, &err), RV_EINVAL);

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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
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

static int stop_at_once(void *arg, uint64_t seq, struct rv__str text)
{
    (void)seq;
    (void)text;
    ++*(int *)arg;
    return RV_ECANCELED;
}

static int stop_at_result(void *arg, int64_t index, struct rv__str json)
{
    (void)index;
    return stop_at_once(arg, 0, json);
}

static int stop_at_run(void *arg, const struct rv__store_run *row)
{
    return stop_at_once(arg, 0, row->id);
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
    assert_int_equal(rv__store_journal(fx->store, rv__str("a"), 0, stop_at_once, &calls, NULL),
                     RV_ECANCELED);
    assert_int_equal(
        rv__store_results(fx->store, rv__str("a"), rv__str("k"), stop_at_result, &calls, NULL),
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_OK);
    assert_int_equal(rv__store_journal(fx->store, rv__str("it's"), 0, see_text, fx, NULL), RV_OK);
    assert_true(rv__str_eq(rv__buf_view(&fx->seen), odd));
    rv__buf_reset(&fx->seen);
    assert_int_equal(rv__store_results(fx->store, rv__str("it's"), odd, see_result, fx, NULL),
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

/* ---------------------------------------------------------------- rows, touches, definitions --- */

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

static struct rv__store_run full_row(const char *id)
{
    return (struct rv__store_run){ .id = rv__str(id),
                                   .workflow = rv__str("wf"),
                                   .version = rv__str("v1"),
                                   .status = rv__str("running"),
                                   .input = rv__str("{\"n\":1}"),
                                   .input_key = rv__str("abc"),
                                   .created_ms = 10,
                                   .started_ms = 11,
                                   .active = true };
}

static void commit_one(struct fixture *fx, struct rv__store_write write)
{
    rv_error err = { 0, "" };
    if (rv__store_commit(fx->store, &write, 1, &err) != RV_OK)
        fail_msg("%s", err.message);
}

static void touch(struct fixture *fx, const char *id, struct rv__store_touch touch)
{
    commit_one(fx, (struct rv__store_write){ .run = rv__str(id), .touch = &touch });
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_EINVAL);
    write.row = &row;
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_EINVAL);
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
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_EINVAL); /* no such run */
    assert_int_equal(rv__store_definition(fx->store, rv__str("h1"), see_text, fx, NULL),
                     RV_ENOTFOUND);
    write.row = &row;
    commit_one(fx, write);
    commit_one(fx, write);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h1"), see_text, fx, NULL), RV_OK);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h2"), see_text, fx, NULL), RV_OK);
    seen(fx, "onetwo");
}

/* ------------------------------------------------------------------------ waking, the feed --- */

static int see_id(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s%s ", RV__ARG(row->id), rv__str_none(row->input) ? "" : "+");
    return RV_OK;
}

/* A run that is written with these times and flags, active by 1. */
static void put(struct fixture *fx, const char *id, const char *status, int64_t created_ms,
                int64_t completed_ms, bool active, int64_t wake_at_ms)
{
    struct rv__store_run row = full_row(id);
    row.status = rv__str(status);
    row.created_ms = created_ms;
    row.completed_ms = completed_ms;
    row.active = active;
    row.wake_at_ms = wake_at_ms;
    commit_one(fx,
               (struct rv__store_write){ .run = rv__str(id), .row = &row, .facts = rv__str("f") });
}

static void due_are(struct fixture *fx, int64_t now_ms, const struct rv__store_place *after,
                    size_t limit, const char *expected)
{
    assert_int_equal(rv__store_due(fx->store, now_ms, after, limit, see_id, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void sleeping_runs_are_due_earliest_first(void **state)
{
    struct fixture *fx = *state;
    put(fx, "late", "running", 1, 0, false, 300);
    put(fx, "b", "running", 1, 0, false, 100);
    put(fx, "a", "running", 1, 0, false, 100);
    put(fx, "early", "running", 1, 0, false, -5);
    put(fx, "awake", "running", 1, 0, true, 0);
    due_are(fx, -6, NULL, 9, "");
    due_are(fx, 99, NULL, 9, "early+ ");
    due_are(fx, 100, NULL, 9, "early+ b+ a+ ");
    due_are(fx, 1000, NULL, SIZE_MAX, "early+ b+ a+ late+ ");
    due_are(fx, 1000, NULL, 2, "early+ b+ ");
    due_are(fx, 1000, NULL, 0, "");
    due_are(fx, 1000, &(struct rv__store_place){ 100, 2 }, 9, "a+ late+ "); /* behind b */
    due_are(fx, 1000, &(struct rv__store_place){ 100, 3 }, 9, "late+ ");
    touch(fx, "b", (struct rv__store_touch){ .status = rv__str("running"), .active = true });
    due_are(fx, 1000, NULL, 9, "early+ a+ late+ ");
}

static void the_next_wake_is_the_earliest_after(void **state)
{
    struct fixture *fx = *state;
    int64_t next = 77;
    assert_int_equal(rv__store_next_wake(fx->store, INT64_MIN, &next, NULL), RV_OK);
    assert_int_equal(next, 0);
    put(fx, "a", "running", 1, 0, false, 100);
    put(fx, "b", "running", 1, 0, false, 50);
    put(fx, "c", "running", 1, 0, true, 0);
    assert_int_equal(rv__store_next_wake(fx->store, INT64_MIN, &next, NULL), RV_OK);
    assert_int_equal(next, 50);
    assert_int_equal(rv__store_next_wake(fx->store, 50, &next, NULL), RV_OK);
    assert_int_equal(next, 100);
    assert_int_equal(rv__store_next_wake(fx->store, 100, &next, NULL), RV_OK);
    assert_int_equal(next, 0);
}

static int see_number(void *arg, const struct rv__store_run *row)
{
    *(uint64_t *)arg = row->number;
    return RV_OK;
}

static void active_runs_come_by_pages(void **state)
{
    struct fixture *fx = *state;
    enum { RUNS = 2500 };
    uint64_t after = 0, number = 0;
    size_t runs = 0;
    for (int i = 0; i < RUNS; i += 250) {
        struct rv__store_run rows[250];
        struct rv__store_write writes[250];
        char ids[250][8];
        for (int k = 0; k < 250; k++) {
            snprintf(ids[k], sizeof ids[k], "%d", i + k);
            rows[k] = active_row(ids[k]);
            rows[k].active = (i + k) % 2 == 0;
            writes[k] = (struct rv__store_write){ .run = rv__str(ids[k]), .row = &rows[k] };
        }
        assert_int_equal(rv__store_commit(fx->store, writes, 250, NULL), RV_OK);
    }
    do {
        after = number;
        assert_int_equal(rv__store_active_after(fx->store, after, 3, see_number, &number, NULL),
                         RV_OK);
        runs += number > after ? (number - after + 1) / 2 : 0; /* every second one is active */
    } while (number > after);
    assert_int_equal(number, RUNS - 1);
    assert_int_equal(runs, RUNS / 2);
    /* And all of them in one call, which is longer than a page of any store. */
    assert_int_equal(rv__store_active(fx->store, see_id, fx, NULL), RV_OK);
    runs = 0;
    for (size_t i = 0; i < fx->seen.len; i++)
        runs += fx->seen.text[i] == ' ';
    assert_int_equal(runs, RUNS / 2);
    assert_int_equal(rv__store_active_after(fx->store, UINT64_MAX, 9, stop_at_run, NULL, NULL),
                     RV_OK);
}

static int see_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "%.*s:%.*s ", RV__ARG(run), RV__ARG(facts));
    return RV_OK;
}

static uint64_t last_seq(struct fixture *fx)
{
    struct rv__store_usage usage;
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    return usage.last_seq;
}

static void feed_is(struct fixture *fx, uint64_t after, size_t limit, const char *expected)
{
    assert_int_equal(rv__store_feed(fx->store, after, limit, see_feed, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void the_feed_has_all_rows_of_all_runs_in_order(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(last_seq(fx), 0);
    feed_is(fx, 0, 9, "");
    begin(fx, "b", "1");
    uint64_t second = begin(fx, "a", "2");
    append(fx, "b", "3");
    uint64_t fourth = append(fx, "a", "4");
    assert_int_equal(last_seq(fx), fourth);
    feed_is(fx, 0, SIZE_MAX, "b:1 a:2 b:3 a:4 ");
    feed_is(fx, 0, 2, "b:1 a:2 ");
    feed_is(fx, second, 9, "b:3 a:4 ");
    feed_is(fx, fourth, 9, "");
    feed_is(fx, UINT64_MAX, 9, "");
    feed_is(fx, 0, 0, "");
}

/* Longer than a page of any store, so that going on from page to page is met. */
static void long_journals_and_results_are_whole(void **state)
{
    struct fixture *fx = *state;
    enum { ROWS = 2300 };
    struct rv__store_result *results = calloc(ROWS, sizeof *results);
    assert_non_null(results);
    begin(fx, "a", "x");
    for (int i = 0; i < ROWS; i++) {
        results[i] = (struct rv__store_result){ rv__str("k"), i - 5, rv__str("r") };
        append(fx, "a", "x");
    }
    results[0].index = INT64_MIN;
    results[1].index = INT64_MAX;
    commit_one(fx, (struct rv__store_write){
                       .run = rv__str("a"), .results = results, .result_count = ROWS });
    free(results);
    assert_int_equal(rv__store_journal(fx->store, rv__str("a"), 0, see_text, fx, NULL), RV_OK);
    assert_int_equal(fx->seen.len, ROWS + 1);
    rv__buf_reset(&fx->seen);
    assert_int_equal(rv__store_feed(fx->store, 0, SIZE_MAX, see_feed, fx, NULL), RV_OK);
    assert_int_equal(fx->seen.len, (ROWS + 1) * 4);
    rv__buf_reset(&fx->seen);
    assert_int_equal(rv__store_results(fx->store, rv__str("a"), rv__str("k"), see_result, fx, NULL),
                     RV_OK);
    size_t rows = 0;
    for (size_t i = 0; i < fx->seen.len; i++)
        rows += fx->seen.text[i] == ';';
    assert_int_equal(rows, ROWS);
}

/* ----------------------------------------------------------------------------------- lists --- */

static void list_is(struct fixture *fx, struct rv__store_query query, const char *expected)
{
    assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, NULL, NULL), RV_OK);
    seen(fx, expected);
}

static void put_in(struct fixture *fx, const char *id, const char *workflow, const char *status,
                   int64_t created_ms)
{
    struct rv__store_run row = full_row(id);
    row.workflow = rv__str(workflow);
    row.status = rv__str(status);
    row.created_ms = created_ms;
    commit_one(fx, (struct rv__store_write){ .run = rv__str(id), .row = &row });
}

static void some_runs(struct fixture *fx)
{
    put_in(fx, "r1", "alpha", "completed", 100);
    put_in(fx, "r3", "beta", "failed", 300);
    put_in(fx, "r2b", "alpha", "failed", 200);
    put_in(fx, "r2a", "beta", "completed", 200);
    put_in(fx, "r4", "alpha", "running", 400);
}

static void lists_have_the_newest_first(void **state)
{
    struct fixture *fx = *state;
    list_is(fx, (struct rv__store_query){ .limit = 0 }, "");
    some_runs(fx);
    list_is(fx, (struct rv__store_query){ .limit = 0 }, "r4 r3 r2b r2a r1 ");
    list_is(fx, (struct rv__store_query){ .limit = 2 }, "r4 r3 ");
    list_is(fx, (struct rv__store_query){ .with_input = true, .limit = 1 }, "r4+ ");
}

static void lists_are_filtered(void **state)
{
    struct fixture *fx = *state;
    some_runs(fx);
    list_is(fx, (struct rv__store_query){ .workflow = rv__str("alpha") }, "r4 r2b r1 ");
    list_is(fx, (struct rv__store_query){ .workflow = rv__str("nobody") }, "");
    list_is(fx, (struct rv__store_query){ .status = rv__str("failed") }, "r3 r2b ");
    list_is(fx, (struct rv__store_query){ .status = rv__str("nothing") }, "");
    list_is(fx,
            (struct rv__store_query){ .workflow = rv__str("alpha"), .status = rv__str("failed") },
            "r2b ");
    list_is(fx,
            (struct rv__store_query){ .workflow = rv__str("beta"), .status = rv__str("running") },
            "");
    list_is(fx, (struct rv__store_query){ .since_ms = 200 }, "r4 r3 r2b r2a ");
    list_is(fx, (struct rv__store_query){ .until_ms = 200 }, "r1 ");
    list_is(fx, (struct rv__store_query){ .since_ms = 200, .until_ms = 400 }, "r3 r2b r2a ");
    list_is(fx,
            (struct rv__store_query){
                .since_ms = 200, .until_ms = 400, .status = rv__str("completed") },
            "r2a ");
    list_is(fx, (struct rv__store_query){ .since_ms = 401 }, "");
}

static void lists_are_searched_for_text(void **state)
{
    struct fixture *fx = *state;
    some_runs(fx);
    struct rv__store_run row = full_row("other");
    row.input = rv__str("{\"who\":\"Ada 100%_\"}");
    row.error = rv__str("{\"message\":\"No Route\"}");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("other"), .row = &row });
    list_is(fx, (struct rv__store_query){ .text = rv__str("R2") }, "r2b r2a ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("BET") }, "r3 r2a ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("no route") }, "other ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("ada"), .with_input = true }, "other+ ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("0%_") }, "other ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("%") }, "other ");
    list_is(fx, (struct rv__store_query){ .text = rv__str("nowhere") }, "");
    list_is(fx, (struct rv__store_query){ .text = rv__str("r"), .status = rv__str("failed") },
            "r3 r2b ");
}

static void a_list_goes_on_from_its_cursor(void **state)
{
    struct fixture *fx = *state;
    static const struct rv__store_query filters[] = {
        { .limit = 1 },
        { .limit = 2 },
        { .limit = 1, .workflow = RV__STR("alpha") },
        { .limit = 1, .status = RV__STR("failed") },
        { .limit = 2, .since_ms = 200 },
        { .limit = 2, .until_ms = 400 },
        { .limit = 1, .text = RV__STR("r2") },
    };
    static const char *const expected[] = { "r4 r3 r2b r2a r1 ", "r4 r3 r2b r2a r1 ",
                                            "r4 r2b r1 ",        "r3 r2b ",
                                            "r4 r3 r2b r2a ",    "r3 r2b r2a r1 ",
                                            "r2b r2a " };
    struct rv__buf cursor;
    some_runs(fx);
    rv__buf_init(&cursor, SIZE_MAX);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        struct rv__store_query query = filters[i];
        int pages = 0;
        do {
            int rc = rv__store_list(fx->store, &query, see_id, fx, &cursor, NULL);
            if (rc != RV_OK || ++pages > 10)
                fail_msg("filter %zu: %d, page %d", i, rc, pages);
            query.cursor = rv__buf_view(&cursor); /* the same buffer, as a caller would */
        } while (cursor.len > 0);
        seen(fx, expected[i]);
    }
    rv__buf_done(&cursor);
    /* A run that comes in between is not met, one that is gone does not matter. */
    list_is(fx, (struct rv__store_query){ .cursor = rv__str("200:r2b") }, "r2a r1 ");
    list_is(fx, (struct rv__store_query){ .cursor = rv__str("250:gone") }, "r2b r2a r1 ");
    static const char *const bad[] = { "", ":", "x", "12", "1x:a", "99999999999999999999999999:a" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rv__store_query query = { .cursor = rv__str(bad[i]) };
        assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, NULL, NULL), RV_EINVAL);
    }
}

static void a_list_has_at_most_a_thousand(void **state)
{
    struct fixture *fx = *state;
    struct rv__buf cursor;
    rv__buf_init(&cursor, SIZE_MAX);
    for (int i = 0; i < 1003; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        begin(fx, id, "");
    }
    struct rv__store_query query = { .limit = 5000 };
    assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, &cursor, NULL), RV_OK);
    size_t rows = 0;
    for (size_t i = 0; i < fx->seen.len; i++)
        rows += fx->seen.text[i] == ' ';
    assert_int_equal(rows, RV__STORE_LIST_MAX);
    rv__buf_reset(&fx->seen);
    query.cursor = rv__buf_view(&cursor);
    assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, &cursor, NULL), RV_OK);
    seen(fx, "10 1 0 "); /* by id: the times are equal */
    assert_int_equal(cursor.len, 0);
    query = (struct rv__store_query){ .limit = 0 };
    assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, NULL, NULL), RV_OK);
    rows = 0;
    for (size_t i = 0; i < fx->seen.len; i++)
        rows += fx->seen.text[i] == ' ';
    assert_int_equal(rows, RV__STORE_LIST_DEFAULT);
    rv__buf_done(&cursor);
}

/* ------------------------------------------------------------------------------------ logs --- */

static int see_log(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s|%lld|%d|%.*s|%.*s|%lld|%.*s|%.*s;", RV__ARG(line->run),
                (long long)line->at_ms, (int)line->level, RV__ARG(line->path), RV__ARG(line->step),
                (long long)line->attempt, RV__ARG(line->message), RV__ARG(line->metadata));
    return RV_OK;
}

static int see_message(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s ", RV__ARG(line->message));
    return RV_OK;
}

static int see_log_id(void *arg, const struct rv__store_log *line)
{
    uint64_t *last = arg;
    assert_true(line->id > *last);
    *last = line->id;
    return RV_OK;
}

static void logs_are(struct fixture *fx, struct rv__store_log_query query, const char *expected)
{
    query.limit = query.limit == 0 ? SIZE_MAX : query.limit;
    assert_int_equal(rv__store_logs(fx->store, &query, see_message, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void log_line(struct fixture *fx, const char *run, enum rv__store_level level,
                     const char *step, const char *message)
{
    struct rv__store_log line = { .level = level,
                                  .step = rv__str(step),
                                  .message = rv__str(message) };
    commit_one(fx, (struct rv__store_write){ .run = rv__str(run), .logs = &line, .log_count = 1 });
}

static void log_lines_are_kept_in_order(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run a = full_row("a");
    struct rv__store_log lines[] = {
        { .at_ms = 5,
          .level = STORE_WARNING,
          .path = rv__str("loop/2/s"),
          .step = rv__str("s"),
          .attempt = 3,
          .message = rv__str("hello"),
          .metadata = rv__str("{\"x\":1}") },
        { .at_ms = 4, .level = STORE_DEBUG, .message = rv__str("world") },
    };
    uint64_t last = 0;
    commit_one(fx, (struct rv__store_write){
                       .run = rv__str("a"), .row = &a, .logs = lines, .log_count = 2 });
    reopen(fx);
    begin(fx, "b", "");
    log_line(fx, "b", STORE_INFO, NULL, "third");
    log_line(fx, "a", STORE_INFO, NULL, "fourth");
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    assert_int_equal(rv__store_logs(fx->store, &query, see_log, fx, NULL), RV_OK);
    seen(fx, "a|5|2|loop/2/s|s|3|hello|{\"x\":1};a|4|0|||0|world|;b|0|1|||0|third|;"
             "a|0|1|||0|fourth|;");
    assert_int_equal(rv__store_logs(fx->store, &query, see_log_id, &last, NULL), RV_OK);
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a") }, "hello world fourth ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("nobody") }, "");
    logs_are(fx, (struct rv__store_log_query){ .after_id = last }, "");
    struct rv__store_write write = { .run = rv__str("nobody"), .logs = lines, .log_count = 1 };
    assert_int_equal(rv__store_commit(fx->store, &write, 1, NULL), RV_EINVAL);
}

static void log_lines_are_filtered(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "");
    begin(fx, "b", "");
    log_line(fx, "a", STORE_DEBUG, "s1", "One");
    log_line(fx, "a", STORE_ERROR, "s2", "Two");
    log_line(fx, "b", STORE_WARNING, "s1", "Three");
    log_line(fx, "a", STORE_INFO, "s1", "Four");
    logs_are(fx, (struct rv__store_log_query){ .step = rv__str("s1") }, "One Three Four ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a"), .step = rv__str("s1") },
             "One Four ");
    logs_are(fx, (struct rv__store_log_query){ .min_level = STORE_WARNING }, "Two Three ");
    logs_are(fx, (struct rv__store_log_query){ .text = rv__str("o") }, "One Two Four ");
    logs_are(fx, (struct rv__store_log_query){ .limit = 2 }, "One Two ");
    logs_are(
        fx,
        (struct rv__store_log_query){ .run = rv__str("a"), .min_level = STORE_INFO, .limit = 1 },
        "Two ");
}

/* ----------------------------------------------------------------------- counts, forgetting --- */

static int see_count(void *arg, struct rv__str status, uint64_t runs)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s=%llu ", RV__ARG(status), (unsigned long long)runs);
    return RV_OK;
}

static void counts_are(struct fixture *fx, const char *expected, uint64_t runs, uint64_t finished)
{
    struct rv__store_usage usage;
    assert_int_equal(rv__store_counts(fx->store, see_count, fx, NULL), RV_OK);
    seen(fx, expected);
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.runs, runs);
    assert_int_equal(usage.finished, finished);
    assert_true(runs == 0 || usage.bytes > 0);
}

static void runs_are_counted_by_status(void **state)
{
    struct fixture *fx = *state;
    counts_are(fx, "", 0, 0);
    put(fx, "a", "running", 1, 0, true, 0);
    put(fx, "b", "running", 1, 0, true, 0);
    put(fx, "c", "failed", 1, 5, false, 0);
    struct rv__store_run none = { .id = rv__str("none") };
    commit_one(fx, (struct rv__store_write){ .run = rv__str("none"), .row = &none });
    counts_are(fx, "failed=1 running=2 ", 4, 1);
    touch(fx, "a", (struct rv__store_touch){ .status = rv__str("completed"), .completed_ms = 9 });
    counts_are(fx, "completed=1 failed=1 running=1 ", 4, 2);
    touch(fx, "b",
          (struct rv__store_touch){ .status = rv__str("completed"),
                                    .completed_ms = 9,
                                    .active = true }); /* something in it lives on */
    counts_are(fx, "completed=2 failed=1 ", 4, 2);
    reopen(fx);
    put(fx, "c", "running", 1, 0, true, 0);
    counts_are(fx, "completed=2 running=1 ", 4, 1);

    /* What is refused does not count, then or later. */
    struct rv__store_run row = full_row("d");
    struct rv__store_write writes[] = { { .run = rv__str("d"), .row = &row },
                                        { .run = rv__str("nobody"), .facts = rv__str("f") } };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_EINVAL);
    counts_are(fx, "completed=2 running=1 ", 4, 1);
    append(fx, "a", "more");
    counts_are(fx, "completed=2 running=1 ", 4, 1);
    assert_int_equal(rv__store_commit(fx->store, writes, 1, NULL), RV_OK);
    counts_are(fx, "completed=2 running=2 ", 5, 1);
}

static void finished_runs_are_listed_oldest_first(void **state)
{
    struct fixture *fx = *state;
    put(fx, "a", "completed", 1, 30, false, 0);
    put(fx, "b", "failed", 2, 10, false, 0);
    put(fx, "c", "cancelled", 3, 10, false, 0);
    put(fx, "lives", "completed", 1, 5, true, 0);
    put(fx, "sleeps", "completed", 1, 5, false, 77);
    put(fx, "runs", "running", 1, 0, false, 0);
    assert_int_equal(rv__store_finished(fx->store, NULL, SIZE_MAX, see_id, fx, NULL), RV_OK);
    seen(fx, "b c a ");
    assert_int_equal(rv__store_finished(fx->store, NULL, 1, see_id, fx, NULL), RV_OK);
    seen(fx, "b ");
    assert_int_equal(
        rv__store_finished(fx->store, &(struct rv__store_place){ 10, 2 }, 9, see_id, fx, NULL),
        RV_OK);
    seen(fx, "c a ");
}

static void forget_all_of(struct fixture *fx, const char *id)
{
    struct rv__str ids[] = { rv__str(id) };
    bool more = true;
    assert_int_equal(rv__store_forget(fx->store, ids, 1, &more, NULL), RV_OK);
    while (more)
        assert_int_equal(rv__store_forget(fx->store, NULL, 0, &more, NULL), RV_OK);
}

/* A run with something in every table. */
static void full_run(struct fixture *fx, const char *id)
{
    struct rv__store_run row = full_row(id);
    struct rv__store_result result = { rv__str("k"), 1, rv__str("r") };
    struct rv__store_log line = { .message = rv__str(id) };
    row.active = false;
    row.completed_ms = 50;
    row.status = rv__str("completed");
    commit_one(fx, (struct rv__store_write){ .run = rv__str(id),
                                             .row = &row,
                                             .facts = rv__str("f"),
                                             .results = &result,
                                             .result_count = 1,
                                             .snapshot = rv__str("s"),
                                             .logs = &line,
                                             .log_count = 1 });
}

static void a_forgotten_run_leaves_nothing(void **state)
{
    struct fixture *fx = *state;
    full_run(fx, "a");
    full_run(fx, "b");
    uint64_t seq = append(fx, "b", "g");
    forget_all_of(fx, "b");
    forget_all_of(fx, "nobody");
    run_is(fx, "b", NULL);
    journal_is(fx, "b", 0, "");
    results_are(fx, "b", "k", "");
    snapshot_is(fx, "b", NULL);
    logs_are(fx, (struct rv__store_log_query){ .limit = 0 }, "a ");
    feed_is(fx, 0, 9, "a:f ");
    list_is(fx, (struct rv__store_query){ .limit = 0 }, "a ");
    counts_are(fx, "completed=1 ", 1, 1);
    /* Its id is free, and what it wrote does not come back under it; its numbers stay used. */
    reopen(fx);
    assert_true(begin(fx, "b", "new") > seq);
    journal_is(fx, "b", 0, "[new]");
    results_are(fx, "b", "k", "");
    snapshot_is(fx, "b", NULL);
    assert_int_equal(rv__store_run(fx->store, rv__str("b"), see_number, &seq, NULL), RV_OK);
    assert_int_equal(seq, 3);
    journal_is(fx, "a", 0, "[f]");
    results_are(fx, "a", "k", "1=r;");
    snapshot_is(fx, "a", "s");
}

static int see_line_seq(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%llu ", (unsigned long long)line->id);
    return RV_OK;
}

static void lines_and_rows_share_one_order(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_usage usage;
    full_run(fx, "a"); /* line 1, row 2 */
    log_line(fx, "a", STORE_INFO, NULL, "alone");
    full_run(fx, "b"); /* line 4, row 5 */
    assert_int_equal(append(fx, "a", "g"), 6);
    struct rv__store_log_query all = { .limit = SIZE_MAX };
    assert_int_equal(rv__store_logs(fx->store, &all, see_line_seq, fx, NULL), RV_OK);
    seen(fx, "1 3 4 ");
    log_line(fx, "b", STORE_INFO, NULL, "late");
    assert_int_equal(last_seq(fx), 7);

    /* What was forgotten ends with its last line. */
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.forgotten_seq, 0);
    forget_all_of(fx, "b");
    reopen(fx);
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.forgotten_seq, 7);
    assert_int_equal(append(fx, "a", "h"), 8);
    forget_all_of(fx, "a");
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.forgotten_seq, 8);
}

static void only_what_is_over_can_be_forgotten(void **state)
{
    struct fixture *fx = *state;
    bool more = true;
    rv_error err;
    full_run(fx, "a");
    put(fx, "lives", "completed", 1, 5, true, 0);
    put(fx, "sleeps", "completed", 1, 5, false, 77);
    put(fx, "runs", "running", 1, 0, false, 0);
    static const char *const refused[] = { "lives", "sleeps", "runs" };
    for (size_t i = 0; i < 3; i++) {
        struct rv__str ids[] = { rv__str("a"), rv__str(refused[i]) };
        assert_int_equal(rv__store_forget(fx->store, ids, 2, &more, &err), RV_ESTATE);
        assert_non_null(strstr(err.message, refused[i]));
        assert_true(more);
    }
    assert_int_equal(rv__store_forget(fx->store, NULL, RV__STORE_LIST_MAX + 1, &more, NULL),
                     RV_EINVAL);
    run_is(fx, "a", "a:v1:completed:{\"n\":1}:idle:0;");
    journal_is(fx, "a", 0, "[f]");
}

static void a_large_run_is_forgotten_piece_by_piece(void **state)
{
    struct fixture *fx = *state;
    enum { ROWS = 5000 };
    struct rv__store_result *results = calloc(ROWS, sizeof *results);
    struct rv__store_log *lines = calloc(ROWS, sizeof *lines);
    assert_true(results != NULL && lines != NULL);
    full_run(fx, "a");
    full_run(fx, "b");
    for (int i = 0; i < ROWS; i++) {
        results[i] = (struct rv__store_result){ rv__str("big"), i, rv__str("r") };
        lines[i].message = rv__str("line");
    }
    commit_one(fx, (struct rv__store_write){ .run = rv__str("a"),
                                             .results = results,
                                             .result_count = ROWS,
                                             .logs = lines,
                                             .log_count = ROWS });
    free(results);
    free(lines);
    struct rv__str ids[] = { rv__str("a") };
    bool more = false;
    assert_int_equal(rv__store_forget(fx->store, ids, 1, &more, NULL), RV_OK);
    run_is(fx, "a", NULL); /* gone at once, whatever is left of it */
    results_are(fx, "a", "big", "");
    logs_are(fx, (struct rv__store_log_query){ .limit = 0 }, "b ");
    feed_is(fx, 0, 9, "b:f ");
    reopen(fx);
    begin(fx, "a", "new");
    results_are(fx, "a", "big", "");
    for (int calls = 0; more; calls++) {
        assert_true(calls < 20);
        assert_int_equal(rv__store_forget(fx->store, NULL, 0, &more, NULL), RV_OK);
    }
    journal_is(fx, "a", 0, "[new]");
    journal_is(fx, "b", 0, "[f]");
    counts_are(fx, "completed=1 running=1 ", 2, 1);
}

/* --------------------------------------------------------------------------------- handles --- */

static void a_reader_reads_and_does_not_write(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *writer = fx->store, *reader = NULL;
    struct rv__store_run row = full_row("b");
    struct rv__store_write write = { .run = rv__str("b"), .row = &row };
    bool more;
    full_run(fx, "a");
    assert_int_equal(rv__store_reader(writer, &reader, NULL), RV_OK);
    assert_int_equal(rv__store_commit(reader, &write, 1, NULL), RV_ESTATE);
    assert_int_equal(rv__store_define(reader, rv__str("h"), rv__str("{}"), NULL), RV_ESTATE);
    assert_int_equal(rv__store_forget(reader, NULL, 0, &more, NULL), RV_ESTATE);
    fx->store = reader;
    journal_is(fx, "a", 0, "[f]");
    run_is(fx, "b", NULL);
    fx->store = writer;
    commit_one(fx, write); /* while the reader is there */
    fx->store = reader;
    run_is(fx, "b", "b:v1:running:{\"n\":1}:active:0;");
    results_are(fx, "a", "k", "1=r;");
    snapshot_is(fx, "a", "s");
    feed_is(fx, 0, 9, "a:f ");
    list_is(fx, (struct rv__store_query){ .status = rv__str("completed") }, "a ");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("a") }, "a ");
    counts_are(fx, "completed=1 running=1 ", 2, 1);
    struct rv__store *second = NULL;
    assert_int_equal(rv__store_reader(reader, &second, NULL), RV_OK); /* and from a reader */
    rv__store_close(reader);
    fx->store = second;
    journal_is(fx, "a", 0, "[f]");
    fx->store = writer;
    rv__store_close(second);
    append(fx, "a", "g");
}

struct follower { /* a thread that reads the feed until it has seen `rows` rows */
    struct rv__store *reader;
    uint64_t after, rows;
    int rc;
};

static int count_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct follower *follower = arg;
    (void)run;
    (void)facts;
    if (seq <= follower->after)
        return RV_EFAILED;
    follower->after = seq;
    follower->rows--;
    return RV_OK;
}

static void *follow(void *arg)
{
    struct follower *follower = arg;
    while (follower->rows > 0 && follower->rc == RV_OK)
        follower->rc = rv__store_feed(follower->reader, follower->after, 10, count_feed, follower,
                                      NULL);
    return NULL;
}

static void readers_follow_from_other_threads(void **state)
{
    struct fixture *fx = *state;
    enum { READERS = 3, ROWS = 300 };
    struct follower followers[READERS] = { 0 };
    pthread_t threads[READERS];
    begin(fx, "a", "1");
    for (int i = 0; i < READERS; i++) {
        followers[i].rows = ROWS + 1;
        assert_int_equal(rv__store_reader(fx->store, &followers[i].reader, NULL), RV_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, follow, &followers[i]), 0);
    }
    for (int i = 0; i < ROWS; i++)
        append(fx, "a", "more");
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(followers[i].rc, RV_OK);
        rv__store_close(followers[i].reader);
    }
}

static void commits_are_counted_and_timed(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_stats stats;
    struct rv__store_write nobody = { .run = rv__str("nobody"), .facts = rv__str("f") };
    rv__store_stats(fx->store, &stats);
    assert_int_equal(stats.commits, 0);
    begin(fx, "a", "1");
    append(fx, "a", "2");
    assert_int_equal(rv__store_commit(fx->store, &nobody, 1, NULL), RV_EINVAL);
    rv__store_stats(fx->store, &stats);
    assert_int_equal(stats.commits, 2);
    assert_int_equal(stats.failures, 1);
    assert_true(stats.last_commit_ns > 0);
}

static int see_nothing(void *arg, const struct rv__store_run *row)
{
    (void)arg;
    (void)row;
    return RV_OK;
}

static int see_no_count(void *arg, struct rv__str status, uint64_t runs)
{
    (void)arg;
    (void)status;
    (void)runs;
    return RV_OK;
}

static int list_all(struct fixture *fx, struct rv__buf *cursor)
{
    struct rv__store_query query = { .limit = 1, .with_input = true, .text = rv__str("a") };
    return rv__store_list(fx->store, &query, see_nothing, NULL, cursor, NULL);
}

static void no_memory_does_not_hurt_reading(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *reader = NULL;
    struct rv__buf cursor;
    bool more;
    int rc;
    full_run(fx, "a");
    full_run(fx, "a2");
    put(fx, "b", "running", 1, 0, false, 5);
    rv__buf_init(&cursor, SIZE_MAX);
    TORTURE(rc, list_all(fx, &cursor), rv__buf_done(&cursor));
    assert_int_equal(rc, RV_OK);
    rv__buf_done(&cursor);
    TORTURE(rc, rv__store_due(fx->store, 9, NULL, 9, see_nothing, NULL, NULL), (void)0);
    assert_int_equal(rc, RV_OK);
    TORTURE(rc, rv__store_finished(fx->store, NULL, 9, see_nothing, NULL, NULL), (void)0);
    assert_int_equal(rc, RV_OK);
    TORTURE(rc, rv__store_counts(fx->store, see_no_count, NULL, NULL), (void)0);
    assert_int_equal(rc, RV_OK);
    TORTURE(rc, rv__store_reader(fx->store, &reader, NULL), assert_null(reader));
    assert_int_equal(rc, RV_OK);
    rv__store_close(reader);
    struct rv__str ids[] = { rv__str("a") };
    TORTURE(rc, rv__store_forget(fx->store, ids, 1, &more, NULL),
            run_is(fx, "a", "a:v1:completed:{\"n\":1}:idle:0;"));
    assert_int_equal(rc, RV_OK);
}

int store_suite(struct store_maker *maker)
{
    the_maker = maker;
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(an_empty_store_has_nothing),
        CASE(a_journal_is_read_in_order_and_after_a_number),
        CASE(many_runs_are_written_in_one_commit),
        CASE(a_write_without_facts_makes_no_row),
        CASE(a_row_is_replaced_whole),
        CASE(active_runs_are_listed_in_the_order_they_were_first_written),
        CASE(a_snapshot_covers_its_own_facts),
        CASE(results_come_by_key_and_index),
        CASE(a_definition_is_kept_once),
        CASE(mistakes_are_refused_and_write_nothing),
        CASE(what_was_committed_survives_and_numbers_go_on),
        CASE(a_failed_commit_leaves_nothing_and_can_be_repeated),
        CASE(no_memory_leaves_nothing),
        CASE(a_visitor_can_end_the_reading),
        CASE(texts_come_back_byte_for_byte),
        CASE(random_use_is_remembered),
        CASE(every_column_of_a_row_comes_back),
        CASE(none_is_not_the_empty_text),
        CASE(a_touch_changes_its_columns_and_no_others),
        CASE(a_touch_needs_a_row_and_comes_alone),
        CASE(definitions_ride_along),
        CASE(sleeping_runs_are_due_earliest_first),
        CASE(the_next_wake_is_the_earliest_after),
        CASE(active_runs_come_by_pages),
        CASE(the_feed_has_all_rows_of_all_runs_in_order),
        CASE(long_journals_and_results_are_whole),
        CASE(lists_have_the_newest_first),
        CASE(lists_are_filtered),
        CASE(lists_are_searched_for_text),
        CASE(a_list_goes_on_from_its_cursor),
        CASE(a_list_has_at_most_a_thousand),
        CASE(log_lines_are_kept_in_order),
        CASE(log_lines_are_filtered),
        CASE(lines_and_rows_share_one_order),
        CASE(runs_are_counted_by_status),
        CASE(finished_runs_are_listed_oldest_first),
        CASE(a_forgotten_run_leaves_nothing),
        CASE(only_what_is_over_can_be_forgotten),
        CASE(a_large_run_is_forgotten_piece_by_piece),
        CASE(a_reader_reads_and_does_not_write),
        CASE(readers_follow_from_other_threads),
        CASE(commits_are_counted_and_timed),
        CASE(no_memory_does_not_hurt_reading),
    };
#undef CASE
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
