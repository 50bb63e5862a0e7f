/* call.c: one call of a tool, from its start to its only result.
 *
 * Until `done` is called a call is in exactly one place: in `waiting` of its server, in `polling` (task.c), or it has a
 * request that was sent. Everything but the last two functions belongs to the I/O loop's thread. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/server.h"
#include "base/alloc.h"

enum { TASK_ANSWER_MS = 60000 }; /* for an answer about a task, not for the task */

static const struct rv__str none = { NULL, 0 };

void rv__tool_call_finish(struct rv__tool_server *s, struct rv__tool_call *call,
                          struct rv__tool_result *result)
{
    struct rv__buf hidden;
    rv__buf_init(&hidden, SIZE_MAX / 2); /* about as long as what came */
    rv__io_take_back(s->io, &call->own.cancel);
    rv__io_alarm_off(s->io, &call->own.poll);
    rv__buf_done(&call->own.answers);
    if (s->mask != NULL && !rv__str_none(result->json)) {
        rv__mask_json(s->mask, result->json, &hidden);
        result->json = hidden.rc == RV_OK ? rv__buf_view(&hidden)
                                          : rv__str("\"" RV__MASK_TEXT "\"");
    } else if (s->mask != NULL) {
        rv__mask_text(s->mask, rv__str(result->error), true, &hidden);
        snprintf(result->error, sizeof result->error, "%s",
                 hidden.rc == RV_OK && hidden.text != NULL ? hidden.text : RV__MASK_TEXT);
    }
    call->done(call, result); /* from here on it may be gone */
    rv__buf_done(&hidden);
}

void rv__tool_call_fail(struct rv__tool_server *s, struct rv__tool_call *call,
                        enum rv__tool_end end, const char *why)
{
    struct rv__tool_result result = { .end = end };
    switch (end) {
    case TOOL_CANCELLED:
    case TOOL_CLOSED: snprintf(result.error, sizeof result.error, "it was cancelled"); break;
    case TOOL_LATE:
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' did not answer within %" PRId64 " ms", s->name,
                 call->timeout_ms);
        break;
    case TOOL_LOST:
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' was lost before it answered: %s", s->name, why);
        break;
    case TOOL_DOWN:
    case TOOL_ANSWERED:
    case TOOL_NOTED:
    case TOOL_REFUSED:
        snprintf(result.error, sizeof result.error, "the MCP server '%s' cannot be used: %s",
                 s->name, why);
        break;
    }
    rv__tool_call_finish(s, call, &result);
}

void rv__tool_call_finish_noted(struct rv__tool_server *s, struct rv__tool_call *call,
                                struct rv__buf *note)
{
    struct rv__tool_result result = { .end = TOOL_NOTED, .json = rv__buf_view(note) };
    if (note->rc == RV_OK)
        rv__tool_call_finish(s, call, &result);
    else
        rv__tool_call_fail(s, call, TOOL_LOST,
                           "what it asks for is too long, or there is no memory");
    rv__buf_done(note);
}

void rv__tool_calls_fail(struct rv__tool_server *s, struct rv__chain *calls, enum rv__tool_end end,
                         const char *why)
{
    struct rv__chain failed;
    rv__chain_init(&failed); /* those that come meanwhile wait for the next time */
    rv__chain_move(&failed, calls);
    while (failed.first != NULL) {
        struct rv__tool_call *call = RV__CONTAINER(failed.first, struct rv__tool_call, own.listed);
        rv__chain_remove(&failed, &call->own.listed);
        if (end != TOOL_DOWN || !rv__tool_task_retry(s, call))
            rv__tool_call_fail(s, call, end, why);
    }
}

static void call_timed_out(struct rv__alarm *alarm)
{
    struct rv__tool_request *r = RV__CONTAINER(alarm, struct rv__tool_request, late);
    struct rv__tool_server *s = r->server;
    struct rv__tool_call *call = r->call;
    rv__tool_notify_cancelled(r);
    rv__tool_request_end(r);
    if (!rv__tool_task_retry(s, call))
        rv__tool_call_fail(s, call, TOOL_LATE, "");
}

/* `tasks/result` is answered when the task has ended, which may take as long as it likes. */
void rv__tool_call_limit_wait(struct rv__tool_call *call)
{
    struct rv__tool_request *r = call->own.request;
    bool task = !rv__str_none(call->own.note.task) && !call->gives_up;
    int64_t ms = !task ? call->timeout_ms : r->ask == ASK_TASK_RESULT ? 0 : TASK_ANSWER_MS;
    r->late.ring = call_timed_out;
    if (ms > 0)
        (void)rv__io_alarm(r->server->io, &r->late, ms); /* without it there is no limit */
}

