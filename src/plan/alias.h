/* alias.h: rules for names, and the aliases in use in a sequence. Inside plan/ only. */
#ifndef RV_PLAN_ALIAS_H
#define RV_PLAN_ALIAS_H

#include "plan/plan.h"

/* As rv__alias_fault(), for the name of a function. Functions come from several languages, so the rules are few. */
const char *rv__function_fault(struct rv__str name);

/* The aliases of one sequence (or of the children of one concurrent), each used once. A hash table, so that 50,000
 * nodes with the same implied alias cost no more per node than five. */
struct rv__aliases {
    struct rv__alias_slot {
        struct rv__str alias; /* none: free */
        uint32_t owner;
        uint32_t next; /* the suffix to try when it is implied again */
    } * slots;
    size_t cap; /* a power of two; more than twice the names */
    size_t mask;
    uint64_t seed;
};

void rv__aliases_init(struct rv__aliases *aliases);
void rv__aliases_done(struct rv__aliases *aliases);

/* Remove all, and reserve memory for `count` names. RV_ENOMEM. */
int rv__aliases_begin(struct rv__aliases *aliases, uint32_t count);

/* Add `alias` for `owner`, a node's index. False: *taken_by already has it. The text is borrowed. */
bool rv__aliases_take(struct rv__aliases *aliases, struct rv__str alias, uint32_t owner,
                      uint32_t *taken_by);

/* Add `base`, or the first free one of base_2, base_3 …, at most RV__PLAN_MAX_NAME long. *ret is `base`, or a text
 * in the arena. RV_ENOMEM. */
int rv__aliases_imply(struct rv__aliases *aliases, struct rv__str base, uint32_t owner,
                      struct rv__arena *arena, struct rv__str *ret);

#endif
