/* lower.c: turns the YAML form into the JSON of a plan.
 *
 * Recursive; a tree has at most RV__DEFINE_MAX_LEVELS. Values are checked by plan/; here only whether a key is
 * known and belongs to the kind, and whether a duration can be read. */
#include "define/lower.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "define/keys.h"
#include "define/lowering.h"
#include "define/params.h"

enum place {
    PLACE_NODE,
    PLACE_CHILD /* of a concurrent */,
    PLACE_TAKEN /* its alias is another's */
};
static void lower_node(struct rv__lowering *l, struct rv__spot *parent, struct rv__tree *item,
                       struct rv__str label, enum place place);
static void lower_list(struct rv__lowering *l, struct rv__spot *parent, struct rv__tree *list,
                       const char *before);

struct rv__spot *rv__lowering_spot(struct rv__lowering *l, struct rv__spot *parent,
                                   struct rv__str label, uint32_t at)
{
    static struct rv__spot nowhere; /* returned after a failure; never read */
    struct rv__spot *spot = rv__arena_zalloc(l->arena, 1, sizeof *spot);
    if (spot == NULL) {
        l->rc = RV_ENOMEM;
        return &nowhere;
    }
    spot->label = label;
    spot->kind = FORM_KINDS;
    spot->at = at;
    *(parent->last != NULL ? &parent->last->next : &parent->first) = spot;
    parent->last = spot;
    return spot;
}

static struct rv__str make_label(struct rv__lowering *l, const char *before, uint32_t index)
{
    struct rv__buf text;
    struct rv__str label = { NULL, 0 };
    rv__buf_init(&text, 64);
    if (before != NULL)
        rv__buf_fmt(&text, "%s%snode%" PRIu32, before, *before != '\0' ? ":" : "", index);
    if (text.rc != RV_OK || rv__str_copy(l->arena, rv__buf_view(&text), &label) < 0)
        l->rc = RV_ENOMEM;
    rv__buf_done(&text);
    return label;
}

void rv__lowering_key(struct rv__lowering *l, const char *key)
{
    rv__buf_fmt(l->out, ",\"%s\":", key);
}

void rv__lowering_raw(struct rv__lowering *l, const char *key, const struct rv__tree *value)
{
    rv__lowering_key(l, key);
    rv__tree_json(value, l->out);
}

/* Write a harmless node in place of a wrong one, with its alias, so that others may refer to it. */
void rv__lowering_harmless(struct rv__lowering *l, struct rv__str alias)
{
    rv__buf_text(l->out, "{\"type\":\"step\",\"kind\":\"value\",\"with\":null");
    if (!rv__str_none(alias)) {
        rv__lowering_key(l, "alias");
        rv__buf_json_str(l->out, alias);
    }
    rv__buf_char(l->out, '}');
}

/* ------------------------------------------------------------------------------- values --- */

static void lower_duration(struct rv__lowering *l, const char *key, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    int64_t ms;
    if (real->kind == TREE_NUMBER) {
        rv__params_check_timeout(l->source, l->problems, key, value);
        rv__lowering_raw(l, key, value);
    } else if (real->kind == TREE_STRING && rv__duration_ms(real->text, &ms) == RV_OK) {
        rv__lowering_key(l, key);
        rv__buf_int(l->out, ms);
    } else {
        rv__problem_add(
            l->problems, l->source, value->at,
            "invalid %s %s%s%s: must be a duration such as 250ms, 30s, 5m, 1h30m or 30d, "
            "or a number of milliseconds",
            key, real->kind == TREE_STRING ? "'" : "",
            real->kind == TREE_STRING ? rv__cite(real->text).text : rv__tree_phrase(real),
            real->kind == TREE_STRING ? "'" : "");
    }
}

/* Write kind and parameters, as of a step or a handler. */
void rv__lower_work(struct rv__lowering *l, const struct rv__tree *body, enum rv__form_kind kind,
                    const struct rv__tree *value)
{
    struct rv__params params = { l->source, l->problems, l->out, body, value, l->agent };
    if (kind != FORM_CHAT) { /* a chat is no step in the plan */
        rv__lowering_key(l, "kind");
        rv__buf_json_str(l->out, rv__str(rv__kind_words[kind].key));
    }
    switch (kind) {
    case FORM_CALL: rv__lowering_raw(l, "name", value); break;
    case FORM_HTTP: rv__params_http(&params); break;
    case FORM_COMMAND: rv__params_command(&params); break;
    case FORM_DELAY: rv__params_delay(&params); break;
    case FORM_SIGNAL: rv__params_signal(&params); break;
    case FORM_CHAT: rv__params_chat(&params); break;
    case FORM_TOOL: rv__params_tool(&params); break;
    case FORM_VALUE: rv__lowering_raw(l, "with", value); break;
    case FORM_WORKFLOW:
    case FORM_IF:
    case FORM_LOOP:
    case FORM_FOREACH:
    case FORM_CONCURRENT:
    case FORM_KINDS: break;
    }
}

