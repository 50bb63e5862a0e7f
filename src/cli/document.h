/* document.h: documents of the API into structs, as server/documents.c describes them. */
#ifndef RV_CLI_DOCUMENT_H
#define RV_CLI_DOCUMENT_H

#include "server/server.h"

/* Read a document, which is checked JSON, into one allocation: `head` bytes of zeros, and at RV__DOCUMENT_AT(head) the
 * struct; lists and texts follow. Free it with rv_free(), or as the engine's struct of that type. A member that is
 * absent or has another type is 0 or ""; a struct read from what is not an object is empty.
 * Errors: RV_ENOMEM; RV_EPARSE: more records than our server sends. */
int rv__document_read(const struct rv__document *of, struct rv__str json, size_t head, void **ret,
                      rv_error *err);
#define RV__DOCUMENT_AT(head) (((head) + 15) / 16 * 16)

#endif
