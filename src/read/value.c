/* value.c: reads a long text that was moved from a cell to the store. It is checked here, once; callers get valid
 * JSON. */
#include "base/error.h"
#include "base/json.h"
#include "read/read.h"

struct value_read {
    struct rv__blob *blob;
    rv_error *err;
};

static int take_value(void *arg, uint64_t number, struct rv__str json)
{
    struct value_read *read = arg;
    rv_error why;
    if (rv__json_check_stored(json, RV__JSON_MAX_DEPTH, &json, &why) < 0)
        return rv__fail(read->err, RV_ESTORE, "the value %llu is not JSON: %s",
                        (unsigned long long)number, why.message);
    read->blob = rv__blob_new(json);
    return read->blob != NULL ? RV_OK : rv__nomem(read->err);
}

int rv__stored_value(struct rv__store *store, struct rv__str run, uint64_t number,
                     struct rv__blob **ret, rv_error *err)
{
    struct value_read read = { .err = err };
    int rc = rv__store_value_read(store, run, number, take_value, &read, err);
    if (rc == RV_ENOTFOUND)
        return rv__fail(err, RV_ESTORE, "the store has no value %llu of run '%.*s'",
                        (unsigned long long)number, RV__ARG(run));
    if (rc < 0)
        return rc;
    *ret = read.blob;
    return RV_OK;
}
