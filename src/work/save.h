/* save.h: `saveTo`: the output of a step goes to a file. The step's result is the path of the file and its size. */
#ifndef RV_WORK_SAVE_H
#define RV_WORK_SAVE_H

#include "base/outfile.h"
#include "exec/exec.h"

struct rv_ctx;

struct rv__save {
    struct rv__outfile file;
    struct rv__str path; /* as given in the step */
    struct rv_ctx *ctx;
    struct rv__later later; /* finishes the file on another thread */
    uint64_t bytes;
    rv_error err;
};

/* Open the file that the parameters name, if they name one: ctx->save is set then. False: the attempt has failed.
 * `what`: for messages. Thread: the evaluator's. */
bool rv__save_begin(struct rv_ctx *ctx, struct rv__str with, const char *what);
/* All output is written: rename the file, set the result, and finish the attempt. Thread: the I/O loop's. */
void rv__save_end(struct rv_ctx *ctx);
/* Free it. If the file is not finished, it is deleted. */
void rv__save_done(struct rv__save *save); /* NULL is allowed */

#endif
