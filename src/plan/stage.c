/* stage.c: a stage in a plan: states that run by dependency and priority, each with one agent.
 *
 * Everything about a schedule that can be checked before a run (SPEC §8) is checked here. One more rule
 * follows from those: a state waits for its dependencies and, after a failure, for the target of its
 * redirect. A cycle of such waits would never end, so it is refused. */
#include "plan/kinds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"

static const char *const access_names[ACCESSES] = { "all", "logs", "explicit", "none" };

const char *rv__access_name(enum rv__access access)
{
    return access_names[access];
}

int rv__subject_access(const struct rv__subject *s)
{
    return rv__subject_word(s, KEY_ACCESS, access_names, ACCESSES, "all, logs, explicit or none");
}

static const struct rv__body *body_outside(const struct rv__body *body)
{
    return body->owner != NULL ? rv__node_around(body->owner) : NULL;
}

static const struct rv__state *state_of_body(const struct rv__body *body)
{
    return body->owner != NULL && body->owner->kind == NODE_STAGE
               ? &body->owner->stage.states[body->index]
               : NULL;
}

const struct rv__state *rv__node_state(const struct rv__node *node)
{
    return node->body != NULL ? state_of_body(node->body) : NULL;
}

/* The chat whose turn or tool a body is; NULL: it is neither. */
static const struct rv__node *chat_of_body(const struct rv__body *body)
{
    return body->owner != NULL && body->owner->kind == NODE_CHAT ? body->owner : NULL;
}

/* The access of a chat itself, whatever its state says. A chat that is no state's agent has no dependencies, so
 * for it `explicit` is the same as `logs`. */
static enum rv__access chat_access(const struct rv__node *chat)
{
    bool agent = rv__node_state(chat) != NULL;
    if (!chat->chat.says_access)
        return agent ? ACCESS_ALL : ACCESS_NONE;
    return !agent && chat->chat.access == ACCESS_EXPLICIT ? ACCESS_LOGS : chat->chat.access;
}

enum rv__access rv__node_access(const struct rv__node *node, bool *scoped)
{
    static const int width[ACCESSES] = {
        [ACCESS_NONE] = 0, [ACCESS_LOGS] = 1, [ACCESS_EXPLICIT] = 2, [ACCESS_ALL] = 3
    };
    enum rv__access access = ACCESS_ALL;
    bool within = false; /* another state, or a chat that is not this state's agent */
    bool any = false;
    for (const struct rv__body *b = rv__node_around(node); b != NULL; b = body_outside(b)) {
        const struct rv__state *state = state_of_body(b);
        const struct rv__node *chat = chat_of_body(b);
        if (state == NULL && chat == NULL)
            continue;
        enum rv__access of = state != NULL ? state->access : chat_access(chat);
        /* The inputs of an outer state are not visible further in. */
        if (state != NULL && within && of == ACCESS_EXPLICIT)
            of = ACCESS_LOGS;
        if (width[of] < width[access])
            access = of;
        any = true;
        within = within || state != NULL || rv__node_state(chat) == NULL;
    }
    if (scoped != NULL)
        *scoped = any;
    return access;
}

static bool is_fence(const struct rv__body *body)
{
    const struct rv__state *state = state_of_body(body);
    const struct rv__node *chat = chat_of_body(body);
    return (state != NULL && state->access != ACCESS_ALL) ||
           (chat != NULL && body->index > 0 && chat_access(chat) != ACCESS_ALL);
}

const struct rv__body *rv__body_fence(const struct rv__body *body)
{
    while (body != NULL && !is_fence(body))
        body = body_outside(body);
    return body;
}

const struct rv__body *rv__node_fence(const struct rv__node *node)
{
    return rv__body_fence(rv__node_around(node));
}

bool rv__body_encloses(const struct rv__body *body, const struct rv__node *node)
{
    const struct rv__body *b = rv__node_around(node);
    while (b != NULL && b != body)
        b = body_outside(b);
    return b != NULL;
}

