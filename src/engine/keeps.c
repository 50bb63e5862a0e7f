/* keeps.c: the public calls that copy what is in the store to a file: each with a reader of its own, for
 * they take long. On the caller's thread; the loop takes no part in them. */
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
