/* test_outcome.c: how a command ended -> what that means for its step. For src/exec/outcome.c. */
#include "unit/test.h"

#include <signal.h>

#include "base/arena.h"
#include "base/json.h"
#include "exec/exec.h"

static struct rv__arena arena;

static int setup(void **state)
{
    (void)state;
    rv__arena_init(&arena, 64u << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv__test_fail_alloc_after(-1);
    rv__arena_done(&arena);
    return 0;
}

static struct rv__outcome outcome(const struct rv__command_result *result, enum rv__output_as as)
{
    struct rv__outcome o;
    assert_int_equal(rv__command_outcome(result, "prog", as, &arena, &o, NULL), RV_OK);
    return o;
}

static struct rv__command_result exited(int status, const char *output, const char *tail,
                                        const char *control)
{
    return (struct rv__command_result){ .end = RV__COMMAND_EXITED,
                                        .status = status,
                                        .output = rv__str(output),
                                        .tail = rv__str(tail),
                                        .control = rv__str(control) };
}

static void stdout_becomes_the_result(void **state)
{
    static const struct {
        const char *says, *output;
        enum rv__output_as as;
        const char *result; /* NULL: the step fails */
    } rows[] = {
        { "nothing is null", "", RV__OUTPUT_AUTO, "null" },
        { "an empty line is nothing", "\n", RV__OUTPUT_AUTO, "null" },
        { "an object", "{\"a\": 1}\n", RV__OUTPUT_AUTO, "{\"a\": 1}" },
        { "white space around it", " \n [1]\n\n", RV__OUTPUT_AUTO, "[1]" },
        { "a number", "42\n", RV__OUTPUT_AUTO, "42" },
        { "a word of JSON", "true", RV__OUTPUT_AUTO, "true" },
        { "null as such", "null\n", RV__OUTPUT_AUTO, "null" },
        { "a string", "\"x\"\n", RV__OUTPUT_AUTO, "\"x\"" },
        { "plain text", "hello world\n", RV__OUTPUT_AUTO, "\"hello world\"" },
        { "only the last newline goes", "a\nb\n\n", RV__OUTPUT_AUTO, "\"a\\nb\\n\"" },
        { "two values are text", "1\n2\n", RV__OUTPUT_AUTO, "\"1\\n2\"" },
        { "a blank is text", " ", RV__OUTPUT_AUTO, "\" \"" },
        { "bytes that are not UTF-8", "a\xff\xc3(\n", RV__OUTPUT_AUTO, NULL },
        { "also within JSON", "\"\xff\"", RV__OUTPUT_AUTO, NULL },
        { "nor as text", "a\xff\n", RV__OUTPUT_TEXT, NULL },
        { "as base64 they are kept, to the last", "a\xff\n", RV__OUTPUT_BASE64, "\"Yf8K\"" },
        { "a group that is not full", "a\xff", RV__OUTPUT_BASE64, "\"Yf8=\"" },
        { "one byte", "a", RV__OUTPUT_BASE64, "\"YQ==\"" },
        { "no byte", "", RV__OUTPUT_BASE64, "\"\"" },
        { "nothing is wanted", "a\xff\n", RV__OUTPUT_NONE, "null" },
        { "a number that is beyond all is text", "5e12345\n", RV__OUTPUT_AUTO, "\"5e12345\"" },
        { "so is one that would lose a digit", "1.10\n", RV__OUTPUT_AUTO, "\"1.10\"" },
        { "or its form", "1e3", RV__OUTPUT_AUTO, "\"1e3\"" },
        { "or its sign", "-0", RV__OUTPUT_AUTO, "\"-0\"" },
        { "a fraction", "-1.25\n", RV__OUTPUT_AUTO, "-1.25" },
        { "an integer keeps all digits", "12345678901234567890\n", RV__OUTPUT_AUTO,
          "12345678901234567890" },
        { "inside of something it is a number", "[1.10]", RV__OUTPUT_AUTO, "[1.10]" },
        { "by force it is one", "5e12345\n", RV__OUTPUT_JSON, "5e12345" },
        { "text by force", "42\n", RV__OUTPUT_TEXT, "\"42\"" },
        { "empty text by force", "", RV__OUTPUT_TEXT, "\"\"" },
        { "JSON by force", "42\n", RV__OUTPUT_JSON, "42" },
        { "no JSON where it must be", "hello\n", RV__OUTPUT_JSON, NULL },
        { "not UTF-8 where JSON must be", "\"\xff\"", RV__OUTPUT_JSON, NULL },
        { "nothing where JSON must be", "\n", RV__OUTPUT_JSON, "null" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__command_result r = exited(0, rows[i].output, "noise", "");
        struct rv__outcome o = outcome(&r, rows[i].as);
        bool good = rows[i].result != NULL ? o.code == RV_OK && rv__str_is(o.result, rows[i].result)
                                           : o.code == RV_EFAILED && rv__str_is(o.result, "null");
        if (!good)
            fail_msg("%s: %d, %.*s", rows[i].says, o.code, RV__ARG(o.result));
    }
}

static void nul_bytes_become_escapes(void **state)
{
    (void)state;
    struct rv__command_result r = exited(0, "", "", "");
    r.output = (struct rv__str){ "a\0b\n", 4 };
    assert_str(outcome(&r, RV__OUTPUT_AUTO).result, "\"a\\u0000b\"");
}

static void what_nests_too_deep_is_text(void **state)
{
    (void)state;
    static char deep[2 * (RV__JSON_VALUE_DEPTH + 1) + 1];
    memset(deep, '[', RV__JSON_VALUE_DEPTH + 1);
    memset(deep + RV__JSON_VALUE_DEPTH + 1, ']', RV__JSON_VALUE_DEPTH + 1);
    struct rv__command_result r = exited(0, deep, "", "");
    assert_int_equal(rv__json_type(outcome(&r, RV__OUTPUT_AUTO).result), RV__JSON_STRING);
    assert_int_equal(outcome(&r, RV__OUTPUT_JSON).code, RV_EFAILED);
    r = exited(0, deep + 1, "", "");
    r.output.len--;
    assert_int_equal(rv__json_type(outcome(&r, RV__OUTPUT_AUTO).result), RV__JSON_ARRAY);
}

static void a_failure_says_what_happened_and_what_stderr_said(void **state)
{
    static const struct {
        struct rv__command_result r;
        int code;
        const char *message;
    } rows[] = {
        { { .end = RV__COMMAND_EXITED, .status = 3 },
          RV_EFAILED,
          "'prog' failed with exit code 3" },
        { { .end = RV__COMMAND_EXITED, .status = 3, .tail = RV__STR("no oil") },
          RV_EFAILED,
          "'prog' failed with exit code 3: no oil" },
        { { .end = RV__COMMAND_EXITED, .status = 3, .tail = RV__STR("no\xff\nback: 1") },
          RV_EFAILED,
          "'prog' failed with exit code 3; stderr ended with:\nno\xef\xbf\xbd\nback: 1" },
        { { .end = RV__COMMAND_SIGNAL, .status = SIGSEGV },
          RV_EFAILED,
          "'prog' was ended by SIGSEGV" },
        { { .end = RV__COMMAND_SIGNAL, .status = 40 },
          RV_EFAILED,
          "'prog' was ended by signal 40" },
        { { .end = RV__COMMAND_SIGNAL,
            .status = SIGTERM,
            .killed = RV__KILL_TIMEOUT,
            .ran_ms = 70 },
          RV_ETIMEDOUT,
          "'prog' timed out and was stopped after 70 ms" },
        { { .end = RV__COMMAND_EXITED, .killed = RV__KILL_CANCEL },
          RV_ECANCELED,
          "'prog' was cancelled" },
        { { .killed = RV__KILL_SHUTDOWN },
          RV_ECLOSED,
          "'prog' was stopped: the engine is closing" },
        { { .killed = RV__KILL_TIMEOUT }, RV_ETIMEDOUT, "'prog' timed out before it began" },
        { { .error = { RV_ENOTFOUND, "cannot run 'prog'" } }, RV_ENOTFOUND, "cannot run 'prog'" },
        { { .end = RV__COMMAND_SIGNAL, .status = SIGTERM, .error = { RV_ETOOBIG, "too much" } },
          RV_ETOOBIG,
          "'prog': too much" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__outcome o = outcome(&rows[i].r, RV__OUTPUT_AUTO);
        assert_int_equal(o.code, rows[i].code);
        assert_str(o.message, rows[i].message);
        assert_str(o.result, "null");
        assert_int_equal(o.behavior, RV__STEP_PLAIN);
    }
}

static void the_control_object_says_more(void **state)
{
    (void)state;
    struct rv__command_result r = exited(0, "1\n", "",
                                         "{\"description\":\"a\\u00e9\",\"state\":{\"n\":[1]},"
                                         "\"skipped\":false,\"error\":null}\n");
    struct rv__outcome o = outcome(&r, RV__OUTPUT_AUTO);
    assert_int_equal(o.code, RV_OK);
    assert_str(o.result, "1");
    assert_str(o.description, "aé");
    assert_str(o.state, "{\"n\":[1]}");
    assert_false(o.skipped);

    r = exited(0, "not json\n", "", "{\"skipped\":true,\"description\":\"nothing to do\"}");
    o = outcome(&r, RV__OUTPUT_JSON); /* whatever it wrote */
    assert_int_equal(o.code, RV_OK);
    assert_true(o.skipped);
    assert_str(o.result, "null");

    r = exited(1, "", "", "{\"skipped\":true,\"description\":\"d\",\"state\":{}}");
    o = outcome(&r, RV__OUTPUT_AUTO); /* a failure is not a skip, but its words stay */
    assert_int_equal(o.code, RV_EFAILED);
    assert_false(o.skipped);
    assert_str(o.description, "d");
    assert_str(o.state, "{}");

    r = exited(0, "2", "", " \n");
    assert_str(outcome(&r, RV__OUTPUT_AUTO).result, "2");
    r = exited(0, "2", "", "{\"skipped\":true,\"skipped\":null}"); /* the last one counts */
    assert_false(outcome(&r, RV__OUTPUT_AUTO).skipped);
}

static void an_error_in_the_control_object_fails_the_step(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *control, *message;
        enum rv__step_behavior behavior;
        int attempts;
        enum rv__step_backoff backoff;
    } rows[] = {
        { 0, "{\"error\":{}}", "'prog' reported an error", RV__STEP_PLAIN, 0, 0 },
        { 2, "{\"error\":{}}", "'prog' failed with exit code 2: tail", RV__STEP_PLAIN, 0, 0 },
        { 0, "{\"error\":{\"message\":\"dry\"}}", "dry", RV__STEP_PLAIN, 0, 0 },
        { 2, "{\"error\":{\"message\":\"dry\"}}", "dry", RV__STEP_PLAIN, 0, 0 },
        { 0, "{\"error\":{\"message\":\"m\",\"behavior\":\"stop\"}}", "m", RV__STEP_STOP, 0, 0 },
        { 0, "{\"error\":{\"message\":\"m\",\"behavior\":\"continue\"}}", "m", RV__STEP_CONTINUE, 0,
          0 },
        { 0,
          "{\"error\":{\"message\":\"m\",\"maxAttempts\":4,\"backoff\":\"exponential\","
          "\"behavior\":\"retry\"}}",
          "m", RV__STEP_RETRY, 4, RV__BACKOFF_EXPONENTIAL },
        { 0, "{\"error\":{\"message\":\"m\",\"backoff\":\"linear\",\"behavior\":\"retry\"}}", "m",
          RV__STEP_RETRY, 0, RV__BACKOFF_LINEAR },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__command_result r = exited(rows[i].status, "1", "tail", rows[i].control);
        struct rv__outcome o = outcome(&r, RV__OUTPUT_AUTO);
        assert_int_equal(o.code, RV_EFAILED);
        assert_str(o.message, rows[i].message);
        assert_str(o.result, "null");
        assert_int_equal(o.behavior, rows[i].behavior);
        assert_int_equal(o.max_attempts, rows[i].attempts);
        assert_int_equal(o.backoff, rows[i].backoff);
    }
}

static void a_wrong_control_object_fails_the_step_and_says_where(void **state)
{
    (void)state;
    static const struct {
        const char *control, *says;
    } rows[] = {
        { "{", "line 1, column 2" },
        { "[]", "must hold one JSON object" },
        { "{} {}", "line 1, column 4" },
        { "{\"descripton\":\"x\"}", "unknown member 'descripton': did you mean 'description'?" },
        { "{\"error\":{\"maxattempts\":1}}",
          "unknown member 'error.maxattempts': did you mean 'maxAttempts'?" },
        { "{\"x\":1}", "unknown member 'x'" },
        { "{\"description\":1}", "description must be a string" },
        { "{\"skipped\":\"yes\"}", "skipped must be true or false" },
        { "{\"state\":[]}", "state must be an object" },
        { "{\"error\":\"x\"}", "error must be an object" },
        { "{\"error\":{\"message\":1}}", "error.message must be a string" },
        { "{\"error\":{\"behavior\":\"again\"}}", "error.behavior must be \"stop\"" },
        { "{\"error\":{\"behavior\":\"retry\",\"maxAttempts\":0}}",
          "error.maxAttempts must be an integer" },
        { "{\"error\":{\"behavior\":\"retry\",\"maxAttempts\":1.5}}",
          "error.maxAttempts must be an integer" },
        { "{\"error\":{\"behavior\":\"retry\",\"backoff\":\"cubic\"}}",
          "error.backoff must be \"linear\"" },
        { "{\"error\":{\"maxAttempts\":3}}", "are for error.behavior \"retry\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int status = 0; status < 2; status++) {
            struct rv__command_result r = exited(status, "1", "", rows[i].control);
            struct rv__outcome o = outcome(&r, RV__OUTPUT_AUTO);
            if (o.code != RV_EFAILED || strstr(o.message.at, rows[i].says) == NULL ||
                (status == 1 && strstr(o.message.at, "exit code 1") == NULL))
                fail_msg("%s: %d %.*s", rows[i].control, o.code, RV__ARG(o.message));
            assert_int_equal(o.behavior, RV__STEP_PLAIN);
        }
}

static void a_killed_command_has_no_say(void **state)
{
    (void)state;
    struct rv__command_result r = exited(0, "1", "", "{\"error\":{\"behavior\":\"continue\"}}");
    r.killed = RV__KILL_TIMEOUT;
    struct rv__outcome o = outcome(&r, RV__OUTPUT_AUTO);
    assert_int_equal(o.code, RV_ETIMEDOUT);
    assert_int_equal(o.behavior, RV__STEP_PLAIN);
}

static void the_longest_message_fits(void **state)
{
    (void)state;
    static char tail[RV__COMMAND_TAIL + 1], control[RV__COMMAND_CONTROL];
    memset(tail, 1, RV__COMMAND_TAIL);
    memset(control, 'x', sizeof control - 1);
    memcpy(control, "{\"error\":{\"message\":\"", 21);
    memcpy(control + sizeof control - 4, "\"}}", 4);
    struct rv__command_result r = exited(1, "", tail, "{");
    assert_int_equal(outcome(&r, RV__OUTPUT_AUTO).code, RV_EFAILED);
    r = exited(1, "", tail, control);
    assert_in_range(outcome(&r, RV__OUTPUT_AUTO).message.len, RV__COMMAND_TAIL,
                    RV__COMMAND_TAIL + 64);
}

static int in_fresh_arena(const struct rv__command_result *r, struct rv__outcome *o)
{
    rv__arena_done(&arena);
    rv__arena_init(&arena, 64u << 20);
    return rv__command_outcome(r, "prog", RV__OUTPUT_AUTO, &arena, o, NULL);
}

static void no_memory_means_no_outcome(void **state)
{
    (void)state;
    struct rv__command_result rows[] = {
        exited(1, "", "tail\xff", "{\"description\":\"a\\nb\"}"), exited(0, "text", "", ""),
        exited(0, "", "", "{\"error\":{\"mess\\u0061ge\":\"a\\nb\"}}"), exited(0, "", "", "{")
    };
    int rc;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__outcome o = { .code = 77 };
        TORTURE(rc, in_fresh_arena(&rows[i], &o), assert_int_equal(o.code, 77));
        assert_int_equal(rc, RV_OK);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(stdout_becomes_the_result),
        TEST(nul_bytes_become_escapes),
        TEST(what_nests_too_deep_is_text),
        TEST(a_failure_says_what_happened_and_what_stderr_said),
        TEST(the_control_object_says_more),
        TEST(an_error_in_the_control_object_fails_the_step),
        TEST(a_wrong_control_object_fails_the_step_and_says_where),
        TEST(a_killed_command_has_no_say),
        TEST(the_longest_message_fits),
        TEST(no_memory_means_no_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
