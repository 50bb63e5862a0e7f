/* test_rpc.c: messages of MCP servers, events, headers. For src/agent/rpc.c. */
#include "unit/test.h"

#include "agent/rpc.h"

static struct rv__arena arena;
static struct rv__sse sse;

static int setup(void **state)
{
    (void)state;
    rv__arena_init(&arena, SIZE_MAX);
    rv__sse_init(&sse);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv__sse_done(&sse);
    rv__arena_done(&arena);
    return 0;
}

static void messages_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        int rc;
        enum rv__rpc_kind kind;
        int64_t number, code;
    } rows[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", RV_OK, RPC_RESULT, 7, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}", RV_OK, RPC_RESULT, -1, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-5,\"message\":\"m\"}}", RV_OK,
          RPC_ERROR, 7, -5 },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-5}}", RV_OK, RPC_ERROR, -1, -5 },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", RV_OK, RPC_NOTIFICATION, -1, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"m\",\"params\":[]}", RV_OK, RPC_REQUEST,
          -1, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", RV_EPARSE, RPC_REQUEST, -1, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}", RV_EPARSE, RPC_RESULT, -1, 0 },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", RV_EPARSE, RPC_RESULT, -1, 0 },
        { "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}", RV_EPARSE, RPC_RESULT, -1, 0 },
        { "[]", RV_EPARSE, RPC_RESULT, -1, 0 },
        { "listening on stdin", RV_EPARSE, RPC_RESULT, -1, 0 },
        { "", RV_EPARSE, RPC_RESULT, -1, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__rpc rpc;
        rv_error err = { .message = "" };
        int rc = rv__rpc_read(rv__str(rows[i].text), &rpc, &err);
        if (rc != rows[i].rc ||
            (rc == RV_OK && (rpc.kind != rows[i].kind || rpc.number != rows[i].number ||
                             rpc.code != rows[i].code)))
            fail_msg("%s: rc %d, kind %d, number %lld: %s", rows[i].text, rc, rpc.kind,
                     (long long)rpc.number, err.message);
    }
}

static void note(void *arg, struct rv__str data)
{
    struct rv__buf *out = arg;
    rv__buf_str(out, data);
    rv__buf_char(out, '|');
}

static void events_come_in_any_pieces(void **state)
{
    static const char stream[] = ": hello\r\nid: 5\r\ndata: one\r\n\r\n"
                                 "event: message\ndata: two\ndata:lines\n\n"
                                 "event: other\ndata: not ours\n\n"
                                 "retry: 1500\rid\rdata\r\r"
                                 "data: {\"a\":1}\r\r\n"
                                 "data: unfinished";
    struct rv__buf out;
    (void)state;
    for (size_t size = 1; size < sizeof stream; size++) {
        rv__sse_done(&sse);
        rv__sse_init(&sse);
        rv__buf_init(&out, SIZE_MAX / 2);
        for (size_t at = 0; at < sizeof stream - 1; at += size) {
            size_t left = sizeof stream - 1 - at;
            struct rv__str piece = { stream + at, left < size ? left : size };
            assert_int_equal(rv__sse_add(&sse, piece, note, &out), RV_OK);
        }
        assert_string_equal(out.text, "one|two\nlines|{\"a\":1}|");
        assert_int_equal(sse.retry_ms, 1500);
        assert_int_equal(sse.id.len, 0); /* `id` alone takes it back */
        rv__buf_done(&out);
    }
}

static void an_event_has_a_bound(void **state)
{
    static char lot[1 << 20];
    struct rv__buf out;
    int rc = RV_OK;
    (void)state;
    memset(lot, 'x', sizeof lot);
    rv__buf_init(&out, SIZE_MAX / 2);
    for (int i = 0; i < 40 && rc == RV_OK; i++)
        rc = rv__sse_add(&sse, (struct rv__str){ lot, sizeof lot }, note, &out);
    assert_int_equal(rc, RV_ETOOBIG);
    rv__buf_done(&out);
}

static void arguments_go_into_headers(void **state)
{
    static const struct rv__str schema = RV__STR(
        "{\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
        "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},\"b\":{\"type\":\"boolean\",\"x-mcp-"
        "header\":\"B\"},\"in\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\","
        "\"x-mcp-header\":\"X\"}}},\"plain\":{\"type\":\"string\"}}}");
    const char *lines[RV__RPC_PARAM_HEADERS];
    (void)state;
    int n = rv__rpc_param_headers(
        schema,
        rv__str("{\"r\":\"a b\",\"n\":-7,\"b\":true,\"in\":{\"x\":\" y\"},\"plain\":\"p\"}"),
        &arena, lines, NULL);
    assert_int_equal(n, 4);
    assert_string_equal(lines[0], "Mcp-Param-Region: a b");
    assert_string_equal(lines[1], "Mcp-Param-N: -7");
    assert_string_equal(lines[2], "Mcp-Param-B: true");
    assert_string_equal(lines[3], "Mcp-Param-X: =?base64?IHk=?=");
    n = rv__rpc_param_headers(schema, rv__str("{\"r\":null,\"in\":3}"), &arena, lines, NULL);
    assert_int_equal(n, 0);
    assert_string_equal(rv__rpc_header(&arena, "A", rv__str("=?base64?x?=")),
                        "A: =?base64?PT9iYXNlNjQ/eD89?=");
    assert_string_equal(rv__rpc_header(&arena, "A", rv__str("a\nB: c")), "A: =?base64?YQpCOiBj?=");
}

static void bad_headers_are_found(void **state)
{
    static const struct {
        const char *properties;
        bool good;
    } rows[] = {
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}", true },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}", false },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}", false },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\\r\\nB\"}}", false },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":3}}", false },
        { "{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}", false },
        { "{\"a\":{\"type\":\"object\",\"x-mcp-header\":\"A\"}}", false },
        { "{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"string\","
          "\"x-mcp-header\":\"a\"}}",
          false },
        { "{\"a\":3}", true },
    };
    char schema[300];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(schema, sizeof schema, "{\"properties\":%s}", rows[i].properties);
        if ((rv__rpc_bad_headers(rv__str(schema)) == NULL) != rows[i].good)
            fail_msg("%s", schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(events_come_in_any_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(arguments_go_into_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_headers_are_found, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
