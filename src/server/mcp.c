/* mcp.c: the Model Context Protocol: JSON-RPC in, JSON-RPC out.
 *
 * One message is one call. It is translated to requests of the HTTP API (api.c), with the caller's role: MCP has no
 * rights and no checks of its own. rv__mcp_via answers these requests: an engine in this process, or another
 * server.
 *
 * Three revisions. The two of 2025 begin with `initialize`; their sessions are only names, since each request has
 * all we need. 2026-07-28 has no sessions: every request has its revision and its client's capabilities, in `_meta`
 * and, by HTTP, in headers, which must agree.
 *
 *   rv__mcp_begin ──▶ answered            a line in `out`, or none for a notification
 *              └────▶ waits ──look──▶ …   lines of progress, and at last the answer (mcp_wait.c)
 *
 * Nothing here waits: the transport (mcp_http.c, cli/mcp_stdio.c) does, and calls rv__mcp_look(). */
#include "server/mcp.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/random.h"

enum { MESSAGE_BYTES = 1000 };

const char *const rv__mcp_revisions[] = { "2025-06-18", "2025-11-25", "2026-07-28", NULL };

static const struct rv__str none = { NULL, 0 };

static int revision_of(struct rv__str name)
{
    for (int i = 0; rv__mcp_revisions[i] != NULL; i++)
        if (rv__str_is(name, rv__mcp_revisions[i]))
            return i;
    return -1;
}

/* --------------------------------------------------------------------------------- the API --- */

void rv__mcp_put_encoded(struct rv__buf *path, struct rv__str text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c != '\0' && strchr(plain, c) != NULL)
            rv__buf_char(path, c);
        else
            rv__buf_fmt(path, "%%%02X", (unsigned)(unsigned char)c);
    }
}

