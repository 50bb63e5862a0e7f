/* compiler.h: the machine's C compiler as a child: bounded in time, and gone when we are. Inside define/. */
#ifndef RV_DEFINE_COMPILER_H
#define RV_DEFINE_COMPILER_H

#include <rival/base.h>

#include "base/str.h"

enum { RV__COMPILER_ARGS = 64 };

struct rv__compiler_call {
    char words[4096]; /* of $CC and $RIVAL_CFLAGS, cut at blanks */
    size_t used;
    const char *argv[RV__COMPILER_ARGS];
    int argc;
};

/* A call of $CC, or cc, without arguments. */
void rv__compiler_begin(struct rv__compiler_call *call);
/* One more argument, borrowed; or several, cut at blanks (NULL: none). Beyond the bounds they are dropped. */
void rv__compiler_add(struct rv__compiler_call *call, const char *word);
void rv__compiler_add_words(struct rv__compiler_call *call, const char *text);

#define RV__COMPILER_FOLDER "/proc/self/fd/4/" /* how the compiler calls the folder `dir` */

/* Run it. What it prints goes to `said`, its standard output to the descriptor `out`; `dir` is a folder that
 * it finds as RV__COMPILER_FOLDER. Each may be -1: none. Returns its exit code. After two minutes, or what RIVAL_COMPILE_TIMEOUT says ("30s"), it is
 * killed with all that it started; so it is when this process ends.
 *
 * Errors: RV_ENOTFOUND: it cannot be run; RV_ETIMEDOUT; RV_ESYS.   Thread: any. */
int rv__compiler_run(const struct rv__compiler_call *call, int out, int dir, struct rv__buf *said,
                     rv_error *err);

#endif
