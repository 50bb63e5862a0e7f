/* test_postgres_faults.c: for src/store/postgres/: what several processes, lost connections and a server that goes away
 * do to it. The contract is that of src/store/store.h; ADR 0034 has the design. */
#include "unit/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "store/postgres/postgres.h"
#include "unit/store/pg_server.h"

struct fixture {
    char address[PG_ADDRESS_MAX], lined[PG_ADDRESS_MAX];
    struct rv__store *store;
    struct pg_line *line; /* NULL: the store's connection cannot be cut */
    PGconn *pg;           /* the test's own */
};

static struct rv__store *open_with(struct rv__store_opts opts)
{
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    if (rv__postgres_open(&opts, &store, &err) != RV_OK)
        fail_msg("%s", err.message);
    return store;
}

static struct rv__store *open_at(const char *address, bool read_only)
{
    return open_with((struct rv__store_opts){ .path = address, .read_only = read_only });
}

static int setup_empty(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    pg_database_new(fx->address);
    fx->pg = pg_connect(fx->address);
    *state = fx;
    return 0;
}

static int setup(void **state)
{
    (void)setup_empty(state);
    struct fixture *fx = *state;
    fx->store = open_at(fx->address, false);
    return 0;
}

static int setup_line(void **state)
{
    (void)setup_empty(state);
    struct fixture *fx = *state;
    fx->line = pg_line_new(fx->address, fx->lined);
    fx->store = open_at(fx->lined, false);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    rv__store_close(fx->store);
    if (fx->line != NULL)
        pg_line_free(fx->line);
    PQfinish(fx->pg);
    pg_database_drop(fx->address);
    free(fx);
    return 0;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ------------------------------------------------------------------------------------ writing --- */

static int begin(struct rv__store *store, const char *id, uint64_t *ret_number)
{
    struct rv__store_run row = { .id = rv__str(id), .status = rv__str("running"), .active = true };
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str("0"), .row = &row };
    int rc = rv__store_commit_one(store, &write, NULL);
    if (ret_number != NULL)
        *ret_number = write.number;
    return rc;
}

static int append(struct rv__store *store, const char *id, const char *facts, rv_error *err)
{
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts) };
    return rv__store_commit_one(store, &write, err);
}

static int add_text(void *arg, uint64_t seq, struct rv__str text)
{
    (void)seq;
    rv__buf_fmt(arg, "%.*s ", RV__ARG(text));
    return RV_OK;
}

static void journal_is(struct rv__store *store, const char *id, const char *expected)
{
    struct rv__buf seen;
    rv__buf_init(&seen, SIZE_MAX);
    assert_int_equal(rv__store_journal(store, rv__str(id), 0, add_text, &seen, NULL), RV_OK);
    assert_str(rv__buf_view(&seen), expected);
    rv__buf_done(&seen);
}

/* -------------------------------------------------------------------------------- who writes --- */

static void a_second_writer_is_told_who_the_first_is(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *second = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = fx->address };
    char process[32];
    assert_int_equal(rv__postgres_open(&opts, &second, &err), RV_EBUSY);
    snprintf(process, sizeof process, "process %d", (int)getpid());
    assert_non_null(strstr(err.message, process));
    second = open_at(fx->address, true); /* reading is always possible */
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    journal_is(second, "a", "0 ");
    rv__store_close(second);
    rv__store_close(fx->store);
    fx->store = open_at(fx->address, false); /* and the place is free again */
    assert_int_equal(append(fx->store, "a", "1", NULL), RV_OK);
}

static void cut_writers(struct fixture *fx)
{
    pg_run(fx->pg, "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype ="
                   " 'advisory' AND l.objsubid = 1 AND l.database ="
                   " (SELECT oid FROM pg_database WHERE datname = current_database())");
    while (pg_number(fx->pg, "SELECT count(*) FROM pg_locks l WHERE l.locktype = 'advisory'"
                             " AND l.objsubid = 1 AND l.database = (SELECT oid FROM pg_database"
                             " WHERE datname = current_database())") > 0)
        pause_ms(5);
}

