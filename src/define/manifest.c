/* manifest.c: a manifest becomes the JSON of a plan whose nodes are stages.
 *
 * What a schedule may be is plan/'s to say (plan/stage.c). Here it is known how it is written: two layouts
 * (a mapping of stages, or a flat list of states that name theirs), agents by id, seconds. An agent is put
 * into each state that it works for, so that the plan says everything by itself; a problem in it is told
 * once, where the agent is written. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"
#include "define/keys.h"
#include "define/lowering.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* -------------------------------------------------------------------------------- names --- */

/* Names of the file, each once: stages and agents, by hash. */
struct names {
    struct named {
        struct rv__str name;
        const struct rv__tree *tree; /* what has it; NULL: only a name */
        const struct rv__tree
            *first; /* a stage of the flat layout: its states, by index into a list */
        uint32_t states, position;
    } * *slots;
    size_t size, count;
    struct named **order;
};

static bool names_init(struct rv__lowering *l, struct names *names, size_t most)
{
    *names = (struct names){ .size = 8 };
    while (names->size < 2 * most)
        names->size *= 2;
    names->slots = rv__arena_zalloc(l->arena, names->size, sizeof(struct named *));
    names->order = rv__arena_zalloc(l->arena, most + 1, sizeof(struct named *));
    if (names->slots != NULL && names->order != NULL)
        return true;
    l->rc = RV_ENOMEM;
    return false;
}

static struct named **names_slot(const struct names *names, struct rv__str name)
{
    size_t at = (size_t)rv__str_hash(RV__HASH_START, name) & (names->size - 1);
    while (names->slots[at] != NULL && !rv__str_eq(names->slots[at]->name, name))
        at = (at + 1) & (names->size - 1);
    return &names->slots[at];
}

static struct named *names_find(const struct names *names, struct rv__str name)
{
    return *names_slot(names, name);
}

/* The one of that name; a new one, with *added, if there is none. NULL: no memory. */
static struct named *names_add(struct rv__lowering *l, struct names *names, struct rv__str name,
                               const struct rv__tree *tree, bool *added)
{
    struct named **slot = names_slot(names, name);
    *added = *slot == NULL;
    if (*slot != NULL)
        return *slot;
    *slot = rv__arena_zalloc(l->arena, 1, sizeof **slot);
    if (*slot == NULL) {
        l->rc = RV_ENOMEM;
        return NULL;
    }
    **slot = (struct named){ .name = name, .tree = tree, .position = (uint32_t)names->count };
    names->order[names->count++] = *slot;
    return *slot;
}

/* Which of them was meant; NULL: none is near. In the arena. */
static const char *names_meant(struct rv__lowering *l, const struct names *names,
                               struct rv__str said)
{
    enum { MOST = 1000 }; /* more are not looked at */
    const char *candidates[MOST];
    size_t count = 0;
    for (size_t i = 0; i < names->count && count < MOST; i++) {
        const char *text = rv__arena_dup(l->arena, names->order[i]->name.at,
                                         names->order[i]->name.len);
        if (text != NULL)
            candidates[count++] = text;
    }
    return rv__suggest(said, candidates, count);
}

/* ------------------------------------------------------------------------------- values --- */

struct manifest {
    struct rv__lowering *l;
    const struct rv__manifest *given;
    struct names agents;
    int64_t concurrency; /* 0: not said */
};

static bool is_null(const struct rv__tree *value)
{
    return value == NULL || rv__tree_real(value)->kind == TREE_NULL;
}

/* A number or a text as it was written, for a sentence. */
static struct rv__cite cite_value(const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    if (real->kind == TREE_LIST || real->kind == TREE_MAP)
        return rv__cite(rv__str(rv__tree_phrase(real)));
    return rv__cite(real->text);
}

static void unknown_key(struct rv__lowering *l, const struct rv__tree *child, const char *of,
                        const char *const *keys, size_t count, const char *elsewhere)
{
    struct rv__key_room room;
    char snake[48];
    size_t len = 0;
    struct rv__str camel = rv__camel(child->key, &room);
    for (size_t i = 0; i < camel.len && len + 2 < sizeof snake; i++) { /* as our keys are written */
        if (camel.at[i] >= 'A' && camel.at[i] <= 'Z' && len > 0)
            snake[len++] = '_';
        snake[len++] = (char)(camel.at[i] >= 'A' && camel.at[i] <= 'Z' ? camel.at[i] - 'A' + 'a'
                                                                       : camel.at[i]);
    }
    const char *meant = rv__suggest((struct rv__str){ snake, len }, keys, count);
    if (meant == NULL)
        meant = elsewhere;
    rv__problem_add(l->problems, l->source, child->key_at, "unknown key '%s' of %s%s%s%s",
                    rv__cite(child->key).text, of, meant ? "; did you mean '" : "",
                    meant ? meant : "", meant ? "'?" : "");
}

/* Which of `keys` (in snake_case) it is; -1: none. */
static int key_of(const struct rv__tree *child, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rv__key_room ours, theirs;
        if (rv__str_eq(rv__camel(child->key, &theirs), rv__camel(rv__str(keys[i]), &ours)))
            return (int)i;
    }
    return -1;
}

