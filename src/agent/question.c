/* question.c: questions to a person in the midst of a call (revisions of 2025: elicitation/create).
 *
 * The server waits for our answer and a person may take days, so the call ends with a note, and its request is kept.
 * Invariants
 * 1. A kept request has a `key` (its step's) and no call; a request with a call has no key.
 * 2. At most KEPT_MAX requests of one server are kept. The call of another one is cancelled there and made again
 *    once its step has the answer: the note has all earlier answers.
 * 3. What the server answers to a kept request is kept with it, until its step comes or gives up. */
#include "agent/server.h"
#include "base/alloc.h"

enum { KEPT_MAX = 64 };

struct rv__tool_request *rv__tool_question_find(const struct rv__tool_server *s, struct rv__str key)
{
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if (r->key != NULL && !r->ended && rv__str_eq(rv__str(r->key), key))
            return r;
    }
    return NULL;
}

static size_t count_kept(const struct rv__tool_server *s)
{
    size_t count = 0;
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        const struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        count += r->key != NULL && !r->ended;
    }
    return count;
}

bool rv__tool_question_has_result(const struct rv__tool_request *r)
{
    return r->key != NULL && r->answer.len > 0;
}

static void attach_call(struct rv__tool_request *r, struct rv__tool_call *call)
{
    r->call = call;
    call->own.request = r;
    rv__free(r->key);
    r->key = NULL;
    rv__tool_call_sent(call);
}

void rv__tool_question_answer(struct rv__tool_server *s, struct rv__tool_request *r,
                              struct rv__tool_call *call)
{
    struct rv__rpc rpc;
    attach_call(r, call);
    call->own.answers_used = SIZE_MAX; /* whatever it asks now is a new question */
    if (r->question.len > 0)
        rv__tool_reply(s, rv__buf_view(&r->question), call->answer);
    rv__buf_reset(&r->question);
    if (r->answer.len == 0)
        return;
    struct rv__buf answer = r->answer; /* `rpc` has slices of it, and the request is freed first */
    rv__buf_init(&r->answer, RV__RPC_BYTES);
    if (rv__rpc_read(rv__buf_view(&answer), &rpc, NULL) == RV_OK)
        rv__tool_request_answered(r, &rpc);
    else
        rv__tool_unanswered(r, true, "its answer cannot be read");
    rv__buf_done(&answer);
}

/* The request whose call a question belongs to. By HTTP the stream of a request says so; else nothing does, and the
 * oldest call without a question is taken. NULL: there is none. */
static struct rv__tool_request *call_of_question(struct rv__tool_server *s,
                                                 struct rv__tool_request *of)
{
    if (of != NULL && of->ask != ASK_STREAM)
        return of->call != NULL ? of : NULL;
    for (struct rv__link *at = s->requests.first; at != NULL; at = at->next) {
        struct rv__tool_request *r = RV__CONTAINER(at, struct rv__tool_request, listed);
        if ((r->ask == ASK_CALL || r->ask == ASK_TASK_RESULT) && !r->ended && r->call != NULL)
            return r;
    }
    return NULL;
}

void rv__tool_question_received(struct rv__tool_server *s, struct rv__tool_request *of,
                                const struct rv__rpc *rpc)
{
    struct rv__tool_request *r = call_of_question(s, of);
    struct rv__tool_call *call = r != NULL ? r->call : NULL;
    struct rv__str params = rv__str_none(rpc->params) ? rv__str("{}") : rpc->params, before;
    struct rv__buf note;
    if (call == NULL || rv__str_none(call->key)) {
        rv__tool_reply(s, rpc->id, rv__str("{\"action\":\"cancel\"}"));
        return;
    }
    before = rv__tool_note_find_answer(rv__buf_view(&call->own.answers), params,
                                       &call->own.answers_used);
    if (!rv__str_none(before)) {
        rv__tool_reply(s, rpc->id, before);
        return;
    }
    rv__buf_init(&note, RV__RPC_BYTES);
    rv__tool_note_put_question(&note, s->name, params, rv__buf_view(&call->own.answers),
                               &call->own.note, call->key);
    size_t kept = count_kept(s);
    rv__buf_reset(&r->question);
    rv__buf_str(&r->question, rpc->id);
    r->key = rv__alloc(call->key.len + 1);
    if (r->key != NULL) {
        memcpy(r->key, call->key.at, call->key.len);
        r->key[call->key.len] = '\0';
    }
    r->call = NULL;
    call->own.request = NULL;
    rv__io_alarm_off(s->io, &r->late);
    if (r->key == NULL || note.rc != RV_OK || kept > KEPT_MAX) {
        rv__tool_notify_cancelled(r); /* invariant 2 */
        rv__tool_request_end(r);
    }
    rv__tool_call_finish_noted(s, call, &note);
}
