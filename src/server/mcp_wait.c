/* mcp_wait.c: calls that wait: for the end of a run, or for changes they subscribed to.
 *
 * A waiting call is checked when its run has ended, and regularly: there may be something to send. Its progress is
 * the number of top-level nodes that have ended; between two of them it still grows, by less and less, because a
 * client may take silence for a failure. */
#include "server/mcp.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"

enum { MESSAGE_BYTES = 200 };

static const struct rv__str none = { NULL, 0 };

static int64_t now_ms(void)
{
    return rv__mono_ms(rv__clock_real());
}

/* ---------------------------------------------------------------------------------- progress --- */

static bool node_has_ended(struct rv__str node)
{
    static const char *const ends[] = { "completed", "failed", "skipped", "cancelled" };
    struct rv__str status;
    if (!rv__json_get(node, "status", &status))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rv__json_string_is(status, rv__str(ends[i])))
            return true;
    return false;
}

/* How many nodes have ended, of how many, and the first that has not. */
static void count_nodes(struct rv__mcp_call *call, struct rv__str run, size_t *ended, size_t *all,
                        const char **at)
{
    struct rv__str steps, node;
    struct rv__json_iter it;
    *ended = *all = 0;
    *at = NULL;
    if (!rv__json_get(run, "steps", &steps))
        return;
    rv__json_iter_init(&it, steps);
    while (rv__json_next(&it, NULL, &node)) {
        ++*all;
        if (node_has_ended(node))
            ++*ended;
        else if (*at == NULL)
            *at = rv__mcp_text(call, node, "alias");
    }
}

static void tell_progress(struct rv__mcp_call *call, struct rv__str run)
{
    size_t ended, all;
    const char *at;
    char message[MESSAGE_BYTES];
    int64_t now = now_ms();
    if (rv__str_none(call->progress) || call->request->silent)
        return;
    count_nodes(call, run, &ended, &all, &at);
    if (call->told && ended <= call->ended_nodes && now - call->told_ms < RV__MCP_BEAT_MS)
        return;
    call->beats = call->told && ended <= call->ended_nodes ? call->beats + 1 : 0;
    if (!call->told || ended > call->ended_nodes)
        call->ended_nodes = ended;
    call->told = true;
    call->told_ms = now;
    (void)snprintf(message, sizeof message, "run %s: %zu of %zu nodes have ended%s%.60s",
                   call->run_id, ended, all, at != NULL ? "; now " : "", at != NULL ? at : "");
    rv__mcp_notify(call, "notifications/progress");
    rv__buf_text(&call->out, ",\"progressToken\":");
    rv__buf_str(&call->out, call->progress);
    rv__buf_text(&call->out, ",\"progress\":");
    rv__buf_json_double(&call->out, (double)call->ended_nodes +
                                        (double)call->beats / ((double)call->beats + 1));
    rv__put_int(&call->out, "total", (int64_t)all);
    rv__put_text(&call->out, "message", message);
    rv__mcp_notify_end(call);
}

/* ----------------------------------------------------------------------------------- the end --- */

static void answer_outcome(struct rv__mcp_call *call, const struct rv__mcp_doc *outcome)
{
    enum rv__mcp_waiting what = call->waits;
    call->waits = RV__MCP_WAITS_NOT;
    if (outcome->status != 200) {
        rv__mcp_refused(call, outcome);
        return;
    }
    rv__mcp_result(call, "complete");
    if (what == RV__MCP_WAITS_TASK)
        rv__buf_fmt(&call->out,
                    ",\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}",
                    call->run_id);
    rv__mcp_put_outcome(call, call->run_id, outcome);
    rv__mcp_result_end(call);
}

/* The run continues without this call: answer with its state, and how to continue. */
static void answer_later(struct rv__mcp_call *call, const char *why)
{
    struct rv__str status = RV__STR("\"running\"");
    struct rv__mcp_doc run, brief = { .status = 200 };
    struct rv__buf text;
    enum rv__mcp_waiting what = call->waits;
    call->waits = RV__MCP_WAITS_NOT;
    if (what == RV__MCP_WAITS_TASK) {
        rv__mcp_error(call, 200, RV__MCP_INTERNAL, NULL,
                      "%s: the task '%s' has not ended; ask for its result again", why,
                      call->run_id);
        return;
    }
    rv__mcp_ask_run(call, call->run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status == 200 && !rv__str_none(run.body))
        (void)rv__json_get(run.body, "status", &status);
    rv__buf_init(&text, 1u << 16);
    rv__buf_fmt(&text, "{\"runId\":\"%s\",\"status\":%.*s", call->run_id, RV__ARG(status));
    rv__buf_fmt(&text,
                ",\"message\":\"%s: the run goes on. rival_why says what it waits for, "
                "rival_decide answers that, rival_wait waits for its end.\"}",
                why);
    brief.body = rv__buf_view(&text);
    rv__mcp_result(call, "complete");
    rv__mcp_put_tool_result(&call->out, &brief, call->run_id, false);
    rv__mcp_result_end(call);
    rv__buf_done(&text);
    rv__mcp_doc_done(&run);
}

