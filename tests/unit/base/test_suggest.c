/* test_suggest.c: for src/base/suggest.c. */
#include "unit/test.h"

#include "base/suggest.h"

static const char *const words[] = {
    "exec", "run", "version", "demo", "concurrency", "maxAttempts"
};

static void a_slip_is_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *typed, *meant;
    } rows[] = {
        { "exce", "exec" }, { "verson", "version" },         { "VERSION", "version" },
        { "dmeo", "demo" }, { "concurency", "concurrency" }, { "max_attempts", "maxAttempts" },
        { "run", "run" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = rv__suggest(rv__str(rows[i].typed), words, 6);
        if (got == NULL || strcmp(got, rows[i].meant) != 0)
            fail_msg("%s: got %s", rows[i].typed, got ? got : "nothing");
    }
}

static void another_word_is_not_a_slip(void **state)
{
    (void)state;
    char long_word[100];
    memset(long_word, 'e', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    static const char *const typed[] = { "", "x", "banana", "ru nn ing" };
    for (size_t i = 0; i < 4; i++)
        assert_null(rv__suggest(rv__str(typed[i]), words, 6));
    assert_null(rv__suggest(rv__str(long_word), words, 6));
    assert_null(rv__suggest(rv__str("exec"), (const char *const[]){ long_word }, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_is_recognised),
        cmocka_unit_test(another_word_is_not_a_slip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
