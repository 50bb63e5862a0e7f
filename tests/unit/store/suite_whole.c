/* suite_whole.c: a whole run, as it leaves a store and as it comes into one; all of a store. */
#include "unit/store/store_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------ it leaves --- */

static int whole_run(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "run %.*s %.*s %.*s;", RV__ARG(row->id), RV__ARG(row->status),
                RV__ARG(row->input));
    return RV_OK;
}

static int whole_definition(void *arg, uint64_t seq, struct rv__str json)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "plan %.*s;", RV__ARG(json));
    return RV_OK;
}

static int whole_value(void *arg, uint64_t number, struct rv__str json)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "value %llu %.*s;", (unsigned long long)number, RV__ARG(json));
    return RV_OK;
}

static int whole_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "turn %.*s;", RV__ARG(facts));
    return RV_OK;
}

static int whole_log(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "log %.*s;", RV__ARG(line->message));
    return RV_OK;
}

static const struct rv__store_visitor visitor = { whole_run, whole_definition, whole_value,
                                                  whole_row, whole_log };

static void whole_is(struct fixture *fx, const char *run, const char *expected)
{
    assert_int_equal(rv__store_whole(fx->store, rv__str(run), &visitor, fx, NULL), RV_OK);
    seen(fx, expected);
}

static void a_run_is_shown_whole_and_in_order(void **state)
{
    struct fixture *fx = *state;
    begin(fx, "other", "x");
    begin(fx, "a", "1");
    log_line(fx, "a", STORE_INFO, "s", "one");
    log_line(fx, "other", STORE_INFO, "s", "of another");
    append(fx, "other", "y");
    log_line(fx, "a", STORE_INFO, "s", "two");
    append(fx, "a", "2");
    append(fx, "a", "3");
    log_line(fx, "a", STORE_INFO, "s", "three");
    whole_is(fx, "a", "run a running {};turn 1;log one;log two;turn 2;turn 3;log three;");
    assert_int_equal(rv__store_define(fx->store, rv__str("v1"), rv__str("{1}"), NULL), RV_OK);
    whole_is(fx, "a", "run a running {};plan {1};turn 1;log one;log two;turn 2;turn 3;log three;");
    assert_int_equal(rv__store_whole(fx->store, rv__str("nobody"), &visitor, fx, NULL),
                     RV_ENOTFOUND);
    seen(fx, "");
}

static int end_it(void *arg, uint64_t seq, struct rv__str facts)
{
    (void)whole_row(arg, seq, facts);
    return rv__str_is(facts, "2") ? RV_ETIMEDOUT : RV_OK;
}

static void a_visitor_can_end_the_show(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_visitor ends = visitor;
    ends.row = end_it;
    begin(fx, "a", "1");
    append(fx, "a", "2");
    append(fx, "a", "3");
    assert_int_equal(rv__store_whole(fx->store, rv__str("a"), &ends, fx, NULL), RV_ETIMEDOUT);
    seen(fx, "run a running {};turn 1;turn 2;");
    append(fx, "a", "4"); /* nothing is held any more */
    whole_is(fx, "a", "run a running {};turn 1;turn 2;turn 3;turn 4;");
}

/* Somebody writes, turn n with result n, as fast as can be. */
struct writing {
    struct fixture *fx;
    atomic_bool stop;
};

static void *keep_writing(void *arg)
{
    struct writing *w = arg;
    for (int n = 1; !atomic_load(&w->stop); n++) {
        char text[24];
        snprintf(text, sizeof text, "%d", n);
        struct rv__store_touch touched = { .status = rv__str(text), .active = true };
        struct rv__store_log line = { .message = rv__str(text) };
        struct rv__store_write write = { .run = rv__str("a"),
                                         .facts = rv__str(text),
                                         .touch = &touched,
                                         .logs = &line,
                                         .log_count = 1 };
        assert_int_equal(rv__store_commit_one(w->fx->store, &write, NULL), RV_OK);
    }
    return NULL;
}

struct moment {
    int status, rows, lines;
};

static int moment_run(void *arg, const struct rv__store_run *row)
{
    ((struct moment *)arg)->status = rv__str_is(row->status, "running")
                                         ? 0
                                         : (int)strtol(row->status.at, NULL, 10);
    return RV_OK;
}

static int moment_text(void *arg, uint64_t seq, struct rv__str text)
{
    (void)arg;
    (void)seq;
    (void)text;
    return RV_OK;
}

static int moment_row(void *arg, uint64_t seq, struct rv__str facts)
{
    (void)seq;
    (void)facts;
    ((struct moment *)arg)->rows++;
    return RV_OK;
}

static int moment_log(void *arg, const struct rv__store_log *line)
{
    (void)line;
    ((struct moment *)arg)->lines++;
    return RV_OK;
}

