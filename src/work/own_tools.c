/* own_tools.c: the built-in tools of a chat, which need no server: they read its run within the scope of its
 * execution (access.h), or set its result (SPEC §9).
 *
 * A tool that the scope does not allow is not offered, and refused if it is called. What was read is recorded with the
 * attempt of the call, so it is on disk before the model gets the answer. Runs on the evaluator's thread. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

enum {
    LINES = 100, /* of a log, by default */
    MOST_LINES = 1000,
    LINES_BYTES = 256 << 10, /* limit of all lines of an answer: as much as a model can use */
    PAGE = 1000,             /* lines that are read at once */
    LISTED = 100,            /* attachments of a list, by default */
};

#define LOG_SCHEMA(more)                                                   \
    "{\"type\":\"object\",\"properties\":{" more                           \
    "\"max_lines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000}," \
    "\"skip_lines\":{\"type\":\"integer\",\"minimum\":0}}"
#define WHICH                                                            \
    "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"}," \
    "\"state\":{\"type\":\"string\"},\"stage\":{\"type\":\"string\"}}}"

static const struct {
    const char *description; /* JSON, as the schema */
    const char *schema;
} offers[OWN_TOOLS] = {
    [OWN_LOGS_HEAD] = { "\"The first lines of the log of this run\"", LOG_SCHEMA("") "}" },
    [OWN_LOGS_TAIL] = { "\"The last lines of the log of this run; skip_lines are left out at its "
                        "end\"",
                        LOG_SCHEMA("") "}" },
    [OWN_LOGS_SEARCH] = { "\"The lines of the log of this run that have a text in them\"",
                          LOG_SCHEMA("\"query\":{\"type\":\"string\"},") ",\"required\":[\"query\"]"
                                                                         "}" },
    [OWN_ATTACHMENT_LIST] = { "\"The attachments of this run: what its states left, without their "
                              "results\"",
                              "{\"type\":\"object\",\"properties\":{\"state\":{\"type\":\"string\"}"
                              ",\"stage\":{\"type\":\"string\"},\"status\":{\"enum\":[\"init\","
                              "\"running\",\"finished\",\"errored\",\"skipped\"]},\"offset\":{"
                              "\"type\":\"integer\",\"minimum\":0},\"limit\":{\"type\":\"integer\","
                              "\"minimum\":1,\"maximum\":1000}}}" },
    [OWN_ATTACHMENT_GET] = { "\"One attachment with its result: by its id, or the last one of a "
                             "state\"",
                             WHICH },
    [OWN_ATTACHMENT_EXISTS] = { "\"Is there such an attachment?\"", WHICH },
    [OWN_SET_OUTPUTS] = { "\"Set named values of your result. Later ones replace earlier ones\"",
                          "{\"type\":\"object\"}" },
};

/* Whether the scope allows the tool. An execution with the scope `explicit` is given what it may read, so it gets no
 * tool to read more. */
static bool is_allowed(const struct rv_ctx *ctx, enum rv__own_tool tool)
{
    enum rv__access access = rv__ctx_access(ctx, NULL);
    if (tool == OWN_SET_OUTPUTS)
        return true;
    return tool == OWN_ATTACHMENT_GET ? access == ACCESS_ALL : access != ACCESS_NONE;
}

bool rv__own_tool_offer(const struct rv_ctx *ctx, enum rv__own_tool tool,
                        struct rv__str *description, struct rv__str *schema)
{
    *description = rv__str(offers[tool].description);
    *schema = rv__str(offers[tool].schema);
    return is_allowed(ctx, tool);
}

/* ------------------------------------------------------------------------------- arguments --- */

static void refuse(struct rv_ctx *ctx, const char *code)
{
    rv__ctx_error_code(ctx, code);
    ctx->behavior = BEHAVIOR_FINAL; /* a retry would fail in the same way */
}

/* False: it is present, and not a number in that range. */
static bool take_number(struct rv_ctx *ctx, struct rv__str arguments, const char *key,
                        int64_t least, int64_t most, int64_t *ret)
{
    struct rv__str json;
    if (!rv__json_get(arguments, key, &json) || rv__json_type(json) == RV__JSON_NULL)
        return true;
    if (rv__json_int(json, ret) == RV_OK && *ret >= least && *ret <= most)
        return true;
    rv_fail(ctx, "invalid %s: must be a whole number from %lld to %lld", key, (long long)least,
            (long long)most);
    refuse(ctx, "badInput");
    return false;
}

