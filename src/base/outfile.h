/* outfile.h: writes a file completely or not at all.
 *
 * Data goes to a temporary file beside the target ("NAME.partial-XXXXXX"), which is renamed only when it is
 * complete and on disk. A failure before that leaves nothing behind; a killed process leaves the temporary file,
 * but never an incomplete file under the target's name. */
#ifndef RV_BASE_OUTFILE_H
#define RV_BASE_OUTFILE_H

#include "base/str.h"

struct rv__outfile {
    int file;   /* to write to; -1: none */
    char *path; /* its final name; NULL: it never gets one */
    char *temp; /* its temporary name; NULL: none */
    bool replace;
};

/* Begin. Only the owner may read the file: it has the data of runs. `path` NULL: a file without a name, deleted
 * when it is closed: for data too large for memory.
 * Errors: RV_EEXIST (`path` exists, and may not be replaced), RV_ESYS (it cannot be created), RV_ENOMEM. After a
 * failure rv__outfile_done() is not needed. */
int rv__outfile_open(struct rv__outfile *out, const char *path, bool replace, rv_error *err);

/* Append all bytes.   Errors: RV_ESYS (the disk is full, …). */
int rv__outfile_write(struct rv__outfile *out, struct rv__str bytes, rv_error *err);

/* Finish: on RV_OK the file is complete, on disk and has its name.
 * Errors: RV_EEXIST (another file has the name now), RV_ESYS. */
int rv__outfile_keep(struct rv__outfile *out, rv_error *err);

/* Close the file; it is deleted unless it was kept. Does nothing if it is not open. */
void rv__outfile_done(struct rv__outfile *out);

#endif
