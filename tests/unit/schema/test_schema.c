/* test_schema.c: what a schema says of a value, where, and in which words; which schemas are refused.
 * That it is right at all is for tests/conformance to say. */
#include "unit/schema/schema_test.h"

struct row {
    const char *schema, *value, *expected;
};

/* clang-format off */
static void a_violation_is_a_place_and_a_sentence(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "{\"type\":\"string\"}", "5", ": must be a string, is a number\n" },
        { "{\"type\":\"integer\"}", "1.5", ": must be an integer, is 1.5\n" },
        { "{\"type\":[\"string\",\"null\"]}", "[]", ": must be null or a string, is an array\n" },
        { "{\"type\":[\"boolean\",\"array\",\"object\"]}", "\"\"",
          ": must be a boolean, an array or an object, is a string\n" },
        { "{\"enum\":[\"a\",1,null]}", "\"b\"", ": must be one of \"a\", 1, null\n" },
        { "{\"enum\":[\"a\"]}", "2", ": must be \"a\"\n" },
        { "{\"enum\":[]}", "2", ": cannot have any value: its 'enum' is empty\n" },
        { "{\"const\":{\"a\":1}}", "2", ": must be {\"a\":1}\n" },
        { "{\"minimum\":3,\"multipleOf\":2}", "1",
          ": must be at least 3, is 1\n: must be a multiple of 2, is 1\n" },
        { "{\"maximum\":3}", "3.01", ": must be at most 3, is 3.01\n" },
        { "{\"exclusiveMinimum\":3}", "3", ": must be more than 3, is 3\n" },
        { "{\"exclusiveMaximum\":3}", "3", ": must be less than 3, is 3\n" },
        { "{\"minLength\":1}", "\"\"", ": may not be empty\n" },
        { "{\"minLength\":3}", "\"\\u00e9\\ud83d\\ude00\"", ": must have at least 3 characters, has 2\n" },
        { "{\"maxLength\":1}", "\"ab\"", ": must have at most 1 character, has 2\n" },
        { "{\"pattern\":\"^a+$\"}", "\"b\"", ": must match the pattern '^a+$'\n" },
        { "{\"format\":\"date\"}", "\"2026-02-29\"", ": must be a date (2026-01-31)\n" },
        { "{\"minItems\":1}", "[]", ": must have at least 1 item, has 0\n" },
        { "{\"maxItems\":1}", "[1,2]", ": must have at most 1 item, has 2\n" },
        { "{\"uniqueItems\":true}", "[1,{\"a\":1,\"b\":2},0,{\"b\":2,\"a\":1}]",
          "/3: must differ from all others, is the same as item 1\n" },
        { "{\"contains\":{\"type\":\"string\"}}", "[1]",
          ": must contain at least 1 item of the kind asked for, contains 0\n" },
        { "{\"contains\":true,\"maxContains\":1}", "[1,2]",
          ": must contain at most 1 item of the kind asked for, contains 2\n" },
        { "{\"items\":{\"type\":\"string\"}}", "[\"\",1,\"\",null]",
          "/1: must be a string, is a number\n/3: must be a string, is null\n" },
        { "{\"required\":[\"a\",\"b/c~\"]}", "{\"x\":1}", "/a: is required\n/b~1c~0: is required\n" },
        { "{\"minProperties\":2}", "{\"a\":1,\"a\":2}", ": must have at least 2 members, has 1\n" },
        { "{\"properties\":{\"name\":true},\"additionalProperties\":false}", "{\"nane\":1,\"zzzzzz\":2}",
          "/nane: is not allowed here; did you mean 'name'?\n/zzzzzz: is not allowed here\n" },
        { "{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}",
          "/abc: has the name 'abc', which must have at most 2 characters, has 3\n" },
        { "{\"dependentRequired\":{\"card\":[\"address\"]}}", "{\"card\":1}",
          "/address: is required where 'card' is there\n" },
        { "{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{\"type\":\"null\"}}}}}}",
          "{\"x\":[],\"a\":[0,{\"b\":null},{\"b\":true}]}", "/a/2/b: must be null, is a boolean\n" },
        { "{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":1,\"a\":\"x\"}", "" },
        { "{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"x\",\"a\":1}",
          "/a: must be a string, is a number\n" },
        { "false", "1", ": is not allowed\n" },
        { "{\"properties\":{\"a\":false}}", "{\"a\":1}", "/a: is not allowed\n" },
        { "{\"unevaluatedProperties\":false,\"allOf\":[{\"properties\":{\"a\":true}}]}", "{\"a\":1,\"b\":1}",
          "/b: is not allowed\n" },
        { "{\"type\":\"array\",\"unevaluatedProperties\":false}", "{\"a\":1}", ": must be an array, is an object\n" },
        { "{\"unevaluatedProperties\":false,\"properties\":{\"a\":{\"type\":\"null\"}}}", "{\"a\":1,\"b\":1}",
          "/a: must be null, is a number\n/b: is not allowed\n" },
        { "{\"unevaluatedProperties\":false,\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"null\"}}}]}", "{\"a\":1}",
          ": matches none of 1 alternative: (1) /a must be null, is a number\n" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"required\":[\"k\"]},{\"properties\":{\"x\":{\"type\":\"null\"}}}]}",
          "{\"x\":1}", ": matches none of 3 alternatives: (1) must be a string, is an object; "
          "(2) /k is required; (3) /x must be null, is a number\n" },
        { "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"string\"},{\"minimum\":1}]}", "1",
          ": must match exactly one of 3 alternatives, matches (1) and (3)\n" },
        { "{\"not\":{\"type\":\"null\"}}", "null",
          ": must not match the schema of 'not'\n" },
        { "{\"if\":{\"properties\":{\"a\":{\"const\":1}}},\"then\":{\"required\":[\"b\"]}}", "{\"a\":1}",
          "/b: is required\n" },
        { "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"minimum\":2}},\"maximum\":0}", "1",
          ": must be at most 0, is 1\n: must be at least 2, is 1\n" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_said(rows[i].schema, rows[i].value, rows[i].expected);
}