const struct rv__state *rv__node_speaks_for(const struct rv__node *node)
{
    const struct rv__body *body = node->body;
    bool turn = body != NULL && body->owner != NULL && body->owner->kind == NODE_CHAT &&
                body->index == 0;
    return rv__node_state(turn ? body->owner : node);
}

uint32_t rv__stage_find(const struct rv__node *stage, struct rv__str alias)
{
    uint32_t from = 0, to = stage->body_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2, at = stage->stage.by_alias[middle];
        int order = rv__str_cmp(alias, stage->bodies[at].alias);
        if (order == 0)
            return at;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return RV__NO_STATE;
}

/* ------------------------------------------------------------------------------- drafts --- */

struct rv__draft_node *rv__draft_stage(struct rv__draft_body *in, int64_t concurrency,
                                       const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_STAGE, opts);
    node->stage.concurrency = concurrency;
    node->given |= concurrency != 0 ? GIVEN_CONCURRENCY : 0;
    return node;
}

/* Add a state. After a failure its body is the dummy, and there is no state. */
static struct rv__draft_body *add_state(struct rv__draft_node *stage)
{
    struct rv__draft_body *body = rv__draft_body(stage, stage->body_count, NULL, true);
    if (body->owner == NULL) /* the dummy */
        return body;
    body->state = rv__draft_alloc(stage->draft, 1, sizeof *body->state);
    if (body->state != NULL)
        body->state->priority = RV__PRIORITY_DEFAULT;
    return body;
}

struct rv__draft_body *rv__draft_state(struct rv__draft_node *stage, const char *alias,
                                       const struct rv__state_opts *opts)
{
    struct rv__draft *draft = stage->draft;
    struct rv__draft_body *body = add_state(stage);
    struct rv__draft_state *state = body->state;
    if (state == NULL)
        return body;
    body->alias = rv__draft_text(draft, rv__str(alias));
    *state = (struct rv__draft_state){
        .priority = opts->priority,
        .max_retry = opts->max_retry,
        .timeout_ms = opts->timeout_ms,
        .timeout_given = opts->timeout_ms != 0,
        .critical = opts->critical,
        .final = opts->final,
        .access = opts->access,
        .on_failure = rv__draft_text(draft, rv__str(opts->on_failure)),
        .agent_id = rv__draft_text(draft, rv__str(opts->agent_id)),
        .parameters = rv__draft_text(draft, rv__str(opts->parameters)),
        .depends_on = rv__draft_text(draft, rv__str(opts->depends_on)),
        .description = rv__draft_text(draft, rv__str(opts->description)),
        .resources = rv__draft_text(draft, rv__str(opts->resources)),
        .keep_errors_from_chat = opts->keep_errors_from_chat,
        .keep_chat_on_pass = opts->keep_chat_on_pass,
    };
    return body;
}

