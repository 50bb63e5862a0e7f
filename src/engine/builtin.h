/* builtin.h: work that needs no function of the program. */
#ifndef RV_ENGINE_BUILTIN_H
#define RV_ENGINE_BUILTIN_H

#include "engine/context.h"

/* Is this work one that the engine does by itself? */
bool rv__builtin(const struct rv__plan_ref *plan, const struct rv__effect *effect);
/* Begin it; its answer comes as a letter. Thread: the loop's. */
void rv__builtin_begin(struct rv_ctx *ctx);
/* It is done but for its description, if the plan has one: then post it. Thread: whoever finished. */
void rv__work_finish(struct rv_ctx *ctx);
/* Begin a command whose parameters are there. Thread: the evaluator's. */
void rv__command_begin(struct rv_ctx *ctx, struct rv__str with);
void rv__work_post(struct rv_ctx *ctx); /* dispatch.c. Thread: any */

#endif
