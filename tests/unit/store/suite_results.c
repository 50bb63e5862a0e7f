/* suite_results.c: finished iterations: written many at a time, read by windows, written once. */
#include "unit/store/store_fixture.h"

#include "base/random.h"

static void window_is(struct fixture *fx, const char *run, const char *key, int64_t from,
                      size_t limit, const char *expected)
{
    assert_int_equal(
        rv__store_results(fx->store, rv__str(run), rv__str(key), from, limit, see_result, fx, NULL),
        RV_OK);
    seen(fx, expected);
}

/* Results of `key` from `first` on, of which the i-th is its index as text. */
struct batch {
    struct rv__store_result *of;
    char (*texts)[24];
    size_t count;
};

static struct batch batch_make(const char *key, int64_t first, size_t count)
{
    struct batch b = { calloc(count, sizeof *b.of), calloc(count, sizeof *b.texts), count };
    assert_true(b.of != NULL && b.texts != NULL);
    for (size_t i = 0; i < count; i++) {
        snprintf(b.texts[i], sizeof b.texts[i], "%lld", (long long)first + (long long)i);
        b.of[i] = (struct rv__store_result){ rv__str(key), first + (int64_t)i,
                                             rv__str(b.texts[i]) };
    }
    return b;
}

static void batch_free(struct batch *b)
{
    free(b->of);
    free(b->texts);
}

static void batch_shuffle(struct batch *b, uint64_t seed)
{
    struct rv__random random;
    rv__random_init(&random, seed);
    for (size_t i = b->count; i > 1; i--) {
        size_t k = (size_t)rv__random_below(&random, i);
        struct rv__store_result swap = b->of[i - 1];
        b->of[i - 1] = b->of[k];
        b->of[k] = swap;
    }
}

static int write_results(struct fixture *fx, const char *run, const struct rv__store_result *of,
                         size_t count)
{
    struct rv__store_write write = { .run = rv__str(run), .results = of, .result_count = count };
    return rv__store_commit_one(fx->store, &write, NULL);
}

/* How far the visitor has come: every index from `next` on, each with its own text. */
struct following {
    int64_t next;
    int64_t step;
};

static int follow(void *arg, int64_t index, struct rv__str json)
{
    struct following *f = arg;
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)index);
    assert_int_equal(index, f->next);
    assert_true(rv__str_is(json, text));
    f->next += f->step;
    return RV_OK;
}

static void follows(struct fixture *fx, int64_t from, size_t limit, int64_t first, int64_t end)
{
    struct following f = { first, 1 };
    assert_int_equal(
        rv__store_results(fx->store, rv__str("a"), rv__str("k"), from, limit, follow, &f, NULL),
        RV_OK);
    assert_int_equal(f.next, end);
}

static void results_come_in_any_order_and_are_read_in_one(void **state)
{
    struct fixture *fx = *state;
    enum { COUNT = 5000 };
    struct batch b = batch_make("k", -100, COUNT);
    begin(fx, "a", "1");
    batch_shuffle(&b, 1);
    assert_int_equal(write_results(fx, "a", b.of, COUNT), RV_OK);
    follows(fx, INT64_MIN, SIZE_MAX, -100, COUNT - 100);
    batch_free(&b);
    b = batch_make("k", COUNT - 100, COUNT); /* and on from there, in pieces */
    batch_shuffle(&b, 2);
    for (size_t i = 0; i < COUNT; i += 50)
        assert_int_equal(write_results(fx, "a", &b.of[i], 50), RV_OK);
    batch_free(&b);
    reopen(fx);
    follows(fx, INT64_MIN, SIZE_MAX, -100, 2 * COUNT - 100);
    results_are(fx, "a", "other", "");
}

static void a_window_has_what_was_asked_for(void **state)
{
    struct fixture *fx = *state;
    enum { COUNT = 3000 };
    struct batch b = batch_make("k", 0, COUNT);
    struct rv__random random;
    begin(fx, "a", "1");
    assert_int_equal(write_results(fx, "a", b.of, COUNT), RV_OK);
    batch_free(&b);
    rv__random_init(&random, 3);
    for (int i = 0; i < 200; i++) {
        int64_t from = (int64_t)rv__random_below(&random, COUNT);
        int64_t limit = (int64_t)rv__random_below(&random, COUNT);
        follows(fx, from, (size_t)limit, from, from + limit < COUNT ? from + limit : COUNT);
    }
    follows(fx, 0, 0, 7, 7);
    follows(fx, COUNT, 9, 7, 7);
    follows(fx, INT64_MAX, SIZE_MAX, 7, 7);
    follows(fx, -5, 3, 0, 3);
}

