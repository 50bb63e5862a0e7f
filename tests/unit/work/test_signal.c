/* test_signal.c: signals whose payload must fit a schema. For src/work/exprs.c and rv_signal_with(). */
#include "unit/engine/rig.h"

#define ASKS                                                                             \
    "  - ask: { signal: { name: approve, schema: { type: object, required: [approved], " \
    "properties: { approved: { type: boolean }, by: { type: string } } } } }\n"

static void a_payload_that_does_not_fit_is_refused_with_reasons(void **state)
{
    struct rig *rig = *state;
    rv_violations *bad = NULL;
    rv_outcome *outcome = NULL;
    rig_define(rig, ASKS);
    rig_run(rig, "w", "r", NULL);
    int rc = rv_signal_with(rig->engine, "r", "approve", "{\"approved\":1,\"by\":2}",
                            RV_SIGNAL_OPTS(.violations = &bad), &rig->err);
    assert_int_equal(rc, RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "the payload of signal 'approve' is refused: "));
    assert_non_null(bad);
    assert_int_equal(bad->count, 2);
    assert_string_equal(bad->items[0].path, "/approved");
    assert_string_equal(bad->items[1].path, "/by");
    rv_violations_free(bad);
    assert_int_equal(rv_signal(rig->engine, "r", "approve", NULL, &rig->err), RV_EINVAL);
    assert_non_null(strstr(rig->err.message, "must be an object, is null"));
    assert_int_equal(rv_signal(rig->engine, "nobody", "approve", "1", &rig->err), RV_ENOTFOUND);
    assert_int_equal(rv_signal(rig->engine, "r", "approve", "{\"approved\":true}", &rig->err),
                     RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
    assert_int_equal(rv_wait(rig->engine, "w", "r", NULL, &outcome, &rig->err), RV_OK);
    assert_non_null(strstr(outcome->results, "\"ask\":{\"result\":{\"approved\":true}"));
    rv_outcome_free(outcome);
}

/* Before its step is reached, and after the run was read again from the store. */
static void it_is_checked_whenever_it_comes(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - first: { signal: go }\n" ASKS);
    rig_run(rig, "w", "r", NULL);
    assert_int_equal(rv_signal(rig->engine, "r", "approve", "{}", &rig->err), RV_EINVAL);
    rig_close(rig);
    rig_open(rig, NULL); /* its workflow is not registered: its plan is in the store */
    assert_int_equal(rv_signal(rig->engine, "r", "approve", "[]", &rig->err), RV_EINVAL);
    assert_int_equal(rv_signal(rig->engine, "r", "approve", "{\"approved\":false}", &rig->err),
                     RV_OK);
    assert_int_equal(rv_signal(rig->engine, "r", "go", "\"anything\"", &rig->err), RV_OK);
    assert_int_equal(rig_wait(rig, "r"), RV_COMPLETED);
}

static void its_default_is_the_result_when_time_is_up(void **state)
{
    struct rig *rig = *state;
    rig_define(rig, "  - a: { signal: { name: x, timeout: 1ms, default: { approved: false }, "
                    "schema: { type: object } } }\n"
                    "  - b: { signal: { name: y, timeout: 1ms, default: null } }\n"
                    "  - c: { signal: { name: z, timeout: 1ms } }\n");
    rig_gives(rig, "r", NULL,
              "\"a\":{\"result\":{\"approved\":false},\"state\":{},\"status\":"
              "\"completed\"},\"b\":{\"result\":null,\"state\":{},\"status\":"
              "\"completed\"},\"c\":{\"result\":null,\"state\":{},\"status\":"
              "\"failed\",\"error\":{\"message\":");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_payload_that_does_not_fit_is_refused_with_reasons),
        RIG_TEST(it_is_checked_whenever_it_comes),
        RIG_TEST(its_default_is_the_result_when_time_is_up),
    };
    return cmocka_run_group_tests_name("signal", tests, NULL, NULL);
}