static void who_was_replaced_writes_nothing_more(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    cut_writers(fx);
    struct rv__store *other = open_at(fx->address, false);
    assert_int_equal(append(other, "a", "theirs", NULL), RV_OK);
    assert_int_equal(append(fx->store, "a", "ours", &err), RV_EGONE);
    assert_non_null(strstr(err.message, "another process"));
    assert_int_equal(append(fx->store, "a", "ours", &err), RV_EGONE);
    assert_int_equal(begin(fx->store, "b", NULL), RV_EGONE);
    journal_is(other, "a", "0 theirs ");
    rv__store_close(other);
}

/* The fence is in the transaction: a connection that lives does not help. */
static void the_epoch_is_checked_in_the_transaction(void **state)
{
    struct fixture *fx = *state;
    bool more;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    pg_run(fx->pg, "UPDATE rival.lanes SET epoch = epoch + 1");
    assert_int_equal(append(fx->store, "a", "ours", NULL), RV_EGONE);
    assert_int_equal(rv__store_forget(fx->store, NULL, 0, &more, NULL), RV_EGONE);
    journal_is(fx->store, "a", "0 ");
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.journal"), 1);
}

/* Whoever else wrote a run: its row has one successor, and ours is refused alone. */
static void a_run_that_another_wrote_is_refused_alone(void **state)
{
    struct fixture *fx = *state;
    uint64_t a = 0, b = 0;
    assert_int_equal(begin(fx->store, "a", &a), RV_OK);
    assert_int_equal(begin(fx->store, "b", &b), RV_OK);
    pg_run(fx->pg, "INSERT INTO rival.journal SELECT nextval('rival.seqs'), run, seq, 'theirs'"
                   " FROM rival.journal WHERE run = 1");
    struct rv__store_write writes[] = {
        { .run = rv__str("a"), .number = a, .facts = rv__str("ours") },
        { .run = rv__str("b"), .number = b, .facts = rv__str("1") },
    };
    assert_int_equal(rv__store_commit(fx->store, writes, 2, NULL), RV_OK);
    assert_int_equal(writes[1].outcome, STORE_WRITTEN);
    assert_int_equal(writes[0].outcome, STORE_REFUSED);
    assert_int_equal(writes[0].why.code, RV_ESTATE);
    journal_is(fx->store, "a", "0 theirs ");
    journal_is(fx->store, "b", "0 1 ");
}

/* --------------------------------------------------------------------------------- the feed --- */

struct follower {
    struct rv__store *reader;
    uint64_t after;
    long rows;
    bool back; /* a number that is not larger than the last */
};

static int follow_row(void *arg, uint64_t seq, struct rv__str run, struct rv__str facts)
{
    struct follower *f = arg;
    (void)run;
    (void)facts;
    f->back = f->back || seq <= f->after;
    f->after = seq;
    f->rows++;
    return RV_OK;
}

static long follow(struct follower *f)
{
    long before = f->rows;
    assert_int_equal(rv__store_feed(f->reader, f->after, SIZE_MAX, follow_row, f, NULL), RV_OK);
    assert_false(f->back);
    return f->rows - before;
}

/* Another member's transaction, up to where its row is there but not committed: as write.c does it. */
static void member_begins(PGconn *pg, long run)
{
    char class_id[24], sql[256];
    snprintf(class_id, sizeof class_id, "%ld",
             pg_number(pg, "SELECT 'rival'::regnamespace::oid::bigint"));
    const char *values[] = { class_id };
    pg_run(pg, "BEGIN; SET LOCAL search_path = rival");
    PGresult *result = PQexecParams(pg, rv__pg_sql_text[PG_PLACE], 1, NULL, values, NULL, NULL, 0);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    snprintf(sql, sizeof sql,
             "INSERT INTO journal SELECT nextval('seqs'), %ld, coalesce(max(seq), 0), '\\x31' FROM"
             " journal WHERE run = %ld",
             run, run);
    pg_run(pg, sql);
}