/* *ret is NULL if it is absent. False: it is present, and not a string. */
static bool take_text(struct rv_ctx *ctx, struct rv__str arguments, const char *key,
                      const char **ret)
{
    struct rv__str json;
    *ret = NULL;
    if (!rv__json_get(arguments, key, &json) || rv__json_type(json) == RV__JSON_NULL)
        return true;
    if (rv__json_type(json) == RV__JSON_STRING)
        *ret = rv__ctx_c_text(ctx, rv__ctx_text(ctx, json), key);
    else
        rv_fail(ctx, "invalid %s: must be a text", key);
    if (*ret == NULL)
        refuse(ctx, "badInput");
    return *ret != NULL;
}

static void fail(struct rv_ctx *ctx, int rc, const rv_error *err)
{
    rv_fail(ctx, "%s", err->message);
    if (rc == RV_EDENIED || rc == RV_EINVAL || rc == RV_ENOTFOUND)
        refuse(ctx, rc == RV_EDENIED ? "denied" : "badInput");
}

static void answer(struct rv_ctx *ctx, const struct rv__buf *out)
{
    if (out->rc != RV_OK || rv__ctx_result(ctx, rv__buf_view(out)) < 0)
        rv_fail(ctx, "the answer is too long, or there is no memory for it");
    else
        ctx->outcome = MSG_DONE;
}

/* ------------------------------------------------------------------------------------- logs --- */

static void put_text(struct rv__buf *out, const char *key, const char *text)
{
    rv__buf_fmt(out, "\"%s\":", key);
    rv__buf_json_str(out, rv__str(text));
}

static void put_line(struct rv__buf *out, const rv_log_line *line)
{
    static const char *const levels[] = {
        [RV_DEBUG] = "debug", [RV_INFO] = "info", [RV_WARN] = "warn", [RV_ERROR] = "error"
    };
    bool known = line->level >= RV_DEBUG && line->level <= RV_ERROR;
    struct rv__str metadata = rv__str(line->metadata), role;
    rv__buf_fmt(out, "{\"timestamp\":%lld,", (long long)line->at);
    put_text(out, "level", levels[known ? line->level : RV_ERROR]);
    rv__buf_char(out, ',');
    put_text(out, "path", line->path);
    rv__buf_fmt(out, ",\"attempt\":%d", line->attempt);
    if (metadata.len > 0 && rv__json_get(metadata, "role", &role)) {
        rv__buf_text(out, ",\"role\":");
        rv__buf_str(out, role);
    }
    rv__buf_char(out, ',');
    put_text(out, "message", line->message);
    rv__buf_char(out, '}');
}

/* Which lines are wanted: after the first `skip` lines, or the last ones. */
struct wanted {
    enum rv__own_tool tool;
    const char *text; /* NULL: any */
    int64_t skip, count;
    bool noted; /* that the log is read was recorded already */
};

/* Call `take` with each line, oldest first, until it returns false. */
static int each_line(struct rv_ctx *ctx, struct wanted *wanted,
                     bool (*take)(void *arg, const rv_log_line *line), void *arg, rv_error *err)
{
    rv_log_query query = {
        .size = sizeof query, .level = RV_INFO, .text = wanted->text, .limit = PAGE
    };
    bool more = true;
    while (more) {
        rv_log_list *list = NULL;
        int rc = rv__access_logs(
            ctx, &query, wanted->noted ? NULL : rv__own_tool_name(wanted->tool), &list, err);
        if (rc < 0)
            return rc;
        wanted->noted = true;
        for (size_t i = 0; more && i < list->count; i++)
            more = take(arg, &list->lines[i]);
        more = more && list->count == PAGE;
        query.after = list->next;
        rv_log_list_free(list);
    }
    return RV_OK;
}

static bool count_line(void *arg, const rv_log_line *line)
{
    (void)line;
    ++*(int64_t *)arg;
    return true;
}

struct writing {
    struct rv__buf *out;
    int64_t skip, left;
    bool first, cut;
};

