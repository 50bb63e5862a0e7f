/* plan.h: the plan of a workflow: a tree of nodes, pure data.
 *
 * A plan is made in two steps. A *draft* is what the author wrote, valid or not: built call by call
 * (rv__draft_…) or read from JSON (rv__draft_read). rv__plan_compile() checks it, reports all errors at
 * once, includes nested workflows, and returns an immutable *plan*.
 *
 * Structure: a node has bodies, a body is a sequence of nodes.
 *
 *   step        no body                       concurrent  a body per child
 *   workflow    one body, with its own scope  branch      two bodies: then, else (maybe empty)
 *   loop        one body                      forEach     one body
 *   stage       a body per state, with one step or workflow in it: its agent
 *   chat        a body for a turn, with the request in it, and one per tool: a step or workflow
 *   sequence    one body: a handler that is a list
 *
 * A body may be a workflow's ("wrapped"): its nodes see the input of that workflow and not the
 * parent's. A node of kind workflow has such a body; the `run` of a forEach, the `body` of a loop and
 * a child of a concurrent may be one directly, and then its nodes are the body's nodes. A workflow with
 * `when` or `description` that is a child of a concurrent is a node, the only one of a bare body.
 *
 * Handlers (onError of a step or a workflow, finally of a workflow) are nodes too, with an id of their own
 * and in no body: a step, or a sequence, which has one body. */
#ifndef RV_PLAN_PLAN_H
#define RV_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/violations.h"

/* Bounds on what we accept. A plan beyond them is a mistake or an attack: RV_ETOOBIG.
 *
 * A level takes up to four JSON containers (the array of a concurrent, a child, its nodes, a node),
 * so these keep every plan's JSON within what rv__json_check() accepts: 4 * 100 + 100 < 512. */
enum {
    RV__PLAN_MAX_DEPTH = 100,      /* bodies within bodies, nested workflows included */
    RV__PLAN_MAX_NODES = 100000,   /* nested workflows included, handlers too */
    RV__PLAN_MAX_SECRETS = 100,    /* of one workflow: more are a mistake */
    RV__PLAN_MAX_LISTENERS = 100,  /* of one workflow: the same */
    RV__PLAN_MAX_NAME = 200,       /* bytes of an alias, of a workflow's or function's name */
    RV__PLAN_MAX_BYTES = 16 << 20, /* of its JSON text */
    RV__PLAN_MAX_CODES = 100,      /* in one retryOn or noRetryOn */
    RV__PLAN_VALUE_DEPTH = 100,    /* containers within each other in one raw JSON value */
    RV__PLAN_JSON_DEPTH = 512,     /* of the whole text */
};
#define RV__PLAN_MAX_MS INT64_C(3155760000000) /* a hundred years: no sum of times overflows */

enum rv__node_kind {
    NODE_STEP,
    NODE_WORKFLOW,
    NODE_BRANCH,
    NODE_LOOP,
    NODE_FOREACH,
    NODE_CONCURRENT,
    NODE_STAGE,    /* states by dependency and priority (manifests) */
    NODE_CHAT,     /* turns of a conversation with a model, and the tools it calls */
    NODE_SEQUENCE, /* a handler that is a list of nodes; has no type in JSON */
    NODE_KINDS,
};
const char *rv__node_kind_name(enum rv__node_kind kind); /* "step", "forEach", … as in JSON */

/* How a kind of node has its bodies. */
enum rv__bodies {
    BODIES_NONE,     /* a step */
    BODIES_ITSELF,   /* one, which has no name of its own: a nested workflow, a sequence */
    BODIES_NAMED,    /* each by its alias: the paths of a branch, the children of a concurrent */
    BODIES_ITERATED, /* one, over and over: a loop, a forEach. A number in the vector */
    BODIES_RETRIED, /* each by its alias, started again for each attempt: the states of a stage. The
                        number of the attempt is in the vector, but not in paths */
    BODIES_TURNS, /* the turns of a chat and the calls of its tools, numbered by rv__chat_number().
                     That number is in the vector, and in the path as turn<N> and call<K> */
};

/* What a node may have to evaluate. */
enum rv__use {
    USE_WHEN,
    USE_DESCRIPTION,
    USE_IF,
    USE_WHILE,
    USE_UNTIL,
    USE_ITEMS,
    USE_LABEL,
    USES
};