static void a_run_is_shown_as_of_one_moment(void **state)
{
    static const struct rv__store_visitor at = { moment_run, moment_text, moment_text, moment_row,
                                                 moment_log };
    struct fixture *fx = *state;
    struct writing w = { .fx = fx };
    struct rv__store *reader = NULL;
    pthread_t thread;
    begin(fx, "a", "0");
    assert_int_equal(rv__store_reader(fx->store, &reader, NULL), RV_OK);
    assert_int_equal(pthread_create(&thread, NULL, keep_writing, &w), 0);
    struct moment m = { 0 };
    while (m.status < 200) {
        m = (struct moment){ 0 };
        assert_int_equal(rv__store_whole(reader, rv__str("a"), &at, &m, NULL), RV_OK);
        assert_int_equal(m.rows, m.status + 1);
        assert_int_equal(m.lines, m.status);
    }
    atomic_store(&w.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rv__store_close(reader);
}

/* -------------------------------------------------------------------------------- it comes --- */

/* A run in so many turns; it ends, or fails at turn `fails_at`. */
struct coming {
    int turn, turns, fails_at;
    bool twice; /* a result that was there before */
    char text[24];
    struct rv__store_run row;
    struct rv__store_definition definition;
    struct rv__store_result result;
    struct rv__store_value value;
    struct rv__store_log line;
    struct rv__store_touch touch;
};

static int comes(void *arg, struct rv__store_write *ret, rv_error *err)
{
    struct coming *c = arg;
    int turn = c->turn++;
    *ret = (struct rv__store_write){ .run = rv__str("new") };
    if (turn == c->fails_at) {
        snprintf(err->message, sizeof err->message, "no more");
        return err->code = RV_EPARSE;
    }
    if (turn > c->turns)
        return 0;
    if (turn == 0) {
        c->row = active_row("new");
        c->definition = (struct rv__store_definition){ rv__str("v1"), rv__str("{new}") };
        ret->row = &c->row;
        ret->definitions = &c->definition;
        ret->definition_count = 1;
        return 1;
    }
    snprintf(c->text, sizeof c->text, "%d", turn);
    c->result = (struct rv__store_result){ rv__str("k"), c->twice ? 1 : turn, rv__str(c->text) };
    c->line = (struct rv__store_log){ .message = rv__str(c->text) };
    ret->facts = rv__str(c->text);
    ret->results = &c->result;
    ret->result_count = 1;
    c->value = (struct rv__store_value){ (uint64_t)turn, rv__str(c->text) };
    ret->values = &c->value;
    ret->value_count = 1;
    ret->logs = &c->line;
    ret->log_count = 1;
    if (turn == c->turns) {
        c->touch = (struct rv__store_touch){ .status = rv__str("completed"), .completed_ms = 9 };
        ret->touch = &c->touch;
        ret->snapshot = rv__str("state");
    }
    return 1;
}

static int take_in(struct fixture *fx, struct coming coming, rv_error *err)
{
    if (coming.fails_at == 0)
        coming.fails_at = -1;
    return rv__store_import(fx->store, rv__str("new"), comes, &coming, err);
}

static void nothing_has_come(struct fixture *fx)
{
    run_is(fx, "new", NULL);
    journal_is(fx, "new", 0, "");
    results_are(fx, "new", "k", "");
    value_is(fx, "new", 1, NULL);
    snapshot_is(fx, "new", NULL);
    logs_are(fx, (struct rv__store_log_query){ .run = { NULL, 0 } }, "");
    feed_is(fx, 0, 100, "other:x ");
    counts_are(fx, "running=1 ", 1, 0);
}

static void a_run_comes_whole(void **state)
{
    struct fixture *fx = *state;
    uint64_t before = begin(fx, "other", "x");
    assert_int_equal(take_in(fx, (struct coming){ .turns = 3 }, NULL), RV_OK);
    run_is(fx, "new", "new:v1:completed:{}:idle:0;");
    journal_is(fx, "new", 0, "[1][2][3]");
    journal_is(fx, "new", before, "[1][2][3]");
    results_are(fx, "new", "k", "1=1;2=2;3=3;");
    snapshot_is(fx, "new", "state");
    logs_are(fx, (struct rv__store_log_query){ .run = rv__str("new") }, "1 2 3 ");
    whole_is(fx, "new",
             "run new completed {};plan {new};value 1 1;value 2 2;value 3 3;"
             "log 1;turn 1;log 2;turn 2;log 3;turn 3;");
    counts_are(fx, "completed=1 running=1 ", 2, 1);
    reopen(fx);
    journal_is(fx, "new", 0, "[1][2][3]");
    assert_true(append(fx, "other", "y") > before + 6); /* the numbers go on behind it */
}

static void a_run_that_is_there_is_left_as_it_is(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    begin(fx, "new", "mine");
    assert_int_equal(take_in(fx, (struct coming){ .turns = 3 }, &err), RV_EEXIST);
    assert_non_null(strstr(err.message, "'new'"));
    journal_is(fx, "new", 0, "[mine]");
    results_are(fx, "new", "k", "");
}

static void what_breaks_off_leaves_nothing(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    begin(fx, "other", "x");
    for (int turn = 1; turn <= 5; turn++) {
        assert_int_equal(take_in(fx, (struct coming){ .turns = 4, .fails_at = turn }, &err),
                         RV_EPARSE);
        assert_string_equal(err.message, "no more");
        nothing_has_come(fx);
    }
    assert_int_equal(take_in(fx, (struct coming){ .turns = 4, .twice = true }, &err), RV_EINVAL);
    nothing_has_come(fx);
    if (fx->maker->fail_next != NULL) {
        fx->maker->fail_next(fx->maker, fx->store);
        assert_int_equal(take_in(fx, (struct coming){ .turns = 4 }, &err), RV_ESTORE);
        nothing_has_come(fx);
    }
    assert_int_equal(take_in(fx, (struct coming){ .turns = 4 }, &err), RV_OK);
    journal_is(fx, "new", 0, "[1][2][3][4]");
}

static void no_memory_leaves_nothing_of_an_import(void **state)
{
    struct fixture *fx = *state;
    int rc;
    begin(fx, "other", "x");
    TORTURE(rc, take_in(fx, (struct coming){ .turns = 4 }, NULL), nothing_has_come(fx));
    assert_int_equal(rc, RV_OK);
    journal_is(fx, "new", 0, "[1][2][3][4]");
}

static void a_reader_takes_nothing_in(void **state)
{
    struct fixture *fx = *state;
    struct coming coming = { .turns = 1, .fails_at = -1 };
    struct rv__store *reader = NULL;
    assert_int_equal(rv__store_reader(fx->store, &reader, NULL), RV_OK);
    assert_int_equal(rv__store_import(reader, rv__str("new"), comes, &coming, NULL), RV_ESTATE);
    rv__store_close(reader);
    run_is(fx, "new", NULL);
}

/* --------------------------------------------------------------------------------- backups --- */

struct steps {
    int count;
    uint64_t done, total;
    int answer;
};

static int note_step(void *arg, uint64_t done, uint64_t total)
{
    struct steps *steps = arg;
    assert_true(done >= steps->done && done <= total);
    *steps = (struct steps){ steps->count + 1, done, total, steps->answer };
    return steps->answer;
}

static void a_backup_has_all_that_was_there(void **state)
{
    struct fixture *fx = *state;
    struct steps steps = { .count = 0 };
    char path[] = "/tmp/rival-backup-XXXXXX", lock[64];
    int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    full_run(fx, "a");
    begin(fx, "b", "1");
    int rc = rv__store_backup(fx->store, path, note_step, &steps, NULL);
    if (rc == RV_ESTATE) { /* it says that it cannot: the simulated one */
        assert_int_equal(unlink(path), 0);
        return;
    }
    assert_int_equal(rc, RV_OK);
    assert_true(steps.count > 0 && steps.done == steps.total);
    append(fx, "b", "2"); /* later than the copy */
    struct rv__store *copy = NULL, *store = fx->store;
    assert_int_equal(
        rv__store_open(&(struct rv__store_opts){ .path = path, .read_only = true }, &copy, NULL),
        RV_OK);
    fx->store = copy;
    whole_is(fx, "a", "run a completed {\"n\":1};value 7 v;log a;turn f;");
    results_are(fx, "a", "k", "1=r;");
    whole_is(fx, "b", "run b running {};turn 1;");
    rv__store_close(copy);
    assert_int_equal(rv__store_open(&(struct rv__store_opts){ .path = path }, &copy, NULL), RV_OK);
    fx->store = copy;
    append(fx, "b", "3"); /* a store like any other */
    journal_is(fx, "b", 0, "[1][3]");
    rv__store_close(copy);
    fx->store = store;
    snprintf(lock, sizeof lock, "%s.lock", path);
    (void)unlink(lock);
    assert_int_equal(unlink(path), 0);
}

static void who_asked_for_a_backup_can_end_it(void **state)
{
    struct fixture *fx = *state;
    struct steps steps = { .answer = RV_ECANCELED };
    char path[] = "/tmp/rival-backup-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    full_run(fx, "a");
    int rc = rv__store_backup(fx->store, path, note_step, &steps, NULL);
    assert_true(rc == RV_ECANCELED || (rc == RV_ESTATE && steps.count == 0));
    append(fx, "a", "2"); /* nothing is held any more */
    assert_int_equal(unlink(path), 0);
}

int store_suite_whole(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(a_run_is_shown_whole_and_in_order),
        STORE_CASE(a_visitor_can_end_the_show),
        STORE_CASE(a_run_is_shown_as_of_one_moment),
        STORE_CASE(a_run_comes_whole),
        STORE_CASE(a_run_that_is_there_is_left_as_it_is),
        STORE_CASE(what_breaks_off_leaves_nothing),
        STORE_CASE(no_memory_leaves_nothing_of_an_import),
        STORE_CASE(a_reader_takes_nothing_in),
        STORE_CASE(a_backup_has_all_that_was_there),
        STORE_CASE(who_asked_for_a_backup_can_end_it),
    };
    return STORE_GROUP("store: whole", tests);
}