static bool write_line(void *arg, const rv_log_line *line)
{
    struct writing *w = arg;
    if (w->skip > 0) {
        w->skip--;
        return true;
    }
    if (w->left == 0 || w->out->len > LINES_BYTES) {
        w->cut = w->left > 0;
        return false;
    }
    w->left--;
    rv__buf_text(w->out, w->first ? "" : ",");
    w->first = false;
    put_line(w->out, line);
    return true;
}

static void read_logs(struct rv_ctx *ctx, enum rv__own_tool tool, struct rv__str arguments)
{
    struct wanted wanted = { .tool = tool, .count = LINES };
    struct rv__buf out;
    rv_error err;
    int rc = RV_OK;
    if (!take_number(ctx, arguments, "max_lines", 1, MOST_LINES, &wanted.count) ||
        !take_number(ctx, arguments, "skip_lines", 0, INT32_MAX, &wanted.skip) ||
        (tool == OWN_LOGS_SEARCH && !take_text(ctx, arguments, "query", &wanted.text)))
        return;
    struct writing w = { .out = &out, .skip = wanted.skip, .left = wanted.count, .first = true };
    if (tool == OWN_LOGS_TAIL) { /* a line that is written meanwhile is left out */
        int64_t all = 0;
        rc = each_line(ctx, &wanted, count_line, &all, &err);
        int64_t end = all > wanted.skip ? all - wanted.skip : 0;
        w.skip = end > wanted.count ? end - wanted.count : 0;
        w.left = end - w.skip;
    }
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_text(&out, "{\"lines\":[");
    if (rc == RV_OK)
        rc = each_line(ctx, &wanted, write_line, &w, &err);
    rv__buf_text(&out, w.cut ? "],\"cut\":true}" : "]}");
    if (rc < 0)
        fail(ctx, rc, &err);
    else
        answer(ctx, &out);
    rv__buf_done(&out);
}

/* ------------------------------------------------------------------------------ attachments --- */

static void put_attachment(struct rv__buf *out, const rv_attachment *one)
{
    rv__buf_char(out, '{');
    put_text(out, "id", one->id);
    rv__buf_char(out, ',');
    put_text(out, "stage", one->stage);
    rv__buf_char(out, ',');
    put_text(out, "state", one->state);
    rv__buf_char(out, ',');
    put_text(out, "agent", one->agent);
    rv__buf_fmt(out, ",\"attempt\":%d,", one->attempt);
    put_text(out, "status", one->status);
    rv__buf_char(out, ',');
    put_text(out, "description", one->description);
    rv__buf_fmt(out, ",\"startedAt\":%lld", (long long)one->started_at);
    if (one->completed_at != 0)
        rv__buf_fmt(out, ",\"completedAt\":%lld", (long long)one->completed_at);
    rv__buf_text(out, one->superseded ? ",\"superseded\":true" : "");
    if (*one->result != '\0')
        rv__buf_fmt(out, ",\"result\":%s", one->result);
    if (*one->error != '\0')
        rv__buf_fmt(out, ",\"error\":%s", one->error);
    rv__buf_char(out, '}');
}

static void list_attachments(struct rv_ctx *ctx, struct rv__str arguments)
{
    rv_attachment_query query = { .size = sizeof query };
    rv_attachment_list *list = NULL;
    struct rv__buf out;
    rv_error err;
    int64_t offset = 0, limit = LISTED;
    if (!take_text(ctx, arguments, "state", &query.state) ||
        !take_text(ctx, arguments, "stage", &query.stage) ||
        !take_text(ctx, arguments, "status", &query.status) ||
        !take_number(ctx, arguments, "offset", 0, INT32_MAX, &offset) ||
        !take_number(ctx, arguments, "limit", 1, MOST_LINES, &limit))
        return;
    query.offset = (size_t)offset;
    query.limit = (size_t)limit;
    int rc = rv__access_attachments(ctx, &query, rv__own_tool_name(OWN_ATTACHMENT_LIST), &list,
                                    &err);
    if (rc < 0) {
        fail(ctx, rc, &err);
        return;
    }
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    rv__buf_text(&out, "{\"attachments\":[");
    for (size_t i = 0; i < list->count; i++) {
        rv__buf_text(&out, i > 0 ? "," : "");
        put_attachment(&out, &list->attachments[i]);
    }
    rv__buf_fmt(&out, "],\"total\":%zu}", list->total);
    answer(ctx, &out);
    rv__buf_done(&out);
    rv_attachment_list_free(list);
}

