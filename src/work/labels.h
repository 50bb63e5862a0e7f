/* labels.h: the labels of the iterations of a forEach. Inside work/ only. */
#ifndef RV_WORK_LABELS_H
#define RV_WORK_LABELS_H

#include "work/context.h"

enum {
    RV__LABELS_MOST =
        10000,             /* items of a forEach that get a label; the others are shown by number */
    RV__LABEL_BYTES = 200, /* of one label; the rest is cut off */
};

/* The items are evaluated: make their labels, then post the work. False: there are no labels to make, and the caller
 * must post it. Thread: as `done` of its work. */
bool rv__labels_make(struct rv_ctx *ctx);
/* An evaluation has ended while ctx->labels is set: it was that of a label. */
void rv__labels_answer(struct rv_ctx *ctx, struct rv__str json, const rv_error *err);

#endif
