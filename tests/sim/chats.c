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
void chat_answered(struct rec_chat *chat, const struct rv__node *node, const struct rv__fact *fact)
{
    struct rv__str text = fact->state != NULL ? rv__blob_str(fact->state) : rv__str("{}");
    json_t *state = json_loadb(text.at, text.len, 0, NULL), *call;
    size_t i;
    chat->answered++;
    chat->calls = 0;
    chat->in += number(state, "inputTokens");
    chat->out += number(state, "outputTokens");
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
}

const char *chat_bound(const struct rec_chat *chat, const struct rv__node *node)
{
    int64_t budget = node->chat.budget_tokens;
    if (chat->turn >= node->chat.max_turns)
        return "maxTurns";
    return budget > 0 && chat->in + chat->out >= budget ? "budget" : NULL;
}

/* Do calls of the last turn wait to begin, or run? */
static bool has_calls(const struct rec_chat *chat)
{
    for (int i = 0; i < chat->calls; i++)
        if (chat->tools[i] != 0 && !chat->begun[i])
            return true;
    return chat->open > 0;
}

const char *chat_starts(struct rec_chat *chat, const struct rv__node *node,
                        const struct rv__fact *fact)
{
    int turn = (int)(fact->generation >> 7 & 1023), call = (int)(fact->generation & 127) - 1;
    if (fact->attempt != chat->attempt || fact->generation >> 17 != chat->attempt)
        return "a turn is of another conversation";
    if (chat->waits)
        return "a conversation begins before its time";
    if (fact->index == 0) {
        bool bounded = chat->turn > 0 ? chat_bound(chat, node) != NULL
                                      : node->chat.budget_tokens > 0 &&
                                            chat->in + chat->out >= node->chat.budget_tokens;
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
    if (chat_bound(chat, node) != NULL)
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
enum rv__status chat_outcome(const struct rec_chat *chat, const struct rv__node *node,
                             const char **code)
{
    *code = NULL;
    if (chat->attempt == 0 || chat->in_turn || chat->waits)
        return STATUS_RUNNING;
    if (chat->broken)
        return chat->gave_up ? STATUS_FAILED : STATUS_RUNNING;
    if (chat->turn == 0) {
        bool out = node->chat.budget_tokens > 0 && chat->in + chat->out >= node->chat.budget_tokens;
        *code = out ? "budget" : NULL;
        return out ? STATUS_FAILED : STATUS_RUNNING;
    }
    if (chat->calls == 0)
        return STATUS_COMPLETED;
    bool begun = false;
    for (int i = 0; i < chat->calls; i++)
        begun |= chat->begun[i];
    if (!begun || !has_calls(chat))
        *code = chat_bound(chat, node);
    return *code != NULL ? STATUS_FAILED : STATUS_RUNNING;
}

json_t *chat_state(const struct rec_chat *chat)
{
    return json_pack("{s:{s:I,s:I,s:I},s:o,s:i,s:o}", "usage", "inputTokens", (json_int_t)chat->in,
                     "outputTokens", (json_int_t)chat->out, "totalTokens",
                     (json_int_t)(chat->in + chat->out), "model",
                     chat->model != NULL ? json_incref(chat->model) : json_null(), "turns",
                     chat->answered, "finishReason",
                     chat->finish != NULL ? json_incref(chat->finish) : json_null());
}
