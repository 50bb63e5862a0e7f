/* keeps.c: the public calls that copy data of the store to a file. They take long, so each has a reader of its own
 * and runs on the caller's thread, without the loop. */
#include "base/error.h"
#include "engine/engine.h"
#include "keep/keep.h"

int rv_export(rv_engine *e, const char *run_id, const rv_export_opts *opts, rv_error *err)
{
    struct rv__store *reader = NULL;
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "rv_export: no engine given");
    int rc = rv__engine_reader(e, &reader, err);
    if (rc == RV_OK)
        rc = rv__export(reader, run_id, opts, rv__wall_ms(e->clock), err);
    rv__store_close(reader);
    return rc;
}

int rv_backup(rv_engine *e, const rv_backup_opts *opts, rv_error *err)
{
    struct rv__store *reader = NULL;
    if (e == NULL)
        return rv__fail(err, RV_EINVAL, "rv_backup: no engine given");
    int rc = rv__engine_reader(e, &reader, err);
    if (rc == RV_OK)
        rc = rv__backup(reader, opts, err);
    rv__store_close(reader);
    return rc;
}
