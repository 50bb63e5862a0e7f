/* blob.c: see blob.h. */
#include "base/blob.h"

#include "base/alloc.h"

struct rv__blob *rv__blob_new(struct rv__str text)
{
    if (text.len > SIZE_MAX - sizeof(struct rv__blob) - 1)
        return NULL;
    struct rv__blob *blob = rv__alloc(sizeof *blob + text.len + 1);
    if (blob == NULL)
        return NULL;
    atomic_init(&blob->refs, 1);
    blob->value = 0;
    blob->len = text.len;
    if (text.len > 0)
        memcpy(blob->text, text.at, text.len);
    blob->text[text.len] = '\0';
    return blob;
}

struct rv__blob *rv__blob_reference(uint64_t value, size_t len)
{
    assert(value != 0);
    struct rv__blob *blob = rv__alloc(sizeof *blob + 1);
    if (blob == NULL)
        return NULL;
    atomic_init(&blob->refs, 1);
    blob->value = value;
    blob->len = len;
    blob->text[0] = '\0';
    return blob;
}

struct rv__blob *rv__blob_ref(struct rv__blob *blob)
{
    if (blob != NULL)
        atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
    return blob;
}

void rv__blob_unref(struct rv__blob *blob)
{
    if (blob != NULL && atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1)
        rv__free(blob);
}