/* A long answer is in a file: read it into memory. */
static bool read_file(struct rv__mcp_doc *doc)
{
    size_t at = 0;
    doc->read = rv__alloc(doc->length + 1);
    if (doc->read == NULL)
        return false;
    while (at < doc->length) {
        ssize_t n = pread(doc->answer.file, doc->read + at, doc->length - at, (off_t)at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    doc->read[at] = '\0';
    return true;
}

void rv__mcp_ask(struct rv__mcp_call *call, const char *method, const struct rv__buf *path,
                 struct rv__str body, size_t max_bytes, struct rv__mcp_doc *ret)
{
    *ret = (struct rv__mcp_doc){ .status = 500 };
    if (path->rc < 0) {
        rv__api_problem(path->rc == RV_ENOMEM ? 500 : 414, NULL,
                        path->rc == RV_ENOMEM ? "out of memory" : "a name is too long",
                        &ret->answer);
    } else {
        const char *mark = strchr(path->text, '?');
        char *alone = mark != NULL
                          ? rv__arena_dup(&call->arena, path->text, (size_t)(mark - path->text))
                          : path->text;
        struct rv__api_request request = { .method = method,
                                           .path = alone,
                                           .query = mark != NULL ? mark + 1 : NULL,
                                           .content_type = "application/json",
                                           .body = body.len > 0 ? body.at : NULL,
                                           .body_length = body.len,
                                           .role = call->request->role,
                                           .by = call->request->by,
                                           .local = call->request->local,
                                           .room = call->request->room };
        if (alone == NULL)
            rv__api_problem(500, NULL, "out of memory", &ret->answer);
        else
            call->via.ask(call->via.arg, &request, &ret->answer);
    }
    ret->status = ret->answer.kind == RV__ANSWER_WHOLE ? ret->answer.status : 500;
    ret->length = ret->answer.length;
    if (ret->length > max_bytes)
        return;
    if (ret->answer.in_file)
        ret->body = read_file(ret) ? (struct rv__str){ ret->read, ret->length } : none;
    else if (ret->answer.body != NULL)
        ret->body = (struct rv__str){ ret->answer.body, ret->length };
}

void rv__mcp_doc_done(struct rv__mcp_doc *doc)
{
    rv__api_answer_done(&doc->answer);
    rv__free(doc->read);
    *doc = (struct rv__mcp_doc){ .status = 500 };
}

void rv__mcp_ask_run(struct rv__mcp_call *call, const char *run_id, const char *what,
                     size_t max_bytes, struct rv__mcp_doc *ret)
{
    struct rv__buf path;
    rv__buf_init(&path, RV__MCP_ARENA_BYTES);
    rv__buf_text(&path, "/api/v1/runs/");
    rv__mcp_put_encoded(&path, rv__str(run_id));
    rv__buf_text(&path, what);
    rv__mcp_ask(call, "GET", &path, none, max_bytes, ret);
    rv__buf_done(&path);
}

void rv__mcp_ask_outcome(struct rv__mcp_call *call, const char *run_id, struct rv__mcp_doc *ret)
{
    rv__mcp_ask_run(call, run_id, "/wait?timeoutMs=0", RV__MCP_RESULT_BYTES, ret);
}

const char *rv__mcp_detail(struct rv__mcp_call *call, const struct rv__mcp_doc *doc)
{
    const char *text = doc->body.len > 0 ? rv__mcp_text(call, doc->body, "detail") : NULL;
    return text != NULL ? text : "the request could not be answered";
}

bool rv__mcp_has_ended(struct rv__str run)
{
    static const char *const ends[] = { "completed", "failed", "cancelled" };
    struct rv__str status;
    if (!rv__json_get(run, "status", &status))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rv__json_string_is(status, rv__str(ends[i])))
            return true;
    return false;
}

/* --------------------------------------------------------------------------------- answers --- */

static void put_server_info(struct rv__buf *out)
{
    rv__buf_text(out, "{\"name\":\"rival\",\"title\":\"Rival\"");
    rv__put_text(out, "version", rv_version());
    rv__buf_char(out, '}');
}

/* End the message that begins at `begin`: one line. Line breaks can only be white space in JSON. If the message did
 * not fit, an error is sent instead. */
static void end_line(struct rv__mcp_call *call, size_t begin)
{
    struct rv__buf *out = &call->out;
    if (out->rc < 0) {
        bool memory = out->rc == RV_ENOMEM;
        rv__buf_reset(out);
        if (memory)
            rv__buf_done(out);
        rv__buf_init(out, RV__MCP_OUT_BYTES);
        rv__buf_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
        rv__buf_str(out, call->id);
        rv__buf_fmt(out, ",\"error\":{\"code\":%d,\"message\":\"%s\"}}\n", RV__MCP_INTERNAL,
                    memory ? "out of memory" : "the answer is too long");
        return;
    }
    for (size_t i = begin; i < out->len; i++)
        if (out->text[i] == '\n' || out->text[i] == '\r')
            out->text[i] = ' ';
    rv__buf_char(out, '\n');
}

/* Where the last line begins. */
static size_t line_begin(const struct rv__buf *out)
{
    size_t at = out->len;
    while (at > 0 && out->text[at - 1] != '\n')
        at--;
    return at;
}

static void begin_message(struct rv__mcp_call *call)
{
    rv__buf_text(&call->out, "{\"jsonrpc\":\"2.0\"");
}

void rv__mcp_error(struct rv__mcp_call *call, int http, int code, const char *data, const char *fmt,
                   ...)
{
    char message[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args); /* a longer one is cut */
    va_end(args);
    size_t begin = call->out.len;
    call->status = call->request->http ? http : 200;
    begin_message(call);
    rv__buf_text(&call->out, ",\"id\":");
    rv__buf_str(&call->out, rv__str_none(call->id) ? rv__str("null") : call->id);
    rv__buf_fmt(&call->out, ",\"error\":{\"code\":%d", code);
    rv__put_text(&call->out, "message", message);
    rv__put_json(&call->out, "data", data);
    rv__buf_text(&call->out, "}}");
    end_line(call, begin);
}

void rv__mcp_refused(struct rv__mcp_call *call, const struct rv__mcp_doc *doc)
{
    const char *detail = rv__mcp_detail(call, doc);
    bool role = doc->status == 401 || doc->status == 403;
    int code = doc->status == 404 || doc->status == 422 || doc->status == 400 ? RV__MCP_PARAMS
               : doc->status >= 500                                           ? RV__MCP_INTERNAL
                                                                              : doc->status;
    rv__mcp_error(call, role ? doc->status : 200, code, NULL, "%s", detail);
}

void rv__mcp_result(struct rv__mcp_call *call, const char *type)
{
    begin_message(call);
    rv__buf_text(&call->out, ",\"id\":");
    rv__buf_str(&call->out, call->id);
    rv__buf_text(&call->out, ",\"result\":{");
    call->result_at = call->out.len;
    if (call->modern) {
        rv__buf_text(&call->out, ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
        put_server_info(&call->out);
        rv__buf_fmt(&call->out, "},\"resultType\":\"%s\"", type);
    }
}

void rv__mcp_result_end(struct rv__mcp_call *call)
{
    struct rv__buf *out = &call->out;
    if (out->rc == RV_OK && call->result_at < out->len && out->text[call->result_at] == ',')
        out->text[call->result_at] = ' '; /* the first member */
    rv__buf_text(out, "}}");
    end_line(call, out->rc < 0 ? 0 : line_begin(out));
}

void rv__mcp_notify(struct rv__mcp_call *call, const char *method)
{
    begin_message(call);
    rv__put_text(&call->out, "method", method);
    rv__buf_text(&call->out, ",\"params\":{");
    call->result_at = call->out.len;
    if (call->waits == RV__MCP_WAITS_CHANGE) {
        rv__buf_text(&call->out, ",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
        rv__buf_str(&call->out, call->id);
        rv__buf_char(&call->out, '}');
    }
}

void rv__mcp_notify_end(struct rv__mcp_call *call)
{
    rv__mcp_result_end(call); /* it ends in the same way */
}

void rv__mcp_put_cache(struct rv__mcp_call *call)
{
    if (call->modern) /* lists may change at any time, and depend on the caller */
        rv__buf_text(&call->out, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
}

/* ---------------------------------------------------------------------------------- params --- */

const char *rv__mcp_text(struct rv__mcp_call *call, struct rv__str object, const char *key)
{
    struct rv__str value, text;
    if (rv__str_none(object) || !rv__json_get(object, key, &value) ||
        rv__json_string(value, &call->arena, &text) < 0 || memchr(text.at, '\0', text.len) != NULL)
        return NULL;
    return rv__arena_dup(&call->arena, text.at, text.len);
}

bool rv__mcp_offset(struct rv__mcp_call *call, size_t *ret)
{
    struct rv__str cursor = none;
    *ret = 0;
    if (!rv__str_none(call->params))
        (void)rv__json_get(call->params, "cursor", &cursor);
    if (rv__str_none(cursor))
        return true;
    const char *text = rv__mcp_text(call, call->params, "cursor");
    size_t n = 0;
    for (; text != NULL && *text >= '0' && *text <= '9' && n < INT32_MAX; text++)
        n = n * 10 + (size_t)(*text - '0');
    if (text == NULL || *text != '\0' || n == 0 || n >= INT32_MAX) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL,
                      "`cursor` is not the nextCursor of an answer");
        return false;
    }
    *ret = n;
    return true;
}

void rv__mcp_list_runs(struct rv__mcp_call *call, const char *member,
                       void (*put)(struct rv__mcp_call *call, struct rv__str run,
                                   const char *run_id))
{
    const char *cursor = rv__mcp_text(call, call->params, "cursor");
    struct rv__buf path;
    struct rv__mcp_doc doc;
    struct rv__str list, run, next;
    struct rv__json_iter it;
    const char *comma = "";
    rv__buf_init(&path, RV__MCP_ARENA_BYTES);
    rv__buf_fmt(&path, "/api/v1/runs?limit=%d", (int)RV__MCP_PAGE);
    if (cursor != NULL) {
        rv__buf_text(&path, "&cursor=");
        rv__mcp_put_encoded(&path, rv__str(cursor));
    }
    rv__mcp_ask(call, "GET", &path, none, RV__MCP_READ_BYTES, &doc);
    rv__buf_done(&path);
    if (doc.status != 200 || rv__str_none(doc.body) || !rv__json_get(doc.body, "runs", &list)) {
        rv__mcp_refused(call, &doc);
        rv__mcp_doc_done(&doc);
        return;
    }
    rv__mcp_result(call, "complete");
    rv__buf_fmt(&call->out, ",\"%s\":[", member);
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &run)) {
        const char *run_id = rv__mcp_text(call, run, "runId");
        if (run_id == NULL)
            continue;
        rv__buf_text(&call->out, comma);
        put(call, run, run_id);
        comma = ",";
    }
    rv__buf_char(&call->out, ']');
    if (rv__json_get(doc.body, "nextCursor", &next) && rv__json_type(next) == RV__JSON_STRING) {
        rv__buf_text(&call->out, ",\"nextCursor\":");
        rv__buf_str(&call->out, next);
    }
    rv__mcp_put_cache(call);
    rv__mcp_result_end(call);
    rv__mcp_doc_done(&doc);
}

