/* suite_lists.c: many runs: those that are active or due, the feed, lists. */
#include "unit/store/store_fixture.h"

/* ------------------------------------------------------------------------ waking, the feed --- */

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
    assert_int_equal(rv__store_results(fx->store, rv__str("a"), rv__str("k"), INT64_MIN, SIZE_MAX,
                                       see_result, fx, NULL),
                     RV_OK);
    size_t rows = 0;
    for (size_t i = 0; i < fx->seen.len; i++)
        rows += fx->seen.text[i] == ';';
    assert_int_equal(rows, ROWS);
}

/* --------------------------------------------------------------------------------- damage --- */

static int see_damage(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s", RV__ARG(row->id));
    if (row->damaged) {
        assert_true(row->why.len > 0);
        rv__buf_fmt(&fx->seen, "!%llu", (unsigned long long)row->number);
    }
    rv__buf_char(&fx->seen, ' ');
    return RV_OK;
}

static void a_damaged_row_stops_nobody(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    if (fx->maker->damage == NULL)
        return; /* nobody but this process can touch it */
    static const char *const ids[] = { "a1", "a2", "a3", "s1", "s2", "s3", "f1", "f2", "f3" };
    for (size_t i = 0; i < 9; i++)
        put(fx, ids[i], i < 6 ? "running" : "completed", (int64_t)i, i < 6 ? 0 : 50, i < 3,
            i >= 3 && i < 6 ? 100 : 0);
    static const char *const bad[] = { "a2", "s1", "f2" };
    for (size_t i = 0; i < 3; i++)
        fx->store = fx->maker->damage(fx->maker, fx->store, bad[i]);
    assert_int_equal(rv__store_active(fx->store, see_damage, fx, NULL), RV_OK);
    seen(fx, "a1 a2!2 a3 ");
    assert_int_equal(rv__store_active_after(fx->store, 2, 9, see_damage, fx, NULL), RV_OK);
    seen(fx, "a3 ");
    assert_int_equal(rv__store_due(fx->store, 100, NULL, 9, see_damage, fx, NULL), RV_OK);
    seen(fx, "s1!4 s2 s3 ");
    assert_int_equal(rv__store_finished(fx->store, NULL, 9, see_damage, fx, NULL), RV_OK);
    seen(fx, "f1 f2!8 f3 ");
    struct rv__store_query query = { .limit = 3 };
    struct rv__buf cursor;
    rv__buf_init(&cursor, SIZE_MAX);
    do {
        assert_int_equal(rv__store_list(fx->store, &query, see_damage, fx, &cursor, NULL), RV_OK);
        query.cursor = rv__buf_view(&cursor);
    } while (cursor.len > 0);
    rv__buf_done(&cursor);
    seen(fx, "f3 f2!8 f1 s3 s2 s1!4 a3 a2!2 a1 ");
    query = (struct rv__store_query){ .status = rv__str("completed"), .text = rv__str("f") };
    assert_int_equal(rv__store_list(fx->store, &query, see_damage, fx, NULL, NULL), RV_OK);
    seen(fx, "f3 f1 "); /* nobody knows whether it has the text */

    /* It alone is damaged, and not its journal; and it can be written again. */
    assert_int_equal(rv__store_run(fx->store, rv__str("a2"), see_damage, fx, &err), RV_EPARSE);
    assert_true(err.code == RV_EPARSE && strstr(err.message, "damaged") != NULL);
    seen(fx, "");
    journal_is(fx, "a2", 0, "[f]");
    put(fx, "a2", "running", 1, 0, true, 0);
    assert_int_equal(rv__store_active(fx->store, see_damage, fx, NULL), RV_OK);
    seen(fx, "a1 a2 a3 ");
    assert_int_equal(rv__store_active(fx->store, stop_at_run, &(int){ 0 }, NULL), RV_ECANCELED);
}

/* ----------------------------------------------------------------------------------- lists --- */

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
    list_is(fx, (struct rv__store_query){ .input_bytes = SIZE_MAX, .limit = 1 }, "r4+ ");
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

static void waiting_are(struct fixture *fx, uint64_t expected)
{
    struct rv__store_usage usage;
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.waiting, expected);
}

static int add_id(void *arg, const struct rv__store_run *row)
{
    char *ids = arg;
    assert_true(rv__str_none(row->input));
    snprintf(ids + strlen(ids), 100 - strlen(ids), "%.*s ", RV__ARG(row->id));
    return RV_OK;
}

