/* fuzz_api.c: whatever is asked, there is an answer: a status, and JSON where it says so.
 *
 * An input is "METHOD PATH?QUERY\nBODY". The engine behind it is the testing kit's: a new one now and then,
 * so that runs that were begun do not pile up. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/server.h"

enum { INPUTS_OF_AN_ENGINE = 2000 };

static int step(rv_ctx *c)
{
    rv_log_info(c, "here");
    return rv_return(c, "i", 1);
}

static rv_engine *engine_new(void)
{
    rv_engine *engine = NULL;
    rv_workflow *w = rv_workflow_new("w");
    rv_workflow_input(w, "{\"properties\":{\"n\":{\"type\":\"integer\"}}}");
    rv_add_step(rv_workflow_body(w), "a", step, NULL);
    rv_add_signal(rv_workflow_body(w), "go", "go", 0, NULL);
    if (rv_test_engine_new(NULL, &engine, NULL) < 0 || rv_register(engine, w, NULL) < 0 ||
        rv_run(engine, "w", "{}", RV_RUN_OPTS(.run_id = "r"), NULL, NULL) < 0 ||
        rv_test_advance(engine, 10, NULL) < 0)
        abort();
    rv_workflow_free(w);
    return engine;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static rv_engine *engine;
    static int inputs;
    struct rv__api_answer answer;
    if (inputs++ % INPUTS_OF_AN_ENGINE == 0) {
        rv_engine_free(engine);
        engine = engine_new();
    }
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    struct rv__api_request request = {
        .method = text, .path = "", .content_type = "application/json", .role = RV__ROLE_OPERATOR
    };
    char *line_end = memchr(text, '\n', size);
    if (line_end != NULL) {
        *line_end = '\0';
        request.body = line_end + 1;
        request.body_length = size - (size_t)(line_end + 1 - text);
    }
    char *path = strchr(text, ' '), *query = strchr(text, '?');
    if (path != NULL) {
        *path = '\0';
        request.path = path + 1;
        if (query != NULL && query > path) {
            *query = '\0';
            request.query = query + 1;
        }
    }
    rv__api_handle(engine, &request, &answer);
    if (answer.kind == RV__ANSWER_LOGIN || answer.kind == RV__ANSWER_LOGOUT ||
        answer.kind == RV__ANSWER_SESSION) { /* the transport goes on from here */
        rv__api_answer_done(&answer);
        rv__api_session(request.role, "", true, &answer);
    }
    if (answer.status < 200 || answer.status > 503 || answer.type == NULL ||
        (answer.kind == RV__ANSWER_WHOLE && answer.body == NULL))
        abort();
    if (answer.kind == RV__ANSWER_WHOLE && strstr(answer.type, "json") != NULL &&
        rv__json_check((struct rv__str){ answer.body, answer.length }, RV__JSON_MAX_DEPTH, NULL,
                       NULL) < 0)
        abort();
    rv__api_answer_done(&answer);
    free(text);
    return 0;
}