/* ----------------------------------------------------------------------------- handlers --- */

/* `name`: onError or finally. The handler is a step with parameters only, or a list of nodes. */
void rv__lower_handler(struct rv__lowering *l, struct rv__spot *parent, const char *name,
                       const struct rv__tree *value)
{
    struct rv__tree *real = (struct rv__tree *)rv__tree_real(value);
    const struct rv__tree *work = NULL;
    struct rv__spot *spot = rv__lowering_spot(l, parent, rv__str(name), value->key_at);
    spot->plain = true;
    spot->body = real;
    if (real->kind == TREE_LIST) {
        rv__lowering_key(l, name);
        lower_list(l, spot, real, "");
        return;
    }
    if (real->kind != TREE_MAP) {
        rv__problem_add(l->problems, l->source, value->at,
                        "invalid %s: must be a step, such as { command: [./tell-team] }, or a list "
                        "of nodes",
                        name);
        return;
    }
    if (real->broken > 0)
        return;
    spot->kind = rv__kind_of_body(l->source, l->problems, real, value->key_at, &work);
    if (spot->kind == FORM_KINDS)
        return;
    if (!(1u << spot->kind & RV__FORM_STEPS)) {
        rv__problem_add(l->problems, l->source, work->key_at,
                        "a handler is a step or a list of nodes: put the '%s' into a list",
                        rv__kind_words[spot->kind].key);
        return;
    }
    for (const struct rv__tree *child = real->first; child != NULL; child = child->next) {
        const struct rv__key_word *key = rv__key_find(child->key);
        if (rv__kind_find(child->key) >= 0 || (key != NULL && key->use == USE_PARAM))
            continue;
        if (key != NULL)
            rv__problem_add(l->problems, l->source, child->key_at,
                            "a handler takes no '%s': put the step into a list of nodes", key->key);
        else
            (void)rv__key_unknown(l->source, l->problems, child, (int)spot->kind, "a handler");
    }
    rv__lowering_key(l, name);
    rv__buf_char(l->out, '{');
    size_t begin = l->out->len;
    rv__lower_work(l, real, spot->kind, work);
    if (l->out->rc == RV_OK && l->out->text[begin] == ',') /* no comma before the first */
        l->out->text[begin] = ' ';
    rv__buf_char(l->out, '}');
}

/* ------------------------------------------------------------------------------- bodies --- */

/* `run`, `loop`: a list of nodes, or one. A workflow without an alias of its own is the body itself. */
static void lower_run(struct rv__lowering *l, struct rv__spot *spot, const char *name,
                      const char *label, const struct rv__tree *value)
{
    struct rv__tree *real = (struct rv__tree *)rv__tree_real(value);
    rv__lowering_key(l, name);
    if (real->kind != TREE_MAP) {
        lower_list(l, spot, (struct rv__tree *)value, label);
        return;
    }
    const struct rv__tree *nested = rv__form_get(real, "workflow");
    bool bare = nested != NULL && rv__tree_real(nested)->kind == TREE_STRING &&
                rv__form_get(real, "alias") == NULL && real->broken == 0;
    if (!bare)
        rv__buf_char(l->out, '[');
    lower_node(l, spot, (struct rv__tree *)value, bare ? rv__str(label) : make_label(l, label, 0),
               PLACE_NODE);
    if (bare)
        spot->last->plain = true;
    else
        rv__buf_char(l->out, ']');
}

static void lower_children(struct rv__lowering *l, struct rv__spot *spot,
                           const struct rv__tree *value)
{
    struct rv__tree *real = (struct rv__tree *)rv__tree_real(value);
    rv__lowering_key(l, "steps");
    rv__buf_char(l->out, '[');
    if (real->kind != TREE_MAP && real->kind != TREE_LIST)
        rv__problem_add(l->problems, l->source, value->at,
                        "'concurrent' must be a mapping of children by alias, or a list of nodes");
    for (struct rv__tree *child = real->first; child != NULL; child = child->next) {
        if (child != real->first)
            rv__buf_char(l->out, ',');
        lower_node(l, spot, child, (struct rv__str){ NULL, 0 }, PLACE_CHILD);
    }
    rv__buf_char(l->out, ']');
}

/* False, with a problem: there is no workflow to nest. */
bool rv__lower_nested(struct rv__lowering *l, struct rv__spot *spot, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    struct rv__str name = { NULL, 0 };
    const char *why = NULL;
    if (real->kind != TREE_STRING) {
        rv__problem_add(l->problems, l->source, value->at,
                        "invalid workflow: must be its name, or the file that defines it");
        return false;
    }
    if (!l->nesting->find(l->nesting, value, &name, &why)) {
        rv__problem_add(l->problems, l->source, value->at, "%s", why);
        return false;
    }
    if (rv__str_none(name))
        name = real->text;
    spot->implied = name;
    rv__lowering_key(l, "name");
    rv__buf_json_str(l->out, name);
    return true;
}

