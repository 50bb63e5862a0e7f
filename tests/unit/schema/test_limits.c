/* test_limits.c: what is hostile ends, soon and cleanly; one schema serves many threads. */
#include "unit/schema/schema_test.h"

#include <pthread.h>

static void nest(struct rv__buf *out, const char *open, const char *middle, const char *close,
                 int depth)
{
    for (int i = 0; i < depth; i++)
        rv__buf_text(out, open);
    rv__buf_text(out, middle);
    for (int i = 0; i < depth; i++)
        rv__buf_text(out, close);
}

static int check(const char *schema, const char *value, rv_error *err)
{
    struct rv__schema *compiled = NULL;
    int rc = rv__schema_new(rv__str(schema), NULL, &compiled, err);
    if (rc == RV_OK)
        rc = rv__schema_check(compiled, rv__str(value), NULL, err);
    rv__schema_free(compiled);
    return rc;
}

static void deep_values_and_schemas_are_refused(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    nest(&text, "[", "1", "]", 10000);
    assert_int_equal(check("{\"items\":{\"$ref\":\"#\"}}", text.text, &err), RV_ETOOBIG);
    rv__buf_reset(&text);
    nest(&text, "{\"items\":", "true", "}", 10000);
    assert_int_equal(check(text.text, "1", &err), RV_ETOOBIG);

    /* As deep as a value may be, each level by a reference within an allOf. */
    rv__buf_reset(&text);
    nest(&text, "[", "1", "]", RV__JSON_VALUE_DEPTH);
    assert_int_equal(check("{\"items\":{\"allOf\":[{\"$ref\":\"#\"}]}}", text.text, &err), RV_OK);
    assert_int_equal(check("{\"items\":{\"allOf\":[{\"allOf\":[{\"allOf\":[{\"allOf\":[{\"allOf\":["
                           "{\"$ref\":\"#\"}]}]}]}]}]}}",
                           text.text, &err),
                     RV_ETOOBIG);
    rv__buf_done(&text);
}

static void long_chains_are_refused(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    nest(&text, "{\"not\":", "true", "}", 99);
    assert_int_equal(check(text.text, "1", &err), RV_EINVAL); /* an odd number of them */
    rv__buf_reset(&text);
    nest(&text, "{\"not\":", "true", "}", 102);
    assert_int_equal(check(text.text, "1", &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "more than 100 schemas within each other"));
    rv__buf_reset(&text);
    rv__buf_text(&text, "{\"$defs\":{");
    for (int i = 0; i < 5000; i++)
        rv__buf_fmt(&text, "\"d%d\":{\"$ref\":\"#/$defs/d%d\"},", i, i + 1);
    rv__buf_text(&text, "\"d5000\":{}}}");
    assert_int_equal(check(text.text, "1", &err), RV_EINVAL);
    rv__buf_done(&text);
}

static void a_catastrophic_pattern_ends_in_an_error(void **state)
{
    rv_error err;
    (void)state;
    const char *text =
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"";
    assert_int_equal(check("{\"pattern\":\"^(a+)+$\"}", text, &err), RV_ETOOBIG);
    assert_non_null(strstr(err.message, "takes too long"));
    assert_int_equal(check("{\"not\":{\"pattern\":\"^(a|a)*$\"}}", text, &err), RV_ETOOBIG);
    assert_int_equal(check("{\"pattern\":\"(a{999}){999}{999}\"}", text, &err), RV_EINVAL);
    assert_int_equal(check("{\"patternProperties\":{\"^(([a-z])+.)+[A-Z]([a-z])+$\":{}}}",
                           "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}", &err),
                     RV_ETOOBIG);
}

static void many_costly_matches_end_too(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 1 << 22);
    rv__buf_text(&text, "[");
    for (int i = 0; i < 20000; i++) /* each some 100,000 steps: above the low limit */
        rv__buf_fmt(&text, "%s\"aaaaaaaaaaaaaaa!\"", i ? "," : "");
    rv__buf_text(&text, "]");
    assert_int_equal(check("{\"items\":{\"not\":{\"pattern\":\"^(a+)+$\"}}}", text.text, &err),
                     RV_ETOOBIG);
    rv__buf_done(&text);
}

static void a_simple_pattern_takes_long_texts(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 1 << 22);
    rv__buf_char(&text, '"');
    for (int i = 0; i < 100000; i++)
        rv__buf_text(&text, "ab-");
    rv__buf_char(&text, '"');
    assert_int_equal(check("{\"pattern\":\"^(?:[a-z]|-)*$\"}", text.text, &err), RV_OK);
    assert_int_equal(check("{\"pattern\":\"^[a-z-]*$\"}", text.text, &err), RV_OK);
    rv__buf_done(&text);
}

static void alternatives_within_alternatives_end(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    nest(&text, "[", "1", "]", 100);
    assert_int_equal(check("{\"anyOf\":[{\"items\":{\"$ref\":\"#\"},\"not\":{}},"
                           "{\"items\":{\"$ref\":\"#\"},\"type\":\"array\"}]}",
                           text.text, &err),
                     RV_ETOOBIG);
    assert_non_null(strstr(err.message, "too many steps"));
    rv__buf_done(&text);
}