/* What kind of work a step is. */
enum rv__step_kind {
    STEP_FUNCTION, /* `name` is the function */
    STEP_CALL,     /* the same, written in a file: a function of any language, by name */
    STEP_HTTP,
    STEP_COMMAND,
    STEP_VALUE,
    STEP_DELAY,
    STEP_SIGNAL,
    STEP_CHAT, /* a request to a model: a turn of a chat, and nothing else */
    STEP_TOOL,
    STEP_KINDS,
};
const char *rv__step_kind_name(enum rv__step_kind kind); /* "function", "http", … */

/* Something to evaluate: a function by name, or JSON with templates ("${ … }") in it. */
struct rv__expr {
    enum { EXPR_NONE, EXPR_FUNCTION, EXPR_JSON } kind;
    struct rv__str text; /* the function's name; or the raw JSON text */
};

static inline struct rv__expr rv__expr_function(const char *name) /* NULL: none */
{
    return (struct rv__expr){ name ? EXPR_FUNCTION : EXPR_NONE, rv__str(name) };
}

static inline struct rv__expr rv__expr_json(const char *json) /* NULL: none */
{
    return (struct rv__expr){ json ? EXPR_JSON : EXPR_NONE, rv__str(json) };
}

enum rv__on_timeout { ON_TIMEOUT_STOP, ON_TIMEOUT_RETRY };
enum rv__backoff { BACKOFF_LINEAR, BACKOFF_EXPONENTIAL };
enum rv__keep { KEEP_ALL, KEEP_LAST, KEEP_NONE };

#define RV__DEFAULT_BACKOFF_BASE_MS 100
#define RV__DEFAULT_MAX_BACKOFF_MS  60000
#define RV__DEFAULT_MAX_ITERATIONS  1000
#define RV__HANDLER_TIMEOUT_MS      30000
#define RV__JOIN_ALL                0

struct rv__step_config {
    int64_t timeout_ms; /* of each attempt; 0 = none */
    enum rv__on_timeout on_timeout;
    int max_attempts; /* 0 = not set (then it is 1, or what the step error says) */
    enum rv__backoff backoff;
    int64_t backoff_base_ms; /* in a plan the default is filled in; in options 0 = default */
    int64_t max_backoff_ms;  /* the same */
    double jitter;           /* 0..1 */
    /* JSON lists of exit codes, HTTP statuses (numbers) and error codes (texts); none = not set. Errors in
     * no_retry_on are not retried; if there is a retry_on, only those are. */
    struct rv__str retry_on, no_retry_on;
    bool continue_on_error; /* after it has failed for good, its sequence continues */
    bool hide_input;        /* `recordInput: false`: the input of its attempts is not recorded */
};

struct rv__node;

/* Events in the life of a manifest's run that listeners can subscribe to. */
enum rv__lifecycle {
    LIFE_DISPATCH, /* an attempt of a state begins */
    LIFE_STATE_COMPLETED,
    LIFE_STAGE_COMPLETED,
    LIFE_SUSPEND,
    LIFE_REDIRECT,
    LIFE_EXHAUSTED, /* a state has used up its attempts */
    LIFE_FINAL,
    LIFE_COMPLETED, /* the run */
    LIFE_ABORTED,
    LIFECYCLES,
};
const char *rv__lifecycle_name(enum rv__lifecycle event); /* "dispatch", "state_completed", … */
int rv__lifecycle_find(struct rv__str name);              /* -1: none has it */

/* A listener of a manifest: a program, which gets the event on its stdin, or a URL. */
struct rv__listener {
    unsigned events;        /* bits 1 << enum rv__lifecycle */
    struct rv__str command; /* a raw JSON list of texts, the program and its arguments; or none */
    struct rv__str webhook; /* or none */
};

/* What chats may use together. 0 = no limit. */
struct rv__budget {
    int64_t tokens;
    int64_t cost; /* in 1 / RV__COST_UNIT of the unit that prices are in */
};
#define RV__COST_UNIT INT64_C(1000000000)
/* From a JSON number, rounded; false: it is none, or too large. And as a JSON number, without needless zeros. */
bool rv__cost_read(struct rv__str json, int64_t *ret);
void rv__cost_write(int64_t cost, struct rv__buf *out);