/* ----------------------------------------------------------------------------------- lobby --- */

static void put_capabilities(struct rv__mcp_call *call)
{
    struct rv__buf *out = &call->out;
    rv__buf_text(out, ",\"capabilities\":{\"tools\":{");
    if (call->modern)
        rv__buf_text(out, "\"listChanged\":true");
    rv__buf_text(out, "},\"resources\":{}");
    if (call->modern)
        rv__buf_text(out, ",\"extensions\":{\"" RV__MCP_TASKS_EXTENSION "\":{}}");
    else if (call->revision == RV__MCP_2025_11_25)
        rv__buf_text(out, ",\"tasks\":{\"list\":{},\"cancel\":{},"
                          "\"requests\":{\"tools\":{\"call\":{}}}}");
    rv__buf_char(out, '}');
}

static void put_instructions(struct rv__buf *out)
{
    rv__put_text(out, "instructions",
                 "Each workflow of this Rival server is a tool. A call starts a run, which is "
                 "durable: it goes on if you or the server go away. A call that takes long returns "
                 "the run's id (runId): rival_wait waits for it, rival_why says what it waits for, "
                 "rival_decide answers what it asks, rival_cancel ends it.");
}

/* A name for a session: its revision, and random bits. */
static bool name_session(struct rv__mcp_call *call)
{
    uint64_t a, b;
    if (rv__random_seed_system(&a, NULL) < 0 || rv__random_seed_system(&b, NULL) < 0)
        return false;
    (void)snprintf(call->session, sizeof call->session, "%s.%016llx%016llx",
                   rv__mcp_revisions[call->revision], (unsigned long long)a, (unsigned long long)b);
    return true;
}

