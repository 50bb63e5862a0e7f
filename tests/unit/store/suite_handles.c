/* suite_handles.c: readers beside the writer; no memory. */
#include "unit/store/store_fixture.h"

#include <pthread.h>

static void a_reader_reads_and_does_not_write(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *writer = fx->store, *reader = NULL;
    struct rv__store_run row = full_row("b");
    struct rv__store_write write = { .run = rv__str("b"), .row = &row };
    bool more;
    full_run(fx, "a");
    assert_int_equal(rv__store_reader(writer, &reader, NULL), RV_OK);
    assert_int_equal(rv__store_commit_one(reader, &write, NULL), RV_ESTATE);
    assert_int_equal(rv__store_define(reader, rv__str("h"), rv__str("{}"), NULL), RV_ESTATE);
    assert_int_equal(rv__store_forget(reader, NULL, 0, &more, NULL), RV_ESTATE);
    struct rv__store_mark mark = { .name = rv__str("m") };
    assert_int_equal(rv__store_take_marks(reader, &mark, 1, NULL), RV_ESTATE);
    assert_int_equal(rv__store_move_marks(reader, &mark, 1, NULL), RV_ESTATE);
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
    assert_int_equal(rv__store_commit_one(fx->store, &nobody, NULL), RV_EINVAL);
    rv__store_stats(fx->store, &stats);
    assert_int_equal(stats.commits, 3);
    assert_int_equal(stats.failures, 0);
    assert_int_equal(stats.refused, 1);
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
    struct rv__store_query query = { .limit = 1, .input_bytes = SIZE_MAX, .text = rv__str("a") };
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
    TORTURE(rc, rv__store_oldest_waiting(fx->store, 9, see_nothing, NULL, NULL), (void)0);
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

static void marks_say_how_far_somebody_has_come(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_mark marks[] = { { .name = rv__str("b"), .seq = 7, .index = INT32_MAX },
                                      { .name = rv__str("a"), .seq = 0, .index = 0 } };
    marks_are(fx, "");
    assert_int_equal(rv__store_take_marks(fx->store, marks, 2, NULL), RV_OK);
    assert_true(marks[0].ours && marks[1].ours);
    marks_are(fx, "a=0.0 b=7.2147483647 ");
    marks[0].seq = 9;
    marks[0].index = 3;
    assert_int_equal(rv__store_move_marks(fx->store, marks, 1, NULL), RV_OK);
    assert_true(marks[0].ours);
    reopen(fx);
    marks_are(fx, "a=0.0 b=9.3 ");
    struct rv__store_mark again = { .name = rv__str("b"), .seq = 100 };
    assert_int_equal(rv__store_take_marks(fx->store, &again, 1, NULL), RV_OK);
    assert_int_equal(again.seq, 9); /* it is where it was left */
    assert_int_equal(again.index, 3);
    again.gone = true;
    assert_int_equal(rv__store_move_marks(fx->store, &again, 1, NULL), RV_OK);
    assert_false(again.ours);
    marks_are(fx, "a=0.0 ");
}

static void no_memory_does_not_hurt_marks(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_mark mark = { .name = rv__str("a"), .seq = 1 };
    int rc;
    TORTURE(rc, rv__store_take_marks(fx->store, &mark, 1, NULL), marks_are(fx, ""));
    assert_int_equal(rc, RV_OK);
    mark.seq = 2;
    TORTURE(rc, rv__store_move_marks(fx->store, &mark, 1, NULL), marks_are(fx, "a=1.0 "));
    assert_int_equal(rc, RV_OK);
    marks_are(fx, "a=2.0 ");
}

int store_suite_handles(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(a_reader_reads_and_does_not_write),
        STORE_CASE(readers_follow_from_other_threads),
        STORE_CASE(commits_are_counted_and_timed),
        STORE_CASE(no_memory_does_not_hurt_reading),
        STORE_CASE(marks_say_how_far_somebody_has_come),
        STORE_CASE(no_memory_does_not_hurt_marks),
    };
    return STORE_GROUP("store: handles", tests);
}