static void read_state(struct rv__draft_node *node, const struct rv__object *object)
{
    struct rv__draft_body *body = add_state(node);
    struct rv__draft_state *state = body->state;
    if (state == NULL)
        return;
    struct rv__subject s = { node->draft, object, &body->complaints, false };
    if (!rv__str_none(object->text)) {
        rv__subject_complain(&s, NULL, "invalid state %s: must be an object",
                             rv__show(object->text).text);
        return;
    }
    rv__subject_check_keys(&s, SORT_STATE, "a state");
    body->alias = rv__subject_text(&s, KEY_ALIAS);
    (void)rv__subject_int(&s, KEY_PRIORITY, INT64_MAX, &state->priority);
    (void)rv__subject_int(&s, KEY_MAX_RETRY, INT64_MAX, &state->max_retry);
    state->timeout_given = rv__subject_int(&s, KEY_TIMEOUT, INT64_MAX, &state->timeout_ms);
    state->critical = rv__subject_bool(&s, KEY_CRITICAL);
    state->final = rv__subject_bool(&s, KEY_FINAL);
    int access = rv__subject_access(&s);
    state->access = access < 0 ? ACCESS_ALL : access;
    state->on_failure = rv__subject_text(&s, KEY_ON_FAILURE);
    state->agent_id = rv__subject_text(&s, KEY_AGENT_ID);
    state->parameters = rv__subject_raw(&s, KEY_PARAMETERS);
    state->depends_on = rv__subject_raw(&s, KEY_DEPENDS_ON);
    state->description = rv__subject_text(&s, KEY_DESCRIPTION);
    state->resources = rv__subject_raw(&s, KEY_RESOURCES);
    state->keep_errors_from_chat = rv__subject_get(&s, KEY_APPEND_ERRORS_TO_CHAT) != NULL &&
                                   !rv__subject_bool(&s, KEY_APPEND_ERRORS_TO_CHAT);
    state->keep_chat_on_pass = rv__subject_get(&s, KEY_CLEAR_CHAT_ON_PASS) != NULL &&
                               !rv__subject_bool(&s, KEY_CLEAR_CHAT_ON_PASS);
    const struct rv__member *agent = rv__subject_get(&s, KEY_AGENT);
    if (agent != NULL && *agent->value.at == '{')
        rv__draft_node_read(body, agent->first);
    else if (agent != NULL)
        rv__subject_complain(&s, NULL, "invalid agent %s: must be a step or a workflow",
                             rv__show(agent->value).text);
}

static void read_stage(struct rv__draft_node *node, const struct rv__subject *s)
{
    const struct rv__member *states = rv__subject_get(s, KEY_STATES);
    if (rv__subject_int(s, KEY_CONCURRENCY, INT64_MAX, &node->stage.concurrency))
        node->given |= GIVEN_CONCURRENCY;
    if (states == NULL)
        return;
    if (*states->value.at != '[')
        rv__subject_complain(s, NULL, "invalid states %s: must be a list",
                             rv__show(states->value).text);
    else
        for (const struct rv__object *object = states->first; object != NULL; object = object->next)
            read_state(node, object);
}

/* -------------------------------------------------------------------------------- states --- */

static int by_alias(const void *a, const void *b, void *arg)
{
    const struct rv__node *stage = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = rv__str_cmp(stage->bodies[x].alias, stage->bodies[y].alias);
    return order != 0 ? order : (x > y) - (x < y);
}

/* A state with a similar name, for a suggestion; NULL: none. */
static const char *meant_state(const struct rv__node *stage, struct rv__str said)
{
    enum { MOST = 1000 }; /* further ones are not compared */
    const char *names[MOST];
    size_t count = 0;
    for (uint32_t i = 0; i < stage->body_count && count < MOST; i++)
        names[count++] = stage->bodies[i].alias.at; /* an arena's texts end in NUL */
    return rv__suggest(said, names, count);
}

static void refuse_unknown(struct rv__compiler *c, const struct rv__body *body, const char *what,
                           const struct rv__node *stage, struct rv__str said)
{
    const char *meant = meant_state(stage, said);
    rv__compiler_refuse(c, RV__IN(body, NULL),
                        "%s names '%s', which is not a state of '%.*s'%s%s%s", what,
                        rv__show(said).text, RV__ARG(stage->alias), meant ? "; did you mean '" : "",
                        meant ? meant : "", meant ? "'?" : "");
}