/* A workflow inside a plan; the outermost one, too. */
struct rv__wrap {
    struct rv__str name;
    struct rv__str version;     /* its own hash, hex: what it would have as a plan by itself */
    struct rv__str description; /* for people; none = not set */
    struct rv__str schema;      /* raw JSON of its input schema; none = any input */
    bool hosted; /* its functions run in processes of their own: not in its version */
    struct rv__str
        *needs; /* aliases of nodes around it that it reads; such a workflow cannot run alone */
    uint32_t needs_count;
    struct rv__str
        *secrets; /* names of the secrets that its own steps may send; the engine has the values */
    uint32_t secrets_count;
    struct rv__str parameters;       /* a raw JSON object: what its input is laid over; none = {} */
    struct rv__str manifest_version; /* what its author calls this version; none = not set */
    struct rv__listener *listeners;
    uint32_t listener_count;
    struct rv__budget budget;  /* of all chats in one execution of it */
    struct rv__expr input;     /* EXPR_NONE: the parent's input */
    struct rv__node *on_error; /* its handler, or NULL */
    struct rv__node *finally;  /* runs at its end, whatever the outcome; or NULL */
};

struct rv__body {
    struct rv__str alias; /* "then", "else", a concurrent child's alias; else "" */
    struct rv__node **nodes;
    uint32_t count;
    struct rv__node *owner; /* the supervisor; NULL for the outermost body */
    uint32_t index;         /* among its owner's bodies */
    bool bare;              /* a concurrent child that is a single node: its own path and result */
    const struct rv__wrap *wrap; /* not NULL: a workflow's body */
    struct rv__node **by_alias;  /* the nodes sorted by alias, for rv__body_find() */
};

/* ---- stages: how the bodies of a stage are scheduled */

enum {
    RV__PRIORITY_DEFAULT = 100,
    RV__PRIORITY_MAX = 999,
    RV__MAX_RETRIES = 1000000,           /* of one state: more is a mistake */
    RV__PLAN_MAX_DEPENDENCIES = 1000000, /* of all states of a plan */
};
#define RV__NO_STATE UINT32_MAX

/* What an agent may see besides its own task. */
enum rv__access { ACCESS_ALL, ACCESS_LOGS, ACCESS_EXPLICIT, ACCESS_NONE, ACCESSES };
const char *rv__access_name(enum rv__access access);
/* The scope of a node: the narrowest of the states and chats around it. *scoped (unless NULL): it is in one. A node
 * that is in none has no scope: it sees everything. A chat has that of the state it is the agent of; one in a plain
 * workflow has `none`, unless it says more. */
enum rv__access rv__node_access(const struct rv__node *node, bool *scoped);
/* The innermost enclosing state whose agent may not read everything, or tool of such a chat: nodes in it cannot read
 * nodes outside. NULL: there is none. The request of a chat can: its author says what of it goes into the prompt. */
const struct rv__body *rv__node_fence(const struct rv__node *node);
const struct rv__body *rv__body_fence(const struct rv__body *body); /* this one, or around it */
bool rv__body_encloses(const struct rv__body *body, const struct rv__node *node);

struct rv__dependency {
    struct rv__str param;         /* the name under which the state gets it */
    const struct rv__node *stage; /* an earlier one of the same sequence; NULL: its own */
    uint32_t state;               /* which body of that stage */
    bool description;             /* it gets the description, and not the result */
};

struct rv__state {
    int priority; /* higher first */
    bool critical, final;
    int max_retry;       /* after the first attempt */
    int64_t timeout_ms;  /* of an attempt as a whole; 0 = none */
    uint32_t on_failure; /* the state that runs before a retry; RV__NO_STATE: none */
    enum rv__access access;
    struct rv__str agent_id;    /* for people and attachments; none = not set */
    struct rv__str parameters;  /* a raw JSON object, the agent's own among them; none = {} */
    struct rv__str description; /* for people, and for a chat its system prompt; none = not set */
    struct rv__str resources;   /* a raw JSON object: tools, skills; none = {} */
    bool append_errors_to_chat; /* a retry is told the last error */
    bool clear_chat_on_pass;    /* success drops the turns that were kept */
    struct rv__dependency *depends;
    uint32_t depends_count;
    uint32_t waits_for; /* so many of them are of its own stage */
    uint32_t
        *dependents; /* the states of its own stage that depend on it, once for each dependency */
    uint32_t dependents_count;
};

