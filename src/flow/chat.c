/* chat.c: the supervisor of a chat: a conversation with a model, turn by turn.
 *
 *          ┌──────────────── all calls have ended ───────────────┐
 *          ▼                                                     │
 *   ──▶  ask ──place──▶ turn ──answered, with calls──▶ calls ────┘
 *          ▲              ├─────answered, without────▶ done ──▶ completed
 *          │ timer        └─────failed──▶ broken ──none left──▶ failed
 *          └── (retry) ◀─────────────────────┘ attempts left: a new conversation
 *
 * A turn is a body with one step, the request. What its answer means for what follows (which tools are
 * called, how many tokens it took) stands in the fact of its end, for the answer itself may be long and
 * leave the cell. The calls of a turn are bodies side by side; that one fails ends nothing: the model is
 * told. A bound that is reached fails the chat before it calls or asks again.
 *
 * The conversation is a chain of entries, the turns and calls in order of their end, below one child of
 * `inner`; each has its number (rv__chat_number). A new conversation begins with an empty one. At the end
 * the last answer is all that is kept of it.
 *
 * The chat of a state leaves its whole conversation when it fails, and when it passes if the state says so: beside
 * the answer, as a second child. The next attempt begins with a copy of it, so that its turns can be sent again
 * (whether they are, work/ decides). How many turns and tokens an attempt may have is counted anew. */
#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bugs.h"
#include "base/error.h"
#include "base/json.h"
#include "flow/write.h"

enum at { TALK_ASK, TALK_TURN, TALK_CALLS, TALK_DONE, TALK_BROKEN, TALK_ATS };

enum {
    WORD = 128
}; /* bytes of a model's name or a reason to finish, as JSON; a longer one is null */

/* One piece of memory: it is freed as one. */
struct talk {
    const struct rv__cell *cell; /* for the budgets around it */
    uint8_t at;
    int attempt;        /* which conversation, from 1 */
    int turn;           /* of it: begun */
    int answered;       /* turns of it that were answered */
    int64_t retry_ms;   /* BROKEN: when the next conversation may begin; 0: there is none */
    int64_t tokens_in;  /* of all conversations together */
    int64_t tokens_out; /* the same */
    int64_t cost;       /* the same, as in rv__budget; 0: there are no prices */
    uint8_t calls;      /* of the last turn; */
    uint8_t begun;      /* the first so many of them have begun, or have no tool; */
    uint8_t tools[RV__MAX_CALLS]; /* and the body of each; 0: there is no such tool */
    char model[WORD], finish[WORD];
};

static struct talk *talk_of(const struct rv__actor *sup)
{
    return (struct talk *)(void *)sup->sup.schedule;
}

static const struct rv__step_config *config_of(const struct rv__actor *sup)
{
    return &sup->node->chat.config;
}

/* ------------------------------------------------------------------------------- answers --- */

/* What the fact of an answer says for us: {"tools":[1,0],"in":12,"out":34,"cost":56,"model":"m","finish":"stop"}.
 * Its cost is a fact, so that a later change of prices changes no past. */
struct answer {
    uint8_t calls, tools[RV__MAX_CALLS];
    int64_t in, out, cost;
    struct rv__str model, finish;
};

static bool read_count(struct rv__str json, const char *key, int64_t *ret)
{
    struct rv__str value;
    *ret = 0;
    if (!rv__json_get(json, key, &value))
        return true;
    return rv__json_int(value, ret) == RV_OK && *ret >= 0 && *ret <= RV__MAX_NUMBER;
}

/* A word that fits our memory; else null. */
static struct rv__str short_word(struct rv__str json, const char *key)
{
    struct rv__str value;
    bool good = rv__json_get(json, key, &value) && rv__json_type(value) == RV__JSON_STRING &&
                value.len < WORD;
    return good ? value : rv__str("null");
}

/* False: it is not what we wrote. */
static bool read_answer(const struct rv__node *node, const struct rv__blob *blob,
                        struct answer *ret)
{
    struct rv__str json = rv__blob_str(blob), list, number;
    struct rv__json_iter it;
    *ret = (struct answer){ .model = RV__STR("null"), .finish = RV__STR("null") };
    if (blob == NULL)
        return true;
    if (rv__blob_is_reference(blob) || rv__json_type(json) != RV__JSON_OBJECT ||
        !read_count(json, "in", &ret->in) || !read_count(json, "out", &ret->out) ||
        !read_count(json, "cost", &ret->cost))
        return false;
    ret->model = short_word(json, "model");
    ret->finish = short_word(json, "finish");
    if (!rv__json_get(json, "tools", &list))
        return true;
    if (rv__json_type(list) != RV__JSON_ARRAY)
        return false;
    rv__json_iter_init(&it, list);
    while (rv__json_next(&it, NULL, &number)) {
        int64_t tool = -1;
        if (ret->calls == RV__MAX_CALLS || rv__json_int(number, &tool) < 0 || tool < 0 ||
            tool >= node->body_count)
            return false;
        ret->tools[ret->calls++] = (uint8_t)tool;
    }
    return true;
}

