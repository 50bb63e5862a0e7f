/* test_sqlite_heads.c: for src/store/sqlite/heads.c: the journal of a run is found without an index, by
 * the writer, by readers that were there before and by new ones, however far its row is behind. */
#include "unit/test.h"

#include <ftw.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "store/store.h"
#include "unit/store/faulty_vfs.h"

#define VFS "rival-heads-disk"

struct fixture {
    struct faulty_vfs quick; /* nothing fails, and nothing waits for a disk */
    char folder[64], path[96];
    uint32_t tail_rows;
    struct rv__store *store, *reader; /* NULL: not open */
    struct rv__buf seen;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    snprintf(fx->folder, sizeof fx->folder, "/tmp/rival-heads-XXXXXX");
    assert_non_null(mkdtemp(fx->folder));
    snprintf(fx->path, sizeof fx->path, "%s/a.db", fx->folder);
    faulty_init(&fx->quick, VFS);
    rv__buf_init(&fx->seen, SIZE_MAX);
    *state = fx;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void close_store(struct fixture *fx)
{
    rv__store_close(fx->reader);
    rv__store_close(fx->store);
    fx->reader = fx->store = NULL;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    close_store(fx);
    faulty_done(&fx->quick);
    rv__buf_done(&fx->seen);
    (void)nftw(fx->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fx);
    return 0;
}

static void open_store(struct fixture *fx)
{
    struct rv__store_opts opts = { .path = fx->path, .tail_rows = fx->tail_rows, .vfs = VFS };
    close_store(fx);
    assert_int_equal(rv__store_open(&opts, &fx->store, NULL), RV_OK);
    assert_int_equal(rv__store_reader(fx->store, &fx->reader, NULL), RV_OK);
}

static void begin(struct fixture *fx, const char *id, bool active)
{
    struct rv__store_run row = { .id = rv__str(id), .status = rv__str("s"), .active = active };
    struct rv__store_write write = { .run = rv__str(id), .row = &row, .facts = rv__str("1") };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
}

static void append(struct fixture *fx, const char *id, const char *facts)
{
    struct rv__store_write write = { .run = rv__str(id), .facts = rv__str(facts) };
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
}

static int see_row(void *arg, uint64_t seq, struct rv__str facts)
{
    struct fixture *fx = arg;
    (void)seq;
    rv__buf_fmt(&fx->seen, "[%.*s]", RV__ARG(facts));
    return RV_OK;
}

static void read_is(struct fixture *fx, struct rv__store *store, const char *run,
                    const char *expected, const char *who)
{
    assert_int_equal(rv__store_journal(store, rv__str(run), 0, see_row, fx, NULL), RV_OK);
    if (strcmp(fx->seen.len > 0 ? fx->seen.text : "", expected) != 0)
        fail_msg("%s of %s: %s, not %s", who, run, fx->seen.text, expected);
    rv__buf_reset(&fx->seen);
}

/* For the writer, for a reader that was there before, for a new one and for another program. */
static void journal_is(struct fixture *fx, const char *run, const char *expected)
{
    struct rv__store *fresh = NULL, *other = NULL;
    struct rv__store_opts opts = {
        .path = fx->path, .tail_rows = fx->tail_rows, .read_only = true, .vfs = VFS
    };
    read_is(fx, fx->store, run, expected, "the writer's journal");
    read_is(fx, fx->reader, run, expected, "a reader's journal");
    assert_int_equal(rv__store_reader(fx->store, &fresh, NULL), RV_OK);
    read_is(fx, fresh, run, expected, "a new reader's journal");
    rv__store_close(fresh);
    assert_int_equal(rv__store_open(&opts, &other, NULL), RV_OK);
    read_is(fx, other, run, expected, "another program's journal");
    rv__store_close(other);
}

/* A run of so many turns that comes from elsewhere, and stays active. */
struct filler {
    int turn, turns;
    const char *id;
};

static int fill(void *arg, struct rv__store_write *ret, rv_error *err)
{
    struct filler *f = arg;
    static struct rv__store_run row;
    (void)err;
    row = (struct rv__store_run){ .id = rv__str(f->id), .status = rv__str("s"), .active = true };
    *ret = (struct rv__store_write){ .run = row.id, .row = f->turn == 0 ? &row : NULL };
    ret->facts = rv__str("f");
    return f->turn++ < f->turns;
}

static void import_filler(struct fixture *fx, const char *id, int turns)
{
    struct filler f = { .turns = turns, .id = id };
    assert_int_equal(rv__store_import(fx->store, rv__str(id), fill, &f, NULL), RV_OK);
}

static void a_journal_is_found_far_behind_the_end(void **state)
{
    struct fixture *fx = *state; /* with the bound that people have */
    open_store(fx);
    begin(fx, "a", true);
    append(fx, "a", "2");
    begin(fx, "still", false);
    append(fx, "still", "2"); /* nothing says so in its row but the store itself */
    journal_is(fx, "a", "[1][2]");
    import_filler(fx, "x", 60000);
    journal_is(fx, "a", "[1][2]");
    append(fx, "a", "3");
    import_filler(fx, "y", 49000);
    journal_is(fx, "a", "[1][2][3]");
    open_store(fx); /* nothing in memory: it is in the tail */
    append(fx, "a", "4");
    journal_is(fx, "a", "[1][2][3][4]");
    import_filler(fx, "z", 120000);
    open_store(fx);
    journal_is(fx, "a", "[1][2][3][4]");
    append(fx, "a", "5");
    journal_is(fx, "a", "[1][2][3][4][5]");
    journal_is(fx, "still", "[1][2]");
}

/* Every run, against what was written, at any moment. */
enum { RUNS = 25, TURNS = 1500 };

struct model {
    struct rv__buf expected[RUNS];
    bool there[RUNS], active[RUNS];
    char ids[RUNS][8];
};

static void one_turn(struct fixture *fx, struct model *m, struct rv__random *random, int turn)
{
    struct rv__store_run rows[RUNS];
    struct rv__store_touch touches[RUNS];
    struct rv__store_write writes[RUNS + 1] = { 0 };
    char facts[16];
    size_t count = 0;
    snprintf(facts, sizeof facts, "%d", turn);
    for (int i = 0; i < RUNS; i++) {
        if (rv__random_below(random, 4) != 0)
            continue;
        struct rv__store_write *w = &writes[count];
        bool active = rv__random_below(random, 3) != 0;
        *w = (struct rv__store_write){ .run = rv__str(m->ids[i]) };
        if (rv__random_below(random, 10) != 0) {
            w->facts = rv__str(facts);
            rv__buf_fmt(&m->expected[i], "[%d]", turn);
        }
        if (!m->there[i] || rv__random_below(random, 12) == 0) {
            rows[count] = (struct rv__store_run){ .id = w->run, .active = active };
            w->row = &rows[count];
        } else if (rv__random_below(random, 6) == 0) {
            touches[count] = (struct rv__store_touch){ .active = active };
            w->touch = &touches[count];
        }
        m->there[i] = true;
        count++;
    }
    if (rv__random_below(random, 8) == 0) /* and one that is refused: all of it is written twice */
        writes[count++] = (struct rv__store_write){ .run = rv__str("nobody"),
                                                    .facts = rv__str("x") };
    assert_int_equal(rv__store_commit(fx->store, writes, count, NULL), RV_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(writes[i].outcome == STORE_WRITTEN || rv__str_is(writes[i].run, "nobody"));
}

static void journals_are_whole_at_any_moment(void **state)
{
    struct fixture *fx = *state;
    const char *seeds = getenv("RIVAL_SEEDS");
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : 3;
    for (uint64_t seed = 0; seed < count; seed++) {
        struct model m = { 0 };
        struct rv__random random;
        rv__random_init(&random, seed);
        fx->tail_rows = 1 + (uint32_t)rv__random_below(&random, 60);
        for (int i = 0; i < RUNS; i++) {
            snprintf(m.ids[i], sizeof m.ids[i], "%llu-%d", (unsigned long long)seed % 100, i);
            rv__buf_init(&m.expected[i], SIZE_MAX);
            rv__buf_text(&m.expected[i], "");
        }
        open_store(fx);
        for (int turn = 1; turn < TURNS; turn++) {
            one_turn(fx, &m, &random, turn);
            int i = (int)rv__random_below(&random, RUNS);
            if (m.there[i] && rv__random_below(&random, 10) == 0)
                journal_is(fx, m.ids[i], m.expected[i].len > 0 ? m.expected[i].text : "");
            if (rv__random_below(&random, 60) == 0)
                open_store(fx);
        }
        for (int i = 0; i < RUNS; i++) {
            if (m.there[i])
                journal_is(fx, m.ids[i], m.expected[i].len > 0 ? m.expected[i].text : "");
            rv__buf_done(&m.expected[i]);
        }
    }
}

static void no_memory_breaks_no_chain(void **state)
{
    struct fixture *fx = *state;
    int rc;
    fx->tail_rows = 2;
    open_store(fx);
    begin(fx, "a", true);
    begin(fx, "b", true);
    for (int i = 0; i < 70; i++) /* more than there is room for at first */
        append(fx, "a", "x");
    open_store(fx);
    struct rv__store_write writes[] = { { .run = rv__str("a"), .facts = rv__str("2") },
                                        { .run = rv__str("b"), .facts = rv__str("2") },
                                        { .run = rv__str("nobody"), .facts = rv__str("2") } };
    TORTURE(rc, rv__store_commit(fx->store, writes, 3, NULL), (void)0);
    assert_int_equal(rc, RV_OK);
    journal_is(fx, "b", "[1][2]");
    rv__store_close(fx->reader);
    assert_int_equal(rv__store_reader(fx->store, &fx->reader, NULL), RV_OK);
    TORTURE(rc, rv__store_journal(fx->reader, rv__str("b"), 0, see_row, fx, NULL),
            rv__buf_reset(&fx->seen));
    assert_int_equal(rc, RV_OK);
}

/* What it costs to find the journal of an active run does not grow with the store. */
static double finding(struct fixture *fx)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        struct rv__store *fresh = NULL;
        assert_int_equal(rv__store_reader(fx->store, &fresh, NULL), RV_OK);
        clock_t start = clock();
        assert_int_equal(rv__store_journal(fresh, rv__str("a"), 0, see_row, fx, NULL), RV_OK);
        double took = (double)(clock() - start);
        best = took < best ? took : best;
        rv__store_close(fresh);
    }
    return best;
}

static void finding_a_journal_costs_no_more_in_a_larger_store(void **state)
{
    struct fixture *fx = *state;
    fx->tail_rows = 2000;
    open_store(fx);
    begin(fx, "a", true);
    import_filler(fx, "x", 20000);
    double small = finding(fx);
    import_filler(fx, "y", 180000);
    double large = finding(fx);
    if (large > 4 * small + CLOCKS_PER_SEC / 200.0)
        fail_msg("10 x the journal: %.1f x", large / small);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_journal_is_found_far_behind_the_end),
        CASE(journals_are_whole_at_any_moment),
        CASE(no_memory_breaks_no_chain),
        CASE(finding_a_journal_costs_no_more_in_a_larger_store),
    };
#undef CASE
    return cmocka_run_group_tests_name("sqlite heads", tests, NULL, NULL);
}
