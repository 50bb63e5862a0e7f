/* given.c: parses the query and the body of a request, and checks them by the tables of its route. */
#include <assert.h>
#include <ctype.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/suggest.h"
#include "server/api.h"

/* -------------------------------------------------------------------------------- decoding --- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *rv__api_decode(struct rv__arena *arena, struct rv__str text, bool plus_is_space)
{
    char *out = rv__arena_alloc(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex(text.at[i + 1]) : -1;
            int low = high >= 0 ? hex(text.at[i + 2]) : -1;
            if (low < 0 || (high == 0 && low == 0)) /* NUL is never allowed */
                return NULL;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return rv__str_utf8((struct rv__str){ out, len }) ? out : NULL;
}

/* ----------------------------------------------------------------------------------- lists --- */

static int find_param(const struct rv__param *list, struct rv__str name)
{
    for (int i = 0; list != NULL && list[i].name != NULL; i++)
        if (rv__str_is(name, list[i].name))
            return i;
    return -1;
}

const struct rv__given *rv__api_param(const struct rv__api_call *call, const char *name)
{
    int i = find_param(call->route->params, rv__str(name));
    assert(i >= 0);
    return &call->params[i];
}

const struct rv__given *rv__api_member(const struct rv__api_call *call, const char *name)
{
    int i = find_param(call->route->members, rv__str(name));
    assert(i >= 0);
    return &call->members[i];
}

const char *rv__api_text(const struct rv__api_call *call, const char *name)
{
    return rv__api_param(call, name)->text;
}

int64_t rv__api_int(const struct rv__api_call *call, const char *name)
{
    const struct rv__given *given = rv__api_param(call, name);
    return given->given
               ? given->number
               : call->route->params[find_param(call->route->params, rv__str(name))].fallback;
}

/* The known names, for a message: "a, b, c". */
static void put_names(struct rv__buf *out, const struct rv__param *list)
{
    if (list == NULL || list[0].name == NULL)
        rv__buf_text(out, "none");
    for (int i = 0; list != NULL && list[i].name != NULL; i++)
        rv__buf_fmt(out, "%s%s", i > 0 ? ", " : "", list[i].name);
}

static void put_choices(struct rv__buf *out, const struct rv__param *param)
{
    for (int i = 0; param->choices[i] != NULL; i++)
        rv__buf_fmt(out, "%s%s", i > 0 ? ", " : "", param->choices[i]);
}

/* What `param` must be, for a message. */
static void put_kind(struct rv__buf *out, const struct rv__param *param)
{
    switch (param->kind) {
    case PARAM_TEXT: rv__buf_text(out, "a text"); break;
    case PARAM_INT:
        rv__buf_fmt(out, "an integer from %lld to %lld", (long long)param->min,
                    (long long)param->max);
        break;
    case PARAM_FLAG: rv__buf_text(out, "0 or 1"); break;
    case PARAM_CHOICE:
        rv__buf_text(out, "one of ");
        put_choices(out, param);
        break;
    case PARAM_JSON: rv__buf_text(out, "JSON"); break;
    }
}

/* -------------------------------------------------------------------------- texts as values --- */

