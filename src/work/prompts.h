/* prompts.h: the prompts of a chat. */
#ifndef RV_WORK_PROMPTS_H
#define RV_WORK_PROMPTS_H

#include "work/context.h"

struct rv__prompts {
    struct rv__str prompt, system,
        schema;       /* "none": absent. The schema is JSON, the others are plain text */
    bool keeps_turns; /* the turns of earlier attempts of its state are sent, too */
};

/* Take the prompts from the parameters; for the agent of a state, compose them from its manifest (SPEC §9). The
 * texts are in the step's arena or in `with`. Errors: RV_EINVAL (there is no prompt), RV_ETOOBIG, RV_ENOMEM, errors
 * of the store. */
int rv__prompts_take(struct rv_ctx *ctx, struct rv__str with, struct rv__prompts *ret,
                     rv_error *err);

#endif