/* {param: {state, stage?, field?}}, one of them. Errors: RV_ENOMEM, RV_ETOOBIG. */
static int take_dependency(struct rv__compiler *c, const struct rv__body *body, struct rv__str key,
                           struct rv__str value, struct rv__dependency *ret, bool *good)
{
    static const char *const keys[] = { "state", "field", "stage" };
    struct rv__str name = { NULL, 0 }, stage = { NULL, 0 }, field = { NULL, 0 }, word, member;
    struct rv__str *const into[] = { &name, &field, &stage };
    const struct rv__node *of = body->owner;
    struct rv__json_iter it;
    *good = false;
    if (rv__json_string(key, &c->plan->arena, &ret->param) < 0)
        return rv__nomem(c->err);
    if (rv__alias_fault(ret->param) != NULL)
        rv__compiler_refuse(c, RV__IN(body, NULL), "invalid name '%s' in dependsOn: %s",
                            rv__show(ret->param).text, rv__alias_fault(ret->param));
    rv__json_iter_init(&it, value);
    if (!it.object) {
        rv__compiler_refuse(c, RV__IN(body, NULL),
                            "invalid dependsOn '%s': must be an object with its 'state'",
                            rv__show(ret->param).text);
        return RV_OK;
    }
    while (rv__json_next(&it, &word, &member)) {
        size_t k = 0;
        while (k < 3 && !rv__json_string_is(word, rv__str(keys[k])))
            k++;
        if (k == 3) {
            rv__compiler_refuse(c, RV__IN(body, NULL),
                                "unknown key %s in dependsOn '%s': it has state, field and stage",
                                rv__show(word).text, rv__show(ret->param).text);
            continue;
        }
        int rc = rv__json_string(member, &c->plan->arena, into[k]);
        if (rc == RV_ENOMEM)
            return rv__nomem(c->err);
        if (rc < 0)
            rv__compiler_refuse(c, RV__IN(body, NULL),
                                "invalid %s %s in dependsOn '%s': must be a text", keys[k],
                                rv__show(member).text, rv__show(ret->param).text);
    }
    ret->description = rv__str_is(field, "description");
    if (!rv__str_none(field) && !ret->description && !rv__str_is(field, "result"))
        rv__compiler_refuse(c, RV__IN(body, NULL),
                            "unknown field '%s' in dependsOn '%s': must be result or description",
                            rv__show(field).text, rv__show(ret->param).text);
    if (rv__str_none(name)) {
        rv__compiler_refuse(c, RV__IN(body, NULL), "dependsOn '%s' needs a 'state'",
                            rv__show(ret->param).text);
        return RV_OK;
    }
    if (!rv__str_none(stage) && !rv__str_eq(stage, of->alias)) {
        const struct rv__node *earlier = of->body != NULL ? rv__body_find(of->body, stage) : NULL;
        if (earlier == NULL || earlier->kind != NODE_STAGE || earlier->index >= of->index ||
            earlier->stage.by_alias == NULL) {
            rv__compiler_refuse(c, RV__IN(body, NULL),
                                "dependsOn '%s' names the stage '%s', which is not an earlier one",
                                rv__show(ret->param).text, rv__show(stage).text);
            return RV_OK;
        }
        ret->stage = of = earlier;
    }
    ret->state = rv__stage_find(of, name);
    if (ret->state == RV__NO_STATE)
        refuse_unknown(c, body, "dependsOn", of, name);
    else
        *good = true;
    return RV_OK;
}

static int take_dependencies(struct rv__compiler *c, struct rv__body *body, struct rv__str said,
                             struct rv__state *state)
{
    struct rv__str json = { NULL, 0 }, key, value;
    struct rv__json_iter it;
    int rc = rv__compiler_json(c, RV__IN(body, NULL), "dependsOn", said, &json);
    if (rc < 0 || rv__str_none(json))
        return rc;
    if (*json.at != '{') {
        rv__compiler_refuse(c, RV__IN(body, NULL),
                            "invalid dependsOn %s: must be an object {name: {state, …}}",
                            rv__show(json).text);
        return RV_OK;
    }
    size_t count = rv__json_count(json);
    if (count > RV__PLAN_MAX_DEPENDENCIES - c->dependencies)
        return rv__fail(c->err, RV_ETOOBIG, "the plan's states have more than %d dependencies",
                        RV__PLAN_MAX_DEPENDENCIES);
    c->dependencies += (uint32_t)count;
    if (count == 0)
        return RV_OK;
    state->depends = rv__arena_zalloc(&c->plan->arena, count, sizeof *state->depends);
    if (state->depends == NULL)
        return rv__nomem(c->err);
    rv__json_iter_init(&it, json);
    while (rv__json_next(&it, &key, &value)) {
        struct rv__dependency one = { .stage = NULL };
        bool good;
        rc = take_dependency(c, body, key, value, &one, &good);
        if (rc < 0)
            return rc;
        if (good)
            state->depends[state->depends_count++] = one;
    }
    return RV_OK;
}