void rv__tool_call_sent(struct rv__tool_call *call)
{
    rv__tool_call_limit_wait(call);
    if (call->begun != NULL && !call->own.begun)
        call->begun(call);
    call->own.begun = true;
}

/* A person had to open an address before the call could be made, and did not say "accept". */
static void fail_unvisited(struct rv__tool_server *s, struct rv__tool_call *call)
{
    struct rv__tool_result result = { .end = TOOL_REFUSED, .code = RV__RPC_VISIT };
    struct rv__str url = rv__rpc_member(call->own.note.question, "url", RV__JSON_STRING);
    snprintf(result.error, sizeof result.error,
             "the MCP server '%s' refused the call: a person has to open %.*s first, and declined",
             s->name, (int)(url.len < 200 ? url.len : 200), url.at != NULL ? url.at : "");
    rv__tool_call_finish(s, call, &result);
}

/* The step does not want any more what its note is about. Returns what to send; ASK_NOTICE: nothing. */
static enum rv__tool_ask abandon(struct rv__tool_server *s, struct rv__tool_call *call)
{
    struct rv__tool_request *kept = rv__tool_question_find(s, call->own.note.key);
    if (kept != NULL) {
        rv__tool_notify_cancelled(kept);
        rv__tool_request_end(kept);
    }
    return rv__str_none(call->own.note.task) ? ASK_NOTICE : ASK_TASK_CANCEL;
}

void rv__tool_call_send(struct rv__tool_server *s, struct rv__tool_call *call)
{
    const struct rv__tool_note *note = &call->own.note;
    struct rv__tool_request *kept = NULL;
    struct rv__tool_result result = { .end = TOOL_ANSWERED, .json = rv__str("{}") };
    enum rv__tool_ask what = rv__str_none(note->task) ? ASK_CALL : ASK_TASK_GET;
    bool all = true;
    if (note->visit && !call->gives_up &&
        !rv__rpc_is(rv__rpc_member(call->answer, "action", RV__JSON_STRING), "accept")) {
        fail_unvisited(s, call);
        return;
    }
    if (call->gives_up) {
        what = abandon(s, call);
    } else if (!rv__str_none(note->question) && call->own.answers.len == 0) {
        rv__tool_note_add_answer(note, call->answer, &call->own.answers);
        kept = rv__str_none(call->answer) ? NULL : rv__tool_question_find(s, call->key);
    } else if (!rv__str_none(note->at) && call->own.answers.len == 0 &&
               !rv__str_none(call->answer)) {
        rv__tool_note_put_next(note, s->name, call->answer, &call->own.answers, &all);
    }
    bool answers = !rv__str_none(note->at) && call->own.answers.len > 0 && !call->own.task_updated;
    if (what == ASK_TASK_GET && answers) /* also if an earlier attempt to send them failed */
        what = ASK_TASK_UPDATE;
    if (!all) { /* the next question */
        struct rv__buf next = call->own.answers;
        rv__buf_init(&call->own.answers, RV__RPC_BYTES);
        rv__tool_call_finish_noted(s, call, &next);
        return;
    }
    if (kept != NULL) {
        rv__tool_question_answer(s, kept, call);
        return;
    }
    if (what == ASK_NOTICE) {
        rv__tool_call_finish(s, call, &result);
        return;
    }
    call->own.answers_used = 0;
    call->own.request = rv__tool_request_send(s, what, call, none);
    if (call->own.request == NULL)
        rv__tool_call_fail(s, call, TOOL_DOWN, "the call could not be sent to it");
    else
        rv__tool_call_sent(call);
}

void rv__tool_call_input_required(struct rv__tool_server *s, struct rv__tool_call *call,
                                  struct rv__str asked)
{
    struct rv__tool_result result = { .end = TOOL_REFUSED, .code = RV__RPC_CAPABILITY };
    struct rv__buf note;
    char why[160];
    rv__buf_init(&note, RV__RPC_BYTES);
    if (rv__str_none(call->key))
        snprintf(why, sizeof why, "it asks for input, and nobody can be asked");
    else if (rv__tool_note_put_input_required(&note, s->name, asked, &call->own.note, why,
                                              sizeof why)) {
        rv__tool_call_finish_noted(s, call, &note);
        return;
    }
    rv__buf_done(&note);
    snprintf(result.error, sizeof result.error, "the MCP server '%s' refused the call: %s", s->name,
             why);
    rv__tool_call_finish(s, call, &result);
}

