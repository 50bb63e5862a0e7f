/* kinds.h: what plan/ itself asks of the tables by kind; the rest is in plan.h. */
#ifndef RV_PLAN_KINDS_H
#define RV_PLAN_KINDS_H

#include "plan/compile.h"
#include "plan/subject.h"
#include "plan/write.h"

/* A kind of node: all that plan/ asks of it. Each has a file of its own, and a row in kinds.c. */
struct rv__kind {
    const char *phrase;     /* "a forEach", for sentences; its name in JSON is in it */
    enum rv__bodies bodies; /* how it has them */
    uint32_t most_bodies;   /* that a draft may give it */
    bool all_bodies;        /* they come together, said or not */
    bool takes_config;      /* how it is tried can be said of it, as of a step */
    const char *body_key;   /* BODIES_ITERATED: the key of its body, for paths of plans */

    /* What it evaluates besides `when` and `description`. NULL: nothing; from it: nothing of that use. */
    const struct rv__expr *(*expr)(const struct rv__node *node, enum rv__use use);
    /* Its own members, from JSON into a draft. */
    void (*read)(struct rv__draft_node *node, const struct rv__subject *s);
    /* Them and its bodies, from a draft into the plan: as rv__build_body(). */
    int (*build)(struct rv__compiler *c, const struct rv__draft_node *draft, struct rv__node *node,
                 unsigned depth, const struct rv__frame *within);
    /* Its own members, from a plan to JSON. */
    void (*write)(struct rv__writer *w, const struct rv__node *node);
};

extern const struct rv__kind rv__kind_step, rv__kind_workflow, rv__kind_branch, rv__kind_loop,
    rv__kind_foreach, rv__kind_concurrent, rv__kind_stage, rv__kind_chat, rv__kind_sequence;
const struct rv__kind *rv__kind_of(enum rv__node_kind kind);

const char *rv__node_kind_phrase(enum rv__node_kind kind); /* "a forEach", for sentences */

/* The alias that a step of this kind implies, if it has no function's name to take. */
const char *rv__step_kind_alias(enum rv__step_kind kind);

#endif