static void a_late_commit_is_not_passed_by(void **state)
{
    struct fixture *fx = *state;
    struct follower f = { .reader = open_at(fx->address, true) };
    uint64_t number = 0;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    assert_int_equal(begin(fx->store, "b", &number), RV_OK);
    assert_int_equal(follow(&f), 2);
    member_begins(fx->pg, (long)number);
    assert_int_equal(append(fx->store, "a", "later", NULL), RV_OK); /* nobody waits for anybody */
    assert_int_equal(append(fx->store, "a", "later", NULL), RV_OK);
    assert_int_equal(follow(&f), 0); /* but a reader does */
    struct rv__store_usage usage;
    assert_int_equal(rv__store_usage(f.reader, &usage, NULL), RV_OK);
    assert_int_equal(usage.last_seq, 2); /* who begins there misses nothing */
    journal_is(f.reader, "a", "0 later later ");
    pg_run(fx->pg, "COMMIT");
    assert_int_equal(follow(&f), 3);
    member_begins(fx->pg, (long)number); /* one that comes to nothing leaves a gap */
    assert_int_equal(append(fx->store, "a", "later", NULL), RV_OK);
    assert_int_equal(follow(&f), 0);
    pg_run(fx->pg, "ROLLBACK");
    assert_int_equal(follow(&f), 1);
    rv__store_close(f.reader);
}

static int count_line(void *arg, const struct rv__store_log *line)
{
    (void)line;
    ++*(int *)arg;
    return RV_OK;
}

static void late_log_lines_are_not_passed_by(void **state)
{
    struct fixture *fx = *state;
    uint64_t number = 0;
    struct rv__store_log line = { .message = rv__str("m") };
    struct rv__store_write write = { .run = rv__str("a"), .logs = &line, .log_count = 1 };
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    int lines = 0;
    assert_int_equal(begin(fx->store, "a", &number), RV_OK);
    member_begins(fx->pg, (long)number);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_logs(fx->store, &query, count_line, &lines, NULL), RV_OK);
    assert_int_equal(lines, 0);
    pg_run(fx->pg, "ROLLBACK");
    assert_int_equal(rv__store_logs(fx->store, &query, count_line, &lines, NULL), RV_OK);
    assert_int_equal(lines, 1);
}

/* Two members write log lines; the one that had its id first commits last. */
static void a_late_log_line_comes_before_the_next(void **state)
{
    struct fixture *fx = *state;
    uint64_t number = 0;
    char sql[160];
    struct rv__store_log line = { .message = rv__str("m") };
    struct rv__store_write write = { .run = rv__str("a"), .logs = &line, .log_count = 1 };
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    int lines = 0;
    assert_int_equal(begin(fx->store, "a", &number), RV_OK);
    member_begins(fx->pg, (long)number);
    snprintf(sql, sizeof sql,
             "INSERT INTO logs (id, run, at_ms, level, attempt, message)"
             " VALUES (nextval('seqs'), %llu, 1, 1, 1, 'late')",
             (unsigned long long)number);
    pg_run(fx->pg, sql);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_logs(fx->store, &query, count_line, &lines, NULL), RV_OK);
    assert_int_equal(lines, 0); /* who followed would pass the late one by */
    pg_run(fx->pg, "COMMIT");
    assert_int_equal(rv__store_logs(fx->store, &query, count_line, &lines, NULL), RV_OK);
    assert_int_equal(lines, 2);
}

static void a_strangers_long_transaction_stalls_nobody(void **state)
{
    struct fixture *fx = *state;
    struct follower f = { .reader = open_at(fx->address, true) };
    struct rv__store_log line = { .message = rv__str("m") };
    struct rv__store_write write = { .run = rv__str("a"), .logs = &line, .log_count = 1 };
    struct rv__store_log_query query = { .limit = SIZE_MAX };
    int lines = 0;
    pg_run(fx->pg, "CREATE TABLE public.strange (n integer); BEGIN;"
                   "INSERT INTO public.strange VALUES (1); SELECT pg_advisory_xact_lock(1, 1)");
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    assert_int_equal(append(fx->store, "a", "1", NULL), RV_OK);
    assert_int_equal(follow(&f), 2);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(rv__store_logs(f.reader, &query, count_line, &lines, NULL), RV_OK);
    assert_int_equal(lines, 1);
    pg_run(fx->pg, "COMMIT");
    rv__store_close(f.reader);
}

/* Members that commit as late as they like, while a reader follows. */
struct member {
    struct fixture *fx;
    long run;
    uint64_t seed;
    atomic_int *going;
};

enum { MEMBERS = 4, TURNS = 60 };