static int take_state(struct rv__compiler *c, const struct rv__draft_body *draft,
                      struct rv__body *body, struct rv__state *state)
{
    const struct rv__draft_state *said = draft->state;
    struct rv__place place = RV__IN(body, NULL);
    state->on_failure = RV__NO_STATE;
    state->priority = RV__PRIORITY_DEFAULT;
    rv__compiler_tell(c, &draft->complaints, place);
    state->append_errors_to_chat = state->clear_chat_on_pass = true;
    if (said == NULL) /* the draft has failed */
        return RV_OK;
    if (said->priority < 0 || said->priority > RV__PRIORITY_MAX)
        rv__compiler_refuse(c, place, "invalid priority %" PRId64 ": must be from 0 to %d",
                            said->priority, RV__PRIORITY_MAX);
    else
        state->priority = (int)said->priority;
    if (said->max_retry < 0 || said->max_retry > RV__MAX_RETRIES)
        rv__compiler_refuse(c, place, "invalid maxRetry %" PRId64 ": must be from 0 to %d",
                            said->max_retry, RV__MAX_RETRIES);
    else
        state->max_retry = (int)said->max_retry;
    if (said->timeout_given && (said->timeout_ms < 1 || said->timeout_ms > RV__PLAN_MAX_MS))
        rv__compiler_refuse(c, place,
                            "invalid timeout %" PRId64
                            ": must be milliseconds, above 0 and at most a hundred years",
                            said->timeout_ms);
    else
        state->timeout_ms = said->timeout_ms;
    state->critical = said->critical;
    state->final = said->final;
    state->access = (enum rv__access)said->access;
    if (state->critical && state->priority < 1)
        rv__compiler_refuse(c, place, "a critical state has a priority of at least 1");
    int rc = rv__compiler_text(c, said->agent_id, &state->agent_id);
    if (rc == RV_OK)
        rc = rv__compiler_json(c, place, "parameters", said->parameters, &state->parameters);
    if (rc == RV_OK)
        rc = rv__compiler_json(c, place, "resources", said->resources, &state->resources);
    if (rc == RV_OK)
        rc = rv__compiler_text(c, said->description, &state->description);
    if (rc < 0)
        return rc;
    state->append_errors_to_chat = !said->keep_errors_from_chat;
    state->clear_chat_on_pass = !said->keep_chat_on_pass;
    if (!rv__str_none(state->parameters) && *state->parameters.at != '{')
        rv__compiler_refuse(c, place, "invalid parameters %s: must be an object",
                            rv__show(state->parameters).text);
    if (!rv__str_none(state->resources) && *state->resources.at != '{')
        rv__compiler_refuse(c, place, "invalid resources %s: must be an object",
                            rv__show(state->resources).text);
    if (!rv__str_utf8(state->description))
        rv__compiler_refuse(c, place, "invalid description: it is not UTF-8");
    if (!rv__str_none(said->on_failure)) {
        state->on_failure = rv__stage_find(body->owner, said->on_failure);
        if (state->on_failure == RV__NO_STATE)
            refuse_unknown(c, body, "onFailure", body->owner, said->on_failure);
        else if (state->on_failure == body->index)
            rv__compiler_refuse(c, place,
                                "onFailure names the state itself: a retry runs it again anyway");
    }
    return take_dependencies(c, body, said->depends_on, state);
}

