/* test_mask.c: secrets in texts, however they are written. For src/base/mask.c. */
#include "unit/test.h"

#include <time.h>

#include "base/json.h"
#include "base/mask.h"

static const struct rv__str secrets[] = {
    RV__STR("hunter2-secret"),
    RV__STR("pa\"ss\\wo/rd +1"),
    RV__STR("1234567890"),
    RV__STR("schl\xc3\xbcssel\xf0\x9f\x98\x80x"),
    RV__STR("first line\nsecond line"),
};

struct fixture {
    struct rv__mask *mask;
    struct rv__mask_stream *stream;
    struct rv__buf out, text;
    rv_error err;
};

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    rv__buf_init(&fx->out, SIZE_MAX / 2);
    rv__buf_init(&fx->text, SIZE_MAX / 2);
    assert_int_equal(rv__mask_new(secrets, sizeof secrets / sizeof *secrets, &fx->mask, &fx->err),
                     RV_OK);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;
    rv__test_fail_alloc_after(-1);
    rv__mask_stream_free(fx->stream);
    rv__mask_unref(fx->mask);
    rv__buf_done(&fx->out);
    rv__buf_done(&fx->text);
    free(fx);
    return 0;
}

static const struct row {
    const char *text, *masked;
} rows[] = {
    { "", "" },
    { "nothing here, hunter2-secre", "nothing here, hunter2-secre" },
    { "hunter2-secret", "***" },
    { "a hunter2-secret b", "a *** b" },
    { "hunter2-hunter2-secret", "hunter2-***" },
    { "hunter2-secrethunter2-secret", "******" },
    { "a 1234567890 b", "a *** b" },
    { "01234567890123456789012", "0******12" },
    /* base64: at each of the three alignments, with either alphabet */
    { "aHVudGVyMi1zZWNyZXQ=", "***Q=" },
    { "eGh1bnRlcjItc2VjcmV0", "eG***" },
    { "eHhodW50ZXIyLXNlY3JldA==", "eHh***A==" },
    { "cGEic3Ncd28vcmQgKzE=", "***E=" },
    { "c2NobMO8c3NlbPCfmIB4", "***" },
    { "c2NobMO8c3NlbPCfmIB4", "***" },
    /* percent-escaped, in part or all of it, in either case; as in a form */
    { "?k=hunter2%2Dsecret&x", "?k=***&x" },
    { "?k=hunter2%2dsecret&x", "?k=***&x" },
    { "%68%75%6e%74%65%72%32%2D%73%65%63%72%65%74", "***" },
    { "pa%22ss%5Cwo%2Frd%20%2B1", "***" },
    { "pa%22ss%5Cwo%2Frd+%2B1", "***" },
    { "pa%22ss\\wo/rd%20+1", "***" },
    { "%hunter2-secret%4", "%***%4" },
    { "%4hunter2-secret", "%4***" },
    { "schl%C3%BCssel%F0%9F%98%80x", "***" },
    { "cGEic3Ncd28vcmQgKzE%3D", "***E%3D" },
    /* with escapes of JSON: whichever */
    { "pa\\\"ss\\\\wo/rd +1", "***" },
    { "pa\\u0022ss\\u005Cwo\\/rd +1", "***" },
    { "pa\\\\\\\"ss\\\\\\\\wo/rd +1", "***" }, /* within a string within a string */
    { "schl\\u00fcssel\\ud83d\\ude00x", "***" },
    { "schl\\u00fcssel\\ud83d\\ud83d\\ude00x", "schl\\u00fcssel\\ud83d\\ud83d\\ude00x" },
    { "\\u12hunter2-secret", "\\u12***" },
    { "\\hunter2-secret\\", "\\***\\" },
    { "first line\nsecond line", "***" },
    { "first line\\nsecond line", "***" },
};