/* Seconds, or a duration with its unit. */
static void lower_timeout(struct rv__lowering *l, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    struct rv__buf text;
    int64_t ms = 0;
    rv__buf_init(&text, 64);
    if (real->kind == TREE_NUMBER || real->kind == TREE_STRING) {
        rv__buf_str(&text, real->text);
        if (real->text.len > 0 && real->text.at[real->text.len - 1] >= '0' &&
            real->text.at[real->text.len - 1] <= '9')
            rv__buf_char(&text, 's');
    }
    bool good = text.rc == RV_OK && text.len > 0 &&
                rv__duration_ms(rv__buf_view(&text), &ms) == RV_OK && ms > 0;
    if (text.rc == RV_ENOMEM)
        l->rc = RV_ENOMEM;
    rv__buf_done(&text);
    if (!good) {
        rv__problem_add(
            l->problems, l->source, value->at,
            "invalid timeout %s: must be seconds, above 0, or a duration such as 250ms, "
            "30s, 5m or 1h30m",
            cite_value(value).text);
        return;
    }
    rv__lowering_key(l, "timeout");
    rv__buf_int(l->out, ms);
}

/* ------------------------------------------------------------------------------- agents --- */

enum agent_type {
    TYPE_FUNCTION,
    TYPE_COMMAND,
    TYPE_HTTP,
    TYPE_WORKFLOW,
    TYPE_CHAT,
    TYPE_TOOL,
    TYPES
};
static const char *const types[TYPES] = {
    "function", "command", "http", "workflow", "chat", "tool"
};
static const enum rv__form_kind kinds[TYPES] = { FORM_CALL,     FORM_COMMAND, FORM_HTTP,
                                                 FORM_WORKFLOW, FORM_CHAT,    FORM_TOOL };

static struct rv__str agent_id(const struct rv__tree *agent)
{
    const struct rv__tree *id = rv__form_get(agent, "id");
    if (id != NULL && rv__tree_real(id)->kind == TREE_STRING)
        return rv__tree_real(id)->text;
    return (struct rv__str){ NULL, 0 };
}

/* What `type` says; FORM_KINDS: it is not there, or wrong, which is told. */
static enum rv__form_kind said_type(struct rv__lowering *l, const struct rv__tree *agent,
                                    bool *wrong)
{
    const struct rv__tree *type = rv__form_get(agent, "type");
    *wrong = false;
    if (is_null(type))
        return FORM_KINDS;
    struct rv__str text = rv__tree_real(type)->text;
    for (int i = 0; rv__tree_real(type)->kind == TREE_STRING && i < TYPES; i++)
        if (rv__str_is(text, types[i]))
            return kinds[i];
    const char *meant = rv__tree_real(type)->kind == TREE_STRING ? rv__suggest(text, types, TYPES)
                                                                 : NULL;
    rv__problem_add(
        l->problems, l->source, type->at,
        "unknown type '%s' of an agent: must be function, command, http, workflow, chat "
        "or tool%s%s%s",
        cite_value(type).text, meant ? "; did you mean '" : "", meant ? meant : "",
        meant ? "'?" : "");
    *wrong = true;
    return FORM_KINDS;
}

/* What kind of step the agent is, and the value of that key; FORM_KINDS: it cannot be told, or run. */
static enum rv__form_kind agent_kind(struct rv__lowering *l, const struct rv__tree *agent,
                                     const struct rv__tree **value)
{
    bool wrong;
    enum rv__form_kind type = said_type(l, agent, &wrong), found = FORM_KINDS;
    *value = NULL;
    for (const struct rv__tree *child = agent->first; child != NULL; child = child->next) {
        int kind = rv__kind_find(child->key);
        bool ours = false;
        for (int i = 0; i < TYPES; i++)
            ours = ours || (kind >= 0 && kinds[i] == (enum rv__form_kind)kind);
        if (!ours)
            continue;
        if (found != FORM_KINDS) {
            rv__problem_add(l->problems, l->source, child->key_at,
                            "an agent does one thing, and this one has '%s' and '%s'",
                            rv__kind_words[found].key, rv__kind_words[kind].key);
            return FORM_KINDS;
        }
        found = (enum rv__form_kind)kind;
        *value = child;
    }
    if (wrong)
        return FORM_KINDS;
    if (found != FORM_KINDS && type != FORM_KINDS && found != type) {
        rv__problem_add(
            l->problems, l->source, (*value)->key_at, "the agent's type is '%s', and it has '%s'",
            type == FORM_CALL ? "function" : rv__kind_words[type].key, rv__kind_words[found].key);
        return FORM_KINDS;
    }
    enum rv__form_kind kind = found != FORM_KINDS ? found : type;
    if (kind == FORM_KINDS || (found == FORM_KINDS && kind != FORM_CALL)) {
        if (kind == FORM_KINDS)
            rv__problem_add(l->problems, l->source, agent->at,
                            "this agent does nothing: it needs one of call, command, http, chat, "
                            "tool or workflow");
        else
            rv__problem_add(l->problems, l->source, agent->at,
                            "an agent of the type '%s' needs '%s': what it does",
                            rv__kind_words[kind].key, rv__kind_words[kind].key);
        return FORM_KINDS;
    }
    return kind;
}