/* ---- chats */

enum {
    RV__DEFAULT_MAX_TURNS = 20,
    RV__MAX_TURNS = 1000, /* of one conversation: more is a mistake */
    RV__MAX_CALLS = 100,  /* of tools, in one turn */
    RV__MAX_TOOLS = 128,  /* of one chat: what models take */
};

/* The number of a turn (from 1; call -1) or of a call (from 0), in the attempt-th conversation, from 1: unique in its
 * chat. And back. */
static inline int64_t rv__chat_number(int attempt, int turn, int call)
{
    return (((int64_t)attempt << 10 | turn) << 7) + call + 1;
}
static inline int rv__chat_turn(int64_t number)
{
    return (int)(number >> 7 & 1023);
}
static inline int rv__chat_call(int64_t number) /* -1: it is the turn itself */
{
    return (int)(number & 127) - 1;
}
static inline int rv__chat_attempt(int64_t number)
{
    return (int)(number >> 17);
}

struct rv__node {
    uint32_t id; /* its place in plan->nodes; in pre-order, so parents come first */
    enum rv__node_kind kind;
    struct rv__str alias;              /* of a handler: "onError", "finally" */
    struct rv__body *body;             /* the body it is in; NULL for a handler */
    uint32_t index;                    /* in that body */
    struct rv__node *handler_of;       /* for a step's handler: that step; NULL else */
    const struct rv__body *handler_in; /* for a workflow's handler: its body; NULL else */
    bool is_handler;                   /* of a step or of a workflow */
    struct rv__expr when;              /* false: skipped */
    struct rv__expr description;       /* evaluated when it has completed */
    struct rv__node *on_error;         /* its handler, or NULL */
    bool has_stages;                   /* it is a stage, or one is below it */
    struct rv__body *bodies;
    uint32_t body_count;
    uint32_t
        loops_around; /* forEach, loop, stage and chat nodes that enclose it: the length of its vector */
    union {
        struct {
            enum rv__step_kind kind;
            bool parks; /* a delay or signal of constants: waits at once, without an executor */
            struct rv__str name; /* the function's name (function, call); else none */
            struct rv__str with; /* raw JSON parameters of the kind, squeezed; none = {} */
            /* A function that is called before the first attempt: the members of its result replace those of
             * `with`. NONE: there is none. Never JSON. */
            struct rv__expr input;
            struct rv__step_config config;
            int64_t delay_ms;              /* delay: how long, if it is a constant; else -1 */
            struct rv__str signal;         /* signal: its name, if it is a constant; else none */
            int64_t signal_timeout_ms;     /* 0 = none */
            struct rv__str signal_default; /* raw JSON; none = a time-out fails the step */
            struct rv__str signal_schema;  /* raw JSON: what a payload must be; none = anything */
            struct rv__str signal_checked; /* the name of the signal that has to fit it */
            struct rv__str *needs;         /* aliases it declares to read */
            uint32_t needs_count;
        } step;
        struct {
            struct rv__expr condition; /* bodies: [0] then, [1] else */
        } branch;
        struct {
            struct rv__expr while_, until; /* exactly one of them */
            int64_t max_iterations;
            enum rv__keep keep;
        } loop;
        struct {
            struct rv__expr items;
            bool parallel;
            int64_t concurrency;   /* 0 = all at once; only with parallel */
            bool collect;          /* onFailure: collect */
            struct rv__expr label; /* of an iteration, for people; NONE: it has none */
        } foreach;
        struct {
            bool detached; /* continueOn: detached */
            bool collect;  /* onFailure: collect */
            int64_t join;  /* RV__JOIN_ALL, or how many must complete */
        } concurrent;
        struct {
            int64_t concurrency;      /* attempts at once; 0 = no limit */
            struct rv__state *states; /* one for each body */
            uint32_t *by_alias;       /* their numbers sorted by alias, for rv__stage_find() */
        } stage;
        struct {
            struct rv__step_config config; /* of a conversation as a whole, each an attempt */
            int64_t max_turns;             /* of one conversation */
            struct rv__budget budget;      /* of all of them together */
            bool says_access;              /* else it has that of its state, or none */
            enum rv__access access;        /* what its tools may read */
        } chat;                            /* bodies: [0] a turn, the others its tools */
    };
};

