/* test_incoming.c: answers that come piece by piece, of both protocols. For src/agent/incoming.c. */
#include "agent/agent.h"
#include "unit/test.h"

static struct rv__providers *providers;

static int setup(void **state)
{
    (void)state;
    return rv__providers_new(rv__str("{\"oa\":{\"kind\":\"openai\",\"baseUrl\":\"http://x\"},"
                                     "\"an\":{\"kind\":\"anthropic\",\"baseUrl\":\"http://x\"}}"),
                             "test", &providers, NULL);
}

static int teardown(void **state)
{
    (void)state;
    rv__test_fail_alloc_after(-1);
    rv__providers_free(providers);
    return 0;
}

/* What a stream comes to: "text|calls|model|finish|in+out", or what is wrong. It comes in pieces of so many bytes. */
static int read_pieces(const char *provider, const char *body, size_t piece, struct rv__buf *out)
{
    struct rv__incoming *stream = NULL;
    struct rv__arena arena;
    struct rv__model_answer said;
    rv_error err = { .message = "" };
    size_t len = strlen(body), told = 0;
    rv__arena_init(&arena, SIZE_MAX);
    rv__buf_init(out, SIZE_MAX / 8);
    int rc = rv__incoming_new(rv__providers_find(providers, rv__str(provider)), &stream, &err);
    for (size_t at = piece; rc == RV_OK && at < len; at += piece) {
        rv__incoming_take(stream, (struct rv__str){ body, at });
        assert_true(rv__incoming_text(stream).len >= told);
        told = rv__incoming_text(stream).len;
    }
    if (rc == RV_OK)
        rc = rv__incoming_end(stream, rv__str(body), &arena, &said, &err);
    if (rc == RV_OK)
        rv__buf_fmt(out, "%.*s|%.*s|%.*s|%.*s|%lld+%lld", RV__ARG(said.text), RV__ARG(said.calls),
                    RV__ARG(said.model), RV__ARG(said.finish), (long long)said.input_tokens,
                    (long long)said.output_tokens);
    else
        rv__buf_fmt(out, "%s%s", err.message, rc == RV_EINVAL && said.busy ? " (busy)" : "");
    if (rc == RV_OK)
        rc = out->rc;
    rv__incoming_free(stream);
    rv__arena_done(&arena);
    return rc;
}

#define DELTA(delta) "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" delta "}]}\n\n"
#define FINISH(why) \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define USAGE             "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n"
#define DONE              "data: [DONE]\n\n"
#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define START              \
    EVENT("message_start", \
          ",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}")
