/* runs.c: lists, shows, waits for and changes runs. */
#include <stdio.h>

#include "base/json.h"
#include "base/id.h"
#include "server/api.h"

const char *const rv__status_names[] = { "running", "suspended", "completed",
                                         "failed",  "cancelled", NULL };
const char *const rv__action_names[] = { "resume", "abort", "skip", "restart_stage", NULL };

const char *const rv__waiting_names[] = { "somebody", NULL };

enum { NODES_PAGE = 1000, SUMMARY_BYTES = 160 };

/* ---------------------------------------------------------------------------------- looking --- */

/* The beginning of the input as text, to distinguish runs in a list. */
static void put_summary(struct rv__buf *out, const char *input)
{
    const struct rv__str whole = rv__str(input);
    const struct rv__str text = rv__str_begin(whole, SUMMARY_BYTES);
    if (whole.len == 0)
        return;
    rv__buf_text(out, ",\"inputSummary\":");
    rv__buf_json_str(out, text);
    if (text.len < whole.len && out->rc == RV_OK) { /* before its quote */
        rv__buf_cut(out, out->len - 1);
        rv__buf_text(out, "…\"");
    }
}

rv_query rv__api_query(const struct rv__api_call *call)
{
    const struct rv__given *status = rv__api_param(call, "status");
    const struct rv__given *until = rv__api_param(call, "until");
    const int64_t never = -1; /* 0 is a time here, but means no limit to the engine */
    return (rv_query){ .size = sizeof(rv_query),
                       .workflow = rv__api_text(call, "workflow"),
                       .status = status->given ? RV_RUNNING + (int)status->number : 0,
                       .since = rv__api_int(call, "since"),
                       .until = until->given && until->number == 0 ? never : until->number,
                       .waiting = rv__api_param(call, "waiting")->given,
                       .rerun_of = rv__api_text(call, "rerunOf"),
                       .text = rv__api_text(call, "q"),
                       .limit = (size_t)rv__api_int(call, "limit"),
                       .cursor = rv__api_text(call, "cursor") };
}

void rv__api_put_next(struct rv__api_call *call, const rv_run_list *list)
{
    rv__buf_text(&call->out, ",\"nextCursor\":");
    if (*list->next != '\0')
        rv__buf_json_str(&call->out, rv__str(list->next));
    else
        rv__buf_text(&call->out, "null");
}