/* Immutable; shared by all runs that were started with it.
 *
 * Its version is the SHA-256 of its definition as rv__plan_write() writes it, but each workflow nested
 * in it as name and version only. So it changes with anything in them, and making it stays linear
 * however deep they are nested. */
struct rv__plan {
    struct rv__arena arena;     /* everything lives here */
    struct rv__str description; /* = body.wrap->description */
    struct rv__body body;       /* the outermost; its wrap has name, version, schema, handler */
    struct rv__node **nodes;    /* by id */
    uint32_t node_count;
    struct rv__str *signals; /* the constant names that its steps wait for: sorted, each once */
    uint32_t signal_count;
    bool any_signal;  /* a step's name for its signal is an expression: it may be any */
    char version[65]; /* = body.wrap->version */
};

/* May one of its steps wait for a signal of this name? Logarithmic. */
bool rv__plan_takes_signal(const struct rv__plan *plan, struct rv__str name);

/* What is wrong with it as an alias or as a workflow's name ("it may not contain '__'"), or NULL. */
const char *rv__alias_fault(struct rv__str alias);

/* Is it a nested workflow's body whose input is an expression, or has a schema to be held to, or parameters to
 * be laid over; or a tool? If not, its input is the one around it. (The outermost body's input was checked before
 * the run.) */
bool rv__body_needs_input(const struct rv__body *body);

/* The node that is called `alias` in the body, or NULL. Logarithmic in the body's length. */
const struct rv__node *rv__body_find(const struct rv__body *body, struct rv__str alias);

enum rv__bodies rv__node_bodies(const struct rv__node *node);
/* Do its bodies have a number in the vector? */
static inline bool rv__node_numbers(const struct rv__node *node)
{
    enum rv__bodies bodies = rv__node_bodies(node);
    return bodies == BODIES_ITERATED || bodies == BODIES_RETRIED || bodies == BODIES_TURNS;
}
/* The state that is called `alias` in a stage; RV__NO_STATE: none. Logarithmic. */
uint32_t rv__stage_find(const struct rv__node *stage, struct rv__str alias);
/* The state whose agent this node is; NULL: it is no agent. */
const struct rv__state *rv__node_state(const struct rv__node *node);
/* The same for the agent itself, and for the request of a chat that is an agent. */
const struct rv__state *rv__node_speaks_for(const struct rv__node *node);
/* The number of the body of the tool with this name; 0: none. */
uint32_t rv__chat_tool(const struct rv__node *chat, struct rv__str name);
/* A tool that needs a person's approval is the last node of a workflow with this name. */
#define RV__APPROVAL "approved-call"
/* The step or workflow that a tool's body calls. */
const struct rv__node *rv__tool_called(const struct rv__body *body);
/* Does this body stand for all tools of an MCP server? Then a call of ALIAS_NAME calls its tool NAME, and the
 * body's input is {name, arguments}. */
bool rv__tool_is_all(const struct rv__body *body);
/* The tools that need no server, by the names that files and models use (SPEC §9). */
enum rv__own_tool {
    OWN_LOGS_HEAD,
    OWN_LOGS_TAIL,
    OWN_LOGS_SEARCH,
    OWN_ATTACHMENT_LIST,
    OWN_ATTACHMENT_GET,
    OWN_ATTACHMENT_EXISTS,
    OWN_SET_OUTPUTS,
    OWN_TOOLS, /* none of them */
};
const char *rv__own_tool_name(enum rv__own_tool tool);
enum rv__own_tool rv__own_tool_find(struct rv__str name);
/* What a tool's body calls has `own`: one of these; OWN_TOOLS: it does not. */
enum rv__own_tool rv__tool_own(const struct rv__body *body);
/* Is it the body of a chat's tool? Its input is the arguments of the call. */
bool rv__body_is_tool(const struct rv__body *body);
/* The retry and time-out options of a step or a chat; NULL: another kind. */
const struct rv__step_config *rv__node_config(const struct rv__node *node);
/* The innermost handler that the node is or is in; NULL: none. */
const struct rv__node *rv__node_handler(const struct rv__node *node);
/* The body that contains a node; for a handler, that of its step, or its workflow's body. */
const struct rv__body *rv__node_around(const struct rv__node *node);
/* The default time-out of its attempts: limited in a handler; for an agent, that of its state. 0: no limit. */
int64_t rv__node_timeout_ms(const struct rv__node *node);
/* Its expression for this use; NULL: its kind has none, or it is not set. */
const struct rv__expr *rv__node_expr(const struct rv__node *node, enum rv__use use);

