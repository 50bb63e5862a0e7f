/* builtin.h: work that needs no function of the program. */
#ifndef RV_WORK_BUILTIN_H
#define RV_WORK_BUILTIN_H

#include "work/context.h"

/* Is this work one that the engine does by itself? */
bool rv__builtin(const struct rv__plan_exprs *exprs, const struct rv__effect *effect);
/* Begin it; its answer comes as a letter. Thread: the loop's. */
void rv__builtin_begin(struct rv_ctx *ctx);
/* It is done but for its description, if the plan has one: then post it. Thread: whoever finished. */
void rv__work_finish(struct rv_ctx *ctx);
/* Begin a command whose parameters are there. Thread: the evaluator's. */
void rv__command_begin(struct rv_ctx *ctx, struct rv__str with);
/* The same for a request by HTTP. */
void rv__http_begin(struct rv_ctx *ctx, struct rv__str with);

/* For the two: hand it to the I/O loop, and have it stopped when the step's token fires: a time-out, a
 * cancel, the engine closes. It may be gone afterwards. `what`: for messages. */
void rv__io_begin(struct rv_ctx *ctx, const char *what, int (*start)(struct rv_ctx *ctx),
                  void (*stop)(struct rv_ctx *ctx));
/* The loop is done with it, first of all: wait for its beginning, and let nobody stop it any more. */
void rv__io_ended(struct rv_ctx *ctx);

/* A string as it is; anything else as JSON text. */
struct rv__str rv__ctx_text(struct rv_ctx *ctx, struct rv__str json);
/* A C string of the step's arena, without NUL in it. NULL: no memory, or there is one (rv_fail, `what`). */
char *rv__ctx_c_text(struct rv_ctx *ctx, struct rv__str text, const char *what);

/* hosted.c */
void rv__hosted_run(struct rv__work *work); /* as rv__ctx_run, in a host */
/* What a file offers: the frame `register` of a host of it, as a workflow. Thread: any. */
int rv__hosted_workflow(struct rv__hosts *hosts, const char *module, rv_workflow **ret,
                        rv_error *err);

#endif
