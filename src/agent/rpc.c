/* rpc.c: messages of MCP servers, as they come. */
#include "agent/rpc.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"

static const struct rv__str none = { NULL, 0 };

struct rv__str rv__rpc_member(struct rv__str object, const char *key, enum rv__json_type type)
{
    struct rv__str value;
    if (rv__str_none(object) || !rv__json_get(object, key, &value) || rv__json_type(value) != type)
        return none;
    return value;
}

bool rv__rpc_is(struct rv__str json, const char *text)
{
    return !rv__str_none(json) && rv__json_string_is(json, rv__str(text));
}

void rv__rpc_error_text(const struct rv__rpc *rpc, char *text, size_t room)
{
    const size_t most = RV__RPC_ERROR_TEXT - 40; /* the rest is for its code */
    struct rv__str message = rpc->message;
    if (message.len >= 2) /* without its quotes; escapes stay */
        message = (struct rv__str){ message.at + 1, message.len - 2 };
    else
        message = rv__str("no reason given");
    snprintf(text, room, "%.*s (code %" PRId64 ")", (int)(message.len < most ? message.len : most),
             message.at, rpc->code);
}

static int wrong(rv_error *err, const char *why)
{
    return rv__fail(err, RV_EPARSE, "it is no message of JSON-RPC: %s", why);
}

static int read_answer(struct rv__str message, struct rv__rpc *ret, rv_error *err)
{
    struct rv__str error = rv__rpc_member(message, "error", RV__JSON_OBJECT), code;
    ret->number = -1;
    if (!rv__str_none(ret->id))
        (void)rv__json_int(ret->id, &ret->number); /* another type: not ours */
    ret->kind = rv__str_none(error) ? RPC_RESULT : RPC_ERROR;
    if (ret->kind == RPC_RESULT) {
        ret->result = rv__rpc_member(message, "result", RV__JSON_OBJECT);
        return rv__str_none(ret->result) ? wrong(err, "it has neither a result nor an error")
                                         : RV_OK;
    }
    code = rv__rpc_member(error, "code", RV__JSON_NUMBER);
    if (rv__str_none(code) || rv__json_int(code, &ret->code) < 0)
        return wrong(err, "its error has no code");
    ret->message = rv__rpc_member(error, "message", RV__JSON_STRING);
    (void)rv__json_get(error, "data", &ret->data); /* or there is none */
    return RV_OK;
}

int rv__rpc_read(struct rv__str text, struct rv__rpc *ret, rv_error *err)
{
    struct rv__str message, version;
    rv_error why;
    *ret = (struct rv__rpc){ .number = -1 };
    if (text.len > RV__RPC_BYTES)
        return wrong(err, "it is too long");
    if (rv__json_check(text, RV__JSON_VALUE_DEPTH, &message, &why) < 0)
        return rv__fail(err, RV_EPARSE, "it is not JSON: %s", why.message);
    if (rv__json_type(message) != RV__JSON_OBJECT)
        return wrong(err, "it is no object");
    version = rv__rpc_member(message, "jsonrpc", RV__JSON_STRING);
    if (rv__str_none(version) || !rv__json_string_is(version, rv__str("2.0")))
        return wrong(err, "its `jsonrpc` is not \"2.0\"");
    (void)rv__json_get(message, "id", &ret->id); /* or there is none */
    ret->method = rv__rpc_member(message, "method", RV__JSON_STRING);
    if (rv__str_none(ret->method))
        return read_answer(message, ret, err);
    ret->params = rv__rpc_member(message, "params", RV__JSON_OBJECT);
    ret->kind = rv__str_none(ret->id) ? RPC_NOTIFICATION : RPC_REQUEST;
    if (ret->kind == RPC_REQUEST && rv__json_type(ret->id) != RV__JSON_STRING &&
        rv__json_type(ret->id) != RV__JSON_NUMBER)
        return wrong(err, "its `id` is neither a text nor a number");
    return RV_OK;
}

/* -------------------------------------------------------------------------------- events --- */

void rv__sse_init(struct rv__sse *sse)
{
    *sse = (struct rv__sse){ .retry_ms = -1, .is_message = true };
    rv__buf_init(&sse->line, RV__RPC_BYTES + 16);
    rv__buf_init(&sse->data, RV__RPC_BYTES);
    rv__buf_init(&sse->id, 4096); /* it goes into a header */
}

void rv__sse_done(struct rv__sse *sse)
{
    rv__buf_done(&sse->line);
    rv__buf_done(&sse->data);
    rv__buf_done(&sse->id);
}