static void check_agent_keys(struct rv__lowering *l, const struct rv__tree *agent,
                             enum rv__form_kind kind)
{
    static const char *const common[] = { "id", "type", "describe", "description", "parameters" };
    static const char *const of_command[] = { "stdin", "output", "cwd", "env", "save_to" };
    const char *all[COUNT(common) + COUNT(of_command) + TYPES + 1];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(common); i++)
        all[count++] = common[i];
    for (int i = 0; i < TYPES; i++)
        all[count++] = rv__kind_words[kinds[i]].key;
    for (size_t i = 0; kind == FORM_COMMAND && i < COUNT(of_command); i++)
        all[count++] = of_command[i];
    if (kind == FORM_HTTP)
        all[count++] = "save_to";
    if (kind == FORM_WORKFLOW)
        all[count++] = "input";
    for (const struct rv__tree *child = agent->first; child != NULL; child = child->next) {
        if (rv__key_is_private(child->key))
            continue;
        if (key_of(child, all, count) >= 0) {
            rv__key_check_twice(l->source, l->problems, agent, child);
            continue;
        }
        struct rv__key_room room;
        struct rv__str camel = rv__camel(child->key, &room);
        if (rv__str_is(camel, "timeout") || rv__str_is(camel, "maxRetry") ||
            rv__str_is(camel, "maxAttempts"))
            rv__problem_add(l->problems, l->source, child->key_at,
                            "an agent takes no '%s': its states set 'timeout' and 'max_retry'",
                            rv__cite(child->key).text);
        else
            unknown_key(l, child, "an agent", all, count, NULL);
    }
}

/* The agent as a node that is called as its state. False: it cannot be told. */
static bool lower_agent(struct rv__lowering *l, struct rv__spot *spot, struct rv__str alias,
                        const struct rv__tree *agent, const struct rv__tree *resources)
{
    const struct rv__tree *value;
    enum rv__form_kind kind = agent_kind(l, agent, &value);
    check_agent_keys(l, agent, kind);
    if (kind == FORM_KINDS)
        return false;
    spot->kind = kind;
    rv__buf_fmt(l->out, "{\"type\":\"%s\"", rv__kind_words[kind].type);
    rv__lowering_key(l, "alias");
    rv__buf_json_str(l->out, alias);
    if (kind == FORM_WORKFLOW) {
        if (!rv__lower_nested(l, spot, value))
            return false;
        const struct rv__tree *input = rv__form_get(agent, "input");
        if (input != NULL)
            rv__lowering_raw(l, "input", input);
    } else if (value != NULL) {
        l->agent = true;
        rv__lower_work(l, agent, kind, value);
        l->agent = false;
        if (kind == FORM_CHAT)
            rv__lower_tools(l, value, resources);
    } else { /* a function that is called as its agent */
        rv__buf_text(l->out, ",\"kind\":\"call\",\"name\":");
        rv__buf_json_str(l->out, agent_id(agent));
    }
    const struct rv__tree *describe = rv__form_get(agent, "describe");
    if (!is_null(describe))
        rv__lowering_raw(l, "description", describe);
    rv__buf_char(l->out, '}');
    return true;
}

/* Those of a list, into the names; each is looked at, whether or not a state has it. */
static void take_agents(struct manifest *m, const struct rv__tree *list, bool check)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *real = list != NULL ? rv__tree_real(list) : NULL;
    if (is_null(list))
        return;
    if (real->kind != TREE_LIST) {
        rv__problem_add(
            l->problems, l->source, list->at,
            "'agents' must be a list, such as - { id: gather_agent, command: [./gather] }");
        return;
    }
    for (const struct rv__tree *item = real->first; item != NULL; item = item->next) {
        const struct rv__tree *agent = rv__tree_real(item);
        struct rv__str id = agent->kind == TREE_MAP ? agent_id(agent) : (struct rv__str){ NULL, 0 };
        bool added = false;
        if (rv__str_none(id) || id.len == 0 || id.len > RV__PLAN_MAX_NAME ||
            memchr(id.at, '[', id.len) != NULL || memchr(id.at, ']', id.len) != NULL) {
            rv__problem_add(
                l->problems, l->source, item->at,
                "an agent must be a mapping with an 'id': a text without brackets, of at "
                "most %d bytes",
                RV__PLAN_MAX_NAME);
            continue;
        }
        const struct named *known = names_add(l, &m->agents, id, agent, &added);
        if (known == NULL)
            return;
        if (!added)
            rv__problem_add(l->problems, l->source, item->at,
                            "agent '%s' must be unique: there is one of that id before",
                            rv__cite(id).text);
        else if (check && rv__form_get(agent, "parameters") != NULL &&
                 !is_null(rv__form_get(agent, "parameters")) &&
                 rv__tree_real(rv__form_get(agent, "parameters"))->kind != TREE_MAP)
            rv__problem_add(l->problems, l->source, rv__form_get(agent, "parameters")->at,
                            "invalid parameters of agent '%s': must be a mapping",
                            rv__cite(id).text);
    }
}

