/* test_defaults.c: what is put in where a member is absent, for src/schema/defaults.c. */
#include "unit/schema/schema_test.h"

static void expect_defaults(const char *schema, const char *value, const char *expected)
{
    struct fixture fx;
    struct rv__buf out;
    rv__buf_init(&out, 1 << 20);
    rv__buf_text(&out, "=");
    fixture_schema(&fx, schema);
    int rc = rv__schema_defaults(fx.schema, rv__str(value), &out, &fx.err);
    if (rc < 0 || strcmp(out.text + 1, expected) != 0)
        fail_msg("%s, %s: rc %d (%s), got %s", schema, value, rc, rc < 0 ? fx.err.message : "",
                 out.text);
    fixture_done(&fx);
    rv__buf_done(&out);
}

/* clang-format off */
#define P(properties) "{\"properties\":{" properties "}}"

static void absent_members_are_put_in(void **state)
{
    (void)state;
    expect_defaults(P("\"a\":{\"default\":1}"), "{}", "{\"a\":1}");
    expect_defaults(P("\"a\":{\"default\":1}"), "{\"a\":null}", "{\"a\":null}");
    expect_defaults(P("\"a\":{\"default\":1},\"b\":{\"default\":[ 2 ]}"), "{\"x\":0}", "{\"x\":0,\"a\":1,\"b\":[ 2 ]}");
    expect_defaults(P("\"q\\\"\":{\"default\":\"\\u00e9\"}"), "{}", "{\"q\\\"\":\"\\u00e9\"}");
    expect_defaults(P("\"a\":{\"default\":1}"), "[]", "[]");
    expect_defaults(P("\"a\":{\"type\":\"string\"}"), "{}", "{}");
    expect_defaults("{\"default\":{\"a\":1}}", "{}", "{}");
    expect_defaults("true", "{}", "{}");
}

static void every_other_byte_stays(void **state)
{
    (void)state;
    expect_defaults(P("\"a\":{\"default\":1.0}"), " { \"n\" : 9007199254740993 ,\n \"e\":1E+2 , \"n\":2 } ",
                    "{ \"n\" : 9007199254740993 ,\n \"e\":1E+2 , \"n\":2,\"a\":1.0 }");
    expect_defaults(P("\"a\":" P("\"b\":{\"default\":0}")), "{\"a\":{\"x\":1},\"a\":{ }}", "{\"a\":{\"x\":1},\"a\":{\"b\":0 }}");
    expect_defaults("{\"items\":" P("\"b\":{\"default\":0}") "}", "[1, {}, {\"b\":1} ,[{}]]", "[1, {\"b\":0}, {\"b\":1} ,[{}]]");
}

static void what_holds_unconditionally_counts(void **state)
{
    (void)state;
    expect_defaults(P("\"a\":" P("\"b\":{\"default\":1}")), "{\"a\":{}}", "{\"a\":{\"b\":1}}");
    expect_defaults(P("\"a\":" P("\"b\":{\"default\":1}")), "{}", "{}");
    expect_defaults("{\"properties\":{\"a\":{\"default\":{},\"properties\":{\"b\":{\"default\":1}}}}}", "{}", "{\"a\":{\"b\":1}}");
    expect_defaults("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":" P("\"a\":{\"default\":1}") "}}", "{}", "{\"a\":1}");
}

static void the_first_that_says_one_wins(void **state)
{
    (void)state;
    expect_defaults("{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\",\"default\":1},\"b\":{\"$ref\":\"#/$defs/x\"}},"
                    "\"$defs\":{\"x\":{\"default\":2}}}", "{}", "{\"a\":1,\"b\":2}");
    expect_defaults("{\"properties\":{\"a\":{\"type\":\"object\"}},\"allOf\":["
                    P("\"a\":{\"default\":{}}") "," P("\"a\":{\"default\":3,\"properties\":{\"c\":{\"default\":4}}}") "]}",
                    "{}", "{\"a\":{\"c\":4}}");
    expect_defaults("{\"prefixItems\":[" P("\"a\":{\"default\":1}") "],\"items\":" P("\"a\":{\"default\":2}") "}",
                    "[{},{}]", "[{\"a\":1},{\"a\":2}]");
}

