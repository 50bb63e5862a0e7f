/* test_write.c: plans to text and back, for src/plan/write.c, read.c and object.c. */
#include "unit/plan/plan_test.h"
#include "unit/plan/zoo.h"

#include "base/hash.h"
#include "base/json.h"

/* Without the "version" members, which are the only ones whose value has 64 digits. */
static void without_versions(struct rv__str text, struct rv__buf *out)
{
    static const char key[] = "\"version\":\"";
    size_t whole = sizeof key - 1 + 64 + 2; /* with the quote and the comma behind it */
    for (size_t i = 0; i < text.len; i++) {
        if (text.len - i > whole && memcmp(text.at + i, key, sizeof key - 1) == 0)
            i += whole;
        rv__buf_char(out, text.at[i]);
    }
}

static void what_is_written_is_what_was_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO; i++) {
        struct rv__buf once, twice, bare;
        struct rv__plan *plan = must_read(zoo[i]), *again;
        rv__buf_init(&once, RV__PLAN_MAX_BYTES);
        rv__buf_init(&twice, RV__PLAN_MAX_BYTES);
        rv__buf_init(&bare, RV__PLAN_MAX_BYTES);
        assert_int_equal(rv__plan_write(plan, &once, NULL), RV_OK);
        without_versions(rv__buf_view(&once), &bare);
        if (strcmp(bare.text, zoo[i]) != 0)
            fail_msg("wrote\n%s\ninstead of\n%s", bare.text, zoo[i]);

        again = must_read(once.text);
        assert_int_equal(rv__plan_write(again, &twice, NULL), RV_OK);
        assert_string_equal(once.text, twice.text);
        assert_string_equal(plan->version, again->version);
        assert_int_equal(plan->node_count, again->node_count);
        rv__plan_free(plan);
        rv__plan_free(again);
        rv__buf_done(&once);
        rv__buf_done(&twice);
        rv__buf_done(&bare);
    }
}

/* The same text with white space wherever it may stand, and defaults said expressly. */
static void ways_to_write_the_same_are_the_same(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"},{\"type\":\"step\","
          "\"name\":\"f\"}]}",
          " { \"steps\" : [ { \"name\" : \"f\" , \"type\" : \"step\" , \"kind\":\"function\", "
          "\"alias\":\"f\" } ,\n"
          "\t{ \"alias\":\"f_2\", "
          "\"name\":\"\\u0066\",\"type\":\"step\",\"onTimeout\":\"stop\",\"backoff\":\"linear\","
          "\"backoffBaseMs\":100,\"maxBackoffMs\":60000,\"jitter\":0,\"needs\":[] } "
          "]\r,\"name\":\"w\" } " },
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"value\",\"with\":{\"a\":\" "
          "\\\" \",\"b\":[1,2]}}]}",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"kind\":\"value\",\"with\": { \"a\" : \" "
          "\\\" \" ,\n\"b\":[ 1,\t2 ] } }]}" },
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"branch\",\"if\":1,\"then\":[]}]}",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"branch\",\"if\":1,\"then\":[],\"else\":[]}]}" },
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"forEach\",\"items\":[],\"run\":[{\"type\":"
          "\"step\",\"name\":\"f\"}]}]}",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"forEach\",\"items\":[],\"run\":{\"type\":"
          "\"step\",\"name\":\"f\"},\"parallel\":false}]}" },
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"loop\",\"while\":{\"fn\":\"g\"},\"body\":[{"
          "\"type\":\"step\",\"name\":\"f\"}]}]}",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"loop\",\"while\":{ \"f\\u006e\" : \"\\u0067\" "
          "},\"body\":[{\"type\":\"step\",\"name\":\"f\"}],\"keep\":\"all\",\"maxIterations\":1000}"
          "]}" },
        { "{\"name\":\"w\",\"steps\":[{\"type\":\"concurrent\",\"steps\":[{\"type\":\"step\","
          "\"name\":\"f\"}],\"join\":1}]}",
          "{\"name\":\"w\",\"steps\":[{\"type\":\"concurrent\",\"steps\":[{\"type\":\"step\","
          "\"name\":\"f\"}],\"join\":\"first\",\"continueOn\":\"all\",\"onFailure\":\"fail\"}]}" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__plan *a = must_read(rows[i][0]), *b = must_read(rows[i][1]);
        if (strcmp(a->version, b->version) != 0)
            fail_msg("row %zu", i);
        rv__plan_free(a);
        rv__plan_free(b);
    }
}