/* Agents that no state has are judged, too, as far as it goes without a state. */
static void check_agents(struct manifest *m, const struct rv__tree *list)
{
    struct rv__lowering scratch = *m->l;
    struct rv__buf out;
    const struct rv__tree *real = list != NULL ? rv__tree_real(list) : NULL;
    if (real == NULL || real->kind != TREE_LIST)
        return;
    rv__buf_init(&out, RV__PLAN_MAX_BYTES);
    scratch.out = &out;
    for (const struct rv__tree *item = real->first; item != NULL; item = item->next) {
        const struct rv__tree *agent = rv__tree_real(item);
        struct rv__spot nowhere = { .kind = FORM_KINDS };
        if (agent->kind != TREE_MAP)
            continue;
        (void)lower_agent(&scratch, &nowhere, rv__str("agent"), agent, NULL);
        rv__buf_reset(&out);
    }
    if (out.rc == RV_ENOMEM || scratch.rc != RV_OK)
        m->l->rc = RV_ENOMEM;
    rv__buf_done(&out);
}

/* ------------------------------------------------------------------------------- states --- */

enum state_key {
    STATE_NAME,
    STATE_STAGE,
    STATE_AGENT_ID,
    STATE_PRIORITY,
    STATE_ACCESSIBILITY,
    STATE_DEPENDS_ON,
    STATE_MAX_RETRY,
    STATE_TIMEOUT,
    STATE_CRITICAL,
    STATE_FINAL,
    STATE_ON_FAILURE,
    STATE_PARAMETERS,
    STATE_DESCRIPTION,
    STATE_APPEND_ERRORS,
    STATE_CLEAR_CHAT,
    STATE_RESOURCES,
    STATE_KEYS,
};
/* As they are written, and as a plan has them; NULL: not as they are. */
static const char *const state_keys[STATE_KEYS] = {
    [STATE_NAME] = "name",
    [STATE_STAGE] = "stage",
    [STATE_AGENT_ID] = "agent_id",
    [STATE_PRIORITY] = "priority",
    [STATE_ACCESSIBILITY] = "accessibility",
    [STATE_DEPENDS_ON] = "depends_on",
    [STATE_MAX_RETRY] = "max_retry",
    [STATE_TIMEOUT] = "timeout",
    [STATE_CRITICAL] = "critical",
    [STATE_FINAL] = "final",
    [STATE_ON_FAILURE] = "on_failure",
    [STATE_PARAMETERS] = "parameters",
    [STATE_DESCRIPTION] = "description",
    [STATE_APPEND_ERRORS] = "append_errors_to_chat",
    [STATE_CLEAR_CHAT] = "clear_chat_on_pass",
    [STATE_RESOURCES] = "resources",
};
static const char *const plan_keys[STATE_KEYS] = {
    [STATE_PRIORITY] = "priority",
    [STATE_DEPENDS_ON] = "dependsOn",
    [STATE_MAX_RETRY] = "maxRetry",
    [STATE_CRITICAL] = "critical",
    [STATE_FINAL] = "final",
    [STATE_ON_FAILURE] = "onFailure",
    [STATE_DESCRIPTION] = "description",
    [STATE_APPEND_ERRORS] = "appendErrorsToChat",
    [STATE_CLEAR_CHAT] = "clearChatOnPass",
    [STATE_RESOURCES] = "resources",
};

static struct rv__str text_of(const struct rv__tree *map, const char *key)
{
    const struct rv__tree *value = rv__form_get(map, key);
    if (value != NULL && rv__tree_real(value)->kind == TREE_STRING)
        return rv__tree_real(value)->text;
    return (struct rv__str){ NULL, 0 };
}

static void lower_access(struct rv__lowering *l, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    const char *names[ACCESSES];
    for (int i = 0; i < ACCESSES; i++) {
        names[i] = rv__access_name((enum rv__access)i);
        if (real->kind == TREE_STRING && rv__str_is(real->text, names[i])) {
            rv__lowering_raw(l, "access", value);
            return;
        }
    }
    const char *meant = real->kind == TREE_STRING ? rv__suggest(real->text, names, ACCESSES) : NULL;
    rv__problem_add(l->problems, l->source, value->at,
                    "unknown accessibility '%s': must be all, logs, explicit or none%s%s%s",
                    cite_value(value).text, meant ? "; did you mean '" : "", meant ? meant : "",
                    meant ? "'?" : "");
}

