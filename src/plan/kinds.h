/* kinds.h: the table of node kinds, as plan/ itself uses it; the rest is in plan.h. */
#ifndef RV_PLAN_KINDS_H
#define RV_PLAN_KINDS_H

#include "plan/compile.h"
#include "plan/subject.h"
#include "plan/write.h"

/* A kind of node. Each has its own file, and a row in kinds.c. */
struct rv__kind {
    const char *phrase;     /* "a forEach", for messages; contains its name in JSON */
    enum rv__bodies bodies; /* how its bodies are organised */
    uint32_t most_bodies;   /* limit in a draft */
    bool all_bodies;        /* all its bodies always exist, written or not */
    bool takes_config;      /* it takes retry and time-out options, like a step */
    const char *body_key;   /* BODIES_ITERATED: the key of its body, for paths in plans */

    /* Its expressions besides `when` and `description`. NULL: none; result NULL: none for this use. */
    const struct rv__expr *(*expr)(const struct rv__node *node, enum rv__use use);
    /* Read its own members from JSON into a draft. */
    void (*read)(struct rv__draft_node *node, const struct rv__subject *s);
    /* Copy them and its bodies from a draft into the plan: as rv__build_body(). */
    int (*build)(struct rv__compiler *c, const struct rv__draft_node *draft, struct rv__node *node,
                 unsigned depth, const struct rv__frame *within);
    /* Write its own members as JSON. */
    void (*write)(struct rv__writer *w, const struct rv__node *node);
};

extern const struct rv__kind rv__kind_step, rv__kind_workflow, rv__kind_branch, rv__kind_loop,
    rv__kind_foreach, rv__kind_concurrent, rv__kind_stage, rv__kind_chat, rv__kind_sequence;
const struct rv__kind *rv__kind_of(enum rv__node_kind kind);

const char *rv__node_kind_phrase(enum rv__node_kind kind); /* "a forEach", for sentences */

/* The implied alias of a step of this kind that has no function name. */
const char *rv__step_kind_alias(enum rv__step_kind kind);

#endif
