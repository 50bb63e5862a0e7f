/* blob.h: an immutable text that many hold: results, states, inputs. Counted, from any thread. */
#ifndef RV_BASE_BLOB_H
#define RV_BASE_BLOB_H

#include <stdatomic.h>

#include "base/str.h"

struct rv__blob {
    atomic_uint refs;
    size_t len;
    char text[]; /* NUL-terminated behind len */
};

/* A copy of `text`, held once by the caller; NULL without memory. */
struct rv__blob *rv__blob_new(struct rv__str text);
struct rv__blob *rv__blob_ref(struct rv__blob *blob); /* NULL is allowed, and given back */
void rv__blob_unref(struct rv__blob *blob);           /* NULL is allowed */

/* Its text; NULL gives "none". */
static inline struct rv__str rv__blob_str(const struct rv__blob *blob)
{
    return blob != NULL ? (struct rv__str){ blob->text, blob->len } : (struct rv__str){ NULL, 0 };
}

#endif
