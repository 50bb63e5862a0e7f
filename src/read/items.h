/* items.h: the items and labels of a forEach's iterations. Inside read/ only. */
#ifndef RV_READ_ITEMS_H
#define RV_READ_ITEMS_H

#include "read/read.h"

enum { RV__ITEM_BYTES = 200 }; /* of an item's or a label's text in a list; the rest is cut off */

struct rv__iteration_text {
    int64_t index;      /* which iteration; negative: none, leave the texts empty */
    size_t item, label; /* offsets in the buffer, NUL-terminated; 0: none */
};

/* Fill in the texts of these iterations of a forEach whose items are known, in order. `out` must not be empty.
 * Errors: RV_ESTORE, RV_ENOMEM. Not during a read of the store. */
int rv__iteration_texts(const struct rv__trace *trace, uint32_t foreach, struct rv__store *store,
                        const char *run_id, struct rv__iteration_text *texts, size_t count,
                        struct rv__buf *out, rv_error *err);

#endif
