/* test_error.c: for src/base/error.c. */
#include "unit/test.h"

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
#define X(name, code, text)                             \
    assert_true(RV_##name < 0);                         \
    assert_string_equal(rv_errname(code), "RV_" #name); \
    assert_string_equal(rv_strerror(RV_##name), text);
    RV_ERR_MAP(X)
#undef X
    assert_string_equal(rv_errname(0), "RV_OK");
    assert_string_equal(rv_strerror(0), "no error");
    assert_string_equal(rv_strerror(-9999), "unknown error");
    assert_null(rv_errname(1));
}

static void codes_are_unique(void **state)
{
    (void)state;
    static const int codes[] = {
#define X(name, code, text) code,
        RV_ERR_MAP(X)
#undef X
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        assert_int_equal(codes[i], -(int)i - 1);
}

static void fail_writes_code_and_message(void **state)
{
    (void)state;
    rv_error err = { 0 };
    assert_int_equal(rv__fail(&err, RV_EINVAL, "item %d", 7), RV_EINVAL);
    assert_int_equal(err.code, RV_EINVAL);
    assert_string_equal(err.message, "item 7");
    assert_int_equal(rv__fail(NULL, RV_EBUSY, "nobody listens"), RV_EBUSY);
    assert_int_equal(rv__nomem(&err), RV_ENOMEM);
    assert_string_equal(err.message, "out of memory");
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    char text[400];
    /* One lead byte at each possible distance from the cut, for sequences of 1 to 4 bytes. */
    static const char *const signs[] = { "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80" };
    for (size_t s = 0; s < 4; s++) {
        for (size_t shift = 0; shift < 4; shift++) {
            size_t len = 0;
            memset(text, 'x', shift);
            for (len = shift; len + 4 < sizeof text - 1; len += strlen(signs[s]))
                memcpy(text + len, signs[s], strlen(signs[s]));
            text[len] = '\0';

            rv_error err;
            rv__fail(&err, RV_EINVAL, "%s", text);
            size_t kept = strlen(err.message);
            assert_true(kept > 251 && kept < 256);
            assert_true(rv__str_utf8(rv__str(err.message)));
        }
    }
}

/* A text of somebody else's says most at its end. */
static void a_long_text_keeps_its_end(void **state)
{
    (void)state;
    char text[1000];
    rv_error err = { 0 };
    assert_int_equal(rv__fail_text(&err, RV_EFAILED, "short"), RV_EFAILED);
    assert_string_equal(err.message, "short");
    assert_int_equal(rv__fail_text(NULL, RV_EFAILED, "nobody listens"), RV_EFAILED);
    for (size_t shift = 0; shift < 4; shift++) { /* wherever the cut falls */
        memset(text, 'x', sizeof text);
        for (size_t i = 0; i < 200; i++)
            memcpy(text + 100 + shift + 4 * i, "𝄞", 4);
        strcpy(text + 100 + shift + 800, "the end");
        rv__fail_text(&err, RV_EFAILED, text);
        assert_true(rv__str_utf8(rv__str(err.message)));
        assert_memory_equal(err.message, "…𝄞", 7);
        assert_string_equal(err.message + strlen(err.message) - 7, "the end");
        assert_in_range(strlen(err.message), sizeof err.message - 5, sizeof err.message - 1);
    }
    memset(text, 'x', sizeof err.message - 1);
    text[sizeof err.message - 1] = '\0'; /* just fits */
    rv__fail_text(&err, RV_EFAILED, text);
    assert_string_equal(err.message, text);
}

static void a_message_of_stray_bytes_does_no_harm(void **state)
{
    (void)state;
    char text[400];
    memset(text, 0x80, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rv_error err;
    rv__fail(&err, RV_EINVAL, "%s", text);
    assert_int_equal(strlen(err.message), 255);
}

static void the_version_is_the_one_of_the_build(void **state)
{
    (void)state;
    assert_string_equal(rv_version(), RV_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(codes_are_unique),
        cmocka_unit_test(fail_writes_code_and_message),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(a_long_text_keeps_its_end),
        cmocka_unit_test(a_message_of_stray_bytes_does_no_harm),
        cmocka_unit_test(the_version_is_the_one_of_the_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
