/* keep.h: export, import and backup of runs and stores; and retention of finished runs.
 *
 * Nothing here knows the engine: the functions get a handle of the store, and the time as a number. */
#ifndef RV_KEEP_KEEP_H
#define RV_KEEP_KEEP_H

#include <rival/rival.h>

#include "flow/flow.h"
#include "store/store.h"

/* rv_export() and rv_backup(), through a reader of the caller's own, used for the whole call. */
int rv__export(struct rv__store *reader, const char *run_id, const rv_export_opts *opts,
               int64_t now_ms, rv_error *err);
int rv__backup(struct rv__store *reader, const rv_backup_opts *opts, rv_error *err);

/* The import of a run from a file: import_file.c. */
struct rv__import;

/* Read the file up to the beginning of the history, and check it. `file` and `name` are borrowed. Errors:
 * RV_EPARSE, RV_EINVAL, RV_ESYS, RV_ENOMEM. */
int rv__import_new(int file, const char *name, int max_crashes, int64_t now_ms,
                   struct rv__import **ret, rv_error *err);
void rv__import_free(struct rv__import *import); /* NULL is allowed */
struct rv__str rv__import_run(const struct rv__import *import);
/* After everything was read: the run's status, and when it can continue by itself; 0 = never. */
enum rv__run_status rv__import_status(const struct rv__import *import);
int64_t rv__import_wake_ms(const struct rv__import *import);

/* The next write: an rv__store_next_write, for rv__store_import(). */
int rv__import_next(void *import, struct rv__store_write *ret, rv_error *err);

/* ----------------------------------------------------------------------------- retention --- */

/* Limits for finished runs. 0: no limit. */
struct rv__retain_limits {
    int64_t max_age_ms;
    uint64_t max_runs, max_bytes;
};

struct rv__retaining {
    const struct rv__retain_limits *limits;
    int64_t now_ms; /* wall clock */
};

/* Delete one piece through the writer: data of deleted runs that is still there (*sweeping, false at first), else
 * the oldest runs beyond a limit. Adds to *removed; *ret_more: there is more to do. */
int rv__retain_piece(struct rv__store *writer, const struct rv__retaining *how, bool *sweeping,
                     uint64_t *removed, bool *ret_more, rv_error *err);
/* How many runs would be deleted now. For max_bytes this is an estimate. */
int rv__retain_foresee(struct rv__store *reader, const struct rv__retain_limits *limits,
                       int64_t now_ms, uint64_t *ret, rv_error *err);

#endif