static void any_change_changes_the_version(void **state)
{
    (void)state;
    char versions[ZOO][RV__SHA256_HEX];
    for (size_t i = 0; i < ZOO; i++) {
        struct rv__plan *plan = must_read(zoo[i]);
        memcpy(versions[i], plan->version, sizeof versions[i]);
        rv__plan_free(plan);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(versions[i], versions[k]);
    }

    /* In a workflow two levels down: "with":1 becomes "with":2. */
    char *text = strdup(zoo[3]);
    assert_non_null(text);
    *(strstr(text, "\"with\":1") + 7) = '2';
    struct rv__plan *plan = must_read(text);
    assert_string_not_equal(plan->version, versions[3]);
    rv__plan_free(plan);
    free(text);
}

static void the_version_is_the_hash_of_the_text(void **state)
{
    (void)state;
    char hex[RV__SHA256_HEX];
    struct rv__plan *plan = must_read(zoo[2]); /* nothing nested: the very text */
    rv__sha256_hex(rv__str(zoo[2]), hex);
    assert_string_equal(plan->version, hex);
    assert_str(plan->body.wrap->version, hex);
    rv__plan_free(plan);
}

static void a_nested_workflow_has_the_version_it_has_alone(void **state)
{
    (void)state;
    struct rv__plan *nested = must_read(zoo[3]);
    struct rv__plan *audit = must_read("{\"name\":\"audit\",\"steps\":[{\"type\":\"step\",\"kind\":"
                                       "\"value\",\"with\":1,\"alias\":\"note\"}]}");
    struct rv__plan *payment = must_read(
        "{\"name\":\"payment\",\"description\":\"Pays.\",\"input\":{\"type\":\"object\"},\"steps\":"
        "["
        "{\"type\":\"step\",\"name\":\"charge\"},"
        "{\"type\":\"workflow\",\"name\":\"audit\",\"input\":{\"fn\":\"in\"},\"steps\":["
        "{\"type\":\"step\",\"kind\":\"value\",\"with\":1,\"alias\":\"note\"}]}],"
        "\"onError\":{\"name\":\"refund\"}}");
    assert_str(node_by_path(nested, "pay")->bodies[0].wrap->version, payment->version);
    assert_str(node_by_path(nested, "pay:node1:audit")->bodies[0].wrap->version, audit->version);
    assert_str(node_by_path(nested, "l")->bodies[0].wrap->version, audit->version);
    assert_string_not_equal(nested->version, payment->version);
    rv__plan_free(nested);
    rv__plan_free(audit);
    rv__plan_free(payment);
}

static int read_and_free(const char *json)
{
    struct rv__plan *plan = NULL;
    int rc = rv__plan_read(rv__str(json), &plan, NULL);
    rv__plan_free(plan);
    return rc;
}

static void without_memory_nothing_is_read(void **state)
{
    (void)state;
    int rc;
    for (size_t i = 0; i < ZOO; i++) {
        TORTURE(rc, read_and_free(zoo[i]), (void)0);
        assert_int_equal(rc, RV_OK);
    }
}

