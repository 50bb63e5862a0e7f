/* login.c: identifies the caller: by a token in the request, or by a session. */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "server/exchange.h"

/* A wrong token is always refused; many of them from one address get another status. The right one is always
 * accepted: otherwise anybody at that address (a proxy's, or this machine's) could lock its owner out. A token that
 * is long enough cannot be guessed, and shorter ones are allowed on this machine only. */
static int wrong_token(struct rv__exchange *x, const char **why)
{
    if (rv__visit_wrong_token(&x->server->visits, x->visit)) {
        *why = "there is no such token (header Authorization: Bearer TOKEN)";
        return MHD_HTTP_UNAUTHORIZED;
    }
    *why = "too many wrong tokens came from this address: wait a minute";
    return MHD_HTTP_TOO_MANY_REQUESTS;
}

static enum MHD_Result tell_session(struct rv__exchange *x)
{
    rv__api_answer_done(&x->answer);
    rv__api_session(x->who.role, x->who.name, x->server->has_tokens, &x->answer);
    return rv__respond_whole(x);
}

static enum MHD_Result log_in(struct rv__exchange *x)
{
    struct rv__server *server = x->server;
    const char *why;
    rv_error err;
    if (!server->has_tokens) /* no tokens are used: everybody is logged in */
        return tell_session(x);
    if (!rv__auth_token(&server->auth, (struct rv__str){ x->answer.body, x->answer.length },
                        &x->who)) {
        int status = wrong_token(x, &why);
        return rv__respond_refused(x, status, why);
    }
    if (rv__auth_begin(&server->auth, &x->who, rv__now_ms(), x->session, &err) < 0)
        return rv__respond_problem(x, MHD_HTTP_SERVICE_UNAVAILABLE, err.message);
    return tell_session(x);
}

static enum MHD_Result log_out(struct rv__exchange *x)
{
    const char *name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, RV__COOKIE);
    if (name != NULL)
        rv__auth_end(&x->server->auth, rv__str(name), rv__now_ms());
    memcpy(x->session, "-", 2);
    x->who.role = x->server->has_tokens ? RV__ROLE_NONE : RV__ROLE_ADMIN;
    return tell_session(x);
}

enum MHD_Result rv__login_answer(struct rv__exchange *x)
{
    if (x->answer.kind == RV__ANSWER_LOGIN)
        return log_in(x);
    return x->answer.kind == RV__ANSWER_LOGOUT ? log_out(x) : tell_session(x);
}

/* An execution's token is not checked here, but together with what it reads. */
static bool is_execution(struct rv__exchange *x, const char *token)
{
    size_t len = strlen(token);
    if (strncmp(token, RV_TOKEN_PREFIX, sizeof RV_TOKEN_PREFIX - 1) != 0 ||
        len >= sizeof x->who.pass)
        return false;
    x->who.role = RV__ROLE_VIEWER;
    memcpy(x->who.pass, token, len + 1);
    return true;
}

int rv__login_identify(struct rv__exchange *x, const char **why)
{
    static const char bearer[] = "Bearer ";
    struct rv__server *server = x->server;
    const char *authorization = x->headers.authorization, *name;
    bool token = authorization != NULL &&
                 strncasecmp(authorization, bearer, sizeof bearer - 1) == 0;
    if (token && is_execution(x, authorization + sizeof bearer - 1)) {
        if (strcmp(x->path, "/mcp") != 0)
            return 0;
        *why = "the token of an execution is for reading its own run";
        return MHD_HTTP_FORBIDDEN;
    }
    if (!server->has_tokens) {
        x->who.role = RV__ROLE_ADMIN;
        return 0;
    }
    if (authorization != NULL) {
        if (token &&
            rv__auth_token(&server->auth, rv__str(authorization + sizeof bearer - 1), &x->who))
            return 0;
        return wrong_token(x, why);
    }
    name = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, RV__COOKIE);
    if (name != NULL) /* else, or if it has ended, anonymous */
        (void)rv__auth_session(&server->auth, rv__str(name), rv__now_ms(), &x->who);
    return 0;
}
