/* workflows.c: lists and shows workflows, and starts runs. */
#include "server/api.h"

#include "base/error.h"

void rv__api_workflows(struct rv__api_call *call)
{
    rv_workflow_list *list = NULL;
    rv_error err;
    if (rv_workflows(call->engine, &list, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_text(&call->out, "{\"workflows\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        rv__put_workflow(&call->out, &list->items[i]);
        rv__buf_char(&call->out, '}');
        rv__api_piece(call);
    }
    rv__buf_text(&call->out, "]}");
    rv_workflow_list_free(list);
}

void rv__api_workflow(struct rv__api_call *call)
{
    rv_workflow_list *list = NULL;
    const rv_workflow_info *info = NULL;
    char *plan = NULL;
    rv_error err;
    int rc = rv_plan_of_workflow(call->engine, call->names[0], &plan, &err);
    if (rc == RV_OK)
        rc = rv_workflows(call->engine, &list, &err);
    for (size_t i = 0; rc == RV_OK && i < list->count; i++)
        if (strcmp(list->items[i].name, call->names[0]) == 0)
            info = &list->items[i];
    if (rc == RV_OK && info == NULL) /* removed in between */
        rc = rv__fail(&err, RV_ENOTFOUND, "there is no workflow '%.80s'", call->names[0]);
    if (rc < 0) {
        rv__api_error(call, &err);
    } else {
        rv__put_workflow(&call->out, info);
        rv__api_put_value(call, "plan", plan);
        rv__buf_char(&call->out, '}');
    }
    rv_free(plan);
    rv_workflow_list_free(list);
}

/* The language by the file's extension, for an editor. */
static const char *language_of(const char *path)
{
    static const char *const ends[][2] = { { ".yaml", "yaml" },     { ".yml", "yaml" },
                                           { ".json", "json" },     { ".c", "c" },
                                           { ".ts", "typescript" }, { ".mts", "typescript" },
                                           { ".js", "javascript" }, { ".mjs", "javascript" } };
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i][0]);
        if (len > end && strcmp(path + len - end, ends[i][0]) == 0)
            return ends[i][1];
    }
    return "text";
}

void rv__api_source(struct rv__api_call *call)
{
    rv_workflow_list *list = NULL;
    const char *path = "";
    char *text = NULL;
    rv_error err;
    int rc = rv_workflow_source(call->engine, call->names[0], &text, &err);
    if (rc == RV_OK)
        rc = rv_workflows(call->engine, &list, &err);
    for (size_t i = 0; rc == RV_OK && i < list->count; i++)
        if (strcmp(list->items[i].name, call->names[0]) == 0)
            path = list->items[i].source;
    if (rc < 0) {
        rv__api_error(call, &err);
    } else {
        rv__buf_text(&call->out, "{\"name\":");
        rv__buf_json_str(&call->out, rv__str(call->names[0]));
        rv__put_text(&call->out, "source", path);
        rv__put_text(&call->out, "language", language_of(path));
        rv__put_text(&call->out, "text", text);
        rv__buf_char(&call->out, '}');
        rv__api_piece(call);
    }
    rv_free(text);
    rv_workflow_list_free(list);
}

/* Violations of the input are about "input"; others are about the body. */
static void refuse_start(struct rv__api_call *call, const rv_error *err, const rv_violations *bad)
{
    const rv_violation run_id = { .path = "/runId", .message = err->message };
    const rv_violations one = { .count = 1, .items = &run_id };
    if (bad != NULL)
        rv__api_violations(call, "input", err->message, bad);
    else if (err->code == RV_EINVAL && rv__api_member(call, "runId")->given)
        rv__api_violations(call, "body", "the body is not valid", &one);
    else
        rv__api_error(call, err);
}

void rv__api_start(struct rv__api_call *call)
{
    const struct rv__given *input = rv__api_member(call, "input");
    const struct rv__given *limit = rv__api_member(call, "maxConcurrency");
    rv_violations *bad = NULL;
    rv_run_info info = { .status = RV_RUNNING };
    rv_error err;
    struct rv__buf text;
    rv__buf_init(&text, RV__JSON_MAX_BYTES);
    if (input->given)
        rv__buf_str(&text, input->json);
    int rc = rv__buf_err(&text, &err);
    if (rc == RV_OK)
        rc = rv_run(call->engine, call->names[0], input->given ? text.text : NULL,
                    RV_RUN_OPTS(.run_id = rv__api_member(call, "runId")->text,
                                .rerun_of = rv__api_member(call, "rerunOf")->text,
                                .max_concurrency = limit->given ? limit->number : 0,
                                .violations = &bad, .by = call->request->by),
                    &info, &err);
    if (rc < 0)
        refuse_start(call, &err, bad);
    else
        rv__buf_fmt(&call->out, "{\"runId\":\"%s\",\"status\":\"%s\"%s}", info.run_id,
                    rv_status_name(info.status),
                    info.schema_only ? ",\"validated\":\"schema\"" : "");
    rv_violations_free(bad);
    rv__buf_done(&text);
}
