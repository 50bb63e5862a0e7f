/* api.c: answers a request: finds the route, checks role and parameters, calls the handler.
 *
 * Everything that a route accepts is in its row of the table (routes.c) and checked here. So handlers get only
 * valid values, and /openapi.json, made from the same rows, is correct. */
#include "server/api.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/id.h"

enum {
    ARENA_BYTES = 1 << 20,     /* for decoded paths and queries, which are shorter */
    ANSWER_BYTES = 0x7fffffff, /* bounded by the engine's results */
    PIECE_BYTES = 256 << 10,   /* of a document in memory; the rest of it is in a file */
    SMALL_BYTES = 4 << 10,     /* needs no reservation: a change must be reported in any case */
    DETAIL_BYTES = 700,
};

const char *rv__role_name(enum rv__role role)
{
    static const char *const names[] = {
        [RV__ROLE_NONE] = "none",     [RV__ROLE_WORKER] = "worker",
        [RV__ROLE_VIEWER] = "viewer", [RV__ROLE_OPERATOR] = "operator",
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
    case RV_EUNWANTED:
    case RV_ESTATE: return 409;
    case RV_EDENIED: return 403;
    case RV_ETOOBIG: return 422;
    case RV_EBUSY: return 429;
    case RV_ESTORE:
    case RV_EGONE:
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
    rv__api_refuse(call, 404, "there is no run '%s'; GET /api/v1/runs lists all runs", id);
    return NULL;
}

bool rv__api_run_exists(struct rv__api_call *call)
{
    rv_run_list *list = rv__api_run(call);
    rv_run_list_free(list);
    return list != NULL;
}

void rv__api_put_status(struct rv__api_call *call)
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

/* The part up to the next slash, which is removed too. */
static struct rv__str next_part(struct rv__str *path)
{
    const char *slash = memchr(path->at, '/', path->len);
    struct rv__str part = { path->at, slash != NULL ? (size_t)(slash - path->at) : path->len };
    size_t taken = part.len + (slash != NULL);
    path->at += taken;
    path->len -= taken;
    return part;
}

/* Does the path match the form? The parts for names are in `raw`, still encoded. */
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
    rv__api_refuse(call, 404,
                   "there is nothing at this address; /openapi.json lists all addresses");
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
        rv__api_refuse(call, 403, "this needs the role %s; the token has the role %s",
                       rv__role_name(needed), rv__role_name(has));
    return false;
}

/* Reads by an execution need the permission of its scope, and are recorded first (rv_read_as). */
static bool in_scope(struct rv__api_call *call)
{
    const struct rv__route *route = call->route;
    const char *pass = call->request->pass, *last = strrchr(route->path, '/') + 1;
    rv_error err;
    if (pass == NULL || *pass == '\0' || route->role == RV__ROLE_NONE)
        return true;
    if (route->reads == 0) {
        rv__api_refuse(call, 403, "the token of an execution is for reading its own run");
        return false;
    }
    const char *name = route->reads == RV_READ_ATTACHMENT ? call->names[1]
                       : route->reads != RV_READ_RUN      ? NULL
                       : is_name(rv__str(last))           ? "run"
                                                          : last;
    int rc = rv_read_as(
        call->engine, pass,
        RV_READ(.run_id = call->names[0], .what = route->reads, .name = name, .through = "http"),
        &err);
    if (rc == RV_ENOTFOUND)
        rv__api_refuse(call, 401, "%s", err.message);
    else if (rc < 0)
        rv__api_error(call, &err);
    return rc == RV_OK;
}

/* A change would wait for a store that refuses writes: refuse it instead. */
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
        rv__api_refuse(call, 503, "the store cannot be written: %s; nothing was changed",
                       health.why.message);
    return !health.stuck;
}

/* ------------------------------------------------------------------------------ long answers --- */

static void no_room(struct rv__api_call *call)
{
    rv__api_refuse(call, 503,
                   "no memory for the answer: too many answers wait to be read; try again later");
}

