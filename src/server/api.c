/* api.c: from a request to its answer. */
#include "server/server.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

static void answer_text(const char *json, struct rv__api_answer *ret)
{
    struct rv__buf out;
    rv__buf_init(&out, 4096);
    rv__buf_text(&out, json);
    *ret = (struct rv__api_answer){ .status = 200, .type = "application/json", .length = out.len };
    ret->body = rv__buf_take(&out);
    rv__buf_done(&out);
    if (ret->body == NULL)
        rv__api_problem(500, NULL, "out of memory", ret);
}

void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret)
{
    (void)engine;
    if (strcmp(request->path, "/healthz") == 0)
        answer_text("{\"status\":\"ok\"}", ret);
    else
        rv__api_problem(404, NULL,
                        "there is nothing at this address; /openapi.json lists all there is", ret);
}

void rv__api_waited(rv_engine *engine, const char *run_id, int64_t waited_ms,
                    struct rv__api_answer *ret)
{
    (void)engine;
    (void)run_id;
    (void)waited_ms;
    rv__api_problem(404, NULL, "there is no such run", ret);
}
