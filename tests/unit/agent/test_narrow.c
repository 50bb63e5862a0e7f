/* test_narrow.c: schemas as structured output takes them. For src/agent/narrow.c. */
#include "agent/protocol.h"
#include "unit/test.h"

static const struct row {
    const char *schema, *narrowed; /* NULL: it cannot be said */
    bool left_out;
} rows[] = {
    { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}",
      "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"],"
      "\"additionalProperties\":false}",
      false },
    { "{\"additionalProperties\":false,\"type\":\"object\",\"properties\":{\"n\":{\"type\":["
      "\"number\","
      "\"null\"],\"minimum\":1,\"description\":\"how many\"}}}",
      "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":[\"number\",\"null\"],\"description\":"
      "\"how many\"}},\"additionalProperties\":false}",
      true },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
      "\"object\","
      "\"properties\":{\"k\":{\"enum\":[1,\"x\"]}}}},\"b\":{\"anyOf\":[{\"type\":\"null\"},{"
      "\"const\":2}]}}}",
      "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":"
      "\"object\","
      "\"properties\":{\"k\":{\"enum\":[1,\"x\"]}},\"additionalProperties\":false}},\"b\":{"
      "\"anyOf\":["
      "{\"type\":\"null\"},{\"const\":2}]}},\"additionalProperties\":false}",
      false },
    /* Objects with members of any name, values of any kind, what refers to something, lists at the top. */
    { "{\"type\":\"object\"}", NULL, false },
    { "{\"type\":\"object\",\"properties\":{\"n\":{}}}", NULL, false },
    { "{\"type\":\"object\",\"properties\":{\"n\":true}}", NULL, false },
    { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":[\"object\",\"null\"]}}}", NULL,
      false },
    { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}},\"additionalProperties\":"
      "{\"type\":\"string\"}}",
      NULL, false },
    { "{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#\"}}}", NULL, false },
    { "{\"type\":\"object\",\"properties\":{\"n\":{\"anyOf\":[{\"type\":\"object\"}]}}}", NULL,
      false },
    { "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}", NULL, false },
    { "{}", NULL, false },
};

static void a_schema_becomes_one_that_is_taken_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__buf out;
        bool left_out = false;
        rv__buf_init(&out, SIZE_MAX / 8);
        bool said = rv__schema_narrow(rv__str(rows[i].schema), &out, &left_out);
        rv__buf_char(&out, '\0');
        if (said != (rows[i].narrowed != NULL) || left_out != rows[i].left_out ||
            (said && strcmp(out.text, rows[i].narrowed) != 0))
            fail_msg("%s\nbecame %d %d %s", rows[i].schema, said, left_out, out.text);
        rv__buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_becomes_one_that_is_taken_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