static void initialize(struct rv__mcp_call *call)
{
    const char *wanted = rv__mcp_text(call, call->params, "protocolVersion");
    if (wanted == NULL) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`protocolVersion` is missing");
        return;
    }
    int revision = revision_of(rv__str(wanted));
    call->revision = revision == RV__MCP_2025_06_18 ? RV__MCP_2025_06_18 : RV__MCP_2025_11_25;
    if (call->request->http && !name_session(call)) {
        rv__mcp_error(call, 503, RV__MCP_INTERNAL, NULL,
                      "no random number could be had for a session");
        return;
    }
    rv__mcp_result(call, "complete");
    rv__put_text(&call->out, "protocolVersion", rv__mcp_revisions[call->revision]);
    put_capabilities(call);
    rv__buf_text(&call->out, ",\"serverInfo\":");
    put_server_info(&call->out);
    put_instructions(&call->out);
    rv__mcp_result_end(call);
}

static void put_supported(struct rv__buf *out)
{
    rv__buf_char(out, '[');
    for (int i = RV__MCP_REVISIONS - 1; i >= 0; i--)
        rv__buf_fmt(out, "\"%s\"%s", rv__mcp_revisions[i], i > 0 ? "," : "]");
}

static void discover(struct rv__mcp_call *call)
{
    rv__mcp_result(call, "complete");
    rv__buf_text(&call->out, ",\"supportedVersions\":");
    put_supported(&call->out);
    put_capabilities(call);
    rv__buf_text(&call->out, ",\"serverInfo\":");
    put_server_info(&call->out);
    put_instructions(&call->out);
    rv__mcp_put_cache(call);
    rv__mcp_result_end(call);
}

