/* reference_chat.c: the reference of chats: how a conversation ends. Its turns and calls are the model's:
 * chats.c. */
#include "reference.h"

#include <string.h>

/* The turns one after the other, as the oracle says they will go; what its tools say changes nothing. */
static void foresee_chat(struct reference *ref, const struct rv__node *node, struct at at,
                         struct end *ret)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    const struct rv__step_config *config = &node->chat.config;
    const struct rv__node *turn = node->bodies[0].nodes[0];
    struct rec_chat chat;
    const char *code = NULL;
    if (config->timeout_ms > 0 || turn->step.config.timeout_ms > 0)
        ref->unsure = true; /* who knows how long it takes */
    if (chat_may_be_bounded(node))
        ref->unsure = true; /* or what others have used up by then */
    chat_begins(&chat);
    while (chat_outcome(&chat, node, false, &code) == STATUS_RUNNING && !ref->unsure) {
        struct at in = ref_deeper(at, rv__chat_number(chat.attempt, chat.turn + 1, -1), room);
        struct spot spot = ref_spot(ref, turn, in);
        struct rv__fact fact = { .generation = in.vector[in.depth - 1], .attempt = chat.attempt };
        struct outcome o = { .behavior = BEHAVIOR_LATER };
        struct rv__buf text;
        int attempt = 0;
        (void)chat_starts(&chat, node, &fact, false);
        while (o.behavior == BEHAVIOR_LATER)
            oracle_attempt(ref->oracle, spot, turn, ++attempt, &o);
        rv__buf_init(&text, SIZE_MAX);
        if (o.fate == FATE_DONE) {
            oracle_result(ref->oracle, spot, attempt, false, &text);
            fact.result = sim_blob(rv__buf_view(&text));
            rv__buf_reset(&text);
            oracle_answer(ref->oracle, spot, turn, attempt, &text);
            fact.state = sim_blob(rv__buf_view(&text));
            (void)chat_answered(&chat, node, &fact);
        } else {
            oracle_error(ref->oracle, spot, attempt, false, &text);
            bool may = o.behavior == BEHAVIOR_RETRY ||
                       (o.behavior == BEHAVIOR_PLAIN &&
                        lists_say_retry(config, rv__buf_view(&text), true));
            fact.status = STATUS_FAILED;
            chat.gave_up = !may || chat.attempt >= ref_max_attempts(config, &o);
            if (chat.gave_up)
                ret->error = ref_placed(ref_parse(rv__buf_view(&text)), turn, NULL, in);
        }
        rv__buf_done(&text);
        chat_ends(&chat, &fact);
        rv__fact_done(&fact);
        if (chat.broken && !chat.gave_up) {
            chat_anew(&chat);
            chat.waits = false;
        }
        bool calls = chat_bound(&chat, node, false) == NULL && !chat.broken;
        for (int i = 0; i < chat.calls && calls; i++) {
            if (chat.tools[i] == 0)
                continue;
            chat.begun[i] = true; /* it may leave us unsure */
            struct at called = ref_deeper(at, rv__chat_number(chat.attempt, chat.turn, i), room);
            struct end end = ref_node_end(ref, node->bodies[chat.tools[i]].nodes[0], called);
            ref_end_done(&end);
        }
    }
    ret->result = ref_parse_blob(chat.result, "null");
    ret->state = chat_state(&chat);
    if (chat_outcome(&chat, node, false, &code) == STATUS_FAILED) {
        json_t *error = code != NULL ? ref_own_error(code, node, at) : ret->error;
        ret->error = NULL;
        ref_fail(ret, error);
        ret->hard = !config->continue_on_error;
    }
    chat_done(&chat);
}

void ref_chat_end(struct reference *ref, const struct rv__node *node, struct at at, struct end *ret)
{
    int64_t room[RV__PLAN_MAX_DEPTH + 1];
    if (ref->rec == NULL) {
        foresee_chat(ref, node, at, ret);
        return;
    }
    const struct rec_inst *inst = ref_inst(ref, node, at);
    const struct rec_chat *chat = &inst->chat;
    const char *code = NULL;
    bool around = chat_is_bounded(ref->rec, node, inst->vector);
    enum rv__status status = chat_outcome(chat, node, around, &code);
    bool timed_out = inst->ended >= 0 && inst->status == STATUS_FAILED && !inst->aborted &&
                     rv__blob_str(inst->error).len > 0 &&
                     memmem(inst->error->text, inst->error->len, "\"code\":\"timeout\"", 16) !=
                         NULL &&
                     memmem(inst->error->text, inst->error->len, "\"message\":\"chat '", 17) !=
                         NULL;
    ret->result = ref_parse_blob(chat->result, "null");
    ret->state = chat_state(chat);
    ret->ended = status != STATUS_RUNNING || timed_out;
    if (!ret->ended)
        return;
    if (timed_out) {
        ref_fail(ret, ref_own_error("timeout", node, at));
    } else if (status == STATUS_FAILED && code != NULL) {
        ref_fail(ret, ref_own_error(code, node, at));
    } else if (status == STATUS_FAILED) {
        struct at in = ref_deeper(at, rv__chat_number(chat->attempt, chat->turn, -1), room);
        struct end turn = ref_node_end(ref, node->bodies[0].nodes[0], in);
        ref_fail(ret, turn.error != NULL ? json_incref(turn.error) : ref_any());
        ref_end_done(&turn);
    }
    if (ret->status == STATUS_FAILED)
        ret->hard = !node->chat.config.continue_on_error;
}
