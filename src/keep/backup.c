/* backup.c: copies the whole store to one file, completely or not at all. */
#include "base/error.h"
#include "base/outfile.h"
#include "base/opts.h"
#include "keep/keep.h"

struct backing {
    const rv_backup_opts *opts;
    bool ended; /* by the caller's callback */
};

static int tell(void *arg, uint64_t done, uint64_t total)
{
    struct backing *b = arg;
    if (b->opts->progress == NULL || b->opts->progress(b->opts->arg, done, total) == 0)
        return RV_OK;
    b->ended = true;
    return RV_ECANCELED;
}

int rv__backup(struct rv__store *reader, const rv_backup_opts *opts, rv_error *err)
{
    rv_backup_opts known = { .size = 0 };
    struct backing b = { .opts = &known };
    struct rv__outfile out = { .file = -1 };
    if (opts != NULL)
        rv__opts_take(&known, sizeof known, opts, opts->size);
    if (known.size == 0 || known.path == NULL || known.path[0] == '\0')
        return rv__fail(err, RV_EINVAL, "rv_backup: %s",
                        known.size == 0 ? "make the options with RV_BACKUP_OPTS"
                                        : "no target given: set a path");
    int rc = rv__outfile_open(&out, known.path, known.replace, err);
    if (rc == RV_OK)
        rc = rv__store_backup(reader, out.temp, tell, &b, err);
    if (b.ended)
        rc = rv__fail(err, RV_ECANCELED, "the backup was cancelled by the caller");
    if (rc == RV_OK)
        rc = rv__outfile_keep(&out, err);
    rv__outfile_done(&out);
    return rc;
}

void rv_backup_opts_init(rv_backup_opts *opts)
{
    *opts = (rv_backup_opts){ .size = sizeof *opts };
}