static void ping(struct rv__mcp_call *call)
{
    rv__mcp_result(call, "complete");
    rv__mcp_result_end(call);
}

enum { LEGACY = 1, MODERN = 2, BOTH = 3, LEGACY_TASKS = 4 };
static const struct method {
    const char *name;
    void (*run)(struct rv__mcp_call *call);
    unsigned eras;
    const char *named_by; /* the member of params that Mcp-Name must repeat; NULL = none */
    bool tasks;           /* only for clients with the extension */
} methods[] = {
    { "initialize", initialize, LEGACY, NULL, false },
    { "ping", ping, LEGACY, NULL, false },
    { "server/discover", discover, MODERN, NULL, false },
    { "tools/list", rv__mcp_tools_list, BOTH, NULL, false },
    { "tools/call", rv__mcp_tools_call, BOTH, "name", false },
    { "resources/list", rv__mcp_resources_list, BOTH, NULL, false },
    { "resources/templates/list", rv__mcp_templates_list, BOTH, NULL, false },
    { "resources/read", rv__mcp_resources_read, BOTH, "uri", false },
    { "subscriptions/listen", rv__mcp_listen, MODERN, NULL, false },
    { "tasks/get", rv__mcp_tasks_get, MODERN | LEGACY_TASKS, "taskId", true },
    { "tasks/update", rv__mcp_tasks_update, MODERN, "taskId", true },
    { "tasks/cancel", rv__mcp_tasks_cancel, MODERN | LEGACY_TASKS, "taskId", true },
    { "tasks/list", rv__mcp_tasks_list, LEGACY_TASKS, NULL, false },
    { "tasks/result", rv__mcp_tasks_result, LEGACY_TASKS, NULL, false },
};

static const struct method *find_method(const struct rv__mcp_call *call)
{
    unsigned era = call->modern                           ? MODERN
                   : call->revision == RV__MCP_2025_11_25 ? LEGACY | LEGACY_TASKS
                                                          : LEGACY;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if ((methods[i].eras & era) != 0 &&
            rv__json_string_is(call->method, rv__str(methods[i].name)))
            return &methods[i];
    return NULL;
}

/* ------------------------------------------------------------------------------- revisions --- */

static struct rv__str member(struct rv__str object, const char *key)
{
    struct rv__str value;
    return !rv__str_none(object) && rv__json_get(object, key, &value) ? value : none;
}

static bool is_object(struct rv__str value)
{
    return !rv__str_none(value) && rv__json_type(value) == RV__JSON_OBJECT;
}