void rv__api_runs(struct rv__api_call *call)
{
    const rv_query query = rv__api_query(call);
    rv_run_list *list = NULL;
    rv_error err;
    int rc = rv_list(call->engine, &query, &list, &err);
    if (rc < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_text(&call->out, "{\"runs\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        rv__put_run(&call->out, &list->runs[i]);
        put_summary(&call->out, list->runs[i].input);
        rv__buf_char(&call->out, '}');
        rv__api_piece(call);
    }
    rv__buf_char(&call->out, ']');
    rv__api_put_next(call, list);
    rv__buf_char(&call->out, '}');
    rv_run_list_free(list);
}

/* ,"steps":[…]: all nodes at the top level. */
static void put_steps(struct rv__api_call *call, const char *run_id)
{
    size_t offset = 0, total = 1;
    rv_error err;
    rv__buf_text(&call->out, ",\"steps\":[");
    while (offset < total) {
        rv_node_list *list = NULL;
        if (rv_nodes(call->engine, run_id, RV_NODE_QUERY(.offset = offset, .limit = NODES_PAGE),
                     &list, &err) < 0) {
            rv__api_error(call, &err);
            return;
        }
        total = list->count > 0 ? list->total : 0;
        for (size_t i = 0; i < list->count; i++) {
            if (offset + i > 0)
                rv__buf_char(&call->out, ',');
            rv__put_node(&call->out, &list->nodes[i]);
            rv__buf_char(&call->out, '}');
            rv__api_piece(call);
        }
        offset += list->count;
        rv_node_list_free(list);
    }
    rv__buf_char(&call->out, ']');
}

static void put_whole_run(struct rv__api_call *call, const rv_run_state *run)
{
    rv__put_run(&call->out, run);
    rv__api_put_value(call, "input", *run->input != '\0' ? run->input : "null");
    if (run->results_too_large > 0)
        rv__put_int(&call->out, "resultsTooLarge", run->results_too_large);
    else if (run->results != NULL && *run->results != '\0')
        rv__api_put_value(call, "results", run->results);
    put_steps(call, run->run_id);
    rv__buf_char(&call->out, '}');
}

void rv__api_run_get(struct rv__api_call *call)
{
    rv_run_list *row = rv__api_run(call);
    rv_run_state *state = NULL;
    rv_error err;
    if (row == NULL)
        return;
    if (rv__api_int(call, "results") == 0)
        put_whole_run(call, &row->runs[0]);
    else if (rv_state(call->engine, call->names[0], &state, &err) < 0)
        rv__api_error(call, &err);
    else
        put_whole_run(call, state);
    rv_run_state_free(state);
    rv_run_list_free(row);
}

/* Answer with the engine's JSON. */
static void put_said(struct rv__api_call *call,
                     int (*ask)(rv_engine *engine, const char *run_id, char **ret, rv_error *err))
{
    char *text = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    if (ask(call->engine, call->names[0], &text, &err) < 0)
        rv__api_error(call, &err);
    else
        rv__buf_text(&call->out, text);
    rv__api_piece(call);
    rv_free(text);
}

void rv__api_plan(struct rv__api_call *call)
{
    put_said(call, rv_plan_of_run);
}

void rv__api_why(struct rv__api_call *call)
{
    put_said(call, rv_why);
}

/* ---------------------------------------------------------------------------------- waiting --- */

static bool has_ended(const rv_run_state *run)
{
    return run->status != RV_RUNNING && run->status != RV_SUSPENDED;
}

static void put_end(struct rv__api_call *call, const char *run_id)
{
    rv_run_state *state = NULL;
    rv_error err;
    if (rv_state(call->engine, run_id, &state, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    if (rv__put_outcome_head(&call->out, state))
        rv__api_put_value(call, "results", *state->results != '\0' ? state->results : "{}");
    rv__put_outcome_tail(&call->out, state);
    rv_run_state_free(state);
}

static void not_ended(const rv_run_state *run, int64_t waited_ms, struct rv__api_answer *ret)
{
    char detail[400];
    struct rv__buf more;
    rv__buf_init(&more, 4096);
    rv__put_text(&more, "runStatus", rv_status_name(run->status));
    (void)snprintf(detail, sizeof detail,
                   "run '%s' of workflow '%.80s' has not ended after %lld ms", run->run_id,
                   run->workflow, (long long)waited_ms);
    rv__api_problem_more(408, NULL, detail, rv__buf_view(&more), ret);
    rv__buf_done(&more);
}

void rv__api_wait(struct rv__api_call *call)
{
    rv_run_list *row = rv__api_run(call);
    int64_t timeout_ms = rv__api_int(call, "timeoutMs");
    if (row == NULL)
        return;
    if (has_ended(&row->runs[0])) {
        put_end(call, row->runs[0].run_id);
    } else if (timeout_ms == 0) {
        not_ended(&row->runs[0], 0, call->answer);
        call->answered = true;
    } else {
        *call->answer = (struct rv__api_answer){ .kind = RV__ANSWER_WAIT,
                                                 .status = 200,
                                                 .type = "application/json",
                                                 .timeout_ms = timeout_ms };
        (void)snprintf(call->answer->run_id, sizeof call->answer->run_id, "%s",
                       row->runs[0].run_id);
        call->answered = true;
    }
    rv_run_list_free(row);
}

void rv__api_waited(rv_engine *engine, const char *run_id, int64_t waited_ms, struct rv__room *room,
                    struct rv__api_answer *ret)
{
    char path[RV__API_PATH_BYTES];
    rv_run_list *row = NULL;
    rv_error err;
    if (rv_list(engine, RV_QUERY(.run_id = run_id), &row, &err) < 0) {
        rv__api_problem(rv__api_status(err.code), NULL, err.message, ret);
        return;
    }
    if (row->count == 1 && !has_ended(&row->runs[0])) {
        not_ended(&row->runs[0], waited_ms, ret);
    } else { /* its outcome; or 404: it was deleted meanwhile */
        (void)snprintf(path, sizeof path, "/api/v1/runs/%s/wait", run_id);
        rv__api_handle(engine,
                       &(struct rv__api_request){
                           .method = "GET", .path = path, .role = RV__ROLE_VIEWER, .room = room },
                       ret);
    }
    rv_run_list_free(row);
}

/* ---------------------------------------------------------------------------------- telling --- */

/* Answer with the run's new status, or with the error. */
static void answer_change(struct rv__api_call *call, int rc, const rv_error *err)
{
    if (rc < 0)
        rv__api_error(call, err);
    else
        rv__api_put_status(call);
}

void rv__api_cancel(struct rv__api_call *call)
{
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    int rc = rv_cancel_run_with(call->engine, call->names[0],
                                RV_CANCEL_OPTS(.by = call->request->by), &err);
    answer_change(call, rc, &err);
}

/* This decision is not possible: answer with the paths of nodes that wait for one. */
static void refuse_decision(struct rv__api_call *call, const rv_error *err)
{
    rv_run_list *row = rv__api_run(call);
    struct rv__json_iter it;
    struct rv__str one, path;
    struct rv__buf more;
    bool first = true;
    if (row == NULL)
        return;
    struct rv__str list = rv__str(row->runs[0].suspensions);
    rv__buf_init(&more, 1u << 20);
    rv__buf_text(&more, ",\"paths\":[");
    if (list.len > 0)
        rv__json_iter_init(&it, list);
    while (list.len > 0 && rv__json_next(&it, NULL, &one))
        if (rv__json_get(one, "path", &path)) {
            rv__buf_text(&more, first ? "" : ",");
            rv__buf_str(&more, path);
            first = false;
        }
    rv__buf_char(&more, ']');
    rv__api_problem_more(409, NULL, err->message,
                         rv__buf_err(&more, NULL) == RV_OK ? rv__buf_view(&more)
                                                           : (struct rv__str){ "", 0 },
                         call->answer);
    call->answered = true;
    rv__buf_done(&more);
    rv_run_list_free(row);
}

void rv__api_decide(struct rv__api_call *call)
{
    const struct rv__given *action = rv__api_member(call, "action");
    const struct rv__given *path = rv__api_member(call, "path");
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    int rc = rv_decide(call->engine, call->names[0], (int)action->number,
                       RV_DECIDE_OPTS(.path = path->given ? path->text : NULL,
                                      .reason = rv__api_member(call, "reason")->text,
                                      .by = call->request->by),
                       &err);
    if (rc == RV_ESTATE)
        refuse_decision(call, &err);
    else
        answer_change(call, rc, &err);
}

void rv__api_complete(struct rv__api_call *call)
{
    const struct rv__given *result = rv__api_member(call, "result"),
                           *error = rv__api_member(call, "error");
    struct rv__buf text;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    if (result->given && error->given) {
        const rv_violation both = { .path = "/error", .message = "a step has a result or fails" };
        const rv_violations bad = { .count = 1, .items = &both };
        rv__api_violations(call, "body", "`result` or `error`, not both", &bad);
        return;
    }
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    rv__buf_str(&text, result->json);
    int rc = rv__buf_err(&text, &err);
    if (rc == RV_OK)
        rc = rv_complete_with(call->engine, call->names[0], call->names[1],
                              RV_COMPLETE_OPTS(.result = result->given ? text.text : NULL,
                                               .error = error->given ? error->text : NULL,
                                               .by = call->request->by),
                              &err);
    rv__buf_done(&text);
    answer_change(call, rc, &err);
}

void rv__api_signal(struct rv__api_call *call)
{
    struct rv__buf payload;
    rv_violations *bad = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    rv__buf_init(&payload, RV__JSON_MAX_BYTES);
    rv__buf_str(&payload, call->body);
    int rc = rv__buf_err(&payload, &err);
    if (rc == RV_OK)
        rc = rv_signal_with(call->engine, call->names[0], call->names[1],
                            call->body.len > 0 ? payload.text : NULL,
                            RV_SIGNAL_OPTS(.force = rv__api_param(call, "force")->number != 0,
                                           .violations = &bad, .by = call->request->by),
                            &err);
    rv__buf_done(&payload);
    if (rc == RV_EUNWANTED) { /* lets a client distinguish this from a run that has ended */
        rv__api_problem_more(409, NULL, err.message, rv__str(",\"code\":\"unwanted\""),
                             call->answer);
        call->answered = true;
    } else if (bad != NULL) {
        rv__api_violations(call, "body", err.message, bad);
    } else {
        answer_change(call, rc, &err);
    }
    rv_violations_free(bad);
}
