/* login.c: who asks: a token with the request, or a session that began with one. */
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "server/exchange.h"

enum { LOGIN_BYTES = 64 << 10 }; /* of memory to read a log-in */

static enum MHD_Result answer_session(struct rv__exchange *x)
{
    struct rv__buf out;
    rv__buf_init(&out, 256);
    rv__buf_fmt(&out, "{\"role\":\"%s\",\"authRequired\":%s}", rv__role_name(x->role),
                x->server->auth ? "true" : "false");
    x->answer = (struct rv__api_answer){ .status = MHD_HTTP_OK,
                                         .type = RV__JSON_TYPE,
                                         .length = out.len };
    x->answer.body = rv__buf_take(&out);
    rv__buf_done(&out);
    if (x->answer.body == NULL)
        return rv__respond_problem(x, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    return rv__respond_whole(x);
}

static enum MHD_Result answer_login(struct rv__exchange *x)
{
    struct rv__server *server = x->server;
    struct rv__str body, value, token = { NULL, 0 };
    struct rv__arena arena;
    rv_error err;
    if (x->headers.content_type == NULL ||
        strncasecmp(x->headers.content_type, RV__JSON_TYPE, sizeof RV__JSON_TYPE - 1) != 0)
        return rv__respond_problem(x, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                   "Content-Type must be " RV__JSON_TYPE);
    if (!rv__visit_may_guess(&server->visits, x->visit))
        return rv__respond_refused(x, MHD_HTTP_TOO_MANY_REQUESTS,
                                   "too many wrong tokens came from this address: wait a minute");
    rv__arena_init(&arena, LOGIN_BYTES);
    if (rv__json_check(rv__buf_view(&x->body), RV__JSON_VALUE_DEPTH, &body, &err) == RV_OK &&
        rv__json_get(body, "token", &value))
        (void)rv__json_string(value, &arena, &token); /* else it stays none */
    bool bad = rv__str_none(token);
    x->role = !server->auth ? RV__ROLE_ADMIN
              : bad         ? RV__ROLE_NONE
                            : rv__tokens_role(&server->tokens, token);
    rv__arena_done(&arena);
    if (bad)
        return rv__respond_problem(x, MHD_HTTP_UNPROCESSABLE_CONTENT,
                                   "the body is {\"token\": TEXT}");
    if (x->role == RV__ROLE_NONE) {
        rv__visit_guessed_wrong(&server->visits, x->visit);
        return rv__respond_refused(x, MHD_HTTP_UNAUTHORIZED, "there is no such token");
    }
    if (server->auth &&
        rv__session_begin(&server->sessions, x->role, rv__now_ms(), x->session, &err) < 0)
        return rv__respond_problem(x, MHD_HTTP_SERVICE_UNAVAILABLE, err.message);
    return answer_session(x);
}

static enum MHD_Result answer_logout(struct rv__exchange *x)
{
    const char *name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, RV__COOKIE);
    if (name != NULL)
        rv__session_end(&x->server->sessions, rv__str(name), rv__now_ms());
    memcpy(x->session, "-", 2);
    x->role = x->server->auth ? RV__ROLE_NONE : RV__ROLE_ADMIN;
    return answer_session(x);
}

int rv__login_identify(struct rv__exchange *x, const char **why)
{
    static const char bearer[] = "Bearer ";
    struct rv__server *server = x->server;
    const char *name;
    if (!server->auth) {
        x->role = RV__ROLE_ADMIN;
        return 0;
    }
    if (x->headers.authorization != NULL) {
        if (!rv__visit_may_guess(&server->visits, x->visit)) {
            *why = "too many wrong tokens came from this address: wait a minute";
            return MHD_HTTP_TOO_MANY_REQUESTS;
        }
        if (strncasecmp(x->headers.authorization, bearer, sizeof bearer - 1) == 0)
            x->role = rv__tokens_role(&server->tokens,
                                      rv__str(x->headers.authorization + sizeof bearer - 1));
        if (x->role != RV__ROLE_NONE)
            return 0;
        rv__visit_guessed_wrong(&server->visits, x->visit);
        *why = "there is no such token (header Authorization: Bearer TOKEN)";
        return MHD_HTTP_UNAUTHORIZED;
    }
    name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, RV__COOKIE);
    if (name != NULL)
        x->role = rv__session_role(&server->sessions, rv__str(name), rv__now_ms());
    return 0;
}

bool rv__login_is(const char *path)
{
    return strcmp(path, "/api/v1/session") == 0 || strcmp(path, "/api/v1/login") == 0 ||
           strcmp(path, "/api/v1/logout") == 0;
}

enum MHD_Result rv__login_answer(struct rv__exchange *x)
{
    bool posts = strcmp(x->method, "POST") == 0;
    if (strcmp(x->path, "/api/v1/login") == 0)
        return posts ? answer_login(x) : rv__respond_method(x, "POST");
    if (strcmp(x->path, "/api/v1/logout") == 0)
        return posts ? answer_logout(x) : rv__respond_method(x, "POST");
    return strcmp(x->method, "GET") == 0 || strcmp(x->method, "HEAD") == 0
               ? answer_session(x)
               : rv__respond_method(x, "GET, HEAD");
}