/* Does the header match the body? It may have white space around it, and may be in base64. */
static bool header_says(const char *header, struct rv__str text)
{
    static const char prefix[] = "=?base64?", suffix[] = "?=";
    header += strspn(header, " \t");
    size_t len = strlen(header), edges = sizeof prefix - 1 + sizeof suffix - 1;
    while (len > 0 && (header[len - 1] == ' ' || header[len - 1] == '\t'))
        len--;
    if (len < edges || strncmp(header, prefix, sizeof prefix - 1) != 0 ||
        strncmp(header + len - (sizeof suffix - 1), suffix, sizeof suffix - 1) != 0)
        return rv__str_eq(text, (struct rv__str){ header, len });
    struct rv__buf encoded;
    rv__buf_init(&encoded, RV__MCP_ARENA_BYTES);
    rv__buf_base64(&encoded, text);
    struct rv__str given = { header + sizeof prefix - 1, len - edges };
    bool same = encoded.rc == RV_OK && rv__str_eq(rv__buf_view(&encoded), given);
    rv__buf_done(&encoded);
    return same;
}

static bool check_header(struct rv__mcp_call *call, const char *name, const char *header,
                         struct rv__str value)
{
    struct rv__str text;
    if (header == NULL) {
        rv__mcp_error(call, 400, RV__MCP_HEADERS, NULL, "the header %s is missing", name);
        return false;
    }
    if (rv__str_none(value) || rv__json_string(value, &call->arena, &text) < 0)
        return true; /* the method reports that */
    if (header_says(header, text))
        return true;
    rv__mcp_error(call, 400, RV__MCP_HEADERS, NULL, "the header %s says '%.100s', the body '%.*s'",
                  name, header, (int)(text.len < 100 ? text.len : 100), text.at);
    return false;
}

static void unsupported(struct rv__mcp_call *call, struct rv__str requested)
{
    struct rv__buf data;
    rv__buf_init(&data, 1u << 16);
    rv__buf_text(&data, "{\"supported\":");
    put_supported(&data);
    rv__buf_text(&data, ",\"requested\":");
    rv__buf_str(&data, requested);
    rv__buf_char(&data, '}');
    rv__mcp_error(call, 400, RV__MCP_VERSION, rv__buf_err(&data, NULL) == RV_OK ? data.text : NULL,
                  "unsupported protocol version");
    rv__buf_done(&data);
}

/* 2026-07-28: check what every request must contain. False: missing, and the call is answered. */
static bool check_modern(struct rv__mcp_call *call)
{
    struct rv__str meta = member(call->params, "_meta");
    struct rv__str version = member(meta, "io.modelcontextprotocol/protocolVersion");
    struct rv__str can = member(meta, "io.modelcontextprotocol/clientCapabilities");
    const struct rv__mcp_request *request = call->request;
    struct rv__str text;
    call->modern = true;
    call->revision = RV__MCP_2026_07_28;
    if (rv__str_none(version) || rv__json_string(version, &call->arena, &text) < 0 ||
        !is_object(can)) {
        rv__mcp_error(call, 400, RV__MCP_PARAMS, NULL,
                      "`_meta` needs io.modelcontextprotocol/protocolVersion (a text) and "
                      "io.modelcontextprotocol/clientCapabilities (an object)");
        return false;
    }
    if (request->http && !check_header(call, "MCP-Protocol-Version", request->version, version))
        return false;
    if (!rv__str_is(text, rv__mcp_revisions[RV__MCP_2026_07_28])) {
        unsupported(call, version);
        return false;
    }
    call->tasks = is_object(member(member(can, "extensions"), RV__MCP_TASKS_EXTENSION));
    call->elicits = is_object(member(can, "elicitation"));
    struct rv__str token = member(meta, "progressToken");
    if (!rv__str_none(token) &&
        (rv__json_type(token) == RV__JSON_STRING || rv__json_type(token) == RV__JSON_NUMBER))
        call->progress = token;
    return true;
}

static bool check_names(struct rv__mcp_call *call, const struct method *method)
{
    const struct rv__mcp_request *request = call->request;
    if (!request->http || !call->modern)
        return true;
    if (!check_header(call, "Mcp-Method", request->method, call->method))
        return false;
    return method == NULL || method->named_by == NULL ||
           check_header(call, "Mcp-Name", request->name, member(call->params, method->named_by));
}