/* Append the path of a node instance: "processEach:iter3:node0:chargeItem". `vector` holds the
 * iteration of each forEach and loop around it, and the attempt of each state, outermost first;
 * node->loops_around of them. NULL:
 * the path of the plan's node, with the name of the body for its iteration:
 * "processEach:run:node0:chargeItem", "poll:body:node0:look". A handler's path is that of its step,
 * or of the body of its workflow, with ":onError" (the outermost's: "onError"). */
void rv__node_path(const struct rv__node *node, const int64_t *vector, struct rv__buf *buf);

/* The same for a body: of a nested workflow the node's own path, "decide:then", "notify:email",
 * "processEach:iter3". The outermost has none and adds nothing. `vector`: as of its nodes. */
void rv__body_path(const struct rv__body *body, const int64_t *vector, struct rv__buf *buf);

void rv__plan_free(struct rv__plan *plan); /* NULL is allowed */

/* Is it a signal whose payload must fit a schema? */
static inline bool rv__node_has_schema(const struct rv__node *node)
{
    return node->kind == NODE_STEP && node->step.kind == STEP_SIGNAL &&
           !rv__str_none(node->step.signal_schema);
}

/* The workflow that the node was written in: the innermost around it. */
const struct rv__wrap *rv__node_wrap(const struct rv__node *node);
/* Is it in a chat or a workflow whose budget has a cost? Then each of its requests must have a price. */
bool rv__node_bounds_cost(const struct rv__node *node);
/* What makes the input of a body of `node`; body NULL: of the step that `node` is. NULL: nothing does. */
const struct rv__expr *rv__input_expr(const struct rv__node *node, const struct rv__body *body);

/* Whether a workflow of the plan has listeners; `nested`: one other than the outermost. */
bool rv__plan_listens(const struct rv__plan *plan, bool nested);

/* Whether the workflow declares this secret. */
bool rv__wrap_has_secret(const struct rv__wrap *wrap, struct rv__str name);

/* Does the workflow declare that it reads a node with that alias of the workflow that nests it? */
bool rv__wrap_needs(const struct rv__wrap *wrap, struct rv__str alias);

/* Append the plan as JSON text, complete: reading and compiling it again gives the same plan with
 * the same version, without asking for nested workflows, and writing that the same text.
 *
 * Keys are in a fixed order, defaults are left out, raw JSON is as it was written but for white
 * space. After a failure `out` holds what it held before.
 *
 * Errors: RV_ENOMEM, RV_ETOOBIG (the bound of `out`; the text has at most RV__PLAN_MAX_BYTES). */
int rv__plan_write(const struct rv__plan *plan, struct rv__buf *out, rv_error *err);

/* The same for people and their programs: the root has a type and an alias, like the other nodes. Neither is part of
 * the definition, so this is not the text that is stored. */
int rv__plan_show(const struct rv__plan *plan, struct rv__buf *out, rv_error *err);

/* ------------------------------------------------------------------------------- drafts --- */

struct rv__draft;      /* a workflow being written */
struct rv__draft_body; /* where new nodes go; owned by the draft */
struct rv__draft_node; /* a node in it; owned by the draft */

/* The options of a draft node. Zero is the default, NULL options are all defaults. */
struct rv__draft_opts {
    const char *alias;             /* NULL: implied by the kind, made unique by _2, _3 … */
    struct rv__expr when;          /* EXPR_NONE: always */
    const char *description;       /* text with templates in it */
    const char *describe;          /* instead of it: the function that makes it; NULL: none does */
    struct rv__step_config config; /* of steps only; bad values are reported at compile */
    const char *const *needs;      /* of steps only; NULL-terminated */
};

/* Make a draft, and free it. A nested draft must outlive those that include it.
 *
 * Errors: RV_ENOMEM. A bad name is reported at compile.   Thread: one at a time. */
int rv__draft_new(const char *name, struct rv__draft **ret, rv_error *err);
void rv__draft_free(struct rv__draft *draft); /* NULL is allowed */

