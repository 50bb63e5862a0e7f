/* object.h: the JSON of a plan as objects with members, before any checks. Inside plan/ only.
 *
 * The text is read once, key by key, into *objects*: lists of known members, with nested objects where a key holds
 * nodes. The meaning of the keys is known only when an object is complete, since "type" may come last. Values that
 * a draft only copies (parameters, expressions, a schema) stay slices of the text. */
#ifndef RV_PLAN_OBJECT_H
#define RV_PLAN_OBJECT_H

#include "plan/plan.h"

/* What an object can be, one bit each: a node of some kind, or something else. */
enum rv__sort {
    SORT_STEP = 1 << NODE_STEP,
    SORT_WORKFLOW = 1 << NODE_WORKFLOW,
    SORT_BRANCH = 1 << NODE_BRANCH,
    SORT_LOOP = 1 << NODE_LOOP,
    SORT_FOREACH = 1 << NODE_FOREACH,
    SORT_CONCURRENT = 1 << NODE_CONCURRENT,
    SORT_STAGE = 1 << NODE_STAGE,
    SORT_CHAT = 1 << NODE_CHAT,
    SORT_NODE = (1 << NODE_KINDS) - 1,
    SORT_CHILD = 1 << NODE_KINDS,         /* of a concurrent, with "nodes" */
    SORT_HANDLER = 1 << (NODE_KINDS + 1), /* onError */
    SORT_DOCUMENT = 1 << (NODE_KINDS + 2),
    SORT_STATE = 1 << (NODE_KINDS + 3), /* of a stage */
};

/* Every key, and the objects that may have it. HOLDS_NODES: its value is read as objects. The options of steps are
 * accepted on any node: compile refuses them with a better message. */
