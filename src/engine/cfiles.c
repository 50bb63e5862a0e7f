/* cfiles.c: workflow files in C: compiled, and looked at, in a host or here. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/define.h"
#include "engine/engine.h"
#include "engine/files.h"
#include "engine/table.h"

static bool ends_with(const char *path, const char *ending)
{
    size_t len = strlen(path), tail = strlen(ending);
    return len > tail && strcmp(path + len - tail, ending) == 0;
}

/* Its functions are called in this process: it stays loaded for good, as runs may be in it at any time. */
static int load_here(const char *object, rv_workflow **ret, rv_error *err)
{
    struct rv__table table = { .functions = NULL };
    void *handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return rv__fail(err, RV_EINVAL, "it cannot be loaded: %s", dlerror());
    const rv_workflow_def *def = dlsym(handle, "rv_file_table");
    int rc = RV_EINVAL;
    if (def == NULL)
        rc = rv__fail(err, RV_EINVAL, "it has no workflow: declare one with RV_WORKFLOW");
    else
        rc = rv__table_read(def, &table, err);
    if (rc < 0) {
        dlclose(handle);
        return rc;
    }
    rc = rv__workflow_read(rv__buf_view(&table.plan), ret, err);
    for (struct rv__named_fn *f = table.functions; rc == RV_OK && f != NULL; f = f->next)
        rv_workflow_function(*ret, f->name.at, f->fn);
    rv__table_done(&table);
    if (rc < 0)
        dlclose(handle);
    return rc;
}

static int find_object(const char *path, const rv_file_opts *opts, char object[RV__CFILE_PATH],
                       rv_error *err)
{
    struct rv__buf said;
    if (ends_with(path, ".so")) {
        char *full = realpath(path, NULL);
        if (full == NULL || strlen(full) >= RV__CFILE_PATH) {
            free(full);
            return rv__fail(err, RV_ENOTFOUND, "it cannot be found: %m");
        }
        memcpy(object, full, strlen(full) + 1);
        free(full);
        return RV_OK;
    }
    rv__buf_init(&said, 1 << 20);
    int rc = rv__cfile_build(path, object, &said, err);
    if (opts->tell != NULL && said.len > 0)
        opts->tell(opts->arg, said.text);
    rv__buf_done(&said);
    return rc;
}

int rv__cfile_load(rv_engine *engine, const char *path, const rv_file_opts *opts, rv_workflow **ret,
                   rv_error *err)
{
    char object[RV__CFILE_PATH];
    int rc = find_object(path, opts, object, err);
    if (rc == RV_OK && opts->in_process)
        rc = load_here(object, ret, err);
    else if (rc == RV_OK)
        rc = rv__hosted_workflow(engine, object, ret, err);
    if (rc < 0)
        return rc;
    (*ret)->source = path;
    (*ret)->replace = opts->replace;
    return RV_OK;
}