/* One tool of a chat, as it is written. */
struct tool_form {
    const struct rv__tree *at;
    struct rv__str server, tool; /* of an MCP server; "*": all of them */
    struct rv__str workflow;     /* or this; */
    struct rv__str own;          /* or one that needs no server; */
    struct rv__str skill;        /* or this folder */
    struct rv__str name;         /* what the model calls it */
    bool approve;
    const struct rv__tree *timeout, *max_attempts;
};

/* Read "server/tool". False: it is something else, such as a file name. */
static bool split_tool(struct rv__str text, struct tool_form *form)
{
    static const char *const endings[] = { ".yaml", ".yml", ".json", ".c",  ".so",
                                           ".ts",   ".mts", ".js",   ".mjs" };
    const char *slash = text.len > 0 ? memchr(text.at, '/', text.len) : NULL;
    if (slash == NULL || slash == text.at || *text.at == '.')
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t len = strlen(endings[i]);
        if (text.len > len && memcmp(text.at + text.len - len, endings[i], len) == 0)
            return false;
    }
    form->server = (struct rv__str){ text.at, (size_t)(slash - text.at) };
    form->tool = (struct rv__str){ slash + 1, text.len - form->server.len - 1 };
    return true;
}

static bool take_own(struct rv__str text, struct tool_form *form)
{
    if (rv__own_tool_find(text) == OWN_TOOLS)
        return false;
    form->own = text;
    return true;
}

static bool take_skill(const struct rv__tree *folder, struct tool_form *form)
{
    const struct rv__tree *real = rv__tree_real(folder);
    if (real->kind != TREE_STRING || real->text.len == 0)
        return false;
    form->skill = real->text;
    return true;
}

static bool find_workflow(struct rv__lowering *l, const struct rv__tree *value,
                          struct tool_form *form)
{
    const char *why = NULL;
    if (rv__tree_real(value)->kind != TREE_STRING) {
        rv__problem_add(l->problems, l->source, value->at,
                        "invalid workflow: must be its name, or the file that defines it");
        return false;
    }
    if (!l->nesting->find(l->nesting, value, &form->workflow, &why)) {
        rv__problem_add(l->problems, l->source, value->at, "%s", why);
        return false;
    }
    if (rv__str_none(form->workflow))
        form->workflow = rv__tree_real(value)->text;
    return true;
}

