/* blob.h: an immutable text that many hold: results, states, inputs. Counted, from any thread.
 *
 * A blob is the text, or it is a *reference*: the number under which the store has the text of its run,
 * and how long it is. Who wants the text of a reference asks the store (flow.h: rv__row_source). */
#ifndef RV_BASE_BLOB_H
#define RV_BASE_BLOB_H

#include <assert.h>
#include <stdatomic.h>

#include "base/str.h"

struct rv__blob {
    atomic_uint refs;
    uint64_t value; /* 0: the text is here; else its number, and `text` is empty */
    size_t len;     /* of the text, wherever it is */
    char text[];    /* NUL-terminated behind len */
};

/* A copy of `text`, held once by the caller; NULL without memory. */
struct rv__blob *rv__blob_new(struct rv__str text);
/* A reference to the text of `len` bytes under `value`, which is not 0; NULL without memory. */
struct rv__blob *rv__blob_reference(uint64_t value, size_t len);
struct rv__blob *rv__blob_ref(struct rv__blob *blob); /* NULL is allowed, and given back */
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
