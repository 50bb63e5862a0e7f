/* test_openapi.c: is each answer of src/server/ what /openapi.json says about it? */
#include "unit/test.h"

#include "base/arena.h"
#include "base/json.h"
#include "schema/schema.h"
#include "unit/server/api_world.h"

/* A request for an operation: its path with the names of what there is, and what it needs. */
static void call_operation(struct api_world *w, const char *method, const char *path,
                           const char *id)
{
    char line[512] = "";
    size_t len = (size_t)snprintf(line, sizeof line, "%s ", strcmp(method, "get") ? "POST" : "GET");
    for (const char *at = path; *at != '\0'; at++) {
        const char *name = strstr(path, "/workflows/") ? "ask"
                           : strstr(at, "{id}") == at  ? "done"
                                                       : "go";
        if (*at != '{') {
            line[len++] = *at;
            continue;
        }
        if (strcmp(method, "get") != 0 && strcmp(name, "done") == 0)
            name = "waits";
        len += (size_t)snprintf(line + len, sizeof line - len, "%s", name);
        at = strchr(at, '}');
    }
    line[len] = '\0';
    if (strcmp(id, "getNode") == 0)
        snprintf(line + len, sizeof line - len, "?path=flaky");
    api_ask(w, line,
            strcmp(id, "decideRun") == 0 ? "{\"action\":\"resume\"}"
            : strcmp(id, "login") == 0   ? "{\"token\":\"a token\"}"
                                         : NULL);
}

/* Is the answer what the document says of this status? */
static void hold_to_schema(struct api_world *w, json_t *openapi, json_t *operation, const char *id)
{
    char status[16];
    struct rv__arena arena;
    struct rv__violations bad;
    struct rv__schema *schema = NULL;
    struct rv__buf text;
    snprintf(status, sizeof status, "%d", w->answer.status);
    json_t *answer = json_object_get(json_object_get(operation, "responses"), status);
    if (answer == NULL)
        fail_msg("%s: %s is not in the document: %s", id, status, w->answer.body);
    const char *ref = json_string_value(json_object_get(answer, "$ref"));
    if (ref != NULL)
        answer = json_object_get(
            json_object_get(json_object_get(openapi, "components"), "responses"), status);
    json_t *content = json_object_get(json_object_get(answer, "content"), w->answer.type);
    if (content == NULL)
        fail_msg("%s: %s has no content of type %s", id, status, w->answer.type);
    if (w->document == NULL)
        return;
    json_t *whole = json_copy(json_object_get(content, "schema"));
    json_object_set(whole, "components", json_object_get(openapi, "components"));
    rv__buf_init(&text, 1u << 20);
    assert_int_equal(rv__json_dump(whole, &text), RV_OK);
    json_decref(whole);
    if (rv__schema_new(rv__buf_view(&text), NULL, &schema, &w->err) < 0)
        fail_msg("%s: bad schema: %s", id, w->err.message);
    rv__arena_init(&arena, 1u << 20);
    rv__violations_init(&bad, &arena);
    int rc = rv__schema_check(schema, rv__str(w->answer.body), &bad, &w->err);
    rv__schema_free(schema);
    rv__arena_done(&arena);
    rv__buf_done(&text);
    if (rc < 0)
        fail_msg("%s: %s: %s", id, w->err.message, w->answer.body);
}

static void the_document_tells_what_is_answered(void **state)
{
    struct api_world *w = *state;
    const char *path, *method;
    json_t *item, *operation;
    int calls = 0;
    api_ask(w, "GET /openapi.json", NULL);
    assert_int_equal(w->answer.status, 200);
    json_t *openapi = json_incref(w->document);
    json_object_foreach (json_object_get(openapi, "paths"), path, item)
        json_object_foreach (item, method, operation) {
            const char *id = json_string_value(json_object_get(operation, "operationId"));
            call_operation(w, method, path, id);
            if (w->answer.kind >= RV__ANSWER_LOGIN) { /* the transport has the last word */
                rv__api_answer_done(&w->answer);
                rv__api_session(RV__ROLE_OPERATOR, "kim", true, &w->answer);
                api_read_answer(w, id);
            }
            if (w->answer.kind == RV__ANSWER_WHOLE)
                hold_to_schema(w, openapi, operation, id);
            else if (json_object_get(json_object_get(operation, "responses"), "410") == NULL)
                fail_msg("%s does not say that it may be gone", id);
            calls++;
        }
    json_decref(openapi);
    assert_int_equal(calls, 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(the_document_tells_what_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