static void oldest_waiting_are(struct fixture *fx, size_t limit, const char *expected)
{
    char ids[100] = "";
    assert_int_equal(rv__store_oldest_waiting(fx->store, limit, add_id, ids, NULL), RV_OK);
    assert_string_equal(ids, expected);
}

static void lists_tell_who_waits_for_somebody_and_who_repeats(void **state)
{
    struct fixture *fx = *state;
    some_runs(fx);
    struct rv__store_run row = full_row("w1");
    row.created_ms = 500;
    row.waiting = true;
    row.rerun_of = rv__str("r3");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("w1"), .row = &row });
    row = full_row("w2");
    row.created_ms = 250;
    row.rerun_of = rv__str("r3");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("w2"), .row = &row });
    list_is(fx, (struct rv__store_query){ .waiting = true }, "w1 ");
    waiting_are(fx, 1);
    oldest_waiting_are(fx, 9, "w1 ");
    list_is(fx, (struct rv__store_query){ .rerun_of = rv__str("r3") }, "w1 w2 ");
    list_is(fx, (struct rv__store_query){ .rerun_of = rv__str("r3"), .waiting = true }, "w1 ");
    list_is(fx, (struct rv__store_query){ .rerun_of = rv__str("r4") }, "");
    list_is(fx, (struct rv__store_query){ .rerun_of = rv__str("r3"), .until_ms = 500 }, "w2 ");
    touch(fx, "w2", (struct rv__store_touch){ .status = rv__str("running"), .waiting = true });
    touch(fx, "w1", (struct rv__store_touch){ .status = rv__str("failed") });
    list_is(fx, (struct rv__store_query){ .waiting = true }, "w2 ");
    waiting_are(fx, 1);
    touch(fx, "w2", (struct rv__store_touch){ .status = rv__str("running") });
    waiting_are(fx, 0);
    touch(fx, "w2", (struct rv__store_touch){ .status = rv__str("running"), .waiting = true });
    list_is(fx, (struct rv__store_query){ .rerun_of = rv__str("r3") }, "w1 w2 ");
    list_is(fx, (struct rv__store_query){ .waiting = true, .status = rv__str("failed") }, "");
    touch(fx, "w1", (struct rv__store_touch){ .status = rv__str("running"), .waiting = true });
    oldest_waiting_are(fx, 9, "w2 w1 ");
    oldest_waiting_are(fx, 1, "w2 ");
}

static int see_input(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_str(&fx->seen, row->input);
    rv__buf_char(&fx->seen, ' ');
    return RV_OK;
}

/* A page of runs with inputs of megabytes must not hold them all. */
static void lists_have_the_beginning_of_inputs(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = full_row("long");
    row.input = rv__str("\"aé-zz\"");
    commit_one(fx, (struct rv__store_write){ .run = rv__str("long"), .row = &row });
    static const struct {
        size_t bytes;
        const char *text, *seen;
    } rows[] = {
        { 0, NULL, " " },          { 2, NULL, "\"a " },
        { 3, NULL, "\"a " },       { 4, NULL, "\"aé " },
        { 8, NULL, "\"aé-zz\" " }, { 9, NULL, "\"aé-zz\" " },
        { 2, "zz", "\"a " },       { SIZE_MAX, "zz", "\"aé-zz\" " },
        { 0, "zz", " " },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__store_query query = { .input_bytes = rows[i].bytes,
                                         .text = rv__str(rows[i].text) };
        assert_int_equal(rv__store_list(fx->store, &query, see_input, fx, NULL, NULL), RV_OK);
        seen(fx, rows[i].seen);
    }
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
    list_is(fx, (struct rv__store_query){ .text = rv__str("ada"), .input_bytes = SIZE_MAX },
            "other+ ");
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

int store_suite_lists(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(sleeping_runs_are_due_earliest_first),
        STORE_CASE(the_next_wake_is_the_earliest_after),
        STORE_CASE(active_runs_come_by_pages),
        STORE_CASE(the_feed_has_all_rows_of_all_runs_in_order),
        STORE_CASE(long_journals_and_results_are_whole),
        STORE_CASE(a_damaged_row_stops_nobody),
        STORE_CASE(lists_have_the_newest_first),
        STORE_CASE(lists_have_the_beginning_of_inputs),
        STORE_CASE(lists_are_filtered),
        STORE_CASE(lists_tell_who_waits_for_somebody_and_who_repeats),
        STORE_CASE(lists_are_searched_for_text),
        STORE_CASE(a_list_goes_on_from_its_cursor),
        STORE_CASE(a_list_has_at_most_a_thousand),
    };
    return STORE_GROUP("store: lists", tests);
}