/* 2025: the revision is in the header, or in the session's name. */
static bool check_legacy(struct rv__mcp_call *call)
{
    const struct rv__mcp_request *request = call->request;
    struct rv__str token = member(member(call->params, "_meta"), "progressToken");
    const char *version = request->version;
    call->revision = RV__MCP_2025_06_18;
    if (request->session != NULL) {
        struct rv__str session = rv__str(request->session);
        struct rv__str name = { session.at, session.len < 10 ? session.len : 10 };
        int revision = revision_of(name);
        if (revision >= 0)
            call->revision = (enum rv__mcp_revision)revision;
    }
    if (version != NULL) {
        int revision = revision_of(rv__str(version));
        if (revision < 0) {
            struct rv__buf said;
            rv__buf_init(&said, 1u << 16);
            rv__buf_json_str(&said, rv__str(version));
            unsupported(call, rv__buf_view(&said));
            rv__buf_done(&said);
            return false;
        }
        call->revision = (enum rv__mcp_revision)revision;
    }
    if (!rv__str_none(token) &&
        (rv__json_type(token) == RV__JSON_STRING || rv__json_type(token) == RV__JSON_NUMBER))
        call->progress = token;
    return true;
}

bool rv__mcp_session_valid(const char *session)
{
    struct rv__str text = rv__str(session);
    if (text.len != RV__MCP_SESSION_SIZE - 1 || text.at[10] != '.')
        return false;
    int revision = revision_of((struct rv__str){ text.at, 10 });
    if (revision < 0 || revision >= RV__MCP_2026_07_28)
        return false;
    for (size_t i = 11; i < text.len; i++)
        if (strchr("0123456789abcdef", text.at[i]) == NULL)
            return false;
    return true;
}

/* --------------------------------------------------------------------------------- the call --- */

/* Parse the message. False: not a message, and answered; or one that needs no answer. */
static bool parse(struct rv__mcp_call *call)
{
    struct rv__str text = { call->request->body != NULL ? call->request->body : "",
                            call->request->length };
    struct rv__str message, version, id;
    rv_error err;
    int rc = rv__json_check(text, RV__JSON_VALUE_DEPTH, &message, &err);
    if (rc < 0) {
        rv__mcp_error(call, 400, rc == RV_ETOOBIG ? RV__MCP_REQUEST : RV__MCP_PARSE, NULL,
                      "the message is not JSON: %s", err.message);
        return false;
    }
    if (rv__json_type(message) != RV__JSON_OBJECT) {
        rv__mcp_error(call, 400, RV__MCP_REQUEST, NULL,
                      rv__json_type(message) == RV__JSON_ARRAY
                          ? "a message is one object: batches are not part of these revisions"
                          : "a message is an object");
        return false;
    }
    version = member(message, "jsonrpc");
    id = member(message, "id");
    call->method = member(message, "method");
    call->params = member(message, "params");
    bool numbered = !rv__str_none(id);
    int64_t number;
    bool good_id = numbered &&
                   (rv__json_type(id) == RV__JSON_STRING || rv__json_int(id, &number) == RV_OK);
    if (good_id)
        call->id = id;
    if (rv__str_none(version) || !rv__json_string_is(version, rv__str("2.0"))) {
        rv__mcp_error(call, 400, RV__MCP_REQUEST, NULL, "`jsonrpc` must be \"2.0\"");
        return false;
    }
    if (numbered && !good_id) {
        rv__mcp_error(call, 400, RV__MCP_REQUEST, NULL, "`id` must be a text or an integer");
        return false;
    }
    if (rv__str_none(call->method)) {
        bool response = numbered && (!rv__str_none(member(message, "result")) ||
                                     !rv__str_none(member(message, "error")));
        if (!response)
            rv__mcp_error(call, 400, RV__MCP_REQUEST, NULL, "`method` is missing");
        else
            call->status = 202; /* an answer to a request that we have not made */
        return false;
    }
    if (rv__json_type(call->method) != RV__JSON_STRING) {
        rv__mcp_error(call, 400, RV__MCP_REQUEST, NULL, "`method` must be a text");
        return false;
    }
    if (!rv__str_none(call->params) && rv__json_type(call->params) != RV__JSON_OBJECT) {
        rv__mcp_error(call, 400, RV__MCP_PARAMS, NULL, "`params` must be an object");
        return false;
    }
    if (!numbered) {
        call->status = 202; /* a notification: ignored */
        return false;
    }
    return true;
}

