/* blob.h: an immutable, reference-counted text with many holders: results, states, inputs. Thread: any.
 *
 * A blob is the text itself, or a *reference*: the number of the text in the store (of its run), and its length.
 * The store has the text of a reference (flow.h: rv__row_source). */
#ifndef RV_BASE_BLOB_H
#define RV_BASE_BLOB_H

#include <assert.h>
#include <stdatomic.h>

#include "base/str.h"

struct rv__blob {
    atomic_uint refs;
    uint64_t value; /* 0: the text is here; else its number, and `text` is empty */
    size_t len;     /* of the text, here or in the store */
    char text[];    /* NUL-terminated */
};

/* A copy of `text`; the caller gets one reference. NULL: no memory. */
struct rv__blob *rv__blob_new(struct rv__str text);
/* A reference to the text of `len` bytes with the number `value`, which is not 0. NULL: no memory. */
struct rv__blob *rv__blob_reference(uint64_t value, size_t len);
struct rv__blob *rv__blob_ref(struct rv__blob *blob); /* NULL is allowed, and returned */
void rv__blob_unref(struct rv__blob *blob);           /* NULL is allowed */

static inline bool rv__blob_is_reference(const struct rv__blob *blob) /* NULL is none */
{
    return blob != NULL && blob->value != 0;
}

/* Its text; NULL gives "none". Not of a reference. */
static inline struct rv__str rv__blob_str(const struct rv__blob *blob)
{
    assert(!rv__blob_is_reference(blob));
    return blob != NULL ? (struct rv__str){ blob->text, blob->len } : (struct rv__str){ NULL, 0 };
}

#endif