static void what_depends_on_the_value_does_not_count(void **state)
{
    (void)state;
    static const char *const keywords[] = { "anyOf", "oneOf" };
    static const char *const single[] = { "if", "then", "else", "not", "contains", "unevaluatedProperties" };
    char schema[200];
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        snprintf(schema, sizeof schema, "{\"%s\":[" P("\"a\":{\"default\":1}") "]}", keywords[i]);
        expect_defaults(schema, "{}", "{}");
    }
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        snprintf(schema, sizeof schema, "{\"%s\":" P("\"a\":{\"default\":1}") "}", single[i]);
        expect_defaults(schema, "{}", "{}");
    }
    expect_defaults("{\"patternProperties\":{\"a\":" P("\"b\":{\"default\":1}") "},\"dependentSchemas\":{\"a\":"
                    P("\"c\":{\"default\":1}") "}}", "{\"a\":{}}", "{\"a\":{}}");
}
/* clang-format on */

static void what_holds_by_many_ways_counts_once(void **state)
{
    struct rv__buf schema;
    (void)state;
    rv__buf_init(&schema, 1 << 16);
    rv__buf_text(&schema, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 40; i++)
        rv__buf_fmt(&schema,
                    "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]},",
                    i, i + 1, i + 1);
    rv__buf_text(&schema, "\"d40\":{\"properties\":{\"a\":{\"default\":1}}}}}");
    expect_defaults(schema.text, "{}", "{\"a\":1}");
    rv__buf_done(&schema);
}

static void defaults_without_end_end(void **state)
{
    struct fixture fx;
    struct rv__buf out;
    (void)state;
    rv__buf_init(&out, 1 << 16);
    rv__buf_text(&out, "kept");
    fixture_schema(&fx, "{\"properties\":{\"a\":{\"$ref\":\"#\",\"default\":{}},"
                        "\"b\":{\"$ref\":\"#\",\"default\":{}}}}");
    assert_int_equal(rv__schema_defaults(fx.schema, rv__str("{}"), &out, &fx.err), RV_ETOOBIG);
    assert_string_equal(out.text, "kept");
    assert_int_equal(rv__schema_defaults(fx.schema, rv__str("{"), &out, &fx.err), RV_EPARSE);
    fixture_done(&fx);
    rv__buf_done(&out);
}

static void no_memory_means_no_change(void **state)
{
    struct fixture fx;
    struct rv__buf out;
    int rc;
    (void)state;
    rv__buf_init(&out, 1 << 16);
    fixture_schema(&fx, "{\"properties\":{\"a\":{\"default\":{}},\"b\":{\"default\":\"\\n\"}},"
                        "\"additionalProperties\":true}");
    TORTURE(rc,
            rv__schema_defaults(fx.schema, rv__str("{\"x\\u0041\":[\"\\t\",{}]}"), &out, &fx.err),
            assert_int_equal(out.len, 0);
            rv__buf_done(&out); rv__buf_init(&out, 1 << 16));
    assert_int_equal(rc, RV_OK);
    assert_string_equal(out.text, "{\"x\\u0041\":[\"\\t\",{}],\"a\":{},\"b\":\"\\n\"}");
    fixture_done(&fx);
    rv__buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_members_are_put_in),
        cmocka_unit_test(every_other_byte_stays),
        cmocka_unit_test(what_holds_unconditionally_counts),
        cmocka_unit_test(the_first_that_says_one_wins),
        cmocka_unit_test(what_depends_on_the_value_does_not_count),
        cmocka_unit_test(what_holds_by_many_ways_counts_once),
        cmocka_unit_test(defaults_without_end_end),
        cmocka_unit_test(no_memory_means_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