/* -------------------------------------------------------------------------------- rules --- */

/* No other state may have the priority of a critical or final state. */
static void check_priorities(struct rv__compiler *c, const struct rv__node *node)
{
    uint32_t first[RV__PRIORITY_MAX + 1], many[RV__PRIORITY_MAX + 1] = { 0 };
    for (uint32_t i = 0; i < node->body_count; i++)
        if (many[node->stage.states[i].priority]++ == 0)
            first[node->stage.states[i].priority] = i;
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__state *state = &node->stage.states[i];
        if ((!state->critical && !state->final) || many[state->priority] == 1)
            continue;
        uint32_t other = first[state->priority];
        for (uint32_t k = i + 1; other == i; k++) /* one of them follows */
            if (node->stage.states[k].priority == state->priority)
                other = k;
        rv__compiler_refuse(
            c, RV__IN(&node->bodies[i], NULL),
            "the priority of a %s state must be unique in its stage: '%.*s' has %d too",
            state->critical ? "critical" : "final", RV__ARG(node->bodies[other].alias),
            state->priority);
    }
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__state *state = &node->stage.states[i];
        for (uint32_t d = 0; d < state->depends_count; d++) {
            const struct rv__dependency *on = &state->depends[d];
            if (on->stage == NULL && node->stage.states[on->state].priority <= state->priority)
                rv__compiler_refuse(
                    c, RV__IN(&node->bodies[i], NULL),
                    "it depends on '%.*s', which must have a higher priority than its "
                    "own, %d",
                    RV__ARG(node->bodies[on->state].alias), state->priority);
        }
    }
}

/* For each state, list the states of its stage that depend on it. */
static int link_dependents(struct rv__compiler *c, struct rv__node *node)
{
    struct rv__state *states = node->stage.states;
    size_t links = 0;
    for (uint32_t i = 0; i < node->body_count; i++)
        for (uint32_t d = 0; d < states[i].depends_count; d++)
            if (states[i].depends[d].stage == NULL) {
                states[states[i].depends[d].state].dependents_count++;
                states[i].waits_for++;
                links++;
            }
    uint32_t *room = rv__arena_zalloc(&c->plan->arena, links, sizeof *room);
    if (room == NULL && links > 0)
        return rv__nomem(c->err);
    for (uint32_t i = 0; i < node->body_count; i++) {
        states[i].dependents = room;
        room += states[i].dependents_count;
        states[i].dependents_count = 0;
    }
    for (uint32_t i = 0; i < node->body_count; i++)
        for (uint32_t d = 0; d < states[i].depends_count; d++)
            if (states[i].depends[d].stage == NULL) {
                struct rv__state *on = &states[states[i].depends[d].state];
                on->dependents[on->dependents_count++] = i;
            }
    return RV_OK;
}

/* The n-th state that this one may wait for; RV__NO_STATE: there is none, or it is in another stage.
 * *more: there may be further ones. */
static uint32_t waits_for(const struct rv__state *state, uint32_t n, bool *more)
{
    *more = n < state->depends_count;
    if (!*more)
        return state->on_failure;
    return state->depends[n].stage == NULL ? state->depends[n].state : RV__NO_STATE;
}

/* Refuse cycles of waits. Each state is entered once. Dependencies go to higher priorities, so every cycle
 * contains a redirect. */
