/* chat.c: a chat in a plan: a conversation with a model, in turns, and the tools that it may call.
 *
 * Its first body is a turn: one step of kind chat, the request. Each of the others is a tool: one step or workflow,
 * started for each call, with the call's arguments as its input. */
#include "plan/kinds.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/json.h"

enum { MAX_TOOL_NAME = 64 }; /* the limit of models */

struct rv__draft_node *rv__draft_chat(struct rv__draft_body *in, const char *with_json,
                                      const struct rv__chat_opts *chat,
                                      const struct rv__draft_opts *opts)
{
    struct rv__draft_node *node = rv__draft_add(in, NODE_CHAT, opts);
    struct rv__draft_body *turn = rv__draft_body(node, 0, "turn", true);
    (void)rv__draft_step(turn, STEP_CHAT, NULL, with_json, NULL);
    node->chat.max_turns = chat != NULL ? chat->max_turns : 0;
    node->chat.budget = chat != NULL ? chat->budget : (struct rv__budget){ 0 };
    node->given |= node->chat.max_turns != 0 ? GIVEN_MAX_TURNS : 0;
    node->chat.access = chat != NULL ? (int)chat->access : 0;
    node->given |= chat != NULL && chat->says_access ? GIVEN_ACCESS : 0;
    return node;
}

struct rv__draft_body *rv__draft_tool(struct rv__draft_node *chat)
{
    return rv__draft_body(chat, chat->body_count, NULL, true);
}

static void read_chat(struct rv__draft_node *node, const struct rv__subject *s)
{
    const struct rv__member *tools = rv__subject_get(s, KEY_TOOLS);
    struct rv__draft_body *turn = rv__draft_body(node, 0, "turn", true);
    struct rv__draft_node *request = rv__draft_step(turn, STEP_CHAT, NULL, NULL, NULL);
    request->step.with = rv__subject_raw(s, KEY_WITH);
    if (rv__subject_int(s, KEY_MAX_TURNS, INT64_MAX, &node->chat.max_turns))
        node->given |= GIVEN_MAX_TURNS;
    (void)rv__subject_budget(s, &node->chat.budget);
    int access = rv__subject_access(s);
    if (access >= 0) {
        node->chat.access = access;
        node->given |= GIVEN_ACCESS;
    }
    if (tools == NULL)
        return;
    if (*tools->value.at != '[')
        rv__subject_complain(s, NULL, "invalid tools %s: must be a list of steps and workflows",
                             rv__show(tools->value).text);
    else
        for (const struct rv__object *object = tools->first; object != NULL; object = object->next)
            rv__draft_node_read(rv__draft_tool(node), object);
}

/* Is it a valid tool name for the models of all providers? */
static bool is_tool_name(struct rv__str alias)
{
    return alias.len <= MAX_TOOL_NAME && memchr(alias.at, '.', alias.len) == NULL;
}

static int build_tool(struct rv__compiler *c, const struct rv__draft_body *draft,
                      struct rv__body *body, unsigned depth, const struct rv__frame *within)
{
    const struct rv__draft_node *tool = draft->first;
    struct rv__place place = RV__IN(body, NULL);
    body->bare = true;
    if (draft->count != 1) {
        rv__compiler_refuse(c, place, "a tool is one step or workflow");
        return RV_OK;
    }
    if (!tool->broken && tool->kind != NODE_STEP && tool->kind != NODE_WORKFLOW) {
        rv__compiler_refuse(c, place, "a tool is a step or a workflow, not %s",
                            rv__node_kind_phrase(tool->kind));
        return RV_OK;
    }
    if (tool->when.kind != EXPR_NONE)
        rv__compiler_refuse(c, place, "a tool takes no 'when'");
    if (!is_tool_name(body->alias))
        rv__compiler_refuse(c, place,
                            "'%.*s' cannot be the name of a tool: at most %d letters, digits, _ "
                            "and -",
                            RV__ARG(body->alias), MAX_TOOL_NAME);
    return rv__build_body(c, draft, body, depth, within);
}

