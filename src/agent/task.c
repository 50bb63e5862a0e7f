/* task.c: calls that the server works on as a task.
 *
 * Invariants
 * 1. A task's id is recorded, as a note of the step, before the task is first polled: rv__tool_task_created() ends the
 *    call with that note, and the step's next call polls.
 * 2. A call in `polling` has its alarm set and no request.
 * 3. Losing the server, its session or a connection does not end a task: it is polled again later, for a bounded time. */
#include <stdio.h>

#include "agent/server.h"
#include "base/alloc.h"

enum {
    MISSED_MS = 5000, /* before a task is polled again whose server did not answer, */
    MISSED_MAX = 120, /* and how often in a row: ten minutes */
};

static const struct rv__str none = { NULL, 0 };

static void poll_again(struct rv__alarm *alarm)
{
    struct rv__tool_call *call = RV__CONTAINER(alarm, struct rv__tool_call, own.poll);
    struct rv__tool_server *s = call->server;
    call->own.is_polling = false;
    rv__chain_remove(&s->polling, &call->own.listed);
    rv__chain_add(&s->waiting, &call->own.listed);
    if (s->state == SERVER_UP)
        rv__tool_server_flush(s);
    else
        rv__tool_server_wake(s);
}

static bool poll_in(struct rv__tool_server *s, struct rv__tool_call *call, int64_t ms)
{
    call->own.poll.ring = poll_again;
    call->own.is_polling = rv__io_alarm(s->io, &call->own.poll, ms) == RV_OK;
    if (call->own.is_polling)
        rv__chain_add(&s->polling, &call->own.listed);
    return call->own.is_polling;
}

bool rv__tool_task_retry(struct rv__tool_server *s, struct rv__tool_call *call)
{
    if (rv__str_none(call->own.note.task) || call->gives_up || call->own.missed_polls == MISSED_MAX)
        return false;
    call->own.missed_polls++;
    return poll_in(s, call, MISSED_MS);
}

void rv__tool_task_ask(struct rv__tool_server *s, struct rv__tool_call *call,
                       enum rv__tool_ask what)
{
    call->own.request = rv__tool_request_send(s, what, call, none);
    if (call->own.request != NULL)
        rv__tool_call_limit_wait(call);
    else if (!rv__tool_task_retry(s, call))
        rv__tool_call_fail(s, call, TOOL_LOST, "the task could not be asked for");
}

bool rv__tool_task_created(struct rv__tool_server *s, struct rv__tool_call *call,
                           struct rv__str task)
{
    struct rv__buf note;
    rv__buf_init(&note, RV__RPC_BYTES);
    if (rv__str_none(call->key) || !rv__tool_note_put_task(&note, s->name, task)) {
        rv__buf_done(&note);
        return false;
    }
    rv__tool_call_finish_noted(s, call, &note);
    return true;
}

void rv__tool_task_status(struct rv__tool_server *s, struct rv__tool_call *call,
                          const struct rv__rpc *rpc)
{
    struct rv__str status = rv__rpc_member(rpc->result, "status", RV__JSON_STRING);
    struct rv__rpc end = { .kind = RPC_RESULT };
    char why[RV__RPC_ERROR_TEXT + 60], words[RV__RPC_ERROR_TEXT];
    call->own.missed_polls = 0;
    call->own.resent = false; /* sessions may end many times while a task lasts */
    if (rpc->kind == RPC_ERROR) {
        rv__rpc_error_text(rpc, words, sizeof words);
        snprintf(why, sizeof why, "it does not tell about its task: %s", words);
        rv__tool_call_fail(s, call, TOOL_LOST, why);
    } else if (rv__rpc_is(status, "working")) {
        if (!poll_in(s, call, rv__tool_note_poll_ms(rpc->result)))
            rv__tool_call_fail(s, call, TOOL_LOST, "out of memory");
    } else if (rv__rpc_is(status, "cancelled")) {
        rv__tool_call_fail(s, call, TOOL_LOST, "its task was cancelled there");
    } else if (s->era == ERA_HANDSHAKE) {
        rv__tool_task_ask(
            s, call,
            ASK_TASK_RESULT); /* also if it wants input: it asks in the midst of that request */
    } else if (rv__rpc_is(status, "input_required")) {
        rv__tool_call_input_required(s, call, rpc->result);
    } else if (rv__rpc_is(status, "completed") &&
               !rv__str_none(end.result = rv__rpc_member(rpc->result, "result", RV__JSON_OBJECT))) {
        rv__tool_call_answered(s, call, &end);
    } else {
        struct rv__str error = rv__rpc_member(rpc->result, "error", RV__JSON_OBJECT);
        struct rv__str code = rv__rpc_member(error, "code", RV__JSON_NUMBER);
        end = (struct rv__rpc){ .kind = RPC_ERROR,
                                .message = rv__rpc_member(error, "message", RV__JSON_STRING) };
        if (!rv__str_none(code))
            (void)rv__json_int(code, &end.code);
        rv__tool_call_answered(s, call, &end);
    }
}