static int check_cycles(struct rv__compiler *c, const struct rv__node *node)
{
    enum { FRESH, OPEN, CLOSED };
    struct {
        uint32_t state, next;
    } *stack = rv__zalloc(node->body_count + 1, sizeof *stack);
    uint8_t *colour = rv__zalloc(node->body_count + 1, 1);
    if (stack == NULL || colour == NULL) {
        rv__free(stack);
        rv__free(colour);
        return rv__nomem(c->err);
    }
    for (uint32_t root = 0; root < node->body_count; root++) {
        size_t depth = 0;
        if (colour[root] == FRESH) {
            colour[root] = OPEN;
            stack[depth++] = (typeof(*stack)){ root, 0 };
        }
        while (depth > 0) {
            uint32_t at = stack[depth - 1].state, n = stack[depth - 1].next++;
            const struct rv__state *state = &node->stage.states[at];
            bool more;
            uint32_t on = waits_for(state, n, &more);
            if (n > state->depends_count) {
                colour[at] = CLOSED;
                depth--;
            } else if (on != RV__NO_STATE && colour[on] == OPEN && on != at) {
                bool redirect = !more && node->stage.states[on].on_failure != RV__NO_STATE;
                rv__compiler_refuse(
                    c, RV__IN(&node->bodies[at], NULL),
                    "%s '%.*s' leads back to this state: it would wait for itself%s",
                    more ? "its dependency" : "onFailure", RV__ARG(node->bodies[on].alias),
                    redirect ? " (redirects must not form a cycle)" : "");
            } else if (on != RV__NO_STATE && colour[on] == FRESH) {
                colour[on] = OPEN;
                stack[depth++] = (typeof(*stack)){ on, 0 };
            }
        }
    }
    rv__free(stack);
    rv__free(colour);
    return RV_OK;
}

/* -------------------------------------------------------------------------------- build --- */

/* The agent is one step or workflow. Attempts and time-out are configured by its state. */
static int build_agent(struct rv__compiler *c, const struct rv__draft_body *draft,
                       struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *agent = draft->first;
    struct rv__place place = RV__IN(body, NULL);
    body->bare = true;
    if (draft->count != 1) {
        rv__compiler_refuse(c, place, "a state needs an 'agent': one step or workflow");
        return RV_OK;
    }
    if (!agent->broken && agent->kind != NODE_STEP && agent->kind != NODE_WORKFLOW &&
        agent->kind != NODE_CHAT) {
        rv__compiler_refuse(c, place,
                            "the agent of a state is a step, a workflow or a chat, not %s",
                            rv__node_kind_phrase(agent->kind));
        return RV_OK;
    }
    if (agent->when.kind != EXPR_NONE)
        rv__compiler_refuse(c, place, "an agent takes no 'when'");
    unsigned own = GIVEN_NEEDS | GIVEN_MAX_TURNS | GIVEN_ACCESS;
    if (agent->kind != NODE_WORKFLOW && (agent->given & ~own) != 0)
        rv__compiler_refuse(c, place,
                            "an agent has no time-out, attempts or back-off of its own: 'maxRetry' "
                            "and 'timeout' are its state's");
    return rv__build_body(c, draft, body, depth, within);
}

static int build_stage(struct rv__compiler *c, const struct rv__draft_node *draft,
                       struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    uint32_t count = draft->body_count;
    size_t before = c->found;
    if (count > RV__PLAN_MAX_NODES - c->children)
        return rv__fail(c->err, RV_ETOOBIG, "the plan's stages have more than %d states",
                        RV__PLAN_MAX_NODES);
    c->children += count;
    int rc = rv__make_bodies(c, node, count);
    if (rc < 0)
        return rc;
    node->stage.concurrency = draft->stage.concurrency;
    node->stage.states = rv__arena_zalloc(&c->plan->arena, count, sizeof *node->stage.states);
    uint32_t *sorted = rv__arena_zalloc(&c->plan->arena, count, sizeof *sorted);
    if (node->stage.states == NULL || sorted == NULL)
        return rv__nomem(c->err);
    if (count == 0)
        rv__compiler_refuse(c, RV__AT(node), "a stage needs at least one state");
    if ((draft->given & GIVEN_CONCURRENCY) && node->stage.concurrency < 1)
        rv__compiler_refuse(c, RV__AT(node), "invalid concurrency %" PRId64 ": must be at least 1",
                            node->stage.concurrency);
    rc = rv__name_children(c, draft, node);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i;
    if (count > 1)
        qsort_r(sorted, count, sizeof *sorted, by_alias, node);
    node->stage.by_alias = sorted;

    const struct rv__draft_body *from = draft->bodies;
    for (uint32_t i = 0; i < count; i++, from = from->next) {
        rc = take_state(c, from, &node->bodies[i], &node->stage.states[i]);
        if (rc < 0)
            return rc;
    }
    check_priorities(c, node);
    rc = check_cycles(c, node);
    if (rc == RV_OK && c->found == before)
        rc = link_dependents(c, node);
    from = draft->bodies;
    for (uint32_t i = 0; i < count && rc == RV_OK; i++, from = from->next)
        rc = build_agent(c, from, &node->bodies[i], depth + 1, within);
    return rc;
}