static void hides(struct fixture *fx, const char *text, const char *masked)
{
    rv__buf_reset(&fx->out);
    bool any = rv__mask_text(fx->mask, rv__str(text), false, &fx->out);
    if (!rv__str_is(rv__buf_view(&fx->out), masked) || any != (strcmp(text, masked) != 0))
        fail_msg("'%s' became '%.*s', not '%s'", text, RV__ARG(rv__buf_view(&fx->out)), masked);
    assert_int_equal(rv__mask_finds(fx->mask, rv__str(text)), any);
}

static void secrets_are_hidden_however_they_are_written(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        hides(*state, rows[i].text, rows[i].masked);
}

/* In two pieces at every place, and byte by byte: what comes out is the same. */
static void pieces_make_no_difference(void **state)
{
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__str all = rv__str(rows[i].text);
        for (size_t cut = 0; cut <= all.len; cut++) {
            assert_int_equal(rv__mask_stream_new(fx->mask, &fx->stream, &fx->err), RV_OK);
            rv__buf_reset(&fx->out);
            if (cut == all.len)
                for (size_t k = 0; k < all.len; k++)
                    rv__mask_stream_add(fx->stream, (struct rv__str){ all.at + k, 1 }, &fx->out);
            else {
                rv__mask_stream_add(fx->stream, (struct rv__str){ all.at, cut }, &fx->out);
                rv__mask_stream_add(fx->stream, (struct rv__str){ all.at + cut, all.len - cut },
                                    &fx->out);
            }
            rv__mask_stream_end(fx->stream, &fx->out);
            if (!rv__str_is(rv__buf_view(&fx->out), rows[i].masked))
                fail_msg("'%s' cut at %zu became '%.*s'", all.at, cut,
                         RV__ARG(rv__buf_view(&fx->out)));
            rv__mask_stream_free(fx->stream);
            fx->stream = NULL;
        }
    }
}

/* A line is told when it has come, unless a secret may go on in the next one. */
static void a_stream_holds_back_no_more_than_it_must(void **state)
{
    struct fixture *fx = *state;
    assert_int_equal(rv__mask_stream_new(fx->mask, &fx->stream, &fx->err), RV_OK);
    rv__mask_stream_add(fx->stream, rv__str("a line that ends in h\n"), &fx->out);
    assert_str(rv__buf_view(&fx->out), "a line that ends in h\n");
    rv__mask_stream_add(fx->stream, rv__str("50% of first line\n"), &fx->out);
    assert_str(rv__buf_view(&fx->out), "a line that ends in h\n50% of ");
    rv__mask_stream_add(fx->stream, rv__str("x\n"), &fx->out);
    assert_str(rv__buf_view(&fx->out), "a line that ends in h\n50% of first line\nx\n");
}

/* `base64` folds its lines at 76 characters. */
static void folded_base64_is_found(void **state)
{
    struct fixture *fx = *state;
    static const char *const ends[] = { "\n", "\r\n", "\\n", "\\r\\n" };
    for (size_t before = 50; before < 57; before++) {
        struct rv__buf plain, folded;
        rv__buf_init(&plain, 1000);
        rv__buf_init(&folded, 1000);
        for (size_t i = 0; i < before; i++)
            rv__buf_char(&plain, (char)('a' + i % 26));
        rv__buf_text(&plain, "hunter2-secret and more of it");
        rv__buf_base64(&folded, rv__buf_view(&plain));
        for (size_t e = 0; e < 4; e++) {
            rv__buf_reset(&fx->text);
            rv__buf_add(&fx->text, folded.text, 76);
            rv__buf_text(&fx->text, ends[e]);
            rv__buf_text(&fx->text, folded.text + 76);
            rv__buf_reset(&fx->out);
            assert_true(rv__mask_text(fx->mask, rv__buf_view(&fx->text), false, &fx->out));
            assert_true(fx->out.len < fx->text.len - 10);
        }
        rv__buf_done(&plain);
        rv__buf_done(&folded);
    }
}

