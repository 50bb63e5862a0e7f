/* keys.c: the keys of the YAML form, and suggestions for misspelled ones. */
#include "define/keys.h"

#include <string.h>

#include "base/suggest.h"

enum { ANY = (1 << FORM_KINDS) - 1 };

const struct rv__kind_word rv__kind_words[FORM_KINDS] = {
    [FORM_HTTP] = { "http", "step", "httpRequest" },
    [FORM_COMMAND] = { "command", "step", "command" },
    [FORM_VALUE] = { "value", "step", "value" },
    [FORM_CALL] = { "call", "step", NULL },
    [FORM_DELAY] = { "delay", "step", "delay" },
    [FORM_SIGNAL] = { "signal", "step", "signal" },
    [FORM_CHAT] = { "chat", "chat", "chat" },
    [FORM_TOOL] = { "tool", "step", "tool" },
    [FORM_WORKFLOW] = { "workflow", "workflow", NULL },
    [FORM_IF] = { "if", "branch", "branch" },
    [FORM_LOOP] = { "loop", "loop", "loop" },
    [FORM_FOREACH] = { "forEach", "forEach", "forEach" },
    [FORM_CONCURRENT] = { "concurrent", "concurrent", "concurrent" },
};
const char rv__all_kinds[] = "http, command, value, call, delay, signal, chat, tool, workflow, "
                             "if, loop, forEach or concurrent";

/* Configuration keys are accepted for every kind: plan/ refuses them with its own message. */
static const struct rv__key_word keys[] = {
    { "alias", ANY, USE_ALIAS },
    { "when", ANY, USE_RAW },
    { "description", ANY, USE_RAW },
    { "timeout", ANY, USE_DURATION },
    { "onTimeout", ANY, USE_RAW },
    { "maxAttempts", ANY, USE_RAW },
    { "backoff", ANY, USE_RAW },
    { "backoffBaseMs", ANY, USE_DURATION },
    { "maxBackoffMs", ANY, USE_DURATION },
    { "jitter", ANY, USE_RAW },
    { "retryOn", ANY, USE_RAW },
    { "noRetryOn", ANY, USE_RAW },
    { "continueOnError", ANY, USE_RAW },
    { "recordInput", ANY, USE_RAW },
    { "needs", ANY, USE_RAW },
    { "onError", ANY, USE_HANDLER },
    { "stdin", 1 << FORM_COMMAND, USE_PARAM },
    { "output", 1 << FORM_COMMAND, USE_PARAM },
    { "cwd", 1 << FORM_COMMAND, USE_PARAM },
    { "env", 1 << FORM_COMMAND, USE_PARAM },
    { "saveTo", 1 << FORM_COMMAND | 1 << FORM_HTTP, USE_PARAM },
    { "input", 1 << FORM_WORKFLOW, USE_RAW },
    { "then", 1 << FORM_IF, USE_NODES },
    { "else", 1 << FORM_IF, USE_NODES },
    { "while", 1 << FORM_LOOP, USE_RAW },
    { "until", 1 << FORM_LOOP, USE_RAW },
    { "maxIterations", 1 << FORM_LOOP, USE_RAW },
    { "keep", 1 << FORM_LOOP, USE_RAW },
    { "run", 1 << FORM_FOREACH, USE_RUN },
    { "parallel", 1 << FORM_FOREACH, USE_RAW },
    { "label", 1 << FORM_FOREACH, USE_RAW },
    { "concurrency", 1 << FORM_FOREACH, USE_RAW },
    { "continueOn", 1 << FORM_CONCURRENT, USE_RAW },
    { "onFailure", 1 << FORM_CONCURRENT | 1 << FORM_FOREACH, USE_RAW },
    { "join", 1 << FORM_CONCURRENT, USE_RAW },
};
enum { KEY_COUNT = sizeof keys / sizeof *keys };

int rv__kind_find(struct rv__str key)
{
    struct rv__key_room room;
    struct rv__str camel = rv__camel(key, &room);
    for (int kind = 0; kind < FORM_KINDS; kind++)
        if (rv__str_is(camel, rv__kind_words[kind].key))
            return kind;
    return -1;
}

const struct rv__key_word *rv__key_find(struct rv__str key)
{
    struct rv__key_room room;
    struct rv__str camel = rv__camel(key, &room);
    for (int i = 0; i < KEY_COUNT; i++)
        if (rv__str_is(camel, keys[i].key))
            return &keys[i];
    return NULL;
}