static void a_window_steps_over_gaps(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_result results[] = {
        { rv__str("k"), 10, rv__str("a") },        { rv__str("k"), 11, rv__str("b") },
        { rv__str("k"), 20, rv__str("c") },        { rv__str("k"), INT64_MIN, rv__str("low") },
        { rv__str("k"), INT64_MAX, rv__str("z") }, { rv__str("j"), 12, rv__str("other") },
    };
    begin(fx, "a", "1");
    assert_int_equal(write_results(fx, "a", results, 6), RV_OK);
    window_is(fx, "a", "k", 10, 2, "10=a;11=b;");
    window_is(fx, "a", "k", 11, 2, "11=b;20=c;");
    window_is(fx, "a", "k", 12, 1, "20=c;");
    window_is(fx, "a", "k", 15, SIZE_MAX, "20=c;9223372036854775807=z;");
    window_is(fx, "a", "k", 21, SIZE_MAX, "9223372036854775807=z;");
    window_is(fx, "a", "k", INT64_MAX, SIZE_MAX, "9223372036854775807=z;");
    window_is(fx, "a", "k", INT64_MIN, 2, "-9223372036854775808=low;10=a;");
    window_is(fx, "a", "j", 0, SIZE_MAX, "12=other;");
    window_is(fx, "nobody", "k", 0, SIZE_MAX, "");
}

static void a_result_is_written_once(void **state)
{
    struct fixture *fx = *state;
    struct batch b = batch_make("k", 100, 50); /* 100 to 149 */
    begin(fx, "a", "1");
    begin(fx, "b", "1");
    assert_int_equal(write_results(fx, "a", b.of, 50), RV_OK);
    static const struct {
        int64_t first, count;
        int rc;
    } tries[] = {
        { 100, 50, RV_EINVAL }, { 100, 1, RV_EINVAL }, { 149, 1, RV_EINVAL },
        { 120, 3, RV_EINVAL },  { 90, 11, RV_EINVAL }, { 149, 9, RV_EINVAL },
        { 50, 200, RV_EINVAL }, { 90, 10, RV_OK },     { 150, 10, RV_OK },
        { 89, 2, RV_EINVAL },   { 0, 89, RV_OK },      { 89, 1, RV_OK },
        { 160, 1, RV_OK },
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct batch t = batch_make("k", tries[i].first, (size_t)tries[i].count);
        int rc = write_results(fx, "a", t.of, t.count);
        if (rc != tries[i].rc)
            fail_msg("try %zu: %d", i, rc);
        batch_free(&t);
    }
    follows(fx, INT64_MIN, SIZE_MAX, 0, 161);
    assert_int_equal(write_results(fx, "b", b.of, 50),
                     RV_OK); /* of another run, under another key */
    for (size_t i = 0; i < 50; i++)
        b.of[i].key = rv__str("other");
    assert_int_equal(write_results(fx, "a", b.of, 50), RV_OK);
    for (size_t i = 0; i < 50; i++)
        b.of[i].key = rv__str("twice");
    b.of[49].index = 120; /* and twice in one write */
    assert_int_equal(write_results(fx, "a", b.of, 50), RV_EINVAL);
    results_are(fx, "a", "twice", "");
    b.of[49].index = INT64_MAX;
    b.of[48].index = INT64_MAX;
    assert_int_equal(write_results(fx, "a", b.of, 50), RV_EINVAL);
    struct rv__store_result no_key = { { NULL, 0 }, 1, rv__str("x") };
    assert_int_equal(write_results(fx, "a", &no_key, 1), RV_EINVAL);
    batch_free(&b);
}

static int see_kind(void *arg, int64_t index, struct rv__str json)
{
    struct fixture *fx = arg;
    (void)index;
    if (rv__str_none(json))
        rv__buf_text(&fx->seen, "none ");
    else if (json.len > 20)
        rv__buf_fmt(&fx->seen, "%zu%c ", json.len, json.at[json.len - 1]);
    else
        rv__buf_fmt(&fx->seen, "%zu:%.*s ", json.len, RV__ARG(json));
    return RV_OK;
}

static void results_of_every_kind_stay_apart(void **state)
{
    struct fixture *fx = *state;
    enum { BIG = 300000 };
    char *big = malloc(BIG);
    assert_non_null(big);
    memset(big, 'b', BIG);
    struct rv__store_result results[] = {
        { rv__str("k"), 0, rv__str("1,2") }, { rv__str("k"), 1, rv__str("") },
        { rv__str("k"), 2, { NULL, 0 } },    { rv__str("k"), 3, { big, BIG } },
        { rv__str("k"), 4, rv__str("-") },   { rv__str("k"), 5, { big, 40000 } },
        { rv__str("k"), 6, { big, 40000 } }, { rv__str("k"), 7, { NULL, 0 } },
        { rv__str("n"), 0, { NULL, 0 } },    { rv__str("n"), 1, { NULL, 0 } },
    };
    begin(fx, "a", "1");
    assert_int_equal(write_results(fx, "a", results, 10), RV_OK);
    free(big);
    assert_int_equal(rv__store_results(fx->store, rv__str("a"), rv__str("k"), INT64_MIN, SIZE_MAX,
                                       see_kind, fx, NULL),
                     RV_OK);
    seen(fx, "3:1,2 0: none 300000b 1:- 40000b 40000b none ");
    assert_int_equal(
        rv__store_results(fx->store, rv__str("a"), rv__str("n"), 1, 1, see_kind, fx, NULL), RV_OK);
    seen(fx, "none ");
}

