/* prompts.h: what a chat asks, beyond the conversation that it has had: its prompts. */
#ifndef RV_WORK_PROMPTS_H
#define RV_WORK_PROMPTS_H

#include "work/context.h"

struct rv__prompts {
    struct rv__str prompt, system, schema; /* none: none. The schema is JSON, the others plain */
    bool keeps_turns; /* those of earlier attempts of its state are sent, too */
};

/* From its parameters; of the agent of a state, composed of what its manifest says (SPEC §9). Texts live in the
 * step's arena or in `with`. Errors: RV_EINVAL: there is no prompt; RV_ETOOBIG, RV_ENOMEM, what the store said. */
int rv__prompts_take(struct rv_ctx *ctx, struct rv__str with, struct rv__prompts *ret,
                     rv_error *err);

#endif
