/* items.h: what the iterations of a forEach are about. Inside read/ only. */
#ifndef RV_READ_ITEMS_H
#define RV_READ_ITEMS_H

#include "read/read.h"

enum { RV__ITEM_BYTES = 200 }; /* of an item's or a label's text in a list; the rest is cut off */

struct rv__iteration_text {
    int64_t index;      /* which iteration; negative: none, nothing is looked for */
    size_t item, label; /* where in the buffer, with a NUL behind; 0: it has none */
};

/* Fill in the texts of these iterations of a forEach, in order; its items are known. `out` is not empty.
 * Errors: RV_ESTORE, RV_ENOMEM. Not while the store shows something. */
int rv__iteration_texts(const struct rv__trace *trace, uint32_t foreach, struct rv__store *store,
                        const char *run_id, struct rv__iteration_text *texts, size_t count,
                        struct rv__buf *out, rv_error *err);

#endif
