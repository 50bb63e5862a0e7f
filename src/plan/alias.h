/* alias.h: which names are good, and who has which in a sequence. Inside plan/ only. */
#ifndef RV_PLAN_ALIAS_H
#define RV_PLAN_ALIAS_H

#include "plan/plan.h"

/* The same for the name of a function: these come from several languages, so we ask for little. */
const char *rv__function_fault(struct rv__str name);

/* The aliases of one sequence (or of the children of one concurrent), each taken once. A hash table:
 * a sequence of 50,000 nodes of the same implied alias costs no more per node than one of five. */
struct rv__aliases {
    struct rv__alias_slot {
        struct rv__str alias; /* none: free */
        uint32_t owner;
        uint32_t next; /* the suffix to try next when this is implied again */
    } * slots;
    size_t cap; /* a power of two; more than twice the names */
    size_t mask;
    uint64_t seed;
};

void rv__aliases_init(struct rv__aliases *aliases);
void rv__aliases_done(struct rv__aliases *aliases);

/* Forget all, and make room for `count` names. RV_ENOMEM. */
int rv__aliases_begin(struct rv__aliases *aliases, uint32_t count);

/* Take `alias` for `owner`, a node's index. False: *taken_by has it. The text is borrowed. */
bool rv__aliases_take(struct rv__aliases *aliases, struct rv__str alias, uint32_t owner,
                      uint32_t *taken_by);

/* Take `base`, or the first of base_2, base_3 … that is free, at most RV__PLAN_MAX_NAME long. The
 * text of *ret is `base`, or lives in the arena. RV_ENOMEM. */
int rv__aliases_imply(struct rv__aliases *aliases, struct rv__str base, uint32_t owner,
                      struct rv__arena *arena, struct rv__str *ret);

#endif
