/* outfile.h: a file that is there whole or not at all.
 *
 * What is written goes to a file beside the one that is meant ("NAME.partial-XXXXXX"), which takes its
 * name only when it is whole and on disk. Whatever fails before that leaves nothing behind; a process
 * that is killed leaves the partial file, and never a part under the name itself. */
#ifndef RV_BASE_OUTFILE_H
#define RV_BASE_OUTFILE_H

#include "base/str.h"

struct rv__outfile {
    int file;   /* to write to; -1: none */
    char *path; /* how it will be called; NULL: it never gets a name */
    char *temp; /* how it is called until then; NULL: it has no name */
    bool replace;
};

/* Begin. Only the owner may read it: it holds what runs hold. `path` NULL: a file without a name, which
 * is gone when it is closed: for what is too large for memory.
 * Errors: RV_EEXIST (`path` is there, and not to be replaced), RV_ESYS (it cannot be made there),
 * RV_ENOMEM. On failure there is nothing to give to rv__outfile_done(). */
int rv__outfile_open(struct rv__outfile *out, const char *path, bool replace, rv_error *err);

/* All of it, at the end of the file.   Errors: RV_ESYS (the disk is full, …). */
int rv__outfile_write(struct rv__outfile *out, struct rv__str bytes, rv_error *err);

/* It is whole: on disk, and called by its name, when this returns RV_OK.
 * Errors: RV_EEXIST (another one has that name now), RV_ESYS. */
int rv__outfile_keep(struct rv__outfile *out, rv_error *err);

/* Close it; if it was not kept, it is gone. After that, and before open, it does nothing. */
void rv__outfile_done(struct rv__outfile *out);

#endif
