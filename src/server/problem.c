/* problem.c: errors as documents: RFC 9457 problem JSON. */
#include <unistd.h>

#include "base/alloc.h"
#include "server/api.h"

enum { PROBLEM_BYTES = 1 << 20 };

static const struct {
    int status;
    const char *title;
} titles[] = {
    { 400, "Bad request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not found" },
    { 405, "Method not allowed" },
    { 408, "Request timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 413, "Content too large" },
    { 414, "URI too long" },
    { 415, "Unsupported media type" },
    { 421, "Misdirected request" },
    { 422, "Unprocessable content" },
    { 429, "Too many requests" },
    { 431, "Request header fields too large" },
    { 500, "Internal server error" },
    { 503, "Service unavailable" },
};

static const char *title_of(int status)
{
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

void rv__api_problem_more(int status, const char *title, const char *detail, struct rv__str more,
                          struct rv__api_answer *ret)
{
    struct rv__buf out;
    rv__buf_init(&out, PROBLEM_BYTES);
    rv__buf_text(&out, "{\"type\":\"about:blank\",\"title\":");
    rv__buf_json_str(&out, rv__str(title != NULL ? title : title_of(status)));
    rv__buf_fmt(&out, ",\"status\":%d,\"detail\":", status);
    rv__buf_json_str(&out, rv__str(detail));
    rv__buf_str(&out, more);
    rv__buf_char(&out, '}');
    *ret = (struct rv__api_answer){ .status = status, .type = "application/problem+json" };
    ret->length = out.len;
    ret->body = rv__buf_take(&out);
    if (ret->body == NULL) /* the status is all we can send */
        ret->length = 0;
    rv__buf_done(&out);
}

void rv__api_problem(int status, const char *title, const char *detail, struct rv__api_answer *ret)
{
    rv__api_problem_more(status, title, detail, (struct rv__str){ NULL, 0 }, ret);
}

void rv__api_violations(struct rv__api_call *call, const char *in, const char *detail,
                        const rv_violations *bad)
{
    struct rv__buf more;
    rv__buf_init(&more, PROBLEM_BYTES);
    rv__put_text(&more, "in", in);
    rv__buf_text(&more, ",\"violations\":[");
    size_t written = 0;
    for (; written < bad->count && more.len < PROBLEM_BYTES / 2; written++) {
        rv__buf_text(&more, written > 0 ? ",{\"path\":" : "{\"path\":");
        rv__buf_json_str(&more, rv__str(bad->items[written].path));
        rv__put_text(&more, "message", bad->items[written].message);
        rv__buf_char(&more, '}');
    }
    rv__buf_char(&more, ']');
    if (bad->dropped + (bad->count - written) > 0)
        rv__put_int(&more, "omitted", (int64_t)(bad->dropped + (bad->count - written)));
    rv__api_problem_more(422, NULL, detail, rv__buf_view(&more), call->answer);
    call->answered = true;
    rv__buf_done(&more);
}

void rv__api_answer_done(struct rv__api_answer *answer)
{
    rv__free(answer->body);
    if (answer->in_file)
        (void)close(answer->file); /* it has no name: closing deletes it */
    for (int kind = 0; answer->room != NULL && kind < RV__ROOM_KINDS; kind++)
        rv__room_give(answer->room, (enum rv__room_kind)kind, answer->held[kind]);
    *answer = (struct rv__api_answer){ .kind = RV__ANSWER_WHOLE };
}