/* The agent's parameters with the state's over them. */
static void lower_parameters(struct rv__lowering *l, const struct rv__tree *agent,
                             const struct rv__tree *state)
{
    const struct rv__tree *from[] = { agent != NULL ? rv__form_get(agent, "parameters") : NULL,
                                      rv__form_get(state, "parameters") };
    struct names hidden;
    bool first = true;
    if (!is_null(from[1]) && rv__tree_real(from[1])->kind != TREE_MAP) {
        rv__problem_add(l->problems, l->source, from[1]->at,
                        "invalid parameters: must be a mapping, and is %s",
                        rv__tree_phrase(rv__tree_real(from[1])));
        from[1] = NULL;
    }
    bool both = !is_null(from[0]) && !is_null(from[1]), added;
    if (both && !names_init(l, &hidden, rv__tree_real(from[1])->count))
        return;
    for (const struct rv__tree *child = both ? rv__tree_real(from[1])->first : NULL; child != NULL;
         child = child->next)
        (void)names_add(l, &hidden, child->key, child, &added);
    for (size_t i = 0; i < 2; i++) {
        if (is_null(from[i]) || rv__tree_real(from[i])->kind != TREE_MAP)
            continue;
        for (const struct rv__tree *child = rv__tree_real(from[i])->first; child != NULL;
             child = child->next) {
            if (i == 0 && both && names_find(&hidden, child->key) != NULL)
                continue;
            if (first)
                rv__lowering_key(l, "parameters");
            rv__buf_char(l->out, first ? '{' : ',');
            first = false;
            rv__buf_json_str(l->out, child->key);
            rv__buf_char(l->out, ':');
            rv__tree_json(child, l->out);
        }
    }
    if (!first)
        rv__buf_char(l->out, '}');
}

static void check_redirect(struct rv__lowering *l, const struct rv__tree *state)
{
    const struct rv__tree *on_failure = rv__form_get(state, "onFailure");
    const struct rv__tree *retry = rv__form_get(state, "maxRetry");
    if (is_null(on_failure) || rv__tree_real(on_failure)->kind != TREE_STRING)
        return;
    if (is_null(retry) ||
        (rv__tree_real(retry)->kind == TREE_NUMBER && rv__str_is(rv__tree_real(retry)->text, "0")))
        rv__problem_warn(l->problems, l->source, on_failure->key_at,
                         "on_failure never runs: with max_retry 0 there are no retries");
}

/* The agent of a state; NULL, with a problem: there is none; *code: it is in code, by this name. */
static const struct rv__tree *find_agent(struct manifest *m, const struct rv__tree *state,
                                         uint32_t at, bool *code)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *id = rv__form_get(state, "agentId");
    *code = false;
    if (is_null(id) || rv__tree_real(id)->kind != TREE_STRING) {
        rv__problem_add(l->problems, l->source, id != NULL ? id->at : at,
                        "a state needs an 'agent_id': the id of an agent");
        return NULL;
    }
    struct rv__str text = rv__tree_real(id)->text;
    const struct named *agent = names_find(&m->agents, text);
    if (agent != NULL)
        return agent->tree;
    struct rv__resolver *known = m->given->known;
    if (known != NULL && known->has_agent != NULL && known->has_agent(known, text)) {
        *code = true;
        return NULL;
    }
    const char *meant = names_meant(l, &m->agents, text);
    rv__problem_add(l->problems, l->source, id->at, "there is no agent '%s'%s%s%s",
                    rv__cite(text).text, meant ? "; did you mean '" : "", meant ? meant : "",
                    meant ? "'?" : "");
    return NULL;
}

static void lower_state_key(struct rv__lowering *l, const struct rv__tree *state,
                            const struct rv__tree *child)
{
    int key = key_of(child, state_keys, STATE_KEYS);
    if (rv__key_is_private(child->key))
        return;
    if (key < 0) {
        struct rv__key_room room;
        struct rv__str camel = rv__camel(child->key, &room);
        unknown_key(l, child, "a state", state_keys, STATE_KEYS,
                    rv__str_is(camel, "agent")                                  ? "agent_id"
                    : rv__str_is(camel, "access") || rv__str_is(camel, "scope") ? "accessibility"
                    : rv__str_is(camel, "retries") || rv__str_is(camel, "maxAttempts") ? "max_retry"
                    : rv__str_is(camel, "needs") || rv__str_is(camel, "after") ? "depends_on"
                                                                               : NULL);
        return;
    }
    rv__key_check_twice(l->source, l->problems, state, child);
    if (is_null(child))
        return;
    if (key == STATE_ACCESSIBILITY)
        lower_access(l, child);
    else if (key == STATE_TIMEOUT)
        lower_timeout(l, child);
    else if (plan_keys[key] != NULL)
        rv__lowering_raw(l, plan_keys[key], child);
}

/* resources: { tools: […], skills: […] }; NULL: none. */
static const struct rv__tree *resources_of(const struct rv__tree *state)
{
    const struct rv__tree *resources = rv__form_get(state, "resources");
    const struct rv__tree *real = resources != NULL ? rv__tree_real(resources) : NULL;
    return real != NULL && real->kind == TREE_MAP ? real : NULL;
}

