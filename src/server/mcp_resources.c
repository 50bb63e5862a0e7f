/* mcp_resources.c: resources: runs and their parts: rival://runs/{id}, …/logs, …/attachments/{aid}. */
#include "server/mcp.h"

#include <stdio.h>

#include "base/id.h"
#include "server/api.h"

enum { PATH_BYTES = 1 << 20, TITLE_BYTES = 200 };

#define SCHEME "rival://runs/"

static void put_resource(struct rv__mcp_call *call, struct rv__str run, const char *run_id)
{
    struct rv__buf *out = &call->out;
    const char *workflow = rv__mcp_text(call, run, "workflow"),
               *status = rv__mcp_text(call, run, "status");
    char title[TITLE_BYTES];
    (void)snprintf(title, sizeof title, "run of %.150s, %.20s", workflow != NULL ? workflow : "?",
                   status != NULL ? status : "?");
    rv__buf_fmt(out, "{\"uri\":\"" SCHEME "%s\",\"name\":\"%s\"", run_id, run_id);
    rv__put_text(out, "title", title);
    rv__buf_text(out, ",\"mimeType\":\"application/json\"}");
}

void rv__mcp_resources_list(struct rv__mcp_call *call)
{
    rv__mcp_list_runs(call, "resources", put_resource);
}

void rv__mcp_templates_list(struct rv__mcp_call *call)
{
    rv__mcp_result(call, "complete");
    rv__buf_text(&call->out,
                 ",\"resourceTemplates\":["
                 "{\"uriTemplate\":\"" SCHEME "{id}\",\"name\":\"run\",\"title\":\"A run\","
                 "\"description\":\"A run with its input, results and nodes.\","
                 "\"mimeType\":\"application/json\"},"
                 "{\"uriTemplate\":\"" SCHEME
                 "{id}/logs\",\"name\":\"logs\",\"title\":\"The log of a "
                 "run\",\"description\":\"The log of the run's steps: the first 1000 "
                 "lines.\",\"mimeType\":\"application/json\"},{\"uriTemplate\":\"" SCHEME
                 "{id}/attachments/{aid}\",\"name\":\"attachment\",\"title\":\"An attachment of a "
                 "run\",\"description\":\"The record of an attempt of a state, with its result or "
                 "error.\",\"mimeType\":\"application/json\"}]");
    rv__mcp_put_cache(call);
    rv__mcp_result_end(call);
}

static void not_found(struct rv__mcp_call *call, const char *uri)
{
    struct rv__buf data;
    rv__buf_init(&data, PATH_BYTES);
    rv__buf_text(&data, "{\"uri\":");
    rv__buf_json_str(&data, rv__str(uri));
    rv__buf_char(&data, '}');
    rv__mcp_error(call, 200, call->modern ? RV__MCP_PARAMS : RV__MCP_NO_RESOURCE,
                  rv__buf_err(&data, NULL) == RV_OK ? data.text : NULL,
                  "resource not found: %.200s", uri);
    rv__buf_done(&data);
}

/* Translate rival://runs/ID, …/logs, …/attachments/AID to the path after the run's. False: none of these. */
static bool find(struct rv__mcp_call *call, const char *uri, char run_id[RV_RUN_ID_SIZE],
                 struct rv__buf *what)
{
    static const char attachments[] = "/attachments/";
    size_t scheme = sizeof SCHEME - 1, len = sizeof attachments - 1;
    if (strncmp(uri, SCHEME, scheme) != 0)
        return false;
    struct rv__str id = { uri + scheme, strcspn(uri + scheme, "/") };
    if (!rv__id_valid(id))
        return false;
    memcpy(run_id, id.at, id.len);
    run_id[id.len] = '\0';
    const char *rest = id.at + id.len;
    if (strncmp(rest, attachments, len) == 0 && rest[len] != '\0') {
        const char *aid = rv__api_decode(&call->arena, rv__str(rest + len), false);
        rv__buf_text(what, attachments);
        rv__mcp_put_encoded(what, rv__str(aid));
        return aid != NULL;
    }
    rv__buf_text(what, *rest == '\0' ? "" : "/logs?limit=1000");
    return *rest == '\0' || strcmp(rest, "/logs") == 0;
}

static void read_resource(struct rv__mcp_call *call, const char *uri, const char *run_id,
                          const char *what)
{
    struct rv__mcp_doc doc;
    rv__mcp_ask_run(call, run_id, what, RV__MCP_RESULT_BYTES, &doc);
    if (doc.status == 200 && rv__str_none(doc.body) && *what == '\0') { /* without its results */
        rv__mcp_doc_done(&doc);
        rv__mcp_ask_run(call, run_id, "?results=0", RV__MCP_RESULT_BYTES, &doc);
    }
    if (doc.status == 404) {
        not_found(call, uri);
    } else if (doc.status != 200) {
        rv__mcp_refused(call, &doc);
    } else if (rv__str_none(doc.body)) {
        rv__mcp_error(call, 200, RV__MCP_INTERNAL, NULL,
                      "the resource has %zu bytes, more than %d: read it node by node, by the HTTP "
                      "API",
                      doc.length, (int)RV__MCP_RESULT_BYTES);
    } else {
        rv__mcp_result(call, "complete");
        rv__buf_text(&call->out, ",\"contents\":[{\"uri\":");
        rv__buf_json_str(&call->out, rv__str(uri));
        rv__buf_text(&call->out, ",\"mimeType\":\"application/json\",\"text\":");
        rv__buf_json_str(&call->out, doc.body);
        rv__buf_text(&call->out, "}]");
        rv__mcp_put_cache(call);
        rv__mcp_result_end(call);
    }
    rv__mcp_doc_done(&doc);
}

void rv__mcp_resources_read(struct rv__mcp_call *call)
{
    const char *uri = rv__mcp_text(call, call->params, "uri");
    char run_id[RV_RUN_ID_SIZE];
    struct rv__buf what;
    if (uri == NULL) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`uri` is missing: which resource?");
        return;
    }
    rv__buf_init(&what, PATH_BYTES);
    if (find(call, uri, run_id, &what) && what.rc == RV_OK)
        read_resource(call, uri, run_id, rv__buf_view(&what).at);
    else
        not_found(call, uri);
    rv__buf_done(&what);
}