static void json_stays_json(void **state)
{
    static const struct row json[] = {
        { "{\"a\":\"hunter2-secret\",\"b\":1}", "{\"a\":\"***\",\"b\":1}" },
        { "{\"hunter2-secret\":[true,\"x hunter2-secret\"]}", "{\"***\":[true,\"x ***\"]}" },
        { "{\"n\": 1234567890, \"m\": 12345678901}", "{\"n\": \"***\", \"m\": \"***\"}" },
        { "1234567890", "\"***\"" },
        { "-1234567890.5", "\"***\"" },
        { "\"pa\\\"ss\\\\wo/rd +1\"", "\"***\"" },
        { "\"first line\\nsecond line\"", "\"***\"" },
        { "[\"pa\", \"ss\"]", "[\"pa\", \"ss\"]" },
        { "[1,2,{\"a\":null}]", "[1,2,{\"a\":null}]" },
    };
    struct fixture *fx = *state;
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        rv__buf_reset(&fx->out);
        (void)rv__mask_json(fx->mask, rv__str(json[i].text), &fx->out);
        if (!rv__str_is(rv__buf_view(&fx->out), json[i].masked))
            fail_msg("%s became %.*s", json[i].text, RV__ARG(rv__buf_view(&fx->out)));
    }
}

/* A secret that is a JSON text itself, or part of one: then all of it goes. */
static void a_secret_over_several_values_hides_them_all(void **state)
{
    struct fixture *fx = *state;
    static const struct rv__str keys[] = { RV__STR("{\"type\":\"key\"}"), RV__STR("nabcdefgh") };
    struct rv__mask *mask = NULL;
    assert_int_equal(rv__mask_new(keys, 2, &mask, &fx->err), RV_OK);
    (void)rv__mask_json(mask, rv__str("{\"k\":{\"type\":\"key\"},\"l\":1}"), &fx->out);
    assert_str(rv__buf_view(&fx->out), "\"***\"");
    rv__buf_reset(&fx->out);
    (void)rv__mask_json(mask, rv__str("\"\\nabcdefgh\""),
                        &fx->out); /* would leave a lone backslash */
    assert_str(rv__buf_view(&fx->out), "\"***\"");
    rv__mask_unref(mask);
}

static void a_cut_text_does_not_end_in_half_a_secret(void **state)
{
    struct fixture *fx = *state;
    assert_true(rv__mask_text(fx->mask, rv__str("so: hunter2-sec"), true, &fx->out));
    assert_str(rv__buf_view(&fx->out), "so: ***");
    rv__buf_reset(&fx->out);
    assert_false(rv__mask_text(fx->mask, rv__str("so: hunter"), true, &fx->out));
    assert_str(rv__buf_view(&fx->out), "so: hunter");
}

static void short_and_long_secrets_are_refused(void **state)
{
    struct fixture *fx = *state;
    struct rv__mask *mask = NULL;
    struct rv__str seven = RV__STR("1234567");
    assert_int_equal(rv__mask_new(&seven, 1, &mask, &fx->err), RV_EINVAL);
    char *large = calloc(1, RV__MASK_MAX_BYTES + 1);
    assert_non_null(large);
    struct rv__str both[] = { { large, RV__MASK_MAX_BYTES - 4 }, RV__STR("12345678") };
    assert_int_equal(rv__mask_new(both, 2, &mask, &fx->err), RV_ETOOBIG);
    free(large);
    assert_null(mask);
    hides(fx, "as before: 1234567", "as before: 1234567");
}

