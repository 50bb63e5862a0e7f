/* system.c: health, readiness, metrics, workers and members. */
#include "base/json.h"
#include "server/api.h"

void rv__api_healthz(struct rv__api_call *call)
{
    rv__buf_text(&call->out, "{\"status\":\"ok\"}");
}

/* Ready: the store accepts writes, and the engine answers. */
void rv__api_readyz(struct rv__api_call *call)
{
    rv_health health;
    rv_workflow_list *list = NULL;
    rv_error err;
    struct rv__buf more;
    if (rv_engine_health(call->engine, &health, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    if (health.stuck) { /* the store's message is for viewers only */
        rv__buf_init(&more, 4096);
        rv__put_int(&more, "since", health.since);
        rv__put_int(&more, "attempts", (int64_t)health.attempts);
        rv__api_problem_more(503, NULL, "the store cannot be written", rv__buf_view(&more),
                             call->answer);
        call->answered = true;
        rv__buf_done(&more);
        return;
    }
    if (rv_workflows(call->engine, &list, &err) < 0)
        rv__api_error(call, &err);
    else
        rv__buf_fmt(&call->out, "{\"status\":\"ok\",\"workflows\":%zu}", list->count);
    rv_workflow_list_free(list);
}

void rv__api_metrics(struct rv__api_call *call)
{
    char *text = NULL;
    rv_error err;
    if (rv_metrics(call->engine, &text, &err) < 0)
        rv__api_error(call, &err);
    else
        rv__buf_text(&call->out, text);
    rv_free(text);
}

void rv__api_members(struct rv__api_call *call)
{
    char *text = NULL;
    rv_error err;
    if (rv_members(call->engine, &text, &err) < 0)
        rv__api_error(call, &err);
    else
        rv__buf_text(&call->out, text);
    rv_free(text);
}

/* Only a caller on this machine is told the socket's path: nobody else could open it. */
void rv__api_workers(struct rv__api_call *call)
{
    struct rv__json_iter it;
    struct rv__str key, value;
    char *text = NULL;
    rv_error err;
    if (rv_workers(call->engine, &text, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__json_iter_init(&it, rv__str(text));
    while (rv__json_next(&it, &key, &value)) {
        bool hidden = rv__json_string_is(key, rv__str("socket")) && !call->request->local;
        rv__buf_char(&call->out, call->out.len == 0 ? '{' : ',');
        rv__buf_str(&call->out, key);
        rv__buf_char(&call->out, ':');
        rv__buf_str(&call->out, hidden ? rv__str("null") : value);
    }
    rv__buf_char(&call->out, '}');
    rv_free(text);
}