static void *keep_writing(void *arg)
{
    struct member *m = arg;
    struct rv__random random;
    PGconn *pg = pg_connect(m->fx->address);
    rv__random_init(&random, m->seed);
    for (int i = 0; i < TURNS; i++) {
        member_begins(pg, m->run);
        pause_ms((long)rv__random_below(&random, 8));
        pg_run(pg, rv__random_below(&random, 5) == 0 ? "ROLLBACK" : "COMMIT");
    }
    PQfinish(pg);
    atomic_fetch_sub(m->going, 1);
    return NULL;
}

static void who_follows_sees_every_row_once_and_in_order(void **state)
{
    struct fixture *fx = *state;
    struct member members[MEMBERS];
    pthread_t threads[MEMBERS];
    atomic_int going = MEMBERS;
    struct follower f = { .reader = open_at(fx->address, true) };
    for (int i = 0; i < MEMBERS; i++) {
        char id[2] = { (char)('a' + i), '\0' };
        uint64_t number = 0;
        assert_int_equal(begin(fx->store, id, &number), RV_OK);
        members[i] = (struct member){ fx, (long)number, (uint64_t)i + 1, &going };
    }
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_writing, &members[i]), 0);
    while (atomic_load(&going) > 0)
        (void)follow(&f);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)follow(&f);
    assert_int_equal(f.rows, pg_number(fx->pg, "SELECT count(*) FROM rival.journal"));
    assert_true(f.rows > MEMBERS * TURNS / 2);
    rv__store_close(f.reader);
}

/* ----------------------------------------------------------------------------- lost answers --- */

/* Commit turn n with a new run, a touch and a line, over a line that is cut: it is there once, and its numbers are
 * those that are told. */
static void commit_over_cut_line(struct fixture *fx, int n)
{
    char id[16], text[16];
    snprintf(id, sizeof id, "n%d", n);
    snprintf(text, sizeof text, "%d", n);
    struct rv__store_run row = { .id = rv__str(id), .status = rv__str("running"), .active = true };
    struct rv__store_touch touch = { .status = rv__str(text), .active = true };
    struct rv__store_log line = { .message = rv__str(text) };
    struct rv__store_result result = { rv__str("k"), n, rv__str(text) };
    struct rv__store_write writes[] = {
        { .run = rv__str(id), .row = &row, .facts = rv__str(text) },
        { .run = rv__str("a"),
          .facts = rv__str(text),
          .touch = &touch,
          .results = &result,
          .result_count = 1,
          .logs = &line,
          .log_count = 1 },
        { .run = rv__str("nobody"), .facts = rv__str(text) },
    };
    rv_error err = { 0, "" };
    char sql[160];
    if (rv__store_commit(fx->store, writes, 3, &err) != RV_OK)
        fail_msg("cut %d: %s", n, err.message);
    assert_int_equal(writes[0].outcome, STORE_WRITTEN);
    assert_int_equal(writes[1].outcome, STORE_WRITTEN);
    assert_int_equal(writes[2].outcome, STORE_REFUSED);
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql,
                 "SELECT seq FROM rival.journal WHERE run = %llu AND facts = '%s'::bytea",
                 (unsigned long long)writes[i].number, text);
        assert_int_equal(pg_number(fx->pg, sql), (long)writes[i].seq);
    }
}

static void check_after_cuts(struct fixture *fx, int commits)
{
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.journal"), 2 * commits + 1);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.logs"), commits);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.results"), commits);
    assert_int_equal(pg_number(fx->pg, "SELECT sum(runs) FROM rival.counts WHERE kind = 1"),
                     commits + 1);
    assert_int_equal(pg_number(fx->pg, "SELECT sum(runs) FROM rival.counts WHERE kind = 0"),
                     commits + 1);
}

/* The line is cut after 1, 1 + step … bytes, until a commit needs fewer. */
static int cut_everywhere(struct fixture *fx, bool to_server, long step, int from)
{
    int n = from;
    bool was_cut = true;
    for (long at = 1; was_cut; at += step) {
        pg_line_cut_after(fx->line, to_server ? at : -1, to_server ? -1 : at);
        commit_over_cut_line(fx, ++n);
        was_cut = pg_line_was_cut(fx->line);
    }
    return n;
}