/* Repeated secrets, half secrets, and escapes that are none: the worst there is. */
static double seconds(struct fixture *fx, const char *pattern, size_t bytes)
{
    struct timespec from, to;
    rv__buf_reset(&fx->text);
    while (fx->text.len < bytes)
        rv__buf_text(&fx->text, pattern);
    rv__buf_reset(&fx->out);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    (void)rv__mask_text(fx->mask, rv__buf_view(&fx->text), false, &fx->out);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

static void time_grows_with_the_text(void **state)
{
    static const char *const patterns[] = { "hunter2-secre", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                                            "aaaa", "%%%%\\u\\u", "hunter2-secret" };
    struct fixture *fx = *state;
    struct rv__mask *few = fx->mask;
    char repeated[4001];
    memset(repeated, 'a', sizeof repeated - 1);
    repeated[sizeof repeated - 1] = '\0';
    struct rv__str long_one = rv__str(repeated);
    for (int both = 0; both < 2; both++) {
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            double small = 1e9, large = 1e9; /* the best of five: others use the machine, too */
            for (int round = 0; round < 5; round++) {
                double t = seconds(fx, patterns[i], 100000);
                small = t < small ? t : small;
                t = seconds(fx, patterns[i], 1000000);
                large = t < large ? t : large;
            }
            print_message("# '%.20s': %.1f ns a byte of 100 kB, %.1f of 1 MB\n", patterns[i],
                          small * 1e4, large * 1e3);
            if (large > 30 * small)
                fail_msg("'%s': ten times the text takes %.0f times as long", patterns[i],
                         large / small);
        }
        if (both == 0)
            assert_int_equal(rv__mask_new(&long_one, 1, &fx->mask, &fx->err), RV_OK);
    }
    rv__mask_unref(fx->mask);
    fx->mask = few;
}

/* A secret in a stream for ever: what is held back stays small. */
static void a_stream_keeps_nothing_it_does_not_need(void **state)
{
    struct fixture *fx = *state;
    struct rv__str a = RV__STR("aaaaaaaa");
    struct rv__mask *mask = NULL;
    assert_int_equal(rv__mask_new(&a, 1, &mask, &fx->err), RV_OK);
    assert_int_equal(rv__mask_stream_new(mask, &fx->stream, &fx->err), RV_OK);
    rv__mask_unref(mask);
    for (int i = 0; i < 100000; i++)
        rv__mask_stream_add(fx->stream, rv__str("aaaaaaaaaaaaaaa"), &fx->out);
    rv__mask_stream_end(fx->stream, &fx->out);
    assert_str(rv__buf_view(&fx->out), "***");
}

static int mask_once(struct fixture *fx)
{
    struct rv__mask *mask = NULL;
    int rc = rv__mask_new(secrets, 5, &mask, &fx->err);
    rv__mask_unref(mask);
    return rc;
}

/* Without memory nothing is shown. */
static void no_memory_hides_everything(void **state)
{
    struct fixture *fx = *state;
    int rc;
    TORTURE(rc, mask_once(fx), (void)0);
    assert_int_equal(rc, RV_OK);
    rv__buf_text(&fx->out, "room for the answer, whatever it will be"); /* that may not fail here */
    for (long n = 0; n < 3; n++) {
        rv__buf_reset(&fx->out);
        rv__test_fail_alloc_after(n);
        (void)rv__mask_text(fx->mask, rv__str("a hunter2-secret"), false, &fx->out);
        rv__test_fail_alloc_after(-1);
        assert_null(memmem(fx->out.text, fx->out.len, "hunter2-secret", 14));
        assert_non_null(memmem(fx->out.text, fx->out.len, "***", 3));
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(secrets_are_hidden_however_they_are_written),
        CASE(pieces_make_no_difference),
        CASE(a_stream_holds_back_no_more_than_it_must),
        CASE(folded_base64_is_found),
        CASE(json_stays_json),
        CASE(a_secret_over_several_values_hides_them_all),
        CASE(a_cut_text_does_not_end_in_half_a_secret),
        CASE(short_and_long_secrets_are_refused),
        CASE(time_grows_with_the_text),
        CASE(a_stream_keeps_nothing_it_does_not_need),
        CASE(no_memory_hides_everything),
    };
#undef CASE
    return cmocka_run_group_tests_name("mask", tests, NULL, NULL);
}
