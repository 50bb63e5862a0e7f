/* suite_outcomes.c: what becomes of each write of a commit; the numbers of runs; large values. */
#include "unit/store/store_fixture.h"

static char *long_text(size_t len)
{
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    return text;
}

static void refused_as(const struct rv__store_write *write, int code, const char *words)
{
    if (write->outcome != STORE_REFUSED || write->why.code != code ||
        strstr(write->why.message, words) == NULL)
        fail_msg("%.*s: %d, %d %s", RV__ARG(write->run), write->outcome, write->why.code,
                 write->why.message);
    assert_int_equal(write->seq, 0);
}

static void was_written(const struct rv__store_write *write)
{
    if (write->outcome != STORE_WRITTEN)
        fail_msg("%.*s: %s", RV__ARG(write->run), write->why.message);
    assert_int_equal(write->why.code, 0);
}

static void a_refused_write_does_not_hold_up_the_others(void **state)
{
    struct fixture *fx = *state;
    uint64_t before = begin(fx, "a", "1");
    begin(fx, "b", "1");
    struct rv__store_result there = { rv__str("k"), 3, rv__str("r") };
    struct rv__store_value value = { 1, rv__str("v") };
    commit_one(fx, (struct rv__store_write){ .run = rv__str("b"),
                                             .results = &there,
                                             .result_count = 1,
                                             .values = &value,
                                             .value_count = 1 });
    begin(fx, "c", "1");
    struct rv__store_run d = active_row("d"), e = active_row("e"), other = active_row("other");
    struct rv__store_touch touch = { .status = rv__str("failed") };
    struct rv__store_log lines[] = { { .message = rv__str("kept") },
                                     { .message = rv__str("not kept") },
                                     { .level = STORE_INFO } };
    struct rv__store_write writes[] = {
        { .run = rv__str("nobody"), .facts = rv__str("2"), .seq = 77 },
        { .run = rv__str("a"), .facts = rv__str("2"), .logs = lines, .log_count = 1 },
        { .run = rv__str("b"),
          .facts = rv__str("2"),
          .touch = &touch,
          .snapshot = rv__str("s"),
          .logs = &lines[1],
          .log_count = 1,
          .results = &there,
          .result_count = 1,
          .seq = 77 },
        { .run = rv__str("d"), .facts = rv__str("1"), .row = &d },
        { .run = rv__str("e"), .facts = rv__str("1"), .row = &e, .touch = &touch },
        { .run = rv__str("f"), .facts = rv__str("1"), .row = &other },
        { .run = rv__str("c"), .facts = rv__str("2"), .logs = &lines[2], .log_count = 1 },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 7, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "'nobody'");
    was_written(&writes[1]);
    refused_as(&writes[2], RV_EINVAL, "'k' 3");
    was_written(&writes[3]);
    refused_as(&writes[4], RV_EINVAL, "a row and a touch");
    refused_as(&writes[5], RV_EINVAL, "'f'");
    refused_as(&writes[6], RV_EINVAL, "no message");
    assert_true(before < writes[1].seq && writes[1].seq < writes[3].seq);
    journal_is(fx, "a", 0, "[1][2]");
    journal_is(fx, "b", 0, "[1]");
    journal_is(fx, "c", 0, "[1]");
    journal_is(fx, "d", 0, "[1]");
    run_is(fx, "b", "b:v1:running:{}:active:0;");
    run_is(fx, "e", NULL);
    run_is(fx, "f", NULL);
    run_is(fx, "other", NULL);
    snapshot_is(fx, "b", NULL);
    logs_are(fx, (struct rv__store_log_query){ .limit = 0 }, "kept ");
    counts_are(fx, "running=4 ", 4, 0);
    assert_int_equal(last_seq(fx), writes[3].seq); /* no number was lost to a refused write */

    /* What was refused is refused again, and what is right then goes well. */
    there.index = 4;
    assert_int_equal(rv__store_commit(fx->store, writes, 1, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "'nobody'");
    assert_int_equal(rv__store_commit(fx->store, &writes[2], 1, NULL), RV_OK);
    was_written(&writes[2]);
    journal_is(fx, "b", 0, "[1][2]");
    results_are(fx, "b", "k", "3=r;4=r;");
    run_is(fx, "b", "b:v1:failed:{}:idle:0;");
    counts_are(fx, "failed=1 running=3 ", 4, 0);
    reopen(fx);
    journal_is(fx, "a", 0, "[1][2]");
    journal_is(fx, "b", 0, "[1][2]");
    counts_are(fx, "failed=1 running=3 ", 4, 0);
}

static void what_is_too_large_is_refused_when_it_is_written(void **state)
{
    struct fixture *fx = *state;
    struct rv__str large = { long_text(STORE_SUITE_MAX + 1000), STORE_SUITE_MAX + 1000 };
    struct rv__str fits = { large.at, STORE_SUITE_MAX - 1000 };
    struct rv__store_run rows[] = { active_row("a"), active_row("b"), active_row("c"),
                                    active_row("d"), active_row("e"), active_row("f") };
    struct rv__store_result result = { rv__str("k"), 0, large };
    struct rv__store_value values[] = { { 1, large }, { 1, fits } };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"), .row = &rows[0], .facts = large },
        { .run = rv__str("b"), .row = &rows[1], .facts = fits },
        { .run = rv__str("c"), .row = &rows[2], .results = &result, .result_count = 1 },
        { .run = rv__str("d"), .row = &rows[3], .values = values, .value_count = 1 },
        { .run = rv__str("e"), .row = &rows[4], .snapshot = large },
        { .run = rv__str("f"), .row = &rows[5], .values = &values[1], .value_count = 1 },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 6, NULL), RV_OK);
    refused_as(&writes[0], RV_ETOOBIG, "too long");
    was_written(&writes[1]);
    refused_as(&writes[2], RV_ETOOBIG, "too long");
    refused_as(&writes[3], RV_ETOOBIG, "too long");
    refused_as(&writes[4], RV_ETOOBIG, "too long");
    was_written(&writes[5]);
    run_is(fx, "a", NULL);
    counts_are(fx, "running=2 ", 2, 0);
    reopen(fx);
    assert_int_equal(rv__store_journal(fx->store, rv__str("b"), 0, see_text, fx, NULL), RV_OK);
    assert_int_equal(fx->seen.len, fits.len);
    rv__buf_reset(&fx->seen);
    assert_int_equal(rv__store_value_read(fx->store, rv__str("f"), 1, see_text, fx, NULL), RV_OK);
    assert_int_equal(fx->seen.len, fits.len);
    free((void *)large.at);
}

