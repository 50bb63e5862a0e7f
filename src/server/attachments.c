/* attachments.c: the attachments of the attempts of a run's states. */
#include "server/api.h"

const char *const rv__attachment_status_names[] = { "init",    "running", "finished",
                                                    "errored", "skipped", NULL };

void rv__api_attachments(struct rv__api_call *call)
{
    rv_attachment_list *list = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    const rv_attachment_query query = {
        .size = sizeof query,
        .stage = rv__api_text(call, "stage"),
        .state = rv__api_text(call, "state"),
        .status = rv__api_text(call, "status"),
        .latest = rv__api_int(call, "latest") != 0,
        .last = (size_t)rv__api_int(call, "last"),
        .incomplete = rv__api_int(call, "incomplete") != 0,
        .older_than_ms = rv__api_int(call, "olderThanMs"),
        .offset = (size_t)rv__api_int(call, "offset"),
        .limit = (size_t)rv__api_int(call, "limit"),
    };
    if (rv_attachments(call->engine, call->names[0], &query, &list, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_text(&call->out, "{\"attachments\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        rv__put_attachment(&call->out, &list->attachments[i]);
        rv__buf_char(&call->out, '}');
        rv__api_piece(call);
    }
    rv__buf_fmt(&call->out, "],\"total\":%zu,\"offset\":%zu}", list->total, query.offset);
    rv_attachment_list_free(list);
}

void rv__api_attachment(struct rv__api_call *call)
{
    rv_attachment_list *list = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    if (rv_attachments(call->engine, call->names[0],
                       RV_ATTACHMENT_QUERY(.id = call->names[1], .results = true), &list,
                       &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    if (list->count == 0) {
        rv__api_refuse(call, 404, "run '%s' has no attachment '%.200s'", call->names[0],
                       call->names[1]);
    } else {
        rv__put_attachment(&call->out, &list->attachments[0]);
        rv__api_put_value(call, "result", list->attachments[0].result);
        rv__api_put_value(call, "error", list->attachments[0].error);
        rv__buf_char(&call->out, '}');
    }
    rv_attachment_list_free(list);
}