static void a_line_cut_anywhere_loses_and_doubles_nothing(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    commit_over_cut_line(fx, 1); /* now all is prepared */
    int n = cut_everywhere(fx, false, 17, 1);
    assert_true(n > 20);
    int more = cut_everywhere(fx, true, 61, n);
    assert_true(more > n + 15);
    check_after_cuts(fx, more);
}

/* The answer is lost, and so is the server for a while: the same commit, made again, finds itself. */
static void a_commit_whose_answer_is_lost_is_found_again(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_log line = { .message = rv__str("said") };
    struct rv__store_write write = { .run = rv__str("a"), .facts = rv__str("1"), .logs = &line };
    int found = 0, absent = 0;
    write.log_count = 1;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    for (long at = 1; found < 2; at += 60) {
        assert_true(at < 5000);
        long before = pg_number(fx->pg, "SELECT count(*) FROM rival.journal");
        pg_line_cut_after(fx->line, -1, at);
        pg_line_refuse(fx->line, 1);
        assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_ESTORE);
        long between = pg_number(fx->pg, "SELECT count(*) FROM rival.journal");
        assert_true(between == before || between == before + 1);
        found += between == before + 1;
        absent += between == before;
        pg_line_refuse(fx->line, 0);
        pause_ms(2100); /* longer than any back-off */
        assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
        assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.journal"), before + 1);
        assert_int_equal(pg_number(fx->pg, "SELECT max(seq) FROM rival.journal"), (long)write.seq);
        if (absent >= 1)
            at += 200; /* on to where the answer itself is cut */
    }
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.logs"),
                     pg_number(fx->pg, "SELECT count(*) - 1 FROM rival.journal"));
}

static void commit_again_until_it_is_there(struct fixture *fx, struct rv__store_write *write)
{
    rv_error err = { 0, "" };
    int rc;
    while ((rc = rv__store_commit_one(fx->store, write, &err)) == RV_ESTORE)
        pause_ms(10); /* as the engine does: the same again */
    if (rc != RV_OK)
        fail_msg("%s", err.message);
}

/* One more row of run a. */
static void add_row(struct fixture *fx)
{
    struct rv__store_write write = { .run = rv__str("a"), .facts = rv__str("1") };
    long before = pg_number(fx->pg, "SELECT count(*) FROM rival.journal");
    commit_again_until_it_is_there(fx, &write);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.journal"), before + 1);
    assert_int_equal(pg_number(fx->pg, "SELECT max(seq) FROM rival.journal"), (long)write.seq);
}

/* The answer is lost at its last byte, so the commit is on disk. The connection that asks what became of it is
 * lost, too, after 1, 1 + STEP … bytes. The row is not taken for one that somebody else has written. */
static void an_answer_lost_twice_is_found_again(void **state)
{
    enum { PLENTY = 1000000, STEP = 97 };
    struct fixture *fx = *state;
    int cuts = 0;
    bool cut_twice = true;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    add_row(fx); /* now all is prepared */
    pg_line_cut_after(fx->line, -1, PLENTY);
    add_row(fx);
    long answer_bytes = PLENTY - pg_line_left(fx->line);
    for (long at = 1; cut_twice; at += STEP, cuts++) {
        pg_line_cut_after(fx->line, -1, -1);
        add_row(fx); /* over a connection that is there, and has prepared */
        pg_line_cut_after(fx->line, -1, answer_bytes - 1);
        pg_line_cut_again_after(fx->line, at);
        add_row(fx);
        assert_true(pg_line_was_cut(fx->line));
        cut_twice = pg_line_left(fx->line) < 0;
    }
    assert_true(cuts > 10);
}

/* Somebody ends the server's process of the writer, at any moment after a commit that went well: so there is always
 * another one, however slow the machine is. */
struct killer {
    struct fixture *fx;
    atomic_bool stop;
    atomic_int commits, kills;
};

static void *keep_killing(void *arg)
{
    struct killer *k = arg;
    PGconn *pg = pg_connect(k->fx->address);
    struct rv__random random;
    int seen = 0;
    pg_run(pg, "SET client_min_messages = error");
    rv__random_init(&random, 5);
    while (!atomic_load(&k->stop)) {
        if (atomic_load(&k->commits) == seen) {
            pause_ms(1);
            continue;
        }
        pause_ms((long)rv__random_below(&random, 20));
        seen = atomic_load(&k->commits);
        atomic_fetch_add(&k->kills,
                         (int)pg_number(pg, "SELECT count(pg_terminate_backend(pid)) FROM"
                                            " pg_stat_activity WHERE application_name = 'rival'"
                                            " AND datname = current_database()"));
    }
    PQfinish(pg);
    return NULL;
}

