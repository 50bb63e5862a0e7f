/* logs.c: what the steps of a run said; and what happens, as it happens. */
#include <stdio.h>
#include <string.h>

#include "server/api.h"

void rv__api_logs(struct rv__api_call *call)
{
    rv_log_list *list = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    const rv_log_query query = {
        .size = sizeof query,
        .step = rv__api_text(call, "step"),
        .level = (int)rv__api_int(call, "level"),
        .text = rv__api_text(call, "q"),
        .after = (uint64_t)rv__api_int(call, "after"),
        .limit = (size_t)rv__api_int(call, "limit"),
    };
    if (rv_logs(call->engine, call->names[0], &query, &list, &err) < 0) {
        rv__api_error(call, &err);
        return;
    }
    rv__buf_text(&call->out, "{\"logs\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            rv__buf_char(&call->out, ',');
        rv__put_log_line(&call->out, call->names[0], &list->lines[i]);
        rv__api_piece(call);
    }
    rv__buf_fmt(&call->out, "],\"next\":%llu}", (unsigned long long)list->next);
    rv_log_list_free(list);
}

/* Of one run or of all: the transport opens the feed and writes what it gives. */
void rv__api_events(struct rv__api_call *call)
{
    const char *run_id = "";
    if (call->names[0] != NULL) {
        if (!rv__api_run_exists(call))
            return;
        run_id = call->names[0];
    }
    const char *from = rv__api_text(call, "from");
    *call->answer = (struct rv__api_answer){ .kind = RV__ANSWER_EVENTS,
                                             .from_oldest = from != NULL
                                                                ? strcmp(from, "oldest") == 0
                                                                : run_id[0] != '\0',
                                             .status = call->route->status,
                                             .type = call->route->type,
                                             .no_logs = rv__api_int(call, "logs") == 0 };
    (void)snprintf(call->answer->run_id, sizeof call->answer->run_id, "%s", run_id);
    call->answered = true;
}
