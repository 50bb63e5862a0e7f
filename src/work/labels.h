/* labels.h: what the iterations of a forEach are called. Inside work/ only. */
#ifndef RV_WORK_LABELS_H
#define RV_WORK_LABELS_H

#include "work/context.h"

enum {
    RV__LABELS_MOST =
        10000,             /* items of a forEach that get a label; the others are known by number */
    RV__LABEL_BYTES = 200, /* of one label; the rest is cut off */
};

/* Its items are there: make their labels, then post it. False: there is nothing to make, and it is still to
 * be posted. Thread: as `done` of its work. */
bool rv__labels_make(struct rv_ctx *ctx);
/* An evaluation has ended while ctx->labels was there: it was of a label. */
void rv__labels_answer(struct rv_ctx *ctx, struct rv__str json, const rv_error *err);

#endif