/* Use the answers in the call for what the run asks for now. */
static void use_answers(struct rv__mcp_call *call, struct rv__str responses)
{
    call->answered = true;
    if (!rv__mcp_take_inputs(call, call->run_id, responses))
        call->waits = RV__MCP_WAITS_NOT; /* it was answered with an error */
}

/* Ask the client's user for the input that the run waits for: the client calls again with the answers. The state
 * names the run; its second part only makes it different each time. */
static bool answer_inputs(struct rv__mcp_call *call)
{
    struct rv__buf inputs;
    rv__buf_init(&inputs, RV__MCP_READ_BYTES);
    bool any = rv__mcp_put_inputs(call, call->run_id, &inputs) > 0 && inputs.rc == RV_OK;
    if (any) {
        call->waits = RV__MCP_WAITS_NOT;
        rv__mcp_result(call, "input_required");
        rv__buf_str(&call->out, rv__buf_view(&inputs));
        rv__buf_fmt(&call->out, ",\"requestState\":\"%s/%016llx\"", call->run_id,
                    (unsigned long long)rv__str_hash(RV__HASH_START, rv__buf_view(&inputs)));
        rv__mcp_result_end(call);
    }
    rv__buf_done(&inputs);
    return any;
}

static bool waits_for_somebody(struct rv__str run)
{
    struct rv__str waiting;
    return rv__json_get(run, "waiting", &waiting);
}