/* The server wants a person to open an address first (2025-11-25). False: it does not say which, or nobody can be asked. */
static bool ask_to_visit(struct rv__tool_server *s, struct rv__tool_call *call,
                         const struct rv__rpc *rpc)
{
    struct rv__buf note;
    rv__buf_init(&note, RV__RPC_BYTES);
    if (s->era != ERA_HANDSHAKE || rv__str_none(call->key) ||
        !rv__tool_note_put_visit(&note, s->name, rpc->data, rv__buf_view(&call->own.answers))) {
        rv__buf_done(&note);
        return false;
    }
    rv__tool_call_finish_noted(s, call, &note);
    return true;
}

void rv__tool_call_answered(struct rv__tool_server *s, struct rv__tool_call *call,
                            const struct rv__rpc *rpc)
{
    struct rv__tool_result result = { .end = TOOL_ANSWERED, .json = rpc->result };
    struct rv__str type = rv__rpc_member(rpc->result, "resultType", RV__JSON_STRING);
    if (rpc->kind == RPC_ERROR && rpc->code == RV__RPC_VISIT && ask_to_visit(s, call, rpc))
        return;
    if (rpc->kind == RPC_ERROR) {
        char words[RV__RPC_ERROR_TEXT];
        rv__rpc_error_text(rpc, words, sizeof words);
        result = (struct rv__tool_result){ .end = TOOL_REFUSED, .code = rpc->code };
        snprintf(result.error, sizeof result.error, "the MCP server '%s' refused the call: %s",
                 s->name, words);
    } else if (rv__rpc_is(type, "input_required")) {
        rv__tool_call_input_required(s, call, rpc->result);
        return;
    } else if (rv__str_none(call->own.note.task) &&
               (rv__rpc_is(type, "task")
                    ? rv__tool_task_created(s, call, rpc->result)
                    : s->era == ERA_HANDSHAKE &&
                          rv__tool_task_created(
                              s, call, rv__rpc_member(rpc->result, "task", RV__JSON_OBJECT)))) {
        return;
    } else if (!rv__str_none(type) && !rv__json_string_is(type, rv__str("complete"))) {
        result = (struct rv__tool_result){ .end = TOOL_REFUSED, .code = RV__RPC_CAPABILITY };
        snprintf(result.error, sizeof result.error,
                 "the MCP server '%s' answered with %.*s, which it was not asked for", s->name,
                 (int)(type.len < 60 ? type.len : 60), type.at);
    }
    rv__tool_call_finish(s, call, &result);
}

static void start(struct rv__errand *errand)
{
    struct rv__tool_call *call = RV__CONTAINER(errand, struct rv__tool_call, own.start);
    struct rv__tool_server *s = call->server;
    if (s->io == NULL) {
        s->io = call->own.io;
        s->close.run = rv__tool_server_close;
        rv__io_at_close(s->io, &s->close);
    }
    if (s->unusable != NULL) {
        rv__tool_call_fail(s, call, TOOL_DOWN, s->unusable);
        return;
    }
    if (s->closing) {
        rv__tool_call_fail(s, call, TOOL_CLOSED, "");
        return;
    }
    rv__chain_add(&s->waiting, &call->own.listed);
    if (s->state == SERVER_UP)
        rv__tool_server_flush(s);
    else
        rv__tool_server_wake(s);
}

static void cancel(struct rv__errand *errand)
{
    struct rv__tool_call *call = RV__CONTAINER(errand, struct rv__tool_call, own.cancel);
    struct rv__tool_server *s = call->server;
    struct rv__tool_request *r = call->own.request;
    if (r != NULL) {
        rv__tool_notify_cancelled(r);
        rv__tool_request_end(r);
    } else {
        rv__chain_remove(call->own.is_polling ? &s->polling : &s->waiting, &call->own.listed);
    }
    rv__tool_call_fail(s, call, TOOL_CANCELLED, "");
}

int rv__tool_call_start(struct rv__io *io, struct rv__tool_call *call)
{
    memset(&call->own, 0, sizeof call->own);
    rv__buf_init(&call->own.answers, RV__RPC_BYTES);
    if (!rv__str_none(call->note))
        rv__tool_note_read(call->note, &call->own.note);
    call->own.start.run = start;
    call->own.cancel.run = cancel;
    call->own.io = io;
    return rv__io_post(io, &call->own.start);
}

void rv__tool_call_cancel(struct rv__io *io, struct rv__tool_call *call)
{
    (void)rv__io_post(io, &call->own.cancel); /* an error: the loop ends, and with it the call */
}
