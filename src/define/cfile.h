/* cfile.h: C files become shared objects. */
#ifndef RV_DEFINE_CFILE_H
#define RV_DEFINE_CFILE_H

#include "base/str.h"

enum { RV__CFILE_PATH = 4096 };

/* Compile a C file, or find that it was: `object` is then the path of a shared object. What the compiler
 * printed is appended to `said`, as it was, warnings too. Blocks while the compiler runs.
 *
 * Errors: RV_EINVAL: the compiler refused it; RV_ENOTFOUND: no file, no compiler, no headers; RV_ESYS.
 * Thread: any, also several for one file; other processes too. */
int rv__cfile_build(const char *file, char object[RV__CFILE_PATH], struct rv__buf *said,
                    rv_error *err);

/* The folder that has rival/rival.h: RIVAL_INCLUDE, beside us, where we were installed, the sources. */
int rv__cfile_include(char folder[RV__CFILE_PATH], rv_error *err);

#endif