static bool is_modern(const struct rv__mcp_call *call)
{
    const char *version = call->request->version;
    if (!rv__str_none(
            member(member(call->params, "_meta"), "io.modelcontextprotocol/protocolVersion")))
        return true;
    if (version != NULL)
        return revision_of(rv__str(version)) == RV__MCP_2026_07_28;
    return rv__json_string_is(call->method, rv__str("server/discover"));
}

static void run(struct rv__mcp_call *call)
{
    if (!parse(call))
        return;
    if (!(is_modern(call) ? check_modern(call) : check_legacy(call)))
        return;
    int agreed = revision_of(rv__str(call->request->revision));
    if (!call->modern && agreed >= 0)
        call->revision = (enum rv__mcp_revision)agreed;
    const struct method *method = find_method(call);
    if (!check_names(call, method))
        return;
    if (method == NULL) {
        rv__mcp_error(call, call->modern ? 404 : 200, RV__MCP_METHOD, NULL,
                      "there is no method %.*s in revision %s",
                      (int)(call->method.len < 100 ? call->method.len : 100), call->method.at,
                      rv__mcp_revisions[call->revision]);
    } else if (call->request->role < RV__ROLE_VIEWER) {
        rv__mcp_error(call, 403, 403, NULL, "this needs the role viewer; the token has the role %s",
                      rv__role_name(call->request->role));
    } else if (method->tasks && call->modern && !call->tasks) {
        rv__mcp_error(call, 400, RV__MCP_CAPABILITY,
                      "{\"requiredCapabilities\":{\"extensions\":{\"" RV__MCP_TASKS_EXTENSION
                      "\":{}}}}",
                      "missing required client capability: " RV__MCP_TASKS_EXTENSION);
    } else {
        method->run(call);
    }
}

struct rv__mcp_call *rv__mcp_begin(const struct rv__mcp_via *via,
                                   const struct rv__mcp_request *request)
{
    struct rv__mcp_call *call = rv__zalloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->via = *via;
    call->request = request;
    call->status = 200;
    call->begun_ms = rv__mono_ms(rv__clock_real());
    rv__arena_init(&call->arena, RV__MCP_ARENA_BYTES);
    rv__buf_init(&call->out, RV__MCP_OUT_BYTES);
    run(call);
    return call;
}

void rv__mcp_free(struct rv__mcp_call *call)
{
    if (call == NULL)
        return;
    rv__buf_done(&call->out);
    rv__arena_done(&call->arena);
    rv__free(call->listened);
    rv__free(call);
}

int rv__mcp_status(const struct rv__mcp_call *call)
{
    return call->status;
}

const char *rv__mcp_session(const struct rv__mcp_call *call)
{
    return call->session;
}

const char *rv__mcp_revision(const struct rv__mcp_call *call)
{
    return rv__mcp_revisions[call->revision];
}

struct rv__buf *rv__mcp_out(struct rv__mcp_call *call)
{
    return &call->out;
}

bool rv__mcp_message(struct rv__str body, struct rv__mcp_peek *ret)
{
    struct rv__str message, params;
    *ret = (struct rv__mcp_peek){ .method = none };
    if (rv__json_check(body, RV__JSON_VALUE_DEPTH, &message, NULL) < 0 || !is_object(message))
        return false;
    ret->id = member(message, "id");
    ret->method = member(message, "method");
    params = member(message, "params");
    if (is_object(params))
        ret->cancels = member(params, "requestId");
    return true;
}
