/* session.c: log-in of browsers with a token. This makes the documents; the transport keeps the sessions. */
#include "base/alloc.h"
#include "server/api.h"

enum { SESSION_BYTES = 256 };

static void leave_to_transport(struct rv__api_call *call, enum rv__answer_kind kind)
{
    *call->answer = (struct rv__api_answer){ .kind = kind };
    call->answered = true;
}

void rv__api_login(struct rv__api_call *call)
{
    rv__buf_text(&call->out, rv__api_member(call, "token")->text);
    size_t length = call->out.len;
    char *token = rv__buf_take(&call->out);
    if (token == NULL) {
        rv__api_refuse(call, 500, "out of memory");
        return;
    }
    leave_to_transport(call, RV__ANSWER_LOGIN);
    call->answer->body = token;
    call->answer->length = length;
}

void rv__api_logout(struct rv__api_call *call)
{
    leave_to_transport(call, RV__ANSWER_LOGOUT);
}

void rv__api_session_get(struct rv__api_call *call)
{
    leave_to_transport(call, RV__ANSWER_SESSION);
}

void rv__api_session(enum rv__role role, const char *name, bool auth_required,
                     struct rv__api_answer *ret)
{
    struct rv__buf out;
    rv__buf_init(&out, SESSION_BYTES);
    rv__buf_fmt(&out, "{\"role\":\"%s\",\"authRequired\":%s", rv__role_name(role),
                auth_required ? "true" : "false");
    if (*name != '\0')
        rv__put_text(&out, "name", name);
    rv__buf_char(&out, '}');
    *ret = (struct rv__api_answer){ .status = 200, .type = "application/json", .length = out.len };
    ret->body = rv__buf_take(&out);
    rv__buf_done(&out);
    if (ret->body == NULL)
        rv__api_problem(500, NULL, "out of memory", ret);
}
