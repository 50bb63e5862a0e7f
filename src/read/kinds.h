/* kinds.h: what readers need to know about each kind of node. Inside read/ only. */
#ifndef RV_READ_KINDS_H
#define RV_READ_KINDS_H

#include "plan/plan.h"

struct rv__read_kind {
    const char *body;  /* what one of its bodies is called; NULL: it has none */
    bool lists_bodies; /* its children are its bodies; else the nodes in them are */
    bool takes_one;    /* only one of its bodies runs; the others are skipped */
    /* How many bodies run at once; 0: no bound. `limit`: the run's own for its stages; 0: none. */
    int64_t (*places)(const struct rv__node *node, int64_t limit);
    /* Does its sequence continue while the node still runs? NULL: never. */
    bool (*detached)(const struct rv__node *node);
    /* May its end (failed or not) cancel nodes that still run below it? NULL: never. */
    bool (*cancels)(const struct rv__node *node, bool failed);
};

const struct rv__read_kind *rv__read_kind(const struct rv__node *node);

#endif
