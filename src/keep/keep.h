/* keep.h: runs and stores as files: export, import, backup; and which finished runs may stay.
 *
 * Nothing here knows an engine: it gets a handle of the store, and time as a number. */
#ifndef RV_KEEP_KEEP_H
#define RV_KEEP_KEEP_H

#include <rival/rival.h>

#include "flow/flow.h"
#include "store/store.h"

/* What rv_export() and rv_backup() do, through a reader of the caller's own, held as long as it takes. */
int rv__export(struct rv__store *reader, const char *run_id, const rv_export_opts *opts,
               int64_t now_ms, rv_error *err);
int rv__backup(struct rv__store *reader, const rv_backup_opts *opts, rv_error *err);

/* A run comes from a file: import_file.c. */
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

/* ----------------------------------------------------------------------------- retention --- */

/* Which finished runs may stay. 0: no bound. */
struct rv__retain_limits {
    int64_t max_age_ms;
    uint64_t max_runs, max_bytes;
};

struct rv__retaining {
    const struct rv__retain_limits *limits;
    int64_t now_ms; /* by the wall */
};

/* Remove one piece through the writer: what was forgotten and is not all gone yet (*sweeping, false at
 * first), else the oldest runs that are beyond a limit. Adds to *removed; *ret_more: there is more to do. */
int rv__retain_piece(struct rv__store *writer, const struct rv__retaining *how, bool *sweeping,
                     uint64_t *removed, bool *ret_more, rv_error *err);
/* How many would go now. Of those that are too large only about how many. */
int rv__retain_foresee(struct rv__store *reader, const struct rv__retain_limits *limits,
                       int64_t now_ms, uint64_t *ret, rv_error *err);

#endif
