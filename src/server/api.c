/* api.c: from a request to its answer: find the route, check who asks and what was given, call it.
 *
 * Everything that a route accepts is in its row of the table (routes.c), and is checked here, so that
 * handlers see only what is as it should be, and /openapi.json, made from the same rows, tells the truth. */
#include "server/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/id.h"

enum {
    ARENA_BYTES = 1 << 20,     /* of decoded paths and queries, which are shorter */
    ANSWER_BYTES = 0x7fffffff, /* bounded by what the engine gives */
    DETAIL_BYTES = 700,
};

const char *rv__role_name(enum rv__role role)
{
    static const char *const names[] = {
        [RV__ROLE_NONE] = "none",
        [RV__ROLE_VIEWER] = "viewer",
        [RV__ROLE_OPERATOR] = "operator",
        [RV__ROLE_ADMIN] = "admin",
    };
    return names[role];
}

/* --------------------------------------------------------------------------------- answers --- */

void rv__api_refuse(struct rv__api_call *call, int status, const char *fmt, ...)
{
    char detail[DETAIL_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(detail, sizeof detail, fmt, args); /* a longer one is cut */
    va_end(args);
    if (call->answered)
        return;
    rv__api_problem(status, NULL, detail, call->answer);
    call->answered = true;
}

int rv__api_status(int code)
{
    switch ((enum rv_err)code) {
    case RV_EINVAL:
    case RV_EPARSE: return 400;
    case RV_ENOTFOUND: return 404;
    case RV_ETIMEDOUT: return 408;
    case RV_EEXIST:
    case RV_ESTATE: return 409;
    case RV_ETOOBIG: return 422;
    case RV_EBUSY: return 429;
    case RV_ESTORE:
    case RV_ECLOSED: return 503;
    case RV_OK:
    case RV_ENOMEM:
    case RV_ECANCELED:
    case RV_EPANIC:
    case RV_EFAILED:
    case RV_EDEADLK:
    case RV_ESYS: break;
    }
    return 500;
}

void rv__api_error(struct rv__api_call *call, const rv_error *err)
{
    rv__api_refuse(call, rv__api_status(err->code), "%s", err->message);
}

rv_run_list *rv__api_run(struct rv__api_call *call)
{
    const char *id = call->names[0];
    rv_run_list *list = NULL;
    rv_error err;
    if (!rv__id_valid(rv__str(id))) {
        rv__api_refuse(call, 404, "'%.80s' is not the id of a run: 1 to 128 of A-Z a-z 0-9 . _ : -",
                       id);
        return NULL;
    }
    if (rv_list(call->engine, RV_QUERY(.run_id = id), &list, &err) < 0) {
        rv__api_error(call, &err);
        return NULL;
    }
    if (list->count == 1)
        return list;
    rv_run_list_free(list);
    rv__api_refuse(call, 404, "there is no run '%s'; GET /api/v1/runs lists those there are", id);
    return NULL;
}

bool rv__api_run_exists(struct rv__api_call *call)
{
    rv_run_list *list = rv__api_run(call);
    rv_run_list_free(list);
    return list != NULL;
}

void rv__api_told(struct rv__api_call *call)
{
    rv_run_list *list = rv__api_run(call);
    if (list == NULL)
        return;
    rv__buf_fmt(&call->out, "{\"runId\":\"%s\",\"status\":\"%s\"}", list->runs[0].run_id,
                rv_status_name(list->runs[0].status));
    rv_run_list_free(list);
}

/* --------------------------------------------------------------------------------- routing --- */

static bool is_name(struct rv__str part)
{
    return part.len > 2 && part.at[0] == '{';
}

/* The part up to the next slash, which is taken too. */
static struct rv__str next_part(struct rv__str *path)
{
    const char *slash = memchr(path->at, '/', path->len);
    struct rv__str part = { path->at, slash != NULL ? (size_t)(slash - path->at) : path->len };
    size_t taken = part.len + (slash != NULL);
    path->at += taken;
    path->len -= taken;
    return part;
}

/* Does the path have this form? The parts that names stand for are in `raw`, still encoded. */
static bool matches(const char *form, const char *path, struct rv__str raw[RV__API_PARTS])
{
    struct rv__str forms = rv__str(form + 1), parts = rv__str(path);
    size_t names = 0;
    if (parts.len == 0 || parts.at[0] != '/')
        return false;
    parts.at++;
    parts.len--;
    for (;;) {
        bool form_ends = memchr(forms.at, '/', forms.len) == NULL;
        bool path_ends = memchr(parts.at, '/', parts.len) == NULL;
        struct rv__str expected = next_part(&forms), part = next_part(&parts);
        if (is_name(expected)) {
            if (part.len == 0)
                return false;
            assert(names < RV__API_PARTS);
            raw[names++] = part;
        } else if (!rv__str_eq(expected, part)) {
            return false;
        }
        if (form_ends || path_ends)
            return form_ends && path_ends;
    }
}

static bool take_names(struct rv__api_call *call, const struct rv__str raw[RV__API_PARTS])
{
    for (size_t i = 0; i < RV__API_PARTS && raw[i].at != NULL; i++) {
        call->names[i] = rv__api_decode(&call->arena, raw[i], false);
        if (call->names[i] == NULL) {
            rv__api_refuse(call, 400, "the path is not percent-encoded UTF-8");
            return false;
        }
    }
    return true;
}

static bool find_route(struct rv__api_call *call)
{
    const char *method = call->request->method, *path = call->request->path;
    if (strlen(path) > RV__API_PATH_BYTES) {
        rv__api_refuse(call, 414, "the path is longer than %d bytes", (int)RV__API_PATH_BYTES);
        return false;
    }
    for (size_t i = 0; i < rv__route_count; i++) {
        struct rv__str raw[RV__API_PARTS] = { { NULL, 0 } };
        const struct rv__route *route = &rv__routes[i];
        if (!matches(route->path, path, raw))
            continue;
        bool reads = strcmp(route->method, "GET") == 0;
        call->route = route;
        if (strcmp(method, route->method) == 0 || (reads && strcmp(method, "HEAD") == 0))
            return take_names(call, raw);
        rv__api_refuse(call, 405, "this address takes %s", reads ? "GET and HEAD" : "POST");
        call->answer->allow = reads ? "GET, HEAD" : "POST";
        return false;
    }
    rv__api_refuse(call, 404, "there is nothing at this address; /openapi.json lists all there is");
    return false;
}

bool rv__api_is_open(const char *path)
{
    for (size_t i = 0; i < rv__route_count; i++)
        if (rv__routes[i].role == RV__ROLE_NONE && strcmp(rv__routes[i].path, path) == 0)
            return true;
    return false;
}

static bool may_call(struct rv__api_call *call)
{
    enum rv__role needed = call->route->role, has = call->request->role;
    if (has >= needed)
        return true;
    if (has == RV__ROLE_NONE)
        rv__api_refuse(call, 401, "this needs a token: Authorization: Bearer TOKEN");
    else
        rv__api_refuse(call, 403, "this needs the role %s, and the token's is %s",
                       rv__role_name(needed), rv__role_name(has));
    return false;
}

/* A call that changes something would wait for a store that refuses: better to be told so. */
static bool can_change(struct rv__api_call *call)
{
    rv_health health;
    rv_error err;
    if (call->route->role < RV__ROLE_OPERATOR)
        return true;
    if (rv_engine_health(call->engine, &health, &err) < 0) {
        rv__api_error(call, &err);
        return false;
    }
    if (health.stuck)
        rv__api_refuse(call, 503, "the store refuses to be written to: %s; nothing was changed",
                       health.why.message);
    return !health.stuck;
}

/* What the handler wrote is the answer, unless it said another. */
static void finish(struct rv__api_call *call)
{
    const struct rv__route *route = call->route;
    if (call->answered)
        return;
    if (call->out.rc < 0) {
        rv__api_refuse(call, 500, "%s",
                       call->out.rc == RV_ENOMEM ? "out of memory"
                                                 : "the answer is larger than 2 GB");
        return;
    }
    *call->answer = (struct rv__api_answer){
        .status = route->status,
        .type = route->type != NULL ? route->type : "application/json",
        .length = call->out.len,
    };
    call->answer->body = rv__buf_take(&call->out);
    if (call->answer->body == NULL)
        rv__api_refuse(call, 500, "out of memory");
}

void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret)
{
    struct rv__api_call call = { .engine = engine, .request = request, .answer = ret };
    *ret = (struct rv__api_answer){ .kind = RV__ANSWER_WHOLE };
    rv__arena_init(&call.arena, ARENA_BYTES);
    rv__buf_init(&call.out, ANSWER_BYTES);
    if (find_route(&call) && may_call(&call) && rv__api_read_query(&call) &&
        rv__api_read_body(&call) && can_change(&call)) {
        call.route->handle(&call);
        finish(&call);
    }
    rv__buf_done(&call.out);
    rv__arena_done(&call.arena);
}
