#include "unit/server/api_world.h"

#include "unit/test.h"

int api_hello(rv_ctx *c)
{
    rv_log_info(c, "hello there");
    rv_log_debug(c, "quietly");
    rv_describe(c, "greeted %s", rv_str(c, ".input.name"));
    return rv_return(c, "{s:s}", "text", "hi");
}

static int flaky(rv_ctx *c)
{
    rv_test_takes(c, 10);
    return rv_ctx_attempt(c) == 1 ? rv_fail(c, "not yet") : rv_return(c, "i", 7);
}

static int items(rv_ctx *c)
{
    return rv_return_json(c, "[1,2,3]");
}

static int broken(rv_ctx *c)
{
    return rv_fail(c, "it broke");
}

void api_put(struct api_world *w, rv_workflow *workflow)
{
    if (rv_register(w->engine, workflow, &w->err) < 0)
        fail_msg("cannot register: %s", w->err.message);
    rv_workflow_free(workflow);
}

void api_begin(struct api_world *w, const char *workflow, const char *id, const char *input)
{
    if (rv_run(w->engine, workflow, input, RV_RUN_OPTS(.run_id = id), NULL, &w->err) < 0)
        fail_msg("cannot start: %s", w->err.message);
}

int api_setup(void **state)
{
    struct api_world *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -1;
    *state = w;
    if (rv_test_engine_new(RV_TEST_OPTS(.seed = 1), &w->engine, &w->err) < 0)
        return -1;
    rv_workflow *greet = rv_workflow_new("greet");
    rv_workflow_describe(greet, "Greets");
    rv_workflow_input(greet,
                      "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":"
                      "{\"type\":\"string\",\"minLength\":2},\"n\":{\"type\":\"integer\"}}}");
    rv_add_step(rv_workflow_body(greet), "hello", api_hello, NULL);
    rv_add_step(rv_workflow_body(greet), "flaky", flaky, RV_STEP_OPTS(.max_attempts = 2));
    rv_add_step(rv_add_foreach(rv_workflow_body(greet), "each", items, NULL), "again", api_hello,
                NULL);
    api_put(w, greet);
    rv_workflow *ask = rv_workflow_new("ask");
    rv_add_signal(rv_workflow_body(ask), "go", "go", 0, NULL);
    api_put(w, ask);
    rv_workflow *fails = rv_workflow_new("fails");
    rv_add_step(rv_workflow_body(fails), "broken", broken, NULL);
    api_put(w, fails);
    api_begin(w, "greet", "done", "{\"name\":\"Ada\"}");
    rv_test_advance(w->engine, 1000, NULL);
    api_begin(w, "fails", "failed", NULL);
    api_begin(w, "ask", "waits", "{\"id\":12345678901234567890}");
    rv_test_advance(w->engine, 1000, NULL);
    return 0;
}

int api_teardown(void **state)
{
    struct api_world *w = *state;
    rv__test_fail_alloc_after(-1);
    json_decref(w->document);
    rv__api_answer_done(&w->answer);
    rv_engine_free(w->engine);
    free(w->room);
    free(w->kept);
    free(w);
    return 0;
}

void api_read_answer(struct api_world *w, const char *line)
{
    if (w->answer.kind != RV__ANSWER_WHOLE || w->answer.body == NULL)
        return;
    assert_int_equal(w->answer.length, strlen(w->answer.body));
    if (strstr(w->answer.type, "json") == NULL)
        return;
    w->document = json_loads(w->answer.body, JSON_DECODE_INT_AS_REAL, NULL);
    if (w->document == NULL)
        fail_msg("%s: not JSON: %s", line, w->answer.body);
}

void api_ask_as(struct api_world *w, enum rv__role role, const char *line, const char *body)
{
    char text[8192];
    struct rv__api_request request = { .role = role, .content_type = "application/json" };
    request.room = w->room;
    request.by = w->by;
    snprintf(text, sizeof text, "%s", line);
    char *path = strchr(text, ' '), *query = strchr(text, '?');
    *path++ = '\0';
    if (query != NULL)
        *query++ = '\0';
    request.method = text;
    request.path = path;
    request.query = query;
    request.body = body;
    request.body_length = body != NULL ? strlen(body) : 0;
    json_decref(w->document);
    w->document = NULL;
    rv__api_answer_done(&w->answer);
    rv__api_handle(w->engine, &request, &w->answer);
    api_read_answer(w, line);
}

void api_ask(struct api_world *w, const char *line, const char *body)
{
    api_ask_as(w, RV__ROLE_ADMIN, line, body);
}

/* Everything that `expected` says is there; "*" is anything, "-" is not there. */
static bool holds(json_t *actual, json_t *expected)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_string(expected) && strcmp(json_string_value(expected), "*") == 0)
        return actual != NULL;
    if (json_is_string(expected) && strcmp(json_string_value(expected), "-") == 0)
        return actual == NULL;
    if (json_is_object(expected)) {
        json_object_foreach (expected, key, value)
            if (!holds(json_object_get(actual, key), value))
                return false;
        return json_is_object(actual);
    }
    if (json_is_array(expected)) {
        if (json_array_size(actual) != json_array_size(expected))
            return false;
        json_array_foreach (expected, i, value)
            if (!holds(json_array_get(actual, i), value))
                return false;
        return json_is_array(actual);
    }
    return json_equal(actual, expected);
}

void api_expect(struct api_world *w, const char *says, int status, const char *quoted)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", quoted);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    json_t *expected = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
    if (expected == NULL)
        fail_msg("%s: what is expected is not JSON: %s", says, text);
    bool good = w->answer.status == status && holds(w->document, expected);
    json_decref(expected);
    if (!good)
        fail_msg("%s: %d %s", says, w->answer.status,
                 w->answer.body != NULL ? w->answer.body : "(nothing)");
}
