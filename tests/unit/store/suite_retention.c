/* suite_retention.c: counting, and forgetting. */
#include "unit/store/store_fixture.h"

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
    struct rv__store_touch touched = { .status = rv__str("failed") };
    row.status = rv__str("other");
    writes[0].touch = &touched; /* both refused */
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    counts_are(fx, "completed=2 running=1 ", 4, 1);
    append(fx, "a", "more");
    counts_are(fx, "completed=2 running=1 ", 4, 1);
    writes[0].touch = NULL; /* and now the second one only */
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    counts_are(fx, "completed=2 other=1 running=1 ", 5, 1);
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
    value_is(fx, "b", 7, NULL);
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
    value_is(fx, "b", 7, NULL);
    snapshot_is(fx, "b", NULL);
    assert_int_equal(rv__store_run(fx->store, rv__str("b"), see_number, &seq, NULL), RV_OK);
    assert_int_equal(seq, 3);
    journal_is(fx, "a", 0, "[f]");
    results_are(fx, "a", "k", "1=r;");
    value_is(fx, "a", 7, "v");
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

int store_suite_retention(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(lines_and_rows_share_one_order),
        STORE_CASE(runs_are_counted_by_status),
        STORE_CASE(finished_runs_are_listed_oldest_first),
        STORE_CASE(a_forgotten_run_leaves_nothing),
        STORE_CASE(only_what_is_over_can_be_forgotten),
        STORE_CASE(a_large_run_is_forgotten_piece_by_piece),
    };
    return STORE_GROUP("store: retention", tests);
}
