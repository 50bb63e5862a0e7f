/* store_suite.c: what the parts of the suite share: a store, what is seen in it, what is put into it. */
#include "unit/store/store_fixture.h"

static struct store_maker *the_maker; /* cmocka's setup gets no argument of ours */

int store_setup(void **state)
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

int store_teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    fx->maker->remove(fx->maker, fx->store);
    rv__buf_done(&fx->seen);
    free(fx);
    return 0;
}

void reopen(struct fixture *fx)
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

int see_result(void *arg, int64_t index, struct rv__str json)
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

int see_text(void *arg, uint64_t seq, struct rv__str text)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_str(&fx->seen, text);
    return RV_OK;
}

int see_seq(void *arg, uint64_t seq, struct rv__str text)
{
    (void)text;
    *(uint64_t *)arg = seq;
    return RV_OK;
}

void seen(struct fixture *fx, const char *expected)
{
    assert_str(rv__buf_view(&fx->seen), expected);
    rv__buf_reset(&fx->seen);
}

void journal_is(struct fixture *fx, const char *run, uint64_t after, const char *expected)
{
    assert_int_equal(rv__store_journal(fx->store, rv__str(run), after, see_row, fx, NULL), RV_OK);
    seen(fx, expected);
}

void results_are(struct fixture *fx, const char *run, const char *key, const char *expected)
{
    assert_int_equal(rv__store_results(fx->store, rv__str(run), rv__str(key), INT64_MIN, SIZE_MAX,
                                       see_result, fx, NULL),
                     RV_OK);
    seen(fx, expected);
}

void value_is(struct fixture *fx, const char *run, uint64_t number, const char *expected)
{
    rv_error err = { 0, "" };
    int rc = rv__store_value_read(fx->store, rv__str(run), number, see_text, fx, &err);
    assert_int_equal(rc, expected != NULL ? RV_OK : RV_ENOTFOUND);
    assert_true(expected != NULL || strstr(err.message, run) != NULL);
    seen(fx, expected != NULL ? expected : "");
}

void active_are(struct fixture *fx, const char *expected)
{
    assert_int_equal(rv__store_active(fx->store, see_run, fx, NULL), RV_OK);
    seen(fx, expected);
}

void run_is(struct fixture *fx, const char *run, const char *expected)
{
    int rc = rv__store_run(fx->store, rv__str(run), see_run, fx, NULL);
    assert_int_equal(rc, expected != NULL ? RV_OK : RV_ENOTFOUND);
    seen(fx, expected != NULL ? expected : "");
}

void snapshot_is(struct fixture *fx, const char *run, const char *expected)
{
    int rc = rv__store_snapshot(fx->store, rv__str(run), see_text, fx, NULL);
    assert_int_equal(rc, expected != NULL ? RV_OK : RV_ENOTFOUND);
    seen(fx, expected != NULL ? expected : "");
}

/* ------------------------------------------------------------------------------- writing --- */

struct rv__store_run active_row(const char *id)
{
    return (struct rv__store_run){ .id = rv__str(id),
                                   .version = rv__str("v1"),
                                   .status = rv__str("running"),
                                   .input = rv__str("{}"),
                                   .active = true };
}

/* The first turn of a run: its row and its first facts. */
uint64_t begin(struct fixture *fx, const char *id, const char *facts)
{
    struct rv__store_run row = active_row(id);
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts), .row = &row };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    return write.seq;
}

uint64_t append(struct fixture *fx, const char *id, const char *facts)
{
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts) };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    return write.seq;
}

struct rv__store_run full_row(const char *id)
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

void commit_one(struct fixture *fx, struct rv__store_write write)
{
    rv_error err = { 0, "" };
    if (rv__store_commit_one(fx->store, &write, &err) != RV_OK)
        fail_msg("%s", err.message);
}

void touch(struct fixture *fx, const char *id, struct rv__store_touch touch)
{
    commit_one(fx, (struct rv__store_write){ .run = rv__str(id), .touch = &touch });
}

int see_id(void *arg, const struct rv__store_run *row)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s%s ", RV__ARG(row->id), rv__str_none(row->input) ? "" : "+");
    return RV_OK;
}

