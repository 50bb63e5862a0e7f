/* chats.c: a naive model of chats, written from the specification (SPEC: agents) and kept beside the record:
 * which turn or call may begin, and what a chat has come to. It shares no code with src/flow. */
#include "sim.h"

#include <stdlib.h>

#include "base/json.h"

void chat_begins(struct rec_chat *chat)
{
    *chat = (struct rec_chat){ .attempt = 1 };
}

static int64_t number(const json_t *of, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(json_object_get(of, "usage"), key));
}

static void keep(json_t **to, json_t *word)
{
    json_decref(*to);
    *to = json_is_string(word) ? json_incref(word) : json_null();
}

/* The model has answered: which tools does it call? */
struct rv__budget chat_answered(struct rec_chat *chat, const struct rv__node *node,
                                const struct rv__fact *fact)
{
    struct rv__str text = fact->state != NULL ? rv__blob_str(fact->state) : rv__str("{}");
    json_t *state = json_loadb(text.at, text.len, 0, NULL), *call;
    size_t i;
    chat->answered++;
    chat->calls = 0;
    json_t *cost = json_object_get(json_object_get(state, "usage"), "cost");
    struct rv__budget used = { number(state, "inputTokens") + number(state, "outputTokens"),
                               (int64_t)(json_number_value(cost) * 1e9 + 0.5) };
    chat->in += number(state, "inputTokens");
    chat->out += number(state, "outputTokens");
    chat->cost += used.cost;
    keep(&chat->model, json_object_get(state, "model"));
    keep(&chat->finish, json_object_get(state, "finishReason"));
    json_array_foreach (json_object_get(state, "calls"), i, call) {
        const char *name = json_string_value(json_object_get(call, "name"));
        chat->tools[chat->calls] = 0;
        chat->begun[chat->calls] = false;
        for (uint32_t b = 1; b < node->body_count; b++)
            if (name != NULL && rv__str_is(node->bodies[b].alias, name))
                chat->tools[chat->calls] = b;
        chat->calls++;
    }
    rv__blob_unref(chat->result);
    chat->result = rv__blob_ref(fact->result);
    json_decref(state);
    return used;
}

static bool is_used_up(const struct rv__budget *budget, int64_t tokens, int64_t cost)
{
    return (budget->tokens > 0 && tokens >= budget->tokens) ||
           (budget->cost > 0 && cost >= budget->cost);
}

/* The next workflow outwards, from the node; *next is where to look from then. NULL: there is none. A detached block
 * counts only for its run. */
static const struct rv__body *workflow_around(const struct rv__node *node,
                                              const struct rv__node **next, bool *detached)
{
    for (;;) {
        const struct rv__body *body = node->handler_in != NULL ? node->handler_in : node->body;
        const struct rv__node *outer = node->handler_of != NULL ? node->handler_of : body->owner;
        bool found = node->handler_of == NULL && body->wrap != NULL &&
                     (!*detached || body->owner == NULL);
        *next = outer;
        if (outer != NULL && outer->kind == NODE_CONCURRENT && outer->concurrent.detached)
            *detached = true;
        if (found || outer == NULL)
            return found ? body : NULL;
        node = outer;
    }
}

static uint32_t depth_of(const struct rv__body *body)
{
    uint32_t depth = 0;
    while (body->owner != NULL) {
        depth += numbers(body->owner);
        const struct rv__node *node = body->owner;
        while (node->handler_of != NULL)
            node = node->handler_of;
        body = node->handler_in != NULL ? node->handler_in : node->body;
    }
    return depth;
}

static bool has_budget(const struct rv__body *workflow)
{
    return workflow->wrap->budget.tokens > 0 || workflow->wrap->budget.cost > 0;
}

bool chat_may_be_bounded(const struct rv__node *chat)
{
    bool detached = false;
    const struct rv__body *workflow;
    for (const struct rv__node *node = chat; node != NULL;)
        if ((workflow = workflow_around(node, &node, &detached)) != NULL && has_budget(workflow))
            return true;
    return false;
}

/* Does the answer count for this execution of the workflow? */
static bool is_in(const struct rec_answer *answer, const struct rv__plan *plan,
                  const struct rv__body *workflow, const int64_t *vector, uint32_t depth)
{
    bool detached = false;
    const struct rv__body *around = NULL;
    for (const struct rv__node *node = plan->nodes[answer->turn->node];
         node != NULL && around != workflow;)
        around = workflow_around(node, &node, &detached);
    return around == workflow &&
           (depth == 0 || memcmp(answer->turn->vector, vector, depth * sizeof *vector) == 0);
}

bool chat_is_bounded(const struct record *rec, const struct rv__node *chat, const int64_t *vector)
{
    bool detached = false;
    for (const struct rv__node *node = chat; node != NULL;) {
        const struct rv__body *workflow = workflow_around(node, &node, &detached);
        struct rv__budget used = { 0 };
        if (workflow == NULL || !has_budget(workflow))
            continue;
        for (size_t i = 0; i < rec->answer_count; i++)
            if (is_in(&rec->answers[i], rec->plan, workflow, vector, depth_of(workflow))) {
                used.tokens += rec->answers[i].used.tokens;
                used.cost += rec->answers[i].used.cost;
            }
        if (is_used_up(&workflow->wrap->budget, used.tokens, used.cost))
            return true;
    }
    return false;
}