static void take_id(struct rv__sse *sse, struct rv__str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '\0' || value.at[i] == '\r' || value.at[i] == '\n')
            return;
    rv__buf_reset(&sse->id);
    rv__buf_str(&sse->id, value);
    if (sse->id.rc != RV_OK)
        rv__buf_reset(&sse->id); /* nobody can come back to it */
}

static void take_retry(struct rv__sse *sse, struct rv__str value)
{
    int64_t ms = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return;
        ms = ms < 3600000 ? ms * 10 + (value.at[i] - '0') : ms;
    }
    if (value.len > 0)
        sse->retry_ms = ms;
}

/* A line that is not empty. */
static void take_field(struct rv__sse *sse, struct rv__str line)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct rv__str name = line, value = { "", 0 };
    if (colon != NULL) {
        name.len = (size_t)(colon - line.at);
        value = (struct rv__str){ colon + 1, line.len - name.len - 1 };
        if (value.len > 0 && *value.at == ' ')
            value = (struct rv__str){ value.at + 1, value.len - 1 };
    }
    if (rv__str_is(name, "data")) {
        if (sse->data.len > 0)
            rv__buf_char(&sse->data, '\n');
        rv__buf_str(&sse->data, value);
    } else if (rv__str_is(name, "event")) {
        sse->is_message = rv__str_is(value, "message");
    } else if (rv__str_is(name, "id")) {
        take_id(sse, value);
    } else if (rv__str_is(name, "retry")) {
        take_retry(sse, value);
    }
}

static void end_line(struct rv__sse *sse, void (*event)(void *arg, struct rv__str data), void *arg)
{
    struct rv__str line = rv__buf_view(&sse->line);
    if (line.len > 0) {
        take_field(sse, line);
    } else {
        if (sse->data.len > 0 && sse->is_message && sse->data.rc == RV_OK)
            event(arg, rv__buf_view(&sse->data));
        if (sse->data.rc == RV_OK)
            rv__buf_reset(&sse->data);
        sse->is_message = true;
    }
    if (sse->line.rc == RV_OK)
        rv__buf_reset(&sse->line);
}

int rv__sse_add(struct rv__sse *sse, struct rv__str bytes,
                void (*event)(void *arg, struct rv__str data), void *arg)
{
    size_t at = 0;
    while (at < bytes.len) {
        size_t end = at;
        while (end < bytes.len && bytes.at[end] != '\n' && bytes.at[end] != '\r')
            end++;
        if (end > at)
            sse->after_cr = false;
        rv__buf_add(&sse->line, bytes.at + at, end - at);
        if (end < bytes.len) {
            bool second = bytes.at[end] == '\n' && sse->after_cr; /* of a CR LF */
            sse->after_cr = bytes.at[end] == '\r';
            if (!second)
                end_line(sse, event, arg);
        }
        at = end + 1;
    }
    return sse->line.rc != RV_OK ? sse->line.rc : sse->data.rc;
}

/* ------------------------------------------------------------------------------- headers --- */

static bool is_plain(struct rv__str value)
{
    static const struct rv__str open = RV__STR("=?base64?"), close = RV__STR("?=");
    if (value.len == 0 || value.at[0] == ' ' || value.at[value.len - 1] == ' ')
        return value.len == 0;
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < ' ' || value.at[i] > '~')
            return false;
    return value.len < open.len + close.len || memcmp(value.at, open.at, open.len) != 0 ||
           memcmp(value.at + value.len - close.len, close.at, close.len) != 0;
}

char *rv__rpc_header(struct rv__arena *arena, const char *name, struct rv__str value)
{
    struct rv__buf line;
    rv__buf_init(&line, RV__RPC_BYTES);
    rv__buf_text(&line, name);
    if (value.len == 0) {
        rv__buf_char(&line, ';'); /* libcurl's way to say that it is empty */
    } else if (is_plain(value)) {
        rv__buf_text(&line, ": ");
        rv__buf_str(&line, value);
    } else {
        rv__buf_text(&line, ": =?base64?");
        rv__buf_base64(&line, value);
        rv__buf_text(&line, "?=");
    }
    char *copy = line.rc == RV_OK ? rv__arena_dup(arena, line.text, line.len) : NULL;
    rv__buf_done(&line);
    return copy;
}