/* -------------------------------------------------------------------------------- write --- */

static void write_true(struct rv__writer *w, const char *key, bool is)
{
    if (is)
        rv__write_raw(w, key, rv__str("true"));
}

static void write_dependencies(struct rv__writer *w, const struct rv__node *node,
                               const struct rv__state *state)
{
    if (state->depends_count == 0)
        return;
    rv__write_key(w, "dependsOn");
    for (uint32_t i = 0; i < state->depends_count; i++) {
        const struct rv__dependency *on = &state->depends[i];
        const struct rv__node *of = on->stage != NULL ? on->stage : node;
        rv__buf_char(w->out, i == 0 ? '{' : ',');
        rv__buf_json_str(w->out, on->param);
        rv__buf_text(w->out, ":{");
        rv__write_text(w, "state", of->bodies[on->state].alias);
        if (on->description)
            rv__write_text(w, "field", rv__str("description"));
        if (on->stage != NULL)
            rv__write_text(w, "stage", of->alias);
        rv__buf_char(w->out, '}');
    }
    rv__buf_char(w->out, '}');
}

static void write_stage(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_int(w, "concurrency", node->stage.concurrency, 0);
    rv__write_key(w, "states");
    for (uint32_t i = 0; i < node->body_count; i++) {
        const struct rv__state *state = &node->stage.states[i];
        rv__buf_text(w->out, i == 0 ? "[{" : ",{");
        rv__write_text(w, "alias", node->bodies[i].alias);
        rv__write_int(w, "priority", state->priority, RV__PRIORITY_DEFAULT);
        write_true(w, "critical", state->critical);
        write_true(w, "final", state->final);
        rv__write_int(w, "maxRetry", state->max_retry, 0);
        rv__write_int(w, "timeout", state->timeout_ms, 0);
        if (state->on_failure != RV__NO_STATE)
            rv__write_text(w, "onFailure", node->bodies[state->on_failure].alias);
        if (state->access != ACCESS_ALL)
            rv__write_text(w, "access", rv__str(rv__access_name(state->access)));
        rv__write_text(w, "agentId", state->agent_id);
        rv__write_raw(w, "parameters", state->parameters);
        rv__write_text(w, "description", state->description);
        rv__write_raw(w, "resources", state->resources);
        if (!state->append_errors_to_chat)
            rv__write_raw(w, "appendErrorsToChat", rv__str("false"));
        if (!state->clear_chat_on_pass)
            rv__write_raw(w, "clearChatOnPass", rv__str("false"));
        write_dependencies(w, node, state);
        rv__write_key(w, "agent");
        rv__write_node(w, node->bodies[i].nodes[0]);
        rv__buf_char(w->out, '}');
    }
    rv__buf_char(w->out, ']');
}

const struct rv__kind rv__kind_stage = {
    .phrase = "a stage",
    .bodies = BODIES_RETRIED,
    .most_bodies = UINT32_MAX, /* in order */
    .read = read_stage,
    .build = build_stage,
    .write = write_stage,
};