/* None of the following fails: an error (no memory, more than the limits above) is remembered, and
 * rv__plan_compile() reports it. A returned node or body is never NULL: after a failure it is a
 * dummy that accepts everything. All texts are copied. */
void rv__draft_description(struct rv__draft *draft, const char *text);
void rv__draft_hosted(struct rv__draft *draft); /* its functions run in processes of their own */
void rv__draft_schema(struct rv__draft *draft, const char *json);
void rv__draft_secrets(struct rv__draft *draft, const char *const *names); /* ends in NULL */
void rv__draft_needs(struct rv__draft *draft, const char *const *aliases); /* NULL-terminated */
void rv__draft_parameters(struct rv__draft *draft, const char *json);      /* NULL: none */
void rv__draft_budget(struct rv__draft *draft, struct rv__budget budget);
void rv__draft_listeners(struct rv__draft *draft, const char *json); /* a list; NULL: none */
struct rv__str rv__draft_name(const struct rv__draft *draft); /* as it was given, good or not */
struct rv__draft_body *rv__draft_root(struct rv__draft *draft);

/* `name`: of the function, for the kinds function and call; else NULL. with_json: NULL = none. */
struct rv__draft_node *rv__draft_step(struct rv__draft_body *in, enum rv__step_kind kind,
                                      const char *name, const char *with_json,
                                      const struct rv__draft_opts *opts);
/* A function makes some of its parameters: for http, delay and signal. */
void rv__draft_step_input(struct rv__draft_node *step, const char *function);

/* Another workflow, by its name, found by the resolver at compile; or given as a draft, which is
 * borrowed until the outer draft is freed. `input` EXPR_NONE: the parent's input. */
struct rv__draft_node *rv__draft_workflow(struct rv__draft_body *in, const char *name,
                                          struct rv__expr input, const struct rv__draft_opts *opts);
struct rv__draft_node *rv__draft_inline(struct rv__draft_body *in, const struct rv__draft *nested,
                                        struct rv__expr input, const struct rv__draft_opts *opts);

/* Append "each:save": the aliases around a body, as far as they are set, and that of a node in it. */
void rv__draft_where(const struct rv__draft_body *body, const char *alias, struct rv__buf *ret);

/* Call `name_it` with the reference of each node of the draft that nests a workflow, at any depth. It may be a file
 * (define/ knows which are), and then *name becomes the workflow's name. Call it before the draft is compiled.
 * Errors: RV_ENOMEM; an error of name_it, which stops it. */
int rv__draft_nested(struct rv__draft *draft,
                     int (*name_it)(void *arg, struct rv__str said, struct rv__str *name),
                     void *arg);

/* The supervisors. max_iterations, concurrency: 0 = not set; join: RV__JOIN_ALL = not set. */
struct rv__draft_node *rv__draft_branch(struct rv__draft_body *in, struct rv__expr condition,
                                        const struct rv__draft_opts *opts);
struct rv__draft_node *rv__draft_loop(struct rv__draft_body *in, struct rv__expr while_,
                                      struct rv__expr until, int64_t max_iterations,
                                      enum rv__keep keep, const struct rv__draft_opts *opts);
struct rv__draft_node *rv__draft_foreach(struct rv__draft_body *in, struct rv__expr items,
                                         struct rv__expr label, bool parallel, int64_t concurrency,
                                         bool collect, const struct rv__draft_opts *opts);
struct rv__draft_node *rv__draft_concurrent(struct rv__draft_body *in, bool detached, bool collect,
                                            int64_t join, const struct rv__draft_opts *opts);

/* A stage; `concurrency` 0 = not set. Its states, in order; the returned body takes the agent of the state, one step
 * or workflow. */
struct rv__draft_node *rv__draft_stage(struct rv__draft_body *in, int64_t concurrency,
                                       const struct rv__draft_opts *opts);
struct rv__state_opts { /* zero is the default, except for the priority */
    int64_t priority;   /* must be set */
    bool critical, final;
    int64_t max_retry, timeout_ms;
    const char *on_failure, *agent_id;             /* NULL: none */
    const char *depends_on, *parameters;           /* raw JSON objects; NULL: none */
    const char *resources;                         /* the same */
    const char *description;                       /* NULL: none */
    bool keep_errors_from_chat, keep_chat_on_pass; /* the opposite of the defaults */
    enum rv__access access;
};
struct rv__draft_body *rv__draft_state(struct rv__draft_node *stage, const char *alias,
                                       const struct rv__state_opts *opts);