/* The walk through the properties of a schema, at any depth, with the arguments beside them. */
struct walk {
    struct rv__str names[RV__RPC_PARAM_HEADERS];
    size_t count;
    const char *bad; /* why its headers may not be; NULL: they may */
    /* where headers go; NULL: nobody asks */
    struct rv__arena *arena;
    const char **lines;
    bool no_memory;
};

static bool is_token(struct rv__str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        if (c <= ' ' || c >= 0x7F || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return name.len > 0;
}

static bool is_primitive(struct rv__str property)
{
    struct rv__str type = rv__rpc_member(property, "type", RV__JSON_STRING);
    return !rv__str_none(type) && (rv__json_string_is(type, rv__str("string")) ||
                                   rv__json_string_is(type, rv__str("integer")) ||
                                   rv__json_string_is(type, rv__str("boolean")));
}

static const char *bad_name(const struct walk *w, struct rv__str quoted, struct rv__str name,
                            struct rv__str property)
{
    if (rv__json_type(quoted) != RV__JSON_STRING || name.len != quoted.len - 2 || !is_token(name))
        return "an x-mcp-header is no name of a header";
    if (!is_primitive(property))
        return "an x-mcp-header is for a text, an integer or a boolean";
    if (w->count == RV__RPC_PARAM_HEADERS)
        return "there are too many x-mcp-headers";
    for (size_t i = 0; i < w->count; i++)
        if (w->names[i].len == name.len && strncasecmp(w->names[i].at, name.at, name.len) == 0)
            return "two x-mcp-headers have the same name";
    return NULL;
}

static void put_header(struct walk *w, struct rv__str name, struct rv__str value)
{
    char header[128];
    struct rv__str text = value;
    if (rv__str_none(value) || rv__json_type(value) == RV__JSON_NULL ||
        rv__json_type(value) >= RV__JSON_ARRAY)
        return;
    if (rv__json_type(value) == RV__JSON_STRING && rv__json_string(value, w->arena, &text) < 0) {
        w->no_memory = true;
        return;
    }
    (void)snprintf(header, sizeof header, "Mcp-Param-%.*s", (int)(name.len < 100 ? name.len : 100),
                   name.at);
    w->lines[w->count - 1] = rv__rpc_header(w->arena, header, text);
    w->no_memory = w->no_memory || w->lines[w->count - 1] == NULL;
}

static void walk(struct walk *w, struct rv__str schema, struct rv__str arguments, int depth)
{
    struct rv__str properties = rv__rpc_member(schema, "properties", RV__JSON_OBJECT);
    struct rv__json_iter it;
    struct rv__str key, property, quoted;
    if (rv__str_none(properties) || depth == 0)
        return;
    rv__json_iter_init(&it, properties);
    while (w->bad == NULL && rv__json_next(&it, &key, &property)) {
        struct rv__str value = none, name = none;
        struct rv__json_iter in;
        struct rv__str other, found;
        if (rv__json_type(property) != RV__JSON_OBJECT)
            continue;
        if (!rv__str_none(arguments) && rv__json_type(arguments) == RV__JSON_OBJECT) {
            rv__json_iter_init(&in,
                               arguments); /* both as they stand: an escape is not looked into */
            while (rv__json_next(&in, &other, &found))
                if (rv__str_eq(other, key))
                    value = found;
        }
        if (rv__json_get(property, "x-mcp-header", &quoted)) {
            if (quoted.len >= 2)
                name = (struct rv__str){ quoted.at + 1, quoted.len - 2 };
            w->bad = bad_name(w, quoted, name, property);
            if (w->bad == NULL) {
                w->names[w->count++] = name;
                if (w->lines != NULL)
                    put_header(w, name, value);
            }
        }
        walk(w, property, value, depth - 1);
    }
}

enum { WALK_DEPTH = 16 }; /* of objects within objects that have headers */

const char *rv__rpc_bad_headers(struct rv__str schema)
{
    struct walk w = { .bad = NULL };
    walk(&w, schema, none, WALK_DEPTH);
    return w.bad;
}

int rv__rpc_param_headers(struct rv__str schema, struct rv__str arguments, struct rv__arena *arena,
                          const char **lines, rv_error *err)
{
    const char *found[RV__RPC_PARAM_HEADERS] = { NULL };
    struct walk w = { .arena = arena, .lines = found };
    int count = 0;
    walk(&w, schema, arguments, WALK_DEPTH);
    if (w.no_memory)
        return rv__nomem(err);
    for (size_t i = 0; w.bad == NULL && i < w.count; i++)
        if (found[i] != NULL)
            lines[count++] = found[i];
    return count;
}