/* The id of the attachment that is meant: the given id, or the last one of the given state. "": there is none. In
 * the arena. */
static const char *find_attachment(struct rv_ctx *ctx, enum rv__own_tool tool,
                                   struct rv__str arguments)
{
    rv_attachment_query query = { .size = sizeof query, .limit = 1 };
    rv_attachment_list *list = NULL;
    rv_error err;
    if (!take_text(ctx, arguments, "id", &query.id) ||
        !take_text(ctx, arguments, "state", &query.state) ||
        !take_text(ctx, arguments, "stage", &query.stage))
        return NULL;
    if (query.id == NULL && query.state == NULL) {
        rv_fail(ctx, "which one? Give its id, or its state");
        refuse(ctx, "badInput");
        return NULL;
    }
    query.latest = query.id == NULL;
    int rc = rv__access_attachments(ctx, &query, rv__own_tool_name(tool), &list, &err);
    if (rc < 0) {
        fail(ctx, rc, &err);
        return NULL;
    }
    const char *id = "";
    if (list->count > 0)
        id = rv__arena_dup(&ctx->arena, list->attachments[0].id, strlen(list->attachments[0].id));
    rv_attachment_list_free(list);
    if (id == NULL)
        rv_fail(ctx, "out of memory");
    return id;
}

static void get_attachment(struct rv_ctx *ctx, struct rv__str arguments)
{
    const char *id = find_attachment(ctx, OWN_ATTACHMENT_GET, arguments);
    rv_attachment_query query = { .size = sizeof query, .id = id, .results = true };
    rv_attachment_list *list = NULL;
    struct rv__buf out;
    rv_error err;
    if (id == NULL)
        return;
    if (*id == '\0') {
        rv_fail(ctx, "there is no such attachment");
        refuse(ctx, "notFound");
        return;
    }
    int rc = rv__access_attachments(ctx, &query, rv__own_tool_name(OWN_ATTACHMENT_GET), &list,
                                    &err);
    if (rc < 0) {
        fail(ctx, rc, &err);
        return;
    }
    rv__buf_init(&out, RV__JSON_MAX_BYTES);
    if (list->count > 0)
        put_attachment(&out, &list->attachments[0]);
    else
        rv__buf_text(&out, "null"); /* deleted by retention meanwhile */
    answer(ctx, &out);
    rv__buf_done(&out);
    rv_attachment_list_free(list);
}

static void exists_attachment(struct rv_ctx *ctx, struct rv__str arguments)
{
    const char *id = find_attachment(ctx, OWN_ATTACHMENT_EXISTS, arguments);
    if (id == NULL)
        return;
    if (rv__ctx_result(ctx, rv__str(*id != '\0' ? "{\"exists\":true}" : "{\"exists\":false}")) < 0)
        rv_fail(ctx, "out of memory");
    else
        ctx->outcome = MSG_DONE;
}

/* -------------------------------------------------------------------------------- all of it --- */

void rv__own_tool_run(struct rv_ctx *ctx, enum rv__own_tool tool, struct rv__str arguments)
{
    if (rv__json_type(arguments) != RV__JSON_OBJECT) {
        rv_fail(ctx, "the arguments of %s must be a JSON object", rv__own_tool_name(tool));
        refuse(ctx, "badInput");
        return;
    }
    if (!is_allowed(ctx, tool)) {
        rv_fail(ctx, "the scope '%s' does not allow %s", rv__access_name(rv__ctx_access(ctx, NULL)),
                rv__own_tool_name(tool));
        refuse(ctx, "denied");
        return;
    }
    switch (tool) {
    case OWN_LOGS_HEAD:
    case OWN_LOGS_TAIL:
    case OWN_LOGS_SEARCH: read_logs(ctx, tool, arguments); break;
    case OWN_ATTACHMENT_LIST: list_attachments(ctx, arguments); break;
    case OWN_ATTACHMENT_GET: get_attachment(ctx, arguments); break;
    case OWN_ATTACHMENT_EXISTS: exists_attachment(ctx, arguments); break;
    case OWN_SET_OUTPUTS: /* the arguments are its result; a turn without calls makes them the result of the chat */
        if (rv__ctx_result(ctx, arguments) < 0)
            rv_fail(ctx, "out of memory");
        else
            ctx->outcome = MSG_DONE;
        break;
    case OWN_TOOLS: break;
    }
}