/* Append to the file, which is created if necessary. On failure the answer is complete. */
static void to_file(struct rv__api_call *call, struct rv__str bytes)
{
    struct rv__room *room = call->request->room;
    rv_error err;
    int rc = RV_OK;
    if (call->answered || bytes.len == 0)
        return;
    if (!rv__room_take(room, RV__ROOM_DISK, bytes.len)) {
        no_room(call);
        return;
    }
    call->in_file += bytes.len;
    if (call->file.file < 0)
        rc = rv__outfile_open(&call->file, NULL, false, &err);
    if (rc == RV_OK)
        rc = rv__outfile_write(&call->file, bytes, &err);
    if (rc < 0)
        rv__api_refuse(call, 503, "a long answer cannot be kept: %s", err.message);
}

static void empty_out(struct rv__api_call *call)
{
    if (call->out.rc < 0)
        return;
    to_file(call, rv__buf_view(&call->out));
    rv__buf_reset(&call->out);
}

void rv__api_piece(struct rv__api_call *call)
{
    if (call->request->room != NULL && call->out.len >= PIECE_BYTES)
        empty_out(call);
}

void rv__api_put_value(struct rv__api_call *call, const char *key, const char *json)
{
    struct rv__str value = rv__str(json);
    if (call->request->room == NULL || value.len < PIECE_BYTES) {
        rv__put_json(&call->out, key, json);
        rv__api_piece(call);
        return;
    }
    rv__buf_fmt(&call->out, ",\"%s\":", key);
    empty_out(call);
    to_file(call, value);
}

/* Move the rest to the file, and answer with it. */
static void finish_file(struct rv__api_call *call)
{
    empty_out(call);
    if (call->answered)
        return;
    call->answer->length = call->in_file;
    call->answer->in_file = true;
    call->answer->file = call->file.file;
    call->answer->room = call->request->room;
    call->answer->held[RV__ROOM_DISK] = call->in_file;
    call->file.file = -1; /* owned by the answer now */
    call->in_file = 0;
}

static void finish_memory(struct rv__api_call *call)
{
    struct rv__room *room = call->request->room;
    size_t held = call->out.len > SMALL_BYTES && room != NULL ? call->out.len : 0;
    if (held > 0 && !rv__room_take(room, RV__ROOM_MEMORY, held)) {
        no_room(call);
        return;
    }
    call->answer->length = call->out.len;
    call->answer->body = rv__buf_take(&call->out);
    call->answer->room = room;
    call->answer->held[RV__ROOM_MEMORY] = held;
    if (call->answer->body == NULL) {
        rv__api_answer_done(call->answer);
        rv__api_refuse(call, 500, "out of memory");
    }
}

/* Make the handler's output the answer, unless it already set another. */
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
    };
    if (call->in_file > 0)
        finish_file(call);
    else
        finish_memory(call);
}

void rv__api_handle(rv_engine *engine, const struct rv__api_request *request,
                    struct rv__api_answer *ret)
{
    struct rv__api_call call = { .engine = engine, .request = request, .answer = ret };
    *ret = (struct rv__api_answer){ .kind = RV__ANSWER_WHOLE };
    rv__arena_init(&call.arena, ARENA_BYTES);
    rv__buf_init(&call.out, ANSWER_BYTES);
    call.file = (struct rv__outfile){ .file = -1 };
    if (find_route(&call) && may_call(&call) && rv__api_read_query(&call) &&
        rv__api_read_body(&call) && in_scope(&call) && can_change(&call)) {
        call.route->handle(&call);
        finish(&call);
    }
    if (call.in_file > 0) /* another answer replaced it */
        rv__room_give(request->room, RV__ROOM_DISK, call.in_file);
    rv__outfile_done(&call.file);
    rv__buf_done(&call.out);
    rv__arena_done(&call.arena);
}
