/* logs.c: log lines of a run's steps; and events, live or as history. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/api.h"

enum { POSITION_BYTES = 40 }; /* two numbers of 64 bits */

void rv__api_logs(struct rv__api_call *call)
{
    rv_log_list *list = NULL;
    rv_error err;
    if (!rv__api_run_exists(call))
        return;
    const rv_log_query query = {
        .size = sizeof query,
        .step = rv__api_text(call, "step"),
        .path = rv__api_text(call, "path"),
        .level = (int)rv__api_int(call, "level"),
        .text = rv__api_text(call, "q"),
        .attempt = (int)rv__api_int(call, "attempt"),
        .after = (uint64_t)rv__api_int(call, "after"),
        .limit = (size_t)rv__api_int(call, "limit"),
        .for_agents = call->request->pass != NULL && call->request->pass[0] != '\0',
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

/* "SEQ.INDEX", as in the id of an event. False: malformed. */
static bool read_position(const char *text, rv_feed_opts *opts)
{
    char *end;
    if (text == NULL)
        return true;
    if (strspn(text, "0123456789.") != strlen(text) || strlen(text) > POSITION_BYTES)
        return false;
    opts->from = RV_FROM_POSITION;
    opts->seq = strtoull(text, &end, 10);
    if (end == text || *end != '.' || end[1] == '\0' || end[1] == '.')
        return false;
    opts->index = strtoull(end + 1, &end, 10);
    return *end == '\0';
}

/* Was it done by a named person or program? */
static bool has_by(const rv_event *event)
{
    struct rv__str by;
    return rv__json_get(rv__str(event->json), "by", &by);
}

static void put_history(struct rv__api_call *call, rv_feed *feed, rv_error *err)
{
    const int64_t limit = rv__api_int(call, "limit");
    const bool all = rv__api_int(call, "by") == 0;
    uint64_t seq = 0, index = 0;
    rv_event event;
    int64_t count = 0, put = 0; /* `limit` bounds what is read, even if little is returned */
    int rc = RV_OK;
    rv__buf_text(&call->out, "{\"events\":[");
    while (count < limit && (rc = rv_feed_next(feed, 0, NULL, &event, err)) == RV_OK) {
        count++;
        seq = event.seq;
        index = event.index;
        if (!all && !has_by(&event))
            continue;
        if (put++ > 0)
            rv__buf_char(&call->out, ',');
        rv__buf_text(&call->out, event.json);
        rv__api_piece(call);
    }
    if (rc < 0 && rc != RV_ETIMEDOUT) {
        rv__api_error(call, err);
        return;
    }
    rv__buf_text(&call->out, "],\"next\":");
    if (count > 0)
        rv__buf_fmt(&call->out, "\"%llu.%llu\"", (unsigned long long)seq,
                    (unsigned long long)index);
    else if (rv__api_text(call, "after") != NULL)
        rv__buf_json_str(&call->out, rv__str(rv__api_text(call, "after")));
    else
        rv__buf_text(&call->out, "null");
    rv__buf_fmt(&call->out, ",\"more\":%s}", rc == RV_OK ? "true" : "false");
}

/* The same events as a document: a page of the past ones. */
void rv__api_history(struct rv__api_call *call)
{
    rv_feed_opts opts = { .size = sizeof opts,
                          .run_id = call->names[0],
                          .from = RV_FROM_OLDEST,
                          .no_logs = rv__api_int(call, "logs") == 0 };
    rv_feed *feed = NULL;
    rv_error err;
    if (!opts.no_logs && call->request->pass != NULL && call->request->pass[0] != '\0') {
        rv__api_refuse(call, 403, "an execution reads log lines at /logs, without private ones");
        return;
    }
    if (!read_position(rv__api_text(call, "after"), &opts)) {
        rv__api_refuse(call, 400, "parameter 'after' is not `next` of a page: SEQ.INDEX");
        return;
    }
    if (!rv__api_run_exists(call))
        return;
    int rc = rv_feed_open(call->engine, &opts, &feed, &err);
    if (rc == RV_ENOTFOUND)
        rv__api_refuse(call, 410, "%s", err.message);
    else if (rc < 0)
        rv__api_error(call, &err);
    else
        put_history(call, feed, &err);
    rv_feed_close(feed);
}

/* Of one run or of all: the transport opens the feed and sends its events. */
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
