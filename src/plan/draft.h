/* draft.h: the structs of a draft. Inside plan/ only: others use the calls in plan.h.
 *
 * A draft holds what the author wrote, valid or not. A value that cannot be stored (a time-out that is an object,
 * an unknown key) becomes a complaint of its node; compile reports it with the node's path, together with all other
 * errors. */
#ifndef RV_PLAN_DRAFT_H
#define RV_PLAN_DRAFT_H

#include "plan/plan.h"

struct rv__complaint {
    struct rv__complaint *next;
    const char *key; /* of a workflow: the key in question; of a node: NULL */
    struct rv__str text;
};

struct rv__complaints {
    struct rv__complaint *first, **end; /* end: NULL if empty */
};

/* Values that were set explicitly, where the value does not show it: 0 means "not set" in the builder's options,
 * but is a bad value in JSON. */
enum rv__given {
    GIVEN_TIMEOUT = 1 << 0,
    GIVEN_ON_TIMEOUT = 1 << 1,
    GIVEN_MAX_ATTEMPTS = 1 << 2,
    GIVEN_BACKOFF = 1 << 3,
    GIVEN_BACKOFF_BASE_MS = 1 << 4,
    GIVEN_MAX_BACKOFF_MS = 1 << 5,
    GIVEN_JITTER = 1 << 6,
    GIVEN_NEEDS = 1 << 7,
    GIVEN_MAX_ITERATIONS = 1 << 8,
    GIVEN_CONCURRENCY = 1 << 9,
    GIVEN_JOIN = 1 << 10, /* a number */
    GIVEN_JOIN_ALL = 1 << 11,
    GIVEN_RETRY_ON = 1 << 12,
    GIVEN_NO_RETRY_ON = 1 << 13,
    GIVEN_CONTINUE_ON_ERROR = 1 << 14,
    GIVEN_RECORD_INPUT = 1 << 15,
    GIVEN_MAX_TURNS = 1 << 16,
    GIVEN_ACCESS = 1 << 17,
};

/* A state of a stage, as it was written. */
struct rv__draft_state {
    int64_t priority, max_retry, timeout_ms;
    bool critical, final, timeout_given;
    int access; /* enum rv__access */
    bool keep_errors_from_chat, keep_chat_on_pass;
    struct rv__str on_failure, agent_id, parameters, depends_on, description,
        resources; /* none: not set */
};

struct rv__draft_body {
    struct rv__draft *draft;
    struct rv__draft_node *owner; /* NULL: a workflow's own sequence */
    struct rv__draft_body *next;  /* next body of the same owner */
    struct rv__draft_node *first, *last;
    uint32_t count;
    unsigned depth; /* the outermost is 1 */
    bool bare;
    struct rv__str alias;             /* none: not set */
    struct rv__draft_state *state;    /* of a stage; NULL elsewhere */
    struct rv__complaints complaints; /* of a state */
};

/* A workflow as written: the draft itself, or one inside a node of JSON. */
struct rv__draft_workflow {
    struct rv__str name, description, schema; /* none: not set */
    struct rv__str parameters, manifest_version, listeners;
    struct rv__budget budget;
    bool hosted;
    struct rv__str *needs; /* aliases of nodes around it that it reads */
    uint32_t needs_count;
    struct rv__str *secrets; /* names of secrets that its steps send */
    uint32_t secrets_count;
    struct rv__draft_body body;
    struct rv__draft_node *on_error, *finally;
    struct rv__complaints complaints;
};

struct rv__draft_node {
    struct rv__draft *draft;
    const struct rv__draft_body *in; /* NULL: a handler */
    struct rv__draft_node *next;     /* in its body */
    enum rv__node_kind kind;
    unsigned depth; /* of the body it is in */
    bool broken;    /* see its complaints; nothing else in it can be checked */
    unsigned given;
    struct rv__str alias; /* none: implied */
    struct rv__expr when, description;
    struct rv__draft_node *on_error;
    struct rv__complaints complaints;
    struct rv__draft_body *bodies, *last_body; /* in order; a branch has none or two */
    uint32_t body_count;
    struct rv__str name; /* of a function or a workflow */
    struct rv__step_config config;
    struct rv__str *needs;
    uint32_t needs_count;
    union {
        struct {
            enum rv__step_kind kind;
            struct rv__str with;
            struct rv__expr input;
        } step;
        struct {
            const struct rv__draft_workflow *here; /* written in place; NULL: looked up by name */
            const struct rv__draft *draft;         /* the owner of `here`, if another one */
            struct rv__expr input;
        } workflow;
        struct {
            struct rv__expr condition;
        } branch;
        struct {
            struct rv__expr while_, until;
            int64_t max_iterations;
            enum rv__keep keep;
        } loop;
        struct {
            struct rv__expr items, label;
            bool parallel, collect;
            int64_t concurrency;
        } foreach;
        struct {
            bool detached, collect;
            int64_t join;
        } concurrent;
        struct {
            int64_t concurrency;
        } stage;
        struct {
            int64_t max_turns;
            struct rv__budget budget;
            int access; /* enum rv__access */
        } chat;
    };
};

struct rv__draft {
    struct rv__arena arena;
    rv_error failure; /* code 0: none. After a failure every call returns the dummies */
    uint32_t pieces;  /* nodes, bodies and handlers: each counts against RV__PLAN_MAX_NODES */
    size_t bytes;     /* of text; limit RV__PLAN_MAX_BYTES */
    size_t complaint_count;
    struct rv__draft_workflow workflow;
    struct rv__draft_node dummy_node;
    struct rv__draft_body dummy_body;
};

/* An empty draft, without a name. NULL: no memory. */
struct rv__draft *rv__draft_make(void);

/* Add a piece; after a failure returns a dummy. */
struct rv__draft_node *rv__draft_node_new(struct rv__draft_body *in, enum rv__node_kind kind);
struct rv__draft_node *rv__draft_handler_new(struct rv__draft *draft, unsigned depth,
                                             enum rv__node_kind kind);
struct rv__draft_workflow *rv__draft_workflow_new(struct rv__draft_node *at); /* NULL: failed */
void rv__draft_body_init(struct rv__draft_body *body, struct rv__draft *draft,
                         struct rv__draft_node *owner, unsigned depth);

/* For the builders of the kinds: a new node with the options that all kinds have (NULL: none); and a copy of an
 * expression. */
struct rv__draft_node *rv__draft_add(struct rv__draft_body *in, enum rv__node_kind kind,
                                     const struct rv__draft_opts *opts);
struct rv__expr rv__draft_expr(struct rv__draft *draft, struct rv__expr expr);

/* Copy a text; "none" stays "none". After a failure the result is "none". */
struct rv__str rv__draft_text(struct rv__draft *draft, struct rv__str text);

/* Zeroed memory for `count` items; NULL: failed, and the failure is remembered. */
void *rv__draft_alloc(struct rv__draft *draft, size_t count, size_t size);
void rv__draft_fail(struct rv__draft *draft, int code, const char *fmt, ...) RV_PRINTF(3, 4);

/* Add a complaint. Long ones are cut; beyond RV__VIOLATIONS_MAX they are dropped. */
void rv__draft_complain(struct rv__draft *draft, struct rv__complaints *to, const char *key,
                        const char *fmt, va_list args) RV_PRINTF(4, 0);

/* A quotation for a message: at most 60 bytes, whole characters, no control characters, "…" if it was cut. */
struct rv__shown {
    char text[72];
};
struct rv__shown rv__show(struct rv__str text);

#endif