/* Which tools the answer calls, by the numbers of their bodies. More calls than there may be are not made. */
static void write_tools(const struct rv__node *node, struct rv__str state, struct rv__buf *out)
{
    struct rv__json_iter it;
    struct rv__str calls, call, name;
    char word[RV__PLAN_MAX_NAME + 3];
    size_t count = 0;
    if (!rv__json_get(state, "calls", &calls) || rv__json_type(calls) != RV__JSON_ARRAY)
        return;
    rv__json_iter_init(&it, calls);
    while (count < RV__MAX_CALLS && rv__json_next(&it, NULL, &call)) {
        uint32_t tool = 0;
        bool named = rv__json_type(call) == RV__JSON_OBJECT && rv__json_get(call, "name", &name) &&
                     rv__json_type(name) == RV__JSON_STRING && name.len < sizeof word;
        if (named) /* no tool's name needs an escape: one that has any is none */
            tool = rv__chat_tool(node, (struct rv__str){ name.at + 1, name.len - 2 });
        rv__buf_text(out, count++ == 0 ? "\"tools\":[" : ",");
        rv__buf_int(out, tool);
    }
    rv__buf_text(out, count > 0 ? "]," : "");
}

/* Of one answer: so much that no sum over turns overflows. */
static int64_t at_most(int64_t n)
{
    return n < RV__MAX_NUMBER / RV__MAX_TURNS ? n : RV__MAX_NUMBER / RV__MAX_TURNS;
}

static int64_t tokens(struct rv__str state, const char *key)
{
    struct rv__str usage;
    int64_t n = 0;
    bool good = rv__json_get(state, "usage", &usage) && rv__json_type(usage) == RV__JSON_OBJECT &&
                read_count(usage, key, &n);
    return good ? at_most(n) : 0;
}

static int64_t cost(struct rv__str state)
{
    struct rv__str usage, value;
    int64_t n = 0;
    bool good = rv__json_get(state, "usage", &usage) && rv__json_type(usage) == RV__JSON_OBJECT &&
                rv__json_get(usage, "cost", &value) && rv__cost_read(value, &n);
    return good ? at_most(n) : 0;
}