static void look_at_run(struct rv__mcp_call *call)
{
    struct rv__mcp_doc run, outcome;
    struct rv__str responses;
    rv__mcp_ask_run(call, call->run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    bool known = run.status == 200 && !rv__str_none(run.body);
    if (run.status != 200 || (known && rv__mcp_has_ended(run.body))) {
        rv__mcp_ask_outcome(call, call->run_id, &outcome);
        if (outcome.status == 200) /* nodes that have ended since the last look */
            tell_progress(call, known ? run.body : (struct rv__str)RV__STR("{}"));
        answer_outcome(call, &outcome);
        rv__mcp_doc_done(&outcome);
    } else if (known && call->waits == RV__MCP_WAITS_CALL && waits_for_somebody(run.body)) {
        bool asks = call->modern && call->elicits;
        bool used = asks && !call->answered &&
                    rv__json_get(call->params, "inputResponses", &responses);
        if (used)
            use_answers(call, responses);       /* and look again */
        else if (!asks || !answer_inputs(call)) /* it will not be answered in this call */
            answer_later(call, "it waits for a signal or a decision");
    } else {
        if (known)
            tell_progress(call, run.body);
        if (now_ms() >= call->until_ms)
            answer_later(call, "it has not ended in time");
    }
    rv__mcp_doc_done(&run);
}

void rv__mcp_wait(struct rv__mcp_call *call, enum rv__mcp_waiting what, const char *run_id,
                  int64_t timeout_ms)
{
    if (run_id != call->run_id)
        (void)snprintf(call->run_id, sizeof call->run_id, "%s", run_id);
    call->waits = what;
    call->until_ms = call->begun_ms + timeout_ms;
    call->look_ms = RV__MCP_LOOK_FIRST_MS;
    look_at_run(call);
}

/* --------------------------------------------------------------------------------- listening --- */

static uint64_t hash_workflows(struct rv__mcp_call *call)
{
    struct rv__buf path;
    struct rv__mcp_doc doc;
    uint64_t hash = 0;
    rv__buf_init(&path, 256);
    rv__buf_text(&path, "/api/v1/workflows");
    rv__mcp_ask(call, "GET", &path, none, RV__MCP_READ_BYTES, &doc);
    if (doc.status == 200)
        hash = rv__str_hash(RV__HASH_START, doc.body);
    rv__mcp_doc_done(&doc);
    rv__buf_done(&path);
    return hash;
}

/* Send the state of a task, unless it was the last one sent. */
static void tell_task(struct rv__mcp_call *call, struct rv__mcp_listened *task)
{
    size_t begin = call->out.len;
    rv__mcp_notify(call, "notifications/tasks");
    size_t head = call->out.len;
    int status = rv__mcp_put_task(call, task->run_id, true);
    if (call->out.rc < 0)
        return;
    uint64_t hash = rv__str_hash(RV__HASH_START,
                                 (struct rv__str){ call->out.text + head, call->out.len - head });
    if (status != 200 || hash == task->seen) {
        rv__buf_cut(&call->out, begin);
        return;
    }
    task->seen = hash;
    rv__mcp_notify_end(call);
}

static void look_for_changes(struct rv__mcp_call *call)
{
    if (call->hears_tools) {
        uint64_t hash = hash_workflows(call);
        if (hash != 0 && hash != call->tools_seen) {
            rv__mcp_notify(call, "notifications/tools/list_changed");
            rv__mcp_notify_end(call);
            call->tools_seen = hash;
        }
    }
    for (size_t i = 0; i < call->listened_count; i++)
        tell_task(call, &call->listened[i]);
    if (now_ms() >= call->until_ms) {
        call->waits = RV__MCP_WAITS_NOT;
        rv__mcp_result(call, "complete");
        rv__mcp_result_end(call);
    }
}

static void take_task(struct rv__mcp_call *call, struct rv__str id)
{
    struct rv__str text;
    struct rv__mcp_doc run;
    if (call->listened_count == RV__MCP_LISTENED || rv__json_string(id, &call->arena, &text) < 0 ||
        !rv__id_valid(text))
        return;
    struct rv__mcp_listened *task = &call->listened[call->listened_count];
    memcpy(task->run_id, text.at, text.len);
    task->run_id[text.len] = '\0';
    rv__mcp_ask_run(call, task->run_id, "?results=0", RV__MCP_READ_BYTES, &run);
    if (run.status == 200)
        call->listened_count++;
    rv__mcp_doc_done(&run);
}

void rv__mcp_listen(struct rv__mcp_call *call)
{
    struct rv__str wanted, tools, ids, id;
    struct rv__json_iter it;
    bool yes;
    if (rv__str_none(call->params) || !rv__json_get(call->params, "notifications", &wanted) ||
        rv__json_type(wanted) != RV__JSON_OBJECT) {
        rv__mcp_error(call, 200, RV__MCP_PARAMS, NULL, "`notifications` is missing: an object");
        return;
    }
    bool has_ids = rv__json_get(wanted, "taskIds", &ids);
    if (has_ids && !call->tasks) {
        rv__mcp_error(call, 400, RV__MCP_CAPABILITY,
                      "{\"requiredCapabilities\":{\"extensions\":{\"" RV__MCP_TASKS_EXTENSION
                      "\":{}}}}",
                      "missing required client capability: " RV__MCP_TASKS_EXTENSION);
        return;
    }
    call->listened = rv__zalloc(RV__MCP_LISTENED, sizeof *call->listened);
    if (call->listened == NULL) {
        rv__mcp_error(call, 500, RV__MCP_INTERNAL, NULL, "out of memory");
        return;
    }
    call->hears_tools = rv__json_get(wanted, "toolsListChanged", &tools) &&
                        rv__json_bool(tools, &yes) == RV_OK && yes;
    if (call->hears_tools)
        call->tools_seen = hash_workflows(call);
    if (has_ids) {
        rv__json_iter_init(&it, ids);
        while (rv__json_next(&it, NULL, &id))
            take_task(call, id);
    }
    call->waits = RV__MCP_WAITS_CHANGE;
    call->until_ms = call->begun_ms + RV__MCP_LISTEN_MS;
    call->look_ms = RV__MCP_LOOK_MOST_MS;
    rv__mcp_notify(call, "notifications/subscriptions/acknowledged");
    rv__buf_text(&call->out, ",\"notifications\":{");
    if (call->hears_tools)
        rv__buf_text(&call->out, "\"toolsListChanged\":true");
    if (has_ids) {
        rv__buf_text(&call->out, call->hears_tools ? ",\"taskIds\":[" : "\"taskIds\":[");
        for (size_t i = 0; i < call->listened_count; i++)
            rv__buf_fmt(&call->out, "%s\"%s\"", i > 0 ? "," : "", call->listened[i].run_id);
        rv__buf_char(&call->out, ']');
    }
    rv__buf_char(&call->out, '}');
    rv__mcp_notify_end(call);
    look_for_changes(call);
}

/* -------------------------------------------------------------------------------- the carrier's --- */

bool rv__mcp_waits(const struct rv__mcp_call *call, const char **run_id, int64_t *until_ms)
{
    int64_t look = now_ms() + call->look_ms;
    if (call->waits == RV__MCP_WAITS_NOT)
        return false;
    *run_id = call->waits != RV__MCP_WAITS_CHANGE ? call->run_id
              : call->listened_count > 0          ? call->listened[0].run_id
                                                  : "";
    *until_ms = look < call->until_ms ? look : call->until_ms;
    return true;
}

bool rv__mcp_look(struct rv__mcp_call *call)
{
    rv__arena_reset(&call->arena);
    call->look_ms = call->look_ms < RV__MCP_LOOK_MOST_MS / 2 ? call->look_ms * 2
                                                             : RV__MCP_LOOK_MOST_MS;
    if (call->waits == RV__MCP_WAITS_CHANGE)
        look_for_changes(call);
    else if (call->waits != RV__MCP_WAITS_NOT)
        look_at_run(call);
    return call->waits != RV__MCP_WAITS_NOT;
}

void rv__mcp_give_up(struct rv__mcp_call *call, const char *why)
{
    if (call->waits == RV__MCP_WAITS_NOT)
        return;
    if (call->waits == RV__MCP_WAITS_CHANGE) {
        call->waits = RV__MCP_WAITS_NOT;
        rv__mcp_result(call, "complete");
        rv__mcp_result_end(call);
        return;
    }
    answer_later(call, why);
}
