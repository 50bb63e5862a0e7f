/* import.h: the reader of exported runs, apart from the engine: import_file.c. */
#ifndef RV_ENGINE_IMPORT_H
#define RV_ENGINE_IMPORT_H

#include "flow/flow.h"
#include "store/store.h"

struct rv__import;

/* Read up to where the history begins, and check it. `file` and `name` are borrowed.
 * Errors: RV_EPARSE, RV_EINVAL, RV_ESYS, RV_ENOMEM. */
int rv__import_new(int file, const char *name, int max_crashes, int64_t now_ms,
                   struct rv__import **ret, rv_error *err);
void rv__import_free(struct rv__import *import); /* NULL is allowed */
struct rv__str rv__import_run(const struct rv__import *import);
/* When all was read: how the run stands, and when it is wanted; 0 = not by itself. */
enum rv__run_status rv__import_status(const struct rv__import *import);
int64_t rv__import_wake_ms(const struct rv__import *import);

/* What to write next: an rv__store_next_write, for rv__store_import(). */
int rv__import_next(void *import, struct rv__store_write *ret, rv_error *err);

#endif