static struct rv__blob *answer_of(const struct rv__actor *sup, const struct rv__msg *msg)
{
    struct rv__str state = rv__blob_str(msg->state);
    struct rv__blob *blob = NULL;
    struct rv__buf buf;
    if (rv__str_none(state) || rv__json_type(state) != RV__JSON_OBJECT)
        state = rv__str("{}");
    rv__buf_init(&buf, SIZE_MAX / 8); /* bounded by the calls and two words */
    rv__buf_char(&buf, '{');
    write_tools(sup->node, state, &buf);
    rv__buf_text(&buf, "\"in\":");
    rv__buf_int(&buf, tokens(state, "inputTokens"));
    rv__buf_text(&buf, ",\"out\":");
    rv__buf_int(&buf, tokens(state, "outputTokens"));
    if (cost(state) > 0) {
        rv__buf_text(&buf, ",\"cost\":");
        rv__buf_int(&buf, cost(state));
    }
    rv__buf_text(&buf, ",\"model\":");
    rv__buf_str(&buf, short_word(state, "model"));
    rv__buf_text(&buf, ",\"finish\":");
    rv__buf_str(&buf, short_word(state, "finishReason"));
    rv__buf_char(&buf, '}');
    if (rv__buf_err(&buf, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return blob;
}

static int64_t sum(int64_t a, int64_t b)
{
    return a + b < RV__MAX_NUMBER ? a + b : RV__MAX_NUMBER;
}

static void keep_word(char to[WORD], struct rv__str word)
{
    memcpy(to, word.at, word.len);
    to[word.len] = '\0';
}

/* The turn has been answered; its body ends next. */
static void answered(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact)
{
    struct talk *talk = talk_of(sup);
    struct answer answer;
    bool good = read_answer(sup->node, fact->turn, &answer);
    assert(good); /* rv__fact_check saw it */
    (void)good;
    talk->answered++;
    talk->calls = answer.calls;
    memcpy(talk->tools, answer.tools, sizeof talk->tools);
    talk->tokens_in = sum(talk->tokens_in, answer.in);
    talk->tokens_out = sum(talk->tokens_out, RV__BUG(260) ? 0 : answer.out);
    talk->cost = sum(talk->cost, RV__BUG(416) ? 0 : answer.cost);
    keep_word(talk->model, answer.model);
    keep_word(talk->finish, answer.finish);
    struct rv__budget more = { .tokens = sum(answer.in, answer.out), .cost = answer.cost };
    rv__budget_charge(cell, sup, &more);
}

/* Its request has failed for good: a new conversation begins then, or (0) none does. */
static void gave_up(struct rv__actor *sup, const struct rv__fact *fact)
{
    talk_of(sup)->retry_ms = fact->due_ms;
}

/* ------------------------------------------------------------------------------- decide --- */

static struct rv__first first_work(const struct rv__node *node)
{
    return rv__first_of_body(&node->bodies[0]);
}

static enum rv__phase first_phase(const struct rv__node *node, int *eval)
{
    (void)node;
    (void)eval;
    return PHASE_RUNNING;
}

/* The call to begin next; `calls`: none is left. */
static uint8_t next_call(const struct talk *talk)
{
    uint8_t at = talk->begun;
    while (at < talk->calls && talk->tools[at] == 0)
        at++;
    return at;
}

static bool out_of_turns(const struct rv__actor *sup)
{
    return talk_of(sup)->turn >= sup->node->chat.max_turns + RV__BUG(261);
}

static struct rv__budget used_by(const struct rv__actor *sup)
{
    const struct talk *talk = talk_of(sup);
    return (struct rv__budget){ .tokens = sum(talk->tokens_in, talk->tokens_out),
                                .cost = talk->cost };
}

/* Its own budget is used up, or one around it. */
static bool out_of_budget(const struct rv__actor *sup)
{
    struct rv__budget used = used_by(sup);
    bool own = rv__budget_used_up(&sup->node->chat.budget, &used) && !RV__BUG(262);
    return own || rv__budget_bounds(talk_of(sup)->cell, sup, &used) != NULL;
}

/* Nobody would be asked with what the calls give, so they are not made. */
static bool is_bounded(const struct rv__actor *sup)
{
    const struct talk *talk = talk_of(sup);
    bool asks = talk->at == TALK_ASK || (talk->at == TALK_CALLS && talk->begun == 0);
    return asks && talk->turn > 0 && (out_of_turns(sup) || out_of_budget(sup));
}

static int place(const struct rv__actor *sup, struct rv__first *first)
{
    const struct talk *talk = talk_of(sup);
    uint8_t call = next_call(talk);
    if (is_bounded(sup))
        return PLACE_TODO;
    switch ((enum at)talk->at) {
    case TALK_ASK:
        if (talk->turn == 0 && out_of_budget(sup))
            return PLACE_TODO;
        *first = first_work(sup->node);
        return first->node == NULL ? PLACE_TODO : PLACE_READY;
    case TALK_CALLS:
        if (call == talk->calls)
            return PLACE_NOWHERE;
        *first = rv__first_of_body(&sup->node->bodies[talk->tools[call]]);
        return first->node == NULL ? PLACE_TODO : PLACE_RANGE;
    case TALK_DONE:
    case TALK_BROKEN: return PLACE_TODO;
    case TALK_TURN:
    case TALK_ATS: break;
    }
    return PLACE_NOWHERE;
}

/* "120 tokens are used up, " and what follows. `whose` NULL: its own. */
static int fail_budget(struct rv__turn *turn, struct rv__actor *sup, const struct rv__wrap *whose,
                       const struct rv__budget *used, rv_error *err)
{
    const struct rv__budget *budget = whose != NULL ? &whose->budget : &sup->node->chat.budget;
    bool tokens = budget->tokens > 0 && used->tokens >= budget->tokens;
    struct rv__buf why;
    rv__buf_init(&why, 1024); /* numbers and a name */
    if (tokens)
        rv__buf_fmt(&why, "%lld tokens are used up, ", (long long)used->tokens);
    else
        rv__buf_text(&why, "a cost of ");
    if (!tokens) {
        rv__cost_write(used->cost, &why);
        rv__buf_text(&why, " is reached, ");
    }
    if (whose == NULL)
        rv__buf_text(&why, "its budget is ");
    else
        rv__buf_fmt(&why, "the budget of workflow '%.*s' is ", RV__ARG(whose->name));
    if (tokens)
        rv__buf_int(&why, budget->tokens);
    else
        rv__cost_write(budget->cost, &why);
    rv__buf_char(&why, '\0');
    int rc = rv__buf_err(&why, err);
    if (rc == RV_OK)
        rc = rv__node_fail(turn, sup, "budget", why.text, err);
    rv__buf_done(&why);
    return rc;
}

static int fail_bounded(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    const struct talk *talk = talk_of(sup);
    struct rv__budget used = used_by(sup), around;
    char why[160];
    if (talk->turn > 0 && out_of_turns(sup)) {
        snprintf(why, sizeof why, "it is not done after %d turn%s, its maxTurns", talk->turn,
                 talk->turn == 1 ? "" : "s");
        return rv__node_fail(turn, sup, "maxTurns", why, err);
    }
    if (rv__budget_used_up(&sup->node->chat.budget, &used))
        return fail_budget(turn, sup, NULL, &used, err);
    const struct rv__wrap *whose = rv__budget_bounds(talk->cell, sup, &around);
    return fail_budget(turn, sup, whose, &around, err);
}

/* `call` -1: the next turn. */
static int start(struct rv__turn *turn, struct rv__actor *sup, int call, rv_error *err)
{
    const struct talk *talk = talk_of(sup);
    int number = call < 0 ? talk->turn + 1 : talk->turn;
    struct rv__fact fact = { .kind = FACT_BODY_STARTED,
                             .actor = turn->cell->next_id,
                             .owner = sup->id,
                             .node = sup->node->id,
                             .index = call < 0 ? 0 : talk->tools[call],
                             .generation = rv__chat_number(talk->attempt, number, call),
                             .attempt = talk->attempt };
    if (number == 1 && call < 0 && config_of(sup)->timeout_ms > 0)
        fact.due_ms = rv__due_at(turn->now_ms, config_of(sup)->timeout_ms);
    return rv__say(turn, &fact, err);
}

/* The conversation is given up, and all below it; a new one begins later. */
static int say_retrying(struct rv__turn *turn, struct rv__actor *sup, struct rv__blob *error,
                        int64_t due_ms, rv_error *err)
{
    struct rv__fact fact = { .kind = FACT_NODE_RETRYING,
                             .actor = sup->id,
                             .node = sup->node->id,
                             .attempt = talk_of(sup)->attempt,
                             .error = error,
                             .due_ms = due_ms };
    return rv__say(turn, &fact, err);
}

static int advance(struct rv__turn *turn, struct rv__actor *sup, rv_error *err)
{
    const struct talk *talk = talk_of(sup);
    if (is_bounded(sup) || (talk->at == TALK_ASK && out_of_budget(sup)))
        return fail_bounded(turn, sup, err);
    switch ((enum at)talk->at) {
    case TALK_ASK: return start(turn, sup, -1, err);
    case TALK_CALLS: return start(turn, sup, next_call(talk), err);
    case TALK_DONE: return rv__node_end(turn, sup, FACT_NODE_COMPLETED, NULL, err);
    case TALK_BROKEN:
        if (talk->retry_ms != 0)
            return say_retrying(turn, sup, sup->sup.error, talk->retry_ms, err);
        return rv__node_end(turn, sup, FACT_NODE_FAILED, sup->sup.error, err);
    case TALK_TURN:
    case TALK_ATS: break;
    }
    assert(!"nothing follows for this chat");
    return RV_ESTATE;
}

/* May the conversation that fails so be followed by another? When; 0: no. */
static int64_t retry_at(const struct rv__actor *sup, const struct rv__msg *msg, int64_t now_ms)
{
    return rv__retry_at(config_of(sup), talk_of(sup)->attempt, msg, now_ms);
}

/* Its time is up, or the wait before a new conversation is over. */
static int timer(struct rv__turn *turn, struct rv__actor *sup, const struct rv__msg *msg,
                 rv_error *err)
{
    if (sup->phase == PHASE_RETRY) {
        struct rv__fact fact = { .kind = FACT_TIMER_FIRED,
                                 .actor = sup->id,
                                 .node = sup->node->id };
        return rv__say(turn, &fact, err);
    }
    const struct rv__step_config *config = config_of(sup);
    struct rv__msg failed = { .kind = MSG_FAILED, .chance = msg->chance };
    failed.behavior = config->on_timeout == ON_TIMEOUT_STOP ? BEHAVIOR_FINAL : BEHAVIOR_RETRY;
    struct rv__blob *why = rv__error_blob("timeout", "chat '%.*s' timed out after %lld ms",
                                          RV__ARG(sup->node->alias), (long long)config->timeout_ms);
    failed.error = why != NULL ? rv__error_of(why, sup) : NULL;
    rv__blob_unref(why);
    if (failed.error == NULL)
        return rv__nomem(err);
    int64_t due = retry_at(sup, &failed, turn->now_ms);
    int rc = due != 0 ? say_retrying(turn, sup, failed.error, due, err)
                      : rv__node_end(turn, sup, FACT_NODE_FAILED, failed.error, err);
    rv__blob_unref(failed.error);
    return rc;
}

/* ------------------------------------------------------------------------------- evolve --- */

static struct rv__schedule *schedule(const struct rv__cell *cell, const struct rv__node *node)
{
    (void)node;
    struct talk *talk = rv__zalloc(1, sizeof *talk);
    if (talk == NULL)
        return NULL;
    talk->cell = cell;
    talk->attempt = 1;
    keep_word(talk->model, rv__str("null"));
    keep_word(talk->finish, rv__str("null"));
    return (struct rv__schedule *)(void *)talk;
}

static struct rv__inner *empty(struct rv__entry *base, uint32_t children)
{
    struct rv__inner *inner = rv__inner_new(children);
    if (inner == NULL)
        return NULL;
    inner->base = rv__entry_ref(base);
    for (uint32_t i = 0; i < children; i++) {
        inner->children[i].scope = rv__entry_ref(base);
        inner->children[i].status = STATUS_COMPLETED;
    }
    return inner;
}

static struct rv__inner *outcomes(const struct rv__node *node, struct rv__entry *scope)
{
    (void)node;
    return empty(scope, 1);
}

/* A copy of a conversation, newest first, on `base`, whose reference it takes over. NULL: no memory. */
static struct rv__entry *copy_talk(const struct rv__entry *from, const struct rv__entry *end,
                                   struct rv__entry *base)
{
    struct rv__entry *first = NULL, **link = &first;
    for (; from != end; from = from->outer) {
        struct rv__entry *copy = rv__entry_copy(from);
        if (copy == NULL) {
            rv__entry_unref(first);
            return NULL;
        }
        copy->number = from->number;
        *link = copy;
        link = &copy->outer;
    }
    *link = base;
    return first;
}

static int carry_on(const struct rv__node *node, const struct rv__actor *frame,
                    struct rv__inner *fresh)
{
    if (rv__node_state(node) == NULL || frame->owner->sup.inner == NULL)
        return RV_OK;
    const struct rv__entry *before =
        frame->owner->sup.inner->children[frame->frame.body->index].scope;
    const struct rv__inner *left = before != NULL && before->node == node ? before->inner : NULL;
    if (left == NULL || left->child_count < 2 || left->children[1].scope == left->base)
        return RV_OK;
    struct rv__entry *talk = copy_talk(left->children[1].scope, left->base,
                                       fresh->children[0].scope);
    if (talk == NULL)
        return RV_ENOMEM;
    fresh->children[0].scope = talk;
    return RV_OK;
}

static void body_started(struct rv__actor *sup, struct rv__actor *frame)
{
    struct talk *talk = talk_of(sup);
    (void)frame;
    sup->sup.active++;
    if (talk->at == TALK_CALLS) {
        talk->begun = next_call(talk) + 1;
        return;
    }
    talk->at = TALK_TURN;
    talk->turn++;
    talk->calls = talk->begun = 0;
    talk->retry_ms = 0;
}

/* What is left of a turn or a call: its node's entry, with its number. NULL: no memory. */
static struct rv__entry *left_of(const struct rv__actor *frame, const struct rv__fact *fact)
{
    bool ran = frame->frame.scope != frame->frame.base;
    struct rv__entry *entry = ran ? rv__entry_copy(frame->frame.scope)
                                  : rv__entry_new(frame->frame.body->nodes[0], STATUS_FAILED);
    if (entry == NULL)
        return NULL;
    if (!ran)
        entry->error = rv__blob_ref(fact->error);
    entry->number = frame->frame.iteration;
    return entry;
}

static int body_ended(struct rv__cell *cell, struct rv__actor *sup, struct rv__actor *frame,
                      const struct rv__fact *fact)
{
    struct talk *talk = talk_of(sup);
    struct rv__child *talked = &sup->sup.inner->children[0];
    bool turn = frame->frame.body->index == 0, failed = fact->status == STATUS_FAILED;
    (void)cell;
    if (!turn || !failed) {
        struct rv__entry *entry = left_of(frame, fact);
        if (entry == NULL)
            return RV_ENOMEM;
        entry->outer = talked->scope;
        talked->scope = entry;
    }
    sup->sup.active--;
    sup->sup.ended++;
    if (turn && failed) {
        talk->at = TALK_BROKEN;
        sup->sup.error = rv__blob_ref(fact->error);
    } else if (turn) {
        talk->at = talk->calls == 0 ? TALK_DONE : TALK_CALLS;
    }
    if (talk->at == TALK_CALLS && sup->sup.active == (RV__BUG(263) && !turn) &&
        next_call(talk) == talk->calls && !is_bounded(sup))
        talk->at = TALK_ASK;
    return RV_OK;
}

/* A new conversation, after a while; and: it may begin. */
static int retried(struct rv__cell *cell, struct rv__actor *sup, const struct rv__fact *fact)
{
    struct talk *talk = talk_of(sup);
    if (fact->kind == FACT_NODE_RETRYING) {
        struct rv__inner *fresh = empty(sup->sup.inner->base, 1);
        if (fresh == NULL)
            return RV_ENOMEM;
        while (sup->child != NULL)
            rv__actor_end(cell, sup->child);
        if (RV__BUG(264)) {
            rv__inner_unref(fresh);
        } else {
            rv__inner_unref(sup->sup.inner);
            sup->sup.inner = fresh;
        }
        rv__blob_unref(sup->sup.error);
        sup->sup.error = NULL;
        sup->sup.active = 0;
        talk->at = TALK_ASK;
        talk->attempt += RV__BUG(265) ? 0 : 1;
        talk->turn = talk->answered = 0;
        talk->calls = talk->begun = 0;
        talk->retry_ms = 0;
    }
    sup->phase = fact->kind == FACT_NODE_RETRYING ? PHASE_RETRY : PHASE_RUNNING;
    sup->due_ms = fact->due_ms; /* a timer that fired has none */
    rv__actor_owe(cell, sup);
    rv__actor_place(cell, sup);
    return RV_OK;
}

/* ------------------------------------------------------------------------ what is left --- */

static bool has_begun(const struct rv__actor *sup)
{
    return sup->sup.inner != NULL;
}

/* The last answer; NULL: there is none. The body of its turn may not have ended yet. */
static const struct rv__entry *last_answer(const struct rv__actor *sup)
{
    const struct rv__actor *turn = sup->child;
    const struct rv__entry *last = sup->sup.inner->children[0].scope;
    if (talk_of(sup)->answered == 0 && rv__node_state(sup->node) != NULL)
        return NULL; /* those that are there are of an earlier attempt of its state */
    if (turn != NULL && turn->frame.body->index == 0 && turn->frame.scope != turn->frame.base &&
        turn->frame.scope->status == STATUS_COMPLETED)
        return turn->frame.scope;
    while (last != sup->sup.inner->base && last->node != sup->node->bodies[0].nodes[0])
        last = last->outer;
    return last != sup->sup.inner->base ? last : NULL;
}

/* Is its conversation left for the next attempt? */
static bool leaves_talk(const struct rv__actor *sup)
{
    const struct rv__state *state = rv__node_state(sup->node);
    return state != NULL && (talk_of(sup)->at != TALK_DONE || !state->clear_chat_on_pass);
}

/* The last answer, and the conversation if that is left. */
static struct rv__inner *inner(const struct rv__actor *sup)
{
    const struct rv__entry *last = last_answer(sup);
    struct rv__inner *kept = empty(sup->sup.inner->base, leaves_talk(sup) ? 2 : 1);
    if (kept != NULL && kept->child_count == 2) {
        rv__entry_unref(kept->children[1].scope);
        kept->children[1].scope = rv__entry_ref(sup->sup.inner->children[0].scope);
    }
    if (kept == NULL || last == NULL)
        return kept;
    struct rv__entry *entry = rv__entry_copy(last);
    if (entry == NULL) {
        rv__inner_unref(kept);
        return NULL;
    }
    entry->number = rv__chat_number(talk_of(sup)->attempt, talk_of(sup)->answered, -1);
    entry->outer = kept->children[0].scope;
    kept->children[0].scope = entry;
    return kept;
}

static struct rv__blob *state(const struct rv__actor *sup)
{
    const struct talk *talk = talk_of(sup);
    struct rv__blob *blob = NULL;
    struct rv__buf buf;
    rv__buf_init(&buf, 4096); /* numbers and two words */
    rv__buf_fmt(&buf, "{\"usage\":{\"inputTokens\":%lld,\"outputTokens\":%lld,\"totalTokens\":%lld",
                (long long)talk->tokens_in, (long long)talk->tokens_out,
                (long long)sum(talk->tokens_in, talk->tokens_out));
    if (talk->cost > 0) {
        rv__buf_text(&buf, ",\"cost\":");
        rv__cost_write(talk->cost, &buf);
    }
    rv__buf_fmt(&buf, "},\"model\":%s,\"turns\":%d,\"finishReason\":%s}", talk->model,
                talk->answered, talk->finish);
    if (rv__buf_err(&buf, NULL) == RV_OK)
        blob = rv__blob_new(rv__buf_view(&buf));
    rv__buf_done(&buf);
    return blob;
}

/* Calls that have no place yet. */
static bool rest(const struct rv__actor *sup, struct rv__wait *wait)
{
    const struct talk *talk = talk_of(sup);
    if (sup->phase != PHASE_RUNNING || talk == NULL || sup->place != PLACE_RANGE)
        return false;
    wait->kind = WAIT_PLACE;
    wait->count = talk->calls - next_call(talk);
    return true;
}

/* ------------------------------------------------------------------------------ results --- */

/* That of its last answer, however it ended: a chat that fails has what it had. */
static const struct rv__entry *result_from(const struct rv__entry *entry)
{
    const struct rv__inner *inner = entry->inner;
    if (inner == NULL || inner->children[0].scope == inner->base)
        return NULL;
    return inner->children[0].scope;
}

static void write_result(struct rv__writer *w, const struct rv__entry *entry)
{
    (void)entry;
    rv__writer_put(w, "null"); /* it was never answered */
}

static void expand_result(struct rv__writer *w, const struct rv__node *node, struct rv__str result,
                          struct rv__str vector)
{
    rv__node_expand(w, node->bodies[0].nodes[0], result, vector);
}

/* ---------------------------------------------------------------------------- from disk --- */

static const char *body_fits(const struct rv__actor *sup, int64_t index)
{
    const struct talk *talk = talk_of(sup);
    uint8_t call = next_call(talk);
    if (is_bounded(sup) || (talk->at == TALK_ASK && out_of_budget(sup)))
        return "a bound is reached";
    if (talk->at == TALK_ASK)
        return index == 0 ? NULL : "a turn is next";
    return talk->at == TALK_CALLS && call < talk->calls && index == talk->tools[call]
               ? NULL
               : "not the next call";
}

static const char *fact_fits(const struct rv__actor *sup, const struct rv__actor *frame,
                             const struct rv__fact *fact)
{
    const struct talk *talk = talk_of(sup);
    struct answer answer;
    if (talk == NULL)
        return "it has not begun";
    if (fact->name != NULL)
        return "it leaves no attachment";
    if (fact->kind == FACT_STEP_COMPLETED)
        return read_answer(sup->node, fact->turn, &answer) ? NULL : "the turn says something else";
    if (fact->kind == FACT_NODE_RETRYING)
        return fact->attempt == talk->attempt && fact->due_ms != 0 && talk->attempt < INT32_MAX - 1
                   ? NULL
                   : "it is of another attempt";
    if (fact->kind == FACT_BODY_ENDED) {
        bool failed = fact->status == STATUS_FAILED;
        return frame != NULL && fact->index == frame->frame.body->index &&
                       fact->next == NEXT_NONE && fact->to == 0 && fact->attempt == 0 &&
                       failed == (fact->error != NULL)
                   ? NULL
                   : "it did not end so";
    }
    if (fact->kind != FACT_BODY_STARTED)
        return "it has no states";
    int turn = talk->at == TALK_ASK ? talk->turn + 1 : talk->turn;
    int call = talk->at == TALK_ASK ? -1 : next_call(talk);
    bool timed = turn == 1 && call < 0 && config_of(sup)->timeout_ms > 0;
    return fact->generation == rv__chat_number(talk->attempt, turn, call) &&
                   fact->attempt == talk->attempt && (fact->due_ms == 0 || timed)
               ? NULL
               : "its turns are counted wrongly";
}

/* [at,attempt,turn,answered,retry,in,out,cost,model,finish,begun,tool,…] */
static void save(const struct rv__actor *sup, struct rv__buf *out)
{
    const struct talk *talk = talk_of(sup);
    rv__buf_fmt(out, "[%d,%d,%d,%d,%lld,%lld,%lld,%lld,%s,%s,%d", talk->at, talk->attempt,
                talk->turn, talk->answered, (long long)talk->retry_ms, (long long)talk->tokens_in,
                (long long)talk->tokens_out, (long long)talk->cost, talk->model, talk->finish,
                talk->begun);
    for (uint8_t i = 0; i < talk->calls; i++)
        rv__buf_fmt(out, ",%d", talk->tools[i]);
    rv__buf_char(out, ']');
}

static bool next_number(struct rv__json_iter *it, int64_t most, int64_t *ret)
{
    struct rv__str text;
    return rv__json_next(it, NULL, &text) && rv__json_int(text, ret) == RV_OK && *ret >= 0 &&
           *ret <= most;
}

static bool next_word(struct rv__json_iter *it, char to[WORD])
{
    struct rv__str text;
    if (!rv__json_next(it, NULL, &text) || text.len >= WORD ||
        (rv__json_type(text) != RV__JSON_STRING && !rv__str_is(text, "null")))
        return false;
    keep_word(to, text);
    return true;
}

static bool load(struct rv__actor *sup, struct rv__str array)
{
    struct talk *talk = talk_of(sup);
    struct rv__json_iter it;
    struct rv__str text;
    int64_t at, attempt, turn, answers, begun, tool;
    rv__json_iter_init(&it, array);
    if (!next_number(&it, TALK_ATS - 1, &at) || !next_number(&it, INT32_MAX - 1, &attempt) ||
        !next_number(&it, RV__MAX_TURNS, &turn) || !next_number(&it, RV__MAX_TURNS, &answers) ||
        !next_number(&it, RV__MAX_NUMBER, &talk->retry_ms) ||
        !next_number(&it, RV__MAX_NUMBER, &talk->tokens_in) ||
        !next_number(&it, RV__MAX_NUMBER, &talk->tokens_out) ||
        !next_number(&it, RV__MAX_NUMBER, &talk->cost) || !next_word(&it, talk->model) ||
        !next_word(&it, talk->finish) || !next_number(&it, RV__MAX_CALLS, &begun))
        return false;
    while (rv__json_next(&it, NULL, &text)) {
        if (talk->calls == RV__MAX_CALLS || rv__json_int(text, &tool) < 0 || tool < 0 ||
            tool >= sup->node->body_count)
            return false;
        talk->tools[talk->calls++] = (uint8_t)tool;
    }
    talk->at = (uint8_t)at;
    talk->attempt = (int)attempt;
    talk->turn = (int)turn;
    talk->answered = (int)answers;
    talk->begun = (uint8_t)begun;
    return attempt > 0 && begun <= talk->calls && answers <= turn && turn <= RV__MAX_TURNS;
}

/* Are its frames those of its turn, or of calls of it that have begun, each once? */
static bool frames_sound(const struct rv__actor *sup)
{
    const struct talk *talk = talk_of(sup);
    bool seen[RV__MAX_CALLS] = { false };
    for (const struct rv__actor *f = sup->child; f != NULL; f = f->next) {
        if (!f->is_frame || f->node != sup->node)
            return false;
        int call = rv__chat_call(f->frame.iteration);
        if (f->frame.iteration != rv__chat_number(talk->attempt, talk->turn, call))
            return false;
        if (talk->at == TALK_TURN) {
            if (call != -1 || f->frame.body->index != 0)
                return false;
            continue;
        }
        if (call < 0 || call >= talk->begun || seen[call] ||
            f->frame.body->index != talk->tools[call])
            return false;
        seen[call] = true;
    }
    return true;
}

static bool sound(const struct rv__actor *sup, int64_t frames)
{
    const struct talk *talk = talk_of(sup);
    if (frames != sup->sup.active)
        return false;
    if (talk == NULL)
        return frames == 0 && sup->sup.inner == NULL && sup->sup.error == NULL;
    if (sup->sup.inner == NULL || !frames_sound(sup) ||
        (sup->sup.error != NULL) != (talk->at == TALK_BROKEN))
        return false;
    switch ((enum at)talk->at) {
    case TALK_ASK: return frames == 0 && (sup->phase == PHASE_RUNNING || talk->turn == 0);
    case TALK_TURN: return frames == 1 && talk->turn > 0;
    case TALK_CALLS:
        return talk->turn > 0 && (frames > 0 || next_call(talk) < talk->calls || is_bounded(sup));
    case TALK_DONE:
    case TALK_BROKEN: return frames == 0 && talk->turn > 0;
    case TALK_ATS: break;
    }
    return false;
}

static const char *inner_fits(const struct rv__node *node, const struct rv__inner *inner)
{
    if (inner->child_count == 2 && rv__node_state(node) != NULL)
        return rv__inner_linked(inner);
    return rv__inner_one(inner);
}

const struct rv__flow_kind rv__chat_kind = {
    .first_work = first_work,
    .first_phase = first_phase,
    .place = place,
    .advance = advance,
    .answer = answer_of,
    .retry_at = retry_at,
    .timer = timer,
    .schedule = schedule,
    .outcomes = outcomes,
    .carry_on = carry_on,
    .answered = answered,
    .gave_up = gave_up,
    .retried = retried,
    .body_started = body_started,
    .body_ended = body_ended,
    .has_begun = has_begun,
    .inner = inner,
    .state = state,
    .rest = rest,
    .result_from = result_from,
    .write_result = write_result,
    .expand_result = expand_result,
    .starts_running = true,
    .body_fits = body_fits,
    .fact_fits = fact_fits,
    .save = save,
    .load = load,
    .sound = sound,
    .inner_fits = inner_fits,
};