#define HOLDS_NODES (1u << 31)
/* clang-format off */
#define KEY_MAP(X) \
    X(TYPE, "type", SORT_NODE | SORT_HANDLER) \
    X(ALIAS, "alias", SORT_NODE | SORT_CHILD | SORT_STATE) \
    X(WHEN, "when", SORT_NODE) \
    X(DESCRIPTION, "description", SORT_NODE | SORT_DOCUMENT | SORT_STATE) \
    X(KIND, "kind", SORT_STEP | SORT_HANDLER) \
    X(NAME, "name", SORT_STEP | SORT_WORKFLOW | SORT_HANDLER | SORT_DOCUMENT) \
    X(WITH, "with", SORT_STEP | SORT_CHAT | SORT_HANDLER) \
    X(TIMEOUT, "timeout", SORT_NODE | SORT_STATE) \
    X(ON_TIMEOUT, "onTimeout", SORT_NODE) \
    X(MAX_ATTEMPTS, "maxAttempts", SORT_NODE) \
    X(BACKOFF, "backoff", SORT_NODE) \
    X(BACKOFF_BASE_MS, "backoffBaseMs", SORT_NODE) \
    X(MAX_BACKOFF_MS, "maxBackoffMs", SORT_NODE) \
    X(JITTER, "jitter", SORT_NODE) \
    X(RETRY_ON, "retryOn", SORT_NODE) \
    X(NO_RETRY_ON, "noRetryOn", SORT_NODE) \
    X(CONTINUE_ON_ERROR, "continueOnError", SORT_NODE) \
    X(RECORD_INPUT, "recordInput", SORT_NODE) \
    X(NEEDS, "needs", SORT_NODE | SORT_DOCUMENT) \
    X(ON_ERROR, "onError", SORT_NODE | SORT_DOCUMENT | HOLDS_NODES) \
    X(FINALLY, "finally", SORT_WORKFLOW | SORT_DOCUMENT | HOLDS_NODES) \
    X(INPUT, "input", SORT_STEP | SORT_WORKFLOW | SORT_DOCUMENT) \
    X(VERSION, "version", SORT_WORKFLOW | SORT_DOCUMENT) /* recomputed */ \
    X(INPUT_SCHEMA, "inputSchema", SORT_WORKFLOW) \
    X(WORKFLOW_DESCRIPTION, "workflowDescription", SORT_WORKFLOW) \
    X(WORKFLOW_NEEDS, "workflowNeeds", SORT_WORKFLOW) \
    X(SECRETS, "secrets", SORT_WORKFLOW | SORT_DOCUMENT) \
    X(HOSTED, "hosted", SORT_WORKFLOW | SORT_DOCUMENT) \
    X(STEPS, "steps", SORT_WORKFLOW | SORT_CONCURRENT | SORT_DOCUMENT | HOLDS_NODES) \
    X(IF, "if", SORT_BRANCH) \
    X(THEN, "then", SORT_BRANCH | HOLDS_NODES) \
    X(ELSE, "else", SORT_BRANCH | HOLDS_NODES) \
    X(BODY, "body", SORT_LOOP | HOLDS_NODES) \
    X(WHILE, "while", SORT_LOOP) \
    X(UNTIL, "until", SORT_LOOP) \
    X(MAX_ITERATIONS, "maxIterations", SORT_LOOP) \
    X(KEEP, "keep", SORT_LOOP) \
    X(ITEMS, "items", SORT_FOREACH) \
    X(LABEL, "label", SORT_FOREACH) \
    X(RUN, "run", SORT_FOREACH | HOLDS_NODES) \
    X(PARALLEL, "parallel", SORT_FOREACH) \
    X(CONCURRENCY, "concurrency", SORT_FOREACH | SORT_STAGE) \
    X(CONTINUE_ON, "continueOn", SORT_CONCURRENT) \
    X(ON_FAILURE, "onFailure", SORT_CONCURRENT | SORT_FOREACH | SORT_STATE) \
    X(JOIN, "join", SORT_CONCURRENT) \
    X(NODES, "nodes", SORT_CHILD | HOLDS_NODES) \
    X(STATES, "states", SORT_STAGE | HOLDS_NODES) \
    X(PRIORITY, "priority", SORT_STATE) \
    X(CRITICAL, "critical", SORT_STATE) \
    X(FINAL, "final", SORT_STATE) \
    X(MAX_RETRY, "maxRetry", SORT_STATE) \
    X(ACCESS, "access", SORT_STATE | SORT_CHAT) \
    X(AGENT_ID, "agentId", SORT_STATE) \
    X(PARAMETERS, "parameters", SORT_STATE | SORT_WORKFLOW | SORT_DOCUMENT) \
    X(DEPENDS_ON, "dependsOn", SORT_STATE) \
    X(AGENT, "agent", SORT_STATE | HOLDS_NODES) \
    X(RESOURCES, "resources", SORT_STATE) \
    X(APPEND_ERRORS_TO_CHAT, "appendErrorsToChat", SORT_STATE) \
    X(CLEAR_CHAT_ON_PASS, "clearChatOnPass", SORT_STATE) \
    X(MANIFEST_VERSION, "manifestVersion", SORT_WORKFLOW | SORT_DOCUMENT) \
    X(LISTENERS, "listeners", SORT_WORKFLOW | SORT_DOCUMENT) \
    X(MAX_TURNS, "maxTurns", SORT_CHAT) \
    X(BUDGET, "budget", SORT_CHAT | SORT_WORKFLOW | SORT_DOCUMENT) \
    X(TOOLS, "tools", SORT_CHAT | HOLDS_NODES)
/* clang-format on */

enum rv__key {
#define X(id, name, where) KEY_##id,
    KEY_MAP(X)
#undef X
        KEYS, /* unknown */
};

struct rv__object;

struct rv__member {
    struct rv__member *next;
    enum rv__key key;
    struct rv__str name;      /* of an unknown key: its name, unescaped */
    struct rv__str value;     /* the raw text */
    struct rv__object *first; /* HOLDS_NODES: the first of an array, or the single object */
};

struct rv__object {
    struct rv__object *next; /* in the same array */
    struct rv__str text;     /* not an object: the value */
    struct rv__member *members, *last;
    uint64_t has;     /* bit KEY_…: it has this member */
    unsigned unknown; /* number of unknown members; the first few are in the list */
};
_Static_assert(KEYS <= 64, "rv__object.has");

const char *rv__key_name(enum rv__key key);
bool rv__key_fits(enum rv__key key, unsigned sort); /* may an object of that sort have it? */

/* The member with this key, the last one if repeated; NULL: none. */
const struct rv__member *rv__object_get(const struct rv__object *object, enum rv__key key);

/* Make objects of a text that passed rv__json_check() and is an object. They are in the arena and point into the
 * text. Linear; recurses with the depth of the text.
 *
 * Errors: RV_ENOMEM; RV_ETOOBIG: more objects than a plan can have. */
int rv__object_read(struct rv__str text, struct rv__arena *arena, struct rv__object **ret);

#endif
