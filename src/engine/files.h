/* files.h: what register.c and files.c share. */
#ifndef RV_ENGINE_FILES_H
#define RV_ENGINE_FILES_H

#include <rival/rival.h>

struct rv__definitions;

/* The definitions as the public sees them; takes them over, and *all is NULL then. Errors: RV_ENOMEM. */
int rv__report_new(struct rv__definitions **all, rv_report **ret, rv_error *err);

/* Register all workflows of these files and folders. Returns how many. */
int rv__register_paths(rv_engine *engine, const char *const *paths, size_t count,
                       const rv_file_opts *opts, rv_error *err);

/* The workflow of a C file (.c, .so), to be registered and freed. It borrows `path`.
 * Errors: RV_EINVAL, RV_ENOTFOUND, RV_ESYS, RV_ENOMEM. */
int rv__cfile_load(rv_engine *engine, const char *path, const rv_file_opts *opts, rv_workflow **ret,
                   rv_error *err);

#endif