static void ended_backends_lose_and_double_nothing(void **state)
{
    struct fixture *fx = *state;
    struct killer killer = { .fx = fx };
    pthread_t thread;
    int n = 0;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    assert_int_equal(pthread_create(&thread, NULL, keep_killing, &killer), 0);
    while (n < 60 || atomic_load(&killer.kills) < 15) {
        char text[16];
        snprintf(text, sizeof text, "%d", ++n);
        struct rv__store_log line = { .message = rv__str(text) };
        struct rv__store_write write = {
            .run = rv__str("a"), .facts = rv__str(text), .logs = &line, .log_count = 1
        };
        commit_again_until_it_is_there(fx, &write);
        atomic_store(&killer.commits, n);
    }
    atomic_store(&killer.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.journal"), n + 1);
    assert_int_equal(pg_number(fx->pg, "SELECT count(DISTINCT facts) FROM rival.journal"), n + 1);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.logs"), n);
}

/* ------------------------------------------------------------------------------- the server --- */

static void a_server_that_comes_back_is_found(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *reader = NULL;
    rv_error err = { 0, "" };
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    assert_int_equal(rv__store_reader(fx->store, &reader, NULL), RV_OK);
    PQfinish(fx->pg);
    fx->pg = NULL;
    pg_server_halt();
    assert_int_equal(append(fx->store, "a", "1", &err), RV_ESTORE);
    assert_non_null(strstr(err.message, "cannot be reached"));
    assert_int_equal(rv__store_journal(reader, rv__str("a"), 0, add_text, NULL, &err), RV_ESTORE);
    pg_server_again();
    fx->pg = pg_connect(fx->address);
    pause_ms(2100);
    assert_int_equal(append(fx->store, "a", "1", &err), RV_OK);
    journal_is(reader, "a", "0 1 ");
    PQfinish(fx->pg); /* and between two commits nobody notices */
    fx->pg = NULL;
    pg_server_halt();
    pg_server_again();
    fx->pg = pg_connect(fx->address);
    assert_int_equal(append(fx->store, "a", "2", &err), RV_OK);
    journal_is(reader, "a", "0 1 2 ");
    rv__store_close(reader);
}

/* The server ends a transaction for another one's sake: it is tried again at once. */
static void a_conflict_is_tried_again(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    pg_run(fx->pg, "CREATE SEQUENCE public.tries; CREATE FUNCTION public.conflict() RETURNS trigger"
                   " LANGUAGE plpgsql AS $$ BEGIN IF nextval('public.tries') % 3 <> 0 THEN"
                   " RAISE 'again' USING ERRCODE = 'serialization_failure'; END IF; RETURN NEW;"
                   " END $$; CREATE TRIGGER conflict BEFORE INSERT ON rival.journal FOR EACH ROW"
                   " EXECUTE FUNCTION public.conflict()");
    assert_int_equal(append(fx->store, "a", "1", NULL), RV_OK);
    assert_int_equal(append(fx->store, "a", "2", NULL), RV_OK);
    journal_is(fx->store, "a", "0 1 2 ");
}

static void a_store_that_was_dropped_is_gone(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(begin(fx->store, "a", NULL), RV_OK);
    pg_run(fx->pg, "SET client_min_messages = error; DROP SCHEMA rival CASCADE");
    assert_int_equal(append(fx->store, "a", "1", NULL), RV_EGONE);
}

/* ----------------------------------------------------------------------------------- schemas --- */

static void *start_up(void *arg)
{
    struct fixture *fx = arg;
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    int rc = rv__postgres_open(&(struct rv__store_opts){ .path = fx->address }, &store, &err);
    if (rc != RV_OK && rc != RV_EBUSY)
        fprintf(stderr, "start_up: %s\n", err.message);
    pause_ms(rc == RV_OK ? 300 : 0);
    rv__store_close(store);
    return (void *)(intptr_t)rc;
}

static void several_may_make_the_tables_at_once(void **state)
{
    struct fixture *fx = *state;
    enum { STARTERS = 8 };
    pthread_t threads[STARTERS];
    int writers = 0;
    for (int i = 0; i < STARTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_up, fx), 0);
    for (int i = 0; i < STARTERS; i++) {
        void *rc = NULL;
        assert_int_equal(pthread_join(threads[i], &rc), 0);
        assert_true((intptr_t)rc == RV_OK || (intptr_t)rc == RV_EBUSY);
        writers += (intptr_t)rc == RV_OK;
    }
    assert_true(writers >= 1);
    assert_int_equal(pg_number(fx->pg, "SELECT version FROM rival.meta"), PG_SCHEMA_VERSION);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM rival.meta"), 1);
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *store = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = fx->address };
    opts.read_only = true;
    assert_int_equal(rv__postgres_open(&opts, &store, &err), RV_ESTATE); /* there is nothing yet */
    assert_int_equal(pg_number(fx->pg, "SELECT count(*) FROM pg_namespace WHERE nspname = 'rival'"),
                     0);
    rv__store_close(open_at(fx->address, false));
    pg_run(fx->pg, "UPDATE rival.meta SET version = 99, floor = 98");
    for (int i = 0; i < 2; i++) {
        opts.read_only = i == 0;
        assert_int_equal(rv__postgres_open(&opts, &store, &err), RV_ESTATE);
        assert_non_null(strstr(err.message, "schema 99"));
        assert_non_null(strstr(err.message, "knows schema 98 or later"));
    }
    assert_null(store);
    assert_int_equal(pg_number(fx->pg, "SELECT epoch FROM rival.lanes"), 1);
}