/* Much that is wrong, and much that needs memory to be said. */
static const char bad[] =
    "{\"name\":\"w "
    "x\",\"foo\":1,\"input\":5,\"steps\":[5,{\"type\":\"step\",\"alias\":\"a\\u0020b\","
    "\"needs\":[\"\\u0041\",1],"
    "\"kind\":\"signal\",\"with\":{\"\\u0066\":1,\"name\":\"\\u0020\",\"timeout\":-1}},"
    "{\"type\":\"concurrent\",\"steps\":[{\"nodes\":[]},{\"type\":\"step\",\"kind\":\"delay\","
    "\"with\":\"x\"}]},"
    "{\"type\":\"forEach\",\"items\":{\"fn\":\"\\u0009\"},\"run\":{\"type\":\"workflow\","
    "\"name\":\"w\\u0020x\"}},"
    "{\"type\":\"loop\",\"keep\":\"al\\u006c_\",\"timeout\":[],\"body\":[{\"type\":"
    "\"workflow\",\"name\":\"a\",\"steps\":[{\"type\":\"workflow\",\"name\":\"a\"}]}]}]}";

static int read_bad(const char *json, struct fixture *fx)
{
    fixture_compile(fx, json, NULL);
    int rc = fx->rc == RV_EINVAL ? RV_OK : fx->rc; /* what it should be: refused */
    if (rc == RV_OK && fx->bad.rc != RV_OK)
        rc = fx->bad.rc;
    fixture_done(fx);
    return rc;
}

static void without_memory_nothing_is_refused_either(void **state)
{
    (void)state;
    struct fixture fx;
    int rc;
    TORTURE(rc, read_bad(bad, &fx), (void)0);
    assert_int_equal(rc, RV_OK);
}

/* Most allocations come out of a chunk that is there already. Two steps more, one of which needs the
 * other `shift` times, move what follows along in its chunk, so that in the end each allocation is
 * once the one that has to ask for another. */
static void shifted(const char *json, int shift, struct rv__buf *out)
{
    const char *steps = strstr(json, "\"steps\":[") + strlen("\"steps\":[");
    rv__buf_reset(out);
    rv__buf_add(out, json, (size_t)(steps - json));
    rv__buf_text(out, "{\"type\":\"step\",\"alias\":\"s\",\"name\":\"s\"},"
                      "{\"type\":\"step\",\"alias\":\"t\",\"name\":\"s\",\"needs\":[");
    for (int i = 0; i < shift; i++)
        rv__buf_text(out, i > 0 ? ",\"s\"" : "\"s\"");
    rv__buf_text(out, "]},");
    rv__buf_text(out, steps);
}

/* A sequence that outgrows every table: implied aliases, handlers, a wide concurrent. */
static void wide(int shift, struct rv__buf *out)
{
    rv__buf_reset(out);
    rv__buf_text(out, "{\"name\":\"w\",\"steps\":[{\"type\":\"step\",\"name\":\"f\",\"needs\":[]}");
    for (int i = 0; i < 20 + shift / 10; i++)
        rv__buf_text(out, ",{\"type\":\"step\",\"name\":\"f\",\"onError\":{\"name\":\"h\"}}");
    rv__buf_text(out, ",{\"type\":\"concurrent\",\"steps\":[{\"type\":\"step\",\"name\":\"f\"}");
    for (int i = 0; i < 60; i++)
        rv__buf_text(out, ",{\"type\":\"step\",\"name\":\"f\"}");
    rv__buf_text(out, "]}]}");
}

static void no_allocation_is_too_small_to_fail(void **state)
{
    (void)state;
    struct fixture fx;
    struct rv__buf json, moved;
    int rc;
    rv__buf_init(&json, 1 << 20);
    rv__buf_init(&moved, 1 << 20);
    for (int shift = 0; shift < 200; shift++) {
        wide(shift, &json);
        shifted(json.text, shift % 10, &moved);
        TORTURE(rc, read_and_free(moved.text), (void)0);
        assert_int_equal(rc, RV_OK);
    }
    rv__buf_done(&moved);
    for (int shift = 0; shift < 300; shift++)
        for (size_t i = 1; i < ZOO; i++) {
            shifted(zoo[i], shift, &json);
            TORTURE(rc, read_and_free(json.text), (void)0);
            assert_int_equal(rc, RV_OK);
        }
    for (int shift = 0; shift < 300; shift++) {
        shifted(bad, shift, &json);
        TORTURE(rc, read_bad(json.text, &fx), (void)0);
        assert_int_equal(rc, RV_OK);
    }
    rv__buf_done(&json);
}