/* A run that is written with these times and flags, active by 1. */
void put(struct fixture *fx, const char *id, const char *status, int64_t created_ms,
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

int see_number(void *arg, const struct rv__store_run *row)
{
    *(uint64_t *)arg = row->number;
    return RV_OK;
}

int see_feed(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "%.*s:%.*s ", RV__ARG(run), RV__ARG(facts));
    return RV_OK;
}

uint64_t last_seq(struct fixture *fx)
{
    struct rv__store_usage usage;
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    return usage.last_seq;
}

void feed_is(struct fixture *fx, uint64_t after, size_t limit, const char *expected)
{
    assert_int_equal(rv__store_feed(fx->store, after, limit, see_feed, fx, NULL), RV_OK);
    seen(fx, expected);
}

void list_is(struct fixture *fx, struct rv__store_query query, const char *expected)
{
    assert_int_equal(rv__store_list(fx->store, &query, see_id, fx, NULL, NULL), RV_OK);
    seen(fx, expected);
}

static int see_message(void *arg, const struct rv__store_log *line)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s ", RV__ARG(line->message));
    return RV_OK;
}

void logs_are(struct fixture *fx, struct rv__store_log_query query, const char *expected)
{
    query.limit = query.limit == 0 ? SIZE_MAX : query.limit;
    assert_int_equal(rv__store_logs(fx->store, &query, see_message, fx, NULL), RV_OK);
    seen(fx, expected);
}

void log_line(struct fixture *fx, const char *run, enum rv__store_level level, const char *step,
              const char *message)
{
    struct rv__store_log line = { .level = level,
                                  .step = rv__str(step),
                                  .message = rv__str(message) };
    commit_one(fx, (struct rv__store_write){ .run = rv__str(run), .logs = &line, .log_count = 1 });
}

static int see_count(void *arg, struct rv__str status, uint64_t runs)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s=%llu ", RV__ARG(status), (unsigned long long)runs);
    return RV_OK;
}

void counts_are(struct fixture *fx, const char *expected, uint64_t runs, uint64_t finished)
{
    struct rv__store_usage usage;
    assert_int_equal(rv__store_counts(fx->store, see_count, fx, NULL), RV_OK);
    seen(fx, expected);
    assert_int_equal(rv__store_usage(fx->store, &usage, NULL), RV_OK);
    assert_int_equal(usage.runs, runs);
    assert_int_equal(usage.finished, finished);
    assert_true(runs == 0 || usage.bytes > 0);
}

/* A run with something in every table. */
static int see_mark(void *arg, const struct rv__store_mark *mark)
{
    struct fixture *fx = arg;
    rv__buf_fmt(&fx->seen, "%.*s=%llu.%llu%s ", RV__ARG(mark->name), (unsigned long long)mark->seq,
                (unsigned long long)mark->index, mark->free ? "" : "!");
    return RV_OK;
}

/* "name=seq.index ", with "!" if a member has it. */
void marks_are(struct fixture *fx, const char *expected)
{
    assert_int_equal(rv__store_marks(fx->store, see_mark, fx, NULL), RV_OK);
    seen(fx, expected);
}

void full_run(struct fixture *fx, const char *id)
{
    struct rv__store_run row = full_row(id);
    struct rv__store_result result = { rv__str("k"), 1, rv__str("r") };
    struct rv__store_value value = { 7, rv__str("v") };
    struct rv__store_log line = { .message = rv__str(id) };
    row.active = false;
    row.completed_ms = 50;
    row.status = rv__str("completed");
    commit_one(fx, (struct rv__store_write){ .run = rv__str(id),
                                             .row = &row,
                                             .facts = rv__str("f"),
                                             .results = &result,
                                             .result_count = 1,
                                             .values = &value,
                                             .value_count = 1,
                                             .snapshot = rv__str("s"),
                                             .logs = &line,
                                             .log_count = 1 });
}

int stop_at_once(void *arg, uint64_t seq, struct rv__str text)
{
    (void)seq;
    (void)text;
    ++*(int *)arg;
    return RV_ECANCELED;
}

int stop_at_run(void *arg, const struct rv__store_run *row)
{
    return stop_at_once(arg, 0, row->id);
}

int store_suite(struct store_maker *maker)
{
    the_maker = maker;
    return store_suite_commits() + store_suite_outcomes() + store_suite_results() +
           store_suite_lists() + store_suite_logs() + store_suite_retention() +
           store_suite_handles() + store_suite_whole() +
           (maker->join != NULL ? store_suite_members() : 0);
}