static uint64_t results_seq(struct fixture *fx, const char *run)
{
    uint64_t seq = 77;
    assert_int_equal(rv__store_results_seq(fx->store, rv__str(run), &seq, NULL), RV_OK);
    return seq;
}

static void the_last_write_with_results_is_known(void **state)
{
    struct fixture *fx = *state;
    struct rv__store_result result = { rv__str("k"), 1, rv__str("r") };
    struct rv__store_write write = {
        .run = rv__str("a"), .facts = rv__str("2"), .results = &result, .result_count = 1
    };
    assert_int_equal(results_seq(fx, "nobody"), 0);
    begin(fx, "a", "1");
    begin(fx, "b", "1");
    assert_int_equal(results_seq(fx, "a"), 0);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(results_seq(fx, "a"), write.seq);
    assert_int_equal(results_seq(fx, "b"), 0);
    uint64_t first = write.seq, third = append(fx, "a", "3");
    assert_int_equal(results_seq(fx, "a"), first);
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_EINVAL); /* there already */
    assert_int_equal(results_seq(fx, "a"), first);
    result.index = 2;
    write.facts = (struct rv__str){ NULL, 0 }; /* no row of its own: that of the last one */
    assert_int_equal(rv__store_commit_one(fx->store, &write, NULL), RV_OK);
    assert_int_equal(results_seq(fx, "a"), third);
    reopen(fx);
    assert_int_equal(results_seq(fx, "a"), third);
    full_run(fx, "over");
    assert_true(results_seq(fx, "over") > third);
    struct rv__str ids[] = { rv__str("over") };
    bool more;
    assert_int_equal(rv__store_forget(fx->store, ids, 1, &more, NULL), RV_OK);
    assert_int_equal(results_seq(fx, "over"), 0);
    begin(fx, "over", "1");
    assert_int_equal(results_seq(fx, "over"), 0);
}

/* Random sets of indices, some of which were there, against a table kept here. */
static void random_results_are_remembered(void **state)
{
    struct fixture *fx = *state;
    enum { RANGE = 400, WRITES = 150 };
    struct rv__random random;
    bool there[RANGE] = { false };
    begin(fx, "a", "1");
    rv__random_init(&random, 9);
    for (int n = 0; n < WRITES; n++) {
        struct rv__store_result results[40];
        bool now[RANGE] = { false }, twice = false;
        char texts[40][24];
        size_t count = 1 + rv__random_below(&random, 40), at = rv__random_below(&random, RANGE);
        for (size_t i = 0; i < count; i++) {
            at = rv__random_below(&random, 6) != 0 ? (at + 1) % RANGE
                                                   : rv__random_below(&random, RANGE);
            snprintf(texts[i], sizeof texts[i], "%zu", at);
            results[i] = (struct rv__store_result){ rv__str("k"), (int64_t)at, rv__str(texts[i]) };
            twice = twice || there[at] || now[at];
            now[at] = true;
        }
        assert_int_equal(write_results(fx, "a", results, count), twice ? RV_EINVAL : RV_OK);
        for (size_t i = 0; i < RANGE && !twice; i++)
            there[i] = there[i] || now[i];
    }
    struct rv__buf expected;
    rv__buf_init(&expected, SIZE_MAX);
    for (int i = 0; i < RANGE; i++)
        if (there[i])
            rv__buf_fmt(&expected, "%d=%d;", i, i);
    results_are(fx, "a", "k", expected.text);
    rv__buf_done(&expected);
}

static void no_memory_leaves_no_results(void **state)
{
    struct fixture *fx = *state;
    struct batch b = batch_make("k", 0, 200);
    struct rv__store_write write = {
        .run = rv__str("a"), .facts = rv__str("2"), .results = b.of, .result_count = 200
    };
    int rc;
    begin(fx, "a", "1");
    batch_shuffle(&b, 4);
    TORTURE(rc, rv__store_commit_one(fx->store, &write, NULL), {
        results_are(fx, "a", "k", "");
        assert_int_equal(results_seq(fx, "a"), 0);
    });
    assert_int_equal(rc, RV_OK);
    follows(fx, 0, SIZE_MAX, 0, 200);
    batch_free(&b);
}

int store_suite_results(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(results_come_in_any_order_and_are_read_in_one),
        STORE_CASE(a_window_has_what_was_asked_for),
        STORE_CASE(a_window_steps_over_gaps),
        STORE_CASE(a_result_is_written_once),
        STORE_CASE(results_of_every_kind_stay_apart),
        STORE_CASE(the_last_write_with_results_is_known),
        STORE_CASE(random_results_are_remembered),
        STORE_CASE(no_memory_leaves_no_results),
    };
    return STORE_GROUP("store: results", tests);
}