static void without_memory_nothing_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO; i++) {
        struct rv__plan *plan = must_read(zoo[i]);
        struct rv__buf out;
        int rc;
        rv__buf_init(&out, RV__PLAN_MAX_BYTES);
        rv__buf_text(&out, "before");
        TORTURE(rc, rv__plan_write(plan, &out, NULL), {
            assert_str(rv__buf_view(&out), "before");
            rv__buf_done(&out);
            rv__buf_text(&out, "before");
        });
        assert_int_equal(rc, RV_OK);
        assert_int_equal(strncmp(out.text, "before{", 7), 0);
        rv__buf_done(&out);
        rv__plan_free(plan);
    }
}

/* What is shown is what is written, with the root told as the other nodes are. */
static void a_root_is_shown_with_type_and_alias(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZOO; i++) {
        struct rv__plan *plan = must_read(zoo[i]);
        struct rv__buf written, shown, expected;
        int rc;
        rv__buf_init(&written, RV__PLAN_MAX_BYTES);
        rv__buf_init(&shown, RV__PLAN_MAX_BYTES);
        rv__buf_init(&expected, RV__PLAN_MAX_BYTES);
        TORTURE(rc, rv__plan_show(plan, &shown, NULL), {
            assert_int_equal(shown.len, 0);
            rv__buf_done(&shown);
        });
        assert_int_equal(rc, RV_OK);
        assert_int_equal(rv__plan_write(plan, &written, NULL), RV_OK);
        rv__buf_text(&expected, "{\"type\":\"workflow\",\"alias\":");
        rv__buf_json_str(&expected, plan->body.wrap->name);
        rv__buf_char(&expected, ',');
        rv__buf_text(&expected, written.text + 1);
        assert_string_equal(shown.text, expected.text);
        rv__buf_done(&written);
        rv__buf_done(&shown);
        rv__buf_done(&expected);
        rv__plan_free(plan);
    }
}

static void a_buffer_may_be_too_small(void **state)
{
    (void)state;
    struct rv__plan *plan = must_read(zoo[0]);
    struct rv__buf out;
    rv_error err;
    rv__buf_init(&out, 20);
    assert_int_equal(rv__plan_write(plan, &out, &err), RV_ETOOBIG);
    assert_int_equal(out.len, 0);
    rv__buf_done(&out);
    rv__plan_free(plan);
}

static void what_is_not_json_is_no_plan(void **state)
{
    (void)state;
    struct rv__plan *plan = NULL;
    rv_error err;
    assert_int_equal(rv__plan_read(rv__str("{\"name\":"), &plan, &err), RV_EPARSE);
    assert_string_equal(err.message,
                        "line 1, column 9: expected a value, found the end of the text");
    assert_int_equal(rv__plan_read(rv__str(" [1]"), &plan, &err), RV_EINVAL);
    assert_string_equal(err.message, "a workflow must be an object, with 'name' and 'steps'");
    assert_int_equal(rv__plan_read(rv__str("{\"name\":\"w\",\"steps\":[]}"), &plan, &err),
                     RV_EINVAL);
    assert_string_equal(err.message, "steps: a workflow needs 'steps' with at least one node");
    assert_null(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_what_was_read),
        cmocka_unit_test(ways_to_write_the_same_are_the_same),
        cmocka_unit_test(any_change_changes_the_version),
        cmocka_unit_test(the_version_is_the_hash_of_the_text),
        cmocka_unit_test(a_nested_workflow_has_the_version_it_has_alone),
        cmocka_unit_test(without_memory_nothing_is_read),
        cmocka_unit_test(without_memory_nothing_is_refused_either),
        cmocka_unit_test(no_allocation_is_too_small_to_fail),
        cmocka_unit_test(without_memory_nothing_is_written),
        cmocka_unit_test(a_root_is_shown_with_type_and_alias),
        cmocka_unit_test(a_buffer_may_be_too_small),
        cmocka_unit_test(what_is_not_json_is_no_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