static void ids_and_sizes_are_bounded(void **state)
{
    struct rv__buf text;
    rv_error err;
    (void)state;
    rv__buf_init(&text, 16u << 20);
    rv__buf_text(&text, "{\"$defs\":{");
    for (int i = 0; i < 1002; i++)
        rv__buf_fmt(&text, "\"a%d\":{\"$id\":\"i%d\"},\"b%d\":{\"$anchor\":\"a%d\"},", i, i, i, i);
    rv__buf_text(&text, "\"x\":{}}}");
    assert_int_equal(check(text.text, "1", &err), RV_EINVAL);
    assert_non_null(strstr(err.message, "more than 1000 ids"));
    rv__buf_reset(&text);
    rv__buf_text(&text, "{\"title\":\"");
    while (text.len < RV__SCHEMA_MAX_BYTES)
        rv__buf_text(&text, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    rv__buf_text(&text, "\"}");
    assert_int_equal(check(text.text, "1", &err), RV_ETOOBIG);
    rv__buf_done(&text);
}

static void more_violations_than_anybody_reads_are_counted(void **state)
{
    struct fixture fx;
    struct rv__buf text;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "[0");
    for (int i = 1; i < 5000; i++)
        rv__buf_text(&text, ",0");
    rv__buf_text(&text, "]");
    fixture_schema(&fx, "{\"items\":{\"type\":\"null\"}}");
    assert_int_equal(rv__schema_check(fx.schema, rv__str(text.text), &fx.bad, &fx.err), RV_EINVAL);
    assert_int_equal(fx.bad.count, RV__VIOLATIONS_MAX);
    assert_int_equal(fx.bad.dropped, 4000);
    fixture_done(&fx);
    rv__buf_done(&text);
}

/* ------------------------------------------------------------------------------------------ */

#define ALL_KEYWORDS                                                                               \
    "{\"$id\":\"http://a/b\",\"type\":\"object\",\"$defs\":{\"p\":{\"$anchor\":\"x\",\"pattern\":" \
    "\"^\\\\s*a\"}},\"properties\":{\"s\":{\"$ref\":\"#x\",\"format\":\"regex\"},\"n\":{\"enum\":" \
    "[1,2,3],"                                                                                     \
    "\"multipleOf\":1},\"l\":{\"uniqueItems\":true,\"prefixItems\":[{}],\"contains\":{\"const\":"  \
    "1}}},"                                                                                        \
    "\"patternProperties\":{\"^x\":{\"anyOf\":[{\"type\":\"null\"},{\"properties\":{\"a\":true}}]" \
    "}},"                                                                                          \
    "\"required\":[\"s\"],\"dependentRequired\":{\"s\":[\"n\"]},\"unevaluatedProperties\":false}"

static void no_memory_for_a_schema_is_an_error(void **state)
{
    struct fixture fx;
    int rc;
    (void)state;
    fixture_init(&fx);
    TORTURE(rc, rv__schema_new(rv__str(ALL_KEYWORDS), &fx.bad, &fx.schema, &fx.err),
            assert_null(fx.schema);
            fixture_done(&fx); fixture_init(&fx));
    assert_int_equal(rc, RV_OK);
    fixture_done(&fx);
}

static int check_again(struct fixture *fx, const char *value)
{
    rv__arena_done(&fx->arena);
    rv__arena_init(&fx->arena, SIZE_MAX);
    rv__violations_init(&fx->bad, &fx->arena);
    int rc = rv__schema_check(fx->schema, rv__str(value), &fx->bad, &fx->err);
    return rc == RV_EINVAL && fx->bad.count > 0 ? RV_OK : rc;
}

static void no_memory_for_a_check_is_an_error(void **state)
{
    struct fixture fx;
    int rc;
    (void)state;
    fixture_schema(&fx, ALL_KEYWORDS);
    TORTURE(rc,
            check_again(&fx,
                        "{\"s\":\"a\",\"n\":2,\"l\":[1,2,\"\\n\"],\"xy\":{\"a\":1},\"x\":5,"
                        "\"nn\":1,\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1}"), );
    assert_int_equal(rc, RV_OK);
    assert_int_equal(fx.bad.count, 8);
    fixture_done(&fx);
}

static void *check_often(void *schema)
{
    intptr_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        wrong += rv__schema_check(schema, rv__str("{\"s\":\" a\",\"n\":2,\"xy\":null}"), NULL,
                                  NULL) != RV_OK;
        wrong += rv__schema_check(schema, rv__str("{\"s\":\"b\",\"n\":2,\"xy\":1}"), NULL, NULL) !=
                 RV_EINVAL;
    }
    return (void *)wrong;
}

static void threads_share_a_schema(void **state)
{
    struct fixture fx;
    pthread_t threads[4];
    (void)state;
    fixture_schema(&fx, ALL_KEYWORDS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_often, fx.schema), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    fixture_done(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_values_and_schemas_are_refused),
        cmocka_unit_test(long_chains_are_refused),
        cmocka_unit_test(a_catastrophic_pattern_ends_in_an_error),
        cmocka_unit_test(many_costly_matches_end_too),
        cmocka_unit_test(a_simple_pattern_takes_long_texts),
        cmocka_unit_test(alternatives_within_alternatives_end),
        cmocka_unit_test(ids_and_sizes_are_bounded),
        cmocka_unit_test(more_violations_than_anybody_reads_are_counted),
        cmocka_unit_test(no_memory_for_a_schema_is_an_error),
        cmocka_unit_test(no_memory_for_a_check_is_an_error),
        cmocka_unit_test(threads_share_a_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
