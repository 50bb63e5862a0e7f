/* save.h: `saveTo`: what a step gets goes to a file, and its result is where it is and how long. */
#ifndef RV_WORK_SAVE_H
#define RV_WORK_SAVE_H

#include "base/outfile.h"
#include "exec/exec.h"

struct rv_ctx;

struct rv__save {
    struct rv__outfile file;
    struct rv__str path; /* as it was said */
    struct rv_ctx *ctx;
    struct rv__later later; /* the end of it */
    uint64_t bytes;
    rv_error err;
};

/* Begin the file that the parameters name, if they do: then ctx->save is there. False: it has failed.
 * `what`: for messages. Thread: the evaluator's. */
bool rv__save_begin(struct rv_ctx *ctx, struct rv__str with, const char *what);
/* All of it is written: it gets its name, which is then the result, and the attempt is finished. Thread: the
 * I/O loop's. */
void rv__save_end(struct rv_ctx *ctx);
/* What was not ended leaves nothing behind. */
void rv__save_done(struct rv__save *save); /* NULL is allowed */

#endif