static int build_chat(struct rv__compiler *c, const struct rv__draft_node *draft,
                      struct rv__node *node, unsigned depth, const struct rv__frame *within)
{
    uint32_t count = draft->body_count;
    struct rv__step_config *config = &node->chat.config;
    if (count > RV__MAX_TOOLS + 1) {
        rv__compiler_refuse(c, RV__AT(node), "a chat has at most %d tools", RV__MAX_TOOLS);
        return RV_OK;
    }
    int rc = rv__make_bodies(c, node, count);
    if (rc == RV_OK)
        rc = rv__check_config(c, draft, node, config);
    if (rc < 0)
        return rc;
    node->chat.max_turns = draft->given & GIVEN_MAX_TURNS ? draft->chat.max_turns
                                                          : RV__DEFAULT_MAX_TURNS;
    node->chat.budget = draft->chat.budget;
    node->chat.says_access = (draft->given & GIVEN_ACCESS) != 0;
    node->chat.access = (enum rv__access)draft->chat.access;
    if (node->chat.max_turns < 1 || node->chat.max_turns > RV__MAX_TURNS)
        rv__compiler_refuse(c, RV__AT(node), "invalid maxTurns %" PRId64 ": must be from 1 to %d",
                            node->chat.max_turns, RV__MAX_TURNS);
    if (draft->needs_count > 0)
        rv__compiler_refuse(c, RV__AT(node),
                            "a chat takes no 'needs': its prompt says what it reads");
    if (draft->on_error != NULL)
        rv__compiler_refuse(c, RV__AT(node),
                            "a chat takes no 'onError': 'continueOnError' lets its sequence go on");
    rc = rv__name_children(c, draft, node);
    const struct rv__draft_body *from = draft->bodies;
    for (uint32_t i = 0; i < count && rc == RV_OK; i++, from = from->next) {
        struct rv__body *body = &node->bodies[i];
        body->bare = true;
        rc = i == 0 ? rv__build_body(c, from, body, depth + 1, within)
                    : build_tool(c, from, body, depth + 1, within);
    }
    if (rc == RV_OK && count > 0 && node->bodies[0].count == 1)
        node->bodies[0].nodes[0]->step.config.hide_input = config->hide_input;
    return rc;
}

static void write_chat(struct rv__writer *w, const struct rv__node *node)
{
    rv__write_raw(w, "with", node->bodies[0].nodes[0]->step.with);
    rv__write_int(w, "maxTurns", node->chat.max_turns, RV__DEFAULT_MAX_TURNS);
    rv__write_budget(w, &node->chat.budget);
    if (node->chat.says_access)
        rv__write_text(w, "access", rv__str(rv__access_name(node->chat.access)));
    rv__write_config(w, node, &node->chat.config);
    if (node->body_count < 2)
        return;
    rv__write_key(w, "tools");
    for (uint32_t i = 1; i < node->body_count; i++) {
        rv__buf_char(w->out, i == 1 ? '[' : ',');
        rv__write_node(w, node->bodies[i].nodes[0]);
    }
    rv__buf_char(w->out, ']');
}

const struct rv__node *rv__tool_called(const struct rv__body *body)
{
    const struct rv__node *node = body->nodes[0];
    if (node->kind == NODE_WORKFLOW && node->bodies[0].count > 0 &&
        rv__str_is(node->bodies[0].wrap->name, RV__APPROVAL))
        return node->bodies[0].nodes[node->bodies[0].count - 1];
    return node;
}

bool rv__tool_is_all(const struct rv__body *body)
{
    const struct rv__node *node = rv__tool_called(body);
    struct rv__str all;
    return node->kind == NODE_STEP && node->step.kind == STEP_TOOL &&
           !rv__str_none(node->step.with) && rv__json_get(node->step.with, "all", &all) &&
           rv__json_type(all) == RV__JSON_TRUE;
}

static const char *const own_tools[OWN_TOOLS] = {
    [OWN_LOGS_HEAD] = "context_logs_head",
    [OWN_LOGS_TAIL] = "context_logs_tail",
    [OWN_LOGS_SEARCH] = "context_logs_search",
    [OWN_ATTACHMENT_LIST] = "context_attachment_list",
    [OWN_ATTACHMENT_GET] = "context_attachment_get",
    [OWN_ATTACHMENT_EXISTS] = "context_attachment_exists",
    [OWN_SET_OUTPUTS] = "set_outputs",
};

const char *rv__own_tool_name(enum rv__own_tool tool)
{
    return own_tools[tool];
}

enum rv__own_tool rv__own_tool_find(struct rv__str name)
{
    int i = 0;
    while (i < OWN_TOOLS && !rv__str_is(name, own_tools[i]))
        i++;
    return (enum rv__own_tool)i;
}

enum rv__own_tool rv__tool_own(const struct rv__body *body)
{
    const struct rv__node *node = rv__tool_called(body);
    struct rv__str own;
    int i = OWN_TOOLS;
    if (node->kind == NODE_STEP && node->step.kind == STEP_TOOL && !rv__str_none(node->step.with) &&
        rv__json_get(node->step.with, "own", &own))
        for (i = 0; i < OWN_TOOLS && !rv__json_string_is(own, rv__str(own_tools[i])); i++)
            ;
    return (enum rv__own_tool)i;
}

uint32_t rv__chat_tool(const struct rv__node *chat, struct rv__str name)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < chat->body_count; i++) { /* at most RV__MAX_TOOLS */
        struct rv__str alias = chat->bodies[i].alias;
        if (rv__str_eq(alias, name))
            return i;
        bool within = name.len > alias.len + 1 && memcmp(name.at, alias.at, alias.len) == 0 &&
                      name.at[alias.len] == '_' && rv__tool_is_all(&chat->bodies[i]);
        if (within && (found == 0 || chat->bodies[found].alias.len < alias.len))
            found = i;
    }
    return found;
}

const struct rv__kind rv__kind_chat = {
    .phrase = "a chat",
    .bodies = BODIES_TURNS,
    .most_bodies = UINT32_MAX, /* in order */
    .takes_config = true,
    .read = read_chat,
    .build = build_chat,
    .write = write_chat,
};