/* {tool: "server/tool" | workflow: name | skill: folder, name?, approve?, timeout?, maxAttempts?} */
static bool read_tool_map(struct rv__lowering *l, const struct rv__tree *map,
                          struct tool_form *form)
{
    static const char *const keys[] = { "tool",    "workflow", "skill",      "name",
                                        "approve", "timeout",  "maxAttempts" };
    enum { KEYS = sizeof keys / sizeof *keys };
    const struct rv__tree *tool = rv__form_get(map, "tool"),
                          *workflow = rv__form_get(map, "workflow"),
                          *skill = rv__form_get(map, "skill"), *name = rv__form_get(map, "name"),
                          *approve = rv__form_get(map, "approve");
    for (const struct rv__tree *child = map->first; child != NULL; child = child->next) {
        struct rv__key_room room;
        struct rv__str key = rv__camel(child->key, &room);
        size_t i = 0;
        while (i < KEYS && !rv__str_is(key, keys[i]))
            i++;
        const char *meant = i < KEYS ? NULL : rv__suggest(key, keys, KEYS);
        if (i == KEYS)
            rv__problem_add(l->problems, l->source, child->key_at,
                            "unknown key '%s' of a tool of a chat%s%s%s", rv__cite(child->key).text,
                            meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
    form->timeout = rv__form_get(map, "timeout");
    form->max_attempts = rv__form_get(map, "maxAttempts");
    bool right = (tool != NULL) + (workflow != NULL) + (skill != NULL) == 1 &&
                 (name == NULL || rv__tree_real(name)->kind == TREE_STRING) &&
                 (approve == NULL || rv__tree_real(approve)->kind == TREE_BOOL) &&
                 (workflow == NULL || (form->timeout == NULL && form->max_attempts == NULL));
    if (right && tool != NULL)
        right = rv__tree_real(tool)->kind == TREE_STRING &&
                (take_own(rv__tree_real(tool)->text, form) ||
                 split_tool(rv__tree_real(tool)->text, form));
    if (right && skill != NULL)
        right = take_skill(skill, form);
    if (!right) {
        rv__problem_add(l->problems, l->source, form->at->at,
                        "a tool of a chat is { tool: server/tool, name?, approve?, timeout?, "
                        "maxAttempts? }, the same with skill: folder, or { workflow: name, name?, "
                        "approve? }");
        return false;
    }
    if (name != NULL)
        form->name = rv__tree_real(name)->text;
    form->approve = approve != NULL && rv__str_is(rv__tree_real(approve)->text, "true");
    return workflow == NULL || find_workflow(l, workflow, form);
}

static bool read_tool(struct rv__lowering *l, const struct rv__tree *child, bool skill,
                      struct tool_form *form)
{
    const struct rv__tree *real = rv__tree_real(child);
    form->at = child;
    if (real->kind == TREE_MAP)
        return read_tool_map(l, real, form);
    if (skill && take_skill(child, form))
        return true;
    if (skill) {
        rv__problem_add(l->problems, l->source, child->at, "a skill is the folder of its SKILL.md");
        return false;
    }
    if (real->kind == TREE_STRING)
        return take_own(real->text, form) || split_tool(real->text, form) ||
               find_workflow(l, child, form);
    rv__problem_add(
        l->problems, l->source, child->at,
        "a tool of a chat is the name of a workflow, or its file, server/tool of an MCP "
        "server, or one of ours, as context_logs_tail");
    return false;
}

/* "pdf" of "./skills/pdf/". */
static struct rv__str last_part(struct rv__str path)
{
    while (path.len > 1 && path.at[path.len - 1] == '/')
        path.len--;
    for (size_t i = path.len; i > 0; i--)
        if (path.at[i - 1] == '/')
            return (struct rv__str){ path.at + i, path.len - i };
    return path;
}

/* The default name of a tool for the model: its own name, with _ for characters that names cannot have. */
static void put_tool_name(struct rv__lowering *l, const struct tool_form *form)
{
    bool all = rv__str_is(form->tool, "*");
    struct rv__str from = !rv__str_none(form->name)       ? form->name
                          : !rv__str_none(form->workflow) ? form->workflow
                          : !rv__str_none(form->own)      ? form->own
                          : !rv__str_none(form->skill)    ? last_part(form->skill)
                          : all                           ? form->server
                                                          : form->tool;
    if (!rv__str_none(form->name) || !rv__str_none(form->workflow)) {
        rv__buf_json_str(l->out, from);
        return;
    }
    rv__buf_char(l->out, '"');
    for (size_t i = 0; i < from.len; i++) {
        char c = from.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-';
        rv__buf_char(l->out, (char)(plain ? c : '_'));
    }
    rv__buf_char(l->out, '"');
}

/* The step or workflow that is called. */
static void put_tool(struct rv__lowering *l, const struct tool_form *form)
{
    bool all = rv__str_is(form->tool, "*");
    if (!rv__str_none(form->workflow)) {
        rv__buf_text(l->out, "{\"type\":\"workflow\",\"alias\":");
        put_tool_name(l, form);
        rv__buf_text(l->out, ",\"name\":");
        rv__buf_json_str(l->out, form->workflow);
        rv__buf_char(l->out, '}');
        return;
    }
    rv__buf_text(l->out, "{\"type\":\"step\",\"alias\":");
    put_tool_name(l, form);
    rv__buf_text(l->out, ",\"kind\":\"tool\",\"with\":{");
    rv__buf_text(l->out, !rv__str_none(form->own)     ? "\"own\":"
                         : !rv__str_none(form->skill) ? "\"skill\":"
                                                      : "\"server\":");
    rv__buf_json_str(l->out, !rv__str_none(form->own)     ? form->own
                             : !rv__str_none(form->skill) ? form->skill
                                                          : form->server);
    if (!rv__str_none(form->own) || !rv__str_none(form->skill)) {
        rv__buf_text(l->out, ",\"arguments\":\"${ .input }\"}");
    } else if (all) {
        rv__buf_text(l->out, ",\"all\":true,\"name\":\"${ .input.name }\",\"arguments\":\"${ "
                             ".input.arguments }\"}");
    } else {
        rv__buf_text(l->out, ",\"name\":");
        rv__buf_json_str(l->out, form->tool);
        rv__buf_text(l->out, ",\"arguments\":\"${ .input }\"}");
    }
    if (form->timeout != NULL)
        lower_duration(l, "timeout", form->timeout);
    if (form->max_attempts != NULL)
        rv__lowering_raw(l, "maxAttempts", form->max_attempts);
    rv__buf_char(l->out, '}');
}

/* With approval, the tool is a workflow that first waits for the signal approve:<path of the call>. */
static void put_approved_tool(struct rv__lowering *l, const struct tool_form *form)
{
    rv__buf_text(l->out, "{\"type\":\"workflow\",\"alias\":");
    put_tool_name(l, form);
    rv__buf_text(l->out,
                 ",\"name\":\"" RV__APPROVAL "\",\"steps\":["
                 "{\"type\":\"step\",\"alias\":\"approve\",\"kind\":\"signal\",\"with\":"
                 "{\"name\":\"approve:${ .run.path | rtrimstr(\\\":node0:approve\\\") }\"}},"
                 "{\"type\":\"step\",\"alias\":\"approved\",\"kind\":\"value\",\"with\":"
                 "\"${ .steps.approve.result | if type == \\\"object\\\" and .approved == true "
                 "then true else error(\\\"a person did not approve this call\\\" + (if type == "
                 "\\\"object\\\" and (.reason | type) == \\\"string\\\" then \\\": \\\" + "
                 ".reason else \\\"\\\" end)) end }\"},");
    put_tool(l, form);
    rv__buf_text(l->out, "]}");
}

/* Write the tools of one list. */
static void lower_tool_list(struct rv__lowering *l, const struct rv__tree *map, bool skills,
                            bool *none)
{
    const struct rv__tree *tools = map != NULL ? rv__form_get(map, skills ? "skills" : "tools")
                                               : NULL;
    const struct rv__tree *list = tools != NULL ? rv__tree_real(tools) : NULL;
    bool first = *none;
    if (list == NULL || list->kind == TREE_NULL)
        return;
    if (list->kind != TREE_LIST) {
        rv__problem_add(l->problems, l->source, tools->at,
                        skills ? "the 'skills' of a chat are a list of folders"
                               : "the 'tools' of a chat are a list of workflows and tools of MCP "
                                 "servers");
        return;
    }
    for (const struct rv__tree *child = list->first; child != NULL; child = child->next) {
        struct tool_form form = { .at = NULL };
        if (!read_tool(l, child, skills, &form))
            continue;
        rv__buf_text(l->out, first ? "" : ",");
        first = false;
        if (form.approve)
            put_approved_tool(l, &form);
        else
            put_tool(l, &form);
    }
    *none = first;
}

void rv__lower_tools(struct rv__lowering *l, const struct rv__tree *chat,
                     const struct rv__tree *more)
{
    size_t before = l->out->len;
    bool none = true;
    rv__lowering_key(l, "tools");
    rv__buf_char(l->out, '[');
    for (int skills = 0; skills < 2; skills++) {
        lower_tool_list(l, rv__tree_real(chat), skills, &none);
        lower_tool_list(l, more, skills, &none);
    }
    rv__buf_char(l->out, ']');
    if (none)
        rv__buf_cut(l->out, before);
}

/* Write what the key of the kind says. False: nothing usable. */
static bool lower_kind(struct rv__lowering *l, struct rv__spot *spot, const struct rv__tree *body,
                       const struct rv__tree *value)
{
    switch (spot->kind) {
    case FORM_WORKFLOW: return rv__lower_nested(l, spot, value);
    case FORM_IF: rv__lowering_raw(l, "if", value); break;
    case FORM_LOOP: lower_run(l, spot, "body", "body", value); break;
    case FORM_FOREACH: rv__lowering_raw(l, "items", value); break;
    case FORM_CONCURRENT: lower_children(l, spot, value); break;
    case FORM_CALL:
        if (rv__tree_real(value)->kind == TREE_STRING)
            spot->implied = rv__tree_real(value)->text;
        rv__lower_work(l, body, spot->kind, value);
        break;
    case FORM_HTTP:
    case FORM_COMMAND:
    case FORM_VALUE:
    case FORM_DELAY:
    case FORM_SIGNAL:
    case FORM_TOOL: rv__lower_work(l, body, spot->kind, value); break;
    case FORM_CHAT:
        rv__lower_work(l, body, spot->kind, value);
        rv__lower_tools(l, value, NULL);
        break;
    case FORM_KINDS: break;
    }
    return true;
}

static void lower_key(struct rv__lowering *l, struct rv__spot *spot, const struct rv__tree *child)
{
    const struct rv__key_word *key = rv__key_find(child->key);
    const char *name = key != NULL ? key->key : NULL;
    if (rv__key_is_private(child->key))
        return;
    if (key == NULL || !(key->kinds & 1u << spot->kind)) {
        char what[40];
        (void)snprintf(what, sizeof what, "a node with '%s'", rv__kind_words[spot->kind].key);
        (void)rv__key_unknown(l->source, l->problems, child, (int)spot->kind, what);
        return;
    }
    switch (key->use) {
    case USE_ALIAS:
    case USE_PARAM: break;
    case USE_RAW: rv__lowering_raw(l, name, child); break;
    case USE_DURATION:
        if (spot->kind != FORM_SIGNAL ||
            strcmp(name, "timeout") != 0) /* of a signal it is a parameter */
            lower_duration(l, name, child);
        break;
    case USE_NODES:
        rv__lowering_key(l, name);
        if (rv__tree_real(child)->kind == TREE_MAP) {
            rv__buf_char(l->out, '[');
            lower_node(l, spot, (struct rv__tree *)child, make_label(l, name, 0), PLACE_NODE);
            rv__buf_char(l->out, ']');
        } else {
            lower_list(l, spot, (struct rv__tree *)child, name);
        }
        break;
    case USE_RUN: lower_run(l, spot, name, name, child); break;
    case USE_HANDLER: rv__lower_handler(l, spot, name, child); break;
    }
}

/* ------------------------------------------------------------------------------ defaults --- */

enum { TAKE_DEFAULTS = 1 << FORM_HTTP | 1 << FORM_COMMAND | 1 << FORM_CALL };

static const char *const default_keys[] = { "timeout", "onTimeout",     "maxAttempts",
                                            "backoff", "backoffBaseMs", "maxBackoffMs",
                                            "jitter",  "retryOn",       "noRetryOn" };
enum { DEFAULT_KEYS = sizeof default_keys / sizeof *default_keys };

/* Write the file's defaults for the keys that this step does not have. `body` NULL: it has none. */
static void lower_defaults(struct rv__lowering *l, struct rv__spot *spot,
                           const struct rv__tree *body)
{
    if (l->defaults == NULL || !(1u << spot->kind & TAKE_DEFAULTS))
        return;
    for (size_t i = 0; i < DEFAULT_KEYS; i++) {
        const struct rv__tree *value = rv__form_get(l->defaults, default_keys[i]);
        if (value != NULL && (body == NULL || rv__form_get(body, default_keys[i]) == NULL))
            lower_key(l, spot, value);
    }
}

static void check_defaults(struct rv__lowering *l, const struct rv__tree *value)
{
    const struct rv__tree *real = rv__tree_real(value);
    if (real->kind != TREE_MAP) {
        rv__problem_add(l->problems, l->source, value->at,
                        "'defaults' must be a mapping, such as { timeout: 30s, maxAttempts: 3 }");
        return;
    }
    for (const struct rv__tree *child = real->first; child != NULL; child = child->next) {
        struct rv__key_room room;
        struct rv__str key = rv__camel(child->key, &room);
        bool known = rv__key_is_private(key);
        for (size_t i = 0; i < DEFAULT_KEYS && !known; i++)
            known = rv__str_is(key, default_keys[i]);
        const char *meant = known ? NULL : rv__suggest(key, default_keys, DEFAULT_KEYS);
        if (!known)
            rv__problem_add(l->problems, l->source, child->key_at,
                            "unknown key '%s' of defaults%s%s%s", rv__cite(child->key).text,
                            meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
    l->defaults = real;
}

/* A bare name is a call of that function. */
static void lower_bare(struct rv__lowering *l, struct rv__spot *spot, const struct rv__tree *name)
{
    spot->kind = FORM_CALL;
    spot->body = NULL;
    spot->implied = name->text;
    rv__buf_text(l->out, "{\"type\":\"step\",\"kind\":\"call\"");
    rv__lowering_raw(l, "name", name);
    lower_defaults(l, spot, NULL);
    rv__buf_char(l->out, '}');
}

static void lower_body(struct rv__lowering *l, struct rv__spot *spot, struct rv__tree *body)
{
    const struct rv__tree *value = NULL;
    spot->kind = rv__kind_of_body(l->source, l->problems, body, spot->at, &value);
    if (spot->kind == FORM_KINDS || body->broken > 0) {
        rv__lowering_harmless(l, spot->alias);
        return;
    }
    size_t begin = l->out->len;
    spot->implied = rv__str(rv__kind_words[spot->kind].implied);
    rv__buf_fmt(l->out, "{\"type\":\"%s\"", rv__kind_words[spot->kind].type);
    if (!rv__str_none(spot->alias)) {
        rv__lowering_key(l, "alias");
        rv__buf_json_str(l->out, spot->alias);
    }
    if (!lower_kind(l, spot, body, value)) {
        rv__buf_cut(l->out, begin);
        rv__lowering_harmless(l, spot->alias);
        return;
    }
    for (const struct rv__tree *child = body->first; child != NULL; child = child->next) {
        rv__key_check_twice(l->source, l->problems, body, child);
        if (rv__kind_find(child->key) < 0)
            lower_key(l, spot, child);
    }
    lower_defaults(l, spot, body);
    rv__buf_char(l->out, '}');
}

/* -------------------------------------------------------------------------------- nodes --- */

/* An entry of a list is `{alias: body}` or a body; a child of a concurrent's mapping has its alias as
 * its key. *alias is none where it is not said. */
static struct rv__tree *split(struct rv__tree *item, bool keyed, struct rv__str *alias,
                              uint32_t *at)
{
    struct rv__tree *real = (struct rv__tree *)rv__tree_real(item);
    const struct rv__tree *said = rv__tree_get(real, "alias");
    *alias = (struct rv__str){ NULL, 0 };
    *at = item->at;
    if (keyed) {
        *alias = item->key;
        *at = item->key_at;
        return real;
    }
    if (real->kind == TREE_MAP && real->count >= 1)
        *at = real->first->key_at;
    if (real->kind == TREE_MAP && real->count == 1 && said == NULL) {
        struct rv__tree *only = real->first;
        if (rv__kind_find(only->key) < 0 || rv__has_kind(only)) {
            *alias = only->key;
            return (struct rv__tree *)rv__tree_real(only);
        }
    }
    if (said != NULL && rv__tree_real(said)->kind == TREE_STRING)
        *alias = rv__tree_real(said)->text;
    return real;
}

static void refuse_body(struct rv__lowering *l, const struct rv__tree *item, struct rv__str alias,
                        const struct rv__tree *body, uint32_t at)
{
    const char *candidates[FORM_KINDS];
    for (int i = 0; i < FORM_KINDS; i++)
        candidates[i] = rv__kind_words[i].key;
    const char *meant = rv__suggest(alias, candidates, FORM_KINDS);
    if (rv__str_none(alias))
        rv__problem_add(l->problems, l->source, item->at,
                        "a node must be a mapping, { alias: { kind: … } }, and this is %s",
                        rv__tree_phrase(body));
    else if (meant != NULL && body->kind != TREE_NULL)
        rv__problem_add(l->problems, l->source, at, "unknown kind '%s'; did you mean '%s'?",
                        rv__cite(alias).text, meant);
    else
        rv__problem_add(l->problems, l->source, at,
                        "the node '%s' must be a mapping with its kind (%s), and is %s",
                        rv__cite(alias).text, rv__all_kinds, rv__tree_phrase(body));
}

static void lower_node(struct rv__lowering *l, struct rv__spot *parent, struct rv__tree *item,
                       struct rv__str label, enum place place)
{
    struct rv__str alias;
    uint32_t at;
    bool child = place == PLACE_CHILD;
    bool keyed = child && !rv__str_none(item->key);
    struct rv__tree *body = split(item, keyed, &alias, &at);
    struct rv__spot *spot = rv__lowering_spot(l, parent, label, at);
    if (place == PLACE_TAKEN) /* reported: the rest is checked under an implied alias */
        alias = (struct rv__str){ NULL, 0 };
    spot->alias = alias;
    spot->body = body;
    spot->implied = (struct rv__str)RV__STR("node");
    if (child && body->kind == TREE_LIST) {
        rv__buf_text(l->out, "{\"nodes\":");
        lower_list(l, spot, body, "");
        if (!rv__str_none(alias)) {
            rv__lowering_key(l, "alias");
            rv__buf_json_str(l->out, alias);
        }
        rv__buf_char(l->out, '}');
        return;
    }
    if (body->kind == TREE_STRING && rv__str_none(alias) && !child && place != PLACE_TAKEN) {
        lower_bare(l, spot, body);
        return;
    }
    if (body->kind != TREE_MAP) {
        refuse_body(l, item, alias, body, at);
        rv__lowering_harmless(l, alias);
        return;
    }
    size_t begin = l->out->len;
    lower_body(l, spot, body);
    if (child && spot->kind > FORM_WORKFLOW && spot->kind < FORM_KINDS) {
        rv__problem_add(l->problems, l->source, at,
                        "a child of a concurrent is a step, a workflow or a list of nodes: put the "
                        "'%s' into a list",
                        rv__kind_words[spot->kind].key);
        rv__buf_cut(l->out, begin);
        spot->first = spot->last = NULL;
        rv__lowering_harmless(l, alias);
    }
}

/* The aliases of a sequence so far, and where they are. */
struct taken {
    struct {
        struct rv__str alias;
        uint32_t at;
    } * slots;
    size_t size;
};

/* True, with a problem: another node of the sequence has it. */
static bool is_taken(struct rv__lowering *l, struct taken *taken, struct rv__str alias, uint32_t at)
{
    size_t line, column, slot = (size_t)rv__str_hash(RV__HASH_START, alias);
    if (rv__str_none(alias) || taken->slots == NULL)
        return false;
    for (;; slot++) {
        slot &= taken->size - 1;
        if (rv__str_none(taken->slots[slot].alias)) {
            taken->slots[slot].alias = alias;
            taken->slots[slot].at = at;
            return false;
        }
        if (rv__str_eq(taken->slots[slot].alias, alias))
            break;
    }
    rv__json_where(l->source->text, l->source->text.at + taken->slots[slot].at, &line, &column);
    rv__problem_add(l->problems, l->source, at,
                    "alias '%s' must be unique in its sequence: line %zu has it",
                    rv__cite(alias).text, line);
    return true;
}

/* `before`: prefix of the paths of its nodes, before "node0"; NULL: they have neither. */
static void lower_list(struct rv__lowering *l, struct rv__spot *parent, struct rv__tree *list,
                       const char *before)
{
    struct rv__tree *real = (struct rv__tree *)rv__tree_real(list);
    uint32_t index = 0;
    struct taken taken = { .size = 8 };
    rv__buf_char(l->out, '[');
    if (real->kind != TREE_LIST) {
        rv__problem_add(l->problems, l->source, list->at,
                        "'%s' must be a list of nodes (- alias: { kind: … }), and is %s",
                        rv__cite(list->key).text, rv__tree_phrase(real));
        rv__lowering_harmless(l, (struct rv__str){ NULL, 0 }); /* an empty list is an error */
    }
    while (taken.size < 2 * (size_t)real->count)
        taken.size *= 2;
    taken.slots = rv__arena_zalloc(l->arena, taken.size, sizeof *taken.slots);
    if (taken.slots == NULL)
        l->rc = RV_ENOMEM;
    for (struct rv__tree *item = real->kind == TREE_LIST ? real->first : NULL; item != NULL;
         item = item->next) {
        struct rv__str alias;
        uint32_t at;
        if (split(item, false, &alias, &at)->broken > 1)
            continue;
        if (index > 0)
            rv__buf_char(l->out, ',');
        lower_node(l, parent, item,
                   before != NULL ? make_label(l, before, index) : (struct rv__str){ NULL, 0 },
                   is_taken(l, &taken, alias, at) ? PLACE_TAKEN : PLACE_NODE);
        index++;
    }
    rv__buf_char(l->out, ']');
}

/* ------------------------------------------------------------------------- the document --- */

static void lower_document_key(struct rv__lowering *l, struct rv__spot *root,
                               struct rv__tree *child)
{
    static const char *const names[] = {
        "name",    "description", "input",    "needs",   "steps",
        "onError", "finally",     "defaults", "secrets", "budget"
    };
    struct rv__key_room room;
    struct rv__str key = rv__camel(child->key, &room);
    if (rv__key_is_private(child->key) || rv__str_is(key, "defaults")) {
        return; /* private, or read before */
    } else if (rv__str_is(key, "steps")) {
        rv__lowering_key(l, "steps");
        lower_list(l, root, child, NULL);
    } else if (rv__str_is(key, "onError") || rv__str_is(key, "finally")) {
        rv__lower_handler(l, root, rv__str_is(key, "finally") ? "finally" : "onError", child);
    } else if (rv__str_is(key, "name") || rv__str_is(key, "description") ||
               rv__str_is(key, "input") || rv__str_is(key, "needs") || rv__str_is(key, "secrets") ||
               rv__str_is(key, "budget")) {
        rv__lowering_key(l, rv__str_is(key, "name")      ? "name"
                            : rv__str_is(key, "input")   ? "input"
                            : rv__str_is(key, "needs")   ? "needs"
                            : rv__str_is(key, "secrets") ? "secrets"
                            : rv__str_is(key, "budget")  ? "budget"
                                                         : "description");
        rv__tree_json(child, l->out);
    } else {
        const char *meant = rv__suggest(key, names, sizeof names / sizeof *names);
        rv__problem_add(l->problems, l->source, child->key_at,
                        "unknown key '%s' of a workflow%s%s%s", rv__cite(child->key).text,
                        meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    }
}

/* Without a `name`, the workflow has the name of its file. */
static void lower_file_name(struct rv__lowering *l, const struct rv__tree *document)
{
    struct rv__str stem = rv__file_stem(l->source->file);
    const char *fault = rv__alias_fault(stem);
    if (fault != NULL)
        rv__problem_add(l->problems, l->source, document->at,
                        "a workflow needs a 'name', since the file's, '%s', cannot be one: %s",
                        rv__cite(stem).text, fault);
    rv__lowering_key(l, "name");
    rv__buf_json_str(l->out, fault == NULL ? stem : rv__str("unnamed"));
}

int rv__lower(const struct rv__source *source, struct rv__tree *document,
              const struct rv__manifest *manifest, struct rv__arena *arena,
              struct rv__nesting *nesting, struct rv__problems *problems, struct rv__lowered *ret)
{
    struct rv__lowering l = { source, arena, nesting, problems, &ret->json, RV_OK, NULL };
    ret->root = (struct rv__spot){ .kind = FORM_KINDS, .body = document, .at = document->at };
    rv__buf_init(&ret->json, RV__PLAN_MAX_BYTES);
    rv__buf_char(l.out, '{');
    if (rv__tree_get(document, "name") == NULL)
        lower_file_name(&l, document);
    if (manifest == NULL && rv__tree_get(document, "defaults") != NULL)
        check_defaults(&l, rv__tree_get(document, "defaults"));
    if (manifest != NULL)
        rv__lower_manifest(&l, document, manifest, &ret->root);
    for (struct rv__tree *child = document->first; manifest == NULL && child != NULL;
         child = child->next) {
        rv__key_check_twice(source, problems, document, child);
        lower_document_key(&l, &ret->root, child);
    }
    rv__buf_char(l.out, '}');
    if (l.out->rc == RV_OK && l.out->text[1] == ',') /* no comma before the first */
        l.out->text[1] = ' ';
    if (nesting != NULL && nesting->rc != RV_OK)
        return nesting->rc;
    return l.rc != RV_OK ? l.rc : l.out->rc;
}
