/* test_api.c: request -> status and document, for src/server/. */
#include "unit/test.h"

#include "server/server.h"

static const struct row {
    const char *says, *method, *path;
    int status;
    const char *body; /* exactly */
} rows[] = {
    { "it says that it lives", "GET", "/healthz", 200, "{\"status\":\"ok\"}" },
    { "what is not there is a problem", "GET", "/nowhere", 404,
      "{\"type\":\"about:blank\",\"title\":\"Not found\",\"status\":404,\"detail\":\"there is "
      "nothing "
      "at this address; /openapi.json lists all there is\"}" },
};

static void requests_get_their_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__api_answer answer;
        rv__api_handle(NULL,
                       &(struct rv__api_request){ .method = rows[i].method, .path = rows[i].path },
                       &answer);
        if (answer.status != rows[i].status || strcmp(answer.body, rows[i].body) != 0)
            fail_msg("%s: %d %s", rows[i].says, answer.status, answer.body);
        assert_int_equal(answer.length, strlen(answer.body));
        rv__api_answer_done(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(requests_get_their_answers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