static struct rv__store *join_at(const char *address)
{
    return open_with((struct rv__store_opts){ .path = address, .member = true });
}

/* A newer program has upgraded the store, and takes this version beside it. */
static void members_of_neighbouring_versions_share_a_store(void **state)
{
    struct fixture *fx = *state;
    rv_error err = { 0, "" };
    struct rv__store *before = join_at(fx->address);
    pg_run(fx->pg,
           "ALTER TABLE rival.runs ADD later integer; ALTER TABLE rival.lanes ADD later text;"
           "UPDATE rival.meta SET version = version + 1");
    struct rv__store_run row = { .id = rv__str("r"), .active = true, .created_ms = 1 };
    struct rv__store_write begins = { .run = row.id, .row = &row, .facts = rv__str("f") };
    assert_int_equal(rv__store_commit(before, &begins, 1, &err), RV_OK);
    cut_writers(fx); /* it comes back to what the store has become */
    struct rv__store_write goes_on = { .run = row.id, .facts = rv__str("g") };
    commit_again_until_it_is_there(&(struct fixture){ .store = before }, &goes_on);
    assert_int_equal(before->ops->rejoin(before, &err), RV_OK);
    struct rv__store *after = join_at(fx->address);
    journal_is(after, "r", "f g ");
    rv__store_close(after);
    rv__store_close(before);
}

static void a_version_below_the_floor_is_refused(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *member = join_at(fx->address), *store = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = fx->address, .member = true };
    pg_run(fx->pg, "UPDATE rival.meta SET version = 9, floor = 9");
    assert_int_equal(rv__postgres_open(&opts, &store, &err), RV_ESTATE);
    assert_non_null(strstr(err.message, "use a newer version of Rival"));
    assert_int_equal(member->ops->rejoin(member, &err), RV_ESTATE);
    assert_non_null(strstr(err.message, "needs a newer version of Rival"));
    rv__store_close(member);
}

/* An upgrade does not pull the store away under a member that knows too little of the new one. */
static void an_upgrade_waits_for_members_below_its_floor(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *old = join_at(fx->address), *store = NULL;
    rv_error err = { 0, "" };
    struct rv__store_opts opts = { .path = fx->address, .member = true };
    pg_run(fx->pg,
           "ALTER TABLE rival.runs DROP lacks, DROP handed; ALTER TABLE rival.lanes DROP knows, "
           "DROP workers; DROP TABLE rival.marks;"
           "ALTER TABLE rival.meta DROP floor; UPDATE rival.meta SET version = 2;"
           "UPDATE rival.lanes SET version = '0.0.1'");
    assert_int_equal(rv__postgres_open(&opts, &store, &err), RV_ESTATE);
    assert_non_null(strstr(err.message, "a member of version 0.0.1, which is too old"));
    assert_int_equal(pg_number(fx->pg, "SELECT version FROM rival.meta"), 2);
    pg_run(fx->pg, "UPDATE rival.lanes SET renewed = renewed - interval '1 hour'");
    store = join_at(fx->address);
    assert_int_equal(pg_number(fx->pg, "SELECT version FROM rival.meta"), PG_SCHEMA_VERSION);
    rv__store_close(store);
    rv__store_close(old);
}