bool rv__key_is_private(struct rv__str key)
{
    return key.len > 2 && key.at[0] == 'x' && key.at[1] == '-';
}

bool rv__has_kind(const struct rv__tree *map)
{
    const struct rv__tree *real = rv__tree_real(map);
    if (real->kind != TREE_MAP)
        return false;
    for (const struct rv__tree *child = real->first; child != NULL; child = child->next)
        if (rv__kind_find(child->key) >= 0)
            return true;
    return false;
}

/* The key that other tools use for the same thing. */
static const char *elsewhere(struct rv__str key)
{
    static const struct {
        const char *theirs, *ours;
    } words[] = {
        { "name", "alias" },
        { "id", "alias" },
        { "retries", "maxAttempts" },
        { "retry", "maxAttempts" },
        { "attempts", "maxAttempts" },
        { "maxRetries", "maxAttempts" },
        { "condition", "when" },
        { "run", "command" },
        { "exec", "command" },
        { "shell", "command" },
        { "sleep", "delay" },
        { "uses", "workflow" },
        { "parallel", "concurrent" },
        { "allowFailure", "continueOnError" },
        { "ignoreErrors", "continueOnError" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (rv__str_is(key, words[i].theirs))
            return words[i].ours;
    return NULL;
}

bool rv__key_unknown(const struct rv__source *source, struct rv__problems *problems,
                     const struct rv__tree *child, int kind, const char *what)
{
    const char *candidates[KEY_COUNT + FORM_KINDS];
    size_t count = 0;
    struct rv__key_room room;
    for (int i = 0; i < KEY_COUNT; i++)
        if (kind < 0 || keys[i].kinds & 1u << kind)
            candidates[count++] = keys[i].key;
    for (int i = 0; kind < 0 && i < FORM_KINDS; i++)
        candidates[count++] = rv__kind_words[i].key;
    struct rv__str camel = rv__camel(child->key, &room);
    const char *meant = rv__suggest(camel, candidates, count), *word = elsewhere(camel);
    for (size_t i = 0; meant == NULL && word != NULL && i < count; i++)
        if (strcmp(candidates[i], word) == 0)
            meant = word;
    bool empty = rv__tree_real(child)->kind == TREE_NULL && kind >= 0;
    rv__problem_add(
        problems, source, child->key_at, "unknown key '%s' of %s%s%s%s%s",
        rv__cite(child->key).text, what, meant ? "; did you mean '" : "", meant ? meant : "",
        meant ? "'?" : "",
        meant == NULL && empty ? "; if it is the alias, indent what belongs to it deeper" : "");
    for (int i = 0; meant != NULL && i < FORM_KINDS; i++)
        if (strcmp(meant, rv__kind_words[i].key) == 0)
            return true;
    return false;
}

enum rv__form_kind rv__kind_of_body(const struct rv__source *source, struct rv__problems *problems,
                                    const struct rv__tree *body, uint32_t at,
                                    const struct rv__tree **value)
{
    int found = -1;
    bool meant = false;
    for (const struct rv__tree *child = body->first; child != NULL; child = child->next) {
        int kind = rv__kind_find(child->key);
        if (kind < 0)
            continue;
        if (found < 0) {
            found = kind;
            *value = child;
        } else {
            rv__problem_add(problems, source, child->key_at,
                            "a node has exactly one kind, and this one has '%s' and '%s'",
                            rv__kind_words[found].key, rv__kind_words[kind].key);
        }
    }
    if (found >= 0)
        return (enum rv__form_kind)found;
    for (const struct rv__tree *child = body->first; child != NULL; child = child->next)
        if (rv__key_find(child->key) == NULL && !rv__key_is_private(child->key))
            meant |= rv__key_unknown(source, problems, child, -1, "a node");
    if (!meant)
        rv__problem_add(problems, source, at, "this node has no kind: it needs one of %s",
                        rv__all_kinds);
    return FORM_KINDS;
}

void rv__key_check_twice(const struct rv__source *source, struct rv__problems *problems,
                         const struct rv__tree *body, const struct rv__tree *child)
{
    struct rv__key_room mine, theirs;
    struct rv__str key = rv__camel(child->key, &mine);
    const struct rv__tree *other = body->first;
    while (other != child && !rv__str_eq(rv__camel(other->key, &theirs), key))
        other = other->next;
    if (other != child && !rv__str_eq(other->key, child->key))
        rv__problem_add(problems, source, child->key_at, "'%s' and '%s' are the same key",
                        rv__cite(other->key).text, rv__cite(child->key).text);
}