#define TEXT(text)               \
    EVENT("content_block_delta", \
          ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define STOP                                                                           \
    EVENT("message_delta",                                                             \
          ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}") \
    EVENT("message_stop", "")

static const struct row {
    const char *says, *provider, *body, *comes_to;
} rows[] = {
    { "text", "oa",
      DELTA("{\"role\":\"assistant\",\"content\":\"\"}") DELTA("{\"content\":\"h\\u00e9\"}")
          DELTA("{\"content\":\"y\"}") FINISH("stop") USAGE DONE,
      "h\xc3\xa9y||m|stop|3+2" },
    { "lines may end in CR LF, and there may be comments", "oa",
      ": hello\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n"
      "data: [DONE]\r\n\r\nwhatever follows",
      "a||||0+0" },
    { "an event of two lines", "oa", "data: {\"choices\":\ndata: []}\n\n" DONE, "||||0+0" },
    { "calls by their index", "oa",
      DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"add\","
            "\"arguments\":\"\"}}]}") DELTA("{\"tool_calls\":[{\"index\":1,\"id\":\"c2\","
                                            "\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]}")
          DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]}")
              DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}")
                  FINISH("tool_calls") DONE,
      "|[{\"id\":\"c1\",\"name\":\"add\",\"arguments\":{\"a\":1}},"
      "{\"id\":\"c2\",\"name\":\"x\",\"arguments\":\"{\"}]|m|tool_calls|0+0" },
    { "a call without a name", "oa",
      DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}") DONE,
      "a tool call in it has no id or no name" },
    { "cut before its end", "oa", DELTA("{\"content\":\"a\"}") FINISH("stop"),
      "the stream ends before the answer does: 2 events came, and no [DONE]" },
    { "cut in the midst of an event", "oa", DELTA("{\"content\":\"a\"}") "data: [DO",
      "the stream ends before the answer does: 1 event came, and no [DONE]" },
    { "nothing at all", "oa", "",
      "the stream ends before the answer does: 0 events came, and no [DONE]" },
    { "an event that is no JSON", "oa", DELTA("{\"content\":\"a\"}") "data: {\"choi\n\n" DONE,
      "event 2 of the stream is not JSON: line 1, column 2: this string has no end" },
    { "one that is no object", "oa", "data: []\n\n" DONE,
      "event 1 of the stream is not a JSON object" },
    { "one without choices", "oa", "data: {}\n\n" DONE, "event 1 of the stream has no 'choices'" },
    { "the provider gives up", "oa",
      DELTA("{\"content\":\"a\"}") "data: {\"error\":{\"message\":\"on "
                                   "fire\",\"type\":\"server_error\"}}\n\n",
      "after 1 event the provider reports: on fire" },
    { "it is too busy", "oa",
      "data: {\"error\":{\"message\":\"later\",\"code\":\"rate_limit_exceeded\"}}\n\n",
      "after 0 events the provider reports: later (busy)" },
    { "text", "an",
      START EVENT("content_block_start",
                  ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}")
          EVENT("ping", "") TEXT("h") TEXT("i") EVENT("content_block_stop", ",\"index\":0") STOP,
      "hi||m|end_turn|3+2" },
    { "calls", "an",
      START EVENT("content_block_start", ",\"index\":1,\"content_block\":{\"type\":\"tool_use\","
                                         "\"id\":\"c1\",\"name\":\"add\",\"input\":{}}")
          EVENT("content_block_delta", ",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","
                                       "\"partial_json\":\"{\\\"a\\\":\"}")
              EVENT(
                  "content_block_delta",
                  ",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}")
                  STOP,
      "|[{\"id\":\"c1\",\"name\":\"add\",\"arguments\":{\"a\":1}}]|m|end_turn|3+2" },
    { "what is not known is no matter", "an",
      START EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"thinking\"}")
          EVENT("content_block_delta",
                ",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"x\"}")
              EVENT("from_the_future", "") STOP,
      "||m|end_turn|3+2" },
    { "cut", "an", START TEXT("h"),
      "the stream ends before the answer does: 2 events came, and no message_stop" },
    { "too busy", "an",
      START EVENT("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"),
      "after 1 event the provider reports: Overloaded (busy)" },
    { "an event without a type", "an", "data: {}\n\n", "event 1 of the stream has no type" },
    { "a delta without one", "an", EVENT("content_block_delta", ""),
      "event 1 of the stream has no 'delta'" },
};

static void a_stream_comes_to_what_was_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t pieces[] = { 1, 7, 100000 };
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct rv__buf out;
            (void)read_pieces(rows[i].provider, rows[i].body, pieces[k], &out);
            if (!rv__str_is(rv__buf_view(&out), rows[i].comes_to))
                fail_msg("%s, %s, in pieces of %zu:\n%s\nexpected:\n%s", rows[i].provider,
                         rows[i].says, pieces[k], rv__buf_view(&out).at, rows[i].comes_to);
            rv__buf_done(&out);
        }
    }
}

static void too_many_calls_are_refused(void **state)
{
    struct rv__buf body, out;
    (void)state;
    rv__buf_init(&body, SIZE_MAX / 8);
    for (int i = 0; i <= RV__AGENT_CALLS; i++)
        rv__buf_fmt(&body,
                    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d}]}}]}\n\n", i);
    assert_int_equal(read_pieces("oa", body.text, 1000, &out), RV_EINVAL);
    assert_string_equal(out.text, "it calls more than 100 tools at once");
    rv__buf_done(&body);
    rv__buf_done(&out);
}

static void no_memory_is_told(void **state)
{
    struct rv__buf out;
    int rc;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strchr(rows[i].comes_to, '|') == NULL)
            continue;
        TORTURE(rc, read_pieces(rows[i].provider, rows[i].body, 40, &out), rv__buf_done(&out));
        assert_int_equal(rc, RV_OK);
        assert_string_equal(out.text, rows[i].comes_to);
        rv__buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_comes_to_what_was_said),
        cmocka_unit_test(too_many_calls_are_refused),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests_name("agent: incoming", tests, setup, teardown);
}