static void lower_state(struct manifest *m, struct rv__spot *stage, struct rv__tree *item)
{
    struct rv__lowering *l = m->l;
    struct rv__tree *state = (struct rv__tree *)rv__tree_real(item);
    struct rv__str name = text_of(state, "name");
    uint32_t at = state->first != NULL ? state->first->key_at : item->at;
    struct rv__spot *spot = rv__lowering_spot(l, stage, (struct rv__str){ NULL, 0 }, at);
    bool code;
    spot->alias = name;
    spot->body = state;
    rv__buf_char(l->out, '{');
    size_t begin = l->out->len;
    if (!rv__str_none(name)) {
        rv__lowering_key(l, "alias");
        rv__buf_json_str(l->out, name);
    } else {
        rv__problem_add(l->problems, l->source, at, "a state needs a 'name'");
        rv__buf_fmt(l->out, ",\"alias\":\"unnamed-%" PRIu32 "\"", at);
    }
    const struct rv__tree *agent = find_agent(m, state, at, &code);
    for (const struct rv__tree *child = state->first; child != NULL && state->broken == 0;
         child = child->next)
        lower_state_key(l, state, child);
    if (state->broken == 0) {
        lower_parameters(l, agent, state);
        check_redirect(l, state);
        if (!rv__str_none(text_of(state, "agentId")))
            rv__lowering_raw(l, "agentId", rv__form_get(state, "agentId"));
    }
    rv__lowering_key(l, "agent");
    size_t before = l->out->len;
    if (code) {
        rv__buf_text(l->out, "{\"type\":\"step\",\"alias\":");
        rv__buf_json_str(l->out, name);
        rv__buf_text(l->out, ",\"kind\":\"call\"");
        rv__lowering_raw(l, "name", rv__form_get(state, "agentId"));
        rv__buf_char(l->out, '}');
    } else if (agent == NULL || rv__str_none(name) ||
               !lower_agent(l, spot, name, agent, resources_of(state))) {
        rv__buf_cut(l->out, before);
        rv__lowering_harmless(l, name);
    }
    spot->work = (struct rv__tree *)agent;
    rv__buf_char(l->out, '}');
    if (l->out->rc == RV_OK && l->out->text[begin] == ',') /* the first has none before it */
        l->out->text[begin] = ' ';
}

/* ------------------------------------------------------------------------------- stages --- */

static struct rv__spot *begin_stage(struct manifest *m, struct rv__spot *root, struct rv__str name,
                                    uint32_t at, bool first)
{
    struct rv__lowering *l = m->l;
    struct rv__spot *spot = rv__lowering_spot(l, root, (struct rv__str){ NULL, 0 }, at);
    spot->alias = name;
    rv__buf_text(l->out, first ? "{\"type\":\"stage\"" : ",{\"type\":\"stage\"");
    rv__lowering_key(l, "alias");
    rv__buf_json_str(l->out, name);
    if (m->concurrency > 0) {
        rv__lowering_key(l, "concurrency");
        rv__buf_int(l->out, m->concurrency);
    }
    rv__lowering_key(l, "states");
    rv__buf_char(l->out, '[');
    return spot;
}

/* One item of a list of states, if it is one. */
static bool is_state(struct rv__lowering *l, const struct rv__tree *item)
{
    if (rv__tree_real(item)->kind == TREE_MAP)
        return rv__tree_real(item)->broken < 2;
    rv__problem_add(l->problems, l->source, item->at,
                    "a state must be a mapping, { name: …, agent_id: … }, and this is %s",
                    rv__tree_phrase(rv__tree_real(item)));
    return false;
}

/* stages: { triage: [ {name: …}, … ], … } */
static void lower_mapping(struct manifest *m, struct rv__spot *root, const struct rv__tree *stages)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *real = rv__tree_real(stages);
    for (const struct rv__tree *stage = real->first; stage != NULL; stage = stage->next) {
        const struct rv__tree *list = rv__tree_real(stage);
        struct rv__spot *spot = begin_stage(m, root, stage->key, stage->key_at,
                                            stage == real->first);
        bool first = true;
        if (list->kind != TREE_LIST && list->kind != TREE_NULL)
            rv__problem_add(l->problems, l->source, stage->at,
                            "the stage '%s' must be a list of states (- name: …), and is %s",
                            rv__cite(stage->key).text, rv__tree_phrase(list));
        for (struct rv__tree *item = list->kind == TREE_LIST ? list->first : NULL; item != NULL;
             item = item->next) {
            struct rv__str said = text_of(rv__tree_real(item), "stage");
            if (!is_state(l, item))
                continue;
            if (!rv__str_none(said) && !rv__str_eq(said, stage->key))
                rv__problem_add(l->problems, l->source,
                                rv__form_get(rv__tree_real(item), "stage")->at,
                                "this state is in the stage '%s', but says '%s'",
                                rv__cite(stage->key).text, rv__cite(said).text);
            if (!first)
                rv__buf_char(l->out, ',');
            first = false;
            lower_state(m, spot, item);
        }
        rv__buf_text(l->out, "]}");
    }
}