/* Schemas 4 and 5 only add to schema 3: a member that knows 3 goes on while another one upgrades. */
static void an_upgrade_that_only_adds_waits_for_nobody(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *old = join_at(fx->address);
    pg_run(fx->pg, "ALTER TABLE rival.lanes DROP workers; DROP TABLE rival.marks;"
                   "UPDATE rival.meta SET version = 3;"
                   "UPDATE rival.lanes SET knows = 3, version = '0.0.9'");
    struct rv__store *store = join_at(fx->address);
    assert_int_equal(pg_number(fx->pg, "SELECT version FROM rival.meta"), PG_SCHEMA_VERSION);
    assert_int_equal(pg_number(fx->pg, "SELECT count(*)::text FROM rival.lanes WHERE ended = 0"),
                     2);
    assert_int_equal(old->ops->renew(old, "", NULL), RV_OK);
    rv__store_close(store);
    rv__store_close(old);
}

static void a_bad_address_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *address, *says;
        int rc;
    } rows[] = {
        { "postgres://[", "address", RV_EINVAL },
        { "postgres://h/db?nothing=1", "nothing", RV_EINVAL },
        { "postgres://%2Fnowhere/db", "cannot be reached", RV_ESTORE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__store *store = NULL;
        rv_error err = { 0, "" };
        struct rv__store_opts opts = { .path = rows[i].address };
        assert_int_equal(rv__postgres_open(&opts, &store, &err), rows[i].rc);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].address, err.message);
    }
}

static void no_memory_opens_nothing(void **state)
{
    struct fixture *fx = *state;
    struct rv__store *store = NULL;
    struct rv__store_opts opts = { .path = fx->address };
    int rc;
    TORTURE(rc, rv__postgres_open(&opts, &store, NULL), assert_null(store));
    assert_int_equal(rc, RV_OK);
    rv__store_close(store);
}

#define CASE(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_second_writer_is_told_who_the_first_is, setup),
        CASE(who_was_replaced_writes_nothing_more, setup),
        CASE(the_epoch_is_checked_in_the_transaction, setup),
        CASE(a_run_that_another_wrote_is_refused_alone, setup),
        CASE(a_late_commit_is_not_passed_by, setup),
        CASE(late_log_lines_are_not_passed_by, setup),
        CASE(a_late_log_line_comes_before_the_next, setup),
        CASE(a_strangers_long_transaction_stalls_nobody, setup),
        CASE(who_follows_sees_every_row_once_and_in_order, setup),
        CASE(a_line_cut_anywhere_loses_and_doubles_nothing, setup_line),
        CASE(a_commit_whose_answer_is_lost_is_found_again, setup_line),
        CASE(an_answer_lost_twice_is_found_again, setup_line),
        CASE(ended_backends_lose_and_double_nothing, setup),
        CASE(a_server_that_comes_back_is_found, setup),
        CASE(a_conflict_is_tried_again, setup),
        CASE(a_store_that_was_dropped_is_gone, setup),
        CASE(several_may_make_the_tables_at_once, setup_empty),
        CASE(a_newer_schema_is_refused_and_left_alone, setup_empty),
        CASE(members_of_neighbouring_versions_share_a_store, setup_empty),
        CASE(a_version_below_the_floor_is_refused, setup_empty),
        CASE(an_upgrade_waits_for_members_below_its_floor, setup_empty),
        CASE(an_upgrade_that_only_adds_waits_for_nobody, setup_empty),
        CASE(no_memory_opens_nothing, setup_empty),
        cmocka_unit_test(a_bad_address_is_an_error),
    };
    pg_server_start();
    int failed = cmocka_run_group_tests_name("postgres: faults", tests, NULL, NULL);
    pg_server_stop();
    return failed;
}