static int find_choice(const char *const *choices, const char *text)
{
    for (int i = 0; choices[i] != NULL; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    return -1;
}

static bool take_text(const struct rv__param *param, const char *text, struct rv__given *ret)
{
    ret->text = text;
    switch (param->kind) {
    case PARAM_TEXT:
    case PARAM_JSON: return *text != '\0' || !param->required;
    case PARAM_INT:
        return (*text == '-' || isdigit((unsigned char)*text)) &&
               rv__json_check(rv__str(text), 1, NULL, NULL) == RV_OK &&
               rv__json_int(rv__str(text), &ret->number) == RV_OK && ret->number >= param->min &&
               ret->number <= param->max;
    case PARAM_FLAG:
        ret->number = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
        return ret->number == 1 || strcmp(text, "0") == 0 || strcmp(text, "false") == 0;
    case PARAM_CHOICE: ret->number = find_choice(param->choices, text); return ret->number >= 0;
    }
    return false;
}

/* ----------------------------------------------------------------------------------- query --- */

static bool refuse_unknown(struct rv__api_call *call, const char *name)
{
    const struct rv__param *params = call->route->params;
    const char *names[RV__API_PARAMS];
    size_t count = 0;
    struct rv__buf known;
    for (; params != NULL && params[count].name != NULL; count++)
        names[count] = params[count].name;
    const char *near = count > 0 ? rv__suggest(rv__str(name), names, count) : NULL;
    rv__buf_init(&known, 4096);
    put_names(&known, params);
    rv__api_refuse(call, 400, "unknown parameter '%.80s'%s%s%s; known: %s", name,
                   near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?)" : "", rv__buf_view(&known).at);
    rv__buf_done(&known);
    return false;
}

static bool refuse_value(struct rv__api_call *call, const struct rv__param *param, const char *text)
{
    struct rv__buf kind;
    rv__buf_init(&kind, 4096);
    put_kind(&kind, param);
    rv__api_refuse(call, 400, "parameter '%s' is '%.80s', but must be %s", param->name, text,
                   rv__buf_view(&kind).at);
    rv__buf_done(&kind);
    return false;
}

static bool read_pair(struct rv__api_call *call, struct rv__str pair)
{
    const char *equals = memchr(pair.at, '=', pair.len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair.at) : pair.len;
    struct rv__str value = { equals != NULL ? equals + 1 : "",
                             equals != NULL ? pair.len - name_len - 1 : 0 };
    const char *name = rv__api_decode(&call->arena, (struct rv__str){ pair.at, name_len }, true);
    const char *text = rv__api_decode(&call->arena, value, true);
    if (name == NULL || text == NULL) {
        rv__api_refuse(call, 400, "the query is not percent-encoded UTF-8");
        return false;
    }
    int i = find_param(call->route->params, rv__str(name));
    if (i < 0)
        return refuse_unknown(call, name);
    if (*text == '\0') /* an empty form field */
        return true;
    struct rv__given *given = &call->params[i];
    if (given->given) {
        rv__api_refuse(call, 400, "parameter '%s' is given twice", name);
        return false;
    }
    given->given = true;
    return take_text(&call->route->params[i], text, given) ||
           refuse_value(call, &call->route->params[i], text);
}

bool rv__api_read_query(struct rv__api_call *call)
{
    struct rv__str query = rv__str(call->request->query);
    if (query.len > RV__API_QUERY_BYTES) {
        rv__api_refuse(call, 414, "the query is longer than %d bytes", (int)RV__API_QUERY_BYTES);
        return false;
    }
    while (query.len > 0) {
        const char *and = memchr(query.at, '&', query.len);
        struct rv__str pair = { query.at, and != NULL ? (size_t)(and-query.at) : query.len };
        size_t taken = pair.len + (and != NULL);
        if (pair.len > 0 && !read_pair(call, pair))
            return false;
        query.at += taken;
        query.len -= taken;
    }
    const struct rv__param *params = call->route->params;
    for (int i = 0; params != NULL && params[i].name != NULL; i++)
        if (params[i].required && !call->params[i].given) {
            rv__api_refuse(call, 400, "parameter '%s' is missing: %s", params[i].name,
                           params[i].says);
            return false;
        }
    return true;
}

/* ------------------------------------------------------------------------------------ body --- */

/* "application/json", with parameters or without; also what ends in "+json". */
static bool is_json_type(const char *type)
{
    if (type == NULL) /* not given: it is parsed as JSON, and refused if it is not */
        return true;
    size_t len = strcspn(type, "; \t");
    return (len == 16 && strncasecmp(type, "application/json", 16) == 0) ||
           (len > 5 && strncasecmp(type + len - 5, "+json", 5) == 0);
}

/* Refuse a body with one violation. */
static void refuse_member(struct rv__api_call *call, const char *name, const char *message)
{
    struct rv__buf path;
    rv__buf_init(&path, 4096);
    if (name != NULL)
        rv__buf_json_pointer(&path, rv__str(name));
    const rv_violation one = { .path = rv__buf_view(&path).at, .message = message };
    const rv_violations bad = { .count = 1, .items = &one };
    rv__api_violations(call, "body", "the body is not valid", &bad);
    rv__buf_done(&path);
}

static bool take_member(struct rv__api_call *call, const struct rv__param *param,
                        struct rv__str value, struct rv__given *ret)
{
    struct rv__str text;
    if (param->kind != PARAM_JSON && rv__json_type(value) == RV__JSON_NULL) /* like absent */
        return true;
    ret->given = true;
    ret->json = value;
    if (param->kind == PARAM_JSON)
        return true;
    if (param->kind == PARAM_INT && rv__json_type(value) == RV__JSON_NUMBER)
        return rv__json_int(value, &ret->number) == RV_OK && ret->number >= param->min &&
               ret->number <= param->max;
    if (rv__json_string(value, &call->arena, &text) < 0 || memchr(text.at, '\0', text.len) != NULL)
        return false;
    char *copy = rv__arena_dup(&call->arena, text.at, text.len);
    return copy != NULL && take_text(param, copy, ret);
}

static bool read_member(struct rv__api_call *call, struct rv__str key, struct rv__str value)
{
    struct rv__str name;
    struct rv__buf says;
    char *text = NULL;
    if (rv__json_string(key, &call->arena, &name) == RV_OK)
        text = rv__arena_dup(&call->arena, name.at, name.len);
    if (text == NULL) {
        rv__api_refuse(call, 400, "the body has a name that is too long");
        return false;
    }
    int i = find_param(call->route->members, name);
    rv__buf_init(&says, 4096);
    if (i < 0) {
        rv__buf_text(&says, "is unknown; known: ");
        put_names(&says, call->route->members);
    } else if (!take_member(call, &call->route->members[i], value, &call->members[i])) {
        rv__buf_text(&says, "must be ");
        put_kind(&says, &call->route->members[i]);
    }
    bool good = says.len == 0;
    if (!good)
        refuse_member(call, text, rv__buf_view(&says).at);
    rv__buf_done(&says);
    return good;
}

static bool read_members(struct rv__api_call *call)
{
    const struct rv__param *members = call->route->members;
    struct rv__json_iter it;
    struct rv__str key, value;
    if (rv__json_type(call->body) != RV__JSON_OBJECT) {
        refuse_member(call, NULL, "must be an object");
        return false;
    }
    rv__json_iter_init(&it, call->body);
    while (rv__json_next(&it, &key, &value))
        if (!read_member(call, key, value))
            return false;
    for (int i = 0; members != NULL && members[i].name != NULL; i++)
        if (members[i].required && !call->members[i].given) {
            refuse_member(call, members[i].name, "is missing");
            return false;
        }
    return true;
}

bool rv__api_read_body(struct rv__api_call *call)
{
    const struct rv__api_request *request = call->request;
    rv_error err;
    if (strcmp(call->route->method, "POST") != 0)
        return true;
    bool empty = request->body == NULL || request->body_length == 0;
    if (!empty && !is_json_type(request->content_type)) {
        rv__api_refuse(call, 415, "the body must be JSON (Content-Type: application/json)");
        return false;
    }
    if (empty) {
        call->body = call->route->body == BODY_ANY ? (struct rv__str){ NULL, 0 } : rv__str("{}");
    } else {
        struct rv__str text = { request->body, request->body_length };
        int rc = rv__json_check(text, RV__JSON_VALUE_DEPTH, &call->body, &err);
        if (rc < 0) {
            rv__api_refuse(call, rc == RV_ETOOBIG ? 413 : 400, "the body is not JSON: %s",
                           err.message);
            return false;
        }
    }
    return call->route->body == BODY_ANY || read_members(call);
}