static void numbers_are_what_is_written(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "{\"const\":9007199254740993}", "9007199254740992", ": must be 9007199254740993\n" },
        { "{\"const\":9007199254740993}", "9007199254740993.0", "" },
        { "{\"const\":1}", "1.0", "" },
        { "{\"const\":100}", "1e2", "" },
        { "{\"const\":0}", "-0.0e5", "" },
        { "{\"const\":0.001}", "1E-3", "" },
        { "{\"const\":1e400}", "1e401", ": must be 1e400\n" },
        { "{\"const\":-2}", "2", ": must be -2\n" },
        { "{\"minimum\":-1.5}", "-1.50001", ": must be at least -1.5, is -1.50001\n" },
        { "{\"maximum\":99999999999999999999}", "99999999999999999999.0", "" },
        { "{\"maximum\":99999999999999999999}", "100000000000000000000",
          ": must be at most 99999999999999999999, is 100000000000000000000\n" },
        { "{\"multipleOf\":0.01}", "19.99", "" },
        { "{\"multipleOf\":0.01}", "0.075", ": must be a multiple of 0.01, is 0.075\n" },
        { "{\"multipleOf\":7}", "7e100", "" },
        { "{\"multipleOf\":7}", "1e100", ": must be a multiple of 7, is 1e100\n" },
        { "{\"multipleOf\":1e3}", "2500", ": must be a multiple of 1e3, is 2500\n" },
        { "{\"multipleOf\":0.5}", "1e308", "" },
        { "{\"type\":\"integer\"}", "1e999999999999999999999", "" },
        { "{\"type\":\"integer\"}", "1e-999999999999999999999", ": must be an integer, is 1e-999999999999999999999\n" },
        { "{\"enum\":[1.0,\"1\"]}", "1", "" },
        { "{\"minLength\":2.0}", "\"ab\"", "" },
        { "{\"maxLength\":1e30}", "\"ab\"", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_said(rows[i].schema, rows[i].value, rows[i].expected);
}