/* The stages of the flat layout, in order: as `stages` lists them, else as states name them first. */
static bool flat_stages(struct manifest *m, const struct rv__tree *listed,
                        const struct rv__tree *states, struct names *stages)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *list = !is_null(listed) ? rv__tree_real(listed) : NULL;
    bool added;
    if (!names_init(l, stages, (size_t)states->count + (list != NULL ? list->count : 0)))
        return false;
    for (const struct rv__tree *item = list != NULL ? list->first : NULL; item != NULL;
         item = item->next) {
        const struct rv__tree *name = rv__tree_real(item);
        if (name->kind != TREE_STRING) {
            rv__problem_add(l->problems, l->source, item->at,
                            "beside 'states', 'stages' lists the names of the stages in order");
            continue;
        }
        if (names_add(l, stages, name->text, item, &added) == NULL)
            return false;
        if (!added)
            rv__problem_add(l->problems, l->source, item->at, "stage '%s' must be unique",
                            rv__cite(name->text).text);
    }
    for (const struct rv__tree *item = states->first; item != NULL; item = item->next) {
        const struct rv__tree *state = rv__tree_real(item);
        const struct rv__tree *stage = rv__form_get(state, "stage");
        if (!is_state(l, item))
            continue;
        struct rv__str name = text_of(state, "stage");
        if (rv__str_none(name)) {
            rv__problem_add(l->problems, l->source,
                            stage != NULL          ? stage->at
                            : state->first != NULL ? state->first->key_at
                                                   : item->at,
                            "a state in a flat list needs its 'stage'");
            continue;
        }
        struct named *known = names_find(stages, name);
        if (known == NULL && list != NULL) {
            const char *meant = names_meant(l, stages, name);
            rv__problem_add(l->problems, l->source, stage->at,
                            "'stages' does not list the stage '%s'%s%s%s", rv__cite(name).text,
                            meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        } else if (known == NULL) {
            known = names_add(l, stages, name, stage, &added);
        }
        if (known != NULL)
            known->states++;
    }
    return l->rc == RV_OK;
}

/* states: [ {name: …, stage: triage, …}, … ] */
static void lower_flat(struct manifest *m, struct rv__spot *root, const struct rv__tree *listed,
                       const struct rv__tree *said)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *states = rv__tree_real(said);
    struct names stages;
    struct rv__tree **sorted;
    uint32_t *next;
    if (!flat_stages(m, listed, states, &stages))
        return;
    /* The states by stage, in order of the file: counted, then put in their place. */
    sorted = rv__arena_zalloc(l->arena, (size_t)states->count + 1, sizeof(struct rv__tree *));
    next = rv__arena_zalloc(l->arena, stages.count + 1, sizeof *next);
    if (sorted == NULL || next == NULL) {
        l->rc = RV_ENOMEM;
        return;
    }
    for (size_t i = 1; i < stages.count; i++)
        next[i] = next[i - 1] + stages.order[i - 1]->states;
    for (struct rv__tree *item = states->first; item != NULL; item = item->next) {
        struct rv__str name = text_of(rv__tree_real(item), "stage");
        const struct named *stage = rv__str_none(name) ? NULL : names_find(&stages, name);
        if (stage != NULL && rv__tree_real(item)->kind == TREE_MAP &&
            rv__tree_real(item)->broken < 2)
            sorted[next[stage->position]++] = item;
    }
    for (size_t i = 0, at = 0; i < stages.count; i++) {
        const struct named *stage = stages.order[i];
        struct rv__spot *spot = begin_stage(m, root, stage->name, stage->tree->at, i == 0);
        for (size_t k = 0; k < stage->states; k++, at++) {
            if (k > 0)
                rv__buf_char(l->out, ',');
            lower_state(m, spot, sorted[at]);
        }
        rv__buf_text(l->out, "]}");
    }
}

static void lower_stages(struct manifest *m, const struct rv__tree *document, struct rv__spot *root)
{
    struct rv__lowering *l = m->l;
    const struct rv__tree *stages = rv__form_get(document, "stages");
    const struct rv__tree *states = rv__form_get(document, "states");
    enum rv__tree_kind kind = is_null(stages) ? TREE_NULL : rv__tree_real(stages)->kind;
    rv__lowering_key(l, "steps");
    rv__buf_char(l->out, '[');
    if (!is_null(states) && rv__tree_real(states)->kind != TREE_LIST)
        rv__problem_add(l->problems, l->source, states->at,
                        "'states' must be a list of states (- name: …), and is %s",
                        rv__tree_phrase(rv__tree_real(states)));
    else if (!is_null(states) && kind != TREE_NULL && kind != TREE_LIST)
        rv__problem_add(l->problems, l->source, states->key_at,
                        "a manifest has either a mapping of 'stages' or a flat list of 'states'");
    else if (!is_null(states))
        lower_flat(m, root, stages, states);
    else if (kind == TREE_MAP)
        lower_mapping(m, root, stages);
    else if (kind == TREE_LIST)
        rv__problem_add(
            l->problems, l->source, stages->key_at,
            "'stages' as a list needs a list 'states' beside it; or make 'stages' a mapping of "
            "each stage to its states");
    else
        rv__problem_add(l->problems, l->source, document->at,
                        "a manifest needs 'stages': a mapping of each stage to its states");
    if (root->first == NULL) /* an empty one would be told, too */
        rv__lowering_harmless(l, (struct rv__str){ NULL, 0 });
    rv__buf_char(l->out, ']');
}