static bool out_of_budget(const struct rec_chat *chat, const struct rv__node *node, bool around)
{
    return around || is_used_up(&node->chat.budget, chat->in + chat->out, chat->cost);
}

const char *chat_bound(const struct rec_chat *chat, const struct rv__node *node, bool around)
{
    if (chat->turn >= node->chat.max_turns)
        return "maxTurns";
    return out_of_budget(chat, node, around) ? "budget" : NULL;
}

/* Do calls of the last turn wait to begin, or run? */
static bool has_calls(const struct rec_chat *chat)
{
    for (int i = 0; i < chat->calls; i++)
        if (chat->tools[i] != 0 && !chat->begun[i])
            return true;
    return chat->open > 0;
}

static bool any_begun(const struct rec_chat *chat)
{
    bool begun = false;
    for (int i = 0; i < chat->calls; i++)
        begun |= chat->begun[i];
    return begun;
}

const char *chat_starts(struct rec_chat *chat, const struct rv__node *node,
                        const struct rv__fact *fact, bool around)
{
    int turn = (int)(fact->generation >> 7 & 1023), call = (int)(fact->generation & 127) - 1;
    if (fact->attempt != chat->attempt || fact->generation >> 17 != chat->attempt)
        return "a turn is of another conversation";
    if (chat->waits)
        return "a conversation begins before its time";
    if (fact->index == 0) {
        bool bounded = chat->turn > 0 ? chat_bound(chat, node, around) != NULL
                                      : out_of_budget(chat, node, around);
        if (call != -1 || turn != chat->turn + 1)
            return "turns are counted wrongly";
        if (chat->turn > 0 && (chat->calls == 0 || chat->in_turn || has_calls(chat)))
            return "a turn begins before the one before it is over";
        if (bounded)
            return "a turn begins beyond a bound";
        chat->turn++;
        chat->calls = 0;
        chat->in_turn = true;
        return NULL;
    }
    if (chat->in_turn || turn != chat->turn || call < 0 || call >= chat->calls)
        return "a tool is called that the model did not call";
    if (chat->tools[call] != fact->index || chat->begun[call])
        return "another tool is called, or the same call is made again";
    if (chat_bound(chat, node, around && !any_begun(chat)) != NULL)
        return "a tool is called beyond a bound";
    chat->begun[call] = true;
    chat->open++;
    return NULL;
}

void chat_ends(struct rec_chat *chat, const struct rv__fact *fact)
{
    if (fact->index > 0) {
        chat->open--;
        return;
    }
    chat->in_turn = false;
    chat->broken = fact->status == STATUS_FAILED;
}

void chat_anew(struct rec_chat *chat)
{
    chat->attempt++;
    chat->turn = chat->answered = chat->calls = chat->open = 0;
    chat->in_turn = chat->broken = chat->gave_up = false;
    chat->waits = true;
    rv__blob_unref(chat->result);
    chat->result = NULL;
}

void chat_done(struct rec_chat *chat)
{
    rv__blob_unref(chat->result);
    json_decref(chat->model);
    json_decref(chat->finish);
    *chat = (struct rec_chat){ 0 };
}

/* What follows from what is known: completed, failed (*code: by a bound; NULL: as its turn), or neither. */
enum rv__status chat_outcome(const struct rec_chat *chat, const struct rv__node *node, bool around,
                             const char **code)
{
    *code = NULL;
    if (chat->attempt == 0 || chat->in_turn || chat->waits)
        return STATUS_RUNNING;
    if (chat->broken)
        return chat->gave_up ? STATUS_FAILED : STATUS_RUNNING;
    if (chat->turn == 0) {
        bool out = out_of_budget(chat, node, around);
        *code = out ? "budget" : NULL;
        return out ? STATUS_FAILED : STATUS_RUNNING;
    }
    if (chat->calls == 0)
        return STATUS_COMPLETED;
    if (!any_begun(chat) || !has_calls(chat))
        *code = chat_bound(chat, node, around);
    return *code != NULL ? STATUS_FAILED : STATUS_RUNNING;
}

json_t *chat_state(const struct rec_chat *chat)
{
    json_t *state = json_pack("{s:{s:I,s:I,s:I},s:o,s:i,s:o}", "usage", "inputTokens",
                              (json_int_t)chat->in, "outputTokens", (json_int_t)chat->out,
                              "totalTokens", (json_int_t)(chat->in + chat->out), "model",
                              chat->model != NULL ? json_incref(chat->model) : json_null(), "turns",
                              chat->answered, "finishReason",
                              chat->finish != NULL ? json_incref(chat->finish) : json_null());
    if (chat->cost > 0)
        json_object_set_new(json_object_get(state, "usage"), "cost",
                            chat->cost % 1000000000 == 0 ? json_integer(chat->cost / 1000000000)
                                                         : json_real((double)chat->cost / 1e9));
    return state;
}