static void equal_items_are_found_among_many(void **state)
{
    (void)state;
    struct rv__buf text;
    rv__buf_init(&text, 1 << 24);
    rv__buf_char(&text, '[');
    for (int i = 0; i < 20000; i++)
        rv__buf_fmt(&text, "{\"a\":%d,\"b\":[\"%d\"]},", i, i);
    size_t before = text.len;
    rv__buf_text(&text, "null]");
    expect_said("{\"uniqueItems\":true}", text.text, "");
    rv__buf_cut(&text, before);
    rv__buf_text(&text, "{\"b\":[\"\\u0037\"],\"a\":7.0}]");
    expect_said("{\"uniqueItems\":true}", text.text,
                 "/20000: must differ from all others, is the same as item 7\n");
    rv__buf_done(&text);
    expect_said("{\"uniqueItems\":true}", "[{\"a\":1,\"a\":2},{\"a\":2}]",
                 "/1: must differ from all others, is the same as item 0\n");
    expect_said("{\"uniqueItems\":true}", "[[],{},0,false,null,\"\",[0],\"0\"]", "");
}

static void what_is_wrong_with_a_schema_is_told_at_once(void **state)
{
    (void)state;
    static const struct { const char *schema, *expected; } rows[] = {
        { "[]", ": a schema is an object, true or false\n" },
        { "{\"type\":\"strin\",\"minLength\":-1,\"required\":[1],\"properties\":{\"a/b\":5}}",
          "/type: must be one of null, boolean, integer, number, string, array, object (or an array of them)\n"
          "/minLength: must be an integer that is not negative\n"
          "/required/0: must be a string\n"
          "/properties/a~1b: a schema is an object, true or false\n" },
        { "{\"minimum\":true,\"multipleOf\":0,\"uniqueItems\":1,\"enum\":1,\"allOf\":[]}",
          "/enum: must be an array\n/minimum: must be a number\n/multipleOf: must be a number above 0\n"
          "/uniqueItems: must be true or false\n/allOf: must be an array with at least one schema\n" },
        { "{\"multipleOf\":1234567890.1234567891}", "/multipleOf: has more than 18 significant digits\n" },
        { "{\"items\":[{}],\"required\":\"a\",\"properties\":[],\"dependentRequired\":1,\"patternProperties\":1}",
          "/items: a schema is an object, true or false\n/required: must be an array of strings\n"
          "/properties: must be an object of schemas\n/patternProperties: must be an object of schemas\n"
          "/dependentRequired: must be an object of arrays of strings\n" },
        { "{\"pattern\":\"(\",\"format\":1}",
          "/pattern: the pattern '(' is not a regular expression: missing closing parenthesis\n"
          "/format: must be a string\n" },
        { "{\"pattern\":3,\"$ref\":3,\"$id\":3,\"$anchor\":\"3\"}",
          "/$id: must be a string\n/$anchor: must be a name: a letter or '_', then letters, digits, '-_.'\n"
          "/$ref: must be a string\n/pattern: must be a string\n" },
        { "{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}",
          "/$schema: must be https://json-schema.org/draft/2020-12/schema: no other draft and no vocabulary "
          "of one's own is supported\n" },
        { "{\"$vocabulary\":{}}", "/$vocabulary: this keyword is not supported\n" },
        { "{\"items\":{\"$ref\":\"https://example.com/x#y\"}}",
          "/items/$ref: refers to 'https://example.com/x', which is not in this document; remote references "
          "are not supported\n" },
        { "{\"$ref\":\"#/$defs/a\"}", "/$ref: refers to '#/$defs/a', which is not there\n" },
        { "{\"$ref\":\"#a\",\"not\":{\"$ref\":\"#/%zz\"}}",
          "/$ref: refers to '#a', which is not there\n/not/$ref: refers to '#/%zz', which is not there\n" },
        { "{\"$ref\":\"#/unknown\",\"unknown\":{\"type\":1}}",
          "/unknown/type: must be one of null, boolean, integer, number, string, array, object (or an array of them)\n" },
        { "{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"},\"c\":{\"$id\":\"i\"},\"d\":{\"$id\":\"i\"},\"e\":{\"$id\":\"#e\"}}}",
          "/$defs/b/$anchor: is the anchor of another place already\n/$defs/d/$id: is the id of another schema already\n"
          "/$defs/e/$id: may not have a fragment; a name for a place is an $anchor\n" },
        { "{\"$defs\":{\"a\":{\"$dynamicAnchor\":\"x\"},\"b\":{\"$id\":\"b\",\"$dynamicAnchor\":\"x\"}},\"$dynamicRef\":\"#x\"}",
          "/$dynamicRef: dynamic references are not supported; use $ref and $anchor\n"
          "/$defs/a/$dynamicAnchor: dynamic references are not supported; use $ref and $anchor\n"
          "/$defs/b/$dynamicAnchor: dynamic references are not supported; use $ref and $anchor\n" },
        { "{\"$ref\":\"#x\",\"$defs\":{\"a\":{\"$dynamicAnchor\":\"x\"}}}",
          "/$defs/a/$dynamicAnchor: dynamic references are not supported; use $ref and $anchor\n"
          "/$ref: refers to '#x', which is not there\n" },
        { "{\"$ref\":\"#\"}", ": refers to itself without end\n" },
        { "{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":{\"$ref\":\"#/$defs/a\"}}}}",
          "/$defs/b/not: refers to itself without end\n" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"items\":{\"$ref\":\"#\"}}", "" },
        { "{\"$dynamicRef\":\"#x\",\"$defs\":{\"a\":{\"$anchor\":\"x\",\"type\":\"null\"}}}",
          "/$dynamicRef: dynamic references are not supported; use $ref and $anchor\n" },
        { "{\"properties\":{\"$dynamicRef\":{},\"$dynamicAnchor\":{}}}", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_schema(rows[i].schema, rows[i].expected);
}

static void only_ecma_is_a_pattern(void **state)
{
    (void)state;
    static const struct { const char *pattern, *text; int matches; } rows[] = { /* -1: refused */
        { "^\\\\s$", "\"\\ufeff\"", 1 }, { "^\\\\s$", "\"\\u00a0\"", 1 }, { "^[\\\\s]$", "\"\\u2029\"", 1 },
        { "^\\\\S$", "\"\\u2029\"", 0 }, { "^[\\\\Sx]$", "\"a\"", 1 }, { "^\\\\d$", "\"\\u0966\"", 0 },
        { "^\\\\w$", "\"\\u00e9\"", 0 }, { "^.$", "\"\\u2028\"", 0 }, { "^.$", "\"\\ud83d\\ude00\"", 1 },
        { "a$", "\"a\\n\"", 0 }, { "^\\\\v$", "\"\\u000b\"", 1 }, { "^\\\\v$", "\"\\u000a\"", 0 },
        { "^\\\\ud83d\\\\ude00$", "\"\\ud83d\\ude00\"", 1 }, { "^\\\\u{1f600}$", "\"\\ud83d\\ude00\"", 1 },
        { "^\\\\u0041\\\\x42\\\\0$", "\"AB\\u0000\"", 1 }, { "^[[:alpha:]]$", "\"a]\"", 1 }, { "^[]$", "\"\"", 0 },
        { "^[^]$", "\"\\n\"", 1 }, { "^\\\\p{Lu}\\\\p{Letter}\\\\P{gc=Decimal_Number}$", "\"Aa-\"", 1 },
        { "^\\\\p{Script=Greek}$", "\"\\u03c0\"", 1 }, { "^(a)(?<n>b)\\\\1\\\\k<n>$", "\"abab\"", 1 },
        { "^a{2}{$", "\"aa{\"", 1 }, { "^a{,2}$", "\"a{,2}\"", 1 }, { "^x{2,3}?$", "\"xxx\"", 1 },
        { "^\\\\cJ[\\\\b]$", "\"\\n\\b\"", 1 }, { "(?=a)(?!b)(?<!x)a", "\"a\"", 1 }, { "\\\\-\\\\@\\\\/", "\"-@/\"", 1 },
        { "\\\\Z", "", -1 }, { "\\\\a", "", -1 }, { "\\\\", "", -1 }, { "(?i)a", "", -1 }, { "(*UTF8)a", "", -1 },
        { "(?R)", "", -1 }, { "(?P<n>a)", "", -1 }, { "a++", "", -1 }, { "a**", "", -1 }, { "\\\\u12", "", -1 },
        { "\\\\ud800", "", -1 }, { "\\\\x1", "", -1 }, { "\\\\p{Nonsense}", "", -1 }, { "\\\\p", "", -1 },
        { "[\\\\1]", "", -1 }, { "\\\\k<n", "", -1 }, { "\\\\u{110000}", "", -1 }, { "[\\\\B]", "", -1 },
        { "[a", "", -1 }, { "\\\\c1", "", -1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture fx;
        char schema[200];
        snprintf(schema, sizeof schema, "{\"pattern\":\"%s\"}", rows[i].pattern);
        fixture_init(&fx);
        int rc = rv__schema_new(rv__str(schema), NULL, &fx.schema, &fx.err);
        int got = rc < 0 ? -1 : rv__schema_check(fx.schema, rv__str(rows[i].text), NULL, &fx.err) == RV_OK;
        if (got != rows[i].matches)
            fail_msg("%s against %s: %d, %s", rows[i].pattern, rows[i].text, got, fx.err.message);
        fixture_done(&fx);
    }
}
/* clang-format on */

static void a_list_of_violations_can_be_spared(void **state)
{
    struct fixture fx;
    (void)state;
    fixture_schema(&fx, "{\"items\":{\"type\":\"null\"}}");
    assert_int_equal(rv__schema_check(fx.schema, rv__str("[1,2]"), NULL, &fx.err), RV_EINVAL);
    assert_string_equal(fx.err.message, "/0: must be null, is a number (and 1 more)");
    assert_int_equal(rv__schema_check(fx.schema, rv__str("[1,2"), NULL, &fx.err), RV_EPARSE);
    fixture_done(&fx);
    fixture_init(&fx);
    assert_int_equal(rv__schema_new(rv__str("{\"type\":1}"), NULL, &fx.schema, &fx.err), RV_EINVAL);
    assert_int_equal(rv__schema_new(rv__str("{"), NULL, &fx.schema, &fx.err), RV_EPARSE);
    assert_null(fx.schema);
    fixture_done(&fx);
}

static void messages_stay_whole_however_long_what_they_quote(void **state)
{
    struct rv__buf text;
    struct fixture fx;
    (void)state;
    rv__buf_init(&text, 1 << 20);
    rv__buf_text(&text, "{\"anyOf\":[");
    for (int i = 0; i < 9; i++) {
        rv__buf_fmt(&text, "%s{\"const\":\"", i ? "," : "");
        for (int j = 0; j < 100 + i; j++)
            rv__buf_text(&text, "é");
        rv__buf_text(&text, "\"}");
    }
    rv__buf_text(&text, "]}");
    fixture_schema(&fx, text.text);
    assert_int_equal(rv__schema_check(fx.schema, rv__str("1"), &fx.bad, &fx.err), RV_EINVAL);
    assert_true(rv__str_utf8(fx.bad.items[0].message));
    fixture_done(&fx);
    rv__buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_violation_is_a_place_and_a_sentence),
        cmocka_unit_test(numbers_are_what_is_written),
        cmocka_unit_test(equal_items_are_found_among_many),
        cmocka_unit_test(what_is_wrong_with_a_schema_is_told_at_once),
        cmocka_unit_test(only_ecma_is_a_pattern),
        cmocka_unit_test(a_list_of_violations_can_be_spared),
        cmocka_unit_test(messages_stay_whole_however_long_what_they_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