/* ----------------------------------------------------------------------------- manifest --- */

static void take_concurrency(struct manifest *m, const struct rv__tree *value)
{
    const struct rv__tree *real = value != NULL ? rv__tree_real(value) : NULL;
    int64_t n = 0;
    if (is_null(value))
        return;
    if (real->kind == TREE_NUMBER && rv__json_int(real->text, &n) == RV_OK && n >= 1)
        m->concurrency = n;
    else
        rv__problem_add(m->l->problems, m->l->source, value->at,
                        "invalid max_concurrency %s: must be a whole number of 1 or more",
                        cite_value(value).text);
}

static void lower_version(struct rv__lowering *l, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    if (real->kind == TREE_STRING || real->kind == TREE_NUMBER) {
        rv__lowering_key(l, "manifestVersion");
        rv__buf_json_str(l->out, real->text);
    } else {
        rv__problem_add(l->problems, l->source, value->at,
                        "invalid version: must be a text, such as 0.1.0");
    }
}

void rv__lower_manifest(struct rv__lowering *l, struct rv__tree *document,
                        const struct rv__manifest *manifest, struct rv__spot *root)
{
    static const char *const keys[] = {
        "name",   "version",   "description", "parameters", "max_concurrency", "stages",  "states",
        "agents", "listeners", "input",       "secrets",    "on_error",        "finally", "budget"
    };
    enum {
        NAME,
        VERSION,
        DESCRIPTION,
        PARAMETERS,
        CONCURRENCY,
        STAGES,
        STATES,
        AGENTS,
        LISTENERS,
        INPUT,
        SECRETS,
        ON_ERROR,
        FINALLY,
        BUDGET
    };
    static const char *const raw[COUNT(keys)] = {
        [NAME] = "name",
        [DESCRIPTION] = "description",
        [PARAMETERS] = "parameters",
        [LISTENERS] = "listeners",
        [INPUT] = "input",
        [SECRETS] = "secrets",
        [BUDGET] = "budget",
    };
    struct manifest m = { .l = l, .given = manifest };
    const struct rv__tree *own = rv__form_get(document, "agents");
    size_t most = 0;
    if (own != NULL)
        most += rv__tree_real(own)->count;
    if (manifest->shared != NULL)
        most += rv__tree_real(manifest->shared)->count;
    if (!names_init(l, &m.agents, most))
        return;
    take_agents(&m, own, true);
    take_agents(&m, manifest->shared, true);
    check_agents(&m, own);
    check_agents(&m, manifest->shared);
    take_concurrency(&m, rv__form_get(document, "maxConcurrency"));
    lower_stages(&m, document, root);
    for (struct rv__tree *child = document->first; child != NULL; child = child->next) {
        int key = key_of(child, keys, COUNT(keys));
        if (rv__key_is_private(child->key))
            continue;
        if (key < 0) {
            unknown_key(l, child, "a manifest", keys, COUNT(keys),
                        rv__str_is(child->key, "concurrency") ? "max_concurrency" : NULL);
            continue;
        }
        rv__key_check_twice(l->source, l->problems, document, child);
        if (key != NAME && is_null(child))
            continue;
        if (raw[key] != NULL)
            rv__lowering_raw(l, raw[key], child);
        else if (key == VERSION)
            lower_version(l, child);
        else if (key == ON_ERROR || key == FINALLY)
            rv__lower_handler(l, root, key == FINALLY ? "finally" : "onError", child);
    }
}

/* -------------------------------------------------------------------------------- places --- */

static bool is_named_in(const char *message, struct rv__str name)
{
    const char *at = message;
    while (name.len > 0 && (at = strchr(at, '\'')) != NULL) {
        at++;
        if (strlen(at) > name.len && memcmp(at, name.at, name.len) == 0 && at[name.len] == '\'')
            return true;
    }
    return false;
}

const struct rv__tree *rv__dependency_at(const struct rv__tree *depends_on, const char *message)
{
    const struct rv__tree *real = rv__tree_real(depends_on);
    for (const struct rv__tree *child = real->kind == TREE_MAP ? real->first : NULL; child != NULL;
         child = child->next)
        if (is_named_in(message, child->key) ||
            is_named_in(message, text_of(rv__tree_real(child), "state")))
            return child;
    return NULL;
}

void rv__manifest_words(const char *message, struct rv__buf *out)
{
    static const char *const words[][2] = { { "dependsOn", "depends_on" },
                                            { "onFailure", "on_failure" },
                                            { "maxRetry", "max_retry" },
                                            { "clearChatOnPass", "clear_chat_on_pass" },
                                            { "appendErrorsToChat", "append_errors_to_chat" } };
    while (*message != '\0') {
        size_t k = 0, len = 0;
        for (; k < COUNT(words); k++) {
            len = strlen(words[k][0]);
            if (strncmp(message, words[k][0], len) == 0)
                break;
        }
        if (k < COUNT(words))
            rv__buf_text(out, words[k][1]);
        else
            rv__buf_char(out, *message);
        message += k < COUNT(words) ? len : 1;
    }
}