/* A chat: `with_json` is what each request is made of; a zero in `chat` (or NULL) is not set. Its tools, in
 * order: where the step or workflow of each goes, whose alias is the tool's name. */
struct rv__chat_opts {
    int64_t max_turns;
    struct rv__budget budget;
    bool says_access;
    enum rv__access access; /* if it says so */
};
struct rv__draft_node *rv__draft_chat(struct rv__draft_body *in, const char *with_json,
                                      const struct rv__chat_opts *chat,
                                      const struct rv__draft_opts *opts);
struct rv__draft_body *rv__draft_tool(struct rv__draft_node *chat);

/* A body of a supervisor: of a branch 0 then, 1 else; of a loop, a forEach 0; of a concurrent any
 * number in order, each with its alias (NULL if it is bare: that of its node). Asked for again it is
 * the same. `bare`: the one step or workflow added to it *is* the child, the run, the body. */
struct rv__draft_body *rv__draft_body(struct rv__draft_node *node, uint32_t index,
                                      const char *alias, bool bare);

/* A handler that is a step: of a step, or (node NULL) of the workflow. The last one set counts. */
enum rv__handler { HANDLER_ON_ERROR, HANDLER_FINALLY /* of a workflow only */ };
void rv__draft_handler(struct rv__draft *draft, struct rv__draft_node *node, enum rv__handler which,
                       enum rv__step_kind kind, const char *name, const char *with_json);
/* The same as a list of nodes: where they go. */
struct rv__draft_body *rv__draft_handler_body(struct rv__draft *draft, struct rv__draft_node *node,
                                              enum rv__handler which);

/* A draft from its JSON text (a plan document; README.md has its keys). What is unknown, misspelt or
 * of the wrong type stays in the draft, and rv__plan_compile() reports it with all the rest.
 *
 * Errors: RV_EPARSE: not JSON; RV_EINVAL: not an object; RV_ETOOBIG; RV_ENOMEM.   Thread: any. */
int rv__draft_read(struct rv__str json, struct rv__draft **ret, rv_error *err);

/* One node more, from the JSON of a plan's node, with all that is in it. Errors: as above. */
int rv__draft_add_json(struct rv__draft_body *in, struct rv__str json, rv_error *err);

/* ------------------------------------------------------------------------------ compile --- */

/* Finds the draft of a workflow that is nested by name. Returns RV_OK and a draft that stays valid
 * until compile returns; RV_ENOTFOUND, which becomes a violation; or another error, which ends the
 * compilation. */
struct rv__resolver {
    int (*find)(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret);
    /* The same by the file that defines it, an absolute path: for callers that read files (define/). NULL: files are
     * not known. RV_EINVAL: the file exists, but cannot be loaded; that is reported elsewhere. */
    int (*find_file)(struct rv__resolver *self, const char *path, const struct rv__draft **ret);
    /* Is there an agent with that id in code? Its states then call the function with that name. NULL: none. For
     * manifests (define/). */
    bool (*has_agent)(struct rv__resolver *self, struct rv__str id);
};

/* Check everything and make the plan.
 *
 * Every violation is added to `bad` (NULL: only the first is reported, in *err). Its path is that of the
 * node, as rv__node_path() writes it without a vector; for a workflow it is the path of the node that nests
 * it, and for the outermost workflow the key in question ("name", "steps", "input").
 * `resolver` may be NULL if nothing is nested by name. The draft stays the caller's, unchanged. On
 * success free *ret with rv__plan_free().
 *
 * Errors: RV_EINVAL: there are violations; RV_ETOOBIG: beyond the limits above; RV_ENOMEM; errors of
 * the resolver.   Thread: any. */
int rv__plan_compile(const struct rv__draft *draft, struct rv__resolver *resolver,
                     struct rv__violations *bad, struct rv__plan **ret, rv_error *err);

/* Read and compile the JSON of a plan, nested workflows in it. Errors: as the two together. */
int rv__plan_read(struct rv__str json, struct rv__plan **ret, rv_error *err);

#endif