static void definitions_of_a_refused_write_are_kept(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = active_row("a");
    struct rv__store_definition definition = { rv__str("h1"), rv__str("one") };
    struct rv__store_write writes[] = {
        { .run = rv__str("nobody"),
          .facts = rv__str("f"),
          .definitions = &definition,
          .definition_count = 1 },
        { .run = rv__str("a"), .row = &row, .facts = rv__str("needs h1") },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "'nobody'");
    was_written(&writes[1]);
    assert_int_equal(rv__store_definition(fx->store, rv__str("h1"), see_text, fx, NULL), RV_OK);
    seen(fx, "one");
}

static void the_number_of_a_run_spares_its_look_up(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = active_row("a");
    struct rv__store_write write = { .run = rv__str("a"), .row = &row, .facts = rv__str("1") };
    uint64_t number = 0;
    begin(fx, "first", "1");
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(write.number, 2);
    assert_int_equal(rv__store_run(fx->store, rv__str("a"), see_number, &number, NULL), RV_OK);
    assert_int_equal(number, 2);

    /* Not known: it is found and told. Known: it is used, also by a store that has just been opened. */
    write = (struct rv__store_write){ .run = rv__str("a"), .facts = rv__str("2") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(write.number, 2);
    reopen(fx);
    struct rv__store_touch over = { .status = rv__str("completed"), .completed_ms = 5 };
    write = (struct rv__store_write){
        .run = rv__str("a"), .number = 2, .facts = rv__str("3"), .touch = &over
    };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(write.number, 2);
    row.status = rv__str("again"); /* replaced, not added */
    write = (struct rv__store_write){ .run = rv__str("a"), .row = &row, .facts = rv__str("4") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(write.number, 2);
    journal_is(fx, "a", 0, "[1][2][3][4]");
    counts_are(fx, "again=1 running=1 ", 2, 0);

    write = (struct rv__store_write){ .run = rv__str("new"), .number = 9, .facts = rv__str("1") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
    assert_int_equal(write.number, 9);
    write.number = UINT64_MAX;
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL);
}

static void a_failed_commit_gives_no_number(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_run row = active_row("a"), b = active_row("b");
    struct rv__store_write writes[] = { { .run = rv__str("a"), .row = &row },
                                        { .run = rv__str("nobody"), .facts = rv__str("f") },
                                        { .run = rv__str("b"), .row = &b } };
    if (fx->maker->fail_next != NULL) {
        fx->maker->fail_next(fx->maker, fx->store);
        assert_int_equal(rv__store_commit(fx->store, writes, 3, NULL), RV_ESTORE);
        assert_int_equal(writes[0].number, 0);
    }
    int rc;
    TORTURE(rc, rv__store_commit(fx->store, writes, 3, NULL), {
        assert_int_equal(writes[0].number, 0);
        assert_int_equal(writes[2].number, 0);
        run_is(fx, "a", NULL);
    });
    assert_int_equal(rc, RV_OK);
    refused_as(&writes[1], RV_EINVAL, "'nobody'");
    assert_int_equal(writes[0].number, 1);
    assert_int_equal(writes[2].number, 2);
    run_is(fx, "b", "b:v1:running:{}:active:0;");
}

static void a_value_is_kept_under_its_number(void **state)
{
    struct fixture *fx = *state;
    enum { BIG = 3 << 20 };
    struct rv__str big = { long_text(BIG), BIG };
    struct rv__store_usage before, after;
    begin(fx, "a", "1");
    begin(fx, "b", "1");
    value_is(fx, "a", 1, NULL);
    value_is(fx, "nobody", 1, NULL);
    assert_int_equal(rv__store_usage(fx->store, &before, NULL), RV_OK);
    struct rv__store_value values[] = { { 5, big },
                                        { 1, rv__str("one") },
                                        { INT64_MAX, rv__str("") } };
    commit_one(fx,
               (struct rv__store_write){ .run = rv__str("a"), .values = values, .value_count = 3 });
    assert_int_equal(rv__store_usage(fx->store, &after, NULL), RV_OK);
    assert_true(after.bytes >= before.bytes + BIG);
    reopen(fx);
    value_is(fx, "a", 1, "one");
    value_is(fx, "a", INT64_MAX, "");
    value_is(fx, "a", 2, NULL);
    value_is(fx, "b", 1, NULL);
    assert_int_equal(rv__store_value_read(fx->store, rv__str("a"), 5, see_text, fx, NULL), RV_OK);
    assert_true(rv__str_eq(rv__buf_view(&fx->seen), big));
    rv__buf_reset(&fx->seen);
    free((void *)big.at);
    int calls = 0;
    assert_int_equal(rv__store_value_read(fx->store, rv__str("a"), 1, stop_at_once, &calls, NULL),
                     RV_ECANCELED);
    assert_int_equal(calls, 1);
}

static void a_value_is_written_once(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "a", "1");
    begin(fx, "b", "1");
    struct rv__store_value one = { 1, rv__str("one") };
    commit_one(fx,
               (struct rv__store_write){ .run = rv__str("a"), .values = &one, .value_count = 1 });
    struct rv__store_value again[] = { { 2, rv__str("two") }, { 1, rv__str("other") } };
    struct rv__store_value twice[] = { { 2, rv__str("two") }, { 2, rv__str("two") } };
    struct rv__store_value none = { 3, { NULL, 0 } };
    struct rv__store_value far = { UINT64_MAX, rv__str("x") };
    struct rv__store_write writes[] = {
        { .run = rv__str("a"), .facts = rv__str("2"), .values = again, .value_count = 2 },
        { .run = rv__str("b"), .facts = rv__str("2"), .values = &one, .value_count = 1 },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "value 1 already");
    was_written(&writes[1]); /* another run's number is another number */
    writes[0].values = twice;
    assert_int_equal(rv__store_commit(fx->store, writes, 1, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "value 2 already");
    writes[0].values = &none;
    writes[0].value_count = 1;
    assert_int_equal(rv__store_commit(fx->store, writes, 1, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "value 3");
    writes[0].values = &far;
    assert_int_equal(rv__store_commit(fx->store, writes, 1, NULL), RV_OK);
    refused_as(&writes[0], RV_EINVAL, "value 18446744073709551615");
    value_is(fx, "a", 1, "one");
    value_is(fx, "a", 2, NULL);
    value_is(fx, "b", 1, "one");
    journal_is(fx, "a", 0, "[1]");
}

int store_suite_outcomes(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(a_refused_write_does_not_hold_up_the_others),
        STORE_CASE(what_is_too_large_is_refused_when_it_is_written),
        STORE_CASE(definitions_of_a_refused_write_are_kept),
        STORE_CASE(the_number_of_a_run_spares_its_look_up),
        STORE_CASE(a_failed_commit_gives_no_number),
        STORE_CASE(a_value_is_kept_under_its_number),
        STORE_CASE(a_value_is_written_once),
    };
    return STORE_GROUP("store: outcomes", tests);
}
